"""Parameters of the components in each draw, and each item's component, as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasDraws, as_codes, smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.sources.accumulate import PartitionAccumulator
from posterior_consensus.sources.batches import is_accumulated
from posterior_consensus.sources.stores import is_store
from posterior_consensus.sources.variables import found_labels

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


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
    draws: PartitionDraws,
    data: Any,
    n_components: int,
    first_label: int | None,
    var_name: str | None = None,
    group: str = "posterior",
) -> Numbers:
    """Component of each item (n_draws, n_items), from the labels in `data` or sampled from probabilities.

    Raises
    ------
    ValueError
        If allocation probabilities have another number of components, or labels are not numbers of components.
    TypeError
        If the labels in `data` were renumbered.
    """
    if draws.soft is not None:
        if draws.soft.n_components != n_components:
            raise ValueError(
                f"Allocation probabilities must be of as many components as parameters or prior, {n_components}; got "
                f"those of {draws.soft.n_components}."
            )
        return draws.soft.components
    if isinstance(data, (PairSource, PartitionAccumulator, HasDraws)) or is_accumulated(data) or is_store(data):
        raise TypeError(
            f"`draws` must be labels as sampled, numbers of components; got {type(data).__name__}. PartitionDraws, "
            "summaries, stores and accumulators have renumbered them: give the posterior that they were made of."
        )
    with found_labels(data, var_name, group, ("chain", "draw"), None) as (labels, *_):
        return component_numbers(labels, n_components, first_label)


def parameters_by_draw(parameters: Mapping[str, Any], samples: Samples) -> dict[str, Floats]:
    """Parameters as arrays (n_draws, components or 1, features or 1), ``cov`` with a matrix for features.

    Parameters
    ----------
    parameters : mapping of str to array_like
        Numbers, or arrays with the draws first; then components, then features.
    samples : Samples
        The draws.

    Raises
    ------
    ValueError
        If parameters have other draws, or differ in components or features.
    TypeError
        If a parameter is not numeric.
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
    return samples.in_order(value, f"`{name}`", more=True).astype(np.float64)


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
