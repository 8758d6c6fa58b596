"""The items: their names and the user's coordinates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.partitions import Labels, alone, canonical_labels, marked, of_result
from posterior_consensus.results.display import as_text
from posterior_consensus.results.stored_as import own_name
from posterior_consensus.runtime.aliases import Floats

NOISE = "noise"
"""Name of an item's cluster where the item is in none."""

NUMBER_OF_NOISE = -2
"""Number of noise among the numbers of clusters, which set colours; unassigned items have -1."""

_FAR_APART = 100  # larger integers, if clusters are few, do not number these


class Clusters(NamedTuple):
    """The clusters of a partition, and its noise, if it has some, in one more."""

    labels: Labels  # (n_items,): clusters, numbered by first appearance; noise is in the last
    names: tuple[Hashable, ...]  # users' names of the clusters
    numbers: npt.NDArray[np.int64]  # (n_clusters,): number of each cluster, for its colour
    noise: int | None  # label of noise; None without noise

    def with_noise(self, name: str) -> Clusters:
        """These clusters, and noise even if no item is; errors call the partition `name`."""
        if self.noise is not None:
            return self
        if NOISE in self.names:
            raise ValueError(f"`{name}` must name no cluster {NOISE!r}, as runs call items so; rename it.")
        last, numbers = len(self.names), np.append(self.numbers, NUMBER_OF_NOISE)
        labels = np.where(self.labels < 0, last, self.labels).astype(np.int32)
        return Clusters(labels, (*self.names, NOISE), numbers, last)


