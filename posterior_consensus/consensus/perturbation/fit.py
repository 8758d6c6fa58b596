"""random_perturbation_em(): the partition around which the draws are noise, with the noise and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus import display
from posterior_consensus.consensus.perturbation.em import Draws
from posterior_consensus.consensus.perturbation.search import Search, search
from posterior_consensus.consensus.selection import as_generator, check_count
from posterior_consensus.draws import PartitionDraws, as_partition_draws
from posterior_consensus.groups import stored
from posterior_consensus.partitions import distinct_rows

Noise = Literal["shared", "per_draw"]

NOISES = ("shared", "per_draw")


@dataclass(frozen=True, eq=False, repr=False)
class PerturbationFit:
    """A random perturbation model fitted to draws; made by :func:`random_perturbation_em`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Most probable cluster of each item, numbered by first appearance from 0.
    memberships : xarray.DataArray of shape (n_items, n_clusters), dtype float64
        Probability of each cluster, over the dimension ``consensus_cluster``; rows sum to 1.
    shares : xarray.DataArray of shape (n_clusters,), dtype float64
        Probability that an item is in the cluster before any draw is seen.
    draw_noise : xarray.DataArray of shape (n_draws,), dtype float64
        Probability that an item's label in a draw is random, with the coordinates ``chain`` and ``draw``; the same in
        all of them unless each had its own.
    log_likelihood : float
        Lower bound of the log-likelihood.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound and logarithm of the prior after each step of the last climb; it does not fall.
    converged : bool
        Whether no membership changed by more than 1e-6 in the last step.
    objectives : ndarray of shape (n_starts,), dtype float64
        Where the starts ended; what they have in common with `trace` is the scale if the draws are few.
    """

    labels: xr.DataArray
    memberships: xr.DataArray
    shares: xr.DataArray
    draw_noise: xr.DataArray
    log_likelihood: float
    trace: np.ndarray
    converged: bool
    objectives: np.ndarray

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones left out."""
        return int(self.labels.max()) + 1

    @property
    def noise(self) -> float:
        """Probability that an item's label in a draw is random, the mean over draws by their weights."""
        return float(self.draw_noise.weighted(self.draw_noise["weight"]).mean())

    @property
    def item_error(self) -> xr.DataArray:
        """Probability of each item to be in another cluster than its most probable one."""
        return (1 - self.memberships.max("consensus_cluster")).rename("item_error")

    @property
    def error_rate(self) -> float:
        """Expected share of the items in a wrong cluster, if the model holds."""
        return float(self.item_error.mean())

    def to_dataset(self) -> xr.Dataset:
        """Everything but the trace as a Dataset that any file format holds."""
        variables = {
            "labels": self.labels,
            "memberships": self.memberships,
            "shares": self.shares,
            "item_error": self.item_error,
            "draw_noise": self.draw_noise,
            "noise": self.noise,
            "error_rate": self.error_rate,
            "log_likelihood": self.log_likelihood,
        }
        attrs = {"perturbation_steps": len(self.trace), "perturbation_converged": int(self.converged)}
        named = {f"perturbation_{name}": variable for name, variable in variables.items()}
        return stored(self.labels, named, attrs)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each cluster: its size, its share, and the expected share of its items that belong elsewhere."""
        errors = self.item_error.values
        labels = self.labels.values
        sizes = np.bincount(labels)
        return pd.DataFrame(
            {"size": sizes, "share": self.shares.values, "error_rate": np.bincount(labels, errors) / sizes},
            index=pd.RangeIndex(self.n_clusters, name="cluster"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        clusters = f"{self.n_clusters} cluster{'s' * (self.n_clusters > 1)}"
        noise = self.draw_noise.values
        spread = f", from {display.number(noise.min())} to {display.number(noise.max())}" if np.ptp(noise) else ""
        facts = [
            ("noise", f"{display.number(self.noise)} of the labels are random{spread}"),
            ("expected error", f"{self.error_rate:.2g} of the items, if the model holds"),
            ("log-likelihood", display.number(self.log_likelihood)),
            ("draws", str(self.draw_noise.size)),
            ("steps", f"{len(self.trace)}{'' if self.converged else ', not converged'}"),
        ]
        return f"PerturbationFit: {self.labels.size} items ({self.labels.dims[0]}) in {clusters}", facts, self.to_dataframe()

    def __repr__(self) -> str:
        return display.as_text(*self._parts())

    def _repr_html_(self) -> str:
        return display.as_html(*self._parts())


def random_perturbation_em(
    draws: Any,
    n_clusters: int | None = None,
    *,
    max_clusters: int | None = None,
    noise: Noise = "shared",
    n_starts: int = 10,
    max_steps: int = 300,
    random_seed: int | np.random.Generator | np.random.SeedSequence | None = None,
) -> PerturbationFit:
    """Fit the random perturbation model: every draw is one partition, each of its labels random with some probability.
    """
    draws = as_partition_draws(draws)
    for name, value in (("n_clusters", n_clusters), ("max_clusters", max_clusters)):
        if value is not None:
            check_count(name, value)
    rng = as_generator(random_seed)
    return as_fit(draws, fit(draws, n_clusters, max_clusters, noise, n_starts, max_steps, rng))


def fit(
    draws: PartitionDraws,
    n_clusters: int | None,
    max_clusters: int | None,
    noise: Noise,
    n_starts: int,
    max_steps: int,
    rng: np.random.Generator,
) -> Search:
    """Fit the model with as many clusters as are asked for, or as the evidence wants."""
    if noise not in NOISES:
        raise ValueError(f"`noise` must be one of {', '.join(map(repr, NOISES))}; got {noise!r}.")
    most = int(draws.n_clusters.max())
    return search(
        model_draws(draws, noise),
        min(n_clusters or max_clusters or most, most),
        fewer=n_clusters is None and distinct_rows(draws.labels).size > 1,  # equal draws show no noise
        n_starts=check_count("n_starts", n_starts),
        most_steps=check_count("max_steps", max_steps),
        rng=rng,
    )


def model_draws(draws: PartitionDraws, noise: Noise) -> Draws:
    """The draws as the model sees them; those of weight 0 take no part.

    Weighted draws tell as much as 1 / sum(weights^2) equal ones (Kish).
    """
    used = draws if draws.weights.all() else draws.take(np.flatnonzero(draws.weights))
    counts = used.weights / np.square(used.weights).sum()
    return Draws(used.labels, used.starts, used.n_clusters, counts, noise == "per_draw")


def as_fit(draws: PartitionDraws, found: Search) -> PerturbationFit:
    """Dress a search's end in the user's coordinates, the clusters in the order of their first items."""
    state = found.state
    memberships = state.memberships[:, state.by_first_item]
    labels = memberships.argmax(axis=1).astype(np.int32)
    dims = (draws.item_dim, "consensus_cluster")
    noise = np.full(draws.n_draws, np.nan)
    noise[draws.weights > 0] = state.parameters.noise
    sample = {name: ("sample", getattr(draws, name)) for name in ("chain", "draw")} | {"weight": ("sample", draws.weights)}
    return PerturbationFit(
        labels=draws.item_array(labels, "labels"),
        memberships=xr.DataArray(memberships, dims=dims, coords=draws.item_coords, name="memberships"),
        shares=xr.DataArray(state.parameters.shares[state.by_first_item], dims="consensus_cluster", name="shares"),
        draw_noise=xr.DataArray(noise, dims="sample", coords=sample, name="draw_noise"),
        log_likelihood=state.log_likelihood,
        trace=np.array(found.trace),
        converged=found.converged,
        objectives=np.array(found.objectives),
    )
