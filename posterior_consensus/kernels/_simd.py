"""Sums of table rows in vector registers, which numba's own vectoriser leaves to scalars."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from posterior_consensus.kernels._jit import inner

LANES = 16  # values of a row, of four bytes each: one AVX-512 register, two of AVX2, four of NEON
ROWS = 8  # rows added at once


def add_rows(sums, at, table, rows):
    """Add the rows of `table` that begin at the eight offsets `rows` to the row of `sums` that begins at `at`.

    Both arrays are float32 or both are int32, one-dimensional and contiguous.
    """
    for row in rows:
        sums[at : at + LANES] += table[row : row + LANES]


@intrinsic
def _add_rows(_, sums, at, table, rows):
    def generate(context, builder, signature, arguments):
        is_integer = isinstance(table.dtype, types.Integer)
        vector = ir.VectorType(ir.IntType(32) if is_integer else ir.FloatType(), LANES).as_pointer()
        plus = builder.add if is_integer else builder.fadd

        def pointer(position, offset):
            array = context.make_array(signature.args[position])(context, builder, arguments[position])
            return builder.bitcast(builder.gep(array.data, [offset]), vector)

        def load(address):
            loaded = builder.load(address)
            loaded.align = 4  # rows begin at any value
            return loaded

        terms = [load(pointer(2, builder.extract_value(arguments[3], row))) for row in range(ROWS)]
        while len(terms) > 1:  # by pairs, so that the additions do not wait for each other
            terms = [plus(one, other) for one, other in zip(terms[::2], terms[1::2], strict=True)]
        target = pointer(0, arguments[1])
        builder.store(plus(load(target), terms[0]), target).align = 4
        return context.get_dummy_value()

    return types.void(sums, at, table, rows), generate


@overload(add_rows)
def _compiled_add_rows(sums, at, table, rows):
    def implementation(sums, at, table, rows):
        _add_rows(sums, at, table, rows)

    return implementation


@inner
def add_eight(sums, table, most, labels, draws, first_item, n_items):
    """Add to the row of each item of a block the rows of `table` of its clusters in eight draws.

    `table` has `most` rows for each of the draws, a tuple of their numbers, in this order.
    """
    z0, z1, z2, z3 = labels[draws[0]], labels[draws[1]], labels[draws[2]], labels[draws[3]]
    z4, z5, z6, z7 = labels[draws[4]], labels[draws[5]], labels[draws[6]], labels[draws[7]]
    for b in range(n_items):
        i = np.uint64(first_item + b)
        rows = (
            np.intp(z0[i]) * LANES,
            (np.intp(z1[i]) + most) * LANES,
            (np.intp(z2[i]) + 2 * most) * LANES,
            (np.intp(z3[i]) + 3 * most) * LANES,
            (np.intp(z4[i]) + 4 * most) * LANES,
            (np.intp(z5[i]) + 5 * most) * LANES,
            (np.intp(z6[i]) + 6 * most) * LANES,
            (np.intp(z7[i]) + 7 * most) * LANES,
        )
        add_rows(sums, b * LANES, table, rows)
