"""Draws that a sampler gives bit by bit: they are those given at once, and a killed process loses one batch at most."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.sources import stores
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import flip_bits

LABELS = noisy_draws(np.random.default_rng(1), 53, 12, 4, 0.3)
EXPECTED = [reference.canonical(row) for row in LABELS]
ABOUT = {"items.nc", "items.nc.sha256", "lock"}


@pytest.fixture(params=["memory", "store"])
def where(request, tmp_path):
    return tmp_path / "draws" if request.param == "store" else None


def assert_no_leftovers(store):
    assert {path.name for path in store.iterdir() if not path.name.startswith("chain_")} <= ABOUT


def test_one_at_a_time_or_many_are_the_draws_given_at_once(where):
    with pc.PartitionAccumulator(where, batch_size=10) as kept:
        for row in LABELS[:23]:
            kept.add(row)
        kept.add(LABELS[23:])
        assert kept.n_draws == 53
        draws = kept.draws()
        whole = pc.as_partition_draws(LABELS)
        np.testing.assert_array_equal(draws.labels, whole.labels)
        assert draws.labels.dtype == whole.labels.dtype
        np.testing.assert_array_equal(draws.n_clusters, whole.n_clusters)
        np.testing.assert_array_equal(draws.samples.draw, whole.samples.draw)
        np.testing.assert_array_equal(draws.weights, whole.weights)
    np.testing.assert_array_equal(kept.draws().labels, EXPECTED)  # also after it is closed
    if where is not None:
        assert_no_leftovers(where)


def test_chains_of_unequal_length_and_any_names_of_labels(where):
    with pc.PartitionAccumulator(where, batch_size=4, items=["Ann", "Bob", "Eve"], item_dim="who") as kept:
        kept.add(["x", "y", "x"], chain=2)
        kept.add([[7.0, 7.0, 9.0]] * 5, chain=0)
        kept.add([1, 1, 1], chain=2)
        draws = kept.draws()
        assert draws.samples.chain.tolist() == [0] * 5 + [2] * 2
        assert draws.samples.draw.tolist() == [*range(5), 0, 1]
        assert draws.labels.tolist() == [[0, 0, 1]] * 5 + [[0, 1, 0], [0, 0, 0]]
        assert draws.items.coords["who"].values.tolist() == ["Ann", "Bob", "Eve"]
        assert [rows.size for rows in draws.samples.chains] == [5, 2]
        assert "7 of chains 0, 2" in repr(kept)


def test_more_clusters_than_a_byte_holds(where):
    with pc.PartitionAccumulator(where, batch_size=1) as kept:
        kept.add(np.zeros(300))
        kept.add(np.arange(300))
        labels = kept.draws().labels
    assert labels.dtype == np.uint16
    np.testing.assert_array_equal(labels, [np.zeros(300), np.arange(300)])


def test_functions_take_the_draws_so_far(where):
    with pc.PartitionAccumulator(where, batch_size=20) as kept:
        kept.add(LABELS[:26], chain=0)
        kept.add(LABELS[26:], chain=1)
        chains = kept.draws()
        assert pc.as_partition_draws(kept).n_draws == 53
        assert pc.diagnose(kept).partition_ess == pc.diagnose(chains).partition_ess
        best = pc.consensus_partition(kept, random_seed=1, progressbar=False)
        np.testing.assert_array_equal(best.labels, pc.consensus_partition(chains, random_seed=1).labels)
        assert pc.particles(kept, 2, random_seed=1, progressbar=False).weights.shape == (2,)
        summary = pc.summarize(kept, random_seed=1, progressbar=False)
        np.testing.assert_array_equal(summary.consensus.labels, best.labels)
        np.testing.assert_array_equal(pc.posterior_similarity_matrix(kept), reference.similarity(LABELS))


def test_a_process_killed_before_its_first_batch_leaves_a_directory_that_can_be_used(tmp_path):
    (tmp_path / "draws" / "unfinished").mkdir(parents=True)
    (tmp_path / "draws" / "lock").touch()
    with pc.PartitionAccumulator(tmp_path / "draws") as kept:
        kept.add(LABELS)
        np.testing.assert_array_equal(kept.draws().labels, EXPECTED)


KILLED = """
import os, signal, sys
import numpy as np
import posterior_consensus as pc
from posterior_consensus.sources import stores

