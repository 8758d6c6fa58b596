"""Test of independence between items: a two-sample test against the product of marginals."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.diagnostics.traces import central_draw
from posterior_consensus.ensemble.chains import half_energy, pairs_together, partition_ess, partition_variance
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import canonical_labels, canonical_rows
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.ensemble.switching import most_in_common
from posterior_consensus.kernels import contingency, ensemble
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.progress import waiting
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_draws

_FEWEST = 20  # nearly uncorrelated draws
_UNCORRELATED = 0.01  # correlation that counts as none
_RESAMPLED = 500
_MOST_ROUNDS = 10  # rounds of votes on the reference
_ALPHA = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class NearIndependence(InWords):
    """Test of whether items change clusters independently, returned by :func:`diagnostics.near_independence`.

    Attributes
    ----------
    statistic : float
        Squared maximum mean discrepancy between half of the draws and the other half with its items shuffled; around 0
        if items are independent.
    p_value : float
        Share of random permutations of the draws between the two halves with at least as large a statistic.
    null : ndarray of shape (n_permutations,)
        Statistics after these permutations.
    resampled : xarray.DataArray of shape (compared_with, resample)
        Statistics between random quarters of the draws: two from the unchanged half (``"posterior"``), or one from each
        half (``"product of marginals"``).
    bandwidth : float
        Median of Binder's loss between the partitions compared.
    n_draws : int
        Number of draws used, all nearly uncorrelated.
    ess : float
        Effective sample size of the partition.
    """

    _figure = "draws.plot_near_independence"

    statistic: float = field(metadata=stored_as.number("independence_statistic"))
    p_value: float = field(metadata=stored_as.number("independence_p_value"))
    null: Floats = field(metadata=stored_as.values("independence_null", "exchange"))
    resampled: xr.DataArray = field(metadata=stored_as.array("independence_resampled", name=None))
    bandwidth: float = field(metadata=stored_as.attribute("independence_bandwidth"))
    n_draws: int = field(metadata=stored_as.attribute("independence_draws"))
    ess: float = field(metadata=stored_as.attribute("independence_ess"))
    _of_runs: ClassVar = "independence_of_runs"

    @property
    def verdict(self) -> str:
        """The p-value in words."""
        if self.p_value <= _ALPHA:
            return "Items do not change clusters independently: some move jointly."
        return "No indication that items change clusters jointly."

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the resampled statistics of each comparison: mean, and 5% and 95% quantiles."""
        values = self.resampled.values
        low, high = np.quantile(values, [0.05, 0.95], axis=1)
        index = pd.Index(self.resampled["compared_with"].values, name="compared_with")
        return pd.DataFrame({"mean": values.mean(axis=1), "5%": low, "95%": high}, index=index)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        words = self.words
        lines = [
            ("verdict", self.verdict),
            ("statistic", f"{display.number(self.statistic)} (squared maximum mean discrepancy)"),
            (words.draws, f"{self.n_draws:,}, of an {words.size} of {self.ess:,.0f}"),
            ("permutations", str(self.null.size)),
        ]
        return f"NearIndependence: p-value {display.number(self.p_value)}", lines, self.to_dataframe()


