from itertools import combinations

import numpy as np
import pytest

from posterior_consensus.kernels import packing
from tests import reference
from tests.kernels.checks import run

N = 7


def weights_of(seed, n=N):
    upper = np.triu(np.random.default_rng(seed).integers(-5, 6, (n, n)).astype(float), 1)
    return upper + upper.T


def conflicts(weights, least):
    """Triangles with two weights above and one below."""
    sides = {t: sorted(weights[i, j] for i, j in combinations(t, 2)) for t in combinations(range(len(weights)), 3)}
    return {triangle for triangle, side in sides.items() if side[0] < -least and side[1] > least}


def items(rows, n):
    return [tuple(sorted({int(pair) // n for pair in row} | {int(pair) % n for pair in row})) for row in rows]


def listed_conflicts(weights, least):
    count, _ = run(packing.list_conflicts, weights, least, np.empty((0, 3), np.int32))
    return run(packing.list_conflicts, weights, least, np.zeros((count, 3), np.int32))[1][2]


@pytest.fixture(params=range(2))
def listed(request):
    weights = weights_of(request.param)
    return weights, listed_conflicts(weights, 0.0)


@pytest.mark.parametrize("least", [0.0, 2.0])
def test_conflicts_are_the_definition_s(least):
    weights = weights_of(1)
    rows = listed_conflicts(weights, least)
    found = items(rows, N)
    assert len(set(found)) == len(rows) > 0 and set(found) == conflicts(weights, least)
    assert (weights.ravel()[rows] * [-1, 1, 1] > least).all()
    assert (rows // N < rows % N).all()


@pytest.mark.parametrize("seed", range(3))
def test_packing_takes_no_more_than_there_is(seed):
    weights = weights_of(seed)
    taken, (reduced,) = run(packing.pack, weights.copy())
    np.testing.assert_array_equal(reduced, reduced.T)
    assert (weights * reduced >= 0).all()  # no sign changes
    assert (np.abs(reduced) <= np.abs(weights)).all()
    assert not conflicts(reduced, 0.0)  # nothing more to take
    # Each triangle takes as much of three pairs.
    assert np.abs(np.triu(weights - reduced)).sum() == pytest.approx(3 * taken)
    least = min(cost(labels, weights) for labels in reference.partitions(N))
    assert np.minimum(np.triu(weights), 0).sum() + taken <= least + 1e-12
    assert taken > 0


def test_prices_add_up_to_reduced_costs(listed):
    weights, rows = listed
    prices = np.random.default_rng(1).exponential(size=len(rows))
    start = np.triu(weights, 1).ravel()
    _, (_, _, reduced) = run(packing.add_prices, rows, prices, start.copy())
    for (e, f, g), price in zip(rows, prices, strict=True):
        start[[e, f, g]] += price * np.array([1, -1, -1])
    np.testing.assert_allclose(reduced, start, atol=1e-12)


def cost(labels, weights):
    return sum(weights[i, j] for i, j in combinations(range(len(labels)), 2) if labels[i] != labels[j])


@pytest.mark.parametrize("width", [0.5, 5.0])
def test_ascent_keeps_prices_that_bound_every_partition(listed, width):
    weights, rows = listed
    centre = np.random.default_rng(1).integers(2, size=N * N).astype(float)
    start = np.triu(weights, 1).ravel()
    lean = centre - start / width
    _, (_, prices, lean, _) = run(packing.ascend, rows, np.zeros(len(rows)), lean, 40)
    assert (prices >= 0).all()
    reduced = start.copy()
    packing.add_prices(rows, prices * width, reduced)
    np.testing.assert_allclose(lean, centre - reduced / width, atol=1e-9)
    least = min(cost(labels, weights) for labels in reference.partitions(N))
    bound = np.minimum(reduced, 0).sum()
    assert bound <= least + 1e-9
    assert width > 1 or bound > np.minimum(start, 0).sum()
    # Converged: no row of the relaxed solution is violated, and those with a price are tight.
    x, _ = run(packing.relaxed_solution, lean, N)
    violation = x.ravel()[rows] @ [1, -1, -1]
    assert violation.max() < 0.05
    assert np.abs(violation[prices > 0.05]).max(initial=0.0) < 0.05


def test_a_pair_that_must_be_apart_is(listed):
    _, rows = listed
    lean = np.zeros(N * N)
    lean[rows[0, 1]] = np.inf
    _, (_, prices, lean, _) = run(packing.ascend, rows, np.zeros(len(rows)), lean, 5)
    x, _ = run(packing.relaxed_solution, lean, N)
    assert x.ravel()[rows[0, 1]] == 1.0
    assert np.isfinite(prices).all()
    np.testing.assert_array_equal(x, x.T)


@pytest.mark.parametrize("slack", [0.0, 0.25])
def test_violations_are_the_definition_s(slack):
    rng = np.random.default_rng(2)
    x = np.triu(rng.choice([0.0, 0.25, 0.5, 1.0], (N, N)), 1)
    x += x.T
    expected = {
        ((i, j), k)
        for i, j in combinations(range(N), 2)
        for k in set(range(N)) - {i, j}
        if x[i, j] > x[i, k] + x[k, j] + slack
    }
    count, (_, _, rows) = run(packing.list_violations, x, slack, np.zeros((200, 3), np.int32))
    assert count == len(expected) > 5
    found = {
        (divmod(int(row[0]), N), (set(triple) - set(divmod(int(row[0]), N))).pop())
        for row, triple in zip(rows[:count], items(rows[:count], N), strict=True)
    }
    assert found == expected
    few, (_, _, rows) = run(packing.list_violations, x, slack, np.zeros((3, 3), np.int32))
    assert few == count and (rows > 0).any(axis=1).all()


@pytest.mark.parametrize("seed", range(3))
def test_improvement_ends_where_no_item_moves(seed):
    weights = weights_of(seed)
    start = reference.canonical(np.random.default_rng(seed).integers(3, size=N)).astype(np.int32)
    _, (_, labels) = run(packing.improve, weights, start.copy())
    before, after = cost(start, weights), cost(labels, weights)
    assert after <= before
    for item in range(N):
        for cluster in range(labels.max() + 2):
            moved = labels.copy()
            moved[item] = cluster
            assert cost(moved, weights) >= after - 1e-9
