"""Names of clusters that go on from layer to layer, and what happens between layers in these names."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, continued, numbers_in, over_all_items
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.switching import is_matched
from posterior_consensus.layers.flows import Changes, changes_of, steps_of
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
        Over ``step`` and the items, with the columns `OVERLAPS`. Layers are positions.
    """
    estimates = {
        name: draws.items.as_labels(partitions[name], f"partitions[{name!r}]") for name, draws in layers.items()
    }
    steps = steps_of(layers)
    changes = changes_of(layers, estimates, steps, prob)
    into = {step.after: (step.before, change) for step, change in zip(steps, changes, strict=True)}
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
    labels = {name: numbers[name][estimates[name]] for name in layers}
    aligned, places = _over_all_items(layers, labels, names)
    flows, overlaps = [], np.full((2, len(steps), aligned.labels.shape[1]), np.nan)
    for row, (step, change) in enumerate(zip(steps, changes, strict=True)):
        overlaps[:, row, places[step.after][step.to]] = change.overlaps
        source = np.append(numbers[step.before], -1)[change.source]
        target = np.append(numbers[step.after], -1)[change.target]
        flows.append([np.full(source.size, row), source, target, *change.flows])
    columns = np.concatenate(flows, axis=1) if flows else np.empty((len(FLOWS), 0))
    table = xr.Dataset({name: ("flow", column) for name, column in zip(FLOWS, columns, strict=True)})
    order = {name: row for row, name in enumerate(layers)}
    ends = np.array([[order[step.before], order[step.after]] for step in steps], np.int32).reshape(-1, 2)
    dims, coords = ("step", aligned.labels.dims[1]), aligned.labels.drop_vars("partition").coords
    values = ("step", ends[:, 0]), ("step", ends[:, 1]), *((dims, one) for one in overlaps)
    return (
        aligned,
        table.assign({name: table[name].astype(np.int32) for name in FLOWS[:3]}),
        xr.Dataset(dict(zip(OVERLAPS, values, strict=True)), coords),
    )


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
