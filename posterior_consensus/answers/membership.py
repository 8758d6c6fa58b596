"""Posterior probability of items to belong to the clusters of a partition, by matching the clusters of each draw."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

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
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws, partition_of

ELSEWHERE = "elsewhere"
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
        Column of each item's own cluster; for a new item, the most probable column, which may be "elsewhere".
    numbers : tuple of int
        Number of each cluster, which sets its colour in figures: its name if that is an integer.
    """

    _figure = "plot_membership"

    probabilities: xr.DataArray = field(metadata=stored_as.array("membership_probability", _DIMS, in_words=_IN_WORDS))
    mcse: xr.DataArray = field(metadata=stored_as.array("membership_mcse", _DIMS, in_words=_IN_WORDS))
    cluster: xr.DataArray = field(metadata=stored_as.array("membership_of", of_items=True))
    numbers: tuple[int, ...] = field(metadata=stored_as.names("membership_numbers"))

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
        """
        items, own = np.arange(self.cluster.size), self.cluster.values
        names = self.probabilities["consensus_cluster"].values
        others = self.probabilities.values.copy()
        others[items, own] = -1.0
        other = others.argmax(axis=1)
        table = self.own.rename("probability").to_dataframe()[["probability"]]
        table.insert(0, "cluster", names[own])
        return table.assign(
            mcse=_of_columns(self.mcse, own), other=names[other], other_probability=others[items, other]
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table = self.to_dataframe()
        n_items, n_clusters = self.cluster.size, len(self.numbers)
        facts = [
            ("mean of own", display.number(table["probability"].mean())),
            ("below 0.5", display.counted(int((table["probability"] < 0.5).sum()), "item")),
            ("mean elsewhere", display.number(float(self.probabilities[:, -1].mean()))),
            ("largest MCSE", display.number(float(self.mcse.max()))),
        ]
        title = f"Membership: {n_items} items ({self.cluster.dims[0]}) in {display.counted(n_clusters, 'cluster')}"
        return f"{title}, least probable first", facts, table.sort_values("probability", kind="stable")


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
    values: Floats, errors: Floats, cluster: npt.NDArray[np.integer], items: Items, partition: Any, given: Any
) -> Membership:
    """Build the result from tables (n_items, n_clusters + 1); `given` are the labels as the partition has them."""
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
    known = draws.as_soft("`draws`").probabilities
    n_draws, n_items, n_components = soft.probabilities.shape
    missing = max(0, int(labels.max()) + 1 - n_components)  # empty components, so that every cluster has a partner
    common = np.pad(expected_common_items(known, labels), ((0, 0), (0, missing), (0, 0)))
    order = most_in_common(common)
    there = is_matched(np.take_along_axis(common, order[:, np.newaxis], axis=1)[:, 0])
    order = np.minimum(order, n_components - 1)

    def mean_over(rows: Rows, some: slice) -> Floats:
        taken = np.take_along_axis(soft.probabilities[rows, some], order[rows, np.newaxis], axis=2)
        weights = draws.weights[rows]
        weighted = weights[:, np.newaxis] * there[rows] / max(weights.sum(), _TINY)
        mean = np.einsum("tc,tnc->nc", weighted, taken, dtype=np.float64)
        return np.column_stack([mean, np.maximum(1.0 - mean.sum(axis=1), 0.0)])

    width = max(1, sizes.PROBABILITIES_AT_ONCE // (n_draws * order.shape[1]))
    return _with_errors(mean_over, draws.samples, n_items, width)


def _with_errors(mean_over: Callable[..., Floats], samples: Samples, n_items: int, width: int) -> tuple[Floats, Floats]:
    """Means over all draws and their standard errors from batches, `width` items at a time."""
    values, errors = [], []
    for items in slices(n_items, width):
        mean_of = partial(mean_over, some=items)
        mean = mean_of(np.arange(samples.n_draws))
        values.append(np.minimum(mean, 1.0))
        errors.append(samples.error_by_batches(mean, mean_of))
    return np.concatenate(values), np.concatenate(errors)


def predict_allocation(new: Any, known: Any, *, partition: Any = None) -> Membership:
    """Compute the posterior probability that each new item belongs to each cluster of a partition of the known items.

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

    Returns
    -------
    Membership
        Probabilities of shape (m, n_clusters + 1); `cluster` is the most probable column of each new item.

    Raises
    ------
    TypeError
        If `new` or `known` have no allocation probabilities.
    ValueError
        If their draws, weights or components differ, the partition does not label the known items, or a cluster is
        named "elsewhere".
    MemoryError
        If the result takes more than the memory budget.

    See Also
    --------
    membership : the same for the known items.
    plot_membership : the probabilities as stacked bars.

    Notes
    -----
    The components of draw t are matched with the clusters of the partition by the known items, as in
    :func:`membership`. Let pi_t(c) be the component matched with cluster c. Let p_tik and r_tjk be the probabilities of
    component k for the known item i and the new item j in draw t of weight w_t. Then

        P(j in c) = sum_t w_t r_{t,j,pi_t(c)} 1{sum_{i in c} p_{t,i,pi_t(c)} >= 1/2}.

    "elsewhere" has the remaining probability, of components without a cluster. Known items that are passed as new items
    get the result of :func:`membership`.

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
    """
    partition = partition_of(known, partition)
    new, known = as_draws(new), as_draws(known)
    soft, allocated = new.as_soft("`new`"), known.as_soft("`known`")
    if soft.n_components != allocated.n_components:
        raise ValueError(
            f"`new` must have the {allocated.n_components} components of `known`; got {soft.n_components}."
        )
    order = new.samples.order_of(known.samples, "`new`")
    if new.samples.is_weighted and not np.allclose(new.weights[order], known.weights, rtol=SAME, atol=0):
        raise ValueError("`new` must have the weights of `known`, or none; got others.")
    labels, given = known.as_labels(partition), known.items.in_order(partition)
    check_size(new.n_items, labels)
    values, errors = of_components(known, soft.take(order), labels)
    errors = known.samples.probability_errors(values, errors)
    return as_membership(values, errors, values.argmax(axis=1).astype(np.int32), new.items, partition, given)
