"""Draws of a graph's free variables, and the graph evaluated at each draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import listing
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.sources.mixtures.model import (
    WAYS_OUT,
    ancestors,
    data_of,
    dims_of,
    length_of_dim,
    python_mode,
)

_COMPILED_FROM = 1_000_000  # values from which numba's ten seconds of compilation pay off
_SAME_MODEL = "Build the model as it was sampled from."


@dataclass(frozen=True)
class ParameterDraws:
    """Draws of some variables of a model, one row per draw."""

    values: list[npt.NDArray[Any]]  # (n_draws, ...): values, in the order of the requested variables
    sample_dims: tuple[str, ...]
    shape: tuple[int, ...]  # lengths of the sample dimensions
    coords: xr.Coordinates  # coordinates of the sample dimensions

    def where(self, row: int) -> str:
        """Chain and draw of a row, in words."""
        at = np.unravel_index(row, self.shape)
        named = zip(self.sample_dims, at, strict=True)
        return ", ".join(f"{dim} {self.coords[dim].values[k] if dim in self.coords else k}" for dim, k in named)

    def distinct(self) -> tuple[Positions, Positions]:
        """First row of each distinct draw, and the number of the distinct draw in every row."""
        n_draws = int(np.prod(self.shape))
        if not self.values:
            return np.zeros(1, np.intp), np.zeros(n_draws, np.intp)
        parts = [np.ascontiguousarray(v.reshape(n_draws, -1)).view(np.uint8) for v in self.values if v.size]
        rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
        _, first, repeats = np.unique(rows.view(f"V{rows.shape[1]}").ravel(), return_index=True, return_inverse=True)
        return first, repeats


def parameter_draws(model: Any, variables: Sequence[Any], dataset: xr.Dataset, group: str) -> ParameterDraws:
    """Read the draws of `variables`, free variables of `model`, from a group of the posterior.

    Raises ValueError if the group has no sample dimensions or draws, or a variable is missing, has another shape or has
    NaN.
    """
    dims = ("chain", "draw") if {"chain", "draw"} <= set(dataset.dims) else ("sample",)
    if not set(dims) <= set(dataset.dims):
        raise ValueError(
            f"`draws` must have the dimensions 'chain' and 'draw', or 'sample'; {group!r} has {listing(dataset.dims)}."
        )
    missing = [variable.name for variable in variables if variable.name not in dataset.data_vars]
    if missing:
        raise ValueError(
            f"`draws` must hold draws of {listing(missing)}, on which the allocation depends; {group!r} has "
            f"{listing(dataset.data_vars)}. Sample again without `var_names`, or make sure that the model is the one "
            f"sampled from. {WAYS_OUT}"
        )
    shape = tuple(dataset.sizes[dim] for dim in dims)
    if not all(shape):
        raise ValueError(f"`draws` must hold at least one draw; got {dict(zip(dims, shape, strict=True))}.")
    coords = dataset.drop_dims([dim for dim in dataset.dims if dim not in dims]).coords
    values = [_values(model, variable, dataset[variable.name], dims) for variable in variables]
    return ParameterDraws(values, dims, shape, coords)


def _values(model: Any, variable: Any, array: xr.DataArray, dims: tuple[str, ...]) -> npt.NDArray[Any]:
    named = dims_of(model, variable.name)
    rest = [dim for dim in array.dims if dim not in dims]
    if named and set(named) == set(rest):
        rest = list(named)
    array = array.transpose(*dims, *rest)
    shape = array.shape[len(dims) :]
    wanted = tuple(length_of_dim(model, dim) for dim in named) if named else variable.type.shape
    fits = len(wanted) == len(shape) and all(w in (None, s) for w, s in zip(wanted, shape, strict=True))
    if not fits:
        raise ValueError(
            f"`draws` must hold draws of the model's variables; {variable.name!r} has shape {shape} in the posterior "
            f"and {wanted} in the model. {_SAME_MODEL}"
        )
    if array.dtype.kind not in "iufb":
        raise ValueError(f"`draws` must hold numbers; {variable.name!r} has dtype {array.dtype}.")
    if array.dtype.kind == "f" and bool(np.isnan(array.values).any()):
        raise ValueError(f"`draws` must not hold NaN; {variable.name!r} does.")
    values = array.values.reshape(-1, *shape)
    return np.ascontiguousarray(values, dtype=variable.type.dtype)


@dataclass(frozen=True)
class Density:
    """Joint log density of data and allocation, a graph of items x components, and its inputs."""

    graph: Any  # graph of `inputs` and constants
    inputs: list[Any]  # inputs that stand for `variables`
    variables: list[Any]  # the free variables needed, in the order of the model
    is_heavy: bool  # whether NumPy would loop over items in Python

    @classmethod
    def of(cls, model: Any, graph: Any, is_heavy: bool, known: Mapping[Any, Any] | None = None) -> Density:
        """Detach a graph from its model: data become constants, free variables inputs, unless `known`."""
        import pytensor.tensor as pt
        from pytensor.graph.replace import clone_replace

        known = known or {}
        near = set(ancestors([graph], [*model.free_RVs, *model.observed_RVs])) - set(known)
        variables = [rv for rv in model.free_RVs if rv in near]
        inputs = [rv.type(name=rv.name) for rv in variables]
        data = {rv: pt.constant(data_of(model, rv)) for rv in model.observed_RVs if rv in near}
        given = {**dict(zip(variables, inputs, strict=True)), **data, **known}
        (free,) = clone_replace([graph], given, rebuild_strict=not known)  # known values may have another length
        return cls(free, inputs, variables, is_heavy)

    def function(self, mode: Any = None) -> Callable[..., Any]:
        """Function of the variables' values, evaluated by NumPy unless a mode is given."""
        import pytensor

        function = pytensor.function(self.inputs, self.graph, mode=mode or python_mode(), on_unused_input="ignore")
        function.trust_input = True
        return function

    def at_speed(self, function: Any, size: int) -> Callable[..., Any]:
        """Return the NumPy function, or a numba function if faster for `size` values."""
        worth_it = size >= _COMPILED_FROM and (self.is_heavy or _loops_in_python(function))
        return self.function("NUMBA") if worth_it else function


