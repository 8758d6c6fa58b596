"""Number of separated modes of a posterior on partitions: whether a valley lies between the candidates."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.aliases import Floats, Integers, Positions

Group = tuple[int, ...]

FURTHER = 2
"""Numbers of particles to try beyond the most modes found: with few particles, a particle can cut a mode in two."""

_LEAST_MOVED = 3  # items; no partition lies between partitions that differ by fewer
_DEPTH = 0.5  # density of a valley relative to the lower of the two peaks
_LEVEL = 0.05  # largest p-value of a valley that separates modes
FEWEST = float(np.log(_LEVEL) / np.log(1 / (1 + _DEPTH)))
"""Effective draws that a group needs at least: next to an empty valley, the p-value of fewer is above the level."""

_WINDOWS = np.array([0.06, 0.09, 0.135, 0.2, 0.3])  # half-widths; the axis has length 2
_AXIS = np.linspace(-1.0, 1.0, 161)
_STRAY = 0.2  # share of the lighter region's weight that may lie on the wrong side of a valley
_PULL = 3.0  # least separation of two regions, in units of 1 / sqrt(effective draws)
_SUPPOSED = 500  # draws that count as independent, at most: all of a long slow chain would show valleys by chance
_DECIMALS = 9
_TIE = 10.0**-_DECIMALS


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes to which partitions belong; made by :func:`separated_modes`."""

    mode: Integers  # (n_partitions,): mode of each partition, from 0, the heaviest first
    weights: Floats  # (n_modes,): posterior probability of the draws nearest to the partitions of each mode
    p_value: float  # largest p-value of a valley over the pairs of modes; 1 for a single mode

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
    """Merge partitions until a valley lies between every two groups; the groups are the modes.

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
        Whether to treat the draws as independent, and as 500 if they are more. Modes found only in this way are
        undecided: the draws have a valley, but too few effective draws to exclude chance.

    Returns
    -------
    Modes

    Notes
    -----
    Each draw belongs to the nearest partition. For two groups G and H of partitions, and the draws z of both, let

        x(z) = (min_{S in G} d(S, z) - min_{T in H} d(T, z)) / min_{S in G, T in H} d(S, T).

    It lies between -1, at G, and 1, at H. Let n(c) be the number of effective draws in a window of half-width e, with
    abs(x - c) <= e. For a valley at v, let p be the smaller of the largest n(c) over c <= v - 2e and over c >= v + 2e.
    Its p-value is

        P(B <= n(v)),   B binomial of n(v) + p trials with probability r / (1 + r), r = 1/2.

    It is small if the density at v is below half the density at both peaks by more than chance. G and H are separated
    if it is at most 0.05 for some v and e. Because of this minimum over v and e, it is not a calibrated p-value. Three
    conditions guard against accidental valleys:

    - Windows have a half-width of at least 1/m. Here m is the least number of items that change their cluster from a
      partition of G to a partition of H. Partitions with m < 3 are never separated.
    - At most a fifth of the lighter region lies between v and 0, the border of the regions.
    - The means of x in the two regions differ by at least 3 / sqrt(k), for k effective draws of the lighter region.
      Each draw attracts the partition found from it, so few noisy draws of many items otherwise seem to have modes.

    The number of effective draws is the smallest of three: by the weights (Kish), by the autocorrelation of x, and by
    the autocorrelation of the loss of the nearest partition, both after subtracting the mean of each region. Chains
    that each stay in one mode thus show that mode well, although its weight remains unknown.

    The two groups with the largest p-value are merged first; ties go to the closest groups.
    """
    regions = _Regions(partitions, losses, samples, loss, independent)
    groups: list[Group] = [(k,) for k in np.flatnonzero(regions.weights > 0).tolist()]
    p_values = regions.p_values(list(combinations(groups, 2)), groups)
    while p_values:
        weakest = max(p_values, key=lambda pair: (p_values[pair], -regions.distance(*pair)))
        if p_values[weakest] <= _LEVEL:
            break
        union = tuple(sorted(weakest[0] + weakest[1]))
        others = [group for group in groups if group not in weakest]
        groups = [*others, union]
        p_values = {pair: value for pair, value in p_values.items() if not set(pair) & set(weakest)}
        p_values |= regions.p_values([(group, union) for group in others], groups)
    groups.sort(key=lambda group: (-regions.weights[list(group)].sum(), group))
    mode = [min(range(len(groups)), key=lambda g: regions.distance((k,), groups[g])) for k in range(len(partitions))]
    for g, group in enumerate(groups):
        for k in group:
            mode[k] = g
    weights = np.array([regions.weights[list(group)].sum() for group in groups])
    return Modes(np.array(mode, np.int64), weights, max(p_values.values(), default=1.0))


