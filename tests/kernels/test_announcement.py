import errno
import logging
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from posterior_consensus.kernels import _cache, _jit, cells
from posterior_consensus.kernels.pair_moves import Costs
from tests.kernels.checks import compiled_only

SCRIPT = """
import numpy as np
from posterior_consensus.kernels import ensemble

for dtype in (np.uint8, np.uint16):
    labels = np.array([[2, 0, 2]], dtype)
    canonical = labels.copy()
    ensemble.canonicalize(labels, 3, canonical)
print(canonical)
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


def printed_at(folder, prefix=()):
    """What SCRIPT prints, and warns of, with the package of this folder, which is its home too."""
    environment = os.environ | {"HOME": str(folder), "PYTHONPATH": str(folder)}
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        environment.pop(variable, None)
    command = [*prefix, sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def printed_without_rights(folder):
    """The same where no file of this folder can be written, by root neither."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        return printed_at(folder, ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else ())
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.slow
@compiled_only
@pytest.mark.skipif(os.name != "posix", reason="rights are taken as on Unix")
@pytest.mark.skipif(
    os.name == "posix" and os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root can write anywhere, and there is no setpriv, which takes this right",
)
def test_kernels_work_where_nothing_can_be_written(tmp_path):
    """They are compiled without a cache, or read from one that was made before."""
    package = Path(_jit.__file__).parents[1]
    copied = shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    printed, warned = printed_without_rights(tmp_path)
    assert printed == "[[0 1 0]]\n"
    assert len(warned.splitlines()) == 1 and "NUMBA_CACHE_DIR" in warned
    assert not list(tmp_path.rglob("*.nbi"))
    printed_at(tmp_path)
    assert list(copied.rglob("*.nbi"))
    assert printed_without_rights(tmp_path) == (printed, "")


@compiled_only
def test_kernels_that_cannot_be_kept_are_called_all_the_same(monkeypatch, caplog, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def plus(one, other):
        return one + other

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    monkeypatch.setattr(_cache.Cache, "_is_due", True)
    kernel = _jit.jit(plus)
    with caplog.at_level(logging.WARNING):
        assert kernel(1, 2) == 3 and kernel(0.5, 0.25) == 0.75
    assert len(caplog.messages) == 1 and "No space" in caplog.text and "NUMBA_CACHE_DIR" in caplog.text
    monkeypatch.setattr(_cache.Cache, "turns", str(tmp_path))
    with pytest.raises(OSError, match="No space"):
        kernel(1, 0.5)


@pytest.mark.parametrize(
    ("module", "on_disk", "is_said"),
    [
        ("posterior_consensus.kernels.moves", [], True),
        ("posterior_consensus.kernels.moves", ["moves.scan_older.nbi"], True),
        ("posterior_consensus.kernels.moves", ["moves.scan_older.nbi", f"moves.scan_{_cache.SOURCES}.nbi"], False),
        ("scipy.special", [], False),
        (None, [], False),  # as of functions that PyTensor writes
    ],
)
def test_the_first_kernel_of_an_empty_cache_is_announced(module, on_disk, is_said, tmp_path, caplog):
    for name in on_disk:
        (tmp_path / name).touch()
    kernel = SimpleNamespace(py_func=SimpleNamespace(__module__=module), stats=SimpleNamespace(cache_path=tmp_path))
    listener, compilation = _cache.Announcement(), SimpleNamespace(data={"dispatcher": kernel})
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
