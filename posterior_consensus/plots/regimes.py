"""Plot of values along time or another coordinate, with clusters and their probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.membership import Membership
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import ink
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.membership import as_membership, draw_shares
from posterior_consensus.plots.observed import observed_table
from posterior_consensus.plots.rows import check_order, coordinate, numbers_along, plain

_MOST_FEATURES = 6
_PALE = 0.3  # opacity of the background
_PANEL = 7.2, 2.0  # inches: width of the figure, height of a panel
_LEAST_ROOM = 2.5  # points per item; with less, points are invisible


def plot_regimes(
    data: Any,
    membership: Membership | HasDraws,
    *,
    order: Any = "data",
    features: Sequence[Any] | None = None,
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot values along time or another coordinate, coloured by cluster, with each item's cluster probabilities.

    Parameters
    ----------
    data : array_like, Series, DataFrame or DataArray of shape (n_items,) or (n_items, n_features)
        Numbers, NaN where missing. A DataFrame has a row for each item; a DataArray may have the items second.
    membership : Membership or Summary
        The result of :func:`membership` or :func:`predict_allocation`, with the partition and the probabilities, or of
        :func:`summarize`, with the consensus partition.
    order : "data", name of a coordinate, or array_like of shape (n_items,)
        The horizontal axis: numbers or dates, given as the name of a coordinate of the data or of the partition, or as
        values. With "data", the items' own coordinate if it increases, else their positions.
    features : sequence of names, optional
        Features to plot, at most 6, with a panel each; by default all.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes for each feature, and one for the probabilities; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_features + 1,)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `membership` is not a Membership, the data or `order` are not numbers or dates, or `axes` are not Axes.
    ValueError
        If the data have other items or more than 6 features, `features`, `order` or `figsize` are invalid, or the
        number of `axes` is wrong.

    See Also
    --------
    plot_membership : Plot the probabilities of the clusters alone.
    plot_psm : Plot the similarities of all pairs, with ``order="data"``.

    Notes
    -----
    The background has the colour of each item's cluster, and changes midway between neighbours. The last panel stacks
    the posterior probabilities of the clusters, in the same order for all items; "elsewhere" is grey at the top.

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> flow = pd.Series([9.1, 9.3, 5.2, 5.0], index=pd.Index([1897, 1898, 1899, 1900], name="year"), name="flow")
    >>> draws = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]
    >>> axes = pc.plot_regimes(flow, pc.membership(draws, [0, 0, 1, 1]))
    >>> [axes[0].get_ylabel(), axes[1].get_xlabel()]
    ['flow', 'year']
    """
    membership = as_membership(membership)
    table = observed_table(data, membership.cluster, "membership")
    names = table.features if features is None else [str(name) for name in features]
    if not set(names) <= set(table.features) or not 1 <= len(names) <= _MOST_FEATURES:
        present = ", ".join(map(repr, table.features))
        raise ValueError(
            f"`features` must be a list of 1 to {_MOST_FEATURES} of the data's features; got {features!r}, "
            f"present: {present}."
        )
    name, x = _axis(order, table.items)
    in_row = np.argsort(x, kind="stable")
    dated, x = x.dtype.kind == "M", numbers_along(name, x[in_row])
    n = len(names)
    grid = frame.grid_axes(axes, figsize, n + 1, 1, _PANEL[0], _PANEL[1] * n + 1.9).ravel()
    edges = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    if edges[0] == edges[-1]:  # one item, or all at one position
        edges = edges[0] + np.linspace(-0.5, 0.5, edges.size)
    cluster, numbers = membership.cluster.values[in_row], np.array([*membership.numbers, -1])
    for ax, feature in zip(grid, names, strict=False):
        values = table.values[in_row, table.features.index(feature)]
        _draw_values(ax, x, values, edges, numbers[cluster])
        ax.set_ylabel(f"feature {feature}" if feature.isdigit() else feature, wrap=True)
        ax.tick_params(labelbottom=False)
    draw_shares(grid[-1], membership, in_row, edges)
    grid[-1].set(ylim=(0, 1), ylabel="posterior probability", xlabel=name)
    for ax in grid:
        ax.set_xlim(edges[0], edges[-1])
        if dated:
            frame.tick_dates(ax.xaxis)
    return grid


def _axis(order: Any, items: Items) -> tuple[str, npt.NDArray[Any]]:
    """Name and values of the horizontal axis."""
    along = check_order(order, items)
    if along is None:
        raise ValueError("`order` must be 'data', the name of a coordinate, or a value for each item; got 'clusters'.")
    if along.values is not None:
        return along.name or items.dim, along.values
    own = coordinate(items.dim, items)
    if own is not None and own.dtype.kind in "iufM" and np.all(own[1:] > own[:-1]):
        names = [str(name) for name, coord in items.coords.items() if np.array_equal(plain(coord.values), own)]
        return next((name for name in names if name != items.dim), items.dim), own  # the index may have another name
    return items.dim, np.arange(items.n_items)


def _draw_values(ax: Axes, x: Floats, values: Floats, edges: Floats, numbers: npt.NDArray[np.integer]) -> None:
    """Plot a line with points over a rectangle for each run of items of a cluster."""
    runs = frame.runs_of(numbers)
    frame.colour_runs(ax, edges[runs], numbers[runs[:-1]], 0.0, 1.0, alpha=_PALE, zorder=0.5)
    ax.plot(x, values, color=ink(), linewidth=0.8)
    if frame.extent(ax)[0] / x.size > _LEAST_ROOM:
        ax.scatter(x, values, s=12, color=ink())
