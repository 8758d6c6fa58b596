"""How the fields of a result are stored, as they declare in their metadata.

``radius: float = field(metadata=stored_as.number("ball_radius"))`` says that the radius is a variable of that name.
A field without such metadata is not stored. A field that is None is not stored either, and comes back as None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import xarray as xr

from posterior_consensus.losses.lookup import loss_attrs, loss_from
from posterior_consensus.results.plain import as_json, from_json, names_from_json
from posterior_consensus.results.work import Info

_KEY = "stored"  # of a field's metadata


@dataclass
class Parts:
    """What is to be stored: variables and attributes, and an array over the items that the user named."""

    variables: dict[str, Any] = dataclasses.field(default_factory=dict)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    items: xr.DataArray | None = None


class Form(Protocol):
    """How a value is stored, and where."""

    def write(self, value: Any, record: Any, parts: Parts) -> None:
        """Add a value of a record to what is to be stored."""
        ...

    def read(self, dataset: xr.Dataset, name: str) -> Any:
        """Make the value again of the field of that name, or raise KeyError."""
        ...


Declared = Mapping[str, Form]  # metadata of a field


def write_fields(record: Any, parts: Parts) -> None:
    """Add the declared fields of a record, and the properties in its `_also_stored`, to what is to be stored."""
    declared = {field.name: field.metadata for field in dataclasses.fields(record) if _KEY in field.metadata}
    for name, metadata in (declared | dict(getattr(record, "_also_stored", {}))).items():
        value = getattr(record, name)
        if value is not None:
            metadata[_KEY].write(value, record, parts)


def read_fields(kind: type, dataset: xr.Dataset) -> dict[str, Any]:
    """Read the declared fields of a record; of those that may be None, the missing ones are.

    Raises
    ------
    KeyError
        If nothing of the record is there.
    ValueError
        If a part of it is.
    """
    found: dict[str, Any] = {}
    without: list[str] = []
    missing: list[str] = []
    for field in (one for one in dataclasses.fields(kind) if _KEY in one.metadata):
        try:
            found[field.name] = field.metadata[_KEY].read(dataset, field.name)
        except KeyError:
            (without if "None" in str(field.type) else missing).append(field.name)
    if missing and found:
        raise ValueError(
            f"`dataset` must hold a {kind.__name__} as its to_dataset() gives it; missing: {', '.join(missing)}."
        )
    if missing:
        raise KeyError(kind.__name__)
    return found | dict.fromkeys(without)


@dataclass(frozen=True)
class _Array:
    variable: str
    rename: Mapping[str, str]
    name: str | None
    apart: Mapping[str, str]
    in_words: Mapping[str, str]
    without: tuple[str, ...]
    of_items: bool

    def write(self, value: xr.DataArray, record: Any, parts: Parts) -> None:
        names = {old: new for old, new in self.rename.items() if old in value.dims or old in value.coords}
        kept = value.drop_vars([*self.apart, *self.in_words], errors="ignore").rename(names)
        parts.variables[self.variable] = kept
        for coordinate, variable in self.apart.items():
            dims = [names.get(str(dim), dim) for dim in value[coordinate].dims]
            parts.variables[variable] = (dims, value[coordinate].values)
        for dim, name in self.in_words.items():
            if dim in value.dims:
                parts.attrs[name] = as_json(value[dim].values.tolist())
        if self.of_items:
            parts.items = kept.isel(dict.fromkeys(kept.dims[:-1], 0), drop=True)

    def read(self, dataset: xr.Dataset, name: str) -> xr.DataArray:
        found = dataset[self.variable]
        back = {new: old for old, new in self.rename.items() if new in found.dims or new in found.coords}
        found = found.drop_vars([*back.values(), *self.without], errors="ignore").rename(back)
        coords: dict[str, Any] = {}
        for coordinate, variable in self.apart.items():
            stored = dataset[variable]
            coords[coordinate] = ([back.get(str(dim), dim) for dim in stored.dims], stored.values)
        for dim, attr in self.in_words.items():
            if dim in found.dims:
                coords[dim] = list(names_from_json(dataset.attrs[attr]))
        return found.assign_coords(coords).rename(name if self.name == "" else self.name)


def array(
    variable: str,
    rename: Mapping[str, str] | None = None,
    *,
    name: str | None = "",
    apart: Mapping[str, str] | None = None,
    in_words: Mapping[str, str] | None = None,
    without: tuple[str, ...] = (),
    of_items: bool = False,
) -> Declared:
    """A DataArray.

    Parameters
    ----------
    variable : str
        Name of the variable.
    rename : mapping, optional
        Other names for dimensions and coordinates, because several results can share a group.
    name : str or None
        Name of the array that comes back, by default that of the field.
    apart : mapping, optional
        Coordinates that are stored as variables of these names.
    in_words : mapping, optional
        Dimensions whose coordinates are stored as attributes of these names, because they can be of any kind.
    without : tuple of str
        Coordinates that another result of the group may have for the same dimensions.
    of_items : bool
        Whether its last dimension is that of the items.
    """
    return {_KEY: _Array(variable, rename or {}, name, apart or {}, in_words or {}, without, of_items)}


@dataclass(frozen=True)
class _Table:
    columns: Mapping[str, Form]

    def write(self, value: xr.Dataset, record: Any, parts: Parts) -> None:
        for name, column in self.columns.items():
            column.write(value[name], record, parts)

    def read(self, dataset: xr.Dataset, name: str) -> xr.Dataset:
        return xr.Dataset({name: column.read(dataset, name) for name, column in self.columns.items()})


def table(variables: str | Mapping[str, str], columns: Iterable[str] = (), *args: Any, **options: Any) -> Declared:
    """A Dataset: the variable of each column, or a pattern for all of them, and else what :func:`array` takes."""
    named = {name: variables.format(name) for name in columns} if isinstance(variables, str) else variables
    return {_KEY: _Table({name: array(variable, *args, **options)[_KEY] for name, variable in named.items()})}


@dataclass(frozen=True)
class _Values:
    variable: str
    dims: tuple[str, ...] = ()
    measured: bool = False

    def write(self, value: Any, record: Any, parts: Parts) -> None:
        measured = self.measured and record.loss is not None
        attrs = {"loss": record.loss.name, "unit": record.loss.unit} if measured else {}
        parts.variables[self.variable] = (self.dims, value, attrs)

    def read(self, dataset: xr.Dataset, name: str) -> Any:
        found = dataset[self.variable].values
        return found if self.dims else found.item()


def number(variable: str, *, measured: bool = False) -> Declared:
    """A number that is a variable, perhaps one measured in the unit of the record's loss."""
    return {_KEY: _Values(variable, measured=measured)}


