"""Several partitions in each draw, of one variable with a dimension of layers, several variables, or draws of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from pandas.api.types import infer_dtype

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import coords_of, name_or
from posterior_consensus.ensemble.layers import Layers, layer_names
from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.results.words import RUNS
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_flag, listing, warn
from posterior_consensus.sources.arrays import as_numpy
from posterior_consensus.sources.containers import dim_names, has_groups
from posterior_consensus.sources.conversion import find_source, opened, several_posteriors, variables_of
from posterior_consensus.sources.formats import are_chains
from posterior_consensus.sources.tables import elements_of, variables_of_table
from posterior_consensus.sources.variables import other_dims
from posterior_consensus.sources.where import Where

_ORDERED = {"integer", "floating", "mixed-integer-float", "date", "datetime", "datetime64", "timedelta64"}


def as_layers(
    data: Any,
    var_name: str | Mapping[Any, str] | None = None,
    *,
    layer_dim: str | None = None,
    item_dim: str | None = None,
    missing: Any = np.nan,
    ordered: bool | None = None,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    weights: Any = None,
    log_weights: Any = None,
) -> Layers:
    """Convert draws that hold several partitions each, one for each time or kind of data, or runs of each resolution.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, DataFrame, dict, list, path or Layers
        A posterior whose labels have a dimension of layers, or which has a variable for each layer, or a dict or list
        of the draws of each layer, which are anything that :func:`summarize` takes. Arrays are draws x layers x items
        or chains x draws x layers x items; a table has columns ``z[1,2]`` for item 2 of layer 1. Allocation
        probabilities have a dimension of components more. Layers of a list are numbered from 0. Several CSV
        files are the chains of one posterior. Runs with groups, see :func:`as_runs`, have a layer for each group.
    var_name : str or mapping, optional
        Name of the variable, or a variable for each layer: ``{"rows": "z_row", "columns": "z_col"}``. By default the
        only variable with the dimension `layer_dim`.
    layer_dim : str, optional
        Dimension that runs over layers; of arrays, tables and dicts of arrays, by default the first after the draws'.
        For runs and dicts of draws, the name to give it, by default "layer".
    item_dim : str, optional
        Dimension that runs over items; by default the remaining dimension.
    missing : scalar
        Label of an item that a layer does not have, where layers are along a dimension; by default NaN, and -1, say, in
        arrays of integers. The item is missing in all draws of the layer, or in none. Variables or draws of single
        layers have their own items.
    ordered : bool, optional
        Whether the layers follow each other. By default they do if their names (the coordinate, or the keys of a dict
        or of `var_name`) are increasing numbers or times, or the dimension has no coordinate. Groups are sorted.
    group : str
        Group of an InferenceData, DataTree or file.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws; by default as in :func:`as_partition_draws`.
    weights : array_like of shape (n_draws,) or DataArray, optional
        Weight of each draw, with all its layers; by default equal.
    log_weights : array_like of shape (n_draws,) or DataArray, optional
        Logarithms of weights, in place of them.

    Returns
    -------
    Layers
        A mapping of names to :class:`PartitionDraws` with the same samples, but for runs, which are not paired. Names
        are text or numbers; dates and times become text, such as "2020-01-31".

    Raises
    ------
    ValueError
        If there is no such variable or dimension, an item is missing in some draws of a layer only, layers have
        different draws or weights, items of different layers cannot be paired by name, or labels are invalid as
        :func:`as_partition_draws` says.
    TypeError
        If a name of a layer or of a dimension is of another type.

    Warns
    -----
    UserWarning
        If runs have one group only, which makes one layer.

    See Also
    --------
    compare_layers : Measure how far apart the layers' partitions are in the same draw, and who moves.
    summarize : Summarize each layer and compare them.

    Notes
    -----
    Labels of different layers need not mean the same: only each layer's partition counts. Items are in several layers
    if their dimension has the same name there, and their coordinate the same value.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import posterior_consensus as pc
    >>> z = np.array([[[[0, 0, 1], [0, 1, 1]], [[0, 0, 1], [0, 0, 1]]]])
    >>> z = xr.DataArray(z, dims=("chain", "draw", "year", "firm"), coords={"year": [1935, 1936]}, name="z")
    >>> layers = pc.as_layers(z, layer_dim="year")
    >>> list(layers), layers.ordered
    ([1935, 1936], True)
    >>> layers[1936].labels
    array([[0, 1, 1],
           [0, 0, 1]], dtype=uint8)

    Runs of a clustering program with two resolutions:

    >>> runs = pc.as_runs([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, 1]], groups=[0.5, 0.5, 1.0, 1.0, 1.0])
    >>> {name: len(of_layer) for name, of_layer in pc.as_layers(runs).items()}
    {0.5: 2, 1.0: 3}
    """
    _check_arguments(var_name, {"layer_dim": layer_dim, "item_dim": item_dim}, missing, ordered)
    where = Where(group=group, sample_dims=sample_dims, item_dim=item_dim, weights=weights, log_weights=log_weights)
    if isinstance(data, Layers):
        return data if ordered is None else replace(data, ordered=ordered)
    if isinstance(data, PairSource) and data.words is RUNS:
        data = _by_group(data.as_draws("A comparison of layers, such as resolutions,", lacking=True))
    given = _of_each_layer(data) if var_name is None else None
    are_draws = given is not None and all(isinstance(one, PairSource) for one in given.values())
    if given is not None and (layer_dim is None or are_draws or isinstance(data, (list, tuple))):
        of_layer = {name: layer_of(one, where, progressbar=False) for name, one in given.items()}
        return Layers.of(of_layer, layer_dim or "layer", _are_increasing(list(given)) if ordered is None else ordered)
    with opened(data, replace(where, var_name=None if isinstance(var_name, Mapping) else var_name)) as (found, where):
        dims = dim_names(sample_dims, found, group)
        variables, is_named = _variables(found, where, (1, 2) if isinstance(var_name, Mapping) else (2, 3), dims)
        if isinstance(var_name, Mapping):
            values = {name: _of_one_layer(variables, one, dims, name) for name, one in var_name.items()}
            layer_dim, in_order = layer_dim or "layer", _are_increasing(list(var_name))
        else:
            array = _variable_of_layers(variables, where.var_name, dims, layer_dim if is_named else None)
            array, layer_dim = _with_layers(array, dims, layer_dim, item_dim, is_named)
            item_dim = item_dim if is_named else "item"
            values = _by_layer(array, dims, layer_dim, item_dim, missing)
            in_order = _are_increasing(array[layer_dim].values)
        where = Where(sample_dims=dims, item_dim=item_dim, weights=where.weights)
        of_layer = {name: _draws_of_layer(values_of, where, progressbar=False) for name, values_of in values.items()}
        return Layers.of(of_layer, layer_dim, in_order if ordered is None else ordered)


def _of_each_layer(data: Any) -> dict[Any, Any] | None:
    """Draws of each layer by name, from a dict or a list; None if `data` are one posterior."""
    if isinstance(data, dict) and len(data) == 1 and np.ndim(next(iter(data.values()))) in (2, 3):
        ((name, values),) = data.items()
        raise ValueError(
            f"`data`, a dict of one array, must hold draws of chains x draws x layers x items; got {name!r} of shape "
            f"{np.shape(values)}. If that is one layer, give {{{name!r}: as_partition_draws(values)}}."
        )
    if isinstance(data, (list, tuple)):
        return None if are_chains(data) else dict(enumerate(data))
    return several_posteriors(data)


def _by_group(runs: PartitionDraws) -> dict[Any, PartitionDraws]:
    """Runs of each group, sorted by the group's name."""
    by_group = {name: runs.take(rows) for name, rows in zip(runs.samples.chain_names, runs.samples.chains, strict=True)}
    if len(by_group) == 1:
        warn(
            f"`data`, runs, must have several groups to be compared; got {next(iter(by_group))!r} alone. Say what runs "
            "differ in by `groups` of as_runs, such as groups='leiden_{}_*'."
        )
    return dict(sorted(by_group.items(), key=lambda one: (isinstance(one[0], str), one[0])))


