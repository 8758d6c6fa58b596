"""Methods that search for the partition of minimum expected loss: greedily, by best moves, and with a proof."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posterior_consensus.bounds.binder import binder_bound
from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.consensus.candidates import best_draw, hierarchical
from posterior_consensus.consensus.graphs import spectral
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.consensus.selection import Candidate, Task, allowed
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import least_loss, mean_loss
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import pair_moves
from posterior_consensus.losses.partition_losses import binder, tau_of
from posterior_consensus.losses.record import Loss
from posterior_consensus.problems.components import components_of
from posterior_consensus.problems.problem import FREE, Problem
from posterior_consensus.results.work import ClusterLimits, FitInfo
from posterior_consensus.runtime.arguments import check_seconds
from posterior_consensus.search.components import search_components
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search

STARTS: dict[str, Callable[..., Candidate]] = {one.__name__: one for one in (best_draw, hierarchical, spectral)}
"""Methods whose partitions a search can start from."""
_MOVES_AT_ONCE = 10_000
_SECONDS_TO_PROVE = 60.0  # estimated time of the work


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
        losses of a larger or smaller entropy, such as "information_distance" and "nid". They also end at a limit of
        work, and large posteriors have none.
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

    Every third run begins at a draw; with a nonlinear loss, every second run. A search that reads the similarity matrix
    begins at no draw. A search over draws also starts from cuts of the average-linkage tree if the posterior is small.
    With nonlinear losses it does so up to 2,000 items.

    From 131,072 items on, from 2^22 labels of at least 32,768 items on, or if the labels exceed the memory budget, the
    search uses half of the items, at most 65,536, and at most 1,024 draws. Its partition is then extended to all items,
    and improved on all draws by moves of items and merges of clusters. Posteriors of many small clusters, as in record
    linkage, are not sampled.

    Under Binder's loss without a number of clusters, draws of many small clusters are searched by component. Components
    of up to 14 items are solved exactly, and larger ones searched from `starts` and others, and bounded. `n_starts`,
    `n_agree` and `n_perturbations` have no effect then. Items that are together in all draws count as one.
    """
    if isinstance(starts, str):
        raise TypeError(f"`starts` must be a list of partitions or names; got {starts!r}.")

    def start_named(name: str) -> Callable[[PairSource], Labels]:
        if name not in STARTS:
            raise ValueError(f"`starts` must be partitions or names among {', '.join(STARTS)}; got {name!r}.")
        method = STARTS[name]

        def start_of(source: PairSource) -> Labels:
            draws = source.as_draws() if method is best_draw else source
            return source.as_labels(method(draws, loss, task._replace(progressbar=False)).labels)

        return start_of

    given = [start_named(start) if isinstance(start, str) else start for start in starts]
    has_unconstrained = any(
        isinstance(start, ConsensusPartition) and start.loss == loss and start.cluster_limits == FREE
        for start in starts
    )
    effort = Effort(
        n_starts=n_starts,
        n_agree=n_agree,
        n_perturbations=n_perturbations,
        seconds=seconds,
        n_jobs=n_jobs,
        from_unconstrained=not has_unconstrained,
        progressbar=task.progressbar,
    )
    limits = ClusterLimits(n_clusters=task.n_clusters, max_clusters=task.max_clusters)
    return Candidate(*search(Problem(draws, loss, limits), task.rng, effort, given, task.earlier))


@dataclass(frozen=True, kw_only=True)
class MovesInfo(FitInfo):
    """Record of "boem": `threshold` is the pair threshold of Binder's loss."""

    threshold: float


