"""Restarts ("perturbations" to users): partitions near a good one, from which a search may leave its basin."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.search.forms import Found

Codes = npt.NDArray[np.int64]
Companions = Callable[[int, float], npt.NDArray[np.bool_]]

_CLUSTERS_A_PLACE = 16  # clusters for each of which one more place is changed, if the loss is a sum over clusters
_MIXED = 0.1, 0.3  # shares of the items that move together


def without_gaps(labels: Codes) -> Labels:
    """Number the clusters from 0 on, in the order of their labels; -1 stays."""
    names, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes - int(names[0] < 0), np.int32)


def changes(
    elite: Sequence[Found], companions: Companions, is_sum: bool, rng: np.random.Generator
) -> Iterator[tuple[Labels, npt.NDArray[np.intp]]]:
    """Give changed partitions without end, in which -1 stands for items to allocate, and an order of the items.

    They come from the first of the `elite`, the best, as often as from any of them.

    Parameters
    ----------
    elite : sequence of Found
        Read anew for each change.
    companions : callable
        ``companions(i, u)`` are the items that item i is with in the draw at quantile u; or those whose similarity to
        it is above u, if there are no draws.
    is_sum : bool
        Whether the loss is a sum over clusters. Effects of changes then add up, and large partitions get several.
    rng : Generator
    """
    for change in cycle((_gather, _mix, _dissolve)):
        one = elite[0 if rng.random() < 0.5 else int(rng.integers(len(elite)))]
        labels = one.labels.astype(np.int64)
        n_places = 1 + (int(labels.max()) // _CLUSTERS_A_PLACE if is_sum else 0)
        for i in rng.integers(labels.size, size=n_places).tolist():
            change(labels, i, companions(i, rng.random()), rng)
        yield without_gaps(labels), rng.permutation(labels.size)


def _gather(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Put an item's companions into a cluster of their own."""
    labels[near] = labels.max() + 1


def _mix(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Give some items the clusters of others: allocation would put them back to where they were."""
    mixed = np.flatnonzero(rng.random(labels.size) < rng.choice(_MIXED))
    labels[mixed] = labels[rng.integers(labels.size, size=mixed.size)]


def _dissolve(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Dissolve an item's cluster, and the cluster of a co-member that is now elsewhere."""
    others = np.flatnonzero(near & (labels != labels[i]))
    with_i = (labels == labels[i]) & (labels >= 0)
    if others.size:
        with_i |= labels == labels[rng.choice(others)]
    labels[with_i] = -1
