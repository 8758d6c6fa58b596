"""Losses of a partition: from another partition, from every draw, and in posterior expectation."""

from collections.abc import Iterable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble import counting
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.partitions import Labels, alone, canonical_rows, smallest_dtype
from posterior_consensus.ensemble.r_hat import doubt_of
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.kernels import contingency
from posterior_consensus.kernels import loss as loss_kernels
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.losses.record import Loss, NoiseLoss, PairLoss, PartitionLoss
from posterior_consensus.runtime.aliases import Floats

_AT_ONCE = 256  # rows of a matrix of losses


def loss_matrix(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss | NoiseLoss) -> Floats:
    """Return the loss of every partition (P, n) against every draw, (P, N).

    For a loss with noise, labels of -1 are noise. Of runs that lack items, it is the loss of those that they have, and
    labels of -1 are items that a partition lacks.
    """
    if draws.lacks_items:
        pairs = np.stack([one.ravel() for one in np.indices((len(partitions), draws.n_draws))], axis=1)
        codes = np.where(partitions < 0, 0, partitions + np.int32(CLUSTERS_FROM))
        found = _losses_on_common(codes, draws, pairs, loss)
        return _with_unknown(found.reshape(-1, draws.n_draws), draws.weights)
    if isinstance(loss, NoiseLoss):
        if draws.has_noise or partitions.min() < 0:
            return _losses_with_noise(partitions, draws, loss)
        loss = loss.binder
    arrays, n_clusters = loss.arrays(draws.n_items), partitions.max(axis=1).astype(np.int64) + 1
    joint, drawn = counting.joint_sums(draws.backend, partitions, arrays.h)
    own = contingency.size_sums(counting.alike(partitions, n_clusters, draws.backend.dtype), n_clusters, arrays.h)
    return loss.scale(draws.n_items) * loss_kernels.combine(arrays, joint, own, drawn)


def _losses_on_common(
    codes: npt.NDArray[Any], draws: PartitionDraws, pairs: npt.NDArray[np.intp], loss: PartitionLoss | NoiseLoss
) -> Floats:
    """Losses (M,) of label vectors `codes[p]` against draw `t`, for each row (p, t) of pairs, of the items in common.

    Codes are as in the backend of :class:`RunsWithMissing`. NaN without items in common.
    """
    if isinstance(loss, NoiseLoss):
        raise ValueError(
            "`loss` must be a loss without noise for runs that lack items, such as 'vi' or 'binder'; got "
            f"{loss.name!r}. With 'vi', each item that a run calls noise is a cluster of its own in that run."
        )
    arrays = loss.arrays(draws.n_items)
    sums = contingency.sums_on_common(codes, draws.backend.values, draws.backend.n_clusters, pairs, arrays.h)
    numbers, which = np.unique(sums[:, 3].astype(np.intp), return_inverse=True)
    scales = np.array([loss.scale(int(number)) if number else np.nan for number in numbers])
    sums[:, 3] = arrays.h[numbers][which]
    return np.asarray(scales[which] * loss_kernels.combine_on_common(arrays, sums))


def _with_unknown(losses: Floats, weights: Floats) -> Floats:
    """Losses (P, N) with the mean of the known ones in place of NaN, of runs without items in common."""
    unknown = np.isnan(losses)
    for row, gaps in zip(losses, unknown, strict=True):
        if gaps.any():
            known = weights * ~gaps
            row[gaps] = known @ np.nan_to_num(row) / known.sum() if known.any() else 0.0
    return losses


def labels_for(draws: PartitionDraws, loss: Loss) -> npt.NDArray[Any]:
    """Labels (N, n) of draws as the loss counts them: -1 for noise if it has some."""
    return draws.marked_labels() if loss.has_noise else draws.labels


