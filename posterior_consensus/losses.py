"""Losses between partitions, as data, and their posterior expectation.

With the contingency table of an estimate (cluster sizes n_k) and a draw (sizes m_l, joint cells n_kl) and a function h,
let

    A = sum h(n_kl),   B = sum h(n_k),   C = sum h(m_l),   top = h(n).

Every loss here is a ratio of two forms linear in top, A, B, C, max(B, C), min(B, C), B C / top and sqrt((top - B)(top -
C)), where h(x) = x (x - 1) / 2 counts pairs and h(x) = x log2 x measures information. A loss is therefore a table h and
sixteen numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.optimize import linear_sum_assignment

from posterior_consensus.draws import PartitionDraws, as_partition_draws
from posterior_consensus.kernels import contingency, search
from posterior_consensus.partitions import Labels, canonical_labels, contingency_table

Floats = npt.NDArray[np.float64]

TERMS = ("top", "A", "B", "C", "max(B, C)", "min(B, C)", "B C / top", "sqrt((top - B) (top - C))")


def pairs(n_items: int) -> Floats:
    """Return the table h(x) = x (x - 1) / 2 for x = 0 to `n_items`: the number of pairs in a cluster."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * (x - 1) / 2


def information(n_items: int) -> Floats:
    """Return the table h(x) = x log2 x for x = 0 to `n_items`: n times an entropy in bits is h(n) less its sum."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * np.log2(np.maximum(x, 1))


def _unscaled(n_items: int) -> float:
    return 1.0


def _per_item(n_items: int) -> float:
    return 1.0 / n_items


def _per_ordered_pair(n_items: int) -> float:
    return 2.0 / n_items**2


@dataclass(frozen=True)
class PartitionLoss:
    """A loss between an estimated and a drawn partition: scale(n) x numerator / denominator.

    Attributes
    ----------
    name : str
        Its key in LOSSES, with parameters where they are not the defaults.
    formula : str
        In terms of A, B, C and top.
    h : callable
        ``h(n_items)`` gives the table h(0), ..., h(n_items), float64.
    numerator, denominator : mapping of str to float
        Coefficients of the terms in TERMS. No denominator stands for 1. Where the denominator is 0 both partitions are
        trivial, and the loss is 0 if they are equal and 1 if not.
    scale : callable
        ``scale(n_items)`` multiplies the ratio.
    unit : str
        "bits", or "" for a number without a unit.
    upper : str
        Largest value it can take.
    metric : bool
        Whether it is a metric on partitions, as a credible ball needs.
    reference : str
        Where it is defined.
    """

    name: str
    formula: str
    h: Callable[[int], Floats]
    numerator: Mapping[str, float]
    denominator: Mapping[str, float] = field(default_factory=dict)
    scale: Callable[[int], float] = _unscaled
    unit: str = ""
    upper: str = "1"
    metric: bool = False
    reference: str = ""

    def coefficients(self) -> tuple[Floats, Floats]:
        """Return numerator and denominator as vectors of length eight, in the order of TERMS."""
        return _vector(self.numerator), _vector(self.denominator)

    def arrays(self, n_items: int) -> search.Loss:
        """Return the loss for `n_items` items as kernels take it."""
        return search.Loss(self.h(n_items), *self.coefficients())

    def __str__(self) -> str:
        return self.name


def _vector(coefficients: Mapping[str, float]) -> Floats:
    unknown = set(coefficients) - set(TERMS)
    if unknown:
        raise ValueError(f"A loss's terms must be among {TERMS}; got {sorted(unknown)}.")
    return np.array([coefficients.get(term, 0.0) for term in TERMS])


def binder(a: float = 1.0) -> PartitionLoss:
    """Binder's loss: pairs on which two partitions disagree, 2 / n^2 for each, in [0, 1] for a = 1.

    Parameters
    ----------
    a : float in (0, 2)
        Cost of separating a pair that the draw has together; 2 - a is that of joining a pair that the draw has apart.
        The least expected loss joins a pair alone where its similarity exceeds the threshold tau = 1 - a / 2.

    Returns
    -------
    PartitionLoss

    Notes
    -----
    L = (2 / n^2) [a (C - A) + (2 - a) (B - A)] with h(x) = x (x - 1) / 2 [1]_ [2]_.

    References
    ----------
    .. [1] Binder (1978), Biometrika 65(1), 31-38. https://doi.org/10.1093/biomet/65.1.31
    .. [2] Dahl, Johnson and Mueller (2022), Journal of Computational and Graphical Statistics 31(4), 1189-1201.
       https://doi.org/10.1080/10618600.2022.2069779
    """
    a = _checked_cost(a)
    return PartitionLoss(
        name="binder" if a == 1 else f"binder(a={a:g})",
        formula="(2 / n^2) (B + C - 2 A)" if a == 1 else f"(2 / n^2) ({2 - a:g} B + {a:g} C - 2 A)",
        h=pairs,
        numerator={"A": -2.0, "B": 2.0 - a, "C": a},
        scale=_per_ordered_pair,
        upper="1 - 1 / n" if a == 1 else f"{max(a, 2 - a):g} (1 - 1 / n)",
        metric=a == 1,
        reference="https://doi.org/10.1093/biomet/65.1.31",
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
    """
    a = _checked_cost(a)
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
    )


