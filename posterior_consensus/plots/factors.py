"""What independent runs differ in: how far each factor alone takes them apart."""

import numpy as np

from posterior_consensus.diagnostics.groups import LEVEL
from posterior_consensus.layers.factors import FactorComparison
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import NEUTRAL, check_matplotlib, ink
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.results.display import listed, short_name_of
from posterior_consensus.results.words import RUNS

_ROOM = 0.6  # above the first row and below the last


def plot_factors(factors: FactorComparison, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot how far apart runs are that differ in one factor alone, beside two runs of one setting.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    compare_factors : Compute the distances.

    Notes
    -----
    The largest distance is on top. Bars are two standard errors to either side; the grey band is the distance of two
    runs of one setting, with its errors.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> runs = {"a1": [0, 0, 1, 1], "a2": [0, 0, 1, 1], "b1": [0, 1, 1, 1], "b2": [0, 1, 2, 2]}
    >>> ax = pc.compare_factors(pc.as_runs(runs), {"program": "{}?"}).plot()
    >>> title = ax.set_title("Does the program matter?")
    """
    check_matplotlib()
    table = factors.to_dataframe().dropna(subset="distance").sort_values("distance")
    ax = frame.new_axes(ax, figsize, 5.6, 1.3 + 0.35 * len(table))
    if not np.isnan(factors.within):
        error = grammar.ERRORS * np.nan_to_num(factors.within_error)
        ax.axvspan(factors.within - error, factors.within + error, color=NEUTRAL, alpha=0.3, linewidth=0)
    at, errors = np.arange(len(table)), grammar.ERRORS * table["error"].fillna(0.0).to_numpy()
    ax.errorbar(table["distance"], at, xerr=errors, fmt="o", color=ink(), markersize=5, elinewidth=1.0, capsize=2)
    frame.set_ticks(ax, "y", at, [str(name) for name in table.index])
    label = grammar.axis_label(f"mean {short_name_of(factors.loss)}", factors.loss.unit)
    xlabel = grammar.with_errors(f"{label} if this alone differs", errors, RUNS)
    ax.set(xlabel=xlabel, ylim=(-_ROOM, len(table) - 1 + _ROOM))
    ax.set_xlim(left=0.0)
    if not np.isnan(factors.within):
        grammar.mark_limit(ax, factors.within, "two runs of one setting")
    matter = table.index[table["p_value"] <= LEVEL][::-1].tolist()
    changes = "shown to change the partition"
    grammar.say(ax, f"{changes}: {listed(matter, 4)}" if matter else f"no factor is {changes}")
    return ax