def values(variable: str, dim: str) -> Declared:
    """An ndarray of one dimension."""
    return {_KEY: _Values(variable, (dim,))}


@dataclass(frozen=True)
class _ByNumber:
    variable: str
    dim: str

    def write(self, value: Mapping[int, float], record: Any, parts: Parts) -> None:
        parts.variables[self.variable] = xr.DataArray(list(value.values()), {self.dim: list(value)}, self.dim)

    def read(self, dataset: xr.Dataset, name: str) -> dict[int, float]:
        found = dataset[self.variable]
        return dict(zip(found[self.dim].values.tolist(), found.values.tolist(), strict=True))


def by_number(variable: str, dim: str) -> Declared:
    """A dict of numbers by integers."""
    return {_KEY: _ByNumber(variable, dim)}


@dataclass(frozen=True)
class _Attribute:
    name: str
    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any], Any]

    def write(self, value: Any, record: Any, parts: Parts) -> None:
        parts.attrs[self.name] = self.to_plain(value)

    def read(self, dataset: xr.Dataset, name: str) -> Any:
        return self.from_plain(dataset.attrs[self.name])


def attribute(name: str) -> Declared:
    """A number or text that is an attribute."""
    return {_KEY: _Attribute(name, lambda value: value, lambda value: getattr(value, "item", lambda: value)())}


def flag(name: str) -> Declared:
    """A bool."""
    return {_KEY: _Attribute(name, int, bool)}


def names(name: str) -> Declared:
    """A tuple of names or numbers."""
    return {_KEY: _Attribute(name, as_json, names_from_json)}


def in_json(name: str) -> Declared:
    """Anything that JSON holds."""
    return {_KEY: _Attribute(name, as_json, from_json)}


def work(name: str) -> Declared:
    """A record of work."""
    return {_KEY: _Attribute(name, Info.to_json, Info.from_json)}


@dataclass(frozen=True)
class _Loss:
    prefix: str

    def write(self, value: Any, record: Any, parts: Parts) -> None:
        parts.attrs |= loss_attrs(value, self.prefix)

    def read(self, dataset: xr.Dataset, name: str) -> Any:
        return loss_from(dataset.attrs, self.prefix)


def loss(prefix: str = "") -> Declared:
    """A loss, as attributes with a prefix."""
    return {_KEY: _Loss(prefix)}


@dataclass(frozen=True)
class _Record:
    kind: type
    prefix: str

    def write(self, value: Any, record: Any, parts: Parts) -> None:
        if not self.prefix:
            write_fields(value, parts)
            return
        own = Parts()
        write_fields(value, own)
        of_items = () if own.items is None else own.items.dims
        for one, variable in own.variables.items():
            parts.variables[f"{self.prefix}{one}"] = self._apart(variable, of_items)
        parts.attrs |= {f"{self.prefix}{one}": attr for one, attr in own.attrs.items()}

    def _apart(self, variable: Any, of_items: tuple[Hashable, ...]) -> Any:
        """A variable whose dimensions, but for those of the items, have names of their own."""
        if isinstance(variable, xr.DataArray):
            return variable.rename({dim: f"{self.prefix}{dim}" for dim in variable.dims if dim not in of_items})
        if isinstance(variable, tuple):
            dims, *rest = variable
            return ([dim if dim in of_items else f"{self.prefix}{dim}" for dim in dims], *rest)
        return variable

    def read(self, dataset: xr.Dataset, name: str) -> Any:
        if self.prefix:
            own = [one for one in dataset.data_vars if str(one).startswith(self.prefix)]
            attrs = {str(one): attr for one, attr in dataset.attrs.items() if str(one).startswith(self.prefix)}
            dataset = dataset[own].rename({one: str(one).removeprefix(self.prefix) for one in own})
            dataset.attrs = {one.removeprefix(self.prefix): attr for one, attr in attrs.items()}
        return self.kind(**read_fields(self.kind, dataset))


def record(kind: type, prefix: str = "") -> Declared:
    """A record whose fields declare how they are stored, perhaps under other names to leave room for another one."""
    return {_KEY: _Record(kind, prefix)}
