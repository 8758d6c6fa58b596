"""Names of clusters that go on from layer to layer, and what happens between layers in these names."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, continued, numbers_in, over_all_items
from posterior_consensus.ensemble.layers import Layers, Step, steps_of
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.switching import is_matched
from posterior_consensus.layers.flows import Changes, changes_of
from posterior_consensus.results.plain import names_as_coordinate

FLOWS = ("step", "source", "target", "expected", "mcse", "low", "high")
OVERLAPS = ("before", "after", "overlap", "mcse")


def changes_by_name(
    layers: Layers, partitions: Mapping[Any, Any], prob: float
) -> tuple[AlignedPartitions, xr.Dataset, xr.Dataset]:
    """Names of the clusters of each layer's partition, flows between them, and overlaps of items' co-members.

    Parameters
    ----------
    layers : Layers
    partitions : mapping
        A partition of each layer.
    prob : float
        Probability of the flows' intervals.

    Returns
    -------
    partitions : AlignedPartitions
        Over all items of all layers. Items of several dimensions are in one, "item".
    flows : xarray.Dataset
        Over ``flow``, with the columns `FLOWS`. Clusters are positions in the names, -1 for elsewhere.
    overlaps : xarray.Dataset
        Over ``step``, named by its layers, and the items, with the columns `OVERLAPS`. Layers there are positions.
    """
    estimates = {
        name: draws.items.as_labels(partitions[name], f"partitions[{name!r}]") for name, draws in layers.items()
    }
    steps = steps_of(layers)
    changes = changes_of(layers, estimates, steps, prob)
    numbers, names = _numbers(layers, partitions, estimates, list(zip(steps, changes, strict=True)))
    aligned, places = _over_all_items(layers, {name: numbers[name][estimates[name]] for name in layers}, names)
    own = [places[step.after][step.to] for step in steps]
    return (
        aligned,
        _flow_table(steps, changes, numbers),
        _overlap_table(list(layers), steps, changes, own, aligned.labels),
    )


def _numbers(
    layers: Layers,
    partitions: Mapping[Any, Any],
    estimates: Mapping[Any, Labels],
    changes: list[tuple[Step, Changes]],
) -> tuple[dict[Any, npt.NDArray[np.int64]], list[Hashable]]:
    """Number that goes on of each cluster of each layer's estimate, by layer, and the name of each number."""
    into = {step.after: (step.before, change) for step, change in changes}
    numbers, names = dict[Any, npt.NDArray[np.int64]](), list[Hashable]()
    for name, draws in layers.items():
        n_clusters = int(estimates[name].max()) + 1
        if name in into:
            before, change = into[name]
            common = _common(change, numbers[before].size, n_clusters)
            numbers[name], names = continued(common * layers.samples.n_draws, numbers[before], names)
        elif names:
            numbers[name], names = continued(np.zeros((n_clusters, 1)), np.array([-1]), names)
        else:
            first, names = numbers_in(partitions[name], draws.items)
            numbers[name] = first[np.unique(estimates[name], return_index=True)[1]].astype(np.int64)
    return numbers, names


def _flow_table(steps: list[Step], changes: list[Changes], numbers: Mapping[Any, npt.NDArray[np.int64]]) -> xr.Dataset:
    columns = [np.empty((len(FLOWS), 0))]
    for row, (step, change) in enumerate(zip(steps, changes, strict=True)):
        source = np.append(numbers[step.before], -1)[change.source]
        target = np.append(numbers[step.after], -1)[change.target]
        columns.append(np.stack([np.full(source.size, row), source, target, *change.flows]))
    types = [np.int32] * 3 + [np.float64] * 4
    values = zip(FLOWS, np.concatenate(columns, axis=1), types, strict=True)
    return xr.Dataset({name: ("flow", column.astype(dtype)) for name, column, dtype in values})


def _overlap_table(
    names: list[Any],
    steps: list[Step],
    changes: list[Changes],
    places: list[npt.NDArray[np.intp]],
    labels: xr.DataArray,
) -> xr.Dataset:
    """Overlaps over step and the items of `labels`, given where among these the common items of each step are."""
    found = np.full((2, len(steps), labels.shape[1]), np.nan)
    for row, (change, at) in enumerate(zip(changes, places, strict=True)):
        found[:, row, at] = change.overlaps
    ends = np.array([[names.index(step.before), names.index(step.after)] for step in steps], np.int32).reshape(-1, 2)
    values = *(("step", one) for one in ends.T), *((("step", labels.dims[1]), one) for one in found)
    named = [f"{step.before} to {step.after}" for step in steps]
    coords = labels.drop_vars("partition").coords
    return xr.Dataset(dict(zip(OVERLAPS, values, strict=True)), coords).assign_coords(step=np.array(named, str))


def _common(change: Changes, n_before: int, n_after: int) -> npt.NDArray[np.float64]:
    """Expected numbers of common items of the clusters of both estimates, after by before; 0 of less than half one."""
    table = np.zeros((n_after + 1, n_before + 1))
    table[change.target, change.source] = np.where(is_matched(change.flows[0]), change.flows[0], 0.0)
    return table[:-1, :-1]


def _over_all_items(
    layers: Layers, labels: Mapping[Any, npt.NDArray[np.int64]], names: list[Hashable]
) -> tuple[AlignedPartitions, dict[Any, npt.NDArray[np.intp]]]:
    """The partitions over the items of all layers, and where each layer's items are among them."""
    arrays = {name: draws.items.array(labels[name], "labels") for name, draws in layers.items()}
    if len({one.dims for one in arrays.values()}) > 1:
        for name, draws in layers.items():
            index = [f"{draws.items.dim}: {item}" for item in draws.items.names]
            arrays[name] = xr.DataArray(labels[name], {"item": index}, ("item",))
    items, _, places = over_all_items({f"layer {name!r}": one for name, one in arrays.items()})
    places = dict(zip(layers, places.values(), strict=True))
    found = np.full((len(layers), items.n_items), -1, np.int32)
    for row, name in enumerate(layers):
        found[row, places[name]] = labels[name]
    dressed = items.partition_array(found, "partition", "labels")
    return AlignedPartitions(dressed.assign_coords(partition=names_as_coordinate(list(layers))), tuple(names)), places
