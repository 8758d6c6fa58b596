"""Ambiguous items: the mean similarity of each item to the rest of its cluster and to the nearest other cluster."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.membership import own_membership
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.evaluate.similarity import own_and_nearest
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.sources.conversion import as_source, partition_of


@dataclass(frozen=True, eq=False, repr=False)
class ItemUncertainty(Stored):
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
        the memory budget.
    """

    _figure = "plot_item_uncertainty"

    cluster: xr.DataArray = field(metadata=stored_as.array("item_cluster", of_items=True))
    similarity: xr.DataArray = field(metadata=stored_as.array("item_similarity"))
    nearest: xr.DataArray = field(metadata=stored_as.array("item_nearest"))
    nearest_similarity: xr.DataArray = field(metadata=stored_as.array("item_nearest_similarity"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("item_cluster_names"))
    membership: xr.DataArray | None = field(default=None, metadata=stored_as.array("item_membership"))

    _also_stored: ClassVar = {"margin": stored_as.array("item_margin")}

    @property
    def margin(self) -> xr.DataArray:
        """`similarity` minus `nearest_similarity`, NaN if either is. Negative: the item is closer to `nearest`."""
        return (self.similarity - self.nearest_similarity).rename("margin")

    @property
    def exemplars(self) -> npt.NDArray[np.intp]:
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
        columns = (self.cluster, self.similarity, self.nearest, self.nearest_similarity, self.margin, self.membership)
        named = {str(column.name): column.values for column in columns if column is not None}
        table = pd.DataFrame(named, self.similarity.to_series().index)  # whose name may be that of a column
        if self.names != tuple(range(len(self.names))):
            table["cluster"] = [self.names[k] for k in self.cluster.values]
            table["nearest"] = [self.names[k] if k >= 0 else None for k in self.nearest.values]
        return table

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table = self.to_dataframe()
        own = table["similarity"]
        facts = [
            ("mean similarity", display.number(own.mean())),
            ("below 0.5", display.counted(int((own < 0.5).sum()), "item")),
            ("on their own", display.counted(int(own.isna().sum()), "item")),
        ]
        title = f"ItemUncertainty: {len(table)} items ({self.cluster.dims[0]}), smallest margin first"
        return title, facts, table.sort_values("margin", na_position="last", kind="stable")


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
    plot_item_uncertainty : The items as a figure.
    partial_partition : The largest set of items whose joint clustering is probable.

    Notes
    -----
    The mean similarity of item i to cluster k is the mean of PSM_ij over the members j != i of k. From draws, the cost
    is n_items x n_draws x clusters, without an n x n matrix. If the table of draws' clusters by the partition's
    clusters exceeds the memory budget, the co-members of each item are enumerated instead.

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
    source, partition = as_source(draws), partition_of(draws, partition)
    labels = source.as_labels(partition)
    given = source.items.in_order(partition)
    similarity, nearest, nearest_similarity = own_and_nearest(source, labels)
    own = own_membership(source, labels)
    return ItemUncertainty(
        cluster=source.items.array(labels, "cluster"),
        similarity=source.items.array(similarity, "similarity"),
        nearest=source.items.array(nearest, "nearest"),
        nearest_similarity=source.items.array(nearest_similarity, "nearest_similarity"),
        names=cluster_names(partition, given),
        membership=None if own is None else source.items.array(own, "membership"),
    )
