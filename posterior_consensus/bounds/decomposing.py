"""Posteriors whose search under Binder's loss decomposes: scored pairs, and draws of many small clusters."""

from scipy.sparse.csgraph import connected_components

from posterior_consensus.bounds.binder import cost_step
from posterior_consensus.bounds.components import Decomposition, decomposed, decomposition
from posterior_consensus.ensemble.draws import PartitionDraws, hard_draws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.scored_pairs import Constraints, ScoredPairs
from posterior_consensus.ensemble.similarity import has_few_pairs, similarities_within_components
from posterior_consensus.losses.record import Loss, PartitionLoss

_DUST = 1e-14  # relative to a pair's costs: a smaller weight is rounding


def components_of(source: PairSource, loss: Loss) -> Decomposition | None:
    """Decompose the search for the partition of minimum expected Binder loss.

    None for other losses, and for posteriors that are searched as a whole: matrices, allocation probabilities, and
    draws with large clusters. A cluster of some optimum is within a connected component of the pairs whose similarity
    is above the loss's pair threshold.
    """
    record = loss.as_binder()
    if record is None:
        return None
    if isinstance(source, ScoredPairs):
        return decomposed(source, record)
    draws = hard_draws(source)
    return None if draws is None or not has_few_pairs(draws) else _of_draws(draws.without_zero_weights(), record)


def _of_draws(draws: PartitionDraws, loss: PartitionLoss) -> Decomposition | None:
    """Components of pairs that are co-clustered often enough; None if they take too much memory.

    Items that are together in all draws are together in some optimum, and thus in a group.
    """
    n, joining, separating = draws.n_items, loss.numerator["B"], loss.numerator["C"]
    costs = joining + separating
    similarities = similarities_within_components(draws, joining / costs)
    if similarities is None:
        return None
    groups = connected_components(similarities == 1.0, directed=False)[1]
    similarities.data *= costs  # weights less that of a pair that is never co-clustered
    step = cost_step(draws, loss) / draws.n_draws
    return decomposition(similarities, groups, -joining, Constraints(), loss.scale(n), step=step, dust=_DUST * costs)
