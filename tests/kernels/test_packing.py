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
    """Triangles with two weights above and one below, as sets of items, and the room in each."""
    found = {}
    for triangle in combinations(range(len(weights)), 3):
        sides = sorted(weights[i, j] for i, j in combinations(triangle, 2))
        if sides[0] < -least and sides[1] > least:
            found[triangle] = min(-sides[0], sides[1])
    return found


def items(rows, n):
    return [tuple(sorted({int(pair) // n for pair in row} | {int(pair) % n for pair in row})) for row in rows]


@pytest.fixture(params=range(5))
def listed(request):
    weights = weights_of(request.param)
    count, _ = run(packing.count_conflicts, weights, 0.0)
    rows, room = np.zeros((count, 3), np.int32), np.zeros(count)
    _, (_, _, rows, room) = run(packing.list_conflicts, weights, 0.0, rows, room)
    return weights, rows, room


@pytest.mark.parametrize("least", [0.0, 2.0])
def test_conflicts_are_the_definition_s(least):
    weights = weights_of(1)
    expected = conflicts(weights, least)
    count, _ = run(packing.count_conflicts, weights, least)
    assert count == len(expected) > 0
    rows, room = np.zeros((count, 3), np.int32), np.zeros(count)
    _, (_, _, rows, room) = run(packing.list_conflicts, weights, least, rows, room)
    assert dict(zip(items(rows, N), room, strict=True)) == expected
    assert (weights.ravel()[rows] * [-1, 1, 1] > least).all()
    assert (rows // N < rows % N).all()


def test_packing_takes_no_more_than_there_is(listed):
    weights, rows, room = listed
    start = np.triu(weights, 1).ravel()
    order = np.argsort(-room, kind="stable")
    _, (_, _, prices, reduced) = run(packing.pack, rows, order, np.zeros(len(rows)), start.copy())
    again = start.copy()
    for (e, f, g), price in zip(rows, prices, strict=True):
        again[[e, f, g]] += price * np.array([1, -1, -1])
    np.testing.assert_allclose(reduced, again, atol=1e-12)
    assert (prices >= 0).all() and prices.sum() > 0
    assert (start * reduced >= -1e-12).all()  # no sign changes
    left = reduced[rows] * [-1, 1, 1]
    assert (left.min(axis=1) <= 1e-12).all()  # nothing more to take
    _, (_, _, added) = run(packing.add_prices, rows, prices, start.copy())
    np.testing.assert_allclose(added, reduced, atol=1e-12)


def cost(labels, weights):
    return sum(weights[i, j] for i, j in combinations(range(len(labels)), 2) if labels[i] != labels[j])


@pytest.mark.parametrize("width", [0.5, 5.0])
def test_ascent_keeps_prices_that_bound_every_partition(listed, width):
    weights, rows, _ = listed
    center = np.random.default_rng(1).integers(2, size=N * N).astype(float)
    start = np.triu(weights, 1).ravel()
    lean = center - start / width
    _, (_, prices, lean, _) = run(packing.ascend, rows, np.zeros(len(rows)), lean, 40)
    assert (prices >= 0).all()
    reduced = start.copy()
    packing.add_prices(rows, prices * width, reduced)
    np.testing.assert_allclose(lean, center - reduced / width, atol=1e-9)
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
    _, rows, _ = listed
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


@pytest.mark.parametrize("seed", range(8))
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
