"""Where InferenceData, DataTree and files keep their groups: the one place that knows.

ArviZ 0.x hands out ``InferenceData``, ArviZ 1.x ``xarray.DataTree``, and either can meet either version, so objects are
told apart by what they are and never by a version number.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import xarray as xr

from posterior_consensus.results import display
from posterior_consensus.sources.plain_files import is_plain

Container = TypeVar("Container")

_LEVELS = "levels_of_"  # attribute for each dimension of several levels


class HasDataset(Protocol):
    """A result that can be stored."""

    def to_dataset(self) -> xr.Dataset:
        """Everything worth storing."""
        ...


def is_inference_data(data: object) -> bool:
    """Whether `data` is ArviZ 0.x's InferenceData, told without importing ArviZ."""
    return any(cls.__name__ == "InferenceData" and cls.__module__.startswith("arviz") for cls in type(data).__mro__)


def group_dataset(data: Any, group: str) -> xr.Dataset:
    """Return one group of an InferenceData or a DataTree as a Dataset, and a Dataset as it is.

    Raises
    ------
    ValueError
        If there is no such group; the message lists those there are.
    """
    if isinstance(data, xr.Dataset):
        return data
    if isinstance(data, xr.DataTree):
        present: Mapping[str, Any] = data.children
        if group not in present and data.data_vars and group in ("posterior", data.name):  # a group's own node
            return data.to_dataset()
    else:
        present = dict.fromkeys(data.groups())
    if group not in present:
        raise ValueError(f"`group` must name a group of the data; got {group!r}, present: {listing(present)}.")
    found = data[group]
    return found.to_dataset() if isinstance(found, xr.DataTree) else found


def opened(data: Any) -> AbstractContextManager[Any]:
    """A NetCDF or Zarr file as a tree of which nothing is read but coordinates; anything else as it is."""
    return open_tree(Path(data)) if isinstance(data, (str, Path)) and not is_plain(data) else nullcontext(data)


def open_tree(path: Path) -> xr.DataTree:
    """Open a NetCDF or Zarr file with its groups.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is of another kind.
    ImportError
        If it is a Zarr store and the package zarr is missing.
    """
    if not path.exists():
        raise FileNotFoundError(f"`data` must be a path to a NetCDF or Zarr file; there is no {str(path)!r}.")
    if path.suffix.lower() in {".rds", ".rda", ".rdata"}:
        raise ValueError(
            f"`data` must be a path to a NetCDF, Zarr, CSV or NumPy file; got {path.name!r}. In R, write the draws by "
            'write.csv(z, "z.csv"), a row for each draw.'
        )
    if path.is_dir() and find_spec("zarr") is None:
        raise ImportError(f"Reading {path.name!r} needs the package zarr: pip install 'posterior-consensus[zarr]'.")
    try:
        return xr.open_datatree(path, engine="zarr" if path.is_dir() else "h5netcdf")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"`data` must be a path to a NetCDF 4 or Zarr file; {path.name!r} cannot be read as one ({error})."
        ) from error


def stored(items: xr.DataArray, variables: Mapping[str, Any], attrs: Mapping[str, Any] | None = None) -> xr.Dataset:
    """Put a result's variables into a Dataset, or say which name of the user's `items` is in the way."""
    theirs = {str(name) for name in (*items.dims, *items.coords)}
    for name, value in variables.items():
        added = {name}
        if isinstance(value, xr.DataArray):
            over_items = all(value.sizes.get(dim) == size for dim, size in items.sizes.items())
            added |= {str(dim) for dim in value.dims if not (over_items and dim in items.dims)}
        taken = sorted(added & theirs)
        if taken:
            raise ValueError(
                f"The draws must not have a dimension or coordinate {taken[0]!r}: a result is stored there."
            )
    return storable(xr.Dataset(variables, attrs=attrs))


class Stored(display.Shown):
    """A result that comes back from where it was stored."""

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree) -> Self:
        """Make the result again that :meth:`to_dataset` stored.

        Parameters
        ----------
        dataset : xarray.Dataset or xarray.DataTree
            What :meth:`to_dataset` gave, also if it comes from a file or holds other results too: the group that
            :func:`attach` wrote.

        Returns
        -------
        result of this class
            Equal to the stored one in every attribute but draws, which are not stored. Names and coordinates that are
            neither text nor numbers nor times come back as text. Attributes of coordinates that are neither text nor
            numbers do not come back.

        Raises
        ------
        ValueError
            If no such result is in it, or its loss is none of LOSSES.
        TypeError
            If `dataset` is neither a Dataset nor a DataTree.
        """
        with reading(dataset, cls.__name__) as read:
            return cls._restored(read)

    @classmethod
    def _restored(cls, dataset: xr.Dataset) -> Self:
        raise NotImplementedError


@contextmanager
def reading(data: Any, result: str) -> Iterator[xr.Dataset]:
    """Load the group that holds a stored result; what is missing in it becomes an error that says so."""
    if not isinstance(data, (xr.Dataset, xr.DataTree)):
        raise TypeError(
            f"`dataset` must be a Dataset or a group of a DataTree; got {type(data).__name__}. "
            "Of a posterior that attach() added results to, take the group, idata['consensus']."
        )
    dataset = (data.to_dataset() if isinstance(data, xr.DataTree) else data).compute()
    try:
        yield restored_levels(dataset)
    except KeyError:
        raise ValueError(
            f"`dataset` must hold a {result} as its to_dataset() gives it; present: {listing(dataset.data_vars)}."
        ) from None


def without_cluster_names(dataset: xr.Dataset) -> xr.Dataset:
    """Leave out the names that a consensus beside this result gave its clusters."""
    return dataset.drop_vars("consensus_cluster", errors="ignore")


