"""Compiled work on several threads, ended by a time limit or an interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any, TypeVar

import numpy as np

from posterior_consensus.kernels.threads import n_threads as processors

Result = TypeVar("Result")


class Workers:
    """Threads that call functions and return soon after `stop` holds 1, as the functions promise.

    Attributes
    ----------
    stop : uint8 array of shape (1,)
        What the functions are to look at.
    stopped : str
        "seconds" or "interrupted" once the time is over or Ctrl-C was pressed, else empty.
    """

    def __init__(self, n_threads: int, seconds: float | None) -> None:
        """Use so many threads, -1 for one for each processor, or none but the calling one if it is 0."""
        if n_threads == -1:
            n_threads = processors()
        self.stop = np.zeros(1, np.uint8)
        self.stopped = ""
        self._deadline = np.inf if seconds is None else time.monotonic() + seconds
        self._pool = ThreadPoolExecutor(n_threads) if n_threads else None
        if self._pool is not None:  # a thread that starts beside busy ones waits its turn for milliseconds
            ready = Event()
            for _ in range(n_threads):
                self._pool.submit(ready.wait)
            ready.set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop[0] = 1  # for work that an error has left behind
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def results(self, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
        """Return what the function gives for each of these arguments."""
        if self._pool is None or not calls:
            return [self._result(function, call) for call in calls]
        futures = [self._pool.submit(function, *call) for call in calls]
        try:
            left = None if np.isinf(self._deadline) else max(0.0, self._deadline - time.monotonic())
            if wait(futures, left).not_done:
                self._halt("seconds")
        except KeyboardInterrupt:
            self._halt("interrupted")
        return [future.result() for future in futures]

    def _result(self, function: Callable[..., Result], call: tuple[Any, ...]) -> Result:
        if time.monotonic() > self._deadline:
            self._halt("seconds")
        try:
            return function(*call)
        except KeyboardInterrupt:
            self._halt("interrupted")
            return function(*call)

    def _halt(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        self.stop[0] = 1
