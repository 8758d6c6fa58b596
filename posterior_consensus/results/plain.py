"""Conversion to values that every file format stores: numbers, text and times, and JSON for other names."""

import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.runtime.arguments import is_number

_LEVELS = "levels_of_"  # attribute for each dimension of several levels


def as_json(value: Any) -> str:
    """Encode plain and NumPy values as JSON text for an attribute."""
    return json.dumps(value, default=lambda other: other.tolist() if hasattr(other, "tolist") else str(other))


def names_from_json(text: str) -> tuple[Hashable, ...]:
    """Decode names of clusters or chains from the JSON text of an attribute."""
    return tuple(tuple(name) if isinstance(name, list) else name for name in json.loads(text))


def names_as_coordinate(names: Sequence[Hashable]) -> Any:
    """Names as a coordinate: a list if they have one type, else an array of objects."""
    if len({type(name) for name in names}) == 1 and not isinstance(names[0], tuple):
        return list(names)
    each = np.empty(len(names), object)
    each[:] = names
    return each


def storable(dataset: xr.Dataset) -> xr.Dataset:
    """Convert a Dataset to values that every file format stores.

    Each MultiIndex becomes coordinates, which `restored_levels` reverts. Other coordinates that are neither text nor
    numbers nor times become text. Attributes that are neither text nor numbers are dropped, because the text of an
    arbitrary object need not be meaningful or reproducible.
    """
    several = [str(dim) for dim, index in dataset.indexes.items() if dim in dataset.dims and index.nlevels > 1]
    levels = {f"{_LEVELS}{dim}": as_json(list(dataset.indexes[dim].names)) for dim in several}
    plain = dataset.reset_index(several).assign_attrs(levels)
    odd = {name: coord for name, coord in plain.coords.items() if not _is_plain(coord)}
    plain = plain.assign_coords({name: _as_text(coord) for name, coord in odd.items()})
    for variable in plain.variables.values():
        variable.attrs = {str(name): value for name, value in variable.attrs.items() if _is_plain_attribute(value)}
    return plain


def _is_plain(coord: xr.DataArray) -> bool:
    dtype: Any = coord.dtype
    if not isinstance(dtype, np.dtype):  # a pandas extension type
        return False
    if dtype.kind == "O":
        return {type(value) for value in coord.values.flat} in ({str}, {int}, {float})
    return dtype.kind in set("biufMmSU")


def _as_text(coord: xr.DataArray) -> xr.Variable:
    return xr.Variable(coord.dims, np.reshape([str(value) for value in coord.values.flat], coord.shape), coord.attrs)


def _is_plain_attribute(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return all(isinstance(one, str) or is_number(one) for one in (value if several else [value]))


def restored_levels(dataset: xr.Dataset) -> xr.Dataset:
    """Restore each MultiIndex that `storable` converted to coordinates."""
    names = [str(name) for name in dataset.attrs if str(name).startswith(_LEVELS)]
    levels = {name.removeprefix(_LEVELS): json.loads(dataset.attrs[name]) for name in names}
    restored = dataset.set_index(levels)
    restored.attrs = {name: value for name, value in dataset.attrs.items() if name not in names}
    return restored
