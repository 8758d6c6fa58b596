"""Memberships: by trying all matchings, from labels and probabilities, with errors, at all sizes and for one mode."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.answers.membership import own_membership
from posterior_consensus.plots.colours import OPEN
from posterior_consensus.results.palette import COLOURS
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, sticky_chains
from tests.helpers import GOOD, array, check

PARTITION = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])


def best_matchings(draw, labels):
    """The clusters of the draw's, by trying every one-to-one matching; Jaccard similarities decide between equals."""
    drawn = {k: set(np.flatnonzero(draw == k)) for k in sorted(set(draw.tolist()))}
    own = {c: set(np.flatnonzero(labels == c)) for c in range(max(labels) + 1)}
    scores = {}
    for order in set(itertools.permutations([*own, *[None] * len(drawn)], len(drawn))):
        pairs = [(k, c) for k, c in zip(drawn, order, strict=True) if c is not None and drawn[k] & own[c]]
        common = sum(len(drawn[k] & own[c]) for k, c in pairs)
        scores[tuple(pairs)] = common, round(sum(len(drawn[k] & own[c]) / len(drawn[k] | own[c]) for k, c in pairs), 9)
    return [dict(pairs) for pairs, score in scores.items() if score == max(scores.values())]


def of_one_matching(draws, labels):
    """Those of the draws that have one best matching, and indicators (N, n, C + 1) of each item's cluster in each."""
    found = [(draw, *best_matchings(draw, labels)) for draw in draws]
    draws, matchings = zip(*(one for one in found if len(one) == 2), strict=True)
    table = np.zeros((len(draws), len(labels), max(labels) + 2))
    for t, (draw, matching) in enumerate(zip(draws, matchings, strict=True)):
        table[t, np.arange(len(labels)), [matching.get(k, -1) for k in draw]] = 1
    return np.array(draws), table


@pytest.mark.parametrize(
    ("labels", "noise", "weighted"),
    [(PARTITION, 0.2, True), (PARTITION, 0.9, False), (np.zeros(9, int), 0.9, True), (np.arange(9) % 4, 0.9, True)],
)
def test_membership_is_what_its_definition_says(rng, labels, noise, weighted):
    z, table = of_one_matching(noisy_draws(rng, 30, 9, 3, noise), labels)
    assert len(z) > 5
    weights = rng.exponential(size=len(z)) if weighted else None
    found = pc.membership(pc.as_partition_draws(z, weights=weights), labels)
    expected = np.average(table, axis=0, weights=weights)
    assert found.probabilities.dims == ("item", "consensus_cluster")
    assert found.probabilities["consensus_cluster"].values.tolist() == [*dict.fromkeys(labels.tolist()), "elsewhere"]
    assert_allclose(found.probabilities, expected, rtol=0, atol=1e-14)
    assert_allclose(found.own, expected[np.arange(9), labels], rtol=0, atol=1e-14)


def test_errors_are_from_batches_of_each_chain(rng):
    z, table = of_one_matching(sticky_chains(rng, 1, 300, 9, 0.8)[0], PARTITION)
    z, table = z[:120].reshape(3, 40, 9), table[:120]
    for weights in (None, rng.exponential(size=120)):
        draws = pc.as_partition_draws(z, weights=weights)
        w = draws.weights[:, np.newaxis, np.newaxis]
        mean, squares = (w * table).sum(axis=0), 0.0
        for rows in [batch for chain in np.split(np.arange(120), 3) for batch in np.array_split(chain, 6)]:
            share, weight = len(rows) / 120, w[rows].sum()
            moved = (w[rows] * (table[rows] - mean)).sum(axis=0) * (1 - share) / (1 - weight)
            squares = squares + moved**2
        found = pc.membership(draws, PARTITION)
        expected = reference.probability_errors(mean, np.sqrt(18 / 17 * squares))
        assert_allclose(found.mcse, expected, rtol=1e-9)
    assert np.isnan(pc.membership(z[:, :3], PARTITION).mcse).all()


