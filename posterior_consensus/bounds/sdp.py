"""Semidefinite relaxations, by the alternating direction method of multipliers.

One bounds the k-means objective "within_variance" at a number of clusters, with cuts where it is loose; the other
bounds Binder's expected loss, for draws too noisy for triangle inequalities.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from posterior_consensus.bounds.ascent import Instance
from posterior_consensus.bounds.bound import Bound, Budget, OutOfBudget, relative_gap
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.losses.record import PairLoss
from posterior_consensus.results.work import NumbersInfo
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

_STEPS = 25  # between two bounds
_CONVERGED = 1e-7  # relative size of both residuals at which steps end
_RELAXATION = 1.6  # over-relaxation, between 1 and 2
_RATIO = 3.0  # of the two residuals, at which the penalty changes
_SECONDS_A_CUBE = 3e-10  # of a step, times the number of groups of items to the third power
_SECONDS_A_STEP = 2e-4

_SHARES_OF_PRICE = 1.0, 0.7
_SECONDS_A_SQUARE = 1.5e-8
_STEPS_BEFORE_CUTS = 100
_STEP_OF_PRICES = 0.01  # times the penalty: of twice as long steps some do not settle
_FACTOR = 1.5  # by which the penalty changes
_PATIENCE, _WORTH_WAITING = 16, 0.01  # bounds in a row that close less than this share of the gap
_BYTES_A_PAIR = 120
_MOST_CUTS_AN_ITEM = 20  # at a time
_MOST_CUTS = 2_000  # at a time
_VIOLATED = 0.02  # of the mean of the diagonal
_CLOSE = 0.3  # share of Z_ii above which Z_ij can be part of a violated inequality with i first, but for a few
_FACTOR_OF_PAIRS = 1.4  # the same for Binder's loss
_BYTES_A_PAIR_OF_GROUPS = 100


def _seconds_to_next_bound(n: int, seconds_a_square: float = 0.0) -> float:
    """About how long the steps between two bounds take with n groups of items."""
    return _STEPS * (_SECONDS_A_STEP + seconds_a_square * n**2 + _SECONDS_A_CUBE * n**3)


def _over_relaxed(spread: Floats, before: Floats, scaled: Floats) -> Floats:
    """The matrix that is to be split, given the projection, the matrix before it and the scaled multipliers."""
    target: Floats = _RELAXATION * spread + (1 - _RELAXATION) * before + scaled
    return target


def _rebalanced(
    penalty: float, scaled: Floats, spread: Floats, after: Floats, before: Floats, factor: float
) -> tuple[float, Floats, float]:
    """Penalty and scaled multipliers, changed if one residual is much larger than the other; the larger residual."""
    primal, dual = float(np.linalg.norm(spread - after)), float(np.linalg.norm(after - before))
    if primal > _RATIO * dual:
        penalty, scaled = penalty * factor, scaled / factor
    elif dual > _RATIO * primal:
        penalty, scaled = penalty / factor, scaled * factor
    return penalty, scaled, max(primal, dual)


@dataclass(frozen=True, kw_only=True)
class RelaxationInfo(NumbersInfo):
    """Record of the bound for the loss "within_variance", and of the method "sdp".

    Attributes
    ----------
    n_signatures : int
        Number of items after merging items co-clustered in all draws.
    n_iter : int
        Steps of the alternating direction method of multipliers; for the result's number of clusters.
    objectives, lower_bounds : list of float or None
        Of "sdp", for each number of clusters that was tried: "within_variance" of the partition that was found, and
        its lower bound.
    """

    n_signatures: int
    n_iter: int
    objectives: list[float] | None = None
    lower_bounds: list[float] | None = None


def sum_of_squares_bound(
    source: PairSource, loss: PairLoss, incumbent: Labels, *, budget: Budget, progressbar: bool = True
) -> Bound:
    """Bound the least objective "within_variance" over the partitions with at most as many clusters as the incumbent.

    The loss is not used: it is :func:`posterior_consensus.losses.within_variance`. The partition of the bound is the
    best that was found. The spectral bound is computed in any case. `info` counts signatures and steps.

    Notes
    -----
    With X the similarity matrix and Z_ij = 1 / size(S_i) where items i and j share the cluster S_i, else 0, the
    objective is 1 - tr(X Z) / n. Z is a projection with Z e = e, tr Z = k and Z >= 0. The relaxation keeps 0 <= Z <= I
    of the first: the semidefinite program of [1]_ and [2]_. For any multipliers V >= 0 of Z >= 0,

        tr(X Z) <= e' (X + V) e / n + the k - 1 largest eigenvalues of P (X + V) P,   P = I - e e' / n,

    by the theorem of Ky Fan, for every such Z. V = 0 is the spectral bound. Given the optimal partition, multipliers in
    closed form prove it where clusters are clear [3]_. Else V is found by the alternating direction method of
    multipliers, from that start, between the two sets {0 <= Z <= I, Z e = e, tr Z = k} and {Z >= 0}. A step
    takes one eigendecomposition. Triangle inequalities Z_ij + Z_il <= Z_ii + Z_jl that the solution violates are added
    as in [4]_. Their multipliers become part of V. Every bound is computed from V alone, so that it is valid
    whenever the work stops.

    Items with equal labels in all draws are merged: an item that stands for c_i has row and column i of X multiplied by
    the root of c_i, and e holds these roots. The bound is the same. Given a matrix alone nothing is merged.

    References
    ----------
    .. [1] Peng and Wei (2007), Approximating k-means-type clustering via semidefinite programming, SIAM Journal on
       Optimization 18(1), 186-205. https://doi.org/10.1137/050641983
    .. [2] Singh, Mukherjee, Peng and Xu (2007), Ensemble clustering using semidefinite programming, Advances in Neural
       Information Processing Systems 20.
    .. [3] Iguchi, Mixon, Peterson and Villar (2017), Probably certifiably correct k-means clustering, Mathematical
       Programming 165, 605-642. https://doi.org/10.1007/s10107-016-1097-0
    .. [4] Piccialli, Sudoso and Wiegele (2022), SOS-SDP: an exact solver for minimum sum-of-squares clustering,
       INFORMS Journal on Computing 34(4), 2144-2162. https://doi.org/10.1287/ijoc.2022.1166
    """
    n_clusters = int(incumbent.max()) + 1
    merged = merge_equal_items(source)
    if n_clusters >= merged.counts.size:
        info = RelaxationInfo(n_signatures=merged.counts.size, n_iter=0)
        return Bound(0.0, "clusters of equal items", canonical_labels(merged.signature), info)
    _, first = np.unique(merged.signature, return_index=True)
    relaxation = Relaxation(merged, n_clusters, budget, incumbent[first])
    relaxation.run("Lower bound", progressbar=progressbar)
    return Bound(relaxation.lower_bound, relaxation.method, relaxation.partition, relaxation.info)


class Merged(NamedTuple):
    """Items after merging those with equal labels in all draws."""

    similarity: Floats  # (u, u)
    counts: Floats  # (u,), of the items in each
    signature: Positions  # (n,)


def merge_equal_items(source: PairSource) -> Merged:
    """Merge items with equal labels in all draws; from a matrix alone, which may hold no shares of draws, none."""
    signature = np.arange(source.n_items) if source.n_draws is None else source.signatures()
    _, first, counts = np.unique(signature, return_index=True, return_counts=True)
    memory.check(_BYTES_A_PAIR * first.size**2, f"The relaxation for {first.size} items with different labels")
    return Merged(source.of_items(first).shared_similarity, counts.astype(np.float64), signature)


class Relaxation:
    """Search for the partition of a number of clusters with the least sum of squares, and for a lower bound of it.

    Attributes
    ----------
    labels : ndarray of shape (u,)
        Best labels of the signatures so far.
    objective : float
        Their objective.
    lower_bound : float
        The greatest so far.
    """

    def __init__(self, merged: Merged, n_clusters: int, budget: Budget, start: Labels | None = None) -> None:
        self._merged, self._k, self._budget = merged, n_clusters, budget
        self._roots = np.sqrt(merged.counts)
        self._n = float(merged.counts.sum())
        self._matrix = merged.similarity * np.multiply.outer(self._roots, self._roots) / self._n
        self._unit = self._roots / np.sqrt(self._n)
        self._n_iter = 0
        self.method = "spectral bound"
        self.lower_bound, self.objective = 0.0, np.inf
        self.labels: Positions = np.zeros(self._roots.size, np.intp)
        self._start = start

    @property
    def partition(self) -> Labels:
        """The best labels of all items."""
        return canonical_labels(self.labels[self._merged.signature])

    @property
    def info(self) -> RelaxationInfo:
        """Record of the work."""
        return RelaxationInfo(n_signatures=self._roots.size, n_iter=self._n_iter)

    def run(self, title: str, *, progressbar: bool) -> None:
        """Search until the partition is proven, the bound rises no more or the budget is spent."""
        with one_blas_thread():  # the sums must not depend on the number of threads
            for _ in track(self._steps(), title, progressbar=progressbar):
                if relative_gap(self.objective, self.lower_bound) < SAME:
                    break

    def _steps(self) -> Iterator[None]:
        if self._start is not None:
            self._consider(self._start)
        self._raise_bound(np.zeros_like(self._matrix), "spectral bound")
        self._consider(self._winners(self._leading(self._matrix)))
        yield
        multipliers = np.zeros_like(self._matrix)
        for share in _SHARES_OF_PRICE:
            multipliers = closed_form(self._merged, self.labels, self._k, share)
            self._raise_bound(multipliers, "multipliers in closed form")
            yield
        yield from self._alternate(multipliers)

    def _alternate(self, multipliers: Floats) -> Iterator[None]:
        """Alternating direction method of multipliers with over-relaxation, from the best partition."""
        seconds = _seconds_to_next_bound(self._roots.size, _SECONDS_A_SQUARE)
        penalty = float(np.linalg.norm(self._matrix)) / np.sqrt(self._k)
        positive = np.where(self.labels[:, np.newaxis] == self.labels, np.multiply.outer(self._unit, self._unit), 0.0)
        positive /= np.bincount(self.labels, self._unit**2)[self.labels]
        scaled = multipliers / -penalty
        cuts, priced, n_new = Cuts(self._roots), np.zeros_like(positive), 0
        last, n_in_vain = self.lower_bound, 0
        while n_in_vain < _PATIENCE:
            try:
                self._budget.spend(seconds)
            except OutOfBudget:
                return
            for _ in range(_STEPS):
                values, vectors = self._project(positive - scaled + (self._matrix + priced) / penalty)
                before, spread = positive, (vectors * values) @ vectors.T
                target = _over_relaxed(spread, before, scaled)
                positive, scaled = np.maximum(target, 0.0), np.minimum(target, 0.0)
                if len(cuts.rows):
                    cuts.reprice(spread, _STEP_OF_PRICES * penalty)
                    priced = cuts.matrix()
            self._n_iter += _STEPS
            method = "semidefinite relaxation" + " with triangle inequalities" * bool(cuts.prices.any())
            self._raise_bound(priced - penalty * scaled, method)
            leading = np.argsort(-values, kind="stable")[: self._k]
            self._consider(self._winners(vectors[:, leading] * np.sqrt(values[leading])))
            yield
            is_closer = self.lower_bound - last > _WORTH_WAITING * (self.objective - last)
            last, n_in_vain = (self.lower_bound, 0) if is_closer else (last, n_in_vain + 1)
            penalty, scaled, residual = _rebalanced(penalty, scaled, spread, positive, before, _FACTOR)
            converged = residual < _CONVERGED * np.sqrt(self._k)
            if converged or self._n_iter >= _STEPS_BEFORE_CUTS:
                n_new = cuts.separate(spread)
                priced = cuts.matrix()
            if converged and n_new == 0:
                return

    def _project(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Nearest Z with 0 <= Z <= I, Z e = e and trace k: its eigenvalues above 0 and their vectors."""
        away = self._deflated(matrix)
        away -= (1.0 + float(np.linalg.norm(away))) * np.multiply.outer(self._unit, self._unit)
        values, vectors = np.linalg.eigh(away)
        values[1:] = capped_simplex(values[1:], self._k - 1)  # the first vector is e, far below the others
        values[0] = 1.0
        vectors[:, 0] = self._unit
        kept = values > 0
        return values[kept], vectors[:, kept]

    def _deflated(self, matrix: Floats) -> Floats:
        """P A P of a symmetric matrix A."""
        product = matrix @ self._unit
        across = np.multiply.outer(self._unit, product - 0.5 * (self._unit @ product) * self._unit)
        deflated: Floats = matrix - across - across.T
        return deflated

    def _leading(self, matrix: Floats) -> Floats:
        """Vector e and the k - 1 leading eigenvectors of P A P as columns."""
        columns = [self._unit[:, np.newaxis]]
        if self._k > 1:
            u = self._roots.size
            columns.append(eigh(self._deflated(matrix), subset_by_index=[u - self._k + 1, u - 1])[1])
        return np.hstack(columns)

    def _raise_bound(self, multipliers: Floats, method: str) -> None:
        matrix, u = self._matrix + multipliers, self._roots.size
        share = float(self._unit @ matrix @ self._unit)
        if self._k > 1:
            greatest = eigh(self._deflated(matrix), eigvals_only=True, subset_by_index=[u - self._k + 1, u - 1])
            share += float(greatest.sum())
        bound = 1.0 - share - ROUNDING
        if bound > self.lower_bound:
            self.lower_bound, self.method = bound, method

    def _consider(self, labels: npt.NDArray[np.integer]) -> None:
        moved, objective = best_moves(self._merged, labels, self._k)
        if objective < self.objective - ROUNDING:
            self.labels, self.objective = moved, objective

    def _winners(self, vectors: Floats) -> Positions:
        """Winner takes all: k anchors as little correlated as can be, and for each signature the largest entry.

        The matrix is the product (u, u) of `vectors` (u, k) with their transpose, for one item of each signature.
        """
        rows = vectors / self._roots[:, np.newaxis]
        norms = np.linalg.norm(rows, axis=1)
        directions = rows / np.where(norms > 0, norms, 1.0)[:, np.newaxis]
        anchors = [int((rows**2 @ np.sum(vectors**2, axis=0)).argmax())]
        closeness = np.abs(directions @ directions[anchors[0]])
        while len(anchors) < self._k:
            anchors.append(int(closeness.argmin()))
            np.maximum(closeness, np.abs(directions @ directions[anchors[-1]]), out=closeness)
        winners: Positions = np.argmax(rows @ rows[anchors].T, axis=1)
        return winners


