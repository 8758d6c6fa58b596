"""Number of stable components against the level as a picture."""

from typing import Any

from posterior_consensus.answers.stable import StableComponents
from posterior_consensus.plots.colours import MARK, ink
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes, tick_integers


def plot_stable_components(components: StableComponents, *, figsize: Size = None, ax: Any = None) -> Axes:
    """Plot the number of stable components against the level.

    Parameters
    ----------
    components : StableComponents
        What :func:`stable_components` gives; its level is marked.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `components` is something else, or `ax` no Axes.
    ValueError
        If `components` has no curve, or `figsize` is invalid.

    Notes
    -----
    Steps to the right are where components split as more agreement is required. A long flat part means that the
    same components hold over a range of levels.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_stable_components(pc.stable_components([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1]]))
    >>> ax.lines[0].get_ydata()[[0, 50, 99]]
    array([1, 2, 3])
    """
    check_result("components", components, StableComponents, "stable_components")
    if components.curve is None:
        raise ValueError("`components` must have a curve; it has none, as too many items differ. Give a level below 1.")
    ax = new_axes(ax, figsize, 5.6, 3.4)
    levels, numbers = components.curve["level"].values, components.curve.values
    ax.plot(levels, numbers, color=ink(), linewidth=1.4, drawstyle="steps-pre")
    label = f"level {components.level:g}: {components.n_components}"
    ax.plot(components.level, components.n_components, "o", color=MARK, label=label, clip_on=False, zorder=3)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.05 * numbers.max()))
    ax.set(xlabel="level: minimum share of the draws that agree", ylabel="stable components")
    tick_integers(ax.yaxis)
    add_legend(ax, loc="lower left" if numbers.min() == numbers.max() else "upper left")
    return ax
