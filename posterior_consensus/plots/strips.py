"""Strips of items, one per partition, coloured by cluster: particles, fitted modes, a credible ball."""

import itertools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.credible import BALL_BOUNDS, CredibleBall
from posterior_consensus.answers.fitted_modes import PartitionModes
from posterior_consensus.answers.particles import Particles
from posterior_consensus.ensemble.items import NOISE, NUMBER_OF_NOISE, Items
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import check_matplotlib, colours_of, ink, patch_style, patterns_of
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.rows import item_row, name_row
from posterior_consensus.results.display import counted, counted_items, name_of, percent, short_name_of, with_error
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Floats, Positions

HEIGHT = 0.36  # of half a strip, with strips 1 apart
_BOUNDS = "farthest in the ball", "farthest with fewest clusters", "farthest with most clusters"
FARTHEST = dict(zip(BALL_BOUNDS, _BOUNDS, strict=True))  # what the bounds of a ball are, by the names of their fields
_FILLED = 0.55  # share of the height that titles and labels of several lines leave to captions
_FAINTEST = 0.08  # opacity of the draws of the last mode
_COLUMN = 2.6  # of the font's size: width of a column of shares
_MOST_SHARES = 3  # modes whose shares are written next to a chain


def draw_strips(
    ax: Axes,
    partitions: Sequence[xr.DataArray],
    captions: Sequence[str],
    by: str,
    order: Any,
    strengths: Sequence[Floats] | None = None,
    noise_from: int | None = None,
) -> Positions:
    """Plot partitions in the first rows, each row with a caption; return the items shown, left to right.

    Clusters have the colour of the first partition's cluster matched to them. By cluster, items are ordered by their
    cluster in the first partition, which the axis calls `by`, then in each of the others. If there is no room for all
    clusters, the largest are shown and those whose co-members change most between the first and other partitions. Items
    fade into the page as their `strengths` (n,) in a partition decrease from 1 to 0. Clusters from `noise_from` on are
    items of noise.
    """
    items = Items.along(partitions[0], str(partitions[0].dims[0]))
    first, *rest = (_with_noise(partition.values, noise_from) for partition in partitions)
    strips = [first, *(numbered_like(labels, first) for labels in rest)]
    names = [str(k) for k in range(max(int(labels.max()) + 1 for labels in strips))]
    if any((labels < 0).any() for labels in strips):
        strips = [np.where(labels < 0, len(names), labels).astype(np.int32) for labels in strips]
        names.append(NOISE)
    return draw_numbered(ax, items, strips, names, captions, f"cluster of the {by}", order, strengths)


def _with_noise(labels: Labels, noise_from: int | None) -> Labels:
    """Labels (n,) with -1 for noise."""
    return labels if noise_from is None else np.where(labels < noise_from, labels, -1).astype(np.int32)


def _labels_of_modes(modes: PartitionModes) -> list[xr.DataArray]:
    """Labels (n,) of each mode, with -1 for noise, and clusters from 0 without gaps."""
    if modes.is_noise is None:
        return list(modes.labels)
    marked = np.where(modes.is_noise, -1, modes.labels)
    return [
        mode.copy(data=np.unique([-1, *row], return_inverse=True)[1][1:] - 1)
        for mode, row in zip(modes.labels, marked, strict=True)
    ]


