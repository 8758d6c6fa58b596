"""In which draws clusters exist, are one, or are split: by loops over sets, and by examples with known shares."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posterior_consensus as pc

PARTITION = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])


def sets_of(labels):
    """The clusters of a label vector as sets of items; -1 is noise, in none."""
    return [frozenset(np.flatnonzero(labels == k).tolist()) for k in dict.fromkeys(labels.tolist()) if k != -1]


def clusterwise(partition, draws):
    """Best Jaccard similarities as fpc's clusterboot has them, parts of clusters, and which two are one; by sets."""
    own = sets_of(partition)
    best, parts = np.zeros((len(own), len(draws))), np.zeros((2, len(own), len(draws)))
    one = np.zeros((len(own), len(own), len(draws)), bool)
    for t, draw in enumerate(draws):
        clusters = sets_of(draw)
        for k, cluster in enumerate(own):
            best[k, t] = max((len(cluster & other) / len(cluster | other) for other in clusters), default=0.0)
            shares = sorted((len(cluster & other) / len(cluster) for other in clusters), reverse=True)
            parts[:, k, t] = [*shares, 0.0, 0.0][:2]
            for m, second in enumerate(own):
                homes = [len(one & other) / len(one) for other in clusters for one in (cluster, second)]
                one[k, m, t] = k != m and any(min(pair) > 0.5 for pair in zip(homes[::2], homes[1::2], strict=True))
    return best, parts, one


def draws_of(rng, n_draws, kind):
    """Noisy copies of the partition, in some of which its second and third clusters are one."""
    labels = np.tile(PARTITION, (n_draws, 1))
    labels[rng.random(n_draws) < 0.3] = np.where(PARTITION == 2, 1, PARTITION)
    labels = np.where(rng.random(labels.shape) < 0.2, rng.integers(5, size=labels.shape), labels)
    return np.where(rng.random(labels.shape) < 0.2, -1, labels) if kind == "noise" else labels


@pytest.mark.parametrize("kind", ["chains", "weights", "runs", "noise"])
@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_a_loop_over_sets(kind, seed):
    rng = np.random.default_rng(seed)
    labels = draws_of(rng, 40, kind)
    weights = rng.exponential(size=40) if kind in ("weights", "noise") else np.ones(40)
    runs = {"runs": {}, "noise": {"noise": -1}}
    draws = pc.as_runs(list(labels), **runs[kind]) if kind in runs else pc.as_partition_draws(labels)
    draws = replace(draws, samples=draws.samples.weighted(weights))
    found = pc.cluster_stability(draws, PARTITION)
    weights = weights / weights.sum()
    best, parts, one = clusterwise(PARTITION, labels)
    table = found.to_dataframe()
    assert_allclose(table["jaccard"], best @ weights)
    assert_allclose(table["found"], (best > 0.75) @ weights)
    is_split = parts[0] <= 0.75
    assert_allclose(table["split"], is_split @ weights)
    for name, part in zip(("largest_part", "second_part"), parts, strict=True):
        shares = [
            np.average(own, weights=weights * at) if at.any() else np.nan
            for own, at in zip(part, is_split, strict=True)
        ]
        assert_allclose(table[name], shares)
    shares = one @ weights
    assert_allclose(table["joined"], shares.max(axis=1))
    assert all(shares[k, m] == pytest.approx(shares[k].max()) for k, m in table["joined_with"].dropna().items())
    assert not (best[is_split] > 0.75).any()  # none is there and split


