"""Matrices of pairs of items: the posterior similarity matrix, by chain too, and the difference of two posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.compare import LEVEL, PosteriorComparison
from posterior_consensus.answers.partial_partition import PartialPartition
from posterior_consensus.ensemble.chains import largest_difference
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import Clusters, Items, name_or
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import (
    DIFFERENCES,
    MARK,
    NEUTRAL,
    SIMILARITIES,
    as_cmap,
    check_matplotlib,
    ink,
    ink_on,
)
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.rows import Along, check_order, label_along
from posterior_consensus.results.display import counted_items, plural
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.results.words import Words
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws, as_source, own_partition
from posterior_consensus.sources.matrices import as_pair_similarity

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

_UNASSIGNED = -1  # number of unassigned items
_PALE = 0.35  # opacity of unassigned items
_ABOVE_STRIP = 18.0  # points from the matrix to its title
_LEAST_ROOM = 5.0  # points per cluster; with less, outlines are thinner
_MOST_PARTED = 30  # clusters; the lines between more would cover the matrix
_SIDE = 2.6  # inches per matrix of a chain
_MOST_COLUMNS = 4
_MOST_FOR_OPTIMAL_ORDER = 1000  # items; beyond, its cubic time is noticeable
_ONE_SIDED = 0.2  # share of the differences that are on one side, from which a title says on which
_LEAST_SCALE = 0.05  # smaller differences must not look large


@overload
def plot_psm(
    draws: Any,
    partition: Any = None,
    *,
    by: None = None,
    order: Any = "clusters",
    cmap: Any = SIMILARITIES,
    figsize: Size = None,
    ax: Axes | None = None,
    axes: None = None,
) -> Axes: ...
@overload
def plot_psm(
    draws: Any,
    partition: Any = None,
    *,
    by: Literal["chain"],
    order: Any = "clusters",
    cmap: Any = SIMILARITIES,
    figsize: Size = None,
    ax: None = None,
    axes: Any = None,
) -> Grid: ...
@frame.in_small_print
def plot_psm(
    draws: Any,
    partition: Any = None,
    *,
    by: Literal["chain"] | None = None,
    order: Any = "clusters",
    cmap: Any = SIMILARITIES,
    figsize: Size = None,
    ax: Axes | None = None,
    axes: Any = None,
) -> Axes | Grid:
    """Plot the posterior similarity matrix, of all draws or of every chain, with the clusters of a partition outlined.

    Parameters
    ----------
    draws : PartitionDraws, PairSimilarity, any posterior that summarize() takes, or DataArray of a similarity matrix
        Draws, or a similarity matrix of shape (n_items, n_items); with ``by="chain"``, draws. If runs lack items, a
        pair of items that are never in the same run is shown with similarity 0.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition that orders the items and is outlined, typically the consensus. By default the consensus of a summary;
        without one, items are ordered by average linkage. Unassigned items of a :class:`PartialPartition` are last and
        paler.
    by : "chain", optional
        Plot a matrix for every chain, in one order and on one scale. Lines separate the clusters of `partition` if they
        are at most 30; more lines would cover the matrix, and are left out.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, with similar items next to each other; as in the data; or along a coordinate of
        the items (its name or its values), such as time or position along a genome. In the last two orders, each
        stretch of consecutive items of one cluster is outlined.
    cmap : str or matplotlib.colors.Colormap
        Colours of the similarities from 0 to 1.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on. Only for one matrix.
    axes : array of matplotlib.axes.Axes, optional
        Axes for each chain, with ``by="chain"``; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The colour bar is ``ax.images[0].colorbar``. With ``by="chain"``, an ndarray of axes of shape (n_chains,).

    Raises
    ------
    ValueError
        If the matrix is invalid for :func:`as_pair_similarity`, the partition does not label its items, or draws, `by`,
        `order`, `cmap` or `figsize` are invalid. Also if `ax` is given with ``by="chain"``, `axes` without it, or the
        number of `axes` is not the number of chains.
    TypeError
        If `ax` or `axes` are not Axes.

    See Also
    --------
    posterior_similarity_matrix : Compute the matrix.
    plot_items_map : Plot a map of the items by similarity.

    Notes
    -----
    Clusters are in the order of their labels, the items of a cluster in the order of an average linkage tree of 1 -
    PSM. The axes name items if there is room, else clusters or values of the coordinate. The strip above has the
    colours of the clusters, as in :func:`plot_data`.

    The title has two means of the similarity: over the pairs of different items in the same cluster of `partition`
    ("within"), and over the pairs in different clusters ("between"). Without a partition, it is the mean over all
    pairs. Beyond 10,000 items, the matrix and the means are of a random sample of 2,000, the same at each call; the
    axis label notes it.

    With ``by="chain"``, items are ordered by the matrix over all chains. The title has the largest difference between
    two chains, as in :func:`diagnose`, and circles mark its pair of items. Weights are ignored, so that chains are
    compared as sampled. Beyond 10,000 items, only pairs shown are compared.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_psm(draws, [0, 0, 1, 1])
    >>> title = ax.set_title("Which items belong together?")
    >>> chains = np.array([[[0, 0, 1, 1], [0, 0, 0, 1]] * 5, [[0, 1, 1, 1], [0, 1, 0, 1]] * 5])
    >>> first, second = pc.plot_psm(chains, by="chain")  # one panel for each chain
    """
    partition = own_partition(draws, partition)
    if by is None:
        if axes is not None:
            raise ValueError("`axes` are for a matrix of each chain, by='chain'; give `ax` for one matrix.")
        try:
            source = as_pair_similarity(draws) if _is_matrix(draws) else as_source(draws)
        except (TypeError, ValueError) as error:
            if not _is_matrix(draws):
                raise
            raise type(error)(str(error).replace("`data`", "`draws`")) from None
        return _plot_one(source, partition, order, as_cmap(cmap), figsize, ax)
    if by != "chain":
        raise ValueError(f"`by` must be 'chain' or None; got {by!r}.")
    if ax is not None:
        raise ValueError("`ax` is for one matrix; with by='chain' give `axes`, one for each chain.")
    return _plot_chains(as_draws(draws, lacking=True), partition, order, as_cmap(cmap), figsize, axes)


def _plot_one(source: PairSource, partition: Any, order: Any, cmap: Colormap, figsize: Size, ax: Axes | None) -> Axes:
    items, at = source.items, frame.some_of(source.n_items, frame.MOST_OF_PAIRS, frame.SOME_OF_PAIRS)
    shown = source if at.size == source.n_items else source.of_items(at)
    along = check_order(order, items)
    values = shown.in_fixed_order().shared_similarity
    clusters = None if partition is None else _clusters_of(partition, source)
    labels = None if clusters is None else clusters.labels[at]
    in_row = item_order(values, labels, None if along is None else along.rank[at])
    ax = frame.new_axes(ax, figsize, 5.6, 4.8, layout="compressed")
    image = ax.imshow(values[np.ix_(in_row, in_row)], cmap=cmap, vmin=0.0, vmax=1.0, interpolation="nearest")
    grammar.add_bar_of_height(ax, image, source.words.similarity)
    ax.set(xlabel=frame.with_share(items.dim, at.size, items.n_items), ylabel=items.dim)
    in_view = None if clusters is None else _draw_clusters(ax, clusters._replace(labels=clusters.labels[at[in_row]]))
    _name_sides(ax, along, items, at[in_row], in_view)
    _say_contrast(ax, values, labels, source.words.either("similarity", "agreement"))
    return ax


def _say_contrast(ax: Axes, values: Floats, labels: npt.NDArray[np.int32] | None, similarity: str) -> None:
    """Write the mean similarities of pairs within and between the clusters, or of all pairs, as the title."""
    pad, whose = (None, "clusters") if labels is None else (_ABOVE_STRIP, "outlines")
    labels = np.zeros(len(values), np.int32) if labels is None else labels
    within = labels[:, np.newaxis] == labels
    np.fill_diagonal(within, False)
    between = labels[:, np.newaxis] != labels
    if within.any() and between.any():
        means = f"{np.nanmean(values[within]):.2f} within {whose}, {np.nanmean(values[between]):.2f} between"
        grammar.say(ax, f"{similarity} {means}", pad=pad)
    elif len(values) > 1:
        grammar.say(ax, f"mean {similarity} of two items: {np.nanmean(values[within | between]):.2f}", pad=pad)


def _name_sides(
    ax: Axes, along: Along | None, items: Items, at: Positions, clusters: tuple[Positions, list[str]] | None
) -> None:
    """Name the items of a matrix, their clusters or values of their coordinate on both axes."""
    ax.tick_params(length=0)
    if along is not None:
        label_along(ax, "xy", along, items, at)
    else:
        frame.label_row(ax, "xy", items.named(at), clusters)


def _plot_chains(draws: PartitionDraws, partition: Any, order: Any, cmap: Colormap, figsize: Size, axes: Any) -> Grid:
    labels, words = None if partition is None else draws.clusters_of(partition).labels, draws.samples.words
    at = frame.some_of(draws.n_items, frame.MOST_OF_PAIRS, frame.SOME_OF_PAIRS)
    plain = draws.as_sampled() if at.size == draws.n_items else draws.as_sampled().of_items(at)
    along, chains = check_order(order, draws.items), plain.samples.chains
    labels = np.zeros(at.size, np.int32) if labels is None else canonical_labels(labels[at])
    in_row = item_order(plain.shared_similarity, labels, None if along is None else along.rank[at])
    axes = _chain_axes(axes, figsize, len(chains), below=0.0 if along is None else 0.5)
    difference = largest_difference(plain)
    marked = [int(np.flatnonzero(in_row == item)[0]) for item in difference.items] if difference.size > 0 else []
    for ax, rows in zip(axes, chains, strict=True):
        values = plain.take(rows).shared_similarity[np.ix_(in_row, in_row)]
        image = draw_parted(ax, values, labels[in_row], cmap, 0.0, 1.0)
        ax.set_title(f"{words.chain} {draws.samples.chain[rows[0]]}", fontsize="medium", parse_math=False)
        ax.set(xticks=[], yticks=[])
        if marked:
            for ring, width in (("#FFFFFF", 3.0), ("#222222", 1.2)):  # visible on dark and on pale pairs
                look: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": ring}
                ax.plot(marked, marked[::-1], "o", markeredgewidth=width, clip_on=False, **look)
        if along is not None:
            ax.set_xlabel(draws.items.dim)
            label_along(ax, "x", along, draws.items, at[in_row])
    axes[0].set_ylabel(draws.items.dim, fontsize="small")
    name = axes[0].get_xlabel() or draws.items.dim
    axes[0].set_xlabel(frame.with_share(name, at.size, draws.n_items), fontsize="small")
    grammar.add_colour_bar(list(axes), image, words.similarity, pad=0.02)
    if marked:
        first, second = draws.items.named(at[list(difference.items)])
        noun = plural(str(draws.items.dim)) or draws.items.dim
        title = f"largest difference {difference.size:.2f}: {noun} {first} and {second}, "
        title += f"{words.chains} {difference.chains[0]} and {difference.chains[1]}"
        axes[0].figure.suptitle(title.replace("$", r"\$"), fontsize="medium", wrap=True)
    return axes


def _chain_axes(axes: Any, figsize: Size, n_chains: int, below: float) -> Grid:
    """The user's axes, or new axes in rows of four, with `below` inches below each for names."""
    if axes is not None:
        return frame.grid_axes(axes, figsize, 1, n_chains, 0, 0)[0]
    n_columns = min(n_chains, _MOST_COLUMNS)
    n_rows = -(-n_chains // n_columns)
    width, height = max(_SIDE * n_columns + 0.9, 4.2), (_SIDE + below) * n_rows + 0.6
    grid = frame.grid_axes(None, figsize, n_rows, n_columns, width, height, layout="compressed").ravel()
    for unused in grid[n_chains:]:
        unused.remove()
    return grid[:n_chains]


def _draw_clusters(ax: Axes, clusters: Clusters) -> tuple[Positions, list[str]]:
    """Outline runs of items of a cluster, add a strip of colours above, and return their lengths and names."""
    from matplotlib.patches import Rectangle

    labels, names, numbers, _ = clusters
    assigned = numbers[labels] != _UNASSIGNED
    if not assigned.all():
        image = ax.images[0]
        ax.set_facecolor(image.cmap(0.0))  # pale means low similarity in any Matplotlib style
        image.set_alpha(np.where(np.logical_and.outer(assigned, assigned), 1.0, _PALE))
    edges = frame.runs_of(labels)
    first, sizes, own = edges[:-1], np.diff(edges), labels[edges[:-1]]
    width = 1.3 if frame.length_of(ax, "xy") / sizes.size >= _LEAST_ROOM else 0.5
    for start, size in zip(first[numbers[own] >= 0], sizes[numbers[own] >= 0], strict=True):
        corner = (start - 0.5, start - 0.5)
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=MARK, linewidth=width))
    frame.colour_runs(ax, edges - 0.5, numbers[own], 1.01, 1.035, clip_on=False)
    return sizes, [str(names[k]) for k in own]


