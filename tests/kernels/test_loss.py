import numpy as np

from posterior_consensus.kernels import loss as kernels
from tests.kernels.checks import run
from tests.kernels.searching import N_ITEMS, RECORDS, some_draws


def test_combine_is_the_loss_but_for_its_scale():
    draws = some_draws()
    estimates = np.array([[0] * N_ITEMS, range(N_ITEMS), [0, 0, 0, 1, 1, 2, 2, 2, 2]])
    for record, definition in RECORDS.values():
        loss = record.arrays(N_ITEMS)

        def sums(rows, h=loss.h):
            return np.array([h[np.unique(row, return_counts=True)[1]].sum() for row in rows])

        joint = np.array([sums(100 * estimate + draws.labels) for estimate in estimates])
        losses, _ = run(kernels.combine, loss, joint, sums(estimates), sums(draws.labels))
        expected = [[definition(estimate, z) for z in draws.labels] for estimate in estimates]
        np.testing.assert_allclose(record.scale(N_ITEMS) * losses, expected, atol=1e-13, err_msg=record.name)


def test_pairs_are_combined_as_all_with_all_are():
    for record, _ in RECORDS.values():
        loss = record.arrays(N_ITEMS)
        own, drawn = np.random.default_rng(3).uniform(0, loss.h[-1], size=(2, 20))
        joint = np.minimum(own, drawn) * np.linspace(0.2, 1, 20)
        found, _ = run(kernels.combine_pairs, loss, joint, own, drawn)
        everything = kernels.combine(loss, np.tile(joint[:, np.newaxis], 20), own, drawn)
        np.testing.assert_array_equal(found, np.diag(everything), err_msg=record.name)
