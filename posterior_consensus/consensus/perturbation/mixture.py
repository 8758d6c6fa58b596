"""A mixture of random perturbation models, one partition for each component, and its draws counted as independent."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, xlogy

from posterior_consensus.consensus.perturbation.draws import ModelDraws
from posterior_consensus.consensus.perturbation.em import (
    ModelParameters,
    State,
    best_start,
    draw_log_likelihoods,
    expect,
    held_out_memberships,
    kept,
    log_prior,
    maximize,
    random_rows,
    sample_of_items,
)
from posterior_consensus.ensemble.partitions import distinct_rows
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.ensemble.series import autocorrelation_time
from posterior_consensus.kernels import contingency
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.search.classical import k_means

_DRAWS = 300  # most draws that are grouped for the starts
_MODE_STARTS = 4  # of each mode
_SAME = 1e-5  # change of memberships and responsibilities at which a climb ends
_FIRST_STEPS = 50
_LEAST = 0.5  # effective draws below which a mode is removed
_CHANCE = 3.0  # multiple of the draws that a run has by chance
_FOLLOWED = 200  # most items whose labels are followed along the chains


class Mixture(NamedTuple):
    """Modes, and the probability of each mode for each draw."""

    states: list[State]
    shares: Floats  # (G,)
    responsibilities: Floats  # (N, G)
    trace: list[float]  # lower bound of the log-likelihood plus log prior, at each step
    converged: bool
    log_likelihood: float  # the bound alone
    memberships: list[Floats]  # held out, clusters in the order of first items
    n_draws: float  # equivalent number of independent draws

    @property
    def evidence(self) -> float:
        """Log-likelihood minus BIC's penalty for all shares and for the noise of each mode."""
        n_shares, n_items = sum(s.parameters.shares.size - 1 for s in self.states), len(self.states[0].memberships)
        of_items, of_draws = n_shares * np.log(n_items), (2 * self.shares.size - 1) * np.log(self.n_draws)
        return self.log_likelihood - 0.5 * float(of_items + of_draws)


@one_blas_thread()  # the sums must not depend on the number of threads
def mixture(
    draws: ModelDraws,
    n_modes: int,
    n_clusters: int,
    *,
    fewer: bool,
    n_starts: int,
    most_steps: int,
    rng: np.random.Generator,
) -> Mixture:
    """Ascend from several groupings of the draws, on a sample of the items if there are many; then from the best."""
    sample = draws.of_items(sample_of_items(draws, np.arange(draws.counts.size), rng))
    tried = []
    for groups in _groupings(sample, n_modes, n_starts, rng):
        states = [best_start(part, n_clusters, fewer=fewer, n_starts=_MODE_STARTS, rng=rng)[0] for part in groups]
        tried.append(_climb(sample, states, _likely(sample, states), _FIRST_STEPS))
    best = max(tried, key=lambda fitted: fitted.evidence)
    states = best.states
    if sample is not draws:
        given = list(zip(best.states, best.responsibilities.T, strict=True))
        states = [expect(_part(draws, r), _parameters(_part(sample, r), state)) for state, r in given]
    return _climb(draws, states, best.responsibilities, most_steps)


def _groupings(draws: ModelDraws, n_modes: int, n_starts: int, rng: np.random.Generator) -> list[list[ModelDraws]]:
    """Groups of similar draws, by k-means on the leading eigenvectors of their pair agreements."""
    some = draws.take(np.sort(random_rows(draws, _DRAWS, rng)))
    if n_modes == 1:
        return [[some]]
    vectors = _coordinates(some, n_modes)
    groupings = [k_means(vectors[:, : n_modes - 1], n_modes, 10, rng)]
    groupings += [k_means(vectors, n_modes, 1, rng) for _ in range(n_starts - 1)]
    return [[some.take(np.flatnonzero(g == k)) for k in range(g.max() + 1)] for g in groupings]