def _is_matrix(draws: Any) -> bool:
    """Whether this is a similarity matrix, by its dimensions, and not draws."""
    return isinstance(draws, xr.DataArray) and any(str(dim).endswith("_bis") for dim in draws.dims)


def _clusters_of(partition: Any, source: PairSource) -> Clusters:
    """Clusters of a partition of the source's items; unassigned items, or noise, are in the last."""
    if not isinstance(partition, PartialPartition):
        return source.clusters_of(partition)
    last = int(partition.labels.max()) + 1
    labels = partition.labels.where(partition.labels >= 0, last)
    source.as_labels(labels)  # raises an error for other items
    names, numbers = (*partition.names[:last], "unassigned"), np.append(np.arange(last), _UNASSIGNED)
    return Clusters(np.asarray(source.items.reordered(labels)), names, numbers, None)


def draw_parted(ax: Axes, values: Floats, labels: npt.NDArray[np.int32], cmap: Any, low: float, high: float) -> Any:
    """Plot a matrix of pairs of items, with lines between clusters, and return the image."""
    image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
    edges = np.flatnonzero(np.diff(labels)) + 0.5
    (colour,) = ink_on(cmap(image.norm(np.zeros(1))))
    for edge in edges if edges.size < _MOST_PARTED else ():
        ax.axhline(edge, color=colour, linewidth=0.4)
        ax.axvline(edge, color=colour, linewidth=0.4)
    return image


