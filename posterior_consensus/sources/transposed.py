"""Labels whose rows may be items rather than draws: both readings are judged by the labels themselves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.partitions import as_array, native
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import warn

_SIDE = 128  # most rows and columns whose pairs are compared
_GLANCE = 32  # the same, of a first look, which ends it if rows are clearly draws
_PARTNERS = 4  # of each row or column
_FEW, _LONG = 16, 2_000  # rows whose labels are counted, and items of each
_LEAST = 8  # smallest numbers of rows and columns to judge by
_CRISP, _ALL_CRISP = 0.3, 0.2  # smallest mean and lowest decile of the agreement of columns that are proposed as draws
_PLAIN = 1.0, 0.9, 0.75  # shares of pairs of places with one label from which a row says little
_LEAST_OTHER = 3  # smallest number of other rows that are judged apart
DECIDED = 0.5  # smallest score either way; all of these are measured in benchmarks/transposed.py
_WEIGHT = 0.25  # of the logarithm of the ratio of numbers of labels

Codes = npt.NDArray[np.int32]
Counts = Floats


def rows_are_items(labels: npt.NDArray[Any]) -> bool:
    """Whether labels (..., n_draws, n_items) are likely to have items in rows."""
    return _agreement_score(labels, _GLANCE) < DECIDED and row_score(labels) <= -DECIDED


def warn_if_transposed(labels: npt.NDArray[Any], shape: tuple[int, ...], way_out: str) -> None:
    """Warn if the labels say that rows are items, not draws.

    `labels` (..., n_draws, n_items): the labels as interpreted, with any names. `shape`: shape of the user's array.
    `way_out`: the remedy if the array is transposed.
    """
    if rows_are_items(labels):
        n_items = labels.shape[-1]
        warn(
            f"`data` must have draws before items: shape {shape} is taken as {labels.size // n_items} draws of "
            f"{n_items} items, but its columns agree more, as draws do, and its rows less. If its rows are items, "
            f"{way_out}.",
        )


def row_score(labels: npt.NDArray[Any]) -> float:
    """Evidence that rows are draws, from what rows and columns have in common: negative if they are items, 0 if none.

    Draws are partitions that agree, all of them to some degree. The labels of two items over the draws have little in
    common unless the items are together, whether labels switch or not. So the adjusted Rand index of pairs is larger of
    draws than of items, and its lowest decile even more so. Draws that are nearly one cluster have no index: if rows
    without them agree more, these count. And few labels at an item, many in a draw, say that a few sets of draws agree,
    such as chains with their own labels; the other way round they say nothing, since labels that switch are many at
    each item. Of several chains, rows and columns of one are compared with those of another: items are the same in all
    chains, draws are not. The cost does not grow with the array. Labels are of any type, (N, n) or (chains, N, n).
    """
    score = _agreement_score(labels, _SIDE)
    if score == 0.0:
        return 0.0
    first = labels if labels.ndim == 2 else labels[0]
    more = np.log(_n_labels(_some(first, _FEW, _LONG)) / _n_labels(_some(first, _LONG, _FEW).T))
    return score + _WEIGHT * max(0.0, float(more))


def _agreement_score(labels: npt.NDArray[Any], side: int) -> float:
    """Evidence from at most `side` rows and columns: how much more the one agree than the other."""
    if min(labels.shape[-2:]) < _LEAST:
        return 0.0
    one = other = _some(labels if labels.ndim == 2 else labels[0], side, side)
    if labels.ndim > 2:
        other = _some(labels[-1], side, side)
    of_rows, of_columns = _Agreement.of(one, other), _Agreement.of(one.T, other.T)
    if of_rows.of_all > of_columns.best and of_rows.mean >= _CRISP:
        return of_rows.of_all - of_columns.best
    if of_columns.of_all > of_rows.best and of_columns.mean >= _CRISP and of_columns.lowest >= _ALL_CRISP:
        return of_rows.best - of_columns.of_all
    return 0.0


def _some(labels: npt.NDArray[Any], n_rows: int, n_columns: int) -> Codes:
    """Codes of the labels in evenly spaced rows and columns."""
    rows, columns = (evenly_spaced(n, most) for n, most in zip(labels.shape, (n_rows, n_columns), strict=True))
    some = native(labels[np.ix_(rows, columns)].ravel())
    return pd.factorize(some, use_na_sentinel=False)[0].reshape(rows.size, columns.size).astype(np.int32)


def some_of_table(table: pd.DataFrame) -> npt.NDArray[Any]:
    """Labels of evenly spaced rows and columns of a table, enough to judge it by."""
    return table.iloc[_enough(*table.shape)].to_numpy()


def some_of_vectors(vectors: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels at evenly spaced places of evenly spaced vectors of one length, enough to judge them by."""
    rows, places = _enough(len(vectors), len(vectors[0]))
    some = [as_array(vectors[row], f"run {row} of `data`")[places] for row in rows.tolist()]
    return as_array(some, "`data`")


