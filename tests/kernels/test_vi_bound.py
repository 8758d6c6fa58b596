from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import linprog

from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.kernels import vi_bound
from tests import reference
from tests.kernels.checks import at_once, in_plain_python, run

N, N_DRAWS, N_GROUPS, N_TANGENTS = 6, 5, 2, 5
LOWER, UPPER = np.array([1, 4]), np.array([3, 12])
MULTIPLICITIES = [np.ones(N, np.int64), np.array([1, 2, 1, 3, 1, 2])]


def some_blocks(multiplicity):
    rng = np.random.default_rng(8)
    labels, counts = canonical_rows(rng.integers(3, size=(N_DRAWS, N)).astype(np.uint8), 3)
    starts = np.concatenate([[0], np.cumsum(counts)])
    order = np.argsort(labels, axis=1, kind="stable").astype(np.int32).ravel()
    ends = np.cumsum(np.bincount((starts[:-1, np.newaxis] + labels).ravel()))
    return vi_bound.Blocks(labels.astype(np.int32), starts, order, ends, rng.dirichlet(np.ones(N_DRAWS)), multiplicity)


def no_tangents():
    return vi_bound.Tangents(
        slopes=np.zeros((N, N_TANGENTS, N), np.float32),
        offsets=np.zeros((N, N_TANGENTS)),
        tags=np.full((N, N_TANGENTS), -1),
        last_use=np.full((N, N_TANGENTS), -1),
        ranking=np.tile(np.arange(N, dtype=np.int32), (N, N_TANGENTS, 1)),
    )


def some_means(rng):
    means = rng.random((N_GROUPS, N, N)).astype(np.float32)
    means /= means.sum(axis=0).max()
    for b in range(N_GROUPS):
        np.fill_diagonal(means[b], means[b].max(axis=1))
    return means


def some_tangents(blocks, rng, n_rounds=2):
    """Two tangents an item and group, as the kernel makes them."""
    tangents = no_tangents()
    for r in range(n_rounds):
        slots = np.tile(np.arange(N_GROUPS) + N_GROUPS * r, (N, 1))
        vi_bound.linearize(blocks, some_means(rng), 0, N, slots, tangents, np.zeros((N, N_GROUPS)))
    return tangents


def convex_part(blocks, i, x):
    """F_i(x) from the definition."""
    together = blocks.labels == blocks.labels[:, [i]]
    return -2 * blocks.weights @ np.log2(together @ (x * blocks.multiplicity))


def some_prices(rng, blocks, means):
    centre = rng.normal(size=(N_GROUPS, N, N)) / 10
    centre -= centre.transpose(0, 2, 1)
    triangles = np.array([[0, 0, 1, 2], [1, 3, 0, 5], [1, 0, 1, 4], [0, 2, 3, 4]], np.int32)
    duals = np.array([0.2, 0.1, 0.0, 0.05])
    arguments = (centre, means, np.arange(N_GROUPS), 0.3, triangles, duals, blocks.multiplicity)
    _, outcome = run(vi_bound.total_prices, *arguments, no_prices())
    return outcome[-1]


def no_prices():
    return vi_bound.Prices(np.empty((N_GROUPS, N, N)), np.empty((N_GROUPS, N)))


def no_minima():
    least, sizes, winners = np.full((N, 2), np.inf), np.zeros((N, 2), int), np.zeros((N, 2), int)
    return vi_bound.Minima(least, sizes, winners, np.zeros(N, int), np.zeros((N, N), np.float32))


def groups_of(multiplicity):
    logs = np.log2(np.maximum(np.arange(multiplicity.sum() + 1), 1))
    return vi_bound.Groups(LOWER, np.minimum(UPPER, multiplicity.sum()), logs, multiplicity)


@pytest.mark.parametrize("multiplicity", MULTIPLICITIES)
def test_tangents_are_below_at_every_set_and_touch_at_their_point(multiplicity, rng):
    blocks, means = some_blocks(multiplicity), some_means(rng)
    slots = np.tile([4, 2], (N, 1))
    slots[0, 1] = -1
    costs = np.full((N, N_GROUPS), np.nan)
    # Plain Python's logarithm may differ from the compiled one in the last bit.
    vi_bound.linearize(blocks, means, 0, N, slots, tangents := no_tangents(), costs)
    assert tangents.tags[0].tolist() == [-1, -1, -1, -1, 0]
    assert tangents.tags[1].tolist() == [-1, -1, 1, -1, 0]
    with in_plain_python(), patch.object(vi_bound, "in_blocks", at_once):
        vi_bound.linearize(blocks, means, 0, N, slots, slow := no_tangents(), np.empty_like(costs))
    np.testing.assert_allclose(tangents.slopes, slow.slopes, rtol=1e-6)
    np.testing.assert_allclose(tangents.offsets, slow.offsets, rtol=1e-12)
    for i, b in product(range(N), range(N_GROUPS)):
        if slots[i, b] < 0:
            continue
        slope = tangents.slopes[i, slots[i, b]].astype(float) * multiplicity
        offset = tangents.offsets[i, slots[i, b]]
        for others in product([0.0, 1.0], repeat=N):
            x = np.array(others)
            x[i] = 1
            assert offset + slope @ x <= convex_part(blocks, i, x) + 1e-13
        share = float(means[b, i, i])
        point = means[b, i] / share
        assert offset + slope @ point == pytest.approx(convex_part(blocks, i, point), abs=1e-5)
        assert costs[i, b] == pytest.approx(share * convex_part(blocks, i, point), abs=1e-5)


