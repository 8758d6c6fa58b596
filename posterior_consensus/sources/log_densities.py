"""Log prior and log likelihood of each draw, from ArviZ's groups of these names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.runtime import memory
from posterior_consensus.sources.batches import is_accumulated
from posterior_consensus.sources.containers import group_dataset, is_inference_data, opened
from posterior_consensus.sources.locations import listing
from posterior_consensus.sources.plain_files import is_plain
from posterior_consensus.sources.stores import is_store

_LIKELIHOOD = "log_likelihood"
_MOST_BYTES = 2**28  # of log likelihoods read for one sentence


def may_have_groups(data: Any) -> bool:
    """Whether data can have groups: a posterior of ArviZ, or the path of its file."""
    is_path = isinstance(data, (str, Path)) and not (is_plain(data) or is_store(data) or is_accumulated(data))
    return is_path or isinstance(data, xr.DataTree) or is_inference_data(data)


def has_group(data: Any, group: str) -> bool:
    """Whether a posterior has a group of this name."""
    with opened(data) as held:
        return group in (held.children if isinstance(held, xr.DataTree) else held.groups())


def log_density(data: Any, group: str, draws: PartitionDraws, names: Sequence[str] | None) -> npt.NDArray[np.float64]:
    """Sum (n_draws,) over a group's variables, or the named variables, and all dimensions but the draws'.

    Raises
    ------
    ValueError
        If the group or variable is missing, or holds other draws.
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


class LogOfDraws(NamedTuple):
    """Log density of each draw: name, values (n_draws,), and whether the data have it per observation."""

    name: str
    values: npt.NDArray[np.float64]
    by_observation: bool


def log_of_draws(data: Any, draws: PartitionDraws) -> LogOfDraws | None:
    """Log posterior of the draws, ``sample_stats["lp"]``, else their log likelihood; None if data hold neither.

    Constant values do not count: PyMC 6 stores zeros for models with discrete variables.
    """
    if not may_have_groups(data):
        return None
    with opened(data) as held:
        groups = {name: group_dataset(held, name) for name in ("sample_stats", _LIKELIHOOD) if has_group(held, name)}
        observed = _LIKELIHOOD in groups and groups[_LIKELIHOOD].nbytes <= _MOST_BYTES
        try:
            if "lp" in groups.get("sample_stats", ()):
                values = log_density(held, "sample_stats", draws, ["lp"])
                if np.ptp(values) > 0:
                    return LogOfDraws("log posterior", values, observed)
            if observed:
                values = log_density(held, _LIKELIHOOD, draws, None)
                if np.ptp(values) > 0:
                    return LogOfDraws("log likelihood", values, observed)
        except ValueError:  # the group holds other draws, such as all before thinning
            return None
    return None


def pointwise_log_likelihood(data: Any) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[Any]]]:
    """Log likelihood (chains, draws, observations) of all variables, and the names of chains and draws.

    Raises
    ------
    ValueError
        If the group is missing, or lacks `chain` and `draw`.
    """
    if not may_have_groups(data):
        raise TypeError(f"`idata` must be an InferenceData, DataTree or its file; got {type(data).__name__}.")
    with opened(data) as held:
        dataset = group_dataset(held, _LIKELIHOOD)
        memory.check(4 * dataset.nbytes, "The log likelihood of all draws and observations", "Thin the draws.")
        if not {"chain", "draw"} <= set(dataset.dims):
            raise ValueError(f"`idata` must have `chain` and `draw` in {_LIKELIHOOD}; got {listing(dataset.dims)}.")
        parts = [
            one.transpose("chain", "draw", ...).values.reshape(dataset.sizes["chain"], dataset.sizes["draw"], -1)
            for one in dataset.data_vars.values()
        ]
        names = {dim: dataset[dim].values for dim in ("chain", "draw")}
    return np.concatenate(parts, axis=-1).astype(np.float64), names
