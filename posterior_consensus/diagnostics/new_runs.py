"""How near a new run will be to a partition that a search found for some runs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.groups import compared_runs, unseen
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import draw_losses
from posterior_consensus.ensemble.partitions import Labels, alone, marked
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import stored_as
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.search.runs import SearchInfo

_ALL, _SOME = 10, 5  # runs, each of which is left out, and how many of more
_ITEMS, _ITEMS_WITH_NOISE = 1_000, 300  # by which


@dataclass(frozen=True)
class NewRuns:
    """How near a new run is to a partition that was found for others, a part of :class:`Summary`.

    Attributes
    ----------
    distance, distance_error : float
        Mean distance of a new run from the partition, in the unit of the loss, and its standard error.
    agreement, agreement_error : float
        Mean over items of the Jaccard similarity of the item's cluster in a new run to its cluster in the partition,
        and its standard error.

    Notes
    -----
    The agreement of a run is (1 / n) sum_kl n_kl^2 / (a_k + b_l - n_kl), where n_kl items are common to cluster k of
    the partition, of a_k items, and cluster l of the run, of b_l. It counts clusters that a run joins as well as those
    that it splits. A share of pairs within the clusters of the partition would not see joined ones, also if it were
    corrected for chance, and so would be larger for finer partitions.

    Runs are nearer to the partition that was found for them than new runs are. Let d_r be the distance of run r of N,
    or its agreement, and e_r what this changes by if the search does not know the run. It is computed for m runs: all
    of up to 10, else 5. The mean distance of a new run is mean(d) + mean(e), and its squared error

        (sd(d) / sqrt(N) + sd(e) / sqrt(m))^2 + (mean(e) / 2)^2 + (c f^2 / (N + 4))^2,

    where f is the share of the most frequent partition. So two errors reach the value without correction, and an answer
    that no run gave, in up to 2 / (N + 4) of all runs: c is the mean distance that random labels of the runs' cluster
    sizes have, or the whole agreement. Errors are NaN below four runs.

    Of more than 1,000 items, or 300 with noise, e is that of so many, chosen at random.
    """

    distance: float = field(metadata=stored_as.number("new_run_distance"))
    distance_error: float = field(metadata=stored_as.number("new_run_distance_error"))
    agreement: float = field(metadata=stored_as.number("new_run_agreement"))
    agreement_error: float = field(metadata=stored_as.number("new_run_agreement_error"))


def is_greedy(result: Any) -> bool:
    """Whether greedy search found a partition, and so can be repeated without a run."""
    return isinstance(result, ConsensusPartition) and isinstance(result.info, (SearchInfo, ComponentsInfo))


def new_runs(draws: PartitionDraws, result: Any, partition: Labels, loss: PartitionLoss, chance: float) -> NewRuns:
    """How near new runs are to a partition, see :class:`NewRuns`; `draws` are runs of equal weights.

    The correction is 0 for a partition that greedy search did not find for as many runs, and NaN for a single run.
    The partition (n,) has the label -1 for noise, which is a cluster of its own in `loss`, the distance of a run from
    it. It comes from `result`, any partition. Random labels have the mean distance `chance`.
    """
    draws = draws.in_fixed_order()
    changes = _changes_without_run(draws, result, partition, loss)
    fit = _fit(draws, alone(partition), loss)
    mean, change = draws.samples.mean(fit), changes.mean(axis=1)
    mean += change
    mean[1] = np.clip(mean[1], 0.0, 1.0)
    error = draws.samples.mcse(fit) + changes.std(axis=1) / np.sqrt(max(changes.shape[1] - 1, 1))
    of_unseen = unseen(compared_runs(draws)) / 2 * np.array([chance, mean[1]])
    error = np.sqrt(np.square(error) + np.square(change / 2) + np.square(of_unseen))
    return NewRuns(*(float(one) for pair in zip(mean, error, strict=True) for one in pair))


def _fit(draws: PartitionDraws, labels: Labels, loss: PartitionLoss) -> Floats:
    """Distance and agreement (2, N) of each run with a partition."""
    return np.stack([draw_losses(labels[np.newaxis], draws, loss)[0], _agreement(draws, labels)])


def _agreement(draws: PartitionDraws, labels: Labels) -> Floats:
    """For each run, mean over items of the Jaccard similarity of their cluster in the partition to that in the run."""
    if draws.lacks_items:
        return np.array([_agreement_of_some(labels, run) for run in draws.backend.values])
    sizes, width, found = np.bincount(labels), int(draws.backend.n_clusters.max()), np.empty(draws.n_draws)
    for rows, runs in draws.backend.blocks(1):
        cells, common = np.unique(labels.astype(np.int64) * width + runs[0], return_counts=True)
        own, other = np.divmod(cells, width)
        found[rows] = (common * (common / (sizes[own] + np.bincount(runs[0])[other] - common))).sum()
    return found / labels.size


def _agreement_of_some(labels: Labels, codes: npt.NDArray[Any]) -> float:
    """Agreement of a run on the items that it has, by codes; NaN if it has none."""
    there = np.flatnonzero(codes > 0)
    own, other = labels[there], np.where(codes[there] < CLUSTERS_FROM, codes.max() + 1 + there, codes[there])
    ends, common = np.unique(np.stack([own, other.astype(np.int64)]), axis=1, return_counts=True)
    either = np.bincount(own, minlength=1)[ends[0]] + np.bincount(other, minlength=1)[ends[1]] - common
    return float((common * (common / either)).sum() / there.size) if there.size else np.nan


def _changes_without_run(draws: PartitionDraws, result: Any, partition: Labels, loss: PartitionLoss) -> Floats:
    """What distance and agreement (2, m) of a run change by if the search does not know it."""
    result = getattr(result, "partition", result)  # of a summary
    if not is_greedy(result) or result.n_draws != draws.n_draws:
        return np.zeros((2, 1))
    if draws.n_draws < 2:
        return np.full((2, 1), np.nan)
    draws = compared_runs(draws)
    left_out = evenly_spaced(draws.n_draws, draws.n_draws if draws.n_draws <= _ALL else _SOME)
    which, of = np.unique(draws.backend.fingerprints()[left_out], return_index=True, return_inverse=True)[1:]
    effort = Effort(n_starts=1, n_perturbations=0)

    def found(runs: PartitionDraws, start: Labels) -> Labels:
        problem = Problem(runs, result.loss, result.cluster_limits)
        return search(problem, np.random.default_rng(0), effort, [start]).labels

    n_items = _ITEMS_WITH_NOISE if draws.has_noise else _ITEMS
    if draws.n_items > n_items:
        some = np.sort(np.random.default_rng(0).choice(draws.n_items, n_items, replace=False))
        draws = draws.of_items(some)
        partition = found(draws, marked(partition[some], partition[some] < 0))
    changes = np.zeros((2, which.size))
    for column, run in zip(changes.T, left_out[which].tolist(), strict=True):
        rest, one = draws.take(np.delete(np.arange(draws.n_draws), run)), draws.take(np.array([run]))
        labels = found(rest, partition)
        if not np.array_equal(labels, partition):
            column[:] = (_fit(one, alone(labels), loss) - _fit(one, alone(partition), loss))[:, 0]
    return np.nan_to_num(changes)[:, of]