@dataclass(frozen=True, eq=False)
class Items:
    """Items with the user's coordinates.

    Attributes
    ----------
    n_items : int
        Number of items.
    dim : str
        Name of the items' dimension.
    coords : xarray.Coordinates
        The user's coordinates of that dimension.
    """

    n_items: int
    dim: str
    coords: xr.Coordinates

    @classmethod
    def along(cls, values: xr.DataArray, dim: str) -> Self:
        """Items of a dimension of an array, with their coordinates."""
        others = [name for name, coord in values.coords.items() if coord.dims != (dim,)]
        return cls(values.sizes[dim], str(dim), values.coords.to_dataset().drop_vars(others).coords)

    @property
    def _positions(self) -> xr.DataArray:
        return xr.DataArray(np.arange(self.n_items), coords=self.coords, dims=self.dim)

    def positions_of(self, wanted: Any) -> npt.NDArray[np.intp]:
        """Select items as xarray does: by name if they have a coordinate, else, or by booleans, by position."""
        by_name = self.dim in self.coords and np.asarray(wanted).dtype.kind != "b"
        if by_name:
            self._check_unique()
        try:
            choose = self._positions.sel if by_name else self._positions.isel
            chosen = np.atleast_1d(choose({self.dim: wanted}).values)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            names = self.names
            some = (
                f"names of items, {names[0]} to {names[-1]}"
                if by_name
                else f"positions below {self.n_items}, or {self.n_items} booleans"
            )
            raise type(error)(f"`items` must be {some}; got {wanted!r}.") from None
        if chosen.ndim != 1 or not chosen.size or np.unique(chosen).size < chosen.size:
            raise ValueError(f"`items` must be at least one item, and each of them once; got {wanted!r}.")
        return chosen

    def _check_unique(self) -> None:
        index = self.coords[self.dim].to_index()
        if not index.is_unique:
            raise ValueError(
                f"`items` must be booleans, one for each item, as names of {self.dim!r} are not unique: "
                f"{_doubled(index, 'items')}. Or give each item a name of its own."
            )

    def take(self, at: npt.NDArray[np.intp]) -> Items:
        """Keep some items, by position."""
        return Items.along(self._positions[{self.dim: at}], self.dim)

    def own(self, name: str) -> str:
        """Name of a result's own dimension or coordinate, which differs from all names of the items."""
        return own_name(name, {self.dim, *self.coords})

    def array(
        self, values: npt.ArrayLike, name: str, dims: Sequence[Any] = (...,), coords: Mapping[str, Any] | None = None
    ) -> xr.DataArray:
        """Build a DataArray with the user's coordinates of the items.

        Parameters
        ----------
        values : array_like
            One value per item, or one for each combination of `dims`.
        name : str
            Name of the array.
        dims : sequence of str and Ellipsis
            The result's own dimensions, and ``...`` in the place of the items.
        coords : mapping, optional
            Coordinates of own dimensions: of the dimension of their name, or as (dimension, values).
        """
        array = xr.DataArray(
            np.asarray(values),
            dims=[self.dim if dim is ... else self.own(dim) for dim in dims],
            coords=self.coords,
            name=name,
        )
        own = {one: coord if isinstance(coord, tuple) else (one, coord) for one, coord in (coords or {}).items()}
        return array.assign_coords({self.own(one): (self.own(dim), coord) for one, (dim, coord) in own.items()})

    def dataset(
        self,
        columns: Mapping[str, npt.NDArray[Any]],
        dims: Sequence[Any] = (...,),
        coords: Mapping[str, Any] | None = None,
    ) -> xr.Dataset:
        """Build a Dataset of one :meth:`array` for each column, over the first of `dims`."""
        arrays = {name: self.array(column, name, dims[: column.ndim], coords) for name, column in columns.items()}
        return xr.Dataset({self.own(name): array for name, array in arrays.items()})

    def pair_array(
        self, values: Floats, name: str, dims: tuple[str, ...] = (), coords: Mapping[str, Any] | None = None
    ) -> xr.DataArray:
        """Build a DataArray of one value per pair, after own `dims`; the last dimension ends in ``_bis``."""
        bis = self.own(f"{self.dim}_bis")
        pairs = self.array(values, name, (*dims, ..., f"{self.dim}_bis"), coords)
        if self.dim not in self.coords:
            return pairs
        index = self.coords[self.dim].to_index()
        if isinstance(index, pd.MultiIndex):
            index = index.set_names([self.own(f"{level}_bis") for level in index.names])
        return pairs.assign_coords(coords_of(index, bis))

    @property
    def names(self) -> npt.NDArray[np.str_]:
        """Names of the items as text: their coordinate, or their positions."""
        return self.named(slice(None))

    def named(self, at: npt.NDArray[np.intp] | slice) -> npt.NDArray[np.str_]:
        """Names of some items, by position."""
        names: npt.NDArray[Any] = self.coords[self.dim].values if self.dim in self.coords else np.arange(self.n_items)
        if names.dtype.kind == "M":
            return np.datetime_as_string(names[at], unit="auto")  # omits hours to nanoseconds if all are zero
        several = names.dtype == object  # of which tuples are names of several levels
        return np.array([as_text(name) if several else str(name) for name in names[at]], dtype=np.str_)

    def reordered(self, partition: Any, name: str = "partition") -> Any:
        """Return a partition's own labels in the order of these items; by position if a coordinate is missing."""
        values = labelled(partition, self.dim)
        if not isinstance(values, xr.DataArray):
            return values
        if values.ndim != 1:
            raise ValueError(f"`{name}` must have the one dimension {self.dim!r}; got {values.dims}.")
        own = Items.along(values, str(values.dims[0]))
        return values.values if own.n_items != self.n_items else values.values[own.order_of(self, name)]

    def order_of(self, others: Items, name: str) -> npt.NDArray[np.intp]:
        """Positions of `others` in these items; by position if one side has no names. Errors use `name`.

        The names of dimensions count only if one side's names are numbers from 0 or 1, as ArviZ gives them.
        """
        if self.n_items != others.n_items:
            raise ValueError(f"`{name}` must label the same {others.n_items} items; got {self.n_items}.")
        wanted, present = others._index, self._index
        if wanted is None or present is None:
            return np.arange(others.n_items)
        if self.dim != others.dim and (_is_count(wanted) or _is_count(present)):
            return np.arange(others.n_items)  # ArviZ numbers the items of a variable without names
        order = positions(wanted, present)
        if order is None:
            why = difference(wanted, present)
            dims = repr(self.dim) if self.dim == others.dim else f"{self.dim!r} and {others.dim!r}"
            raise ValueError(
                f"`{name}` must be of the same items; the coordinates of {dims} differ: {why}. Items are paired by "
                "name; arrays without names, such as `.values`, by place."
            )
        return order

    @property
    def _index(self) -> pd.Index | None:
        """Names of the items; None without a coordinate."""
        return self.coords[self.dim].to_index() if self.dim in self.coords else None

    def as_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Canonical labels (n_items,) of a result, a DataArray or a label vector over these items."""
        labels = canonical_labels(self.reordered(partition, name), name)
        if labels.size != self.n_items:
            raise ValueError(f"`{name}` must label all {self.n_items} items; got {labels.size} labels.")
        return labels

    def as_marked_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Labels (n_items,) as :meth:`as_labels` has them, but -1 where a result, or a label of -1, says noise."""
        values = np.asarray(self.reordered(partition, name))
        given = of_result(partition, "noise")
        if isinstance(given, xr.DataArray):
            noise = np.asarray(self.reordered(given, name), np.bool_)
        else:
            noise = values == -1 if values.dtype.kind in "if" else np.zeros(values.shape, np.bool_)
        if not noise.any() or noise.shape != (self.n_items,):
            return self.as_labels(partition, name)
        return marked(values, noise, name)

    def clusters_of(self, partition: Any, name: str = "partition", labels: Labels | None = None) -> Clusters:
        """Clusters of a partition of these items, by its `labels` if they are known; noise, label -1, is one more."""
        if labels is None:
            has_noise = isinstance(of_result(partition, "noise"), xr.DataArray)
            labels = (self.as_marked_labels if has_noise else self.as_labels)(partition, name)
        given = np.asarray(self.reordered(partition, name))[labels >= 0]
        found = Clusters(labels, cluster_names(partition, given), cluster_numbers(partition, given), None)
        return found.with_noise(name) if (labels < 0).any() else found


