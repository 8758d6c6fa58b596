"""How much work a bound may take: seconds on the clock, or seconds as they are foreseen, which repeat exactly."""

from __future__ import annotations

import time


class OutOfBudget(Exception):
    """The next piece of work would take more than is left."""


class Deadline:
    """Seconds on the clock."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def spend(self, seconds: float) -> None:
        """Ask for work that will take about so many seconds."""
        if seconds > self.unforeseen():
            raise OutOfBudget

    def unforeseen(self) -> float:
        """Seconds that work whose length cannot be foreseen may take."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise OutOfBudget
        return left


class Foreseen:
    """Seconds as they are foreseen: the same work for the same problem, on whatever machine and however busy."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def spend(self, seconds: float) -> None:
        """Ask for work that will take about so many seconds."""
        if seconds > self._left:
            raise OutOfBudget
        self._left -= seconds

    def unforeseen(self) -> float:
        """There are none for work whose length cannot be foreseen."""
        raise OutOfBudget
