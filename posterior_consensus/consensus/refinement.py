"""Local refinement: every item joins the cluster with the largest mean similarity."""

from functools import partial
from typing import Any, Literal

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_source, partition_of

Order = Literal["jacobi", "gauss-seidel"]

ORDERS = ("jacobi", "gauss-seidel")
_MOST_PASSES = 50  # without a requested number of passes


def refine_partition(
    draws: Any, partition: Any = None, *, order: Order = "jacobi", passes: int | None = 1
) -> xr.DataArray:
    """Move every item to the cluster with the largest mean similarity, and return the refined labels.

    No loss is minimized. Under VI, for example, a refined partition often has a larger expected loss.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        The partition to refine. By default the consensus of `draws` if these are a summary.
    order : {"jacobi", "gauss-seidel"}
        Whether all items move at once, by the old labels, or one after the other in the order of the data.
    passes : int or None
        Number of passes. None continues until nothing changes or a partition recurs, at most 50 times.

    Returns
    -------
    xarray.DataArray of shape (n_items,), dtype int32
        Canonical labels, without empty clusters.

    Raises
    ------
    ValueError
        If `order` or `passes` is invalid, or draws or partition are invalid.

    See Also
    --------
    consensus_partition : ``refine=`` applies it to the result of a method.
    item_uncertainty : The mean similarities.

    Notes
    -----
    Let b_k be the sum of PSM_ij over the members j != i of cluster k, and n_k their number. Item i moves to the cluster
    argmax_k b_k / n_k. The ratio is minus infinity if n_k is 0, so an item on its own joins another cluster. In a tie
    the item stays. This is Algorithm 3 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus
    clustering", whose tables use one Jacobi pass. A pass over draws costs n_items x n_draws x clusters, without an
    n x n matrix; a Gauss-Seidel pass over allocation probabilities forms it.

    Examples
    --------
    >>> from posterior_consensus.consensus.refinement import refine_partition
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]
    >>> refine_partition(draws, [0, 0, 1, 1, 1]).values
    array([0, 0, 0, 1, 1], dtype=int32)
    """
    source, partition = as_source(draws).in_fixed_order(), partition_of(draws, partition)
    source.check_unconstrained("Refinement", "consensus_partition keeps them.")
    check_refinement(order, passes, "order")
    return source.items.array(refined_labels(source, source.as_labels(partition), order, passes), "labels")


def check_refinement(order: Any, passes: Any, name: str) -> None:
    """Raise ValueError for an unknown order, given as the argument `name`, or an invalid number of passes."""
    if order not in ORDERS:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, ORDERS))}; got {order!r}.")
    if passes is not None:
        check_count("passes", passes)


def refined_labels(source: PairSource, labels: Labels, order: Order, passes: int | None) -> Labels:
    """Refine canonical labels (n,)."""
    if order == "jacobi":
        one_pass = partial(_jacobi_pass, source)
    elif (draws := source.counted_draws) is not None:
        one_pass = partial(_gauss_seidel_pass_over_draws, draws)
    else:
        one_pass = partial(_gauss_seidel_pass, source.shared_similarity)
    seen = {labels.tobytes()}
    for _ in range(_MOST_PASSES if passes is None else passes):
        labels = canonical_labels(one_pass(labels))
        if labels.tobytes() in seen and passes is None:  # a fixed point, or Jacobi's cycle of two
            break
        seen.add(labels.tobytes())
    return labels


def _jacobi_pass(source: PairSource, labels: Labels) -> Labels:
    own, nearest, other = source.own_and_nearest(labels)
    leaves = (nearest >= 0) & ~(own >= other - ROUNDING)  # also True for an item on its own, whose `own` is NaN
    return np.where(leaves, nearest, labels).astype(np.int32)


def _gauss_seidel_pass_over_draws(draws: PartitionDraws, labels: Labels) -> Labels:
    refined = labels.copy()
    sizes = np.bincount(refined)
    counts = ensemble.joint_counts(draws.labels, draws.starts, refined, sizes.size)
    ensemble.refine_in_place(draws.labels, draws.starts, draws.weights, refined, counts, sizes)
    return refined


def _gauss_seidel_pass(similarity: Floats, labels: Labels) -> Labels:
    refined = labels.copy()
    sizes = np.bincount(refined)
    links = np.stack([similarity[labels == k].sum(axis=0) for k in range(sizes.size)])
    for item, old in enumerate(labels):
        row = similarity[item]
        links[old] -= row
        sizes[old] -= 1
        means = np.divide(links[:, item], sizes, out=np.full(sizes.size, -np.inf), where=sizes > 0)
        best = means >= means.max() - ROUNDING
        new = old if best[old] else int(best.argmax())
        sizes[new] += 1
        links[new] += row
        refined[item] = new
    return refined
