"""MPCKMeans: k-means in a learnt metric, with a penalty for violated constraints."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.experts.features import average_votes
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_above, check_count
from posterior_consensus.runtime.progress import track

_ROUNDS = 100
_ENOUGH = 1e-7  # relative fall of the objective at which a run ends
_SHIFT = 0.01  # standard deviation of an additional centre around the centre of all items, relative to the features
_TINY = 1e-12  # least cost of a feature, so that its weight is finite if it is constant in each cluster


class Penalised(NamedTuple):
    """End of a run.

    Attributes
    ----------
    labels : int array of shape (n,)
        Labels of the items.
    metric : float array of shape (D,)
        Weights of the features.
    trace : list of float
        The objective after each round.
    """

    labels: Labels
    metric: Floats
    trace: list[float]


def mpck_means(
    constraints: Any,
    features: Any,
    *,
    n_clusters: int,
    penalty: float = 1.0,
    n_starts: int = 10,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> xr.DataArray:
    """Cluster items by k-means in a learnt diagonal metric, with a penalty for each violated constraint.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    features : array_like, DataFrame or DataArray of shape (n_items, D)
        Features of the items, which are standardized.
    n_clusters : int
        Number of clusters.
    penalty : float above 0
        Penalty weight of each violated constraint.
    n_starts : int
        Number of starts, each with its own order of the items and additional centres; the start with the smallest
        objective is kept.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    xarray.DataArray of shape (n_items,), dtype int32
        Labels of the items.

    Raises
    ------
    ValueError
        If an argument is invalid.

    See Also
    --------
    expert_views : A model of experts with different views and reliabilities.
    itml_k_means, semi_crowd : Other methods with constraints and features.

    Notes
    -----
    Let a_f be the weight of feature f, and d(x, y) = sum_f a_f (x_f - y_f)^2. The method [1]_ minimizes, in turn over
    labels, centres and weights,

        sum_i d(x_i, centre) - n sum_f log a_f + penalty (sum d(x_i, x_j) + sum (d(low, high) - d(x_i, x_j))).

    The second sum is over must-links between different clusters, the last over cannot-links within a cluster; low and
    high are the ends of the features' ranges. A pair counts as must-link if more than half of its constraints are
    must-links.

    The first centres are the centres of neighbourhoods, sets of items connected by must-links: the largest one, then
    large ones that are distant from those chosen. Further centres are near the centre of all items.

    References
    ----------
    .. [1] Bilenko, Basu and Mooney (2004), ICML. https://doi.org/10.1145/1015330.1015360

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> pc.experts.mpck_means(given, x, n_clusters=3, random_seed=1).values[::5]
    array([0, 0, 1, 1, 2, 2], dtype=int32)
    """
    items, values, pairs, votes = average_votes(constraints, features, n_clusters)
    check_above("penalty", penalty, 0)
    check_count("n_starts", n_starts)
    problem = PairwiseKMeans(values, pairs, votes > 0.5, penalty)
    starts = track(as_generator(random_seed).spawn(n_starts), "Pairwise k-means", progressbar=progressbar)
    runs = [problem.run(n_clusters, rng) for rng in starts]
    best = min(runs, key=lambda run: run.trace[-1])
    return items.array(canonical_labels(best.labels), "labels")


def neighbourhoods(
    pairs: npt.NDArray[np.intp], must: npt.NDArray[np.bool_], n_items: int
) -> list[npt.NDArray[np.intp]]:
    """Sets of at least two items connected by must-links, the largest first."""
    first, second = pairs[must].T
    graph = csr_array((np.ones(first.size), (first, second)), shape=(n_items, n_items))
    labels = connected_components(graph, directed=False)[1]
    sets = [np.flatnonzero(labels == k) for k in np.flatnonzero(np.bincount(labels) > 1)]
    return sorted(sets, key=lambda one: -one.size)


class PairwiseKMeans:
    """The objective of penalized k-means, and runs that minimize it.

    Parameters
    ----------
    values : float array of shape (n, D)
        Features of the items.
    pairs : int array of shape (P, 2)
        Distinct pairs of items.
    must : bool array of shape (P,)
        True for a must-link, False for a cannot-link.
    penalty : float
        Penalty weight of each violated constraint.
    """

    def __init__(
        self, values: Floats, pairs: npt.NDArray[np.intp], must: npt.NDArray[np.bool_], penalty: float
    ) -> None:
        self._values, self._pairs, self._must, self._penalty = values, pairs, must, penalty
        self._squares = (values[pairs[:, 0]] - values[pairs[:, 1]]) ** 2
        self._widest = np.ptp(values, axis=0) ** 2
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.argsort(ends[:, 0], kind="stable")
        self._others, self._pair = ends[order, 1], np.tile(np.arange(len(pairs)), 2)[order]
        self._starts = np.searchsorted(ends[order, 0], np.arange(len(values) + 1))

    def run(self, n_clusters: int, rng: np.random.Generator) -> Penalised:
        """Minimize the objective from neighbourhoods and a random order of the items, until convergence."""
        centres = self._first_centres(n_clusters, rng)
        metric = np.ones(self._values.shape[1])
        labels = ((self._values[:, np.newaxis] - centres) ** 2).sum(axis=2).argmin(axis=1)
        trace: list[float] = []
        for _ in range(_ROUNDS):
            self._assign(labels, centres, metric, rng.permutation(len(labels)))
            for k in np.unique(labels):
                centres[k] = self._values[labels == k].mean(axis=0)
            paid = self._paid(labels, centres)
            metric = len(labels) / np.maximum(paid, _TINY)
            trace.append(float(paid @ metric - len(labels) * np.log(metric).sum()))
            if len(trace) > 1 and trace[-2] - trace[-1] <= _ENOUGH * abs(trace[-1]):
                break
        return Penalised(labels, metric, trace)

    def _first_centres(self, n_clusters: int, rng: np.random.Generator) -> Floats:
        """Centres of neighbourhoods, chosen by distance times size, and further ones near the centre of all items."""
        sets = neighbourhoods(self._pairs, self._must, len(self._values))
        means = np.array([self._values[one].mean(axis=0) for one in sets]).reshape(-1, self._values.shape[1])
        sizes = np.array([one.size for one in sets])
        taken = [0] if sets else []
        while len(taken) < min(n_clusters, len(sets)):
            apart = ((means[:, np.newaxis] - means[taken]) ** 2).sum(axis=2).min(axis=1)
            apart[taken] = -1.0
            taken.append(int(np.argmax(apart * sizes)))
        near = rng.normal(0, _SHIFT, (n_clusters - len(taken), means.shape[1])) * self._values.std(axis=0)
        return np.vstack([means[taken], self._values.mean(axis=0) + near])

    def _assign(self, labels: Labels, centres: Floats, metric: Floats, order: npt.NDArray[np.intp]) -> None:
        """Move each item in turn to the cluster of least cost, given all other items; changes `labels`."""
        costs = ((self._values[:, np.newaxis] - centres) ** 2) @ metric
        lengths = self._squares @ metric
        # Costs up to a constant: a satisfied must-link saves its length; a violated cannot-link costs widest - length.
        reward = self._penalty * np.where(self._must, -lengths, self._widest @ metric - lengths)
        for i in order:
            own = slice(self._starts[i], self._starts[i + 1])
            cost = costs[i].copy()
            np.add.at(cost, labels[self._others[own]], reward[self._pair[own]])
            labels[i] = cost.argmin()

    def _paid(self, labels: Labels, centres: Floats) -> Floats:
        """Contribution of each feature to the objective, before its weight."""
        within = ((self._values - centres[labels]) ** 2).sum(axis=0)
        together = labels[self._pairs[:, 0]] == labels[self._pairs[:, 1]]
        apart, joined = self._must & ~together, ~self._must & together
        broken = self._squares[apart].sum(axis=0) + (self._widest - self._squares[joined]).sum(axis=0)
        paid: Floats = within + self._penalty * broken
        return paid
