"""Variables of a posterior: which can be labels or probabilities; draws first, then items, then components."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.partitions import similarity_hint
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.cluster import client_for
from posterior_consensus.sources.arrays import ONE_PARTITION, is_whole, sums_to_one
from posterior_consensus.sources.transposed import warn_if_transposed

_SOFT_NAMES = re.compile(r"lp_|lps$|log_?(p|prob|theta|resp|lik|weight)|resp|gamma_z|p_z|prob_z", re.IGNORECASE)


def labels_in_order(
    labels: xr.DataArray, dims: tuple[str, ...], item_dim: str | None, *, stay: bool = False
) -> tuple[xr.DataArray, tuple[str, ...], str]:
    """Read labels, and order their dimensions: draws, then items; return them with the names of both.

    Large labels, or all if `stay`, remain unread.
    """
    if stay or is_elsewhere(labels) or client_of(labels) is not None:
        for coord in labels.coords.values():
            coord.load()
    else:
        labels = _in_memory(labels)
    labels, dims, (item,) = _orient(labels, dims, (item_dim,))
    return labels, dims, item


def probabilities_in_order(
    values: xr.DataArray, dims: tuple[str, ...], rest: tuple[str | None, str | None], has_names: bool
) -> tuple[xr.DataArray, tuple[str, ...], tuple[str, str]]:
    """Read probabilities, and order their dimensions; return them with the names of draws, and of items and components.

    If neither is named, components run along the dimension over which values sum to one, else the last dimension.
    """
    values = _in_memory(values)
    if values.dtype.kind != "f":
        name = repr(values.name) if values.name is not None else "`data`"
        raise TypeError(
            f"Allocation probabilities must be floats; {name} holds {values.dtype}. If these are labels of several "
            "partitions in each draw, take them by as_layers(data, var_name, layer_dim=...)."
        )
    values, dims, (item, component) = _orient(values, dims, rest)
    if sums_to_one(values, item) and not sums_to_one(values, component):
        if rest != (None, None):
            raise ValueError(
                f"`component_dim` must be the dimension over which probabilities sum to one; got {component!r}, and "
                f"they do over {item!r}. Give `item_dim`={component!r} and `component_dim`={item!r}."
            )
        if has_names:
            item, component = component, item
        else:
            values = values.rename({item: component, component: item})
    values = values.transpose(*dims, item, component)
    if not (values.coords or has_names):
        warn_if_transposed(values.values.argmax(axis=-1), values.shape, "put the draws first, items next")
    return values, dims, (item, component)


def is_elsewhere(variable: xr.DataArray) -> bool:
    """Whether a variable is in a file or dask, and large enough to be read in blocks."""
    return not variable.variable._in_memory and not memory.fits(variable.nbytes / memory.SHARE_HELD)


def client_of(variable: xr.DataArray) -> Any:
    """The dask client whose workers process a variable; None if it is read in this process."""
    return None if variable.chunks is None else client_for(variable.size)


def _in_memory(variable: xr.DataArray) -> xr.DataArray:
    """Read a variable with its coordinates; like ``.values``, this loads the user's variable if opened from a file."""
    return variable.copy(deep=False, data=variable.values).load()


def no_labels(dataset: xr.Dataset, dims: tuple[str, ...], item_dim: str | None) -> ValueError:
    """Error for a posterior without a label variable."""
    return ValueError(
        f"`data` has no label variable (integers over `sample_dims` {dims} and one dimension more"
        f"{'' if item_dim is None else f', `item_dim` {item_dim!r}'}); present: {_shapes(dataset)}."
        f"{hint_at_dims(dataset.data_vars.values(), dims, (item_dim,))} A marginalized mixture has none: with PyMC, "
        "use allocation_probabilities(model, idata) or summarize(idata, model=model); with NumPyro, sample labels by "
        "Predictive(..., infer_discrete=True). If labels are in another group, name it by `group`, such as "
        "'posterior_predictive'. Else store the logarithms of the allocation probabilities, as a "
        "Deterministic or a generated quantity, and take them by as_allocation_probabilities(idata). Name "
        "unnormalized ones by `var_name`. Labels that depend on each other given the parameters, such as hidden "
        "Markov states, must be sampled."
    )


def no_probabilities(dataset: xr.Dataset, dims: tuple[str, ...]) -> ValueError:
    """Error for a posterior without allocation probabilities."""
    return ValueError(
        f"`data` holds no allocation probabilities, floats over `sample_dims` {dims}, items and components that "
        f"sum to one over the components as they are or as logarithms; present: {_shapes(dataset)}. Name "
        "unnormalized ones by `var_name`."
    )


def hint_at_dims(variables: Iterable[xr.DataArray], dims: tuple[str, ...], rest: tuple[str | None, ...]) -> str:
    """Candidate draw dimensions, from the first variable that has any; else empty."""
    for variable in variables:
        free = [str(dim) for dim in variable.dims if dim not in rest]
        present, n_draws = [dim for dim in dims if dim in free], len(free) - rest.count(None)
        candidates = present if len(present) == n_draws else free[:n_draws]
        if n_draws > 0 and candidates != list(dims) and (len(rest) == 2 or variable.dtype.kind in "iubUSTO"):
            named = repr(candidates[0] if n_draws == 1 else tuple(candidates))
            whose = "its draws" if variable.name is None else f"the draws of {variable.name!r}"
            function = "as_partition_draws" if len(rest) == 1 else "as_allocation_probabilities"
            return f" If {whose} are along {named}, call {function}(data, sample_dims={named})."
    return ""


