"""The losses between partitions, one factory each, and LOSSES, which has them by name.

The sums A, B, C and top of their formulas are those of :mod:`posterior_consensus.loss_record`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeGuard

import numpy as np

from posterior_consensus.arguments import check_between
from posterior_consensus.loss_record import TERMS, Floats, Need, Objective, PairLoss, PartitionLoss

__all__ = [
    "LOSSES",
    "PAIR_LOSSES",
    "PairLoss",
    "PartitionLoss",
    "binder",
    "information_distance",
    "jaccard",
    "kcc",
    "nid",
    "nmi",
    "nvi",
    "one_minus_ari",
    "pear",
    "vi",
    "vi_lower_bound",
]


def pairs(n_items: int) -> Floats:
    """Return the table h(x) = x (x - 1) / 2 for x = 0 to `n_items`: the number of pairs in a cluster."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * (x - 1) / 2


def information(n_items: int) -> Floats:
    """Return the table h(x) = x log2 x for x = 0 to `n_items`: n times an entropy in bits is h(n) less its sum."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * np.log2(np.maximum(x, 1))


def _per_item(n_items: int) -> float:
    return 1.0 / n_items


def _per_ordered_pair(n_items: int) -> float:
    return 2.0 / n_items**2


def binder(a: float | None = None, *, tau: float | None = None) -> PartitionLoss:
    """Binder's loss: pairs on which two partitions disagree, 2 / n^2 for each, in [0, 1] for a = 1.

    Parameters
    ----------
    a : float in (0, 2), optional
        Cost of separating a pair that the draw has together; 2 - a is that of joining a pair that the draw has apart.
        By default 1.
    tau : float in (0, 1), optional
        The pair threshold, another way to say a = 2 (1 - tau): the least expected loss joins a pair alone where its
        similarity exceeds tau. The default a = 1 is tau = 1/2. :func:`pair_threshold` finds a tau that suits the draws.

    Returns
    -------
    PartitionLoss

    Raises
    ------
    ValueError
        If `a` or `tau` is out of its range, or both are given.

    Notes
    -----
    L = (2 / n^2) [a (C - A) + (2 - a) (B - A)] with h(x) = x (x - 1) / 2 [1]_ [2]_.

    With X_ij the posterior similarity of items i and j, the expected loss is (4 / n^2) times the sum of tau - X_ij over
    the pairs that the estimate has together, up to a constant.

    References
    ----------
    .. [1] Binder (1978), Biometrika 65(1), 31-38. https://doi.org/10.1093/biomet/65.1.31
    .. [2] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], pc.binder(a=0.5))
    0.25
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.binder(a=0.5))
    0.375
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.binder(tau=0.75))
    0.375
    """
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


def vi(a: float = 1.0) -> PartitionLoss:
    """Variation of information, in bits.

    Parameters
    ----------
    a : float in (0, 2)
        Weight of the information lost by separating what the draw has together; 2 - a is that of joining what it has
        apart.

    Returns
    -------
    PartitionLoss

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
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], pc.vi(a=0.5))
    0.5
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.vi(a=0.5))
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
    """One minus the adjusted Rand index; above 1 where two partitions agree less than by chance.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = ((B + C) / 2 - A) / ((B + C) / 2 - B C / top) with h(x) = x (x - 1) / 2 [1]_.

    References
    ----------
    .. [1] Hubert and Arabie (1985), Journal of Classification 2, 193-218. https://doi.org/10.1007/BF01908075

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 1], pc.losses.one_minus_ari())
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
    """Jaccard distance of the sets of pairs that two partitions have together.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = (B + C - 2 A) / (B + C - A) with h(x) = x (x - 1) / 2; a metric, as the Jaccard distance of any two sets [1]_.

    References
    ----------
    .. [1] Levandowsky and Winter (1971), Nature 234, 34-35. https://doi.org/10.1038/234034a0

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 1], pc.losses.jaccard())
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
    """Normalised variation of information: VI over the joint entropy.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = (B + C - 2 A) / (top - A) with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.losses.nvi())
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
    """Information distance: the larger of the two conditional entropies, in bits.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = (max(B, C) - A) / n with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.losses.information_distance())
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
    """Normalised information distance: the information distance over the larger entropy.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = (max(B, C) - A) / (top - min(B, C)) with h(x) = x log2 x: Vinh, Epps and Bailey (2010),
    Journal of Machine Learning Research 11, 2837-2854.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.losses.nid())
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
    """One minus the normalised mutual information.

    Parameters
    ----------
    average_method : {"geometric", "arithmetic", "min", "max"}
        Mean of the two entropies that divides the mutual information, named as scikit-learn names it; its default is
        "arithmetic".

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = 1 - (top - B - C + A) / M(top - B, top - C) with h(x) = x log2 x and M the mean [1]_.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> round(pc.partition_loss([0, 0, 1, 1], [0, 1, 2, 3], pc.losses.nmi("arithmetic")), 6)
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


