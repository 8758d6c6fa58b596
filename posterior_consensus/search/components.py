"""The search for the least of Binder's loss, for each component of linked records by itself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.bounds.components import (
    Component,
    ComponentsInfo,
    Decomposition,
    bound_components,
    first_members,
)
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.runtime.arguments import warn
from posterior_consensus.runtime.executor import NO_TIME, Executor
from posterior_consensus.runtime.progress import track
from posterior_consensus.search.sparse_search import search_component

_SECONDS = 10.0  # estimated time to bound all components,
_SECONDS_A_GROUP = 3e-4  # and what is added for each of their groups
_SHARE_TO_SEARCH = 0.5  # of a time limit
_AT_ONCE = 64  # components whose searches are begun together


class Found(NamedTuple):
    """The best partition of a search by component.

    Attributes
    ----------
    labels : ndarray of shape (n_records,), dtype int32
        Canonical.
    gap : float
        By how much the expected loss may exceed the minimum at most, in the loss's unit; 0 if all parts are proven.
    info : ComponentsInfo
    """

    labels: Labels
    gap: float
    info: ComponentsInfo


def search_components(
    parts: Decomposition,
    rng: np.random.Generator,
    *,
    starts: Sequence[Labels] = (),
    seconds: float | None = None,
    work: float = _SECONDS,
    n_jobs: int = -1,
    progressbar: bool = False,
) -> Found:
    """Search each component for its best partition, and bound it.

    Small components are solved by comparing all their partitions. A search of the others may take half of `seconds`.
    Bounds take the rest, or `work` and a little for each group, estimated times that are the same on every machine.
    """
    clusters, gaps = parts.solved(), np.zeros(parts.large.size)
    given = [parts.parts(labels) for labels in starts]
    deadline = None if seconds is None else Deadline(seconds)
    to_search = None if deadline is None else max(NO_TIME, _SHARE_TO_SEARCH * deadline.left)
    with Executor(n_jobs, to_search) as executor:
        for first in track(range(0, gaps.size, _AT_ONCE), "Search by component", progressbar=progressbar):
            some = parts.large[first : first + _AT_ONCE].tolist()
            own = [parts.place(one) for one in some]
            calls = [
                (parts.component(one), [labels[at] for labels in given], stream, executor.stop)
                for one, at, stream in zip(some, own, rng.spawn(len(some)), strict=True)
            ]
            for at, labels in zip(own, executor.results(_best_of, calls), strict=True):
                clusters[at] = at.start + first_members(labels)
    stopped = executor.stopped
    for number, one in enumerate(parts.large.tolist()):  # for what no bound is computed
        component = parts.component(one)
        gaps[number] = component.most - component.value(first_members(clusters[parts.place(one)]))
    if stopped != "interrupted":
        budget = deadline or WorkBudget(work + _SECONDS_A_GROUP * int(parts.n_groups[parts.large].sum()))
        try:
            bound_components(parts, clusters, gaps, budget, progressbar=progressbar)
        except KeyboardInterrupt:
            stopped = "interrupted"
    if stopped == "interrupted":
        warn("The search was interrupted; the result is the best partition so far.")
    info = parts.info(gaps, stopped)
    return Found(canonical_labels(parts.labels(clusters)), float(parts.unit * gaps.sum()), info)


def _best_of(
    component: Component, starts: Sequence[npt.NDArray[np.int64]], rng: np.random.Generator, stop: npt.NDArray[np.uint8]
) -> Labels:
    """The best labels that the search finds for a component, without pairs that must be apart."""
    given = [component.without_losses(labels) for labels in starts]
    return component.without_losses(search_component(component, given, rng, stop))
