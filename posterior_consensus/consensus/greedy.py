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
    """Search from several starts for the partition of minimum expected loss, by moves of items and clusters.

    Parameters
    ----------
    n_starts : int, optional
        Largest number of runs from random orders of the items and from draws. By default 16, decreasing to 3 between
        3.75 and 20 million labels. Runs from given partitions and from cuts of a tree are further ones;
        ``info.n_starts`` counts all.
    n_agree : int
        The search ends early once this many runs reached the minimum loss. With a nonlinear loss, it also ends after
        this number of runs in a row without improvement. Both are checked after every third run, or every second with
        a nonlinear loss. If the similarity matrix is read for Binder's loss, it is every tenth.
    n_perturbations : int, optional
        Number of restarts from random changes of the best partitions. By default restarts end after 64 in a row
        without a gain, or 32 if `n_agree` runs agreed; twice as many with a fixed number of clusters, and with the
        losses of a larger or smaller entropy, such as "id" and "nid". They also end at a limit of work, and large
        posteriors have none.
    starts : sequence
        Further partitions to start from: "best_draw", "hierarchical", "spectral", label vectors or result objects. A
        search for a number of clusters also starts from the best partition of any number, which it searches for first.
        A :class:`ConsensusPartition` of this loss without limits among `starts` replaces that search.
    seconds : float, optional
        Time limit, after which the best partition so far is returned. The result then depends on the machine.
    n_jobs : int
        Number of threads; -1 uses one for each CPU. The result does not depend on it.

    Notes
    -----
    A run allocates the items one by one, in random order, to the cluster that is best for the items so far. It then
    moves items until no move lowers the expected loss (sweetening), as in Dahl, Johnson and Mueller (2022),
    https://doi.org/10.1080/10618600.2022.2069779. It also merges two clusters if that lowers the loss, and moves a few
    items jointly if single moves do not help (Kernighan and Lin 1970,
    https://doi.org/10.1002/j.1538-7305.1970.tb00770.x). A run of a search over draws begins on 40 of
    them and ends on all. Finally each cluster of the best partition is dissolved and reallocated (zealous updates), and
    split in two. With at most twelve items and about a thousand draws, all pairs of items are moved jointly.

    Of three runs one begins at a draw, or of two with a nonlinear loss; none does if the search reads the similarity
    matrix. A search over draws also starts from cuts of the average-linkage tree if the posterior is small. With
    nonlinear losses (all but Binder's and VI) it does so up to 2,000 items.

    From 131,072 items on, or if the labels exceed the memory budget, the search uses 65,536 items and at most 1,024
    draws. Its partition is then extended to all items, and improved on all draws by moves of items and merges of
    clusters. Posteriors of many small clusters, as in record linkage, are not sampled.
    """
    if isinstance(starts, str):
        raise TypeError(f"`starts` must be a list of partitions or names; got {starts!r}.")

    def by_name(name: str) -> Callable[[PairSource], Labels]:
        if name not in STARTS:
            raise ValueError(f"`starts` must be partitions or names among {', '.join(STARTS)}; got {name!r}.")
        method = STARTS[name]

        def start_of(source: PairSource) -> Labels:
            draws = draws_of(source) if method is best_draw else source
            return source.as_labels(method(draws, loss, task._replace(progressbar=False)).labels)

        return start_of

    given: list[Start] = [by_name(start) if isinstance(start, str) else start for start in starts]
    has_unconstrained = any(
        isinstance(start, ConsensusPartition) and start.loss == loss and start.cluster_limits == ClusterLimits()
        for start in starts
    )
    labels, info = search(
        draws,
        loss,
        **task._asdict(),
        from_unconstrained=not has_unconstrained,
        n_starts=n_starts,
        n_agree=n_agree,
        n_perturbations=n_perturbations,
        starts=given,
        seconds=seconds,
        n_jobs=n_jobs,
    )
    return Candidate(labels, info)
