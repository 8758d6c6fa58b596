"""Plot of the scalar summaries of a diagnosis along the chains."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.plots.colours import MOST_CHAINS, chain_line, ink
from posterior_consensus.plots.frame import (
    Axes,
    Grid,
    Size,
    add_legend,
    check_result,
    grid_axes,
    tick_integers,
    with_unit,
)

_BINS = 20  # bins of the ranks
_MOST_IN_ROW = 4  # rows of legend entries next to the first row
_PANEL = 1.25, 7.6  # inches: height of a row, width of the figure


def plot_traces(diagnosis: Diagnosis, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the trace of every scalar summary, and the ranks of its values by chain.

    Parameters
    ----------
    diagnosis : Diagnosis
        Result of :func:`diagnose`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes of shape (n_summaries, 2); by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_summaries, 2)
        Traces on the left, with a colour for each chain, and histograms of ranks on the right.

    Raises
    ------
    TypeError
        If `diagnosis` is not a Diagnosis, or `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong.

    See Also
    --------
    diagnose : Compute the diagnosis.

    Notes
    -----
    On the right, the values of all chains are ranked together, and each chain's ranks are counted in equal bins [1]_.
    Chains that agree have flat lines near 1, the expected share. A chain with more than its share of high values rises
    to the right. Tied values share their ranks evenly. The R-hat of the summary is above each row.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> axes = pc.plot_traces(pc.diagnose(np.random.default_rng(1).integers(2, size=(2, 50, 6))))
    >>> axes.shape
    (7, 2)
    """
    from matplotlib.lines import Line2D

    check_result("diagnosis", diagnosis, Diagnosis, "diagnose")
    traces = diagnosis.traces
    names = traces["summary"].values.tolist()
    axes = grid_axes(axes, figsize, len(names), 2, _PANEL[1], _PANEL[0] * len(names) + 0.4, width_ratios=(2, 1))
    chain = traces["chain"].values
    _, first = np.unique(chain, return_index=True)
    chains = [np.flatnonzero(chain == chain[at]) for at in np.sort(first)]
    for name, (left, right) in zip(names, axes, strict=True):
        one = traces.sel(summary=name)
        _draw_row(left, right, one.values, chains)
        rhat = float(diagnosis.summaries["rhat"].sel(summary=name))
        left.set_title(with_unit(name, one["unit"].item()), loc="left", fontsize="small")
        if not np.isnan(rhat):
            right.set_title(f"R-hat {rhat:.3f}", loc="right", fontsize="small")
    for ax in axes.ravel():
        ax.tick_params(labelsize="small")
    tick_integers(axes[-1, 0].xaxis)
    for ax in axes[:-1].ravel():
        ax.tick_params(labelbottom=False)
    axes[-1, 0].set_xlabel("draw of the chain", fontsize="small")
    axes[-1, 1].set_xlabel("rank among the draws of all chains", fontsize="small")
    if 1 < len(chains) <= MOST_CHAINS:
        looks = [chain_line(k, len(chains)) | {"linewidth": 2.0} for k in range(len(chains))]
        entries = [Line2D([], [], label=str(chain[rows[0]]), **look) for rows, look in zip(chains, looks, strict=True)]
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.1), "ncols": -(-len(chains) // _MOST_IN_ROW)}
        add_legend(axes[0, 1], entries, title="chain", title_fontsize="small", **place)
    return axes


def _draw_row(left: Axes, right: Axes, values: npt.NDArray[np.float64], chains: list[npt.NDArray[np.intp]]) -> None:
    if np.isnan(values).any():
        return
    edges = np.linspace(0.0, 1.0, min(_BINS, max(1, min(rows.size for rows in chains) // 3)) + 1)
    _, tied = np.unique(values, return_inverse=True)
    ranks = _shares(tied, tied.max() + 1)
    for k, rows in enumerate(chains):
        style = chain_line(k, len(chains))
        left.plot(np.arange(rows.size), values[rows], linewidth=0.6, alpha=0.8, **style)
        interpolated = np.interp(edges, ranks, _shares(tied[rows], tied.max() + 1))
        right.stairs(np.diff(interpolated) / np.diff(edges), edges, baseline=None, linewidth=1.1, **style)
    right.axhline(1.0, color=ink(), linewidth=0.7, linestyle=":")
    right.set(xlim=(0, 1), ylim=(0, None))
    left.set_xlim(0, max(rows.size for rows in chains) - 1 or 1)


def _shares(tied: npt.NDArray[np.intp], n_values: int) -> npt.NDArray[np.float64]:
    """Share of draws below each value, and finally 1."""
    return np.concatenate([[0.0], np.cumsum(np.bincount(tied, minlength=n_values)) / tied.size])
