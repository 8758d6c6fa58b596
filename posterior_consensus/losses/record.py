"""What a loss between partitions is: a record of data.

With the contingency table of an estimate (cluster sizes n_k) and a draw (sizes m_l, joint cells n_kl) and a function h,
let

    A = sum h(n_kl),   B = sum h(n_k),   C = sum h(m_l),   top = h(n).

Every loss here is a ratio of two forms linear in top, A, B, C, max(B, C), min(B, C), B C / top and sqrt((top - B)(top -
C)), where h(x) = x (x - 1) / 2 counts pairs and h(x) = x log2 x measures information. A loss is therefore a table h,
sixteen numbers and a scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from posterior_consensus.kernels.loss import LinearLoss, Loss, as_kernels_take_it

Floats = npt.NDArray[np.float64]

TERMS = ("top", "A", "B", "C", "max(B, C)", "min(B, C)", "B C / top", "sqrt((top - B) (top - C))")


Need = Literal["pairs", "draws"]
"""What a method or a loss asks for: similarities of pairs, or posterior draws."""


def _unscaled(n_items: int) -> float:
    return 1.0


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
    parameters : mapping of str to float or str
        Arguments with which its factory in LOSSES makes it again.
    """

    name: str
    formula: str
    h: Callable[[int], Floats]
    numerator: Mapping[str, float] = field(hash=False)
    denominator: Mapping[str, float] = field(default_factory=dict, hash=False)
    scale: Callable[[int], float] = _unscaled
    unit: str = ""
    upper: str = "1"
    metric: bool = False
    reference: str = ""
    parameters: Mapping[str, float | str] = field(default_factory=dict, hash=False)

    def arrays(self, n_items: int) -> LinearLoss | Loss:
        """Return the loss for `n_items` items as kernels take it."""
        numerator, denominator = _coefficients(self.numerator), _coefficients(self.denominator)
        taken: LinearLoss | Loss = as_kernels_take_it(self.h(n_items), numerator, denominator)
        return taken

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PairLoss:
    """A loss of a partition given the posterior similarity matrix; it is not a mean of losses over draws.

    With X the similarity matrix and S_i the cluster of item i in the partition, it is a function of three numbers for
    each item: the size of S_i, the sum of X_ij over the members j of S_i, i itself included, and the sum of X_ij over
    all j.

    Attributes
    ----------
    name : str
        Its key in PAIR_LOSSES.
    formula : str
        In terms of s, l and r, the three numbers in the order above.
    value : callable
        ``value(s, l, r)`` of three arrays (..., n_items) is the loss, shape (...).
    item_terms : callable, optional
        ``item_terms(s, l)``, whose sum over the items is n_items times the loss, up to a constant. Greedy search
        minimises it.
    pair_threshold : callable, optional
        ``pair_threshold(value, mean_similarity)`` is the threshold tau of the Binder loss that falls where this loss
        falls below that value. Greedy search minimises that loss.
    unit : str
        "bits", or "" for a number without a unit.
    upper : str
        Largest value it can take.
    reference : str
        Where it is defined.
    parameters : mapping of str to float
        Arguments of the factory in PAIR_LOSSES that makes it.
    falls_with_clusters : bool
        Whether splitting a cluster never raises it, so that it compares partitions of one number of clusters only.
    """

    name: str
    formula: str
    value: Callable[[Floats, Floats, Floats], Floats]
    item_terms: Callable[[Floats, Floats], Floats] | None = None
    pair_threshold: Callable[[float, float], float] | None = None
    unit: str = ""
    upper: str = "1"
    reference: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    falls_with_clusters: bool = False

    def __str__(self) -> str:
        return self.name


Objective = PartitionLoss | PairLoss
"""What a partition can be chosen by."""


def _coefficients(terms: Mapping[str, float]) -> tuple[float, ...]:
    unknown = set(terms) - set(TERMS)
    if unknown:
        raise ValueError(f"A loss's terms must be among {TERMS}; got {sorted(unknown)}.")
    return tuple(float(terms.get(term, 0.0)) for term in TERMS)
