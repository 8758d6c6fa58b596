"""Words for the place of a value in the user's data, for errors."""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any

import xarray as xr

from posterior_consensus.ensemble.partitions import Place, place_in_array

_PLAIN = ("item", "item_bis")  # dimensions given to plain matrices


def listing(names: Iterable[Hashable]) -> str:
    """List names in a message."""
    return ", ".join(repr(str(name)) for name in names) or "none"


def place_in(values: xr.DataArray) -> Place:
    """Function that describes an index of the array: chain, draw and item, or row and column of a matrix."""
    if values.dims == _PLAIN and not values.coords:
        return place_in_array
    return partial(_named_place, values.coords.to_dataset(), values.dims)


def _named_place(coords: xr.Dataset, dims: tuple[Any, ...], index: tuple[int, ...]) -> str:
    parts: list[str] = []
    last = -1
    for dim, number in zip(dims, index, strict=True):
        along = [name for name in ("chain", "draw") if name in coords and coords[name].dims == (dim,)]
        along = along or [dim] * (dim in coords)
        if not along:
            last = len(parts)
            parts.append(f"{'draw' if dim == 'sample' else dim} {number}")
        parts += [f"{name} {_as_text(coords[name].values[number])}" for name in along]
    return ", ".join(f"{part} (from 0)" if k == last else part for k, part in enumerate(parts))


def _as_text(name: Any) -> str:
    return repr(str(name)) if isinstance(name, str) else str(name)
