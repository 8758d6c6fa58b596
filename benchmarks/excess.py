"""How well two halves of the draws tell what more draws would change: the excess against ten thousand fresh draws.

Noisy posteriors of 40 items in five clusters, each item moved with a probability of its own, mostly to one other
cluster. In slow chains an item keeps its label with a probability of 0.9 from draw to draw.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import kept
from posterior_consensus.diagnostics.comparison import excess_loss
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.losses.lookup import as_loss

N_ITEMS, N_CLUSTERS, N_FRESH = 40, 5, 10_000
CASES = [(loss, stay, n) for loss in ("vi", "binder") for stay, n in ((0.0, 100), (0.0, 200), (0.0, 1000), (0.9, 2000))]


def tables(smallest):
    yield "", (_row(*case, 3 if smallest else 100) for case in (CASES[:1] if smallest else CASES))


def _row(loss, stay, n_draws, repeats):
    excess, value, limit = measured(loss, stay, n_draws, repeats)
    return {
        "loss": loss,
        "draws": f"slow, stay with {stay:g}" if stay else "independent draws",
        "number": n_draws,
        "excess, mean": excess.mean(),
        "X / 4, mean": value.mean(),
        "excess at most X": f"{np.mean(excess <= limit + 1e-12):.0%}",
        "above X > 0": f"{np.sum((limit > 0) & (excess > limit + 1e-12))} of {np.sum(limit > 0)}",
    }


def measured(loss: str, stay: float, n_draws: int, repeats: int) -> np.ndarray:
    """The excess, its estimate and its limit, of each of several posteriors, (3, repeats)."""
    found = [_excess(np.random.default_rng(seed), loss, stay, n_draws) for seed in range(repeats)]
    return np.array(found).T


def _excess(rng, loss, stay, n_draws):
    home, other = rng.integers(0, N_CLUSTERS, (2, N_ITEMS))
    moves = rng.choice([0.5, 0.8, 1.0]) * rng.random(N_ITEMS)
    draws = pc.as_partition_draws(chain_of(rng, home, other, moves, n_draws, stay))
    asked = {"loss": loss, "random_seed": 1, "progressbar": False}
    best = pc.consensus_partition(draws, **asked)
    fresh = pc.as_partition_draws(chain_of(rng, home, other, moves, N_FRESH, 0.0))
    optimum = pc.consensus_partition(fresh, starts=[best], n_starts=2, **asked)
    losses = mean_loss(fresh, np.stack([best.labels.values, optimum.labels.values]), as_loss(loss))
    halves = excess_loss(draws, best, loss, random_seed=1)
    return losses[0] - losses.min(), halves.value, halves.limit


def chain_of(rng, home, other, moves, n_draws, stay):
    shape = n_draws, N_ITEMS
    moved = np.where(rng.random(shape) < 0.7, other, rng.integers(0, N_CLUSTERS + 1, shape))
    return kept(np.where(rng.random(shape) < moves, moved, home), stay, rng)
