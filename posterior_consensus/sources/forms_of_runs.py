"""Forms in which labels of runs come: tables, objects with such a table, vectors, arrays and files."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import Items, coords_of, difference, is_named, positions
from posterior_consensus.ensemble.partitions import HasLabels, as_array, of_result
from posterior_consensus.runtime.arguments import check_left_out, listing, warn
from posterior_consensus.runtime.names import did_you_mean
from posterior_consensus.sources.annotated import has_observations
from posterior_consensus.sources.arrays import as_numpy
from posterior_consensus.sources.containers import has_groups
from posterior_consensus.sources.formats import are_chains, is_plain
from posterior_consensus.sources.plain_files import check_once, read_table
from posterior_consensus.sources.scored_pairs import columns_at, columns_with_names
from posterior_consensus.sources.tables import in_native_order, says_draw
from posterior_consensus.sources.transposed import rows_are_items, some_of_table, some_of_vectors

Keys = Hashable | Sequence[Hashable]

_RUN = ("run", "seed")  # names of a dimension of runs, next to those of draws
_LABELS_OF_PROGRAMS = ("labels_", "topics_", "membership")  # of scikit-learn and HDBSCAN, BERTopic, igraph
_MOST_NAMED = 8  # columns named in a message
_FORMS = (
    "an object with `obs` and `obs_names`, a table, a sequence or a dict of label vectors, an array, or files of "
    "tables or arrays"
)


class Runs(NamedTuple):
    """Labels of runs, of which each means something in its own run alone."""

    vectors: Iterable[Any]  # labels of each run, in the order of the items
    n_runs: int
    names: pd.Index | None  # names of the runs
    items: Items
    # positions of columns that the user did not name one by one, of which some may name or count the items
    unnamed: frozenset[int] = frozenset()


class Long(NamedTuple):
    """Columns of a long table, which has a row for each item and run."""

    item: Hashable
    run: Hashable
    label: Hashable


def is_files(data: Any) -> bool:
    """Whether data are a table's path or several, unlike labels that are text."""
    return is_plain(data) or are_chains(data)


def found_runs(data: Any, keys: Keys | None, axis: int | str | None, *, is_partial: bool) -> Runs:
    """Labels of each run; runs of different items if `is_partial`, with NaN for those that a run did not have."""
    if has_observations(data):
        check_left_out("an object with `obs`, whose runs are columns", axis=axis)
        if keys is None:
            raise ValueError(
                "`keys` must name the columns of `obs` that are runs, or be a pattern such as 'leiden_*'; present: "
                f"{_some_names(data.obs.columns)}."
            )
        chosen, unnamed = _columns_matching(data.obs.columns, keys)
        _check_names(data.obs_names, "Make the names differ, by adata.obs_names_make_unique().")
        return _of_columns(data.obs.iloc[:, chosen], pd.Index(data.obs_names))._replace(unnamed=unnamed)
    if is_files(data):
        if isinstance(data, (list, tuple)):
            return _of_files([Path(one) for one in data], keys, axis, is_partial=is_partial)
        data = read_table(data)
    if hasattr(data, "to_pandas") and hasattr(data, "columns"):  # of polars or pyarrow
        data = data.to_pandas()
    if isinstance(data, pd.DataFrame):
        return _of_table(in_native_order(data), keys, axis)
    if isinstance(data, (xr.Dataset, xr.DataTree)) or has_groups(data):
        raise TypeError(
            f"`data` must be {_FORMS}; got {type(data).__name__}. Take one of its variables, such as data['labels']; "
            "draws of chains are read by as_partition_draws."
        )
    if isinstance(data, Mapping):
        check_left_out("a dict of label vectors", axis=axis)
        names = pd.Index(list(data), tupleize_cols=False)
        names = names if keys is None else names[_columns_matching(names, keys)[0]]
        return _of_vectors([data[name] for name in names], names, is_partial=is_partial)
    check_left_out("arrays and sequences, whose runs have no names", keys=keys)
    if isinstance(data, (list, tuple)) and axis in (None, 0):
        has_rows = all(isinstance(one, (list, tuple, np.ndarray)) for one in data)
        if axis is None and has_rows and len({len(one) for one in data}) == 1:
            _warn_if_transposed(some_of_vectors(data), (len(data), len(data[0])), "columns", "axis=1")
        return _of_vectors(data, None, is_partial=is_partial)
    values = data if isinstance(data, xr.DataArray) else _unmasked(data, "`data`")
    if values.ndim == 0:
        hint = " Make a list of it: as_runs(list(...))." if isinstance(data, Iterable) else ""
        raise TypeError(f"`data` must be {_FORMS}; got {type(data).__name__}.{hint}")
    if values.ndim != 2:
        hint = " Chains of draws are read by as_partition_draws." if values.ndim == 3 else ""
        raise TypeError(f"`data` must be {_FORMS}; got {type(data).__name__} of shape {values.shape}.{hint}")
    return _of_array(values, axis)


