"""Names of clusters that go on from layer to layer, and what happens between layers in these names."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, continued, numbers_in, over_all_items
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.layers import Layers, Step, steps_of
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.layers.flows import Changes, changes_of
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.plain import names_as_coordinate

FLOWS = ("step", "source", "target", "expected", "mcse", "low", "high")
OVERLAPS = ("overlap", "mcse", "moved", "moved_mcse", "clear")


def changes_by_name(
    layers: Layers, partitions: Mapping[Any, Any], loss: PartitionLoss, prob: float
) -> tuple[AlignedPartitions, xr.Dataset, xr.Dataset, Floats]:
    """Names of the clusters of each layer's partition, flows between them, and which items move.

    Parameters
    ----------
    layers : Layers
    partitions : mapping
        A partition of each layer.
    loss : PartitionLoss
        Loss between partitions of two layers.
    prob : float
        Probability of the flows' intervals.

    Returns
    -------
    partitions : AlignedPartitions
        Over all items of all layers. Items of several dimensions are in one, "item".
    flows : xarray.Dataset
        Over ``flow``, with the columns `FLOWS`. Clusters are positions in the names, -1 for elsewhere.
    overlaps : xarray.Dataset
        Over ``step``, with its layers ``before`` and ``after``, and the items, with the columns `OVERLAPS`.
    losses : ndarray of shape (n_steps, n_draws)
        Loss between the two layers of each step in the same draw.
    """
    estimates = {
        name: draws.items.as_labels(partitions[name], f"partitions[{name!r}]") for name, draws in layers.items()
    }
    steps = steps_of(layers)
    changes = changes_of(layers, estimates, steps, loss, prob)
    numbers, names = _numbers(layers, partitions, estimates, list(zip(steps, changes, strict=True)))
    aligned, places = _over_all_items(layers, {name: numbers[name][estimates[name]] for name in layers}, names)
    own = [places[step.after][step.to] for step in steps]
    return (
        aligned,
        _flow_table(steps, changes, numbers),
        _overlap_table(steps, changes, own, aligned.labels),
        np.array([change.losses for change in changes]).reshape(-1, layers.samples.n_draws),
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
            numbers[name], names = continued(change.partner, numbers[before], names)
        elif names:
            numbers[name], names = continued(np.full(n_clusters, -1), np.array([-1]), names)
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
    steps: list[Step], changes: list[Changes], places: list[npt.NDArray[np.intp]], labels: xr.DataArray
) -> xr.Dataset:
    """Overlaps and moves over step and the items of `labels`, given where among these the common items are."""
    found = np.full((len(OVERLAPS), len(steps), labels.shape[1]), np.nan)
    found[-1] = 0
    for row, (change, at) in enumerate(zip(changes, places, strict=True)):
        found[:, row, at] = np.concatenate([change.overlaps, change.moved])
    values = [(("step", labels.dims[1]), one) for one in (*found[:-1], found[-1] > 0)]
    ends: dict[str, Any] = {
        end: ("step", names_as_coordinate([getattr(step, end) for step in steps])) for end in ("before", "after")
    }
    named = np.array([f"{step.before} to {step.after}" for step in steps], str)
    table = xr.Dataset(dict(zip(OVERLAPS, values, strict=True)), labels.drop_vars("partition").coords)
    return table.assign_coords({"step": named} | ends)


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
