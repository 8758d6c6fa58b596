"""How much work a search may do."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from posterior_consensus.runtime.arguments import check_count, check_seconds

_TINY = 1e-9  # seconds


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work a search may do; the options are those of the method "greedy"."""

    n_starts: int | None = None
    n_agree: int = 3
    n_perturbations: int | None = None
    seconds: float | None = None
    n_jobs: int = -1
    # Whether a search for a number of clusters also starts from the best partition of any number.
    from_unconstrained: bool = True
    progressbar: bool = False

    def __post_init__(self) -> None:
        """Check the options of a user."""
        if self.n_starts is not None:
            check_count("n_starts", self.n_starts)
        check_count("n_agree", self.n_agree)
        if self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs)
        check_seconds(self.seconds)

    def after(self, began: float) -> Effort:
        """The same effort in the time that is left of a search that began then."""
        if self.seconds is None:
            return self
        return replace(self, seconds=max(began + self.seconds - time.monotonic(), _TINY))


USUAL = Effort()
"""The effort of a search that nobody limits."""
