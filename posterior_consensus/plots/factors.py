"""What independent runs differ in: how far each factor alone takes them apart."""

import numpy as np
import pandas as pd

from posterior_consensus.diagnostics.groups import LEVEL
from posterior_consensus.layers.factors import PERMUTATIONS, FactorComparison
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import NEUTRAL, check_matplotlib, ink
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.results.display import listed, short_name_of

_ROOM = 0.6  # above the first row and below the last


@frame.in_small_print
def plot_factors(factors: FactorComparison, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot how much farther apart runs are that differ in one factor alone than two runs of one setting.

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
    A point is how much farther apart runs that differ in this factor alone are than two runs of one setting; the
    largest is on top. The grey line ends where 1% of the permutations of the test are beyond. A factor is filled if its
    p-value, at its name, is at most 0.01. If no setting has several runs, points are the distances themselves.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> runs = {"a1": [0, 0, 1, 1], "a2": [0, 0, 1, 1], "b1": [0, 1, 1, 1], "b2": [0, 1, 2, 2]}
    >>> ax = pc.compare_factors(pc.as_runs(runs), {"program": "{}?"}).plot()
    >>> title = ax.set_title("Does the program matter?")
    """
    check_matplotlib()
    table = factors.to_dataframe().dropna(subset="distance")
    tested = bool(table["excess"].notna().any())
    value = "excess" if tested else "distance"
    table = table.dropna(subset=value).sort_values(value)
    ax = frame.new_axes(ax, figsize, 5.6, 1.5 + 0.4 * len(table))
    at, shown = np.arange(len(table)), (table["p_value"] <= LEVEL).to_numpy()
    for some, face in ((shown, ink()), (~shown, ax.get_facecolor())):
        ax.plot(table[value][some], at[some], "o", color=ink(), markerfacecolor=face, zorder=3)
    names = frame.short_names(table.index, frame.LONGEST)
    p_values = ["" if np.isnan(p) else f"\np = {p:.3f}".replace("= 0.000", "< 0.001") for p in table["p_value"]]
    frame.set_ticks(ax, "y", at, [f"{name}{p}" for name, p in zip(names, p_values, strict=True)])
    label = grammar.axis_label(f"mean {short_name_of(factors.loss)}", factors.loss.unit)
    less = ",\nless that of two runs of one setting" if tested else ""
    ax.set(xlabel=f"{label} if this alone differs{less}", ylim=(-_ROOM, len(table) - 1 + _ROOM))
    ax.margins(x=0.08)
    if tested:
        limits, label = table["excess_limit"].to_numpy(), f"{1 - LEVEL:.0%} of {PERMUTATIONS:,} permutations are below"
        left = min(0.0, ax.get_xlim()[0])
        ax.hlines(at, left, limits, color=NEUTRAL, linewidth=1.2, zorder=1)
        ax.plot(limits, at, "|", color=NEUTRAL, markersize=14, markeredgewidth=1.6, label=label, zorder=1)
        ax.set_xlim(left=left)
        grammar.mark_limit(ax, 0.0, "")
    else:
        ax.set_xlim(left=0.0)
    grammar.say(ax, _finding(factors, table[shown][::-1], tested=tested))
    if tested:
        grammar.legend_above(ax)
    return ax


def _finding(factors: FactorComparison, matter: pd.DataFrame, *, tested: bool) -> str:
    """Which factors are shown to matter, the largest excess first, and by how much the first does."""
    if not tested:
        return "no setting has several runs, so no factor is tested"
    if not len(matter):
        return "no factor is shown to change partitions"
    excess = grammar.in_digits(float(matter["excess"].iloc[0]), 2, factors.loss.unit)
    others = f"; also {listed(matter.index[1:].tolist(), 3)}" if len(matter) > 1 else "; no other factor is shown to"
    return f"'{matter.index[0]}' changes partitions by {excess} more than another run{others}"
