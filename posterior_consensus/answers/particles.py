"""particles(): the posterior as a few weighted partitions."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import numbered_as, numbers_in
from posterior_consensus.answers.likely import may_have_more
from posterior_consensus.answers.modes import FURTHER, Modes, separated_modes
from posterior_consensus.answers.particle_chains import judged, undecided, visits
from posterior_consensus.answers.particle_record import Particles
from posterior_consensus.answers.particle_search import ParticleSearch, Placed, extended
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.evaluate.chain_gap import gap_is_real, largest_gap
from posterior_consensus.evaluate.expectation import Floats, loss_matrix, losses_between
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count, check_seconds
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import track
from posterior_consensus.search.engine import search
from posterior_consensus.sources.door import as_draws, own_partition

_TINY = 1e-9


class Effort(NamedTuple):
    """How long to look for particles, whatever the clock says."""

    most_labels: int = 50_000_000  # of more, some items are considered
    most_items: int = 10_000
    most_work: float = np.inf  # as a search for particles counts it, after which no more are searched for
    only_if_likely: bool = False  # whether to look for none where no valley lies between groups of draws


_LONG = Effort()


def particles(
    draws: Any,
    n_particles: int | Literal["auto"] = "auto",
    *,
    loss: str | PartitionLoss | None = None,
    reference: Any = None,
    max_particles: int = 8,
    n_starts: int = 20,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Particles:
    """Find the few weighted partitions that are nearest to the posterior.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    n_particles : int or "auto"
        Number of partitions; "auto" for the number of separated modes of the posterior. The verdict, `status` and
        `mode` rest on the same modes whatever the number, but for 1, which searches for no others.
    loss : str or PartitionLoss, optional
        By default "vi". Any loss between partitions; if it is a metric, the distance is a Wasserstein distance.
    reference : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose cluster numbers the matched clusters of each particle get, matched as by
        :func:`align_partitions`. By default the consensus of `draws` if these are a summary.
    max_particles : int
        Largest number that is tried to find the modes.
    n_starts : int
        Number of runs from draws at random for each number of particles, and of changes of the best particles in
        vain after which the search ends.
    seconds : float, optional
        Time limit, after which the best so far is returned. The result then depends on the machine.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result, for any number of threads.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    Particles

    Raises
    ------
    ValueError
        If there are more particles than distinct draws, or an argument is out of its range.

    See Also
    --------
    plot_particles : the particles one under another.
    partition_density : how typical any partition is.
    compare_posteriors : the distance between two posteriors.

    Notes
    -----
    With weights w_t of the draws z_t, the particles S_1, ..., S_L minimize

        D = sum_t w_t min_l d(S_l, z_t),

    which under a metric d is the Wasserstein distance between the posterior and the nearest distribution on L
    partitions; that distribution gives S_l the weight of its region, the draws that it is nearest to [1]_. Its error is
    that of a mean over draws, the particles being fixed.

    The search alternates between the regions and the partition of minimum expected loss in each. It begins with draws
    far from each other (k-means++) [2]_ and on samples of the draws. The best particles are then changed, by going on
    from them on another sample, or by putting a draw in the place of one of them. Each number of particles begins with
    those of one less as well, so that the path never rises. One particle is the consensus partition.

    Particles are answers of their own only where a valley lies between them, fewer draws than at either; else they
    divide one mode. The search looks at two numbers of particles beyond the most modes found; "auto" takes as many as
    there are modes. If there would be more modes if the draws were independent, but the effective draws are too few
    to show them, the verdict reports that, the distances between the groups of draws, and the chains that stay in
    them. Chains are said to be in different modes where a chain's share of its draws at a mode differs from that
    of the others by more than Monte Carlo error (level 0.01 over all chains and modes, effective numbers of draws from
    the autocorrelation of the visits, ten at least), and is below 0.05 or above 0.95.

    Of more than 50 million labels the search is on 10,000 items, chosen at random and always the same, and `path` is
    of these. The other items then join the cluster with which they are most often, on average over its members in the
    sample and the draws of the particle's region; weights, distance and losses are of all items.

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
    >>> found = pc.particles(draws, random_seed=1, progressbar=False)
    >>> found.partitions.values
    array([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
           [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]], dtype=int32)
    >>> found.verdict
    'Two modes: every chain visits both; report them with their weights 0.60 (MCSE 0.019) and 0.40 (MCSE 0.019).'
    >>> found.meet().values
    array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3], dtype=int32)
    """
    options: dict[str, Any] = {"max_particles": max_particles, "n_starts": n_starts, "seconds": seconds}
    options["reference"] = own_partition(draws, reference)
    draws = as_draws(draws)
    return find_particles(draws, n_particles, loss, **options, random_seed=random_seed, progressbar=progressbar)


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
    reference: Any = None,
    one: Labels | None = None,
    effort: Effort | None = None,
) -> Particles:
    """Do what :func:`particles` does; `one`, a partition of all items, is the answer if there is one."""
    numbers = None if reference is None else numbers_in(reference, draws.items)
    record = as_loss(loss, kind=PartitionLoss)
    effort = effort or _LONG
    check_count("n_starts", n_starts)
    most = check_count("max_particles", max_particles)
    number = None if n_particles == "auto" else _check_number(n_particles)
    if seconds is not None:
        check_seconds(seconds)
    rng = as_generator(random_seed)
    began = time.monotonic()
    labels = draws.labels_only()  # without probabilities: they have no regions
    at, labels = _looked_at(labels, effort)
    if effort.only_if_likely and not may_have_more(labels, record):
        most = 1
    is_interrupted = False
    if one is None:
        first, info = search(labels, record, rng=rng, seconds=seconds)
        is_interrupted = info.stopped == "interrupted"
    else:
        first = canonical_labels(one[at])
    left = None if seconds is None else max(seconds - (time.monotonic() - began), _TINY)
    executor = Executor(-1, left, labels.n_items * labels.n_draws)
    with executor:
        if is_interrupted:
            executor.halt("interrupted")
        particle_search = ParticleSearch(labels, record, executor)
        distinct = particle_search.n_distinct
        if number is not None and number > distinct:
            raise ValueError(f"`n_particles` must be at most the number of distinct draws, {distinct}; got {number}.")
        seen = _search(particle_search, labels, record, first, number, most, n_starts, rng, effort, progressbar)
    if executor.stopped == "interrupted":
        warnings.warn(f"The search was interrupted at {len(seen.path)} particles.", stacklevel=2)
    near = np.stack([loss_matrix(placed.partitions, labels, record).min(axis=0) for placed in seen.path[:number]])
    partitions = (seen.modes if number is None else seen.path[number - 1]).partitions
    if one is not None and len(partitions) == 1:
        partitions = one[np.newaxis]
    elif at.size < draws.n_items:
        partitions = extended(draws, at, partitions, loss_matrix(partitions, labels, record).argmin(axis=0))
    found = _as_particles(draws, record, near, partitions, number, seen, labels)
    found = replace(found, stopped=executor.stopped)
    if numbers is None:
        return found
    numbered = [numbered_as(partition, *numbers)[0] for partition in found.partitions.values]
    return replace(found, partitions=found.partitions.copy(data=np.stack(numbered)))


def _looked_at(draws: PartitionDraws, effort: Effort) -> tuple[npt.NDArray[np.intp], PartitionDraws]:
    """Positions of all items, or of some by a fixed rule if there are many labels, and the draws of their labels."""
    if draws.n_items * draws.n_draws <= effort.most_labels:
        return np.arange(draws.n_items), draws
    return draws.of_some_items(effort.most_items)


def _check_number(n_particles: Any) -> int:
    if isinstance(n_particles, str):
        raise ValueError(f"`n_particles` must be an integer or 'auto'; got {n_particles!r}.")
    return check_count("n_particles", n_particles)


class _Seen(NamedTuple):
    """Particles of each number, one for each mode, and one for each that there would be, were the draws independent."""

    path: list[Placed]
    modes: Placed
    supposed: Placed


def _search(
    particle_search: ParticleSearch,
    draws: PartitionDraws,
    loss: PartitionLoss,
    consensus: Labels,
    number: int | None,
    most: int,
    n_starts: int,
    rng: np.random.Generator,
    effort: Effort,
    progressbar: bool,
) -> _Seen:
    """Look beyond the most modes found, whatever `number` is requested: how many modes there are is one question."""

    def modes_of(placed: Placed, independent: bool) -> Modes:
        losses = loss_matrix(placed.partitions, draws, loss)
        return separated_modes(placed.partitions, losses, draws.samples, loss, independent=independent)

    def at_modes(found: Placed, independent: bool) -> Placed:
        """Particles of as many modes as the last of the path shows, if those are more than `found` has."""
        modes = modes_of(path[-1], independent)
        if modes.n_modes <= len(found.partitions):
            return found
        one_each = path[modes.n_modes - 1]
        if modes.n_modes == len(path) or modes_of(one_each, independent).n_modes == modes.n_modes:
            return one_each
        return particle_search.from_groups(path[-1], modes.mode)

    path = [particle_search.one(consensus)]
    modes = supposed = path[0]
    asked = number or 1
    last = 1 if number == 1 else min(max(asked, most), particle_search.n_distinct)
    for more in track(range(2, last + 1), "Particles", progressbar=progressbar):
        if more > asked and (
            more > len(modes.partitions) + FURTHER or particle_search.stopped or particle_search.work > effort.most_work
        ):
            break
        path.append(particle_search.one_more(path[-1], n_starts, rng, effort.most_work))
        modes, supposed = at_modes(modes, False), at_modes(supposed, True)
    return _Seen(path, modes, supposed)


def _as_particles(
    draws: PartitionDraws,
    loss: PartitionLoss,
    near: Floats,
    partitions: npt.NDArray[np.int32],
    number: int | None,
    seen: _Seen,
    searched: PartitionDraws,
) -> Particles:
    """Dress particles in the user's coordinates, the heaviest first, and their path, from the least losses along it."""
    distances, errors = draws.samples.mean(near), draws.samples.mcse(near)
    losses = loss_matrix(partitions, draws, loss)
    order = np.argsort(-draws.samples.mean(_indicators(losses.argmin(axis=0), len(losses))), kind="stable")
    partitions, losses = partitions[order], losses[order]
    nearest, least = losses.argmin(axis=0), losses.min(axis=0)
    at_each = _indicators(nearest, len(losses))
    weights = draws.samples.mean(at_each)
    at_modes = at_each if number is None else _nearest(seen.modes.partitions, searched, loss)
    # A particle stands for the mode that has most of its draws.
    mode = ((at_each * draws.weights) @ at_modes.T).argmax(axis=1)
    status, chains, verdict = _judged(draws, at_modes, seen, searched, loss, number)
    measure = {"loss": loss.name, "unit": loss.unit}
    path = {"distance": ("n_particles", distances, measure), "mcse": ("n_particles", errors, measure)}
    within = np.divide(draws.samples.mean(losses * at_each), weights, out=np.zeros_like(weights), where=weights > 0)
    by_chain = visits(draws, at_each)
    weights_mcse, weights_ess = draws.samples.mcse_and_ess(at_each)
    distance_mcse, distance_ess = draws.samples.mcse_and_ess(least)
    return Particles(
        partitions=draws.items.partition_array(partitions, "particle", "partitions"),
        weights=xr.DataArray(weights, dims="particle", name="weights"),
        weights_mcse=xr.DataArray(weights_mcse, dims="particle", name="weights_mcse"),
        weights_ess=xr.DataArray(weights_ess, dims="particle", name="weights_ess"),
        mode=xr.DataArray(mode, dims="particle", name="mode"),
        distance=float(draws.samples.mean(least)),
        distance_mcse=float(distance_mcse),
        distance_ess=float(distance_ess),
        expected_loss=xr.DataArray(within, dims="particle", name="expected_loss", attrs=measure),
        assignment=draws.samples.array(nearest.astype(np.int32), "assignment"),
        by_chain=xr.DataArray(by_chain.shares, {"chain": by_chain.names}, ("chain", "particle"), "by_chain"),
        path=xr.Dataset(path, {"n_particles": np.arange(1, len(near) + 1)}),
        loss=loss,
        status=status,
        chains=chains,
        verdict=verdict,
        n_searched=searched.n_items,
        draws=draws,
    )