def capped_simplex(values: Floats, total: int) -> Floats:
    """Nearest numbers to increasing `values` that lie between 0 and 1 and sum to `total`, at most their number."""
    if total >= values.size:
        return np.ones_like(values)
    # The sum of clip(values - t, 0, 1) falls from piece to piece of t, between the values and the values less 1.
    breaks = np.sort(np.concatenate([values - 1.0, values]))
    high = bisect_right(breaks, -total, 1, breaks.size - 1, key=lambda at: -np.clip(values - at, 0.0, 1.0).sum())
    low, high = breaks[high - 1], breaks[high]
    sums = [float(np.clip(values - at, 0.0, 1.0).sum()) for at in (low, high)]
    share = (sums[0] - total) / (sums[0] - sums[1]) if sums[0] > sums[1] else 0.0
    shift = low + share * (high - low)
    nearest: Floats = np.clip(values - shift, 0.0, 1.0)
    return nearest


def closed_form(merged: Merged, labels: npt.NDArray[np.integer], n_clusters: int, share: float) -> Floats:
    """Multipliers (u, u) under which the clusters' indicators span a space that the bound's matrix maps to itself.

    They are 0 within clusters. Each block between two clusters has rank one, and its row sums leave one number open,
    the eigenvalue of these indicators: `share` of the largest that keeps all multipliers at 0 or above.
    """
    counts, cluster = merged.counts, np.asarray(labels)
    sizes = np.bincount(cluster, counts, n_clusters)
    empty, sizes = sizes == 0, np.maximum(sizes, 1.0)
    links = merged.similarity @ (np.eye(n_clusters)[cluster] * counts[:, np.newaxis])
    own = links[np.arange(cluster.size), cluster]
    within = np.bincount(cluster, counts * own, n_clusters)
    mean, half = own / sizes[cluster], within / (2 * sizes)
    # Sum over cluster l of the multipliers of item i of cluster k, at eigenvalue t: sums[i, l] - t slopes[i, l].
    sums = np.multiply.outer(mean - (half / sizes)[cluster], sizes) + half - links
    slopes = 0.5 + sizes / (2 * sizes[cluster])[:, np.newaxis]
    other = (cluster[:, np.newaxis] != np.arange(n_clusters)) & ~empty
    if not other.any():
        return np.zeros_like(merged.similarity)
    eigenvalue = share * max(float((sums / slopes)[other].min()), 0.0)
    sums = np.where(other, np.maximum(sums - eigenvalue * slopes, 0.0), 0.0)
    totals = np.array([counts[cluster == k] @ sums[cluster == k] for k in range(n_clusters)])
    totals = (totals + totals.T) / 2  # they are equal unless sums were cut at 0
    rows = sums[:, cluster]  # (u, u): the sum of i's multipliers over the cluster of j
    pairs = totals[np.ix_(cluster, cluster)]
    products = np.divide(rows * rows.T, pairs, out=np.zeros_like(rows), where=pairs > 0)
    roots = np.sqrt(counts)
    multipliers: Floats = products * np.multiply.outer(roots, roots) / counts.sum()
    return multipliers


