"""Arrays, lists and dicts, whose dimensions have no names: axes by their number, and what their values can be."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse

from posterior_consensus.ensemble.partitions import UNEVEN, HasLabels, as_array, is_partition, uneven
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.runtime.arguments import warn
from posterior_consensus.sources.tables import BY_COLUMN, check_apart
from posterior_consensus.sources.transposed import warn_if_transposed

Array = np.ndarray[Any, Any]
Values = npt.NDArray[np.floating[Any]]

_AXES = {1: "draws x items", 2: "draws x items x components"}
ONE_PARTITION = " This is a single partition; if a function takes draws and a partition, pass the draws first."

_WAYS_OUT = {
    2: "take its .T, or as_runs(data, axis=1) if its columns are independent runs",
    3: "swap the last two axes",
}
_MOST_CHAINS = 16  # up to this number is usual, whatever their length

SLIGHT = 1e-5  # in double precision; exceeds the rounding of computed values and of zeros
_SINGLE = 1e-3  # for single precision: logarithms that are differences of large numbers
_LARGEST = 0.05  # tolerance, however few the digits
_DIGITS = 6  # values with more significant digits are not rounded
_ENOUGH = 100_000  # number of values whose digits are counted


def as_numpy(data: Any) -> Any:
    """Convert an array of another library, such as JAX or PyTorch, to NumPy; return other data as they are."""
    ours = (np.ndarray, xr.DataArray, pd.Series, pd.Index, HasLabels)
    if isinstance(data, ours) or _is_dask(data) or not (hasattr(data, "dtype") and hasattr(data, "shape")):
        return data
    if hasattr(data, "__array__"):
        return np.asarray(data)
    return np.from_dlpack(data) if hasattr(data, "__dlpack__") else data


def _is_dask(data: Any) -> bool:
    arrays = sys.modules.get("dask.array")
    return arrays is not None and isinstance(data, arrays.Array)


def array_of(data: Any, rest: tuple[str | None, ...]) -> xr.DataArray:
    """Name the dimensions of an array: chains and draws, or draws, then `rest`, the user's names or the usual ones."""
    is_rows = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
    if not (is_rows or isinstance(data, np.ndarray) or _is_dask(data)):
        raise TypeError(
            "`data` must be an InferenceData, DataTree, Dataset, DataArray, array, list, DataFrame, dict or path; "
            f"got {type(data).__module__}.{type(data).__qualname__}.{_hint_at_type(data)}"
        )
    if isinstance(data, (list, tuple)) and len(data) == 1 and _is_named_partition(data[0]):
        raise TypeError(
            f"`data` must be posterior draws; got a list of one partition, a {type(data[0]).__name__}. Pass the draws "
            "that it is of, or one partition without a list."
        )
    if isinstance(data, (list, tuple)) and any(isinstance(row, (xr.DataArray, xr.Dataset, pd.Series)) for row in data):
        raise TypeError("`data`, a list, must have plain rows; join labelled ones by xarray.concat or pandas.concat.")
    values = data if _is_dask(data) else _regular(data, "`data`", len(rest))
    dims = {1: ("sample",), 2: ("chain", "draw")}.get(values.ndim - len(rest))
    if dims is None:
        axes = _AXES[len(rest)]
        hint = ONE_PARTITION if values.ndim == 1 and values.size and len(rest) == 1 else ""
        raise ValueError(f"`data` must be an array of {axes} or chains x {axes}; got shape {values.shape}.{hint}")
    is_doubted = len(dims) == 2 and _warn_of_many_chains(values.shape)
    if len(rest) == 1 and values.size and not (is_doubted or _is_dask(values)):
        warn_if_transposed(values, values.shape, _WAYS_OUT[values.ndim])
    names = [name or default for name, default in zip(rest, ("item", "component"), strict=False)]
    for name in names:
        check_apart(name, dims)
    return xr.DataArray(values, dims=(*dims, *names))


