"""Storage of results: declarations in the metadata of fields, Datasets made from them, and values that files hold.

``radius: float = field(metadata=stored_as.number("ball_radius"))`` stores the radius as the variable of this name. A
field without such metadata is not stored. A field that is None is not stored and is restored as None; words
are stored only if they are those of runs.

A result's own dimensions, coordinates and variables keep their names unless the items have a dimension or coordinate of
the same name. `own_name` then prefixes the result's own, in an array over the items and in a stored group.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.losses.lookup import loss_attrs, loss_from
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display
from posterior_consensus.results.sentences import Sentence
from posterior_consensus.results.words import DRAWS, RUNS, Words
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.arguments import is_number

_LEVELS = "levels_of_"  # attribute for each dimension of several levels
_KEY = "stored"  # in the metadata of a field
_NESTED = "stored"  # in a dict that `attach` wrote
_OWN = "result_"  # before a result's own name that the items also have


def own_name(name: str, theirs: Container[Hashable]) -> str:
    """Name of a result's own dimension, coordinate or variable next to the user's names of the items."""
    while name in theirs or f"{_OWN}{name}" in theirs:
        name = f"{_OWN}{name}"
    return name


def own_name_in(array: xr.DataArray | xr.Dataset, name: str) -> str:
    """Name that a result's own dimension, coordinate or variable has in an array or group, see :func:`own_name`."""
    present = {*array.dims, *array.coords, *(array.data_vars if isinstance(array, xr.Dataset) else ())}
    while f"{_OWN}{name}" in present:
        name = f"{_OWN}{name}"
    return name


def own_in(array: Any, name: str) -> xr.DataArray:
    """A result's own coordinate or variable, see :func:`own_name`."""
    return array[own_name_in(array, name)]


def _under_names(array: xr.DataArray, names: Mapping[str, str]) -> xr.DataArray:
    """Rename a result's own dimensions and coordinates, where there are some of these names."""
    own = {own_name_in(array, old): new for old, new in names.items()}
    theirs = {*array.dims, *array.coords} - set(own)
    present = {old: new for old, new in own.items() if old in array.dims or old in array.coords}
    return array.rename({old: own_name(new, theirs) for old, new in present.items()})


def as_json(value: Any) -> str:
    """Encode plain and NumPy values as JSON text for an attribute."""
    return json.dumps(value, default=lambda other: other.tolist() if hasattr(other, "tolist") else str(other))


def names_from_json(text: str) -> tuple[Hashable, ...]:
    """Decode names of clusters or chains from the JSON text of an attribute."""
    return tuple(tuple(name) if isinstance(name, list) else name for name in json.loads(text))


def names_as_coordinate(names: Sequence[Hashable]) -> Any:
    """Names as a coordinate: a list if they have one type, else an array of objects."""
    if len({type(name) for name in names}) == 1 and not isinstance(names[0], tuple):
        return list(names)
    each = np.empty(len(names), object)
    each[:] = names
    return each