def test_blocks_stores_and_order_of_labels_change_nothing(rng, monkeypatch, tmp_path):
    z = noisy_draws(rng, 40, 700, 5, 0.3).reshape(2, 20, 700)
    labels = rng.integers(5, size=700)
    expected = pc.membership(z, labels)
    stored = pc.as_partition_draws(z, store=tmp_path / "store")
    monkeypatch.setattr("posterior_consensus.ensemble.labels.block_width", lambda n_draws: 256)
    for given in (z, stored, rng.permutation(5)[z]):
        found = pc.membership(given, labels)
        assert_array_equal(found.probabilities, expected.probabilities)
        assert_array_equal(found.mcse, expected.mcse)
        source = pc.as_partition_draws(given)
        assert_array_equal(own_membership(source, source.as_labels(labels)).membership, expected.own)


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        for labels in (draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1])):
            found = pc.membership(draws, labels)
            assert_allclose(found.probabilities.sum("consensus_cluster"), 1, rtol=0, atol=1e-14)
            assert (found.own >= 0).all() and (found.cluster == pc.as_partition_draws([labels]).labels[0]).all()
            if (draws == labels).all():
                unknown = len(draws) < 4
                errors = reference.probability_errors(found.probabilities, 0 * found.mcse, n_draws=len(draws))
                assert (found.own == 1).all()
                assert_allclose(found.mcse, np.nan if unknown else errors, rtol=1e-9)


def components_by_trying_all(soft, labels):
    """Memberships by the definition: every way of giving each cluster a component of its own is tried."""
    n_clusters = max(labels) + 1
    total = np.zeros((soft.n_items, n_clusters))
    for w, p in zip(soft.weights, soft.probabilities, strict=True):
        p = np.hstack([p, np.zeros((len(p), max(0, n_clusters - p.shape[1])))])
        shared = np.array([p[np.array(labels) == c].sum(axis=0) for c in range(n_clusters)])
        wanted = shared + (p.sum(axis=0) < 0.5) / (n_clusters + 1)  # empty components rather than parts of others
        orders = itertools.permutations(range(p.shape[1]), n_clusters)
        best = max(orders, key=lambda order: wanted[range(n_clusters), order].sum())
        for c, k in enumerate(best):
            total[:, c] += w * p[:, k] * (shared[c, k] >= 0.5)
    return total