def _check_arguments(var_name: Any, dims: Mapping[str, Any], missing: Any, ordered: Any) -> None:
    if not (var_name is None or isinstance(var_name, (str, Mapping))):
        raise TypeError(f"`var_name` must be a name, or a mapping of layers to names; got {var_name!r}.")
    if isinstance(var_name, Mapping) and not var_name:
        raise ValueError("`var_name` must name a variable for each layer; got none.")
    for argument, dim in dims.items():
        if not isinstance(dim, str | None):
            raise TypeError(
                f"`{argument}` must be the name of a dimension; got {dim!r}. An array is draws x layers x items or "
                "chains x draws x layers x items; in another order, give a DataArray, whose dimensions have names."
            )
    if np.ndim(missing) > 0:
        raise TypeError(f"`missing` must be one label; got {missing!r}.")
    if ordered is not None:
        check_flag("ordered", ordered)


def layer_of(data: Any, where: Where, *, progressbar: bool) -> PartitionDraws:
    """Draws of a layer from data of its own."""
    with opened(data, where, progressbar=progressbar) as (found, where):
        return _draws_of_layer(found, where, progressbar=progressbar)


def _draws_of_layer(data: Any, where: Where, *, progressbar: bool) -> PartitionDraws:
    return find_source(data, where, progressbar=progressbar).source.as_draws("A layer", lacking=True)


