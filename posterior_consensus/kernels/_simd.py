"""Sums of table rows in vector registers, which numba's own vectoriser leaves to scalars."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

LANES = 16  # float32 values of a row: one AVX-512 register, two of AVX2, four of NEON
ROWS = 8  # rows added at once


def add_rows(sums, at, table, rows):
    """Add the rows of `table` that begin at the eight offsets `rows` to the row of `sums` that begins at `at`.

    Both arrays are float32, one-dimensional and contiguous.
    """
    for row in rows:
        sums[at : at + LANES] += table[row : row + LANES]


@intrinsic
def _add_rows(_, sums, at, table, rows):
    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.FloatType(), LANES).as_pointer()

        def pointer(position, offset):
            array = context.make_array(signature.args[position])(context, builder, arguments[position])
            return builder.bitcast(builder.gep(array.data, [offset]), vector)

        def load(address):
            loaded = builder.load(address)
            loaded.align = 4  # rows begin at any float
            return loaded

        terms = [load(pointer(2, builder.extract_value(arguments[3], row))) for row in range(ROWS)]
        while len(terms) > 1:  # by pairs, so that the additions do not wait for each other
            terms = [builder.fadd(one, other) for one, other in zip(terms[::2], terms[1::2], strict=True)]
        target = pointer(0, arguments[1])
        builder.store(builder.fadd(load(target), terms[0]), target).align = 4
        return context.get_dummy_value()

    return types.void(sums, at, table, rows), generate


@overload(add_rows)
def _compiled_add_rows(sums, at, table, rows):
    def implementation(sums, at, table, rows):
        _add_rows(sums, at, table, rows)

    return implementation
