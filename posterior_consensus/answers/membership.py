"""Posterior probability of items to belong to the clusters of a partition, by matching the clusters of each draw."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.allocations import AllocationProbabilities
from posterior_consensus.ensemble.draws import PartitionDraws, draws_if_any
from posterior_consensus.ensemble.items import Floats, Items, cluster_names, cluster_numbers
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import (
    Numbers,
    expected_common_items,
    is_matched,
    most_in_common,
    partners,
)
from posterior_consensus.kernels import ensemble
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.plain import names_as_coordinate
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime import memory, sizes
from posterior_consensus.sources.conversion import as_draws, partition_of

ELSEWHERE = "elsewhere"
FEWEST_EFFECTIVE = 100  # draws, by the weights given a new item, that its probabilities need
_DIMS = {"consensus_cluster": "membership_cluster"}  # names of dimensions in stored results
_IN_WORDS = {"consensus_cluster": "membership_clusters"}

_MOST_CELLS = 2**26  # clusters of all draws times clusters of the partition, beyond which a summary skips the matching
_CELLS_AT_ONCE = 2**16  # of the table of items by clusters, which each batch of draws fills anew
_TINY = np.finfo(np.float64).tiny

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Membership(Stored):
    """Posterior probability of each item to belong to each cluster of a partition.

    Result of :func:`membership` and, for new items, of :func:`predict_allocation`.

    Attributes
    ----------
    probabilities : xarray.DataArray of shape (n_items, n_clusters + 1), dtype float64
        Over the items and ``consensus_cluster``, the names of the clusters in the order of the partition. The last
        column, "elsewhere", is the probability of clusters without a match. Rows sum to 1.
    mcse : xarray.DataArray of shape (n_items, n_clusters + 1), dtype float64
        Monte Carlo standard errors, also for probabilities of 0 and 1; NaN if a chain has fewer than four draws.
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Column of each item's own cluster; for a new item, the most probable column, which may be "elsewhere", and is
        the last one if the probabilities are NaN.
    numbers : tuple of int
        Number of each cluster, which sets its colour in figures: its name if that is an integer.
    conditional_on : str
        What the probabilities of new items condition on, in words; empty for the items of the partition.
    ess : xarray.DataArray of shape (n_items,) or None
        Effective sample size of the weights of the draws given each new item's value; NaN if the tail of the
        weights is too heavy, or a chain has fewer than four draws. None if new items have no weights of their own.
    """

    _figure = "plot_membership"

    probabilities: xr.DataArray = field(metadata=stored_as.array("membership_probability", _DIMS, in_words=_IN_WORDS))
    mcse: xr.DataArray = field(metadata=stored_as.array("membership_mcse", _DIMS, in_words=_IN_WORDS))
    cluster: xr.DataArray = field(metadata=stored_as.array("membership_of", of_items=True))
    numbers: tuple[int, ...] = field(metadata=stored_as.names("membership_numbers"))
    conditional_on: str = field(default="", metadata=stored_as.attribute("membership_conditional_on"))
    ess: xr.DataArray | None = field(default=None, metadata=stored_as.array("membership_ess"))

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
        return self.cluster.copy(data=_of_columns(self.probabilities, self.cluster.values)).rename("own")

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the items.

        Returns
        -------
        pandas.DataFrame
            A row for each item: its cluster with probability and standard error, and the most probable other cluster.
            New items with weights of their own have these weights' effective sample size, too.
        """
        items, own = np.arange(self.cluster.size), self.cluster.values
        names = self.probabilities["consensus_cluster"].values
        others = self.probabilities.values.copy()
        others[items, own] = -1.0
        other = others.argmax(axis=1)
        table = self.own.rename("probability").to_dataframe()[["probability"]]
        table.insert(0, "cluster", names[own])
        table = table.assign(
            mcse=_of_columns(self.mcse, own), other=names[other], other_probability=others[items, other]
        )
        if self.ess is None:
            return table
        unknown = np.isnan(self.own.values)
        table.loc[unknown, ["cluster", "other", "other_probability"]] = np.nan
        return table.assign(ess=self.ess.values)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table = self.to_dataframe()
        n_items, n_clusters = self.cluster.size, len(self.numbers)
        facts = [
            ("mean of own", display.number(table["probability"].mean())),
            ("below 0.5", display.counted(int((table["probability"] < 0.5).sum()), "item")),
            ("mean elsewhere", display.number(float(self.probabilities[:, -1].mean()))),
            ("largest MCSE", display.number(float(self.mcse.max()))),
            *([("given", self.conditional_on)] if self.conditional_on else []),
            *self._about_weights(),
        ]
        title = f"Membership: {n_items} items ({self.cluster.dims[0]}) in {display.counted(n_clusters, 'cluster')}"
        return f"{title}, least probable first", facts, table.sort_values("probability", kind="stable")

    def _about_weights(self) -> list[tuple[str, str]]:
        if self.ess is None:
            return []
        unknown = int(np.isnan(self.own.values).sum())
        sizes = self.ess.values[~np.isnan(self.ess.values)]
        facts = [("ESS of weights", f"{sizes.min():.0f} to {sizes.max():.0f}")] if sizes.size else []
        if unknown:
            facts.append(("not estimated", f"{display.counted(unknown, 'item')}, see `reason`"))
        return facts


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
    plot_membership : the probabilities as stacked bars.
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
    draws, partition = as_draws(draws), partition_of(draws, partition)
    labels, given = draws.as_labels(partition), draws.items.in_order(partition)
    check_size(draws.n_items, labels)
    values, errors = _of_labels(draws, labels) if draws.soft is None else of_components(draws, draws.soft, labels)
    errors = draws.samples.probability_errors(values, errors)
    return as_membership(values, errors, labels, draws.items, partition, given)


