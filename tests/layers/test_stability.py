"""Layers of runs: how stable each is, what random labels would have, and how layers differ."""

from dataclasses import replace
from itertools import combinations, pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import posterior_consensus as pc
from posterior_consensus.diagnostics import groups
from posterior_consensus.diagnostics.chance import expected_joint_sums, loss_without_structure
from posterior_consensus.layers import between_runs, compare
from tests.reference import partitions

QUIET = {"random_seed": 1, "progressbar": False}
RNG = np.random.default_rng(5)


def made(n_runs, n_items=40, k=3, wrong=0.2, rng=RNG):
    """Runs that find k groups, with some wrong labels, whose numbers mean nothing."""
    labels = np.where(
        rng.random((n_runs, n_items)) < wrong, rng.integers(k, size=(n_runs, n_items)), np.arange(n_items) % k
    )
    return np.array([rng.permutation(k)[row] for row in labels])


LABELS = {0.5: made(6, k=2, wrong=0.05), 1.0: made(9), 2.0: made(4, k=5, wrong=0.5)}


def layers_of(labels, **options):
    return pc.as_layers({name: pc.as_runs(own) for name, own in labels.items()}, **options)


@pytest.fixture(scope="module")
def found():
    return pc.compare_layers(layers_of(LABELS), **QUIET)


def mean_loss(pairs, loss="vi"):
    return np.mean([pc.partition_loss(one, other, loss=loss) for one, other in pairs])


def mean_jaccard(partition, runs):
    """Mean over runs and items of the Jaccard similarity of an item's clusters in the partition and in the run."""
    here = np.equal.outer(partition, partition)
    there = [np.equal.outer(run, run) for run in runs]
    return np.mean([(here & one).sum(axis=1) / (here | one).sum(axis=1) for one in there])


def alone(labels):
    """Labels in which each item of noise is a cluster of its own."""
    return np.where(np.asarray(labels) < 0, 100 + np.arange(len(labels)), labels)


@pytest.mark.parametrize("loss", ["vi", "binder", "nvi", "vi(a=0.7)"])
def test_distances_are_means_over_pairs_of_runs(loss):
    record = pc.vi(a=0.7) if "(" in loss else loss
    found = pc.compare_layers(layers_of(LABELS), loss=record, **QUIET)
    for name, runs in LABELS.items():
        pairs = list(permutations(runs, 2))
        own = found.to_dataframe().loc[name]
        assert own["distance"] == pytest.approx(mean_loss(pairs, record), rel=1e-12)
        best = {k: found.partitions[k].labels.values for k in LABELS}
        given = pc.compare_layers(layers_of(LABELS), loss=record, partitions=best, **QUIET).to_dataframe().loc[name]
        best = best[name]
        assert given["to_consensus"] == pytest.approx(mean_loss([(best, run) for run in runs], record), rel=1e-12)
        assert given["agreement"] == pytest.approx(mean_jaccard(best, runs), rel=1e-12)
    for one, other in combinations(LABELS, 2):
        pairs = [(a, b) for a in LABELS[one] for b in LABELS[other]]
        pairs += [pair[::-1] for pair in pairs]
        here = found.distances.sel(layer=one, other_layer=other).to_pandas()
        assert here["distance"] == pytest.approx(mean_loss(pairs, record), rel=1e-12)
        ends = [found.partitions[name].labels for name in (one, other)]
        assert here["consensus_distance"] == pytest.approx(mean_loss([ends], record), rel=1e-12)
        within = found.to_dataframe()["distance"][[one, other]].mean()
        assert here["separation"] == pytest.approx(here["distance"] - within, rel=1e-10)


