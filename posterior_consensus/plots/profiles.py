"""Profiles of clusters: the data by cluster, and the parameters of each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from posterior_consensus.answers.cluster_stability import FOUND, ClusterStability
from posterior_consensus.answers.cluster_summary import ClusterSummary
from posterior_consensus.answers.contrast import Contrast
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import (
    DIFFERENCES,
    NEUTRAL,
    as_cmap,
    check_matplotlib,
    colours_of,
    ink,
    ink_on,
    is_patterned,
    on_page,
    patch_style,
)
from posterior_consensus.plots.data import observed_table
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.results.display import counted, listed, percent
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import listing
from posterior_consensus.runtime.tolerances import ROUNDING

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

_FARTHEST = 2.0  # standard deviations at which colours end
_THICK, _PALE = 0.5, 0.6  # of bars: share of a row, and opacity
_FEWEST = 5  # items whose median and quartiles are shown
_ABOVE, _BELOW = 0.22, 0.38  # of a row: from its middle to the marks on the bar, and below it


@frame.in_small_print
def plot_cluster_profiles(
    data: Any,
    partition: Any,
    *,
    cmap: Any = DIFFERENCES,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the observed data by cluster: the values of one feature, or means and spreads of several.

    Parameters
    ----------
    data : array_like, Series, DataFrame or DataArray of shape (n_items,) or (n_items, n_features)
        Numbers, NaN where missing. A DataFrame has a row for each item; a DataArray may have the items second. Items
        are paired with those of `partition` by name (index or coordinate) if both have names.
    partition : result object, DataArray or label vector of shape (n_items,)
        Partition of the items, typically the consensus.
    cmap : str or matplotlib.colors.Colormap
        Colours of the means of several features, from two standard deviations below the mean to two above.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        With several features the colour bar is ``ax.images[0].colorbar``.

    Raises
    ------
    ValueError
        If the partition labels other items than the data have, the data have another shape, or `cmap` or `figsize` are
        invalid.
    TypeError
        If the data are not numbers.

    See Also
    --------
    plot_data : Plot the observed data as points.

    Notes
    -----
    With one feature, each cluster has a row with a point for each item and, from 5 items, the median and the quartiles.
    With several, each cluster and feature has a cell, coloured by the cluster's mean in standard deviations of all
    items from their mean; colours end at 2. The line across the cell is the standard deviation within the cluster. It
    is as wide as the cell if it is at least the standard deviation of all items, so short lines are homogeneous
    features. Long names lose their middle.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_cluster_profiles([9.1, 9.3, 9.2, 19.5, 20.4], [0, 0, 0, 1, 1])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['0 (n = 3)', '1 (n = 2)']
    """
    table = observed_table(data, partition)
    sizes = np.bincount(table.labels)
    several = table.values.shape[1] > 1
    width = min(3.0 + 0.45 * table.values.shape[1], 12.0) if several else 5.6
    features = frame.short_names(table.features, frame.LONGEST)
    upright = frame.CHARACTER * max(len(name) for name in features) / 72 if several else 0.0  # inches for names
    ax = frame.new_axes(ax, figsize, width, min(1.4 + 0.42 * sizes.size, 10.0) + upright)
    names = frame.short_names(table.names, frame.LONGEST)
    _set_names(ax, "y", [f"{name} (n = {size})" for name, size in zip(names, sizes, strict=True)])
    if several:
        _draw_cells(ax, table.values, table.labels, as_cmap(cmap))
        _set_names(ax, "x", features)
        ax.set_xlabel("line: standard deviation within the cluster;\ncell width: standard deviation of all items")
    else:
        _draw_by_cluster(ax, table.values[:, 0], table.labels, table.numbers)
        ax.set_xlabel(f"{table.titles[0]}\nupright: median; across: quartiles (from n = {_FEWEST})")
    grammar.say(ax, _explained_in_words(table.values, table.labels, features))
    ax.set_ylabel("cluster")
    ax.tick_params(axis="y", length=0)
    return ax


