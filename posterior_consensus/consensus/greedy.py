"""Greedy search for the partition of minimum expected loss."""

from collections.abc import Callable, Sequence
from typing import Any

from posterior_consensus.consensus.best_draw import best_draw
from posterior_consensus.consensus.hierarchical import hierarchical
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.consensus.spectral import spectral
from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.search.engine import Start, search

STARTS: dict[str, Callable[..., Candidate]] = {one.__name__: one for one in (best_draw, hierarchical, spectral)}
"""Methods whose partitions a search can start from."""


def greedy(
    draws: PairSource,
    loss: Loss,
    task: Task,
    *,
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
        The search ends early once this many runs reached the minimum loss; checked after every third run, with Binder's
        loss after every tenth. With a loss that is not linear the search also ends once so many runs in a row found
        nothing better; considered after every second run.
    n_perturbations : int, optional
        Number of restarts, searches from random changes of the best partitions. By default they end after 64 in a row
        without a gain, or 32 if `n_agree` runs agreed (twice as many for a number of clusters), and when they took
        what `search/engine.py` allows: none of large posteriors.
    starts : sequence
        Further partitions to start from: "best_draw", "hierarchical", "spectral", label vectors or result objects. A
        search for a number of clusters also starts from the best partition of any number: it searches for that one
        first, unless one of `starts` is a :class:`ConsensusPartition` of this loss without limits.
    seconds : float, optional
        Time after which the best partition so far is taken. What is found then depends on the machine.
    n_jobs : int
        Number of threads; -1 uses one for each CPU. The result does not depend on it.

    Notes
    -----
    A run allocates the items one by one, in random order, to the cluster that is best for the items allocated so far,
    then moves items until no move lowers the expected loss (sweetening), as Dahl, Johnson and Mueller (2022) do,
    https://doi.org/10.1080/10618600.2022.2069779. It merges two clusters where that lowers the loss, and moves a few
    items together where each alone would not (Kernighan and Lin 1970,
    https://doi.org/10.1002/j.1538-7305.1970.tb00770.x). A run begins on 40 draws and ends on all of them. The clusters
    of the best partition are at last dissolved and allocated again (zealous updates) and split in two, each for
    itself. Of a few items every two are moved at once, which takes little and leaves the search few traps.

    Every other run begins at a draw instead. Cuts of the average-linkage tree are starts, too: of small posteriors,
    and of up to 2,000 items for losses that are not linear in the cells of the contingency table, such as the ratios,
    which take longer and have more traps.

    From 131,072 items on, or where the labels take more than the memory budget, all this is done on 65,536 items and at
    most 1,024 draws. The partition found is extended to the other items, and items move and clusters merge, by all
    draws, until neither lowers the expected loss: see `scale.py`. If few items share a draw's cluster, as in record
    linkage, there is no sample.
    """
    if isinstance(starts, str):
        raise TypeError(f"`starts` must be a list of partitions or names; got {starts!r}.")

    def by_name(name: str) -> Callable[[PairSource], Labels]:
        if name not in STARTS:
            raise ValueError(f"`starts` must be partitions or names among {', '.join(STARTS)}; got {name!r}.")
        method = STARTS[name]

        def found(source: PairSource) -> Labels:
            draws = draws_of(source) if method is best_draw else source
            return source.as_labels(method(draws, loss, task._replace(progressbar=False)).labels)

        return found

    given: list[Start] = [by_name(start) if isinstance(start, str) else start for start in starts]
    is_there = any(
        isinstance(start, ConsensusPartition) and start.loss == loss and start.cluster_limits == ClusterLimits()
        for start in starts
    )
    labels, info = search(
        draws,
        loss,
        **task._asdict(),
        from_unconstrained=not is_there,
        n_starts=n_starts,
        n_agree=n_agree,
        n_perturbations=n_perturbations,
        starts=given,
        seconds=seconds,
        n_jobs=n_jobs,
    )
    return Candidate(labels, info)
