"""Where labels come from: any kind of data brought to one DataArray, sample dimensions first and items last."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.groups import group_dataset, is_inference_data
from posterior_consensus.partitions import as_array


def label_array(
    data: Any, var_name: str | None, group: str, sample_dims: Any, item_dim: str | None
) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Find the labels in `data`; return them with the names of their sample dimensions and of their item dimension."""
    dims = _dim_names(sample_dims)
    if var_name is not None and not isinstance(var_name, str):
        raise TypeError(f"`var_name` must be a name; got {var_name!r}.")
    return _orient(_find(data, var_name, group, dims, item_dim), dims, item_dim)


def _dim_names(sample_dims: Any) -> tuple[str, ...]:
    dims = (sample_dims,) if isinstance(sample_dims, str) else sample_dims
    if not isinstance(dims, (list, tuple)) or not all(isinstance(dim, str) for dim in dims):
        raise TypeError(f"`sample_dims` must be a name or a sequence of names; got {sample_dims!r}.")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(f"`sample_dims` must name at least one dimension, and each once; got {sample_dims!r}.")
    return tuple(dims)


def _find(data: Any, var_name: str | None, group: str, dims: tuple[str, ...], item_dim: str | None) -> xr.DataArray:
    if isinstance(data, xr.DataArray):
        if var_name is not None and data.name not in (None, var_name):
            raise ValueError(
                f"`var_name` must be the name of the DataArray or None; got {var_name!r}, present: {data.name!r}."
            )
        return data
    if isinstance(data, (xr.Dataset, xr.DataTree, str, Path)) or is_inference_data(data):
        return _variable(group_dataset(data, group), var_name, dims, item_dim)
    if isinstance(data, Mapping):
        return _variable(_from_dict(data), var_name, dims, item_dim)
    if var_name is not None:
        raise ValueError(
            f"`var_name` must be None for {type(data).__name__}, which has no variables; got {var_name!r}."
        )
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _from_frame(data, dims, item_dim)
    if isinstance(data, np.ndarray) or (isinstance(data, Sequence) and not isinstance(data, (str, bytes))):
        return _from_array(data, item_dim)
    raise TypeError(
        "`data` must be an InferenceData, DataTree, Dataset, DataArray, array, list, DataFrame, dict or path; "
        f"got {type(data).__module__}.{type(data).__qualname__}."
        + (" Convert it with pymc.to_inference_data first." if type(data).__name__ == "MultiTrace" else "")
    )


def _variable(dataset: xr.Dataset, var_name: str | None, dims: tuple[str, ...], item_dim: str | None) -> xr.DataArray:
    if var_name is not None:
        if var_name not in dataset.data_vars:
            raise ValueError(
                f"`var_name` must name a variable of the group; got {var_name!r}, present: {_names(dataset.data_vars)}."
            )
        return dataset[var_name]
    shaped = [v for v in dataset.data_vars.values() if _fits(v, dims, item_dim)]
    candidates = [v for v in shaped if v.dtype.kind in "iubUSTO"] or [
        v for v in shaped if v.dtype.kind == "f" and _is_whole(v)
    ]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise ValueError(
            f"`var_name` must say which variable holds the labels; candidates: {_names(v.name for v in candidates)}."
        )
    raise ValueError(
        f"`data` holds no variable of labels, whole numbers over `sample_dims` {dims} and one dimension more"
        f"{'' if item_dim is None else f', `item_dim` {item_dim!r}'}; "
        f"present: {', '.join(f'{k} {v.dims} {v.dtype}' for k, v in dataset.data_vars.items()) or 'none'}. "
        "A marginalised mixture has none: draw them from their conditional given the parameters first."
    )


def _fits(variable: xr.DataArray, dims: tuple[str, ...], item_dim: str | None) -> bool:
    if not set(dims) <= set(variable.dims) and "sample" in variable.dims:
        dims = ("sample",)
    rest = [dim for dim in variable.dims if dim not in dims]
    return set(dims) <= set(variable.dims) and len(rest) == 1 and item_dim in (None, rest[0])


def _is_whole(variable: xr.DataArray) -> bool:
    """Whether all but the missing values are whole numbers; a missing or negative one is complained of later."""
    present = variable.values[np.isfinite(variable.values)]
    return bool(np.all(present == np.floor(present))) and (present.size > 0 or variable.size == 0)


def _from_dict(data: Mapping[str, Any]) -> xr.Dataset:
    """Take those arrays that have chains, draws and items."""
    from arviz_base import convert_to_dataset

    arrays = {name: as_array(values, f"{name!r} of `data`") for name, values in data.items()}
    full = {name: values for name, values in arrays.items() if values.ndim == 3}
    if not full:
        shapes = ", ".join(f"{name!r} {values.shape}" for name, values in arrays.items()) or "none"
        raise ValueError(f"`data`, a dict, must hold arrays of chains x draws x items; present: {shapes}.")
    return convert_to_dataset(full)


