"""The largest set of items whose joint clustering has at least a given posterior probability."""

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.alignment import numbered_as, numbers_in
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_and_error
from posterior_consensus.ensemble.items import members_of
from posterior_consensus.ensemble.partitions import (
    HasLabels,
    Labels,
    canonical_labels,
    canonical_rows,
    contingency_table,
)
from posterior_consensus.ensemble.samples import folds
from posterior_consensus.kernels import coclustering, partial
from posterior_consensus.kernels.cells import Draws, searched
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_between, check_count, warn
from posterior_consensus.runtime.executor import NO_TIME, Clock, Executor, n_threads
from posterior_consensus.runtime.progress import track, waiting
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.local_search import descend_some
from posterior_consensus.sources.conversion import as_draws, own_partition

_LISTED = 8  # most clusters whose sizes are listed
_DRAWS_AT_ONCE = 4096  # a multiple of the 64 draws in a word
_AT_ONCE = 8  # starts between two checks whether to end; fixed, so that results do not depend on the number of threads
_AGREE = 5  # starts that must have reached the largest number of items
_GAIN = 1e-3  # relative gain of the area from the last starts, below which the search ends
_CLEAR = 2.0  # standard errors by which the probability is above the requested one
_TRIES = 4  # sets, each of a larger share of the draws that choose than the one before
_STARTS_OF_A_TRY = 8  # more starts hardly change the result
_LAST_SIZE = 128  # most items at which members may leave again; in larger sets this takes most of the time for little
_MOST_WEIGHT = 2**40
_ALL_SUBSETS = 8  # most items for which all subsets are enumerated
_LITTLE = 500 * 60  # labels up to which threads cost more than they save
_FINELY = 400  # most items for which the bound examines the neighbours of each item
_MOST_PAIRS = 0.25  # share of the memory budget that the bound may use


