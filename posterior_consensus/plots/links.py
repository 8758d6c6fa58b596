"""Links between items, and numbers of clusters by size."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from posterior_consensus.answers.links import SURE, UNLIKELY, Links
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import BARS, MARK, NEUTRAL, PRIOR, ink, on_page
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.results.display import as_text, counted, plural, short_name_of
from posterior_consensus.runtime.aliases import Flags, Floats, Positions

_MOST_NAMED = 20  # links with names
_MOST_OF_FOUR = 15  # the same in each of four panels
_WIDE, _SHORT = 220.0, 14  # points of axes for long names, and most characters of names beside narrower ones
_NAMED = 0.6  # share of the width of narrow axes that names of pairs may have
_ABOVE = 1.9  # of the font's size: height of a row with its name above
_BINS = np.linspace(0.0, 1.0, 21)
_SCORE = "score (probability of a match)"
_LOOKS = "●\u00a0in\u00a0one\u00a0cluster  ○\u00a0in\u00a0different\u00a0ones"  # each in one line
_BESIDE = 0.22  # of a bar: from its middle to the interval, and to the prior
_LEFT = 0.85  # share of the height of axes that labels and titles of several lines leave
_SHADE = 0.3  # opacity
_SIZES_IN_TITLE = 2


@frame.in_small_print
def plot_links(links: Links | ScoredLinks, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the links by posterior similarity, and the most uncertain links with the names of their items.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : sequence of two matplotlib.axes.Axes, optional
        Axes to plot on, four for scored pairs; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, of shape (1, 2), or (2, 2) for scored pairs
        The axes with the plots.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If there are not two `axes`, or four for scored pairs. If the partition of scored pairs breaks a constraint.

    See Also
    --------
    links : Compute the links.
    plot_cluster_sizes : Plot the number of clusters of each size.

    Notes
    -----
    On the left, numbers of pairs by similarity, upwards for pairs that the partition joins, downwards for other
    pairs, on an axis of square roots. Uncertain links, with a similarity from 0.05 to 0.95, are shaded. The label has
    the number of pairs that `links` leaves out. On the right are at most 20 uncertain links, the nearest to 1/2: a
    filled point is a pair in one cluster of the partition, a hollow one another pair. Lines extend two Monte Carlo
    standard errors to either side. Names of more than 24 characters lose their middle.

    For scored pairs, the panels are: pairs by score; the number of clusters of each size; at most 15
    pairs that are decided against their score, the farthest from the threshold on top; and the 15 closest calls of
    :meth:`~results.ScoredLinks.review`, by the increase of the expected loss if they are decided the other way. A
    dotted line is at the threshold; scores beyond it, of pairs decided against them, are shaded. An increase with a
    triangle is a bound from above.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> axes = pc.links(draws, [0, 0, 1, 2]).plot()
    >>> [name.get_text() for name in axes[0, 1].get_yticklabels()]
    ['2 and 3', '0 and 1']
    """
    if isinstance(links, ScoredLinks):
        grid = frame.grid_axes(axes, figsize, 2, 2, 10.0, 8.0)
        draw_scores(grid[0, 0], links)
        draw_sizes(grid[0, 1], links)
        draw_against(grid[1, 0], links)
        draw_closest(grid[1, 1], links)
        return grid
    grid = frame.grid_axes(
        axes, figsize, 1, 2, 10.0, 4.4, stacked=(1.0, 1.2), width_ratios=(1.0, 1.5)
    )  # names need room
    similarity = links.pairs["similarity"].values
    _draw_pair_numbers(grid[0, 0], similarity, links.within, "pairs")
    grid[0, 0].axvspan(UNLIKELY, SURE, color=NEUTRAL, alpha=on_page(_SHADE), linewidth=0, zorder=0)
    left_out = counted(_n_other_pairs(links), "pair")
    grid[0, 0].set_xlabel(f"{links.words.similarity}\n(without {left_out} at {links.threshold:g} or less)")
    n_uncertain = int(np.sum((similarity >= UNLIKELY) & (similarity <= SURE)))
    uncertain = f"{n_uncertain:,} uncertain, from {UNLIKELY:g} to {SURE:g} (shaded)"
    grammar.say(grid[0, 0], f"{counted(int(np.sum(similarity > SURE)), 'pair')} above {SURE:g}, {uncertain}")
    _draw_uncertain(grid[0, 1], links)
    if axes is None:
        frame.fit_labels(grid)  # long names leave little width
    return grid


