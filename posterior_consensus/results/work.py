"""Small records of the work of methods and bounds, one for each kind of work."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev


@dataclass(frozen=True, kw_only=True)
class Info:
    """A record of work: named numbers, words and lists of them."""

    def to_json(self) -> str:
        """Text for an attribute; :meth:`from_json` reads it."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"kind": type(self).__name__} | told)

    @staticmethod
    def from_json(text: str) -> Info:
        """Make the record again, of the kind that it was.

        Raises
        ------
        ValueError
            If the kind is not known.
        """
        told = json.loads(text)
        kind = told.pop("kind")
        kinds = {known.__name__: known for known in _with_kinds_below(Info)}
        if kind not in kinds:
            raise ValueError(f"`info` must be of a kind that is known; got {kind!r}. Import what defines it.")
        return kinds[kind](**told)


def _with_kinds_below(kind: type[Info]) -> list[type[Info]]:
    return [kind, *(one for below in kind.__subclasses__() for one in _with_kinds_below(below))]


@dataclass(frozen=True, kw_only=True)
class ClusterLimits(Info):
    """Numbers of clusters that a search was confined to; None where it was free."""

    n_clusters: int | None = None
    max_clusters: int | None = None


@dataclass(frozen=True, kw_only=True)
class Threshold(Info):
    """The pair threshold `tau` that was given, and the mean similarities of pairs `within` and `between` clusters."""

    tau: float
    within: float
    between: float


PERTURBATION = "perturbation"
"""Kind of a run that began at a change of the best partitions before it."""


@dataclass(frozen=True, kw_only=True)
class SearchInfo(Info):
    """What a greedy search tells.

    Attributes
    ----------
    n_starts, n_starts_at_best : int
        Runs, and how many of them ended at the least expected loss: where few did, more runs may find less.
    kinds : list of str
        What each run began with: "allocation" of the items in random order, "tree" (a cut of the tree of average
        linkage), "draw", "components" of the graph of pairs with a similarity above a half, "extremes" (one cluster,
        single items), "core" (one cluster and single items), "linear" (the end of a search for a linear loss), "given",
        or "perturbation", if no run ended as low as searches from random changes of the best partitions.
    n_perturbations : int
        Searches from random changes of the best partitions.
    n_scans, n_moves, n_merges, n_chains, n_zealous_updates, n_splits : int
        Times that all items were looked at, and moves of each kind that were made.
    expected_losses : list of float
        That of each run; of the loss "pear", after each round.
    trace : list of float
        The least so far after each run or round.
    seconds : float
    pair_threshold : float or None
        Of the Binder loss that the last search for "pear" went by.
    sample : list of int or None
        Items and draws on which the runs were, where these were a sample: their losses are those on it, and the best
        of them was then extended to all.
    stopped : str
        What ended the search before its runs did: "seconds", "interrupted" for Ctrl-C, or nothing.
    """

    n_starts: int
    n_starts_at_best: int
    kinds: list[str]
    n_perturbations: int
    n_scans: int
    n_moves: int
    n_merges: int
    n_chains: int
    n_zealous_updates: int
    n_splits: int
    expected_losses: list[float]
    trace: list[float]
    seconds: float
    pair_threshold: float | None = None
    sample: list[int] | None = None
    stopped: str = ""

    def agreement(self) -> str:
        """How many runs reached the least expected loss, from starts of how many kinds, in words."""
        kinds = [kind for kind in self.kinds if kind != PERTURBATION]
        reached = "reached this loss"
        runs = f"{len(kinds)} search{'es' * (len(kinds) != 1)}"
        if self.sample is not None:
            runs += f" among {self.sample[0]:,} items, chosen at random,"
            reached = "ended at the clustering that was then extended to all"
        elif len(set(kinds)) > 1:
            runs += f" (from starts of {len(set(kinds))} kinds)"
        if PERTURBATION in self.kinds:
            return f"none of {runs} {reached}; {self.n_perturbations} perturbations of the best did"
        words = f"{self.n_starts_at_best} of {runs} {reached}"
        return words + (f"; {self.n_perturbations} perturbations found none lower" if self.n_perturbations else "")


@dataclass(frozen=True, kw_only=True)
class CandidatesInfo(Info):
    """Record of a choice among candidates by their expected losses.

    Attributes
    ----------
    n_candidates : int
        Partitions among which the choice was: of "best_draw" the distinct draws, of "enumeration" all there are.
    """

    n_candidates: int


@dataclass(frozen=True, kw_only=True)
class NumbersInfo(Info):
    """Record of a method that chooses the number of clusters by the expected loss.

    Attributes
    ----------
    n_clusters_tried : list of int
    expected_losses : list of float
        That of the partition found for each of these numbers.
    linkage : str or None
        Of "hierarchical".
    """

    n_clusters_tried: list[int] | None = None
    expected_losses: list[float] | None = None
    linkage: str | None = None


