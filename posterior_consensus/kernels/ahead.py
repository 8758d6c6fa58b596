"""Kernels compiled before they are called, side by side in processes of their own.

A set names the kernels that one kind of call needs, with the types of their arguments; tests/test_quick_start.py holds
them to what calls compile.
"""

import pickle
import subprocess
import sys
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import numba
from numba.core import types
from numba.core.types import boolean, float32, float64, int32, int64, uint8, uint16, uint64

from posterior_consensus.kernels import (
    allocation,
    canonical,
    cells,
    chains,
    coclustering,
    contingency,
    ensemble,
    loss,
    rearrangement,
    records,
    scan,
    scores,
    tables,
    unions,
)
from posterior_consensus.kernels._jit import announce
from posterior_consensus.runtime.executor import n_threads
from posterior_consensus.runtime.progress import track

_CHILD = "import sys; sys.path[:] = {path!r}; from posterior_consensus.kernels import ahead; ahead.serve()"

I1, I2, W1, W2, W3 = int64[::1], int64[:, ::1], int32[::1], int32[:, ::1], int32[:, :, ::1]
F1, F2, F3, S2, S3 = float64[::1], float64[:, ::1], float64[:, :, ::1], float32[:, ::1], float32[:, :, ::1]
B1, B2, STOP, WORDS = boolean[::1], boolean[:, ::1], uint8[::1], uint64[:, :, ::1]
BLOCK = int64, int64  # first and last index of a block


def _labels(name):
    """The type of label vectors (N, n), by the name of NumPy's dtype."""
    return getattr(types, name)[:, ::1]


def _record(kind, *parts):
    return types.BaseTuple.from_types(parts, kind)


LINEAR = _record(loss.LinearLoss, F1, types.UniTuple(float64, 4))
GENERAL = _record(loss.GeneralLoss, F1, types.UniTuple(float64, 8), types.UniTuple(float64, 8))
SLOPES = _record(records.Slopes, F1, F1, F1)
SCRATCH = _record(records.Scratch, F1, W1, B1, I1, STOP)
SCORES = _record(records.Scores, F1, F1, I1, F2)
COURSE = _record(scan.Course, float64, int64, int64, int64)
MEMBERS = _record(unions.Members, I1, I1)


def search_over_draws(sparse, linear):
    """What a search over draws needs, with sparse tables or dense ones, for a loss that is linear in A and B or not."""
    labels = uint16[:, ::1], I1, F1
    draws = _record(cells.SparseDraws, *labels, I1, I2) if sparse else _record(cells.Draws, *labels)
    kind, table = (cells.Sparse, W1) if sparse else (cells.Dense, W2)
    state = _record(kind, W1, I1, F1, F1, table)
    loss_type = LINEAR if linear else GENERAL
    search = _record(records.Search, draws, loss_type, SLOPES, float64, int64, int64, SCRATCH)
    yield rearrangement._first_that_pays, (search, state, MEMBERS, F1, boolean)
    yield scores.score_block, (state, draws, SLOPES, *BLOCK, SCORES, SCRATCH)
    yield chains.move_chain, (search, state, F1, I1)
    yield allocation._allocate, (search, state, I1, int64, int64)
    yield scan._move_doubtful, (search, state, I1, SCORES, float64, int64, int64, COURSE)
    yield unions._best_unions, (state, search, MEMBERS, F1, I1)
    yield tables.expected_losses, (draws, loss_type, state)
    yield cells._fill, (state, draws)
    yield cells.rename, (draws, state, I1)
    if sparse:
        yield tables.cluster_terms, (uint16[:, ::1], F1, LINEAR, W1, int64)
    if not linear:
        yield tables._set_slopes_here, (loss_type, draws, state, SLOPES)
        yield tables.current, (loss_type, draws, state)


def clusters_opened(sparse):
    """What a search for a least number of clusters needs beside."""
    (_, (search, state, *_)), *_ = search_over_draws(sparse, linear=True)
    yield allocation._open, (search, state, F1, int64)


def search_over_pairs():
    """What a search over a similarity matrix needs."""
    from posterior_consensus.kernels import pair_moves, pair_search

    costs = _record(pair_moves.Costs, float64, float64)
    search = _record(pair_moves.PairSearch, F2, costs, float64, int64, int64, STOP)
    state = _record(pair_moves.PairState, W1, I1, F2)
    yield pair_moves.rearrange_pairs, (search, state, I1, F1, I1)
    yield pair_moves.chain_pairs, (search, state, F1, I1)
    yield pair_moves.scan_pairs, (search, state, F1, I1, float64)
    yield pair_search.begin_pairs, (F2, costs, W1, I1, int64)
    yield pair_moves.merge_pairs, (search, state)
    yield pair_moves.open_pairs, (search, state, F1)
    yield pair_search.move_best, (F2, costs, W1, int64, int64, F1)


