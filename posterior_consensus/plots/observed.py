"""Observed data and a partition of their items, in the same order."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import (
    Items,
    cluster_names,
    cluster_numbers,
    is_named,
    labelled,
)
from posterior_consensus.ensemble.partitions import Labels, as_array, canonical_labels

_FEATURE = "_feature"  # no name of a user's dimension


class Observed(NamedTuple):
    """Data of shape (n_items, n_features), the features' names, the items' labels, and names and numbers of clusters.

    Unassigned items have a number below 0. `items` have the coordinates of the data and of the partition. Features of
    an array without names are not `named`; their names are positions.
    """

    values: npt.NDArray[np.float64]
    features: list[str]
    labels: Labels
    names: list[str]
    numbers: npt.NDArray[np.int64]
    items: Items
    named: bool


def observed_table(data: Any, partition: Any, name: str = "partition") -> Observed:
    """Reorder data of any kind to the partition's items."""
    own = getattr(partition, "labels", partition)
    dim = str(own.dims[0]) if isinstance(own, xr.DataArray) and own.ndim else _dim_of_items(data, own)
    array = _as_dataarray(data, dim)
    own = labelled(partition, dim)
    labels = canonical_labels(own)
    if labels.size != len(array):
        raise ValueError(f"`{name}` must label all {len(array)} items of the data; got {labels.size} labels.")
    if isinstance(own, xr.DataArray):
        given = Items.along(array, str(array.dims[0]))
        array = array[given.order_of(Items.along(own, dim), "data")]
    named = array.name is not None if array.ndim == 1 else str(array.dims[1]) in array.coords
    if array.ndim == 1:
        array = array.expand_dims({_FEATURE: [array.name or "value"]}, axis=1)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"`data` must be numbers; got dtype {array.dtype}.")
    feature = str(array.dims[1])
    features = array[feature].values if feature in array.coords else range(array.shape[1])
    values = array.values.astype(np.float64)
    numbers, clusters = cluster_numbers(partition, own), [str(one) for one in cluster_names(partition, own)]
    items = _items(dim, array, own)
    return Observed(values, [str(one) for one in features], labels, clusters, numbers, items, named)


def _dim_of_items(data: Any, labels: Any) -> str:
    """The items' dimension for labels without one: that of the data with the name of their index, or their number."""
    dims = [str(dim) for dim in data.dims] if isinstance(data, xr.DataArray) else []
    name = getattr(getattr(labels, "index", None), "name", None)
    fitting = [dim for dim in dims if data.sizes[dim] == np.size(labels)]
    return str(name) if name in dims else next(iter(fitting or dims), "item")


def _items(dim: str, array: xr.DataArray, labels: Any) -> Items:
    """The items with the data's coordinates, and those that only the partition has."""
    coords: dict[str, Any] = {}
    for one in (labels, array):
        along = one.coords.items() if isinstance(one, xr.DataArray) else ()
        coords |= {str(key): (dim, coord.values) for key, coord in along if coord.dims == (one.dims[0],)}
    return Items(len(array), dim, xr.Coordinates(coords, indexes={}))


def _as_dataarray(data: Any, dim: str) -> xr.DataArray:
    """The data with items first; items of a table without its own index are matched by position.

    Columns of dates are coordinates of the items.
    """
    if isinstance(data, xr.DataArray):
        array = data.transpose(dim, ...) if dim in data.dims else data
    elif isinstance(data, (pd.DataFrame, pd.Series)):
        coords: dict[str, Any] = {dim: (dim, data.index)} if is_named(data.index) else {}
        if data.index.name not in (None, dim):
            coords[str(data.index.name)] = (dim, data.index.to_numpy())
        if isinstance(data, pd.DataFrame):
            dates = data.select_dtypes(["datetime", "datetimetz"])
            coords |= {str(name): (dim, dates[name].to_numpy()) for name in dates}
            data = data.drop(columns=dates.columns)
            coords[_FEATURE] = [str(name) for name in data.columns]
        name = data.name if isinstance(data, pd.Series) else None
        array = xr.DataArray(data.to_numpy(), coords, (dim, _FEATURE)[: data.ndim], name)
    else:
        array = xr.DataArray(as_array(data, "`data`"))
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"`data` must be of shape (n_items,) or (n_items, n_features); got {array.shape}.")
    return array
