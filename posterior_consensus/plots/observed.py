"""Observed data and a partition of their items, brought to one order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import cluster_names, cluster_numbers, difference, labelled, positions
from posterior_consensus.ensemble.partitions import Labels, as_array, canonical_labels


class Observed(NamedTuple):
    """Data of shape (n_items, n_features), the features' names, the items' labels, and names and numbers of clusters.

    A number below 0 is that of unassigned items.
    """

    values: npt.NDArray[np.float64]
    features: list[str]
    labels: Labels
    names: list[str]
    numbers: npt.NDArray[np.int64]


def observed_table(data: Any, partition: Any) -> Observed:
    """Bring data of any kind into the partition's order of the items."""
    found = getattr(partition, "labels", partition)
    dim = str(found.dims[0]) if isinstance(found, xr.DataArray) and found.ndim else "item"
    array = _as_dataarray(data, dim)
    found = labelled(partition, dim)
    if isinstance(found, xr.DataArray) and dim in found.coords and dim in array.coords and len(found) == len(array):
        wanted, given = found.coords[dim].to_index(), array.coords[dim].to_index()
        order = positions(wanted, given)
        if order is None:
            why = difference(wanted, given)
            raise ValueError(f"`data` must be of the partition's items; the coordinates of {dim!r} differ: {why}.")
        array = array.isel({dim: order})
    labels = canonical_labels(found)
    if labels.size != len(array):
        raise ValueError(f"`partition` must label all {len(array)} items of the data; got {labels.size} labels.")
    if array.ndim == 1:
        array = array.expand_dims({"feature": [array.name or "value"]}, axis=1)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"`data` must be numbers; got dtype {array.dtype}.")
    feature = str(array.dims[1])
    names = array[feature].values if feature in array.coords else range(array.shape[1])
    values = array.values.astype(np.float64)
    numbers, clusters = cluster_numbers(partition, found), [str(name) for name in cluster_names(partition, found)]
    return Observed(values, [str(name) for name in names], labels, clusters, numbers)


def _as_dataarray(data: Any, dim: str) -> xr.DataArray:
    """The data with items first; those of a table without an index of its own are known by position."""
    if isinstance(data, xr.DataArray):
        array = data.transpose(dim, ...) if dim in data.dims else data
    elif isinstance(data, (pd.DataFrame, pd.Series)):
        coords: dict[str, Any] = {} if isinstance(data.index, pd.RangeIndex) else {dim: data.index.to_numpy()}
        if isinstance(data, pd.DataFrame):
            coords["feature"] = [str(name) for name in data.columns]
        name = data.name if isinstance(data, pd.Series) else None
        array = xr.DataArray(data.to_numpy(), coords, (dim, "feature")[: data.ndim], name)
    else:
        array = xr.DataArray(as_array(data, "`data`"))
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"`data` must be of shape (n_items,) or (n_items, n_features); got {array.shape}.")
    return array
