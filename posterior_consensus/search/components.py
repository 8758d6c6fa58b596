"""The search for the least of Binder's loss, for each component of linked records by itself."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.bounds.components import bound_components, info_of
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.problems.component import Component
from posterior_consensus.problems.components import Decomposition, first_members
from posterior_consensus.problems.earlier import Earlier, checksums_of
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import warn
from posterior_consensus.runtime.executor import NO_TIME, Executor
from posterior_consensus.runtime.progress import counting
from posterior_consensus.search.effort import USUAL, Effort
from posterior_consensus.search.runs import Searched
from posterior_consensus.search.sparse_search import improved_by_decisions, search_component

_SECONDS_A_GROUP = 3e-4  # estimated time to bound components, added for each of their groups
_SHARE_TO_SEARCH = 0.8  # of a time limit: a bound does not make a partition worse
_SHARE_TO_IMPROVE = 0.5  # of what the search leaves
_SHARE_AT_FIRST = 0.25  # of the time to bound, for what a quick search may have solved
_FEW = 300  # groups of components that are searched quickly at first
_AT_ONCE = 64  # components whose searches are begun together


def search_components(
    parts: Decomposition,
    rng: np.random.Generator,
    effort: Effort = USUAL,
    starts: Sequence[Labels] = (),
    *,
    work: float,
    earlier: Earlier | None = None,
) -> Searched:
    """Search each component for its best partition, and bound it; those that are as they were `earlier` stay so.

    Small components are solved by comparing all their partitions. The others are bounded after a quick search, and
    those that this leaves open after a thorough one. Searches may take four fifths of the seconds of `effort`; what
    decisions on pairs would gain is then applied, in half of the rest. Bounds take what is left, or `work` and a little
    for each group, estimated times that are the same on every machine.
    """
    checksums = checksums_of(parts) if parts.source.draws is None else None
    if earlier is None or checksums is None:
        clusters, gaps, stopped = _solved(parts, rng, effort, starts, work)
    else:
        same = earlier.unchanged(parts, checksums)
        kept, rest = parts.those(same), parts.those(~same)
        others, open_ones, stopped = _solved(rest, rng, effort, starts, work)
        is_kept = np.repeat(same, parts.n_groups)
        clusters = np.empty(parts.members.size, np.int32)
        for part, found, at in ((kept, earlier.clusters(kept), is_kept), (rest, others, ~is_kept)):
            clusters[at] = np.flatnonzero(at)[found] if len(part) else found
        gaps = np.empty(parts.large.size)
        gaps[same[parts.large]], gaps[~same[parts.large]] = earlier.gaps_of(kept), open_ones
    labels = canonical_labels(parts.whole(clusters))
    lower_bound = parts.value(labels) - float(parts.unit * gaps.sum())
    return Searched(labels, info_of(parts, gaps, stopped), lower_bound, checksums)


def _solved(
    parts: Decomposition, rng: np.random.Generator, effort: Effort, starts: Sequence[Labels], work: float
) -> tuple[npt.NDArray[np.int32], Floats, str]:
    """First member of each member's cluster, the gap of each large component, and what stopped the search."""
    clusters, n_jobs, progressbar = parts.solved(), effort.n_jobs, effort.progressbar
    given = [parts.part_of(labels) for labels in starts]
    gaps, n_groups = parts.trivial_gaps(clusters), parts.n_groups[parts.large]
    few = np.flatnonzero(n_groups <= _FEW)
    deadline = None if effort.seconds is None else Deadline(effort.seconds)
    budget = deadline or WorkBudget(work + _SECONDS_A_GROUP * int(n_groups.sum()))
    to_search = None if deadline is None else max(NO_TIME, _SHARE_TO_SEARCH * deadline.left)
    with Executor(n_jobs, to_search) as executor:
        search = partial(_search, parts, clusters, rng, executor, progressbar)
        search(few, given, False)
        try:
            if not executor.is_over():
                at_first = budget.part(_SHARE_AT_FIRST)
                bound_components(parts, clusters, gaps, at_first, few, progressbar=progressbar)
                budget.note(-at_first.left)
        except KeyboardInterrupt:
            executor.halt("interrupted")
        left = np.flatnonzero(gaps > 0)
        search(left, [*given, clusters.copy()], True)
    stopped = executor.stopped
    if stopped != "interrupted":
        to_improve = None if deadline is None else max(NO_TIME, _SHARE_TO_IMPROVE * deadline.left)
        with Executor(n_jobs, to_improve) as executor:
            _improve(parts, clusters, executor, left)
            stopped = executor.stopped or stopped
    gaps[left] = parts.trivial_gaps(clusters, left)
    if stopped != "interrupted":
        try:
            bound_components(parts, clusters, gaps, budget, left, progressbar=progressbar)
        except KeyboardInterrupt:
            stopped = "interrupted"
    if stopped == "interrupted":
        warn("The search was interrupted; the result is the best partition so far.")
    return clusters, gaps, stopped


def _search(
    parts: Decomposition,
    clusters: npt.NDArray[np.int32],
    rng: np.random.Generator,
    executor: Executor,
    progressbar: bool,
    numbers: npt.NDArray[np.intp],
    starts: Sequence[npt.NDArray[Any]],
    thorough: bool,
) -> None:
    """Search some of the large components, and write the first member of each member's cluster.

    The random numbers of a component depend on nothing but the seed and itself.
    """
    seed, ended = int(rng.integers(1 << 63)), 0
    with counting(
        "Search by component", int(parts.n_groups[parts.large[numbers]].sum()), progressbar=progressbar
    ) as advance_to:
        for first in range(0, numbers.size, _AT_ONCE):
            some = list(parts.of(numbers[first : first + _AT_ONCE]))
            done = np.zeros(len(some))
            calls = [
                (
                    *(one, [labels[at] for labels in starts], _stream_of(one, seed), executor.stop, thorough),
                    partial(_show_share, advance_to, ended, done, number, one.n_groups),
                )
                for number, (one, at) in enumerate(some)
            ]
            for (one, at), labels in zip(some, executor.results(_best_of, calls), strict=True):
                clusters[at] = at.start + first_members(labels)
                ended += one.n_groups
            advance_to(ended)


def _show_share(
    advance_to: Callable[[int], None], ended: int, done: Floats, number: int, n_groups: int, share: float
) -> None:
    """Show that a share of one of the components that are searched at once is done, after others of `ended` groups."""
    done[number] = n_groups * share
    advance_to(ended + int(done.sum()))


def _stream_of(component: Component, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(component.excess.tobytes())])


def _improve(
    parts: Decomposition, clusters: npt.NDArray[np.int32], executor: Executor, numbers: npt.NDArray[np.intp]
) -> None:
    """Apply what decisions on pairs would gain in some of the large components."""
    some = list(parts.of(numbers))
    calls = [(one, canonical_labels(clusters[at]), executor.stop) for one, at in some]
    for (_, at), labels in zip(some, executor.results(improved_by_decisions, calls), strict=True):
        clusters[at] = at.start + first_members(labels)


def _best_of(
    component: Component,
    starts: Sequence[npt.NDArray[Any]],
    rng: np.random.Generator,
    stop: npt.NDArray[np.uint8],
    thorough: bool,
    advance: Callable[[float], None],
) -> Labels:
    """The best labels that the search finds for a component, without pairs that must be apart."""
    given = [component.without_losses(labels) for labels in starts]
    return component.without_losses(search_component(component, given, rng, stop, thorough, advance))
