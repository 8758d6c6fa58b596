"""The door: labels of any origin become PartitionDraws, one checked and canonical object that all else works on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.groups import group_dataset, is_inference_data
from posterior_consensus.partitions import Labels, as_array, as_codes, canonical_labels, canonical_rows

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PartitionDraws:
    """Posterior draws of a partition, each numbered by first appearance; made by :func:`as_partition_draws`.

    Attributes
    ----------
    labels : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    weights : ndarray of shape (n_draws,), dtype float64
        Weight of each draw; they sum to 1.
    chain, draw : ndarray of shape (n_draws,)
        Where each row comes from.
    item_dim : str
        Name of the items' dimension.
    item_coords : xarray.Coordinates
        The items' coordinates as the user had them.
    is_weighted : bool
        Whether the weights differ.
    """

    labels: npt.NDArray[Any]
    n_clusters: npt.NDArray[np.int64]
    weights: Floats
    chain: npt.NDArray[Any]
    draw: npt.NDArray[Any]
    item_dim: str
    item_coords: xr.Coordinates
    is_weighted: bool = False

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.labels.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items that each draw partitions."""
        return self.labels.shape[1]

    @cached_property
    def chains(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of each chain's draws, in the order in which the chains appear."""
        _, first, inverse = np.unique(self.chain, return_index=True, return_inverse=True)
        return [np.flatnonzero(inverse == k) for k in np.argsort(first)]

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return np.concatenate([[0], np.cumsum(self.n_clusters)]).astype(np.int64)

    def mean(self, values: Floats) -> Floats:
        """Posterior mean of a function of the partition given at each draw, shape (..., n_draws)."""
        return values @ self.weights if self.is_weighted else values.mean(axis=-1)

    def mcse(self, values: Floats) -> Floats:
        """Monte Carlo standard error of :meth:`mean`, from the chains' effective sample size.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        ndarray of shape (...)
            NaN where the draws cannot tell: fewer than four draws in a chain.

        Notes
        -----
        The error is that of the mean of the influence values N w_t (f_t - mean f): for equal weights those are the
        deviations themselves, else the estimate is the delta method's for a ratio of two means. ArviZ computes their
        effective sample size over chains [1]_; chains of unequal length count up to the shortest one's, and the error
        is scaled to all draws.

        References
        ----------
        .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
           https://doi.org/10.1214/20-BA1221
        """
        from arviz_stats.base import array_stats

        influence = self.n_draws * self.weights * (values - np.expand_dims(self.mean(values), -1))
        length = min(rows.size for rows in self.chains)
        if length < 4:
            return np.full(values.shape[:-1], np.nan)
        chains = np.stack([influence[..., rows[:length]] for rows in self.chains], axis=-2)
        used = length * len(self.chains)
        # ArviZ divides by the variance; weights make rounding of what is constant vary.
        constant = (np.ptp(chains, axis=(-2, -1)) == 0) | (np.ptp(values, axis=-1) == 0)
        error = np.zeros(values.shape[:-1])
        if not np.all(constant):
            moving = chains[~constant]
            error[~constant] = array_stats.mcse(moving, chain_axis=-2, draw_axis=-1, method="mean")
        return error * np.sqrt(used / self.n_draws)

    def item_array(self, values: npt.ArrayLike, name: str, **attrs: Any) -> xr.DataArray:
        """Dress one value per item, shape (n_items,), in the user's item coordinates."""
        return xr.DataArray(np.asarray(values), dims=(self.item_dim,), coords=self.item_coords, name=name, attrs=attrs)

    def partition_array(self, labels: npt.NDArray[Any], dim: str, name: str, **attrs: Any) -> xr.DataArray:
        """Dress several label vectors, shape (n_partitions, n_items), with a first dimension `dim`."""
        return xr.DataArray(labels, dims=(dim, self.item_dim), coords=self.item_coords, name=name, attrs=attrs)

    def as_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Take the canonical labels (n_items,) of a result object, a DataArray or a label vector over these items."""
        values = getattr(partition, "labels", partition)
        if isinstance(values, pd.Series) and values.index.name == self.item_dim:
            values = xr.DataArray(values.to_numpy(), dims=(self.item_dim,), coords={self.item_dim: values.index})
        if isinstance(values, xr.DataArray):
            values = self._align(values, name)
        labels = canonical_labels(values, name)
        if labels.size != self.n_items:
            raise ValueError(f"`{name}` must label all {self.n_items} items of the draws; got {labels.size} labels.")
        return labels

    def _align(self, labels: xr.DataArray, name: str) -> npt.NDArray[Any]:
        dim = self.item_dim
        if labels.ndim != 1:
            raise ValueError(f"`{name}` must have the one dimension {dim!r}; got {labels.dims}.")
        if labels.dims != (dim,) or dim not in labels.coords or dim not in self.item_coords:
            return labels.values
        if labels.size != self.n_items:
            return labels.values  # the caller says how many there must be
        order = _positions(self.item_coords[dim].to_index(), labels.coords[dim].to_index())
        if order is None:
            raise ValueError(f"`{name}` must label the same items as the draws; the coordinates of {dim!r} differ.")
        return labels.values[order]

    def __repr__(self) -> str:
        clusters = self.n_clusters
        quantiles = np.quantile(clusters, [0.05, 0.5, 0.95], method="inverted_cdf", weights=self.weights)
        rows = [
            ("draws", f"{self.n_draws}{', weighted' if self.is_weighted else ''}"),
            ("chains", f"{len(self.chains)} of {', '.join(sorted({str(rows.size) for rows in self.chains}))} draws"),
            ("items", f"{self.n_items} ({self.item_dim})"),
            ("clusters", f"{clusters.min()} to {clusters.max()}; 5%, 50%, 95%: {', '.join(str(q) for q in quantiles)}"),
            ("labels", f"{self.labels.dtype}, {self.labels.nbytes / 1e6:.1f} MB"),
        ]
        return "\n".join(["PartitionDraws", *(f"  {key:<9} {value}" for key, value in rows)])


def as_partition_draws(
    data: Any,
    var_name: str | None = None,
    *,
    group: str = "posterior",
    sample_dims: str | Sequence[str] = ("chain", "draw"),
    item_dim: str | None = None,
    weights: Any = None,
) -> PartitionDraws:
    """Take posterior draws of cluster labels from whatever holds them.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, path or PartitionDraws
        Labels may be integers from 0 or 1 or with gaps, strings, or floats that are whole numbers, and their names may
        switch from draw to draw. Arrays and lists are draws x items or chains x draws x items, a DataFrame has a row
        for each draw and a column for each item. A path is one to a NetCDF or Zarr file. PartitionDraws pass as they
        are.
    var_name : str, optional
        Name of the label variable. By default the only variable that can be one: it has the sample dimensions, one
        more, and labels.
    group : str
        Group of an InferenceData, DataTree or file.
    sample_dims : str or sequence of str
        Dimensions that run over draws. Where neither "chain" nor "draw" is there, ``"sample"``, as ``az.extract`` makes
        it, is taken.
    item_dim : str, optional
        Dimension that runs over items; by default the one that is left.
    weights : array_like, optional
        Weight of each draw, of shape (n_draws,) or of the sample dimensions' shape; not negative, in any unit.

    Returns
    -------
    PartitionDraws

    Raises
    ------
    ValueError
        If labels are missing, negative or not whole numbers, a dimension or variable is missing or ambiguous, there are
        no draws or no items, or the weights do not fit. The message names the argument, what came and what is allowed.
    TypeError
        If `data` is of no kind listed above.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[5, 5, 2], [1, 1, 1], ["b", "b", "a"]][:2])
    >>> draws.labels
    array([[0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> draws.n_clusters
    array([2, 1])
    """
    if isinstance(data, PartitionDraws):
        if weights is None:
            return data
        return _with_weights(data, weights)
    dims = _dim_names(sample_dims)
    labels = _label_array(data, var_name, group, dims, item_dim)
    labels, dims, item_dim = _orient(labels, dims, item_dim)
    name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
    n_items = labels.sizes[item_dim]
    n_draws = labels.size // n_items if n_items else int(np.prod([labels.sizes[dim] for dim in dims]))
    if n_items == 0 or n_draws == 0:
        raise ValueError(f"{name} must hold at least one draw of one item; got {dict(labels.sizes)}.")
    codes, n_codes = as_codes(labels.values.reshape(n_draws, n_items), name)
    canonical, n_clusters = canonical_rows(codes, n_codes)
    chain, draw = _sample_ids(labels, dims, n_draws)
    coords = labels.coords.to_dataset().drop_vars([c for c, v in labels.coords.items() if v.dims != (item_dim,)]).coords
    draws = PartitionDraws(
        labels=canonical,
        n_clusters=n_clusters,
        weights=np.full(n_draws, 1.0 / n_draws),
        chain=chain,
        draw=draw,
        item_dim=str(item_dim),
        item_coords=coords,
    )
    return draws if weights is None else _with_weights(draws, weights, labels, dims)


def _dim_names(sample_dims: Any) -> tuple[str, ...]:
    dims = (sample_dims,) if isinstance(sample_dims, str) else sample_dims
    if not isinstance(dims, (list, tuple)) or not all(isinstance(dim, str) for dim in dims):
        raise TypeError(f"`sample_dims` must be a name or a sequence of names; got {sample_dims!r}.")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(f"`sample_dims` must name at least one dimension, and each once; got {sample_dims!r}.")
    return tuple(dims)


def _label_array(
    data: Any, var_name: str | None, group: str, dims: tuple[str, ...], item_dim: str | None
) -> xr.DataArray:
    """Bring any kind of `data` to one DataArray."""
    if var_name is not None and not isinstance(var_name, str):
        raise TypeError(f"`var_name` must be a name; got {var_name!r}.")
    if isinstance(data, xr.DataArray):
        if var_name is not None and data.name not in (None, var_name):
            raise ValueError(
                f"`var_name` must be the name of the DataArray or None; got {var_name!r}, present: {data.name!r}."
            )
        return data
    if isinstance(data, (xr.Dataset, xr.DataTree, str, Path)) or is_inference_data(data):
        return _variable(group_dataset(data, group), var_name, dims, item_dim)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _from_frame(data, dims, item_dim)
    if isinstance(data, np.ndarray) or (isinstance(data, Sequence) and not isinstance(data, (str, bytes))):
        return _from_array(data, item_dim)
    raise TypeError(
        "`data` must be an InferenceData, DataTree, Dataset, DataArray, array, list, DataFrame or path; "
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


def _from_frame(frame: Any, dims: tuple[str, ...], item_dim: str | None) -> xr.DataArray:
    item_dim = str(item_dim or frame.columns.name or "item")
    _check_apart(item_dim, ("sample", *dims))
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


def _sample_ids(labels: xr.DataArray, dims: tuple[str, ...], n_draws: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Chain and draw of every row; a single sample dimension may carry both as coordinates, else it is one chain."""
    if len(dims) == 1:
        coords = labels.coords
        chain = (
            coords["chain"].values
            if "chain" in coords and coords["chain"].dims == dims
            else np.zeros(n_draws, np.int64)
        )
        draw = coords["draw"].values if "draw" in coords and coords["draw"].dims == dims else np.arange(n_draws)
        return np.asarray(chain), np.asarray(draw)
    sizes = [labels.sizes[dim] for dim in dims]
    known = {dim: index.to_numpy() for dim, index in labels.indexes.items() if index.is_unique}
    ids = [known.get(dim, np.arange(size)) for dim, size in zip(dims, sizes, strict=True)]
    at = np.indices(sizes).reshape(len(dims), -1)
    axis = dims.index("chain") if "chain" in dims else 0
    rest = [k for k in range(len(dims)) if k != axis]
    if len(rest) == 1:
        return ids[axis][at[axis]], ids[rest[0]][at[rest[0]]]
    return ids[axis][at[axis]], np.ravel_multi_index(tuple(at[rest]), [sizes[k] for k in rest])


def _with_weights(
    draws: PartitionDraws, weights: Any, labels: xr.DataArray | None = None, dims: tuple[str, ...] = ()
) -> PartitionDraws:
    shape = (draws.n_draws,) if labels is None else tuple(labels.sizes[dim] for dim in dims)
    if isinstance(weights, xr.DataArray) and labels is not None and (weights.ndim > 1 or weights.dims == dims):
        weights = _align_weights(weights, labels, dims)
    values = as_array(weights, "`weights`")
    try:
        if values.dtype.kind not in "iufbO" or any(isinstance(v, str) for v in values.flat if values.dtype == object):
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"`weights` must be numbers; got {type(weights).__name__} of {values.dtype}.") from None
    if values.shape not in ((draws.n_draws,), shape):
        wanted = f"({draws.n_draws},)" + (f" or {shape}" if len(shape) > 1 else "")
        raise ValueError(f"`weights` must be one number per draw, of shape {wanted}; got shape {values.shape}.")
    values = values.ravel()
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if wrong.size:
        raise ValueError(f"`weights` must be finite and not negative; got {wrong[0]!s}.")
    if not values.any():
        raise ValueError("`weights` must not all be 0.")
    values = values / values.max()  # so that the sum of huge or tiny weights neither overflows nor vanishes
    uniform = bool(np.all(values == values[0]))
    values = np.full(draws.n_draws, 1.0 / draws.n_draws) if uniform else values / values.sum()
    return replace(draws, weights=values, is_weighted=not uniform)


def _align_weights(weights: xr.DataArray, labels: xr.DataArray, dims: tuple[str, ...]) -> xr.DataArray:
    """Bring weights over the sample dimensions to the order of the labels."""
    if set(weights.dims) != set(dims):
        raise ValueError(f"`weights` must have the dimensions {dims}; got {weights.dims}.")
    for dim in dims:
        if dim in weights.indexes and dim in labels.indexes and weights.sizes[dim] == labels.sizes[dim]:
            order = _positions(labels.indexes[dim], weights.indexes[dim])
            if order is None:
                raise ValueError(f"`weights` must be those of the same draws; the coordinates of {dim!r} differ.")
            weights = weights.isel({dim: order})
    return weights.transpose(*dims)


def _positions(wanted: pd.Index, found: pd.Index) -> npt.NDArray[np.intp] | None:
    """Where in `found` each of `wanted` is; None where the two do not hold the same."""
    if wanted.equals(found):
        return np.arange(len(wanted))
    if len(wanted) != len(found) or not (wanted.is_unique and found.is_unique):
        return None
    order = found.get_indexer(wanted)
    return order if np.all(order >= 0) else None


def _names(names: Iterable[Hashable]) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"
