"""Plot of the share of draws that agree with partial partitions against the number of assigned items."""

from typing import Any

import numpy as np

from posterior_consensus.answers.partial_partition import PartialPartition
from posterior_consensus.plots.colours import MARK, OPEN, ink
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes, tick_integers


def plot_partial_partition(partial: PartialPartition, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the largest share of draws found that agree against the number of assigned items.

    Parameters
    ----------
    partial : PartialPartition
        Result of :func:`partial_partition`.
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
        If `partial` is not a PartialPartition.

    See Also
    --------
    partial_partition : Compute the partial partition.

    Notes
    -----
    The filled area, as a share of the axes, is `partial.area`. The dashed line is the probability requested, the point
    is the result. These are shares of the draws on which the result was chosen. The bar below the point is the
    cross-validated probability, plus and minus one standard error. A concentrated posterior has a curve near the top.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 0]] * 5 + [[0, 0, 1, 1, 1]] * 4 + [[0, 1, 1, 1, 1]]
    >>> ax = pc.plot_partial_partition(pc.partial_partition(draws, 0.9, random_seed=1))
    >>> ax.get_xlabel()
    'assigned items, of 5'
    """
    check_result("partial", partial, PartialPartition, "partial_partition")
    ax = new_axes(ax, figsize, 5.6, 3.4)
    sizes, probability = partial.curve["n_items"].values, partial.curve.values
    ax.fill_between(sizes, probability, step="post", color=OPEN, alpha=0.35, linewidth=0.0)
    ax.step(sizes, probability, where="post", color=ink(), linewidth=1.2)
    requested = f"requested, {partial.prob:g}"
    ax.axhline(partial.prob, color=MARK, linewidth=1.3, linestyle="--", label=requested, zorder=1.5)
    result = f"{partial.n_items} items, {partial.search_probability:.3g} of the draws"
    ax.plot(partial.n_items, partial.search_probability, "o", color=MARK, markersize=6, clip_on=False, label=result)
    held_out = f"cross-validated, {partial.probability:.3g}"
    error = np.nan_to_num(partial.mcse)
    bar: dict[str, Any] = {"color": ink(), "markersize": 10, "capsize": 3, "linewidth": 1.2, "clip_on": False}
    ax.errorbar(partial.n_items, partial.probability, error, fmt="_", label=held_out, **bar)
    ax.set(
        xlim=(0, sizes[-1]), ylim=(0, 1), ylabel="share of draws that agree", xlabel=f"assigned items, of {sizes[-1]}"
    )
    tick_integers(ax.xaxis)
    add_legend(ax, loc="best")
    return ax
