"""Greedy search for the partition of least expected loss, from several starts at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus import memory
from posterior_consensus.arguments import check_count, check_seconds
from posterior_consensus.consensus.best_draw import best_draw
from posterior_consensus.consensus.hierarchical import hierarchical
from posterior_consensus.consensus.item_terms import OnItemTerms
from posterior_consensus.consensus.problems import Found, Limits, OnDraws, OnPairs, OnRatios, is_sparse
from posterior_consensus.consensus.scale import OnBlocks, sample_of
from posterior_consensus.consensus.selection import Candidate, least_loss
from posterior_consensus.consensus.spectral import spectral
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.executor import Executor
from posterior_consensus.expectation import mean_loss
from posterior_consensus.info import SearchInfo
from posterior_consensus.kernels.loss import LinearLoss
from posterior_consensus.kernels.search import ZEALOUS
from posterior_consensus.loss_record import Objective, PairLoss, PartitionLoss
from posterior_consensus.losses import binder, is_binder
from posterior_consensus.partitions import Labels, canonical_rows
from posterior_consensus.progress import track
from posterior_consensus.sources.labels import as_partition_draws
from posterior_consensus.sources.matrices import as_pair_similarity

STARTS: dict[str, Callable[..., Candidate]] = {
    "best_draw": best_draw,
    "hierarchical": hierarchical,
    "spectral": spectral,
}
"""Methods whose partitions a search can start from."""

_LITTLE = 500, 900_000  # items and labels in the draws up to which threads cost more than they save
_MOST_STARTS, _LEAST_STARTS = 16, 3
_LABELS_READ = 60_000_000  # in all draws and runs: of many items runs hardly ever end at quite the same partition
_TINY = 1e-9
_SAME = 1e-10  # relative difference below which two runs reached the same loss
_WORTH_A_MATRIX = 0.29  # share of the memory budget that a similarity matrix may take where there is another way
_FEW = 12  # items of which every two are moved together at the end
_ENDS_TRIED = 4  # partitions in which that is done
_DRAWS_TRIED = 64  # draws from which a search then starts too
_LITTLE_WORK = 2e6  # items^3 x draws up to which that is done


def greedy(
    draws: PairSource,
    loss: Objective,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    n_starts: int | None = None,
    n_agree: int = 3,
    starts: Sequence[Any] = (),
    seconds: float | None = None,
    n_jobs: int = -1,
) -> Candidate:
    """Search from several starts, each until no move lowers the expected loss.

    Parameters
    ----------
    n_starts : int, optional
        Largest number of runs from random orders of the items: by default 16, less where the draws hold more than
        3.75 million labels, down to 3 from 20 million on.
    n_agree : int
        The search ends early once so many runs reached the least loss; looked at after every third run, with Binder's
        loss after every tenth. With a loss that is not linear the search also ends once so many runs in a row found
        nothing better; looked at after every second run.
    starts : sequence
        Further partitions to start from: "best_draw", "hierarchical", "spectral", label vectors or result objects.
    seconds : float, optional
        Time after which the best partition so far is taken. What is found then depends on the machine.
    n_jobs : int
        Number of threads; -1 takes one for each processor. The answer does not depend on it.

    Notes
    -----
    A run allocates the items one by one, in random order, to the cluster that is best for the items allocated so far,
    then lets every item move until none wants to (sweetening), as Dahl, Johnson and Mueller (2022) do,
    https://doi.org/10.1080/10618600.2022.2069779. It merges two clusters where that lowers the loss, and moves a few
    items together where each alone would not (Kernighan and Lin 1970,
    https://doi.org/10.1002/j.1538-7305.1970.tb00770.x). A run begins on 40 draws and ends on all of them. The clusters
    of the best partition are at last dissolved and allocated again (zealous updates) and split in two, each for
    itself. Of a few items every two are moved at once, which takes little and leaves the search few traps.

    Losses that are not linear in the cells of the contingency table, such as the ratios, take longer and have more
    traps. Three more runs then start from cuts of the tree of average linkage (up to 2,000 items), and a run is given
    up on 128 draws if it had to gain more than any other did to become the best.

    From 131,072 items on, or where the labels take more than the memory budget, all this is done on 65,536 items and at
    most 1,024 draws. The partition found is extended to the other items, and items move and clusters merge, by all
    draws, until neither lowers the expected loss: see `scale.py`. Where few items share a draw's cluster, as in record
    linkage, there is no sample.
    """
    began = time.monotonic()
    if n_starts is not None:
        check_count("n_starts", n_starts)
    check_count("n_agree", n_agree)
    if n_jobs != -1:
        check_count("n_jobs", n_jobs)
    if seconds is not None:
        check_seconds(seconds)
    if isinstance(starts, str):
        raise TypeError(f"`starts` must be a list of partitions or names; got {starts!r}.")
    if isinstance(loss, PairLoss) and loss.pair_threshold is not None:
        own = {"n_starts": n_starts, "n_agree": n_agree, "seconds": seconds, "n_jobs": n_jobs}
        asked = {"n_clusters": n_clusters, "max_clusters": max_clusters, "rng": rng}
        return _along_thresholds(draws, loss, loss.pair_threshold, starts, own, progressbar=progressbar, **asked)
    n_labels = draws.n_items * (draws.n_draws or 1)
    draws = draws.without_zero_weights()  # which must not take a place in the samples
    limits = Limits(n_clusters, n_clusters) if n_clusters is not None else Limits(1, max_clusters or draws.n_items)
    if isinstance(loss, PairLoss):
        starts = ["hierarchical", *starts]
    sample = sample_of(draws, loss, limits, rng)
    searched = draws if sample is None else sample.draws
    if n_starts is None:
        n_labels = n_labels if sample is None else sample.labels.size
        n_starts = max(_LEAST_STARTS, min(_MOST_STARTS, _LABELS_READ // n_labels))
    asked = {"n_clusters": n_clusters, "max_clusters": max_clusters, "rng": rng}
    given = [_start(start, draws, searched, loss, **asked) for start in starts]
    n_labels = searched.n_items * (searched.n_draws or searched.n_items)
    is_little = searched.n_items <= _LITTLE[0] and n_labels <= _LITTLE[1]
    with Executor(0 if is_little else n_jobs, seconds, n_labels) as executor:
        problem = _problem(searched, loss, limits, executor.stop)
        search = _Search(problem, executor)
        search.start_from(given if sample is None else [sample.part_of(labels) for labels in given])
        search.start_from_trees()
        for first in track(range(0, n_starts, problem.at_once), "Greedy search", progressbar=progressbar):
            search.run(min(problem.at_once, n_starts - first), rng, searched.n_items)
            if executor.stopped or search.n_at_best >= n_agree or (search.ratios and search.n_in_vain >= n_agree):
                break
        few = _few(searched)
        if few and not executor.stopped:
            search.try_also([np.arange(searched.n_items), *searched.some_labels(_DRAWS_TRIED)])
        search.finish(rng, searched.n_items, by_twos=few)
        best: Found = search.best
        ended: OnDraws | OnPairs | OnItemTerms | OnBlocks = problem
        if sample is not None:
            ended = OnBlocks(sample, limits, executor, progressbar)
            best = _on_all(ended, best, given)
            search.tally += best.tally
    if isinstance(ended, OnDraws | OnBlocks) and best.labels.max() + 1 == ended.limits.most < limits.most:
        ended.check_memory(ended.limits.most + 1)  # more clusters may be better, but their tables are too large
    if executor.stopped == "interrupted":
        warnings.warn(f"The search was interrupted; the answer is the best of {len(search.values)} runs.", stacklevel=3)
    info = search.info(searched, loss, time.monotonic() - began)
    return Candidate(
        best.labels, info if sample is None else replace(info, sample=[sample.items.size, sample.rows.size])
    )


def _on_all(problem: OnBlocks, best: Found, given: list[Labels]) -> Found:
    """Go on from the sample's best partition, and from the given ones of all items, over all items and draws."""
    ends = [problem.extend(best.labels)]
    ends += [problem.polish(labels) for labels in given if problem.takes(labels)]
    least = min(ends, key=lambda end: end.value)
    if problem.limits.fewest == 1 and _is_less(least.in_one, least.value):
        ends.append(problem.polish(np.zeros_like(least.labels)))
        least = min(ends, key=lambda end: end.value)
    return least._replace(tally=sum((end.tally for end in ends), np.zeros(6, np.int64)))


class _Search:
    """The runs so far."""

    def __init__(self, problem: OnDraws | OnPairs | OnItemTerms, executor: Executor) -> None:
        self.problem, self.executor = problem, executor
        self.ratios = problem if isinstance(problem, OnRatios) else None
        self.values: list[float] = []
        self.tally = np.zeros(6, np.int64)
        self._ends: dict[bytes, Found] = {}  # where searches from these partitions end
        self._begun: dict[bytes, float] = {}  # expected losses of partitions that searches on some of the draws led to

    def start_from(self, partitions: list[Labels]) -> None:
        """Run from these partitions."""
        self._polish(partitions)
        self.values += [self._ends[labels.tobytes()].value for labels in partitions]

    def start_from_trees(self) -> None:
        """Run from where a tree of the items leads, if the loss is not linear."""
        if self.ratios is None:
            return
        (cuts,) = self.executor.results(self.ratios.cuts, [()])
        partitions = [found.labels for found in self._results(self.ratios.from_cut, [(cut,) for cut in cuts])]
        self._evaluate(self.ratios, partitions)
        self.start_from(partitions)

    def try_also(self, partitions: Iterable[npt.NDArray[Any]]) -> None:
        """Search from these partitions too, and count the one run that ends best if it is better than all before."""
        before = self.best.value
        self._polish([partition.astype(np.int32) for partition in partitions])
        if _is_less(self.best.value, before):
            self.values.append(self.best.value)

    def run(self, n_starts: int, rng: np.random.Generator, n_items: int) -> None:
        """Run from as many random orders."""
        calls = [(*_randomness(rng, n_items), run % 2 == 1) for run in range(n_starts)]
        explored = self._results(self.problem.explore, calls)
        if self.problem.explores_all:
            self._ends |= {found.labels.tobytes(): found for found in explored}
        partitions = [found.labels for found in explored]
        if self.ratios:
            self._start_from_hopeful(self.ratios, partitions)
        else:
            self.start_from(partitions)
        self._try_one_cluster(n_items)

    def _start_from_hopeful(self, problem: OnRatios, partitions: list[Labels]) -> None:
        """Go on from those of these partitions that would become best if they gained as much as any before."""
        values = self._evaluate(problem, partitions)
        if not self._begun.keys() & self._ends.keys():  # the ends may all be of given partitions
            self._polish([partitions[np.argmin(values)]])
        gains = [value - self._ends[key].value for key, value in self._begun.items() if key in self._ends]
        least = self.best.value + max(gains)
        self._polish([labels for labels, value in zip(partitions, values, strict=True) if value < least])
        ends = [self._ends.get(labels.tobytes()) for labels in partitions]
        self.values += [end.value if end else value for end, value in zip(ends, values, strict=True)]

    def _evaluate(self, problem: OnRatios, partitions: list[Labels]) -> list[float]:
        """Expected losses of partitions at which searches on some of the draws ended."""
        new = {labels.tobytes(): labels for labels in partitions if labels.tobytes() not in self._begun}
        values = self.executor.results(problem.value, [(labels,) for labels in new.values()])
        self._begun |= dict(zip(new, values, strict=True))
        return [self._begun[labels.tobytes()] for labels in partitions]

    def finish(self, rng: np.random.Generator, n_items: int, by_twos: bool) -> None:
        """Take the best partition's clusters apart, one by one, and go on from what that leads to.

        Runs that ended at the best partition end where this does.
        """
        at_best = self._at_best()
        while not self.executor.stopped:
            best = self.best
            if not self.problem.explores_all:
                self._rearrange(best, rng, n_items)
            if by_twos and not self.executor.stopped:
                for found in self._best_ends():
                    self._polish(_changed_by_twos(found.labels))
            if not _is_less(self.best.value, best.value):
                break
        for run in at_best:
            self.values[run] = self.best.value

    def _best_ends(self) -> list[Found]:
        """The best few of the partitions at which searches ended."""
        ends = {found.labels.tobytes(): found for found in self._ends.values()}
        return sorted(ends.values(), key=lambda found: found.value)[:_ENDS_TRIED]

    def _rearrange(self, found: Found, rng: np.random.Generator, n_items: int) -> None:
        (other,) = self._results(self.problem.rearrange, [(found.labels, *_randomness(rng, n_items))])
        if other.tally[ZEALOUS:].any():
            self._polish([other.labels])

    @property
    def best(self) -> Found:
        """The best partition, the first of equals."""
        return min(self._ends.values(), key=lambda found: found.value)

    @property
    def n_at_best(self) -> int:
        """How many runs reached the least loss."""
        return len(self._at_best())

    @property
    def n_in_vain(self) -> int:
        """How many runs came after the first that reached the least loss."""
        return len(self.values) - 1 - self._at_best()[0]

    def _at_best(self) -> list[int]:
        least = self.best.value
        return [run for run, value in enumerate(self.values) if not _is_less(least, value)]

    def info(self, draws: PairSource, loss: Objective, seconds: float) -> SearchInfo:
        """What there is to tell, with expected losses in the loss's unit."""
        scans, moves, merges, chains, zealous, splits = self.tally.tolist()
        scale = loss.scale(draws.n_items) if isinstance(loss, PartitionLoss) else 1.0
        losses = [scale * value for value in self.values]
        return SearchInfo(
            n_starts=len(self.values),
            n_starts_at_best=self.n_at_best,
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

    def _try_one_cluster(self, n_items: int) -> None:
        """Merges do not always reach the partition of one cluster, the answer where draws have little in common."""
        best = self.best
        if self.problem.limits.fewest == 1 and _is_less(best.in_one, best.value):
            self.start_from([np.zeros(n_items, np.int32)])

    def _polish(self, partitions: Iterable[Labels]) -> None:
        new = {labels.tobytes(): labels for labels in partitions if labels.tobytes() not in self._ends}
        polished = self._results(self.problem.polish, [(labels,) for labels in new.values()])
        self._ends |= dict(zip(new, polished, strict=True))

    def _results(self, function: Callable[..., Found], calls: list[tuple[Any, ...]]) -> list[Found]:
        found = self.executor.results(function, calls)
        self.tally += sum(one.tally for one in found)
        return found


def _is_less(value: float, other: float) -> bool:
    return value < other - _SAME * max(1.0, abs(other))


def _problem(
    source: PairSource, loss: Objective, limits: Limits, stop: npt.NDArray[np.uint8]
) -> OnDraws | OnPairs | OnItemTerms:
    """The form of search for these draws and this loss."""
    if isinstance(loss, PairLoss):
        return OnItemTerms(source, loss, limits, stop)
    by_draws = isinstance(source, PartitionDraws) and (
        8 * source.n_items**2 > _WORTH_A_MATRIX * memory.budget() or (source.labels_are_sure and is_sparse(source))
    )
    if is_binder(loss) and not by_draws:
        return OnPairs(source, loss, limits, stop)
    draws = as_partition_draws(source)
    kind = OnDraws if isinstance(loss.arrays(draws.n_items), LinearLoss) else OnRatios
    return kind(draws, loss, limits, stop)


def _along_thresholds(
    source: PairSource,
    loss: PairLoss,
    pair_threshold: Callable[[float, float], float],
    starts: Sequence[Any],
    own: dict[str, Any],
    *,
    progressbar: bool,
    **asked: Any,
) -> Candidate:
    """Search with the Binder loss that falls with this one where it has the best value so far, until that stays.

    A ratio of forms that are linear in the pairs falls where its numerator less its value times its denominator does:
    Dinkelbach (1967), https://doi.org/10.1287/mnsc.13.7.492. No move of an item or union lowers the loss of the last.
    """
    pairs = as_pair_similarity(source)
    n_pairs = max(1, source.n_items * (source.n_items - 1))
    mean = (pairs.values.sum() - source.n_items) / n_pairs
    given = [_start(start, source, source, loss, **asked) for start in ("hierarchical", *starts)]
    best, values = least_loss(pairs, loss, [np.stack(given)])
    rounds = [min(values)]
    ends = None if own["seconds"] is None else time.monotonic() + own["seconds"]
    while True:
        tau = float(np.clip(pair_threshold(rounds[-1], mean), _TINY, 1 - _TINY))
        if ends is not None:
            own["seconds"] = max(ends - time.monotonic(), _TINY)
        found = greedy(pairs, binder(tau=tau), starts=[best], progressbar=progressbar, **own, **asked)
        value = float(mean_loss(pairs, found.labels[np.newaxis], loss)[0])
        if not _is_less(value, rounds[-1]):
            break
        best = found.labels
        rounds.append(value)
    assert isinstance(found.info, SearchInfo)
    return Candidate(best, replace(found.info, pair_threshold=tau, expected_losses=rounds, trace=rounds))


def _few(draws: PairSource) -> bool:
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
    return list(np.unique(rows, axis=0).astype(np.int32))


def _randomness(rng: np.random.Generator, n_items: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """An order of the items and numbers to sample draws by."""
    return rng.permutation(n_items), rng.random(128)


def _start(start: Any, draws: PairSource, searched: PairSource, loss: Objective, **options: Any) -> Labels:
    """A partition to start from: of all items if it is given, by name what a method finds for those searched."""
    if isinstance(start, str):
        if start not in STARTS:
            raise ValueError(f"`starts` must be partitions or names among {', '.join(STARTS)}; got {start!r}.")
        method = STARTS[start]
        source = as_partition_draws(searched) if method is best_draw else searched
        return searched.as_labels(method(source, loss, progressbar=False, **options).labels, "starts")
    return draws.as_labels(start, "starts")
