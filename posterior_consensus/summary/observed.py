"""Data of the items, from the posterior."""

from contextlib import suppress
from typing import Any

import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.sources.containers import group_dataset, has_groups


def observed_of(data: Any, draws: PartitionDraws) -> xr.DataArray | None:
    """The only observed variable with a row for each item, if there is exactly one."""
    if not (has_groups(data)):
        return None
    try:
        dataset = group_dataset(data, "observed_data")
    except ValueError:
        return None
    fitting = [
        v
        for v in dataset.data_vars.values()
        if v.dtype.kind in "iuf" and v.size and 1 <= v.ndim <= 2 and v.shape[0] == draws.n_items
    ]
    fitting = [v for v in fitting if _of_the_same_items(v, draws)]
    return fitting[0].load() if len(fitting) == 1 else None


def _of_the_same_items(data: xr.DataArray, draws: PartitionDraws) -> bool:
    with suppress(ValueError):
        Items.along(data, str(data.dims[0])).order_of(draws.items, "data")
        return True
    return False