def _loops_in_python(function: Any) -> bool:
    """Whether NumPy or SciPy has no function for an elementwise operation."""
    from pytensor.tensor.elemwise import Elemwise

    nodes = [node for node in function.maker.fgraph.apply_nodes if isinstance(node.op, Elemwise)]
    return any(node.op.nfunc_spec is None or node.op.nfunc_spec[1] != len(node.inputs) for node in nodes)


def over_draws(
    density: Density,
    draws: ParameterDraws,
    item_shape: tuple[int, ...] | None,
    progressbar: bool,
) -> tuple[npt.NDArray[np.floating], Floats]:
    """Probabilities (n_draws, *items, components) and log densities (n_draws, *items), from the joint log densities.

    These are computed once per distinct draw. Raises ValueError if the densities of a draw cannot be computed, are 0
    for all components, or are not one per item. Raises MemoryError if the result does not fit.
    """
    n_draws = int(np.prod(draws.shape))
    first, repeats = draws.distinct()
    order = np.argsort(repeats, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(repeats))[:-1])
    function = density.function()
    joint = _joint(function, draws, first[0], item_shape)
    if item_shape is not None and joint.shape[:-1] != item_shape:
        raise ValueError(per_item(item_shape))
    result = np.empty((n_draws, *joint.shape), dtype_that_fits((n_draws, *joint.shape)))
    log_density = np.empty(result.shape[:-1])
    function = density.at_speed(function, len(first) * joint.size)
    # Threads would only wait for each other on thousands of small linear systems.
    with one_blas_thread(with_sklearn=False):
        for number, row in enumerate(track(first, "Allocation probabilities", progressbar=progressbar)):
            result[rows[number]], log_density[rows[number]] = _normalized_in_draw(
                _joint(function, draws, row, None), draws, row
            )
    return result, log_density


def _joint(
    function: Callable[..., Any], draws: ParameterDraws, row: int, item_shape: tuple[int, ...] | None
) -> npt.NDArray[np.floating]:
    try:
        with np.errstate(all="ignore"):
            return function(*[values[row] for values in draws.values])
    except Exception as error:
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        advice = _SAME_MODEL if item_shape is None else per_item(item_shape)
        raise ValueError(
            f"The density of the mixture cannot be computed at {draws.where(row)}: {cause.rstrip(' .')}. {advice}"
        ) from error


def per_item(got: tuple[Any, ...]) -> str:
    """Next step if new observations do not fit parameters that have a value for each item."""
    return (
        f"`observed` must go with the parameters, of which the model has a value for each item; got shape {got}. Put "
        "the covariates of the new items into the model first, with pm.set_data."
    )


def _normalized_in_draw(
    joint: npt.NDArray[np.floating], draws: ParameterDraws, row: int
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """Probabilities (*items, components) of a draw, and the log densities (*items,) that normalize them."""
    largest = joint.max(axis=-1, keepdims=True)
    if not np.all(np.isfinite(largest)):
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(largest[..., 0]))[0])
        item = at[0] if len(at) == 1 else at
        raise ValueError(
            f"The density of item {item} must be positive and finite for a component; its logarithm is "
            f"{largest[at][0]} at {draws.where(row)}. {_SAME_MODEL}"
        )
    probabilities = np.exp(joint - largest)
    total = probabilities.sum(axis=-1, keepdims=True)
    probabilities /= total
    return probabilities, (largest + np.log(total))[..., 0]


def dtype_that_fits(shape: tuple[int, ...]) -> type[np.floating]:
    """Double precision if two copies fit in memory, else single precision.

    Raises MemoryError if neither fits.
    """
    count = 2 * float(np.prod([float(length) for length in shape]))
    for dtype in (np.float64, np.float32):
        if memory.fits(count * np.dtype(dtype).itemsize):
            break
    memory.check(
        count * np.dtype(dtype).itemsize,
        f"Two copies of {' x '.join(str(length) for length in shape)} probabilities (draws x items x components)",
        "Thin the draws, e.g. idata.sel(draw=slice(None, None, 10)).",
    )
    return dtype