def as_json(value: Any) -> str:
    """Text of plain values and of NumPy's, for an attribute; :func:`from_json` reads it."""
    return json.dumps(value, default=lambda other: other.tolist() if hasattr(other, "tolist") else str(other))


def from_json(text: str) -> Any:
    """Plain values from the text of an attribute."""
    return json.loads(text)


def names_from_json(text: str) -> tuple[Hashable, ...]:
    """Names of clusters or chains from the text of an attribute."""
    return tuple(tuple(name) if isinstance(name, list) else name for name in from_json(text))


def attach(data: Container, *results: HasDataset, group: str = "consensus") -> Container:
    """Return the user's posterior with results added to it as a group.

    Parameters
    ----------
    data : arviz.InferenceData or xarray.DataTree
        What the sampler returned; it is not changed, and its arrays are not copied.
    *results : ConsensusPartition, CredibleBall, ItemUncertainty or any object with ``to_dataset()``
        What to store, merged into one Dataset. Each comes back by its class's ``from_dataset``.
    group : str
        Name of the new group. A group of that name in `data` is replaced.

    Returns
    -------
    InferenceData or DataTree
        Of the same type as `data`. The new group survives ``to_netcdf`` and ``to_zarr``; ArviZ 0.x's own ``to_zarr``
        needs zarr 2.

    Raises
    ------
    TypeError
        If `data` cannot hold groups.
    ValueError
        If no result is given, or two results store different values under one name.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import posterior_consensus as pc
    >>> z = xr.DataArray(np.array([[[0, 0, 1], [1, 1, 0]]]), dims=("chain", "draw", "obs"), name="z")
    >>> tree = xr.DataTree.from_dict({"posterior": z.to_dataset()})
    >>> tree = pc.attach(tree, pc.consensus_partition(tree, random_seed=1))
    >>> tree["consensus"]["labels"].values
    array([0, 0, 1], dtype=int32)
    >>> pc.ConsensusPartition.from_dataset(tree["consensus"]).n_clusters
    2
    """
    if not results:
        raise ValueError("`results` must hold at least one result; got none.")
    for result in results:
        if not hasattr(result, "to_dataset"):
            raise TypeError(f"`results` must have a method to_dataset(); got {type(result).__name__}.")
    if not isinstance(group, str) or not group or "/" in group:
        raise ValueError(f"`group` must be a name without '/'; got {group!r}.")
    datasets = [storable(result.to_dataset()) for result in results]
    try:
        dataset = xr.merge(datasets, join="exact", compat="identical", combine_attrs="drop_conflicts")
    except (xr.MergeError, ValueError) as error:
        raise ValueError(
            f"`results` must agree where they store the same variable; attach them as separate groups. ({error})"
        ) from error
    return with_groups(data, {group: dataset})


def storable(dataset: xr.Dataset) -> xr.Dataset:
    """Turn what not every file format holds into what all do.

    Each MultiIndex becomes coordinates, which `restored_levels` turns back. Other coordinates that are neither text nor
    numbers nor times become text. Attributes that are neither text nor numbers are left out: not all objects have a
    text that says anything, or that a copy of theirs has too.
    """
    several = [str(dim) for dim, index in dataset.indexes.items() if dim in dataset.dims and index.nlevels > 1]
    levels = {f"{_LEVELS}{dim}": as_json(list(dataset.indexes[dim].names)) for dim in several}
    plain = dataset.reset_index(several).assign_attrs(levels)
    odd = {name: coord for name, coord in plain.coords.items() if not _is_plain(coord)}
    plain = plain.assign_coords({name: _as_text(coord) for name, coord in odd.items()})
    for variable in plain.variables.values():
        variable.attrs = {str(name): value for name, value in variable.attrs.items() if _is_plain_attribute(value)}
    return plain


def _is_plain(coord: xr.DataArray) -> bool:
    dtype: Any = coord.dtype
    if not isinstance(dtype, np.dtype):  # of pandas
        return False
    if dtype.kind == "O":
        return {type(value) for value in coord.values.flat} in ({str}, {int}, {float})
    return dtype.kind in set("biufMmSU")


def _as_text(coord: xr.DataArray) -> xr.Variable:
    return xr.Variable(coord.dims, np.reshape([str(value) for value in coord.values.flat], coord.shape), coord.attrs)


def _is_plain_attribute(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    plain = (str, int, float, np.integer, np.floating)
    return all(isinstance(one, plain) and not isinstance(one, bool) for one in (value if several else [value]))


def restored_levels(dataset: xr.Dataset) -> xr.Dataset:
    """Make each MultiIndex again that `storable` took apart."""
    names = [str(name) for name in dataset.attrs if str(name).startswith(_LEVELS)]
    levels = {name.removeprefix(_LEVELS): from_json(dataset.attrs[name]) for name in names}
    restored = dataset.set_index(levels)
    restored.attrs = {name: value for name, value in dataset.attrs.items() if name not in names}
    return restored


def with_groups(data: Container, groups: Mapping[str, xr.Dataset]) -> Container:
    """Return a posterior with groups added or replaced; `data` is not changed, and its arrays are not copied."""
    if isinstance(data, xr.DataTree):
        tree = data.copy(deep=False)
        for name, dataset in groups.items():
            tree[name] = xr.DataTree(dataset)
        return tree
    if is_inference_data(data):
        source: Any = data
        kept: dict[str, xr.Dataset] = {name: source[name] for name in source.groups()}
        return source.__class__(attrs=source.attrs, **kept | dict(groups))
    raise TypeError(
        f"`data` must be an InferenceData or a DataTree; got {type(data).__name__}. Use the result's to_dataset()."
    )


def listing(names: Iterable[Hashable]) -> str:
    """Names for a message."""
    return ", ".join(repr(str(name)) for name in names) or "none"