def _coordinates(draws: ModelDraws, number: int) -> Floats:
    """Leading principal coordinates (N, number) of the draws' association matrices, each of unit norm."""
    squares = np.square(np.arange(draws.n_items + 1.0))
    products = contingency.all_joint_sums(draws.labels.values, draws.labels.n_clusters, squares)
    norms = contingency.size_sums(draws.labels.values, draws.labels.n_clusters, squares)
    products /= np.sqrt(np.outer(norms, norms))
    centred = products - products.mean(axis=0) - products.mean(axis=1, keepdims=True) + products.mean()
    values, vectors = np.linalg.eigh(centred)
    return vectors[:, ::-1][:, :number] * np.sqrt(np.maximum(values[::-1][:number], 0.0))


def _likely(draws: ModelDraws, states: list[State]) -> Floats:
    """Responsibilities (N, G) of modes that were fitted to other draws."""
    likelihoods = [
        draw_log_likelihoods(draws, _parameters(draws, state)._replace(noise=_noise_of_mode(draws, state)))
        for state in states
    ]
    logits = np.stack(likelihoods, axis=1)
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


def _climb(draws: ModelDraws, states: list[State], responsibilities: Floats, most_steps: int) -> Mixture:
    """Step until no responsibility and no membership changes by more than the tolerance.

    Modes that lose all draws, and clusters that lose all items, are removed at the end, and the ascent continues.
    """
    trace: list[float] = []
    change = np.inf
    while change > _SAME and len(trace) < most_steps:
        before, given = states, responsibilities
        shares = _shares_of_modes(draws, given)
        parameters = [_parameters(_part(draws, r), state) for r, state in zip(given.T, states, strict=True)]
        logits = np.log(shares) + np.stack([draw_log_likelihoods(draws, each) for each in parameters], axis=1)
        totals = logsumexp(logits, axis=1, keepdims=True)
        responsibilities = np.exp(logits - totals)
        states = [expect(_part(draws, r), each) for r, each in zip(responsibilities.T, parameters, strict=True)]
        log_likelihood = float(draws.counts @ totals[:, 0])
        log_likelihood += sum(_divergence(old, each.shares) for old, each in zip(before, parameters, strict=True))
        trace.append(log_likelihood + _log_priors(draws, shares, parameters))
        change = max(np.abs(new.memberships - old.memberships).max() for new, old in zip(states, before, strict=True))
        change = max(change, np.abs(responsibilities - given).max())
    alive = draws.counts @ responsibilities >= _LEAST
    occupied = [np.unique(state.labels) for state in states]
    if alive.all() and all(o.size == state.parameters.shares.size for o, state in zip(occupied, states, strict=True)):
        shares = _shares_of_modes(draws, responsibilities)
        parts = [_part(draws, r) for r in responsibilities.T]
        memberships = [held_out_memberships(part, state) for part, state in zip(parts, states, strict=True)]
        converged = bool(change <= _SAME)
        n_draws = float(draws.counts.sum())
        return Mixture(states, shares, responsibilities, trace, converged, log_likelihood, memberships, n_draws)
    left = responsibilities[:, alive] + 1e-12
    states = [
        state._replace(memberships=kept(state, clusters))
        for state, clusters, lives in zip(states, occupied, alive, strict=True)
        if lives
    ]
    return _climb(draws, states, left / left.sum(axis=1, keepdims=True), most_steps)


def _part(draws: ModelDraws, responsibilities: Floats) -> ModelDraws:
    """Draws weighted by the responsibilities of one mode."""
    return draws._replace(counts=draws.counts * responsibilities)


def _parameters(draws: ModelDraws, state: State) -> ModelParameters:
    return maximize(draws, state.memberships, _noise_of_mode(draws, state))


def _noise_of_mode(draws: ModelDraws, state: State) -> Floats:
    """Noise (N,) of a mode, equal in all draws."""
    return np.full(draws.counts.size, state.parameters.noise[0])


def _shares_of_modes(draws: ModelDraws, responsibilities: Floats) -> Floats:
    totals = draws.counts @ responsibilities + 0.5
    return totals / totals.sum()


