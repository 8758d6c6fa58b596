"""Verdict on particles: one group of draws, several, or chains that do not mix between them.

In sentences, a mode is a group of draws: the statistic that separates modes is not calibrated.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.evaluate.chain_gap import gap_is_real, largest_gap
from posterior_consensus.results.display import counted, is_rough, joined, ordinal
from posterior_consensus.runtime.tolerances import ROUNDING

_NEARLY_NONE = 0.05  # share of a chain's draws; 1 - 0.05 is nearly all
_LEVEL = 0.01  # of all tests together
_LEAST_ESS = 10.0  # of a chain; fewer effective draws must not widen its error, because they are the fault to detect
_HALF = 0.5  # share of the draws of the smaller of two groups, at most
_TOO_FEW = (
    "Cannot tell one group of draws from several: the effective sample size is too small for two groups to be found. "
    "Run longer chains."
)
_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


class Visits(NamedTuple):
    """Each chain's share of its draws at each mode, and whether it differs from the other chains."""

    names: list[object]
    shares: Floats  # (C, M); NaN for a chain without weight
    differs: npt.NDArray[np.bool_]  # (C, M), from the other chains by more than Monte Carlo error

    @property
    def apart(self) -> npt.NDArray[np.bool_]:
        """Whether (C, M) a chain differs and has nearly all or nearly none of its draws at a mode."""
        extreme = (self.shares < _NEARLY_NONE) | (self.shares > 1 - _NEARLY_NONE)
        return self.differs & extreme

    @property
    def belonging(self) -> tuple[object, ...]:
        """Names of the chains that stay in different modes."""
        return tuple(self.names[c] for c in np.flatnonzero(self.apart.any(axis=1)))


def visits(draws: PartitionDraws, indicators: Floats) -> Visits:
    """Compute the shares of each chain's draws at each mode, from the indicators (M, N) of the draws.

    A chain differs if its share differs from the share of the other chains by more than Monte Carlo error, at level
    0.01 over all chains and modes (Bonferroni). Let p be the share over all chains, and m and m' the effective sample
    sizes of the chain and of the others. The variance of the error is p (1 - p) (1 / m + 1 / m'). The effective sample
    sizes use the autocorrelation of the indicator, averaged over the chains in which it changes. They are at least ten:
    otherwise the large error of a chain that does not mix would hide that it does not.
    """
    chains = draws.samples.chains
    names = draws.samples.chain_names
    shares = np.full((len(chains), len(indicators)), np.nan)
    efficiency = np.full_like(shares, np.nan)
    for c, rows in enumerate(chains):
        if draws.weights[rows].sum() > 0:
            samples = draws.samples.take(rows)
            shares[c] = samples.mean(indicators[:, rows])
            error = samples.mcse(indicators[:, rows])
            moves = error > 0
            variance = shares[c] * (1 - shares[c])
            efficiency[c, moves] = variance[moves] / np.square(error[moves]) / samples.effective_draws
    lengths = np.array([draws.samples.take(rows).effective_draws for rows in chains])
    return Visits(names, shares, _differs(shares, efficiency, lengths))


def _differs(shares: Floats, efficiency: Floats, lengths: Floats) -> npt.NDArray[np.bool_]:
    """Whether (C, M) a chain's share differs from the share of the other chains by more than Monte Carlo error."""
    known = np.flatnonzero(~np.isnan(shares).any(axis=1))
    differs = np.zeros(shares.shape, bool)
    if known.size < 2:
        return differs
    bound = -ndtri(_LEVEL / 2 / (known.size * shares.shape[1]))
    for k in range(shares.shape[1]):
        own = efficiency[known, k]
        moving = ~np.isnan(own)
        each = 1 / float(np.mean(1 / own[moving])) if moving.any() else 0.0
        ess = np.minimum(np.maximum(each * lengths[known], _LEAST_ESS), lengths[known])
        for at, c in enumerate(known):
            others = np.delete(np.arange(known.size), at)
            elsewhere = float(shares[known[others], k] @ ess[others] / ess[others].sum())
            pooled = float(shares[known, k] @ ess / ess.sum())
            variance = pooled * (1 - pooled) * (1 / ess[at] + 1 / ess[others].sum())
            differs[c, k] = abs(shares[c, k] - elsewhere) > bound * np.sqrt(variance) + ROUNDING
    return differs


