"""Partitions as label vectors: canonical form, contingency, enumeration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from posterior_consensus.kernels import ensemble

Labels = npt.NDArray[np.int32]
Place = Callable[[tuple[int, ...]], str]  # describes an index of the user's array
UNEVEN = "must hold sequences of one length"


class HasLabels:
    """A result that NumPy converts to its `labels`."""

    _no_figure: ClassVar[str] = (
        "those of draws and data show it: plot_psm(draws, partition), plot_data(data, partition)"
    )

    labels: Any

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Labels of the items, so that ``np.asarray(result)`` gives them."""
        return np.array(self.labels.values, dtype=dtype, copy=copy)


class HasDraws(HasLabels):
    """A result that stands for its `draws` if a function needs draws, and for its `labels` otherwise."""

    draws: Any


def of_result(partition: Any, attribute: str, otherwise: Any = None) -> Any:
    """Attribute of a result; `otherwise` for a label vector, which has coordinates or entries as attributes."""
    is_vector = isinstance(partition, (xr.DataArray, pd.Series))
    return otherwise if is_vector else getattr(partition, attribute, otherwise)


def named_partitions(partitions: Any, name: str) -> dict[Any, Any]:
    """Partitions by name, from a dict, or by number."""
    if isinstance(partitions, Mapping):
        named = {str(key): partition for key, partition in partitions.items()}
        if len(named) < len(partitions):
            raise ValueError(f"`{name}` must have names that differ as text; got {list(partitions)}.")
        return named
    if (isinstance(partitions, Sequence) and not isinstance(partitions, str)) or getattr(partitions, "ndim", 0) == 2:
        return dict(enumerate(partitions))
    raise TypeError(f"`{name}` must be a dict or a list of partitions; got {type(partitions).__name__}.")


def is_partition(data: Any) -> bool:
    """Whether `data` is a single partition: a result with labels, or a label vector."""
    if isinstance(data, (list, tuple)):
        return len(data) > 0 and np.isscalar(data[0])
    return isinstance(data, HasLabels) or getattr(data, "ndim", None) == 1


