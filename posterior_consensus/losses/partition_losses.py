"""Losses of partitions, one factory each; LOSSES, NOISE_LOSSES and PAIR_LOSSES map their names.

A loss between two partitions is a ratio of the sums A, B, C and top of :mod:`posterior_consensus.losses.record`. A
loss with noise also counts the items that one of the two calls noise. A loss of pairs is a function of the partition
and the posterior similarity matrix.
"""

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from posterior_consensus.losses.record import TERMS, NoiseLoss, PairLoss, PartitionLoss, pairs
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_between, check_number
from posterior_consensus.runtime.tolerances import ROUNDING


def information(n_items: int) -> Floats:
    """Return the table h(x) = x log2 x for x = 0 to `n_items`: n times an entropy in bits is h(n) less its sum."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * np.log2(np.maximum(x, 1))


def _per_item(n_items: int) -> float:
    return 1.0 / n_items


def _per_ordered_pair(n_items: int) -> float:
    return 2.0 / n_items**2


@overload
def binder(a: float | None = None, *, tau: float | None = None) -> PartitionLoss: ...


@overload
def binder(*, tau: Literal["mean"]) -> PairLoss: ...


def binder(a: float | None = None, *, tau: float | Literal["mean"] | None = None) -> PartitionLoss | PairLoss:
    """Define Binder's loss: 2 / n^2 for each pair on which two partitions disagree, in [0, 1) for a = 1.

    Parameters
    ----------
    a : float in (0, 2), optional
        Cost of separating a pair that the draw co-clusters; 2 - a is the cost of joining a pair that it separates.
        By default 1.
    tau : float in (0, 1) or "mean", optional
        The pair threshold, equivalent to a = 2 (1 - tau): joining a pair lowers the expected loss if its similarity
        exceeds tau. The default a = 1 is tau = 1/2. :func:`pair_threshold` calibrates tau on the draws. With "mean"
        it is the mean similarity of all pairs, as :func:`component_similarity` needs.

    Returns
    -------
    PartitionLoss
        With ``tau="mean"`` a PairLoss, as the threshold is known only with the similarities.
        :func:`consensus_partition` and :func:`certify` insert the mean, and report the loss with this number.

    Raises
    ------
    ValueError
        If `a` or `tau` is out of its range, or both are given.

    See Also
    --------
    pair_threshold : Calibrate `tau` on the draws.
    vi : Its counterpart in bits, with fewer small clusters.
    loss_path : Consensus partitions along `tau`.

    Notes
    -----
    L = (2 / n^2) [a (C - A) + (2 - a) (B - A)] with h(x) = x (x - 1) / 2 [1]_ [2]_.

    With X_ij the posterior similarity of items i and j, the expected loss is (4 / n^2) times the sum of tau - X_ij over
    the pairs that the partition co-clusters, up to a constant.

    References
    ----------
    .. [1] Binder (1978), Biometrika 65(1), 31-38. https://doi.org/10.1093/biomet/65.1.31
    .. [2] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], loss=pc.binder(a=0.5))
    0.25
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.binder(a=0.5))
    0.375
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.binder(tau=0.75))
    0.375
    """
    if a is None and isinstance(tau, str) and tau == "mean":
        return PairLoss(
            name="binder(tau='mean')",
            formula="(2 / n^2) (2 tau B + 2 (1 - tau) C - 2 A), tau the mean similarity",
            value=_at_mean,
            pair_threshold=_mean_itself,
            given_mean=_with_threshold,
            upper="2",
            reference="https://doi.org/10.1080/01621459.2024.2427935",
            parameters={"tau": "mean"},
        )
    a = _cost(a, tau)
    return PartitionLoss(
        name="binder" if a == 1 else f"binder(a={a:g})",
        formula="(2 / n^2) (B + C - 2 A)" if a == 1 else f"(2 / n^2) ({2 - a:g} B + {a:g} C - 2 A)",
        h=pairs,
        numerator={"A": -2.0, "B": 2.0 - a, "C": a},
        scale=_per_ordered_pair,
        upper="1 - 1 / n" if a == 1 else f"{max(a, 2 - a):g} (1 - 1 / n)",
        metric=a == 1,
        reference="https://doi.org/10.1093/biomet/65.1.31",
        parameters={"a": a},
    )


def ballet(noise: float = 1.0, *, a: float = 1.0) -> NoiseLoss:
    """Define BALLET's loss of runs that call items noise: Binder's loss within clusters, and a cost of each noise item.

    Parameters
    ----------
    noise : float
        Cost of an item that is noise in one partition and in a cluster in the other, as a multiple of all n - 1 pairs
        of the item. By default 1: as much as if the two disagreed on all of its pairs.
    a : float in (0, 2)
        Cost of separating a pair that the run co-clusters; 2 - a is the cost of joining a pair that it separates. By
        default 1.

    Returns
    -------
    NoiseLoss

    Raises
    ------
    ValueError
        If `noise` is not a positive number, or `a` is out of its range.

    See Also
    --------
    as_runs : ``noise=`` names the label of noise.
    binder : The same loss without noise, bit for bit.

    Notes
    -----
    Let S be the items in clusters in the partition, T those in clusters in the run, and m = `noise`. R is the number of
    pairs in S and T that only the run co-clusters, P of those that only the partition co-clusters, and D the number of
    items in exactly one of S and T:

        L = (2 / n^2) [a R + (2 - a) P + m (n - 1) D].

    This is the loss of [1]_ in the unit of :func:`binder`. It is a metric if a = 1 and m >= 1/2: it is then a sum over
    pairs of a metric on what a partition says of the pair. With m < 1/2, separating an item would cost more than
    calling it noise and taking it back.

    Let q_i be the share of runs that call item i noise. In a partition of minimum expected loss, i is noise if
    q_i > 1/2. If q_i <= 1/2, it is noise only if its pairs with items in clusters would cost more than m (n - 1) (1 - 2
    q_i) in expectation, wherever it is put: almost half of the runs call it noise, and the others disagree on its
    cluster. A larger m leaves this to the majority alone.

    References
    ----------
    .. [1] Buch, Dewaskar and Dunson (2024), Bayesian level set clustering, arXiv:2403.04912.
       https://doi.org/10.48550/arXiv.2403.04912

    Examples
    --------
    Of the 3 pairs of items 0 to 2, one is separated; item 3 is noise in one of the two, and costs 3 pairs.

    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 0, 0], [0, 0, 0, -1], loss="ballet")
    0.375
    >>> runs = pc.as_runs([[0, 0, 1, -1], [0, 0, 1, 1], [0, 0, 1, -1]], noise=-1)
    >>> best = pc.consensus_partition(runs, loss=pc.losses.ballet(), random_seed=1)
    >>> best.noise.values
    array([False, False, False,  True])
    """
    a = check_between("a", a, 2)
    check_number("noise", noise)
    if not 0 < noise < np.inf:
        raise ValueError(f"`noise` must be a positive number; got {noise:g}.")
    parameters = {"noise": float(noise), "a": a}
    given = ", ".join(f"{key}={value:g}" for key, value in parameters.items() if value != 1)
    return NoiseLoss(
        name=f"ballet({given})" if given else "ballet",
        formula=f"(2 / n^2) ({2 - a:g} (B' - A) + {a:g} (C' - A) + {noise:g} (n - 1) D)",
        binder=binder(a),
        noise=float(noise),
        upper=f"2 * {max(a, 2 - a, noise):g}",
        metric=a == 1 and noise >= 0.5,
        reference="https://doi.org/10.48550/arXiv.2403.04912",
        parameters=parameters,
    )


def tau_of(loss: PartitionLoss) -> float:
    """Pair threshold of Binder's loss with any costs: joining a pair lowers the expected loss if it is more similar."""
    joining, separating = (loss.numerator[term] for term in "BC")
    return joining / (joining + separating)


