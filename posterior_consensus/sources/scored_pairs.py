"""Tables of scored pairs, as record linkage programs write them, and sparse arrays of similarities."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse
from scipy.special import expit

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.items import Items, coords_of
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.scored_pairs import DATA_SET, NAME, PairConstraints, ScoredPairs
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.arguments import check_number, is_integer, listing
from posterior_consensus.runtime.names import did_you_mean
from posterior_consensus.runtime.tolerances import SINGLE
from posterior_consensus.sources.formats import TABLES, format_of, is_plain, names_of
from posterior_consensus.sources.plain_files import columns_of_file, read_columns
from posterior_consensus.sources.tables import BY_COLUMN

_LEFT, _RIGHT = "unique_id_l", "unique_id_r"  # splink's names
_PROBABILITY, _WEIGHT = "match_probability", "match_weight"
_SOURCES = f"{DATA_SET}_l", f"{DATA_SET}_r"
_OURS = {_LEFT, _RIGHT, _PROBABILITY, _WEIGHT}
_SHOWN = 6  # columns in an error
_EXACT = 2**53  # integers that floats hold


class Columns(NamedTuple):
    """Columns of a table of scored pairs."""

    left: list[Any]  # column of each record's name, after that of its data set if there are several
    right: list[Any]
    score: Any  # column of the probabilities, or of the match weights


def is_table_of_pairs(data: object) -> bool:
    """Whether data is a table with splink's columns, the path of one, or dedupe's array of scores."""
    if isinstance(data, np.ndarray):
        return {"pairs", "score"} <= set(data.dtype.names or ())
    return not _OURS.isdisjoint(columns_of_file(data) if isinstance(data, (str, Path)) else _columns_in(data))


def read_pairs(
    data: Any,
    left: Any = None,
    right: Any = None,
    probability: Any = None,
    *,
    item_dim: str | None = None,
    items: Any = None,
    unscored: float = 0.0,
) -> ScoredPairs:
    """Read a table of scored pairs; arguments as in :func:`as_pair_similarity`."""
    _check_unscored(unscored)
    data = columns_of_dedupe(data) if isinstance(data, np.ndarray) else Path(data) if isinstance(data, str) else data
    present = columns_at(data, "data")
    if not present:
        raise TypeError(
            "`left`, `right` and `probability` name columns of `data`, a table or the path of one; got "
            f"{type(data).__name__}."
        )
    columns = Columns(*_sides(present, left, right), _score(present, probability))
    names = [*columns.left, *columns.right]
    table = _columns_of(data, list(dict.fromkeys([*names, columns.score])), names)
    scores = _probabilities_of(table, columns)
    codes, index = _names(table, columns, as_text=_is_text(data))
    _check_not_missing(codes, table, columns, scores)
    known = None if items is None else _known(items, len(columns.left))
    if known is not None:
        found = index
        index = _beside(known.names, found) if _is_text(items) else known.names
        codes = _positions_among(codes, _beside(found, index) if _is_text(data) else found, index, table, columns)
    if not len(index):
        raise ValueError("`data`, a table of pairs, must have at least one; got none. Or name the records by `items`.")
    named = Items(len(index), *_coords(index, item_dim, known))
    first, second = codes.reshape(2, -1)
    return ScoredPairs(named, _symmetric(first, second, scores, named), float(unscored))


def of_sparse(matrix: Any, *, item_dim: str | None, items: Any, unscored: float) -> ScoredPairs:
    """Take a sparse array of similarities, of which one triangle may be left out."""
    _check_unscored(unscored)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ValueError(
            f"`data` must be square, items x items, with at least one item; got shape {matrix.shape}. "
            "For labels, draws x items, call as_partition_draws."
        )
    if matrix.dtype.kind not in "buif":
        raise TypeError(f"`data` must hold real numbers; got {matrix.dtype}.")
    n = matrix.shape[0]
    if items is None:
        named = Items(n, item_dim or "item", xr.Coordinates())
    else:
        known = _known(items, None)
        named = Items(len(known.names), *_coords(known.names, item_dim, known))
        if named.n_items != n:
            raise ValueError(f"`items` must name the {n} rows of `data`, in order; got {named.n_items} names.")
    rows = sparse.csr_array(matrix, copy=True)
    rows.sum_duplicates()  # SciPy's meaning of entries that stand twice
    (first, second), given = rows.tocoo().coords, rows.data.astype(np.float64)
    values = _check_range(given, lambda at: f"{_names_in_words(named, first[at], second[at])}, {given[at]:.6g}")
    on_diagonal = first == second
    below = on_diagonal & (values < 1 - SINGLE)
    if below.any():
        at = int(below.argmax())
        raise ValueError(
            f"`data` must be 1 on the diagonal or have nothing there; got {values[at]:.6g} of {int(below.sum())} "
            f"items, the first {_printed(_index_of(named)[first[at]])!r}."
        )
    first, second, values = (one[~on_diagonal] for one in (first, second, values))
    _check_mirrored(first, second, values, named)
    return ScoredPairs(named, _symmetric(first, second, values, named), float(unscored))


def _check_mirrored(first: Positions, second: Positions, values: Floats, items: Items) -> None:
    """Raise an error for entries above 0 without mirror images, unless one triangle has none."""
    upper = first < second
    if upper.all() or not upper.any():
        return
    entries = (values > 0).astype(np.float64), (first, second)
    there = sparse.csr_array(entries, (items.n_items, items.n_items))
    alone = (there - there.T).tocoo()  # 1 for an entry without a mirror image
    lost = np.flatnonzero(alone.data > 0)
    if lost.size:
        i, j = (int(one[lost[0]]) for one in alone.coords)
        raise ValueError(
            "`data` must be symmetric, or have one triangle alone; entries without their mirror images: "
            f"{lost.size}, the first of {_names_in_words(items, i, j)}. Take array.maximum(array.T) if that is meant."
        )


def with_constraints(
    source: PairSource,
    *,
    must_link: Any = None,
    cannot_link: Any = None,
    max_per_source: Any = None,
    max_cluster_size: Any = None,
    left: Any = None,
    right: Any = None,
) -> ScoredPairs:
    """Add constraints to similarities; pairs of a table stand in the columns `left` and `right`."""
    pairs = source if isinstance(source, ScoredPairs) else _all_scored(PairSimilarity.of(source))
    own, items = pairs.constraints, pairs.items
    must, cannot = (
        np.unique(np.concatenate([old, _pairs_named(name, new, items, left, right)]), axis=0)
        for name, old, new in (
            ("must_link", own.must_link, must_link),
            ("cannot_link", own.cannot_link, cannot_link),
        )
    )
    if max_cluster_size is None:
        max_cluster_size = own.max_cluster_size
    elif not is_integer(max_cluster_size) or max_cluster_size < 1:
        raise ValueError(f"`max_cluster_size` must be a positive number of items, or None; got {max_cluster_size!r}.")
    data_set = own.data_set if max_per_source is None else _data_sets(items, max_per_source)
    constraints = PairConstraints(must, cannot, data_set, max_cluster_size)
    constrained = replace(pairs, constraints=constraints)
    constrained.groups()  # constraints that contradict each other are refused
    return constrained


def columns_of_dedupe(scores: npt.NDArray[Any]) -> pd.DataFrame:
    """The array of pairs and scores that dedupe's ``score`` returns, with splink's names of the columns."""
    if not is_table_of_pairs(scores):
        raise TypeError(f"`left`, `right` and `probability` name columns of a table; got an array of {scores.dtype}.")
    pairs = scores["pairs"]
    return pd.DataFrame({_LEFT: pairs[:, 0], _RIGHT: pairs[:, 1], _PROBABILITY: scores["score"]})


def _columns_in(data: Any) -> list[Any]:
    """Names of the columns of a table of pandas, or of a library that converts to it; none of other data."""
    if isinstance(data, pd.DataFrame) or _is_relation(data):
        return list(data.columns)
    if hasattr(data, "as_pandas_dataframe"):  # splink
        return list(data.as_pandas_dataframe(limit=1).columns)
    if not hasattr(data, "to_pandas") or isinstance(data, (xr.DataArray, xr.Dataset, xr.DataTree)):
        return []
    if hasattr(data, "column_names"):  # pyarrow, whose `columns` are values
        return list(data.column_names)
    return list(getattr(data, "columns", []))  # none in a column of polars or pyarrow


def _is_relation(data: Any) -> bool:
    """Whether data is a relation of DuckDB."""
    return type(data).__name__ == "DuckDBPyRelation"


def _table(data: Any, columns: list[Any]) -> pd.DataFrame:
    """Some columns of a table, as pandas has them; no others are read."""
    if isinstance(data, pd.DataFrame):
        return data[columns]
    if type(data).__name__ == "DuckDBDataFrame":  # splink's, which reads all columns by itself
        data = data.as_duckdbpyrelation()
    if _is_relation(data):
        return data.select(*('"' + name.replace('"', '""') + '"' for name in columns)).df()
    if hasattr(data, "query_sql"):  # splink's of other databases
        return data.query_sql(f"select {', '.join(columns)} from {{this}}").as_pandas_dataframe()
    if hasattr(data, "as_pandas_dataframe"):
        return data.as_pandas_dataframe()[columns]
    return data.select(columns).to_pandas()


def _is_path(data: Any) -> bool:
    """Whether data is the path of a table; text without a suffix of one is a name."""
    return isinstance(data, Path) or (isinstance(data, str) and is_plain(data))


def columns_at(data: Any, argument: str) -> list[Any]:
    """Names of the columns of a table or of the file of one, given for `argument`; none of other data."""
    if not _is_path(data):
        return _columns_in(data)
    if not Path(data).exists():
        raise FileNotFoundError(f"`{argument}` must be a path to a file; there is no {str(data)!r}.")
    if present := columns_of_file(data):
        return list(present)
    raise ValueError(f"`{argument}` must be a path to a {names_of(TABLES)} file; got {str(data)!r}.")


def _is_text(data: Any) -> bool:
    """Whether data is the path of a table of text, in which integers are names like others."""
    return _is_path(data) and format_of(data).is_text


def _columns_of(data: Any, columns: list[Any], names: list[Any]) -> pd.DataFrame:
    """Some columns of a table or of the file of one, of which `names` have names of records."""
    return read_columns(data, columns, names) if _is_path(data) else _table(data, columns)


def columns_with_names(data: Any, names: list[Any], others: Sequence[Any] = ()) -> pd.DataFrame:
    """Columns of names, and others, of a table or its file; in text, integers if a whole column is written so."""
    table = _columns_of(data, [*names, *others], names)
    if not _is_text(data):
        return table
    return table.assign(**{name: _integers_in(table[name].to_numpy(object)) for name in names})


def _beside(names: pd.Index, others: pd.Index) -> pd.Index:
    """Names of a file of text, as they are compared with others: its integers are text beside text."""
    if isinstance(names, pd.MultiIndex) and isinstance(others, pd.MultiIndex):
        levels: Any = [_beside(*pair) for pair in zip(names.levels, others.levels, strict=False)]
        return names.set_levels(levels) if names.nlevels == others.nlevels else names
    return names.astype(str) if (names.inferred_type, others.inferred_type) == ("integer", "string") else names


def _sides(present: Sequence[Any], left: Any, right: Any, table: str = "data") -> tuple[list[Any], list[Any]]:
    """Columns of the left and of the right records in the argument `table`, by the given names or splink's."""
    if (left is None) != (right is None):
        raise ValueError(f"`left` and `right` must be given together; got {left!r} and {right!r}.")
    listed = [list(side) if isinstance(side, (list, tuple)) else [side] for side in (left, right)]
    if left is None:
        has_sources = not set(_SOURCES).isdisjoint(present)
        listed = [[_SOURCES[0], _LEFT], [_SOURCES[1], _RIGHT]] if has_sources else [[_LEFT], [_RIGHT]]
    if len(listed[0]) != len(listed[1]) or len(listed[0]) not in (1, 2):
        raise ValueError(
            "`left` and `right` must each be a column of names, or two columns, of data sets and of names; "
            f"got {left!r} and {right!r}."
        )
    for argument, side in zip(("left", "right"), listed, strict=True):
        for name in side:
            _check_column(argument, name, present, table)
    return listed[0], listed[1]


