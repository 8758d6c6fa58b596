"""The search for the partition of minimum expected loss, from several starts at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.components import ComponentsInfo, Decomposition, components_of
from posterior_consensus.ensemble.expectation import least_loss, mean_loss
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import Loss, NoiseLoss, PairLoss, PartitionLoss
from posterior_consensus.results.display import counted
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_count, check_seconds, warn
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.search.classical import best_cut, cluster_range
from posterior_consensus.search.components import search_components
from posterior_consensus.search.item_terms import OnItemTerms
from posterior_consensus.search.large import OnBlocks, sample_of
from posterior_consensus.search.local_search import (
    Limits,
    LocalSearch,
    OnDraws,
    OnDrawsNonlinear,
    OnPairs,
    Optimum,
    check_memory_of_tables,
    is_sparse,
)
from posterior_consensus.search.runs import Allowed, SearchInfo, SearchRuns, is_less
from posterior_consensus.search.with_noise import OnAllWithNoise, OnPairsWithNoise, WithNoise

Start = Labels | Callable[[PairSource], Labels]
"""A partition to start from, or a function of the searched posterior that returns one."""

_LITTLE = 500, 900_000  # items and labels in the draws up to which threads cost more than they save
_LITTLE_HARDER = 60_000  # the same limit of labels for a nonlinear loss
_MOST_STARTS, _LEAST_STARTS = 16, 3
_LABELS_READ = 60_000_000  # by all runs over all draws: runs of many items hardly ever agree, which would end them
_TINY = 1e-9
_SECONDS_OF_DRAWS = 1.0  # estimated time to bound the components of draws, which are searched for as long
_WORTH_A_MATRIX = 0.29  # share of the memory budget that a similarity matrix may take if there is another way
_BUDGET, _BUDGET_NOT_LINEAR = 3e6, 2e7  # elementary operations of all restarts
_BUDGET_KINKED, _PATIENCE_KINKED = 2e8, 2  # slopes change where B = C, so that more partitions are local optima


class Searched(NamedTuple):
    """The best partition of a search, the record of its work, and a lower bound if the search found one.

    Labels of -1 are noise.
    """

    labels: Labels
    info: SearchInfo | ComponentsInfo
    lower_bound: float | None = None


def search(
    draws: PairSource,
    loss: Loss,
    *,
    n_clusters: int | None = None,
    max_clusters: int | None = None,
    rng: np.random.Generator,
    progressbar: bool = False,
    n_starts: int | None = None,
    n_agree: int = 3,
    n_perturbations: int | None = None,
    starts: Sequence[Start] = (),
    seconds: float | None = None,
    n_jobs: int = -1,
    from_unconstrained: bool = True,
) -> Searched:
    """Search for the partition of minimum expected loss; the options are those of the method "greedy".

    With `from_unconstrained`, a search for a number of clusters also starts from the best partition of any number.
    """
    began = time.monotonic()
    _check_options(n_starts, n_agree, seconds, n_jobs)
    effort: dict[str, Any] = {"n_starts": n_starts, "n_agree": n_agree, "n_perturbations": n_perturbations}
    effort |= {"seconds": seconds, "n_jobs": n_jobs, "progressbar": progressbar, "rng": rng}
    effort |= {"n_clusters": n_clusters, "max_clusters": max_clusters, "from_unconstrained": from_unconstrained}
    if isinstance(loss, NoiseLoss):
        if not isinstance(draws, NoisyRuns):
            return search(draws, loss.binder, starts=starts, **effort)
        return _search_with_noise(draws.without_zero_weights(), loss, starts, effort)
    is_free = n_clusters is None and max_clusters is None
    parts = components_of(draws, loss) if is_free or isinstance(draws, ScoredPairs) else None
    if parts is not None:
        options: dict[str, Any] = {"starts": starts, "n_jobs": n_jobs, "progressbar": progressbar, "rng": rng}
        options |= {"seconds": None if seconds is None else max(began + seconds - time.monotonic(), _TINY)}
        if not isinstance(draws, ScoredPairs):
            options["work"] = _SECONDS_OF_DRAWS
        return search_by_component(draws, parts, loss, **options)
    if isinstance(loss, PairLoss):
        if loss.pair_threshold is not None:
            return _along_thresholds(draws, loss, loss.pair_threshold, starts, effort)
        if loss.item_terms is None:
            raise ValueError(
                f"`loss` must have `item_terms` or `pair_threshold` for greedy search; {loss.name!r} has neither. Give "
                "its PairLoss one of them, or take another method, such as method='hierarchical'."
            )
        starts = [partial(_best_cut, loss, n_clusters, max_clusters), *starts]  # the local search itself cuts no tree
    return _search_whole(draws, loss, starts, began=began, **effort)


def _search_whole(
    draws: PairSource,
    loss: Loss,
    starts: Sequence[Start],
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    n_starts: int | None,
    n_agree: int,
    n_perturbations: int | None,
    seconds: float | None,
    n_jobs: int,
    from_unconstrained: bool,
    began: float,
) -> Searched:
    """Search a posterior, or a sample of it, by runs and restarts; the arguments are those of :func:`search`."""
    draws = draws.without_zero_weights()  # which must not take a place in the samples
    limits = Limits(n_clusters, n_clusters) if n_clusters is not None else Limits(1, max_clusters or draws.n_items)
    sample = sample_of(draws, loss, limits, rng)
    searched = draws if sample is None else sample.draws
    given = [_labels_of(start, draws, searched) for start in starts]
    known = given if sample is None else [sample.part_of(labels) for labels in given]
    allowed = _allowed(n_starts, n_agree, n_perturbations, loss, limits, searched)
    n_labels = searched.n_items * (searched.n_draws or searched.n_items)
    little = _LITTLE[1] if loss.is_linear else _LITTLE_HARDER
    jobs = 0 if searched.n_items <= _LITTLE[0] and n_labels <= little else n_jobs  # 0: in the calling thread
    with Executor(jobs, seconds, n_labels) as executor:
        local = _local_search(searched, loss, limits, executor.stop)
        runs = SearchRuns(local, executor, searched, loss, rng)
        if from_unconstrained and limits.fewest > 1 and not loss.falls_with_clusters:
            with Executor(jobs, None if seconds is None else seconds / 2, n_labels) as another:
                free = _local_search(searched, loss, Limits(1, searched.n_items), another.stop)
                first = SearchRuns(free, another, searched, loss, rng.spawn(1)[0])
                first.follow(allowed._replace(n_perturbations=0), known, progressbar=progressbar)
            if another.stopped == "interrupted":
                executor.halt(another.stopped)
            runs.tally += first.tally
            runs.start_from([first.best.labels], "unconstrained")
        runs.follow(allowed, known, progressbar=progressbar)
        best: Optimum = runs.best
        last: LocalSearch | OnBlocks = local
        if sample is not None:
            last = blocks = OnBlocks(sample, limits, executor, progressbar)
            best = blocks.descend(best.labels, given)
            runs.tally += blocks.tally
    if best.labels.max() + 1 == last.limits.most < limits.most:  # more may be better, but their tables are too large
        check_memory_of_tables(last.bytes_a_cluster, last.limits.most + 1, limits, draws.most_clusters)
    _warn(last.limits.most if last.is_capped else None, executor.stopped, len(runs.values))
    info = runs.info(time.monotonic() - began)
    if sample is not None:
        info = replace(info, sample=[sample.items.size, sample.rows.size])
    return Searched(best.labels, info)


def search_by_component(
    source: PairSource, parts: Decomposition, loss: Loss, *, starts: Sequence[Start] = (), **options: Any
) -> Searched:
    """Search the components of linked items for the partition of minimum expected Binder loss, with a lower bound.

    The options are those of :func:`search_components`.
    """
    given = [_labels_of(start, source, source) for start in starts]
    found = search_components(parts, starts=given, **options)
    expected = float(mean_loss(source, found.labels[np.newaxis], loss)[0])
    return Searched(found.labels, found.info, expected - found.gap)


def _search_with_noise(draws: NoisyRuns, loss: NoiseLoss, starts: Sequence[Start], effort: dict[str, Any]) -> Searched:
    """Search the items that may be in clusters, with one more item that stands for the noise."""
    began = time.monotonic()
    problem = WithNoise.of(draws, loss)
    given: list[Start] = [
        start if callable(start) else problem.part_of(draws.items.as_marked_labels(start, "starts")) for start in starts
    ]
    sample = problem.sample(effort["rng"])
    if sample is None:
        found = _search_whole(problem.draws, problem.loss, given, began=began, **effort)
        assert isinstance(found.info, SearchInfo)
        return Searched(problem.whole(found.labels), problem.info(found.info))
    some = np.append(sample, problem.items.size)
    part = problem.draws.of_items(some)
    of_part = [start if callable(start) else canonical_labels(start[some]) for start in given]
    found = _search_whole(part, problem.loss, of_part, began=began, **effort)
    assert isinstance(found.info, SearchInfo)
    seconds = effort["seconds"]
    of_all = OnAllWithNoise(problem, lambda: seconds is not None and time.monotonic() > began + seconds)
    wholes = [of_all.extended(sample, found.labels), *(start for start in given if not callable(start))]
    best, _ = min((of_all.descend(labels) for labels in wholes), key=lambda one: one[1])
    info = replace(found.info, sample=[sample.size, draws.n_draws], seconds=time.monotonic() - began)
    return Searched(problem.whole(best), info)


def _check_options(n_starts: int | None, n_agree: int, seconds: float | None, n_jobs: int) -> None:
    if n_starts is not None:
        check_count("n_starts", n_starts)
    check_count("n_agree", n_agree)
    if n_jobs != -1:
        check_count("n_jobs", n_jobs)
    if seconds is not None:
        check_seconds(seconds)


def _allowed(
    n_starts: int | None, n_agree: int, n_perturbations: int | None, loss: Loss, limits: Limits, source: PairSource
) -> Allowed:
    """How many runs and restarts a search may have."""
    budget, patience = (_BUDGET if loss.is_linear else _BUDGET_NOT_LINEAR), 1
    if loss.has_kinks:
        budget, patience = _BUDGET_KINKED, _PATIENCE_KINKED
    factor = 1 if limits.fewest == 1 else 2  # a fixed number of clusters has more traps
    affordable = max(_LEAST_STARTS, min(_MOST_STARTS, _LABELS_READ // (source.n_items * (source.n_draws or 1))))
    return Allowed(n_starts or affordable, n_agree, n_perturbations, factor * budget, factor * patience)


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


def _local_search(source: PairSource, loss: Loss, limits: Limits, stop: npt.NDArray[np.uint8]) -> LocalSearch:
    """The local search for these draws and this loss."""
    if isinstance(loss, PairLoss):
        return OnItemTerms(source, loss, limits, stop)
    if isinstance(loss, NoiseLoss):
        return OnPairsWithNoise(source.as_draws(), loss, limits, stop)
    record = as_loss(loss, kind=PartitionLoss)
    if not record.needs_draws and not _is_cheaper_over_draws(source):
        return OnPairs(source, record, limits, stop)
    kind = OnDraws if record.is_linear else OnDrawsNonlinear
    return kind(source.as_draws(), record, limits, stop)


def _is_cheaper_over_draws(source: PairSource) -> bool:
    """Whether draws take less memory than a similarity matrix, or have sparse tables."""
    if source.n_draws is None:
        return False
    hard = source.counted_draws
    too_large = 8 * source.n_items**2 > _WORTH_A_MATRIX * memory.budget()
    return too_large or (hard is not None and is_sparse(hard))


def _along_thresholds(
    source: PairSource,
    loss: PairLoss,
    pair_threshold: Callable[[float, float], float],
    starts: Sequence[Start],
    options: dict[str, Any],
) -> Searched:
    """Search with the Binder loss that falls with this one where it has the best value so far, until that stays.

    A ratio of forms that are linear in the pairs falls where its numerator less its value times its denominator does:
    Dinkelbach (1967), https://doi.org/10.1287/mnsc.13.7.492. No move of an item or union lowers the loss of the last.
    """
    pairs = source.as_pairs()
    n_pairs = max(1, source.n_items * (source.n_items - 1))
    mean = (pairs.values.sum() - source.n_items) / n_pairs
    n_clusters, max_clusters, seconds = options["n_clusters"], options["max_clusters"], options["seconds"]
    cut = _best_cut(loss, n_clusters, max_clusters, source)
    others = [_labels_of(start, source, source) for start in starts]
    numbers = cluster_range(source, n_clusters, max_clusters or source.n_items)
    within = [labels for labels in others if labels.max() + 1 in numbers]  # the others are searched from alone
    best, values = least_loss(pairs, loss, [np.stack([cut, *within])])
    rounds = [min(values)]
    ends = None if seconds is None else time.monotonic() + seconds
    while True:
        tau = float(np.clip(pair_threshold(rounds[-1], mean), _TINY, 1 - _TINY))
        if ends is not None:
            options["seconds"] = max(ends - time.monotonic(), _TINY)
        found = search(pairs, binder(tau=tau), starts=[best, *others], **options)
        value = float(mean_loss(pairs, found.labels[np.newaxis], loss)[0])
        if not is_less(value, rounds[-1]):
            break
        best = found.labels
        rounds.append(value)
    assert isinstance(found.info, SearchInfo)
    return Searched(best, replace(found.info, pair_threshold=tau, expected_losses=rounds, trace=rounds))


def _best_cut(loss: Loss, n_clusters: int | None, max_clusters: int | None, source: PairSource) -> Labels:
    return source.as_labels(best_cut(source, loss, cluster_range(source, n_clusters, max_clusters), "average")[0])


def _labels_of(start: Start, draws: PairSource, searched: PairSource) -> Labels:
    """A partition to start from: of all items if the user passed it, else of the searched items."""
    return searched.as_labels(start(searched), "starts") if callable(start) else draws.as_labels(start, "starts")