def storable(dataset: xr.Dataset) -> xr.Dataset:
    """Convert a Dataset to values that every file format stores.

    Each MultiIndex becomes coordinates, which `restored_levels` reverts. Other coordinates that are neither text nor
    numbers nor times become text. Attributes that are neither text nor numbers are dropped, because the text of an
    arbitrary object need not be meaningful or reproducible.
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
    if not isinstance(dtype, np.dtype):  # a pandas extension type
        return False
    if dtype.kind == "O":
        return {type(value) for value in coord.values.flat} in ({str}, {int}, {float})
    return dtype.kind in set("biufMmSU")


def _as_text(coord: xr.DataArray) -> xr.Variable:
    return xr.Variable(coord.dims, np.reshape([str(value) for value in coord.values.flat], coord.shape), coord.attrs)


def _is_plain_attribute(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return all(isinstance(one, str) or is_number(one) for one in (value if several else [value]))


def restored_levels(dataset: xr.Dataset) -> xr.Dataset:
    """Restore each MultiIndex that `storable` converted to coordinates."""
    names = [str(name) for name in dataset.attrs if str(name).startswith(_LEVELS)]
    levels = {name.removeprefix(_LEVELS): json.loads(dataset.attrs[name]) for name in names}
    restored = dataset.set_index(levels)
    restored.attrs = {name: value for name, value in dataset.attrs.items() if name not in names}
    return restored


def as_nested(results: xr.Dataset | xr.DataTree) -> dict[str, Any]:
    """Stored results as nested dicts of arrays and text, as an h5ad file holds them; `as_stored` reverts it."""
    return {_NESTED: _nested(results)}


def as_stored(data: Any) -> Any:
    """Results of a dict that `attach` wrote as a Dataset or a DataTree; other data as they are."""
    is_dict = isinstance(data, Mapping) and not isinstance(data, (xr.Dataset, xr.DataTree))
    return _of_nested(data[_NESTED]) if is_dict and _NESTED in data else data


def _nested(results: xr.Dataset | xr.DataTree) -> dict[str, Any]:
    """A Dataset, or a node and those below it; names are quoted, as a slash would divide them."""
    node, groups = results, {}
    if isinstance(results, xr.DataTree):
        node, groups = results.to_dataset(inherit=False), dict(results.children)
    about = {
        str(name): {"dims": one.dims, "dtype": one.dtype.str, "is_coord": name in node.coords, "attrs": one.attrs}
        for name, one in node.variables.items()
    }
    return {
        "about": as_json({"variables": about, "attrs": node.attrs}),
        "arrays": {_quoted(name): _of_plain_type(one.values) for name, one in node.variables.items()},
        "groups": {_quoted(name): _nested(group) for name, group in groups.items()},
    }


def _quoted(name: Hashable) -> str:
    return quote(str(name), safe=" ")


def _of_plain_type(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Times as integers, and objects other than text, which have one type, as an array of it."""
    if values.dtype.kind in "mM":
        return values.astype(np.int64)
    is_text = values.dtype != object or all(isinstance(value, str) for value in values.flat)
    return values if is_text else np.array(values.tolist())


def _of_nested(nested: Mapping[str, Any]) -> xr.Dataset | xr.DataTree:
    about = json.loads(nested["about"])
    variables = {
        name: xr.Variable(one["dims"], np.asarray(nested["arrays"][_quoted(name)]).astype(one["dtype"]), one["attrs"])
        for name, one in about["variables"].items()
    }
    coords = {name: one for name, one in variables.items() if about["variables"][name]["is_coord"]}
    data = {name: one for name, one in variables.items() if name not in coords}
    node = xr.Dataset(data, coords, about["attrs"])
    groups = {unquote(name): _of_nested(group) for name, group in nested["groups"].items()}
    return xr.DataTree.from_dict({"/": node, **groups}) if groups else node


@dataclass
class DatasetParts:
    """Variables and attributes of a stored result, and an array over the items with the user's coordinates."""

    variables: dict[str, Any] = dataclasses.field(default_factory=dict)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    items: xr.DataArray | None = None


