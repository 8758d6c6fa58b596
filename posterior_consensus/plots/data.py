"""Observed data and a partition of their items in the same order, and the data by cluster."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.answers.membership import EVEN, ItemUncertainty
from posterior_consensus.answers.partial_partition import PartialPartition
from posterior_consensus.ensemble.items import Items, cluster_names, cluster_numbers, is_named, labelled, name_or
from posterior_consensus.ensemble.partitions import Labels, as_array, canonical_labels, of_result
from posterior_consensus.plots import colours, frame, grammar
from posterior_consensus.plots.frame import Axes, Line2D, Size
from posterior_consensus.plots.rows import numbers_along, plain
from posterior_consensus.results.display import counted, counted_items, unit_of
from posterior_consensus.runtime.aliases import Flags, Floats, Integers

_FEATURE = "_feature"  # no name of a user's dimension
_MOST_BINS = 60
_MOST_RIVALS = 8  # hollow points whose other cluster is named
_PALE = 0.5  # opacity of unassigned items
_SMALLEST, _LARGEST = 14.0, 44.0  # areas of points at similarities 0 and 1, in square points


class Observed(NamedTuple):
    """Data of shape (n_items, n_features), the features' names, the items' labels, and names and numbers of clusters.

    Unassigned items have a number below 0. `items` have the coordinates of the data and of the partition. Features of
    an array without names are not `named`; their names are positions. `unit` is that of all values, or empty.
    """

    values: Floats
    features: list[str]
    labels: Labels
    names: list[str]
    numbers: Integers
    items: Items
    named: bool
    unit: str

    @property
    def titles(self) -> list[str]:
        """Labels of axes for the features."""
        return [grammar.axis_label(f"feature {name}" if name.isdigit() else name, self.unit) for name in self.features]

    def title_of(self, name: str) -> str:
        """Label of an axis for a feature, or for a coordinate of the items."""
        if name in self.features:
            return self.titles[self.features.index(name)]
        return grammar.axis_label(name, unit_of(self.items.coords[name]))


def observed_table(data: Any, partition: Any, name: str = "partition") -> Observed:
    """Reorder data of any kind to the partition's items."""
    own = of_result(partition, "labels", partition)
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
        array = array.expand_dims({_FEATURE: [name_or(array.name, "value")]}, axis=1)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"`data` must be numbers; got dtype {array.dtype}.")
    feature = str(array.dims[1])
    features = array[feature].values if feature in array.coords else range(array.shape[1])
    values = array.values.astype(np.float64)
    numbers, clusters = cluster_numbers(partition, own), cluster_names(partition, own)
    if isinstance(own, xr.DataArray) and isinstance(of_result(partition, "noise"), xr.DataArray):
        labels, clusters, numbers, _ = Items.along(own, dim).clusters_of(partition)
    items = _items_of_data(dim, array, own)
    return Observed(
        values,
        [str(one) for one in features],
        labels,
        [str(one) for one in clusters],
        numbers,
        items,
        named,
        unit_of(array),
    )


def _dim_of_items(data: Any, labels: Any) -> str:
    """The items' dimension for labels without one: that of the data with the name of their index, or their number."""
    dims = [str(dim) for dim in data.dims] if isinstance(data, xr.DataArray) else []
    name = getattr(getattr(labels, "index", None), "name", None)
    fitting = [dim for dim in dims if data.sizes[dim] == np.size(labels)]
    return str(name) if name in dims else next(iter(fitting or dims), "item")


def _items_of_data(dim: str, array: xr.DataArray, labels: Any) -> Items:
    """The items with the data's coordinates, and those that only the partition has."""
    coords: dict[str, Any] = {}
    for one in (labels, array):
        along = one.coords.items() if isinstance(one, xr.DataArray) else ()
        coords |= {str(key): (dim, coord.values, coord.attrs) for key, coord in along if coord.dims == (one.dims[0],)}
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
        array = xr.DataArray(data.to_numpy(), coords, (dim, _FEATURE)[: data.ndim], name, data.attrs)
    else:
        array = xr.DataArray(as_array(data, "`data`"))
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"`data` must be of shape (n_items,) or (n_items, n_features); got {array.shape}.")
    return array


