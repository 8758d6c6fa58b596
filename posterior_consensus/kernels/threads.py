"""Independent blocks of a loop on Python threads, over serial kernels that release the interpreter.

Threads of Python survive a fork and calls from many threads at once, which numba's own parallel loops do not: GNU
OpenMP ends a forked process that enters it again.
"""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from threading import Lock

import numba

_WORTH = 1 << 19  # elementary steps, about half a millisecond of them, below which a thread costs more than it saves
_BLOCKS_PER_THREAD = 12  # so that threads end at about the same time

_pool = None
_lock = Lock()


def n_threads():
    """Number of threads: that of the processors, or what the environment variable NUMBA_NUM_THREADS says."""
    return numba.config.NUMBA_NUM_THREADS


def in_blocks(kernel, first, last, *arguments, work):
    """Call `kernel(begin, end, *arguments)` for blocks that make up the range from `first` to `last`.

    The kernel writes to what belongs to its own block only, so that the blocks change nothing in the outcome. `work`
    is the number of elementary steps that one index takes.
    """
    size = last - first
    helpers = min(n_threads(), size, size * work // _WORTH) - 1
    if helpers < 1:
        kernel(first, last, *arguments)
        return
    n_blocks = min(size, _BLOCKS_PER_THREAD * (helpers + 1))
    blocks = count()

    def take_blocks():
        while (block := next(blocks)) < n_blocks:  # the interpreter's lock makes each number go to one thread
            kernel(first + size * block // n_blocks, first + size * (block + 1) // n_blocks, *arguments)

    calls = [_threads().submit(take_blocks) for _ in range(helpers)]
    try:
        take_blocks()
    finally:  # after Ctrl-C nothing may go on writing to what the caller has given up
        blocks = count(n_blocks)
        wait(calls)
    for call in calls:
        call.result()


def _threads():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(n_threads(), "posterior_consensus")
        return _pool


def _forget():
    """A forked process has none of its parent's threads."""
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget)