def item_order(values: Floats, labels: npt.NDArray[np.int32] | None, rank: Positions | None = None) -> Positions:
    """Order items by rank, or else by cluster, and within a cluster by average linkage of a similarity matrix."""
    from scipy.cluster import hierarchy  # summaries import this file, and plot nothing yet
    from scipy.spatial.distance import squareform

    if rank is not None:
        return np.argsort(rank)
    pieces = []
    labels = np.zeros(len(values), np.int32) if labels is None else labels
    for k in range(labels.max() + 1):
        members = np.flatnonzero(labels == k)
        if members.size > 2:
            distances = squareform(1.0 - values[np.ix_(members, members)], checks=False)
            tree = hierarchy.linkage(distances, "average", optimal_ordering=members.size <= _MOST_FOR_OPTIMAL_ORDER)
            leaves = members[hierarchy.leaves_list(tree)]
            # A tree has no direction: use the direction nearer to the order of the data.
            members = leaves if np.corrcoef(leaves, np.arange(leaves.size))[0, 1] >= 0 else leaves[::-1]
        pieces.append(members)
    return np.concatenate(pieces)


@frame.in_small_print
def plot_posterior_comparison(
    comparison: PosteriorComparison,
    partition: Any = None,
    *,
    order: Any = "clusters",
    n_items: int = 12,
    cmap: Any = DIFFERENCES,
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot the difference between two similarity matrices, and the items whose co-members differ most.

    Parameters
    ----------
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition that orders the items, typically the consensus of either posterior; lines separate at most 30
        clusters. Without it, items are ordered by average linkage on the mean of the two matrices.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, as in the data, or along a coordinate of the items (its name or its values),
        such as time or position along a genome.
    n_items : int
        Number of items to show in the second plot.
    cmap : str or matplotlib.colors.Colormap
        Colours from pairs that are co-clustered more often in the first posterior, through pairs without a difference,
        to pairs that are co-clustered more often in the second.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the matrix and for the items; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The colour bar is ``axes[0].images[0].colorbar``.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If `partition`, `n_items`, `cmap` or `figsize` are invalid, or there are not two `axes`.

    See Also
    --------
    compare_posteriors : Compute the comparison.

    Notes
    -----
    Colours are the second posterior's similarities minus the first's, in the order in which :func:`compare_posteriors`
    was given them; the label of the colour bar has their names. Error bars are two Monte Carlo standard errors. Grey
    strokes are the differences expected from Monte Carlo errors alone.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> a, b = [[0, 0, 0, 1], [0, 0, 1, 1]] * 8, [[0, 0, 1, 1]] * 16
    >>> axes = pc.compare_posteriors(a, b, n_particles=1, random_seed=1).plot()
    >>> [text.get_text() for text in axes[1].get_yticklabels()]
    ['2', '0', '1', '3']
    """
    check_matplotlib()
    check_count("n_items", n_items)
    colours = as_cmap(cmap)
    difference = comparison.difference
    items = Items.along(difference, str(difference.dims[0]))
    given = None if partition is None else items.clusters_of(partition)
    labels = np.zeros(items.n_items, np.int32) if given is None else given.labels
    grid = frame.grid_axes(axes, figsize, 1, 2, 9.6, 4.4, stacked=(1.25, 1.0), width_ratios=(1.25, 1.0)).ravel()
    along = check_order(order, items)
    mean = comparison.similarity.mean(comparison.similarity.dims[:1]).values
    in_row = item_order(mean, labels, None if along is None else along.rank)
    words = comparison.words
    in_order = difference.values[np.ix_(in_row, in_row)]
    _draw_matrix(grid[0], in_order, labels[in_row], colours, comparison.names, words)
    grid[0].set(xlabel=items.dim, ylabel=items.dim)
    clusters = None
    if given is not None and along is None:
        clusters = np.bincount(labels), [str(name) for name in given.names]
    _name_sides(grid[0], along, items, in_row, clusters)
    if clusters is not None and grid[0].get_xlabel().endswith("by cluster"):
        frame.extend_label(grid[0], "x", " of the given partition")
    _draw_items(grid[1], comparison, n_items)
    _say_differences(grid, comparison, labels, [] if given is None else [str(name) for name in given.names])
    grammar.legend_above(grid[1])
    return grid


def _say_differences(
    grid: Grid, comparison: PosteriorComparison, labels: npt.NDArray[np.int32], names: list[str]
) -> None:
    """Write by how much similarities differ, and how many items differ beyond chance, as titles.

    With `names` of clusters, the first has the cluster within which, or the two between which, they differ most.
    """
    pairs = comparison.difference.values[np.triu_indices(len(comparison.difference), 1)]
    similarities = comparison.words.either("similarities", "agreements")
    second = frame.shortened(str(comparison.names[1]), frame.LONGEST)
    if pairs.size:
        apart = float(np.abs(pairs).mean())
        differ = f"{similarities} differ by {apart:.2f} on average"
        if len(names) > 1:
            where, pairs = _where_they_differ(comparison.difference.values, labels, names)
            differ += f", most {where}, by {np.abs(pairs).mean():.2f}"
        mean = float(pairs.mean())
        side = f"{'higher' if mean > 0 else 'lower'} for {second}"
        side = side if abs(mean) > _ONE_SIDED * np.abs(pairs).mean() else "some are higher, some lower"
        grammar.say(grid[0], f"{differ}; {side}" if apart > SAME else f"{similarities} are the same")
    table, chance = comparison.items, comparison.words.either("Monte Carlo error", "chance")
    largest, p_values = float(table["difference"].max()), own_in(table, "p_value").values
    n_differ, of = int(np.sum(p_values <= LEVEL)), counted_items(p_values.size, str(table["difference"].dims[0]))
    if largest <= SAME:
        said = "no item differs"
    elif np.isnan(p_values).any():
        said = f"items differ at most by {largest:.2f}"
    elif n_differ:
        said = f"{n_differ:,} of {of} differ beyond {chance} (p ≤ {LEVEL:g}), at most by {largest:.2f}"
    else:
        said = f"no item differs beyond {chance} (p > {LEVEL:g})"
    grammar.say(grid[1], said)


def _where_they_differ(difference: Floats, labels: npt.NDArray[np.int32], names: list[str]) -> tuple[str, Floats]:
    """The cluster within which, or the two between which, items differ most on average, and their differences."""
    first, second = np.triu_indices(labels.size, 1)
    pairs, blocks = difference[first, second], np.sort(np.stack([labels[first], labels[second]]), axis=0)
    block = np.ravel_multi_index(tuple(blocks), (len(names),) * 2)
    means = np.bincount(block, np.abs(pairs)) / np.maximum(np.bincount(block), 1)
    one, other = np.unravel_index(int(means.argmax()), (len(names),) * 2)
    where = f"within cluster {names[one]}" if one == other else f"between clusters {names[one]} and {names[other]}"
    return where, pairs[block == means.argmax()]


def _draw_matrix(
    ax: Axes,
    values: Floats,
    labels: npt.NDArray[np.int32],
    colours: Any,
    names: tuple[str, str],
    words: Words,
) -> None:
    most = max(_LEAST_SCALE, float(np.abs(values).max()))
    image = draw_parted(ax, values, labels, colours, -most, most)
    first, second = frame.short_names(names, frame.LONGEST)
    grammar.add_colour_bar(ax, image, f"{words.similarity}:\n{second} minus {first}")


def _draw_items(ax: Axes, comparison: PosteriorComparison, n_items: int) -> None:
    table = comparison.to_dataframe().head(n_items)
    room = frame.extent(ax)[1] / len(table)  # points per item
    places = np.arange(len(table))
    errors = grammar.ERRORS * table["mcse"].fillna(0.0).to_numpy()
    x = table["difference"]
    small = min(4.0, 0.2 * room)
    ax.errorbar(
        x, places, None, errors, "o", label="observed", color=ink(), elinewidth=1.0, capsize=small / 2, markersize=small
    )
    by_chance = f"expected {comparison.words.either('from Monte Carlo error', 'by chance')} alone"
    ax.plot(
        table["by_chance"],
        places,
        "|",
        color=NEUTRAL,
        markersize=0.7 * min(room, 12.0),
        markeredgewidth=2.0,
        label=by_chance,
    )
    ax.set_yticks(places, frame.short_names(table.index, frame.LONGEST), fontsize="small", parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    xlabel = f"mean absolute difference of\nits {comparison.words.either('posterior similarities', 'agreement')}"
    ax.set_xlabel(grammar.with_errors(xlabel, errors, comparison.words))
    ax.set_ylabel(f"{counted_items(len(table), name_or(table.index.name, 'item'))} that differ most")
