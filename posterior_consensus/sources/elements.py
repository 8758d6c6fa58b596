"""Table columns that are elements of variables: ``z[1]``, ``z[2]``; ``p[1,1]``, ``p[1,2]``; Stan's ``p.1.1``."""

import math
import re
from collections.abc import Hashable, Iterable
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

Elements = dict[int, tuple[int, ...]]  # indices of the elements, by the position of the column

_BRACKETS = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")
_DOTS = re.compile(r"(.+?)\.(\d+(?:\.\d+)*)")
_TWO_DOTS = re.compile(r"(.+?)\.(\d+(?:\.\d+)+)")
_OF_STAN = "__"  # ends Stan's own columns lp__, stepsize__, ...


def elements_of(columns: Iterable[Hashable]) -> dict[str, Elements]:
    """Find the variables whose elements are columns."""
    return _families(columns, _BRACKETS)


def with_brackets(table: pd.DataFrame, var_name: str | None = None, *, by_stan: bool = False) -> pd.DataFrame:
    """Rename Stan's ``p.1.2`` to ``p[1,2]``.

    Names with dots are elements only if Stan wrote them, `var_name` names them, or they fill a matrix of floats, since
    items may be named ``control.1`` and ``treated.1``.
    """
    by_stan = by_stan or any(str(column).endswith(_OF_STAN) for column in table.columns)
    dots = _DOTS if by_stan or var_name is not None else _TWO_DOTS
    names = {
        position: f"{name}[{','.join(map(str, at))}]"
        for name, elements in _families(table.columns, dots).items()
        if by_stan or name == var_name or (_axes(elements) and all(_is_float(table.iloc[:, k]) for k in elements))
        for position, at in elements.items()
    }
    return table.set_axis([names.get(k, column) for k, column in enumerate(table.columns)], axis=1) if names else table


def _families(columns: Iterable[Hashable], element: re.Pattern[str]) -> dict[str, Elements]:
    families: dict[str, Elements] = {}
    for position, column in enumerate(columns):
        match = element.fullmatch(str(column))
        if match:
            families.setdefault(match[1], {})[position] = tuple(map(int, re.findall(r"\d+", match[2])))
    return families


def variables_in(draws: pd.DataFrame, var_name: str | None = None) -> xr.Dataset:
    """Arrange the columns of each variable as an array, draws first.

    Parameters
    ----------
    draws : DataFrame
        Table with the index levels "chain" and "draw".
    var_name : str, optional
        The only variable to read.

    Returns
    -------
    Dataset
        Variables over "sample" and one dimension per index of their elements. A matrix of integers is labels of items
        with two indices, so it has one dimension of items. Empty if the columns are items.
    """
    families = elements_of(draws.columns)
    coords = {level: ("sample", draws.index.get_level_values(level)) for level in ("chain", "draw")}
    kept = families if var_name is None else {var_name: families[var_name]}
    variables = {name: _variable(name, draws.iloc[:, list(elements)], elements) for name, elements in kept.items()}
    if var_name is not None and variables[var_name].ndim == 2 and _is_float(draws.iloc[:, next(iter(kept[var_name]))]):
        _check_full(var_name, kept[var_name])
    return xr.Dataset(variables, coords)


def _variable(name: str, columns: pd.DataFrame, elements: Elements) -> xr.DataArray:
    axes, values = _axes(elements), columns.to_numpy()
    if axes and values.dtype.kind in "iuf":
        matrix = values[:, np.lexsort(np.array(list(elements.values())).T[::-1])].reshape(-1, *map(len, axes))
        if not _are_labels(matrix):
            dims = [f"{name}_dim_{axis}" for axis in range(len(axes))]
            return xr.DataArray(matrix.astype(np.float64, copy=False), {dims[0]: axes[0]}, ("sample", *dims))
    single = all(len(at) == 1 for at in elements.values())  # z[38] names item 38, like p[38,1]
    items = [at[0] for at in elements.values()] if single else columns.columns.to_numpy()
    return xr.DataArray(values, {f"{name}_dim_0": items}, ("sample", f"{name}_dim_0"))


def _axes(elements: Elements) -> list[list[int]]:
    """Indices along each axis of the matrix that the elements fill; none if they do not fill a matrix."""
    n_indices = {len(at) for at in elements.values()}
    if n_indices == {1} or len(n_indices) > 1:
        return []
    axes = [sorted(set(along)) for along in zip(*elements.values(), strict=True)]
    is_full = math.prod(map(len, axes)) == len(elements) == len(set(elements.values()))
    return axes if is_full else []


def _check_full(name: str, elements: Elements) -> None:
    """Raise an error if columns of items and components are incomplete."""
    there = set(elements.values())
    missing = [at for at in product(*map(sorted, map(set, zip(*there, strict=True)))) if at not in there]
    if missing:
        raise ValueError(
            f"`data` must have a column for each item and component of {name!r}; "
            f"'{name}[{','.join(map(str, missing[0]))}]' is missing."
        )


def _is_float(column: pd.Series) -> bool:
    return bool(column.dtype.kind == "f")


def _are_labels(matrix: npt.NDArray[np.number]) -> bool:
    """Whether all values are integers, and not only probabilities 0 and 1."""
    is_whole = matrix.dtype.kind in "iu" or bool(np.all(matrix == np.floor(matrix)))
    return is_whole and not bool(np.all(matrix.sum(axis=-1) == 1))
