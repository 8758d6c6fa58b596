"""Parts of the posterior that some chains never visit while the others visit them often."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, comb, log

import numpy as np
from scipy.special import bdtr

from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Flags, Floats

LARGE = 10  # clusters of the partition whose pairs are followed
_LEVEL = 0.01  # joint level of all tests
_BEYOND = 0.0, 0.01  # shares of a chain's draws beyond the limit: noise of other items blurs a mode's edge
_MOST_CHAINS = 4  # that miss a part together
_LEAST = 0.02  # share of the others' draws below which a part is too small to matter


@dataclass(frozen=True)
class Unvisited:
    """Draws on one side of a limit, which some chains hardly ever visit."""

    trace: int  # position of the trace that has the limit
    limit: float  # value of the trace beyond which these draws lie
    is_above: bool  # whether they lie above it
    chains: list[int]  # positions of the chains that do not visit them
    share: float  # shares of the draws of the other chains, and of these chains, beyond the limit
    own_share: float
    visits: float  # number of independent visits of the other chains

    def in_words(self, names: Sequence[str], units: Sequence[str], chains: Sequence[object]) -> str:
        """Clause on these draws, with the names and units of the traces and the names of the chains."""
        own = [chains[k] for k in self.chains]
        where = f"chain{'s' * (len(own) > 1)} {display.joined([str(name) for name in own])}"
        side, limit = ("above" if self.is_above else "below"), display.quantity(self.limit, units[self.trace], 3)
        hardly = f"{display.percent(self.own_share)} of those" if self.own_share else "none"
        return (
            f"the {names[self.trace]} is {side} {limit} in {display.percent(self.share)} of the draws of the other "
            f"chains, in about {self.visits:.0f} visits, and in {hardly} of {where}"
        )


def unvisited(traces: Floats, samples: Samples) -> Unvisited | None:
    """Find a part of the posterior that some chains never visit, or hardly ever, and that the others often visit.

    Returned is the most significant part; None if none is significant, and for one chain or independent runs. Traces
    (T, N) are functions of the draws; those with missing values are left out. Weights are ignored.

    Notes
    -----
    The limit is the largest value of a chain, or its 99% quantile. If all chains sample one posterior, a visit beyond
    any limit is as likely in each of them, but for their lengths. With v visits of some chains that have the share s of
    the draws, and V of the others, the p-value is that of at most v successes in v + V trials of probability s. The
    chains with the j lowest limits are compared with the others, j up to four and to half of their number. The p-value
    is multiplied by the number of groups of j chains, and by that of traces, sides and limits, and is significant below
    0.01.

    Draws beyond the limit come in clumps. The number of independent visits is the number of such draws times the
    extremal index, by the intervals estimator [1]_ from the gaps between them, over the chains of a group one after the
    other in a circle. It needs no length of a visit, and a chain that passes its limit back and forth makes one visit.

    References
    ----------
    .. [1] Ferro and Segers (2003), Journal of the Royal Statistical Society B 65(2), 545-556.
       https://doi.org/10.1111/1467-9868.00401
    """
    if len(samples.series) < 2:
        return None
    best, least = None, _LEVEL / _n_limits(len(traces))
    for found, p_value in _parts_that_matter(traces, samples):
        if p_value < least:
            best, least = found, p_value
    return best


def could_miss(n_traces: int, n_clusters: int, n_chains: int, ess: float) -> float:
    """Share of the draws of the largest mode that one chain could miss without :func:`unvisited` finding it.

    `n_traces`, `n_clusters` and `n_chains`: numbers of scalar summaries, of clusters of the partition, whose pairs
    have traces of their own, and of chains. `ess`: effective sample size of each chain: the others visit a mode of
    share p about p times as often, or up to twice.
    """
    large = min(n_clusters, LARGE)
    n_limits = _n_limits(n_traces + large * (large + 1) // 2)
    needed = log(_LEVEL / (n_limits * n_chains)) / log(1 - 1 / n_chains)
    return min(1.0, max(_LEAST, ceil(needed) / ((n_chains - 1) * ess)))


def _n_limits(n_traces: int) -> int:
    """Number of limits: of each trace, on both sides."""
    return 2 * len(_BEYOND) * n_traces


def _parts_that_matter(traces: Floats, samples: Samples) -> Iterator[tuple[Unvisited, float]]:
    """Parts large enough to matter, with their p-values, corrected for the number of groups of chains alone."""
    chains = samples.chains
    lengths, most = np.array([rows.size for rows in chains]), min(_MOST_CHAINS, len(chains) // 2)
    moving = np.flatnonzero(np.ptp(traces, axis=1) > 0)  # not those with missing values
    for sign in (1.0, -1.0):
        signed = sign * traces[moving]
        by_chain = [signed[:, rows] for rows in chains]
        for beyond in _BEYOND:
            places = [int(length * (1 - beyond)) - (beyond == 0) for length in lengths]
            limits = np.stack([np.partition(one, at, axis=1)[:, at] for one, at in zip(by_chain, places, strict=True)])
            order = np.argsort(limits, axis=0, kind="stable")
            for t in range(moving.size):
                for number in range(1, most + 1):
                    own, others = np.sort(order[:number, t]), np.sort(order[number:, t])
                    limit = limits[order[number - 1, t], t]
                    theirs, ours = (np.concatenate([by_chain[k][t] for k in some]) > limit for some in (others, own))
                    if (share := theirs.mean()) < _LEAST:
                        continue
                    visits, own_visits = independent_visits(theirs), ceil(independent_visits(ours))
                    chance = bdtr(own_visits, own_visits + int(visits), lengths[own].sum() / samples.n_draws)
                    place = int(moving[t])
                    found = Unvisited(
                        place, float(sign * limit), sign > 0, own.tolist(), float(share), float(ours.mean()), visits
                    )
                    yield found, comb(len(chains), number) * float(chance)


def independent_visits(inside: Flags) -> float:
    """Number of independent visits, given whether each draw (n_draws,) is inside; draws are taken as a circle."""
    at = np.flatnonzero(inside)
    if at.size < 2:
        return float(at.size)
    gaps = np.diff(at, append=at[0] + inside.size).astype(np.float64)
    left = gaps - 1.0  # draws outside between two inside
    if gaps.max() <= 2:
        index = 2 * gaps.sum() ** 2 / (at.size * np.square(gaps).sum())
    else:
        index = 2 * left.sum() ** 2 / (at.size * (left * (left - 1)).sum())
    return max(1.0, min(float(index * at.size), float(np.count_nonzero(left))))
