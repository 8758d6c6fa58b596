"""Plot of the number of stable components against the level."""

from typing import Any

from posterior_consensus.answers.links import StableComponents
from posterior_consensus.plots.colours import MARK, ink
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes, tick_integers


def plot_stable_components(components: StableComponents, *, figsize: Size = None, ax: Any = None) -> Axes:
    """Plot the number of stable components against the level.

    Parameters
    ----------
    components : StableComponents
        Result of :func:`stable_components`, whose level is marked.
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
        If `components` is not a StableComponents, or `ax` not an Axes.
    ValueError
        If `components` has no curve, or `figsize` is invalid.

    See Also
    --------
    stable_components : Compute the components.

    Notes
    -----
    Components split as more agreement is required. A long flat part indicates components that are the same over a
    range of levels.

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
