"""Read a PyMC model: its mixture, the mixture's data, named dimensions and joint log density by component."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.runtime.arguments import listing

WAYS_OUT = (
    "Either store the logarithms of the allocation probabilities in the model, if items are independent given its "
    "parameters, as a pm.Deterministic 'log_prob_z' over items and components, and use as_allocation_probabilities; or "
    "write the labels as a pm.Categorical, or recover those that pymc-extras has marginalized, and use "
    "as_partition_draws."
)


def ancestors(variables: Iterable[Any], blockers: Iterable[Any] = ()) -> Iterator[Any]:
    """Yield the variables of a graph, nearest first, without passing `blockers`."""
    stop, seen, queue = set(blockers), set(), list(variables)
    for variable in queue:
        if variable in seen:
            continue
        seen.add(variable)
        yield variable
        if variable.owner is not None and variable not in stop:
            queue.extend(variable.owner.inputs)


def find_mixture(model: Any, var_name: str | None) -> Any:
    """Return the random variable of the requested mixture, or of the only mixture.

    Raises ValueError if there is no mixture, several without a name, or none of that name.
    """
    mixtures = _mixtures(model)
    chosen = [name for name, core in mixtures.items() if not is_inflated(core)] if var_name is None else [var_name]
    if len(chosen) == 1 and chosen[0] in mixtures:
        return mixtures[chosen[0]]
    chains = [str(rv.name) for rv in model.free_RVs if is_chain(rv) and var_name in (None, rv.name)]
    if chains and not mixtures:
        raise dependent(chains[0])
    if var_name is not None:
        raise ValueError(
            f"`var_name` must name a mixture of the model; got {var_name!r}, present: {listing(mixtures)}."
            + ("" if mixtures else f" {WAYS_OUT}")
        )
    if chosen:
        raise ValueError(
            f"`var_name` must name the mixture; the model has {listing(chosen)}, whose allocations are independent of "
            "each other. Variables that share one label are a model with a pm.Categorical, which pymc-extras can "
            "marginalize."
        )
    raise ValueError(_nothing(model, mixtures))


def is_chain(variable: Any) -> bool:
    """Whether labels are the states of pymc-extras' Markov chain."""
    return any(cls.__name__ == "DiscreteMarkovChainRV" for cls in type(variable.owner.op).__mro__)


def dependent(name: str) -> ValueError:
    """Error for a Markov chain in place of a mixture."""
    return ValueError(
        f"`model` must have labels that are independent given its parameters; {name!r} is a DiscreteMarkovChain, and "
        "probabilities of single items' states do not determine which items are co-clustered. Pass sampled states "
        f"in place of the model: summarize(idata, {name!r}). pymc_extras.marginal.recover, from version 0.15, samples "
        "those that were marginalized."
    )


def _mixtures(model: Any) -> dict[str, Any]:
    """Mixtures of the model by name; with missing values, the variable before PyMC splits it."""
    return {str(core.name): core for core in map(core_of, model.basic_RVs) if is_mixture(core)}


def is_mixture(core: Any) -> bool:
    """Whether a random variable is a mixture of PyMC."""
    import pymc as pm

    return isinstance(core.owner.op, (pm.Mixture.rv_type, _kind_of_hurdles()))


def core_of(variable: Any) -> Any:
    """The random variable behind masks and rescaling."""
    from pymc.distributions.distribution import PartialObservedRV
    from pymc.variational.minibatch_rv import MinibatchRandomVariable

    while isinstance(variable.owner.op, (PartialObservedRV, MinibatchRandomVariable)):
        variable = variable.owner.inputs[0]
    return variable


def is_hurdle(core: Any) -> bool:
    """Whether the first of two components is zero and the second is anything else."""
    import pymc as pm

    return isinstance(core.owner.op, _kind_of_hurdles()) and not isinstance(core.owner.op, pm.Mixture.rv_type)


