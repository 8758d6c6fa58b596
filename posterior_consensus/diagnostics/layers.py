"""What is followed along the chains of several layers: how far each is from a center, and from other layers."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.layers import Layers, steps_of
from posterior_consensus.evaluate.expectation import loss_matrix, paired_losses
from posterior_consensus.losses.record import PartitionLoss

_FEW = 10  # layers without an order, of which all pairs are followed


def layer_traces(layers: Layers, center: npt.NDArray[Any], loss: PartitionLoss) -> dict[str, tuple[Floats, str]]:
    """Traces (n_draws,) with their unit: of each layer its number of clusters and the loss of a center; between layers.

    The center is a partition of the items of all layers. Losses between layers are those of each layer and the last one
    before it with common items, or of all pairs of few layers without an order.
    """
    ends = np.cumsum([draws.n_items for draws in layers.values()])
    found: dict[str, tuple[Floats, str]] = {}
    for (name, draws), own in zip(layers.items(), np.split(center, ends[:-1]), strict=True):
        labels = np.unique(own, return_inverse=True)[1].astype(np.int32)
        found[f"number of clusters in {name}"] = draws.n_clusters.astype(np.float64), ""
        found[f"distance within {name}"] = loss_matrix(labels[np.newaxis], draws, loss)[0], loss.unit
    steps = [(step.before, step.after) for step in steps_of(layers)]
    pairs = combinations(layers, 2) if len(layers) <= _FEW and not layers.ordered else steps
    for (one, other), losses in same_draw_losses(layers, pairs, loss):
        found[f"distance from {one} to {other}"] = losses, loss.unit
    return found


def same_draw_losses(
    layers: Layers, pairs: Iterable[tuple[Any, Any]], loss: PartitionLoss
) -> Iterator[tuple[tuple[Any, Any], Floats]]:
    """Loss (n_draws,) of the first layer's partition as an estimate of the second one's, of pairs with common items."""
    rows = np.arange(layers.samples.n_draws)
    for one, other in pairs:
        if (both := layers.paired(one, other)) is not None:
            yield (one, other), paired_losses(both, rows, rows.size + rows, loss)
