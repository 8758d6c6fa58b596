"""Further modes for a summary: a search of bounded work, on some of the draws and items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from posterior_consensus.answers.particles import Effort, Particles, find_particles
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss

_DRAWS_LOOKED_AT = 500
_MOST_ANSWERS = 3
_EFFORT = Effort(most_labels=150_000, most_items=300, most_work=3e8, only_if_likely=True)


def look_for_answers(
    draws: PartitionDraws, consensus: ConsensusPartition, metric: str | PartitionLoss, **options: Any
) -> Particles:
    """Search for a few modes on some of the draws and items; a single one has the consensus as its partition.

    Clusters have the consensus's numbers.
    """
    one = draws.as_labels(consensus) if as_loss(metric) == consensus.loss else None
    asked: dict[str, Any] = {"max_particles": _MOST_ANSWERS, "n_starts": 1, "one": one, "effort": _EFFORT}
    return find_particles(some_draws(draws), "auto", metric, reference=consensus, **asked, **options)


def some_draws(draws: PartitionDraws) -> PartitionDraws:
    """Return draws evenly spaced in each chain; of weighted ones some by weight, the heavy counted more than once."""
    if draws.n_draws > _DRAWS_LOOKED_AT and draws.samples.is_weighted:
        shares = (np.arange(_DRAWS_LOOKED_AT) + 0.5) / _DRAWS_LOOKED_AT
        rows, times = np.unique(draws.samples.at_quantiles(shares), return_counts=True)
        some = draws.take(rows)
        return replace(some, samples=some.samples.weighted(times.astype(np.float64)))
    # Every chain keeps at least FEWEST_DRAWS draws, if it has them.
    step = min(-(-draws.n_draws // _DRAWS_LOOKED_AT), max(1, draws.samples.shortest // FEWEST_DRAWS))
    return draws.isel(draw=slice(None, None, step))
