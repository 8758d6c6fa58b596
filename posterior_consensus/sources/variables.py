"""Find the variable with draws in any kind of data, as one DataArray: sample dimensions first, then items.

Allocation probabilities have components as a further dimension.
"""

import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import HasLabels, as_array, is_partition, similarity_hint
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.cluster import client_for
from posterior_consensus.sources.containers import group_dataset, is_inference_data, opened
from posterior_consensus.sources.locations import listing
from posterior_consensus.sources.plain_files import is_plain, read_plain
from posterior_consensus.sources.rounding import sums_to_one
from posterior_consensus.sources.tables import array_of_table, check_apart
from posterior_consensus.sources.transposed import MOST_CHAINS, warn_if_transposed, warn_of_many_chains

Array = np.ndarray[Any, Any]

_AXES = {1: "draws x items", 2: "draws x items x components"}
_ONE_PARTITION = " This is a single partition; if a function takes draws and a partition, pass the draws first."
_SOFT_NAMES = re.compile(r"lp_|lps$|log_?(p|prob|theta|resp|lik|weight)|resp|gamma_z|p_z|prob_z", re.IGNORECASE)


def label_array(data: Any, var_name: str | None, sample_dims: Any) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Find the labels in `data`; return them, their sample dimensions and their item dimension."""
    with found_labels(data, var_name, "posterior", sample_dims, None) as (labels, dims, item):
        return _in_memory(labels), dims, item


@contextmanager
def found_labels(
    data: Any, var_name: str | None, group: str, sample_dims: Any, item_dim: str | None, *, stay: bool = False
) -> Iterator[tuple[xr.DataArray, tuple[str, ...], str]]:
    """Find the labels like `label_array`; large labels, or all if `stay`, remain unread until the context ends."""
    _check_name("item_dim", item_dim)
    with opened(data) as container:
        dims = dim_names(sample_dims, container, group)
        labels = _find(container, var_name, group, dims, (item_dim,), _labels_in)
        if stay or is_elsewhere(labels) or client_of(labels) is not None:
            for coord in labels.coords.values():
                coord.load()
        else:
            labels = _in_memory(labels)
        labels, dims, (item,) = _orient(labels, dims, (item_dim,))
        yield labels, dims, item


def is_elsewhere(variable: xr.DataArray) -> bool:
    """Whether a variable is in a file or dask, and large enough to be read in blocks."""
    return not variable.variable._in_memory and not memory.fits(variable.nbytes / memory.SHARE_HELD)


def probability_array(
    data: Any, var_name: str | None, group: str, sample_dims: Any, item_dim: str | None, component_dim: str | None
) -> tuple[xr.DataArray, tuple[str, ...], tuple[str, str]]:
    """Find allocation probabilities in `data`; return them with their sample dimensions, item and component dimension.

    If neither is named, components run along the dimension over which values sum to one, else the last dimension.
    """
    _check_name("item_dim", item_dim)
    _check_name("component_dim", component_dim)
    if item_dim is not None and item_dim == component_dim:
        raise ValueError(f"`item_dim` and `component_dim` must differ; got {item_dim!r} for both.")
    rest = (item_dim, component_dim)
    with opened(data) as container:
        dims = dim_names(sample_dims, container, group)
        values = _in_memory(_find(container, var_name, group, dims, rest, _probabilities_in))
    if values.dtype.kind != "f":
        name = repr(values.name) if values.name is not None else "`data`"
        raise TypeError(
            f"Allocation probabilities must be floats; {name} holds {values.dtype}. If these are labels of several "
            "partitions in each draw, take them by as_layers(data, var_name, layer_dim=...)."
        )
    values, dims, (item, component) = _orient(values, dims, rest)
    if sums_to_one(values, item) and not sums_to_one(values, component):
        if rest != (None, None):
            raise ValueError(
                f"`component_dim` must be the dimension over which probabilities sum to one; got {component!r}, and "
                f"they do over {item!r}. Give item_dim={component!r}, component_dim={item!r}."
            )
        if not isinstance(data, (xr.DataArray, xr.Dataset, xr.DataTree)):
            values = values.rename({item: component, component: item})
        else:
            item, component = component, item
    values = values.transpose(*dims, item, component)
    if not (values.coords or isinstance(data, (xr.DataArray, xr.Dataset, xr.DataTree))):  # the array has no names
        warn_if_transposed(values.values.argmax(axis=-1), values.shape, "put the draws first, items next")
    return values, dims, (item, component)


def dim_names(sample_dims: Any, data: Any, group: str = "posterior") -> tuple[str, ...]:
    """Names of the sample dimensions, checked; if None, ArviZ's default for the data."""
    if sample_dims is None:
        return _dims_of_arviz(data, group)
    dims = (sample_dims,) if isinstance(sample_dims, str) else sample_dims
    if not isinstance(dims, (list, tuple)) or not all(isinstance(dim, str) for dim in dims):
        raise TypeError(f"`sample_dims` must be a name or a sequence of names; got {sample_dims!r}.")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(f"`sample_dims` must name at least one dimension, and each once; got {sample_dims!r}.")
    return tuple(dims)


