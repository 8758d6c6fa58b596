"""Particles, the result of particles()."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.evaluate.expectation import loss_matrix
from posterior_consensus.evaluate.similarity import posterior_similarity_matrix
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import is_integer
from posterior_consensus.sources.door import as_draws

_STORED_SAMPLE = {name: f"particle_{name}" for name in ("sample", "chain", "draw", "weight")}


@dataclass(frozen=True, eq=False, repr=False)
class Particles(Stored):
    """A few weighted partitions nearest to the posterior, heaviest first; made by :func:`particles`.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (particle, n_items), dtype int32
        A cluster matched with one of the reference has its number; the others have the following numbers. Without a
        reference, clusters are numbered by first appearance.
    weights, weights_mcse, weights_ess : xarray.DataArray of shape (particle,)
        Posterior probability of each particle's region, the draws that are nearest to it, its Monte Carlo standard
        error, and the effective sample size behind that, below 100 of which it is rough.
    mode : xarray.DataArray of shape (particle,), dtype int64
        The mode that each particle belongs to. Modes are numbered by weight, the heaviest 0.
    distance, distance_mcse, distance_ess : float
        Mean over the draws of the loss of the nearest particle, in the loss's unit: the Wasserstein distance, if the
        loss is a metric; its Monte Carlo standard error and effective sample size, below 100 of which that is rough.
    expected_loss : xarray.DataArray of shape (particle,)
        Mean loss of each particle over the draws of its region.
    assignment : xarray.DataArray of shape (sample,), dtype int32
        The particle nearest to each draw, with coordinates ``chain``, ``draw`` and ``weight``.
    by_chain : xarray.DataArray of shape (chain, particle)
        Each chain's share of its draws in each region; NaN for a chain without weight.
    path : xarray.Dataset
        ``distance`` and ``mcse`` over ``n_particles``, from one on.
    loss : PartitionLoss
    status : {"one mode", "several modes", "chains in different modes", "unknown"}
        "unknown" if there are too few effective draws to distinguish one mode from several, if the chains disagree
        although no second mode was found, or if one particle was requested.
    chains : tuple
        Names of the chains that stay in different modes or, if the status is "unknown", in different groups of draws.
    verdict : str
        What to report.
    n_searched : int
        Number of items on which they were searched for: all, or 10,000 of more than 50 million labels. `path` is of
        these items.
    stopped : str
        Why the search ended early: "seconds", "interrupted" for Ctrl-C, or empty.
    draws : PartitionDraws or None
        The draws that the particles are of; None for particles that come back from where they were stored.
    """

    partitions: xr.DataArray = field(metadata=stored_as.array("particle_partition", of_items=True))
    weights: xr.DataArray = field(metadata=stored_as.array("particle_weight_of"))
    weights_mcse: xr.DataArray = field(metadata=stored_as.array("particle_weight_mcse"))
    weights_ess: xr.DataArray = field(metadata=stored_as.array("particle_weight_ess"))
    mode: xr.DataArray = field(metadata=stored_as.array("particle_mode"))
    distance: float = field(metadata=stored_as.number("particle_distance", measured=True))
    distance_mcse: float = field(metadata=stored_as.number("particle_distance_mcse", measured=True))
    distance_ess: float = field(metadata=stored_as.number("particle_distance_ess"))
    expected_loss: xr.DataArray = field(metadata=stored_as.array("particle_expected_loss"))
    assignment: xr.DataArray = field(metadata=stored_as.array("particle_assignment", _STORED_SAMPLE))
    by_chain: xr.DataArray = field(
        metadata=stored_as.array(
            "particle_by_chain", {"chain": "particle_chain_name"}, in_words={"chain": "particle_chains"}
        )
    )
    path: xr.Dataset = field(metadata=stored_as.table({"distance": "particle_path", "mcse": "particle_path_mcse"}))
    loss: PartitionLoss = field(metadata=stored_as.loss("particle_"))
    status: str = field(metadata=stored_as.attribute("particle_status"))
    chains: tuple[Any, ...] = field(metadata=stored_as.names("particle_chains_apart"))
    verdict: str = field(metadata=stored_as.attribute("particle_verdict"))
    n_searched: int = field(metadata=stored_as.attribute("particle_items_searched"))
    stopped: str = field(default="", metadata=stored_as.attribute("particle_stopped"))
    draws: PartitionDraws | None = field(default=None, compare=False)

    @property
    def n_particles(self) -> int:
        """Number of particles."""
        return len(self.partitions)

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each particle."""
        numbers = self._canonical.max(axis=1).astype(np.int32) + 1
        return xr.DataArray(numbers, dims="particle", name="n_clusters")

    @property
    def _canonical(self) -> npt.NDArray[np.int32]:
        """The partitions with clusters numbered by first appearance."""
        return np.stack([canonical_labels(labels) for labels in self.partitions.values])

    @property
    def _items(self) -> xr.DataArray:
        return self.partitions[0].reset_coords(drop=True)

    def meet(self) -> xr.DataArray:
        """Classes of items that all particles co-cluster, numbered by first appearance, shape (n_items,)."""
        _, classes = np.unique(self.partitions.values, axis=1, return_inverse=True)
        return self._items.copy(data=canonical_labels(classes.ravel())).rename("meet")

    def losses(self) -> xr.DataArray:
        """Loss of each particle as an estimate of each other, shape (particle, particle_bis)."""
        draws = PartitionDraws.of(self._canonical)
        return xr.DataArray(loss_matrix(draws.labels, draws, self.loss), dims=("particle", "particle_bis"))

    def contributions(self, k: int, other: int) -> xr.DataArray:
        """Share of each item in the loss between two particles, shape (n_items,); the shares add up to it.

        Parameters
        ----------
        k, other : int
            Numbers of two particles, from 0.

        Returns
        -------
        xarray.DataArray of shape (n_items,), dtype float64
            In the loss's unit.

        Raises
        ------
        ValueError
            If there is no such particle, or the loss is no sum over items.

        Notes
        -----
        With n_k and m_l the sizes of the clusters that an item is in, and n_kl the number of items in both, a sum of h
        over cells is a sum over items of h(n_kl) / n_kl. For the variation of information the share of an item is

            log2(n_k m_l / n_kl^2) / n,

        0 if its co-members are the same in both [1]_. For Binder's loss it is half the cost of its pairs. Of a
        ratio, the denominator is that of all items. A loss with a product or root of sums in its numerator, such as
        "nmi", is refused.

        References
        ----------
        .. [1] Meila (2007), Journal of Multivariate Analysis 98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013
        """
        self._check_number("k", k)
        self._check_number("other", other)
        one, two = self._canonical[[k, other]]
        n = one.size
        per_item = self.loss.h(n)[1:] / np.arange(1, n + 1)  # by the size of a cell
        cells = np.unique(one.astype(np.int64) * n + two, return_inverse=True)[1].ravel()
        terms = {name: per_item[np.bincount(x)[x] - 1] for name, x in (("A", cells), ("B", one), ("C", two))}
        terms["top"] = np.full(n, per_item[-1])
        terms["min(B, C)"], terms["max(B, C)"] = sorted((terms["B"], terms["C"]), key=np.sum)
        if not set(self.loss.numerator) <= set(terms):
            raise ValueError(
                "`contributions` needs a loss that is a sum over items; "
                f"loss {self.loss.name!r} is {self.loss.formula}."
            )
        shares = np.sum([weight * terms[term] for term, weight in self.loss.numerator.items()], axis=0)
        total, whole = float(shares.sum()), float(self.losses()[k, other])
        return self._items.copy(data=shares * (whole / total if whole > 0 else 0.0)).rename("contribution")

    def similarity(self, k: int, draws: Any = None) -> xr.DataArray:
        """Posterior similarity matrix of the draws in one particle's region.

        Parameters
        ----------
        k : int
            Number of the particle, from 0.
        draws : PartitionDraws or any posterior that :func:`summarize` takes, optional
            The draws that the particles are of, for particles that come from where they were stored, without draws.

        Returns
        -------
        xarray.DataArray of shape (n_items, n_items)

        Raises
        ------
        ValueError
            If there is no such particle, draws are needed, or these are others.
        """
        return posterior_similarity_matrix(self.region(k, draws).without_zero_weights())

    def region(self, k: int, draws: Any = None) -> PartitionDraws:
        """Return the draws with those outside of one particle's region at weight 0.

        Any function takes them, so that what it gives is of one mode:
        ``membership(found.region(0), found.partitions[0])``. Draws outside stay, because the standard errors need the
        chains as they ran.

        Parameters
        ----------
        k : int
            Number of the particle, from 0.
        draws : PartitionDraws or any posterior that :func:`summarize` takes, optional
            As for :meth:`similarity`.

        Returns
        -------
        PartitionDraws

        Raises
        ------
        ValueError
            If there is no such particle, draws are needed, these are others, or none of them is in the region.
        """
        self._check_number("k", k)
        if draws is None and self.draws is None:
            raise ValueError(
                "`draws` must be given, the ones that the particles are of: they are not stored with results."
            )
        given = as_draws(self.draws if draws is None else draws)
        given = given.in_order_of(Samples.along(self.assignment), "`draws`")
        weights = np.where(self.assignment.values == k, given.weights, 0.0)
        if not weights.any():
            raise ValueError(f"`k` must be a particle that is nearest to some draws; got {k}, nearest to none.")
        return replace(given, samples=given.samples.weighted(weights))

    def _check_number(self, name: str, k: Any) -> None:
        if not is_integer(k) or not 0 <= k < self.n_particles:
            raise ValueError(f"`{name}` must be a particle from 0 to {self.n_particles - 1}; got {k!r}.")

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each particle: weight and its error, clusters, expected loss in its region, loss from the first."""
        return pd.DataFrame(
            {
                "weight": self.weights.values,
                "mcse": self.weights_mcse.values,
                "mode": self.mode.values,
                "n_clusters": self.n_clusters.values,
                "expected_loss": self.expected_loss.values,
                "from_first": self.losses().values[:, 0],
            },
            index=pd.RangeIndex(self.n_particles, name="particle"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        value = display.quantity(self.distance, self.loss.unit)
        distance = display.with_error(value, self.distance_mcse, self.distance_ess)
        before = "; ".join(f"{k + 1}: {value:.4g}" for k, value in enumerate(self.path["distance"].values))
        kind = "distance" if self.loss.metric else "mean loss"
        n_items = self.partitions.shape[1]
        some = [("items", f"searched on {self.n_searched:,} of {n_items:,}")] if self.n_searched < n_items else []
        facts = [
            ("verdict", self.verdict),
            *some,
            (kind, f"{distance} ({self.loss.name})"),
            ("path", before),
            ("together", f"{int(self.meet().max()) + 1} sets of items that all particles keep"),
        ]
        return f"Particles: {display.counted(self.n_particles, 'particle')}, {self.status}", facts, self.to_dataframe()
