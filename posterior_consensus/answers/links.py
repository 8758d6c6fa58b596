"""Links between items: components of linked items, numbers of clusters by size, and clusters to merge."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from posterior_consensus.answers.scored_links import ScoredLinks, named_ends, scored_links
from posterior_consensus.answers.similarity_matrix import check_threshold
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import cluster_names, members_of
from posterior_consensus.ensemble.partitions import HasLabels, Labels
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.record import Loss
from posterior_consensus.priors.record import PartitionPrior, check_prior
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.words import DRAWS
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import check_share
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import cut, tree
from posterior_consensus.sources.conversion import as_source, partition_of

LINKAGES = ("single", "complete")
_LEAST = 0.01
_THRESHOLDS = np.arange(1, 101) / 100
_MOST_IN_CURVE = 5000  # most signatures for which the curve is computed at threshold 1
SURE, UNLIKELY = 0.95, 0.05  # similarity of a nearly certain link, and of a nearly certain non-link
SMALL, MANY = 3, 50  # most items of a small cluster, and most clusters that a figure shows one by one
_LARGEST = 10  # larger clusters share this row of the table
_INTERVAL = (0.05, 0.95)
_COLUMNS = ("mean", "mcse", "ess", "lower", "upper", "share", "partition", "prior")


@dataclass(frozen=True, eq=False, repr=False)
class StableComponents(HasLabels, InWords):
    """Sets of items that the draws co-cluster; made by :func:`stable_components`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Component of each item. Components are numbered by size, the largest 0; ties by first appearance.
    threshold : float
        Least similarity of linked items; two items of this similarity are linked.
    linkage : {"single", "complete"}
        Whether items of a component are connected by chains of links, or every two of them are linked.
    curve : xarray.DataArray of shape (threshold,), or None
        Number of components at the thresholds 0.01, 0.02, ..., 1; None at threshold 1 with more than 5,000 distinct
        items.
    n_draws : int or None
        Number of draws; None for a similarity matrix alone.
    """

    _figure = "paths.plot_stable_components"

    labels: xr.DataArray = field(metadata=stored_as.array("stable_component", of_items=True))
    threshold: float = field(metadata=stored_as.attribute("stable_components_threshold"))
    linkage: Literal["single", "complete"] = field(metadata=stored_as.attribute("stable_components_linkage"))
    curve: xr.DataArray | None = field(
        metadata=stored_as.array(
            "stable_components_by_threshold", {"threshold": "stable_threshold"}, name="n_components"
        )
    )
    n_draws: int | None = field(metadata=stored_as.attribute("stable_components_draws"))
    _of_runs: ClassVar = "stable_components_independent"

    @property
    def n_components(self) -> int:
        """Number of components, including single items."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> xr.DataArray:
        """Number of items of each component, over ``component``, the largest first."""
        return xr.DataArray(np.bincount(self.labels.values), dims="component", name="size")

    @property
    def components(self) -> list[list[Any]]:
        """Items of each component, by coordinate or else by position."""
        return members_of(self.labels)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the components.

        Returns
        -------
        pandas.DataFrame
            A row for each component: its size, its share of the items, and its first items.
        """
        numbers = pd.RangeIndex(self.n_components, name="component")
        return display.table_of_members(self.components, self.labels.size, str(self.labels.dims[0]), numbers)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        alone = int(np.sum(self.sizes.values == 1))
        within = (
            "every two items"
            if self.linkage == "complete"
            else f"items, {self.words.either('in chains', 'one after the other')}"
        )
        lines = [
            ("threshold", f"{self.threshold:g}" + ("" if self.threshold == 1 else f", between {within}")),
            ("of one item", str(alone)),
            (self.words.draws, display.number_of_draws(self.n_draws, self.words)),
        ]
        count = display.counted(self.n_components, "component")
        title = f"StableComponents: {display.counted_items(self.labels.size, self.labels.dims[0])} in {count}"
        return title, lines, self.to_dataframe()


def stable_components(
    draws: Any, threshold: float = 1.0, *, linkage: Literal["single", "complete"] = "single"
) -> StableComponents:
    """Find sets of items that all draws, or at least a given share of them, co-cluster.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    threshold : float in (0, 1]
        Least similarity of two linked items; two items of this similarity are linked. At 1, a component is a set of
        items that all draws co-cluster.
    linkage : {"single", "complete"}
        Only matters below threshold 1. With "single", items of a component are connected by a chain of links. With
        "complete", every two items of a component are linked; such sets are not unique, and the tree of complete
        linkage selects them.

    Returns
    -------
    StableComponents
        The component of each item, and the number of components by threshold.

    Raises
    ------
    ValueError
        If `threshold` or `linkage` is invalid, or the draws are invalid, see :func:`as_partition_draws`.
    MemoryError
        If the similarities of items with distinct labels exceed the memory budget.

    See Also
    --------
    StableComponents.plot : their number against the threshold.
    partial_partition : items whose joint clustering has a given probability.

    Notes
    -----
    At threshold 1, items with equal labels in all draws form a component [1]_. Below it, two items are linked if their
    posterior similarity is at least `threshold`. Draws of weight 0 are ignored.

    Under Binder's loss with any costs, VI and the misclassification distance, at least one partition of minimum
    expected loss co-clusters the items of each component of threshold 1. The reason: if a part of a component moves
    from one cluster to another, the expected loss is a concave function of the size of this part, so its minimum is at
    an end. These components can be merged before a search. Other minimizers, other losses and lower thresholds have no
    such guarantee.

    References
    ----------
    .. [1] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 1, 1, 1, 2], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1], [0, 1, 1, 1, 2]]
    >>> pc.stable_components(draws).labels.values
    array([1, 0, 0, 2, 3], dtype=int32)
    >>> pc.stable_components(draws, 0.75).components
    [[1, 2, 3], [0], [4]]
    """
    source = as_source(draws).in_fixed_order()
    threshold = check_share("threshold", threshold)
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    curve, signatures = None, source.certain_groups()
    _, first = np.unique(signatures, return_index=True)
    if first.size <= _MOST_IN_CURVE or threshold < 1 or source.counted_draws is None:
        classes, numbers = _classes(source, first, threshold, linkage)
        curve = xr.DataArray(numbers, {"threshold": _THRESHOLDS}, ("threshold",), "n_components")
        signatures = classes[signatures]
    return StableComponents(
        labels=source.items.array(_largest_first(signatures), "labels"),
        threshold=threshold,
        linkage=linkage,
        curve=curve,
        n_draws=source.n_draws,
        words=source.words,
    )


def _connects(pairs: ScoredPairs) -> bool:
    """Whether the pairs without a score connect all items: each item has more of them than scored ones."""
    return bool(np.diff(pairs.scored.indptr).max() < (pairs.n_items - 1) / 2)


def _connected(pairs: ScoredPairs, threshold: float) -> tuple[npt.NDArray[np.int32], Integers]:
    """Component of each item by single linkage, and the number of components at each threshold."""
    n = pairs.n_items
    one, other, values = pairs.pairs
    # Components at any threshold are those of a spanning tree; a cost of 0 would be no pair.
    forest = minimum_spanning_tree(csr_array((2.0 - values, (one, other)), (n, n)))
    links, thresholds = np.sort(2.0 - forest.data) + ROUNDING, np.append(_THRESHOLDS, threshold)
    numbers = n - (links.size - np.searchsorted(links, thresholds))
    numbers[pairs.unscored + ROUNDING >= thresholds] = 1
    if numbers[-1] == 1:
        return np.zeros(n, np.int32), numbers[:-1]
    forest.data = 2.0 - forest.data + ROUNDING >= threshold
    forest.eliminate_zeros()
    return connected_components(forest, directed=False)[1], numbers[:-1]


@singledispatch
def _classes(source: PairSource, first: Positions, threshold: float, linkage: str) -> tuple[npt.NDArray[Any], Integers]:
    """Component of each signature, given by its first item, and the number of components at each threshold."""
    if first.size == 1:
        return np.zeros(1, np.int64), np.ones(_THRESHOLDS.size, np.int64)
    differ = source.of_items(first)
    differ.check_memory("At threshold 1 it is not needed." if source.n_draws else "Single linkage does not need it.")
    merges = tree(differ.similarity(), linkage)
    joined = np.searchsorted(merges[:, 2], 1.0 - np.append(_THRESHOLDS, threshold) + ROUNDING, side="right")
    *numbers, number = (first.size - joined).tolist()
    return cut(merges, [number])[0], np.array(numbers)


@_classes.register
def _(source: ScoredPairs, first: Positions, threshold: float, linkage: str) -> tuple[npt.NDArray[Any], Integers]:
    if source.n_items > 1 and linkage == "single" and _connects(source):
        return _connected(source, threshold)
    return _classes.dispatch(PairSource)(source, first, threshold, linkage)


def _largest_first(classes: npt.NDArray[Any]) -> Labels:
    """Number classes by decreasing size, ties by first appearance."""
    _, first, inverse, sizes = np.unique(classes, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int32)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[inverse]


@dataclass(frozen=True, eq=False, repr=False)
class Links(InWords):
    """Links between pairs of items, and the numbers of clusters by size; made by :func:`links`.

    Attributes
    ----------
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the partition.
    pairs : xarray.Dataset
        The pairs of items with a similarity above `threshold`, over ``link``. ``first`` and ``second`` are the
        positions of the two items. ``similarity`` is their posterior similarity. ``mcse`` is its Monte Carlo standard
        error, NaN if a chain has fewer than four draws.
    sizes : xarray.Dataset
        Number of clusters of each size, over ``size``: "1", "2", ..., "10 or more" and "all". ``mean``, ``mcse`` and
        ``ess`` are over the draws, ``lower`` and ``upper`` the 5% and 95% quantiles, ``share`` the share of draws from
        one to the other. ``partition`` is the number in the partition, and ``prior`` the expected number under the
        prior, NaN without one.
    threshold : float
        Similarity above which pairs are listed; a pair of this similarity is not.
    names : tuple
        Names of the clusters in the partition, by number.
    n_draws : int
        Number of draws.
    components : str
        Whether the number of clusters estimates a number of components, in words: under the prior, if it is given.
    """

    _figure = "links.plot_links"

    cluster: xr.DataArray = field(metadata=stored_as.array("link_cluster", of_items=True))
    pairs: xr.Dataset = field(metadata=stored_as.table("link_{}", ("first", "second", "similarity", "mcse")))
    sizes: xr.Dataset = field(metadata=stored_as.table("clusters_by_size_{}", _COLUMNS, {"size": "cluster_size_class"}))
    threshold: float = field(metadata=stored_as.attribute("links_threshold"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("link_cluster_names"))
    n_draws: int = field(metadata=stored_as.attribute("links_draws"))
    components: str = field(default=DRAWS.number, metadata=stored_as.attribute("links_components"))
    _of_runs: ClassVar = "links_independent"

    @property
    def within(self) -> Flags:
        """Whether the partition co-clusters each of `pairs`."""
        cluster = self.cluster.values
        return np.equal(cluster[self.pairs["first"].values], cluster[self.pairs["second"].values])

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the pairs.

        Returns
        -------
        pandas.DataFrame
            A row for each pair, the most uncertain first, with the names of both items, the similarity, and both
            clusters.
        """
        table = self.pairs.reset_coords(drop=True).to_dataframe()[["first", "second", "similarity", "mcse"]]
        ends = named_ends(self.cluster, self.names, self.pairs["first"].values, self.pairs["second"].values)
        table = table.assign(**ends)
        order = np.argsort(np.abs(self.pairs["similarity"].values - 0.5), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    @property
    def uncertain(self) -> pd.DataFrame:
        """The rows of :meth:`to_dataframe` with a similarity from 0.05 to 0.95."""
        table = self.to_dataframe()
        return table[table["similarity"].between(UNLIKELY, SURE)]

    def between_clusters(self) -> pd.DataFrame:
        """Tabulate the pairs of clusters with links between them: candidates for a merge.

        Returns
        -------
        pandas.DataFrame
            A row for each two clusters, the most similar first. ``similarity`` is the mean over all pairs of an item
            of one cluster and an item of the other; pairs that are not in `pairs` count as 0. ``size`` is the number of
            items in both clusters.
        """
        between = ~self.within
        pairs = np.stack([self.pairs["first"].values, self.pairs["second"].values])[:, between]
        ends = self.cluster.values.astype(np.int64)[pairs]
        sizes = np.bincount(self.cluster.values)
        code, which = np.unique(ends.min(axis=0) * sizes.size + ends.max(axis=0), return_inverse=True)
        joined = np.stack(np.divmod(code, sizes.size))
        sums = np.bincount(which, self.pairs["similarity"].values[between], code.size)
        counts = sizes[joined]
        names = np.array(self.names, dtype=object)
        table = pd.DataFrame(
            {
                "first_cluster": pd.Index(names[joined[0]]).infer_objects(),
                "second_cluster": pd.Index(names[joined[1]]).infer_objects(),
                "size": counts.sum(axis=0),
                "similarity": sums / counts.prod(axis=0),
            }
        )
        return table.sort_values("similarity", ascending=False, kind="stable", ignore_index=True)

    @property
    def n_by_certainty(self) -> tuple[int, int, int]:
        """Numbers of nearly certain, uncertain, and improbable links."""
        similarity = self.pairs["similarity"].values
        sure, unlikely = int(np.sum(similarity > SURE)), int(np.sum(similarity < UNLIKELY))
        return sure, similarity.size - sure - unlikely, unlikely

    def _parts(self) -> display.Parts:
        sure, uncertain, unlikely = self.n_by_certainty
        total, words = self.sizes.sel(size="all"), self.words
        mean = display.with_error(float(total["mean"]), float(total["mcse"]), float(total["ess"]), words)
        counts = f"{sure:,} above {SURE:g}, {uncertain:,} uncertain, {unlikely:,} below {UNLIKELY:g}"
        whole = f"the {words.draws}"
        interval = display.interval(int(total["lower"]), int(total["upper"]), float(total["share"]), whole)
        here = f"{int(total['partition'])} in the partition"
        lines = [
            ("clusters", f"{interval}; mean {mean}; {here}"),
            ("by size", "; ".join(f"{size}: {range_of(own)}" for size, own in self._by_size())),
            ("links", counts),
            (words.draws, f"{self.n_draws:,}"),
            ("number of clusters", self.components),
        ]
        pairs = display.counted(self.pairs.sizes["link"], "pair")
        items = display.counted_items(self.cluster.size, self.cluster.dims[0])
        title = f"Links: {pairs} of {items} above {self.threshold:g}"
        return title, lines, self.to_dataframe() if self.pairs.sizes["link"] else None

    def _by_size(self) -> list[tuple[str, xr.Dataset]]:
        seen = self.sizes.isel(size=slice(None, -1)).where(self.sizes["upper"] > 0, drop=True)
        return [(str(size), self.sizes.sel(size=size)) for size in seen["size"].values]


def range_of(row: xr.Dataset) -> str:
    """The interval of a number of clusters, in words."""
    low, high = int(row["lower"]), int(row["upper"])
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


@overload
def links(
    draws: PartitionDraws, partition: Any = None, *, threshold: float | None = None, prior: Any = None
) -> Links: ...


@overload
def links(draws: ScoredPairs, partition: Any, *, loss: str | Loss | None = None) -> ScoredLinks: ...


@overload
def links(
    draws: Any, partition: Any = None, *, loss: Any = None, threshold: float | None = None, prior: Any = None
) -> Any: ...


def links(
    draws: Any,
    partition: Any = None,
    *,
    loss: str | Loss | None = None,
    threshold: float | None = None,
    prior: PartitionPrior | None = None,
) -> Links | ScoredLinks:
    """Compute the posterior similarity of each two linked items, and the number of clusters of each size.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes, or ScoredPairs
        Posterior draws of the partition, or scored pairs (:func:`as_pair_similarity`).
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.
    loss : str or PartitionLoss, optional
        Binder's loss whose threshold says which scored pairs the partition decides against their score; by default that
        of the partition. Draws take none.
    threshold : float in [0, 1), optional
        Similarity above which pairs of items are kept, by default 0.01; a pair of this similarity is left out. With 0,
        every pair that any draw co-clusters is kept. Of scored pairs, all are kept.
    prior : PartitionPrior, optional
        Prior whose expected numbers of clusters by size are added, such as ``priors.crp(1.0)``. For draws only.

    Returns
    -------
    Links or ScoredLinks
        Pairs with their similarities, and numbers of clusters by size. For scored pairs a ScoredLinks: the pairs that
        the partition decides against their score, expected precision and recall, and pairs to review.

    Raises
    ------
    ValueError
        If there are neither draws nor scored pairs, `threshold` is out of range, draws or partition are invalid, the
        prior is on labels, or an argument is given that the posterior does not take.
    TypeError
        If `threshold` is not a number, or `prior` is not a PartitionPrior.
    MemoryError
        If the pairs take more than the memory budget.

    See Also
    --------
    Links.plot : the links by similarity, and the most uncertain ones.
    plot_cluster_sizes : the numbers of clusters by size.
    posterior_similarity_matrix : with ``threshold=0``, the same similarities as a sparse array.

    Notes
    -----
    A link is a pair of items in one cluster. The posterior similarity of two items estimates its probability. If
    clusters are many and small, only pairs within clusters of the draws are visited, and no matrix is formed. Standard
    errors are computed as by :func:`diagnostics.similarity_mcse`, with the effective sample size pooled over these
    pairs. They are rough if a chain has fewer than 50 effective draws.
    Clusters are counted in each draw; for allocation probabilities, in the sampled labels.

    The posterior number of clusters need not estimate a number of components: that depends on the prior. Under a
    Dirichlet process mixture with fixed concentration, it is inconsistent (Miller and Harrison 2014,
    https://jmlr.org/papers/v15/miller14a.html).

    For scored pairs with probabilities p, the expected precision of the partition is the sum of p over the pairs that
    it joins, divided by their number, and the expected recall the same sum divided by that over all pairs. Pairs that
    were not scored count with the probability `unscored` within components of linked records, and with 0 elsewhere.
    Both hold if each score were right by itself: if 80% of the pairs scored 0.8 matched, in clusters too. Scores that
    are calibrated over all pairs are not so within clusters, where records agree with several others: errors may have
    either sign. ``precision_range`` has a second estimate, by products of odds.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> linked = pc.links(draws, [0, 0, 1, 2], prior=pc.priors.crp(1.0))
    >>> linked.to_dataframe()[["first", "second", "similarity", "mcse"]].round(3)
       first  second  similarity   mcse
    0      0       1        0.75  0.282
    1      2       3        0.25  0.282
    >>> linked.sizes.to_dataframe()[["mean", "lower", "upper", "partition", "prior"]].round(2)
          mean  lower  upper  partition  prior
    size
    1      2.0    0.0    4.0        2.0   1.00
    2      1.0    0.0    2.0        1.0   0.50
    all    3.0    2.0    4.0        3.0   2.08
    """
    source, partition = as_source(draws).in_fixed_order(), partition_of(draws, partition)
    labels = source.as_labels(partition)
    if isinstance(source, ScoredPairs):
        for name, given in (("threshold", threshold), ("prior", prior)):
            if given is not None:
                raise ValueError(f"`{name}` is for draws; scored pairs take none, and all are kept; got {given!r}.")
        return scored_links(
            source, labels, cluster_names(partition, source.items.reordered(partition)), loss, partition
        )
    if loss is not None:
        raise ValueError(f"`loss` is the loss of scored pairs; draws take none; got {loss!s}.")
    taken, threshold = source.as_draws("`links`"), check_threshold(_LEAST if threshold is None else threshold)
    prior = None if prior is None else check_prior(prior)
    pairs = [np.concatenate(column) for column in zip(*taken.pairs_above(threshold), strict=True)]
    columns = dict(zip(("first", "second", "similarity"), pairs, strict=True))
    columns["mcse"] = _errors(taken, *pairs)
    return Links(
        cluster=taken.items.array(labels, "cluster"),
        pairs=xr.Dataset({name: ("link", column) for name, column in columns.items()}),
        sizes=_by_size(taken, labels, prior),
        threshold=threshold,
        names=cluster_names(partition, taken.items.reordered(partition)),
        n_draws=taken.n_draws,
        components=taken.words.number if prior is None else prior.about_components,
        words=taken.words,
    )


def suits_links(draws: PartitionDraws, labels: Labels) -> bool:
    """Whether to show links instead of clusters: more than 50 clusters, and most items in clusters of at most three.

    A panel is about 500 points wide, so a block of three items among more than 50 clusters is a dot. A cluster of at
    most three items is described by its pairs. With very many items, pairs are counted only if clusters are small. Runs
    that lack items have none.
    """
    own = np.bincount(labels)[labels]
    if draws.lacks_items:
        return False
    few = labels.size <= memory.ITEMS_OF_ALL_PAIRS or draws.has_small_clusters
    return bool(labels.max() >= MANY and np.mean(own <= SMALL) > 0.5 and few)


def _errors(draws: PartitionDraws, first: npt.NDArray[Any], second: npt.NDArray[Any], similarity: Floats) -> Floats:
    """Standard error (P,) of the similarity of each pair, from batches of draws as for the similarity matrix."""
    error = np.full(first.size, np.nan)
    if not first.size or not draws.samples.has_errors:
        return error
    batches = draws.samples.batches
    order, starts = np.concatenate(batches), np.cumsum([0, *(batch.size for batch in batches[:-1])])
    addends = draws.samples.addends[0][order]
    totals = np.add.reduceat(addends, starts)
    items, at = np.unique(np.concatenate([first, second]), return_inverse=True)
    columns = draws.of_items(items).columns()[:, order]
    for part in memory.parts(first.size, 16 * columns[0].size):
        agree = draws.together(columns[at[: first.size][part]], columns[at[first.size :][part]])
        sums = np.add.reduceat(agree * addends, starts, axis=1)
        means = np.divide(sums, totals, out=np.zeros(sums.shape), where=totals > 0)
        error[part] = np.sqrt(draws.samples.squared_errors((means.shape[0],), (means - similarity[part, np.newaxis]).T))
    return draws.samples.probability_errors(similarity, error)


def _by_size(draws: PartitionDraws, labels: Labels, prior: PartitionPrior | None) -> xr.Dataset:
    """Posterior, partition and prior numbers of clusters by size, and of all of them."""
    own = np.bincount(labels)
    weighted = draws.without_zero_weights()
    largest = min(_LARGEST, max(int(weighted.backend.sizes.max()), int(own.max())))
    by_size = _counts_by_size(weighted.backend.sizes, weighted.starts, largest)
    counts = np.stack([*by_size, weighted.n_clusters]).astype(np.float64)
    quantiles = np.quantile(counts, _INTERVAL, axis=1, method="inverted_cdf", weights=weighted.weights)
    inside = (counts >= quantiles[0][:, np.newaxis]) & (counts <= quantiles[1][:, np.newaxis])
    expected = np.full(len(counts), np.nan)
    if prior is not None:
        numbers = prior.cluster_sizes(draws.n_items).values
        beyond = numbers[_LARGEST:].sum() if largest == _LARGEST else 0.0
        expected[:] = *numbers[: largest - 1], numbers[largest - 1] + beyond, numbers.sum()
    columns = (
        weighted.samples.mean(counts),
        *weighted.samples.mcse_and_ess(counts),
        *quantiles,
        weighted.samples.mean(inside.astype(np.float64)),
        np.append(_counts_by_size(own, np.array([0, own.size]), largest), own.size).astype(np.float64),
        expected,
    )
    last = f"{largest}" if largest < _LARGEST else f"{_LARGEST} or more"
    names = [*map(str, range(1, largest)), last, "all"]
    table = {name: ("size", column) for name, column in zip(_COLUMNS, columns, strict=True)}
    return xr.Dataset(table, {"size": names})


def _counts_by_size(values: npt.NDArray[Any], starts: npt.NDArray[Any], largest: int) -> list[Integers]:
    """Number of clusters of each size in each draw; the largest size includes all larger clusters."""
    own = [values == size for size in range(1, largest)] + [values >= largest]
    return [np.add.reduceat(one, starts[:-1], dtype=np.int64) for one in own]