def _dims_of_arviz(data: Any, group: str) -> tuple[str, ...]:
    """The data's attribute `sample_dims` if these dimensions exist, else ArviZ 1's setting."""
    if isinstance(data, xr.DataTree) or is_inference_data(data):
        data = group_dataset(data, group)
    if isinstance(data, (xr.Dataset, xr.DataArray)):
        named = np.atleast_1d(data.attrs.get("sample_dims", [])).tolist()
        if named and set(named) <= set(data.dims):
            return tuple(named)
        try:
            from arviz_base.validate import validate_sample_dims
        except ImportError:  # ArviZ 0
            return ("chain", "draw")
        return tuple(validate_sample_dims(None))
    return ("chain", "draw")


def _check_name(argument: str, name: Any) -> None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"`{argument}` must be a name; got {name!r}.")


def client_of(variable: xr.DataArray) -> Any:
    """The dask client whose workers process a variable; None if it is read in this process."""
    return None if variable.chunks is None else client_for(variable.size)


def _in_memory(variable: xr.DataArray) -> xr.DataArray:
    """Read a variable with its coordinates; like ``.values``, this loads the user's variable if opened from a file."""
    return variable.copy(deep=False, data=variable.values).load()


def array_or_table(data: Any, var_name: str | None) -> tuple[Any, str | None]:
    """Read plain files, and convert other libraries' arrays to NumPy; a name within a NumPy file is used up."""
    if not is_plain(data):
        return as_numpy(data), var_name
    values = read_plain(data, var_name)
    return values, var_name if isinstance(values, pd.DataFrame) else None


def variables_of(data: Any, var_name: str | None, group: str, *n_rest: int) -> xr.Dataset | None:
    """Variables of a group or a dict by name; None for tables and data without names.

    Arrays of a dict have `n_rest` dimensions besides the draws'.
    """
    if isinstance(data, (xr.Dataset, xr.DataTree)) or is_inference_data(data):
        return group_dataset(data, group)
    if isinstance(data, Layers):
        raise TypeError(
            "`data` must be one posterior; got Layers. Take one of them, layers[name], or all by summarize(layers), "
            "compare_layers(layers) or diagnose(layers)."
        )
    if group != "posterior" and not isinstance(data, xr.DataArray):  # a DataArray may come from that group
        raise ValueError(f"`group` must be left out for tables and arrays, which have no groups; got {group!r}.")
    return dataset_of_dict(data, var_name, *n_rest) if isinstance(data, Mapping) else None


def _find(
    data: Any,
    var_name: str | None,
    group: str,
    dims: tuple[str, ...],
    rest: tuple[str | None, ...],
    choose: Callable[[xr.Dataset, tuple[str, ...], tuple[str | None, ...]], xr.DataArray],
) -> xr.DataArray:
    """Return the named variable, or the variable that `choose` selects; `rest` are dimensions besides the draws'."""
    _check_name("var_name", var_name)
    data, var_name = array_or_table(data, var_name)
    dataset = variables_of(data, var_name, group, len(rest))
    if isinstance(data, pd.DataFrame):
        return array_of_table(data, var_name, dims, rest, choose)
    if dataset is not None:
        if var_name is None:
            return choose(dataset, dims, rest)
        if var_name not in dataset.data_vars:
            raise ValueError(
                f"`var_name` must name a variable of the group; got {var_name!r}, "
                f"present: {listing(dataset.data_vars)}."
            )
        return dataset[var_name]
    if isinstance(data, xr.DataArray):
        if var_name is not None and data.name not in (None, var_name):
            raise ValueError(
                f"`var_name` must be the name of the DataArray or None; got {var_name!r}, present: {data.name!r}."
            )
        return data
    if var_name is not None:
        raise ValueError(
            f"`var_name` must be None for {type(data).__name__}, which has no variables; got {var_name!r}."
        )
    return _from_array(data, rest)


