"""Functions of a block of items for :meth:`LabelBackend.map_blocks`, called here or on workers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import Result
from posterior_consensus.kernels import ensemble


def as_they_are(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[Any]:
    """The labels, contiguous for each draw."""
    return np.ascontiguousarray(labels)


def similarity_rows(labels: npt.NDArray[Any], items: slice, weights: Floats, chosen: npt.NDArray[Any]) -> Floats:
    """Similarities of `chosen` items to the items of the block, as sums of weights."""
    return ensemble.similarity_rows(np.ascontiguousarray(labels), weights, chosen)


def gather(
    labels: npt.NDArray[Any], items: slice, starts: npt.NDArray[np.int64], weights: Floats, table: npt.NDArray[Any]
) -> Floats:
    """Sum over draws the weighted rows of `table` that belong to each item's clusters."""
    return ensemble.gather(np.ascontiguousarray(labels), starts, weights, table)


def apply_to_links(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    weights: Floats,
    counts: npt.NDArray[np.int32],
    partition: npt.NDArray[Any],
    total: float,
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
) -> Result:
    """Call a function with the links of the block's items."""
    links, own = ensemble.links(np.ascontiguousarray(labels), starts, weights, counts), partition[items]
    links[np.arange(own.size), own] -= total
    return function(links, own, total, *arguments)


def links_alone(links: Floats, labels: npt.NDArray[Any], total: float) -> Floats:
    """Return the links themselves."""
    return links