def found_in_rows(data: Any, columns: Long) -> Runs:
    """Labels of each run in a long table or the file of one, in the order in which runs and items are named first.

    NaN for items that have no row of a run.
    """
    if None in columns:
        raise ValueError(
            "`item`, `run` and `label` must be given together, as the columns of a long table; got "
            f"{', '.join(map(repr, columns))}."
        )
    present = columns_at(data, "data")
    if not present:
        raise TypeError(
            f"`item`, `run` and `label` name columns of `data`, a table or the path of one; got {type(data).__name__}."
        )
    for argument, name in columns._asdict().items():
        if present.count(name) != 1:
            hint = did_you_mean(str(name), map(str, present))
            raise ValueError(
                f"`{argument}` must name one column of `data`; got {name!r}, present: {_some_names(present)}.{hint}"
            )
    if len(set(columns)) < len(columns):
        raise ValueError(f"`item`, `run` and `label` must name different columns; got {listing(columns)}.")
    table = columns_with_names(data, [columns.item, columns.run], [columns.label])
    (of_item, items), (of_run, runs) = (
        _by_first_appearance(table[name], argument) for argument, name in zip(("item", "run"), columns, strict=False)
    )
    repeated = pd.MultiIndex.from_arrays([of_item, of_run]).duplicated()
    if repeated.any():
        at = int(repeated.argmax())
        raise ValueError(
            f"`data` must have one row for each item and run; {repeated.sum():,} rows repeat an item of a run, the "
            f"first {columns.item} {items.tolist()[of_item[at]]!r} of {columns.run} {runs.tolist()[of_run[at]]!r}."
        )
    order = np.argsort(of_run, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(of_run, minlength=len(runs)))[:-1]) if len(runs) else []
    each = (pd.Series(table[columns.label].array[own], of_item[own]).reindex(range(len(items))) for own in rows)
    return Runs(each, len(runs), runs, _items_named(items.rename(columns.item)))


def _by_first_appearance(names: pd.Series, argument: str) -> tuple[npt.NDArray[np.intp], pd.Index]:
    """Number the names of a column by first appearance."""
    codes, found = pd.factorize(names)
    if (codes < 0).any():
        raise ValueError(
            f"`{argument}` must name a column without missing values; {names.name!r} lacks {(codes < 0).sum():,}, the "
            f"first in row {(codes < 0).argmax()} (from 0). Drop these rows."
        )
    return codes, pd.Index(np.asarray(found), tupleize_cols=False)


def _warn_if_transposed(rows: npt.NDArray[Any], shape: tuple[int, ...], are: str, way_out: str) -> None:
    """Warn if labels, or some of them, with the supposed runs in rows look like items in rows.

    `shape` is that of all runs and items, `are` what the runs may be instead: rows or columns.
    """
    if rows.ndim == 2 and rows_are_items(rows):
        warn(
            f"`axis` must say where the runs are: taken as {shape[0]} runs of {shape[1]} items, but {are} agree as "
            f"runs do. If {are} are runs, give {way_out}; if not, give the `axis` that was taken."
        )


def _some_names(names: Iterable[Hashable]) -> str:
    names = list(names)
    return listing(names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED)


def _columns_matching(names: pd.Index, keys: Keys) -> tuple[list[int], frozenset[int]]:
    """Positions of these names, in their order, and of names that patterns match, in the order of the table.

    With the places of the latter in this list.
    """
    found: dict[int, bool] = {}  # by position, whether it is named
    for key in [keys] if isinstance(keys, (str, tuple)) or not isinstance(keys, Iterable) else keys:
        at = [int(k) for k in names.get_indexer_for(pd.Index([key], tupleize_cols=False)) if k >= 0]
        is_named = bool(at)
        if not at and isinstance(key, str):
            at = [k for k, name in enumerate(names) if fnmatchcase(str(name), key)]
        if not at:
            begin = isinstance(key, str) and any(str(name).startswith(key) for name in names)
            hint = f" Did you mean '{key}*'?" if begin else ""
            raise ValueError(f"`keys` must match columns; got {key!r}, present: {_some_names(names)}.{hint}")
        found |= {k: is_named or found.get(k, False) for k in at}
    if not found:
        raise ValueError(f"`keys` must match columns; got none, present: {_some_names(names)}.")
    return list(found), frozenset(place for place, is_named in enumerate(found.values()) if not is_named)