def _is_named_partition(one: Any) -> bool:
    """Whether this is a partition of items that may have names, rather than a plain row of labels."""
    return isinstance(one, HasLabels) or (isinstance(one, (xr.DataArray, pd.Series)) and one.ndim == 1)


def _hint_at_type(data: Any) -> str:
    """Next step for an object that is not data yet."""
    if type(data).__name__ == "MultiTrace":
        return " Convert it with pymc.to_inference_data first."
    if getattr(data, "draws", None) is not None:
        return " Take its `draws`."
    if is_partition(data):
        return ONE_PARTITION
    if sparse.issparse(data):
        return " If these are similarities of pairs, call as_pair_similarity(data) first."
    if hasattr(data, "to_pandas"):
        return f" Convert a table of draws by its to_pandas(); name the columns of one of scored pairs by {BY_COLUMN}."
    return ""


def _regular(values: Any, name: str, n_rest: int) -> np.ndarray[Any, Any]:
    """Convert to an array; if chains or draws differ in length, raise an error that locates them."""
    if np.ma.is_masked(values):  # as NaN, so that errors can locate it
        return np.ma.filled(values.astype(np.float64 if values.dtype.kind in "iufb" else object), np.nan)
    try:
        return as_array(values, name)
    except ValueError as error:
        if UNEVEN not in str(error):
            raise
    shapes = [_shape(part) for part in values]
    if None in shapes:
        raise ValueError(f"{name} must give every draw the same items; got {uneven(values)}.")
    other = next(k for k, shape in enumerate(shapes) if shape != shapes[0])
    kind = "chain" if len(shapes[0]) == 1 + n_rest else "row"
    if kind == "chain" and len({shape[1:] for shape in shapes}) == 1:
        lengths = [shape[0] for shape in shapes]
        longer = (
            " Or give them to a PartitionAccumulator, by add(chain, chain=k): its chains may be of different lengths."
            if n_rest == 1
            else ""
        )
        raise ValueError(
            f"{name} must have chains of one length; got {lengths[0]} draws of chain 0 and {lengths[other]} of chain "
            f"{other}. Cut all to the shortest, [chain[:{min(lengths)}] for chain in data].{longer}"
        )
    raise ValueError(
        f"{name} must give every draw the same items; got shape {shapes[0]} of {kind} 0 and {shapes[other]} of {kind} "
        f"{other}."
    )


def _shape(part: Any) -> Any:
    try:
        return np.shape(part)
    except ValueError:  # the part itself is irregular
        return None


def dataset_of_dict(data: Mapping[str, Any], var_name: str | None, *n_rest: int) -> xr.Dataset:
    """Dataset of the arrays over chains and draws, or over draws of all chains, with `n_rest` further dimensions."""
    from arviz_base import convert_to_dataset

    arrays = {name: _regular(as_numpy(values), f"{name!r} of `data`", n_rest[0]) for name, values in data.items()}
    is_sample = _are_of_all_chains(arrays, var_name, n_rest)
    full = {name: values for name, values in arrays.items() if values.ndim - (1 if is_sample else 2) in n_rest}
    if not full:
        shapes = ", ".join(f"{name!r} {values.shape}" for name, values in arrays.items()) or "none"
        hint = ""
        if any(values.ndim == 1 + n_rest[0] for values in arrays.values()):
            hint = " Give draws of one chain as values[np.newaxis]."
        elif n_rest[0] == 1 and any(values.ndim == 1 for values in arrays.values()):
            hint = ONE_PARTITION
        axes = "draws x layers x items" if n_rest == (2, 3) else _AXES[n_rest[0]]
        raise ValueError(f"`data`, a dict, must hold arrays of chains x {axes}; present: {shapes}.{hint}")
    if not is_sample:
        return convert_to_dataset(full)
    one_chain = convert_to_dataset({name: values[np.newaxis] for name, values in full.items()})
    return one_chain.isel(chain=0, drop=True).rename(draw="sample")


