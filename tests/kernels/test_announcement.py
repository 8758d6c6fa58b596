import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from posterior_consensus.kernels import _jit
from tests.helpers import Impatient

SCRIPT = """
import numpy as np
from posterior_consensus.kernels import _jit
from tests.helpers import Impatient

_jit.Timer = Impatient
_jit._PACKAGE = "__main__"

@_jit.jit
def summed(values):
    total = 0.0
    for value in values:
        total += value
    return total

summed(np.ones(3))
summed(np.ones(3, np.float32))
"""


@pytest.mark.slow
def test_compilation_that_takes_long_is_announced_once_for_each_cache(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    first, second = (
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment).stderr
        for _ in range(2)
    )
    assert len(first.splitlines()) == 1 and "compiles its kernels" in first
    assert second == ""


@pytest.fixture
def compiled(monkeypatch, tmp_path, caplog):
    """A function that lets kernels of a module be compiled, one within the other, and returns what was said."""

    def compile_kernels(timer, module, cache=tmp_path):
        monkeypatch.setattr(_jit, "Timer", timer)
        listener = _jit._Announcement()
        kernel = SimpleNamespace(py_func=SimpleNamespace(__module__=module), _cache=SimpleNamespace(cache_path=cache))
        compilation = SimpleNamespace(data={"dispatcher": kernel})
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            for step in (listener.on_start, listener.on_start, listener.on_end, listener.on_end):
                step(compilation)
        return caplog.messages

    return compile_kernels


def test_long_compilation_is_announced_once_for_each_cache(compiled, tmp_path):
    (said,) = compiled(Impatient, "posterior_consensus.kernels.scan")
    assert "compiles its kernels" in said
    assert compiled(Impatient, "posterior_consensus.kernels.scan") == []
    assert compiled(Impatient, "posterior_consensus.kernels.scan", tmp_path / "another") == [said]


def test_short_compilation_is_waited_for_once_and_not_announced(compiled):
    timer = Mock()
    assert compiled(timer, "posterior_consensus.kernels.scan") == []
    assert timer.call_args.args[0] == pytest.approx(_jit._PATIENCE)
    timer.return_value.start.assert_called_once()
    timer.return_value.cancel.assert_called_once()


def test_compilation_of_other_packages_is_not_announced(compiled):
    assert compiled(Impatient, "scipy.special") == []
