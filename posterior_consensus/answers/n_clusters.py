"""The number of clusters: expected losses and probabilities of each number, and pairwise merges of clusters."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import (
    ComparedLosses,
    compared_losses,
    judged_labels,
    mean_loss,
)
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.ensemble.partitions import Labels, alone
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING, SAME
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.conversion import as_source, partition_of

_DIMS = {"n_clusters": "number_of_clusters"}  # names of dimensions in stored results
_COLUMNS = (*ComparedLosses._fields, "probability", "probability_mcse")
_LEAST_PROBABILITY = 0.01  # of a number of clusters that is searched by default
_BESIDE = 5  # numbers on either side of the best one, without draws
_PAIRS = 20  # most similar pairs of clusters whose unions are considered
_STARTS = 5  # best splits or unions of another partition from which a search starts
_CLEAR = 2.0  # standard errors within which two losses are not distinguished
_MERGED = {"n_clusters": "merged_to"}  # names of dimensions in stored results
_NUMBERS = ("first", "second")
_AT_ONCE = 256  # partitions whose losses are computed together


@dataclass(frozen=True, eq=False, repr=False)
class LossByNClusters(InWords):
    """Minimum expected loss found for each number of clusters; made by :func:`loss_by_n_clusters`.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (n_clusters, n_items), dtype int32
        The partition of minimum expected loss found with each number of clusters.
    table : xarray.Dataset
        Over ``n_clusters``. ``expected_loss`` has the standard error ``mcse``. ``difference`` is the expected loss
        minus the minimum over all numbers, over the same draws, with the error ``difference_mcse``. ``ess`` is the
        smaller effective sample size of the two. ``probability`` is the posterior probability of this number, with the
        error ``probability_mcse``. Errors, ``ess`` and probabilities are NaN for a similarity matrix alone; errors and
        ``ess`` also for a loss of PAIR_LOSSES.
    loss : PartitionLoss or PairLoss
        The loss.
    n_draws : int or None
        Number of draws; None for a similarity matrix alone.
    stopped : str
        "interrupted" if Ctrl-C ended the searches, else empty.
    missing : tuple of int
        Numbers of clusters that the table leaves out: they were not searched because of Ctrl-C, or the items that at
        most half of the runs call noise do not form so many.
    """

    _figure = "n_clusters.plot_loss_by_n_clusters"

    partitions: xr.DataArray = field(metadata=stored_as.array("labels_by_n_clusters", _DIMS, of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("{}_by_n_clusters", _COLUMNS, _DIMS))
    loss: Loss = field(metadata=stored_as.loss("by_n_clusters_"))
    n_draws: int | None = field(metadata=stored_as.attribute("by_n_clusters_draws"))
    stopped: str = field(default="", metadata=stored_as.attribute("by_n_clusters_stopped"))
    missing: tuple[int, ...] = field(default=(), metadata=stored_as.names("by_n_clusters_missing"))
    _of_runs: ClassVar = "by_n_clusters_independent"

    @property
    def best(self) -> int:
        """Number of clusters of minimum expected loss; the smallest one of ties."""
        return int(self.table["n_clusters"][self.table["difference"].values.argmin()])

    @property
    def within_error(self) -> list[int]:
        """Numbers of clusters whose difference to the minimum is at most twice its standard error, including `best`."""
        close = self.table["difference"] <= _CLEAR * self.table["difference_mcse"].fillna(0.0)
        return [int(k) for k in self.table["n_clusters"].values[close.values]]

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the numbers of clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each number of clusters.
        """
        return self.table.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        numbers, words = self.table["n_clusters"].values, self.words
        others = [str(k) for k in self.within_error if k != self.best]
        lines = [
            ("least", display.counted(self.best, "cluster")),
            (words.either("within Monte Carlo error", "within two SE"), ", ".join(others) or "none"),
            ("loss", display.name_and_unit(self.loss)),
            (words.draws, display.number_of_draws(self.n_draws, words)),
            *display.about_errors(self.table["ess"], words),
            *display.about_interrupt(self.stopped, self.missing, "numbers"),
            *[("not found", f"{display.listed(self.missing, 10)}, of the items outside the noise")]
            * bool(self.missing and not self.stopped),
            ("number of clusters", words.number),
        ]
        return f"LossByNClusters: {numbers[0]} to {numbers[-1]} clusters", lines, self.to_dataframe()


