"""Tables of draws, from pandas or a file: the draw of each row, the items or elements of variables in columns."""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import name_or
from posterior_consensus.ensemble.partitions import native
from posterior_consensus.runtime.arguments import listing, warn
from posterior_consensus.sources.transposed import DECIDED, row_score, some_of_table

_DIMS = ("chain", "draw")
_DRAW = ("iteration", "iter", "draw")  # R's posterior has "iteration", within chains, and "draw", over all chains
_NAMED = 4  # columns named in a message
_OF_PAIRS = 3  # columns of a table of scored pairs, at least
BY_COLUMN = "as_pair_similarity(table, left=, right=, probability=)"  # in messages; the command has options instead
_FEW = 4  # steps from row to row; labels may have this many equal steps by chance
Elements = dict[int, tuple[int, ...]]  # indices of the elements, by the position of the column

_BRACKETS = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")
_DOTS = re.compile(r"(.+?)\.(\d+(?:\.\d+)*)")
_TWO_DOTS = re.compile(r"(.+?)\.(\d+(?:\.\d+)+)")
_OF_STAN = "__"  # ends Stan's own columns lp__, stepsize__, ...


def by_draw(table: pd.DataFrame, name: str, var_name: str | None = None, dims: Sequence[str] = _DIMS) -> pd.DataFrame:
    """Move chain and draw to the levels "chain" and "draw" of the index, and keep a column for each item.

    Chain and draw are columns or levels of the index, also under the user's names `dims`; without them all rows are one
    chain. `var_name` chooses columns: ``z`` for ``z[1]``, ``z[2]``, ... By default these are all elements of variables
    if there are any, else all columns. Messages call the table `name`.

    Raises
    ------
    ValueError
        If columns are draws, rows are single items, a draw is repeated, or a column counts or names the rows.

    Warns
    -----
    UserWarning
        If the rows look like items.
    """
    _refuse_statistics(table, name)
    if any(says_draw(level, dims) for level in table.columns.names):
        raise ValueError(
            f"`data` must have draws as rows and items as columns; {name} has draws as columns: take its .T."
        )
    table, has_elements = _variable(table, name, var_name, dims)
    ids = _ids(table, name, dims)
    items = table.loc[:, [not says_draw(column, dims) for column in table.columns]]
    if not ids and not has_elements:
        _warn_of_items_as_rows(items, name)
    chain_key = _role_key(dims[0]) if len(dims) == 2 and "chain" not in dims else "chain"
    chain = ids.get(chain_key, ids.get("chain", pd.Series(np.zeros(len(table), np.int64)))).to_numpy()
    if pd.isna(chain).any():
        raise ValueError(f"`data` must give every draw its chain; a value of {ids[chain_key].name!r} is missing.")
    within = next((ids[key] for key in (*_DRAW, *map(_role_key, dims)) if key in ids and key != chain_key), None)
    draw = (pd.Series(chain).groupby(chain).cumcount() if within is None else within).to_numpy()
    items = items.set_axis(pd.MultiIndex.from_arrays([chain, draw], names=_DIMS), axis=0)
    if not items.index.is_unique:
        _refuse_repeated(items, [column.name for column in ids.values()], name)
    if not has_elements:
        _refuse_pairs(items, name)
        _check_labels(items, name)
    return items


def variables_of_table(frame: pd.DataFrame, var_name: str | None, dims: Sequence[str]) -> xr.Dataset:
    """Variables whose elements are columns, over "sample" and their own dimensions; none if columns are items."""
    if not elements_of(with_brackets(frame, var_name).columns):
        return xr.Dataset()
    return variables_in(by_draw(frame, "the DataFrame", var_name, dims), var_name)


def named_as_wanted(
    array: xr.DataArray, frame: pd.DataFrame, dims: tuple[str, ...], rest: tuple[str | None, ...]
) -> xr.DataArray:
    """Rename the dimensions of a variable of a table that are not the draws'; `rest` are the user's names."""
    return array.rename(dict(zip(array.dims[1:], _names_of_dims(frame, dims, rest), strict=False)))


