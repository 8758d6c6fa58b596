"""The components of a PyMC model in each draw: family, parameters and allocation of items."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import listing
from posterior_consensus.sources.containers import group_dataset
from posterior_consensus.sources.conversion import found_labels
from posterior_consensus.sources.labels import draws_of_labels
from posterior_consensus.sources.mixtures.allocation import (
    check_arguments,
    choice,
    draws_of_model,
    marginalized_names,
    unmarginalized,
)
from posterior_consensus.sources.mixtures.model import ancestors, find_mixture, is_inflated, is_mixture
from posterior_consensus.sources.mixtures.posterior import Density, parameter_draws
from posterior_consensus.sources.parameters import Numbers, component_labels, n_components_of, parameters_by_draw
from posterior_consensus.sources.where import Where

Family = tuple[Any, dict[str, Floats]]

_FAMILIES: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "NormalRV": ("norm", ("loc", "scale")),
    "PoissonRV": ("poisson", ("mu",)),
    "GammaRV": ("gamma", ("a", "scale")),
    "ExponentialRV": ("expon", ("scale",)),
    "BernoulliRV": ("bernoulli", ("p",)),
    "BinomialRV": ("binom", ("n", "p")),
    "NegBinomialRV": ("nbinom", ("n", "p")),
    "GeometricRV": ("geom", ("p",)),
    "StudentTRV": ("t", ("df", "loc", "scale")),
    "CauchyRV": ("cauchy", ("loc", "scale")),
    "LaplaceRV": ("laplace", ("loc", "scale")),
    "LogisticRV": ("logistic", ("loc", "scale")),
    "LogNormalRV": ("lognorm", ("scale", "s")),
    "BetaRV": ("beta", ("a", "b")),
    "InvGammaRV": ("invgamma", ("a", "scale")),
    "HalfNormalRV": ("halfnorm", ("loc", "scale")),
    "MvNormalRV": (None, ("mean", "cov")),
}
"""Name of SciPy's distribution and its names of the parameters, by the name of PyTensor's operation."""


def is_model(value: Any) -> bool:
    """Whether a value is a PyMC model, without importing PyMC."""
    return any(f"{kind.__module__}.{kind.__qualname__}".startswith("pymc.model") for kind in type(value).__mro__)


def component_draws(
    model: Any, data: Any, where: Where, progressbar: bool
) -> tuple[PartitionDraws, Numbers, list[Family]]:
    """From opened data, draws of the allocation, the component of each item, and the components' parameters by family.

    Raises ValueError if the model has no mixture, its components have unknown or different families, or parameters vary
    by item.
    """
    check_arguments(model, data)
    var_name, group = where.var_name, where.group
    labels, as_sampled = _explicit_label(model, var_name), None
    if labels is None:
        draws = draws_of_model(model, data, where, progressbar=progressbar)
    else:
        found = found_labels(data, Where(labels.name, group))
        draws, as_sampled = draws_of_labels(*found), found[0]
    hidden = marginalized_names(model)
    if labels is None and hidden and (var_name is None or var_name in hidden):
        model = unmarginalized(model)
        labels = model[choice(hidden, var_name)]
    dataset = group_dataset(data, group)
    if labels is None:
        families = _of_mixture(model, find_mixture(model, var_name), _evaluator(model, dataset, group))
    else:
        families = _families_of_label(model, labels, _evaluator(model, dataset, group))
    families = [(family, parameters_by_draw(own, draws.samples)) for family, own in families]
    n_components = max(n_components_of(own) for _, own in families)
    return draws, component_labels(draws, as_sampled, n_components, 0), families


def _explicit_label(model: Any, var_name: str | None) -> Any:
    """The categorical label that the model samples, if it has one and no mixture; else None."""
    from pytensor.tensor.random.basic import CategoricalRV

    labels = [
        rv
        for rv in model.free_RVs
        if isinstance(rv.owner.op, CategoricalRV) and rv.type.ndim == 1 and var_name in (None, rv.name)
    ]
    if not labels or (var_name is None and any(map(is_mixture, model.basic_RVs))):
        return None
    if len(labels) > 1:
        raise ValueError(f"`var_name` must name the label; candidates: {listing(rv.name for rv in labels)}.")
    return labels[0]


def _evaluator(model: Any, dataset: Any, group: str) -> Callable[..., Floats]:
    """Function that evaluates a graph of the model's variables at every draw."""

    def values_of(graph: Any, known: Mapping[Any, Any] | None = None) -> Floats:
        density = Density.of(model, graph, False, known)
        draws = parameter_draws(model, density.variables, dataset, group)
        first, repeats = draws.distinct()
        function = density.function()
        return np.stack([function(*(values[row] for values in draws.values)) for row in first])[repeats].astype(float)

    return values_of


