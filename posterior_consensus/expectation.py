"""What a partition loses: against one other partition, against every draw, and in posterior expectation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.allocations import AllocationProbabilities
from posterior_consensus.draws import PartitionDraws, as_partition_draws
from posterior_consensus.kernels import contingency
from posterior_consensus.kernels import loss as loss_kernels
from posterior_consensus.losses import PartitionLoss, is_binder, loss_of
from posterior_consensus.partitions import Labels, canonical_labels
from posterior_consensus.sources import aligned, labelled

Floats = npt.NDArray[np.float64]


def loss_matrix(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Return the loss of every partition (P, n) against every draw, (P, N)."""
    arrays = loss.arrays(draws.n_items)
    sizes = partitions.max(axis=1).astype(np.int64) + 1
    joint, drawn = contingency.joint_sums(partitions, sizes, draws.labels, draws.n_clusters, arrays.h)
    own = contingency.size_sums(partitions, sizes, arrays.h)
    losses: Floats = loss_kernels.combine(arrays, joint, own, drawn)
    return loss.scale(draws.n_items) * losses


def paired_losses(
    draws: PartitionDraws, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp], loss: PartitionLoss
) -> Floats:
    """Return the loss (P,) of draw `rows[p]` as an estimate of draw `others[p]`, for each p."""
    arrays = loss.arrays(draws.n_items)
    own = contingency.size_sums(draws.labels, draws.n_clusters, arrays.h)
    joint = contingency.paired_joint_sums(draws.labels, draws.n_clusters, rows, others, arrays.h)
    losses: Floats = loss_kernels.combine_pairs(arrays, joint, own[rows], own[others])
    return loss.scale(draws.n_items) * losses


def draw_losses(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Return the loss of every partition (P, n) that is expected given each draw, (P, N): its posterior mean counts.

    For Binder's loss the allocations are averaged out where their probabilities are known.
    """
    if isinstance(draws, AllocationProbabilities) and is_binder(loss):
        return draws.binder_losses(partitions, loss)
    return loss_matrix(partitions, draws, loss)


def mean_loss(draws: PartitionDraws, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats:
    """Return the expected loss (P,) of every partition (P, n)."""
    if isinstance(draws, AllocationProbabilities) and is_binder(loss):
        return draws.mean_binder_losses(partitions, loss)
    return draws.mean(loss_matrix(partitions, draws, loss))


def partition_loss(partition: Any, reference: Any, loss: str | PartitionLoss | None = None) -> float:
    """Loss between two partitions of the same items.

    Parameters
    ----------
    partition, reference : array_like of shape (n_items,), DataArray or result object
        The partition that is judged and the one that it is judged against, such as an estimate and the truth; the names
        of the labels do not matter.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``binder(a=0.5)``. By default the one that a result was found under, else
        "vi".

    Returns
    -------
    float
        In the loss's unit.

    Raises
    ------
    ValueError
        If the two have different numbers of items, labels are missing, negative or not whole numbers, or `loss` is not
        given for two results of different losses.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], "vi")
    1.0
    >>> pc.partition_loss([1, 1, 2, 2, 3], [1, 2, 2, 3, 3], "binder")
    0.32
    """
    record = loss_of(loss, partition, reference)
    ours, theirs = two_partitions(partition, reference)
    return float(loss_matrix(ours[np.newaxis], as_partition_draws(theirs[np.newaxis]), record)[0, 0])


def two_partitions(one: Any, other: Any) -> tuple[Labels, Labels]:
    """Return the canonical labels (n_items,) of two partitions of the same items, the second in the first's order."""
    values = getattr(one, "labels", one), getattr(other, "labels", other)
    dim = next((str(v.dims[0]) for v in values if isinstance(v, xr.DataArray) and v.ndim == 1), "item")
    one, other = labelled(one, dim), labelled(other, dim)
    if isinstance(one, xr.DataArray) and isinstance(other, xr.DataArray):
        other = aligned(other, dim, one.coords, "other partition")
    ours, theirs = canonical_labels(one), canonical_labels(other)
    if ours.size != theirs.size:
        raise ValueError(f"Two partitions must have the same items; got {ours.size} and {theirs.size} labels.")
    return ours, theirs


def expected_loss(draws: Any, partitions: Any, loss: str | PartitionLoss | None = None) -> xr.Dataset:
    """Posterior expected loss of one partition or of many, with its Monte Carlo standard error.

    Parameters
    ----------
    draws : PartitionDraws or anything :func:`as_partition_draws` takes
    partitions : partition or sequence of partitions
        One result object, DataArray or label vector of shape (n_items,), or a list or array (n_partitions, n_items) of
        them.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``vi(a=0.5)``. By default the one that the results were found under, else
        "vi".

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
    draws = as_partition_draws(draws)
    if isinstance(partitions, xr.DataArray) and draws.item_dim in partitions.dims:
        partitions = partitions.transpose(..., draws.item_dim)
    single = not _is_many(partitions)
    if not single and len(partitions) == 0:
        raise ValueError("`partitions` must hold at least one partition; got none.")
    judged = [partitions] if single else list(partitions)
    record = loss_of(loss, *judged)
    rows = np.stack([draws.as_labels(partition, "partitions") for partition in judged])
    losses = draw_losses(rows, draws, record)
    dataset = xr.Dataset(
        {"expected_loss": ("partition", draws.mean(losses)), "mcse": ("partition", draws.mcse(losses))},
        attrs={"loss": record.name, "unit": record.unit, "n_draws": draws.n_draws},
    )
    return dataset.squeeze("partition") if single else dataset


def _is_many(partitions: Any) -> bool:
    if isinstance(partitions, (np.ndarray, xr.DataArray)):
        return partitions.ndim > 1
    return isinstance(partitions, Sequence) and len(partitions) > 0 and not np.isscalar(partitions[0])
