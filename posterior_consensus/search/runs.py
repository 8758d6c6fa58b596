"""The runs of a search: from which starts, when they stop, and what restarts from the best of them add.

After runs from given partitions and cuts of a tree, runs from random orders of the items and from draws follow. Then
the best partition is rearranged: its clusters are dissolved and split, one by one. Then restarts from perturbations of
the best partitions follow, until many in a row gained nothing, or until they took what the budget allows. All is
counted, nothing timed, so that a search ends at the same partition on every machine. `next_step` chooses the next
step, `SearchRuns` takes it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.ensemble.partitions import Labels, canonical_rows, distinct_rows
from posterior_consensus.kernels.tables import ZEALOUS
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.aliases import Integers
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.local_search import SMALL, LocalSearch, Optimum, Uniforms

_RESTARTS_A_CHECK = 8  # between two checks of their gain
_PATIENCE_IF_AGREED, _PATIENCE = 32, 64  # restarts in a row without a gain
Companions = Callable[[int, float], npt.NDArray[np.bool_]]

_CLUSTERS_A_PLACE = 16  # clusters for each of which one more place is perturbed, if several are
_MIXED = 0.1, 0.3  # shares of the items that move together
_FEW = 12  # items of which every two are moved together at the end
_OPTIMA_TRIED = 4  # partitions in which that is done
_LITTLE_WORK = 2e6  # items^3 x draws up to which that is done
_DRAWS_TRIED = 64  # draws from which a search of few items then starts too
_ELITE = 8  # best partitions from which restarts begin
_TALLIED = "n_scans", "n_moves", "n_merges", "n_chains", "n_zealous_updates", "n_splits"

PERTURBATION = "perturbation"
"""Kind of a run that began at a change of the best partitions before it."""


@dataclass(frozen=True, kw_only=True)
class SearchInfo(Info):
    """Record of a greedy search.

    Attributes
    ----------
    n_starts, n_starts_at_best : int
        Number of runs of all kinds, and of runs that reached the minimum expected loss. If few did, more runs may find
        a smaller loss.
    kinds : list of str
        What each run began with: "allocation" of the items in random order, or a draw in its place, "tree" (a cut of
        the tree of average linkage), "extremes" (one cluster), or "given". "draw" is the best of searches from many
        draws and from single items; it is listed with few items, if it was lower. "unconstrained" is where a search for
        any number of clusters ended, if a number was requested. "perturbation" is listed if no run ended as low as
        searches from random changes of the best partitions.
    n_perturbations : int
        Searches from random changes of the best partitions.
    n_scans, n_moves, n_merges, n_chains, n_zealous_updates, n_splits : int
        Number of scans over all items, and of moves of each kind.
    expected_losses : list of float
        That of each run; of the loss "pear", after each round.
    trace : list of float
        Smallest loss after each run or round.
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
        """Describe how many runs reached the minimum expected loss, from how many kinds of start."""
        kinds = [kind for kind in self.kinds if kind != PERTURBATION]
        reached, above = "reached this loss", "ended above this loss"
        runs, tried = display.counted(len(kinds), "search", "es"), display.counted(self.n_perturbations, PERTURBATION)
        if self.sample is not None:
            runs += f" among {self.sample[0]:,} items, chosen at random,"
            reached, above = "ended at the partition that was then extended to all", "ended at a larger loss"
        elif len(set(kinds)) > 1:
            runs += f" (from {len(set(kinds))} types of start)"
        if PERTURBATION in self.kinds:
            one = f"the {PERTURBATION}" if self.n_perturbations == 1 else f"at least one of {tried}"
            return f"{runs} {above}; {one} of the best partitions {reached}"
        words = f"{self.n_starts_at_best} of {runs} {reached}"
        return words + (f"; {tried} found no smaller loss" if self.n_perturbations else "")


class Searched(NamedTuple):
    """The best partition of a search, the record of its work, and a lower bound if the search found one.

    Labels of -1 are noise.
    """

    labels: Labels
    info: SearchInfo | ComponentsInfo
    lower_bound: float | None = None
    checksums: npt.NDArray[np.uint64] | None = None  # (n_items,): of each record's component, for scored pairs


