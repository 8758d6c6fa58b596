"""The largest difference between the similarity matrices of two chains, and whether it is more than chance."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, Samples
from posterior_consensus.evaluate.similarity import group_planes
from posterior_consensus.kernels import coclustering
from posterior_consensus.results import stored_as

_BAD = 0.1


@dataclass(frozen=True)
class Gap:
    """Pair of items whose co-clustering probability differs most between two chains.

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

    size: float = field(metadata=stored_as.number("chain_gap"))
    mcse: float = field(metadata=stored_as.number("chain_gap_mcse"))
    items: tuple[int, int] = field(default=(-1, -1), metadata=stored_as.names("chain_gap_positions"))
    chains: tuple[object, object] = field(default=(None, None), metadata=stored_as.names("chain_gap_chains"))
    shares: tuple[float, float] = field(default=(np.nan, np.nan), metadata=stored_as.names("chain_gap_shares"))


def largest_gap(draws: PartitionDraws) -> Gap:
    """Return the largest difference between the similarity matrices of two chains, and where it is."""
    chains = draws.samples.chains
    if len(chains) < 2 or draws.n_items < 2:
        return Gap(np.nan, np.nan)
    _, _, widest, where = coclustering.compare_groups(*group_planes(draws, chains), draws.n_items)
    first, second = where[widest.argmax()].tolist()
    columns = draws.backend.columns(np.array([first, second]))
    together = (columns[0] == columns[1]).astype(np.float64)
    shares = np.array([together[rows].mean() for rows in chains])
    low, high = int(shares.argmin()), int(shares.argmax())
    if low == high:  # all chains have equal shares
        high = 1
    return Gap(
        size=float(shares[high] - shares[low]),
        mcse=_error_of_difference(draws.samples, together, shares, (low, high)),
        items=(first, second),
        chains=(draws.samples.chain.item(chains[low][0]), draws.samples.chain.item(chains[high][0])),
        shares=(float(shares[low]), float(shares[high])),
    )


def _error_of_difference(
    samples: Samples, together: npt.NDArray[np.float64], shares: npt.NDArray[np.float64], pair: tuple[int, int]
) -> float:
    """Standard error of the difference of two chains' shares, with one variance of batch means for all chains.

    With the batches k of chain c, of n_ck draws and share m_ck, the variance of a chain of one draw is
    sum_ck n_ck (m_ck - m_c)^2 / (number of batches - number of chains).
    """
    chains = samples.chains
    if samples.shortest < FEWEST_DRAWS:
        return np.nan
    share = np.empty(samples.n_draws)
    for rows, own in zip(chains, shares, strict=True):
        share[rows] = own
    batches = samples.batches
    squares = sum(rows.size * (together[rows].mean() - share[rows[0]]) ** 2 for rows in batches)
    of_one = squares / (len(batches) - len(chains))
    return float(np.sqrt(of_one * sum(1 / chains[k].size for k in pair)))


def gap_is_real(gap: Gap, n_items: int, samples: Samples) -> bool:
    """Whether the gap is above 0.1 and significant at level 0.01, by Bonferroni over all pairs of items and chains.

    The error of the largest of many differences is likely to be an underestimate. The limit is therefore a quantile of
    Student's t, whose degrees of freedom are the number of batches less the number of chains.
    """
    n_chains = len(samples.chains)
    n_gaps = n_items * (n_items - 1) / 2 * n_chains * (n_chains - 1) / 2
    return gap.size > _BAD and gap.size > t.isf(0.005 / n_gaps, len(samples.batches) - n_chains) * gap.mcse
