"""Families of posteriors on which no default of the search was chosen, 50 to 400 items in three sizes."""

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import average, fcluster
from scipy.cluster.vq import kmeans2
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

Draws = np.ndarray  # (n_draws, n_items)


def _cells(rng, n):
    """Voronoi cells of centres that wander in the plane, where some vanish."""
    points, centres = rng.random((n, 2)), rng.random((int(rng.integers(6, 14)), 2))
    draws = []
    for _ in range(60):
        here = centres[rng.random(len(centres)) < 0.8]
        here = np.concatenate([here, centres[:1]]) + rng.normal(0, 0.06, (len(here) + 1, 2))
        draws.append(((points[:, np.newaxis] - here) ** 2).sum(axis=2).argmin(axis=1))
    return np.array(draws)


def _components(rng, n):
    """Connected components of a geometric graph, of which each draw keeps most of the edges."""
    points = rng.normal(0, 1, (n, 2)) + 4 * rng.random((8, 2))[rng.integers(8, size=n)]
    near = squareform(pdist(points)) < rng.uniform(0.9, 1.3) * np.sqrt(8 / n)
    draws = []
    for _ in range(60):
        kept = np.triu(near & (rng.random((n, n)) < rng.uniform(0.4, 0.7)))
        draws.append(connected_components(kept, directed=False)[1])
    return np.array(draws)


def _bootstrap(rng, n):
    """k-means with three to twelve clusters on bootstrap samples, extended to all items."""
    points = rng.normal(0, 1, (n, 3)) + rng.normal(0, 1.8, (6, 3))[rng.integers(6, size=n)]
    draws = []
    for _ in range(50):
        sample = points[rng.integers(n, size=n)]
        centres, _ = kmeans2(sample, int(rng.integers(3, 13)), minit="++", seed=rng)
        draws.append(((points[:, np.newaxis] - centres) ** 2).sum(axis=2).argmin(axis=1))
    return np.array(draws)


def _dendrogram(rng, n):
    """Cuts, at heights of their own, of the average-linkage trees of noisy distances."""
    points = rng.normal(0, 1, (n, 2)) + rng.normal(0, 2, (5, 2))[rng.integers(5, size=n)]
    distances = pdist(points)
    draws = []
    for _ in range(40):
        tree = average(distances * np.exp(rng.normal(0, 0.3, distances.size)))
        draws.append(fcluster(tree, int(rng.integers(3, 15)), "maxclust"))
    return np.array(draws)


def _admixture(rng, n):
    """Items belong to several of a few clusters, in shares of their own."""
    shares = rng.dirichlet(np.full(int(rng.integers(4, 9)), 0.25), n)
    below = rng.random((80, n, 1)) >= shares.cumsum(axis=1)
    return np.minimum(below.sum(axis=2), shares.shape[1] - 1)


def _walk(rng, n):
    """A chain of splits of clusters, unions of clusters and moves of items, which forgets where it began."""
    draw = rng.integers(8, size=n)
    draws = []
    for step in range(960):
        one, other = draw[rng.integers(n, size=2)]
        if one == other:
            draw = np.where((draw == one) & (rng.random(n) < 0.5), draw.max() + 1, draw)
        elif rng.random() < 0.6:
            draw = np.where(draw == one, other, draw)
        draw[rng.integers(n, size=n // 20)] = draw[rng.integers(n, size=n // 20)]
        draw = np.unique(draw, return_inverse=True)[1]
        if step % 16 == 15:
            draws.append(draw.copy())
    return np.array(draws)


def _finite(rng, n):
    """The allocations of a finite normal mixture in the plane with more components than clusters, by Gibbs sampling."""
    n_components = 8
    points = rng.normal(0, 1, (n, 2)) + rng.normal(0, 2.5, (5, 2))[rng.integers(5, size=n)]
    draw, draws = rng.integers(n_components, size=n), []
    for sweep in range(180):
        sizes = np.bincount(draw, minlength=n_components)
        sums = np.array([np.bincount(draw, x, n_components) for x in points.T]).T
        means = (sums + rng.normal(size=sums.shape) * np.sqrt(sizes + 0.1)[:, np.newaxis]) / (sizes + 0.1)[
            :, np.newaxis
        ]
        shares = rng.dirichlet(sizes + 0.3)
        score = np.log(shares + 1e-300) - 0.5 * ((points[:, np.newaxis] - means) ** 2).sum(axis=2)
        draw = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
        if sweep >= 60 and sweep % 2:
            draws.append(draw.copy())
    return np.array(draws)


def _crossed(rng, n):
    """Three clusterings of the same items: each draw is one of them, or the meet of two, with noise."""
    views = [rng.integers(int(rng.integers(3, 7)), size=n) for _ in range(3)]
    draws = []
    for _ in range(60):
        one, other = rng.choice(3, 2, replace=False)
        draw = views[one] if rng.random() < 0.6 else views[one] * 10 + views[other]
        noise = rng.random(n) < 0.15
        draws.append(np.where(noise, rng.permutation(draw), draw))
    return np.array(draws)


def _halves(rng, n):
    """Half of the items in a few clear clusters, the other half in small clusters that form anew in each draw."""
    clear, draws = rng.integers(4, size=n), []
    is_clear = np.arange(n) < n // 2
    for _ in range(60):
        small = 10 + rng.integers(int(rng.integers(5, max(6, n // 4))), size=n)
        joins = rng.random(n) < 0.25
        draws.append(np.where(is_clear | joins, np.where(rng.random(n) < 0.05, small, clear), small))
    return np.array(draws)


def _ladder(rng, n):
    """Items on a line in segments whose ends are drawn anew, with a number of segments of its own in each draw."""
    at, draws = np.sort(rng.random(n)), []
    favourites = rng.random(12)
    for _ in range(60):
        some = favourites[rng.random(12) < rng.uniform(0.2, 0.9)]
        ends = np.sort(np.concatenate([some + rng.normal(0, 0.02, some.size), rng.random(2)]))
        draws.append(np.searchsorted(ends, at))
    return np.array(draws)


FAMILIES: dict[str, Callable[[np.random.Generator, int], Draws]] = {
    "cells": _cells,
    "components": _components,
    "bootstrap": _bootstrap,
    "dendrogram": _dendrogram,
    "admixture": _admixture,
    "walk": _walk,
    "finite": _finite,
    "crossed": _crossed,
    "halves": _halves,
    "ladder": _ladder,
}

SIZES = {"small": (50, 120), "middle": (120, 250), "large": (250, 400)}


def posterior(family: str, size: str, seed: int = 0) -> Draws:
    """Draws of a family; the number of items is random within its size."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family), list(SIZES).index(size)])
    return FAMILIES[family](rng, int(rng.integers(*SIZES[size])))
