"""A progress bar that appears only where there is something to wait for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from importlib.util import find_spec
from threading import Lock
from typing import TypeVar

Step = TypeVar("Step")

_PATIENCE = 1.0  # seconds before a bar is worth drawing

_screen = Lock()  # rich shows one bar at a time


def track(
    steps: Iterable[Step], description: str, *, progressbar: bool, n_bytes: Sequence[int] | None = None
) -> Iterator[Step]:
    """Yield the steps, showing rich's progress bar once they have taken a second, unless another one is shown.

    Parameters
    ----------
    steps : iterable
    description : str
    progressbar : bool
        Whether to show anything.
    n_bytes : sequence of int, optional
        What each step reads or writes; the bar then counts bytes.
    """
    if not progressbar or not _can_be_seen():
        yield from steps
        return
    total = sum(n_bytes) if n_bytes is not None else len(steps) if isinstance(steps, Sized) else None
    began, done = time.monotonic(), 0
    bar = None
    try:
        for number, step in enumerate(steps):
            if bar is None and number and time.monotonic() - began > _PATIENCE and _screen.acquire(blocking=False):
                from rich import progress as shown

                bar = shown.Progress(
                    shown.TextColumn("{task.description}"),
                    shown.BarColumn(),
                    shown.MofNCompleteColumn() if n_bytes is None else shown.DownloadColumn(),
                    shown.TimeRemainingColumn(),
                    transient=True,
                )
                bar.start()
                task = bar.add_task(description, total=total)
            if bar is not None:
                bar.update(task, completed=done)
            yield step
            done += 1 if n_bytes is None else n_bytes[number]
    finally:
        if bar is not None:
            bar.stop()
            _screen.release()


def _can_be_seen() -> bool:
    """Whether output goes to a terminal, or to a notebook with the widgets that rich draws on."""
    from rich.console import Console

    console = Console()
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
