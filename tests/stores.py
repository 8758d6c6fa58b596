"""What tests of labels on disk have in common."""

from contextlib import contextmanager

import h5py
import numpy as np
import pytest
import xarray as xr

from posterior_consensus.ensemble import labels as labels_of
from posterior_consensus.sources import accumulate, stores
from tests.catalogue.posteriors import noisy_draws

BUDGET = "POSTERIOR_CONSENSUS_MEMORY"
LABELS = noisy_draws(np.random.default_rng(1), 60, 700, 4, 0.3).reshape(3, 20, 700)


def narrow(monkeypatch, items):
    """Make blocks of so many items."""
    monkeypatch.setattr(labels_of, "block_width", lambda n_draws: items)


class Killed(BaseException):
    """Ends what runs, as SIGKILL ends a process."""


@contextmanager
def stopped(monkeypatch, error):
    """Raise the error when labels are written; after `Killed`, nothing is removed."""

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(stores, "_fill", fail)
        patch.setattr(accumulate, "_line", fail)
        if error is Killed:
            patch.setattr(stores.Path, "unlink", lambda *_, **__: None)
        yield


def assert_same_draws(found, expected):
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert found.backend.dtype == expected.backend.dtype == found.labels.dtype
    np.testing.assert_array_equal(found.n_clusters, expected.n_clusters)
    for name in ("chain", "draw", "weights"):
        np.testing.assert_array_equal(getattr(found.samples, name), getattr(expected.samples, name))
    assert found.items.dim == expected.items.dim
    assert found.items.coords.to_dataset().identical(expected.items.coords.to_dataset())


def damage_labels(store):
    """Flip a bit of the first label."""
    with h5py.File(store) as variables:
        first = variables["labels"].id.get_offset()
    content = bytearray(store.read_bytes())
    content[first] ^= 1
    store.write_bytes(content)


def total(labels, items):
    return items.start, labels.sum(axis=1, dtype=np.int64)


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