def judged(
    draws: PartitionDraws, at_modes: Floats, number: int | None, groups: Floats | None, far: str, least: float
) -> tuple[str, tuple[object, ...], str]:
    """Return the status, the chains that stay in modes or groups, and the verdict in words.

    Parameters
    ----------
    draws : PartitionDraws
        The draws.
    at_modes : ndarray of shape (M, n_draws)
        Indicators of the draws at each mode.
    number : int or None
        Requested number of particles.
    groups : ndarray of shape (G, n_draws) or None
        Indicators of the draws in each mode expected under independence; None if these equal the modes.
    far : str
        Distances between the groups' partitions, with the unit.
    least : float
        Smallest share of the draws that a group must have to be found.
    """
    n_modes = len(at_modes)
    if draws.samples.shortest < FEWEST_DRAWS:
        return "unknown", (), "A chain has fewer than four draws, too few to find groups: run longer chains."
    if number == 1:
        return "unknown", (), "One particle was requested, the consensus partition; groups were not searched for."
    supposed = None if groups is None else visits(draws, groups)
    doubt = "" if supposed is None else _undecided(supposed, far, n_modes)
    if n_modes == 1:
        if doubt := doubt or _of_chains_apart(draws):
            return "unknown", () if supposed is None else supposed.belonging, doubt
        if least > _HALF:
            return "unknown", (), _TOO_FEW
        divided = f"The draws form one group: no valley lies between the {number} particles, which divide it."
        alone = (
            f"No second group of draws was found; none below {at_least(least)} of them can be found. If the chains "
            "agree, report the consensus partition."
        )
        return "one group", (), alone if number is None else divided
    visited, (errors, sizes) = visits(draws, at_modes), draws.samples.mcse_and_ess(at_modes)
    verdict = _of_modes(visited, draws.samples.mean(at_modes), errors, sizes)
    if number is not None and number != n_modes:
        more = f"The {number} particles divide them."
        verdict += f" {more}" if number > n_modes else f" {counted(number, 'particle')} are too few for them."
    status = "chains in different groups" if visited.belonging else "several groups"
    return status, visited.belonging, f"{verdict} {doubt}".rstrip()


def _of_modes(visited: Visits, weights: Floats, errors: Floats, sizes: Floats) -> str:
    """Verdict on several modes, from their weights with errors and effective sample sizes."""
    number = weights.size
    if visited.belonging:
        places = _whereabouts(visited)
        return (
            f"{places[:1].upper()}{places[1:]}: the sampler does not mix between groups of draws, so the weights do "
            "not estimate probabilities."
        )
    form = f"form {_word(number).lower()} groups"
    known = [
        f"{weight:.2f}" if np.isnan(error) else f"{weight:.2f} (MCSE {error:.2g})"
        for weight, error in zip(weights, errors, strict=True)
    ]
    weighted = joined(known)
    absent = np.argwhere(visited.shares == 0)
    all_visit = f"The draws {form}: every chain visits {'both' if number == 2 else 'all of them'}"
    least = float(sizes.min())
    rough = f" Their smallest effective sample size is {least:.3g}, so they and their errors are rough."
    if len(visited.names) == 1:
        return (
            f"The draws of one chain {form}, with weights {weighted}.{rough * is_rough(least)} It is unknown whether "
            "another chain would find the same groups: run at least four from different starts."
        )
    if absent.size:
        chain, k = absent[0]
        return (
            f"The draws {form}, with weights {weighted}. Chain {visited.names[chain]} has not visited the {ordinal(k)} "
            "group, which may be chance: run longer chains."
        )
    if visited.differs.any():
        return (
            f"{all_visit}, but for different shares of its draws. Run longer chains: the weights {weighted} are not "
            "settled."
        )
    if is_rough(least):
        return f"{all_visit}, with weights {weighted}.{rough} Run longer chains before reporting them."
    return f"{all_visit}; report them with their weights {weighted}."


def _undecided(visited: Visits, far: str, known: int) -> str:
    """Verdict if there are too few effective draws to decide whether there are more modes than the known ones."""
    number = visited.shares.shape[1]
    places = f"; {_whereabouts(visited)}" if visited.belonging else ""
    question = "one group of draws from several" if known == 1 else f"{_word(known).lower()} groups of draws from more"
    return (
        f"Cannot tell {question}: successive draws are so correlated that the effective sample size is too "
        f"small. {_word(number)} groups have partitions at a distance of {far}, with few draws between "
        f"them{places}. Run longer chains, or a sampler that mixes better."
    )


def _of_chains_apart(draws: PartitionDraws) -> str:
    """Verdict if one group is found although the chains disagree on a pair of items; else empty."""
    some = draws.labels_only().without_zero_weights().as_sampled().of_some_items()[1]
    gap = largest_gap(some)
    if not gap_is_real(gap, some.n_items, some.samples):
        return ""
    first, second = some.items.names[list(gap.items)]
    return (
        f"Cannot tell one group of draws from several: the chains do not agree. Items {first} and {second} are "
        f"co-clustered in {gap.shares[0]:.0%} of the draws of chain {gap.chains[0]} and {gap.shares[1]:.0%} of chain "
        f"{gap.chains[1]}, "
        "although no second group was found. Run longer chains, or a sampler that mixes better."
    )


def at_least(share: float) -> str:
    """A lower bound of a share in percent, rounded up."""
    return f"{math.ceil(100 * share)}%"


def _whereabouts(visited: Visits) -> str:
    """Name the chains that stay in one group, and the groups that other chains hardly ever visit."""
    stay = visited.shares > 1 - _NEARLY_NONE
    miss = visited.apart & ~stay.any(axis=1, keepdims=True)
    clauses = []
    for what, where in (("stay{} in", stay), ("hardly ever visit{}", miss)):
        for k in np.flatnonzero(where.any(axis=0)).tolist():
            names = [visited.names[c] for c in np.flatnonzero(where[:, k])]
            verb = what.format("s" * (len(names) == 1))
            clauses.append(f"chain{'s' * (len(names) > 1)} {joined(names)} {verb} the {ordinal(k)} group")
    return ", ".join(clauses)


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else str(number)
