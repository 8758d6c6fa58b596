"""How many separated modes a posterior of partitions has: whether draws lie between the candidates."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.evaluate.expectation import Floats, loss_matrix
from posterior_consensus.losses.record import PartitionLoss

Integers = npt.NDArray[np.int64]
Group = tuple[int, ...]

FURTHER = 2
"""Numbers of particles to look at beyond the most modes found: with few particles a mode can be cut in two."""

_LEAST_MOVED = 3  # items; partitions nearer than that are neighbours, between which nothing can lie
_DEPTH = 0.5  # density of a valley relative to the lower of the peaks beside it
_LEVEL = 0.05
_WINDOWS = np.array([0.06, 0.09, 0.135, 0.2, 0.3])  # half-widths; the axis is 2 long
_AXIS = np.linspace(-1.0, 1.0, 161)
_STRAY = 0.2  # of the lighter region's weight, that may lie on the wrong side of a valley
_PULL = 3.0  # by which a few draws draw apart the partitions found from them
_DECIMALS = 9
_TIE = 10.0**-_DECIMALS


@dataclass(frozen=True, eq=False)
class Modes:
    """Which partitions stand for the same mode; made by :func:`separated_modes`.

    Attributes
    ----------
    mode : ndarray of shape (n_partitions,), dtype int64
        Mode of each partition, from 0, the heaviest first.
    weights : ndarray of shape (n_modes,), dtype float64
        Posterior probability of the draws that are nearest to the partitions of each mode.
    p_value : float
        Largest over the pairs of modes; 1 if there is one mode.
    """

    mode: Integers
    weights: Floats
    p_value: float

    @property
    def n_modes(self) -> int:
        """Number of separated modes."""
        return self.weights.size


def separated_modes(
    partitions: npt.NDArray[np.int32],
    losses: Floats,
    samples: Samples,
    loss: PartitionLoss,
    *,
    independent: bool = False,
) -> Modes:
    """Join partitions until a valley lies between every two groups: the groups are the modes.

    Parameters
    ----------
    partitions : ndarray of shape (n_partitions, n_items)
        Candidates, such as particles or peaks of the density.
    losses : ndarray of shape (n_partitions, n_draws)
        Loss of each partition against each draw.
    samples : Samples
        Chains and weights of the draws.
    loss : PartitionLoss
        The loss of `losses`; a metric, or nearly.
    independent : bool
        Whether to take the draws for independent ones. Modes that only this shows are neither there nor absent: a
        valley is, and the effective draws are too few to say that it is no accident.

    Returns
    -------
    Modes

    Notes
    -----
    Each draw belongs to the nearest partition. For two groups G and H and the draws z that belong to them let

        x(z) = (min_{S in G} d(S, z) - min_{T in H} d(T, z)) / min_{S in G, T in H} d(S, T),

    which lies between -1, at G, and 1, at H. A window of half-width e around c holds n(c) effective draws, those with
    abs(x - c) <= e. A valley at v has v-2e and v+2e in reach of a peak: with p the smaller of the largest n(c) over
    c <= v - 2e and over c >= v + 2e, its evidence is

        P(B <= n(v)),   B binomial of n(v) + p trials with probability r / (1 + r), r = 1/2,

    small if the density at v is below half that at both peaks by more than chance. G and H are separated if it is at
    most 0.05 for a v and an e. Windows are no narrower than 1/m, where m is the least number of items that change
    their cluster from a partition of G to one of H, and nothing separates partitions with m < 3. The valley must be the
    border of the two regions: at most a fifth of the lighter region may lie between v and 0. The means of x in the two
    regions must be 3 / sqrt(k) apart, k the effective draws of the lighter one: each draw pulls the partition found
    from it and others towards itself, and few noisy draws of many items seem to have modes for that reason alone.

    The effective number of draws is the least that follows from the weights (Kish), from the autocorrelation of x and
    from that of the loss of the nearest partition, less the mean of each region. Chains that stay in one mode each thus
    show that mode well, although they say nothing about its weight.

    The two groups with the weakest evidence are joined first, of equal ones the nearest.
    """
    regions = _Regions(partitions, losses, samples, loss, independent)
    groups: list[Group] = [(k,) for k in np.flatnonzero(regions.weights > 0).tolist()]
    evidence = regions.evidence(list(combinations(groups, 2)), groups)
    while evidence:
        weakest = max(evidence, key=lambda pair: (evidence[pair], -regions.distance(*pair)))
        if evidence[weakest] <= _LEVEL:
            break
        joined = tuple(sorted(weakest[0] + weakest[1]))
        others = [group for group in groups if group not in weakest]
        groups = [*others, joined]
        evidence = {pair: value for pair, value in evidence.items() if not set(pair) & set(weakest)}
        evidence |= regions.evidence([(group, joined) for group in others], groups)
    groups.sort(key=lambda group: (-regions.weights[list(group)].sum(), group))
    mode = [min(range(len(groups)), key=lambda g: regions.distance((k,), groups[g])) for k in range(len(partitions))]
    for g, group in enumerate(groups):
        for k in group:
            mode[k] = g
    weights = np.array([regions.weights[list(group)].sum() for group in groups])
    return Modes(np.array(mode, np.int64), weights, max(evidence.values(), default=1.0))


class _Regions:
    """The draws nearest to each partition, and what lies between groups of them."""

    def __init__(
        self,
        partitions: npt.NDArray[np.int32],
        losses: Floats,
        samples: Samples,
        loss: PartitionLoss,
        independent: bool,
    ) -> None:
        self._losses = losses
        self._samples = samples
        self._independent = independent
        self._nearest = losses.argmin(axis=0)
        self._least = losses.min(axis=0)
        self.weights: Floats = np.bincount(self._nearest, samples.weights, len(partitions)).astype(np.float64)
        rows = [canonical_labels(partition) for partition in partitions]
        self._moved = np.array([[np.sum(numbered_like(one, other) != other) for other in rows] for one in rows])
        distances = loss_matrix(np.array(rows), PartitionDraws.of(np.array(rows)), loss)
        self._distances = (distances + distances.T) / 2

    def distance(self, one: Group, other: Group) -> float:
        """Least loss between two partitions of different groups."""
        return float(self._distances[np.ix_(one, other)].min())

    def evidence(self, pairs: list[tuple[Group, Group]], groups: list[Group]) -> dict[tuple[Group, Group], float]:
        """Probability of so empty a valley, for each of these pairs of groups; 1 where one cannot tell."""
        found = dict.fromkeys(pairs, 1.0)
        member = np.full(self.weights.size, len(groups))  # none: a region of draws without weight
        for g, group in enumerate(groups):
            member[list(group)] = g
        group_of = member[self._nearest]
        axes, spread = [], [self._within(self._least, group_of)]
        for pair in pairs:
            moved = self._moved[np.ix_(*pair)].min()
            if moved < _LEAST_MOVED or self.distance(*pair) == 0:
                continue
            to_one, to_other = (self._losses[list(group)].min(axis=0) for group in pair)
            # Draws in the middle are there whatever the rounding, so that the order of the two does not matter.
            x = np.clip(np.round((to_one - to_other) / self.distance(*pair), _DECIMALS), -1.0, 1.0)
            between = np.isin(self._nearest, pair[0] + pair[1])
            axes.append((pair, x, between, 1 / moved))
            spread.append(np.where(between, self._within(x, group_of), 0.0))
        if not axes:
            return found
        number = self._effective(np.array(spread))
        for (pair, x, between, least), own in zip(axes, number[1:], strict=True):
            n_draws = min(own, number[0])
            if not np.isnan(n_draws):
                found[pair] = valley_evidence(x[between], n_draws * self._samples.weights[between], least)
        return found

    def _within(self, values: Floats, group_of: npt.NDArray[np.intp]) -> Floats:
        """Subtract each group's mean."""
        weights = self._samples.weights
        total = np.bincount(group_of, weights)
        sums = np.bincount(group_of, weights * values)
        means = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        return values - means[group_of]

    def _effective(self, values: Floats) -> Floats:
        """Effective number of draws for the mean of each row; NaN where the draws cannot tell."""
        most = self._samples.effective_draws
        if self._independent:
            return np.full(len(values), most)
        error = self._samples.mcse(values)
        variance = self._samples.mean(np.square(values))
        varies = variance > _TIE**2
        number = np.divide(variance, np.square(error), out=np.full(error.shape, most), where=varies & (error != 0))
        return np.where(np.isnan(error), np.nan, np.minimum(number, most))


