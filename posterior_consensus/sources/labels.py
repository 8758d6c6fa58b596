"""Labels of draws as PartitionDraws: checked, canonical, with the chain, draw and weight of every draw."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.dask_labels import canonical_blocks
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.partitions import as_array, as_codes, canonical_rows, place_in
from posterior_consensus.ensemble.samples import ChainSamples, Samples, by_index, reordered_by_name
from posterior_consensus.runtime import memory
from posterior_consensus.sources.blocks import LabelBlocks
from posterior_consensus.sources.stores import write_labels, write_store
from posterior_consensus.sources.variables import client_of, is_elsewhere
from posterior_consensus.sources.where import LogWeights, Where

_NAMES = {False: "`weights`", True: "`log_weights`"}  # by whether weights are logarithms


def draws_of_labels(
    labels: xr.DataArray,
    dims: tuple[str, ...],
    item_dim: str,
    weights: Any = None,
    *,
    store: Path | None = None,
    progressbar: bool = True,
) -> PartitionDraws:
    """Convert labels over draws and items: to memory, to workers of dask, or to a store if large or if it is named."""
    name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
    samples, items = samples_of(labels, dims, weights, name), Items.along(labels, item_dim)
    if store is None and (client := client_of(labels)) is not None:
        return PartitionDraws(items, samples, canonical_blocks(labels.data, name, client))
    shape = samples.n_draws, items.n_items
    if store is None and memory.fits(labels.nbytes / memory.SHARE_OF_READING):
        codes, n_codes = as_codes(labels.values, name, place_in(labels))
        return PartitionDraws(items, samples, ArrayLabels(*canonical_rows(codes.reshape(shape), n_codes)))
    blocks = LabelBlocks(labels, name)
    drawn = [(stripe.rows, partial(blocks.write, stripe)) for stripe in blocks.stripes()], blocks.dtype, items, samples
    if store is None:
        return write_labels(*drawn, from_disk=is_elsewhere(labels), progressbar=progressbar)
    return write_store(*drawn, store=store, progressbar=progressbar)


def samples_of(values: xr.DataArray, dims: tuple[str, ...], weights: Any, name: str) -> Samples:
    """Samples of the array called `name`, with the user's weights."""
    if values.size == 0:
        raise ValueError(f"{name} must hold at least one draw of one item; got {dict(values.sizes)}.")
    shape = tuple(values.sizes[dim] for dim in dims)
    n_draws = int(np.prod(shape))
    has_names = any(dim in values.coords and values[dim].ndim for dim in (*dims, "chain", "draw"))
    samples = ChainSamples(*_sample_ids(values, dims, n_draws), np.full(n_draws, 1.0 / n_draws), has_names)
    if weights is None:
        return samples
    is_log = isinstance(weights, LogWeights)
    given = by_index(weights.values if is_log else weights, "draw" if len(dims) > 1 or dims == ("sample",) else dims[0])
    if isinstance(given, xr.DataArray):
        given = _as_the_labels(given, values, dims, _NAMES[is_log])
    elif (array := as_array(given, _NAMES[is_log])).shape == shape:
        given = array.ravel()
    return weighted_samples(samples, LogWeights(given) if is_log else given)


def _as_the_labels(weights: xr.DataArray, labels: xr.DataArray, dims: tuple[str, ...], name: str) -> Any:
    """Weights aligned by name along dimensions shared with the labels."""
    if set(dims) != set(weights.dims):
        return weights
    wanted = {dim: labels.indexes[dim] for dim in dims if dim in labels.indexes}
    weights = reordered_by_name(weights.transpose(*dims), wanted, name)
    return weights.values.ravel() if len(dims) > 1 else weights


def made_already(source: PairSource, where: Where) -> PairSource:
    """Return a source as it is, or draws with these weights; refuse arguments for reading data."""
    where.check_no_variable()
    if where.weights is None:
        return source
    draws = source.as_draws()
    return replace(draws, samples=weighted_samples(draws.samples, where.weights))


def weighted_samples(samples: Samples, weights: Any) -> Samples:
    """Check the weights."""
    is_log = isinstance(weights, LogWeights)
    name, given = _NAMES[is_log], weights.values if is_log else weights
    values = as_array(given, name)
    if values.dtype.kind not in "iufbO" or any(isinstance(v, str) for v in values.flat if values.dtype == object):
        raise TypeError(f"{name} must be numbers; got {type(given).__name__} of {values.dtype}.")
    try:
        values = samples.reordered(given, name).astype(np.float64)
    except TypeError:
        raise TypeError(f"{name} must be numbers; got {type(given).__name__} of {values.dtype}.") from None
    lowest = -np.inf if is_log else 0.0
    wrong = ~((values >= lowest) & (values < np.inf))
    if wrong.any():
        row, allowed = wrong.argmax(), "finite or minus infinity" if is_log else "finite and not negative"
        place = f"{samples.words.chain} {samples.chain[row]}, {samples.words.draw} {samples.draw[row]}"
        raise ValueError(f"{name} must be {allowed}; got {values[row]!s} at {place}.")
    if np.all(values == lowest):
        raise ValueError(f"{name} must not all be {'minus infinity' if is_log else '0'}.")
    # Scaled to a maximum of 1, so that sums of huge or tiny weights neither overflow nor vanish.
    return samples.weighted(np.exp(values - values.max()) if is_log else values / values.max())


def _sample_ids(labels: xr.DataArray, dims: tuple[str, ...], n_draws: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Chain and draw of every row; a single sample dimension is one chain unless its coordinates name both."""
    if len(dims) == 1:
        along = {name: coord.values for name, coord in labels.coords.items() if coord.dims == dims}
        index = labels.indexes.get(dims[0], pd.RangeIndex(n_draws))
        own = index.to_numpy() if index.is_unique and index.nlevels == 1 else np.arange(n_draws)
        return along.get("chain", np.zeros(n_draws, np.int64)), along.get("draw", own)
    lengths = [labels.sizes[dim] for dim in dims]
    known = {dim: index.to_numpy() for dim, index in labels.indexes.items() if index.is_unique}
    ids = [known.get(dim, np.arange(size)) for dim, size in zip(dims, lengths, strict=True)]
    at = np.indices(lengths).reshape(len(dims), -1)
    axis = dims.index("chain") if "chain" in dims else 0
    rest = [k for k in range(len(dims)) if k != axis]
    if len(rest) == 1:
        return ids[axis][at[axis]], ids[rest[0]][at[rest[0]]]
    return ids[axis][at[axis]], np.ravel_multi_index(tuple(at[rest]), [lengths[k] for k in rest])