def items_of_table(
    frame: pd.DataFrame, var_name: str | None, dims: tuple[str, ...], rest: tuple[str | None, ...]
) -> xr.DataArray:
    """Read all columns of a table as items; `rest` are the user's names of items and components."""
    item_dim, *components = _names_of_dims(frame, dims, rest)
    items = by_draw(frame, "the DataFrame", var_name, dims)
    if components:
        raise ValueError(
            "`data`, a table, must have a column for each item and component, such as 'p[1,2]' or Stan's 'p.1.2' for "
            f"component 2 of item 1; got {listing(frame.columns[:_NAMED])}{', ...' * (frame.shape[1] > _NAMED)}."
        )
    coords: dict[str, Any] = {dim: ("sample", items.index.get_level_values(dim)) for dim in ("chain", "draw")}
    if items.columns.nlevels == 1:
        coords[item_dim] = items.columns.to_numpy()
    return xr.DataArray(items.to_numpy(), coords, ("sample", item_dim))


def _names_of_dims(frame: pd.DataFrame, dims: tuple[str, ...], rest: tuple[str | None, ...]) -> list[str]:
    """Names of the dimensions of items and components: the user's, that of the columns, or the usual ones."""
    own = None if frame.columns.name == "sample" else frame.columns.name  # a name of items to users, of draws here
    names = [rest[0] or name_or(own, "item"), *("component" if dim is None else dim for dim in rest[1:])]
    for name in names:
        check_apart(name, tuple(dict.fromkeys(("sample", "chain", "draw", *dims))))
    return names


def check_apart(item_dim: str | None, dims: tuple[str, ...]) -> None:
    """Raise an error if the dimension of items or components is also a dimension of draws."""
    if item_dim in dims:
        raise ValueError(f"`item_dim` must differ from the dimensions of the draws, {listing(dims)}; got {item_dim!r}.")


def says_draw(name: object, dims: Sequence[str] = _DIMS) -> bool:
    """Whether a column or index level of this name holds chain or draw."""
    return _role_key(name) in ("chain", *_DRAW, *map(_role_key, dims))


def _role_key(name: object) -> str:
    return name.lower().removeprefix(".").removesuffix("__") if isinstance(name, str) else ""


def _variable(table: pd.DataFrame, name: str, var_name: str | None, dims: Sequence[str]) -> tuple[pd.DataFrame, bool]:
    """Select the elements of one or all variables, with chain and draw; all columns if no variable has elements."""
    table = with_brackets(table, var_name)
    families = elements_of(table.columns)
    if var_name is not None and var_name not in families:
        raise ValueError(
            f"`var_name` must name columns of {name}, such as 'z' for 'z[1]', 'z[2]'; got {var_name!r}, "
            f"present: {listing(families)}."
        )
    if not families:
        return table, False
    taken = {position for name in ([var_name] if var_name else families) for position in families[name]}
    return table.iloc[:, [k for k, column in enumerate(table.columns) if k in taken or says_draw(column, dims)]], True


def _ids(table: pd.DataFrame, name: str, dims: Sequence[str]) -> dict[str, pd.Series]:
    """Columns and index levels that hold chain and draw, by role; names of rows are ignored."""
    levels = [k for k, level in enumerate(table.index.names) if says_draw(level, dims)]
    if 0 < len(levels) < table.index.nlevels or (table.index.nlevels > 1 and not levels):
        raise ValueError(
            f"`data` must have a row for each draw, with the index levels {tuple(dims)}; got "
            f"{tuple(table.index.names)}. A table with a row for each draw of each item becomes one by unstack()."
        )
    columns = [table.index.get_level_values(k).to_series(index=table.index) for k in levels]
    columns += [table.iloc[:, k] for k, column in enumerate(table.columns) if says_draw(column, dims)]
    ids = {_role_key(column.name): column for column in columns}
    if len(ids) < len(columns):
        raise ValueError(
            f"`data` must give chain and draw only once; {name} has {listing(one.name for one in columns)}."
        )
    return ids


