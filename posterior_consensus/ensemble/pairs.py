"""How often every two items are together: what draws, allocation probabilities and a similarity matrix all tell."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus import display
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.partitions import as_array
from posterior_consensus.sources.variables import positions

Need = Literal["pairs", "draws"]
"""What a method or a loss asks for: similarities of pairs, or posterior draws."""

_TOLERANCE = 1e-6  # of a matrix's entries: what float32, sums in another order and short text files leave


class PairSource(Items):
    """Whatever tells the posterior similarity of every two items.

    Attributes
    ----------
    n_draws : int or None
        Number of posterior draws; None where it is not known.
    labels_are_sure : bool
        Whether there are draws of labels, of which a similarity is a share.
    """

    labels_are_sure: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_draws(self) -> int | None:
        """Number of posterior draws; None where there are none."""

    @property
    def is_counted(self) -> bool:
        """Whether a similarity is a number of draws, divided by that of all."""
        return False

    @property
    @abstractmethod
    def most_clusters(self) -> int:
        """Largest number of clusters that a partition drawn from the posterior can be said to have."""

    @abstractmethod
    def similarity(self) -> Floats:
        """Return the posterior similarity matrix (n, n) as an array of the caller's own."""

    def without_zero_weights(self) -> Self:
        """Return the same posterior without draws of weight 0."""
        return self

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """Canonical labels (at most `most`, n) of different draws; none where there are no draws."""
        return np.empty((0, self.n_items), np.int32)

    @abstractmethod
    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""

    @abstractmethod
    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix with `columns` (n, c)."""

    @abstractmethod
    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of every item's similarities to the other members of each cluster, and what to divide them by."""

    @abstractmethod
    def signatures(self) -> npt.NDArray[np.intp]:
        """Number of each item's signature (n,): items of the same one are always together."""


