"""Hierarchical clustering of the items by 1 - posterior similarity."""

from typing import Literal

from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import NumbersInfo
from posterior_consensus.search.trees import best_cut

LINKAGES = ("average", "complete")


def hierarchical(
    draws: PairSource, loss: Loss, task: Task, *, linkage: Literal["average", "complete"] = "average"
) -> Candidate:
    """Cut the tree of hierarchical clustering with distances 1 - PSM at the minimum expected loss.

    Parameters
    ----------
    linkage : {"average", "complete"}
        Linkage of the tree.

    Notes
    -----
    This is the approach of `minbinder` and `minVI` in the R packages mcclust and mcclust.ext: Fritsch and Ickstadt
    (2009), Bayesian Analysis 4(2), 367-391, https://doi.org/10.1214/09-BA414.
    """
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    numbers = task.numbers(draws)
    best, losses = best_cut(draws, loss, numbers, linkage)
    return Candidate(best, NumbersInfo(linkage=linkage, n_clusters_tried=list(numbers), expected_losses=losses))
