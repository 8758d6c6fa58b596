"""A search of many items: on a sample, then over all in blocks. Thresholds are lowered so that little is many."""

import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.searches import greedy
from posterior_consensus.consensus.selection import Task
from posterior_consensus.ensemble import labels as labels_module
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.runtime import executor, memory
from posterior_consensus.search import large
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.kernels.checks import compiled_only

pytestmark = compiled_only

WEIGHTS = np.array([0.0, 5.0, *np.linspace(0.1, 1, 10)])
BLOCKS = ((7, 1), (64, 1), (256, 2**24))  # items whose number a block's is a multiple of, and labels in a block


@pytest.fixture
def lowered(monkeypatch):
    """A function that makes samples of 40 items and 30 draws, and blocks of a given size, be used from then on."""

    def lower(items=40, draws=30, size=BLOCKS[1]):
        monkeypatch.setattr(large, "_ITEMS", items)
        monkeypatch.setattr(large, "_DRAWS", draws)
        monkeypatch.setattr(memory, "LABELS_OF_LARGE_MODEL", 1)
        monkeypatch.setattr(labels_module, "ALIGNED", size[0])
        monkeypatch.setattr(memory, "LABELS_IN_BLOCK", size[1])

    return lower


@dataclass(frozen=True, eq=False)
class InBlocksOnly(ArrayLabels):
    """Labels that nobody may have all at once."""

    @property
    def values(self):
        raise AssertionError("all labels were asked for")


def found(draws, loss="vi", **options):
    return pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("loss", ["vi", "binder", "nid", "information_distance"])
def test_search_over_blocks_finds_what_a_search_over_all_finds(loss, rng, lowered):
    draws = pc.as_partition_draws(noisy_draws(rng, 60, 300, 5, 0.1))
    ordinary = found(draws, loss)
    assert ordinary.info.sample is None
    lowered()
    ours = found(draws, loss)
    assert ours.info.sample == [40, 30]
    assert "among 40 items" in repr(ours)
    assert ours.expected_loss <= ordinary.expected_loss * (1 + 1e-4)


@pytest.mark.parametrize(
    ("n_draws", "n_items", "sample"),
    [(10, 101, [50, 10]), (10, 99, None), (9, 111, None), (40, 80, [40, 40]), (40, 79, None), (1, 200, [100, 1])],
)
def test_half_of_the_items_is_a_sample_from_a_number_of_labels_on(n_draws, n_items, sample, rng, lowered, monkeypatch):
    lowered(items=100, draws=100)
    monkeypatch.setattr(large, "_LABELS", 1000)
    monkeypatch.setattr(large, "_LEAST_ITEMS", 40)
    assert found(noisy_draws(rng, n_draws, n_items, 4, 0.1)).info.sample == sample


@pytest.mark.parametrize(("loss", "weights"), [("vi", WEIGHTS), ("binder", None), ("nvi", WEIGHTS)])
def test_no_move_of_an_item_and_no_merge_lowers_the_loss(loss, weights, rng, lowered):
    labels, definition = noisy_draws(rng, 12, 18, 4, 0.5), reference.LOSSES[loss]
    lowered(items=12, draws=5)
    best = found(pc.as_partition_draws(labels, weights=weights), loss)
    assert best.expected_loss == pytest.approx(reference.expected(best.labels.values, labels, definition, weights))
    around = (
        reference.expected(other, labels, definition, weights) for other in reference.neighbours(best.labels.values)
    )
    assert best.expected_loss <= min(around) + 1e-9


@pytest.mark.parametrize("loss", ["vi", "nvi"])
def test_threads_and_blocks_change_nothing(loss, rng, lowered, monkeypatch):
    draws = pc.as_partition_draws(noisy_draws(rng, 40, 600, 6, 0.2))
    results = []
    for n_threads in (1, 2):
        monkeypatch.setattr(executor, "n_threads", lambda n=n_threads: n)
        for size in BLOCKS:
            lowered(size=size)
            best = found(draws, loss)
            results.append((best.labels.values.tobytes(), best.expected_loss, best.mcse, best.info.n_moves))
    assert len(set(results)) == 1


def test_labels_are_read_in_blocks_and_few_times(rng, lowered, monkeypatch):
    labels = pc.as_partition_draws(noisy_draws(rng, 60, 500, 5, 0.1))
    draws = replace(labels, backend=InBlocksOnly(labels.backend.array, labels.n_clusters))
    lowered()
    n_reads = 0
    in_memory = ArrayLabels.map_blocks

    def counted(self, *arguments, **options):
        nonlocal n_reads
        n_reads += isinstance(self, InBlocksOnly)
        return in_memory(self, *arguments, **options)

    monkeypatch.setattr(ArrayLabels, "map_blocks", counted)
    one = greedy(draws, as_loss("vi"), Task(np.random.default_rng(1)))
    assert n_reads <= 6
    assert np.array_equal(one.labels, greedy(labels, as_loss("vi"), Task(np.random.default_rng(1))).labels)


