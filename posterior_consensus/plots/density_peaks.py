"""Decision graph of a partition density: draws by score and distance to higher scores."""

import numpy as np

from posterior_consensus.answers.density import PartitionDensity, to_higher
from posterior_consensus.answers.partition_loss import partition_loss
from posterior_consensus.plots.colours import COLOURS, MARK, ink
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes

_PROBS = (0.95, 0.5)


def plot_density_peaks(density: PartitionDensity, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the score of each calibration draw against its loss to the nearest draw of higher score.

    Parameters
    ----------
    density : PartitionDensity
        Result of :func:`partition_density`.
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
        If `density` is not a PartitionDensity, or `ax` not an Axes.

    See Also
    --------
    partition_density : Compute the density.

    Notes
    -----
    In this decision graph of Rodriguez and Laio (2014), https://doi.org/10.1126/science.1242072, peaks of the density
    are at the top right. Modes are marked at their score and their loss to the nearest mode of higher score, the
    highest at the top. They are searched among all partitions, so their score can exceed the score of any draw.
    Vertical lines are the scores at which credible sets begin.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 30 + [[0, 1, 0, 1, 0, 1]] * 20 + [[0, 0, 0, 0, 1, 1]] * 10
    >>> ax = pc.plot_density_peaks(pc.partition_density(draws, random_seed=1))
    >>> ax.get_xlabel()
    'score'
    """
    check_result("density", density, PartitionDensity, "partition_density")
    ax = new_axes(ax, figsize, 5.6, 3.6)
    scores = density.scores.values
    ax.scatter(scores, density.to_higher.values, s=12, color=COLOURS[1], linewidths=0, label="calibration draws")
    marked = density.modes["score"].values
    losses = np.asarray(partition_loss(density.modes.values, loss=density.loss))
    heights = np.where(marked == marked.max(), density.to_higher.values.max(), to_higher(marked, losses))
    ax.scatter(marked, heights, s=48, marker="D", facecolors="none", edgecolors=MARK, linewidths=1.5, label="modes")
    for prob in _PROBS:
        least = density.least_score(prob)
        if np.isfinite(least):
            ax.axvline(least, color=ink(), linewidth=0.8, linestyle=":")
            ax.text(least, 1.0, f" {prob:.0%} set", transform=ax.get_xaxis_transform(), va="top", fontsize="small")
    unit = f", {density.loss.unit}" if density.loss.unit else ""
    ax.set(xlabel="score", ylabel=f"{density.loss.name} to the nearest\ndraw of higher score{unit}")
    highest = max(heights.max(), density.to_higher.values.max())
    ax.set_ylim(0.0, 1.15 * highest or 1.0)  # leaves room for the names of the sets
    add_legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return ax
