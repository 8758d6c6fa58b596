"""Spectral aggregation: k-means on the leading eigenvectors of the similarity matrix, which is not formed."""

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
    D^(-1/2): the normalized cut of Shi and Malik (2000), https://doi.org/10.1109/34.868688, as scikit-learn's
    `SpectralClustering` computes it.

    Equal eigenvalues do not determine their eigenvectors. If the K-th vector is one of several with the same
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
    most = task.numbers(draws)[-1]
    if affinity is None:
        leading = leading_eigenvectors(draws, most)
    else:
        leading = random_walk_vectors(draws, most, affinity, gamma)
    return best_k_means(draws, loss, task, leading.coordinates, n_starts, title="Spectral aggregation")