def loss_by_n_clusters(
    draws: Any,
    *,
    loss: str | Loss | None = None,
    n_clusters: Iterable[int] | None = None,
    n_starts: int | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> LossByNClusters:
    """Find the partition of minimum expected loss for each number of clusters, and compare their losses.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition. A similarity matrix alone (:func:`as_pair_similarity`) allows losses of pairs
        only.
    loss : str, PartitionLoss or PairLoss, optional
        A name in LOSSES or PAIR_LOSSES or a record such as ``binder(a=0.5)``; by default "vi", or
        "binder" if there are no draws.
    n_clusters : iterable of int, optional
        Numbers of clusters. The default range covers the number of the consensus partition and all numbers with a
        posterior probability of at least 1%, plus one on either side. For a similarity matrix alone, it is the number
        of the consensus partition plus five on either side.
    n_starts : int, optional
        Largest number of random starts of the search for each number, by default as for ``method="greedy"`` of
        :func:`consensus_partition`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    LossByNClusters
        The partition found for each number of clusters, with its expected loss.

    Raises
    ------
    ValueError
        If a number of clusters is not between 1 and the number of items, or the items outside the noise of runs form
        none of the numbers. If `n_clusters` is empty, or missing for the
        loss "within_variance". If the loss needs draws and a similarity matrix alone is given. If the draws are
        invalid, see :func:`as_partition_draws`.
    TypeError
        If `n_clusters` are not integers.

    See Also
    --------
    LossByNClusters.plot : the table as a figure.
    loss_path : partitions along the parameter of a loss.

    Notes
    -----
    For each number K, greedy search [1]_ looks for the partition S with K clusters that minimizes the mean of
    L(S, z_t) over the draws z_t. It starts from random orders of the items and from the best partition of any number.
    It then restarts from the partitions of the neighbouring numbers, with two clusters merged or one split, until none
    improves. The minimum is not proven. Losses of two numbers are compared over the same draws, so their difference
    typically has a far smaller error than either loss. The minimum is taken and estimated on the same draws.

    The number of clusters of minimum expected loss and the most probable number differ. Draws often have small clusters
    that no other draw has; a partition without them has fewer clusters than most draws. Neither need
    estimate a number of components, which depends on the prior: a Dirichlet process mixture with fixed concentration
    is inconsistent for it [2]_.

    References
    ----------
    .. [1] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779
    .. [2] Miller and Harrison (2014), Journal of Machine Learning Research 15, 3333-3370.
       https://jmlr.org/papers/v15/miller14a.html

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2]]
    >>> losses = pc.loss_by_n_clusters(draws, loss="binder", random_seed=1)
    >>> losses.to_dataframe()[["expected_loss", "difference", "probability"]]
                expected_loss  difference  probability
    n_clusters
    1                   0.500       0.375         0.00
    2                   0.125       0.000         0.75
    3                   0.125       0.000         0.25
    4                   0.250       0.125         0.00
    >>> losses.partitions.sel(n_clusters=3).values
    array([0, 0, 1, 2], dtype=int32)
    """
    asked = None if loss is None else as_loss(loss)
    source = as_source(draws).in_fixed_order()
    if asked is not None and asked.needs_draws:
        source.as_draws(f"loss {asked.name!r}", lacking=asked.is_linear and not asked.has_noise)
    record = as_loss(asked, default=source.usual_loss)
    source = source.all_pairs("A number of clusters", "consensus_partition chooses it by component.")
    rng = as_generator(random_seed)
    if n_clusters is None and record.falls_with_clusters:
        raise ValueError(f"loss {record.name!r} needs `n_clusters`: it falls with every further cluster.")
    requested = None if n_clusters is None else _checked_numbers(n_clusters, source.n_items)
    searches = _Searches(source, record, n_starts, rng)
    if not record.falls_with_clusters:
        searches.freely()
    requested = requested or default_numbers(source, *searches.best)
    searches.along(requested, progressbar)
    numbers = [k for k in requested if k in searches.best]
    partitions = np.stack([searches.best[k] for k in numbers])
    values = (*compared_losses(source, partitions, record), *_probabilities_of_numbers(source, numbers))
    columns = dict(zip(_COLUMNS, values, strict=True))
    coords = {"n_clusters": np.array(numbers, np.int64)}
    return LossByNClusters(
        partitions=source.items.array(alone(partitions), "partitions", ("n_clusters", ...), coords),
        table=xr.Dataset({name: ("n_clusters", column) for name, column in columns.items()}, coords),
        loss=record,
        n_draws=source.n_draws,
        stopped=searches.stopped,
        missing=tuple(k for k in requested if k not in searches.best),
        words=source.words,
    )


class _Searches:
    """The best partition so far for each number of clusters."""

    def __init__(self, source: PairSource, loss: Loss, n_starts: int | None, rng: np.random.Generator) -> None:
        self._source, self._loss, self._n_starts, self._rng = source, loss, n_starts, rng
        self.best: dict[int, Labels] = {}
        self._values: dict[int, float] = {}
        self.stopped = ""

    def freely(self) -> None:
        """Search without a fixed number of clusters."""
        try:
            self._greedy(None, [], self._n_starts)
        except KeyboardInterrupt:
            if not self.best:
                raise
            self.stopped = "interrupted"

    def along(self, numbers: list[int], progressbar: bool) -> None:
        """Search for each of the numbers until none improves, or until Ctrl-C after at least one partition."""
        try:
            if not self.stopped:
                self._along(numbers, progressbar)
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        if not self.best.keys() & set(numbers):
            if self.stopped:
                raise KeyboardInterrupt
            raise ValueError(
                "`n_clusters` must be numbers that the items outside the noise can form; got "
                f"{display.listed(numbers, 10)}, found {display.listed(sorted(self.best), 10)}."
            )

    def _along(self, numbers: list[int], progressbar: bool) -> None:
        """Search for each of the numbers, then from the partitions of the neighbouring numbers, until none improves."""
        free = list(self.best.values())
        for k in track(numbers, "Loss by number of clusters", progressbar=progressbar):
            below = [self.best[n] for n in numbers if n < k and n in self.best][-1:]
            starts = [start for labels in below for start in self._splits(labels)]
            self._greedy(k, [*starts, *free], self._n_starts)
        changed, order = set(numbers), numbers[::-1]
        while changed:
            better: set[int] = set()
            for neighbour, k in pairwise(order):
                if neighbour in changed | better and {neighbour, k} <= self.best.keys():
                    before = self._values[k]
                    near = self._unions if neighbour > k else self._splits
                    self._greedy(k, near(self.best[neighbour]), 1)
                    if self._values[k] < before:
                        better.add(k)
            changed, order = better, order[::-1]

    def _greedy(self, n_clusters: int | None, starts: list[Labels], n_starts: int | None) -> None:
        """Search, and keep the partition if it is the best of its number of clusters."""
        problem = Problem(self._source, self._loss, ClusterLimits(n_clusters=n_clusters))
        found = search(problem, self._rng, Effort(n_starts=n_starts, from_unconstrained=False), starts)
        labels = self._source.items.as_marked_labels(found.labels)
        k = int(labels.max()) + 1
        value = float(mean_loss(self._source, labels[np.newaxis], self._loss)[0])
        if k not in self.best or value < self._values[k] - SAME * max(1.0, abs(value)):
            self.best[k], self._values[k] = labels, value
        if found.info.stopped:
            raise KeyboardInterrupt

    def _splits(self, labels: Labels) -> list[Labels]:
        """The best few partitions with one cluster split in two, around two dissimilar items; none with noise."""
        if self._loss.has_noise:
            return []
        links, _ = self._source.links(labels)
        splits = []
        for k in np.flatnonzero(np.bincount(labels) > 1):
            members = np.flatnonzero(labels == k)
            near = self._source.row(members[links[members, k].argmin()])[members]
            far = self._source.row(members[near.argmin()])[members]
            split = labels.copy()
            split[members[far > near]] = labels.max() + 1
            splits.append(split)
        return self._best_of(splits)

    def _unions(self, labels: Labels) -> list[Labels]:
        """The best few partitions with two clusters merged, among the most similar pairs; none with noise."""
        if self._loss.has_noise:
            return []
        sizes = np.bincount(labels)
        links, _ = self._source.links(labels)
        sums = np.add.reduceat(links[labels.argsort(kind="stable")], np.cumsum(sizes) - sizes)
        between = sums / np.outer(sizes, sizes)
        first, second = np.triu_indices(sizes.size, 1)
        order = np.argsort(-between[first, second], kind="stable")[:_PAIRS]
        return self._best_of([np.where(labels == second[pair], first[pair], labels) for pair in order])

    def _best_of(self, partitions: list[Labels]) -> list[Labels]:
        if not partitions:
            return []
        rows = np.stack([self._source.as_labels(labels) for labels in partitions])
        return list(rows[mean_loss(self._source, rows, self._loss).argsort(kind="stable")[:_STARTS]])


def default_numbers(source: PairSource, best: int) -> list[int]:
    """Consecutive numbers of clusters that cover the probable numbers and the best partition's, plus one either way."""
    numbers = [best - _BESIDE + 1, best + _BESIDE - 1]
    if (draws := source.draws) is not None:
        shares = np.bincount(draws.n_clusters, draws.weights)
        numbers = [best, *np.flatnonzero(shares >= _LEAST_PROBABILITY).tolist()]
    return list(range(max(1, min(numbers) - 1), min(source.n_items, max(numbers) + 1) + 1))


def _checked_numbers(n_clusters: Any, n_items: int) -> list[int]:
    if isinstance(n_clusters, (str, bytes)) or not isinstance(n_clusters, Iterable):
        raise TypeError(f"`n_clusters` must be several integers, such as range(1, 10); got {n_clusters!r}.")
    numbers = sorted({check_count("n_clusters", k) for k in n_clusters})
    if not numbers:
        raise ValueError("`n_clusters` must hold at least one number; got none.")
    if numbers[-1] > n_items:
        raise ValueError(f"`n_clusters` must lie between 1 and the number of items, {n_items}; got {numbers[-1]}.")
    return numbers


def _probabilities_of_numbers(source: PairSource, numbers: list[int]) -> tuple[Floats, Floats]:
    draws = source.draws
    if draws is None:
        return np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    has = (draws.n_clusters == np.array(numbers)[:, np.newaxis]).astype(np.float64)
    return draws.samples.mean(has), draws.samples.probability_mcse(has, draws.n_clusters.astype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class ClusterMerges(InWords):
    """Pairwise merges of a partition's clusters; made by :func:`cluster_merges`.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (n_clusters, n_items), dtype int32
        The partition, and the partition after each merge: ``partitions.sel(n_clusters=3)`` has three clusters.
    table : xarray.Dataset
        Over ``n_clusters``, from K clusters to 1. ``first`` and ``second`` are the numbers of the two merged clusters,
        -1 for the partition itself. The clusters of the partition have the numbers 0 to K - 1; the union made by merge
        m has the number K - 1 + m. ``expected_loss`` has the standard error ``mcse``. ``difference`` is the expected
        loss minus the expected loss of the partition, over the same draws, with the error ``difference_mcse``. ``ess``
        is the smaller effective sample size of the two. Errors and ``ess`` are NaN for a similarity matrix alone and
        for a loss of PAIR_LOSSES.
    loss : PartitionLoss or PairLoss
        The loss.
    names : tuple
        Names of the clusters in the partition, by number.
    n_draws : int or None
        Number of draws; None for a similarity matrix alone.
    """

    _figure = "n_clusters.plot_dendrogram"

    partitions: xr.DataArray = field(metadata=stored_as.array("merged_labels", _MERGED, of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("merged_{}", (*_NUMBERS, *ComparedLosses._fields), _MERGED))
    loss: Loss = field(metadata=stored_as.loss("merged_"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("merged_names"))
    n_draws: int | None = field(metadata=stored_as.attribute("merged_draws"))
    _of_runs: ClassVar = "merged_independent"

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the merges.

        Returns
        -------
        pandas.DataFrame
            A row for the partition and for each merge.
        """
        return self.table.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        words = self.words
        lines = [
            ("loss", display.name_and_unit(self.loss)),
            (words.draws, display.number_of_draws(self.n_draws, words)),
            *display.about_errors(self.table["ess"], words),
        ]
        count = display.counted(len(self.names), "cluster")
        return f"ClusterMerges: {count}, merged two by two", lines, self.to_dataframe()


def cluster_merges(
    draws: Any, partition: Any = None, *, loss: str | Loss | None = None, progressbar: bool = True
) -> ClusterMerges:
    """Merge the clusters of a partition pairwise, at the least expected loss, to see which are nearly one.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition. A similarity matrix alone (:func:`as_pair_similarity`) allows losses of pairs
        only.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.
    loss : str, PartitionLoss or PairLoss, optional
        A name in LOSSES or PAIR_LOSSES or a record such as ``binder(a=0.5)``. By default the loss of the partition, if
        it is a result, else "vi", or "binder" if there are no draws.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    ClusterMerges
        The partition after each merge, with its expected loss.

    Raises
    ------
    ValueError
        If the loss needs draws and a similarity matrix alone is given, or draws or partition are invalid.

    See Also
    --------
    ClusterMerges.plot : the merges as a tree.
    loss_by_n_clusters : the minimum expected loss for each number of clusters, over all partitions.

    Notes
    -----
    This is agglomerative clustering of the clusters, with the expected loss in place of a linkage. Each step merges the
    two clusters whose union raises the expected loss least; ties go to the first pair. For a loss that is a sum over
    clusters, such as VI and Binder's, K clusters take fewer than K^2 evaluations. Other losses take up to K^3 / 6. The
    expected loss can fall from one merge to the next. The first merge never lowers it after greedy search, because
    greedy search tries all unions.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 2]]
    >>> merges = pc.cluster_merges(draws, [0, 0, 1, 1, 2], loss="binder")
    >>> merges.to_dataframe()[["first", "second", "expected_loss"]]
                first  second  expected_loss
    n_clusters
    3              -1      -1           0.12
    2               1       2           0.16
    1               0       3           0.56
    """
    partition, source = partition_of(draws, partition), as_source(draws).in_fixed_order()
    record = as_loss(loss, partition, default=source.usual_loss)
    labels = judged_labels(source, partition, record)
    n_clusters = int(labels.max()) + 1
    memory.check(4 * n_clusters * labels.size, f"{n_clusters} partitions of {labels.size} items, one for each merge,")
    given = np.asarray(source.items.reordered(partition))[labels >= 0]
    partitions, merged = _merged(source, labels, record, progressbar)
    coords = {"n_clusters": np.arange(len(partitions), 0, -1)}
    columns = dict(zip(_NUMBERS, merged.T, strict=True)) | compared_losses(source, partitions, record, 0)._asdict()
    return ClusterMerges(
        partitions=source.items.array(alone(partitions), "partitions", ("n_clusters", ...), coords),
        table=xr.Dataset({name: ("n_clusters", column) for name, column in columns.items()}, coords),
        loss=record,
        names=cluster_names(partition, given),
        n_draws=source.n_draws,
        words=source.words,
    )


def _merged(
    source: PairSource, labels: Labels, loss: Loss, progressbar: bool
) -> tuple[npt.NDArray[np.int32], Integers]:
    """Canonical labels (K, n) of the partition and after each merge, and the two merged clusters (K, 2)."""
    n_clusters = int(labels.max()) + 1
    nodes, partitions, merged = list(range(n_clusters)), [labels], [(-1, -1)]
    raises: dict[tuple[int, int], float] = {}
    for made in track(range(n_clusters, 2 * n_clusters - 1), "Merges", progressbar=progressbar):
        if not loss.is_linear:
            raises.clear()
        pairs = [(i, j) for j in range(len(nodes)) for i in range(j)]
        new = [(i, j) for i, j in pairs if (nodes[i], nodes[j]) not in raises]
        before = float(mean_loss(source, labels[np.newaxis], loss)[0])
        for some in (new[first : first + _AT_ONCE] for first in range(0, len(new), _AT_ONCE)):
            unions = np.stack([_union(labels, i, j) for i, j in some])
            costs = mean_loss(source, unions, loss) - before
            raises |= {(nodes[i], nodes[j]): cost for (i, j), cost in zip(some, costs.tolist(), strict=True)}
        least = min(raises[nodes[i], nodes[j]] for i, j in pairs)
        i, j = next((i, j) for i, j in pairs if raises[nodes[i], nodes[j]] <= least + ROUNDING)
        labels = _union(labels, i, j)
        merged.append((nodes[i], nodes[j]))
        partitions.append(labels)
        nodes[i] = made
        del nodes[j]
    return np.stack(partitions), np.array(merged, np.int64)


def _union(labels: Labels, i: int, j: int) -> Labels:
    """Canonical labels after cluster j, the larger number, is merged into cluster i."""
    return np.where(labels == j, i, labels - (labels > j)).astype(np.int32)
