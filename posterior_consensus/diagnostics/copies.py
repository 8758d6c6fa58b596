"""Chains that contain the same draws, such as copies or runs from one seed; their agreement proves nothing."""

import itertools
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.allocations import as_soft
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.results.display import capitalized, joined
from posterior_consensus.results.sentences import Sentence, advice
from posterior_consensus.runtime.aliases import Floats, Integers

_SHARE, _FEWEST = 0.25, 20  # smallest share of a chain and number of draws in a stretch
_MOST_NAMED = 20  # chains named in a command
_BY_CHANCE = 1e-4  # probability that some stretch of independent chains counts as a copy


class Copies(NamedTuple):
    """Names of all chains, groups of copies, and pairs of chains that share a stretch."""

    names: list[object]
    groups: list[list[object]]
    stretches: list[tuple[object, object, int]]  # two chains, and the number of shared draws

    def in_words(self) -> list[Sentence]:
        """Sentences on repeated draws and the remedy; none if there are no repeated draws."""
        parts = [f"chains {joined(group)} are copies: all their draws are equal" for group in self.groups]
        parts += [f"chains {one} and {other} share {n} equal draws in a row" for one, other, n in self.stretches]
        if not parts:
            return []
        spare = {name for group in self.groups for name in group[1:]}
        leave = f", or keep one of each: `{without(self.names, spare)}`" if spare else ""
        too_good = "They make effective sample sizes too large and Monte Carlo errors too small."
        return [
            Sentence(f"{capitalized('; '.join(parts))}. Copies agree whatever the posterior is. {too_good}"),
            advice(f"Run each chain from a seed of its own{leave}."),
        ]


def without(names: Sequence[object], left_out: Collection[object]) -> str:
    """Command that drops these chains."""
    kept = [name for name in names if name not in left_out]
    shown = ", ".join(map(repr, kept[:_MOST_NAMED])) + ", ..." * (len(kept) > _MOST_NAMED)
    return f"draws.sel(chain=[{shown}])"


def copies(draws: PartitionDraws, items: PartitionDraws) -> Copies:
    """Find chains that share all draws or a long stretch, at the same or another place.

    Given are all draws, possibly with allocation probabilities, and the labels of the items compared.

    A stretch has at least 20 draws, and a quarter of the draws of the shortest chain. Independent chains that seldom
    move share a stretch by chance. A move is a draw that differs from its predecessor; q is the share of all moves
    that lead to its partition. Chains share a stretch of moves with the product of their q as probability. It is a
    copy if this product, times the squared number of draws, is below 0.0001.
    """
    chains, names, shortest = draws.samples.chains, draws.samples.chain_names, draws.samples.shortest
    if len(chains) < 2:
        return Copies(names, [], [])
    ids = _numbers_of_draws(draws, items)[np.concatenate(chains)]
    ends = np.cumsum([rows.size for rows in chains])
    information = _information(ids, ends)
    wanted = 2 * np.log(ids.size) - np.log(_BY_CHANCE)
    shared = np.zeros((len(chains), len(chains)), np.int64)
    for length in {shortest, min(shortest, max(_FEWEST, int(np.ceil(_SHARE * shortest))))}:
        shared = np.maximum(shared, _most_shared(ids, ends, length, information, wanted))
    sizes = np.array([rows.size for rows in chains])
    equal = ((shared == sizes) & (sizes[:, np.newaxis] == sizes)) | np.eye(sizes.size, dtype=bool)
    groups = [
        [names[b] for b in np.flatnonzero(row)] for a, row in enumerate(equal) if row[:a].sum() == 0 < row.sum() - 1
    ]
    pairs = np.argwhere(np.triu((shared > 0) & ~equal)).tolist()
    partly = [(names[a], names[b], int(shared[a, b])) for a, b in pairs]
    return Copies(names, groups, partly)


def _numbers_of_draws(draws: PartitionDraws, items: PartitionDraws) -> Integers:
    """Numbers (N,) of the draws; equal draws have equal numbers."""
    if draws.counted_draws is None:
        return _distinct_numbers(_digests(as_soft(draws, "`draws`").probabilities))
    blocks = [found for _, found in items.backend.map_blocks(_digests)]
    ids = _distinct_numbers(blocks[0])
    for digests in blocks[1:]:
        ids = _distinct_numbers(ids * draws.n_draws + _distinct_numbers(digests))
    return ids


def _digests(rows: npt.NDArray[Any], items: slice | None = None) -> npt.NDArray[np.uint64]:
    return np.array([int.from_bytes(blake2b(row.tobytes(), digest_size=8).digest(), "big") for row in rows], np.uint64)


def _distinct_numbers(values: npt.NDArray[Any]) -> Integers:
    return np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)


def _information(ids: Integers, ends: Integers) -> Floats:
    """Sums (N + 1,) over the draws of their information: -log q for a move, else 0."""
    moves = np.append(True, ids[1:] != ids[:-1])
    moves[ends[:-1]] = True
    share = np.bincount(ids[moves]) / moves.sum()
    return np.append(0.0, np.cumsum(np.where(moves, -np.log(share[ids]), 0.0)))


def _most_shared(ids: Integers, ends: Integers, length: int, information: Floats, wanted: float) -> Integers:
    """Number of draws (C, C) of each chain in windows of this length that another chain shares."""
    windows, reach = ids, 1
    while reach < length:
        step = min(reach, length - reach)
        windows = _distinct_numbers(windows[:-step] * ids.size + windows[step:])
        reach += step
    first = np.arange(windows.size)
    chain = np.searchsorted(ends, first, side="right")
    own = (first + length <= ends[chain]) & (information[length:] - information[:-length] >= wanted)
    has = np.zeros((windows.max() + 1, ends.size), bool)
    has[windows[own], chain[own]] = True
    shared = np.zeros((ends.size, ends.size), np.int64)
    for a, b in itertools.permutations(range(ends.size), 2):
        at = first[own & (chain == a)]
        at = at[has[windows[at], b]]
        if at.size == 0:
            continue
        covered = np.zeros(ids.size + 1, np.int64)
        np.add.at(covered, at, 1)
        np.add.at(covered, at + length, -1)
        shared[a, b] = np.count_nonzero(np.cumsum(covered) > 0)
    return shared
