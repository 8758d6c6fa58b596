"""How the fields of a result are stored, as they declare in their metadata.

``radius: float = field(metadata=stored_as.number("ball_radius"))`` says that the radius is a variable of that name.
A field without such metadata is not stored. A field that is None is not stored either, and comes back as None.
"""

import dataclasses
import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import xarray as xr

from posterior_consensus.losses.lookup import loss_attrs, loss_from
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.plain import as_json, names_as_coordinate, names_from_json
from posterior_consensus.results.work import Info

_KEY = "stored"  # of a field's metadata


@dataclass
class Parts:
    """What is to be stored: variables and attributes, and an array over the items that the user named."""

    variables: dict[str, Any] = dataclasses.field(default_factory=dict)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    items: xr.DataArray | None = None


class Form(NamedTuple):
    """How a value is stored, and where.

    Attributes
    ----------
    write : callable
        ``write(value, record, parts)`` adds a value of a record to what is to be stored.
    read : callable
        ``read(dataset, name)`` makes the value again of the field of that name, or raises KeyError.
    """

    write: Callable[[Any, Any, Parts], None]
    read: Callable[[xr.Dataset, str], Any]


Declared = Mapping[str, Form]  # metadata of a field


def declared(write: Callable[[Any, Any, Parts], None], read: Callable[[xr.Dataset, str], Any]) -> Declared:
    """Anything, by functions that write and read it as a :class:`Form` does."""
    return {_KEY: Form(write, read)}


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
    renamed, own_variables, words = rename or {}, apart or {}, in_words or {}

    def write(value: xr.DataArray, record: Any, parts: Parts) -> None:
        names = {old: new for old, new in renamed.items() if old in value.dims or old in value.coords}
        kept = value.drop_vars([*own_variables, *words], errors="ignore").rename(names)
        parts.variables[variable] = kept
        for coordinate, own in own_variables.items():
            dims = [names.get(str(dim), dim) for dim in value[coordinate].dims]
            parts.variables[own] = (dims, value[coordinate].values)
        for dim, attr in words.items():
            if dim in value.dims:
                parts.attrs[attr] = as_json(value[dim].values.tolist())
        if of_items:
            parts.items = kept.isel(dict.fromkeys(kept.dims[:-1], 0), drop=True)

    def read(dataset: xr.Dataset, field: str) -> xr.DataArray:
        found = dataset[variable]
        back = {new: old for old, new in renamed.items() if new in found.dims or new in found.coords}
        found = found.drop_vars([*back.values(), *without], errors="ignore").rename(back)
        coords: dict[str, Any] = {}
        for coordinate, own in own_variables.items():
            stored = dataset[own]
            coords[coordinate] = ([back.get(str(dim), dim) for dim in stored.dims], stored.values)
        for dim, attr in words.items():
            if dim in found.dims:
                coords[dim] = names_as_coordinate(names_from_json(dataset.attrs[attr]))
        return found.assign_coords(coords).rename(field if name == "" else name)

    return {_KEY: Form(write, read)}


def table(variables: str | Mapping[str, str], columns: Iterable[str] = (), *args: Any, **options: Any) -> Declared:
    """A Dataset: the variable of each column, or a pattern for all of them, and else what :func:`array` takes."""
    named = {name: variables.format(name) for name in columns} if isinstance(variables, str) else variables
    forms = {name: array(variable, *args, **options)[_KEY] for name, variable in named.items()}

    def write(value: xr.Dataset, record: Any, parts: Parts) -> None:
        for name, form in forms.items():
            form.write(value[name], record, parts)

    def read(dataset: xr.Dataset, field: str) -> xr.Dataset:
        return xr.Dataset({name: form.read(dataset, name) for name, form in forms.items()})

    return {_KEY: Form(write, read)}


def _variable(name: str, to_plain: Callable[[Any, Any], Any], from_plain: Callable[[xr.DataArray], Any]) -> Declared:
    def write(value: Any, record: Any, parts: Parts) -> None:
        parts.variables[name] = to_plain(value, record)

    return {_KEY: Form(write, lambda dataset, field: from_plain(dataset[name]))}