@pytest.mark.parametrize("loss", ["vi", "binder", "information_distance"])
def test_chance_is_the_mean_over_all_permutations(loss):
    """Of every order of the items of one run, for each pair of runs."""
    runs = np.array([[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1], [0, 1, 2, 2, 2, 3]])
    orders = [list(order) for order in permutations(range(6))]
    pairs = list(combinations(runs, 2))
    expected = [pc.partition_loss(pc.as_partition_draws(one[orders]), other, loss=loss).mean() for one, other in pairs]
    found = pc.compare_layers({"a": pc.as_runs(runs)}, loss=loss, **QUIET).to_dataframe().loc["a"]
    assert found["chance"] == pytest.approx(np.mean(expected), rel=1e-11)
    assert found["stability"] == pytest.approx(1 - found["distance"] / found["chance"], rel=1e-12)


@pytest.mark.parametrize("loss", [pc.vi(), pc.vi(a=0.5), pc.binder(), pc.binder(a=1.6)], ids=str)
def test_loss_without_structure_is_the_least_against_all_permutations(loss):
    every, rng = np.array(list(partitions(5))), np.random.default_rng(4)
    for weights in (np.full(3, 1 / 3), np.array([0.7, 0.2, 0.1])):
        draws = every[rng.integers(len(every), size=3)]
        permuted = [draws[:, order] for order in permutations(range(5))]
        expected = np.mean([pc.partition_loss(every, one, loss=loss).values for one in permuted], axis=0) @ weights
        found = loss_without_structure(pc.as_partition_draws(draws, weights=weights), loss)
        assert found == pytest.approx(expected.min(), rel=1e-12, abs=1e-12)


def test_chance_of_a_ratio_is_close_to_the_mean_over_permutations():
    runs = made(2, n_items=60, k=4)
    shuffled = pc.as_partition_draws(RNG.permuted(np.tile(runs[0], (4000, 1)), axis=1))
    for loss in ("nvi", "jaccard", "nmi"):
        chance = pc.compare_layers({"a": pc.as_runs(runs)}, loss=loss, **QUIET).stability["chance"].item()
        assert chance == pytest.approx(float(pc.partition_loss(shuffled, runs[1], loss=loss).mean()), abs=2e-3)


def test_chance_of_many_items_and_of_one_cluster_with_all():
    sizes = [np.array([1, 3, 99_996]), np.array([100_000])]
    one, other = np.array([0, 0]), np.array([1, 0])
    h = pc.losses.vi().h(100_000)
    assert expected_joint_sums(sizes, one, other, h)[0][0] == pytest.approx(h[[1, 3, 99_996]].sum(), rel=1e-12)
    pairs = pc.binder().h(100_000)
    expected = pairs[[1, 3, 99_996]].sum() ** 2 / pairs[-1]
    assert expected_joint_sums(sizes, one, other, pairs)[0][1] == pytest.approx(expected, rel=1e-12)


def test_order_and_numbers_of_runs_change_nothing(found):
    """Runs of all layers in one shuffled table, with labels permuted, give the same numbers bit for bit."""
    groups = np.repeat(list(LABELS), [len(runs) for runs in LABELS.values()])
    order = RNG.permutation(groups.size)
    table = np.concatenate(list(LABELS.values()))[order]
    again = pc.compare_layers(pc.as_runs(9 - table, groups=groups[order]), **QUIET)
    pd.testing.assert_frame_equal(again.to_dataframe(), found.to_dataframe(), check_exact=True)
    pd.testing.assert_frame_equal(again.steps, found.steps, check_exact=True)
    assert again.verdict == found.verdict


def test_runs_are_compared_with_the_partition_of_the_others():
    """Ten runs or fewer: the mean over each run of its distance from the best partition of the others."""
    rng = np.random.default_rng(2)
    runs = made(6, n_items=8, wrong=0.4, rng=rng)
    left_out = []
    for k in range(6):
        rest = pc.as_runs(np.delete(runs, k, axis=0))
        left_out.append(mean_loss([(pc.consensus_partition(rest, method="enumeration").labels, runs[k])]))
    found = pc.compare_layers({"a": pc.as_runs(runs)}, **QUIET).to_dataframe().loc["a"]
    assert found["to_consensus"] == pytest.approx(np.mean(left_out), rel=1e-10)
    of_runs = pc.consensus_partition(pc.as_runs(runs), **QUIET)
    assert found["to_consensus"] > 1.05 * of_runs.expected_loss


