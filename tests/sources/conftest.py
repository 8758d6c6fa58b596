"""What the tests of sources have in common."""

import pytest

import posterior_consensus as pc
from tests.catalogue import mixtures
from tests.stores import LABELS, narrow


@pytest.fixture
def stored(tmp_path, monkeypatch):
    narrow(monkeypatch, 256)
    return pc.as_partition_draws(LABELS, store=tmp_path / "store")


@pytest.fixture(scope="session")
def pm():
    """PyMC, which announces other things when imported."""
    return pytest.importorskip("pymc", exc_type=ImportError)


@pytest.fixture
def y(rng):
    """Observations of a mixture."""
    return rng.normal(0.0, 2.0, 7)


@pytest.fixture(scope="session")
def normal_mixture(pm):
    """A normal mixture with names, its posterior and the answer."""
    return mixtures.normal_mixture(pm)
