"""Particles: the posterior as a few weighted partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus import display
from posterior_consensus.arguments import as_generator, check_count, check_seconds
from posterior_consensus.consensus.greedy import greedy
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.executor import Executor
from posterior_consensus.expectation import Floats, loss_matrix
from posterior_consensus.losses import PartitionLoss, as_loss, loss_attrs, loss_from
from posterior_consensus.partitions import canonical_labels
from posterior_consensus.progress import track
from posterior_consensus.similarity import posterior_similarity_matrix
from posterior_consensus.sources.containers import Stored, as_json, names_from_json, stored, without_cluster_names
from posterior_consensus.sources.labels import as_partition_draws
from posterior_consensus.views.particle_chains import judged, visits
from posterior_consensus.views.particle_search import ParticleSearch, Placed

_STORED_SAMPLE = {name: f"particle_{name}" for name in ("sample", "chain", "draw", "weight")}
_STORED_CHAIN = {"chain": "particle_chain_name"}


@dataclass(frozen=True, eq=False, repr=False)
class Particles(Stored):
    """The few weighted partitions that are nearest to the posterior; made by :func:`particles`, heaviest first.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (particle, n_items), dtype int32
    weights, weights_mcse : xarray.DataArray of shape (particle,)
        Posterior probability of each particle's region, the draws that are nearest to it, and its Monte Carlo
        standard error.
    distance, distance_mcse : float
        Mean over the draws of the loss of the nearest particle, in the loss's unit: the Wasserstein distance, if the
        loss is a metric.
    expected_loss : xarray.DataArray of shape (particle,)
        Mean loss of each particle over the draws of its region.
    assignment : xarray.DataArray of shape (sample,), dtype int32
        The particle nearest to each draw, with coordinates ``chain``, ``draw`` and ``weight``.
    by_chain : xarray.DataArray of shape (chain, particle)
        Each chain's share of its draws in each region; NaN for a chain without weight.
    path : xarray.Dataset
        ``distance`` and ``mcse`` over ``n_particles``, from one on.
    loss : PartitionLoss
    status : {"one answer", "several answers", "chains in different modes"}
    chains : tuple
        Names of the chains that belong to particles; empty unless the status says that there are some.
    verdict : str
        What to report.
    """

    partitions: xr.DataArray
    weights: xr.DataArray
    weights_mcse: xr.DataArray
    distance: float
    distance_mcse: float
    expected_loss: xr.DataArray
    assignment: xr.DataArray
    by_chain: xr.DataArray
    path: xr.Dataset
    loss: PartitionLoss
    status: str
    chains: tuple[Any, ...]
    verdict: str

    @property
    def n_particles(self) -> int:
        """Number of particles."""
        return len(self.partitions)

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each particle."""
        return (self.partitions.max(str(self.partitions.dims[1])) + 1).rename("n_clusters")

    @property
    def _items(self) -> xr.DataArray:
        return self.partitions[0].reset_coords(drop=True)

    def meet(self) -> xr.DataArray:
        """Classes of items that all particles keep together, numbered by first appearance, shape (n_items,)."""
        _, classes = np.unique(self.partitions.values, axis=1, return_inverse=True)
        return self._items.copy(data=canonical_labels(classes.ravel())).rename("meet")

    def losses(self) -> xr.DataArray:
        """Loss of each particle as an estimate of each other, shape (particle, particle_bis)."""
        draws = as_partition_draws(self.partitions.values)
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

        0 where its company is the same in both [1]_. For Binder's loss it is half the cost of its pairs. Of a
        ratio, the denominator is that of all items. A loss with a maximum, minimum or root of B and C in its numerator
        is refused.

        References
        ----------
        .. [1] Meila (2007), Journal of Multivariate Analysis 98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013
        """
        for name, value in (("k", k), ("other", other)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < self.n_particles:
                raise ValueError(f"`{name}` must be a particle from 0 to {self.n_particles - 1}; got {value!r}.")
        if not set(self.loss.numerator) <= {"top", "A", "B", "C"}:
            raise ValueError(
                "`contributions` needs a loss that is a sum over items; "
                f"loss {self.loss.name!r} is {self.loss.formula}."
            )
        one, two = self.partitions.values[k], self.partitions.values[other]
        n = one.size
        h = self.loss.h(n)
        per_item = h[1:] / np.arange(1, n + 1)  # by the size of a cell
        cells = np.unique(one.astype(np.int64) * n + two, return_inverse=True)[1].ravel()
        sizes = {"A": np.bincount(cells)[cells], "B": np.bincount(one)[one], "C": np.bincount(two)[two]}
        sizes["top"] = np.full(n, n)
        shares = sum(weight * per_item[sizes[term] - 1] for term, weight in self.loss.numerator.items())
        total = float(np.sum(shares))
        whole = float(self.losses()[k, other])
        scale = whole / total if self.loss.denominator and total > 0 else self.loss.scale(n)
        return self._items.copy(data=np.asarray(scale * shares)).rename("contribution")

    def similarity(self, draws: Any, k: int) -> xr.DataArray:
        """Posterior similarity matrix of the draws in one particle's region.

        Parameters
        ----------
        draws : PartitionDraws or anything :func:`as_partition_draws` takes
            Those that the particles are of.
        k : int
            Number of the particle, from 0.

        Returns
        -------
        xarray.DataArray of shape (n_items, n_items)

        Raises
        ------
        ValueError
            If there is no such particle, or these are other draws.
        """
        draws = as_partition_draws(draws)
        if draws.n_draws != self.assignment.size:
            raise ValueError(f"`draws` must be those of the particles, {self.assignment.size}; got {draws.n_draws}.")
        if k not in range(self.n_particles):
            raise ValueError(f"`k` must be a particle from 0 to {self.n_particles - 1}; got {k!r}.")
        return posterior_similarity_matrix(draws.take(np.flatnonzero(self.assignment.values == k)))

    def to_dataset(self) -> xr.Dataset:
        """Particles and all that belongs to them as a Dataset that any file format holds."""
        measure = {"loss": self.loss.name, "unit": self.loss.unit}
        variables: dict[str, Any] = {
            "particle_partition": self.partitions,
            "particle_weight_of": self.weights,
            "particle_weight_mcse": self.weights_mcse,
            "particle_distance": ((), self.distance, measure),
            "particle_distance_mcse": ((), self.distance_mcse, measure),
            "particle_expected_loss": self.expected_loss,
            "particle_assignment": self.assignment.rename(_STORED_SAMPLE),
            "particle_by_chain": (("particle_chain_name", "particle"), self.by_chain.values),
            "particle_path": self.path["distance"],
            "particle_path_mcse": self.path["mcse"],
        }
        attrs = {
            "particle_chains": as_json(self.by_chain["chain"].values.tolist()),
            "particle_status": self.status,
            "particle_verdict": self.verdict,
            "particle_chains_apart": as_json(self.chains),
        }
        return stored(self._items, variables, attrs | loss_attrs(self.loss, "particle_"))

    @classmethod
    def _restored(cls, dataset: xr.Dataset) -> Self:
        own, attrs = without_cluster_names(dataset), dataset.attrs
        names = list(names_from_json(attrs["particle_chains"]))
        return cls(
            partitions=own["particle_partition"].rename("partitions"),
            weights=own["particle_weight_of"].rename("weights"),
            weights_mcse=own["particle_weight_mcse"].rename("weights_mcse"),
            distance=float(own["particle_distance"]),
            distance_mcse=float(own["particle_distance_mcse"]),
            expected_loss=own["particle_expected_loss"].rename("expected_loss"),
            assignment=own["particle_assignment"]
            .rename({new: old for old, new in _STORED_SAMPLE.items()})
            .rename("assignment"),
            by_chain=_by_chain(own["particle_by_chain"].values, names),
            path=xr.Dataset({"distance": own["particle_path"], "mcse": own["particle_path_mcse"]}),
            loss=loss_from(attrs, "particle_"),
            status=attrs["particle_status"],
            chains=names_from_json(attrs["particle_chains_apart"]),
            verdict=attrs["particle_verdict"],
        )

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each particle: weight and its error, clusters, expected loss in its region, loss from the first."""
        return pd.DataFrame(
            {
                "weight": self.weights.values,
                "mcse": self.weights_mcse.values,
                "n_clusters": self.n_clusters.values,
                "expected_loss": self.expected_loss.values,
                "from_first": self.losses().values[:, 0],
            },
            index=pd.RangeIndex(self.n_particles, name="particle"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        distance = display.with_error(display.quantity(self.distance, self.loss.unit), self.distance_mcse)
        before = "; ".join(f"{k + 1}: {value:.4g}" for k, value in enumerate(self.path["distance"].values))
        kind = "distance" if self.loss.metric else "mean loss"
        facts = [
            ("verdict", self.verdict),
            (kind, f"{distance} ({self.loss.name})"),
            ("path", before),
            ("together", f"{int(self.meet().max()) + 1} sets of items that all particles keep"),
        ]
        return f"Particles: {display.counted(self.n_particles, 'particle')}, {self.status}", facts, self.to_dataframe()


def particles(
    draws: Any,
    n_particles: int = 2,
    *,
    loss: str | PartitionLoss | None = None,
    max_particles: int = 8,
    n_starts: int = 20,
    seconds: float | None = None,
    random_seed: int | np.random.Generator | np.random.SeedSequence | None = None,
    progressbar: bool = True,
) -> Particles:
    """Find the few weighted partitions that are nearest to the posterior.

    Parameters
    ----------
    draws : PartitionDraws or anything :func:`as_partition_draws` takes
    n_particles : int
        Number of partitions.
    loss : str or PartitionLoss, optional
        By default "vi". Any loss is taken; the distance is one of Wasserstein's if it is a metric.
    max_particles : int
        Largest number that is tried.
    n_starts : int
        Number of runs from draws at random, for each number of particles.
    seconds : float, optional
        Time after which the best so far is taken. What is found then depends on the machine.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same answer, for any number of threads.
    progressbar : bool
        Whether to show progress where the work takes more than a second.

    Returns
    -------
    Particles

    Raises
    ------
    ValueError
        If there are more particles than distinct draws, or an argument is out of its range.

    Notes
    -----
    With weights w_t of the draws z_t, the particles S_1, ..., S_L minimise

        D = sum_t w_t min_l d(S_l, z_t),

    which under a metric d is the Wasserstein distance between the posterior and the nearest distribution on L
    partitions; that distribution gives S_l the weight of its region, the draws that it is nearest to [1]_.

    References
    ----------
    .. [1] Balocchi and Wade (2025), Interpreting uncertainty in Bayesian cluster analysis.
       https://doi.org/10.48550/arXiv.2506.16295

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 60 + [[0, 1, 2, 0, 1, 2]] * 40
    >>> found = pc.particles(draws, 2, random_seed=1, progressbar=False)
    >>> found.weights.values
    array([0.6, 0.4])
    >>> found.distance
    0.0
    """
    draws = as_partition_draws(draws)
    record = as_loss("vi" if loss is None else loss)
    check_count("max_particles", max_particles)
    check_count("n_starts", n_starts)
    if seconds is not None:
        check_seconds(seconds)
    rng = as_generator(random_seed)
    asked = check_count("n_particles", n_particles)
    consensus = greedy(
        draws.without_zero_weights(),
        record,
        n_clusters=None,
        max_clusters=None,
        rng=rng,
        progressbar=False,
        seconds=seconds,
    )
    with Executor(-1, seconds) as executor:
        search = ParticleSearch(draws, record, executor)
        if asked > search.n_distinct:
            raise ValueError(
                f"`n_particles` must be at most the number of distinct draws, {search.n_distinct}; got {asked}."
            )
        path = [search.one(consensus.labels)]
        for _ in track(range(1, asked), "Particles", progressbar=progressbar):
            path.append(search.one_more(path[-1], n_starts, rng))
    return _as_particles(draws, record, path)


def _as_particles(draws: PartitionDraws, loss: PartitionLoss, path: list[Placed]) -> Particles:
    """Dress the last of a path in the user's coordinates, its particles by their weights."""
    near = np.stack([loss_matrix(placed.partitions, draws, loss).min(axis=0) for placed in path])
    distances, errors = draws.samples.mean(near), draws.samples.mcse(near)
    losses = loss_matrix(path[-1].partitions, draws, loss)
    weights = draws.samples.mean(_indicators(losses))
    order = np.argsort(-weights, kind="stable")
    losses, weights = losses[order], weights[order]
    indicators = _indicators(losses)
    weights_mcse = draws.samples.mcse(indicators)
    found = visits(draws, indicators)
    status, chains, verdict = judged(found, weights, weights_mcse)
    within = draws.samples.mean(losses * indicators) / weights
    measure = {"loss": loss.name, "unit": loss.unit}
    numbers = {"n_particles": np.arange(1, len(path) + 1)}
    coords = draws.samples.coords | {"weight": ("sample", draws.weights)}
    return Particles(
        partitions=draws.items.partition_array(path[-1].partitions[order], "particle", "partitions"),
        weights=xr.DataArray(weights, dims="particle", name="weights"),
        weights_mcse=xr.DataArray(weights_mcse, dims="particle", name="weights_mcse"),
        distance=float(distances[-1]),
        distance_mcse=float(errors[-1]),
        expected_loss=xr.DataArray(within, dims="particle", name="expected_loss", attrs=measure),
        assignment=xr.DataArray(losses.argmin(axis=0).astype(np.int32), coords, "sample", "assignment"),
        by_chain=_by_chain(found.shares, found.names),
        path=xr.Dataset(
            {"distance": ("n_particles", distances, measure), "mcse": ("n_particles", errors, measure)}, numbers
        ),
        loss=loss,
        status=status,
        chains=chains,
        verdict=verdict,
    )


def _indicators(losses: Floats) -> Floats:
    """Which particle is nearest to each draw (L, N), the first of equals."""
    return (np.arange(len(losses))[:, np.newaxis] == losses.argmin(axis=0)).astype(np.float64)


def _by_chain(shares: Floats, names: list[Any]) -> xr.DataArray:
    return xr.DataArray(shares, {"chain": names}, ("chain", "particle"), "by_chain")
