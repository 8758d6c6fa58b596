"""particles(): the posterior as a few weighted partitions, with a verdict on the number of modes.

A mode is a set of draws around a partition of its own: the statistic that separates modes is not calibrated.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import ndtri

from posterior_consensus.answers.alignment import numbered_as, numbers_in
from posterior_consensus.answers.modes import FEWEST
from posterior_consensus.answers.particle_search import FoundParticles, ParticleSearch, extended
from posterior_consensus.answers.similarity_matrix import posterior_similarity_matrix
from posterior_consensus.ensemble.chains import difference_is_real, largest_difference
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix, losses_between
from posterior_consensus.ensemble.partitions import Labels, alone, canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.display import counted, is_rough, joined, ordinal
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.words import Words
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count, is_integer, warn
from posterior_consensus.runtime.executor import Clock, Executor
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.conversion import as_draws, own_partition

_NEARLY_NONE = 0.05  # share of a chain's draws; 1 - 0.05 is nearly all
_LEVEL = 0.01  # of all tests together
_LEAST_ESS = 10.0  # of a chain; fewer effective draws must not widen its error, because they are the fault to detect
_RARE = 0.02  # share of the draws of a mode, below which a search often misses it, however many draws there are
_HALF = 0.5  # share of the draws of the smaller of two modes, at most
_TOO_FEW = (
    "Cannot tell one mode from several: the effective sample size is too small for two modes to be found. "
    "Run longer chains."
)
_MAY_BE_MORE = "The search ended early, so there may be more {}."
_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
_STATUSES_IN_WORDS = {
    "one mode": "one {0.mode}",
    "several modes": "several {0.mode}s",
    "chains in different modes": "{0.chains} in different {0.mode}s",
}
_FIRST = 0.25  # share of the time for the consensus partition
_STORED_SAMPLE = {name: f"particle_{name}" for name in ("sample", "chain", "draw", "weight")}


class Visits(NamedTuple):
    """Each chain's share of its draws at each mode, and whether it differs from the other chains."""

    names: list[object]
    shares: Floats  # (C, M); NaN for a chain without weight
    differs: Flags  # (C, M), from the other chains by more than Monte Carlo error

    @property
    def apart(self) -> Flags:
        """Whether (C, M) a chain differs and has nearly all or nearly none of its draws at a mode."""
        extreme = (self.shares < _NEARLY_NONE) | (self.shares > 1 - _NEARLY_NONE)
        return self.differs & extreme

    @property
    def belonging(self) -> tuple[object, ...]:
        """Names of the chains that stay in different modes."""
        return tuple(self.names[c] for c in np.flatnonzero(self.apart.any(axis=1)))


def visits(draws: PartitionDraws, indicators: Floats) -> Visits:
    """Compute the shares of each chain's draws at each mode, from the indicators (M, N) of the draws.

    A chain differs if its share differs from the share of the other chains by more than Monte Carlo error, at level
    0.01 over all chains and modes (Bonferroni). Let p be the share over all chains, and m and m' the effective sample
    sizes of the chain and of the others. The variance of the error is p (1 - p) (1 / m + 1 / m'). The effective sample
    sizes use the autocorrelation of the indicator, averaged over the chains in which it changes. They are at least ten:
    otherwise the large error of a chain that does not mix would hide that it does not.
    """
    chains = draws.samples.chains
    names = draws.samples.chain_names
    shares = np.full((len(chains), len(indicators)), np.nan)
    efficiency = np.full_like(shares, np.nan)
    for c, rows in enumerate(chains):
        if draws.weights[rows].sum() > 0:
            samples = draws.samples.take(rows)
            shares[c] = samples.mean(indicators[:, rows])
            error = samples.mcse(indicators[:, rows])
            moves = error > 0
            variance = shares[c] * (1 - shares[c])
            efficiency[c, moves] = variance[moves] / np.square(error[moves]) / samples.effective_draws
    lengths = np.array([draws.samples.take(rows).effective_draws for rows in chains])
    return Visits(names, shares, _differs(shares, efficiency, lengths))


def _differs(shares: Floats, efficiency: Floats, lengths: Floats) -> Flags:
    """Whether (C, M) a chain's share differs from the share of the other chains by more than Monte Carlo error."""
    known = np.flatnonzero(~np.isnan(shares).any(axis=1))
    differs = np.zeros(shares.shape, bool)
    if known.size < 2:
        return differs
    bound = -ndtri(_LEVEL / 2 / (known.size * shares.shape[1]))
    for k in range(shares.shape[1]):
        own = efficiency[known, k]
        moving = ~np.isnan(own)
        each = 1 / float(np.mean(1 / own[moving])) if moving.any() else 0.0
        ess = np.minimum(np.maximum(each * lengths[known], _LEAST_ESS), lengths[known])
        for at, c in enumerate(known):
            others = np.delete(np.arange(known.size), at)
            elsewhere = float(shares[known[others], k] @ ess[others] / ess[others].sum())
            pooled = float(shares[known, k] @ ess / ess.sum())
            variance = pooled * (1 - pooled) * (1 / ess[at] + 1 / ess[others].sum())
            differs[c, k] = abs(shares[c, k] - elsewhere) > bound * np.sqrt(variance) + ROUNDING
    return differs


