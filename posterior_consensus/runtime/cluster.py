"""Independent calls on the workers of a dask cluster, where a client of one is active.

Nothing of dask is imported here: who has a client has imported it.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from threading import local
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Integers

_SUMMED = 8  # tables that one call adds
_GATHERED = 64  # results fetched at once
_PAUSE = 0.5  # seconds for a cluster to notice that a worker is lost
_ATTEMPTS = 3  # how often data are resent that were lost with all workers that held them

_here = local()
_stops: WeakValueDictionary[tuple[str, int], npt.NDArray[np.uint8]] = WeakValueDictionary()
_stopped: set[str] = set()


def client_for(n_labels: float) -> Any:
    """Return the active client if this many labels are worth sending, else None.

    The number of labels decides alone: a small posterior stays where it is although a cluster happens to be there. A
    call that runs on a worker itself uses that worker.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or n_labels < memory.LABELS_WORTH_SENDING:
        return None
    try:
        distributed.get_worker()
    except ValueError:
        pass
    else:
        return None
    try:
        client = distributed.Client.current()
    except ValueError:
        return None
    return client if client.status == "running" and not client.asynchronous else None


def is_worker_call() -> bool:
    """Whether this thread runs a call for another process; a worker runs one on each of its threads."""
    return getattr(_here, "serial", False)


class _TimeIsOver(Exception):
    """The time limit of calls."""


class _Sent:
    """Payload for workers; pickled once so that shared arrays, such as the stop flag, stay shared."""

    def __init__(self, value: Any, stop: npt.NDArray[np.uint8] | None = None) -> None:
        self.value, self.stop = value, stop


def run(function: Callable[..., Any] | str, name: str, owner: _Sent | None, arguments: _Sent | None, *own: Any) -> Any:
    """Call a function on a worker, or the method of that name of `owner`, until calls of this `name` are stopped."""
    called: Any = function if owner is None else getattr(owner.value, str(function))
    if owner is not None and owner.stop is not None:
        _stops[name, id(owner.stop)] = owner.stop
        if name in _stopped:
            owner.stop[0] = 1
    given = [one.value if isinstance(one, _Sent) else one for one in own]
    _here.serial = True
    try:
        return called(*given, *(arguments.value if arguments is not None else ()))
    finally:
        _here.serial = False


def _stop_calls(name: str) -> None:
    """On every worker: stop the calls of this name, also if they have not begun."""
    _stopped.add(name)
    for (whose, _), stop in list(_stops.items()):
        if whose == name:
            stop[0] = 1


class Workers:
    """Calls on the workers of a client. What they share is sent once, and anew where it was lost with a worker."""

    def __init__(self, client: Any, stop: npt.NDArray[np.uint8] | None = None) -> None:
        self._client, self._stop = client, stop
        self._name = f"posterior_consensus-{uuid4().hex}"
        self._sent: dict[int, tuple[Any, Any]] = {}  # by identity: an object that was sent, and its future

    def stop(self) -> None:
        """Make calls return soon, whether they run or have not begun."""
        self._client.run(_stop_calls, self._name, on_error="ignore")

    def submit(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Give the futures of these calls."""
        owner = getattr(function, "__self__", None)
        large = {id(one): one for call in calls for one in call if _n_bytes(one) >= memory.BYTES_WORTH_SENDING_ONCE}
        shared = large if owner is None else large | {id(owner): owner}
        number = Counter(id(one) for call in calls for one in call)
        number[id(owner)] = len(calls)
        kept = {key: self._sent[key] for key in shared if key in self._sent}
        for key in shared.keys() - kept.keys():
            kept[key] = shared[key], self._send(shared[key], number[key])
        self._sent = kept
        name = function if owner is None else function.__name__
        own = None if owner is None else kept[id(owner)][1]
        return [
            self._client.submit(
                run, name, self._name, own, None, *(kept[id(one)][1] if id(one) in kept else one for one in call),
                pure=False,
            )
            for call in calls
        ]  # fmt: skip

    def results(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        left: Callable[[], float | None],
        halt: Callable[[str], None],
    ) -> list[Any]:
        """Return the results of these calls; once no seconds are left or Ctrl-C is pressed, `halt` stops them."""
        waiting = dict(enumerate(self.submit(function, calls)))
        found: dict[int, Any] = {}

        def collect(left: Callable[[], float | None]) -> None:
            for _ in range(_ATTEMPTS):
                for future in self._completed(list(waiting.values()), left()):
                    number = next(number for number, one in waiting.items() if one is future)
                    try:
                        found[number] = future.result()
                        del waiting[number]
                    except CancelledError:  # its input was lost with a worker
                        continue
                if not waiting:
                    return
                self._sent.clear()
                again = self.submit(function, [calls[number] for number in waiting])
                waiting.update(zip(list(waiting), again, strict=True))
            raise RuntimeError("Workers were lost again and again with the data of a search.")

        try:
            try:
                collect(left)
            except _TimeIsOver:
                halt("seconds")
            except KeyboardInterrupt:
                halt("interrupted")
            collect(lambda: None)
        finally:
            self._client.cancel(list(waiting.values()))
        return [found[number] for number in range(len(calls))]

    def _mapped(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], shared: tuple[Any, ...]) -> Any:
        """Give the futures of these calls, each with the shared arguments behind its own, which are sent once."""
        arguments = self._send(shared, 1)
        columns = list(zip(*calls, strict=True))
        n_calls = len(calls)
        given = [[function] * n_calls, [self._name] * n_calls, [None] * n_calls, [arguments] * n_calls]
        return self._client.map(run, *given, *columns, pure=False)

    def in_order(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[Any]:
        """Give the results of these calls in their order."""
        futures = self._mapped(function, calls, shared)
        try:
            for first in range(0, len(calls), _GATHERED):
                for attempt in range(_ATTEMPTS):
                    try:
                        results = self._client.gather(futures[first : first + _GATHERED])
                        break
                    except CancelledError:  # the shared arguments were lost with the workers that had them
                        if attempt == _ATTEMPTS - 1:
                            raise
                        futures[first:] = self._mapped(function, calls[first:], shared)
                futures[first : first + _GATHERED] = [None] * len(results)
                yield from results
        finally:
            self._client.cancel([future for future in futures if future is not None])

    def sum(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], shared: tuple[Any, ...]) -> Integers:
        """Add the tables that these calls give, where they are, a few at a time."""
        for _ in range(_ATTEMPTS):
            tables = self._mapped(function, calls, shared)
            while len(tables) > 1:
                groups = (tables[first : first + _SUMMED] for first in range(0, len(tables), _SUMMED))
                tables = [self._client.submit(_added, *group, pure=False) for group in groups]
            try:
                total: Integers = tables[0].result()
                return total
            except CancelledError as error:
                lost = error
        raise lost

    def _send(self, value: Any, n_calls: int) -> Any:
        for _ in range(_ATTEMPTS):
            try:
                sent = [_Sent(value, self._stop)]
                (future,) = self._client.scatter(sent, hash=False, broadcast=n_calls > 1 and n_calls)
                return future
            except (OSError, KeyError) as error:  # a worker was lost before, or after, the scheduler chose it
                lost = error
                time.sleep(_PAUSE)
        raise lost

    def _completed(self, futures: list[Any], seconds: float | None) -> Iterator[Any]:
        completed: Iterator[Any] = sys.modules["distributed"].as_completed(futures, timeout=seconds)
        try:
            yield from completed
        except TimeoutError:
            raise _TimeIsOver from None


def _added(*tables: Integers) -> Integers:
    return sum(tables[1:], tables[0])


def _n_bytes(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_n_bytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0
