"""Names and coordinates of items and components, from the model or the new observations."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.sources.locations import listing
from posterior_consensus.sources.mixtures.posterior import ParameterDraws


def new_values(core: Any, observed: Any) -> Any:
    """New data of a mixture from `observed`, a dict by name.

    Raises
    ------
    TypeError
        If it is not a dict.
    ValueError
        If it contains other names.
    """
    if not isinstance(observed, Mapping):
        raise TypeError(f"`observed` must be a dict, {{{core.name!r}: new values}}; got {type(observed).__name__}.")
    if set(observed) != {core.name}:
        raise ValueError(f"`observed` must have new values of {core.name!r} and no other; got {listing(observed)}.")
    return observed[core.name]


def as_data(core: Any, observed: Any) -> npt.NDArray[Any]:
    """Check new data of a mixture and convert them to its dtype.

    Raises
    ------
    ValueError
        If the number of dimensions differs from the mixture's, or items are absent or missing.
    TypeError
        If they are not numeric.
    """
    try:
        values = np.asarray(observed)
    except ValueError as error:
        raise ValueError(f"`observed` must be an array of new observations; {error}.") from error
    if values.dtype.kind not in "iufb":
        raise TypeError(f"`observed` must be an array of numbers; got {type(observed).__name__} of {values.dtype}.")
    if values.ndim != core.type.ndim or values.size == 0:
        raise ValueError(
            f"`observed` must have {core.type.ndim} dimensions, as {core.name!r} has, and at least one item; got shape "
            f"{values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`observed` must be finite; got NaN or infinity.")
    converted = values.astype(core.type.dtype)
    if np.any(converted != values) and core.type.dtype.startswith("int"):
        raise ValueError(
            f"`observed` must be integers, as {core.name!r} is discrete; got {values[converted != values][0]!s}."
        )
    return converted


def with_names(
    model: Any,
    probabilities: npt.NDArray[np.floating],
    draws: ParameterDraws,
    name: str,
    named: tuple[str, ...],
    components: str | None,
    observed: Any = None,
) -> xr.DataArray:
    """Build a DataArray of probabilities (n_draws, *items, components), with sample dimensions and names.

    Parameters
    ----------
    name : str
        Name of the mixture or label.
    named : tuple of str
        The model's dimensions of that variable, if any.
    components : str, optional
        Dimension of the components, by default ``"component"``.
    observed : DataArray or array_like, optional
        New observations, if these are the items.
    """
    batch, component = probabilities.ndim - 2, components or "component"
    items = [named[k] if k < len(named) else f"{name}_dim_{k}" for k in range(batch)]
    given: dict[str, Any] = {}
    if isinstance(observed, xr.DataArray):
        items = [str(dim) for dim in observed.dims[:batch]]
        given = {str(k): v for k, v in observed.coords.items() if set(v.dims) <= set(items) and v.dims}
    array = xr.DataArray(
        probabilities.reshape(*draws.shape, *probabilities.shape[1:]),
        dims=(*draws.sample_dims, *items, component),
        coords=draws.coords,
        name=name,
    )
    for dim in (*(items if observed is None else ()), component):
        values = model.coords.get(dim)
        if values is not None and len(values) == array.sizes[dim]:
            given[dim] = (dim, np.asarray(values))
    array = array.assign_coords(given)
    if batch == 0:
        array = array.expand_dims({f"{name}_dim_0": 1}, axis=-2)
    if batch > 1:
        array = array.stack(item=items).transpose(*draws.sample_dims, "item", component)
    return array
