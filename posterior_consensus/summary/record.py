"""The record of a summary: the results of all steps, and how they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr

from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.item_uncertainty import ItemUncertainty
from posterior_consensus.answers.particle_record import Particles
from posterior_consensus.bounds.bound import relative_gap
from posterior_consensus.bounds.certificate import Certificate
from posterior_consensus.consensus import ConsensusPartition
from posterior_consensus.diagnostics import Diagnosis
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.plain import as_json, from_json
from posterior_consensus.results.storage import HasDataset

_ALTERNATIVE = "alternative_"


@dataclass(frozen=True, eq=False, repr=False)
class SummaryRecord(HasLabels):
    """What :class:`Summary` holds; its attributes are described there."""

    source: str
    draws: PartitionDraws
    consensus: ConsensusPartition
    certificate: Certificate | None
    ball: CredibleBall
    items: ItemUncertainty
    diagnosis: Diagnosis
    alternative: ConsensusPartition | None
    answers: Particles | None
    observed: xr.DataArray | None
    seconds: dict[str, float]
    cut: tuple[str, ...] = ()
    no_certificate: str = ""

    @property
    def labels(self) -> xr.DataArray:
        """Labels of the consensus, so that a summary serves as a partition."""
        return self.consensus.labels

    @property
    def loss(self) -> PartitionLoss:
        """Loss that the consensus was found under."""
        return as_loss(self.consensus.loss, kind=PartitionLoss)

    @property
    def lower_bound(self) -> float | None:
        """The higher of the bounds that the search and the certificate give; None where neither gives one."""
        certified = None if self.certificate is None else self.certificate.lower_bound
        return max((one for one in (self.consensus.lower_bound, certified) if one is not None), default=None)

    @property
    def gap(self) -> float | None:
        """Share of the expected loss by which the least can be smaller; None without a lower bound."""
        return None if self.lower_bound is None else relative_gap(self.consensus.expected_loss, self.lower_bound)

    def to_dataset(self) -> xr.Dataset:
        """All results in one Dataset that any file format holds; ``attach(idata, summary)`` adds it to a posterior."""
        parts: list[HasDataset] = [self.consensus, self.ball, self.items, self.diagnosis]
        parts += [part for part in (self.certificate, self.answers) if part is not None]
        datasets = [part.to_dataset() for part in parts]
        if self.alternative is not None:
            datasets.append(_as_alternative(self.alternative.to_dataset()))
        merged = xr.merge(datasets, join="exact", compat="identical", combine_attrs="drop_conflicts")
        told = {"summary_seconds": as_json(self.seconds), "summary_cut": as_json(self.cut)}
        return merged.assign_attrs(source=self.source, summary_no_certificate=self.no_certificate, **told)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each cluster: its size, its share, its items' mean similarity, and the first few of them."""
        table = self.consensus.to_dataframe()
        labels = self.consensus.labels.values
        own = pd.Series(self.items.probability.values).groupby(labels)
        table.insert(2, "together", own.mean().to_numpy())
        return table


def stored_fields(dataset: xr.Dataset) -> dict[str, Any]:
    """The fields of a record that is stored in a Dataset, all but draws and data."""
    return {
        "source": dataset.attrs["source"],
        "consensus": ConsensusPartition.from_dataset(dataset),
        "certificate": Certificate.from_dataset(dataset) if "certified_partition" in dataset else None,
        "ball": CredibleBall.from_dataset(dataset),
        "items": ItemUncertainty.from_dataset(dataset),
        "diagnosis": Diagnosis.from_dataset(dataset),
        "alternative": _alternative_in(dataset),
        "answers": Particles.from_dataset(dataset) if "particle_partition" in dataset else None,
        "seconds": from_json(dataset.attrs["summary_seconds"]),
        "cut": tuple(from_json(dataset.attrs["summary_cut"])),
        "no_certificate": dataset.attrs["summary_no_certificate"],
    }


def _as_alternative(dataset: xr.Dataset) -> xr.Dataset:
    """A stored consensus under names that leave room for another one."""
    names = {name: f"{_ALTERNATIVE}{name}" for name in (*dataset.data_vars, "consensus_cluster")}
    renamed = dataset.rename(names)
    renamed.attrs = {f"{_ALTERNATIVE}{name}": value for name, value in dataset.attrs.items()}
    return renamed


def _alternative_in(dataset: xr.Dataset) -> ConsensusPartition | None:
    own = dataset[[name for name in dataset.data_vars if str(name).startswith(_ALTERNATIVE)]]
    if not own.data_vars:
        return None
    renamed = own.rename({name: str(name).removeprefix(_ALTERNATIVE) for name in own.data_vars})
    renamed.attrs = {
        str(name).removeprefix(_ALTERNATIVE): value
        for name, value in dataset.attrs.items()
        if str(name).startswith(_ALTERNATIVE)
    }
    return ConsensusPartition.from_dataset(renamed)