def _score(present: Sequence[Any], probability: Any) -> Any:
    """Column of the scores, by the given name or splink's."""
    if probability is None:
        probability = next((name for name in (_PROBABILITY, _WEIGHT) if name in present), _PROBABILITY)
    _check_column("probability", probability, present)
    return probability


def _check_column(argument: str, name: Any, present: Sequence[Any], table: str = "data") -> None:
    count = list(present).count(name)
    if count == 1:
        return
    if count:
        raise ValueError(f"`{argument}` must name one column of `{table}`; {name!r} is the name of {count}.")
    shown = f"{listing(present[:_SHOWN])}{', ...' * (len(present) > _SHOWN)}"
    ours = {*_OURS, *_SOURCES}  # of which none means another
    others = [str(one) for one in present if name not in ours or one not in ours]
    raise ValueError(
        f"`{argument}` must name a column of `{table}`, a table of pairs; there is no {name!r}, present: {shown}."
        f"{did_you_mean(str(name), others)} Name columns by {BY_COLUMN}."
    )


def _probabilities_of(table: pd.DataFrame, columns: Columns) -> Floats:
    """Probabilities of the pairs; match weights are the logarithms to base 2 of their odds."""
    kind = table[columns.score].dtype
    try:
        if kind.kind == "c":  # of which NumPy would take the real part
            raise TypeError
        scores = table[columns.score].to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise TypeError(f"`probability` must name a column of numbers; {columns.score!r} has {kind}.") from None

    def of_row(at: int) -> str:
        return f"{_row_in_words(table, columns, at)} with {columns.score!r} {scores[at]:.6g}, row {at} (from 0)"

    missing = np.isnan(scores)
    if missing.any():
        at = int(missing.argmax())
        raise ValueError(
            f"`data`, a table of pairs, must have a score for each; {int(missing.sum())} of {scores.size} are missing, "
            f"the first of {_row_in_words(table, columns, at)}, row {at} (from 0). Drop these pairs."
        )
    if columns.score == _WEIGHT:
        return expit(np.log(2.0) * scores)
    return _check_range(scores, of_row)


