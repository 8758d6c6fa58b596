"""How far apart the partitions of two layers are in the same draw, and how far they would be if independent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.evaluate.expectation import paired_losses
from posterior_consensus.losses.partition_losses import one_minus_ari
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.plain import names_as_coordinate
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.progress import track

_APART = 4  # draws of a block: of four chains, one of each


COLUMNS = (
    *("expected_loss", "mcse", "low", "high", "p_equal", "p_equal_mcse", "ari", "ari_mcse"),
    *("independent", "difference", "difference_mcse", "n_common"),
)


def layer_distances(
    layers: Layers, pairs: npt.NDArray[np.bool_], loss: PartitionLoss, prob: float, progressbar: bool
) -> xr.Dataset:
    """Compare the layers of each pair that is True in `pairs` (n_layers, n_layers), which are symmetric.

    Returns
    -------
    xarray.Dataset over layer and other_layer
        With the columns COLUMNS; NaN for other pairs.
    """
    names, n_layers = list(layers), len(layers)
    table = np.full((len(COLUMNS), n_layers, n_layers), np.nan)
    rows = [np.flatnonzero(row) for row in (np.triu(pairs) if loss.is_symmetric else pairs)]
    blocks = blocks_of(layers.samples)
    calls = ((layers, names[one], [names[k] for k in others], blocks, loss, prob) for one, others in enumerate(rows))
    found = in_order(_compared, calls)
    for one, others in enumerate(track(rows, "Distances between layers", progressbar=progressbar)):
        table[:, one, others] = next(found)
        if loss.is_symmetric:
            table[:, others, one] = table[:, one, others]
    dims, coordinate = ("layer", "other_layer"), names_as_coordinate(names)
    columns = {name: (dims, values) for name, values in zip(COLUMNS, table, strict=True)}
    return xr.Dataset(columns, dict.fromkeys(dims, coordinate))


def blocks_of(samples: Samples) -> npt.NDArray[np.intp]:
    """Rows (4, n_blocks) of draws that are a quarter of the posterior apart, each draw once if weights are equal."""
    n_blocks = samples.n_draws // _APART
    points = (np.arange(_APART * n_blocks) + 0.5) / max(_APART * n_blocks, 1)
    return samples.at_quantiles(points).reshape(_APART, n_blocks)


def _compared(
    layers: Layers, one: Any, others: Sequence[Any], blocks: npt.NDArray[np.intp], loss: PartitionLoss, prob: float
) -> Floats:
    """Compare a layer, whose partitions are the estimates, with others: COLUMNS of each, (12, n_others)."""
    samples, n_draws = layers.samples, layers.samples.n_draws
    same = np.arange(n_draws)
    first, second = (blocks[rows].ravel() for rows in np.nonzero(~np.eye(_APART, dtype=bool)))
    rows, columns = np.concatenate([same, first]), n_draws + np.concatenate([same, second])
    n_common, losses, apart, disagreement = [], [], [], []
    for other in others:
        both = layers.paired(one, other)
        n_common.append(0 if both is None else both.n_items)
        if both is not None:
            in_same, in_others = np.split(paired_losses(both, rows, columns, loss), [n_draws])
            losses.append(in_same)
            apart.append(in_others.reshape(_APART * (_APART - 1), -1).mean(axis=0))
            disagreement.append(paired_losses(both, same, n_draws + same, one_minus_ari()))
    table = np.full((len(COLUMNS), len(others)), np.nan)
    table[-1] = n_common
    if losses:
        traces = np.stack(losses), np.stack(apart), np.stack(disagreement)
        table[:-1, table[-1] > 0] = _statistics(*traces, samples, blocks, prob)
    return table


def _statistics(
    losses: Floats, apart: Floats, disagreement: Floats, samples: Samples, blocks: npt.NDArray[np.intp], prob: float
) -> list[Floats]:
    """All of COLUMNS but the last, from losses in the same draw, in the others of each block, and from 1 - ARI."""
    followed = np.stack([disagreement == 0, 1.0 - disagreement])
    (p_equal, ari), errors = samples.mean(followed), samples.mcse(followed)
    expected, independent = samples.mean(losses), np.full(len(losses), np.nan)
    error = independent.copy()
    if blocks.size:
        independent = apart.mean(axis=1)
        error = Samples.of_one_chain(blocks.shape[1]).mcse(losses[:, blocks].mean(axis=1) - apart)
    weights = samples.weights if samples.is_weighted else None
    ends = np.quantile(losses, [(1 - prob) / 2, (1 + prob) / 2], axis=1, method="inverted_cdf", weights=weights)
    columns = expected, samples.mcse(losses), *ends, p_equal, errors[0], ari, errors[1]
    return [*columns, independent, expected - independent, error]