def coords_of(index: pd.Index, dim: str) -> xr.Coordinates:
    """Coordinates of a dimension from an index of its items, with one or several levels."""
    if isinstance(index, pd.MultiIndex):
        return xr.Coordinates.from_pandas_multiindex(index, dim)
    return xr.Coordinates({dim: index.to_numpy()})


def by_level(name: str, items: pd.Index) -> dict[str, pd.Index]:
    """Columns of items' names: one of this name, or one for each level, with its name at the end."""
    if items.nlevels == 1:
        return {name: items}
    return {f"{name}_{level}": items.get_level_values(k) for k, level in enumerate(items.names)}


def labelled(partition: Any, dim: str) -> Any:
    """A result's labels, each item of noise alone; a Series with names as a DataArray over `dim`; else as it is."""
    values = of_result(partition, "labels", partition)
    if isinstance(of_result(partition, "noise"), xr.DataArray):
        return values.copy(data=alone(values.values))
    if isinstance(values, pd.Series) and is_named(values.index):
        return xr.DataArray(values.to_numpy(), dims=(dim,), coords=coords_of(values.index, dim))
    return values


def is_named(index: pd.Index) -> bool:
    """Whether the index of a Series or a table names its rows, rather than counting them from 0."""
    return not (isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1)


def name_or(name: Hashable, usual: str) -> str:
    """The name of an index or of an array as text, also if it is 0; the usual name if it has none."""
    return usual if name is None or name == "" else str(name)


def items_named_in(partitions: Sequence[Any]) -> Items | None:
    """Items of the first DataArray or Series that names them, else of the first DataArray; None without one."""
    values = [labelled(partition, "item") for partition in partitions]
    arrays = [one for one in values if isinstance(one, xr.DataArray) and one.ndim == 1]
    named = [one for one in arrays if one.dims[0] in one.coords]
    return next((Items.along(one, str(one.dims[0])) for one in (*named, *arrays)), None)


def _is_count(index: pd.Index) -> bool:
    """Whether names count from 0 or 1."""
    return any(index.equals(pd.RangeIndex(first, first + len(index))) for first in (0, 1))


