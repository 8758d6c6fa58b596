"""Input: open data once, and find in them draws of labels, allocation probabilities or a similarity matrix."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.allocations import as_soft
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_flag, listing
from posterior_consensus.sources.accumulate import PartitionAccumulator
from posterior_consensus.sources.annotated import has_observations
from posterior_consensus.sources.arrays import array_of, as_numpy, check_normalized, dataset_of_dict, has_components
from posterior_consensus.sources.containers import dim_names, group_dataset, has_groups, is_inference_data
from posterior_consensus.sources.formats import are_chains, format_of
from posterior_consensus.sources.labels import draws_of_labels, made_already
from posterior_consensus.sources.mixtures.allocation import draws_of_model
from posterior_consensus.sources.plain_files import read_plain
from posterior_consensus.sources.probabilities import draws_of_probabilities
from posterior_consensus.sources.scored_pairs import is_table_of_pairs, read_pairs
from posterior_consensus.sources.stores import as_store
from posterior_consensus.sources.tables import (
    check_full,
    in_native_order,
    items_of_table,
    named_as_wanted,
    variables_of_table,
)
from posterior_consensus.sources.variables import (
    label_candidates,
    labels_in_order,
    no_labels,
    no_probabilities,
    other_dims,
    probabilities_in_order,
    probability_candidates,
)
from posterior_consensus.sources.where import Where

_FAR = 6.0  # standard errors; labels farther from the probabilities were not sampled from them
_BY_NAME = "A function without var_name takes what as_partition_draws or as_allocation_probabilities makes of one."


_LABELS, _SOFT = "labels", "allocation probabilities"


class Origin(NamedTuple):
    """Where draws were found: what they are, the name of the variable, and names of labels sampled from them."""

    kind: str
    name: object | None = None
    sampled: Sequence[object] = ()

    def in_words(self, mark: str = "`") -> str:
        """The description, with a mark on both sides of each name."""
        named = "" if self.name is None else f" {mark}{self.name}{mark}"
        sampled = (f"; the labels {mark}{one}{mark} are sampled from them" for one in self.sampled)
        return f"{self.kind}{named}{''.join(sampled)}"

    def in_short(self) -> str:
        """Without marks, as a printed line says it after the number of draws: of labels, their name alone."""
        return self.in_words("") if self.kind != _LABELS else "" if self.name is None else str(self.name)


class Source(NamedTuple):
    """A source, where it was found, and the labels as sampled, over draws and items, if it is made of some."""

    source: PairSource
    origin: Origin
    labels: xr.DataArray | None = None


@contextmanager
def opened(data: Any, where: Where | None = None, *, progressbar: bool = True) -> Iterator[tuple[Any, Where]]:
    """Open data once, for all that a call reads of them.

    It yields draws of a summary, an accumulator or a store; similarities of a table of scored pairs; a tree of NetCDF
    or Zarr, of which only coordinates are read; the table or array of plain files; other data as they are. With them
    comes what remains to be chosen. An array read from a file has no variables: a name given has chosen it in an .npz
    file, and is left out.
    """
    where = Where() if where is None else where
    if isinstance(data, HasDraws):
        yield data.draws, where
    elif isinstance(data, PartitionAccumulator):
        yield data.draws(), where
    elif isinstance(data, np.ndarray) and data.dtype.names is None:  # with names it may be an array of scores
        yield data, where
    elif is_table_of_pairs(data):
        yield read_pairs(data), where
    elif isinstance(data, (str, Path)) or are_chains(data):
        opened_as = format_of(data).opened if isinstance(data, (str, Path)) else None
        found = read_plain(data, where.var_name) if opened_as is None else opened_as(Path(data), progressbar)
        with found if isinstance(found, xr.DataTree) else nullcontext():
            yield found, replace(where, var_name=None) if isinstance(found, np.ndarray) else where
    elif has_observations(data) and not _has_names(data):
        raise TypeError(
            f"`data` must be draws or runs; got {type(data).__name__}. Name the columns of `obs` that are runs: "
            "as_runs(data, keys='leiden_*'), with groups='leiden_{}_*' if they are of several resolutions."
        )
    else:
        yield data, where


def as_source(data: Any, *needing: str) -> PairSource:
    """Find the posterior in data: draws, with allocation probabilities if there are any, or a similarity matrix.

    `data`: if a posterior has allocation probabilities, and labels sampled from them, the probabilities are used.
    `needing`: what needs draws, such as ``"loss 'vi'"``. Raises ValueError if draws are needed but there is only a
    matrix, if there is no candidate or more than one, and as in :func:`as_partition_draws` and
    :func:`as_allocation_probabilities`.
    """
    with opened(data) as (found, where):
        source = find_source(found, where).source
    for what in needing:
        source.as_draws(what)
    return source


def as_draws(data: Any, *, lacking: bool = False) -> PartitionDraws:
    """Find the posterior like :func:`as_source`, and require draws; if `lacking`, runs that lack items will do."""
    return as_source(data).as_draws(lacking=lacking)


def partition_of(data: Any, partition: Any, name: str = "partition") -> Any:
    """Return the given partition; without one, the consensus of a summary.

    Raises ValueError if both are missing.
    """
    chosen = own_partition(data, partition)
    if chosen is None:
        raise ValueError(f"`{name}` must be given: only a summary has one of its own, its consensus.")
    return chosen


def own_partition(data: Any, partition: Any) -> Any:
    """Like :func:`partition_of`, but return None if both are missing."""
    return data if partition is None and isinstance(data, HasDraws) else partition


def several_posteriors(data: Any) -> dict[Any, Any] | None:
    """Several posteriors by name, from a dict or a list; None if `data` are one posterior."""
    if isinstance(data, dict) and (len(data) > 1 or any(isinstance(one, PairSource) for one in data.values())):
        return data
    if isinstance(data, (list, tuple)) and len(data) > 0 and all(map(_is_posterior, data)):
        return dict(enumerate(data))
    return None


def _is_posterior(one: Any) -> bool:
    """Whether this is a set of draws rather than a single draw."""
    if isinstance(one, (PairSource, PartitionAccumulator, HasDraws, xr.Dataset, xr.DataTree, pd.DataFrame)):
        return True
    if isinstance(one, (np.ndarray, xr.DataArray)):
        return one.ndim > 1
    return is_inference_data(one) or (isinstance(one, (list, tuple)) and len(one) > 0 and np.ndim(one[0]) > 0)


def find_source(data: Any, where: Where, model: Any = None, *, progressbar: bool = True) -> Source:
    """Find the source in opened data, or compute allocation probabilities from a PyMC model and them."""
    if model is not None:
        if where.item_dim is not None:
            raise ValueError(f"`item_dim` must be None with a model, which names its items; got {where.item_dim!r}.")
        soft = draws_of_model(model, data, where, progressbar=progressbar)
        source = made_already(soft, Where(weights=where.weights))
        return Source(source, Origin(f"{_SOFT} computed from the model"))
    if isinstance(data, PairSource):
        source = made_already(data, where)
        return Source(source, Origin(_SOFT if source.counted_draws is None else _LABELS))
    chosen = _chosen(data, where)
    if not chosen.is_soft:
        labels = labels_in_order(chosen.values, chosen.dims, where.item_dim)
        draws = draws_of_labels(*labels, where.weights, progressbar=progressbar)
        return Source(draws, Origin(_LABELS, chosen.name), labels[0])
    draws = draws_of_probabilities(*_probabilities(chosen), where.weights)
    return Source(draws, Origin(_SOFT, chosen.name, _sampled_labels(draws, chosen)))


def found_labels(data: Any, where: Where, *, stay: bool = False) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Find the labels in opened data, draws first, then items; the names of the draws' dimensions and of the items'.

    Large labels, or all if `stay`, remain unread.
    """
    chosen = _chosen(data, where, is_soft=False)
    return labels_in_order(chosen.values, chosen.dims, where.item_dim, stay=stay)


