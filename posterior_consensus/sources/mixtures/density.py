"""log w_k f_k(y_i | theta) as a graph, without PyMC's sum over components."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterior_consensus.sources.mixtures.model import is_hurdle


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
