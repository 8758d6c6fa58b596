"""predict_allocation(): clusters of new items, given the known items and each new item's own value."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.answers.membership import (
    FEWEST_EFFECTIVE,
    Matched,
    Membership,
    as_membership,
    check_size,
    matched_components,
    of_matched,
)
from posterior_consensus.ensemble.allocations import AllocationProbabilities
from posterior_consensus.ensemble.autocorrelation import effective_size
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.importance import most_pareto_k, smoothed
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, Samples
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws, partition_of

OLD_DATA = "the old data; y_new does not update the parameters"
NEW_DATA = "the old data and the new item's own value"

_NEARLY_EQUAL = 0.5  # share of effective draws that weights leave, from which the shape of their tail does not matter


def predict_allocation(new: Any, known: Any, *, partition: Any = None, log_density: Any = None) -> Membership:
    """Compute the posterior probability that each new item belongs to each cluster of a partition of the known items.

    With the log densities of the new items, each item's probability conditions on the old data and its own value.
    Without them, it conditions on the old data only; y_new does not update the parameters.

    Parameters
    ----------
    new : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Allocation probabilities of shape (n_draws, m, K) for m new items, such as
        ``allocation_probabilities(model, idata, observed={"y": y_new})``. They need the draws and components of
        `known`; draws are paired by chain and draw.
    known : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes
        Allocation probabilities of shape (n_draws, n, K) for the n observed items.
    partition : result object, DataArray or label vector of shape (n,), optional
        Partition of the known items, typically the consensus; by default that of `known` if these are a summary.
    log_density : array_like of shape (n_draws, m) or (n_chains, n, m), optional
        Log density of each new item in each draw, log p(y_new | theta_t) = log sum_k w_tk f_k(y_new | theta_t), up to a
        constant for each item. A DataArray is paired by chain and draw. By default those that
        ``allocation_probabilities(..., observed=)`` computed, if `new` comes from there.

    Returns
    -------
    Membership
        Probabilities of shape (m, n_clusters + 1); `cluster` is the most probable column of each new item.
        `conditional_on` states what they condition on, and `ess` has the effective sample sizes of the items' weights.
        The probabilities of an item are NaN if its size is below 100 or the tail of its weights too heavy; `reason`
        states which.

    Raises
    ------
    TypeError
        If `new` or `known` have no allocation probabilities.
    ValueError
        If their draws, weights or components differ, the partition does not label the known items, a cluster is named
        "elsewhere", or `log_density` has another shape, other draws or values that are not finite.
    MemoryError
        If the result takes more than the memory budget.

    See Also
    --------
    membership : the same for the known items.
    plot_membership : the probabilities as stacked bars.

    Notes
    -----
    The components of draw t are matched with the clusters of the partition by the known items, as in
    :func:`membership`. Let pi_t(c) be the component matched with cluster c. Let p_tik and r_tjk be the probabilities of
    component k for the known item i and the new item j in draw t of weight w_t. Then

        P(j in c) = sum_t v_tj r_{t,j,pi_t(c)} 1{sum_{i in c} p_{t,i,pi_t(c)} >= 1/2}.

    "elsewhere" has the remaining probability, of components without a cluster.

    The draws are from p(theta | y). The posterior given a new value, p(theta | y, y_j), is proportional to
    p(theta | y) p(y_j | theta). With log densities, the weights v_tj are therefore w_t p(y_j | theta_t), normalized,
    their tail smoothed by a Pareto distribution [1]_. Each new item updates the parameters alone, without the others.

    An item far from all known ones is most probable in draws of a wide component, and few draws have nearly all weight.
    Their effective sample size is Kish's number, 1 / sum_t v_tj^2, times the share of effective among all draws for the
    mean of v_tj. The tail is too heavy if its Pareto shape exceeds min(1 - 1 / log10(N), 0.7) for N draws, unless
    Kish's number is at least half of its value for the weights w_t. In either case, run the sampler with the new items,
    and use :func:`membership`.

    Without log densities, v_tj = w_t. Known items that are passed as new items then get the result of
    :func:`membership`.

    References
    ----------
    .. [1] Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25(72), 1-58.
       https://jmlr.org/papers/v25/19-556.html

    Examples
    --------
    Two components have means -1 and 1, standard deviation 1 and equal weights. Their names switch in the second draw.
    An observation y belongs to the first component with probability 1 / (1 + exp(2 y)).

    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> def allocations(y):
    ...     p = 1 / (1 + np.exp(2 * np.array(y)))
    ...     return pc.as_allocation_probabilities([np.stack([p, 1 - p], axis=1), np.stack([1 - p, p], axis=1)])
    >>> known, new = allocations([-2.0, -1.0, 0.4, 1.5]), allocations([-6.0, 0.0])
    >>> predicted = pc.predict_allocation(new, known, partition=[0, 0, 1, 1])
    >>> predicted.probabilities.sel(consensus_cluster=0).values.round(5)
    array([0.99999, 0.5    ])
    >>> predicted.conditional_on
    'the old data; y_new does not update the parameters'
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
    density = soft.log_density if log_density is None else _log_density(log_density, new)
    matched, soft = matched_components(known, labels), soft.take(order)
    if density is None:
        values, errors = of_matched(matched, soft, known.samples)
        errors = known.samples.probability_errors(values, errors)
        of_new: dict[str, Any] = {"conditional_on": OLD_DATA}
    else:
        values, errors, sizes = _given_each(matched, soft, density[order], known.samples)
        of_new = {"conditional_on": NEW_DATA, "ess": new.items.array(sizes, "ess")}
    cluster = np.where(np.isnan(values).any(axis=1), values.shape[1] - 1, values.argmax(axis=1))
    return as_membership(values, errors, cluster.astype(np.int32), new.items, partition, given, **of_new)


