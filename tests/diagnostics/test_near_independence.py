"""The test of near-independence is what it says, holds its level, and finds items that move together."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.diagnostics.independence import gaussian_kernel, matched_labels
from posterior_consensus.ensemble.chains import half_energy
from posterior_consensus.ensemble.partitions import canonical_rows
from tests.catalogue.posteriors import associations, noisy_draws, sticky_chains
from tests.helpers import check


def p_values(make, number):
    return np.array(
        [pc.diagnostics.near_independence(make(), n_permutations=99, random_seed=k).p_value for k in range(number)]
    )


def same_partition(one, other):
    return np.array_equal(one[:, np.newaxis] == one, other[:, np.newaxis] == other)


def test_kernel_is_the_definition_and_positive_semidefinite(rng):
    labels, n_clusters = canonical_rows(rng.integers(4, size=(30, 9)).astype(np.uint8), 4)
    kernel, bandwidth = gaussian_kernel(labels, n_clusters)
    pairs = associations(labels)
    distances = 2 * ((pairs[:, np.newaxis] - pairs) ** 2).sum(axis=2) / 81  # over ordered pairs
    assert bandwidth == pytest.approx(np.median(distances[np.triu_indices(30, 1)]))
    np.testing.assert_allclose(kernel, np.exp(-distances / bandwidth), atol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() > -1e-10


def test_half_energy_samples_is_the_definition(rng):
    distances, pairs = (matrix + matrix.T for matrix in (rng.random((12, 12)), rng.integers(0, 3, (12, 12))))
    ours, theirs = np.zeros((2, 3, 12), bool)
    for k in range(3):
        order = rng.permutation(12)
        ours[k, order[:4]], theirs[k, order[4:11]] = True, True
    found = half_energy(distances, ours, theirs, pairs.astype(float))

    def mean(x, y):
        values, weights = zip(*((distances[i, j], pairs[i, j]) for i in x for j in y), strict=True)
        return np.average(values, weights=weights)

    for k in range(3):
        x, y = np.flatnonzero(ours[k]), np.flatnonzero(theirs[k])
        assert found[k] == pytest.approx(mean(x, y) - (mean(x, x) + mean(y, y)) / 2)
    assert np.isnan(half_energy(distances, ours, np.zeros((3, 12), bool), pairs.astype(float))).all()


def test_labels_are_matched_as_they_were_made(rng):
    truth = np.arange(60) % 4
    noisy = rng.random((80, 60)) < 0.4
    named = np.where(noisy, rng.integers(4, size=(80, 60)), truth)
    draws = pc.as_partition_draws(np.array([rng.permutation(4)[row] for row in named]))
    matched = matched_labels(draws)
    assert all(same_partition(row, z) for row, z in zip(matched, draws.labels, strict=True))
    names = np.array([np.bincount(matched[:, i]).argmax() for i in range(4)])  # of the clusters of the truth
    np.testing.assert_array_equal(matched, names[named])


def test_clusters_left_over_are_numbered_by_size():
    z = np.array([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]] * 9 + [[2, 3, 3, 0, 0, 0, 1, 1, 1, 1, 1, 1]])
    matched = matched_labels(pc.as_partition_draws(z))
    np.testing.assert_array_equal(matched[-1], [3, 2, 2, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(matched[0], [0] * 6 + [1] * 6)


@pytest.mark.slow
def test_p_values_are_uniform_for_independent_items(rng):
    found = p_values(lambda: noisy_draws(rng, 100, 30, 3, 0.3), 150)
    # Three standard errors of 150: by chance, one seed in some hundred is out.
    for level in (0.1, 0.25, 0.5, 0.75):
        assert abs(np.mean(found <= level) - level) < 3 * np.sqrt(level * (1 - level) / 150)


def test_items_that_move_together_are_found(rng):
    modes = np.array([[0] * 10 + [1] * 10 + [2] * 10, [0] * 10 + [1] * 2 + [2] * 18])  # eight items move as one

    def two_modes():
        z = modes[rng.integers(2, size=150)]
        return np.where(rng.random(z.shape) < 0.2, rng.integers(3, size=z.shape), z)

    assert np.mean(p_values(two_modes, 8) <= 0.05) > 0.8


def test_statistics_tell_how_far(rng):
    near = pc.diagnostics.near_independence(noisy_draws(rng, 200, 30, 3, 0.4))
    far = pc.diagnostics.near_independence(np.repeat(rng.integers(3, size=(200, 3)), 10, axis=1))
    assert near.p_value > 0.05 and far.p_value == 0.001
    assert near.verdict.startswith("No indication") and "move jointly" in far.verdict
    for found, apart in ((near, False), (far, True)):
        posterior, product = found.resampled.sel(compared_with=["posterior", "product of marginals"]).values
        assert abs(posterior.mean()) < 0.1 * posterior.std() + 0.002
        assert (product.min() > posterior.max()) == apart
        assert product.mean() == pytest.approx(found.statistic, abs=0.2 * product.std())
        assert found.p_value == (1 + np.sum(found.null >= found.statistic)) / 1000


def test_correlated_draws_are_thinned(rng):
    for stay, step in ((0.0, 1), (0.5, 7)):  # 0.5**7 < 0.01
        found = pc.diagnostics.near_independence(
            sticky_chains(rng, 2, 1000, 20, stay), max_draws=2000, n_permutations=9
        )
        assert 0.8 * 2000 / step <= found.n_draws <= 1.3 * 2000 / step
    assert pc.diagnostics.near_independence(rng.integers(3, size=(300, 9)), max_draws=51).n_draws == 50
    assert pc.diagnostics.near_independence(rng.integers(3, size=(300, 9)), max_draws=20).n_draws == 20


def test_names_and_seeds(rng):
    z = noisy_draws(rng, 60, 20, 4, 0.4)
    one = pc.diagnostics.near_independence(z, random_seed=3)
    renamed = pc.diagnostics.near_independence(np.array([rng.permutation(7)[row] for row in z]), random_seed=3)
    assert one.statistic == renamed.statistic and one.p_value == renamed.p_value
    assert pc.diagnostics.near_independence(z, random_seed=4).statistic != one.statistic
    weighted = pc.as_partition_draws(z, weights=rng.random(60))
    assert pc.diagnostics.near_independence(weighted, random_seed=3).statistic == one.statistic


def test_equal_draws_say_nothing():
    for z in (np.zeros((40, 5), int), np.zeros((40, 1), int), np.tile(np.arange(5), (40, 1))):
        found = pc.diagnostics.near_independence(z)
        assert found.p_value == 1 and found.statistic == 0 and found.bandwidth == 0


def test_draws_that_are_mostly_equal(rng):
    z = np.zeros((200, 6), int)
    z[rng.random(200) < 0.1, 0] = 1  # one item moves, and one alone is independent of the others
    found = pc.diagnostics.near_independence(z)
    assert found.bandwidth > 0 and found.p_value > 0.05


def test_result_is_shown(rng):
    found = pc.diagnostics.near_independence(rng.integers(2, size=(50, 5)), n_permutations=19)
    assert f"p-value {found.p_value:.4g}" in repr(found) and "<table" in found._repr_html_()
    frame = found.to_dataframe()
    assert frame.index.tolist() == ["posterior", "product of marginals"]
    np.testing.assert_allclose(frame["mean"], found.resampled.mean("resample"))


def test_bad_arguments(rng):
    z = rng.integers(2, size=(50, 5))
    for option, value, error, part in (
        ("max_draws", 19, ValueError, "at least 20; got 19"),
        ("max_draws", 50.0, TypeError, "an integer; got 50.0"),
        ("n_permutations", 0, ValueError, "at least 1; got 0"),
        ("random_seed", "a", TypeError, "got 'a'"),
    ):
        check(lambda given, o=option: pc.diagnostics.near_independence(z, **{o: given}), value, error, [option, part])


def test_too_few_draws(rng):
    few = np.arange(19)[:, np.newaxis] % 4 == np.arange(4)
    for z in (few, [[0, 1]], np.eye(2, dtype=int)[[0, 1]]):
        check(pc.diagnostics.near_independence, z, ValueError, ["at least 20", "nearly uncorrelated", "Run longer"])
    stuck = np.repeat(rng.integers(3, size=(10, 8)), 40, axis=0)
    check(pc.diagnostics.near_independence, stuck, ValueError, ["400 draws have an effective sample size of"])
    short = rng.integers(2, size=(16, 2, 5))
    check(pc.diagnostics.near_independence, short, ValueError, ["got 0", "fewer than four draws"])
