"""diagnose(): agreement of the chains, and effective sample sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.diagnostics.burn_in import clear_burn_in
from posterior_consensus.diagnostics.copies import copies
from posterior_consensus.diagnostics.traces import (
    arviz_statistics,
    central_draw,
    differ,
    far_distances,
    odd_chain,
    pairs_together,
    partition_ess,
    partition_variance,
    size_traces,
    still_chains,
    together_trace,
    uncertain_pairs,
)
from posterior_consensus.diagnostics.verdict import Evidence, about_chains, judge
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import Labels, by_name
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.evaluate.chain_gap import Gap, largest_gap
from posterior_consensus.evaluate.expectation import loss_matrix
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.sources.door import as_draws, own_partition
from posterior_consensus.sources.log_densities import LogOfDraws, log_of_draws

_STORED_SAMPLE = {"sample": "trace_sample", "chain": "trace_chain", "draw": "trace_draw"}
_OF_PAIR = ("first", "second")
_OF_CHAINS = ("rhat", "ess_bulk", "ess_tail")
_FEWEST_COMPARED = 100  # items, whatever the time
_SECONDS_A_PAIR, _DRAWS_A_PAIR = 2e-8, 500  # a high estimate, and for how many draws it doubles


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Stored):
    """Agreement of the chains and effective sample sizes; made by :func:`diagnose`.

    Attributes
    ----------
    status : {"agree", "short", "disagree", "unknown"}
        "short": no sign that the chains disagree, but too few effective draws; "unknown": one chain, or chains that are
        too short, never move or are copies of one another, or weights that leave next to no draws.
    verdict : str
        The evidence for the status, and what to do.
    traces : xarray.DataArray of shape (summary, sample)
        The summaries of every draw, with coordinates ``chain``, ``draw`` and ``unit``.
    summaries : xarray.Dataset
        ``mean``, ``mcse``, ``rhat`` (rank-normalized split R-hat), ``ess_bulk`` and ``ess_tail`` over the dimension
        ``summary``. R-hat is infinite where chains that never move differ. It ignores weights; all else counts them.
    pairs : xarray.Dataset
        ``mean``, ``rhat``, ``ess_bulk`` and ``ess_tail`` of the co-clustering of a sample of pairs, over ``pair``, with
        their items as ``pair_first`` and ``pair_second``.
    partition_rhat : float
        R-hat of the partition itself: of the association matrix, summed over all pairs of items.
    partition_ess : float
        Its effective sample size, from the distances between successive draws and Kish's effective number.
    gap : Gap
        The pair whose co-clustering probability differs most between two chains: ``size``, ``mcse``, ``items``
        (positions), ``chains`` and ``shares``.
    gap_items : tuple of str
        Names of the gap's items.
    n_compared : int
        Number of items whose pairs `pairs`, `partition_rhat`, `partition_ess` and `gap` are of: all, or 10,000.
    odd_chain : object or None
        Name of the one chain that differs from all others while these agree; None if there is none.
    items : xarray.DataArray of shape (n_items,), dtype int32
        Labels of the partition from which distances are taken.
    n_chains, n_draws : int
    effective_draws : float
        Kish's effective number of draws, `n_draws` without weights.
    loss : PartitionLoss
        The distance.
    """

    _figure = "plot_traces"

    status: str = field(metadata=stored_as.attribute("status"))
    verdict: str = field(metadata=stored_as.attribute("verdict"))
    traces: xr.DataArray = field(metadata=stored_as.array("trace", _STORED_SAMPLE, name="trace"))
    summaries: xr.Dataset = field(metadata=stored_as.table("summary_{}", ("mean", "mcse", *_OF_CHAINS)))
    pairs: xr.Dataset = field(metadata=stored_as.table("pair_{}", ("mean", *_OF_CHAINS)))
    partition_rhat: float = field(metadata=stored_as.number("partition_rhat"))
    partition_ess: float = field(metadata=stored_as.number("partition_ess"))
    gap: Gap = field(metadata=stored_as.record(Gap))
    gap_items: tuple[str, str] = field(metadata=stored_as.names("chain_gap_items"))
    n_compared: int = field(metadata=stored_as.attribute("diagnosis_items_compared"))
    odd_chain: object | None = field(metadata=stored_as.in_json("odd_chain"))
    items: xr.DataArray = field(metadata=stored_as.array("diagnosis_center", name="center", of_items=True))
    n_chains: int = field(metadata=stored_as.attribute("diagnosis_chains"))
    n_draws: int = field(metadata=stored_as.attribute("diagnosis_draws"))
    effective_draws: float = field(metadata=stored_as.number("effective_draws"))
    loss: PartitionLoss = field(metadata=stored_as.loss("diagnosis_"))

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat of any summary and of the partition; NaN if there is none."""
        return float(np.fmax.reduce([*self.summaries["rhat"].values, self.partition_rhat]))

    @property
    def least_ess(self) -> float:
        """Smallest effective sample size, bulk or tail, of any summary and the partition; NaN if there is none."""
        bulk, tail = self.summaries["ess_bulk"].values, self.summaries["ess_tail"].values
        return float(np.fmin.reduce([*bulk, *tail, self.partition_ess]))

    @property
    def traces_by_chain(self) -> xr.Dataset:
        """`traces` as ArviZ takes them: a variable of shape (chain, draw) for each, chains cut to the shortest.

        ``az.summary``, ``az.plot_trace``, ``az.plot_rank`` and, from ArviZ 1, ``az.diagnose`` take it.
        """
        chain, draw = self.traces["chain"].values, self.traces["draw"].values
        samples = Samples(chain, draw, np.full(chain.size, 1.0 / chain.size))
        first = [rows[0] for rows in samples.chains]
        values = samples.by_chain(self.traces.values)
        named = zip(self.traces["summary"].values, self.traces["unit"].values, values, strict=True)
        arrays = {str(name): (("chain", "draw"), trace, {"units": str(unit)}) for name, unit, trace in named}
        return xr.Dataset(arrays, {"chain": chain[first], "draw": draw[samples.chains[0][: values.shape[-1]]]})

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each scalar summary."""
        return self.summaries.reset_coords(drop=True).to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        partition = f"R-hat {self.partition_rhat:.3f}, ESS {self.partition_ess:.0f} of {self.n_draws} draws"
        facts = [("verdict", self.verdict), ("partition", partition)]
        if self.n_compared < self.items.size:
            facts.insert(1, ("pairs", f"of {self.n_compared:,} of the {self.items.size:,} items, chosen at random"))
        if not np.isnan(self.gap.size):
            (low, high), (least, most) = self.gap.chains, self.gap.shares
            pair = f"items {' and '.join(self.gap_items)}, co-clustered with probability"
            size = display.with_error(f"{self.gap.size:.3f}", self.gap.mcse)
            where = f"{size}: {pair} {least:.2f} in chain {low}, {most:.2f} in chain {high}"
            facts.append(("largest difference", where))
        if self.pairs.sizes["pair"]:
            facts.append((f"{self.pairs.sizes['pair']} pairs", self._worst_pairs()))
        chains = display.counted(self.n_chains, "chain")
        return f"Diagnosis: {chains}, {self.status}", facts, self.to_dataframe()

    def _worst_pairs(self) -> str:
        parts = []
        for name, text, worst in (
            ("rhat", "R-hat at most {:.3f}", np.nanargmax),
            ("ess_bulk", "ESS at least {:.0f}", np.nanargmin),
        ):
            values = self.pairs[name].values
            if not np.isnan(values).all():
                at = self.pairs.isel(pair=int(worst(values)))
                parts.append(f"{text.format(float(at[name]))} ({at['pair_first'].item()}, {at['pair_second'].item()})")
        return ", ".join(parts) or "too few draws"


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
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose distance to every draw is followed, typically the consensus. By default that of a summary,
        else a central draw: that of minimum expected loss among 64.
    loss : str or PartitionLoss, optional
        The distance. By default the loss that `partition` was found under, if it is a result, else "vi".
    references : dict of str to partition, or sequence of partitions, optional
        Further partitions whose distance is followed. Two sets of draws can lie equally far from one partition; the
        default is therefore the draw farthest from `partition`, and the draw farthest from that one.
    n_pairs : int
        Number of pairs of items whose co-clustering is followed, sampled from those that are co-clustered in some
        draws and in different clusters in others.
    random_seed : int, Generator, SeedSequence or None
        Draws the pairs; None draws the same ones each time.

    Returns
    -------
    Diagnosis

    Raises
    ------
    ValueError
        If a partition does not label the draws' items, `n_pairs` is below 1, or the draws are invalid as
        :func:`as_partition_draws` says.

    See Also
    --------
    plot_traces : the traces as a picture.
    plot_psm : with ``by="chain"``, the similarity matrices of the chains side by side.

    Notes
    -----
    ArviZ computes R-hat and effective sample sizes [1]_ of every summary and every pair's indicator, over chains cut to
    the length of the shortest. The tail is that of the 5% and 95% quantiles. The documentation, "Convergence", has the
    formulas and those of the partition itself. Weights enter means, their errors and effective sample sizes. R-hat and
    the gap ignore them: they compare the chains as they were sampled. With allocation probabilities they compare the
    labels sampled from them.

    The verdict names a clear burn-in and its length. The rule of :func:`diagnostics.sequential_distances` is applied to
    the traces of sizes and of the distance to the partition. A burn-in is clear if most of its draws are outside the
    range of all later draws, and its mean is more than five of their standard deviations from theirs.

    What goes over all pairs of items (R-hat and effective sample size of the partition, the largest gap, the pairs
    followed, the central draw) grows with the square of their number: of more than 10,000 items it is taken over the
    pairs of 10,000, chosen at random and always the same. Sizes and distances are of all items.

    The chains *disagree* if the R-hat of the partition is above 1.05. They also disagree if the R-hat of a summary or
    of the worst pair is above 1.05, or the largest gap above 0.1, by more than chance explains among so many. They are
    *short* if any effective sample size is below 100 for each chain [1]_, or an R-hat above 1.01 [1]_. The status is
    *unknown* if the weights leave fewer than four effective draws for each chain, by Kish's number
    (:attr:`Samples.effective_draws`), or if chains that agree hold the same draws, all of them or a long stretch.

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
    >>> found.status, found.gap.size, found.gap.items
    ('disagree', 1.0, (0, 1))
    >>> found.summaries["mean"].sel(summary="number of clusters").item()
    2.0
    """
    followed: dict[str, Any] = {"references": references, "loss": loss, "n_pairs": n_pairs, "random_seed": random_seed}
    taken = as_draws(draws)
    followed["logs"] = log_of_draws(draws, taken)
    return diagnose_within(None, taken, own_partition(draws, partition), **followed)