@pytest.mark.parametrize("noise", [None, -1])
@pytest.mark.parametrize("seed", range(3))
def test_of_runs_that_lack_items_a_cluster_is_what_they_have_of_it(seed, noise):
    rng = np.random.default_rng(seed)
    labels = draws_of(rng, 40, "noise" if noise else "runs").astype(float)
    labels[rng.random(labels.shape) < 0.3] = np.nan
    runs = pc.as_runs(list(labels), missing=np.nan, noise=noise)
    table = pc.cluster_stability(runs, PARTITION).to_dataframe()
    for k in range(4):
        best, joined, split = [], [], []
        for run in labels:
            there = ~np.isnan(run)
            if (there & (PARTITION == k)).any():
                own = PARTITION[there]
                found, parts, one = clusterwise(own, [run[there].astype(int)])
                at = list(dict.fromkeys(own.tolist()))
                best.append(found[at.index(k), 0])
                split.append(parts[0, at.index(k), 0] <= 0.75)
                joined.append({m: one[at.index(k), place, 0] for place, m in enumerate(at)})
        row = table.loc[k]
        assert_allclose(
            row[["jaccard", "found", "split"]].astype(float),
            [np.mean(best), np.mean(np.array(best) > 0.75), np.mean(split)],
        )
        if row["joined_with"] is not None:
            assert_allclose(row["joined"], np.mean([one.get(row["joined_with"], False) for one in joined]))


def planted(n_runs=20):
    """Runs of 700 cells in 40% of which clusters of 145 and 73 are one; one of 82 is in 30% of the runs, else split."""
    truth = np.repeat([0, 1, 2, 3], [400, 145, 73, 82])
    labels = np.tile(truth, (n_runs, 1))
    labels[: int(0.4 * n_runs), truth == 2] = 1
    labels[int(0.3 * n_runs) :, 620:660] = 4
    return labels, truth


def test_clusters_that_always_exist_are_one_or_are_split_have_the_shares_with_which_they_were_planted():
    labels, truth = planted()
    table = pc.cluster_stability(pc.as_runs(list(labels)), truth).to_dataframe()
    assert table["found"].tolist() == [1.0, 0.6, 0.6, 0.3] and table["split"].tolist() == [0, 0, 0, 0.7]
    assert table["joined_with"].tolist() == [None, 2, 1, None] and table["joined"].tolist() == [0, 0.4, 0.4, 0]
    assert_allclose(table["jaccard"], [1, 0.6 + 0.4 * 145 / 218, 0.6 + 0.4 * 73 / 218, 0.3 + 0.7 * 42 / 82])
    assert_allclose(table.loc[3, ["largest_part", "second_part"]].astype(float), [42 / 82, 40 / 82])
    assert 0.4 + 2 / 19 == pytest.approx(0.4174 * (1 + 4 / 19), abs=1e-4)  # Agresti and Coull, of 19 effective runs
    assert table["joined_mcse"][1] == pytest.approx(np.sqrt(0.4174 * 0.5826 / 19), abs=1e-4)
    assert 0 < table["found_mcse"][0] < table["found_mcse"][1]  # a run without it may come


def test_an_error_of_slow_chains_is_larger_than_that_of_independent_draws(rng):
    joined = np.repeat(rng.random((4, 8)) < 0.4, 50, axis=1)
    labels = np.where(joined[..., np.newaxis], [0, 0, 0, 0, 1], [0, 0, 1, 1, 2])
    slow = pc.cluster_stability(labels, [0, 0, 1, 1, 2]).table
    shuffled = pc.cluster_stability(rng.permutation(labels.reshape(-1, 5)), [0, 0, 1, 1, 2]).table
    assert slow["joined"].values[0] == joined.mean() == shuffled["joined"].values[0]
    assert slow["joined_mcse"].values[0] > 4 * shuffled["joined_mcse"].values[0]


def test_chance_is_the_mean_over_all_permutations_of_the_items():
    draw, partition = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 0, 0, 1, 1])
    found = pc.cluster_stability([draw], partition).table["chance"].values
    best, *_ = clusterwise(partition, [draw[list(order)] for order in permutations(range(6))])
    assert found == pytest.approx(best.mean(axis=1), abs=0.04)
    assert pc.cluster_stability([draw], np.zeros(6)).table["chance"].values == pytest.approx(0.5)


def test_chance_of_runs_leaves_out_noise():
    runs = pc.as_runs([np.array([0, -1, -1, -1, -1, -1])] * 5, noise=-1)
    found = pc.cluster_stability(runs, np.array([0, 1, 1, -1, -1, -1])).table
    assert found["found"].values.tolist() == [1, 0] and found["split"].values.tolist() == [0, 1]
    assert found["chance"].values == pytest.approx([1 / 6, 1 / 3 / 2], abs=0.06)  # by chance, it is one of the items


