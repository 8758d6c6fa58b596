"""Competing methods: k-means in a metric learnt from constraints, and cuts of graphs of experts and items."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.experts.constraints import Constraints, as_constraints, average_votes, names_coordinate
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, as_numbers, check_above, check_count
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import track, waiting
from posterior_consensus.search.classical import k_means, random_walk_vectors

_PAIRS_FOR_LIMITS = 20_000  # sampled for the quantiles of the distances
_QUANTILES = (5, 95)
_N_STARTS = 10  # of k-means
_TINY = 1e-10  # added to the diagonal, because rounding can make a learnt metric indefinite
_ROUNDS = 100
_ENOUGH = 1e-7  # relative fall of the objective at which a run ends
_SHIFT = 0.01  # standard deviation of an additional centre around the centre of all items, relative to the features
_LEAST_COST = 1e-12  # least cost of a feature, so that its weight is finite if it is constant in each cluster
_COMPLETIONS, _COMPLETED = 300, 1e-4  # of the completion: most rounds, and the relative residual at which it ends
_GROWTH = 1.1  # of the penalty in a round


def itml_k_means(
    constraints: Any,
    features: Any,
    *,
    n_clusters: int,
    slack: float = 1.0,
    max_passes: int = 100,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> xr.DataArray:
    """Cluster items by k-means under an information-theoretic metric learnt from the majority's constraints.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    features : array_like, DataFrame or DataArray of shape (n_items, D)
        Features of the items, which are standardized.
    n_clusters : int
        Number of clusters.
    slack : float above 0
        Weight of the bounds on distances, gamma in [1]_; larger values enforce them more strictly.
    max_passes : int
        Largest number of passes over the constraints.
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
    mpck_means, semi_crowd : Other methods with constraints and features.

    Notes
    -----
    The metric minimizes the LogDet divergence from the Euclidean metric by Bregman projections [1]_. A pair counts as
    must-link if more than half of its constraints are must-links. Up to slack, squared distances of must-links are at
    most the 5% quantile of all squared distances between unequal items, and squared distances of cannot-links at least
    the 95% quantile. The step is slack / (slack + 1) (1 / length - 1 / bound), as in the authors' program; the formula
    of the paper is correct only for slack 1.

    References
    ----------
    .. [1] Davis, Kulis, Jain, Sra and Dhillon (2007), ICML. https://doi.org/10.1145/1273496.1273523

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> from posterior_consensus.experts.competing_methods import itml_k_means
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> itml_k_means(given, x, n_clusters=3, random_seed=1).values[::5]
    array([0, 0, 1, 1, 2, 2], dtype=int32)
    """
    items, values, pairs, votes = average_votes(constraints, features, n_clusters)
    check_above("slack", slack, 0)
    check_count("max_passes", max_passes)
    rng = as_generator(random_seed)
    first, second = rng.integers(len(values), size=(2, _PAIRS_FOR_LIMITS))
    squares = ((values[first] - values[second]) ** 2).sum(axis=1)
    near, far = np.percentile(squares[squares > 0], _QUANTILES) if squares.any() else (1.0, 1.0)
    with one_blas_thread(), waiting("Learnt metric", progressbar=progressbar):
        metric = information_theoretic_metric(
            values[pairs[:, 0]] - values[pairs[:, 1]], votes > 0.5, (near, far), slack, max_passes
        )
        points = values @ np.linalg.cholesky(metric + _TINY * np.eye(len(metric)))
    return items.array(k_means(points, n_clusters, _N_STARTS, rng), "labels")


def information_theoretic_metric(
    differences: Floats,
    must: Flags,
    limits: tuple[float, float],
    slack: float = 1.0,
    max_passes: int = 100,
    enough: float = 1e-3,
) -> Floats:
    """Compute the metric closest to the Euclidean one that bounds the squared lengths of some differences.

    Parameters
    ----------
    differences : float array of shape (P, D)
        Differences between the features of the two items of each pair.
    must : bool array of shape (P,)
        True if the length is bounded above by the first limit, False if it is bounded below by the second.
    limits : (float, float)
        Bounds of squared lengths.
    slack : float
        Weight of the bounds.
    max_passes : int
        Largest number of passes.
    enough : float
        Relative change of the multipliers in a pass at which the passes end.
    """
    apart = np.flatnonzero((differences != 0).any(axis=1))  # equal items keep their distance under any metric
    differences = differences[apart]
    kinds = np.where(must[apart], 1.0, -1.0).tolist()
    aims = np.where(must[apart], *limits).tolist()
    share = slack / (slack + 1)
    multipliers = np.zeros(apart.size)
    matrix = np.eye(differences.shape[1])
    for _ in range(max_passes):
        before = multipliers.copy()
        for c, (x, kind) in enumerate(zip(differences, kinds, strict=True)):
            moved = matrix @ x
            length = float(x @ moved)
            step = kind * min(multipliers[c], kind * share * (1 / length - 1 / aims[c]))
            aims[c] = slack * aims[c] / (slack + step * aims[c])
            multipliers[c] -= kind * step
            matrix += step / (1 - step * length) * np.outer(moved, moved)
        size = np.linalg.norm(multipliers) + np.linalg.norm(before)
        if size == 0 or np.linalg.norm(multipliers - before) < enough * size:
            break
    return matrix


class Penalized(NamedTuple):
    """End of a run."""

    labels: Positions  # (n,): labels of the items
    metric: Floats  # (D,): weights of the features
    trace: list[float]  # the objective after each round


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
    >>> from posterior_consensus.experts.competing_methods import mpck_means
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> mpck_means(given, x, n_clusters=3, random_seed=1).values[::5]
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


def neighbourhoods(pairs: Positions, must: Flags, n_items: int) -> list[Positions]:
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

    def __init__(self, values: Floats, pairs: Positions, must: Flags, penalty: float) -> None:
        self._values, self._pairs, self._must, self._penalty = values, pairs, must, penalty
        self._squares = (values[pairs[:, 0]] - values[pairs[:, 1]]) ** 2
        self._widest = np.ptp(values, axis=0) ** 2
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.argsort(ends[:, 0], kind="stable")
        self._others, self._pair = ends[order, 1], np.tile(np.arange(len(pairs)), 2)[order]
        self._starts = np.searchsorted(ends[order, 0], np.arange(len(values) + 1))

    def run(self, n_clusters: int, rng: np.random.Generator) -> Penalized:
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
            metric = len(labels) / np.maximum(paid, _LEAST_COST)
            trace.append(float(paid @ metric - len(labels) * np.log(metric).sum()))
            if len(trace) > 1 and trace[-2] - trace[-1] <= _ENOUGH * abs(trace[-1]):
                break
        return Penalized(labels, metric, trace)

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

    def _assign(self, labels: Positions, centres: Floats, metric: Floats, order: Positions) -> None:
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

    def _paid(self, labels: Positions, centres: Floats) -> Floats:
        """Contribution of each feature to the objective, before its weight."""
        within = ((self._values - centres[labels]) ** 2).sum(axis=0)
        together = labels[self._pairs[:, 0]] == labels[self._pairs[:, 1]]
        apart, joined = self._must & ~together, ~self._must & together
        broken = self._squares[apart].sum(axis=0) + (self._widest - self._squares[joined]).sum(axis=0)
        paid: Floats = within + self._penalty * broken
        return paid


def semi_crowd(
    constraints: Any,
    features: Any,
    *,
    n_clusters: int,
    certain: tuple[float, float] = (0.2, 0.8),
    ridge: float = 0.01,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> xr.DataArray:
    """Cluster items by k-means under a metric learnt from the majority's constraints.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    features : array_like, DataFrame or DataArray of shape (n_items, D)
        Features of the items, which are standardized.
    n_clusters : int
        Number of clusters.
    certain : (float, float)
        Pairs with a share of must-links between the two values are left out.
    ridge : float
        Positive number added to the diagonal of the covariance of the standardized features.
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
        If no pair is certain, or an argument is invalid.

    See Also
    --------
    expert_views : A model of experts with different views and reliabilities.
    mpck_means, itml_k_means : Other methods with constraints and features.

    Notes
    -----
    Semi-crowdsourced clustering [1]_. The shares of must-links of certain pairs are rounded to 0 or 1. The matrix of
    the items in these pairs is completed to a low-rank matrix F, with a few wrong entries allowed. Let X be the
    standardized features of these n items, and C = X'X / n + ridge I. The metric is the positive part of
    C^-1 X' F X C^-1 / n^2.

    References
    ----------
    .. [1] Yi, Jin, Jain, Yang and Jain (2012), NeurIPS 25.
       https://papers.nips.cc/paper/4688-semi-crowdsourced-clustering-generalizing-crowd-labeling-by-robust-distance-metric-learning

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> from posterior_consensus.experts.competing_methods import semi_crowd
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> semi_crowd(given, x, n_clusters=3, random_seed=1).values[::5]
    array([0, 0, 1, 1, 2, 2], dtype=int32)
    """
    items, values, pairs, votes = average_votes(constraints, features, n_clusters)
    shares = as_numbers("certain", certain)
    if shares.shape != (2,) or not 0 <= shares[0] <= shares[1] <= 1:
        raise ValueError(f"`certain` must be two shares in order, between 0 and 1; got {certain!r}.")
    low, high = shares
    check_above("ridge", ridge, 0.0)
    clear = (votes <= low) | (votes >= high)
    if not clear.any():
        raise ValueError("`certain` must leave at least one pair; experts disagree about all.")
    named, at = np.unique(pairs[clear], return_inverse=True)
    first, second = at.reshape(-1, 2).T
    known, seen = np.eye(named.size), np.eye(named.size, dtype=bool)
    known[first, second] = known[second, first] = votes[clear] >= high
    seen[first, second] = seen[second, first] = True
    with one_blas_thread(), waiting("Completed matrix", progressbar=progressbar):
        completed = complete_matrix(known, seen)
        own = values[named]
        inverse = np.linalg.inv(own.T @ own / len(own) + ridge * np.eye(own.shape[1]))
        metric = inverse @ own.T @ completed @ own @ inverse / len(own) ** 2
        strengths, directions = np.linalg.eigh((metric + metric.T) / 2)
        points = values @ (directions * np.sqrt(np.maximum(strengths, 0.0)))
    return items.array(k_means(points, n_clusters, _N_STARTS, as_generator(random_seed)), "labels")


def complete_matrix(known: Floats, seen: Flags) -> Floats:
    """Complete a symmetric low-rank matrix from some entries, of which a few may be wrong.

    The matrix (n, n) has entries that are not `seen` (n, n), which are ignored.

    Notes
    -----
    The method of multipliers [1]_ minimizes the trace norm of F plus a penalty weight times the sum of the absolute
    errors E, where F + E equals the known entries. The penalty weight is one over the square root of the mean number of
    known entries in a row.

    References
    ----------
    .. [1] Lin, Chen and Ma (2010), The augmented Lagrange multiplier method for exact recovery of corrupted low-rank
       matrices. https://doi.org/10.48550/arXiv.1009.5055
    """
    known_entries = np.where(seen, known, 0.0)
    weight = 1 / np.sqrt(max(seen.sum() / len(seen), 1.0))
    scale = np.linalg.norm(known_entries) or 1.0
    largest = max(np.abs(np.linalg.eigvalsh(known_entries)).max(), 1e-12)
    penalty = 1.25 / largest
    multipliers = known_entries / max(largest, np.abs(known_entries).max() / weight)
    completed, errors = np.zeros_like(known_entries), np.zeros_like(known_entries)
    for _ in range(_COMPLETIONS):
        values, vectors = np.linalg.eigh(known_entries - errors + multipliers / penalty)
        shrunk = np.sign(values) * np.maximum(np.abs(values) - 1 / penalty, 0.0)
        kept = shrunk != 0
        completed = (vectors[:, kept] * shrunk[kept]) @ vectors[:, kept].T
        rest = known_entries - completed + multipliers / penalty
        errors = np.where(seen, np.sign(rest) * np.maximum(np.abs(rest) - weight / penalty, 0.0), rest)
        left = known_entries - completed - errors
        multipliers = multipliers + penalty * left
        penalty *= _GROWTH
        if np.linalg.norm(left) < _COMPLETED * scale:
            break
    return completed


def meta_clustering(
    constraints: Any,
    n_views: int | None = None,
    *,
    random_seed: RandomSeed = None,
) -> xr.DataArray:
    """Group experts by their agreement on common pairs, by spectral clustering.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    n_views : int, optional
        Number of groups; by default the position of the largest difference between successive eigenvalues of the
        graph's Laplacian.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    xarray.DataArray of shape (expert,), dtype int32
        Group of each expert.

    Raises
    ------
    ValueError
        If there are fewer experts than groups.

    See Also
    --------
    posterior_consensus.experts.expert_views : the model of experts in views.

    Notes
    -----
    The similarity of two experts is the Rand index of their constraints: the share of common pairs on which they agree,
    0 without common pairs [1]_. Groups come from spectral clustering of this graph, and their number from its
    eigenvalues [2]_, as in the comparison of [3]_. Experts with few common pairs are hardly distinguished.

    References
    ----------
    .. [1] Caruana, Elhawary, Nguyen and Smith (2006), Meta clustering. https://doi.org/10.1109/ICDM.2006.103
    .. [2] von Luxburg (2007), Statistics and Computing 17(4), 395-416. https://doi.org/10.1007/s11222-007-9033-z
    .. [3] Chang et al. (2017), ICML. https://proceedings.mlr.press/v70/chang17a.html

    Examples
    --------
    >>> from posterior_consensus.experts.competing_methods import meta_clustering
    >>> one, other = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    >>> meta_clustering({"Ann": one, "Bo": one, "Cy": other, "Di": other}, 2, random_seed=1).values
    array([0, 0, 1, 1], dtype=int32)
    """
    checked = as_constraints(constraints)
    similarity = expert_similarity(checked)
    if n_views is None:
        n_views = _eigengap(similarity)
    if check_count("n_views", n_views) > checked.n_experts:
        raise ValueError(f"`n_views` must be at most the number of experts, {checked.n_experts}; got {n_views}.")
    labels = _cut(similarity, n_views, as_generator(random_seed))
    return xr.DataArray(labels, {"expert": names_coordinate(checked.experts)}, ("expert",), "expert_view")


def expert_similarity(checked: Constraints) -> Floats:
    """Share (M, M) of common pairs on which two experts agree, without pairs on which an expert is undecided."""
    balance = checked.statements.must - checked.statements.cannot
    must, cannot = (balance > 0).astype(np.float64), (balance < 0).astype(np.float64)
    same = (must @ must.T + cannot @ cannot.T).toarray()
    differ = (must @ cannot.T).toarray()
    common = same + differ + differ.T
    return np.divide(same, common, out=np.zeros_like(same), where=common > 0)


def _eigengap(similarity: Floats) -> int:
    """Number of leading eigenvalues of the normalized graph before the largest difference."""
    weights = similarity.copy()
    np.fill_diagonal(weights, 0.0)
    roots = np.sqrt(np.maximum(weights.sum(axis=1), np.finfo(float).tiny))
    values = np.linalg.eigvalsh(weights / roots / roots[:, np.newaxis])[::-1]
    return 1 if values.size == 1 else int(np.argmax(values[:-1] - values[1:])) + 1


def normalized_cut(
    constraints: Any,
    *,
    n_clusters: int,
    random_seed: RandomSeed = None,
) -> xr.DataArray:
    """Cluster items by a normalized cut of the graph whose edge weights are shares of must-links.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints. Pairs without a constraint have weight 0.
    n_clusters : int
        Number of clusters.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    xarray.DataArray of shape (n_items,), dtype int32
        Labels of the items. Items without must-links are in the largest cluster.

    Raises
    ------
    ValueError
        If fewer items have must-links than there are clusters.

    See Also
    --------
    expert_views : A model of experts with different views and reliabilities.

    Notes
    -----
    Cluster-based similarity partitioning [1]_, with a normalized cut by eigenvectors instead of a balanced graph
    partition. It distinguishes neither views nor reliabilities, and needs many constraints.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.
       https://jmlr.org/papers/v3/strehl02a.html

    Examples
    --------
    >>> from posterior_consensus.experts.competing_methods import normalized_cut
    >>> partitions = {"Ann": [0, 0, 0, 1, 1, 1], "Bo": [0, 0, 0, 1, 1, 2]}
    >>> normalized_cut(partitions, n_clusters=2, random_seed=1).values
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    checked = as_constraints(constraints)
    check_count("n_clusters", n_clusters)
    pairs, votes = checked.average_vote()
    linked, at = np.unique(pairs[votes > 0], return_inverse=True)
    if linked.size < n_clusters:
        raise ValueError(
            f"`n_clusters` must be at most the number of items that are linked, {linked.size}; got {n_clusters}."
        )
    weights = np.zeros((linked.size, linked.size))
    first, second = at.reshape(-1, 2).T
    weights[first, second] = weights[second, first] = votes[votes > 0]
    cut = _cut(weights, n_clusters, as_generator(random_seed))
    labels = np.full(checked.items.n_items, np.bincount(cut).argmax())
    labels[linked] = cut
    return checked.items.array(canonical_labels(labels), "labels")


def _cut(weights: Floats, number: int, rng: np.random.Generator) -> Labels:
    """Labels of a normalized cut of a graph with edge weights (n, n)."""
    np.fill_diagonal(weights, 1.0)
    source = PairSimilarity(Items(len(weights), "node", xr.Coordinates()), weights)
    with one_blas_thread():
        leading = random_walk_vectors(source, number, "association", 1.0)
    return k_means(leading.vectors[:, : max(leading.widths[number - 1], 1)], number, _N_STARTS, rng)
