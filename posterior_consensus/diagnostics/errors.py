"""Monte Carlo standard errors of the posterior similarity matrix."""

from __future__ import annotations

from typing import Any

import xarray as xr

from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.evaluate.similarity import similarity_errors
from posterior_consensus.sources.door import as_source


def similarity_mcse(draws: Any) -> xr.DataArray:
    """Compute the Monte Carlo standard error of every entry of the similarity matrix by batch means.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Also the PairSimilarity that :func:`as_pair_similarity` counts over the draws that hold both items.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm_mcse``, with the dimensions and coordinates of :func:`posterior_similarity_matrix`. 0 where a pair
        is together always or never; NaN everywhere if a chain has fewer than four draws or one batch all the weight.

    Raises
    ------
    ValueError
        If the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    Samples.mcse : the error of single traces by ArviZ, too slow for all pairs.

    Notes
    -----
    Each chain of L draws is cut into floor(sqrt(L)) batches of nearly equal length [1]_, long enough that their means
    are nearly independent, and the batches of all chains vary around one common mean, so that chains which disagree
    raise the error [2]_. With b_k the sum of w_t (A_tij - PSM_ij) over the draws of batch k, of K batches,

        MCSE_ij^2 = K / (K - 1) sum_k b_k^2.

    For weighted draws b_k is multiplied by (1 - s_k) / (1 - v_k), where s_k is the batch's share of the draws and v_k
    its share of the weight. Leaving out the batch moves the mean by that much, see :meth:`Samples.mcse`. For chains
    that mix slowly on the scale of sqrt(L) draws the error is too small; the effective sample sizes of
    :func:`diagnose` show it. For allocation probabilities A_tij is p_ti' p_tj.

    References
    ----------
    .. [1] Flegal and Jones (2010), Annals of Statistics 38(2), 1034-1070. https://doi.org/10.1214/09-AOS735
    .. [2] Argon and Andradottir (2006), Naval Research Logistics 53(6), 508-524. https://doi.org/10.1002/nav.20158

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> chains = np.random.default_rng(1).integers(2, size=(4, 400, 3))
    >>> pc.diagnostics.similarity_mcse(chains).values.round(2)
    array([[0.  , 0.01, 0.01],
           [0.01, 0.  , 0.01],
           [0.01, 0.01, 0.  ]])
    """
    source = as_source(draws)
    attrs: dict[str, Any] = {"long_name": "Monte Carlo standard error of the co-clustering probability"}
    if isinstance(source, PairSimilarity) and source.errors is not None:
        return source.items.pair_array(source.errors, "psm_mcse").assign_attrs(attrs)
    draws = draws_of(source)
    attrs["n_draws"] = draws.n_draws
    return draws.items.pair_array(similarity_errors(draws), "psm_mcse").assign_attrs(attrs)
