import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds import vi as module
from posterior_consensus.bounds.vi import vi_bound
from posterior_consensus.expectation import mean_loss
from posterior_consensus.losses import vi
from posterior_consensus.partitions import enumerate_partitions
from tests import reference
from tests.ensembles import DEGENERATE, noisy_draws, random_draws


def optimum(draws):
    """Best of all partitions and its expected VI."""
    blocks = [(block, mean_loss(draws, block.astype(np.int32), vi())) for block in enumerate_partitions(draws.n_items)]
    block, losses = min(blocks, key=lambda pair: pair[1].min())
    return block[losses.argmin()].astype(np.int32), float(losses.min())


def bound_of(draws, incumbent=None, seconds=0.05):
    incumbent = np.zeros(draws.n_items, np.int32) if incumbent is None else incumbent
    return vi_bound(draws, incumbent, seconds=seconds, progressbar=False)


def ensemble(seed):
    """Some draws of up to eight items: noisy or without any structure, weighted or not, with equal items or not."""
    rng = np.random.default_rng(seed)
    n_draws, n_items = int(rng.integers(1, 12)), int(rng.integers(1, 9))
    n_clusters = int(rng.integers(1, 5))
    if seed % 2:
        labels = random_draws(rng, n_draws, n_items, n_clusters)
    else:
        labels = noisy_draws(rng, n_draws, n_items, n_clusters, 0.4)
    if seed % 3 == 0:
        labels = labels[:, rng.integers(n_items, size=n_items)]
    return pc.as_partition_draws(labels, weights=rng.exponential(size=n_draws) if seed % 5 == 0 else None)


@pytest.mark.parametrize("seed", range(200))
def test_no_partition_is_below_the_bound(seed):
    draws = ensemble(seed)
    best, least = optimum(draws)
    bound = bound_of(draws, best)
    assert 0 <= bound.value <= least + 1e-12
