"""Expectation and maximization for the random perturbation model: steps, starts, removal of clusters."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, softmax

from posterior_consensus.consensus.perturbation.draws import ModelDraws
from posterior_consensus.ensemble.switching import matched_by_draw
from posterior_consensus.kernels import perturbation
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats

_BYTES_A_CELL = 32  # of the tables of draws' clusters by clusters
_WIDEST = 10  # most clusters for which all matchings are summed; the work doubles with each further cluster
_HALVINGS = 60  # of the interval of the noise, down to rounding
_ITEMS, _DRAWS = 500, 200  # most items and draws for the starts
_FIRST_STEPS = 50
_ROUGHLY = 1e-3  # change of the memberships at which a start ends
_SAME = 1e-6  # change of the memberships at which the last ascent ends
_SURE = 0.7  # initial membership of an item in its cluster of the start
_LOOK_AHEAD = 2  # clusters removed in a row although the log-likelihood falls


class ModelParameters(NamedTuple):
    """Parameters of the draws, given the memberships."""

    matches: Floats  # (R, K), probability that a cluster of a draw is matched with a cluster of the consensus
    entropies: Floats  # (N,), of the matches, minus the logarithm of the number of matchings
    agreement: Floats  # (N,), expected number of items whose label is matched with their cluster
    noise: Floats  # (N,)
    shares: Floats  # (K,)


class State(NamedTuple):
    """Memberships, and the parameters that determine them."""

    memberships: Floats  # (n, K)
    parameters: ModelParameters
    log_likelihood: float  # lower bound
    objective: float  # lower bound plus log prior, which the steps raise
    table: Floats | None  # (R, K), sums of the memberships over the draws' clusters, if already computed

    @property
    def labels(self) -> npt.NDArray[np.intp]:
        """The most probable cluster of each item."""
        return self.memberships.argmax(axis=1)


def agreement_gain(noise: Floats, n_labels: npt.NDArray[np.int64]) -> Floats:
    """Log ratio of the probabilities of the label of an item's cluster and of any other label."""
    return np.log1p(n_labels * (1 - noise) / noise)


def maximize(
    draws: ModelDraws, memberships: Floats, noise: Floats | None, table: Floats | None = None
) -> ModelParameters:
    """Compute matches, noise and shares given the memberships of the items of `draws`, and their table if known.

    With a noise (N,), matches are averages over all matchings; without, the best matching.
    """
    n_items, n_clusters = memberships.shape
    size = _BYTES_A_CELL * int(draws.starts[-1]) * n_clusters
    memory.check(
        size, f"The perturbation model of {n_clusters} clusters", "Take fewer partitions, or set fewer clusters."
    )
    if table is None:
        table = draws.table(memberships)
    matches, entropies, agreement = _matches(draws, table, noise)
    noise = _likeliest_noise(draws, np.minimum(agreement, n_items), draws.widths(n_clusters), n_items)
    shares = (memberships.sum(axis=0) + 0.5) / (n_items + 0.5 * n_clusters)
    return ModelParameters(matches, entropies, agreement, noise, shares)


def expect(draws: ModelDraws, parameters: ModelParameters) -> State:
    """Compute the memberships of all items given the parameters."""
    matches, entropies, _, noise, shares = parameters
    n_labels = draws.widths(shares.size)
    weights = draws.counts * agreement_gain(noise, n_labels)
    memberships, totals, table = draws.expectation(weights, matches, np.log(shares))
    log_likelihood = float(totals.sum() + draws.counts @ (draws.n_items * np.log(noise / n_labels) + entropies))
    objective = log_likelihood + float(0.5 * np.log(shares).sum() + log_prior(draws, noise))
    return State(memberships, parameters, log_likelihood, objective, table)


def climb(
    draws: ModelDraws, memberships: Floats, noise: Floats | None, most_steps: int, tolerance: float
) -> tuple[State, list[float], bool]:
    """Step until no membership changes by more than the tolerance; return state, objectives and convergence.

    Without a noise, steps use the best matching of each draw; with one, the average over all matchings.
    """
    trace: list[float] = []
    ended, table = False, None
    while not ended and len(trace) < most_steps:
        state = expect(draws, maximize(draws, memberships, noise, table))
        trace.append(state.objective)
        ended = bool(np.abs(state.memberships - memberships).max() < tolerance)
        memberships, table = state.memberships, state.table
        noise = None if noise is None else state.parameters.noise
    return state, trace, ended


