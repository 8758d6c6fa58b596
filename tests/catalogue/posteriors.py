"""Draws to test with."""

import numpy as np
import xarray as xr

import posterior_consensus as pc


def around(rng, truth, n_draws, noise, n_labels=None):
    """Draws around a partition: an item keeps its cluster, or with the probability `noise` gets any label."""
    shape = n_draws, len(truth)
    return np.where(rng.random(shape) < noise, rng.integers(n_labels or max(truth) + 1, size=shape), truth)


def noisy_draws(rng, n_draws, n_items, n_clusters, noise):
    """Draws around one random partition; the names of the clusters switch."""
    labels = around(rng, rng.integers(n_clusters, size=n_items), n_draws, noise, n_clusters)
    return np.array([rng.permutation(n_clusters)[row] for row in labels])


def random_draws(rng, n_draws, n_items, n_clusters):
    """Draws that know nothing of each other."""
    return rng.integers(n_clusters, size=(n_draws, n_items))


def sticky_chains(rng, n_chains, length, n_items, stay, n_clusters=3):
    """Chains whose partition stays with this probability and else is a new one: the correlation at lag s is stay**s."""
    fresh = rng.integers(n_clusters, size=(n_chains, length, n_items))
    moves = rng.random((n_chains, length)) >= stay
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(length), 0), axis=1)
    return np.take_along_axis(fresh, last[..., np.newaxis], axis=1)


def unequal_chains(rng, lengths, n_items):
    """PartitionDraws of chains of these lengths."""
    z = rng.integers(3, size=(sum(lengths), n_items))
    chain = np.repeat(np.arange(len(lengths)), lengths)
    return pc.as_partition_draws(xr.DataArray(z, dims=("sample", "obs"), coords={"chain": ("sample", chain)}))


def associations(labels):
    """Association vectors (N, pairs) of label vectors."""
    return np.array([(row[:, np.newaxis] == row)[np.triu_indices(row.size, 1)] for row in labels], float)


def two_modes(rng, modes, length, share=0.8, common=None):
    """A chain for each mode, whose draws are at it with this share and else at the common partition."""
    common = np.zeros(len(modes[0]), int) if common is None else np.array(common)
    at = rng.random((len(modes), length, 1)) < share
    return np.where(at, np.array(modes)[:, np.newaxis], common)


DEGENERATE = {
    "one cluster": np.zeros((6, 5), int),
    "singletons": np.tile(np.arange(5), (6, 1)),
    "one draw": np.array([[0, 1, 1, 2, 0]]),
    "one item": np.zeros((6, 1), int),
    "equal draws": np.tile([0, 0, 1, 1, 2], (6, 1)),
    "two items": np.array([[0, 0], [0, 1], [0, 0], [0, 0], [0, 1]]),
    "one cluster or singletons": np.array([[0, 0, 0, 0], [0, 1, 2, 3]] * 3),
}


def draws_of(n_chains, n_draws, n_items, n_labels=4, names=None):
    z = np.random.default_rng(0).integers(0, n_labels, (n_chains, n_draws, n_items))
    coords = {} if names is None else {"obs": names}
    return pc.as_partition_draws(xr.DataArray(z, dims=("chain", "draw", "obs"), coords=coords))


SIZES = {"small": (2, 9, 5), "one draw": (1, 1, 4), "one item": (1, 6, 1), "two items": (1, 6, 2), "large": (4, 9, 150)}


def linked_records(n_items=40, n_draws=60, seed=3):
    """Draws of many small clusters: pairs, triples and singletons whose records leave now and then."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_items), rng.choice([1, 2, 3], n_items, p=[0.5, 0.3, 0.2]))[:n_items]
    leaves = rng.random((n_draws, n_items)) < rng.beta(0.4, 1.0, n_items)
    return np.where(leaves, n_items + rng.integers(n_items, size=leaves.shape), truth), truth


def recovered(rng):
    """Labels, the probabilities they are drawn from, parameters and data, as a marginalized and recovered model has."""
    y = np.concatenate([rng.normal(-4, 1, 8), rng.normal(0, 1, 6), rng.normal(4, 1, 6)])
    mu = np.array([-4.0, 0.0, 4.0, 9.0]) + 0.1 * rng.normal(size=(2, 50, 4))
    log_p = -0.5 * (y[:, np.newaxis] - mu[..., np.newaxis, :]) ** 2
    p = np.exp(log_p) / np.exp(log_p).sum(-1, keepdims=True)
    z = (rng.random((2, 50, 20, 1)) > p.cumsum(-1)).sum(-1)
    posterior = xr.Dataset(
        {
            "mu": (("chain", "draw", "component"), mu),
            "z": (("chain", "draw", "obs"), z),
            "lp_z": (("chain", "draw", "obs", "component"), np.log(p)),
        },
        coords={"obs": [f"s{i}" for i in range(20)], "chain": [0, 1], "draw": np.arange(50)},
    )
    observed = xr.Dataset({"y": ("obs", y)}, coords={"obs": posterior["obs"]})
    return xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
