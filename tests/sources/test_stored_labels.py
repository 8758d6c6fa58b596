"""Labels on disk give what labels in memory give; what goes wrong with a store is an error or makes no difference."""

import dataclasses
import errno
import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.stored import StoredLabels
from posterior_consensus.runtime import progress
from posterior_consensus.search import scale
from posterior_consensus.sources import stores
from tests import reference
from tests.ensemble.test_weights import functions_of
from tests.ensembles import noisy_draws
from tests.helpers import Impatient, flip_bits

BUDGET = "POSTERIOR_CONSENSUS_MEMORY"
LABELS = noisy_draws(np.random.default_rng(1), 60, 700, 4, 0.3).reshape(3, 20, 700)
EXPECTED = np.array([reference.canonical(row) for row in LABELS.reshape(60, 700)])


def narrow(monkeypatch, items):
    """Make chunks of so many items."""
    monkeypatch.setattr(stores, "block_width", lambda n_draws: items)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    narrow(monkeypatch, 256)
    return pc.as_partition_draws(LABELS, store=tmp_path / "store")


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Labels of two bytes each."""
    narrow(monkeypatch, 256)
    return pc.as_partition_draws(np.tile(np.arange(700), (60, 1)), store=tmp_path / "wide")


def assert_same_draws(found, expected):
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert found.drawn.dtype == expected.drawn.dtype == found.labels.dtype
    np.testing.assert_array_equal(found.n_clusters, expected.n_clusters)
    for name in ("chain", "draw", "weights"):
        np.testing.assert_array_equal(getattr(found.samples, name), getattr(expected.samples, name))
    assert found.items.dim == expected.items.dim
    assert found.items.coords.to_dataset().identical(expected.items.coords.to_dataset())


def total(labels, items):
    return items.start, labels.sum(axis=1, dtype=np.int64)


def test_labels_on_disk_give_what_labels_in_memory_give(stored):
    drawn, expected = stored.drawn, pc.as_partition_draws(LABELS).drawn
    assert isinstance(drawn, StoredLabels) and isinstance(expected, LabelsInMemory)
    rows, items = np.array([59, 3, 3, 20]), np.array([699, 0, 256, 255, 5])
    assert [block.stop for block in drawn.item_blocks][-1] == 700
    for blocks in (None, [slice(0, 10)], [slice(250, 700), slice(3, 4)]):
        chosen = drawn.item_blocks if blocks is None else blocks
        for (at, (first, sums)), wanted in zip(drawn.map_blocks(total, blocks=blocks), chosen, strict=True):
            assert at == wanted and first == wanted.start
            np.testing.assert_array_equal(sums, expected.array[:, wanted].sum(axis=1))
    for at in (slice(250, 520), items, slice(None, None, 300)):
        np.testing.assert_array_equal(drawn.columns(at), expected.columns(at))
        assert drawn.columns(at).flags.c_contiguous
    for one, other in (
        (drawn.of_items(items), expected.of_items(items)),
        (drawn.take(rows), expected.take(rows)),
        (drawn._of_rows(rows), expected.take(rows)),
        (drawn._of_rows(np.arange(60) % 7 == 0)._of_rows(np.array([1, 0])), expected.take(np.array([7, 0]))),
        (pickle.loads(pickle.dumps(drawn)), expected),
    ):
        np.testing.assert_array_equal(one.values, other.values)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.n_clusters, other.n_clusters)
    for (rows_here, block), (_, wanted) in zip(drawn.blocks(25), expected.blocks(25), strict=True):
        np.testing.assert_array_equal(block, wanted)
        assert rows_here.start in (0, 25, 50)
    assert "values" not in vars(drawn)


def test_each_call_reads_the_labels_once_at_most(stored):
    drawn, size = stored.drawn, 60 * 3 * 256  # the last chunk is filled up
    calls = {
        size: [lambda: list(drawn.map_blocks(total)), lambda: drawn.take(np.arange(60)), lambda: drawn.values],
        size // 3: [lambda: drawn.columns(np.array([3, 9])), lambda: list(drawn.map_blocks(total, blocks=[slice(9)]))],
        0: [lambda: list(drawn.map_blocks(total)), lambda: drawn.values, lambda: drawn.take(np.arange(3))],  # in memory
    }
    calls[size // 3][1] = lambda: list(drawn.map_blocks(total, blocks=[slice(0, 9)]))
    for n_bytes, functions in [(size // 3, calls[size // 3]), (size, calls[size]), (0, calls[0])]:
        for function in functions:
            before = drawn.reads.n_bytes
            function()
            assert drawn.reads.n_bytes - before == n_bytes


def test_labels_that_memory_does_not_hold_are_refused_in_words(stored, wide, monkeypatch):
    monkeypatch.setenv(BUDGET, "30KB")
    with pytest.raises(MemoryError, match="All labels of 60 draws of 700 items, which are on disk, would take 84 KB"):
        _ = wide.labels
    with pytest.raises(MemoryError, match="All labels of 60 draws of 700 items, which are on disk, would take 42 KB"):
        _ = stored.labels
    assert isinstance(stored.drawn.take(np.arange(50)), StoredLabels)
    assert isinstance(stored.drawn.take(np.arange(5)), LabelsInMemory)
    assert sum(sums.sum() for _, (_, sums) in stored.drawn.map_blocks(total)) == EXPECTED.sum()


NAMES = {
    "bytes": lambda z: z.astype(np.uint8),
    "integers": lambda z: z.astype(np.int64),
    "floats": lambda z: z.astype(np.float32),
    "booleans": lambda z: z % 2 == 0,
    "wide": lambda z: z.astype(np.uint64) * 2**60,
    "wide and narrow": lambda z: np.where(z > 1, z * 10**9, z),
    "text": lambda z: np.array(["a", "c", "bb", ""])[z],
}


@pytest.mark.parametrize(
    ("names", "chunks"),
    [(names, chunks) for names in NAMES for chunks in (None, (2, 6, 130))]
    + [("integers", chunks) for chunks in ((1, 20, 700), (1, 7, 700), (3, 20, 100))],
)
def test_blocks_of_any_size_give_the_same_labels(names, chunks, tmp_path, monkeypatch):
    narrow(monkeypatch, 256)
    values = NAMES[names](LABELS)
    expected = pc.as_partition_draws(values)
    data = xr.DataArray(values, dims=("chain", "draw", "item"))
    if chunks is not None:
        data.variable.encoding["preferred_chunks"] = dict(zip(data.dims, chunks, strict=True))
    for number, budget in enumerate(("40KB", "1MB", "1GB")):
        monkeypatch.setenv(BUDGET, budget)
        found = [pc.as_partition_draws(data), pc.as_partition_draws(data, store=tmp_path / str(number))]
        monkeypatch.delenv(BUDGET)
        for draws in (*found, pc.as_partition_draws(tmp_path / str(number))):
            assert_same_draws(draws, expected)


@pytest.mark.parametrize("values", [np.nan, -1, 0.5, np.inf])
def test_what_is_wrong_in_a_block_is_said(values, tmp_path, monkeypatch):
    labels = LABELS.astype(float)
    labels[2, 11, 650] = values
    with pytest.raises(ValueError) as whole:
        pc.as_partition_draws(labels)
    monkeypatch.setenv(BUDGET, "200KB")
    for store in (None, tmp_path / "store"):
        with pytest.raises(ValueError) as in_blocks:
            pc.as_partition_draws(labels, store=store)
        assert str(in_blocks.value).split(";")[0] == str(whole.value).split(";")[0]


def test_names_of_two_kinds_are_refused(monkeypatch):
    labels = LABELS.astype(object)
    labels[1] = "a"
    monkeypatch.setenv(BUDGET, "200KB")
    with pytest.raises(TypeError, match="must be all integers, all strings or all whole-number floats"):
        pc.as_partition_draws(labels)


@pytest.mark.parametrize(("n_clusters", "dtype"), [(300, np.uint16), (70_000, np.uint32)])
def test_more_clusters_than_one_or_two_bytes_hold(n_clusters, dtype, tmp_path, monkeypatch):
    labels = np.stack([np.zeros(n_clusters, np.int64), np.arange(n_clusters)[::-1], np.arange(n_clusters) // 2])
    expected = pc.as_partition_draws(labels)
    assert expected.drawn.dtype == dtype
    monkeypatch.setenv(BUDGET, "3MB")
    draws = pc.as_partition_draws(labels, store=tmp_path / "store")
    monkeypatch.delenv(BUDGET)
    assert_same_draws(draws, expected)
    assert_same_draws(pc.as_partition_draws(tmp_path / "store"), expected)


def large_file(tmp_path, suffix, dtype=np.int64):
    """A posterior in a file, and a memory budget that its labels do not fit."""
    labels = xr.DataArray(LABELS.astype(dtype), dims=("chain", "draw", "obs"), name="z", coords={"obs": np.arange(700)})
    path = tmp_path / f"posterior{suffix}"
    dataset = xr.Dataset({"z": labels, "y": ("obs", np.zeros(700))})
    if suffix == ".zarr":
        pytest.importorskip("zarr")
        xr.DataTree.from_dict({"posterior": dataset}).to_zarr(path, zarr_format=2)
    else:
        dataset.to_netcdf(path, group="posterior", engine="h5netcdf")
    return path


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64])
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_large_variables_of_files_stay_on_disk(suffix, dtype, tmp_path, monkeypatch):
    path = large_file(tmp_path, suffix, dtype)
    expected = pc.as_partition_draws(path)
    assert isinstance(expected.drawn, LabelsInMemory)
    monkeypatch.setattr(stores.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(BUDGET, "100KB")
    draws = pc.as_partition_draws(path)
    assert isinstance(draws.drawn, StoredLabels)
    place = draws.drawn.folder.parents[1]
    assert place.parent == tmp_path
    part = draws.isel(draw=slice(10, None))
    monkeypatch.setenv(BUDGET, "300KB" if dtype == np.uint8 else "1MB")  # the labels fit, but perhaps not the file
    assert isinstance(pc.as_partition_draws(path).drawn, LabelsInMemory)
    assert_same_draws(draws, expected)
    del draws
    gc.collect()
    assert place.exists() and part.n_draws == 30
    del part
    gc.collect()
    assert not place.exists()


def test_a_store_keeps_names_and_weights(tmp_path):
    labels = xr.DataArray(
        LABELS,
        dims=("chain", "draw", "obs"),
        coords={
            "chain": ["a", "b", "c"],
            "obs": pd.MultiIndex.from_product([["x", "y"], range(350)], names=["kind", "number"]),
            "when": ("obs", pd.date_range("2020", periods=700)),
        },
    )
    weights = np.arange(60.0)
    expected = pc.as_partition_draws(labels, weights=weights)
    pc.as_partition_draws(labels, weights=weights, store=tmp_path / "store")
    found = pc.as_partition_draws(tmp_path / "store")
    np.testing.assert_array_equal(found.samples.chain, expected.samples.chain)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.items.coords.to_dataset().equals(expected.items.coords.to_dataset())
    assert "in " + str(tmp_path / "store") in repr(found)
    assert pc.as_partition_draws(str(tmp_path / "store"), weights=np.ones(60)).weights[0] == 1 / 60


def same(found, expected, path="result"):
    """Assert that two results are equal in all that they hold."""
    assert type(found) is type(expected), path
    if isinstance(expected, pc.PartitionDraws):
        assert_same_draws(found, expected)
    elif isinstance(expected, (xr.DataArray, xr.Dataset)):
        assert found.identical(expected), path
    elif isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    elif dataclasses.is_dataclass(expected):
        for each in dataclasses.fields(expected):
            if each.name not in ("seconds", "started"):
                same(getattr(found, each.name), getattr(expected, each.name), f"{path}.{each.name}")
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            same(found[key], expected[key], f"{path}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), path
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{path}[{number}]")
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, err_msg=path)
    elif isinstance(expected, (int, float, str, bool)) or expected is None:
        assert found == expected or found != found, path


def test_every_function_gives_the_same_on_a_store(tmp_path):
    labels = noisy_draws(np.random.default_rng(5), 60, 7, 3, 0.2).reshape(3, 20, 7)
    partition = np.array([0, 0, 0, 1, 1, 2, 2])
    expected = functions_of(pc.as_partition_draws(labels), partition)
    found = functions_of(pc.as_partition_draws(labels, store=tmp_path / "store"), partition)
    for name, function in found.items():
        if name != "certify":  # stops after a time
            result = function()
            if not name.startswith("plot_"):
                same(result, expected[name](), name)
    plt.close("all")


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


def test_what_describes_a_store_must_fit_it(stored, tmp_path):
    rewritten(stored.drawn.folder / "0.1")
    with pytest.raises(ValueError, match="is damaged: its array is of another type or shape than when it was written"):
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
    assert flip_bits(store, read, read(), message, most=15) == 15 * n_files == 15 * 8


@pytest.mark.parametrize("file", ["about.nc", "about.nc.sha256", "items.nc", "items.nc.sha256", "labels/.zarray"])
def test_a_file_that_is_missing_is_named(stored, file, tmp_path):
    (tmp_path / "store" / "draws" / file).unlink()
    with pytest.raises(ValueError, match=f"is damaged: .*{file}.* Restore it, or remove the store and make it again"):
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


def block_sums(drawn):
    return [sums for _, (_, sums) in drawn.map_blocks(total)]


def test_other_processes_open_the_same_store(stored):
    with ProcessPoolExecutor(2) as pool:
        for sums in pool.map(block_sums, [stored.drawn, stored.drawn]):
            np.testing.assert_array_equal(sums, block_sums(stored.drawn))


def test_large_draws_of_an_accumulator_stay_on_disk(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    narrow(monkeypatch, 256)
    with pc.PartitionAccumulator(tmp_path / "draws", batch_size=8) as kept:
        kept.add(LABELS[0], chain=0)
        kept.add(LABELS[1][:13], chain=1)  # a shorter one
        expected = kept.draws()
        monkeypatch.setenv(BUDGET, "50KB")
        draws = kept.draws()
        assert isinstance(draws.drawn, StoredLabels) and isinstance(expected.drawn, LabelsInMemory)
        assert draws.drawn.folder.is_relative_to(tmp_path / "draws")
        assert_same_draws(draws, expected)
        assert [rows.size for rows in draws.samples.chains] == [20, 13]
        del draws
        gc.collect()
        assert {path.name for path in (tmp_path / "draws").iterdir()} <= {
            *("about.json", "about.json.sha256", "lock", "chain_0", "chain_1")
        }


def test_a_bar_counts_bytes(wide, monkeypatch):
    from rich import progress as shown

    bars = []

    class Bar(shown.Progress):
        def update(self, task, **what):
            bars.append((self.tasks[task].total, what["completed"]))
            super().update(task, **what)

    monkeypatch.setattr(shown, "Progress", Bar)
    monkeypatch.setattr(progress, "Timer", Impatient)
    monkeypatch.setattr(progress, "_can_be_seen", lambda: True)
    for _ in dataclasses.replace(wide.drawn, progressbar=True).map_blocks(total, blocks=[slice(0, 256)] * 3):
        pass
    assert bars == [(3 * 60 * 256 * 2, blocks * 60 * 256 * 2) for blocks in (1, 2, 3)]
    assert not progress._screen.locked()


def test_chains_of_different_lengths_in_a_store(tmp_path):
    lengths = [20, 7, 13]
    chain, draw = np.repeat(range(3), lengths), np.concatenate([np.arange(length) for length in lengths])
    rows = LABELS.reshape(60, 700)[:40]
    labels = xr.DataArray(rows, dims=("sample", "obs"), coords={"chain": ("sample", chain), "draw": ("sample", draw)})
    expected = pc.as_partition_draws(labels)
    pc.as_partition_draws(labels, store=tmp_path / "store")
    found = pc.as_partition_draws(tmp_path / "store")
    assert_same_draws(found, expected)
    assert [each.size for each in found.samples.chains] == lengths
    same(pc.diagnose(found), pc.diagnose(expected))


def test_a_summary_of_labels_that_memory_does_not_hold_is_that_of_labels_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "_ITEMS", 300)
    narrow(monkeypatch, 256)
    here, there = pc.as_partition_draws(LABELS), pc.as_partition_draws(LABELS, store=tmp_path / "store")
    monkeypatch.setenv(BUDGET, "0.04MB")
    with pytest.raises(MemoryError, match="would take 42 KB"):
        there.labels  # noqa: B018
    for loss in ("vi", "binder"):
        one, other = (
            pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False) for draws in (here, there)
        )
        assert one.info.sample == [300, 60]
        results = (
            lambda draws, best=one: pc.expected_loss(draws, [best, best.labels % 2]),
            lambda draws, best=one: pc.credible_ball(draws, best.labels).to_dataset(),
            lambda draws, best=one: pc.item_uncertainty(draws, best).to_dataset(),
            lambda draws, best=one: pc.diagnose(draws, best).to_dataset(),
        )
        assert one.labels.identical(other.labels) and one.expected_loss == other.expected_loss
        for result in results:
            assert result(here).identical(result(there)), loss
