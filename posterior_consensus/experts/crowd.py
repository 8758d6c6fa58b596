"""SemiCrowd: k-means under a metric learnt from filtered constraints that are completed to a low-rank matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.experts.features import average_votes
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, as_numbers, check_above
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.search.k_means import k_means

_ROUNDS, _ENOUGH = 300, 1e-4  # of the completion: most rounds, and the relative residual at which it ends
_GROWTH = 1.1  # of the penalty in a round
_N_STARTS = 10  # of k-means


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
    >>> x = np.column_stack([np.repeat([0.0, 0.5, 1.0], 10), np.random.default_rng(1).normal(size=30)])
    >>> given = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 10)}, n_pairs=300, random_seed=1)
    >>> pc.experts.semi_crowd(given, x, n_clusters=3, random_seed=1).values[::5]
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


def complete_matrix(known: Floats, seen: npt.NDArray[np.bool_]) -> Floats:
    """Complete a symmetric low-rank matrix from some entries, of which a few may be wrong.

    Parameters
    ----------
    known : float array of shape (n, n)
        The matrix; entries that are not `seen` are ignored.
    seen : bool array of shape (n, n)
        Whether each entry is known.

    Returns
    -------
    float array of shape (n, n)
        The completed matrix.

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
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(known_entries - errors + multipliers / penalty)
        shrunk = np.sign(values) * np.maximum(np.abs(values) - 1 / penalty, 0.0)
        kept = shrunk != 0
        completed = (vectors[:, kept] * shrunk[kept]) @ vectors[:, kept].T
        rest = known_entries - completed + multipliers / penalty
        errors = np.where(seen, np.sign(rest) * np.maximum(np.abs(rest) - weight / penalty, 0.0), rest)
        left = known_entries - completed - errors
        multipliers = multipliers + penalty * left
        penalty *= _GROWTH
        if np.linalg.norm(left) < _ENOUGH * scale:
            break
    return completed
