"""Run a kernel every way there is."""

import sys
from copy import deepcopy
from unittest.mock import patch

import numpy as np

from posterior_consensus import executor


def _at_once(kernel, first, last, *arguments, work):
    kernel(first, last, *arguments)


def _one_by_one(kernel, first, last, *arguments, work):
    for index in reversed(range(first, last)):
        kernel(index, index + 1, *arguments)


def _on_threads(kernel, first, last, *arguments, work):
    with patch.object(executor, "n_threads", lambda: 3):
        executor.in_blocks(kernel, first, last, *arguments, work=2**40)


def in_python(kernel, first, last, *arguments, work):
    kernel.py_func(first, last, *arguments)


def run(kernel, *arguments):
    """Result and arguments after the call: the same for blocks of any size, on threads, and in plain Python."""
    plain = getattr(kernel, "py_func", kernel)
    module = sys.modules[plain.__module__]
    if not hasattr(module, "in_blocks"):
        ways = [(kernel, None), (plain, None)]
    else:
        ways = [(kernel, _at_once), (kernel, _one_by_one), (kernel, _on_threads), (plain, in_python)]
    outcomes = []
    for function, blocks in ways:
        copies = deepcopy(arguments)
        if blocks is None:
            outcomes.append((function(*copies), copies))
        else:
            with patch.object(module, "in_blocks", blocks):
                outcomes.append((function(*copies), copies))
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


def one_hot(labels, starts):
    """B (n, R): column starts[t] + k marks the items of cluster k of draw t."""
    matrix = np.zeros((labels.shape[1], starts[-1]), int)
    for t, row in enumerate(labels):
        matrix[np.arange(row.size), starts[t] + row] = 1
    return matrix
