"""Maps of the draws and of the items by their distances."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.encodings import item_embedding
from posterior_consensus.answers.membership import item_uncertainty
from posterior_consensus.answers.particles import Particles
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix, losses_of_draws
from posterior_consensus.ensemble.items import NOISE, numbers_for_colours
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.losses.partition_losses import vi
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.plots import colours, frame, grammar
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.plots.strips import FARTHEST
from posterior_consensus.results.display import counted, short_name_of
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.results.words import Words
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import is_integer
from posterior_consensus.runtime.tolerances import ROUNDING, SAME
from posterior_consensus.sources.conversion import as_draws, as_source, own_partition, partition_of

_TURNS = 8  # in which the groups of draws are drawn, so that none covers the others
_AREA, _LARGEST = 14.0, 1200.0  # areas of one draw, and of all draws if equal, in square points
_IN_LEGEND = 150.0  # largest area in a legend, in square points
_LITTLE = 0.75  # share of the variation; maps of less carry a caution
_LEAST = 1e-18  # squared distance; below it, draws are equal
_SYMBOLS = {"horizontal": "X", "upper_vertical": "^", "lower_vertical": "v"}
_AREA_OF_ITEM = 16.0  # of a point, in square points; grows with the root of its number of items
_DIGITS = 9
_LONGEST = 16  # letters of a name
_NEXT, _FARTHER = 5.0, (18.0, 36.0, 60.0)  # points from a mark to its caption, without and with a line
_CLEAR, _OFF = 6.0, 2.0  # points between a caption and the middles of other marks, and of points
_STEPS = 30  # points of a line to a caption, which crosses no other caption
_ALONG = 200  # points of a line, in places for captions
_AROUND = np.array([(0, 1), (1, 0), (-1, 0), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])  # of a mark


class _Group(NamedTuple):
    """Draws with the same look."""

    rows: Positions
    colour: str
    marker: str
    name: str | None


@frame.in_small_print
def plot_draws_map(
    draws: Any,
    partition: Any = None,
    *,
    ball: CredibleBall | None = None,
    particles: Particles | None = None,
    n_draws: int = 400,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a map of the draws by their distances, with the partition and its credible ball.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        The draws.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition to mark, typically the consensus. By default the consensus of a summary, else the partition of `ball`,
        if there is one.
    ball : CredibleBall, optional
        Ball whose bounds are marked; draws outside it are hollow. Distances are then in its loss, else in variation of
        information.
    particles : Particles, optional
        Particles to mark by number; each draw has the colour of the nearest particle. Without a ball, distances are in
        their loss.
    n_draws : int
        Largest number of draws shown, evenly spaced along each chain.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `n_draws` is below 2, or draws or partition are invalid.
    TypeError
        If `ball` is not a CredibleBall, or `particles` are not Particles.

    See Also
    --------
    credible_ball : Compute a credible ball.
    particles : Represent the posterior by a few partitions.
    plot_items_map : Plot a map of the items.

    Notes
    -----
    The map is classical scaling (Torgerson): the two leading eigenvectors of -J D^2 J / 2, with D the distances of the
    draws shown and J the centring matrix. The partition, bounds and particles are added by Gower's formula [1]_,
    without changing the map. The axes' labels have the shares of the sum of positive eigenvalues. Below three quarters
    in all, a label warns that distant draws can coincide. The title has mean distances of the draws shown.

    Equal draws of a chain, or of a particle, are one point, with area proportional to their number; the legend has the
    scale. Beyond 10,000 items, distances use 10,000 random items; the label of the second axis notes it.

    References
    ----------
    .. [1] Gower (1968), Biometrika 55(3), 582-585. https://doi.org/10.1093/biomet/55.3.582

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.random.default_rng(1).integers(2, size=(2, 50, 6))
    >>> ax = pc.plot_draws_map(draws, [0, 0, 1, 1, 1, 1])
    >>> ax.get_aspect()
    1.0
    """
    partition = own_partition(draws, partition)
    draws = as_draws(draws, lacking=True)
    if ball is not None:
        frame.check_result("ball", ball, CredibleBall, "credible_ball")
    if not is_integer(n_draws) or n_draws < 2:
        raise ValueError(f"`n_draws` must be an integer from 2; got {n_draws!r}.")
    if particles is not None:
        frame.check_result("particles", particles, Particles, "particles")
    marks = _marks(draws, partition, ball, particles)
    metric = next((known.loss for known in (ball, particles) if known is not None), vi())
    shown = draws.take(_evenly(draws, n_draws))
    at, compared = shown.labels_only().of_some_items()
    marked = [canonical_labels(labels[at]) for _, labels in marks.values()]
    squares = losses_of_draws(np.arange(compared.n_draws), compared, metric) ** 2
    placed, added, shares = _scaled(squares, compared, marked, metric)
    wide, high = np.ptp(np.vstack([placed, added]), axis=0).tolist()
    ax = frame.new_axes(ax, figsize, 5.8, float(np.clip(1.4 + 3.4 * high / max(wide, SAME), 3.0, 4.4)))
    inside = np.ones(shown.n_draws, bool)
    if ball is not None:
        reached = loss_matrix(draws.as_labels(ball.partition)[np.newaxis], shown, metric)[0]
        inside = reached <= ball.radius * (1 + SAME) + ROUNDING
    groups = _by_chain(shown) if particles is None else _by_particle(shown, particles)
    first = np.argmax(squares <= _LEAST, axis=1)  # first of the equal draws
    _draw_groups(ax, groups, placed, inside, first, draws.samples.words.draw)
    if ball is not None and not inside.all():
        text = f"outside of the {ball.prob:.0%} ball"
        ax.scatter([], [], s=_AREA, linewidth=0.7, facecolor="none", edgecolor=colours.ink(), label=text)
    for (name, (symbol, _)), (x, y) in zip(marks.items(), added, strict=True):
        if isinstance(symbol, int):
            _draw_number(ax, symbol, x, y)
            continue
        area, colour = (190, colours.MARK) if symbol == "*" else (80, colours.ink())
        ax.scatter(x, y, area, colour, marker=symbol, edgecolor="white", linewidth=0.9, label=name, zorder=4)
    words, name = draws.samples.words, grammar.axis_label(short_name_of(metric), metric.unit)
    shares = shares.round(2)  # so that the parts that the labels have add up
    ax.set_xlabel(f"{name}, first axis: {shares[0]:.0%} of the variation")
    some = f"\ndistances over {at.size:,} of {draws.n_items:,} items" if at.size < draws.n_items else ""
    ax.set_ylabel(f"{name}, second axis: {shares[1]:.0%}{some}")
    if 0 < shares.sum() < _LITTLE:
        caution = f"{shares.sum():.0%} is shown: {words.draws} that are close can be far apart"
        frame.extend_label(ax, "x", f"\n{caution}")
    _as_map(ax)
    _say_apart(ax, np.sqrt(squares), groups, metric, words, "particle" if particles is not None else words.chain)
    if len(ax.get_legend_handles_labels()[0]) > 1:
        grammar.add_legend(ax)
    return ax


