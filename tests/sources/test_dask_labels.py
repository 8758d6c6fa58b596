"""Labels of dask arrays, on threads of this process: blocks of any shape give what the array in memory gives."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.dask_labels import DaskLabels, canonical_blocks
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.kernels import ensemble
from posterior_consensus.runtime import memory
from tests.catalogue.posteriors import noisy_draws

pytestmark = pytest.mark.xdist_group("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N_DRAWS, N_ITEMS = 30, 700
CHUNKS = [(30, 700), (30, 256), (7, 700), (7, 100), ((1, 29), (3, 600, 97))]
KINDS = {
    "from one": lambda labels: labels + 1,
    "with gaps": lambda labels: 300 * labels,
    "wide": lambda labels: labels * 10**12 + 5,
    "floats": lambda labels: labels.astype(np.float32),
    "many": lambda labels: np.where(labels == 0, np.arange(N_ITEMS), labels).astype(np.uint16),
    "booleans": lambda labels: labels > 0,
    "text": lambda labels: np.char.add("cluster ", labels.astype(str)),
}


@pytest.fixture(scope="module")
def client():
    """A client of workers that are threads of this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
            yield client


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 256 items."""
    monkeypatch.setattr(memory, "LABELS_IN_CLUSTER_BLOCK", 256 * N_DRAWS)


@pytest.fixture(scope="module")
def labels():
    return noisy_draws(np.random.default_rng(1), N_DRAWS, N_ITEMS, 6, 0.4)


def counts(labels, items, starts, partition, n_clusters):
    return ensemble.joint_counts(np.ascontiguousarray(labels), starts, partition[items], n_clusters)


def same(here, there):
    assert isinstance(there, DaskLabels)
    assert there.dtype == here.dtype == there.values.dtype
    assert (there.n_draws, there.n_items) == (here.n_draws, here.n_items)
    np.testing.assert_array_equal(there.values, here.values)
    np.testing.assert_array_equal(there.n_clusters, here.n_clusters)


CASES = [*((kind, CHUNKS[-1]) for kind in KINDS), *(("from one", chunks) for chunks in CHUNKS[:-1])]


@pytest.mark.parametrize(("kind", "chunks"), CASES)
def test_numbered_as_in_memory(client, labels, kind, chunks):
    given = KINDS[kind](labels)
    same(pc.as_partition_draws(given).backend, canonical_blocks(da.from_array(given, chunks=chunks), "`data`", client))


def test_a_wrong_label_in_any_chunk_is_refused(client, labels):
    given = labels.astype(np.float64)
    given[-1, -1] = 0.5
    with pytest.raises(ValueError, match="^`data` must be integers"):
        canonical_blocks(da.from_array(given, chunks=(7, 100)), "`data`", client)


@pytest.fixture
def both(client, labels):
    """Labels in memory, and the same of dask."""
    there = canonical_blocks(da.from_array(labels, chunks=(30, 256)), "`data`", client)
    return pc.as_partition_draws(labels).backend, there


def test_blocks_are_those_of_memory(both):
    here, there = both
    assert there.item_blocks == [slice(0, 256), slice(256, 512), slice(512, 700)]
    given = here.starts, np.arange(N_ITEMS, dtype=np.int32) % 5, 5
    for blocks in (None, [slice(0, 10), slice(10, 600), slice(600, 700)], [slice(256, 512)]):
        table = here.sum_blocks(counts, *given, blocks=blocks)
        np.testing.assert_array_equal(there.sum_blocks(counts, *given, blocks=blocks), table)
        np.testing.assert_array_equal(sum(one for _, one in there.map_blocks(counts, *given, blocks=blocks)), table)


def test_some_items_and_some_draws(both, rng):
    here, there = both
    rows, at = np.array([3, 20, 4]), rng.permutation(N_ITEMS)[:50]
    same(here.take(rows), there.take(rows))
    for items in (at, slice(200, 300), slice(None)):
        np.testing.assert_array_equal(there.columns(items), here.columns(items))
    assert isinstance(there.of_items(at), ArrayLabels)
    np.testing.assert_array_equal(there.of_items(at).values, here.of_items(at).values)


def test_variables_of_dask_are_taken_where_they_are_large(client, labels, monkeypatch):
    given = labels.astype(np.int64).reshape(2, 15, N_ITEMS)
    array = xr.DataArray(da.from_array(given, chunks=(1, 5, 300)), dims=("chain", "draw", "obs"), name="z")
    expected = pc.expected_loss(given, np.arange(N_ITEMS) % 3)
    for least, kind in ((memory.LABELS_WORTH_SENDING, ArrayLabels), (0, DaskLabels)):
        monkeypatch.setattr(memory, "LABELS_WORTH_SENDING", least)
        for data in (array, array.to_dataset(), array.data, array.transpose("obs", ...)):
            draws = pc.as_partition_draws(data)
            assert isinstance(draws.backend, kind)
            assert draws.samples.chain.tolist() == [0] * 15 + [1] * 15
            xr.testing.assert_identical(pc.expected_loss(draws, np.arange(N_ITEMS) % 3), expected)


def test_labels_that_memory_does_not_hold_say_so(both, monkeypatch):
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "10KB")
    with pytest.raises(MemoryError, match="30 partitions of 700 items .* 21 KB"):
        both[1].values  # noqa: B018


@pytest.mark.slow
def test_nothing_of_dask_is_imported_for_other_data():
    """But dask.array, which xarray imports wherever it is installed, to tell whether an array is one."""
    code = """
import sys
import posterior_consensus as pc
summary = pc.summarize([[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] * 25, random_seed=1, progressbar=False)
pc.particles(summary.draws, random_seed=1)
assert "distributed" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