def _hint_at_type(data: Any) -> str:
    """Next step for an object that is not data yet."""
    if type(data).__name__ == "MultiTrace":
        return " Convert it with pymc.to_inference_data first."
    if getattr(data, "draws", None) is not None:
        return " Take its `draws`."
    if is_partition(data):
        return _ONE_PARTITION
    return similarity_hint(data.toarray()) if hasattr(data, "toarray") else ""


def _labels_in(dataset: xr.Dataset, dims: tuple[str, ...], rest: tuple[str | None, ...]) -> xr.DataArray:
    candidates = label_candidates(dataset, dims, rest[0])
    if not candidates:
        raise ValueError(
            f"`data` has no label variable (integers over `sample_dims` {dims} and one dimension more"
            f"{'' if rest[0] is None else f', `item_dim` {rest[0]!r}'}); present: {_shapes(dataset)}."
            f"{hint_at_dims(dataset.data_vars.values(), dims, rest)} A marginalized mixture has none: with PyMC, use "
            "allocation_probabilities(model, idata) or summarize(idata, model=model); with NumPyro, sample labels by "
            "Predictive(..., infer_discrete=True). If labels are in another group, name it by `group`, such as "
            "'posterior_predictive'. Else store the logarithms of the allocation probabilities, as a "
            "Deterministic or a generated quantity, and take them by as_allocation_probabilities(idata). Name "
            "unnormalized ones by `var_name`. Labels that depend on each other given the parameters, such as hidden "
            "Markov states, must be sampled."
        )
    return _only(candidates, "label variable")


def _only(candidates: list[xr.DataArray], what: str) -> xr.DataArray:
    if len(candidates) > 1:
        raise ValueError(f"`var_name` must name the {what}; candidates: {listing(v.name for v in candidates)}.")
    return candidates[0]


def hint_at_dims(variables: Iterable[xr.DataArray], dims: tuple[str, ...], rest: tuple[str | None, ...]) -> str:
    """Candidate draw dimensions, from the first variable that has any; else empty."""
    for variable in variables:
        free = [str(dim) for dim in variable.dims if dim not in rest]
        present, n_draws = [dim for dim in dims if dim in free], len(free) - rest.count(None)
        candidates = present if len(present) == n_draws else free[:n_draws]
        if n_draws > 0 and candidates != list(dims) and (len(rest) == 2 or variable.dtype.kind in "iubUSTO"):
            named = repr(candidates[0] if n_draws == 1 else tuple(candidates))
            whose = "its draws" if variable.name is None else f"the draws of {variable.name!r}"
            function = "as_partition_draws" if len(rest) == 1 else "as_allocation_probabilities"
            return f" If {whose} are along {named}, call {function}(data, sample_dims={named})."
    return ""


def label_candidates(dataset: xr.Dataset, dims: tuple[str, ...], item_dim: str | None) -> list[xr.DataArray]:
    """Variables that can be labels; floats, which must be read, only if there is no other candidate."""
    shaped = [v for v in dataset.data_vars.values() if _fits(v, dims, (item_dim,))]
    whole = [v for v in shaped if v.dtype.kind in "iubUSTO"]
    if whole:
        return whole
    floats = _read_where(is_whole, (v for v in shaped if v.dtype.kind == "f"), dims)
    return [v for v in floats if v.size == 0 or is_elsewhere(v) or np.isfinite(v.values).any()]