class Allowed(NamedTuple):
    """What a search is allowed."""

    n_starts: int  # runs from random orders of the items and from draws
    n_agree: int  # runs at the minimum loss that end the runs
    n_perturbations: int | None  # restarts; None: as many as patience and budget allow
    budget: float  # elementary operations of all restarts: comparisons of a label with a cluster
    patience: int  # factor of the number of restarts without a gain


class Progress(NamedTuple):
    """How far a search is."""

    n_runs: int  # of those that `n_starts` limits
    n_at_best: int  # runs that reached the minimum loss
    runs_in_vain: int  # since the first at the minimum; 0 for linear losses, whose runs it does not end
    is_rearranged: bool  # whether the best partition was
    n_restarts: int
    restarts_in_vain: int  # since the last gain
    operations: float  # elementary operations of a restart


class Action(Enum):
    """What a search does next."""

    RUN = "run"
    REARRANGE = "rearrange"
    RESTART = "restart"
    END = "end"


def next_step(allowed: Allowed, progress: Progress) -> tuple[Action, int]:
    """Return the next kind of step, and the number of such steps."""
    agreed = progress.n_at_best >= allowed.n_agree
    if not progress.is_rearranged:
        left = allowed.n_starts - progress.n_runs
        enough = agreed or progress.runs_in_vain >= allowed.n_agree
        if progress.n_runs == 0 or (left > 0 and not enough):
            return Action.RUN, left
        return Action.REARRANGE, 1
    if allowed.n_perturbations is not None:
        left = allowed.n_perturbations - progress.n_restarts
    else:
        patience = allowed.patience * (_PATIENCE_IF_AGREED if agreed else _PATIENCE)
        affordable = int(allowed.budget / progress.operations)
        left = min(patience - progress.restarts_in_vain, affordable - progress.n_restarts)
    return (Action.RESTART, min(_RESTARTS_A_CHECK, left)) if left > 0 else (Action.END, 0)