def _divergence(state: State, shares: Floats) -> float:
    """Minus the divergence of the memberships from the clusters' shares, summed over items; at most 0."""
    memberships = state.memberships
    return float((memberships @ np.log(shares)).sum() - xlogy(memberships, memberships).sum())


def _log_priors(draws: ModelDraws, shares: Floats, parameters: list[ModelParameters]) -> float:
    of_modes = sum(0.5 * np.log(each.shares).sum() + log_prior(draws, each.noise) for each in parameters)
    return float(0.5 * np.log(shares).sum() + of_modes)


@one_blas_thread()
def as_independent(draws: ModelDraws, fitted: Mixture, chains: list[Positions]) -> ModelDraws:
    """Reduce the counts of draws so that they add up to an equivalent number of independent draws.

    Given are the modes fitted to them, and the rows of each chain, in the order of its draws.

    Let x_ti be 1 if the label of item i in draw t is matched with the item's cluster in the draw's mode, minus the mean
    over the draws of this mode. A draw counts as 1 / tau of its count, where tau is the autocorrelation time of x,
    pooled over items. Changes of the mode itself do not matter: a chain that stays in a mode shows this mode well.

    Some samplers repeat whole draws. Equal draws fit a mode of their own, and a long repetition can counterbalance any
    1 / tau. So a run of equal successive draws counts at most as 1 + 3 p / (1 - p) draws, where p is the share of this
    partition among the draws outside the run: p / (1 - p) more draws are expected if draws are independent.
    """
    tau = _autocorrelation_time(_agreement_with_modes(draws, fitted), chains)
    which = distinct_rows(draws.labels.values)[1]
    run = _runs(which, chains)
    own, equal = (np.bincount(one, draws.counts)[one] for one in (run, which))
    others = draws.counts.sum() - equal
    most = 1 + _CHANCE * np.divide(equal - own, others, out=np.full(own.size, np.inf), where=others > 0)
    return draws._replace(counts=draws.counts * np.minimum(1 / tau, most / own))


def _agreement_with_modes(draws: ModelDraws, fitted: Mixture) -> Floats:
    """Agreement (N, items) of the labels of some items with each draw's mode, minus its mean over the mode's draws."""
    items = np.unique(np.linspace(0, draws.n_items - 1, min(draws.n_items, _FOLLOWED)).round().astype(int))
    rows = draws.starts[:-1, np.newaxis] + draws.labels.values[:, items]
    mode = fitted.responsibilities.argmax(axis=1)
    agreement = np.empty(rows.shape)
    for g, state in enumerate(fitted.states):
        own = mode == g
        if own.any():
            matched = state.parameters.matches @ state.memberships[items].T
            agreement[own] = matched[rows[own], np.arange(items.size)]
            agreement[own] -= agreement[own].mean(axis=0)
    return agreement


def _autocorrelation_time(values: Floats, chains: list[Positions]) -> float:
    """Autocorrelation time of traces (N, P), pooled over the traces and the chains; at least 1."""
    variance, shortest = float(np.square(values).sum()), min(map(len, chains))
    if variance == 0 or shortest < FEWEST_DRAWS:
        return 1.0

    def correlation(lag: int) -> float:
        pairs = [(values[rows[: rows.size - lag]], values[rows[lag:]]) for rows in chains]
        n_pairs = sum(len(before) for before, _ in pairs)
        return sum(float(np.vdot(*pair)) for pair in pairs) / variance * len(values) / n_pairs

    return max(1.0, autocorrelation_time(correlation, shortest))


def _runs(which: npt.NDArray[np.intp], chains: list[Positions]) -> npt.NDArray[np.intp]:
    """Number (N,) of the run of each draw, where `which` (N,) numbers the different partitions."""
    run = np.empty(which.size, np.intp)
    begun = 0
    for rows in chains:
        changes = np.append(True, which[rows[1:]] != which[rows[:-1]])
        run[rows] = begun + np.cumsum(changes) - 1
        begun += int(changes.sum())
    return run
