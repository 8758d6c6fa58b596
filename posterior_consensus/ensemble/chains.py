"""How far chains agree on the partition: its variance and effective sample size, the pair that differs most, energy."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from posterior_consensus.ensemble import counting
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.r_hat import half_chains
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.series import autocorrelation_time
from posterior_consensus.ensemble.similarity import group_planes
from posterior_consensus.kernels import coclustering
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.losses.record import pairs
from posterior_consensus.results import stored_as
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.tolerances import ROUNDING

_BAD = 0.1  # difference of two chains


def pairs_together(draws: PartitionDraws) -> Floats:
    """Number of co-clustered pairs of items in each draw, (n_draws,)."""
    together: Floats = np.add.reduceat(pairs(draws.n_items)[draws.cluster_sizes], draws.starts[:-1])
    return together


@dataclass(frozen=True)
class PartitionVariance:
    """Variance of the association matrix, summed over all pairs of items."""

    within: float  # mean over half-chains of their variances
    total: float  # estimate of the posterior variance that includes the variance between the half-chains' means
    rhat: float  # root of total over within; NaN for one chain, and if nothing varies


def partition_variance(draws: PartitionDraws, pairs_together: Floats) -> PartitionVariance:
    """Variance of the partition within and over chains, and its R-hat, in closed form.

    `pairs_together` (N,) is the number of co-clustered pairs of items in each draw.

    Notes
    -----
    The association matrix A_t of a draw, 1 for two co-clustered items, is a vector of n (n - 1) / 2 entries. With M
    half-chains of L draws each, P_m the similarity matrix of half-chain m (the mean of its A_t), P the mean of the P_m,
    and ||.||^2 the sum of squares over pairs, Gelman and Rubin's variances [1]_, summed over the entries, are

        W = mean_m sum_t ||A_t - P_m||^2 / (L - 1) = L / (L - 1) mean_m (mean_t ||A_t||^2 - ||P_m||^2),
        B / L = sum_m ||P_m - P||^2 / (M - 1) = (sum_m ||P_m||^2 - M ||P||^2) / (M - 1),

    and R-hat = sqrt(((L - 1) / L W + B / L) / W), with chains split as in [2]_. As the entries are 0 or 1, ||A_t||^2 is
    the number of co-clustered pairs, sum_k n_k (n_k - 1) / 2: half the sum of squared cluster sizes, less n / 2. For
    two items it is the split R-hat of their indicator. Independent runs are one sample of L = N runs, without R-hat.
    For runs that lack items all are NaN.

    References
    ----------
    .. [1] Gelman and Rubin (1992), Statistical Science 7(4), 457-472. https://doi.org/10.1214/ss/1177011136
    .. [2] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221
    """
    halves = half_chains(draws.samples) if draws.samples.series else np.arange(draws.n_draws)[np.newaxis]
    n_halves, length = halves.shape
    if length < 2 or draws.lacks_items:
        return PartitionVariance(np.nan, np.nan, np.nan)
    by_tile, pooled, _, _ = coclustering.compare_groups(*group_planes(draws, list(halves)), draws.n_items)
    squares = by_tile.sum(axis=0)
    spread = max(float(squares.sum() - n_halves * pooled.sum()), 0.0)
    inside = np.maximum(pairs_together[halves].mean(axis=1) - squares, 0.0)
    within = _not_rounding(length / (length - 1) * inside.mean(), squares)
    if not draws.samples.series:
        return PartitionVariance(within, within, np.nan)
    between = _not_rounding(spread / (n_halves - 1), squares)
    total = (length - 1) / length * within + between
    if len(draws.samples.chains) < 2 or total == 0:
        return PartitionVariance(within, total, np.nan)
    return PartitionVariance(within, total, float(np.sqrt(total / within)) if within > 0 else np.inf)


def _not_rounding(variance: float, squares: Floats) -> float:
    """A variance, or 0 if it is rounding error of a difference of sums."""
    return float(variance) if variance > ROUNDING * squares.max(initial=1.0) else 0.0


def partition_ess(draws: PartitionDraws, pairs_together: Floats, total: float) -> float:
    """Effective sample size of the partition, from the distances between draws at each lag; the number of runs.

    `pairs_together` (N,) is the number of co-clustered pairs of items in each draw. `total` is the variance of the
    partition, by :func:`partition_variance`, or its `within` to leave out the differences between chains.

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
    if not draws.samples.series:
        return float(draws.n_draws) if draws.n_draws > 1 else np.nan
    halves = half_chains(draws.samples)
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


