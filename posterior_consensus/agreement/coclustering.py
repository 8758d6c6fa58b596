"""Co-clustering by agreement: several clusterings of the rows and columns of a table with high mutual information."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import mean_between
from posterior_consensus.ensemble.items import Items, name_or
from posterior_consensus.ensemble.partitions import canonical_rows, smallest_dtype
from posterior_consensus.kernels import mutual_information
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count, warn
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import track, waiting

_ALTERNATIONS = 10  # of rows and columns for each separate pair of clusterings
_PASSES = 3  # over all items of one side in its turn; 1 for a large table
_REARRANGED = 3  # times in a round that a cluster is dissolved and another one split
_MOST_WORK = 1e8  # steps of a pass over all clusterings, above which a table is large
_TRACE = ("mutual_information", "row_jaccard", "column_jaccard")
_DIMS = {"clustering": "coclustering", "round": "coclustering_round"}  # names of dimensions in stored results


@dataclass(frozen=True, eq=False)
class Table:
    """A contingency table."""

    shares: sparse.csr_array  # (n_rows, n_columns): the table divided by its sum, without rows and columns of zeros
    rows: Items  # all rows and columns, with the user's coordinates
    columns: Items
    full_rows: Positions  # positions of the rows and columns with a positive sum
    full_columns: Positions


def as_table(table: Any) -> Table:
    """Convert counts or other amounts to a table.

    Raises ValueError if it does not have two dimensions, an entry is negative, missing or infinite, or all entries are
    0. Raises TypeError if it does not hold numbers.
    """
    values, rows, columns = _with_names(table)
    if values.ndim != 2:
        raise ValueError(f"`table` must have rows and columns; got shape {values.shape}.")
    try:
        values = sparse.csr_array(values).astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"`table` must hold numbers; got {type(table).__name__} of {values.dtype}.") from None
    values.sum_duplicates()
    if not np.all(np.isfinite(values.data)) or np.any(values.data < 0):
        wrong = values.data[~(np.isfinite(values.data) & (values.data >= 0))][0]
        raise ValueError(f"`table` must hold finite numbers from 0; got {wrong}.")
    values.eliminate_zeros()
    if values.nnz == 0:
        raise ValueError("`table` must hold at least one number above 0; got none.")
    largest = float(values.data.max())  # the sum of large numbers may be infinite
    values.data /= largest
    values.data /= values.data.sum()
    full_rows, full_columns = (np.flatnonzero(values.sum(axis=axis) > 0) for axis in (1, 0))
    shares = sparse.csr_array(values[full_rows][:, full_columns])
    rows = rows or Items(values.shape[0], "row", xr.Coordinates())
    columns = columns or Items(values.shape[1], "column", xr.Coordinates())
    return Table(shares, rows, columns, full_rows, full_columns)


def _with_names(table: Any) -> tuple[Any, Items | None, Items | None]:
    """Values, and rows and columns if they have names."""
    if isinstance(table, xr.DataArray) and table.ndim == 2:
        rows, columns = (Items.along(table, str(dim)) for dim in table.dims)
        return table.values, rows, columns
    if isinstance(table, pd.DataFrame):
        row, column = name_or(table.index.name, "row"), name_or(table.columns.name, "column")
        column = f"{column}_bis" if column == row else column
        is_sparse = table.shape[1] > 0 and all(isinstance(kind, pd.SparseDtype) for kind in table.dtypes)
        values: Any = cast(Any, table).sparse.to_coo() if is_sparse else table.to_numpy()
        return values, _items_of_index(row, table.index), _items_of_index(column, table.columns)
    return table if sparse.issparse(table) else np.asarray(table), None, None


def _items_of_index(dim: str, index: pd.Index) -> Items:
    coords = {} if isinstance(index, pd.RangeIndex) else {dim: index.to_numpy()}
    return Items(len(index), dim, xr.Coordinates(coords))


@dataclass(frozen=True, eq=False, repr=False)
class Coclustering(Stored):
    """Clusterings of the rows and of the columns of a table; made by :func:`cocluster`.

    Attributes
    ----------
    row_labels : xarray.DataArray of shape (clustering, n_rows), dtype int32
        Cluster of each row in each clustering, numbered by first appearance.
    column_labels : xarray.DataArray of shape (clustering, n_columns), dtype int32
        Cluster of each column in each clustering.
    trace : xarray.Dataset
        Over ``round``; round 0 is before agreement. ``mutual_information`` is the mean over all pairs of a row
        clustering and a column clustering, in bits. ``row_jaccard`` and ``column_jaccard`` are the Jaccard index
        averaged over all pairs of clusterings of one side.
    table_information : float
        Mutual information of the rows and columns themselves, in bits: the upper bound for all clusterings.
    stopped : str
        "interrupted" if Ctrl-C ended the search early, or empty.
    """

    _no_figure = "plot_alluvial(clusterings.row_labels) shows its partitions"

    row_labels: xr.DataArray = field(metadata=stored_as.array("cocluster_of_row", _DIMS, of_items=True))
    column_labels: xr.DataArray = field(metadata=stored_as.array("cocluster_of_column", _DIMS))
    trace: xr.Dataset = field(metadata=stored_as.table("coclustering_{}", _TRACE, _DIMS))
    table_information: float = field(metadata=stored_as.attribute("coclustering_table_information"))
    stopped: str = field(default="", metadata=stored_as.attribute("coclustering_stopped"))

    @property
    def row_draws(self) -> PartitionDraws:
        """Row clusterings as draws, for :func:`consensus_partition` or :func:`stable_components`."""
        return _as_draws(self.row_labels)

    @property
    def column_draws(self) -> PartitionDraws:
        """Column clusterings as draws."""
        return _as_draws(self.column_labels)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the trace.

        Returns
        -------
        pandas.DataFrame
            A row for each round.
        """
        return self.trace.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        (m, n_rows), n_columns = self.row_labels.shape, self.column_labels.shape[1]
        row, column = (str(labels.dims[1]) for labels in (self.row_labels, self.column_labels))
        kept = float(self.trace["mutual_information"][-1])
        lines = [
            ("rows", f"{n_rows:,} ({row}) in {display.counted(int(self.row_labels.max()) + 1, 'cluster')}"),
            ("columns", f"{n_columns:,} ({column}) in {display.counted(int(self.column_labels.max()) + 1, 'cluster')}"),
            ("information", f"{kept:.6g} of the table's {self.table_information:.6g} bits"),
        ]
        if self.stopped:
            lines.append(("interrupted", "searched until Ctrl-C: a longer search may keep more information"))
        return f"Coclustering: {display.counted(m, 'clustering')} of each side", lines, self.to_dataframe()