def _variables(data: Any, where: Where, n_rest: tuple[int, int], dims: tuple[str, ...]) -> tuple[xr.Dataset, bool]:
    """The variables that data hold, and whether their dimensions have names of the user's."""
    if isinstance(data, PairSource):
        raise ValueError(
            f"`data` must hold several partitions in each draw; {type(data).__name__}, a store, an accumulator and a "
            "summary have one. Give those of each layer: {'rows': ..., 'columns': ...}."
        )
    if isinstance(data, xr.DataArray):
        return data.to_dataset(name=name_or(data.name, "data")), True
    if isinstance(data, Mapping) or has_groups(data):
        return variables_of(data, where, *n_rest), isinstance(data, xr.Dataset) or has_groups(data)
    where.check_no_group()
    if isinstance(data, pd.DataFrame):
        table = variables_of_table(data, where.var_name, dims)
        return xr.Dataset({name: _unstacked(values) for name, values in table.items()}), False
    values = as_array(as_numpy(data), "`data`")
    names = {3: ("sample", "layer", "item"), 4: ("chain", "draw", "layer", "item")}.get(values.ndim)
    if names is None:
        raise ValueError(
            "`data` must be an array of draws x layers x items or chains x draws x layers x items; got shape "
            f"{values.shape}."
        )
    return xr.Dataset({"data": (names, values)}), False


def _unstacked(values: xr.DataArray) -> xr.DataArray:
    """Labels of the columns ``z[1,2]`` by layer and item; NaN where there is no such column."""
    dim = str(values.dims[-1])
    at = list(elements_of(values[dim].values).get(str(values.name), {}).values())
    if {len(indices) for indices in at} != {2}:
        return values
    index = pd.MultiIndex.from_tuples(at, names=("layer", "item"))
    return values.drop_vars(dim).assign_coords(coords_of(index, dim)).unstack(dim)


def _variable_named(variables: xr.Dataset, name: str, argument: str) -> xr.DataArray:
    if name not in variables:
        present = listing(variables.data_vars)
        raise ValueError(f"{argument} must name a variable of the group; got {name!r}, present: {present}.")
    return variables[name]


def _of_one_layer(variables: xr.Dataset, variable: str, dims: tuple[str, ...], layer: Any) -> xr.DataArray:
    found = _variable_named(variables, variable, f"`var_name[{layer!r}]`")
    others = other_dims(found, dims)
    if found.dtype.kind in "iubUSTO" and len(others) > 1:
        raise ValueError(
            f"`var_name[{layer!r}]` must name labels of one layer; {variable!r} has the dimensions {listing(others)}. "
            f"If one of these runs over layers, give it as `layer_dim`, with var_name={variable!r}."
        )
    return found


def _variable_of_layers(
    variables: xr.Dataset, name: str | None, dims: tuple[str, ...], layer_dim: str | None
) -> xr.DataArray:
    """The variable of that name, or the only one that can be labels of several layers."""
    if name is not None:
        return _variable_named(variables, name, "`var_name`")
    others = {one.name: other_dims(one, dims) for one in variables.data_vars.values()}
    shaped = [variables[name] for name, own in others.items() if len(own) in (2, 3)]
    if layer_dim is not None and shaped:
        shaped = [one for one in shaped if layer_dim in others[one.name]]
        if not shaped:
            present = ", ".join(f"{name} ({listing(own)})" for name, own in others.items())
            raise ValueError(
                f"`layer_dim` must name the dimension that runs over layers; got {layer_dim!r}, present: {present}."
            )
    found = [one for one in shaped if one.dtype.kind in "iubUSTO"] or shaped
    if len(found) != 1:
        raise ValueError(
            f"`var_name` must name the labels, over `sample_dims` {dims}, layers and items, or a variable for each "
            f"layer, as in {{'rows': ..., 'columns': ...}}; candidates: {listing(one.name for one in found)}; present: "
            f"{listing(variables.data_vars)}."
        )
    return found[0]


