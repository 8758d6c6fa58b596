"""Plot the agreement between chains, and its cost to them, against the penalty weight on disagreement."""

from typing import Any

from posterior_consensus.agreement.path import EARLY, AgreementPath
from posterior_consensus.plots.colours import MARK, MOST_CHAINS, NEUTRAL, chain_line, ink
from posterior_consensus.plots.frame import Grid, Size, add_legend, check_result, grid_axes, with_unit


def plot_agreement_path(path: AgreementPath, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the averaged Jaccard index against the penalty weight, and the loss of each chain's estimate.

    Parameters
    ----------
    path : AgreementPath
        Result of :func:`agreement.agreement_path`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the agreement and for the losses; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `path` is not an AgreementPath, or `axes` are not Axes.
    ValueError
        If there are not two `axes`, or `figsize` is invalid.

    See Also
    --------
    agreement.agreement_path : Compute the path.

    Notes
    -----
    A rise left of the dashed line, the penalty weight 0.25, indicates estimates that differ by search noise or few
    draws. A plateau across it indicates chains in different modes. Losses are over each chain's own draws, minus the
    loss without a penalty.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[[0, 0, 1, 1]] * 4, [[0, 0, 1, 1]] * 4, [[0, 1, 1, 1]] * 4]
    >>> axes = pc.agreement.plot_agreement_path(pc.agreement.agreement_path(draws, prices=[0.5, 2.0], random_seed=1))
    >>> axes[0].lines[0].get_ydata().round(2)
    array([0.5, 0.5, 0.5, 1. ])
    """
    check_result("path", path, AgreementPath, "agreement_path")
    grid = grid_axes(axes, figsize, 2, 1, 5.6, 5.0).ravel()
    table, prices = path.table, path.table["price"].values
    line: dict[str, Any] = {"marker": "o", "linewidth": 1.2, "clip_on": False}
    grid[0].plot(prices, table["averaged_jaccard"].values, color=ink(), markersize=4, **line)
    grid[0].set(ylabel="averaged Jaccard index", ylim=(0.0, 1.05))
    own = table["own_loss"].values
    what, n_chains = ("chain", "chains") if path.of_chains else ("analysis", "analyses"), len(path.names)
    for at, name in enumerate(path.names):
        label = f"{what[0]} {name}" if path.of_chains or isinstance(name, int) else str(name)
        grid[1].plot(prices, own[:, at] - own[0, at], label=label, markersize=3, **line, **chain_line(at, n_chains))
    rise = with_unit(f"rise of own\nexpected {path.loss.name}", path.loss.unit)
    grid[1].set(ylabel=rise, xlabel="penalty weight on disagreement")
    for ax in grid:
        ax.axvline(EARLY, color=MARK, linewidth=1.0, linestyle="--", zorder=0.5)
        ax.set_xlim(prices[0], prices[-1])
    if n_chains <= MOST_CHAINS:
        add_legend(grid[1], loc="best", ncols=2 if n_chains > 4 else 1)
    else:
        grid[1].text(0.02, 0.95, f"{n_chains} {what[1]}", transform=grid[1].transAxes, va="top", color=NEUTRAL)
    return grid
