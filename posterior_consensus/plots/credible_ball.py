"""The credible ball as a picture: its center and its bounds, item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posterior_consensus.answers.credible import BOUNDS, CredibleBall
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.axes import matched, new_axes
from posterior_consensus.plots.strips import draw_strips
from posterior_consensus.results.display import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_credible_ball(
    ball: CredibleBall, *, figsize: tuple[float, float] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the centre of a credible ball and its bounds as strips of items coloured by cluster.

    Parameters
    ----------
    ball : CredibleBall
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `ball` is not a CredibleBall.

    Notes
    -----
    Items are ordered by their cluster in the center, then in each bound from the top. Clusters of a bound have the
    colour of the center's cluster with which they are matched (most items in common over all one-to-one matchings);
    those left over have the next. After twenty colours come patterns. Of several bounds at the same
    distance the first is drawn. Of more than 20,000 items so many are drawn, at random, and the axis says so.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1]] * 6 + [[0, 0, 0, 0]] * 2 + [[0, 1, 2, 3]] * 2
    >>> ax = pc.plot_credible_ball(pc.credible_ball(draws, [0, 0, 1, 1]))
    >>> len(ax.images)
    4
    """
    if not isinstance(ball, CredibleBall):
        raise TypeError(f"`ball` must be what credible_ball() returns; got {type(ball).__name__}.")
    center, dim = ball.center.values, str(ball.center.dims[0])
    strips = [("center", center, 0.0, 1)]
    for name in BOUNDS:
        bound = getattr(ball, name)
        labels = matched(bound.values[0], center)
        strips.append((name.replace("_", " "), labels, float(bound["distance"][0]), bound.shape[0]))
    ax = new_axes(ax, figsize, 7.2, 2.9)
    captions = [_caption(*strip, unit=ball.loss.unit) for strip in strips]
    draw_strips(ax, [labels for _, labels, _, _ in strips], captions, Items.along(ball.center, dim), "center", 4)
    radius = quantity(ball.radius, ball.loss.unit, 3)
    ax.set_title(f"{ball.prob:.0%} credible ball under {ball.loss.name}, radius {radius}", fontsize="medium")
    return ax


def _caption(name: str, labels: Any, distance: float, ties: int, *, unit: str) -> str:
    clusters = len(np.unique(labels))
    text = f"{name}\n{clusters} cluster{'s' * (clusters > 1)}"
    if name != "center":
        text += f", at {quantity(distance, unit, 3)}"
    return text + (f" ({ties} tie)" if ties > 1 else "")
