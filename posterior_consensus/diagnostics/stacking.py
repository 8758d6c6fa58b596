"""Stacking weights of chains that do not mix: a file of its own, as only they look at predictions, not partitions."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from posterior_consensus.ensemble.importance import smoothed
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.sources.conversion import opened
from posterior_consensus.sources.parameters import pointwise_log_likelihood

_MOST_STEPS, _TOLERANCE = 10_000, 1e-8


def stacking_weights(draws: Any) -> xr.DataArray:
    """Weight chains that do not mix by how well a mixture of them predicts each observation.

    Parameters
    ----------
    draws : InferenceData, DataTree or path of its file
        Posterior with the group ``log_likelihood`` over `chain`, `draw` and observations.

    Returns
    -------
    xarray.DataArray of shape (chain, draw), dtype float64
        Weight of each draw, equal within a chain; they sum to 1. Input functions and :func:`summarize` accept them as
        ``weights=``. The coordinate ``pareto_k`` has the largest Pareto k-hat of each chain. Above 0.7, the chain's
        predictions of some observation, and hence the weights, are unreliable.

    Raises
    ------
    ValueError
        If the group ``log_likelihood`` is missing, or no observation has finite values.
    TypeError
        If `draws` cannot have groups.

    See Also
    --------
    diagnose : Check whether the chains disagree, and which chain differs from all others.

    Notes
    -----
    With p_ic the predictive density of observation i given the others under the draws of chain c, by Pareto-smoothed
    importance sampling [2]_, the weights w of the chains maximize

        sum_i log sum_c w_c p_ic

    over w_c >= 0 that sum to 1 [1]_. Use them for prediction if each chain has explored its mode and no sampler mixes.
    They are not posterior probabilities of the modes. Of two modes that predict equally well, one can get all the
    weight, and an improbable mode can get much.

    References
    ----------
    .. [1] Yao, Vehtari and Gelman (2022), Journal of Machine Learning Research 23(79), 1-45.
       https://jmlr.org/papers/v23/20-1426.html
    .. [2] Vehtari, Gelman and Gabry (2017), Statistics and Computing 27(5), 1413-1432.
       https://doi.org/10.1007/s11222-016-9696-4

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> import posterior_consensus as pc
    >>> logs = np.zeros((3, 50, 4)) + [[[-1.0, -1, -5, -5]], [[-5.0, -5, -1, -1]], [[-6.0, -6, -6, -6]]]
    >>> y = xr.DataArray(logs, dims=("chain", "draw", "item"))
    >>> weights = pc.diagnostics.stacking_weights(xr.DataTree.from_dict({"log_likelihood": y.to_dataset(name="y")}))
    >>> weights.sum("draw").values.round(2)
    array([0.5, 0.5, 0. ])
    """
    with opened(draws) as (data, _):
        logs, names = pointwise_log_likelihood(data)
    logs = logs[..., np.isfinite(logs).all(axis=(0, 1))]
    length = logs.shape[1]
    if logs.size == 0:
        raise ValueError("`draws` must have an observation with a finite log likelihood in all draws; got none.")
    estimates = np.array([[_density_left_out(one) for one in chain.T] for chain in logs])
    predictive, pareto_k = estimates[..., 0], estimates[..., 1]
    weights = _mixture_weights(np.exp(predictive - predictive.max(axis=0)).T)
    coords = names | {"pareto_k": ("chain", pareto_k.max(axis=1))}
    values = np.repeat(weights[:, np.newaxis] / length, length, axis=1)
    return xr.DataArray(values, coords, ("chain", "draw"), "weights")


def _density_left_out(logs: Floats) -> tuple[float, float]:
    """Leave-one-out log predictive density of an observation from its log likelihoods (L,), and the k-hat."""
    weighted = smoothed(Samples.of_one_chain(logs.size), -logs)
    return float(logsumexp(logs, b=weighted.samples.weights)), weighted.pareto_k


def _mixture_weights(densities: Floats) -> Floats:
    """Maximum likelihood weights (C,) of a mixture of known densities (I, C), by the EM algorithm."""
    weights = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(_MOST_STEPS):
        gain = (densities / (densities @ weights)[:, np.newaxis]).mean(axis=0)
        weights = weights * gain
        if gain.max() <= 1.0 + _TOLERANCE:
            break
    return weights / weights.sum()
