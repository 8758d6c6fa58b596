"""A prior on partitions as a record, and the cluster sizes of draws from which it is computed."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.priors.concentrations import Concentration, Floats, in_words
from posterior_consensus.results.display import NUMBER_OF_CLUSTERS
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.sources.conversion import as_draws
from posterior_consensus.sources.parameters import component_labels

_CELLS = 2**22  # labels that are counted at once
_NEGLIGIBLE = 1e-16  # probability of a number of clusters at which the distribution ends


class Sizes(NamedTuple):
    """Stacked cluster sizes (R,) of all draws, the first row (N + 1,) of each draw, and the number of items.

    For labels as sampled, there is a size for every component, including empty ones.
    """

    values: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]
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
        taken = as_draws(draws)
        return taken.samples.array(self.of_sizes(sizes_of(self, draws, taken)), "log_prior", unit="nats")

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
        return NUMBER_OF_CLUSTERS

    @property
    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Arguments of the function that made the prior."""

    def __repr__(self) -> str:
        return f"{self.family}({', '.join(in_words(value) for value in self._parameters.values())})"


def check_prior(prior: Any) -> PartitionPrior:
    """Raise TypeError unless `prior` is a prior on partitions; return it."""
    if not isinstance(prior, PartitionPrior):
        raise TypeError(f"`prior` must be a PartitionPrior such as priors.crp(1.0); got {prior!r}.")
    return prior


def sizes_of(prior: PartitionPrior, data: Any, draws: PartitionDraws) -> Sizes:
    """Cluster sizes of draws or, for a prior on labels, component sizes of the original data."""
    if prior.n_labels is None:
        return Sizes(draws.backend.sizes, draws.starts, draws.n_items)
    labels = component_labels(draws, data, prior.n_labels, prior.first_label)
    starts = prior.n_labels * np.arange(draws.n_draws + 1)
    counts = np.empty((draws.n_draws, prior.n_labels), np.int64)
    for rows in slices(draws.n_draws, max(1, _CELLS // draws.n_items)):
        cells = labels[rows] + starts[: rows.stop - rows.start, np.newaxis]
        counts[rows] = np.bincount(cells.ravel(), minlength=counts[rows].size).reshape(-1, prior.n_labels)
    return Sizes(counts.ravel(), starts, draws.n_items)
