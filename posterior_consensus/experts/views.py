"""expert_views(): views of experts, their reliability, and the clusters of each view; with its result."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import betaincinv, digamma, softmax

from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.experts.constraints import Constraints, Features, as_constraints, as_features, names_coordinate
from posterior_consensus.experts.inference import FeatureMemberships, Fit, FreeMemberships, Inference, Memberships
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_between, check_count, warn
from posterior_consensus.runtime.executor import Executor, n_threads, one_blas_thread
from posterior_consensus.runtime.progress import track

MEASURES = ["sensitivity", "specificity"]
_NAMES = {"expert": "expert_names", "measure": "expert_measures", "parameter": "expert_parameters"}
_COEFFICIENTS = ("mean", "sd", "intercept", "intercept_sd", "centre", "scale")
_CLEAR = 3.0  # posterior standard deviations beyond chance
_MOST_NAMED = 12  # experts in a sentence
_SHARE = 0.01  # of the items, below which a cluster is not counted


@dataclass(frozen=True, eq=False, repr=False)
class ExpertViews(Stored):
    """Views of experts, their reliability, and the clusters of each view; made by :func:`expert_views`.

    Every view is the most probable view of at least one expert. Views are numbered by decreasing number of experts,
    then by their first expert.

    Attributes
    ----------
    labels : xarray.DataArray of shape (view, n_items), dtype int32
        Most probable cluster of each item in each view, numbered by first appearance.
    memberships : xarray.DataArray of shape (view, n_items, cluster)
        Probability of each cluster, at the posterior means of the coefficients if there are features.
    view_probability : xarray.DataArray of shape (expert, view)
        Probability of each view for each expert. The rest to 1 belongs to views that are the most probable view of no
        expert.
    reliability : xarray.DataArray of shape (expert, measure, parameter)
        Posterior of sensitivity and of specificity, beta distributions with parameters ``a`` and ``b``.
    n_statements : xarray.DataArray of shape (expert,), dtype int64
        Number of constraints of each expert.
    bound : float
        Evidence lower bound, in nats.
    trace : xarray.DataArray of shape (round,)
        The bound after each round of the best run; it never falls.
    start_bounds : xarray.DataArray of shape (start,)
        The final bound of each start.
    coefficients : xarray.Dataset or None
        ``mean`` and ``sd`` (view, feature, cluster) of the coefficients of the features, standardized with ``centre``
        and ``scale`` (feature,), and ``intercept`` (view, cluster). None without features.
    """

    _figure = "experts.plot_experts"

    labels: xr.DataArray = field(metadata=stored_as.array("expert_labels", of_items=True))
    memberships: xr.DataArray = field(metadata=stored_as.array("expert_memberships"))
    view_probability: xr.DataArray = field(metadata=stored_as.array("expert_view_probability", in_words=_NAMES))
    reliability: xr.DataArray = field(metadata=stored_as.array("expert_reliability", in_words=_NAMES))
    n_statements: xr.DataArray = field(metadata=stored_as.array("expert_n_statements", in_words=_NAMES))
    bound: float = field(metadata=stored_as.number("expert_bound"))
    trace: xr.DataArray = field(metadata=stored_as.array("expert_trace"))
    start_bounds: xr.DataArray = field(metadata=stored_as.array("expert_start_bounds"))
    coefficients: xr.Dataset | None = field(
        default=None, metadata=stored_as.table("expert_{}", _COEFFICIENTS, in_words={"feature": "expert_features"})
    )

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.labels)

    @property
    def expert_view(self) -> xr.DataArray:
        """Most probable view of each expert, shape (expert,)."""
        return self.view_probability.argmax("view").rename("expert_view")

    @property
    def sensitivity(self) -> xr.DataArray:
        """Posterior mean of each expert's probability of a must-link for a pair that the view co-clusters."""
        return self._mean("sensitivity")

    @property
    def specificity(self) -> xr.DataArray:
        """Posterior mean of each expert's probability of a cannot-link for a pair that the view separates."""
        return self._mean("specificity")

    def _mean(self, measure: str) -> xr.DataArray:
        own = self.reliability.sel(measure=measure, drop=True)
        return (own[..., 0] / own.sum("parameter")).reset_coords(drop=True).rename(measure)

    def intervals(self, prob: float = 0.9) -> xr.Dataset:
        """Compute central posterior intervals of sensitivity and specificity.

        Parameters
        ----------
        prob : float
            Probability of an interval given the clusters. Variational intervals ignore the uncertainty of the clusters.

        Returns
        -------
        xarray.Dataset
            ``sensitivity`` and ``specificity``, each of shape (expert, end), with the attribute ``prob``.

        Raises
        ------
        ValueError
            If `prob` is not between 0 and 1.
        """
        check_between("prob", prob, 1)
        coords = {"expert": self.reliability["expert"], "end": ["lower", "upper"]}
        ends = np.array([(1 - prob) / 2, (1 + prob) / 2])
        first, second = self.reliability.values.T[..., np.newaxis]  # (measure, expert, 1)
        bounds = betaincinv(first, second, ends)
        return xr.Dataset(
            {name: (("expert", "end"), bounds[at]) for at, name in enumerate(MEASURES)}, coords, {"prob": prob}
        )

    @property
    def expert_weight(self) -> xr.DataArray:
        """Weight of an expert's constraints, shape (expert,): expected log odds of sensitivity plus specificity.

        With sensitivity s and specificity c, log(s c / ((1 - s) (1 - c))) is the difference between a must-link and a
        cannot-link in the log odds that two items are co-clustered. 0 means chance.
        """
        odds = digamma(self.reliability[..., 0]) - digamma(self.reliability[..., 1])
        return odds.sum("measure").rename("expert_weight")

    @property
    def informative(self) -> xr.DataArray:
        """Whether sensitivity plus specificity exceeds 1, the value by chance, by three standard deviations."""
        a, b = self.reliability.values[..., 0], self.reliability.values[..., 1]
        surplus = (a / (a + b)).sum(axis=1) - 1
        variance = (a * b / ((a + b) ** 2 * (a + b + 1))).sum(axis=1)
        return self.n_statements.copy(data=surplus > _CLEAR * np.sqrt(variance)).rename("informative")

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each view with at least 1% of the items, shape (view,)."""
        sizes = self.memberships.sum(str(self.labels.dims[1]))
        return (sizes >= _SHARE * self.labels.shape[1]).sum(self.memberships.dims[-1:]).rename("n_clusters")

    @property
    def verdict(self) -> str:
        """The experts of each view, and the experts no better than chance, in words."""
        views, informative = self.expert_view.values, self.informative.values
        names = [str(name) for name in self.view_probability["expert"].values]
        parts = []
        for view in range(self.n_views):
            sharing = [name for name, at, own in zip(names, views, informative, strict=True) if at == view and own]
            if sharing:
                clusters = display.counted(int(self.n_clusters[view]), "cluster")
                parts.append(f"view {view} of {clusters}: {display.listed(sharing, _MOST_NAMED)}")
        chance = [name for name, own in zip(names, informative, strict=True) if not own]
        if not parts:
            return (
                "No expert is more informative than chance about any partition that the constraints and features "
                "support."
            )
        number = "One view is shared" if len(parts) == 1 else f"{len(parts)} views differ"
        verdict = f"{number}; {'; '.join(parts)}."
        return verdict + (f" No more than chance: {display.listed(chance, _MOST_NAMED)}." if chance else "")

    def predict(self, features: Any) -> xr.Dataset:
        """Predict the clusters of new items from their features, in each view.

        Parameters
        ----------
        features : array_like, DataFrame or DataArray of shape (m, D)
            The same features as in the fit, matched by name if both have names, else by position.

        Returns
        -------
        xarray.Dataset
            ``memberships`` (view, item, cluster) and ``labels`` (view, item).

        Raises
        ------
        ValueError
            If the fit has no features, or the features have another number or other names.
        """
        if self.coefficients is None:
            raise ValueError("`predict` needs a fit with features; this one is without.")
        given = as_features(features)
        own = self.coefficients
        if given.values.shape[1] != own.sizes["feature"]:
            raise ValueError(f"`features` must have {own.sizes['feature']} columns; got {given.values.shape[1]}.")
        names, theirs = own["feature"].values.tolist(), list(given.names)
        order = list(range(len(names)))
        if names != theirs and order not in (names, theirs):
            if len(set(theirs)) < len(theirs) or set(theirs) != set(names):
                raise ValueError(f"`features` must have the columns {names}, each of them once; got {theirs}.")
            order = [theirs.index(name) for name in names]
        values = (given.values[:, order] - own["centre"].values) / own["scale"].values
        logits = np.einsum("nd,vdk->vnk", values, own["mean"].values) + own["intercept"].values[:, np.newaxis]
        soft = softmax(logits, axis=-1)
        return given.items.dataset(
            {"memberships": soft, "labels": soft.argmax(axis=2).astype(np.int32)}, ("view", ..., "cluster")
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the experts.

        Returns
        -------
        pandas.DataFrame
            A row for each expert: view with its probability, sensitivity, specificity, weight, number of constraints.
        """
        return pd.DataFrame(
            {
                "view": self.expert_view.values,
                "probability": self.view_probability.max("view").values,
                "sensitivity": self.sensitivity.values,
                "specificity": self.specificity.values,
                "weight": self.expert_weight.values,
                "statements": self.n_statements.values,
            },
            index=pd.Index(self.view_probability["expert"].values, name="expert"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        highest = float(self.start_bounds.max())
        best = int((self.start_bounds.values > highest - 1e-4 * abs(highest)).sum())
        items = display.counted(self.labels.shape[1], "item")
        given = (
            "no features"
            if self.coefficients is None
            else display.counted(self.coefficients.sizes["feature"], "feature")
        )
        lines = [
            ("verdict", self.verdict),
            ("items", f"{items}, {given}"),
            ("bound", f"{self.bound:.6g}; {best} of {self.start_bounds.size} starts end at the best, {highest:.6g}"),
        ]
        title = f"ExpertViews: {display.counted(self.n_views, 'view')} of "
        return title + display.counted(self.n_statements.size, "expert"), lines, self.to_dataframe()


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
        The same seed gives the same result.
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
        memberships = FeatureMemberships(given.standardized()[0], n_clusters)
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
        labels=items.array(labels, "labels", ("view", ...)),
        memberships=items.array(np.stack(soft), "memberships", ("view", ..., "cluster")),
        view_probability=xr.DataArray(fit.view[:, kept], experts, ("expert", "view"), "view_probability"),
        reliability=reliability,
        n_statements=xr.DataArray(
            np.bincount(constraints.expert, minlength=constraints.n_experts), experts, ("expert",), "n_statements"
        ),
        bound=fit.bound,
        trace=xr.DataArray(fit.trace, dims="round", name="trace"),
        start_bounds=xr.DataArray(start_bounds, dims="start", name="start_bounds"),
        coefficients=None if given is None else _predictors(given, memberships, fit, kept, orders),
    )


def _by_appearance(soft: Floats) -> Any:
    """Order of the clusters by first appearance among the most probable ones, then the empty clusters."""
    appearing, first = np.unique(soft.argmax(axis=1), return_index=True)
    appearing = appearing[np.argsort(first)]
    return np.concatenate([appearing, np.setdiff1d(np.arange(soft.shape[1]), appearing)])


def _predictors(given: Features, memberships: Any, fit: Fit, kept: Any, orders: list[Any]) -> xr.Dataset:
    """Coefficients that predict the clusters of new items."""
    parts = [memberships.coefficients(fit.parameters[view]) for view in kept]
    means, sds = (
        np.stack([one[which][:, order] for one, order in zip(parts, orders, strict=True)]) for which in (0, 1)
    )
    _, centre, scale = given.standardized()
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
