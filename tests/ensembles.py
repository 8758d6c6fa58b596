"""Draws to test with."""

import numpy as np
import xarray as xr
from hypothesis import strategies as st

import posterior_consensus as pc


def noisy_draws(rng, n_draws, n_items, n_clusters, noise):
    """Draws around one random partition: an item keeps its cluster or gets any; the names of the clusters switch."""
    truth = rng.integers(n_clusters, size=n_items)
    labels = np.where(rng.random((n_draws, n_items)) < noise, rng.integers(n_clusters, size=(n_draws, n_items)), truth)
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


@st.composite
def small_draws(draw, max_items=6, max_draws=6):
    """A few draws of a few items, ties and all."""
    n_items = draw(st.integers(1, max_items))
    row = st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items)
    return np.array(draw(st.lists(row, min_size=1, max_size=max_draws)))


def label_pairs(max_items=9):
    """Two label vectors of the same items."""
    return st.integers(1, max_items).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 2)
    )
