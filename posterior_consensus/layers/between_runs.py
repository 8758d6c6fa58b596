"""How far apart runs are: two of one layer, with what random labels would have, and one each of two layers."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from posterior_consensus.diagnostics.groups import compared_runs, mean_distance, permutation_p_value, run_distances
from posterior_consensus.diagnostics.new_runs import new_runs
from posterior_consensus.ensemble.chains import half_energy
from posterior_consensus.ensemble.expectation import loss_matrix, losses_between
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import Labels, alone, marked
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.stored_as import names_as_coordinate
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

NEW_RUNS = ("to_consensus", "to_consensus_error", "agreement", "agreement_error")  # in the order of the record's fields
STABILITY = (
    *("n_runs", "fewest", "most", "n_clusters", "n_noise", "distance", "error", "chance", "stability"),
    *("stability_error", *NEW_RUNS),
)
DISTANCES = ("distance", "error", "separation", "p_value", "consensus_distance", "same", "n_common")


class Distances(NamedTuple):
    """Mean distance between runs, its standard error, and what else depends on all pairs of runs."""

    mean: float
    error: float
    # half the energy distance of two layers, and the p-value of the test of equal groups, see :func:`run_spread`
    separation: float
    p_value: float


def stability_of(
    layers: Layers,
    own: Mapping[Any, Floats],
    partitions: Mapping[Any, Labels],
    results: Mapping[Any, Any] | None,
    loss: PartitionLoss,
) -> xr.Dataset:
    """How stable each layer is, with the columns STABILITY over ``layer``.

    `own` are :func:`run_distances` of the :func:`compared_runs` of each layer, `results` the partitions as given, and
    `partitions` their canonical labels, -1 for noise, which is a cluster of its own in all losses. Columns of these are
    NaN without partitions.
    """
    rows = []
    for name, draws in layers.items():
        mean, error, chance = mean_distance(compared_runs(draws), own[name], loss)
        unit = chance if chance > ROUNDING else np.nan
        numbers, fit = (np.nan, np.nan), (np.nan,) * len(NEW_RUNS)
        if results is not None:
            marked = partitions[name]
            numbers = int(marked.max()) + 1, int((marked < 0).sum())
            fit = tuple(vars(new_runs(draws, results[name], marked, loss, chance)).values())
        ends, relative = (int(draws.n_clusters.min()), int(draws.n_clusters.max())), (1 - mean / unit, error / unit)
        rows.append((draws.n_draws, *ends, *numbers, mean, error, chance, *relative, *fit))
    columns = zip(STABILITY, zip(*rows, strict=True), strict=True)
    found = {name: ("layer", np.array(column)) for name, column in columns}
    return xr.Dataset(found, {"layer": names_as_coordinate(list(layers))})


def distances_between(
    layers: Layers,
    pairs: Flags,
    own: Mapping[Any, Floats],
    partitions: Mapping[Any, Labels],
    stability: xr.Dataset,
    loss: PartitionLoss,
    progressbar: bool,
) -> xr.Dataset:
    """How far apart layers are, for each pair that is True in the symmetric `pairs` (n_layers, n_layers).

    `own` and `partitions`, empty for none, are as for :func:`stability_of`, which returned `stability`. The Dataset
    over layer and other_layer has the columns DISTANCES; NaN for other pairs, and for those without common items.
    """
    names, n_layers = list(layers), len(layers)
    found = {name: np.full((n_layers, n_layers), np.nan) for name in DISTANCES}
    found["same"], found["n_common"] = np.zeros((2, n_layers, n_layers))
    some = {name: compared_runs(draws) for name, draws in layers.items()}
    wanted = [pair for pair in combinations(range(n_layers), 2) if pairs[pair]]
    for k, name in enumerate(names):
        found["distance"][k, k], found["error"][k, k] = (stability[of].values[k] for of in ("distance", "error"))
        if partitions:
            found["consensus_distance"][k, k], found["same"][k, k] = 0.0, 1
        found["n_common"][k, k] = layers[name].n_items
    for one, other in track(wanted, "Distances between layers", progressbar=progressbar):
        ends = names[one], names[other]
        common = layers.common(*ends)
        if not common[0].size:
            continue
        sides, of_sides = [some[name] for name in ends], [own[name] for name in ends]
        if layers[ends[0]].items is not layers[ends[1]].items:
            sides = [draws.of_items(at) for draws, at in zip(sides, common, strict=True)]
            of_sides = [run_distances(draws, loss) for draws in sides]
        across = loss_matrix(sides[0].labels, sides[1], loss)
        if not loss.is_symmetric:
            across = (across + loss_matrix(sides[1].labels, sides[0], loss).T) / 2
        values = compared(of_sides[0], of_sides[1], across)._asdict()
        values["distance"], values["n_common"] = values.pop("mean"), common[0].size
        if partitions:
            shared = [partitions[name][at] for name, at in zip(ends, common, strict=True)]
            estimates = np.stack([marked(labels, labels < 0) for labels in shared])
            values["consensus_distance"] = losses_between(alone(estimates), loss)[0, 1]
            values["same"] = np.array_equal(*estimates)
        for name, value in values.items():
            found[name][one, other] = found[name][other, one] = value
    dims = ("layer", "other_layer")
    found["same"], found["n_common"] = found["same"] > 0, found["n_common"].astype(np.int64)
    return xr.Dataset(
        {name: (dims, values) for name, values in found.items()}, dict.fromkeys(dims, names_as_coordinate(names))
    )


def compared(own: Floats, others: Floats, across: Floats) -> Distances:
    """Compare two sets of runs, given the distances within each and (n, m) across."""
    n, m = across.shape
    error = np.nan
    if min(n, m) >= FEWEST_DRAWS:
        error = float(np.sqrt(across.mean(axis=1).var(ddof=1) / n + across.mean(axis=0).var(ddof=1) / m))
    if min(n, m) < 2:
        return Distances(float(across.mean()), error, np.nan, np.nan)
    distances = np.block([[own, across], [across.T, others]])
    layer = np.repeat([0, 1], [n, m])
    ours = layer[np.newaxis] == 0
    separation = float(half_energy(distances, ours, ~ours, 1.0 - np.eye(n + m))[0])
    return Distances(float(across.mean()), error, separation, permutation_p_value(distances, layer))
