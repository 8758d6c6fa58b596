"""Plot of the credible ball: center and bounds, item by item."""

from typing import Any

import numpy as np

from posterior_consensus.answers.credible import BOUNDS, CredibleBall
from posterior_consensus.plots.frame import Axes, Size, check_result, new_axes
from posterior_consensus.plots.strips import draw_strips
from posterior_consensus.results.display import counted, quantity


def plot_credible_ball(
    ball: CredibleBall, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the center of a credible ball and its bounds as strips of items coloured by cluster.

    Parameters
    ----------
    ball : CredibleBall
        Result of :func:`credible_ball`.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the center, as in the data, or along a coordinate of the items (its name or
        its values), such as time or position along a genome.
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
        If `ball` is not a CredibleBall.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    credible_ball : Compute the ball.
    plot_draws_map : Plot a map of the draws with the ball.

    Notes
    -----
    By default, items are ordered by their cluster in the center, then in each bound from the top. Clusters of a bound
    have the colour of the center's cluster matched to them (most items in common over all one-to-one matchings), else
    the next colours. Beyond twenty colours, patterns are added. If several bounds have the same distance, the first is
    plotted. In the order of clusters, the axis needs 12 points per cluster. With less, it shows the largest clusters
    and those whose co-members change most, with at most six evenly spaced items each. Beyond 20,000 items, a random
    sample of 20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1]] * 6 + [[0, 0, 0, 0]] * 2 + [[0, 1, 2, 3]] * 2
    >>> ax = pc.plot_credible_ball(pc.credible_ball(draws, [0, 0, 1, 1]))
    >>> len(ax.images)
    4
    """
    check_result("ball", ball, CredibleBall, "credible_ball")
    partitions, captions = [ball.center], [f"center\n{counted(np.unique(ball.center).size, 'cluster')}"]
    for name in BOUNDS:
        bound = getattr(ball, name)
        partitions.append(bound[0])
        distance = quantity(float(bound["distance"][0]), ball.loss.unit, 3)
        ties = f" ({len(bound)} tie)" if len(bound) > 1 else ""
        clusters = counted(np.unique(bound[0]).size, "cluster")
        captions.append(f"{name.replace('_', ' ')}\n{clusters}, at {distance}{ties}")
    ax = new_axes(ax, figsize, 7.2, 2.9)
    draw_strips(ax, partitions, captions, "center", order)
    radius = quantity(ball.radius, ball.loss.unit, 3)
    ax.set_title(f"{ball.prob:.0%} credible ball under {ball.loss.name}, radius {radius}", fontsize="medium")
    return ax