def _check_range(scores: Floats, in_words: Any) -> Floats:
    """Clip similarities that rounding took out of [0, 1]; raise an error for others."""
    wrong = ~((scores >= -SINGLE) & (scores <= 1 + SINGLE))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"`data` must have probabilities of pairs, in [0, 1]; {int(wrong.sum())} of {scores.size} are beyond, the "
            f"first of {in_words(at)}. Divide percentages by 100; match weights in bits stand in a column {_WEIGHT!r}."
        )
    return np.clip(scores, 0.0, 1.0)


def _names(table: pd.DataFrame, columns: Columns, *, as_text: bool) -> tuple[Positions, pd.Index]:
    """Position of each record's name in the sorted names, of the left and then the right records; -1 if missing."""
    coded = [_numbered_names(table, one, as_text) for one in zip(columns.left, columns.right, strict=True)]
    if len(coded) == 1:
        return coded[0]
    (sources, source_names), (codes, names) = coded
    if names.nlevels > 1:
        raise TypeError(f"Names of records must be integers or text where data sets are given; got {names[0]!r}.")
    keys = np.where((sources < 0) | (codes < 0), -1, sources * len(names) + codes)
    present = pd.unique(keys[keys >= 0])
    present.sort()
    levels: Any = [source_names, names]
    parts: Any = present // max(len(names), 1), present % max(len(names), 1)
    index = pd.MultiIndex(levels=levels, codes=parts, names=[DATA_SET, NAME])
    return np.where(keys < 0, -1, np.searchsorted(present, keys)), index


