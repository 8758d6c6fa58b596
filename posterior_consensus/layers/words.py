"""What happens from layer to layer, in sentences: when the clustering changes, who moves, and what is not sure."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, as_sentence, differences_of_table
from posterior_consensus.ensemble.items import Items
from posterior_consensus.results import display

_CLEAR = 2.0  # standard errors
_LARGEST_RHAT = 1.05
_MOST_NAMED = 4  # items
_HALF = 0.5  # a probability above it is said as a result; an item with a smaller overlap moves


def verdict(steps: xr.Dataset, moved: xr.DataArray, unit: str) -> str:
    """Say where the largest change is, who moves there, and what is not clear.

    Parameters
    ----------
    steps : xarray.Dataset
        Distances and changes over ``step``, of one step at least, with the names of its layers.
    moved : xarray.DataArray of shape (n_items,)
        Overlaps of the items in the step of largest expected loss.
    unit : str
        Unit of the loss.
    """
    losses, errors, p_equal, p_largest, rhat = (
        steps[name].values for name in ("expected_loss", "mcse", "p_equal", "p_largest", "rhat")
    )
    ends = zip(steps["layer"].values, steps["other_layer"].values, strict=True)
    names, at = [f"{one} and {other}" for one, other in ends], int(losses.argmax())
    far, who = display.with_error(display.quantity(losses[at], unit, 3), errors[at]), _who_moved(moved)
    same = 1.0 - float(np.sum(1.0 - p_equal))  # by Bonferroni's inequality
    if same > _HALF:
        said = [f"The clustering hardly changes: with probability {same:.3g} or more it is the same throughout.", *who]
    else:
        said = [f"The clustering changed between {names[at]}, by {far}, with probability {1 - p_equal[at]:.3g}."]
        if losses.size > 1:
            probability = display.with_error(f"{p_largest[at]:.3g}", float(steps["p_largest_mcse"][at]))
            said.append(f"With probability {probability}, no other change is larger.")
        said += who
    if np.isnan(errors[at]):
        said.append("There are too few draws for Monte Carlo errors.")
    near = np.flatnonzero(losses[at] - losses <= _CLEAR * np.hypot(errors[at], errors))
    others = [names[k] for k in near[near != at].tolist()]
    if others and same <= _HALF:
        said.append(f"Within their errors, expected losses are as large between {display.listed(others, 3)}.")
    if np.nanmax(rhat, initial=0.0) > _LARGEST_RHAT:
        worst = int(np.nanargmax(rhat))
        apart = f"how far apart {names[worst]} are (R-hat {rhat[worst]:.2f})"
        said.append(f"Chains disagree on {apart}: run longer chains.")
    return " ".join(said)


def _who_moved(overlaps: xr.DataArray) -> list[str]:
    """The items that keep least of their co-members, less than half of them."""
    order = np.argsort(overlaps.values, kind="stable")
    order = order[overlaps.values[order] < _HALF]
    if not order.size:
        return []
    named = Items.along(overlaps, str(overlaps.dims[0])).named(order[:_MOST_NAMED])
    items = [f"{name} ({overlaps.values[k]:.2g})" for name, k in zip(named, order, strict=False)]
    more = f" and {order.size - _MOST_NAMED:,} more" if order.size > _MOST_NAMED else ""
    return [f"Items that keep the smallest share of co-members: {', '.join(items)}{more}."]


def steps_in_words(partitions: AlignedPartitions, flows: xr.Dataset, overlaps: xr.Dataset) -> Iterator[tuple[str, str]]:
    """What splits, merges, is new or ends in each step in which something does, by expected numbers of items."""
    table = flows.to_dataframe().query("source >= 0 and target >= 0")
    for row, ends in enumerate(zip(overlaps["before"].values, overlaps["after"].values, strict=True)):
        pair = AlignedPartitions(partitions.labels.isel(partition=list(ends)), partitions.names)
        rows, columns = (np.unique(one[one >= 0]) for one in pair.labels.values)
        own, counts = table[table["step"] == row], np.zeros((rows.size, columns.size))
        at = np.searchsorted(rows, own["source"]), np.searchsorted(columns, own["target"])
        counts[at] = own["expected"]
        before, after = ([partitions.names[k] for k in one.tolist()] for one in (rows, columns))
        said = [*differences_of_table(counts, before, after), *pair[pair.partitions[1]].come_and_gone()]
        if said:
            yield " to ".join(map(str, pair.partitions)), as_sentence(said)
