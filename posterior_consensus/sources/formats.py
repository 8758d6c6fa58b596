"""Formats of files: a table of how each is recognized, read and written.

The command names them in its help, so what reads them is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Content = pd.DataFrame | npt.NDArray[Any]


class Format(NamedTuple):
    """A format of files: of a table or an array, with `content`, or of opened data, with `opened`.

    Several tables or arrays are chains, and one may be weights, a similarity matrix or runs. Other files, if several,
    are layers.
    """

    names: tuple[str, ...] = ()  # names in messages
    # ends of the names of files, the usual one first; "" for files that no other row fits
    suffixes: tuple[str, ...] = ()
    is_it: Callable[[str | Path], bool] | None = None  # whether a path has this format, where its suffix does not say
    # Read the table or array of a path as it is. The second argument is `var_name`.
    content: Callable[[Path, str | None], Content] | None = None
    # names of a table's columns, without reading the rest; none of an array, or if there is no such file
    columns: Callable[[Path], list[str]] = lambda _: []
    # Read these columns of a table. The third argument names those of them that are names of records.
    read_columns: Callable[[Path, Sequence[str], Sequence[str]], pd.DataFrame] | None = None
    is_text: bool = False  # whether a table has no types, so that names of records are read as text
    write: Callable[[pd.DataFrame, Path], object] | None = None  # write a table with an index to a path
    needs: str = ""  # package that it needs
    # Give opened data of a path. The second argument is `progressbar`.
    opened: Callable[[Path, bool], Any] | None = None
    has_groups: bool = False  # whether `open_tree` reads it, so that a copy can have a group of results

    def fits(self, path: str | Path) -> bool:
        """Whether a path has this format."""
        return str(path).lower().endswith(self.suffixes) if self.is_it is None else self.is_it(path)


def _of_arrow(name: str, suffixes: tuple[str, ...], write: str) -> Format:
    """A format that pyarrow reads and pandas writes."""
    return Format(
        (name,),
        suffixes,
        content=lambda path, _: _readers().read_arrow(name, path),
        columns=lambda path: _readers().columns_of_arrow(name, path),
        read_columns=lambda path, columns, _: _readers().read_arrow(name, path, columns),
        write=lambda table, path: getattr(table.reset_index(), write)(path),
        needs="pyarrow",
    )


def _readers() -> ModuleType:
    from posterior_consensus.sources import readers

    return readers


def _stores() -> ModuleType:
    from posterior_consensus.sources import stores

    return stores


def _accumulate() -> ModuleType:
    from posterior_consensus.sources import accumulate

    return accumulate


def _open_tree(path: Path, _: bool) -> Any:
    if path.exists() and path.suffix.lower() in _ELSEWHERE:
        raise ValueError(
            f"`data` must be a path to a {names_of(FORMATS)} file; got {path.name!r}. "
            f"{_ELSEWHERE[path.suffix.lower()].format(path=str(path))}"
        )
    from posterior_consensus.sources.containers import open_tree

    return open_tree(path)


_IN_R = 'In R, write the draws by write.csv(z, "z.csv"), a row for each draw.'
_ELSEWHERE = dict.fromkeys((".rds", ".rda", ".rdata"), _IN_R)  # files that no row reads, and what to do
_ELSEWHERE[".h5ad"] = (
    "Open it, and name the columns of `obs` that are runs: as_runs(anndata.read_h5ad({path!r}), keys='leiden_*')."
)
# Messages list their names in this order. The last that fits a path is taken, so the first is for all that none fits.
FORMATS: tuple[Format, ...] = (
    Format(("NetCDF", "Zarr"), ("",), opened=_open_tree, has_groups=True),
    Format(
        ("CSV",),
        (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
        content=lambda path, _: _readers().read_text(path),
        columns=lambda path: _readers().columns_of_text(path),
        read_columns=lambda *given: _readers().read_columns_of_text(*given),
        is_text=True,
        write=lambda table, path: table.to_csv(path),
    ),
    _of_arrow("Parquet", (".parquet", ".pq"), "to_parquet"),
    _of_arrow("Feather", (".feather",), "to_feather"),
    Format((".npy",), (".npy", ".npz"), content=lambda *given: _readers().read_numpy(*given)),
    Format(
        is_it=lambda path: _stores().is_store(path),
        opened=lambda path, progressbar: _stores().stored_draws(path.absolute(), progressbar=progressbar),
    ),
    Format(
        is_it=lambda path: _accumulate().is_accumulated(path),
        opened=lambda path, _: _accumulate().read_draws(path.absolute()),
    ),
)
PLAIN = [one for one in FORMATS if one.content is not None]
TABLES = [one for one in PLAIN if one.read_columns is not None]
WRITTEN = {one.suffixes[0]: one for one in FORMATS if one.write is not None}


def format_of(path: str | Path) -> Format:
    """The format of a file."""
    return next(one for one in reversed(FORMATS) if one.fits(path))


def content_of(path: str | Path, var_name: str | None = None) -> Content:
    """The table or array in a file, as it is."""
    content = format_of(path).content
    assert content is not None  # as callers ask
    return content(Path(path), var_name)


def is_plain(path: object) -> bool:
    """Whether this is the path of a table or of an array, by its suffix."""
    return isinstance(path, (str, Path)) and any(one.fits(path) for one in PLAIN)


def are_chains(data: object) -> bool:
    """Whether data are paths of files that are a chain each."""
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(map(is_plain, data))


def names_of(formats: Iterable[Format]) -> str:
    """Names of formats in a message."""
    return alternatives(name for one in formats for name in one.names)


def alternatives(words: Iterable[str]) -> str:
    """Several words, of which one is to be chosen, in a message."""
    *others, last = words
    return f"{', '.join(others)} or {last}"