def test_a_blend_is_a_tangent_not_above_the_mean_of_two(rng):
    tangents = some_tangents(some_blocks(MULTIPLICITIES[1]), rng)
    slots, others, out = np.tile([0, 1], (N, 1)), np.tile([2, 3], (N, 1)), np.tile([4, -1], (N, 1))
    _, (after, *_) = run(vi_bound.blend, tangents, slots, others, out)
    middle = (after.slopes[:, 0].astype(float) + after.slopes[:, 2]) / 2
    assert np.all(after.slopes[:, 4] <= middle)
    np.testing.assert_allclose(after.slopes[:, 4], middle, rtol=2e-7)
    np.testing.assert_array_equal(after.offsets[:, 4], (after.offsets[:, 0] + after.offsets[:, 2]) / 2)
    assert after.tags[0].tolist() == [0, 1, 0, 1, 0]


def least_value(slope, offset, multiplicity, i, m):
    """Of a tangent over sets of size m that contain item i, by linear programming."""
    bounds = [(float(j == i), 1.0) for j in range(N)]
    found = linprog(slope * multiplicity, A_eq=[multiplicity], b_eq=[m], bounds=bounds)
    return offset + found.fun if found.success else np.inf


@pytest.mark.parametrize("multiplicity", MULTIPLICITIES)
def test_item_problems_are_solved(multiplicity, rng):
    blocks, means = some_blocks(multiplicity), some_means(rng)
    tangents = some_tangents(blocks, rng)
    groups = groups_of(multiplicity)
    upper, logs = groups.upper, groups.logs
    own_prices = some_prices(rng, blocks, means)
    prices, constants = own_prices
    everywhere = np.ones((N, N_GROUPS), bool)
    _, outcome = run(vi_bound.solve_items, tangents, own_prices, groups, everywhere, 7, no_minima())
    after, (least, sizes, winners, group, sets) = outcome[0], outcome[-1]
    for i, b in product(range(N), range(N_GROUPS)):
        values = {
            m: logs[m]
            + max(
                least_value(tangents.slopes[i, k] + prices[b, i], tangents.offsets[i, k], multiplicity, i, m)
                for k in (b, b + N_GROUPS)
            )
            for m in range(LOWER[b], upper[b] + 1)
        }
        assert least[i, b] == pytest.approx(min(values.values()) + constants[b, i], abs=1e-9)
        assert values[sizes[i, b]] == pytest.approx(min(values.values()), abs=1e-9)
        assert winners[i, b] in (b, b + N_GROUPS)
        assert after.last_use[i, winners[i, b]] == 7
    np.testing.assert_array_equal(group, least.argmin(axis=1))
    chosen = np.arange(N), group
    np.testing.assert_allclose(sets @ multiplicity, sizes[chosen], atol=1e-6)
    np.testing.assert_array_equal(np.diag(sets), 1)
    k = winners[chosen]
    slopes = (tangents.slopes[np.arange(N), k] + prices[group, np.arange(N)]) * multiplicity
    values = tangents.offsets[np.arange(N), k] + (slopes * sets).sum(axis=1) + logs[sizes[chosen]]
    np.testing.assert_allclose(values + constants[group, np.arange(N)], least[chosen], atol=1e-6)


def test_a_set_takes_a_part_of_its_last_item():
    _, (*_, shares) = run(vi_bound._write_set, np.array([2, 0, 1, 3]), np.array([1, 2, 3, 1]), 5, np.empty(4))
    np.testing.assert_array_equal(shares, [1, 0.5, 1, 0])


@pytest.mark.parametrize("multiplicity", MULTIPLICITIES)
def test_no_partition_pays_more_than_nothing(multiplicity, rng):
    blocks, means = some_blocks(multiplicity), some_means(rng)
    prices, constants = some_prices(rng, blocks, means)
    paid = []
    for partition in reference.partitions(N):
        x = np.equal.outer(partition, partition).astype(float)
        sizes = x @ multiplicity
        group = (sizes >= LOWER[1]).astype(int)
        own = prices[group, np.arange(N)]
        paid.append(multiplicity @ (constants[group, np.arange(N)] + (own * x) @ multiplicity))
    assert max(paid) <= 1e-12
    assert max(paid) >= -1e-12  # some partitions have every triangle tight
    assert min(paid) < -0.01


