"""How well clusters can be told apart under the random perturbation model: exact errors, exponents and bounds.

K clusters, N draws, and in each draw an item gets, with probability p, one of the K clusters at random. A wrong cluster
then has probability q = p/K, the true one 1 - p + q.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from posterior_consensus.runtime.arguments import as_numbers, check_above, check_between, check_count

Floats = npt.NDArray[np.float64]


class SimilarityMoments(NamedTuple):
    """Mean and standard deviation of one entry of the similarity matrix; made by :func:`similarity_moments`."""

    within: float
    """Mean for two items of one true cluster."""
    between: float
    """Mean for two items of different clusters."""
    within_sd: float
    """Standard deviation for two items of one true cluster."""
    between_sd: float
    """Standard deviation for two items of different clusters."""


def chernoff_information(n_clusters: int, noise: npt.ArrayLike) -> Any:
    """Rate at which the error of the best test between two clusters falls with the number of draws.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float or array_like
        p, between 0 and 1.

    Returns
    -------
    float or ndarray of the shape of `noise`
        I in nats per draw; infinite for p = 0 and 0 for p = 1.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    I = -log(2 sqrt((1 - p + q) q) + (K - 2) q) with q = p/K; the error of N draws is at most e^{-NI} and
    -log(error)/N tends to I. Equation 11 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus
    clustering"; the square root is missing from some extracts of its text and follows from its proof.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> print(round(pc.simulate.chernoff_information(6, 0.45), 4))
    0.3106
    """
    n_clusters = _classes(n_clusters)
    values = as_numbers("noise", noise)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"`noise` must lie between 0 and 1; got {noise!r}.")
    q = values / n_clusters
    with np.errstate(divide="ignore"):
        information = np.abs(np.log(2 * np.sqrt((1 - values + q) * q) + (n_clusters - 2) * q))  # never above log 1
    return float(information) if values.ndim == 0 else information


def bayes_error(n_clusters: int, noise: float, *, n_draws: int) -> float:
    """Exact error of the best test between two equally probable clusters of one item, the clusters' names known.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float
        p, between 0 and 1.
    n_draws : int
        N.

    Returns
    -------
    float
        P_N, a probability of at most 0.5.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    The test takes the cluster of the two that more draws name, and either if they are equal. Of the N draws,
    M ~ Bin(N, r) name one of the two, r = 1 - p + 2q, and of these B ~ Bin(M, q/r) the wrong one:
    P_N = E[P(B > M/2) + P(B = M/2)/2]. Figure 1 of Zhou, Dudeja and Amini (ICLR 2023) has -log(P_N)/N.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> print(f"{pc.simulate.bayes_error(6, 0.45, n_draws=20):.2g}")
    0.00022
    """
    n_clusters, noise, n_draws = _classes(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    q = noise / n_clusters
    either = 1.0 - noise + 2 * q
    named = np.arange(n_draws + 1)
    wrong = stats.binom(named, q / either)
    error = (wrong.sf(named // 2) + wrong.sf((named + 1) // 2 - 1)) / 2
    return float(stats.binom.pmf(named, n_draws, min(either, 1.0)) @ error)


def oracle_error(n_clusters: int, noise: float, *, n_draws: int) -> float:
    """Exact share of items that the oracle is expected to mislabel: a plurality vote with the clusters' names known.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float
        p, between 0 and 1.
    n_draws : int
        N.

    Returns
    -------
    float
        Probability of an error for one item, ties broken at random; the same for all true clusters.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    A ~ Bin(N, 1 - p + q) draws name the true cluster and the others each of the K - 1 wrong ones with equal
    probability. Those counts are independent Poisson ones given their sum, so that the probability that t of them are
    A and the others less is a coefficient of a product of K - 1 polynomials. It is at most
    (K - 1) e^{-NI}, see :func:`chernoff_information`. No method can be expected to do better where clusters are equally
    probable, and for two clusters it is :func:`bayes_error`.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> print(f"{pc.simulate.oracle_error(6, 0.65, n_draws=20):.3f}")
    0.043
    """
    n_clusters, noise, n_draws = _classes(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    votes = stats.binom.pmf(np.arange(n_draws + 1), n_draws, 1.0 - noise + noise / n_clusters)
    lost = np.array([_lost(a, n_draws - a, n_clusters - 1) for a in range(n_draws + 1)])
    return float(votes @ lost)


def _lost(own: int, others: int, n_wrong: int) -> float:
    """Probability that `own` votes lose to `others` votes spread at random over `n_wrong` clusters.

    A sum of positive terms, as one less the probability to win would have no digits where that is nearly one.
    """
    if own == 0:
        return 1.0
    if others < own:
        return 0.0
    shares = stats.poisson.pmf(np.arange(others + 1), others / n_wrong)
    below, tie = shares[:own], shares[own]
    above = np.where(np.arange(others + 1) > own, shares, 0.0)
    none_above, some_above, powers = np.ones(1), np.zeros(1), [np.ones(1)]  # by votes given to the clusters so far
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
    """Number of independent draws needed for a given error of the oracle.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float
        p, from 0 to less than 1.
    error : float
        Wanted share of mislabelled items, between 0 and 1.

    Returns
    -------
    int
        The least N with (K - 1) e^{-NI} <= error, at least 1; fewer may do, see :func:`oracle_error`.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.simulate.draws_needed(6, 0.45, error=0.01)
    21
    """
    information = chernoff_information(n_clusters, _noise(noise))
    if information == 0.0:
        raise ValueError("`noise` must be below 1, because draws of noise 1 carry no information on the truth; got 1.")
    return max(1, math.ceil(math.log((n_clusters - 1) / check_between("error", error, 1)) / information))


def similarity_moments(n_clusters: int, noise: float, *, n_draws: int = 1) -> SimilarityMoments:
    """Mean and standard deviation of the share of draws that co-cluster two items.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float
        p, between 0 and 1.
    n_draws : int
        N, with equal weights.

    Returns
    -------
    SimilarityMoments
        ``within`` and ``between`` true clusters, ``within_sd`` and ``between_sd``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    With xi = p (2 - p), two items are together in a draw with probability 1 - xi (1 - 1/K) if they are in one cluster
    and xi/K if they are not (Lemma 1 of Zhou, Dudeja and Amini, ICLR 2023). Any threshold of Binder's loss between the
    two tells the clusters apart as n_draws grows; 1/2 is above both, and so splits all clusters, if
    p > 1 - sqrt(1 - K / (2 (K - 1))).

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> moments = pc.simulate.similarity_moments(6, 0.45, n_draws=20)
    >>> print(round(moments.within, 4), round(moments.between, 4))
    0.4187 0.1163
    """
    n_clusters, noise, n_draws = _classes(n_clusters), _noise(noise), check_count("n_draws", n_draws)
    xi = noise * (2 - noise)
    means = 1 - xi * (1 - 1 / n_clusters), xi / n_clusters
    within_sd, between_sd = (math.sqrt(mean * (1 - mean) / n_draws) for mean in means)
    return SimilarityMoments(*means, within_sd, between_sd)


def basic_error_bound(sizes: npt.ArrayLike, noise: float, *, n_draws: int, constant: float = 1.0) -> float:
    """Theorem 1's bound of the expected misclassification of basic aggregation, up to its constant.

    Parameters
    ----------
    sizes : array_like of shape (n_clusters,)
        Number of items in each true cluster; none is empty.
    noise : float
        p, from 0 to less than 1.
    n_draws : int
        N.
    constant : float
        C, which the theorem does not give.

    Returns
    -------
    float
        May exceed 1, where the theorem says nothing.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    E[Mis] <= C xi beta^2 K / (1 - xi)^2 (beta^2 / N + xi K / n), with xi = p (2 - p) and beta >= 1 the least for which
    all sizes lie between n / (beta K) and beta n / K. Theorem 1 of Zhou, Dudeja and Amini (ICLR 2023). The text at hand
    lacks the theorem's display: this is reconstructed from the last display of its proof, which has the same two terms
    for each cluster, and the two sides of beta from where the proof uses them.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> print(f"{pc.simulate.basic_error_bound([250, 250], 0.1, n_draws=1_000):.4f}")
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
    """Theorem 2's rate: the misclassification that one refinement pass reaches from a good start.

    Parameters
    ----------
    n_clusters : int
        K, at least 2.
    noise : float
        p, between 0 and 1.
    n_draws : int
        N.
    slack : float
        eta in [0, 1), which vanishes as the problem grows; the theorem does not say how fast.

    Returns
    -------
    float
        e^{-(1 - eta) N I}.

    Raises
    ------
    ValueError, TypeError
        If an argument is not among those allowed.

    Notes
    -----
    Theorem 2 of Zhou, Dudeja and Amini (ICLR 2023): with probability 1 - o(1) the misclassification after one pass of
    their Algorithm 3 is at most e^{-(1 - eta) N I}, if n_min p min(1, I) / K and N I / log K grow without limit, n_min
    being the size of the smallest cluster, and the start's misclassification delta is small enough for
    K n delta / (n_min p I) to vanish. The text at hand lacks the signs between these quantities; they are reconstructed
    from the proof. At a given size it is a rate and no bound: compare :func:`oracle_error`.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> print(f"{pc.simulate.refined_error_bound(6, 0.45, n_draws=20):.4f}")
    0.0020
    """
    if not isinstance(slack, (int, float, np.number)) or not 0 <= slack < 1:
        raise ValueError(f"`slack` must be a number from 0 to less than 1; got {slack!r}.")
    rate = chernoff_information(n_clusters, _noise(noise))
    return math.exp(-(1 - slack) * check_count("n_draws", n_draws) * rate)


def _classes(n_clusters: Any) -> int:
    if check_count("n_clusters", n_clusters) == 1:
        raise ValueError("`n_clusters` must be at least 2: one cluster cannot be mistaken for another.")
    return int(n_clusters)


def _noise(noise: Any) -> float:
    if not isinstance(noise, (int, float, np.number)) or not 0 <= noise <= 1:
        raise ValueError(f"`noise` must be a number between 0 and 1; got {noise!r}.")
    return float(noise)