def judged(
    draws: PartitionDraws,
    at_modes: Floats,
    number: int | None,
    supposed: Visits | None,
    far: str,
    least: float,
    stopped: str,
) -> tuple[str, tuple[object, ...], str]:
    """Return the status, the chains that stay in modes, and the verdict in words.

    `at_modes` (M, N) indicates the draws at each mode, and `supposed` are the visits of each mode expected under
    independence, None if these equal the modes. `number` particles were requested; a mode must have the share `least`
    of the draws to be found. `far` are the distances between partitions, and `stopped` why the search ended early.
    """
    n_modes = len(at_modes)
    if not draws.samples.series:
        return _judged_runs(draws, at_modes, number, least, stopped)
    if not draws.samples.has_errors:
        return "unknown", (), "A chain has fewer than four draws, too few to find modes: run longer chains."
    if number == 1:
        return "unknown", (), "One particle was requested, the consensus partition; modes were not searched for."
    if n_modes == 1 and stopped:
        return "unknown", (), _unfinished(stopped, draws.samples.words)
    doubt = "" if supposed is None else _undecided(supposed, far, n_modes)
    if n_modes == 1:
        if doubt := doubt or _of_chains_apart(draws):
            return "unknown", () if supposed is None else supposed.belonging, doubt
        if least > _HALF:
            return "unknown", (), _TOO_FEW
        divided = f"The draws have one mode: no valley lies between the {number} particles, which divide it."
        unseen = missed(draws.samples.words, "the draws", least)
        alone = f"No second mode was found; {unseen}. If the chains agree, report the consensus partition."
        return "one mode", (), alone if number is None else divided
    visited, (errors, sizes) = visits(draws, at_modes), draws.samples.mcse_and_ess(at_modes)
    verdict = _of_modes(visited, draws.samples.mean(at_modes), errors, sizes)
    if number is not None and number != n_modes:
        more = f"The {number} particles divide them."
        verdict += f" {more}" if number > n_modes else f" {counted(number, 'particle')} are too few for them."
    verdict = " ".join(filter(None, [verdict, doubt, stopped and _MAY_BE_MORE.format("modes")]))
    return "chains in different modes" if visited.belonging else "several modes", visited.belonging, verdict


def _judged_runs(
    draws: PartitionDraws, at_modes: Floats, number: int | None, least: float, stopped: str
) -> tuple[str, tuple[object, ...], str]:
    """Result of :func:`judged` for independent runs, whose groups are those that the user named."""
    n_modes, samples = len(at_modes), draws.samples
    if not samples.has_errors:
        return "unknown", (), "There are fewer than four runs, too few to find kinds of them: add runs."
    if number == 1:
        return (
            "unknown",
            (),
            "One particle was requested, the consensus partition; kinds of runs were not searched for.",
        )
    if n_modes == 1:
        if stopped:
            return "unknown", (), _unfinished(stopped, samples.words)
        if least > _HALF:
            return "unknown", (), "There are too few runs to tell one kind of them from several: add runs."
        divided = f"The runs are of one kind: no valley lies between the {number} particles, which divide them."
        alone = f"No second kind of runs was found; {missed(samples.words, 'the runs', least)}."
        return "one mode", (), alone if number is None else divided
    visited, shares = visits(draws, at_modes), samples.mean(at_modes)
    errors = samples.probability_errors(shares, samples.mcse(at_modes))
    known = joined([f"{one:.2f} (SE {error:.2g})" for one, error in zip(shares, errors, strict=True)])
    verdict = f"The runs are of {_word(n_modes).lower()} kinds, with shares of {known} of the runs."
    if visited.belonging:
        verdict = f"{_kinds_of_groups(visited)}. {verdict} The shares depend on the number of runs in each group."
    elif visited.differs.any():
        verdict += " Their shares differ between the groups."
    elif len(visited.names) > 1 and not (visited.shares == 0).any():
        verdict += f" Every group has {'both' if n_modes == 2 else 'all of them'}."
    if number is not None and number != n_modes:
        more = f"The {number} particles divide them."
        verdict += f" {more}" if number > n_modes else f" {counted(number, 'particle')} are too few for them."
    if stopped:
        verdict += f" {_MAY_BE_MORE.format('kinds')}"
    return "chains in different modes" if visited.belonging else "several modes", visited.belonging, verdict


def _unfinished(stopped: str, words: Words) -> str:
    """Verdict if no second mode was found before the search ended early."""
    return f"The search for {words.mode}s {display.ended(stopped, 'was')}: whether there are several is unknown."