def _of_table(table: pd.DataFrame, keys: Keys | None, axis: int | str | None) -> Runs:
    """Runs in the columns of a table, or in its rows if `axis` is 0."""
    if axis not in (None, 0, 1):
        raise ValueError(f"`axis` must be 0 if rows of a table are runs, or 1 if columns are; got {axis!r}.")
    table = _named_by_first_column(table)
    by_row = [name for name in table.index.names if says_draw(name, _RUN)]
    if axis is None and by_row:
        raise ValueError(
            f"`data` must have a row for each item and a column for each run; its rows are named {by_row[0]!r}. If "
            "they are runs, give axis=0; draws of chains are read by as_partition_draws."
        )
    if axis is None and keys is None:
        _warn_if_transposed(some_of_table(table).T, table.shape[::-1], "rows", "axis=0")
    table = table.T if axis == 0 else table
    unnamed = frozenset(range(table.shape[1]) if table.shape[1] > 1 else ())
    if keys is not None:
        chosen, unnamed = _columns_matching(table.columns, keys)
        table = table.iloc[:, chosen]
    return _of_columns(table, table.index)._replace(unnamed=unnamed)


def _named_by_first_column(table: pd.DataFrame) -> pd.DataFrame:
    """Make the first column the index if it is text without repetition, and no labels like those of the second."""
    if table.shape[1] < 2 or not _counts_from_0(table.index):
        return table
    first, second = table.iloc[:, 0], table.iloc[:, 1]
    has_names = pd.api.types.infer_dtype(first) == "string" and first.is_unique and not second.isin(first).any()
    return table.iloc[:, 1:].set_axis(pd.Index(first), axis=0) if has_names else table


def _counts_from_0(index: pd.Index) -> bool:
    """Whether an index counts from 0."""
    return index.nlevels == 1 and index.equals(pd.RangeIndex(len(index)))


def _of_columns(table: pd.DataFrame, index: pd.Index) -> Runs:
    columns = (table.iloc[:, k] for k in range(table.shape[1]))
    names = None if _counts_from_0(table.columns) else table.columns
    return Runs(columns, table.shape[1], names, _items_named(index))


def _items_named(index: pd.Index) -> Items:
    """Items of these names, along a dimension of the index's name."""
    _check_names(index, "Make the names differ, or leave them out, as reset_index(drop=True) does.")
    is_unnamed = index.name in (None, "index") or says_draw(index.name, ("sample", *_RUN))  # the first by pandas
    dim = "item" if is_unnamed else str(index.name)
    return Items(len(index), dim, xr.Coordinates() if _counts_from_0(index) else coords_of(index, dim))


def _check_names(index: pd.Index, remedy: str) -> None:
    """Raise an error if several items have one name."""
    if not index.is_unique:
        raise ValueError(f"`data` must name each item once; {difference(index, index)}. {remedy}")


