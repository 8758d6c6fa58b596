"""Diagnosis: record of the chains' agreement and effective sample sizes."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.diagnostics.groups import RunSpread
from posterior_consensus.diagnostics.unvisited import could_miss
from posterior_consensus.ensemble.chains import ChainDifference
from posterior_consensus.ensemble.samples import ChainSamples
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.sentences import Sentence, in_full
from posterior_consensus.results.stored_as import InWords

_STORED_SAMPLE = {"sample": "trace_sample", "chain": "trace_chain", "draw": "trace_draw"}
STATISTICS = ("rhat", "ess_bulk", "ess_tail")


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(InWords):
    """Agreement of the chains and effective sample sizes, returned by :func:`diagnose`.

    Attributes
    ----------
    status : {"agree", "short", "disagree", "unknown", "runs"}
        "short": no sign of disagreement, but too few effective draws. "unknown": one chain; chains that are too short,
        never move or are copies of one another; or weights that leave too few effective draws. Groups of independent
        runs agree or disagree, or are too small to tell; "runs": runs without groups, which have nothing to agree on.
    sentences : tuple of Sentence
        The sentences of `verdict`, of which those that advise are marked.
    traces : xarray.DataArray of shape (summary, sample)
        Scalar summaries of every draw, with coordinates ``chain``, ``draw`` and ``unit``.
    summaries : xarray.Dataset
        ``mean``, ``mcse``, ``rhat`` (rank-normalized split R-hat), ``ess_bulk`` and ``ess_tail`` over the dimension
        ``summary``. R-hat is infinite if chains that never move differ. It alone ignores weights.
    pairs : xarray.Dataset
        ``mean``, ``rhat``, ``ess_bulk`` and ``ess_tail`` of the co-clustering of a sample of pairs, over ``pair``, with
        their items as ``pair_first`` and ``pair_second``.
    partition_rhat : float
        R-hat of the partition: of the association matrix, with variances summed over all pairs of items.
    partition_ess : float
        Effective sample size of the partition, from the distances between successive draws and Kish's effective number.
    largest_difference : ChainDifference
        Largest between-chain difference of a pair's posterior similarity: ``size``, ``mcse``, ``items``
        (positions), ``chains`` and ``shares``.
    difference_items : tuple of str
        Names of the two items of `largest_difference`.
    n_compared : int
        Number of items whose pairs enter `pairs`, `partition_rhat`, `partition_ess` and `largest_difference`: all, or
        10,000.
    odd_chain : object or None
        Name of the only chain that differs from all others while these agree; None if there is none.
    partition : xarray.DataArray of shape (n_items,), dtype int32
        Partition whose distance to the draws is followed.
    n_chains, n_draws : int
        Numbers of chains and of draws.
    effective_draws : float
        Kish's effective number of draws; `n_draws` without weights.
    loss : PartitionLoss
        Loss that measures distance.
    spread : RunSpread or None
        For independent runs, the mean distance between two of them, ``distance`` and ``distance_mcse``, also ``within``
        and ``between`` groups, and the ``p_value`` of the test of equal groups. None for chains.
    """

    _figure = "draws.plot_traces"

    status: str = field(metadata=stored_as.attribute("status"))
    sentences: tuple[Sentence, ...] = field(metadata=stored_as.sentences("verdict_sentences"))
    traces: xr.DataArray = field(metadata=stored_as.array("trace", _STORED_SAMPLE, name="trace"))
    summaries: xr.Dataset = field(metadata=stored_as.table("summary_{}", ("mean", "mcse", *STATISTICS)))
    pairs: xr.Dataset = field(metadata=stored_as.table("pair_{}", ("mean", *STATISTICS)))
    partition_rhat: float = field(metadata=stored_as.number("partition_rhat"))
    partition_ess: float = field(metadata=stored_as.number("partition_ess"))
    largest_difference: ChainDifference = field(metadata=stored_as.record(ChainDifference))
    difference_items: tuple[str, str] = field(metadata=stored_as.names("chain_difference_items"))
    n_compared: int = field(metadata=stored_as.attribute("diagnosis_items_compared"))
    odd_chain: object | None = field(metadata=stored_as.in_json("odd_chain"))
    partition: xr.DataArray = field(metadata=stored_as.array("diagnosis_partition", of_items=True))
    n_chains: int = field(metadata=stored_as.attribute("diagnosis_chains"))
    n_draws: int = field(metadata=stored_as.attribute("diagnosis_draws"))
    effective_draws: float = field(metadata=stored_as.number("effective_draws"))
    loss: PartitionLoss = field(metadata=stored_as.loss("diagnosis_"))
    _of_runs: ClassVar = "diagnosis_independent"
    spread: RunSpread | None = field(default=None, metadata=stored_as.record(RunSpread))

    _also_stored: ClassVar = {"verdict": stored_as.attribute("verdict")}

    @property
    def verdict(self) -> str:
        """The evidence for the status, and the next step."""
        return in_full(self.sentences)

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat of the partition and the scalar summaries; NaN if there is none."""
        return float(np.fmax.reduce([*self.summaries["rhat"].values, self.partition_rhat]))

    @property
    def least_ess(self) -> float:
        """Smallest effective sample size (bulk or tail) of the partition and scalar summaries; NaN if there is none."""
        bulk, tail = self.summaries["ess_bulk"].values, self.summaries["ess_tail"].values
        return float(np.fmin.reduce([*bulk, *tail, self.partition_ess]))

    @property
    def could_miss(self) -> float:
        """Share of the draws below which a mode that one chain misses would go unnoticed; NaN if unknown.

        It follows from the smallest effective sample size, also of the pairs, and is 2% at least. It is larger for a
        mode that noise blurs. A mode that all chains miss goes unnoticed at any share.
        """
        ess = float(np.fmin.reduce([self.least_ess, *self.pairs["ess_bulk"].values]))
        if self.spread is not None or self.n_chains < 2 or np.isnan(ess):
            return np.nan
        # Traces of clusters count even where they exceeded the memory budget: the share is then rather too large.
        n_clusters = int(self.partition.max()) + 1
        return could_miss(self.summaries.sizes["summary"], n_clusters, self.n_chains, ess / self.n_chains)

    @property
    def traces_by_chain(self) -> xr.Dataset:
        """Convert `traces` for ArviZ: a variable of shape (chain, draw) each, with chains cut to the shortest.

        Input of ``az.summary``, ``az.plot_trace``, ``az.plot_rank`` and, from ArviZ 1, ``az.diagnose``.
        """
        chain, draw = self.traces["chain"].values, self.traces["draw"].values
        samples = ChainSamples(chain, draw, np.full(chain.size, 1.0 / chain.size))
        first = [rows[0] for rows in samples.chains]
        values = samples.by_chain(self.traces.values)
        named = zip(self.traces["summary"].values, self.traces["unit"].values, values, strict=True)
        arrays = {str(name): (("chain", "draw"), trace, {"units": str(unit)}) for name, unit, trace in named}
        return xr.Dataset(arrays, {"chain": chain[first], "draw": draw[samples.chains[0][: values.shape[-1]]]})

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the scalar summaries; those of runs have a mean and its error."""
        table = self.summaries.reset_coords(drop=True).to_dataframe()
        return table if self.spread is None else table[["mean", "mcse"]]

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        rhat, ess = (
            "unknown" if np.isnan(value) else f"{value:,.{digits}f}"
            for value, digits in ((self.partition_rhat, 3), (self.partition_ess, 0))
        )
        words, chains = self.words, display.counted(self.n_chains, self.words.chain)
        partition = f"R-hat {rhat}, ESS {ess} of {display.counted(self.n_draws, 'draw')}"
        lines = [("verdict", self.verdict), ("partition", partition)]
        if self.spread is not None:
            lines[1] = (words.draws, f"{self.n_draws:,}")
        if self.n_compared < self.partition.size:
            lines.insert(1, ("pairs", f"of {self.n_compared:,} of the {self.partition.size:,} items, chosen at random"))
        if not np.isnan(self.largest_difference.size):
            (low, high), (least, most) = self.largest_difference.chains, self.largest_difference.shares
            error = display.error_in_digits(self.largest_difference.mcse)
            # Three decimals, next to the verdict's two, which are rounded up.
            where = f"{self.largest_difference.size:.3f} ({words.mcse} {error}): {self.difference_pair}, "
            where += f"{words.similarity} {least:.3f} in {words.chain} {low}, {most:.3f} in {words.chain} {high}"
            lines.append(("largest difference", where))
        if self.pairs.sizes["pair"] and self.spread is None:
            lines.append((display.counted(self.pairs.sizes["pair"], "pair"), self._worst_pairs()))
        judged, status = chains, self.status
        if self.spread is not None and self.n_chains == 1:
            judged, status = display.counted(self.n_draws, "run"), self.status.replace("runs", "no verdict")
        return f"Diagnosis: {judged}, {status}", lines, self.to_dataframe()

    @property
    def difference_pair(self) -> str:
        """Noun and names of the two items of `largest_difference`."""
        noun = display.plural(str(self.partition.dims[0])) or "items"
        return f"{noun} {' and '.join(self.difference_items)}"

    def _worst_pairs(self) -> str:
        parts = []
        for name, text, outwards, form, worst in (
            ("rhat", "R-hat at most", display.at_most, ".3f", np.nanargmax),
            ("ess_bulk", "ESS at least", display.at_least, ",.0f", np.nanargmin),
        ):
            values = self.pairs[name].values
            if not np.isnan(values).all():
                at = self.pairs.isel(pair=int(worst(values)))
                parts.append(
                    f"{text} {outwards(float(at[name]), form)} ({at['pair_first'].item()}, {at['pair_second'].item()})"
                )
        return ", ".join(parts) or "too few draws"
