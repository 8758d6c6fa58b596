"""pair_threshold(): the pair threshold tau of Binder's loss, calibrated on the draws."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.threshold import calibrated, consistent_interval
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.losses.partition_losses import pairs
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import RandomSeed, as_generator
from posterior_consensus.sources.conversion import as_draws


@dataclass(frozen=True, eq=False, repr=False)
class PairThreshold(HasLabels, Stored):
    """A pair threshold for Binder's loss, with the similarities on either side; made by :func:`pair_threshold`.

    Attributes
    ----------
    tau : float in (0, 1)
        The threshold; ``binder(tau=...)`` takes it.
    within, between : float
        Mean posterior similarity of pairs within and between the clusters of `labels`; NaN without such pairs.
    labels : xarray.DataArray of shape (n_items,), dtype int32
        The partition of the last round.
    n_rounds : int
        Number of rounds.
    converged : bool
        Whether tau has converged. False if the rounds ran out, or if there are no pairs within or no pairs between
        clusters.
    """

    tau: float = field(metadata=stored_as.number("threshold_tau"))
    within: float = field(metadata=stored_as.number("threshold_within"))
    between: float = field(metadata=stored_as.number("threshold_between"))
    labels: xr.DataArray = field(metadata=stored_as.array("threshold_labels", of_items=True))
    n_rounds: int = field(metadata=stored_as.attribute("threshold_rounds"))
    converged: bool = field(metadata=stored_as.flag("threshold_converged"))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the pairs within and between clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each kind of pair, with the number of pairs and their mean similarity.
        """
        h = pairs(self.labels.size)
        together = h[np.bincount(self.labels.values)].sum()
        return pd.DataFrame(
            {"pairs": [int(together), int(h[-1] - together)], "similarity": [self.within, self.between]},
            index=pd.Index(["within", "between"], name="clusters"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_clusters = int(self.labels.max()) + 1
        place = (self.tau - self.between) / (self.within - self.between) if self.within > self.between else np.nan
        facts = [
            ("consistent", consistent_interval(self.within, self.between)),
            ("tau lies", f"{place:.0%} into the interval" if np.isfinite(place) else "-"),
            ("clusters", f"{n_clusters} of {self.labels.size} items ({self.labels.dims[0]})"),
            ("rounds", f"{self.n_rounds}{'' if self.converged else ', not converged'}"),
        ]
        return f"PairThreshold: tau {display.number(self.tau)}", facts, self.to_dataframe()


def pair_threshold(
    draws: Any,
    *,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PairThreshold:
    """Calibrate the pair threshold tau of Binder's loss on the draws, to choose its costs from the data.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same threshold.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PairThreshold
        The threshold, and the mean similarities that it lies between.

    Raises
    ------
    ValueError
        If the draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    binder : the loss that takes the threshold.
    loss_path : the partitions at many thresholds.

    Notes
    -----
    The threshold chooses the loss from the posterior. Report it with the partition.

    Suppose that a draw co-clusters two items of the same cluster with probability alpha, and separates two items of
    different clusters with probability beta. For a pair of similarity X, the log-likelihood ratio of the two cases has
    the sign of X - tau, with

        tau = log(beta / (1 - alpha)) / log(alpha beta / ((1 - alpha) (1 - beta))),

    which lies between 1 - beta and alpha. The first tau is halfway between the two centres of 2-means on the
    similarities of the pairs, or of a sample of them. Each round finds the partition of minimum expected Binder loss at
    tau. It sets alpha to the mean similarity within its clusters, and 1 - beta to the mean similarity between them.
    Rounds end when tau changes by less than 0.0001. A mean over N draws is kept at least 1 / (2 N + 2) away from 0 and
    1; weighted draws count as 1 / sum(w^2) draws.

    In the random perturbation model [1]_, each draw keeps an item's true label with probability 1 - p, and otherwise
    takes one of K labels at random. Pairs then have only two similarities, 1 - x (1 - 1 / K) and x / K with
    x = p (2 - p). Every tau between them recovers the truth from enough draws. The value 1/2 lies between them only if
    p < 1 - sqrt(1 - K / (2 (K - 1))). For larger p, Binder's loss with equal costs tends to single items.

    If all pairs are equally similar, tau is 1/2. If a round ends with one cluster, or with single items only, tau does
    not change and `converged` is False.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> pc.consensus.pair_threshold(draws, random_seed=1)
    PairThreshold: tau 0.2675
      consistent  0 to 0.5
      tau lies    54% into the interval
      clusters    2 of 4 items (item)
      rounds      2
    <BLANKLINE>
               pairs  similarity
      within       2         0.5
      between      4           0
    """
    draws = as_draws(draws)
    threshold = calibrated(draws, as_generator(random_seed), progressbar)
    return PairThreshold(**threshold._asdict() | {"labels": draws.items.array(threshold.labels, "labels")})