class _Chosen(NamedTuple):
    """The variable to read."""

    values: xr.DataArray
    dims: tuple[str, ...]  # dimensions of the draws
    rest: tuple[str | None, str | None]  # the user's names of the dimensions of items and components, or None
    is_soft: bool  # whether to read allocation probabilities rather than labels
    has_names: bool  # whether the dimensions have names of the user's
    name: Any = None  # name of the variable
    labels: Sequence[xr.DataArray] = ()  # label variables next to allocation probabilities


def _chosen(data: Any, where: Where, *, is_soft: bool | None = None) -> _Chosen:
    """Choose what to read: an array, the variable of this name, or the only candidate; by default labels or soft."""
    var_name, rest = where.var_name, (where.item_dim, where.component_dim)
    if not _has_names(data):
        data = as_numpy(data)
        where.check_no_group()
        if is_soft is None and (is_soft := has_components(data)):
            check_normalized(data)
        if var_name is not None:
            raise ValueError(
                f"`var_name` must be None for {type(data).__name__}, which has no variables; got {var_name!r}."
            )
        values = array_of(data, rest[: 2 if is_soft else 1])
        return _Chosen(values, dim_names(where.sample_dims, None), rest, bool(is_soft), has_names=False)
    dims = dim_names(where.sample_dims, data, where.group)
    if isinstance(data, xr.DataArray):
        if is_soft is None and (is_soft := _may_be_soft(data, dims)):
            check_normalized(data)
        if var_name is not None and data.name not in (None, var_name):
            raise ValueError(
                f"`var_name` must be the name of the DataArray or None; got {var_name!r}, present: {data.name!r}."
            )
        return _Chosen(data, dims, rest, bool(is_soft), has_names=True)
    if isinstance(data, pd.DataFrame):
        where.check_no_group()
        data = in_native_order(data)
        variables = variables_of_table(data, var_name, dims)
        if not variables:
            values = items_of_table(data, var_name, dims, rest[: 2 if is_soft else 1])
            return _Chosen(values, dims, rest, bool(is_soft), has_names=False)
        chosen = _of_variables(variables, var_name, dims, (None, None), is_soft)
        if is_soft is None:
            check_full(chosen.values)
        values = named_as_wanted(chosen.values, data, dims, rest[: 1 + chosen.is_soft])
        return chosen._replace(values=values, rest=rest, has_names=False)
    n_rest = (1, 2) if is_soft is None else (1 + is_soft,)
    return _of_variables(variables_of(data, where, *n_rest), var_name, dims, rest, is_soft)


