"""Leading eigenvectors of similarities and of random walks, which are not formed."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.similarity import similarity_operator
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

Floats = npt.NDArray[np.float64]
Affinity = Literal["association", "rbf"]

_APART = 1e-13  # relative difference of eigenvalues that rounding keeps and SAME does not see
_DIGITS = 10  # of a coordinate, so that rounding does not separate items in k-means
_SPARE = 8  # eigenvectors beyond those requested, to see where an eigenspace ends
_DENSE = 1000  # items up to which all eigenvectors take little


class Leading(NamedTuple):
    """Leading eigenvectors, largest eigenvalue first, in whole eigenspaces."""

    vectors: Floats  # (n, columns)
    widths: npt.NDArray[np.intp]  # (number,), the columns that are the items' coordinates for 1, 2, ... clusters

    def coordinates(self, n_clusters: int) -> Floats:
        """Coordinates (n, d) of the items for a number of clusters."""
        return self.vectors[:, : self.widths[n_clusters - 1]]


@one_blas_thread()  # the sums must not depend on the number of threads
def leading_eigenvectors(draws: PairSource, number: int) -> Leading:
    """Return the leading eigenvectors of the posterior similarity matrix for up to `number` clusters."""
    return leading_of(similarity_operator(draws), number)


@one_blas_thread()
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
    alone = degrees < ROUNDING  # an item that no other is ever with, a walk of its own
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


@one_blas_thread()
def leading_of(operator: LinearOperator, number: int) -> Leading:
    """Return the leading eigenvectors of a symmetric operator for up to `number` clusters, in a basis of its own."""
    n = operator.shape[0]
    asked = number + _SPARE
    if n <= max(_DENSE, 2 * asked):
        values, vectors = np.linalg.eigh(operator @ np.eye(n))
    else:
        # If eigenvalues are equal, Lanczos meets invariant subspaces and continues from random vectors, which only
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
    tolerance = SAME * np.abs(values).max()
    borders = np.flatnonzero(-np.diff(values) > tolerance) + 1
    begins, ends = np.concatenate([[0], borders]), np.concatenate([borders, [values.size]])
    space = np.searchsorted(ends, np.arange(number), side="right")  # of the K-th vector
    whole = (values[:number] > tolerance) | (np.arange(1, number + 1) == ends[space])
    widths = np.where(whole, ends[space], begins[space])
    parts = [_basis(vectors[:, begin:end]) for begin, end in zip(begins, ends, strict=True) if begin < widths.max()]
    return Leading(np.hstack([np.empty((n, 0)), *parts]), widths)


def _basis(space: Floats) -> Floats:
    """Return the same space (n, d) in a basis that does not depend on the basis passed.

    The first vector is the projection of a unit vector: that of the first of the items that lie best in the space. The
    next is the same for what is left of the space, and so on.
    """
    left = np.einsum("ij,ij->i", space, space)
    turn = np.zeros((space.shape[1], space.shape[1]))
    for column in range(space.shape[1]):
        item = np.argmax(left > (1 - SAME) * left.max())
        row = space[item] - turn @ (space[item] @ turn)
        turn[:, column] = row / np.linalg.norm(row)
        left -= (space @ turn[:, column]) ** 2
    return np.round(space @ turn, _DIGITS)
