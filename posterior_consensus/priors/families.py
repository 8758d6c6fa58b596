"""Priors that depend on the cluster sizes only, of the two-parameter family, and truncated stick breaking on labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln, logsumexp

from posterior_consensus.ensemble.labels import slices
from posterior_consensus.kernels import occupancy
from posterior_consensus.priors.record import (
    Concentration,
    Nodes,
    PartitionPrior,
    Sizes,
    as_concentration,
    log_rising,
    nodes,
    parameter_in_words,
)
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import check_count, check_number

_MOST_COMPONENTS = 10**6
_CELLS = 2**22  # of a table of nodes by numbers of clusters
_LOG_NEGLIGIBLE = np.log(1e-17)  # weight of a node in a distribution
_LEAST_CHANCE = 1e-25  # smallest relevant probability of a number of clusters


class _Members(NamedTuple):
    """Members of the two-parameter family that share a discount, and the logarithms of their weights.

    Members with a negative discount -g have `components` components and the concentration g times that number.
    """

    discount: float
    concentrations: Floats
    components: Floats | None
    log_weights: Floats

    def log_v(self, n_items: int, numbers: npt.NDArray[Any]) -> Floats:
        """Logarithm (Q, K) of the factor V(k) of the prior that depends on the number k of clusters."""
        k, theta = numbers.astype(np.float64), self.concentrations[:, np.newaxis]
        total = log_rising(theta + 1.0, n_items - 1)
        if self.components is not None:
            m = self.components[:, np.newaxis]
            opened = (k - 1) * np.log(-self.discount) + log_rising(np.maximum(m - k, 0) + 1.0, k - 1)
            return np.where(k <= m, opened - total, -np.inf)
        if self.discount == 0.0:
            return (k - 1) * np.log(theta) - total
        return (k - 1) * np.log(self.discount) + log_rising(theta / self.discount + 1.0, k - 1) - total

    def log_sum(self, n_items: int, numbers: npt.NDArray[Any]) -> Floats:
        """Logarithm (K,) of the weighted sum of :meth:`log_v` over the nodes."""
        parts = slices(self.log_weights.size, max(1, _CELLS // numbers.size))
        tables = (self.take(part).log_v(n_items, numbers) + self.log_weights[part, np.newaxis] for part in parts)
        return np.logaddexp.reduce([logsumexp(table, axis=0) for table in tables])

    def take(self, part: slice) -> _Members:
        """Select nodes."""
        components = None if self.components is None else self.components[part]
        return _Members(self.discount, self.concentrations[part], components, self.log_weights[part])


@dataclass(frozen=True, eq=False, repr=False)
class ExchangeablePrior(PartitionPrior):
    """A prior of the two-parameter family, or a mixture over its concentration or its number of components."""

    family: str
    concentration: Concentration
    discount: float = 0.0
    n_components: Any = None

    @property
    def about_components(self) -> str:
        """Whether the number of clusters estimates a number of components under this prior, in words [1]_, [2]_.

        References
        ----------
        .. [1] Miller and Harrison (2014), Journal of Machine Learning Research 15, 3333-3370.
           https://jmlr.org/papers/v15/miller14a.html
        .. [2] Miller and Harrison (2018), Journal of the American Statistical Association 113(521), 340-356.
           https://doi.org/10.1080/01621459.2016.1255636
        """
        if self.family == "dirichlet_multinomial":
            return f"of the {self.n_components} components, it counts those that have items"
        if self.n_components is not None:
            return "it counts the components that have items; the number of components has a posterior of its own"
        if not isinstance(self.concentration, float):
            return super().about_components
        process = "Dirichlet process" if self.family == "crp" else "Pitman-Yor process"
        return f"under a {process} mixture with fixed parameters, it is inconsistent for a number of components"

    @property
    def _parameters(self) -> tuple[Any, ...]:
        if self.n_components is not None:
            return self.concentration, self.n_components
        return (self.concentration, *([self.discount] if self.family == "pitman_yor" else []))

    def _groups(self, n_items: int, most: float) -> Iterator[_Members]:
        quadrature = nodes(self.concentration, n_items, partial(self._information, n_items=n_items, most=most))
        if self.n_components is None:
            yield _Members(self.discount, quadrature.values, None, quadrature.log_weights)
            return
        numbers, log_chances = _numbers_of_components(self.n_components)
        for g, log_weight in zip(*quadrature, strict=True):
            yield _Members(-float(g), g * numbers, numbers, log_weight + log_chances)

    def of_sizes(self, sizes: Sizes) -> Floats:
        """Compute the log prior of draws from their cluster sizes.

        Parameters
        ----------
        sizes : Sizes
            Cluster sizes of all draws.

        Returns
        -------
        ndarray of shape (n_draws,), dtype float64
            Log prior in nats.
        """
        clusters = np.diff(sizes.starts)
        numbers, number = np.unique(clusters, return_inverse=True)
        distinct, size = np.unique(sizes.values, return_inverse=True)
        total = np.full(clusters.size, -np.inf)
        for group in self._groups(sizes.n_items, float(numbers.max())):
            each = log_rising(1.0 - group.discount, distinct - 1)
            products = np.add.reduceat(each[size], sizes.starts[:-1])
            np.logaddexp(total, products + group.log_sum(sizes.n_items, numbers)[number], out=total)
        return total

    def _n_clusters(self, n_items: int) -> Floats:
        chances = np.zeros(n_items)
        most = n_items if self.n_components is None else _numbers_of_components(self.n_components)[0][-1]
        for group in self._groups(n_items, min(n_items, most)):
            _add_chances(group, n_items, chances)
        return chances

    def _cluster_sizes(self, n_items: int) -> Floats:
        sizes, log_total = np.arange(1, n_items + 1), np.full(n_items, -np.inf)
        log_choices = -np.log1p(n_items) - betaln(n_items - sizes + 1.0, sizes + 1.0)
        for group in self._groups(n_items, float(n_items)):
            own = log_choices + log_rising(1.0 - group.discount, sizes - 1)
            kept = np.flatnonzero(group.log_weights > _LOG_NEGLIGIBLE)
            for part in (kept[rows] for rows in slices(kept.size, max(1, _CELLS // n_items))):
                theta = group.concentrations[part, np.newaxis]
                others = _log_rising_from_0(theta + group.discount, n_items - sizes)
                weights = group.log_weights[part, np.newaxis] - log_rising(theta + 1.0, n_items - 1)
                np.logaddexp(log_total, own + logsumexp(others + weights, axis=0), out=log_total)
        return np.asarray(np.exp(log_total))

    def _information(self, concentrations: Floats, n_items: int, most: float) -> Any:
        """Upper bound of the information of a partition into at most `most` clusters on the log concentration."""
        if self.n_components is not None:
            return most
        information = _variance(concentrations, n_items)
        if self.discount > 0.0:
            information = np.maximum(information, _variance(concentrations / self.discount, most))
        return np.minimum(information, most)


def _log_rising_from_0(x: Floats, n: npt.NDArray[Any]) -> Floats:
    """As :func:`log_rising`, including x = 0, which occurs for a prior with one component."""
    return np.where(x > 0, log_rising(np.where(x > 0, x, 1.0), n), np.where(n > 0, -np.inf, 0.0))


def _variance(a: Floats, n_items: float) -> Floats:
    """Variance of the number of clusters under the Chinese restaurant process, with an integral for the sum."""
    return a * (np.log1p(n_items / a) - n_items / (a + n_items)) + 0.25


def _add_chances(group: _Members, n_items: int, chances: Floats) -> None:
    """Add the weighted distributions of the number of clusters under all nodes.

    The probability of k clusters is V(k) times a factor that depends only on n, k and the discount. The factors of one
    node are used for the next nodes, as long as the probability beyond them is negligible.
    """
    kept = np.flatnonzero(group.log_weights > _LOG_NEGLIGIBLE)
    numbers, log_counts = np.empty(0, np.int64), np.empty(0)
    for q in kept[np.argsort(-group.concentrations[kept])]:
        node = group.take(slice(q, q + 1))
        most = n_items if node.components is None else min(n_items, node.components[0])
        log_chances = node.log_v(n_items, numbers)[0] + log_counts
        own = np.exp(log_chances - log_chances.max(initial=-np.inf))
        own /= own.sum()
        if not _has_nearly_all(own, numbers, most):
            least = 1e-300 if kept.size > 1 else _LEAST_CHANCE
            exact = occupancy.n_clusters_of_sequence(n_items, node.concentrations[0], group.discount, least)
            numbers = 1 + np.flatnonzero(exact)
            own = exact[numbers - 1] / exact.sum()
            log_counts = np.log(own) - node.log_v(n_items, numbers)[0]
        chances[numbers - 1] += np.exp(node.log_weights[0]) * own


def _has_nearly_all(chances: Floats, numbers: Integers, most: float) -> bool:
    """Whether these numbers of clusters, among 1 to `most`, have nearly all the probability."""
    if not numbers.size:
        return False
    low, high = chances[[0, -1]] < _LEAST_CHANCE
    return bool((low or numbers[0] == 1) and (high or numbers[-1] >= most))


def _numbers_of_components(n_components: Any) -> tuple[Floats, Floats]:
    """Numbers of components (M,) of positive probability, and the logarithms of their probabilities."""
    if isinstance(n_components, int):
        return np.array([float(n_components)]), np.zeros(1)
    powers = 2 ** np.arange(np.ceil(np.log2(_MOST_COMPONENTS)))
    within = n_components.sf(powers) <= 1e-300  # isf is rounded to 1 - 1e-16
    numbers = np.arange(1.0, 1.0 + (powers[within.argmax()] if within.any() else _MOST_COMPONENTS))
    with np.errstate(divide="ignore"):
        log_chances = n_components.logpmf(numbers)
    return numbers[log_chances > -np.inf], log_chances[log_chances > -np.inf]


def crp(concentration: Any) -> PartitionPrior:
    """Make the Chinese restaurant process, the prior on partitions of a Dirichlet process mixture.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        A positive number, or its prior: a distribution of positive numbers, or the shape and rate of a Gamma prior.

    Returns
    -------
    PartitionPrior
        The prior.

    Raises
    ------
    ValueError
        If `concentration` is not positive.
    TypeError
        If `concentration` has another type.

    See Also
    --------
    pitman_yor, dirichlet_multinomial, mixture_of_finite_mixtures : Other priors on partitions.
    stick_breaking : The truncated prior on labels.

    Notes
    -----
    A partition of n items into clusters of sizes n_1, ..., n_K has the probability

        a^K Gamma(a) / Gamma(a + n) prod_k Gamma(n_k)

    given the concentration a [1]_. The log ratio of the probabilities under concentrations a' and a is K log(a'/a) plus
    a constant, so it depends on the number of clusters only. A prior of a is integrated out by quadrature over log a.

    References
    ----------
    .. [1] Antoniak (1974), Annals of Statistics 2(6), 1152-1174. https://doi.org/10.1214/aos/1176342871

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> np.exp(pc.priors.crp(1.0).log_prob([[0, 0, 0], [0, 0, 1], [0, 1, 2]])).values.round(4)
    array([0.3333, 0.1667, 0.1667])
    >>> prior = pc.priors.crp((2, 4)).n_clusters(82)
    >>> float(prior.n_clusters @ prior)
    3.10...
    """
    return ExchangeablePrior("crp", as_concentration(concentration))


def pitman_yor(concentration: Any, discount: float) -> PartitionPrior:
    """Make the Pitman-Yor process, a prior on partitions with more small clusters for a larger discount.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        A number above -`discount`, or its prior on positive numbers, as for :func:`crp`.
    discount : float in [0, 1)
        A discount of 0 gives :func:`crp`.

    Returns
    -------
    PartitionPrior
        The prior.

    Raises
    ------
    ValueError
        If an argument is out of range.
    TypeError
        If `discount` is not a number, or `concentration` has another type.

    See Also
    --------
    crp, dirichlet_multinomial, mixture_of_finite_mixtures : Other priors on partitions.

    Notes
    -----
    Given the concentration a and the discount d, a partition of n items into clusters of sizes n_1, ..., n_K has the
    probability [1]_

        prod_{j=1}^{K-1} (a + j d) Gamma(a + 1) / Gamma(a + n) prod_k Gamma(n_k - d) / Gamma(1 - d).

    References
    ----------
    .. [1] Pitman and Yor (1997), Annals of Probability 25(2), 855-900. https://doi.org/10.1214/aop/1024404422

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> prior = pc.priors.pitman_yor(1.0, discount=0.5)
    >>> np.exp(prior.log_prob([[0, 0, 0], [0, 0, 1], [0, 1, 2]])).values.round(4)
    array([0.125, 0.125, 0.5  ])
    """
    check_number("discount", discount)
    if not 0 <= discount < 1:
        raise ValueError(f"`discount` must lie between 0 and 1, with 1 excluded; got {discount!r}.")
    return ExchangeablePrior("pitman_yor", as_concentration(concentration, -float(discount)), float(discount))


def dirichlet_multinomial(concentration: Any, n_components: int) -> PartitionPrior:
    """Make the prior on partitions of a finite mixture with symmetric Dirichlet weights.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        The Dirichlet parameter of each component: a positive number, or its prior, as for :func:`crp`. If the
        parameters of all components sum to a, pass a / `n_components`.
    n_components : int
        Number of components, some of which may have no items.

    Returns
    -------
    PartitionPrior
        The prior.

    Raises
    ------
    ValueError
        If an argument is out of range.
    TypeError
        If `n_components` is not an integer, or `concentration` has another type.

    See Also
    --------
    mixture_of_finite_mixtures : The same with a prior of the number of components.
    crp, pitman_yor : Other priors on partitions.

    Notes
    -----
    Given the concentration g and M components, a partition of n items into clusters of sizes n_1, ..., n_K has the
    probability [1]_

        M! / (M - K)! Gamma(M g) / Gamma(M g + n) prod_k Gamma(g + n_k) / Gamma(g),

    and 0 if K exceeds M. This is the probability of the partition, summed over all labellings.

    References
    ----------
    .. [1] Green and Richardson (2001), Scandinavian Journal of Statistics 28(2), 355-375.
       https://doi.org/10.1111/1467-9469.00242

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> prior = pc.priors.dirichlet_multinomial(1.0, n_components=2)
    >>> np.exp(prior.log_prob([[0, 0, 0], [0, 0, 1], [0, 1, 2]])).values.round(4)
    array([0.5   , 0.1667, 0.    ])
    """
    check_count("n_components", n_components)
    return ExchangeablePrior("dirichlet_multinomial", as_concentration(concentration), n_components=int(n_components))


def mixture_of_finite_mixtures(concentration: Any, n_components: Any) -> PartitionPrior:
    """Make the prior on partitions of a finite mixture whose number of components has a prior.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        The parameter of each component in the symmetric Dirichlet prior of the weights: a positive number, or its
        prior, as for :func:`crp`.
    n_components : frozen discrete SciPy distribution
        Prior of the number of components, on integers from 1: ``scipy.stats.poisson(3, loc=1)``, ``geom(0.1)``.

    Returns
    -------
    PartitionPrior
        The prior.

    Raises
    ------
    ValueError
        If an argument is out of range, or the probability of more than a million components exceeds 1e-12.
    TypeError
        If `n_components` is not a discrete distribution, or `concentration` has another type.

    See Also
    --------
    dirichlet_multinomial : The same with a fixed number of components.
    crp, pitman_yor : Other priors on partitions.

    Notes
    -----
    Given the concentration g, a partition of n items into clusters of sizes n_1, ..., n_K has the probability [1]_

        V_n(K) prod_k Gamma(g + n_k) / Gamma(g),
        V_n(K) = sum_{m >= K} p(m) m! / (m - K)! Gamma(g m) / Gamma(g m + n),

    where p(m) is the prior probability of m components.

    References
    ----------
    .. [1] Miller and Harrison (2018), Journal of the American Statistical Association 113(521), 340-356.
       https://doi.org/10.1080/01621459.2016.1255636

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> from scipy import stats
    >>> prior = pc.priors.mixture_of_finite_mixtures(1.0, stats.poisson(1, loc=1))
    >>> np.exp(prior.log_prob([[0, 0, 0], [0, 0, 1], [0, 1, 2]])).values.round(4)
    array([0.6218, 0.1139, 0.0364])
    """
    if not all(hasattr(n_components, name) for name in ("logpmf", "sf", "support")):
        raise TypeError(
            "`n_components` must be a frozen discrete distribution such as scipy.stats.poisson(3, loc=1); got "
            f"{n_components!r}. For a fixed number take dirichlet_multinomial."
        )
    if n_components.support()[0] < 1:
        raise ValueError(
            f"`n_components` must have a prior of integers from 1; got support {n_components.support()}. Add loc=1."
        )
    if n_components.sf(_MOST_COMPONENTS) > 1e-12:
        raise ValueError(
            f"`n_components` must be at most {_MOST_COMPONENTS:,} with probability 1 - 1e-12; got "
            f"{parameter_in_words(n_components)}. Take a prior with a lighter tail."
        )
    return ExchangeablePrior("mixture_of_finite_mixtures", as_concentration(concentration), n_components=n_components)


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
    def _parameters(self) -> tuple[Any, ...]:
        return self.concentration, self.n_components

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
        chances = [weight * occupancy.occupied_sticks(n_items, self.n_components, a) for a, weight in kept]
        return sum(chances[1:], chances[0])


def stick_breaking(concentration: Any, n_components: int, *, first_label: int | None = None) -> PartitionPrior:
    """Make the truncated stick-breaking prior on labels, as PyMC's StickBreakingWeights defines it.

    Parameters
    ----------
    concentration : float, frozen SciPy distribution, or (shape, rate)
        A positive number, or its prior: a distribution of positive numbers, or the shape and rate of a Gamma prior.
    n_components : int
        Number of components, at least 2; it is PyMC's ``K`` plus 1. The last component has the remaining weight.
    first_label : {0, 1}, optional
        Label of the first component. By default 0 if any label is 0, and 1 if any is the number of components; required
        if neither occurs.

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