def check_size(n_items: int, labels: Labels) -> None:
    """Raise MemoryError if a table of items by clusters exceeds the memory budget."""
    n_columns = int(labels.max()) + 2
    memory.check(40 * n_items * n_columns, f"Probabilities of {n_items:,} items and {n_columns} clusters")


def as_membership(
    values: Floats,
    errors: Floats,
    cluster: npt.NDArray[np.integer],
    items: Items,
    partition: Any,
    given: Any,
    **of_new: Any,
) -> Membership:
    """Build the result from tables (n_items, n_clusters + 1); `given` are the labels as the partition has them.

    Further fields are those of new items.
    """
    own = cluster_names(partition, given)
    if ELSEWHERE in own:
        raise ValueError(f"`partition` must name no cluster {ELSEWHERE!r}, as that is the last column; rename it.")
    names = names_as_coordinate([*own, ELSEWHERE])
    dims = items.dim, "consensus_cluster"
    tables = [xr.DataArray(table, items.coords, dims).assign_coords({dims[1]: names}) for table in (values, errors)]
    return Membership(
        probabilities=tables[0].rename("probabilities"),
        mcse=tables[1].rename("mcse"),
        cluster=items.array(cluster, "cluster"),
        numbers=tuple(cluster_numbers(partition, given).tolist()),
        **of_new,
    )


def own_membership(source: PairSource, labels: Labels) -> Floats | None:
    """Probability (n,) of each item's own cluster; None without draws, or if there are too many clusters to match."""
    draws, n_clusters = draws_if_any(source), int(labels.max()) + 1
    if draws is None:
        return None
    if draws.soft is not None:
        return _of_columns(of_components(draws, draws.soft, labels)[0], labels)
    cells = int(draws.starts[-1]) * n_clusters
    if cells > _MOST_CELLS or not memory.fits(4 * cells):
        return None
    addends, total = draws.samples.addends
    given = draws.starts, addends, matched_clusters(draws, labels), labels
    return np.concatenate([own for _, own in draws.backend.map_blocks(_own_of_block, *given)]) / total


def _of_columns(table: Any, columns: npt.NDArray[np.integer]) -> Floats:
    return np.asarray(table)[np.arange(columns.size), columns]


