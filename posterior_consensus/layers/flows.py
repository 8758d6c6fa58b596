"""Where items go from layer to layer in the same draw, who moves, and names of clusters that go on."""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, continued, first_numbers, over_all_items
from posterior_consensus.answers.membership import matched_clusters
from posterior_consensus.diagnostics.traces import same_draw_losses
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import NOISE, Items
from posterior_consensus.ensemble.layers import Layers, Step, steps_of
from posterior_consensus.ensemble.partitions import Labels, smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import is_matched, partners
from posterior_consensus.kernels import contingency
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.stored_as import names_as_coordinate
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.executor import in_order

CLEAR = 2.0  # standard errors
ODDS = 3.0  # of a clear move and no move
_TINY = np.finfo(np.float64).tiny
FLOWS = ("step", "source", "target", "expected", "mcse", "low", "high")
OVERLAPS = ("overlap", "mcse", "moved", "moved_mcse", "likely", "clear")
_FLAGS = 2  # of these, at the end


class Transition(NamedTuple):
    """What happens in a step, with Monte Carlo standard errors."""

    # (F,): clusters of the two partitions between which items go; the number after the last one is elsewhere
    source: Positions
    target: Positions
    # (4, F): expected number of items that go from one to the other, its error, and the ends of its interval
    flows: Floats
    # (L,): cluster of the first partition whose name each cluster of the second one has; -1 for a new name
    partner: npt.NDArray[np.integer]
    losses: Floats  # (n_draws,): loss between the two layers' partitions in the same draw
    overlaps: Floats  # (2, m): expected overlap of the co-members of each common item, and its error
    # (4, m): probability that the matched cluster of each common item has another name in the second layer, its error,
    # and whether the item's move between its clusters of the partitions is likely, and whether it is clear: 1 or 0
    moved: Floats


def transitions_of(
    layers: Layers, reported: Mapping[Any, Labels], steps: list[Step], loss: PartitionLoss, prob: float
) -> list[Transition]:
    """What happens in each step, given the canonical labels (n_items,) of each layer's partition."""
    targets = {name: _targets_of_draws(draws, reported[name]) for name, draws in layers.items()}
    n_clusters = {name: int(labels.max()) + 2 for name, labels in reported.items()}

    def of_step(step: Step) -> Transition:
        sides = (step.before, step.at), (step.after, step.to)
        drawn, matched = [], []
        for name, at in sides:
            draws = layers[name]
            every = np.arange(draws.n_draws)
            labels = clusters = draws.backend.of_draws(every).take(at, axis=1)
            if draws.clusters is not draws.backend:
                clusters = draws.clusters.of_draws(every).take(at, axis=1)
            drawn.append(contingency.Vectors(labels, draws.backend.n_clusters, int(draws.backend.n_clusters.max())))
            matched.append(targets[name][draws.clusters.starts[:-1, np.newaxis] + clusters])
        shape = n_clusters[step.before], n_clusters[step.after]
        source, target, flows = _flows(matched, shape, layers.samples, prob)
        common = np.zeros((shape[1], shape[0]))
        common[target, source] = np.where(is_matched(flows[0]), flows[0], 0.0)
        partner = partners(common[:-1, :-1] * layers.samples.n_draws)
        ((_, losses),) = same_draw_losses(layers, [(step.before, step.after)], loss)
        own = [reported[name][at] for name, at in sides]
        return Transition(
            source,
            target,
            flows,
            partner,
            losses,
            overlaps=_overlaps(drawn, layers.samples),
            moved=_moves_of_items(matched, own, partner, shape[0] - 1, losses, layers.samples),
        )

    return list(in_order(of_step, ((step,) for step in steps)))


def _targets_of_draws(draws: PartitionDraws, labels: Labels) -> npt.NDArray[Any]:
    """Cluster of the partition for each of the draws' `clusters` (R,), that after the last one for none."""
    n_clusters = int(labels.max()) + 1
    matched = matched_clusters(draws, draws.clusters.joint_counts(labels))
    return np.where(matched < 0, n_clusters, matched).astype(smallest_dtype(n_clusters + 1))


