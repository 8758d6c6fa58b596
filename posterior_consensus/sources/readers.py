"""Readers of tables and arrays: text, as R writes it, Parquet and Feather, NumPy's files; each as the file has it."""

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
from posterior_consensus.sources.tables import says_draw, with_brackets

_COMMENT = "#"


def check_exists(path: Path) -> None:
    """Raise an error if there is no such file."""
    if not path.is_file():
        raise FileNotFoundError(f"`data` must be a path to a file; there is no {str(path)!r}.")


def columns_of_text(path: Path) -> list[str]:
    """Names in the first line of a table of text; none if there is no such file."""
    if not path.is_file():
        return []
    try:
        _, line, _ = _first_lines(path)
    except (OSError, ValueError, EOFError):  # which reading the table explains
        return []
    return _fields_of_line(line, _separator(line))


def read_columns_of_text(path: Path, columns: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Read some columns of a table of text; `names` are read as they are written, and missing if nothing is."""
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
            f"`data` must be a path to a table of text; {path.name!r} cannot be read as one ({error})."
        ) from error


def columns_of_arrow(kind: str, path: Path) -> list[str]:
    """Names of the columns of a Parquet or Feather file; none if there is no such file."""
    return list(_arrow(kind, path).schema.names) if path.exists() else []


def read_arrow(kind: str, path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a Parquet or Feather file, or some of its columns."""
    return _arrow(kind, path).to_table(columns).to_pandas()


def _arrow(kind: str, path: Path) -> Any:
    """A Parquet or Feather file, or a folder of its parts, whose columns are not read yet."""
    if not path.exists():
        check_exists(path)
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"Reading {path.name!r} needs the package pyarrow: pip install 'posterior-consensus[parquet]'."
        )
    from pyarrow import ArrowInvalid
    from pyarrow.dataset import HivePartitioning, dataset

    in_names = HivePartitioning.discover(infer_dictionary=True) if path.is_dir() else None  # columns of folders' names
    try:
        return dataset(path, format=kind.lower(), partitioning=in_names)
    except ArrowInvalid as error:
        raise ValueError(f"`data` must be a path to a {kind} file; {path.name!r} is none ({error}).") from error


def read_numpy(path: Path, var_name: str | None) -> npt.NDArray[Any]:
    """Read the array of an .npy file, or the one of this name in an .npz file."""
    check_exists(path)
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


def read_text(path: Path) -> pd.DataFrame:
    """Read a table with or without a line of names; the names of its rows become its index."""
    check_exists(path)
    try:
        comments, line, second = _first_lines(path)
        separator = _separator(line)
        names = _fields_of_line(line, separator)
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
    fields = [_fields_of_line(line, ",") for line in (*head[:1], *table[:1])]
    is_stan = len(fields) == 2 and len(fields[0]) != len(fields[1]) and not all(map(_is_number, fields[1]))
    line, second, *_ = [*(table if is_stan else head), "", ""]  # a line of names may begin like a comment
    return "\n".join(head) if is_stan else "", line, second


def _separator(line: str) -> str:
    between = re.sub(r'"[^"]*"|\[[^\]]*\]', "", line)  # z[1,2] has a comma
    separator = max(",;\t", key=between.count)
    return r"\s+" if separator not in between and len(line.split()) > 1 else separator


def _n_warmup(comments: str) -> int:
    """Number of warm-up draws that Stan saved."""
    settings = dict(re.findall(r"^#\s*(\w+) = (\S+)", comments, re.MULTILINE))
    if settings.get("save_warmup") not in ("1", "true") or settings.get("algorithm") == "fixed_param":
        return 0
    return -(-int(settings["num_warmup"]) // int(settings.get("thin", 1)))


def _fields_of_line(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator)) if len(separator) == 1 else line.split()


def _is_named_row(line: str, separator: str) -> bool:
    """Whether a line is a name, quoted or not a number, followed by unquoted numbers."""
    first, *labels = _fields_of_line(line, separator) or [""]
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
