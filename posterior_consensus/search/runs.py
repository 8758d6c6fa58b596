"""The runs of a search: from which starts, where each ended, and what restarts from the best of them add.

`policy.next_step` chooses the next step, `Runs` takes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_rows, distinct_rows
from posterior_consensus.kernels.records import ZEALOUS
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.forms import SMALL, FormOfRuns, Found, Uniforms
from posterior_consensus.search.policy import Allowed, Progress, Step, next_step
from posterior_consensus.search.restarts import changes

_FEW = 12  # items of which every two are moved together at the end
_ENDS_TRIED = 4  # partitions in which that is done
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
        reached = "reached this loss"
        runs, tried = display.counted(len(kinds), "search", "es"), display.counted(self.n_perturbations, PERTURBATION)
        if self.sample is not None:
            runs += f" among {self.sample[0]:,} items, chosen at random,"
            reached = "ended at the partition that was then extended to all"
        elif len(set(kinds)) > 1:
            runs += f" (from starts of {len(set(kinds))} kinds)"
        if PERTURBATION in self.kinds:
            return f"none of {runs} {reached}; {tried} of the best partitions did"
        words = f"{self.n_starts_at_best} of {runs} {reached}"
        return words + (f"; {tried} found no smaller loss" if self.n_perturbations else "")


class Runs:
    """The runs so far."""

    def __init__(self, form: FormOfRuns, executor: Executor, source: PairSource, rng: np.random.Generator) -> None:
        self._form, self.executor, self._source, self._rng = form, executor, source, rng
        self.values: list[float] = []
        self.kinds: list[str] = []  # of start, of each run
        self.n_perturbations = 0
        self.tally = np.zeros(6, np.int64)
        self._ends: dict[bytes, Found] = {}  # where searches from these partitions end
        self._elite: list[Found] = []  # from which restarts begin
        self._is_rearranged = False
        self._in_vain = 0  # restarts since the last gain
        self._changed = changes(self._elite, form.companions, form.is_sum, rng)

    def follow(self, allowed: Allowed, given: list[Labels], progressbar: bool) -> None:
        """Run from given partitions and from a tree; then take the next steps until none is left."""
        with waiting("Greedy search", progressbar=progressbar):
            self.start_from(given, "given")
            (cuts,) = self.executor.results(self._form.cuts, [()])
            self.start_from(cuts, "tree")
            while not (self._ends and self.executor.stopped):
                step, number = next_step(allowed, self._progress())
                if step is Step.RUN:
                    self._run(min(number, self._form.at_once))
                elif step is Step.REARRANGE:
                    self._rearrange()
                elif step is Step.RESTART:
                    self._restart(number)
                else:
                    return

    def start_from(self, partitions: list[Labels], kind: str) -> None:
        """Run from these partitions."""
        self._polish(partitions)
        self._count([self._ends[labels.tobytes()].value for labels in partitions], kind)

    def _progress(self) -> Progress:
        at_best = self._at_best()
        operations = self._form.operations(int(self.best.labels.max()) + 1) if self._is_rearranged else 0.0
        in_vain = len(self.values) - 1 - at_best[0] if self._form.is_nonlinear and at_best else 0
        n_runs = self.kinds.count("allocation")
        is_rearranged, n_restarts = self._is_rearranged, self.n_perturbations
        return Progress(n_runs, len(at_best), in_vain, is_rearranged, n_restarts, self._in_vain, operations)

    def _run(self, number: int) -> None:
        """Run `number` times, in turn from a random order of the items and from a draw, beginning with an order.

        A search over the similarity matrix has random orders only.
        """
        calls = [(*self._randomness(), run % 2 == 1) for run in range(number)]
        explored = self._results(self._form.explore, calls)
        if self._form.explores_all:  # its ends need no polish
            self._ends |= {found.labels.tobytes(): found for found in explored}
        partitions = [found.labels for found in explored]
        if self.executor.stopped:  # one result is needed; tables of many clusters for more would take seconds
            partitions = [] if self.values else partitions[:1]
        self.start_from(partitions, "allocation")
        best = self.best
        if self._form.limits.fewest == 1 and is_less(best.in_one, best.value):
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
            self._polish([np.arange(n_items, dtype=np.int32), *drawn])
            if is_less(self.best.value, before):
                self._count([self.best.value], "draw")
                at_best = self._at_best()
        while not self.executor.stopped:
            best = self.best
            if not self._form.explores_all:
                (other,) = self._results(self._form.rearrange, [(best.labels, *self._randomness())])
                if other.tally[ZEALOUS:].any():
                    self._polish([other.labels])
            if few and not self.executor.stopped:
                for found in self._best_ends(_ENDS_TRIED):
                    self._polish(_changed_by_twos(found.labels))
            if not is_less(self.best.value, best.value):
                break
        for run in at_best:
            self.values[run] = self.best.value
        self._is_rearranged = True

    def _restart(self, number: int) -> None:
        """Perturb the best partitions at random and search from there, `number` times."""
        before = self.best.value
        self._elite[:] = self._best_ends(_ELITE)  # in place, as `changes` reads this list
        calls = [(*one, self._elite) for one in islice(self._changed, number)]
        found = self._results(self._form.restart, calls)
        self._ends |= {one.labels.tobytes(): one for one in found}
        self.n_perturbations += number
        self._in_vain = 0 if is_less(self.best.value, before) else self._in_vain + number

    def _best_ends(self, number: int) -> list[Found]:
        """The best few of the partitions at which searches ended."""
        ends = {found.labels.tobytes(): found for found in self._ends.values()}
        return sorted(ends.values(), key=lambda found: found.value)[:number]

    def _randomness(self) -> tuple[npt.NDArray[np.int64], Uniforms]:
        """An order of the items and numbers to sample draws by."""
        order = self._rng.permutation(self._source.n_items)
        return order, Uniforms(self._rng.random(SMALL), self._rng.random(), self._rng.random())

    @property
    def best(self) -> Found:
        """The best partition, the first of equals."""
        return min(self._ends.values(), key=lambda found: found.value)

    def _at_best(self) -> list[int]:
        """Which runs reached the minimum loss."""
        if not self._ends:
            return []
        least = self.best.value
        return [run for run, value in enumerate(self.values) if not is_less(least, value)]

    def info(self, draws: PairSource, loss: Loss, seconds: float) -> SearchInfo:
        """The record of the work, with expected losses in the loss's unit."""
        if not self._at_best():
            self._count([self.best.value], PERTURBATION)
        losses = (loss.scale(draws.n_items) * np.array(self.values)).tolist()
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

    def _polish(self, partitions: Iterable[Labels]) -> None:
        new = {labels.tobytes(): labels for labels in partitions if labels.tobytes() not in self._ends}
        polished = self._results(self._form.polish, [(labels,) for labels in new.values()])
        self._ends |= dict(zip(new, polished, strict=True))

    def _results(self, function: Callable[..., Found], calls: list[tuple[Any, ...]]) -> list[Found]:
        found = self.executor.results(function, calls)
        self.tally += sum(one.tally for one in found)
        return found


def is_less(value: float, other: float) -> bool:
    """Whether one of two losses is lower by more than rounding."""
    return value < other - SAME * max(1.0, abs(other))


def _changed_by_twos(labels: Labels) -> list[Labels]:
    """The partition after every two items have changed places or gone together into any cluster."""
    first, second = np.triu_indices(labels.size, 1)
    n_clusters = labels.max() + 1
    pairs = np.arange(first.size)
    changed = np.tile(labels, (n_clusters + 2, first.size, 1))
    for k in range(n_clusters + 1):
        changed[k, pairs, first] = changed[k, pairs, second] = k
    changed[-1, pairs, first], changed[-1, pairs, second] = labels[second], labels[first]
    rows, _ = canonical_rows(changed.reshape(-1, labels.size).astype(np.uint8), int(n_clusters) + 1)
    return list(rows[distinct_rows(rows)[0]].astype(np.int32))