def _flows(
    matched: list[npt.NDArray[Any]], shape: tuple[int, int], samples: Samples, prob: float
) -> tuple[Positions, Positions, Floats]:
    n_draws, n_cells = samples.n_draws, shape[0] * shape[1]
    what = f"Flows between {shape[0] - 1} and {shape[1] - 1} clusters in each of {n_draws} {samples.words.draws}"
    memory.check(4 * n_draws * n_cells, what, f"Take fewer {samples.words.draws}.")
    rows, offsets = np.arange(n_draws), n_cells * np.arange(n_draws + 1)
    widths = np.full(n_draws, shape[1])
    counts = contingency.paired_counts(np.concatenate(matched), rows, n_draws + rows, widths, offsets)
    counts = counts.reshape(n_draws, n_cells)
    cells = np.flatnonzero(counts[samples.weights > 0].any(axis=0))
    counts = np.ascontiguousarray(counts[:, cells].T)
    mean = samples.mean(counts)
    error = samples.error_by_batches(mean, lambda batch: _weighted_mean(counts[:, batch], samples.weights[batch]))
    weights = samples.weights if samples.is_weighted else None
    ends = np.quantile(counts, [(1 - prob) / 2, (1 + prob) / 2], axis=1, weights=weights, method="inverted_cdf")
    source, target = np.unravel_index(cells, shape)
    return source, target, np.stack([mean, error, *ends])


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    return np.asarray(values @ weights / max(weights.sum(), _TINY))


def _overlaps(drawn: list[contingency.Vectors], samples: Samples) -> Floats:
    batch_of = np.empty(samples.n_draws, np.intp)
    for number, batch in enumerate(samples.batches):
        batch_of[batch] = number
    sums = np.zeros((len(samples.batches), drawn[0].labels.shape[1]))
    contingency.overlaps(drawn[0], drawn[1], samples.addends[0], batch_of, sums)
    mean, error = _means_with_errors(sums, samples)
    return np.stack([np.minimum(mean, 1.0), error])


def _moves_of_items(
    matched: list[npt.NDArray[Any]],
    own: list[Labels],
    partner: npt.NDArray[np.integer],
    n_before: int,
    losses: Floats,
    samples: Samples,
) -> Floats:
    """How probably each item moves, given the matched cluster and its own on both sides."""
    n_after = partner.size
    name = np.append(np.where(partner >= 0, partner, n_before + 1 + np.arange(n_after)), n_before)
    sums = np.empty((len(samples.batches), 3, own[0].size))
    for row, batch in zip(sums, samples.batches, strict=True):
        source, target = (one[batch] for one in matched)
        moves = (source < n_before) & (target < n_after) & (source != name[target])
        as_estimated = moves & (source == own[0]) & (target == own[1])
        addends = samples.addends[0][batch]
        stays = addends @ ~moves
        row[0] = addends @ moves
        row[1] = addends @ as_estimated - stays
        row[2] = row[1] - (ODDS - 1) * stays
    (moved, *leads), (error, *of_leads) = _means_with_errors(sums, samples)
    size = np.fmin(samples.mcse_and_ess(losses)[1], samples.effective_draws)
    flags = (lead > CLEAR * of_lead for lead, of_lead in zip(leads, of_leads, strict=True))
    return np.stack([moved, samples.probability_errors(moved, error, size), *flags])


def _means_with_errors(sums: Floats, samples: Samples) -> tuple[Floats, Floats]:
    """Means of functions, given their weighted sums over each batch of draws (B, ...), and standard errors."""
    addends, total = samples.addends
    first = {int(batch[0]): number for number, batch in enumerate(samples.batches)}
    mean = sums.sum(axis=0) / total
    error = samples.error_by_batches(mean, lambda batch: sums[first[int(batch[0])]] / max(addends[batch].sum(), _TINY))
    return mean, error


def named_transitions(
    layers: Layers, partitions: Mapping[Any, Any], loss: PartitionLoss, prob: float
) -> tuple[AlignedPartitions, xr.Dataset, xr.Dataset, Floats]:
    """Names of the clusters of each layer's partition, flows between them, and which items move.

    Flows have intervals of probability `prob`. Returned are

    - the partitions aligned over all items of all layers; items of several dimensions are in one, "item";
    - a Dataset over ``flow`` with the columns `FLOWS`; clusters are positions in the names, -1 for elsewhere;
    - one over ``step``, with its layers ``before`` and ``after``, and the items, with the columns `OVERLAPS`;
    - the loss (n_steps, N) between the two layers of each step in the same draw.
    """
    reported = {
        name: draws.items.as_labels(partitions[name], f"partitions[{name!r}]") for name, draws in layers.items()
    }
    steps = steps_of(layers)
    transitions = transitions_of(layers, reported, steps, loss, prob)
    partner_of = [transition.partner for transition in transitions]
    numbers, names = _numbers_that_go_on(layers, partitions, reported, list(zip(steps, partner_of, strict=True)))
    aligned, places = _over_all_items(layers, {name: numbers[name][reported[name]] for name in layers}, names)
    own = [places[step.after][step.to] for step in steps]
    return (
        aligned,
        _flow_table(steps, transitions, numbers),
        _overlap_table(steps, transitions, own, aligned.labels),
        np.array([transition.losses for transition in transitions]).reshape(-1, layers.samples.n_draws),
    )


