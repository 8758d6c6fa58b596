"""Draws in nearly independent parts, for cross-validation."""

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.samples import Samples


def folds(samples: Samples, number: int) -> list[npt.NDArray[np.intp]]:
    """Row numbers of at most `number` parts that are nearly independent of each other.

    Parts are whole chains if there are at least `number` chains. Otherwise, part k is the k-th section of each chain.
    """
    chains = samples.chains
    if len(chains) < number:
        parts = [np.concatenate(part) for part in zip(*(np.array_split(rows, number) for rows in chains), strict=True)]
    else:
        parts = [np.concatenate(chains[first::number]) for first in range(number)]
    return [np.sort(part) for part in parts if part.size]
