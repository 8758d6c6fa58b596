"""expert_views(): who shares a view, who is reliable, and the clusters of each view."""

import warnings
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.experts.constraints import Constraints, names_coordinate
from posterior_consensus.experts.door import as_constraints
from posterior_consensus.experts.features import Features, as_features
from posterior_consensus.experts.inference import Fit, Inference
from posterior_consensus.experts.memberships import FeatureMemberships, Floats, FreeMemberships, Memberships
from posterior_consensus.experts.record import MEASURES, ExpertViews
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.executor import Executor, n_threads, one_blas_thread
from posterior_consensus.runtime.progress import track


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
    """Find which experts share a view, how reliable each is, and the clusters of each view.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    features : array_like, DataFrame or DataArray of shape (n_items, D), optional
        Features of the items, which are standardized. Without them the memberships are free, and items that no
        constraint names are in no cluster more than another.
    n_clusters : int
        Most clusters of a view. More than are needed stay empty.
    max_views : int, optional
        Most views; by default half the number of experts, at least two if there are two experts.
    n_starts : int
        Number of random starts; the one with the largest bound is kept.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result, for any number of threads.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    ExpertViews

    Raises
    ------
    ValueError
        If an item that is named has no features, or an argument is out of its range.

    See Also
    --------
    as_constraints : constraints from tables, arrays, partitions and posterior draws.
    plot_expert_views : the experts by view and reliability.

    Notes
    -----
    Expert m has a view c_m, and says "must" of two items that share a cluster in it with probability a_m, the
    sensitivity, and "cannot" of two that do not with probability b_m, the specificity [1]_. Both have the prior
    Beta(10, 1). The views' probabilities are broken off a stick (a Dirichlet process, concentration 1). In view g the
    clusters follow from the features x_i,

        P(z_i = k) = exp(x_i' w_k + u_k) / sum_l exp(x_i' w_l + u_l),

    with standard normal coefficients and intercepts. Without features the clusters of a view have shares with a
    symmetric Dirichlet prior of total 1, under which those that are not needed stay empty. The evidence lower bound of
    this model is raised by closed forms for experts and sticks, in turn with L-BFGS-B steps on the coefficients,
    15 in a round, or with closed forms for the memberships, also from the partition that greedy search finds best. It
    never falls, and a start ends where a round raises it by less than a millionth. Two views of the best start become
    one where this raises it further.

    The sum over earlier sticks in the views' probabilities is over all of them; the authors' program leaves out one.
    Variational posteriors are too narrow where clusters are not sure, and all of the intervals are given the clusters.
    An expert whose constraints no view explains is put into any view with a weight near 0.

    References
    ----------
    .. [1] Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), Multiple clustering views from multiple uncertain
       experts, ICML. https://proceedings.mlr.press/v70/chang17a.html

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> one, other = np.repeat([0, 1, 2], 10), np.tile([0, 1], 15)
    >>> said = pc.experts.as_constraints({"Ann": one, "Bo": one, "Cy": other, "Di": other}, n_pairs=200, random_seed=1)
    >>> found = pc.experts.expert_views(said, n_clusters=3, random_seed=1, progressbar=False)
    >>> found.verdict
    '2 views differ; view 0 of 3 clusters: Ann, Bo; view 1 of 2 clusters: Cy, Di.'
    >>> bool(np.all(found.labels[0] == one))
    True
    """
    given = None if features is None else as_features(features)
    said = as_constraints(constraints, None if given is None else given.items)
    check_count("n_clusters", n_clusters)
    check_count("n_starts", n_starts)
    if max_views is None:
        max_views = min(said.n_experts, max(2, (said.n_experts + 1) // 2))
    n_views = min(check_count("max_views", max_views), said.n_experts)
    rng = as_generator(random_seed)
    memberships: Memberships
    if given is None:
        memberships = FreeMemberships(said.items.n_items, n_clusters)
    else:
        memberships = FeatureMemberships(given.standardised()[0], n_clusters)
    inference = Inference(said.statements, memberships, n_views)
    fits: list[Fit] = []
    with Executor(-1, None) as executor, one_blas_thread():
        # Free memberships of several experts' views at once settle into a mixture of them more often.
        calls = [(own, executor.stop, given is None and k % 2 == 1) for k, own in enumerate(rng.spawn(n_starts))]
        at_once = n_threads()
        for first in track(range(0, n_starts, at_once), "Views of experts", progressbar=progressbar):
            fits += executor.results(inference.run, calls[first : first + at_once])
            if executor.stopped:
                warnings.warn(f"The search was interrupted after {len(fits)} of {n_starts} starts.", stacklevel=2)
                break
        best = max(fits, key=lambda fit: fit.bound)
        (best,) = executor.results(inference.joined, [(best, rng, executor.stop)])
    return _as_views(said, given, memberships, best, np.array([fit.bound for fit in fits]))


def _as_views(
    said: Constraints,
    given: Features | None,
    memberships: Memberships,
    fit: Fit,
    start_bounds: Floats,
) -> ExpertViews:
    """Dress the best fit in the user's names, with views that some expert has, and clusters by first appearance."""
    found, first, sharing = np.unique(fit.view.argmax(axis=1), return_index=True, return_counts=True)
    kept = found[np.lexsort((first, -sharing))]
    soft = [memberships.soft(fit.parameters[view]) for view in kept]
    orders = [_by_appearance(one) for one in soft]
    soft = [one[:, order] for one, order in zip(soft, orders, strict=True)]
    items, experts = said.items, {"expert": names_coordinate(said.experts)}
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
            np.bincount(said.expert, minlength=said.n_experts), experts, ("expert",), "n_statements"
        ),
        bound=fit.bound,
        trace=xr.DataArray(fit.trace, dims="round", name="trace"),
        start_bounds=xr.DataArray(start_bounds, dims="start", name="start_bounds"),
        coefficients=None if given is None else _coefficients(given, memberships, fit, kept, orders),
    )


def _by_appearance(soft: Floats) -> Any:
    """Order of the clusters by first appearance among the items' most probable ones, then those that are nobody's."""
    appearing, first = np.unique(soft.argmax(axis=1), return_index=True)
    appearing = appearing[np.argsort(first)]
    return np.concatenate([appearing, np.setdiff1d(np.arange(soft.shape[1]), appearing)])


def _coefficients(given: Features, memberships: Any, fit: Fit, kept: Any, orders: list[Any]) -> xr.Dataset:
    """What predicts clusters of new items."""
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
