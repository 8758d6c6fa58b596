"""consensus_partition(): the partition of minimum posterior expected loss."""

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from functools import singledispatch
from typing import Any, Literal

import numpy as np

from posterior_consensus.bounds.bound import checked
from posterior_consensus.bounds.certificate import quick_bound
from posterior_consensus.consensus.changes import names_after
from posterior_consensus.consensus.methods import as_method, check_no_method, own_options
from posterior_consensus.consensus.previous import Previous
from posterior_consensus.consensus.record import ConsensusPartition, by_record
from posterior_consensus.consensus.refinement import ORDERS, Order, check_refinement, refined_labels
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.consensus.threshold import Threshold, pair_means, threshold_of
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import doubt_of_losses, loss_and_error, loss_on
from posterior_consensus.ensemble.partitions import Labels, alone
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.partition_losses import binder, vi
from posterior_consensus.losses.record import Loss
from posterior_consensus.problems.problem import FREE
from posterior_consensus.results.work import ClusterLimits, Info
from posterior_consensus.runtime.arguments import (
    RandomSeed,
    as_generator,
    check_clusters,
    check_flag,
    unknown_option,
    warn,
)
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.sources.conversion import as_source

_WITH_NOISE = ("greedy", "enumeration", "best_draw")  # methods that call items noise
_BY_COMPONENT = ("greedy", "exact")  # methods that search scored pairs so, and keep constraints
_OF_COMMON_ITEMS = ("greedy", "enumeration")  # methods for runs that lack items


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
    previous: Any = None,
    fixed: bool = False,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> ConsensusPartition:
    """Find the partition of minimum posterior expected loss, with its Monte Carlo standard error.

    Parameters
    ----------
    draws : PairSimilarity, ScoredPairs, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition. A similarity matrix alone (:func:`as_pair_similarity`) allows losses and
        methods of pairs only, and scored pairs Binder's loss only.
    loss : str, PartitionLoss, NoiseLoss or PairLoss, optional
        Loss whose posterior expectation is minimized: a name in :data:`LOSSES`, or a record such as ``binder(a=0.5)``.
        Or a function of the posterior similarity matrix: "vi_lower_bound", "pear", or "within_variance", which needs
        `n_clusters` or `max_clusters`. By default "vi", "ballet" for runs that call items noise, or "binder" if there
        are no draws.
    method : str or callable
        A name in :data:`METHODS`, or a function ``method(draws, loss, task, **options)`` that returns a ``Candidate``,
        which is in ``posterior_consensus.consensus.selection``, with an example.

        - "greedy" searches for the minimum expected loss, and is the best choice for most posteriors.
        - "exact" proves its result optimal, for Binder's loss; "enumeration" tries all partitions of at most ten items.
        - "best_draw" selects a draw.
        - "hierarchical", "basic", "spectral", "kcc", "sdp", "impurity", "lange_buhmann", "cspa", "mcla", "hbgf" and
          "nmf" try numbers of clusters, and keep the one of minimum expected loss.
        - "sccc" tries seed separations, each of which gives a number of clusters, and keeps the one of minimum expected
          loss.
        - "cc_pivot", "boem" and "align_and_vote" choose it by criteria of their own.
        - "rpm_em" fits the random perturbation model and ignores the loss.
    n_clusters : int, optional
        Number of clusters of the partition. By default the method chooses it.
    max_clusters : int or "draws", optional
        Largest number of clusters; "draws" is the largest number in any draw, the limit in R's salso. By default
        "greedy", "exact", "enumeration", "cc_pivot", "boem" and "sccc" have no limit. The other methods try up to the
        largest number in any draw.
    tau : float in (0, 1), "auto" or None
        Pair threshold of Binder's loss, ``binder(tau=...)``, for loss="binder" only. "auto" calibrates it on the draws
        by :func:`pair_threshold`; the posterior then chooses the loss, so report the threshold. `threshold` of the
        result has ``tau`` and the mean similarities ``within`` and ``between`` clusters.
    refine : {None, "jacobi", "gauss-seidel"}
        Local refinement of the result: every item joins the cluster with the largest mean similarity, all items at once
        or one after the other. It does not minimize `loss`, and can raise the expected loss.
        ``posterior_consensus.consensus.refinement.refine_partition`` refines any partition.
    passes : int or None
        Number of passes of the refinement; None continues until nothing changes.
    previous : ConsensusPartition or pandas.Series, optional
        For record linkage by scored pairs: an earlier result, or a Series of the name of each record's cluster, with
        the names of the records as index. Clusters keep the name of the earlier one with which they share most records,
        and ``changes`` of the result has what merged, split or is new. Components of an earlier result keep their
        partition and their bound if records, pairs, scores, loss and constraints are as they were. With a Series all
        components are solved.
    fixed : bool
        For record linkage, with `previous`: whether its clusters stay whole and apart. Then only new records are
        assigned, to these clusters or to new ones.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **options
        Options of the method, here with their defaults. ``n_starts`` is the number of starts, the best of which is
        kept. In Python, ``help(pc.METHODS["kcc"].function)`` describes those of "kcc" in full.

        - "greedy": ``n_starts=None``, ``n_agree=3``, ``n_perturbations=None``, ``starts=()``, ``seconds=None``,
          ``n_jobs=-1``; Notes describe them.
        - "exact": ``seconds=None``, a time limit of the proof; by default about one minute of work.
        - "hierarchical": ``linkage="average"``, or "complete".
        - "basic", "align_and_vote", "mcla", "hbgf": ``n_starts=10``.
        - "spectral": ``affinity=None`` for eigenvectors of the similarity matrix, "association" or "rbf" for those of a
          graph; ``gamma=1.0``, the scale of "rbf"; ``n_starts=10``.
        - "cspa": ``balanced=False``, whether sizes of clusters must differ by at most one; ``n_starts=10``.
        - "kcc": ``utility="category"``, or "entropy", "cosine" or "lp"; ``p=5.0``, the order of the norm of "lp";
          ``n_starts=10``.
        - "sdp": ``seconds=None``, a time limit; by default about five seconds of work.
        - "impurity": ``weighted=False``, whether clusters are weighted by their size; ``n_starts=10``.
        - "cc_pivot": ``threshold=0.25``, the similarity to a pivot above which items join it; ``n_starts=10``.
        - "lange_buhmann": ``max_iter=300``, iterations of a start; ``tol=1e-7``, the gain at which it ends;
          ``n_starts=3``.
        - "nmf": ``max_iter=100``, updates; ``tol=1e-4``, the relative gain at which they end; ``n_starts=10``.
        - "rpm_em": ``noise="shared"`` by all draws, or "per_draw"; ``max_steps=300`` from the best start;
          ``n_starts=10``. See :func:`random_perturbation_em`.
        - "sccc": ``separation=None``, the least number of draws in which two seeds differ; by default all are tried.
          Or ``threshold=None``, the largest similarity of two seeds.
        - "best_draw", "boem", "enumeration": none.

    Returns
    -------
    ConsensusPartition
        The partition, with its expected loss and how it was found; see :class:`ConsensusPartition`.

    Raises
    ------
    ValueError
        If the value of an argument is not allowed. If the loss or the method needs draws and a similarity matrix alone
        is given. If the draws are invalid, see :func:`as_partition_draws`.
    TypeError
        If the method does not have an option.
    MemoryError
        If the method exceeds the memory budget: 4 GB, or the environment variable POSTERIOR_CONSENSUS_MEMORY.
    RuntimeError
        If the lower bound of a method exceeds the expected loss of its partition, which is a defect of the method.

    Warns
    -----
    UserWarning
        If the partition has fewer clusters than `n_clusters`, because the draws do not distinguish so many groups.

    See Also
    --------
    summarize : This partition with its uncertainty, convergence and report in one call.
    certify : A lower bound of the minimum expected loss.
    expected_loss : The expected loss of any partition.
    credible_ball, item_uncertainty : Uncertainty of the partition and of its items.

    Notes
    -----
    The expected loss of a partition S is sum_t w_t L(S, z_t) over the draws z_t with weights w_t. It is computed from
    the labels for every method. The partition minimizes it over the same draws, so the reported value is slightly too
    low. Under VI, the default [1]_, very noisy draws can have a single cluster as optimum; :func:`loss_path` has the
    partitions if joining costs more.

    **Greedy search** moves items and clusters until no move lowers the expected loss [2]_. Its options:

    - ``n_starts``: largest number of searches from random orders of the items and from draws. By default 16, fewer
      beyond 3.75 million labels, which are items times draws.
    - ``n_agree``: the searches end once so many reached the same minimum. That is an indication and no proof of the
      optimum.
    - ``n_perturbations``: number of searches from random changes of the best partitions, which follow. By default they
      end after 64 in a row without a gain, 32 if searches agreed, or at a limit of work.
    - ``starts``: further partitions to start from, a list of label vectors, result objects, or the names "best_draw",
      "hierarchical" and "spectral".
    - ``seconds``: time limit, after which the best partition so far is returned; by default none. With one, the result
      depends on the machine.
    - ``n_jobs``: number of threads; -1 is one for each CPU. The result does not depend on it.

    Ctrl-C ends the search with a warning and the best partition so far. `info` of the result records the searches, see
    :class:`SearchInfo`.

    **Large posteriors** are searched on a sample of their items and draws, ``info.sample``, and the partition then
    extended to all: from 131,072 items on; from 32,768 items on if there are at least 4,194,304 labels; or if the
    labels exceed the memory budget. Posteriors of many small clusters are not sampled.

    **Scored pairs** are searched by component: items are connected if their similarity exceeds the pair threshold tau,
    and some optimum has no cluster across components. Components of up to 14 items are solved by comparing all their
    partitions, larger ones are searched and bounded. The lower bound is the sum of their bounds, and `info` lists the
    components that are not proven. The result keeps the constraints that were given to :func:`as_pair_similarity`:
    `must_link`, `cannot_link`, `max_per_source` and `max_cluster_size`. The bound of large components ignores
    `max_cluster_size`, so fewer of them are proven optimal. Draws of many small clusters, as of linked records, are
    searched by component too, under Binder's loss without `n_clusters`, at any number of items.

    **Bound.** Under Binder's loss, the result of any method has `lower_bound`, which no partition's expected loss is
    below, and `optimality_gap`, if there are at most 5,000 items (by the default memory budget) and no run lacks items.
    It has none if the search was stopped or took more than half of ``seconds``.

    **Noise.** For runs with noise, "greedy", "enumeration" and "best_draw" report items as noise, under "ballet" by
    default. Under "ballet", an item is noise in the optimal partition if more than half of the runs call it noise.
    If more than 5,000 items are left, the search uses 4,096 of them. With other methods the default is "vi".

    References
    ----------
    .. [1] Wade and Ghahramani (2018), Bayesian Analysis 13(2), 559-626. https://doi.org/10.1214/17-BA1073
    .. [2] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779

    Examples
    --------
    82 galaxies, 4,000 draws, under VI:

    >>> import posterior_consensus as pc
    >>> draws = pc.load_example("galaxies")
    >>> best = pc.consensus_partition(draws, random_seed=1)
    >>> best.cluster_sizes.values
    array([ 7,  2, 36, 32,  2,  3])
    >>> round(best.expected_loss, 3), round(best.mcse, 3)
    (0.845, 0.009)

    The best cut of a tree by another linkage, and four clusters, have a larger expected loss:

    >>> tree = pc.consensus_partition(draws, method="hierarchical", linkage="complete")
    >>> four = pc.consensus_partition(draws, n_clusters=4, random_seed=1)
    >>> round(tree.expected_loss, 3), round(four.expected_loss, 3)
    (0.85, 0.972)

    Under Binder's loss, a lower bound proves the partition optimal:

    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> best = pc.consensus_partition(draws, loss="binder", random_seed=1)
    >>> best.labels.values
    array([0, 0, 1, 1], dtype=int32)
    >>> best.expected_loss, best.optimality_gap
    (0.09375, 0.0)
    """
    function, name, needs_draws = as_method(method)
    check_options("consensus_partition", {"method": method} | options)
    check_no_method(loss)
    asked = None if loss is None else as_loss(loss)
    needing = [f"method {name!r}"] * needs_draws
    needing += [f"tau={tau!r}"] * isinstance(tau, str)
    source = as_source(draws, *needing).in_fixed_order()
    check_flag("fixed", fixed)
    before = None
    if previous is not None or fixed:
        limited = {"method": None if method in _BY_COMPONENT else method, "n_clusters": n_clusters}
        pairs = _pairs_with(source, previous, limited | {"max_clusters": max_clusters, "refine": refine})
        before = Previous.of(previous, pairs)
        source = before.fixed(pairs) if fixed else pairs
    if isinstance(max_clusters, str):
        source.as_draws(f"max_clusters={max_clusters!r}", lacking=True)
    if asked is not None and asked.needs_draws:
        source.as_draws(f"loss {asked.name!r}", lacking=asked.is_linear and not asked.has_noise)
    usual = as_loss(source.usual_loss)
    given = as_loss(asked, default=vi() if usual.has_noise and method not in _WITH_NOISE else usual)
    most = _most_drawn(source, given) if max_clusters == "draws" else max_clusters
    limits = _limits(given, source.n_items, n_clusters, most)
    check_refinement(ORDERS[0] if refine is None else refine, passes, "refine")
    _check_noise(given, method, refine)
    rng = as_generator(random_seed)
    is_calibrated = tau == "auto"
    tau = None if tau is None else threshold_of(source, given, tau, rng, progressbar)
    record = loss_on(source, given) if tau is None else binder(tau=tau)
    posterior = source
    if isinstance(method, str):
        source = _as_searched(source, record, method, limits, refine)
    began = time.monotonic()
    task = Task(rng, limits.n_clusters, limits.max_clusters, progressbar, None if before is None else before.earlier)
    candidate = function(source, record, task, **options)
    if not isinstance(candidate, Candidate):
        raise TypeError(f"method {name!r} must return a Candidate; got {type(candidate).__name__}.")
    marked = source.items.as_marked_labels(candidate.labels, "method's labels")
    labels, n_noise = alone(marked), int(np.count_nonzero(marked < 0))
    if refine is not None:
        labels = refined_labels(source, labels, refine, passes)
        name = f"{name}, {refine} refinement"
    found = int(labels.max()) + 1 - n_noise
    if n_clusters is not None and found < n_clusters:
        reason = "the draws do not distinguish more" if refine is None else "the refinement may have merged some"
        warn(
            f"The partition has {found} clusters, not {n_clusters}: {reason}.",
        )
    threshold = None
    if tau is not None:
        within, between = pair_means(source, labels)
        threshold = Threshold(tau=tau, within=within, between=between, calibrated=is_calibrated)
    judged = marked if record.has_noise else labels
    judge = source if posterior.draws is None else posterior
    *measured, by_draw = loss_and_error(judge, judged[np.newaxis], record)
    expected, mcse, ess = (float(values[0]) for values in measured)
    lower_bound = candidate.lower_bound
    if lower_bound is None and time.monotonic() - began <= (options.get("seconds") or np.inf) / 2:
        lower_bound = _bound_after(source, record, labels, candidate.info)
    return ConsensusPartition(
        labels=source.items.array(judged, "labels"),
        expected_loss=expected,
        mcse=mcse,
        ess=ess,
        loss=record,
        method=name,
        n_draws=source.n_draws,
        lower_bound=None if lower_bound is None else checked(lower_bound, expected),
        info=candidate.info,
        cluster_limits=limits,
        threshold=threshold,
        records=by_record(posterior, labels),
        words=source.words,
        noise=source.items.array(marked < 0, "noise") if record.has_noise else None,
        doubt=None if by_draw is None else doubt_of_losses(judge.as_draws(lacking=True), by_draw[0]),
        checksums=None if candidate.checksums is None else source.items.array(candidate.checksums, "checksums"),
        **({} if before is None else _after(before, source, labels) | {"fixed": fixed}),
    )


