"""The pair threshold tau of Binder's loss, calibrated on the draws themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble import counting
from posterior_consensus.ensemble.draws import PartitionDraws, hard_draws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasLabels, Labels
from posterior_consensus.losses.partition_losses import binder, pairs
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_between
from posterior_consensus.runtime.progress import track
from posterior_consensus.search.engine import search
from posterior_consensus.sources.door import as_draws

_MOST_ROUNDS = 20
_SAME = 1e-4  # of tau, below which another round would find the same partition
_PAIRS = 20_000  # considered for the start
_PAIRS_AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True)
class Threshold(Info):
    """The pair threshold `tau` that was given, and the mean similarities of pairs `within` and `between` clusters."""

    tau: float
    within: float
    between: float


@dataclass(frozen=True, eq=False, repr=False)
class PairThreshold(HasLabels, Stored):
    """A pair threshold for Binder's loss and the similarities it lies between; made by :func:`pair_threshold`.

    Attributes
    ----------
    tau : float in (0, 1)
        The threshold; ``binder(tau=...)`` takes it.
    within, between : float
        Mean posterior similarity of pairs within and between the clusters of `labels`; NaN if there are
        no such pairs.
    labels : xarray.DataArray of shape (n_items,), dtype int32
        The partition of the last round.
    n_rounds : int
    converged : bool
        Whether tau has settled. It has not if the rounds ran out, or if the draws give no two kinds of pairs to tell
        apart.
    """

    tau: float = field(metadata=stored_as.number("threshold_tau"))
    within: float = field(metadata=stored_as.number("threshold_within"))
    between: float = field(metadata=stored_as.number("threshold_between"))
    labels: xr.DataArray = field(metadata=stored_as.array("threshold_labels", of_items=True))
    n_rounds: int = field(metadata=stored_as.attribute("threshold_rounds"))
    converged: bool = field(metadata=stored_as.flag("threshold_converged"))

    def to_dataframe(self) -> pd.DataFrame:
        """A row for the pairs within clusters and one for those between: their number and mean similarity."""
        h = pairs(self.labels.size)
        together = h[np.bincount(self.labels.values)].sum()
        return pd.DataFrame(
            {"pairs": [int(together), int(h[-1] - together)], "similarity": [self.within, self.between]},
            index=pd.Index(["within", "between"], name="clusters"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_clusters = int(self.labels.max()) + 1
        place = (self.tau - self.between) / (self.within - self.between) if self.within > self.between else np.nan
        facts = [
            ("consistent", consistent_interval(self.within, self.between)),
            ("tau lies", f"{place:.0%} into the interval" if np.isfinite(place) else "-"),
            ("clusters", f"{n_clusters} of {self.labels.size} items ({self.labels.dims[0]})"),
            ("rounds", f"{self.n_rounds}{'' if self.converged else ', not converged'}"),
        ]
        return f"PairThreshold: tau {display.number(self.tau)}", facts, self.to_dataframe()


def consistent_interval(within: float, between: float) -> str:
    """The interval in words."""
    if np.isnan(within) or np.isnan(between):
        return "not known, as the partition has pairs of one kind only"
    if within <= between:
        return "none: pairs of different clusters are as similar as pairs of one cluster"
    return f"{between:.2g} to {within:.2g}"


def pair_threshold(
    draws: Any,
    *,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PairThreshold:
    """Calibrate the pair threshold tau of Binder's loss on the draws.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same threshold.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PairThreshold

    Raises
    ------
    ValueError
        If the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    binder : the loss that takes the threshold.
    loss_path : the partitions at many thresholds.

    Notes
    -----
    Suppose that each draw co-clusters two items of one cluster with probability alpha, and separates two others with
    probability beta if they do not. The log-likelihood ratio of the two, for a pair of similarity X, has the sign of
    X - tau with

        tau = log(beta / (1 - alpha)) / log(alpha beta / ((1 - alpha) (1 - beta))),

    which lies between 1 - beta and alpha. The first tau is halfway between the two means of 2-means on the
    similarities of the pairs (a sample of them if there are many). A round finds the partition of minimum expected
    Binder loss at tau. It sets alpha to the mean similarity within the clusters, 1 - beta to that between them, and tau
    by the formula. Rounds end when tau changes by less than 0.0001. A mean over N draws is kept at least 1 / (2 N + 2)
    away from 0 and 1; weighted draws count as 1 / sum(w^2) equal ones.

    In the random perturbation model [1]_, where each draw keeps an item's true label with probability 1 - p and else
    draws any of K labels, the pairs have only these two similarities, 1 - x (1 - 1 / K) and x / K with x = p (2 - p):
    every tau between them recovers the truth from enough draws, and 1/2 is between them for p below 1 - sqrt(1 - K / (2
    (K - 1))) only. Beyond that, plain Binder tends to single items.

    If all pairs are equally similar there is nothing to calibrate on, and tau is 1/2. If a round ends with one
    cluster or with single items only, tau stays as it was and `converged` is False.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> pc.consensus.pair_threshold(draws, random_seed=1)
    PairThreshold: tau 0.2675
      consistent  0 to 0.5
      tau lies    54% into the interval
      clusters    2 of 4 items (item)
      rounds      2
    <BLANKLINE>
               pairs  similarity
      within       2         0.5
      between      4           0
    """
    draws = as_draws(draws)
    *_, last = track(_rounds(draws, as_generator(random_seed)), "Pair threshold", progressbar=progressbar)
    return last


def _rounds(draws: PartitionDraws, rng: np.random.Generator) -> Iterator[PairThreshold]:
    tau = _first_threshold(_similarities(draws, rng))
    found: list[Labels] = []
    for n_rounds in range(1, _MOST_ROUNDS + 1):
        found = [search(draws, binder(tau=tau), rng=rng, starts=found).labels]  # none is worse than that before
        within, between = pair_means(draws, found[0])
        before, defined = tau, np.isfinite(within) and np.isfinite(between)
        if defined:
            tau = _calibrated(within, between, 1 / np.square(draws.weights).sum())
        settled = bool(defined and abs(tau - before) < _SAME)
        yield PairThreshold(tau, within, between, draws.items.array(found[0], "labels"), n_rounds, settled)
        if settled or not defined:
            return


def _similarities(draws: PartitionDraws, rng: np.random.Generator) -> Floats:
    """Posterior similarity of every pair, or of a sample of them."""
    n = draws.n_items
    if n * (n - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        first = rng.integers(n, size=_PAIRS)
        second = (first + rng.integers(1, n, size=_PAIRS)) % n
    needed, places = np.unique(np.stack([first, second]), return_inverse=True)
    first, second = places.reshape(2, -1)
    items = draws.drawn.columns(needed)
    blocks = [slice(at, at + _PAIRS_AT_ONCE) for at in range(0, first.size, _PAIRS_AT_ONCE)]
    return np.concatenate([[], *(draws.samples.mean(items[first[block]] == items[second[block]]) for block in blocks)])


def _first_threshold(similarities: Floats) -> float:
    """Halfway between the two means of 2-means."""
    x = np.sort(similarities)
    if x.size == 0 or x[-1] - x[0] < 1e-9:
        return 0.5
    low = np.arange(1, x.size)
    high = x.size - low
    below = np.cumsum(x)[:-1]
    above = x.sum() - below
    split = np.argmax(below**2 / low + above**2 / high)  # least squares within the two groups
    return float(below[split] / low[split] + above[split] / high[split]) / 2


def _calibrated(within: float, between: float, n_draws: float) -> float:
    least = 0.5 / (n_draws + 1)  # Jeffreys' estimate of a probability that n_draws have not seen
    within, between = np.clip([within, between], least, 1 - least)
    together, apart = np.log(within / between), np.log((1 - between) / (1 - within))
    return float(apart / (together + apart)) if within > between else float(within)


def pair_means(source: PairSource, labels: Labels) -> tuple[float, float]:
    """Mean similarity of the pairs that a partition has together and of those it has apart; NaN if there are none.

    With draws the costs are items x draws: a pair's similarity is its mean over draws, so sums over pairs can be taken
    in each draw.
    """
    h = pairs(source.n_items)
    sizes = np.bincount(labels)
    if (draws := hard_draws(source)) is not None:
        joint = draws.samples.mean(counting.joint_sums(draws.drawn, labels[np.newaxis], h)[0])
        drawn = draws.samples.mean(counting.size_sums(draws.drawn, h))
    else:
        links, total = source.links(labels)
        joint, drawn = links[np.arange(labels.size), labels].sum() / (2 * total), links.sum() / (2 * total)
    together = h[sizes].sum()
    apart = h[-1] - together
    within = float(joint / together) if together else np.nan
    between = float((drawn - joint) / apart) if apart else np.nan
    return within, between


def threshold_of(source: PairSource, loss: Loss, tau: Any, rng: np.random.Generator, progressbar: bool) -> float | None:
    """The pair threshold that `tau` asks for, calibrated if it is "auto"; None if it is None."""
    if tau is None:
        return None
    if loss != binder():
        raise ValueError(
            f"`tau` is the pair threshold of Binder's loss: it needs loss='binder'; got loss {loss.name!r}."
        )
    if isinstance(tau, str):
        if tau != "auto":
            raise ValueError(f"`tau` must be a number between 0 and 1, 'auto' or None; got {tau!r}.")
        return pair_threshold(source, random_seed=rng, progressbar=progressbar).tau
    return check_between("tau", tau, 1)
