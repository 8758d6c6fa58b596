"""The search for the partition of minimum expected loss, from several starts at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import judged_labels, least_loss
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import NoiseLoss, PairLoss
from posterior_consensus.problems.components import components_of
from posterior_consensus.problems.earlier import Earlier
from posterior_consensus.problems.problem import FREE, Problem, WithNoise, as_partitions
from posterior_consensus.results.display import counted
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import warn
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.search.classical import best_cut, cluster_range
from posterior_consensus.search.components import search_components
from posterior_consensus.search.effort import USUAL, Effort
from posterior_consensus.search.item_terms import OnItemTerms
from posterior_consensus.search.large import sample_of
from posterior_consensus.search.local_search import (
    LocalSearch,
    OnAll,
    OnDraws,
    OnDrawsNonlinear,
    OnPairs,
    Optimum,
    check_memory_of_tables,
    is_sparse,
)
from posterior_consensus.search.runs import Allowed, Searched, SearchInfo, SearchRuns, is_less
from posterior_consensus.search.with_noise import OnPairsWithNoise, sample_with_noise

Start = Labels | Callable[[PairSource], Labels]
"""A partition to start from, or a function of the searched posterior that returns one."""

_LITTLE = 500, 900_000  # items and labels in the draws up to which threads cost more than they save
_LITTLE_HARDER = 60_000  # the same limit of labels for a nonlinear loss
_MOST_STARTS, _LEAST_STARTS = 16, 3
_LABELS_READ = 60_000_000  # by all runs over all draws: runs of many items hardly ever agree, which would end them
_TINY = 1e-9
_SECONDS_OF_PAIRS = 10.0  # estimated time to bound all components of scored pairs,
_SECONDS_OF_DRAWS = 1.0  # and of draws, which are searched for as long
_WORTH_A_MATRIX = 0.29  # share of the memory budget that a similarity matrix may take if there is another way
_BUDGET, _BUDGET_NOT_LINEAR = 3e6, 2e7  # elementary operations of all restarts
_BUDGET_KINKED, _PATIENCE_KINKED = 2e8, 2  # slopes change where B = C, so that more partitions are local optima


def search(
    problem: Problem,
    rng: np.random.Generator,
    effort: Effort = USUAL,
    starts: Sequence[Any] = (),
    earlier: Earlier | None = None,
) -> Searched:
    """Search for the partition of minimum expected loss.

    The problem is reduced to one of partitions, of components or of a sample; runs search it; and the best partition is
    extended to the whole. `starts` are partitions of all items, or functions of the searched posterior. Components of
    scored pairs that are as they were `earlier` are not searched.
    """
    began = time.monotonic()
    reduced = as_partitions(problem)
    given = [
        one if callable(one) else reduced.part_of(judged_labels(problem.source, one, reduced.loss, "starts"))
        for one in starts
    ]
    parts = components_of(reduced)
    if parts is not None:
        work = _SECONDS_OF_PAIRS if problem.source.draws is None else _SECONDS_OF_DRAWS
        of_all = [_labels_of(start, parts.source) for start in given]
        return search_components(parts, rng, effort.after(began), of_all, work=work, earlier=earlier)
    loss = reduced.loss
    if isinstance(loss, PairLoss):
        if loss.pair_threshold is not None:
            return _along_thresholds(reduced, loss, rng, effort, given, began)
        if loss.item_terms is None:
            raise ValueError(
                f"`loss` must have `item_terms` or `pair_threshold` for greedy search; {loss.name!r} has neither. Give "
                "its PairLoss one of them, or take another method, such as method='hierarchical'."
            )
        given = [partial(_best_cut, reduced), *given]  # the local search itself cuts no tree
    found = _search_whole(reduced, rng, effort, given, began)
    return found._replace(labels=reduced.whole(found.labels))


def _search_whole(
    problem: Problem, rng: np.random.Generator, effort: Effort, starts: Sequence[Start], began: float
) -> Searched:
    """Search a problem of partitions, or a sample of it, by runs and restarts."""
    source = problem.source.without_zero_weights()  # which must not take a place in the samples
    problem, limits = replace(problem, source=source), problem.n_clusters
    sample = sample_with_noise(problem, rng) if isinstance(problem, WithNoise) else sample_of(problem, rng)
    searched = problem if sample is None else sample
    given = [_labels_of(start, searched.source) for start in starts]
    known = given if sample is None else [sample.part_of(labels) for labels in given]
    allowed = _allowed(effort, searched)
    n_items, loss = searched.source.n_items, searched.loss
    n_labels = n_items * (searched.source.n_draws or n_items)
    little = _LITTLE[1] if loss.is_linear else _LITTLE_HARDER
    jobs = 0 if n_items <= _LITTLE[0] and n_labels <= little else effort.n_jobs  # 0: in the calling thread
    with Executor(jobs, effort.seconds, n_labels) as executor:
        local = _local_search(searched, executor.stop)
        runs = SearchRuns(local, executor, searched, rng)
        if effort.from_unconstrained and limits.fewest > 1 and not loss.falls_with_clusters:
            with Executor(jobs, None if effort.seconds is None else effort.seconds / 2, n_labels) as another:
                free = _local_search(replace(searched, limits=FREE), another.stop)
                first = SearchRuns(free, another, searched, rng.spawn(1)[0])
                first.follow(allowed._replace(n_perturbations=0), known, effort.progressbar)
            if another.stopped == "interrupted":
                executor.halt(another.stopped)
            runs.tally += first.tally
            runs.start_from([first.best.labels], "unconstrained")
        runs.follow(allowed, known, effort.progressbar)
        best: Optimum = runs.best
        last: LocalSearch | OnAll = local
        if sample is not None:
            last = of_all = sample.on_all(executor, effort.progressbar)
            best = of_all.descend(best.labels, given)
            runs.tally += of_all.tally
    if best.labels.max() + 1 == last.limits.most < limits.most:  # more may be better, but their tables are too large
        check_memory_of_tables(last.bytes_a_cluster, last.limits.most + 1, limits, source.most_clusters)
    _warn(last.limits.most if last.is_capped else None, executor.stopped, len(runs.values))
    info = runs.info(time.monotonic() - began)
    return Searched(best.labels, info if sample is None else replace(info, sample=sample.size))


def _allowed(effort: Effort, problem: Problem) -> Allowed:
    """How many runs and restarts a search may have."""
    source, loss = problem.source, problem.loss
    budget, patience = (_BUDGET if loss.is_linear else _BUDGET_NOT_LINEAR), 1
    if loss.has_kinks:
        budget, patience = _BUDGET_KINKED, _PATIENCE_KINKED
    factor = 1 if problem.n_clusters.fewest == 1 else 2  # a fixed number of clusters has more traps
    affordable = max(_LEAST_STARTS, min(_MOST_STARTS, _LABELS_READ // (source.n_items * (source.n_draws or 1))))
    return Allowed(
        effort.n_starts or affordable, effort.n_agree, effort.n_perturbations, factor * budget, factor * patience
    )


def _warn(most: int | None, stopped: str, n_runs: int) -> None:
    """Say where memory or the user ended the search; `most` clusters were possible if memory left out more."""
    if most is not None:
        warn(
            f"The memory budget of {memory.in_words(memory.budget())} has room for a search among at most "
            f"{most} clusters, and more may have a lower expected loss. The environment variable "
            "POSTERIOR_CONSENSUS_MEMORY sets the budget.",
        )
    if stopped == "interrupted":
        warn(f"The search was interrupted; the result is the best of {counted(n_runs, 'run')}.")


def _local_search(problem: Problem, stop: npt.NDArray[np.uint8]) -> LocalSearch:
    """The local search for the problem's draws and loss."""
    loss = problem.loss
    if isinstance(loss, PairLoss):
        return OnItemTerms(problem, stop)
    if isinstance(loss, NoiseLoss):
        return OnPairsWithNoise(problem, stop)
    if not loss.needs_draws and not _is_cheaper_over_draws(problem.source):
        return OnPairs(problem, stop)
    return OnDraws(problem, stop) if loss.is_linear else OnDrawsNonlinear(problem, stop)


