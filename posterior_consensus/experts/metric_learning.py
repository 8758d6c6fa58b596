"""ITML: k-means under a metric with small distances for must-links and large ones for cannot-links."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.experts.features import average_votes
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_above, check_count
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.search.k_means import k_means

_PAIRS_FOR_LIMITS = 20_000  # sampled for the quantiles of the distances
_QUANTILES = (5, 95)
_N_STARTS = 10  # of k-means
_TINY = 1e-10  # added to the diagonal, because rounding can make a learnt metric indefinite


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
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> pc.experts.itml_k_means(given, x, n_clusters=3, random_seed=1).values[::5]
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
    must: npt.NDArray[np.bool_],
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
