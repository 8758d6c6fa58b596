"""One tree over layers: the least sum of expected losses, its nodes and their support, and what is refused."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from tests import reference

QUIET = {"random_seed": 1, "progressbar": False}
LOSSES = {
    "vi": (pc.vi(), reference.vi),
    "binder": (pc.binder(), reference.binder),
    "costs": (pc.vi(a=0.6), partial(reference.vi, a=0.6)),
}


def refines(fine, coarse):
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))


def layers_of(labels, **options):
    return pc.as_layers({name: pc.as_runs(own) for name, own in labels.items()}, **options)


def random_layers(rng, n_items, n_layers):
    """Runs that find groups, fewer in the first layers, with more or fewer wrong labels."""
    made = {}
    for k in range(n_layers):
        wrong = rng.choice([0.1, 0.3, 0.6])
        shape = rng.integers(3, 8), n_items
        made[k] = np.where(
            rng.random(shape) < wrong, rng.integers(k + 2, size=shape), rng.integers(k + 2, size=n_items)
        )
    return made


def least_nested(labels, loss):
    """The least sum of expected losses over all chains of partitions of which each refines the one before."""
    every = [np.array(one) for one in reference.partitions(next(iter(labels.values())).shape[1])]
    finer = [[refines(fine, coarse) for fine in every] for coarse in every]
    losses = [np.array([reference.expected(one, own, loss) for one in every]) for own in labels.values()]
    least = losses[-1]
    for own in losses[-2::-1]:
        least = own + [least[row].min() for row in np.array(finer)]
    return least.min()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_sum_is_the_least_over_all_nested_partitions(seed, loss):
    labels = random_layers(np.random.default_rng(seed), 5, 3)
    tree = pc.consensus_tree(layers_of(labels, ordered=True), loss=loss[0], **QUIET)
    labels = {name: labels[name] for name in tree.layers}
    assert tree.expected_loss == pytest.approx(least_nested(labels, loss[1]), rel=1e-9)
    for coarse, fine in zip(tree.partitions.values, tree.partitions.values[1:], strict=False):
        assert refines(fine, coarse)


@pytest.mark.slow
def test_sum_is_the_least_for_seven_items():
    for seed in range(3):
        labels = random_layers(np.random.default_rng(seed), 7, 3)
        tree = pc.consensus_tree(layers_of(labels, ordered=True), **QUIET)
        labels = {name: labels[name] for name in tree.layers}
        assert tree.expected_loss == pytest.approx(least_nested(labels, reference.vi), rel=1e-9)


def planted(rng, n_items=400, wrong=0.05):
    """Three nested partitions into 2, 4 and 8 clusters, and 10 runs of each in which some items are elsewhere."""
    truth = {k: np.arange(n_items) * k // n_items for k in (2, 4, 8)}
    labels = {}
    for k, own in truth.items():
        shape = 10, n_items
        labels[k] = np.where(rng.random(shape) < wrong, rng.integers(k, size=shape), own)
    return truth, labels


def test_planted_hierarchy_is_found_whatever_the_order_of_the_layers():
    truth, labels = planted(np.random.default_rng(1))
    for names in ([2, 4, 8], [8, 2, 4]):
        tree = pc.consensus_tree(layers_of({f"k{k}": labels[k] for k in names}), **QUIET)
        assert tree.layers == ["k2", "k4", "k8"]
        for name, own in zip(tree.layers, truth.values(), strict=True):
            assert pc.partition_loss(tree.partitions.sel(layer=name), own) == 0
        assert tree.excess == pytest.approx(0, abs=1e-9)


def test_layers_in_an_order_are_reversed_if_clusters_become_fewer():
    _, labels = planted(np.random.default_rng(1))
    tree = pc.consensus_tree(layers_of({1 / k: own for k, own in labels.items()}), **QUIET)
    assert tree.layers == [1 / 2, 1 / 4, 1 / 8]


RUNS = {0.5: [[0, 0, 0, 0, 1, 1]] * 4, 1.0: [[0, 0, 1, 1, 2, 2]] * 3 + [[0, 0, 0, 1, 2, 2]]}


@pytest.fixture(scope="module")
def tree():
    return pc.consensus_tree(layers_of({name: np.array(runs) for name, runs in RUNS.items()}), **QUIET)


def test_nodes_are_sets_of_items_with_their_layers(tree):
    # 0: the four first items; 1 and 2: two of them each; 3: the two last ones, in both layers
    assert tree.partitions.values.tolist() == [[0, 0, 0, 0, 3, 3], [1, 1, 2, 2, 3, 3]]
    expected = {"parent": [-1, 0, 0, -1], "size": [4, 2, 2, 2], "first": [0, 1, 1, 0], "last": [0, 1, 1, 1]}
    assert {name: tree.nodes[name].values.tolist() for name in expected} == expected
    assert tree.to_newick() == "((1:1,2:1)0:1,3:2);"
    assert tree.to_dataframe()["first"].tolist() == [0.5, 1.0, 1.0, 0.5]


def test_layers_of_one_cluster_are_one_node():
    tree = pc.consensus_tree(layers_of({"a": np.zeros((4, 3), int), "b": np.zeros((4, 3), int)}), **QUIET)
    assert tree.partitions.values.tolist() == [[0, 0, 0]] * 2
    assert tree.nodes[["parent", "size", "last"]].to_array().values.ravel().tolist() == [-1, 3, 1]


def test_support_is_the_mean_jaccard_similarity_to_the_nearest_cluster_of_a_run(tree):
    # in the last run, the nearest cluster to {0, 1} is {0, 1, 2}, to {2, 3} it is {3}
    assert tree.nodes["support"].values == pytest.approx([1, (3 + 2 / 3) / 4, (3 + 1 / 2) / 4, 1])
    assert tree.nodes["share"].values == pytest.approx([1, 3 / 4, 3 / 4, 1])
    losses = [pc.partition_loss(tree.partitions.values[1], run) for run in RUNS[1.0]]
    assert tree.losses["expected_loss"].values == pytest.approx([0, np.mean(losses)])
    assert tree.losses["n_clusters"].values.tolist() == [2, 3]


def test_errors_of_support_are_those_of_means_over_draws():
    labels = random_layers(np.random.default_rng(1), 8, 2)
    runs = pc.consensus_tree(layers_of({name: own[:3].repeat(4, axis=0) for name, own in labels.items()}), **QUIET)
    for node in np.flatnonzero(runs.nodes["last"] > runs.nodes["first"]).tolist():
        of_layers = []
        for row, own in zip(runs.partitions.values, labels.values(), strict=True):
            members = row == node
            best = [
                max((members & (run == k)).sum() / (members | (run == k)).sum() for k in set(run))
                for run in own[:3].repeat(4, axis=0)
            ]
            of_layers.append(best)
        error = np.sqrt(sum(np.var(best, ddof=1) / len(best) for best in of_layers)) / 2
        assert runs.nodes["support_mcse"].values[node] == pytest.approx(error, rel=1e-6)
        assert runs.nodes["support"].values[node] == pytest.approx(np.mean(of_layers))


def test_layers_of_draws_have_the_errors_of_their_chains():
    labels = np.stack([np.array(list(RUNS[name]) * 10)[:16] for name in RUNS], axis=1)
    tree = pc.consensus_tree(pc.as_layers(labels, ordered=True), **QUIET)
    assert tree.partitions.values.tolist() == [[0, 0, 0, 0, 3, 3], [1, 1, 2, 2, 3, 3]]
    best = np.where(np.arange(16) % 4 == 3, 2 / 3, 1.0)
    expected = pc.as_partition_draws(labels[:, 0]).samples.mcse(best)
    assert tree.nodes["support_mcse"].values[1] == pytest.approx(float(expected))


def test_what_nesting_costs_is_proven_by_bounds():
    crossing = {0: np.array([[0, 0, 1, 1]] * 3), 1: np.array([[0, 1, 0, 2]] * 3)}
    tree = pc.consensus_tree(layers_of(crossing, ordered=True), loss="binder", **QUIET)
    assert tree.losses["separate"].values.tolist() == [0, 0]
    assert tree.excess == tree.most_excess == tree.expected_loss > 0
    assert f"at most {tree.most_excess:.3g}" in tree.verdict
    noisy = random_layers(np.random.default_rng(1), 6, 2)
    by_vi = pc.consensus_tree(layers_of(noisy, ordered=True), **QUIET)
    assert np.isnan(by_vi.most_excess) and "proves neither" in by_vi.verdict


def test_given_partitions_are_where_the_search_starts():
    _, labels = planted(np.random.default_rng(1))
    layers = layers_of(labels)
    given = {k: np.arange(400) * k // 400 for k in labels}
    tree = pc.consensus_tree(layers, partitions=given, **QUIET)
    assert tree.losses["n_separate"].values.tolist() == [2, 4, 8]
    assert tree.excess == pytest.approx(0, abs=1e-9)


def test_many_sets_of_items_are_moved_by_those_that_the_partitions_have_in_common(monkeypatch):
    from posterior_consensus.layers import nested_search

    labels = random_layers(np.random.default_rng(2), 60, 3)
    found = pc.consensus_tree(layers_of(labels, ordered=True), **QUIET)
    monkeypatch.setattr(nested_search, "_MOST_ATOMS", 8)
    coarse = pc.consensus_tree(layers_of(labels, ordered=True), **QUIET)
    assert coarse.expected_loss == pytest.approx(found.expected_loss, rel=0.03)
    for coarser, finer in zip(coarse.partitions.values, coarse.partitions.values[1:], strict=False):
        assert refines(finer, coarser)


def test_items_are_paired_by_name_and_columns_go_to_annotations():
    table = pd.DataFrame(np.array(RUNS[0.5]).T, index=list("abcdef"))
    other = pd.DataFrame(np.array(RUNS[1.0]).T, index=list("abcdef"))[::-1]
    tree = pc.consensus_tree(pc.as_layers({"x": pc.as_runs(table), "y": pc.as_runs(other)}), **QUIET)
    assert tree.partitions.sel(item=list("abcdef")).values.tolist() == [[0, 0, 0, 0, 3, 3], [1, 1, 2, 2, 3, 3]]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: pc.consensus_tree(layers_of({0: np.array(RUNS[1.0])})), ["`layers`", "one", "consensus_partition"]),
        (lambda: pc.consensus_tree(layers_of(RUNS_OF_TWO), loss="nvi"), ["`loss`", "'nvi'", "compare_layers"]),
        (lambda: pc.consensus_tree(pc.as_layers({0: NAMED, 1: pc.as_runs(NAMED_TABLE[1:])})), ["`layers`", "6", "5"]),
        (
            lambda: pc.consensus_tree(pc.as_layers({0: NOISY, 1: pc.as_runs(RUNS_OF_TWO[1])})),
            ["`layers`", "noise", "0"],
        ),
        (lambda: pc.consensus_tree(layers_of(RUNS_OF_TWO), partitions=[[0, 0]]), ["`partitions`", "2 layers", "got 1"]),
    ],
)
def test_refusals_name_the_argument_and_the_next_step(call, parts):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, parts))):
        call()


RUNS_OF_TWO = {k: np.array(runs) for k, runs in enumerate(RUNS.values())}
NAMED_TABLE = pd.DataFrame(RUNS_OF_TWO[1].T, index=list("abcdef"))
NAMED = pc.as_runs(NAMED_TABLE)
NOISY = pc.as_runs([[0, 0, 0, 1, 1, -1]] * 3, noise=-1)
