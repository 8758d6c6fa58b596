"""How far apart runs are: two of one layer, with what random labels would have, and one each of two layers."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.groups import permutation_p_value, run_distances, within
from posterior_consensus.ensemble.chains import half_energy
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import draw_losses, loss_matrix, losses_between
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import Labels, alone, canonical_labels
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, evenly_spaced
from posterior_consensus.layers.chance import chance_losses
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.stored_as import names_as_coordinate
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.engine import search
from posterior_consensus.search.runs import SearchInfo

MOST_RUNS = 200  # of a layer, of which all pairs are compared
_LEFT_OUT = 10  # runs of a layer, each of which is compared with the partition of the others
_ITEMS = 1_000  # by which
_ENOUGH_PAIRS = 100  # of runs of a layer, for what random labels have

STABILITY = (
    *("n_runs", "fewest", "most", "n_clusters", "n_noise", "distance", "error", "chance", "stability"),
    *("stability_error", "to_consensus", "agreement"),
)
DISTANCES = ("distance", "error", "separation", "p_value", "consensus_distance", "same", "n_common")


class Distances(NamedTuple):
    """Mean distance between runs, its standard error, and what else depends on all pairs of runs.

    Attributes
    ----------
    mean, error : float
    separation, p_value : float
        Half the energy distance of two layers, and the p-value of the test of equal groups, see :func:`run_spread`.
    """

    mean: float
    error: float
    separation: float
    p_value: float


def compared_runs(draws: PartitionDraws) -> PartitionDraws:
    """The runs of a layer, at most 200, of which all pairs are compared, in an order of their own."""
    draws = draws.in_fixed_order()
    return draws if draws.n_draws <= MOST_RUNS else draws.take(evenly_spaced(draws.n_draws, MOST_RUNS))


def stability_of(
    layers: Layers,
    own: Mapping[Any, Floats],
    partitions: Mapping[Any, Labels],
    results: Mapping[Any, Any],
    loss: PartitionLoss,
) -> xr.Dataset:
    """How stable each layer is, with the columns STABILITY over ``layer``.

    The mean distance and the agreement of runs with a partition that a search in `results` found for them are those of
    a run with the partition of the others. `own` are :func:`run_distances` of the :func:`compared_runs` of each layer,
    `partitions` its canonical labels, -1 for noise, which is a cluster of its own in all losses. The squared standard
    error of the stability is that of the jackknife and (2 f^2 / (N + 4))^2, with the share f of the most frequent
    partition among N compared runs: an answer that none of N equal runs gave may come in 2 / (N + 4) of all runs, as
    far from theirs as by chance.
    """
    rows = []
    for name, draws in layers.items():
        compared = compared_runs(draws)
        marked, (mean, of_runs), chance = partitions[name], within(own[name]), _chance(compared, loss)
        error = float(np.hypot(of_runs, chance * _error_of_unseen(compared)))
        labels = alone(marked)
        unit = chance if chance > ROUNDING else np.nan
        fit = _fit(draws, labels, loss) + _optimism(compared, results[name], marked, loss)
        fit[1] = np.clip(fit[1], 0.0, 1.0)
        numbers = (
            int(draws.n_clusters.min()),
            int(draws.n_clusters.max()),
            int(marked.max()) + 1,
            int((marked < 0).sum()),
        )
        relative = 1 - mean / unit, error / unit
        rows.append((draws.n_draws, *numbers, mean, error, chance, *relative, *fit))
    columns = zip(STABILITY, zip(*rows, strict=True), strict=True)
    found = {name: ("layer", np.array(column)) for name, column in columns}
    return xr.Dataset(found, {"layer": names_as_coordinate(list(layers))})


def _error_of_unseen(draws: PartitionDraws) -> float:
    """What an answer that the runs did not give may add to their mean distance, as a share of the chance distance."""
    share = np.unique(draws.backend.fingerprints(), return_counts=True)[1].max() / draws.n_draws
    return float(2 * share**2 / (draws.n_draws + 4))


def _fit(draws: PartitionDraws, labels: Labels, loss: PartitionLoss) -> Floats:
    """Mean distance (2,) of the runs from a partition, and their agreement with it."""
    return np.array([draws.samples.mean(draw_losses(labels[np.newaxis], draws, loss))[0], _agreement(draws, labels)])


def _optimism(draws: PartitionDraws, result: Any, partition: Labels, loss: PartitionLoss) -> Floats:
    """What a new run has more of distance and agreement (2,) than the runs by which a search found the partition.

    Each of at most 10 runs is left out: it is compared with the partition that a search for the others ends at, and
    with the one for all, by at most 1,000 items. 0 for a partition that greedy search did not find for as many runs,
    and for runs with noise, whose searches would take several times as long as all else; NaN for a single run.
    """
    is_found = isinstance(result, ConsensusPartition) and isinstance(result.info, SearchInfo)
    if not is_found or draws.has_noise:
        return np.zeros(2)
    if result.n_draws != draws.n_draws and draws.n_draws < MOST_RUNS:
        return np.zeros(2)
    if draws.n_draws < 2:
        return np.full(2, np.nan)
    left_out = evenly_spaced(draws.n_draws, min(draws.n_draws, _LEFT_OUT))
    which, repeated = np.unique(draws.backend.fingerprints()[left_out], return_index=True, return_counts=True)[1:]
    limits = {name: number for name, number in vars(result.cluster_limits).items() if number is not None}
    effort: dict[str, Any] = {"n_starts": 1, "n_perturbations": 0} | limits

    def found(runs: PartitionDraws, start: Labels) -> Labels:
        return search(runs, result.loss, rng=np.random.default_rng(0), starts=[start], **effort).labels

    if draws.n_items > _ITEMS:
        some = np.sort(np.random.default_rng(0).choice(draws.n_items, _ITEMS, replace=False))
        draws = draws.of_items(some)
        partition = found(draws, _numbered_anew(partition[some]))
    differences = np.zeros((which.size, 2))
    for row, run in zip(differences, left_out[which].tolist(), strict=True):
        rest, one = draws.take(np.delete(np.arange(draws.n_draws), run)), draws.take(np.array([run]))
        labels = found(rest, partition)
        if not np.array_equal(labels, partition):
            row[:] = _fit(one, alone(labels), loss) - _fit(one, alone(partition), loss)
    return np.average(np.nan_to_num(differences), axis=0, weights=repeated)


def _agreement(draws: PartitionDraws, labels: Labels) -> float:
    """Mean over items of their mean similarity to the others of their cluster; NaN if all are alone.

    That is a sum over the joint cells of each cluster with those of the runs, without similarities of single items.
    """
    sizes, width = np.bincount(labels), int(draws.backend.n_clusters.max())
    together = np.zeros(sizes.size)
    for _, runs in draws.backend.blocks(1):
        cells, counts = np.unique(labels.astype(np.int64) * width + runs[0], return_counts=True)
        together += np.bincount(cells // width, counts * (counts - 1), sizes.size)
    several = sizes > 1
    if not several.any():
        return np.nan
    return float((together[several] / (sizes[several] - 1)).sum() / (draws.n_draws * sizes[several].sum()))


def _chance(draws: PartitionDraws, loss: PartitionLoss) -> float:
    """Mean distance of two runs with random labels; of many runs, of each and those that follow it in their order."""
    n = draws.n_draws
    rows, others = np.triu_indices(n, 1)
    if not rows.size:
        return np.nan
    lag = others - rows
    near = np.minimum(lag, n - lag) <= -(-_ENOUGH_PAIRS // n)
    rows, others = rows[near], others[near]
    expected = chance_losses(draws, rows, others, loss)
    if not loss.is_symmetric:
        expected = (expected + chance_losses(draws, others, rows, loss)) / 2
    return float(expected.mean())


def distances_between(
    layers: Layers,
    pairs: npt.NDArray[np.bool_],
    own: Mapping[Any, Floats],
    partitions: Mapping[Any, Labels],
    stability: xr.Dataset,
    loss: PartitionLoss,
    progressbar: bool,
) -> xr.Dataset:
    """How far apart layers are, for each pair that is True in the symmetric `pairs` (n_layers, n_layers).

    `own` and `partitions` are as for :func:`stability_of`, which returned `stability`.

    Returns
    -------
    xarray.Dataset over layer and other_layer
        With the columns DISTANCES; NaN for other pairs, and for those without common items.
    """
    names, n_layers = list(layers), len(layers)
    found = {name: np.full((n_layers, n_layers), np.nan) for name in DISTANCES}
    found["same"], found["n_common"] = np.zeros((2, n_layers, n_layers))
    some = {name: compared_runs(draws) for name, draws in layers.items()}
    wanted = [pair for pair in combinations(range(n_layers), 2) if pairs[pair]]
    for k, name in enumerate(names):
        found["distance"][k, k], found["error"][k, k] = (stability[of].values[k] for of in ("distance", "error"))
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
        estimates = np.stack([_numbered_anew(partitions[name][at]) for name, at in zip(ends, common, strict=True)])
        values = compared(of_sides[0], of_sides[1], across)._asdict()
        values["distance"] = values.pop("mean")
        values["consensus_distance"] = losses_between(alone(estimates), loss)[0, 1]
        values["same"], values["n_common"] = np.array_equal(*estimates), common[0].size
        for name, value in values.items():
            found[name][one, other] = found[name][other, one] = value
    dims = ("layer", "other_layer")
    found["same"], found["n_common"] = found["same"] > 0, found["n_common"].astype(np.int64)
    return xr.Dataset(
        {name: (dims, values) for name, values in found.items()}, dict.fromkeys(dims, names_as_coordinate(names))
    )


def _numbered_anew(labels: Labels) -> Labels:
    """Canonical labels of some items, of which -1 stays."""
    found, inside = np.full_like(labels, -1), labels >= 0
    if inside.any():
        found[inside] = canonical_labels(labels[inside])
    return found


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
