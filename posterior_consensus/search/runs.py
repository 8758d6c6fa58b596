"""The runs of a search: from which starts, where each ended, and what restarts from the best of them add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import draws_if_any
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_rows, distinct_rows
from posterior_consensus.kernels.records import ZEALOUS
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.search.forms import FormOfRatios, FormOfRuns, Found
from posterior_consensus.search.restarts import above_a_half, best_of_both, changes, cores
from posterior_consensus.search.trees import cut, tree

_SAME = 1e-10  # relative difference below which two runs reached the same loss
_FEW = 12  # items of which every two are moved together at the end
_ENDS_TRIED = 4  # partitions in which that is done
_LITTLE_WORK = 2e6  # items^3 x draws up to which that is done

_ELITE = 8  # best partitions from which restarts begin
_AT_ONCE = 8  # restarts between two looks at what they gained
_RESTARTS_AN_ITEM = 2
_MOST_ITEMS = 10_000  # up to which there are starts of other kinds and restarts
_LABELS = 60_000  # in the draws, from which on a search takes what it takes for each label alone
_MANY_CLUSTERS = 16  # from which on the better blocks of two partitions are put together
_SURE = 4  # kinds of start that suffice if all runs lead to one loss
_CELLS = 300_000  # items x draws x clusters of a draw, from which on there are no restarts: others take long there too
_CUTS = 4  # of a tree, to start from
_DRAWS, _DRAWN = 3, 64  # to start from, and for restarts
_CORES = 0.85, 0.6, 0.35  # shares of the items that are in one cluster, the others alone
_PRICES = 0.2, 0.5, 0.8  # of the sum of h over the sizes, in linear losses


PERTURBATION = "perturbation"
"""Kind of a run that began at a change of the best partitions before it."""


@dataclass(frozen=True, kw_only=True)
class SearchInfo(Info):
    """Record of a greedy search.

    Attributes
    ----------
    n_starts, n_starts_at_best : int
        Number of runs, and of runs that reached the minimum expected loss. If few did, more runs may find a smaller
        loss.
    kinds : list of str
        What each run began with: "allocation" of the items in random order, "tree" (a cut of the tree of average
        linkage), "draw", "components" of the graph of pairs with a similarity above a half, "extremes" (one cluster,
        single items), "core" (one cluster and single items), "linear" (the end of a search for a linear loss), "given",
        "unconstrained" (where a search for any number of clusters ended, if a number was requested), or "perturbation",
        if no run ended as low as searches from random changes of the best partitions.
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

    def __init__(self, form: FormOfRuns, executor: Executor, source: PairSource) -> None:
        self._form, self.executor, self._source = form, executor, source
        self._n_labels = source.n_items * (source.n_draws or source.n_items)
        draws = draws_if_any(source)
        self._n_drawn = _MANY_CLUSTERS if draws is None else np.mean(draws.n_clusters)
        self.values: list[float] = []
        self.kinds: list[str] = []  # of start, of each run
        self.n_perturbations = 0
        self.work = 0.0
        self.tally = np.zeros(6, np.int64)
        self._ends: dict[bytes, Found] = {}  # where searches from these partitions end
        self._begun: dict[bytes, float] = {}  # expected losses of partitions that searches on some of the draws led to

    def start_from(self, partitions: list[Labels], kind: str) -> None:
        """Run from these partitions."""
        self._polish(partitions)
        self._count([self._ends[labels.tobytes()].value for labels in partitions], kind)

    def start_from_trees(self) -> None:
        """Run from where a tree of the items leads, if the loss is not linear."""
        form = self._form.ratios
        if form is None:
            return
        (cuts,) = self.executor.results(form.cuts, [()])
        partitions = [found.labels for found in self._results(form.from_cut, [(cut,) for cut in cuts])]
        self._evaluate(form, partitions)
        self.start_from(partitions, "tree")

    def try_also(self, partitions: Iterable[npt.NDArray[Any]], kind: str) -> None:
        """Search from these partitions too, and count the one run that ends best if it is better than all before."""
        before = self.best.value
        self._polish([partition.astype(np.int32) for partition in partitions])
        if is_less(self.best.value, before):
            self._count([self.best.value], kind)

    def end_also(self, ends: list[Found], kind: str) -> None:
        """Count searches that ended here, which no restarts began from."""
        self._ends |= {found.labels.tobytes(): found for found in ends}
        self.tally += sum((found.tally for found in ends), np.zeros_like(self.tally))
        self._count([found.value for found in ends], kind)

    def run(self, n_starts: int, rng: np.random.Generator) -> None:
        """Run from as many random orders."""
        calls = [(*self._randomness(rng), run % 2 == 1) for run in range(n_starts)]
        explored = self._results(self._form.explore, calls)
        if self._form.explores_all:
            self._ends |= {found.labels.tobytes(): found for found in explored}
        partitions = [found.labels for found in explored]
        if self.executor.stopped:  # more tables of many clusters would take seconds
            self.start_from(partitions[: not self.values], "allocation")
        elif self._form.ratios:
            self._start_from_hopeful(self._form.ratios, partitions)
        else:
            self.start_from(partitions, "allocation")
        self._try_one_cluster()

    def _start_from_hopeful(self, form: FormOfRatios, partitions: list[Labels]) -> None:
        """Go on from those of these partitions that would become best if they gained as much as any before."""
        values = self._evaluate(form, partitions)
        if not self._begun.keys() & self._ends.keys():  # the ends may all be of given partitions
            self._polish([partitions[np.argmin(values)]])
        gains = [value - self._ends[key].value for key, value in self._begun.items() if key in self._ends]
        least = self.best.value + max(gains)
        self._polish([labels for labels, value in zip(partitions, values, strict=True) if value < least])
        ends = [self._ends.get(labels.tobytes()) for labels in partitions]
        self._count([end.value if end else value for end, value in zip(ends, values, strict=True)], "allocation")

    def _evaluate(self, form: FormOfRatios, partitions: list[Labels]) -> list[float]:
        """Expected losses of partitions at which searches on some of the draws ended."""
        new = {labels.tobytes(): labels for labels in partitions if labels.tobytes() not in self._begun}
        values = self.executor.results(form.value, [(labels,) for labels in new.values()])
        self._begun |= dict(zip(new, values, strict=True))
        return [self._begun[labels.tobytes()] for labels in partitions]

    def start_otherwise(self, rng: np.random.Generator) -> None:
        """Run from starts of other kinds, the cheapest first, as long as the search takes little."""
        others = ((kind, labels) for kind, starts in self._other_starts(rng) for labels in starts)
        while self.work <= self._least_work / 2 and not self.executor.stopped:
            kind, labels = next(others, ("", None))
            if labels is None:
                return
            if self.work + self._form.work_from(int(labels.max()) + 1) < self._least_work:
                self.start_from([labels], kind)

    def _other_starts(self, rng: np.random.Generator) -> Iterator[tuple[str, Iterable[Labels]]]:
        """Starts by kind, each made only when it is its turn; none that many merges would have to make allowed."""
        n_items, (fewest, most) = self._source.n_items, self._form.limits
        if fewest == 1:
            yield "extremes", [np.zeros(n_items, np.int32)] + [np.arange(n_items, dtype=np.int32)] * (most >= n_items)
        drawn = self._source.some_labels(_DRAWS).astype(np.int32)
        yield "draw", [labels for labels in drawn if labels.max() < most]
        if n_items == 1 or not self._form.has_matrix or 8 * n_items**2 > min(self._least_work, memory.budget()):
            return
        similarity = self._source.shared_similarity
        yield "components", [labels for labels in [above_a_half(similarity)] if labels.max() < most]
        form = self._form.ratios
        if form is None:
            numbers = np.unique(np.geomspace(fewest, min(most, max(2, self._source.most_clusters)), _CUTS).astype(int))
            yield "tree", cut(tree(similarity, "average"), numbers).astype(np.int32)
            return
        calls = [(*self._randomness(rng), price) for price in _PRICES]
        yield "linear", [found.labels for found in self._results(form.along_sizes, calls)]
        yield "core", [labels for labels in cores(similarity, _CORES) if labels.max() < most]

    @property
    def _for_little(self) -> float:
        """How much work of a search nobody minds: much if there are few labels."""
        return self._form.work_for_little * max(0.0, 1 - self._n_labels / _LABELS)

    @property
    def _least_work(self) -> float:
        """How much work a search takes at least; of many items each further one would take too long."""
        if self._source.n_items > _MOST_ITEMS:
            return 0.0
        return max(self._for_little, self._form.work_a_label * self._n_labels)

    def _number_of_restarts(self, spent: float) -> int:
        """How many restarts are next, after restarts that took so much work."""
        is_free = self._form.limits.fewest == 1  # a fixed number of clusters has more traps
        little = self._for_little / 2 * (max(0.0, 1 - self._n_labels * self._n_drawn / _CELLS) if is_free else 2.0)
        left = max(little - spent, self._least_work - self.work if self._for_little == 0 else 0.0)
        each = spent / self.n_perturbations if self.n_perturbations else self.work / len(self._ends)
        return max(0, min(_AT_ONCE, int(left / each)))

    def restart(self, rng: np.random.Generator, number: int | None) -> None:
        """Change the best partitions at random and search from there, so many times or as long as that takes little.

        If the loss is a sum over clusters, the best is then put together block by block.
        """
        before, began = self.best.value, self.work
        most = _RESTARTS_AN_ITEM * self._source.n_items if number is None else number
        is_sure = self.n_at_best == len(self.values) and len(set(self.kinds)) >= _SURE
        if number == 0 or (number is None and (is_sure or self._number_of_restarts(0.0) == 0)):
            return
        elite: list[Labels] = []
        fewest, largest = self._form.limits
        n_clusters = fewest if 1 < fewest == largest else None
        drawn = self._source.some_labels(_DRAWN)
        changed = changes(elite, drawn, self._form.companions, n_clusters, self._form.sums is not None, rng)
        while not self.executor.stopped:
            at_once = _AT_ONCE if number is not None else self._number_of_restarts(self.work - began)
            at_once = min(at_once, most - self.n_perturbations)
            if at_once == 0:
                break
            ends = self._best_ends(_ELITE)
            elite[:] = [found.labels for found in ends]
            calls = [(*one, ends) for one in islice(changed, at_once)]
            found = self._results(self._form.restart, calls)
            self.n_perturbations += len(calls)
            self._ends |= {one.labels.tobytes(): one for one in found}
            if self.best.labels.max() >= _MANY_CLUSTERS:
                self._put_together(found)
        if is_less(self.best.value, before):
            self._count([self.best.value], PERTURBATION)

    def _put_together(self, ends: list[Found]) -> None:
        """Take the best blocks of the best partition and of these ends, if the loss is a sum over clusters."""
        form = self._form.sums
        if form is None or form.limits.fewest > 1:
            return
        for end in ends:
            joint = best_of_both(self.best.labels, end.labels, form.terms)
            if joint.tobytes() not in self._ends and joint.max() < form.limits.most:
                self._polish([joint])

    def finish(self, rng: np.random.Generator, by_twos: bool) -> None:
        """Take the best partition's clusters apart, one by one, and go on from what that leads to.

        Runs that ended at the best partition end where this does.
        """
        at_best = self._at_best()
        while not self.executor.stopped:
            best = self.best
            if not self._form.explores_all:
                self._rearrange(best, rng)
            if by_twos and not self.executor.stopped:
                for found in self._best_ends(_ENDS_TRIED):
                    self._polish(_changed_by_twos(found.labels))
            if not is_less(self.best.value, best.value):
                break
        for run in at_best:
            self.values[run] = self.best.value

    def _best_ends(self, number: int) -> list[Found]:
        """The best few of the partitions at which searches ended."""
        ends = {found.labels.tobytes(): found for found in self._ends.values()}
        return sorted(ends.values(), key=lambda found: found.value)[:number]

    def _rearrange(self, found: Found, rng: np.random.Generator) -> None:
        (other,) = self._results(self._form.rearrange, [(found.labels, *self._randomness(rng))])
        if other.tally[ZEALOUS:].any():
            self._polish([other.labels])

    def _randomness(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """An order of the items and numbers to sample draws by."""
        return rng.permutation(self._source.n_items), rng.random(128)

    @property
    def best(self) -> Found:
        """The best partition, the first of equals."""
        return min(self._ends.values(), key=lambda found: found.value)

    @property
    def n_at_best(self) -> int:
        """How many runs reached the minimum loss."""
        return len(self._at_best())

    @property
    def n_in_vain(self) -> int:
        """How many runs came after the first that reached the minimum loss."""
        return len(self.values) - 1 - self._at_best()[0]

    def _at_best(self) -> list[int]:
        least = self.best.value
        return [run for run, value in enumerate(self.values) if not is_less(least, value)]

    def info(self, draws: PairSource, loss: Loss, seconds: float) -> SearchInfo:
        """What there is to tell, with expected losses in the loss's unit."""
        scans, moves, merges, chains, zealous, splits = self.tally.tolist()
        scale = loss.scale(draws.n_items)
        losses = [scale * value for value in self.values]
        return SearchInfo(
            n_starts=len(self.values),
            n_starts_at_best=self.n_at_best,
            kinds=self.kinds,
            n_perturbations=self.n_perturbations,
            n_scans=scans,
            n_moves=moves,
            n_merges=merges,
            n_chains=chains,
            n_zealous_updates=zealous,
            n_splits=splits,
            expected_losses=losses,
            trace=np.minimum.accumulate(losses).tolist(),
            seconds=seconds,
            stopped=self.executor.stopped,
        )

    def _try_one_cluster(self) -> None:
        """Merges do not always reach the partition of one cluster, the answer where draws have little in common."""
        best = self.best
        if self._form.limits.fewest == 1 and is_less(best.in_one, best.value):
            self.start_from([np.zeros(self._source.n_items, np.int32)], "extremes")

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
        self.work += sum(one.work for one in found)
        return found


def is_less(value: float, other: float) -> bool:
    """Whether one of two losses is lower by more than rounding."""
    return value < other - _SAME * max(1.0, abs(other))


def has_few_items(draws: PairSource) -> bool:
    """Whether every two items can be moved together at the end."""
    return draws.n_items <= _FEW and draws.n_items**3 * (draws.n_draws or 0) <= _LITTLE_WORK


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
