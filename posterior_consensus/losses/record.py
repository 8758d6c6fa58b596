"""Records of losses: data that answer the same questions, whether of a PartitionLoss or of a PairLoss.

With the contingency table of a partition (cluster sizes n_k) and a draw (sizes m_l, joint cells n_kl) and a function h,
let

    A = sum h(n_kl),   B = sum h(n_k),   C = sum h(m_l),   top = h(n).

A PartitionLoss is a ratio of two weighted sums of the terms in TERMS, where h(x) = x (x - 1) / 2 counts pairs and
h(x) = x log2 x measures information. It is given by h, the coefficients and a scale. Losses of row or column maxima,
such as van Dongen's, are not of this kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss, as_kernels_take_it
from posterior_consensus.runtime.aliases import Floats

# Kernels take coefficients by position: a new term is also computed in `_linear_form` of `kernels/loss.py` and in
# `_value` of `benchmarks/_descent.py`. Three lists name it: the docstrings of `PartitionLoss` and of `kernels/loss.py`
# (which counts the terms, too), and "A loss of your own" in `docs/background/losses.md`.
TERMS = ("top", "A", "B", "C", "max(B, C)", "min(B, C)", "B C / top", "sqrt((top - B) (top - C))")


def _unscaled(n_items: int) -> float:
    return 1.0


@dataclass(frozen=True)
class Loss(ABC):
    """The criterion of a consensus partition: a :class:`PartitionLoss`, :class:`NoiseLoss` or :class:`PairLoss`.

    Attributes
    ----------
    name : str
        Its key in LOSSES, NOISE_LOSSES or PAIR_LOSSES, with parameters if they are not the defaults.
    formula : str
    unit : str
        "bits", or "" for a number without a unit.
    upper : str
        Upper bound, as a Python expression in n; "log2 n", and a space for a product, may be part of it. Only tests
        evaluate it.
    metric : bool
        Whether it is a metric on partitions, as a credible ball needs.
    falls_with_clusters : bool
        Whether splitting a cluster never raises it, so that it compares partitions of one number of clusters only.
    reference : str
        Where it is defined.
    parameters : mapping of str to float or str
        Arguments with which its factory makes it again.
    """

    name: str
    formula: str
    _: KW_ONLY
    unit: str = ""
    upper: str = "1"
    metric: bool = False
    falls_with_clusters: bool = False
    reference: str = ""
    parameters: Mapping[str, float | str] = field(default_factory=dict, hash=False)

    @property
    def needs_draws(self) -> bool:
        """Whether its expectation is computed from draws: a PairLoss and Binder's loss need similarities only."""
        return self.by_draw() is not None and self.as_binder() is None

    @property
    def has_noise(self) -> bool:
        """Whether a partition may call items noise, by the label -1."""
        return False

    @property
    @abstractmethod
    def is_linear(self) -> bool:
        """Whether its posterior expectation is a sum over the clusters, up to a constant."""

    @property
    def has_kinks(self) -> bool:
        """Whether the larger or the smaller sum of partition and draw counts, so that slopes change where they meet."""
        return False

    @abstractmethod
    def expected(self, sizes: Floats, links: Floats, sums: Floats) -> Floats:
        """Return its posterior expectation (P,) given the similarities of pairs, where it needs no more.

        Parameters
        ----------
        sizes, links : ndarray of shape (P, n_items)
            Size of each item's cluster, and the sum of the item's similarities to its members, itself included.
        sums : ndarray of shape (n_items,)
            Sum of each item's similarities to all items.
        """

    @property
    def scale(self) -> Callable[[int], float]:
        """Factor, given the number of items, by which to multiply what a search compares."""
        return _unscaled

    def as_binder(self) -> PartitionLoss | None:
        """Return the loss if it is Binder's, with any costs of the two kinds of pairs, else None."""
        return None

    def by_draw(self) -> PartitionLoss | NoiseLoss | None:
        """Return the loss if its posterior expectation is the mean of losses against draws, else None."""
        return None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PartitionLoss(Loss):
    """A loss between a partition and a posterior draw: scale(n) x numerator / denominator.

    Its formula is in terms of A, B and C, the sums of h over joint cells and over the cluster sizes of the partition
    and of the draw, and of top = h(n). Greedy search relies on a linear loss that falls with A and rises with B. With
    any other loss, runs first allocate the items by B + C - 2 A in its place: it should be small where that is. All
    later moves use the loss itself. Further attributes are those of :class:`Loss`.

    Attributes
    ----------
    h : callable
        ``h(n_items)`` returns an array, float64: the values h(x) for x = 0, 1, ..., n_items. It takes any number of
        items from 1 on. Greedy search relies on h(0) = h(1) = 0 and h(x) + h(y) <= h(x + y); "B C / top" also needs
        h(n) >= 1 from two items on. As losses are compared and pickled, it is a function at module level. If it has
        parameters, it is a record with ``__call__`` that can be compared and pickled.
    numerator, denominator : mapping of str to float
        Coefficients of "top", "A", "B", "C", "max(B, C)", "min(B, C)", "B C / top" or "sqrt((top - B) (top - C))". No
        denominator stands for 1. If the denominator is 0 (one or both partitions are trivial), the ratio is 0 if
        A = B = C, as for equal partitions, and 1 if not.
    scale : callable
        ``scale(n_items)`` multiplies the ratio.
    """

    h: Callable[[int], Floats]
    numerator: Mapping[str, float] = field(hash=False)
    denominator: Mapping[str, float] = field(default_factory=dict, hash=False)
    scale: Callable[[int], float] = _unscaled

    def arrays(self, n_items: int) -> LinearLoss | GeneralLoss:
        """Return the loss for `n_items` items as kernels take it."""
        numerator, denominator = _coefficients(self.numerator), _coefficients(self.denominator)
        return as_kernels_take_it(self.h(n_items), numerator, denominator)

    @property
    def is_linear(self) -> bool:
        """Whether it is a weighted sum of A, B, C and top."""
        return isinstance(self.arrays(1), LinearLoss)

    @property
    def has_kinks(self) -> bool:
        """Whether max(B, C) or min(B, C) counts, so that slopes change where B = C."""
        return any(terms.get(one) for terms in (self.numerator, self.denominator) for one in ("max(B, C)", "min(B, C)"))

    @property
    def is_symmetric(self) -> bool:
        """Whether partition and draw count alike."""
        return all(terms.get("B") == terms.get("C") for terms in (self.numerator, self.denominator))

    def by_draw(self) -> PartitionLoss:
        """Return the loss."""
        return self

    def as_binder(self) -> PartitionLoss | None:
        """Return the loss if it is b (B - A) + c (C - A), a number of pairs of each kind, else None.

        Its h must be the function `pairs` itself: another one of the same values is not recognized.
        """
        terms = self.numerator
        is_binder = (
            self.h is pairs
            and not self.denominator
            and set(terms) == {"A", "B", "C"}
            and min(terms["B"], terms["C"]) > 0
            and terms["A"] == -(terms["B"] + terms["C"])
        )
        return self if is_binder else None

    def expected(self, sizes: Floats, links: Floats, sums: Floats) -> Floats:
        """Return the posterior expectation (P,) of Binder's loss, see :meth:`Loss.expected`."""
        a, b, c = (self.numerator[term] for term in "ABC")
        n = sizes.shape[-1]
        joint, together, drawn = ((x.sum(axis=-1) - n) / 2 for x in (links, sizes, sums))
        return self.scale(n) * (a * joint + b * together + c * drawn)