def _has_names(data: Any) -> bool:
    """Whether dimensions, columns or variables have names, unlike those of arrays."""
    if isinstance(data, np.ndarray):
        return False
    return isinstance(data, (xr.DataArray, xr.Dataset, pd.DataFrame, Mapping)) or has_groups(data)


def variables_of(data: Any, where: Where, *n_rest: int) -> xr.Dataset:
    """Variables of a group or a dict by name; arrays of a dict have `n_rest` dimensions besides the draws'."""
    if isinstance(data, Layers):
        raise TypeError(
            "`data` must be one posterior; got Layers. Take all by summarize(layers), compare_layers(layers) or "
            "diagnose(layers), or one of them, layers[name]."
        )
    if isinstance(data, xr.Dataset) or has_groups(data):
        return group_dataset(data, where.group)
    where.check_no_group()
    return dataset_of_dict(data, where.var_name, *n_rest)


def _of_variables(
    dataset: xr.Dataset,
    var_name: str | None,
    dims: tuple[str, ...],
    rest: tuple[str | None, str | None],
    is_soft: bool | None,
) -> _Chosen:
    if var_name is not None:
        if var_name not in dataset.data_vars:
            raise ValueError(
                f"`var_name` must name a variable of the group; got {var_name!r}, "
                f"present: {listing(dataset.data_vars)}."
            )
        values = dataset[var_name]
        is_soft = len(other_dims(values, dims)) == 2 if is_soft is None else is_soft
        return _Chosen(values, dims, rest, is_soft, has_names=True, name=var_name)
    hard = [] if is_soft else label_candidates(dataset, dims, rest[0])
    soft = [] if is_soft is False else probability_candidates(dataset, dims, rest)
    if len(soft or hard) > 1:
        what = {None: "variable to take", True: "variable of allocation probabilities", False: "label variable"}
        names, hint = listing(v.name for v in (*soft, *hard)), "" if is_soft is not None else f" {_BY_NAME}"
        raise ValueError(f"`var_name` must name the {what[is_soft]}; candidates: {names}.{hint}")
    if not soft and not hard:
        raise no_probabilities(dataset, dims) if is_soft else no_labels(dataset, dims, rest[0])
    [values] = soft or hard
    return _Chosen(values, dims, rest, bool(soft), has_names=True, name=values.name, labels=hard if soft else ())


