"""The search for the least of Binder's loss, for each component of linked records by itself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.components import Component, ComponentsInfo, Decomposition, bounded
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import track

_SECONDS = 10.0  # estimated time to bound all components


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
    progressbar: bool = False,
) -> Found:
    """Search each component for its best partition, and bound it."""
    clusters = parts.solved()
    given = [parts.parts(labels) for labels in starts]
    gaps = np.zeros(parts.large.size)
    share = work / max(1, int(parts.n_groups[parts.large].sum()))
    with Executor(0, seconds) as executor:
        for number, one in enumerate(track(list(parts.large), "Search by component", progressbar=progressbar)):
            own = slice(*parts.starts[one : one + 2])
            component = parts.component(int(one))
            labels, gaps[number] = _best_of(
                component, [labels[own] for labels in given], rng, executor, share * component.n_groups, parts.step
            )
            clusters[own] = own.start + _first_members(labels)
    info = parts.info(gaps, executor.stopped)
    return Found(canonical_labels(parts.labels(clusters)), float(parts.unit * gaps.sum()), info)


def _best_of(
    component: Component,
    starts: Sequence[npt.NDArray[np.int64]],
    rng: np.random.Generator,
    executor: Executor,
    seconds: float,
    step: float,
) -> tuple[Labels, float]:
    """The best labels that the search finds for a component, and their gap."""
    own = [canonical_labels(labels) for labels in starts]
    own += [np.arange(component.n_groups, dtype=np.int32), np.zeros(component.n_groups, np.int32)]
    best = max(own, key=component.value)
    found = bounded(component, best, WorkBudget(seconds), step)
    return found.labels, found.gap


def _first_members(labels: Labels) -> npt.NDArray[np.intp]:
    """Position of the first member of each one's cluster."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]
