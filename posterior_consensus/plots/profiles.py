"""What the clusters look like in the observed data, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.partitions import Labels, as_array, canonical_labels
from posterior_consensus.plots.axes import INK, colours_of, extent, new_axes
from posterior_consensus.sources import labelled, positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

_FARTHEST = 2.0  # standard deviations at which colours end


def plot_cluster_profiles(data: Any, partition: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the observed data cluster by cluster: the values of one feature, or means and spreads of several.

    Parameters
    ----------
    data : array_like, Series, DataFrame or DataArray of shape (n_items,) or (n_items, n_features)
        Numbers, NaN where missing. A DataFrame has a row for each item; a DataArray may have the items second.
    partition : result object, DataArray or label vector of shape (n_items,)
        As a rule the consensus.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        With several features the colour bar is ``ax.images[0].colorbar``.

    Raises
    ------
    ValueError
        If the partition labels other items than the data have, or the data have another shape.
    TypeError
        If the data are not numbers.

    Notes
    -----
    One feature: a row for each cluster with a point for each item, and over them the quartiles and the median. Several:
    a cell for each cluster and feature, coloured by the cluster's mean in standard deviations of all items from their
    mean; the line across the cell is the standard deviation within the cluster, and as wide as the cell where it is
    that of all items or more: short lines are features in which the cluster is homogeneous. Colours end at 2.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_cluster_profiles([9.1, 9.3, 9.2, 19.5, 20.4], [0, 0, 0, 1, 1])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['0 (n = 3)', '1 (n = 2)']
    """
    values, features, labels = _table(data, partition)
    sizes = np.bincount(labels)
    several = values.shape[1] > 1
    width = min(3.0 + 0.45 * values.shape[1], 12.0) if several else 5.6
    ax = new_axes(ax, width, min(1.4 + 0.42 * sizes.size, 10.0))
    names = [f"{k} (n = {size})" for k, size in enumerate(sizes)]
    _name_rows(ax, names)
    if several:
        _draw_cells(ax, values, labels, features)
    else:
        _draw_points(ax, values[:, 0], labels, features[0])
    ax.set_ylabel("cluster")
    ax.tick_params(colors=INK)
    ax.tick_params(axis="y", length=0)
    return ax


def _table(data: Any, partition: Any) -> tuple[Floats, list[str], Labels]:
    """Data (n_items, n_features) in the partition's order, the features' names, and the labels."""
    found = getattr(partition, "labels", partition)
    dim = str(found.dims[0]) if isinstance(found, xr.DataArray) and found.ndim else "item"
    array = _as_dataarray(data, dim)
    found = labelled(partition, dim)
    if isinstance(found, xr.DataArray) and dim in found.coords and dim in array.coords and len(found) == len(array):
        order = positions(found.coords[dim].to_index(), array.coords[dim].to_index())
        if order is None:
            raise ValueError(f"`data` must be of the partition's items; the coordinates of {dim!r} differ.")
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
    return array.values.astype(np.float64), [str(name) for name in names], labels


def _as_dataarray(data: Any, dim: str) -> xr.DataArray:
    """The data with items first; those of a table without an index of its own are known by position."""
    if isinstance(data, xr.DataArray):
        array = data.transpose(dim, ...) if dim in data.dims else data
    elif isinstance(data, (pd.DataFrame, pd.Series)):
        coords: dict[str, Any] = {} if isinstance(data.index, pd.RangeIndex) else {dim: data.index.to_numpy()}
        if isinstance(data, pd.DataFrame):
            coords["feature"] = [str(name) for name in data.columns]
        array = xr.DataArray(
            data.to_numpy(),
            dims=(dim, "feature")[: data.ndim],
            coords=coords,
            name=data.name if isinstance(data, pd.Series) else None,
        )
    else:
        values = as_array(data, "`data`")
        if values.ndim not in (1, 2):
            raise ValueError(f"`data` must be of shape (n_items,) or (n_items, n_features); got {values.shape}.")
        array = xr.DataArray(values, dims=(dim, "feature")[: values.ndim])
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"`data` must be of shape (n_items,) or (n_items, n_features); got {array.shape}.")
    return array


def _draw_points(ax: Axes, values: Floats, labels: Labels, name: str) -> None:
    sizes = np.bincount(labels)
    for k, colour in enumerate(colours_of(np.arange(sizes.size))):
        own = np.sort(values[(labels == k) & np.isfinite(values)])
        if own.size == 0:
            continue
        # Multiples of the golden ratio spread neighbours evenly over the row, the same way every time.
        heights = k + 0.6 * ((np.arange(own.size) * 0.6180339887) % 1.0 - 0.5)
        ax.scatter(own, heights, s=12, color=colour, alpha=max(0.3, min(0.8, 100 / own.size)), linewidths=0)
        low, middle, high = np.quantile(own, [0.25, 0.5, 0.75])
        ax.plot([low, high], [k, k], color=INK, linewidth=1.5, solid_capstyle="butt")
        ax.plot(middle, k, "|", color=INK, markersize=11, markeredgewidth=2)
    ax.set(ylim=(sizes.size - 0.5, -0.5), xlabel=name)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_cells(ax: Axes, values: Floats, labels: Labels, features: list[str]) -> None:
    means, spreads = _standardised(values, labels)
    image = ax.imshow(
        np.ma.masked_invalid(means), cmap="RdBu_r", vmin=-_FARTHEST, vmax=_FARTHEST, aspect="auto", alpha=0.9
    )
    for (k, f), spread in np.ndenumerate(spreads):
        half = 0.5 * min(spread, 1.0)
        ax.plot([f - half, f + half], [k, k], color=INK, linewidth=1.5, solid_capstyle="butt")
    colour_bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend="both", extendfrac=0.03)
    colour_bar.set_label("standardised mean")
    colour_bar.outline.set_visible(False)
    ax.set_xticks(range(len(features)), features, rotation=90 if len(features) > 6 else 0)
    ax.tick_params(axis="x", length=0)
    ax.spines[:].set_visible(False)


def _standardised(values: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each cluster and feature (n_clusters, n_features), in units of all items'."""
    table = pd.DataFrame(values)
    scale = table.std(ddof=0).replace(0.0, np.nan)
    groups = ((table - table.mean()) / scale).groupby(labels)
    return groups.mean().to_numpy(), groups.std(ddof=0).to_numpy()


def _name_rows(ax: Axes, names: list[str]) -> None:
    font = min(9.0, extent(ax)[1] / len(names) / 1.1)
    step = int(np.ceil(5.0 / font))  # every name, or those that can be read
    ax.set_yticks(range(0, len(names), step), names[::step], fontsize=max(font, 5.0))
