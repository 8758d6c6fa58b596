"""The steps of a summary: the search, and computations on the partition found."""

from typing import Any, TypeVar

import numpy as np

from posterior_consensus.answers.alignment import align_partitions
from posterior_consensus.answers.cluster_stability import ClusterStability, cluster_stability
from posterior_consensus.answers.credible import credible_ball
from posterior_consensus.answers.links import links, suits_links
from posterior_consensus.answers.membership import item_uncertainty, suits_matching
from posterior_consensus.answers.particles import ParticleLimits, Particles, find_particles
from posterior_consensus.bounds.certificate import quick_certificate
from posterior_consensus.consensus.methods import takes
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.chance import mean_chance
from posterior_consensus.diagnostics.comparison import ExcessLoss, excess_loss
from posterior_consensus.diagnostics.diagnosis import diagnose_within
from posterior_consensus.diagnostics.groups import compared_runs
from posterior_consensus.diagnostics.new_runs import NewRuns, is_greedy, new_runs
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.ensemble.allocations import as_soft
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.lookup import as_loss, as_loss_of_draws
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.summary.record import (
    OTHER_LABELS,
    SOME_DRAWS,
    is_improbable,
    no_halves_because,
    number_probabilities,
    some_draws,
    uses_sampled_labels,
    was_interrupted,
    why_skipped,
)
from posterior_consensus.summary.summary import Posterior, Summary

Result = TypeVar("Result")

SEARCH = 0.5  # share of the remaining time for the search
_REST = 0.25  # share of the remaining time for each later step
_LITTLE = 60_000  # labels; beyond, the search at the most probable number has no more restarts than the first
_MOST_GROUPS = 3
_MOST_LABELS = 1_000_000  # of these items; beyond, groups are searched for on some draws
_EFFORT = ParticleLimits(most_labels=150_000, most_items=300, most_work=3e8)
_SEED = np.random.SeedSequence([34, 2])  # labels differ from those of any user's seed


def consensus_within(
    clock: Clock, source: PairSource, seconds: float | None, options: dict[str, Any]
) -> ConsensusPartition:
    """Search within a time limit, if the method takes one; `options` are those of :func:`consensus_partition`."""
    if seconds is not None and takes(options.get("method", "greedy"), "seconds"):
        options = options | {"seconds": seconds}
    return _ending(clock, clock("consensus", consensus_partition, source, **options))


def _ending(clock: Clock, search: Result) -> Result:
    """Return what a search found; after Ctrl-C, later steps are left out."""
    if was_interrupted(search):
        clock.end()
    return search


def seed_of(random_seed: Any) -> int | None:
    """The seed, if it is an integer, by which a reader can repeat the searches."""
    return int(random_seed) if isinstance(random_seed, int | np.integer) else None


def ball_loss(partition: ConsensusPartition) -> str | PartitionLoss:
    """Loss for distances to a partition: the loss of its search, or VI if that has noise or is not a metric."""
    found_under = as_loss_of_draws(partition.loss)
    return found_under if isinstance(found_under, PartitionLoss) and found_under.metric else "vi"


def summary_of(
    clock: Clock,
    posterior: Posterior,
    partition: ConsensusPartition,
    searched: dict[str, Any],
    *,
    prob: float,
    modes: bool,
    new: NewRuns | None = None,
) -> Summary:
    """Compute the summary of the partition found; `searched` has seed and progress bar of further searches.

    `new` says how near new runs are, if that is known already.
    """
    draws, metric, words = posterior.draws, ball_loss(partition), posterior.draws.samples.words
    ball = clock(words.ball, credible_ball, draws, partition, loss=metric, prob=prob)
    items = clock("items", item_uncertainty, draws, partition)
    labels = draws.as_labels(partition)
    small = suits_links(draws, labels)
    clusters = None if small else clock("clusters", _stability_of_clusters, draws, partition, labels)
    with waiting("Diagnosis", progressbar=searched["progressbar"]):
        diagnosis = clock("diagnosis", diagnose_within, clock.part(_REST), draws, partition, logs=posterior.logs)
    limited = {"seconds": clock.part(_REST), "progressbar": searched["progressbar"]}
    proof = clock.within_limit("certificate", quick_certificate, draws, partition, partition.loss, **limited)
    no_proof = f"No certificate was computed, because {why_skipped(partition)}."
    certificate, no_certificate = proof or (None, no_proof)
    with waiting(f"Halves of the {words.draws}", progressbar=searched["progressbar"]):
        halves = {"seconds": clock.part(_REST), "random_seed": searched["random_seed"]}
        excess = look_at_halves(clock, draws, partition, diagnosis, metric, **halves)
    if diagnosis.status == "disagree":  # of groups of equal size, a run left out would change whose partition it is
        new = None
    elif new is None:
        with waiting("Searches without a run", progressbar=searched["progressbar"]):
            new = _look_at_new_runs(clock, draws, partition, as_loss(metric, kind=PartitionLoss))
    return Summary(
        source=posterior.origin.in_words(),
        source_in_short=posterior.origin.in_short(),
        draws=draws,
        partition=partition,
        ball=ball,
        items=items,
        diagnosis=diagnosis,
        certificate=certificate,
        no_certificate=no_certificate,
        excess=excess,
        resampled=look_at_other_labels(clock, draws, partition, seconds=clock.part(_REST), **searched),
        alternative=_alternative(clock, draws, partition, searched),
        modes=_groups(clock, draws, partition, metric, searched) if modes else None,
        observed=posterior.observed,
        links=clock("links", links, draws, partition) if small else None,
        seconds=clock.seconds,
        cut=tuple(clock.cut),
        seed=seed_of(searched["random_seed"]),
        new_runs=new,
        clusters=clusters,
    )