def _draw_pair_numbers(ax: Axes, probability: Floats, within: Flags, pairs: str) -> None:
    """Plot numbers of pairs by probability: above zero those in one cluster of the partition, below it the others."""
    both = [np.histogram(probability[own], _BINS)[0] for own in (within, ~within)]
    ax.stairs(both[0], _BINS, fill=True, color=NEUTRAL)
    ax.stairs(-both[1], _BINS, fill=True, color=NEUTRAL)
    ax.axhline(0.0, color=ink(), linewidth=0.8)
    frame.scale_counts(ax, f"number of {pairs}", *(max(1.0, float(numbers.max())) for numbers in both))
    sides = "\N{LEFTWARDS ARROW} separated   joined \N{RIGHTWARDS ARROW}"  # which are turned
    ax.set_ylabel(f"{ax.get_ylabel()}\n{sides}")
    ax.set_xlim(0.0, 1.0)


def _n_other_pairs(links: Links | ScoredLinks) -> int:
    """Number of pairs of items that the table of pairs leaves out."""
    n = links.cluster.size
    return n * (n - 1) // 2 - links.pairs.sizes["link"]


def draw_scores(ax: Axes, links: ScoredLinks) -> None:
    """Plot numbers of scored pairs by probability, with the threshold."""
    _draw_pair_numbers(ax, links.pairs["probability"].values, links.joined, "scored pairs")
    ax.set_xlabel(f"{_SCORE}\n(without {counted(_n_other_pairs(links), 'unscored pair')})")
    low, high = ax.get_ylim()
    for ends, edge in (((0.0, links.tau), high), ((links.tau, 1.0), low)):
        ax.fill_between(ends, 0.0, edge, color=NEUTRAL, alpha=on_page(_SHADE), linewidth=0, zorder=0)
    ax.set_ylim(low, high)
    grammar.mark_limit(ax, links.tau, f"threshold: {links.tau:.3g}")
    joined = links.against["joined"]
    counts = f"{joined.sum():,} joined, {(~joined).sum():,} separated"
    style: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "fontsize": "small"}
    ax.text(links.tau / 2, 0.9, f"{joined.sum():,} joined", va="top", **style)
    ax.text((1 + links.tau) / 2, 0.06, f"{(~joined).sum():,} separated", va="bottom", **style)
    grammar.say(ax, f"{counts} against their score (shaded)")


def draw_sizes(ax: Axes, links: ScoredLinks) -> None:
    """Plot the number of clusters of each size, on an axis of square roots."""
    counts = links.n_by_size
    at = np.arange(counts.size)
    ax.plot(at, counts, "D", color=ink(), markersize=5, clip_on=False)
    for x, count in enumerate(counts):
        ax.annotate(f"{count:,}", (x, count), (0, 5), textcoords="offset points", ha="center", fontsize="small")
    ax.set_xlim(-0.5, counts.size - 0.5)
    frame.scale_counts(ax, "number of clusters", float(counts.max()))
    ax.set_xticks(at, [size.replace(" or ", " or\n") for size in counts.index])
    ax.set_xlabel("records per cluster")
    grammar.say(ax, f"{counted(int(counts.sum()), 'cluster')}, {counts.iloc[0]:,} of {counted(1, 'record')}")


def draw_against(ax: Axes, links: ScoredLinks) -> None:
    """Plot the scores of pairs that are decided against them, joined or separated."""
    table = links.against
    shown = table.head(_most_rows(ax, _MOST_OF_FOUR)).iloc[::-1]
    _draw_pairs(ax, links, shown, shown["probability"].to_numpy(), np.ones(len(shown), np.bool_))
    some = f"{len(shown)} of " if len(shown) < len(table) else ""
    ax.set(xlim=(0.0, 1.0), xlabel=f"{_SCORE}\n{_LOOKS}")
    grammar.say(ax, f"{some}{counted(len(table), 'pair')} decided against the score")
    grammar.mark_limit(ax, links.tau, f"threshold: {links.tau:.3g}", at=0.0)