def test_errors_are_those_of_the_jackknife_and_of_an_answer_that_no_run_gave():
    runs = LABELS[1.0]
    without = [mean_loss(combinations(np.delete(runs, k, axis=0), 2)) for k in range(9)]
    error = np.sqrt(8 / 9 * np.sum((without - np.mean(without)) ** 2))
    losses = [pc.partition_loss(one, other) for one, other in combinations(runs, 2)]
    least = np.sqrt(np.var(losses) / 36)
    found = pc.compare_layers({"a": pc.as_runs(runs)}, **QUIET).stability.sel(layer="a")
    unseen = 2 / 9**2 / (9 + 4)  # all runs differ
    assert found["error"].item() == pytest.approx(
        np.hypot(max(error, least), found["chance"].item() * unseen), rel=1e-10
    )
    equal = pc.compare_layers({"a": pc.as_runs([[0, 0, 1, 1]] * 16)}, **QUIET)
    assert equal.stability["stability_error"].item() == pytest.approx(0.1, rel=1e-12)
    assert equal.stability["error"].item() == equal.distances["error"].item() > 0


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.5, 0.3, 0.2), (1.0,)])
def test_two_errors_cover_the_mean(shares):
    """Of runs that have one of a few partitions with these shares, or random labels around one."""
    rng, base = np.random.default_rng(1), np.arange(100) % 5
    modes = np.array([base, np.where(base == 4, 3, base), np.where(base == 1, 0, base)])
    pool = modes[rng.choice(len(shares), 300, p=shares)]
    if len(shares) == 1:
        pool = np.where(rng.random(pool.shape) < 0.1, rng.integers(5, size=pool.shape), pool)
    distances = groups.run_distances(pc.as_runs(pool), pc.vi())
    for n_runs in (5, 10, 20):
        samples = (rng.choice(300, n_runs, replace=False) for _ in range(400))
        found = np.array([groups.within(distances[np.ix_(at, at)]) for at in samples])
        covered = np.abs(found[:, 0] - groups.within(distances)[0]) <= 2 * found[:, 1]
        assert covered.mean() > 0.86


def test_two_halves_have_an_error():
    """The jackknife of runs that are equal in halves is 0; the share of halves is uncertain all the same."""
    runs = [[0, 0, 1, 1]] * 5 + [[0, 1, 1, 1]] * 5
    assert pc.compare_layers({"a": pc.as_runs(runs)}, **QUIET).stability["error"] > 0.05


@pytest.mark.parametrize(
    ("n_runs", "known"), [(1, ()), (2, ("distance",)), (3, ("distance",)), (4, ("distance", "error"))]
)
def test_few_runs(n_runs, known):
    layers = {"a": pc.as_runs(made(n_runs)), "b": pc.as_runs(made(5))}
    found = pc.compare_layers(layers, **QUIET)
    own = found.stability.sel(layer="a")
    assert [name for name in ("distance", "error") if np.isfinite(own[name])] == list(known)
    assert np.isfinite(found.distances["separation"].sel(layer="a", other_layer="b")) == (n_runs > 1)
    assert "nan" not in found.verdict


def test_one_cluster_has_no_stability():
    found = pc.compare_layers({"a": pc.as_runs([[0, 0, 0]] * 4)}, **QUIET)
    assert found.stability["distance"] == 0 and np.isnan(found.stability["stability"])
    assert found.most_stable == []
    assert "no run has two clusters" in found.verdict