def valley_evidence(x: Floats, weights: Floats, least: float, pull: float = _PULL) -> float:
    """Least probability, over places and widths, of a valley so empty, of values between -1 and 1.

    The weights sum to the effective number, no window is narrower than `least`, and there is none where the two sides
    are nearer to each other than `pull` over the root of the lighter one's number.
    """
    order = np.argsort(x, kind="stable")
    places = x[order]
    below = np.concatenate([[0.0], np.cumsum(weights[order])])

    def weight_below(place: npt.ArrayLike) -> Floats:  # half of what lies there counts
        return (below[np.searchsorted(places, place)] + below[np.searchsorted(places, place, side="right")]) / 2

    left, right = weight_below(0.0), below[-1] - weight_below(0.0)
    lighter = min(left, right)
    if lighter <= 0:
        return 1.0
    apart = weights[x > 0] @ x[x > 0] / right - weights[x < 0] @ x[x < 0] / left
    if apart < pull / np.sqrt(lighter):
        return 1.0
    at_border = np.abs(weight_below(_AXIS) - left) <= _STRAY * lighter
    evidence = 1.0
    for width in [max(least, _WINDOWS[0]), *_WINDOWS[_WINDOWS > max(least, _WINDOWS[0])]]:
        first = np.searchsorted(places, _AXIS - width - _TIE)
        last = np.searchsorted(places, _AXIS + width + _TIE, side="right")
        inside = below[last] - below[first]
        step = int(np.ceil(2 * width / (_AXIS[1] - _AXIS[0]) - _TIE))
        before = np.maximum.accumulate(inside)[: -2 * step]
        after = np.maximum.accumulate(inside[::-1])[::-1][2 * step :]
        peak, valley = np.minimum(before, after), inside[step:-step]
        usable = at_border[step:-step] & (peak > 0)
        if np.any(usable):
            chances = betainc(peak[usable], valley[usable] + 1, 1 / (1 + _DEPTH))
            evidence = min(evidence, float(chances.min()))
    return evidence