@cache
def _kind_of_hurdles() -> type:
    """The type of PyMC's hurdles, which has no public name; up to PyMC 5.23 they are mixtures like any other."""
    import pymc as pm

    return type(pm.HurdleGamma.dist(0.5, 1.0, 1.0).owner.op)


def is_inflated(core: Any) -> bool:
    """Whether the components are zero and another distribution, which are clusters only if requested."""
    from pymc.distributions.distribution import DiracDeltaRV

    components = core.owner.inputs[2:]
    return is_hurdle(core) or (len(components) == 2 and isinstance(components[0].owner.op, DiracDeltaRV))


def _nothing(model: Any, mixtures: dict[str, Any]) -> str:
    from pytensor.tensor.random.basic import CategoricalRV

    why = "`model` must have a pm.Mixture"
    if mixtures:
        return (
            f"{why}; {listing(mixtures)} only separates zeros from the rest; name it by `var_name` to use it as a "
            "partition."
        )
    labels = [rv.name for rv in model.free_RVs if isinstance(rv.owner.op, CategoricalRV)]
    if labels:
        return (
            f"{why}; it has explicit labels, {listing(labels)}. If the posterior holds them, it needs no model: "
            f"use as_partition_draws. Else: {WAYS_OUT[0].lower()}{WAYS_OUT[1:]}"
        )
    if model.potentials:
        names = listing(potential.name for potential in model.potentials)
        return f"{why}; its likelihood is in a pm.Potential, {names}, which hides its components. {WAYS_OUT}"
    return f"{why}; got the variables {listing(rv.name for rv in model.basic_RVs)}. {WAYS_OUT}"


def value_of(model: Any, core: Any, observed: npt.NDArray[Any] | None) -> Any:
    """The mixture's data as a tensor: new data, observed data with missing values from the posterior, or latent values.

    Raises ValueError if the data change at random.
    """
    import pytensor.tensor as pt

    if observed is not None:
        return pt.constant(observed)
    parts = [rv for rv in model.basic_RVs if core_of(rv) is core]
    if len(parts) == 1:
        rv = parts[0]
        return rv if rv in model.free_RVs else pt.constant(data_of(model, rv))
    seen = next(rv for rv in parts if rv in model.observed_RVs)
    missing = next(rv for rv in parts if rv is not seen)
    where = evaluated(seen.owner.inputs[1])
    values = np.zeros(where.shape, core.type.dtype)
    values[~where] = data_of(model, seen)
    return pt.set_subtensor(pt.constant(values)[np.nonzero(where)], missing)


def data_of(model: Any, variable: Any) -> npt.NDArray[Any]:
    """Current values of an observed variable."""
    from pytensor.tensor.random.op import RandomVariable

    value = model.rvs_to_values[variable]
    if any(v.owner is not None and isinstance(v.owner.op, RandomVariable) for v in ancestors([value])):
        raise ValueError(
            f"`observed` must be all data of {variable.name!r}, of which the model has a random pm.Minibatch."
        )
    return evaluated(value)


def evaluated(variable: Any) -> npt.NDArray[Any]:
    """Value of a tensor that depends on data only, without compilation."""
    import pytensor

    return np.asarray(pytensor.function([], variable, mode=python_mode())())


def python_mode() -> Any:
    """Mode that evaluates by NumPy: compilation would take longer than all draws of most posteriors."""
    from pytensor.compile.mode import Mode

    # NumPy has no sums and products of more than two terms.
    return Mode(linker="py", optimizer="fast_compile").excluding("local_add_canonizer", "local_mul_canonizer")


def dims_of(model: Any, name: str) -> tuple[str, ...]:
    """Named dimensions of a variable, () if it has none."""
    return tuple(str(dim) for dim in model.named_vars_to_dims.get(name, ()) or ())


def length_of_dim(model: Any, dim: str) -> int:
    """Length of a named dimension."""
    return int(evaluated(model.dim_lengths[dim]))