def _are_of_all_chains(arrays: Mapping[str, Array], var_name: str | None, n_rest: tuple[int, ...]) -> bool:
    """Whether the first dimension of all arrays is draws of all chains, as NumPyro's Predictive returns them.

    This holds if the first dimension exceeds a usual number of chains and one of two conditions is met. Either the
    arrays differ in their second dimension, or the named array (or any array) cannot have chains and draws first.
    """
    shapes = [values.shape for values in arrays.values()]
    if () in shapes or len({shape[0] for shape in shapes}) != 1 or shapes[0][0] <= _MOST_CHAINS:
        return False
    if len({shape[:2] for shape in shapes}) > 1:
        return True
    if var_name is not None and var_name in arrays:
        return not _fits_after_chains(arrays[var_name], n_rest)
    draws_are_more = all(len(shape) < 3 or shape[0] > shape[1] for shape in shapes)
    return draws_are_more and not any(_fits_after_chains(values, n_rest) for values in arrays.values())


def _fits_after_chains(values: Array, n_rest: tuple[int, ...]) -> bool:
    """Whether an array can be chains x draws x items of labels, or of probabilities by component."""
    n_others = values.ndim - 2
    return n_others in n_rest and (n_others == 2 or values.dtype.kind != "f" or is_whole(xr.DataArray(values[0])))


def _warn_of_many_chains(shape: tuple[int, ...]) -> bool:
    """Warn if an array has more than 16 chains, and fewer draws than chains or at most 16 items."""
    n_chains, n_draws, n_items = shape[:3]
    axes = "draws x items" + " x components" * (len(shape) - 3)
    are_many = n_chains > _MOST_CHAINS and (n_chains > n_draws or n_items <= _MOST_CHAINS)
    if are_many:
        warn(
            f"`data` must be an array of chains x {axes}: shape {shape} is taken as {n_chains} chains of {n_draws} "
            f"draws of {n_items} items. If draws come first, swap the first two axes; if items come first, move the "
            "axes.",
        )
    return are_many


def has_components(values: Any) -> bool:
    """Whether an array of floats has a dimension of components; arrays of integers are labels."""
    if getattr(getattr(values, "dtype", None), "kind", "") != "f":
        return False
    if values.ndim != 3 or not isinstance(values, np.ndarray):
        return bool(values.ndim == 4)
    array = xr.DataArray(values)
    return not is_whole(array) or sums_to_one(array, "dim_2")


def check_normalized(data: Any) -> None:
    """Raise an error if most of an array's numbers are neither labels nor probabilities nor their logarithms."""
    values = np.asarray(data)
    if not (values > 0).any():
        return  # logarithms need not be normalized
    with np.errstate(over="ignore"):
        sums = [form.sum(axis=-1, dtype=np.float64) for form in (values, np.exp(values))]
    if all(np.mean(np.abs(one - 1.0) > _LARGEST) > 0.5 for one in sums):
        raise ValueError(
            "`data` must hold labels, which are integers, or allocation probabilities, which sum to one over the last "
            f"dimension; got real numbers of shape {values.shape}, such as {values.flat[0]:.4g}, that are neither. If "
            "they are data, give the draws of their clusters. If they are logarithms of probabilities, call "
            "as_allocation_probabilities(data, log=True)."
        )


def is_whole(variable: xr.DataArray) -> bool:
    """Whether all present values are integers; missing and negative values are refused later."""
    present = variable.values[np.isfinite(variable.values)]
    return bool(np.all(present == np.floor(present)))


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
    is the largest among the values, so 0.333 and 0.0625 have three. Unrounded values have a tolerance of 1e-5 in double
    and 1e-3 in single precision; it is never smaller. `values`: probabilities, or logarithms. `probabilities`: the
    probabilities themselves, of the same shape. `axis`: axis of the components.
    """
    least = SLIGHT if values.dtype.itemsize == 8 else _SINGLE
    n_components = values.shape[axis]
    at = evenly_spaced(values.size, _ENOUGH)
    counts = probabilities.reshape(-1)[at] > 0.1 / n_components  # smaller ones may have shorter logarithms
    return max(least, min(n_components / 2 * _last_digit(np.abs(values.reshape(-1)[at][counts])), _LARGEST))


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