def number(variable: str, *, measured: bool = False) -> Declared:
    """A number that is a variable, perhaps one measured in the unit of the record's loss."""

    def with_unit(value: float, record: Any) -> Any:
        own = record.loss if measured else None
        return (), value, {} if own is None else {"loss": own.name, "unit": own.unit}

    return _variable(variable, with_unit, lambda found: found.values.item())


def values(variable: str, dim: str) -> Declared:
    """An ndarray of one dimension."""
    return _variable(variable, lambda value, record: ((dim,), value), lambda found: found.values)


def by_number(variable: str, dim: str) -> Declared:
    """A dict of numbers by integers."""
    return _variable(
        variable,
        lambda value, record: xr.DataArray(list(value.values()), {dim: list(value)}, dim),
        lambda found: dict(zip(found[dim].values.tolist(), found.values.tolist(), strict=True)),
    )


def _attribute(name: str, to_plain: Callable[[Any], Any], from_plain: Callable[[Any], Any]) -> Declared:
    def write(value: Any, record: Any, parts: Parts) -> None:
        parts.attrs[name] = to_plain(value)

    return {_KEY: Form(write, lambda dataset, field: from_plain(dataset.attrs[name]))}


def attribute(name: str) -> Declared:
    """A number or text that is an attribute."""
    return _attribute(name, lambda value: value, lambda value: getattr(value, "item", lambda: value)())


def flag(name: str) -> Declared:
    """A bool."""
    return _attribute(name, int, bool)


def names(name: str) -> Declared:
    """A tuple of names or numbers."""
    return _attribute(name, as_json, names_from_json)


def in_json(name: str) -> Declared:
    """Anything that JSON holds."""
    return _attribute(name, as_json, json.loads)


def work(name: str) -> Declared:
    """A record of work."""
    return _attribute(name, Info.to_json, Info.from_json)


def loss(prefix: str = "") -> Declared:
    """A loss, as attributes with a prefix."""

    def write(value: Loss, record: Any, parts: Parts) -> None:
        parts.attrs |= loss_attrs(value, prefix)

    return {_KEY: Form(write, lambda dataset, field: loss_from(dataset.attrs, prefix))}


def record(kind: type, prefix: str = "") -> Declared:
    """A record whose fields declare how they are stored, perhaps under other names to leave room for another one."""

    def write(value: Any, record: Any, parts: Parts) -> None:
        if not prefix:
            write_fields(value, parts)
            return
        own = Parts()
        write_fields(value, own)
        parts.items = own.items if parts.items is None else parts.items
        of_items = () if own.items is None else own.items.dims
        for one, variable in own.variables.items():
            parts.variables[f"{prefix}{one}"] = _apart(variable, prefix, of_items)
        parts.attrs |= {f"{prefix}{one}": attr for one, attr in own.attrs.items()}

    def read(dataset: xr.Dataset, field: str) -> Any:
        if prefix:
            dataset = dataset[[one for one in dataset.data_vars if str(one).startswith(prefix)]]
            own = [one for one in (*dataset.variables, *dataset.dims) if str(one).startswith(prefix)]
            attrs = {str(one): attr for one, attr in dataset.attrs.items() if str(one).startswith(prefix)}
            dataset = dataset.rename({one: str(one).removeprefix(prefix) for one in own})
            dataset.attrs = {one.removeprefix(prefix): attr for one, attr in attrs.items()}
        return kind(**read_fields(kind, dataset))

    return {_KEY: Form(write, read)}


def _apart(variable: Any, prefix: str, of_items: tuple[Hashable, ...]) -> Any:
    """A variable whose dimensions, but for those of the items, have names of their own."""
    if isinstance(variable, xr.DataArray):
        return variable.rename({dim: f"{prefix}{dim}" for dim in variable.dims if dim not in of_items})
    dims, *rest = variable
    return ([dim if dim in of_items else f"{prefix}{dim}" for dim in dims], *rest)