def test_settling_takes_the_present_prices_of_pairs_as_the_centre(rng):
    means = some_means(rng)
    centre = np.zeros((N_GROUPS, N, N))
    _, (settled, *_) = run(vi_bound.price_pairs, centre, means, np.arange(N_GROUPS), 0.3, centre)
    np.testing.assert_array_equal(settled, -settled.transpose(0, 2, 1))
    np.testing.assert_allclose(settled, 0.3 * (means - means.transpose(0, 2, 1)), atol=1e-7)


def test_the_most_violated_triangles_are_found(rng):
    means = some_means(rng)
    found, by = np.empty((1, 3, 2, 2), np.int32), np.empty((1, 3, 2), np.float32)
    _, (*_, found, by) = run(vi_bound.violated_triangles, means, np.array([1]), 2, 5, 0.01, found, by)
    for j in range(2, 5):
        triangles = [(1, j, i, k) for i, k in combinations(range(N), 2) if j not in (i, k)]
        excess = np.empty(len(triangles))
        _, (*_, excess_at) = run(vi_bound.violations, means, np.array(triangles, np.int32), excess)
        for (b, _, i, k), value in zip(triangles, excess_at, strict=True):
            slow = means[b, j, i] + means[b, j, k] - means[b, j, j] - (means[b, i, k] + means[b, k, i]) / 2
            assert value == pytest.approx(slow, abs=1e-6)
        worst = sorted((value for value in excess_at if value > 0.01), reverse=True)[:2]
        kept = found[0, j - 2, :, 0] >= 0
        np.testing.assert_allclose(sorted(by[0, j - 2][kept], reverse=True), worst, atol=1e-6)


def augmented(means, costs, mean_logs, centre, rate, triangles, duals, multiplicity):
    """The objective of a step: costs, linear prices, and squares of what the prices of pairs and triangles rest on."""
    pairs = np.outer(multiplicity, multiplicity)
    off = means.astype(float) - means.transpose(0, 2, 1)
    excess = np.empty(len(triangles))
    vi_bound.violations(means, triangles, excess)
    priced = np.maximum(duals + rate * excess, 0)
    total = multiplicity @ (costs + mean_logs).sum(axis=1)
    total += (pairs * (centre * off / 2 + rate * off**2 / 4)).sum()
    return total + (priced**2 - duals**2).sum() / (2 * rate)


@pytest.mark.parametrize("multiplicity", MULTIPLICITIES)
def test_moving_lowers_the_augmented_objective(multiplicity, rng):
    blocks, rate = some_blocks(multiplicity), 0.3
    groups = groups_of(multiplicity)
    triangles = np.array([[0, 0, 1, 2], [1, 3, 0, 5], [1, 0, 1, 4]], np.int32)
    centre, duals_centre = np.zeros((N_GROUPS, N, N)), np.array([0.2, 0.1, 0.3])
    means, tangents = some_means(rng), some_tangents(blocks, rng)
    means /= means.diagonal(axis1=1, axis2=2).sum(axis=0)[:, np.newaxis]
    costs, mean_logs = np.ones((N, N_GROUPS)), np.ones((N, N_GROUPS))
    values = [augmented(means, costs, mean_logs, centre, rate, triangles, duals_centre, multiplicity)]
    for _ in range(10):
        excess = np.empty(3)
        vi_bound.violations(means, triangles, excess)
        duals = np.maximum(duals_centre + rate * excess, 0)
        prices, minima = no_prices(), no_minima()
        vi_bound.total_prices(centre, means, np.arange(N_GROUPS), rate, triangles, duals, multiplicity, prices)
        vi_bound.solve_items(tangents, prices, groups, np.ones((N, N_GROUPS), bool), 0, minima)
        bends = np.zeros(N)
        _, outcome = run(vi_bound.triangle_bends, means, minima.group, minima.sets, triangles, duals, bends)
        bends = outcome[-1]
        averages = vi_bound.Means(means, costs, mean_logs)
        vi_bound.move(averages, minima, prices, groups, rate, rate * bends, np.zeros(N))
        values.append(augmented(means, costs, mean_logs, centre, rate, triangles, duals_centre, multiplicity))
    assert np.all(np.diff(values) <= 1e-6)
    assert values[-1] < values[0] - 0.5
    np.testing.assert_allclose(means.diagonal(axis1=1, axis2=2).sum(axis=0), 1, atol=1e-5)
