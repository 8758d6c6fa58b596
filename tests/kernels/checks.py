"""Run a kernel every way there is."""

import pkgutil
import sys
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from functools import cache
from importlib import import_module
from unittest.mock import patch

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

from posterior_consensus import kernels
from posterior_consensus.runtime import executor

MODULES = [import_module(f"{kernels.__name__}.{module.name}") for module in pkgutil.iter_modules(kernels.__path__)]


def at_once(kernel, first, last, *arguments, work):
    """One block."""
    kernel(first, last, *arguments)


def _one_by_one(kernel, first, last, *arguments, work):
    for index in reversed(range(first, last)):
        kernel(index, index + 1, *arguments)


def _on_threads(kernel, first, last, *arguments, work):
    with patch.object(executor, "n_threads", lambda: 3):
        executor.in_blocks(kernel, first, last, *arguments, work=2**40)


def in_python(kernel, first, last, *arguments, work):
    """One block, in plain Python."""
    kernel.py_func(first, last, *arguments)


@cache
def compiled(kernel):
    """The kernel as Python may call it, also where it is one that only kernels call."""
    if not isinstance(kernel, CPUDispatcher):
        return numba.njit(error_model="numpy")(lambda *arguments: kernel(*arguments))
    if kernel.targetoptions.get("no_cpython_wrapper"):
        return numba.njit(error_model="numpy")(kernel.py_func)
    return kernel


@contextmanager
def way_in_for_all():
    """Kernels that only kernels call may be called by the plain Python of the others."""
    found = [(m, name, value) for m in MODULES for name, value in vars(m).items() if isinstance(value, CPUDispatcher)]
    for module, name, value in found:
        setattr(module, name, compiled(value))
    try:
        yield
    finally:
        for module, name, value in found:
            setattr(module, name, value)


def run(kernel, *arguments):
    """Result and arguments after the call: the same for blocks of any size, on threads, and in plain Python."""
    plain = getattr(kernel, "py_func", kernel)
    blocks = sys.modules[plain.__module__]
    outcomes = []
    if hasattr(blocks, "in_blocks") and kernel is plain:
        for way in (at_once, _one_by_one, _on_threads):
            copies = deepcopy(arguments)
            with patch.object(blocks, "in_blocks", way):
                outcomes.append((kernel(*copies), copies))
        way = patch.object(blocks, "in_blocks", in_python)
    else:
        copies = deepcopy(arguments)
        outcomes.append((compiled(kernel)(*copies), copies))
        way = nullcontext()
    copies = deepcopy(arguments)
    with way_in_for_all(), way:
        outcomes.append((plain(*copies), copies))
    for other in outcomes[1:]:
        assert_identical(outcomes[0], other)
    return outcomes[0]


def assert_identical(one, other):
    """The same numbers bit for bit, through any nesting of tuples."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_identical(a, b)
    else:
        np.testing.assert_array_equal(one, other, strict=isinstance(one, np.ndarray))
