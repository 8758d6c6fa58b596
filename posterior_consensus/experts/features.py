"""Features of the items: checked, with names of items, and standardized."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.experts.conversion import as_constraints, as_items
from posterior_consensus.runtime.arguments import as_numbers, check_count
from posterior_consensus.runtime.tolerances import ROUNDING


@dataclass(frozen=True, eq=False)
class Features:
    """Features of items.

    Attributes
    ----------
    items : Items
        The items.
    names : tuple
        Names of the features, or their positions.
    values : float array of shape (n, D)
        The features.
    """

    items: Items
    names: tuple[Any, ...]
    values: Floats

    def standardised(self) -> tuple[Floats, Floats, Floats]:
        """Features with mean 0 and standard deviation 1, with their centre and scale; constant features become 0."""
        centre, scale = self.values.mean(axis=0), self.values.std(axis=0)
        scale = np.where(scale > ROUNDING * np.maximum(1.0, np.abs(centre)), scale, 1.0)
        return (self.values - centre) / scale, centre, scale


def as_features(data: Any) -> Features:
    """Convert an array, a DataFrame with a row for each item, or a DataArray with items first to features.

    Raises
    ------
    ValueError
        If the features are not a table, or some are missing or infinite.
    """
    values = as_numbers("features", data)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or not values.size:
        raise ValueError(f"`features` must be a table of items x features; got shape {values.shape}.")
    if not np.isfinite(values).all():
        wrong = int((~np.isfinite(values)).sum())
        raise ValueError(f"`features` must be finite; got {wrong} missing or infinite values.")
    names: Any = range(values.shape[1])
    if isinstance(data, pd.DataFrame):
        names = data.columns.tolist()
    elif isinstance(data, xr.DataArray) and data.ndim == 2 and data.dims[1] in data.coords:
        names = data.coords[data.dims[1]].values.tolist()
    named = hasattr(data, "dims") or hasattr(data, "index")
    return Features(as_items(data if named else len(values), "features"), tuple(names), values)


def average_votes(
    constraints: Any, features: Any, n_clusters: int
) -> tuple[Items, Floats, npt.NDArray[np.intp], Floats]:
    """Items, their standardized features (n, D), the constrained pairs (P, 2), and their shares of must-links."""
    given = as_features(features)
    if check_count("n_clusters", n_clusters) > given.items.n_items:
        raise ValueError(f"`n_clusters` must be at most the number of items, {given.items.n_items}; got {n_clusters}.")
    checked = as_constraints(constraints, given.items)
    return checked.items, given.standardised()[0], *checked.average_vote()
