"""Losses between partitions, one factory each; LOSSES maps their names.

The sums A, B, C and top of their formulas are those of :mod:`posterior_consensus.losses.record`.
"""

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from posterior_consensus.losses.record import TERMS, Floats, PairLoss, PartitionLoss, pairs
from posterior_consensus.runtime.arguments import check_between
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
    the pairs that the estimate co-clusters, up to a constant.

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
    L = (1 / n) [a (C - A) + (2 - a) (B - A)] with h(x) = x log2 x; for a = 1 it is H(estimate | draw) + H(draw |
    estimate) [1]_ [2]_.

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
        name="omari",
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
    """Define the normalised variation of information, VI over the joint entropy, in [0, 1].

    Returns
    -------
    PartitionLoss

    See Also
    --------
    vi : Without normalisation.
    losses.nid : The information distance, normalised.

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
    losses.nid : Its normalised form.

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
        name="id",
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
    """Define the normalised information distance, over the larger entropy, in [0, 1].

    Returns
    -------
    PartitionLoss

    See Also
    --------
    losses.information_distance : Without normalisation.
    losses.nmi : One minus normalised mutual information.

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
    "omari": one_minus_ari,
    "jaccard": jaccard,
    "nvi": nvi,
    "id": information_distance,
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