def _explained_in_words(values: Floats, labels: Labels, features: list[str]) -> str:
    """The share of a feature's variance that is between clusters: the largest and, of several, the smallest."""
    table = pd.DataFrame(values)
    within = (table - table.groupby(labels).transform("mean")).pow(2).sum().to_numpy()
    total = (table - table.mean()).pow(2).sum().to_numpy()
    shares = 1.0 - np.divide(within, total, out=np.full(total.size, np.nan), where=total > 0)
    if np.isnan(shares).all():
        return "no feature varies between the items"
    most, least = int(np.nanargmax(shares)), int(np.nanargmin(shares))
    shown = [percent(float(shares[k].clip(0.0, 1.0))) for k in (most, least)]
    names = [f"feature {features[k]}" if features[k].isdigit() else features[k] for k in (most, least)]
    said = f"{shown[0]} of the variance of {names[0]} is between clusters"
    return said if most == least else f"{said}, {shown[1]} of {names[1]}"


def _draw_by_cluster(ax: Axes, values: Floats, labels: Labels, numbers: Integers) -> None:
    table = pd.DataFrame({"value": values, "cluster": labels})[np.isfinite(values)]
    table = table.sort_values(["cluster", "value"], kind="stable")
    groups = table.groupby("cluster")["value"]
    cluster = table["cluster"].to_numpy()
    heights = cluster + 0.6 * (frame.spread(groups.cumcount().to_numpy()) - 0.5)
    alpha = np.clip(100 / groups.transform("size").to_numpy(), 0.3, 0.8)
    frame.scatter_clusters(
        ax, table["value"].to_numpy(), heights, numbers[cluster], s=14, alpha=alpha, edgecolors=ink(), linewidths=0.4
    )
    quartiles = groups.quantile(np.array([0.25, 0.5, 0.75])).unstack()
    quartiles = quartiles[groups.size() >= _FEWEST]
    rows, middle = quartiles.index.to_numpy(), quartiles[0.5]
    half = min(0.4, 8.0 * (labels.max() + 1) / frame.extent(ax)[1])
    ax.hlines(rows, quartiles[0.25], quartiles[0.75], colors=ink(), linewidths=1.2, zorder=3)
    ax.vlines(middle, rows - half, rows + half, colors=ink(), linewidths=1.2, zorder=3)
    ax.set_ylim(int(labels.max()) + 0.5, -0.5)
    ax.spines["left"].set_visible(False)


def _draw_cells(ax: Axes, values: Floats, labels: Labels, cmap: Colormap) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    means, spreads = _standardized(values, labels)
    image = ax.imshow(
        np.ma.masked_invalid(means), cmap=cmap, norm=Normalize(-_FARTHEST, _FARTHEST), aspect="auto", alpha=0.9
    )
    rows, columns = np.nonzero(np.isfinite(spreads))
    halves = 0.5 * np.minimum(spreads[rows, columns], 1.0)
    ends = np.array([[columns - halves, rows], [columns + halves, rows]]).transpose(2, 0, 1)
    inks = ink_on(cmap(image.norm(means[rows, columns])))
    ax.add_collection(LineCollection(list(ends), colors=list(inks), linewidths=1.5, capstyle="butt"))
    grammar.add_colour_bar(ax, image, "standardized mean", extend="both", extendfrac=0.03)
    ax.tick_params(axis="x", length=0)
    ax.spines[:].set_visible(False)


