"""Draws that a sampler gives bit by bit: they are those given at once, and a killed process loses one batch at most."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check_all, flip_bits
from tests.stores import BUDGET, Killed, stopped

LABELS = noisy_draws(np.random.default_rng(1), 53, 12, 4, 0.3)
EXPECTED = [reference.canonical(row) for row in LABELS]
NAMES = [f"item {i}" for i in range(12)]


@pytest.fixture(params=["memory", "store"])
def where(request, store):
    return store if request.param == "store" else None


@pytest.fixture
def store(tmp_path):
    return tmp_path / "draws"


def assert_no_leftovers(store):
    assert {path.name for path in store.iterdir()} <= {"draws.list", "draws.labels", "lock"}


def test_one_at_a_time_or_many_are_the_draws_given_at_once(where):
    with pc.PartitionAccumulator(where, batch_size=10) as kept:
        for row in LABELS[:23]:
            kept.add(row)
        kept.add(LABELS[23:])
        assert kept.n_draws == 53
        draws, whole = kept.draws(), pc.as_partition_draws(LABELS)
        assert draws.labels.dtype == whole.labels.dtype
        assert_array_equal(draws.labels, whole.labels)
        assert_array_equal(draws.n_clusters, whole.n_clusters)
        assert_array_equal(draws.samples.draw, whole.samples.draw)
        assert_array_equal(draws.weights, whole.weights)
        assert_array_equal(pc.as_partition_draws(kept).labels, whole.labels)
    assert_array_equal(kept.draws().labels, EXPECTED)  # also after it is closed
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
    labels = [np.zeros(300), np.arange(300)]  # of more clusters than a byte holds
    with pc.PartitionAccumulator(where and where.with_name("wide"), batch_size=1) as kept:
        kept.add(labels[0])
        kept.add(labels[1])
        assert kept.draws().labels.dtype == np.uint16
        assert_array_equal(kept.draws().labels, labels)


def test_a_process_killed_before_its_first_batch_leaves_a_directory_that_can_be_used(store):
    store.mkdir()
    (store / "lock").touch()
    (store / "draws.list.new").touch()
    with pc.PartitionAccumulator(store) as kept:
        kept.add(LABELS)
        assert_array_equal(kept.draws().labels, EXPECTED)


def assert_goes_on(store):
    """That a store of 20 and 10 draws of two chains gives them, and takes more."""
    with pc.PartitionAccumulator(store, batch_size=7) as kept:
        draws = kept.draws()
        assert [rows.size for rows in draws.samples.chains] == [20, 10]
        assert_array_equal(draws.labels, EXPECTED[:20] + EXPECTED[:10])
        kept.add(LABELS[20:])
        assert_array_equal(kept.draws().labels, EXPECTED + EXPECTED[:10])
        assert_no_leftovers(store)
    with pc.PartitionAccumulator(store) as again:
        assert_array_equal(again.draws().labels, EXPECTED + EXPECTED[:10])


def test_what_was_killed_loses_at_most_its_last_batches(store, monkeypatch):
    kept = pc.PartitionAccumulator(store, batch_size=10)
    kept.add(LABELS[:27])
    kept.add(LABELS[:10], chain=1)  # just a batch
    with stopped(monkeypatch, Killed), pytest.raises(Killed):
        kept.add(LABELS[27:40])
    line = (store / "draws.list").read_bytes().splitlines()[-1]
    for name, part in (("draws.labels", b"some of a batch"), ("draws.list", line)):
        with (store / name).open("ab") as file:
            file.write(part)
    kept._lock.release()  # the system does that for a process
    assert_goes_on(store)


def test_a_list_grows_by_a_line_a_batch(store):
    """It is neither written anew, which takes time quadratic in the batches, nor does a line depend on the others."""
    with pc.PartitionAccumulator(store, batch_size=1, items=NAMES) as kept:
        kept.add(LABELS[0])
        first = (store / "draws.list").stat()
        kept.add(LABELS)
        last = (store / "draws.list").stat()
        assert first.st_ino == last.st_ino
        lines = (store / "draws.list").read_bytes().splitlines(keepends=True)
        assert [len(line) for line in lines[2:]] == pytest.approx([len(lines[1])] * 53, abs=3)
        assert first.st_size == len(lines[0] + lines[1])
        (store / "draws.list").write_bytes(b"".join(lines[:-1]) + lines[-1][:-1] + b"\t")
        with pytest.raises(ValueError, match="`store` is damaged: .*draws.list"):
            pc.as_partition_draws(store)


KILLED = """
import os, signal, sys
import numpy as np
import posterior_consensus as pc
from posterior_consensus.sources import accumulate

