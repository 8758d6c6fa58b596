"""The random perturbation model: draws that are noisy copies of a known partition."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.perturbation.probability import perturbed
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, as_numbers, check_count
from posterior_consensus.sources.conversion import as_partition_draws


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedDraws:
    """Draws of the random perturbation model, with their truth; made by :func:`random_perturbation`.

    Attributes
    ----------
    draws : PartitionDraws
        The draws, the input of a method.
    truths : ndarray of shape (n_modes, n_items), dtype int64
        True cluster of each item in each mode, from 0; a cluster may be empty.
    shares : ndarray of shape (n_modes,), dtype float64
        Probability of each mode.
    mode : ndarray of shape (n_draws,), dtype int64
        Mode of each draw.
    alignment : ndarray of shape (n_draws, n_clusters), dtype int64
        The true cluster of cluster k of draw t; -1 if the draw has no cluster k.
    noise : ndarray of shape (n_draws,), dtype float64
        Probability of a random cluster for an item in each draw.
    """

    draws: PartitionDraws
    truths: Integers
    shares: Floats
    mode: Integers
    alignment: Integers
    noise: Floats

    @property
    def truth(self) -> Integers:
        """True clusters (n_items,) of the first mode."""
        return self.truths[0]

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the model, an upper bound for truth and draws."""
        return self.alignment.shape[1]

    def aligned_labels(self) -> Integers:
        """Rename the labels of the draws to the names of the true clusters.

        Returns
        -------
        ndarray of shape (n_draws, n_items), dtype int64
            Labels with the names of the true clusters.
        """
        return np.take_along_axis(self.alignment, self.draws.labels.astype(np.intp), axis=1)

    def oracle(self, mode: int = 0) -> Integers:
        """Compute the oracle: the plurality vote of a mode's draws on each item, with known names of clusters.

        Parameters
        ----------
        mode : int
            Row of `truths`; the draws of this mode vote, each with its weight.

        Returns
        -------
        ndarray of shape (n_items,), dtype int64
            Clusters by their true names; ties go to the lowest name.

        Raises
        ------
        ValueError
            If no draw has this mode.
        """
        rows = np.flatnonzero(self.mode == mode)
        if rows.size == 0:
            present = ", ".join(map(str, np.unique(self.mode)))
            raise ValueError(f"`mode` must be one that draws come from ({present}); got {mode!r}.")
        votes = np.zeros((self.draws.n_items, self.n_clusters))
        items = np.arange(self.draws.n_items)
        # Integers instead of weights 1/N, whose sums could break ties by rounding.
        weights = self.draws.weights if self.draws.samples.is_weighted else np.ones(self.draws.n_draws)
        for t in rows:
            votes[items, self.alignment[t, self.draws.labels[t]]] += weights[t]
        return votes.argmax(axis=1)

    def __repr__(self) -> str:
        low, high = self.noise.min(), self.noise.max()
        sizes = "; ".join(str(np.bincount(truth, minlength=self.n_clusters).tolist()) for truth in self.truths)
        rows = [
            ("draws", f"{self.draws.n_draws:,} of {self.draws.n_items:,} items"),
            ("clusters", f"{self.n_clusters} of sizes {sizes}"),
            ("noise", f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"),
            ("modes", f"{self.shares.size}, of {np.bincount(self.mode, minlength=self.shares.size).tolist()} draws"),
        ]
        return "\n".join(["SimulatedDraws", *(f"  {key:<9} {value}" for key, value in rows)])


def random_perturbation(
    n_items: int,
    n_clusters: int,
    *,
    n_draws: int,
    noise: npt.ArrayLike,
    sizes: Literal["balanced"] | npt.ArrayLike = "balanced",
    weights: npt.ArrayLike | None = None,
    modes: npt.ArrayLike | None = None,
    truth: npt.ArrayLike | None = None,
    random_seed: RandomSeed = None,
) -> SimulatedDraws:
    """Simulate draws in which each item keeps its true cluster or, with probability `noise`, takes a random one.

    Parameters
    ----------
    n_items, n_clusters, n_draws : int
        Numbers of items, clusters and draws.
    noise : float or array_like of shape (n_draws,)
        Probability in [0, 1] of a random cluster, which may be the true one; one value for all draws or one for each.
    sizes : "balanced", float or array_like of shape (n_clusters,)
        Probabilities of the true clusters: all equal, the probability of the first cluster (the others share the rest
        equally), or all probabilities.
    weights : array_like of shape (n_draws,), optional
        Weight of each draw, as for :func:`as_partition_draws`.
    modes : array_like of shape (n_modes,), optional
        Probabilities of several truths, one of which each draw copies; by default there is one truth.
    truth : array_like of shape (n_items,) or (n_modes, n_items), optional
        True clusters from 0 to n_clusters - 1, instead of random ones of the given `sizes`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    SimulatedDraws
        The draws, with the truth of each.

    Raises
    ------
    ValueError
        If the value of an argument is not allowed.
    TypeError
        If a number of items, clusters or draws is not an integer, or another argument has no numbers.

    See Also
    --------
    oracle_error : The least expected error of any method on such draws.
    posterior_consensus.consensus.random_perturbation_em : The model fitted to draws.

    Notes
    -----
    Definition 1 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering". A label is
    true with probability 1 - p + p/K. The model then renames the clusters of every draw at random. This step is
    omitted, because :class:`PartitionDraws` number clusters by first appearance; `alignment` is the information that
    renaming hides.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> simulated = pc.simulate.random_perturbation(100, 6, n_draws=20, noise=0.45, sizes=0.5, random_seed=1)
    >>> simulated
    SimulatedDraws
      draws     20 of 100 items
      clusters  6 of sizes [47, 10, 10, 10, 15, 8]
      noise     0.45
      modes     1, of [20] draws
    >>> pc.losses.misclassification_distance(simulated.oracle(), simulated.truth)
    0.0
    """
    n_items, n_clusters = check_count("n_items", n_items), check_count("n_clusters", n_clusters)
    n_draws = check_count("n_draws", n_draws)
    rng = as_generator(random_seed)
    noise = _noise_of_draws(noise, n_draws)
    shares = _as_shares("modes", np.ones(1) if modes is None else modes, None)
    probabilities = _cluster_shares(sizes, n_clusters)
    if truth is None:
        truths = rng.choice(n_clusters, size=(shares.size, n_items), p=probabilities)
    elif isinstance(sizes, str):
        truths = _truths(truth, (shares.size, n_items), n_clusters)
    else:
        raise ValueError("`sizes` must be omitted if `truth` is given, because `truth` determines them.")
    mode = rng.choice(shares.size, size=n_draws, p=shares)
    labels = np.empty((n_draws, n_items), smallest_dtype(n_clusters))
    for t in range(n_draws):  # draw by draw, because all random numbers at once would exceed the labels many times
        labels[t] = perturbed(truths[mode[t]], noise[t], n_clusters, rng)
    draws = as_partition_draws(labels, weights=weights)
    alignment = np.full((n_draws, n_clusters), -1)
    for t in range(n_draws):
        alignment[t, draws.labels[t]] = labels[t]
    return SimulatedDraws(draws, truths, shares, mode, alignment, noise)


def _noise_of_draws(noise: npt.ArrayLike, n_draws: int) -> Floats:
    values = as_numbers("noise", noise)
    if values.shape not in ((), (n_draws,)):
        raise ValueError(f"`noise` must be one number or one for each of {n_draws} draws; got shape {values.shape}.")
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"`noise` must lie between 0 and 1; got {noise!r}.")
    return np.broadcast_to(values, n_draws).copy()


