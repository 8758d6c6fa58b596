"""Summaries of the partition along the chains, and ArviZ's statistics of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import DrawnLabels
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.evaluate.expectation import losses_of_draws
from posterior_consensus.losses.partition_losses import information, pairs
from posterior_consensus.losses.record import PartitionLoss

Floats = npt.NDArray[np.float64]

STATISTICS = ("rhat", "ess_bulk", "ess_tail")
_CANDIDATE_PAIRS, _COMPARISONS = 20_000, 20_000_000  # bound the time of the search for pairs to follow
_CENTERS = 64
_ROUNDING = 1e6  # a larger R-hat is that of chains without variance, by which ArviZ divides
_TAIL = (0.05, 0.95)


def pairs_together(draws: PartitionDraws) -> Floats:
    """Number of co-clustered pairs of items in each draw, (n_draws,)."""
    together: Floats = np.add.reduceat(pairs(draws.n_items)[draws.drawn.sizes], draws.starts[:-1])
    return together


def size_traces(draws: PartitionDraws) -> dict[str, tuple[Floats, str]]:
    """Traces (n_draws,) of what the cluster sizes say, each with its unit."""
    n, sizes = draws.n_items, draws.drawn.sizes
    first = draws.starts[:-1]
    together = pairs_together(draws)
    entropy = (information(n)[n] - np.add.reduceat(information(n)[sizes], first)) / n
    return {
        "number of clusters": (draws.n_clusters.astype(np.float64), ""),
        "entropy of sizes": (np.maximum(entropy, 0.0), "bits"),
        "largest cluster": (np.maximum.reduceat(sizes, first) / n, "share of items"),
        "mean co-clustering": (together / pairs(n)[n] if n > 1 else np.full(draws.n_draws, np.nan), "share of pairs"),
    }


def central_draw(draws: PartitionDraws, loss: PartitionLoss) -> npt.NDArray[np.int32]:
    """Labels of the draw of minimum expected loss among 64 evenly spaced ones, of many items judged by some of them."""
    tried = evenly_spaced(draws.n_draws, _CENTERS)
    losses = draws.samples.mean(losses_of_draws(tried, draws.of_some_items()[1], loss))
    return draws.drawn.of_draws(tried[[losses.argmin()]])[0].astype(np.int32)


def far_distances(draws: PartitionDraws, distances: Floats, loss: PartitionLoss) -> tuple[Floats, Floats]:
    """Distances of all draws from the one farthest by `distances` from some partition, and from the farthest of it."""
    far = losses_of_draws(np.array([distances.argmax()]), draws, loss)[0]
    return far, losses_of_draws(np.array([far.argmax()]), draws, loss)[0]


def still_chains(draws: PartitionDraws) -> tuple[bool, npt.NDArray[np.bool_]]:
    """Whether all draws are the same partition, and whether (n_chains,) those of each chain are."""
    chains = draws.samples.chains
    rows = np.concatenate([*chains, [chain[0] for chain in chains]])
    others = np.concatenate([*(np.full(chain.size, chain[0]) for chain in chains), np.zeros(len(chains), np.intp)])
    ends = np.cumsum([chain.size for chain in chains])
    some = draws.drawn.some_items[1]
    for drawn in (some, draws.drawn):
        apart = _apart(drawn, rows, others)
        still = np.array([not part.any() for part in np.split(apart, ends)[:-1]])
        if some.n_items == draws.n_items or not still.any():
            break  # chains that move do so among a few items, typically
    return not apart.any(), still


def _apart(drawn: DrawnLabels, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether draws `rows[p]` and `others[p]` differ."""
    apart = np.zeros(rows.size, bool)
    for _, found in drawn.map_blocks(_differ, rows, others):
        apart |= found
    return apart


def _differ(
    labels: npt.NDArray[Any], items: slice, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    return np.array([not np.array_equal(labels[row], labels[other]) for row, other in zip(rows, others, strict=True)])


def uncertain_pairs(draws: PartitionDraws, n_pairs: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Positions (at most n_pairs, 2) of pairs of items that are co-clustered in some draws and separated in others."""
    n = draws.n_items
    if n * (n - 1) // 2 <= _CANDIDATE_PAIRS:
        candidates = np.stack(np.triu_indices(n, 1), axis=1)
    else:
        drawn = rng.integers(n, size=(_CANDIDATE_PAIRS, 2))
        candidates = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    if len(candidates) == 0:
        return candidates
    labels = draws.drawn.of_draws(evenly_spaced(draws.n_draws, max(1, _COMPARISONS // len(candidates))))
    counts = np.zeros(len(candidates), np.int64)
    for draw in labels:
        counts += draw[candidates[:, 0]] == draw[candidates[:, 1]]
    uncertain = candidates[(counts > 0) & (counts < len(labels))]
    return uncertain[np.sort(rng.permutation(len(uncertain))[:n_pairs])]


def together_trace(draws: PartitionDraws, chosen: npt.NDArray[np.intp]) -> Floats:
    """Whether each pair of items (n_pairs, 2) is co-clustered in each draw, (n_pairs, n_draws)."""
    return (draws.drawn.columns(chosen[:, 0]) == draws.drawn.columns(chosen[:, 1])).astype(np.float64)


def arviz_statistics(draws: PartitionDraws, values: Floats) -> dict[str, Floats]:
    """R-hat and effective sample sizes of traces (n_traces, n_draws), as ArviZ computes them.

    NaN for chains of fewer than four draws and for traces that are not numbers; R-hat also for one chain and for a
    constant, and infinite where chains that do not move differ. R-hat does not count the weights; effective sample
    sizes do.
    """
    from arviz_stats.base import array_stats

    chains = draws.samples.by_chain(values)
    found = {name: np.full(len(values), np.nan) for name in STATISTICS}
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    if chains.shape[-1] < 4 or known.size == 0:
        return found
    chains = chains[known]
    if draws.samples.is_weighted:
        found["ess_bulk"][known], found["ess_tail"][known] = _weighted_sizes(draws, values[known])
    else:
        found["ess_bulk"][known] = array_stats.ess(chains, method="bulk")
        found["ess_tail"][known] = array_stats.ess(chains, method="tail", prob=_TAIL)
    if chains.shape[-2] > 1:
        moving = np.ptp(chains, axis=(-2, -1)) > 0
        if np.any(moving):
            with np.errstate(divide="ignore", invalid="ignore"):
                rhat = array_stats.rhat(chains[moving], method="rank")
            found["rhat"][known[moving]] = np.where(rhat > _ROUNDING, np.inf, rhat)
    return found


def _weighted_sizes(draws: PartitionDraws, values: Floats) -> tuple[Floats, Floats]:
    """Effective sample sizes: bulk, of the mean normal score, and tail, the smaller one of two quantiles."""
    scores = ndtri((rankdata(values, axis=-1) - 0.375) / (draws.n_draws + 0.25))
    low, high = np.quantile(values, _TAIL, axis=-1, method="inverted_cdf", weights=draws.weights)[..., np.newaxis]
    tails = [_effective_size(draws, (values <= edge).astype(np.float64)) for edge in (low, high)]
    return _effective_size(draws, scores), np.minimum(*tails)


def _effective_size(draws: PartitionDraws, values: Floats) -> Floats:
    """Number of independent draws of the posterior whose mean would have the same error."""
    spread = draws.samples.mean(np.square(values - draws.samples.mean(values)[..., np.newaxis]))
    error = draws.samples.mcse(values)
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant has neither
        sizes = spread / (1.0 - 1.0 / draws.samples.effective_draws) / np.square(error)
    return np.where(error == 0, draws.samples.effective_draws, sizes)
