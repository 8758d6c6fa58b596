"""Plot of number of clusters and excess loss under other priors."""

from typing import Any

import numpy as np

from posterior_consensus.answers.prior_sensitivity import Floats, PriorSensitivity
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import MARK, NEUTRAL, ink
from posterior_consensus.plots.frame import Grid, Size

_ERRORS = 2.0  # length of error bars in standard errors
_MOST_NAMES = 40
_MOST_SLANTED = 8


def plot_prior_sensitivity(sensitivity: PriorSensitivity, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the expected number of clusters, and the excess loss of the partition, under other priors.

    Parameters
    ----------
    sensitivity : PriorSensitivity
        The result of :func:`prior_sensitivity`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the numbers of clusters and for the excess losses; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `sensitivity` is not a PriorSensitivity, or `axes` are not Axes.
    ValueError
        If there are not two `axes`, or `figsize` is invalid.

    See Also
    --------
    prior_sensitivity : Compute the sensitivity.

    Notes
    -----
    If all alternatives have the prior's family, the horizontal axis is the concentration, on a logarithmic scale;
    otherwise it lists the alternatives. Alternatives that the draws represent poorly are shaded. The red point is the
    prior of the draws; on an axis of concentrations, a red line marks its concentration. Error bars are two Monte Carlo
    standard errors.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 2]] * 50
    >>> others = {f"a = {a}": pc.priors.crp(a) for a in (0.5, 2.0)}
    >>> found = pc.prior_sensitivity(draws, pc.priors.crp(1.0), alternatives=others, random_seed=1)
    >>> axes = pc.plot_prior_sensitivity(found)
    >>> axes[1].get_xlabel()
    'concentration'
    """
    frame.check_result("sensitivity", sensitivity, PriorSensitivity, "prior_sensitivity")
    grid = frame.grid_axes(axes, figsize, 2, 1, 5.6, 5.0).ravel()
    table, own = sensitivity.table, sensitivity.concentration
    places = np.append(table["concentration"].values, np.nan if own is None else own)
    along = bool(np.all(places > 0))
    x = np.log(places) if along else np.append(np.arange(1.0, places.size), 0.0)
    order = np.argsort(x[:-1])
    for ax, value, error in zip(grid, ("n_clusters", "excess_loss"), ("n_clusters_mcse", "excess_mcse"), strict=True):
        bars = _ERRORS * np.nan_to_num(table[error].values[order])
        style = {"fmt": "o-" if along else "o", "markersize": 4, "linewidth": 1.0, "elinewidth": 1.0, "capsize": 2}
        ax.errorbar(x[order], table[value].values[order], bars, color=ink(), **style)
    error = _ERRORS * np.nan_to_num(sensitivity.n_clusters_mcse)
    grid[0].errorbar(x[-1], sensitivity.n_clusters, error, fmt="o", markersize=5, color=MARK, capsize=2)
    for ax in grid:
        _shade(ax, x[order], sensitivity.is_reliable[order])
        if along:
            frame.mark_value(ax, x[-1])
        _tick(ax, sensitivity, x, along, named=ax is grid[-1])
    if not sensitivity.is_reliable.all():
        frame.add_legend(grid[0], loc="best")
    grid[0].set_ylabel("expected clusters")
    loss = sensitivity.loss
    grid[1].set_ylabel(frame.with_unit(f"excess expected {loss.name}", loss.unit))
    grid[1].axhline(0.0, color=NEUTRAL, linewidth=0.8, zorder=0.5)
    if along:
        grid[1].set_xlabel("concentration")
    return grid


def _shade(ax: Any, x: Floats, known: Any) -> None:
    """Shade alternatives that the draws represent poorly, halfway to their neighbours."""
    if known.all():
        return
    gap = np.diff(x).min(initial=1.0) if x.size < 2 else np.median(np.diff(x))
    edges = np.concatenate([[x[0] - gap / 2], (x[1:] + x[:-1]) / 2, [x[-1] + gap / 2]])
    words: str | None = "unreliable weights"
    for k in np.flatnonzero(~known):
        ax.axvspan(edges[k], edges[k + 1], color=NEUTRAL, alpha=0.3, linewidth=0, label=words)
        words = None


def _tick(ax: Any, sensitivity: PriorSensitivity, x: Floats, along: bool, *, named: bool) -> None:
    """Concentrations, or names, at the alternatives."""
    if along:
        values = np.unique(np.exp(x[:-1]))
        step = max(1, -(-values.size // 10))
        ax.set_xticks(np.log(values[::step]), [f"{value:.3g}" for value in values[::step]])
        return
    names = [sensitivity.prior, *map(str, sensitivity.table["alternative"].values)]
    step = max(1, -(-len(names) // _MOST_NAMES))
    shown = [name if named else "" for name in frame.short_names(names, frame.LONGEST)]
    turned = {"rotation": 90} if len(names) > _MOST_SLANTED else {"rotation": 30, "ha": "right"}
    ax.set_xticks(np.roll(x, 1)[::step], shown[::step], parse_math=False, **turned)
