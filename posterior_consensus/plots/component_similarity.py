"""Plot of the number of clusters that remain when similar components are merged."""

from typing import Any

import numpy as np

from posterior_consensus.answers.component_similarity import ComponentSimilarity
from posterior_consensus.plots.colours import MARK, NEUTRAL
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes, tick_integers

_LEAST_SHOWN = 8  # numbers of clusters shown at least


def plot_component_similarity(similarity: ComponentSimilarity, *, figsize: Size = None, ax: Any = None) -> Axes:
    """Plot the share of the distance between components that is within clusters, by number of clusters.

    Parameters
    ----------
    similarity : ComponentSimilarity
        The result of :func:`component_similarity`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `similarity` is not a ComponentSimilarity, or `ax` not an Axes.
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    component_similarity : Compute the similarities.

    Notes
    -----
    The line is the share of the total distance that is within clusters of average linkage. Beyond its elbow, further
    clusters have similar components. Bars are the posterior distribution of the number of clusters after merging, the
    dotted line is the posterior distribution of the number of components.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> labels, mean = [[0, 1, 2, 2], [1, 0, 2, 2]], [[0.0, 0.3, 9.0], [0.2, 0.0, 8.0]]
    >>> ax = pc.plot_component_similarity(pc.component_similarity(labels, mean=mean, sd=1.0))
    >>> ax.lines[0].get_ydata().round(2)
    array([1.  , 0.02, 0.  , 0.  ])
    """
    check_result("similarity", similarity, ComponentSimilarity, "component_similarity")
    ax = new_axes(ax, figsize, 5.6, 3.4)
    table = similarity.to_dataframe()
    occurs = table.index[(table["components"] > 0) | (table["clusters"] > 0)]
    table = table.loc[: max(_LEAST_SHOWN, int(occurs.max()) if len(occurs) else 0)]
    numbers = table.index.values
    ax.bar(numbers, table["clusters"], color=NEUTRAL, alpha=0.5, width=0.8, label="clusters in a draw")
    edges = np.append(numbers, numbers[-1] + 1) - 0.5
    ax.stairs(table["components"], edges, color=NEUTRAL, linestyle=":", label="components in a draw")
    line = {"color": MARK, "marker": "o", "markersize": 4, "linewidth": 1.4, "clip_on": False}
    ax.plot(numbers, table["distance_within"], **line, label="distance within clusters")
    ax.set(xlim=(0.5, numbers[-1] + 0.5), ylim=(0, 1), ylabel="share", xlabel="number of clusters or components")
    tick_integers(ax.xaxis)
    add_legend(ax, loc="best")
    return ax
