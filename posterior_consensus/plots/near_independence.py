"""Plot of the discrepancy between the posterior and the product of its marginals."""

import numpy as np

from posterior_consensus.diagnostics.independence import NearIndependence
from posterior_consensus.plots.colours import COLOURS, ink
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes

_BINS = 40
_NAMES = {"posterior": "posterior, other draws", "product of marginals": "product of marginals"}


def plot_near_independence(independence: NearIndependence, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot histograms of the distances within the posterior and to the product of its marginals.

    Parameters
    ----------
    independence : NearIndependence
        Result of :func:`diagnostics.near_independence`.
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
        If `independence` is not a NearIndependence, or `ax` not an Axes.

    See Also
    --------
    diagnostics.near_independence : Run the test.

    Notes
    -----
    Histograms are of the squared maximum mean discrepancy between random quarters of the draws: between draws, and
    between draws and draws with shuffled items. They coincide if items are nearly independent, as in Figure 6 (a) of
    Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> independence = pc.diagnostics.near_independence(np.random.default_rng(1).integers(2, size=(100, 6)))
    >>> ax = pc.diagnostics.plot_near_independence(independence)
    >>> ax.get_ylabel()
    'resamples'
    """
    check_result("independence", independence, NearIndependence, "diagnostics.near_independence")
    from matplotlib.ticker import MaxNLocator

    ax = new_axes(ax, figsize, 5.6, 3.2)
    values = independence.resampled
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1.0, _BINS + 1)
    for (name, text), colour in zip(_NAMES.items(), (COLOURS[2], COLOURS[9]), strict=True):
        ax.hist(values.sel(compared_with=name).values, edges.tolist(), color=colour, alpha=0.55, label=text)
    ax.axvline(0.0, color=ink(), linewidth=0.7, linestyle=":")
    ax.set(xlabel="squared maximum mean discrepancy of draws from ...", ylabel="resamples")
    ax.set_title(f"p-value {independence.p_value:.2g} for independent items", loc="left", fontsize="medium")
    ax.xaxis.set_major_locator(MaxNLocator(5))  # small numbers have long labels
    add_legend(ax, loc="best")
    return ax
