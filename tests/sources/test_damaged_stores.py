"""What goes wrong with a store is an error or makes no difference."""

import errno
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources import stores
from tests.helpers import flip_bits
from tests.stores import BUDGET, LABELS, assert_same_draws, large_file, narrow, total

WRITES = """
import os, signal, sys
import numpy as np
import posterior_consensus as pc
from posterior_consensus.sources import stores

write, calls = stores._write_chunk, []
def counted(*arguments):
    write(*arguments)
    calls.append(1)
    if len(calls) == 2:
        {event}
stores._write_chunk = counted
stores.block_width = lambda n_draws: 256
stores.tempfile.tempdir = sys.argv[3]
try:
    pc.as_partition_draws(np.load(sys.argv[1]), store=sys.argv[2] or None)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def run(tmp_path, event, store):
    np.save(tmp_path / "labels.npy", LABELS)
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    command = [sys.executable, "-c", WRITES.format(event=event), str(tmp_path / "labels.npy"), store, str(temporary)]
    return subprocess.run(command, capture_output=True, text=True)


def test_ctrl_c_leaves_nothing(tmp_path):
    done = run(tmp_path, "import _thread; _thread.interrupt_main()", str(tmp_path / "store"))
    assert done.stdout == "interrupted\n", done.stderr
    assert [file.name for file in (tmp_path / "store").iterdir()] == ["lock"]
    assert_same_draws(pc.as_partition_draws(LABELS, store=tmp_path / "store"), pc.as_partition_draws(LABELS))


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_store_whose_process_was_killed_is_made_anew(tmp_path):
    done = run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", str(tmp_path / "store"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    with pytest.raises(ValueError, match="`data` must be a store that is finished; .* or its process was killed"):
        pc.as_partition_draws(tmp_path / "store")
    expected = pc.as_partition_draws(LABELS)
    assert_same_draws(pc.as_partition_draws(LABELS, store=tmp_path / "store"), expected)
    assert_same_draws(pc.as_partition_draws(tmp_path / "store"), expected)
    assert sorted(file.name for file in (tmp_path / "store").iterdir()) == ["draws", "lock"]


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(stores, "_write_chunk", full)
        with pytest.raises(OSError, match=f"There is no room in '{tmp_path / 'store'}' for labels of 4.2e-05 GB. Name"):
            pc.as_partition_draws(LABELS, store=tmp_path / "store")
    assert [file.name for file in (tmp_path / "store").iterdir()] == ["lock"]
    with monkeypatch.context() as patch:
        patch.setattr(stores.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 90, 10))
        with pytest.raises(OSError, match="There is no room"):
            pc.as_partition_draws(LABELS, store=tmp_path / "store")
    assert_same_draws(pc.as_partition_draws(LABELS, store=tmp_path / "store"), pc.as_partition_draws(LABELS))


def rewritten(chunk):
    """Change the type of an array and of all its chunks, as another program may do."""
    zarray = chunk.with_name(".zarray")
    zarray.write_text(zarray.read_text().replace("|u1", "<u2"))


DAMAGE = {
    "truncated": lambda chunk: os.truncate(chunk, chunk.stat().st_size // 2),
    "empty": lambda chunk: os.truncate(chunk, 0),
    "missing": lambda chunk: chunk.unlink(),
    "longer": lambda chunk: os.truncate(chunk, chunk.stat().st_size * 2),
    "another": lambda chunk: shutil.copy(chunk.with_name("0.0"), chunk),
    "of another type": lambda chunk: chunk.write_bytes(np.fromfile(chunk, np.uint8).astype(np.uint16).tobytes()),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_chunk_is_refused(stored, damage, tmp_path):
    chunk = stored.drawn.folder / "0.1"
    DAMAGE[damage](chunk)
    word = "is missing" if damage == "missing" else "is not as it was written"
    for draws in (stored, pc.as_partition_draws(tmp_path / "store")):
        for read in (lambda d: d.labels, lambda d: d.drawn.take([3]), lambda d: list(d.drawn.map_blocks(total))):
            with pytest.raises(ValueError, match=f"The store of labels is damaged: the chunk .*0.1 {word}. Restore it"):
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
    with pytest.raises(ValueError, match=r"is damaged: the chunk .*0.0 is not as it was written"):
        draws.drawn.columns(np.array([3]))


def test_what_describes_a_store_must_fit_it(stored, tmp_path):
    rewritten(stored.drawn.folder / "0.1")
    with pytest.raises(ValueError, match=r"is damaged: .*\.zarray is not as it was written"):
        pc.as_partition_draws(tmp_path / "store")


def test_flipped_bits_are_noticed(tmp_path, monkeypatch):
    narrow(monkeypatch, 8)
    store = tmp_path / "store"
    labels = xr.DataArray(
        LABELS[:, :, :20],
        dims=("chain", "draw", "obs"),
        coords={"chain": ["a", "b", "c"], "obs": pd.MultiIndex.from_product([list("xyzu"), range(5)])},
    )
    pc.as_partition_draws(labels, weights=np.arange(1, 61), store=store)

    def read():
        draws = pc.as_partition_draws(store)
        values = (
            draws.labels,
            draws.n_clusters,
            draws.weights,
            draws.samples.chain,
            draws.samples.draw,
            draws.items.names,
        )
        return draws.items.dim, *(value.tolist() for value in values)

    n_files = sum(file.is_file() and file.stat().st_size > 0 for file in store.rglob("*"))
    message = "store .* is damaged: .* Restore it, or remove the store and make it again"
    assert flip_bits(store, read, read(), message, most=15) == 15 * n_files == 15 * 11


@pytest.mark.parametrize("file", ["about.nc", "items.nc", "labels/.zarray", "labels/.zattrs"])
@pytest.mark.parametrize("suffix", ["", ".sha256"])
def test_a_file_that_is_missing_is_named(stored, file, suffix, tmp_path):
    (tmp_path / "store" / "draws" / f"{file}{suffix}").unlink()
    with pytest.raises(
        ValueError, match=f"is damaged: .*{file}{suffix}.* Restore it, or remove the store and make it again"
    ):
        pc.as_partition_draws(tmp_path / "store")


def test_two_processes_cannot_write_one_store(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    lock = stores.locked(store)
    with pytest.raises(BlockingIOError, match="is in use by another process, and only one process at a time can write"):
        pc.as_partition_draws(LABELS, store=store)
    lock.release()
    pc.as_partition_draws(LABELS, store=store)
    with pytest.raises(ValueError, match="already has draws. Pass its path as `data`"):
        pc.as_partition_draws(LABELS, store=store)


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="`store` must be a new or empty directory; got"):
        pc.as_partition_draws(LABELS, store=tmp_path)
    with pytest.raises(ValueError, match="`store` must be None for PartitionDraws"):
        pc.as_partition_draws(pc.as_partition_draws(LABELS), store=tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_what_a_killed_process_left_goes_with_the_next_temporary_store(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    path = large_file(tmp_path, ".nc")
    event = "os.kill(os.getpid(), signal.SIGKILL)"
    program = f"""