def summary_of_labels(label):
    """What a summary of draws with this type of labels needs beside a search."""
    labels = _labels(label)
    vectors = _record(contingency.Vectors, labels, I1, int64)
    yield coclustering._compare_tiles, (*BLOCK, WORDS, I1, I1, int64, types.Tuple((F2, F1, F1, I2)))
    yield contingency._joint_sums, (*BLOCK, vectors, vectors, F1, boolean, F2, F1)
    yield contingency.size_sums, (labels, I1, F1)
    yield contingency._paired_joint_sums, (*BLOCK, labels, I1, I1, I1, types.UniTuple(int64, 2), F1, F1)
    yield canonical.canonicalise, (labels, int64, labels)
    yield loss.combine, (LINEAR, F2, F1, F1)
    yield ensemble._gather, (*BLOCK, labels, I1, F1, W2, F2)
    yield coclustering._pack_words, (*BLOCK, labels, WORDS)
    yield ensemble._joint_counts, (*BLOCK, labels, I1, W1, W2)


def similarities(label):
    """What a posterior similarity matrix needs."""
    labels = _labels(label)
    yield coclustering._add_tiles, (*BLOCK, WORDS, int64, F2, boolean, float64)
    yield coclustering._pack_words, (*BLOCK, labels, WORDS)


def bound_of_vi():
    """What the bound of the expected VI needs."""
    from posterior_consensus.kernels import vi_bound, vi_tangents

    blocks = _record(vi_tangents.Blocks, W2, I1, W1, I1, F1, I1)
    tangents = _record(vi_tangents.Tangents, S3, F2, I2, I2, W3)
    prices, groups = _record(vi_bound.Prices, F3, F2), _record(vi_bound.Groups, I1, I1, F1, I1)
    minima, means = _record(vi_bound.Minima, F2, I2, I2, I1, S2), _record(vi_bound.Means, S3, F2, F2)
    yield vi_bound._solve_items, (*BLOCK, tangents, prices, groups, B2, int64, minima)
    yield vi_tangents._linearise_items, (*BLOCK, blocks, S3, I2, tangents, F2)
    yield vi_bound._violated_triangles, (*BLOCK, S3, I1, int64, int64, float64, int32[:, :, :, ::1], S3)
    yield vi_bound._move_items, (*BLOCK, means, minima, prices, groups, float64, F1, F1)
    yield vi_bound.violations, (S3, W2, F1)
    yield vi_tangents._blend_items, (*BLOCK, tangents, I2, I2, I2)
    yield vi_bound._price_pairs, (*BLOCK, F3, S3, I1, float64, prices)
    yield vi_bound._price_triangles, (*BLOCK, I1, W2, F1, I1, prices)
    yield vi_bound.triangle_bends, (S3, I1, S2, W2, F1, F1)
    yield vi_bound._settle_items, (*BLOCK, F3, S3, I1, float64)


def further(label):
    """What the other functions of the package need."""
    from posterior_consensus.kernels import memberships, mutual_information, occupancy, packing, partial, perturbation

    labels = _labels(label)
    vectors = _record(contingency.Vectors, labels, I1, int64)
    given = _record(contingency.Vectors, W2, I1, int64)
    draws = _record(cells.Draws, labels, I1, F1)
    bits = _record(partial.Bits, WORDS, uint64[::1], I2)
    yield partial.grow, (bits, I1, int64, int64, int64, int64, STOP)
    yield mutual_information._climb, (*BLOCK, F2, F1, float64, int64, types.Tuple((I2, int64)), I2, F1)
    yield contingency._joint_sums, (*BLOCK, given, vectors, F1, boolean, F2, F1)
    yield contingency._joint_sums_by_bits, (*BLOCK, given, vectors, F1, boolean, F2, F1)
    yield contingency._joint_sums_by_bits, (*BLOCK, vectors, vectors, F1, boolean, F2, F1)
    yield coclustering._add_row_tiles, (*BLOCK, WORDS, int64, int64, F2, boolean, float64)
    yield coclustering._spread_tiles, (*BLOCK, WORDS, I1, I1, int64, F2)
    yield coclustering._add_weights, (*BLOCK, labels, F1, F2)
    yield coclustering._keep_nearest, (*BLOCK, F2, int64, I2, F2)
    yield contingency.size_sums, (W2, I1, F1)
    yield contingency._stacked_counts, (*BLOCK, labels, I1, W2, W2)
    yield contingency._sums_of_counts, (*BLOCK, W2, I1, I1, F1, F2)
    yield contingency._paired_counts, (*BLOCK, labels, I1, I1, I1, I1, W1)
    yield ensemble._scatter, (*BLOCK, labels, I1, F2, F2)
    yield ensemble._gather, (*BLOCK, labels, I1, F1, F2, F2)
    yield ensemble._similarity_rows, (*BLOCK, labels, F1, labels, F2)
    yield ensemble._votes, (*BLOCK, labels, I1, F1, I1, F2)
    yield ensemble._items_by_cluster, (*BLOCK, labels, I1, I1, W1)
    clusters, nearest = types.Tuple((I1, I1, W1)), types.Tuple((F1, W1, F1))
    yield ensemble._own_and_nearest, (*BLOCK, labels, clusters, F1, float64, W1, I1, nearest)
    yield ensemble.refine_in_place, (labels, I1, F1, W1, W2, I1)
    yield canonical.canonicalise_on, (labels, W2, I1, labels)
    yield loss.combine, (GENERAL, F2, F1, F1)
    yield loss.combine_pairs, (LINEAR, F1, F1, F1)
    yield loss.combine_pairs, (GENERAL, F1, F1, F1)
    yield memberships.settle_memberships, (F1, W1, W1, F1, F2, int64, float64)
    yield mutual_information._add_profiles, (*BLOCK, W1, W1, F1, I2, I1, F2)
    yield occupancy.n_clusters_of_sequence, (int64, float64, float64, float64)
    yield occupancy.occupied_sticks, (int64, int64, float64)
    yield packing.list_conflicts, (F2, float64, W2)
    yield packing.list_violations, (F2, float64, W2)
    yield packing.pack, (F2,)
    yield packing.improve, (F2, W1)
    yield packing.add_prices, (W2, F1, F1)
    yield packing.ascend, (W2, F1, F1, int64)
    yield packing.relaxed_solution, (F1, int64)
    yield partial.clique_bound, (B2, boolean)
    yield perturbation._average_matchings, (*BLOCK, F2, I1, I1, F1, I1, F2, F1)
    yield perturbation._held_out_votes, (*BLOCK, draws, F1, F2, F2, I1, F2)


