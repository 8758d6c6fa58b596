"""Allocation probabilities P(z_i = k | theta_t, y_i) from a model and a posterior without labels."""

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import RandomSeed, listing, warn
from posterior_consensus.sources.containers import group_dataset, has_groups
from posterior_consensus.sources.mixtures.model import (
    ancestors,
    component_dim,
    dependent,
    dims_of,
    find_mixture,
    is_chain,
    joint_log_density,
    takes_a_solver_per_item,
    value_of,
)
from posterior_consensus.sources.mixtures.posterior import (
    Density,
    ParameterDraws,
    dtype_that_fits,
    over_draws,
    parameter_draws,
    per_item,
)
from posterior_consensus.sources.probabilities import draws_of_probabilities
from posterior_consensus.sources.where import Where


def draws_of_model(
    model: Any,
    data: Any,
    where: Where,
    *,
    observed: Any = None,
    random_seed: RandomSeed = None,
    progressbar: bool,
) -> PartitionDraws:
    """Allocation probabilities from a model and its posterior, opened; arguments as in `allocation_probabilities`."""
    check_arguments(model, data)
    dataset = group_dataset(data, where.group)
    probabilities, log_density = _probabilities_of_variable(model, dataset, where, observed, progressbar)
    *dims, item_dim, component_dim = (str(dim) for dim in probabilities.dims)
    draws = draws_of_probabilities(
        probabilities.load(), tuple(dims), (item_dim, component_dim), log=False, random_seed=random_seed
    )
    if observed is None or log_density is None:
        return draws
    return replace(draws, log_density=log_density.reshape(draws.n_draws, draws.n_items))


def check_arguments(model: Any, draws: Any) -> None:
    """Raise an error unless the arguments are a model and a posterior."""
    try:
        import pymc as pm
    except ModuleNotFoundError as error:
        if error.name != "pymc":
            raise
        raise ImportError("Reading a model needs the package pymc: pip install 'posterior-consensus[pymc]'.") from None

    if not isinstance(model, pm.Model):
        hint = " `draws` is the model: exchange the two." if isinstance(draws, pm.Model) else ""
        if isinstance(getattr(getattr(model, "backend", None), "model", None), pm.Model):
            hint = (
                " Give model.backend.model, which Bambi made, of a model with center_predictors=False: else the "
                "posterior has another intercept than the model."
            )
        raise TypeError(f"`model` must be a pymc.Model; got {type(model).__name__}.{hint}")
    if not (isinstance(draws, xr.Dataset) or has_groups(draws)):
        raise TypeError(f"`draws` must be an InferenceData, DataTree, Dataset or path; got {type(draws).__name__}.")


def _probabilities_of_variable(
    model: Any, dataset: xr.Dataset, where: Where, observed: Any, progressbar: bool
) -> tuple[xr.DataArray, Floats | None]:
    """Probabilities over the sample dimensions, items and components, and the log densities (n_draws, *items).

    There are none for marginalized labels.
    """
    from pymc.distributions.shape_utils import change_dist_size

    var_name, labels = where.var_name, marginalized_names(model)
    if labels and (var_name is None or var_name in labels):
        if observed is not None:
            raise ValueError(
                "`observed` must be None for labels that pymc-extras has marginalized; put the new data into the model "
                "with pm.set_data."
            )
        return conditional_probabilities(model, dataset, choice(labels, var_name), where.group, progressbar), None
    core = find_mixture(model, var_name)
    new = None if observed is None else new_values(core, observed)
    value = value_of(model, core, None if new is None else as_data(core, new))
    item_shape = None if new is None else value.type.shape[: core.type.ndim - core.owner.op.ndim_supp]
    try:  # PyMC fixes the number of items in the components
        sized = core if item_shape is None else change_dist_size(core, item_shape)
        joint = joint_log_density(sized, value)
    except (ValueError, TypeError, AssertionError) as error:
        if new is None:
            raise
        raise ValueError(per_item(value.type.shape)) from error
    density = Density.of(model, joint, takes_a_solver_per_item(sized, value))
    draws = parameter_draws(model, density.variables, dataset, where.group)
    result, log_density = over_draws(density, draws, item_shape, progressbar)
    _warn_of_elements(core, result.shape[1:-1])
    items = dims_of(model, core.name)
    components = component_dim(model, core, result.shape[-1], items)
    return with_names(model, result, draws, str(core.name), items, components, new), log_density


def _warn_of_elements(core: Any, shape: tuple[int, ...]) -> None:
    """Warn that each value of a row has its own label, since users may expect to cluster rows."""
    if core.owner.op.ndim_supp == 0 and len(shape) > 1:
        warn(
            f"Each of the {' x '.join(map(str, shape))} values of {str(core.name)!r} has a label of its own, so that "
            f"there are {math.prod(shape)} items. To cluster the {shape[0]} rows, sample a mixture with one label for "
            "each of them: pm.Mixture of multivariate components, such as pm.MvNormal.dist; or sum the log densities "
            "over the features, in a pm.Potential, and store those of each component as a pm.Deterministic "
            "'log_prob_z' for as_allocation_probabilities.",
        )