class SearchRuns:
    """The runs so far."""

    def __init__(self, local: LocalSearch, executor: Executor, problem: Problem, rng: np.random.Generator) -> None:
        self._local, self.executor, self._problem, self._rng = local, executor, problem, rng
        self._source, self._loss = problem.source, problem.loss
        self.values: list[float] = []
        self.kinds: list[str] = []  # of start, of each run
        self.n_perturbations = 0
        self.tally = np.zeros(6, np.int64)
        self._optima: dict[bytes, Optimum] = {}  # where searches from these partitions end
        self._elite: list[Optimum] = []  # whose perturbations restarts begin from
        self._is_rearranged = False
        self._in_vain = 0  # restarts since the last gain
        several = isinstance(self._loss, PartitionLoss) and self._loss.is_linear
        self._perturbed = perturbations(self._elite, local.companions, several, rng)

    def follow(self, allowed: Allowed, given: list[Labels], progressbar: bool) -> None:
        """Run from given partitions and from a tree; then take the next steps until none is left."""
        with waiting("Greedy search", progressbar=progressbar):
            self.start_from(given, "given")
            (cuts,) = self.executor.results(self._local.cuts, [()])
            self.start_from(cuts, "tree")
            while not (self._optima and self.executor.stopped):
                action, number = next_step(allowed, self._progress())
                if action is Action.RUN:
                    self._run(min(number, self._local.runs_a_check))
                elif action is Action.REARRANGE:
                    self._rearrange()
                elif action is Action.RESTART:
                    self._restart(number)
                else:
                    return

    def start_from(self, partitions: list[Labels], kind: str) -> None:
        """Run from these partitions."""
        self._descend(partitions)
        self._count([self._optima[labels.tobytes()].value for labels in partitions], kind)

    def _progress(self) -> Progress:
        at_best = self._at_best()
        operations = self._local.operations(int(self.best.labels.max()) + 1) if self._is_rearranged else 0.0
        in_vain = len(self.values) - 1 - at_best[0] if not self._loss.is_linear and at_best else 0
        n_runs = self.kinds.count("allocation")
        is_rearranged, n_restarts = self._is_rearranged, self.n_perturbations
        return Progress(n_runs, len(at_best), in_vain, is_rearranged, n_restarts, self._in_vain, operations)

    def _run(self, number: int) -> None:
        """Run `number` times, in turn from a random order of the items and from a draw, beginning with an order.

        A search over the similarity matrix has random orders only.
        """
        calls = [(*self._randomness(), run % 2 == 1) for run in range(number)]
        begun = self._results(self._local.begin, calls)
        if self._local.always_rearranges:  # then they are at their end
            self._optima |= {one.labels.tobytes(): one for one in begun}
        partitions = [one.labels for one in begun]
        if self.executor.stopped:  # one result is needed; tables of many clusters for more would take seconds
            partitions = [] if self.values else partitions[:1]
        self.start_from(partitions, "allocation")
        best = self.best
        if self._local.limits.fewest == 1 and is_less(best.in_one, best.value):
            # Merges do not always reach the partition of one cluster, the answer where draws have little in common.
            self.start_from([np.zeros(self._source.n_items, np.int32)], "extremes")

    def _rearrange(self) -> None:
        """Dissolve and split the best partition's clusters one by one, and continue from the result.

        Runs that ended at the best partition end where this does.
        """
        at_best = self._at_best()
        n_items, n_draws = self._source.n_items, self._source.n_draws or 0
        few = n_items <= _FEW and n_items**3 * n_draws <= _LITTLE_WORK
        if few:
            before = self.best.value
            drawn = self._source.some_labels(_DRAWS_TRIED).astype(np.int32)
            self._descend([np.arange(n_items, dtype=np.int32), *drawn])
            if is_less(self.best.value, before):
                self._count([self.best.value], "draw")
                at_best = self._at_best()
        while not self.executor.stopped:
            best = self.best
            if not self._local.always_rearranges:
                (other,) = self._results(self._local.rearrange, [(best.labels, *self._randomness())])
                if other.tally[ZEALOUS:].any():
                    self._descend([other.labels])
            if few and not self.executor.stopped:
                for found in self._best_optima(_OPTIMA_TRIED):
                    self._descend(_changed_by_twos(found.labels))
            if not is_less(self.best.value, best.value):
                break
        for run in at_best:
            self.values[run] = self.best.value
        self._is_rearranged = True

    def _restart(self, number: int) -> None:
        """Perturb the best partitions at random and search from there, `number` times."""
        before = self.best.value
        self._elite[:] = self._best_optima(_ELITE)  # in place, as `perturbations` reads this list
        calls = [(*one, self._elite) for one in islice(self._perturbed, number)]
        found = self._results(self._local.restart, calls)
        self._optima |= {one.labels.tobytes(): one for one in found}
        self.n_perturbations += number
        self._in_vain = 0 if is_less(self.best.value, before) else self._in_vain + number

    def _best_optima(self, number: int) -> list[Optimum]:
        """The best few of the partitions at which searches ended."""
        ends = {found.labels.tobytes(): found for found in self._optima.values()}
        return sorted(ends.values(), key=lambda found: found.value)[:number]

    def _randomness(self) -> tuple[npt.NDArray[np.int64], Uniforms]:
        """An order of the items and numbers to sample draws by."""
        order = self._rng.permutation(self._source.n_items)
        return order, Uniforms(self._rng.random(SMALL), self._rng.random(), self._rng.random())

    @property
    def best(self) -> Optimum:
        """The best partition, the first of equals."""
        return min(self._optima.values(), key=lambda found: found.value)

    def _at_best(self) -> list[int]:
        """Which runs reached the minimum loss."""
        if not self._optima:
            return []
        least = self.best.value
        return [run for run, value in enumerate(self.values) if not is_less(least, value)]

    def info(self, seconds: float) -> SearchInfo:
        """The record of the work, with expected losses in the loss's unit."""
        if not self._at_best():
            self._count([self.best.value], PERTURBATION)
        losses = self._problem.losses(self.values)
        tally: dict[str, Any] = dict(zip(_TALLIED, self.tally.tolist(), strict=True))
        return SearchInfo(
            n_starts=len(self.values),
            n_starts_at_best=len(self._at_best()),
            kinds=self.kinds,
            n_perturbations=self.n_perturbations,
            **tally,
            expected_losses=losses,
            trace=np.minimum.accumulate(losses).tolist(),
            seconds=seconds,
            stopped=self.executor.stopped,
        )

    def _count(self, values: list[float], kind: str) -> None:
        self.values += values
        self.kinds += [kind] * len(values)

    def _descend(self, partitions: Iterable[Labels]) -> None:
        new = {labels.tobytes(): labels for labels in partitions if labels.tobytes() not in self._optima}
        optima = self._results(self._local.descend, [(labels,) for labels in new.values()])
        self._optima |= dict(zip(new, optima, strict=True))

    def _results(self, function: Callable[..., Optimum], calls: list[tuple[Any, ...]]) -> list[Optimum]:
        found = self.executor.results(function, calls)
        self.tally += sum(one.tally for one in found)
        return found