def _kinds_of_groups(visited: Visits) -> str:
    """Name the groups of runs that are of one kind, and the kinds that other groups hardly have."""
    stay = visited.shares > 1 - _NEARLY_NONE
    miss = visited.apart & ~stay.any(axis=1, keepdims=True)
    clauses = []
    for what, where in (("nearly all runs of {} are of the {} kind", stay), ("hardly any of {} of the {} kind", miss)):
        for k in np.flatnonzero(where.any(axis=0)).tolist():
            names = joined([visited.names[c] for c in np.flatnonzero(where[:, k])])
            clauses.append(what.format(names, ordinal(k)))
    return display.capitalized(joined(clauses))


def _of_modes(visited: Visits, weights: Floats, errors: Floats, sizes: Floats) -> str:
    """Verdict on several modes, from their weights with errors and effective sample sizes."""
    number = weights.size
    if visited.belonging:
        places = _whereabouts(visited)
        return (
            f"{places[:1].upper()}{places[1:]}: the sampler does not mix between modes, so the weights do "
            "not estimate probabilities."
        )
    form = f"have {_word(number).lower()} modes"
    known = [
        f"{weight:.2f}" if np.isnan(error) else f"{weight:.2f} (MCSE {error:.2g})"
        for weight, error in zip(weights, errors, strict=True)
    ]
    weighted = joined(known)
    absent = np.argwhere(visited.shares == 0)
    all_visit = f"The draws {form}: every chain visits {'both' if number == 2 else 'all of them'}"
    least = float(sizes.min())
    rough = f" Their smallest effective sample size is {least:,.0f}, so they and their errors are rough."
    if len(visited.names) == 1:
        return (
            f"The draws of one chain {form}, with weights {weighted}.{rough * is_rough(least)} It is unknown whether "
            "another chain would find the same modes: run at least four from different starts."
        )
    if absent.size:
        chain, k = absent[0]
        return (
            f"The draws {form}, with weights {weighted}. Chain {visited.names[chain]} has not visited the {ordinal(k)} "
            "mode, which may be chance: run longer chains."
        )
    if visited.differs.any():
        return (
            f"{all_visit}, but for different shares of its draws. Run longer chains: the weights {weighted} are not "
            "settled."
        )
    if is_rough(least):
        return f"{all_visit}, with weights {weighted}.{rough} Run longer chains before reporting them."
    return f"{all_visit}; report them with their weights {weighted}."


def _undecided(visited: Visits, far: str, known: int) -> str:
    """Verdict if there are too few effective draws to decide whether there are more modes than the known ones."""
    number = visited.shares.shape[1]
    places = f"; {_whereabouts(visited)}" if visited.belonging else ""
    question = "one mode from several" if known == 1 else f"{_word(known).lower()} modes from more"
    return (
        f"Cannot tell {question}: successive draws are so correlated that the effective sample size is too "
        f"small. {_word(number)} modes have partitions at a distance of {far}, with few draws between "
        f"them{places}. Run longer chains, or a sampler that mixes better."
    )


def _of_chains_apart(draws: PartitionDraws) -> str:
    """Verdict if one mode is found although the chains disagree on a pair of items; else empty."""
    some = draws.labels_only().without_zero_weights().as_sampled().of_some_items()[1]
    difference = largest_difference(some)
    if not difference_is_real(difference, some.n_items, some.samples):
        return ""
    first, second = some.items.names[list(difference.items)]
    return (
        f"Cannot tell one mode from several: the chains do not agree. Items {first} and {second} are "
        f"co-clustered in {difference.shares[0]:.0%} of the draws of chain {difference.chains[0]} and "
        f"{difference.shares[1]:.0%} of chain {difference.chains[1]}, although no second mode was found. Run longer "
        "chains, or a sampler that mixes better."
    )


def missed(words: Words, whole: str, share: float) -> str:
    """Clause on modes that a search may miss, given the smallest share of the whole that it can find."""
    hidden = f"one that the spread of the {words.draws} hides"
    return f"a {words.mode} below {seen_from(share)} of {whole}, or {hidden}, may be missed"


def seen_from(share: float) -> str:
    """Percentage, rounded up, from which modes that are clearly apart are seen, given the smallest that can be."""
    return display.at_most(max(share, _RARE), ".0%")


def _whereabouts(visited: Visits) -> str:
    """Name the chains that stay in one mode, and the modes that other chains hardly ever visit."""
    stay = visited.shares > 1 - _NEARLY_NONE
    miss = visited.apart & ~stay.any(axis=1, keepdims=True)
    clauses = []
    for what, where in (("stay{} in", stay), ("hardly ever visit{}", miss)):
        for k in np.flatnonzero(where.any(axis=0)).tolist():
            names = [visited.names[c] for c in np.flatnonzero(where[:, k])]
            verb = what.format("s" * (len(names) == 1))
            clauses.append(f"chain{'s' * (len(names) > 1)} {joined(names)} {verb} the {ordinal(k)} mode")
    return ", ".join(clauses)


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else str(number)


