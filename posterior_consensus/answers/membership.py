"""How surely items belong to their clusters: similarities to clusters, membership probabilities, and new items."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.allocations import AllocationDraws, as_soft
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.importance import most_pareto_k, smoothed
from posterior_consensus.ensemble.items import NOISE, Clusters, Items, cluster_names, cluster_numbers
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import expected_common_items, is_matched, most_in_common, partners
from posterior_consensus.kernels import ensemble
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.stored_as import InWords, names_as_coordinate
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws, as_source, partition_of

ELSEWHERE = "elsewhere"
EVEN = 0.5  # membership below which an item is more probably outside its cluster than in it
FEWEST_EFFECTIVE = 20  # draws, by the weights given a new item, that its probabilities need; below 100 they are rough
_DIMS = {"consensus_cluster": "membership_cluster"}  # names of dimensions in stored results
_IN_WORDS = {"consensus_cluster": "membership_clusters"}

_MOST_CELLS = 2**26  # clusters of all draws times clusters of the partition, beyond which a summary skips the matching
_CELLS_AT_ONCE = 2**16  # of the table of items by clusters, which each batch of draws fills anew
_TINY = np.finfo(np.float64).tiny

OLD_DATA = "the old data; y_new does not update the parameters"
NEW_DATA = "the old data and the new item's own value"

_NEARLY_EQUAL = 0.5  # share of effective draws that weights leave, from which the shape of their tail does not matter


@dataclass(frozen=True, eq=False, repr=False)
class Membership(InWords):
    """Posterior probability of each item to belong to each cluster of a partition.

    Result of :func:`membership` and, for new items, of :func:`predict_allocation`.

    Attributes
    ----------
    probabilities : xarray.DataArray of shape (n_items, n_clusters + 1), dtype float64
        Over the items and ``consensus_cluster``, the names of the clusters in the order of the partition. The last
        column, "elsewhere", is the probability of clusters without a match. For runs with noise, the column "noise"
        before it is the share of runs that call the item noise. Rows sum to 1.
    mcse : xarray.DataArray of shape (n_items, n_clusters + 1), dtype float64
        Monte Carlo standard errors, also for probabilities of 0 and 1; NaN if a chain has fewer than four draws.
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Column of each item's own cluster; for a new item, the most probable column, which may be "elsewhere", and is
        the last one if the probabilities are NaN.
    numbers : tuple of int
        Number of each cluster, which sets its colour in figures: its name if that is an integer. Of runs with noise,
        noise is the last, with the number -2.
    conditional_on : str
        What the probabilities of new items condition on, in words; empty for the items of the partition.
    ess : xarray.DataArray of shape (n_items,) or None
        Effective sample size of the weights of the draws given each new item's value; NaN if the tail of the
        weights is too heavy, or a chain has fewer than four draws. None if new items have no weights of their own.
    """

    _figure = "items.plot_membership"

    probabilities: xr.DataArray = field(metadata=stored_as.array("membership_probability", _DIMS, in_words=_IN_WORDS))
    mcse: xr.DataArray = field(metadata=stored_as.array("membership_mcse", _DIMS, in_words=_IN_WORDS))
    cluster: xr.DataArray = field(metadata=stored_as.array("membership_of", of_items=True))
    numbers: tuple[int, ...] = field(metadata=stored_as.names("membership_numbers"))
    conditional_on: str = field(default="", metadata=stored_as.attribute("membership_conditional_on"))
    ess: xr.DataArray | None = field(default=None, metadata=stored_as.array("membership_ess"))
    _of_runs: ClassVar = "membership_independent"

    @property
    def reason(self) -> xr.DataArray:
        """Why the probabilities of an item are NaN, in words, shape (n_items,); empty if they are not."""
        sizes = np.full(self.cluster.size, np.inf) if self.ess is None else self.ess.values
        reasons = [
            ""
            if size >= FEWEST_EFFECTIVE
            else "the weights of the draws given the item have too heavy a tail, or a chain has fewer than four draws"
            if np.isnan(size)
            else f"the weights of the draws given the item have an effective sample size of {size:.0f}, and "
            f"{FEWEST_EFFECTIVE} are needed"
            for size in sizes.tolist()
        ]
        return self.cluster.copy(data=np.array(reasons, dtype=np.str_)).rename("reason")

    @property
    def own(self) -> xr.DataArray:
        """Probability of each item's own cluster, shape (n_items,)."""
        return self.cluster.copy(data=_at_columns(self.probabilities, self.cluster.values)).rename("own")

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the items.

        Returns
        -------
        pandas.DataFrame
            A row for each item: its cluster with probability and standard error, and the most probable other cluster.
            New items with weights of their own have these weights' effective sample size, too.
        """
        items, own = np.arange(self.cluster.size), self.cluster.values
        names = stored_as.own_in(self.probabilities, "consensus_cluster").values
        others = self.probabilities.values.copy()
        others[items, own] = -1.0
        other = others.argmax(axis=1)
        columns = {
            "cluster": names[own],
            "probability": self.own.values,
            "mcse": _at_columns(self.mcse.values, own),
            "other": names[other],
            "other_probability": others[items, other],
        }
        table = pd.DataFrame(columns, self.own.to_series().index)  # whose name may be that of a column
        if self.ess is None:
            return table
        unknown = np.isnan(self.own.values)
        table.loc[unknown, ["cluster", "other", "other_probability"]] = np.nan
        return table.assign(ess=self.ess.values)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table = self.to_dataframe()
        n_items, n_clusters = self.cluster.size, len(self.numbers)
        n_clusters -= NOISE in stored_as.own_in(self.probabilities, "consensus_cluster").values
        lines = [
            ("mean of own", f"{table['probability'].mean():.2f}"),
            (f"below {EVEN:g}", display.counted(int((table["probability"] < EVEN).sum()), "item")),
            ("mean elsewhere", f"{float(self.probabilities[:, -1].mean()):.2g}"),
            (f"largest {self.words.mcse}", display.number(float(self.mcse.max())) + self._rough()),
            *([("given", self.conditional_on)] if self.conditional_on else []),
            *self._about_weights(),
        ]
        items, clusters = display.counted_items(n_items, self.cluster.dims[0]), display.counted(n_clusters, "cluster")
        title = f"Membership: {items} in {clusters}"
        return f"{title}, least {self.words.probable} first", lines, table.sort_values("probability", kind="stable")

    def _rough(self) -> str:
        """Warning that the standard errors are rough, from the effective sample size that they have in all."""
        share = self.probabilities.values
        varies = (share > 0) & (share < 1)  # errors of the others allow for events that no draw shows
        squares = np.square(self.mcse.values[varies]).sum()
        size = float(np.sum(share[varies] * (1 - share[varies])) / squares) if squares > 0 else np.nan
        return display.if_rough(size, self.words)

    def _about_weights(self) -> list[tuple[str, str]]:
        if self.ess is None:
            return []
        unknown = int(np.isnan(self.own.values).sum())
        sizes = self.ess.values[~np.isnan(self.ess.values)]
        n_rough = sum(display.is_rough(size) for size in sizes[sizes >= FEWEST_EFFECTIVE])
        rough = f"; errors rough for {display.counted(n_rough, 'item')}" * bool(n_rough)
        lines = [("ESS of weights", f"{sizes.min():,.0f} to {sizes.max():,.0f}{rough}")] if sizes.size else []
        if unknown:
            lines.append(("not estimated", f"{display.counted(unknown, 'item')}, see `reason`"))
        return lines


def membership(draws: Any, partition: Any = None) -> Membership:
    """Compute the posterior probability of each item to belong to each cluster of a partition.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        For one mode of a posterior with several modes, pass :meth:`Particles.region`.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.

    Returns
    -------
    Membership
        Probabilities of items by clusters, with their standard errors.

    Raises
    ------
    ValueError
        If `draws` is a similarity matrix alone, the partition does not label the draws' items, a cluster is named
        "elsewhere", or the draws are invalid, see :func:`as_partition_draws`.
    MemoryError
        If the result, or the table of clusters of draws by clusters of the partition, exceeds the memory budget.

    See Also
    --------
    Membership.plot : the probabilities as stacked bars.
    predict_allocation : the same for new items.
    item_uncertainty : mean similarities, which need no matching of clusters.
    relabel : parameters of the clusters, by a similar matching.

    Notes
    -----
    The clusters of draw t are matched one to one with the clusters of the partition. The matching pi_t has the largest
    total number of items in common [1]_. Ties go to the largest sum of Jaccard similarities. With the weights w_t,

        P(i in c) = sum_t w_t 1{pi_t(z_ti) = c}.

    A cluster of a draw without a match counts as "elsewhere". This probability can be large if draws have more clusters
    than the partition.

    With allocation probabilities p, components are matched by the expected number of items in common. The probabilities
    of the components pi_t(c) matched with cluster c are averaged [2]_,

        P(i in c) = sum_t w_t p_{t,i,pi_t(c)} 1{sum_{j in c} p_{t,j,pi_t(c)} >= 1/2}.

    A cluster with less than half an expected item in common has no match in that draw. The matching prefers a nearly
    empty component, with less than half an expected item, to a part of another cluster.

    Standard errors come from batches of the draws of each chain, and are corrected near 0 and 1, as in
    :func:`diagnostics.similarity_mcse`. They are rough if a chain has fewer than 50 effective draws. They treat
    the partition as fixed, although it was chosen on the same draws.

    References
    ----------
    .. [1] Papastamoulis and Iliopoulos (2010), Journal of Computational and Graphical Statistics 19(2), 313-331.
       https://doi.org/10.1198/jcgs.2010.09008
    .. [2] Stephens (2000), Journal of the Royal Statistical Society B 62(4), 795-809.
       https://doi.org/10.1111/1467-9868.00265

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 2, 1, 1]]
    >>> pc.membership(draws, [0, 0, 0, 1, 1]).probabilities.values
    array([[1.  , 0.  , 0.  ],
           [1.  , 0.  , 0.  ],
           [0.5 , 0.25, 0.25],
           [0.  , 1.  , 0.  ],
           [0.  , 1.  , 0.  ]])
    """
    draws, partition = as_draws(draws).in_fixed_order(), partition_of(draws, partition)
    own = draws.clusters_of(partition)
    check_size(draws.n_items, own.labels)
    values, errors = _with_elsewhere(draws, own)
    errors = draws.samples.probability_errors(values, errors)
    return as_membership(values, errors, own.labels, draws.items, own.names, own.numbers, words=draws.words)


@singledispatch
def _with_elsewhere(draws: PartitionDraws, own: Clusters) -> tuple[Floats, Floats]:
    """Probabilities (n, K + 1) that items are in clusters, or elsewhere, and their errors."""
    return _of_labels(draws, own)


@_with_elsewhere.register
def _(draws: AllocationDraws, own: Clusters) -> tuple[Floats, Floats]:
    return of_matched(matched_components(draws, own.labels), draws.probabilities, draws.samples)


def check_size(n_items: int, labels: Labels) -> None:
    """Raise MemoryError if a table of items by clusters exceeds the memory budget."""
    n_columns = int(labels.max()) + 2
    memory.check(40 * n_items * n_columns, f"A table of {n_items:,} items and {n_columns} clusters")


def as_membership(
    values: Floats,
    errors: Floats,
    cluster: npt.NDArray[np.integer],
    items: Items,
    own: tuple[Hashable, ...],
    numbers: Integers,
    **of_new: Any,
) -> Membership:
    """Build the result from tables (n_items, n_clusters + 1) and the clusters' names and numbers.

    Further fields are those of new items.
    """
    if ELSEWHERE in own:
        raise ValueError(f"`partition` must name no cluster {ELSEWHERE!r}, as that is the last column; rename it.")
    names = names_as_coordinate([*own, ELSEWHERE])
    dims, coords = (..., "consensus_cluster"), {"consensus_cluster": names}
    return Membership(
        probabilities=items.array(values, "probabilities", dims, coords),
        mcse=items.array(errors, "mcse", dims, coords),
        cluster=items.array(cluster, "cluster"),
        numbers=tuple(numbers.tolist()),
        **of_new,
    )


class Matched(NamedTuple):
    """Component (n_draws, n_clusters) matched with each cluster in each draw, and whether there is one."""

    order: Positions
    there: Flags


class OwnClusters(NamedTuple):
    """Probability (n,) that each item is in its cluster, and number (n_draws,) of the items outside theirs."""

    membership: Floats
    misplaced: Floats


@singledispatch
def own_membership(source: PairSource, labels: Labels, noise: int | None = None) -> OwnClusters | None:
    """How surely items are in their clusters; None without draws, or if there are too many clusters to match.

    `noise` is the number of the cluster of noise.
    """
    return None


@own_membership.register
def _(draws: AllocationDraws, labels: Labels, noise: int | None = None) -> OwnClusters:
    matched = matched_components(draws, labels)
    values, _ = of_matched(matched, draws.probabilities, draws.samples)
    outside = draws.n_items - _expected_inside(matched, draws.probabilities, labels)
    return OwnClusters(_at_columns(values, labels), outside)


@own_membership.register
def _(draws: PartitionDraws, labels: Labels, noise: int | None = None) -> OwnClusters | None:
    if not suits_matching(draws, labels):
        return None
    (addends, total), clusters = draws.samples.addends, draws.clusters
    counts = clusters.joint_counts(labels)
    targets = _targets(draws, counts, noise)
    known = np.flatnonzero((targets >= 0) & (targets < counts.shape[1]))  # no item need be noise in the partition
    inside = np.zeros(targets.size)
    inside[known] = counts[known, targets[known]]
    outside = draws.n_present.astype(np.float64) - np.add.reduceat(inside, clusters.starts[:-1])
    own = [own for _, own in clusters.map_blocks(_own_of_block, clusters.starts, addends, targets, labels)]
    if not draws.lacks_items:
        return OwnClusters(np.concatenate(own) / total, outside)
    # Of the runs that have an item, and as many of all items outside as a run has of its own.
    held = np.concatenate([held for _, held in clusters.map_blocks(_weight_with, addends)])
    return OwnClusters(np.concatenate(own) / held, outside * draws.n_items / np.maximum(draws.n_present, 1))


def suits_matching(draws: PartitionDraws, labels: Labels) -> bool:
    """Whether the table of the clusters of all draws by those of a partition is small enough for a summary."""
    cells = int(draws.starts[-1]) * (int(labels.max()) + 1)
    return cells <= _MOST_CELLS and memory.fits(4 * cells)


def _expected_inside(matched: Matched, probabilities: npt.NDArray[np.floating], labels: Labels) -> Floats:
    """Expected number of items (n_draws,) that are in the component matched with their cluster."""
    n_draws, n_items, _ = probabilities.shape
    inside = [
        np.einsum(
            "tn,tn->t",
            np.take_along_axis(probabilities[rows], matched.order[rows][:, labels, np.newaxis], axis=2)[..., 0],
            matched.there[rows][:, labels],
            dtype=np.float64,
        )
        for rows in slices(n_draws, max(1, memory.PROBABILITIES_AT_ONCE // n_items))
    ]
    return np.concatenate(inside)


def _at_columns(table: Any, columns: npt.NDArray[np.integer]) -> Floats:
    return np.asarray(table)[np.arange(columns.size), columns]


def matched_clusters(draws: PartitionDraws, counts: npt.NDArray[np.int32], n_clusters: int | None = None) -> Positions:
    """Cluster of the partition matched with each of `draws.clusters` (R,), draw after draw; -1 for none.

    `counts` are their :meth:`LabelBackend.joint_counts`. Noise has no match. With clusters from `n_clusters` on, which
    are noise too, nothing is matched.
    """
    counts, starts = counts[:, :n_clusters], draws.clusters.starts
    matched, kept = np.full(len(counts), -1), np.ones(len(counts), np.bool_)
    kept[draws.noise_rows] = False
    if not kept.all():
        counts, starts = counts[kept], np.unique(np.concatenate([[0], np.cumsum(kept)])[starts])
    if counts.size:
        n_draws = starts.size - 1
        some = slices(n_draws, max(1, memory.CELLS_AT_ONCE * n_draws // counts.size))
        given = [starts[rows.start : rows.stop + 1] for rows in some]
        matched[kept] = np.concatenate([partners(counts[own[0] : own[-1]], own - own[0]) for own in given])
    return matched


def _targets(draws: PartitionDraws, counts: npt.NDArray[np.int32], noise: int | None) -> Positions:
    """Clusters matched with those of the draws (R,), and the cluster of noise for items that a run calls noise."""
    targets = matched_clusters(draws, counts, noise)
    if noise is not None:
        targets[draws.noise_rows] = noise
    return targets


def _of_labels(draws: PartitionDraws, own: Clusters) -> tuple[Floats, Floats]:
    n_columns = len(own.names) + 1
    targets = _targets(draws, draws.clusters.joint_counts(own.labels), own.noise)
    targets[targets < 0] = n_columns - 1
    given = draws.clusters.starts, draws.samples, targets, n_columns
    blocks = [block for _, block in draws.clusters.map_blocks(_block_of_labels, *given)]
    values, errors = (np.concatenate(tables) for tables in zip(*blocks, strict=True))
    return values, errors


def _block_of_labels(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    samples: Samples,
    targets: Positions,
    n_columns: int,
) -> tuple[Floats, Floats]:
    def mean_over(rows: Positions, some: slice) -> Floats:
        own = np.ascontiguousarray(labels[rows, some])
        votes = ensemble.votes(own, np.append(starts[rows], targets.size), addends[rows], targets, n_columns)
        return np.asarray(votes / max(addends[rows].sum(), _TINY))

    addends, _ = samples.addends
    return _with_errors(mean_over, samples, labels.shape[1], max(1, _CELLS_AT_ONCE // n_columns))


def _own_of_block(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    weights: Floats,
    targets: Positions,
    partition: Labels,
) -> Floats:
    """Weight (m,) of the draws in which each item's cluster is matched with its cluster of the partition."""
    own: Floats = ensemble.weights_with(np.ascontiguousarray(labels), starts, weights, targets, partition[items])
    return own


