"""Scalar summaries of the partition along the chains, of one layer or several, and their statistics, those of ArviZ."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.diagnostics.record import STATISTICS
from posterior_consensus.diagnostics.unvisited import LARGE
from posterior_consensus.ensemble.chains import (
    ChainDifference,
    difference_is_real,
    largest_difference,
    pairs_together,
    partition_variance,
)
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix, losses_of_draws, paired_losses
from posterior_consensus.ensemble.layers import Layers, steps_of
from posterior_consensus.ensemble.r_hat import RHAT_BAD, RHAT_FINITE, rank_rhat
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.ensemble.series import bulk_size, normal_scores, tail_size
from posterior_consensus.losses.partition_losses import information
from posterior_consensus.losses.record import PartitionLoss, pairs
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Positions

_CANDIDATE_PAIRS, _COMPARISONS = 20_000, 20_000_000  # bound the time of sampling pairs
_CENTRES = 64
_TAIL = (0.05, 0.95)
_FEW = 10  # layers without an order, of which all pairs are followed


def size_traces(draws: PartitionDraws) -> dict[str, tuple[Floats, str]]:
    """Traces (n_draws,) of functions of the cluster sizes, with their units."""
    n, sizes, present = draws.n_items, draws.cluster_sizes, draws.n_present
    first = draws.starts[:-1]
    together = pairs_together(draws)
    entropy = (information(n)[present] - np.add.reduceat(information(n)[sizes], first)) / np.maximum(present, 1)
    of_pairs = pairs(n)[present]
    return {
        "number of clusters": (draws.n_clusters.astype(np.float64), ""),
        "entropy of sizes": (np.maximum(entropy, 0.0), "bits"),
        "largest cluster": (np.maximum.reduceat(sizes, first) / np.maximum(present, 1), "share of items"),
        "mean co-clustering": (
            np.divide(together, of_pairs, out=np.full(draws.n_draws, np.nan), where=of_pairs > 0),
            "share of pairs",
        ),
    }


def merge_traces(draws: PartitionDraws, labels: npt.NDArray[np.int32]) -> dict[str, Floats]:
    """Traces (n_draws,) of the share of co-clustered pairs within and between the ten largest clusters of a partition.

    They show modes in which a cluster is split, or two exchange items, that the other clusters' noise hides elsewhere.
    There are none if their counts would exceed the memory budget.
    """
    sizes = np.bincount(labels)
    large = np.sort(np.argsort(-sizes, kind="stable")[:LARGE])
    if not memory.fits(16 * int(draws.starts[-1]) * (large.size + 1)):  # counts as integers, fractions and products
        return {}
    column = np.full(sizes.size, large.size)
    column[large] = np.arange(large.size)
    counts, first = draws.backend.joint_counts(column[labels].astype(np.int32)).T.astype(np.float64), draws.starts[:-1]
    found = {}
    for i, k in enumerate(large.tolist()):
        if sizes[k] > 1:
            own = np.add.reduceat(np.square(counts[i]), first) - sizes[k]
            found[f"share of co-clustered pairs within cluster {k}"] = own / (sizes[k] * (sizes[k] - 1))
        for j, other in enumerate(large[:i].tolist()):
            both = np.add.reduceat(counts[i] * counts[j], first)
            found[f"share of co-clustered pairs of clusters {other} and {k}"] = both / (sizes[k] * sizes[other])
    return found


def central_draw(draws: PartitionDraws, some: PartitionDraws, loss: PartitionLoss) -> npt.NDArray[np.int32]:
    """Labels of the draw of minimum expected loss among 64 evenly spaced draws, judged on some items."""
    tried = evenly_spaced(draws.n_draws, _CENTRES)
    losses = draws.samples.mean(losses_of_draws(tried, some, loss))
    return draws.backend.of_draws(tried[[losses.argmin()]])[0].astype(np.int32)


def far_distances(draws: PartitionDraws, distances: Floats, loss: PartitionLoss) -> tuple[Floats, Floats]:
    """Distances of all draws from the draw that is farthest by `distances`, and from the draw farthest from it."""
    far = losses_of_draws(np.array([distances.argmax()]), draws, loss)[0]
    return far, losses_of_draws(np.array([far.argmax()]), draws, loss)[0]


def still_chains(draws: PartitionDraws, some: PartitionDraws) -> tuple[bool, Flags]:
    """Whether all draws are the same partition, and whether all draws of each chain (n_chains,) are."""
    chains = draws.samples.chains
    rows = np.concatenate([*chains, [chain[0] for chain in chains]])
    others = np.concatenate([*(np.full(chain.size, chain[0]) for chain in chains), np.zeros(len(chains), np.intp)])
    ends = np.cumsum([chain.size for chain in chains])
    for drawn in (some.backend, draws.backend):
        apart = np.zeros(rows.size, bool)
        for _, found in drawn.map_blocks(_differ_on, rows, others):
            apart |= found
        still = np.array([not part.any() for part in np.split(apart, ends)[:-1]])
        if some.n_items == draws.n_items or not still.any():
            break  # chains that move typically differ on the first items already
    return not apart.any(), still


def _differ_on(labels: npt.NDArray[Any], items: slice, rows: Positions, others: Positions) -> Flags:
    """Whether draws `rows[p]` and `others[p]` differ on these items."""
    return np.array([not np.array_equal(labels[row], labels[other]) for row, other in zip(rows, others, strict=True)])


def uncertain_pairs(draws: PartitionDraws, n_pairs: int, rng: np.random.Generator) -> Positions:
    """Positions (at most n_pairs, 2) of pairs of items that are co-clustered in some draws only.

    None are followed along runs that lack items.
    """
    n = draws.n_items
    if draws.lacks_items:
        return np.empty((0, 2), np.intp)
    if n * (n - 1) // 2 <= _CANDIDATE_PAIRS:
        candidates = np.stack(np.triu_indices(n, 1), axis=1)
    else:
        drawn = rng.integers(n, size=(_CANDIDATE_PAIRS, 2))
        candidates = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    if len(candidates) == 0:
        return candidates
    labels = draws.backend.of_draws(evenly_spaced(draws.n_draws, max(1, _COMPARISONS // len(candidates))))
    counts = np.zeros(len(candidates), np.int64)
    for draw in labels:
        counts += draw[candidates[:, 0]] == draw[candidates[:, 1]]
    uncertain = candidates[(counts > 0) & (counts < len(labels))]
    return uncertain[np.sort(rng.permutation(len(uncertain))[:n_pairs])]


def together_trace(draws: PartitionDraws, chosen: Positions) -> Floats:
    """Whether each pair of items (n_pairs, 2) is co-clustered in each draw, (n_pairs, n_draws)."""
    return (draws.backend.columns(chosen[:, 0]) == draws.backend.columns(chosen[:, 1])).astype(np.float64)


def chain_statistics(draws: PartitionDraws, values: Floats) -> dict[str, Floats]:
    """R-hat and effective sample sizes of traces (n_traces, n_draws), as ArviZ computes them.

    NaN for chains of fewer than four draws and for traces with missing values. R-hat is also NaN for one chain or a
    constant, and infinite if constant chains differ. Effective sample sizes use the weights, R-hat ignores them. Runs
    have no R-hat, and an effective size of their number.
    """
    statistics = {name: np.full(len(values), np.nan) for name in STATISTICS}
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    if not draws.samples.series:
        for name in STATISTICS[1:]:
            statistics[name][known] = draws.samples.effective_draws if draws.samples.has_errors else np.nan
        return statistics
    chains = draws.samples.by_chain(values)
    if chains.shape[-1] < 4 or known.size == 0:
        return statistics
    chains = chains[known]
    if draws.samples.is_weighted:
        statistics["ess_bulk"][known], statistics["ess_tail"][known] = _weighted_sizes(draws, values[known])
    else:
        statistics["ess_bulk"][known] = bulk_size(chains)
        statistics["ess_tail"][known] = tail_size(chains, _TAIL)
    if chains.shape[-2] > 1:
        moving = np.ptp(chains, axis=(-2, -1)) > 0
        if np.any(moving):
            rhat = rank_rhat(chains[moving])
            statistics["rhat"][known[moving]] = np.where(rhat > RHAT_FINITE, np.inf, rhat)
    return statistics


def _weighted_sizes(draws: PartitionDraws, values: Floats) -> tuple[Floats, Floats]:
    """Effective sample sizes: bulk, of the mean normal score, and tail, the smaller of two quantiles."""
    scores = normal_scores(values)
    low, high = np.quantile(values, _TAIL, axis=-1, method="inverted_cdf", weights=draws.weights)[..., np.newaxis]
    tails = [_effective_size(draws, (values <= edge).astype(np.float64)) for edge in (low, high)]
    return _effective_size(draws, scores), np.minimum(*tails)


def _effective_size(draws: PartitionDraws, values: Floats) -> Floats:
    """Number of independent draws of the posterior whose mean would have the same error."""
    spread = draws.samples.mean(np.square(values - draws.samples.mean(values)[..., np.newaxis]))
    error = draws.samples.mcse(values)
    with np.errstate(divide="ignore", invalid="ignore"):  # constants divide 0 by 0
        sizes = spread / (1.0 - 1.0 / draws.samples.effective_draws) / np.square(error)
    return np.where(error == 0, draws.samples.effective_draws, sizes)


def odd_chain(draws: PartitionDraws, difference: ChainDifference, pairs_together: Floats) -> object | None:
    """Name of the only chain without which all others agree; None if there is none or no difference is real.

    It is one of the two chains of the largest difference, which dropping another chain would not remove.
    """
    chains = draws.samples.chains
    if len(chains) < 3 or not difference_is_real(difference, draws.n_items, draws.samples):
        return None
    odd = []
    for name in difference.chains:
        rows = np.flatnonzero(draws.samples.chain != name)
        rest = draws.take(rows)
        apart = difference_is_real(largest_difference(rest), draws.n_items, rest.samples)
        if not apart and not partition_variance(rest, pairs_together[rows]).rhat > RHAT_BAD:
            odd.append(name)
    return odd[0] if len(odd) == 1 else None


def layer_traces(layers: Layers, partition: npt.NDArray[Any], loss: PartitionLoss) -> dict[str, tuple[Floats, str]]:
    """Traces (n_draws,) with their unit: of a layer its number of clusters and the loss of a partition; between layers.

    The partition is of the items of all layers. Losses between layers are those of each layer and the last one
    before it with common items, or of all pairs of few layers without an order.
    """
    ends = np.cumsum([draws.n_items for draws in layers.values()])
    found: dict[str, tuple[Floats, str]] = {}
    for (name, draws), own in zip(layers.items(), np.split(partition, ends[:-1]), strict=True):
        labels = np.unique(own, return_inverse=True)[1].astype(np.int32)
        found[f"number of clusters in {name}"] = draws.n_clusters.astype(np.float64), ""
        found[f"distance within {name}"] = loss_matrix(labels[np.newaxis], draws, loss)[0], loss.unit
    steps = [(step.before, step.after) for step in steps_of(layers)]
    pairs = combinations(layers, 2) if len(layers) <= _FEW and not layers.ordered else steps
    for (one, other), losses in same_draw_losses(layers, pairs, loss):
        found[f"distance from {one} to {other}"] = losses, loss.unit
    return found


def same_draw_losses(
    layers: Layers, pairs: Iterable[tuple[Any, Any]], loss: PartitionLoss
) -> Iterator[tuple[tuple[Any, Any], Floats]]:
    """Loss (n_draws,) of the first layer's partition against the second one's, of pairs with common items."""
    rows = np.arange(layers.samples.n_draws)
    for one, other in pairs:
        if (both := layers.paired(one, other)) is not None:
            yield (one, other), paired_losses(both, rows, rows.size + rows, loss)
