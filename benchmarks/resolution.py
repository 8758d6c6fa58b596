"""Planted numbers of clusters: how often they are on the shortlist of layers of runs.

Runs are those of k-means with one start each, for 2 to 12 clusters. Points lie in three groups, each of two or three
smaller ones: 3 and the number of the smaller ones, 6 to 9, are planted. In the second table, points have no groups. The
third has trees over eight layers of 20 runs, each of which joins the nearest of 64 cells of a plane, after these moved,
into the clusters of a dendrogram; the search starts from the partition of the first run of each layer.
"""

import time

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import posterior_consensus as pc

NUMBERS = range(2, 13)
FAR = 12.0  # of the three groups from the centre, in standard deviations of the smallest ones
N_CLUSTERS = (4, 6, 9, 12, 16, 20, 25, 30)  # of the layers of a tree
APART = (2.0, 2.5, 3.0, 4.0)  # of smaller groups from the centre of theirs


def tables(smallest):
    n_sets = 2 if smallest else 50
    numbers = (20,) if smallest else (5, 10, 20)
    yield "planted", (_of_planted(apart, n, n_sets) for apart in APART[-1:] * smallest or APART for n in numbers)
    yield "no groups", (_of_none(n, n_sets) for n in numbers)
    yield "trees", (_of_tree(n) for n in ((1_000,) if smallest else (1_000, 10_000, 100_000)))


def _around(centre, number, radius, rng):
    angles = np.arange(number) * 2 * np.pi / number + rng.random()
    return centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _compared(points, n_runs):
    """Layers of runs of k-means, by the number of clusters."""
    runs = {
        k: pc.as_runs([KMeans(k, n_init=1, random_state=seed).fit_predict(points) for seed in range(n_runs)], axis=0)
        for k in NUMBERS
    }
    return pc.compare_layers(runs, consensus=False, random_seed=1, progressbar=False)


def _of_planted(apart, n_runs, n_sets):
    found, lengths = [], []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        large = _around(np.zeros(2), 3, FAR, rng)
        small = np.concatenate([_around(one, rng.integers(2, 4), apart, rng) for one in large])
        points, _ = make_blobs(400, centers=small, random_state=seed)
        compared = _compared(points, n_runs)
        listed = compared.shortlist
        found.append([3 in listed, len(small) in listed, any(abs(len(small) - k) <= 1 for k in listed)])
        lengths.append(len(listed))
    coarse, fine, near = np.mean(found, axis=0)
    return {
        "apart": apart,
        "runs": n_runs,
        "sets": n_sets,
        "3 listed": f"{coarse:.0%}",
        "6 to 9 listed": f"{fine:.0%}",
        "or a neighbour": f"{near:.0%}",
        "length of the list": np.mean(lengths),
    }


def _of_none(n_runs, n_sets):
    lengths = []
    for seed in range(n_sets):
        points = np.random.default_rng(seed).normal(size=(400, 2))
        lengths.append(len(_compared(points, n_runs).shortlist))
    return {"runs": n_runs, "sets": n_sets, "length of the list": np.mean(lengths), "longest": max(lengths)}


def _of_tree(n_items):
    """What a tree costs beyond partitions that need not be nested, and its CPU seconds without their search."""
    rng = np.random.default_rng(0)
    points, places = rng.normal(size=(n_items, 2)), rng.normal(size=(64, 2))
    labels = {k: np.array([_joined_cells(points, places, k, rng) for _ in range(20)]) for k in N_CLUSTERS}
    layers = pc.as_layers({k: pc.as_runs(own, axis=0) for k, own in labels.items()})
    began = time.process_time()
    first = {k: own[0] for k, own in labels.items()}
    tree = pc.consensus_tree(layers, partitions=first, random_seed=1, progressbar=False)
    row = {"items": n_items, "first runs": float(tree.losses["separate"].sum()), "tree": tree.expected_loss}
    return row | {"nodes": tree.nodes.sizes["node"], "CPU seconds": time.process_time() - began}


def _joined_cells(points, places, n_clusters, rng):
    moved = places + rng.normal(size=places.shape) * 0.05
    nearest = ((points[:, np.newaxis] - moved) ** 2).sum(axis=-1).argmin(axis=1)
    return fcluster(linkage(moved, "average"), n_clusters, "maxclust")[nearest]
