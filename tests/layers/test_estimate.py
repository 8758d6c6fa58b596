"""Separate optima of layers are the joint optimum, for the losses that docs/background/layers.md names: enumerated."""

from itertools import product

import numpy as np
import pytest

import posterior_consensus as pc
from tests.reference import canonical, partitions

ADDS = {"vi": "vi", "vi, costs": pc.vi(a=0.7), "binder": "binder", "binder, costs": pc.binder(a=0.6)}
OF_THREE = np.array(list(partitions(3)))
OF_SIX = np.array(list(partitions(6)))
UNIONS = {(a, b): np.concatenate([OF_THREE[a], OF_THREE[b] + 3]) for a, b in product(range(5), repeat=2)}


def posteriors(n_posteriors, *n_partitions):
    """Random weights, and for each draw which of the partitions of either side it has."""
    rng = np.random.default_rng(5)
    for _ in range(n_posteriors):
        n_draws = rng.integers(2, 6)
        yield rng.dirichlet(np.ones(n_draws)), [rng.integers(0, n, n_draws) for n in n_partitions]


def losses(draws, of, loss, weights):
    return pc.expected_loss(pc.as_partition_draws(draws, weights=weights), of, loss=loss)["expected_loss"].values


def separate_and_joint(loss, n_posteriors):
    """Expected loss of the union of two layers' optima, and the least of all partitions of the items of both."""
    for weights, (a, b) in posteriors(n_posteriors, 5, 5):
        draws = np.hstack([OF_THREE[a], OF_THREE[b] + 3])
        best = tuple(int(losses(OF_THREE[one], OF_THREE, loss, weights).argmin()) for one in (a, b))
        yield losses(draws, [UNIONS[best]], loss, weights)[0], losses(draws, OF_SIX, loss, weights).min()


@pytest.mark.parametrize("loss", ADDS.values(), ids=ADDS)
def test_the_union_of_the_layers_optima_is_the_optimum_of_all_items(loss):
    for separate, joint in separate_and_joint(loss, 12):
        assert separate == pytest.approx(joint, abs=1e-12)


@pytest.mark.parametrize("loss", [name for name, loss in pc.LOSSES.items() if not loss().is_linear])
def test_of_other_losses_a_joint_search_can_find_less(loss):
    found = any(separate > joint + 1e-6 for separate, joint in separate_and_joint(loss, 100))
    assert found, f"if {loss} adds over layers, it belongs in ADDS and to those in docs/background/layers.md"


@pytest.mark.parametrize("loss", ["vi", pc.vi(a=0.7)], ids=["vi", "costs"])
def test_the_product_of_optima_is_the_best_product_under_vi(loss):
    rows, columns = np.array(list(partitions(2))), OF_THREE
    cells = {(a, b): canonical([f"{r},{c}" for r in rows[a] for c in columns[b]]) for a in range(2) for b in range(5)}
    for weights, (a, b) in posteriors(12, 2, 5):
        draws = np.array([cells[one] for one in zip(a, b, strict=True)])
        of_rows, of_columns = losses(rows[a], rows, loss, weights), losses(columns[b], columns, loss, weights)
        of_products = losses(draws, list(cells.values()), loss, weights)
        np.testing.assert_allclose(of_products, np.add.outer(of_rows, of_columns).ravel(), atol=1e-12)


def test_under_binders_loss_the_product_of_optima_need_not_be_the_best_product():
    two, weights = np.array(list(partitions(2))), np.outer([0.6, 0.4], [0.6, 0.4]).ravel()
    cells = [canonical([f"{r},{c}" for r in rows for c in columns]) for rows, columns in product(two, repeat=2)]
    of_products = losses(np.array(cells), cells, "binder", weights)
    together = losses(two, two, "binder", [0.6, 0.4]).argmin()
    assert together == 0
    assert of_products.argmin() != 0 and of_products.min() < of_products[0] - 0.01