def best_moves(merged: Merged, labels: npt.NDArray[np.integer], n_clusters: int) -> tuple[Positions, float]:
    """Make the best move of one signature until none lowers the objective; the labels (u,) and their objective.

    Clusters that are empty fill up, as no split raises the objective.
    """
    counts, n = merged.counts, float(merged.counts.sum())
    cluster = np.array(labels, np.intp)
    items = np.arange(cluster.size)
    members = np.eye(n_clusters)[cluster] * counts[:, np.newaxis]
    links = merged.similarity @ members
    while True:
        sizes = members.sum(axis=0)
        within = np.einsum("ik,ik->k", members, links)
        shares = np.divide(within, sizes, out=np.zeros(n_clusters), where=sizes > 0)
        joined = (within + 2 * counts[:, np.newaxis] * links + counts[:, np.newaxis] ** 2) / (
            sizes + counts[:, np.newaxis]
        ) - shares
        rest = np.maximum(sizes[cluster] - counts, 0.0)
        left = within[cluster] - 2 * counts * links[items, cluster] + counts**2
        lost = shares[cluster] - np.divide(left, rest, out=np.zeros_like(rest), where=rest > 0.5)
        gains = joined - lost[:, np.newaxis]
        gains[items, cluster] = -np.inf
        moved, new = np.unravel_index(int(gains.argmax()), gains.shape)
        if not gains[moved, new] > ROUNDING * n:
            return cluster, 1.0 - float(shares.sum()) / n
        old = cluster[moved]
        cluster[moved] = new
        members[moved, old], members[moved, new] = 0.0, counts[moved]
        change = merged.similarity[:, moved] * counts[moved]
        links[:, old] -= change
        links[:, new] += change


