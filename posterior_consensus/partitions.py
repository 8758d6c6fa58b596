"""Partitions as label vectors: canonical form, contingency, enumeration."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.kernels import canonical

Labels = npt.NDArray[np.int32]


class HasLabels:
    """A result whose `labels` are what NumPy takes it for."""

    labels: Any

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Labels of the items, so that ``np.asarray(result)`` gives them."""
        return np.array(self.labels.values, dtype=dtype, copy=copy)


def smallest_dtype(n_codes: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the codes 0 to `n_codes` - 1."""
    return np.min_scalar_type(max(n_codes - 1, 0))


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Take values as NumPy does, but neither unmask any nor turn NaN and numbers among strings into strings."""
    if np.ma.is_masked(values):
        raise _missing(name, int(np.ma.getmaskarray(values).sum()))
    array = np.asarray(values)
    return array if array.dtype.kind != "U" or hasattr(values, "dtype") else np.asarray(values, dtype=object)


def _missing(name: str, number: int) -> ValueError:
    return ValueError(f"{name} must not be missing; got {number} NaN. Drop those items or draws first.")


def as_codes(values: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[Any], int]:
    """Turn labels of any kind into whole numbers from 0, whatever their names are.

    Parameters
    ----------
    values : ndarray
        Integers, booleans, strings or floats that are whole numbers, of any shape.
    name : str
        What to call the labels in an error.

    Returns
    -------
    codes : ndarray of unsigned integers, same shape
    n_codes : int
        One more than the largest code.

    Raises
    ------
    ValueError
        If a label is missing (NaN, None), negative, infinite or not a whole number.
    TypeError
        If the labels are of another kind.
    """
    kind = values.dtype.kind
    if kind == "T":
        values, kind = values.astype(object), "O"
    if kind == "O":
        if pd.isna(values).any():
            raise _missing(name, int(pd.isna(values).sum()))
        if not all(isinstance(value, str) for value in values.flat):
            return as_codes(_from_objects(values, name), name)
        values, kind = values.astype(str), "U"
    if kind in "US":
        _, codes = np.unique(values, return_inverse=True)
        n_codes = int(codes.max(initial=-1)) + 1
        return codes.reshape(values.shape).astype(smallest_dtype(n_codes)), n_codes
    if kind == "b":
        return values.astype(np.uint8), 2
    if kind == "f":
        values = _from_floats(values, name)
    elif kind not in "iu":
        raise TypeError(f"{name} must be integers, strings or whole-number floats; got dtype {values.dtype}.")
    if values.size == 0:
        return values.astype(np.uint8), 0
    lowest, highest = int(values.min()), int(values.max())
    if lowest < 0:
        raise ValueError(
            f"{name} must not be negative; got {lowest}. "
            "A negative label usually marks a missing value: drop those items or draws first."
        )
    if highest >= max(2**16, 2 * values.size):  # too wide for a table of codes
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(values.shape).astype(smallest_dtype(distinct.size)), distinct.size
    return values.astype(smallest_dtype(highest + 1), copy=False), highest + 1


def _from_objects(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    try:
        if any(isinstance(value, (str, bytes)) for value in values.flat):  # which NumPy would read as numbers
            raise TypeError
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        kinds = sorted({type(value).__name__ for value in values.flat})
        raise TypeError(
            f"{name} must be all integers, all strings or all whole-number floats; got {', '.join(kinds)}."
        ) from None
    if not np.all(np.abs(numbers) < 2**53):  # NaN and infinity included: the check on floats says which
        return numbers
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


def _from_floats(values: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if np.isnan(values).any():
        raise _missing(name, int(np.isnan(values).sum()))
    fractional = values[values != np.floor(values)]
    if fractional.size:
        hint = (
            " Values between 0 and 1 look like allocation probabilities, which are not labels."
            if values.min() >= 0 and values.max() <= 1
            else ""
        )
        raise ValueError(f"{name} must be whole numbers; got {fractional.flat[0]!s}.{hint}")
    if not np.all(np.abs(values) < np.float64(2**53)):
        raise ValueError(
            f"{name} must be finite whole numbers below 2**53; got {values.flat[np.abs(values).argmax()]!s}."
        )
    return values.astype(np.int64)


def canonical_rows(codes: npt.NDArray[Any], n_codes: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Number each row's labels by first appearance from 0.

    Parameters
    ----------
    codes : ndarray of shape (n_draws, n_items), dtype unsigned
        Labels below `n_codes`.
    n_codes : int

    Returns
    -------
    labels : ndarray of shape (n_draws, n_items), smallest unsigned dtype
    n_clusters : ndarray of shape (n_draws,), dtype int64
    """
    labels = np.empty(codes.shape, smallest_dtype(min(n_codes, codes.shape[1])))
    n_clusters = canonical.canonicalise(np.ascontiguousarray(codes), n_codes, labels)
    return labels.astype(smallest_dtype(int(n_clusters.max(initial=1))), copy=False), n_clusters


def canonical_labels(labels: npt.ArrayLike, name: str = "partition") -> Labels:
    """Return one label vector numbered by first appearance from 0.

    Parameters
    ----------
    labels : array_like of shape (n_items,)
        Integers, strings or whole-number floats.
    name : str
        What to call it in an error.

    Returns
    -------
    ndarray of shape (n_items,), dtype int32

    Raises
    ------
    ValueError, TypeError
        As :func:`as_codes`, and if the labels are not one vector of at least one item.
    """
    values = as_array(labels, f"the labels of `{name}`")
    if values.ndim == 0:
        raise ValueError(f"`{name}` must be a vector of labels, one for each item; got {type(labels).__name__}.")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"`{name}` must be a vector of labels, one for each item; got shape {values.shape}.")
    codes, n_codes = as_codes(values, f"the labels of `{name}`")
    return canonical_rows(codes[np.newaxis], n_codes)[0][0].astype(np.int32)


def contingency_table(labels: Labels, others: Labels) -> npt.NDArray[np.int64]:
    """Count the items that two canonical label vectors put in each pair of clusters.

    Returns
    -------
    ndarray of shape (n_clusters, n_other_clusters), dtype int64
    """
    shape = int(labels.max()) + 1, int(others.max()) + 1
    cells = labels.astype(np.int64) * shape[1] + others
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def distinct_rows(partitions: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the row numbers, ascending, at which each distinct partition of (n_partitions, n_items) appears first."""
    rows = np.ascontiguousarray(partitions)
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()  # one value a row
    _, first = np.unique(whole, return_index=True)
    return np.sort(first)


def enumerate_partitions(n_items: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield every partition of `n_items` items once, as blocks of canonical label vectors (n_partitions, n_items).

    The partitions of the first items are grown by one item at a time, a block for each of the partitions of about half
    the items, so that memory stays small though there are Bell(n_items) partitions.
    """
    seeds = _grow(np.zeros((1, 1), np.uint8), (n_items + 1) // 2)
    for seed in seeds:
        yield _grow(seed[np.newaxis], n_items)


def _grow(partitions: npt.NDArray[np.uint8], n_items: int) -> npt.NDArray[np.uint8]:
    while partitions.shape[1] < n_items:
        choices = partitions.max(axis=1).astype(np.int64) + 2  # any cluster there is, or a new one
        rows = np.repeat(np.arange(len(partitions)), choices)
        label = np.arange(rows.size) - np.repeat(np.cumsum(choices) - choices, choices)
        partitions = np.column_stack([partitions[rows], label.astype(np.uint8)])
    return partitions