def aligned_by_items(
    layers: Layers, partitions: Mapping[Any, Any], reported: Mapping[Any, Labels]
) -> AlignedPartitions:
    """Partitions of layers of runs, whose clusters keep their names by the items in common, not those of each draw.

    Items of the label -1 are in one cluster more of all layers, the noise.
    """
    steps, partner_of = steps_of(layers), list[npt.NDArray[np.integer]]()
    for step in steps:
        after, before = reported[step.after], reported[step.before]
        common = np.zeros((int(after.max()) + 1, int(before.max()) + 1), np.int64)
        inside = (after[step.to] >= 0) & (before[step.at] >= 0)
        np.add.at(common, (after[step.to][inside], before[step.at][inside]), 1)
        partner_of.append(partners(common) if common.size else np.full(len(common), -1))
    numbers, names = _numbers_that_go_on(layers, partitions, reported, list(zip(steps, partner_of, strict=True)))
    labels = {name: np.append(numbers[name], len(names))[reported[name]] for name in layers}
    some = any(own.min() < 0 for own in reported.values())
    return _over_all_items(layers, labels, [*names, NOISE] if some else names)[0]


def _numbers_that_go_on(
    layers: Layers,
    partitions: Mapping[Any, Any],
    reported: Mapping[Any, Labels],
    partner_of: list[tuple[Step, npt.NDArray[np.integer]]],
) -> tuple[dict[Any, Integers], list[Hashable]]:
    """Number that goes on of each cluster of each layer's partition, by layer, and the name of each number."""
    into = {step.after: (step.before, partner) for step, partner in partner_of}
    numbers, names = dict[Any, Integers](), list[Hashable]()
    for name, draws in layers.items():
        n_clusters = int(reported[name].max()) + 1
        if name in into:
            before, partner = into[name]
            numbers[name], names = continued(partner, np.append(numbers[before], -1), names)
        elif names:
            numbers[name], names = continued(np.full(n_clusters, -1), np.array([-1]), names)
        elif n_clusters:
            values = np.asarray(draws.items.reordered(partitions[name]))
            numbers[name], names = first_numbers(partitions[name], values[reported[name] >= 0])
        else:
            numbers[name] = np.empty(0, np.int64)
    return numbers, names


def _flow_table(steps: list[Step], transitions: list[Transition], numbers: Mapping[Any, Integers]) -> xr.Dataset:
    columns = [np.empty((len(FLOWS), 0))]
    for row, (step, transition) in enumerate(zip(steps, transitions, strict=True)):
        source = np.append(numbers[step.before], -1)[transition.source]
        target = np.append(numbers[step.after], -1)[transition.target]
        columns.append(np.stack([np.full(source.size, row), source, target, *transition.flows]))
    types = [np.int32] * 3 + [np.float64] * 4
    values = zip(FLOWS, np.concatenate(columns, axis=1), types, strict=True)
    return xr.Dataset({name: ("flow", column.astype(dtype)) for name, column, dtype in values})


def _overlap_table(
    steps: list[Step], transitions: list[Transition], places: list[Positions], labels: xr.DataArray
) -> xr.Dataset:
    """Overlaps and moves over step and the items of `labels`, given where among these the common items are."""
    found = np.full((len(OVERLAPS), len(steps), labels.shape[1]), np.nan)
    found[-_FLAGS:] = 0
    for row, (transition, at) in enumerate(zip(transitions, places, strict=True)):
        found[:, row, at] = np.concatenate([transition.overlaps, transition.moved])
    ends = {"step": np.array([f"{step.before} to {step.after}" for step in steps], str)}
    ends |= {end: names_as_coordinate([getattr(step, end) for step in steps]) for end in ("before", "after")}
    columns = dict(zip(OVERLAPS, (*found[:-_FLAGS], *(found[-_FLAGS:] > 0)), strict=True))
    return Items.along(labels, str(labels.dims[1])).dataset(
        columns, ("step", ...), {end: ("step", names) for end, names in ends.items()}
    )


def _over_all_items(
    layers: Layers, labels: Mapping[Any, Integers], names: list[Hashable]
) -> tuple[AlignedPartitions, dict[Any, Positions]]:
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
    dressed = items.array(found, "labels", ("partition", ...), {"partition": names_as_coordinate(list(layers))})
    return AlignedPartitions(dressed, tuple(names)), places
