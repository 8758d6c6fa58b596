import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np
from posterior_consensus.kernels import _jit
_jit._PATIENCE = {patience}
_jit._PACKAGE = {package!r}

@_jit.jit
def summed(values):
    total = 0.0
    for value in values:
        total += value
    return total

summed(np.ones(3))
summed(np.ones(3, np.float32))
"""


@pytest.fixture
def said(tmp_path):
    """What a process says on standard error that compiles two kernels of the module `__main__`, or has them cached."""

    def run(patience, package):
        script = tmp_path / "script.py"
        if not script.exists():  # a file written again is compiled again
            script.write_text(SCRIPT.format(patience=patience, package=package))
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
        return done.stderr.splitlines()

    return run


def test_compilation_that_takes_long_is_announced_once_and_not_when_cached(said):
    first = said(1e-4, "__main__")
    assert len(first) == 1
    assert "compiles its kernels" in first[0]
    assert said(1e-4, "__main__") == []


def test_later_compilation_with_the_same_cache_is_not_announced_again(said, tmp_path):
    assert len(said(1e-4, "__main__")) == 1
    script = tmp_path / "script.py"
    script.write_text(script.read_text() + "summed(np.ones(3, np.int32))\n")  # compiled again, and one more
    assert said(1e-4, "__main__") == []


def test_short_compilation_is_not_announced(said):
    assert said(1e3, "__main__") == []


def test_compilation_of_other_packages_is_not_announced(said):
    assert said(1e-4, "posterior_consensus") == []
