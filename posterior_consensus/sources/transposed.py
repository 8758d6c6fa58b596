"""Warnings about plain arrays whose values indicate another order of the axes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.runtime.arguments import warn

_ROWS, _COLUMNS = 100, 400  # largest numbers examined
_LEAST = 8  # smallest numbers of rows and columns to judge by
MOST_CHAINS = 16  # up to this number is usual, whatever their length
_MOSTLY = 0.7  # a row's share of its most frequent label
_FEWER = 0.1  # by which a column's share is smaller
_SELDOM = 0.5  # a column's share of labels other than the most frequent label of the row


def warn_if_transposed(labels: npt.NDArray[Any], shape: tuple[int, ...], way_out: str) -> None:
    """Warn if there are more items than draws, and most rows have mainly one label, typical of items, not draws.

    Parameters
    ----------
    labels : ndarray of shape (..., n_draws, n_items)
        The labels as interpreted, with any names.
    shape : tuple of int
        Shape of the user's array.
    way_out : str
        The remedy if the array is transposed.
    """
    *_, n_draws, n_items = labels.shape
    if _rows_are_items(labels.reshape(-1, n_items), n_draws):
        warn(
            f"`data` must have draws before items: shape {shape} is taken as {labels.size // n_items} draws of "
            f"{n_items} items, but most rows have one label, as an item has in most draws. If its rows are items, "
            f"{way_out}.",
        )


def warn_of_many_chains(shape: tuple[int, ...]) -> bool:
    """Warn if an array has more than 16 chains, and fewer draws than chains or at most 16 items."""
    n_chains, n_draws, n_items = shape[:3]
    axes = "draws x items" + " x components" * (len(shape) - 3)
    are_many = n_chains > MOST_CHAINS and (n_chains > n_draws or n_items <= MOST_CHAINS)
    if are_many:
        warn(
            f"`data` must be an array of chains x {axes}: shape {shape} is taken as {n_chains} chains of {n_draws} "
            f"draws of {n_items} items. If draws come first, swap the first two axes; if items come first, move the "
            "axes.",
        )
    return are_many


def _rows_are_items(labels: npt.NDArray[Any], n_draws: int) -> bool:
    some = labels[evenly_spaced(len(labels), _ROWS)][:, evenly_spaced(labels.shape[1], _COLUMNS)]
    if labels.shape[1] <= n_draws or min(some.shape) < _LEAST:
        return False
    try:
        names, codes = np.unique(some, return_inverse=True)
    except TypeError:  # text and missing values cannot be sorted
        return False
    codes = codes.reshape(some.shape)
    rows, columns = _largest_shares(codes, names.size), _largest_shares(codes.T, names.size)
    others = codes != np.median(codes, axis=1, keepdims=True)  # the median is a row's majority label
    # An item that is seldom in the large cluster has other labels in most rows.
    return bool(rows.mean() >= max(_MOSTLY, columns.mean() + _FEWER) and others.mean(axis=0).max() <= _SELDOM)


def _largest_shares(codes: npt.NDArray[np.intp], n_codes: int) -> npt.NDArray[np.float64]:
    """Share of the most frequent label in each row."""
    at = np.arange(len(codes))[:, np.newaxis] * n_codes + codes
    counts = np.bincount(at.ravel(), minlength=len(codes) * n_codes).reshape(len(codes), n_codes)
    shares: npt.NDArray[np.float64] = counts.max(axis=1) / codes.shape[1]
    return shares
