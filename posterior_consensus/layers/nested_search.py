"""Nested partitions, one a layer, of least sum of expected losses: exact cuts of a tree, and a search over trees.

A loss whose expectation is a sum over clusters gives each set of items a cost in each layer. Sets of items that all
layers so far co-cluster are atoms: the search moves these, and later single items that would be better elsewhere.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from posterior_consensus.ensemble.draws import PartitionDraws, gather
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME

Counts = npt.NDArray[np.int32]
Partitions = npt.NDArray[np.integer]  # (L, n)
Paths = npt.NDArray[np.int64]  # (L, m): cluster of each atom in each layer
_MOST_ATOMS = 1_000  # of the meet of partitions; smaller ones join the largest of their cluster
_SHAKES, _SHARE_SHAKEN = 6, 0.3
_MOST_ROUNDS = 20  # of moves of items


class Costs(NamedTuple):
    """What a set of items costs in a layer, from the numbers of items it has in common with each cluster of each draw.

    The sum over the clusters of a partition is its expected loss, up to a constant.
    """

    h: Floats  # (n + 1,): values h(x) of the loss
    own: float  # coefficient of h of the set's size
    joint: float  # coefficient of the mean over draws of the sum of h of numbers in common
    weights: Floats  # (R,): weight of the draw of each cluster

    @classmethod
    def of(cls, draws: PartitionDraws, loss: PartitionLoss) -> Self:
        """Costs in the layer of these draws under a linear loss."""
        scale, terms = loss.scale(draws.n_items), loss.numerator
        weights = np.repeat(draws.weights, draws.n_clusters)
        return cls(loss.h(draws.n_items), scale * terms.get("B", 0.0), scale * terms.get("A", 0.0), weights)

    def __call__(self, sizes: Integers, counts: Counts) -> Floats:
        """Costs (K,) of sets of these sizes (K,) and numbers in common (K, R)."""
        return np.asarray(self.own * self.h[sizes] + self.joint * (self.h[counts] @ self.weights))

    def added(self, sizes: Integers, counts: Counts, more: int, row: Counts) -> Floats:
        """What further items, `more` of them with `row` (R,) in common, add to the cost of each set (K,)."""
        at = np.flatnonzero(row)
        before = counts[:, at]
        joint = (self.h[before + row[at]] - self.h[before]) @ self.weights[at]
        return np.asarray(self.own * (self.h[sizes + more] - self.h[sizes]) + self.joint * joint)


class Atoms(NamedTuple):
    """Items that move together, and what they have in common with the clusters of the draws of each layer."""

    of_items: Positions  # (n,)
    sizes: Integers  # (m,)
    counts: list[Counts]  # (m, R) of each layer

    @classmethod
    def of(cls, labels: npt.NDArray[np.integer], layers: Sequence[PartitionDraws]) -> Self:
        """The atoms with these labels (n,)."""
        own = canonical_labels(labels)
        counts = [draws.backend.joint_counts(own.astype(np.int32)).T.copy() for draws in layers]
        return cls(own.astype(np.int64), np.bincount(own), counts)

    def paths(self, partitions: Partitions) -> Paths:
        """Clusters (L, m) of the atoms in partitions (L, n) that do not divide them."""
        first = np.unique(self.of_items, return_index=True)[1]
        return np.array([canonical_labels(row[first]) for row in partitions], np.int64)


class Tree:
    """Clusters of atoms in each layer, each within one of the layer before, with tables of their items in common."""

    def __init__(self, paths: Paths, atoms: Atoms) -> None:
        self.paths, self._atoms = paths.copy(), atoms  # (L, m): cluster of each atom in each layer
        # of each layer: (K,) sizes of its clusters, (K, R) what they have in common with the draws, (K,) parents
        self.sizes, self.counts, self.parents = list[Integers](), list[Counts](), list[Positions]()
        for layer, own in enumerate(self.paths):
            number = int(own.max()) + 1
            self.sizes.append(np.bincount(own, atoms.sizes, number).astype(np.int64))
            table = np.zeros((number, atoms.counts[layer].shape[1]), np.int32)
            np.add.at(table, own, atoms.counts[layer])
            self.counts.append(table)
            parents = np.zeros(number, np.intp)
            parents[own] = self.paths[max(layer - 1, 0)]
            self.parents.append(parents)

    def cost(self, costs: Sequence[Costs]) -> float:
        """Sum of the costs of all clusters in all layers."""
        each = zip(costs, self.sizes, self.counts, strict=True)
        return float(sum(one(sizes, counts).sum() for one, sizes, counts in each))

    def units(self) -> list[tuple[Positions, int]]:
        """Sets of atoms that move together, and in how many layers, from the first, each may have other clusters."""
        n_layers, n_atoms = self.paths.shape
        found = [(np.array([atom]), n_layers) for atom in range(n_atoms)]
        for layer in range(n_layers):
            own = self.paths[layer]
            order = np.argsort(own, kind="stable")
            found += [(atoms, layer + 1) for atoms in np.split(order, np.flatnonzero(np.diff(own[order])) + 1)]
        return found

    def place(self, costs: Sequence[Costs], atoms: Positions, n_layers: int) -> float:
        """Move atoms, in the first `n_layers` of which they share clusters, to the best path; return what it gains."""
        size = int(self._atoms.sizes[atoms].sum())
        if not self._is_unit(atoms, size, n_layers):
            return 0.0
        rows = [self._atoms.counts[layer][atoms].sum(axis=0, dtype=np.int32) for layer in range(n_layers)]
        now = self.paths[:n_layers, atoms[0]]
        alone = [float(one(np.array([size]), row[np.newaxis])[0]) for one, row in zip(costs, rows, strict=False)]
        below = np.append(np.cumsum(alone[::-1])[::-1], 0.0)  # cost of own clusters from each layer on
        along, least, best = np.zeros(1), below[0], (0, 0)  # the layer from which on clusters are new, and its parent
        for layer, (row, here) in enumerate(zip(rows, now.tolist(), strict=True)):
            sizes, counts = self.sizes[layer], self.counts[layer]
            sizes[here] -= size
            counts[here] -= row
            added = costs[layer].added(sizes, counts, size, row)
            sizes[here] += size
            counts[here] += row
            along = (along[self.parents[layer]] if layer else 0.0) + np.where(sizes > 0, added, np.inf)
            at = int(along.argmin())
            if along[at] + below[layer + 1] < least - SAME * abs(least):
                least, best = along[at] + below[layer + 1], (layer + 1, at)
        gain = float(along[now[-1]] - least)
        if gain <= SAME * abs(least) + SAME:
            return 0.0
        self._move(atoms, size, rows, self._path_to(*best), n_layers)
        return gain

    def _is_unit(self, atoms: Positions, size: int, n_layers: int) -> bool:
        """Whether atoms share clusters in the first layers, and all clusters of the next one that they are in."""
        if np.ptp(self.paths[n_layers - 1, atoms]):
            return False
        if n_layers == len(self.paths):
            return True
        return int(self.sizes[n_layers][np.unique(self.paths[n_layers, atoms])].sum()) == size

    def _path_to(self, n_kept: int, cluster: int) -> list[int]:
        path = [cluster] * (n_kept > 0)
        for layer in range(n_kept - 1, 0, -1):
            path.insert(0, int(self.parents[layer][path[0]]))
        return path

    def _move(self, atoms: Positions, size: int, rows: list[Counts], path: list[int], n_layers: int) -> None:
        parent = 0
        for layer, row in enumerate(rows):
            here = int(self.paths[layer, atoms[0]])
            self.sizes[layer][here] -= size
            self.counts[layer][here] -= row
            to = path[layer] if layer < len(path) else self._empty(layer)
            self.sizes[layer][to] += size
            self.counts[layer][to] += row
            self.parents[layer][to] = parent
            self.paths[layer, atoms] = to
            parent = to
        if n_layers < len(self.paths):
            self.parents[n_layers][np.unique(self.paths[n_layers, atoms])] = parent

    def _empty(self, layer: int) -> int:
        """A cluster without items."""
        free = np.flatnonzero(self.sizes[layer] == 0)
        if not free.size:
            more = len(self.sizes[layer])
            self.sizes[layer] = np.append(self.sizes[layer], np.zeros(more, np.int64))
            self.counts[layer] = np.append(self.counts[layer], np.zeros_like(self.counts[layer]), axis=0)
            self.parents[layer] = np.append(self.parents[layer], np.zeros(more, np.intp))
            return more
        return int(free[0])


def meet(partitions: Partitions) -> Labels:
    """Canonical labels (n,) of the coarsest partition that refines all of these (L, n)."""
    labels = np.zeros(partitions.shape[1], np.int64)
    for row in partitions:
        labels = canonical_labels(labels * (int(row.max()) + 1) + row).astype(np.int64)
    return canonical_labels(labels)


def few_atoms(partitions: Partitions) -> Labels:
    """The :func:`meet`, whose smallest sets beyond the limit join the largest of their cluster in the last layer."""
    labels, last = meet(partitions), partitions[-1]
    sizes = np.bincount(labels)
    if sizes.size <= _MOST_ATOMS:
        return labels
    order = np.argsort(-sizes, kind="stable")
    within = np.empty(sizes.size, np.int64)
    within[labels] = last
    largest = dict[int, int]()
    for atom in order.tolist():
        largest.setdefault(int(within[atom]), atom)
    into = np.arange(sizes.size)
    small = order[_MOST_ATOMS:]
    into[small] = [largest[int(within[atom])] for atom in small]
    return canonical_labels(into[labels])


def dendrogram(atoms: Atoms, costs: Sequence[Costs], paths: Paths | None = None) -> Positions:
    """Merges (m - 1, 2) of atoms by mean similarity over the layers; the clusters of a tree, if given, are some."""
    sizes = atoms.sizes.astype(np.float64)
    if sizes.size == 1:  # all draws of all layers have one cluster
        return np.empty((0, 2), np.intp)
    apart = np.ones((sizes.size, sizes.size))
    for one, counts in zip(costs, atoms.counts, strict=True):
        apart -= (counts * one.weights) @ counts.T / np.outer(sizes, sizes) / len(costs)
    for row in () if paths is None else paths:
        apart += 2.0 * (row[:, np.newaxis] != row)  # more than similarities can differ by
    np.fill_diagonal(apart, 0.0)
    merges = hierarchy.linkage(squareform((apart + apart.T) / 2, checks=False), "average")
    return merges[:, :2].astype(np.intp)


def best_cuts(merges: Positions, atoms: Atoms, costs: Sequence[Costs]) -> Paths:
    """Nested cuts (L, m) of a tree of atoms, one a layer, of least sum of costs: exact, by dynamic programming.

    With V(S, r) the least sum of what is within a set S of the tree in layers r and later, and S' and S" its two parts,

        V(S, r) = min(cost of S in layer r + V(S, r + 1), V(S', r) + V(S", r)).
    """
    n_layers, n_atoms, n_sets = len(costs), atoms.sizes.size, atoms.sizes.size + len(merges)
    leaves, sizes = (
        [np.array([atom]) for atom in range(n_atoms)],
        np.append(atoms.sizes, np.zeros(len(merges), np.int64)),
    )
    for node, (left, right) in enumerate(merges.tolist(), n_atoms):
        leaves.append(np.concatenate([leaves[left], leaves[right]]))
        sizes[node] = sizes[left] + sizes[right]
    least, is_whole = np.zeros((n_layers + 1, n_sets)), np.ones((n_layers, n_sets), np.bool_)
    for layer in range(n_layers - 1, -1, -1):
        counts = np.empty((n_sets, atoms.counts[layer].shape[1]), np.int32)
        counts[:n_atoms] = atoms.counts[layer]
        for node, (left, right) in enumerate(merges.tolist(), n_atoms):
            counts[node] = counts[left] + counts[right]
        least[layer] = costs[layer](sizes, counts) + least[layer + 1]
        for node, (left, right) in enumerate(merges.tolist(), n_atoms):
            parts = least[layer, left] + least[layer, right]
            if parts < least[layer, node]:
                least[layer, node], is_whole[layer, node] = parts, False
    found, waiting = np.empty((n_layers, n_atoms), np.int64), [(n_sets - 1, 0)]
    while waiting:
        node, layer = waiting.pop()
        if not is_whole[layer, node]:
            waiting += [(part, layer) for part in merges[node - n_atoms].tolist()]
            continue
        found[layer, leaves[node]] = node
        if layer + 1 < n_layers:
            waiting.append((node, layer + 1))
    return _numbered_in_layers(found)


@one_blas_thread(with_sklearn=False)  # the sums must not depend on the number of threads
def nested_partitions(
    layers: Sequence[PartitionDraws],
    separate: Partitions,
    loss: PartitionLoss,
    rng: np.random.Generator,
    progressbar: bool,
) -> Partitions:
    """Labels (L, n) of nested partitions, the coarsest first, near the least sum of expected losses.

    `separate` (L, n) are partitions of each layer of small expected loss.
    """
    costs = [Costs.of(draws, loss) for draws in layers]
    finest = meet(np.array([draws.signatures() for draws in layers]))  # items that all draws of all layers co-cluster
    is_small = finest.max() < _MOST_ATOMS
    atoms = Atoms.of(finest if is_small else few_atoms(separate), layers)
    own = atoms.paths(separate)
    starts = [_majority_parents(own, atoms), _refined(own), np.zeros_like(own)]
    starts += [best_cuts(dendrogram(atoms, costs, given), atoms, costs) for given in (None, own[-1:])]
    tree, least = Tree(own, atoms), np.inf
    for start in track([*starts, *[None] * _SHAKES], "Trees", progressbar=progressbar):
        other = _descended(_shaken(tree.paths, rng) if start is None else start, atoms, costs, rng)
        if other.cost(costs) < least:
            tree, least = other, other.cost(costs)
    labels: Partitions = tree.paths[:, atoms.of_items]
    while not is_small:
        labels = _with_better_items(labels, layers, costs, rng)
        atoms = Atoms.of(few_atoms(np.append(separate, labels, axis=0)), layers)
        tree = _descended(atoms.paths(labels), atoms, costs, rng)
        labels, before, least = tree.paths[:, atoms.of_items], least, tree.cost(costs)
        if before - least <= SAME * abs(before):
            break
    return labels


def _shaken(paths: Paths, rng: np.random.Generator) -> Paths:
    """Give a random part of the atoms the paths of random others."""
    changed, at = paths.copy(), np.flatnonzero(rng.random(paths.shape[1]) < _SHARE_SHAKEN)
    changed[:, at] = paths[:, rng.integers(paths.shape[1], size=at.size)]
    return _numbered_in_layers(changed)


def _descended(paths: Paths, atoms: Atoms, costs: Sequence[Costs], rng: np.random.Generator) -> Tree:
    """Move sets of atoms, and take the best cuts of the tree, as long as the sum of costs falls."""
    tree = Tree(paths, atoms)
    while True:
        _move_sets(tree, costs, rng)
        cuts = Tree(best_cuts(dendrogram(atoms, costs, _numbered_in_layers(tree.paths)), atoms, costs), atoms)
        now = tree.cost(costs)
        if now - cuts.cost(costs) <= SAME * abs(now):
            return tree
        tree = cuts


def _move_sets(tree: Tree, costs: Sequence[Costs], rng: np.random.Generator) -> None:
    """Move sets of atoms until no move of one lowers the sum of costs."""
    gain = np.inf
    while gain:
        units = tree.units()
        gain = sum(tree.place(costs, *units[k]) for k in rng.permutation(len(units)).tolist())


def _with_better_items(
    labels: Partitions, layers: Sequence[PartitionDraws], costs: Sequence[Costs], rng: np.random.Generator
) -> Partitions:
    """Move items that would cost less on another path, those of one leaf to one other leaf together."""
    for _ in range(_MOST_ROUNDS):
        leaves = Atoms.of(labels[-1], layers)
        tree = Tree(leaves.paths(labels), leaves)
        scores = np.zeros((labels.shape[1], leaves.sizes.size))
        here = leaves.of_items
        for draws, cost, own, sizes, counts in zip(layers, costs, tree.paths, tree.sizes, tree.counts, strict=True):
            scores += _of_items(draws, cost, own[here], sizes, counts)[:, own]
        best = scores.argmin(axis=1)
        every = np.arange(here.size)
        gains = scores[every, here] - scores[every, best]
        better = gains > SAME * np.abs(scores[every, best]) + SAME / here.size
        if not better.any():
            return labels
        groups = here * leaves.sizes.size + np.where(better, best, here)
        _, group = np.unique(groups, return_inverse=True)
        most = np.argsort(-np.bincount(group, np.where(better, gains, 0.0)), kind="stable")[:_MOST_ATOMS]
        groups = np.where(np.isin(group, most), groups, here * (leaves.sizes.size + 1))
        atoms = Atoms.of(groups, layers)
        tree = Tree(atoms.paths(labels), atoms)
        before = tree.cost(costs)
        _move_sets(tree, costs, rng)
        labels = tree.paths[:, atoms.of_items]
        if before - tree.cost(costs) <= SAME * abs(before):
            return labels
    return labels


def _of_items(draws: PartitionDraws, cost: Costs, own: Positions, sizes: Integers, counts: Counts) -> Floats:
    """What each item (n, K) adds to the cost of each cluster of a layer, of its own when it is taken out."""
    more = (cost.h[np.minimum(counts + 1, cost.h.size - 1)] - cost.h[counts]).T.copy()
    less = (cost.h[counts] - cost.h[np.maximum(counts - 1, 0)]).T.copy()
    added = np.empty((own.size, sizes.size))
    for items, scores in draws.backend.map_blocks(gather, draws.backend.starts, draws.weights, more):
        added[items] = cost.joint * scores + cost.own * (cost.h[np.minimum(sizes + 1, cost.h.size - 1)] - cost.h[sizes])
    for items, scores in draws.backend.map_blocks(gather, draws.backend.starts, draws.weights, less):
        here = own[items]
        at = np.arange(here.size)
        added[items][at, here] = cost.joint * scores[at, here] + cost.own * (cost.h[sizes] - cost.h[sizes - 1])[here]
    return added


def _majority_parents(own: Paths, atoms: Atoms) -> Paths:
    """The clusters (L, m) of the last layer, each within the clusters that most of its items have in layers before."""
    found = [own[-1]]
    for row in own[-2::-1]:
        common = np.zeros((int(found[0].max()) + 1, int(row.max()) + 1), np.int64)
        np.add.at(common, (found[0], row), atoms.sizes)
        found.insert(0, common.argmax(axis=1)[found[0]])
    return _numbered_in_layers(np.array(found))


def _refined(own: Paths) -> Paths:
    """The clusters (L, m) of each layer, divided by those of the layers before."""
    return np.array([meet(own[: layer + 1]) for layer in range(len(own))], np.int64)


def _numbered_in_layers(paths: Paths) -> Paths:
    """The same clusters, numbered from 0 in each layer."""
    return np.array([canonical_labels(row) for row in paths], np.int64)