def _may_be_soft(values: xr.DataArray, dims: tuple[str, ...]) -> bool:
    """Whether floats have a dimension of components; integers are labels."""
    has_draws = not {*dims, "sample"}.isdisjoint(values.dims)
    return values.dtype.kind == "f" and has_draws and len(other_dims(values, dims)) == 2


def _probabilities(chosen: _Chosen) -> tuple[xr.DataArray, tuple[str, ...], tuple[str, str]]:
    return probabilities_in_order(chosen.values, chosen.dims, chosen.rest, chosen.has_names)


def _sampled_labels(draws: PartitionDraws, chosen: _Chosen) -> list[object]:
    """Names of labels sampled from the allocation probabilities next to them, or refuse other labels."""
    for labels in chosen.labels:
        if not _drawn_from(draws, labels, chosen.dims):
            raise ValueError(
                f"`var_name` must name the variable to take: the labels {labels.name!r} are not sampled from the "
                f"allocation probabilities {str(chosen.name)!r}. {_BY_NAME}"
            )
    return [labels.name for labels in chosen.labels]


def _drawn_from(draws: PartitionDraws, labels: xr.DataArray, dims: tuple[str, ...]) -> bool:
    """Whether labels can be components sampled from the probabilities.

    If a component is sampled from p, its probability has mean sum p^2 and variance sum p^3 - (sum p^2)^2. Items and
    draws are independent given the probabilities.
    """
    values = labels_in_order(labels, dims, None)[0].values.reshape(draws.n_draws, -1)
    if values.shape != draws.labels.shape or values.dtype.kind not in "iuf":
        return False
    soft = as_soft(draws, "This")
    p = soft.probabilities
    for first in (0, 1):  # some programs number components from 1
        codes = values.astype(np.int64) - first
        if codes.min() < 0 or codes.max() >= soft.n_components:
            continue
        own = np.take_along_axis(p, codes[..., np.newaxis], axis=2)[..., 0]
        squares, cubes = np.einsum("tnk,tnk->tn", p, p), np.einsum("tnk,tnk,tnk->tn", p, p, p)
        spread = np.sqrt(np.sum(cubes - squares**2, dtype=np.float64))
        if abs(np.sum(own - squares, dtype=np.float64)) <= _FAR * spread + 1e-3:
            return True
    return False


