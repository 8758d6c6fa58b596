"""Whether two posteriors differ: p-values by exchange of blocks of draws, corrected for their number."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.evaluate.chain_variance import pairs_together, partition_ess, partition_variance
from posterior_consensus.evaluate.energy import half_energy
from posterior_consensus.evaluate.expectation import all_losses
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

_WORTH = 10.0  # effective draws of a block: shorter ones of slow chains are too much alike
_FEWEST, _MOST = 4, 40  # blocks of each posterior
_EXCHANGES = 999
_SIMILARITIES = 2_000_000  # of each block that are compared


@dataclass(frozen=True)
class Differences:
    """Tests of whether two posteriors differ.

    Attributes
    ----------
    energy, mcse : float
        Half the energy distance, and its Monte Carlo standard error.
    of_partitions, of_similarities, of_numbers : float
        P-values of this distance, of the difference of the similarities, and of the mean number of clusters.
    of_items : ndarray of shape (n_items,)
        P-value of the difference of each item's similarities. P-values are NaN for an effective sample size below 40.
    """

    energy: float
    mcse: float
    of_partitions: float
    of_similarities: float
    of_numbers: float
    of_items: Floats


def effective_size(draws: PartitionDraws) -> float:
    """Effective sample size: the smaller of the partition's and that of the number of clusters."""
    some = draws.of_some_items()[1]
    together = pairs_together(some)
    of_partition = partition_ess(some, together, partition_variance(some, together).total)
    of_number = draws.samples.mcse_and_ess(draws.n_clusters.astype(np.float64))[1]
    return float(np.fmin(of_partition * draws.samples.effective_draws / draws.n_draws, of_number))


