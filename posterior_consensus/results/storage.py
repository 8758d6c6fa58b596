"""Storage of results as their fields declare, and restoration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, Self

import xarray as xr

from posterior_consensus.results import display
from posterior_consensus.results.latex import Tabled
from posterior_consensus.results.plain import restored_levels, storable
from posterior_consensus.results.stored_as import Form, Parts, read_fields, write_fields


class HasDataset(Protocol):
    """A result that can be stored."""

    def to_dataset(self) -> xr.Dataset:
        """Convert to a Dataset."""
        ...


class HasDataTree(Protocol):
    """Several results that can be stored."""

    def to_datatree(self) -> xr.DataTree:
        """Convert to a DataTree, with a group for each result."""
        ...


class Stored(display.Shown, Tabled):
    """A result that can be stored and restored: a dataclass whose fields declare how they are stored."""

    _also_stored: ClassVar[Mapping[str, Mapping[str, Form]]] = {}
    """Properties that are stored for readers of the file; they follow from the fields."""

    def to_dataset(self) -> xr.Dataset:
        """Convert to a Dataset that any file format stores, without draws.

        Returns
        -------
        xarray.Dataset
            The result, which :meth:`from_dataset` restores.
        """
        return as_dataset(self)

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree) -> Self:
        """Restore a result from its Dataset.

        Parameters
        ----------
        dataset : xarray.Dataset or xarray.DataTree
            As returned by :meth:`to_dataset`, or read from a file. It may contain other results, like the group written
            by :func:`attach`.

        Returns
        -------
        result of this class
            Equal to the stored result, without draws. Names and coordinates that are neither text nor numbers nor times
            become text. Attributes of coordinates that are neither text nor numbers are lost.

        Raises
        ------
        ValueError
            If there is no such result, or its loss is not in LOSSES.
        TypeError
            If `dataset` is neither a Dataset nor a DataTree.
        """
        with reading(dataset, cls.__name__) as read:
            return cls(**read_fields(cls, read))


def as_dataset(record: Any) -> xr.Dataset:
    """Convert a record to a Dataset as its fields declare."""
    parts = Parts()
    write_fields(record, parts)
    return stored(parts.items, parts.variables, parts.attrs)


@contextmanager
def reading(data: Any, result: str) -> Iterator[xr.Dataset]:
    """Load the group of a stored result; raise ValueError if parts of the result are missing."""
    if not isinstance(data, (xr.Dataset, xr.DataTree)):
        raise TypeError(
            f"`dataset` must be a Dataset or a group of a DataTree; got {type(data).__name__}. "
            "For a posterior with results from attach(), take the group, idata['consensus']."
        )
    dataset = (data.to_dataset() if isinstance(data, xr.DataTree) else data).compute()
    try:
        yield restored_levels(dataset)
    except KeyError:
        present = ", ".join(repr(str(variable)) for variable in dataset.data_vars) or "none"
        raise ValueError(
            f"`dataset` must hold a {result} as its to_dataset() returns it; present: {present}."
        ) from None


def stored(
    items: xr.DataArray | None, variables: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
) -> xr.Dataset:
    """Put a result's variables into a Dataset; raise ValueError if a name conflicts with the user's `items`."""
    theirs = set() if items is None else {str(own) for own in (*items.dims, *items.coords)}
    for variable, value in variables.items():
        added = {variable}
        if isinstance(value, xr.DataArray) and items is not None:
            over_items = all(value.sizes.get(dim) == size for dim, size in items.sizes.items())
            added |= {str(dim) for dim in value.dims if not (over_items and dim in items.dims)}
        taken = sorted(added & theirs)
        if taken:
            raise ValueError(
                f"The draws must not have a dimension or coordinate {taken[0]!r}: a result is stored there."
            )
    return storable(xr.Dataset(variables, attrs=attrs))
