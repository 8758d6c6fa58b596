"""What happens from layer to layer, in sentences: when the clustering changes, who moves, and what is unsure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri

from posterior_consensus.answers.alignment import AlignedPartitions, as_sentence, differences_of_table
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.r_hat import RHAT_BAD
from posterior_consensus.layers.flows import CLEAR
from posterior_consensus.results import display
from posterior_consensus.results.sentences import Sentence, advice
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Flags
from posterior_consensus.runtime.tolerances import ROUNDING

_FEWEST_EFFECTIVE = 50.0  # draws of a chain; with fewer, errors of slow chains are too rough for a verdict
_MOST_NAMED = 4  # items
_HALF = 0.5  # a probability above it is stated as a result


def farther_apart(distances: xr.Dataset, n_compared: int) -> Flags:
    """Whether draws of two layers are farther apart than two draws of one, beyond the error.

    Of `n_compared` pairs of layers without change, any is so with the probability that one is beyond two errors
    (Bonferroni's inequality).
    """
    separation, error = distances["separation"].values, distances["separation_mcse"].values
    beyond = -ndtri(ndtr(-CLEAR) / max(n_compared, 1))
    return np.asarray(separation > beyond * error + ROUNDING)


def is_unsure(distances: xr.Dataset, n_chains: int) -> Flags:
    """Whether there are too few effective draws to tell a change from the chains' errors."""
    enough = distances["ess"].values >= _FEWEST_EFFECTIVE * n_chains
    return np.asarray(~(enough & np.isfinite(distances["separation_mcse"].values)))


class _Steps(NamedTuple):
    """Which steps are farther apart than draws of one layer, have too few draws, changed, or may have changed.

    The clustering changed if layers are farther apart and an item clearly moves. It may have if no move is clear, but
    one is likely.
    """

    farther: Flags
    unsure: Flags
    changed: Flags
    may_have: Flags

    @classmethod
    def of(cls, steps: xr.Dataset, overlaps: xr.Dataset, n_chains: int) -> Self:
        clear, likely = (own_in(overlaps, name).values.any(axis=1) for name in ("clear", "likely"))
        farther, unsure = farther_apart(steps, steps.sizes["step"]), is_unsure(steps, n_chains)
        return cls(farther, unsure, farther & clear & ~unsure, farther & ~clear & likely & ~unsure)

    def headline(self, steps: xr.Dataset) -> int:
        return _largest(steps, [self.changed, self.farther])[0]


def step_to_report(steps: xr.Dataset, overlaps: xr.Dataset, n_chains: int) -> int:
    """The step to report, see :class:`LargestChange`."""
    return _Steps.of(steps, overlaps, n_chains).headline(steps)


def _largest(distances: xr.Dataset, among: list[Flags]) -> tuple[int, ...]:
    """Position of the largest separation among the first pairs of layers that are any, or of the largest loss."""
    column, values = "expected_loss", np.ones(distances["ess"].shape, np.bool_)
    for some in among:
        if some.any():
            column, values = "separation", some
            break
    values = np.where(values, distances[column].values, np.nan)
    return tuple(int(k) for k in np.unravel_index(np.nanargmax(values), values.shape))


def verdict(steps: xr.Dataset, overlaps: xr.Dataset, unit: str, n_chains: int) -> list[Sentence]:
    """Say whether and when the clustering changed, which items moved, and what is unsure.

    `steps`: distances and changes over ``step``, of one step at least, with the names of its layers. `overlaps`:
    probabilities that items move, over ``step`` and the items. `unit`: unit of the loss.
    """
    ends = zip(steps["layer"].values, steps["other_layer"].values, strict=True)
    names = [f"{one} and {other}" for one, other in ends]
    found = _Steps.of(steps, overlaps, n_chains)
    (farther, unsure, changed, may_have), at = found, found.headline(steps)
    here, n_changed = steps.isel(step=at), int(changed.sum())
    by, same = _separation(here, unit), 1.0 - float(np.sum(1.0 - steps["p_equal"].values))  # Bonferroni's inequality
    if changed[at]:
        where = f"in {n_changed} of {changed.size} steps, most between" if n_changed > 1 else "between"
        said = [f"The clustering changed {where} {names[at]}: {_MORE}, by {by}."]
        if changed.size > 1:
            often = display.capitalized(_how_often(here, "p_largest"))
            said.append(f"{often}, this step has the largest loss (steps of equal loss share this probability).")
        said += _near(steps, names, at, changed)
    elif unsure[at]:
        said = [f"It is unsure whether the clustering changed between {names[at]}: {_too_few(here, n_chains)}."]
        if farther[at]:
            said.append(f"So far, {_MORE}, by {by}.")
    elif may_have[at]:
        said = [f"It is unsure whether the clustering changed between {names[at]}: {_MORE}, by {by}, and {_UNCLEAR}."]
    elif same > _HALF:
        share = f"with probability {display.at_least(same, '.3g')} or more" if same < 1 - ROUNDING else "in all draws"
        said = [f"The clustering hardly changes: {share} it is the same throughout."]
    elif farther[at]:
        said = [f"Draws of {names[at]} are {_FARTHER}, by {by}, but no item clearly moves. {_BY_UNCERTAINTY}"]
    elif changed.size == 1:
        said = [_no_farther(names[at], by)]
    else:
        said = [_no_farther(names[at], by, "Draws of no two successive layers")]
    said += _equal(here)
    if changed[at] or unsure[at] or may_have[at]:
        said += _who_moved(overlaps, at, "likely" if may_have[at] else "clear", is_sure=bool(changed[at]))
    rest = [names[k] for k in np.flatnonzero(unsure & farther).tolist() if k != at]
    if rest:
        few = f"With fewer than {_FEWEST_EFFECTIVE:g} effective draws for each chain"
        said.append(f"{few}, it is also unsure between {display.listed(rest, 3)}.")
    rest = [names[k] for k in np.flatnonzero(may_have).tolist() if k != at]
    if rest:
        said.append(f"It is also unsure between {display.listed(rest, 3)}: {_UNCLEAR}.")
    rhat = steps["rhat"].values
    if np.nanmax(rhat, initial=0.0) > RHAT_BAD:
        worst = int(np.nanargmax(rhat))
        apart = f"how far apart {names[worst]} are (R-hat {display.apart_from(rhat[worst], RHAT_BAD, '.2f')})"
        return [*map(Sentence, said), Sentence(f"Chains disagree on {apart}."), advice("Run longer chains.")]
    return [*map(Sentence, said)]


_FARTHER = "farther apart than two draws of one layer"
_MORE = f"their draws are {_FARTHER}"
_UNCLEAR = "an item more probably moves than not, but not clearly"
_BY_UNCERTAINTY = "Layers that differ in their uncertainty alone can be as far apart."


def about_pairs(distances: xr.Dataset, unit: str, n_chains: int) -> str:
    """Say which layers without an order are farthest apart, beyond the distance of two draws of one."""
    others = distances.where(distances["layer"] != distances["other_layer"])
    n_pairs = len({frozenset(pair) for pair in np.argwhere(others["n_common"].values > 0).tolist()})
    farther = farther_apart(others, n_pairs)
    at = _largest(others, [farther])
    here = distances.isel(layer=at[0], other_layer=at[1])
    names, by = f"{here['layer'].item()} and {here['other_layer'].item()}", _separation(here, unit)
    loss = _sized(here, "expected_loss", "mcse", unit)
    is_one = n_pairs == 1
    if is_unsure(here, n_chains):
        whether = f"whether draws of {names} are {_FARTHER}" if is_one else "which layers are farthest apart"
        said = f"It is unsure {whether}: {'' if is_one else f'for {names}, '}{_too_few(here, n_chains)}."
    elif farther[at]:
        start = f"Draws of {names} are" if is_one else f"The layers {names} are farthest apart: their draws are"
        said = f"{start} {_FARTHER}, by {by}. {_BY_UNCERTAINTY}"
    else:
        said = _no_farther(names, by, "" if is_one else "No two layers")
    return " ".join([said, f"In the same draw, they are {loss} apart.", *_equal(here)])


def _no_farther(names: str, by: str, no_two: str = "") -> str:
    """A difference within two errors: of one pair of layers, or of the pair of the largest loss of many."""
    if no_two:
        return f"{no_two} are {_FARTHER}: between {names}, whose loss is largest, the difference is {by}."
    return f"Draws of {names} are no {_FARTHER}: the difference is {by}."


def _separation(here: xr.Dataset, unit: str) -> str:
    return _sized(here, "separation", "separation_mcse", unit)


def _sized(here: xr.Dataset, name: str, error: str, unit: str) -> str:
    """A number with its error and effective sample size, which is rough if that is small."""
    value, ess, mcse = (float(here[column]) for column in (name, "ess", error))
    if np.isnan(ess) or np.isnan(mcse):
        return display.with_error(value, mcse, unit=unit)
    shown, of_error = display.rounded(value, mcse)
    rough = "rough: " if display.is_rough(ess) else ""
    return f"{display.with_unit(shown, unit)} (MCSE {of_error}, {rough}effective sample size {ess:,.0f})"


def _too_few(here: xr.Dataset, n_chains: int) -> str:
    ess, needed = float(here["ess"]), _FEWEST_EFFECTIVE * n_chains
    if ess < needed:
        return f"the effective sample size is {display.apart_from(ess, needed, ',.0f')}, {needed:,.0f} are needed"
    return "there are too few draws for Monte Carlo errors"


def _equal(here: xr.Dataset) -> list[str]:
    """How often the two partitions are equal."""
    if here["p_equal"] == 0:
        return ["The two are not equal in any draw."]
    return [f"The two are equal {_how_often(here, 'p_equal')}."]


def _how_often(here: xr.Dataset, column: str) -> str:
    """A probability above 0, which is not 1 if it is rounded to 1."""
    value = float(here[column])
    if value > 1 - ROUNDING:
        return "in all draws"
    if value >= 0.9995:
        return "with probability above 0.999"
    return f"with probability {display.with_error(value, float(here[f'{column}_mcse']))}"


def _near(steps: xr.Dataset, names: list[str], at: int, changed: Flags) -> list[str]:
    """Other changes that are as large within their errors."""
    separation, errors = steps["separation"].values, steps["separation_mcse"].values
    near = np.flatnonzero(changed & (separation[at] - separation <= CLEAR * np.hypot(errors[at], errors)))
    others = [names[k] for k in near[near != at].tolist()]
    return [f"Within their errors, changes are as large between {display.listed(others, 3)}."] * bool(others)


def _who_moved(overlaps: xr.Dataset, at: int, how: str, *, is_sure: bool) -> list[str]:
    """The items whose move is "clear" or "likely", the most probable moves first."""
    some, probability = (own_in(overlaps, name)[at] for name in (how, "moved"))
    moved = np.where(some.values, probability.values, -1.0)
    order = np.argsort(-moved, kind="stable")[: int(some.values.sum())]
    if not order.size:
        return []
    named = Items.along(probability, str(probability.dims[0])).named(order[:_MOST_NAMED])
    items = [f"{name} ({_probability(moved[k])})" for name, k in zip(named, order, strict=False)]
    more = f" and {order.size - _MOST_NAMED:,} more" if order.size > _MOST_NAMED else ""
    start = "Items that moved" if is_sure else "Items that would have moved"
    return [f"{start}, with their probabilities: {', '.join(items)}{more}."]


def _probability(value: float) -> str:
    return f"{value:.2f}" if value < 0.995 else "above 0.99"


def about_stopped(layers: Sequence[object], dim: str) -> list[tuple[str, str]]:
    """Line on searches for the consensus partitions of layers that ended early; empty if none did."""
    if not layers:
        return []
    which = display.listed(layers, _MOST_NAMED)
    search = "search ended" if len(layers) == 1 else "searches ended"
    return [("stopped", f"the {search} early for {dim} {which}: longer ones may find better partitions")]


def steps_in_words(partitions: AlignedPartitions, flows: xr.Dataset, overlaps: xr.Dataset) -> Iterator[tuple[str, str]]:
    """What splits, merges, is new or ends in each step in which something does, by expected numbers of items."""
    table = flows.to_dataframe().query("source >= 0 and target >= 0")
    position = {name: k for k, name in enumerate(partitions.partitions)}
    steps = zip(*(own_in(overlaps, end).values.tolist() for end in ("before", "after")), strict=True)
    for row, ends in enumerate(steps):
        pair = AlignedPartitions(partitions.labels[[position[name] for name in ends]], partitions.names)
        rows, columns = (np.unique(one[one >= 0]) for one in pair.labels.values)
        here, counts = table[table["step"] == row], np.zeros((rows.size, columns.size))
        at = np.searchsorted(rows, here["source"]), np.searchsorted(columns, here["target"])
        counts[at] = here["expected"]
        before, after = ([partitions.names[k] for k in one.tolist()] for one in (rows, columns))
        said = [*differences_of_table(counts, before, after), *pair[pair.partitions[1]].come_and_gone()]
        if said:
            yield " to ".join(map(str, pair.partitions)), as_sentence(said)
