"""The items: their names, and what is known of them in the user's coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.partitions import Labels, canonical_labels
from posterior_consensus.sources.variables import aligned, labelled

Floats = npt.NDArray[np.float64]


class Items(ABC):
    """Items with the user's coordinates.

    Attributes
    ----------
    item_dim : str
        Name of the items' dimension.
    item_coords : xarray.Coordinates
        The items' coordinates as the user had them.
    """

    item_dim: str
    item_coords: xr.Coordinates

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items."""

    def item_array(self, values: npt.ArrayLike, name: str) -> xr.DataArray:
        """Dress one value per item, shape (n_items,), in the user's item coordinates."""
        return xr.DataArray(np.asarray(values), dims=(self.item_dim,), coords=self.item_coords, name=name)

    def pair_array(self, values: Floats, name: str) -> xr.DataArray:
        """Dress one value per pair, shape (n_items, n_items); the second dimension has ``_bis`` added to its name."""
        bis = f"{self.item_dim}_bis"
        coords: dict[Any, Any] = dict(self.item_coords)
        if self.item_dim in coords:
            coords[bis] = (bis, self.item_coords[self.item_dim].values)
        return xr.DataArray(values, dims=(self.item_dim, bis), coords=coords, name=name)

    def partition_array(self, labels: npt.NDArray[Any], dim: str, name: str) -> xr.DataArray:
        """Dress several label vectors, shape (n_partitions, n_items), with a first dimension `dim`."""
        return xr.DataArray(labels, dims=(dim, self.item_dim), coords=self.item_coords, name=name)

    def as_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Take the canonical labels (n_items,) of a result object, a DataArray or a label vector over these items."""
        values = labelled(partition, self.item_dim)
        if isinstance(values, xr.DataArray):
            values = aligned(values, self.item_dim, self.item_coords, name)
        labels = canonical_labels(values, name)
        if labels.size != self.n_items:
            raise ValueError(f"`{name}` must label all {self.n_items} items; got {labels.size} labels.")
        return labels