def _pairs_with(source: PairSource, previous: Any, limited: Mapping[str, Any]) -> ScoredPairs:
    """The source, unless earlier clusters have no meaning; `limited` has options that go over all pairs."""
    if previous is None:
        raise ValueError("`fixed` must be False without `previous`, whose clusters it keeps; got True.")
    if not isinstance(source, ScoredPairs):
        raise ValueError(
            f"`previous` must be None for {type(source).__name__}: it takes earlier clusters of scored pairs alone. To "
            "search from a partition, pass starts=[partition]."
        )
    for name, value in limited.items():
        if value is not None:
            raise ValueError(
                f"`{name}` must be left out with `previous`, as scored pairs are then searched by component; got "
                f"{value!r}."
            )
    return source


def _after(before: Previous, source: PairSource, labels: Labels) -> dict[str, Any]:
    """Fields of a result that came after earlier clusters."""
    return {
        "given_names": names_after(labels, before.labels, before.names),
        "previous": source.items.array(before.labels, "previous"),
        "previous_names": before.names,
    }


def _most_drawn(source: PairSource, loss: Loss) -> int:
    """Largest number of clusters in any draw, as the loss counts them."""
    if not loss.has_noise:
        return source.most_clusters
    draws = source.as_draws()
    return max(1, int(draws.n_clusters[draws.weights > 0].max()))


