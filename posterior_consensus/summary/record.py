"""Record of a summary: results of all steps and their storage; conditions of steps, and the draws of long ones."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.cluster_stability import ClusterStability
from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.links import Links
from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.answers.particles import Particles
from posterior_consensus.bounds.bound import relative_gap
from posterior_consensus.bounds.certificate import Certificate
from posterior_consensus.consensus.record import ConsensusPartition, stopped
from posterior_consensus.diagnostics.comparison import ExcessLoss
from posterior_consensus.diagnostics.new_runs import NewRuns
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, evenly_spaced
from posterior_consensus.losses.lookup import as_loss_of_draws
from posterior_consensus.losses.record import NoiseLoss, PartitionLoss
from posterior_consensus.plots.frame import shortened
from posterior_consensus.results import stored_as
from posterior_consensus.results.display import apart_from, as_text, counted, latex_table
from posterior_consensus.results.stored_as import as_dataset
from posterior_consensus.results.words import DRAWS, RUNS, Words
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.runtime import memory
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.summary.claims import HasClaims

OTHER_LABELS = "labels sampled anew"  # a step
TOO_MANY = f"there are more than {memory.LABELS_TO_SEARCH_AGAIN:,} labels"
IMPROBABLE = 0.05  # posterior probability below which a number of clusters is reported as improbable
SOME_DRAWS = 500
_MOST_ROWS, _MOST_LISTED, _LONGEST = 20, 4, 40  # clusters of a table for print, and items and characters in a row
_FEWEST = {DRAWS: 100, RUNS: 20}  # effective draws, or runs; with fewer, agreement of halves proves little


class HasPartition(HasDraws, HasClaims):
    """A summary that serves as a partition, its consensus partition."""

    partition: ConsensusPartition

    @property
    def labels(self) -> xr.DataArray:
        """Labels of the consensus, -1 for noise, so that a summary serves as a partition."""
        return self.partition.labels

    @property
    def noise(self) -> xr.DataArray | None:
        """Whether each item is noise; None for a loss without noise."""
        return self.partition.noise

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the partition's clusters, by number."""
        return self.partition.names

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the partition."""
        return self.partition.n_clusters

    @property
    def loss(self) -> PartitionLoss | NoiseLoss:
        """Loss minimized by the partition."""
        return as_loss_of_draws(self.partition.loss)


@dataclass(frozen=True, eq=False, repr=False)
class SummaryRecord(HasPartition):
    """Fields of :class:`Summary`, which describes them."""

    source: str = field(metadata=stored_as.attribute("source"))
    draws: PartitionDraws
    partition: ConsensusPartition = field(metadata=stored_as.record(ConsensusPartition))
    certificate: Certificate | None = field(metadata=stored_as.record(Certificate))
    ball: CredibleBall = field(metadata=stored_as.record(CredibleBall))
    items: ItemUncertainty = field(metadata=stored_as.record(ItemUncertainty))
    diagnosis: Diagnosis = field(metadata=stored_as.record(Diagnosis))
    alternative: ConsensusPartition | None = field(metadata=stored_as.record(ConsensusPartition, "alternative_"))
    modes: Particles | None = field(metadata=stored_as.record(Particles))
    observed: xr.DataArray | None
    seconds: dict[str, float] = field(metadata=stored_as.in_json("summary_seconds"))
    cut: tuple[str, ...] = field(default=(), metadata=stored_as.names("summary_cut"))
    no_certificate: str = field(default="", metadata=stored_as.attribute("summary_no_certificate"))
    links: Links | None = field(default=None, metadata=stored_as.record(Links))
    resampled: ConsensusPartition | None = field(
        default=None, metadata=stored_as.record(ConsensusPartition, "resampled_")
    )
    excess: ExcessLoss | None = field(default=None, metadata=stored_as.record(ExcessLoss))
    seed: int | None = field(default=None, metadata=stored_as.in_json("summary_seed"))
    new_runs: NewRuns | None = field(default=None, metadata=stored_as.record(NewRuns))
    source_in_short: str = field(default="", metadata=stored_as.attribute("source_in_short"))
    clusters: ClusterStability | None = field(default=None, metadata=stored_as.record(ClusterStability))

    @property
    def words(self) -> Words:
        """What draws and chains are called in texts and figures."""
        return self.draws.words

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended one of the searches; results are those until then."""
        return was_interrupted(self.partition, self.excess, self.resampled, self.alternative, self.modes)

    @property
    def lower_bound(self) -> float | None:
        """Larger lower bound of search and certificate; None without both."""
        certified = None if self.certificate is None else self.certificate.lower_bound
        return max((one for one in (self.partition.lower_bound, certified) if one is not None), default=None)

    @property
    def optimality_gap(self) -> float | None:
        """Optimality gap, the largest possible excess relative to the expected loss; None without a bound."""
        return None if self.lower_bound is None else relative_gap(self.partition.expected_loss, self.lower_bound)

    def to_dataset(self) -> xr.Dataset:
        """Convert all results to one Dataset for any file format; ``attach(idata, summary)`` adds it to a posterior."""
        return as_dataset(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters, a row each; noise is last.

        Returns
        -------
        pandas.DataFrame
            ``size``, ``share`` of the items, mean ``similarity`` of the items, the first few items and, with
            `clusters`, the share of the draws in which the cluster is ``found``; its :meth:`to_dataframe` has more.
        """
        table = self.partition.to_dataframe()
        similarity = pd.Series(self.items.similarity.values).groupby(self.partition.labels.values).mean()
        table.insert(2, "similarity", similarity.reindex(range(len(table))).to_numpy())
        if self.clusters is not None:
            found = pd.Series(self.clusters.table["found"].values)
            table.insert(3, "found", found.reindex(range(len(table))).to_numpy(), allow_duplicates=True)
        return table

    def _short_table(self) -> pd.DataFrame:
        """The table whose first items take so few characters that it fits a page, or a terminal of 80 columns."""
        table = self.to_dataframe()
        table.isetitem(table.shape[1] - 1, [_first_of(items) for items in self.partition._members()])
        return table

    def to_latex(self, caption: str = "", label: str = "") -> str:
        r"""Write :meth:`to_dataframe` as a LaTeX table that fits a page, with the rules of the package ``booktabs``.

        Parameters
        ----------
        caption, label : str
            Caption, in LaTeX, and label of a ``table`` environment around the table. By default there is none.

        Returns
        -------
        str
            A ``tabular`` environment as of :meth:`ConsensusPartition.to_latex`. Of more than 20 clusters, it has the 20
            largest and one row, "others", for the rest: their number of items, its share, and the mean similarity of
            these items, but not ``found``. First items are listed up to 40 characters.
            ``summary.partition.to_latex()`` has all clusters.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> summary = pc.summarize([[0, 0, 1], [0, 0, 1]] * 8, random_seed=1, progressbar=False)
        >>> print(summary.to_latex())
        \begin{tabular}{rrrrrl}
        \toprule
        cluster & size & share & similarity & found & item \\
        \midrule
        0 & 2 & 0.67 & 1 & 1 & 0, 1 \\
        1 & 1 & 0.33 & -- & 1 & 2 \\
        \bottomrule
        \end{tabular}
        """
        table, dim = self._short_table(), str(self.labels.dims[0])
        clusters, noise = table.iloc[: self.n_clusters], table.iloc[self.n_clusters :]
        largest = np.argsort(-clusters["size"].to_numpy(), kind="stable")[:_MOST_ROWS]
        rest = clusters.drop(index=clusters.index[largest])
        if len(rest) < 2:  # a row for one cluster
            return latex_table(table, caption, label)
        sizes, known = rest["size"], rest["similarity"].notna()
        fewest, most = int(sizes.min()), int(sizes.max())
        of = counted(most, "item") if fewest == most else f"{fewest} to {most} items"
        row = {
            "size": sizes.sum(),
            "share": rest["share"].sum(),
            "similarity": np.average(rest["similarity"][known], weights=sizes[known]) if known.any() else np.nan,
            dim: f"{len(rest):,} clusters of {of}",
        }
        others = pd.DataFrame(row, index=pd.Index(["others"], name="cluster"))
        return latex_table(pd.concat([clusters.iloc[np.sort(largest)], others, noise]), caption, label)


def _first_of(items: list[Hashable]) -> str:
    """The first items, at most four and to 40 characters in all; a long name alone is without its middle."""
    names = [as_text(item) for item in items[:_MOST_LISTED]]
    while len(names) > 1 and len(", ".join(names)) > _LONGEST:
        names.pop()
    names[0] = shortened(names[0], _LONGEST)
    return ", ".join([*names, "..."] if len(names) < len(items) else names)


def number_probabilities(draws: PartitionDraws) -> npt.NDArray[np.float64]:
    """Posterior probability of each number of clusters, from 0 on."""
    return np.bincount(draws.n_clusters, weights=draws.weights).astype(np.float64)


def is_improbable(draws: PartitionDraws, best: ConsensusPartition) -> bool:
    """Whether the number of clusters, if it was not requested, has a small posterior probability."""
    probability = number_probabilities(draws)[best.n_clusters : best.n_clusters + 1].sum()
    return best.cluster_limits == ClusterLimits() and bool(probability < IMPROBABLE)


def no_halves_because(draws: PartitionDraws, best: ConsensusPartition, diagnosis: Diagnosis) -> str:
    """Reason why halves of the draws do not show the effect of more draws; empty if they do."""
    words = draws.samples.words
    if diagnosis.status == "disagree":
        return f"the {words.chains} do not agree"
    if diagnosis.status == "unknown" and diagnosis.n_chains > 1:
        return words.either("convergence is unknown", "the groups have no verdict")
    of_loss = draws.samples.effective_draws if best.mcse == 0 else best.ess
    ess = float(np.fmin(of_loss, diagnosis.partition_ess))
    fewest = _FEWEST[words]
    if not ess >= fewest:
        size = "unknown" if np.isnan(ess) else f"{apart_from(ess, fewest, '.0f')}, below {fewest}"
        return f"the {words.size} is {size}"
    return TOO_MANY if draws.n_items * draws.n_draws > memory.LABELS_TO_SEARCH_AGAIN else ""


def uses_sampled_labels(draws: PartitionDraws, best: ConsensusPartition) -> bool:
    """Whether the search used sampled labels; expected Binder losses use the probabilities."""
    return draws.counted_draws is None and best.loss.as_binder() is None and isinstance(best.info, SearchInfo)


def was_interrupted(*searches: Any) -> bool:
    """Whether Ctrl-C ended one of these searches, of which some may be None."""
    ends = (stopped(one) if isinstance(one, ConsensusPartition) else one and one.stopped for one in searches)
    return "interrupted" in ends


def why_skipped(*searches: Any) -> str:
    """Reason why steps after these searches were left out."""
    return "a search was interrupted" if was_interrupted(*searches) else "no time was left"


def some_draws(draws: PartitionDraws, most: int = SOME_DRAWS) -> PartitionDraws:
    """Select draws evenly spaced in each chain, or at even quantiles of the weights, with multiplicity as weight.

    Independent runs stay in their order, and are chosen by the one that does not depend on it.
    """
    if not draws.samples.series:
        if draws.n_draws <= most:
            return draws
        if not draws.samples.is_weighted:
            return draws.take(np.flatnonzero(np.isin(draws.own_order, evenly_spaced(draws.n_draws, most))))
        draws = draws.in_fixed_order()
    if draws.n_draws > most and draws.samples.is_weighted:
        shares = (np.arange(most) + 0.5) / most
        rows, times = np.unique(draws.samples.at_quantiles(shares), return_counts=True)
        some = draws.take(rows)
        return replace(some, samples=some.samples.weighted(times.astype(np.float64)))
    # Every chain keeps at least FEWEST_DRAWS draws, if it has them.
    step = min(-(-draws.n_draws // most), max(1, draws.samples.shortest // FEWEST_DRAWS))
    return draws.isel(draw=slice(None, None, step))
