"""From draws to the most probable state of the random perturbation model: starts, climbs, empty clusters."""

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

_ITEMS, _DRAWS = 500, 200  # on which starts are tried
_FIRST_STEPS = 50
_ROUGHLY = 1e-3  # change of the memberships at which a start is left
_SAME = 1e-6  # change of the memberships at which the last climb ends
_SURE = 0.7  # membership of an item in the cluster where a start has it
_LOOK_AHEAD = 2  # clusters left out although each lowers the log-likelihood


class Search(NamedTuple):
    """Where a search ended."""

    state: State
    memberships: Floats  # (n, K), held out, clusters named by first item
    trace: list[float]
    converged: bool
    objectives: list[float]  # of the starts


def search(
    draws: ModelDraws, n_clusters: int, *, fewer: bool, n_starts: int, most_steps: int, rng: np.random.Generator
) -> Search:
    """Climb from several draws, on a sample of the items and of the draws if there are many; then from the best.

    With `fewer`, clusters are left out as long as that raises the log-likelihood; else those that have no items.
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
    """The best state that starts from draws lead to, without empty clusters; and the objectives of all."""
    tried = [_from_draw(draws, row, n_clusters) for row in random_rows(draws, n_starts, rng)]
    state = max(tried, key=lambda state: state.objective)
    occupied = np.unique(state.labels)
    if occupied.size < state.memberships.shape[1]:
        state = _short_climb(draws, state, occupied)
    return _fewer(draws, state) if fewer else state, [state.objective for state in tried]


def random_rows(draws: ModelDraws, number: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """So many draws in random order, or all if there are no more; those that count for more are likelier to be first.

    The order is that of exponential variables whose rates are the counts.
    """
    if np.ptp(draws.counts) == 0:
        return rng.permutation(draws.counts.size)[:number]
    return np.argsort(np.log(rng.exponential(size=draws.counts.size)) - np.log(draws.counts))[:number]


def sample_of_items(draws: ModelDraws, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Some items, or all if there are few; those of small clusters in draws `rows` are more likely to be among them."""
    if draws.n_items <= _ITEMS:
        return np.arange(draws.n_items)
    rarity = draws.rarity(rows)
    return np.sort(rng.choice(draws.n_items, _ITEMS, replace=False, p=rarity / rarity.sum()))


def kept(state: State, clusters: npt.NDArray[np.intp]) -> Floats:
    """Memberships in some of the clusters; items of the others are anywhere."""
    if clusters.size == state.memberships.shape[1]:
        return state.memberships
    left = state.memberships[:, clusters] + 1e-9
    return left / left.sum(axis=1, keepdims=True)


def _from_draw(draws: ModelDraws, row: int, n_clusters: int) -> State:
    """Climb from one draw, by the best matchings and then by all."""
    memberships = _memberships(draws.labels.values[row].astype(np.intp), n_clusters)
    state, _, _ = climb(draws, memberships, None, _FIRST_STEPS, _ROUGHLY)
    return _short_climb(draws, state, np.arange(n_clusters))


def _memberships(labels: npt.NDArray[np.intp], n_clusters: int) -> Floats:
    """Soft memberships of a label vector; the items of its smallest clusters beyond so many are anywhere."""
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
    """Leave out the smallest cluster again and again, and keep what has the largest log-likelihood."""
    best, worse = state, 0
    while state.memberships.shape[1] > 1 and worse < _LOOK_AHEAD:
        largest = np.sort(np.argsort(-state.parameters.shares, kind="stable")[:-1])
        state = _short_climb(draws, state, largest)
        best, worse = (state, 0) if state.log_likelihood > best.log_likelihood else (best, worse + 1)
    return best
