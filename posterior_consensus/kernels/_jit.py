"""How kernels are compiled: the decorators, what they may return, and sums in vector registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import event
from numba.extending import intrinsic, overload, register_jitable

from posterior_consensus.kernels._cache import SOURCES, Announcement, Cache, is_own

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

LANES = 16  # values of a row, of four bytes each: one AVX-512 register, two of AVX2, four of NEON
ROWS = 8  # rows added at once


def jit(function: Kernel) -> Kernel:
    """For a kernel that Python calls. It came compiled, or is compiled once and kept until a file here changes.

    Where no folder can be written, each process compiles it anew.
    """
    # numba looks at the kernel's own file only, but what a kernel calls is compiled into it. This name is the file's.
    function.__qualname__ += f"_{SOURCES}"
    kernel: Any = numba.njit(function, nogil=True, no_cfunc_wrapper=True, error_model="numpy")
    if kernel is not function:  # as it is with NUMBA_DISABLE_JIT
        kernel._cache = Cache(function)
    return kernel


inner: Callable[[Kernel], Kernel] = register_jitable(no_cfunc_wrapper=True, error_model="numpy")
"""Decorate a function that kernels call. It needs no entry from Python, which runs it as it is written."""


def either(kind: type, one: Callable[..., Any], other: Callable[..., Any], words: str) -> Callable[..., Any]:
    """A function for kernels: `one` where its first argument is a NamedTuple of this kind or holds one, else `other`.

    The choice is made when the caller is compiled, which then contains the chosen function only.
    """
    one, other = (getattr(function, "py_func", function) for function in (one, other))

    def chosen(first, *rest):
        return (one if type(first) is kind or kind in map(type, first) else other)(first, *rest)

    @overload(chosen, strict=False)
    def compiled(first, *rest):
        return one if any(getattr(part, "instance_class", None) is kind for part in (first, *first.types)) else other

    chosen.__doc__ = words
    return chosen


class _Returns(event.Listener):
    """Refuses a kernel that returns more to Python than numbers, or plain tuples of numbers.

    To make an array or a NamedTuple, numba runs Python code, in which Ctrl-C raises an error. numba does not look
    whether there is one: Python then reports a SystemError, or the process ends. See docs/developers/upstream.md.
    """

    def on_start(self, compilation):
        """Nothing is known yet."""

    def on_end(self, compilation):
        """Look at what the kernel returns."""
        kernel = compilation.data["dispatcher"]
        if is_own(kernel) and "no_cpython_wrapper" not in kernel.targetoptions:
            for compiled in kernel.overloads.values():
                kind = compiled.signature.return_type
                if not _is_numbers(kind):
                    raise TypeError(f"The kernel {kernel.py_func.__name__} must return numbers to Python; got {kind}.")


def _is_numbers(kind):
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.BaseNamedTuple):
        return all(map(_is_numbers, kind))
    return isinstance(kind, (types.Number, types.Boolean, types.NoneType))


for _listener in (Announcement(), _Returns()):
    event.register("numba:compile", _listener)


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