def is_less(value: float, other: float) -> bool:
    """Whether one of two losses is lower by more than rounding."""
    return bool(value < other - SAME * max(1.0, abs(other)))


def _changed_by_twos(labels: Labels) -> list[Labels]:
    """The partition after every two items have changed places or gone together into any cluster."""
    first, second = np.triu_indices(labels.size, 1)
    n_clusters = int(labels.max()) + 1
    pairs = np.arange(first.size)
    changed = np.tile(labels, (n_clusters + 2, first.size, 1))
    for k in range(n_clusters + 1):
        changed[k, pairs, first] = changed[k, pairs, second] = k
    changed[-1, pairs, first], changed[-1, pairs, second] = labels[second], labels[first]
    rows, _ = canonical_rows(changed.reshape(-1, labels.size).astype(np.uint8), int(n_clusters) + 1)
    return list(rows[distinct_rows(rows)[0]].astype(np.int32))


def without_gaps(labels: Integers) -> Labels:
    """Number the clusters from 0 on, in the order of their labels; -1 stays."""
    names, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes - int(names[0] < 0), np.int32)


def perturbations(
    elite: Sequence[Optimum], companions: Companions, several: bool, rng: np.random.Generator
) -> Iterator[tuple[Labels, npt.NDArray[np.intp]]]:
    """Give perturbed partitions without end, in which -1 stands for items to allocate, and an order of the items.

    They come from the first of the `elite`, the best, as often as from any of them; these are read anew for each.
    ``companions(i, u)`` are the items that item i is with in the draw at quantile u; or those whose similarity to it is
    above u, if there are no draws. Large partitions are perturbed in `several` places if the loss is a sum over
    clusters, as effects then add up.
    """
    for perturb in cycle((_gather, _mix, _dissolve)):
        one = elite[0 if rng.random() < 0.5 else int(rng.integers(len(elite)))]
        labels = one.labels.astype(np.int64)
        n_places = 1 + (int(labels.max()) // _CLUSTERS_A_PLACE if several else 0)
        for i in rng.integers(labels.size, size=n_places).tolist():
            perturb(labels, i, companions(i, rng.random()), rng)
        yield without_gaps(labels), rng.permutation(labels.size)


def _gather(labels: Integers, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Put an item's companions into a cluster of their own."""
    labels[near] = labels.max() + 1


def _mix(labels: Integers, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Give some items the clusters of others: allocation would put them back to where they were."""
    mixed = np.flatnonzero(rng.random(labels.size) < rng.choice(_MIXED))
    labels[mixed] = labels[rng.integers(labels.size, size=mixed.size)]


def _dissolve(labels: Integers, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Dissolve an item's cluster, and the cluster of a co-member that is now elsewhere."""
    others = np.flatnonzero(near & (labels != labels[i]))
    with_i = (labels == labels[i]) & (labels >= 0)
    if others.size:
        with_i |= labels == labels[rng.choice(others)]
    labels[with_i] = -1
