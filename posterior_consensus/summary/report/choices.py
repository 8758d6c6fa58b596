"""Partitions offered in the report: those of modes, and partitions along two sliders."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from posterior_consensus.answers.loss_parameter import loss_path
from posterior_consensus.answers.n_clusters import default_numbers, loss_by_n_clusters
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, alone
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.partition_losses import vi
from posterior_consensus.plots.frame import SOME_OF_PAIRS
from posterior_consensus.results import display
from posterior_consensus.results.display import counted
from posterior_consensus.summary.about_draws import expectation, named_modes
from posterior_consensus.summary.record import SummaryRecord, some_draws

_MOST_LABELS = 2_000_000  # items times draws beyond which the slider for the number of clusters is left out
_MOST_CLUSTERS = 100  # beyond which the sliders are left out
_MOST_NUMBERS = 15  # numbers of clusters on the slider
_THRESHOLDS = np.arange(1, 10) / 10
_SEED = 1  # fixed, so that a summary always has the same report


class Choice(NamedTuple):
    """A partition, numbered like the reported partition, and its description on the page."""

    kind: str
    value: float
    labels: Labels
    words: str


def choices_of(summary: SummaryRecord, *, progressbar: bool) -> tuple[list[Choice], list[str]]:
    """Return the partitions, beginning with the reported partition, and sentences on omissions."""
    draws, own = some_draws(summary.draws), alone(summary.partition.labels.values)
    of_modes = (Choice("mode", k + 1.0, labels, name) for k, (name, labels) in enumerate(named_modes(summary)))
    choices, notes = [Choice("mode", 0.0, own, "the partition reported"), *of_modes], list[str]()
    missing = list[str]()
    few, words = summary.partition.n_clusters <= _MOST_CLUSTERS, summary.words
    for name, along, fits in (
        ("the number of clusters", _by_number, few and draws.n_items * draws.n_draws <= _MOST_LABELS),
        # High thresholds leave nearly as many clusters as items, so the search is quadratic in the items.
        ("the pair threshold", _by_threshold, few and draws.n_items <= SOME_OF_PAIRS),
    ):
        if fits:
            choices += along(summary, draws, progressbar)
        else:
            missing.append(f"no slider for {name}")
    if missing:
        notes.append(f"There is {' and '.join(missing)}: there are too many items, {words.draws} or clusters.")
    if choices[-1].kind != "mode" and draws.n_draws < summary.draws.n_draws:
        computed = f"{words.expected} losses are computed from {draws.n_draws:,} of the {words.draws}"
        notes.append(f"The sliders' partitions and {computed}.")
    return [choice._replace(labels=numbered_like(choice.labels, own)) for choice in choices], notes


def _by_number(summary: SummaryRecord, draws: PartitionDraws, progressbar: bool) -> Iterator[Choice]:
    best, spoken = summary.partition.n_clusters, summary.words
    numbers = default_numbers(draws, best)
    some = np.linspace(numbers[0], numbers[-1], min(len(numbers), _MOST_NUMBERS)).round().astype(int)
    wanted = {best, *some.tolist()}
    options: dict[str, Any] = {"n_clusters": wanted, "n_starts": 1, "random_seed": _SEED, "progressbar": progressbar}
    result = loss_by_n_clusters(draws, loss=summary.loss, **options)
    table, error = result.table, result.table["difference_mcse"].values
    for k, (number, labels) in enumerate(zip(table["n_clusters"].values, result.partitions.values, strict=True)):
        expected = expectation(result.loss, float(table["expected_loss"][k]), spoken)
        more = display.quantity(float(table["difference"][k]), result.loss.unit, 3)
        words = f"{counted(int(number), 'cluster')}, {expected}, {more} above the minimum"
        words += f" (standard error {error[k]:.1g})" if error[k] > 0 else ""
        probability = float(table["probability"][k])
        yield Choice(
            "clusters", float(number), labels, f"{words}; this number has {spoken.has_probability} {probability:.2f}"
        )


def _by_threshold(summary: SummaryRecord, draws: PartitionDraws, progressbar: bool) -> Iterator[Choice]:
    options: dict[str, Any] = {"n_starts": 1, "random_seed": _SEED, "progressbar": progressbar}
    path = loss_path(draws, loss="binder", values=_THRESHOLDS, **options)
    for k, (tau, labels) in enumerate(zip(path.table["tau"].values, path.partitions.values, strict=True)):
        number = counted(int(path.table["n_clusters"][k]), "cluster")
        expected = expectation(vi(), float(path.table["expected_vi"][k]), summary.words)
        yield Choice("threshold", float(tau), labels, f"pair threshold {tau:.1f}, {number}, {expected}")