@pytest.mark.parametrize(
    ("labels", "n_components"),
    [([0, 0, 0, 1, 1, 2, 2], 2), ([0, 0, 0, 1, 1, 2, 2], 5), ([0] * 7, 3), ([0, 1, 2, 3, 0, 1, 2], 3)],
)
def test_components_are_matched_in_expectation(rng, labels, n_components):
    p = rng.dirichlet(np.full(n_components, 0.3), (2, 15, 7))
    certain = np.eye(n_components)[rng.integers(n_components, size=(9, 7))]
    p[0, :9] = 0.99 * certain + 0.01 * p[0, :9]  # with empty components, and no two assignments equally good
    soft = pc.as_allocation_probabilities(p, weights=rng.random(30))
    found = pc.membership(soft, labels)
    assert_allclose(found.probabilities[:, :-1], components_by_trying_all(soft, labels), rtol=0, atol=1e-13)
    assert_allclose(found.probabilities.sum("consensus_cluster"), 1, rtol=0, atol=1e-12)
    own = own_membership(soft, soft.as_labels(labels))
    assert_array_equal(own.membership, found.own)
    assert own.misplaced.shape == (30,)
    assert_allclose(own.misplaced @ soft.weights, (1 - found.own).sum(), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_misplaced_items_are_counted_in_each_draw(rng, weighted):
    z, table = of_one_matching(noisy_draws(rng, 60, 9, 3, 0.3), PARTITION)
    draws = pc.as_partition_draws(z, weights=rng.exponential(size=len(z)) if weighted else None)
    numbers = (1 - table[:, np.arange(9), PARTITION]).sum(axis=1)  # of items outside the cluster matched with theirs
    assert np.ptp(numbers) > 0
    found = pc.item_uncertainty(draws, PARTITION)
    assert found.misplaced == pytest.approx(draws.weights @ numbers)
    assert found.misplaced == pytest.approx(float((1 - found.membership).sum()))
    mcse, ess = (float(one) for one in draws.samples.mcse_and_ess(numbers))
    assert (found.misplaced_mcse, found.misplaced_ess) == pytest.approx((mcse, ess))
    again = pc.results.ItemUncertainty.from_dataset(found.to_dataset())
    assert (again.misplaced, again.misplaced_mcse) == (found.misplaced, found.misplaced_mcse)
    matrix = pc.item_uncertainty(pc.as_pair_similarity(pc.posterior_similarity_matrix(draws)), PARTITION)
    assert matrix.membership is None and np.isnan(matrix.misplaced)


def test_an_item_that_one_run_calls_noise_is_misplaced_there():
    runs = np.tile(np.repeat([0, 1], 5), (8, 1))
    runs[3, 2] = -1
    found = pc.item_uncertainty(pc.as_runs(runs, noise=-1), runs[0])
    assert found.misplaced == 1 / 8 and found.membership.values[2] == 7 / 8


def test_a_posterior_without_doubt_has_no_rough_errors():
    draws = np.tile(np.repeat([0, 1, 2], 4), (4, 300, 1))
    assert "rough" not in repr(pc.membership(draws, draws[0, 0]))


def test_certain_probabilities_are_labels(rng):
    labels = np.repeat([0, 1, 2], 10)  # of which no two matchings are equally good
    z = np.where(rng.random((2, 30, 30)) < 0.15, rng.integers(3, size=(2, 30, 30)), labels)
    hard, soft = pc.membership(z, labels), pc.membership(np.eye(3)[z], labels)
    assert_allclose(soft.probabilities, hard.probabilities, rtol=0, atol=1e-12)
    assert_allclose(soft.mcse, hard.mcse, rtol=1e-9, atol=1e-12)


def test_within_one_mode(rng):
    modes = np.repeat([0, 1, 2], 4), np.repeat([0, 1], 6)
    draws = np.where(rng.random((4, 200, 1)) < 0.6, *modes)
    draws = np.where(rng.random(draws.shape) < 0.05, 2, draws)
    found = pc.particles(draws, random_seed=1, n_starts=5, progressbar=False)
    assert found.n_particles == 2
    for k in range(2):
        region, rows = found.region(k), np.flatnonzero(found.assignment.values == k)
        within = pc.membership(region, found.partitions[k])
        alone = pc.membership(draws.reshape(-1, 12)[rows], found.partitions[k].values)
        assert_allclose(within.probabilities, alone.probabilities, rtol=0, atol=1e-13)
        assert_allclose(within.mcse, alone.mcse, rtol=0.6, atol=0.004)
        assert within.own.mean() > pc.membership(draws, found.partitions[k]).own.mean() + 0.1
    stored = pc.results.Particles.from_dataset(found.to_dataset())
    assert_array_equal(stored.region(1, draws).weights, found.region(1).weights)
    check(stored.region, 0, ValueError, ["`draws` must be given"])
    check(found.region, 2, ValueError, ["`k`", "from 0 to 1; got 2"])
    draws[0] = modes[0]  # a chain in one mode has errors all the same
    found = pc.particles(draws, 2, random_seed=1, n_starts=5, progressbar=False)
    for k in range(2):
        assert np.isfinite(pc.membership(found.region(k), found.partitions[k]).mcse).all()


def test_the_column_of_the_items(rng, monkeypatch):
    z = noisy_draws(rng, 40, 9, 3, 0.3)
    items = pc.item_uncertainty(z, PARTITION)
    assert_array_equal(items.to_dataframe()["membership"], pc.membership(z, PARTITION).own)
    pairs = pc.item_uncertainty(pc.as_pair_similarity(pc.as_partition_draws(z)), PARTITION)
    assert pairs.membership is None and "membership" not in pairs.to_dataframe()
    summary = pc.summarize(z, random_seed=1, progressbar=False)
    assert_array_equal(summary.items.membership, pc.membership(z, summary).own)
    with monkeypatch.context() as patched:
        patched.setattr("posterior_consensus.answers.membership._MOST_CELLS", 100)
        assert pc.item_uncertainty(z, PARTITION).membership is None
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1300B")
    assert pc.item_uncertainty(z, PARTITION).membership is None
    with pytest.raises(MemoryError, match="A table of 9 items and 4 clusters"):
        pc.membership(z, PARTITION)


def test_names_and_the_table():
    z = array([GOOD], ("chain", "draw", "city"), city=["Bonn", "Kiel", "Ulm", "Jena"])
    best = pc.consensus_partition(z, n_clusters=2, random_seed=1, progressbar=False).with_names(["west", ("e", 1)])
    found = pc.membership(z, best)
    assert found.probabilities["consensus_cluster"].values.tolist() == ["west", ("e", 1), "elsewhere"]
    table = found.to_dataframe()
    assert table.index.tolist() == ["Bonn", "Kiel", "Ulm", "Jena"]
    assert list(table) == ["cluster", "probability", "mcse", "other", "other_probability"]
    assert table["cluster"].tolist()[0] == "west" and "4 cities in 2 clusters" in repr(found)
    for name, row in table.iterrows():
        assert found.probabilities.sel(city=name).max() == max(row["probability"], row["other_probability"])
    assert float(found.probabilities.sel(city="Bonn", consensus_cluster="west")) == table["probability"].iloc[0]


def test_a_matrix_alone_and_other_items_are_refused():
    pairs, named = pc.as_pair_similarity(np.eye(4)), ["here", "here", "elsewhere", "here"]
    check(lambda x: pc.membership(x, [0, 0, 1, 1]), pairs, ValueError, ["posterior draws", "similarity matrix"])
    check(lambda x: pc.membership(GOOD, x), [0, 0, 1], ValueError, ["`partition`", "all 4 items; got 3"])
    check(lambda x: pc.membership(GOOD, x), named, ValueError, ["`partition`", "'elsewhere'"])


def test_bars_are_stacked_from_the_own_cluster_upwards(rng):
    found = pc.membership(noisy_draws(rng, 50, 9, 4, 0.4), PARTITION + 3)
    ax = found.plot()
    order = np.lexsort([-found.own.values, found.cluster.values])
    assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [c.lower() for c in (*COLOURS[3:6], OPEN)]
    bars = [patch.get_data() for patch in ax.patches]
    for k, bar in enumerate(bars):
        assert_allclose(bar.values - bar.baseline, found.probabilities.values[order, k], rtol=0, atol=1e-12)
        own = found.cluster.values[order] == k
        assert_array_equal(bar.baseline[own], 0.0)
        assert_allclose(bar.values[own], found.own.values[order][own])
    assert_allclose(bars[-1].values, 1.0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["3", "4", "5", "elsewhere"]
    tops = np.cumsum(found.probabilities.values, axis=1)  # in the order of the data all have clusters in one order
    for k, bar in enumerate(patch.get_data() for patch in found.plot(order="data").patches):
        assert_allclose(bar.values, tops[:, k], rtol=0, atol=1e-12)
        assert_allclose(bar.baseline, tops[:, k] - found.probabilities.values[:, k], rtol=0, atol=1e-12)
    check(lambda order: found.plot(order=order), None, ValueError, ["`order`", "'data'", "got None"])
    pc.membership(np.zeros((3, 1), int), [0]).plot().figure.canvas.draw()
    plt.close("all")