labels = np.load(sys.argv[1])
kept = pc.PartitionAccumulator(sys.argv[2], batch_size=10)
kept.add(labels[:27])
kept.add(labels[:13], chain=1)
if sys.argv[3] == "in a batch":
    stores._write_chunk = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    kept.add(labels[27:40])
print(kept.n_draws, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("when", ["between batches", "in a batch"])
def test_a_killed_process_loses_at_most_its_last_batches(when, tmp_path):
    np.save(tmp_path / "labels.npy", LABELS)
    store = tmp_path / "draws"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "labels.npy"), str(store), when]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (store / "unfinished").exists() == (when == "in a batch")
    with pc.PartitionAccumulator(store, batch_size=7) as kept:
        draws = kept.draws()
        assert [rows.size for rows in draws.samples.chains] == [20, 10]
        np.testing.assert_array_equal(draws.labels, EXPECTED[:20] + EXPECTED[:10])
        kept.add(LABELS[20:])
        np.testing.assert_array_equal(kept.draws().labels, EXPECTED + EXPECTED[:10])
        assert_no_leftovers(store)
    with pc.PartitionAccumulator(store) as again:
        np.testing.assert_array_equal(again.draws().labels, EXPECTED + EXPECTED[:10])


OTHER = """
import sys
import posterior_consensus as pc
try:
    pc.PartitionAccumulator(sys.argv[1])
except BlockingIOError as error:
    print(error)
"""


def test_two_processes_cannot_write_one_store(tmp_path):
    kept = pc.PartitionAccumulator(tmp_path / "draws")
    done = subprocess.run([sys.executable, "-c", OTHER, str(tmp_path / "draws")], capture_output=True, text=True)
    assert "is in use by another process, and only one process at a time can write" in done.stdout, done.stderr
    with pytest.raises(BlockingIOError, match="is in use by another process"):
        pc.PartitionAccumulator(tmp_path / "draws")
    kept.close()
    pc.PartitionAccumulator(tmp_path / "draws").close()


def stored(tmp_path, **given):
    store = tmp_path / "draws"
    with pc.PartitionAccumulator(store, batch_size=20, **given) as kept:
        kept.add(LABELS)
    return store


def chunk_of(batch):
    return batch / "0.0"