def smallest_dtype(n_codes: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the codes 0 to `n_codes` - 1."""
    return np.min_scalar_type(max(n_codes - 1, 0))


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert values like NumPy, but keep masks, and keep NaN and numbers among strings as they are."""
    if np.ma.is_masked(values):
        raise _missing(name, np.ma.getmaskarray(values))
    try:
        array = np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{name} {UNEVEN}; got {uneven(values)}.") from None
    return array if array.dtype.kind != "U" or hasattr(values, "dtype") else np.asarray(values, dtype=object)


def native(values: Any) -> Any:
    """Values in the byte order of this machine, as pandas takes no others."""
    is_foreign = isinstance(values, np.ndarray) and not values.dtype.isnative
    return values.astype(values.dtype.newbyteorder("=")) if is_foreign else values


def uneven(values: Any) -> str:
    """Say which two parts of nested sequences have different lengths, by their indices, the outermost first."""
    parts = [("", values)]
    while True:
        parts = [(f"{at}[{k}]", part) for at, whole in parts for k, part in enumerate(whole)]
        lengths = [_length(part) for _, part in parts]
        if lengths[0] is None and set(lengths) == {None}:  # objects that only NumPy can convert
            return "parts of different shapes"
        other = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
        if other is not None:
            return " and ".join(
                f"{'a single value' if lengths[k] is None else f'length {lengths[k]}'} at {parts[k][0]}"
                for k in (0, other)
            )


def _length(part: Any) -> int | None:
    """Length of a sequence or array; None of a single value."""
    is_long = hasattr(part, "__len__") and not isinstance(part, str) and getattr(part, "ndim", 1) > 0
    return len(part) if is_long else None


def place_in_array(index: tuple[int, ...]) -> str:
    """Describe the place of a value in an array without names."""
    axes = {1: ["position"], 2: ["row", "column"]}.get(len(index))
    where = f"index {index}" if axes is None else ", ".join(map("{} {}".format, axes, index))
    return f"{where} (from 0)"


def place_in(values: xr.DataArray) -> Place:
    """Function that describes an index of the array: chain, draw and item, or row and column of a matrix."""
    if values.dims == ("item", "item_bis") and not values.coords:
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


def first_of(wrong: npt.NDArray[np.bool_], place: Place = place_in_array) -> str:
    """Describe the place of the first wrong value."""
    return place(tuple(int(number) for number in np.unravel_index(int(wrong.argmax()), wrong.shape)))


def _missing(name: str, missing: npt.NDArray[np.bool_], place: Place = place_in_array) -> ValueError:
    number = int(missing.sum())
    first = "" if number == 1 else ", the first"
    return ValueError(
        f"{name} must not be missing; got {number} NaN{first} at {first_of(missing, place)}. "
        f"Drop those items or draws first.{_runs_hint(missing, 'numpy.nan')}"
    )


def _runs_hint(values: npt.NDArray[Any], label: str) -> str:
    """Next step for runs with labels of no cluster, as the end of an error; empty for one partition."""
    if values.ndim == 1:
        return ""
    return (
        f" For runs of a clustering program: as_runs(data, noise={label}) if they put these items into no cluster, "
        f"as_runs(data, missing={label}) if they did not have them."
    )


def as_codes(values: npt.NDArray[Any], name: str, place: Place = place_in_array) -> tuple[npt.NDArray[Any], int]:
    """Turn labels of any kind and shape into unsigned integers from 0; also return one more than the largest.

    Labels are integers, booleans, strings or integer-valued floats. Errors call them `name`, and `place` describes
    where a label is, given its index.

    Raises
    ------
    ValueError
        If a label is missing (NaN, None), negative, infinite or not an integer.
    TypeError
        If the labels are of another kind.
    """
    values, highest = plain_labels(values, name, place)
    if is_text(values) or highest >= max(2**16, 2 * values.size):  # too wide for a table of codes
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(values.shape).astype(smallest_dtype(distinct.size)), distinct.size
    return values.astype(smallest_dtype(highest + 1), copy=False), highest + 1


def plain_labels(values: npt.NDArray[Any], name: str, place: Place = place_in_array) -> tuple[npt.NDArray[Any], int]:
    """Turn labels of any kind into text or integers from 0, checked as by :func:`as_codes`, and return the largest.

    The largest is -1 for text or if there are no labels.
    """
    kind = values.dtype.kind
    if kind == "T":
        values, kind = values.astype(object), "O"
    if kind == "O":
        if pd.isna(values).any():
            raise _missing(name, pd.isna(values), place)
        if not all(isinstance(value, str) for value in values.flat):
            return plain_labels(_from_objects(values, name, place), name, place)
        values, kind = values.astype(str), "U"
    if kind in "US":
        return values, -1
    if kind == "b":
        return values.astype(np.uint8), 1
    if kind == "f":
        values = _from_floats(values, name, place)
    elif kind not in "iu":
        raise TypeError(f"{name} must be integers, strings or integer-valued floats; got dtype {values.dtype}.")
    if kind != "u" and values.min(initial=0) < 0:
        negative = values < 0
        label = values[negative][0]
        raise ValueError(
            f"{name} must not be negative; got {label} at {first_of(negative, place)}. A negative label usually marks "
            f"a missing value: drop those items or draws first.{_runs_hint(values, str(label))}"
        )
    return values, int(values.max()) if values.size else -1


def is_text(labels: npt.NDArray[Any]) -> bool:
    """Whether `plain_labels` returned text."""
    return labels.dtype.kind in "US"


def _from_objects(values: npt.NDArray[Any], name: str, place: Place) -> npt.NDArray[Any]:
    try:
        if any(isinstance(value, (str, bytes)) for value in values.flat):  # NumPy would read them as numbers
            raise TypeError
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        types = np.array([type(value).__name__ for value in values.flat])
        odd = (types != types[0]).reshape(values.shape)
        raise TypeError(
            f"{name} must be all integers, all strings or all integer-valued floats; got "
            f"{', '.join(np.unique(types))}, such as {values.flat[odd.argmax()]!r} at {first_of(odd, place)}."
        ) from None
    if not np.all(np.abs(numbers) < 2**53):  # also NaN and infinity, which _from_floats reports
        return numbers
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


def _from_floats(values: npt.NDArray[Any], name: str, place: Place) -> npt.NDArray[np.int64]:
    if np.isnan(values).any():
        raise _missing(name, np.isnan(values), place)
    fractional = values != np.floor(values)
    if fractional.any():
        hint = similarity_hint(values)
        if not hint and values.min() >= 0 and values.max() <= 1:
            hint = " Values between 0 and 1 look like allocation probabilities, which are not labels."
        problem = f"got {values[fractional][0]!s} at {first_of(fractional, place)}"
        raise ValueError(f"{name} must be integers; {problem}.{hint}")
    huge = ~(np.abs(values) < np.float64(2**53))
    if huge.any():
        raise ValueError(
            f"{name} must be finite integers below 2**53; got {values[huge][0]!s} at {first_of(huge, place)}."
        )
    return values.astype(np.int64)


def similarity_hint(values: npt.NDArray[Any]) -> str:
    """Next step if the values are a posterior similarity matrix, as the end of an error; else empty."""
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.dtype.kind not in "fiub":
        return ""
    if not (np.all(np.diagonal(values) == 1) and values.min() >= 0 and np.allclose(values, values.T)):
        return ""
    return (
        " This looks like a posterior similarity matrix: give as_pair_similarity(data) to functions that need "
        "similarities only, such as consensus_partition with loss='binder' or loss='vi_lower_bound'. Others, such as "
        "summarize, need the draws."
    )


def canonical_rows(codes: npt.NDArray[Any], n_codes: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Number each row's labels (N, n), unsigned and below `n_codes`, by first appearance from 0.

    Returned are labels (N, n) of the smallest unsigned type, and the rows' numbers of clusters (N,).
    """
    labels = np.empty(codes.shape, smallest_dtype(min(n_codes, codes.shape[1])))
    n_clusters = ensemble.canonicalize(np.ascontiguousarray(codes), n_codes, labels)
    return labels.astype(smallest_dtype(int(n_clusters.max(initial=1))), copy=False), n_clusters


def canonical_with_noise(codes: npt.NDArray[Any], n_codes: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Do what :func:`canonical_rows` does for labels of which 0, noise, stays 0 and counts as one of the clusters."""
    labels, n_clusters = canonical_rows(np.pad(codes, ((0, 0), (1, 0))), n_codes)
    return np.ascontiguousarray(labels[:, 1:]), n_clusters


def canonical_labels(labels: npt.ArrayLike, name: str = "partition") -> Labels:
    """Return one label vector (n,) numbered by first appearance from 0; errors call it `name`.

    It raises as :func:`as_codes`, and if the labels are not a vector of at least one item.
    """
    values = as_array(None if isinstance(labels, Mapping) else labels, f"the labels of `{name}`")
    wanted = f"`{name}` must be a vector of labels, one for each item"
    if values.ndim == 0:
        parts = {
            "partitions": " Take one of its `partitions`.",
            "upper_vertical": " Take its `partition`.",
            "keys": " Draws or data come first, one partition second; compare_partitions takes several by name.",
        }
        hint = next((hint for part, hint in parts.items() if hasattr(labels, part)), "")
        raise ValueError(f"{wanted}; got {type(labels).__name__}.{hint}")
    if values.ndim > 1:
        raise ValueError(f"{wanted}; got shape {values.shape}. Draws or data come first, one partition second.")
    if not values.size:
        raise ValueError(f"{wanted}; got shape {values.shape}.")
    codes, n_codes = as_codes(values, f"the labels of `{name}`")
    return canonical_rows(codes[np.newaxis], n_codes)[0][0].astype(np.int32)


def marked(labels: npt.NDArray[Any], noise: npt.NDArray[np.bool_], name: str = "partition") -> Labels:
    """Canonical labels (n,) with -1 for items that are noise; errors call the labels `name`."""
    found = np.full(noise.size, -1, np.int32)
    if not noise.all():
        found[~noise] = canonical_labels(labels[~noise], name)
    return found


def alone(labels: npt.NDArray[Any], first: int | None = None) -> npt.NDArray[np.int32]:
    """Labels (..., n) with each item of label -1 in a cluster of its own, numbered from `first` or after all others."""
    noise = labels < 0
    if not noise.any():
        return labels.astype(np.int32, copy=False)
    start = labels.max(axis=-1, keepdims=True, initial=-1) + 1 if first is None else first
    return np.where(noise, start - 1 + np.cumsum(noise, axis=-1), labels).astype(np.int32)


def connected(first: npt.NDArray[Any], second: npt.NDArray[Any], n: int) -> Labels:
    """Labels (n,) of the connected components of a graph with these edges, numbered by first appearance."""
    edges = sparse.coo_array((np.ones(first.size, np.bool_), (first, second)), (n, n))
    return connected_components(edges, directed=False)[1].astype(np.int32, copy=False)


def contingency_table(labels: Labels, others: Labels) -> npt.NDArray[np.int64]:
    """Numbers of items (K, L) that two canonical label vectors (n,) put in each pair of clusters."""
    shape = int(labels.max()) + 1, int(others.max()) + 1
    cells = labels.astype(np.int64) * shape[1] + others
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def distinct_rows(partitions: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Find the distinct label vectors of (P, n), in lexicographic order of their labels from 0.

    Returned are the row at which each appears first, and the number (P,) of each row's label vector among these.
    """
    rows = np.ascontiguousarray(partitions, partitions.dtype.newbyteorder(">"))  # big-endian bytes sort like numbers
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()  # one value per row
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return first, which


def enumerate_partitions(n_items: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield every partition of `n_items` items once, as blocks of canonical label vectors (n_partitions, n_items).

    Partitions of about half the items are enumerated first. Each is extended to a block, one item at a time, so
    memory stays small although there are Bell(n_items) partitions.
    """
    seeds = _grow(np.zeros((1, 1), np.uint8), (n_items + 1) // 2)
    for seed in seeds:
        yield _grow(seed[np.newaxis], n_items)


def partitions_with_noise(n_items: int) -> Iterator[npt.NDArray[np.int8]]:
    """Yield every partition of every subset of the items once, as blocks of labels (n_partitions, n_items), -1 outside.

    A partition of one more item lists them: the members of its cluster are outside. It is the first item, of label 0.
    """
    for block in enumerate_partitions(n_items + 1):
        yield block[:, 1:].astype(np.int8) - np.int8(1)


def _grow(partitions: npt.NDArray[np.uint8], n_items: int) -> npt.NDArray[np.uint8]:
    while partitions.shape[1] < n_items:
        choices = partitions.max(axis=1).astype(np.int64) + 2  # any existing cluster, or a new one
        rows = np.repeat(np.arange(len(partitions)), choices)
        label = np.arange(rows.size) - np.repeat(np.cumsum(choices) - choices, choices)
        partitions = np.column_stack([partitions[rows], label.astype(np.uint8)])
    return partitions
