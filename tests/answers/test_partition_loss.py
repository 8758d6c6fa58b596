import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.kernels import contingency
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import GOOD, ROWS, check


@pytest.mark.parametrize("loss", pc.LOSSES)
def test_every_pair_of_draws(loss):
    for name, draws in DEGENERATE.items():
        expected = [[reference.LOSSES[loss](one, other) for other in draws] for one in draws]
        np.testing.assert_allclose(pc.partition_loss(draws, loss=loss), expected, atol=1e-12, err_msg=name)
    losses = pc.partition_loss(noisy_draws(np.random.default_rng(3), 120, 60, 7, 0.4), loss=loss).values
    np.testing.assert_array_equal(losses, losses.T)  # to the last digit
    assert not np.diag(losses).any()


@pytest.mark.parametrize("loss", [pc.vi(a=0.5), pc.binder(a=1.7)])
def test_row_is_the_estimate(loss):
    draws, others = noisy_draws(np.random.default_rng(2), 13, 9, 4, 0.4), [[0] * 9, list(range(9))]
    expected = [[pc.partition_loss(one, other, loss=loss) for other in draws] for one in draws]
    assert not np.allclose(expected, np.transpose(expected))
    np.testing.assert_allclose(pc.partition_loss(draws, loss=loss), expected, atol=1e-12)
    expected = [[pc.partition_loss(one, other, loss=loss) for other in others] for one in draws]
    np.testing.assert_allclose(pc.partition_loss(draws, others, loss=loss), expected, atol=1e-12)


def test_tables_by_bits_and_by_items_give_the_same(monkeypatch):
    draws = noisy_draws(np.random.default_rng(4), 70, 130, 6, 0.4)
    by_items = pc.partition_loss(draws)
    monkeypatch.setattr(contingency, "_MANY_ITEMS", 0)
    xr.testing.assert_identical(pc.partition_loss(draws), by_items)


def test_names_of_draws_and_their_loss():
    losses = pc.partition_loss(ROWS.assign_coords(chain=["a"]), GOOD[:2], loss="binder")
    assert losses.dims == ("sample", "sample_bis") and losses.shape == (4, 2)
    np.testing.assert_array_equal(losses["chain"], ["a"] * 4)
    np.testing.assert_array_equal(losses["draw_bis"], [0, 1])
    assert losses.attrs == {"loss": "binder", "unit": ""}


def test_others_are_taken_in_the_order_of_the_items():
    draws = ROWS.assign_coords(obs=list("abcd"))
    shuffled = draws.isel(obs=[2, 0, 3, 1])
    np.testing.assert_allclose(pc.partition_loss(draws, shuffled), pc.partition_loss(draws), atol=1e-14)


def test_what_is_refused(monkeypatch):
    draws, other = ROWS.assign_coords(obs=list("abcd")), ROWS.assign_coords(obs=list("abce"))
    check(lambda z: pc.partition_loss(draws, z), GOOD[:, :3], ValueError, ["`reference`", "same 4 items; got 3"])
    check(lambda z: pc.partition_loss(draws, z), other, ValueError, ["`reference`", "coordinates of 'obs' differ"])
    check(lambda loss: pc.partition_loss(draws, loss=loss), "pear", ValueError, ["`loss` must be a loss"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100B")
    check(pc.partition_loss, GOOD, MemoryError, ["losses of 4 draws against 4", "128 B", "fewer draws"])
