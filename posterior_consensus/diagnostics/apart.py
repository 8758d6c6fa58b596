"""Sentences on chains that disagree: log densities by chain, and the partitions with and without one chain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from posterior_consensus.diagnostics.copies import without
from posterior_consensus.diagnostics.traces import central_draw
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.evaluate.expectation import loss_matrix
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.search.engine import search
from posterior_consensus.sources.log_densities import LogOfDraws

_MOST_NAMED = 8  # chains whose mean log densities are listed


def about_chains(
    draws: PartitionDraws, logs: LogOfDraws | None, odd: object | None, loss: PartitionLoss, seconds: float | None
) -> str:
    """Sentences on chains that disagree; `odd` is the chain that differs from all others, if any. They may be empty."""
    names = draws.samples.chain_names
    sentences = [] if logs is None else [_of_logs(logs, draws.samples.chains, names, odd)]
    if odd is not None:
        sentences.append(_of_partitions(draws, names, odd, loss, seconds))
    if logs is not None and logs.by_observation:
        sentences.append("diagnostics.stacking_weights weights the chains by how well they predict.")
    return " ".join(sentences)


def _of_logs(logs: LogOfDraws, chains: list[npt.NDArray[np.intp]], names: list[object], odd: object | None) -> str:
    means = dict(zip(names, (float(logs.values[rows].mean()) for rows in chains), strict=True))
    start = f"The mean {logs.name} is"
    if odd is not None:
        others = [mean for name, mean in means.items() if name != odd]
        return f"{start} {means[odd]:.6g} in chain {odd}, and {min(others):.6g} to {max(others):.6g} in the others."
    if len(names) > _MOST_NAMED:
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        return f"{start} between {means[low]:.6g} (chain {low}) and {means[high]:.6g} (chain {high})."
    return f"{start} {display.joined([f'{mean:.6g} in chain {name}' for name, mean in means.items()])}."


def _of_partitions(
    draws: PartitionDraws, names: list[object], odd: object, loss: PartitionLoss, seconds: float | None
) -> str:
    rows = draws.samples.chain == odd
    rest, own = (_best(draws.take(np.flatnonzero(some)), loss, seconds) for some in (~rows, rows))
    distance = float(loss_matrix(rest[np.newaxis], PartitionDraws.of(own[np.newaxis]), loss)[0, 0])
    apart = f"at a distance of {display.quantity(distance, loss.unit, 3)}" if distance > 0 else "the same"
    k_rest, k_own = (display.counted(int(labels.max()) + 1, "cluster") for labels in (rest, own))
    return (
        f"Without chain {odd}, `{without(names, [odd])}`, the best partition found has {k_rest}; that of chain {odd} "
        f"alone has {k_own}, {apart}."
    )


def _best(draws: PartitionDraws, loss: PartitionLoss, seconds: float | None) -> Labels:
    """The best partition (n,) of a search from a central draw and one random order."""
    starts = [central_draw(draws.labels_only(), loss)]
    found = search(
        draws, loss, rng=np.random.default_rng(0), n_starts=1, n_perturbations=0, starts=starts, seconds=seconds
    )
    return draws.as_labels(found.labels)
