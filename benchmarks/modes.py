"""How often `particles` finds as many modes as simulated posteriors have, and `summarize` light ones among many draws.

100 posteriors a family of the first table, 10 a row of the second, 5 a row of the third, which compares
`partition_density`. The random perturbation model has 100 items in 4 clusters and 400 draws, unless the row says
otherwise; the second table has 60 items and 4,000 draws, the third 60 items. The Gibbs sampler is that of
benchmarks._posteriors, on 60 observations or, with two structures, 40."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import posterior_consensus as pc
from benchmarks._data import kept
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._runner import used
from posterior_consensus.summary.steps import look_for_groups

N_POSTERIORS = 100
N_ITEMS, N_CLUSTERS, N_DRAWS = 100, 4, 400
BURN_IN = 100
LOSSES_SHOWN = ("vi", "binder")
N_LIGHT, N_LIGHT_ITEMS, N_MANY = 10, 60, 4_000
SHARES = (0.007, 0.014, 0.02, 0.03, 0.1, 0.4)
BANDWIDTHS = (1.0, 0.5, 0.25)  # in units of the default
LIGHT = {  # noise, items that move; None for half of a cluster
    "noise 0.1, 6 items move": (0.1, 6),
    "noise 0.15, 12 items move": (0.15, 12),
    "noise 0.2, 30 items move": (0.2, 30),
    "noise 0.1, a cluster splits in two": (0.1, None),
}


class Family(NamedTuple):
    """Posteriors of the same kind: a name, the modes they have, and how to draw the labels of one."""

    name: str
    n_modes: int
    draw: Callable[[np.random.Generator], np.ndarray]


def tables(smallest):
    shown, n_posteriors = (families()[7::12], 1) if smallest else (families(), N_POSTERIORS)
    yield "", (_row(family, n_posteriors) for family in shown)
    rows = [(*kind, share) for kind in LIGHT.items() for share in SHARES]
    yield "", (_light(*row, 1 if smallest else N_LIGHT) for row in (rows[:1] if smallest else rows))
    yield "", (_of_density(*kind, 1 if smallest else 5) for kind in list(LIGHT.items())[: 1 if smallest else None])


def _row(family, n_posteriors):
    posteriors = [family.draw(np.random.default_rng([k, 1])) for k in range(n_posteriors)]
    right = {
        f"right under {loss}": sum(_n_modes(labels, loss) == family.n_modes for labels in posteriors)
        for loss in LOSSES_SHOWN
    }
    return {"posterior": family.name, "modes": family.n_modes, **right}


def _light(name, kind, share, n_posteriors):
    """How often a summary finds a second mode of this share of the draws, and how far off the share that it states is.

    Labels of noise are new in each draw.
    """
    found, errors, seconds = 0, [], []
    for k in range(n_posteriors):
        rng = np.random.default_rng([k, round(1e4 * share)])
        labels, is_second = _two_modes(*kind, rng.random(N_MANY) < share, rng)
        draws = pc.as_partition_draws(labels.reshape(4, -1, N_LIGHT_ITEMS))
        best = pc.consensus_partition(draws, random_seed=k, progressbar=False)
        options = {"seconds": None, "random_seed": k, "progressbar": False}
        call = used(look_for_groups, draws, best, "vi", **options)
        weights = call.result.weights.values
        seconds.append(call.cpu)
        if weights.size == 2:
            found += 1
            errors.append(abs(weights[1] - min(is_second.mean(), 1 - is_second.mean())))
    return {
        "posterior": name,
        "share": f"{share:.1%}",
        f"found, of {N_LIGHT}": found,
        "largest error of the share": f"{max(errors):.2%}" if errors else "",
        "CPU seconds": f"{np.median(seconds):.2f}",
    }


def _of_density(name, kind, n_posteriors):
    """How many of these posteriors, with modes of weights 0.75 and 0.25, have two modes by each function."""
    found = np.zeros(1 + len(BANDWIDTHS), int)
    for k in range(n_posteriors):
        rng = np.random.default_rng(k)
        labels = _two_modes(*kind, rng.random(N_DRAWS) < 0.25, rng)[0].reshape(4, -1, N_LIGHT_ITEMS)
        usual = pc.partition_density(labels, random_seed=k, progressbar=False).bandwidth
        bandwidths = [share * usual for share in BANDWIDTHS]
        options = {"random_seed": k, "progressbar": False}
        densities = [pc.partition_density(labels, bandwidth=one, **options) for one in bandwidths]
        found += np.array([pc.particles(labels, **options).n_particles, *[len(one.modes) for one in densities]]) == 2
    columns = ["particles", *(f"density, {share:g} of the bandwidth" for share in BANDWIDTHS)]
    return {"posterior": name, "sets": n_posteriors, **dict(zip(columns, found.tolist(), strict=True))}


def _two_modes(noise, moved, is_second, rng):
    first = rng.integers(N_CLUSTERS, size=N_LIGHT_ITEMS)
    second = first.copy()
    if moved is None:
        members = np.flatnonzero(first == 0)
        second[members[: members.size // 2]] = N_CLUSTERS
    else:
        items = rng.permutation(N_LIGHT_ITEMS)[:moved]
        second[items] = (second[items] + rng.integers(1, N_CLUSTERS, size=moved)) % N_CLUSTERS
    labels = np.where(is_second[:, np.newaxis], second, first)
    stray = rng.random(labels.shape) < noise
    return np.where(stray, rng.integers(N_CLUSTERS, size=labels.shape), labels), is_second


def families() -> list[Family]:
    """Return all families, in the order of the table."""
    return [
        *(Family(f"random perturbation, noise {p}", 1, _perturbed([1.0], p)) for p in (0.03, 0.1, 0.2, 0.45, 0.7)),
        Family("noise from 0.02 to 0.6, another for each draw", 1, _perturbed([1.0], (0.02, 0.6))),
        Family("noise 0.15, 20 items", 1, _perturbed([1.0], 0.15, n_items=20)),
        Family("noise 0.1, 25 draws", 1, _perturbed([1.0], 0.1, n_draws=25)),
        Family("noise 0.3, 30 draws of 400 items", 1, _perturbed([1.0], 0.3, n_items=400, n_draws=30)),
        Family("noise 0.1, 5,000 draws of 40 items", 1, _perturbed([1.0], 0.1, n_items=40, n_draws=5_000)),
        Family("noise 0.2, an item keeps its cluster for 10 draws on average", 1, _perturbed([1.0], 0.2, stay=0.9)),
        Family("Gibbs sampler, clusters apart", 1, _gibbs(spread=5.0)),
        Family("Gibbs sampler, clusters overlap", 1, _gibbs(spread=2.0)),
        Family("Gibbs sampler, clusters overlap on a line", 1, _gibbs(spread=2.0, n_coordinates=1)),
        Family("noise 0.1, 5 items move, weights 0.6 0.4", 2, _perturbed([0.6, 0.4], 0.1, moved=5)),
        Family("noise 0.15, 20 items move, weights 0.9 0.1", 2, _perturbed([0.9, 0.1], 0.15, moved=20)),
        Family("noise 0.2, 50 items move, weights 0.7 0.3", 2, _perturbed([0.7, 0.3], 0.2, moved=50)),
        Family("noise 0.1, a cluster splits in two, weights 0.7 0.3", 2, _perturbed([0.7, 0.3], 0.1, split=True)),
        Family("noise 0.1, 60 draws, 20 items move, 0.7 0.3", 2, _perturbed([0.7, 0.3], 0.1, moved=20, n_draws=60)),
        Family("Gibbs sampler, two structures in long stretches, 0.5 0.5", 2, _two_structures(0.5, 0.97)),
        Family("Gibbs sampler, two structures, weights 0.9 0.1", 2, _two_structures(0.1, 0.0)),
        Family("noise 0.1, 20 items move, weights 0.5 0.3 0.2", 3, _perturbed([0.5, 0.3, 0.2], 0.1, moved=20)),
        Family("noise 0.15, 40 items move, weights 0.8 0.1 0.1", 3, _perturbed([0.8, 0.1, 0.1], 0.15, moved=40)),
        Family("noise 0.45, 50 items move, weights 0.6 0.4", 2, _perturbed([0.6, 0.4], 0.45, moved=50)),
        Family("noise 0.1, 60 draws, 20 items move, 0.9 0.1", 2, _perturbed([0.9, 0.1], 0.1, moved=20, n_draws=60)),
    ]


def _n_modes(labels, loss):
    return pc.particles(labels, loss=loss, random_seed=0, progressbar=False).n_particles


def _perturbed(weights, noise, *, moved=0, split=False, n_items=N_ITEMS, n_draws=N_DRAWS, stay=0.0):
    """Draws around modes that differ by items that move, or by one cluster that is split."""

    def draw(rng):
        truth = rng.integers(N_CLUSTERS, size=n_items)
        truths = [truth, *(truth.copy() for _ in weights[1:])]
        for other in truths[1:]:
            if split:
                first = np.flatnonzero(truth == 0)
                other[first[: first.size // 2]] = N_CLUSTERS
            else:
                items = rng.permutation(n_items)[:moved]
                other[items] = (other[items] + rng.integers(1, N_CLUSTERS, size=moved)) % N_CLUSTERS
        p = rng.uniform(*noise, n_draws) if isinstance(noise, tuple) else noise
        given = {"n_draws": n_draws, "noise": p, "modes": weights, "truth": truths, "random_seed": rng}
        return kept(pc.simulate.random_perturbation(n_items, N_CLUSTERS + split, **given).aligned_labels(), stay, rng)

    return draw


def _gibbs(spread, n_coordinates=2, n_items=60):
    def draw(rng):
        means = rng.normal(0, spread, (N_CLUSTERS, n_coordinates))
        observations = means[rng.integers(N_CLUSTERS, size=n_items)] + rng.normal(size=(n_items, n_coordinates))
        return dirichlet_process_draws(observations, spread, 1.0, BURN_IN + N_DRAWS, rng)[BURN_IN:]

    return draw


def _two_structures(weight, stay, n_items=40):
    """Partitions of the observations' first coordinate, with probability `weight` of their second."""

    def draw(rng):
        observations = 5.0 * rng.integers(-1, 2, size=(n_items, 2)) + rng.normal(size=(n_items, 2))
        draws = [
            dirichlet_process_draws(column, 4.0, 1.0, BURN_IN + 2 * N_DRAWS, rng)
            for column in (observations[:, :1], observations[:, 1:])
        ]
        structure = (rng.random(N_DRAWS) < weight).astype(int)
        for t in range(1, N_DRAWS):
            if rng.random() < stay:
                structure[t] = structure[t - 1]
        return np.stack(draws)[structure, BURN_IN + 2 * np.arange(N_DRAWS)]

    return draw