def _numbered_names(table: pd.DataFrame, pair: tuple[Any, Any], as_text: bool) -> tuple[Positions, pd.Index]:
    """Position of each name of two columns in their sorted names, and these."""
    one, other = (table[name] for name in pair)
    if one.dtype.kind != other.dtype.kind and {one.dtype.kind, other.dtype.kind} <= set("iuf"):  # NumPy would round
        one, other = one.astype(object), other.astype(object)
    both = pd.concat([one, other], ignore_index=True)
    codes, found = pd.factorize(both.to_numpy() if isinstance(both.dtype, np.dtype) else both.array)
    values = _as_names(found, f"{pair[0]!r} and {pair[1]!r}")
    if as_text:
        values = _integers_in(values)
    index = _index_of_names(values)
    order = index.argsort()
    rank = np.empty(order.size + 1, np.intp)
    rank[order], rank[-1] = np.arange(order.size), -1
    return rank[codes], index[order]


def _as_names(found: Any, where: str) -> npt.NDArray[Any]:
    """Distinct names as an array of integers, or of objects of one type."""
    values = np.asarray(found)
    if values.dtype.kind in "iu":
        return values.astype(np.int64) if values.max(initial=0) <= np.iinfo(np.int64).max else values
    if values.dtype.kind in "bM":
        return values
    values = values.astype(object)
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind in ("integer", "floating", "mixed-integer-float"):
        whole = [value for value in values if not float(value).is_integer() or abs(value) >= _EXACT]
        if kind != "integer" and whole:
            raise TypeError(f"Names of records must be integers or text; {where} have {whole[0]!r}.")
        return np.array([int(value) for value in values])
    types = {type(value): value for value in values.tolist()} if kind.startswith("mixed") else {}
    if len(types) > 1 or (tuple in types and len({len(value) for value in values}) > 1):
        some = " and ".join(f"{value!r} ({one.__name__})" for one, value in list(types.items())[:2])
        raise TypeError(
            f"Names of records must be of one type; {where} have {some}. Convert these columns, as by "
            "table.astype(str)."
        )
    return values


