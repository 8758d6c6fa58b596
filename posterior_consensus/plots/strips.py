"""Partitions as strips of items one under another, a colour for each cluster."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.axes import MOST_IN_ROW, Axes, extent, label_row, matched, some_of, with_share
from posterior_consensus.plots.colours import colours_of, ink, is_patterned, patch_style, patterns_of, repeats

HEIGHT = 0.36  # of half a strip, where strips are 1 apart
_MOST_CLUSTERS = 50  # parted by lines; the lines of more would cover the strips


def draw_strips(ax: Axes, partitions: Sequence[xr.DataArray], captions: Sequence[str], by: str) -> npt.NDArray[np.intp]:
    """Draw partitions in the first of the rows, which have a caption each; return the order of the items drawn.

    Clusters have the colour of the first partition's cluster with which they are matched. Items are ordered by their
    cluster in the first partition, then in each of the others. Lines part the clusters of the first, which the axis
    calls `by`.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    first, n_rows = partitions[0].values, len(captions)
    strips = [first, *(matched(partition.values, first) for partition in partitions[1:])]
    items = Items.along(partitions[0].reset_coords(drop=True), str(partitions[0].dims[0]))
    at = some_of(first.size, MOST_IN_ROW, MOST_IN_ROW)
    order = at[np.lexsort([labels[at] for labels in reversed(strips)])]
    patterned = is_patterned(extent(ax)[0], int(first.max()) + 1)
    for row, labels in enumerate(strips):
        colours = np.array([to_rgb(colour) for colour in colours_of(labels[order])])
        ax.imshow(
            colours[np.newaxis],
            extent=(-0.5, order.size - 0.5, row + HEIGHT, row - HEIGHT),
            aspect="auto",
            interpolation="nearest",
        )
        for start, end in _runs(labels[order]) if patterned else []:
            cluster = int(labels[order[start]])
            if patterns_of(np.array([cluster]))[0]:
                ax.add_patch(Rectangle((start - 0.5, row - HEIGHT), end - start, 2 * HEIGHT, **patch_style(cluster)))
    more = repeats(max(int(labels.max()) + 1 for labels in strips), patterned)
    if first.max() < _MOST_CLUSTERS:
        edges = np.flatnonzero(np.diff(first[order])) + 0.5
        ax.vlines(edges, -0.5, n_rows - 0.5, colors=ink(), linewidths=0.8, linestyles=":")
    ax.set(xlim=(-0.5, order.size - 0.5), ylim=(n_rows - 0.5, -0.5))
    ax.set_xlabel(f"{with_share(items.dim, order.size, first.size)}, by cluster of the {by}{more}")
    ax.set_yticks(range(n_rows), captions)
    label_row(ax, "x", items.named(order))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return order


def _runs(labels: npt.NDArray[np.integer]) -> list[tuple[int, int]]:
    """Where each run of equal labels starts and ends."""
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), labels.size]
    return list(itertools.pairwise(edges))
