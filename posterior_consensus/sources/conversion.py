"""Input: turn any data into a source, which is draws of labels, allocation probabilities or a similarity matrix."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws, check_needs, draws_of, hard_draws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.losses.record import Need
from posterior_consensus.sources.accumulate import PartitionAccumulator
from posterior_consensus.sources.containers import is_inference_data, opened
from posterior_consensus.sources.labels import as_partition_draws, from_store
from posterior_consensus.sources.locations import listing
from posterior_consensus.sources.mixtures import allocation_probabilities
from posterior_consensus.sources.probabilities import as_allocation_probabilities
from posterior_consensus.sources.rounding import LARGEST, sums_to_one
from posterior_consensus.sources.samples import made_already
from posterior_consensus.sources.tables import variables_of_table
from posterior_consensus.sources.variables import (
    array_or_table,
    dim_names,
    is_whole,
    label_array,
    label_candidates,
    other_dims,
    probability_candidates,
    variables_of,
)

_FAR = 6.0  # standard errors; labels farther from the probabilities were not sampled from them
BY_NAME = "A function without `var_name` takes what as_partition_draws or as_allocation_probabilities makes of one."


class Source(NamedTuple):
    """A source, and a description of its origin."""

    source: PairSource
    description: str


def as_source(data: Any, needs: Mapping[str, Need] | None = None) -> PairSource:
    """Find the posterior in data: draws, with allocation probabilities if there are any, or a similarity matrix.

    Parameters
    ----------
    data : Summary, PairSimilarity, PartitionDraws or what as_partition_draws() or as_allocation_probabilities() takes
        If a posterior has allocation probabilities, and labels sampled from them, the probabilities are used.
    needs : mapping of str to {"pairs", "draws"}, optional
        Need of each user of the source, such as ``{"loss 'vi'": "draws"}``.

    Raises
    ------
    ValueError
        If draws are needed but there is only a matrix, if there is no candidate or more than one, and as in
        :func:`as_partition_draws` and :func:`as_allocation_probabilities`.
    """
    with opened(from_store(data)) as held:
        source = find_source(held).source
    check_needs(source, needs or {})
    return source


def as_draws(data: Any) -> PartitionDraws:
    """Find the posterior like :func:`as_source`, and require draws."""
    return draws_of(as_source(data))


def partition_of(data: Any, partition: Any, name: str = "partition") -> Any:
    """Return the given partition; without one, the consensus of a summary.

    Raises
    ------
    ValueError
        If both are missing.
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


def find_source(
    data: Any,
    var_name: str | None = None,
    model: Any = None,
    *,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    progressbar: bool = True,
) -> Source:
    """Find the source in opened data; arguments as in :func:`summarize`."""
    if model is not None:
        if item_dim is not None:
            raise ValueError(f"`item_dim` must be None with a model, which names its items; got {item_dim!r}.")
        soft = allocation_probabilities(model, data, var_name=var_name, group=group, progressbar=progressbar)
        return Source(made_already(soft, weights), "allocation probabilities computed from the model")
    data = from_store(data, progressbar=progressbar)
    if isinstance(data, PairSource):
        source = made_already(data, weights, var_name=var_name, group=group, sample_dims=sample_dims, item_dim=item_dim)
        return Source(source, "allocation probabilities" if hard_draws(source) is None else "labels")
    data, var_name = array_or_table(data, var_name)
    dims = dim_names(sample_dims, data, group)
    held = _what_is_held(data, var_name, group, dims, item_dim)
    where: dict[str, Any] = {"group": group, "sample_dims": dims, "item_dim": item_dim, "weights": weights}
    if held.is_soft:
        draws = as_allocation_probabilities(held.data, held.var_name, **where)
    else:
        draws = as_partition_draws(held.data, held.var_name, **where, progressbar=progressbar)
    kind = "allocation probabilities" if held.is_soft else "labels"
    named = "" if held.name is None else f" `{held.name}`"
    return Source(draws, f"{kind}{named}{_about_labels(draws, held, dims)}")


class _Held(NamedTuple):
    """The part of data to read, and how to read it.

    Attributes
    ----------
    data, var_name : object, str or None
        Arguments for the reading function.
    is_soft : bool
        Whether to read allocation probabilities rather than labels.
    name : object or None
        Name of the variable.
    labels : list of DataArray
        Label variables next to allocation probabilities.
    """

    data: Any
    var_name: str | None
    is_soft: bool
    name: Any = None
    labels: Sequence[xr.DataArray] = ()


