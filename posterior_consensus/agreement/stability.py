"""How much do clusterings agree? The Jaccard index averaged over all pairs of them."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import two_partitions
from posterior_consensus.evaluate.expectation import all_losses
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.runtime import memory
from posterior_consensus.sources.door import as_draws


def averaged_jaccard(partitions: Any) -> float:
    """Average the Jaccard index over all pairs of partitions.

    Parameters
    ----------
    partitions : list, array of shape (n_partitions, n_items), or any posterior that :func:`summarize` takes
        At least two result objects, DataArrays or label vectors of the same items, or draws.

    Returns
    -------
    float
        From 0 to 1, where all partitions are equal. Weights of draws count: the mean is that over two draws at random,
        given that they are different ones.

    Raises
    ------
    ValueError
        If there are fewer than two partitions with weight, or they are not of the same items.
    MemoryError
        If the indices of all pairs take more than the memory budget.

    See Also
    --------
    partition_loss : of draws with ``loss="jaccard"``, one minus the index of every pair.
    agreement_path : what more agreement between chains costs.

    Notes
    -----
    The Jaccard index of two clusterings is a / (a + b + c), with a the number of pairs of items that both have
    together, b and c those that only the one or the other has together [1]_. It is 1 where neither has any. Its mean
    over clusterings that a randomized method gives is the method's stability [2]_.

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
    """Labels of partitions that name their items, in the order of the first one's."""
    if isinstance(partitions, xr.DataArray) and not {"chain", "draw", "sample"} & set(partitions.dims):
        return partitions.values
    if not isinstance(partitions, (list, tuple)) or not any(map(_has_names, partitions)):
        return partitions
    return np.stack([two_partitions(partitions[0], other)[1] for other in partitions])


def _has_names(partition: Any) -> bool:
    labels = getattr(partition, "labels", partition)
    return isinstance(labels, (pd.Series, xr.DataArray)) and labels.ndim == 1