def test_exchanges_of_runs_give_the_p_value():
    """Of three runs against three, all 20 choices; the runs themselves and their mirror have the largest separation."""
    same, other = [[0, 0, 0, 1, 1, 1]], [[0, 1, 0, 1, 0, 1]]
    found = pc.compare_layers({"a": pc.as_runs(same * 3), "b": pc.as_runs(other * 3)}, **QUIET)
    assert found.steps["p_value"].item() == pytest.approx(2 / 20)
    found = pc.compare_layers({"a": pc.as_runs(same * 9), "b": pc.as_runs(other * 8)}, **QUIET)
    assert found.steps["p_value"].item() == 1 / 2000
    found = pc.compare_layers({"a": pc.as_runs(same * 9), "b": pc.as_runs(same * 8)}, **QUIET)
    assert found.steps["p_value"].item() == 1
    assert found.same_partition == [["a", "b"]]


def test_layers_and_groups_have_one_test():
    """Of 4 runs against 6, all 210 exchanges are compared, so that no random ones differ."""
    runs = pc.as_runs(made(10, wrong=0.3), groups=["a"] * 4 + ["b"] * 6)
    p_value = pc.compare_layers(runs, **QUIET).steps["p_value"].item()
    assert p_value == pytest.approx(pc.diagnose(runs).spread.p_value, rel=1e-12) != 1


@pytest.mark.slow
def test_p_values_of_equal_programs_are_uniform():
    rng = np.random.default_rng(8)
    values = [
        pc.compare_layers({"a": pc.as_runs(made(6, rng=rng)), "b": pc.as_runs(made(8, rng=rng))}, **QUIET)
        .steps["p_value"]
        .item()
        for _ in range(150)
    ]
    assert 0.02 < np.mean(np.array(values) <= 0.1) < 0.19
    assert 0.38 < np.mean(np.array(values) <= 0.5) < 0.62


def test_clusters_that_split_keep_a_name():
    few, many = [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 2, 2]
    found = pc.compare_layers({1: pc.as_runs([few] * 4), 2: pc.as_runs([many] * 4), 3: pc.as_runs([many] * 5)}, **QUIET)
    assert "1 to 2: Cluster 1 splits into clusters 1 (2 items) and 2 (1 item)." in found.in_words()
    assert found.same_partition == [[2, 3]]
    flows = found.flow_table().query("before == 1")[["source", "target", "items"]].to_numpy().tolist()
    assert flows == [[0, 0, 3], [1, 1, 2], [1, 2, 1]]


def test_layers_of_other_items_are_compared_by_common_items():
    names = pd.Index(list("abcdefghij"), name="cell")
    runs = made(8, n_items=10)
    some = pc.as_runs(pd.DataFrame(runs[:5, :8].T, index=names[:8]))
    others = pc.as_runs(pd.DataFrame(runs[5:, ::-1].T, index=names[::-1]))
    found = pc.compare_layers({1: some, 2: others}, **QUIET)
    here = found.distances.sel(layer=1, other_layer=2)
    pairs = [(one, other) for one in runs[:5, :8] for other in runs[5:, :8]]
    assert (here["n_common"], here["distance"]) == (8, pytest.approx(mean_loss(pairs), rel=1e-12))
    assert found.partitions.labels.sizes["cell"] == 10
    assert found.flow_table()["items"].sum() == 8


def test_many_runs_are_a_part(monkeypatch):
    """Of more runs than are compared, a part of them in an order of their own, whatever the user's."""
    runs = made(30)
    of_all = pc.compare_layers({"a": pc.as_runs(runs)}, **QUIET).stability.squeeze()
    monkeypatch.setattr(groups, "MOST_RUNS", 12)
    found, again = (
        pc.compare_layers({"a": pc.as_runs(one)}, **QUIET).stability.squeeze() for one in (runs, runs[::-1])
    )
    assert found["distance"] == again["distance"] != of_all["distance"]
    assert found["n_runs"] == 30
    assert abs(found["distance"] - of_all["distance"]) < 4 * found["error"]


def test_weights_are_refused():
    runs = pc.as_runs(made(4))
    layers = pc.as_layers({"a": runs}, weights=[0.4, 0.2, 0.2, 0.2])
    with pytest.raises(ValueError, match="layer 'a'"):
        pc.compare_layers(layers, **QUIET)