class _Regions:
    """The draws nearest to each partition, and the valleys between groups of partitions."""

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
        """Least loss between a partition of one group and a partition of the other."""
        return float(self._distances[np.ix_(one, other)].min())

    def p_values(self, pairs: list[tuple[Group, Group]], groups: list[Group]) -> dict[tuple[Group, Group], float]:
        """P-value of the valley between each pair of groups; 1 if it cannot be tested."""
        tested = dict.fromkeys(pairs, 1.0)
        member = np.full(self.weights.size, len(groups))  # a group of its own for draws without weight
        for g, group in enumerate(groups):
            member[list(group)] = g
        group_of = member[self._nearest]
        axes, spread = [], [self._within(self._least, group_of)]
        for pair in pairs:
            moved = self._moved[np.ix_(*pair)].min()
            if moved < _LEAST_MOVED or self.distance(*pair) == 0:
                continue
            to_one, to_other = (self._losses[list(group)].min(axis=0) for group in pair)
            # Rounded, so that draws in the middle stay there if the two groups are exchanged.
            x = np.clip(np.round((to_one - to_other) / self.distance(*pair), _DECIMALS), -1.0, 1.0)
            between = np.isin(self._nearest, pair[0] + pair[1])
            axes.append((pair, x, between, 1 / moved))
            spread.append(np.where(between, self._within(x, group_of), 0.0))
        if not axes:
            return tested
        number = self._effective(np.array(spread))
        for (pair, x, between, least), own in zip(axes, number[1:], strict=True):
            n_draws = min(own, number[0])
            if not np.isnan(n_draws):
                tested[pair] = valley_p_value(x[between], n_draws * self._samples.weights[between], least)
        return tested

    def _within(self, values: Floats, group_of: Positions) -> Floats:
        """Subtract each group's mean."""
        weights = self._samples.weights
        total = np.bincount(group_of, weights)
        sums = np.bincount(group_of, weights * values)
        means = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        return values - means[group_of]

    def _effective(self, values: Floats) -> Floats:
        """Effective sample size for the mean of each row; NaN if there is no standard error."""
        most = self._samples.effective_draws
        if not self._samples.series:
            return np.full(len(values), most)
        if self._independent:
            return np.full(len(values), min(most, _SUPPOSED))
        error = self._samples.mcse(values)
        variance = self._samples.mean(np.square(values))
        varies = variance > _TIE**2
        number = np.divide(variance, np.square(error), out=np.full(error.shape, most), where=varies & (error != 0))
        return np.where(np.isnan(error), np.nan, np.minimum(number, most))


def valley_p_value(x: Floats, weights: Floats, least: float) -> float:
    """Smallest p-value of a valley of values between -1 and 1, over positions and widths.

    The weights sum to the effective sample size. Windows have a half-width of at least `least`. The p-value is 1 if the
    means of the two sides differ by less than 3 / sqrt(k), for k effective draws on the lighter side.
    """
    order = np.argsort(x, kind="stable")
    places = x[order]
    below = np.concatenate([[0.0], np.cumsum(weights[order])])

    def weight_below(place: npt.ArrayLike) -> Floats:  # values equal to it count half
        return (below[np.searchsorted(places, place)] + below[np.searchsorted(places, place, side="right")]) / 2

    left, right = weight_below(0.0), below[-1] - weight_below(0.0)
    lighter = min(left, right)
    if lighter <= 0:
        return 1.0
    apart = weights[x > 0] @ x[x > 0] / right - weights[x < 0] @ x[x < 0] / left
    if apart < _PULL / np.sqrt(lighter):
        return 1.0
    at_border = np.abs(weight_below(_AXIS) - left) <= _STRAY * lighter
    p_value = 1.0
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
            p_value = min(p_value, float(chances.min()))
    return p_value
