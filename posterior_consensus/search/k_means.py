"""k-means, with labels that do not depend on the number of threads."""

import warnings

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.runtime.executor import one_blas_thread


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