labels = np.load(sys.argv[1])
kept = pc.PartitionAccumulator(sys.argv[2], batch_size=10)
kept.add(labels[:27])
kept.add(labels[:13], chain=1)
accumulate._line = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
kept.add(labels[27:40])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_process_loses_at_most_its_last_batches(store, tmp_path):
    np.save(tmp_path / "labels.npy", LABELS)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "labels.npy"), str(store)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert_goes_on(store)


def test_only_one_at_a_time_can_write_a_store(store):
    kept = pc.PartitionAccumulator(store)
    with pytest.raises(BlockingIOError, match="in use by another process"):
        pc.PartitionAccumulator(store)
    kept.close()
    pc.PartitionAccumulator(store).close()


def contents(store):
    return {path.relative_to(store): path.stat().st_mtime_ns for path in store.rglob("*")}


def test_reading_needs_no_lock_and_writes_nothing(store, monkeypatch):
    with pc.PartitionAccumulator(store, batch_size=20) as kept:
        kept.add(LABELS)
        assert_array_equal(pc.as_partition_draws(store).labels, EXPECTED[:40])  # complete batches
    (store / "lock").unlink(missing_ok=True)
    before = contents(store)
    with monkeypatch.context() as patch:
        patch.setenv(BUDGET, "1KB")
        patch.setattr(os, "access", lambda *_: False)  # what the system says of a directory of others
        draws = pc.as_partition_draws(str(store))
        assert not draws.backend.file.path.is_relative_to(store)
        assert_array_equal([*draws.backend.of_draws(np.arange(53))], EXPECTED)
    assert_array_equal(pc.as_partition_draws(store).labels, EXPECTED)
    assert contents(store) == before


def fill(store, **given):
    with pc.PartitionAccumulator(store, batch_size=20, **given) as kept:
        kept.add(LABELS)


