"""Whether a posterior has several modes, or a sampler does not mix: which chains visit which mode, and the verdict."""

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

_NEARLY_NONE = 0.05  # of a chain's draws; 1 less it is nearly all
_LEVEL = 0.01  # of all tests together
_LEAST_ESS = 10.0  # a chain worth less does not mix, and its own few moves do not excuse it
_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


class Visits(NamedTuple):
    """Each chain's share of its draws at each mode, and where this is no accident."""

    names: list[object]
    shares: Floats  # (C, M); NaN for a chain without weight
    differs: npt.NDArray[np.bool_]  # (C, M), from the other chains by more than Monte Carlo error

    @property
    def apart(self) -> npt.NDArray[np.bool_]:
        """Where (C, M) a chain that differs has nearly all or nearly none of its draws at a mode."""
        extreme = (self.shares < _NEARLY_NONE) | (self.shares > 1 - _NEARLY_NONE)
        return self.differs & extreme

    @property
    def belonging(self) -> tuple[object, ...]:
        """Names of the chains that stay in different modes."""
        return tuple(self.names[c] for c in np.flatnonzero(self.apart.any(axis=1)))


def visits(draws: PartitionDraws, indicators: Floats) -> Visits:
    """Shares of each chain's draws at each mode, from the indicators (M, N) of the draws at each.

    A chain differs from the others where its share does by more than Monte Carlo error at level 0.01, shared among
    all chains and modes (Bonferroni). With p the share over all chains and m and m' the effective numbers of draws of
    the chain and of the others, the error's variance is p (1 - p) (1 / m + 1 / m'). The effective numbers follow from
    the autocorrelation of the indicator, the mean over the chains in which it moves. None counts for fewer than ten
    draws: a chain so slow does not mix, and that is what is to be found.
    """
    chains = draws.samples.chains
    names = draws.samples.chain_names
    shares = np.full((len(chains), len(indicators)), np.nan)
    worth = np.full_like(shares, np.nan)
    for c, rows in enumerate(chains):
        if draws.weights[rows].sum() > 0:
            samples = draws.samples.take(rows)
            shares[c] = samples.mean(indicators[:, rows])
            error = samples.mcse(indicators[:, rows])
            moves = error > 0
            worth[c, moves] = (shares[c] * (1 - shares[c]))[moves] / np.square(error[moves]) / samples.effective_draws
    lengths = np.array([draws.samples.take(rows).effective_draws for rows in chains])
    return Visits(names, shares, _differs(shares, worth, lengths))


def _differs(shares: Floats, worth: Floats, lengths: Floats) -> npt.NDArray[np.bool_]:
    """Where (C, M) a chain's share differs from that of the others by more than Monte Carlo error."""
    known = np.flatnonzero(~np.isnan(shares).any(axis=1))
    differs = np.zeros(shares.shape, bool)
    if known.size < 2:
        return differs
    bound = -ndtri(_LEVEL / 2 / (known.size * shares.shape[1]))
    for k in range(shares.shape[1]):
        found = worth[known, k]
        moving = ~np.isnan(found)
        each = 1 / float(np.mean(1 / found[moving])) if moving.any() else 0.0
        ess = np.minimum(np.maximum(each * lengths[known], _LEAST_ESS), lengths[known])
        for at, c in enumerate(known):
            others = np.delete(np.arange(known.size), at)
            elsewhere = float(shares[known[others], k] @ ess[others] / ess[others].sum())
            pooled = float(shares[known, k] @ ess / ess.sum())
            variance = pooled * (1 - pooled) * (1 / ess[at] + 1 / ess[others].sum())
            differs[c, k] = abs(shares[c, k] - elsewhere) > bound * np.sqrt(variance) + ROUNDING
    return differs


def judged(
    draws: PartitionDraws, at_modes: Floats, number: int | None, groups: Floats | None, far: str
) -> tuple[str, tuple[object, ...], str]:
    """Return the status, the chains that belong to modes or groups, and what to report, in words.

    Parameters
    ----------
    draws : PartitionDraws
    at_modes : ndarray of shape (M, n_draws)
        Indicators of the draws at each mode.
    number : int or None
        Number of particles that was requested.
    groups : ndarray of shape (G, n_draws) or None
        Indicators of the draws in each of the groups that would be modes if the draws were independent; None if those
        are the modes.
    far : str
        How far the groups' partitions are from each other, with the unit.
    """
    n_modes = len(at_modes)
    if draws.samples.shortest < FEWEST_DRAWS:
        return "unknown", (), "A chain has fewer than four draws, too few to find modes: run longer chains."
    if number == 1:
        return "unknown", (), "One particle was requested, the consensus partition; modes were not searched for."
    supposed = None if groups is None else visits(draws, groups)
    doubt = "" if supposed is None else _undecided(supposed, far, n_modes)
    if n_modes == 1:
        if doubt := doubt or _of_chains_apart(draws):
            return "unknown", () if supposed is None else supposed.belonging, doubt
        divided = f"One mode: no valley lies between the {number} particles, which divide it."
        alone = "One mode: no second mode was found. If the chains agree, report the consensus partition."
        return "one mode", (), alone if number is None else divided
    found, (errors, sizes) = visits(draws, at_modes), draws.samples.mcse_and_ess(at_modes)
    verdict = _of_modes(found, draws.samples.mean(at_modes), errors, sizes)
    if number is not None and number != n_modes:
        more = f"The {number} particles divide them."
        verdict += f" {more}" if number > n_modes else f" {counted(number, 'particle')} are too few for them."
    status = "chains in different modes" if found.belonging else "several modes"
    return status, found.belonging, f"{verdict} {doubt}".rstrip()


