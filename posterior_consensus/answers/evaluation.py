"""evaluate(): a partition against the truth, by pairs, items and whole clusters, and the calibration of scores."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.items import two_partitions
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.results import display
from posterior_consensus.sources.conversion import as_source

_BANDS = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(display.Shown):
    """A partition against the truth; made by :func:`evaluate`.

    Attributes
    ----------
    table : pandas.DataFrame
        Rows ``pairs``, ``B-cubed`` and ``exact clusters``; columns ``precision``, ``recall`` and ``f1``.
    calibration : pandas.DataFrame or None
        A row for each band of scores: number of pairs, mean score, and share of matches, with its standard error. None
        without scored pairs.
    n_items : int
        Number of items.
    """

    _no_figure = "its numbers are in table and calibration"

    table: pd.DataFrame
    calibration: pd.DataFrame | None
    n_items: int

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the error rates.

        Returns
        -------
        pandas.DataFrame
            `table`.
        """
        return self.table

    def _parts(self) -> display.Parts:
        lines = [("items", f"{self.n_items:,}")]
        if self.calibration is not None:
            one = self.calibration
            row = int(np.argmax((one["score"] - one["matches"]).abs()))
            band, mean, share = one.index[row], one["score"].iloc[row], one["matches"].iloc[row]
            lines.append(("scores", f"farthest off from {band}: {mean:.3g} on average, {share:.3g} are matches"))
        return "Evaluation: a partition against the truth", lines, self.table


def evaluate(partition: Any, reference: Any, *, pairs: Any = None) -> Evaluation:
    """Compare a partition with the true one: precision and recall of pairs, items and whole clusters.

    Parameters
    ----------
    partition : result object, DataArray, Series or label vector of shape (n_items,)
        Clusters, typically those of :func:`consensus_partition`.
    reference : result object, DataArray, Series or label vector of shape (n_items,)
        True clusters, such as the persons of records; paired with the items by name where both have names, else by
        place.
    pairs : ScoredPairs, optional
        Scored pairs, or what :func:`as_pair_similarity` takes, whose scores are compared with the truth.

    Returns
    -------
    Evaluation
        Two tables.

    Raises
    ------
    ValueError
        If the reference does not label the items of the partition, or the pairs are no scored pairs of them.

    See Also
    --------
    audit : Estimate precision and recall without the truth, from a clerk's answers on a sample of pairs.
    audit_records : Those of whole clusters, from answers on all pairs of a sample of records.
    partition_loss : A distance between two partitions.

    Notes
    -----
    With n_kl the number of items of cluster k and true cluster l, and n_k that of cluster k, precisions are

        pairs:    sum_kl n_kl (n_kl - 1) / sum_k n_k (n_k - 1),
        B-cubed:  (1 / n) sum_kl n_kl^2 / n_k [1]_,
        exact:    share of the clusters k that are a true cluster.

    Recalls exchange both partitions. F1 is the harmonic mean. A share of none is NaN.

    References
    ----------
    .. [1] Amigo, Gonzalo, Artiles and Verdejo (2009), Information Retrieval 12, 461-486.
       https://doi.org/10.1007/s10791-008-9066-8

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.evaluate([0, 0, 1, 1, 1], [0, 0, 1, 1, 2]).table.round(3)
                    precision  recall     f1
    pairs               0.500   1.000  0.667
    B-cubed             0.733   1.000  0.846
    exact clusters      0.500   0.333  0.400
    """
    try:
        found, true = two_partitions(partition, _as_codes(reference))
    except ValueError as error:
        raise ValueError(
            f"`partition` and `reference` must label the same items. {error} Records that are in no scored pair are in "
            "the partition if as_pair_similarity(table, items=records) names them."
        ) from None
    table = pd.DataFrame([_rates(found, true), _rates(true, found)], index=["precision", "recall"]).T
    with np.errstate(invalid="ignore"):
        table["f1"] = 2 * table["precision"] * table["recall"] / (table["precision"] + table["recall"])
    return Evaluation(table, None if pairs is None else _calibration(as_source(pairs), reference), found.size)


def _as_codes(reference: Any) -> Any:
    """Text, such as names of persons, as integers, with the names of the items."""
    if isinstance(reference, pd.Series) and reference.dtype.kind not in "iu":
        return pd.Series(_checked_codes(reference), reference.index)
    if isinstance(reference, (list, tuple, np.ndarray)) and np.asarray(reference).dtype.kind not in "iu":
        return _checked_codes(reference)
    return reference


def _checked_codes(reference: Any) -> Labels:
    codes = pd.factorize(np.asarray(reference, dtype=object))[0]
    if (codes < 0).any():
        raise ValueError(f"`reference` must not be missing; got none for item {int((codes < 0).argmax())}.")
    return codes.astype(np.int32)


def _rates(one: Labels, other: Labels) -> dict[str, float]:
    """Precision of the partition `one` if `other` is true."""
    ends, counts = np.unique(np.stack([one, other]), axis=1, return_counts=True)
    sizes, others = np.bincount(one), np.bincount(other)
    joined = (sizes * (sizes - 1)).sum()
    return {
        "pairs": float((counts * (counts - 1)).sum() / joined) if joined else np.nan,
        "B-cubed": float((counts**2 / sizes[ends[0]]).sum() / one.size),
        "exact clusters": float(((counts == sizes[ends[0]]) & (counts == others[ends[1]])).sum() / sizes.size),
    }


def _calibration(source: PairSource, reference: Any) -> pd.DataFrame:
    if not isinstance(source, ScoredPairs):
        raise ValueError("`pairs` must be scored pairs, by as_pair_similarity(table); got draws.")
    true = source.items.as_labels(_as_codes(reference), "reference")
    first, second, scores = source.pairs
    matches = true[first] == true[second]
    band = np.minimum(np.searchsorted(_BANDS, scores, side="right") - 1, len(_BANDS) - 2)
    number = np.bincount(band, minlength=len(_BANDS) - 1)
    there = number > 0
    mean, share = (np.bincount(band, one, len(number))[there] / number[there] for one in (scores, matches))
    names = [f"{low:g} to {high:g}" for low, high in pairwise(_BANDS.tolist())]
    error = np.sqrt(share * (1 - share) / number[there])
    return pd.DataFrame(
        {"n_pairs": number[there], "score": mean, "matches": share, "error": error},
        pd.Index(np.array(names, dtype=object)[there], name="band"),
    )
