"""Probabilities of labels that pymc-extras has marginalized, given parameters and data."""

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.sources.locations import listing
from posterior_consensus.sources.mixtures.items import with_names
from posterior_consensus.sources.mixtures.model import ancestors, dependent, dims_of, is_chain
from posterior_consensus.sources.mixtures.posterior import Density, dtype_that_fits, over_draws, parameter_draws


def marginalised_names(model: Any) -> list[str]:
    """Names of the labels that pymc-extras has marginalized from a model."""
    kinds = {cls.__name__ for rv in model.basic_RVs for cls in type(rv.owner.op).__mro__}
    if "MarginalRV" not in kinds:
        return []
    kept = {rv.name for rv in model.free_RVs}
    return [str(rv.name) for rv in unmarginalised(model).free_RVs if rv.name not in kept]


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
    whole = unmarginalised(model)
    label, kept = whole[name], [whole[rv.name] for rv in model.free_RVs]
    if is_chain(label):
        raise dependent(name)
    behind = [set(ancestors([rv], kept)) for rv in whole.observed_RVs]
    for other in map(whole.__getitem__, marginalised_names(model)):
        if other.type.ndim < label.type.ndim and any({label, other} <= found for found in behind):
            raise ValueError(
                f"`model` must have labels that are independent given its parameters; those of {name!r} share the "
                f"label {other.name!r}, which is marginalized as well. Marginalize {name!r} alone, and sample "
                f"{other.name!r}."
            )


def choice(labels: list[str], var_name: str | None) -> str:
    """Return the label requested, or the only one.

    Raises
    ------
    ValueError
        If there are several and none is requested.
    """
    if var_name is None and len(labels) > 1:
        raise ValueError(f"`var_name` must name the marginalized label; the model has {listing(sorted(labels))}.")
    return labels[0] if var_name is None else var_name


def unmarginalised(model: Any) -> Any:
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
        raise ValueError(f"`idata` must have the dimensions 'chain' and 'draw' for labels of {name!r}.")
    posterior = SimpleNamespace(posterior=dataset)
    recovered = recover_marginals(
        posterior, model=model, var_names=[name], return_samples=False, extend_inferencedata=False
    )
    logs = recovered[f"lp_{name}"].values
    dtype = dtype_that_fits((int(np.prod(draws.shape)), *logs.shape[2:]))
    result = np.exp(logs, dtype=np.float64).reshape(-1, *logs.shape[2:]).astype(dtype, copy=False)
    return with_names(model, result, draws, name, dims_of(unmarginalised(model), name), None)