def _family_of(variable: Any) -> tuple[Any, tuple[str, ...], list[Any]]:
    """SciPy's distribution of a random variable, SciPy's names of the parameters, and the parameters."""
    from scipy import stats

    op = variable.owner.op
    kind = type(op).__name__
    if kind not in _FAMILIES:
        raise ValueError(
            f"`model` must have components of a family in {listing(_FAMILIES)}; got {kind}. Give the labels or "
            "allocation probabilities and the components' parameters as arrays, with the `distribution` of scipy.stats."
        )
    name, names = _FAMILIES[kind]
    return name and getattr(stats, name), names, list(op.dist_params(variable.owner))


def _of_mixture(model: Any, core: Any, values_of: Callable[..., Floats]) -> list[Family]:
    components = core.owner.inputs[2:]
    kinds = {type(one.owner.op).__name__ for one in components}
    if is_inflated(core) or len(kinds) > 1:
        raise ValueError(f"`model` must have components of one family; {core.name!r} has {listing(sorted(kinds))}.")
    families = [_family_of(one) for one in components]
    distribution, names, _ = families[0]
    arrays = {}
    for place, name in enumerate(names):
        parts = [values_of(parameters[place]) for *_, parameters in families]
        behind = {"mean": 1, "cov": 2}.get(name, 0)
        if len(parts) > 1:
            parts = [_common(part, behind, name)[:, np.newaxis] for part in parts]
            arrays[name] = np.concatenate(np.broadcast_arrays(*parts), axis=1)
        else:
            arrays[name] = _common(parts[0], behind + (parts[0].ndim > 1 + behind), name)
    return [(distribution, _as_scipy_has_them(distribution, arrays))]


def _common(values: Floats, n_axes: int, name: str) -> Floats:
    """Values (n_draws, ...) without the item axes, along which they must be constant."""
    while values.ndim > 1 + n_axes:
        if np.any(values != values[:, :1]):
            raise _varies(name)
        values = values[:, 0]
    return values


def _varies(name: str) -> ValueError:
    return ValueError(
        f"`model` must have components that are the same for all items; their parameter {name!r} varies with the item, "
        "as in mixtures of regressions, where components have no distance of their own."
    )


def _families_of_label(model: Any, label: Any, values_of: Callable[..., Floats]) -> list[Family]:
    """Families of the observed variables that depend on the label; in their parameters the label is 0, ..., K - 1."""
    import pytensor.tensor as pt

    seen = [rv for rv in model.observed_RVs if label in set(ancestors(rv.owner.inputs))]
    if not seen:
        raise ValueError(f"`model` must have observed variables that depend on the label {label.name!r}; got none.")
    n_components = values_of(label.owner.inputs[-1]).shape[-1]
    families = []
    for rv in seen:
        distribution, names, graphs = _family_of(rv)
        n_features = 1 if rv.type.ndim == 1 else int(model.rvs_to_values[rv].shape[-1].eval())
        arrays = {}
        for name, graph in zip(names, graphs, strict=True):
            shape = (n_components, *[n_features] * (rv.type.ndim - 1 + (name == "cov")))
            values = values_of(graph, {label: pt.arange(n_components)})
            values = values.reshape(len(values), *[1] * (1 + len(shape) - values.ndim), *values.shape[1:])
            try:
                arrays[name] = np.broadcast_to(values, (len(values), *shape))
            except ValueError:
                raise _varies(name) from None
        families.append((distribution, _as_scipy_has_them(distribution, arrays)))
    return families


def _as_scipy_has_them(distribution: Any, arrays: dict[str, Floats]) -> dict[str, Floats]:
    return (
        arrays | {"scale": np.exp(arrays["scale"])}
        if distribution is not None and distribution.name == "lognorm"
        else arrays
    )
