"""Particles: the least distance on tiny ensembles, what the record says, weights, chains, and words."""

import itertools
import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.answers.particle_chains import visits
from posterior_consensus.runtime import executor
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import array, check

GOLDEN = Path(__file__).parents[1] / "golden"
ONE, OTHER, THIRD = np.repeat([0, 1, 2], 4), np.repeat([0, 1], 6), np.tile([0, 1, 2, 3], 3)


def particles(draws, n_particles="auto", **options):
    return pc.particles(draws, n_particles, **{"random_seed": 1, "progressbar": False} | options)


def chains_of(*shares, length=200, noise=0.05, seed=1, answers=(ONE, OTHER)):
    """Chains that hold the first answer in these shares of their draws, else the other, both with noise."""
    rng = np.random.default_rng(seed)
    at_first = rng.random((len(shares), length, 1)) < np.array(shares)[:, np.newaxis, np.newaxis]
    draws = np.where(at_first, *answers)
    return np.where(rng.random(draws.shape) < noise, rng.integers(3, size=draws.shape), draws)


def losses_of(partitions, draws, loss):
    return np.array([[loss(one, draw) for draw in draws] for one in partitions])


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("loss", ["vi", "binder", "nid", "jaccard"])
def test_no_choice_of_partitions_of_five_items_is_nearer(loss, number):
    every = np.array(list(reference.partitions(5)))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels, weights = random_draws(rng, 12, 5, 4), rng.exponential(size=12)
        losses = losses_of(every, labels, getattr(reference, loss))
        chosen = np.array(list(itertools.combinations(range(len(every)), number)))
        least = (losses[chosen].min(axis=1) @ weights / weights.sum()).min()
        found = particles(pc.as_partition_draws(labels, weights=weights), number, loss=loss)
        assert found.distance == pytest.approx(least, rel=1e-10)


@pytest.mark.parametrize("loss", ["vi", "binder", "omari"])
def test_the_record_is_what_the_definitions_give(rng, loss):
    labels, weights = noisy_draws(rng, 60, 8, 3, 0.4).reshape(2, 30, 8), rng.exponential(size=60)
    found = particles(pc.as_partition_draws(labels, weights=weights), 3, loss=loss)
    losses = losses_of(found.partitions.values, labels.reshape(60, 8), getattr(reference, loss))
    share, nearest = weights / weights.sum(), losses.argmin(axis=0)
    np.testing.assert_array_equal(found.assignment, nearest)
    assert found.distance == pytest.approx(losses.min(axis=0) @ share) == found.path["distance"].values[-1]
    for k in range(3):
        own = nearest == k
        assert found.weights[k] == pytest.approx(share[own].sum())
        assert found.expected_loss[k] == pytest.approx(np.average(losses[k, own], weights=share[own]))
        for c, rows in enumerate((slice(30), slice(30, 60))):
            assert found.by_chain[c, k] == pytest.approx(share[rows][own[rows]].sum() / share[rows].sum())
        region = pc.as_partition_draws(labels.reshape(60, 8)[own], weights=weights[own])
        similarity = found.similarity(k)
        restored = pc.Particles.from_dataset(found.to_dataset())
        np.testing.assert_array_equal(
            restored.similarity(k, pc.as_partition_draws(labels, weights=weights)), similarity
        )
        np.testing.assert_allclose(similarity, pc.posterior_similarity_matrix(region), atol=1e-12)
    assert np.all(np.diff(found.weights) <= 0) and found.weights.sum() == pytest.approx(1)
    assert np.all(np.diff(found.path["distance"]) <= 0)
    samples = pc.as_partition_draws(labels, weights=weights).samples
    np.testing.assert_allclose(found.weights_mcse, samples.mcse((np.arange(3)[:, np.newaxis] == nearest).astype(float)))
    assert found.distance_mcse == pytest.approx(float(samples.mcse(losses.min(axis=0))))
    first = pc.consensus_partition(pc.as_partition_draws(labels, weights=weights), loss=loss, random_seed=1)
    assert found.path["distance"].values[0] <= first.expected_loss + 1e-12


def test_classes_that_all_keep_and_what_items_add_to_the_loss():
    found = particles(chains_of(0.7, 0.7), 2)
    np.testing.assert_array_equal(found.partitions, [ONE, OTHER])
    assert found.meet().values.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    shares = found.contributions(0, 1).values
    of_outer, of_middle = np.log2(4 * 6 / 4**2) / 12, np.log2(4 * 6 / 2**2) / 12
    np.testing.assert_allclose(shares, [of_outer] * 4 + [of_middle] * 4 + [of_outer] * 4)
    assert found.losses().values[0, 1] == pytest.approx(reference.vi(ONE, OTHER))


