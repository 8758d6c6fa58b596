"""Variance of the partition within and over chains, its R-hat, and the effective sample size of the partition."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble import counting
from posterior_consensus.ensemble.autocorrelation import autocorrelation_time
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.evaluate.similarity import group_planes
from posterior_consensus.kernels import coclustering
from posterior_consensus.losses.partition_losses import pairs
from posterior_consensus.runtime.tolerances import ROUNDING


def pairs_together(draws: PartitionDraws) -> Floats:
    """Number of co-clustered pairs of items in each draw, (n_draws,)."""
    together: Floats = np.add.reduceat(pairs(draws.n_items)[draws.backend.sizes], draws.starts[:-1])
    return together


@dataclass(frozen=True)
class PartitionVariance:
    """Variance of the association matrix, summed over all pairs of items.

    Attributes
    ----------
    within : float
        Mean over half-chains of their variances.
    total : float
        Estimate of the posterior variance that includes the variance between the half-chains' means.
    rhat : float
        Root of total over within; NaN for one chain, and if nothing varies.
    """

    within: float
    total: float
    rhat: float


def half_chains(draws: PartitionDraws) -> npt.NDArray[np.intp]:
    """Row numbers (2 n_chains, length) of the halves of each chain; like ArviZ, without a middle draw."""
    chains = draws.samples.by_chain(np.arange(draws.n_draws))
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def partition_variance(draws: PartitionDraws, pairs_together: Floats) -> PartitionVariance:
    """Variance of the partition within and over chains, and its R-hat, in closed form.

    Parameters
    ----------
    draws : PartitionDraws
    pairs_together : ndarray of shape (n_draws,)
        Number of co-clustered pairs of items in each draw.

    Notes
    -----
    The association matrix A_t of a draw, 1 for two co-clustered items, is a vector of n (n - 1) / 2 entries. With M
    half-chains of L draws each, P_m the similarity matrix of half-chain m (the mean of its A_t), P the mean of the P_m,
    and ||.||^2 the sum of squares over pairs, Gelman and Rubin's variances [1]_, summed over the entries, are

        W = mean_m sum_t ||A_t - P_m||^2 / (L - 1) = L / (L - 1) mean_m (mean_t ||A_t||^2 - ||P_m||^2),
        B / L = sum_m ||P_m - P||^2 / (M - 1) = (sum_m ||P_m||^2 - M ||P||^2) / (M - 1),

    and R-hat = sqrt(((L - 1) / L W + B / L) / W), with chains split as in [2]_. As the entries are 0 or 1, ||A_t||^2 is
    the number of co-clustered pairs, sum_k n_k (n_k - 1) / 2: half the sum of squared cluster sizes, less n / 2. For
    two items it is the split R-hat of their indicator.

    References
    ----------
    .. [1] Gelman and Rubin (1992), Statistical Science 7(4), 457-472. https://doi.org/10.1214/ss/1177011136
    .. [2] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221
    """
    halves = half_chains(draws)
    n_halves, length = halves.shape
    if length < 2:
        return PartitionVariance(np.nan, np.nan, np.nan)
    by_tile, pooled, _, _ = coclustering.compare_groups(*group_planes(draws, list(halves)), draws.n_items)
    squares = by_tile.sum(axis=0)
    spread = max(float(squares.sum() - n_halves * pooled.sum()), 0.0)
    inside = np.maximum(pairs_together[halves].mean(axis=1) - squares, 0.0)
    within, between = _not_rounding(length / (length - 1) * inside.mean(), squares), spread / (n_halves - 1)
    between = _not_rounding(between, squares)
    total = (length - 1) / length * within + between
    if len(draws.samples.chains) < 2 or total == 0:
        return PartitionVariance(within, total, np.nan)
    return PartitionVariance(within, total, float(np.sqrt(total / within)) if within > 0 else np.inf)


def _not_rounding(variance: float, squares: Floats) -> float:
    """A variance, or 0 if it is rounding error of a difference of sums."""
    return float(variance) if variance > ROUNDING * squares.max(initial=1.0) else 0.0


def partition_ess(draws: PartitionDraws, pairs_together: Floats, total: float) -> float:
    """Effective sample size of the partition, from the distances between draws at each lag.

    Parameters
    ----------
    draws : PartitionDraws
    pairs_together : ndarray of shape (n_draws,)
        Number of co-clustered pairs of items in each draw.
    total : float
        Variance of the partition: `total` of :func:`partition_variance`, or `within` to leave out the differences
        between chains.

    Notes
    -----
    The squared distance of two partitions is the number of pairs on which they differ (Mirkin's, n^2 / 2 times Binder's
    loss), d^2(z, z') = ||A - A'||^2. With its mean V_s over draws s steps apart in the same half-chain, and the total
    variance over chains, the autocorrelation of the partition is

        rho_s = 1 - V_s / (2 total),

    the correlation in the sense of Frechet's variance [1]_. The sums rho_2k + rho_2k+1 are taken up to the first that
    is not positive and are made to decrease [2]_. Then ESS = draws / (2 sum - 1). Chains that disagree have a total
    above the variance within them, and so a small ESS [3]_. Lags beyond 32 are taken in steps that grow by a tenth;
    those between are interpolated.

    References
    ----------
    .. [1] Magee, Karcher, Matsen and Minin (2024), Bayesian Analysis 19(2), 565-593.
       https://doi.org/10.1214/22-BA1339
    .. [2] Geyer (1992), Statistical Science 7(4), 473-483. https://doi.org/10.1214/ss/1177011137
    .. [3] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221
    """
    halves = half_chains(draws)
    length = halves.shape[1]
    if length < 2:
        return np.nan
    if total == 0:
        return float(halves.size)
    h = pairs(draws.n_items)

    def correlation(lag: int) -> float:
        if lag == 0:
            return 1.0
        before, after = halves[:, :-lag].ravel(), halves[:, lag:].ravel()
        joint = counting.paired_joint_sums(draws.backend, before, after, h)
        apart = pairs_together[before] + pairs_together[after] - 2 * joint
        return 1.0 - float(apart.mean()) / (2 * total)

    times = autocorrelation_time(correlation, length)
    return halves.size / max(times, 1 / np.log10(halves.size))