DAMAGE = {
    "chunk truncated": lambda batch: os.truncate(chunk_of(batch), chunk_of(batch).stat().st_size // 2),
    "chunk empty": lambda batch: os.truncate(chunk_of(batch), 0),
    "chunk missing": lambda batch: chunk_of(batch).unlink(),
    "chunk of another batch": lambda batch: shutil.copy(chunk_of(batch.parent / "batch_000000"), chunk_of(batch)),
    "batch missing": shutil.rmtree,
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_what_is_damaged_is_refused(damage, tmp_path):
    store = stored(tmp_path)
    DAMAGE[damage](store / "chain_0" / "batch_000001")
    with pytest.raises(ValueError, match="`store` is damaged: batch 1 of chain 0 is missing or not as it was written"):
        with pc.PartitionAccumulator(store) as kept:
            kept.draws()
    for number in (1, 2):  # what the message says
        shutil.rmtree(store / "chain_0" / f"batch_00000{number}", ignore_errors=True)
    with pc.PartitionAccumulator(store) as kept:
        np.testing.assert_array_equal(kept.draws().labels, EXPECTED[:20])


def test_flipped_bits_are_noticed_or_change_nothing(tmp_path):
    names = [f"item {i}" for i in range(12)]
    store = stored(tmp_path, items=names)

    def read():
        with pc.PartitionAccumulator(store) as kept:
            draws = kept.draws()
            return (
                kept.n_draws,
                repr(kept),
                draws.labels.tolist(),
                draws.samples.chain.tolist(),
                draws.items.names.tolist(),
            )

    expected = read()
    assert expected[0] == 53 and expected[-1] == names
    n_noticed = flip_bits(store, read, expected, "`store` is damaged: .* Restore", most=40)
    assert n_noticed > 100


@pytest.mark.parametrize("file", ["items.nc", "items.nc.sha256"])
def test_what_describes_a_store_must_be_there(file, tmp_path):
    store = stored(tmp_path)
    (store / file).unlink()
    with pytest.raises(ValueError, match=f"`store` is damaged: .*{file} is missing. Restore it"):
        pc.PartitionAccumulator(store)


def test_a_chunk_of_another_type_is_refused(tmp_path):
    zarray = stored(tmp_path) / "chain_0" / "batch_000001" / ".zarray"
    zarray.write_text(zarray.read_text().replace("|u1", "|i1"))
    with pytest.raises(ValueError, match="`store` is damaged: batch 1 of chain 0"):
        pc.PartitionAccumulator(tmp_path / "draws")


def test_zarr_reads_a_batch(tmp_path):
    zarr = pytest.importorskip("zarr")
    batch = stored(tmp_path) / "chain_0" / "batch_000001"
    np.testing.assert_array_equal(zarr.open_array(str(batch), mode="r")[:], EXPECTED[20:40])


def test_draws_that_could_not_be_written_are_kept(tmp_path, monkeypatch):

    def full(*_):
        raise OSError(28, "No space left on device")

    with pc.PartitionAccumulator(tmp_path / "draws", batch_size=10) as kept:
        with monkeypatch.context() as patch:
            patch.setattr(stores, "_write_chunk", full)
            with pytest.raises(OSError, match="No space left"):
                kept.add(LABELS[:12])
            assert kept.n_draws == 12
            assert_no_leftovers(tmp_path / "draws")
        kept.add(LABELS[12:])
    with pc.PartitionAccumulator(tmp_path / "draws") as again:
        np.testing.assert_array_equal(again.draws().labels, EXPECTED)


def test_the_items_of_a_store_stay(tmp_path):
    names = [f"item {i}" for i in range(12)]
    store = stored(tmp_path, items=names, item_dim="obs")
    with pc.PartitionAccumulator(store, items=names) as kept:
        assert kept.draws().items.coords["obs"].values.tolist() == names
        with pytest.raises(ValueError, match="`labels` must label all 12 items; got 3 labels"):
            kept.add([0, 1, 2])
    with pytest.raises(ValueError, match="`items` must be those of the store"):
        pc.PartitionAccumulator(store, items=names[::-1])
    with pytest.raises(ValueError, match="`item_dim` must be that of the store, 'obs'"):
        pc.PartitionAccumulator(store, item_dim="item")
    pc.PartitionAccumulator(store).close()  # those that were refused hold no lock


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="`store` must be a new or empty directory, or one of draws"):
        pc.PartitionAccumulator(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("labels", "chain", "error", "message"),
    [
        ([], 0, ValueError, "`labels` must be of shape"),
        ([[[0]]], 0, ValueError, "`labels` must be of shape"),
        ([0, -1], 0, ValueError, "`labels` must not be negative"),
        ([0, np.nan], 0, ValueError, "`labels` must not be missing"),
        ([0, 1, 2], 0, ValueError, "`labels` must label all 2 items; got 3 labels"),
        ([0, 1], -1, ValueError, "`chain` must be an integer from 0; got -1"),
        ([0, 1], "a", ValueError, "`chain` must be an integer from 0; got 'a'"),
        (pc.posterior_similarity_matrix([[0, 1]]), 0, TypeError, "must be an array in the order of the items"),
    ],
)
def test_bad_draws_are_refused_and_nothing_is_kept(labels, chain, error, message):
    kept = pc.PartitionAccumulator()
    kept.add([0, 1])
    with pytest.raises(error, match=message):
        kept.add(labels, chain)
    assert kept.n_draws == 1


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="`batch_size` must be at least 1; got 0"):
        pc.PartitionAccumulator(batch_size=0)
    for items in ([], [[1]], ["a", "a"], [0.5]):
        with pytest.raises(ValueError, match="`items` must"):
            pc.PartitionAccumulator(items=items)
    with pytest.raises(ValueError, match="`item_dim` must be a name other than"):
        pc.PartitionAccumulator(item_dim="draw")
    kept = pc.PartitionAccumulator()
    with pytest.raises(ValueError, match="must be at least one draw; the accumulator has none yet"):
        pc.consensus_partition(kept)
    kept.close()
    kept.close()
    with pytest.raises(ValueError, match="The accumulator is closed"):
        kept.add([0, 1])
