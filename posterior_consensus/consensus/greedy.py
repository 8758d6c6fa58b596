"""Greedy search for the partition of least expected loss, from several starts at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
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
from posterior_consensus.consensus.runs import Runs, has_few_items, is_less
from posterior_consensus.consensus.scale import OnBlocks, sample_of
from posterior_consensus.consensus.selection import Candidate, least_loss
from posterior_consensus.consensus.spectral import spectral
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.executor import Executor
from posterior_consensus.expectation import mean_loss
from posterior_consensus.info import SearchInfo
from posterior_consensus.kernels.loss import LinearLoss
from posterior_consensus.loss_record import Objective, PairLoss
from posterior_consensus.losses import binder, is_binder
from posterior_consensus.partitions import Labels
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
_LITTLE_HARDER = 3_000  # the same for a loss that is not linear: labels
_MOST_STARTS, _LEAST_STARTS = 16, 3
_LABELS_READ = 60_000_000  # in all draws and runs: of many items runs hardly ever end at quite the same partition
_TINY = 1e-9
_WORTH_A_MATRIX = 0.29  # share of the memory budget that a similarity matrix may take where there is another way
_DRAWS_TRIED = 64  # draws from which a search then starts too


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
    n_perturbations: int | None = None,
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
    n_perturbations : int, optional
        Number of searches from random changes of the best partitions: by default as many as take little time, up to two
        for each item.
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
    is_linear = isinstance(loss, PairLoss) or isinstance(loss.arrays(searched.n_items), LinearLoss)
    is_little = searched.n_items <= _LITTLE[0] and n_labels <= (_LITTLE[1] if is_linear else _LITTLE_HARDER)
    with Executor(0 if is_little else n_jobs, seconds, n_labels) as executor:
        problem = _problem(searched, loss, limits, executor.stop)
        search = Runs(problem, executor, searched)
        search.start_from(given if sample is None else [sample.part_of(labels) for labels in given], "given")
        search.start_from_trees()
        for first in track(range(0, n_starts, problem.at_once), "Greedy search", progressbar=progressbar):
            search.run(min(problem.at_once, n_starts - first), rng)
            if executor.stopped or search.n_at_best >= n_agree or (search.ratios and search.n_in_vain >= n_agree):
                break
        few = has_few_items(searched)
        if few and not executor.stopped:
            search.try_also([np.arange(searched.n_items), *searched.some_labels(_DRAWS_TRIED)], "draw")
        search.finish(rng, by_twos=few)
        search.start_otherwise(rng)
        search.restart(rng, n_perturbations)
        best: Found = search.best
        ended: OnDraws | OnPairs | OnItemTerms | OnBlocks = problem
        if sample is not None:
            ended = OnBlocks(sample, limits, executor, progressbar)
            best = _on_all(ended, best, given)
            search.tally += best.tally
    if isinstance(ended, OnDraws | OnBlocks) and best.labels.max() + 1 == ended.limits.most < limits.most:
        ended.check_memory(ended.limits.most + 1)  # more clusters may be better, but their tables are too large
    elif isinstance(ended, OnDraws) and ended.is_capped:
        warnings.warn(
            f"The memory budget of {memory.in_words(memory.budget())} has room for a search among at most "
            f"{ended.limits.most} clusters, and more may have a lower expected loss. The environment variable "
            "POSTERIOR_CONSENSUS_MEMORY sets the budget.",
            stacklevel=3,
        )
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
    if problem.limits.fewest == 1 and is_less(least.in_one, least.value):
        ends.append(problem.polish(np.zeros_like(least.labels)))
        least = min(ends, key=lambda end: end.value)
    return least._replace(tally=sum((end.tally for end in ends), np.zeros(6, np.int64)))


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
        if not is_less(value, rounds[-1]):
            break
        best = found.labels
        rounds.append(value)
    assert isinstance(found.info, SearchInfo)
    return Candidate(best, replace(found.info, pair_threshold=tau, expected_losses=rounds, trace=rounds))


def _start(start: Any, draws: PairSource, searched: PairSource, loss: Objective, **options: Any) -> Labels:
    """A partition to start from: of all items if it is given, by name what a method finds for those searched."""
    if isinstance(start, str):
        if start not in STARTS:
            raise ValueError(f"`starts` must be partitions or names among {', '.join(STARTS)}; got {start!r}.")
        method = STARTS[start]
        source = as_partition_draws(searched) if method is best_draw else searched
        return searched.as_labels(method(source, loss, progressbar=False, **options).labels, "starts")
    return draws.as_labels(start, "starts")