def _as_draws(labels: xr.DataArray) -> PartitionDraws:
    return PartitionDraws.of(labels.values, items=Items.along(labels, str(labels.dims[1])))


def cocluster(
    table: Any,
    *,
    n_row_clusters: int,
    n_column_clusters: int,
    n_clusterings: int = 10,
    n_rounds: int = 4,
    n_starts: int = 10,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Coclustering:
    """Cluster the rows and columns of a contingency table several times, in agreement with each other.

    Parameters
    ----------
    table : array_like, DataFrame, DataArray or SciPy sparse array of shape (n_rows, n_columns)
        Nonnegative counts or amounts, such as words in documents or species at sites.
    n_row_clusters, n_column_clusters : int
        Numbers of clusters, at most the numbers of rows and columns with a positive sum.
    n_clusterings : int
        Number m of clusterings of each side. One pair is information-theoretic co-clustering [2]_.
    n_rounds : int
        Largest number of rounds of agreement, which end when nothing changes; 0 keeps the separate pairs.
    n_starts : int
        Number of random starts of each pair of clusterings; the best is kept. A single start misses the largest mutual
        information in about half of small tables.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    Coclustering
        Partitions of the rows and of the columns.

    Raises
    ------
    ValueError
        If the table is not two-dimensional, an entry is negative, missing or infinite, or there are too many clusters.
    TypeError
        If the table has no numbers, or a number of clusters is not an integer.
    MemoryError
        If the table by clusters of the other side exceeds the memory budget.

    See Also
    --------
    agreement_path : the same idea for chains of a posterior.
    averaged_jaccard : how much clusterings agree.

    Notes
    -----
    Let p be the table divided by its sum, and p_kl its sum over cluster k of the rows and cluster l of the columns. The
    mutual information of a row clustering x and a column clustering y is

        I(x; y) = sum_kl p_kl log2(p_kl / (p_k p_l)).

    First, each of m pairs (x_j, y_j) is optimized separately from random clusters. Then the clustering agreement
    process [1]_ raises the sum of I(x_i; y_j) over all m^2 pairs. With the column clusterings fixed, rows move one by
    one to the cluster that raises the sum most; then the columns move. The sum never falls, and no cluster becomes
    empty. Three times a round, a cluster is also dissolved and another one split, followed by single moves. The result
    is kept if the objective is higher.

    Rows and columns of zeros carry no information. They join the row, or column, with the smallest positive sum. A pass
    over the rows takes about n_rows x n_row_clusters x n_column_clusters x n_clusterings^2 logarithms, fewer for a
    sparse table.

    References
    ----------
    .. [1] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.
    .. [2] Dhillon, Mallela and Modha (2003), Information-theoretic co-clustering, KDD 2003, 89-98.
       https://doi.org/10.1145/956750.956764

    Examples
    --------
    >>> import numpy as np, posterior_consensus as pc
    >>> table = np.kron([[5, 0, 1], [0, 4, 4]], np.ones((3, 2), int))
    >>> result = pc.agreement.cocluster(table, n_row_clusters=2, n_column_clusters=3, n_clusterings=2, random_seed=1)
    >>> result.row_labels.values
    array([[0, 0, 0, 1, 1, 1],
           [0, 0, 0, 1, 1, 1]], dtype=int32)
    >>> round(float(result.trace["mutual_information"][-1]), 4), round(result.table_information, 4)
    (0.7274, 0.7274)
    """
    given = as_table(table)
    check_count("n_clusterings", n_clusterings)
    check_count("n_starts", n_starts)
    if n_rounds != 0:
        check_count("n_rounds", n_rounds)
    for name, number, full in (
        ("n_row_clusters", n_row_clusters, given.full_rows.size),
        ("n_column_clusters", n_column_clusters, given.full_columns.size),
    ):
        if check_count(name, number) > full:
            raise ValueError(f"`{name}` must be at most {full}, the number with a positive sum; got {number}.")
    shares = given.shares
    seeds = as_generator(random_seed).spawn(n_clusterings + 1)
    with Executor(-1, None) as executor:
        rows = _Side(shares, n_row_clusters, n_column_clusters, n_clusterings, executor.stop)
        columns = _Side(sparse.csr_array(shares.T), n_column_clusters, n_row_clusters, n_clusterings, executor.stop)
        with waiting("Pairs of clusterings", progressbar=progressbar):
            labels = _first_clusterings(rows, columns, n_starts, seeds[:-1], executor)
        trace = [_trace_row(given, rows, labels)]
        for _ in track(range(n_rounds), "Agreement of clusterings", progressbar=progressbar):
            if executor.stopped:
                break
            before = [one.copy() for one in labels]
            for side, own, others in ((rows, labels[0], labels[1]), (columns, labels[1], labels[0])):
                executor.results(side.agree, [(own, others, seeds[-1])])
            trace.append(_trace_row(given, rows, labels))
            if all(np.array_equal(one, other) for one, other in zip(before, labels, strict=True)):
                break
    if executor.stopped:
        warn(f"The search was interrupted after {len(trace) - 1} rounds.")
    of_rows, of_columns = _of_all_rows(given, labels)
    columns_of_trace = {
        name: ("round", np.array(one)) for name, one in zip(_TRACE, zip(*trace, strict=True), strict=True)
    }
    return Coclustering(
        row_labels=given.rows.array(of_rows, "row_labels", ("clustering", ...)),
        column_labels=given.columns.array(of_columns, "column_labels", ("clustering", ...)),
        trace=xr.Dataset(columns_of_trace, {"round": np.arange(len(trace))}),
        table_information=_information_in_bits(shares),
        stopped=executor.stopped,
    )


class _Side:
    """One side of a table, called rows, whose clusterings are optimized while the other side is fixed."""

    def __init__(
        self,
        shares: sparse.csr_array,
        n_clusters: int,
        n_others: int,
        n_clusterings: int,
        stop: npt.NDArray[np.uint8],
    ) -> None:
        self.shares, self.n_clusters, self._n_others, self._stop = shares, n_clusters, n_others, stop
        self.n_items = shares.shape[0]
        self._marginals = np.asarray(shares.sum(axis=1), np.float64)
        memory.check(
            8 * self.n_items * n_others * n_clusterings,
            f"A table of {self.n_items} items by {n_others * n_clusterings} clusters of the other side",
            "Take fewer clusterings.",
        )
        width = n_others * n_clusterings
        is_large = n_clusterings * n_clusters * self.n_items * width > _MOST_WORK
        self._n_passes = 1 if is_large else _PASSES

    def random(self, rng: np.random.Generator) -> Integers:
        """Random clustering (1, n) with clusters of nearly equal size."""
        return rng.permutation(np.arange(self.n_items) % self.n_clusters)[np.newaxis]

    def profiles(self, others: Integers) -> Floats:
        """Sums of each item over the clusters of each clustering of the other side, side by side."""
        return mutual_information.profiles_of(self.shares, others, self._n_others)

    def climb(self, labels: Integers, profiles: Floats, orders: Integers, n_passes: int) -> Floats:
        """Move items while that raises the objective; changes `labels`, returns objectives up to a constant."""
        n_maps = profiles.shape[1] / self._n_others
        given = profiles, self._marginals, n_maps, self.n_clusters, orders, n_passes, labels, self._stop
        return mutual_information.climb(*given)

    def agree(self, labels: Integers, others: Integers, rng: np.random.Generator) -> None:
        """Improve all clusterings (m, n), given all clusterings of the other side; changes `labels`."""
        profiles = self.profiles(others)
        values = self.climb(labels, profiles, self._orders(rng, len(labels)), self._n_passes)
        for _ in range(_REARRANGED if 1 < self.n_clusters < self.n_items else 0):
            tried = np.stack([self._rearranged(one, rng) for one in labels])
            climbed = self.climb(tried, profiles, self._orders(rng, len(labels)), self._n_passes)
            better = climbed > values
            labels[better], values[better] = tried[better], climbed[better]

    def _orders(self, rng: np.random.Generator, number: int) -> Integers:
        return np.stack([rng.permutation(self.n_items) for _ in range(number)])

    def _rearranged(self, labels: Integers, rng: np.random.Generator) -> Integers:
        """Dissolve one cluster into random others, and give its number to half of another cluster."""
        labels, sizes = labels.copy(), np.bincount(labels, minlength=self.n_clusters)
        split = int(rng.choice(np.flatnonzero(sizes > 1)))
        gone = int(rng.choice(np.delete(np.arange(self.n_clusters), split)))
        members, dissolved = np.flatnonzero(labels == split), np.flatnonzero(labels == gone)
        labels[dissolved] = rng.choice(np.delete(np.arange(self.n_clusters), gone), dissolved.size)
        labels[rng.permutation(members)[: members.size // 2]] = gone
        return labels


def _first_clusterings(
    rows: _Side, columns: _Side, n_starts: int, seeds: list[np.random.Generator], executor: Executor
) -> list[Integers]:
    """Clusterings of the rows (m, n) and columns, each pair optimized separately, the best of `n_starts` starts."""

    def start(rng: np.random.Generator) -> tuple[Integers, Integers]:
        of_rows, of_columns = rows.random(rng), columns.random(rng)
        for _ in range(_ALTERNATIONS):
            before = of_rows.copy(), of_columns.copy()
            for side, own, others in ((rows, of_rows, of_columns), (columns, of_columns, of_rows)):
                side.climb(own, side.profiles(others), rng.permutation(side.n_items)[np.newaxis], 1)
            unchanged = np.array_equal(before[0], of_rows) and np.array_equal(before[1], of_columns)
            if unchanged or executor.stop[0]:
                break
        return of_rows, of_columns

    def pair(rng: np.random.Generator) -> tuple[Integers, Integers]:
        tried = [start(rng)]
        while len(tried) < n_starts and not executor.stop[0]:
            tried.append(start(rng))
        return max(tried, key=lambda labels: _mutual_information(rows, labels))

    pairs = executor.results(pair, [(rng,) for rng in seeds])
    return [np.concatenate(one) for one in zip(*pairs, strict=True)]


def _of_all_rows(given: Table, labels: list[Integers]) -> list[npt.NDArray[np.int32]]:
    """Canonical clusterings of all rows and all columns, including rows and columns of zeros."""
    sums = (given.shares.sum(axis=1), given.shares.sum(axis=0))
    sides = ((given.full_rows, given.rows), (given.full_columns, given.columns))
    whole = []
    for (full, items), of_full, sum_of in zip(sides, labels, sums, strict=True):
        like = np.full(items.n_items, int(np.argmin(sum_of)))
        like[full] = np.arange(full.size)
        n_codes = int(of_full.max()) + 1
        whole.append(canonical_rows(of_full[:, like].astype(smallest_dtype(n_codes)), n_codes)[0].astype(np.int32))
    return whole


def _trace_row(given: Table, rows: _Side, labels: list[Integers]) -> tuple[float, float, float]:
    """Mean mutual information of a row and a column clustering, and the averaged Jaccard index of each side."""
    of_rows, of_columns = (1.0 - mean_between(one, jaccard()) for one in _of_all_rows(given, labels))
    return _mutual_information(rows, labels), of_rows, of_columns


def _mutual_information(rows: _Side, labels: Sequence[Integers]) -> float:
    """Mean over all pairs of a row and a column clustering, in bits."""
    profiles = rows.profiles(labels[1])
    m, width = len(labels[0]), profiles.shape[1] // len(labels[1])
    total = 0.0
    for clustering in labels[0]:
        table = sparse.csr_array((np.ones(clustering.size), (clustering, np.arange(clustering.size)))) @ profiles
        total += sum(_information_in_bits(table[:, at : at + width]) for at in range(0, profiles.shape[1], width))
    return total / m**2


def _information_in_bits(shares: Any) -> float:
    """Mutual information, in bits, of the two sides of a table whose sum is 1."""
    cells = sparse.coo_array(shares)
    of_rows, of_columns = np.asarray(cells.sum(axis=1)), np.asarray(cells.sum(axis=0))
    row, column = cells.coords
    positive = cells.data > 0
    expected = of_rows[row[positive]] * of_columns[column[positive]]
    return float((cells.data[positive] * np.log2(cells.data[positive] / expected)).sum())
