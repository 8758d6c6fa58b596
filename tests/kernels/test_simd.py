import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels._simd import LANES, ROWS, add_rows


@jit
def add_compiled(sums, at, table, rows):
    add_rows(sums, at, table, rows)


def test_compiled_sums_of_rows_are_those_of_plain_python():
    table = np.arange(20.0 * LANES, dtype=np.float32)  # whole numbers: the order of the sum is no matter
    sums = np.ones(3 * LANES, np.float32)
    rows = tuple(np.intp(offset) for offset in (0, 3, 16, 16, 33, 100, 250, 304))
    assert len(rows) == ROWS
    expected = sums.copy()
    add_rows(expected, 17, table, rows)
    add_compiled(sums, 17, table, rows)
    np.testing.assert_array_equal(sums, expected)
    assert (sums[:17] == 1).all() and (sums[17 + LANES :] == 1).all()
    assert sums[17] == 1 + sum(rows)