@dataclass(frozen=True, eq=False, repr=False)
class Particles(InWords):
    """A few weighted partitions nearest to the posterior, heaviest first; made by :func:`particles`.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (particle, n_items), dtype int32
        The particles, the heaviest first. A cluster takes the number of its matched cluster in the given partition;
        clusters without a match get the next numbers. Without one, clusters are numbered by first appearance.
    weights, weights_mcse, weights_ess : xarray.DataArray of shape (particle,)
        Posterior probability of each particle's region (the draws nearest to it), its Monte Carlo standard error, and
        its effective sample size; below 100 the error is rough.
    mode : xarray.DataArray of shape (particle,), dtype int64
        The mode that each particle belongs to. Modes are numbered by weight, the heaviest 0.
    distance, distance_mcse, distance_ess : float
        Mean loss of the nearest particle over the draws, in the loss's unit, which is a Wasserstein distance if the
        loss is a metric. With its Monte Carlo standard error and effective sample size; below 100 the error is rough.
    loss_in_region : xarray.DataArray of shape (particle,)
        Mean loss of each particle over the draws of its region.
    assignment : xarray.DataArray of shape (sample,), dtype int32
        The particle nearest to each draw, with coordinates ``chain``, ``draw`` and ``weight``.
    by_chain : xarray.DataArray of shape (chain, particle)
        Each chain's share of its draws in each region; NaN for a chain without weight.
    path : xarray.Dataset
        ``distance`` and ``mcse`` over ``n_particles``, from 1 particle on.
    loss : PartitionLoss
        The loss between partitions.
    status : {"one mode", "several modes", "chains in different modes", "unknown"}
        Modes found; of independent runs, "chains" are their groups, and modes are kinds of runs. "unknown"
        if there are too few effective draws to distinguish one group from several, if the chains disagree although no
        second mode was found, or if one particle was requested.
    least_share : float
        Share of the draws below which a group cannot be found: 7.4 effective draws. A group below 2% of many draws is
        often missed.
    chains : tuple
        Names of the chains that stay in different modes.
    verdict : str
        The result in words, with a recommendation.
    n_searched : int
        Number of items in the search: all items, or 10,000 random items beyond 50 million labels. `path` refers to
        these items.
    n_draws_searched : int
        Number of draws in the search, to which `path` refers: all, or in a summary of many labels fewer, evenly spaced.
        Weights, distance and all else are of all draws.
    stopped : str
        Why the search ended early: "seconds", "interrupted" for Ctrl-C, or empty. One particle is then no claim that
        the draws form one group.
    draws : PartitionDraws or None
        The draws; None for particles that were read from a file.
    noise_from : int, or None
        For runs with noise, the number from which on a cluster is a single item of noise: an item alone in the
        particle, which at least half of the runs in its region call noise.
    """

    _figure = "strips.plot_particles"

    partitions: xr.DataArray = field(metadata=stored_as.array("particle_partition", of_items=True))
    weights: xr.DataArray = field(metadata=stored_as.array("particle_weight_of"))
    weights_mcse: xr.DataArray = field(metadata=stored_as.array("particle_weight_mcse"))
    weights_ess: xr.DataArray = field(metadata=stored_as.array("particle_weight_ess"))
    mode: xr.DataArray = field(metadata=stored_as.array("particle_mode"))
    distance: float = field(metadata=stored_as.number("particle_distance", measured=True))
    distance_mcse: float = field(metadata=stored_as.number("particle_distance_mcse", measured=True))
    distance_ess: float = field(metadata=stored_as.number("particle_distance_ess"))
    loss_in_region: xr.DataArray = field(metadata=stored_as.array("particle_loss_in_region"))
    assignment: xr.DataArray = field(metadata=stored_as.array("particle_assignment", _STORED_SAMPLE))
    by_chain: xr.DataArray = field(
        metadata=stored_as.array(
            "particle_by_chain", {"chain": "particle_chain_name"}, in_words={"chain": "particle_chains"}
        )
    )
    path: xr.Dataset = field(metadata=stored_as.table({"distance": "particle_path", "mcse": "particle_path_mcse"}))
    loss: PartitionLoss = field(metadata=stored_as.loss("particle_"))
    status: str = field(metadata=stored_as.attribute("particle_status"))
    least_share: float = field(metadata=stored_as.number("particle_least_share"))
    chains: tuple[Any, ...] = field(metadata=stored_as.names("particle_chains_apart"))
    verdict: str = field(metadata=stored_as.attribute("particle_verdict"))
    n_searched: int = field(metadata=stored_as.attribute("particle_items_searched"))
    n_draws_searched: int = field(metadata=stored_as.attribute("particle_draws_searched"))
    stopped: str = field(default="", metadata=stored_as.attribute("particle_stopped"))
    draws: PartitionDraws | None = field(default=None, compare=False)
    _of_runs: ClassVar = "particle_independent"
    noise_from: int | None = field(default=None, metadata=stored_as.attribute("particle_noise_from"))

    @property
    def n_particles(self) -> int:
        """Number of particles."""
        return len(self.partitions)

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each particle, without noise."""
        most = np.inf if self.noise_from is None else self.noise_from
        numbers = np.array([np.unique(row[row < most]).size for row in self.partitions.values], np.int32)
        return xr.DataArray(numbers, dims="particle", name="n_clusters")

    @property
    def _canonical(self) -> npt.NDArray[np.int32]:
        """Partitions with clusters numbered by first appearance."""
        return np.stack([canonical_labels(labels) for labels in self.partitions.values])

    @property
    def _items(self) -> xr.DataArray:
        return self.partitions[0].reset_coords(drop=True)

    def meet(self) -> xr.DataArray:
        """Compute the meet of the particles: sets of items that all particles co-cluster.

        Returns
        -------
        xarray.DataArray of shape (n_items,), dtype int32
            The set of each item, numbered by first appearance.
        """
        _, classes = np.unique(self.partitions.values, axis=1, return_inverse=True)
        return self._items.copy(data=canonical_labels(classes.ravel())).rename("meet")

    def losses(self) -> xr.DataArray:
        """Compute the losses between all particles.

        Returns
        -------
        xarray.DataArray of shape (particle, particle_bis)
            Loss of the row's particle, as the first partition, against the column's particle, in the loss's unit.
        """
        draws = PartitionDraws.of(self._canonical)
        return xr.DataArray(loss_matrix(draws.labels, draws, self.loss), dims=("particle", "particle_bis"))

    def contributions(self, k: int, other: int) -> xr.DataArray:
        """Divide the loss between two particles into contributions of the items.

        Parameters
        ----------
        k, other : int
            Numbers of two particles, from 0.

        Returns
        -------
        xarray.DataArray of shape (n_items,), dtype float64
            Contribution of each item, in the loss's unit. They add up to the loss.

        Raises
        ------
        ValueError
            If there is no such particle, or the loss is not a sum over items.

        Notes
        -----
        Let n_k and m_l be the sizes of an item's clusters in the two particles, and n_kl the number of items in both. A
        sum of h over cells of the contingency table is a sum over items of h(n_kl) / n_kl. For the variation of
        information, the contribution of an item is

            log2(n_k m_l / n_kl^2) / n,

        which is 0 if its co-members are the same in both [1]_. For Binder's loss it is half the cost of its pairs. In a
        ratio, the denominator is summed over all items. Losses with a product or root of sums in the numerator, such as
        "nmi", raise an error.

        References
        ----------
        .. [1] Meila (2007), Journal of Multivariate Analysis 98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013
        """
        self._check_number("k", k)
        self._check_number("other", other)
        one, two = self._canonical[[k, other]]
        n = one.size
        per_item = self.loss.h(n)[1:] / np.arange(1, n + 1)  # by the size of a cell
        cells = np.unique(one.astype(np.int64) * n + two, return_inverse=True)[1].ravel()
        terms = {name: per_item[np.bincount(x)[x] - 1] for name, x in (("A", cells), ("B", one), ("C", two))}
        terms["top"] = np.full(n, per_item[-1])
        terms["min(B, C)"], terms["max(B, C)"] = sorted((terms["B"], terms["C"]), key=np.sum)
        if not set(self.loss.numerator) <= set(terms):
            raise ValueError(
                "`contributions` needs a loss that is a sum over items; "
                f"loss {self.loss.name!r} is {self.loss.formula}."
            )
        shares = np.sum([weight * terms[term] for term, weight in self.loss.numerator.items()], axis=0)
        total, loss = float(shares.sum()), float(self.losses()[k, other])
        return self._items.copy(data=shares * (loss / total if loss > 0 else 0.0)).rename("contribution")

    def similarity(self, k: int, draws: Any = None) -> xr.DataArray:
        """Compute the posterior similarity matrix of the draws in one particle's region.

        Parameters
        ----------
        k : int
            Number of the particle, from 0.
        draws : PartitionDraws or any posterior that :func:`summarize` takes, optional
            The draws of the particles; required for particles that were read from a file.

        Returns
        -------
        xarray.DataArray of shape (n_items, n_items)
            Posterior similarities given the region.

        Raises
        ------
        ValueError
            If there is no such particle, or draws are missing or differ.
        """
        return posterior_similarity_matrix(self.region(k, draws).without_zero_weights())

    def region(self, k: int, draws: Any = None) -> PartitionDraws:
        """Restrict the draws to one particle's region, by weights of 0 outside.

        Every function takes these draws and then describes one mode, for example
        ``membership(particles.region(0), particles.partitions[0])``. Draws outside are kept at weight 0, because
        standard errors need the complete chains.

        Parameters
        ----------
        k : int
            Number of the particle, from 0.
        draws : PartitionDraws or any posterior that :func:`summarize` takes, optional
            As for :meth:`similarity`.

        Returns
        -------
        PartitionDraws
            All draws, with weight 0 outside the region.

        Raises
        ------
        ValueError
            If there is no such particle, draws are missing or differ, or no draw is in the region.
        """
        self._check_number("k", k)
        if draws is None and self.draws is None:
            raise ValueError("`draws` must be given, the draws of the particles: they are not stored with results.")
        given = as_draws(self.draws if draws is None else draws)
        given = given.reordered_to(Samples.along(self.assignment), "`draws`")
        weights = np.where(self.assignment.values == k, given.weights, 0.0)
        if not weights.any():
            some = f"some {given.samples.words.draws}"
            raise ValueError(f"`k` must be a particle that is nearest to {some}; got {k}, nearest to none.")
        return replace(given, samples=given.samples.weighted(weights))

    def _check_number(self, name: str, k: Any) -> None:
        if not is_integer(k) or not 0 <= k < self.n_particles:
            raise ValueError(f"`{name}` must be a particle from 0 to {self.n_particles - 1}; got {k!r}.")

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the particles.

        Returns
        -------
        pandas.DataFrame
            A row for each particle: weight with standard error, mode, number of clusters, mean loss over its region,
            and loss against the first particle.
        """
        return pd.DataFrame(
            {
                "weight": self.weights.values,
                "mcse": self.weights_mcse.values,
                "mode": self.mode.values,
                "n_clusters": self.n_clusters.values,
                "loss_in_region": self.loss_in_region.values,
                "from_first": self.losses().values[:, 0],
            },
            index=pd.RangeIndex(self.n_particles, name="particle"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        errors, path = (self.distance_mcse, self.distance_ess), self.path["distance"].values
        decimals = max(0, 3 - int(f"{path.max():.3e}".partition("e")[2]))  # four digits of the largest
        distance = display.with_error(self.distance, *errors, self.words, self.loss.unit)
        before = "; ".join(f"{k + 1}: {value:.{decimals}f}" for k, value in enumerate(path))
        kind = "distance" if self.loss.metric else "mean loss"
        n_items = self.partitions.shape[1]
        some = [("items", f"searched on {self.n_searched:,} of {n_items:,}")] if self.n_searched < n_items else []
        lines = [
            ("verdict", self.verdict),
            *some,
            (kind, f"{display.short_name_of(self.loss)} {distance}"),
            ("path", f"{kind} by number of particles, {before}"),
            ("always together", f"{int(self.meet().max()) + 1} sets of items that all particles co-cluster"),
        ]
        status = _STATUSES_IN_WORDS.get(self.status, self.status).format(self.words)
        return f"Particles: {display.counted(self.n_particles, 'particle')}, {status}", lines, self.to_dataframe()


class ParticleLimits(NamedTuple):
    """Limits of the search for particles, independent of the clock."""

    most_labels: int = 50_000_000  # beyond it, the search uses a sample of the items
    most_items: int = 10_000  # of this sample
    most_work: float = np.inf  # in the units of ParticleSearch


_LONG = ParticleLimits()


def particles(
    draws: Any,
    n_particles: int | Literal["auto"] = "auto",
    *,
    loss: str | PartitionLoss | None = None,
    partition: Any = None,
    max_particles: int = 8,
    n_starts: int = 20,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Particles:
    """Find a few weighted partitions that represent the posterior, and whether it has several modes.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    n_particles : int or "auto"
        Number of partitions; "auto" takes one for each mode. `verdict`, `status` and `mode` do not
        depend on this number, except that 1 omits the search for modes.
    loss : str or PartitionLoss, optional
        Any loss between partitions, by default "vi". With a metric, the distance is a Wasserstein distance.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose cluster numbers the matched clusters of each particle take, as by :func:`align_partitions`. By
        default the consensus of `draws` if these are a summary.
    max_particles : int
        Largest number of particles tried to find the modes.
    n_starts : int
        Number of runs from random draws for each number of particles. It is also the number of changes without
        improvement after which the search ends.
    seconds : float, optional
        Time limit. With one, the result depends on the machine. After it, the best particles so far are returned. The
        consensus partition has at most a quarter of it, and each further number of particles an equal share of the
        rest.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    Particles
        The partitions with their weights, and a verdict on the modes.

    Raises
    ------
    ValueError
        If there are more particles than distinct draws, or an argument is out of its range.

    See Also
    --------
    Particles.plot : the particles one under another.
    partition_density : how typical any partition is.
    compare_posteriors : the distance between two posteriors.

    Notes
    -----
    With weights w_t of the draws z_t, the particles S_1, ..., S_L minimize

        D = sum_t w_t min_l d(S_l, z_t).

    For a metric d, this is the Wasserstein distance between the posterior and the nearest distribution on L partitions.
    The weight of S_l is the probability of its region, the draws nearest to it [1]_. Standard errors treat the
    particles as fixed. One particle is the consensus partition. The search alternates between regions and partitions of
    minimum expected loss in each region, from distant draws (k-means++) [2]_ and from the particles of the previous
    number.

    Particles are separate modes only if a valley, with fewer draws than at either particle, lies between them.
    Otherwise they divide one mode. A mode is a set of draws, and its particle a representative partition, not the
    draw of highest posterior density. The rule for valleys is a threshold, not a test with a known error rate. It
    cannot find a mode of fewer than 7.4 effective draws: `least_share` is their share. If the effective sample size
    is too small to show modes that independent draws would show, the verdict says so. Chains are in different modes
    under two conditions. A chain's share of draws in a group differs from the share of the other chains by more than
    Monte Carlo error, at level 0.01 over all chains and modes. And this share is below 0.05 or above 0.95.

    Beyond 50 million labels, the search uses a fixed random sample of 10,000 items, as does `path`. Each other item
    then joins the cluster with the largest mean similarity in the draws of the particle's region. Weights, distance and
    losses use all items.

    References
    ----------
    .. [1] Balocchi and Wade (2025), Interpreting uncertainty in Bayesian cluster analysis.
       https://doi.org/10.48550/arXiv.2506.16295
    .. [2] Arthur and Vassilvitskii (2007), SODA '07, 1027-1035. https://dl.acm.org/doi/10.5555/1283383.1283494

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> rng = np.random.default_rng(1)
    >>> one, other = [0] * 4 + [1] * 4 + [2] * 4, [0] * 6 + [1] * 6
    >>> draws = np.where(rng.random((4, 200, 1)) < 0.6, one, other)
    >>> particles = pc.particles(draws, random_seed=1, progressbar=False)
    >>> particles.partitions.values
    array([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
           [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]], dtype=int32)
    >>> particles.verdict
    'The draws have two modes: every chain visits both; report them with their weights 0.60 (MCSE 0.019) and 0.40
    (MCSE 0.019).'
    >>> particles.meet().values
    array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3], dtype=int32)
    """
    return find_particles(
        as_draws(draws, lacking=True),
        n_particles,
        loss,
        max_particles=max_particles,
        n_starts=n_starts,
        seconds=seconds,
        random_seed=random_seed,
        progressbar=progressbar,
        effort=_LONG,
        partition=own_partition(draws, partition),
    )


def find_particles(
    draws: PartitionDraws,
    n_particles: Any,
    loss: Any,
    *,
    max_particles: Any,
    n_starts: Any,
    seconds: Any,
    random_seed: RandomSeed,
    progressbar: bool,
    effort: ParticleLimits,
    partition: Any = None,
    one: Labels | None = None,
    some: PartitionDraws | None = None,
) -> Particles:
    """Search as :func:`particles` does, on `some` of the draws; all are then assigned to the particles found.

    `one` is the partition of all items used for a single particle.
    """
    given, draws = draws, draws.in_fixed_order()
    some = draws if some is None else some.in_fixed_order()
    numbers = None
    if partition is not None:
        numbers = numbers_in(partition, draws.items, draws.as_marked_labels(partition))
    record = as_loss(loss, kind=PartitionLoss)
    check_count("n_starts", n_starts)
    most = check_count("max_particles", max_particles)
    if isinstance(n_particles, str) and n_particles != "auto":
        raise ValueError(f"`n_particles` must be an integer or 'auto'; got {n_particles!r}.")
    number = None if n_particles == "auto" else check_count("n_particles", n_particles)
    clock, rng = Clock(seconds), as_generator(random_seed)
    at, labels = np.arange(draws.n_items), some.labels_only()  # regions are sets of sampled labels
    if draws.n_items * some.n_draws > effort.most_labels:
        at, labels = labels.of_some_items(effort.most_items)
    stopped = ""
    if one is None:
        consensus, info, *_ = search(Problem(labels, record), rng, Effort(seconds=clock.part(_FIRST)))
        stopped = info.stopped
    else:
        consensus = canonical_labels(one[at])
    with Executor(-1, clock.part(1.0), labels.n_items * labels.n_draws) as executor:
        if stopped == "interrupted":
            executor.halt(stopped)
        particle_search = ParticleSearch(labels, record, executor, clock, n_starts, rng)
        distinct = particle_search.n_distinct
        if number is not None and number > distinct:
            what = f"the number of distinct {draws.samples.words.draws}, {distinct}"
            raise ValueError(f"`n_particles` must be at most {what}; got {number}.")
        found = particle_search.along(consensus, number, most, effort.most_work, progressbar)
    unfinished = executor.stopped or "seconds" * found.is_cut
    stopped = unfinished or stopped
    if stopped == "interrupted":
        warn(f"The search was interrupted at {len(found.path)} particles.")
    partitions = (found.modes if number is None else found.path[number - 1]).partitions
    if one is not None and len(partitions) == 1:
        partitions = one[np.newaxis]
    elif at.size < draws.n_items:
        partitions = extended(some, at, partitions, loss_matrix(partitions, labels, record).argmin(axis=0))
    result = _as_particles(draws, record, partitions, number, found, labels, unfinished)
    nearest, assignment = result.assignment.values, result.assignment.isel(sample=given.own_order)
    result = replace(result, stopped=stopped, assignment=assignment, draws=given)
    if numbers is None and not draws.has_noise:
        return result
    each = enumerate(result.partitions.values)
    numbered = np.stack([draws.with_noise_of(labels, draws.weights * (nearest == k)) for k, labels in each])
    if numbers is not None:
        numbered = np.stack([numbered_as(partition, *numbers)[0] for partition in numbered])
    noise_from = int(numbered.max()) + 1 if draws.has_noise else None
    numbered = alone(numbered, noise_from)
    return replace(result, partitions=result.partitions.copy(data=numbered), noise_from=noise_from)


def _as_particles(
    draws: PartitionDraws,
    loss: PartitionLoss,
    partitions: npt.NDArray[np.int32],
    number: int | None,
    found: FoundParticles,
    searched: PartitionDraws,
    stopped: str,
) -> Particles:
    """Build the record with the user's coordinates, the heaviest particle first."""
    along = [loss_matrix(placed.partitions, searched, loss).min(axis=0) for placed in found.path[:number]]
    distances, errors = searched.samples.mean(np.stack(along)), searched.samples.mcse(np.stack(along))
    losses = loss_matrix(partitions, draws, loss)
    order = np.argsort(-draws.samples.mean(_indicators(losses.argmin(axis=0), len(losses))), kind="stable")
    partitions, losses = partitions[order], losses[order]
    nearest, least = losses.argmin(axis=0), losses.min(axis=0)
    at_each = _indicators(nearest, len(losses))
    weights = draws.samples.mean(at_each)
    at_modes = at_each if number is None else _nearest_draws(found.modes.partitions, searched, loss)
    # A particle belongs to the mode with most of its draws.
    mode = ((at_each * draws.weights) @ at_modes.T).argmax(axis=1)
    supposed, far, others = None, "", found.supposed.partitions
    if len(others) > len(at_modes):
        between = losses_between(others, loss)[np.triu_indices(len(others), 1)]
        far = f"{between.min():.3g} to " * (len(others) > 2) + display.quantity(between.max(), loss.unit, 3)
        supposed = visits(searched, _nearest_draws(others, searched, loss))
    distance_mcse, distance_ess = draws.samples.mcse_and_ess(least)
    least_share = FEWEST / float(np.fmin(distance_ess, searched.samples.effective_draws))
    status, chains, verdict = judged(draws, at_modes, number, supposed, far, least_share, stopped)
    measure = {"loss": loss.name, "unit": loss.unit}
    path = {"distance": ("n_particles", distances, measure), "mcse": ("n_particles", errors, measure)}
    within = np.divide(draws.samples.mean(losses * at_each), weights, out=np.zeros_like(weights), where=weights > 0)
    by_chain = visits(draws, at_each)
    weights_mcse, weights_ess = draws.samples.mcse_and_ess(at_each)
    if len(partitions) > 1:
        weights_mcse = draws.samples.probability_errors(weights, weights_mcse)
    return Particles(
        partitions=draws.items.array(partitions, "partitions", ("particle", ...)),
        weights=xr.DataArray(weights, dims="particle", name="weights"),
        weights_mcse=xr.DataArray(weights_mcse, dims="particle", name="weights_mcse"),
        weights_ess=xr.DataArray(weights_ess, dims="particle", name="weights_ess"),
        mode=xr.DataArray(mode, dims="particle", name="mode"),
        distance=float(draws.samples.mean(least)),
        distance_mcse=float(distance_mcse),
        distance_ess=float(distance_ess),
        loss_in_region=xr.DataArray(within, dims="particle", name="loss_in_region", attrs=measure),
        assignment=draws.samples.array(nearest.astype(np.int32), "assignment"),
        by_chain=xr.DataArray(by_chain.shares, {"chain": by_chain.names}, ("chain", "particle"), "by_chain"),
        path=xr.Dataset(path, {"n_particles": np.arange(1, len(along) + 1)}),
        loss=loss,
        status=status,
        least_share=least_share,
        chains=chains,
        verdict=verdict,
        n_searched=searched.n_items,
        n_draws_searched=searched.n_draws,
        draws=draws,
        words=draws.words,
    )


def _indicators(values: npt.NDArray[np.integer[Any]], number: int) -> Floats:
    """Indicators (number, N) of the values 0, 1, ..."""
    return (np.arange(number)[:, np.newaxis] == values).astype(np.float64)


def _nearest_draws(partitions: npt.NDArray[np.int32], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Indicators (M, N) of the draws nearest to each partition, the heaviest partition first."""
    indicators = _indicators(loss_matrix(partitions, draws, loss).argmin(axis=0), len(partitions))
    return indicators[np.argsort(-draws.samples.mean(indicators), kind="stable")]
