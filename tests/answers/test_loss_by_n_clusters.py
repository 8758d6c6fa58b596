"""The least expected loss for each number of clusters is that of enumeration, and its table says how sure it is."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.search.local_search import OnDraws
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws
from tests.helpers import GOOD, check, check_all, press_ctrl_c

QUIET = {"random_seed": 1, "progressbar": False}
ALL_OF_SIX = np.concatenate(list(enumerate_partitions(6)))
LOSSES = {
    "binder": reference.binder,
    "vi": reference.vi,
    "nvi": reference.nvi,
    "one_minus_ari": reference.one_minus_ari,
}


def least_of(losses):
    """Least of the losses of all partitions of six items, for each number of clusters."""
    sizes = ALL_OF_SIX.max(axis=1) + 1
    return np.array([losses[sizes == k].min() for k in range(1, 7)])


@pytest.mark.parametrize(("loss", "weighted"), list(zip(LOSSES, [False, True, True, False], strict=True)))
def test_losses_are_those_of_enumeration(rng, loss, weighted):
    z, weights = random_draws(rng, 12, 6, 4), rng.exponential(size=12) if weighted else None
    draws = pc.as_partition_draws(z, weights=weights)
    found = pc.loss_by_n_clusters(draws, loss=loss, n_clusters=[*range(6, 0, -1), 2], **QUIET)
    expected = least_of(np.array([reference.expected(p, z, LOSSES[loss], weights) for p in ALL_OF_SIX]))
    np.testing.assert_allclose(found.table["expected_loss"], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found.partitions.max("item") + 1, np.arange(1, 7))
    assert expected.min() == pytest.approx(expected[found.best - 1], abs=1e-12)
    shares = np.bincount([len(set(draw)) for draw in z], weights, minlength=7)[1:]
    np.testing.assert_allclose(found.table["probability"], shares / shares.sum(), atol=1e-12)


@pytest.mark.parametrize("loss", ["binder", "pear", "vi_lower_bound"])
def test_a_matrix_alone_gives_what_enumeration_gives(rng, loss):
    z = random_draws(rng, 12, 6, 3)
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(z))
    found = pc.loss_by_n_clusters(pairs, loss=loss, n_clusters=range(1, 7), **QUIET)
    of_all = pc.expected_loss(pairs, ALL_OF_SIX, loss=loss)["expected_loss"].values
    np.testing.assert_allclose(found.table["expected_loss"], least_of(of_all), rtol=1e-9, atol=1e-12)
    for column in ("mcse", "difference_mcse", "probability", "probability_mcse"):
        assert np.isnan(found.table[column]).all()
    assert found.n_draws is None and "similarities of pairs alone" in repr(found)


def test_numbers_that_are_looked_at_by_default():
    z = np.array([[0, 0, 0, 1, 1, 1, 2, 2]] * 150 + [[0, 0, 0, 1, 1, 1, 2, 3]] * 50 + [[0, 1, 2, 3, 4, 5, 6, 7]])
    weighted = pc.as_partition_draws(z, weights=np.where(z.max(axis=1) == 7, 20.0, 1.0))
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(z))
    apart = [[0, 0, 0, 0, 0, 0]] * 3 + [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 3]]
    for draws, numbers in (
        (z, range(2, 6)),  # one draw of 201 has eight
        (weighted, range(2, 9)),
        (pairs, range(1, 9)),
        (apart, range(1, 7)),
    ):
        found = pc.loss_by_n_clusters(draws, loss="binder", **QUIET)
        np.testing.assert_array_equal(found.table["n_clusters"], numbers)


def test_errors_are_of_paired_differences_and_drawn(posterior_tree):
    found = pc.loss_by_n_clusters(posterior_tree, n_clusters=[1, 2, 3, 5], **QUIET)
    partitions = dict(zip("1235", found.partitions.values, strict=True))
    compared = pc.compare_partitions(posterior_tree, partitions, loss="vi")
    assert compared.best == str(found.best)
    for column in ("expected_loss", "mcse", "difference", "difference_mcse"):
        expected = compared.to_dataframe().loc[list("1235"), column]
        np.testing.assert_allclose(found.table[column], expected, rtol=1e-12, atol=1e-15)
    assert repr(found).startswith("LossByNClusters: 1 to 5 clusters\n  least ") and found.best in found.within_error
    assert found.partitions.dims[1] == "obs" and found.to_dataframe().index.name == "n_clusters"
    upper, lower = found.plot()
    line = upper.containers[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 5])
    np.testing.assert_array_equal(line.get_ydata(), found.table["expected_loss"])
    (bars,) = upper.containers[0].lines[2]
    lengths = np.ptp([segment[:, 1] for segment in bars.get_segments()], axis=1)
    np.testing.assert_allclose(lengths, 4 * found.table["difference_mcse"], rtol=1e-9, atol=1e-12)
    assert [bar.get_height() for bar in lower.patches] == found.table["probability"].values.tolist()
    assert " ".join(upper.get_ylabel().split()) == "expected VI (bits) ± 2 MCSE of difference to ring"
    plt.close("all")
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(posterior_tree))
    (only,) = pc.loss_by_n_clusters(pairs, loss="binder", n_clusters=[2, 3], **QUIET).plot()
    assert only.get_ylabel() == "expected Binder loss" and only.get_xlabel() == "number of clusters"


def test_bad_arguments():
    for argument, *cases in [
        ("n_clusters", (3, TypeError, "range(1, 10); got 3"), ("all", TypeError), ([1.5], TypeError, "got 1.5")),
        ("n_clusters", ([], ValueError, "got none"), ([0, 1], ValueError, "got 0"), ([1, 5], ValueError, "4; got 5")),
        ("loss", ("zz", ValueError)),
        ("n_starts", (0, ValueError, "at least 1; got 0")),
        ("random_seed", ("a", TypeError, "from 0")),
    ]:
        cases = [(*case, f"`{argument}`") for case in cases]
        check_all(lambda value, name=argument: pc.loss_by_n_clusters(GOOD, **{name: value}), cases)
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(GOOD))
    check(lambda x: pc.loss_by_n_clusters(x, loss="vi"), pairs, ValueError, ["'vi'", "posterior draws"])


@pytest.mark.parametrize(("at", "numbers"), [(10, [2, 3, 4, 5]), (60, [2, 3, 4, 5]), (10, None)])
def test_ctrl_c_ends_all_searches_and_the_table_says_which_are_missing(at, numbers, monkeypatch):
    draws = noisy_draws(np.random.default_rng(3), 20, 20, 4, 0.4)
    calls = press_ctrl_c(monkeypatch, OnDraws, "_descend", at)
    with pytest.warns(UserWarning, match="interrupted"):
        found = pc.loss_by_n_clusters(draws, n_clusters=numbers, **QUIET)
    assert len(calls) < at + 20 and found.stopped == "interrupted"
    assert numbers is None or sorted([*found.table["n_clusters"].values, *found.missing]) == numbers
    assert "Ctrl-C" in repr(found) and all(f"{k}" in repr(found) for k in found.missing)
    again = pc.results.LossByNClusters.from_dataset(found.to_dataset())
    assert (again.stopped, again.missing) == (found.stopped, found.missing)
    if found.missing:
        assert f"numbers not searched: {found.missing[0]}" in " ".join(repr(found).split())


def test_ctrl_c_before_a_number_was_found_is_raised(monkeypatch):
    press_ctrl_c(monkeypatch, OnDraws, "_descend", 1)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        pc.loss_by_n_clusters(GOOD, n_clusters=[4], **QUIET)


def test_numbers_that_items_outside_the_noise_do_not_form_are_left_out():
    """Most runs call all items but three noise, so that no partition has four clusters; a single run has four."""
    runs = pc.as_runs([[0, 1, 2, -1, -1, -1]] * 6 + [[0, 1, 2, 3, 3, -1]], noise=-1)
    found = pc.loss_by_n_clusters(runs, **QUIET)
    assert found.missing == (4, 5) and found.table["n_clusters"].values.tolist() == [2, 3]
    assert "not found" in repr(found) and "4, 5" in repr(found)
    with pytest.raises(ValueError, match="`n_clusters`.*4, 5"):
        pc.loss_by_n_clusters(runs, n_clusters=[4, 5], **QUIET)
