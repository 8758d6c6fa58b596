from functools import partial
from itertools import combinations

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.search.local_search import OnDraws
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.catalogue.results import assert_equal
from tests.helpers import array, press_ctrl_c, scored_pairs

GRID = {"binder": [0.1, 0.3, 0.5, 0.6, 0.9], "vi": [0.2, 0.7, 1.0, 1.1, 1.7]}
DEFINITION = {"binder": reference.binder, "vi": reference.vi}


def find(draws, loss, values=None, **options):
    return pc.loss_path(draws, loss=loss, values=values, random_seed=1, progressbar=False, **options)


def pairs_together(labels):
    return sum(size * (size - 1) // 2 for size in np.bincount(labels))


def assert_is_a_path_of_optima(path, draws, loss, weights=None):
    """Each partition of least expected loss at its value, by enumeration, and every number as defined."""
    previous = None
    for value, a in zip(path.table[path.parameter].values, path.table["a"].values, strict=True):
        assert a == pytest.approx(2 * (1 - value) if loss == "binder" else value)
        step = path.table.sel({path.parameter: value})
        labels = path.partitions.sel({path.parameter: value}).values
        np.testing.assert_array_equal(labels, reference.canonical(labels))
        at_a = partial(DEFINITION[loss], a=a)
        expected = reference.expected(labels, draws, at_a, weights)
        assert expected == pytest.approx(reference.least_expected(draws, at_a, weights), abs=1e-12)
        assert float(step["expected_loss"]) == pytest.approx(expected, abs=1e-12)
        for name, definition in DEFINITION.items():
            expected = reference.expected(labels, draws, definition, weights)
            assert float(step[f"expected_{name}"]) == pytest.approx(expected, abs=1e-12)
        assert int(step["n_clusters"]) == len(set(labels.tolist()))
        distance = np.nan if previous is None else reference.vi(labels, previous)
        assert float(step["distance_to_previous"]) == pytest.approx(distance, abs=1e-12, nan_ok=True)
        previous = labels


@pytest.mark.parametrize("loss", GRID)
@pytest.mark.parametrize(("method", "weighted"), [("enumeration", False), ("greedy", True)])
def test_path_of_optima(rng, loss, method, weighted):
    draws, weights = noisy_draws(rng, 20, 6, 3, 0.4), rng.exponential(size=20) if weighted else None
    path = find(pc.as_partition_draws(draws, weights=weights), loss, GRID[loss], method=method)
    assert_is_a_path_of_optima(path, draws, loss, weights)


@pytest.mark.parametrize("kind", ["hard", "soft", "similarities", "scored pairs"])
@pytest.mark.parametrize("loss", GRID)
def test_precision_and_recall_as_defined(rng, kind, loss):
    draws = pc.as_partition_draws(noisy_draws(rng, 20, 6, 3, 0.4))
    if kind == "soft":
        draws = pc.as_allocation_probabilities(rng.dirichlet([0.3] * 3, size=(20, 6)))
    similarity = np.asarray(pc.posterior_similarity_matrix(draws))
    if kind == "similarities":
        draws = pc.as_pair_similarity(similarity)
    if kind == "scored pairs":
        similarity = np.where(similarity < 0.3, 0.05, similarity)
        draws = scored_pairs(6, {(i, j): similarity[i, j] for i, j in combinations(range(6), 2)}, 0.05)
    if draws.n_draws is None and loss == "vi":
        with pytest.raises(ValueError, match="loss 'vi' needs posterior draws"):
            find(draws, loss)
        return
    path = find(draws, None if draws.n_draws is None else loss, [0.1, 0.5, 0.9])
    one, other = np.triu_indices(6, 1)
    rows = path.partitions.values, path.table["precision"].values, path.table["recall"].values
    for labels, precision, recall in zip(*rows, strict=True):
        joined = labels[one] == labels[other]
        values = similarity[one, other]
        expected = values[joined].mean() if joined.any() else np.nan
        assert precision == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert recall == pytest.approx(values[joined].sum() / values.sum(), abs=1e-9)
    unknown = draws.n_draws is None
    assert path.table[["mcse", "expected_vi"]].isnull().all().to_array().values.tolist() == [unknown, unknown]
    again = pc.results.LossPath.from_dataset(path.to_dataset())
    assert_equal(again, path)
    assert len(path.plot().figure.axes) == 2 + unknown


@pytest.mark.parametrize("loss", GRID)
def test_path_of_degenerate_draws(loss):
    for draws in DEGENERATE.values():
        assert_is_a_path_of_optima(find(draws, loss, GRID[loss]), draws, loss)


@pytest.mark.parametrize("loss", GRID)
def test_path_is_consistent_though_searches_miss_the_optimum(loss):
    """One careless search a value: what one finds serves all others too, and the path is monotone as optima are."""
    draws = noisy_draws(np.random.default_rng(2), 30, 40, 6, 0.5)
    found = []

    def careless(draws, loss, task):
        found.append(draws.labels[task.rng.integers(draws.n_draws)] % task.rng.integers(1, 7))
        return Candidate(found[-1])

    path = find(draws, loss, np.repeat(GRID[loss], 4) + np.tile([0, 0.01, 0.02, 0.03], 5), method=careless)
    for i, a in enumerate(path.table["a"].values):
        losses = pc.expected_loss(draws, found, loss=getattr(pc, loss)(a))["expected_loss"].values
        assert float(path.table["expected_loss"][i]) == pytest.approx(losses.min(), abs=1e-12)
        own = pc.expected_loss(draws, path.partitions[i].values, loss=getattr(pc, loss)(a))
        assert float(path.table["mcse"][i]) == pytest.approx(float(own["mcse"]), rel=1e-9)
    falling = {"binder": pairs_together, "vi": reference.entropy}[loss]
    assert np.all(np.diff([falling(labels) for labels in path.partitions.values]) <= 1e-12)
    assert np.unique(path.partitions.values, axis=0).shape[0] > 1


def test_a_partition_of_its_own_value_is_kept_where_another_is_as_good():
    draws = DEGENERATE["one cluster or singletons"]  # at tau = 1/2 all partitions are equally good
    by_name = {"binder(a=1.2)": [0, 0, 0, 0], "binder": [0, 0, 1, 1], "binder(a=0.8)": [0, 1, 2, 3]}
    path = find(draws, "binder", [0.4, 0.5, 0.6], method=lambda _, loss, __: Candidate(by_name[loss.name]))
    np.testing.assert_array_equal(path.table["n_clusters"], [1, 2, 4])


def test_values_are_sorted_or_hold_the_default_and_options_reach_the_search():
    draws = noisy_draws(np.random.default_rng(4), 10, 8, 4, 0.2)
    for loss, dim, default in (("binder", "tau", 0.5), ("VI", "a", 1.0)):
        path, best = find(draws, loss), pc.consensus_partition(draws, loss=loss, method="enumeration")
        assert path.table.sizes[dim] == 19 and path.loss.name == loss.lower()
        assert float(path.table["expected_loss"].sel({dim: default})) == pytest.approx(best.expected_loss, abs=1e-12)
    path = find(draws, "binder", [0.9, 0.1, 0.5, 0.1], max_clusters=2)
    assert path.table["tau"].values.tolist() == [0.1, 0.5, 0.9]
    assert path.table["n_clusters"].max() == 2
    assert find(draws, "vi", 0.6).table.sizes["a"] == 1


def test_path_keeps_the_items_and_shows_its_values_and_where_it_stays():
    z = array([[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]], ("sample", "obs"), obs=list("abcd"))
    path = find(z, "binder", [0.2, 0.21, 0.5, 0.9])
    assert path.partitions.dims == ("tau", "obs") and path.partitions["obs"].values.tolist() == list("abcd")
    text = repr(path)
    assert "LossPath: 4 values of tau from 0.2 to 0.9" in text
    assert "1 to 4" in text and "1 of 3 steps" in text
    assert path.to_dataframe()["a"].tolist() == path.table["a"].values.tolist()


def test_items_may_have_the_name_of_the_parameter():
    for name in ("tau", "a"):
        draws = pc.as_partition_draws(array(np.zeros((1, 3, 4), int), ("chain", "draw", name)))
        path = pc.loss_path(draws, loss="binder", values=[0.3, 0.5], random_seed=1)
        own = f"result_{name}" if name == "tau" else "tau"
        assert path.parameter == "tau" and path.partitions.dims == (own, name)
        assert ("result_a" in path.partitions.coords) == (name == "a")
        assert_equal(type(path).from_dataset(path.to_dataset()), path)


def test_ctrl_c_ends_all_searches_and_the_path_says_which_values_are_missing(monkeypatch):
    draws = noisy_draws(np.random.default_rng(3), 20, 20, 4, 0.4)
    whole = find(draws, "vi", GRID["vi"])
    assert whole.stopped == "" and whole.missing == () and "Ctrl-C" not in repr(whole)
    calls = press_ctrl_c(monkeypatch, OnDraws, "_descend", 40)
    with pytest.warns(UserWarning, match="interrupted"):
        path = find(draws, "vi", GRID["vi"])
    assert len(calls) < 60 and path.stopped == "interrupted" and path.missing
    assert [*path.table["a"].values, *path.missing] == GRID["vi"] and path.partitions.sizes["a"] < 5
    assert f"values not searched: {path.missing[0]}" in " ".join(repr(path).split()) and "Ctrl-C" in repr(path)
    again = pc.results.LossPath.from_dataset(path.to_dataset())
    assert (again.stopped, again.missing) == (path.stopped, path.missing)