class Cuts:
    """Inequalities Z_ij + Z_il <= Z_ii + Z_jl, where j = l stands for Z_ij <= Z_ii.

    They hold for Z_ij = 1 / size(S_i) where i and j share the cluster S_i, else 0.

    Attributes
    ----------
    rows : ndarray of shape (n_cuts, 3)
        i, j and l.
    prices : ndarray of shape (n_cuts,)
        Multipliers of at least 0.
    """

    def __init__(self, roots: Floats) -> None:
        self._counts = roots**2
        self._single = 1.0 / np.multiply.outer(roots, roots)  # from merged items to single ones
        self.rows: Integers = np.empty((0, 3), np.int64)
        self.prices: Floats = np.empty(0)

    def matrix(self) -> Floats:
        """What the multipliers add to the matrix of the objective (u, u)."""
        u = self._counts.size
        i, j, k = self.rows.T
        pair = j == k
        third = np.where(pair, 0.0, self.prices)
        at = np.concatenate([i * u + i, j * u + k, i * u + j, i * u + k])
        added = np.concatenate([self.prices, third, -self.prices, -third])
        upper = np.bincount(at, added, u * u).reshape(u, u)
        priced: Floats = (upper + upper.T) / 2 * self._single
        return priced

    def reprice(self, spread: Floats, step: float) -> None:
        """Raise the multipliers of inequalities that a matrix Z (u, u) violates by a step, and lower the others."""
        slack = _slack(spread * self._single, self.rows)
        self.prices = np.maximum(self.prices - step * self._counts[self.rows[:, 0]] * slack, 0.0)

    def separate(self, spread: Floats) -> int:
        """Drop inequalities without a multiplier, add those that Z (u, u) violates most, and return their number."""
        kept = self.prices > 0
        single = spread * self._single
        violated = _violated(single)
        u = single.shape[0]
        new = violated[~np.isin(_keys(violated, u), _keys(self.rows[kept], u))]
        self.rows = np.concatenate([self.rows[kept], new])
        self.prices = np.concatenate([self.prices[kept], np.zeros(len(new))])
        return len(new)