def _check_noise(loss: Loss, method: str | Callable[..., Candidate], refine: Order | None) -> None:
    """Raise ValueError for what calls no item noise, with a loss that has noise."""
    if not loss.has_noise or (refine is None and (callable(method) or method in _WITH_NOISE)):
        return
    what = f"`method` must be one of {', '.join(map(repr, _WITH_NOISE))}" if refine is None else "`refine` must be None"
    raise ValueError(
        f"{what} for loss {loss.name!r}, which calls items noise; got {method if refine is None else refine!r}. With "
        "loss='vi' or loss='binder', each item that a run calls noise is a cluster of its own in that run."
    )


def check_options(called: str, options: Mapping[str, Any], more: Iterable[str] = ()) -> None:
    """Raise TypeError for options that neither :func:`consensus_partition` nor the method has; `more` are suggested.

    `called` is the name of the user's function.
    """
    function, name, _ = as_method(options.get("method", "greedy"))
    shared = [name for name in inspect.signature(consensus_partition).parameters if name not in ("draws", "options")]
    own = own_options(function)
    for option in options:
        if own is not None and option not in (*own, *shared):
            raise unknown_option(called, name, option, own, [*own, *shared, *more])


@singledispatch
def _as_searched(
    source: PairSource, loss: Loss, method: str, limits: ClusterLimits, refine: Order | None
) -> PairSource:
    """Scored pairs if the method searches them by component; else the matrix of all pairs, which has no constraints."""
    return source