@pytest.mark.parametrize("loss", [*(name for name in pc.LOSSES if name != "nmi"), pc.vi(a=0.4), pc.binder(a=1.3)])
def test_contributions_add_up(rng, loss):
    found = particles(noisy_draws(rng, 40, 9, 3, 0.4), 3, loss=loss)
    for k, other in itertools.permutations(range(3), 2):
        assert found.contributions(k, other).sum() == pytest.approx(float(found.losses()[k, other]))


def test_a_loss_that_is_no_sum_is_refused(rng):
    found = particles(noisy_draws(rng, 40, 9, 3, 0.4), 2, loss="nmi")
    check(lambda k: found.contributions(k, 1), 0, ValueError, ["`contributions` needs a loss that is a sum", "'nmi'"])
    for bad in (2, -1, True, 0.0):
        check(
            lambda k: found.contributions(0, k), bad, ValueError, ["`other` must be a particle from 0 to 1", str(bad)]
        )
        check(found.similarity, bad, ValueError, ["`k` must be a particle"])
    check(lambda z: found.similarity(0, z), random_draws(rng, 9, 9, 2), ValueError, ["must be those of", "40; got 9"])
    restored = pc.Particles.from_dataset(found.to_dataset())
    check(restored.similarity, 0, ValueError, ["`draws` must be given", "not stored"])


