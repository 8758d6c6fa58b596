"""Draws in plain files, whose dimensions have no names: tables of text, as R writes them, Parquet, NumPy's arrays."""

import csv
import gzip
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.runtime.arguments import listing
from posterior_consensus.sources.tables import by_draw, elements_of, is_counted, says_draw, with_brackets

_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_NUMPY = (".npy", ".npz")
_PARQUET = (".parquet", ".pq")
_COMMENT = "#"


def is_plain(path: str | Path) -> bool:
    """Whether a path is that of a table or of a NumPy file."""
    return str(path).lower().endswith((*_TEXT, *_NUMPY, *_PARQUET))


def is_parquet(path: str | Path) -> bool:
    """Whether a path is that of a Parquet file, or of a folder of its parts."""
    return str(path).lower().endswith(_PARQUET)


def read_plain(data: Any, var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a plain file: an array, or a table with an index of chain and draw and a column for each item.

    If columns are elements of variables, such as ``z[1]`` or ``p[1,2]``, other columns are ignored.

    Parameters
    ----------
    data : path or sequence of paths
        Several paths are chains, in order.
    var_name : str, optional
        Array of an .npz file, or columns of a table: ``z`` for ``z[1]``, ``z[2]``, ...

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If it cannot be read or is ambiguous.
    """
    if isinstance(data, (str, Path)):
        return _read(Path(data), var_name)
    return _chains([Path(path) for path in data], var_name)


def read_numbers(path: str | Path) -> npt.NDArray[Any]:
    """Read an array of numbers from a text or NumPy file; a table of one column has one dimension."""
    values = np.asarray(_content(Path(path), None))
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def read_table(path: str | Path) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a table of labels, or an array, as it is."""
    table = _content(Path(path), None)
    if isinstance(table, pd.DataFrame):
        _check_first_line(table, Path(path))
    return table


def read_matrix(path: str | Path) -> pd.DataFrame | npt.NDArray[Any]:
    """Read a matrix of numbers, with the names of a table's rows unless these are counted by R or pandas."""
    table = _content(Path(path), None)
    if isinstance(table, np.ndarray):
        return table
    rows, columns = table.index, table.columns
    if len(rows) != len(columns) or (is_counted(rows) and is_counted(columns)):
        return table.to_numpy()
    if is_counted(columns) or list(map(str, rows)) == list(map(str, columns)):
        return table.set_axis(rows, axis=1)
    return table.set_axis(columns) if is_counted(rows) else table


def columns_of_file(path: str | Path) -> list[str]:
    """Names in the first line of a table of text, or columns of a Parquet file; none if there is no such file."""
    path = Path(path)
    if is_parquet(path):
        return list(_parquet(path).schema.names) if path.exists() else []
    if not path.name.lower().endswith(_TEXT) or not path.is_file():
        return []
    try:
        _, line, _ = _first_lines(path)
    except (OSError, ValueError, EOFError):  # which reading the table explains
        return []
    return _fields(line, _separator(line))


def read_columns(path: str | Path, columns: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Read some columns of a table; in text, `names` are read as they are written, and missing if nothing is."""
    path = Path(path)
    if is_parquet(path):
        return _parquet(path).read(list(columns)).to_pandas()
    _, line, _ = _first_lines(path)
    try:
        return pd.read_csv(
            path,
            sep=_separator(line),
            usecols=list(columns),
            dtype=dict.fromkeys(names, str),
            keep_default_na=False,
            na_values={column: [""] if column in names else ["", "NA", "NaN", "nan", "NULL"] for column in columns},
            encoding="utf-8-sig",
        )
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(
            f"`data` must be a path to a table of text with a row for each pair; {path.name!r} cannot be read as one "
            f"({error})."
        ) from error


def _parquet(path: Path) -> Any:
    """A Parquet file whose columns are not read yet."""
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"Reading {path.name!r} needs the package pyarrow: pip install 'posterior-consensus[parquet]'."
        )
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetDataset

    try:
        return ParquetDataset(path)
    except ArrowInvalid as error:
        raise ValueError(f"`data` must be a path to a Parquet file; {path.name!r} is none ({error}).") from error


def _chains(paths: Sequence[Path], var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    check_once(paths)
    chains = [_read(path, var_name) for path in paths]
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
        _check_exists(path)
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


def _read(path: Path, var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    table = _content(path, var_name)
    if isinstance(table, np.ndarray):
        return table
    _check_first_line(table, path)
    _check_first_column(table, path)
    return by_draw(table, repr(path.name), var_name)


def _content(path: Path, var_name: str | None) -> pd.DataFrame | npt.NDArray[Any]:
    if is_parquet(path) and path.exists():
        return _parquet(path).read_pandas().to_pandas()
    _check_exists(path)
    return _read_numpy(path, var_name) if path.name.lower().endswith(_NUMPY) else _read_text(path)


def _check_exists(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"`data` must be a path to a file; there is no {str(path)!r}.")


def _read_numpy(path: Path, var_name: str | None) -> npt.NDArray[Any]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {None: loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(
            f"`data` must be a path to a NumPy file of numbers; {path.name!r} is none ({error})."
        ) from error
    name = next(iter(arrays)) if var_name is None and len(arrays) == 1 else var_name
    if name not in arrays:
        present = listing(arrays) if None not in arrays else "one array without a name"
        raise ValueError(f"`var_name` must name an array of {path.name!r}; got {var_name!r}, present: {present}.")
    return arrays[name]


def _read_text(path: Path) -> pd.DataFrame:
    """Read a table with or without a line of names; the names of its rows become its index."""
    try:
        comments, line, second = _first_lines(path)
        separator = _separator(line)
        names = _fields(line, separator)
        names_rows = all(_is_named_row(one, separator) for one in (line, second))
        has_names = not names_rows and ('"' in line or not all(map(_is_number, names)))
        table = pd.read_csv(
            path,
            sep=separator,
            engine="c",
            low_memory=False,
            encoding="utf-8-sig",
            comment=_COMMENT if comments else None,
            header=0 if has_names else None,
            index_col=0 if names_rows or (has_names and len(names) > 1 and names[0] == "") else None,
        )
    except (OSError, ValueError, EOFError) as error:  # errors of pandas and of decoding are ValueErrors
        raise ValueError(
            f"`data` must be a path to a table of text with a row for each draw; {path.name!r} cannot be read as one "
            f"({error})."
        ) from error
    if comments:
        return with_brackets(table.iloc[_n_warmup(comments) :], by_stan=True)
    return table.set_axis(range(table.shape[1]), axis=1) if names_rows else table


def _first_lines(path: Path) -> tuple[str, str, str]:
    """Stan's comments before a table, or none, and the first two lines of the table."""
    head: list[str] = []
    table: list[str] = []
    with (
        gzip.open(path, "rt", encoding="utf-8-sig")
        if path.suffix.lower() == ".gz"
        else path.open(encoding="utf-8-sig") as lines
    ):
        for read in lines:
            line = read.rstrip("\r\n")
            head.append(line)
            if not (head[0].startswith(_COMMENT) and line.startswith(_COMMENT)):
                table.append(line)
            if len(table) == 2:
                break
    fields = [_fields(line, ",") for line in (*head[:1], *table[:1])]
    is_stan = len(fields) == 2 and len(fields[0]) != len(fields[1]) and not all(map(_is_number, fields[1]))
    line, second, *_ = [*(table if is_stan else head), "", ""]  # a line of names may begin like a comment
    return "\n".join(head) if is_stan else "", line, second


def _separator(line: str) -> str:
    separator = max(",;\t", key=line.count)
    return r"\s+" if separator not in line and len(line.split()) > 1 else separator


def _n_warmup(comments: str) -> int:
    """Number of warm-up draws that Stan saved."""
    settings = dict(re.findall(r"^#\s*(\w+) = (\S+)", comments, re.MULTILINE))
    if settings.get("save_warmup") not in ("1", "true") or settings.get("algorithm") == "fixed_param":
        return 0
    return -(-int(settings["num_warmup"]) // int(settings.get("thin", 1)))


def _fields(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator)) if len(separator) == 1 else line.split()


def _is_named_row(line: str, separator: str) -> bool:
    """Whether a line is a name, quoted or not a number, followed by unquoted numbers."""
    first, *labels = _fields(line, separator) or [""]
    return (
        bool(labels)
        and first.strip('"') != ""
        and not says_draw(first.strip('"'))
        and (line.startswith('"') or not _is_number(first))
        and line.count('"') in (0, 2)
        and all(map(_is_number, labels))
    )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return field == "NA"
    return True


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
    chains = table.loc[:, [_says_chain(column) for column in table.columns]]
    repeated = chains.assign(row=table.index).duplicated().to_numpy()
    if repeated.any():
        raise ValueError(
            f"`data`: cannot tell names of rows from labels; the first column of {path.name!r} has no name and repeats "
            f"{table.index[repeated][0]}. If it is an item, give it a name in the first line; if it names the rows, "
            "leave it out, and say by a column 'chain' which chain a row is of."
        )


def _says_chain(column: object) -> bool:
    return says_draw(column) and "chain" in str(column).lower()
