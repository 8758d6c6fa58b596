"""audit_records(): error rates of whole clusters, by a clerk's answers on all pairs of a sample of records."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.answers.audited_rates import AuditedRates, Rate
from posterior_consensus.answers.links import links
from posterior_consensus.answers.samples_of_pairs import answers_on, named_pairs, with_fields
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.answers.stratified import Share
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count, check_share
from posterior_consensus.sources.conversion import as_source, partition_of

_HALF = 0.5
_LOWER = "with them, exact precision and recall of pairs and B-cubed are lower"


@dataclass(frozen=True, eq=False, repr=False)
class RecordAudit(display.Shown):
    """A sample of records, each with its pairs, for a clerk; made by :func:`audit_records`.

    Attributes
    ----------
    sample : pandas.DataFrame
        A row for each pair, the pairs of a record in a row: names of both records, the drawn one ``first`` and
        ``second``; ``probability``, NaN for a pair that was not scored; whether the partition ``joined`` it; and fields
        of both records, if given. A pair of two drawn records is there once.
    n : int
        Number of records drawn.
    threshold : float
        Least score of the pairs between clusters that are in the sample.
    links : ScoredLinks
        The scored pairs as the partition decides them.
    """

    _no_figure = "its pairs are in sample"

    sample: pd.DataFrame
    n: int
    threshold: float
    links: ScoredLinks
    _drawn: Positions  # (n,)
    _ends: Positions  # (n_sample, 2)

    def answered(self, answers: Any) -> "AuditedRecords":
        """Estimate error rates from answers.

        Parameters
        ----------
        answers : array_like or DataFrame
            Whether each pair of `sample` is a match, as :meth:`Audit.answered` takes them. A record counts if all its
            pairs are answered.

        Returns
        -------
        AuditedRecords
            Precision and recall of pairs, of exact clusters and by B-cubed, with intervals.

        Raises
        ------
        ValueError
            If answers are neither 0 nor 1, their number is another, or no record has all its answers. If a table lacks
            a column, or has a pair that is not in the sample.
        """
        match = answers_on(self.sample, answers)
        found = AuditedRecords(self, match)
        if not found.n_answered:
            raise ValueError("`answers` must have all pairs of at least one record; got none.")
        return found

    def _parts(self) -> display.Parts:
        lines = [
            ("joined", display.counted(int(self.sample["joined"].sum()), "pair")),
            (
                "apart",
                f"{display.counted(int((~self.sample['joined']).sum()), 'pair')} of scores from {self.threshold:g}",
            ),
            ("next", "answer whether each pair of `sample` is a match, and pass the answers to `answered`"),
        ]
        title = f"RecordAudit: {display.counted(self.n, 'record')} of {self.links.cluster.size:,}"
        return title, lines, self.sample


@dataclass(frozen=True, eq=False, repr=False)
class AuditedRecords(AuditedRates):
    """Error rates of a partition of records, whole clusters included; made by :meth:`RecordAudit.answered`.

    Attributes
    ----------
    audit : RecordAudit
        The sample.
    match : numpy.ndarray of shape (n_sample,), dtype float64
        Answers in the order of the sample: 1 for a match, 0 for none, NaN where missing.
    """

    _recall = "recall of seen"

    audit: RecordAudit
    match: Floats

    @property
    def n_answered(self) -> int:
        """Number of records all whose pairs are answered."""
        return int(self._is_answered.sum())

    @property
    def exact_precision(self) -> float:
        """Share of clusters that are an entity: all their pairs match, and no seen pair with another cluster."""
        return self._rates["exact precision"][0]

    @property
    def exact_precision_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates["exact precision"][1:]

    @property
    def exact_recall(self) -> float:
        """Share of entities that are a cluster, as far as their pairs are seen."""
        return self._rates["exact recall"][0]

    @property
    def exact_recall_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates["exact recall"][1:]

    @property
    def bcubed_recall(self) -> float:
        """Mean over records of the share of their matches seen that are in their clusters, the record included."""
        return self._rates["B-cubed recall"][0]

    @property
    def bcubed_recall_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates["B-cubed recall"][1:]

    @property
    def _is_answered(self) -> Flags:
        return self._count(np.isnan(self.match)) == 0

    def _count(self, of_pairs: Flags) -> Positions:
        """Number of the pairs of each drawn record that are so."""
        ends = self.audit._ends[of_pairs].ravel()
        return np.bincount(ends, minlength=self.audit.links.cluster.size)[self.audit._drawn]

    @cached_property
    def _rates(self) -> dict[str, Rate]:
        audit, known = self.audit, self._is_answered
        links, joined = audit.links, audit.sample["joined"].to_numpy()
        cluster, together = links.cluster.values, links.decided["together"].values.astype(np.bool_)
        ends = np.concatenate([links.decided[end].values[together] for end in ("first", "second")])
        decided = np.bincount(ends, minlength=cluster.size)[audit._drawn]
        size = np.bincount(cluster)[cluster[audit._drawn]].astype(np.float64)[known]
        inside = (1.0 + decided + self._count(joined & (self.match == 1)))[known]
        entity = inside + self._count(~joined & (self.match == 1))[known]
        exact = (inside == size) & (entity == size)
        left, one = 1.0 - known.sum() / cluster.size, np.ones(size.size)
        shares = {
            "precision": _share_of(inside - 1, size - 1, left),
            self._recall: _share_of(inside - 1, entity - 1, left),
            "exact precision": _share_of(exact / size, 1.0 / size, left),
            "exact recall": _share_of(exact / entity, 1.0 / entity, left),
            "B-cubed precision": _share_of(inside / size, one, left),
            "B-cubed recall": _share_of(inside / entity, one, left),
        }
        return {name: share.row for name, share in shares.items()}

    def _parts(self) -> display.Parts:
        threshold = self.audit.threshold
        lines = [
            ("answers", f"all pairs of {self.n_answered:,} of {display.counted(self.audit.n, 'record')} drawn"),
            ("unseen", f"matches between clusters that were not scored, or below {threshold:g}; {_LOWER}"),
        ]
        number = int(self.audit.links.cluster.values.max()) + 1
        return f"AuditedRecords: {display.counted(number, 'cluster')}", lines, self.to_dataframe()


def _share_of(part: npt.NDArray[np.floating], whole: npt.NDArray[np.floating], left: float) -> Share:
    """Ratio of two means over a sample of records; its error is with one record more, right if most are wrong.

    `left` is the share of the records that is not in the sample.
    """
    if not whole.any():
        return Share(np.nan, np.nan, np.nan)
    value = part.sum() / whole.sum()
    mean = whole.mean()
    more = mean if value < _HALF else 0.0
    part, whole = np.append(part, more), np.append(whole, mean)
    near = part.sum() / whole.sum()
    spread = ((part - near * whole) ** 2).sum()
    return Share(float(value), float(np.sqrt(left * spread) / (whole.sum() - mean)), float(near))


def audit_records(
    draws: Any,
    partition: Any = None,
    *,
    n: int = 50,
    threshold: float = 0.01,
    fields: pd.DataFrame | None = None,
    random_seed: RandomSeed = None,
) -> RecordAudit:
    """Draw records with all their pairs for a clerk, whose answers say how many whole clusters are right.

    Parameters
    ----------
    draws : ScoredPairs, PairsSummary, or scored pairs as :func:`as_pair_similarity` takes them
        Scored pairs of records.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Clusters of the records; by default those of `draws` if these are a summary.
    n : int
        Number of records to draw.
    threshold : float in (0, 1]
        Least score of a pair between two clusters that the clerk sees; a pair of this score is seen. Matches with lower
        scores are not in the numbers.
    fields : DataFrame, optional
        Fields of the records, by which a clerk decides, as :func:`audit` takes them.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    RecordAudit
        The sample; its method `answered` takes the answers.

    Raises
    ------
    ValueError
        If `draws` are no scored pairs, `n` or `threshold` is out of range, or `fields` lacks a record.

    See Also
    --------
    audit : Precision and recall of pairs, from a stratified sample of pairs.
    evaluate : All error rates by the truth.

    Notes
    -----
    A cluster is right if all its pairs match and no other pair of its records does. Pairs that are drawn one by one do
    not show that, whereas all pairs of a record do [1]_. With s_i the size of the cluster of record i, m_i the number
    of its records that are of the entity of i, and e_i the number of all records that are, as far as joined pairs and
    scores from `threshold` show them,

        precision = sum_i (m_i - 1) / sum_i (s_i - 1),       recall = sum_i (m_i - 1) / sum_i (e_i - 1),
        exact precision = sum_i x_i / s_i / sum_i 1 / s_i,   B-cubed precision = mean of m_i / s_i,
        exact recall = sum_i x_i / e_i / sum_i 1 / e_i,      B-cubed recall = mean of m_i / e_i,

    over the records drawn, where x_i is 1 if s_i, m_i and e_i are equal and 0 otherwise. Ratios are linearized, with
    one record more that is wrong if most are right. Intervals are Wilson's, as those of :func:`audit`.

    References
    ----------
    .. [1] Binette, York, Hickerson, Baek, Madhavan and Jones (2023), The American Statistician 77(4), 370-380.
       https://doi.org/10.1080/00031305.2023.2191664

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity(pc.load_example("pairs"))
    >>> best = pc.consensus_partition(pairs, random_seed=1, progressbar=False)
    >>> audit = pc.audit_records(pairs, best, n=50, random_seed=1)
    >>> person = pc.load_example("persons")["person"]
    >>> answers = person[audit.sample["first"]].values == person[audit.sample["second"]].values
    >>> audit.answered(answers).to_dataframe().round(2)
                       estimate   low  high
    precision              0.91  0.78  0.97
    recall of seen         0.89  0.78  0.95
    exact precision        0.76  0.59  0.88
    exact recall           0.82  0.67  0.91
    B-cubed precision      0.96  0.89  0.99
    B-cubed recall         0.93  0.85  0.97
    """
    check_count("n", n)
    check_share("threshold", threshold)
    source, partition = as_source(draws), partition_of(draws, partition)
    if not isinstance(source, ScoredPairs):
        raise ValueError("`draws` must be scored pairs of records, by as_pair_similarity(table); got draws.")
    found = links(source, partition)
    cluster = found.cluster.values
    drawn = as_generator(random_seed).choice(cluster.size, min(n, cluster.size), replace=False)
    ends, scores = _pairs_of(found, drawn, threshold)
    joined = np.equal(cluster[ends[:, 0]], cluster[ends[:, 1]])
    sample = named_pairs(found, ends, scores).assign(joined=joined)
    return RecordAudit(with_fields(sample, fields), drawn.size, float(threshold), found, drawn, ends)


def _pairs_of(found: ScoredLinks, drawn: Positions, threshold: float) -> tuple[Positions, Floats]:
    """Pairs (m, 2) of the drawn records and their scores: those joined first, then the others by score; each once."""
    cluster, scored = found.cluster.values, found.source.scored
    seen = {
        frozenset(pair)
        for pair in zip(*(found.decided[end].values.tolist() for end in ("first", "second")), strict=True)
    }
    ends, scores = [], []
    for record in drawn.tolist():
        own = slice(scored.indptr[record], scored.indptr[record + 1])
        score = dict(zip(scored.indices[own].tolist(), scored.data[own].tolist(), strict=True))
        within = np.flatnonzero(cluster == cluster[record]).tolist()
        others = [other for other, one in score.items() if one >= threshold and cluster[other] != cluster[record]]
        for other in [*within, *sorted(others, key=lambda one: -score[one])]:
            if other != record and (pair := frozenset((record, other))) not in seen:
                seen.add(pair)
                ends.append((record, other))
                scores.append(score.get(other, np.nan))
    return np.array(ends, np.int64).reshape(-1, 2), np.array(scores, np.float64)
