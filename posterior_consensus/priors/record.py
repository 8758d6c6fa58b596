"""A prior as a record: its concentration, fixed or integrated by quadrature, and the cluster sizes that it takes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import betaln, gammaln

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.results.words import DRAWS
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import check_count, is_number
from posterior_consensus.sources.conversion import find_source, opened
from posterior_consensus.sources.parameters import component_labels

Concentration = Any
"""A number, or a frozen SciPy distribution."""

_LEAST, _TAIL = 1e-18, 1e-300  # smallest concentration, and smallest tail probability
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_WIDEST = 4.0  # panel, in units of the log concentration
_WIDTHS = 12.0  # standard deviations per panel that its points integrate to rounding
_GRID = 1_000  # log concentrations at which the panels' widths are computed
_CELLS = 2**22  # labels that are counted at once
_NEGLIGIBLE = 1e-16  # probability of a number of clusters at which the distribution ends


class Nodes(NamedTuple):
    """Concentrations (Q,) and the logarithms of their probabilities, or of their weights in a sum over them."""

    values: Floats
    log_weights: Floats


def as_concentration(value: Any, lower: float = 0.0) -> Concentration:
    """Check a number above `lower`, a frozen SciPy distribution of positive numbers, or (shape, rate) of a Gamma."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_number, value)):
        shape, rate = map(float, value)
        if not (0 < shape < np.inf and 0 < rate < np.inf):
            raise ValueError(f"`concentration` must have a positive shape and rate of its Gamma prior; got {value!r}.")
        from scipy import stats  # takes half a second

        return stats.gamma(shape, scale=1 / rate)
    if hasattr(value, "logpdf") and hasattr(value, "isf") and hasattr(value, "support"):
        if value.support()[0] < 0:
            raise ValueError(f"`concentration` must have a prior of positive numbers; got support {value.support()}.")
        return value
    if not is_number(value):
        raise TypeError(
            "`concentration` must be a number, a frozen SciPy distribution such as scipy.stats.gamma(2, scale=0.5), or "
            f"(shape, rate) of a Gamma prior; got {value!r}."
        )
    if not lower < value < np.inf:
        raise ValueError(f"`concentration` must be a finite number above {lower:g}; got {value!r}.")
    return float(value)


def parameter_in_words(value: Any) -> str:
    """Format a number or a distribution as text, such as ``gamma(2, scale=0.5)``."""
    if is_number(value):
        return f"{value:g}"
    given = [f"{one:g}" for one in value.args] + [f"{name}={one:g}" for name, one in value.kwds.items()]
    return f"{value.dist.name}({', '.join(given)})"


def median(value: Concentration) -> float:
    """Return the concentration, or the median of its prior."""
    return float(value if is_number(value) else value.median())