def test_most_stable_are_those_not_clearly_below_another(found):
    """Six and nine runs do not tell 0.5 from 1.0; Student's quantile for the three pairs of layers does that of 2.0."""
    table = found.to_dataframe()
    assert table["stability"].idxmax() == 0.5 and found.most_stable == [0.5, 1.0]
    assert "0.5, 1.0, which cannot be told apart (" in found.verdict
    errors = np.hypot(*table["stability_error"][[0.5, 2.0]])
    ratio = (table["stability"][0.5] - table["stability"][2.0]) / errors
    assert ratio > stats.t.ppf(1 - 0.05 / 6, 6)
    assert "independent" in str(found)


def test_equal_runs_do_not_make_a_layer_the_most_stable():
    """Three layers of equal runs, none of which is named first; the share is what the runs miss once in twenty."""
    equal = {name: pc.as_runs([np.arange(40) % k] * 20) for k, name in enumerate("abc", 3)}
    found = pc.compare_layers(equal, **QUIET)
    assert found.most_stable == ["a", "b", "c"]
    assert "The 3 layers cannot be told apart" in found.verdict
    assert "a, b, c. " in found.verdict and "20 runs miss one that 14% of all runs have" in found.verdict
    least = {"d": pc.as_runs(made(20, wrong=0.5, rng=np.random.default_rng(4)))}
    found = pc.compare_layers(equal | least, **QUIET)
    assert (
        found.most_stable == ["a", "b", "c"]
        and "a, b, c, which cannot be told apart (stability 1.000)" in found.verdict
    )
    one = pc.compare_layers({"a": equal["a"]} | least, **QUIET)
    assert one.most_stable == ["a"] and "agree most for layer a: stability 1.000 (error 0.083)" in one.verdict


@pytest.mark.parametrize("differ", [0, 1])
def test_runs_that_were_not_compared_are_called_equal_only_if_they_are(differ):
    """A run that moves item 2 is not among those compared."""
    labels = np.tile(np.arange(40) % 3, (300, 1))
    labels[:differ, 2] = 0
    found = pc.compare_layers({"a": pc.as_runs(labels), "b": pc.as_runs(made(8, wrong=0.5))}, **QUIET)
    first = found.to_dataframe().iloc[0]
    assert first["distance"] == 0 and (first["to_consensus"] > 0) == bool(differ)
    assert f"All {'compared ' * differ}runs are equal for a." in found.verdict
    assert f"{200 if differ else 300} runs miss" in found.verdict


def test_a_layer_of_which_alone_the_stability_has_an_error_is_not_compared():
    some = {"a": pc.as_runs(made(8)), "b": pc.as_runs(made(2)), "c": pc.as_runs(made(2))}
    found = pc.compare_layers(some, **QUIET)
    assert "The stability of layer a is" in found.verdict and "agree most" not in found.verdict
    assert "fewer than four runs: b, c." in found.verdict


def test_summaries_have_the_partitions_and_numbers_of_the_comparison(found):
    """With one seed; a layer summarized by itself has the same clusters."""
    layers = layers_of(LABELS)
    summary = pc.summarize(layers, modes=False, **QUIET)
    for name in LABELS:
        compared = found.partitions[name].named_labels
        assert np.array_equal(summary[name].partition.named_labels, compared)
        alone = pc.consensus_partition(layers[name], **QUIET)
        assert pc.partition_loss(alone, compared) == 0
    pd.testing.assert_frame_equal(summary.comparison.to_dataframe(), found.to_dataframe())


def test_layers_of_three_runs_are_not_ranked():
    some = {"a": pc.as_runs(made(3, wrong=0.0)), "b": pc.as_runs(LABELS[1.0]), "c": pc.as_runs(LABELS[0.5])}
    found = pc.compare_layers(some, **QUIET)
    assert "a" not in found.most_stable and "fewer than four runs: a." in found.verdict


def test_figure_of_one_layer_is_refused_and_that_of_draws_names_the_other(found):
    with pytest.raises(ValueError, match="at least two layers"):
        pc.compare_layers({"a": pc.as_runs(made(4))}, **QUIET).plot()
    with pytest.raises(TypeError, match=r"got LayerStability, which its plot\(\) shows"):
        pc.plot_layer_distances(found)


