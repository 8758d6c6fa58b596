"""The search for the largest partial partition of at least a given probability, and bounds of its size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.folds import folds
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, canonical_rows, contingency_table
from posterior_consensus.kernels import coclustering, partial
from posterior_consensus.kernels.cells import Draws, searched
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import Executor, n_threads
from posterior_consensus.runtime.progress import track, waiting
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.descent import settle_some

_DRAWS_AT_ONCE = 4096  # a multiple of the 64 draws in a word
_AT_ONCE = 8  # starts between two looks at whether to end: not the number of threads, on which nothing may depend
_AGREE = 5  # starts that must have reached the largest number of items
_GAIN = 1e-3  # share of the area that the last starts must add, else the search ends
_FOLDS = 4  # parts of the draws, each of which judges what the others choose
_STARTS_OF_A_FOLD = 8  # are hardly worse than more
_LAST_SIZE = 128  # items up to which members may leave again: later that finds little and takes most of the time
_MOST_WEIGHT = 2**40
_ALL_SUBSETS = 8  # items of which every set is considered
_LITTLE = 500 * 60  # labels up to which threads cost more than they save
_FINELY = 400  # items up to which the bound looks at each item's neighbours
_MOST_PAIRS = 0.25  # of the memory budget, that the bound may take


def search(
    draws: PartitionDraws,
    prob: float,
    n_starts: int,
    rng: np.random.Generator,
    seconds: float | None,
    progressbar: bool,
    most: int | None = None,
) -> tuple[Labels, Floats]:
    """Find the most items, or at most so many, that the posterior clusters alike with at least this probability.

    Returns
    -------
    Labels (n,), -1 if unassigned, and the largest probability found by number of items (n + 1,).
    """
    draws = draws.without_zero_weights()
    most = draws.n_items if most is None else most
    weights = _whole(draws.weights) if draws.samples.is_weighted else np.ones(draws.n_draws, np.int64)
    total = int(weights.sum())
    enough = max(int(np.ceil((prob - SAME) * total)), 1)
    if draws.n_items <= _ALL_SUBSETS:
        labels, curve = _among_all(draws, weights, enough, most)
        return labels, curve / total
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
    # Without any one item, a partition holds in at least as many draws.
    curve = np.maximum.accumulate(curve[::-1])[::-1]
    return _numbered(found[best][0]), curve / total


def held_out_agreement(
    draws: PartitionDraws, n_items: int, rng: np.random.Generator, seconds: float | None, progressbar: bool
) -> Floats:
    """Whether each draw (n_draws,) agrees with the most probable set of other draws; NaN for a single draw."""
    rows = np.flatnonzero(draws.weights)
    parts = folds(draws.samples.take(rows), _FOLDS)
    if len(parts) == 1:
        return np.full(draws.n_draws, np.nan)
    agrees, each = np.zeros(draws.n_draws), None if seconds is None else seconds / len(parts)
    for part in parts:
        others = draws.take(np.delete(rows, part))
        labels, _ = search(others, 0.0, _STARTS_OF_A_FOLD, rng, each, progressbar, most=n_items)
        agrees[rows[part]] = agreement(draws.take(rows[part]), labels)
    return agrees


def agreement(draws: PartitionDraws, labels: Labels) -> Floats:
    """1 for each draw whose restriction to the assigned items is their partition, else 0."""
    sure = np.flatnonzero(labels >= 0)
    restricted, _ = canonical_rows(draws.labels[:, sure], int(draws.n_clusters.max()))
    return np.all(restricted == canonical_labels(labels[sure]), axis=1).astype(np.float64)


def _among_all(
    draws: PartitionDraws, weights: npt.NDArray[np.int64], enough: int, most: int
) -> tuple[Labels, npt.NDArray[np.int64]]:
    """The best by looking at every set of items and every partition of it that a draw has."""
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


def _numbered(labels: npt.NDArray[Any]) -> Labels:
    """Number the clusters by first appearance; unassigned items keep -1."""
    sure = labels >= 0
    numbers = np.full(labels.size, -1, np.int32)
    numbers[sure] = canonical_labels(labels[sure])
    return numbers


def _orders(n_items: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Give random orders of the items without end; each item is first once before any is twice."""
    for first in itertools.cycle(rng.permutation(n_items).tolist()):
        order = rng.permutation(n_items)
        order[order == first] = order[0]
        order[0] = first
        yield order


def _whole(weights: Floats) -> npt.NDArray[np.int64]:
    """Weights as integers: as multiples of the least where they are such, as repeated draws would count."""
    multiples = weights / weights.min()
    whole: npt.NDArray[np.int64] = np.rint(np.minimum(multiples, _MOST_WEIGHT)).astype(np.int64)
    if multiples.sum() < _MOST_WEIGHT and np.all(np.abs(multiples - whole) <= SAME * multiples):
        return whole
    return np.maximum(np.rint(weights * _MOST_WEIGHT), 1).astype(np.int64)


def _check_memory(draws: PartitionDraws) -> None:
    words = -(-draws.n_draws // 64)
    size = 8 * words * draws.n_items * (draws.drawn.n_planes + n_threads() * draws.most_clusters)
    memory.check(size, "The search for a partial partition", "Thin the draws.")


def _bits(draws: PartitionDraws, weights: npt.NDArray[np.int64]) -> partial.Bits:
    planes = [
        coclustering.pack_bit_planes(block, draws.drawn.n_planes)[:, :, : draws.n_items]
        for _, block in draws.drawn.blocks(_DRAWS_AT_ONCE)
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


def size_bound(draws: PartitionDraws, prob: float, labels: Labels, progressbar: bool) -> int:
    """Upper bound of the number of items: every two are co-clustered, or separated, with at least this probability."""
    n_items = draws.n_items
    if n_items <= _ALL_SUBSETS:
        return int((labels >= 0).sum())
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
    """Put the unassigned items where the expected loss is least while the others keep their clusters.

    From the consensus of all items, changed so that it agrees with the assigned clusters, unassigned items move one by
    one.
    """
    asked: dict[str, Any] = {"random_seed": rng, "seconds": seconds, "progressbar": progressbar}
    free = consensus_partition(draws, loss=loss, **asked).labels.values
    partition = _agreeing(free, labels)
    most = max(draws.most_clusters, int(partition.max()) + 1)
    memory.check(4.0 * int(draws.starts[-1]) * most, f"A search among {most} clusters", "Thin the draws.")
    ensemble = Draws(searched(draws.labels), draws.starts, draws.weights)
    with waiting("Open items", progressbar=progressbar):
        settle_some(ensemble, loss.arrays(labels.size), partition, np.flatnonzero(labels < 0), most)
    return canonical_labels(partition)


def _agreeing(partition: Labels, sure: Labels) -> Labels:
    """Change a partition to agree with the assigned clusters; other items follow the one that has their cluster.

    An assigned cluster has the cluster in which most of its items are, if no other one has more items there.
    """
    members = np.flatnonzero(sure >= 0)
    table = contingency_table(sure[members], partition[members])
    home = table.argmax(axis=1)
    agreeing: Labels = partition + np.int32(table.shape[0])
    for cluster in np.unique(home):
        living = np.flatnonzero(home == cluster)
        agreeing[partition == cluster] = living[table[living, cluster].argmax()]
    agreeing[members] = sure[members]
    return canonical_labels(agreeing)