def nodes(concentration: Concentration, n_items: int, information: Callable[[Floats], Any]) -> Nodes:
    """Quadrature nodes for the likelihood of the concentration, given a partition.

    The nodes are panels of Gauss-Legendre points in the log concentration. The width of a panel is 12 standard
    deviations of the likelihood; `information` returns the inverse variance at concentrations (Q,), or an upper bound.
    The outer nodes take the probability beyond them, where items are all in one cluster or all on their own.
    """
    from scipy import integrate

    if is_number(concentration):
        return Nodes(np.array([concentration]), np.zeros(1))
    bottom = max(float(concentration.ppf(1e-17)), _LEAST)
    with np.errstate(divide="ignore"):
        top = max(min(float(concentration.isf(_TAIL)), 1e16 * n_items**2), bottom * (1 + 1e-12))
    inner = np.log(np.clip([concentration.ppf(1e-16), concentration.isf(1e-16)], bottom, top))
    grid = np.linspace(np.log(bottom), np.log(top), _GRID)
    panels = np.maximum(
        np.sqrt(np.broadcast_to(information(np.exp(grid)), _GRID)) / _WIDTHS, 1 / min(_WIDEST, float(np.ptp(inner)) / 2)
    )
    passed = integrate.cumulative_trapezoid(panels, grid, initial=0.0)
    edges = np.interp(np.linspace(0.0, passed[-1], 1 + int(np.ceil(passed[-1]))), passed, grid)
    half = np.diff(edges) / 2
    at = ((edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * _POINTS).ravel()
    weights = np.log(half[:, np.newaxis] * _WEIGHTS).ravel()
    with np.errstate(divide="ignore"):
        values = np.concatenate([[bottom], np.exp(at), [top]])
        ends = np.log([concentration.cdf(bottom), concentration.sf(top)])
        density = concentration.logpdf(values[1:-1]) + at + weights
    kept = Nodes(values, np.concatenate([ends[:1], density, ends[1:]]))
    return Nodes(*(part[kept.log_weights > -np.inf] for part in kept))


def log_rising(x: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Logarithm of the rising factorial x (x + 1) ... (x + n - 1), accurate for large positive x."""
    x, n = np.asarray(x, np.float64), np.asarray(n, np.float64)
    several = np.maximum(n, 1.0)
    rising: Floats = np.where(n > 0, gammaln(several) - betaln(x, several), 0.0)
    return rising


class Sizes(NamedTuple):
    """Stacked cluster sizes (R,) of all draws, the first row (N + 1,) of each draw, and the number of items.

    For labels as sampled, there is a size for every component, including empty ones.
    """

    values: npt.NDArray[Any]
    starts: Integers
    n_items: int


class PartitionPrior(ABC):
    """A prior on partitions or on labels; made by the functions of :mod:`posterior_consensus.priors`.

    Attributes
    ----------
    family : str
        Name of the function that made the prior.
    concentration : float or frozen SciPy distribution
        The concentration, or its prior.

    See Also
    --------
    posterior_consensus.priors.crp : The prior of a Dirichlet process mixture.
    prior_sensitivity : The consensus partition under other priors.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> prior = pc.priors.crp(1.0)
    >>> prior.family, prior.concentration
    ('crp', 1.0)
    """

    family: str
    concentration: Concentration
    n_labels: int | None = None
    """Number of components of a prior on labels as sampled; None for a prior on partitions."""
    first_label: int | None = None

    def log_prob(self, draws: Any) -> xr.DataArray:
        """Compute the logarithm of the prior probability of each draw.

        Parameters
        ----------
        draws : PartitionDraws or any posterior that :func:`summarize` takes
            Posterior draws of the partition. A prior from :func:`stick_breaking` needs labels as sampled, which
            PartitionDraws do not have.

        Returns
        -------
        xarray.DataArray of shape (sample,), dtype float64
            Named ``log_prior``, in nats, with the coordinates ``chain``, ``draw`` and ``weight``; minus infinity for a
            partition that the prior excludes.

        Raises
        ------
        ValueError
            If there are no draws, or this is a prior on labels and the labels are not numbers of its components.
        TypeError
            If this is a prior on labels and the labels of the draws were renumbered.

        See Also
        --------
        prior_sensitivity : The consensus partition under other priors.

        Examples
        --------
        >>> import numpy as np
        >>> import posterior_consensus as pc
        >>> np.exp(pc.priors.crp(1.0).log_prob([[0, 0, 0], [0, 0, 1], [0, 1, 2]])).values.round(4)
        array([0.3333, 0.1667, 0.1667])
        """
        with opened(draws) as (data, where):
            found = find_source(data, where)
            taken = found.source.as_draws()
            return taken.samples.array(self.of_sizes(sizes_of(self, found.labels, taken)), "log_prior", unit="nats")

    def n_clusters(self, n_items: int) -> xr.DataArray:
        """Compute the prior distribution of the number of clusters.

        Parameters
        ----------
        n_items : int
            Number of items.

        Returns
        -------
        xarray.DataArray of shape (n_clusters,), dtype float64
            Named ``prior``: the probability of 1, 2, ... clusters, up to the largest number with a probability of at
            least 1e-16.

        Raises
        ------
        ValueError
            If `n_items` is below 1.

        See Also
        --------
        cluster_sizes : The expected number of clusters of each size.
        plot_n_clusters : The posterior and the prior of the number of clusters.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> prior = pc.priors.crp(1.0).n_clusters(3)
        >>> prior.values.round(4)
        array([0.3333, 0.5   , 0.1667])
        >>> float(prior.n_clusters @ prior)
        1.8333...
        """
        chances = self._n_clusters(check_count("n_items", n_items))
        chances = chances[: 1 + int(np.flatnonzero(chances >= _NEGLIGIBLE).max())]
        return xr.DataArray(chances, {"n_clusters": np.arange(1, chances.size + 1)}, ("n_clusters",), "prior")

    def cluster_sizes(self, n_items: int) -> xr.DataArray:
        """Compute the expected number of clusters of each size under the prior.

        Parameters
        ----------
        n_items : int
            Number of items.

        Returns
        -------
        xarray.DataArray of shape (size,), dtype float64
            Named ``prior``: the expected number of clusters of 1, 2, ..., `n_items` items. Multiplied by the sizes,
            they sum to `n_items`.

        Raises
        ------
        ValueError
            If `n_items` is below 1, or this is a prior on labels.

        See Also
        --------
        links : The posterior number of clusters of each size.

        Notes
        -----
        Under a prior of the two-parameter family with discount d and concentration a, the expected number of clusters
        with m of the n items is [1]_

            binom(n, m) (1 - d)_{m-1} (a + d)_{n-m} / (a + 1)_{n-1},

        with rising factorials (x)_k = x (x + 1) ... (x + k - 1). For a mixture of such priors, it is averaged over the
        mixture.

        References
        ----------
        .. [1] Pitman (2006), Combinatorial Stochastic Processes, Springer. https://doi.org/10.1007/b11601500

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> pc.priors.crp(1.0).cluster_sizes(4).values.round(4)
        array([1.    , 0.5   , 0.3333, 0.25  ])
        """
        numbers = self._cluster_sizes(check_count("n_items", n_items))
        return xr.DataArray(numbers, {"size": np.arange(1, numbers.size + 1)}, ("size",), "prior")

    @abstractmethod
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

    @abstractmethod
    def _n_clusters(self, n_items: int) -> Floats:
        """Probabilities of 1, 2, ... clusters."""

    def _cluster_sizes(self, n_items: int) -> Floats:
        """Expected numbers of clusters of 1 to `n_items` items."""
        raise ValueError(
            f"`prior` must be a prior on partitions, such as priors.crp; got {self!r}, a prior on labels. With many "
            "components, priors.crp of the same concentration is nearly the same prior on partitions."
        )

    @property
    def about_components(self) -> str:
        """Whether the number of clusters estimates a number of components under this prior, in words."""
        return DRAWS.number

    @property
    @abstractmethod
    def _parameters(self) -> tuple[Any, ...]:
        """Arguments of the function that made the prior."""

    def __repr__(self) -> str:
        return f"{self.family}({', '.join(parameter_in_words(value) for value in self._parameters)})"


def check_prior(prior: Any) -> PartitionPrior:
    """Raise TypeError unless `prior` is a prior on partitions; return it."""
    if not isinstance(prior, PartitionPrior):
        raise TypeError(f"`prior` must be a PartitionPrior such as priors.crp(1.0); got {prior!r}.")
    return prior


def sizes_of(prior: PartitionPrior, as_sampled: xr.DataArray | None, draws: PartitionDraws) -> Sizes:
    """Cluster sizes of draws or, for a prior on labels, component sizes of the labels as sampled."""
    if prior.n_labels is None:
        return Sizes(draws.backend.sizes, draws.starts, draws.n_items)
    labels = component_labels(draws, as_sampled, prior.n_labels, prior.first_label)
    starts = prior.n_labels * np.arange(draws.n_draws + 1)
    counts = np.empty((draws.n_draws, prior.n_labels), np.int64)
    for rows in slices(draws.n_draws, max(1, _CELLS // draws.n_items)):
        cells = labels[rows] + starts[: rows.stop - rows.start, np.newaxis]
        counts[rows] = np.bincount(cells.ravel(), minlength=counts[rows].size).reshape(-1, prior.n_labels)
    return Sizes(counts.ravel(), starts, draws.n_items)
