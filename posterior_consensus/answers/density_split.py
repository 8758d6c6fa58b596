"""The draws that make a density and those that calibrate it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.distances import checked_losses
from posterior_consensus.ensemble.autocorrelation import autocorrelation_time
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.evaluate.expectation import Floats
from posterior_consensus.losses.record import PartitionLoss

MOST_DRAWS = 2000
_FEWEST = 100  # draws that thinning leaves, if there are as many
_RUN = 10  # draws in a row that go to the same half: only at the ends of runs do the halves depend on each other


def halves(
    draws: PartitionDraws, loss: PartitionLoss, bandwidth: float | None
) -> tuple[PartitionDraws, PartitionDraws, int]:
    """Training draws, calibration draws, and how many draws of a chain are one step.

    Chains are thinned to their effective sample size, and runs of the draws that are left go to the two by turns.
    """
    if draws.n_draws < 2:
        raise ValueError(
            "`draws` must hold at least two draws of weight above 0, one for training and one for "
            "calibration; got 1. Or give `calibration`."
        )
    step = -(-draws.n_draws // MOST_DRAWS)
    rows = _every(draws, step)
    some = draws.take(rows)
    losses = checked_losses(some, some, loss)
    times = draws_worth_one(losses, some.samples, bandwidth or default_bandwidth(losses, some.samples))
    step = min(step * max(1, round(times)), max(step, draws.n_draws // _FEWEST))
    rows = _every(draws, step)
    turn = np.arange(rows.size) // max(1, min(_RUN, rows.size // _RUN)) % 2
    return draws.take(rows[turn == 0]), draws.take(rows[turn == 1]), step


def _every(draws: PartitionDraws, step: int) -> npt.NDArray[np.intp]:
    return np.concatenate([rows[::step] for rows in draws.samples.chains])


def default_bandwidth(losses: Floats, samples: Samples) -> float:
    """Median loss between two draws; where that is 0, the mean; where all draws are equal, 1."""
    apart = ~np.eye(samples.n_draws, dtype=np.bool_)
    between = losses[apart]
    if between.size == 0 or not between.any():
        return 1.0
    if not samples.is_weighted:
        return float(np.median(between)) or float(between.mean())
    weights = np.outer(samples.weights, samples.weights)[apart]
    median = float(np.quantile(between, 0.5, method="inverted_cdf", weights=weights))
    return median or float(np.average(between, weights=weights)) or 1.0


def draws_worth_one(losses: Floats, samples: Samples, bandwidth: float) -> float:
    """Number of successive draws per effective draw, by the kernel exp(-loss / bandwidth); weights are ignored.

    The correlation at lag s is 1 less the mean of 1 - kernel over draws s steps apart, divided by its mean over all
    pairs of draws: the kernel's map of a partition stands for the partition.
    """
    n = samples.n_draws
    differ = -np.expm1(-losses / bandwidth)
    total = differ.sum() / max(n * (n - 1), 1)
    if total <= 0.0:
        return 1.0

    def correlation(lag: int) -> float:
        if lag == 0:
            return 1.0
        pairs = [differ[rows[:-lag], rows[lag:]] for rows in samples.chains if rows.size > lag]
        return 1.0 - float(np.concatenate(pairs).mean() / total)

    length = max(rows.size for rows in samples.chains)
    return max(1.0, autocorrelation_time(correlation, length)) if length > 1 else 1.0
