"""Counts of the draws in which each pair of items is together.

Unweighted counts work on bit planes: plane p of an item holds bit p of its label, one bit per draw. Two items are apart
in the draws where any plane differs, so 64 draws cost one xor and one or per plane and one population count.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.runtime.executor import in_blocks

_TILE = 64
ROWS = _TILE  # rows of the similarity matrix that are counted at once
PLANES_AT_ONCE = 4


@intrinsic
def _count_bits(typing_context, word):
    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), codegen


def population_count(word: int) -> int:
    """Number of bits of a word that are 1."""
    return int(word).bit_count()


@overload(population_count)
def _population_count_jitted(word):
    if isinstance(word, types.Integer):
        return lambda word: _count_bits(word)


@jit
def _pack_words(first, last, labels, planes):
    n_draws, n_items = labels.shape
    for w in range(first, last):
        for t in range(64 * w, min(n_draws, 64 * (w + 1))):
            draw = labels[t]
            shift = np.uint64(t - 64 * w)
            for p in range(planes.shape[1]):
                plane = planes[w, p]
                bit = np.uint64(p)
                for i in range(n_items):
                    plane[i] |= ((np.uint64(draw[i]) >> bit) & np.uint64(1)) << shift


def pack_bit_planes(labels: np.ndarray, n_planes: int) -> np.ndarray:
    """Bit planes (ceil(N / 64), n_planes, n up to whole tiles) of labels (N, n) below 2 ** n_planes."""
    n_draws, n_items = labels.shape
    n_words = (n_draws + 63) // 64
    planes = np.zeros((n_words, n_planes, (n_items + _TILE - 1) // _TILE * _TILE), np.uint64)
    in_blocks(_pack_words, 0, n_words, labels, planes, work=16 * n_planes * n_items)
    return planes


@inner
def _count_draws_apart(planes, row, column, differ, apart):
    """Write to `apart` (tile, tile) in how many draws the items of two tiles differ; `differ` (tile,) is scratch.

    The number of planes is a multiple of four. The inner loops run over items side by side in memory, so that they
    become vector instructions, and take four planes at a time, so that a pair's words stay in registers. Each plane's
    row is sliced by itself: a view of several has no known stride, and costs a factor of four.
    """
    n_words, n_planes, _ = planes.shape
    end = column + _TILE
    apart[:] = 0
    for w in range(n_words):
        word = planes[w]
        p, q, r, s = word[0, column:end], word[1, column:end], word[2, column:end], word[3, column:end]
        for i in range(_TILE):
            item = row + i
            a, b, c, d = word[0, item], word[1, item], word[2, item], word[3, item]
            for j in range(_TILE):
                differ[j] = (p[j] ^ a) | (q[j] ^ b) | (r[j] ^ c) | (s[j] ^ d)
            for k in range(4, n_planes, 4):
                e, f, g, h = word[k, item], word[k + 1, item], word[k + 2, item], word[k + 3, item]
                t, u = word[k, column:end], word[k + 1, column:end]
                v, x = word[k + 2, column:end], word[k + 3, column:end]
                for j in range(_TILE):
                    differ[j] |= (t[j] ^ e) | (u[j] ^ f) | (v[j] ^ g) | (x[j] ^ h)
            counts = apart[i]
            for j in range(_TILE):
                counts[j] += np.int64(population_count(differ[j]))


@inner
def _corner(tile):
    """First row and first column of a tile of the lower triangle, counted row by row."""
    k = np.int64((np.sqrt(8.0 * tile + 1.0) - 1.0) / 2.0)  # tile = k (k + 1) / 2 + l with l <= k
    while (k + 1) * (k + 2) // 2 <= tile:
        k += 1
    while k * (k + 1) // 2 > tile:
        k -= 1
    return k * _TILE, (tile - k * (k + 1) // 2) * _TILE


def _n_tiles(planes):
    """Number of tiles of the lower triangle."""
    n_rows = planes.shape[2] // _TILE
    return n_rows * (n_rows + 1) // 2


def _work(planes):
    """Steps of a tile: vector instructions process several planes of several items."""
    return planes.shape[0] * planes.shape[1] * _TILE * _TILE // 8


@jit
def _add_tiles(first, last, planes, n_draws, out, is_first, divisor):
    n_items = out.shape[0]
    apart, differ = np.empty((_TILE, _TILE), np.int64), np.empty(_TILE, np.uint64)
    together = np.empty((_TILE, _TILE))
    for tile in range(first, last):
        row, column = _corner(tile)
        height = min(n_items - row, _TILE)
        width = min(n_items - column, _TILE)
        _count_draws_apart(planes, row, column, differ, apart)
        for i in range(height):
            for j in range(width):
                before = 0.0 if is_first else out[row + i, column + j]
                together[i, j] = (before + (n_draws - apart[i, j])) / divisor
        for i in range(height):
            line = out[row + i, column : column + width]
            for j in range(width):
                line[j] = together[i, j]
        if row != column:
            for j in range(width):
                line = out[column + j, row : row + height]
                for i in range(height):
                    line[i] = together[i, j]


def add_coclustering_counts(planes: np.ndarray, n_draws: int, out: np.ndarray, first: bool, divisor: float) -> None:
    """Add the pair counts of one block of `n_draws` draws to `out` (n, n), or start from zero if `first`; then divide.

    The divisor is 1 for all blocks but the last: counts stay integers, hence exact, until they are divided once.
    """
    in_blocks(_add_tiles, 0, _n_tiles(planes), planes, n_draws, out, first, divisor, work=_work(planes))


@jit
def _add_row_tiles(first, last, planes, n_draws, top, out, is_first, divisor):
    n_rows, n_items = out.shape
    n_columns = planes.shape[2] // _TILE
    apart, differ = np.empty((_TILE, _TILE), np.int64), np.empty(_TILE, np.uint64)
    for tile in range(first, last):
        row, column = tile // n_columns * _TILE, tile % n_columns * _TILE
        _count_draws_apart(planes, top + row, column, differ, apart)
        for i in range(min(n_rows - row, _TILE)):
            line = out[row + i, column : min(n_items, column + _TILE)]
            for j in range(line.size):
                before = 0.0 if is_first else line[j]
                line[j] = (before + (n_draws - apart[i, j])) / divisor


def add_row_counts(planes: np.ndarray, n_draws: int, top: int, out: np.ndarray, first: bool, divisor: float) -> None:
    """As :func:`add_coclustering_counts` for the rows `out` (m, n) of the items from `top`, a multiple of ROWS."""
    n_tiles = -(-out.shape[0] // _TILE) * (planes.shape[2] // _TILE)
    in_blocks(_add_row_tiles, 0, n_tiles, planes, n_draws, top, out, first, divisor, work=_work(planes))


@jit
def _keep_nearest(first, last, similarities, top, columns, values):
    k = columns.shape[1]
    for i in range(first, last):
        row, nearest, best = similarities[i], columns[i], values[i]
        found = 0
        for j in range(row.size):
            if j == top + i or (found == k and row[j] <= best[k - 1]):
                continue
            at = min(found, k - 1)
            while at > 0 and best[at - 1] < row[j]:
                best[at], nearest[at] = best[at - 1], nearest[at - 1]
                at -= 1
            best[at], nearest[at] = row[j], j
            found = min(found + 1, k)


def nearest_in_rows(similarities: np.ndarray, top: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values (m, k) of the k largest in each of the rows (m, n) of items from `top`, but the item itself.

    The largest come first; equal values in the order of the columns.
    """
    n_rows, n_items = similarities.shape
    columns, values = np.empty((n_rows, k), np.int64), np.empty((n_rows, k))
    in_blocks(_keep_nearest, 0, n_rows, similarities, top, columns, values, work=n_items)
    return columns, values


