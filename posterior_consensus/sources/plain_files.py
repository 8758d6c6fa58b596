"""Draws, matrices and numbers in plain files: tables and arrays, whose dimensions have no names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.sources.formats import content_of, format_of
from posterior_consensus.sources.readers import check_exists
from posterior_consensus.sources.tables import by_draw, elements_of, is_counted, says_draw, with_brackets


def read_plain(data: Any, var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a plain file: an array, or a table with an index of chain and draw and a column for each item.

    If columns are elements of variables, such as ``z[1]`` or ``p[1,2]``, other columns are ignored. `data`: several
    paths are chains, in order. `var_name`: array of an .npz file, or columns of a table: ``z`` for ``z[1]``, ``z[2]``,
    ... Raises FileNotFoundError if the file does not exist. Raises ValueError if it cannot be read or is ambiguous.
    """
    if isinstance(data, (str, Path)):
        return _read_one(Path(data), var_name)
    return _chains_of_files([Path(path) for path in data], var_name)


def read_numbers(path: str | Path) -> npt.NDArray[Any]:
    """Read an array of numbers from a text or NumPy file; a table of one column has one dimension."""
    values = np.asarray(content_of(path))
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def read_table(path: str | Path) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a table of labels, or an array, as it is."""
    table = content_of(path)
    if isinstance(table, pd.DataFrame):
        _check_first_line(table, Path(path))
    return table


def read_matrix(path: str | Path) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a matrix of numbers, with the names of a table's rows unless these are counted by R or pandas."""
    table = content_of(path)
    if isinstance(table, np.ndarray):
        return table
    rows, columns = table.index, table.columns
    if len(rows) != len(columns) or (is_counted(rows) and is_counted(columns)):
        return table.to_numpy()
    if is_counted(columns) or list(map(str, rows)) == list(map(str, columns)):
        return table.set_axis(rows, axis=1)
    return table.set_axis(columns) if is_counted(rows) else table


def columns_of_file(path: str | Path) -> list[str]:
    """Names of a table's columns, without reading the rest; none if there is no such file."""
    columns = format_of(path).columns
    return [] if columns is None else columns(Path(path))


def read_columns(path: str | Path, columns: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Read some columns of a table; in text, `names` are read as they are written, and missing if nothing is."""
    read = format_of(path).read_columns
    assert read is not None  # as its columns were named
    return read(Path(path), columns, names)


def _chains_of_files(paths: Sequence[Path], var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    check_once(paths)
    chains = [_read_one(path, var_name) for path in paths]
    shapes = [one.shape for one in chains]
    if all(isinstance(one, np.ndarray) and one.ndim == 3 and one.dtype.kind == "f" for one in chains):
        other = next((k for k, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is None:
            return np.stack(chains)
        raise ValueError(
            "`data`, a list of files, must have as many draws, items and components in each; "
            f"{paths[other].name!r} has shape {shapes[other]}, {paths[0].name!r} {shapes[0]}."
        )
    tables = [_chain(one, path) for one, path in zip(chains, paths, strict=True)]
    for table, path in zip(tables, paths, strict=True):
        if not table.columns.equals(tables[0].columns):
            raise ValueError(
                f"`data`, a list of files, must have the same items in the same order; {path.name!r} has others than "
                f"{paths[0].name!r}."
            )
    return pd.concat(tables, keys=range(len(tables)), names=["chain", "draw"])


def check_once(paths: Sequence[Path]) -> None:
    """Raise an error for a file that is given twice, under any name, or does not exist."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        check_exists(path)
        about = path.stat()
        if (about.st_dev, about.st_ino) in seen:
            raise ValueError(f"`data`, a list of files, must have each file once; got {str(path)!r} twice.")
        seen.add((about.st_dev, about.st_ino))


def _chain(table: pd.DataFrame | npt.NDArray[Any], path: Path) -> pd.DataFrame:
    """The only chain of a file, with an index of draws."""
    if isinstance(table, pd.DataFrame):
        if table.index.get_level_values("chain").nunique() > 1:
            raise ValueError(f"`data`, a list of files, must hold a chain each; {path.name!r} has several.")
        return table.droplevel("chain")
    if table.ndim == 2:
        return pd.DataFrame(table).rename_axis("draw")
    raise ValueError(
        f"`data`, a list of files, must hold a chain each, of draws x items, or of draws x items x components if they "
        f"are probabilities; {path.name!r} has shape {table.shape}."
    )


def _read_one(path: Path, var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    table = content_of(path, var_name)
    if isinstance(table, np.ndarray):
        return table
    _check_first_line(table, path)
    _check_first_column(table, path)
    return by_draw(table, repr(path.name), var_name)


def _check_first_line(table: pd.DataFrame, path: Path) -> None:
    """Raise an error if the first line of a table can be names or labels."""
    ways_out = 'Give the columns names that are no labels, such as "item1", in the first line.'
    names = [str(name) for name in table.columns]
    if table.columns.inferred_type == "integer":
        first = table.iloc[0].to_numpy() if len(table) else np.empty(0)
        counts = any(np.array_equal(first, np.arange(k, k + first.size)) for k in (0, 1))
        name = table.index.inferred_type == "string" and np.unique(first).size == first.size
        if first.size > 1 and (counts or name):
            raise ValueError(
                f"`data`: cannot tell names from labels; the first line of {path.name!r}, {first[0]} to {first[-1]}, "
                f"may number the columns or be labels. {ways_out}"
            )
    elif len(table) and all(dtype.kind not in "iufb" for dtype in table.dtypes):
        values = set(map(str, pd.unique(table.to_numpy().ravel())))
        if all(name in values or name.rsplit(".", 1)[0] in values for name in names):  # pandas marks repeats
            raise ValueError(
                f"`data`: cannot tell names from labels; the first line of {path.name!r}, {names[0]!r} to "
                f"{names[-1]!r}, has values of the other lines. {ways_out}"
            )


def _check_first_column(table: pd.DataFrame, path: Path) -> None:
    """Raise an error if names of rows repeat within a chain: they may be labels of an item."""
    if table.index.is_unique or elements_of(with_brackets(table).columns):
        return
    chains = table.loc[:, [says_draw(one) and "chain" in str(one).lower() for one in table.columns]]
    repeated = chains.assign(row=table.index).duplicated().to_numpy()
    if repeated.any():
        raise ValueError(
            f"`data`: cannot tell names of rows from labels; the first column of {path.name!r} has no name and repeats "
            f"{table.index[repeated][0]}. If it is an item, give it a name in the first line; if it names the rows, "
            "leave it out, and say by a column 'chain' which chain a row is of."
        )
