"""Ten clusterings of a table by scikit-learn's methods, one of each: an ensemble as analysts make it."""

import warnings

import numpy as np
from sklearn import cluster, datasets, mixture
from sklearn.preprocessing import StandardScaler


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, of wine standardised, and the truth."""
    data = getattr(datasets, f"load_{name}")()
    return (StandardScaler().fit_transform(data.data) if name == "wine" else data.data), data.target


def ten_schemes(features: np.ndarray, k: int) -> dict[str, np.ndarray]:
    """Labels by the name of their scheme."""
    schemes = {
        "k-means": cluster.KMeans(k, n_init=10, random_state=1),
        "Ward": cluster.AgglomerativeClustering(k, linkage="ward"),
        "average linkage": cluster.AgglomerativeClustering(k, linkage="average"),
        "normal mixture, diagonal": mixture.GaussianMixture(k, covariance_type="diag", n_init=5, random_state=1),
        "spectral, neighbours": cluster.SpectralClustering(k, affinity="nearest_neighbors", random_state=1),
        "complete linkage": cluster.AgglomerativeClustering(k, linkage="complete"),
        "Birch": cluster.Birch(n_clusters=k),
        "spectral, Gaussian": cluster.SpectralClustering(k, gamma=0.1, random_state=1),
        "normal mixture": mixture.GaussianMixture(k, n_init=5, random_state=1),
        "bisecting k-means": cluster.BisectingKMeans(k, random_state=1),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a graph that is not connected
        return {name: scheme.fit_predict(features) for name, scheme in schemes.items()}
