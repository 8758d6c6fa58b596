"""Labels whose rows may be items rather than draws: both readings are judged by the labels themselves."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.samples import evenly_spaced

_SIDE = 128  # most rows and columns whose pairs are compared
_FEW, _LONG = 16, 2_000  # rows whose labels are counted, and items of each
_CHAINS = 2  # most chains judged
_LEAST = 8  # smallest numbers of rows and columns to judge by
DECIDED = 0.2  # smallest score either way; measured in benchmarks/transposed.py
_CRISP = 0.1  # smallest crispness of a reading that is proposed
_FLAT = 0.005  # mean uncertainties far below it do not tell items from draws
_NOTHING = 1e-6  # variances below it are of vectors that are all alike, or all unlike

Codes = npt.NDArray[np.intp]


def rows_are_items(labels: npt.NDArray[Any]) -> bool:
    """Whether labels (..., n_draws, n_items) are likely to have items in rows."""
    return row_score(labels) <= -DECIDED


def row_score(labels: npt.NDArray[Any]) -> float:
    """Evidence that rows are draws, from three differences between rows and columns; 0 if there is none.

    Draws agree on which items are together, although their numbers for clusters may differ: pairs of items are together
    in nearly all draws or in nearly none. A draw uses nearly all numbers up to its largest, while an item has few of
    them unless labels switch. And items differ in how uncertain they are more than draws do. Chains are judged one by
    one, since each may have its own numbers. The cost does not grow with the array.

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
    try:
        return float(np.mean([_score(chain) for chain in chains]))
    except TypeError:  # labels that cannot be sorted
        return 0.0


def _score(labels: npt.NDArray[Any]) -> float:
    parts = [_some(labels, _SIDE, _SIDE), _some(labels, _FEW, _LONG), _some(labels, _LONG, _FEW).T]
    codes = np.split(_codes(np.concatenate([part.ravel() for part in parts])), np.cumsum([one.size for one in parts]))
    both, rows, columns = (code.reshape(part.shape) for code, part in zip(codes[:3], parts, strict=True))
    as_draws, of_columns = _pairs(both.T)
    as_items, of_rows = _pairs(both)
    score = as_draws - as_items + 0.5 * np.log(_used(rows) / _used(columns))
    score += 0.5 * (of_columns - of_rows) / (of_columns + of_rows + 0.1)
    return float(score) if (as_draws if score > 0 else as_items) >= _CRISP else 0.0


def _some(labels: npt.NDArray[Any], n_rows: int, n_columns: int) -> npt.NDArray[Any]:
    rows, columns = (evenly_spaced(n, most) for n, most in zip(labels.shape, (n_rows, n_columns), strict=True))
    return labels[np.ix_(rows, columns)]


def some_of_table(table: pd.DataFrame) -> npt.NDArray[Any]:
    """Labels of evenly spaced rows and columns of a table, enough to judge it by."""
    long, few = (_LONG, _SIDE) if len(table) > table.shape[1] else (_SIDE, _LONG)
    return table.iloc[evenly_spaced(len(table), long), evenly_spaced(table.shape[1], few)].to_numpy()


def _codes(labels: npt.NDArray[Any]) -> Codes:
    """Positions of labels among the different ones, which are sorted; as numbers if all text is numbers."""
    codes, names = pd.factorize(labels, use_na_sentinel=False)
    numbers = pd.to_numeric(pd.Series(names), errors="coerce")
    order = np.argsort(np.argsort(names if numbers.isna().any() else numbers.to_numpy(), kind="stable"), kind="stable")
    positions: Codes = order[codes]
    return positions


def _pairs(vectors: Codes) -> tuple[float, float]:
    """How crisply vectors of labels are divided into alike and unlike ones, and how unequally each of them is.

    Parameters
    ----------
    vectors : ndarray of shape (n, length)
        Labels of items in draws, or of draws at items.

    Returns
    -------
    crispness : float
        Variance over pairs of the share of places where both have one label, in units of its largest value; 1 if each
        pair has one label in all places or in none, 0 of random labels.
    spread : float
        Coefficient of variation, over the vectors, of the mean p (1 - p) of these shares p.
    """
    n, length = vectors.shape
    equal = np.zeros((n, n), np.int64)
    for place in np.ascontiguousarray(vectors.T.astype(np.int32)):
        equal += place[:, np.newaxis] == place
    pairs = ~np.eye(n, dtype=bool)
    shares = equal / length
    uncertainty = np.sum(shares * (1 - shares), axis=1) / (n - 1)
    spread = float(uncertainty.std() / (uncertainty.mean() + _FLAT))
    alike = np.array([np.sum(counts * (counts - 1)) for counts in map(np.bincount, vectors.T)]) / (n * (n - 1))
    most = float(np.mean(alike * (1 - alike)))
    return (float(shares[pairs].var()) - most / length) / most if most > _NOTHING else 0.0, spread


def _used(vectors: Codes) -> float:
    """Mean share of the numbers up to a vector's largest that it uses; vectors of a single number do not count."""
    different = [np.unique(vector) for vector in vectors]
    shares = [found.size / (found[-1] + 1) for found in different if found.size > 1]
    return float(np.mean(shares)) if shares else 1.0
