"""reweight(): weight draws of one posterior to represent another."""

from dataclasses import replace
from typing import Any

import numpy as np

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.importance import MOST_RARE, MOST_UNSEEN, MOST_UNSEEN_ALONE, Importance, importance
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results.display import apart_from
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import as_numbers, warn
from posterior_consensus.sources.conversion import as_draws


def reweight(draws: Any, log_ratio: Any, *, max_pareto_k: float | None = None) -> PartitionDraws:
    """Weight draws of one posterior to represent another posterior.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Draws of the first posterior.
    log_ratio : array_like of shape (n_draws,) or (n_chains, n), or DataArray with `chain` and `draw`
        Logarithm of the density of the other posterior divided by the density of this posterior, at each draw, up to a
        constant. If only the prior differs, it is the difference of two log priors, as
        :meth:`priors.PartitionPrior.log_prob` computes them. Minus infinity gives a weight of 0.
    max_pareto_k : float, optional
        Largest Pareto shape to accept; infinity accepts any. By default min(1 - 1 / log10(S), 0.7) for S draws with
        positive weight [1]_.

    Returns
    -------
    PartitionDraws
        Draws of labels with smoothed `weights`, which sum to 1. Every function takes them.

    Raises
    ------
    ValueError
        If the weights are unreliable, see Notes, and `max_pareto_k` is not infinity; if `log_ratio` has another shape,
        NaN or positive infinity, or there are no draws.

    See Also
    --------
    prior_sensitivity : The consensus partition under several other priors.

    Notes
    -----
    The weights are smoothed by Pareto-smoothed importance sampling [1]_. If the estimated shape, the k-hat, is too
    large, the draws represent the other posterior poorly, and standard errors understate the error. The rule is that of
    :func:`prior_sensitivity`.

    Many draws have equal ratios, often because they have equally many clusters. For the fit of the shape, ties are
    spread up to the neighbouring values; tied draws keep their own weights. Weights are unreliable in three cases:

    - There are fewer than four effective draws per chain: Kish's number times the share of draws that are independent,
      which is estimated from the number of clusters.
    - Draws with one cluster more than all draws, or one fewer, would have more than a third of the weight. Above 10%
      there is a warning, because errors of results leave them out. Their number continues those of the last two numbers
      of clusters geometrically, and is one to three effective draws. Their log ratio is extrapolated by a parabola of
      the number of clusters. If all draws have equally many clusters, it is taken to be theirs.
    - The k-hat is too large, or smoothing moves more than 5% of the weight; and more than 5% of the weight is at rare
      ratios. A fitted tail is not informative if the ratios take few values, or hardly vary. Ratios are nearly equal if
      their logarithms minus the parabola fall into one interval of width 0.1; consecutive draws in an interval are one
      visit. Ratios are rare if their interval has fewer than five visits and at most half of the draws. The share of
      the other posterior in intervals without draws is estimated by the share in intervals seen once [2]_.

    If the first posterior excludes partitions that the other allows, no draw shows them, and nothing here detects it.
    Weights of the draws are kept as factors. Allocation probabilities are dropped, because they depend on the prior of
    the draws.

    References
    ----------
    .. [1] Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25(72), 1-58.
       https://jmlr.org/papers/v25/19-556.html
    .. [2] Good (1953), Biometrika 40(3-4), 237-264. https://doi.org/10.1093/biomet/40.3-4.237

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[0, 0, 1], [0, 0, 0], [0, 1, 1], [0, 1, 2]] * 25)
    >>> ratio = pc.priors.crp(2.0).log_prob(draws) - pc.priors.crp(1.0).log_prob(draws)
    >>> other = pc.reweight(draws, ratio)
    >>> float(draws.samples.mean(draws.n_clusters)), round(float(other.samples.mean(other.n_clusters)), 1)
    (2.0, 2.3)
    """
    taken = as_draws(draws).labels_only()
    if max_pareto_k is not None and not (isinstance(max_pareto_k, (int, float, np.floating)) and max_pareto_k > 0):
        raise ValueError(f"`max_pareto_k` must be a positive number or None; got {max_pareto_k!r}.")
    weighted = importance(taken.samples, _ratios(log_ratio, taken.samples), taken.n_clusters, taken.n_items)
    problem = "" if max_pareto_k == np.inf else _problem(weighted, max_pareto_k)
    if problem:
        raise ValueError(
            f"`log_ratio` must leave weights that represent the other posterior; got {problem}. The draws hold too "
            "little of it: sample from it, or accept the weights by max_pareto_k=np.inf."
        )
    if max_pareto_k is None and weighted.unseen > MOST_UNSEEN_ALONE:
        unseen = _unseen(weighted, MOST_UNSEEN_ALONE)
        warn(f"The weights are rough: {unseen}. Standard errors of results from these draws leave this out.")
    return replace(taken, samples=weighted.samples)


def _problem(weighted: Importance, max_pareto_k: float | None) -> str:
    """The first rule that the weights break, in words; empty if none."""
    if not weighted.is_light(max_pareto_k):
        k, limit = weighted.pareto_k, weighted.largest_k if max_pareto_k is None else max_pareto_k
        tail = (
            "too few draws with positive weight for a k-hat"
            if k == np.inf
            else f"a Pareto k-hat of {apart_from(k, limit, '.2f')}"
        )
        problem = (
            f"{tail}, above {limit:.3g}" if k > limit else f"{weighted.moved:.0%} of the weight moved by smoothing"
        )
        rare = apart_from(weighted.rare, MOST_RARE, ".0%")
        return f"{problem}, and {rare} of the weight at rare ratios, above {MOST_RARE:.0%}"
    if weighted.unseen > MOST_UNSEEN:
        return f"{_unseen(weighted, MOST_UNSEEN)}, above {MOST_UNSEEN:.0%}"
    if weighted.effective_draws < weighted.fewest_draws:
        effective = apart_from(weighted.effective_draws, weighted.fewest_draws, ".3g")
        return f"{effective} effective draws, below {weighted.fewest_draws}, four per chain"
    return ""


def _unseen(weighted: Importance, limit: float) -> str:
    """Share of the weight beyond the range of the draws, which is above a limit, in words."""
    number = weighted.beyond.numbers[weighted.beyond.weights.argmax()]
    unseen = apart_from(weighted.unseen, limit, ".0%")
    return f"{unseen} of the weight to be expected at {number:.0f} clusters, which no draw has"


def _ratios(log_ratio: Any, samples: Samples) -> Floats:
    """Check log ratios of the draws."""
    values = as_numbers("log_ratio", samples.reordered(log_ratio, "`log_ratio`"))
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"`log_ratio` must be finite or minus infinity; got {values[row]} at chain {samples.chain[row]}, draw "
            f"{samples.draw[row]}. The prior of the draws must give each of them a positive probability."
        )
    if np.all((values == -np.inf) | (samples.weights == 0)):
        raise ValueError("`log_ratio` must not be minus infinity for all draws of positive weight: no draw is left.")
    return values