def _enough(n_rows: int, n_columns: int) -> tuple[Positions, Positions]:
    most = (_LONG, _SIDE) if n_rows > n_columns else (_SIDE, _LONG)
    return evenly_spaced(n_rows, most[0]), evenly_spaced(n_columns, most[1])


class _Agreement(NamedTuple):
    """Adjusted Rand index of pairs of vectors."""

    mean: float  # mean and lowest decile of all pairs
    lowest: float
    best: float  # sum of both, of all pairs or without vectors that are one label, or nearly so, whichever is largest

    @property
    def of_all(self) -> float:
        """Sum of mean and lowest decile of all pairs."""
        return self.mean + self.lowest

    @classmethod
    def of(cls, vectors: Codes, others: Codes) -> "_Agreement":
        """Compare vectors (n, length) with others (m, length), which may be the same."""
        own, of_others = _n_alike(vectors), _n_alike(others)
        mean, lowest = _rand_indices(vectors, others, own, of_others)
        best, length = mean + lowest, vectors.shape[1]
        for share in _PLAIN:
            some, partners = (alike < share * length * (length - 1) / 2 for alike in (own, of_others))
            if some.all() and partners.all():
                continue  # all have been compared
            if min(some.sum(), partners.sum()) >= max(_LEAST_OTHER, len(vectors) // _LEAST):
                best = max(best, sum(_rand_indices(vectors[some], others[partners], own[some], of_others[partners])))
        return cls(mean, lowest, best)


def _rand_indices(vectors: Codes, others: Codes, own: Counts, of_others: Counts) -> tuple[float, float]:
    """Mean and lowest decile of the adjusted Rand index of each vector and a few others, near and far.

    By Hubert and Arabie (1985), 10.1007/BF01908075, from the pairs of places where a vector has one label, of which
    `own` and `of_others` are the numbers. The index counts as 0 for two vectors without information: of one label each,
    or of labels that all differ.
    """
    n_pairs = vectors.shape[1] * (vectors.shape[1] - 1) / 2
    steps = np.unique(np.maximum(1, len(others) * (2 * np.arange(_PARTNERS) + 1) // (4 * _PARTNERS)))
    one = np.tile(np.arange(len(vectors)), steps.size)
    other = (one + np.repeat(steps, len(vectors))) % len(others)
    both = _n_alike(vectors[one] * (others.max() + 1) + others[other])
    expected = own[one] * of_others[other] / n_pairs
    most = (own[one] + of_others[other]) / 2 - expected
    index = np.divide(both - expected, most, out=np.zeros(most.size), where=most > 0)
    return float(index.mean()), float(np.quantile(index, 0.1))


def _n_alike(vectors: Codes) -> Counts:
    """Number of pairs of places where each vector (n, length) has one label."""
    n, length = vectors.shape
    in_order = np.sort(vectors, axis=1)
    begins = np.ones(vectors.shape, np.bool_)
    begins[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    first = np.flatnonzero(begins)
    counts = np.diff(first, append=vectors.size).astype(np.float64)
    return np.bincount(first // length, counts * (counts - 1) / 2, n).astype(np.float64, copy=False)


def _n_labels(vectors: Codes) -> float:
    in_order = np.sort(vectors, axis=1)
    return 1 + np.count_nonzero(in_order[:, 1:] != in_order[:, :-1]) / len(vectors)