def marginalized_names(model: Any) -> list[str]:
    """Names of the labels that pymc-extras has marginalized from a model."""
    kinds = {cls.__name__ for rv in model.basic_RVs for cls in type(rv.owner.op).__mro__}
    if "MarginalRV" not in kinds:
        return []
    kept = {rv.name for rv in model.free_RVs}
    return [str(rv.name) for rv in unmarginalized(model).free_RVs if rv.name not in kept]


def conditional_probabilities(
    model: Any, dataset: xr.Dataset, name: str, group: str, progressbar: bool
) -> xr.DataArray:
    """Probabilities over the sample dimensions, items and values of the marginalized label `name`."""
    _check_independent(model, name)
    if find_spec("pymc_extras.marginal") is None:
        return _recovered(model, dataset, name, group)
    from pymc_extras.marginal import conditional
    from pytensor.tensor.random.basic import CategoricalRV
    from pytensor.tensor.special import Softmax

    joint_model = conditional(model, [name])
    label = joint_model[name]
    probabilities = label.owner.inputs[-1]
    if not (
        isinstance(label.owner.op, CategoricalRV) and isinstance(getattr(probabilities.owner, "op", None), Softmax)
    ):
        raise ValueError(f"`var_name` must name a label with finitely many values from 0; got {name!r}.")
    density = Density.of(joint_model, probabilities.owner.inputs[0], is_heavy=True)
    draws = parameter_draws(joint_model, density.variables, dataset, group)
    result, _ = over_draws(density, draws, None, progressbar)
    return with_names(joint_model, result, draws, name, dims_of(joint_model, name), None)


def _check_independent(model: Any, name: str) -> None:
    """Raise an error if labels are dependent given the parameters."""
    whole = unmarginalized(model)
    label, kept = whole[name], [whole[rv.name] for rv in model.free_RVs]
    if is_chain(label):
        raise dependent(name)
    behind = [set(ancestors([rv], kept)) for rv in whole.observed_RVs]
    for other in map(whole.__getitem__, marginalized_names(model)):
        if other.type.ndim < label.type.ndim and any({label, other} <= found for found in behind):
            raise ValueError(
                f"`model` must have labels that are independent given its parameters; those of {name!r} share the "
                f"label {other.name!r}, which is marginalized as well. Marginalize {name!r} alone, and sample "
                f"{other.name!r}."
            )


def choice(labels: list[str], var_name: str | None) -> str:
    """Return the label requested, or the only one.

    Raises ValueError if there are several and none is requested.
    """
    if var_name is None and len(labels) > 1:
        raise ValueError(f"`var_name` must name the marginalized label; the model has {listing(sorted(labels))}.")
    return labels[0] if var_name is None else var_name


def unmarginalized(model: Any) -> Any:
    """The model with its labels restored."""
    if find_spec("pymc_extras.marginal") is not None:  # since 0.13
        from pymc_extras.marginal import unmarginalize
    else:
        from pymc_extras.model.marginal.marginal_model import unmarginalize
    return unmarginalize(model)


def _recovered(model: Any, dataset: xr.Dataset, name: str, group: str) -> xr.DataArray:
    """Probabilities from pymc-extras up to 0.12, whose function needs all draws together and every free variable."""
    from pymc_extras import recover_marginals

    draws = parameter_draws(model, model.free_RVs, dataset, group)
    if draws.sample_dims != ("chain", "draw"):
        raise ValueError(f"`draws` must have the dimensions 'chain' and 'draw' for labels of {name!r}.")
    posterior = SimpleNamespace(posterior=dataset)
    recovered = recover_marginals(
        posterior, model=model, var_names=[name], return_samples=False, extend_inferencedata=False
    )
    logs = recovered[f"lp_{name}"].values
    dtype = dtype_that_fits((int(np.prod(draws.shape)), *logs.shape[2:]))
    result = np.exp(logs, dtype=np.float64).reshape(-1, *logs.shape[2:]).astype(dtype, copy=False)
    return with_names(model, result, draws, name, dims_of(unmarginalized(model), name), None)


def new_values(core: Any, observed: Any) -> Any:
    """New data of a mixture from `observed`, a dict by name.

    Raises TypeError if it is not a dict. Raises ValueError if it contains other names.
    """
    if not isinstance(observed, Mapping):
        raise TypeError(f"`observed` must be a dict, {{{core.name!r}: new values}}; got {type(observed).__name__}.")
    if set(observed) != {core.name}:
        raise ValueError(f"`observed` must have new values of {core.name!r} and no other; got {listing(observed)}.")
    return observed[core.name]


def as_data(core: Any, observed: Any) -> npt.NDArray[Any]:
    """Check new data of a mixture and convert them to its dtype.

    Raises ValueError if the number of dimensions differs from the mixture's, or items are absent or missing. Raises
    TypeError if they are not numeric.
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

    `name` is that of the mixture or label, and `named` are the model's dimensions of that variable. The dimension of
    the components is "component" if it has no name. New observations are `observed`, if these are the items.
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
