"""What goes wrong with a store is an error or makes no difference."""

import errno
import gc
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime import files
from posterior_consensus.sources import stores
from tests.helpers import flip_bits
from tests.stores import (
    BUDGET,
    LABELS,
    Killed,
    assert_same_draws,
    damage_labels,
    large_file,
    narrow,
    stopped,
    total,
)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def closed_store(store):
    """One that is not mapped: Windows changes no file that is."""
    pc.as_partition_draws(LABELS, store=store)
    return store


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


def assert_can_be_made(store):
    expected = pc.as_partition_draws(LABELS)
    assert_same_draws(pc.as_partition_draws(LABELS, store=store), expected)
    assert_same_draws(pc.as_partition_draws(store), expected)
    assert names_in(store.parent) == ["store"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")], ids=["Ctrl-C", "full disk"])
def test_what_is_stopped_leaves_nothing(store, monkeypatch, error):
    folder = re.escape(repr(str(store.parent)))
    parts = rf"{folder}.* 0.0001\d+ GB. .*`store`" if isinstance(error, OSError) else None
    with stopped(monkeypatch, error), pytest.raises(type(error), match=parts):
        pc.as_partition_draws(LABELS, store=store)
    assert names_in(store.parent) == []
    assert_can_be_made(store)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is mapped")
@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["complete", "Ctrl-C"])
def test_a_store_is_not_mapped_when_it_is_shortened_or_renamed(store, monkeypatch, error):
    """Windows refuses this then."""
    begun, narrowed, seen = stores._begun, stores._narrowed, []

    def narrow(labels, dtype):
        seen.append(is_mapped())
        if error is not None:
            raise error
        return narrowed(labels, dtype)

    def begin(*given):
        seen.append(is_mapped())
        return begun(*given)

    def is_mapped():
        return f"{store}.unfinished" in Path("/proc/self/maps").read_text(encoding="utf-8")

    monkeypatch.setattr(stores, "_narrowed", narrow)
    monkeypatch.setattr(stores, "_begun", begin)
    if error is None:
        pc.as_partition_draws(LABELS, store=store)
        assert seen == [False, True, False]
    else:
        with pytest.raises(type(error)):
            pc.as_partition_draws(LABELS, store=store)
        assert [*seen, is_mapped()] == [False, True, False]


def test_a_disk_that_is_too_small_is_an_error(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**5, 60_000, 40_000))
        with pytest.raises(OSError, match="no room"):
            pc.as_partition_draws(LABELS, store=store)
    assert names_in(store.parent) == []


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EFBIG], ids=["quota", "size of files"])
def test_a_limit_of_the_system_is_a_full_disk(store, monkeypatch, number):
    with (
        stopped(monkeypatch, OSError(number, "limit")),
        pytest.raises(OSError, match="no room in .* GB. .*`store`") as at,
    ):
        pc.as_partition_draws(LABELS, store=store)
    assert at.value.errno == number
    assert names_in(store.parent) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the size of files")
