"""Whether and where two posteriors over the same items differ: distances, p-values, and items' co-members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import erf

from posterior_consensus.answers.particles import Particles, particles
from posterior_consensus.answers.partition_loss import same_items
from posterior_consensus.ensemble.chains import half_energy, pairs_together, partition_ess, partition_variance
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import all_losses, doubt_of_losses, loss_matrix
from posterior_consensus.ensemble.samples import evenly_spaced
from posterior_consensus.ensemble.similarity import similarity_errors
from posterior_consensus.ensemble.switching import assignment, cheapest_paths
from posterior_consensus.losses.lookup import as_loss, as_metric
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.words import DRAWS, RUNS
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.executor import NO_TIME, one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING, SAME
from posterior_consensus.sources.conversion import as_draws

_WORTH = 10.0  # effective draws of a block: shorter ones of slow chains are too much alike
_FEWEST, _MOST = 4, 40  # blocks of each posterior
_EXCHANGES = 999
_SIMILARITIES = 2_000_000  # of each block that are compared
_MEASURES = ("energy", "draws", "particles", "mean similarity", "rms similarity", "number of clusters")
_DISTANCES = ("value", "mcse", "ess", "by_chance", "p_value")
_OF_ITEMS = ("difference", "mcse", "by_chance", "p_value", "joined", "left")
_OF_NORMAL = np.sqrt(2 / np.pi)  # mean of the absolute value of a standard normal variable
_OF_PARTICLES = ("weight", "mcse", "ess")
LEVEL = 0.05
_MOST_NAMED = 5  # items of a verdict


class _Said(NamedTuple):
    """Phrases of the verdict, and effective draws of a chain with fewer of which p-values are too small too often."""

    both: str
    equal: str
    energy: str
    each: str
    more: str
    reliable: float


_SAID = {
    DRAWS: _Said(
        both="the posteriors {} and {}",
        equal="the posteriors are equal",
        energy="two draws are {} farther apart than two of one posterior",
        each=" for each chain",
        more="Run longer chains, and see whether they agree.",
        reliable=50,
    ),
    RUNS: _Said(
        both="the runs of {} and of {}",
        equal="they are equal",
        energy="two runs, one of each, are {} farther apart than two of the same",
        each="",
        more="Add runs, or name both as `groups` of `as_runs`: `diagnose` compares groups of five runs or more.",
        reliable=0,
    ),
}


@dataclass(frozen=True)
class Differences:
    """Tests of whether two posteriors differ."""

    energy: float  # half the energy distance, and its Monte Carlo standard error
    mcse: float
    # p-values of this distance, of the difference of the similarities, and of the mean number of clusters
    of_partitions: float
    of_similarities: float
    of_numbers: float
    # (n_items,): p-value of the difference of each item's similarities; NaN for an effective sample size below 40, as
    # are the other p-values
    of_items: Floats


def smaller_effective_size(draws: PartitionDraws) -> float:
    """Effective sample size: the smaller of the partition's and that of the number of clusters."""
    some = draws.of_some_items()[1]
    together = pairs_together(some)
    of_partition = partition_ess(some, together, partition_variance(some, together).total)
    of_number = draws.samples.mcse_and_ess(draws.n_clusters.astype(np.float64))[1]
    return float(np.fmin(of_partition * draws.samples.effective_draws / draws.n_draws, of_number))


