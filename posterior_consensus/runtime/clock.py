"""Times of the steps of a summary, and the rest of a time limit."""

import time
from collections.abc import Callable
from typing import TypeVar

from posterior_consensus.runtime.arguments import check_seconds

Result = TypeVar("Result")

NO_TIME = 1e-9  # seconds of a limit that is over


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