@dataclass(frozen=True)
class Group:
    """A stored result: those variables and attributes of a Dataset whose names begin with a prefix."""

    dataset: xr.Dataset
    prefix: str = ""

    def __getitem__(self, name: str) -> xr.DataArray:
        """Variable of this name, with the dimensions and coordinates of a record."""
        present = {*self.dataset.variables, *self.dataset.dims}
        found = self.dataset.data_vars[own_name_in(self.dataset, self.prefix + name)]
        back: dict[Hashable, str] = {}
        for own in {*found.dims, *found.coords}:
            plain = str(own).removeprefix(_OWN)
            if plain != own and plain in present and plain not in found.dims and plain not in found.coords:
                back[own] = re.sub(f"^({_OWN})+", "", plain)
        found = found.rename(back)
        rest = [other for one, other in self.dataset.variables.items() if not str(one).startswith(self.prefix)]
        of_items = {dim for other in rest for dim in other.dims}
        return found.rename({dim: str(dim).removeprefix(self.prefix) for dim in found.dims if dim not in of_items})

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the result."""
        attrs = {str(name): value for name, value in self.dataset.attrs.items()}
        return {name.removeprefix(self.prefix): value for name, value in attrs.items() if name.startswith(self.prefix)}


class Form(NamedTuple):
    """Functions that store and restore a value."""

    # ``write(value, record, parts)`` adds a value of a record to the parts.
    write: Callable[[Any, Any, DatasetParts], None]
    # ``read(group, name)`` restores the value of the field of this name, or raises KeyError.
    read: Callable[[Group, str], Any]


Declared = Mapping[str, Form]  # the metadata of a field


def declared(write: Callable[[Any, Any, DatasetParts], None], read: Callable[[Group, str], Any]) -> Declared:
    """Declare a value with its own functions, see :class:`Form`."""
    return {_KEY: Form(write, read)}


def write_fields(record: Any, parts: DatasetParts) -> None:
    """Add the declared fields of a record, and the properties in `_also_stored`, to the parts."""
    by_field = {field.name: field.metadata for field in dataclasses.fields(record) if _KEY in field.metadata}
    for name, metadata in (by_field | dict(getattr(record, "_also_stored", {}))).items():
        value = getattr(record, name)
        if value is not None:
            metadata[_KEY].write(value, record, parts)
    if isinstance(record, InWords) and record.words is RUNS:
        parts.attrs[record._of_runs] = 1


def read_fields(kind: type, group: Group) -> dict[str, Any]:
    """Read the declared fields of a record; a missing field is None if its type allows None.

    Raises
    ------
    KeyError
        If no field is stored.
    ValueError
        If only a part of the fields is stored.
    """
    present: dict[str, Any] = {}
    absent: dict[str, Any] = {}
    missing: list[str] = []
    for field in (one for one in dataclasses.fields(kind) if _KEY in one.metadata):
        try:
            present[field.name] = field.metadata[_KEY].read(group, field.name)
        except KeyError:
            if "None" in str(field.type):
                absent[field.name] = None
            else:
                missing.append(field.name)
    if missing and present:
        raise ValueError(
            f"`dataset` must hold a {kind.__name__} as its to_dataset() returns it; missing: {', '.join(missing)}."
        )
    if missing:
        raise KeyError(kind.__name__)
    if issubclass(kind, InWords) and group.attrs.get(kind._of_runs):
        absent["words"] = RUNS
    return present | absent


def array(
    variable: str,
    rename: Mapping[str, str] | None = None,
    *,
    name: str | None = "",
    apart: Mapping[str, str] | None = None,
    in_words: Mapping[Any, str] | None = None,
    without: tuple[str, ...] = (),
    of_items: bool = False,
) -> Declared:
    """Declare a DataArray.

    Parameters
    ----------
    variable : str
        Name of the variable.
    rename : mapping, optional
        Stored names of dimensions and coordinates, because several results can share a group.
    name : str or None
        Name of the restored array, by default the name of the field.
    apart : mapping, optional
        Coordinates stored as separate variables of these names.
    in_words : mapping, optional
        Coordinates stored as attributes of these names, because they can have any type: those of dimensions, or others
        as (coordinate, dimension).
    without : tuple of str
        Coordinates to drop, because another result of the group may have them for the same dimensions.
    of_items : bool
        Whether the last dimension is the dimension of the items.
    """
    renamed, own_variables = rename or {}, apart or {}
    words = [(*((name, name) if isinstance(name, str) else name), attr) for name, attr in (in_words or {}).items()]

    def write(value: xr.DataArray, record: Any, parts: DatasetParts) -> None:
        separate = {own_name_in(value, coordinate): own for coordinate, own in own_variables.items()}
        spoken = [(own_name_in(value, name), own_name_in(value, dim), attr) for name, dim, attr in words]
        kept = value.drop_vars([*separate, *(name for name, _, _ in spoken)], errors="ignore")
        stored_dims = dict(zip(value.dims, _under_names(kept, renamed).dims, strict=True))
        parts.variables[variable] = _under_names(kept, renamed)
        for coordinate, own in separate.items():
            parts.variables[own] = ([stored_dims[dim] for dim in value[coordinate].dims], value[coordinate].values)
        for coordinate, dim, attr in spoken:
            if dim in value.dims:
                parts.attrs[attr] = as_json(value[coordinate].values.tolist())
        if of_items:
            kept = parts.variables[variable]
            parts.items = kept.isel(dict.fromkeys(kept.dims[:-1], 0), drop=True)

    def read(group: Group, field: str) -> xr.DataArray:
        stored = group[variable]
        stored = stored.drop_vars([own_name_in(stored, name) for name in without], errors="ignore")
        kept = _under_names(stored, {new: old for old, new in renamed.items()})
        dims = dict(zip(stored.dims, kept.dims, strict=True))
        coords: dict[str, Any] = {}
        for coordinate, own in own_variables.items():
            values = group[own]
            (dim,) = values.dims
            coords[coordinate] = dims[own_name_in(stored, str(dim))], values.values
        for coordinate, dim, attr in words:
            if (own := own_name_in(kept, dim)) in kept.dims:
                coords[coordinate] = own, names_as_coordinate(names_from_json(group.attrs[attr]))
        theirs = {*kept.dims, *kept.coords}
        named = {own_name(name, theirs - {coord[0]}): coord for name, coord in coords.items()}
        return kept.assign_coords(named).rename(field if name == "" else name)

    return {_KEY: Form(write, read)}


def table(variables: str | Mapping[str, str], columns: Iterable[str] = (), *args: Any, **options: Any) -> Declared:
    """Declare a Dataset: the variable of each column or a pattern for all, and further arguments of :func:`array`."""
    named = {name: variables.format(name) for name in columns} if isinstance(variables, str) else variables
    forms = {name: array(variable, *args, **options)[_KEY] for name, variable in named.items()}

    def write(value: xr.Dataset, record: Any, parts: DatasetParts) -> None:
        for name, form in forms.items():
            form.write(value[own_name_in(value, name)], record, parts)

    def read(group: Group, field: str) -> xr.Dataset:
        columns = {name: form.read(group, name) for name, form in forms.items()}
        return xr.Dataset({own_name(name, {*one.dims, *one.coords}): one for name, one in columns.items()})

    return {_KEY: Form(write, read)}


def _variable(name: str, to_plain: Callable[[Any, Any], Any], from_plain: Callable[[xr.DataArray], Any]) -> Declared:
    def write(value: Any, record: Any, parts: DatasetParts) -> None:
        parts.variables[name] = to_plain(value, record)

    return {_KEY: Form(write, lambda group, field: from_plain(group[name]))}


def number(variable: str, *, measured: bool = False) -> Declared:
    """Declare a number as a variable, with `measured` in the unit of the record's loss."""

    def with_unit(value: float, record: Any) -> Any:
        own = record.loss if measured else None
        return (), value, {} if own is None else {"loss": own.name, "unit": own.unit}

    return _variable(variable, with_unit, lambda array: array.values.item())


