"""Which chains visit which mode: whether a posterior has several modes, or a sampler does not mix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.results.display import is_rough, joined, ordinal

Floats = npt.NDArray[np.float64]

NEARLY_NONE = 0.05  # of a chain's draws; 1 less it is nearly all
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
        extreme = (self.shares < NEARLY_NONE) | (self.shares > 1 - NEARLY_NONE)
        return self.differs & extreme

    @property
    def belonging(self) -> tuple[object, ...]:
        """Names of the chains that stay in different modes."""
        return tuple(self.names[c] for c in np.flatnonzero(self.apart.any(axis=1)))

    @property
    def staying(self) -> list[tuple[int, list[object]]]:
        """The modes in which chains stay, with the names of these chains."""
        return self._by_mode(self.shares > 1 - NEARLY_NONE)

    @property
    def missing(self) -> list[tuple[int, list[object]]]:
        """The modes that chains hardly visit, though they stay in no single other one."""
        free = ~(self.shares > 1 - NEARLY_NONE).any(axis=1, keepdims=True)
        return self._by_mode(free & self.apart)

    def _by_mode(self, where: npt.NDArray[np.bool_]) -> list[tuple[int, list[object]]]:
        modes = np.flatnonzero(where.any(axis=0)).tolist()
        return [(k, [self.names[c] for c in np.flatnonzero(where[:, k])]) for k in modes]


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
            differs[c, k] = abs(shares[c, k] - elsewhere) > bound * np.sqrt(variance) + 1e-12
    return differs


def judged(found: Visits, weights: Floats, errors: Floats, sizes: Floats) -> tuple[str, tuple[object, ...], str]:
    """Return the status, the chains that belong to modes, and what to report, in words.

    Parameters
    ----------
    found : Visits
        Of each chain to each of at least two modes.
    weights, errors, sizes : ndarray of shape (M,)
        Posterior probability of each mode, its Monte Carlo standard error and effective sample size.
    """
    number = weights.size
    if found.belonging:
        told = _whereabouts(found, "mode")
        verdict = (
            f"{told[:1].upper()}{told[1:]}: the sampler does not mix between modes, so the weights do not estimate "
            "probabilities."
        )
        return "chains in different modes", found.belonging, verdict
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
        verdict = (
            f"{answers} in one chain, with weights {weighted}.{rough * is_rough(least)} It is unknown whether another "
            "chain would find the same modes: run at least four from different starts."
        )
    elif absent.size:
        chain, k = absent[0]
        verdict = (
            f"{answers}, with weights {weighted}. Chain {found.names[chain]} has not visited the {ordinal(k)} mode, "
            "which may be chance: run longer chains."
        )
    elif found.differs.any():
        verdict = (
            f"{visited}, but for different shares of its draws. Run longer chains: the weights {weighted} are not "
            "settled."
        )
    elif is_rough(least):
        verdict = f"{visited}, with weights {weighted}.{rough} Run longer chains before reporting them."
    else:
        verdict = f"{visited}; report them with their weights {weighted}."
    return "several modes", (), verdict


def undecided(found: Visits, apart: str, known: int) -> str:
    """What to report where the effective draws are too few to tell whether there are more modes, in words.

    Parameters
    ----------
    found : Visits
        Of each chain to each of the groups of draws that would be modes if the draws were independent.
    apart : str
        How far the groups' partitions are from each other, with the unit.
    known : int
        Number of modes that the draws show.
    """
    number = found.shares.shape[1]
    told = f"; {_whereabouts(found, 'group')}" if found.belonging else ""
    question = "one mode from several" if known == 1 else f"whether there are more than {_word(known).lower()} modes"
    return (
        f"Cannot tell {question}: successive draws are so correlated that the effective sample size is too "
        f"small. {_word(number)} groups of draws have partitions at a distance of {apart}, with few draws between "
        f"them{told}. Run longer chains, or a sampler that mixes better."
    )


def _whereabouts(found: Visits, place: str) -> str:
    """Which chains stay where, and which hardly visit what."""
    told = [f"{_chains(names)} {_verb(names, 'stay')} in the {ordinal(k)} {place}" for k, names in found.staying]
    told += [
        f"{_chains(names)} hardly ever {_verb(names, 'visit')} the {ordinal(k)} {place}" for k, names in found.missing
    ]
    return ", ".join(told)


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else str(number)


def _chains(names: Sequence[object]) -> str:
    return f"chain{'s' * (len(names) > 1)} {joined(names)}"


def _verb(names: Sequence[object], verb: str) -> str:
    return f"{verb}{'s' * (len(names) == 1)}"