def _from_frame(frame: Any, dims: tuple[str, ...], item_dim: str | None) -> xr.DataArray:
    item_dim = str(item_dim or frame.columns.name or "item")
    _check_apart(item_dim, ("sample", *dims))
    unnamed = [name for name in frame.columns if isinstance(name, str) and name.startswith("Unnamed: ")]
    if unnamed:
        raise ValueError(
            f"`data` must have items as columns; {_names(unnamed)} holds row names: read the file with index_col=0."
        )
    inside = [dim for dim in dims if dim in frame.columns]
    if inside:
        raise ValueError(
            f"`data` must have items as columns; {_names(inside)} belong to the index: set_index({inside})."
        )
    array = xr.DataArray(frame.to_numpy(), dims=("sample", item_dim))
    if frame.columns.nlevels == 1:
        array = array.assign_coords({item_dim: frame.columns.to_numpy()})
    if frame.index.nlevels > 1:
        if set(frame.index.names) != set(dims):
            raise ValueError(
                f"`data` must have a row for each draw, with the index levels {dims}; got {tuple(frame.index.names)}. "
                "A table with a row for each draw of each item becomes one by unstack()."
            )
        array = array.assign_coords({dim: ("sample", frame.index.get_level_values(dim)) for dim in dims})
    return array


def _from_array(data: Any, item_dim: str | None) -> xr.DataArray:
    if isinstance(data, (list, tuple)) and any(isinstance(row, (xr.DataArray, xr.Dataset, pd.Series)) for row in data):
        raise TypeError(
            "`data` must be plain rows where it is a list; join labelled ones by xarray.concat or pandas.concat."
        )
    try:
        values = as_array(data, "`data`")
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("`data` must give every draw the same items; got rows of different lengths.") from None
    dims = {2: ("sample",), 3: ("chain", "draw")}.get(values.ndim)
    if dims is None:
        raise ValueError(
            f"`data` must be an array of draws x items or chains x draws x items; got shape {values.shape}."
        )
    _check_apart(item_dim, dims)
    return xr.DataArray(values, dims=(*dims, item_dim or "item"))


def _check_apart(item_dim: str | None, dims: tuple[str, ...]) -> None:
    if item_dim in dims:
        raise ValueError(f"`item_dim` must differ from the dimensions of the draws, {_names(dims)}; got {item_dim!r}.")


def _orient(
    labels: xr.DataArray, dims: tuple[str, ...], item_dim: str | None
) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Put the sample dimensions first and the items last, or say which is missing."""
    if "sample" in labels.dims and not set(dims) & set(labels.dims):
        dims = ("sample",)
    name = repr(labels.name) if labels.name is not None else "`data`"
    missing = [dim for dim in dims if dim not in labels.dims]
    if missing:
        raise ValueError(f"`sample_dims` must be dimensions of {name}; got {dims}, present: {tuple(labels.dims)}.")
    rest = [str(dim) for dim in labels.dims if dim not in dims]
    if item_dim is not None and item_dim not in rest:
        raise ValueError(
            f"`item_dim` must be a dimension of {name} beside {dims}; got {item_dim!r}, present: {tuple(labels.dims)}."
        )
    if len(rest) != 1:
        advice = "select or stack the others, e.g. .stack(item=[...])" if rest else "a partition needs one"
        raise ValueError(f"`data` must have one dimension of items beside {dims}; {name} has {tuple(rest)}: {advice}.")
    return labels.transpose(*dims, rest[0]), dims, rest[0]


def labelled(partition: Any, dim: str) -> Any:
    """A result's labels; a Series whose index names its items as a DataArray over `dim`; anything else as it is."""
    values = getattr(partition, "labels", partition)
    if isinstance(values, pd.Series) and not isinstance(values.index, pd.RangeIndex):
        return xr.DataArray(values.to_numpy(), dims=(dim,), coords={dim: values.index.to_numpy()})
    return values


def aligned(labels: xr.DataArray, dim: str, coords: Mapping[Hashable, xr.DataArray], name: str) -> npt.NDArray[Any]:
    """Labels of one partition in the order of the items' coordinates; by position where either side has none."""
    if labels.ndim != 1:
        raise ValueError(f"`{name}` must have the one dimension {dim!r}; got {labels.dims}.")
    if labels.dims != (dim,) or dim not in labels.coords or dim not in coords or labels.size != coords[dim].size:
        return labels.values
    order = positions(coords[dim].to_index(), labels.coords[dim].to_index())
    if order is None:
        raise ValueError(f"`{name}` must label the same items; the coordinates of {dim!r} differ.")
    return labels.values[order]


def positions(wanted: pd.Index, found: pd.Index) -> npt.NDArray[np.intp] | None:
    """Where in `found` each of `wanted` is; None where the two do not hold the same."""
    if wanted.equals(found):
        return np.arange(len(wanted))
    if len(wanted) != len(found) or not (wanted.is_unique and found.is_unique):
        return None
    order = found.get_indexer(wanted)
    return order if np.all(order >= 0) else None


def _names(names: Iterable[Hashable]) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"
