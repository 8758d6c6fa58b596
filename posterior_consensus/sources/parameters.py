"""Quantities of each draw besides its partition: parameters of components, log prior, log likelihood."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.allocations import as_soft
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import as_codes, smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import listing
from posterior_consensus.sources.containers import group_dataset, has_groups

Numbers = npt.NDArray[np.integer[Any]]

_LIKELIHOOD = "log_likelihood"
_MOST_BYTES = 2**28  # of log likelihoods read for one sentence


def component_numbers(labels: xr.DataArray, n_components: int, first_label: int | None) -> Numbers:
    """Component of each item (n_draws, n_items), from 0."""
    if first_label not in (None, 0, 1) or isinstance(first_label, bool):
        raise ValueError(f"`first_label` must be 0, 1 or None; got {first_label!r}.")
    name = "the labels" if labels.name is None else f"the labels of {labels.name!r}"
    if labels.dtype.kind not in "iubf":
        raise TypeError(f"{name} must be the numbers of components; got dtype {labels.dtype}.")
    values = labels.values.reshape(-1, labels.shape[-1])
    as_codes(values, name)  # reports missing, negative and fractional labels
    lowest, highest = int(values.min()), int(values.max())
    if first_label is None:
        if lowest > 0 and highest < n_components:
            raise ValueError(
                f"`first_label` must be 0 or 1, the number of the first component in {name}; these run from {lowest} "
                f"to {highest}, and there are {n_components} components."
            )
        first_label = int(lowest > 0)
    if lowest < first_label or highest >= n_components + first_label:
        raise ValueError(
            f"{name} must be numbers of the {n_components} components, from {first_label}; "
            f"they run from {lowest} to {highest}."
        )
    numbers = values.astype(smallest_dtype(highest + 1), copy=False)
    return numbers - numbers.dtype.type(first_label)


def component_labels(
    draws: PartitionDraws, labels: xr.DataArray | None, n_components: int, first_label: int | None
) -> Numbers:
    """Component of each item (n_draws, n_items), from labels as sampled (None if lost), or sampled from probabilities.

    Raises ValueError if allocation probabilities have another number of components, or labels are not numbers of
    components. Raises TypeError if the labels were renumbered.
    """
    if draws.counted_draws is None:
        soft = as_soft(draws, "`draws`")
        if soft.n_components != n_components:
            raise ValueError(
                f"Allocation probabilities must be of as many components as parameters or prior, {n_components}; got "
                f"those of {soft.n_components}."
            )
        return soft.components
    if labels is None:
        raise TypeError(
            f"`draws` must be labels as sampled, numbers of components; got {type(draws).__name__}. PartitionDraws, "
            "summaries, stores and accumulators have renumbered them: give the posterior that they were made of."
        )
    return component_numbers(labels, n_components, first_label)


def parameters_by_draw(parameters: Mapping[str, Any], samples: Samples) -> dict[str, Floats]:
    """Parameters as arrays (n_draws, components or 1, features or 1), ``cov`` with a matrix for features.

    `parameters`: numbers, or arrays with the draws first; then components, then features. `samples`: the draws. Raises
    ValueError if parameters have other draws, or differ in components or features. Raises TypeError if a parameter is
    not numeric.
    """
    arrays = {name: _by_draw(name, value, samples) for name, value in parameters.items()}
    n_axes = 4 if "cov" in arrays else max(3, *(array.ndim for array in arrays.values()))
    for name, array in arrays.items():
        if name == "cov":
            arrays[name] = array if array.ndim == n_axes else array[:, np.newaxis]
        elif "cov" not in arrays:
            arrays[name] = array.reshape(*array.shape, *[1] * (n_axes - array.ndim))
    shapes = {name: array.shape[1:-1] if name == "cov" else array.shape[1:] for name, array in arrays.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        each = ", ".join(f"`{name}` {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"Parameters must have the same components and features; got {each} after the draws."
        ) from None
    return arrays


def _by_draw(name: str, value: Any, samples: Samples) -> Floats:
    array = np.asarray(value)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"`{name}` must hold numbers; got {type(value).__name__} of {array.dtype}.")
    if array.ndim == 0:
        return np.full(samples.n_draws, float(array))
    return samples.reordered(value, f"`{name}`", more=True).astype(np.float64)


def n_components_of(arrays: Mapping[str, Floats]) -> int:
    """Number of components."""
    return max(array.shape[1] for array in arrays.values())


def taken(arrays: Mapping[str, Floats], components: Numbers) -> dict[str, Floats]:
    """Parameters of some components (n_draws, n_taken) of each draw."""
    return {
        name: array
        if array.shape[1] == 1
        else np.take_along_axis(array, components.reshape(*components.shape, *[1] * (array.ndim - 2)), axis=1)
        for name, array in arrays.items()
    }


def has_group(data: Any, group: str) -> bool:
    """Whether a posterior with groups has one of this name."""
    return group in (data.children if isinstance(data, xr.DataTree) else data.groups())


def log_density(data: Any, group: str, draws: PartitionDraws, names: Sequence[str] | None) -> Floats:
    """Sum (n_draws,) over a group's variables, or the named variables, and all dimensions but the draws'.

    Raises ValueError if the group or variable is missing, or holds other draws.
    """
    dataset = group_dataset(data, group)
    for name in names or ():
        if name not in dataset:
            raise ValueError(
                f"`prior` must name variables of {group}; got {name!r}, present: {listing(dataset.data_vars)}."
            )
    chosen = dataset[list(dataset.data_vars) if names is None else list(names)]
    dims = [dim for dim in ("chain", "draw", "sample") if dim in chosen.dims]
    each = [v.sum([dim for dim in v.dims if dim not in dims]) for v in chosen.data_vars.values()]
    return draws.samples.reordered(sum(each), f"The group {group} of `draws`").astype(np.float64)


class LogOfDraws(NamedTuple):
    """Log density of each draw: name, values (n_draws,), and whether the data have it per observation."""

    name: str
    values: Floats
    by_observation: bool


def log_of_draws(data: Any, draws: PartitionDraws) -> LogOfDraws | None:
    """Log posterior of the draws, ``sample_stats["lp"]``, else their log likelihood; None if data hold neither.

    Constant values do not count: PyMC 6 stores zeros for models with discrete variables.
    """
    if not has_groups(data):
        return None
    groups = {name: group_dataset(data, name) for name in ("sample_stats", _LIKELIHOOD) if has_group(data, name)}
    observed = _LIKELIHOOD in groups and groups[_LIKELIHOOD].nbytes <= _MOST_BYTES
    try:
        if "lp" in groups.get("sample_stats", ()):
            values = log_density(data, "sample_stats", draws, ["lp"])
            if np.ptp(values) > 0:
                return LogOfDraws("log posterior", values, observed)
        if observed:
            values = log_density(data, _LIKELIHOOD, draws, None)
            if np.ptp(values) > 0:
                return LogOfDraws("log likelihood", values, observed)
    except ValueError:  # the group holds other draws, such as all before thinning
        return None
    return None


def pointwise_log_likelihood(data: Any) -> tuple[Floats, dict[str, npt.NDArray[Any]]]:
    """Log likelihood (chains, draws, observations) of all variables, and the names of chains and draws.

    Raises ValueError if the group is missing, or lacks `chain` and `draw`.
    """
    if not has_groups(data):
        raise TypeError(f"`draws` must be an InferenceData, DataTree or its file; got {type(data).__name__}.")
    dataset = group_dataset(data, _LIKELIHOOD)
    memory.check(4 * dataset.nbytes, "The log likelihood of all draws and observations", "Thin the draws.")
    if not {"chain", "draw"} <= set(dataset.dims):
        raise ValueError(f"`draws` must have `chain` and `draw` in {_LIKELIHOOD}; got {listing(dataset.dims)}.")
    parts = [
        one.transpose("chain", "draw", ...).values.reshape(dataset.sizes["chain"], dataset.sizes["draw"], -1)
        for one in dataset.data_vars.values()
    ]
    names = {dim: dataset[dim].values for dim in ("chain", "draw")}
    return np.concatenate(parts, axis=-1).astype(np.float64), names
