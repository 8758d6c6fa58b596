from functools import partial

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check_all

find = partial(pc.consensus_partition, method="best_draw", progressbar=False)


@pytest.mark.parametrize("loss", pc.LOSSES)
def test_the_draw_of_least_expected_loss(loss):
    n_draws = 100 if loss == "vi" else 25  # more than one block
    draws = noisy_draws(np.random.default_rng(1), n_draws, 8, 3, 0.3)
    losses = [reference.expected(draw, draws, reference.LOSSES[loss]) for draw in draws]
    best = find(draws, loss=loss)
    assert best.expected_loss == pytest.approx(min(losses), abs=1e-12)
    np.testing.assert_array_equal(best.labels, reference.canonical(draws[np.argmin(np.round(losses, 11))]))


def test_the_first_of_equals():
    draws = [[0, 0, 1], [0, 1, 1], [5, 5, 2], [0, 1, 1]]
    best = find(draws, loss="binder")
    np.testing.assert_array_equal(best.labels, [0, 0, 1])
    assert best.info.n_candidates == 2


def test_numbers_of_clusters():
    draws = [[0, 0, 0, 1]] * 3 + [[0, 1, 2, 2]] * 2 + [[0, 0, 1, 2]]
    assert find(draws, n_clusters=3).n_clusters == 3
    assert find(draws, max_clusters=2).n_clusters == 2
    refused = [
        ({"max_clusters": 1}, ValueError, "at most 1 clusters", "2 to 3"),
        ({"n_clusters": 4}, ValueError, "with 4 clusters"),
    ]
    check_all(lambda options: find(draws, **options), refused)