def test_whole_weights_are_repeated_draws(rng):
    labels, times = chains_of(0.6)[0][:80], rng.integers(0, 4, size=80)
    weighted = particles(pc.as_partition_draws(labels, weights=times), 3)
    repeated = particles(np.repeat(labels, times, axis=0), 3)
    np.testing.assert_array_equal(weighted.partitions, repeated.partitions)
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-12)
    np.testing.assert_allclose(weighted.path["distance"], repeated.path["distance"], rtol=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder", "nid"])
def test_names_and_order_of_draws_do_not_matter(rng, loss):
    labels = chains_of(0.6, 0.6, length=80)
    expected = particles(labels, 3, loss=loss)
    renamed = particles(2 - labels, 3, loss=loss)
    np.testing.assert_array_equal(renamed.partitions, expected.partitions)
    order = rng.permutation(80)
    shuffled = particles(labels[::-1, order], 3, loss=loss)
    np.testing.assert_array_equal(shuffled.partitions, expected.partitions)
    np.testing.assert_array_equal(
        shuffled.assignment.values.reshape(2, 80), expected.assignment.values.reshape(2, 80)[::-1, order]
    )


@pytest.mark.parametrize("loss", ["vi", "binder", "nid"])
def test_the_order_of_items_does_not_matter_where_answers_are_clear(rng, loss):
    labels, order = chains_of(0.6, 0.6, length=80), rng.permutation(12)
    expected, found = particles(labels, 2, loss=loss), particles(labels[..., order], 2, loss=loss)
    assert found.distance == pytest.approx(expected.distance, rel=1e-12)
    for one, other in zip(found.partitions.values, expected.partitions.values, strict=True):
        np.testing.assert_array_equal(one, reference.canonical(other[order]))


def test_any_number_of_threads_gives_the_same(rng):
    labels = noisy_draws(rng, 300, 30, 4, 0.3)
    results = []
    for n_threads in (1, 2, 5):
        with patch.object(executor, "n_threads", lambda n=n_threads: n), patch.object(executor, "_pool", None):
            results.append(particles(labels, 3))
    for found in results[1:]:
        np.testing.assert_array_equal(found.partitions, results[0].partitions)
        assert found.distance == results[0].distance


def test_many_draws_are_sampled_and_the_path_never_rises(rng):
    labels = noisy_draws(rng, 2500, 12, 4, 0.4)
    found = particles(labels, 4, n_starts=2)
    assert np.all(np.diff(found.path["distance"]) < 0)
    (own,) = pc.as_partition_draws(labels).samples.chains
    for k in range(4):
        rows = own[found.assignment.values == k]
        best = pc.consensus_partition(labels[rows], random_seed=1, n_starts=2)
        assert found.expected_loss[k] <= best.expected_loss * 1.02


def test_seconds_end_the_search(rng):
    labels = random_draws(rng, 3000, 60, 9)
    found = particles(labels, 6, seconds=0.05)
    assert found.n_particles == 6 and np.all(np.diff(found.path["distance"]) <= 0)


def test_at_or_below_wasabi_on_the_golden_posterior():
    """Its distance, the best of five starts, took 510 seconds."""
    labels = np.load(GOLDEN / "dpmm_draws.npz")["labels"]
    assert particles(labels, 2, random_seed=3).distance <= 2.043481398


def test_two_answers_that_every_chain_visits():
    found = particles(chains_of(0.6, 0.6, 0.6, 0.6))
    assert found.n_particles == 2 and found.status == "several modes" and found.chains == ()
    assert found.verdict.startswith(
        "Two modes: every chain visits both; report them with their weights 0.59 (MCSE 0.019) and 0.41"
    )
    assert found.mode.values.tolist() == [0, 1]


def test_three_answers():
    labels = np.concatenate([chains_of(0.5, 0.5), chains_of(0, 0, length=100, answers=(ONE, THIRD))], axis=1)
    found = particles(labels)
    assert found.n_particles == 3 and found.verdict.startswith("Three modes: every chain visits all of them")


def test_answers_that_belong_to_chains_are_named():
    names = array(chains_of(1, 0, 1), ("chain", "draw", "obs"), chain=["a", "b", "c"])
    found = particles(names)
    assert found.status == "chains in different modes" and found.chains == ("a", "b", "c")
    assert found.verdict == (
        "Chains a and c stay in the first mode, chain b stays in the second mode: the sampler does not mix "
        "between modes, so the weights do not estimate probabilities."
    )
    found = particles(chains_of(0.5, 0.5, 0))
    assert found.chains == (2,)
    assert found.verdict.startswith("Chain 2 stays in the first mode: the sampler does not mix")


def test_a_chain_that_misses_one_of_three_answers_is_named():
    labels = np.concatenate([chains_of(0.5, 0.5, 0.5), chains_of(0, 0, 0.5, answers=(ONE, THIRD))], axis=1)
    labels[2, 200:] = chains_of(0.5, seed=2)
    found = particles(labels[:, np.random.default_rng(1).permutation(400)])
    assert found.n_particles == 3 and found.chains == (2,)
    assert found.verdict.startswith("Chain 2 hardly ever visits the second mode")


def test_one_chain_has_several_answers_at_most():
    found = particles(chains_of(0.5))
    assert found.status == "several modes"
    assert "in one chain" in found.verdict and "run at least four" in found.verdict


def test_shares_that_differ_are_not_settled():
    found = particles(chains_of(0.3, 0.8, 0.6, length=300))
    assert found.status == "several modes" and "Run longer chains" in found.verdict


def test_particles_of_one_mode_are_one_answer():
    found = particles(chains_of(1, 1, noise=0.1), 3)
    assert found.status == "one mode" and found.n_particles == 3
    assert found.verdict == "One mode: no valley lies between the 3 particles, which divide it."
    assert particles(chains_of(1, 1, noise=0.1)).n_particles == 1
    assert "not searched for" in particles(chains_of(0.5, 0.5), 1).verdict


@pytest.fixture(scope="module")
def stuck():
    """Three chains near the rows of a square, one near its columns; two of 80 items change at a step."""
    rng, items = np.random.default_rng(1), np.arange(80)
    truths = np.array([items // 20] * 3 + [items % 20 // 5])
    chains, z = [], truths
    for _ in range(200):
        z = z.copy()
        for own, truth in zip(z, truths, strict=True):
            at = rng.choice(80, 2, replace=False)
            own[at] = np.where(rng.random(2) < 0.9, truth[at], rng.integers(4, size=2))
        chains.append(z)
    return np.stack(chains, axis=1)


@pytest.mark.parametrize("number", ["auto", 2])
def test_few_effective_draws_cannot_tell_and_say_what_separates_them(stuck, number):
    found = particles(stuck, number)
    assert found.status == "unknown" and found.chains == (3,)
    assert found.verdict.startswith("Cannot tell one mode from several: ")
    assert (
        re.search(r"at a distance of .*(3\.9\d|4) bits, with", found.verdict)
        and "chain 3 stays in the second group" in found.verdict
    )
    assert pc.Particles.from_dataset(found.to_dataset()).chains == found.chains


def test_more_particles_than_answers_divide_them():
    found = particles(chains_of(0.6, 0.6, noise=0.1), 4)
    assert found.status == "several modes" and set(found.mode.values) == {0, 1}
    assert found.verdict.endswith("The 4 particles divide them.")


@pytest.mark.parametrize(
    ("n_chains", "length", "stay", "share"),
    [(4, 400, 0.9, 0.15), (4, 1000, 0.0, 0.1), (4, 1000, 0.97, 0.3), (8, 400, 0.9, 0.2), (2, 400, 0.9, 0.3)],
)
def test_chains_that_mix_are_not_said_to_be_in_different_modes(n_chains, length, stay, share):
    """At a level of one percent: one posterior of a hundred at most."""
    rng, wrong = np.random.default_rng(1), 0
    draws = pc.as_partition_draws(np.zeros((n_chains, length, 1), int))
    for _ in range(100):
        moves = np.where(rng.random((n_chains, length)) < 1 - stay, np.arange(length), 0)
        last = np.maximum.accumulate(moves, axis=1)
        inside = np.take_along_axis(rng.random((n_chains, length)) < share, last, axis=1).ravel()
        wrong += visits(draws, np.stack([inside, ~inside]).astype(float)).apart.any()
    assert wrong <= 1


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    distinct = len(np.unique(pc.as_partition_draws(draws).labels, axis=0))
    found = particles(draws, distinct)
    assert found.distance == pytest.approx(0, abs=1e-12) and found.n_particles == distinct
    assert np.all(found.weights > 0)
    assert particles(draws).n_particles <= distinct
    part = [f"`n_particles` must be at most the number of distinct draws, {distinct}; got {distinct + 1}"]
    check(lambda number: particles(draws, number), distinct + 1, ValueError, part)


@pytest.mark.parametrize(
    ("argument", "value", "error", "part"),
    [
        ("n_particles", "two", ValueError, "must be an integer or 'auto'; got 'two'"),
        ("n_particles", 0, ValueError, "must be at least 1; got 0"),
        ("n_particles", 2.0, TypeError, "must be an integer; got 2.0"),
        ("max_particles", 0, ValueError, "must be at least 1; got 0"),
        ("n_starts", 0, ValueError, "must be at least 1; got 0"),
        ("seconds", 0, ValueError, "must be positive; got 0"),
        ("loss", "zz", ValueError, "one of 'vi', 'binder'"),
        ("loss", "pear", ValueError, "must be a loss between two partitions here"),
        ("random_seed", -1, ValueError, "got -1"),
    ],
)
def test_bad_arguments(argument, value, error, part):
    check(lambda v: pc.particles(chains_of(0.5), **{argument: v}), value, error, [f"`{argument}`", part])


def test_allocation_probabilities_are_taken_and_a_matrix_alone_is_not(rng):
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.full(3, 0.1), size=(2, 40, 6)))
    found = particles(soft, 2, loss="binder")
    np.testing.assert_array_equal(
        found.partitions, particles(soft.labels.reshape(2, 40, 6), 2, loss="binder").partitions
    )
    similarity = found.similarity(0)
    np.testing.assert_allclose(similarity, soft.take(np.flatnonzero(found.assignment == 0)).shared_similarity)
    check(particles, soft.as_pairs(), ValueError, ["needs posterior draws; got a similarity matrix alone"])


def test_a_loss_that_is_no_metric_is_called_so(rng):
    labels = noisy_draws(rng, 40, 8, 3, 0.3)
    assert "  mean loss  " in repr(particles(labels, 2, loss="omari"))
    assert "  distance  " in repr(particles(labels, 2, loss="nid"))


def test_items_keep_their_names_and_tables_have_a_row_for_each():
    names = [f"a name of an item that is long {k}" for k in range(12)]
    found = particles(array(chains_of(0.6, 0.6), ("chain", "draw", "obs"), obs=names), 2)
    for values in (found.partitions, found.meet(), found.contributions(0, 1)):
        assert values["obs"].values.tolist() == names
    table = found.to_dataframe()
    assert len(table) == 2 and table.loc[1, "from_first"] == pytest.approx(reference.vi(ONE, OTHER))
    assert found._repr_html_().startswith("<div>")


@pytest.mark.parametrize("seed", [13, 106, 117])
def test_auto_gives_a_particle_for_each_mode(seed):
    """Three particles show two modes here, of which one particle for each shows no valley."""
    rng = np.random.default_rng(seed)
    modes = rng.integers(4, size=(3, 9))
    draws = modes[rng.choice(3, p=[0.4, 0.4, 0.2], size=(3, 80))]
    draws = np.where(rng.random(draws.shape) < 0.1, rng.integers(5, size=draws.shape), draws)
    found = particles(draws, loss="binder", n_starts=3)
    assert found.n_particles == int(found.mode.max()) + 1
    asked = particles(draws, 2, loss="binder", n_starts=3)
    assert asked.status == found.status and asked.verdict.startswith(found.verdict)


def test_weights_that_rest_on_few_changes_are_rough():
    changes = np.random.default_rng(3).random((2, 400)) < 0.01
    at_first = (np.cumsum(changes, axis=1) + np.array([[0], [1]])) % 2
    draws = np.where(at_first[..., np.newaxis], ONE, OTHER)
    found = particles(draws)
    assert found.status == "several modes" and float(found.weights_ess.max()) < 100
    assert "so they and their errors are rough" in found.verdict
    assert "report them" not in found.verdict and ", rough: " in repr(particles(draws, 1))
