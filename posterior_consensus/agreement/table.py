"""Input of contingency tables: a sparse array of shares, with names of rows and columns."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse

from posterior_consensus.ensemble.items import Items


@dataclass(frozen=True, eq=False)
class Table:
    """A contingency table.

    Attributes
    ----------
    shares : scipy.sparse.csr_array of shape (n_rows, n_columns)
        The table divided by its sum, without rows and columns of zeros.
    rows, columns : Items
        All rows and columns, with the user's coordinates.
    full_rows, full_columns : ndarray of int
        Positions of the rows and columns with a positive sum.
    """

    shares: sparse.csr_array
    rows: Items
    columns: Items
    full_rows: npt.NDArray[np.intp]
    full_columns: npt.NDArray[np.intp]


def as_table(table: Any) -> Table:
    """Convert counts or other amounts to a table.

    Raises
    ------
    ValueError
        If it does not have two dimensions, an entry is negative, missing or infinite, or all entries are 0.
    TypeError
        If it does not hold numbers.
    """
    values, rows, columns = _with_names(table)
    if values.ndim != 2:
        raise ValueError(f"`table` must have rows and columns; got shape {values.shape}.")
    try:
        values = sparse.csr_array(values).astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"`table` must hold numbers; got {type(table).__name__} of {values.dtype}.") from None
    values.sum_duplicates()
    if not np.all(np.isfinite(values.data)) or np.any(values.data < 0):
        wrong = values.data[~(np.isfinite(values.data) & (values.data >= 0))][0]
        raise ValueError(f"`table` must hold finite numbers from 0; got {wrong}.")
    values.eliminate_zeros()
    if values.nnz == 0:
        raise ValueError("`table` must hold at least one number above 0; got none.")
    largest = float(values.data.max())  # the sum of large numbers may be infinite
    values.data /= largest
    values.data /= values.data.sum()
    full_rows, full_columns = (np.flatnonzero(values.sum(axis=axis) > 0) for axis in (1, 0))
    shares = sparse.csr_array(values[full_rows][:, full_columns])
    rows = rows or Items(values.shape[0], "row", xr.Coordinates())
    columns = columns or Items(values.shape[1], "column", xr.Coordinates())
    return Table(shares, rows, columns, full_rows, full_columns)


def _with_names(table: Any) -> tuple[Any, Items | None, Items | None]:
    """Values, and rows and columns if they have names."""
    if isinstance(table, xr.DataArray) and table.ndim == 2:
        rows, columns = (Items.along(table, str(dim)) for dim in table.dims)
        return table.values, rows, columns
    if isinstance(table, pd.DataFrame):
        row, column = str(table.index.name or "row"), str(table.columns.name or "column")
        column = f"{column}_bis" if column == row else column
        is_sparse = table.shape[1] > 0 and all(isinstance(kind, pd.SparseDtype) for kind in table.dtypes)
        values: Any = cast(Any, table).sparse.to_coo() if is_sparse else table.to_numpy()
        return values, _named(row, table.index), _named(column, table.columns)
    return table if sparse.issparse(table) else np.asarray(table), None, None


def _named(dim: str, index: pd.Index) -> Items:
    coords = {} if isinstance(index, pd.RangeIndex) else {dim: index.to_numpy()}
    return Items(len(index), dim, xr.Coordinates(coords))