def _of_modes(found: Visits, weights: Floats, errors: Floats, sizes: Floats) -> str:
    """What to report of modes of these weights, with their errors and effective sample sizes."""
    number = weights.size
    if found.belonging:
        told = _whereabouts(found, "mode")
        return (
            f"{told[:1].upper()}{told[1:]}: the sampler does not mix between modes, so the weights do not estimate "
            "probabilities."
        )
    answers = f"{_word(number)} modes"
    known = [
        f"{weight:.2f}" if np.isnan(error) else f"{weight:.2f} (MCSE {error:.2g})"
        for weight, error in zip(weights, errors, strict=True)
    ]
    weighted = joined(known)
    absent = np.argwhere(found.shares == 0)
    visited = f"{answers}: every chain visits {'both' if number == 2 else 'all of them'}"
    least = float(sizes.min())
    rough = f" Their smallest effective sample size is {least:.3g}, so they and their errors are rough."
    if len(found.names) == 1:
        return (
            f"{answers} in one chain, with weights {weighted}.{rough * is_rough(least)} It is unknown whether another "
            "chain would find the same modes: run at least four from different starts."
        )
    if absent.size:
        chain, k = absent[0]
        return (
            f"{answers}, with weights {weighted}. Chain {found.names[chain]} has not visited the {ordinal(k)} mode, "
            "which may be chance: run longer chains."
        )
    if found.differs.any():
        return (
            f"{visited}, but for different shares of its draws. Run longer chains: the weights {weighted} are not "
            "settled."
        )
    if is_rough(least):
        return f"{visited}, with weights {weighted}.{rough} Run longer chains before reporting them."
    return f"{visited}; report them with their weights {weighted}."


def _undecided(found: Visits, apart: str, known: int) -> str:
    """What to report if the effective draws are too few to tell whether there are more than the known modes."""
    number = found.shares.shape[1]
    told = f"; {_whereabouts(found, 'group')}" if found.belonging else ""
    question = "one mode from several" if known == 1 else f"whether there are more than {_word(known).lower()} modes"
    return (
        f"Cannot tell {question}: successive draws are so correlated that the effective sample size is too "
        f"small. {_word(number)} groups of draws have partitions at a distance of {apart}, with few draws between "
        f"them{told}. Run longer chains, or a sampler that mixes better."
    )


def _of_chains_apart(draws: PartitionDraws) -> str:
    """What to report if one mode is found although the chains disagree on a pair of items; else nothing."""
    some = draws.labels_only().without_zero_weights().as_sampled().of_some_items()[1]
    gap = largest_gap(some)
    if not gap_is_real(gap, some.n_items, some.samples):
        return ""
    first, second = some.items.names[list(gap.items)]
    return (
        f"Cannot tell one mode from several: the chains disagree. Items {first} and {second} are co-clustered in "
        f"{gap.shares[0]:.0%} of the draws of chain {gap.chains[0]} and {gap.shares[1]:.0%} of chain {gap.chains[1]}, "
        "although no second mode was found. Run longer chains, or a sampler that mixes better."
    )


def _whereabouts(found: Visits, place: str) -> str:
    """Which chains stay where, and which hardly visit what though they stay in no single other place."""
    stay = found.shares > 1 - _NEARLY_NONE
    miss = found.apart & ~stay.any(axis=1, keepdims=True)
    told = []
    for what, where in (("stay{} in", stay), ("hardly ever visit{}", miss)):
        for k in np.flatnonzero(where.any(axis=0)).tolist():
            names = [found.names[c] for c in np.flatnonzero(where[:, k])]
            verb = what.format("s" * (len(names) == 1))
            told.append(f"chain{'s' * (len(names) > 1)} {joined(names)} {verb} the {ordinal(k)} {place}")
    return ", ".join(told)


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else str(number)
