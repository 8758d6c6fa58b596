"""consensus_partition(): one call from draws to the partition to report."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from posterior_consensus.bounds.methods import quick_bound
from posterior_consensus.consensus.methods import as_method, check_no_method, own_options
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.consensus.refinement import ORDERS, Order, check_refinement, refined_labels
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.consensus.threshold import Threshold, pair_means, threshold_of
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.evaluate.expectation import loss_and_error, loss_on
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import Loss, Need
from posterior_consensus.results.work import ClusterLimits, Info
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, unknown_option
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.sources.door import as_source


def consensus_partition(
    draws: Any,
    *,
    loss: str | Loss | None = None,
    method: str | Callable[..., Candidate] = "greedy",
    n_clusters: int | None = None,
    max_clusters: int | Literal["draws"] | None = None,
    tau: float | Literal["auto"] | None = None,
    refine: Order | None = None,
    passes: int | None = 1,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> ConsensusPartition:
    """Find the partition of minimum posterior expected loss.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        With a similarity matrix alone (:func:`as_pair_similarity`), losses and methods that need pairs only.
    loss : str, PartitionLoss or PairLoss, optional
        Loss whose posterior expectation is minimized: a name in LOSSES or a record such as ``binder(a=0.5)``. Or one
        that the posterior similarity matrix gives, by its name in PAIR_LOSSES: "vi_lower_bound", "pear", and
        "within_variance", which needs `n_clusters` or `max_clusters`. By default "vi".
    method : str or callable
        A name in METHODS, or a function of the same signature. "greedy" searches for the minimum expected loss;
        "hierarchical", "basic", "spectral", "kcc", "sdp", "impurity", "lange_buhmann", "cspa", "mcla", "hbgf" and
        "nmf" choose the number of clusters by it; "cc_pivot", "boem", "sccc" and "align_and_vote" find that number
        themselves, by criteria of their own; "rpm_em" fits the random perturbation model, whatever the loss;
        "best_draw" takes a draw; "enumeration" tries every partition of at most ten items; "exact" proves its result
        optimal, for Binder's loss.
    n_clusters : int, optional
        Number of clusters of the partition. By default it is chosen by the expected loss.
    max_clusters : int or "draws", optional
        Largest number of clusters of the partition; "draws" for the largest number in any draw, which is R's salso's
        limit. By default "greedy", "exact", "enumeration", "cc_pivot", "boem" and "sccc" have no limit, the others try
        up to the largest number in any draw.
    tau : float in (0, 1), "auto" or None
        Pair threshold of Binder's loss, ``binder(tau=...)``, with loss="binder" only; "auto" calibrates it as
        :func:`pair_threshold` does. The result's `threshold` then has ``tau`` and the mean similarities ``within`` and
        ``between`` its clusters.
    refine : {None, "jacobi", "gauss-seidel"}
        Local refinement of the method's result, see :func:`refine_partition`: every item joins the cluster to whose
        members it has the largest mean similarity. It does not minimize `loss`, and can raise the expected loss.
    passes : int or None
        Passes of the refinement; None goes on until nothing changes.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **options
        Further arguments of the method, which ``help(METHODS["greedy"].function)`` describes:

        - "greedy": n_starts, n_agree, n_perturbations, starts, seconds, n_jobs (see Notes);
        - "basic", "align_and_vote", "mcla", "hbgf": n_starts;
        - "hierarchical": linkage;
        - "spectral": affinity, gamma, n_starts;
        - "kcc": utility, p, n_starts;
        - "sdp", "exact": seconds;
        - "impurity": weighted, n_starts;
        - "cc_pivot": threshold, n_starts;
        - "lange_buhmann": n_starts, max_iter, tol;
        - "rpm_em": noise, n_starts, max_steps;
        - "cspa": balanced, n_starts;
        - "nmf": max_iter, tol, n_starts;
        - "sccc": gap, threshold;
        - "best_draw", "boem", "enumeration": none.

    Returns
    -------
    ConsensusPartition

    Raises
    ------
    ValueError
        If an argument's value is not among those allowed, the loss or the method needs draws and a similarity matrix
        alone is given, or the draws are invalid as :func:`as_partition_draws` says.
    TypeError
        If an option is not one of the method's.
    MemoryError
        If the method needs more than the memory budget, 4 GB or what the environment variable
        POSTERIOR_CONSENSUS_MEMORY says; the budget does not depend on the machine's free memory.

    Warns
    -----
    UserWarning
        If the partition has fewer clusters than `n_clusters`, as k-means gives if the draws do not distinguish so many
        groups of items.

    Notes
    -----
    Greedy search runs from up to ``n_starts`` random orders of the items (16, fewer for more than 3.75 million labels)
    and from further ``starts``: label vectors, result objects, or "best_draw", "hierarchical" and "spectral". It ends
    early once ``n_agree`` (3) runs reached the minimum loss, or when ``seconds`` are over. Restarts from random changes
    of the best partitions follow, until many in a row gained nothing or they took what small posteriors are worth;
    ``n_perturbations`` sets their number. It uses as many threads as ``n_jobs``
    says (-1: one for each processor), which does not change the result. Ctrl-C ends it with a warning and the best
    partition so far. `info` has the number of runs, their kinds, how many of them ended at the best loss, the scans and
    the moves of each kind, the seconds, the loss of every run and the minimum loss so far.

    From 131,072 items on, or where the labels take more than the memory budget, the runs are on a sample of 65,536
    items and at most 1,024 draws (`info.sample`). The best of them is extended to all items, which move one by one, by
    all draws, until no such move and no merge of two clusters lowers the expected loss. Given ``starts`` are searched
    from on the sample and on all items. Posteriors of many small clusters, as of record linkage, are searched as a
    whole.

    "basic", "spectral", "kcc", "sdp", "impurity", "lange_buhmann", "cspa", "mcla", "hbgf" and "nmf" fit every number of
    clusters up to 30. If more are allowed, they fit 1 to 8 and a grid that grows by the root of 2, and halve the
    gaps on either side of the best number until these are at most a thirtieth of it, or 1. Beyond 30 clusters such a
    fit has fewer starts and iterations, in proportion. `info` lists the numbers as ``n_clusters_tried``.

    A similarity matrix alone is enough for "greedy", "hierarchical", "basic", "spectral", "sdp", "cc_pivot", "boem",
    "lange_buhmann", "cspa", "nmf", "enumeration" and "exact" with Binder's loss of any costs. All but "exact" also take
    the losses of PAIR_LOSSES. Methods that try numbers of clusters then go up to the number of items, unless
    `max_clusters` is smaller, and "boem" starts from the best cut of the tree of average linkage. For "pear", greedy
    search is repeated for Binder's loss, each time at the pair threshold that the best PEAR so far gives (Dinkelbach's
    method); `info` has the last threshold and, as ``expected_losses``, the value after each search.

    The expected loss is recomputed from the labels, whatever the method reports. The minimum expected loss is what the
    posterior and the loss make it: for very noisy draws VI's is one cluster.

    With Binder's loss, whatever its costs, and at most 5,000 items (as many as a memory budget of 4 GB has room for)
    the result has a lower bound of the minimum expected loss and the relative gap that leaves. The bound takes
    no more work than a search, which must not have been stopped or have taken more than half of ``seconds``, and is
    reproducible; :func:`certify` raises it. With `n_clusters` or `max_clusters` it
    still bounds the expected loss of all partitions.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> best = pc.consensus_partition(draws, loss="binder", random_seed=1)
    >>> best.labels.values
    array([0, 0, 1, 1], dtype=int32)
    >>> best.expected_loss
    0.09375
    """
    function, name, need = as_method(method)
    check_options({"method": method} | options)
    check_no_method(loss)
    given = as_loss(loss)
    needs: dict[str, Need] = {f"loss {given.name!r}": given.needs, f"method {name!r}": need}
    needs |= {
        f"{key}={value!r}": "draws"
        for key, value in (("tau", tau), ("max_clusters", max_clusters))
        if isinstance(value, str)
    }
    source = as_source(draws, needs)
    limits = _limits(source, given, n_clusters, max_clusters)
    check_refinement(ORDERS[0] if refine is None else refine, passes, "refine")
    rng = as_generator(random_seed)
    tau = threshold_of(source, given, tau, rng, progressbar)
    record = loss_on(source, given) if tau is None else binder(tau=tau)
    began = time.monotonic()
    candidate = function(source, record, Task(rng, progressbar=progressbar, **limits), **options)
    if not isinstance(candidate, Candidate):
        raise TypeError(f"method {name!r} must return a consensus.Candidate; got {type(candidate).__name__}.")
    labels = source.as_labels(candidate.labels, "method's labels")
    if refine is not None:
        labels = refined_labels(source, labels, refine, passes)
        name = f"{name}, {refine} refinement"
    if n_clusters is not None and labels.max() + 1 < n_clusters:
        reason = "the draws do not distinguish more" if refine is None else "the refinement may have merged some"
        warnings.warn(
            f"The partition has {labels.max() + 1} clusters, not {n_clusters}: {reason}.",
            stacklevel=2,
        )
    threshold = None
    if tau is not None:
        within, between = pair_means(source, labels)
        threshold = Threshold(tau=tau, within=within, between=between)
    expected, mcse, ess = (float(values[0]) for values in loss_and_error(source, labels[np.newaxis], record))
    lower_bound = candidate.lower_bound
    if lower_bound is None and time.monotonic() - began <= (options.get("seconds") or np.inf) / 2:
        lower_bound = _bound_after(source, record, labels, candidate.info)
    return ConsensusPartition(
        labels=source.items.array(labels, "labels"),
        expected_loss=expected,
        mcse=mcse,
        ess=ess,
        loss=record,
        method=name,
        n_draws=source.n_draws,
        lower_bound=None if lower_bound is None else min(lower_bound, expected),
        info=candidate.info,
        cluster_limits=ClusterLimits(**limits),
        threshold=threshold,
    )


def check_options(options: dict[str, Any], more: Iterable[str] = ()) -> None:
    """Refuse arguments of :func:`consensus_partition` that neither it nor the method takes; `more` may be meant."""
    function, name, _ = as_method(options.get("method", "greedy"))
    shared = [name for name in inspect.signature(consensus_partition).parameters if name not in ("draws", "options")]
    own = own_options(function)
    for option in options:
        if own is not None and option not in (*own, *shared):
            raise unknown_option(f"method {name!r}", option, own, [*own, *shared, *more])


def _bound_after(source: PairSource, loss: Loss, labels: Labels, info: Info | None) -> float | None:
    """A lower bound for no more work than that of a search; none after a search that was stopped."""
    if isinstance(info, SearchInfo) and info.stopped:
        return None
    try:
        return quick_bound(source, loss, labels, info.kinds.count("allocation") if isinstance(info, SearchInfo) else 1)
    except KeyboardInterrupt:
        warnings.warn("The computation of the lower bound was interrupted; the result has no bound.", stacklevel=3)
        return None


def _limits(source: PairSource, loss: Loss, n_clusters: Any, max_clusters: Any) -> dict[str, Any]:
    """Those numbers of clusters that are given, checked."""
    if isinstance(max_clusters, str):
        if max_clusters != "draws":
            raise ValueError(f"`max_clusters` must be an integer, 'draws' or None; got {max_clusters!r}.")
        max_clusters = source.most_clusters
    check_clusters(n_clusters, max_clusters)
    given = (("n_clusters", n_clusters), ("max_clusters", max_clusters))
    limits = {name: int(number) for name, number in given if number is not None}
    if loss.falls_with_clusters and not limits:
        raise ValueError(
            f"loss {loss.name!r} needs `n_clusters` or `max_clusters`: it falls with every further cluster, to 0 where "
            "each item is one."
        )
    for name, number in limits.items():
        if number > source.n_items:
            raise ValueError(f"`{name}` must lie between 1 and the number of items, {source.n_items}; got {number}.")
    return limits