def one_minus_ari() -> PartitionLoss:
    """One minus the adjusted Rand index; above 1 where two partitions agree less than by chance.

    Notes
    -----
    L = ((B + C) / 2 - A) / ((B + C) / 2 - B C / top) with h(x) = x (x - 1) / 2 [1]_.

    References
    ----------
    .. [1] Hubert and Arabie (1985), Journal of Classification 2, 193-218. https://doi.org/10.1007/BF01908075
    """
    return PartitionLoss(
        name="omari",
        formula="((B + C) / 2 - A) / ((B + C) / 2 - B C / top)",
        h=pairs,
        numerator={"A": -1.0, "B": 0.5, "C": 0.5},
        denominator={"B": 0.5, "C": 0.5, "B C / top": -1.0},
        upper="2",
        reference="https://doi.org/10.1007/BF01908075",
    )


def jaccard() -> PartitionLoss:
    """Jaccard distance of the sets of pairs that two partitions have together.

    Notes
    -----
    L = (B + C - 2 A) / (B + C - A) with h(x) = x (x - 1) / 2; a metric, as the Jaccard distance of any two sets [1]_.

    References
    ----------
    .. [1] Levandowsky and Winter (1971), Nature 234, 34-35. https://doi.org/10.1038/234034a0
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

    Notes
    -----
    L = (B + C - 2 A) / (top - A) with h(x) = x log2 x [1]_.

    References
    ----------
    .. [1] Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11, 2837-2854.
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

    Notes
    -----
    L = (max(B, C) - A) / n with h(x) = x log2 x [1]_.

    References
    ----------
    .. [1] Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11, 2837-2854.
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

    Notes
    -----
    L = (max(B, C) - A) / (top - min(B, C)) with h(x) = x log2 x [1]_.

    References
    ----------
    .. [1] Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11, 2837-2854.
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
        reference="https://jmlr.org/papers/v3/strehl02a.html",
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


def _checked_cost(a: float) -> float:
    if not isinstance(a, (int, float, np.integer, np.floating)):
        raise TypeError(f"`a` must be a number; got {type(a).__name__}.")
    if not 0 < a < 2:
        raise ValueError(f"`a` must lie between 0 and 2, both excluded; got {a!r}.")
    return float(a)


def as_loss(loss: str | PartitionLoss) -> PartitionLoss:
    """Take a loss by name or as a record.

    Raises
    ------
    ValueError
        If there is no loss of that name; the message lists those there are.
    TypeError
        If `loss` is neither.
    """
    if isinstance(loss, PartitionLoss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"`loss` must be a name or a PartitionLoss such as binder(a=0.5); got {type(loss).__name__}.")
    factory = LOSSES.get(loss.lower())
    if factory is None:
        raise ValueError(f"`loss` must be a PartitionLoss or one of {', '.join(map(repr, LOSSES))}; got {loss!r}.")
    return factory()


def loss_matrix(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Return the loss of every partition (P, n) against every draw, (P, N)."""
    arrays = loss.arrays(draws.n_items)
    sizes = partitions.max(axis=1).astype(np.int64) + 1
    joint = contingency.joint_sums(partitions, sizes, draws.labels, draws.n_clusters, arrays.h)
    return combine_sums(
        loss,
        draws.n_items,
        joint,
        contingency.size_sums(partitions, sizes, arrays.h),
        contingency.size_sums(draws.labels, draws.n_clusters, arrays.h),
    )


def combine_sums(loss: PartitionLoss, n_items: int, a: Floats, b: Floats, c: Floats) -> Floats:
    """Return losses (P, N) from the sums A (P, N), B (P,) and C (N,)."""
    numerator, denominator = loss.coefficients()
    return loss.scale(n_items) * search.combine(numerator, denominator, loss.h(n_items)[-1], a, b, c)


