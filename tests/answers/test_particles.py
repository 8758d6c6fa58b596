"""Particles: the least distance on tiny ensembles, what the record says, weights, chains, and words."""

import itertools
import warnings

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.answers import particles as module
from posterior_consensus.answers.particle_search import ParticleSearch
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import TERMS
from posterior_consensus.runtime import executor
from posterior_consensus.search.engine import search
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, around, noisy_draws, random_draws
from tests.helpers import GOOD, array, check, press_ctrl_c

CHAINS = ("chain", "draw", "obs")
ONE, OTHER, THIRD = np.repeat([0, 1, 2], 4), np.repeat([0, 1], 6), np.tile([0, 1, 2, 3], 3)


def particles(draws, n_particles="auto", **options):
    return pc.particles(draws, n_particles, **{"random_seed": 1, "n_starts": 6, "progressbar": False} | options)


def chains_of(*shares, length=200, noise=0.05, seed=1, answers=(ONE, OTHER)):
    """Chains that hold the first answer in these shares of their draws, else the other, both with noise."""
    rng = np.random.default_rng(seed)
    at_first = rng.random((len(shares), length, 1)) < np.array(shares)[:, np.newaxis, np.newaxis]
    draws = np.where(at_first, *answers)
    return np.where(rng.random(draws.shape) < noise, rng.integers(3, size=draws.shape), draws)


def losses_of(partitions, draws, loss):
    return np.array([[getattr(reference, loss)(one, draw) for draw in draws] for one in partitions])


@pytest.mark.parametrize("loss", ["vi", "binder", "nid", "jaccard"])
def test_no_choice_of_partitions_of_five_items_is_nearer(rng, loss):
    every = np.array(list(reference.partitions(5)))
    labels, weights = random_draws(rng, 12, 5, 4), rng.exponential(size=12)
    losses, draws = losses_of(every, labels, loss), pc.as_partition_draws(labels, weights=weights)
    for number in (1, 2, 3):
        chosen = np.array(list(itertools.combinations(range(len(every)), number)))
        least = (losses[chosen].min(axis=1) @ weights / weights.sum()).min()
        found = particles(draws, number, loss=loss, max_particles=3, n_starts=60)
        assert found.distance == pytest.approx(least, rel=1e-10)


@pytest.mark.parametrize("loss", ["vi", "binder", "one_minus_ari"])
def test_the_record_is_what_the_definitions_give(rng, loss):
    labels, weights = noisy_draws(rng, 60, 8, 3, 0.4), rng.exponential(size=60)
    draws = pc.as_partition_draws(labels.reshape(2, 30, 8), weights=weights)
    found = particles(draws, 3, loss=loss)
    losses = losses_of(found.partitions.values, labels, loss)
    share, nearest = weights / weights.sum(), losses.argmin(axis=0)
    np.testing.assert_array_equal(found.assignment, nearest)
    assert found.distance == pytest.approx(losses.min(axis=0) @ share) == found.path["distance"].values[-1]
    assert ("  mean loss  " if loss == "one_minus_ari" else "  distance  ") in repr(found)
    restored = pc.results.Particles.from_dataset(found.to_dataset())
    for k in range(3):
        own = nearest == k
        assert found.weights[k] == pytest.approx(share[own].sum())
        assert found.loss_in_region[k] == pytest.approx(np.average(losses[k, own], weights=share[own]))
        for c, rows in enumerate((slice(30), slice(30, 60))):
            assert found.by_chain[c, k] == pytest.approx(share[rows][own[rows]].sum() / share[rows].sum())
        similarity = found.similarity(k)
        np.testing.assert_allclose(similarity, reference.similarity(labels[own], weights[own]), atol=1e-12)
        np.testing.assert_array_equal(restored.similarity(k, draws), similarity)
    assert np.all(np.diff(found.weights) <= 0) and found.weights.sum() == pytest.approx(1)
    assert np.all(np.diff(found.path["distance"]) <= 0)
    at_each = (np.arange(3)[:, np.newaxis] == nearest).astype(float)
    np.testing.assert_allclose(
        found.weights_mcse, reference.probability_errors(at_each @ share, draws.samples.mcse(at_each))
    )
    assert found.distance_mcse == pytest.approx(float(draws.samples.mcse(losses.min(axis=0))))
    first = pc.consensus_partition(draws, loss=loss, random_seed=1)
    assert found.path["distance"].values[0] <= first.expected_loss + 1e-12


