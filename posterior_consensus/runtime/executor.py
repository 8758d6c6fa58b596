"""Independent work on the threads of one pool: blocks of loops, and calls that a time limit or Ctrl-C ends.

If a dask client is active, large enough calls go to its workers.

Threads of Python survive a fork and calls from many threads at once, which numba's own parallel loops do not: GNU
OpenMP ends a forked process that enters it again. What they call are serial kernels that release the interpreter.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Event, Lock, current_thread
from typing import Any, NamedTuple, Self, TypeVar

import numba
import numpy as np

from posterior_consensus.runtime import cluster
from posterior_consensus.runtime.arguments import check_seconds

Result = TypeVar("Result")

NO_TIME = 1e-9  # seconds of a limit that is over
_WORTH = 1 << 19  # elementary steps, about half a millisecond of them, below which a thread costs more than it saves
_BLOCKS_PER_THREAD = 12  # so that threads end at about the same time
_AHEAD = 2  # calls of each thread whose results may wait to be taken
_LOOK = 0.1  # seconds after which Windows, where Ctrl-C interrupts no wait, sees that it was pressed
_NAME = "posterior_consensus"

_pool: ThreadPoolExecutor | None = None
_limited: dict[str, _Limit] = {}  # by the library's path
_lock = Lock()


def n_threads() -> int:
    """Number of threads: the number of processors, or the environment variable NUMBA_NUM_THREADS.

    A call on a worker of a cluster has one: the worker runs several.
    """
    number: int = 1 if cluster.is_worker_call() else numba.config.NUMBA_NUM_THREADS
    return number


def in_blocks(kernel: Callable[..., None], first: int, last: int, *arguments: Any, work: int) -> None:
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
    blocks = _Numbers(n_blocks)

    def take_blocks() -> None:
        for block in blocks:
            kernel(first + size * block // n_blocks, first + size * (block + 1) // n_blocks, *arguments)

    helping = [_threads().submit(take_blocks) for _ in range(helpers)]
    try:
        take_blocks()
    finally:  # after Ctrl-C no thread may still write to arrays that the caller has given up
        blocks.end()
        # Those that have not begun are not waited for: all threads may be busy with calls that wait here too.
        begun = [helper for helper in helping if not helper.cancel()]
        wait(begun)
        arguments = ()  # calls that have not begun stay in the queue and would keep the arrays
    for helper in begun:
        helper.result()


def in_order(function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """Give the results of these calls in their order; threads work a few calls ahead.

    A call from one of the threads is served by that thread alone: all others may be waiting in the same way.
    """
    if n_threads() == 1 or _is_one_of_the_threads():
        yield from (function(*call) for call in calls)
        return
    ahead: deque[Future[Result]] = deque()
    try:
        for call in calls:
            ahead.append(_threads().submit(function, *call))
            if len(ahead) >= _AHEAD * n_threads():
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:  # after Ctrl-C or an error no thread may still read arrays that the caller has given up
        wait([future for future in ahead if not future.cancel()])


class _Numbers:
    """Numbers from 0, each for one of the threads that iterate at once, also without the interpreter's lock."""

    def __init__(self, number: int) -> None:
        self._next, self._number, self._lock = 0, number, Lock()

    def __iter__(self) -> _Numbers:
        return self

    def __next__(self) -> int:
        with self._lock:
            if self._next >= self._number:
                raise StopIteration
            self._next += 1
            return self._next - 1

    def end(self) -> None:
        """Give no more numbers."""
        with self._lock:
            self._number = 0