def _read_where(
    is_it: Callable[[xr.DataArray], bool], variables: Iterable[xr.DataArray], dims: tuple[str, ...]
) -> Iterator[xr.DataArray]:
    """Yield the variables that qualify in every draw. If the first draw fails, no other draw is read.

    Large variables are judged by the first draw.
    """
    for variable in variables:
        if is_it(variable.isel(dict.fromkeys(_sample_dims(variable, dims), slice(1))).compute()):
            values = variable if is_elsewhere(variable) else _in_memory(variable)
            if values is variable or is_it(values):
                yield values


def _probabilities_in(dataset: xr.Dataset, dims: tuple[str, ...], rest: tuple[str | None, ...]) -> xr.DataArray:
    candidates = probability_candidates(dataset, dims, rest)
    if not candidates:
        raise ValueError(
            f"`data` holds no allocation probabilities, floats over `sample_dims` {dims}, items and components that "
            f"sum to one over the components as they are or as logarithms; present: {_shapes(dataset)}. Name "
            "unnormalized ones by `var_name`."
        )
    return _only(candidates, "variable of allocation probabilities")


def probability_candidates(
    dataset: xr.Dataset, dims: tuple[str, ...], rest: tuple[str | None, ...] = (None, None)
) -> list[xr.DataArray]:
    """Variables that can be allocation probabilities: of a usual name, or normalized and not parameters.

    Square variables are transition matrices. If a parameter runs over the supposed items, these are components, such as
    topics with their words.
    """
    shaped = [v for v in dataset.data_vars.values() if v.dtype.kind == "f" and v.size and _fits(v, dims, rest)]
    with_parameters = {
        str(other_dims(v, dims)[0])
        for v in dataset.data_vars.values()
        if v.dtype.kind == "f" and _fits(v, dims, (None,))
    }

    def is_normalised(values: xr.DataArray) -> bool:
        one, other = (str(dim) for dim in other_dims(values, dims))
        return values.sizes[one] != values.sizes[other] and any(
            items not in with_parameters and sums_to_one(values, components)
            for items, components in ((one, other), (other, one))
        )

    named = [v for v in shaped if _SOFT_NAMES.match(str(v.name))]
    return named + list(_read_where(is_normalised, (v for v in shaped if not _SOFT_NAMES.match(str(v.name))), dims))


def _sample_dims(variable: xr.DataArray, dims: tuple[str, ...]) -> tuple[str, ...]:
    """The draws' dimensions, which may be stacked as "sample"."""
    return ("sample",) if not set(dims) <= set(variable.dims) and "sample" in variable.dims else dims


def other_dims(variable: xr.DataArray, dims: tuple[str, ...]) -> list[Hashable]:
    """Dimensions besides the draws'."""
    return [dim for dim in variable.dims if dim not in _sample_dims(variable, dims)]


def _fits(variable: xr.DataArray, dims: tuple[str, ...], rest: tuple[str | None, ...]) -> bool:
    """Whether a variable has the draws' dimensions and, besides, as many as `rest`, including those named there."""
    others = other_dims(variable, dims)
    has_draws = set(dims) <= set(variable.dims) or "sample" in variable.dims
    return has_draws and len(others) == len(rest) and {dim for dim in rest if dim is not None} <= set(others)


def _shapes(dataset: xr.Dataset) -> str:
    return ", ".join(f"{k} {v.dims} {v.dtype}" for k, v in dataset.data_vars.items()) or "none"


def is_whole(variable: xr.DataArray) -> bool:
    """Whether all present values are integers; missing and negative values are refused later."""
    present = variable.values[np.isfinite(variable.values)]
    return bool(np.all(present == np.floor(present)))