@dataclass(frozen=True, eq=False, repr=False)
class PartialPartition(InWords, HasLabels):
    """A partition of some items, the others unassigned; made by :func:`partial_partition`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster number of each assigned item, a position in `names`; -1 for the unassigned items. A cluster takes the
        number of its matched cluster in the given partition; clusters without a match get the next numbers. Without
        one, clusters are numbered by first appearance.
    probability : float
        Posterior probability that the assigned items are clustered exactly as in `labels`: the share of the draws of
        the half that did not choose them. NaN for a single draw.
    mcse, ess : float
        Monte Carlo standard error and effective sample size of `probability`; below 100 the error is rough.
    search_probability : float
        The share of the draws of the half that chose the items, at least `prob`. It is biased upwards.
    prob : float
        Requested probability; see `is_shown`.
    n_items_bound : int
        Upper bound of the number of items that at least the share `prob` of the draws that choose can cluster alike. It
        is mostly loose, and equals the number of all items if `prob` is 1/2 or less.
    curve : xarray.DataArray of shape (n_items + 1,)
        The largest share found of the draws that choose, for each number of assigned items, over the dimension
        ``n_items``.
    completion : xarray.DataArray of shape (n_items,), dtype int32, or None
        The partition of all items with minimum expected loss among partitions that agree with `labels`. With a
        given partition, its clusters have the numbers of `labels`.
    loss : PartitionLoss or None
        The loss of `completion`.
    expected_loss, expected_loss_mcse, expected_loss_ess : float
        Expected loss of `completion`, its Monte Carlo standard error and effective sample size; NaN without one.
    names : tuple
        Name of each cluster number, including clusters of the given partition without assigned items.
    stopped : str
        Why the search ended early: "seconds", "interrupted" for Ctrl-C, or empty.
    """

    _figure = "paths.plot_partial_partition"

    labels: xr.DataArray = field(metadata=stored_as.array("partial_labels", of_items=True))
    probability: float = field(metadata=stored_as.number("partial_probability"))
    mcse: float = field(metadata=stored_as.number("partial_mcse"))
    ess: float = field(metadata=stored_as.number("partial_ess"))
    search_probability: float = field(metadata=stored_as.number("partial_search_probability"))
    prob: float = field(metadata=stored_as.attribute("partial_prob"))
    n_items_bound: int = field(metadata=stored_as.number("partial_n_items_bound"))
    curve: xr.DataArray = field(
        metadata=stored_as.array("partial_curve", {"n_items": "partial_n_items"}, name="probability")
    )
    completion: xr.DataArray | None = field(metadata=stored_as.array("partial_completion"))
    loss: PartitionLoss | None = field(metadata=stored_as.loss("partial_"))
    expected_loss: float = field(metadata=stored_as.number("partial_expected_loss", measured=True))
    expected_loss_mcse: float = field(metadata=stored_as.number("partial_expected_loss_mcse", measured=True))
    expected_loss_ess: float = field(metadata=stored_as.number("partial_expected_loss_ess"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("partial_names"))
    stopped: str = field(default="", metadata=stored_as.attribute("partial_stopped"))
    _of_runs: ClassVar = "partial_independent"

    @property
    def n_items(self) -> int:
        """Number of assigned items."""
        return int((self.labels >= 0).sum())

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the assigned items."""
        return self._numbers.size

    @property
    def _numbers(self) -> npt.NDArray[np.int32]:
        """Numbers of the clusters of the assigned items, ascending."""
        return np.unique(self.labels.values[self.labels.values >= 0])

    @property
    def is_shown(self) -> bool:
        """Whether `probability` is at least `prob` by two errors."""
        return _is_above(self.probability, self.mcse, self.prob)

    @property
    def area(self) -> float:
        """Mean of `curve` from 0 to n_items - 1 items: 1 if all draws are one partition."""
        return float(self.curve[:-1].mean())

    def in_words(self) -> str:
        """Describe the assigned items and their probability.

        Returns
        -------
        str
            A sentence, and one on whether the probability is the requested one.
        """
        spoken, draws = self.words, self.words.draws
        n, n_open, dim = self.labels.size, self.labels.size - self.n_items, self.labels.dims[0]
        if self.n_items == 1 < n:
            pair = f"No two of the {display.counted_items(n, dim)} were found"
            return f"{pair} whose joint clustering has {spoken.has_probability} {self.prob:g}."
        sizes = np.sort(np.bincount(self.labels.values[self.labels.values >= 0])[self._numbers])[::-1]
        listed = ", ".join(map(str, sizes)) if sizes.size <= _LISTED else f"{sizes[0]} to {sizes[-1]}"
        clusters = f"clustered exactly as found, in {display.counted(sizes.size, 'cluster')} of {listed}"
        others = {0: "none is", 1: "the other is"}.get(n_open, f"the other {n_open:,} are")
        words = f"{self.n_items:,} of {display.counted_items(n, dim)} are {clusters}; {others} unassigned."
        if np.isnan(self.probability):
            return f"In the only {spoken.draw}, {words}"
        probability = display.with_error(self.probability, self.mcse, self.ess, spoken)
        start = spoken.either(f"With probability {probability}", f"In a share of {probability} of the runs")
        known = "is" if self.is_shown else "is not shown to be"
        by = f"by two {spoken.error}s in the half of the {draws} that did not choose the set"
        return f"{start}, {words} It {known} at least {self.prob:g}, {by}."

    @property
    def _ending(self) -> str:
        return f"the search {display.ended(self.stopped, 'was')}"

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters of assigned items.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster, with its size and its first items.
        """
        members = [own for own in members_of(self.labels) if own]
        names = pd.Index([self.names[k] for k in self._numbers], name="cluster", tupleize_cols=False)
        table = display.table_of_members(members, self.labels.size, str(self.labels.dims[0]), names)
        return table.drop(columns="share")

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        words = self.words
        least = f"at least {self.prob:g} of the {words.draws} that chose it"  # all that holds if no more is shown
        if self.is_shown:
            least = f"{words.either('probability', 'a share of runs')} of at least {self.prob:g}, by two {words.mcse}s"
        own = f"{words.either('probability', 'share')} {self.search_probability:.3g} in the {words.draws} that chose it"
        if self.n_items_bound < self.labels.size:
            own += f", where at most {display.counted(self.n_items_bound, 'item')} can have {self.prob:g}"
        lines = [
            ("in words", self.in_words()),
            ("criterion", f"largest set found with {least}; {own}"),
        ]
        if self.completion is not None and self.loss is not None:
            errors = self.expected_loss_mcse, self.expected_loss_ess
            expected = display.with_error(self.expected_loss, *errors, words, self.loss.unit)
            clusters = display.counted(np.unique(self.completion.values).size, "cluster")
            lines.append(("completion", f"{clusters}, {words.expected} {display.short_name_of(self.loss)} {expected}"))
        if self.stopped:
            lines.append(("stopped", f"{self._ending}; a longer one may find a larger set"))
        title = f"PartialPartition: {self.n_items:,} of {display.counted_items(self.labels.size, self.labels.dims[0])}"
        return title, lines, self.to_dataframe()


def partial_partition(
    draws: Any,
    prob: float = 0.8,
    *,
    partition: Any = None,
    complete: str | PartitionLoss | None = None,
    n_starts: int = 64,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartialPartition:
    """Find a large set of items whose joint clustering has posterior probability at least `prob`.

    One half of the draws chooses the set, the other half estimates its probability.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    prob : float in (0, 1)
        Posterior probability with which the items are clustered exactly as reported. If the draws are too few for this,
        the result states it, see :attr:`PartialPartition.is_shown`.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose cluster numbers, names and colours the matched clusters of the result take. By default the
        consensus of `draws` if these are a summary.
    complete : str or PartitionLoss, optional
        Loss under which the unassigned items are also allocated: a name in LOSSES, such as "vi", or a record such as
        ``vi(a=0.5)``. Assigned items keep their clusters, and these clusters are not merged.
    n_starts : int
        Largest number of starts, each from a different item. The search ends early once five starts reached the largest
        number of items and the last eight increased the area under the curve by less than 0.1%.
    seconds : float, optional
        Time limit. With one, the result depends on the machine. After it, the best set so far is returned; half of it
        is for the first search.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartialPartition
        The assigned items with their clusters, and the probability of these.

    Raises
    ------
    ValueError
        If `prob` is not between 0 and 1, `n_starts` or `seconds` are not positive, the loss is unknown, or draws or
        partition are invalid.
    MemoryError
        If items times clusters times draws exceed the memory budget.

    See Also
    --------
    item_uncertainty : mean similarity of each item to the rest of its cluster.
    PartialPartition.plot : the curve.
    plot_data, plot_psm : both take the result, and show unassigned items pale.

    Notes
    -----
    For a set Q of items and a partition of Q, the probability is the weighted share of draws whose restriction to Q is
    this partition [1]_. Adding an item never raises it. Each start adds the items one by one, always the item and
    cluster that cost the least probability. An item leaves again if the rest is more probable than all earlier sets of
    its size [2]_. A search finds the largest set with a given share, and the most probable of these. It is not proven
    to be the largest unless its size equals `n_items_bound`. Up to eight items, all sets are enumerated.

    Items are unassigned because the draws disagree on them. That is not noise: an item that a run calls noise is a
    cluster of its own in that run, and is assigned to a cluster of one if enough runs call it so.

    The bound uses pairs. Every two items of Q must be co-clustered, or in different clusters, with probability at least
    `prob`. A colouring of the graph of such pairs bounds the size of Q.

    The share of the draws that choose a set is biased upwards. Therefore half of the draws choose: every second chain
    or, of one chain, its first half. `probability` is the share of the other draws. The first search asks for the share
    `prob`. If the probability less two of its errors is below `prob`, the next one asks for as much more, up to four
    times; they are short. If none reaches it, the first set is returned, and `is_shown` is False.

    Clusters are matched with those of `partition` as by :func:`align_partitions`, on the assigned items or, with
    `complete`, on all items. With `complete`, the consensus of all items is changed to agree with the assigned
    clusters. Then the unassigned items move one by one until no move lowers the expected loss. Clusters do not merge or
    split.

    References
    ----------
    .. [1] Page, Barrientos, Dahl and Dunson (2025), Uncertainty quantification in Bayesian clustering.
       https://doi.org/10.48550/arXiv.2511.16040
    .. [2] Pudil, Novovicova and Kittler (1994), Pattern Recognition Letters 15(11), 1119-1125.
       https://doi.org/10.1016/0167-8655(94)90127-9

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 1, 1, 1, 1]] * 20
    >>> partial = pc.partial_partition(draws, 0.7, random_seed=1)
    >>> partial.labels.values
    array([ 0,  0,  1,  1, -1], dtype=int32)
    >>> partial.probability
    0.8
    """
    partition = own_partition(draws, partition)
    draws = as_draws(draws).in_fixed_order()
    numbers = None if partition is None else numbers_in(partition, draws.items)
    prob = check_between("prob", prob, 1)
    n_starts = check_count("n_starts", n_starts)
    loss = None if complete is None else _loss(complete)
    rng = as_generator(random_seed)
    clock = Clock(seconds)
    choosing, others = halves(draws)
    found, curve, stopped = chosen(choosing, others, prob, n_starts, rng, clock, progressbar)
    labels, bound = found.labels, draws.n_items
    if stopped == "interrupted":
        warn("The search for a partial partition was interrupted.")
        clock = Clock(NO_TIME)
    else:
        bound = size_bound(choosing, prob, curve, progressbar)
    expected, error, size = np.nan, np.nan, np.nan
    full: Labels | None = None
    if loss is not None:
        full = completed(draws, labels, loss, rng, clock.part(0.5), progressbar)
        expected, error, size = (float(one[0]) for one in loss_and_error(draws, full[np.newaxis], loss)[:3])
    names = list[Hashable](range(labels.max() + 1))
    if numbers is not None:
        matched, names = numbered_as(labels if full is None else full, *numbers)
        labels, full = np.where(labels >= 0, matched, -1), None if full is None else matched
    return PartialPartition(
        labels=draws.items.array(labels, "labels"),
        probability=found.probability,
        mcse=found.mcse,
        ess=found.ess,
        search_probability=found.share,
        prob=prob,
        n_items_bound=bound,
        curve=xr.DataArray(curve, {"n_items": np.arange(curve.size)}, ("n_items",), "probability"),
        completion=None if full is None else draws.items.array(full, "completion"),
        loss=loss,
        expected_loss=expected,
        expected_loss_mcse=error,
        expected_loss_ess=size,
        names=tuple(names),
        stopped=stopped,
        words=draws.words,
    )


def _loss(complete: Any) -> PartitionLoss:
    try:
        return as_loss(complete, kind=PartitionLoss)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("`loss`", "`complete`")) from None


def grown(
    draws: PartitionDraws,
    prob: float,
    n_starts: int,
    rng: np.random.Generator,
    seconds: float | None,
    progressbar: bool,
    most: int | None = None,
) -> tuple[Labels, Floats, str]:
    """Find the largest set of items, up to `most`, whose joint clustering has probability at least `prob`.

    Returned are labels (n,), -1 if unassigned; the largest probability found for each number of items (n + 1,); and why
    the search ended early: "seconds", "interrupted" or empty.
    """
    draws = draws.without_zero_weights()
    most = draws.n_items if most is None else most
    weights = _whole(draws.weights) if draws.samples.is_weighted else np.ones(draws.n_draws, np.int64)
    total = int(weights.sum())
    enough = max(int(np.ceil((prob - SAME) * total)), 1)
    if draws.n_items <= _ALL_SUBSETS:
        labels, curve = _among_all(draws, weights, enough, most)
        return labels, curve / total, ""
    _check_memory(draws)
    bits = _bits(draws, weights)
    orders = _orders(draws.n_items, rng)
    found, area = [], 0.0
    with Executor(0 if draws.labels.size <= _LITTLE else -1, seconds) as executor:
        for first in track(range(0, n_starts, _AT_ONCE), "Partial partition", progressbar=progressbar):
            rest = enough, most, _LAST_SIZE, draws.most_clusters, executor.stop
            calls = [(bits, order, *rest) for order in itertools.islice(orders, min(_AT_ONCE, n_starts - first))]
            found += executor.results(partial.grow, calls)
            curve = np.max([one for _, one in found], axis=0)
            sizes = np.array([int((labels >= 0).sum()) for labels, _ in found])
            before, area = area, float(curve.mean())
            agreed = np.sum(sizes == sizes.max()) >= _AGREE and area <= before * (1 + _GAIN)
            if executor.stopped or agreed:
                break
    best = max(range(len(found)), key=lambda one: (sizes[one], found[one][1][sizes[one]]))
    # Removing an item never lowers the number of draws that agree.
    curve = np.maximum.accumulate(curve[::-1])[::-1]
    labels = found[best][0].astype(np.int32)
    labels[labels >= 0] = canonical_labels(labels[labels >= 0])
    return labels, curve / total, executor.stopped


class Chosen(NamedTuple):
    """Labels (n,), -1 if unassigned; their share of the draws that chose them, and of the others, with its error."""

    labels: Labels
    share: float
    probability: float
    mcse: float
    ess: float


def halves(draws: PartitionDraws) -> tuple[PartitionDraws, PartitionDraws | None]:
    """Draws that choose a set, and others that estimate its probability; None if there is a single draw."""
    rows = np.flatnonzero(draws.weights)
    parts = [draws.take(rows[part]) for part in folds(draws.samples.take(rows), 2)]
    return parts[0], parts[1] if len(parts) > 1 else None


def chosen(
    choosing: PartitionDraws,
    others: PartitionDraws | None,
    prob: float,
    n_starts: int,
    rng: np.random.Generator,
    clock: Clock,
    progressbar: bool,
) -> tuple[Chosen, Floats, str]:
    """Find the largest set whose probability is at least `prob` by two errors, or else whose share of `choosing` is.

    Returned are the set, the curve of all searches (n + 1,), and why one ended early: "seconds", "interrupted" or "".
    """
    labels, curve, stopped = grown(choosing, prob, n_starts, rng, clock.part(0.5), progressbar)
    first = found = _estimated(choosing, others, labels)
    for left in range(_TRIES - 1, 0, -1):
        lower = found.probability - _CLEAR * found.mcse
        if stopped or np.isnan(lower) or lower >= prob - SAME or found.share >= 1 - SAME:
            break
        more = min(found.share + prob - lower, 1.0)
        options = _STARTS_OF_A_TRY, rng, clock.part(1 / left), progressbar
        labels, further, stopped = grown(choosing, more, *options)
        curve = np.maximum(curve, further)
        found = _estimated(choosing, others, labels)
    is_better = _is_above(found.probability, found.mcse, prob) and np.sum(found.labels >= 0) > 1
    return found if is_better else first, curve, stopped


def _estimated(choosing: PartitionDraws, others: PartitionDraws | None, labels: Labels) -> Chosen:
    share = float(choosing.samples.mean(agreement(choosing, labels)))
    if others is None:
        return Chosen(labels, share, np.nan, np.nan, np.nan)
    agrees, samples = agreement(others, labels), others.samples
    mcse = samples.probability_mcse(agrees, others.n_clusters.astype(np.float64))
    return Chosen(labels, share, float(samples.mean(agrees)), float(mcse), float(samples.mcse_and_ess(agrees)[1]))


def _is_above(probability: float, mcse: float, prob: float) -> bool:
    return bool(probability - _CLEAR * mcse >= prob - SAME)


def agreement(draws: PartitionDraws, labels: Labels) -> Floats:
    """1 for each draw whose restriction to the assigned items is their partition, else 0."""
    assigned = np.flatnonzero(labels >= 0)
    restricted, _ = canonical_rows(draws.labels[:, assigned], int(draws.backend.n_clusters.max()))
    return np.all(restricted == canonical_labels(labels[assigned]), axis=1).astype(np.float64)


def _among_all(draws: PartitionDraws, weights: Integers, enough: int, most: int) -> tuple[Labels, Integers]:
    """The best labels (n,) and the curve (n + 1,), by enumeration of all sets of items and their drawn partitions."""
    n_items = draws.n_items
    curve = np.zeros(n_items + 1, np.int64)
    curve[0] = weights.sum()
    best = np.full(n_items, -1, np.int32)
    for size in range(1, n_items + 1):
        for chosen in itertools.combinations(range(n_items), size):
            rows, _ = canonical_rows(draws.labels[:, chosen], draws.most_clusters)
            _, first, which = np.unique(rows @ n_items ** np.arange(size), return_index=True, return_inverse=True)
            sums = np.zeros(first.size, np.int64)
            np.add.at(sums, which, weights)
            if sums.max() > curve[size]:
                curve[size] = sums.max()
                if sums.max() >= enough and size <= most:
                    best[:] = -1
                    best[list(chosen)] = rows[first[sums.argmax()]]
    return best, curve


def _orders(n_items: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Yield random orders of the items without end; every item comes first once before any does twice."""
    for first in itertools.cycle(rng.permutation(n_items).tolist()):
        order = rng.permutation(n_items)
        order[order == first] = order[0]
        order[0] = first
        yield order


def _whole(weights: Floats) -> Integers:
    """Weights as integers: exact multiples of the smallest weight if possible, as for repeated draws."""
    multiples = weights / weights.min()
    whole: Integers = np.rint(np.minimum(multiples, _MOST_WEIGHT)).astype(np.int64)
    if multiples.sum() < _MOST_WEIGHT and np.all(np.abs(multiples - whole) <= SAME * multiples):
        return whole
    return np.maximum(np.rint(weights * _MOST_WEIGHT), 1).astype(np.int64)


def _check_memory(draws: PartitionDraws) -> None:
    words = -(-draws.n_draws // 64)
    size = 8 * words * draws.n_items * (draws.backend.n_planes + n_threads() * draws.most_clusters)
    memory.check(size, "The search for a partial partition", f"Take fewer {draws.samples.words.draws}.")


def _bits(draws: PartitionDraws, weights: Integers) -> partial.Bits:
    planes = [
        coclustering.pack_bit_planes(block, draws.backend.n_planes)[:, :, : draws.n_items]
        for _, block in draws.backend.blocks(_DRAWS_AT_ONCE)
    ]
    by_item = np.ascontiguousarray(np.concatenate(planes).transpose(2, 1, 0))
    padded = np.zeros(64 * by_item.shape[2], np.int64)
    padded[: weights.size] = weights
    present = np.packbits(padded > 0, bitorder="little").view("<u8").astype(np.uint64)
    tables = np.empty((0, 256), np.int64)
    if draws.samples.is_weighted:
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1, bitorder="little")
        tables = padded.reshape(-1, 8) @ bits.T.astype(np.int64)
    return partial.Bits(by_item, present, tables)


def size_bound(draws: PartitionDraws, prob: float, curve: Floats, progressbar: bool) -> int:
    """Upper bound of the number of items, from a graph: every two must be co-clustered, or separated, in `prob`."""
    n_items = draws.n_items
    if n_items <= _ALL_SUBSETS:
        return int(np.flatnonzero(curve >= prob - SAME).max())  # as all sets were enumerated
    if prob <= 0.5 or not memory.fits(8 * n_items**2 / _MOST_PAIRS):
        return n_items
    similarity = draws.without_zero_weights().shared_similarity
    possible = (similarity >= prob - SAME) | (similarity <= 1 - prob + SAME)
    np.fill_diagonal(possible, False)
    with waiting("Bound of the items assigned", progressbar=progressbar):
        return int(partial.clique_bound(possible, n_items <= _FINELY))


def completed(
    draws: PartitionDraws,
    labels: Labels,
    loss: PartitionLoss,
    rng: np.random.Generator,
    seconds: float | None,
    progressbar: bool,
) -> Labels:
    """Allocate the unassigned items to minimize the expected loss, while the assigned items keep their clusters.

    Unassigned items move one by one, from the consensus of all items after it is changed to agree with the assigned
    clusters.
    """
    free = consensus_partition(draws, loss=loss, random_seed=rng, seconds=seconds, progressbar=progressbar)
    partition = _agreeing(free.labels.values, labels)
    most = max(draws.most_clusters, int(partition.max()) + 1)
    what = f"A search among {most} clusters"
    memory.check(4.0 * int(draws.starts[-1]) * most, what, f"Take fewer {draws.samples.words.draws}.")
    ensemble = Draws(searched(draws.labels), draws.starts, draws.weights)
    with waiting("Unassigned items", progressbar=progressbar):
        descend_some(ensemble, loss.arrays(labels.size), partition, np.flatnonzero(labels < 0), most)
    return canonical_labels(partition)


def _agreeing(partition: Labels, assigned: Labels) -> Labels:
    """Change a partition to agree with the assigned clusters; unassigned items keep their cluster or its successor.

    An assigned cluster succeeds the cluster with most of its items, if no other assigned cluster has more items there.
    """
    members = np.flatnonzero(assigned >= 0)
    table = contingency_table(assigned[members], partition[members])
    home = table.argmax(axis=1)
    agreeing: Labels = partition + np.int32(table.shape[0])
    for cluster in np.unique(home):
        living = np.flatnonzero(home == cluster)
        agreeing[partition == cluster] = living[table[living, cluster].argmax()]
    agreeing[members] = assigned[members]
    return canonical_labels(agreeing)
