"""What the tests of sources have in common."""

import pytest

import posterior_consensus as pc
from tests.stores import LABELS, narrow


@pytest.fixture
def stored(tmp_path, monkeypatch):
    narrow(monkeypatch, 256)
    return pc.as_partition_draws(LABELS, store=tmp_path / "store")
