"""Hierarchical clustering of the items by how rarely they are together."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from posterior_consensus.consensus.selection import Candidate, cluster_range, least_loss
from posterior_consensus.draws import PartitionDraws
from posterior_consensus.losses import PartitionLoss
from posterior_consensus.partitions import canonical_labels
from posterior_consensus.similarity import similarity_values

LINKAGES = ("average", "complete")


def hierarchical(
    draws: PartitionDraws,
    loss: PartitionLoss,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    linkage: Literal["average", "complete"] = "average",
) -> Candidate:
    """Cut the tree of the distances 1 - PSM where the expected loss is least.

    Parameters
    ----------
    linkage : {"average", "complete"}

    Notes
    -----
    As `minbinder` and `minVI` of the R packages mcclust and mcclust.ext do: Fritsch and Ickstadt (2009), Bayesian
    Analysis 4(2), 367-391, https://doi.org/10.1214/09-BA414.
    """
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    numbers = cluster_range(draws, n_clusters, max_clusters)
    if draws.n_items == 1:
        return Candidate(np.zeros(1, np.int32))
    distances = squareform(1.0 - similarity_values(draws), checks=False)
    tree = hierarchy.linkage(distances, linkage)
    cuts = hierarchy.cut_tree(tree, n_clusters=numbers[::-1])[:, ::-1]  # n clusters only work first
    best, losses = least_loss(draws, loss, [np.stack([canonical_labels(cut) for cut in cuts.T])])
    return Candidate(best, {"linkage": linkage, "n_clusters_tried": list(numbers), "expected_losses": losses})
