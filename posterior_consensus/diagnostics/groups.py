"""Independent runs: how far apart two of them are, and whether groups of them find different clusters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import factorial, prod

import numpy as np

from posterior_consensus.diagnostics.chance import mean_chance
from posterior_consensus.ensemble.chains import ChainDifference
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import all_losses
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, evenly_spaced
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.sentences import Sentence, advice
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

LEVEL = 0.01
MOST_RUNS = 200  # of a layer, of which all pairs are compared
_PERMUTATIONS = 1_999
_ALL = 5_000  # assignments of runs to groups, all of which are compared
_MOST_RUNS = 400  # compared pair by pair
_MISSED = 0.05  # share of the cases in which no run shows a rare partition
_ITEMS_EQUAL = 1_000  # by which runs that lack items are the same
_MANY = 0.1  # share of runs that are the same partition, from which this is said


@dataclass(frozen=True)
class RunSpread:
    """Distances between independent runs, and a test of whether their groups differ.

    Attributes
    ----------
    distance : float
        Mean loss between two runs; NaN for a single run.
    distance_mcse : float
        Its standard error, which allows for a partition that no run found, see :func:`mean_distance`; NaN for fewer
        than four runs.
    within, between : float
        Mean loss between two runs of one group, and of different groups; NaN without several groups.
    most_within : float
        The largest mean loss between two runs of one group.
    shift : float
        The largest difference between the mean loss of two groups and the larger mean loss within these. Groups that
        differ only in how much their runs vary have none above 0, up to chance.
    p_value : float
        Of the permutation test of equal groups; NaN without several groups of several runs.
    least_p_value : float
        The smallest that the numbers of runs allow.
    n_runs : int
        Number of runs compared: all, or 400.
    most_equal : int
        Number of runs that are the same partition, for the partition of most runs.
    """

    distance: float = field(metadata=stored_as.number("run_distance"))
    distance_mcse: float = field(metadata=stored_as.number("run_distance_mcse"))
    within: float = field(metadata=stored_as.number("run_distance_within"))
    between: float = field(metadata=stored_as.number("run_distance_between"))
    most_within: float = field(metadata=stored_as.number("run_distance_most_within"))
    shift: float = field(metadata=stored_as.number("run_shift"))
    p_value: float = field(metadata=stored_as.number("run_p_value"))
    least_p_value: float = field(metadata=stored_as.number("run_least_p_value"))
    n_runs: int = field(metadata=stored_as.attribute("run_number"))
    most_equal: int = field(metadata=stored_as.attribute("run_most_equal"))


def missed_by(n_runs: int) -> str:
    """Clause on runs that miss a partition: the share of all runs that it may have, and how often."""
    share = 1 - _MISSED ** (1 / n_runs)
    return f"in {_MISSED:.0%} of the cases, {n_runs} runs miss one that {share:.0%} of all runs have"


def unseen(draws: PartitionDraws) -> float:
    """What a partition that the runs did not find may add to their mean distance, as a share of the chance distance.

    A partition that none of N equal runs found may come in 2 / (N + 4) of all runs, as far from theirs as by chance.
    With the share f of the most frequent partition among the runs, the error is 2 f^2 / (N + 4).
    """
    share = _most_equal(draws) / draws.n_draws
    return float(2 * share**2 / (draws.n_draws + 4))


def _most_equal(draws: PartitionDraws) -> int:
    """Number of runs of the most frequent partition; of runs that lack items, most that one has no distance from.

    These are compared on the items in common, of 1,000 items if there are more.
    """
    if draws.lacks_items:
        some = draws.of_some_items(_ITEMS_EQUAL)[1]
        return int((all_losses(some, binder()) == 0).sum(axis=1).max())
    return int(np.unique(draws.backend.fingerprints(), return_counts=True)[1].max())


def compared_runs(draws: PartitionDraws) -> PartitionDraws:
    """The runs of a layer, at most 200, of which all pairs are compared, in an order of their own."""
    draws = draws.in_fixed_order()
    return draws if draws.n_draws <= MOST_RUNS else draws.take(evenly_spaced(draws.n_draws, MOST_RUNS))


def run_distances(draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Losses (n, n) between the runs, the mean of both orders of two."""
    losses = all_losses(draws, loss)
    return losses if loss.is_symmetric else (losses + losses.T) / 2


