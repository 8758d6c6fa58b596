"""expected_loss(): what partitions lose in posterior expectation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import check_needs
from posterior_consensus.ensemble.items import Items
from posterior_consensus.evaluate.expectation import loss_and_error
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.sources.door import as_source, partition_of


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
