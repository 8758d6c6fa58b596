"""allocation_probabilities(): P(z_i = k | theta_t, y_i) from a model and a posterior without labels."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.runtime.arguments import RandomSeed, as_generator
from posterior_consensus.runtime.warning import warn
from posterior_consensus.sources.containers import group_dataset, is_inference_data, opened
from posterior_consensus.sources.mixtures.density import joint_log_density, takes_a_solver_per_item
from posterior_consensus.sources.mixtures.items import as_data, new_values, with_names
from posterior_consensus.sources.mixtures.marginalised import choice, conditional_probabilities, marginalised_names
from posterior_consensus.sources.mixtures.model import component_dim, dims_of, find_mixture, value_of
from posterior_consensus.sources.mixtures.posterior import Density, over_draws, parameter_draws, per_item
from posterior_consensus.sources.probabilities import as_allocation_probabilities


def allocation_probabilities(
    model: Any,
    idata: Any,
    *,
    var_name: str | None = None,
    group: str = "posterior",
    observed: Any = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartitionDraws:
    """Compute allocation probabilities from a PyMC mixture model and its posterior without labels.

    Parameters
    ----------
    model : pymc.Model
        Model with a ``pm.Mixture`` of any family, observed, partly observed or latent; or a model from which
        pymc-extras has marginalized a categorical label, which several observed variables may share.
    idata : InferenceData, DataTree, Dataset or path
        Draws of the model's free variables, over ``chain`` and ``draw``. Deterministic variables, and free variables
        that do not affect the allocation, may be missing.
    var_name : str, optional
        Name of the mixture, or of the marginalized label; by default the only one. Zero-inflated and hurdle
        distributions, which are mixtures of zeros and another distribution, must be named.
    group : str
        Group of an InferenceData, DataTree or file.
    observed : dict, optional
        New observations of the mixture, ``{"y": values}``, which replace the model's own; any number of items. The
        result then has their log densities in ``soft.log_density``, as :func:`predict_allocation` needs them. A
        DataArray gives the items its dimension and coordinates. If parameters have a value for each item, as in
        mixtures of regressions, first put the new covariates into the model by ``pm.set_data``.
    random_seed : int, Generator, SeedSequence or None
        Seed for sampling the result's `labels` from the probabilities; None samples the same labels each time.
    progressbar : bool
        Whether to show a progress bar after a second.

    Returns
    -------
    PartitionDraws
        Draws with probabilities of shape (n_draws, n_items, n_components) in ``soft.probabilities``, and labels sampled
        from them. Items and components are named as in the model.

    Raises
    ------
    ImportError
        If PyMC is not installed.
    TypeError
        If `model` is not a model, or `idata` not a posterior.
    ValueError
        If the model has no mixture or several, the posterior lacks a variable or does not fit the model, or `observed`
        does not fit the mixture. The message gives the next step.
    MemoryError
        If the probabilities do not fit in the memory budget.

    Warns
    -----
    UserWarning
        If univariate components meet data of several dimensions: every value, not every row, is then an item.

    See Also
    --------
    as_allocation_probabilities : Convert probabilities that the posterior already holds.
    predict_allocation : Clusters of new observations.

    Notes
    -----
    With weights w_k and PyMC's densities f_k,

        P(z_i = k | theta_t, y_i) = w_k f_k(y_i | theta_t) / sum_l w_l f_l(y_i | theta_t) [1]_.

    Items must be independent given the parameters; a DiscreteMarkovChain is refused. Missing observations take their
    values from the posterior. A ``pm.Potential`` is ignored, since its factor is equal for all allocations.
    Probabilities are in single precision if two copies in double precision exceed the memory budget.

    References
    ----------
    .. [1] McLachlan and Peel (2000), Finite Mixture Models, section 1.15. https://doi.org/10.1002/0471721182

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import pymc as pm  # doctest: +SKIP
    >>> import posterior_consensus as pc
    >>> with pm.Model(coords={"star": ["a", "b", "c"]}) as model:  # doctest: +SKIP
    ...     mu = pm.Normal("mu", 0.0, 3.0, shape=2)
    ...     y = pm.NormalMixture("y", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=[-1.0, 0.2, 1.0], dims="star")
    >>> idata = xr.Dataset({"mu": (("chain", "draw", "component"), [[[-1.0, 1.0], [1.0, -1.0]]])})
    >>> draws = pc.allocation_probabilities(model, idata)  # doctest: +SKIP
    >>> draws.soft.probabilities[0].round(3)  # doctest: +SKIP
    array([[0.881, 0.119],
           [0.401, 0.599],
           [0.119, 0.881]])
    """
    check_arguments(model, idata, var_name)
    as_generator(random_seed)  # report an invalid seed before the model is read
    with opened(idata) as data:
        dataset = group_dataset(data, group)
        probabilities, log_density = _probabilities(model, dataset, var_name, group, observed, progressbar)
        probabilities = probabilities.load()  # also loads coordinates
    *_, item_dim, components = (str(dim) for dim in probabilities.dims)
    draws = as_allocation_probabilities(
        probabilities,
        log=False,
        sample_dims=tuple(str(dim) for dim in probabilities.dims[:-2]),
        item_dim=item_dim,
        component_dim=components,
        random_seed=random_seed,
    )
    if observed is None or log_density is None:
        return draws
    soft = replace(draws.as_soft("`observed`"), log_density=log_density.reshape(draws.n_draws, draws.n_items))
    return replace(draws, soft=soft)


def check_arguments(model: Any, idata: Any, var_name: Any) -> None:
    """Raise an error unless the arguments are a model, a posterior and a name."""
    try:
        import pymc as pm
    except ModuleNotFoundError as error:
        if error.name != "pymc":
            raise
        raise ImportError("Reading a model needs the package pymc: pip install 'posterior-consensus[pymc]'.") from None

    if not isinstance(model, pm.Model):
        hint = " The model comes first, the posterior second." if isinstance(idata, pm.Model) else ""
        if isinstance(getattr(getattr(model, "backend", None), "model", None), pm.Model):
            hint = (
                " Give model.backend.model, which Bambi made, of a model with center_predictors=False: else the "
                "posterior has another intercept than the model."
            )
        raise TypeError(f"`model` must be a pymc.Model; got {type(model).__name__}.{hint}")
    if not isinstance(idata, (xr.Dataset, xr.DataTree, str, Path)) and not is_inference_data(idata):
        raise TypeError(f"`idata` must be an InferenceData, DataTree, Dataset or path; got {type(idata).__name__}.")
    if var_name is not None and not isinstance(var_name, str):
        raise TypeError(f"`var_name` must be a name; got {var_name!r}.")


def _probabilities(
    model: Any,
    dataset: xr.Dataset,
    var_name: str | None,
    group: str,
    observed: Any,
    progressbar: bool,
) -> tuple[xr.DataArray, npt.NDArray[np.float64] | None]:
    """Probabilities over the sample dimensions, items and components, and the log densities (n_draws, *items).

    There are none for marginalized labels.
    """
    from pymc.distributions.shape_utils import change_dist_size

    labels = marginalised_names(model)
    if labels and (var_name is None or var_name in labels):
        if observed is not None:
            raise ValueError(
                "`observed` must be None for labels that pymc-extras has marginalized; put the new data into the model "
                "with pm.set_data."
            )
        return conditional_probabilities(model, dataset, choice(labels, var_name), group, progressbar), None
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
    draws = parameter_draws(model, density.variables, dataset, group)
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