def vi_lower_bound() -> PairLoss:
    """Wade and Ghahramani's lower bound of the expected variation of information, in bits, from similarities alone.

    Returns
    -------
    PairLoss

    Notes
    -----
    With S_i the cluster of item i and X the posterior similarity matrix,

        L = (1 / n) sum_i [log2 size(S_i) + log2 sum_j X_ij - 2 log2 sum_{j in S_i} X_ij],

    which is what mcclust.ext's VI.lb computes and minVI minimises. By Jensen's inequality [1]_ the first and the last
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
    >>> round(pc.expected_loss(pairs, [0, 0], "vi_lower_bound")["expected_loss"].item(), 6)
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
    """One minus PEAR, the posterior expected adjusted Rand index with the draws replaced by their similarities.

    Returns
    -------
    PairLoss

    Notes
    -----
    With X the posterior similarity matrix and y_ij 1 where the partition has i and j together, sums over the n (n - 1)
    / 2 pairs,

        L = 1 - (sum y X - sum y sum X / C(n, 2)) / ((sum y + sum X) / 2 - sum y sum X / C(n, 2)),

    and L = 0 where both are one cluster or both single items [1]_. R's mcclust maximises PEAR in maxpear. With draws,
    "omari" is one minus the expected adjusted Rand index itself.

    References
    ----------
    .. [1] Fritsch and Ickstadt (2009), Bayesian Analysis 4(2), 367-391. https://doi.org/10.1214/09-BA414

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity([[1.0, 0.9, 0.3], [0.9, 1.0, 0.3], [0.3, 0.3, 1.0]])
    >>> round(pc.expected_loss(pairs, [0, 0, 1], "pear")["expected_loss"].item(), 6)
    0.466667
    """
    return PairLoss(
        name="pear",
        formula="1 - (yX - y X / P) / ((y + X) / 2 - y X / P), the sums over P pairs of y X, y and X",
        value=_one_minus_pear,
        pair_threshold=_threshold_of_pear,
        upper="1.5",
        reference="https://doi.org/10.1214/09-BA414",
    )


def kcc() -> PairLoss:
    """Objective of k-means-based consensus: squared distances of the items' one-hot rows to their cluster's mean.

    Returns
    -------
    PairLoss

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
    >>> pc.expected_loss(draws, [0, 0, 1, 1], "kcc")["expected_loss"].item()
    0.0625
    """
    return PairLoss(
        name="kcc",
        formula="mean of 1 - l / s",
        value=_sum_of_squares,
        item_terms=_share_apart,
        reference="https://doi.org/10.1109/TKDE.2014.2316512",
        falls_with_clusters=True,
    )


def _sum_of_squares(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    mean: Floats = np.mean(_share_apart(sizes, links), axis=-1)
    return mean


def _share_apart(sizes: Floats, links: Floats) -> Floats:
    shares: Floats = 1.0 - links / sizes
    return shares


def _vi_bound(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    bound: Floats = np.mean(_vi_bound_terms(sizes, links) + np.log2(sums), axis=-1)
    return bound


def _vi_bound_terms(sizes: Floats, links: Floats) -> Floats:
    terms: Floats = np.log2(sizes) - 2 * np.log2(links)
    return terms


def _threshold_of_pear(value: float, mean_similarity: float) -> float:
    """Return tau such that sum y (tau - X) falls where 1 - PEAR falls from `value`: PEAR is a ratio of linear forms."""
    return mean_similarity + (1 - value) * (0.5 - mean_similarity)


def _one_minus_pear(sizes: Floats, links: Floats, sums: Floats) -> Floats:
    n = sizes.shape[-1]
    of_pairs = max(n * (n - 1) / 2, 1.0)
    together, joint, similar = ((np.sum(x, axis=-1) - n) / 2 for x in (sizes, links, sums))
    by_chance = together * similar / of_pairs
    best = (together + similar) / 2 - by_chance
    is_trivial = best <= 1e-12 * of_pairs
    loss: Floats = np.where(is_trivial, 0.0, 1.0 - (joint - by_chance) / np.where(is_trivial, 1.0, best))
    return loss


PAIR_LOSSES: dict[str, Callable[..., PairLoss]] = {
    "vi_lower_bound": vi_lower_bound,
    "pear": pear,
    "kcc": kcc,
}
"""Losses of a partition given a similarity matrix, by name."""


def _cost(a: float | None, tau: float | None) -> float:
    if tau is None:
        return 1.0 if a is None else check_between("a", a, 2)
    if a is not None:
        raise ValueError(f"`a` and `tau` must not both be given, as a = 2 (1 - tau); got a={a!r} and tau={tau!r}.")
    return 2.0 * (1.0 - check_between("tau", tau, 1))


def as_loss(loss: str | Objective) -> PartitionLoss:
    """Take a loss between two partitions by name or as a record.

    Raises
    ------
    ValueError
        If there is no such loss of that name; the message lists those there are.
    TypeError
        If `loss` is neither.
    """
    record = as_objective(loss)
    if isinstance(record, PairLoss):
        raise ValueError(
            f"`loss` must be a loss between two partitions here, such as {', '.join(map(repr, LOSSES))}; got "
            f"{record.name!r}, which judges a partition by a similarity matrix."
        )
    return record


def as_objective(loss: str | Objective) -> Objective:
    """Take a loss between two partitions, or one given a similarity matrix, by name or as a record.

    Raises
    ------
    ValueError
        If there is no loss of that name; the message lists those there are.
    TypeError
        If `loss` is neither.
    """
    if isinstance(loss, (PartitionLoss, PairLoss)):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"`loss` must be a name or a PartitionLoss such as binder(a=0.5); got {type(loss).__name__}.")
    factory = (LOSSES | PAIR_LOSSES).get(loss.lower())
    if factory is None:
        names = ", ".join(map(repr, [*LOSSES, *PAIR_LOSSES]))
        raise ValueError(f"`loss` must be a PartitionLoss or one of {names}; got {loss!r}.")
    return factory()


def loss_of(loss: str | Objective | None, *partitions: Any) -> PartitionLoss:
    """Take the loss between partitions under which partitions are to be judged.

    Parameters
    ----------
    loss : str, PartitionLoss or None
        None stands for the loss that the partitions were found under, and for "vi" where that is not known.
    *partitions : result object, DataArray or label vector
        What is judged; a result has its loss as `loss`.

    Raises
    ------
    ValueError
        If `loss` is None and the results were found under several losses, and as :func:`as_loss`.
    """
    return as_loss(objective_of(loss, *partitions))


def objective_of(loss: str | Objective | None, *partitions: Any) -> Objective:
    """Do what :func:`loss_of` does, but take losses given a similarity matrix too."""
    if loss is not None:
        return as_objective(loss)
    own = [
        one
        for one in (getattr(partition, "loss", None) for partition in partitions)
        if isinstance(one, (PartitionLoss, PairLoss))
    ]
    if any(one != own[0] for one in own):
        names = ", ".join(sorted({repr(one.name) for one in own}))
        raise ValueError(f"`loss` must be given, as the partitions were found under several losses; got {names}.")
    return own[0] if own else vi()


def as_metric(loss: PartitionLoss, needed_by: str) -> PartitionLoss:
    """Take a loss that is a metric.

    Raises
    ------
    ValueError
        If it is not one; the message lists those there are.
    """
    if not loss.metric:
        metrics = ", ".join(repr(name) for name, factory in LOSSES.items() if factory().metric)
        raise ValueError(f"`loss` must be a metric, as {needed_by} needs; got {loss.name!r}, metrics are {metrics}.")
    return loss


def loss_attrs(loss: Objective, prefix: str = "") -> dict[str, str]:
    """Name and parameters of a loss as attributes of a Dataset; :func:`objective_from` reads them."""
    return {f"{prefix}loss": loss.name, f"{prefix}loss_parameters": json.dumps(dict(loss.parameters))}


def loss_from(attrs: Mapping[Any, Any], prefix: str = "") -> PartitionLoss:
    """Do what :func:`objective_from` does for a loss between two partitions."""
    return as_loss(objective_from(attrs, prefix))


def objective_from(attrs: Mapping[Any, Any], prefix: str = "") -> Objective:
    """Make the loss again whose name and parameters are among these attributes.

    Raises
    ------
    KeyError
        If they are not.
    ValueError
        If there is no loss of that name.
    """
    name, parameters = attrs[f"{prefix}loss"], json.loads(attrs[f"{prefix}loss_parameters"])
    key = name.partition("(")[0]
    known: dict[str, Callable[..., Objective]] = {**LOSSES, **PAIR_LOSSES}
    if key not in known:
        raise ValueError(
            f"`dataset` must be of a loss in LOSSES; got {name!r}. Add a function that makes its record first: "
            f"LOSSES[{key!r}] = ..."
        )
    return known[key](**parameters)


def needed_by(loss: Objective) -> Need:
    """What the expected loss is computed from: Binder's loss needs the similarities only, and so do PAIR_LOSSES."""
    return "pairs" if isinstance(loss, PairLoss) or is_binder(loss) else "draws"


def is_binder(loss: Objective) -> TypeGuard[PartitionLoss]:
    """Whether the loss is b (B - A) + c (C - A) with h(x) = x (x - 1) / 2: a number of pairs of each kind."""
    if isinstance(loss, PairLoss):
        return False
    terms = loss.numerator
    return (
        loss.h is pairs
        and not loss.denominator
        and set(terms) == {"A", "B", "C"}
        and min(terms["B"], terms["C"]) > 0
        and terms["A"] == -(terms["B"] + terms["C"])
    )
