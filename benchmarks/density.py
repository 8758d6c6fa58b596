"""Density on partitions: what its credible set covers, its figures beside cbi_partitions', and pairwise losses in time.

Posteriors of 7 items are known exactly, so that the probability of a credible set is a sum over all 877 partitions.
Real posteriors hold out each chain in turn. One with two modes compares the credible set with the ball.
"""

import json
from functools import partial

import numpy as np

import posterior_consensus as pc
from benchmarks._data import GOLDEN, SHIPPED, dpmm, random_draws
from benchmarks._runner import median_seconds
from posterior_consensus.ensemble.partitions import enumerate_partitions

PROBS = (0.5, 0.8, 0.95)
CENTRES = {"one mode": [[0, 0, 0, 0, 1, 1, 1]], "two modes": [[0, 0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1, 2]]}
CHAINS = {"galaxies": "galaxies.nc", "iris": "iris.nc", "block model": "block_model.nc"}
N_DRAWS = 1000
HALVES = {
    "Gibbs, all draws by turns": lambda n: (slice(None, None, 2), slice(1, None, 2)),
    "Gibbs, first and second half": lambda n: (slice(None, n // 2), slice(n // 2, None)),
}


def tables(smallest):
    yield "", _exact(*((2, 60, 1) if smallest else (100, N_DRAWS, None)))
    yield "", _held_out(*((1, 50) if smallest else (None, None)))
    yield "", _two_modes(*((20, 50) if smallest else (400, None)))
    yield "", _beside_cbi()
    yield "", _pairwise(*((50, 60, 1) if smallest else (2000, 1000, 7)))


def enumerated_posterior(centres: list[list[int]], spread: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """All partitions of the centres' items, and probabilities that fall by VI from the nearest centre."""
    partitions = np.concatenate(list(enumerate_partitions(len(centres[0]))))
    losses = pc.partition_loss(partitions, centres).values
    rng = np.random.default_rng(1)
    weights = np.exp(-losses.min(axis=1) / spread) * rng.uniform(0.5, 1.5, len(partitions))  # hardly any ties
    return partitions, weights / weights.sum()


def gibbs_transitions(partitions: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Cumulative rows of the chain that draws the cluster of one random item, given the others, at each step."""
    n_items = partitions.shape[1]
    transitions = np.zeros((len(partitions), len(partitions)))
    for item in range(n_items):
        others = pc.as_partition_draws(np.delete(partitions, item, axis=1)).labels
        _, same = np.unique(others, axis=0, return_inverse=True)
        conditional = (same[:, np.newaxis] == same) * probabilities
        transitions += conditional / conditional.sum(axis=1, keepdims=True) / n_items
    return np.cumsum(transitions, axis=1)


def gibbs_chain(
    transitions: np.ndarray, probabilities: np.ndarray, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Row numbers of the partitions that a stationary chain visits."""
    visited = np.empty(n_draws, np.int64)
    at = rng.choice(len(probabilities), p=probabilities)
    for t in range(n_draws):
        at = min(int(np.searchsorted(transitions[at], rng.random())), len(probabilities) - 1)
        visited[t] = at
    return visited


def coverage(density: pc.results.PartitionDensity, partitions: np.ndarray, probabilities: np.ndarray) -> list[float]:
    """Posterior probability of the credible sets."""
    return [float(probabilities[density.contains(partitions, prob).values].sum()) for prob in PROBS]


def _exact(n_sets, n_draws, n_posteriors):
    for name, centres in list(CENTRES.items())[:n_posteriors]:
        partitions, probabilities = enumerated_posterior(centres)
        transitions = gibbs_transitions(partitions, probabilities)
        for sampling in ("independent", "Gibbs", *HALVES):
            covered = []
            for seed in range(n_sets):
                rng = np.random.default_rng(seed)
                if sampling == "independent":
                    visited = rng.choice(len(partitions), n_draws, p=probabilities)
                else:
                    visited = gibbs_chain(transitions, probabilities, n_draws, rng)
                draws = pc.as_partition_draws(partitions[visited])
                covered.append(coverage(_density(draws, sampling), partitions, probabilities))
            error = np.std(covered, axis=0, ddof=1) / np.sqrt(n_sets)
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(np.mean(covered, axis=0), error, strict=True)]
            yield {"posterior": name, "draws": sampling, "sets": n_sets, **_by_probability(cells)}


def _by_probability(cells):
    return {f"{prob:.0%}": cell for prob, cell in zip(PROBS, cells, strict=True)}


def _density(draws, sampling):
    if sampling not in HALVES:
        return pc.partition_density(draws, random_seed=1)
    training, calibration = (draws.isel(draw=part) for part in HALVES[sampling](draws.n_draws))
    return pc.partition_density(training, calibration=calibration, random_seed=1)


def _held_out(n_posteriors, n_draws):
    for name, file in list(CHAINS.items())[:n_posteriors]:
        draws = pc.as_partition_draws(SHIPPED / file).isel(draw=slice(n_draws))
        chains = range(len(draws.samples.chains))
        for k in chains:
            density = pc.partition_density(draws.isel(chain=[j for j in chains if j != k]), random_seed=1)
            p_values = density.p_value(draws.isel(chain=k).labels).values
            share = [f"{np.mean(p_values > 1 - prob + 1e-12):.3f}" for prob in PROBS]
            row = {"posterior": name, "chain held out": k, "calibration draws": density.scores.size}
            yield row | _by_probability(share)


def _two_modes(n_partitions, n_draws):
    """Which partitions near the first mode, and which between the modes, are in the ball and in the set of 95%."""
    draws = pc.as_partition_draws(SHIPPED / "two_answers.nc").isel(draw=slice(n_draws))
    best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
    ball = pc.credible_ball(draws, best)
    density, narrow = (pc.partition_density(draws, bandwidth=h, random_seed=1, progressbar=False) for h in (None, 0.1))
    rng, near = np.random.default_rng(0), np.tile(best.labels.values, (n_partitions, 1))
    for row in near:
        row[rng.choice(row.size, 10, replace=False)] = rng.integers(3, size=10)
    place = np.array([str(name).split()[0] for name in draws.items.names])
    coast, mountain, valley = (np.flatnonzero(place == name) for name in ("coast", "mountain", "valley"))
    path = np.tile(np.unique(place, return_inverse=True)[1], (valley.size + 1, 1))
    for k, row in enumerate(path):
        row[valley[:k]], row[valley[k:]] = row[mountain[0]], row[coast[0]]
    with_coast = np.array([row[valley] == np.bincount(row[coast]).argmax() for row in draws.labels]).mean(axis=1)
    yield {
        "partitions near the first mode": n_partitions,
        "in the ball": int((pc.partition_loss(near, best.labels.values[np.newaxis]).values <= ball.radius).sum()),
        "in the set of 95%": int(density.contains(near, 0.95).values.sum()),
        "least p-value between the modes": f"{density.p_value(path).values.min():.2f}",
        "bandwidth": f"{density.bandwidth:.2f}",
        "with bandwidth 0.1": f"{narrow.p_value(path).values.min():.2f}",
        "draws with 40 to 60% moved": f"{np.mean((with_coast >= 0.4) & (with_coast <= 0.6)):.1%}",
    }


def _beside_cbi():
    """Largest difference of scores, p-values, distances and peaks from cbi_partitions' on the same halves."""
    labels, answer = dpmm(), json.loads((GOLDEN / "dpmm_density.json").read_text(encoding="utf-8"))
    density = pc.partition_density(labels[::2], calibration=labels[1::2], bandwidth=2.0, random_seed=1)
    peaks = density.scores.values * density.to_higher.values
    top = np.argsort(-peaks)[:6]
    pairs = [
        (density.score(labels[1:11:2]), answer["scores_of_first_5_calibration_rows"]),
        (density.p_value(labels[1:11:2]), answer["p_values_of_those"]),
        (density.to_higher[:5], answer["delta_of_those"]),
        (density.scores.values.max(), answer["largest_score"]),
        (density.scores.values.argmax(), answer["its_calibration_row"]),
        (peaks[top], answer["largest_six_score_times_delta"]),
        (top, answer["their_rows"]),
    ]
    largest = max(np.abs(np.asarray(ours) - np.asarray(theirs)).max() for ours, theirs in pairs)
    yield {"posterior": "dpmm", "largest difference from cbi_partitions": f"{largest:.2g}"}


def _pairwise(n_draws, n_items, repeats):
    for n_clusters in (10, 30):
        draws = pc.as_partition_draws(random_draws(n_draws, n_items, n_clusters))
        for loss in ("vi", "binder", "nid"):
            pc.partition_loss(draws, loss=loss)
            (seconds,) = median_seconds(partial(pc.partition_loss, draws, loss=loss), repeats=repeats)
            size = f"{draws.n_draws:,} x {draws.n_items:,}"
            yield {"draws x items": size, "clusters": n_clusters, "loss": loss, "seconds": seconds}