def with_noise(n_runs, k, often, rng=RNG, n_items=40):
    """Runs that find k groups, and call some items noise: the first ones mostly, the others seldom."""
    labels = made(n_runs, n_items=n_items, k=k, wrong=0.1, rng=rng)
    share = np.where(np.arange(n_items) < often * n_items, 0.85, 0.05)
    return np.where(rng.random(labels.shape) < share, -1, labels)


NOISY = {1: with_noise(6, 2, 0.1), 2: with_noise(8, 3, 0.2), 3: with_noise(5, 4, 0.5)}


def runs_with_noise(labels):
    return pc.as_runs(
        np.concatenate(list(labels.values())), groups=np.repeat(list(labels), [*map(len, labels.values())]), noise=-1
    )


@pytest.fixture(scope="module")
def noisy():
    return pc.compare_layers(runs_with_noise(NOISY), **QUIET)


def test_layers_with_noise_report_it(noisy):
    """Partitions are those of each layer alone, their noise is one cluster, and no number of clusters counts it."""
    for name, labels in NOISY.items():
        runs = pc.as_runs(labels, noise=-1)
        best = pc.consensus_partition(runs, loss="ballet", **QUIET)
        found = noisy.partitions[name]
        assert np.array_equal(found.named_labels.values == "noise", best.noise.values)
        assert pc.partition_loss(found.labels.values[~best.noise], best.labels.values[~best.noise]) == 0
        own = noisy.to_dataframe().loc[name]
        assert (own["n_clusters"], own["n_noise"]) == (best.n_clusters, best.noise.sum())
        assert (own["fewest"], own["most"]) == (runs.n_clusters.min(), runs.n_clusters.max())
        given = pc.compare_layers({name: runs}, partitions=[best.labels.values], **QUIET).to_dataframe().loc[name]
        assert given["agreement"] == pytest.approx(
            mean_jaccard(alone(best.labels.values), map(alone, labels)), rel=1e-12
        )
        assert own["agreement"] <= given["agreement"] and own["to_consensus"] >= given["to_consensus"]
        expected = pc.expected_loss(runs, best, loss="vi")["expected_loss"].item()
        assert given["to_consensus"] == pytest.approx(expected, rel=1e-12)
    flows = noisy.flow_table()
    assert flows["items"].groupby(flows["before"]).sum().tolist() == [40, 40]
    staying = flows.query("source == 'noise' and target == 'noise'")["items"].tolist()
    are_noise = [noisy.partitions[name].named_labels.values == "noise" for name in NOISY]
    assert staying == [np.sum(one & other) for one, other in pairwise(are_noise)]
    assert "become noise" in noisy.in_words() and "cluster noise" not in noisy.in_words()


def test_chance_with_noise_is_the_mean_over_all_permutations():
    """Of every order of the items of one run, for each pair of runs: each item of noise is alone."""
    labels = np.array([[0, 0, 0, 1, 1, -1], [0, 0, -1, -1, 1, 1], [0, -1, 0, 0, -1, -1]])
    orders = [list(order) for order in permutations(range(6))]
    apart = np.where(labels < 0, 10 + np.arange(6), labels)
    expected = [
        pc.partition_loss(pc.as_partition_draws(one[orders]), other).mean() for one, other in combinations(apart, 2)
    ]
    found = pc.compare_layers({"a": pc.as_runs(labels, noise=-1)}, **QUIET).stability["chance"].item()
    assert found == pytest.approx(np.mean(expected), rel=1e-11)


def test_runs_without_agreement_have_the_stability_of_chance():
    """Random labels of random noise: the mean stability is 0 within three errors."""
    rng, stability = np.random.default_rng(3), []
    for _ in range(30):
        sizes = np.repeat([0, 1, 2, -1], [10, 14, 6, 20])
        runs = pc.as_runs(rng.permuted(np.tile(sizes, (4, 1)), axis=1), noise=-1)
        found = pc.compare_layers({"a": runs}, partitions=[np.zeros(50, int)], **QUIET)
        stability.append(found.stability["stability"].item())
    assert abs(np.mean(stability)) < 3 * np.std(stability) / np.sqrt(30) < 0.02


