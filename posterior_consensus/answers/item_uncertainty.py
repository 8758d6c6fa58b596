"""Which items are ambiguous? Each item's mean similarity to the rest of its cluster, and to the nearest other one."""

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
from posterior_consensus.sources.door import as_source, partition_of


@dataclass(frozen=True, eq=False, repr=False)
class ItemUncertainty(Stored):
    """Each item's mean posterior similarity to its own and the nearest other cluster; made by :func:`item_uncertainty`.

    Attributes
    ----------
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the partition.
    similarity : xarray.DataArray of shape (n_items,), dtype float64
        Mean posterior similarity to the other members of its cluster: the mean of co-clustering probabilities of pairs,
        not the probability of an event. NaN for an item on its own.
    nearest : xarray.DataArray of shape (n_items,), dtype int32
        The other cluster to whose members the item has the largest mean similarity; -1 if there is no other.
    nearest_similarity : xarray.DataArray of shape (n_items,), dtype float64
        Mean posterior similarity to that cluster's members; NaN if there is no other cluster.
    names : tuple
        Names of the clusters, by number, as the partition has them.
    membership : xarray.DataArray of shape (n_items,), dtype float64, or None
        Posterior probability of its cluster, see :func:`membership`. None for a similarity matrix alone, and if there
        are many clusters: if the clusters of all draws times these are more than 67 million, or than the memory budget
        holds.
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
        """`similarity` less `nearest_similarity`: below 0 the item is nearer to `nearest`. NaN where either is."""
        return (self.similarity - self.nearest_similarity).rename("margin")

    @property
    def exemplars(self) -> npt.NDArray[np.intp]:
        """Position of each cluster's exemplar: its item of greatest `similarity`, the first one of equals."""
        items = np.arange(self.cluster.size)
        # Equal but for rounding; an item on its own is its cluster's exemplar.
        order = np.lexsort([items, -np.nan_to_num(self.similarity.values).round(12), self.cluster.values])
        first = np.unique(self.cluster.values[order], return_index=True)[1]
        return items[order][first]

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each item, in the order of the data, with the clusters' names."""
        columns = (self.cluster, self.similarity, self.nearest, self.nearest_similarity, self.margin, self.membership)
        named = {str(column.name): column for column in columns if column is not None}
        table = xr.Dataset(named).to_dataframe()[list(named)]
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
    """Compute the mean similarity of each item to the rest of its cluster, and to the nearest other cluster.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.

    Returns
    -------
    ItemUncertainty

    Raises
    ------
    ValueError
        If draws or partition are invalid.

    Notes
    -----
    The mean similarity of item i to cluster k is the mean of PSM_ij over the members j != i of k. From draws the
    cost is n_items x n_draws x clusters, without an n x n matrix. If a table of the draws' clusters by these would
    take more than the memory budget, the items that are with each item are gone through instead.

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