def label_candidates(dataset: xr.Dataset, dims: tuple[str, ...], item_dim: str | None) -> list[xr.DataArray]:
    """Variables that can be labels; floats, which must be read, only if there is no other candidate."""
    shaped = [v for v in dataset.data_vars.values() if _fits(v, dims, (item_dim,))]
    whole = [v for v in shaped if v.dtype.kind in "iubUSTO"]
    if whole:
        return whole
    floats = _read_where(is_whole, (v for v in shaped if v.dtype.kind == "f"), dims)
    return [v for v in floats if v.size == 0 or is_elsewhere(v) or np.isfinite(v.values).any()]


def _read_where(
    is_it: Callable[[xr.DataArray], bool], variables: Iterable[xr.DataArray], dims: tuple[str, ...]
) -> Iterator[xr.DataArray]:
    """Yield the variables that qualify in every draw. If the first draw fails, no other draw is read.

    Large variables are judged by the first draw.
    """
    for variable in variables:
        if is_it(variable.isel(dict.fromkeys(_sample_dims(variable, dims), slice(1))).compute()):
            values = variable if is_elsewhere(variable) else _in_memory(variable)
            if values is variable or is_it(values):
                yield values


def probability_candidates(
    dataset: xr.Dataset, dims: tuple[str, ...], rest: tuple[str | None, ...] = (None, None)
) -> list[xr.DataArray]:
    """Variables that can be allocation probabilities: of a usual name, or normalized and not parameters.

    Square variables are transition matrices. If a parameter runs over the supposed items, these are components, such as
    topics with their words.
    """
    shaped = [v for v in dataset.data_vars.values() if v.dtype.kind == "f" and v.size and _fits(v, dims, rest)]
    with_parameters = {
        str(other_dims(v, dims)[0])
        for v in dataset.data_vars.values()
        if v.dtype.kind == "f" and _fits(v, dims, (None,))
    }

    def is_normalized(values: xr.DataArray) -> bool:
        one, other = (str(dim) for dim in other_dims(values, dims))
        return values.sizes[one] != values.sizes[other] and any(
            items not in with_parameters and sums_to_one(values, components)
            for items, components in ((one, other), (other, one))
        )

    named = [v for v in shaped if _SOFT_NAMES.match(str(v.name))]
    return named + list(_read_where(is_normalized, (v for v in shaped if not _SOFT_NAMES.match(str(v.name))), dims))


def _sample_dims(variable: xr.DataArray, dims: tuple[str, ...]) -> tuple[str, ...]:
    """The draws' dimensions, which may be stacked as "sample"."""
    return ("sample",) if not set(dims) <= set(variable.dims) and "sample" in variable.dims else dims


def other_dims(variable: xr.DataArray, dims: tuple[str, ...]) -> list[Hashable]:
    """Dimensions besides the draws'."""
    return [dim for dim in variable.dims if dim not in _sample_dims(variable, dims)]


def _fits(variable: xr.DataArray, dims: tuple[str, ...], rest: tuple[str | None, ...]) -> bool:
    """Whether a variable has the draws' dimensions and, besides, as many as `rest`, including those named there."""
    others = other_dims(variable, dims)
    has_draws = set(dims) <= set(variable.dims) or "sample" in variable.dims
    return has_draws and len(others) == len(rest) and {dim for dim in rest if dim is not None} <= set(others)


def _shapes(dataset: xr.Dataset) -> str:
    return ", ".join(f"{k} {v.dims} {v.dtype}" for k, v in dataset.data_vars.items()) or "none"


def _orient(
    values: xr.DataArray, dims: tuple[str, ...], rest: tuple[str | None, ...]
) -> tuple[xr.DataArray, tuple[str, ...], tuple[str, ...]]:
    """Transpose to sample dimensions, then those of `rest`, by name or in order; raise an error if one is missing."""
    if "sample" in values.dims and not set(dims) & set(values.dims):
        dims = ("sample",)
    name = repr(values.name) if values.name is not None else "`data`"
    missing = [dim for dim in dims if dim not in values.dims]
    if missing:
        hint = similarity_hint(values.values) if values.ndim == 2 else ""
        hint = hint or (ONE_PARTITION if values.ndim == 1 else hint_at_dims([values], dims, rest))
        raise ValueError(
            f"`sample_dims` must be dimensions of {name}; got {dims}, present: {tuple(values.dims)}.{hint}"
        )
    others = [str(dim) for dim in values.dims if dim not in dims]
    for argument, dim in zip(("item_dim", "component_dim"), rest, strict=False):
        if dim is not None and dim not in others:
            raise ValueError(
                f"`{argument}` must be a dimension of {name} other than {dims}; got {dim!r}, present: "
                f"{tuple(values.dims)}."
            )
    if len(others) != len(rest):
        if len(rest) == 2:
            raise ValueError(
                f"`data` must have a dimension of items and one of components in addition to {dims}; {name} has "
                f"{tuple(others)}."
            )
        advice = "select or stack the others, e.g. .stack(item=[...])" if others else "a partition needs one"
        raise ValueError(
            f"`data` must have one dimension of items in addition to {dims}; {name} has {tuple(others)}: {advice}."
        )
    free = iter(dim for dim in others if dim not in rest)
    ordered = tuple(next(free) if dim is None else dim for dim in rest)
    return values.transpose(*dims, *ordered), dims, ordered