def _losses_with_noise(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: NoiseLoss) -> Floats:
    """:func:`loss_matrix` where partitions or draws have noise."""
    joining, separating = (loss.binder.numerator[term] for term in "BC")
    backend, n = draws.backend, draws.n_items
    noise, active = partitions < 0, draws.in_clusters()
    labels = alone(partitions)
    sizes = labels.max(axis=1).astype(np.int64) + 1
    h = loss.binder.h(n)
    both = counting.joint_sums(backend, counting.alike(labels, sizes, backend.dtype), h)[0]
    in_clusters = canonical_rows(np.where(noise, np.arange(1, n + 1), 0).astype(smallest_dtype(n + 1)), n + 1)
    drawn = counting.joint_sums(backend, counting.alike(*in_clusters, backend.dtype), h)[0]
    own, items = np.empty(both.shape), np.empty(both.shape)
    for row, (partition, is_noise) in enumerate(zip(labels, noise, strict=True)):
        order = np.flatnonzero(~is_noise)
        order = order[np.argsort(partition[order], kind="stable")]
        starts = np.flatnonzero(np.diff(partition[order], prepend=-1))
        found = np.zeros((draws.n_draws, 0), np.int64)
        if order.size:
            found = np.stack([np.add.reduceat(one[order], starts, dtype=np.int64) for one in active])
        own[row] = (found * (found - 1) // 2).sum(axis=1)
        items[row] = order.size + np.count_nonzero(active, axis=1) - 2 * found.sum(axis=1)
    sums = joining * (own - both) + separating * (drawn - both) + loss.noise * (n - 1) * items
    return loss.scale(n) * sums


def losses_of_draws(rows: npt.NDArray[np.intp], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Return the loss of some draws, by row number, against every draw, (rows.size, N)."""
    if draws.lacks_items:
        pairs = np.stack([one.ravel() for one in np.indices((rows.size, draws.n_draws))], axis=1)
        found = _losses_on_common(draws.backend.of_draws(rows), draws, pairs, loss)
        return _with_unknown(found.reshape(-1, draws.n_draws), draws.weights)
    arrays = loss.arrays(draws.n_items)
    joint, drawn = counting.joint_sums_of_draws(draws.backend, rows, arrays.h)
    return loss.scale(draws.n_items) * loss_kernels.combine(arrays, joint, drawn[rows], drawn)


def unscaled_losses(
    partitions: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    n_clusters: npt.NDArray[np.int64],
    arrays: LinearLoss | GeneralLoss,
) -> Floats:
    """Do what :func:`loss_matrix` does for label vectors (N, n) with these numbers of clusters, but for the scale."""
    sizes = partitions.max(axis=1).astype(np.int64) + 1
    partitions = counting.alike(partitions, sizes, labels.dtype)
    joint, drawn = contingency.joint_sums(partitions, sizes, labels, n_clusters, arrays.h)
    own = contingency.size_sums(partitions, sizes, arrays.h)
    return loss_kernels.combine(arrays, joint, own, drawn)


def paired_losses(
    draws: PartitionDraws, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp], loss: PartitionLoss
) -> Floats:
    """Return the loss (P,) of draw `rows[p]` against draw `others[p]`, for each p."""
    if draws.lacks_items:
        return _losses_on_common(draws.backend.values, draws, np.stack([rows, others], axis=1), loss)
    arrays = loss.arrays(draws.n_items)
    joint = counting.paired_joint_sums(draws.backend, rows, others, arrays.h)
    own = counting.size_sums(draws.backend, arrays.h)
    return loss.scale(draws.n_items) * loss_kernels.combine_pairs(arrays, joint, own[rows], own[others])


def all_losses(draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Return the loss (N, N) of every draw against every draw; symmetric if B and C count alike."""
    if draws.lacks_items and loss.is_symmetric:
        losses, (one, other) = np.full((draws.n_draws,) * 2, np.nan), np.triu_indices(draws.n_draws, 1)
        losses[one, other] = losses[other, one] = paired_losses(draws, one, other, loss)
        losses = _with_unknown(losses, np.ones(draws.n_draws))  # also on the diagonal, which is no distance
        losses = (losses + losses.T) / 2
        every = np.arange(draws.n_draws)
        np.fill_diagonal(losses, paired_losses(draws, every, every, loss))
        return np.nan_to_num(losses)
    if draws.lacks_items:
        return loss_matrix(draws.labels, draws, loss)
    arrays = loss.arrays(draws.n_items)
    losses = counting.all_joint_sums(draws.backend, arrays.h)
    own = counting.size_sums(draws.backend, arrays.h)
    for rows in slices(draws.n_draws, _AT_ONCE):
        losses[rows] = loss_kernels.combine(arrays, losses[rows], own[rows], own)
    losses *= loss.scale(draws.n_items)
    if loss.is_symmetric:
        for row in range(draws.n_draws):  # a sum in another order may differ in its last digit
            losses[row + 1 :, row] = losses[row, row + 1 :]
    return losses


def losses_between(partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats:
    """Return the loss (P, P) of each of a few canonical partitions (P, n) against each."""
    n_clusters = partitions.max(axis=1).astype(np.int64) + 1
    labels = partitions.astype(smallest_dtype(int(n_clusters.max())))
    n_items = labels.shape[1]
    return loss.scale(n_items) * unscaled_losses(labels, labels, n_clusters, loss.arrays(n_items))


def mean_between(partitions: npt.NDArray[Any], loss: PartitionLoss) -> float:
    """Return the mean of a symmetric loss over all pairs of canonical partitions (P, n); 0 for a single one."""
    if len(partitions) == 1:
        return 0.0
    return float(losses_between(partitions, loss)[np.triu_indices(len(partitions), 1)].mean())


def draw_losses(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss | NoiseLoss) -> Floats:
    """Return the loss of every partition (P, n) expected given each draw, (P, N); only its mean counts.

    For Binder's loss the allocations are averaged out where their probabilities are known.
    """
    by_pairs = loss.binder if isinstance(loss, NoiseLoss) and partitions.min() >= 0 else loss
    binder = by_pairs.as_binder()
    marginal = None if binder is None else draws.marginal_losses(partitions, binder)
    return loss_matrix(partitions, draws, loss) if marginal is None else marginal


def mean_loss(source: PairSource, partitions: npt.NDArray[Any], loss: Loss) -> Floats:
    """Return the expected loss (P,) of every partition (P, n)."""
    by_draw = loss.by_draw()
    if by_draw is not None and (source.counted_draws is not None or loss.needs_draws):
        draws = source.as_draws(f"loss {loss.name!r}", lacking=True)
        return draws.samples.mean(loss_matrix(partitions, draws, by_draw))
    return loss_of_pairs(source, partitions, loss)


def least_loss(
    draws: PairSource, loss: Loss, blocks: Iterable[npt.NDArray[Any]]
) -> tuple[npt.NDArray[Any], list[float]]:
    """The first partition of minimum expected loss among blocks of them (P, n), and all expected losses."""
    best: npt.NDArray[Any] = np.empty(0, np.int32)
    least, losses = np.inf, []
    for block in blocks:
        if len(block) == 0:
            continue
        expected = mean_loss(draws, block, loss)
        losses += expected.tolist()
        if expected.min() < least:
            best, least = block[expected.argmin()], expected.min()
    return best, losses


def judged_labels(source: PairSource, partition: Any, loss: Loss, name: str = "partition") -> Labels:
    """Labels (n,) of a partition for a loss, -1 for noise if the loss has some; raise ValueError if it lacks draws."""
    if loss.needs_draws:
        source.as_draws(f"loss {loss.name!r}", lacking=True)
    return source.items.as_marked_labels(partition, name) if loss.has_noise else source.as_labels(partition, name)


def loss_on(source: PairSource, loss: Loss) -> Loss:
    """Return the loss with the mean similarity of all pairs as its threshold if it asks for that, else as it is."""
    if not isinstance(loss, PairLoss) or loss.given_mean is None:
        return loss
    return loss.given_mean(source.mean_similarity)


class MeanLoss(NamedTuple):
    """Expected losses (P,) of partitions, their errors and effective sample sizes, and losses (P, N) by draw if any."""

    value: Floats
    mcse: Floats
    ess: Floats
    by_draw: Floats | None


def loss_and_error(source: PairSource, partitions: npt.NDArray[Any], loss: Loss) -> MeanLoss:
    """Return the expected loss of every partition (P, n), and how well the draws determine it.

    Where the loss is no mean over draws, or there are none, error and sample size are NaN, or those of the jackknife
    over runs that lack items.
    """
    draws, by_draw = source.draws, loss.by_draw()
    if draws is None or by_draw is None:
        expected = mean_loss(source, partitions, loss)
        return MeanLoss(expected, *_errors_over_runs(source, partitions, loss)[:2], None)
    losses = draw_losses(partitions, draws, by_draw)
    return MeanLoss(draws.samples.mean(losses), *draws.samples.mcse_and_ess(losses), losses)


def doubt_of_losses(draws: PartitionDraws, losses: Floats) -> str | None:
    """Return :func:`doubt_of` chains by the losses (N,) of a partition and by the number of clusters."""
    return doubt_of(draws.samples, {"loss": losses, "number of clusters": draws.n_clusters.astype(np.float64)})


class ComparedLosses(NamedTuple):
    """Expected losses (P,) of partitions and their differences to one, with errors; `ess` is the smaller of the two."""

    expected_loss: Floats
    mcse: Floats
    difference: Floats
    difference_mcse: Floats
    ess: Floats


def compared_losses(
    source: PairSource, partitions: npt.NDArray[Any], loss: Loss, reference: int | None = None
) -> ComparedLosses:
    """Return what :func:`loss_and_error` does, and the differences to a row over the same draws; None for the least."""
    draws, by_draw = source.draws, loss.by_draw()
    if draws is None or by_draw is None:
        expected = mean_loss(source, partitions, loss)
        own = int(expected.argmin()) if reference is None else reference
        mcse, ess, of_more = _errors_over_runs(source, partitions, loss, own)
        return ComparedLosses(expected, mcse, expected - expected[own], of_more, ess)
    samples, losses = draws.samples, draw_losses(partitions, draws, by_draw)
    expected = samples.mean(losses)
    more = losses - losses[expected.argmin() if reference is None else reference]
    mcse, ess = samples.mcse_and_ess(losses)
    of_more, size = samples.mcse_and_ess(more)
    return ComparedLosses(expected, mcse, samples.mean(more), of_more, np.fmin(ess, size))


@singledispatch
def _errors_over_runs(
    source: PairSource, partitions: npt.NDArray[Any], loss: Loss, own: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Errors (P,) of expected losses by the jackknife over runs, the number of runs, and errors of differences to one.

    NaN without runs, and if only one run has a pair.
    """
    return (np.full(len(partitions), np.nan),) * 3


@_errors_over_runs.register
def _(source: RunsWithMissing, partitions: npt.NDArray[Any], loss: Loss, own: int = 0) -> tuple[Floats, Floats, Floats]:
    values = source.jackknife(lambda one: mean_loss(one, partitions, loss))
    return (*source.samples.mcse_and_ess(values), source.samples.mcse(values - values[own]))


def loss_of_pairs(source: PairSource, partitions: npt.NDArray[Any], loss: Loss) -> Floats:
    """Return the loss (P,) of every partition (P, n) given the similarities, for a loss that pairs give."""
    sizes = np.array([np.bincount(partition)[partition] for partition in partitions], dtype=np.float64)
    return loss.expected(sizes, *source.sums(partitions))