def test_the_size_that_is_named_is_that_of_all(store):
    """The names are larger than the labels here; half of all is enough for the labels."""
    names = [f"{number:0400}" for number in range(700)]
    data = xr.DataArray(LABELS, dims=("chain", "draw", "item"), coords={"item": names})
    whole = pc.as_partition_draws(data, store=store).backend.file.path.stat().st_size
    store.unlink()
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="no room in") as at:
            pc.as_partition_draws(data, store=store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    named = 1e9 * float(re.search(r"of ([\d.e-]+) GB", str(at.value))[1])
    assert whole <= named <= 1.3 * whole
    assert names_in(store.parent) == []


TEXT = {
    "NUL": {"obs": np.array(["a", "b\0c"], object)},
    "half of a surrogate pair": {"obs": ["a", "\ud800"]},
    "attribute": {"obs": xr.DataArray(list("ab"), dims="obs", attrs={"unit": "\0k"})},
    "no text": {5: ("obs", [1, 2])},
}


@pytest.mark.parametrize("coords", TEXT.values(), ids=TEXT)
def test_coordinates_that_a_file_does_not_hold_are_refused(coords, store):
    data = xr.DataArray([[0, 1], [0, 0]], dims=("sample", "obs"), coords=coords)
    with pytest.raises((ValueError, TypeError), match="`data` must have coordinates .* text.* got"):
        pc.as_partition_draws(data, item_dim="obs", store=store)
    assert names_in(store.parent) == []


def test_a_store_whose_making_was_killed_is_made_anew(store, monkeypatch):
    with stopped(monkeypatch, Killed), pytest.raises(Killed):
        pc.as_partition_draws(LABELS, store=store)
    assert "store.unfinished" in names_in(store.parent)
    with pytest.raises(ValueError, match="`data`.* finished; .* killed"):
        pc.as_partition_draws(store)
    assert_can_be_made(store)


DAMAGE = {
    "truncated": lambda store: os.truncate(store, store.stat().st_size - 1),
    "half": lambda store: os.truncate(store, store.stat().st_size // 2),
    "longer": lambda store: os.truncate(store, store.stat().st_size * 2),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_store_of_another_length_is_refused(closed_store, damage):
    damage(closed_store)
    with pytest.raises(ValueError, match="store .*damaged: .*store is not as it was written. Restore"):
        pc.as_partition_draws(closed_store)


def test_damaged_labels_are_refused(closed_store):
    damage_labels(closed_store)
    with pytest.raises(ValueError, match="store .*damaged: .*store is not as it was written. Restore"):
        pc.as_partition_draws(closed_store)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no file that is mapped")
def test_a_copy_for_another_process_reads_no_other_store_of_this_name(stored, store):
    copy, expected = pickle.dumps(stored), pc.as_partition_draws(LABELS)
    store.unlink()
    with pytest.raises(ValueError, match="store .*damaged: .*store is missing. Restore"):
        pickle.loads(copy)
    pc.as_partition_draws(LABELS[:, ::-1], store=store)
    with pytest.raises(ValueError, match="replaced since it was opened: .*store has other content. Read it again"):
        pickle.loads(copy)
    assert_same_draws(stored, expected)  # the map is of the old file
    store.unlink()
    pc.as_partition_draws(LABELS, store=store)
    assert_same_draws(pickle.loads(copy), expected)


def overwrite(store, labels):
    """Copy another store over this one, as `cp` does: into the same file."""
    other = store.with_name("other")
    pc.as_partition_draws(labels, store=other)
    shutil.copy(other, store)


USES = {
    "labels": lambda draws: draws.labels,
    "expected loss": lambda draws: pc.expected_loss(draws, np.zeros(700, int)),
    "blocks": lambda draws: list(draws.backend.map_blocks(total)),
    "draws": lambda draws: draws.backend.of_draws(np.arange(2)),
    "a part": lambda draws: draws.take([1, 2]),
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows changes no file that is mapped")
@pytest.mark.parametrize("budget", ["4GB", "100KB"], ids=["held", "in blocks"])
@pytest.mark.parametrize("other", [LABELS[:, ::-1], LABELS[:1]], ids=["same size", "shorter"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_store_that_was_overwritten_since_it_was_opened_is_refused(use, other, budget, store, monkeypatch):
    monkeypatch.setenv(BUDGET, budget)
    stored = pc.as_partition_draws(LABELS, store=store)
    part = stored.take(np.arange(50))
    overwrite(store, other)
    for draws in (stored, part) if part.backend.file is not None else (stored,):
        with pytest.raises(ValueError, match="overwritten since it was opened: .*store. Read it again"):
            use(draws)
    use(pc.as_partition_draws(store))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows changes no file that is mapped")
def test_a_store_that_is_overwritten_while_blocks_are_read_is_refused(stored, store, monkeypatch):
    monkeypatch.setenv(BUDGET, "100KB")
    narrow(monkeypatch, 100)
    steps = stored.backend.map_blocks(total)
    next(steps)
    os.utime(store)  # a change of the labels could already be in blocks that are read ahead
    with pytest.raises(ValueError, match="overwritten since it was opened"):
        list(steps)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows changes no file that is mapped")
@pytest.mark.parametrize("size", [0, None], ids=["empty", "same size"])
def test_an_overwritten_store_is_not_read_by_another_process(stored, store, size):
    copy = pickle.dumps(stored)
    overwrite(store, LABELS[:, ::-1])
    if size is not None:
        os.truncate(store, size)
    with pytest.raises(ValueError, match="replaced since it was opened: .*store has other content. Read it again"):
        pickle.loads(copy)


def test_what_is_written_to_labels_stays_in_the_process(stored, store):
    whole = store.read_bytes()
    stored.labels[0] = 7
    assert store.read_bytes() == whole


OLD = f"\nposterior_consensus labels 4 sha256 {0:064x}\n"


def test_a_store_in_chunks_is_refused_with_the_line_that_makes_a_new_one(closed_store):
    store = closed_store
    content = store.read_bytes()
    store.write_bytes(content[: content.rindex(b"\nposterior")] + OLD.encode())  # xarray reads both
    with pytest.raises(ValueError, match="store' is of an older one") as refused:
        pc.as_partition_draws(store)
    [new] = re.findall(r"(old = .*store=)'new.nc'", str(refused.value))
    line = new.replace("xarray", "xr").replace("as_partition", "pc.as_partition")
    found = {"xr": xr, "pc": pc, "path": store.with_name("new")}
    exec(f"{line}path)", found)
    found["old"].close()
    assert_same_draws(pc.as_partition_draws(store.with_name("new")), pc.as_partition_draws(LABELS))


@pytest.mark.parametrize("most", [1, pytest.param(15, marks=[pytest.mark.slow, pytest.mark.nightly])])
def test_flipped_bits_are_noticed(store, most):
    names = pd.MultiIndex.from_product([list("xyzu"), range(5)])
    coords = {"chain": ["a", "b", "c"], "obs": names}
    labels = xr.DataArray(LABELS[:, :, :20], dims=("chain", "draw", "obs"), coords=coords)
    pc.as_partition_draws(labels, weights=np.arange(1, 61), store=store)

    def read():
        draws = pc.as_partition_draws(store)
        values = draws.labels, draws.n_clusters, draws.weights, draws.samples.chain, draws.samples.draw
        return draws.items.dim, draws.items.names.tolist(), *(value.tolist() for value in values)

    message = "store .* is damaged: .* Restore .*make it again"
    assert flip_bits(store, read, read(), message, most) == most


def test_only_one_at_a_time_can_write_a_store_and_once(store):
    lock = stores.locked(store, store.with_name("store.lock"))
    with pytest.raises(BlockingIOError, match="in use by another process"):
        pc.as_partition_draws(LABELS, store=store)
    lock.release()
    pc.as_partition_draws(LABELS, store=store)
    with pytest.raises(ValueError, match="new file; .*already has draws. .*`data`"):
        pc.as_partition_draws(LABELS, store=store)


def test_a_file_or_directory_of_something_else_is_left_alone(tmp_path):
    file = tmp_path / "thesis.tex"
    file.write_text("...")
    for taken in (file, tmp_path):
        with pytest.raises(ValueError, match="`store`.* new file; .*exists"):
            pc.as_partition_draws(LABELS, store=taken)
    with pytest.raises(ValueError, match="`store` must be None for PartitionDraws"):
        pc.as_partition_draws(pc.as_partition_draws(LABELS), store=tmp_path / "store")
    assert names_in(tmp_path) == ["thesis.tex"] and file.read_text(encoding="utf-8") == "..."


TEMPORARY = """
import os, signal, sys
import posterior_consensus as pc
from posterior_consensus.runtime import files
from posterior_consensus.sources import stores
stores.tempfile.tempdir = sys.argv[1]
draws = pc.as_partition_draws(sys.argv[2])
assert draws.backend.file is not None
if sys.argv[3] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs files without names")
def test_of_a_temporary_store_nothing_is_left(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", TEMPORARY, str(temporary), str(large_file(tmp_path, ".nc"))]
    monkeypatch.setenv(BUDGET, "100KB")
    for end in ("killed", "ends"):
        done = subprocess.run([*command, end], check=False, capture_output=True, text=True)
        assert (done.returncode == 0) == (end == "ends"), done.stderr
        assert names_in(temporary) == []


def test_a_temporary_store_with_a_name_goes_with_its_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "client_for", lambda n_labels: "a client")  # whose workers need the name
    content, path = stores._temporary(tmp_path, 1, 1)
    assert path.parent == tmp_path and path.exists()
    stores._remove(path, -1)  # a forked process
    assert path.exists()
    del content
    gc.collect()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("make", ["store", "accumulator"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/draws", "not a URL; got 's3://bucket/draws'"),
        (Path("file:///tmp/draws"), "not a URL"),
        ("~nobody-of-this-name/draws", "no such user"),
    ],
    ids=["URL", "URL as a path", "user"],
)
def test_what_is_no_path_of_this_machine_makes_no_folder(make, path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"`store` must be a path.*{message}"):
        pc.as_partition_draws(LABELS, store=path) if make == "store" else pc.PartitionAccumulator(path)
    assert names_in(tmp_path) == []


def test_a_path_in_the_home_directory(tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert_same_draws(pc.as_partition_draws(LABELS, store="~/store"), pc.as_partition_draws(LABELS))
    with pc.PartitionAccumulator("~/kept") as kept:
        kept.add(LABELS[0])
    assert names_in(tmp_path) == ["home"] and names_in(tmp_path / "home") == ["kept", "store"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right on Windows")
def test_a_link_to_a_file_that_does_not_exist_is_followed(tmp_path):
    for name in ("store", "kept"):
        (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    stored = pc.as_partition_draws(LABELS, store=tmp_path / "store")
    with pc.PartitionAccumulator(tmp_path / "kept") as kept:
        kept.add(LABELS[0])
    assert (tmp_path / "store").is_symlink() and (tmp_path / "kept").is_symlink()
    assert names_in(tmp_path / "disk") == ["kept", "store"]
    assert_same_draws(pc.as_partition_draws(tmp_path / "store"), stored)


def test_a_folder_without_a_lock_is_not_in_use_by_another_process(store, monkeypatch):
    store.with_name("store.lock").mkdir()  # as in a folder that cannot be written to
    with pytest.raises(
        OSError, match=r"`store` '.*store' cannot be locked.*\(.+\)\. Name|cannot be locked.* folder"
    ) as at:
        pc.as_partition_draws(LABELS, store=store)
    assert not isinstance(at.value, BlockingIOError)
    store.with_name("store.lock").rmdir()

    def no_locks(*_, **__):
        raise NotImplementedError("no locks on this disk")

    monkeypatch.setattr(files.FileLock, "acquire", no_locks)
    with pytest.raises(OSError, match="cannot be locked.*no locks on this disk"):
        pc.as_partition_draws(LABELS, store=store)
