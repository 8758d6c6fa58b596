"""Classical clustering by similarities: trees of the items and their cuts, leading eigenvectors, k-means."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import least_loss
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, canonical_rows, smallest_dtype
from posterior_consensus.ensemble.similarity import similarity_operator
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

Affinity = Literal["association", "rbf"]

_APART = 1e-13  # relative difference of eigenvalues that rounding keeps and SAME does not see
_DIGITS = 10  # of a coordinate, so that rounding does not separate items in k-means
_SPARE = 8  # eigenvectors beyond those requested, to see where an eigenspace ends
_DENSE = 1000  # items up to which all eigenvectors take little


def cluster_range(draws: PairSource, n_clusters: int | None, max_clusters: int | None) -> range:
    """Numbers of clusters for a method to try: the requested one, or 1 to the largest allowed or in any draw.

    With a similarity matrix alone, the largest is the number of items.
    """
    if n_clusters is not None:
        return range(n_clusters, n_clusters + 1)
    return range(1, (max_clusters or draws.most_clusters) + 1)


def best_cut(
    source: PairSource, loss: Loss, numbers: Sequence[int], linkage: str
) -> tuple[npt.NDArray[Any], list[float]]:
    """Cut the tree of the items where the expected loss is least, and give the expected losses of all cuts."""
    if source.n_items == 1:
        return np.zeros(1, np.int32), []
    return least_loss(source, loss, [cut(tree(source.shared_similarity, linkage), numbers)])


def tree(similarity: npt.NDArray[np.float64], linkage: str) -> npt.NDArray[np.float64]:
    """Cluster the items by the distances 1 - similarity: the n - 1 merges, as SciPy has them."""
    from scipy.cluster import hierarchy  # with scipy.spatial, a tenth of the time in which a first answer comes
    from scipy.spatial.distance import squareform

    merges: npt.NDArray[np.float64] = hierarchy.linkage(squareform(1.0 - similarity, checks=False), linkage)
    return merges


def cut(merges: npt.NDArray[np.float64], numbers: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Cut a tree into these numbers of clusters: canonical labels (len(numbers), n).

    The clusters of a cut are intervals of the tree's leaves, and each merge takes away the border between two of them.
    """
    n_items = len(merges) + 1
    children = merges[:, :2].astype(np.int64).tolist()
    sizes = [1] * n_items + merges[:, 3].astype(np.int64).tolist()
    begins = [0] * (2 * n_items - 1)
    for node in range(2 * n_items - 2, n_items - 1, -1):
        left, right = children[node - n_items]
        begins[left], begins[right] = begins[node], begins[node] + sizes[left]
    borders = np.array([begins[right] for _, right in children])
    changes = np.zeros((len(numbers), n_items), np.int64)
    for row, number in enumerate(numbers):
        changes[row, borders[n_items - number :]] = 1
    cuts = changes.cumsum(axis=1)[:, begins[:n_items]]
    return canonical_rows(cuts.astype(smallest_dtype(n_items)), n_items)[0]


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


def k_means(
    points: npt.NDArray[np.float64],
    n_clusters: int,
    n_starts: int,
    rng: np.random.Generator,
    weights: npt.NDArray[np.float64] | None = None,
) -> Labels:
    """Cluster points (n, d) with these weights (n,) into at most `n_clusters` groups by k-means++."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(n_clusters, n_init=n_starts, random_state=int(rng.integers(2**31)))
    # With more threads its sums, and so its labels, would depend on their number.
    with one_blas_thread(), warnings.catch_warnings():
        # Fewer distinct points than clusters: the caller sees it from the labels.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return canonical_labels(model.fit_predict(points, sample_weight=weights))