def members_of(labels: xr.DataArray, most: int | None = None) -> list[list[Any]]:
    """Members of each cluster from 0 on, by coordinate value if there is a coordinate, else by position.

    `most` is the largest number of clusters.
    """
    dim = str(labels.dims[0])
    items = labels.indexes[dim] if dim in labels.indexes else pd.RangeIndex(labels.size)
    order, sizes = np.argsort(labels.values, kind="stable"), np.bincount(labels.values[labels.values >= 0])
    ends = [0, *np.cumsum(sizes)[:most].tolist()]
    members = items[order[labels.size - sizes.sum() :][: ends[-1]]].tolist()
    return [members[start:end] for start, end in pairwise(ends)]


def cluster_names(partition: Any, values: Any) -> tuple[Hashable, ...]:
    """Users' names of the clusters, in order of first appearance in the labels `values`."""
    values = np.asarray(values)
    first_labels = values[np.sort(np.unique(values, return_index=True)[1])].tolist()
    given = of_result(partition, "names")  # a consensus has them
    if given is not None:
        return tuple(given[k] if k < len(given) else NOISE for k in first_labels)
    return tuple(int(name) if isinstance(name, float) else name for name in first_labels)


def numbers_of(names: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """Number of each cluster: its name if all names are small integers, else its place."""
    small = max(_FAR_APART, 2 * len(names))
    integers = all(type(name) is int and 0 <= name < small for name in names)
    return np.array(names if integers else range(len(names)), np.int64)


def numbers_for_colours(names: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """Numbers of clusters by :func:`numbers_of`, of which noise, if named last, has its own."""
    if not names or names[-1] != NOISE:
        return numbers_of(names)
    return np.append(numbers_of(names[:-1]), NUMBER_OF_NOISE)


def cluster_numbers(partition: Any, values: Any) -> npt.NDArray[np.int64]:
    """Number of each cluster, in the order of :func:`cluster_names`; equal names get equal numbers in all partitions.

    If names are no small integers, a result that lists its names gives its labels as numbers.
    """
    names = cluster_names(partition, values)
    numbers = numbers_of(names)
    if of_result(partition, "names") is None or tuple(numbers.tolist()) == names:
        return numbers
    return np.array(list(dict.fromkeys(np.asarray(values).tolist())), np.int64)


def positions(wanted: pd.Index, present: pd.Index) -> npt.NDArray[np.intp] | None:
    """Positions in `present` of each of `wanted`; None unless both have the same values."""
    if wanted.equals(present):
        return np.arange(len(wanted))
    if len(wanted) != len(present) or not (wanted.is_unique and present.is_unique):
        return None
    order = present.get_indexer(wanted)
    return order if np.all(order >= 0) else None


def difference(wanted: pd.Index, present: pd.Index, what: str = "items") -> str:
    """Explain in words why :func:`positions` returned None; `what` are the named things."""
    if not (wanted.is_unique and present.is_unique):
        return _doubled(present if wanted.is_unique else wanted, what)
    missing, other = wanted.difference(present, sort=False).tolist(), present.difference(wanted, sort=False).tolist()
    return f"{missing[0]!r} is missing" if missing else f"got {other[0]!r}"


def _doubled(index: pd.Index, what: str) -> str:
    name = index[index.duplicated()].tolist()[0]
    return f"{name!r} is the name of {int((index == name).sum())} {what}"


def two_partitions(one: Any, other: Any) -> tuple[Labels, Labels]:
    """Canonical labels (n_items,) of two partitions of the same items, in the order of the first."""
    values = of_result(one, "labels", one), of_result(other, "labels", other)
    dim = next((str(v.dims[0]) for v in values if isinstance(v, xr.DataArray) and v.ndim == 1), "item")
    one, other = labelled(one, dim), labelled(other, dim)
    if isinstance(one, xr.DataArray) and one.dims == (dim,):
        other = Items.along(one, dim).reordered(other, "other partition")
    ours, theirs = canonical_labels(one), canonical_labels(other)
    if ours.size != theirs.size:
        raise ValueError(f"Two partitions must have the same items; got {ours.size} and {theirs.size} labels.")
    return ours, theirs
