"""Record of a summary of scored pairs: results of all steps and their storage."""

from dataclasses import dataclass, field

import pandas as pd
import xarray as xr

from posterior_consensus.answers.loss_parameter import LossPath
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.results import stored_as
from posterior_consensus.summary.record import HasPartition, was_interrupted


@dataclass(frozen=True, eq=False, repr=False)
class PairsRecord(HasPartition):
    """Fields of :class:`PairsSummary`, which describes them."""

    pairs: ScoredPairs
    partition: ConsensusPartition = field(metadata=stored_as.record(ConsensusPartition))
    component: xr.DataArray = field(metadata=stored_as.array("linked_component", of_items=True))
    links: ScoredLinks
    curve: LossPath | None
    seconds: dict[str, float] = field(metadata=stored_as.in_json("summary_seconds"))
    cut: tuple[str, ...] = field(default=(), metadata=stored_as.names("summary_cut"))
    seed: int | None = field(default=None, metadata=stored_as.in_json("summary_seed"))

    @property
    def draws(self) -> ScoredPairs:
        """The scored pairs, which functions take as the posterior of this summary."""
        return self.pairs

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended one of the searches; results are those until then."""
        return was_interrupted(self.partition, self.curve)

    @property
    def records(self) -> xr.Dataset:
        """Of each record: size of its cluster, mean probability to its rest, and the most probable pair outside."""
        assert self.partition.records is not None
        return self.partition.records

    @property
    def tau(self) -> float:
        """Pair threshold of the loss: joining a pair lowers the expected loss if its score exceeds it."""
        return self.links.tau

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the records: cluster, its size, mean probability to its cluster, and the best pair outside."""
        return self.partition.to_dataframe()