def draw_closest(ax: Axes, links: ScoredLinks) -> None:
    """Plot the increase of the expected loss if the closest calls are decided the other way."""
    shown = links.review(_most_rows(ax, _MOST_OF_FOUR)).iloc[::-1]
    _draw_pairs(ax, links, shown, shown["increase"].to_numpy(), shown["exact"].to_numpy())
    ax.set_xlim(min(0.0, shown["increase"].min()) if len(shown) else 0.0, None)
    bounds = "" if shown["exact"].all() else "; ◄ at most"
    ax.set(xlabel=f"increase of the expected {short_name_of(links.loss)} (pairs)\n{_LOOKS}{bounds}")
    if len(shown):
        increase, exact = shown[["increase", "exact"]].iloc[-1]
        change, bound = ("increases", "at most ") if increase >= 0 else ("reduces", "at least ")
        by = f"{'' if exact else bound}{abs(increase):.2g} pairs"
        grammar.say(ax, f"the closest call (top): deciding otherwise {change} the expected loss by {by}")
    else:
        grammar.say(ax, "no pair is decided")
    ax.locator_params(axis="x", nbins=5)  # small numbers have many digits


def _draw_pairs(ax: Axes, links: ScoredLinks, table: pd.DataFrame, at: Floats, exact: Flags) -> None:
    """Plot a point for each pair with the names of its records, filled if the partition joins them."""
    places = np.arange(len(table))
    for known, marker in ((exact, "o"), (~exact, "<")):
        _draw_decided(ax, at[known], places[known], table["joined"].to_numpy()[known], marker)
    _name_pairs(ax, places, table["first"], table["second"])


def _draw_decided(ax: Axes, x: Floats, y: Positions, joined: Flags, marker: str = "o") -> None:
    """Plot points of pairs, filled if the partition joins them."""
    style: dict[str, Any] = {
        "s": 14,
        "edgecolors": ink(),
        "linewidths": 1.0,
        "marker": marker,
        "clip_on": False,
        "zorder": 2,
    }
    for own, face in ((joined, ink()), (~joined, "none")):
        ax.scatter(x[own], y[own], facecolors=face, **style)


def _draw_uncertain(ax: Axes, links: Links) -> None:
    """Plot the links of similarity nearest to 1/2, with their names."""
    items = Items.along(links.cluster, str(links.cluster.dims[0]))
    similarity, within = links.pairs["similarity"].values, links.within
    nearest = np.argsort(np.abs(similarity - 0.5), kind="stable")
    nearest = nearest[(similarity[nearest] >= UNLIKELY) & (similarity[nearest] <= SURE)]
    shown = nearest[: _most_rows(ax, _MOST_NAMED, above=True)]
    shown = shown[np.argsort(similarity[shown], kind="stable")]
    at, mean = np.arange(shown.size), similarity[shown]
    error = grammar.ERRORS * np.nan_to_num(links.pairs["mcse"].values[shown])
    ax.hlines(at, np.maximum(mean - error, 0.0), np.minimum(mean + error, 1.0), colors=NEUTRAL, linewidths=1.2)
    _draw_decided(ax, mean, at, within[shown])
    _name_pairs(ax, at, *(items.named(links.pairs[end].values[shown]) for end in ("first", "second")))
    some = f"{shown.size} of " if shown.size < nearest.size else ""
    which = ", the nearest to 0.5" if some else ""
    label = grammar.with_errors(links.words.similarity, error, links.words)
    ax.set(xlim=(0.0, 1.0), xlabel=f"{label}\n{_LOOKS}")
    grammar.say(ax, f"{some}{counted(nearest.size, 'uncertain link')}{which}")
    grammar.mark_limit(ax, 0.5, "0.5", at=0.0)


def _most_rows(ax: Axes, most: int, *, above: bool = False) -> int:
    """Number of rows with names that are readable, at most `most`; names may be `above` points of narrow axes."""
    width, height = frame.extent(ax)
    line = (_ABOVE if above and width <= _WIDE else 1.15) * frame.font_of_names()
    return min(most, max(1, int(_LEFT * height / line)))


