"""Plot of fitted modes: their partitions, and each draw's responsibilities."""

from typing import Any

import numpy as np

from posterior_consensus.answers.fitted_modes import PartitionModes
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.plots.colours import ink
from posterior_consensus.plots.frame import Grid, Size, add_colour_bar, check_result, grid_axes, label_clusters
from posterior_consensus.plots.strips import HEIGHT, draw_strips
from posterior_consensus.results.display import counted


def plot_modes(modes: PartitionModes, *, order: Any = "clusters", figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the partition of each mode as a strip of items, and the responsibilities of the modes for each draw.

    Parameters
    ----------
    modes : PartitionModes
        Result of :func:`consensus.fit_modes`.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the first mode, as in the data, or along a coordinate of the items (its name
        or its values), such as time or position along a genome.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array_like of 2 matplotlib.axes.Axes, optional
        Axes for items and for draws; by default those of a new figure.

    Returns
    -------
    ndarray of 2 matplotlib.axes.Axes
        Axes of the items and of the draws, with a row for each mode.

    Raises
    ------
    TypeError
        If `modes` is not a PartitionModes.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    consensus.fit_modes : Fit the modes.
    plot_alluvial : Plot the common items of the partitions, ``modes.labels``.

    Notes
    -----
    Items are ordered by their cluster in the first mode, then in each of the others. Clusters have the colour of the
    first mode's cluster matched to them (most items in common over all one-to-one matchings). An item fades as the
    membership in its cluster falls; membership is 1 if draws around the mode differ from its partition by noise only.
    A draw's darkness (brightness on a dark page) is the responsibility. Draws of a chain are in order, so a chain's
    stay in a mode is a block. Many clusters or items are sampled as in :func:`plot_particles`.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
    >>> axes = pc.consensus.plot_modes(pc.consensus.fit_modes(draws, 2, random_seed=1))
    >>> [tick.get_text().replace(chr(10), ", ") for tick in axes[0].get_yticklabels()]
    ['share 0.65, 2 clusters, noise 0.026', 'share 0.35, 2 clusters, noise 0.05']
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    check_result("modes", modes, PartitionModes, "fit_modes")
    height = 1.2 + 0.6 * modes.n_modes
    items, draws = grid_axes(axes, figsize, 1, 2, 8.4, height, name="axes", width_ratios=[2, 1])[0]
    captions = [
        f"share {share:.2f}\n{counted(int(number), 'cluster')}\nnoise {noise:.2g}"
        for share, number, noise in zip(modes.shares, modes.n_clusters, modes.noise, strict=True)
    ]
    strengths = modes.memberships.max("consensus_cluster").values
    draw_strips(items, list(modes.labels), captions, "first mode", order, list(strengths))
    samples = Samples.along(modes.surprise)
    shown = np.nan_to_num(modes.responsibilities.values)[np.concatenate(samples.chains)]
    shades = LinearSegmentedColormap.from_list("responsibility", [to_rgba(ink(), 0.06), to_rgba(ink())])
    for place, responsibilities in enumerate(shown.T):
        extent = -0.5, len(shown) - 0.5, place + HEIGHT, place - HEIGHT
        image = draws.imshow(responsibilities[np.newaxis], cmap=shades, vmin=0, vmax=1, extent=extent, aspect="auto")
    draws.set(ylim=items.get_ylim(), yticks=[], xlabel="draw")
    if len(samples.chains) > 1:
        sizes = np.array([rows.size for rows in samples.chains])
        label_clusters(draws, "x", sizes, [str(name) for name in samples.chain_names], "chain")
        draws.vlines(np.cumsum(sizes)[:-1] - 0.5, *draws.get_ylim(), colors=ink(), linewidths=0.8, linestyles=":")
    draws.tick_params(which="both", length=0)
    draws.spines[:].set_visible(False)
    add_colour_bar(draws, image, "responsibility")
    return np.array([items, draws])
