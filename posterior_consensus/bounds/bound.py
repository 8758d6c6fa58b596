"""What a bounding method returns."""

from dataclasses import dataclass

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.tolerances import ROUNDING, SAME


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound of the minimum expected loss.

    Attributes
    ----------
    value : float
        No partition's expected loss is below it; in the loss's unit.
    method : str
        How it was found, in words.
    partition : ndarray of shape (n_items,), dtype int32, or None
        The partition of minimum expected loss that was found while bounding.
    info : Info or None
        Record of the work.
    left_out : str
        What was not computed and why, as a sentence; empty where nothing was left out.
    """

    value: float
    method: str
    partition: Labels | None = None
    info: Info | None = None
    left_out: str = ""


def relative_gap(expected_loss: float, lower_bound: float) -> float:
    """(expected loss - lower bound) / expected loss; 0 where they differ by rounding only."""
    difference = expected_loss - max(lower_bound, 0.0)  # no loss is negative, but a bound may be by rounding
    return difference / expected_loss if difference > ROUNDING * expected_loss else 0.0


def status(gap: float) -> str:
    """Return "optimal" where a relative gap is negligible, else "bounded"."""
    return "optimal" if gap < SAME else "bounded"
