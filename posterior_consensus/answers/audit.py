"""audit(): error rates of clusters of records, by a clerk's answers on a stratified sample of pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from posterior_consensus.answers.links import links
from posterior_consensus.answers.scored_links import ScoredLinks, named_ends
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.sources.conversion import as_source, partition_of

_LEAST = 5  # pairs of a stratum that are drawn
_EACH = 15  # pairs that are drawn for each stratum, on average
_SURE = 0.1  # least standard deviation of an answer in the allocation, as scores may be wrong
_LEVEL = 0.95
_UNSURE = 0.001  # least distance of a score from 0 and 1 where it stands for one answer
_EDGE = 1e-9  # least standard error


@dataclass(frozen=True, eq=False, repr=False)
class Audit(display.Shown):
    """A stratified sample of pairs for a clerk; made by :func:`audit`.

    Attributes
    ----------
    sample : pandas.DataFrame
        A row for each pair, in random order: names of both records, ``first`` and ``second``; ``probability``, NaN for
        a pair that was not scored; whether the partition ``joined`` it; its ``stratum``; the probability ``inclusion``
        with which a pair of the stratum is drawn; and fields of both records, if given.
    strata : pandas.DataFrame
        A row for each stratum: whether its pairs are ``joined``, and were ``scored``; the ``largest`` size of their
        clusters; their mean ``score``; ``records``, the sum over joined pairs of 2 / the size of their cluster; the
        number of its pairs, ``n_pairs``, and of those drawn, ``n_drawn``.
    links : ScoredLinks
        The scored pairs as the partition decides them.
    """

    _no_figure = "its pairs are in sample"

    sample: pd.DataFrame
    strata: pd.DataFrame
    links: ScoredLinks
    _ends: Positions
    _scores: Floats

    def answered(self, answers: Any) -> "AuditedLinks":
        """Estimate error rates from answers.

        Parameters
        ----------
        answers : array_like or DataFrame
            Whether each pair of `sample` is a match, in its order: True or False, 1 or 0; NaN or None without an
            answer. Or a table of some or all of them, in any order: columns ``first``, ``second`` and ``match``.

        Returns
        -------
        AuditedLinks
            Precision and recall, with intervals.

        Raises
        ------
        ValueError
            If answers are neither 0 nor 1, all are missing, or their number is another. If a table lacks one of the
            columns, or has a pair that is not in the sample.
        """
        found = self._in_order(answers) if isinstance(answers, pd.DataFrame) else _as_answers(answers)
        if found.shape != (len(self.sample),):
            raise ValueError(
                f"`answers` must be one for each of the {len(self.sample)} pairs of the sample, or a table with the "
                f"columns 'first', 'second' and 'match'; got shape {found.shape}."
            )
        if np.isnan(found).all():
            raise ValueError("`answers` must have at least one answer; got none.")
        return AuditedLinks(self, found)

    def _in_order(self, table: pd.DataFrame) -> Floats:
        for column in ("first", "second", "match"):
            if column not in table:
                raise ValueError(f"`answers`, a table, must have a column {column!r}; got {list(table.columns)}.")
        place = {frozenset(pair): k for k, pair in enumerate(_pairs_of(self.sample))}
        found = np.full(len(self.sample), np.nan)
        for pair, answer in zip(_pairs_of(table), _as_answers(table["match"]), strict=True):
            if frozenset(pair) not in place:
                raise ValueError(f"`answers` must be of pairs of the sample; got {pair[0]!r} and {pair[1]!r}.")
            found[place[frozenset(pair)]] = answer
        return found

    def _parts(self) -> display.Parts:
        lines = []
        for name, chosen in (("joined", self.strata["joined"]), ("apart", ~self.strata["joined"])):
            numbers = self.strata.loc[chosen, ["n_drawn", "n_pairs"]].sum()
            lines.append((name, f"{numbers['n_drawn']:,} of {numbers['n_pairs']:,} pairs"))
        lines.append(("next", "answer whether each pair of `sample` is a match, and pass the answers to `answered`"))
        return f"Audit: {display.counted(len(self.sample), 'pair')} in {len(self.strata)} strata", lines, self.strata


class _Share(NamedTuple):
    """An estimated share, and a value near it that is neither 0 nor 1, with its standard error."""

    value: float
    error: float
    near: float

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval for as many answers as give this standard error."""
        if np.isnan(self.value) or self.error < _EDGE:
            return self.value, self.value
        number = self.near * (1 - self.near) / self.error**2
        square = ndtri((1 + _LEVEL) / 2) ** 2
        centre = (self.value + square / (2 * number)) / (1 + square / number)
        width = np.sqrt(square * (self.value * (1 - self.value) + square / (4 * number)) / number) / (
            1 + square / number
        )
        return float(max(centre - width, 0.0)), float(min(centre + width, 1.0))


