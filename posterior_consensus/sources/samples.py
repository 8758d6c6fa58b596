"""Chain, draw and weight of every draw, from the coordinates of an array and what the user gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.items import positions
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.ensemble.samples import Samples


class LogWeights(NamedTuple):
    """Weights given as logarithms."""

    values: Any


def one_of(weights: Any, log_weights: Any) -> Any:
    """The weights, or the logarithms that are given instead."""
    if log_weights is None:
        return weights
    if weights is not None:
        raise ValueError("`log_weights` must be left out where `weights` are given; got both.")
    return LogWeights(log_weights)


def samples_of(values: xr.DataArray, dims: tuple[str, ...], weights: Any, name: str) -> Samples:
    """Take the draws that an array of this name runs over, with the user's weights."""
    if values.size == 0:
        raise ValueError(f"{name} must hold at least one draw of one item; got {dict(values.sizes)}.")
    shape = tuple(values.sizes[dim] for dim in dims)
    n_draws = int(np.prod(shape))
    samples = Samples(*_sample_ids(values, dims, n_draws), np.full(n_draws, 1.0 / n_draws))
    given = weights.values if isinstance(weights, LogWeights) else weights
    if isinstance(given, xr.DataArray) and (given.ndim > 1 or given.dims == dims):
        given = _align_weights(given, values, dims)
        weights = LogWeights(given) if isinstance(weights, LogWeights) else given
    return samples if weights is None else _weighted(samples, weights, shape)


def made_already(source: PairSource, var_name: str | None, item_dim: str | None, weights: Any) -> PairSource:
    """Give a source as it is, or draws with these weights, by chain too where chains are of one length and in order."""
    if var_name is not None or item_dim is not None:
        raise ValueError("`var_name` and `item_dim` must be None for PartitionDraws, which are made already.")
    if weights is None:
        return source
    draws = draws_of(source)
    return replace(draws, samples=_weighted(draws.samples, weights, draws.samples.shape))


def _weighted(samples: Samples, weights: Any, shape: tuple[int, ...]) -> Samples:
    """Check the weights, which may have the shape of the sample dimensions."""
    is_log = isinstance(weights, LogWeights)
    name, given = ("`log_weights`", weights.values) if is_log else ("`weights`", weights)
    values = as_array(given, name)
    try:
        if values.dtype.kind not in "iufbO" or any(isinstance(v, str) for v in values.flat if values.dtype == object):
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers; got {type(given).__name__} of {values.dtype}.") from None
    if values.shape not in ((samples.n_draws,), shape):
        wanted = f"({samples.n_draws},)" + (f" or {shape}" if len(shape) > 1 else "")
        raise ValueError(f"{name} must be one number per draw, of shape {wanted}; got shape {values.shape}.")
    values = values.ravel()
    if is_log:
        return samples.weighted(_exponentials(values, samples))
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row = wrong.argmax()
        raise ValueError(f"`weights` must be finite and not negative; got {values[row]!s} at {_place(samples, row)}.")
    if not values.any():
        raise ValueError("`weights` must not all be 0.")
    # Divided first, so that the sum of huge or tiny weights neither overflows nor vanishes.
    return samples.weighted(values / values.max())


def _exponentials(values: npt.NDArray[np.float64], samples: Samples) -> npt.NDArray[np.float64]:
    """Weights of which the largest is 1, from their logarithms."""
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        row = wrong.argmax()
        place = _place(samples, row)
        raise ValueError(f"`log_weights` must be finite or minus infinity; got {values[row]!s} at {place}.")
    if np.all(values == -np.inf):
        raise ValueError("`log_weights` must not all be minus infinity.")
    return np.exp(values - values.max())


def _place(samples: Samples, row: Any) -> str:
    return f"chain {samples.chain[row]}, draw {samples.draw[row]}"


def _sample_ids(labels: xr.DataArray, dims: tuple[str, ...], n_draws: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Chain and draw of every row; a single sample dimension may carry both as coordinates, else it is one chain."""
    if len(dims) == 1:
        along = {name: coord.values for name, coord in labels.coords.items() if coord.dims == dims}
        return along.get("chain", np.zeros(n_draws, np.int64)), along.get("draw", np.arange(n_draws))
    sizes = [labels.sizes[dim] for dim in dims]
    known = {dim: index.to_numpy() for dim, index in labels.indexes.items() if index.is_unique}
    ids = [known.get(dim, np.arange(size)) for dim, size in zip(dims, sizes, strict=True)]
    at = np.indices(sizes).reshape(len(dims), -1)
    axis = dims.index("chain") if "chain" in dims else 0
    rest = [k for k in range(len(dims)) if k != axis]
    if len(rest) == 1:
        return ids[axis][at[axis]], ids[rest[0]][at[rest[0]]]
    return ids[axis][at[axis]], np.ravel_multi_index(tuple(at[rest]), [sizes[k] for k in rest])


def _align_weights(weights: xr.DataArray, labels: xr.DataArray, dims: tuple[str, ...]) -> xr.DataArray:
    """Bring weights over the sample dimensions to the order of the labels."""
    if set(weights.dims) != set(dims):
        raise ValueError(f"`weights` must have the dimensions {dims}; got {weights.dims}.")
    for dim in dims:
        if dim in weights.indexes and dim in labels.indexes and weights.sizes[dim] == labels.sizes[dim]:
            order = positions(labels.indexes[dim], weights.indexes[dim])
            if order is None:
                raise ValueError(f"`weights` must be those of the same draws; the coordinates of {dim!r} differ.")
            weights = weights.isel({dim: order})
    return weights.transpose(*dims)
