"""How far apart the partitions of two layers are in the same draw, and how far they would be if independent."""

from typing import NamedTuple

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


class Distance(NamedTuple):
    """What the partitions of two layers are to each other; the columns of ``LayerComparison.distances``."""

    expected_loss: float = np.nan
    mcse: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p_equal: float = np.nan
    p_equal_mcse: float = np.nan
    ari: float = np.nan
    ari_mcse: float = np.nan
    independent: float = np.nan
    difference: float = np.nan
    difference_mcse: float = np.nan
    n_common: float = 0


def layer_distances(
    layers: Layers, pairs: npt.NDArray[np.intp], loss: PartitionLoss, prob: float, progressbar: bool
) -> tuple[xr.Dataset, Floats]:
    """Compare pairs of layers (n_pairs, 2), by position, the second one not before the first.

    Returns
    -------
    distances : xarray.Dataset over layer and other_layer
        The columns of :class:`Distance`; NaN for pairs that are not compared.
    steps : ndarray of shape (n_layers - 1, n_draws)
        Loss between each layer and the next one in each draw; NaN without common items.
    """
    names, n_layers = list(layers), len(layers)
    table = np.full((len(Distance._fields), n_layers, n_layers), np.nan)
    steps = np.full((n_layers - 1, layers.samples.n_draws), np.nan)
    if not loss.is_symmetric:
        pairs = np.concatenate([pairs, pairs[pairs[:, 0] < pairs[:, 1], ::-1]])
    blocks = blocks_of(layers.samples)
    found = in_order(_compared, ((layers, names[one], names[other], blocks, loss, prob) for one, other in pairs))
    for one, other in track(pairs.tolist(), "Pairs of layers", progressbar=progressbar):
        distance, losses = next(found)
        table[:, one, other] = distance
        if loss.is_symmetric:
            table[:, other, one] = distance
        if other == one + 1:
            steps[one] = losses
    dims, coordinate = ("layer", "other_layer"), names_as_coordinate(names)
    columns = {name: (dims, values) for name, values in zip(Distance._fields, table, strict=True)}
    return xr.Dataset(columns, dict.fromkeys(dims, coordinate)), steps


def blocks_of(samples: Samples) -> npt.NDArray[np.intp]:
    """Rows (4, n_blocks) of draws that are a quarter of the posterior apart, each draw once if weights are equal."""
    n_blocks = samples.n_draws // _APART
    points = (np.arange(_APART * n_blocks) + 0.5) / max(_APART * n_blocks, 1)
    return samples.at_quantiles(points).reshape(_APART, n_blocks)


def _compared(
    layers: Layers, one: object, other: object, blocks: npt.NDArray[np.intp], loss: PartitionLoss, prob: float
) -> tuple[Distance, Floats]:
    """Compare two layers, the first one's partitions as estimates; also the loss in each draw."""
    samples, both = layers.samples, layers.paired(one, other)
    if both is None:
        return Distance(), np.full(samples.n_draws, np.nan)
    same, n_draws = np.arange(samples.n_draws), samples.n_draws
    apart = 1.0 - np.eye(_APART, dtype=np.int64)
    first, second = (blocks[rows].ravel() for rows in np.nonzero(apart))
    rows, others = np.concatenate([same, first]), np.concatenate([same, second])
    losses, between = np.split(paired_losses(both, rows, n_draws + others, loss), [n_draws])
    disagreement = paired_losses(both, same, n_draws + same, one_minus_ari())
    followed = np.stack([losses, disagreement == 0, 1.0 - disagreement])
    (expected, p_equal, ari), errors = samples.mean(followed), samples.mcse(followed)
    between = between.reshape(_APART * (_APART - 1), -1).mean(axis=0)
    excess = losses[blocks].mean(axis=0) - between
    independent = float(between.mean()) if between.size else np.nan
    tails = [(1 - prob) / 2, (1 + prob) / 2]
    low, high = np.quantile(losses, tails, method="inverted_cdf", weights=samples.weights)
    return Distance(
        expected_loss=expected,
        mcse=errors[0],
        low=low,
        high=high,
        p_equal=p_equal,
        p_equal_mcse=errors[1],
        ari=ari,
        ari_mcse=errors[2],
        independent=independent,
        difference=expected - independent,
        difference_mcse=float(Samples.of_one_chain(excess.size).mcse(excess)) if excess.size else np.nan,
        n_common=both.n_items,
    ), losses
