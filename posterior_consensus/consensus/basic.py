"""Basic aggregation: k-means on the rows of the similarity matrix."""

from posterior_consensus.consensus.selection import Candidate, Task, best_k_means
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_count


def basic(draws: PairSource, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Cluster the rows of the posterior similarity matrix, unit diagonal included, by k-means.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Algorithm 1 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering". It tends to
    split large clusters if sizes are unequal; Jacobi refinement corrects this.
    """
    check_count("n_starts", n_starts)
    rows = draws.shared_similarity
    return best_k_means(draws, loss, task, lambda k: rows, n_starts, title="Basic aggregation")
