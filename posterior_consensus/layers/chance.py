"""Expected loss between random labels: the two partitions keep the sizes of their clusters, but not their items."""

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.kernels import loss as loss_kernels
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.executor import in_order

_AT_ONCE = 2**15  # cells of a table whose distributions are gone through together
_TINY = 1e-20  # probability, relative to that of the mode, below which no count matters
_EVERY = 8  # steps between looks at which cells are done

Integers = npt.NDArray[np.int64]


def chance_losses(
    draws: PartitionDraws, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp], loss: PartitionLoss
) -> Floats:
    """Expected loss (P,) of draw `rows[p]` as an estimate of draw `others[p]` if the labels of either are permuted.

    With the clusters' sizes fixed, B and C are, and A has the expectation of :func:`expected_joint_sum`. A loss that is
    linear in A has its exact expectation. Another one, a ratio, is taken at the expected A.
    """
    arrays = loss.arrays(draws.n_items)
    sizes = [np.unique(own, return_counts=True) for own in np.split(draws.backend.sizes, draws.starts[1:-1])]
    calls = ((sizes[one], sizes[other], arrays.h) for one, other in zip(rows.tolist(), others.tolist(), strict=True))
    joint = np.fromiter(in_order(expected_joint_sum, calls), np.float64, rows.size)
    own = np.array([numbers @ arrays.h[values] for values, numbers in sizes])
    return loss.scale(draws.n_items) * loss_kernels.combine_pairs(arrays, joint, own[rows], own[others])


def expected_joint_sum(
    sizes: tuple[Integers, npt.NDArray[np.intp]], others: tuple[Integers, npt.NDArray[np.intp]], h: Floats
) -> float:
    """Expected sum of h over the joint cells of two partitions, given their distinct sizes and the number of each.

    A cell of clusters of a and b of n items has a hypergeometric count,

        E sum h(n_kl) = sum over a, b of number(a) number(b) E h(X),    X ~ Hypergeometric(n, a, b),

    for h(x) = x log2 x as in the expected mutual information of Vinh, Epps and Bailey (2010), Journal of Machine
    Learning Research 11, 2837-2854, https://jmlr.org/papers/v11/vinh10a.html.
    """
    shape = sizes[0].size, others[0].size
    a, b = (np.broadcast_to(one, shape).ravel() for one in (sizes[0][:, np.newaxis], others[0]))
    numbers = np.outer(sizes[1], others[1]).ravel()
    parts = (slice(first, first + _AT_ONCE) for first in range(0, a.size, _AT_ONCE))
    return float(
        sum(numbers[part] @ _expected(a[part].astype(np.int64), b[part].astype(np.int64), h) for part in parts)
    )


def _expected(a: Integers, b: Integers, h: Floats) -> Floats:
    """E h(X) of hypergeometric counts, by ratios of probabilities from each mode outwards."""
    n = h.size - 1
    mode = (a + 1) * (b + 1) // (n + 2)
    total, value = np.ones(a.size), h[mode]
    for up in (True, False):
        at, x, ratio, own, other = np.arange(a.size), mode.copy(), np.ones(a.size), a, b
        while at.size:
            for _ in range(_EVERY):
                if up:
                    ratio = ratio * ((own - x) * (other - x)) / ((x + 1) * (n - own - other + x + 1))
                    x = x + 1
                else:
                    ratio = ratio * (x * (n - own - other + x)) / ((own - x + 1) * (other - x + 1))
                    x = x - 1
                x = np.clip(x, 0, np.minimum(own, other))  # beyond its ends, where the ratio is 0
                total[at] += ratio
                value[at] += ratio * h[x]
            left = ratio > _TINY
            at, x, ratio, own, other = at[left], x[left], ratio[left], own[left], other[left]
    return np.asarray(value / total)
