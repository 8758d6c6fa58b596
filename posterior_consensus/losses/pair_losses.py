"""Losses of a partition given a similarity matrix, one factory each; PAIR_LOSSES maps their names."""

from collections.abc import Callable

import numpy as np

from posterior_consensus.losses.record import Floats, PairLoss
from posterior_consensus.runtime.tolerances import ROUNDING


def vi_lower_bound() -> PairLoss:
    """Wade and Ghahramani's lower bound of the expected variation of information, in bits, from similarities alone.

    Returns
    -------
    PairLoss

    See Also
    --------
    vi : The expected VI of draws.
    as_pair_similarity : A similarity matrix without draws.

    Notes
    -----
    With S_i the cluster of item i and X the posterior similarity matrix,

        L = (1 / n) sum_i [log2 size(S_i) + log2 sum_j X_ij - 2 log2 sum_{j in S_i} X_ij],

    which is what mcclust.ext's VI.lb computes and minVI minimizes. By Jensen's inequality [1]_ the first and the last
    term are together no more than the part of the expected VI that depends on the partition. For the middle term,
    which is the same for all partitions, the inequality goes the other way, so that L itself can exceed the expected
    VI. With draws, "vi" is the expected VI itself.

    References
    ----------
    .. [1] Wade and Ghahramani (2018), Bayesian Analysis 13(2), 559-626. https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity([[1.0, 0.5], [0.5, 1.0]])
    >>> round(pc.expected_loss(pairs, [0, 0], loss="vi_lower_bound")["expected_loss"].item(), 6)
    0.415037
    """
    return PairLoss(
        name="vi_lower_bound",
        formula="mean of log2 s + log2 r - 2 log2 l",
        value=_vi_bound,
        item_terms=_vi_bound_terms,
        unit="bits",
        upper="log2 n",
        reference="https://doi.org/10.1214/17-BA1073",
    )


def pear() -> PairLoss:
    """Define one minus PEAR, the posterior expected adjusted Rand index with the draws replaced by their similarities.

    Returns
    -------
    PairLoss

    See Also
    --------
    losses.one_minus_ari : One minus the expected adjusted Rand index of draws.
    as_pair_similarity : A similarity matrix without draws.

    Notes
    -----
    With X the posterior similarity matrix and y_ij 1 if the partition co-clusters i and j, sums over the n (n - 1)
    / 2 pairs,

        L = 1 - (sum y X - sum y sum X / C(n, 2)) / ((sum y + sum X) / 2 - sum y sum X / C(n, 2)),

    and L = 0 if both are a single cluster or both are singletons [1]_. R's mcclust maximizes PEAR in maxpear. With
    draws, "omari" is one minus the expected adjusted Rand index itself.

    References
    ----------
    .. [1] Fritsch and Ickstadt (2009), Bayesian Analysis 4(2), 367-391. https://doi.org/10.1214/09-BA414

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity([[1.0, 0.9, 0.3], [0.9, 1.0, 0.3], [0.3, 0.3, 1.0]])
    >>> round(pc.expected_loss(pairs, [0, 0, 1], loss="pear")["expected_loss"].item(), 6)
    0.466667
    """
    return PairLoss(
        name="pear",
        formula="1 - (J - S T / P) / ((S + T) / 2 - S T / P), the sums J, S, T over P pairs of y X, y and X",
        value=_one_minus_pear,
        pair_threshold=_threshold_of_pear,
        upper="1.5",
        reference="https://doi.org/10.1214/09-BA414",
    )


def within_variance() -> PairLoss:
    """Define the variance of one-hot rows within clusters: the mean squared distance to the cluster mean.

    Returns
    -------
    PairLoss

    See Also
    --------
    certify : Bound its minimum by semidefinite relaxation.
    METHODS : "kcc" and "sdp" minimize it.

    Notes
    -----
    In the one-hot matrix every draw has a block of columns, and every item a one in each block. With S_i the cluster of
    item i and X the posterior similarity matrix, the mean squared distance, weighted as the draws are, is

        L = (1 / n) sum_i [1 - sum_{j in S_i} X_ij / size(S_i)],

    the mean probability that a draw separates an item from a random member of its cluster, itself included. It is the
    objective of ``method="kcc"`` with category utility [1]_, and Model 2 of [2]_ divided by the numbers of items and of
    draws. No split of a cluster raises it, down to 0 for single items. A number of clusters must therefore be given.

    References
    ----------
    .. [1] Wu, Liu, Xiong, Cao and Chen (2015), IEEE Transactions on Knowledge and Data Engineering 27(1), 155-169.
       https://doi.org/10.1109/TKDE.2014.2316512
    .. [2] Singh, Mukherjee, Peng and Xu (2007), Ensemble clustering using semidefinite programming, Advances in Neural
       Information Processing Systems 20.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> pc.expected_loss(draws, [0, 0, 1, 1], loss="within_variance")["expected_loss"].item()
    0.0625
    """
    return PairLoss(
        name="within_variance",
        formula="mean of 1 - l / s",
        value=_sum_of_squares,
        item_terms=_share_apart,
        reference="https://doi.org/10.1109/TKDE.2014.2316512",
        falls_with_clusters=True,
    )


def _sum_of_squares(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    return np.mean(_share_apart(sizes, links), axis=-1)


def _share_apart(sizes: Floats, links: Floats) -> Floats:
    return 1.0 - links / sizes


def _vi_bound(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    return np.mean(_vi_bound_terms(sizes, links) + np.log2(sums), axis=-1)


def _vi_bound_terms(sizes: Floats, links: Floats) -> Floats:
    return np.log2(sizes) - 2 * np.log2(links)


def _threshold_of_pear(value: float, mean_similarity: float) -> float:
    """Return tau such that sum y (tau - X) falls where 1 - PEAR falls from `value`: PEAR is a ratio of linear forms."""
    return mean_similarity + (1 - value) * (0.5 - mean_similarity)


def _one_minus_pear(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    n = sizes.shape[-1]
    of_pairs = max(n * (n - 1) / 2, 1.0)
    together, joint, similar = ((np.sum(x, axis=-1) - n) / 2 for x in (sizes, links, sums))
    by_chance = together * similar / of_pairs
    best = (together + similar) / 2 - by_chance
    is_trivial = best <= ROUNDING * of_pairs
    return np.where(is_trivial, 0.0, 1.0 - (joint - by_chance) / np.where(is_trivial, 1.0, best))


PAIR_LOSSES: dict[str, Callable[..., PairLoss]] = {
    "vi_lower_bound": vi_lower_bound,
    "pear": pear,
    "within_variance": within_variance,
}
"""Losses of a partition given a similarity matrix, by name."""
