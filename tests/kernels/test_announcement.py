import logging
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from posterior_consensus.kernels import _jit, cells
from posterior_consensus.kernels.pair_moves import Costs
from tests.kernels.checks import compiled_only

SCRIPT = """
import numpy as np
from posterior_consensus.kernels import ensemble

for dtype in (np.uint8, np.uint16):
    labels = np.zeros((1, 3), dtype)
    ensemble.canonicalize(labels, 1, labels.copy())
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_compilation_is_announced_once_for_each_cache(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment
        ).stderr
        for _ in range(2)
    )
    assert len(first.splitlines()) == 1 and "compiles its kernels" in first
    assert second == ""


@pytest.mark.parametrize(
    ("module", "on_disk", "is_said"),
    [
        ("posterior_consensus.kernels.moves", [], True),
        ("posterior_consensus.kernels.moves", ["moves.scan_older.nbi"], True),
        ("posterior_consensus.kernels.moves", ["moves.scan_older.nbi", f"moves.scan_{_jit._SOURCES}.nbi"], False),
        ("scipy.special", [], False),
        (None, [], False),  # as of functions that PyTensor writes
    ],
)
def test_the_first_kernel_of_an_empty_cache_is_announced(module, on_disk, is_said, tmp_path, caplog):
    for name in on_disk:
        (tmp_path / name).touch()
    kernel = SimpleNamespace(py_func=SimpleNamespace(__module__=module), stats=SimpleNamespace(cache_path=tmp_path))
    listener, compilation = _jit._Announcement(), SimpleNamespace(data={"dispatcher": kernel})
    with caplog.at_level(logging.WARNING):
        for step in (listener.on_start, listener.on_start, listener.on_end, listener.on_end):
            step(compilation)
    assert ["compiles its kernels" in text for text in caplog.messages] == [True] * is_said
    assert {file.name for file in tmp_path.iterdir()} == {name for name in on_disk if "older" not in name}


def test_python_may_call_what_kernels_call():
    """As it is written: numba's own kernels without an entry from Python end the process."""
    assert cells.up_to(3).tolist() == [0, 1, 2]


@compiled_only
@pytest.mark.parametrize(
    ("returned", "is_refused"),
    [
        ((1, (0.5, True)), False),
        (np.zeros(1), True),
        ((1, np.zeros(1)), True),
        ((1, Costs(0.5, 1.0)), True),
    ],
)
def test_kernels_return_numbers_to_python(returned, is_refused):
    """Of what else they return, numba makes objects without a look at errors, and Ctrl-C ends the process."""

    @numba.njit
    def kernel(value):
        return value

    kernel(returned)
    compilation = SimpleNamespace(data={"dispatcher": kernel})
    kernel.py_func.__module__ = None
    _jit._Returns().on_end(compilation)  # others' functions return anything
    kernel.py_func.__module__ = Costs.__module__
    with pytest.raises(TypeError, match="kernel.*numbers") if is_refused else nullcontext():
        _jit._Returns().on_end(compilation)