def draw_numbered(
    ax: Axes,
    items: Items,
    strips: Sequence[Labels],
    names: Sequence[str],
    captions: Sequence[str],
    by: str,
    order: Any,
    strengths: Sequence[Floats] | None = None,
) -> Positions:
    """Plot strips of cluster numbers with given names, like :func:`draw_strips`; noise is grey."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import Rectangle

    first, numbers = strips[0], np.where(np.array(names) == NOISE, NUMBER_OF_NOISE, np.arange(len(names)))
    changes = np.mean([_share_changed(first, other) for other in strips[1:]] or [np.zeros(first.size)], axis=0)
    row = item_row(ax, items, first, order, then=strips[1:], certainty=-changes, doubted="least stable")
    for place, labels in enumerate(strips):
        shown = labels[row.at]
        alpha = None if strengths is None else strengths[place][row.at]
        _draw_strip(ax, place, to_rgba_array(colours_of(numbers[shown]), alpha), interpolation="nearest")
        for start, end in pairwise(frame.runs_of(shown).tolist()) if row.patterned else ():
            cluster = int(numbers[shown[start]])
            if patterns_of(np.array([cluster]))[0]:
                ax.add_patch(Rectangle((start - 0.5, place - HEIGHT), end - start, 2 * HEIGHT, **patch_style(cluster)))
    ax.set_ylim(len(captions) - 0.5, -0.5)
    name_row(ax, row, names, by)
    n_lines = max(caption.count("\n") + 1 for caption in captions)
    room = _FILLED * frame.extent(ax)[1] / len(captions) / n_lines  # points of a line
    frame.set_ticks(ax, "y", range(len(captions)), captions, min(room, float(rcParams["font.size"])))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return row.at


def _draw_strip(ax: Axes, place: int, values: npt.NDArray[Any], **style: Any) -> Any:
    """Plot a strip of numbers (n,) or colours (n, 4), and return the image."""
    extent = -0.5, len(values) - 0.5, place + HEIGHT, place - HEIGHT
    return ax.imshow(values[np.newaxis], extent=extent, aspect="auto", **style)


def _share_changed(one: Labels, other: Labels) -> Floats:
    """Share (n,) of each item's co-members that change from one partition to another."""
    cells = np.unique(one.astype(np.int64) * (int(other.max()) + 1) + other, return_inverse=True)[1].ravel()
    common = np.bincount(cells)[cells]
    changed: Floats = 1 - common / (np.bincount(one)[one] + np.bincount(other)[other] - common)
    return changed