def _stability_of_clusters(
    draws: PartitionDraws, partition: ConsensusPartition, labels: Labels
) -> ClusterStability | None:
    """In which draws each cluster exists, if there are not too many clusters."""
    return cluster_stability(draws, partition) if suits_matching(draws, labels) else None


def _look_at_new_runs(
    clock: Clock, draws: PartitionDraws, partition: ConsensusPartition, metric: PartitionLoss
) -> NewRuns | None:
    """How near new runs are to the partition, if it was chosen by several runs of equal weights and time is left."""
    if draws.samples.series or draws.samples.is_weighted or draws.n_draws < 2 or not is_greedy(partition):
        return None
    marked, chance = draws.items.as_marked_labels(partition), mean_chance(compared_runs(draws), metric)
    return clock.within_limit("new runs", new_runs, draws, partition, marked, metric, chance)


def _alternative(
    clock: Clock, draws: PartitionDraws, partition: ConsensusPartition, searched: dict[str, Any]
) -> ConsensusPartition | None:
    """Search with the most probable number of clusters, if the number of the consensus partition is improbable."""
    if not is_improbable(draws, partition):
        return None
    options: dict[str, Any] = {"n_clusters": int(number_probabilities(draws).argmax()), "starts": [partition]}
    options |= {"n_starts": 3, "seconds": clock.part(_REST)} | searched
    if draws.n_items * draws.n_draws > _LITTLE and isinstance(partition.info, SearchInfo):
        options["n_perturbations"] = partition.info.n_perturbations
    alternative = _ending(
        clock, clock.within_limit("alternative", consensus_partition, draws, loss=partition.loss, **options)
    )
    if alternative is None:
        return None
    match = align_partitions({"consensus": partition, "alternative": alternative})["alternative"]
    in_clusters = alternative.labels.values >= 0
    names = [match.names[k] for k in dict.fromkeys(match.labels.values[in_clusters].tolist())]
    return alternative if tuple(names) == alternative.names else alternative.with_names(names)


def _groups(
    clock: Clock,
    draws: PartitionDraws,
    partition: ConsensusPartition,
    metric: str | PartitionLoss,
    searched: dict[str, Any],
) -> Particles | None:
    limited = {"seconds": clock.part(1.0)} | searched
    return _ending(clock, clock.within_limit("modes", look_for_groups, draws, partition, metric, **limited))


def look_for_groups(
    draws: PartitionDraws, partition: ConsensusPartition, metric: str | PartitionLoss, **options: Any
) -> Particles:
    """Search for a few groups; a single group has the consensus partition as its partition.

    The search uses at most 300 items of many labels, and at most a million labels of these, but at least 500 draws. All
    draws are then assigned to the groups. Clusters are numbered like those of the consensus partition.
    """
    one = draws.as_labels(partition) if as_loss(metric) == partition.loss else None
    most = max(SOME_DRAWS, _MOST_LABELS // min(draws.n_items, _EFFORT.most_items))
    search: dict[str, Any] = {"max_particles": _MOST_GROUPS, "n_starts": 1, "one": one, "effort": _EFFORT}
    search |= {"some": some_draws(draws, most), "partition": partition}
    return find_particles(draws, "auto", metric, **search, **options)


def look_at_halves(
    clock: Clock,
    draws: PartitionDraws,
    partition: ConsensusPartition,
    diagnosis: Diagnosis,
    metric: str | PartitionLoss,
    **options: Any,
) -> ExcessLoss | None:
    """Estimate the excess of the expected loss, if possible and time is left."""
    if no_halves_because(draws, partition, diagnosis):
        return None
    return _ending(clock, clock.within_limit("halves", excess_loss, draws, partition, metric, **options))


def look_at_other_labels(
    clock: Clock, draws: PartitionDraws, partition: ConsensusPartition, **options: Any
) -> ConsensusPartition | None:
    """Search with labels sampled anew, if the search used sampled labels and time is left."""
    if not uses_sampled_labels(draws, partition) or draws.n_items * draws.n_draws > memory.LABELS_TO_SEARCH_AGAIN:
        return None
    limits = {name: number for name, number in vars(partition.cluster_limits).items() if number is not None}
    search = {"loss": partition.loss, "n_starts": 3, "starts": [partition], **limits, **options}
    others = as_soft(draws, "`summarize`").sample(random_seed=_SEED)
    return _ending(clock, clock.within_limit(OTHER_LABELS, consensus_partition, others, **search))