def _name_pairs(ax: Axes, places: Positions, first: Iterable[Any], second: Iterable[Any]) -> None:
    """Write the names of both items of each pair at its place."""
    width = frame.extent(ax)[0]
    letters = _NAMED * width / (0.55 * frame.font_of_names())
    longest = frame.LONGEST if width > _WIDE else min(_SHORT, int((letters - len(" and ")) / 2))
    given = list(map(as_text, chain(first, second)))
    above = width <= _WIDE and max(map(len, given), default=0) > longest
    short = frame.short_names(given, frame.LONGEST if above else longest)
    names = [f"{one} and {other}" for one, other in zip(short[: places.size], short[places.size :], strict=True)]
    ax.set_ylim(-0.7, max(places.size, 1) - 0.3 + 0.5 * above)
    if not above:
        frame.set_ticks(ax, "y", places, names)
        return
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    style: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
    for place, name in zip(places.tolist(), names, strict=True):
        ax.text(0.0, place + 0.5, name, parse_math=False, bbox=grammar.behind_names(ax), **style)


@frame.in_small_print
def plot_cluster_sizes(links: Links, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the number of clusters of each size: posterior, partition and, if given, prior.

    Parameters
    ----------
    links : Links
        The result of :func:`links`.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `links` is not a Links, or `ax` is not an Axes.

    See Also
    --------
    links : Compute the links.
    Links.plot : Plot the links by posterior similarity.

    Notes
    -----
    Bars are posterior means, and lines extend from the 5% to the 95% quantile. Diamonds are the numbers in the
    partition, and points the prior means. The vertical axis has square roots, on which single large clusters are seen
    beside many small ones.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> ax = pc.plot_cluster_sizes(pc.links(draws, [0, 0, 1, 2]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [2.0, 1.0]
    """
    frame.check_result("links", links, Links, "links")
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    table = links.sizes.isel(size=slice(None, -1))
    at = np.arange(table.sizes["size"])
    low, high, own = (table[name].values for name in ("lower", "upper", "partition"))
    draw_means(ax, at, table["mean"].values, low, high, own, links.words.mean)
    if table["prior"].notnull().all():
        ax.plot(at + _BESIDE, table["prior"], "o", color=PRIOR, markersize=5, linestyle="", label="prior mean")
    ax.set_xticks(at, [str(size).replace(" or ", " or\n") for size in table["size"].values])
    shown = table[["upper", "partition", "mean", "prior"]].to_array().values
    frame.scale_counts(ax, "number of clusters", float(np.nanmax(shown, initial=1.0)))
    ax.set_xlabel(f"{plural(str(links.cluster.dims[0])) or 'items'} per cluster")
    grammar.say(ax, _sizes_in_words(table["size"].values, own, low, high))
    grammar.add_legend(ax, loc="upper right")
    return ax


def _sizes_in_words(sizes: Any, own: Floats, low: Floats, high: Floats) -> str:
    """For which sizes, in order, the partition's number of clusters is outside the interval of the draws."""
    outside = np.flatnonzero((own > high) | (own < low)).tolist()
    if not outside:
        return "the partition is within every interval"
    clusters, interval = "clusters ", " the 90% interval"
    said = "the partition has "
    for k in outside[:_SIZES_IN_TITLE]:
        ends = " to ".join(dict.fromkeys(f"{end[k]:,.0f}" for end in (low, high)))
        side = "above" if own[k] > high[k] else "below"
        said += f"{own[k]:,.0f} {clusters}of size {sizes[k]} ({side}{interval}, {ends}), "
        clusters = interval = ""
    more = len(outside) - _SIZES_IN_TITLE
    return said.removesuffix(", ") + (f"; {counted(more, 'more size')} outside" if more > 0 else "")


def draw_means(ax: Axes, at: Positions, mean: Floats, low: Any, high: Any, own: Any, name: str) -> None:
    """Plot bars of means of this name with intervals, and next to them the partition's own numbers, at first places."""
    ax.bar(at, mean, width=0.8, color=BARS, label=name)
    style: dict[str, Any] = {"fmt": "none", "ecolor": ink(), "elinewidth": 1.4, "capsize": 3}
    ax.errorbar(at - _BESIDE, (low + high) / 2, (high - low) / 2, label="central 90% interval", **style)
    ax.plot(at[: own.size], own, "D", color=MARK, markersize=5, linestyle="", label="partition", clip_on=False)
    ax.set_ylim(0.0, None)
