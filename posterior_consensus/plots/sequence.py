"""Plot of distances between successive draws, with the end of the burn-in."""

from typing import Any

import numpy as np

from posterior_consensus.diagnostics.sequence import SequentialDistances
from posterior_consensus.plots.colours import MOST_CHAINS, chain_colour, chain_line
from posterior_consensus.plots.frame import Grid, Size, add_legend, check_result, grid_axes, tick_integers, with_unit

_PANEL = 2.3, 7.6  # inches: height of a row, width of the figure


def plot_sequence(sequence: SequentialDistances, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the distances between successive draws, and from the second half of the chain.

    Parameters
    ----------
    sequence : SequentialDistances
        Result of :func:`diagnostics.sequential_distances`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes of shape (2,); by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The upper axes have the distance of each draw from its predecessor, the speed of the chain. The lower axes have
        its mean distance from the second half of its chain, the position of the chain. A vertical line in the chain's
        colour ends the burn-in. It is dotted, and in the middle, if the rule determined no end.

    Raises
    ------
    TypeError
        If `sequence` is not a SequentialDistances, or `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong.

    See Also
    --------
    diagnostics.sequential_distances : Compute the distances.

    Notes
    -----
    The upper panel is Figure 5 of Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR,
    for one minus the normalized mutual information (``loss="nmi"``).

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.random.default_rng(1).integers(2, size=(2, 60, 6))
    >>> axes = pc.diagnostics.plot_sequence(pc.diagnostics.sequential_distances(draws, loss="nmi"))
    >>> axes.shape
    (2,)
    """
    check_result("sequence", sequence, SequentialDistances, "diagnostics.sequential_distances")
    axes = grid_axes(axes, figsize, 2, 1, _PANEL[1], 2 * _PANEL[0])[:, 0]
    chain = sequence.steps["chain"].values
    burn_in, n_chains = sequence.burn_in, sequence.burn_in.sizes["chain"]
    for k in range(n_chains):
        one = burn_in.isel(chain=k)
        rows = np.flatnonzero(chain == one["chain"].values)
        for ax, values in zip(axes, (sequence.steps.values, sequence.to_second_half.values), strict=True):
            name = f"chain {one['chain'].item()}" if 1 < n_chains <= MOST_CHAINS else None
            ax.plot(np.arange(rows.size), values[rows], linewidth=0.8, alpha=0.8, label=name, **chain_line(k, n_chains))
            line = "--" if one["settled"] else ":"
            ax.axvline(int(one["burn_in"]), linewidth=1.0, linestyle=line, color=chain_colour(k, n_chains))
    before = "the draw before" if sequence.lag == 1 else f"the draw {sequence.lag} before"
    for ax, name in zip(axes, (before, "the second half, mean"), strict=True):
        title = with_unit(f"{sequence.loss.name} distance from {name}", sequence.loss.unit)
        ax.set_title(title, loc="left", fontsize="small")
        ax.set_xlim(0, int(burn_in["n_draws"].max()) - 1 or 1)
        ax.set_ylim(0, None)
        ax.tick_params(labelsize="small")
        tick_integers(ax.xaxis)
    axes[0].tick_params(labelbottom=False)
    axes[1].set_xlabel("draw of the chain; the line ends the burn-in", fontsize="small")
    if axes[0].get_legend_handles_labels()[0]:
        add_legend(axes[0])
    return axes
