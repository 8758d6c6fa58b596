"""Allocation probabilities, or their logarithms, as draws: checked, normalized, with labels sampled."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.allocations import AllocationDraws, sampled_components
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.partitions import Place, canonical_rows, first_of, place_in
from posterior_consensus.runtime.aliases import Flags
from posterior_consensus.runtime.arguments import RandomSeed
from posterior_consensus.sources.arrays import SLIGHT, tolerance
from posterior_consensus.sources.labels import samples_of

_LOGARITHM = re.compile(r"'(lp_|lps'|log_)", re.IGNORECASE)  # names of variables, quoted


def draws_of_probabilities(
    values: xr.DataArray,
    dims: tuple[str, ...],
    rest: tuple[str, str],
    weights: Any = None,
    *,
    log: bool | None = None,
    random_seed: RandomSeed = None,
) -> AllocationDraws:
    """Convert probabilities or their logarithms over draws, items and components, and sample labels from them."""
    name = repr(values.name) if values.name is not None else "`data`"
    samples = samples_of(values, dims, weights, name)
    probabilities = _normalized(values.values, log, name, place_in(values))
    probabilities = probabilities.reshape(samples.n_draws, *values.shape[-2:])
    components = sampled_components(probabilities, random_seed)
    return AllocationDraws(
        Items.along(values, rest[0]),
        samples,
        ArrayLabels(*canonical_rows(components, probabilities.shape[2])),
        probabilities,
        components,
        rest[1],
    )


def _normalized(values: npt.NDArray[Any], log: bool | None, name: str, place: Place) -> npt.NDArray[np.floating]:
    """Probabilities (..., K) from values of any kind; float32 stays float32."""
    values = values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64)
    wrong = ~(values < np.inf)
    if wrong.any():
        value = "NaN" if np.isnan(values[wrong][0]) else "infinity"
        raise ValueError(
            f"{name} must hold probabilities or their logarithms; got {value} at {first_of(wrong, place)}."
        )
    if log is None:
        log = _are_logarithms(values, name, place)
    if log:
        largest = values.max(axis=-1, keepdims=True)
        _check_possible(~np.isneginf(largest), "-inf", name, place)
        values -= largest
        np.exp(values, out=values)
    elif (negative := values < -SLIGHT).any():
        raise ValueError(
            f"{name} must not be negative if `log` is False; got {values[negative][0]} at {first_of(negative, place)}."
        )
    np.maximum(values, 0, out=values)
    total = values.sum(axis=-1, keepdims=True, dtype=np.float64)
    _check_possible(total > 0, "0", name, place)
    values /= total
    return values


def _check_possible(possible: Flags, value: str, name: str, place: Place) -> None:
    if not possible.all():
        raise ValueError(
            f"{name} must give each item a component; got {value} for all components from {first_of(~possible, place)}."
        )


def _are_logarithms(values: npt.NDArray[np.floating], name: str, place: Place) -> bool:
    sums = values.sum(axis=-1, dtype=np.float64)
    differences = np.abs(sums - 1)
    largest, allowed = differences.max(), tolerance(values, values)
    if largest <= allowed and values.min() >= -SLIGHT:
        return False
    if _LOGARITHM.match(name):
        return True
    if values.shape[-1] > 1:  # with one component, the logarithm is 0
        _check_possible((values != 0).any(axis=-1, keepdims=True), "0", name, place)
    above, below = values > 0, values < -SLIGHT
    if not above.any() or (below.any() and _exponentials_sum_to_one(values)):
        return True
    question = f"`log` must be given, as it is unclear whether {name} has logarithms"
    if below.any():
        fewer = min(above, below, key=np.count_nonzero)
        raise ValueError(
            f"{question}: probabilities are not below 0, and logarithms of probabilities not above 0; got "
            f"{values[fewer][0]:.7g} at {first_of(fewer, place)}, and values on the other side of 0. Correct this "
            "value; if all are logarithms that are not normalized, subtract the largest of each item, or give log=True."
        )
    worst = np.unravel_index(differences.argmax(), differences.shape)
    raise ValueError(
        f"{question}: none is below 0, and the values are not normalized, their sum over all components is "
        f"{sums[worst]:.7g} from {place((*map(int, worst), 0))}; rounding explains {allowed:.2g}."
    )


def _exponentials_sum_to_one(values: npt.NDArray[np.floating]) -> bool:
    with np.errstate(over="ignore"):
        probabilities = np.exp(values)
        differences = np.abs(probabilities.sum(axis=-1, dtype=np.float64) - 1)
    return bool(differences.max() <= tolerance(values, probabilities))