def _slack(single: Floats, rows: Integers) -> Floats:
    i, j, k = rows.T
    third = np.where(j == k, 0.0, single[j, k] - single[i, k])
    slack: Floats = single[i, i] - single[i, j] + third
    return slack


def _violated(single: Floats) -> Integers:
    """The most violated inequalities, at most some for each first item."""
    diagonal = np.diagonal(single)
    enough = _VIOLATED * float(diagonal.mean())
    first, second = np.nonzero(single - diagonal[:, np.newaxis] > enough)
    found = [np.column_stack([first, second, second])]
    for i in range(len(single)):
        close = np.flatnonzero(single[i] > _CLOSE * diagonal[i])
        close = close[close != i]
        row = single[i, close]
        excess = np.triu(np.add.outer(row, row) - diagonal[i] - single[np.ix_(close, close)], 1)
        j, k = np.nonzero(excess > enough)
        if j.size > _MOST_CUTS_AN_ITEM:
            most = np.argsort(-excess[j, k], kind="stable")[:_MOST_CUTS_AN_ITEM]
            j, k = j[most], k[most]
        found.append(np.column_stack([np.full(j.size, i), close[j], close[k]]))
    rows = np.concatenate(found).astype(np.int64)
    return rows[np.argsort(_slack(single, rows), kind="stable")[:_MOST_CUTS]]