def diagnose_within(
    seconds: float | None,
    draws: PartitionDraws,
    partition: Any,
    *,
    logs: LogOfDraws | None = None,
    references: Any = None,
    loss: str | PartitionLoss | None = None,
    n_pairs: Any = 50,
    random_seed: RandomSeed = None,
) -> Diagnosis:
    """Do what :func:`diagnose` does, over the pairs of fewer items where those of all would take longer than that."""
    record = as_loss(loss, partition, kind=PartitionLoss)
    n_pairs, rng = check_count("n_pairs", n_pairs), as_generator(random_seed, otherwise=0)
    plain, samples = draws.as_sampled(), draws.samples
    center = central_draw(plain, record) if partition is None else draws.as_labels(partition)
    name = "distance to central draw" if partition is None else "distance to consensus"
    traces = _traces(plain, {name: center}, references, record).assign_coords(samples.coords)
    at, some = _compared(plain, seconds)
    together = pairs_together(some)
    chosen = uncertain_pairs(some, n_pairs, rng)
    named = {"summary": traces["summary"], "unit": traces["unit"]}
    summaries = _statistics(draws, "summary", named, traces.values, mcse=samples.mcse(traces.values))
    of_pairs = {f"pair_{name}": ("pair", draws.items.named(at[chosen[:, k]])) for k, name in enumerate(_OF_PAIR)}
    followed_pairs = together_trace(some, chosen)
    pairs = _statistics(draws, "pair", of_pairs, followed_pairs)
    variance = partition_variance(some, together)
    ess = partition_ess(some, together, variance) * samples.effective_draws / draws.n_draws
    gap = largest_gap(some)
    first, second = draws.items.named(at[list(gap.items)]).tolist()
    all_still, still = still_chains(plain)
    rows = traces["summary"].values.tolist()
    typical = traces.values[: rows.index(name) + 1]  # far draws are extreme by choice
    least = np.fmin(summaries["ess_bulk"].values, summaries["ess_tail"].values)
    evidence = Evidence(
        draws=draws,
        n_compared=some.n_items,
        moves=not all_still,
        still=[samples.chain_names[k] for k in np.flatnonzero(still)],
        rhats={"partition": variance.rhat, **dict(zip(rows, summaries["rhat"].values, strict=True))},
        ess={"partition": ess, **dict(zip(rows, least, strict=True))},
        beyond_chance=["partition", *(rows[k] for k in np.flatnonzero(differ(plain, traces.values)))],
        pair_rhat=float(np.fmax.reduce(pairs["rhat"].values[differ(plain, followed_pairs)], initial=np.nan)),
        gap=gap,
        odd_chain=odd_chain(some, gap, together),
        copies=copies(draws, some),
        burn_in=dict(zip(samples.chain_names, clear_burn_in(typical, samples.chains), strict=True)),
    )
    status, verdict = judge(evidence, (first, second))
    if status == "disagree":
        verdict = f"{verdict} {about_chains(draws, logs, evidence.odd_chain, record, seconds)}".rstrip()
    if not np.isnan(gap.size):
        gap = replace(gap, items=(int(at[gap.items[0]]), int(at[gap.items[1]])))
    return Diagnosis(
        status=status,
        verdict=verdict,
        traces=traces,
        summaries=summaries,
        pairs=pairs,
        partition_rhat=variance.rhat,
        partition_ess=ess,
        gap=gap,
        gap_items=(first, second),
        n_compared=some.n_items,
        odd_chain=evidence.odd_chain,
        items=draws.items.array(center, "center"),
        n_chains=len(samples.chains),
        n_draws=draws.n_draws,
        effective_draws=samples.effective_draws,
        loss=record,
    )


