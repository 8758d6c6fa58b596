"""Labels as they were sampled: the components of the model, before they are renumbered by first appearance."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import as_codes
from posterior_consensus.sources.accumulate import PartitionAccumulator, is_accumulated
from posterior_consensus.sources.places import place_in
from posterior_consensus.sources.stores import is_store
from posterior_consensus.sources.variables import label_array


def component_labels(data: Any, draws: PartitionDraws, n_components: int) -> npt.NDArray[Any]:
    """Component (n_draws, n_items) of each item from 0, of data that these draws were made of.

    Raises
    ------
    ValueError
        If the labels were renumbered, or are not those of so many components.
    """
    if draws.soft is not None:
        return _from_zero(draws.soft.components, n_components)
    if isinstance(data, (PairSource, PartitionAccumulator)) or is_accumulated(data) or is_store(data):
        raise ValueError(
            f"A prior on labels needs them as they were sampled; those of {type(data).__name__} are numbered by first "
            "appearance. Pass the posterior itself, or take priors.crp, which needs the partition alone."
        )
    values, _, _ = label_array(data, None, ("chain", "draw"))
    if values.dtype.kind not in "biuf":
        raise ValueError(f"A prior on labels needs the components' numbers; the labels are {values.dtype}.")
    return _from_zero(
        as_codes(values.values, "the labels", place_in(values))[0].reshape(draws.n_draws, -1), n_components
    )


def _from_zero(labels: npt.NDArray[Any], n_components: int) -> npt.NDArray[Any]:
    """Components from 0, of labels from 0 or from 1."""
    least, most = int(labels.min()), int(labels.max())
    first = 1 if least > 0 and most == n_components else 0
    if most - first >= n_components:
        raise ValueError(
            f"`n_components` must be the number of components of the model; got {n_components}, and labels from "
            f"{least} to {most}."
        )
    return labels - labels.dtype.type(1) if first else labels
