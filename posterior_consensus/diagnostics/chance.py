"""Expected loss between random labels: the two partitions keep the sizes of their clusters, but not their items."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.kernels import contingency
from posterior_consensus.kernels import loss as loss_kernels
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.aliases import Floats, Positions

_ENOUGH_PAIRS = 100  # of runs, for what random labels have


def chance_losses(draws: PartitionDraws, rows: Positions, others: Positions, loss: PartitionLoss) -> Floats:
    """Expected loss (P,) of draw `rows[p]` against draw `others[p]` if the labels of either are permuted.

    With the clusters' sizes fixed, B and C are, and A has the expectation of :func:`expected_joint_sums`. A loss that
    is linear in A has its exact expectation. Another one, a ratio, is taken at the expected A. Of runs that lack items,
    the sizes are those of the items in common.
    """
    arrays = loss.arrays(draws.n_items)
    if draws.lacks_items:
        return _chance_on_common(draws, rows, others, loss)
    sizes = np.split(draws.cluster_sizes, draws.starts[1:-1])
    joint, own = expected_joint_sums(sizes, rows, others, arrays.h)
    return loss.scale(draws.n_items) * loss_kernels.combine_pairs(arrays, joint, own[rows], own[others])


def _chance_on_common(draws: PartitionDraws, rows: Positions, others: Positions, loss: PartitionLoss) -> Floats:
    h, codes, losses = loss.arrays(draws.n_items).h, draws.backend.values, np.zeros(rows.size)
    for p, (row, other) in enumerate(zip(rows.tolist(), others.tolist(), strict=True)):
        both = (codes[row] > 0) & (codes[other] > 0)
        n = int(np.count_nonzero(both))
        if n == 0:
            continue
        counts = [np.bincount(codes[t][both], minlength=CLUSTERS_FROM) for t in (row, other)]
        sizes = [np.append(own[CLUSTERS_FROM:], np.ones(own[1], np.int64)) for own in counts]  # of noise one each
        sizes = [own[own > 0] for own in sizes]
        joint, own = expected_joint_sums(sizes, np.array([0]), np.array([1]), h[: n + 1])
        losses[p] = loss.scale(n) * loss_kernels.combine_pairs(loss.arrays(n), joint, own[:1], own[1:])[0]
    return losses


def mean_chance(draws: PartitionDraws, loss: PartitionLoss) -> float:
    """Mean distance of two runs with random labels; of many runs, of each and those that follow it in their order."""
    n = draws.n_draws
    rows, others = np.triu_indices(n, 1)
    if not rows.size:
        return np.nan
    lag = others - rows
    near = np.minimum(lag, n - lag) <= -(-_ENOUGH_PAIRS // n)
    rows, others = rows[near], others[near]
    expected = chance_losses(draws, rows, others, loss)
    if not loss.is_symmetric:
        expected = (expected + chance_losses(draws, others, rows, loss)) / 2
    return float(expected.mean())


def loss_without_structure(draws: PartitionDraws, loss: PartitionLoss) -> float:
    """Least expected loss against draws with clusters of the same sizes, but the items of each draw permuted.

    The loss is linear. One cluster of all items, or each item in its own, then attains the minimum: a test enumerates
    all partitions of few items.
    """
    n, arrays = draws.n_items, loss.arrays(draws.n_items)
    own_sums = np.add.reduceat(arrays.h[draws.cluster_sizes], draws.starts[:-1])
    if draws.lacks_items:
        top, none = arrays.h[draws.n_present], np.zeros(draws.n_draws)
        scales = draws.relative_scales(loss) * loss.scale(n)
        trivial = np.array([(own_sums, top, own_sums, top), (none, none, own_sums, top)])
        losses = [scales * loss_kernels.combine_on_common(arrays, np.ascontiguousarray(one.T)) for one in trivial]
        return float(draws.samples.mean(np.stack(losses)).min())
    own = float(draws.samples.mean(own_sums))
    joint, partition, drawn = np.array([(own, arrays.h[n], own), (n * arrays.h[1], n * arrays.h[1], own)]).T.copy()
    return float(loss.scale(n) * loss_kernels.combine_pairs(arrays, joint, partition, drawn).min())


def expected_joint_sums(
    sizes: Sequence[npt.NDArray[np.integer]], rows: Positions, others: Positions, h: Floats
) -> tuple[Floats, Floats]:
    """Expected sums of h (P,) over the joint cells of two partitions each, and (N,) over the clusters of each.

    `sizes` are those of the clusters of each partition. A cell of clusters of a and b of n items has a hypergeometric
    count,

        E sum h(n_kl) = sum over a, b of number(a) number(b) E h(X),    X ~ Hypergeometric(n, a, b),

    for h(x) = x log2 x as in the expected mutual information of Vinh, Epps and Bailey (2010), Journal of Machine
    Learning Research 11, 2837-2854, https://jmlr.org/papers/v11/vinh10a.html.
    """
    distinct = [np.unique(own, return_counts=True) for own in sizes]
    values, numbers = (np.concatenate(part).astype(np.int64) for part in zip(*distinct, strict=True))
    starts = np.cumsum([0, *(own.size for own, _ in distinct)])
    own = np.array([counts @ h[those] for those, counts in distinct])
    return contingency.expected_sums(values, numbers, starts, rows, others, h), own
