"""Half the energy distance: how much farther apart two samples are than two members of one sample."""

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats


def half_energy(distances: Floats, ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_], pairs: Floats) -> Floats:
    """Mean distance between two samples, less the mean of their mean distances within, (R,) for R pairs of samples.

    Parameters
    ----------
    distances : ndarray of shape (m, m)
        Symmetric distances between m members; members may be blocks of draws, with the mean distances between them.
    ours, theirs : ndarray of shape (R, m)
        Members of either sample.
    pairs : ndarray of shape (m, m)
        Symmetric weights of the pairs; 0 for pairs that do not count, such as a member and itself.

    Returns
    -------
    ndarray of shape (R,)
        NaN for a sample without pairs.

    Notes
    -----
    Without equal members, this is the unbiased estimate of half the energy distance [1]_,

        D = E d(x, y) - (E d(x, x') + E d(y, y')) / 2.

    If minus d is a kernel, 2 D is the unbiased squared maximum mean discrepancy [2]_; if d is minus an inner product,
    2 D is the squared distance of the means.

    References
    ----------
    .. [1] Szekely and Rizzo (2013), Journal of Statistical Planning and Inference 143(8), 1249-1272.
       https://doi.org/10.1016/j.jspi.2013.03.018
    .. [2] Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), Annals of Statistics 41(5), 2263-2291.
       https://doi.org/10.1214/13-AOS1140
    """
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    of_one, of_other = ((side @ (pairs * distances), side @ pairs) for side in (one, other))

    def mean(of: tuple[Floats, Floats], side: Floats) -> Floats:
        total, number = (np.sum(part * side, axis=1) for part in of)
        return np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0)

    return mean(of_one, other) - (mean(of_one, one) + mean(of_other, other)) / 2
