"""Progress bars of long calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Any, TypeVar

Element = TypeVar("Element")

_PATIENCE = 1.0  # seconds before a bar is worth drawing

_screen = Lock()  # rich shows one bar at a time


def track(
    steps: Iterable[Element], description: str, *, progressbar: bool, n_bytes: Sequence[int] | None = None
) -> Iterator[Element]:
    """Yield the steps, showing rich's progress bar once a second has passed, unless another one is shown.

    `progressbar`: whether to show anything. `n_bytes`: what each step reads or writes; the bar then counts bytes.
    """
    total = sum(n_bytes) if n_bytes is not None else len(steps) if isinstance(steps, Sized) else None
    done = 0
    with _Bar(description, total, n_bytes is not None).shown(progressbar) as bar:
        for number, step in enumerate(steps):
            yield step
            done += 1 if n_bytes is None else n_bytes[number]
            bar.advance_to(done)


@contextmanager
def counting(description: str, total: int, *, progressbar: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar once a second has passed; give the function that says how much of `total` is done."""
    with _Bar(description, total, False).shown(progressbar) as bar:
        yield bar.advance_to


@contextmanager
def waiting(description: str, *, progressbar: bool) -> Iterator[None]:
    """Show a bar without an end once a second has passed, for work whose parts cannot be counted."""
    with _Bar(description, None, False).shown(progressbar):
        yield


class _Bar:
    """A bar that a timer updates, so that one long step does not hide it."""

    def __init__(self, description: str, total: int | None, of_bytes: bool) -> None:
        self._description, self._total, self._of_bytes = description, total, of_bytes
        self._done = 0
        self._ended = False
        self._lock = Lock()  # between the timer and the steps
        self._bar: Any = None

    @contextmanager
    def shown(self, progressbar: bool) -> Iterator[_Bar]:
        """Draw it after a second, where it can be seen, until the block ends."""
        if not progressbar or not _can_be_seen():
            yield self
            return
        timer = Timer(_PATIENCE, self._draw)
        timer.daemon = True
        timer.start()
        try:
            yield self
        finally:
            timer.cancel()
            with self._lock:
                self._ended = True
                if self._bar is not None:
                    self._bar.stop()
                    _screen.release()

    def advance_to(self, done: int) -> None:
        """Show that so much is done."""
        with self._lock:
            self._done = done
            if self._bar is not None:
                self._bar.update(self._task, completed=done)

    def _draw(self) -> None:
        from rich.console import Console

        with self._lock:
            if self._ended or not _screen.acquire(blocking=False):
                return
            self._bar = _InNotebook() if Console().is_jupyter else _in_terminal(self._of_bytes)
            self._task = self._bar.add_task(self._description, total=self._total, completed=self._done)
            self._bar.start()


def _in_terminal(of_bytes: bool) -> Any:
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn() if of_bytes else progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        transient=True,
    )


class _InNotebook:
    """A line of text in place of rich's bar, whose widget would stay in the notebook's file as an empty output."""

    def add_task(self, description: str, *, total: int | None, completed: int) -> int:
        """Take the numbers of the only task; return its number, 0."""
        self._description, self._total = description, total
        self._text = self._after(completed)
        return 0

    def start(self) -> None:
        """Show the line."""
        from IPython.display import display

        self._shown = display({"text/plain": self._text}, raw=True, display_id=True)

    def update(self, _task: int, *, completed: int) -> None:
        """Show another percentage; the front end is asked no more often."""
        text = self._after(completed)
        if text != self._text:
            self._text = text
            self._shown.update({"text/plain": text}, raw=True)

    def stop(self) -> None:
        """Leave nothing to see."""
        self._shown.update({"text/plain": ""}, raw=True)

    def _after(self, completed: int) -> str:
        return f"{self._description}: {completed / self._total:.0%}" if self._total else f"{self._description} ..."


def _can_be_seen() -> bool:
    """Whether output goes to a terminal or to a notebook."""
    from rich.console import Console

    console = Console()
    return bool(console.is_terminal or console.is_jupyter)
