"""Plot of minimum expected loss and posterior probability for each number of clusters."""

from typing import Any

import numpy as np

from posterior_consensus.answers.n_clusters import LossByNClusters
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import BARS, NEUTRAL, ink
from posterior_consensus.plots.frame import Grid, Size

_ERRORS = 2.0  # standard errors that a bar reaches to either side


def plot_loss_by_n_clusters(losses: LossByNClusters, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the minimum expected loss and the posterior probability against the number of clusters.

    Parameters
    ----------
    losses : LossByNClusters
        Result of :func:`loss_by_n_clusters`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for losses and probabilities; without draws, one for the losses. By default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,), or (1,) for a similarity matrix alone
        The axes with the plots.

    Raises
    ------
    TypeError
        If `losses` is not a LossByNClusters, or `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong, or `figsize` is invalid.

    See Also
    --------
    loss_by_n_clusters : Compute the losses.

    Notes
    -----
    Error bars are two Monte Carlo standard errors of the difference to the minimum loss, which is the right error for
    comparing points of the curve. The errors of the losses themselves are larger, and mostly common to all numbers.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2]]
    >>> axes = pc.plot_loss_by_n_clusters(pc.loss_by_n_clusters(draws, random_seed=1))
    >>> [float(bar.get_height()) for bar in axes[1].patches]
    [0.0, 0.75, 0.25, 0.0]
    """
    frame.check_result("losses", losses, LossByNClusters, "loss_by_n_clusters")
    table = losses.table
    numbers, drawn = table["n_clusters"].values, losses.n_draws is not None
    size, ratios = (5.6, 4.6 if drawn else 3.2), (2.0, 1.0)[: 1 + drawn]
    grid = frame.grid_axes(axes, figsize, 1 + drawn, 1, *size, height_ratios=ratios).ravel()
    errors = _ERRORS * table["difference_mcse"].fillna(0.0).values
    points: dict[str, Any] = {"color": ink(), "marker": "o", "markersize": 4, "linewidth": 1.0, "capsize": 2}
    grid[0].errorbar(numbers, table["expected_loss"].values, errors, **points)
    grid[0].set_ylabel(frame.with_unit(f"expected {losses.loss.name}", losses.loss.unit))
    if drawn:
        height, error = table["probability"].values, _ERRORS * table["probability_mcse"].fillna(0.0).values
        style = {"ecolor": NEUTRAL, "capsize": 2, "error_kw": {"linewidth": 1.0}}
        bars = np.stack([np.minimum(error, height), error])
        grid[1].bar(numbers, height, width=0.8, color=BARS, yerr=bars, **style)
        grid[1].set_ylabel("posterior\nprobability")
        grid[1].set_ylim(0.0, None)
    for ax in grid:
        frame.mark_value(ax, losses.best, f"minimum: {losses.best}")
        ax.set_xlim(numbers[0] - 1, numbers[-1] + 1)
        frame.tick_integers(ax.xaxis)
    frame.add_legend(grid[0], loc="best")
    grid[-1].set_xlabel("number of clusters")
    return grid
