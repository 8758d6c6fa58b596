"""Where the burn-in of a chain ends, by MSER-5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH = 5  # draws whose mean is one number for the rule
FEWEST_BATCHES = 10
_KEPT = 0.1  # of the batches stay at least: over fewer, the standard error is small by chance


def end_of_burn_in(trace: npt.NDArray[np.float64]) -> tuple[int, bool]:
    """Number of draws to leave out at the start of a trace (n_draws,), and whether the rule found it.

    Half of the draws where it did not: the trace goes on to change beyond, or is of fewer than 50 draws.
    """
    n_batches = trace.size // BATCH
    half = trace.size // 2
    if n_batches < FEWEST_BATCHES:
        return half, False
    # Where draws are left over it is the first that are not looked at, as those are most likely to be left out.
    spare = trace.size - n_batches * BATCH
    batches = trace[spare:].reshape(n_batches, BATCH).mean(axis=1)
    best = int(_standard_errors(batches).argmin())
    if best > n_batches // 2:
        return half, False
    return (best * BATCH + spare if best else 0), True


def _standard_errors(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Squared standard error of the mean of what is left after the first 0, 1, ... values, as if independent."""
    most_left_out = values.size - max(FEWEST_BATCHES // 2, int(np.ceil(_KEPT * values.size)))
    spread = np.ptp(values)
    if spread == 0:
        return np.zeros(1)
    centred = ((values - values.mean()) / spread)[::-1]
    left = np.arange(1.0, values.size + 1)
    squares = np.cumsum(centred**2) - np.cumsum(centred) ** 2 / left
    squares[squares < 1e-12] = 0.0  # rounding
    return (squares / left**2)[::-1][: most_left_out + 1]