def _of_files(paths: Sequence[Path], keys: Keys | None, axis: int | str | None, *, is_partial: bool) -> Runs:
    """A run of each file, named by it."""
    check_left_out("several files, of one run each", keys=keys, axis=axis)
    check_once(paths)
    stems = [path.name.split(".")[0] for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    vectors: list[Any] = []
    for path in paths:
        vector = _of_file(path)
        if vectors and vector.index.equals(vectors[0].index):
            vector = vector.set_axis(vectors[0].index)  # of many files, names are kept once
        vectors.append(vector)
    return _of_vectors(vectors, pd.Index(names), is_partial=is_partial)


def _of_file(path: Path) -> pd.Series:
    """Labels of a file, by the names of its items if it has these in its first column or index."""
    table = pd.DataFrame(read_table(path))
    if table.shape[1] == 2 and _counts_from_0(table.index):
        table = table.iloc[:, 1:].set_axis(pd.Index(table.iloc[:, 0]), axis=0)
    if table.shape[1] != 1:
        raise ValueError(
            f"`data`, a list of files, must hold a run each: a column of labels, and one of the items' names before "
            f"it; {path.name!r} has {table.shape[1]} columns of labels. A file of several runs is given alone."
        )
    column = table.iloc[:, 0]
    return column.astype("category") if column.dtype.kind not in "iufb" else pd.to_numeric(column, downcast="integer")


def _of_vectors(vectors: Sequence[Any], names: pd.Index | None, *, is_partial: bool) -> Runs:
    """Runs of label vectors, paired by the items' names if these have some, else by place."""
    about = [f"run {name!r}" for name in (range(len(vectors)) if names is None else names)]
    labels = [_as_series(*one) for one in zip(vectors, about, strict=True)]
    named = [k for k, one in enumerate(labels) if is_named(one.index)]
    index = labels[named[0]].index if named else pd.RangeIndex(len(labels[0]) if labels else 0)
    for k in named:
        other = labels[k].index
        if positions(index, other) is not None:
            continue
        if not is_partial or not (index.is_unique and other.is_unique):
            why = difference(index, other)
            raise ValueError(
                f"`data` must have the same items in every run; {about[k]} and {about[named[0]]} differ: {why}. If "
                "runs did not have all items, give missing=numpy.nan; labels without names are paired by place."
            )
        index = index.append(other[~other.isin(index)])
    for one, own in zip(labels, about, strict=True):
        if not is_named(one.index) and len(one) != len(index):
            raise ValueError(
                f"`data` must have a label for every item in every run; got {len(index)} labels of "
                f"{about[named[0] if named else 0]} and {len(one)} of {own}. If runs did not have all items, give each "
                "run as a Series by the items' names, and missing=numpy.nan."
            )
    return Runs((_in_order(one, index) for one in labels), len(labels), names, _items_named(index))


def _as_series(labels: Any, about: str) -> pd.Series:
    """A label vector, with the items' names if it has some."""
    labels = of_result(labels, "labels", labels) if isinstance(labels, HasLabels) else labels
    if isinstance(labels, pd.Series):
        return labels
    if isinstance(labels, xr.DataArray) and labels.ndim == 1:
        dim = str(labels.dims[0])
        index = labels.indexes[dim] if dim in labels.indexes else pd.RangeIndex(labels.size)
        return pd.Series(labels.values, index.rename(dim) if index.nlevels == 1 else index)
    values = labels if isinstance(labels, (pd.Categorical, pd.Index)) else _unmasked(labels, f"{about} of `data`")
    if values.ndim != 1:
        hint = " This is a single partition." if values.ndim == 0 and np.isscalar(labels) else ""
        hint = next((f" Take its `{name}`." for name in _LABELS_OF_PROGRAMS if hasattr(labels, name)), hint)
        raise TypeError(f"`data` must have a vector of labels for each run; {about} is {type(labels).__name__}.{hint}")
    return pd.Series(values)


def _in_order(labels: pd.Series, index: pd.Index) -> pd.Series:
    """Labels of these items; NaN for those without one."""
    if not is_named(labels.index):
        return labels
    order = positions(index, labels.index)
    return labels.reindex(index) if order is None else labels.iloc[order]


def _unmasked(data: Any, name: str) -> npt.NDArray[Any]:
    """An array, with NaN for what is masked."""
    data = as_numpy(data)
    if np.ma.is_masked(data):
        return np.ma.filled(data.astype(np.float64 if data.dtype.kind in "iufb" else object), np.nan)
    return as_array(data, name)


def _of_array(values: Any, axis: int | str | None) -> Runs:
    """Runs along a dimension of an array: by default the first, or that of its name in a DataArray."""
    is_named_array = isinstance(values, xr.DataArray)
    dims = [str(dim) for dim in values.dims] if is_named_array else []
    if axis is None:
        axis = next((k for k, dim in enumerate(dims) if says_draw(dim, _RUN)), None)
    if axis is None:
        axis = 0
        _warn_if_transposed(np.asarray(values), values.shape, "columns", f"axis={dims[1]!r}" if dims else "axis=1")
    axis = dims.index(axis) if axis in dims else axis
    if axis not in (0, 1):
        allowed = f", or one of {listing(dims)}" if dims else ""
        raise ValueError(f"`axis` must be 0 or 1, the dimension of the runs{allowed}; got {axis!r}.")
    if not is_named_array:
        rows = values if axis == 0 else values.T
        return Runs(rows, len(rows), None, _items_named(pd.RangeIndex(rows.shape[1])))
    rows = values if axis == 0 else values.transpose()
    names = rows.indexes.get(rows.dims[0])
    return Runs(rows.values, len(rows), names, Items.along(rows, str(rows.dims[1])))