def near_independence(
    draws: Any,
    *,
    max_draws: int = 1000,
    n_permutations: int = 999,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> NearIndependence:
    """Test whether the items' labels are independent of each other in the posterior.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Draws without burn-in. They are thinned until nearly uncorrelated.
    max_draws : int
        Largest number of draws used.
    n_permutations : int
        Number of permutations of the draws between the two samples; the p-value is at least 1 / (1 + n_permutations).
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It seeds the halving, shuffling and permuting of the draws; None gives the
        same result each time.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    NearIndependence
        The test, with its permutation and resampling distributions.

    Raises
    ------
    ValueError
        If fewer than 20 draws are nearly uncorrelated, `max_draws` is below 20 or `n_permutations` below 1, or the
        draws are invalid as for :func:`as_partition_draws`.

    See Also
    --------
    NearIndependence.plot : Plot the resampled statistics.
    diagnostics.sequential_distances : Determine the burn-in.

    Notes
    -----
    Methods that vote item by item assume the product of the items' marginals, in which items choose clusters
    independently [1]_. The draws are halved at random. In one half, clusters are matched to a reference partition and
    each item's labels are shuffled over the draws, which keeps the marginals and removes the dependence. The two halves
    are compared by the unbiased squared maximum mean discrepancy [2]_ with the kernel

        k(z, z') = exp(-d(z, z') / median d),

    where d is Binder's loss, ||A - A'||^2 / n^2 for association matrices A. The null distribution comes from random
    permutations of draws between the halves. Other seeds give other p-values; near 0.05, none is decisive.

    Permutations assume independent draws. Chains are therefore thinned to every k-th draw, with k the first lag at
    which an exponential autocorrelation rho^k is at most 0.01. Here rho = (tau - 1) / (tau + 1), and tau is the number
    of draws per effective draw of the partition. Weights are ignored.

    If few items keep their cluster, draws match any reference too well, and look dependent. For draws from the random
    perturbation model, the test rejected 6% at level 0.05 with up to half of the labels random, 8% with 65% and 40%
    with 80%. With many draws, negligible dependence is significant, so look at the plot. Dependence does not invalidate
    a consensus partition, but error rates of the random perturbation model assume independence.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR, appendix E.
    .. [2] Gretton, Borgwardt, Rasch, Schoelkopf and Smola (2012), Journal of Machine Learning Research 13, 723-773.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> rng = np.random.default_rng(1)
    >>> together = np.repeat(rng.integers(2, size=(200, 1)), 6, axis=1) * [0, 0, 0, 1, 1, 1]
    >>> pc.diagnostics.near_independence(together).p_value
    0.001
    """
    draws, rng = as_draws(draws).in_fixed_order().as_sampled(), as_generator(random_seed, otherwise=0)
    n_permutations = check_count("n_permutations", n_permutations)
    if check_count("max_draws", max_draws) < _FEWEST:
        raise ValueError(f"`max_draws` must be at least {_FEWEST}; got {max_draws}.")
    with waiting("Near independence", progressbar=progressbar):
        some = draws.of_some_items()[1]
        together = pairs_together(some)
        ess = partition_ess(some, together, partition_variance(some, together).total)
        rows = rng.permutation(uncorrelated(draws, ess, max_draws))
        half = rows.size // 2
        shuffled = rng.permuted(matched_labels(draws.take(rows[half : 2 * half])), axis=0)
        both = np.concatenate([draws.labels[rows[:half]], shuffled])
        kernel, bandwidth = gaussian_kernel(*canonical_rows(both, int(both.max()) + 1))
        first = np.arange(2 * half) < half
        exchanged = rng.permuted(np.tile(first, (n_permutations + 1, 1)), axis=1)
        exchanged[0] = first
        statistic, *null = _squared_discrepancies(kernel, exchanged, ~exchanged).tolist()
    return NearIndependence(
        statistic=statistic,
        p_value=(1 + int(np.sum(np.array(null) >= statistic - ROUNDING))) / (1 + n_permutations),
        null=np.array(null),
        resampled=_resampled(kernel, half, rng),
        bandwidth=bandwidth,
        n_draws=2 * half,
        ess=ess,
        words=draws.words,
    )


def uncorrelated(draws: PartitionDraws, ess: float, max_draws: int) -> Positions:
    """Row numbers of at most `max_draws` draws, far enough apart in their chains to be nearly uncorrelated."""
    step = 1
    worth = draws.n_draws / ess
    if worth > 1:
        step = max(1, int(np.ceil(np.log(_UNCORRELATED) / np.log((worth - 1) / (worth + 1)))))
    rows = np.concatenate([chain[::step] for chain in draws.samples.sequences]) if ess > 0 else np.empty(0, np.intp)
    if rows.size < _FEWEST:
        why = f"{draws.n_draws:,} draws have an effective sample size of {ess:,.0f}"
        if np.isnan(ess):
            why = "chains of fewer than four draws have no effective sample size"
        if not draws.samples.series:
            raise ValueError(f"`draws` must hold at least {_FEWEST} runs; got {draws.n_draws}. Add runs.")
        raise ValueError(
            f"The draws must hold at least {_FEWEST} that are nearly uncorrelated; got {rows.size}, as {why}. "
            "Run longer chains; diagnose() says whether they agree."
        )
    return rows[evenly_spaced(rows.size, max_draws)]


def _resampled(kernel: Floats, half: int, rng: np.random.Generator) -> xr.DataArray:
    """Statistics of quarters of the draws, for the attribute `resampled`."""
    quarter = half // 2
    parts = np.zeros((3, _RESAMPLED, 2 * half), np.bool_)
    for k in range(_RESAMPLED):
        places = rng.permutation(half)
        parts[0, k, places[:quarter]] = True
        parts[1, k, places[quarter : 2 * quarter]] = True
        parts[2, k, half + rng.permutation(half)[:quarter]] = True
    values = [_squared_discrepancies(kernel, parts[0], other) for other in parts[1:]]
    coords = {"compared_with": ["posterior", "product of marginals"]}
    return xr.DataArray(np.stack(values), dims=("compared_with", "resample"), coords=coords)


def matched_labels(draws: PartitionDraws) -> npt.NDArray[np.uint32]:
    """Labels (n_draws, n_items) with clusters matched to a reference partition, the items' plurality votes.

    The reference starts as a central draw; votes are repeated until it no longer changes. Unmatched clusters of a draw
    are numbered after the clusters of the reference, in order of size.
    """
    reference = central_draw(draws, draws.of_some_items()[1], binder())
    for _ in range(_MOST_ROUNDS):
        labels = _matched_to(draws, reference)
        counts = np.zeros((draws.n_items, int(labels.max()) + 1), np.int64)
        items = np.arange(draws.n_items)
        for row in labels:
            counts[items, row] += 1
        voted = canonical_labels(counts.argmax(axis=1))
        if np.array_equal(voted, reference):
            break
        reference = voted
    return labels


def _matched_to(draws: PartitionDraws, reference: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    n_clusters = int(reference.max()) + 1
    counts = ensemble.joint_counts(draws.labels, draws.starts, reference, n_clusters)
    labels = np.empty(draws.labels.shape, np.uint32)
    for t, row in enumerate(draws.labels):
        table = counts[draws.starts[t] : draws.starts[t + 1]]
        spare = max(n_clusters - len(table), 0)
        common = np.concatenate([table, np.zeros((spare, n_clusters), table.dtype)]).astype(np.float64)
        numbers = np.full(len(common), -1)
        numbers[most_in_common(common[np.newaxis])[0]] = np.arange(n_clusters)
        rest = np.flatnonzero(numbers < 0)
        numbers[rest[np.argsort(-common[rest].sum(axis=1), kind="stable")]] = n_clusters + np.arange(rest.size)
        labels[t] = numbers[row]
    return labels


def gaussian_kernel(labels: npt.NDArray[Any], n_clusters: Integers) -> tuple[Floats, float]:
    """exp(-d / median d) for Binder's loss d between all pairs of canonical label vectors (m, n), and the median.

    If more than half of the pairs are equal, the mean replaces the median.
    """
    loss, n_items = binder(), labels.shape[1]
    h = loss.h(n_items)
    rows, others = np.triu_indices(len(labels), 1)
    joint = contingency.all_joint_sums(labels, n_clusters, h)[rows, others]
    own = contingency.size_sums(labels, n_clusters, h)
    distances = loss.scale(n_items) * (own[rows] + own[others] - 2 * joint)
    bandwidth = float(np.median(distances)) or float(distances.mean())
    kernel = np.eye(len(labels))
    kernel[rows, others] = kernel[others, rows] = np.exp(-distances / bandwidth) if bandwidth > 0 else 1.0
    return kernel, bandwidth


def _squared_discrepancies(kernel: Floats, ours: Flags, theirs: Flags) -> Floats:
    """Unbiased squared maximum mean discrepancy (R,) of two samples each; members of either sample are (R, m)."""
    return 2 * half_energy(-kernel, ours, theirs, 1.0 - np.eye(len(kernel)))
