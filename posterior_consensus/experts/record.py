"""ExpertViews, the result of expert_views()."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import digamma, softmax
from scipy.stats import beta

from posterior_consensus.experts.features import as_features
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import check_between

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

    def intervals(self, prob: float | None = None) -> xr.Dataset:
        """Compute central posterior intervals of sensitivity and specificity.

        Parameters
        ----------
        prob : float, optional
            Probability of an interval given the clusters. Variational intervals ignore the uncertainty of the clusters.
            By default ArviZ's setting ``rcParams["stats.ci_prob"]``.

        Returns
        -------
        xarray.Dataset
            ``sensitivity`` and ``specificity``, each of shape (expert, end), with the attribute ``prob``.

        Raises
        ------
        ValueError
            If `prob` is not between 0 and 1.
        """
        if prob is None:
            from arviz_base import rcParams

            prob = rcParams["stats.ci_prob"]
        check_between("prob", prob, 1)
        coords = {"expert": self.reliability["expert"], "end": ["lower", "upper"]}
        ends = np.array([(1 - prob) / 2, (1 + prob) / 2])
        first, second = self.reliability.values.T[..., np.newaxis]  # (measure, expert, 1)
        bounds = beta.ppf(ends, first, second)
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
        return (sizes >= _SHARE * self.labels.shape[1]).sum("cluster").rename("n_clusters")

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
        dims = ("view", given.items.dim)
        return xr.Dataset(
            {"memberships": ((*dims, "cluster"), soft), "labels": (dims, soft.argmax(axis=2).astype(np.int32))},
            given.items.coords,
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
        facts = [
            ("verdict", self.verdict),
            ("items", f"{items}, {given}"),
            ("bound", f"{self.bound:.6g}; {best} of {self.start_bounds.size} starts end at the best, {highest:.6g}"),
        ]
        title = f"ExpertViews: {display.counted(self.n_views, 'view')} of "
        return title + display.counted(self.n_statements.size, "expert"), facts, self.to_dataframe()
