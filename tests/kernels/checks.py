"""Run a kernel every way there is."""

import pkgutil
import sys
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from unittest.mock import patch

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from posterior_consensus import kernels
from posterior_consensus.runtime import executor
from posterior_consensus.search import local_search

MODULES = [import_module(f"{kernels.__name__}.{one.name}") for one in pkgutil.iter_modules(kernels.__path__)]

compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT == 1, reason="whole searches take minutes in plain Python")


def at_once(kernel, first, last, *arguments, work):
    """One block."""
    kernel(first, last, *arguments)


def one_by_one(kernel, first, last, *arguments, work):
    for index in reversed(range(first, last)):
        kernel(index, index + 1, *arguments)


def on_threads(kernel, first, last, *arguments, work):
    with patch.object(executor, "n_threads", lambda: 3):
        executor.in_blocks(kernel, first, last, *arguments, work=2**40)


def plain(kernel):
    return getattr(kernel, "py_func", kernel)  # with NUMBA_DISABLE_JIT it is none but that


@contextmanager
def in_plain_python():
    """All kernels are what they are written as: nothing is compiled."""
    named = [(module, name, value) for module in (*MODULES, local_search) for name, value in vars(module).items()]
    found = [one for one in named if isinstance(one[2], (CPUDispatcher, local_search._DescentSteps))]
    for module, name, value in found:
        setattr(module, name, value._make(map(plain, value)) if isinstance(value, tuple) else plain(value))
    try:
        yield
    finally:
        for module, name, value in found:
            setattr(module, name, value)


def run(kernel, *arguments, rtol=0.0):
    """Result and arguments after the call: the same for blocks of any size, on threads, and in plain Python.

    What only kernels call runs in plain Python alone: compiled, it is a part of them. The exponentials of plain Python
    may differ from the compiled ones by `rtol`.
    """
    blocks = sys.modules[plain(kernel).__module__]
    outcomes = []
    if isinstance(kernel, CPUDispatcher):
        outcomes.append(_outcome(kernel, arguments))
    elif hasattr(blocks, "in_blocks"):
        for way in (at_once, one_by_one, on_threads):
            with patch.object(blocks, "in_blocks", way):
                outcomes.append(_outcome(kernel, arguments))
    with in_plain_python():
        slow = _outcome(plain(kernel), arguments)
    for other in outcomes[1:]:
        assert_identical(outcomes[0], other)
    if outcomes:
        assert_identical(outcomes[0], slow, rtol)
    return outcomes[0] if outcomes else slow


def _outcome(function, arguments):
    copies = deepcopy(arguments)
    return function(*copies), copies


def assert_identical(one, other, rtol=0.0):
    """The same numbers bit for bit unless they may differ a little, through any nesting of tuples."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_identical(a, b, rtol)
    elif rtol > 0:
        np.testing.assert_allclose(one, other, rtol=rtol)
    else:
        np.testing.assert_array_equal(one, other, strict=isinstance(one, np.ndarray))