def component_dim(model: Any, core: Any, n_components: int, item_dims: tuple[str, ...]) -> str:
    """Name of the components' dimension: from the weights, from their inputs, else from the parameters."""
    _, weights, *components = core.owner.inputs
    parameters = [parameter for c in components for parameter in ancestors(c.owner.inputs, model.free_RVs)]
    # Components come last in weights, but before the features in means and covariances.
    candidates = [dim for v in ancestors([weights], model.free_RVs) for dim in reversed(_registered_dims(model, v))]
    candidates += [dim for v in parameters for dim in _registered_dims(model, v)]
    named = (dim for dim in candidates if dim not in item_dims and length_of_dim(model, dim) == n_components)
    return next(named, "component")


def _registered_dims(model: Any, variable: Any) -> tuple[str, ...]:
    is_registered = variable.name is not None and model.named_vars.get(variable.name) is variable
    return dims_of(model, variable.name) if is_registered else ()


def joint_log_density(core: Any, value: Any) -> Any:
    """Logarithm of weight times density of each component, a tensor of items x components."""
    import pytensor.tensor as pt

    _, weights, *components = core.owner.inputs
    if is_hurdle(core):
        densities = _hurdle(components, value)
    elif len(components) == 1:
        densities = _of_component(components[0], value, batched=True)
    else:
        densities = pt.stack([_of_component(one, value, batched=False) for one in components], axis=-1)
    return pt.log(weights) + densities


def takes_a_solver_per_item(core: Any, value: Any) -> bool:
    """Whether the density solves a linear system for every pair of item and component."""
    components = core.owner.inputs[2:]
    batched = len(components) == 1
    return any(c.owner.op.ndim_supp > 0 and _shared_covariance(c, value, batched) is None for c in components)


def _hurdle(components: Sequence[Any], value: Any) -> Any:
    import pytensor.tensor as pt
    from pymc import logp

    zero = pt.eq(value, 0)
    other = logp(components[1], pt.switch(zero, 1, value))  # at 0 its density may be infinite
    return pt.stack([pt.switch(zero, 0.0, -np.inf), pt.switch(zero, -np.inf, other)], axis=-1)


def _of_component(component: Any, value: Any, batched: bool) -> Any:
    """Log density (items,) of a component, or (items, components) if a batch dimension holds the components."""
    import pytensor.tensor as pt
    from pymc import logp

    covariance = _shared_covariance(component, value, batched)
    if covariance is None:
        return logp(component, pt.expand_dims(value, -component.owner.op.ndim_supp - 1) if batched else value)
    mean, _ = component.owner.op.dist_params(component.owner)
    if batched:
        return _normal((pt.expand_dims(value, -2) - mean).transpose(1, 2, 0), covariance).T
    return _normal((value - mean).T, covariance)


def _shared_covariance(component: Any, value: Any, batched: bool) -> Any:
    """Covariance (components, d, d) or (d, d) that all items share in a multivariate normal, else None."""
    from pytensor.tensor.random.basic import MvNormalRV

    if not isinstance(component.owner.op, MvNormalRV) or value.type.ndim != 2:
        return None
    covariance: Any = component.owner.op.dist_params(component.owner)[1]
    while covariance.type.ndim > 2 + batched and covariance.type.broadcastable[0]:
        covariance = covariance[0]
    return covariance if covariance.type.ndim <= 2 + batched else None


def _normal(deviations: Any, covariance: Any) -> Any:
    """Multivariate normal log density (..., n) of deviations (..., d, n): one solver per component for all items.

    PyMC's density solves for each item separately, which is a hundred times slower unless a compiler fuses the loop.
    """
    import pytensor.tensor as pt
    from pytensor.tensor.linalg import cholesky, solve_triangular

    factor = cholesky(covariance)
    scaled = solve_triangular(factor, deviations, lower=True, b_ndim=2)
    log_scale = pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    constant = 0.5 * np.log(2 * np.pi) * deviations.shape[-2]
    return -0.5 * (scaled**2).sum(axis=-2) - pt.expand_dims(log_scale, -1) - constant
