"""Where the burn-in of a chain ends, by MSER-5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEWEST_DRAWS = 100
_BATCH = 5  # draws whose mean is one number for the rule
_KEPT, _FEWEST_KEPT = 0.1, 10  # least share and number of batches to keep: of fewer, the error can be small by chance


def end_of_burn_in(trace: npt.NDArray[np.float64]) -> tuple[int, bool]:
    """Number of draws to leave out at the start of a trace (n_draws,), and whether the rule found it.

    If it did not, half of the draws: the trace still changes in its second half, or has fewer than 100 draws.
    """
    half = trace.size // 2
    if trace.size < FEWEST_DRAWS:
        return half, False
    n_batches = trace.size // _BATCH
    # Draws that fill no batch are the first ones, which are the likeliest to be left out.
    spare = trace.size - n_batches * _BATCH
    batches = trace[spare:].reshape(n_batches, _BATCH).mean(axis=1)
    best = int(_squared_errors(batches).argmin())
    if best >= n_batches // 2:
        return half, False
    return (best * _BATCH + spare if best else 0), True


def _squared_errors(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Squared standard error of the mean without the first 0, 1, ... values, as if these were independent."""
    spread = np.ptp(values)
    if spread == 0:
        return np.zeros(1)
    backwards = ((values - values.mean()) / spread)[::-1]
    left = np.arange(1.0, values.size + 1)
    squares = np.cumsum(backwards**2) - np.cumsum(backwards) ** 2 / left
    squares[squares < 1e-12] = 0.0  # rounding
    fewest = max(_FEWEST_KEPT, int(np.ceil(_KEPT * values.size)))
    return (squares / left**2)[::-1][: values.size - fewest + 1]
