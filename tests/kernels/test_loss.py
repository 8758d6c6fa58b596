import numpy as np
import pytest

from posterior_consensus.kernels import loss as kernels
from tests.kernels.checks import run
from tests.kernels.searching import LINEAR, N_ITEMS, RECORDS, some_draws


@pytest.mark.parametrize("name", RECORDS)
def test_combine_is_the_loss_but_for_its_scale(name):
    record, definition = RECORDS[name]
    draws, loss = some_draws(), record.arrays(N_ITEMS)
    estimates = np.array([[0] * N_ITEMS, range(N_ITEMS), [0, 0, 0, 1, 1, 2, 2, 2, 2]])

    def sums(rows):
        return np.array([loss.h[np.unique(row, return_counts=True)[1]].sum() for row in rows])

    joint = np.array([sums(100 * estimate + draws.labels) for estimate in estimates])
    losses, _ = run(kernels.combine, loss, joint, sums(estimates), sums(draws.labels))
    expected = [[definition(estimate, z) for z in draws.labels] for estimate in estimates]
    np.testing.assert_allclose(record.scale(N_ITEMS) * losses, expected, atol=1e-13)


@pytest.mark.parametrize("name", RECORDS)
def test_kinds_of_losses(name):
    loss = RECORDS[name][0].arrays(N_ITEMS)
    assert kernels.is_linear(loss) == (name in LINEAR)
    assert kernels.has_denominator(loss) == (name not in [*LINEAR, "id"])
