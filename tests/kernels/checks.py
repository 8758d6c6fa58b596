"""Run a kernel every way there is."""

from copy import deepcopy

import numba
import numpy as np


def run(kernel, *arguments):
    """Result and arguments after the call, the same on one thread, on two, and in plain Python."""
    outcomes = []
    most = numba.config.NUMBA_NUM_THREADS
    for function, n_threads in [
        (kernel, 1),
        (kernel, min(2, most)),
        (getattr(kernel, "py_func", kernel), most),
    ]:
        copies = deepcopy(arguments)
        numba.set_num_threads(n_threads)
        try:
            outcomes.append((function(*copies), copies))
        finally:
            numba.set_num_threads(most)
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
