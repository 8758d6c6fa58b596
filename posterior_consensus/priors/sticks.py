"""Truncated stick breaking: a prior on labels as sampled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from posterior_consensus.kernels import occupancy
from posterior_consensus.priors.concentrations import Concentration, Floats, Nodes, as_concentration, nodes
from posterior_consensus.priors.record import PartitionPrior, Sizes
from posterior_consensus.runtime.arguments import check_count


@dataclass(frozen=True, eq=False, repr=False)
class StickBreaking(PartitionPrior):
    """Prior on labels, with weights of components from truncated stick breaking."""

    concentration: Concentration
    n_components: int
    first_label: int | None = None
    family: str = "stick_breaking"

    @property
    def n_labels(self) -> int:  # type: ignore[override]
        """Number of components."""
        return self.n_components

    @property
    def about_components(self) -> str:
        """Under truncated stick breaking, clusters are the components that have items."""
        return f"of the {self.n_components} components, it counts those that have items"

    @property
    def _parameters(self) -> dict[str, Any]:
        return {"concentration": self.concentration, "n_components": self.n_components}

    def _nodes(self, n_items: int) -> Nodes:
        return nodes(self.concentration, n_items, lambda a: self.n_components)

    def of_sizes(self, sizes: Sizes) -> Floats:
        """Compute the log prior of draws from their component sizes.

        Parameters
        ----------
        sizes : Sizes
            Component sizes of all draws.

        Returns
        -------
        ndarray of shape (n_draws,), dtype float64
            Log prior in nats.
        """
        counts = sizes.values.reshape(-1, self.n_components)
        later = sizes.n_items - np.cumsum(counts, axis=1)[:, :-1]  # items in later components, for all but the last
        fixed = gammaln(counts[:, :-1] + 1.0).sum(axis=1)
        total = np.full(len(counts), -np.inf)
        for a, log_weight in zip(*self._nodes(sizes.n_items), strict=True):
            log_prior = (self.n_components - 1) * np.log(a) + gammaln(a + later[:, -1]) - gammaln(a + 1 + sizes.n_items)
            np.logaddexp(total, log_prior + log_weight - np.log(a + later[:, :-1]).sum(axis=1), out=total)
        return total + fixed

    def _n_clusters(self, n_items: int) -> Floats:
        each = zip(*self._nodes(n_items), strict=True)
        kept = [(a, np.exp(log_weight)) for a, log_weight in each if np.exp(log_weight) > 1e-17]
        return sum(weight * occupancy.occupied_sticks(n_items, self.n_components, a) for a, weight in kept)


def stick_breaking(concentration: Any, n_components: int, *, first_label: int | None = None) -> PartitionPrior:
    """Make the truncated stick-breaking prior on labels, as PyMC's StickBreakingWeights defines it.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        A positive number, or its prior: a distribution of positive numbers, or the shape and rate of a Gamma prior.
    n_components : int
        Number of components, at least 2; it is PyMC's ``K`` plus 1. The last component has the remaining weight.
    first_label : {0, 1}, optional
        Label of the first component. By default 0 if any label is 0, and 1 if any is `n_components`; required if
        neither occurs.

    Returns
    -------
    PartitionPrior
        A prior on labels, in the order of the sticks. Its methods need labels as sampled: the posterior itself, or
        allocation probabilities, from which labels are sampled.

    Raises
    ------
    ValueError
        If an argument is out of range.
    TypeError
        If `n_components` is not an integer, or `concentration` has another type.

    See Also
    --------
    crp : The prior on partitions without truncation.

    Notes
    -----
    Component k of K has the weight v_k (1 - v_1) ... (1 - v_{k-1}), with v_k ~ Beta(1, a) for k < K and v_K = 1 [1]_.
    With n_k items in component k and m_k items in later components, the labels z have the probability

        P(z) = prod_{k < K} B(1 + n_k, a + m_k) / B(1, a).

    It depends on the order of the components. With so many components that the last ones stay empty, the prior on
    partitions is nearly :func:`crp`. The latter does not need labels as sampled, and its importance weights vary less.

    References
    ----------
    .. [1] Ishwaran and James (2001), Journal of the American Statistical Association 96(453), 161-173.
       https://doi.org/10.1198/016214501750332758

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> prior = pc.priors.stick_breaking(1.0, n_components=2)
    >>> np.exp(prior.log_prob([[0, 0], [0, 1], [1, 0], [1, 1]])).values.round(4)
    array([0.3333, 0.1667, 0.1667, 0.3333])
    >>> prior.n_clusters(2).values.round(4)
    array([0.6667, 0.3333])
    """
    if check_count("n_components", n_components) < 2:
        raise ValueError(f"`n_components` must be at least 2; got {n_components}.")
    return StickBreaking(as_concentration(concentration), int(n_components), first_label)
