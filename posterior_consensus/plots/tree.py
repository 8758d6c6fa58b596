"""One tree over layers as a picture: each node as wide as its number of items, and shaded by its support."""

from typing import Any

import numpy as np

from posterior_consensus.layers.tree_record import ConsensusTree
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import NEUTRAL, as_cmap, ink, ink_on, on_page, visible_on_page
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.results.display import counted, counted_items
from posterior_consensus.runtime.aliases import Floats, Integers

_WIDTH = 0.44  # of a node, in steps between layers
_BETWEEN = 0.012  # of the height, between leaves
_OUTLINE = 0.6  # points
_STEPS = 24  # of the outline of a branch
_BRANCH = 0.45  # opacity
_FEW = 5  # items; with fewer, a node's support depends on each of them
_LEAST_SUPPORT = 0.5  # with a colour of its own


@frame.in_small_print
def plot_tree(tree: ConsensusTree, *, cmap: Any = "viridis", figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the tree from coarse layers on the left to fine ones on the right.

    Parameters
    ----------
    cmap : str or matplotlib.colors.Colormap
        Colours of the support, paler on a dark page. By default "viridis".
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `cmap` or `figsize` is invalid.

    See Also
    --------
    consensus_tree : Find the tree.
    LayerStability.plot : Plot partitions of layers that need not be nested.

    Notes
    -----
    Nodes and branches are as high as their number of items, and have the colour of their support: the mean Jaccard
    similarity to the most similar cluster of a draw. Support below 0.5 has one colour. A node has its number where it
    begins, if there is room. A line leads to the number of the least supported one of at least five items, or of all if
    all have fewer, if it is too thin for its number. As each cluster is within one of the coarser
    layer, no branches cross. The figure has what a clustering tree has [1]_, in the order of the tree.

    References
    ----------
    .. [1] Zappia and Oshlack (2018), GigaScience 7(7), giy083. https://doi.org/10.1093/gigascience/giy083

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> runs = [[0, 0, 0, 1, 1, 1]] * 4 + [[0, 0, 1, 2, 2, 2], [0, 0, 1, 1, 2, 2]] * 2
    >>> tree = pc.consensus_tree(pc.as_runs(runs, groups=[0.5] * 4 + [1.0] * 4), random_seed=1)
    >>> ax = tree.plot()
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['0.5', '1.0']
    """
    colours = visible_on_page(as_cmap(cmap))
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    nodes, n_layers = tree.nodes, len(tree.layers)
    parent, size, first, last, support = (nodes[name].values for name in ("parent", "size", "first", "last", "support"))
    low, high = _ends_of_nodes(tree, parent, size)
    down = float(np.clip(2.0 + 0.16 * np.sum(last == n_layers - 1), 3.4, 9.0))
    ax = frame.new_axes(ax, figsize, float(np.clip(2.4 + 0.75 * n_layers, 4.2, 9.0)), down)
    left, right = first - _WIDTH / 2, last + _WIDTH / 2
    corners = np.stack([left, low, right, low, right, high, left, high], axis=1).reshape(-1, 4, 2)
    limits = Normalize(_LEAST_SUPPORT, 1.0)
    looks, points = colours(limits(support)), frame.extent(ax)[1] / high.max()
    outline: dict[str, Any] = {"linewidths": _OUTLINE, "edgecolors": NEUTRAL}
    shown = PolyCollection(list(corners), array=support, cmap=colours, norm=limits, **outline)
    ax.add_collection(shown)
    for node, begin in _begins_of_branches(parent, size, low):
        x = first[node] - 1 + _WIDTH / 2, first[node] - _WIDTH / 2
        _draw_branch(ax, x, (begin, low[node]), size[node], looks[node])
    few, dim = size < _FEW, str(tree.partitions.dims[1])
    doubted = np.flatnonzero(~few | few.all())
    least = int(doubted[support[doubted].argmin()])
    _name_nodes(ax, first, low, high, looks, least)
    ax.set(xlim=(-0.4, n_layers - 0.6), ylim=(float(high.max()) + _OUTLINE / points, 0.0), yticks=[], xlabel=tree.dim)
    ax.set_ylabel(counted_items(tree.partitions.shape[1], dim))
    shown_names = frame.short_names(tree.layers, 12)
    ax.set_xticks(range(n_layers), shown_names, parse_math=False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    n_first, n_last = (np.sum((first <= layer) & (last >= layer)) for layer in (0, n_layers - 1))
    ends = shown_names[0], shown_names[-1]
    split = f"{counted(int(n_first), 'cluster')} at {ends[0]} split into {n_last:,} at {ends[1]}"
    same = f"the same {counted(int(n_first), 'cluster')} in all layers"
    before = support[doubted[first[doubted] < first[least]]]
    until = f" up to {shown_names[first[least] - 1]}" if before.size else ""
    weakest = f"at least {before.min():.2f}{until}; " if before.size else ""
    lowest = f"least {support[least]:.2f}, node {least} at {shown_names[first[least]]}"
    of = f" of {_FEW} items or more" if few.any() and not few.all() else ""
    grammar.say(ax, f"{split if n_last > n_first else same}; support{of} {weakest}{lowest}")
    grammar.add_colour_bar(
        ax, shown, "support (mean Jaccard)", extend="min" if support.min() < _LEAST_SUPPORT else "neither"
    )
    return ax


def _ends_of_nodes(tree: ConsensusTree, parent: Integers, size: Integers) -> tuple[Floats, Floats]:
    """Ends of each node: leaves below each other with gaps, others in the middle of their leaves."""
    is_leaf = ~np.isin(np.arange(parent.size), parent)
    gap = _BETWEEN * size[is_leaf].sum()
    tops = np.cumsum(np.where(is_leaf, size + gap, 0.0))  # numbers of nodes are in the order of the tree
    low, high = tops - size - gap, tops - gap
    for node in range(parent.size - 1, -1, -1):
        if not is_leaf[node]:
            parts = np.flatnonzero(parent == node)
            middle = (low[parts].min() + high[parts].max()) / 2
            low[node], high[node] = middle - size[node] / 2, middle + size[node] / 2
    return low, high


def _begins_of_branches(parent: Integers, size: Integers, low: Floats) -> list[tuple[int, float]]:
    """Each node with a parent, and where its branch leaves this."""
    found, free = [], low.copy()
    for node in np.flatnonzero(parent >= 0).tolist():
        found.append((node, float(free[parent[node]])))
        free[parent[node]] += size[node]
    return found


def _draw_branch(ax: Axes, x: tuple[float, float], y: tuple[float, float], height: float, colour: Any) -> None:
    along = np.linspace(0.0, 1.0, _STEPS)
    curve = y[0] + (y[1] - y[0]) * along**2 * (3 - 2 * along)
    across = x[0] + (x[1] - x[0]) * along
    ax.fill_between(across, curve, curve + height, color=colour, alpha=on_page(_BRANCH), linewidth=0)


def _name_nodes(ax: Axes, first: Integers, low: Floats, high: Floats, looks: Any, least: int) -> None:
    """Write the number of each node that is high enough, and next to the `least` supported one if it is not."""
    points = frame.extent(ax)[1] / high.max()
    font = frame.font_of_names()
    named = np.flatnonzero(points * (high - low) > font)
    if least not in named:
        side = 1 if first[least] == 0 else -1  # there is no room left of the first layer
        place: Any = {"xytext": (16 * side, 14), "ha": "left" if side > 0 else "right", "fontsize": font}
        place["textcoords"] = "offset points"
        line = {"arrowstyle": "-", "color": ink(), "linewidth": 0.8, "shrinkA": 0.0, "shrinkB": 0.0}
        middle = (low[least] + high[least]) / 2
        ax.annotate(str(least), (first[least] - _WIDTH / 2, middle), arrowprops=line, **place)
    for node, colour in zip(named.tolist(), ink_on(looks[named]), strict=True):
        ax.text(
            first[node], (low[node] + high[node]) / 2, str(node), ha="center", va="center", fontsize=font, color=colour
        )