def _as_map(ax: Axes) -> None:
    """Use equal scales on two axes."""
    from matplotlib.ticker import MaxNLocator

    ax.margins(0.1, 0.15)
    ax.set_aspect("equal", adjustable="datalim")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def _say_apart(
    ax: Axes, distances: Floats, groups: list[_Group], metric: PartitionLoss, words: Words, group: str
) -> None:
    """Write the mean distances (N, N) of draws of one group and of different ones as the title."""
    of = np.empty(len(distances), np.intp)
    for k, one in enumerate(groups):
        of[one.rows] = k
    first, second = np.triu_indices(len(distances), 1)
    if not np.any(distances > ROUNDING):
        grammar.say(ax, f"all {words.draws} shown are the same")
        return
    own = of[first] == of[second]
    apart = [
        grammar.in_digits(float(distances[first[some], second[some]].mean()), 2, metric.unit) if some.any() else ""
        for some in (own, ~own)
    ]
    if all(apart):
        what = f"{words.draws} of one {group} are {apart[0]} apart on average"
        grammar.say(ax, f"{what}, of different {group}s {apart[1]}")
    elif any(apart):
        grammar.say(ax, f"two {words.draws} are {apart[0] or apart[1]} apart on average")


def _marks(
    draws: PartitionDraws, partition: Any, ball: CredibleBall | None, particles: Particles | None
) -> dict[str, tuple[str | int, npt.NDArray[np.int32]]]:
    """Partitions to mark, by name: symbol or number of the particle, and labels."""
    if partition is None and ball is not None:
        partition = ball.partition
    marks: dict[str, tuple[str | int, npt.NDArray[np.int32]]] = {}
    if partition is not None:
        marks["partition"] = "*", draws.as_labels(partition)
    if ball is not None and not draws.lacks_items:  # runs of some items are no place
        for name, kind in FARTHEST.items():
            marks[f"ball: {kind.removesuffix(' in the ball').removeprefix('farthest with ')}"] = (
                _SYMBOLS[name],
                draws.as_labels(getattr(ball, name)[0], "ball"),
            )
    for k, labels in enumerate([] if particles is None else particles.partitions):
        marks[f"particle {k}"] = k, draws.as_labels(labels, "particles")
    return marks


