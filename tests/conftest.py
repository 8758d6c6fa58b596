import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import settings

import posterior_consensus as pc
from posterior_consensus.summary import steps
from tests.approved import Approved
from tests.catalogue.posteriors import recovered
from tests.helpers import draw_nothing

# The first example compiles kernels, hence no deadline.
settings.register_profile("repeated", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("random", settings.get_profile("repeated"), derandomize=False)
settings.load_profile("repeated")

# Directories and files that meet ArviZ, PyMC, pandas and xarray, whose versions differ between Python 3.11 and 3.13.
UPSTREAM = {"diagnostics", "ensemble", "results", "sources", "test_conversion.py", "test_integration.py"}

BEGAN = pytest.StashKey[float]()
SPENT = pytest.StashKey[float]()


def pytest_addoption(parser):
    parser.addoption("--approve", action="store_true", help="write the sentences in tests/approved/ anew")
    parser.addoption("--cpu-limit", type=float, help="CPU seconds above which a test without the mark `slow` fails")


def pytest_configure(config):
    config.pluginmanager.register(Approved(config.getoption("approve")), "approved")
    config.addinivalue_line("markers", "xdist_group(name): kept on one worker; known without pytest-xdist too")


def pytest_itemcollected(item):
    if item.path.relative_to(Path(__file__).parent).parts[0] in UPSTREAM:
        item.add_marker("upstream")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEGAN], item.stash[SPENT] = _cpu_seconds(), 0.0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Durations are CPU seconds, which do not depend on what else the machine does."""
    report = yield
    now = _cpu_seconds()
    report.duration = now - item.stash[BEGAN]
    item.stash[BEGAN] = now
    item.stash[SPENT] += report.duration
    limit = item.config.getoption("cpu_limit")
    is_plain = limit is not None and item.get_closest_marker("slow") is None
    if call.when == "teardown" and report.passed and is_plain and item.stash[SPENT] > limit:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} took {item.stash[SPENT]:.1f} CPU seconds: mark it `slow`, or make it shorter"
    return report


def _cpu_seconds():
    return sum(os.times()[:4])  # of this process and of its children that have ended


@pytest.fixture
def approved(request):
    """Compare a text with the approved one of its area and name; see `tests.approved`."""
    return request.config.pluginmanager.get_plugin("approved").check


@pytest.fixture
def rng():
    return np.random.default_rng(20180614)


@pytest.fixture
def z(rng):
    """Label draws as a sampler leaves them: names switch between draws, and every dimension has coordinates."""
    labels = rng.permuted(np.arange(5)[:, np.newaxis].repeat(2 * 6, 1), axis=0)[:4].T.reshape(2, 6, 4)
    labels[:, ::2, 1] = labels[:, ::2, 0]
    labels[:, :, 3] = labels[:, :, 2]
    coords = {"chain": [1, 3], "draw": np.arange(10, 16), "obs": list("abcd"), "site": ("obs", [7, 7, 8, 9])}
    return xr.DataArray(labels, dims=("chain", "draw", "obs"), coords=coords, name="z")


@pytest.fixture
def small_draws(z):
    return pc.as_partition_draws(z)


@pytest.fixture
def posterior_tree(rng):
    return recovered(rng)


@pytest.fixture(scope="session")
def arviz():
    """ArviZ, whose 0.x versions announce their successor when imported."""
    return pytest.importorskip("arviz", exc_type=ImportError)


@pytest.fixture
def posterior(arviz, z):
    """What ArviZ makes of samples: InferenceData before version 1, DataTree since."""
    samples = {"z": z.values, "mu": np.linspace(0.1, 0.9, 24).reshape(2, 6, 2)}
    names = {"dims": {"z": ["obs"], "mu": ["component"]}, "coords": {"obs": list("abcd")}}
    if hasattr(arviz, "convert_to_inference_data"):
        return arviz.from_dict(posterior=samples, observed_data={"y": np.arange(4.0)}, **names)
    return arviz.from_dict({"posterior": samples, "observed_data": {"y": np.arange(4.0)}}, **names)


@pytest.fixture
def undrawn(monkeypatch):
    """Reports with an empty picture in place of each figure, whose drawing takes most of the time."""
    draw_nothing(monkeypatch)


@pytest.fixture
def short_look(monkeypatch):
    """Summaries whose search for groups of draws, a third of their work, ends after the first."""
    monkeypatch.setattr(steps, "_EFFORT", steps._EFFORT._replace(most_work=1.0))


@pytest.fixture
def still(undrawn, monkeypatch):
    """Reports as they are without bokeh: nothing to click, and no search for partitions to choose from."""
    monkeypatch.setattr("posterior_consensus.summary.report.page.util.find_spec", lambda name: None)
