"""Links between items: probabilities, errors, sizes, and when a summary shows them."""

import numpy as np
import pytest
from scipy import stats

import posterior_consensus as pc
from posterior_consensus.answers.links import suits_links
from posterior_consensus.ensemble import memberships, similarity
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, linked_records
from tests.helpers import array, check

WEIGHTS = np.random.default_rng(7).exponential(size=60) * (np.arange(60) % 7 > 0)
Z, TRUTH = linked_records()


@pytest.mark.parametrize(
    ("kind", "threshold"), [("labels", 0.01), ("weighted", 0.0), ("weighted", 0.3), ("probabilities", 0.0)]
)
def test_pairs_are_entries_of_the_matrix(kind, threshold):
    if kind == "probabilities":
        soft = np.random.default_rng(4).dirichlet(np.full(3, 0.3), size=(2, 20, TRUTH.size))
        draws = pc.as_allocation_probabilities(soft)
        psm = np.einsum("ctik, ctjk -> ij", soft, soft) / 40
    else:
        weights = WEIGHTS if kind == "weighted" else None
        draws = pc.as_partition_draws(Z.reshape(2, 30, -1), weights=weights)
        psm = reference.similarity(Z, weights)
    found = pc.links(draws, TRUTH, threshold=threshold)
    rows, columns = np.nonzero(np.triu(psm > threshold, 1))
    np.testing.assert_array_equal(found.pairs["first"], rows)
    np.testing.assert_array_equal(found.pairs["second"], columns)
    np.testing.assert_allclose(found.pairs["similarity"], psm[rows, columns], rtol=1e-12)
    errors = reference.probability_errors(psm[rows, columns], similarity.similarity_errors(draws)[rows, columns])
    np.testing.assert_allclose(found.pairs["mcse"], errors, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.within, TRUTH[rows] == TRUTH[columns])


@pytest.mark.parametrize(("weights", "shares"), [(None, 1e-6), (WEIGHTS, 1e-6), (WEIGHTS, 1e-9)])
def test_counting_by_cluster_gives_the_bits_of_the_matrix(weights, shares, monkeypatch):
    draws = pc.as_partition_draws(Z, weights=weights)
    monkeypatch.setattr("posterior_consensus.runtime.memory.SHARE_OF_PART", shares)
    monkeypatch.setattr(memberships, "_SLOWER", 0)
    found = pc.posterior_similarity_matrix(draws, threshold=0.0)
    monkeypatch.setattr(memberships, "_SLOWER", np.inf)
    assert (found != pc.posterior_similarity_matrix(draws, threshold=0.0)).nnz == 0
    assert found.nnz > 0 and found.has_sorted_indices


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_sizes_are_counted_in_every_draw(weights):
    weights = None if weights is None else weights[:57]
    found = pc.links(pc.as_partition_draws(Z[:57], weights=weights), TRUTH).sizes
    sizes = [np.unique(draw, return_counts=True)[1] for draw in Z[:57]]
    used = np.full(57, 1 / 57) if weights is None else weights / weights.sum()
    for size in found["size"].values[:-1]:
        counts = np.array([np.sum(own >= 10 if size == "10 or more" else own == int(size)) for own in sizes])
        assert float(found["mean"].sel(size=size)) == pytest.approx(counts @ used)
        order = np.argsort(counts, kind="stable")
        low = counts[order][np.searchsorted(np.cumsum(used[order]), 0.05)]
        assert int(found["lower"].sel(size=size)) == low
        assert int(found["partition"].sel(size=size)) == np.sum(np.bincount(TRUTH) == int(size))
    total = np.array([own.size for own in sizes])
    assert float(found["mean"].sel(size="all")) == pytest.approx(total @ used)
    assert int(found["partition"].sel(size="all")) == np.unique(TRUTH).size
    assert found["prior"].isnull().all()


def test_ten_items_and_more_are_one_row():
    draws = np.array([[0] * 12 + [1] * 10 + [2], [0] * 11 + [1] * 11 + [2]] * 4)
    found = pc.links(draws, draws[0], prior=pc.priors.crp(2.0)).sizes
    assert found["size"].values.tolist() == [*map(str, range(1, 10)), "10 or more", "all"]
    assert found["mean"].values.tolist() == [1, *[0] * 8, 2, 3]
    expected = pc.priors.crp(2.0).cluster_sizes(23)
    assert float(found["prior"].sel(size="10 or more")) == pytest.approx(float(expected[9:].sum()))
    assert float(found["prior"].sel(size="all")) == pytest.approx(float(expected.sum()))


