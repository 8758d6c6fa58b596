"""The Jaccard index averaged over all pairs of partitions."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import two_partitions
from posterior_consensus.evaluate.expectation import all_losses
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.runtime import memory
from posterior_consensus.sources.conversion import as_draws


def averaged_jaccard(partitions: Any) -> float:
    """Compute the Jaccard index averaged over all pairs of partitions, a measure of their agreement.

    Parameters
    ----------
    partitions : list, array of shape (n_partitions, n_items), or any posterior that :func:`summarize` takes
        At least two result objects, DataArrays or label vectors of the same items, or draws.

    Returns
    -------
    float
        From 0 to 1; 1 means that all partitions are equal. For weighted draws, it is the mean over two different draws
        sampled by weight.

    Raises
    ------
    ValueError
        If there are fewer than two partitions with weight, or they have different items.
    MemoryError
        If the indices of all pairs exceed the memory budget.

    See Also
    --------
    partition_loss : with draws and ``loss="jaccard"``, one minus the index of every pair.
    agreement_path : the expected loss of more agreement between chains.

    Notes
    -----
    The Jaccard index of two partitions is a / (a + b + c) [1]_. Here a is the number of pairs of items co-clustered in
    both, and b and c are the numbers co-clustered in only one of them. The index is 1 if no pair is co-clustered in
    either. For the partitions of a randomized method, the mean index is the stability of the method [2]_.

    References
    ----------
    .. [1] Jaccard (1912), New Phytologist 11(2), 37-50. https://doi.org/10.1111/j.1469-8137.1912.tb05611.x
    .. [2] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> round(pc.agreement.averaged_jaccard([[0, 0, 1, 1], [0, 0, 0, 0]]), 4)
    0.3333
    >>> round(pc.agreement.averaged_jaccard([[0, 0, 1, 1], [5, 5, 2, 2], [0, 0, 0, 0]]), 4)
    0.5556
    """
    draws = as_draws(_in_one_order(partitions)).without_zero_weights()
    if draws.n_draws < 2:
        raise ValueError(f"`partitions` must be at least two; got {draws.n_draws}.")
    memory.check(8 * draws.n_draws**2, f"The Jaccard indices of {draws.n_draws} partitions", "Take fewer.")
    distances = all_losses(draws, jaccard())
    if not draws.samples.is_weighted:
        return 1.0 - float(distances[np.triu_indices(draws.n_draws, 1)].mean())
    weights = draws.weights
    return 1.0 - float(weights @ distances @ weights / (1.0 - np.square(weights).sum()))


def _in_one_order(partitions: Any) -> Any:
    """Labels of partitions with named items, in the order of the first partition."""
    if isinstance(partitions, xr.DataArray) and not {"chain", "draw", "sample"} & set(partitions.dims):
        return partitions.values
    if not isinstance(partitions, (list, tuple)) or not any(map(_has_names, partitions)):
        return partitions
    return np.stack([two_partitions(partitions[0], other)[1] for other in partitions])


def _has_names(partition: Any) -> bool:
    labels = getattr(partition, "labels", partition)
    return isinstance(labels, (pd.Series, xr.DataArray)) and labels.ndim == 1
