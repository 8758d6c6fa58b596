"""How far apart the partitions of two layers are in the same draw, and how far they would be if independent."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import paired_losses
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.losses.partition_losses import one_minus_ari
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.stored_as import names_as_coordinate
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

_APART = 4  # draws of a block: of four chains, one of each


COLUMNS = (
    *("expected_loss", "mcse", "ess", "low", "high", "p_equal", "p_equal_mcse", "ari", "ari_mcse"),
    *("independent", "separation", "separation_mcse", "difference", "difference_mcse", "n_common"),
)


def layer_distances(layers: Layers, pairs: Flags, loss: PartitionLoss, prob: float, progressbar: bool) -> xr.Dataset:
    """Compare the layers of each pair that is True in `pairs` (n_layers, n_layers), which are symmetric.

    The Dataset over layer and other_layer has the columns COLUMNS; NaN for other pairs.
    """
    names, n_layers = list(layers), len(layers)
    table = np.full((len(COLUMNS), n_layers, n_layers), np.nan)
    rows = [np.flatnonzero(row) for row in (np.triu(pairs) if loss.is_symmetric else pairs)]
    blocks = blocks_of(layers.samples)
    own = in_order(_among, ((draws, draws.n_draws, blocks, loss, (0, 0)) for draws in layers.values()))
    within = dict(zip(names, own, strict=True))
    calls = (
        (layers, names[one], [names[k] for k in others], blocks, within, loss, prob) for one, others in enumerate(rows)
    )
    found = in_order(_compared, calls)
    for one, others in enumerate(track(rows, "Distances between layers", progressbar=progressbar)):
        table[:, one, others] = next(found)
        if loss.is_symmetric:
            table[:, others, one] = table[:, one, others]
    dims, coordinate = ("layer", "other_layer"), names_as_coordinate(names)
    columns = {name: (dims, values) for name, values in zip(COLUMNS, table, strict=True)}
    return xr.Dataset(columns, dict.fromkeys(dims, coordinate))


def blocks_of(samples: Samples) -> Positions:
    """Rows (4, n_blocks) of draws that are a quarter of the posterior apart, each draw once if weights are equal.

    There are no blocks if a draw has more than a quarter of the weight, hence is two of the four.
    """
    n_blocks = samples.n_draws // _APART if samples.weights.max() <= (1 + ROUNDING) / _APART else 0
    points = (np.arange(_APART * n_blocks) + 0.5) / max(_APART * n_blocks, 1)
    return samples.at_quantiles(points).reshape(_APART, n_blocks)


def _among(
    draws: PartitionDraws, n_draws: int, blocks: Positions, loss: PartitionLoss, sides: tuple[int, int]
) -> Floats:
    """Mean loss (n_blocks,) between different draws of a block, of one side's partitions and of the other side's.

    Sides are 0 for the first `n_draws` of the draws, and 1 for the others.
    """
    first, second = (blocks[rows].ravel() for rows in np.nonzero(~np.eye(_APART, dtype=bool)))
    losses = paired_losses(draws, sides[0] * n_draws + first, sides[1] * n_draws + second, loss)
    return losses.reshape(_APART * (_APART - 1), -1).mean(axis=0)


def _compared(
    layers: Layers,
    one: Any,
    others: Sequence[Any],
    blocks: Positions,
    within: Mapping[Any, Floats],
    loss: PartitionLoss,
    prob: float,
) -> Floats:
    """Compare a layer, whose partitions come first in the loss, with others: COLUMNS of each, (15, n_others)."""
    samples, n_draws = layers.samples, layers.samples.n_draws
    same = np.arange(n_draws)
    n_common, traces = [], []
    for other in others:
        both = layers.paired(one, other)
        n_common.append(0 if both is None else both.n_items)
        if both is None:
            continue
        apart = _among(both, n_draws, blocks, loss, (0, 1))
        between = apart if loss.is_symmetric else (apart + _among(both, n_draws, blocks, loss, (1, 0))) / 2
        inside = [
            within[name] if both.n_items == layers[name].n_items else _among(both, n_draws, blocks, loss, (side, side))
            for side, name in enumerate((one, other))
        ]
        losses = paired_losses(both, same, n_draws + same, loss)
        disagreement = paired_losses(both, same, n_draws + same, one_minus_ari())
        traces.append((losses, disagreement, apart, between - (inside[0] + inside[1]) / 2))
    table = np.full((len(COLUMNS), len(others)), np.nan)
    table[-1] = n_common
    if traces:
        stacked = [np.stack(one) for one in zip(*traces, strict=True)]
        table[:-1, table[-1] > 0] = _statistics(stacked, samples, blocks, prob)
    return table


def _statistics(traces: list[Floats], samples: Samples, blocks: Positions, prob: float) -> list[Floats]:
    """All of COLUMNS but the last.

    Traces are losses and 1 - ARI in the same draw, and by blocks losses in different draws and separations.
    """
    losses, disagreement, apart, separation = traces
    equal, ari = (disagreement == 0).astype(np.float64), 1.0 - disagreement
    error, ess = samples.mcse_and_ess(losses)
    ess = np.where(error == 0, samples.effective_draws, ess)
    weights = samples.weights if samples.is_weighted else None
    ends = np.quantile(losses, [(1 - prob) / 2, (1 + prob) / 2], axis=1, method="inverted_cdf", weights=weights)
    by_block = np.stack([apart, separation, losses[:, blocks].mean(axis=1) - apart])
    means, errors = np.full((2, *by_block.shape[:2]), np.nan)
    if blocks.size:
        means, errors = by_block.mean(axis=-1), Samples.of_one_chain(blocks.shape[1]).mcse(by_block)
    columns = samples.mean(losses), error, ess, *ends
    columns += samples.mean(equal), samples.probability_mcse(equal, losses), samples.mean(ari), samples.mcse(ari)
    return [*columns, means[0], means[1], errors[1], means[2], errors[2]]
