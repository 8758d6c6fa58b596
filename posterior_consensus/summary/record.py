"""Record of a summary: results of all steps, and their storage."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import pandas as pd
import xarray as xr

from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.links import Links
from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.answers.particles import Particles
from posterior_consensus.bounds.bound import relative_gap
from posterior_consensus.bounds.certificate import Certificate
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.comparison import ExcessLoss
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import stored_as
from posterior_consensus.results.display import Tabled
from posterior_consensus.results.stored_as import as_dataset


@dataclass(frozen=True, eq=False, repr=False)
class SummaryRecord(HasDraws, Tabled):
    """Fields of :class:`Summary`, which describes them."""

    source: str = field(metadata=stored_as.attribute("source"))
    draws: PartitionDraws
    consensus: ConsensusPartition = field(metadata=stored_as.record(ConsensusPartition))
    certificate: Certificate | None = field(metadata=stored_as.record(Certificate))
    ball: CredibleBall = field(metadata=stored_as.record(CredibleBall))
    items: ItemUncertainty = field(metadata=stored_as.record(ItemUncertainty))
    diagnosis: Diagnosis = field(metadata=stored_as.record(Diagnosis))
    alternative: ConsensusPartition | None = field(metadata=stored_as.record(ConsensusPartition, "alternative_"))
    answers: Particles | None = field(metadata=stored_as.record(Particles))
    observed: xr.DataArray | None
    seconds: dict[str, float] = field(metadata=stored_as.in_json("summary_seconds"))
    cut: tuple[str, ...] = field(default=(), metadata=stored_as.names("summary_cut"))
    no_certificate: str = field(default="", metadata=stored_as.attribute("summary_no_certificate"))
    links: Links | None = field(default=None, metadata=stored_as.record(Links))
    resampled: ConsensusPartition | None = field(
        default=None, metadata=stored_as.record(ConsensusPartition, "resampled_")
    )
    excess: ExcessLoss | None = field(default=None, metadata=stored_as.record(ExcessLoss))

    @property
    def labels(self) -> xr.DataArray:
        """Labels of the consensus, so that a summary serves as a partition."""
        return self.consensus.labels

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the consensus's clusters, by number."""
        return self.consensus.names

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the consensus."""
        return self.consensus.n_clusters

    @property
    def loss(self) -> PartitionLoss:
        """Loss minimized by the consensus."""
        return as_loss(self.consensus.loss, kind=PartitionLoss)

    @property
    def lower_bound(self) -> float | None:
        """Larger lower bound of search and certificate; None without both."""
        certified = None if self.certificate is None else self.certificate.lower_bound
        return max((one for one in (self.consensus.lower_bound, certified) if one is not None), default=None)

    @property
    def gap(self) -> float | None:
        """Optimality gap, the largest possible excess relative to the expected loss; None without a bound."""
        return None if self.lower_bound is None else relative_gap(self.consensus.expected_loss, self.lower_bound)

    def to_dataset(self) -> xr.Dataset:
        """Convert all results to one Dataset for any file format; ``attach(idata, summary)`` adds it to a posterior."""
        return as_dataset(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters: size, share, mean similarity of the items, and the first few items."""
        table = self.consensus.to_dataframe()
        similarity = pd.Series(self.items.similarity.values).groupby(self.consensus.labels.values).mean()
        table.insert(2, "together", similarity.to_numpy())
        return table