@one_blas_thread(with_sklearn=False)  # products of a few blocks, one for each item: threads would only wait
def differences(
    both: tuple[PartitionDraws, PartitionDraws], sizes: tuple[float, float], metric: PartitionLoss, n_draws: int
) -> Differences:
    """Test whether two posteriors of these effective sample sizes differ.

    Notes
    -----
    The draws of each posterior are cut into as many blocks of successive draws of one chain, or groups of whole chains,
    with an effective size of about 10 each or more. If the effective sample sizes differ, only a stretch of each block
    of the larger one is used. Then blocks of equal posteriors are nearly exchangeable, also if one sampler is slower:
    the null distribution is that of 999 random exchanges of blocks between the posteriors [1]_. A block and the next
    one of its chain are correlated, so their distance does not count, nor does the distance within a block. The means
    of slow chains still vary more than after exchanges, by a factor of 1 + 1 / (2 m) for an effective size of m for
    each block. As slow items have fewer effective draws, the statistics are divided by 1 + 1 / m.

    With the mean distance d between the draws of two blocks, each statistic is the mean of d between the posteriors,
    less the mean of its means within each. For the partitions d is the loss. For similarities, d is minus the inner
    product of the blocks' similarity matrices, whose statistic estimates half the squared difference; for an item, of
    its rows. For the number of clusters it is minus the product of the means. Items' statistics are divided by their
    standard deviation over the exchanges, and the largest counts. The smallest of the four p-values is compared with
    its own distribution over the exchanges, so that the p-values are corrected for their number [2]_.

    References
    ----------
    .. [1] Romano (1990), Journal of the American Statistical Association 85(411), 686-692.
       https://doi.org/10.1080/01621459.1990.10474928
    .. [2] Westfall and Young (1993), Resampling-Based Multiple Testing, Wiley.
    """
    n_items = both[0].n_items
    both = _with_weight(both[0]), _with_weight(both[1])
    if min(draws.n_draws for draws in both) < 2 * _FEWEST:
        return Differences(np.nan, np.nan, np.nan, np.nan, np.nan, np.full(n_items, np.nan))
    worth = min(size / _WORTH if size > 0 else 0.0 for size in sizes)
    number = int(np.clip(worth, _FEWEST, _MOST))
    own = [_blocks(draws, number, min(sizes) / size) for draws, size in zip(both, sizes, strict=True)]
    n_first, n_blocks = len(own[0]), sum(map(len, own))
    blocks = [draws.take(rows) for draws, parts in zip(both, own, strict=True) for rows in parts]
    masses = np.concatenate([_masses(draws, parts) for draws, parts in zip(both, own, strict=True)])
    pairs = np.where(_are_near(blocks, n_first), 0.0, np.multiply.outer(masses, masses))
    first = np.arange(n_blocks) < n_first
    exchanged = np.random.default_rng(0).permuted(np.tile(first, (_EXCHANGES + 1, 1)), axis=1)
    exchanged[0] = first

    shrinkage = number / min(sizes)  # successive blocks of slow chains are correlated, those exchanged are not

    def statistic(distances: Floats) -> Floats:
        values = half_energy(distances, exchanged, ~exchanged, pairs)
        values[0] /= 1.0 + shrinkage
        return _over_spread(values, distances)

    n_each = min(max(1, n_draws // max(n_first, n_blocks - n_first)), max(block.n_draws for block in blocks))
    losses = _mean_losses(blocks, metric, n_each)
    energy = float(half_energy(losses, first[np.newaxis], ~first[np.newaxis], pairs)[0])
    error = _error(losses, first, masses, pairs)
    unknown = Differences(energy, error, np.nan, np.nan, np.nan, np.full(n_items, np.nan))
    if worth < _FEWEST:
        return unknown
    numbers = np.array([block.samples.mean(block.n_clusters.astype(np.float64)) for block in blocks])
    numbers -= numbers.mean()
    similarities = _similarities_of(blocks)
    whole, items = np.zeros_like(losses), np.empty((len(similarities), _EXCHANGES + 1))
    for rows, of_item in zip(similarities, items, strict=True):
        products = rows @ rows.T
        whole -= products
        of_item[:] = statistic(-products)
    found = np.stack(
        [statistic(losses), statistic(whole), statistic(-np.multiply.outer(numbers, numbers)), items.max(axis=0)]
    )
    if np.isnan(found).any():  # all but one of the blocks have hardly any weight
        return unknown
    shares = np.stack([_tail_shares(values, values) for values in found])
    raw = np.append(shares[:3, 0], _tail_shares(items[:, 0], found[3]))
    corrected = 1.0 - _tail_shares(raw + ROUNDING, shares.min(axis=0))
    partitions, similar, number_of = corrected[:3].tolist()
    return Differences(energy, error, partitions, similar, number_of, corrected[3:])


def _with_weight(draws: PartitionDraws) -> PartitionDraws:
    """The draws of positive weight: a sample of blocks without weight has no mean."""
    rows = np.flatnonzero(draws.weights > 0)
    return draws if rows.size == draws.n_draws else draws.take(rows)


def _blocks(draws: PartitionDraws, number: int, share: float) -> list[Positions]:
    """Row numbers of this share of about `number` blocks: stretches of chains, by length, or groups of whole chains."""
    chains = draws.samples.sequences
    if len(chains) > number:
        groups = np.array_split(np.arange(len(chains)), number)
        parts = [np.concatenate([chains[k] for k in group]) for group in groups]
    else:
        numbers = [max(1, round(number * rows.size / draws.n_draws)) for rows in chains]
        parts = [part for rows, many in zip(chains, numbers, strict=True) for part in np.array_split(rows, many)]
    kept = 1.0 if np.isnan(share) else share
    return [part[: int(np.ceil(kept * part.size))] for part in parts]


def _masses(draws: PartitionDraws, blocks: list[Positions]) -> Floats:
    """Weight of each block, relative to the mean of the posterior's blocks."""
    weights = np.array([draws.weights[rows].sum() for rows in blocks])
    return weights / weights.mean()


def _are_near(blocks: list[PartitionDraws], n_first: int) -> Flags:
    """Whether two blocks are the same, or one follows the other in its chain."""
    near = np.eye(len(blocks), dtype=bool)
    for k in range(1, len(blocks)):
        one, next_one = blocks[k - 1].samples, blocks[k].samples
        follows = k != n_first and next_one.chain[0] == one.chain[-1] and bool(one.series)
        near[k, k - 1] = near[k - 1, k] = follows
    return near


def _mean_losses(blocks: list[PartitionDraws], metric: PartitionLoss, n_each: int) -> Floats:
    """Mean loss between `n_each` draws of each block and of each."""
    labels = np.concatenate([evenly(block, n_each).labels for block in blocks])
    losses = all_losses(PartitionDraws.of(labels), metric)
    return losses.reshape(len(blocks), n_each, len(blocks), n_each).mean(axis=(1, 3))


def _similarities_of(blocks: list[PartitionDraws]) -> Floats:
    """Similarities (n, blocks, m) of all items and of m of them in each block, less their means over the blocks."""
    n_items = blocks[0].n_items
    chosen = evenly_spaced(n_items, max(1, _SIMILARITIES // n_items))
    similarities = np.empty((n_items, len(blocks), chosen.size))
    for k, block in enumerate(blocks):
        similarities[:, k] = block.shared_similarity[:, chosen]
    similarities -= similarities.mean(axis=1, keepdims=True)
    return similarities


def _over_spread(values: Floats, distances: Floats) -> Floats:
    """Statistics over exchanges divided by their spread, equal where they differ by rounding."""
    spread = values.std()
    rounding = SAME * np.abs(distances).max()
    return np.zeros_like(values) if spread <= rounding else np.round(values / spread, 9)


def _tail_shares(values: Floats, null: Floats) -> Floats:
    """Share of the null distribution that is at least as large as each value."""
    return 1.0 - np.searchsorted(np.sort(null), values, side="left") / null.size


def _error(losses: Floats, first: Flags, masses: Floats, pairs: Floats) -> float:
    """Monte Carlo standard error of the energy, from the terms that are linear in a block."""
    variance = 0.0
    for own in (first, ~first):
        shares = masses[own] / masses[own].sum()
        inside = pairs[np.ix_(own, own)]
        counted = inside.sum(axis=1) > 0
        within = np.zeros(shares.size)
        within[counted] = np.average(losses[np.ix_(own, own)][counted], axis=1, weights=inside[counted])
        terms = losses[np.ix_(own, ~own)] @ (masses[~own] / masses[~own].sum()) - within
        terms -= shares @ terms
        variance += np.square(shares * terms).sum() * shares.size / (shares.size - 1)
    return float(np.sqrt(variance))


def evenly(draws: PartitionDraws, n_draws: int) -> PartitionDraws:
    """Take `n_draws` draws of equal weight, at even quantiles of the weights."""
    quantiles = (np.arange(n_draws) + 0.5) / n_draws - SAME
    taken = draws.take(draws.samples.at_quantiles(quantiles))
    return replace(taken, samples=taken.samples.weighted(np.ones(n_draws)))


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorComparison(InWords):
    """Differences between two posteriors over the same items; made by :func:`compare_posteriors`.

    Attributes
    ----------
    distances : xarray.Dataset
        Six differences over ``measure``. "energy" is half the energy distance: the mean loss between a draw of the
        first and a draw of the second posterior, less the average of the two mean losses within one posterior. "draws"
        is the Wasserstein distance between equally many draws of both posteriors. "particles" is the Wasserstein
        distance between a few weighted partitions of each. These have the unit of the loss. "mean similarity" and "rms
        similarity" are the mean absolute difference and the root mean square difference between the two similarity
        matrices, over pairs. "number of clusters" is its mean in the second posterior, less its mean in the first.

        Each has a ``value``, its Monte Carlo standard error ``mcse``, and ``ess``, the smaller effective sample size of
        the two posteriors (NaN for similarities). ``by_chance`` is the value expected for two samples of one posterior
        (NaN for particles). ``p_value`` is that of the hypothesis that the posteriors are equal, corrected for the
        number of tests (NaN for other measures, and if the draws are too few).
    ess : xarray.DataArray of shape (posterior,)
        Effective sample size for each chain: the smaller of the sizes of the partition and of the number of clusters.
        Chains that disagree have a small one.
    within : xarray.DataArray of shape (posterior,)
        The Wasserstein distance between the two halves of each posterior, over the posteriors' names. The halves are
        the first and the last chains or, with one chain, its first and its last draws. Each half has `n_matched` draws.
        NaN if a half has no draws of positive weight.
    items : xarray.Dataset
        Changes of the posterior similarities of each item, over the items. ``difference`` is the mean absolute change
        over the other items, and ``mcse`` its standard error. ``by_chance`` is the difference expected from Monte Carlo
        error alone, and ``p_value`` that of no difference, corrected for the number of tests. ``joined`` is the sum of
        the increases from the first posterior to the second: the expected number of co-members gained. ``left`` is the
        sum of the decreases: the expected number of co-members lost.
    similarity : xarray.DataArray of shape (posterior, n_items, n_items)
        The two posterior similarity matrices.
    transport : xarray.DataArray of shape (particle_a, particle_b)
        Probability that the optimal transport moves from each particle of a to each particle of b. Its row sums are the
        weights of a, its column sums the weights of b.
    particles_a, particles_b : xarray.DataArray of shape (particle_a, n_items) and (particle_b, n_items), dtype int32
    weights_a, weights_b : xarray.Dataset
        ``weight`` of each particle, its Monte Carlo standard error ``mcse`` and effective sample size ``ess``. The
        error is rough if ``ess`` is below 100.
    loss : PartitionLoss
        The metric between partitions.
    n_matched : int
        Number of draws of each posterior that were matched.
    stopped : str
        "interrupted" if Ctrl-C ended the search for particles, else empty. The particles are the best until then.
    doubt : str or None
        Sentences on posteriors whose chains disagree, by the R-hat of the distance from their first particle or of the
        number of clusters. None if these show no disagreement.
    """

    _figure = "psm.plot_posterior_comparison"

    distances: xr.Dataset = field(metadata=stored_as.table("posterior_{}", _DISTANCES))
    ess: xr.DataArray = field(metadata=stored_as.array("posterior_ess_per_chain", name="ess"))
    within: xr.DataArray = field(metadata=stored_as.array("posterior_within"))
    items: xr.Dataset = field(metadata=stored_as.table("company_{}", _OF_ITEMS, of_items=True))
    similarity: xr.DataArray = field(metadata=stored_as.array("posterior_similarity"))
    transport: xr.DataArray = field(metadata=stored_as.array("posterior_transport"))
    particles_a: xr.DataArray = field(metadata=stored_as.array("posterior_particles_a"))
    particles_b: xr.DataArray = field(metadata=stored_as.array("posterior_particles_b"))
    weights_a: xr.Dataset = field(metadata=stored_as.table("posterior_particle_a_{}", _OF_PARTICLES))
    weights_b: xr.Dataset = field(metadata=stored_as.table("posterior_particle_b_{}", _OF_PARTICLES))
    loss: PartitionLoss = field(metadata=stored_as.loss("posterior_"))
    n_matched: int = field(metadata=stored_as.attribute("posterior_matched"))
    stopped: str = field(default="", metadata=stored_as.attribute("posterior_stopped"))
    _of_runs: ClassVar = "posterior_independent"
    doubt: str | None = field(default=None, metadata=stored_as.attribute("posterior_doubt"))

    @property
    def difference(self) -> xr.DataArray:
        """Similarity matrix of the second posterior minus the matrix of the first, shape (n_items, n_items)."""
        a, b = (self.similarity.isel({self.similarity.dims[0]: row}, drop=True) for row in (0, 1))
        return (b - a).rename("difference")

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two posteriors."""
        first, second = self.within["posterior"].values.tolist()
        return first, second

    @property
    def verdict(self) -> str:
        """Whether the posteriors differ beyond Monte Carlo error, and in which respects, after doubts on chains."""
        return self._difference if self.doubt is None else f"{self.doubt} {self._difference}"

    @property
    def _difference(self) -> str:
        """Whether the posteriors differ, in a few sentences."""
        words, p_values, said = self.words, self._p_values, _SAID[self.words]
        both = said.both.format(*self.names)
        least = int(self.ess.values.argmin())
        size = float(self.ess[least])
        known = f"an unknown {words.size}" if np.isnan(size) else f"an {words.size} of {size:.2g}"
        of_ess = f"{self.names[least]} has {known}{said.each}"
        if np.isnan(list(p_values.values())).any():
            return f"There are too few effective {words.draws} to test whether {both} differ: {of_ess}. {said.more}"
        is_rough = size < said.reliable
        rough = f" The p-values are rough, as {of_ess}: run longer chains." if is_rough else ""
        found = [name for name, p_value in p_values.items() if p_value <= LEVEL]
        if found:
            reasons = display.joined([self._in_words(name, p_values[name]) for name in found])
            return f"{display.capitalized(both)} {'seem to ' * is_rough}differ in {reasons}.{rough}"
        return (
            f"No difference between {both} is beyond {words.either('Monte Carlo error', 'chance')}: the smallest "
            f"p-value of the tests of {display.joined(list(p_values))} is {min(p_values.values()):.2g}, corrected for "
            f"their number. This does not show that {said.equal}.{rough}"
        )

    @property
    def _p_values(self) -> dict[str, float]:
        """P-value of each test; of the items, the smallest."""
        of = self.distances["p_value"].sel(measure=["energy", "rms similarity", "number of clusters"]).values.tolist()
        names = ("partitions", "similarities", "numbers of clusters", "co-members of items")
        return dict(zip(names, [*of, float(stored_as.own_in(self.items, "p_value").min(skipna=False))], strict=True))

    def _in_words(self, name: str, p_value: float) -> str:
        """What differs, by how much, and the p-value."""
        of = self.distances["value"]
        if name == "partitions":
            energy = display.quantity(float(of.sel(measure="energy")), self.loss.unit, 2)
            how = _SAID[self.words].energy.format(energy)
        elif name == "similarities":
            how = f"{float(of.sel(measure='rms similarity')):.2g} in the root mean square"
        elif name == "numbers of clusters":
            how = f"{float(of.sel(measure='number of clusters')):+.2g} in the mean"
        else:
            table = self.to_dataframe()
            how = display.listed(table.index[table["p_value"] <= LEVEL].tolist(), _MOST_NAMED)
        return f"{name} ({how}; p-value {p_value:.2g})"

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the differences of each item.

        Returns
        -------
        pandas.DataFrame
            A row for each item, the largest difference first.
        """
        columns = {name: stored_as.own_in(self.items, name).to_series() for name in _OF_ITEMS}
        table = pd.DataFrame({name: one.array for name, one in columns.items()}, columns["difference"].index)
        return table.sort_values("difference", ascending=False, kind="stable")

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        lines, words = [], self.words
        for name in _MEASURES:
            row = self.distances.sel(measure=name)
            value, error, size, chance, p_value = (float(row[column]) for column in _DISTANCES)
            if np.isnan(value):
                continue
            unit = self.loss.unit if name in ("energy", "draws", "particles") else ""
            text = display.with_error(value, error, size, words, unit)
            if not np.isnan(chance):
                text += f", by chance {display.quantity(chance, unit, 4)}"
            shown = words.draws if name == "draws" else name
            lines.append((shown, text if np.isnan(p_value) else f"{text}, p-value {p_value:.2g}"))
        ends = ", ".join(
            f"{value:.4g} within {name}" for name, value in zip(self.names, self.within.values, strict=True)
        )
        halves = ("halves", f"{ends} ({self.n_matched:,} {words.draws} each, {display.short_name_of(self.loss)})")
        lines.insert([name for name, _ in lines].index(words.draws) + 1, halves)
        lines.insert(0, ("verdict", self.verdict))
        for name, table in zip(self.names, (self.weights_a, self.weights_b), strict=True):
            weights = zip(*(table[column].values.tolist() for column in _OF_PARTICLES), strict=True)
            listed = [display.with_error(weight, mcse, ess, words) for weight, mcse, ess in weights]
            lines.append((f"particles of {name}", "; ".join(listed)))
        if self.stopped:
            lines.append(("interrupted", "Ctrl-C ended the search for particles; a longer one may find more"))
        n_items, dim = self.similarity.shape[1], self.similarity.dims[1]
        title = f"PosteriorComparison: {display.counted_items(n_items, dim)}, largest difference of co-members first"
        return title, lines, self.to_dataframe()


def compare_posteriors(
    a: Any,
    b: Any,
    *,
    names: Sequence[str] = ("a", "b"),
    loss: str | PartitionLoss | None = None,
    n_draws: int = 500,
    n_particles: int | Literal["auto"] = "auto",
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PosteriorComparison:
    """Test whether two posteriors over the same items differ, and measure by how much and in which items.

    Parameters
    ----------
    a, b : PartitionDraws or any posterior that :func:`summarize` takes
        Items are matched by their coordinate if both have one, else by position.
    names : sequence of two str
        Names of the two posteriors.
    loss : str or PartitionLoss, optional
        A loss that is a metric, by default "vi".
    n_draws : int
        Number of draws of each posterior whose losses are computed, at even quantiles of the weights. For matching, at
        most half of the draws of either posterior.
    n_particles : int or "auto"
        Number of particles of each posterior; "auto" takes one for each separated mode, see :func:`particles`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It seeds the search for particles.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PosteriorComparison
        Distances between the posteriors, and the differences of each item.

    Raises
    ------
    ValueError
        If the two posteriors do not have the same items, `names` are equal, the loss is not a metric, or draws are
        invalid, see :func:`as_partition_draws`.
    TypeError
        If `names` are not two strings.
    MemoryError
        If the similarity matrices take more than the memory budget.

    See Also
    --------
    PosteriorComparison.plot : the differences as a figure.
    partition_loss : the loss between two partitions.

    Notes
    -----
    The Wasserstein distance between two distributions of partitions is the minimum expected loss between a partition
    from one and a partition from the other, over all joint distributions. For m draws of each, it is the minimum mean
    loss of a one-to-one matching, computed exactly. It is above 0 even for two samples of one posterior. ``by_chance``
    is therefore the mean of the two distances between halves, also with m draws each. A large distance between halves
    shows that chains disagree.

    Half the energy distance [1]_ is estimated without bias: it is 0 on average for equal posteriors. It is computed, as
    are the differences of similarities, of each item's similarities and of the mean number of clusters, for the
    posteriors and for 999 random exchanges of blocks of draws between them. Blocks have an effective size of 10 or
    more. P-values are corrected for these four tests and for the number of items, so that about 5% of
    comparisons of equal posteriors have one of at most 0.05. This holds from an effective sample size of 50 for each
    chain on. The share is larger if some items mix much more slowly than the partition; see the page on comparing.

    Let D_ij be the change of the similarity of items i and j, and s_ij its standard error from batches of the draws,
    as in :func:`diagnostics.similarity_mcse`. By chance alone, abs(D_ij) has the mean sqrt(2 / pi) s_ij. This is rough
    if a chain has fewer than 50 effective draws. In the error of a mean of abs(D_ij), the sign of D_ij is replaced by
    erf(D_ij / (s_ij sqrt(2))), which is near 0 for pairs without a clear difference. The error of the distance between
    draws comes from the mean potentials of the dual problem [2]_. All errors assume that a and b are independent runs,
    and the errors of distances that the posteriors differ.

    References
    ----------
    .. [1] Szekely and Rizzo (2013), Journal of Statistical Planning and Inference 143(8), 1249-1272.
       https://doi.org/10.1016/j.jspi.2013.03.018
    .. [2] Sommerfeld and Munk (2018), Journal of the Royal Statistical Society B 80(1), 219-238.
       https://doi.org/10.1111/rssb.12236

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> a = [[0, 0, 0, 1], [0, 0, 1, 1]] * 8
    >>> b = [[0, 0, 1, 1]] * 16
    >>> comparison = pc.compare_posteriors(a, b, loss="binder", n_particles=1, random_seed=1)
    >>> comparison.to_dataframe()[["difference", "joined", "left"]].round(3)
          difference  joined  left
    item
    2          0.500     0.5   1.0
    0          0.167     0.0   0.5
    1          0.167     0.0   0.5
    3          0.167     0.5   0.0
    """
    a, b = as_draws(a).in_fixed_order(), as_draws(b).in_fixed_order()
    if not isinstance(names, (list, tuple)) or [isinstance(name, str) for name in names] != [True, True]:
        raise TypeError(f"`names` must be two strings, the names of the posteriors; got {names!r}.")
    if names[0] == names[1]:
        raise ValueError(f"`names` must differ; got {names[0]!r} twice.")
    metric = as_metric(as_loss(loss, kind=PartitionLoss), "a distance")
    check_count("n_draws", n_draws)
    memory.check(64 * a.n_items**2, f"The comparison of similarity matrices of {a.n_items} items")
    b = same_items(b, a.items, "b")
    seed = int(as_generator(random_seed).integers(2**63))  # the same for both: equal posteriors get equal particles
    plain = a.labels_only(), b.labels_only()
    n_matched = max(1, min(n_draws, a.n_draws // 2, b.n_draws // 2))
    even = [evenly(draws, n_matched) for draws in plain]
    distance, *potentials = matched(loss_matrix(even[0].labels, even[1], metric))
    between = _with_error(distance, even, potentials)
    within = np.array([_distance_within(draws, n_matched, metric) for draws in plain])
    sizes = smaller_effective_size(plain[0]), smaller_effective_size(plain[1])
    tests = differences((a, b), sizes, metric, n_draws)
    of_pairs, of_items = _rows_of_similarities(a, b)
    both: list[Particles] = []
    for draws in plain:  # after Ctrl-C, only the first particles found
        seconds = NO_TIME if any(one.stopped for one in both) else None
        both.append(
            particles(draws, n_particles, loss=metric, seconds=seconds, random_seed=seed, progressbar=progressbar)
        )
    moved, plan = _between_particles(plain, both, metric)
    rows = np.array(
        [
            (tests.energy, tests.mcse, min(sizes), 0.0, tests.of_partitions),
            (*between, within.mean(), np.nan),
            (*moved, np.nan, np.nan),
            (*of_pairs[0], np.nan),
            (*of_pairs[1], tests.of_similarities),
            (*_row_of_numbers(a, b), tests.of_numbers),
        ]
    )
    of_items["p_value"] = tests.of_items
    columns = {name: ("measure", column) for name, column in zip(_DISTANCES, rows.T, strict=True)}
    per_chain = [size / len(draws.samples.sequences) for size, draws in zip(sizes, plain, strict=True)]
    matrices = np.stack([draws.shared_similarity for draws in (a, b)])
    sides = {"posterior": list(names)}
    return PosteriorComparison(
        distances=xr.Dataset(columns, {"measure": list(_MEASURES)}),
        ess=xr.DataArray(per_chain, sides, ("posterior",), "ess"),
        within=xr.DataArray(within, sides, ("posterior",), "within"),
        items=a.items.dataset(of_items),
        similarity=a.items.pair_array(matrices, "similarity", ("posterior",), sides),
        transport=xr.DataArray(plan, dims=("particle_a", "particle_b"), name="transport"),
        particles_a=_partitions_of_particles(a, both[0], "a"),
        particles_b=_partitions_of_particles(a, both[1], "b"),
        weights_a=_weights_of_particles(both[0], "a"),
        weights_b=_weights_of_particles(both[1], "b"),
        loss=metric,
        n_matched=n_matched,
        stopped="interrupted" if any(one.stopped for one in both) else "",
        words=a.words if a.words is b.words else DRAWS,
        doubt=_doubts(plain, both, metric, names),
    )


def _doubts(
    plain: tuple[PartitionDraws, PartitionDraws], both: list[Particles], metric: PartitionLoss, names: Sequence[str]
) -> str | None:
    """Sentences on chains of each posterior that disagree, if there are any."""
    said = []
    for name, draws, found in zip(names, plain, both, strict=True):
        losses = loss_matrix(found.partitions.values[:1], draws, metric)
        if (doubt := doubt_of_losses(draws, losses[0])) is not None:
            said.append(f"The chains of {name} {doubt}.")
    return " ".join(said) or None


def _weights_of_particles(of: Particles, name: str) -> xr.Dataset:
    columns = of.weights, of.weights_mcse, of.weights_ess
    return xr.Dataset(
        {column: (f"particle_{name}", one.values) for column, one in zip(_OF_PARTICLES, columns, strict=True)}
    )


def _partitions_of_particles(a: PartitionDraws, of: Particles, name: str) -> xr.DataArray:
    return a.items.array(of.partitions.values, f"particles_{name}", (f"particle_{name}", ...))


def _with_error(
    value: float, both: Sequence[PartitionDraws], potentials: Sequence[Floats]
) -> tuple[float, float, float]:
    """A value, its error from the mean of a potential or term of each posterior, and the smaller effective size."""
    each = (draws.samples.mcse_and_ess(potential) for draws, potential in zip(both, potentials, strict=True))
    errors, sizes = zip(*each, strict=True)
    return value, float(np.hypot(*errors)), float(np.fmin(*sizes))


def _distance_within(draws: PartitionDraws, n_draws: int, metric: PartitionLoss) -> float:
    """Wasserstein distance between the first and the last chains, or between the halves of a single chain."""
    chains = draws.samples.sequences
    if len(chains) == 1:
        chains = np.array_split(chains[0], 2)
    middle = len(chains) // 2
    halves = [np.concatenate(some) for some in (chains[:middle], chains[middle : 2 * middle])]
    if min(half.size for half in halves) == 0 or min(draws.weights[half].sum() for half in halves) == 0:
        return np.nan
    first, second = (evenly(draws.take(half), n_draws) for half in halves)
    return matched(loss_matrix(first.labels, second, metric))[0]


def _between_particles(
    plain: tuple[PartitionDraws, PartitionDraws], both: list[Particles], metric: PartitionLoss
) -> tuple[tuple[float, float, float], Floats]:
    """Wasserstein distance between two sets of particles, its error from the errors of the weights, and the plan."""
    arrival = PartitionDraws.of(both[1].partitions.values)
    costs = loss_matrix(both[0].partitions.values, arrival, metric)
    value, plan, *potentials = transported(costs, both[0].weights.values, both[1].weights.values)
    of_draws = [potential[one.assignment.values] for one, potential in zip(both, potentials, strict=True)]
    return _with_error(value, plain, of_draws), plan


def _rows_of_similarities(a: PartitionDraws, b: PartitionDraws) -> tuple[list[tuple[float, ...]], dict[str, Floats]]:
    """The two rows of similarities in the table of distances, and the columns of the table of items."""
    own, n = [draws.shared_similarity for draws in (a, b)], a.n_items
    difference = own[1] - own[0]
    others = max(1, n - 1)
    errors = np.hypot(similarity_errors(a), similarity_errors(b))
    with np.errstate(divide="ignore", invalid="ignore"):  # pairs co-clustered in all draws or in none
        signs = np.where((errors == 0) | np.isnan(errors), np.sign(difference), erf(difference / errors / np.sqrt(2)))

    def along(moved: Floats) -> Floats:
        """Changes of each item, of the mean and of the mean square, to first order, as similarities change by this."""
        of_items = (signs * moved).sum(axis=1) / others
        return np.append(of_items, [of_items.mean(), (difference * moved).sum() / (n * others)])

    squares = np.zeros(n + 2)
    for draws, similarity in zip((a, b), own, strict=True):
        mean_of = partial(_moved_in, draws, similarity, along)
        squares += np.square(draws.samples.error_by_batches(np.zeros(n + 2), mean_of))
    of_items, of_mean, of_square = squares[:n], float(squares[n]), float(squares[n + 1])
    items = np.abs(difference).sum(axis=1) / others
    rms = float(np.sqrt(np.square(difference).sum() / (n * others)))
    chance = _OF_NORMAL * errors.sum(axis=1) / others
    error = float(np.sqrt(of_square)) / rms if rms > 0 else 0.0
    columns = {
        "difference": items,
        "mcse": np.sqrt(of_items),
        "by_chance": chance,
        "joined": np.maximum(difference, 0.0).sum(axis=1),
        "left": np.maximum(-difference, 0.0).sum(axis=1),
    }
    of_chance = float(np.sqrt(np.square(errors).sum() / (n * others)))
    rows = (float(items.mean()), float(np.sqrt(of_mean)), np.nan, float(chance.mean())), (rms, error, np.nan, of_chance)
    return list(rows), columns


def _moved_in(draws: PartitionDraws, similarity: Floats, along: Callable[[Floats], Floats], rows: Positions) -> Floats:
    """Function of how far the similarities of some draws are from those of all."""
    return along(draws.take(rows).shared_similarity - similarity)


def _row_of_numbers(a: PartitionDraws, b: PartitionDraws) -> tuple[float, float, float, float]:
    """Difference of the mean numbers of clusters, its error, the smaller effective sample size, and 0 by chance."""
    numbers = [draws.n_clusters.astype(np.float64) for draws in (a, b)]
    means = [float(draws.samples.mean(one)) for draws, one in zip((a, b), numbers, strict=True)]
    return means[1] - means[0], *_with_error(0.0, (a, b), numbers)[1:], 0.0


def matched(costs: Floats) -> tuple[float, Floats, Floats]:
    """Minimum mean cost of a one-to-one matching of rows with columns (m, m), and the dual potentials (m,) of both.

    The means of the potentials add up to this cost. The sum of a row's and a column's potential never exceeds their
    cost. Potentials are not unique: the mean of the two extreme solutions is returned.
    """
    rows, columns = assignment(costs)
    paired = costs[:, columns]
    own = np.diagonal(paired).copy()
    excess = paired - own[:, np.newaxis]  # extra cost if a row takes another row's column
    tiny = ROUNDING * float(costs.max(initial=0.0))
    lowest, _ = cheapest_paths(excess, own / 2, tiny)  # the same for rows and columns
    highest = -cheapest_paths(excess.T, -own / 2, tiny)[0]
    of_pairs = (lowest + highest) / 2
    of_columns = np.empty(own.size)
    of_columns[columns] = of_pairs
    return float(costs[rows, columns].mean()), own - of_pairs, of_columns


def transported(costs: Floats, weights: Floats, others: Floats) -> tuple[float, Floats, Floats, Floats]:
    """Minimum cost of moving weights (n,) to weights (m,), the plan (n, m), and potentials (n,) and (m,)."""
    from scipy.optimize import linprog

    n, m = costs.shape
    leaving, arriving = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    solution = linprog(
        costs.ravel(),
        A_eq=np.vstack([leaving, arriving]),
        b_eq=np.concatenate([weights / weights.sum(), others / others.sum()]),
        method="highs",
    )
    potentials = solution.eqlin.marginals
    return float(solution.fun), solution.x.reshape(n, m), potentials[:n], potentials[n:]