@dataclass(frozen=True, kw_only=True)
class FitInfo(NumbersInfo):
    """Record of a method that improves an objective of its own, step by step.

    Attributes
    ----------
    objective : float
        Its value for the answer: expected distance ("align_and_vote"), expected Binder loss ("boem"), utility ("kcc"),
        summed impurity ("impurity"), log-likelihood ("lange_buhmann"), log-posterior density ("rpm_em"), squared
        distance to the PSM ("nmf").
    n_iter : int
        Steps to the answer.
    converged : bool
        Whether the steps came to an end by themselves.
    trace : list of float
        The objective on the way.
    objectives : list of float or None
        Of every start of "align_and_vote", "impurity" and "rpm_em".
    """

    objective: float
    n_iter: int
    converged: bool
    trace: list[float]
    objectives: list[float] | None = None


@dataclass(frozen=True, kw_only=True)
class KMeansInfo(FitInfo):
    """Record of "kcc": `utility` is the one that was maximised."""

    utility: str


@dataclass(frozen=True, kw_only=True)
class ImpurityInfo(FitInfo):
    """Record of "impurity": whether clusters count by size, and whether the least was found by enumeration."""

    weighted: bool
    enumerated: bool


@dataclass(frozen=True, kw_only=True)
class MovesInfo(FitInfo):
    """Record of "boem": `threshold` is the pair threshold of Binder's loss."""

    threshold: float


@dataclass(frozen=True, kw_only=True)
class PerturbationInfo(FitInfo):
    """Record of "rpm_em": `noise`, `error_rate` and `log_likelihood` are those of a :class:`PerturbationFit`."""

    noise: float
    error_rate: float
    log_likelihood: float


@dataclass(frozen=True, kw_only=True)
class PivotInfo(Info):
    """Record of "cc_pivot": the similarity to a pivot that was asked for, and the expected loss of each order."""

    threshold: float
    expected_losses: list[float]


@dataclass(frozen=True, kw_only=True)
class SeedsInfo(Info):
    """Record of "sccc".

    Attributes
    ----------
    threshold : float
        Largest similarity of two seeds of the answer: 1 - g / m for the gap g of m draws.
    n_components : int
        Number of stable components.
    thresholds : list of float
        Those tried with which there were enough seeds.
    n_clusters : list of int
        Number of clusters for each of them.
    expected_losses : list of float
        That of the partition for each of them.
    n_infeasible : int
        Number of those with which there were not.
    stability : float
        Averaged Jaccard index between the partitions of these thresholds.
    """

    threshold: float
    n_components: int
    thresholds: list[float]
    n_clusters: list[int]
    expected_losses: list[float]
    n_infeasible: int
    stability: float

    @property
    def mean_loss(self) -> float:
        """Mean of the expected losses."""
        return fmean(self.expected_losses)

    @property
    def spread(self) -> float:
        """Standard deviation of the expected losses."""
        return pstdev(self.expected_losses)


@dataclass(frozen=True, kw_only=True)
class BinderBoundInfo(Info):
    """Record of the bound for Binder's loss, and of the method "exact".

    Attributes
    ----------
    n_signatures : int
        Number of signatures: items that are together in all draws share one.
    n_packings, n_rounds, n_programs, n_branches : int
        Packings of triangles, rounds of dual ascent, linear programs solved, and branchings.
    n_steps : int
        Steps of the semidefinite relaxation, which is used where a gap is left.
    """

    n_signatures: int
    n_packings: int
    n_rounds: int
    n_programs: int
    n_branches: int
    n_steps: int


@dataclass(frozen=True, kw_only=True)
class VIBoundInfo(Info):
    """Record of the bound for VI.

    Attributes
    ----------
    n_merged_items : int
        Number of items after those that are together in all draws are merged.
    n_steps : int
        Steps of the augmented Lagrangian method.
    n_triangles : int
        Triangle inequalities with a Lagrange multiplier above 0.
    size_groups : list of int
        Largest size of each group of cluster sizes.
    """

    n_merged_items: int
    n_steps: int
    n_triangles: int
    size_groups: list[int]


@dataclass(frozen=True, kw_only=True)
class RelaxationInfo(NumbersInfo):
    """Record of the bound for the loss "within_variance", and of the method "sdp".

    Attributes
    ----------
    n_signatures : int
        Number of items after those that are together in all draws are merged.
    n_iter : int
        Steps of the alternating direction method of multipliers; for the answer's number of clusters.
    objectives, lower_bounds : list of float or None
        Of "sdp", for each number of clusters that was tried: "within_variance" of the partition that was found, and its
        lower bound.
    """

    n_signatures: int
    n_iter: int
    objectives: list[float] | None = None
    lower_bounds: list[float] | None = None


@dataclass(frozen=True, kw_only=True)
class MatchingInfo(Info):
    """Record of the bound for metrics: how many draws were matched, and how many at a time."""

    n_matched_draws: int
    n_at_once: int
