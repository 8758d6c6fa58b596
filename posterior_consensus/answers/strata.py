"""Strata of pairs of records for an audit: by what a partition decides, score and component."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions

_LEAST = 5  # pairs of a stratum that are drawn
_EACH = 15  # pairs that are drawn for each stratum, on average
_SURE = 0.02  # least standard deviation of an answer in the allocation, as scores may be wrong
_UNKNOWN = 0.5  # stands for the score of pairs that are apart and have none
_MOST_DRAWN = 10**6  # pairs at a time


class Stratum(NamedTuple):
    """Pairs of equal kind: their number and mean score, and which they are if they are listed."""

    joined: bool
    scored: bool
    largest: int
    n_pairs: int
    score: float
    records: float  # sum over the pairs of 2 / the size of their cluster, 0 of pairs apart
    ends: Positions  # (m, 2)
    rows: Positions  # (m,): their places among the scored pairs, -1 if not scored


def strata_of(found: ScoredLinks, number: int, n_unscored: int, rng: np.random.Generator) -> Iterator[Stratum]:
    """Strata of the pairs that constraints do not decide; some of those without a score are drawn to be listed."""
    ends, decided = (
        np.stack([pairs[end].values.astype(np.int64) for end in ("first", "second")], axis=1)
        for pairs in (found.pairs, found.decided)
    )
    scored, known = (np.sort(_codes(pairs, found.cluster.size)) for pairs in (ends, decided))
    free = ~_are_among(_codes(ends, found.cluster.size), known)
    yield from _strata_of_scored(found, ends, free, number)
    taken = np.concatenate([scored, np.unique(known[~_are_among(known, scored)])])
    yield from _strata_of_unscored(found, taken, number, n_unscored, rng)


def _strata_of_scored(found: ScoredLinks, ends: Positions, free: Flags, number: int) -> Iterator[Stratum]:
    """Strata of scored pairs: three kinds, each divided by score into parts of equal expected spread."""
    cluster = found.cluster.values
    size = np.bincount(cluster)[cluster[ends[:, 0]]]
    scores, joined = found.pairs["probability"].values, found.joined
    kinds = [joined & (size == 2), joined & (size > 2), ~joined]
    for kind in kinds:
        rows = np.flatnonzero(free & kind)
        n_parts = min(max(number // _EACH // len(kinds), 1), rows.size // _LEAST)
        for part in of_equal_spread(rows[np.argsort(scores[rows], kind="stable")], scores, max(n_parts, 1)):
            is_joined = bool(joined[part[0]])
            records = float((2.0 / size[part]).sum()) if is_joined else 0.0
            largest, mean = int(size[part].max()), float(scores[part].mean())
            yield Stratum(is_joined, True, largest, part.size, mean, records, ends[part], part)


def of_equal_spread(rows: Positions, scores: Floats, n_parts: int) -> list[Positions]:
    """Parts of rows in the order of their scores, whose standard deviations of an answer add up to the same."""
    at = np.cumsum(_expected_spread(scores[rows]))
    place = np.minimum(at * n_parts / at[-1:], n_parts - 1).astype(np.int64)
    return [part for part in np.split(rows, np.searchsorted(place, np.arange(1, n_parts))) if part.size]


def _expected_spread(scores: Floats) -> Floats:
    return np.sqrt(np.maximum(scores * (1 - scores), _SURE**2))


def _strata_of_unscored(
    found: ScoredLinks, taken: Positions, number: int, n_unscored: int, rng: np.random.Generator
) -> Iterator[Stratum]:
    """Pairs without a score: joined, and if asked apart in one component and in two."""
    cluster, n = found.cluster.values.astype(np.int64), found.cluster.size
    sizes, largest = np.bincount(cluster), int(np.bincount(cluster).max())
    own = _Between(cluster, np.arange(n), taken)
    if own.n_pairs:
        scores = found.pairs["probability"].values[found.joined]
        known = cluster[taken // n][own.has(taken // n, taken % n)]
        records = float((sizes - 1).sum() - (2.0 / sizes[known]).sum())
        ends = own.drawn(min(own.n_pairs, number), rng)
        mean = float(scores.mean()) if scores.size else _UNKNOWN
        yield Stratum(True, False, largest, own.n_pairs, mean, records, ends, np.full(len(ends), -1))
    if not n_unscored:
        return
    component = found.component.astype(np.int64)
    near, far = _Between(component, cluster, taken), _Between(np.zeros_like(component), component, taken)
    n_near = min(near.n_pairs, max(n_unscored // 2, n_unscored - far.n_pairs, 1))
    for pairs, wanted in ((near, n_near), (far, max(n_unscored - n_near, 1))):
        if pairs.n_pairs:
            ends = pairs.drawn(min(pairs.n_pairs, wanted), rng)
            yield Stratum(False, False, largest, pairs.n_pairs, _UNKNOWN, 0.0, ends, np.full(len(ends), -1))


class _Between:
    """Pairs of records that are in one group, in different parts of it, and not among the pairs `taken`."""

    def __init__(self, group: Integers, part: Integers, taken: Positions) -> None:
        self._group, self._part, self._taken = group, part, np.sort(taken)
        self._sizes = np.bincount(group)
        within, inside = (int((sizes * (sizes - 1)).sum()) // 2 for sizes in (self._sizes, np.bincount(part)))
        self._n_within = within
        self.n_pairs = within - inside - int(np.count_nonzero(self.has(taken // group.size, taken % group.size)))

    def has(self, one: Positions, other: Positions) -> Flags:
        """Whether pairs are in one group and in different parts."""
        return np.equal(self._group[one], self._group[other]) & np.not_equal(self._part[one], self._part[other])

    def drawn(self, number: int, rng: np.random.Generator) -> Positions:
        """Distinct pairs (number, 2) at random."""
        n = self._group.size
        order = np.argsort(self._group, kind="stable")
        starts = np.cumsum(self._sizes) - self._sizes
        each = self._sizes * (self._sizes - 1.0)
        found = np.empty(0, np.int64)
        while found.size < number:
            m = min(2 * number * self._n_within // self.n_pairs + 1, _MOST_DRAWN)
            group = rng.choice(each.size, m, p=each / each.sum())
            one = rng.integers(self._sizes[group])
            other = (one + 1 + rng.integers(self._sizes[group] - 1)) % self._sizes[group]
            ends = np.stack([order[starts[group] + one], order[starts[group] + other]], axis=1)
            new = _codes(ends[self.has(*ends.T)], n)
            found = np.concatenate([found, new[~_are_among(new, self._taken)]])
            found = found[np.sort(np.unique(found, return_index=True)[1])]
        return np.stack([found[:number] // n, found[:number] % n], axis=1)


def numbers_to_draw(strata: list[Stratum], found: ScoredLinks, n: int) -> Positions:
    """Number of pairs to draw of each stratum: `n` of those scored or joined, and all that are listed of others."""
    pairs = np.array([one.n_pairs for one in strata])
    asked = np.array([one.joined or one.scored for one in strata])
    wrong, missed = found.expected_errors
    matches = max(found.n_joined - wrong, 1.0)
    recall = matches / (matches + missed)
    change = {True: np.hypot(1.0 / max(found.n_joined, 1), (1 - recall) / matches), False: recall / (matches + missed)}
    wanted = (
        pairs
        * _expected_spread(np.array([one.score for one in strata]))
        * np.array([change[one.joined] for one in strata])
    )
    numbers = np.where(asked, np.minimum(pairs, _LEAST), 0)
    while (left := n - numbers.sum()) > 0 and (open_ := asked & (numbers < pairs)).any():
        more = np.floor(left * np.where(open_, wanted, 0.0) / wanted[open_].sum()).astype(np.int64)
        if not more.any():
            more[np.argmax(np.where(open_, wanted / (numbers + 1), -1.0))] = 1
        numbers = np.minimum(pairs, numbers + more)
    return np.where(asked, numbers, [len(one.ends) for one in strata])


def _codes(ends: Positions, n: int) -> Positions:
    """A number (m,) for each unordered pair of n records."""
    return ends.min(axis=1, initial=n) * n + ends.max(axis=1, initial=0)


def _are_among(codes: Positions, known: Positions) -> Flags:
    """Whether numbers (m,) are among sorted ones."""
    if not known.size:
        return np.zeros(codes.size, np.bool_)
    return np.equal(known[np.minimum(np.searchsorted(known, codes), known.size - 1)], codes)