def _compared(draws: PartitionDraws, seconds: float | None) -> tuple[npt.NDArray[np.intp], PartitionDraws]:
    """Positions and draws of the items whose pairs are gone over."""
    if seconds is None:
        return draws.of_some_items()
    most = int(np.sqrt(seconds / (_SECONDS_A_PAIR * (1 + draws.n_draws / _DRAWS_A_PAIR))))
    return draws.of_some_items(max(_FEWEST_COMPARED, most))


def _traces(draws: PartitionDraws, center: dict[str, Labels], references: Any, loss: PartitionLoss) -> xr.DataArray:
    """What is followed along the chains: sizes, and distances to the center and to references or two far draws."""
    given = {} if references is None else by_name(references, "references")
    what = "distance to" if isinstance(references, Mapping) else "distance to reference"
    named = center | {f"{what} {name}": draws.as_labels(partition, "references") for name, partition in given.items()}
    distances = dict(zip(named, loss_matrix(np.stack(list(named.values())), draws, loss), strict=True))
    if references is None:
        far = far_distances(draws, next(iter(distances.values())), loss)
        distances |= dict(zip(("distance to far draw", "distance to opposite draw"), far, strict=True))
    followed = size_traces(draws) | {name: (row, loss.unit) for name, row in distances.items()}
    values, units = zip(*followed.values(), strict=True)
    coords = {"summary": list(followed), "unit": ("summary", list(units))}
    return xr.DataArray(np.stack(values), coords, ("summary", "sample"), "trace")


def _statistics(draws: PartitionDraws, dim: str, coords: Any, values: Floats, **more: Floats) -> xr.Dataset:
    columns = {"mean": draws.samples.mean(values)} | more | arviz_statistics(draws, values)
    return xr.Dataset({name: (dim, column) for name, column in columns.items()}, coords)