def test_columns_of_items_have_the_share_of_their_cluster_and_none_for_noise():
    runs = pc.as_runs([np.array([0, 0, 0, 1, 1, -1])] * 3 + [np.array([0, 0, 0, 0, 0, -1])], noise=-1)
    found = pc.cluster_stability(runs, np.array([0, 0, 0, 1, 1, -1]))
    (columns,) = found._annotations().values()
    assert columns.columns["found"] == pytest.approx([0.75] * 5 + [np.nan], nan_ok=True)


def test_a_partition_of_noise_has_no_cluster():
    runs = pc.as_runs([np.full(4, -1), np.array([0, 0, -1, -1])] * 2, noise=-1)
    found = pc.cluster_stability(runs, np.full(4, -1))
    assert found.to_dataframe().empty and found.pairs().empty and "0 clusters" in repr(found)


def test_draws_without_weight_do_not_count():
    labels, weights = [[0, 0, 1, 1]] * 5 + [[0, 0, 0, 0]] * 2 + [[0, 1, 2, 3]], [1] * 5 + [0] * 3
    table = pc.cluster_stability(pc.as_partition_draws(labels, weights=weights), labels[0]).to_dataframe()
    assert table["found"].tolist() == [1, 1] and table["joined_with"].tolist() == [None, None]
    assert table[["joined", "split"]].to_numpy().tolist() == [[0, 0], [0, 0]] and table["largest_part"].isna().all()


def test_pairs_are_named_once_the_most_frequent_first():
    labels = [[0, 0, 1, 1, 2, 2]] * 5 + [[0, 0, 0, 0, 2, 2]] * 3 + [[0, 0, 1, 1, 1, 1]] * 2
    found = pc.cluster_stability(labels, labels[0])
    assert found.pairs()[["first", "second", "share"]].to_numpy().tolist() == [[0, 1, 0.3], [1, 2, 0.2]]
    assert found.pairs(0.2)["share"].tolist() == [0.3]


@pytest.mark.parametrize("kind", ["runs", "weights"])
def test_the_order_of_runs_does_not_matter(kind, rng):
    labels = draws_of(rng, 30, "noise")
    weights = np.ones(30) if kind == "runs" else rng.exponential(size=30)
    order = rng.permutation(30)
    runs = pc.as_runs(list(labels), noise=-1)
    runs = replace(runs, samples=runs.samples.weighted(weights))
    one, other = (pc.cluster_stability(given, PARTITION).table for given in (runs, runs.take(order)))
    assert one.identical(other)


def test_allocation_probabilities_are_taken_by_their_sampled_labels(rng):
    soft = pc.as_allocation_probabilities(rng.dirichlet([0.2] * 3, (2, 40, 6)))
    labels, partition = pc.as_partition_draws(soft.labels.reshape(2, 40, 6)), np.array([0, 0, 1, 1, 2, 2])
    assert pc.cluster_stability(soft, partition).table.equals(pc.cluster_stability(labels, partition).table)


def test_similarities_alone_are_refused():
    with pytest.raises(ValueError, match="draws"):
        pc.cluster_stability(pc.as_pair_similarity(np.eye(3)), [0, 0, 1])


def test_a_summary_of_runs_says_which_two_clusters_are_one_and_which_is_split():
    labels, truth = planted()
    summary = pc.summarize(pc.as_runs(list(labels)), loss="vi", starts=[truth], random_seed=1, progressbar=False)
    assert summary.partition.cluster_sizes.values.tolist() == [400, 145, 73, 42, 40]
    assert summary.clusters.pairs(0.1)[["first", "second", "share"]].to_numpy().tolist() == [[1, 2, 0.4], [3, 4, 0.3]]
    said = "1 and 2 are one in 40% of the runs (SE 11%); 3 and 4 are one in 30% of the runs (SE 11%)"
    printed = " ".join(repr(summary).split())
    assert f"joined clusters {said}" in printed and "found in 60%" in printed
    assert all(f"Clusters {said}." in text for text in (" ".join(summary.findings()), summary.methods_text()))
