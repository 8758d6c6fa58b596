"""How programs of record linkage make clusters of scored pairs, and how partitions compare with the truth.

Pairs are arrays `left`, `right` (positions of records) and `probability`, with a row for each scored pair; other pairs
have the probability 0. Each method returns labels (n_records,).
"""

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components as components_of

__all__ = ["average_linkage", "best_links", "connected_components", "one_to_one_links", "precision_recall"]


def connected_components(n_records, left, right, probability, threshold=0.5):
    """Join all pairs at the threshold or above: splink's cluster_pairwise_predictions_at_threshold."""
    near = probability >= threshold
    return _components(n_records, left[near], right[near])


def best_links(n_records, left, right, probability, threshold=0.5):
    """Join each record with its most probable partner, if the probability reaches the threshold."""
    near = np.flatnonzero(probability >= threshold)
    order = near[np.argsort(-probability[near], kind="stable")]
    ends = np.stack([left[order], right[order]], axis=1)
    _, first = np.unique(ends, return_index=True)  # of each record, where it comes first
    own = np.unique(first // 2)
    return _components(n_records, *ends[own].T)


def one_to_one_links(data_set, left, right, probability, threshold=0.5):
    """Join clusters in the order of their best links, if they have no data set in common.

    For distinct probabilities, this is splink's cluster_using_single_best_links with all data sets free of duplicates.
    """
    clusters = [[record] for record in range(len(data_set))]
    for at in np.argsort(-probability, kind="stable")[: np.sum(probability >= threshold)]:
        one, other = clusters[left[at]], clusters[right[at]]
        if one is not other and not {data_set[k] for k in one} & {data_set[k] for k in other}:
            one += other
            for record in other:
                clusters[record] = one
    return np.array([min(cluster) for cluster in clusters])


def average_linkage(n_records, left, right, probability, threshold=0.5):
    """Join clusters whose mean probability reaches the threshold, the highest first, within connected components.

    dedupe's cluster does this with the distance of centroids instead of the mean.
    """
    labels = connected_components(n_records, left, right, probability, threshold)
    within = labels[left] == labels[right]
    left, right, probability = left[within], right[within], probability[within]
    order = np.argsort(labels[left], kind="stable")
    bounds = np.searchsorted(labels[left[order]], np.arange(labels.max() + 2))
    place, found = np.zeros(n_records, np.int64), labels.copy()
    records, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    n_clusters, ends = labels.max() + 1, np.cumsum(sizes)
    for component in np.flatnonzero(sizes > 2):
        own = records[ends[component] - sizes[component] : ends[component]]
        place[own] = np.arange(own.size)
        pairs = order[bounds[component] : bounds[component + 1]]
        low, high = np.sort([place[left[pairs]], place[right[pairs]]], axis=0)
        distances = np.ones(own.size * (own.size - 1) // 2)
        distances[low * own.size - low * (low + 1) // 2 + high - low - 1] = 1 - probability[pairs]
        parts = fcluster(linkage(distances, "average"), 1 - threshold, "distance")
        found[own] = np.where(parts == 1, component, n_clusters + parts - 2)
        n_clusters += parts.max() - 1
    return found


def precision_recall(labels, truth):
    """Precision, recall and F1 of the pairs that a partition joins."""
    both = np.unique(labels, return_inverse=True)[1] * (int(np.max(truth)) + 1) + truth
    right, joined, true = (_n_pairs(groups) for groups in (both, labels, truth))
    precision, recall = right / joined, right / true
    return precision, recall, 2 * precision * recall / (precision + recall)


def _components(n_records, left, right):
    links = sparse.coo_array((np.ones(left.size, np.bool_), (left, right)), (n_records, n_records))
    return components_of(links, directed=False)[1]


def _n_pairs(groups):
    sizes = np.unique(groups, return_counts=True)[1]
    return int((sizes * (sizes - 1)).sum()) // 2