@dataclass(frozen=True)
class NoiseLoss(Loss):
    """A loss between partitions that may call items noise: Binder's loss, and a cost of each item that one calls noise.

    Pairs of items that both partitions have in clusters count as in `binder`. Each item that one of the two calls noise
    and the other does not costs as much as `noise` (n - 1) pairs. Further attributes are those of :class:`Loss`.

    Attributes
    ----------
    binder : PartitionLoss
        Binder's loss, which it is without noise.
    noise : float
        Cost of an item that one calls noise and the other does not, in pairs with each other item.
    """

    binder: PartitionLoss
    noise: float

    @property
    def is_linear(self) -> bool:
        """Whether its posterior expectation is a sum over the clusters and the noise: True."""
        return True

    @property
    def needs_draws(self) -> bool:
        """True, because a similarity matrix does not say why items are apart."""
        return True

    @property
    def has_noise(self) -> bool:
        """True."""
        return True

    @property
    def scale(self) -> Callable[[int], float]:
        """Factor of a pair."""
        return self.binder.scale

    def by_draw(self) -> NoiseLoss:
        """Return the loss."""
        return self

    def expected(self, sizes: Floats, links: Floats, sums: Floats) -> Floats:
        """Return its posterior expectation (P,) without noise, see :meth:`Loss.expected`."""
        return self.binder.expected(sizes, links, sums)


@dataclass(frozen=True)
class PairLoss(Loss):
    """A loss of a partition given the posterior similarity matrix; it is not a mean of losses over draws.

    With X the similarity matrix and S_i the cluster of item i in the partition, it is a function of three numbers for
    each item: the size of S_i, the sum of X_ij over the members j of S_i, i itself included, and the sum of X_ij over
    all j. Its formula calls them s, l and r, in this order; further attributes are those of :class:`Loss`.

    Attributes
    ----------
    value : callable
        ``value(sizes, links, sums)`` of three arrays (..., n_items) is the loss, shape (...).
    item_terms : callable, optional
        ``item_terms(sizes, links)``, whose sum over the items is n_items times the loss, up to a constant. Greedy
        search minimizes it.
    pair_threshold : callable, optional
        ``pair_threshold(value, mean_similarity)`` is the threshold tau of the Binder loss that falls where this loss
        falls below that value. Greedy search minimizes that loss.
    given_mean : callable, optional
        ``given_mean(mean_similarity)`` is the PartitionLoss that replaces this one once the similarities are known.
    """

    value: Callable[[Floats, Floats, Floats], Floats]
    item_terms: Callable[[Floats, Floats], Floats] | None = None
    pair_threshold: Callable[[float, float], float] | None = None
    given_mean: Callable[[float], PartitionLoss] | None = None

    @property
    def is_linear(self) -> bool:
        """Whether it is a sum of terms of the items."""
        return self.item_terms is not None

    def expected(self, sizes: Floats, links: Floats, sums: Floats) -> Floats:
        """Return the loss (P,), see :meth:`Loss.expected`."""
        return self.value(sizes, links, sums)


def pairs(n_items: int) -> Floats:
    """Return the table h(x) = x (x - 1) / 2 for x = 0 to `n_items`: the number of pairs in a cluster."""
    x = np.arange(n_items + 1, dtype=np.float64)
    return x * (x - 1) / 2


def _coefficients(terms: Mapping[str, float]) -> tuple[float, ...]:
    unknown = set(terms) - set(TERMS)
    if unknown:
        raise ValueError(f"A loss's terms must be among {TERMS}; got {sorted(unknown)}.")
    return tuple(float(terms.get(term, 0.0)) for term in TERMS)