class Executor:
    """Calls functions, which must return soon after `stop` holds 1.

    What is called is best a function of a module or a method of an object that can be pickled, with arguments that
    can: nothing but `stop` asks for memory that the caller shares.

    Attributes
    ----------
    stop : uint8 array of shape (1,)
        What the functions are to look at.
    stopped : str
        "seconds" or "interrupted" once the time is over or Ctrl-C was pressed, else empty.
    """

    def __init__(self, n_jobs: int, seconds: float | None, n_labels: int = 0) -> None:
        """Use a number of threads: -1 for one per processor, 0 for the calling thread alone.

        With -1 and calls that read enough labels, `n_labels`, the workers of an active dask client take them.
        """
        self.stop = np.zeros(1, np.uint8)
        self.stopped = ""
        self._n_threads = n_threads() if n_jobs == -1 else n_jobs
        self._deadline = np.inf if seconds is None else time.monotonic() + seconds
        client = cluster.client_for(n_labels) if n_jobs == -1 else None
        self._workers = None if client is None else cluster.Workers(client, self.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop[0] = 1  # for work that an error has left behind
        self._workers = None  # and with it what the workers were sent

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_workers": None}

    def results(self, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
        """Return what the function gives for each of these arguments.

        A call from one of the threads is served by that thread alone, as by :func:`in_order`.
        """
        if self._workers is not None and len(calls) > 1:
            return self._workers.results(function, calls, self._left, self.halt)
        if not self._n_threads or not calls or _is_one_of_the_threads():
            return [self._result(function, call) for call in calls]
        found: dict[int, Result] = {}
        numbers = _Numbers(len(calls))

        def take_calls() -> None:
            for number in numbers:
                found[number] = function(*calls[number])

        helpers = [_threads().submit(take_calls) for _ in range(min(self._n_threads, len(calls)))]
        try:
            self._wait(helpers)
        except KeyboardInterrupt:
            self.halt("interrupted")
        for helper in helpers:
            helper.result()
        return [found[number] for number in range(len(calls))]

    def _wait(self, helpers: Sequence[Future[None]]) -> None:
        """Wait for all, or for an error, until the time is over."""
        while True:
            left = self._left()
            seconds = _LOOK if left is None else min(left, _LOOK)
            done, missing = wait(helpers, seconds, return_when=FIRST_EXCEPTION)
            if not missing:
                return
            if left == 0.0 or any(helper.exception() for helper in done):
                self.halt("seconds")
                return

    def _result(self, function: Callable[..., Result], call: tuple[Any, ...]) -> Result:
        self.is_over()
        try:
            return function(*call)
        except KeyboardInterrupt:
            self.halt("interrupted")
            return function(*call)

    def _left(self) -> float | None:
        return None if np.isinf(self._deadline) else max(0.0, self._deadline - time.monotonic())

    def is_over(self) -> bool:
        """Whether work of the calling thread is to end, as the time is over or Ctrl-C was pressed."""
        if time.monotonic() > self._deadline:
            self.halt("seconds")
        return bool(self.stop[0])

    def halt(self, reason: str) -> None:
        """Stop, for the first of such reasons."""
        self.stopped = self.stopped or reason
        self.stop[0] = 1
        if self._workers is not None:
            self._workers.stop()


class Clock:
    """Calls functions, and records their times and the names of steps that a time limit cut or left out."""

    def __init__(self, seconds: float | None) -> None:
        check_seconds(seconds)
        self.seconds: dict[str, float] = {}
        self.cut: list[str] = []
        self._ends = None if seconds is None else time.monotonic() + seconds

    def part(self, share: float) -> float | None:
        """A share of the remaining seconds; None without a limit."""
        return None if self._ends is None else max(share * (self._ends - time.monotonic()), NO_TIME)

    def end(self) -> None:
        """Leave no time for later steps, as after Ctrl-C."""
        self._ends = -np.inf

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._ends is not None and time.monotonic() >= self._ends

    def __call__(self, step: str, function: Callable[..., Result], *arguments: object, **options: object) -> Result:
        """Call a step that is never left out."""
        began = time.monotonic()
        result = function(*arguments, **options)
        self.seconds[step] = time.monotonic() - began
        return result

    def within_limit(
        self, step: str, function: Callable[..., Result], *arguments: object, **options: object
    ) -> Result | None:
        """Call a step if there is time left; note it where it was left out, or ended when the time did."""
        if self.is_over:
            self.cut.append(step)
            return None
        result = self(step, function, *arguments, **options)
        self.cut += [step] * self.is_over
        return result


class _Limit(NamedTuple):
    """A library limited to one thread by overlapping calls: their number, and its number of threads before."""

    library: Any
    n_calls: int
    n_threads: int


@contextmanager
def one_blas_thread(*, with_sklearn: bool = True) -> Iterator[None]:
    """Let NumPy and scikit-learn compute on one thread, so that sums do not depend on the number of threads.

    BLAS has one number of threads for the process. It is restored when the last of overlapping calls ends. Without
    scikit-learn, which takes a second to import, only BLAS in the libraries loaded so far is limited.
    """
    pools = _thread_pools() if with_sklearn else _loaded_blas()
    libraries = pools.select(user_api="blas").lib_controllers
    with pools.select(user_api="openmp").limit(limits=1):  # which has a number for each thread that calls it
        with _lock:
            for library in libraries:
                limit = _limited.get(library.filepath, _Limit(library, 0, library.get_num_threads()))
                _limited[library.filepath] = limit._replace(n_calls=limit.n_calls + 1)
                _set_threads(library, 1)
        try:
            yield
        finally:
            with _lock:
                for library in libraries:
                    _end_call(library.filepath)


def _end_call(path: str) -> None:
    limit = _limited.pop(path)
    if limit.n_calls > 1:
        _limited[path] = limit._replace(n_calls=limit.n_calls - 1)
    else:
        _set_threads(limit.library, limit.n_threads)


def _set_threads(library: Any, number: int) -> None:
    """Set a number of threads also if threadpoolctl has given the library to another thread of Python."""
    release = getattr(library, "clear_controlling_thread", lambda force: None)  # newer versions have it for OpenBLAS
    release(force=True)
    library.set_num_threads(number)
    release(force=True)


@cache  # looking through the loaded libraries takes longer than a small k-means
def _thread_pools() -> Any:
    """The threads of the libraries that compute for NumPy and scikit-learn."""
    import sklearn.cluster  # noqa: F401  brings the library whose threads are to be limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _loaded_blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _is_one_of_the_threads() -> bool:
    return current_thread().name.startswith(_NAME)


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 (one pool per process)
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(n_threads(), _NAME)
            ready = Event()  # a thread that starts while others are busy waits for milliseconds
            for _ in range(n_threads()):
                _pool.submit(ready.wait)
            ready.set()
        return _pool


def _forget() -> None:
    """A forked process has none of its parent's threads, nor the calls that these were in."""
    global _pool, _lock
    _pool, _lock = None, Lock()
    for limit in _limited.values():
        _set_threads(limit.library, limit.n_threads)
    _limited.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget)