def test_equal_partitions_have_equal_noise():
    """A cluster of one item is no noise, although both are alone in a loss."""
    labels = {1: [[0, 0, 1, 1, -1]] * 4, 2: [[0, 0, 1, 1, 2]] * 4, 3: [[1, 1, 2, 2, -1]] * 5}
    found = pc.compare_layers(runs_with_noise(labels), **QUIET)
    assert found.same_partition == [[1, 3]]
    assert found.distances["consensus_distance"].sel(layer=1, other_layer=2) == 0
    assert found.steps["p_value"].tolist() == [1, 1]


def test_noise_of_given_partitions():
    """A vector's -1 is noise; the names of clusters are those given, and a new cluster has a new one."""
    labels = {1: [[0, 0, 1, 1, -1]] * 2, 2: [[0, 0, 1, 1, 2]] * 2}
    given = {1: [7, 7, 4, 4, -1], 2: [0, 0, -1, 1, 1]}
    found = pc.compare_layers(runs_with_noise(labels), partitions=given, **QUIET)
    assert found.partitions[1].named_labels.values.tolist() == [7, 7, 4, 4, "noise"]
    names = found.partitions[2].named_labels.values.tolist()
    assert names[:4] == [7, 7, "noise", 4] and names[4] == 4


def test_layer_of_noise_alone():
    """In the first or in the last layer, with other names between; no cluster, no stability."""
    none, some = [[-1] * 5] * 4, [[0, 0, 1, 1, -1]] * 4
    found = pc.compare_layers(runs_with_noise({1: none, 2: some, 3: none, 4: some}), **QUIET)
    assert found.to_dataframe()["n_clusters"].tolist() == [0, 2, 0, 2]
    assert np.isnan(found.stability["stability"]).values.tolist() == [True, False, True, False]
    assert found.same_partition == [[1, 3], [2, 4]]
    assert "4 items are noise no longer" in found.in_words()
    found = pc.compare_layers(runs_with_noise({1: none, 2: [[0] * 5] * 4}), **QUIET)
    assert "no run has two clusters" in found.verdict


def test_summary_of_layers_with_noise():
    """Has the same partitions and comparison, and stores both."""
    layers = pc.as_layers(runs_with_noise(NOISY))
    summary = pc.summarize(layers, **QUIET)
    table, compared = summary.to_dataframe(), summary.comparison.to_dataframe()
    assert table[["clusters", "noise"]].to_numpy().tolist() == compared[["n_clusters", "n_noise"]].to_numpy().tolist()
    for name, one in summary.items():
        assert (
            one.partition.named_labels.values.tolist()
            == summary.comparison.partitions[name].named_labels.values.tolist()
        )
    again = pc.results.LayersSummary.from_datatree(summary.to_datatree(), layers)
    assert again.comparison.partitions.names == summary.comparison.partitions.names
    assert "cluster of its own" in summary.methods_text()


