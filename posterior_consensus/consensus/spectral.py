"""Spectral aggregation: k-means on the leading eigenvectors of the similarity matrix, which is not formed."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from posterior_consensus.arguments import check_above, check_count
from posterior_consensus.consensus.basic import k_means
from posterior_consensus.consensus.selection import Candidate, best_number, cluster_range, effort
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.executor import thread_pools
from posterior_consensus.loss_record import Objective
from posterior_consensus.similarity import similarity_operator

Floats = npt.NDArray[np.float64]
Affinity = Literal["association", "rbf"]

AFFINITIES = ("association", "rbf")
_TINY = 1e-12
_SAME = 1e-9  # relative difference below which two eigenvalues are equal
_APART = 1e-13  # relative difference of eigenvalues that rounding keeps and _SAME does not see
_DIGITS = 10  # of a coordinate, so that k-means does not tell items apart by rounding
_SPARE = 8  # eigenvectors beyond those asked for, to see where an eigenspace ends
_DENSE = 1000  # items up to which all eigenvectors take little


def spectral(
    draws: PairSource,
    loss: Objective,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    affinity: Affinity | None = None,
    gamma: float = 1.0,
    n_starts: int = 10,
) -> Candidate:
    """Cluster the items by k-means in the space of the K leading eigenvectors of the posterior similarity matrix.

    Parameters
    ----------
    affinity : {None, "association", "rbf"}
        None for the similarity matrix itself. "association" takes it as the weights of a graph of the items, and
        "rbf" the weights exp(-gamma |PSM_i - PSM_j|^2) of its rows PSM_i; of either graph the eigenvectors are those
        of the random walk.
    gamma : float above 0
        For "rbf".
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    With None it is Algorithm 2 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus
    clustering"; "rbf" with gamma 1 gives what its tables report as spectral clustering. With W the weights without
    their diagonal and D their row sums, the vectors are D^(-1/2) u for the leading eigenvectors u of D^(-1/2) W
    D^(-1/2): the normalised cut of Shi and Malik (2000), https://doi.org/10.1109/34.868688, as scikit-learn's
    `SpectralClustering` computes it.

    Equal eigenvalues do not determine their eigenvectors. Where the K-th vector is one of several with the same
    eigenvalue, k-means takes all of them if that eigenvalue is positive and none if not, so that the distances between
    items are those of the draws and not of rounding. (Beyond 1,000 items it takes at most eight more vectors than the
    largest K.)

    But for "rbf", which forms an n x n matrix, the eigenvectors come from products with the draws' one-hot matrix, in
    memory proportional to n_items x n_draws, if there are more than 1,000 items and at least twice as many as vectors.
    """
    if affinity not in (None, *AFFINITIES):
        raise ValueError(f"`affinity` must be None or one of {', '.join(map(repr, AFFINITIES))}; got {affinity!r}.")
    check_above("gamma", gamma, 0)
    check_count("n_starts", n_starts)
    numbers = cluster_range(draws, n_clusters, max_clusters)
    with thread_pools().limit(limits=1):  # the sums must not depend on the number of threads
        if affinity is None:
            leading = leading_eigenvectors(draws, numbers[-1])
        else:
            leading = random_walk_vectors(draws, numbers[-1], affinity, gamma)

    def fit(k: int) -> Candidate:
        points = leading.vectors[:, : leading.widths[k - 1]]
        return Candidate(k_means(points, k, n_starts if n_clusters else effort(n_starts, k), rng))

    return best_number(draws, loss, numbers, fit, title="Spectral aggregation", progressbar=progressbar)


class Leading(NamedTuple):
    """Leading eigenvectors, largest eigenvalue first, in whole eigenspaces."""

    vectors: Floats  # (n, columns)
    widths: npt.NDArray[np.intp]  # (number,), the columns that are the items' coordinates for 1, 2, ... clusters


def leading_eigenvectors(draws: PairSource, number: int) -> Leading:
    """Return the leading eigenvectors of the posterior similarity matrix for up to `number` clusters."""
    return leading_of(similarity_operator(draws), number)


def random_walk_vectors(draws: PairSource, number: int, affinity: Affinity, gamma: float) -> Leading:
    """Return the leading eigenvectors of the random walk on the graph of the items for up to `number` clusters."""
    n = draws.n_items
    if affinity == "rbf":
        weights = aslinearoperator(_gaussian(draws.shared_similarity, gamma))
    else:
        similarity = similarity_operator(draws)
        weights = LinearOperator(
            (n, n), dtype=np.float64, matvec=lambda v: similarity @ v - v, matmat=lambda v: similarity @ v - v
        )
    degrees = np.maximum(weights @ np.ones(n), 0.0)
    alone = degrees < _TINY  # an item that no other is ever with, a walk of its own
    roots = np.sqrt(np.where(alone, 1.0, degrees))

    def product(vectors: Floats) -> Floats:
        columns = vectors.reshape(n, -1)
        walked = (weights @ (columns / roots[:, np.newaxis])) / roots[:, np.newaxis]
        return np.where(alone[:, np.newaxis], columns, walked).reshape(vectors.shape)

    walk = LinearOperator((n, n), dtype=np.float64, matvec=product, matmat=product)
    leading = leading_of(walk, number)
    return leading._replace(vectors=leading.vectors / roots[:, np.newaxis])


def _gaussian(rows: Floats, gamma: float) -> Floats:
    """exp(-gamma |x_i - x_j|^2) for the rows x_i of a matrix, with a diagonal of zeros."""
    squares = np.einsum("ij,ij->i", rows, rows)
    weights = rows @ rows.T
    weights *= 2.0
    weights -= squares
    weights -= squares[:, np.newaxis]
    np.minimum(weights, 0.0, out=weights)
    weights *= gamma
    np.exp(weights, out=weights)
    np.fill_diagonal(weights, 0.0)
    return weights


def leading_of(operator: LinearOperator, number: int) -> Leading:
    """Return the leading eigenvectors of a symmetric operator for up to `number` clusters, in a basis of its own."""
    n = operator.shape[0]
    asked = number + _SPARE
    if n <= max(_DENSE, 2 * asked):
        values, vectors = np.linalg.eigh(operator @ np.eye(n))
    else:
        # Where eigenvalues are equal, Lanczos meets invariant subspaces and goes on from random vectors, which only
        # new versions of SciPy let us seed. Eigenvalues a little apart keep it from that. Lifted above 0, they are
        # found to a relative tolerance.
        rng = np.random.default_rng(0)
        start = rng.standard_normal(n)
        norm = (operator @ np.ones(n)).max()  # no eigenvalue is larger, as no entry is negative
        lift = norm * (1.0 + _APART * rng.random(n))
        lifted = LinearOperator((n, n), dtype=np.float64, matvec=lambda v: operator @ v + lift * v)
        values, vectors = eigsh(lifted, k=asked, which="LA", v0=start, ncv=2 * asked + 1, tol=10 * _APART)
        values -= norm
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    tolerance = _SAME * np.abs(values).max()
    borders = np.flatnonzero(-np.diff(values) > tolerance) + 1
    begins, ends = np.concatenate([[0], borders]), np.concatenate([borders, [values.size]])
    space = np.searchsorted(ends, np.arange(number), side="right")  # of the K-th vector
    whole = (values[:number] > tolerance) | (np.arange(1, number + 1) == ends[space])
    widths = np.where(whole, ends[space], begins[space])
    parts = [_basis(vectors[:, begin:end]) for begin, end in zip(begins, ends, strict=True) if begin < widths.max()]
    return Leading(np.hstack([np.empty((n, 0)), *parts]), widths)


def _basis(space: Floats) -> Floats:
    """The same space (n, d) in a basis that does not depend on the one given.

    The first vector is the projection of a unit vector: that of the first of the items that lie best in the space. The
    next is the same for what is left of the space, and so on.
    """
    left = np.einsum("ij,ij->i", space, space)
    turn = np.zeros((space.shape[1], space.shape[1]))
    for column in range(space.shape[1]):
        item = np.argmax(left > (1 - _SAME) * left.max())
        row = space[item] - turn @ (space[item] @ turn)
        turn[:, column] = row / np.linalg.norm(row)
        left -= (space @ turn[:, column]) ** 2
    return np.round(space @ turn, _DIGITS)