def _evenly(draws: PartitionDraws, n_draws: int) -> Positions:
    """At most `n_draws` rows, evenly spaced along each chain, and at least one of each chain."""
    each = max(1, n_draws // len(draws.samples.chains))
    return np.concatenate([rows[evenly_spaced(rows.size, each)] for rows in draws.samples.chains])


def _scaled(
    squares: Floats, shown: PartitionDraws, extra: list[npt.NDArray[np.int32]], metric: PartitionLoss
) -> tuple[Floats, Floats, Floats]:
    """Positions (N, 2) of draws from squared distances, and of further partitions (P, 2); the axes' shares."""
    means = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-(squares - means - means[:, np.newaxis] + means.mean()) / 2)
    positive = np.maximum(values, 0.0)
    positive[positive < ROUNDING * max(positive[-1], ROUNDING)] = 0.0
    two = np.argsort(-positive, kind="stable")[:2]
    roots = np.zeros(2)
    places = np.zeros((shown.n_draws, 2))
    roots[: two.size] = np.sqrt(positive[two])
    places[:, : two.size] = vectors[:, two] * roots[: two.size]
    places *= np.where(places[np.abs(places).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # eigenvectors have no sign
    total = positive.sum()
    shares = roots**2 / total if total > 0 else np.zeros(2)
    if not extra:
        return places, np.empty((0, 2)), shares
    to_draws = loss_matrix(np.stack(extra), shown, metric) ** 2
    scale = np.divide(1.0, roots**2, out=np.zeros(2), where=roots > 0)
    return places, (means - to_draws) @ places * scale / 2, shares


def _draw_number(ax: Axes, k: int, x: float, y: float) -> None:
    box = {"boxstyle": "circle", "facecolor": ax.get_facecolor(), "edgecolor": colours.ink()}
    ax.text(x, y, str(k), ha="center", va="center", fontsize=8, bbox=box, zorder=5)


def _by_chain(shown: PartitionDraws) -> list[_Group]:
    samples, n_chains = shown.samples, len(shown.samples.chains)
    labels = colours.chain_labels(samples.chain_names, samples.words.draws, samples.words.chain)
    if not samples.has_chains:
        labels = [samples.words.draws]
    return [
        _Group(rows, colours.chain_colour(k, n_chains), colours.chain_marker(k, n_chains), label)
        for k, (rows, label) in enumerate(zip(samples.chains, labels, strict=True))
    ]


def _by_particle(shown: PartitionDraws, particles: Particles) -> list[_Group]:
    partitions = np.stack([shown.as_labels(partition, "particles") for partition in particles.partitions])
    nearest = loss_matrix(partitions, shown, particles.loss).argmin(axis=0)
    n = len(partitions)
    names = [f"nearest to particle {k}" for k in range(n)] if n <= colours.MOST_CHAINS else [None] * n
    looks = [(colours.chain_colour(k, n), colours.chain_marker(k, n)) for k in range(n)]
    return [_Group(np.flatnonzero(nearest == k), *look, names[k]) for k, look in enumerate(looks)]


def _draw_groups(
    ax: Axes,
    groups: list[_Group],
    places: Floats,
    inside: Flags,
    first: Positions,
    draw: str,
) -> None:
    """Plot a point for equal draws of a group, with area proportional to their number, and a legend of areas."""
    parts = [(group, full, group.rows[inside[group.rows] == full]) for group in groups for full in (True, False)]
    counted_draws = [np.unique(first[rows], return_counts=True) for _, _, rows in parts]
    most = max(int(counts.max(initial=1)) for _, counts in counted_draws)
    area = min(_AREA, _LARGEST / most)
    style: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.6}
    n_turns = _TURNS if len(groups) > 1 else 1
    for turn in range(n_turns):
        for ((_, colour, marker, _), full, _), (at, counts) in zip(parts, counted_draws, strict=True):
            look = {"facecolor": colour if full else "none", "edgecolor": colour, "marker": marker, **style}
            x, y = places[at[turn::n_turns]].T
            ax.scatter(x, y, area * counts[turn::n_turns], **look)
    for _, colour, marker, name in groups:
        ax.scatter([], [], _AREA, facecolor=colour, edgecolor=colour, marker=marker, label=name, **style)
    for count in sorted({1, min(most, round(_IN_LEGEND / area))}) if most > 1 else ():
        label = counted(count, f"equal {draw}") if count > 1 else f"1 {draw}"
        ax.scatter([], [], area * count, facecolor="none", edgecolor=colours.NEUTRAL, label=label)
    if most * area > _IN_LEGEND:
        ax.scatter([], [], 0.0, label=f"(largest: {most:,} equal {draw}s)")


@frame.in_small_print
def plot_items_map(
    draws: Any,
    partition: Any = None,
    *,
    centred: bool = True,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot a map of the items by similarity, with each cluster and its exemplar named.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        The posterior.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition that colours the items, typically the consensus; by default the consensus of a summary.
    centred : bool
        As in :func:`item_embedding`: True for classical scaling; False for the singular value decomposition without
        centring, in which items with few co-members are near the origin.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If draws, partition or `figsize` are invalid.
    TypeError
        If `centred` is not a bool.

    See Also
    --------
    item_embedding : Compute the coordinates, on any number of axes.
    plot_draws_map : Plot a map of the draws.

    Notes
    -----
    Over all axes, the squared distance of two items is 2 (1 - PSM_ij). The map has the two axes of most variation, with
    their shares in the labels. Below three quarters in all, the title warns that dissimilar items can coincide. Items
    that are always co-clustered are one point, whose size grows with their number. The exemplar of a cluster is the
    item of greatest mean similarity to the rest of it. Next to it, a cluster is named with its size and its exemplar if
    there is room, large clusters first; a legend names them if there is not. A line joins the two clusters of largest
    mean similarity between their items, of the twelve largest.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_items_map(draws, [0, 0, 1, 1])
    >>> [text.get_text() for text in ax.texts]
    ['0.12', '0 (n = 2)\ntypical: item 0', '1 (n = 2)\ntypical: item 2']
    """
    source, partition = as_source(draws), partition_of(draws, partition)
    items = item_uncertainty(source, partition)
    labels = items.cluster.values
    embedding = item_embedding(source, n_axes=min(2, source.n_items), centred=centred)
    places = np.zeros((source.n_items, 2))
    places[:, : embedding.shape[1]] = embedding.values
    shares = np.zeros(2)
    shares[: embedding.shape[1]] = own_in(embedding, "share").values
    ax = frame.new_axes(ax, figsize, 6.4, 4.4)
    numbers = numbers_for_colours(items.names)
    _draw_stack(ax, places, labels, numbers)
    sizes = np.bincount(labels).tolist()
    names = frame.short_names(source.items.names[items.exemplars], _LONGEST)
    names = [f"{source.items.dim} {name}" if name.isdigit() else name for name in names]  # no cluster's number
    clusters = zip(frame.short_names(items.names, _LONGEST), sizes, names, strict=True)
    captions = [f"{cluster} (n = {size:,})\ntypical: {item}" for cluster, size, item in clusters]
    shares = shares.round(2)  # so that the parts that the labels have add up to what the title says
    ax.set_xlabel(f"similarity map, axis 1 ({shares[0]:.0%} of the variation)")
    ax.set_ylabel(f"axis 2 ({shares[1]:.0%})")
    _as_map(ax)
    exemplars = places[items.exemplars]
    nearest, similarity = _say_nearest(ax, source, labels, items.names, float(shares.sum()), exemplars)
    ends = exemplars[nearest]
    if nearest:
        ax.plot(*ends.T, ":", color=colours.ink(), linewidth=1.0, zorder=1)
        x, y = ends.mean(axis=0).tolist()
        box = grammar.behind_names(ax)
        falls = bool(np.prod(ends[1] - ends[0]) <= 0)  # so that the right of the line is above it
        beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "bbox": box}
        ax.annotate(f"{similarity:.2f}", (x, y), (4, 3 if falls else -3), va="bottom" if falls else "top", **beside)
    n_named = _draw_exemplars(ax, places, labels, numbers, items.exemplars, captions, ends)
    if n_named < len(sizes):
        exemplar = grammar.point("most typical item", "o", colours.NEUTRAL, markeredgecolor=colours.ink(), markersize=8)
        grammar.add_legend(ax, [*grammar.cluster_entries(labels, items.names, numbers), exemplar])
    return ax


def _draw_stack(ax: Axes, places: Floats, labels: npt.NDArray[np.int32], numbers: Integers) -> None:
    """Plot a point for the items of a cluster at one position."""
    rows = np.column_stack([labels, places.round(_DIGITS)])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    x, y = places[first].T
    frame.scatter_clusters(
        ax,
        x,
        y,
        numbers[labels[first]],
        s=_AREA_OF_ITEM * np.sqrt(counts),
        alpha=0.8,
        edgecolors=colours.ink(),
        linewidths=0.4,
    )


def _draw_exemplars(
    ax: Axes,
    places: Floats,
    labels: npt.NDArray[np.int32],
    numbers: Integers,
    exemplars: Positions,
    captions: list[str],
    ends: Floats,
) -> int:
    """Mark each cluster's exemplar, caption those with room, large clusters first, and return how many.

    Captions keep off the line between two `ends` if they can.
    """
    order = np.argsort(-np.bincount(labels), kind="stable")
    for k in order[::-1]:
        x, y = places[exemplars[[k]]].T
        edge, area = colours.ink(), 4 * _AREA_OF_ITEM
        frame.scatter_clusters(ax, x, y, numbers[[k]], s=area, edgecolor=edge, linewidth=1.0, zorder=4)
    ax.figure.canvas.figure.draw_without_rendering()  # which decides where the axes are, and their one scale
    room, middle_of_all = np.array(frame.extent(ax)), ax.get_window_extent().get_points().mean(axis=0)
    points = 72 / ax.figure.dpi * (ax.transData.transform(places) - middle_of_all)
    letter, line = 0.6 * frame.font_of_names(), 1.2 * frame.font_of_names()
    line_of = 72 / ax.figure.dpi * (ax.transData.transform(ends) - middle_of_all)
    along = np.linspace(line_of[0], line_of[1], _ALONG) if len(ends) else line_of
    marks, others = points[exemplars], np.append(np.unique(points.round(), axis=0), along, axis=0)
    taken, n_named = list[Floats](), 0
    for k in order.tolist():
        lines = captions[k].split("\n")
        size = np.array([letter * max(map(len, lines)), line * len(lines)])
        best = _free_place(marks[k], size, room, np.delete(marks, k, axis=0), others, taken)
        if best is None:
            continue
        away, middle, box = best
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "zorder": 5}
        if away > _NEXT:
            style["arrowprops"] = {"arrowstyle": "-", "color": colours.ink(), "linewidth": 0.6, "shrinkB": 4.0}
        ax.annotate(
            captions[k],
            places[exemplars[k]],
            middle - marks[k],
            fontsize=frame.font_of_names(),
            parse_math=False,
            **style,
        )
        taken.append(box)
        n_named += 1
    return n_named


def _free_place(
    mark: Floats, size: Floats, room: Floats, marks: Floats, points: Floats, taken: list[Floats]
) -> tuple[float, Floats, Floats] | None:
    """Where a caption of this size (2,) fits: its distance from the mark, its middle, and its corners (2, 2).

    It covers no mark and no other caption. Of such places within the axes, it is the nearest that covers no point, else
    the one that covers fewest.
    """
    found = []
    for away in (_NEXT, *_FARTHER):
        for direction in _AROUND:
            middle = mark + direction * (away + size / 2)
            box = np.stack([middle - size / 2, middle + size / 2])
            line = np.linspace(mark, middle, _STEPS)
            free = all(np.any((box[0] >= other[1]) | (box[1] <= other[0])) for other in taken)
            free = free and not any(_inside(line, other, 0.0).any() for other in taken)
            if free and np.all(np.abs(box) <= room / 2) and not _inside(marks, box, _CLEAR).any():
                found.append((int(_inside(points, box, _OFF).sum()), away, middle, box))
    return min(found, key=lambda place: place[:2])[1:] if found else None


def _inside(points: Floats, box: Floats, margin: float) -> Flags:
    """Which of the points (P, 2) are within a box, or as near to it as the margin."""
    inside: Flags = np.all((points > box[0] - margin) & (points < box[1] + margin), axis=1)
    return inside


def _say_nearest(
    ax: Axes, source: PairSource, labels: Labels, names: tuple[Hashable, ...], shown: float, places: Floats
) -> tuple[list[int], float]:
    """Write which two clusters have the largest mean similarity between their items as the title; return both.

    It says so if the map shows little of the variation, and if the `places` of other clusters (K, 2) are nearer.
    """
    sizes = np.bincount(labels)
    largest = [k for k in grammar.largest_of(sizes).tolist() if names[k] != NOISE]
    members = (labels[:, np.newaxis] == largest) / sizes[largest]
    between = np.tril(members.T @ source.product(members), -1)
    if len(largest) < 2:
        alone = f"one cluster of {counted(int(sizes[largest].sum()), 'item')}"
        grammar.say(ax, alone if largest else "no cluster: all items are noise")
        return [], 0.0
    one, other = np.unravel_index(int(between.argmax()), between.shape)
    nearest = [largest[other], largest[one]]
    first, second = frame.short_names([names[k] for k in nearest], _LONGEST)
    of = f"of the {len(largest)} largest clusters, " if sizes.size > grammar.MOST_NAMED else "clusters "
    what = source.words.either("similarity", "agreement")
    largest_mean = float(between[one, other])
    said = f"{of}{first} and {second} are most alike: mean {what} {largest_mean:.2f} (at the line)"
    if 0 < shown < _LITTLE:
        apart = np.linalg.norm(places[largest][:, np.newaxis] - places[largest], axis=2)
        closer = apart[np.triu_indices(len(largest), 1)].min() < apart[one, other]
        said += f"; others {'look' if closer else 'can look'} nearer, as the map shows {shown:.0%}"
    grammar.say(ax, said)
    return nearest, largest_mean