def test_figure_has_noise_in_grey(noisy):
    """In one block of each column, beside its legend, and in strips of items; clusters have other colours."""
    from matplotlib.colors import to_hex

    ax = noisy.plot()[2]
    grey = [patch for patch in ax.patches if to_hex(patch.get_facecolor()) == "#7d7d7d"]
    heights = np.array([patch.get_height() for patch in grey]) * 40
    assert np.allclose(heights, noisy.to_dataframe()["n_noise"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["noise"]
    strips = pc.plot_layer_items(noisy.partitions)[0].images
    grey = [np.sum(np.all(np.isclose(strip.get_array()[0, :, :3], 0x7D / 255), axis=1)) for strip in strips]
    assert grey == noisy.to_dataframe()["n_noise"].tolist()


@pytest.mark.parametrize(("name", "upright"), [("{}", False), ("resolution {} of twenty", True)])
def test_names_of_many_layers_do_not_overlap(name, upright):
    labels = {name.format(k): made(4, k=2) for k in range(20)}
    ax = pc.compare_layers(layers_of(labels, ordered=True), **QUIET).plot()[2]
    shown = [text for text in ax.get_xticklabels() if text.get_text()]
    assert len(shown) == 20
    assert {text.get_rotation() > 0 for text in shown} == {upright}


def test_layers_whose_search_ended_early_are_named(monkeypatch):
    layers = layers_of(LABELS)
    assert pc.compare_layers(layers, **QUIET).stopped == ()
    search, made = pc.consensus_partition, []

    def interrupted_first(draws, **options):
        made.append(search(draws, **options))
        return replace(made[-1], info=replace(made[-1].info, stopped="interrupted" * (len(made) == 1)))

    monkeypatch.setattr(compare, "consensus_partition", interrupted_first)
    found = pc.compare_layers(layers, **QUIET)
    assert found.stopped == (0.5,)
    again = pc.results.LayerStability.from_dataset(found.to_dataset())
    assert again.stopped == (0.5,)
    for said in (repr(found), found.in_words(), repr(again)):
        assert "ended early for layer 0.5:" in said


STEPS = {1: 0.0, 2: 0.3, 3: 0.0, 4: 0.3, 5: 0.2}  # wrong labels of layers


def peaked():
    rng = np.random.default_rng(2)
    return {k: made(6, k=k + 1, wrong=wrong, rng=rng) for k, wrong in STEPS.items()}


def test_shortlist_has_the_layers_at_least_as_stable_as_those_beside():
    found = pc.compare_layers(layers_of(peaked()), **QUIET)
    assert found.shortlist == [1, 3, 5]
    assert "shortlist is layer 1, 3, 5" in found.verdict
    # 2 and 4 lie between, so what happens from 1 to 3 and from 3 to 5 is said as well
    assert [line.split(":")[0] for line in found.in_words().splitlines()[-2:]] == ["1 to 3", "3 to 5"]


def test_layers_with_one_partition_count_as_one_on_the_shortlist():
    labels = peaked()
    alike = {1: labels[1], 2: labels[1], 3: labels[2], 4: labels[3]}
    assert pc.compare_layers(layers_of(alike), **QUIET).shortlist == [1, 4]


def test_shortlist_without_an_order_is_the_most_stable():
    found = pc.compare_layers(layers_of({f"k{k}": own for k, own in peaked().items()}), **QUIET)
    assert not found.ordered and found.shortlist == found.most_stable


def test_without_consensus_all_but_the_partitions_is_the_same():
    with_partitions = pc.compare_layers(layers_of(LABELS), **QUIET)
    found = pc.compare_layers(layers_of(LABELS), consensus=False, **QUIET)
    of_partitions = {"n_clusters", "n_noise", *between_runs.NEW_RUNS}
    for table in ("stability", "distances"):
        ours, theirs = getattr(found, table), getattr(with_partitions, table)
        own = [name for name in theirs if name not in of_partitions | {"same", "consensus_distance"}]
        xr.testing.assert_identical(ours[own], theirs[own])
    assert found.partitions is None and found.same_partition == []
    assert found.stability[list(of_partitions)].to_dataframe().isna().all(axis=None)
    assert len(found.plot()) == 2 and "n_clusters" not in str(found)
    again = pc.results.LayerStability.from_dataset(found.to_dataset())
    assert again.partitions is None and again.verdict == found.verdict == found.in_words().replace("\n", " ")
    with pytest.raises(ValueError, match="`consensus` was False.*compare_layers"):
        found.flow_table()
    draws = np.array([[[0, 0, 1], [0, 1, 1]]] * 8)
    with pytest.raises(ValueError, match="`consensus` must be True for layers of draws.*`partitions`"):
        pc.compare_layers(draws, consensus=False, **QUIET)