def _pairs_of(table: pd.DataFrame) -> list[tuple[Any, Any]]:
    return list(zip(table["first"].tolist(), table["second"].tolist(), strict=True))


def _as_answers(answers: Any) -> Floats:
    """Answers as 0, 1 or NaN."""
    values = pd.Series(answers, dtype=object)
    found = np.array([np.nan if pd.isna(one) else _as_number(one) for one in values.tolist()], np.float64)
    wrong = ~(np.isnan(found) | np.isin(found, (0.0, 1.0)))
    if wrong.any():
        raise ValueError(f"`answers` must be True, False or missing; got {values[wrong.argmax()]!r}.")
    return found


def _as_number(answer: Any) -> float:
    return float(answer) if isinstance(answer, (bool, np.bool_, int, float, np.number)) else np.inf


@dataclass(frozen=True, eq=False, repr=False)
class AuditedLinks(display.Shown):
    """Error rates of a partition of records by an audit; made by :meth:`Audit.answered`.

    Attributes
    ----------
    audit : Audit
        The sample.
    match : numpy.ndarray of shape (n_sample,), dtype float64
        Answers in the order of the sample: 1 for a match, 0 for none, NaN where missing.
    """

    _no_figure = "its numbers are in to_dataframe()"

    audit: Audit
    match: Floats

    @property
    def precision(self) -> float:
        """Share of matches among the joined pairs, scored or not; NaN if none is joined."""
        return self._precision.value

    @property
    def precision_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._precision.interval

    @property
    def recall(self) -> float:
        """Share of joined pairs among the matches that were scored or are joined; NaN if no match was found.

        Matches that were neither, as blocking lost them, are unseen: recall of all matches is lower.
        """
        return self._recall(scored=True).value

    @property
    def recall_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._recall(scored=True).interval

    @property
    def recall_of_all(self) -> float:
        """Share of joined pairs among all matches; NaN unless pairs that were not scored were drawn."""
        return self._recall(scored=False).value

    @property
    def recall_of_all_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._recall(scored=False).interval

    @property
    def bcubed_precision(self) -> float:
        """Mean over records of the share of matches in their clusters, the record itself included."""
        return self._bcubed.value

    @property
    def bcubed_precision_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._bcubed.interval

    @property
    def constraints(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Pairs that are matches, and pairs that are none: `must_link` and `cannot_link` of as_pair_similarity."""
        ends = self.audit.sample[["first", "second"]]
        must, cannot = (ends[self.match == value].reset_index(drop=True) for value in (1, 0))
        return must, cannot

    def recalibrated(self) -> ScoredPairs:
        """Scores that a monotone function makes agree with the answers, and the answers as constraints.

        Returns
        -------
        ScoredPairs
            To be solved again by :func:`consensus_partition`.

        Notes
        -----
        The function is the isotonic regression of answers on scores, with the weights 1 / inclusion; each end of the
        scores has one answer more, which agrees with the score there, of the mean weight. It is constant beyond the
        scores that were answered. Answers contradict each other if matches link two records that a third answer
        separates; solving then raises an error that names them.
        """
        from sklearn.isotonic import IsotonicRegression  # takes a second to import

        known = ~np.isnan(self.match) & ~np.isnan(self.audit._scores)
        scores, weights = self.audit._scores[known], 1.0 / self.audit.sample["inclusion"].to_numpy()[known]
        ends = np.array([scores.min(), scores.max()])
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(
            np.concatenate([scores, ends]),
            np.concatenate([self.match[known], ends]),
            sample_weight=np.concatenate([weights, np.full(2, weights.mean())]),
        )
        source = self.audit.links.source
        new = [self.audit._ends[self.match == value] for value in (1, 0)]
        old = source.constraints.must_link, source.constraints.cannot_link
        must, cannot = (np.concatenate(pair) for pair in zip(old, new, strict=True))
        scored = source.scored.copy()
        scored.data = fitted.predict(scored.data)
        constraints = PairConstraints(must, cannot, source.constraints.data_set)
        return replace(source, scored=scored, constraints=constraints)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the error rates.

        Returns
        -------
        pandas.DataFrame
            A row for each: estimate, and the ends of its 95% interval, ``low`` and ``high``.
        """
        rows = {"precision": self._precision, "recall of scored": self._recall(scored=True)}
        if not np.isnan(self.recall_of_all):
            rows["recall of all"] = self._recall(scored=False)
        rows["B-cubed precision"] = self._bcubed
        found = {name: (one.value, *one.interval) for name, one in rows.items()}
        return pd.DataFrame.from_dict(found, orient="index", columns=["estimate", "low", "high"])

    @cached_property
    def _strata(self) -> pd.DataFrame:
        """Of each stratum the share of matches, `share`, and nearer to its score `centre`, with variance `spread`."""
        table = self.audit.strata.copy()
        by = self.audit.sample["stratum"].to_numpy()
        known = ~np.isnan(self.match)
        number = np.bincount(by[known], minlength=len(table))
        matches = np.bincount(by[known], self.match[known], len(table))
        score = table["score"].to_numpy()
        table["share"] = np.where(number > 0, matches / np.maximum(number, 1), score)
        table["centre"] = (matches + np.clip(score, _UNSURE, 1 - _UNSURE)) / (number + 1)
        left = 1.0 - np.minimum(number / table["n_pairs"].to_numpy(), 1.0)
        table["spread"] = left * table["centre"] * (1 - table["centre"]) / np.maximum(number, 1)
        return table

    def _total(self, chosen: Any, column: str) -> float:
        """Number of matches in some strata."""
        table = self._strata[chosen]
        return float((table["n_pairs"] * table[column]).sum())

    def _variance(self, chosen: Any) -> float:
        table = self._strata[chosen]
        return float((table["n_pairs"] ** 2 * table["spread"]).sum())

    @property
    def _precision(self) -> _Share:
        joined, known = self._strata["joined"], self._known
        number = self.audit.links.n_joined
        if not number:
            return _Share(np.nan, np.nan, np.nan)
        value, centre = ((self._total(joined, column) + known) / number for column in ("share", "centre"))
        return _Share(value, np.sqrt(self._variance(joined)) / number, centre)

    def _recall(self, *, scored: bool) -> _Share:
        joined = self._strata["joined"]
        apart = ~joined & self._strata["scored"] if scored else ~joined
        if not scored and self._strata.loc[apart, "scored"].all():
            return _Share(np.nan, np.nan, np.nan)
        found = []
        for column in ("share", "centre"):
            inside, outside = self._total(joined, column) + self._known, self._total(apart, column)
            found.append(inside / (inside + outside) if inside + outside else np.nan)
        total = (inside + outside) ** 2
        error = np.sqrt(outside**2 * self._variance(joined) + inside**2 * self._variance(apart)) / total
        return _Share(found[0], float(error), found[1])

    @property
    def _bcubed(self) -> _Share:
        """(1 / n) sum over clusters C of 1 + (2 / |C|) matches in C, by ratios of sums of 2 / |C| in each stratum."""
        links, table = self.audit.links, self._strata
        cluster = links.cluster.values
        sizes = np.bincount(cluster)
        weights = np.where(self.audit.sample["joined"], 2.0 / sizes[cluster[self.audit._ends[:, 0]]], 0.0)
        by, known = self.audit.sample["stratum"].to_numpy(), ~np.isnan(self.match)
        matched, drawn, square = (
            np.bincount(by[known], one[known], len(table)) for one in (weights * self.match, weights, weights**2)
        )
        share = np.divide(matched, drawn, out=table["share"].to_numpy().copy(), where=drawn > 0)
        total, near = table["records"].to_numpy(), table["centre"].to_numpy()
        number = np.bincount(by[known], minlength=len(table))  # spread is of a mean over these
        alike = np.divide(square * number, drawn**2, out=np.ones(len(table)), where=drawn > 0)
        must = links.decided["first"].values[links.decided["together"].values.astype(np.bool_)]
        sure = sizes.size + (2.0 / sizes[cluster[must]]).sum()
        error = np.sqrt((total**2 * table["spread"].to_numpy() * alike).sum())
        value, nearby = ((sure + total @ one) / cluster.size for one in (share, near))
        return _Share(float(value), float(error) / cluster.size, float(nearby))

    @property
    def _known(self) -> int:
        """Number of joined pairs that constraints say are matches."""
        return int(self.audit.links.decided["together"].values.sum())

    def _parts(self) -> display.Parts:
        number = int((~np.isnan(self.match)).sum())
        lines = [("answers", f"{number:,} of {len(self.match):,}, of which {int(np.nansum(self.match)):,} are matches")]
        if np.isnan(self.recall_of_all):
            lines.append(("unseen", "matches that were neither scored nor joined, as blocking lost them"))
        title = f"AuditedLinks: {display.counted(self.audit.links.n_joined, 'joined pair')}"
        return title, lines, self.to_dataframe()


class _Stratum(NamedTuple):
    """Pairs of equal kind: their number and mean score, and which they are if they are listed."""

    joined: bool
    scored: bool
    largest: int
    n_pairs: int
    score: float
    records: float  # sum over the pairs of 2 / the size of their cluster, 0 of pairs apart
    ends: Positions  # (m, 2)
    scores: Floats  # (m,)


def _strata_of(found: ScoredLinks, number: int, n_unscored: int, rng: np.random.Generator) -> Iterator[_Stratum]:
    """Strata of the pairs that constraints do not decide; some of those without a score are drawn to be listed."""
    cluster = found.cluster.values
    sizes, n = np.bincount(cluster), cluster.size
    ends = np.stack([found.pairs[end].values.astype(np.int64) for end in ("first", "second")], axis=1)
    decided = np.stack([found.decided[end].values.astype(np.int64) for end in ("first", "second")], axis=1)
    taken, known = _codes(ends, n), _codes(decided, n)
    free = ~np.isin(taken, known)
    scores, joined, size = found.pairs["probability"].values, found.joined, sizes[cluster[ends[:, 0]]]
    classes = [joined & (size == 2), joined & (size > 2), ~joined]
    each = max(number // _EACH, len(classes))
    spread = np.sqrt(np.maximum(scores * (1 - scores), _SURE**2))
    for own in classes:
        rows = np.flatnonzero(free & own)
        rows = rows[np.argsort(scores[rows], kind="stable")]
        n_parts = max(1, min(each // len(classes), rows.size // _LEAST))
        at = np.cumsum(spread[rows])
        parts = np.minimum((at / at[-1:].sum() * n_parts).astype(np.int64), n_parts - 1) if rows.size else rows
        for part in range(n_parts if rows.size else 0):
            of_part = rows[parts == part]
            if of_part.size:
                largest, mean = int(size[of_part].max()), float(scores[of_part].mean())
                is_joined = bool(joined[of_part[0]])
                records = float((2.0 / size[of_part]).sum()) if is_joined else 0.0
                yield _Stratum(is_joined, True, largest, of_part.size, mean, records, ends[of_part], scores[of_part])
    outside = known[~np.isin(known, taken)]
    inside = cluster[outside // n] == cluster[outside % n]
    several = np.flatnonzero(sizes > 1)
    mean = float(scores[joined].mean()) if joined.any() else 0.5
    left = found.n_joined_unscored - int(inside.sum())
    if left:
        weights = (sizes * (sizes - 1))[several]
        starts, order = np.concatenate([[0], np.cumsum(sizes)]), np.argsort(cluster, kind="stable")

        def of_clusters(m: int) -> Positions:
            own = rng.choice(several, m, p=weights / weights.sum())
            one = rng.integers(sizes[own])
            other = (one + 1 + rng.integers(sizes[own] - 1)) % sizes[own]
            return np.stack([order[starts[own] + one], order[starts[own] + other]], axis=1)

        some = _some_new(of_clusters, min(left, number), np.concatenate([taken, known]), n)
        rest = outside[inside] // n
        records = (sizes - 1).sum() - sum((2.0 / sizes[cluster[one]]).sum() for one in (ends[joined, 0], rest))
        yield _Stratum(True, False, int(sizes.max()), left, mean, float(records), some, np.full(len(some), np.nan))
    apart = n * (n - 1) // 2 - len(ends) - found.n_joined_unscored - int((~inside).sum())
    if n_unscored and apart:

        def of_all(m: int) -> Positions:
            pairs = rng.integers(n, size=(m, 2))
            return pairs[cluster[pairs[:, 0]] != cluster[pairs[:, 1]]]

        some = _some_new(of_all, min(apart, n_unscored), np.concatenate([taken, known]), n)
        yield _Stratum(False, False, int(sizes.max()), apart, found.unscored, 0.0, some, np.full(len(some), np.nan))


def _codes(ends: Positions, n: int) -> Positions:
    """A number (m,) for each unordered pair of n records."""
    return ends.min(axis=1, initial=n) * n + ends.max(axis=1, initial=0)


def _some_new(draw: Callable[[int], Positions], number: int, taken: Positions, n: int) -> Positions:
    """Distinct pairs (number, 2), drawn until there are enough that are not taken."""
    found = np.empty((0, 2), np.int64)
    while len(found) < number:
        found = np.concatenate([found, draw(2 * number)])
        _, first = np.unique(_codes(found, n), return_index=True)
        found = found[np.sort(first)]
        found = found[~np.isin(_codes(found, n), taken)]
    return found[:number]


def _numbers(strata: list[_Stratum], found: ScoredLinks, n: int) -> Positions:
    """Number of pairs to draw of each stratum."""
    pairs = np.array([one.n_pairs for one in strata])
    wrong, missed = found.expected_errors
    matches = max(found.n_joined - wrong, 1.0)
    recall = matches / (matches + missed)
    change = {True: np.hypot(1.0 / max(found.n_joined, 1), (1 - recall) / matches), False: recall / (matches + missed)}
    spread = np.array([np.sqrt(max(one.score * (1 - one.score), _SURE**2)) for one in strata])
    wanted = pairs * spread * np.array([change[one.joined] for one in strata])
    numbers = np.minimum(pairs, _LEAST)
    while (left := n - numbers.sum()) > 0 and (open_ := numbers < pairs).any():
        more = np.floor(left * np.where(open_, wanted, 0.0) / wanted[open_].sum()).astype(np.int64)
        if not more.any():
            more[np.argmax(np.where(open_, wanted / (numbers + 1), -1.0))] = 1
        numbers = np.minimum(pairs, numbers + more)
    return numbers


def audit(
    draws: Any,
    partition: Any = None,
    *,
    n: int = 300,
    n_unscored: int = 0,
    fields: pd.DataFrame | None = None,
    random_seed: RandomSeed = None,
) -> Audit:
    """Draw pairs for a clerk, whose answers say how many of the joined pairs are right and how many matches are missed.

    Parameters
    ----------
    draws : ScoredPairs, PairsSummary, or scored pairs as :func:`as_pair_similarity` takes them
        Scored pairs of records.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Clusters of the records; by default those of `draws` if these are a summary.
    n : int
        Number of pairs to draw among those that were scored or are joined.
    n_unscored : int
        Number of pairs to draw besides among those that were neither scored nor joined. Matches among these are rare,
        so it takes many.
    fields : DataFrame, optional
        Fields of the records, by which a clerk decides: a row for each, by its name in the index. The sample has them
        as columns ``{field}_first`` and ``{field}_second``.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    Audit
        The sample; its method `answered` takes the answers.

    Raises
    ------
    ValueError
        If `draws` are no scored pairs, a number is negative, or `fields` lacks a record.

    See Also
    --------
    links : Expected precision and recall, by the scores alone.
    ScoredLinks.review : Decisions whose answers change the partition most; no sample.

    Notes
    -----
    Pairs are in strata: joined in clusters of two records, joined in larger ones, apart, and joined without a score.
    Each of the first three is divided by score, such that the sums of s = sqrt(max(p (1 - p), 0.01)) are equal. A
    stratum h of N_h pairs gets n_h draws, at least five: in proportion to N_h s_h times what a pair changes of
    precision and recall at the scores. Pairs that constraints decide are not drawn.

    With y_h the share of matches among the answers of stratum h, the number of matches is sum_h N_h y_h [1]_.

        precision = matches joined / pairs joined,   recall = matches joined / (matches joined + matches apart).

    The variance of y_h is (1 - n_h / N_h) q_h (1 - q_h) / n_h, where q_h has one answer more, the mean score of the
    stratum, from 0.001 to 0.999: a stratum without a match is not without error. Recall is linearized. Intervals are
    Wilson's, for as many answers of a simple sample as give this variance [2]_.

    References
    ----------
    .. [1] Horvitz and Thompson (1952), Journal of the American Statistical Association 47(260), 663-685.
       https://doi.org/10.1080/01621459.1952.10483446
    .. [2] Korn and Graubard (1998), Survey Methodology 24(2), 193-201.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity(pc.load_example("pairs"))
    >>> best = pc.consensus_partition(pairs, random_seed=1, progressbar=False)
    >>> audit = pc.audit(pairs, best, n=100, random_seed=1)
    >>> person = pc.load_example("persons")["person"]
    >>> answers = person[audit.sample["first"]].values == person[audit.sample["second"]].values
    >>> audit.answered(answers).to_dataframe().round(2)
                       estimate   low  high
    precision              0.91  0.83  0.95
    recall of scored       0.93  0.79  0.98
    B-cubed precision      0.96  0.92  0.98
    """
    check_count("n", n)
    source, partition = as_source(draws), partition_of(draws, partition)
    if not isinstance(source, ScoredPairs):
        raise ValueError("`draws` must be scored pairs of records, by as_pair_similarity(table); got draws.")
    if n_unscored < 0:
        raise ValueError(f"`n_unscored` must be 0 or more; got {n_unscored}.")
    found, rng = links(source, partition), as_generator(random_seed)
    strata = list(_strata_of(found, n, n_unscored, rng))
    if not strata:
        raise ValueError("`draws` must have pairs that constraints do not decide; got none.")
    asked = [k for k, one in enumerate(strata) if one.joined or one.scored]
    numbers = np.array([len(one.ends) for one in strata])
    numbers[asked] = _numbers([strata[k] for k in asked], found, n)
    drawn = [rng.choice(len(one.ends), m, replace=False) for one, m in zip(strata, numbers.tolist(), strict=True)]
    order = rng.permutation(int(numbers.sum()))
    ends = np.concatenate([one.ends[own] for one, own in zip(strata, drawn, strict=True)])[order]
    scores = np.concatenate([one.scores[own] for one, own in zip(strata, drawn, strict=True)])[order]
    stratum = np.repeat(np.arange(len(strata)), numbers)[order]
    table = pd.DataFrame(
        {
            "joined": [one.joined for one in strata],
            "scored": [one.scored for one in strata],
            "largest": [one.largest for one in strata],
            "score": [one.score for one in strata],
            "records": [one.records for one in strata],
            "n_pairs": [one.n_pairs for one in strata],
            "n_drawn": numbers,
        },
        pd.RangeIndex(len(strata), name="stratum"),
    )
    named = named_ends(found.cluster, found.names, *ends.T)
    sample = pd.DataFrame(
        {
            "first": named["first"],
            "second": named["second"],
            "probability": scores,
            "joined": table["joined"].to_numpy()[stratum],
            "stratum": stratum,
            "inclusion": (table["n_drawn"] / table["n_pairs"]).to_numpy()[stratum],
        }
    )
    if fields is not None:
        for end in ("first", "second"):
            lacking = ~sample[end].isin(fields.index)
            if lacking.any():
                raise ValueError(
                    f"`fields` must have a row for each record; {sample[end][lacking].iloc[0]!r} is missing."
                )
            own = fields.loc[sample[end]].add_suffix(f"_{end}").reset_index(drop=True)
            sample = pd.concat([sample, own], axis=1)
    return Audit(sample, table, found, ends, scores)