def _what_is_held(data: Any, var_name: str | None, group: str, dims: tuple[str, ...], item_dim: str | None) -> _Held:
    """Find allocation probabilities or labels: an array, the variable of this name, or the only candidate."""
    is_table = isinstance(data, pd.DataFrame)
    dataset = variables_of(data, var_name, group, 1, 2)
    if is_table:
        dataset, item_dim = variables_of_table(data, var_name, dims) or None, None
    if dataset is None:
        is_soft = _has_components(data, dims)
        if is_soft:
            _check_normalised(data)
        return _Held(data, var_name, is_soft)
    if not is_table:
        data = dataset
    if var_name is not None:
        is_soft = var_name in dataset and len(other_dims(dataset[var_name], dims)) == 2
        return _Held(data, var_name, is_soft, var_name)
    hard = label_candidates(dataset, dims, item_dim)
    soft = probability_candidates(dataset, dims, (item_dim, None))
    if len(soft or hard) > 1:
        names = listing(v.name for v in (*soft, *hard))
        raise ValueError(f"`var_name` must name the variable to take; candidates: {names}. {BY_NAME}")
    if not soft and not hard:
        return _Held(data, None, is_soft=False)  # the function that reads labels raises the error
    [candidate] = soft or hard
    labels = hard if soft else []
    if is_table:
        return _Held(data, str(candidate.name), bool(soft), candidate.name, labels)
    return _Held(candidate, None, bool(soft), candidate.name, labels)


def _has_components(data: Any, dims: tuple[str, ...]) -> bool:
    """Whether an array of floats has a dimension of components; arrays of integers are labels."""
    if getattr(getattr(data, "dtype", None), "kind", "") != "f":
        return False
    if isinstance(data, xr.DataArray):
        return not {*dims, "sample"}.isdisjoint(data.dims) and len(other_dims(data, dims)) == 2
    if data.ndim != 3 or not isinstance(data, np.ndarray):
        return bool(data.ndim == 4)
    values = xr.DataArray(data)
    return not is_whole(values) or sums_to_one(values, "dim_2")


def _check_normalised(data: Any) -> None:
    """Raise an error if most of an array's numbers are neither labels nor probabilities nor their logarithms."""
    values = np.asarray(data)
    if not (values > 0).any():
        return  # logarithms need not be normalized
    with np.errstate(over="ignore"):
        sums = [form.sum(axis=-1, dtype=np.float64) for form in (values, np.exp(values))]
    if all(np.mean(np.abs(one - 1.0) > LARGEST) > 0.5 for one in sums):
        raise ValueError(
            "`data` must hold labels, which are integers, or allocation probabilities, which sum to one over the last "
            f"dimension; got real numbers of shape {values.shape}, such as {values.flat[0]:.4g}, that are neither. If "
            "they are data, give the draws of their clusters. If they are logarithms of probabilities, call "
            "as_allocation_probabilities(data, log=True)."
        )


def _about_labels(draws: PartitionDraws, held: _Held, dims: tuple[str, ...]) -> str:
    """Describe labels sampled from the allocation probabilities next to them, or refuse other labels."""
    for labels in held.labels:
        if not _drawn_from(draws, labels, dims):
            raise ValueError(
                f"`var_name` must name the variable to take: the labels {labels.name!r} are not sampled from the "
                f"allocation probabilities {str(held.name)!r}. {BY_NAME}"
            )
    return "".join(f"; the labels `{labels.name}` are sampled from them" for labels in held.labels)


def _drawn_from(draws: PartitionDraws, labels: xr.DataArray, sample_dims: Any) -> bool:
    """Whether labels can be components sampled from the probabilities.

    If a component is sampled from p, its probability has mean sum p^2 and variance sum p^3 - (sum p^2)^2. Items and
    draws are independent given the probabilities.
    """
    values = label_array(labels, None, sample_dims)[0].values.reshape(draws.n_draws, -1)
    if values.shape != draws.labels.shape or values.dtype.kind not in "iuf":
        return False
    soft = draws.as_soft("This")
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