@dataclass(frozen=True, eq=False, repr=False)
class PairSimilarity(PairSource):
    """A posterior similarity matrix without the draws it comes from; made by :func:`as_pair_similarity`.

    Attributes
    ----------
    values : ndarray of shape (n_items, n_items), dtype float64
        Posterior probability that two items are in the same cluster: symmetric, in [0, 1], 1 on the diagonal.
    item_dim : str
        Name of the items' dimension.
    item_coords : xarray.Coordinates
        The items' coordinates as the user had them.
    """

    values: Floats
    item_dim: str
    item_coords: xr.Coordinates

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.values)

    @property
    def n_draws(self) -> None:
        """None: a matrix does not tell of how many draws it is the mean."""
        return None

    @property
    def most_clusters(self) -> int:
        """Number of items, as a matrix tells nothing of the numbers of clusters."""
        return self.n_items

    def similarity(self) -> Floats:
        """Return a copy of the matrix."""
        return self.values.copy()

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        return self.values[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the matrix with `columns` (n, c)."""
        product: Floats = self.values @ columns
        return product

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of every item's similarities to the other members of each cluster, and 1."""
        sums = self.values @ np.eye(labels.max() + 1)[labels]
        sums[np.arange(labels.size), labels] -= 1.0
        return sums, 1.0

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number of each item's row among those that differ: with the unit diagonal, equal rows are of similarity 1."""
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in self.values])

    def _facts(self) -> list[tuple[str, str]]:
        above = self.values[np.triu_indices(self.n_items, 1)]
        shares = (
            f"mean {above.mean():.3g}, of 0 {np.mean(above == 0):.0%}, of 1 {np.mean(above == 1):.0%}"
            if above.size
            else "none"
        )
        return [
            ("items", f"{self.n_items} ({self.item_dim})"),
            ("pairs", shares),
            ("draws", "none: a similarity matrix alone"),
            ("values", f"{self.values.dtype}, {self.values.nbytes / 1e6:.1f} MB"),
        ]

    def __repr__(self) -> str:
        return display.as_text(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return display.as_html(type(self).__name__, self._facts())


def needs_draws(what: str) -> ValueError:
    """Make the error for a similarity matrix where draws are needed."""
    return ValueError(
        f"{what} needs posterior draws; got a similarity matrix alone, which tells how often two items are together "
        "and nothing of whole partitions. Give the draws that it was made from."
    )


def as_pair_similarity(matrix: Any, *, item_dim: str | None = None) -> PairSimilarity:
    """Take a posterior similarity matrix where the draws are not at hand.

    Parameters
    ----------
    matrix : array_like, DataFrame, DataArray, SciPy sparse array, PartitionDraws or PairSimilarity
        Posterior probability that two items are in the same cluster, items x items: symmetric, in [0, 1] and 1 on the
        diagonal, each up to 1e-6. A sparse array has zeros where it has no entries. Of draws, their similarities are
        taken.
    item_dim : str, optional
        Name of the items' dimension. By default that of the DataArray's first dimension or of the DataFrame's index,
        else "item".

    Returns
    -------
    PairSimilarity
        With the items' names of a DataFrame's index or a DataArray's coordinates. Every function takes it that needs
        similarities only; the others say that they need draws.

    Raises
    ------
    ValueError
        If the matrix is not square, not symmetric, not finite, not in [0, 1] or not 1 on the diagonal, or its rows and
        columns name different items.
    TypeError
        If the values are not real numbers.

    Notes
    -----
    Rounding up to 1e-6 is mended: values are clipped to [0, 1], the mean of the matrix and its transpose is taken and
    the diagonal is set to 1. A matrix without rounding passes unchanged.

    From the similarities alone follow Binder's expected loss with any costs, its lower bound and certificate, the two
    losses of `PAIR_LOSSES`, and how surely an item is with its cluster. Standard errors, the credible ball, diagnoses
    and the expectation of any other loss need the draws.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pairs = pc.as_pair_similarity([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
    >>> best = pc.consensus_partition(pairs, "binder", random_seed=1, progressbar=False)
    >>> best.labels.values
    array([0, 0, 1], dtype=int32)
    """
    if isinstance(matrix, PairSource):
        if item_dim not in (None, matrix.item_dim):
            raise ValueError(f"`item_dim` must be None or {matrix.item_dim!r}, as the items have it; got {item_dim!r}.")
        if isinstance(matrix, PairSimilarity):
            return matrix
        return PairSimilarity(matrix.similarity(), matrix.item_dim, matrix.item_coords)
    items = _named(matrix, item_dim)
    return PairSimilarity(
        _checked(items.values),
        str(items.dims[0]),
        items.coords.to_dataset()
        .drop_vars([name for name, coord in items.coords.items() if coord.dims != items.dims[:1]])
        .coords,
    )


def _named(matrix: Any, item_dim: str | None) -> xr.DataArray:
    """The matrix with its columns in the order of its rows, whose names it keeps."""
    if isinstance(matrix, pd.DataFrame):
        name = str(item_dim or matrix.index.name or "item")
        array = xr.DataArray(matrix.to_numpy(), dims=(name, f"{name}_bis"))
        for dim, names in zip(array.dims, (matrix.index, matrix.columns), strict=True):
            if not isinstance(names, pd.RangeIndex) and names.nlevels == 1:
                array = array.assign_coords({dim: names.to_numpy()})
    elif isinstance(matrix, xr.DataArray):
        array = matrix
    else:
        values = matrix.toarray() if hasattr(matrix, "toarray") else as_array(matrix, "`matrix`")
        array = xr.DataArray(values, dims=("item", "item_bis")[: values.ndim] if values.ndim < 3 else None)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(
            f"`matrix` must be square, items x items, with at least one item; got shape {array.shape}. "
            "Draws x items are for as_partition_draws."
        )
    rows, columns = array.dims
    if rows in array.indexes and columns in array.indexes:
        order = positions(array.indexes[rows], array.indexes[columns])
        if order is None:
            raise ValueError(
                f"`matrix` must have the same items in rows and columns; the names of {rows!r} and {columns!r} differ."
            )
        array = array.isel({columns: order})
    return array if item_dim is None else array.rename({rows: item_dim})


def _checked(values: npt.NDArray[Any]) -> Floats:
    """The values as similarities, rounding mended; an array of its own."""
    if values.dtype.kind not in "buif":
        raise TypeError(f"`matrix` must hold real numbers; got {values.dtype}.")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)]
        raise ValueError(
            f"`matrix` must be finite; got {wrong.size} values such as {wrong[0]}. Drop the items that they belong to."
        )
    low, high = values.min(), values.max()
    if low < -_TOLERANCE or high > 1 + _TOLERANCE:
        raise ValueError(
            f"`matrix` must have values in [0, 1]; got {low:.6g} to {high:.6g}. "
            "Divide counts by the number of draws; take 1 minus distances."
        )
    diagonal = np.diagonal(values)
    if np.any(diagonal < 1 - _TOLERANCE):
        raise ValueError(
            f"`matrix` must be 1 on the diagonal, as an item is always with itself; got {diagonal.min():.6g}. "
            "Fill it with numpy.fill_diagonal(matrix, 1) if it was left out."
        )
    difference = np.abs(values - values.T).max()
    if difference > _TOLERANCE:
        raise ValueError(
            f"`matrix` must be symmetric; entries differ from their mirror images by up to {difference:.6g}. "
            "Add the transpose to one triangle if the other was left out."
        )
    values = (values + values.T) / 2
    np.clip(values, 0.0, 1.0, out=values)
    np.fill_diagonal(values, 1.0)
    return values