def within(distances: Floats) -> tuple[float, float]:
    """Mean distance of two different runs, and its standard error by the jackknife over runs; NaN if unknown.

    With the sum r_i of distances of run i, the mean without run i is (sum of r - 2 r_i) / ((n - 1) (n - 2)), and the
    squared error (n - 1) / n times the sum of squared differences of these from their mean. If all r_i are equal,
    as of runs of which a half has one partition and a half another, that is 0. So it is at least the share that single
    distances have in the variance of such a mean, 2 / (n (n - 1)) times their variance.
    """
    n = len(distances)
    if n < 2:
        return np.nan, np.nan
    sums = distances.sum(axis=1)
    mean = float(sums.sum() / (n * (n - 1)))
    if n < FEWEST_DRAWS:
        return mean, np.nan
    without = (sums.sum() - 2 * sums) / ((n - 1) * (n - 2))
    of_runs = (n - 1) / n * np.sum(np.square(without - without.mean()))
    of_pairs = 2 / (n * (n - 1)) * distances[np.triu_indices(n, 1)].var()
    return mean, float(np.sqrt(max(of_runs, of_pairs)))


def mean_distance(draws: PartitionDraws, distances: Floats, loss: PartitionLoss) -> tuple[float, float, float]:
    """Mean distance of two runs, its standard error, and the mean distance that random labels have; NaN if unknown.

    The squared error is that of :func:`within`, plus that of a partition that no run found, :func:`unseen`.
    """
    (mean, error), chance = within(distances), mean_chance(draws, loss)
    return mean, float(np.hypot(error, chance * unseen(draws))), chance


def run_spread(draws: PartitionDraws, some: PartitionDraws, loss: PartitionLoss) -> RunSpread:
    """Distances between runs in fixed order, with the labels of `some` of their items; weights are ignored.

    Notes
    -----
    The test of equal groups compares the sum over groups of n_g times the mean of d over ordered pairs of their runs,
    a run and itself included, with that of random groups of the same sizes [1]_. If all groups have one distribution,
    the runs are exchangeable: then P(p <= a) <= a for every a, for any number of runs. All assignments of the runs are
    compared if there are at most 5,000, else 1,999 random ones.

    References
    ----------
    .. [1] Rizzo and Szekely (2010), Annals of Applied Statistics 4(2), 1034-1055. https://doi.org/10.1214/09-AOAS245
    """
    most_equal = _most_equal(compared_runs(draws) if draws.lacks_items else draws)
    group = np.unique(draws.samples.chain, return_inverse=True)[1]
    if draws.n_draws > _MOST_RUNS:  # the runs are in an order of their own, so that these are some at random
        kept = np.sort(np.concatenate([rows[: _share(rows.size, group.size)] for rows in draws.samples.chains]))
        some, group = some.take(kept), group[kept]
    n, distances = group.size, run_distances(some, loss)
    distance, error, _ = mean_distance(some, distances, loss)
    same = group[:, np.newaxis] == group
    inside, outside = (_mean_distance(distances, one & ~np.eye(n, dtype=bool)) for one in (same, ~same))
    sizes = np.bincount(group)
    tested = 1 < sizes.size < n
    most_within, shift = _shift(distances, group) if tested else (np.nan, np.nan)
    return RunSpread(
        distance=distance,
        distance_mcse=error,
        within=inside if sizes.size > 1 else np.nan,
        between=outside,
        most_within=most_within,
        shift=shift,
        p_value=permutation_p_value(distances, group) if tested else np.nan,
        least_p_value=_least_p_value(sizes) if tested else np.nan,
        n_runs=n,
        most_equal=most_equal,
    )


