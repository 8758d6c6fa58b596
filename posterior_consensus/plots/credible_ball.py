"""The credible ball as a picture: its center and its bounds, item by item."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.credible import BOUNDS, CredibleBall
from posterior_consensus.display import quantity
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.axes import extent, label_items, matched, new_axes
from posterior_consensus.plots.colours import colours_of, ink, is_patterned, patch_style, patterns_of, repeats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_CLUSTERS = 50  # parted by lines; the lines of more would cover the strips


def plot_credible_ball(
    ball: CredibleBall, *, figsize: tuple[float, float] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the center of a credible ball above its bounds, a strip of items for each, a colour for each cluster.

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
    distance the first is drawn.

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
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    center, dim = ball.center.values, str(ball.center.dims[0])
    strips = [("center", center, 0.0, 1)]
    for name in BOUNDS:
        bound = getattr(ball, name)
        labels = matched(bound.values[0], center)
        strips.append((name.replace("_", " "), labels, float(bound["distance"][0]), bound.shape[0]))
    order = np.lexsort([labels for _, labels, _, _ in reversed(strips)])
    ax = new_axes(ax, figsize, 7.2, 2.9)
    patterned = is_patterned(extent(ax)[0], int(center.max()) + 1)
    for row, (_, labels, _, _) in enumerate(strips):
        colours = np.array([to_rgb(colour) for colour in colours_of(labels[order])])
        ax.imshow(
            colours[np.newaxis],
            extent=(-0.5, order.size - 0.5, row + 0.36, row - 0.36),
            aspect="auto",
            interpolation="nearest",
        )
        for start, end in _runs(labels[order]) if patterned else []:
            cluster = int(labels[order[start]])
            if patterns_of(np.array([cluster]))[0]:
                ax.add_patch(Rectangle((start - 0.5, row - 0.36), end - start, 0.72, **patch_style(cluster)))
    more = repeats(max(int(labels.max()) + 1 for _, labels, _, _ in strips), patterned)
    if center.max() < _MOST_CLUSTERS:
        edges = np.flatnonzero(np.diff(center[order])) + 0.5
        ax.vlines(edges, -0.5, len(strips) - 0.5, colors=ink(), linewidths=0.8, linestyles=":")
    ax.set(
        xlim=(-0.5, order.size - 0.5), ylim=(len(strips) - 0.5, -0.5), xlabel=f"{dim}, by cluster of the center{more}"
    )
    ax.set_yticks(range(len(strips)), [_caption(*strip, unit=ball.loss.unit) for strip in strips])
    if not label_items(ax, "x", Items.along(ball.center, dim).names[order]):
        ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    radius = quantity(ball.radius, ball.loss.unit, 3)
    ax.set_title(f"{ball.prob:.0%} credible ball under {ball.loss.name}, radius {radius}", fontsize="medium")
    return ax


def _runs(labels: npt.NDArray[np.integer]) -> list[tuple[int, int]]:
    """Where each run of equal labels starts and ends."""
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), labels.size]
    return list(itertools.pairwise(edges))


def _caption(name: str, labels: Any, distance: float, ties: int, *, unit: str) -> str:
    clusters = len(np.unique(labels))
    text = f"{name}\n{clusters} cluster{'s' * (clusters > 1)}"
    if name != "center":
        text += f", at {quantity(distance, unit, 3)}"
    return text + (f" ({ties} tie)" if ties > 1 else "")