def dataset_of_dict(data: Mapping[str, Any], var_name: str | None, *n_rest: int) -> xr.Dataset:
    """Dataset of the arrays over chains and draws, or over draws of all chains, with `n_rest` further dimensions."""
    from arviz_base import convert_to_dataset

    arrays = {name: _regular(as_numpy(values), f"{name!r} of `data`", n_rest[0]) for name, values in data.items()}
    is_sample = _are_of_all_chains(arrays, var_name, n_rest)
    full = {name: values for name, values in arrays.items() if values.ndim - (1 if is_sample else 2) in n_rest}
    if not full:
        shapes = ", ".join(f"{name!r} {values.shape}" for name, values in arrays.items()) or "none"
        hint = ""
        if any(values.ndim == 1 + n_rest[0] for values in arrays.values()):
            hint = " Give draws of one chain as values[np.newaxis]."
        elif n_rest[0] == 1 and any(values.ndim == 1 for values in arrays.values()):
            hint = _ONE_PARTITION
        axes = "draws x layers x items" if n_rest == (2, 3) else _AXES[n_rest[0]]
        raise ValueError(f"`data`, a dict, must hold arrays of chains x {axes}; present: {shapes}.{hint}")
    if not is_sample:
        return convert_to_dataset(full)
    one_chain = convert_to_dataset({name: values[np.newaxis] for name, values in full.items()})
    return one_chain.isel(chain=0, drop=True).rename(draw="sample")


def _are_of_all_chains(arrays: Mapping[str, Array], var_name: str | None, n_rest: tuple[int, ...]) -> bool:
    """Whether the first dimension of all arrays is draws of all chains, as NumPyro's Predictive returns them.

    This holds if the first dimension exceeds a usual number of chains and one of two conditions is met. Either the
    arrays differ in their second dimension, or the named array (or any array) cannot have chains and draws first.
    """
    shapes = [values.shape for values in arrays.values()]
    if () in shapes or len({shape[0] for shape in shapes}) != 1 or shapes[0][0] <= MOST_CHAINS:
        return False
    if len({shape[:2] for shape in shapes}) > 1:
        return True
    if var_name is not None and var_name in arrays:
        return not _fits_after_chains(arrays[var_name], n_rest)
    draws_are_more = all(len(shape) < 3 or shape[0] > shape[1] for shape in shapes)
    return draws_are_more and not any(_fits_after_chains(values, n_rest) for values in arrays.values())


def _fits_after_chains(values: Array, n_rest: tuple[int, ...]) -> bool:
    """Whether an array can be chains x draws x items of labels, or of probabilities by component."""
    n_others = values.ndim - 2
    return n_others in n_rest and (n_others == 2 or values.dtype.kind != "f" or is_whole(xr.DataArray(values[0])))


def _is_named_partition(one: Any) -> bool:
    """Whether this is a partition of items that may have names, rather than a plain row of labels."""
    return isinstance(one, HasLabels) or (isinstance(one, (xr.DataArray, pd.Series)) and one.ndim == 1)


def _from_array(data: Any, rest: tuple[str | None, ...]) -> xr.DataArray:
    is_rows = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
    if not (is_rows or isinstance(data, np.ndarray) or _is_dask(data)):
        raise TypeError(
            "`data` must be an InferenceData, DataTree, Dataset, DataArray, array, list, DataFrame, dict or path; "
            f"got {type(data).__module__}.{type(data).__qualname__}.{_hint_at_type(data)}"
        )
    if isinstance(data, (list, tuple)) and len(data) == 1 and _is_named_partition(data[0]):
        raise TypeError(
            f"`data` must be posterior draws; got a list of one partition, a {type(data[0]).__name__}. Pass the draws "
            "that it is of, or one partition without a list."
        )
    if isinstance(data, (list, tuple)) and any(isinstance(row, (xr.DataArray, xr.Dataset, pd.Series)) for row in data):
        raise TypeError("`data`, a list, must have plain rows; join labelled ones by xarray.concat or pandas.concat.")
    values = data if _is_dask(data) else _regular(data, "`data`", len(rest))
    dims = {1: ("sample",), 2: ("chain", "draw")}.get(values.ndim - len(rest))
    if dims is None:
        axes = _AXES[len(rest)]
        hint = _ONE_PARTITION if values.ndim == 1 and values.size and len(rest) == 1 else ""
        raise ValueError(f"`data` must be an array of {axes} or chains x {axes}; got shape {values.shape}.{hint}")
    is_doubted = len(dims) == 2 and warn_of_many_chains(values.shape)
    if len(rest) == 1 and values.size and not (is_doubted or _is_dask(values)):
        warn_if_transposed(values, values.shape, "take its .T" if values.ndim == 2 else "swap the last two axes")
    names = [name or default for name, default in zip(rest, ("item", "component"), strict=False)]
    for name in names:
        check_apart(name, dims)
    return xr.DataArray(values, dims=(*dims, *names))


