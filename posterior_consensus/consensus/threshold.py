"""The pair threshold tau of Binder's loss in a consensus: given, or calibrated on the draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from posterior_consensus.ensemble import counting
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import Loss, pairs
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_between
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.engine import search

_MOST_ROUNDS = 20
_SAME = 1e-4  # change of tau at which rounds end
_PAIRS = 20_000  # most pairs for the first tau
_PAIRS_AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True)
class Threshold(Info):
    """The pair threshold, whether it was calibrated, and mean similarities of pairs `within` and `between` clusters."""

    tau: float
    within: float
    between: float
    calibrated: bool = False


class Calibration(NamedTuple):
    """A threshold, the mean similarities within and between, the last partition (n,), and how the rounds ended."""

    tau: float
    within: float
    between: float
    labels: Labels
    n_rounds: int
    converged: bool


def consistent_interval(within: float, between: float) -> str:
    """Interval of consistent thresholds in words."""
    if np.isnan(within) or np.isnan(between):
        return "unknown, because the partition has pairs of one kind only"
    if within <= between:
        return "none: pairs of different clusters are as similar as pairs of one cluster"
    return f"{between:.2g} to {within:.2g}"


def calibrated(draws: PartitionDraws, rng: np.random.Generator, progressbar: bool) -> Calibration:
    """Calibrate the threshold in rounds, see :func:`pair_threshold`."""
    *_, last = track(_rounds(draws, rng), "Pair threshold", progressbar=progressbar)
    return last


def _rounds(draws: PartitionDraws, rng: np.random.Generator) -> Iterator[Calibration]:
    tau = _first_threshold(_sampled_similarities(draws, rng))
    best: list[Labels] = []
    for n_rounds in range(1, _MOST_ROUNDS + 1):
        found = search(Problem(draws, binder(tau=tau)), rng, starts=best)  # at most the loss of the previous one
        best = [found.labels]
        within, between = pair_means(draws, best[0])
        before, defined = tau, np.isfinite(within) and np.isfinite(between)
        if defined:
            tau = _from_means(within, between, 1 / np.square(draws.weights).sum())
        settled = bool(defined and abs(tau - before) < _SAME)
        yield Calibration(tau, within, between, best[0], n_rounds, settled)
        if settled or not defined:
            return


def _sampled_similarities(draws: PartitionDraws, rng: np.random.Generator) -> Floats:
    """Posterior similarity of every pair, or of a sample of them."""
    n = draws.n_items
    if n * (n - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        first = rng.integers(n, size=_PAIRS)
        second = (first + rng.integers(1, n, size=_PAIRS)) % n
    needed, places = np.unique(np.stack([first, second]), return_inverse=True)
    first, second = places.reshape(2, -1)
    items = draws.backend.columns(needed)
    blocks = [slice(at, at + _PAIRS_AT_ONCE) for at in range(0, first.size, _PAIRS_AT_ONCE)]
    return np.concatenate([[], *(draws.samples.mean(items[first[block]] == items[second[block]]) for block in blocks)])


def _first_threshold(similarities: Floats) -> float:
    """Midpoint of the two centres of 2-means."""
    x = np.sort(similarities)
    if x.size == 0 or x[-1] - x[0] < SAME:
        return 0.5
    low = np.arange(1, x.size)
    high = x.size - low
    below = np.cumsum(x)[:-1]
    above = x.sum() - below
    split = np.argmax(below**2 / low + above**2 / high)  # least squares within the two groups
    return float(below[split] / low[split] + above[split] / high[split]) / 2


def _from_means(within: float, between: float, n_draws: float) -> float:
    least = 0.5 / (n_draws + 1)  # Jeffreys' estimate of a probability that n_draws have not seen
    within, between = np.clip([within, between], least, 1 - least)
    together, apart = np.log(within / between), np.log((1 - between) / (1 - within))
    return float(apart / (together + apart)) if within > between else float(within)


def pair_means(source: PairSource, labels: Labels) -> tuple[float, float]:
    """Mean similarity of pairs within and between clusters; NaN without such pairs.

    With draws, the cost is items x draws: a pair's similarity is its mean over draws, so sums over pairs can be taken
    in each draw.
    """
    h = pairs(source.n_items)
    sizes = np.bincount(labels)
    joint: Floats | np.float64
    total: Floats | np.float64
    if (draws := source.counted_draws) is not None:
        sums, drawn = counting.joint_sums(draws.backend, labels[np.newaxis], h)
        joint, total = draws.samples.mean(sums[0]), draws.samples.mean(drawn)
    elif source.n_draws is None:
        own, to_all = source.sums(labels[np.newaxis])
        joint, total = (own.sum() - labels.size) / 2, (to_all.sum() - labels.size) / 2
    else:
        links, weight = source.links(labels)
        joint, total = links[np.arange(labels.size), labels].sum() / (2 * weight), links.sum() / (2 * weight)
    together = h[sizes].sum()
    apart = h[-1] - together
    within = float(joint / together) if together else np.nan
    between = float((total - joint) / apart) if apart else np.nan
    return within, between


def threshold_of(source: PairSource, loss: Loss, tau: Any, rng: np.random.Generator, progressbar: bool) -> float:
    """Return the pair threshold `tau`, calibrated if it is "auto"."""
    if loss != binder():
        raise ValueError(
            f"`tau` is the pair threshold of Binder's loss: it needs loss='binder'; got loss {loss.name!r}."
        )
    if isinstance(tau, str):
        if tau != "auto":
            raise ValueError(f"`tau` must be a number between 0 and 1, 'auto' or None; got {tau!r}.")
        return calibrated(source.as_draws(), rng, progressbar).tau
    return check_between("tau", tau, 1)