import os, signal, sys
import posterior_consensus as pc
from posterior_consensus.sources import stores
stores.tempfile.tempdir = {str(temporary)!r}
draws = pc.as_partition_draws({str(path)!r})
assert type(draws.drawn).__name__ == "StoredLabels"
{{end}}
"""
    temporary.mkdir()
    monkeypatch.setenv(BUDGET, "100KB")
    for end, left in ((event, 1), ("", 0), ("raise KeyboardInterrupt", 0), ("", 0)):
        done = subprocess.run([sys.executable, "-c", program.format(end=end)], capture_output=True, text=True)
        assert (done.returncode == 0) == (end == ""), done.stderr
        assert len(list(temporary.iterdir())) == left


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and modes")
def test_a_temporary_store_leaves_alone_what_is_not_a_leftover(tmp_path, monkeypatch):
    victim, place = tmp_path / "thesis.tex", tmp_path / "temporary"
    victim.write_text("...")
    place.mkdir()

    def left(name, mode=0o700):
        """A directory as a killed process leaves it, but for a lock that leads elsewhere."""
        path = place / f"posterior_consensus_labels_{name}"
        path.mkdir()
        path.chmod(mode)
        (path / "temporary").touch()
        (path / "lock").symlink_to(victim)
        return path

    theirs, mine = left("open", 0o777), left("linked lock")
    (tmp_path / "home").mkdir(0o700)
    (tmp_path / "home" / "temporary").touch()
    link = place / "posterior_consensus_labels_link"
    link.symlink_to(tmp_path / "home")
    named = place / "posterior_consensus_labels_named"
    pc.as_partition_draws(LABELS, store=named)
    named.chmod(0o700)
    for _ in range(2):
        stores.Temporary(place)
    assert set(place.iterdir()) == {theirs, mine, link, named}
    assert victim.read_text() == "..."
    assert list((tmp_path / "home").iterdir()) == [tmp_path / "home" / "temporary"]
    assert pc.as_partition_draws(named).n_draws == 60
    (mine / "lock").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(stores.os, "getuid", lambda: -1)  # of another user
        stores.Temporary(place)
        assert mine.exists()
    stores.Temporary(place)
    assert not mine.exists()