def _regular(values: Any, name: str, n_rest: int) -> np.ndarray[Any, Any]:
    """Convert to an array; if chains or draws differ in length, raise an error that locates them."""
    if np.ma.is_masked(values):  # as NaN, so that errors can locate it
        return np.ma.filled(values.astype(np.float64 if values.dtype.kind in "iufb" else object), np.nan)
    try:
        return as_array(values, name)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
    shapes = [_shape(part) for part in values]
    if None in shapes:
        raise ValueError(f"{name} must give every draw the same items; got rows of different lengths.")
    other = next(k for k, shape in enumerate(shapes) if shape != shapes[0])
    kind = "chain" if len(shapes[0]) == 1 + n_rest else "row"
    if kind == "chain" and len({shape[1:] for shape in shapes}) == 1:
        lengths = [shape[0] for shape in shapes]
        longer = (
            " Or give them to a PartitionAccumulator, by add(chain, chain=k): its chains may be of different lengths."
            if n_rest == 1
            else ""
        )
        raise ValueError(
            f"{name} must have chains of one length; got {lengths[0]} draws of chain 0 and {lengths[other]} of chain "
            f"{other}. Cut all to the shortest, [chain[:{min(lengths)}] for chain in data].{longer}"
        )
    raise ValueError(
        f"{name} must give every draw the same items; got shape {shapes[0]} of {kind} 0 and {shapes[other]} of {kind} "
        f"{other}."
    )


def _shape(part: Any) -> Any:
    try:
        return np.shape(part)
    except ValueError:  # the part itself is irregular
        return None


def as_numpy(data: Any) -> Any:
    """Convert an array of another library, such as JAX or PyTorch, to NumPy; return other data as they are."""
    ours = (np.ndarray, xr.DataArray, pd.Series, pd.Index, HasLabels)
    if isinstance(data, ours) or _is_dask(data) or not (hasattr(data, "dtype") and hasattr(data, "shape")):
        return data
    if hasattr(data, "__array__"):
        return np.asarray(data)
    return np.from_dlpack(data) if hasattr(data, "__dlpack__") else data


def _is_dask(data: Any) -> bool:
    arrays = sys.modules.get("dask.array")
    return arrays is not None and isinstance(data, arrays.Array)


def _orient(
    values: xr.DataArray, dims: tuple[str, ...], rest: tuple[str | None, ...]
) -> tuple[xr.DataArray, tuple[str, ...], tuple[str, ...]]:
    """Transpose to sample dimensions, then those of `rest`, by name or in order; raise an error if one is missing."""
    if "sample" in values.dims and not set(dims) & set(values.dims):
        dims = ("sample",)
    name = repr(values.name) if values.name is not None else "`data`"
    missing = [dim for dim in dims if dim not in values.dims]
    if missing:
        hint = similarity_hint(values.values) if values.ndim == 2 else ""
        hint = hint or (_ONE_PARTITION if values.ndim == 1 else hint_at_dims([values], dims, rest))
        raise ValueError(
            f"`sample_dims` must be dimensions of {name}; got {dims}, present: {tuple(values.dims)}.{hint}"
        )
    others = [str(dim) for dim in values.dims if dim not in dims]
    for argument, dim in zip(("item_dim", "component_dim"), rest, strict=False):
        if dim is not None and dim not in others:
            raise ValueError(
                f"`{argument}` must be a dimension of {name} other than {dims}; got {dim!r}, present: "
                f"{tuple(values.dims)}."
            )
    if len(others) != len(rest):
        if len(rest) == 2:
            raise ValueError(
                f"`data` must have a dimension of items and one of components in addition to {dims}; {name} has "
                f"{tuple(others)}."
            )
        advice = "select or stack the others, e.g. .stack(item=[...])" if others else "a partition needs one"
        raise ValueError(
            f"`data` must have one dimension of items in addition to {dims}; {name} has {tuple(others)}: {advice}."
        )
    free = iter(dim for dim in others if dim not in rest)
    ordered = tuple(next(free) if dim is None else dim for dim in rest)
    return values.transpose(*dims, *ordered), dims, ordered