def as_partition_draws(
    data: Any,
    var_name: str | None = None,
    *,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    store: str | os.PathLike[str] | None = None,
    progressbar: bool = True,
) -> PartitionDraws:
    """Convert posterior draws of cluster labels from arrays, files, tables or posteriors.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, dict, path, PartitionDraws or Summary
        Labels in any form below. They are integers of any numbering, strings, or integer-valued floats, and may switch
        from draw to draw.

        - Arrays and lists, also of JAX, PyTorch and others: draws x items, or chains x draws x items.
        - A DataFrame: a row per draw and a column per item; see Notes.
        - A dict: arrays by name, all chains x draws x items or all draws x items.
        - A path: a NetCDF or Zarr file, a NumPy file, a table of text, Parquet or Feather, or a store. A list of tables
          has one per chain.
        - PartitionDraws are returned as they are; allocation probabilities, as labels sampled from them.
        - A Summary or PartitionAccumulator: its draws.
    var_name : str, optional
        Name of the label variable. By default, the only variable with the sample dimensions, one further dimension and
        labels as values. In a table, the columns of that name: ``z`` for ``z[1]``, ``z[2]``, ..., or Stan's ``z.1``.
    group : str
        Group of an InferenceData, DataTree or file. Tables and arrays have none.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws. By default as in ArviZ 1: the attribute ``sample_dims`` of the data, else the
        setting ``rcParams["data.sample_dims"]``, usually "chain" and "draw". If these are absent, "sample" is used.
    item_dim : str, optional
        Dimension that runs over items; by default the remaining dimension.
    weights : array_like, optional
        Weight of each draw, of shape (n_draws,) or of the sample dimensions' shape; not negative, in any unit. A
        DataArray is paired by `chain` and `draw` if both sides have them; so is a Series with such an index.
    log_weights : array_like, optional
        Logarithms of the weights, up to a constant; minus infinity for a weight of 0.
    store : path, optional
        New NetCDF file for the labels. By default they are in memory, or in a temporary file if they come from a file
        and are large; see Notes.
    progressbar : bool
        Whether to show progress if the work takes more than a second. Such work is to write labels to a store, or to
        read them from one.

    Returns
    -------
    PartitionDraws
        Labels numbered by first appearance, with items, chains and weights.

    Raises
    ------
    ValueError
        If labels are missing, negative or not integers, a dimension or variable is missing or ambiguous, there are
        no draws or no items, or the weights do not fit. The message names the argument, what came and what is allowed.
    TypeError
        If `data` is of no kind listed above.
    BlockingIOError
        If another process writes to `store`.
    OSError
        If the disk has no room for the labels.

    Warns
    -----
    UserWarning
        If an array seems to have another order of axes: more than 16 chains, and fewer draws than chains or at most 16
        items; or columns that agree as draws do. Also if the names or labels of a table say that its rows are items.

    See Also
    --------
    as_allocation_probabilities : Convert allocation probabilities.
    as_pair_similarity : Convert a similarity matrix, or labels of which some are missing.
    PartitionAccumulator : Collect draws from a running sampler.

    Notes
    -----
    A table (DataFrame, .parquet, .feather, .csv, .tsv or .txt, the last three also .gz) has a row per draw and a column
    per item; names of columns become the items' coordinate. Columns ``chain`` and ``draw``, also ``.chain``,
    ``.iteration`` and ``iter``, or such levels of the index, name chains and draws. Without them all rows are one
    chain. If columns are elements of variables, such as ``z[1]``, other columns are ignored. CmdStan's warm-up draws
    are dropped. Refused are columns that count or name rows, several rows per draw, and draws as columns.

    Variables of files and of dask larger than a quarter of the memory budget are read in blocks. If the labels are
    still larger than a quarter of it, they are kept in a temporary file, in the system's directory for such files
    (``TMPDIR``), which is removed when no draws use it. A store is a NetCDF file whose labels are mapped: the system
    reads what a function needs. Opening it compares checksums of all its content. Pass its path as `data` to use it
    again. An interrupted store is written anew.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[5, 5, 2], [1, 1, 1]])
    >>> draws.labels
    array([[0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> draws.n_clusters
    array([2, 1])
    """
    if store is not None and isinstance(data, (PartitionAccumulator, PairSource, HasDraws)):
        raise ValueError(f"`store` must be None for {type(data).__name__}, whose labels have their place already.")
    path = None if store is None else as_store(store)
    where = Where(var_name, group, sample_dims, item_dim, weights, log_weights)
    with opened(data, where, progressbar=progressbar) as (found, where):
        if isinstance(found, PairSource):
            return made_already(found, where).as_draws().labels_only()
        labels = found_labels(found, where, stay=store is not None)
        return draws_of_labels(*labels, where.weights, store=path, progressbar=progressbar)


