"""In which draws each cluster of a partition exists, with which other cluster it is one, and where it is split."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.stored_as import InWords, names_as_coordinate
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.sources.conversion import as_draws, partition_of

FOUND = 0.75  # Jaccard similarity above which a draw has a cluster, and share of it that one cluster then has
SAID = 0.1  # share of the draws above which summaries say that two clusters are one, or that one is split
COLUMNS = (
    *("number", "size", "found", "found_mcse", "jaccard", "jaccard_mcse", "ess", "chance", "joined_with", "joined"),
    *("joined_mcse", "split", "split_mcse", "largest_part", "second_part"),
)
# Those that are printed, also in reports.
SHOWN = "size", "found", "found_mcse", "jaccard", "jaccard_mcse", "chance", "joined_with", "joined", "split"
_AXES = {"cluster": "stability_cluster"}
_IN_WORDS = {"cluster": "stability_clusters"}
_PERMUTED = 200  # draws whose items are permuted, for the chance level


@dataclass(frozen=True, eq=False, repr=False)
class ClusterStability(InWords):
    """In which draws each cluster of a partition exists; made by :func:`cluster_stability`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the partition, -1 for noise.
    table : xarray.Dataset over ``cluster``, the names of the clusters in the order of their numbers
        ``number``, which sets its colour in figures; ``size``, the number of items; ``found``, the share of the draws
        that have the cluster; ``jaccard``, the mean Jaccard similarity to the most similar cluster of each draw, with
        its effective sample size ``ess``; ``chance``, the same if the items of each draw are permuted; ``joined_with``,
        the label of the other cluster with which it is one in most draws, -1 if in none, and ``joined``, the share of
        the draws in which they are one; ``split``, the share of the draws in which it is split; ``largest_part`` and
        ``second_part``, mean shares of its items in the two largest parts in these draws, NaN if it is never split.
        Standard errors are ``found_mcse``, ``jaccard_mcse``, ``joined_mcse`` and ``split_mcse``.
    n_draws : int
        Number of draws.
    """

    _figure = "profiles.plot_cluster_stability"

    labels: xr.DataArray = field(metadata=stored_as.array("stability_labels", of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("stability_{}", COLUMNS, _AXES, in_words=_IN_WORDS))
    n_draws: int = field(metadata=stored_as.attribute("stability_draws"))
    _of_runs: ClassVar = "stability_independent"

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the clusters, by number."""
        return tuple(self.table["cluster"].values.tolist())

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster, with the columns of `table`; ``joined_with`` has the name of the other cluster, and
            is missing if there is none.
        """
        index = pd.Index(self.names, name="cluster", tupleize_cols=False)
        table = pd.DataFrame({name: self.table[name].values for name in COLUMNS[1:]}, index)
        partners = table["joined_with"].tolist()
        named = [None if k < 0 else self.names[k] for k in partners]
        return table.assign(joined_with=pd.Series(named, index, dtype=object))

    def pairs(self, threshold: float = 0.0) -> pd.DataFrame:
        """Tabulate the pairs of clusters that are one in more than a share of the draws, the largest share first.

        Parameters
        ----------
        threshold : float
            The share, which itself does not count.

        Returns
        -------
        pandas.DataFrame
            A row for each pair of a cluster and its `joined_with`, by their labels ``first`` and ``second``, with
            ``share`` and ``mcse``.
        """
        partner, share = self.table["joined_with"].values, self.table["joined"].values
        own = np.flatnonzero((partner >= 0) & (share > threshold))
        ends = np.sort(np.column_stack([own, partner[own]]), axis=1)
        columns = {"first": ends[:, 0], "second": ends[:, 1], "share": share[own]}
        table = pd.DataFrame(columns | {"mcse": self.table["joined_mcse"].values[own]})
        table = table.drop_duplicates(["first", "second"])
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    def _annotations(self) -> dict[str, Annotations]:
        found = np.append(self.table["found"].values, np.nan)[self.labels.values]
        return {"": Annotations(self.labels, {"found": found}, {})}

    def _parts(self) -> display.Parts:
        words, table = self.words, self.to_dataframe()
        what = f"share of {words.draws} with a cluster of Jaccard similarity above {FOUND:g}"
        lines = [(words.draws, f"{self.n_draws:,}"), ("found", what)]
        pairs = self.pairs().head(1)
        for first, second, share, mcse in pairs.itertuples(index=False):
            names = f"clusters {self.names[first]} and {self.names[second]}"
            said = display.with_error(share, mcse, words=words)
            lines.append(("joined most", f"{names}, one in a share of {said} of the {words.draws}"))
        lines += display.about_errors(self.table["ess"].values, words)
        title = f"ClusterStability: {display.counted(len(table), 'cluster')} of "
        title += display.counted_items(self.labels.size, self.labels.dims[0])
        return title, lines, table[list(SHOWN)]


def cluster_stability(draws: Any, partition: Any = None) -> ClusterStability:
    """Compute in which share of the draws each cluster exists, is one with another cluster, and is split.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Draws of chains, or independent runs, also with noise.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.

    Returns
    -------
    ClusterStability
        A row for each cluster of the partition.

    Raises
    ------
    ValueError
        If `draws` have no draws, such as a similarity matrix alone, or the partition does not label the draws' items.
    MemoryError
        If the table of clusters of draws by clusters of the partition exceeds the memory budget.

    See Also
    --------
    ClusterStability.plot : the clusters as a figure.
    membership : the same question for each item.
    cluster_summary : probability that all items of a cluster are co-clustered.

    Notes
    -----
    Let C be a cluster of the partition, and D_1, D_2, ... the clusters of draw t. With n(A) items in A, the Jaccard
    similarity of two is

        J(C, D) = n(C and D) / n(C or D),    J_t(C) = max_k J(C, D_k).

    A draw has the cluster if J_t(C) > 3/4; Hennig calls it recovered then [1]_. The cluster is split if no D_k has more
    than 3/4 of its items. Then J_t(C) <= 3/4: a draw that has a cluster does not split it. In the other draws, some D_k
    has more than 3/4 of C, but too many other items, or too few of C, to count as it. Two clusters C and C' are one if
    a D_k has more than half of the items of each. A cluster remains found if it is one with a much smaller cluster.

    `found`, `jaccard`, `joined` and `split` are means over the draws, with their weights. Errors are those of
    probabilities near 0 and 1, :meth:`Samples.probability_errors`, with the effective sample size of J_t(C). They treat
    the partition as fixed, although it was chosen on the same draws: of few runs, shares are somewhat too high.

    `chance` is the mean of J_t(C) over 200 draws with clusters of the same sizes, but whose items are permuted with a
    fixed seed. A cluster whose `jaccard` is not much larger is not there.

    Items that a run calls noise are in none of its clusters. Noise is no cluster of the partition. Draws with
    allocation probabilities use their sampled labels. Of runs that lack items, C is the part of it that a run has, and
    runs that have none of it do not count.

    References
    ----------
    .. [1] Hennig (2007), Computational Statistics and Data Analysis 52(1), 258-271.
       https://doi.org/10.1016/j.csda.2006.11.025

    Examples
    --------
    Two clusters are one in one draw of four.

    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 2, 2]] * 3 + [[0, 0, 0, 1, 1, 1, 1]]
    >>> found = pc.cluster_stability(draws, draws[0])
    >>> found.to_dataframe()[["found", "jaccard", "joined_with", "joined"]]
             found  jaccard joined_with  joined
    cluster
    0         1.00    1.000        None    0.00
    1         0.75    0.875           2    0.25
    2         0.75    0.875           1    0.25
    """
    draws, partition = as_draws(draws, lacking=True).in_fixed_order(), partition_of(draws, partition)
    own = draws.clusters_of(partition)
    n_clusters = len(own.names) - (own.noise is not None)
    labels, sizes = own.labels, np.bincount(own.labels, minlength=n_clusters)[:n_clusters]
    counts = draws.clusters.joint_counts(labels)[:, :n_clusters]
    columns = {"number": own.numbers[:n_clusters], "size": sizes} | _columns_of_clusters(draws, counts, sizes)
    coords = {"cluster": names_as_coordinate(own.names[:n_clusters])}
    return ClusterStability(
        labels=draws.items.array(np.where(labels < n_clusters, labels, -1).astype(np.int32), "labels"),
        table=xr.Dataset({name: ("cluster", columns[name]) for name in COLUMNS}, coords),
        n_draws=draws.n_draws,
        words=draws.words,
    )


def _columns_of_clusters(
    draws: PartitionDraws, counts: npt.NDArray[np.int32], sizes: Positions
) -> dict[str, npt.NDArray[Any]]:
    """Columns of the result (K,), from the items (R, K) that clusters of draws and of the partition share."""
    samples, found = draws.samples, _most_similar(draws, counts, sizes)
    known = found.present > 0  # not of runs that have no item of the cluster
    found = found._replace(jaccard=_filled(found.jaccard, known, samples.weights))
    error, ess = samples.mcse_and_ess(found.jaccard)
    mean, size = samples.mean(found.jaccard), np.fmin(ess, samples.effective_draws)
    partner = _partners(draws, found.home)
    mate = np.where(partner[:, np.newaxis] >= 0, found.home[partner], -1)
    is_split = known & (4 * found.largest <= 3 * found.present)
    columns: dict[str, npt.NDArray[Any]] = {"jaccard": mean, "ess": ess, "joined_with": partner}
    columns["jaccard_mcse"] = samples.probability_errors(mean, error, size)
    columns["chance"] = _chance(draws, sizes)
    events = {"found": found.jaccard > FOUND, "joined": (found.home >= 0) & (found.home == mate), "split": is_split}
    for name, event in events.items():
        there = _filled(event.astype(np.float64), known, samples.weights)
        columns[name] = samples.mean(there)
        columns[f"{name}_mcse"] = samples.probability_errors(columns[name], samples.mcse(there), size)
    weights = np.where(is_split, samples.weights, 0.0)
    total = weights.sum(axis=1)
    weights /= np.where(total > 0, total, np.nan)[:, np.newaxis]
    for name, part in (("largest_part", found.largest), ("second_part", found.second)):
        columns[name] = (weights * part / np.maximum(found.present, 1)).sum(axis=1)
    return columns


def _filled(values: Floats, known: Flags, weights: Floats) -> Floats:
    """Values (K, N) with the mean of the known ones in place of the others, so that means are over these; else 0."""
    if known.all():
        return values
    total = np.where(known, weights, 0.0).sum(axis=1)
    mean = np.where(known, values * weights, 0.0).sum(axis=1) / np.where(total > 0, total, 1.0)
    return np.where(known, values, mean[:, np.newaxis])


class _ByDraw(NamedTuple):
    """For each cluster of the partition and each draw (K, N), what the clusters of the draw have of it."""

    present: Integers  # items that the draw has
    jaccard: Floats  # largest Jaccard similarity to a cluster of the draw, of these items
    largest: Integers  # items in the cluster that has most of them, and in the second one
    second: Integers
    home: Positions  # row of the cluster that has more than half of the items, -1 for none


def _most_similar(draws: PartitionDraws, counts: npt.NDArray[np.int32], sizes: Positions) -> _ByDraw:
    starts, shape = draws.clusters.starts, (sizes.size, draws.n_draws)
    drawn, noise = draws.clusters.sizes, np.zeros(len(counts), np.bool_)
    noise[draws.noise_rows] = True
    found = _ByDraw(np.empty(shape, np.int64), np.empty(shape), *(np.empty(shape, np.int64) for _ in range(3)))
    found.present[:] = sizes[:, np.newaxis]
    if draws.lacks_items:
        found.present[:] -= counts[starts[:-1]].T
    for rows in slices(draws.n_draws, max(1, memory.CELLS_AT_ONCE * draws.n_draws // max(counts.size, 1))):
        own = slice(starts[rows.start], starts[rows.stop])
        first, n_clusters = starts[rows] - own.start, np.diff(starts[rows.start : rows.stop + 1])
        common = np.where(noise[own, np.newaxis], 0, counts[own])
        present = np.repeat(found.present[:, rows].T, n_clusters, axis=0)
        either = drawn[own, np.newaxis] + present - common
        largest = np.maximum.reduceat(common, first)
        is_most = common == np.repeat(largest, n_clusters, axis=0)
        others = np.maximum.reduceat(np.where(is_most, 0, common), first)
        found.jaccard[:, rows] = np.maximum.reduceat(common / np.maximum(either, 1), first).T
        found.largest[:, rows] = largest.T
        found.second[:, rows] = np.where(np.add.reduceat(is_most, first, dtype=np.int64) > 1, largest, others).T
        at = np.where(2 * common > present, np.arange(own.start, own.stop)[:, np.newaxis], -1)
        found.home[:, rows] = np.maximum.reduceat(at, first).T
    return found


def _partners(draws: PartitionDraws, home: Positions) -> Positions:
    """Other cluster (K,) that has the same home in most draws, the first one of equals; -1 if none has in any."""
    clusters, rows = np.nonzero(home >= 0)
    addends, _ = draws.samples.addends
    shape = int(draws.clusters.starts[-1]), len(home)
    at = home[clusters, rows], clusters
    weighted = sparse.csr_array((addends[rows], at), shape)
    shared = sparse.csr_array(weighted.T @ sparse.csr_array((np.ones(rows.size), at), shape))
    shared.setdiag(0.0)
    shared.eliminate_zeros()
    shared.sort_indices()
    if shared.nnz == 0:
        return np.full(len(home), -1)
    best = np.asarray(shared.argmax(axis=1)).ravel()
    return np.where(np.diff(shared.indptr) > 0, best, -1)


def _chance(draws: PartitionDraws, sizes: Positions) -> Floats:
    """Mean of the largest Jaccard similarity (K,) if the items of draws are permuted: counts are hypergeometric."""
    rng, starts = np.random.default_rng(0), draws.clusters.starts
    drawn, noise = draws.clusters.sizes.astype(np.int64), set(draws.noise_rows.tolist())
    distinct, of = np.unique(sizes, return_inverse=True)
    best = np.zeros((distinct.size, _PERMUTED))
    for column, row in zip(best.T, draws.samples.at_quantiles((np.arange(_PERMUTED) + 0.5) / _PERMUTED), strict=True):
        own = drawn[starts[row] + draws.lacks_items : starts[row + 1]]
        skipped = int(starts[row] in noise)  # noise, which comes first, or after the items that a run lacks
        share = own.sum() / draws.n_items
        for k, size in enumerate(np.rint(share * distinct).astype(np.int64).tolist()):
            common = rng.multivariate_hypergeometric(own, size, method="marginals")[skipped:]
            column[k] = (common / np.maximum(own[skipped:] + size - common, 1)).max(initial=0.0)
    return best.mean(axis=1)[of]
