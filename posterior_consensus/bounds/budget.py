"""How much work a bound may take: seconds on the clock, or estimated seconds, which are reproducible."""

from __future__ import annotations

import time


class OutOfBudget(Exception):
    """The next piece of work would take more than is left."""


class Deadline:
    """Seconds on the clock: the result then depends on the machine."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._deadline - time.monotonic())

    def spend(self, seconds: float) -> None:
        """Request work of about so many seconds."""
        if seconds >= self.left:
            raise OutOfBudget

    def note(self, seconds: float) -> None:
        """Nothing is to be done: the clock runs by itself."""

    def limits(self, seconds_a_piece: float) -> tuple[float, float]:
        """Seconds on the clock, and no number of pieces of work, after which a solver is to stop."""
        return self.left, float("inf")

    def part(self, share: float) -> Deadline:
        """Set aside a share of the remainder."""
        return Deadline(share * self.left)

    def extra(self, share: float) -> WorkBudget:
        """A share of the remaining seconds, subtracted from them: a time limit is a promise."""
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
        """Request work of about so many seconds."""
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
        """Set aside a share of the remainder."""
        seconds = share * self.left
        self._left -= seconds
        return WorkBudget(seconds)

    def extra(self, share: float) -> WorkBudget:
        """A share of the remainder, in addition to it."""
        return WorkBudget(share * self.left)


Budget = Deadline | WorkBudget
"""Seconds to spend on work whose time can be estimated."""