def values(variable: str, dim: str) -> Declared:
    """Declare an ndarray of one dimension."""
    return _variable(variable, lambda value, record: ((dim,), value), lambda array: array.values)


def by_number(variable: str, dim: str) -> Declared:
    """Declare a dict of numbers by integers."""
    return _variable(
        variable,
        lambda value, record: xr.DataArray(list(value.values()), {dim: list(value)}, dim),
        lambda array: dict(zip(array[dim].values.tolist(), array.values.tolist(), strict=True)),
    )


def _attribute(name: str, to_plain: Callable[[Any], Any], from_plain: Callable[[Any], Any]) -> Declared:
    def write(value: Any, record: Any, parts: DatasetParts) -> None:
        parts.attrs[name] = to_plain(value)

    return {_KEY: Form(write, lambda group, field: from_plain(group.attrs[name]))}


def attribute(name: str) -> Declared:
    """Declare a number or text as an attribute."""
    return _attribute(name, lambda value: value, lambda value: getattr(value, "item", lambda: value)())


def flag(name: str) -> Declared:
    """Declare a bool."""
    return _attribute(name, int, bool)


def names(name: str) -> Declared:
    """Declare a tuple of names or numbers."""
    return _attribute(name, as_json, names_from_json)


def sentences(name: str) -> Declared:
    """Declare the sentences of a verdict."""
    return _attribute(name, as_json, lambda text: tuple(Sentence(*one) for one in json.loads(text)))


def in_json(name: str) -> Declared:
    """Declare a value that JSON can represent."""
    return _attribute(name, as_json, json.loads)


def work(name: str) -> Declared:
    """Declare a record of work."""
    return _attribute(name, Info.to_json, Info.from_json)


def loss(prefix: str = "") -> Declared:
    """Declare a loss, stored as attributes with a prefix."""

    def write(value: Loss, record: Any, parts: DatasetParts) -> None:
        parts.attrs |= loss_attrs(value, prefix)

    return {_KEY: Form(write, lambda group, field: loss_from(group.attrs, prefix))}


