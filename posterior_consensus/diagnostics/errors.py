"""Monte Carlo standard errors of the posterior similarity matrix."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.similarity import similarity_errors
from posterior_consensus.sources.conversion import as_source


def similarity_mcse(draws: Any) -> xr.DataArray:
    """Compute the Monte Carlo standard error of every entry of the similarity matrix by batch means.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Also a PairSimilarity that :func:`as_pair_similarity` computed with ``missing="pairwise"``.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm_mcse``, with the dimensions and coordinates of :func:`posterior_similarity_matrix`. 0 on the
        diagonal. NaN everywhere if a chain has fewer than four draws or one batch all the weight.

    Raises
    ------
    ValueError
        If the draws are invalid as for :func:`as_partition_draws`.

    See Also
    --------
    Samples.probability_mcse : Standard errors of single probabilities by ArviZ, too slow for all pairs.
    posterior_similarity_matrix : Compute the similarities themselves.

    Notes
    -----
    Each chain of L draws is cut into min(10, floor(sqrt(L))) batches of nearly equal length. Batches stay long enough
    for slow chains, and more batches hardly improve the error [1]_. Batches of all chains vary around one common mean,
    so chains that disagree raise the error [2]_. With b_k the sum of w_t (A_tij - PSM_ij) over the draws of batch k of
    K,

        s_ij^2 = K / (K - 1) sum_k b_k^2.

    The error is s_ij, corrected near 0 and 1 as by :meth:`Samples.probability_errors`: it is above 0 also for pairs
    that are co-clustered always or never. With weights, b_k is multiplied by (1 - s_k) / (1 - v_k), with s_k the
    batch's share of the draws and v_k its share of the weight; see :meth:`Samples.mcse`. With allocation probabilities,
    A_tij is p_ti' p_tj.

    With T draws of a chain per effective draw, the relative bias of the error is about -5 T / (2 L) [3]_: -5% for an
    effective sample size of 50 in each chain. Below 50 the error is rough, and typically too small.

    References
    ----------
    .. [1] Schmeiser (1982), Operations Research 30(3), 556-568. https://doi.org/10.1287/opre.30.3.556
    .. [2] Argon and Andradottir (2006), Naval Research Logistics 53(6), 508-524. https://doi.org/10.1002/nav.20158
    .. [3] Vats and Flegal (2022), Biometrika 109(3), 735-750. https://doi.org/10.1093/biomet/asab049

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
    errors = draws.samples.probability_errors(draws.shared_similarity, similarity_errors(draws))
    np.fill_diagonal(errors, 0.0 * np.diagonal(errors))  # unknown errors stay unknown
    return draws.items.pair_array(errors, "psm_mcse").assign_attrs(attrs)