def _is_cheaper_over_draws(source: PairSource) -> bool:
    """Whether draws take less memory than a similarity matrix, or have sparse tables."""
    if source.n_draws is None:
        return False
    hard = source.counted_draws
    if hard is not None and hard.lacks_items:  # a similarity does not say how many runs had the pair
        return True
    too_large = 8 * source.n_items**2 > _WORTH_A_MATRIX * memory.budget()
    return too_large or (hard is not None and is_sparse(hard))


def _along_thresholds(
    problem: Problem, loss: PairLoss, rng: np.random.Generator, effort: Effort, starts: Sequence[Start], began: float
) -> Searched:
    """Search with the Binder loss that falls with this one where it has the best value so far, until that stays.

    A ratio of forms that are linear in the pairs falls where its numerator less its value times its denominator does:
    Dinkelbach (1967), https://doi.org/10.1287/mnsc.13.7.492. No move of an item or union lowers the loss of the last.
    """
    assert loss.pair_threshold is not None
    source = problem.source
    problem = replace(problem, source=PairSimilarity.of(source))
    n_pairs = max(1, source.n_items * (source.n_items - 1))
    mean = (problem.source.shared_similarity.sum() - source.n_items) / n_pairs
    others = [_labels_of(start, source) for start in starts]
    fewest, most = problem.n_clusters
    within = [labels for labels in others if fewest <= labels.max() + 1 <= most]  # the others are searched from alone
    cuts = np.stack([_best_cut(problem, source), *within])
    best, values = least_loss(problem.source, loss, [cuts])
    rounds = [min(values)]
    while True:
        tau = float(np.clip(loss.pair_threshold(rounds[-1], mean), _TINY, 1 - _TINY))
        of_round = replace(problem, loss=binder(tau=tau))
        found = _search_whole(of_round, rng, effort.after(began), [best, *others], began)
        value = problem.value(found.labels)
        if not is_less(value, rounds[-1]):
            break
        best = found.labels
        rounds.append(value)
    assert isinstance(found.info, SearchInfo)
    return Searched(best, replace(found.info, pair_threshold=tau, expected_losses=rounds, trace=rounds))


def _best_cut(problem: Problem, source: PairSource) -> Labels:
    """The best partition of the average-linkage tree of the searched items."""
    numbers = cluster_range(source, problem.limits.n_clusters, problem.limits.max_clusters)
    return source.as_labels(best_cut(source, problem.loss, numbers, "average")[0])


def _labels_of(start: Start, searched: PairSource) -> Labels:
    """A partition to start from, of the searched items if it is a function of them."""
    return searched.as_labels(start(searched), "starts") if callable(start) else start