def boem(draws: PairSource, loss: Loss, task: Task) -> Candidate:
    """Improve the best draw by the single-item move that lowers Binder's loss most, until no move lowers it.

    Notes
    -----
    Best one-element move [1]_ [2]_, for Binder's loss with any costs. Up to its scale and a constant, the expected loss
    is the sum of tau - PSM_ij over the co-clustered pairs, with tau the pair threshold of the loss. Under any other
    loss tau is 1/2. Each step compares every move of an item to another or a new cluster. Method "greedy" also merges
    and splits clusters, and typically ends no higher.

    The start is the draw of minimum expected Binder loss among draws with an allowed number of clusters. If there is
    none, the best of all draws is adapted: clusters merge at the least cost, or the worst placed items open new ones.
    For a similarity matrix alone, the start is the best cut of the average-linkage tree.

    The n x n similarity matrix is formed. A move takes about n_items operations, and at most n_items x clusters.

    References
    ----------
    .. [1] Filkov and Skiena (2004), International Journal on Artificial Intelligence Tools 13(4), 863-880.
       https://doi.org/10.1142/S0218213004001867
    .. [2] Goder and Filkov (2008), Consensus clustering algorithms: comparison and refinement, ALENEX 2008, 109-117.
       https://doi.org/10.1137/1.9781611972887.11
    """
    record = loss.as_binder() or binder()
    partition = _start_of_moves(draws, record, task)
    similarity = draws.similarity()
    np.fill_diagonal(similarity, 0.0)
    costs = pair_moves.Costs(record.numerator["A"], record.numerator["B"])
    fewest, most = task.n_clusters or 1, task.most or draws.n_items
    changes, buffer = np.empty(0), np.empty(_MOVES_AT_ONCE)
    n_moves = buffer.size
    while n_moves == buffer.size:
        n_moves = pair_moves.move_best(similarity, costs, partition, fewest, most, buffer)
        changes = np.concatenate([changes, buffer[:n_moves]])
    labels = canonical_labels(partition)
    objective = float(mean_loss(draws, labels[np.newaxis], record)[0])
    to_come = np.cumsum(np.append(changes, 0.0)[::-1])[::-1]
    trace = (objective - record.scale(draws.n_items) * to_come).tolist()
    return Candidate(labels, MovesInfo.of(trace, True, n_iter=changes.size, threshold=tau_of(record)))


def _start_of_moves(draws: PairSource, loss: Loss, task: Task) -> Labels:
    if (posterior := draws.draws) is None:
        return hierarchical(draws, loss, task).labels.astype(np.int32)
    if len(allowed(posterior.labels, task)) == 0:
        task = task._replace(n_clusters=None, max_clusters=None)
    return best_draw(posterior, loss, task).labels.astype(np.int32)


def exact(draws: PairSource, loss: Loss, task: Task, *, seconds: float | None = None) -> Candidate:
    """Search greedily, then branch and bound until the partition is proven optimal, for Binder's loss with any costs.

    Parameters
    ----------
    seconds : float, optional
        Time limit of the proof. At the limit, the result is the best partition found, with its optimality gap. By
        default the limit is a fixed amount of work, about one minute.
    """
    record = loss.as_binder()
    if record is None:
        raise ValueError(
            f"method 'exact' takes Binder's loss only; got {loss.name!r}. "
            "Use 'enumeration' for at most ten items, else 'greedy', and bound its result by certify."
        )
    if task.most is not None:
        raise ValueError("method 'exact' takes neither `n_clusters` nor `max_clusters`. Use 'greedy'.")
    check_seconds(seconds)
    problem, effort = Problem(draws, record), Effort(progressbar=task.progressbar)
    if (parts := components_of(problem)) is not None:
        limited = replace(effort, seconds=seconds)
        found = search_components(parts, task.rng, limited, work=_SECONDS_TO_PROVE, earlier=task.earlier)
        return Candidate(*found)
    found = search(problem, task.rng, effort)
    start = draws.as_labels(found.labels)
    budget = WorkBudget(_SECONDS_TO_PROVE) if seconds is None else Deadline(float(seconds))
    bound = binder_bound(draws, record, start, budget=budget, progressbar=task.progressbar)
    candidates = np.stack([start, start if bound.partition is None else bound.partition])
    return Candidate(least_loss(draws, loss, [candidates])[0], bound.info, bound.value)