@dataclass(frozen=True)
class ChainDifference:
    """Between-chain difference: the pair of items whose similarity differs most between two chains.

    Attributes
    ----------
    size : float
        The difference of the two chains' shares of draws that co-cluster the pair; NaN without two chains or two items.
    mcse : float
        Its Monte Carlo standard error, from batch means within all chains; NaN for chains of fewer than four draws.
    items : tuple of int
        Positions of the two items.
    chains : tuple
        Names of the two chains, first the one with the lower share.
    shares : tuple of float
        The two chains' shares.
    """

    size: float = field(metadata=stored_as.number("chain_difference"))
    mcse: float = field(metadata=stored_as.number("chain_difference_mcse"))
    items: tuple[int, int] = field(default=(-1, -1), metadata=stored_as.names("chain_difference_positions"))
    chains: tuple[object, object] = field(default=(None, None), metadata=stored_as.names("chain_difference_chains"))
    shares: tuple[float, float] = field(default=(np.nan, np.nan), metadata=stored_as.names("chain_difference_shares"))


def largest_difference(draws: PartitionDraws) -> ChainDifference:
    """Return the largest difference between the similarity matrices of two chains, and where it is.

    Of runs that lack items, each group's runs with both items count.
    """
    chains = draws.samples.chains
    if len(chains) < 2 or draws.n_items < 2:
        return ChainDifference(np.nan, np.nan)
    if isinstance(draws, RunsWithMissing):
        return _difference_of_some(draws)
    _, _, widest, where = coclustering.compare_groups(*group_planes(draws, chains), draws.n_items)
    first, second = where[widest.argmax()].tolist()
    columns = draws.backend.columns(np.array([first, second]))
    together = (columns[0] == columns[1]).astype(np.float64)
    return _difference_on(draws.samples, chains, (first, second), together)


def _difference_of_some(draws: RunsWithMissing) -> ChainDifference:
    """:func:`largest_difference` of groups of runs that lack items; NaN if no two groups have runs of one pair."""
    low, high = np.full((2, draws.n_items, draws.n_items), np.nan)
    for rows in draws.samples.chains:
        together, held = draws.take(rows).pair_counts()
        share = np.divide(together, held, out=np.full(held.shape, np.nan), where=held > 0)
        low, high = np.fmin(low, share), np.fmax(high, share)
    wide = np.triu(high - low, 1)
    if np.isnan(wide).all():
        return ChainDifference(np.nan, np.nan)
    first, second = (int(at) for at in np.unravel_index(np.nanargmax(wide), wide.shape))
    one, other = draws.backend.columns(np.array([first, second]))
    both = (one > 0) & (other > 0)
    samples = draws.samples.take(np.flatnonzero(both))
    return _difference_on(
        samples, samples.chains, (first, second), ((one == other) & (one >= CLUSTERS_FROM))[both].astype(np.float64)
    )


def _difference_on(
    samples: Samples, chains: Sequence[Positions], items: tuple[int, int], together: Floats
) -> ChainDifference:
    """Difference of two chains' shares of the draws (N,) in which two items are together."""
    shares = np.array([together[rows].mean() for rows in chains])
    low, high = int(shares.argmin()), int(shares.argmax())
    if low == high:  # all chains have equal shares
        high = 1
    return ChainDifference(
        size=float(shares[high] - shares[low]),
        mcse=_error_of_difference(samples, together, shares, (low, high)),
        items=items,
        chains=(samples.chain.item(chains[low][0]), samples.chain.item(chains[high][0])),
        shares=(float(shares[low]), float(shares[high])),
    )


