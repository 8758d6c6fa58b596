"""Search for the most probable state of the random perturbation model: starts, ascents, removal of clusters."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.perturbation.draws import ModelDraws
from posterior_consensus.consensus.perturbation.em import (
    Floats,
    State,
    climb,
    expect,
    held_out_memberships,
    maximise,
)

_ITEMS, _DRAWS = 500, 200  # most items and draws for the starts
_FIRST_STEPS = 50
_ROUGHLY = 1e-3  # change of the memberships at which a start ends
_SAME = 1e-6  # change of the memberships at which the last ascent ends
_SURE = 0.7  # initial membership of an item in its cluster of the start
_LOOK_AHEAD = 2  # clusters removed in a row although the log-likelihood falls


class Search(NamedTuple):
    """Result of a search."""

    state: State
    memberships: Floats  # (n, K), held out, clusters in the order of first items
    trace: list[float]
    converged: bool
    objectives: list[float]  # of the starts


def search(
    draws: ModelDraws, n_clusters: int, *, fewer: bool, n_starts: int, most_steps: int, rng: np.random.Generator
) -> Search:
    """Ascend from several draws, on a sample of items and draws if there are many; then from the best.

    With `fewer`, clusters are removed as long as that raises the log-likelihood; without, only empty clusters.
    """
    rows = np.sort(random_rows(draws, _DRAWS, rng))
    part = draws.of_items(sample_of_items(draws, rows, rng))
    state, objectives = explore(part.take(rows), n_clusters, fewer=fewer, n_starts=n_starts, rng=rng)
    noise = np.full(draws.counts.size, state.parameters.noise.mean())
    state = expect(draws, maximise(part, state.memberships, noise))
    while True:
        occupied = np.unique(state.labels)
        state, trace, converged = climb(draws, kept(state, occupied), state.parameters.noise, most_steps, _SAME)
        if np.unique(state.labels).size == occupied.size:
            return Search(state, held_out_memberships(draws, state), trace, converged, objectives)


def explore(
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
    memberships = _memberships(draws.labels.values[row].astype(np.intp), n_clusters)
    state, _, _ = climb(draws, memberships, None, _FIRST_STEPS, _ROUGHLY)
    return _short_climb(draws, state, np.arange(n_clusters))


def _memberships(labels: npt.NDArray[np.intp], n_clusters: int) -> Floats:
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
