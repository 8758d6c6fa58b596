"""Losses between two partitions, and between all draws of sets of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws, check_needs
from posterior_consensus.ensemble.items import Items, two_partitions
from posterior_consensus.ensemble.partitions import is_partition
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.evaluate.expectation import Floats, all_losses, loss_and_error, loss_matrix
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.sources.door import as_draws, as_source, partition_of


def partition_loss(
    partition: Any, reference: Any = None, *, loss: str | PartitionLoss | None = None
) -> float | xr.DataArray:
    """Compute the loss between two partitions, or the losses between all draws of one or two sets.

    Parameters
    ----------
    partition, reference : partition, PartitionDraws or any posterior that :func:`summarize` takes
        The partition that is judged and the one that it is judged against, such as an estimate and the truth. One
        partition is a result object, DataArray or label vector of shape (n_items,); the names of the labels do not
        matter. Where one of the two is a set of draws, each of its draws is judged, or judged against. By default the
        reference is the set itself. A summary with a reference is its consensus; pass its ``draws`` for the set.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``binder(a=0.5)``. By default the one that a result was found under, else
        "vi".

    Returns
    -------
    float or, of draws, xarray.DataArray of shape (sample, sample_bis)
        In the loss's unit. In the array, the row's partition is the estimate of the column's, with coordinates
        ``chain`` and ``draw`` of the rows, ``chain_bis`` and ``draw_bis`` of the columns. For losses that weigh both
        kinds of error alike the matrix of draws with themselves is symmetric.

    Raises
    ------
    ValueError
        If the two have different items, labels are missing, negative or not integers, draws are invalid as
        :func:`as_partition_draws` says, or `loss` is not given for two results of different losses.
    MemoryError
        If the matrix takes more than the memory budget.

    See Also
    --------
    expected_loss : the mean over the draws.
    losses.misclassification_distance : the share of items labelled differently.

    Notes
    -----
    A loss is a function of sums over the contingency table of the two partitions (see :class:`PartitionLoss`). Where
    tables have few cells, these are counted as common bits of two clusters, 64 items at a time. Tables of draws with
    themselves are made once for each pair.

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
    record = as_loss(loss, *single, kind=PartitionLoss)
    if len(single) == 2:
        ours, theirs = two_partitions(partition, reference)
        return float(loss_matrix(ours[np.newaxis], PartitionDraws.of(theirs[np.newaxis]), record)[0, 0])
    if reference is None:
        rows = columns = as_draws(partition)
    elif is_partition(partition):
        columns = as_draws(reference)
        rows = PartitionDraws.of(columns.as_labels(partition, "partition")[np.newaxis])
    else:
        rows = as_draws(partition)
        if is_partition(reference):
            columns = PartitionDraws.of(rows.as_labels(reference, "reference")[np.newaxis])
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


def misclassification_distance(partition: Any, reference: Any) -> float:
    """Minimum share of items labelled differently over all matchings of two partitions' clusters.

    Parameters
    ----------
    partition, reference : array_like of shape (n_items,), DataArray or result object

    Returns
    -------
    float
        1 - max over one-to-one matchings of sum n_{k, match(k)} / n, in [0, 1); items of unmatched clusters count as
        errors. A metric on partitions [1]_.

    Raises
    ------
    ValueError
        If the two have different numbers of items, or labels are missing, negative or not integers.

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


def checked_losses(draws: PartitionDraws, others: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Losses (N, M) of draws against others, which may be the same, if there is memory for them."""
    memory.check(
        8 * draws.n_draws * others.n_draws,
        f"The matrix of losses of {draws.n_draws} draws against {others.n_draws}",
        "Take fewer draws, such as draws.isel(draw=slice(None, None, 10)).",
    )
    return all_losses(draws, loss) if others is draws else loss_matrix(draws.labels, others, loss)


def same_items(draws: PartitionDraws, items: Items, name: str) -> PartitionDraws:
    """Take draws of the same items in the order of `items`, by position where a coordinate lacks."""
    order = draws.items.order_of(items, name)
    if np.array_equal(order, np.arange(items.n_items)):
        return draws
    return replace(draws.of_items(order), items=items)


def expected_loss(draws: Any, partitions: Any = None, *, loss: str | Loss | None = None) -> xr.Dataset:
    """Compute the posterior expected loss of partitions, with Monte Carlo standard errors.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
    partitions : partition or sequence of partitions, optional
        One result object, DataArray or label vector of shape (n_items,), or a list or array (n_partitions, n_items) of
        them. By default the consensus of `draws` if these are a summary.
    loss : str, PartitionLoss or PairLoss, optional
        Name in LOSSES or PAIR_LOSSES, or a record such as ``vi(a=0.5)``. By default the one that the results were found
        under, else "vi". A similarity matrix alone gives Binder's loss and those of PAIR_LOSSES.

    Returns
    -------
    xarray.Dataset
        ``expected_loss`` and ``mcse``, in the loss's unit, and the effective sample size ``ess`` behind them, over the
        dimension ``partition``; without dimension for a single partition. Error and sample size are NaN for a
        similarity matrix alone and for the losses of PAIR_LOSSES, which are no means over draws. Below an effective
        sample size of 100 the error is rough: it can be much too small if a chain changes mode only a few times.

    Raises
    ------
    ValueError
        If a partition does not label the draws' items, or the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    Samples.mcse, Samples.ess : how the standard error and the effective sample size are computed.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> pc.expected_loss(draws, [[0, 0, 1, 1], [0, 0, 0, 0]], loss="binder")["expected_loss"].values
    array([0.09375, 0.46875])
    """
    source = as_source(draws)
    judged, single = one_or_many(partition_of(draws, partitions, "partitions"), source.items)
    record = as_loss(loss, *judged)
    check_needs(source, {f"loss {record.name!r}": record.needs})
    rows = np.stack([source.as_labels(partition, "partitions") for partition in judged])
    expected, error, size = loss_and_error(source, rows, record)
    attrs = {"loss": record.name, "unit": record.unit}
    dataset = xr.Dataset(
        {"expected_loss": ("partition", expected), "mcse": ("partition", error), "ess": ("partition", size)},
        attrs=attrs if source.n_draws is None else attrs | {"n_draws": source.n_draws},
    )
    return dataset.squeeze("partition") if single else dataset


def one_or_many(partitions: Any, items: Items) -> tuple[list[Any], bool]:
    """List what is one partition of these items or holds several, and say whether it is one."""
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