def _mean_itself(value: float, mean_similarity: float) -> float:
    return mean_similarity


def _with_threshold(mean_similarity: float) -> PartitionLoss:
    return binder(tau=float(np.clip(mean_similarity, ROUNDING, 1 - ROUNDING)))


def _at_mean(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    n = sums.shape[-1]
    return _with_threshold((sums.sum() - n) / max(1, n * (n - 1))).expected(sizes, links, sums)


def vi(a: float = 1.0) -> PartitionLoss:
    """Define the variation of information in bits, in [0, log2 n] for a = 1.

    Parameters
    ----------
    a : float in (0, 2)
        Weight of the information lost by separating items that the draw joins; 2 - a is the weight of joining items
        that it separates. The loss is a metric only if a = 1. By default 1.

    Returns
    -------
    PartitionLoss

    See Also
    --------
    binder : Binder's loss, a function of pairs.
    losses.nvi : VI over the joint entropy.
    loss_path : Consensus partitions along `a`.

    Notes
    -----
    L = (1 / n) [a (C - A) + (2 - a) (B - A)] with h(x) = x log2 x; for a = 1 it is H(partition | draw) + H(draw |
    partition) [1]_ [2]_.

    References
    ----------
    .. [1] Meila (2007), Journal of Multivariate Analysis 98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013
    .. [2] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], loss=pc.vi(a=0.5))
    0.5
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.vi(a=0.5))
    1.5
    """
    a = check_between("a", a, 2)
    return PartitionLoss(
        name="vi" if a == 1 else f"vi(a={a:g})",
        formula="(B + C - 2 A) / n" if a == 1 else f"({2 - a:g} B + {a:g} C - 2 A) / n",
        h=information,
        numerator={"A": -2.0, "B": 2.0 - a, "C": a},
        scale=_per_item,
        unit="bits",
        upper="log2 n" if a == 1 else f"{max(a, 2 - a):g} log2 n",
        metric=a == 1,
        reference="https://doi.org/10.1016/j.jmva.2006.11.013",
        parameters={"a": a},
    )


def one_minus_ari() -> PartitionLoss:
    """Define one minus the adjusted Rand index; above 1 if two partitions agree less than by chance.

    Returns
    -------
    PartitionLoss

    See Also
    --------
    losses.pear : The same with draws replaced by their similarities.
    binder : Pairs on which two partitions disagree.

    Notes
    -----
    L = ((B + C) / 2 - A) / ((B + C) / 2 - B C / top) with h(x) = x (x - 1) / 2 [1]_.

    References
    ----------
    .. [1] Hubert and Arabie (1985), Journal of Classification 2, 193-218. https://doi.org/10.1007/BF01908075

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 1], loss=pc.losses.one_minus_ari())
    1.0
    """
    return PartitionLoss(
        name="one_minus_ari",
        formula="((B + C) / 2 - A) / ((B + C) / 2 - B C / top)",
        h=pairs,
        numerator={"A": -1.0, "B": 0.5, "C": 0.5},
        denominator={"B": 0.5, "C": 0.5, "B C / top": -1.0},
        upper="1.5",
        reference="https://doi.org/10.1007/BF01908075",
    )


def jaccard() -> PartitionLoss:
    """Define the Jaccard distance between the sets of co-clustered pairs, in [0, 1].

    Returns
    -------
    PartitionLoss

    See Also
    --------
    binder : The same pairs, counted linearly.
    losses.one_minus_ari : Pairs, corrected for chance.

    Notes
    -----
    L = (B + C - 2 A) / (B + C - A) with h(x) = x (x - 1) / 2; a metric, as the Jaccard distance of any two sets [1]_.

    References
    ----------
    .. [1] Levandowsky and Winter (1971), Nature 234, 34-35. https://doi.org/10.1038/234034a0

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 1], loss=pc.losses.jaccard())
    0.75
    """
    return PartitionLoss(
        name="jaccard",
        formula="(B + C - 2 A) / (B + C - A)",
        h=pairs,
        numerator={"A": -2.0, "B": 1.0, "C": 1.0},
        denominator={"A": -1.0, "B": 1.0, "C": 1.0},
        metric=True,
        reference="https://doi.org/10.1038/234034a0",
    )


_VINH = "https://jmlr.org/papers/v11/vinh10a.html"


def nvi() -> PartitionLoss:
    """Define the normalized variation of information, VI over the joint entropy, in [0, 1].

    Returns
    -------
    PartitionLoss

    See Also
    --------
    vi : Without normalization.
    losses.nid : The information distance, normalized.

    Notes
    -----
    L = (B + C - 2 A) / (top - A) with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.losses.nvi())
    0.5
    """
    return PartitionLoss(
        name="nvi",
        formula="(B + C - 2 A) / (top - A)",
        h=information,
        numerator={"A": -2.0, "B": 1.0, "C": 1.0},
        denominator={"top": 1.0, "A": -1.0},
        metric=True,
        reference=_VINH,
    )


def information_distance() -> PartitionLoss:
    """Define the information distance: the larger of the two conditional entropies, in bits.

    Returns
    -------
    PartitionLoss

    See Also
    --------
    vi : The sum of the two conditional entropies.
    losses.nid : Its normalized form.

    Notes
    -----
    L = (max(B, C) - A) / n with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.losses.information_distance())
    1.0
    """
    return PartitionLoss(
        name="information_distance",
        formula="(max(B, C) - A) / n",
        h=information,
        numerator={"A": -1.0, "max(B, C)": 1.0},
        scale=_per_item,
        unit="bits",
        upper="log2 n",
        metric=True,
        reference=_VINH,
    )


def nid() -> PartitionLoss:
    """Define the normalized information distance, over the larger entropy, in [0, 1].

    Returns
    -------
    PartitionLoss

    See Also
    --------
    losses.information_distance : Without normalization.
    losses.nmi : One minus normalized mutual information.

    Notes
    -----
    L = (max(B, C) - A) / (top - min(B, C)) with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.losses.nid())
    0.5
    """
    return PartitionLoss(
        name="nid",
        formula="(max(B, C) - A) / (top - min(B, C))",
        h=information,
        numerator={"A": -1.0, "max(B, C)": 1.0},
        denominator={"top": 1.0, "min(B, C)": -1.0},
        metric=True,
        reference=_VINH,
    )


_NMI_NORMALIZERS: dict[str, dict[str, float]] = {
    "geometric": {"sqrt((top - B) (top - C))": 1.0},
    "arithmetic": {"top": 1.0, "B": -0.5, "C": -0.5},
    "min": {"top": 1.0, "max(B, C)": -1.0},
    "max": {"top": 1.0, "min(B, C)": -1.0},
}


def nmi(average_method: Literal["geometric", "arithmetic", "min", "max"] = "geometric") -> PartitionLoss:
    """One minus the normalized mutual information.

    Parameters
    ----------
    average_method : {"geometric", "arithmetic", "min", "max"}
        Mean of the two entropies that divides the mutual information, named as scikit-learn names it; its default is
        "arithmetic".

    Returns
    -------
    PartitionLoss

    See Also
    --------
    losses.nid : A metric of the same terms.
    losses.nvi : VI over the joint entropy.

    Notes
    -----
    L = 1 - (top - B - C + A) / M(top - B, top - C) with h(x) = x log2 x and M the mean [1]_.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> round(pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], loss=pc.losses.nmi("arithmetic")), 6)
    0.333333
    """
    if average_method not in _NMI_NORMALIZERS:
        raise ValueError(
            f"`average_method` must be one of {', '.join(map(repr, _NMI_NORMALIZERS))}; got {average_method!r}."
        )
    normalizer = _NMI_NORMALIZERS[average_method]
    numerator = dict.fromkeys(TERMS, 0.0) | normalizer
    for term, coefficient in {"top": -1.0, "A": -1.0, "B": 1.0, "C": 1.0}.items():
        numerator[term] += coefficient
    return PartitionLoss(
        name="nmi" if average_method == "geometric" else f"nmi({average_method})",
        formula="1 - (top - B - C + A) / M(top - B, top - C)",
        h=information,
        numerator=numerator,
        denominator=normalizer,
        metric=average_method == "max",  # then it is NID
        reference="https://jmlr.org/papers/v3/strehl02a.html",
        parameters={"average_method": average_method},
    )


LOSSES: dict[str, Callable[..., PartitionLoss]] = {
    "vi": vi,
    "binder": binder,
    "one_minus_ari": one_minus_ari,
    "jaccard": jaccard,
    "nvi": nvi,
    "information_distance": information_distance,
    "nid": nid,
    "nmi": nmi,
}
"""Losses by name; each factory, called without arguments, gives the record of that name."""


def _cost(a: float | None, tau: Any) -> float:
    if tau is None:
        return 1.0 if a is None else check_between("a", a, 2)
    if isinstance(tau, str) and tau != "mean":
        raise TypeError(f"`tau` must be a number between 0 and 1, or 'mean'; got {tau!r}.")
    if a is not None:
        raise ValueError(f"`a` and `tau` must not both be given, as a = 2 (1 - tau); got a={a!r} and tau={tau!r}.")
    return 2.0 * (1.0 - check_between("tau", tau, 1))


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
    draws, "one_minus_ari" is one minus the expected adjusted Rand index itself.

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


NOISE_LOSSES: dict[str, Callable[..., NoiseLoss]] = {"ballet": ballet}
"""Losses between partitions that may call items noise, by name."""

PAIR_LOSSES: dict[str, Callable[..., PairLoss]] = {
    "vi_lower_bound": vi_lower_bound,
    "pear": pear,
    "within_variance": within_variance,
}
"""Losses of a partition given a similarity matrix, by name."""