def _refuse_statistics(table: pd.DataFrame, name: str) -> None:
    """Raise an error for a table of statistics per variable, as ``az.summary`` and R's posterior return."""
    columns = {str(column).lower() for column in table.columns}
    statistics = columns & {"ess_bulk", "ess_tail", "r_hat", "rhat", "n_eff", "sd", "std"}
    if "mean" in columns and statistics:
        raise ValueError(
            f"`data` must have a row for each draw; {name} has statistics of each variable, such as 'mean' and "
            f"{min(statistics)!r}, as az.summary makes them. Give the posterior itself, such as idata."
        )


def _warn_of_items_as_rows(items: pd.DataFrame, name: str) -> None:
    """Warn if the names or the labels say that rows are items, and raise an error if both do.

    Columns say so that count draws, or are only counted, like R's V1, V2, ..., if rows are fewer or have names. Other
    names of rows say so unless the labels say that rows are draws.
    """
    n_rows, n_columns = items.shape
    has_names = has_text_names(items.index)
    prefix = (_counted_prefix(items.columns) or "").rstrip("._- ")
    are_draws = _role_key(prefix) in (*_DRAW, "run")
    if has_names and row_score(some_of_table(items)) <= -DECIDED:
        raise ValueError(
            f"`data` must have draws as rows and items as columns; got {name} of {n_rows} x {n_columns}, whose rows "
            f"have names, such as {items.index[0]!r}, and whose columns agree as draws do. If its columns are runs, "
            "call as_runs(table); if they are draws, take its transpose; if its rows are draws, number them by "
            "reset_index(drop=True)."
        )
    if are_draws or (is_counted(items.columns) and (has_names or n_columns > n_rows)):
        is_doubted = True
    else:
        score = row_score(some_of_table(items))
        is_doubted = score < DECIDED if has_names else score <= -DECIDED
    if is_doubted:
        warn(
            f"`data` must have draws as rows and items as columns: {name} is taken as {n_rows} draws of {n_columns} "
            "items. If its rows are items and its columns independent runs, call as_runs(table); if its rows are items "
            "and its columns draws, take its transpose. If its rows are draws, number them, and name the columns after "
            "the items.",
        )