def as_allocation_probabilities(
    data: Any,
    var_name: str | None = None,
    *,
    log: bool | None = None,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    component_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    random_seed: RandomSeed = None,
) -> PartitionDraws:
    """Convert stored allocation probabilities P(z_i = k | theta_t, y_i), or their logarithms, to draws.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, dict, path or PartitionDraws
        Arrays are draws x items x components or chains x draws x items x components. A DataFrame has a column for each
        item and component, ``p[1,2]`` or Stan's ``p.1.2``. A path is a NetCDF or Zarr file, a NumPy file or a table of
        text with such columns. A list of tables or arrays has one per chain.
    var_name : str, optional
        Name of the variable, such as ``log_prob_z``, ``lp_z``, ``log_theta`` or ``responsibilities``. By default the
        only candidate: it has the sample dimensions and two more. It has a usual name, or its values or their
        exponentials sum to one over one of the two dimensions.
    log : bool, optional
        Whether the values are logarithms. By default, values that sum to one are probabilities. Other values are
        logarithms if none is above 0, or the name is ``lps`` or starts with ``log_`` or ``lp_``. If `log` is given,
        values need not be normalized.
    group : str
        Group of an InferenceData, DataTree or file.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws; by default as in :func:`as_partition_draws`.
    item_dim, component_dim : str, optional
        Dimensions that run over items and components. By default components run along the dimension over which the
        values are normalized, or the last dimension.
    weights, log_weights : array_like, optional
        Weight of each draw, or its logarithm, as in :func:`as_partition_draws`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It samples `labels` from the probabilities; None samples the same labels
        each time.

    Returns
    -------
    PartitionDraws
        Draws with probabilities of shape (n_draws, n_items, n_components) in ``soft.probabilities``, and one partition
        per draw sampled from them in `labels`.

    Raises
    ------
    ValueError
        If there is no such variable, or several, a value is NaN, an item has probability 0 for all components, or it
        is unclear whether the values are logarithms.
    TypeError
        If the values are not floats.

    See Also
    --------
    as_partition_draws : Convert labels.
    allocation_probabilities : Compute the probabilities from a PyMC model.

    Notes
    -----
    If `log` is not given, sums of K probabilities may differ from one by rounding: K / 2 units of the last decimal, at
    most 0.05. Unrounded sums may differ by 1e-5, in single precision by 1e-3. They are then normalized, and values from
    -1e-5 to 0 are set to 0.

    Items must be independent given the parameters of a draw, as in mixtures. The states of a hidden Markov model are
    not: probabilities of single items do not determine probabilities of pairs. Pass sampled states to
    :func:`as_partition_draws` instead.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> log_prob_z = np.log([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> draws = pc.as_allocation_probabilities(log_prob_z)
    >>> draws.probabilities[0]
    array([[0.9, 0.1],
           [0.5, 0.5]])
    >>> pc.expected_loss(draws, [0, 1], loss="binder")["expected_loss"].item()
    0.25
    """
    if log is not None:
        check_flag("log", log)
    where = Where(var_name, group, sample_dims, item_dim, weights, log_weights, component_dim)
    with opened(data, where) as (found, where):
        if isinstance(found, PairSource):
            draws = made_already(found, where).as_draws()
            as_soft(draws, "`data`")
            return draws
        chosen = _chosen(found, where, is_soft=True)
        return draws_of_probabilities(*_probabilities(chosen), where.weights, log=log, random_seed=random_seed)


