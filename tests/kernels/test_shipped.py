"""Kernels that came compiled with a wheel: when they are loaded, and when a kernel is compiled here instead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import event
from numba.core.registry import cpu_target

from posterior_consensus.kernels import _cache, _jit
from tests.kernels.checks import compiled_only

pytestmark = compiled_only


def twice(value):
    return 2 * value


def fresh():
    """The kernel, as in a process that has not called it."""
    twice.__qualname__ = "twice"
    return _jit.jit(twice)


def n_compiled(kernel, value):
    with event.install_recorder("numba:compile") as recorder:
        assert kernel(value) == 2 * value
    return sum(one.is_start for _, one in recorder.buffer)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """The folder of shipped kernels, with `twice` for integers, and no other cache."""
    monkeypatch.setattr(_cache, "SHIPPED", tmp_path)
    monkeypatch.setattr(_cache.Cache, "save_overload", lambda *_: None)
    kernel = fresh()
    assert n_compiled(kernel, 1) == 1
    (compiled,) = kernel.overloads.values()
    key = _cache.shipped_key(compiled.signature.args, cpu_target.target_context.codegen())
    _cache.shipped_file(kernel._cache._impl.filename_base).save(key, kernel._cache._impl.reduce(compiled))
    return tmp_path


def test_a_shipped_kernel_is_loaded_and_another_signature_compiled(shipped):
    before = {file: file.read_bytes() for file in shipped.iterdir()}
    kernel = fresh()
    assert n_compiled(kernel, 3) == 0 and n_compiled(kernel, 0.5) == 1
    assert {file: file.read_bytes() for file in shipped.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("missing_features", lambda _: ["avx2"]),
        ("shipped_key", lambda *_: ("another platform",)),
        ("SHIPPED", Path("another version of numba")),
    ],
)
def test_a_shipped_kernel_that_does_not_fit_is_compiled(name, value, shipped, monkeypatch):
    monkeypatch.setattr(_cache, name, value)
    assert n_compiled(fresh(), 3) == 1


@pytest.mark.usefixtures("shipped")
def test_edited_sources_are_compiled(monkeypatch):
    monkeypatch.setattr(_jit, "SOURCES", "0" * 16)
    assert n_compiled(fresh(), 3) == 1


FEATURES = """
from numba.core.registry import cpu_target
from posterior_consensus.kernels import _cache
print(*_cache.missing_features(cpu_target.target_context.codegen()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, "avx2"),
        ({"NUMBA_ENABLE_AVX": "0"}, "avx2"),
        ({"NUMBA_CPU_FEATURES": "+avx"}, "fma"),
    ],
)
def test_features_are_those_that_this_process_may_use(variables, missing):
    if not _cache.baseline(cpu_target.target_context.codegen()).features:
        pytest.skip("all processors of this kind have what kernels use")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | variables
    done = subprocess.run([sys.executable, "-c", FEATURES], env=environment, capture_output=True, text=True, check=True)
    assert missing in done.stdout.split()
