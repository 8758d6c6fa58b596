"""expert_views(): views of experts, their reliability, and the clusters of each view."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.experts.constraints import Constraints, names_coordinate
from posterior_consensus.experts.conversion import as_constraints
from posterior_consensus.experts.features import Features, as_features
from posterior_consensus.experts.inference import Fit, Inference
from posterior_consensus.experts.memberships import FeatureMemberships, Floats, FreeMemberships, Memberships
from posterior_consensus.experts.record import MEASURES, ExpertViews
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.executor import Executor, n_threads, one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.warning import warn


def expert_views(
    constraints: Any,
    features: Any = None,
    *,
    n_clusters: int,
    max_views: int | None = None,
    n_starts: int = 20,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> ExpertViews:
    """Estimate which experts share a view, how reliable each expert is, and the clusters of each view.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    features : array_like, DataFrame or DataArray of shape (n_items, D), optional
        Features of the items, which are standardized. Without features, memberships are free, and items without
        constraints have equal probabilities of all clusters.
    n_clusters : int
        Largest number of clusters of a view; superfluous clusters stay empty.
    max_views : int, optional
        Largest number of views; by default half the number of experts, at least two if there are two experts.
    n_starts : int
        Number of random starts; the one with the largest bound is kept.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result, for any number of threads.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    ExpertViews
        Views and reliability of the experts, and clusters of each view.

    Raises
    ------
    ValueError
        If an item with constraints has no features, or an argument is out of range.

    See Also
    --------
    as_constraints : constraints from tables, arrays, partitions and posterior draws.
    plot_expert_views : the experts by view and reliability.

    Notes
    -----
    Expert m has a view c_m [1]_. For two items that the view co-clusters, the expert states a must-link with
    probability a_m, the sensitivity. For two items in different clusters, the expert states a cannot-link with
    probability b_m, the specificity. Both have the prior Beta(10, 1). Probabilities of views follow stick breaking (a
    Dirichlet process with concentration 1). In each view, the clusters depend on the features x_i,

        P(z_i = k) = exp(x_i' w_k + u_k) / sum_l exp(x_i' w_l + u_l),

    with standard normal coefficients and intercepts. Without features, the clusters of a view have shares with a
    symmetric Dirichlet prior of total 1.

    Closed-form updates of experts and sticks alternate with L-BFGS-B steps on the coefficients, or with closed-form
    updates of the memberships. The evidence lower bound never falls. A start ends if a round raises the bound by less
    than one millionth. Two views of the best start are merged if this raises the bound.

    Variational posteriors are too narrow if clusters are uncertain, and intervals are conditional on the clusters. An
    expert whose constraints no view explains is in any view, with a weight near 0. In the expected log probabilities of
    views, the sum over earlier sticks is complete; the authors' program omits one.

    References
    ----------
    .. [1] Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), Multiple clustering views from multiple uncertain
       experts, ICML. https://proceedings.mlr.press/v70/chang17a.html

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> one, other = np.repeat([0, 1, 2], 10), np.tile([0, 1], 15)
    >>> given = pc.experts.as_constraints({"Ann": one, "Bo": one, "Cy": other, "Di": other}, n_pairs=200, random_seed=1)
    >>> views = pc.experts.expert_views(given, n_clusters=3, random_seed=1, progressbar=False)
    >>> views.verdict
    '2 views differ; view 0 of 3 clusters: Ann, Bo; view 1 of 2 clusters: Cy, Di.'
    >>> bool(np.all(views.labels[0] == one))
    True
    """
    given = None if features is None else as_features(features)
    checked = as_constraints(constraints, None if given is None else given.items)
    check_count("n_clusters", n_clusters)
    check_count("n_starts", n_starts)
    if max_views is None:
        max_views = min(checked.n_experts, max(2, (checked.n_experts + 1) // 2))
    n_views = min(check_count("max_views", max_views), checked.n_experts)
    rng = as_generator(random_seed)
    memberships: Memberships
    if given is None:
        memberships = FreeMemberships(checked.items.n_items, n_clusters)
    else:
        memberships = FeatureMemberships(given.standardised()[0], n_clusters)
    inference = Inference(checked.statements, memberships, n_views)
    fits: list[Fit] = []
    with Executor(-1, None) as executor, one_blas_thread():
        # Free memberships that start from all experts converge to a mixture of views more often.
        calls = [(own, executor.stop, given is None and k % 2 == 1) for k, own in enumerate(rng.spawn(n_starts))]
        at_once = n_threads()
        for first in track(range(0, n_starts, at_once), "Views of experts", progressbar=progressbar):
            fits += executor.results(inference.run, calls[first : first + at_once])
            if executor.stopped:
                warn(f"The search was interrupted after {len(fits)} of {n_starts} starts.")
                break
        best = max(fits, key=lambda fit: fit.bound)
        (best,) = executor.results(inference.joined, [(best, rng, executor.stop)])
    return _as_views(checked, given, memberships, best, np.array([fit.bound for fit in fits]))


def _as_views(
    constraints: Constraints,
    given: Features | None,
    memberships: Memberships,
    fit: Fit,
    start_bounds: Floats,
) -> ExpertViews:
    """Build the record with the user's names, with views that experts have, and clusters by first appearance."""
    used, first, sharing = np.unique(fit.view.argmax(axis=1), return_index=True, return_counts=True)
    kept = used[np.lexsort((first, -sharing))]
    soft = [memberships.soft(fit.parameters[view]) for view in kept]
    orders = [_by_appearance(one) for one in soft]
    soft = [one[:, order] for one, order in zip(soft, orders, strict=True)]
    items, experts = constraints.items, {"expert": names_coordinate(constraints.experts)}
    labels = np.stack([canonical_labels(one.argmax(axis=1)) for one in soft])
    reliability = xr.DataArray(
        np.stack([fit.sensitivity, fit.specificity], axis=1),
        experts | {"measure": MEASURES, "parameter": ["a", "b"]},
        ("expert", "measure", "parameter"),
        "reliability",
    )
    return ExpertViews(
        labels=items.partition_array(labels, "view", "labels"),
        memberships=xr.DataArray(np.stack(soft), items.coords, ("view", items.dim, "cluster"), "memberships"),
        view_probability=xr.DataArray(fit.view[:, kept], experts, ("expert", "view"), "view_probability"),
        reliability=reliability,
        n_statements=xr.DataArray(
            np.bincount(constraints.expert, minlength=constraints.n_experts), experts, ("expert",), "n_statements"
        ),
        bound=fit.bound,
        trace=xr.DataArray(fit.trace, dims="round", name="trace"),
        start_bounds=xr.DataArray(start_bounds, dims="start", name="start_bounds"),
        coefficients=None if given is None else _coefficients(given, memberships, fit, kept, orders),
    )


def _by_appearance(soft: Floats) -> Any:
    """Order of the clusters by first appearance among the most probable ones, then the empty clusters."""
    appearing, first = np.unique(soft.argmax(axis=1), return_index=True)
    appearing = appearing[np.argsort(first)]
    return np.concatenate([appearing, np.setdiff1d(np.arange(soft.shape[1]), appearing)])


def _coefficients(given: Features, memberships: Any, fit: Fit, kept: Any, orders: list[Any]) -> xr.Dataset:
    """Coefficients that predict the clusters of new items."""
    parts = [memberships.coefficients(fit.parameters[view]) for view in kept]
    means, sds = (
        np.stack([one[which][:, order] for one, order in zip(parts, orders, strict=True)]) for which in (0, 1)
    )
    _, centre, scale = given.standardised()
    return xr.Dataset(
        {
            "mean": (("view", "feature", "cluster"), means[:, :-1]),
            "sd": (("view", "feature", "cluster"), sds[:, :-1]),
            "intercept": (("view", "cluster"), means[:, -1]),
            "intercept_sd": (("view", "cluster"), sds[:, -1]),
            "centre": ("feature", centre),
            "scale": ("feature", scale),
        },
        {"feature": names_coordinate(given.names)},
    )