@frame.in_small_print
def plot_credible_ball(
    ball: CredibleBall, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the partition and the bounds of a credible ball as strips of items coloured by cluster.

    Parameters
    ----------
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the partition, as in the data, or along a coordinate of the items (its name or
        its values), such as time or position along a genome.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    credible_ball : Compute the ball.
    plot_draws_map : Plot a map of the draws with the ball.

    Notes
    -----
    The bounds are the draws in the ball that are farthest from the partition: of all (horizontal), of those with the
    fewest clusters (upper vertical) and of those with the most (lower vertical).

    By default, items are ordered by their cluster in the partition, then in each bound from the top. Clusters of a
    bound have the colour of the partition's cluster matched to them (most items in common over all one-to-one
    matchings), else the next colours. Beyond twenty colours, patterns are added. If several bounds have the same
    distance, the first is plotted. In the order of clusters, the axis needs 12 points per cluster. With less, it shows
    the largest clusters and those whose co-members change most, with at most six evenly spaced items each. Beyond
    20,000 items, a random sample of 20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1]] * 6 + [[0, 0, 0, 0]] * 2 + [[0, 1, 2, 3]] * 2
    >>> ax = pc.credible_ball(draws, [0, 0, 1, 1]).plot()
    >>> len(ax.images)
    4
    """
    ax = frame.new_axes(ax, figsize, 7.2, 2.9)
    partitions, captions = [ball.partition], [f"partition\n{counted(ball.n_clusters[0], 'cluster')}"]
    for (name, kind), number in zip(FARTHEST.items(), ball.n_clusters[1:], strict=True):
        bound = getattr(ball, name)
        partitions.append(bound[0])
        distance = grammar.in_digits(float(own_in(bound, "distance")[0]), 3, ball.loss.unit)
        ties = f" ({len(bound)} tie)" if len(bound) > 1 else ""
        clusters = f"clusters: {number:,}" if kind.endswith(" clusters") else counted(number, "cluster")
        captions.append(f"{kind.removesuffix(' clusters')}\n{clusters}, {distance}{ties}")
    draw_strips(ax, partitions, captions, "partition", order, noise_from=ball.noise_from)
    radius, draws = grammar.in_digits(ball.radius, 3, ball.loss.unit), ball.words.draws
    grammar.say(ax, f"{ball.prob:.0%} of the {draws} are within {radius} of the partition ({name_of(ball.loss)})")
    return ax


@frame.in_small_print
def plot_particles(
    particles: Particles, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the particles as strips of items, with their weights and differences.

    Parameters
    ----------
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the heaviest particle, as in the data, or along a coordinate of the items (its
        name or its values), such as time or position along a genome.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    particles : Compute the particles.
    plot_alluvial : Plot the common items of the particles' clusters.
    plot_draws_map : Plot a map of the draws with the particles.

    Notes
    -----
    Items are ordered by their cluster in the heaviest particle, then in each of the others. Clusters have the colour of
    the heaviest particle's cluster matched to them (most items in common over all one-to-one matchings).
    The bars below show how much an item's co-members change from particle to particle: with C_k(i) the cluster of item
    i in particle k, the mean over pairs of particles, weighted by the product of their weights, of

        1 - n_kl(i) / m_kl(i),

    where n_kl(i) items are in both clusters and m_kl(i) in either. It is 0 if an item's co-members never change.

    In the order of clusters, the axis needs 12 points per cluster. With less, it shows the largest clusters and those
    whose co-members change most, with at most six evenly spaced items each. Beyond 20,000 items, a random sample of
    20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> found = pc.particles([[0, 0, 1, 1]] * 6 + [[0, 1, 0, 1]] * 4, 2, random_seed=1, progressbar=False)
    >>> ax = found.plot()
    >>> [tick.get_text().replace(chr(10), ", ") for tick in ax.get_yticklabels()][:2]
    ['particle 0: 2 clusters, weight 0.6 (MCSE 0.3)', 'particle 1: 2 clusters, weight 0.4 (MCSE 0.3)']
    """
    partitions = particles.partitions.values
    words, dim = particles.words, str(particles.partitions.dims[1])
    weights = zip(particles.weights.values.tolist(), particles.weights_mcse.values.tolist(), strict=True)
    captions = [
        f"particle {k}: {counted(int(number), 'cluster')}\n"
        f"weight {f'{weight:.2f}' if np.isnan(error) else with_error(weight, error, words=words)}"
        for k, (number, (weight, error)) in enumerate(zip(particles.n_clusters.values, weights, strict=True))
    ]
    several = len(partitions) > 1
    if several:
        captions.append("share of co-\nmembers that change")
    ax = frame.new_axes(ax, figsize, 7.2, 1.2 + 0.5 * len(captions))
    given, noise_from = list(particles.partitions), particles.noise_from
    shown = draw_strips(ax, given, captions, "first particle", order, noise_from=noise_from)
    distance, loss = grammar.in_digits(particles.distance, 2, particles.loss.unit), short_name_of(particles.loss)
    stand = "partitions stand" if several else "partition stands"
    said = f"{len(partitions)} {stand} for all {words.draws}, at a mean {loss} of {distance}"
    if several:
        floor = len(partitions) + HEIGHT
        changes = _changes(partitions, particles.weights.values)
        edges = np.arange(shown.size + 1) - 0.5
        ax.stairs(floor - 2 * HEIGHT * changes[shown], edges, baseline=floor, fill=True, color=ink(), alpha=0.6)
        ends = [floor, floor - 2 * HEIGHT]
        ax.hlines(ends, -0.5, shown.size - 0.5, colors=ink(), linewidths=[0.8, 0.4])
        for end, text in zip(ends, "01", strict=True):
            place = (1.0, end), (3, 0), ax.get_yaxis_transform()
            ax.annotate(text, *place, textcoords="offset points", va="center", fontsize="small")
        said += f"; {np.sum(changes > 0):,} of {counted_items(changes.size, dim)} change co-members"
    grammar.say(ax, said)
    return ax


def _changes(partitions: npt.NDArray[np.int32], weights: Floats) -> Floats:
    """Share (n,) of each item's co-members that change from particle to particle."""
    total, changes = 0.0, np.zeros(partitions.shape[1])
    for k, other in itertools.combinations(range(len(partitions)), 2):
        weight = weights[k] * weights[other]
        total += weight
        changes += weight * _share_changed(partitions[k], partitions[other])
    return changes / total if total > 0 else changes


