import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds.bound import Deadline
from posterior_consensus.bounds.matching import matching_bound
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws

METRICS = [name for name, factory in pc.LOSSES.items() if factory().metric]


def bound(draws, loss, seconds=10.0):
    return matching_bound(draws, pc.LOSSES[loss](), draws.labels[0].astype(np.int32), budget=Deadline(seconds)).value


@pytest.mark.parametrize("loss", METRICS)
def test_no_partition_is_below_the_bound(loss):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = noisy_draws(rng, int(rng.integers(1, 15)), 5, 3, rng.uniform(0.1, 1.0))
        weights = rng.exponential(size=len(labels)) if seed % 2 else None
        draws = pc.as_partition_draws(labels, weights=weights)
        least = reference.least_expected(labels, reference.LOSSES[loss], weights)
        assert bound(draws, loss) <= least + 1e-12
        assert bound(draws, loss, seconds=1e-12) <= least + 1e-12  # two draws at a time, and no time for all of them


@pytest.mark.parametrize("loss", METRICS)
def test_of_two_draws_either_is_the_best_and_the_bound_says_so(loss):
    draws = pc.as_partition_draws([[0, 0, 1, 1, 2], [0, 1, 1, 1, 0]])
    least = float(pc.expected_loss(draws, draws.labels[0], loss=loss)["expected_loss"])
    assert bound(draws, loss) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("loss", METRICS)
def test_degenerate_draws(loss):
    for labels in DEGENERATE.values():
        least = reference.least_expected(labels, reference.LOSSES[loss])
        assert -1e-15 <= bound(pc.as_partition_draws(labels), loss) <= least + 1e-12


def test_certificates_of_metrics_are_bounds():
    draws = noisy_draws(np.random.default_rng(1), 30, 7, 3, 0.4)
    for loss in METRICS:
        best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
        proof = pc.certify(draws, best, loss=loss, seconds=1, progressbar=False)
        assert 0 < proof.lower_bound <= best.expected_loss + 1e-12 and proof.loss.name == loss