@_as_searched.register
def _(pairs: ScoredPairs, loss: Loss, method: str, limits: ClusterLimits, refine: Order | None) -> PairSource:
    if loss.as_binder() is None:
        raise ValueError(
            f"`loss` must be a sum over pairs for scored pairs: 'binder' with any costs, such as tau=0.7; got "
            f"{loss.name!r}. Other losses of pairs take the matrix of all, `pairs.as_pairs()`, without constraints."
        )
    searches = " and ".join(map(repr, _BY_COMPONENT))
    instead = f"The methods {searches} search by component, for any number of clusters."
    over_all = [f"{name}={number}" for name, number in vars(limits).items() if number is not None]
    over_all += [] if method in _BY_COMPONENT else [f"method={method!r}"]
    if refine is not None and pairs.constraints:
        over_all.append(f"refine={refine!r}")
    return pairs.all_pairs(over_all[0], instead) if over_all else pairs


@_as_searched.register
def _(runs: RunsWithMissing, loss: Loss, method: str, limits: ClusterLimits, refine: Order | None) -> PairSource:
    if loss.by_draw() is None:
        return runs.as_pairs()
    runs.as_draws(f"method {method!r}", lacking=method in _OF_COMMON_ITEMS)
    runs.as_draws(f"refine={refine!r}", lacking=refine is None)
    return runs


