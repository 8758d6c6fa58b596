"""Losses between two partitions, and between all draws of sets of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import all_losses, judged_labels, labels_for, loss_and_error, loss_matrix
from posterior_consensus.ensemble.items import Items, items_named_in, two_partitions
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.partitions import is_partition
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.lookup import as_loss, as_loss_of_draws
from posterior_consensus.losses.record import Loss, NoiseLoss, PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.sources.conversion import as_draws, as_source, partition_of


def partition_loss(
    partition: Any, reference: Any = None, *, loss: str | PartitionLoss | NoiseLoss | None = None
) -> float | xr.DataArray:
    """Compute the loss between two partitions, or the matrix of losses between draws.

    Parameters
    ----------
    partition, reference : partition, PartitionDraws or any posterior that :func:`summarize` takes
        The partition to judge and a reference, such as the truth. A partition is a result object, DataArray or label
        vector of shape (n_items,); the values of labels do not matter. Either may be a set of draws; without a
        reference, the draws are compared with themselves. A summary counts as its consensus if there is a reference;
        pass its ``draws`` for its draws.
    loss : str, PartitionLoss or NoiseLoss, optional
        Name in LOSSES or NOISE_LOSSES, or a record such as ``binder(a=0.5)``. By default the loss of a result, else
        "vi". With a loss in NOISE_LOSSES, the label -1 of a vector is noise.

    Returns
    -------
    float, or xarray.DataArray of shape (sample, sample_bis) if one argument is a set of draws
        In the loss's unit. Rows are partitions, with the coordinates ``chain`` and ``draw``; columns are references,
        with ``chain_bis`` and ``draw_bis``. If the loss treats both kinds of error equally, the matrix of draws with
        themselves is symmetric.

    Raises
    ------
    ValueError
        If the two have different items, labels are missing, negative or not integers, draws are invalid (see
        :func:`as_partition_draws`), or `loss` is missing for two results of different losses.
    MemoryError
        If the matrix exceeds the memory budget.

    See Also
    --------
    expected_loss : the mean over the draws.
    losses.misclassification_distance : the share of items labelled differently.

    Notes
    -----
    A loss is a function of sums over the contingency table of the two partitions, see :class:`PartitionLoss`. For draws
    against themselves, each table is computed once.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.partition_loss([0, 0, 1, 1], [0, 0, 0, 0], loss="vi")
    1.0
    >>> pc.partition_loss([1, 1, 2, 2, 3], [1, 2, 2, 3, 3], loss="binder")
    0.32
    >>> pc.partition_loss([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 3]]).values
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    """
    single = [one for one in (partition, reference) if reference is not None and is_partition(one)]
    record = as_loss_of_draws(loss, *single)
    if len(single) == 2:
        if record.has_noise:
            items = items_named_in([partition, reference]) or Items(len(partition), "item", xr.Coordinates())
            return float(checked_losses(_one(partition, items), _one(reference, items), record)[0, 0])
        ours, theirs = two_partitions(partition, reference)
        return float(loss_matrix(ours[np.newaxis], PartitionDraws.of(theirs[np.newaxis]), record)[0, 0])
    if reference is None:
        rows = columns = as_draws(partition)
    elif is_partition(partition):
        columns = as_draws(reference)
        rows = _one(partition, columns.items, "partition")
    else:
        rows = as_draws(partition)
        if is_partition(reference):
            columns = _one(reference, rows.items, "reference")
        else:
            columns = same_items(as_draws(reference), rows.items, "reference")
    bis = {f"{name}_bis": ("sample_bis", along) for name, (_, along) in columns.samples.coords.items()}
    return xr.DataArray(
        checked_losses(rows, columns, record),
        dims=("sample", "sample_bis"),
        coords=rows.samples.coords | bis,
        name="loss",
        attrs={"loss": record.name, "unit": record.unit},
    )


def _one(partition: Any, items: Items, name: str = "partition") -> PartitionDraws:
    """One partition as draws, with its noise."""
    labels = items.as_marked_labels(partition, name)[np.newaxis]
    if labels.min() >= 0:
        return PartitionDraws.of(labels)
    return NoisyRuns.of_codes(ArrayLabels.of(labels + 1), Samples.of_one_chain(1), items)


def misclassification_distance(partition: Any, reference: Any) -> float:
    """Compute the share of items that are clustered differently under the best matching of clusters.

    Parameters
    ----------
    partition, reference : array_like of shape (n_items,), DataArray or result object
        The two partitions of the same items.

    Returns
    -------
    float
        The distance, in [0, 1).

    Raises
    ------
    ValueError
        If the two have different numbers of items, or labels are missing, negative or not integers.

    See Also
    --------
    partition_loss : Other losses between two partitions.

    Notes
    -----
    The distance is 1 - max over one-to-one matchings of sum_k n_{k, match(k)} / n. Items of unmatched clusters count as
    errors. It is a metric on partitions [1]_.

    References
    ----------
    .. [1] Meila and Heckerman (2001), Machine Learning 42, 9-29. https://doi.org/10.1023/A:1007648401407

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.losses.misclassification_distance([0, 0, 1, 1], [1, 1, 1, 0])
    0.25
    """
    ours, theirs = two_partitions(partition, reference)
    return 1.0 - float(np.sum(numbered_like(ours, theirs) == theirs)) / ours.size


def checked_losses(draws: PartitionDraws, others: PartitionDraws, loss: PartitionLoss | NoiseLoss) -> Floats:
    """Losses (N, M) of draws against others, after a check of memory; `others` may be `draws`."""
    words = draws.samples.words
    memory.check(
        8 * draws.n_draws * others.n_draws,
        f"The matrix of losses of {draws.n_draws} {words.draws} against {others.n_draws}",
        f"Take fewer {words.draws}, such as `draws.take(slice(None, None, 10))`.",
    )
    if others is draws and isinstance(loss, PartitionLoss):
        return all_losses(draws, loss)
    return loss_matrix(labels_for(draws, loss), others, loss)


def same_items(draws: PartitionDraws, items: Items, name: str) -> PartitionDraws:
    """Reorder draws to the order of `items`, matched by coordinate, or by position without one."""
    order = draws.items.order_of(items, name)
    if np.array_equal(order, np.arange(items.n_items)):
        return draws
    return replace(draws.of_items(order), items=items)


def expected_loss(draws: Any, partitions: Any = None, *, loss: str | Loss | None = None) -> xr.Dataset:
    """Compute the posterior expected loss of partitions, with its Monte Carlo standard error.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    partitions : partition or sequence of partitions, optional
        One result object, DataArray or label vector of shape (n_items,), or a list or array (n_partitions, n_items) of
        them. By default the consensus of `draws` if these are a summary.
    loss : str, PartitionLoss or PairLoss, optional
        Name in LOSSES, NOISE_LOSSES or PAIR_LOSSES, or a record such as ``vi(a=0.5)``. By default the loss of the
        results, else "vi", "ballet" of runs with noise, or "binder" if there are no draws. A similarity matrix alone
        allows Binder's loss and PAIR_LOSSES. With a loss in NOISE_LOSSES, the label -1 of a vector is noise.

    Returns
    -------
    xarray.Dataset
        ``expected_loss`` and ``mcse``, in the loss's unit, and the effective sample size ``ess``. The dimension is
        ``partition``; a single partition has no dimension. ``mcse`` and ``ess`` are NaN for a similarity matrix alone
        and for PAIR_LOSSES, which are not means over draws; not so for runs that lack items, see :func:`as_runs`. Below
        an effective sample size of 100 the error is rough, and too small if a chain changes mode only a few times.

    Raises
    ------
    ValueError
        If a partition does not label the draws' items, or the draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    Samples.mcse, Samples.ess : how the standard error and the effective sample size are computed.

    Notes
    -----
    A consensus partition minimizes the mean over these same draws. Its expected loss is therefore slightly too low; a
    partition chosen on other draws has no such bias.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> pc.expected_loss(draws, [[0, 0, 1, 1], [0, 0, 0, 0]], loss="binder")["expected_loss"].values
    array([0.09375, 0.46875])
    """
    source = as_source(draws).in_fixed_order()
    judged, single = one_or_many(partition_of(draws, partitions, "partitions"), source.items)
    record = as_loss(loss, *judged, default=source.usual_loss)
    rows = np.stack([judged_labels(source, partition, record, "partitions") for partition in judged])
    expected, error, size, _ = loss_and_error(source, rows, record)
    attrs = {"loss": record.name, "unit": record.unit}
    dataset = xr.Dataset(
        {"expected_loss": ("partition", expected), "mcse": ("partition", error), "ess": ("partition", size)},
        attrs=attrs if source.n_draws is None else attrs | {"n_draws": source.n_draws},
    )
    return dataset.squeeze("partition") if single else dataset


def one_or_many(partitions: Any, items: Items) -> tuple[list[Any], bool]:
    """Convert one or several partitions to a list, and return whether it was a single one."""
    if isinstance(partitions, xr.DataArray) and items.dim in partitions.dims:
        partitions = partitions.transpose(..., items.dim)
    if not _is_many(partitions):
        return [partitions], True
    if len(partitions) == 0:
        raise ValueError("`partitions` must hold at least one partition; got none.")
    return list(partitions), False


def _is_many(partitions: Any) -> bool:
    if isinstance(partitions, (np.ndarray, xr.DataArray)):
        return partitions.ndim > 1
    return isinstance(partitions, Sequence) and len(partitions) > 0 and not np.isscalar(partitions[0])
