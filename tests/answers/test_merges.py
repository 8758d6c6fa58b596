"""A partition's clusters merged two by two, and the tree of them."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.losses import partition_losses
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import check

PAIR_LOSSES = {"vi_lower_bound": reference.vi_lower_bound, "pear": reference.one_minus_pear}


def drawn(seed, n_items=14):
    rng = np.random.default_rng(seed)
    labels = noisy_draws(rng, 20, n_items, 4, 0.35)
    return pc.as_partition_draws(labels, weights=rng.exponential(size=20))


def expected(draws, labels, loss):
    if loss == "within_variance":
        return reference.sum_of_squares(labels, draws.labels, draws.weights)
    if loss in PAIR_LOSSES:
        return PAIR_LOSSES[loss](labels, reference.similarity(draws.labels, draws.weights))
    return reference.expected(labels, draws.labels, reference.LOSSES[loss], draws.weights)


@pytest.mark.parametrize("loss", [*pc.LOSSES, *partition_losses.PAIR_LOSSES])
def test_every_merge_is_the_cheapest(loss):
    draws = drawn(1)
    labels = reference.canonical(np.random.default_rng(1).integers(5, size=14))
    merges = pc.cluster_merges(draws, labels, loss=loss, progressbar=False)
    numbers = merges.table["n_clusters"].values
    assert numbers.tolist() == list(range(labels.max() + 1, 0, -1))
    held = {k: set(np.flatnonzero(labels == k)) for k in range(labels.max() + 1)}
    for made, (before, k) in enumerate(pairwise(numbers), labels.max() + 1):
        left, found = (merges.partitions.sel(n_clusters=number).values for number in (before, k))
        value = float(merges.table["expected_loss"].sel(n_clusters=k))
        assert value == pytest.approx(expected(draws, found, loss), abs=1e-12)
        unions = [np.where(left == j, i, left) for j in range(before) for i in range(j)]
        assert value == pytest.approx(min(expected(draws, union, loss) for union in unions), abs=1e-12)
        first, second = (int(merges.table[name].sel(n_clusters=k)) for name in ("first", "second"))
        held[made] = held.pop(first) | held.pop(second)
        assert {frozenset(np.flatnonzero(found == c)) for c in range(k)} == {frozenset(m) for m in held.values()}
        np.testing.assert_array_equal(found, reference.canonical(found))


def test_a_result_is_merged_under_its_own_loss_with_errors_of_losses_and_of_differences():
    draws = drawn(4)
    best = pc.consensus_partition(draws, loss="binder", n_clusters=3, random_seed=1).with_names(["a", "b", "c"])
    merges = pc.cluster_merges(draws, best)
    assert merges.loss == best.loss and merges.names == ("a", "b", "c") and merges.n_draws == 20
    assert merges.table["expected_loss"][0] == pytest.approx(best.expected_loss)
    found = pc.expected_loss(draws, merges.partitions.values, loss="binder")
    losses = found["expected_loss"].values
    np.testing.assert_allclose(merges.table["mcse"], found["mcse"])
    np.testing.assert_allclose(merges.table["difference"], losses - losses[0], atol=1e-14)
    assert merges.table["difference_mcse"][0] == 0 and np.all(merges.table["difference_mcse"][1:] > 0)
    text = repr(pc.cluster_merges(draws, np.arange(14) % 4))
    assert "ClusterMerges: 4 clusters" in text and "VI, bits" in text


def test_a_matrix_gives_what_its_draws_give():
    draws, labels = drawn(6), np.arange(14) % 5
    pairs = pc.as_pair_similarity(draws)
    for loss in ("binder", *partition_losses.PAIR_LOSSES):
        one, other = (pc.cluster_merges(source, labels, loss=loss) for source in (draws, pairs))
        np.testing.assert_array_equal(one.partitions, other.partitions)
        np.testing.assert_allclose(one.table["expected_loss"], other.table["expected_loss"], atol=1e-13)
        values = other.table["expected_loss"].values
        np.testing.assert_allclose(other.table["difference"], values - values[0], atol=1e-15)
        assert other.table["mcse"].isnull().all() and other.n_draws is None
    assert pc.cluster_merges(pairs, labels).loss == pc.binder()
    check(lambda x: pc.cluster_merges(x, labels, loss="vi"), pairs, ValueError, ["'vi'", "posterior draws", "matrix"])


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        merges = pc.cluster_merges(draws, draws[0], loss="nid")
        assert merges.table.sizes["n_clusters"] == len(np.unique(draws[0]))
        assert np.isfinite(merges.table["expected_loss"]).all()
        merges.plot().figure.canvas.draw()
        plt.close("all")


def test_bars_of_the_tree_are_losses_and_no_two_branches_cross(rng):
    truth = np.arange(40) % 7
    merges = pc.cluster_merges(np.where(rng.random((30, 40)) < 0.15, rng.integers(7, size=(30, 40)), truth), truth)
    losses = merges.table["expected_loss"].values
    assert np.all(np.diff(losses) > 0)  # otherwise branches may cross
    ax = merges.plot()
    bars = np.array([path.vertices for path in ax.collections[0].get_paths()])
    leaves = [int(label.get_text().split("\n")[0]) for label in ax.get_xticklabels()]
    at, height = [[leaves.index(k)] for k in range(7)], [losses[0]] * 7
    joined = merges.table[["first", "second"]].to_array().values.T[1:]
    for bar, loss, (first, second) in zip(bars, losses[1:], joined, strict=True):
        np.testing.assert_allclose(bar[:, 1], [height[first], loss, loss, height[second]])
        at.append(sorted(at[first] + at[second]))
        height.append(loss)
        assert at[-1][-1] - at[-1][0] == len(at[-1]) - 1
    assert ax.get_ylabel() == "expected VI (bits)"
    plt.close("all")
