"""Excess of a partition's expected loss for want of draws, from searches on two halves of the draws."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.folds import folds
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.evaluate.expectation import draw_losses, losses_between
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import stored_as
from posterior_consensus.runtime.arguments import RandomSeed, as_generator
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.engine import search

_PARTS = 4  # divisor of the difference of the halves that gives the excess


@dataclass(frozen=True, eq=False)
class ExcessLoss:
    """Excess of a partition's expected loss over the minimum under infinitely many draws, a part of :class:`Summary`.

    Attributes
    ----------
    value : float
        Estimate of the excess, in the unit of the partition's loss.
    distance : float
        Distance between the best partitions found on two halves of the draws, under the loss of the credible ball.
    partitions : xarray.DataArray of shape (half, n_items), dtype int32
        The best partitions found on the halves.
    stopped : str
        Why a search on a half ended early: "seconds", "interrupted" for Ctrl-C, or empty.

    Notes
    -----
    Let A and B be the best partitions found on the two halves, L_A and L_B the expected losses on them, and

        X = (L_B(A) - L_B(B) + L_A(B) - L_A(A)) / 2.

    If the expected loss is quadratic near its minimum, the mean of X is four times the excess of the partition found on
    all draws: A and B each have twice the variance of this partition, and X contains the sum of both variances. Hence
    `value` is X / 4. With halves of unequal size or weight, 1/4 is replaced by the variance of all draws divided by the
    sum of the variances of the halves. The halves are whole chains, or the first and second half of a single chain.
    """

    value: float = field(metadata=stored_as.number("excess_loss"))
    distance: float = field(metadata=stored_as.number("excess_distance"))
    partitions: xr.DataArray = field(metadata=stored_as.array("excess_partitions", of_items=True))
    stopped: str = field(default="", metadata=stored_as.attribute("excess_stopped"))

    @property
    def limit(self) -> float:
        """Four times the estimate (X with equal halves); the excess is larger in one of seven posteriors or fewer."""
        return _PARTS * self.value


def excess_loss(
    draws: PartitionDraws,
    consensus: ConsensusPartition,
    metric: str | PartitionLoss,
    *,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = False,
) -> ExcessLoss:
    """Search on two halves of the draws, from the consensus and one random order, and compare the results."""
    loss = as_loss(consensus.loss, kind=PartitionLoss)
    limits = consensus.cluster_limits
    options: dict[str, Any] = {"n_clusters": limits.n_clusters, "max_clusters": limits.max_clusters}
    options |= {"seconds": None if seconds is None else seconds / 2, "progressbar": progressbar}
    found = search_halves(draws, draws.as_labels(consensus), loss, as_generator(random_seed), **options)
    return ExcessLoss(
        value=found.excess,
        distance=float(losses_between(found.partitions, as_loss(metric, kind=PartitionLoss))[0, 1]),
        partitions=xr.concat([draws.items.array(labels, "partitions") for labels in found.partitions], "half"),
        stopped=found.stopped,
    )


class Halves(NamedTuple):
    """Estimate of the excess, the best partitions (2, n_items) found on the halves, and why a search ended early."""

    excess: float
    partitions: npt.NDArray[Any]
    stopped: str


def search_halves(
    draws: PartitionDraws, best: Labels, loss: PartitionLoss, rng: np.random.Generator, **options: Any
) -> Halves:
    """Search on two halves of the draws, from `best` and one random order; see :class:`ExcessLoss`."""
    rows = np.flatnonzero(draws.weights)
    halves = [draws.take(rows[half]) for half in folds(draws.samples.take(rows), 2)]
    results = [search(half, loss, rng=rng, n_starts=1, n_perturbations=0, starts=[best], **options) for half in halves]
    tried = np.stack([*(draws.as_labels(one.labels) for one in results), best])
    losses = np.stack([half.samples.mean(draw_losses(tried, half, loss)) for half in halves])
    own = losses.argmin(axis=1)
    difference = (losses[0, own[1]] - losses[0, own[0]] + losses[1, own[0]] - losses[1, own[1]]) / 2
    apart = difference if difference > SAME * losses.max() else 0.0
    share = 1 / draws.samples.effective_draws / sum(1 / half.samples.effective_draws for half in halves)
    return Halves(float(share * apart), tried[own], max(one.info.stopped for one in results))