def _cluster_shares(sizes: Any, n_clusters: int) -> Floats:
    if isinstance(sizes, str):
        if sizes != "balanced":
            raise ValueError(f"`sizes` must be 'balanced', a number or one for each cluster; got {sizes!r}.")
        return np.full(n_clusters, 1.0 / n_clusters)
    values = as_numbers("sizes", sizes)
    if values.ndim == 0:
        if not 0 <= values <= 1 or n_clusters == 1:
            raise ValueError(f"`sizes` must be from 0 to 1 as a number, and of several clusters; got {sizes!r}.")
        return np.array([float(values), *[(1.0 - float(values)) / (n_clusters - 1)] * (n_clusters - 1)])
    return _as_shares("sizes", values, n_clusters)


def _as_shares(name: str, values: npt.ArrayLike, length: int | None) -> Floats:
    shares = as_numbers(name, values)
    wrong_length = shares.ndim != 1 or shares.size == 0 or length not in (None, shares.size)
    if wrong_length or not np.all(shares >= 0) or not np.isclose(shares.sum(), 1.0):
        number = "" if length is None else f"{length} "
        raise ValueError(f"`{name}` must be {number}probabilities that sum to 1; got {values!r}.")
    return shares / shares.sum()


def _truths(truth: npt.ArrayLike, shape: tuple[int, int], n_clusters: int) -> Integers:
    try:
        values = np.atleast_2d(np.asarray(truth))
    except ValueError:  # rows of different lengths
        raise ValueError(f"`truth` must have shape {shape}, one row for each mode; got {truth!r}.") from None
    if values.shape != shape:
        raise ValueError(f"`truth` must have shape {shape}, one row for each mode; got {values.shape}.")
    if not np.issubdtype(values.dtype, np.integer) or values.min() < 0 or values.max() >= n_clusters:
        raise ValueError(f"`truth` must have integers from 0 to {n_clusters - 1}, `n_clusters` minus one.")
    return values.astype(np.int64)