@jit
def _add_weights(first, last, labels, weights, out):
    n_draws, n_items = labels.shape
    for i in range(first, last):
        row = out[i]
        for t in range(n_draws):
            label = labels[t, i]
            weight = weights[t]
            for j in range(n_items):
                row[j] += weight if labels[t, j] == label else 0.0


def add_coclustering_weights(labels: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Add sum_t weights[t] 1{labels[t, i] = labels[t, j]} of draws (N, n) to `out` (n, n), row by row."""
    in_blocks(_add_weights, 0, labels.shape[1], labels, weights, out, work=labels.size // 4)


@jit
def _compare_tiles(first, last, planes, words, sizes, n_items, out):
    squares, pooled, widest, where = out
    n_groups = sizes.size
    apart, differ = np.empty((_TILE, _TILE), np.int64), np.empty(_TILE, np.uint64)
    for tile in range(first, last):
        row, column = _corner(tile)
        total, low, high = np.zeros((_TILE, _TILE)), np.ones((_TILE, _TILE)), np.zeros((_TILE, _TILE))
        for g in range(n_groups):
            _count_draws_apart(planes[words[g] : words[g + 1]], row, column, differ, apart)
            for i in range(min(n_items - row, _TILE)):
                for j in range(i if row == column else min(n_items - column, _TILE)):
                    share = (sizes[g] - apart[i, j]) / sizes[g]
                    squares[tile, g] += share * share
                    total[i, j] += share
                    low[i, j] = min(low[i, j], share)
                    high[i, j] = max(high[i, j], share)
        for i in range(min(n_items - row, _TILE)):
            for j in range(i if row == column else min(n_items - column, _TILE)):
                pooled[tile] += (total[i, j] / n_groups) ** 2
                if high[i, j] - low[i, j] > widest[tile]:
                    widest[tile] = high[i, j] - low[i, j]
                    where[tile, 0], where[tile, 1] = column + j, row + i


def compare_groups(planes: np.ndarray, words: np.ndarray, sizes: np.ndarray, n_items: int) -> tuple[np.ndarray, ...]:
    """How far the similarity matrices of groups of draws lie apart, tile by tile, without forming them.

    Group g has `sizes[g]` draws, in the words from `words[g]` to `words[g + 1]`. With p_g the share of its draws in
    which a pair is together, for each tile: the sums over its pairs of p_g ** 2 (tiles, groups) and of the squared mean
    of the p_g (tiles,), the largest range of the p_g (tiles,) and the pair that has it (tiles, 2), -1 without pairs.
    """
    n_tiles = _n_tiles(planes)
    squares, pooled = np.zeros((n_tiles, sizes.size)), np.zeros(n_tiles)
    widest, where = np.full(n_tiles, -1.0), np.full((n_tiles, 2), -1)
    out = squares, pooled, widest, where
    in_blocks(_compare_tiles, 0, n_tiles, planes, words, sizes, n_items, out, work=_work(planes))
    return out


@jit
def _spread_tiles(first, last, planes, words, sizes, ends, n_items, out):
    n_draws, size_squares, of_chain, chain_squares = sizes.sum(), (sizes * sizes).sum(), 0, 0
    for b in range(sizes.size):
        of_chain += sizes[b]
        if ends[b]:
            chain_squares += of_chain * of_chain
            of_chain = 0
    apart, differ = np.empty((_TILE, _TILE), np.int64), np.empty(_TILE, np.uint64)
    for tile in range(first, last):
        row, column = _corner(tile)
        # Whole numbers, so that pairs always or never together get exactly 0.
        counts, squares = np.zeros((_TILE, _TILE), np.int64), np.zeros((_TILE, _TILE), np.int64)
        products, of_chain = np.zeros((_TILE, _TILE), np.int64), 0
        before, between = np.zeros((_TILE, _TILE), np.int64), np.zeros((_TILE, _TILE), np.int64)
        weighted = np.zeros((_TILE, _TILE), np.int64)
        for b in range(sizes.size):
            _count_draws_apart(planes[words[b] : words[b + 1]], row, column, differ, apart)
            for i in range(_TILE):
                for j in range(_TILE):
                    together = sizes[b] - apart[i, j]
                    counts[i, j] += together
                    squares[i, j] += together * together
                    products[i, j] += sizes[b] * together
            of_chain += sizes[b]
            if ends[b]:
                for i in range(_TILE):
                    for j in range(_TILE):
                        together = counts[i, j] - before[i, j]
                        between[i, j] += together * together
                        weighted[i, j] += of_chain * together
                        before[i, j] = counts[i, j]
                of_chain = 0
        for i in range(min(n_items - row, _TILE)):
            for j in range(min(n_items - column, _TILE)):
                share = counts[i, j] / n_draws
                spread = squares[i, j] - 2.0 * share * products[i, j] + share * share * size_squares
                out[0, row + i, column + j] = out[0, column + j, row + i] = max(spread, 0.0)
                spread = between[i, j] - 2.0 * share * weighted[i, j] + share * share * chain_squares
                out[1, row + i, column + j] = out[1, column + j, row + i] = max(spread, 0.0)


def spread_of_batches(
    planes: np.ndarray, words: np.ndarray, sizes: np.ndarray, n_items: int, ends: np.ndarray
) -> np.ndarray:
    """Sums over batches b of (c_b - s_b c / N) ** 2 for every pair, and the same over chains, (2, n, n).

    Batch b has s_b draws, of which c_b have the pair together; N and c are their sums. `ends` says of each batch
    whether it is the last of its chain.
    """
    out = np.zeros((2, n_items, n_items))
    in_blocks(_spread_tiles, 0, _n_tiles(planes), planes, words, sizes, ends, n_items, out, work=_work(planes))
    return out
