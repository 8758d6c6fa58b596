"""random_perturbation_em(): the partition around which the draws are noise, with the noise and what it leaves open."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.perturbation.draws import differ, is_large, model_draws
from posterior_consensus.consensus.perturbation.search import Search, search
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, check_count
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.sources.door import as_draws

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
        Probability that an item's label in a draw is random, with the coordinates ``chain`` and ``draw``; the same in
        all of them unless each had its own; NaN for those of weight 0.
    log_likelihood : float
        Lower bound of the log-likelihood.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound and logarithm of the prior after each step of the last climb; it does not fall.
    converged : bool
        Whether no membership changed by more than 1e-6 in the last step.
    objectives : ndarray of shape (n_starts,), dtype float64
        Where the starts ended, as in `trace`, but on the sample they are tried on.
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
        least, most = float(self.draw_noise.min()), float(self.draw_noise.max())  # of the draws that have a weight
        spread = f", from {display.number(least)} to {display.number(most)}" if most > least else ""
        facts = [
            ("noise", f"{display.number(self.noise)} of the labels are random{spread}"),
            ("expected error", f"{self.error_rate:.2g} of the items, if the model holds"),
            ("log-likelihood", display.number(self.log_likelihood)),
            ("draws", str(self.draw_noise.size)),
            ("steps", f"{len(self.trace)}{'' if self.converged else ', not converged'}"),
        ]
        title = f"PerturbationFit: {self.labels.size} items ({self.labels.dims[0]}) in {clusters}"
        return title, facts, self.to_dataframe()


@dataclass(frozen=True, kw_only=True)
class PerturbationInfo(FitInfo):
    """Record of "rpm_em": `noise`, `error_rate` and `log_likelihood` are those of a :class:`PerturbationFit`."""

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
    """Fit the random perturbation model: every draw is one partition, with some labels at random and its own names.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Of allocation probabilities the sampled labels are used.
    n_clusters : int, optional
        Number of clusters, at most the largest number in any draw; clusters without items are left out. By default it
        is found: clusters are left out, the smallest first, as long as that raises the log-likelihood.
    max_clusters : int, optional
        Largest number of clusters if the number is estimated.
    noise : {"shared", "per_draw"}
        Whether all draws are equally noisy, or each has a noise of its own, which tells good draws from bad.
    n_starts : int
        Number of draws, taken at random by their weights, to start from.
    max_steps : int
        Largest number of steps from the best of them.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PerturbationFit

    Raises
    ------
    ValueError, TypeError
        If an argument's value is not among those allowed, or the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    consensus_partition : with ``method="rpm_em"`` the partition alone, with its expected loss.
    fit_modes : draws around several partitions.

    Notes
    -----
    Item i has the cluster k with probability pi_k. Draw t keeps it with probability 1 - p and else takes any of L
    labels. L is the draw's number of clusters, or `n_clusters` (by default the median draw's number) if that is larger.
    Then the labels are renamed by an unknown matching s_t, all equally probable [1]_. The steps raise a lower bound of
    the log-likelihood (and the logarithm of weak priors, Dirichlet(1.5) on pi and 1 - p on the noise) in turn over

    - q(s_t), in proportion to exp(sum_i r_i(s_t(z_ti)) log(1 + L (1 - p) / p)), summed over exactly for up to ten
      clusters, and its best matching (Hungarian algorithm) for more;
    - p, from the expected share of labels that agree, and pi, from the mean memberships;
    - the memberships r_ik, in proportion to pi_k exp(sum_t w_t P(s_t(z_ti) = k) log(1 + L (1 - p) / p)).

    The starts climb with the best matchings first. The start of the largest value is kept, which needs no knowledge of
    the truth. With more than 500 items or 200 draws, starts are tried on a sample of those. The memberships returned
    come from one more step, in which an item has no say in its own matchings; without it they would be too sure.
    Weighted draws count as 1 / sum(w^2) equal ones.

    The noise hits all items and all wrong clusters alike and independently. Draws of a posterior are not quite so:
    items between two clusters move together. `error_rate` then is too small, and says how well N independent draws
    determine the partition, not how uncertain the posterior is. A fit of one cluster has no other to be wrong in: its
    `error_rate` is 0 even where the noise is near 1 and the draws are uninformative.

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
    draws = as_draws(draws)
    check_clusters(n_clusters, max_clusters)
    rng = as_generator(random_seed)
    task = Task(rng, n_clusters, max_clusters, progressbar)
    return as_fit(draws, fit(draws, task, noise, n_starts, max_steps))


def rpm_em(
    draws: PartitionDraws, loss: Loss, task: Task, *, noise: Noise = "shared", n_starts: int = 10, max_steps: int = 300
) -> Candidate:
    """Take the most probable clusters of the random perturbation model, whatever the loss.

    Parameters
    ----------
    noise : {"shared", "per_draw"}
        Whether all draws are equally noisy, or each has a noise of its own.
    n_starts : int
        Number of draws to start from.
    max_steps : int
        Largest number of steps from the best of them.

    Notes
    -----
    :func:`random_perturbation_em` returns all results of the model; `objective` and `trace` are those of its climb.
    Clusters without items are omitted, so that the result may have fewer than `n_clusters`.
    """
    found = as_fit(draws, fit(draws, task, noise, n_starts, max_steps))
    info = PerturbationInfo.of(
        found.trace.tolist(),
        found.converged,
        noise=found.noise,
        error_rate=found.error_rate,
        log_likelihood=found.log_likelihood,
        objectives=found.objectives.tolist(),
    )
    return Candidate(found.labels.values, info)


def fit(draws: PartitionDraws, task: Task, noise: Noise, n_starts: int, max_steps: int) -> Search:
    """Fit the model with as many clusters as are requested, or as the draws support."""
    if noise not in NOISES:
        raise ValueError(f"`noise` must be one of {', '.join(map(repr, NOISES))}; got {noise!r}.")
    used = draws.without_zero_weights()
    widest = int(used.n_clusters.max())
    most = min(task.most or widest, widest)
    with waiting("Random perturbation model", progressbar=task.progressbar):
        return search(
            model_draws(used, task.n_clusters, per_draw=noise == "per_draw", in_blocks=is_large(used.drawn, most)),
            most,
            fewer=task.n_clusters is None and differ(used.drawn),  # equal draws show no noise
            n_starts=check_count("n_starts", n_starts),
            most_steps=check_count("max_steps", max_steps),
            rng=task.rng,
        )


def as_fit(draws: PartitionDraws, found: Search) -> PerturbationFit:
    """Dress a search's end in the user's coordinates, the clusters in the order of their first items."""
    state = found.state
    memberships = found.memberships
    labels = memberships.argmax(axis=1).astype(np.int32)
    dims = (draws.items.dim, "consensus_cluster")
    noise = np.full(draws.n_draws, np.nan)
    noise[draws.weights > 0] = state.parameters.noise
    sample = draws.samples.coords_and_weights
    return PerturbationFit(
        labels=draws.items.array(labels, "labels"),
        memberships=xr.DataArray(memberships, dims=dims, coords=draws.items.coords, name="memberships"),
        shares=xr.DataArray(memberships.mean(axis=0), dims="consensus_cluster", name="shares"),
        draw_noise=xr.DataArray(noise, dims="sample", coords=sample, name="draw_noise"),
        log_likelihood=state.log_likelihood,
        trace=np.array(found.trace),
        converged=found.converged,
        objectives=np.array(found.objectives),
    )
