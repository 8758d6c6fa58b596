"""Memberships of new observations in the clusters of a partition of the known ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterior_consensus.answers.membership import Membership, as_membership, check_size, of_components
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.door import as_draws, partition_of


def predict_allocation(new: Any, known: Any, *, partition: Any = None) -> Membership:
    """Compute the posterior probability that each new item belongs to each cluster of a partition of the known items.

    Parameters
    ----------
    new : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Of m new items, ``allocation_probabilities(model, idata, observed={"y": y_new})``: from the same draws and
        components as `known`. Draws are paired by chain and draw.
    known : the same
        Of the n items that were observed.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Of the known items, typically the consensus; by default that of `known` if these are a summary.

    Returns
    -------
    Membership
        Of the m new items; `cluster` is the most probable one.

    Raises
    ------
    TypeError
        If `new` or `known` have no allocation probabilities.
    ValueError
        If their draws, weights or components differ, the partition is not one of the known items, or a cluster is named
        "elsewhere".
    MemoryError
        If the result takes more than the memory budget.

    See Also
    --------
    membership : the same for the known items.
    plot_membership : the probabilities as stacked bars.

    Notes
    -----
    The components of draw t are matched with the clusters of the partition by the known items, as in
    :func:`membership`. With pi_t(c) the component that is matched with cluster c, and r_tjk the probability of
    component k for the new item j in draw t of weight w_t,

        P(j in c) = sum_t w_t r_{t,j,pi_t(c)} 1{sum_{i in c} p_{t,i,pi_t(c)} >= 1/2}.

    The rest is the probability of a component without a cluster, such as an empty one: "elsewhere". Known items that
    are passed as new ones get their memberships.

    Examples
    --------
    Two components have means -1 and 1, standard deviation 1 and equal weights, and their names switch in the second
    draw. An observation y is from the first one with probability 1 / (1 + exp(2 y)).

    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> def allocations(y):
    ...     p = 1 / (1 + np.exp(2 * np.array(y)))
    ...     return pc.as_allocation_probabilities([np.stack([p, 1 - p], axis=1), np.stack([1 - p, p], axis=1)])
    >>> known, new = allocations([-2.0, -1.0, 0.4, 1.5]), allocations([-6.0, 0.0])
    >>> predicted = pc.predict_allocation(new, known, partition=[0, 0, 1, 1])
    >>> predicted.probabilities.sel(consensus_cluster=0).values.round(5)
    array([0.99999, 0.5    ])
    """
    partition = partition_of(known, partition)
    new, known = as_draws(new), as_draws(known)
    soft, allocated = new.as_soft("`new`"), known.as_soft("`known`")
    if soft.n_components != allocated.n_components:
        raise ValueError(
            f"`new` must have the {allocated.n_components} components of `known`; got {soft.n_components}."
        )
    order = new.samples.order_of(known.samples, "`new`")
    if new.samples.is_weighted and not np.allclose(new.weights[order], known.weights, rtol=SAME, atol=0):
        raise ValueError("`new` must have the weights of `known`, or none; got others.")
    labels, given = known.as_labels(partition), known.items.in_order(partition)
    check_size(new.n_items, labels)
    values, errors = of_components(known, soft.take(order), labels)
    return as_membership(values, errors, values.argmax(axis=1).astype(np.int32), new.items, partition, given)
