"""The least expected loss for each number of clusters is that of enumeration, and its table says how sure it is."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws, sticky_chains
from tests.helpers import GOOD, check

QUIET = {"random_seed": 1, "progressbar": False}
ALL_OF_SIX = np.concatenate(list(enumerate_partitions(6)))
LOSSES = {"binder": reference.binder, "vi": reference.vi, "nvi": reference.nvi, "omari": reference.omari}


def least_of(losses):
    """Least of the losses of all partitions of six items, for each number of clusters."""
    sizes = ALL_OF_SIX.max(axis=1) + 1
    return np.array([losses[sizes == k].min() for k in range(1, 7)])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_losses_are_those_of_enumeration(loss, seed):
    z = random_draws(np.random.default_rng(seed), 12, 6, 4)
    found = pc.loss_by_n_clusters(z, loss=loss, n_clusters=range(1, 7), **QUIET)
    expected = least_of(np.array([reference.expected(p, z, LOSSES[loss]) for p in ALL_OF_SIX]))
    np.testing.assert_allclose(found.table["expected_loss"], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found.partitions.max("item") + 1, np.arange(1, 7))
    assert expected.min() == pytest.approx(expected[found.best - 1], abs=1e-12)


@pytest.mark.parametrize("loss", ["binder", "pear", "vi_lower_bound"])
@pytest.mark.parametrize("seed", range(3))
def test_a_matrix_alone_gives_what_enumeration_gives(loss, seed):
    z = random_draws(np.random.default_rng(seed), 12, 6, 3)
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(z))
    found = pc.loss_by_n_clusters(pairs, loss=loss, n_clusters=range(1, 7), **QUIET)
    of_all = pc.expected_loss(pairs, ALL_OF_SIX, loss=loss)["expected_loss"].values
    np.testing.assert_allclose(found.table["expected_loss"], least_of(of_all), rtol=1e-9, atol=1e-12)
    for column in ("mcse", "difference_mcse", "probability", "probability_mcse"):
        assert np.isnan(found.table[column]).all()
    assert found.n_draws is None and "similarity matrix alone" in repr(found)
    from_draws = pc.loss_by_n_clusters(z, loss=loss, n_clusters=range(1, 7), **QUIET)
    np.testing.assert_allclose(from_draws.table["expected_loss"], found.table["expected_loss"], rtol=1e-9, atol=1e-12)
    assert from_draws.table["probability"].sum() == pytest.approx(1.0)


def test_errors_of_differences_are_paired():
    z = sticky_chains(np.random.default_rng(3), 3, 60, 8, 0.5)
    found = pc.loss_by_n_clusters(z, n_clusters=[2, 3, 5], **QUIET)
    names = found.table["n_clusters"].values
    compared = pc.compare_partitions(z, dict(zip(map(str, names), found.partitions.values, strict=True)), loss="vi")
    table = compared.to_dataframe().loc[list(map(str, names))]
    for column in ("expected_loss", "mcse", "difference"):
        np.testing.assert_allclose(found.table[column], table[column], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.table["difference_mcse"], table["difference_mcse"], rtol=1e-12)
    assert compared.best == str(found.best)


def test_weights_are_repeated_draws():
    rng = np.random.default_rng(4)
    z, times = noisy_draws(rng, 30, 7, 3, 0.3), rng.integers(0, 4, size=30)
    weighted = pc.loss_by_n_clusters(pc.as_partition_draws(z, weights=times), n_clusters=range(1, 8), **QUIET)
    repeated = pc.loss_by_n_clusters(np.repeat(z, times, axis=0), n_clusters=range(1, 8), **QUIET)
    for column in ("expected_loss", "difference", "probability"):
        np.testing.assert_allclose(weighted.table[column], repeated.table[column], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(weighted.partitions, repeated.partitions)


def test_numbers_that_are_looked_at_by_default():
    z = np.array([[0, 0, 0, 1, 1, 1, 2, 2]] * 150 + [[0, 0, 0, 1, 1, 1, 2, 3]] * 50 + [[0, 1, 2, 3, 4, 5, 6, 7]])
    found = pc.loss_by_n_clusters(z, **QUIET)
    np.testing.assert_array_equal(found.table["n_clusters"], [2, 3, 4, 5])  # one draw of 201 has eight
    weights = np.where(z.max(axis=1) == 7, 20.0, 1.0)
    found = pc.loss_by_n_clusters(pc.as_partition_draws(z, weights=weights), **QUIET)
    np.testing.assert_array_equal(found.table["n_clusters"], range(2, 9))
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(z))
    found = pc.loss_by_n_clusters(pairs, loss="binder", **QUIET)
    np.testing.assert_array_equal(found.table["n_clusters"], range(1, 9))
    apart = [[0, 0, 0, 0, 0, 0]] * 3 + [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 3]]
    assert pc.loss_by_n_clusters(apart, **QUIET).table["n_clusters"].values.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("loss", ["vi", "binder", "nid"])
def test_the_curve_is_below_that_of_searches_one_by_one(loss):
    z = noisy_draws(np.random.default_rng(7), 200, 40, 5, 0.4)
    found = pc.loss_by_n_clusters(z, loss=loss, **QUIET)
    best = pc.consensus_partition(z, loss=loss, **QUIET)
    assert float(found.table["expected_loss"].min()) <= best.expected_loss * (1 + 1e-10)
    numbers = range(2, 13)
    found = pc.loss_by_n_clusters(z, loss=loss, n_clusters=numbers, **QUIET)
    alone = [pc.consensus_partition(z, loss=loss, n_clusters=k, **QUIET).expected_loss for k in numbers]
    assert float(found.table["expected_loss"].sum()) <= sum(alone) * (1 + 1e-10)


def test_names_of_the_draws_clusters_and_the_order_of_draws_do_not_matter(rng):
    z = noisy_draws(rng, 60, 9, 3, 0.4)
    found = pc.loss_by_n_clusters(z, loss="binder", n_clusters=range(1, 5), **QUIET)
    renamed = pc.loss_by_n_clusters(7 - z, loss="binder", n_clusters=[4, 3, 2, 1, 2], **QUIET)
    np.testing.assert_array_equal(found.partitions, renamed.partitions)
    mixed = pc.loss_by_n_clusters(rng.permutation(z), loss="binder", n_clusters=range(1, 5), **QUIET)
    np.testing.assert_allclose(found.table["expected_loss"], mixed.table["expected_loss"], rtol=1e-12)


def test_what_it_shows(posterior_tree):
    found = pc.loss_by_n_clusters(posterior_tree, n_clusters=[1, 2, 3], **QUIET)
    assert repr(found).startswith("LossByNClusters: 1 to 3 clusters\n  least ")
    assert found.best in found.within_error
    assert found.partitions.dims[1] == "obs" and found.to_dataframe().index.name == "n_clusters"


def test_the_plot(rng):
    z = sticky_chains(rng, 2, 40, 8, 0.3)
    found = pc.loss_by_n_clusters(z, n_clusters=[1, 2, 3, 5], **QUIET)
    upper, lower = pc.plot_loss_by_n_clusters(found)
    line = upper.containers[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 5])
    np.testing.assert_array_equal(line.get_ydata(), found.table["expected_loss"])
    (bars,) = upper.containers[0].lines[2]
    lengths = np.ptp([segment[:, 1] for segment in bars.get_segments()], axis=1)
    np.testing.assert_allclose(lengths, 4 * found.table["difference_mcse"], rtol=1e-9)
    assert [bar.get_height() for bar in lower.patches] == found.table["probability"].values.tolist()
    assert upper.get_ylabel() == "expected vi (bits)"
    plt.close("all")
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(z))
    (only,) = pc.plot_loss_by_n_clusters(pc.loss_by_n_clusters(pairs, loss="binder", n_clusters=[2, 3], **QUIET))
    assert only.get_ylabel() == "expected binder" and only.get_xlabel() == "number of clusters"


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"n_clusters": 3}, TypeError, "`n_clusters` must be several integers, such as range(1, 10); got 3"),
        ({"n_clusters": "all"}, TypeError, "`n_clusters` must be several integers, such as range(1, 10); got"),
        ({"n_clusters": []}, ValueError, "`n_clusters` must hold at least one number; got none"),
        ({"n_clusters": [1, 5]}, ValueError, "must lie between 1 and the number of items, 4; got 5"),
        ({"n_clusters": [0, 1]}, ValueError, "`n_clusters` must be at least 1; got 0"),
        ({"n_clusters": [1.5]}, TypeError, "`n_clusters` must be an integer; got 1.5"),
        ({"loss": "zz"}, ValueError, "`loss` must be"),
        ({"n_starts": 0}, ValueError, "`n_starts` must be at least 1; got 0"),
        ({"random_seed": "a"}, TypeError, "`random_seed` must be an integer from 0"),
    ],
)
def test_bad_arguments(arguments, error, part):
    check(lambda a: pc.loss_by_n_clusters(GOOD, **a), arguments, error, [part])


def test_what_needs_draws():
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(GOOD))
    check(pc.loss_by_n_clusters, pairs, ValueError, ["loss 'vi' needs posterior draws"])
    check(pc.plot_loss_by_n_clusters, GOOD, TypeError, ["`losses` must be what loss_by_n_clusters() returns"])