def matched_clusters(draws: PartitionDraws, labels: Labels) -> Numbers:
    """Cluster of the partition matched with each cluster of the draws (R,), draw after draw; -1 for none."""
    counts, starts = draws.backend.joint_counts(labels), draws.starts
    some = slices(draws.n_draws, max(1, sizes.CELLS_AT_ONCE * draws.n_draws // counts.size))
    given = [starts[rows.start : rows.stop + 1] for rows in some]
    return np.concatenate([partners(counts[own[0] : own[-1]], own - own[0]) for own in given])


def _of_labels(draws: PartitionDraws, labels: Labels) -> tuple[Floats, Floats]:
    n_columns = int(labels.max()) + 2
    targets = matched_clusters(draws, labels)
    targets[targets < 0] = n_columns - 1
    given = draws.starts, draws.samples, targets, n_columns
    blocks = [block for _, block in draws.backend.map_blocks(_block_of_labels, *given)]
    values, errors = (np.concatenate(tables) for tables in zip(*blocks, strict=True))
    return values, errors


def _block_of_labels(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    samples: Samples,
    targets: Numbers,
    n_columns: int,
) -> tuple[Floats, Floats]:
    def mean_over(rows: Rows, some: slice) -> Floats:
        own = np.ascontiguousarray(labels[rows, some])
        votes = ensemble.votes(own, np.append(starts[rows], targets.size), addends[rows], targets, n_columns)
        return np.asarray(votes / max(addends[rows].sum(), _TINY))

    addends, _ = samples.addends
    return _with_errors(mean_over, samples, labels.shape[1], max(1, _CELLS_AT_ONCE // n_columns))


def _own_of_block(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    weights: Floats,
    targets: Numbers,
    partition: Labels,
) -> Floats:
    """Weight (m,) of the draws in which each item's cluster is matched with its cluster of the partition."""
    own: Floats = ensemble.weights_with(np.ascontiguousarray(labels), starts, weights, targets, partition[items])
    return own


def of_components(draws: PartitionDraws, soft: AllocationProbabilities, labels: Labels) -> tuple[Floats, Floats]:
    """Memberships of the items of `soft`, with the components of each draw matched with the clusters `labels`."""
    matched = matched_components(draws, labels)
    return of_matched(matched, soft, draws.samples)


class Matched(NamedTuple):
    """Component (n_draws, n_clusters) matched with each cluster in each draw, and whether there is one."""

    order: npt.NDArray[np.intp]
    there: npt.NDArray[np.bool_]


def matched_components(draws: PartitionDraws, labels: Labels) -> Matched:
    """Match the components of each draw with the clusters of a partition."""
    known = draws.as_soft("`draws`").probabilities
    n_components = known.shape[2]
    missing = max(0, int(labels.max()) + 1 - n_components)  # empty components, so that every cluster has a partner
    common = np.pad(expected_common_items(known, labels), ((0, 0), (0, missing), (0, 0)))
    order = most_in_common(common)
    there = is_matched(np.take_along_axis(common, order[:, np.newaxis], axis=1)[:, 0])
    return Matched(np.minimum(order, n_components - 1), there)


def of_matched(matched: Matched, soft: AllocationProbabilities, samples: Samples) -> tuple[Floats, Floats]:
    """Memberships (n_items, n_clusters + 1) of the items of `soft`, and their standard errors, over these samples."""
    n_draws, n_items, _ = soft.probabilities.shape
    order, there = matched

    def mean_over(rows: Rows, some: slice) -> Floats:
        taken = np.take_along_axis(soft.probabilities[rows, some], order[rows, np.newaxis], axis=2)
        weights = samples.weights[rows]
        weighted = weights[:, np.newaxis] * there[rows] / max(weights.sum(), _TINY)
        mean = np.einsum("tc,tnc->nc", weighted, taken, dtype=np.float64)
        return np.column_stack([mean, np.maximum(1.0 - mean.sum(axis=1), 0.0)])

    width = max(1, sizes.PROBABILITIES_AT_ONCE // (n_draws * order.shape[1]))
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