def everything():
    """All kernels, for labels of both types."""
    for sparse, linear in ((False, True), (True, True), (False, False)):
        yield from search_over_draws(sparse, linear)
    yield from bound_of_vi()
    yield from search_over_pairs()
    for sparse in (False, True):
        yield from clusters_opened(sparse)
    for label in ("uint8", "uint16"):
        for needed in (summary_of_labels, similarities, further):
            yield from needed(label)


_prepared, _expected = set(), set()


def expect(*sets):
    """Name sets, each a function of this file and its arguments, that are to be compiled beside the next ones."""
    _expected.update(sets)


def prepare(*sets, progressbar):
    """Compile what these sets and the expected ones name, if that was not done before.

    Nothing is done where there is one processor, or Python cannot be started again: then kernels are compiled when
    they are called.
    """
    new = [one for one in (*sets, *_expected) if one not in _prepared]
    _expected.clear()
    _prepared.update(new)
    if new and n_threads() > 1 and _can_start():
        missing = not_ready(job for make, *arguments in new for job in make(*arguments))
        if len(missing) > 1:
            announce(next(iter(missing)))
            side_by_side(missing, progressbar=progressbar)


def not_ready(needed):
    """Those of these kernels, with the types wanted of each, that are neither compiled nor on disk."""
    missing = {}
    for kernel, signature in () if numba.config.DISABLE_JIT else needed:
        key = kernel._cache._index_key(signature, kernel.targetctx.codegen())
        if signature not in kernel.overloads and key not in kernel._cache._cache_file._load_index():
            missing.setdefault(kernel, []).append(signature)
    return missing


def compile_all(*, progressbar):
    """Compile all kernels that are not on disk."""
    if _can_start():
        side_by_side(not_ready(everything()), progressbar=progressbar)
    for kernel, signatures in not_ready(everything()).items():
        for signature in signatures:
            kernel.compile(signature)


def side_by_side(missing, *, progressbar):
    """Compile these kernels in as many processes as there are processors, all types of a kernel in one of them."""
    waiting = deque((kernel.py_func.__module__, kernel.py_func.__name__, wanted) for kernel, wanted in missing.items())
    ended, children = SimpleQueue(), []
    for _ in range(min(n_threads(), len(missing))):
        with suppress(OSError):
            children.append(_start())
    try:
        for child in children:
            Thread(target=_hand_out, args=(child, waiting, ended), daemon=True).start()
        at_work = len(children)
        for _ in track(range(len(missing)), "Compiling kernels", progressbar=progressbar):
            while at_work and ended.get() is None:
                at_work -= 1
    finally:
        for child in children:
            child.kill()
            with suppress(OSError):  # what it was sent and did not read
                child.communicate()


def _can_start():
    """Whether `sys.executable` is a Python, and not a program that contains one."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith("python")


def _start():
    command = [sys.executable, "-c", _CHILD.format(path=sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _hand_out(child, waiting, ended):
    """Give a child one kernel after the other, and note each in `ended`; None once there are no more, or it has ended.

    What a child does not compile is compiled by another one, or when it is called.
    """
    with suppress(OSError, ValueError, IndexError):
        while True:
            job = waiting.popleft()
            pickle.dump(job, child.stdin)
            child.stdin.flush()
            if not child.stdout.read(1):
                break
            ended.put(job)
    ended.put(None)


def serve():
    """Compile the kernels that standard input names, one after the other."""
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            module, name, signatures = pickle.load(sys.stdin.buffer)
            for signature in signatures:
                getattr(import_module(module), name).compile(signature)
            sys.stdout.write(".")
            sys.stdout.flush()
