"""Independent runs of clustering programs as draws that know they are runs."""

from collections.abc import Hashable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items, coords_of
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.partitions import as_array, as_codes, canonical_rows
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime.arguments import listing


def as_runs(
    data: Any,
    keys: str | Sequence[Hashable] | None = None,
    *,
    axis: int | None = None,
    groups: Any = None,
    noise: Any = None,
) -> PartitionDraws:
    """Convert the labels of independent runs of clustering programs.

    Parameters
    ----------
    data : AnnData, DataFrame, array_like or sequence of label vectors
        Labels of each run. An object with `obs` and `obs_names` has its runs in columns of `obs`; so has a DataFrame,
        whose rows are items. Arrays and sequences have a row for each run.
    keys : str or sequence of str, optional
        Columns of the runs, or a pattern such as ``"leiden_*"``.
    axis : {0, 1}, optional
        Dimension of an array or DataFrame that runs over runs. By default 0 for arrays, and 1 for DataFrames.
    groups : array_like of shape (n_runs,), optional
        What the runs differ in, such as program or resolution.
    noise : scalar, optional
        Label of items that a run puts into no cluster, such as -1 of HDBSCAN.

    Returns
    -------
    PartitionDraws
        Draws whose `samples.independent` is true: `samples.draw` has the runs' names, `samples.chain` their groups.

    See Also
    --------
    as_partition_draws : Convert draws of chains.

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> table = pd.DataFrame({"leiden_0": ["0", "0", "1"], "leiden_1": ["1", "1", "1"]}, index=["AAC", "ACC", "CAT"])
    >>> runs = pc.as_runs(table, "leiden_*")
    >>> runs.labels
    array([[0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> runs.samples.draw
    array(['leiden_0', 'leiden_1'], dtype=object)
    """
    if hasattr(data, "obs") and hasattr(data, "obs_names"):
        data = data.obs.set_axis(pd.Index(data.obs_names), axis=0)
    names: npt.NDArray[Any] | None = None
    items: pd.Index | None = None
    if isinstance(data, pd.DataFrame):
        data = data if axis in (None, 1) else data.T
        data = data if keys is None else data[_columns(data, keys)]
        names, items = data.columns.to_numpy(), None if isinstance(data.index, pd.RangeIndex) else data.index
        values = np.stack([as_array(data[name], "`data`") for name in data], axis=0)
    else:
        values = as_array(data, "`data`")
        values = values if axis in (None, 0) else values.T
    n_runs, n_items = values.shape
    dim = "item" if items is None or items.name is None else str(items.name)
    coords = xr.Coordinates() if items is None else coords_of(items, dim)
    samples = Samples(
        np.zeros(n_runs, np.int64) if groups is None else np.asarray(groups),
        np.arange(n_runs) if names is None else names,
        np.full(n_runs, 1.0 / n_runs),
        named=names is not None,
        independent=True,
    )
    return _draws(values, samples, Items(n_items, dim, coords), noise)


def _columns(table: pd.DataFrame, keys: str | Sequence[Hashable]) -> list[Hashable]:
    """Columns of these names, or those that a pattern matches."""
    if not isinstance(keys, str):
        return list(keys)
    found: list[Hashable] = [name for name in table.columns if fnmatchcase(str(name), keys)]
    if not found:
        raise ValueError(f"`keys` must match columns; got {keys!r}, present: {listing(table.columns)}.")
    return found


def _draws(values: npt.NDArray[Any], samples: Samples, items: Items, noise: Any) -> PartitionDraws:
    """Draws of labels (n_runs, n_items), with each item that a run calls noise alone in that run."""
    if noise is None:
        codes, n_codes = as_codes(values, "`data`")
        return PartitionDraws(items, samples, ArrayLabels(*canonical_rows(codes, n_codes)))
    is_noise = values == noise
    if is_noise.all():
        raise ValueError(f"`data` must not be all noise; got {is_noise.size} labels equal to {noise!r}.")
    codes, n_codes = as_codes(np.where(is_noise, values[~is_noise][0], values), "`data`")
    alone = np.where(is_noise, n_codes + np.arange(items.n_items), codes)
    n_codes += items.n_items
    labels = ArrayLabels(*canonical_rows(alone.astype(np.min_scalar_type(n_codes)), n_codes))
    return PartitionDraws(items, samples, labels, noise=is_noise if is_noise.any() else None)