def _with_layers(
    values: xr.DataArray, dims: tuple[str, ...], layer_dim: str | None, item_dim: str | None, is_named: bool
) -> tuple[xr.DataArray, str]:
    """The variable with its dimension of layers; where dimensions have no names of the user's, the first is it."""
    others = [str(dim) for dim in other_dims(values, dims)]
    if not is_named and len(others) > 1:
        wanted = dict(zip(others, (layer_dim or "layer", item_dim or "item"), strict=False))
        return values.rename(wanted), wanted[others[0]]
    if layer_dim is None and len(others) == 2 and item_dim in others:
        layer_dim = next(dim for dim in others if dim != item_dim)
    if layer_dim not in others or len(others) < 2:
        raise ValueError(
            f"`layer_dim` must name the dimension of {values.name!r} that runs over layers, beside that of the items; "
            f"got {layer_dim!r}, present: {listing(others)}."
        )
    if item_dim is not None and (item_dim not in others or item_dim == layer_dim):
        raise ValueError(
            f"`item_dim` must name the dimension of {values.name!r} that runs over items, beside {layer_dim!r}; "
            f"got {item_dim!r}, present: {listing(others)}."
        )
    return values, layer_dim


def _by_layer(
    values: xr.DataArray, dims: tuple[str, ...], layer_dim: str, item_dim: str | None, missing: Any
) -> dict[Any, xr.DataArray]:
    """The labels of each layer, of the items that it has."""
    if memory.fits(values.nbytes):
        values = values.load()
    names = values[layer_dim].values
    names = np.datetime_as_string(names, unit="auto") if names.dtype.kind == "M" else names
    names = np.array(layer_names(names)) if names.dtype.kind == "m" else names
    if np.unique(names).size < names.size:
        raise ValueError(f"Names of layers must be unique; those of {layer_dim!r} are not.")
    item = item_dim or next(str(dim) for dim in other_dims(values, dims) if dim != layer_dim)
    here = np.ones((names.size, values.sizes[item]), np.bool_)
    if values.size and (values.dtype.kind == "f" or not pd.isna(missing)):
        absent = values.isnull() if pd.isna(missing) else values == missing
        rest = [dim for dim in values.dims if dim not in (layer_dim, item)]
        some, every = (found.transpose(layer_dim, item).values for found in (absent.any(rest), absent.all(rest)))
        if np.any(some != every):
            layer, at = np.argwhere(some != every)[0]
            raise ValueError(
                f"An item must be `missing` in all draws of a layer or in none; item {values[item].values[at]!s} "
                f"of layer {names[layer]!s} is missing in some of them."
            )
        here = ~every
        if not here.any(axis=1).all():
            empty = names[here.any(axis=1).argmin()]
            raise ValueError(f"A layer must have an item that is not `missing`; {empty!s} has none: leave it out.")
    _check_not_negative(values.isel({item: here.all(axis=0)}), layer_dim, item)
    if item not in values.coords and not here.all():
        values = values.assign_coords({item: np.arange(values.sizes[item])})
    layers = (values.isel({layer_dim: k}, drop=True) for k in range(names.size))
    return {
        name: one if own.all() else one.isel({item: own})
        for name, one, own in zip(names.tolist(), layers, here, strict=True)
    }


def _check_not_negative(values: xr.DataArray, layer_dim: str, item: str) -> None:
    """Raise an error that names `missing` if a label is negative."""
    if values.dtype.kind not in "if" or not (values < 0).any():
        return
    at = {dim: int(k) for dim, k in (values < 0).argmax(...).items()}
    first = values.isel(at)
    where = f"{values[item].values[at[item]]!s} of layer {values[layer_dim].values[at[layer_dim]]!s}"
    raise ValueError(
        f"Labels must not be negative; got {first.values!s} of item {where}. If that marks an item which a layer does "
        f"not have, give missing={first.values!s}."
    )


def _are_increasing(names: Any) -> bool:
    """Whether names are increasing numbers or times."""
    return infer_dtype(names) in _ORDERED and pd.Index(names).is_monotonic_increasing