def test_classes_that_all_keep_what_items_add_to_the_loss_and_names():
    names = [f"a name of an item that is long {k}" for k in range(12)]
    found = particles(array(chains_of(0.7, 0.7), CHAINS, obs=names), 2)
    np.testing.assert_array_equal(found.partitions, [ONE, OTHER])
    assert found.meet().values.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    shares = found.contributions(0, 1)
    of_outer, of_middle = np.log2(4 * 6 / 4**2) / 12, np.log2(4 * 6 / 2**2) / 12
    np.testing.assert_allclose(shares, [of_outer] * 4 + [of_middle] * 4 + [of_outer] * 4)
    assert found.losses().values[0, 1] == found.to_dataframe().loc[1, "from_first"] == pytest.approx(shares.sum())
    for values in (found.partitions, found.meet(), shares):
        assert values["obs"].values.tolist() == names


def test_contributions_add_up_if_the_loss_is_a_sum(rng):
    draws = noisy_draws(rng, 40, 9, 3, 0.4)
    sums = [name for name in pc.LOSSES if set(as_loss(name).numerator) <= set(TERMS[:6])]
    for loss in (*sums, pc.vi(a=0.4), pc.binder(a=1.3)):
        found = particles(draws, 3, loss=loss, n_starts=3, max_particles=3)
        for k, other in itertools.permutations(range(3), 2):
            assert found.contributions(k, other).sum() == pytest.approx(float(found.losses()[k, other])), loss
    found = particles(draws, 2, loss="nmi")
    check(lambda k: found.contributions(k, 1), 0, ValueError, ["`contributions`", "sum", "'nmi'"])
    for bad in (2, -1, True, 0.0):
        check(lambda k: found.contributions(0, k), bad, ValueError, ["`other`", "from 0 to 1", str(bad)])
        check(found.similarity, bad, ValueError, ["`k`", "from 0 to 1", str(bad)])
    check(lambda z: found.similarity(0, z), random_draws(rng, 9, 9, 2), ValueError, ["`draws`", "40 draws; got 9"])
    restored = pc.results.Particles.from_dataset(found.to_dataset())
    check(restored.similarity, 0, ValueError, ["`draws` must be given", "not stored"])


@pytest.mark.parametrize("loss", ["vi", pytest.param("nid", marks=pytest.mark.slow)])
def test_names_orders_and_threads_do_not_matter(rng, loss, monkeypatch):
    labels, draws, items = chains_of(0.6, 0.6, length=80), rng.permutation(80), rng.permutation(12)
    asked = {"loss": loss, "max_particles": 3}
    expected = particles(labels, 3, **asked)
    for n_threads in (1, 5):
        monkeypatch.setattr(executor, "n_threads", lambda n=n_threads: n)
        monkeypatch.setattr(executor, "_pool", None)
        np.testing.assert_array_equal(particles(2 - labels, 3, **asked).partitions, expected.partitions)
    shuffled = particles(labels[::-1, draws], 3, **asked)
    np.testing.assert_array_equal(shuffled.partitions, expected.partitions)
    np.testing.assert_array_equal(
        shuffled.assignment.values.reshape(2, 80), expected.assignment.values.reshape(2, 80)[::-1, draws]
    )
    expected, found = particles(labels, 2, **asked), particles(labels[..., items], 2, **asked)  # clear answers
    assert found.distance == pytest.approx(expected.distance, rel=1e-12)
    for one, other in zip(found.partitions.values, expected.partitions.values, strict=True):
        np.testing.assert_array_equal(one, reference.canonical(other[items]))


def test_many_draws_are_sampled_and_the_path_never_rises(rng):
    labels = noisy_draws(rng, 2500, 12, 4, 0.4)
    found = particles(labels, 4, n_starts=2, max_particles=4)
    assert np.all(np.diff(found.path["distance"]) < 0)
    for k in range(4):
        best = pc.consensus_partition(labels[found.assignment.values == k], random_seed=1, n_starts=2)
        assert found.loss_in_region[k] <= best.expected_loss * 1.02