def test_clusters_to_join_are_means_over_their_pairs():
    joined = pc.links([[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]], [0, 0, 1, 2], threshold=0.0)
    columns = {"first_cluster": [0, 1], "second_cluster": [1, 2], "size": [3, 2], "similarity": [0.25, 0.25]}
    assert joined.between_clusters().to_dict("list") == columns


def test_tables_have_the_names_of_items_and_clusters():
    draws = array(np.array([[0, 0, 1, 2], [0, 0, 1, 1]] * 10), ("sample", "record"), record=["Ann", "Bo", "C&A", "$x"])
    best = pc.consensus_partition(draws, n_clusters=3, random_seed=1, progressbar=False).with_names(["a", "b", "c"])
    found = pc.links(draws, best)
    table = found.to_dataframe()
    assert table[["first", "second", "first_cluster", "second_cluster"]].values.tolist() == [
        ["C&A", "$x", "b", "c"],
        ["Ann", "Bo", "a", "a"],
    ]
    assert found.uncertain["second"].tolist() == ["$x"]
    assert found.n_by_certainty == (1, 1, 0)
    found.plot()[0, 0].figure.canvas.draw()  # a dollar is no mathematics


def test_degenerate_draws():
    for name, draws in DEGENERATE.items():
        found = pc.links(draws, draws[0])
        assert repr(found).startswith("Links: ") and len(found.to_dataframe()) == found.pairs.sizes["link"], name
        found.plot()
        pc.plot_cluster_sizes(found)


def test_the_prior_of_sizes_is_a_sum_over_all_partitions():
    partitions = np.concatenate(list(enumerate_partitions(6)))
    counts = [np.bincount(np.bincount(p), minlength=7)[1:] for p in partitions]
    for prior in (
        pc.priors.crp(1.7),
        pc.priors.crp((2, 1)),
        pc.priors.pitman_yor(0.4, 0.6),
        pc.priors.pitman_yor(-0.3, 0.5),
        pc.priors.dirichlet_multinomial(0.7, 1),
        pc.priors.dirichlet_multinomial(0.7, 4),
    ):
        expected = np.exp(prior.log_prob(partitions).values) @ np.array(counts)
        np.testing.assert_allclose(prior.cluster_sizes(6), expected, rtol=1e-8, atol=1e-15, err_msg=repr(prior))


def test_when_a_summary_shows_links():
    z, truth = linked_records(200)
    draws = pc.as_partition_draws(z)
    assert suits_links(draws, draws.as_labels(truth))
    assert not suits_links(draws, draws.as_labels(np.arange(200) % 50))  # few clusters
    assert not suits_links(draws, draws.as_labels(np.arange(200) % 51))  # many, of four items


def test_words_of_errors():
    def of_prior(prior):
        return pc.links(Z, TRUTH, prior=prior)

    stick = pc.priors.stick_breaking(1.0, n_components=5)
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(Z))
    check(lambda x: pc.links(Z, TRUTH, threshold=x), 1.0, ValueError, ["`threshold`", "from 0 and below 1"])
    check(of_prior, 1.0, TypeError, ["`prior` must be a PartitionPrior"])
    check(of_prior, stick, ValueError, ["a prior on partitions", "priors.crp"])
    check(lambda x: pc.links(x, TRUTH), pairs, ValueError, ["`links` needs posterior draws"])


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (pc.priors.crp(1.0), "Dirichlet process mixture with fixed parameters, it is inconsistent"),
        (pc.priors.pitman_yor(1.0, 0.2), "Pitman-Yor process mixture with fixed parameters, it is inconsistent"),
        (pc.priors.crp((2, 4)), "depends on the prior"),
        (pc.priors.dirichlet_multinomial(0.5, 4), "of the 4 components"),
        (pc.priors.mixture_of_finite_mixtures(1.0, stats.poisson(3, loc=1)), "a posterior of its own"),
        (None, "depends on the prior"),
    ],
)
def test_the_prior_says_what_the_number_of_clusters_estimates(prior, words):
    assert words in " ".join(repr(pc.links(Z[:12], TRUTH, prior=prior)).split())


def test_the_interval_of_the_number_of_clusters_has_its_share_of_the_draws():
    draws = np.zeros((100, 8), int)
    for k, first in enumerate((0, 4, 30, 90)):  # 4 draws of one cluster, 26 of two, 60 of three, 10 of four
        draws[first:, k] = k
    total = pc.links(draws, draws[50]).sizes.sel(size="all")
    assert (total["lower"], total["upper"], total["share"]) == (2, 4, 0.96)
    assert "central 90% interval 2 to 4, which has 96% of the draws" in repr(pc.links(draws, draws[50]))
