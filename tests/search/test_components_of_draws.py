"""Draws of many small clusters under Binder's loss: searched and bounded by component."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.ensemble import memberships
from posterior_consensus.losses import binder
from posterior_consensus.search.runs import SearchInfo
from tests import reference
from tests.catalogue.posteriors import linked_records

QUIET = {"random_seed": 1, "progressbar": False}


@pytest.fixture
def any_draws(monkeypatch):
    """Draws of few items, or of large clusters, go by component too."""
    monkeypatch.setattr(memberships, "_LEAST_CLUSTERS", 0)
    monkeypatch.setattr(memberships, "_LARGEST_MEAN", np.inf)


def few(rng):
    """Draws of up to seven items, some always together, perhaps weighted."""
    n_items, n_draws = int(rng.integers(1, 8)), int(rng.integers(1, 9))
    labels = rng.integers(int(rng.integers(1, 6)), size=(n_draws, n_items))
    labels[:, rng.random(n_items) < 0.3] = labels[:, :1]
    weights = None if rng.random() < 0.5 else np.where(rng.random(n_draws) < 0.2, 0, rng.exponential(size=n_draws))
    return pc.as_partition_draws(labels, weights=weights if weights is not None and weights.any() else None)


def records(n_items, n_draws=60):
    return linked_records(n_items, n_draws)[0]


def line(n_items, n_draws, size, rng):
    """Items in a row, cut at random: all are one component."""
    return np.cumsum(rng.random((n_draws, n_items)) < 1 / size, axis=1)


@pytest.mark.parametrize("seed", range(60))
def test_a_few_items_have_the_minimum_over_all_partitions(seed, any_draws):
    rng = np.random.default_rng(seed)
    draws, a = few(rng), float(rng.choice([0.3, 0.5, 1, 4 / 3, 1.7]))
    best = pc.consensus_partition(draws, loss=binder(a=a), **QUIET)
    least = min(
        reference.expected(one, draws.labels, lambda x, y: reference.binder(x, y, a), draws.weights)
        for one in reference.partitions(draws.n_items)
    )
    assert isinstance(best.info, ComponentsInfo) and best.info.stopped == ""
    assert best.expected_loss == pytest.approx(least, rel=1e-12, abs=1e-14)
    assert best.optimality_gap == 0


@pytest.mark.parametrize("kind", ["equal", "weighted", "stored"])
def test_records_have_the_proven_minimum_of_their_matrix(kind, tmp_path, any_draws):
    z = records(100, 40)
    weights = np.random.default_rng(2).exponential(size=len(z)) if kind == "weighted" else None
    draws = pc.as_partition_draws(z, weights=weights)
    if kind == "stored":
        with pc.PartitionAccumulator(tmp_path / "draws") as kept:
            for labels in z:
                kept.add(labels)
        draws = pc.as_partition_draws(kept)
    for tau in (0.3, 0.6):
        best = pc.consensus_partition(draws, loss=binder(tau=tau), **QUIET)
        exact = pc.consensus_partition(pc.as_pair_similarity(draws), loss=binder(tau=tau), method="exact", **QUIET)
        assert isinstance(best.info, ComponentsInfo) and best.info.n_proven == best.info.n_components > 5
        assert best.optimality_gap == 0 and exact.optimality_gap < 1e-9
        assert best.expected_loss == pytest.approx(exact.expected_loss, rel=1e-9)


def test_certify_bounds_any_partition_of_more_items_than_a_matrix_holds(monkeypatch):
    z = records(2_000)
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "20MB")  # the matrix has 32 MB
    best = pc.consensus_partition(z, loss="binder", **QUIET)
    proof = pc.certify(z, best, progressbar=False)
    assert proof.status == "optimal" and proof.better is None
    assert proof.info.n_proven == proof.info.n_components == best.info.n_components
    assert f"{proof.info.n_components} components" in repr(proof)
    assert proof.info.in_words() in " ".join(repr(best).split())
    worse = pc.certify(z, z[0], loss="binder", progressbar=False)
    assert worse.better_loss == worse.lower_bound == best.expected_loss < worse.expected_loss


def test_a_chain_of_all_items_is_searched_and_bounded(any_draws):
    z = line(40, 50, 4, np.random.default_rng(1))
    best = pc.consensus_partition(z, loss="binder", **QUIET)
    matrix = pc.as_pair_similarity(pc.as_partition_draws(z))
    exact = pc.consensus_partition(matrix, loss="binder", method="exact", **QUIET)
    assert (best.info.n_components, best.info.largest, best.info.n_enumerated) == (1, 40, 0)
    assert best.lower_bound <= exact.expected_loss * (1 + 1e-9)
    assert best.expected_loss == pytest.approx(exact.expected_loss, rel=1e-9)
    proven = pc.consensus_partition(z, loss="binder", method="exact", **QUIET)
    assert proven.optimality_gap == 0 and isinstance(proven.info, ComponentsInfo)


def test_certify_bounds_a_given_partition_where_a_component_is_not_solved(any_draws):
    z = line(40, 50, 4, np.random.default_rng(1))
    least = pc.consensus_partition(z, loss="binder", method="exact", **QUIET).expected_loss
    for seconds, n_proven, words in ((1e-9, 0, "1 of 40 is not"), (None, 1, "it is proven")):
        proof = pc.certify(z, z[0], loss="binder", seconds=seconds, progressbar=False)
        assert proof.info.n_proven == n_proven and words in proof.info.in_words()
        assert proof.lower_bound <= least * (1 + 1e-9) <= proof.better_loss * (1 + 2e-9)
        assert proof.better_loss <= proof.expected_loss
    assert proof.lower_bound == pytest.approx(least, rel=1e-9) and proof.better_loss < proof.expected_loss


def test_items_that_are_always_together_count_as_one(any_draws):
    z = np.repeat(line(6, 40, 3, np.random.default_rng(3)), 20, axis=1)
    best = pc.consensus_partition(z, loss="binder", **QUIET)
    assert best.optimality_gap == 0 and best.info.n_enumerated == best.info.n_components


def test_other_searches_do_not_go_by_component(monkeypatch):
    z = records(300)
    found = pc.consensus_partition(z, loss="binder", **QUIET)
    assert isinstance(found.info, ComponentsInfo)
    others = {"loss": "vi"}, {"n_clusters": found.n_clusters}, {"max_clusters": 299}
    for options in others:
        assert isinstance(pc.consensus_partition(z, **({"loss": "binder"} | options), **QUIET).info, SearchInfo)
    soft = pc.as_allocation_probabilities(np.random.default_rng(1).dirichlet(np.full(4, 0.1), (5, 20)))
    assert isinstance(pc.consensus_partition(soft, loss="binder", **QUIET).info, SearchInfo)
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100KB")  # which does not hold the clusters of all draws
    with pytest.raises(MemoryError):
        pc.certify(z, found, progressbar=False)


def test_blocks_of_pairs_change_nothing(monkeypatch):
    draws = pc.as_partition_draws(records(800))
    found = [pc.consensus_partition(draws, loss=binder(tau=0.2), **QUIET)]
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "3MB")
    found.append(pc.consensus_partition(draws, loss=binder(tau=0.2), **QUIET))
    assert found[0].info == found[1].info
    np.testing.assert_array_equal(found[0].labels, found[1].labels)


def test_a_path_and_losses_by_number_of_clusters_go_on():
    z = records(200)
    path = pc.loss_path(z, loss="binder", values=[0.3, 0.5, 0.7], **QUIET)
    assert np.all(np.diff(path.table["n_clusters"]) >= 0)
    best = pc.consensus_partition(z, loss="binder", **QUIET)
    numbers = [best.n_clusters - 1, best.n_clusters, best.n_clusters + 1]
    by_number = pc.loss_by_n_clusters(z, loss="binder", n_clusters=numbers, **QUIET)
    assert by_number.table["expected_loss"].min() == pytest.approx(best.expected_loss, rel=1e-12)