def test_after_the_seconds_no_start_is_made(rng, monkeypatch):
    labels, run = random_draws(rng, 100, 20, 5), ParticleSearch._run
    made = []
    monkeypatch.setattr(ParticleSearch, "_run", lambda *given: made.append(run(*given)) or made[-1])
    limits = []
    monkeypatch.setattr(module, "search", lambda *given: limits.append(given[2]) or search(*given))
    assert particles(labels, 4, n_starts=3).stopped == ""
    assert len(made) > 3 * 3 and None not in made
    made.clear()
    found = particles(labels, 4, n_starts=10**6, seconds=1e-9)
    assert made == [None] * len(made) and found.stopped == "seconds"
    assert found.n_particles == 4 and np.all(np.diff(found.path["distance"]) <= 0)
    particles(labels, 4, seconds=60)
    assert 0 < limits[-1].seconds <= 15


def test_an_interrupt_gives_the_particles_so_far(rng, monkeypatch):
    labels = random_draws(rng, 100, 20, 5)
    calls = press_ctrl_c(monkeypatch, executor, "wait", 3)
    with pytest.warns(UserWarning, match="interrupted at 3 particles"):
        found = particles(labels, 3, n_starts=10**6)
    assert found.stopped == "interrupted" and len(calls) < 20


@pytest.mark.parametrize("reason", ["seconds", "interrupted"])
@pytest.mark.parametrize("independent", [False, True])
def test_a_search_that_ended_early_does_not_deny_groups(reason, independent, monkeypatch):
    along = ParticleSearch.along

    def halted(self, *given):
        self._executor.halt(reason)
        return along(self, *given)

    monkeypatch.setattr(ParticleSearch, "along", halted)
    draws = chains_of(0.5, 0.5).reshape(-1, len(ONE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the search was interrupted
        found = particles(pc.as_runs(draws) if independent else draws)
    assert found.n_particles == 1 and found.status == "unknown" and found.stopped == reason
    assert ("time limit" if reason == "seconds" else "Ctrl-C") in found.verdict and "unknown" in found.verdict
    again = pc.results.Particles.from_dataset(found.to_dataset())
    assert (again.status, again.verdict, again.stopped) == (found.status, found.verdict, reason)


def test_groups_found_before_an_early_end_may_not_be_all(monkeypatch):
    draws = chains_of(0.5, 0.5)
    assert "may be more" not in particles(draws).verdict
    more = ParticleSearch.one_more

    def then_halted(self, *given):
        found = more(self, *given)
        self._executor.halt("seconds")
        return found

    monkeypatch.setattr(ParticleSearch, "one_more", then_halted)
    found = particles(draws)
    assert found.n_particles == 2 and found.status == "several modes" and "may be more" in found.verdict


def of_three_answers():
    """Three answers, of which the last of three chains misses one."""
    labels = np.concatenate([chains_of(0.5, 0.5, 0.5), chains_of(0, 0, 0.5, answers=(ONE, THIRD))], axis=1)
    labels[2, 200:] = chains_of(0.5, seed=2)
    return labels[:, np.random.default_rng(1).permutation(400)]


def of_rare_changes():
    changes = np.random.default_rng(3).random((2, 400)) < 0.01
    at_first = np.add(np.cumsum(changes, axis=1), [[0], [1]]) % 2
    return np.where(at_first[..., np.newaxis], ONE, OTHER)


TOLD = {  # draws, number of particles asked, their modes, status, and the chains it names
    "all chains visit two": (lambda: chains_of(0.6, 0.6, 0.6, 0.6), "auto", [0, 1], "several modes", ()),
    "all chains visit three": (lambda: of_three_answers()[:2], "auto", [0, 1, 2], "several modes", ()),
    "chains stay": (
        lambda: array(chains_of(1, 0, 1), CHAINS, chain=list("abc")),
        "auto",
        [0, 1],
        "chains in different modes",
        ("a", "b", "c"),
    ),
    "one chain stays": (lambda: chains_of(0.5, 0.5, 0), "auto", [0, 1], "chains in different modes", (2,)),
    "one chain misses": (of_three_answers, "auto", [0, 1, 2], "chains in different modes", (2,)),
    "one chain alone": (lambda: chains_of(0.5), "auto", [0, 1], "several modes", ()),
    "shares differ": (lambda: chains_of(0.3, 0.8, 0.6, length=300), "auto", [0, 1], "several modes", ()),
    "few effective draws": (of_rare_changes, "auto", [0, 1], "several modes", ()),
    "one mode": (lambda: chains_of(1, 1, noise=0.1), "auto", [0], "one mode", ()),
    "one mode, divided": (lambda: chains_of(1, 1, noise=0.1), 3, [0, 0, 0], "one mode", ()),
    "two modes, divided": (lambda: chains_of(0.6, 0.6, noise=0.1), 4, [0, 1, 0, 1], "several modes", ()),
    "not searched for": (lambda: chains_of(0.5, 0.5), 1, [0], "unknown", ()),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_is_told(case, approved):
    draws, number, *expected = TOLD[case]
    found = particles(draws(), number)
    assert [found.mode.values.tolist(), found.status, found.chains] == expected
    approved("verdicts_particles", case, found.verdict)


@pytest.mark.parametrize("number", ["auto", 2])
def test_few_effective_draws_cannot_tell_and_say_what_separates_them(number, approved):
    """Three chains near the rows of a square, one near its columns; two of 80 items change at a step."""
    rng, items, steps = np.random.default_rng(1), np.arange(80), []
    truths = np.array([items // 20] * 3 + [items % 20 // 5])
    for _ in range(200):
        steps.append((steps[-1] if steps else truths).copy())
        for own, truth in zip(steps[-1], truths, strict=True):
            at = rng.choice(80, 2, replace=False)
            own[at] = np.where(rng.random(2) < 0.9, truth[at], rng.integers(4, size=2))
    found = particles(np.stack(steps, axis=1), number)
    assert found.status == "unknown" and found.chains == (3,) and ", rough: " in repr(found)
    approved("verdicts_particles", f"stuck, {number}", found.verdict)
    assert pc.results.Particles.from_dataset(found.to_dataset()).chains == found.chains


def test_chains_that_disagree_have_no_one_mode(rng, approved):
    """Chains that put one item into different clusters: too near for two modes, and no single one that both sample."""
    draws = around(rng, np.repeat(np.arange(3), 8), 800, 0.1).reshape(2, 400, 24)
    assert particles(draws).status == "one mode"
    draws[..., 0] = rng.random((2, 400)) < np.array([[0.2], [0.8]])
    found = particles(draws)
    assert found.n_particles == 1 and found.status == "unknown" and found.chains == ()
    approved("verdicts_particles", "chains that disagree", found.verdict)


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        distinct = len(np.unique(pc.as_partition_draws(draws).labels, axis=0))
        found = particles(draws, distinct)
        assert found.distance == pytest.approx(0, abs=1e-12) and found.n_particles == distinct
        assert np.all(found.weights > 0)
        assert particles(draws).n_particles <= distinct
        parts = ["`n_particles`", "distinct draws", f"{distinct}; got {distinct + 1}"]
        check(lambda number, z=draws: particles(z, number), distinct + 1, ValueError, parts)


def test_bad_arguments():
    for argument, value, error, part in [
        ("n_particles", "two", ValueError, "'auto'; got 'two'"),
        ("n_particles", 0, ValueError, "at least 1; got 0"),
        ("n_particles", 2.0, TypeError, "integer; got 2.0"),
        ("max_particles", 0, ValueError, "at least 1; got 0"),
        ("n_starts", 0, ValueError, "at least 1; got 0"),
        ("seconds", 0, ValueError, "positive; got 0"),
        ("loss", "zz", ValueError, "one of 'vi', 'binder'"),
        ("loss", "pear", ValueError, "between two partitions"),
        ("random_seed", -1, ValueError, "got -1"),
    ]:
        check(lambda v, name=argument: pc.particles(GOOD, **{name: v}), value, error, [f"`{argument}`", part])


def test_similarity_of_a_region_is_that_of_its_allocation_probabilities(rng):
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.full(3, 0.1), size=(2, 40, 6)))
    found = particles(soft, 2, loss="binder")
    region = soft.take(np.flatnonzero(found.assignment == 0))
    np.testing.assert_allclose(found.similarity(0), region.shared_similarity)
    check(particles, PairSimilarity.of(soft), ValueError, ["posterior draws", "similarity matrix"])


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