def allocation_probabilities(
    model: Any,
    draws: Any,
    *,
    var_name: str | None = None,
    group: str = "posterior",
    observed: Any = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartitionDraws:
    """Compute allocation probabilities from a PyMC mixture model and its posterior without labels.

    Parameters
    ----------
    model : pymc.Model
        Model with a ``pm.Mixture`` of any family, observed, partly observed or latent; or a model from which
        pymc-extras has marginalized a categorical label, which several observed variables may share.
    draws : InferenceData, DataTree, Dataset or path
        Draws of the model's free variables, over ``chain`` and ``draw``. Deterministic variables, and free variables
        that do not affect the allocation, may be missing.
    var_name : str, optional
        Name of the mixture, or of the marginalized label; by default the only one. Zero-inflated and hurdle
        distributions, which are mixtures of zeros and another distribution, must be named.
    group : str
        Group of an InferenceData, DataTree or file.
    observed : dict, optional
        New observations of the mixture, ``{"y": values}``, which replace the model's own; any number of items. The
        result then has their log densities in ``soft.log_density``, as :func:`predict_allocation` needs them. A
        DataArray gives the items its dimension and coordinates. If parameters have a value for each item, as in
        mixtures of regressions, first put the new covariates into the model by ``pm.set_data``.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It samples the result's `labels` from the probabilities; None samples the
        same labels each time.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartitionDraws
        Draws with probabilities of shape (n_draws, n_items, n_components) in ``soft.probabilities``, and labels sampled
        from them. Items and components are named as in the model.

    Raises
    ------
    ImportError
        If PyMC is not installed.
    TypeError
        If `model` is not a model, or `draws` not a posterior.
    ValueError
        If the model has no mixture or several, the posterior lacks a variable or does not fit the model, or `observed`
        does not fit the mixture. The message gives the next step.
    MemoryError
        If the probabilities do not fit in the memory budget.

    Warns
    -----
    UserWarning
        If univariate components meet data of several dimensions: every value, not every row, is then an item.

    See Also
    --------
    as_allocation_probabilities : Convert probabilities that the posterior already holds.
    predict_allocation : Clusters of new observations.

    Notes
    -----
    With weights w_k and PyMC's densities f_k,

        P(z_i = k | theta_t, y_i) = w_k f_k(y_i | theta_t) / sum_l w_l f_l(y_i | theta_t) [1]_.

    Items must be independent given the parameters; a DiscreteMarkovChain is refused. Missing observations take their
    values from the posterior. A ``pm.Potential`` is ignored, since its factor is equal for all allocations.
    Probabilities are in single precision if two copies in double precision exceed the memory budget.

    References
    ----------
    .. [1] McLachlan and Peel (2000), Finite Mixture Models, section 1.15. https://doi.org/10.1002/0471721182

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import pymc as pm  # doctest: +SKIP
    >>> import posterior_consensus as pc
    >>> with pm.Model(coords={"star": ["a", "b", "c"]}) as model:  # doctest: +SKIP
    ...     mu = pm.Normal("mu", 0.0, 3.0, shape=2)
    ...     y = pm.NormalMixture("y", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=[-1.0, 0.2, 1.0], dims="star")
    >>> idata = xr.Dataset({"mu": (("chain", "draw", "component"), [[[-1.0, 1.0], [1.0, -1.0]]])})
    >>> draws = pc.allocation_probabilities(model, idata)  # doctest: +SKIP
    >>> draws.probabilities[0].round(3)  # doctest: +SKIP
    array([[0.881, 0.119],
           [0.401, 0.599],
           [0.119, 0.881]])
    """
    as_generator(random_seed)  # report an invalid seed before the model is read
    with opened(draws, Where(var_name, group)) as (data, where):
        return draws_of_model(model, data, where, observed=observed, random_seed=random_seed, progressbar=progressbar)