@frame.in_small_print
def plot_modes(modes: PartitionModes, *, order: Any = "clusters", figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the partition of each mode as a strip of items, and the mode of each draw by chain.

    Parameters
    ----------
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
        Axes of the items, with a row for each mode, and of the draws, with a row for each chain.

    Raises
    ------
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
    Items of noise are grey. On the right, a strip for each chain has its draws in order, so a chain's stay in a mode is
    a block: a draw has the grey of its mode, or one between the greys of modes that share it. Next to a strip are the
    shares of at most three modes. Many clusters or items are sampled as in :meth:`Particles.plot`.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
    >>> axes = pc.consensus.fit_modes(draws, 2, random_seed=1).plot()
    >>> [tick.get_text().replace(chr(10), ", ") for tick in axes[0].get_yticklabels()]
    ['mode 0: weight 0.65, 2 clusters, noise 0.026', 'mode 1: weight 0.35, 2 clusters, noise 0.05']
    """
    check_matplotlib()
    height = 1.7 + 0.7 * modes.n_modes
    items, draws = frame.grid_axes(
        axes, figsize, 1, 2, 8.4, height, stacked=(1.5, 1.0), width_ratios=(2.0, 1.0)
    ).ravel()
    captions = [
        f"mode {k}: weight {share:.2f}\n{counted(int(number), 'cluster')}\nnoise {noise:.2g}"
        for k, (share, number, noise) in enumerate(zip(modes.shares, modes.n_clusters, modes.noise, strict=True))
    ]
    strengths = modes.memberships.max(modes.memberships.dims[-1:]).values
    draw_strips(items, _labels_of_modes(modes), captions, "first mode", order, list(strengths))
    frame.extend_label(items, "x", "\nnoise: rate of random labels")
    samples = Samples.along(modes.surprise)
    shares = _draw_chains(draws, np.nan_to_num(modes.responsibilities.values), samples)
    least, most = (percent(end) for end in (shares[:, 0].min(), shares[:, 0].max()))
    whose = (
        f"{least} to {most} of a {samples.words.chain}" if len(shares) > 1 else f"{least} of the {samples.words.draws}"
    )
    grammar.say(items, f"{counted(modes.n_modes, 'mode')}: mode 0 has {whose}")
    return np.array([items, draws])


def _draw_chains(ax: Axes, responsibilities: Floats, samples: Samples) -> Floats:
    """Plot a strip for each chain with the modes of its draws as greys; return their shares (n_chains, n_modes)."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba
    from matplotlib.patches import Patch

    chains, n_modes = samples.chains, responsibilities.shape[1]
    shades = LinearSegmentedColormap.from_list("mode", [to_rgba(ink(), _FAINTEST), to_rgba(ink())])
    greys = np.linspace(1.0, 0.0, n_modes)
    for place, rows in enumerate(chains):
        _draw_strip(ax, place, responsibilities[rows] @ greys, cmap=shades, vmin=0, vmax=1)
    shares = np.array([responsibilities[rows].mean(axis=0) for rows in chains])
    ax.set(ylim=(len(chains) - 0.5, -0.5), xlabel=samples.words.draw, yticks=[])
    if len(chains) > 1:
        ax.set_ylabel(samples.words.chain)
        frame.label_some(ax, "y", np.array([str(name) for name in samples.chain_names]))
    if n_modes <= _MOST_SHARES and len(chains) * frame.font_of_names() < frame.extent(ax)[1]:
        for place, own in enumerate(shares):
            _write_beyond(ax, place, [f"{share:.2f}" for share in own])
        _write_beyond(ax, -0.5, [f"{k}" for k in range(n_modes)], up=0.8)
        _write_beyond(ax, -0.5, ["share of mode"], up=2.0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    looks = zip(greys, range(n_modes), strict=True)
    grammar.say(ax, f"mode of each {samples.words.draw}")
    grammar.legend_above(ax, [Patch(facecolor=shades(grey), edgecolor=ink(), label=f"mode {k}") for grey, k in looks])
    return shares


def _write_beyond(ax: Axes, place: float, columns: Sequence[str], up: float = 0.0) -> None:
    """Write columns of text to the right of the axes, at this height or `up`, of the font's size, above it."""
    for k, text in enumerate(columns):
        at = 3 + _COLUMN * frame.font_of_names() * k, up * frame.font_of_names()
        style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
        ax.annotate(text, (1.0, place), at, ax.get_yaxis_transform(), **style)