def _error_of_difference(
    samples: Samples, together: npt.NDArray[np.float64], shares: npt.NDArray[np.float64], pair: tuple[int, int]
) -> float:
    """Standard error of the difference of two chains' shares, with one variance of batch means for all chains.

    With the batches k of chain c, of n_ck draws and share m_ck, the variance of a chain of one draw is
    sum_ck n_ck (m_ck - m_c)^2 / (number of batches - number of chains).

    For groups of independent runs, the shares of 0 and 1 of a group have an error too: a run that co-clusters the pair
    and one that does not are added to each group (Agresti and Caffo 2000, The American Statistician 54(4), 280-288,
    https://doi.org/10.1080/00031305.2000.10474560).
    """
    chains = samples.chains
    if not samples.has_errors:
        return np.nan
    if not samples.series:
        sizes = np.array([chains[k].size + 2 for k in pair])
        added = np.array([(shares[k] * chains[k].size + 1) for k in pair]) / sizes
        return float(np.sqrt(np.sum(added * (1 - added) / sizes)))
    share = np.empty(samples.n_draws)
    for rows, own in zip(chains, shares, strict=True):
        share[rows] = own
    batches = samples.batches
    squares = sum(rows.size * (together[rows].mean() - share[rows[0]]) ** 2 for rows in batches)
    of_one = squares / (len(batches) - len(chains))
    return float(np.sqrt(of_one * sum(1 / chains[k].size for k in pair)))


def difference_is_real(difference: ChainDifference, n_items: int, samples: Samples) -> bool:
    """Whether it is above 0.1 and significant at level 0.01, by Bonferroni over all pairs of items and chains.

    The error of the largest of many differences is likely to be an underestimate. The limit is therefore a quantile of
    Student's t, whose degrees of freedom are the number of batches less the number of chains.
    """
    n_chains = len(samples.chains)
    n_differences = n_items * (n_items - 1) / 2 * n_chains * (n_chains - 1) / 2
    size, mcse = difference.size, difference.mcse
    return bool(size > _BAD and size > -stdtrit(len(samples.batches) - n_chains, 0.005 / n_differences) * mcse)


def half_energy(distances: Floats, ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_], pairs: Floats) -> Floats:
    """Mean distance between two samples, less the mean of their mean distances within, (R,) for R pairs of samples.

    NaN for a sample without pairs. `ours` and `theirs` (R, m) are the members of either sample, which may be blocks of
    draws, with the mean `distances` (m, m) between them. `pairs` (m, m) are symmetric weights of the pairs, 0 for those
    that do not count, such as a member and itself.

    Notes
    -----
    Without equal members, this is the unbiased estimate of half the energy distance [1]_,

        D = E d(x, y) - (E d(x, x') + E d(y, y')) / 2.

    If minus d is a kernel, 2 D is the unbiased squared maximum mean discrepancy [2]_; if d is minus an inner product,
    2 D is the squared distance of the means.

    References
    ----------
    .. [1] Szekely and Rizzo (2013), Journal of Statistical Planning and Inference 143(8), 1249-1272.
       https://doi.org/10.1016/j.jspi.2013.03.018
    .. [2] Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), Annals of Statistics 41(5), 2263-2291.
       https://doi.org/10.1214/13-AOS1140
    """
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    of_one, of_other = ((side @ (pairs * distances), side @ pairs) for side in (one, other))

    def mean(of: tuple[Floats, Floats], side: Floats) -> Floats:
        total, number = (np.sum(part * side, axis=1) for part in of)
        return np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0)

    return mean(of_one, other) - (mean(of_one, one) + mean(of_other, other)) / 2
