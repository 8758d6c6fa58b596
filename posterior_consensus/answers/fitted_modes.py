"""fit_modes(): the partitions around which the draws are, if they are around several."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.perturbation.draws import model_draws
from posterior_consensus.consensus.perturbation.mixture import Mixture, mixture
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import distinct_rows
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.sources.door import as_draws


@dataclass(frozen=True, eq=False, repr=False)
class PartitionModes(Stored):
    """Partitions fitted by :func:`fit_modes`, in the order of their shares.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_modes, n_items), dtype int32
        Consensus partition of each mode, over the dimension ``mode``.
    shares : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that a draw is around the mode.
    responsibilities : xarray.DataArray of shape (n_draws, n_modes), dtype float64
        Probability of each draw, over the dimension ``sample`` with the coordinates ``chain`` and ``draw``, to be
        around each mode; rows sum to 1. NaN for those of weight 0.
    memberships : xarray.DataArray of shape (n_modes, n_items, n_clusters), dtype float64
        Probability of each cluster, over the dimension ``consensus_cluster``; 0 for those that a mode does not have.
    noise : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that an item's label in a draw around the mode is random.
    log_likelihood : float
        Lower bound of the log-likelihood.
    evidence : dict
        The log-likelihood less BIC's cost of each number of modes that was tried; the largest was taken.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound and logarithm of the prior after each step of the last climb; it does not fall.
    converged : bool
        Whether no probability changed by more than 1e-5 in the last step.
    """

    _no_figure = "plot_alluvial(modes.labels) shows its partitions"

    labels: xr.DataArray = field(metadata=stored_as.array("mode_labels", of_items=True))
    shares: xr.DataArray = field(metadata=stored_as.array("mode_share"))
    responsibilities: xr.DataArray = field(metadata=stored_as.array("mode_responsibility", without=("weight",)))
    memberships: xr.DataArray = field(metadata=stored_as.array("mode_membership", without=("consensus_cluster",)))
    noise: xr.DataArray = field(metadata=stored_as.array("mode_noise"))
    log_likelihood: float = field(metadata=stored_as.number("mode_log_likelihood"))
    evidence: dict[int, float] = field(metadata=stored_as.by_number("mode_evidence", "n_modes"))
    trace: np.ndarray = field(metadata=stored_as.values("mode_trace", "mode_step"))
    converged: bool = field(metadata=stored_as.flag("mode_converged"))

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return self.shares.size

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each mode."""
        return (self.labels.max(str(self.labels.dims[1])) + 1).rename("n_clusters")

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each mode: its share, noise and number of clusters."""
        columns = {"share": self.shares, "noise": self.noise, "clusters": self.n_clusters}
        return pd.DataFrame(
            {name: column.values for name, column in columns.items()},
            index=pd.RangeIndex(self.n_modes, name="mode"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        sure = float((self.responsibilities.dropna("sample").max("mode") > 0.95).mean())
        facts = [
            ("draws", f"{len(self.responsibilities)}, {sure:.0%} of them in one mode with probability above 0.95"),
            ("log-likelihood", display.number(self.log_likelihood)),
            ("modes tried", ", ".join(f"{g} ({display.number(e)})" for g, e in self.evidence.items())),
            ("steps", f"{len(self.trace)}{'' if self.converged else ', not converged'}"),
        ]
        modes = f"{self.n_modes} mode{'s' * (self.n_modes > 1)}"
        title = f"PartitionModes: {modes} of {self.labels.shape[1]} items ({self.labels.dims[1]})"
        return title, facts, self.to_dataframe()


def fit_modes(
    draws: Any,
    n_modes: int | Literal["auto"] = "auto",
    *,
    n_clusters: int | None = None,
    max_clusters: int | None = None,
    max_modes: int = 6,
    n_starts: int = 3,
    max_steps: int = 300,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartitionModes:
    """Fit a mixture of random perturbation models: every draw is a noisy copy of one of a few partitions.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    n_modes : int or "auto"
        Number of partitions, fewer where some lose all their draws; "auto" raises it from 1 as long as that raises the
        evidence.
    n_clusters : int, optional
        Number of clusters of each partition; those that lose all their items are left out. By default it is found,
        up to the largest number in any draw.
    max_clusters : int, optional
        Largest number of clusters if the number is estimated.
    max_modes : int
        Largest number of modes that "auto" tries.
    n_starts : int
        Number of groupings of the draws to start from.
    max_steps : int
        Largest number of steps from the best of them.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartitionModes

    Raises
    ------
    ValueError, TypeError
        If an argument's value is not among those allowed, or the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    random_perturbation_em : the model of one mode.
    diagnose : whether the chains agree.

    Notes
    -----
    Draw t is from mode g with probability omega_g, and then a perturbation of its partition [1]_ as
    :func:`random_perturbation_em` tells, with the noise p_g. The steps raise a lower bound of the log-likelihood in
    turn over the matchings of every draw with every mode, the noise and the shares, the responsibilities, and the
    memberships, to which each draw's votes count as much as the mode is responsible for it. The starts group the draws
    by k-means on the leading principal coordinates of their association matrices: single draws may be too noisy to be
    near others of their mode. The evidence is the bound less BIC's penalty [2]_: half the logarithm of the number of
    items for each cluster's share, and of the number of draws for each mode's share and noise.

    A mode is a group of draws that differ from a partition by noise that hits all items alike. If some items are
    noisier than others, or the errors of draws are correlated, too many modes may fit better.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.
    .. [2] Schwarz (1978), Annals of Statistics 6(2), 461-464. https://doi.org/10.1214/aos/1176344136

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
    >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
    >>> modes.labels.values
    array([[0, 0, 0, 1, 1, 1],
           [0, 1, 0, 1, 0, 1]], dtype=int32)
    >>> modes.responsibilities.values.argmax(axis=1)
    array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    """
    draws = as_draws(draws)
    check_clusters(n_clusters, max_clusters)
    for name, value in (("n_starts", n_starts), ("max_steps", max_steps), ("max_modes", max_modes)):
        check_count(name, value)
    rng = as_generator(random_seed)
    used = model_draws(draws, n_clusters)
    distinct = distinct_rows(used.labels.values)[0].size
    if isinstance(n_modes, str):
        if n_modes != "auto":
            raise ValueError(f"`n_modes` must be an integer or 'auto'; got {n_modes!r}.")
        numbers = range(1, min(max_modes, distinct) + 1)
    else:
        most = min(check_count("n_modes", n_modes), distinct)
        numbers = range(most, most + 1)
    largest = int(used.labels.n_clusters.max())
    tried: list[Mixture] = []
    for number in track(numbers, "Modes", progressbar=progressbar):
        found = mixture(
            used,
            number,
            min(n_clusters or max_clusters or largest, largest),
            fewer=n_clusters is None and distinct > 1,
            n_starts=n_starts,
            most_steps=max_steps,
            rng=rng,
        )
        tried.append(found)
        if len(tried) > 1 and tried[-1].evidence <= tried[-2].evidence:
            break
    best = max(tried, key=lambda found: found.evidence)
    return _as_modes(draws, best, {number: found.evidence for number, found in zip(numbers, tried, strict=False)})


def _as_modes(draws: PartitionDraws, found: Mixture, evidence: dict[int, float]) -> PartitionModes:
    """Dress a mixture in the user's coordinates, the modes by their shares, the clusters by their first items."""
    modes = np.argsort(-found.shares, kind="stable")
    widest = max(memberships.shape[1] for memberships in found.memberships)
    memberships = np.zeros((modes.size, draws.n_items, widest))
    for row, g in enumerate(modes):
        memberships[row, :, : found.memberships[g].shape[1]] = found.memberships[g]
    responsibilities = np.full((draws.n_draws, modes.size), np.nan)
    responsibilities[draws.weights > 0] = found.responsibilities[:, modes]
    noise = np.array([found.states[g].parameters.noise[0] for g in modes])
    dims = ("mode", draws.items.dim, "consensus_cluster")
    sample = draws.samples.coords
    return PartitionModes(
        labels=draws.items.partition_array(memberships.argmax(axis=2).astype(np.int32), "mode", "labels"),
        shares=xr.DataArray(found.shares[modes], dims="mode", name="shares"),
        responsibilities=xr.DataArray(
            responsibilities, dims=("sample", "mode"), coords=sample, name="responsibilities"
        ),
        memberships=xr.DataArray(memberships, dims=dims, coords=draws.items.coords, name="memberships"),
        noise=xr.DataArray(noise, dims="mode", name="noise"),
        log_likelihood=found.log_likelihood,
        evidence=evidence,
        trace=np.array(found.trace),
        converged=found.converged,
    )
