"""Errors, exponents and bounds under the random perturbation model.

There are K clusters and N draws. In each draw an item takes, with probability p, one of the K clusters at random. A
wrong cluster then has probability q = p/K, and the true cluster 1 - p + q.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from posterior_consensus.runtime.arguments import as_numbers, check_above, check_between, check_count


class SimilarityMoments(NamedTuple):
    """Mean and standard deviation of one entry of the similarity matrix; made by :func:`similarity_moments`."""

    within: float
    """Mean for two items of the same true cluster."""
    between: float
    """Mean for two items of different clusters."""
    within_sd: float
    """Standard deviation for two items of the same true cluster."""
    between_sd: float
    """Standard deviation for two items of different clusters."""


def chernoff_information(n_clusters: int, noise: npt.ArrayLike) -> Any:
    """Compute the Chernoff information, the rate at which the error of the best test between two clusters falls.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float or array_like
        Noise p, between 0 and 1.

    Returns
    -------
    float or ndarray of the shape of `noise`
        I in nats per draw; infinite for p = 0 and 0 for p = 1.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    draws_needed : The number of draws for a given error.
    bayes_error : The exact error of the best test.

    Notes
    -----
    The information is I = -log(2 sqrt((1 - p + q) q) + (K - 2) q) with q = p/K. The error of N draws is at most
    e^{-NI}, and -log(error)/N tends to I. This is equation 11 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical
    guarantees for consensus clustering"; the square root follows from its proof.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import chernoff_information
    >>> print(round(chernoff_information(6, 0.45), 4))
    0.3106
    """
    n_clusters = _classes_of(n_clusters)
    values = as_numbers("noise", noise)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"`noise` must lie between 0 and 1; got {noise!r}.")
    q = values / n_clusters
    with np.errstate(divide="ignore"):
        information = np.abs(np.log(2 * np.sqrt((1 - values + q) * q) + (n_clusters - 2) * q))  # never above log 1
    return float(information) if values.ndim == 0 else information


def bayes_error(n_clusters: int, noise: float, *, n_draws: int) -> float:
    """Compute the exact error of the best test between two equally probable clusters of an item with known names.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float
        Noise p, between 0 and 1.
    n_draws : int
        Number N of draws.

    Returns
    -------
    float
        P_N, a probability of at most 0.5.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    oracle_error : The error for all K clusters.
    chernoff_information : The exponent of this error.

    Notes
    -----
    The test takes the cluster that more draws name, and either one in a tie. Of the N draws, M ~ Bin(N, r) name one of
    the two, with r = 1 - p + 2q. Of these, B ~ Bin(M, q/r) name the wrong one. Hence
    P_N = E[P(B > M/2) + P(B = M/2)/2]. Figure 1 of Zhou, Dudeja and Amini (ICLR 2023) shows -log(P_N)/N.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import bayes_error
    >>> print(f"{bayes_error(6, 0.45, n_draws=20):.2g}")
    0.00022
    """
    n_clusters, noise, n_draws = _classes_of(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    q = noise / n_clusters
    either = 1.0 - noise + 2 * q
    named = np.arange(n_draws + 1)
    wrong = stats.binom(named, q / either)
    error = (wrong.sf(named // 2) + wrong.sf((named + 1) // 2 - 1)) / 2
    return float(stats.binom.pmf(named, n_draws, min(either, 1.0)) @ error)


def oracle_error(n_clusters: int, noise: float, *, n_draws: int) -> float:
    """Compute the expected share of items that the oracle mislabels: a plurality vote with known names of clusters.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float
        Noise p, between 0 and 1.
    n_draws : int
        Number N of draws.

    Returns
    -------
    float
        Probability of an error for one item, with ties broken at random; equal for all true clusters.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    random_perturbation : Draws of this model.
    draws_needed : The number of draws for a given error.

    Notes
    -----
    A ~ Bin(N, 1 - p + q) draws name the true cluster. The other draws name each of the K - 1 wrong clusters with equal
    probability. Given their sum, the counts of the wrong clusters are independent Poisson variables. The probability
    that t of them equal A and the others are smaller is thus a coefficient of a product of K - 1 polynomials. The error
    is at most (K - 1) e^{-NI}, see :func:`chernoff_information`. If clusters are equally probable, no method has a
    smaller expected error. For two clusters it equals :func:`bayes_error`.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import oracle_error
    >>> print(f"{oracle_error(6, 0.65, n_draws=20):.3f}")
    0.043
    """
    n_clusters, noise, n_draws = _classes_of(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    votes = stats.binom.pmf(np.arange(n_draws + 1), n_draws, 1.0 - noise + noise / n_clusters)
    lost = np.array([_lost(a, n_draws - a, n_clusters - 1) for a in range(n_draws + 1)])
    return float(votes @ lost)


def _lost(own: int, others: int, n_wrong: int) -> float:
    """Probability that `own` votes lose to `others` votes spread at random over `n_wrong` clusters.

    It is a sum of positive terms. One minus the probability to win would lose all digits if that is nearly one.
    """
    if own == 0:
        return 1.0
    if others < own:
        return 0.0
    shares = stats.poisson.pmf(np.arange(others + 1), others / n_wrong)
    below, tie = shares[:own], shares[own]
    above = np.where(np.arange(others + 1) > own, shares, 0.0)
    none_above, some_above, powers = np.ones(1), np.zeros(1), [np.ones(1)]  # by votes for the clusters so far
    for _ in range(n_wrong):
        more = np.convolve(none_above, above)[: others + 1]
        some_above = np.convolve(some_above, shares)[: others + 1]
        some_above = np.append(some_above, np.zeros(others + 1 - some_above.size))
        some_above[: more.size] += more
        none_above = np.convolve(none_above, shares[: own + 1])[: others + 1]
        powers.append(np.convolve(powers[-1], below)[: others + 1])
    total = some_above[others]
    for n_ties in range(1, n_wrong + 1):
        rest, power = others - n_ties * own, powers[n_wrong - n_ties]
        if 0 <= rest < power.size:
            total += math.comb(n_wrong, n_ties) * tie**n_ties * power[rest] * n_ties / (n_ties + 1)
    return float(total / stats.poisson.pmf(others, others))


def draws_needed(n_clusters: int, noise: float, *, error: float) -> int:
    """Compute the number of independent draws that suffices for a given error of the oracle.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float
        Noise p, from 0 to less than 1.
    error : float
        Largest share of mislabelled items, between 0 and 1.

    Returns
    -------
    int
        The least N with (K - 1) e^{-NI} <= error, at least 1; fewer draws can suffice, see :func:`oracle_error`.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    chernoff_information : The information I per draw.
    oracle_error : The exact error for a number of draws.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import draws_needed
    >>> draws_needed(6, 0.45, error=0.01)
    21
    """
    information = chernoff_information(n_clusters, _noise(noise))
    if information == 0.0:
        raise ValueError("`noise` must be below 1, because draws of noise 1 carry no information on the truth; got 1.")
    return max(1, math.ceil(math.log((n_clusters - 1) / check_between("error", error, 1)) / information))


def similarity_moments(n_clusters: int, noise: float, *, n_draws: int = 1) -> SimilarityMoments:
    """Compute mean and standard deviation of the similarity of two items, within and between true clusters.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float
        Noise p, between 0 and 1.
    n_draws : int
        Number N of draws with equal weights.

    Returns
    -------
    SimilarityMoments
        ``within`` and ``between`` true clusters, ``within_sd`` and ``between_sd``.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    posterior_consensus.consensus.pair_threshold : A threshold of Binder's loss between the two means.

    Notes
    -----
    Let xi = p (2 - p). A draw co-clusters two items with probability 1 - xi (1 - 1/K) if they are in one true cluster,
    and xi/K otherwise (Lemma 1 of Zhou, Dudeja and Amini, ICLR 2023). With many draws, any threshold of Binder's loss
    between the two recovers the clusters. The threshold 1/2 exceeds both, and so splits all clusters, if
    p > 1 - sqrt(1 - K / (2 (K - 1))).

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import similarity_moments
    >>> moments = similarity_moments(6, 0.45, n_draws=20)
    >>> print(round(moments.within, 4), round(moments.between, 4))
    0.4187 0.1163
    """
    n_clusters, noise, n_draws = _classes_of(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    xi = noise * (2 - noise)
    means = 1 - xi * (1 - 1 / n_clusters), xi / n_clusters
    within_sd, between_sd = (math.sqrt(mean * (1 - mean) / n_draws) for mean in means)
    return SimilarityMoments(*means, within_sd, between_sd)


def basic_error_bound(sizes: npt.ArrayLike, noise: float, *, n_draws: int, constant: float = 1.0) -> float:
    """Compute the bound of theorem 1 on the expected misclassification of basic aggregation, up to a constant.

    Parameters
    ----------
    sizes : array_like of shape (n_clusters,)
        Number of items in each true cluster, all positive.
    noise : float
        Noise p, from 0 to less than 1.
    n_draws : int
        Number N of draws.
    constant : float
        Constant C, which the theorem does not specify.

    Returns
    -------
    float
        The bound; above 1 it has no content.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    refined_error_bound : The rate after refinement.
    oracle_error : The least expected error.

    Notes
    -----
    The bound is E[Mis] <= C xi beta^2 K / (1 - xi)^2 (beta^2 / N + xi K / n), with xi = p (2 - p). Here beta >= 1 is
    the least number for which all sizes lie between n / (beta K) and beta n / K. It is theorem 1 of Zhou, Dudeja and
    Amini (ICLR 2023), reconstructed from the last display of its proof.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import basic_error_bound
    >>> print(f"{basic_error_bound([250, 250], 0.1, n_draws=1_000):.4f}")
    0.0010
    """
    counts = as_numbers("sizes", sizes)
    if counts.ndim != 1 or counts.size == 0 or not np.all((counts > 0) & np.isfinite(counts)):
        raise ValueError(f"`sizes` must be the numbers of items of the clusters, all above 0; got {sizes!r}.")
    n_draws, constant = check_count("n_draws", n_draws), check_above("constant", constant, 0)
    xi = _noise(noise) * (2 - noise)
    if xi == 1.0:
        raise ValueError("`noise` must be below 1, because draws of noise 1 carry no information on the truth; got 1.")
    n_items, n_clusters = counts.sum(), counts.size
    beta = max(counts.max() * n_clusters / n_items, n_items / (n_clusters * counts.min()))
    terms = beta**2 / n_draws + xi * n_clusters / n_items
    return float(constant * xi * beta**2 * n_clusters / (1 - xi) ** 2 * terms)


def refined_error_bound(n_clusters: int, noise: float, *, n_draws: int, slack: float = 0.0) -> float:
    """Compute the rate of theorem 2: the misclassification after one refinement pass from a good start.

    Parameters
    ----------
    n_clusters : int
        Number K of clusters, at least 2.
    noise : float
        Noise p, between 0 and 1.
    n_draws : int
        Number N of draws.
    slack : float
        Number eta in [0, 1), which tends to 0 as the problem grows, at a rate that the theorem does not specify.

    Returns
    -------
    float
        The rate e^{-(1 - eta) N I}.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed.

    See Also
    --------
    posterior_consensus.consensus.refinement.refine_partition : The refinement.
    oracle_error : The least expected error.

    Notes
    -----
    Theorem 2 of Zhou, Dudeja and Amini (ICLR 2023): with probability 1 - o(1), the misclassification after one pass of
    their Algorithm 3 is at most e^{-(1 - eta) N I}. Let n_min be the smallest cluster size and delta the
    misclassification of the start. Two conditions are reconstructed from the proof: n_min p min(1, I) / K and
    N I / log K grow without limit, and K n delta / (n_min p I) tends to 0. For a given size it is a rate and not a
    bound: compare :func:`oracle_error`.

    Examples
    --------
    >>> from posterior_consensus.simulate.theory import refined_error_bound
    >>> print(f"{refined_error_bound(6, 0.45, n_draws=20):.4f}")
    0.0020
    """
    if not isinstance(slack, (int, float, np.number)) or not 0 <= slack < 1:
        raise ValueError(f"`slack` must be a number from 0 to less than 1; got {slack!r}.")
    rate = chernoff_information(n_clusters, _noise(noise))
    return math.exp(-(1 - slack) * check_count("n_draws", n_draws) * rate)


def _classes_of(n_clusters: Any) -> int:
    if check_count("n_clusters", n_clusters) == 1:
        raise ValueError("`n_clusters` must be at least 2: one cluster cannot be mistaken for another.")
    return int(n_clusters)


def _noise(noise: Any) -> float:
    if not isinstance(noise, (int, float, np.number)) or not 0 <= noise <= 1:
        raise ValueError(f"`noise` must be a number between 0 and 1; got {noise!r}.")
    return float(noise)