def _integers_in(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers of a file of text, if all names are written as integers are."""
    try:
        integers = values.astype(np.int64)
    except (OverflowError, ValueError):
        return values
    return integers if np.array_equal(integers.astype(str), values.astype(str)) else values


def _index_of_names(values: npt.NDArray[Any]) -> pd.Index:
    """Index of names; tuples become levels."""
    is_tuple = values.dtype == object and values.size > 0 and isinstance(values[0], tuple)
    return pd.MultiIndex.from_tuples(values) if is_tuple else pd.Index(values)


def _check_not_missing(codes: Positions, table: pd.DataFrame, columns: Columns, scores: Floats) -> None:
    first, second = codes.reshape(2, -1)
    missing = (first < 0) | (second < 0)
    if missing.any():
        at = int(missing.argmax())
        raise ValueError(
            f"`data`, a table of pairs, must name both records of each; names are missing in {int(missing.sum())} of "
            f"{missing.size} pairs, the first {_row_in_words(table, columns, at)} with {scores[at]:.6g}, row {at} "
            "(from 0). Drop these pairs."
        )
    alone = first == second
    if alone.any():
        at = int(alone.argmax())
        raise ValueError(
            f"`data`, a table of pairs, must pair different records; {int(alone.sum())} of {alone.size} pairs have one "
            f"twice, the first {_row_in_words(table, columns, at)} with {scores[at]:.6g}, row {at} (from 0). Drop "
            "these pairs; or name the records' data sets too, left=[data set, name], if names repeat among them."
        )


class _Known(NamedTuple):
    """Names of all records, and their data sets if these are no part of the names."""

    names: pd.Index
    data_set: npt.NDArray[Any] | None = None


def _known(items: Any, n_columns: int | None) -> _Known:
    """Names of all records, whose parts fit the columns of each side; None if there are no columns."""
    if isinstance(items, Mapping):
        items = pd.DataFrame({NAME: _objects(items), DATA_SET: _objects(items.values())})
    data_set = None
    if present := columns_at(items, "items"):
        wanted = [name for name in (DATA_SET, NAME) if name in present]
        if NAME not in wanted or (n_columns == 2 and len(wanted) == 1):
            raise ValueError(
                f"`items`, a table, must have columns {NAME!r} and, if names repeat among data sets, {DATA_SET!r}; "
                f"present: {listing(present[:_SHOWN])}. Rename them, or give one column, items=table[name]."
            )
        table = columns_with_names(items, wanted)
        if len(wanted) == 2 and n_columns != 1:
            index: pd.Index = pd.MultiIndex.from_arrays([_present_names(table[name]) for name in wanted])
        else:
            index = _index_of_names(_present_names(table[NAME]))
            data_set = table[DATA_SET].to_numpy(object) if len(wanted) == 2 else None
    else:
        index = items if isinstance(items, pd.MultiIndex) else _index_of_names(_present_names(items))
    if not len(index):
        raise ValueError("`items` must name at least one record; got none.")
    if n_columns == 2 and index.nlevels != 2:
        raise ValueError(
            f"`items` must name each record by its data set and its name, as a table with columns {DATA_SET!r} and "
            f"{NAME!r} does; got names such as {_printed(index[0])!r}."
        )
    if not index.is_unique:
        twice = index.duplicated()
        raise ValueError(
            f"`items` must name each record once; {int(twice.sum())} stand again, the first "
            f"{_printed(index[twice][0])!r}. If names repeat among data sets, give a table with columns {DATA_SET!r} "
            f"and {NAME!r}, and name the columns of data sets by `left` and `right` too."
        )
    return _Known(index.set_names([DATA_SET, NAME]) if n_columns != 1 and index.nlevels == 2 else index, data_set)


def _present_names(items: Any) -> npt.NDArray[Any]:
    """Names of records, none of them missing."""
    if not _is_sequence(items):
        raise TypeError(
            "`items` must be the names of all records: a sequence, a table or a dict from names to data sets; got "
            f"{items!r}."
        )
    values = np.asarray(items) if hasattr(items, "__array__") else _objects(items)
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(f"`items` must name each record; {int(missing.sum())} of {missing.size} names are missing.")
    return _as_names(values, "`items`")


def _positions_among(
    codes: Positions, found: pd.Index, index: pd.Index, table: pd.DataFrame, columns: Columns
) -> Positions:
    """Positions among the known records."""
    place = index.get_indexer(found)
    codes = place[codes]
    first, second = codes.reshape(2, -1)
    unknown = (first < 0) | (second < 0)
    if unknown.any():
        at = int(unknown.argmax())
        strange = found[place < 0][0]
        raise ValueError(
            f"`items` must name all records; {int(unknown.sum())} of {unknown.size} pairs have others, the first "
            f"{_row_in_words(table, columns, at)}, row {at} (from 0). {_unlike(strange, index)}"
        )
    return codes


def _unlike(strange: Any, index: pd.Index) -> str:
    return f"There is no {_printed(strange)!r} among names such as {_printed(index[0])!r}."


def _printed(name: Any) -> Any:
    """A name as Python prints it."""
    if isinstance(name, tuple):
        return tuple(map(_printed, name))
    return name.item() if isinstance(name, np.generic) else name


def _coords(index: pd.Index, item_dim: str | None, known: _Known | None) -> tuple[str, xr.Coordinates]:
    """Dimension of the items and their coordinates."""
    dim = item_dim or "item"
    if dim in (DATA_SET, NAME):
        raise ValueError(f"`item_dim` must differ from {DATA_SET!r} and {NAME!r}, of the records; got {dim!r}.")
    coords = coords_of(index, dim)
    if known is None or known.data_set is None:
        return dim, coords
    return dim, coords.assign({DATA_SET: (dim, known.data_set)})


def _symmetric(first: Positions, second: Positions, scores: Floats, items: Items) -> sparse.csr_array:
    """Symmetric array of the pairs, of which each may stand several times with equal scores."""
    n = items.n_items
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    keys = low * n + high
    order = np.argsort(keys, kind="stable")
    keys, scores = keys[order], scores[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if keys.size else np.empty(0, np.intp)
    if starts.size < keys.size:
        smallest, largest = np.minimum.reduceat(scores, starts), np.maximum.reduceat(scores, starts)
        differ = np.flatnonzero(largest - smallest > SINGLE)
        if differ.size:
            at = differ[0]
            names = _names_in_words(items, *divmod(int(keys[starts[at]]), n))
            raise ValueError(
                f"`data` must have one score for each pair; {differ.size} of {starts.size} have several, the first "
                f"{names} with {smallest[at]:.6g} and {largest[at]:.6g}. Keep one of them, such as the larger: "
                "groupby the two records and take max()."
            )
        keys, scores = keys[starts], (smallest + largest) / 2
    dtype = np.int32 if max(n, 2 * keys.size) < 2**31 else np.int64
    low, high = (keys // n).astype(dtype), (keys % n).astype(dtype)
    # Entries below the diagonal come first: each row's are then in order, as conversion keeps their order.
    both = np.concatenate([high, low]), np.concatenate([low, high])
    return sparse.coo_array((np.concatenate([scores, scores]), both), (n, n)).tocsr()


def _all_scored(pairs: PairSimilarity) -> ScoredPairs:
    """All pairs of a matrix as scored ones."""
    n = pairs.n_items
    memory.check(24 * n**2, f"The similarities of all pairs of {n} items, one by one")
    apart = ~np.eye(n, dtype=bool)
    columns = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))[apart]
    starts = np.arange(n + 1, dtype=np.int64) * (n - 1)
    return ScoredPairs(pairs.items, sparse.csr_array((pairs.values[apart], columns, starts), (n, n)))


def _pairs_named(argument: str, pairs: Any, items: Items, left: Any, right: Any) -> Integers:
    """Positions of pairs of names, from a table or a sequence of pairs; the earlier item first."""
    if pairs is None:
        return np.empty((0, 2), np.int64)
    index = _index_of(items)
    if present := columns_at(pairs, argument):
        sides = _sides_of_review(present) or _sides(present, left, right, argument)
        columns = [*sides[0], *sides[1]]
        table = columns_with_names(pairs, columns)
        named = [
            pd.MultiIndex.from_frame(table[side])
            if len(side) == 2
            else _index_of_names(table[side[0]].to_numpy(object))
            for side in sides
        ]
        if _is_text(pairs):
            named = [_beside(side, index) for side in named]
    else:
        listed = _listed_pairs(argument, pairs)
        named = [_index_of_names(_objects(side)) for side in zip(*listed, strict=True)] or [pd.Index([]), pd.Index([])]
    found = np.stack([index.get_indexer(side) for side in named], axis=1).astype(np.int64)
    unknown = (found < 0).any(axis=1)
    if unknown.any():
        at = int(unknown.argmax())
        side = int((found[at] < 0).argmax())
        raise ValueError(
            f"`{argument}` must have pairs of items; {int(unknown.sum())} of {len(found)} have others, the first "
            f"{_printed(named[0][at])!r} and {_printed(named[1][at])!r}. {_unlike(named[side][at], index)}"
        )
    alone = found[:, 0] == found[:, 1]
    if alone.any():
        at = int(alone.argmax())
        raise ValueError(
            f"`{argument}` must pair different items; {int(alone.sum())} of {len(found)} have one twice, the first "
            f"{_printed(named[0][at])!r}."
        )
    return np.sort(found, axis=1)


def _sides_of_review(present: Sequence[Any]) -> list[list[str]]:
    """Columns of the two records in a table of pairs to review, or in its file; none of another table."""
    for parts in ([""], [f"_{DATA_SET}", f"_{NAME}"]):
        sides = [[f"{end}{part}" for part in parts] for end in ("first", "second")]
        if set(sides[0] + sides[1]) <= set(present):
            return sides
    return []


def _listed_pairs(argument: str, pairs: Any) -> list[tuple[Any, ...]]:
    """Pairs of names from a sequence; text is a name, and no sequence of letters."""
    if not _is_sequence(pairs):
        raise TypeError(
            f"`{argument}` must be a sequence of pairs of names, as [('a', 'b')], or a table of them; got {pairs!r}."
        )
    listed = list(pairs)
    for pair in listed:
        if not _is_sequence(pair) or len(tuple(pair)) != 2:
            raise ValueError(f"`{argument}` must have pairs of names, such as [('a', 'b')]; got {pair!r} for one.")
    return [tuple(pair) for pair in listed]


def _is_sequence(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))


def _objects(values: Iterable[Hashable]) -> npt.NDArray[Any]:
    """An array of objects, tuples included."""
    return pd.Series(list(values), dtype=object).to_numpy()


def _index_of(items: Items) -> pd.Index:
    """Names of the items, or their positions."""
    if items.dim in items.coords:
        return items.coords[items.dim].to_index()
    return pd.RangeIndex(items.n_items)


def _data_sets(items: Items, max_per_source: Any) -> npt.NDArray[np.int32]:
    """Number of each item's data set, if a cluster has at most one of its items; -1 if not, or if it is missing."""
    limits = None  # the same for all
    if isinstance(max_per_source, Mapping):
        limits = dict(max_per_source)
    elif _is_sequence(max_per_source):
        limits = dict.fromkeys(max_per_source, 1)
    numbers = [max_per_source] if limits is None else [most for most in limits.values() if most is not None]
    if not all(is_integer(most) and most == 1 for most in numbers):
        raise ValueError(
            "`max_per_source` must be 1, a list of data sets, a dict from data sets to 1 or None, or None; got "
            f"{max_per_source!r}."
        )
    if DATA_SET not in items.coords:
        raise ValueError(
            f"`max_per_source` needs the data set of each record: columns {_SOURCES[0]!r} and {_SOURCES[1]!r} of the "
            f"pairs, or `items`, a table with columns {NAME!r} and {DATA_SET!r}."
        )
    codes, present = pd.factorize(items.coords[DATA_SET].to_numpy())
    if limits is not None:
        if unknown := [one for one in limits if one not in present]:
            raise ValueError(
                f"`max_per_source` must name data sets of the records; there is no {unknown[0]!r}, present: "
                f"{listing(present[:_SHOWN])}."
            )
        limited = [one for one, most in limits.items() if most is not None]
        codes = np.where(np.isin(codes, pd.Index(present).get_indexer(limited)), codes, -1)
    return codes.astype(np.int32)


def _check_unscored(unscored: Any) -> None:
    check_number("unscored", unscored)
    if not 0 <= unscored <= 1:
        raise ValueError(f"`unscored` must be a probability, in [0, 1]; got {unscored!r}.")


def _row_in_words(table: pd.DataFrame, columns: Columns, at: int) -> str:
    """The two names in a row of a table."""
    names = [tuple(_printed(table[name].iloc[at]) for name in side) for side in (columns.left, columns.right)]
    return " and ".join(repr(name if len(name) > 1 else name[0]) for name in names)


def _names_in_words(items: Items, i: int, j: int) -> str:
    index = _index_of(items)
    return f"{_printed(index[i])!r} and {_printed(index[j])!r}"
