"""Pairwise merges of a partition's clusters, each with the least expected loss."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.evaluate.expectation import ComparedLosses, compared_losses, mean_loss
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_source, partition_of

_DIMS = {"n_clusters": "merged_to"}  # names of dimensions in stored results
_NUMBERS = ("first", "second")
_AT_ONCE = 256  # partitions whose losses are computed together


@dataclass(frozen=True, eq=False, repr=False)
class ClusterMerges(Stored):
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

    _figure = "plot_dendrogram"

    partitions: xr.DataArray = field(metadata=stored_as.array("merged_labels", _DIMS, of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("merged_{}", (*_NUMBERS, *ComparedLosses._fields), _DIMS))
    loss: Loss = field(metadata=stored_as.loss("merged_"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("merged_names"))
    n_draws: int | None = field(metadata=stored_as.attribute("merged_draws"))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the merges.

        Returns
        -------
        pandas.DataFrame
            A row for the partition and for each merge.
        """
        return self.table.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        facts = [
            ("loss", display.name_and_unit(self.loss)),
            ("draws", display.number_of_draws(self.n_draws)),
            *display.about_errors(self.table["ess"]),
        ]
        count = display.counted(len(self.names), "cluster")
        return f"ClusterMerges: {count}, merged two by two", facts, self.to_dataframe()


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
        it is a result, else "vi".
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
    plot_dendrogram : the merges as a tree.
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
    partition = partition_of(draws, partition)
    record = as_loss(loss, partition)
    source = as_source(draws, {f"loss {record.name!r}": record.needs})
    labels = source.as_labels(partition)
    given = source.items.in_order(partition)
    partitions, merged = _merged(source, labels, record, progressbar)
    coords = {"n_clusters": np.arange(len(partitions), 0, -1)}
    columns = dict(zip(_NUMBERS, merged.T, strict=True)) | compared_losses(source, partitions, record, 0)._asdict()
    return ClusterMerges(
        partitions=source.items.partition_array(partitions, "n_clusters", "partitions").assign_coords(coords),
        table=xr.Dataset({name: ("n_clusters", column) for name, column in columns.items()}, coords),
        loss=record,
        names=cluster_names(partition, given),
        n_draws=source.n_draws,
    )


def _merged(
    source: PairSource, labels: Labels, loss: Loss, progressbar: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
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