def mean_loss(draws: PartitionDraws, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats:
    """Return the expected loss (P,) of every partition (P, n)."""
    return draws.mean(loss_matrix(partitions, draws, loss))


def partition_loss(estimate: Any, truth: Any, loss: str | PartitionLoss = "vi") -> float:
    """Loss between two partitions of the same items.

    Parameters
    ----------
    estimate, truth : array_like of shape (n_items,), DataArray or result object
        Label vectors; the names of the labels do not matter.
    loss : str or PartitionLoss
        Name in LOSSES, or a record such as ``binder(a=0.5)``.

    Returns
    -------
    float
        In the loss's unit.

    Raises
    ------
    ValueError
        If the two have different numbers of items, or labels are missing, negative or not whole numbers.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], "vi")
    1.0
    >>> pc.partition_loss([1, 1, 2, 2, 3], [1, 2, 2, 3, 3], "binder")
    0.32
    """
    record = as_loss(loss)
    ours, theirs = _two_partitions(estimate, truth)
    return float(loss_matrix(ours[np.newaxis], as_partition_draws(theirs[np.newaxis]), record)[0, 0])


def misclassification_distance(partition: Any, other: Any) -> float:
    """Least share of items labelled differently over all matchings of two partitions' clusters.

    Parameters
    ----------
    partition, other : array_like of shape (n_items,), DataArray or result object

    Returns
    -------
    float
        1 - max over one-to-one matchings of sum n_{k, match(k)} / n, in [0, 1); items of unmatched clusters count as
        errors. A metric on partitions [1]_.

    Raises
    ------
    ValueError
        As :func:`partition_loss`.

    References
    ----------
    .. [1] Meila and Heckerman (2001), Machine Learning 42, 9-29. https://doi.org/10.1023/A:1007648401407

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.misclassification_distance([0, 0, 1, 1], [1, 1, 1, 0])
    0.25
    """
    ours, theirs = _two_partitions(partition, other)
    table = contingency_table(ours, theirs)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return 1.0 - float(table[rows, columns].sum()) / ours.size


def _two_partitions(one: Any, other: Any) -> tuple[Labels, Labels]:
    ours = canonical_labels(getattr(one, "labels", one))
    theirs = canonical_labels(getattr(other, "labels", other))
    if ours.size != theirs.size:
        raise ValueError(f"Two partitions must have the same items; got {ours.size} and {theirs.size} labels.")
    return ours, theirs


def expected_loss(draws: Any, partitions: Any, loss: str | PartitionLoss = "vi") -> xr.Dataset:
    """Posterior expected loss of one partition or of many, with its Monte Carlo standard error.

    Parameters
    ----------
    draws : PartitionDraws or anything :func:`as_partition_draws` takes
    partitions : partition or sequence of partitions
        One result object, DataArray or label vector of shape (n_items,), or a list or array (n_partitions, n_items) of
        them.
    loss : str or PartitionLoss
        Name in LOSSES, or a record such as ``vi(a=0.5)``.

    Returns
    -------
    xarray.Dataset
        ``expected_loss`` and ``mcse``, in the loss's unit, over the dimension ``partition``; without dimension for a
        single partition.

    Raises
    ------
    ValueError
        If a partition does not label the draws' items, or the draws are at fault as :func:`as_partition_draws` says.

    See Also
    --------
    PartitionDraws.mcse : how the standard error is computed.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> pc.expected_loss(draws, [[0, 0, 1, 1], [0, 0, 0, 0]], "binder")["expected_loss"].values
    array([0.09375, 0.46875])
    """
    draws, record = as_partition_draws(draws), as_loss(loss)
    single = not _is_many(partitions)
    rows = np.stack(
        [draws.as_labels(partition, "partitions") for partition in ([partitions] if single else partitions)]
    )
    losses = loss_matrix(rows, draws, record)
    dataset = xr.Dataset(
        {"expected_loss": ("partition", draws.mean(losses)), "mcse": ("partition", draws.mcse(losses))},
        attrs={"loss": record.name, "unit": record.unit, "n_draws": draws.n_draws},
    )
    return dataset.squeeze("partition") if single else dataset


def _is_many(partitions: Any) -> bool:
    if isinstance(partitions, (np.ndarray, xr.DataArray)):
        return partitions.ndim > 1
    return isinstance(partitions, Sequence) and len(partitions) > 0 and not np.isscalar(partitions[0])
