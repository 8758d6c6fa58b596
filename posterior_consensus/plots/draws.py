"""The draws: traces, distances along the chains and under independence, and the decision graph of their density."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.answers.density import PartitionDensity, to_higher
from posterior_consensus.answers.partition_loss import partition_loss
from posterior_consensus.diagnostics.independence import NearIndependence
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.diagnostics.sequence import SequentialDistances
from posterior_consensus.diagnostics.verdict import RHAT_WANTED
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import (
    BARS,
    MOST_CHAINS,
    NEUTRAL,
    chain_colour,
    chain_line,
    chain_marker,
    check_matplotlib,
    ink,
    on_page,
)
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.results.display import short_name_of
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.tolerances import ROUNDING

_RANK_BINS = 20
_BEHIND = 0.25  # opacity of distances behind their means
_MEANS, _FEWEST_AVERAGED = 40, 5  # means along a chain, and draws of one
_OVERLAID = 0.5  # opacity of traces, of which none may hide the others; the last, which are dark, are behind
_POINT = 3.0  # size of a run's mark
_MOST_IN_ROW = 4  # rows of legend entries next to the first row
_WIDTH, _SUMMARY, _DISTANCE = 7.6, 1.25, 2.3  # inches: width of figures along chains, and heights of a row
_RESAMPLE_BINS = 40
_APART = 0.3  # of the width: distance of two histograms that have a name each
_COMPARED = ("posterior", "product of marginals")
_LINE = 1.5  # height of the name of a set, of the font's size
_ABOVE = 1.06  # of the height of the highest mode, for its diamond
_PROBS = (0.95, 0.5)


@frame.in_small_print
def plot_traces(diagnosis: Diagnosis, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the trace of every scalar summary, and the ranks of its values by chain.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes of shape (n_summaries, 2); by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_summaries, 2)
        Traces on the left, with a colour for each chain, and histograms of ranks on the right. Independent runs have no
        traces: the values of each group are sorted, and each is a point at the share of the group's runs below it.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong.

    See Also
    --------
    diagnose : Compute the diagnosis.

    Notes
    -----
    On the right, the values of all chains are ranked together, and each chain's ranks are counted in equal bins [1]_.
    Chains that agree have flat lines near 1, the expected share. A chain with more than its share of high values rises
    to the right. Tied values share their ranks evenly. The R-hat of the summary is above each row.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> axes = pc.diagnose(np.random.default_rng(1).integers(2, size=(2, 50, 6))).plot()
    >>> axes.shape
    (7, 2)
    """
    check_matplotlib()
    from matplotlib.lines import Line2D

    traces = diagnosis.traces
    names = traces["summary"].values.tolist()
    axes = frame.grid_axes(axes, figsize, len(names), 2, _WIDTH, _SUMMARY * len(names) + 0.9, width_ratios=(2, 1))
    chain = traces["chain"].values
    _, first = np.unique(chain, return_index=True)
    first = np.sort(first) if diagnosis.spread is None else first  # groups of runs are sorted by name, as elsewhere
    chains = [np.flatnonzero(chain == chain[at]) for at in first]
    for name, (left, right) in zip(names, axes, strict=True):
        one = traces.sel(summary=name)
        _draw_row(left, right, one.values, chains, ordered=diagnosis.spread is None)
        rhat = float(diagnosis.summaries["rhat"].sel(summary=name))
        left.set_title(grammar.axis_label(name, one["unit"].item()), loc="left", fontsize="small")
        if not np.isnan(rhat):
            right.set_title(f"R-hat {rhat:.3f}", loc="right", fontsize="small")
    for ax in axes.ravel():
        ax.tick_params(labelsize="small")
    if diagnosis.spread is None:
        frame.tick_integers(axes[-1, 0].xaxis)
    for ax in axes[:-1].ravel():
        ax.tick_params(labelbottom=False)
    words = diagnosis.words
    along = "draw of the chain" if diagnosis.spread is None else "share of the runs, sorted by value"
    if f"distance to far {words.draw}" in names:
        near = next(name for name in names if name.startswith("distance to")).removeprefix("distance to ")
        along += f"\nfar: farthest from the {near}; opposite: farthest from far; 0: the {words.draw} itself"
    axes[-1, 0].set_xlabel(along, fontsize="small")
    axes[-1, 1].set_xlabel(
        f"rank among the {words.draws} of all\n{words.chains}; height: count / expected", fontsize="small"
    )
    for ax in axes[-1]:
        grammar.break_labels(ax)
    axes[0, 0].figure.suptitle(_agreement_in_words(diagnosis), fontsize="medium", wrap=True)
    if 1 < len(chains) <= MOST_CHAINS:
        looks = [chain_line(k, len(chains)) | {"linewidth": 2.0} for k in range(len(chains))]
        if diagnosis.spread is not None:
            looks = [look | {"marker": chain_marker(k, len(chains))} for k, look in enumerate(looks)]
        entries = [Line2D([], [], label=str(chain[rows[0]]), **look) for rows, look in zip(chains, looks, strict=True)]
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.1), "ncols": -(-len(chains) // _MOST_IN_ROW)}
        grammar.add_legend(axes[0, 1], entries, title=words.chain, title_fontsize="small", **place)
    return axes


def _agreement_in_words(diagnosis: Diagnosis) -> str:
    """Whether chains, or groups of runs, agree, with the largest R-hat of the summaries shown."""
    chains = diagnosis.words.chains
    said = {
        "agree": f"the {chains} agree",
        "disagree": f"the {chains} disagree",
        "short": f"no sign that the {chains} disagree, but too few effective draws",
        "runs": "the runs are in no groups, which could agree",
    }.get(diagnosis.status, f"whether the {chains} agree is unknown")
    rhat = diagnosis.summaries["rhat"].values
    if diagnosis.spread is not None or np.isnan(rhat).all():
        return said
    ess = np.fmin.reduce([*diagnosis.summaries["ess_bulk"].values, *diagnosis.summaries["ess_tail"].values])
    limit = f"(limit\N{NO-BREAK SPACE}{RHAT_WANTED})"
    return f"{said}: R-hat of these summaries at most {np.nanmax(rhat):.3f} {limit}, ESS at least {ess:,.0f}"


def _draw_row(left: Axes, right: Axes, values: Floats, chains: list[Positions], *, ordered: bool) -> None:
    if np.isnan(values).any():
        return
    edges = np.linspace(0.0, 1.0, min(_RANK_BINS, max(1, min(rows.size for rows in chains) // 3)) + 1)
    _, tied = np.unique(values, return_inverse=True)
    n_values = int(tied.max()) + 1
    ranks = _shares_below(tied, n_values)
    for k, rows in enumerate(chains):
        style = chain_line(k, len(chains))
        if ordered:
            left.plot(values[rows], linewidth=0.6, alpha=_OVERLAID, zorder=2 - k / len(chains), **style)
        else:
            below = (np.arange(rows.size) + 0.5) / rows.size
            marker = chain_marker(k, len(chains))
            left.plot(below, np.sort(values[rows]), marker, color=style["color"], markersize=_POINT, alpha=0.8)
        interpolated = np.interp(edges, ranks, _shares_below(tied[rows], n_values))
        right.stairs(np.diff(interpolated) / np.diff(edges), edges, baseline=None, linewidth=1.1, **style)
    right.axhline(1.0, color=ink(), linewidth=0.7, linestyle=":")
    right.set(xlim=(0, 1), ylim=(0, None))
    left.set_xlim(0, (max(rows.size for rows in chains) - 1 or 1) if ordered else 1)


def _shares_below(tied: Positions, n_values: int) -> Floats:
    """Share of draws below each value, and finally 1."""
    return np.concatenate([[0.0], np.cumsum(np.bincount(tied, minlength=n_values)) / tied.size])


@frame.in_small_print
def plot_sequence(sequence: SequentialDistances, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the distances between successive draws, and from the second half of the chain.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes of shape (2,); by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The upper axes have the distance of each draw from its predecessor, the speed of the chain. The lower axes have
        its mean distance from the second half of its chain, the position of the chain. A thick line is a running mean,
        a vertical line in the chain's colour ends the burn-in. It is dotted, and in the middle, if the rule determined
        no end.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong.

    See Also
    --------
    diagnostics.sequential_distances : Compute the distances.

    Notes
    -----
    The upper panel is Figure 5 of Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR,
    for one minus the normalized mutual information (``loss="nmi"``).

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.random.default_rng(1).integers(2, size=(2, 60, 6))
    >>> axes = pc.diagnostics.sequential_distances(draws, loss="nmi").plot()
    >>> axes.shape
    (2,)
    """
    check_matplotlib()
    from matplotlib.ticker import LogLocator, NullLocator
    from scipy.ndimage import uniform_filter1d

    axes = frame.grid_axes(axes, figsize, 2, 1, _WIDTH, 2 * _DISTANCE)[:, 0]
    chain = sequence.steps["chain"].values
    burn_in, n_chains = sequence.burn_in, sequence.burn_in.sizes["chain"]
    width = max(_FEWEST_AVERAGED, int(burn_in["n_draws"].max()) // _MEANS)
    for k in range(n_chains):
        one = burn_in.isel(chain=k)
        rows = np.flatnonzero(chain == one["chain"].values)
        for ax, values in zip(axes, (sequence.steps.values, sequence.to_second_half.values), strict=True):
            ax.plot(values[rows], linewidth=0.4, alpha=on_page(_BEHIND), zorder=1, **chain_line(k, n_chains))
            known = np.flatnonzero(np.isfinite(values[rows]))  # the first have no distance
            mean = uniform_filter1d(values[rows][known], width)
            ax.plot(known, mean, linewidth=1.5, **chain_line(k, n_chains))
            line = "--" if one["settled"] else ":"
            ax.axvline(int(one["burn_in"]), linewidth=1.0, linestyle=line, color=chain_colour(k, n_chains))
    before = "the draw before" if sequence.lag == 1 else f"the draw {sequence.lag} before"
    every = np.concatenate([sequence.steps.values, sequence.to_second_half.values])
    for ax, name in zip(axes, (f"from\n{before}", "to draws of\nthe second half, mean"), strict=True):
        ax.set_ylabel(grammar.axis_label(f"{short_name_of(sequence.loss)} {name}", sequence.loss.unit))
        ax.set_xlim(0, int(burn_in["n_draws"].max()) - 1 or 1)
        if np.isfinite(sequence.steps.values).any() and np.nanmin(every) > 0:  # so that the first draws leave room
            ax.set_yscale("log")
            ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
            ax.yaxis.set_minor_locator(NullLocator())
        else:
            ax.set_ylim(0, None)
        frame.tick_integers(ax.xaxis)
    axes[0].tick_params(labelbottom=False)
    axes[1].set_xlabel(f"draw of the chain (upright: end of the burn-in; thick: mean of {width} draws)")
    last, settled = int(burn_in["burn_in"].max()), bool(burn_in["settled"].all())
    grammar.say(axes[0], f"burn-in ends by draw {last:,}" if settled else "the end of the burn-in is not determined")
    drift = "no drift is found from there on" if settled else "a drift is not excluded"
    grammar.say(axes[1], f"{drift}{', in each chain by itself' * (n_chains > 1)}")
    if 1 < n_chains <= MOST_CHAINS:
        _name_burn_in(axes[0], burn_in)
    return axes


def _name_burn_in(ax: Axes, burn_in: xr.Dataset) -> None:
    """Name the chains' lines at the end of the burn-in, right of the last one, in their order from right to left."""
    line = _LINE * frame.font_of_names() / frame.extent(ax)[1]  # share of the height
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "va": "top", "parse_math": False}
    ends, names, settled = (burn_in[name].values for name in ("burn_in", "chain", "settled"))
    for row, k in enumerate(np.argsort(-ends, kind="stable").tolist()):
        text = f"chain {names[k]}: {f'{ends[k]:,}' if settled[k] else 'not determined'}"
        place = (int(ends.max()), 1.0 - row * line), (3, 0), ax.get_xaxis_transform()
        ax.annotate(text, *place, bbox=grammar.behind_names(ax), color=chain_colour(k, ends.size), **style)


@frame.in_small_print
def plot_near_independence(independence: NearIndependence, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot histograms of the distances within the posterior and to the product of its marginals.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `ax` is not an Axes.

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
    >>> ax = independence.plot()
    >>> title = ax.set_title("Do the items change clusters independently?")
    """
    check_matplotlib()
    from matplotlib.ticker import MaxNLocator

    ax = frame.new_axes(ax, figsize, 5.6, 3.2)
    values = independence.resampled
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1.0, _RESAMPLE_BINS + 1)
    draws = independence.words.draws
    texts = f"{draws} vs\nother {draws}", f"{draws} vs\nindependent items"
    middles, tops = [], []
    for name, text, colour in zip(_COMPARED, texts, (BARS, NEUTRAL), strict=True):
        counts, *_ = ax.hist(values.sel(compared_with=name).values, edges.tolist(), color=colour, alpha=0.8, label=text)
        middles.append(float(values.sel(compared_with=name).median()))
        tops.append(float(np.max(counts)))
    ax.set(xlabel=f"discrepancy of {draws} (squared maximum mean discrepancy)", ylabel="resamples")
    verdict = independence.verdict.rstrip(".")
    grammar.say(
        ax,
        f"{verdict[0].lower()}{verdict[1:]} ({independence.null.size:,} permutations: p = {independence.p_value:.2g})",
    )
    ax.xaxis.set_major_locator(MaxNLocator(5))  # small numbers have long labels
    if abs(middles[1] - middles[0]) < _APART * (edges[-1] - edges[0]):
        grammar.add_legend(ax, loc="best")
        return ax
    ax.set_ylim(0, max(tops) / (1 - 3 * frame.font_of_names() / frame.extent(ax)[1]))
    for text, x, y in zip(texts, middles, tops, strict=True):
        ax.annotate(text, (x, y), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize="small")
    return ax


@frame.in_small_print
def plot_density_peaks(density: PartitionDensity, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the score of each calibration draw against its loss to the nearest draw of higher score.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `ax` is not an Axes.

    See Also
    --------
    partition_density : Compute the density.

    Notes
    -----
    In this decision graph of Rodriguez and Laio (2014), https://doi.org/10.1126/science.1242072, peaks of the density
    are at the top right. Modes, with their weights, are numbered at their score and their loss to the nearest mode of
    higher score, the highest at the top. They are searched among all partitions, so their score can exceed the score of
    any draw. Credible sets begin at dotted lines.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 30 + [[0, 1, 0, 1, 0, 1]] * 20 + [[0, 0, 0, 0, 1, 1]] * 10
    >>> ax = pc.partition_density(draws, random_seed=1).plot()
    >>> title = ax.set_title("Which partitions do many draws lie near?")
    """
    ax = frame.new_axes(ax, figsize, 5.6, 3.6)
    scores, words = density.scores.values, density.words
    marked, weights = (own_in(density.modes, name).values for name in ("score", "weight"))
    others = ~np.isclose(scores[:, np.newaxis], marked, rtol=0, atol=ROUNDING).any(axis=1)  # than modes
    away = density.to_higher.values[others]
    ax.scatter(scores[others], away, s=12, color=NEUTRAL, linewidths=0, clip_on=False)
    losses = np.asarray(partition_loss(density.modes.values, loss=density.loss))
    heights = np.where(marked == marked.max(), density.to_higher.values.max(), to_higher(marked, losses))
    ax.scatter(marked, heights, s=48, marker="D", facecolors="none", edgecolors=ink(), linewidths=1.5)
    for mode, place in enumerate(zip(marked, heights, strict=True)):
        named: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": "small"}
        named["bbox"] = grammar.behind_names(ax)
        top = ",\nthe highest score" if marked[mode] == marked.max() else ""
        ax.annotate(f"mode {mode} (weight {weights[mode]:.2f}){top}", place, (-7, 0), **named)
    loss, unit = short_name_of(density.loss), density.loss.unit
    away = f"{grammar.axis_label(loss, unit)} to the nearest {words.draw} of\nhigher score"
    away += " (diamonds: mode; top: the highest)"
    ax.set(xlabel=f"score of a {words.draw}: closeness to all {words.draws} (1 if all are equal)", ylabel=away)
    highest = max(heights.max(), density.to_higher.values.max())
    line = _LINE * frame.font_of_names() / frame.extent(ax)[1]  # share of the height
    ax.set_ylim(0.0, _ABOVE * highest / max(0.5, 1.0 - line * len(_PROBS)) or 1.0)  # names of sets are above all modes
    for k, prob in enumerate(_PROBS):  # names at two heights, as the scores can be near
        least = density.least_score(prob)
        if np.isfinite(least):
            grammar.mark_limit(ax, least, "")
            name = f"{prob:.0%} {words.either('credible set', 'set')} \N{RIGHTWARDS ARROW}"
            at = (least, 1.0 - k * line), (3, -3), ax.get_xaxis_transform()
            ax.annotate(
                name, *at, bbox=grammar.behind_names(ax), textcoords="offset points", va="top", fontsize="small"
            )
    if heights.size > 1:
        apart = grammar.in_digits(float(np.sort(heights)[:-1].min()), 2, density.loss.unit)
        grammar.say(ax, f"{heights.size} modes (diamonds), {'at least ' * (heights.size > 2)}{apart} apart")
    else:
        grammar.say(ax, "one mode (diamond)")
    return ax