@frame.in_small_print
def plot_data(
    data: Any,
    partition: Any,
    *,
    items: ItemUncertainty | None = None,
    features: Sequence[Any] | None = None,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the observed data, coloured by cluster and sized by mean similarity to its own cluster.

    Parameters
    ----------
    data : array_like, Series, DataFrame or DataArray of shape (n_items,) or (n_items, n_features), or None
        Numbers, NaN if missing. A DataFrame has a row for each item; a DataArray may have the items second. Items are
        paired with those of `partition` by name (index or coordinate) if both have names. With None, plot a map of the
        items at two of their coordinates, named by `features`.
    partition : result object, DataArray or label vector of shape (n_items,)
        Partition that colours the items, typically the consensus. Unassigned items of a :class:`PartialPartition` are
        pale.
    items : ItemUncertainty, optional
        Result of :func:`item_uncertainty` for this partition. Points of items with a small mean similarity to the rest
        of their cluster are then small, and hollow below 1/2. Crosses are items that are alone in their cluster.
    features : sequence of one or two names, optional
        Features to plot: columns of the data, or coordinates of the items, such as time. By default all columns; if
        there are more than two, their first two principal components. For an array without names, `features` can name
        all of its columns instead.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If the partition labels other items than the data have, `items` is of another partition, the data have another
        shape or no item without a missing value, or `features` or `figsize` are invalid.
    TypeError
        If the data are not numbers, a coordinate is neither numbers nor dates, or `items` is not an ItemUncertainty.

    See Also
    --------
    plot_regimes : Plot values along a coordinate such as time, with the probabilities of the clusters.
    plot_items_map : Plot a map of the items by similarity.

    Notes
    -----
    One feature is a histogram stacked by cluster, with a point for each item below it, at a height that only separates
    points. Two features are a point for each item. Axes have the unit of the data or of a coordinate, if it has the
    attribute ``units``. More features are shown by the first two principal components of the
    standardized features, by scikit-learn; axes have their shares of the variance.

    Items with a missing value in a plotted feature are omitted; the title has their number. The legend names the
    largest clusters. Beyond twenty colours, patterns and other markers are added. Date columns of a DataFrame are
    coordinates. A map has equal scales on both axes. If the name of its second coordinate begins with "lat", a degree
    of longitude is shortened by the cosine of the mean latitude.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_data([[9.1, 2.0], [9.3, 2.2], [19.5, 7.1]], ["small", "small", "large"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['small (n = 2)', 'large (n = 1)']
    """
    table = _labelled_table(data, partition)
    if data is None:
        _check_places(features, table)
    similarity = np.ones(table.labels.size) if items is None else _similarity(items, table)
    values, titles, dated = _columns_shown(table, features)
    present: Flags = np.isfinite(values.sum(axis=1))
    if not present.any():
        raise ValueError("`data` must hold an item without a missing value; got none.")
    single = values.shape[1] == 1
    ax = frame.new_axes(ax, figsize, 7.0, 3.8 if single else 4.4)
    if values.shape[1] > 2:
        values, titles = _principal_components(values, present)
    numbers = np.append(table.numbers, -1)[table.labels]  # unassigned items have the label -1
    heights = _draw_histogram(ax, values[present, 0], numbers[present]) if single else values[present, 1]
    _draw_points(ax, values[present, 0], heights, numbers[present], similarity[present])
    ax.set_xlabel(titles[0], wrap=True)
    ax.set_ylabel("items" if single else titles[1], wrap=True)
    for axis, is_dated in zip((ax.xaxis, ax.yaxis), dated, strict=False):
        if is_dated:
            frame.tick_dates(axis)
    if data is None and not any(dated):
        latitude = float(np.mean(heights)) if titles[1].lower().startswith("lat") else 0.0
        ax.set_aspect(1 / np.cos(np.radians(latitude)), adjustable="datalim")
    if items is not None:
        _name_rivals(ax, np.column_stack([values[present, 0], heights]), similarity[present], items, table, present)
    grammar.say(ax, _clusters_in_words(table, similarity, present))
    grammar.add_legend(ax, _legend_entries(table, similarity[present], items is not None))
    return ax


def _clusters_in_words(table: Observed, similarity: Floats, present: Flags) -> str:
    """Number of clusters, and of items that are uncertain, unassigned or without a value, if there are any."""
    said = f"{counted_items(table.labels.size, table.items.dim)} in {counted(len(table.names), 'cluster')}"
    for number, what in (
        (np.sum(similarity < EVEN), f"of mean similarity below {EVEN:g} (hollow)"),
        (np.sum(table.labels < 0), "unassigned"),
        (np.sum(~present), "with missing values"),
    ):
        said += f", {number:,} {what}" if number else ""
    return said


def _labelled_table(data: Any, partition: Any) -> Observed:
    """The data with labels (-1 for unassigned items); zeros if there are no data."""
    is_partial = isinstance(partition, PartialPartition)
    labels = partition.labels + 1 if is_partial else partition
    table = observed_table(np.zeros(np.shape(of_result(labels, "labels", labels))) if data is None else data, labels)
    if not is_partial:
        return table
    own = np.array([int(name) for name in table.names])[table.labels] - 1
    numbers = np.unique(own[own >= 0])
    labels = np.where(own >= 0, np.searchsorted(numbers, own), -1)
    return table._replace(labels=labels, names=[str(partition.names[k]) for k in numbers], numbers=numbers)


def _check_places(features: Any, table: Observed) -> None:
    known = {str(name) for name in table.items.coords}
    if not (isinstance(features, (list, tuple)) and len(features) == 2 and known >= set(features)):
        raise ValueError(
            f"`features` must name two coordinates of the items if `data` is None; got {features!r}, "
            f"present: {', '.join(map(repr, sorted(known))) or 'none'}."
        )


def _similarity(items: Any, table: Observed) -> Floats:
    """Each item's mean similarity to the rest of its cluster, in the order of the data."""
    frame.check_result("items", items, ItemUncertainty, "item_uncertainty")
    cluster, similarity = (table.items.reordered(values, "items") for values in (items.cluster, items.similarity))
    if cluster.size != table.labels.size or np.any(canonical_labels(cluster) != table.labels):
        raise ValueError(
            "`items` must be of this partition; got other clusters. Call item_uncertainty(draws, partition)."
        )
    return np.asarray(similarity, dtype=np.float64)


def _columns_shown(table: Observed, features: Sequence[Any] | None) -> tuple[Floats, list[str], list[bool]]:
    """The columns to plot, their names, and whether they are dates."""
    if features is None:
        return table.values, table.titles, [False] * len(table.features)
    names = [str(name) for name in features] if isinstance(features, (list, tuple)) else []
    coords = [name for name in map(str, table.items.coords) if name not in table.features]
    if not table.named and len(names) == len(table.features) and not {*table.features, *coords} & set(names):
        return table.values, [grammar.axis_label(name, table.unit) for name in names], [False] * len(names)
    if len(names) not in (1, 2) or not set(names) <= {*table.features, *coords}:
        present = ", ".join(map(repr, [*table.features, *coords]))
        raise ValueError(f"`features` must be one or two names in a list; got {features!r}, present: {present}.")
    coordinates = {name: plain(table.items.coords[name].values) for name in coords}
    columns = [
        numbers_along(name, coordinates[name]) if name in coords else table.values[:, table.features.index(name)]
        for name in names
    ]
    dated = [name in coords and coordinates[name].dtype.kind == "M" for name in names]
    return np.column_stack(columns), [table.title_of(name) for name in names], dated


def _principal_components(values: Floats, present: Flags) -> tuple[Floats, list[str]]:
    """First two principal components of the items, NaN if values are missing, and the axes' titles."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    placed = np.full((present.size, 2), np.nan)
    standardized = StandardScaler().fit_transform(values[present])
    shares = np.zeros(2)
    placed[present] = 0.0
    if present.sum() > 1 and np.any(standardized):
        pca = PCA(2).fit(standardized)
        placed[present], shares = pca.transform(standardized), pca.explained_variance_ratio_
    return placed, [
        f"{rank} principal component: {share:.0%} of the variance"
        for rank, share in zip(("first", "second"), shares, strict=True)
    ]


def _draw_histogram(ax: Axes, values: Floats, labels: Labels) -> Floats:
    """Plot a histogram stacked by cluster, and return the heights of points below it."""
    n_bins = int(np.clip(3 * np.sqrt(values.size), 10, _MOST_BINS))
    edges = np.histogram_bin_edges(values, n_bins if np.ptp(values) > 0 else 1)
    floor = np.zeros(edges.size - 1)
    present = np.unique(labels)
    patterned = colours.is_patterned(frame.extent(ax)[1], present.size)
    for k in np.roll(present, -int(present[0] < 0)):  # unassigned items on top
        top = floor + np.histogram(values[labels == k], edges)[0]
        alpha = 0.7 if k >= 0 else _PALE
        ax.stairs(top, edges, baseline=floor, fill=True, alpha=alpha, **colours.patch_style(int(k), patterned))
        floor = top
    depth = 0.3 * floor.max()
    ax.axhline(0.0, color=colours.ink(), linewidth=0.8)
    ax.set_ylim(-1.1 * depth, 1.05 * floor.max())
    ticks = [tick for tick in ax.get_yticks() if 0 <= tick <= floor.max() and float(tick).is_integer()]
    ax.set_yticks(ticks)
    return -depth * (0.15 + 0.8 * frame.spread(np.argsort(np.argsort(values, kind="stable"))))


def _draw_points(ax: Axes, x: Floats, y: Floats, labels: Labels, similarity: Floats) -> None:
    alone = np.isnan(similarity)
    sure = np.nan_to_num(similarity, nan=1.0)
    area = _area(sure) * (0.4 if x.size > 500 else 1.0)
    hues = np.array(colours.colours_of(labels))
    patterns = colours.patterns_of(labels)
    is_open = labels < 0
    if is_open.any():
        ax.scatter(x[is_open], y[is_open], s=_SMALLEST, c=colours.OPEN, alpha=_PALE, linewidths=0.0)
    for pattern in np.unique(patterns):
        for full in (True, False):
            at = (patterns == pattern) & (full == (sure >= 0.5)) & ~alone & ~is_open
            face = hues[at] if full else "none"
            style = {"marker": colours.MARKERS[pattern], "edgecolors": hues[at], "facecolors": face}
            ax.scatter(x[at], y[at], s=area[at], alpha=0.8, linewidths=0.8, **style)
    if alone.any():
        ax.scatter(x[alone], y[alone], s=area[alone], c=hues[alone], marker="x", linewidths=1.4)


def _name_rivals(
    ax: Axes, places: Floats, similarity: Floats, items: ItemUncertainty, table: Observed, present: Flags
) -> None:
    """Name the nearest other cluster next to each hollow point, if these are few."""
    nearest = table.items.reordered(items.nearest, "items")[present]
    hollow = np.flatnonzero((similarity < EVEN) & (nearest >= 0))
    for k in hollow if hollow.size <= _MOST_RIVALS else ():
        style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
        ax.annotate(f"or cluster {items.names[nearest[k]]}", places[k], (5, 0), parse_math=False, **style)


def _area(similarity: Any) -> Any:
    return _SMALLEST + (_LARGEST - _SMALLEST) * similarity**2


def _legend_entries(table: Observed, similarity: Floats, with_items: bool) -> list[Line2D]:
    """Legend entries of the largest clusters, and of items that are not in any or alone."""
    entries = grammar.cluster_entries(table.labels, table.names, table.numbers)
    if np.any(table.labels < 0):
        entries.append(
            grammar.point(f"unassigned (n = {np.sum(table.labels < 0)})", "o", colours.OPEN, alpha=_PALE, markersize=4)
        )
    if with_items and np.isnan(similarity).any():
        entries.append(grammar.point("on its own", "x", colours.NEUTRAL))
    return entries
