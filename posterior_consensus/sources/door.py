"""On input: any data become the source they hold, draws of labels, allocation probabilities, or a matrix."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws, check_needs, draws_of, hard_draws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.losses.record import Need
from posterior_consensus.sources.accumulate import PartitionAccumulator
from posterior_consensus.sources.containers import group_dataset, is_inference_data, opened
from posterior_consensus.sources.frames import variables_of_table
from posterior_consensus.sources.labels import as_partition_draws, from_store
from posterior_consensus.sources.mixtures import allocation_probabilities
from posterior_consensus.sources.places import listing
from posterior_consensus.sources.plain_files import is_plain, read_plain
from posterior_consensus.sources.probabilities import as_allocation_probabilities
from posterior_consensus.sources.rounding import sums_to_one
from posterior_consensus.sources.samples import made_already
from posterior_consensus.sources.variables import (
    as_numpy,
    dataset_of_dict,
    dim_names,
    is_whole,
    label_array,
    label_candidates,
    other_dims,
    probability_candidates,
)

_FAR = 6.0  # standard errors: labels that are further from the probabilities are not sampled from them
BY_NAME = "A function without `var_name` takes what as_partition_draws or as_allocation_probabilities makes of one."


class Source(NamedTuple):
    """What data hold, and a description of where it comes from."""

    source: PairSource
    description: str


def as_source(data: Any, needs: Mapping[str, Need] | None = None) -> PairSource:
    """Find the posterior that data hold: draws, with allocation probabilities if there are any, or a similarity matrix.

    Parameters
    ----------
    data : Summary, PairSimilarity, PartitionDraws or what as_partition_draws() or as_allocation_probabilities() takes
        If a posterior has allocation probabilities, and labels sampled from them, the probabilities are used.
    needs : mapping of str to {"pairs", "draws"}, optional
        What is requested, by what asks for it, such as ``{"loss 'vi'": "draws"}``.

    Raises
    ------
    ValueError
        If something needs draws and there is a matrix alone, if there is nothing to take or more than one thing, and as
        :func:`as_partition_draws` and :func:`as_allocation_probabilities`.
    """
    with opened(from_store(data)) as held:
        source = find_source(held).source
    check_needs(source, needs or {})
    return source


def as_draws(data: Any) -> PartitionDraws:
    """Take the posterior as :func:`as_source` does, where draws are needed."""
    return draws_of(as_source(data))


def partition_of(data: Any, partition: Any, name: str = "partition") -> Any:
    """Take the partition that is given or, of a summary without one, its consensus.

    Raises
    ------
    ValueError
        If there is neither.
    """
    found = own_partition(data, partition)
    if found is None:
        raise ValueError(f"`{name}` must be given: only a summary has one of its own, its consensus.")
    return found


def own_partition(data: Any, partition: Any) -> Any:
    """Do the same as :func:`partition_of` if a partition is optional: None if there is neither."""
    return data if partition is None and isinstance(data, HasDraws) else partition


def several_posteriors(data: Any) -> dict[Any, Any] | None:
    """Several posteriors by name, of a dict or a list of them; None where `data` are one posterior."""
    if isinstance(data, dict) and (len(data) > 1 or any(isinstance(one, PairSource) for one in data.values())):
        return data
    if isinstance(data, (list, tuple)) and len(data) > 0 and all(map(_is_posterior, data)):
        return dict(enumerate(data))
    return None


def _is_posterior(one: Any) -> bool:
    """Whether this is a set of draws, rather than a draw."""
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
    """Find the source in opened data; arguments are those of :func:`summarize`."""
    where: dict[str, Any] = {"group": group, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
    if model is not None:
        if item_dim is not None:
            raise ValueError(f"`item_dim` must be None with a model, which names its items; got {item_dim!r}.")
        soft = allocation_probabilities(model, data, var_name=var_name, group=group, progressbar=progressbar)
        return Source(made_already(soft, None, None, weights), "allocation probabilities computed from the model")
    data = as_numpy(from_store(data, progressbar=progressbar))
    if isinstance(data, PairSource):
        source = made_already(data, var_name, item_dim, weights)
        return Source(source, "allocation probabilities" if hard_draws(source) is None else "labels")
    if is_plain(data):
        data = read_plain(data, var_name)
        var_name = var_name if isinstance(data, pd.DataFrame) else None
    dims, is_table = dim_names(sample_dims, data, group), isinstance(data, pd.DataFrame)
    where["sample_dims"] = dims
    as_labels: Callable[..., PartitionDraws] = partial(as_partition_draws, **where, progressbar=progressbar)
    as_soft: Callable[..., PartitionDraws] = partial(as_allocation_probabilities, **where)
    dataset = _variables(data, var_name, group, dims)
    if dataset is None:
        if _is_soft(data, dims) or _has_components(data):
            return Source(as_soft(data, var_name), "allocation probabilities")
        return Source(as_labels(data, var_name), "labels")
    held = data if is_table else dataset
    if var_name is not None:
        if var_name in dataset and len(other_dims(dataset[var_name], dims)) == 2:
            return Source(as_soft(held, var_name), f"allocation probabilities `{var_name}`")
        return Source(as_labels(held, var_name), f"labels `{var_name}`")
    item_dim = None if is_table else item_dim
    hard = label_candidates(dataset, dims, item_dim)
    found = probability_candidates(dataset, dims, (item_dim, None))
    if len(found) == 1:
        soft = as_soft(held, str(found[0].name)) if is_table else as_soft(found[0])
        return _soft_source(soft, str(found[0].name), hard, dims)
    if found or len(hard) > 1:
        names = listing(v.name for v in (*found, *hard))
        raise ValueError(f"`var_name` must name the variable to take; candidates: {names}. {BY_NAME}")
    draws = as_labels(hard[0] if hard and not is_table else held)  # which says what is missing
    return Source(draws, f"labels `{hard[0].name}`")


def _variables(data: Any, var_name: str | None, group: str, dims: tuple[str, ...]) -> xr.Dataset | None:
    """The variables that data hold; None if they are one array, or a table of items."""
    if isinstance(data, (xr.Dataset, xr.DataTree)) or is_inference_data(data):
        return group_dataset(data, group)
    if isinstance(data, pd.DataFrame):
        return variables_of_table(data, var_name, dims) or None
    if isinstance(data, Mapping) and group == "posterior":
        return dataset_of_dict(data, var_name, 1, 2)
    return None


def _is_soft(values: Any, dims: tuple[str, ...]) -> bool:
    """Whether an array of floats has a dimension of components too."""
    if isinstance(values, xr.DataArray) and {*dims, "sample"}.isdisjoint(values.dims):
        return False
    n_rest = len(other_dims(values, dims)) if isinstance(values, xr.DataArray) else getattr(values, "ndim", 0) - 2
    return n_rest == 2 and values.dtype.kind == "f"


def _has_components(data: Any) -> bool:
    """Whether an array is draws x items x components; chains x draws x items are labels, which are integers."""
    if not isinstance(data, np.ndarray) or data.ndim != 3 or data.dtype.kind != "f":
        return False
    values = xr.DataArray(data)
    return not is_whole(values) or sums_to_one(values, "dim_2")


def _soft_source(soft: PartitionDraws, name: str, hard: list[xr.DataArray], sample_dims: Any) -> Source:
    """Take the allocation probabilities, unless there are labels that are not sampled from them."""
    description = f"allocation probabilities `{name}`"
    for labels in hard:
        if not _drawn_from(soft, labels, sample_dims):
            raise ValueError(
                f"`var_name` must name the variable to take: the labels {labels.name!r} are not sampled from the "
                f"allocation probabilities {name!r}. {BY_NAME}"
            )
        description += f"; the labels `{labels.name}` are sampled from them"
    return Source(soft, description)


def _drawn_from(draws: PartitionDraws, labels: xr.DataArray, sample_dims: Any) -> bool:
    """Whether labels can be components sampled from the probabilities.

    The probability of a component drawn from p has the mean sum p^2 and the variance sum p^3 - (sum p^2)^2, and those
    of different items and draws are independent given the probabilities.
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
