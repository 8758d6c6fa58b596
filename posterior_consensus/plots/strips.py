"""Strips of items, one per partition, coloured by cluster."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.plots.colours import colours_of, patch_style, patterns_of
from posterior_consensus.plots.frame import Axes, runs_of
from posterior_consensus.plots.rows import item_row, name_row

HEIGHT = 0.36  # of half a strip, with strips 1 apart


def draw_strips(
    ax: Axes,
    partitions: Sequence[xr.DataArray],
    captions: Sequence[str],
    by: str,
    order: Any,
    strengths: Sequence[Floats] | None = None,
) -> npt.NDArray[np.intp]:
    """Plot partitions in the first rows, each row with a caption; return the items shown, left to right.

    Clusters have the colour of the first partition's cluster matched to them. By cluster, items are ordered by their
    cluster in the first partition, which the axis calls `by`, then in each of the others. If there is no room for all
    clusters, the largest are shown and those whose co-members change most between the first and other partitions. Items
    fade into the page as their `strengths` (n,) in a partition decrease from 1 to 0.
    """
    first, items = partitions[0].values, Items.along(partitions[0], str(partitions[0].dims[0]))
    strips = [first, *(numbered_like(partition.values, first) for partition in partitions[1:])]
    names = [str(k) for k in range(max(int(labels.max()) + 1 for labels in strips))]
    return draw_numbered(ax, items, strips, names, captions, f"cluster of the {by}", order, strengths)


def draw_numbered(
    ax: Axes,
    items: Items,
    strips: Sequence[Labels],
    names: Sequence[str],
    captions: Sequence[str],
    by: str,
    order: Any,
    strengths: Sequence[Floats] | None = None,
) -> npt.NDArray[np.intp]:
    """Plot strips of cluster numbers with given names, like :func:`draw_strips`."""
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import Rectangle

    first = strips[0]
    changes = np.mean([change(first, other) for other in strips[1:]] or [np.zeros(first.size)], axis=0)
    row = item_row(ax, items, first, order, then=strips[1:], certainty=-changes, doubted="least stable")
    for place, labels in enumerate(strips):
        shown = labels[row.at]
        alpha = None if strengths is None else strengths[place][row.at]
        ax.imshow(
            to_rgba_array(colours_of(shown), alpha)[np.newaxis],
            extent=(-0.5, shown.size - 0.5, place + HEIGHT, place - HEIGHT),
            aspect="auto",
            interpolation="nearest",
        )
        for start, end in pairwise(runs_of(shown).tolist()) if row.patterned else ():
            cluster = int(shown[start])
            if patterns_of(np.array([cluster]))[0]:
                ax.add_patch(Rectangle((start - 0.5, place - HEIGHT), end - start, 2 * HEIGHT, **patch_style(cluster)))
    ax.set_ylim(len(captions) - 0.5, -0.5)
    name_row(ax, row, names, by)
    ax.set_yticks(range(len(captions)), captions)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return row.at


def change(one: Labels, other: Labels) -> Floats:
    """Share (n,) of each item's co-members that change from one partition to another."""
    cells = np.unique(one.astype(np.int64) * (int(other.max()) + 1) + other, return_inverse=True)[1].ravel()
    common = np.bincount(cells)[cells]
    changed: Floats = 1 - common / (np.bincount(one)[one] + np.bincount(other)[other] - common)
    return changed
