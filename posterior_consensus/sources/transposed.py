"""Labels whose rows may be items rather than draws: both readings are judged by the labels themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.ensemble.samples import evenly_spaced

_SIDE = 128  # most rows and columns whose pairs are compared
_FEW, _LONG = 16, 2_000  # rows whose labels are counted, and items of each
_CHAINS = 2  # most chains judged
_LEAST = 8  # smallest numbers of rows and columns to judge by
_CRISP = 0.3  # smallest agreement of a reading that is proposed
DECIDED = 0.5  # smallest score either way; it and the weight are measured in benchmarks/transposed.py
_WEIGHT = 0.25  # of the logarithm of the ratio of numbers of labels

Codes = npt.NDArray[np.int16]  # of at most 32,000 labels


def rows_are_items(labels: npt.NDArray[Any]) -> bool:
    """Whether labels (..., n_draws, n_items) are likely to have items in rows."""
    return row_score(labels) <= -DECIDED


def row_score(labels: npt.NDArray[Any]) -> float:
    """Evidence that rows are draws, from what rows and columns have in common; 0 if there is none.

    Draws are partitions that agree, all of them to some degree. The labels of two items over the draws have little in
    common unless the items are together, whether labels switch or not. So the adjusted Rand index of pairs is larger of
    draws than of items, and its lowest decile even more so. And few labels at an item, many in a draw, say that a
    few sets of draws agree, such as chains with their own labels; the other way round they say nothing, since labels
    that switch are many at each item. Chains are judged one by one. The cost does not grow with the array.

    Parameters
    ----------
    labels : ndarray of shape (n_draws, n_items) or (n_chains, n_draws, n_items)
        Labels of any type.

    Returns
    -------
    float
        Positive if rows are draws, negative if they are items.
    """
    if min(labels.shape[-2:]) < _LEAST:
        return 0.0
    chains = labels[np.newaxis] if labels.ndim == 2 else labels[evenly_spaced(len(labels), _CHAINS)]
    return float(np.mean([_score(chain) for chain in chains]))


def _score(labels: npt.NDArray[Any]) -> float:
    both = _some(labels, _SIDE, _SIDE)
    of_rows, of_columns = _agreement(both), _agreement(both.T)
    score = float(np.sum(of_rows - of_columns))
    if (of_rows if score > 0 else of_columns)[0] < _CRISP:
        return 0.0
    more = np.log(_n_labels(_some(labels, _FEW, _LONG)) / _n_labels(_some(labels, _LONG, _FEW).T))
    return score + _WEIGHT * max(0.0, float(more))


def _some(labels: npt.NDArray[Any], n_rows: int, n_columns: int) -> Codes:
    """Codes of the labels in evenly spaced rows and columns."""
    rows, columns = (evenly_spaced(n, most) for n, most in zip(labels.shape, (n_rows, n_columns), strict=True))
    some = labels[np.ix_(rows, columns)]
    return pd.factorize(some.ravel(), use_na_sentinel=False)[0].reshape(some.shape).astype(np.int16)


def some_of_table(table: pd.DataFrame) -> npt.NDArray[Any]:
    """Labels of evenly spaced rows and columns of a table, enough to judge it by."""
    return table.iloc[_enough(*table.shape)].to_numpy()


def some_of_vectors(vectors: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels at evenly spaced places of evenly spaced vectors of one length, enough to judge them by."""
    rows, places = _enough(len(vectors), len(vectors[0]))
    some = [as_array(vectors[row], f"run {row} of `data`")[places] for row in rows.tolist()]
    return as_array(some, "`data`")


def _enough(n_rows: int, n_columns: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    most = (_LONG, _SIDE) if n_rows > n_columns else (_SIDE, _LONG)
    return evenly_spaced(n_rows, most[0]), evenly_spaced(n_columns, most[1])


def _agreement(vectors: Codes) -> npt.NDArray[np.float64]:
    """Mean and lowest decile of the adjusted Rand index of pairs of vectors (n, length).

    By Hubert and Arabie (1985), 10.1007/BF01908075, from the pairs of places where a vector has one label. It counts
    as 0 for two vectors without information: of one label each, or of labels that all differ.
    """
    one, other = np.triu_indices(vectors.shape[1], k=1)
    are_alike = (vectors[:, one] == vectors[:, other]).astype(np.float32)  # sums below 2^24 are exact
    n_alike = are_alike.sum(axis=1, dtype=np.float64)
    pairs = np.triu_indices(len(vectors), k=1)
    expected = np.outer(n_alike, n_alike)[pairs] / one.size
    excess = (are_alike @ are_alike.T)[pairs] - expected
    most = (n_alike[pairs[0]] + n_alike[pairs[1]]) / 2 - expected
    index = np.divide(excess, most, out=np.zeros(most.size), where=most > 0)
    return np.array([index.mean(), np.quantile(index, 0.1)])


def _n_labels(vectors: Codes) -> float:
    return float(np.mean([np.unique(vector).size for vector in vectors]))