def damage(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGE = {
    "changed": damage,
    "truncated": lambda file: os.truncate(file, 20 if file.name == "draws.list" else file.stat().st_size - 1),
    "empty": lambda file: os.truncate(file, 0),
    "missing": lambda file: file.unlink(),
}


@pytest.mark.parametrize("file", ["draws.list", "draws.labels"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_damaged_is_refused(kind, file, store):
    fill(store)
    DAMAGE[kind](store / file)
    before = contents(store)
    what = "is damaged: .*missing.*Restore" if (kind, file) != ("missing", "draws.list") else "must be a new or empty"
    with pytest.raises(ValueError, match=f"`store` {what}"), pc.PartitionAccumulator(store) as kept:
        kept.draws()
    assert contents(store).items() - before.items() <= {(store / "lock").name}


def test_paths_are_those_of_the_directory_in_which_they_were_given(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    kept = pc.PartitionAccumulator("rel", batch_size=20)
    kept.add(LABELS[:20])
    stored = pc.as_partition_draws(LABELS, store="z.nc")
    read = pc.as_partition_draws("z.nc")
    monkeypatch.chdir("elsewhere")
    kept.add(LABELS[20:])
    kept.close()
    for draws in (kept.draws(), pc.as_partition_draws(tmp_path / "rel"), stored, read):
        assert_array_equal(draws.labels, EXPECTED)
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("most", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.nightly])])
def test_flipped_bits_are_noticed_or_change_nothing(store, most):
    fill(store, items=NAMES)

    def read():
        with pc.PartitionAccumulator(store) as kept:
            draws = kept.draws()
            arrays = draws.labels, draws.samples.chain, draws.items.names
            return kept.n_draws, repr(kept), *(array.tolist() for array in arrays)

    expected = read()
    assert expected[0] == 53 and expected[-1] == NAMES
    assert flip_bits(store, read, expected, "`store` is damaged: .* Restore", most) == 2 * most


def test_a_directory_that_cannot_be_written_to_is_read(store, monkeypatch):
    fill(store)
    (store / "lock").unlink()
    before = contents(store)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pc.PartitionAccumulator(store) as kept:
        assert_array_equal(kept.draws().labels, EXPECTED)
    assert contents(store) == before


def test_draws_that_could_not_be_written_are_kept(store, monkeypatch):
    with pc.PartitionAccumulator(store, batch_size=10) as kept:
        with stopped(monkeypatch, OSError(28, "full")), pytest.raises(OSError, match="no room in .*draws"):
            kept.add(LABELS[:12])
        assert kept.n_draws == 12
        assert_no_leftovers(store)
        kept.add(LABELS[12:])
    with pc.PartitionAccumulator(store) as again:
        assert_array_equal(again.draws().labels, EXPECTED)


def test_an_accumulator_that_could_not_be_closed_stays_open(store, monkeypatch):
    kept = pc.PartitionAccumulator(store)
    kept.add(LABELS[:50])
    with stopped(monkeypatch, OSError(28, "full")), pytest.raises(OSError, match="no room in .*draws"):
        kept.close()
    with pytest.raises(BlockingIOError):
        pc.PartitionAccumulator(store)
    kept.flush()
    kept.add(LABELS[50:])
    kept.close()
    assert_array_equal(pc.as_partition_draws(store).labels, EXPECTED)


def test_the_items_of_a_store_stay(store):
    pc.PartitionAccumulator(store, items=NAMES, item_dim="obs").close()  # before there are draws
    fill(store)
    with pc.PartitionAccumulator(store, items=NAMES) as kept:
        assert kept.draws().items.coords["obs"].values.tolist() == NAMES
        with pytest.raises(ValueError, match="`labels`.* 12 items; got 3"):
            kept.add([0, 1, 2])
    with pytest.raises(ValueError, match="`items`.*differ"):
        pc.PartitionAccumulator(store, items=NAMES[::-1])
    with pytest.raises(ValueError, match="`item_dim`.* 'obs'.* got 'item'"):
        pc.PartitionAccumulator(store, item_dim="item")
    pc.PartitionAccumulator(store).close()  # those that were refused hold no lock


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="`store`.*empty directory"):
        pc.PartitionAccumulator(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_of_bad_draws_nothing_is_kept():
    kept = pc.PartitionAccumulator()
    kept.add([0, 1])
    cases = [
        (([], 0), ValueError, "`labels`", "shape"),
        (([[[0]]], 0), ValueError, "`labels`", "shape"),
        (([0, -1], 0), ValueError, "`labels`", "negative"),
        (([0, np.nan], 0), ValueError, "`labels`", "missing"),
        (([0, 1, 2], 0), ValueError, "`labels`", "2 items; got 3"),
        (([0, 1], -1), ValueError, "`chain`", "from 0; got -1"),
        (([0, 1], "a"), ValueError, "`chain`", "from 0; got 'a'"),
        ((pc.posterior_similarity_matrix([[0, 1]]), 0), TypeError, "array in the order of the items"),
    ]
    check_all(lambda given: kept.add(*given), cases)
    assert kept.n_draws == 1


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="`batch_size`.*1; got 0"):
        pc.PartitionAccumulator(batch_size=0)
    for items in ([], [[1]], ["a", "a"], [0.5], ["a", "\ud800"], np.array(["a", "b\0c"])):
        with pytest.raises(ValueError, match="`items` must"):
            pc.PartitionAccumulator(items=items)
    with pytest.raises(ValueError, match="`item_dim`.* got 'draw'"):
        pc.PartitionAccumulator(item_dim="draw")
    kept = pc.PartitionAccumulator()
    with pytest.raises(ValueError, match="at least one draw"):
        pc.consensus_partition(kept)
    kept.close()
    kept.close()
    with pytest.raises(ValueError, match="accumulator is closed"):
        kept.add([0, 1])


def test_names_without_an_order_are_refused():
    with pytest.raises(TypeError, match="`items` must have an order.* set"):
        pc.PartitionAccumulator(items={"a", "b"})