def _weight_with(labels: npt.NDArray[Any], items: slice, weights: Floats) -> Floats:
    """Weight (m,) of the runs that have each item."""
    return weights @ (labels > 0)


def matched_components(draws: PartitionDraws, labels: Labels) -> Matched:
    """Match the components of each draw with the clusters of a partition."""
    known = as_soft(draws, "`draws`").probabilities
    n_components = known.shape[2]
    missing = max(0, int(labels.max()) + 1 - n_components)  # empty components, so that every cluster has a partner
    common = np.pad(expected_common_items(known, labels), ((0, 0), (0, missing), (0, 0)))
    order = most_in_common(common)
    there = is_matched(np.take_along_axis(common, order[:, np.newaxis], axis=1)[:, 0])
    return Matched(np.minimum(order, n_components - 1), there)


def of_matched(matched: Matched, probabilities: npt.NDArray[np.floating], samples: Samples) -> tuple[Floats, Floats]:
    """Memberships (n_items, n_clusters + 1) of items with these probabilities, and their standard errors."""
    n_draws, n_items, _ = probabilities.shape
    order, there = matched

    def mean_over(rows: Positions, some: slice) -> Floats:
        taken = np.take_along_axis(probabilities[rows, some], order[rows, np.newaxis], axis=2)
        weights = samples.weights[rows]
        weighted = weights[:, np.newaxis] * there[rows] / max(weights.sum(), _TINY)
        mean = np.einsum("tc,tnc->nc", weighted, taken, dtype=np.float64)
        return np.column_stack([mean, np.maximum(1.0 - mean.sum(axis=1), 0.0)])

    width = max(1, memory.PROBABILITIES_AT_ONCE // (n_draws * order.shape[1]))
    return _with_errors(mean_over, samples, n_items, width)


def _with_errors(mean_over: Callable[..., Floats], samples: Samples, n_items: int, width: int) -> tuple[Floats, Floats]:
    """Means over all draws and their standard errors from batches, `width` items at a time."""
    values, errors = [], []
    for items in slices(n_items, width):
        mean_of = partial(mean_over, some=items)
        mean = mean_of(np.arange(samples.n_draws))
        values.append(np.minimum(mean, 1.0))
        errors.append(samples.error_by_batches(mean, mean_of))
    return np.concatenate(values), np.concatenate(errors)


@dataclass(frozen=True, eq=False, repr=False)
class ItemUncertainty(InWords):
    """Mean similarity of each item to its own and the nearest other cluster; made by :func:`item_uncertainty`.

    Attributes
    ----------
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the partition.
    similarity : xarray.DataArray of shape (n_items,), dtype float64
        Mean posterior similarity to the other members of its cluster. It is a mean over pairs, not the probability of
        an event. NaN for an item on its own.
    nearest : xarray.DataArray of shape (n_items,), dtype int32
        The other cluster with the largest mean similarity; -1 if there is no other cluster.
    nearest_similarity : xarray.DataArray of shape (n_items,), dtype float64
        Mean posterior similarity to that cluster's members; NaN if there is no other cluster.
    names : tuple
        Names of the clusters in the partition, by number.
    membership : xarray.DataArray of shape (n_items,), dtype float64, or None
        Posterior probability of its cluster, see :func:`membership`. None for a similarity matrix alone. Also None if
        the matching is too large: the clusters of all draws times the clusters of the partition exceed 67 million, or
        the memory budget. For an item of noise, the share of runs that call it so.
    misplaced, misplaced_mcse, misplaced_ess : float
        Expected number of items outside their cluster, the sum of 1 - `membership`, with its Monte Carlo standard error
        and effective sample size; NaN without `membership`.
    noise, noise_mcse : xarray.DataArray of shape (n_items,), dtype float64, or None
        Share of runs that call each item noise, and its standard error; None unless runs have noise. Items of noise
        have the last number in `cluster`, whose name is "noise", and no similarity; `nearest` is never noise.
    """

    _figure = "items.plot_item_uncertainty"

    cluster: xr.DataArray = field(metadata=stored_as.array("item_cluster", of_items=True))
    similarity: xr.DataArray = field(metadata=stored_as.array("item_similarity"))
    nearest: xr.DataArray = field(metadata=stored_as.array("item_nearest"))
    nearest_similarity: xr.DataArray = field(metadata=stored_as.array("item_nearest_similarity"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("item_cluster_names"))
    membership: xr.DataArray | None = field(default=None, metadata=stored_as.array("item_membership"))
    _of_runs: ClassVar = "item_independent"
    noise: xr.DataArray | None = field(default=None, metadata=stored_as.array("item_noise"))
    noise_mcse: xr.DataArray | None = field(default=None, metadata=stored_as.array("item_noise_mcse"))

    misplaced: float = field(default=np.nan, metadata=stored_as.number("item_misplaced"))
    misplaced_mcse: float = field(default=np.nan, metadata=stored_as.number("item_misplaced_mcse"))
    misplaced_ess: float = field(default=np.nan, metadata=stored_as.number("item_misplaced_ess"))

    _also_stored: ClassVar = {"margin": stored_as.array("item_margin")}

    @property
    def margin(self) -> xr.DataArray:
        """`similarity` minus `nearest_similarity`, NaN if either is. Negative: the item is closer to `nearest`."""
        return (self.similarity - self.nearest_similarity).rename("margin")

    @property
    def exemplars(self) -> Positions:
        """Position of each cluster's exemplar: its item of largest `similarity`, the first one of equals."""
        items = np.arange(self.cluster.size)
        # Rounded, so that ties do not depend on the order of sums. An item on its own is the exemplar of its cluster.
        order = np.lexsort([items, -np.nan_to_num(self.similarity.values).round(12), self.cluster.values])
        first = np.unique(self.cluster.values[order], return_index=True)[1]
        return items[order][first]

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the items.

        Returns
        -------
        pandas.DataFrame
            A row for each item, in the order of the data, with the names of its clusters.
        """
        columns = (
            *(self.cluster, self.similarity, self.nearest, self.nearest_similarity, self.margin, self.membership),
            *(self.noise, self.noise_mcse),
        )
        named = {str(column.name): column.values for column in columns if column is not None}
        table = pd.DataFrame(named, self.similarity.to_series().index)  # whose name may be that of a column
        if self.names != tuple(range(len(self.names))):
            table["cluster"] = [self.names[k] for k in self.cluster.values]
            table["nearest"] = [self.names[k] if k >= 0 else None for k in self.nearest.values]
        return table

    def _annotations(self) -> dict[str, Annotations]:
        return {"": Annotations(self.similarity, {"similarity": self.similarity.values}, {})}

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table = self.to_dataframe()
        own, is_noise = table["similarity"], (table["cluster"] == NOISE) & (self.noise is not None)
        lines = [
            *_doubted(self),
            ("mean similarity", f"{own.mean():.2f}"),
            ("on their own", display.counted(int((own.isna() & ~is_noise).sum()), "item")),
            *([] if self.noise is None else [("noise", display.counted(int(is_noise.sum()), "item"))]),
        ]
        first = "similarity" if self.membership is None else "membership"
        title = f"ItemUncertainty: {display.counted_items(len(table), self.cluster.dims[0])}, smallest {first} first"
        return title, lines, table.sort_values(first, na_position="last", kind="stable")


def _doubted(items: ItemUncertainty) -> list[tuple[str, str]]:
    below = display.counted(int((by_doubt(items) < EVEN).sum()), "item")
    if items.membership is None:
        return [(f"similarity below {EVEN:g}", below)]
    number = f"{misplaced_in_words(items)} {items.words.misplaced}"
    return [("misplaced", number), (f"membership below {EVEN:g}", below)]


def by_doubt(items: ItemUncertainty) -> pd.Series:
    """`membership` of the items, the least first; without it, mean similarities to the rest of their clusters."""
    of = items.similarity if items.membership is None else items.membership
    return of.to_series().sort_values(kind="stable")


def misplaced_in_words(items: ItemUncertainty) -> str:
    """Expected number of misplaced items, with its error."""
    return display.with_error(items.misplaced, items.misplaced_mcse, items.misplaced_ess, items.words)


def item_uncertainty(draws: Any, partition: Any = None) -> ItemUncertainty:
    """Compute the mean similarity of each item to the rest of its cluster and to the nearest other cluster.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.

    Returns
    -------
    ItemUncertainty
        Similarities and nearest other cluster of each item.

    Raises
    ------
    ValueError
        If draws or partition are invalid.

    See Also
    --------
    membership : Posterior probability of each cluster for each item, by matching of clusters.
    ItemUncertainty.plot : The items as a figure.
    partial_partition : The largest set of items whose joint clustering is probable.

    Notes
    -----
    The mean similarity of item i to cluster k is the mean of PSM_ij over the members j != i of k. From draws, the cost
    is n_items x n_draws x clusters, without an n x n matrix. If the table of draws' clusters by the partition's
    clusters exceeds the memory budget, the co-members of each item are enumerated instead.

    In each draw, an item is misplaced if it is outside the cluster that is matched with its own, see
    :func:`membership`. `misplaced` is the mean of their number. Its error, :meth:`Samples.mcse`, takes the partition as
    given. If the draws are from the posterior of the right model, it is calibrated for the true partition, too.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> pc.item_uncertainty(draws, [0, 0, 1, 1]).to_dataframe()
          cluster  similarity  nearest  nearest_similarity  margin  membership
    item
    0           0        1.00        1               0.125   0.875        1.00
    1           0        1.00        1               0.125   0.875        1.00
    2           1        0.75        0               0.250   0.500        0.75
    3           1        0.75        0               0.000   0.750        1.00
    """
    source, partition = as_source(draws).in_fixed_order(), partition_of(draws, partition)
    named = source.clusters_of(partition)
    similarity, nearest, nearest_similarity = source.own_and_nearest(named.labels, named.noise)
    own, draws = own_membership(source, named.labels, named.noise), source.draws
    noise, noise_mcse = _noise_of(source)
    misplaced, misplaced_mcse, misplaced_ess = np.nan, np.nan, np.nan
    if own is not None and draws is not None:
        misplaced = float(draws.samples.mean(own.misplaced))
        misplaced_mcse, misplaced_ess = map(float, draws.samples.mcse_and_ess(own.misplaced))
    return ItemUncertainty(
        cluster=source.items.array(named.labels, "cluster"),
        similarity=source.items.array(similarity, "similarity"),
        nearest=source.items.array(nearest, "nearest"),
        nearest_similarity=source.items.array(nearest_similarity, "nearest_similarity"),
        names=named.names,
        membership=None if own is None else source.items.array(own.membership, "membership"),
        words=source.words,
        noise=noise,
        noise_mcse=noise_mcse,
        misplaced=misplaced,
        misplaced_mcse=misplaced_mcse,
        misplaced_ess=misplaced_ess,
    )


@singledispatch
def _noise_of(source: PairSource) -> tuple[xr.DataArray | None, xr.DataArray | None]:
    """Share of runs that call each item noise, and its standard error; None without noise."""
    return None, None


@_noise_of.register
def _(draws: NoisyRuns) -> tuple[xr.DataArray, xr.DataArray]:
    samples, noise = draws.samples, draws.noise
    parts = slices(draws.n_items, max(1, memory.CELLS_AT_ONCE // draws.n_draws))
    errors = [samples.mcse(noise[:, items].T.astype(np.float64)) for items in parts]
    share = draws.noise_share
    error = samples.probability_errors(share, np.concatenate(errors))
    return draws.items.array(share, "noise"), draws.items.array(error, "noise_mcse")


@_noise_of.register
def _(runs: RunsWithMissing) -> tuple[xr.DataArray | None, xr.DataArray | None]:
    if not runs.noise.any():
        return None, None
    present = runs.samples.mean(runs.present.T.astype(np.float64))
    share = runs.samples.mean(runs.noise.T.astype(np.float64)) / present
    n_present = runs.samples.effective_draws * present
    spread = np.sqrt(share * (1 - share) / np.maximum(n_present - 1, 1))
    error = runs.samples.probability_errors(share, np.where(n_present > 1, spread, np.nan), n_present)
    return runs.items.array(share, "noise"), runs.items.array(error, "noise_mcse")


def predict_allocation(new: Any, known: Any, *, partition: Any = None, log_density: Any = None) -> Membership:
    """Compute the posterior probability that each new item belongs to each cluster of a partition of the known items.

    With the log densities of the new items, each item's probability conditions on the old data and its own value.
    Without them, it conditions on the old data only; y_new does not update the parameters.

    Parameters
    ----------
    new : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Allocation probabilities of shape (n_draws, m, K) for m new items, such as
        ``allocation_probabilities(model, idata, observed={"y": y_new})``. They need the draws and components of
        `known`; draws are paired by chain and draw.
    known : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Allocation probabilities of shape (n_draws, n, K) for the n observed items.
    partition : result object, DataArray or label vector of shape (n,), optional
        Partition of the known items, typically the consensus; by default that of `known` if these are a summary.
    log_density : array_like of shape (n_draws, m) or (n_chains, n, m), optional
        Log density of each new item in each draw, log p(y_new | theta_t) = log sum_k w_tk f_k(y_new | theta_t), up to a
        constant for each item. A DataArray is paired by chain and draw. By default those that
        ``allocation_probabilities(..., observed=)`` computed, if `new` comes from there.

    Returns
    -------
    Membership
        Probabilities of shape (m, n_clusters + 1); `cluster` is the most probable column of each new item.
        `conditional_on` states what they condition on, and `ess` has the effective sample sizes of the items' weights.
        The probabilities of an item are NaN if its size is below 20 or the tail of its weights too heavy; `reason`
        states which.

    Raises
    ------
    TypeError
        If `new` or `known` have no allocation probabilities.
    ValueError
        If their draws, weights or components differ, the partition does not label the known items, a cluster is named
        "elsewhere", or `log_density` has another shape, other draws or values that are not finite.
    MemoryError
        If the result takes more than the memory budget.

    See Also
    --------
    membership : the same for the known items.
    Membership.plot : the probabilities as stacked bars.

    Notes
    -----
    The components of draw t are matched with the clusters of the partition by the known items, as in
    :func:`membership`. Let pi_t(c) be the component matched with cluster c. Let p_tik and r_tjk be the probabilities of
    component k for the known item i and the new item j in draw t of weight w_t. Then

        P(j in c) = sum_t v_tj r_{t,j,pi_t(c)} 1{sum_{i in c} p_{t,i,pi_t(c)} >= 1/2}.

    "elsewhere" has the remaining probability, of components without a cluster.

    The draws are from p(theta | y). The posterior given a new value, p(theta | y, y_j), is proportional to
    p(theta | y) p(y_j | theta). With log densities, the weights v_tj are therefore w_t p(y_j | theta_t), normalized,
    their tail smoothed by a Pareto distribution [1]_. Each new item updates the parameters alone, without the others.

    An item far from all known ones is most probable in draws of a wide component, and few draws have nearly all weight.
    Their effective sample size is Kish's number, 1 / sum_t v_tj^2, times the share of effective among all draws for the
    mean of v_tj. The tail is too heavy if its Pareto shape exceeds min(1 - 1 / log10(N), 0.7) for N draws, unless
    Kish's number is at least half of its value for the weights w_t. In either case, run the sampler with the new items,
    and use :func:`membership`.

    Without log densities, v_tj = w_t. Known items that are passed as new items then get the result of
    :func:`membership`.

    References
    ----------
    .. [1] Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25(72), 1-58.
       https://jmlr.org/papers/v25/19-556.html

    Examples
    --------
    Two components have means -1 and 1, standard deviation 1 and equal weights. Their names switch in the second draw.
    An observation y belongs to the first component with probability 1 / (1 + exp(2 y)).

    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> def allocations(y):
    ...     p = 1 / (1 + np.exp(2 * np.array(y)))
    ...     return pc.as_allocation_probabilities([np.stack([p, 1 - p], axis=1), np.stack([1 - p, p], axis=1)])
    >>> known, new = allocations([-2.0, -1.0, 0.4, 1.5]), allocations([-6.0, 0.0])
    >>> predicted = pc.predict_allocation(new, known, partition=[0, 0, 1, 1])
    >>> predicted.probabilities.sel(consensus_cluster=0).values.round(5)
    array([0.99999, 0.5    ])
    >>> predicted.conditional_on
    'the old data; y_new does not update the parameters'
    """
    partition = partition_of(known, partition)
    new, known = as_draws(new), as_draws(known)
    soft, allocated = as_soft(new, "`new`"), as_soft(known, "`known`")
    if soft.n_components != allocated.n_components:
        raise ValueError(
            f"`new` must have the {allocated.n_components} components of `known`; got {soft.n_components}."
        )
    order = new.samples.order_of(known.samples, "`new`")
    if new.samples.is_weighted and not np.allclose(new.weights[order], known.weights, rtol=SAME, atol=0):
        raise ValueError("`new` must have the weights of `known`, or none; got others.")
    labels, given = known.as_labels(partition), known.items.reordered(partition)
    check_size(new.n_items, labels)
    density = soft.log_density if log_density is None else _log_density(log_density, new)
    matched, probabilities = matched_components(known, labels), soft.probabilities[order]
    if density is None:
        values, errors = of_matched(matched, probabilities, known.samples)
        errors = known.samples.probability_errors(values, errors)
        conditional_on, ess = OLD_DATA, None
    else:
        values, errors, sizes = _given_each(matched, probabilities, density[order], known.samples)
        conditional_on, ess = NEW_DATA, new.items.array(sizes, "ess")
    cluster = np.where(np.isnan(values).any(axis=1), values.shape[1] - 1, values.argmax(axis=1))
    named = cluster_names(partition, given), cluster_numbers(partition, given)
    cluster = cluster.astype(np.int32)
    return as_membership(values, errors, cluster, new.items, *named, conditional_on=conditional_on, ess=ess)


def _log_density(given: Any, new: PartitionDraws) -> Floats:
    """Log densities (n_draws, m) of the new items, in the order of their draws and items."""
    if isinstance(given, xr.DataArray) and new.items.dim in given.dims:
        given = given.transpose(..., new.items.dim)
        own = Items.along(given, new.items.dim)
        if own.n_items == new.n_items:
            given = given.isel({new.items.dim: own.order_of(new.items, "log_density")})
    values = new.samples.reordered(given, "`log_density`", more=True).astype(np.float64)
    if values.shape != (new.n_draws, new.n_items):
        raise ValueError(
            f"`log_density` must have one value for each draw and new item, of shape {(new.n_draws, new.n_items)}; got "
            f"shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("`log_density` must be finite; got NaN or infinity.")
    return values


def _given_each(
    matched: Matched, probabilities: npt.NDArray[np.floating], log_density: Floats, samples: Samples
) -> tuple[Floats, Floats, Floats]:
    """Memberships of each item over the draws with its own weights, their errors, and the weights' effective sizes."""
    n_items = log_density.shape[1]
    values = np.full((n_items, matched.order.shape[1] + 1), np.nan)
    errors, sizes = values.copy(), np.full(n_items, np.nan)
    limit = most_pareto_k(int(np.count_nonzero(samples.weights)))
    for j in range(n_items):
        own = smoothed(samples, log_density[:, j])
        if own.pareto_k > limit and own.samples.effective_draws < _NEARLY_EQUAL * samples.effective_draws:
            continue
        sizes[j] = own.samples.effective_weights
        if sizes[j] >= FEWEST_EFFECTIVE:
            value, error = of_matched(matched, probabilities[:, [j]], own.samples)
            values[j], errors[j] = value[0], own.samples.probability_errors(value, error, sizes[j])[0]
    return values, errors, sizes