def _share(size: int, total: int) -> int:
    """Runs of a group that are compared."""
    return max(2, size * _MOST_RUNS // total)


def _mean_distance(distances: Floats, pairs: Flags) -> float:
    return float(np.sort(distances[pairs]).mean()) if pairs.any() else np.nan


def _shift(distances: Floats, group: Positions) -> tuple[float, float]:
    """The fields `most_within` and `shift` of :class:`RunSpread`."""
    sizes = np.bincount(group)
    of_groups = (np.arange(sizes.size) == group[:, np.newaxis]).astype(np.float64)
    totals = of_groups.T @ distances @ of_groups
    several = sizes > 1
    within = np.full(sizes.size, -np.inf)
    within[several] = np.diag(totals)[several] / (sizes * (sizes - 1))[several]
    shifts = totals / np.outer(sizes, sizes) - np.maximum.outer(within, within)
    others = np.isfinite(shifts) & ~np.eye(sizes.size, dtype=bool)
    return float(within.max()), float(shifts[others].max())


def _assignments(sizes: Positions) -> int:
    """Number of assignments of the runs to groups of these sizes."""
    return factorial(int(sizes.sum())) // prod(map(factorial, sizes.tolist()))


def _least_p_value(sizes: Positions) -> float:
    """Share of one division of the runs among all; groups of equal size can be exchanged."""
    least = prod(map(factorial, np.bincount(sizes).tolist())) / _assignments(sizes)
    return least if _assignments(sizes) <= _ALL else max(least, 1 / (1 + _PERMUTATIONS))


def permutation_p_value(distances: Floats, group: Positions) -> float:
    """Share of the assignments of runs to groups of these sizes whose groups are as tight as these, numbered from 0.

    See :func:`run_spread`. Distances are symmetric, between the runs (N, N).
    """
    limit = tightness(distances, group[np.newaxis])[0] * (1 + SAME)
    return float(np.mean(tightness(distances, _ways(tuple(group.tolist()))) <= limit))


@lru_cache(maxsize=4)  # pairs of layers often have the same numbers of runs
def _ways(group: tuple[int, ...]) -> Positions:
    """Assignments (R, N) of runs to groups of these sizes: all, or the given one and random ones."""
    sizes = np.bincount(group)
    if _assignments(sizes) <= _ALL:
        return np.array(list(_divisions(np.arange(len(group)), sizes.tolist())))
    others = np.random.default_rng(0).permuted(np.tile(group, (_PERMUTATIONS, 1)), axis=1)
    return np.concatenate([[group], others])


def tightness(distances: Floats, groups: Positions) -> Floats:
    """Sum over groups of n_g times the mean distance between two of its runs, for assignments (R, N)."""
    total = np.zeros(len(groups))
    for k in range(int(groups[0].max()) + 1):
        own = (groups == k).astype(np.float64)
        total += np.einsum("rt,rt->r", own @ distances, own) / own[0].sum()
    return total


def _divisions(rows: Positions, sizes: list[int]) -> Iterator[Positions]:
    """All assignments (N,) of the rows to groups of these sizes; equal groups in either order."""
    if len(sizes) == 1:
        yield np.zeros(rows.size, np.intp)
        return
    for chosen in combinations(range(rows.size), sizes[0]):
        rest = np.delete(np.arange(rows.size), chosen)
        for others in _divisions(rest, sizes[1:]):
            found = np.zeros(rows.size, np.intp)
            found[rest] = others + 1
            yield found


def judge_runs(
    draws: PartitionDraws,
    some: PartitionDraws,
    spread: RunSpread,
    difference: ChainDifference,
    items: tuple[str, str],
    loss: PartitionLoss,
) -> tuple[str, list[Sentence]]:
    """Return the status of independent runs, and the sentences of the verdict.

    `some` has the items of `spread`. `difference` is the largest between two groups' agreement on a pair, `items` are
    the names of this pair, and `loss` measures distance.
    """
    samples, n = draws.samples, draws.n_draws
    if draws.n_items == 1:
        return "runs", [Sentence("There is a single item, hence a single partition.")]
    if n == 1:
        single = "There is a single run, whose partition this is: how far another run would be from it is unknown."
        return "unknown", [Sentence(single), advice("Repeat the program with other seeds.")]
    if spread.most_equal == n:
        same = (
            f"All {n} runs are the same partition{_of_common(draws)}: the programs always find it, or their seed is "
            f"fixed, or the runs are too few: {missed_by(n)}."
        )
        return "unknown", [Sentence(same), advice("Give each run a seed of its own.")]
    if samples.effective_draws < FEWEST_DRAWS <= n:
        return "unknown", [Sentence(f"The weights leave too few effective runs: {samples.about_weights}.")]
    equal = _of_equal_runs(draws, spread)
    if len(samples.chains) == 1:
        mean = display.with_error(spread.distance, spread.distance_mcse, words=samples.words, unit=loss.unit)
        chance = mean_chance(compared_runs(some), loss)
        scale = ""
        if chance > ROUNDING:
            share = display.percent(spread.distance / chance)
            scale = f", {share} of the {display.quantity(chance, loss.unit, 3)} by chance"
        return "runs", [
            Sentence(f"The mean {display.name_of(loss)} between two of the {n} runs is {mean}{scale}."),
            *equal,
        ]
    between, within = (display.quantity(one, loss.unit, 3) for one in (spread.between, spread.within))
    inside = f", and {within} between two of the same group" * (not np.isnan(spread.within))
    apart = f"the mean {display.name_of(loss)} is {between} between two runs of different groups{inside}"
    if np.isnan(spread.p_value) or spread.least_p_value > LEVEL:
        return "unknown", [
            Sentence(f"have too few runs to tell whether they find different clusters; {apart}.", "The groups"),
            advice("Five runs in each group are enough."),
            *equal,
        ]
    test = f"permutation test, p = {spread.p_value:.2g}"
    if spread.p_value > LEVEL:
        most = f"at most {display.at_most(difference.size, '.2f')} between groups"
        return "agree", [
            Sentence(f"do not differ by more than their runs do ({test}): {apart}.", "The groups"),
            Sentence(f"Agreement on a pair differs by {most}."),
            *equal,
        ]
    if spread.shift <= 0:
        most = display.quantity(spread.most_within, loss.unit, 3)
        varied = (
            f"The runs of some groups vary more ({test}), so it cannot be told whether the groups find different "
            f"clusters: {apart}, and {most} in the group of the largest spread."
        )
        return "unknown", [Sentence(varied), *equal]
    size = display.with_error(difference.size, difference.mcse, words=samples.words)
    where = f"on items {' and '.join(items)}, by {size} between {difference.chains[0]} and {difference.chains[1]}"
    return "disagree", [
        Sentence(f"find different clusters ({test}): {apart}.", "The groups"),
        Sentence(f"Their agreement differs most {where}."),
        *equal,
    ]


def _of_equal_runs(draws: PartitionDraws, spread: RunSpread) -> list[Sentence]:
    """Sentence on runs that are the same partition, which a fixed seed would make; none if there are few."""
    hashes, chains = draws.backend.fingerprints(), draws.samples.chains
    still = [draws.samples.chain.item(rows[0]) for rows in chains if rows.size > 1 and np.ptp(hashes[rows]) == 0]
    if still:
        of = display.joined(still)
        return [Sentence(f"All runs of {of} are the same partition; if their seed is fixed, they are one run.")]
    if spread.most_equal <= max(1, _MANY * draws.n_draws):
        return []
    most, of_all = f"{spread.most_equal:,}", f"of the {draws.n_draws:,} runs"
    counts = np.unique(hashes, return_counts=True)[1]
    n_repeated = int(counts[counts > 1].sum())
    if draws.lacks_items or n_repeated == spread.most_equal:
        return [Sentence(f"{most} {of_all} are the same partition{_of_common(draws)}.")]
    return [Sentence(f"{n_repeated:,} {of_all} equal another one; the most frequent partition has {most}.")]


def _of_common(draws: PartitionDraws) -> str:
    """What runs that lack items are the same partition of."""
    return " of the items that they have in common" * draws.lacks_items