def record(kind: type, prefix: str = "") -> Declared:
    """Declare a record whose fields declare their storage; a prefix distinguishes several records."""

    def write(value: Any, record: Any, parts: DatasetParts) -> None:
        if not prefix:
            write_fields(value, parts)
            return
        own = DatasetParts()
        write_fields(value, own)
        parts.items = own.items if parts.items is None else parts.items
        of_items = () if own.items is None else own.items.dims
        for one, variable in own.variables.items():
            parts.variables[f"{prefix}{one}"] = _apart(variable, prefix, of_items)
        parts.attrs |= {f"{prefix}{one}": attr for one, attr in own.attrs.items()}

    def read(group: Group, field: str) -> Any:
        return kind(**read_fields(kind, replace(group, prefix=group.prefix + prefix)))

    return {_KEY: Form(write, read)}


def _apart(variable: Any, prefix: str, of_items: tuple[Hashable, ...]) -> Any:
    """Add the prefix to the names of a variable's dimensions, except the dimension of the items."""
    if isinstance(variable, xr.DataArray):
        return variable.rename({dim: f"{prefix}{dim}" for dim in variable.dims if dim not in of_items})
    dims, *rest = variable
    return ([dim if dim in of_items else f"{prefix}{dim}" for dim in dims], *rest)


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


class Stored(display.Shown, display.Tabled):
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
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree | Mapping[str, Any]) -> Self:
        """Restore a result from its Dataset.

        Parameters
        ----------
        dataset : xarray.Dataset, xarray.DataTree or dict
            As returned by :meth:`to_dataset`, or read from a file. It may contain other results, like the group written
            by :func:`attach`, or its dict in ``uns`` of an AnnData.

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
            If `dataset` is neither a Dataset nor a DataTree nor a dict of :func:`attach`.
        """
        with reading(dataset, cls.__name__) as read:
            return cls(**read_fields(cls, read))


@dataclass(frozen=True, eq=False, repr=False)
class InWords(Stored):
    """A stored result of draws of chains, or of independent runs, whose words it is displayed with.

    Attributes
    ----------
    words : Words
        What draws and chains are called: those of chains, or independent runs of programs.
    """

    words: Words = dataclasses.field(default=DRAWS, kw_only=True)
    _of_runs: ClassVar[str]
    """Attribute that marks a stored result of independent runs."""


def as_dataset(record: Any) -> xr.Dataset:
    """Convert a record to a Dataset as its fields declare."""
    parts = DatasetParts()
    write_fields(record, parts)
    return stored(parts.items, parts.variables, parts.attrs)


@contextmanager
def reading(data: Any, result: str) -> Iterator[Group]:
    """Load the group of a stored result; raise ValueError if parts of the result are missing."""
    data = as_stored(data)
    if not isinstance(data, (xr.Dataset, xr.DataTree)):
        raise TypeError(
            f"`dataset` must be a Dataset or a group of a DataTree; got {type(data).__name__}. With results from "
            "attach(), take the group of a posterior, idata['consensus'], or the dict of an AnnData, "
            "adata.uns['consensus']."
        )
    dataset = (data.to_dataset() if isinstance(data, xr.DataTree) else data).compute()
    try:
        yield Group(restored_levels(dataset))
    except KeyError:
        present = ", ".join(repr(str(variable)) for variable in dataset.data_vars) or "none"
        raise ValueError(
            f"`dataset` must hold a {result} as its to_dataset() returns it; present: {present}."
        ) from None


def stored(
    items: xr.DataArray | None, variables: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
) -> xr.Dataset:
    """Put a result's variables into a Dataset, its own names next to those of the user's `items`."""
    theirs = set() if items is None else {*items.dims, *items.coords}
    own: dict[str, Any] = {}
    for variable, value in variables.items():
        if not isinstance(value, xr.DataArray):
            dims, *rest = value
            value = ([own_name(dim, theirs) for dim in dims], *rest)
        elif items is not None and not _is_over(items, value):
            named = {one: own_name(str(one), theirs) for one in {*value.dims, *value.coords}}
            value = value.rename({one: name for one, name in named.items() if name != one})
        own[own_name(variable, theirs)] = value
    return storable(xr.Dataset(own, attrs=attrs))


def _is_over(items: xr.DataArray, value: xr.DataArray) -> bool:
    """Whether a variable is over the items, not only over a dimension of the same name."""
    own, theirs = value.coords.variables, items.coords.variables
    others = [coord for name, coord in own.items() if name not in theirs]
    return (
        all(value.sizes.get(dim) == size for dim, size in items.sizes.items())
        and all(name in own and own[name].equals(coord) for name, coord in theirs.items())
        and not any({*other.dims} <= {*coord.dims} for other in others for coord in theirs.values())
    )
