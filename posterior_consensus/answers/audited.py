"""An audit of clusters of records, and the error rates that the answers give."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.answers.audited_rates import UNKNOWN, AuditedRates, Rate
from posterior_consensus.answers.audited_threshold import AuditedThreshold, audited_threshold
from posterior_consensus.answers.loss_parameter import loss_path
from posterior_consensus.answers.samples_of_pairs import answers_on
from posterior_consensus.answers.score_curve import matches_by_curve
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.answers.strata import of_equal_spread
from posterior_consensus.answers.stratified import LEVEL, Share, StratifiedAnswers
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import RandomSeed, check_share

_OF_ALL = "recall of all"
_PARTS = 3  # of a stratum of pairs apart, for the curve of the scores


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
    _of_link: Positions  # stratum of each pair of `links`, -1 where constraints decide

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
        return AuditedLinks(self, answers_on(self.sample, answers))

    def _parts(self) -> display.Parts:
        lines = []
        for name, chosen in (("joined", self.strata["joined"]), ("apart", ~self.strata["joined"])):
            numbers = self.strata.loc[chosen, ["n_drawn", "n_pairs"]].sum()
            lines.append((name, f"{numbers['n_drawn']:,} of {numbers['n_pairs']:,} pairs"))
        lines.append(("next", "answer whether each pair of `sample` is a match, and pass the answers to `answered`"))
        return f"Audit: {display.counted(len(self.sample), 'pair')} in {len(self.strata)} strata", lines, self.strata


@dataclass(frozen=True, eq=False, repr=False)
class AuditedLinks(AuditedRates):
    """Error rates of a partition of records by an audit; made by :meth:`Audit.answered`.

    Attributes
    ----------
    audit : Audit
        The sample.
    match : numpy.ndarray of shape (n_sample,), dtype float64
        Answers in the order of the sample: 1 for a match, 0 for none, NaN where missing.
    """

    _recall = "recall of scored"

    audit: Audit
    match: Floats

    @property
    def recall_of_all(self) -> float:
        """Share of joined pairs among all matches; NaN unless pairs that were not scored were drawn."""
        return self._rates.get(_OF_ALL, UNKNOWN)[0]

    @property
    def recall_of_all_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates.get(_OF_ALL, UNKNOWN)[1:]

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
        source, scores = self.audit.links.source, self._recalibrated()
        new = [self.audit._ends[self.match == value] for value in (1, 0)]
        old = source.constraints.must_link, source.constraints.cannot_link
        must, cannot = (np.concatenate(pair) for pair in zip(old, new, strict=True))
        return replace(scores, constraints=replace(source.constraints, must_link=must, cannot_link=cannot))

    def _recalibrated(self) -> ScoredPairs:
        """Scores that agree with the answers."""
        from sklearn.isotonic import IsotonicRegression  # takes a second to import

        sample, source = self.audit.sample, self.audit.links.source
        known = ~np.isnan(self.match) & sample["probability"].notna().to_numpy()
        scores, weights = sample["probability"].to_numpy()[known], 1.0 / sample["inclusion"].to_numpy()[known]
        ends = np.array([scores.min(), scores.max()])
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(
            np.concatenate([scores, ends]),
            np.concatenate([self.match[known], ends]),
            sample_weight=np.concatenate([weights, np.full(2, weights.mean())]),
        )
        scored = source.scored.copy()
        scored.data = fitted.predict(scored.data)
        return replace(source, scored=scored)

    def threshold(
        self,
        precision: float | None = None,
        *,
        values: npt.ArrayLike | None = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
    ) -> AuditedThreshold:
        """Choose a pair threshold for recalibrated scores: the one whose gain in F1 the answers show best.

        Parameters
        ----------
        precision : float in (0, 1], optional
            Least precision of the joined pairs, by its estimate; its interval may begin below.
        values : array_like, optional
            Thresholds to try in (0, 1), by default 0.05, 0.1, ..., 0.95. Each is a search.
        random_seed : int, Generator, SeedSequence or None
            The same seed gives the same result.
        progressbar : bool
            Whether to show progress if the work takes more than a second.

        Returns
        -------
        AuditedThreshold
            The threshold, and precision, recall and F1 of all that were tried.

        Raises
        ------
        ValueError
            If a value is out of range, or the estimate reaches `precision` at no threshold.

        Notes
        -----
        The partitions are those of :func:`loss_path` for recalibrated scores, without the answers as constraints, on
        which these would be right by construction. Each stratum is divided into the pairs that a partition joins and
        those that it separates, whose numbers are known. Pairs that it decides as before get one answer more, the share
        of their stratum, and others a half, as they are unlike the rest of their stratum. Recall and F1 are among pairs
        that were scored or are joined in the partition audited, by shares of strata, without the curve of the scores
        that `recall` has. A pair that was neither counts as no match.

        The threshold has the greatest low end of the interval of its gain in F1, of differences on the same pairs. In
        simulations, this interval held for about 0.95 of the thresholds chosen. Those of precision, recall and F1 do
        not allow for the choice, and held for 0.80 to 1.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> pairs = pc.as_pair_similarity(pc.load_example("pairs"))
        >>> best = pc.consensus_partition(pairs, random_seed=1, progressbar=False)
        >>> audit = pc.audit(pairs, best, n=300, random_seed=1)
        >>> person = pc.load_example("persons")["person"]
        >>> audited = audit.answered(person[audit.sample["first"]].values == person[audit.sample["second"]].values)
        >>> chosen = audited.threshold(values=[0.3, 0.5, 0.7], random_seed=1, progressbar=False)
        >>> chosen.tau
        0.5
        """
        if precision is not None:
            check_share("precision", precision)
        path = loss_path(
            self._recalibrated(), loss="binder", values=values, random_seed=random_seed, progressbar=progressbar
        )
        audit = self.audit
        sample = audit._ends, audit.sample["stratum"].to_numpy(), self.match
        return audited_threshold(audit.links, audit._of_link, audit.strata, sample, self._shares, path, precision)

    @cached_property
    def _rates(self) -> dict[str, Rate]:
        unseen = (~self.audit.strata["joined"] & ~self.audit.strata["scored"]).to_numpy()
        rates = {"precision": self._precision.row, self._recall: self._recall_among(np.zeros_like(unseen))}
        if unseen.any() and (self._shares.number[unseen] > 0).all():
            rates[_OF_ALL] = self._recall_among(unseen)
        return rates | {"B-cubed precision": self._bcubed.row}

    @cached_property
    def _shares(self) -> StratifiedAnswers:
        """Shares of matches in the strata."""
        strata = self.audit.strata
        return StratifiedAnswers(
            self.audit.sample["stratum"].to_numpy(), self.match, strata["n_pairs"], strata["score"]
        )

    @property
    def _precision(self) -> Share:
        number = self.audit.links.n_joined
        if not number:
            return Share(np.nan, np.nan, np.nan)
        joined = self.audit.strata["joined"].to_numpy()
        value, near = ((one + self._known) / number for one in self._shares.totals(joined))
        return Share(value, self._shares.error(joined) / number, near)

    def _recall_among(self, unseen: Flags) -> Rate:
        """Recall by posteriors of the matches apart, strata `unseen` included, and an error of the matches joined."""
        shares, joined, rng = self._shares, self.audit.strata["joined"].to_numpy(), np.random.default_rng(0)
        apart = self._matches_apart(rng)
        matches, error = shares.totals(joined)[0] + self._known, shares.error(joined)
        inside = np.clip(rng.normal(matches, error, apart.size), 0, self.audit.links.n_joined)
        with np.errstate(invalid="ignore"):
            value = np.median(inside / (inside + apart + shares.totals(unseen)[0]))
            drawn = inside / (inside + apart + shares.draws(unseen, apart.size, rng))
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(value), float(np.minimum(low, value)), float(np.maximum(high, value))

    def _matches_apart(self, rng: np.random.Generator) -> Integers:
        """Numbers of matches (n_draws,) among the scored pairs apart; strata are divided by score for the curve."""
        audit, scores = self.audit, self.audit.links.pairs["probability"].values
        sample, known = audit.sample, ~np.isnan(self.match)
        parts, number, matches = list[Floats](), list[int](), list[int]()
        for stratum in np.flatnonzero(~audit.strata["joined"] & audit.strata["scored"]).tolist():
            every = np.sort(scores[audit._of_link == stratum])
            least = np.unique([every[own[0]] for own in of_equal_spread(np.arange(every.size), every, _PARTS)])
            answered = known & (sample["stratum"] == stratum).to_numpy()
            part = np.searchsorted(least, sample["probability"].to_numpy()[answered], side="right") - 1
            number += np.bincount(part, minlength=least.size).tolist()
            matches += np.bincount(part, self.match[answered], least.size).astype(int).tolist()
            parts += np.split(every, np.searchsorted(every, least[1:]))
        return matches_by_curve(parts, np.array(number, np.intp), np.array(matches, np.intp), rng)

    @property
    def _bcubed(self) -> Share:
        """(1 / n) sum over clusters C of 1 + (2 / |C|) matches in C, by ratios of sums of 2 / |C| in each stratum."""
        links, strata, shares = self.audit.links, self.audit.strata, self._shares
        cluster = links.cluster.values
        sizes = np.bincount(cluster)
        weights = np.where(self.audit.sample["joined"], 2.0 / sizes[cluster[self.audit._ends[:, 0]]], 0.0)
        by, known = self.audit.sample["stratum"].to_numpy(), ~np.isnan(self.match)
        matched, drawn, square = (
            np.bincount(by[known], one[known], len(strata)) for one in (weights * self.match, weights, weights**2)
        )
        share = np.divide(matched, drawn, out=shares.share.copy(), where=drawn > 0)
        total = strata["records"].to_numpy() / cluster.size
        # The variance is of a mean of equal weights.
        unequal = np.divide(square * shares.number, drawn**2, out=np.ones(len(strata)), where=drawn > 0)
        must = links.decided["first"].values[links.decided["together"].values.astype(np.bool_)]
        sure = (sizes.size + (2.0 / sizes[cluster[must]]).sum()) / cluster.size
        error = np.sqrt((total**2 * shares.spread * unequal).sum())
        return Share(float(sure + total @ share), float(error), float(sure + total @ shares.centre))

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
