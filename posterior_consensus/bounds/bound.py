"""Result of a bounding method, and its budget of work: seconds on the clock, or estimated seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.results.display import at_least, at_most, with_unit
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.tolerances import ROUNDING, SAME


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound of the minimum expected loss."""

    value: float  # no partition's expected loss is below it; in the loss's unit
    method: str  # how it was found, in words
    partition: Labels | None = None  # (n_items,): the partition of minimum expected loss that was found while bounding
    info: Info | None = None  # record of the work
    left_out: str = ""  # what was not computed and why, as a sentence; empty where nothing was left out


def checked(lower_bound: float, expected_loss: float, rounding: float = ROUNDING) -> float:
    """Return a lower bound of the minimum expected loss, at most the expected loss of any partition known.

    `lower_bound` and `expected_loss`: the bound, and the expected loss of a partition. `rounding`: by how much sums of
    the loss's parts may differ if they are near 0. Raises RuntimeError if the bound exceeds the expected loss by more
    than rounding. It is wrong then, and must not pass for a proof.
    """
    if lower_bound - expected_loss > SAME * abs(expected_loss) + rounding:
        raise RuntimeError(
            f"The lower bound of the minimum expected loss must not exceed {expected_loss:.12g}, the expected loss of "
            f"a partition; got {lower_bound:.12g}. This is a defect of the bounding method, not of the draws: please "
            "report it with the call and, if you can, the draws."
        )
    return min(lower_bound, expected_loss)


def relative_gap(expected_loss: float, lower_bound: float) -> float:
    """(expected loss - lower bound) / expected loss; 0 where they differ by rounding only."""
    # No loss is negative, but a bound may be by rounding.
    difference = expected_loss - checked(max(lower_bound, 0.0), expected_loss)
    return difference / expected_loss if difference > ROUNDING * expected_loss else 0.0


def status(gap: float) -> str:
    """Return "optimal" where a relative gap is negligible, else "bounded"."""
    return "optimal" if gap < SAME else "bounded"


def gap_in_words(gap: float, expected: str, among: str = "") -> str:
    """A relative gap of a loss that is `expected` over draws, or a mean over runs, `among` which partitions."""
    if status(gap) == "optimal":
        return f"none, proven optimal{among}: loss and bound are equal but for rounding"
    return f"at most {_percent(gap)} of the {expected} loss{among}"


def minimum_in_words(gap: float, lower_bound: float, unit: str) -> str:
    """A lower bound, and in brackets how far it is below the loss; empty if it is not above 0."""
    if lower_bound <= 0:
        return ""
    least = with_unit(at_least(lower_bound, ".3g"), unit)
    return f"at least {least} ({_percent(gap)} below)"


def _percent(gap: float) -> str:
    """A relative gap rounded up, to two digits and at most two decimals."""
    return at_most(gap, ".2%" if gap < 0.01 else ".1%" if gap < 0.1 else ".0%")


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

    @contextmanager
    def stopping(self) -> Iterator[npt.NDArray[np.uint8]]:
        """An array (1,) for kernels to look at, which another thread sets to 1 when the time is over."""
        stop = np.zeros(1, np.uint8)
        timer = Timer(self.left, stop.fill, (1,))
        timer.daemon = True
        timer.start()
        try:
            yield stop
        finally:
            timer.cancel()

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

    @contextmanager
    def stopping(self) -> Iterator[npt.NDArray[np.uint8]]:
        """An array (1,) for kernels to look at, which stays 0: work that was begun is done."""
        yield np.zeros(1, np.uint8)

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
