"""Number of successive draws per effective draw."""

from collections.abc import Callable

import numpy as np

_ALL_LAGS = 32  # lags beyond are taken in steps that grow by a tenth: there the correlation is smooth
_GROWTH = 1.1


def autocorrelation_time(correlation: Callable[[int], float], length: int) -> float:
    """Number of successive draws of chains per independent draw.

    Parameters
    ----------
    correlation : callable
        ``correlation(lag)`` between draws that are so many steps apart, 1 for lag 0.
    length : int
        Draws of a chain.

    Notes
    -----
    The sums of the correlations at lags 2k and 2k + 1 are taken up to the first that is not positive and are made to
    decrease; twice their sum less 1 is returned (Geyer 1992, Statistical Science 7(4), 473-483,
    https://doi.org/10.1214/ss/1177011137).
    """
    steps, sums, k = [], [], 0
    while 2 * k + 1 < length:
        steps.append(k)
        sums.append(correlation(2 * k) + correlation(2 * k + 1))
        if sums[-1] <= 0:
            break
        k = k + 1 if 2 * k < _ALL_LAGS else int(np.ceil(k * _GROWTH))
    filled = np.interp(np.arange(steps[-1] + 1), steps, np.maximum(sums, 0.0))
    return 2 * float(np.minimum.accumulate(filled).sum()) - 1