def _indicators(values: npt.NDArray[np.integer[Any]], number: int) -> Floats:
    """Where (number, N) each value is 0, 1, ..."""
    return (np.arange(number)[:, np.newaxis] == values).astype(np.float64)


def _nearest(partitions: npt.NDArray[np.int32], draws: PartitionDraws, loss: PartitionLoss) -> Floats:
    """Where (M, N) each draw is nearest to each partition, the heaviest first."""
    indicators = _indicators(loss_matrix(partitions, draws, loss).argmin(axis=0), len(partitions))
    return indicators[np.argsort(-draws.samples.mean(indicators), kind="stable")]


def _judged(
    draws: PartitionDraws,
    at_modes: Floats,
    seen: _Seen,
    searched: PartitionDraws,
    loss: PartitionLoss,
    number: int | None,
) -> tuple[str, tuple[object, ...], str]:
    """The status, the chains that belong to modes, and what to report."""
    n_modes, n_supposed = len(at_modes), len(seen.supposed.partitions)
    if draws.samples.shortest < FEWEST_DRAWS:
        return "unknown", (), "A chain has fewer than four draws, too few to find modes: run longer chains."
    if number == 1:
        return "unknown", (), "One particle was requested, the consensus partition; modes were not searched for."
    doubt, apart = "", tuple[object, ...]()
    if n_supposed > n_modes:
        between = losses_between(seen.supposed.partitions, loss)[np.triu_indices(n_supposed, 1)]
        found = visits(draws, _nearest(seen.supposed.partitions, searched, loss))
        least = f"{between.min():.3g} to " if n_supposed > 2 else ""
        far = f"{least}{display.quantity(between.max(), loss.unit, 3)}"
        doubt, apart = undecided(found, far, n_modes), found.belonging
    if n_modes == 1:
        doubt = doubt or _of_chains_apart(draws)
        return ("unknown", apart, doubt) if doubt else ("one mode", (), _of_one(number))
    errors, sizes = draws.samples.mcse_and_ess(at_modes)
    status, chains, verdict = judged(visits(draws, at_modes), draws.samples.mean(at_modes), errors, sizes)
    if number is not None and number != n_modes:
        more = f"The {number} particles divide them."
        verdict += f" {more}" if number > n_modes else f" {display.counted(number, 'particle')} are too few for them."
    return status, chains, f"{verdict} {doubt}".rstrip()


def _of_chains_apart(draws: PartitionDraws) -> str:
    """What to report if one mode is found although the chains disagree on a pair of items; else nothing."""
    some = draws.labels_only().without_zero_weights().as_sampled().of_some_items()[1]
    gap = largest_gap(some)
    if not gap_is_real(gap, some.n_items, some.samples):
        return ""
    first, second = some.items.names[list(gap.items)]
    return (
        f"Cannot tell one mode from several: the chains disagree. Items {first} and {second} are co-clustered in "
        f"{gap.shares[0]:.0%} of the draws of chain {gap.chains[0]} and {gap.shares[1]:.0%} of chain {gap.chains[1]}, "
        "although no second mode was found. Run longer chains, or a sampler that mixes better."
    )


def _of_one(number: int | None) -> str:
    """What to report where one mode is found."""
    if number is None:
        return "One mode: no second mode was found. If the chains agree, report the consensus partition."
    return f"One mode: no valley lies between the {number} particles, which divide it."