def _log_density(given: Any, new: PartitionDraws) -> Floats:
    """Log densities (n_draws, m) of the new items, in the order of their draws and items."""
    if isinstance(given, xr.DataArray) and new.items.dim in given.dims:
        given = given.transpose(..., new.items.dim)
        own = Items.along(given, new.items.dim)
        if own.n_items == new.n_items:
            given = given.isel({new.items.dim: own.order_of(new.items, "log_density")})
    values = new.samples.in_order(given, "`log_density`", more=True).astype(np.float64)
    if values.shape != (new.n_draws, new.n_items):
        raise ValueError(
            f"`log_density` must have one value for each draw and new item, of shape {(new.n_draws, new.n_items)}; got "
            f"shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("`log_density` must be finite; got NaN or infinity.")
    return values


def _given_each(
    matched: Matched, soft: AllocationProbabilities, log_density: Floats, samples: Samples
) -> tuple[Floats, Floats, Floats]:
    """Memberships of each item over the draws with its own weights, their errors, and the weights' effective sizes."""
    n_items = log_density.shape[1]
    values = np.full((n_items, matched.order.shape[1] + 1), np.nan)
    errors, sizes = values.copy(), np.full(n_items, np.nan)
    limit = most_pareto_k(int(np.count_nonzero(samples.weights)))
    for j in range(n_items):
        own = smoothed(samples, log_density[:, j])
        if own.pareto_k > limit and own.samples.effective_draws < _NEARLY_EQUAL * samples.effective_draws:
            continue
        sizes[j] = effective_weights(own.samples)
        if sizes[j] >= FEWEST_EFFECTIVE:
            value, error = of_matched(matched, soft.of_items(np.array([j])), own.samples)
            values[j], errors[j] = value[0], own.samples.probability_errors(value, error, sizes[j])[0]
    return values, errors, sizes


def effective_weights(samples: Samples) -> float:
    """Effective sample size of the weights of correlated draws; NaN if a chain has fewer than four draws."""
    if samples.shortest < FEWEST_DRAWS:
        return np.nan
    chains = samples.by_chain(samples.weights)[np.newaxis]
    share = float(effective_size(chains)[0]) / chains.size
    return samples.effective_draws * min(1.0, share)
