"""What a posterior holds: labels, soft assignments, or neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.allocations import AllocationProbabilities
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.sources.containers import group_dataset, is_inference_data
from posterior_consensus.sources.labels import as_partition_draws
from posterior_consensus.sources.mixtures import allocation_probabilities
from posterior_consensus.sources.plain_files import is_plain, read_plain
from posterior_consensus.sources.probabilities import as_allocation_probabilities
from posterior_consensus.sources.variables import (
    dim_names,
    hint_at_dims,
    label_array,
    label_candidates,
    other_dims,
    probability_candidates,
)

_FAR = 6.0  # standard errors: labels that are further from the probabilities are not drawn from them


class Source(NamedTuple):
    """Draws, and a description of where they come from."""

    draws: PartitionDraws
    description: str


def find_draws(
    data: Any,
    var_name: str | None,
    model: Any,
    *,
    group: str,
    sample_dims: str | Sequence[str],
    item_dim: str | None,
    weights: Any,
    progressbar: bool,
) -> Source:
    """Take the draws that `data` holds, those of soft assignments where it holds both."""
    where: dict[str, Any] = {"group": group, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
    if model is not None:
        if item_dim is not None:
            raise ValueError(f"`item_dim` must be None with a model, which names its items; got {item_dim!r}.")
        soft = allocation_probabilities(model, data, var_name=var_name, group=group, progressbar=progressbar)
        return Source(
            as_allocation_probabilities(soft, weights=weights), "allocation probabilities computed from the model"
        )
    if isinstance(data, PartitionDraws):
        kind = "labels" if data.labels_are_sure else "allocation probabilities"
        return Source(as_partition_draws(data, var_name, item_dim=item_dim, weights=weights), kind)
    if is_plain(data):
        data, var_name = read_plain(data, var_name), None
    dims = dim_names(sample_dims)
    if not (isinstance(data, (xr.Dataset, xr.DataTree)) or is_inference_data(data)):
        if _are_soft(data, var_name, dims):
            return Source(as_allocation_probabilities(data, var_name, **where), "soft assignments")
        return Source(as_partition_draws(data, var_name, **where), "labels")
    dataset = group_dataset(data, group)
    if var_name is not None:
        if var_name in dataset and len(other_dims(dataset[var_name], dims)) == 2:
            return Source(as_allocation_probabilities(dataset, var_name, **where), f"soft assignments `{var_name}`")
        return Source(as_partition_draws(dataset, var_name, **where), f"labels `{var_name}`")
    hard = label_candidates(dataset, dims, item_dim)
    soft_ones = probability_candidates(dataset, dims, (item_dim, None))
    if len(soft_ones) == 1:
        return _soft_source(soft_ones[0], hard, where)
    if len(soft_ones) > 1:
        names = ", ".join(repr(str(v.name)) for v in (*soft_ones, *hard))
        raise ValueError(f"`var_name` must say what to summarise; candidates: {names}.")
    if not hard:
        raise ValueError(_nothing(dataset, dims, item_dim))
    return Source(as_partition_draws(hard[0] if len(hard) == 1 else dataset, **where), f"labels `{hard[0].name}`")


def _are_soft(data: Any, var_name: str | None, dims: tuple[str, ...]) -> bool:
    """Whether an array, or the array of that name in a dict, has a dimension of components too."""
    if isinstance(data, xr.DataArray):
        return len(other_dims(data, dims)) == 2 and not {*dims, "sample"}.isdisjoint(data.dims)
    values = data.get(var_name) if isinstance(data, Mapping) else data
    return getattr(values, "ndim", 0) == 4


def _soft_source(soft: xr.DataArray, hard: list[xr.DataArray], where: dict[str, Any]) -> Source:
    """Take the soft assignments, unless there are labels that are not drawn from them."""
    draws = as_allocation_probabilities(soft, **where)
    description = f"soft assignments `{soft.name}`"
    for labels in hard:
        if not _drawn_from(draws, labels, where["sample_dims"]):
            raise ValueError(
                f"`var_name` must say what to summarise: the labels {labels.name!r} are not drawn from the soft "
                f"assignments {soft.name!r}."
            )
        description += f"; the labels `{labels.name}` are drawn from them"
    return Source(draws, description)


def _drawn_from(draws: AllocationProbabilities, labels: xr.DataArray, sample_dims: Any) -> bool:
    """Whether labels can be components sampled from the probabilities.

    The probability of a component drawn from p has the mean sum p^2 and the variance sum p^3 - (sum p^2)^2, and those
    of different items and draws are independent given the probabilities.
    """
    values = label_array(labels, None, "posterior", sample_dims, None)[0].values.reshape(draws.n_draws, -1)
    if values.shape != draws.labels.shape or values.dtype.kind not in "iuf":
        return False
    p = draws.probabilities
    for first in (0, 1):  # some programs number components from 1
        codes = values.astype(np.int64) - first
        if codes.min() < 0 or codes.max() >= draws.n_components:
            continue
        own = np.take_along_axis(p, codes[..., np.newaxis], axis=2)[..., 0]
        squares, cubes = np.einsum("tnk,tnk->tn", p, p), np.einsum("tnk,tnk,tnk->tn", p, p, p)
        spread = np.sqrt(np.sum(cubes - squares**2, dtype=np.float64))
        if abs(np.sum(own - squares, dtype=np.float64)) <= _FAR * spread + 1e-3:
            return True
    return False


def _nothing(dataset: xr.Dataset, dims: tuple[str, ...], item_dim: str | None) -> str:
    items = "items" if item_dim is None else f"`item_dim` {item_dim!r}"
    present = ", ".join(f"{name} {v.dims}" for name, v in dataset.data_vars.items()) or "none"
    hint = hint_at_dims(dataset.data_vars.values(), dims, (item_dim,))
    return (
        f"`idata` holds neither labels nor soft assignments over {dims} and {items}; present: {present}."
        f"{hint} If the labels of a mixture were marginalised out, pass the PyMC model too: "
        "summarize(idata, model=model). Else store the logarithms of the allocation probabilities, as a Deterministic "
        "or a generated quantity, and name them by `var_name`."
    )
