"""Formats of files: a table of how each is recognized and read, and of the meaning of several files."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from posterior_consensus.sources.accumulate import is_accumulated, read_draws
from posterior_consensus.sources.containers import open_tree
from posterior_consensus.sources.plain_files import is_plain, read_plain
from posterior_consensus.sources.scored_pairs import is_file_of_pairs, read_pairs
from posterior_consensus.sources.stores import is_store, stored_draws


class Format(NamedTuple):
    """A format of files.

    Attributes
    ----------
    names : tuple of str
        Names in messages.
    is_it : callable
        Whether a path has this format.
    read : callable
        Gives opened data for a path (or a list of paths, if these are chains), `var_name` and `progressbar`.
    lists_are_chains : bool
        Whether several files are one posterior, a chain each. Else they are layers.
    has_groups : bool
        Whether `open_tree` reads it, so that a copy can have a group of results.
    has_numbers : bool
        Whether a file may be weights or a similarity matrix, which ``plain_files.py`` reads.
    """

    names: tuple[str, ...]
    is_it: Callable[[str | Path], bool]
    read: Callable[[Any, str | None, bool], Any]
    lists_are_chains: bool = False
    has_groups: bool = False
    has_numbers: bool = False


def _read_tree(path: str | Path, *_: object) -> Any:
    path = Path(path)
    if path.exists() and path.suffix.lower() == ".h5ad":
        raise ValueError(
            f"`data` must be a path to a {either(FORMATS)} file; got {path.name!r}. Open it, and name the columns of "
            f"`obs` that are runs: as_runs(anndata.read_h5ad({str(path)!r}), keys='leiden_*')."
        )
    if path.exists() and path.suffix.lower() in {".rds", ".rda", ".rdata"}:
        raise ValueError(
            f"`data` must be a path to a {either(FORMATS)} file; got {path.name!r}. In R, write the draws by "
            'write.csv(z, "z.csv"), a row for each draw.'
        )
    return open_tree(path)


# Messages list their names in this order. The last that fits a path is taken, so the first is for all that none fits.
FORMATS: tuple[Format, ...] = (
    Format(("NetCDF", "Zarr"), lambda _: True, _read_tree, has_groups=True),
    Format(
        ("CSV", "Parquet", ".npy"),
        is_plain,
        lambda data, var_name, _: read_plain(data, var_name),
        lists_are_chains=True,
        has_numbers=True,
    ),
    Format((), is_file_of_pairs, lambda path, *_: read_pairs(path)),
    Format((), is_store, lambda path, _, progressbar: stored_draws(Path(path).absolute(), progressbar=progressbar)),
    Format((), is_accumulated, lambda path, *_: read_draws(Path(path).absolute())),
)


def format_of(path: str | Path) -> Format:
    """The format of a file."""
    return next(one for one in reversed(FORMATS) if one.is_it(path))


def format_of_chains(data: object) -> Format | None:
    """The format of a list of files that are chains; None for other data."""
    if not isinstance(data, (list, tuple)) or not data or not all(isinstance(one, (str, Path)) for one in data):
        return None
    return next((one for one in FORMATS if one.lists_are_chains and all(map(one.is_it, data))), None)


def either(formats: Iterable[Format]) -> str:
    """Names of formats in a message."""
    *others, last = [name for one in formats for name in one.names]
    return f"{', '.join(others)} or {last}"
