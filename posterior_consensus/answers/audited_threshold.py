"""A pair threshold by the answers of an audit: precision, recall and F1 of the partitions along it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from posterior_consensus.answers.loss_parameter import LossPath
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.answers.stratified import LEVEL, Share, StratifiedAnswers
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Floats, Positions

_UNKNOWN = 0.5  # share of matches among pairs that another partition decides the other way, before their answers
_RATES = ("precision", "recall", "f1")


@dataclass(frozen=True, eq=False, repr=False)
class AuditedThreshold(display.Shown):
    """A pair threshold for recalibrated scores, chosen by an audit; made by :meth:`AuditedLinks.threshold`.

    Attributes
    ----------
    tau : float
        The threshold.
    precision : float or None
        Least precision that was asked for, or None.
    table : pandas.DataFrame
        A row for each threshold tried: `n_clusters`; `precision`, `recall` and `f1` with the ends of their 95%
        intervals, such as `f1_low`; and `gain`, the F1 beyond that of the partition audited, with `gain_low` and
        `gain_high`.
    """

    _no_figure = "its numbers are in table"

    tau: float
    precision: float | None
    table: pd.DataFrame

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the thresholds.

        Returns
        -------
        pandas.DataFrame
            `table`.
        """
        return self.table

    @property
    def gain(self) -> float:
        """F1 at the threshold, less that of the partition audited."""
        return self._chosen["gain"]

    @property
    def gain_interval(self) -> tuple[float, float]:
        """Its 95% interval, of differences on the same pairs."""
        return self._chosen["gain_low"], self._chosen["gain_high"]

    @property
    def _chosen(self) -> dict[str, float]:
        """The row of the threshold."""
        return dict(zip(self.table.columns, self.table.loc[[self.tau]].to_numpy(np.float64)[0].tolist(), strict=True))

    def _parts(self) -> display.Parts:
        row = self._chosen
        lines = [
            (name, f"{row[column]:.3g}, 95% interval {row[f'{column}_low']:.3g} to {row[f'{column}_high']:.3g}")
            for name, column in zip(("gain in F1", "precision", "recall", "F1"), ("gain", *_RATES), strict=True)
        ]
        if not row["gain_low"] > 0:
            lines.insert(1, ("", "the answers do not show that it is better than the partition audited"))
        tried = f"{display.counted(len(self.table), 'threshold')} tried; the answers that judge it chose it"
        lines.append(("of", f"{tried}, which favours its precision, recall and F1"))
        at = "" if self.precision is None else f", at a precision of {self.precision:g}"
        shown = self.table[["n_clusters", *_RATES, "gain", "gain_low"]]
        return f"AuditedThreshold: tau {self.tau:.3g} for recalibrated scores{at}", lines, shown


def audited_threshold(
    links: ScoredLinks,
    of_link: Positions,
    strata: pd.DataFrame,
    sample: tuple[Positions, Positions, Floats],
    shares: StratifiedAnswers,
    path: LossPath,
    precision: float | None,
) -> AuditedThreshold:
    """Choose among the partitions of a path; a sample is ends (m, 2), strata (m,) and answers (m,)."""
    rates = _Rates(links, of_link, strata, sample, shares)
    rows = [rates.of(labels) for labels in path.partitions.values]
    table = pd.DataFrame(rows, pd.Index(path.table["tau"].values, name="tau"))
    table.insert(0, "n_clusters", path.table["n_clusters"].values)
    allowed = table if precision is None else table[table["precision"] >= precision]
    if not len(allowed):
        raise ValueError(
            f"`precision` must be one that a threshold reaches by the answers; got {precision:g}, the greatest is "
            f"{table['precision'].max():.3g}."
        )
    best = allowed["gain_low"].fillna(-np.inf).to_numpy().argmax()
    return AuditedThreshold(float(allowed.index.to_numpy()[best]), precision, table)


class _Rates:
    """Rates of other partitions: each stratum is divided once more by what a partition does with its pairs."""

    def __init__(
        self,
        links: ScoredLinks,
        of_link: Positions,
        strata: pd.DataFrame,
        sample: tuple[Positions, Positions, Floats],
        shares: StratifiedAnswers,
    ) -> None:
        self._links, self._of_link, self._sample, self._centre = links, of_link, sample, shares.centre
        self._was = np.repeat(strata["joined"].to_numpy(), 2)  # of each cell: stratum x whether the partition joins
        self._in_frame = self._was | np.repeat(strata["scored"].to_numpy(), 2)
        own = strata["joined"] & ~strata["scored"]
        self._unscored = own.to_numpy().nonzero()[0]  # the stratum of pairs joined without a score, if there is one
        self._known = int(links.decided["together"].values.sum())
        n_unscored = int(strata["n_pairs"][own].sum())
        self._n_listed = links.n_joined_unscored - n_unscored  # decided pairs without a score, joined in all partitions

    def of(self, labels: Labels) -> dict[str, float]:
        """Precision, recall and F1 of a partition, with intervals, and its gain in F1."""
        ends, stratum, match = self._sample
        is_joined = np.tile([False, True], self._centre.size)
        cells = StratifiedAnswers(
            2 * stratum + (labels[ends[:, 0]] == labels[ends[:, 1]]),
            match,
            self._numbers(labels),
            np.repeat(self._centre, 2),
            np.where(is_joined == self._was, np.repeat(self._centre, 2), _UNKNOWN),
        )
        sizes = np.bincount(labels)
        n_joined, n_before = (sizes * (sizes - 1.0)).sum() / 2, self._links.n_joined
        joined, before = is_joined & self._in_frame, self._was
        inside, was, matches = (np.array(cells.totals(one)) + self._known for one in (joined, before, self._in_frame))
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = inside / n_joined, inside / matches
            f1, f1_before = 2 * inside / (n_joined + matches), 2 * was / (n_before + matches)
            of_f1 = (2.0 * joined - f1[1] * self._in_frame) / (n_joined + matches[1])
            of_f1_before = (2.0 * before - f1_before[1] * self._in_frame) / (n_before + matches[1])
            found = {
                "precision": Share(precision[0], cells.error(joined) / n_joined, precision[1]),
                "recall": Share(recall[0], cells.error((joined - recall[1] * self._in_frame) / matches[1]), recall[1]),
                "f1": Share(f1[0], cells.error(of_f1), f1[1]),
            }
        row: dict[str, float] = {}
        for name, share in found.items():
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), (share.value, *share.interval), strict=True))
        gain, half = f1[0] - f1_before[0], ndtri((1 + LEVEL) / 2) * cells.error(of_f1 - of_f1_before)
        return row | {"gain": gain, "gain_low": gain - half, "gain_high": gain + half}

    def _numbers(self, labels: Labels) -> npt.NDArray[np.int64]:
        """Number of pairs in each cell."""
        first, second = (self._links.pairs[end].values for end in ("first", "second"))
        joins, free = labels[first] == labels[second], self._of_link >= 0
        numbers = np.bincount((2 * self._of_link + joins)[free], minlength=2 * self._centre.size)
        if self._unscored.size:
            cluster = self._links.cluster.values.astype(np.int64)
            _, both = np.unique(cluster * (labels.max() + 1) + labels, return_counts=True)
            n_both = int((both * (both - 1)).sum()) // 2
            n_joined = n_both - int((joins & self._links.joined).sum()) - self._n_listed
            n_all = self._links.n_joined_unscored - self._n_listed
            numbers[2 * self._unscored[0]], numbers[2 * self._unscored[0] + 1] = n_all - n_joined, n_joined
        return numbers
