"""Input functions read the variable that they need, once, and no other."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

import posterior_consensus as pc
from tests.helpers import written

N_CHAINS, N_DRAWS, N_ITEMS = 2, 50, 20
DRAWS = N_CHAINS * N_DRAWS


class Counted(BackendArray):
    """An array that lies elsewhere, as one of dask or of a file does, and counts the values that are read of it."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.n_read = values, values.shape, values.dtype, 0

    def __getitem__(self, key):
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self.read)

    def read(self, key):
        found = np.asarray(self.values[key])
        self.n_read += found.size
        return found


@pytest.fixture
def variables(rng):
    """What a posterior of a mixture may hold, by name."""
    p = rng.dirichlet(np.ones(3), size=(N_CHAINS, N_DRAWS, N_ITEMS))
    return {
        "z": (("chain", "draw", "obs"), p.argmax(axis=-1)),
        "p": (("chain", "draw", "obs", "component"), p),
        "mu": (("chain", "draw", "component"), rng.normal(size=(N_CHAINS, N_DRAWS, 3))),
        "y_hat": (("chain", "draw", "row", "column"), rng.normal(size=(N_CHAINS, N_DRAWS, 30, 40))),
    }


def stored_elsewhere(variables, names):
    """A Dataset of these variables, and what counts their reads."""
    counted = {name: Counted(variables[name][1]) for name in names}
    lazy = {
        name: xr.Variable(variables[name][0], indexing.LazilyIndexedArray(array)) for name, array in counted.items()
    }
    return xr.Dataset(lazy), counted


def reads(counted):
    return {name: array.n_read for name, array in counted.items()}


def test_labels_are_read_once_and_nothing_else(variables):
    dataset, counted = stored_elsewhere(variables, ["z", "p", "mu", "y_hat"])
    draws = pc.as_partition_draws(dataset)
    assert reads(counted) == {"z": DRAWS * N_ITEMS, "p": 0, "mu": 0, "y_hat": 0}
    np.testing.assert_array_equal(draws.labels, pc.as_partition_draws(variables["z"][1]).labels)
    variables["z"] = (variables["z"][0], variables["z"][1].astype(float))  # of floats, one draw tells what they are
    dataset, counted = stored_elsewhere(variables, ["z", "p", "mu", "y_hat"])
    pc.as_partition_draws(dataset)
    assert reads(counted) == {"z": N_ITEMS + DRAWS * N_ITEMS, "p": 0, "mu": 3, "y_hat": 0}


def test_probabilities_are_read_once(variables):
    for name, to_tell in ((None, 1), ("p", 0)):
        dataset, counted = stored_elsewhere(variables, ["p", "mu", "y_hat"])
        soft = pc.as_allocation_probabilities(dataset, name)
        assert reads(counted) == {"p": (to_tell + DRAWS) * N_ITEMS * 3, "mu": 0, "y_hat": to_tell * 30 * 40}
        assert soft.probabilities.shape == (DRAWS, N_ITEMS, 3)


def test_summary_reads_once(variables):
    for name, to_tell in (("z", 0), ("p", 3 * N_ITEMS)):
        dataset, counted = stored_elsewhere(variables, [name, "mu", "y_hat"])
        pc.summarize(dataset, n_starts=1, random_seed=1, progressbar=False)
        assert counted[name].n_read == to_tell + variables[name][1].size
        assert counted["mu"].n_read <= 3 and counted["y_hat"].n_read == 30 * 40


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_of_a_file_no_other_variable_is_read(variables, rng, tmp_path, suffix):
    big = (("chain", "draw", "big"), rng.normal(size=(N_CHAINS, N_DRAWS, 20_000)))  # 16 MB
    groups = {"posterior": xr.Dataset({"z": variables["z"], "big": big}), "log_likelihood": xr.Dataset({"y": big})}
    path = written(xr.DataTree.from_dict(groups), tmp_path / f"a{suffix}")
    pc.as_partition_draws(path)  # imports what it takes
    tracemalloc.start()
    draws = pc.as_partition_draws(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert draws.labels.shape == (DRAWS, N_ITEMS) and peak < 4e6
