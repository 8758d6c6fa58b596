"""Arrays with their axes in another order: a warning where the values tell, and none of ordinary posteriors."""

import warnings

import numpy as np
import pytest

import posterior_consensus as pc
from tests.catalogue.posteriors import DEGENERATE, noisy_draws

N_CHAINS, N_DRAWS, N_ITEMS = 3, 150, 60
LABELS = noisy_draws(np.random.default_rng(1), N_CHAINS * N_DRAWS, N_ITEMS, 4, 0.1)


def renamed(labels, rng):
    """The same partitions, the clusters of each draw named anew."""
    return np.take_along_axis(rng.permuted(np.tile(np.arange(labels.max() + 1), (len(labels), 1)), axis=1), labels, 1)


@pytest.fixture(scope="module")
def fixed():
    """Draws whose labels do not switch, as of items near fixed centres."""
    rng = np.random.default_rng(2)
    truth = np.arange(N_ITEMS) % 4
    return np.where(rng.random((N_CHAINS * N_DRAWS, N_ITEMS)) < 0.2, rng.integers(4, size=N_ITEMS), truth)


def test_items_before_draws(fixed):
    for transposed in (fixed.T, fixed.T.tolist(), fixed.T.astype(str)):
        with pytest.warns(UserWarning, match=r"`data` .*\(60, 450\) is taken as 60 draws of 450 items.*take its \.T"):
            pc.as_partition_draws(transposed)
    by_chain = fixed.reshape(N_CHAINS, N_DRAWS, N_ITEMS)
    with pytest.warns(UserWarning, match=r"\(3, 60, 150\) is taken as 180 draws of 150 items.*swap the last two axes"):
        pc.as_partition_draws(by_chain.swapaxes(1, 2))


@pytest.mark.parametrize("order", [(2, 1, 0), (2, 0, 1), (1, 2, 0), (1, 0, 2)])
def test_chains_that_are_not_first(order):
    shape = tuple(np.array([N_CHAINS, N_DRAWS, N_ITEMS])[list(order)].tolist())
    by_chain = LABELS.reshape(N_CHAINS, N_DRAWS, N_ITEMS)
    with pytest.warns(UserWarning, match=rf"{shape[0]} chains of {shape[1]} draws of {shape[2]} items") as caught:
        pc.as_partition_draws(by_chain.transpose(order))
    assert len(caught) == 1


@pytest.mark.parametrize("order", [(1, 2, 0), (1, 0, 2)], ids=["items, components, draws", "items, draws, components"])
def test_probabilities_of_items_before_draws(order, fixed):
    p = np.where(np.arange(4) == fixed[..., np.newaxis], 0.7, 0.1)
    with pytest.warns(UserWarning, match="taken as 60 draws of 450 items.*put the draws first"):
        pc.as_allocation_probabilities(p.transpose(order))


def test_ordinary_posteriors_do_not_warn(rng):
    with warnings.catch_warnings(action="error"):
        for n_draws, n_items in ((400, 50), (60, 300), (20, 20)):
            for noise in (0.0, 0.1, 0.5):
                labels = noisy_draws(rng, n_draws, n_items, 4, noise)
                large = np.where(np.arange(n_items) % 10 == 0, labels, 0)  # one cluster of nine in ten items
                for draws in (labels, renamed(labels, rng), large, renamed(large, rng), np.zeros_like(labels)):
                    pc.as_partition_draws(draws)
                    pc.as_partition_draws(draws.reshape(2, -1, n_items))
        for labels in DEGENERATE.values():
            pc.as_partition_draws(labels)
