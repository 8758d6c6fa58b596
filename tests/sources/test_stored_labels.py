"""Labels on disk give what labels in memory give."""

import gc
import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.runtime import memory, progress
from posterior_consensus.search import large
from posterior_consensus.sources import stores
from tests import reference
from tests.helpers import Impatient
from tests.stores import BUDGET, LABELS, assert_same_draws, large_file, narrow, total

EXPECTED = np.array([reference.canonical(row) for row in LABELS.reshape(60, 700)])


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Labels of two bytes each."""
    narrow(monkeypatch, 256)
    return pc.as_partition_draws(np.tile(np.arange(700), (60, 1)), store=tmp_path / "wide")


def test_labels_on_disk_give_what_labels_in_memory_give(stored):
    drawn, expected = stored.backend, pc.as_partition_draws(LABELS).backend
    assert drawn.file is not None and expected.file is None
    rows, items = np.array([59, 3, 3, 20]), np.array([699, 0, 256, 255, 5])
    assert drawn.item_blocks[-1].stop == 700
    for blocks in (None, [slice(0, 10)], [slice(250, 700), slice(3, 4)]):
        chosen = drawn.item_blocks if blocks is None else blocks
        for (at, (first, sums)), wanted in zip(drawn.map_blocks(total, blocks=blocks), chosen, strict=True):
            assert at == wanted and first == wanted.start
            assert_array_equal(sums, expected.array[:, wanted].sum(axis=1))
    for at in (slice(250, 520), items, slice(None, None, 300)):
        assert_array_equal(drawn.columns(at), expected.columns(at))
        assert drawn.columns(at).flags.c_contiguous
    some = replace(drawn, rows=rows, n_clusters=drawn.n_clusters[rows])
    for one, other in (
        (drawn.of_items(items), expected.of_items(items)),
        (drawn.take(rows), expected.take(rows)),
        (some, expected.take(rows)),
        (some.take(np.array([1, 0])), expected.take(np.array([3, 59]))),
        (pickle.loads(pickle.dumps(drawn)), expected),
        (pickle.loads(pickle.dumps(some)), expected.take(rows)),
    ):
        assert_array_equal(one.values, other.values)
        assert one.dtype == other.dtype
        assert_array_equal(one.n_clusters, other.n_clusters)
    for (rows_here, block), (_, wanted) in zip(drawn.blocks(25), expected.blocks(25), strict=True):
        assert_array_equal(block, wanted)
        assert rows_here.start in (0, 25, 50)


def test_labels_that_memory_does_not_hold_are_refused_in_words(stored, wide, monkeypatch):
    monkeypatch.setenv(BUDGET, "30KB")
    with pytest.raises(MemoryError, match="60 partitions of 700 items in .*wide .* 84 KB"):
        _ = wide.labels
    with pytest.raises(MemoryError, match="60 partitions of 700 items in .*store .* 42 KB"):
        _ = stored.labels
    assert stored.backend.take(np.arange(50)).in_memory() is None
    assert stored.backend.take(np.arange(5)).file is None
    assert sum(sums.sum() for _, (_, sums) in stored.backend.map_blocks(total)) == EXPECTED.sum()


NAMES = {
    "bytes": lambda z: z.astype(np.uint8),
    "integers": lambda z: z.astype(np.int64),
    "floats": lambda z: z.astype(np.float32),
    "booleans": lambda z: z % 2 == 0,
    "wide": lambda z: z.astype(np.uint64) * 2**60,
    "wide and narrow": lambda z: np.where(z > 1, z * 10**9, z),
    "text": lambda z: np.array(["a", "c", "bb", ""])[z],
}


CHUNKS = [*((names, (2, 6, 130)) for names in NAMES), *(("integers", c) for c in (None, (1, 7, 700), (3, 20, 100)))]


@pytest.mark.parametrize(("names", "chunks"), CHUNKS)
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


def test_what_is_wrong_in_a_block_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv(BUDGET, "200KB")
    labels = LABELS.astype(float)
    for value, part in ((np.nan, "missing"), (-1, "negative"), (0.5, "integers"), (np.inf, "finite")):
        labels[2, 11, 650] = value
        for store in (None, tmp_path / "store"):
            with pytest.raises(ValueError, match=f"`data` must .*{part}.* got .* at chain 2, draw 11, item 650"):
                pc.as_partition_draws(labels, store=store)
    labels = LABELS.astype(object)
    labels[1] = "a"
    with pytest.raises(TypeError, match="all integers, all strings or"):
        pc.as_partition_draws(labels)


@pytest.mark.parametrize(("n_clusters", "dtype"), [(300, np.uint16), (70_000, np.uint32)])
def test_more_clusters_than_one_or_two_bytes_hold(n_clusters, dtype, tmp_path, monkeypatch):
    labels = np.stack([np.zeros(n_clusters, np.int64), np.arange(n_clusters)[::-1], np.arange(n_clusters) // 2])
    expected = pc.as_partition_draws(labels)
    assert expected.backend.dtype == dtype
    monkeypatch.setenv(BUDGET, "3MB")
    draws = pc.as_partition_draws(labels, store=tmp_path / "store")
    monkeypatch.delenv(BUDGET)
    assert_same_draws(draws, expected)
    assert_same_draws(pc.as_partition_draws(tmp_path / "store"), expected)


@pytest.mark.parametrize(("suffix", "dtype"), [(".nc", np.int64), (".nc", np.uint8), (".zarr", np.float64)])
def test_large_variables_of_files_stay_on_disk(suffix, dtype, tmp_path, monkeypatch):
    path = large_file(tmp_path, suffix, dtype)
    expected = pc.as_partition_draws(path)
    assert expected.backend.file is None
    monkeypatch.setattr(stores.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(BUDGET, "100KB")
    draws = pc.as_partition_draws(path)
    assert draws.backend.file is not None
    if sys.platform == "linux":  # where it has no name
        assert {path.name for path in tmp_path.iterdir()} == {path.name}
    place = draws.backend.file.path
    part = draws.isel(draw=slice(10, None))
    monkeypatch.setenv(BUDGET, "300KB" if dtype == np.uint8 else "1MB")  # the labels fit, but perhaps not the file
    assert pc.as_partition_draws(path).backend.file is None
    for found in (draws, pickle.loads(pickle.dumps(draws))):  # as another process reads it
        assert_same_draws(found, expected)
    del draws, found
    gc.collect()
    assert place.exists() and part.n_draws == 30
    del part
    gc.collect()
    assert not place.exists()


def test_a_store_keeps_chains_names_and_weights(tmp_path):
    lengths = [20, 7, 13]
    draw = np.concatenate([np.arange(length) for length in lengths])
    coords = {
        "chain": ("sample", np.repeat(["a", "b", "c"], lengths)),
        "draw": ("sample", draw),
        "obs": pd.MultiIndex.from_product([["x", "y"], range(350)], names=["kind", "number"]),
        "when": ("obs", pd.date_range("2020", periods=700)),
    }
    labels = xr.DataArray(LABELS.reshape(60, 700)[:40], dims=("sample", "obs"), coords=coords)
    expected = pc.as_partition_draws(labels, weights=np.arange(40.0))
    pc.as_partition_draws(labels, weights=np.arange(40.0), store=tmp_path / "store")
    found = pc.as_partition_draws(tmp_path / "store")
    assert_array_equal(found.labels, expected.labels)
    assert_array_equal(found.samples.chain, expected.samples.chain)
    assert_array_equal(found.samples.draw, draw)
    assert_array_equal(found.weights, expected.weights)
    assert [each.size for each in found.samples.chains] == lengths
    assert found.items.coords.to_dataset().equals(expected.items.coords.to_dataset())
    assert pc.diagnose(found).to_dataset().identical(pc.diagnose(expected).to_dataset())
    assert "in " + str(tmp_path / "store") in " ".join(repr(found).split())
    assert pc.as_partition_draws(str(tmp_path / "store"), weights=np.ones(40)).weights[0] == 1 / 40


def test_xarray_reads_a_store(tmp_path):
    weights = np.arange(60.0)
    names = [f"item {i}" for i in range(700)]
    draws = pc.as_partition_draws(pd.DataFrame(LABELS.reshape(60, 700), columns=names), weights=weights)
    pc.as_partition_draws(
        xr.DataArray(LABELS, dims=("chain", "draw", "obs"), coords={"obs": names}),
        weights=weights,
        store=tmp_path / "labels.nc",
    )
    with xr.open_dataset(tmp_path / "labels.nc") as store:
        assert_array_equal(store["labels"], draws.labels)
        assert store["labels"].dims == ("sample", "obs") and store["obs"].values.tolist() == names
        assert_array_equal(store["weight"], draws.weights)
        assert_array_equal(store["n_clusters"], draws.n_clusters)
        assert_array_equal(store["chain"], np.repeat(np.arange(3), 20))
        again = pc.as_partition_draws(tmp_path / "labels.nc")  # both have it open
        assert_array_equal(again.labels, draws.labels)


@pytest.mark.parametrize("n_clusters", [200, 300])
def test_labels_of_many_names_take_as_few_bytes_as_in_memory(n_clusters, tmp_path, monkeypatch):
    """How many clusters a draw has is known when all are written."""
    labels = np.random.default_rng(2).integers(n_clusters, size=(60, 700)) * 3
    expected = pc.as_partition_draws(labels)
    monkeypatch.setattr(memory, "LABELS_IN_BLOCK", 1000)
    draws = pc.as_partition_draws(labels, store=tmp_path / "store")
    with xr.open_dataset(tmp_path / "store") as store:
        assert_array_equal(store["labels"], expected.labels)
    for found in (draws, pc.as_partition_draws(tmp_path / "store")):
        assert_same_draws(found, expected)


def test_items_may_have_the_names_of_the_variables_of_a_store(tmp_path):
    coords = {"labels": [f"item {i}" for i in range(700)], "weight": ("labels", np.arange(700))}
    data = xr.DataArray(LABELS, dims=("chain", "draw", "labels"), coords=coords)
    expected = pc.as_partition_draws(data)
    assert_same_draws(pc.as_partition_draws(data, store=tmp_path / "store"), expected)
    assert_same_draws(pc.as_partition_draws(tmp_path / "store"), expected)


@pytest.mark.parametrize("dim", ["a/b", "item_labels", ".", "a\0b", "\ud800"])
def test_names_that_a_store_does_not_hold_come_back(dim, tmp_path):
    coords = {dim: list("uvw"), "labels": (dim, [3, 1, 2])}
    labels = xr.DataArray([[0, 0, 1], [0, 1, 1]], dims=("sample", dim), coords=coords)
    pc.as_partition_draws(labels, item_dim=dim, store=tmp_path / "store")
    items = pc.as_partition_draws(tmp_path / "store").items
    assert items.dim == dim
    assert items.coords[dim].values.tolist() == list("uvw")
    assert items.coords["labels"].values.tolist() == [3, 1, 2]


def test_large_draws_of_an_accumulator_stay_on_disk(tmp_path, monkeypatch):
    narrow(monkeypatch, 256)
    with pc.PartitionAccumulator(tmp_path / "draws", batch_size=8) as kept:
        kept.add(LABELS[0], chain=0)
        kept.add(LABELS[1][:13], chain=1)  # a shorter one
        expected = kept.draws()
        monkeypatch.setenv(BUDGET, "50KB")
        draws = kept.draws()
        assert draws.backend.file is not None and expected.backend.file is None
        assert_same_draws(draws, expected)
        assert [rows.size for rows in draws.samples.chains] == [20, 13]
        del draws
        gc.collect()
        assert all(path.name.startswith(("lock", "draws.")) for path in (tmp_path / "draws").iterdir())


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
    shown_file = wide.backend.file._replace(progressbar=True)
    for _ in replace(wide.backend, file=shown_file).map_blocks(total, blocks=[slice(0, 256)] * 3):
        pass
    assert bars == [(3 * 60 * 256 * 2, blocks * 60 * 256 * 2) for blocks in (1, 2, 3)]
    assert not progress._screen.locked()


def test_results_of_labels_that_memory_does_not_hold_are_those_of_labels_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "_ITEMS", 300)
    narrow(monkeypatch, 256)
    here, there = pc.as_partition_draws(LABELS), pc.as_partition_draws(LABELS, store=tmp_path / "store")
    monkeypatch.setenv(BUDGET, "0.04MB")
    with pytest.raises(MemoryError, match="42 KB"):
        there.labels  # noqa: B018
    one, other = (
        pc.consensus_partition(draws, loss="binder", random_seed=1, progressbar=False) for draws in (here, there)
    )
    assert one.info.sample == [300, 60]
    assert one.labels.identical(other.labels) and one.expected_loss == other.expected_loss
    assert pc.expected_loss(there, one).identical(pc.expected_loss(here, one))
    for function in (pc.credible_ball, pc.item_uncertainty):
        assert function(there, one).to_dataset().identical(function(here, one).to_dataset())