def in_native_order(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers in the byte order of this machine, as pandas selects no others."""
    others = [k for k, kind in enumerate(table.dtypes) if isinstance(kind, np.dtype) and not kind.isnative]
    made = table.copy(deep=False) if others else table
    for k in others:
        made.isetitem(k, native(table.iloc[:, k].to_numpy()))
    return made


def has_text_names(index: pd.Index) -> bool:
    """Whether an index has text without repetition that does not count."""
    return index.inferred_type == "string" and bool(index.is_unique) and _counted_prefix(index) is None


def is_counted(names: pd.Index) -> bool:
    """Whether names are successive numbers, or R's V1, V2, ..."""
    return _counted_prefix(names) in ("", "V")


def _counted_prefix(names: pd.Index) -> str | None:
    """Common prefix of names that end in successive numbers; None for other names."""
    numbered = [one for one in (re.fullmatch(r"(.*?)(\d+)", str(name)) for name in names) if one]
    if len(numbered) < len(names) or len({one[1] for one in numbered}) != 1:
        return None
    return numbered[0][1] if all(int(b[2]) - int(a[2]) == 1 for a, b in pairwise(numbered)) else None


def _refuse_repeated(items: pd.DataFrame, ids: Sequence[Hashable], name: str) -> NoReturn:
    """Raise an error for a draw in several rows: rows may be items, components of items, or chains."""
    for k, column in enumerate(items.columns):
        others = [one for one in items.columns if one != column]
        if others and _is_row_for_each(items, [k]):
            labels = repr(others[0]) if len(others) == 1 else "the labels' column"
            raise ValueError(
                f"`data` must have a row for each draw and a column for each item; {name} has a row for each "
                f"{column!r} of each draw. Make it wide: .pivot(index={ids}, columns={column!r}, values={labels}) in "
                "pandas, pivot_wider in R."
            )
    is_float = [dtype.kind == "f" for dtype in items.dtypes]
    columns = sorted(range(len(is_float)), key=is_float.__getitem__)
    if sorted(is_float) == [False, False, True] and _is_row_for_each(items, columns[:2]):
        one, other, value = items.columns[columns]
        raise ValueError(
            f"`data` must have a row for each draw; {name} has a row for each {one!r} and {other!r} of each draw. Make "
            f"it an array: .set_index({[*ids, one, other]})[{value!r}].to_xarray() in pandas."
        )
    raise ValueError(
        f"`data` must have each draw of a chain once; {ids[-1]!r} of {name} repeats "
        f"{items.index[items.index.duplicated()][0][1]}. If there are several chains, add a column 'chain'."
    )


def _is_row_for_each(items: pd.DataFrame, columns: Sequence[int]) -> bool:
    """Whether each draw has one row for each combination of the values in these columns."""
    keys = items.iloc[:, list(columns)]
    n_rows = items.index.drop_duplicates().size * math.prod(keys.nunique())
    return n_rows == len(items) and not keys.reset_index().duplicated().any()


def _refuse_pairs(items: pd.DataFrame, name: str) -> None:
    """Raise an error for scores next to names, which are no labels; tables of fractions alone have their own."""
    floats = items.loc[:, [getattr(dtype, "kind", "") == "f" for dtype in items.dtypes]]
    values = floats.to_numpy(np.float64, na_value=np.nan)
    is_between = (values > 0) & (values < 1)
    is_score = is_between.any(axis=0) & ~((values < 0) | (values > 1)).any(axis=0)
    has_text = any(getattr(dtype, "kind", "O") == "O" for dtype in items.dtypes)
    if not is_score.any() or items.shape[1] < _OF_PAIRS or not (has_text or is_score.sum() == 1):
        return
    at = int(is_score.argmax())
    raise ValueError(
        f"`data` must have labels in its columns; {floats.columns[at]!r} of {name} has "
        f"{values[is_between[:, at], at][0]:g}. Leave it out; or, for a table of scored pairs, name its columns by "
        f"{BY_COLUMN}."
    )


def _check_labels(items: pd.DataFrame, name: str) -> None:
    """Raise an error for columns that count or name the rows."""
    unnamed = [column for column in items.columns if str(column).startswith("Unnamed: ")]
    wrong = [(column, "names the rows. Leave it out, or read the file with index_col=0") for column in unnamed]
    if _names_rows(items):
        wrong.append((items.columns[0], "names the rows. Leave it out, or make it the index"))
    wrong += [(column, "counts the rows. Name it 'draw', or leave it out") for column in _counters(items)]
    if wrong:
        column, does = wrong[0]
        raise ValueError(f"`data` must have labels in its columns; {column!r} of {name} {does}.")


def _names_rows(items: pd.DataFrame) -> bool:
    """Whether the first column is text without repetition, unlike the second."""
    if len(items) <= _FEW or items.shape[1] < 2:
        return False
    first = items.iloc[:, 0]
    is_text = pd.api.types.infer_dtype(first) == "string"
    return is_text and first.is_unique and not items.iloc[:, 1].is_unique


def _counters(items: pd.DataFrame) -> pd.Index:
    """Columns of numbers that rise by a constant step within chains, unlike labels."""
    chains = pd.factorize(items.index.get_level_values("chain"))[0]
    order = np.argsort(chains, kind="stable")
    within = np.diff(chains[order]) == 0
    kept = items.loc[:, [dtype.kind in "iuf" for dtype in items.dtypes]]
    for n_rows in (_FEW + 1, len(items)):  # a few rows rule out most labels
        steps = np.diff(kept.iloc[order[:n_rows]].to_numpy(np.float64, na_value=np.nan), axis=0)[within[: n_rows - 1]]
        kept = kept.loc[:, ((steps > 0) & (steps == steps[:1])).all(axis=0)]
    return kept.columns if within.sum() >= _FEW else kept.columns[:0]


def elements_of(columns: Iterable[Hashable]) -> dict[str, Elements]:
    """Find the variables whose elements are columns."""
    return _families(columns, _BRACKETS)


def with_brackets(table: pd.DataFrame, var_name: str | None = None, *, by_stan: bool = False) -> pd.DataFrame:
    """Rename Stan's ``p.1.2`` to ``p[1,2]``.

    Names with dots are elements only if Stan wrote them, `var_name` names them, or they fill a matrix of floats, since
    items may be named ``control.1`` and ``treated.1``.
    """
    by_stan = by_stan or any(str(column).endswith(_OF_STAN) for column in table.columns)
    dots = _DOTS if by_stan or var_name is not None else _TWO_DOTS
    names = {
        position: f"{name}[{','.join(map(str, at))}]"
        for name, elements in _families(table.columns, dots).items()
        if by_stan or name == var_name or (_axes(elements) and all(_is_float(table.iloc[:, k]) for k in elements))
        for position, at in elements.items()
    }
    return table.set_axis([names.get(k, column) for k, column in enumerate(table.columns)], axis=1) if names else table


def _families(columns: Iterable[Hashable], element: re.Pattern[str]) -> dict[str, Elements]:
    families: dict[str, Elements] = {}
    for position, column in enumerate(columns):
        match = element.fullmatch(str(column))
        if match:
            families.setdefault(match[1], {})[position] = tuple(map(int, re.findall(r"\d+", match[2])))
    return families


def variables_in(draws: pd.DataFrame, var_name: str | None = None) -> xr.Dataset:
    """Arrange the columns of each variable, or of one alone, as an array over "sample" and each index of its elements.

    The table is one of :func:`by_draw`. A matrix of integers is labels of items with two indices, so it has one
    dimension of items. The Dataset is empty if the columns are items.
    """
    families = elements_of(draws.columns)
    coords = {level: ("sample", draws.index.get_level_values(level)) for level in ("chain", "draw")}
    kept = families if var_name is None else {var_name: families[var_name]}
    variables = {name: _arranged(name, draws.iloc[:, list(elements)], elements) for name, elements in kept.items()}
    dataset = xr.Dataset(variables, coords)
    if var_name is not None:
        check_full(dataset[var_name])
    return dataset


def _arranged(name: str, columns: pd.DataFrame, elements: Elements) -> xr.DataArray:
    axes, values = _axes(elements), columns.to_numpy()
    if axes and values.dtype.kind in "iuf":
        matrix = values[:, np.lexsort(np.array(list(elements.values())).T[::-1])].reshape(-1, *map(len, axes))
        if not _are_labels(matrix):
            dims = [f"{name}_dim_{axis}" for axis in range(len(axes))]
            return xr.DataArray(matrix.astype(np.float64, copy=False), {dims[0]: axes[0]}, ("sample", *dims))
    single = all(len(at) == 1 for at in elements.values())  # z[38] names item 38, like p[38,1]
    items = [at[0] for at in elements.values()] if single else columns.columns.to_numpy()
    return xr.DataArray(values, {f"{name}_dim_0": items}, ("sample", f"{name}_dim_0"))


def _axes(elements: Elements) -> list[list[int]]:
    """Indices along each axis of the matrix that the elements fill; none if they do not fill a matrix."""
    n_indices = {len(at) for at in elements.values()}
    if n_indices == {1} or len(n_indices) > 1:
        return []
    axes = [sorted(set(along)) for along in zip(*elements.values(), strict=True)]
    is_full = math.prod(map(len, axes)) == len(elements) == len(set(elements.values()))
    return axes if is_full else []


def check_full(array: xr.DataArray) -> None:
    """Raise an error if a variable of floats has columns of items and components, but not all of them."""
    there = set(elements_of(array[array.dims[-1]].values).get(str(array.name), {}).values())
    missing = [at for at in product(*map(sorted, map(set, zip(*there, strict=True)))) if at not in there]
    if there and missing and array.dtype.kind == "f":
        raise ValueError(
            f"`data` must have a column for each item and component of {array.name!r}; "
            f"'{array.name}[{','.join(map(str, missing[0]))}]' is missing."
        )


def _is_float(column: pd.Series) -> bool:
    return bool(column.dtype.kind == "f")


def _are_labels(matrix: npt.NDArray[np.number]) -> bool:
    """Whether all values are integers, and not only probabilities 0 and 1."""
    is_whole = matrix.dtype.kind in "iu" or bool(np.all(matrix == np.floor(matrix)))
    return is_whole and not bool(np.all(matrix.sum(axis=-1) == 1))