def test_numbers_of_clusters_are_kept(rng, lowered):
    draws = pc.as_partition_draws(noisy_draws(rng, 40, 300, 5, 0.1))
    lowered()
    for limits, number in [
        (("n_clusters", 3), 3),
        (("n_clusters", 8), 8),
        (("max_clusters", 2), 2),
        (("max_clusters", 9), 5),
    ]:
        assert found(draws, **dict([limits])).n_clusters == number, limits


def test_clusters_that_the_sample_misses_are_found(rng, lowered):
    truth = np.concatenate([np.zeros(200, int), np.ones(196, int), [2, 2, 2, 2]])
    labels = np.where(rng.random((30, 400)) < 0.05, rng.integers(2, size=(30, 400)), truth)
    labels[:, -4:] = 2
    lowered()
    assert reference.same(found(labels).labels.values, truth)


def test_search_goes_on_from_given_partitions(rng, lowered):
    labels = noisy_draws(rng, 40, 300, 5, 0.8)
    draws = pc.as_partition_draws(labels)
    lowered(items=5, draws=2)
    start = found(draws)
    assert found(draws, starts=[start, "best_draw"], n_starts=1).expected_loss <= start.expected_loss
    one = found(draws, starts=[np.zeros(300, int)], n_starts=1)
    assert one.expected_loss <= reference.expected(np.zeros(300, int), labels, reference.vi) + 1e-12


def test_time_that_is_over_leaves_a_partition_of_all_items(rng, lowered):
    draws = pc.as_partition_draws(noisy_draws(rng, 40, 300, 5, 0.1))
    lowered()
    best = found(draws, seconds=1e-9, max_clusters=4)
    assert best.n_clusters <= 4
    assert best.expected_loss < found(draws, n_clusters=1).expected_loss


@pytest.mark.parametrize("function", ["_labels_of_rows", "_allocated", "_doubtful"])
def test_interrupt_leaves_a_partition_of_all_items(function, rng, lowered, monkeypatch):
    draws = pc.as_partition_draws(noisy_draws(rng, 40, 300, 5, 0.1))
    lowered()
    in_memory, interrupted = ArrayLabels.map_blocks, []

    def interrupting(self, called, *arguments, **options):
        for number, block in enumerate(in_memory(self, called, *arguments, **options)):
            if called.__name__ == function and number == 3 and not interrupted:
                interrupted.append(function)
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(ArrayLabels, "map_blocks", interrupting)
    if function == "_labels_of_rows":  # there is nothing yet to return
        with pytest.raises(KeyboardInterrupt):
            found(draws)
        return
    with pytest.warns(UserWarning, match="interrupted"):
        best = found(draws)
    assert interrupted
    assert best.expected_loss < found(draws, n_clusters=1).expected_loss


def test_posterior_of_little_in_common_is_one_cluster(rng, lowered):
    labels = rng.integers(3, size=(30, 200))
    lowered()
    assert found(labels).n_clusters == 1


def test_too_many_clusters_for_the_memory_are_refused(rng, lowered, monkeypatch):
    labels = np.tile(np.arange(200) // 20, (40, 1))
    lowered()
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "9KB")  # tables of ten clusters take 16 kB
    with pytest.raises(MemoryError, match="A search among"):
        found(labels)


def test_one_item_per_cluster_keeps_its_sparse_tables(rng, monkeypatch):
    monkeypatch.setattr(large, "_ITEMS", 100)
    n_items = 60_000
    few, many = (pc.as_partition_draws([rng.permutation(n) for _ in range(2)]) for n in (59_800, n_items))
    found(few, n_starts=1)
    tracemalloc.start()
    best = found(many, n_starts=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert best.info.sample is None
    assert best.n_clusters == n_items
    assert best.expected_loss == 0
    assert peak < 100 * many.labels.nbytes


@pytest.mark.parametrize(
    ("noise", "n_items"), [("shared", 700), ("per_draw", 200)]
)  # all of few items are in the sample
def test_perturbation_model_in_blocks_gives_what_it_gives_of_all(n_items, noise, rng, lowered, monkeypatch):
    draws = pc.as_partition_draws(noisy_draws(rng, 40, n_items, 5, 0.6))
    ordinary = pc.consensus.random_perturbation_em(draws, noise=noise, random_seed=1)
    results = []
    for n_threads in (1, 2):
        monkeypatch.setattr(executor, "n_threads", lambda n=n_threads: n)
        for size in BLOCKS:
            lowered(size=size)
            ours = pc.consensus.random_perturbation_em(draws, noise=noise, random_seed=1)
            results.append((ours.memberships.values.tobytes(), ours.log_likelihood, ours.draw_noise.values.tobytes()))
    assert len(set(results)) == 1
    np.testing.assert_allclose(ours.memberships, ordinary.memberships, atol=1e-6)
    assert ours.log_likelihood == pytest.approx(ordinary.log_likelihood)
