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


def checked(lower_bound: float, expected_loss: float, rounding: float = ROUNDING) -> float:
    """Return a lower bound of the minimum expected loss, at most the expected loss of any partition known.

    Parameters
    ----------
    lower_bound, expected_loss : float
        The bound, and the expected loss of a partition.
    rounding : float
        By how much sums of the loss's parts may differ if they are near 0.

    Raises
    ------
    RuntimeError
        If the bound exceeds the expected loss by more than rounding. It is wrong then, and must not pass for a proof.
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
