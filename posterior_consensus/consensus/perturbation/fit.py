"""random_perturbation_em(): the random perturbation model fitted to draws, with its noise and memberships."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.perturbation.draws import draws_differ, is_large, model_draws
from posterior_consensus.consensus.perturbation.em import FittedModel, fitted_model
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, check_count
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.sources.conversion import as_draws

Noise = Literal["shared", "per_draw"]

NOISES = ("shared", "per_draw")


@dataclass(frozen=True, eq=False, repr=False)
class PerturbationFit(HasLabels, Stored):
    """A random perturbation model fitted to draws; made by :func:`random_perturbation_em`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Most probable cluster of each item, numbered by first appearance from 0.
    memberships : xarray.DataArray of shape (n_items, n_clusters), dtype float64
        Probability of each cluster, over the dimension ``consensus_cluster``; rows sum to 1.
    shares : xarray.DataArray of shape (n_clusters,), dtype float64
        Mean membership in each cluster.
    draw_noise : xarray.DataArray of shape (n_draws,), dtype float64
        Probability that an item's label in a draw is random, with the coordinates ``chain`` and ``draw``. Equal in all
        draws if the noise is shared; NaN for draws of weight 0.
    log_likelihood : float
        Lower bound of the log-likelihood.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound plus log prior after each step of the last ascent; it never falls.
    converged : bool
        Whether no membership changed by more than 1e-6 in the last step.
    objectives : ndarray of shape (n_starts,), dtype float64
        Final objective of each start, as in `trace`, on the sample used for the starts.
    """

    labels: xr.DataArray = field(metadata=stored_as.array("perturbation_labels", of_items=True))
    memberships: xr.DataArray = field(
        metadata=stored_as.array("perturbation_memberships", without=("consensus_cluster",))
    )
    shares: xr.DataArray = field(metadata=stored_as.array("perturbation_shares", without=("consensus_cluster",)))
    draw_noise: xr.DataArray = field(metadata=stored_as.array("perturbation_draw_noise"))
    log_likelihood: float = field(metadata=stored_as.number("perturbation_log_likelihood"))
    trace: np.ndarray = field(metadata=stored_as.values("perturbation_trace", "perturbation_step"))
    converged: bool = field(metadata=stored_as.flag("perturbation_converged"))
    objectives: np.ndarray = field(metadata=stored_as.values("perturbation_objectives", "perturbation_start"))

    _also_stored: ClassVar = {
        "item_error": stored_as.array("perturbation_item_error"),
        "noise": stored_as.number("perturbation_noise"),
        "error_rate": stored_as.number("perturbation_error_rate"),
    }

    @property
    def n_clusters(self) -> int:
        """Number of clusters, without empty ones."""
        return int(self.labels.max()) + 1

    @property
    def noise(self) -> float:
        """Probability that an item's label in a draw is random, the mean over draws by their weights."""
        return float(self.draw_noise.weighted(self.draw_noise["weight"]).mean())

    @property
    def item_error(self) -> xr.DataArray:
        """Probability of each item to be in another cluster than in `labels`."""
        return (1 - self.memberships.max(self.memberships.dims[-1:])).rename("item_error")

    @property
    def error_rate(self) -> float:
        """Expected share of the items in a wrong cluster, if the model holds."""
        return float(self.item_error.mean())

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster: its size, its share, and the expected share of its items that belong elsewhere.
        """
        errors = self.item_error.values
        labels = self.labels.values
        sizes = np.bincount(labels)
        return pd.DataFrame(
            {"size": sizes, "share": self.shares.values, "error_rate": np.bincount(labels, errors) / sizes},
            index=pd.RangeIndex(self.n_clusters, name="cluster"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        clusters = f"{self.n_clusters} cluster{'s' * (self.n_clusters > 1)}"
        least, most = float(self.draw_noise.min()), float(self.draw_noise.max())  # draws of weight 0 are NaN
        spread = f", from {display.number(least)} to {display.number(most)}" if most > least else ""
        lines = [
            ("noise", f"{display.number(self.noise)} of the labels are random{spread}"),
            ("expected error", f"{self.error_rate:.2g} of the items, if the model holds"),
            ("log-likelihood", display.number(self.log_likelihood)),
            (Samples.along(self.draw_noise).words.draws, str(self.draw_noise.size)),
            ("steps", f"{len(self.trace)}{'' if self.converged else ', not converged'}"),
        ]
        title = f"PerturbationFit: {display.counted_items(self.labels.size, self.labels.dims[0])} in {clusters}"
        return title, lines, self.to_dataframe()


@dataclass(frozen=True, kw_only=True)
class PerturbationInfo(FitInfo):
    """Record of "rpm_em", with `noise`, `error_rate` and `log_likelihood` of a :class:`PerturbationFit`."""

    noise: float
    error_rate: float
    log_likelihood: float


def random_perturbation_em(
    draws: Any,
    n_clusters: int | None = None,
    *,
    max_clusters: int | None = None,
    noise: Noise = "shared",
    n_starts: int = 10,
    max_steps: int = 300,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PerturbationFit:
    """Fit the random perturbation model, in which every draw is a copy of one partition with some random labels.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition. For allocation probabilities, the sampled labels are used.
    n_clusters : int, optional
        Number of clusters, at most the largest number in any draw; empty clusters are removed. By default it is
        estimated: the smallest cluster is removed as long as that raises the log-likelihood.
    max_clusters : int, optional
        Largest number of clusters if the number is estimated.
    noise : {"shared", "per_draw"}
        Whether all draws have the same noise, or each its own.
    n_starts : int
        Number of draws to start from, sampled by their weights.
    max_steps : int
        Largest number of steps from the best start.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PerturbationFit
        The partition, with the noise and the probabilities of clusters.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed, or the draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    consensus_partition : with ``method="rpm_em"`` the partition alone, with its expected loss.
    fit_modes : a mixture of several such models.

    Notes
    -----
    Item i is in cluster k with probability pi_k. Draw t keeps this label with probability 1 - p, and otherwise takes
    any of L labels. L is the number of clusters of the draw, or `n_clusters` (by default the number of the median draw)
    if that is larger. Then the labels are renamed by an unknown matching s_t, with all matchings equally probable [1]_.
    The steps raise a lower bound of the log-likelihood, plus weak log priors (Dirichlet(1.5) on pi, density 1 - p on
    the noise), in turn over

    - q(s_t), in proportion to exp(sum_i r_i(s_t(z_ti)) log(1 + L (1 - p) / p)), summed over exactly for up to ten
      clusters, and its best matching (Hungarian algorithm) for more;
    - p, from the expected share of labels that agree, and pi, from the mean memberships;
    - the memberships r_ik, in proportion to pi_k exp(sum_t w_t P(s_t(z_ti) = k) log(1 + L (1 - p) / p)).

    Starts first use the best matchings. The start with the largest objective is kept. With more than 500 items or 200
    draws, starts use a sample. The returned memberships come from one more step, in which an item does not influence
    its own matchings; otherwise they would be overconfident. Weighted draws count as 1 / sum(w^2) draws.

    The model assumes that noise is independent and equal for all items and wrong clusters. In a posterior, items
    between two clusters often move jointly. `error_rate` is then too small. It measures how well N independent draws
    determine the partition, not the uncertainty of the posterior. With one cluster, `error_rate` is 0 even if the noise
    is near 1 and the draws are uninformative.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]]
    >>> fit = pc.consensus.random_perturbation_em(draws, 2, random_seed=1)
    >>> fit.labels.values
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> round(fit.noise, 2)
    0.12
    """
    given = as_draws(draws)
    draws = given.in_fixed_order()
    check_clusters(n_clusters, max_clusters)
    rng = as_generator(random_seed)
    task = Task(rng, n_clusters, max_clusters, progressbar)
    found = as_fit(draws, fit(draws, task, noise, n_starts, max_steps))
    return replace(found, draw_noise=found.draw_noise.isel(sample=given.own_order))


def rpm_em(
    draws: PartitionDraws, loss: Loss, task: Task, *, noise: Noise = "shared", n_starts: int = 10, max_steps: int = 300
) -> Candidate:
    """Fit the random perturbation model and return its most probable clusters; the loss is ignored.

    Parameters
    ----------
    noise : {"shared", "per_draw"}
        Whether all draws have the same noise, or each its own.
    n_starts : int
        Number of draws to start from.
    max_steps : int
        Largest number of steps from the best start.

    Notes
    -----
    :func:`random_perturbation_em` returns all results of the model, and describes `objective` and `trace`. Empty
    clusters are removed, so the result may have fewer than `n_clusters`.
    """
    fitted = as_fit(draws, fit(draws, task, noise, n_starts, max_steps))
    info = PerturbationInfo.of(
        fitted.trace.tolist(),
        fitted.converged,
        noise=fitted.noise,
        error_rate=fitted.error_rate,
        log_likelihood=fitted.log_likelihood,
        objectives=fitted.objectives.tolist(),
    )
    return Candidate(fitted.labels.values, info)


def fit(draws: PartitionDraws, task: Task, noise: Noise, n_starts: int, max_steps: int) -> FittedModel:
    """Fit the model with the requested number of clusters, or with an estimated number."""
    if noise not in NOISES:
        raise ValueError(f"`noise` must be one of {', '.join(map(repr, NOISES))}; got {noise!r}.")
    used = draws.without_zero_weights()
    widest = int(used.n_clusters.max())
    most = min(task.most or widest, widest)
    with waiting("Random perturbation model", progressbar=task.progressbar):
        return fitted_model(
            model_draws(used, task.n_clusters, per_draw=noise == "per_draw", in_blocks=is_large(used.backend, most)),
            most,
            fewer=task.n_clusters is None and draws_differ(used.backend),  # equal draws have no noise
            n_starts=check_count("n_starts", n_starts),
            most_steps=check_count("max_steps", max_steps),
            rng=task.rng,
        )


def as_fit(draws: PartitionDraws, found: FittedModel) -> PerturbationFit:
    """Build the record with the user's coordinates, with clusters in the order of their first items."""
    state = found.state
    memberships = found.memberships
    labels = memberships.argmax(axis=1).astype(np.int32)
    noise = np.full(draws.n_draws, np.nan)
    noise[draws.weights > 0] = state.parameters.noise
    return PerturbationFit(
        labels=draws.items.array(labels, "labels"),
        memberships=draws.items.array(memberships, "memberships", (..., "consensus_cluster")),
        shares=xr.DataArray(memberships.mean(axis=0), dims="consensus_cluster", name="shares"),
        draw_noise=draws.samples.array(noise, "draw_noise"),
        log_likelihood=state.log_likelihood,
        trace=np.array(found.trace),
        converged=found.converged,
        objectives=np.array(found.objectives),
    )
