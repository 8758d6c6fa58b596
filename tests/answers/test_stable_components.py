"""Stable components, and that every good partition keeps them together."""

import numpy as np
import pytest
import xarray as xr
from scipy.sparse.csgraph import connected_components

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import array, check

ALL_OF_SEVEN = np.concatenate(list(enumerate_partitions(7)))


def test_an_optimum_keeps_equal_signatures_together(rng):
    draws, weights = rng.integers(3, size=(4, 7)), rng.exponential(size=4)
    draws[:, [1, 2]], draws[:, 4] = draws[:, [0]], draws[:, 3]
    components = pc.stable_components(draws).labels.values
    together = components[:, np.newaxis] == components
    keeps = np.array([np.all((p[:, np.newaxis] == p) | ~together) for p in ALL_OF_SEVEN])
    assert len(ALL_OF_SEVEN) == 877 and 0 < keeps.sum() < 877
    weighted = pc.as_partition_draws(draws, weights=weights)
    for loss in (pc.binder(0.5), pc.binder(1.5), pc.vi()):
        losses = pc.expected_loss(weighted, ALL_OF_SEVEN, loss=loss)["expected_loss"].values
        assert losses[keeps].min() == pytest.approx(losses.min(), abs=1e-12)


@pytest.fixture(scope="module")
def draws():
    return noisy_draws(np.random.default_rng(4), 20, 30, 3, 0.15)


def largest_first(classes):
    sizes = np.bincount(classes)
    order = sorted(range(sizes.size), key=lambda k: (-sizes[k], classes.tolist().index(k)))
    return np.argsort(order)[classes]


def test_at_level_1_a_component_is_a_signature(draws):
    few = draws[:3]
    found = pc.stable_components(few)
    signatures = np.unique(few.T, axis=0, return_inverse=True)[1].ravel()
    np.testing.assert_array_equal(found.labels, largest_first(signatures))
    assert found.sizes.values.tolist() == sorted(np.bincount(signatures), reverse=True)
    assert found.n_components == len(np.unique(few.T, axis=0)) == int(found.curve[-1])


@pytest.mark.parametrize(("level", "weighted"), [(0.2, True), (0.5, False), (0.75, True), (0.9, False)])
def test_below_it_items_are_connected_by_pairs(draws, level, weighted):
    weights = np.random.default_rng(1).exponential(size=20) if weighted else None
    found = pc.stable_components(pc.as_partition_draws(draws, weights=weights), level)
    linked = reference.similarity(draws, weights) >= level - 1e-12
    _, classes = connected_components(linked, directed=False)
    np.testing.assert_array_equal(found.labels, largest_first(classes))
    assert found.n_components == int(found.curve.sel(level=level, method="nearest"))


def test_complete_components_hold_the_level_within(draws):
    similarity = reference.similarity(draws)
    for level in (0.5, 0.75, 0.9):
        found, connected = (pc.stable_components(draws, level, linkage=kind) for kind in ("complete", "single"))
        for members in found.components:
            assert similarity[np.ix_(members, members)].min() >= level - 1e-12
            assert np.unique(connected.labels.values[members]).size == 1
        assert found.n_components >= connected.n_components
        assert np.all(np.diff(found.curve) >= 0) and found.curve[-1] == pc.stable_components(draws).n_components


def test_draws_of_weight_0_and_names_of_labels_do_not_count(draws):
    weighted = pc.as_partition_draws(np.concatenate([draws[:4], [range(30)]]), weights=[1, 1, 1, 1, 0])
    renamed = np.array([np.random.default_rng(t).permutation(9)[draw] for t, draw in enumerate(draws[:4])])
    expected = pc.stable_components(draws[:4])
    for other in (weighted, renamed):
        found = pc.stable_components(other)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.curve, expected.curve)


def test_a_similarity_matrix_and_probabilities_serve_too(draws):
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))
    for level in (0.6, 1.0):
        found = pc.stable_components(pairs, level)
        np.testing.assert_array_equal(found.labels, pc.stable_components(draws, level).labels)
    assert found.n_draws is None
    p = np.zeros((1, 5, 4, 2))
    p[:, :, :2, 0] = p[:, :, 2:, 1] = 1.0
    soft = pc.as_allocation_probabilities(xr.DataArray(p, dims=("chain", "draw", "obs", "component")))
    assert pc.stable_components(soft).labels.values.tolist() == [0, 0, 1, 1]


def test_items_keep_their_names():
    found = pc.stable_components(array(np.array([[0, 1, 1, 0]] * 3), ("sample", "obs"), obs=list("abcd")))
    assert found.components == [["a", "d"], ["b", "c"]]
    assert found.labels["obs"].values.tolist() == list("abcd")
    assert found.to_dataframe()["obs"].tolist() == ["a, d", "b, c"]


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        for level in (0.5, 1.0):
            found = pc.stable_components(draws, level)
            assert found.sizes.sum() == draws.shape[1] and np.all(np.diff(found.sizes) <= 0)


def test_many_items_need_no_matrix_at_level_1(monkeypatch, draws):
    monkeypatch.setattr("posterior_consensus.answers.stable._MOST_IN_CURVE", 5)
    found = pc.stable_components(draws)
    assert found.curve is None and found.n_components == len(np.unique(draws.T, axis=0))
    check(pc.plot_stable_components, found, ValueError, ["`components`", "curve"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1KB")
    check(lambda level: pc.stable_components(draws, level), 0.9, MemoryError, ["At level 1"])


def test_bad_arguments():
    for argument, value, error, part in [
        ("level", 0, ValueError, "between 0, excluded"),
        ("level", 1.01, ValueError, "and 1"),
        ("level", -1, ValueError, "between 0, excluded"),
        ("level", np.nan, ValueError, "and 1"),
        ("level", "half", TypeError, "number; got 'half'"),
        ("linkage", "average", ValueError, "'single', 'complete'; got 'average'"),
    ]:
        check(
            lambda x, name=argument: pc.stable_components([[0, 1]], **{name: x}), value, error, [f"`{argument}`", part]
        )


def test_the_legend_keeps_off_a_flat_curve():
    ax = pc.plot_stable_components(pc.stable_components([[0, 0, 0], [0, 0, 0]]))
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y1 < ax.transData.transform((0, 1))[1]
