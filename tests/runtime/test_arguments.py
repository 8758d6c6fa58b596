import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.runtime.executor import Executor


@contextmanager
def interrupted(monkeypatch):
    """Let each search end as after Ctrl-C."""
    with monkeypatch.context() as patch:
        patch.setattr(Executor, "stopped", property(lambda self: "interrupted", lambda *_: None), raising=False)
        yield


def turned():
    """Labels with the items first."""
    return np.tile(np.arange(25)[:, np.newaxis] // 5, (1, 100))


CALLS = {  # at depths of their own
    "consensus_partition": lambda: pc.consensus_partition(DRAWS, progressbar=False),
    "of a pair loss": lambda: pc.consensus_partition(DRAWS, loss="pear", progressbar=False),
    "from another search": lambda: pc.consensus_partition(DRAWS, loss="binder", method="exact", progressbar=False),
    "summarize": lambda: pc.summarize(DRAWS, progressbar=False),
}
DRAWS = [[0, 0, 1, 1, 2], [0, 0, 0, 1, 1], [0, 1, 1, 1, 2], [0, 0, 1, 1, 2]]


@pytest.mark.parametrize("name", CALLS)
def test_a_search_warns_at_the_users_line(name, monkeypatch):
    with interrupted(monkeypatch), warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        CALLS[name]()
    found = [one.filename for one in raised if "interrupted" in str(one.message)]
    assert found and set(found) == {__file__}


@pytest.mark.parametrize("function", [pc.as_partition_draws, pc.consensus_partition, pc.diagnose])
def test_data_warn_at_the_users_line(function):
    with pytest.warns(UserWarning, match="draws before items") as raised:
        function(turned())
    assert {one.filename for one in raised} == {__file__}
