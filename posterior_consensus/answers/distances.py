"""Losses between all pairs of draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import is_partition
from posterior_consensus.evaluate.expectation import Floats, all_losses, loss_matrix
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.sources.door import as_draws


def pairwise_losses(draws: Any, others: Any = None, *, loss: str | PartitionLoss | None = None) -> xr.DataArray:
    """Compute the losses between all draws, or between two sets of partitions.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    others : PartitionDraws or any posterior that :func:`summarize` takes, or one partition, optional
        Another set of partitions of the same items; by default `draws` themselves. One partition is a result object,
        DataArray or label vector of shape (n_items,).
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``binder(a=0.5)``; by default "vi".

    Returns
    -------
    xarray.DataArray of shape (sample, sample_bis)
        Losses in the loss's unit, the row's partition as the estimate of the column's, with coordinates ``chain`` and
        ``draw`` of the rows, ``chain_bis`` and ``draw_bis`` of the columns. For losses that weigh both kinds of error
        alike the matrix of draws with themselves is symmetric.

    Raises
    ------
    ValueError
        If the two sets have different items, or draws are invalid as :func:`as_partition_draws` says.
    MemoryError
        If the matrix takes more than the memory budget.

    See Also
    --------
    expected_loss : the mean over the draws.

    Notes
    -----
    A loss is a function of sums over the contingency table of the two partitions (see :class:`PartitionLoss`). Where
    tables have few cells, these are counted as common bits of two clusters, 64 items at a time. Tables of draws with
    themselves are made once for each pair.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.pairwise_losses([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 3]]).values
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    """
    draws = as_draws(draws)
    record = as_loss(loss, kind=PartitionLoss)
    if is_partition(others):
        others = draws.as_labels(others, "others")[np.newaxis]
    columns = draws if others is None else same_items(as_draws(others), draws.items, "others")
    values = checked_losses(draws, columns, record)
    bis = {f"{name}_bis": ("sample_bis", along) for name, (_, along) in columns.samples.coords.items()}
    return xr.DataArray(
        values,
        dims=("sample", "sample_bis"),
        coords=draws.samples.coords | bis,
        name="loss",
        attrs={"loss": record.name, "unit": record.unit},
    )


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
    return replace(draws.labels_only(), items=items, drawn=draws.drawn.of_items(order))
