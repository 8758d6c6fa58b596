"""One cluster has one number and name in all results with a reference: tables, figures and what is stored."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.results.palette import COLOURS
from tests.helpers import check

TRUTH = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 3])
REFERENCE = np.array([5, 5, 5, 0, 0, 0, 0, 2, 2, 2])  # item 9 is in a cluster of its own in the draws
NUMBERS = np.array([5, 0, 2, 6])[TRUTH]


@pytest.fixture(scope="module")
def z():
    rng = np.random.default_rng(1)
    return np.where(rng.random((2, 150, 10)) < 0.05, rng.integers(4, size=(2, 150, 10)), TRUTH)


@pytest.mark.parametrize("complete", [None, "vi"])
def test_a_partial_partition_has_the_numbers_of_its_reference(z, complete):
    options = {"complete": complete, "n_starts": 5, "random_seed": 1}
    found = pc.partial_partition(z, 0.7, partition=REFERENCE, **options)
    plain = pc.partial_partition(z, 0.7, **options)
    sure = found.labels.values >= 0
    assert_array_equal(sure, plain.labels >= 0)
    assert_array_equal(found.labels[sure], NUMBERS[sure])
    assert found.n_clusters == plain.n_clusters and found.in_words() == plain.in_words()
    assert found.names[:6] == (0, 1, 2, 3, 4, 5)
    table, other = found.to_dataframe(), plain.to_dataframe()
    assert table.index.tolist() == sorted(np.unique(NUMBERS[sure]).tolist())
    assert sorted(table["item"]) == sorted(other["item"])
    if complete:
        assert_array_equal(found.completion, NUMBERS)
        assert found.expected_loss == plain.expected_loss


def test_names_of_the_reference_go_on(z):
    named = pc.consensus_partition(z, n_starts=2, random_seed=1, progressbar=False).with_names(["w", "e", "s", "n"])
    found = pc.partial_partition(z, 0.7, partition=named, n_starts=5, random_seed=1)
    assert set(found.to_dataframe().index) <= {"w", "e", "s", "n"} and found.names == ("w", "e", "s", "n")
    clusters = pc.cluster_summary(pc.as_partition_draws(z), found)
    assert clusters.clusters["cluster"].values.tolist() == found.to_dataframe().index.tolist()
    stored = pc.results.ClusterSummary.from_dataset(clusters.to_dataset())
    assert stored.to_dataframe().equals(clusters.to_dataframe())
    assert pc.results.PartialPartition.from_dataset(found.to_dataset()).names == found.names


def test_a_cluster_summary_has_the_numbers_of_its_partition(z):
    partial = np.where(np.arange(10) < 9, NUMBERS, -1)
    mu = np.array([10.0, 20.0, 30.0, 40.0])  # by number of the component in `TRUTH`
    found = pc.cluster_summary(z, partial, mu=np.broadcast_to(mu, (2, 150, 4)))
    plain = pc.cluster_summary(z, np.where(partial < 0, -1, TRUTH), mu=np.broadcast_to(mu, (2, 150, 4)))
    assert_array_equal(found.labels, partial)
    assert found.clusters["cluster"].values.tolist() == found.numbers.tolist() == [0, 2, 5]
    assert found.sizes.tolist() == [4, 2, 3] and found.probability == plain.probability
    assert found.parameters["mean"].values.ravel().tolist() == [20.0, 30.0, 10.0]
    assert found.allocation["to"].values.tolist() == ["0", "2", "5", "elsewhere"]
    assert_array_equal(found.allocation, plain.allocation[:, [1, 2, 0, 3]])
    assert "5: 0." in repr(found)
    ax = found.plot()
    assert [text.get_text().split()[0] for text in ax.get_yticklabels()] == ["0", "2", "5"]
    spans = [collection for collection in ax.collections if isinstance(collection, LineCollection)]
    *spans, means = spans
    assert {to_hex(colour) for colour in means.get_color()} == {"#000000"}
    for span in spans:
        assert [to_hex(colour) for colour in span.get_color()] == [COLOURS[k].lower() for k in (0, 2, 5)]
    assert len(spans) == 2
    plt.close("all")


def test_figures_have_the_colours_of_the_reference(z):
    found = pc.partial_partition(z, 0.7, partition=REFERENCE, n_starts=5, random_seed=1)
    labels = [str(k) for k in np.unique(found.labels[found.labels >= 0])]
    legend = pc.plot_data(np.arange(10.0), found).get_legend()
    named = {
        text.get_text().split()[0]: line for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert [name for name in named if name != "unassigned"] == labels
    assert all(to_hex(named[k].get_markerfacecolor()) == COLOURS[int(k)].lower() for k in labels)
    strip = pc.plot_psm(z, found).collections[-1]
    assert {to_hex(face) for face in strip.get_facecolor()} >= {COLOURS[int(k)].lower() for k in labels}
    plt.close("all")


def test_a_reference_of_other_items_is_refused(z):
    for function in (pc.partial_partition, pc.particles):
        check(lambda x, f=function: f(z, partition=x), [0, 1], ValueError, ["`partition`", "10 items", "2"])


def test_particles_have_the_numbers_of_their_reference():
    rng = np.random.default_rng(1)
    one, other = np.array([0] * 4 + [1] * 4 + [2] * 4), np.array([0] * 3 + [1] * 3 + [2] * 3 + [3] * 3)
    draws = np.where(rng.random((4, 100, 1)) < 0.6, one, other)
    reference = np.array([50] * 4 + [1] * 4 + [0] * 4)
    options = {"n_starts": 2, "random_seed": 1, "progressbar": False}
    found, plain = pc.particles(draws, partition=reference, **options), pc.particles(draws, **options)
    assert_array_equal(found.partitions[0], reference)
    assert_array_equal(found.partitions[1], np.repeat([50, 51, 1, 0], 3))
    assert found.n_clusters.values.tolist() == [3, 4] and found.to_dataframe().equals(plain.to_dataframe())
    assert_array_equal(found.losses(), plain.losses())
    assert_array_equal(found.meet(), plain.meet())
    assert_array_equal(found.contributions(0, 1), plain.contributions(0, 1))
    captions = [[tick.get_text() for tick in one.plot().get_yticklabels()] for one in (found, plain)]
    assert captions[0] == captions[1]
    for function in (pc.plot_draws_map, pc.membership):
        function(draws, found.partitions[0])
    assert pc.membership(draws, found.partitions[1]).numbers == (50, 51, 1, 0)
    pc.plot_draws_map(draws, particles=found)
    pc.plot_alluvial(found)
    plt.close("all")


def test_a_summary_is_the_reference_by_itself(z):
    summary = pc.summarize(z, n_starts=2, random_seed=1, progressbar=False)
    summary = replace(summary, partition=summary.partition.with_names(first=1))
    partial = pc.partial_partition(summary, 0.7, n_starts=5, random_seed=1)
    sure = partial.labels.values >= 0
    assert_array_equal(partial.labels[sure], TRUTH[sure] + 1)
    particles = pc.particles(summary, n_starts=2, random_seed=1, progressbar=False)
    assert_array_equal(particles.partitions[0], TRUTH + 1)


def test_relabelled_components_have_the_numbers_of_the_partition(z):
    mu = np.random.default_rng(2).normal([10.0, 20.0, 30.0, 40.0, 50.0], 0.1, size=(2, 150, 5))
    dims = ("chain", "draw")
    posterior = xr.DataTree.from_dict({"posterior": xr.Dataset({"z": ((*dims, "i"), z), "mu": ((*dims, "k"), mu)})})
    found, plain = (pc.relabel(posterior, labels, component_dim="k", first_label=0) for labels in (NUMBERS, TRUTH))
    assert found["posterior"]["k"].values.tolist() == [0, 2, 5, 6]
    assert_array_equal(found["posterior"]["mu"].mean(dims).round(), [20, 30, 10, 40])
    assert_array_equal(found["extra_components"]["k"], [7])
    assert_array_equal(found["relabelling"]["match_share"], plain["relabelling"]["match_share"][[1, 2, 0, 3]])
    new = np.array([5, 0, 2, 6, 7])
    assert_array_equal(found["posterior"]["z"], new[plain["posterior"]["z"]])


def test_a_summary_of_a_marginalized_posterior_brings_its_allocations(rng):
    mu = rng.normal([-3.0, 3.0], 0.1, size=(2, 20, 2))
    mu[1] = mu[1, :, ::-1]
    p = np.exp(-0.5 * (np.array([-3.0, -3.0, 3.0, 3.2, 0.2])[:, np.newaxis] - mu[..., np.newaxis, :]) ** 2)
    summary = pc.summarize(p / p.sum(axis=-1, keepdims=True), n_starts=1, random_seed=1, progressbar=False)
    posterior = xr.Dataset({"mu": (("chain", "draw", "k"), mu), "tau": (("chain", "draw"), mu[..., 0])})
    found = pc.relabel(posterior, summary, component_dim="k")
    assert_array_equal(found["mu"].mean(("chain", "draw")).round(), [-3, 3])
    assert found.identical(pc.relabel(posterior, summary, component_dim="k", allocations=summary))
    given = ValueError, ["`allocations`", "allocations=allocation_probabilities(model, idata)", "'mu', 'tau'"]
    check(lambda labels: pc.relabel(posterior, labels, component_dim="k"), summary.partition, *given)


def test_another_number_of_clusters_has_the_names_of_the_consensus(rng):
    noise = rng.permuted(np.tile(np.repeat([0, 1, 2], 3), (200, 1)), axis=1)
    draws = np.concatenate([noise, np.full((200, 9), 3)], axis=1)  # four clusters, three of which no pair is sure of
    summary = pc.summarize(draws, loss="vi", n_starts=2, modes=False, random_seed=1, progressbar=False)
    other = summary.alternative
    match = pc.align_partitions([summary.partition, other])[1]
    assert summary.partition.n_clusters == 10 and other.n_clusters == 4
    assert other.labels[-1] == 3 and other.named_labels[-1] == summary.labels[-1] == 9
    assert_array_equal(other.named_labels, match.labels)


def test_the_bounds_of_a_ball_have_the_numbers_of_its_center(z):
    ball = pc.credible_ball(z, REFERENCE)
    assert_array_equal(ball.partition, REFERENCE)
    for name in ("horizontal", "upper_vertical", "lower_vertical"):
        for labels in getattr(ball, name).values:
            assert_array_equal(pc.align_partitions([REFERENCE, labels])[1].labels, labels)
    counts = ball.to_dataframe()["n_clusters"]
    assert counts["partition"] == 3 and counts["lower_vertical"] == np.unique(ball.lower_vertical[0]).size
