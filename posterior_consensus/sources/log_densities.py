"""Log prior and log likelihood of each draw, from the groups that ArviZ names so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.sources.accumulate import is_accumulated
from posterior_consensus.sources.containers import group_dataset, is_inference_data, opened
from posterior_consensus.sources.places import listing
from posterior_consensus.sources.plain_files import is_plain
from posterior_consensus.sources.stores import is_store


def may_have_groups(data: Any) -> bool:
    """Whether data can have groups: a posterior of ArviZ, or the path of its file."""
    is_path = isinstance(data, (str, Path)) and not (is_plain(data) or is_store(data) or is_accumulated(data))
    return is_path or isinstance(data, xr.DataTree) or is_inference_data(data)


def has_group(data: Any, group: str) -> bool:
    """Whether a posterior has a group of this name."""
    with opened(data) as held:
        return group in (held.children if isinstance(held, xr.DataTree) else held.groups())


def log_density(data: Any, group: str, draws: PartitionDraws, names: Sequence[str] | None) -> npt.NDArray[np.float64]:
    """Sum (n_draws,) of the variables of a group, or of those that are named, over all but the draws, in their order.

    Raises
    ------
    ValueError
        If there is no such group or variable, or it holds other draws.
    """
    with opened(data) as held:
        dataset = group_dataset(held, group)
        for name in names or ():
            if name not in dataset:
                raise ValueError(
                    f"`prior` must name variables of {group}; got {name!r}, present: {listing(dataset.data_vars)}."
                )
        chosen = dataset[list(dataset.data_vars) if names is None else list(names)]
        dims = [dim for dim in ("chain", "draw", "sample") if dim in chosen.dims]
        each = [v.sum([dim for dim in v.dims if dim not in dims]) for v in chosen.data_vars.values()]
        return draws.samples.in_order(sum(each), f"The group {group} of `draws`").astype(np.float64)