def _standardized(values: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Mean and standard deviation (n_clusters, n_features), in standard deviations of all items."""
    table = pd.DataFrame(values)
    scale = table.std(ddof=0).replace(0.0, np.nan)
    groups = ((table - table.mean()) / scale).groupby(labels)
    return groups.mean().to_numpy(), groups.std(ddof=0).to_numpy()


def _set_names(ax: Axes, side: str, names: list[str]) -> None:
    """Name all rows or columns, or as many as are readable."""
    room = frame.length_of(ax, side) / len(names)  # points per name
    largest = frame.font_of_names()
    font = min(largest, room / 1.1)
    step = int(np.ceil(5.0 / font))
    upright = side == "x" and frame.CHARACTER * max(len(name) for name in names) > room
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(range(0, len(names), step), names[::step], parse_math=False)
    axis.set_tick_params(
        labelsize=max(font, 5.0) if upright or side == "y" else largest, labelrotation=90 if upright else 0
    )


@frame.in_small_print
def plot_cluster_summary(
    clusters: ClusterSummary, parameter: str | None = None, *, figsize: Size = None, ax: Any = None
) -> Axes:
    """Plot a parameter of each cluster, with its 50% and 90% credible intervals.

    Parameters
    ----------
    parameter : str, optional
        Name of the parameter, such as "mu" or "mu[petal length]". By default the first.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `ax` is not an Axes.
    ValueError
        If there is no parameter of this name, or none at all, or `figsize` is invalid.

    See Also
    --------
    cluster_summary : Compute the summary.

    Notes
    -----
    Strokes are means over the draws in which all clusters occur; intervals are between quantiles of these draws. Labels
    on the left have each cluster's number n of assigned items, and the share of all draws, by weight, in which they are
    co-clustered, whatever the other clusters are. If the parameter is a DataArray with the attribute ``units``, the
    axis has the unit.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> labels, mu = [[0, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 1]], [[1.0, 8.0], [8.2, 1.2], [1.4, 8.1]]
    >>> ax = pc.cluster_summary(labels, [0, 0, 1, -1], mu=mu).plot()
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0 (n = 2, 100%)', '1 (n = 1, 100%)']
    """
    if clusters.parameters is None:
        raise ValueError("`clusters` must have parameters; give them, as in cluster_summary(draws, partition, mu=mu).")
    names = clusters.parameters["parameter"].values.tolist()
    if parameter is not None and parameter not in names:
        raise ValueError(f"`parameter` must be one of {listing(names)}; got {parameter!r}.")
    own = clusters.parameters.sel(parameter=names[0] if parameter is None else parameter)
    n = clusters.n_clusters
    ax = frame.new_axes(ax, figsize, 5.6, float(np.clip(1.2 + 0.26 * n, 2.2, 9.0)))
    rows = np.arange(n)
    colours = colours_of(clusters.numbers)
    low, lower, _, upper, high = own["quantiles"].transpose("quantile", "cluster").values
    room = frame.extent(ax)[1] / n  # points per cluster
    ax.hlines(rows, low, high, colors=colours, linewidth=min(1.2, room / 3))
    ax.hlines(rows, lower, upper, colors=colours, linewidth=min(5.0, room / 2))
    half = min(6.0, room / 2.5) / room  # a stroke, which hides no interval
    ax.vlines(own["mean"].values, rows - half, rows + half, colors=ink(), linewidths=1.5, zorder=2.5)
    sizes, names = clusters.sizes, clusters.clusters["cluster"].values
    shares, words = clusters.clusters["probability"].values, clusters.words
    shown = zip(frame.short_names(names, frame.LONGEST), sizes, shares.tolist(), strict=True)
    _set_names(ax, "y", [f"{name} (n = {size:,}, {percent(share)})" for name, size, share in shown])
    unit = str(own["unit"].values) if "unit" in own.coords else ""
    ax.set(ylim=(n - 0.5, -0.5), xlabel=grammar.axis_label(str(own["parameter"].values), unit))
    ax.set_ylabel(f"cluster (n, % of {words.draws} with the cluster)")
    what = words.either("credible intervals", "of the runs")
    with_all = f"over {counted(clusters.n_draws, words.draw)} with all these clusters"
    ax.set_xlabel(f"{ax.get_xlabel()}\nmean (stroke), 50% (thick) and 90% {what}\n{with_all}")
    means = own["mean"].values
    if np.isfinite(means).any():
        ends = [
            f"{grammar.in_digits(means[k], 3)} (cluster {names[k]})" for k in (np.nanargmin(means), np.nanargmax(means))
        ]
        grammar.say(ax, f"mean {own['parameter'].values} is {' to '.join(ends[: min(n, 2)])}")
    return ax


@frame.in_small_print
def plot_cluster_stability(stability: ClusterStability, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the share of the draws in which each cluster exists, and in which it is one with another cluster.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `ax` is not an Axes.
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    cluster_stability : Compute the shares.

    Notes
    -----
    The bar, in the cluster's colour, is the share of the draws that have the cluster, with a line of two standard
    errors to each side, cut at 0 and 1. They are above 0 for a share of 1: two draws with the cluster and two without
    are added. The point is the share of the draws in which it is one with the other cluster with which it is one most
    often, in the colour of that cluster. Below the bar, the diamond is the mean Jaccard similarity to the most similar
    cluster of a draw, and the tick that by chance, if the items of the draws are permuted. Beyond twenty colours,
    bars have patterns and points other shapes.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 2, 2]] * 3 + [[0, 0, 0, 1, 1, 1, 1]]
    >>> ax = pc.cluster_stability(draws, draws[0]).plot()
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0 (n = 3)', '1 (n = 2)', '2 (n = 2)']
    """
    check_matplotlib()
    from matplotlib.patches import Patch

    table, words, n = stability.table, stability.words, len(stability.names)
    ax = frame.new_axes(ax, figsize, 5.6, float(np.clip(1.6 + 0.36 * n, 2.4, 9.0)))
    found, error, jaccard, chance, joined, partner, numbers = (
        table[name].values for name in ("found", "found_mcse", "jaccard", "chance", "joined", "joined_with", "number")
    )
    room, rows = frame.extent(ax)[1] / max(n, 1), np.arange(n)  # points per cluster
    for row, share, number in zip(rows, found, numbers.tolist(), strict=True):
        style = {"alpha": on_page(_PALE), **patch_style(number, is_patterned(_THICK * room * n, max(n, 1)))}
        ax.barh(row, share, _THICK, **style)
    ends = np.clip([found - grammar.ERRORS * error, found + grammar.ERRORS * error], 0.0, 1.0)
    size, bars = min(5.0, room), np.stack([found - ends[0], ends[1] - found])
    thick = min(1.2, room / 3)
    ax.errorbar(found, rows, xerr=bars, fmt="none", ecolor=ink(), elinewidth=thick, capsize=0.4 * size)
    below = rows + _BELOW  # in a row of their own, as they are no shares
    ax.plot(jaccard, below, "D", color=ink(), markersize=0.7 * size, markerfacecolor="none", clip_on=False)
    ax.plot(chance, below, "|", color=ink(), markersize=min(6.0, 0.3 * room), markeredgewidth=1.5)
    has_partner = np.flatnonzero(partner >= 0)
    points = {"s": size**2, "edgecolors": ink(), "linewidths": 0.6, "zorder": 2.5, "clip_on": False}
    at = has_partner - _ABOVE  # off the lines of errors
    frame.scatter_clusters(ax, joined[has_partner], at, numbers[partner[has_partner]], **points)
    names = frame.short_names([str(name) for name in stability.names], frame.LONGEST)
    if n:
        sizes = table["size"].values.tolist()
        _set_names(ax, "y", [f"{name} (n = {size:,})" for name, size in zip(names, sizes, strict=True)])
    ax.set(xlim=(0, 1.02), ylim=(n - 0.5, -0.5), ylabel="cluster")
    label = f"bars, points: share of the {counted(stability.n_draws, words.draw)};\nbelow the bars: Jaccard similarity"
    not_sure = " of the share"
    if (found >= 1 - ROUNDING).any():
        not_sure += f"; not 0 at 100%,\nas further {words.draws} may lack the cluster"
    ax.set_xlabel(grammar.with_errors(label, error, words, not_sure))
    ax.tick_params(axis="y", length=0)
    if n:
        least = np.flatnonzero(found <= found.min() + ROUNDING).tolist()
        share = f"in {percent(float(found.min()))} of the {counted(stability.n_draws, words.draw)}"
        which = listed([names[k] for k in least], 4)
        one = f"cluster {which} is" if len(least) == 1 else f"clusters {which} are"
        every = "every cluster is found" if n > 1 else "the one cluster is found"
        grammar.say(ax, f"{every} {share}" if len(least) == n else f"{one} found least, {share}")
    grammar.legend_above(
        ax,
        [
            Patch(color=NEUTRAL, alpha=on_page(_PALE), label=f"found: Jaccard similarity above {FOUND:g}"),
            grammar.point("joined with the cluster of this colour", "o", NEUTRAL, markersize=4),
            grammar.point("mean Jaccard similarity", "D", ink(), markersize=4, markerfacecolor="none"),
            grammar.point("Jaccard similarity by chance", "|", ink(), markersize=7),
        ],
    )
    return ax


@frame.in_small_print
def plot_contrast(found: Contrast, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot what differs between clusters: means or shares with intervals, and those by the labels taken as known.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `ax` is not an Axes.
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    contrast : Compute the estimates.

    Notes
    -----
    Each cluster has a row with its estimate and its interval in the cluster's colour. Below it, in grey, are the mean
    and interval that take the reported labels as known. Of a categorical y, each category has such rows in the order of
    the categories, named on the right. If y has the attribute ``units``, the axis has the unit.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> rng = np.random.default_rng(1)
    >>> probability = rng.random(400)
    >>> draws = rng.random((100, 400)) < probability
    >>> y = rng.normal(rng.random(400) < probability)
    >>> ax = pc.contrast(draws, (probability > 0.5).astype(int), y=y).plot()
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0 (n = 210)', '1 (n = 190)']
    """
    values = found.estimates
    categories = values["category"].values.tolist() if "category" in values.dims else []
    n, n_each = len(found.names), max(len(categories), 1)
    ax = frame.new_axes(ax, figsize, 5.6, float(np.clip(1.4 + 0.3 * n * n_each, 2.2, 9.0)))
    rows = np.arange(n)[:, np.newaxis] + 0.8 * ((np.arange(n_each) + 0.5) / n_each - 0.5)
    room = frame.extent(ax)[1] / (n * n_each)  # points per estimate
    columns = {name: values[name].values.reshape(n, n_each) for name in ("estimate", "low", "high")}
    naive = {name: values[name].values.reshape(n, n_each) for name in ("naive", "naive_low", "naive_high")}
    below = rows + 0.25 / n_each
    ax.hlines(below, naive["naive_low"], naive["naive_high"], colors=NEUTRAL, linewidth=min(1.2, room / 6))
    ax.plot(naive["naive"].ravel(), below.ravel(), "D", color=NEUTRAL, markersize=min(4.0, room / 3))
    numbers = np.repeat(values["number"].values, n_each)
    lines = colours_of(numbers)
    ax.hlines(rows.ravel(), columns["low"].ravel(), columns["high"].ravel(), colors=lines, linewidth=min(2.0, room / 4))
    style = {"s": min(5.0, room / 2) ** 2, "edgecolors": ink(), "linewidths": 0.6, "zorder": 2.5}
    frame.scatter_clusters(ax, columns["estimate"].ravel(), rows.ravel(), numbers, **style)
    names = frame.short_names([str(name) for name in found.names], frame.LONGEST)
    _set_names(ax, "y", [f"{name} (n = {k:,})" for name, k in zip(names, values["n_values"].values, strict=True)])
    if categories:
        _name_on_the_right(ax, rows.ravel(), frame.short_names(categories * n, frame.LONGEST), room)
    what = f"share of {found.name}" if categories else found.name
    ax.set(ylim=(n - 0.5, -0.5), ylabel="cluster", xlabel=grammar.axis_label(what, found.unit))
    ax.tick_params(axis="y", length=0)
    marks = [
        grammar.point(f"corrected, {found.prob:.0%} interval", "o", NEUTRAL, markeredgecolor=ink(), markersize=5),
        grammar.point(f"by the reported labels, {found.prob:.0%} interval", "D", NEUTRAL, markersize=4),
    ]
    grammar.say(ax, f"largest difference: {found._largest.partition(';')[0]})")
    grammar.legend_above(ax, marks)
    return ax


def _name_on_the_right(ax: Axes, rows: Floats, names: list[str], room: float) -> None:
    """Name the rows of categories beyond the right end of the axes, if they are readable."""
    font = min(8.0, 0.9 * room)
    if font < 4.0:
        return
    for row, name in zip(rows.tolist(), names, strict=True):
        ax.annotate(
            name,
            (1.0, row),
            (4, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=font,
            parse_math=False,
        )
