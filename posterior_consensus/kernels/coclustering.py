"""Counts of the draws in which each pair of items is together.

Unweighted counts work on bit planes: plane p of an item holds bit p of its label, one bit per draw. Two items are apart
in the draws where any plane differs, so 64 draws cost one xor and one or per plane and one population count.
"""

import numpy as np
from numba import prange, types
from numba.extending import intrinsic, overload

from posterior_consensus.kernels._jit import jit

_TILE = 32
PLANES_AT_ONCE = 4


@intrinsic
def _count_bits(typing_context, word):
    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), codegen


def _population_count(word):
    return int(word).bit_count()


@overload(_population_count)
def _population_count_jitted(word):
    if isinstance(word, types.Integer):
        return lambda word: _count_bits(word)


@jit(parallel=True)
def pack_bit_planes(labels, n_planes):
    """Bit planes (n, n_planes, ceil(N / 64)) of labels (N, n) below 2 ** n_planes."""
    n_draws, n_items = labels.shape
    n_words = (n_draws + 63) // 64
    planes = np.zeros((n_items, n_planes, n_words), np.uint64)
    for w in prange(n_words):
        for t in range(64 * w, min(n_draws, 64 * (w + 1))):
            shift = np.uint64(t - 64 * w)
            for i in range(n_items):
                label = np.uint64(labels[t, i])
                for p in range(n_planes):
                    planes[i, p, w] |= ((label >> np.uint64(p)) & np.uint64(1)) << shift
    return planes


@jit
def _draws_apart(one, other, apart):
    """Number of draws in which two items differ; `apart` (n_words,) is scratch. n_planes is a multiple of four."""
    n_planes, n_words = one.shape
    for w in range(n_words):
        apart[w] = (
            (one[0, w] ^ other[0, w])
            | (one[1, w] ^ other[1, w])
            | (one[2, w] ^ other[2, w])
            | (one[3, w] ^ other[3, w])
        )
    for p in range(4, n_planes, 4):
        for w in range(n_words):
            apart[w] |= (
                (one[p, w] ^ other[p, w])
                | (one[p + 1, w] ^ other[p + 1, w])
                | (one[p + 2, w] ^ other[p + 2, w])
                | (one[p + 3, w] ^ other[p + 3, w])
            )
    total = np.uint64(0)
    for w in range(n_words):
        total += np.uint64(_population_count(apart[w]))
    return np.int64(total)


@jit(parallel=True)
def add_coclustering_counts(planes, n_draws, out, first, divisor):
    """Add the pair counts of one block of `n_draws` draws to `out` (n, n), or start from zero if `first`; then divide.

    A block's divisor is 1 but for the last one's, so that counts stay whole numbers, and exact, until they are divided
    once.
    """
    n_items, _, n_words = planes.shape
    n_tiles = (n_items + _TILE - 1) // _TILE
    for tile in prange(n_tiles * (n_tiles + 1) // 2):
        row = np.int64((np.sqrt(8.0 * tile + 1.0) - 1.0) / 2.0)  # tile = row (row + 1) / 2 + column, column <= row
        while (row + 1) * (row + 2) // 2 <= tile:
            row += 1
        while row * (row + 1) // 2 > tile:
            row -= 1
        column = tile - row * (row + 1) // 2
        rows = range(row * _TILE, min(n_items, (row + 1) * _TILE))
        columns = range(column * _TILE, min(n_items, (column + 1) * _TILE))
        values = np.empty((_TILE, _TILE))
        apart = np.empty(n_words, np.uint64)
        for i in rows:
            for j in columns:
                together = np.float64(n_draws - _draws_apart(planes[i], planes[j], apart))
                if not first:
                    together += out[i, j]
                values[i - rows.start, j - columns.start] = together / divisor
        for i in rows:
            for j in columns:
                out[i, j] = values[i - rows.start, j - columns.start]
        for j in columns:
            for i in rows:
                out[j, i] = values[i - rows.start, j - columns.start]


@jit(parallel=True)
def add_coclustering_weights(labels, weights, out):
    """Add sum_t weights[t] 1{labels[t, i] = labels[t, j]} of draws (N, n) to `out` (n, n), row by row."""
    n_draws, n_items = labels.shape
    for i in prange(n_items):
        row = out[i]
        for t in range(n_draws):
            label = labels[t, i]
            weight = weights[t]
            for j in range(n_items):
                row[j] += weight if labels[t, j] == label else 0.0
