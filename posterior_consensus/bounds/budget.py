"""How much work a bound may take: seconds on the clock, or estimated seconds, which are reproducible."""

from __future__ import annotations

import time


class OutOfBudget(Exception):
    """The next piece of work would take more than is left."""


class Deadline:
    """Seconds on the clock: what is found then depends on the machine."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._deadline - time.monotonic())

    def spend(self, seconds: float) -> None:
        """Ask for work that will take about so many seconds."""
        if seconds >= self.left:
            raise OutOfBudget

    def note(self, seconds: float) -> None:
        """Nothing is to be done: the clock runs by itself."""

    def limits(self, seconds_a_piece: float) -> tuple[float, float]:
        """Seconds on the clock, and no number of pieces of work, after which a solver is to stop."""
        return self.left, float("inf")

    def part(self, share: float) -> Deadline:
        """Set a share of what is left aside."""
        return Deadline(share * self.left)

    def extra(self, share: float) -> WorkBudget:
        """As many seconds as the share of what is left, which go from it: a time limit is a promise."""
        seconds = share * self.left
        self._deadline -= seconds
        return WorkBudget(seconds)


class WorkBudget:
    """Estimated seconds: the same work for the same problem, on any machine and however busy it is."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._left)

    def spend(self, seconds: float) -> None:
        """Ask for work that will take about so many seconds."""
        if seconds > self._left:
            raise OutOfBudget
        self._left -= seconds

    def note(self, seconds: float) -> None:
        """Count work that was done in any case."""
        self._left -= seconds

    def limits(self, seconds_a_piece: float) -> tuple[float, float]:
        """No time on the clock, and the pieces of work after which a solver is to stop."""
        return float("inf"), self.left / seconds_a_piece

    def part(self, share: float) -> WorkBudget:
        """Set a share of what is left aside."""
        seconds = share * self.left
        self._left -= seconds
        return WorkBudget(seconds)

    def extra(self, share: float) -> WorkBudget:
        """As much as a share of what is left, beyond it."""
        return WorkBudget(share * self.left)


Budget = Deadline | WorkBudget
"""Seconds to spend on work whose time can be estimated."""
