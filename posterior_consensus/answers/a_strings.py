"""A-strings: an item's labels over the draws, as an indicator matrix of draws by clusters."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.runtime import memory
from posterior_consensus.sources.conversion import as_draws
from posterior_consensus.sources.labels import as_partition_draws


def a_strings(draws: Any) -> xr.DataArray:
    """Convert draws to A-strings: for each item an indicator matrix of draws by clusters.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_draws, most clusters), dtype int8
        Over the items, ``"sample"`` and ``"drawn_cluster"``, with the coordinates ``chain`` and ``draw``. Weighted
        draws also have ``weight``. The clusters of a draw are numbered by first appearance. Beyond its last cluster,
        columns are zero.

    Raises
    ------
    ValueError
        If the draws are invalid as :func:`as_partition_draws` says.
    MemoryError
        If the A-strings take more than the memory budget.

    See Also
    --------
    from_a_strings : the inverse.
    summed_impurity : an objective that is defined on A-strings.

    Notes
    -----
    Singh, Mukherjee, Peng and Xu (NIPS 2007) define this encoding in "Ensemble clustering using semidefinite
    programming". The rows of an item's matrix, joined, are its row of the one-hot matrix on which method "kcc" runs
    k-means. The methods of this package do not form this array.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> strings = pc.consensus.a_strings([[0, 0, 1], [0, 1, 2]])
    >>> strings.values[2]
    array([[0, 1, 0],
           [0, 0, 1]], dtype=int8)
    """
    source = as_draws(draws)
    n_items, n_draws, width = source.n_items, source.n_draws, int(source.n_clusters.max())
    memory.check(n_items * n_draws * width, f"A-strings of {n_items} items, {n_draws} draws and {width} clusters")
    strings = np.equal.outer(source.labels.T, np.arange(width)).astype(np.int8)
    dims, samples = (source.items.dim, "sample", "drawn_cluster"), source.samples
    coords: dict[Any, Any] = dict(source.items.array(np.arange(n_items), "item").coords)
    coords |= samples.coords
    if samples.is_weighted:
        coords["weight"] = ("sample", samples.weights)
    return xr.DataArray(strings, dims=dims, coords=coords, name="a")


def from_a_strings(strings: Any) -> PartitionDraws:
    """Convert A-strings to draws of the partition.

    Parameters
    ----------
    strings : DataArray or array_like of shape (n_items, n_draws, n_clusters)
        Indicators as :func:`a_strings` returns them. Each row, of one item in one draw, has one 1 and otherwise 0.
        Coordinates of a DataArray are kept.

    Returns
    -------
    PartitionDraws
        The same draws, with canonical labels.

    Raises
    ------
    ValueError
        If there are not three dimensions, or a row does not consist of one 1 and zeros.

    See Also
    --------
    a_strings : the inverse.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.consensus.from_a_strings([[[1, 0], [1, 0]], [[1, 0], [0, 1]]]).labels
    array([[0, 0],
           [0, 1]], dtype=uint8)
    """
    values = as_array(strings, "strings")
    if values.ndim != 3:
        raise ValueError(f"`strings` must have three dimensions, items, draws and clusters; got {values.ndim}.")
    if not (np.isin(values, (0, 1)).all() and (values.sum(axis=2) == 1).all()):
        raise ValueError("`strings` must have one 1 and otherwise 0 for each item in each draw.")
    labels = values.argmax(axis=2).T
    if not isinstance(strings, xr.DataArray):
        return as_partition_draws(labels)
    item_dim, sample_dim, _ = strings.dims
    coords = {name: value for name, value in strings.coords.items() if value.dims in ((item_dim,), (sample_dim,))}
    weights = coords.pop("weight", None)
    array = xr.DataArray(labels, dims=(sample_dim, item_dim), coords=coords, name="z")
    return as_partition_draws(
        array, sample_dims=str(sample_dim), item_dim=str(item_dim), weights=None if weights is None else weights.values
    )
