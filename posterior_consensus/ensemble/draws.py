"""The door: labels of any origin become PartitionDraws, one checked and canonical object that all else works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus import display
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.pairs import Need, PairSimilarity, PairSource, needs_draws
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.partitions import as_array, as_codes, canonical_rows
from posterior_consensus.sources.variables import label_array, positions

_DRAWS_AT_ONCE = 4096  # bounds the memory of the bit planes, and is a block that could come from disk


@dataclass(frozen=True, eq=False, repr=False)
class PartitionDraws(PairSource):
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
    labels_are_sure: ClassVar[bool] = True

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.labels.shape[0]

    def __len__(self) -> int:
        return self.n_draws

    @property
    def is_counted(self) -> bool:
        """Whether a similarity is a number of draws, divided by that of all."""
        return not self.is_weighted

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

    @property
    def effective_draws(self) -> float:
        """Kish's effective number of draws: of so many equally weighted ones a mean would vary as much.

        1 / sum_t w_t^2, with weights that sum to 1; `n_draws` where they are equal. It knows nothing of the correlation
        of successive draws, nor of the function whose mean is wanted [1]_.

        References
        ----------
        .. [1] Elvira, Martino and Robert (2022), International Statistical Review 90(3), 525-550.
           https://doi.org/10.1111/insr.12500
        """
        return float(1.0 / np.square(self.weights).sum()) if self.is_weighted else float(self.n_draws)

    def mean(self, values: Floats) -> Floats:
        """Posterior mean of a function of the partition given at each draw, shape (..., n_draws)."""
        if not self.is_weighted:
            return values.mean(axis=-1)
        # Weights sum to 1 but for rounding: seen from one draw, a constant keeps its value and a share is at most 1.
        origin = values[..., int(self.weights.argmax())].astype(np.float64)
        mean: Floats = origin + (values - origin[..., np.newaxis]) @ self.weights
        return mean

    def mcse(self, values: Floats) -> Floats:
        """Monte Carlo standard error of :meth:`mean`, from the chains' effective sample size and the weights.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        ndarray of shape (...)
            NaN where the draws cannot tell: fewer than four draws in a chain, one draw with all the weight, or a
            function that varies but not among the draws compared. 0 for a constant.

        Notes
        -----
        The error is that of the mean of the jackknife's pseudo-values [1]_, less a constant

            (N - 1) w_t (f_t - mean f) / (1 - w_t).

        For equal weights those are the deviations themselves. Else they are what the delta method gives for a ratio of
        two means, N w_t (f_t - mean f), but for what a draw of large weight does to the mean: leaving out one that
        has nearly all of it moves the mean as far as the other draws are away, and the error says so. Their standard
        deviation is that of all draws. ArviZ computes their effective sample size over chains [2]_; chains of unequal
        length count up to the shortest one's, and the size is scaled to all draws.

        References
        ----------
        .. [1] Miller (1974), Biometrika 61(1), 1-15. https://doi.org/10.1093/biomet/61.1.1
        .. [2] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
           https://doi.org/10.1214/20-BA1221
        """
        from arviz_stats.base import array_stats

        error = np.full(values.shape[:-1], np.nan)
        if min(rows.size for rows in self.chains) < 4 or self.weights.max() == 1.0:
            return error
        deviations = values - self.mean(values)[..., np.newaxis]
        pseudo = (self.n_draws - 1) * self.weights / (1.0 - self.weights) * deviations
        error[np.ptp(values[..., self.weights > 0], axis=-1) == 0] = 0.0
        chains = self.by_chain(pseudo)
        moving = np.isnan(error) & (np.ptp(chains, axis=(-2, -1)) > 0)  # ArviZ divides by the variance
        if np.any(moving):
            largest = np.abs(chains[moving]).max(axis=(-2, -1), keepdims=True)  # ArviZ takes tiny values for constant
            size = array_stats.ess(chains[moving] / largest, chain_axis=-2, draw_axis=-1, method="mean")
            size *= self.n_draws / (chains.shape[-2] * chains.shape[-1])
            error[moving] = pseudo[moving].std(axis=-1, ddof=1) / np.sqrt(size)
        return error

    @property
    def about_weights(self) -> str:
        """What the weights leave, in words."""
        return f"Kish's effective number {self.effective_draws:.4g}, largest weight {self.weights.max():.2%}"

    def by_chain(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Stack values of shape (..., n_draws) by chain, (..., n_chains, n); n is the length of the shortest."""
        length = min(rows.size for rows in self.chains)
        return np.stack([values[..., rows[:length]] for rows in self.chains], axis=-2)

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """Keep some draws, by row number; their weights sum to 1 again, and equal ones where all of them were 0."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {name: value[rows] for name, value in kept.items() if isinstance(value, np.ndarray)}
        weights = changed["weights"]
        uniform = bool(np.all(weights == weights[0]))
        changed["weights"] = np.full(weights.size, 1.0 / weights.size) if uniform else weights / weights.sum()
        return replace(self, **changed, is_weighted=not uniform)

    def isel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Self:
        """Keep some draws by their position, as xarray's ``isel`` does on a posterior.

        Parameters
        ----------
        chain : int, slice or array_like of int or bool
            Positions of chains.
        draw : int, slice or array_like of int or bool
            Positions within each of these chains: ``slice(500, None)`` drops a burn-in of 500 draws from each chain,
            ``slice(None, None, 5)`` keeps every fifth draw.

        Returns
        -------
        PartitionDraws or AllocationProbabilities
            Chain after chain in the order that was asked for. Weights sum to 1 again, as by :meth:`take`.

        Raises
        ------
        IndexError
            If there is no such chain or draw, or no draw is left.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = pc.as_partition_draws([[[0, 0], [0, 1], [0, 0]], [[0, 1], [0, 1], [0, 0]]])
        >>> draws.isel(draw=slice(1, None)).draw
        array([1, 2, 1, 2])
        >>> draws.isel(chain=1, draw=[0, 2]).labels
        array([[0, 1],
               [0, 0]], dtype=uint8)
        """
        return self._picked("isel", {"chain": chain, "draw": draw})

    def sel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Self:
        """Keep some draws by the values of `chain` and `draw`, as xarray's ``sel`` does on a posterior.

        Parameters
        ----------
        chain : label, slice or array_like of labels
            Chains as in the attribute `chain`; slices include both ends.
        draw : label, slice or array_like of labels
            Draws of each of these chains, as in the attribute `draw`.

        Returns
        -------
        PartitionDraws or AllocationProbabilities
            Chain after chain in the order that was asked for. Weights sum to 1 again, as by :meth:`take`.

        Raises
        ------
        KeyError
            If there is no such chain or draw, or no draw is left.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = pc.as_partition_draws([[[0, 0], [0, 1], [0, 0]], [[0, 1], [0, 1], [0, 0]]])
        >>> len(draws.sel(chain=[0], draw=slice(1, 2)))
        2
        """
        return self._picked("sel", {"chain": chain, "draw": draw})

    def _picked(self, by: str, wanted: dict[str, Any]) -> Self:
        """Let xarray choose chains, and draws within each."""

        def positions_of(dim: str, ids: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
            along = xr.DataArray(np.arange(ids.size), coords={dim: ids}, dims=dim)
            try:
                return np.atleast_1d(getattr(along, by)({dim: wanted[dim]}).values)
            except (IndexError, KeyError) as error:
                first, last = (0, ids.size - 1) if by == "isel" else (ids[0], ids[-1])
                raise type(error)(f"`{dim}` must lie among {first} to {last}; got {wanted[dim]!r}.") from None

        chosen = positions_of("chain", self.chain[[rows[0] for rows in self.chains]])
        rows = [self.chains[k][positions_of("draw", self.draw[self.chains[k]])] for k in chosen]
        if not sum(map(len, rows)):
            error = IndexError if by == "isel" else KeyError
            asked = ", ".join(f"{dim}={value!r}" for dim, value in wanted.items() if value != slice(None))
            raise error(f"`chain` and `draw` must leave at least one of the {self.n_draws} draws; got {asked}.")
        return self.take(np.concatenate(rows))

    @property
    def most_clusters(self) -> int:
        """The largest number of clusters in any draw; those of weight 0 are not in the posterior."""
        return int(self.n_clusters[self.weights > 0].max())

    def similarity(self) -> Floats:
        """Share of draws (n, n) that have two items together, as an array of the caller's own."""
        similarity = np.empty((self.n_items, self.n_items))
        if self.is_weighted:
            similarity[:] = 0.0
            coclustering.add_coclustering_weights(self.labels, self.weights, similarity)
            similarity /= similarity[0, 0]  # the sum of all weights in the same order: rounding takes none above it
            return similarity
        for first in range(0, self.n_draws, _DRAWS_AT_ONCE):
            block = self.labels[first : first + _DRAWS_AT_ONCE]
            planes = coclustering.pack_bit_planes(block, self.n_planes)
            last = first + len(block) == self.n_draws
            divisor = float(self.n_draws) if last else 1.0
            coclustering.add_coclustering_counts(planes, len(block), similarity, first == 0, divisor)
        return similarity

    @property
    def n_planes(self) -> int:
        """Bits of the largest label, up to a multiple of what the kernels take at once."""
        bits = int(self.n_clusters.max() - 1).bit_length()
        return max(coclustering.PLANES_AT_ONCE, -(-bits // coclustering.PLANES_AT_ONCE) * coclustering.PLANES_AT_ONCE)

    def without_zero_weights(self) -> Self:
        """Return the draws whose weight is not 0."""
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """Labels (at most `most`, n) of the first draws that differ, among as many as that."""
        return np.unique(self.labels[:most], axis=0)

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all, at n x N cost."""
        row: Floats = ensemble.similarity_rows(self.labels, self._addends[0], np.array([item]))[0]
        return row / row[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix with `columns` (n, c), at n x N x c cost."""
        addends, total = self._addends
        table = ensemble.scatter(self.labels, self.starts, np.ascontiguousarray(columns))
        product: Floats = ensemble.gather(self.labels, self.starts, addends, table)
        return product / total

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of every item's similarities to the other members of each cluster, and what to divide them by."""
        addends, total = self._addends
        counts = ensemble.joint_counts(self.labels, self.starts, labels, int(labels.max()) + 1)
        links: Floats = ensemble.gather(self.labels, self.starts, addends, counts)
        links[np.arange(labels.size), labels] -= total
        return links, total

    @property
    def _addends(self) -> tuple[Floats, float]:
        """Weights to add before one division by their sum, and that sum; ones, whose sums are exact, if equal."""
        weights = self.weights if self.is_weighted else np.ones(self.n_draws)
        return weights, float(weights.sum())

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number (n,) of each item's labels over all draws."""
        numbers: dict[bytes, int] = {}
        columns = np.ascontiguousarray(self.labels[self.weights > 0].T)
        return np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in columns])

    def _facts(self) -> list[tuple[str, str]]:
        clusters = self.n_clusters
        quantiles = np.quantile(clusters, [0.05, 0.5, 0.95], method="inverted_cdf", weights=self.weights)
        return [
            ("draws", f"{self.n_draws}{', weighted: ' + self.about_weights if self.is_weighted else ''}"),
            ("chains", f"{len(self.chains)} of {', '.join(sorted({str(rows.size) for rows in self.chains}))} draws"),
            ("items", f"{self.n_items} ({self.item_dim})"),
            ("clusters", f"{clusters.min()} to {clusters.max()}; 5%, 50%, 95%: {', '.join(str(q) for q in quantiles)}"),
            ("labels", f"{self.labels.dtype}, {self.labels.nbytes / 1e6:.1f} MB"),
        ]

    def __repr__(self) -> str:
        return display.as_text(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return display.as_html(type(self).__name__, self._facts())


Draws = TypeVar("Draws", bound=PartitionDraws)


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
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, dict, path or PartitionDraws
        Labels may be integers from 0 or 1 or with gaps, strings, or floats that are whole numbers, and their names may
        switch from draw to draw. Arrays and lists are draws x items or chains x draws x items, a DataFrame has a row
        for each draw and a column for each item, a dict has arrays of chains x draws x items by name. A path is one to
        a NetCDF or Zarr file, a NumPy file or a table of text, see Notes; a list of the latter has one for each chain.
        PartitionDraws pass as they are.
    var_name : str, optional
        Name of the label variable. By default the only variable that can be one: it has the sample dimensions, one
        more, and labels. Of a table, the columns of that name: ``z`` for ``z[1]``, ``z[2]``, ...
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

    Notes
    -----
    Tables (.csv, .tsv, .txt, also with .gz) have a row for each draw and a column for each item, as R's ``write.csv``
    makes them of a matrix of draws x items. A first line of names, quoted or not numbers, becomes the items'
    coordinate; names of rows are left out. Columns ``chain`` and ``draw`` (or ``.chain`` and ``.iteration``, as R's
    posterior calls them) say where a row comes from; without them all rows are one chain. A NumPy file (.npy, .npz with
    one array) has draws x items or chains x draws x items.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[5, 5, 2], [1, 1, 1]])
    >>> draws.labels
    array([[0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> draws.n_clusters
    array([2, 1])
    """
    if isinstance(data, PartitionDraws):
        if var_name is not None or item_dim is not None:
            raise ValueError("`var_name` and `item_dim` must be None for PartitionDraws, which are made already.")
        return data if weights is None else with_weights(data, weights)
    if isinstance(data, PairSimilarity):
        raise needs_draws("This")
    labels, dims, item_dim = label_array(data, var_name, group, sample_dims, item_dim)
    name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
    n_draws, n_items = draws_and_items(labels, dims, item_dim, name)
    codes, n_codes = as_codes(labels.values.reshape(n_draws, n_items), name)
    canonical, n_clusters = canonical_rows(codes, n_codes)
    draws = PartitionDraws(canonical, n_clusters, **frame(labels, dims, item_dim))
    return draws if weights is None else with_weights(draws, weights, labels, dims)


def as_pair_source(data: Any, needs: Mapping[str, Need] | None = None) -> PairSource:
    """Take a similarity matrix alone as it is, and anything else as draws.

    Parameters
    ----------
    data : PairSimilarity or anything :func:`as_partition_draws` takes
    needs : mapping of str to {"pairs", "draws"}, optional
        What is asked for, by what asks for it, such as ``{"loss 'vi'": "draws"}``.

    Raises
    ------
    ValueError
        If something needs draws and there is a matrix alone, and as :func:`as_partition_draws`.
    """
    if not isinstance(data, PairSimilarity):
        return as_partition_draws(data)
    for what, need in (needs or {}).items():
        if need == "draws":
            raise needs_draws(what)
    return data


def draws_and_items(values: xr.DataArray, dims: tuple[str, ...], item_dim: str, name: str) -> tuple[int, int]:
    """Numbers of draws and of items; an error if either is 0."""
    n_draws, n_items = int(np.prod([values.sizes[dim] for dim in dims])), values.sizes[item_dim]
    if n_items == 0 or n_draws == 0:
        raise ValueError(f"{name} must hold at least one draw of one item; got {dict(values.sizes)}.")
    return n_draws, n_items


def frame(values: xr.DataArray, dims: tuple[str, ...], item_dim: str) -> dict[str, Any]:
    """What PartitionDraws keep of an array's coordinates, and equal weights."""
    n_draws = int(np.prod([values.sizes[dim] for dim in dims]))
    chain, draw = _sample_ids(values, dims, n_draws)
    coords = values.coords.to_dataset().drop_vars([c for c, v in values.coords.items() if v.dims != (item_dim,)]).coords
    return {
        "weights": np.full(n_draws, 1.0 / n_draws),
        "chain": chain,
        "draw": draw,
        "item_dim": str(item_dim),
        "item_coords": coords,
    }


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


def with_weights(draws: Draws, weights: Any, labels: xr.DataArray | None = None, dims: tuple[str, ...] = ()) -> Draws:
    """Return the draws with these weights, checked and divided by their sum."""
    shape = tuple(labels.sizes[dim] for dim in dims) if labels is not None else _shape_by_chain(draws)
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


def _shape_by_chain(draws: PartitionDraws) -> tuple[int, ...]:
    """(chains, draws) where the rows are chains of one length, one after the other, else (n_draws,)."""
    lengths = {rows.size for rows in draws.chains}
    in_order = np.array_equal(np.concatenate(draws.chains), np.arange(draws.n_draws))
    return (len(draws.chains), lengths.pop()) if in_order and len(lengths) == 1 else (draws.n_draws,)


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