def held_out_memberships(draws: ModelDraws, state: State) -> Floats:
    """Memberships (n, K') from matchings that exclude the item itself, with clusters in the order of first items.

    The memberships of the steps are overconfident, because each item attracts the matchings to its own labels. Clusters
    that lose all items here are removed.
    """
    parameters = maximize(draws, state.memberships, state.parameters.noise, state.table)
    gains = agreement_gain(parameters.noise, draws.widths(parameters.shares.size))
    logits = draws.held_out_votes(gains, parameters.matches, state.memberships) + np.log(parameters.shares)
    clusters, first = np.unique(logits.argmax(axis=1), return_index=True)
    return softmax(logits[:, clusters[np.argsort(first)]], axis=1)


def draw_log_likelihoods(draws: ModelDraws, parameters: ModelParameters) -> Floats:
    """Lower bound of the log probability of each draw (N,), expected over the memberships."""
    n_labels = draws.widths(parameters.shares.size)
    noise = parameters.noise
    gains = agreement_gain(noise, n_labels) * parameters.agreement
    return draws.n_items * np.log(noise / n_labels) + gains + parameters.entropies


def _matches(draws: ModelDraws, table: Floats, noise: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Probability of each match (R, K); entropy minus log number of matchings, and agreement, of each draw (N,)."""
    n_clusters = table.shape[1]
    most, least = draws.widths(n_clusters), np.minimum(draws.labels.n_clusters, n_clusters)
    matches = (matched_by_draw(table, draws.starts)[:, np.newaxis] == np.arange(n_clusters)).astype(np.float64)
    entropies = gammaln(most - least + 1.0) - gammaln(most + 1.0)
    averaged = np.flatnonzero(most <= (0 if noise is None else _WIDEST))
    if noise is not None and averaged.size:
        gains = agreement_gain(noise, most)
        logs = perturbation.average_matchings(table, draws.starts, most, gains, averaged, matches)
    agreement = np.add.reduceat((matches * table).sum(axis=1), draws.starts[:-1])
    if averaged.size:
        entropies[averaged] = logs - (gains * agreement + gammaln(most + 1.0))[averaged]
    return matches, entropies, agreement


def _likeliest_noise(draws: ModelDraws, agreement: Floats, n_labels: npt.NDArray[np.int64], n_items: int) -> Floats:
    """Most probable noise of each draw, or of all draws."""
    agree, differ = draws.counts * agreement, draws.counts * (n_items - agreement)
    if draws.per_draw:
        return _most_probable(agree[:, np.newaxis], differ[:, np.newaxis], n_labels[:, np.newaxis])
    sizes, group = np.unique(n_labels, return_inverse=True)
    agree, differ = (np.bincount(group, each).astype(np.float64) for each in (agree, differ))
    return np.full(len(agreement), _most_probable(agree, differ, sizes))


def _most_probable(agree: Floats, differ: Floats, n_labels: npt.NDArray[np.int64]) -> Floats:
    """Root of the slope of the log posterior, summed over the last axis; the slope decreases from noise 0 to 1."""
    lost = 1 - 1 / n_labels
    total = agree.sum(axis=-1) + differ.sum(axis=-1)
    lower, upper = 1 / (2 + total), np.ones_like(total)
    for _ in range(_HALVINGS):
        p = ((lower + upper) / 2)[..., np.newaxis]
        slope = (differ / p - agree * lost / (1 - lost * p)).sum(axis=-1) - 1 / (1 - p[..., 0])
        lower, upper = np.where(slope > 0, p[..., 0], lower), np.where(slope > 0, upper, p[..., 0])
    return lower


def log_prior(draws: ModelDraws, noise: Floats) -> float:
    """Log prior of the noise p, with density proportional to 1 - p."""
    return float(np.log1p(-noise).sum() if draws.per_draw else np.log1p(-noise[0]))


class FittedModel(NamedTuple):
    """The most probable state, and how it was reached."""

    state: State
    memberships: Floats  # (n, K), held out, clusters in the order of first items
    trace: list[float]
    converged: bool
    objectives: list[float]  # of the starts


def fitted_model(
    draws: ModelDraws, n_clusters: int, *, fewer: bool, n_starts: int, most_steps: int, rng: np.random.Generator
) -> FittedModel:
    """Ascend from several draws, on a sample of items and draws if there are many; then from the best.

    With `fewer`, clusters are removed as long as that raises the log-likelihood; without, only empty clusters.
    """
    rows = np.sort(random_rows(draws, _DRAWS, rng))
    part = draws.of_items(sample_of_items(draws, rows, rng))
    state, objectives = best_start(part.take(rows), n_clusters, fewer=fewer, n_starts=n_starts, rng=rng)
    noise = np.full(draws.counts.size, state.parameters.noise.mean())
    state = expect(draws, maximize(part, state.memberships, noise))
    while True:
        occupied = np.unique(state.labels)
        state, trace, converged = climb(draws, kept(state, occupied), state.parameters.noise, most_steps, _SAME)
        if np.unique(state.labels).size == occupied.size:
            return FittedModel(state, held_out_memberships(draws, state), trace, converged, objectives)


def best_start(
    draws: ModelDraws, n_clusters: int, *, fewer: bool, n_starts: int, rng: np.random.Generator
) -> tuple[State, list[float]]:
    """The best state over starts from draws, without empty clusters, and the objectives of all starts."""
    tried = [_from_draw(draws, row, n_clusters) for row in random_rows(draws, n_starts, rng)]
    state = max(tried, key=lambda state: state.objective)
    occupied = np.unique(state.labels)
    if occupied.size < state.memberships.shape[1]:
        state = _short_climb(draws, state, occupied)
    return _fewer(draws, state) if fewer else state, [state.objective for state in tried]


def random_rows(draws: ModelDraws, number: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Sample `number` draws without replacement, in random order, with probabilities by their counts.

    The order is the order of exponential variables whose rates are the counts.
    """
    if np.ptp(draws.counts) == 0:
        return rng.permutation(draws.counts.size)[:number]
    return np.argsort(np.log(rng.exponential(size=draws.counts.size)) - np.log(draws.counts))[:number]


def sample_of_items(draws: ModelDraws, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """All items if there are few, else a sample that prefers items of small clusters in the draws `rows`."""
    if draws.n_items <= _ITEMS:
        return np.arange(draws.n_items)
    rarity = draws.rarity(rows)
    return np.sort(rng.choice(draws.n_items, _ITEMS, replace=False, p=rarity / rarity.sum()))


def kept(state: State, clusters: npt.NDArray[np.intp]) -> Floats:
    """Memberships restricted to some clusters; items of removed clusters get nearly equal memberships."""
    if clusters.size == state.memberships.shape[1]:
        return state.memberships
    left = state.memberships[:, clusters] + 1e-9
    return left / left.sum(axis=1, keepdims=True)


def _from_draw(draws: ModelDraws, row: int, n_clusters: int) -> State:
    """Ascend from one draw, by the best matchings and then by all matchings."""
    memberships = _first_memberships(draws.labels.values[row].astype(np.intp), n_clusters)
    state, _, _ = climb(draws, memberships, None, _FIRST_STEPS, _ROUGHLY)
    return _short_climb(draws, state, np.arange(n_clusters))


def _first_memberships(labels: npt.NDArray[np.intp], n_clusters: int) -> Floats:
    """Initial memberships from labels; items beyond the `n_clusters` largest clusters get equal memberships."""
    sizes = np.bincount(labels)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))[labels]
    named = rank < n_clusters
    memberships = np.full((labels.size, n_clusters), 1 / n_clusters)
    memberships[named] *= 1 - _SURE
    memberships[named, rank[named]] += _SURE
    return memberships


def _short_climb(draws: ModelDraws, state: State, clusters: npt.NDArray[np.intp]) -> State:
    return climb(draws, kept(state, clusters), state.parameters.noise, _FIRST_STEPS, _ROUGHLY)[0]


def _fewer(draws: ModelDraws, state: State) -> State:
    """Remove the smallest cluster repeatedly, and keep the state of largest log-likelihood."""
    best, worse = state, 0
    while state.memberships.shape[1] > 1 and worse < _LOOK_AHEAD:
        largest = np.sort(np.argsort(-state.parameters.shares, kind="stable")[:-1])
        state = _short_climb(draws, state, largest)
        best, worse = (state, 0) if state.log_likelihood > best.log_likelihood else (best, worse + 1)
    return best