def differences(
    both: tuple[PartitionDraws, PartitionDraws], sizes: tuple[float, float], metric: PartitionLoss, n_draws: int
) -> Differences:
    """Test whether two posteriors of these effective sample sizes differ.

    Notes
    -----
    The draws of each posterior are cut into as many blocks of successive draws of one chain, or groups of whole chains,
    with an effective size of about 10 each or more. If the effective sample sizes differ, only a stretch of each block
    of the larger one is used. Then blocks of equal posteriors are nearly exchangeable, also if one sampler is slower:
    the null distribution is that of 999 random exchanges of blocks between the posteriors [1]_. A block and the next
    one of its chain are correlated, so their distance does not count, nor does the distance within a block. The means
    of slow chains still vary more than after exchanges, by a factor of 1 + 1 / (2 m) for an effective size of m for
    each block. As slow items have fewer effective draws, the statistics are divided by 1 + 1 / m.

    With the mean distance d between the draws of two blocks, each statistic is the mean of d between the posteriors,
    less the mean of its means within each. For the partitions d is the loss. For similarities, d is minus the inner
    product of the blocks' similarity matrices, whose statistic estimates half the squared difference; for an item, of
    its rows. For the number of clusters it is minus the product of the means. Items' statistics are divided by their
    standard deviation over the exchanges, and the largest counts. The smallest of the four p-values is compared with
    its own distribution over the exchanges, so that the p-values are corrected for their number [2]_.

    References
    ----------
    .. [1] Romano (1990), Journal of the American Statistical Association 85(411), 686-692.
       https://doi.org/10.1080/01621459.1990.10474928
    .. [2] Westfall and Young (1993), Resampling-Based Multiple Testing, Wiley.
    """
    n_items = both[0].n_items
    both = _with_weight(both[0]), _with_weight(both[1])
    if min(draws.n_draws for draws in both) < 2 * _FEWEST:
        return Differences(np.nan, np.nan, np.nan, np.nan, np.nan, np.full(n_items, np.nan))
    worth = min(size / _WORTH if size > 0 else 0.0 for size in sizes)
    number = int(np.clip(worth, _FEWEST, _MOST))
    own = [_blocks(draws, number, min(sizes) / size) for draws, size in zip(both, sizes, strict=True)]
    n_first, n_blocks = len(own[0]), sum(map(len, own))
    blocks = [draws.take(rows) for draws, parts in zip(both, own, strict=True) for rows in parts]
    masses = np.concatenate([_masses(draws, parts) for draws, parts in zip(both, own, strict=True)])
    pairs = np.where(_are_near(blocks, n_first), 0.0, np.multiply.outer(masses, masses))
    first = np.arange(n_blocks) < n_first
    exchanged = np.random.default_rng(0).permuted(np.tile(first, (_EXCHANGES + 1, 1)), axis=1)
    exchanged[0] = first

    shrinkage = number / min(sizes)  # successive blocks of slow chains are correlated, those exchanged are not

    def statistic(distances: Floats) -> Floats:
        values = half_energy(distances, exchanged, ~exchanged, pairs)
        values[0] /= 1.0 + shrinkage
        return _over_spread(values, distances)

    n_each = min(max(1, n_draws // max(n_first, n_blocks - n_first)), max(block.n_draws for block in blocks))
    losses = _mean_losses(blocks, metric, n_each)
    energy = float(half_energy(losses, first[np.newaxis], ~first[np.newaxis], pairs)[0])
    error = _error(losses, first, masses, pairs)
    unknown = Differences(energy, error, np.nan, np.nan, np.nan, np.full(n_items, np.nan))
    if worth < _FEWEST:
        return unknown
    numbers = np.array([block.samples.mean(block.n_clusters.astype(np.float64)) for block in blocks])
    numbers -= numbers.mean()
    similarities = _similarities(blocks)
    whole, items = np.zeros_like(losses), np.empty((len(similarities), _EXCHANGES + 1))
    for rows, of_item in zip(similarities, items, strict=True):
        products = rows @ rows.T
        whole -= products
        of_item[:] = statistic(-products)
    found = np.stack(
        [statistic(losses), statistic(whole), statistic(-np.multiply.outer(numbers, numbers)), items.max(axis=0)]
    )
    if np.isnan(found).any():  # all but one of the blocks have hardly any weight
        return unknown
    shares = np.stack([_shares(values, values) for values in found])
    raw = np.append(shares[:3, 0], _shares(items[:, 0], found[3]))
    corrected = 1.0 - _shares(raw + ROUNDING, shares.min(axis=0))
    partitions, similar, number_of = corrected[:3].tolist()
    return Differences(energy, error, partitions, similar, number_of, corrected[3:])


def _with_weight(draws: PartitionDraws) -> PartitionDraws:
    """The draws of positive weight: a sample of blocks without weight has no mean."""
    rows = np.flatnonzero(draws.weights > 0)
    return draws if rows.size == draws.n_draws else draws.take(rows)


def _blocks(draws: PartitionDraws, number: int, share: float) -> list[npt.NDArray[np.intp]]:
    """Row numbers of this share of about `number` blocks: stretches of chains, by length, or groups of whole chains."""
    chains = draws.samples.chains
    if len(chains) > number:
        groups = np.array_split(np.arange(len(chains)), number)
        parts = [np.concatenate([chains[k] for k in group]) for group in groups]
    else:
        numbers = [max(1, round(number * rows.size / draws.n_draws)) for rows in chains]
        parts = [part for rows, many in zip(chains, numbers, strict=True) for part in np.array_split(rows, many)]
    kept = 1.0 if np.isnan(share) else share
    return [part[: int(np.ceil(kept * part.size))] for part in parts]


def _masses(draws: PartitionDraws, blocks: list[npt.NDArray[np.intp]]) -> Floats:
    """Weight of each block, relative to the mean of the posterior's blocks."""
    weights = np.array([draws.weights[rows].sum() for rows in blocks])
    return weights / weights.mean()


def _are_near(blocks: list[PartitionDraws], n_first: int) -> npt.NDArray[np.bool_]:
    """Whether two blocks are the same, or one follows the other in its chain."""
    near = np.eye(len(blocks), dtype=bool)
    for k in range(1, len(blocks)):
        follows = k != n_first and blocks[k].samples.chain[0] == blocks[k - 1].samples.chain[-1]
        near[k, k - 1] = near[k - 1, k] = follows
    return near


def _mean_losses(blocks: list[PartitionDraws], metric: PartitionLoss, n_each: int) -> Floats:
    """Mean loss between `n_each` draws of each block and of each."""
    labels = np.concatenate([evenly(block, n_each).labels for block in blocks])
    losses = all_losses(PartitionDraws.of(labels), metric)
    return losses.reshape(len(blocks), n_each, len(blocks), n_each).mean(axis=(1, 3))


def _similarities(blocks: list[PartitionDraws]) -> Floats:
    """Similarities (n, blocks, m) of all items and of m of them in each block, less their means over the blocks."""
    n_items = blocks[0].n_items
    chosen = evenly_spaced(n_items, max(1, _SIMILARITIES // n_items))
    similarities = np.empty((n_items, len(blocks), chosen.size))
    for k, block in enumerate(blocks):
        similarities[:, k] = block.shared_similarity[:, chosen]
    similarities -= similarities.mean(axis=1, keepdims=True)
    return similarities


def _over_spread(values: Floats, distances: Floats) -> Floats:
    """Statistics over exchanges divided by their spread, equal where they differ by rounding."""
    spread = values.std()
    rounding = SAME * np.abs(distances).max()
    return np.zeros_like(values) if spread <= rounding else np.round(values / spread, 9)


def _shares(values: Floats, null: Floats) -> Floats:
    """Share of the null distribution that is at least as large as each value."""
    return 1.0 - np.searchsorted(np.sort(null), values, side="left") / null.size


def _error(losses: Floats, first: npt.NDArray[np.bool_], masses: Floats, pairs: Floats) -> float:
    """Monte Carlo standard error of the energy, from the terms that are linear in a block."""
    variance = 0.0
    for own in (first, ~first):
        shares = masses[own] / masses[own].sum()
        inside = pairs[np.ix_(own, own)]
        counted = inside.sum(axis=1) > 0
        within = np.zeros(shares.size)
        within[counted] = np.average(losses[np.ix_(own, own)][counted], axis=1, weights=inside[counted])
        terms = losses[np.ix_(own, ~own)] @ (masses[~own] / masses[~own].sum()) - within
        terms -= shares @ terms
        variance += np.square(shares * terms).sum() * shares.size / (shares.size - 1)
    return float(np.sqrt(variance))


def evenly(draws: PartitionDraws, n_draws: int) -> PartitionDraws:
    """Take `n_draws` draws of equal weight, at even quantiles of the weights."""
    quantiles = (np.arange(n_draws) + 0.5) / n_draws - SAME
    taken = draws.take(draws.samples.at_quantiles(quantiles))
    return replace(taken, samples=taken.samples.weighted(np.ones(n_draws)))
