"""Check that probabilities sum to one, up to the rounding of their digits."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.samples import evenly_spaced

Values = npt.NDArray[np.floating[Any]]

SLIGHT = 1e-5  # in double precision; exceeds the rounding of computed values and of zeros
_SINGLE = 1e-3  # for single precision: logarithms that are differences of large numbers
LARGEST = 0.05  # tolerance, however few the digits
_DIGITS = 6  # values with more significant digits are not rounded
_ENOUGH = 100_000  # number of values whose digits are counted


def sums_to_one(values: xr.DataArray, dim: str) -> bool:
    """Whether probabilities, or their logarithms, are normalized over a dimension."""
    axis = values.dims.index(dim)
    with np.errstate(over="ignore", invalid="ignore"):
        for form in (values.values, np.exp(values.values)):
            differences = np.abs(form.sum(axis=axis, dtype=np.float64) - 1.0)
            if np.all(differences <= tolerance(values.values, form, axis)) and np.all(form >= -SLIGHT):
                return True
    return False


def tolerance(values: Values, probabilities: Values, axis: int = -1) -> float:
    """Largest deviation from one of sums of probabilities over an axis that rounding explains.

    K probabilities rounded to d decimals sum to one within 10^-d K / 2, at most 0.05. The number of significant digits
    is the largest among the values, so 0.333 and 0.0625 have three. Unrounded values have a tolerance of 1e-5 in
    double and 1e-3 in single precision; it is never smaller.

    Parameters
    ----------
    values : ndarray
        Probabilities, or logarithms.
    probabilities : ndarray
        The probabilities themselves, of the same shape.
    axis : int
        Axis of the components.
    """
    least = SLIGHT if values.dtype.itemsize == 8 else _SINGLE
    n_components = values.shape[axis]
    at = evenly_spaced(values.size, _ENOUGH)
    counts = probabilities.reshape(-1)[at] > 0.1 / n_components  # smaller ones may have shorter logarithms
    return max(least, min(n_components / 2 * _last_digit(np.abs(values.reshape(-1)[at][counts])), LARGEST))


def _last_digit(values: Values) -> float:
    """Unit of the last digit of the largest values, such as 0.001; 0 if values are not rounded."""
    normal = values >= np.finfo(np.float64).tiny  # below, the unit of a digit is 0
    values = values[normal & (values != 1) & np.isfinite(values)]
    if not values.size:
        return 0.0
    order = np.floor(np.log10(values, dtype=np.float64))
    for n_digits in range(1, _DIGITS + 1):
        unit = 10.0 ** (order + 1 - n_digits)
        if np.all(np.abs(np.rint(values / unit) * unit - values) <= 4 * np.finfo(values.dtype).eps * values):
            return float(unit.max())
    return 0.0
