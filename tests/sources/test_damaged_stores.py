"""What goes wrong with a store is an error or makes no difference."""

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources import stores
from tests.helpers import flip_bits
from tests.stores import BUDGET, LABELS, Killed, assert_same_draws, large_file, narrow, stopped, total


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


def assert_can_be_made(store):
    expected = pc.as_partition_draws(LABELS)
    assert_same_draws(pc.as_partition_draws(LABELS, store=store), expected)
    assert_same_draws(pc.as_partition_draws(store), expected)
    assert names_in(store) == ["draws", "lock"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")], ids=["Ctrl-C", "full disk"])
def test_what_is_stopped_leaves_nothing(store, monkeypatch, error):
    narrow(monkeypatch, 256)
    parts = f"'{store}'.* 4.2e-05 GB. .*`store`" if isinstance(error, OSError) else None
    with stopped(monkeypatch, error, n_chunks=2), pytest.raises(type(error), match=parts):
        pc.as_partition_draws(LABELS, store=store)
    assert names_in(store) == ["lock"]
    assert_can_be_made(store)


def test_a_disk_that_is_too_small_is_an_error(store, monkeypatch):
    narrow(monkeypatch, 256)  # three chunks
    with monkeypatch.context() as patch:
        free = 3 * 60 * 256 - 1
        patch.setattr(stores.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(2 * free, free, free))
        with pytest.raises(OSError, match="no room"):
            pc.as_partition_draws(LABELS, store=store)
    assert names_in(store) == ["lock"]


def test_a_store_whose_making_was_killed_is_made_anew(store, monkeypatch):
    narrow(monkeypatch, 256)
    with stopped(monkeypatch, Killed, n_chunks=2), pytest.raises(Killed):
        pc.as_partition_draws(LABELS, store=store)
    assert names_in(store) == ["lock", "unfinished"]
    with pytest.raises(ValueError, match="`data`.* finished; .* killed"):
        pc.as_partition_draws(store)
    assert_can_be_made(store)


DAMAGE = {
    "truncated": lambda chunk: os.truncate(chunk, chunk.stat().st_size // 2),
    "empty": lambda chunk: os.truncate(chunk, 0),
    "missing": lambda chunk: chunk.unlink(),
    "longer": lambda chunk: os.truncate(chunk, chunk.stat().st_size * 2),
    "another": lambda chunk: shutil.copy(chunk.with_name("0.0"), chunk),
    "of another type": lambda chunk: chunk.write_bytes(np.fromfile(chunk, np.uint8).astype(np.uint16).tobytes()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_chunk_is_refused(stored, damage, store):
    chunk = stored.drawn.folder / "0.1"
    DAMAGE[damage](chunk)
    word = "is missing" if damage == "missing" else "is not as it was written"
    for draws in (stored, pc.as_partition_draws(store)):
        for read in (lambda d: d.labels, lambda d: d.drawn.take([3]), lambda d: list(d.drawn.map_blocks(total))):
            with pytest.raises(ValueError, match=f"store .*damaged: .* chunk .*0.1 {word}. Restore"):
                read(draws)
        assert draws.drawn.columns(np.array([0, 699])).shape == (2, 60)  # of other chunks


def test_damage_in_one_of_several_runs_of_draws_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv(BUDGET, "100kB")  # so that draws of an accumulator go to disk, each batch a run
    with pc.PartitionAccumulator(tmp_path / "kept", batch_size=10) as kept:
        kept.add(LABELS.reshape(60, 700))
        draws = kept.draws()
    assert draws.drawn.layout.runs.tolist() == [*range(0, 61, 10)]
    chunk = draws.drawn.folder / "0.0"
    damaged = np.fromfile(chunk, np.uint8)
    damaged[5 * draws.drawn.layout.width] ^= 1
    damaged.tofile(chunk)
    with pytest.raises(ValueError, match="damaged: .* chunk .*0.0 "):
        draws.drawn.columns(np.array([3]))


def test_files_that_describe_a_store_must_be_there_and_fit(stored, store):
    for name in ("about.nc", "items.nc", "labels/.zarray", "labels/.zattrs"):
        for file in (store / "draws" / name, store / "draws" / f"{name}.sha256"):
            content = file.read_bytes()
            file.unlink()
            with pytest.raises(ValueError, match=f"damaged: .*{file.name}.* Restore .*make it again"):
                pc.as_partition_draws(store)
            file.write_bytes(content)
    about = stored.drawn.folder / ".zarray"
    about.write_text(about.read_text().replace("|u1", "<u2"))  # as another program may rewrite all chunks
    with pytest.raises(ValueError, match=r"damaged: .*\.zarray is not as it was written"):
        pc.as_partition_draws(store)


@pytest.mark.parametrize("most", [1, pytest.param(15, marks=pytest.mark.slow)])
def test_flipped_bits_are_noticed(store, monkeypatch, most):
    narrow(monkeypatch, 8)
    names = pd.MultiIndex.from_product([list("xyzu"), range(5)])
    coords = {"chain": ["a", "b", "c"], "obs": names}
    labels = xr.DataArray(LABELS[:, :, :20], dims=("chain", "draw", "obs"), coords=coords)
    pc.as_partition_draws(labels, weights=np.arange(1, 61), store=store)

    def read():
        draws = pc.as_partition_draws(store)
        values = draws.labels, draws.n_clusters, draws.weights, draws.samples.chain, draws.samples.draw
        return draws.items.dim, draws.items.names.tolist(), *(value.tolist() for value in values)

    n_files = sum(file.is_file() and file.stat().st_size > 0 for file in store.rglob("*"))
    message = "store .* is damaged: .* Restore .*make it again"
    assert flip_bits(store, read, read(), message, most) == most * n_files == most * 11


def test_only_one_at_a_time_can_write_a_store_and_once(store):
    store.mkdir()
    lock = stores.locked(store)
    with pytest.raises(BlockingIOError, match="in use by another process"):
        pc.as_partition_draws(LABELS, store=store)
    lock.release()
    pc.as_partition_draws(LABELS, store=store)
    with pytest.raises(ValueError, match="already has draws. .*`data`"):
        pc.as_partition_draws(LABELS, store=store)


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="`store`.* empty directory; got"):
        pc.as_partition_draws(LABELS, store=tmp_path)
    with pytest.raises(ValueError, match="`store` must be None for PartitionDraws"):
        pc.as_partition_draws(pc.as_partition_draws(LABELS), store=tmp_path / "store")
    assert names_in(tmp_path) == ["thesis.tex"]


TEMPORARY = """
import os, signal, sys
import posterior_consensus as pc
from posterior_consensus.sources import stores
stores.tempfile.tempdir = sys.argv[1]
draws = pc.as_partition_draws(sys.argv[2])
assert type(draws.drawn).__name__ == "StoredLabels"
if sys.argv[3] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_what_a_killed_process_left_goes_with_the_next_temporary_store(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", TEMPORARY, str(temporary), str(large_file(tmp_path, ".nc"))]
    monkeypatch.setenv(BUDGET, "100KB")
    for end, left in (("killed", 1), ("ends", 0)):
        done = subprocess.run([*command, end], capture_output=True, text=True)
        assert (done.returncode == 0) == (end == "ends"), done.stderr
        assert len(names_in(temporary)) == left


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and modes")
def test_a_temporary_store_removes_what_was_left_and_nothing_else(tmp_path, monkeypatch):
    victim, home, place = tmp_path / "thesis.tex", tmp_path / "home", tmp_path / "temporary"
    victim.write_text("...")
    place.mkdir()

    def left(name, mode=0o700):
        """A directory as a killed process leaves it."""
        path = place / f"posterior_consensus_labels_{name}"
        path.mkdir()
        path.chmod(mode)
        (path / "temporary").touch()
        return path

    theirs, mine = {left("group", 0o770), left("all", 0o707)}, left("linked lock")
    (mine / "lock").symlink_to(victim)
    home.mkdir(0o700)
    (home / "temporary").touch()
    link, named = (place / f"posterior_consensus_labels_{name}" for name in ("link", "named"))
    link.symlink_to(home)
    pc.as_partition_draws(LABELS, store=named)
    named.chmod(0o700)
    for _ in range(2):
        stores.Temporary(place)
    assert set(place.iterdir()) == {*theirs, mine, link, named}
    assert victim.read_text() == "..." and names_in(home) == ["temporary"]
    assert pc.as_partition_draws(named).n_draws == 60
    (mine / "lock").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(stores.os, "getuid", lambda: -1)  # of another user
        stores.Temporary(place)
        assert mine.exists()
    stores.Temporary(place)
    assert not mine.exists()
