"""Where new observations belong: probabilities of the consensus clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.sources.door import as_draws


def predict_allocation(new: Any, known: Any, *, partition: Any) -> xr.Dataset:
    """Compute the probability that each new observation belongs to each cluster of a partition.

    Parameters
    ----------
    new : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Of m new items, ``allocation_probabilities(model, idata, observed={"y": y_new})``: from the same draws and
        components as `known`.
    known : the same
        Of the n items that were observed.
    partition : result object, DataArray or label vector of shape (n_items,)
        Of the known items, typically the consensus.

    Returns
    -------
    xarray.Dataset
        ``probability`` (item, consensus_cluster); ``new_cluster_probability`` (item,) of being with no known item; and
        ``cluster`` (item,), the most probable one, -1 for a new one. Probabilities of an item sum to one.

    Raises
    ------
    TypeError
        If `new` or `known` have no allocation probabilities.
    ValueError
        If their draws or components differ, or the partition is not one of the known items.

    Notes
    -----
    In draw t a new item joins component k with probability r_tk. It then belongs to the cluster of a random one of the
    n_tk known items in k, n_tkc of which are in cluster c of the partition:

        P(c) = sum_t w_t sum_k r_tk n_tkc / n_tk,

    where components without known items count for the new cluster. Known items have their sampled components.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> known = pc.as_allocation_probabilities([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> new = pc.as_allocation_probabilities([[[0.2, 0.7, 0.1]]])
    >>> pc.predict_allocation(new, known, partition=[0, 1])["probability"].values
    array([[0.2, 0.7]])
    """
    new, known = as_draws(new), as_draws(known)
    soft, allocated = new.as_soft("`new`"), known.as_soft("`known`")
    if (new.n_draws, soft.n_components) != (known.n_draws, allocated.n_components):
        raise ValueError(
            "`new` must have the draws and components of `known`; got "
            f"{new.n_draws} x {soft.n_components} and {known.n_draws} x {allocated.n_components}."
        )
    labels = known.as_labels(partition)
    members = np.eye(labels.max() + 1)[labels]
    probability = np.zeros((new.n_items, members.shape[1]))
    for weight, joining, components in zip(known.weights, soft.probabilities, allocated.components, strict=True):
        counts = np.zeros((allocated.n_components, members.shape[1]))
        np.add.at(counts, components, members)
        total = counts.sum(axis=1, keepdims=True)
        probability += weight * joining @ np.divide(counts, total, out=counts, where=total > 0)
    left = np.clip(1.0 - probability.sum(axis=1), 0.0, None)
    best = np.where(probability.max(axis=1) >= left, probability.argmax(axis=1), -1)
    return xr.Dataset(
        {
            "probability": ((new.items.dim, "consensus_cluster"), probability),
            "new_cluster_probability": new.items.array(left, "new_cluster_probability"),
            "cluster": new.items.array(best.astype(np.int32), "cluster"),
        },
        coords=new.items.coords,
    )