def _keys(rows: Integers, u: int) -> Integers:
    return (rows[:, 0] * u + rows[:, 1]) * u + rows[:, 2]


class PairRelaxation:
    """Lower bounds of the least cost of an instance, by steps of the alternating direction method of multipliers.

    With Y_ij = 1 where groups i and j are together, else 0, the cost is a constant less half of tr(W Y), W the weights.
    Y is positive semidefinite, Y >= 0 and Y_ii = 1. For any d, and any V >= 0,

        tr(W Y) <= sum_i d_i + n max(0, largest eigenvalue of W + V - diag(d)),

    as tr Y = n. The method alternates between {Y positive semidefinite} and {Y >= 0, Y_ii = 1}.
    """

    def __init__(self, instance: Instance, labels: npt.NDArray[np.integer], budget: Budget) -> None:
        self._weights, self._budget = instance.weights, budget
        self._apart = instance.joined + float(instance.weights.sum()) / 2
        self._slack = ROUNDING * float(np.abs(instance.weights).sum())
        self._start = (labels[:, np.newaxis] == labels).astype(np.float64)
        self.n_iter = 0

    def bounds(self) -> Iterator[float]:
        """Yield bounds until they settle or the budget is spent."""
        n = len(self._weights)
        seconds = _seconds_to_next_bound(n)
        if seconds > self._budget.left or not memory.fits(_BYTES_A_PAIR_OF_GROUPS * n**2):
            return
        with suppress(OutOfBudget), one_blas_thread():  # the sums must not depend on their number
            penalty = float(np.linalg.norm(self._weights)) / np.sqrt(n)
            allowed, scaled = self._start, np.zeros_like(self._start)
            while True:
                self._budget.spend(seconds)
                for _ in range(_STEPS):
                    values, vectors = np.linalg.eigh(allowed - scaled)
                    kept = values > 0
                    spread = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
                    before = allowed
                    target = _over_relaxed(spread, before, scaled)
                    allowed = np.maximum(target + self._weights / penalty, 0.0)
                    np.fill_diagonal(allowed, 1.0)
                    scaled = target - allowed
                self.n_iter += _STEPS
                yield self._bound(penalty * scaled)
                penalty, scaled, residual = _rebalanced(penalty, scaled, spread, allowed, before, _FACTOR_OF_PAIRS)
                if residual < _CONVERGED * np.sqrt(n):
                    return

    def _bound(self, slack: Floats) -> float:
        """The bound of multipliers such that W + V - diag(d) is nearly minus this matrix."""
        rest = self._weights + slack
        diagonal = np.diagonal(rest).copy()
        reduced = self._weights + np.maximum(-rest, 0.0)
        np.fill_diagonal(reduced, -diagonal)
        greatest = float(np.linalg.eigvalsh(reduced)[-1])
        together = float(diagonal.sum()) + len(diagonal) * max(0.0, greatest)
        return self._apart - together / 2 - self._slack
