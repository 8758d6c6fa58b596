"""diagnose(): agreement of the chains and effective sample sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.diagnostics.copies import copies
from posterior_consensus.diagnostics.groups import judge_runs, run_spread
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.diagnostics.sequence import clear_burn_in
from posterior_consensus.diagnostics.traces import (
    central_draw,
    chain_statistics,
    far_distances,
    layer_traces,
    merge_traces,
    odd_chain,
    size_traces,
    still_chains,
    together_trace,
    uncertain_pairs,
)
from posterior_consensus.diagnostics.unvisited import unvisited
from posterior_consensus.diagnostics.verdict import Evidence, about_chains, judge
from posterior_consensus.ensemble.chains import (
    ChainDifference,
    largest_difference,
    pairs_together,
    partition_ess,
    partition_variance,
)
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import Labels, named_partitions
from posterior_consensus.ensemble.r_hat import differ
from posterior_consensus.ensemble.series import effective_size
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.sources.conversion import find_source, opened, own_partition
from posterior_consensus.sources.parameters import LogOfDraws, log_of_draws

_OF_PAIR = ("first", "second")
_FEWEST_COMPARED = 100  # items compared at least, whatever the time limit
_MOST_OF_SOME = 2_000  # items compared of runs that lack items, as matrices count the runs of each pair
_SECONDS_A_PAIR, _DRAWS_A_PAIR = 2e-8, 500  # generous estimate, and number of draws that doubles it


def diagnose(
    draws: Any,
    partition: Any = None,
    *,
    loss: str | PartitionLoss | None = None,
    references: Mapping[str, Any] | Sequence[Any] | None = None,
    n_pairs: int = 50,
    random_seed: RandomSeed = None,
) -> Diagnosis:
    """Check whether the chains agree on the partition, and compute effective sample sizes.

    Parameters
    ----------
    draws : PartitionDraws, Layers or any posterior that :func:`summarize` takes
        The chains. :class:`Layers` become one partition of the items of all layers, in which items of different layers
        are never co-clustered. The traces of sizes are then each layer's number of clusters, the loss from the
        partition within each layer, and the loss between each layer and the last layer before it with common items
        (between all pairs of at most ten layers without an order).
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose distance to every draw is a scalar summary, typically the consensus. By default the consensus of
        a summary, else the draw of minimum expected loss among 64.
    loss : str or PartitionLoss, optional
        Loss that measures distance; by default the loss of `partition` if it is a result, else "vi".
    references : dict of str to partition, or sequence of partitions, optional
        Further partitions whose distance to every draw is a scalar summary. By default the draw farthest from
        `partition`, and the draw farthest from that draw, since two sets of draws can be equally far from one
        partition.
    n_pairs : int
        Number of pairs of items whose co-clustering is followed, sampled from pairs that are co-clustered in some draws
        only.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It seeds the sample of pairs; None samples the same pairs each time.

    Returns
    -------
    Diagnosis
        Status and verdict, and R-hat and effective sample sizes of the partition, scalar summaries and pairs.

    Raises
    ------
    ValueError
        If a partition does not label the draws' items, `n_pairs` is below 1, or the draws are invalid as for
        :func:`as_partition_draws`.

    See Also
    --------
    Diagnosis.plot : Plot the scalar summaries along the chains.
    plot_psm : Plot the chains' similarity matrices side by side with ``by="chain"``.
    diagnostics.sequential_distances : Determine the burn-in.

    Notes
    -----
    ArviZ computes R-hat, and bulk and tail (5% and 95% quantiles) effective sample sizes, of scalar summaries and of
    pairs' indicators [1]_. Chains are cut to the length of the shortest. The page on convergence has the formulas for
    the partition. Weights enter means, their errors and effective sample sizes, but not R-hat and the between-chain
    difference, which compare chains as sampled. With allocation probabilities, these compare sampled labels.

    The status is "disagree" if the R-hat of the partition is above 1.05. It is so, too, if the R-hat of a scalar
    summary or of the worst pair is above 1.05, or a between-chain difference above 0.1, beyond chance; and if some
    chains hardly ever visit draws that the others often visit, beyond chance. It is "short" if
    an effective sample size is below 100 times the number of chains, or an R-hat above 1.01 [1]_. These limits are
    recommended for scalars; for the R-hat of the partition they are our convention. The status is "unknown" if the
    weights leave fewer than four effective draws per chain, or if chains that agree contain the same draws or a long
    stretch of them.

    A burn-in is named if most of its draws are outside the range of all later draws and the means of both differ by
    more than five standard deviations of the later draws.

    Quantities over pairs of items (R-hat and effective sample size of the partition, the between-chain difference, the
    pairs followed, the central draw) use 10,000 random items if there are more, or 2,000 of runs that lack items. Sizes
    and distances use all items.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
       https://doi.org/10.1214/20-BA1221

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> chains = np.array([[[0, 0, 1, 1], [0, 0, 0, 1]] * 50, [[0, 1, 1, 1], [0, 1, 0, 1]] * 50])
    >>> found = pc.diagnose(chains)
    >>> found.status, found.largest_difference.size, found.largest_difference.items
    ('disagree', 1.0, (0, 1))
    >>> found.summaries["mean"].sel(summary="number of clusters").item()
    2.0
    """
    run = partial(diagnose_within, None, references=references, loss=loss, n_pairs=n_pairs, random_seed=random_seed)
    if isinstance(draws, Layers):
        return run(draws.joint(), partition, layers=draws)
    with opened(draws) as (data, where):
        taken = find_source(data, where).source.as_draws(lacking=True)
        logs = log_of_draws(data, taken)
    return run(taken, own_partition(draws, partition), logs=logs)


def diagnose_within(
    seconds: float | None,
    draws: PartitionDraws,
    partition: Any,
    *,
    layers: Layers | None = None,
    logs: LogOfDraws | None = None,
    references: Any = None,
    loss: str | PartitionLoss | None = None,
    n_pairs: Any = 50,
    random_seed: RandomSeed = None,
) -> Diagnosis:
    """Like :func:`diagnose`, but over the pairs of fewer items if all pairs would take longer than `seconds`."""
    record = as_loss(loss, partition, kind=PartitionLoss)
    given, draws = draws, draws.in_fixed_order()
    n_pairs, rng = check_count("n_pairs", n_pairs), as_generator(random_seed, otherwise=0)
    plain, samples = draws.as_sampled(), draws.samples
    whole = plain.of_some_items(_MOST_OF_SOME if plain.lacks_items else None)
    labels = central_draw(plain, whole[1], record) if partition is None else draws.as_labels(partition)
    if partition is None and draws.lacks_items:
        raise ValueError(
            "`partition` must be given for runs that lack items, none of which is a partition of all; got None. Give "
            "the consensus: diagnose(runs, consensus_partition(runs))."
        )
    whose = f"central {samples.words.draw}" if partition is None else "consensus"
    name = f"distance to {whose}"
    own = size_traces(plain) if layers is None else layer_traces(layers, labels, record)
    traces = _traces(plain, own, {name: labels}, references, record).assign_coords(samples.coords)
    named = {"summary": traces["summary"], "unit": traces["unit"]}
    at, some = whole if seconds is None else _items_in_time(plain, whole, seconds)
    together = pairs_together(some)
    pairs, pair_rhat = _of_pairs(draws, at, some, uncertain_pairs(some, n_pairs, rng))
    variance = partition_variance(some, together)
    difference = largest_difference(some)
    of_difference = at[list(difference.items)]
    first, second = draws.items.named(of_difference).tolist()
    diagnosis = Diagnosis(
        status="unknown",
        sentences=(),
        traces=traces.isel(sample=given.own_order),
        summaries=_statistics_of_traces(draws, "summary", named, traces.values, mcse=samples.mcse(traces.values)),
        pairs=pairs,
        partition_rhat=variance.rhat,
        partition_ess=partition_ess(some, together, variance.total) * samples.effective_draws / draws.n_draws,
        largest_difference=difference
        if np.isnan(difference.size)
        else replace(difference, items=(int(of_difference[0]), int(of_difference[1]))),
        difference_items=(first, second),
        n_compared=some.n_items,
        odd_chain=odd_chain(some, difference, together) if samples.series else None,
        partition=draws.items.array(labels, "partition"),
        n_chains=len(samples.chains),
        n_draws=draws.n_draws,
        effective_draws=samples.effective_draws,
        loss=record,
        words=draws.words,
        spread=None if samples.series else run_spread(draws, some, record),
    )
    if diagnosis.spread is not None:
        status, said = judge_runs(draws, some, diagnosis.spread, difference, diagnosis.difference_items, record)
        return replace(diagnosis, status=status, sentences=tuple(said))
    typical = traces.values[: traces["summary"].values.tolist().index(name) + 1]  # far draws are extreme by nature
    still = still_chains(plain, whole[1])
    evidence = Evidence(
        draws=draws,
        moves=not still[0],
        still=[samples.chain_names[k] for k in np.flatnonzero(still[1])],
        beyond_chance=differ(samples, traces.values),
        pair_rhat=pair_rhat,
        unvisited=lambda: _unvisited(plain, traces, labels, whose),
        own_ess=_own_ess(some, difference, partition_ess(some, together, variance.within)),
        copies=copies(draws, some),
        burn_in=dict(zip(samples.chain_names, clear_burn_in(typical, samples.chains), strict=True)),
    )
    status, said = judge(diagnosis, evidence)
    if status == "disagree":
        said += about_chains(draws, logs, diagnosis.odd_chain, record, seconds)
    return replace(diagnosis, status=status, sentences=tuple(said))


def _items_in_time(
    draws: PartitionDraws, whole: tuple[Positions, PartitionDraws], seconds: float
) -> tuple[Positions, PartitionDraws]:
    """Positions and draws of the items whose pairs can be compared in that time, at most those of `whole`."""
    most = int(np.sqrt(seconds / (_SECONDS_A_PAIR * (1 + draws.n_draws / _DRAWS_A_PAIR))))
    return draws.of_some_items(most) if (most := max(_FEWEST_COMPARED, most)) < whole[0].size else whole


def _traces(
    draws: PartitionDraws,
    own: dict[str, tuple[Floats, str]],
    own_partition: dict[str, Labels],
    references: Any,
    loss: PartitionLoss,
) -> xr.DataArray:
    """Traces along the chains: `own`, and distances to the partition and to references or two far draws."""
    given = {} if references is None else named_partitions(references, "references")
    what = "distance to" if isinstance(references, Mapping) else "distance to reference"
    named = own_partition | {
        f"{what} {name}": draws.as_labels(partition, "references") for name, partition in given.items()
    }
    distances = dict(zip(named, loss_matrix(np.stack(list(named.values())), draws, loss), strict=True))
    if references is None:
        far = far_distances(draws, next(iter(distances.values())), loss)
        names = (f"distance to {kind} {draws.samples.words.draw}" for kind in ("far", "opposite"))
        distances |= dict(zip(names, far, strict=True))
    followed = own | {name: (row, loss.unit) for name, row in distances.items()}
    values, units = zip(*followed.values(), strict=True)
    coords = {"summary": list(followed), "unit": ("summary", list(units))}
    return xr.DataArray(np.stack(values), coords, ("summary", "sample"), "trace")


def _of_pairs(
    draws: PartitionDraws, at: Positions, some: PartitionDraws, chosen: Positions
) -> tuple[xr.Dataset, float]:
    """Statistics of chosen pairs, and the worst R-hat of pairs that differ between chains by more than chance."""
    traces = together_trace(some, chosen)
    names = {f"pair_{name}": ("pair", draws.items.named(at[chosen[:, k]])) for k, name in enumerate(_OF_PAIR)}
    pairs = _statistics_of_traces(draws, "pair", names, traces)
    if not draws.samples.series:
        return pairs, np.nan
    return pairs, float(np.fmax.reduce(pairs["rhat"].values[differ(some.samples, traces)], initial=np.nan))


def _unvisited(draws: PartitionDraws, traces: xr.DataArray, labels: Labels, whose: str) -> str:
    """Clause on draws that some chains hardly ever visit, by the traces and the clusters of a partition; or empty."""
    if len(draws.samples.chains) < 2:
        return ""
    of_clusters = {f"{name} of the {whose}": trace for name, trace in merge_traces(draws, labels).items()}
    found = unvisited(np.stack([*traces.values, *of_clusters.values()]), draws.samples)
    if found is None:
        return ""
    units = [*traces["unit"].values, *[""] * len(of_clusters)]
    return found.in_words([*traces["summary"].values, *of_clusters], units, draws.samples.chain_names)


def _own_ess(draws: PartitionDraws, difference: ChainDifference, of_partition: float) -> float:
    """Effective sample size for each chain, without the differences between chains; of the pair if that is smaller."""
    samples, least = draws.samples, of_partition
    if not np.isnan(difference.mcse):
        chains = samples.by_chain(together_trace(draws, np.array([difference.items])))
        least = min(least, effective_size(chains - chains.mean(axis=-1, keepdims=True)).item())
    return least / len(samples.chains)


def _statistics_of_traces(draws: PartitionDraws, dim: str, coords: Any, values: Floats, **more: Floats) -> xr.Dataset:
    columns = {"mean": draws.samples.mean(values)} | more | chain_statistics(draws, values)
    return xr.Dataset({name: (dim, column) for name, column in columns.items()}, coords)
