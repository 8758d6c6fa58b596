"""Spectral aggregation: k-means on the leading eigenvectors of the similarity matrix, without forming it."""

from posterior_consensus.consensus.selection import Candidate, Task, best_k_means
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_above, check_count
from posterior_consensus.search.eigenvectors import Affinity, leading_eigenvectors, random_walk_vectors

AFFINITIES = ("association", "rbf")


def spectral(
    draws: PairSource,
    loss: Loss,
    task: Task,
    *,
    affinity: Affinity | None = None,
    gamma: float = 1.0,
    n_starts: int = 10,
) -> Candidate:
    """Cluster the items by k-means in the space of the K leading eigenvectors of the posterior similarity matrix.

    Parameters
    ----------
    affinity : {None, "association", "rbf"}
        None uses the similarity matrix. The others use the random walk on a graph of the items. Its edge weights are
        the similarities ("association"), or exp(-gamma |PSM_i - PSM_j|^2) with the rows PSM_i of the matrix ("rbf").
    gamma : float above 0
        Scale of "rbf".
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    None is Algorithm 2 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering"; its
    tables use "rbf" with gamma 1. Let W be the weights without diagonal, and D their row sums. The vectors are
    D^(-1/2) u for the leading eigenvectors u of D^(-1/2) W D^(-1/2). This is the normalized cut of Shi and Malik
    (2000), https://doi.org/10.1109/34.868688, as in scikit-learn's `SpectralClustering`.

    Equal eigenvalues do not determine their eigenvectors. If the K-th eigenvalue is multiple, k-means uses all of its
    vectors if it is positive, and otherwise none. Distances between items then do not depend on rounding. (Beyond 1,000
    items it uses at most eight more vectors than the largest K.)

    "rbf" forms an n x n matrix. Otherwise, beyond 1,000 items and for at most n / 2 vectors, the eigenvectors come from
    products with the one-hot matrix of the draws. The memory is proportional to n_items x n_draws.
    """
    if affinity not in (None, *AFFINITIES):
        raise ValueError(f"`affinity` must be None or one of {', '.join(map(repr, AFFINITIES))}; got {affinity!r}.")
    check_above("gamma", gamma, 0)
    check_count("n_starts", n_starts)
    most = task.numbers(draws)[-1]
    if affinity is None:
        leading = leading_eigenvectors(draws, most)
    else:
        leading = random_walk_vectors(draws, most, affinity, gamma)
    return best_k_means(draws, loss, task, leading.coordinates, n_starts, title="Spectral aggregation")
