"""How much more draws would lower the expected loss of a partition, from searches on two halves of the draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.folds import folds
from posterior_consensus.evaluate.expectation import draw_losses, loss_matrix
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import stored_as
from posterior_consensus.runtime.arguments import as_generator
from posterior_consensus.search.engine import search

_ROUNDING = 1e-10  # of expected losses that are equal
_PARTS = 4  # by which the difference of the halves is divided to estimate the excess


@dataclass(frozen=True, eq=False)
class ExcessLoss:
    """Excess of a partition's expected loss over the minimum under infinitely many draws; a part of :class:`Summary`.

    Attributes
    ----------
    value : float
        Estimate of the excess, in the unit of the partition's loss.
    distance : float
        How different the best partitions of two halves of the draws are, under the loss of the credible ball.
    partitions : xarray.DataArray of shape (half, n_items), dtype int32
        These two partitions.
    stopped : str
        What ended a search on a half before its end: "seconds", "interrupted" for Ctrl-C, or nothing.

    Notes
    -----
    Let A and B be the best partitions found on the two halves, L_A and L_B the expected losses on them, and

        X = (L_B(A) - L_B(B) + L_A(B) - L_A(A)) / 2.

    If the expected loss is quadratic near its minimum, the mean of X is four times the excess of the partition that is
    found on all draws: its error has half the variance of that of A and of B, and X has both. So `value` is X / 4; with
    halves of unequal size or weight, X is divided by the ratio of their variances. The halves are whole chains, or the
    first and the second half of a single one.
    """

    value: float = field(metadata=stored_as.number("excess_loss"))
    distance: float = field(metadata=stored_as.number("excess_distance"))
    partitions: xr.DataArray = field(metadata=stored_as.array("excess_partitions", of_items=True))
    stopped: str = field(default="", metadata=stored_as.attribute("excess_stopped"))

    @property
    def limit(self) -> float:
        """Four times the estimate, X itself, which the excess exceeds for about one posterior in ten."""
        return _PARTS * self.value


def excess_loss(
    draws: PartitionDraws,
    consensus: ConsensusPartition,
    metric: str | PartitionLoss,
    *,
    seconds: float | None = None,
    random_seed: Any = None,
    progressbar: bool = False,
) -> ExcessLoss:
    """Search on two halves of the draws, from the consensus and one random order, and compare what is found."""
    loss = as_loss(consensus.loss, kind=PartitionLoss)
    rng, best = as_generator(random_seed), draws.as_labels(consensus)
    limits = consensus.cluster_limits
    options: dict[str, Any] = {"n_starts": 1, "n_perturbations": 0, "starts": [best], "progressbar": progressbar}
    options |= {"n_clusters": limits.n_clusters, "max_clusters": limits.max_clusters}
    options["seconds"] = None if seconds is None else seconds / 2
    rows = np.flatnonzero(draws.weights)
    halves = [draws.take(rows[half]) for half in folds(draws.samples.take(rows), 2)]
    found = [search(half, loss, rng=rng, **options) for half in halves]
    tried = np.stack([*(draws.as_labels(one.labels) for one in found), best])
    losses = np.stack([half.samples.mean(draw_losses(tried, half, loss)) for half in halves])
    own = losses.argmin(axis=1)
    difference = (losses[0, own[1]] - losses[0, own[0]] + losses[1, own[0]] - losses[1, own[1]]) / 2
    apart = difference if difference > _ROUNDING * losses.max() else 0.0
    share = 1 / draws.samples.effective_draws / sum(1 / half.samples.effective_draws for half in halves)
    first, second = tried[own]
    distance = loss_matrix(
        first[np.newaxis], PartitionDraws.of(second[np.newaxis]), as_loss(metric, kind=PartitionLoss)
    )[0, 0]
    return ExcessLoss(
        value=float(share * apart),
        distance=float(distance),
        partitions=xr.concat([draws.items.array(labels, "partitions") for labels in tried[own]], "half"),
        stopped=max(one.info.stopped for one in found),
    )
