"""A progress bar that appears only where there is something to wait for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from importlib.util import find_spec
from typing import TypeVar

Step = TypeVar("Step")

_PATIENCE = 1.0  # seconds before a bar is worth drawing


def track(steps: Iterable[Step], description: str, *, progressbar: bool) -> Iterator[Step]:
    """Yield the steps, showing rich's progress bar once they have taken a second.

    Parameters
    ----------
    steps : iterable
    description : str
    progressbar : bool
        Whether to show anything.
    """
    if not progressbar or not _can_be_seen():
        yield from steps
        return
    total = len(steps) if isinstance(steps, Sized) else None
    began = time.monotonic()
    bar = None
    try:
        for done, step in enumerate(steps):
            if bar is None and done and time.monotonic() - began > _PATIENCE:
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

                bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    transient=True,
                )
                bar.start()
                task = bar.add_task(description, total=total)
            if bar is not None:
                bar.update(task, completed=done)
            yield step
    finally:
        if bar is not None:
            bar.stop()


def _can_be_seen() -> bool:
    """Whether output goes to a terminal, or to a notebook with the widgets that rich draws on."""
    from rich.console import Console

    console = Console()
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
