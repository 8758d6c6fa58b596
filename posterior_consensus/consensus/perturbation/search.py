"""From draws to the most probable state of the random perturbation model: starts, climbs, empty clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.perturbation.em import Draws, Floats, State, climb, expect, maximise

_ITEMS, _DRAWS = 500, 200  # on which starts are tried
_FIRST_STEPS = 50
_ROUGHLY = 1e-3  # change of the memberships at which a start is left
_SAME = 1e-6  # change of the memberships at which the last climb ends
_SURE = 0.7  # membership of an item in the cluster where a start has it
_LOOK_AHEAD = 2  # clusters left out although each lowers the evidence


class Search(NamedTuple):
    """Where a search ended."""

    state: State
    trace: list[float]
    converged: bool
    objectives: list[float]  # of the starts


def search(
    draws: Draws, n_clusters: int, *, fewer: bool, n_starts: int, most_steps: int, rng: np.random.Generator
) -> Search:
    """Climb from several draws, on a sample of the items and of the draws where there are many; then from the best.

    With `fewer`, clusters are left out as long as that raises the evidence; else those that have no items.
    """
    sample, items = _sample(draws, rng)
    tried = [_start(sample, row, n_clusters) for row in rng.permutation(len(sample.labels))[:n_starts]]
    state = _without_empty(sample, max(tried, key=lambda state: state.objective))
    if fewer:
        state = _fewer(sample, state)
    if sample is not draws:
        few = draws._replace(labels=np.ascontiguousarray(draws.labels[:, items]))
        noise = np.full(len(draws.labels), state.parameters.noise.mean())
        state = expect(draws, maximise(few, state.memberships, noise))
    state, trace, converged = climb(draws, state.memberships, state.parameters.noise, most_steps, _SAME)
    occupied = np.unique(state.labels)
    while occupied.size < state.memberships.shape[1]:
        state, trace, converged = climb(draws, _kept(state, occupied), state.parameters.noise, most_steps, _SAME)
        occupied = np.unique(state.labels)
    return Search(state, trace, converged, [state.objective for state in tried])


def start_memberships(labels: npt.NDArray[np.intp], n_clusters: int) -> Floats:
    """Soft memberships of a label vector; the items of its smallest clusters beyond so many are anywhere."""
    sizes = np.bincount(labels)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))[labels]
    kept = rank < n_clusters
    memberships = np.full((labels.size, n_clusters), 1 / n_clusters)
    memberships[kept] *= 1 - _SURE
    memberships[kept, rank[kept]] += _SURE
    return memberships


def _start(draws: Draws, row: int, n_clusters: int) -> State:
    """Climb from one draw, by the best matchings and then by all."""
    memberships = start_memberships(draws.labels[row].astype(np.intp), n_clusters)
    state, _, _ = climb(draws, memberships, None, _FIRST_STEPS, _ROUGHLY)
    return climb(draws, state.memberships, state.parameters.noise, _FIRST_STEPS, _ROUGHLY)[0]


def _sample(draws: Draws, rng: np.random.Generator) -> tuple[Draws, npt.NDArray[np.intp]]:
    """Some draws of some items, or all if there are few."""
    n_draws, n_items = draws.labels.shape
    if n_items <= _ITEMS and n_draws <= _DRAWS:
        return draws, np.arange(n_items)
    items = np.sort(rng.permutation(n_items)[:_ITEMS])
    rows = np.sort(rng.permutation(n_draws)[:_DRAWS])
    starts = np.concatenate([[0], np.cumsum(draws.n_clusters[rows])])
    labels = np.ascontiguousarray(draws.labels[np.ix_(rows, items)])
    return Draws(labels, starts, draws.n_clusters[rows], draws.counts[rows], draws.per_draw), items


def _without_empty(draws: Draws, state: State) -> State:
    occupied = np.unique(state.labels)
    if occupied.size == state.memberships.shape[1]:
        return state
    return climb(draws, _kept(state, occupied), state.parameters.noise, _FIRST_STEPS, _ROUGHLY)[0]


def _kept(state: State, clusters: npt.NDArray[np.intp]) -> Floats:
    """Memberships in some of the clusters; items of the others are anywhere."""
    left = state.memberships[:, clusters] + 1e-9
    return left / left.sum(axis=1, keepdims=True)


def _fewer(draws: Draws, state: State) -> State:
    """Leave out the smallest cluster again and again, and keep what has the most evidence."""
    best, worse = state, 0
    while state.memberships.shape[1] > 1 and worse < _LOOK_AHEAD:
        largest = np.sort(np.argsort(-state.parameters.shares, kind="stable")[:-1])
        state, _, _ = climb(draws, _kept(state, largest), state.parameters.noise, _FIRST_STEPS, _ROUGHLY)
        best, worse = (state, 0) if state.evidence > best.evidence else (best, worse + 1)
    return best