def _bound_after(source: PairSource, loss: Loss, labels: Labels, info: Info | None) -> float | None:
    """Lower bound for at most the work of a search; None after a search that was stopped."""
    if isinstance(info, SearchInfo) and info.stopped:
        return None
    try:
        return quick_bound(source, loss, labels, info.kinds.count("allocation") if isinstance(info, SearchInfo) else 1)
    except KeyboardInterrupt:
        warn("The computation of the lower bound was interrupted; the result has no bound.")
        return None


def _limits(loss: Loss, n_items: int, n_clusters: Any, max_clusters: Any) -> ClusterLimits:
    """Requested numbers of clusters, after checks."""
    if isinstance(max_clusters, str):
        raise ValueError(f"`max_clusters` must be an integer, 'draws' or None; got {max_clusters!r}.")
    check_clusters(n_clusters, max_clusters)
    given = {"n_clusters": n_clusters, "max_clusters": max_clusters}
    limits = ClusterLimits(**{name: int(number) for name, number in given.items() if number is not None})
    if loss.falls_with_clusters and limits == FREE:
        raise ValueError(
            f"loss {loss.name!r} needs `n_clusters` or `max_clusters`: it falls with every further cluster, to 0 for "
            "single items."
        )
    for name, number in vars(limits).items():
        if number is not None and number > n_items:
            raise ValueError(f"`{name}` must lie between 1 and the number of items, {n_items}; got {number}.")
    return limits
