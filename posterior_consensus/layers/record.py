"""How the partitions of several layers differ: the record that compare_layers() returns."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions
from posterior_consensus.answers.membership import ELSEWHERE
from posterior_consensus.layers import words
from posterior_consensus.layers.distances import COLUMNS
from posterior_consensus.layers.naming import FLOWS, OVERLAPS
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.plain import names_as_coordinate
from posterior_consensus.results.storage import Stored

_DIMS = {"layer": "compared_layer", "other_layer": "compared_other_layer"}  # where they are stored
_NAMES = {dim: f"{stored}_names" for dim, stored in _DIMS.items()}
CHANGES = ("p_largest", "p_largest_mcse", "rhat")


class LargestChange(NamedTuple):
    """The step of largest expected loss.

    Attributes
    ----------
    before, after : object
        Names of the two layers.
    expected_loss, probability, mcse : float
        Expected loss between their partitions, the probability that this step has the largest loss, and the Monte Carlo
        standard error of the probability.
    """

    before: Any
    after: Any
    expected_loss: float
    probability: float
    mcse: float


@dataclass(frozen=True, eq=False, repr=False)
class LayerComparison(Stored):
    """How the partitions of several layers differ in the same draw; made by :func:`compare_layers`.

    Attributes
    ----------
    distances : xarray.Dataset
        Over ``layer``, whose partition is the estimate if the loss is not symmetric, and ``other_layer``, by the items
        that both have: ``expected_loss`` between their partitions in the same draw, its Monte Carlo standard error
        ``mcse``, and ``low`` and ``high``, between which the loss lies with probability `prob`; ``p_equal``, the
        probability that the partitions are equal, and ``p_equal_mcse``; the expected adjusted Rand index ``ari`` and
        ``ari_mcse``; ``independent``, the expected loss between a draw of the one and another draw of the other;
        ``difference``, the expected loss less that, and ``difference_mcse``; the number of items ``n_common``. All are
        NaN for two layers that were not compared, and all but ``n_common`` for two without common items.
    changes : xarray.Dataset
        Over ``step``, each layer and the last one before it that has common items: ``p_largest``, the probability that
        this step has the largest loss of all (steps of equal loss share it), ``p_largest_mcse``, and the ``rhat`` of
        its loss. :attr:`steps` has them with the names of the layers and `distances`.
    partitions : AlignedPartitions
        Partition of each layer, over the items of all layers. A cluster keeps its name from each layer to the next one
        that has common items, by the expected number of items in common in the same draw. Items of several dimensions
        are in one, "item".
    flows : xarray.Dataset
        Over ``flow``: the ``expected`` number of items that go from cluster ``source`` to cluster ``target`` in the
        same draw, in the step number ``step``, with its Monte Carlo standard error ``mcse``, and ``low`` and ``high``,
        between which the number lies with probability `prob`. Clusters are positions in ``partitions.names``; -1 is
        elsewhere, for clusters of a draw that are matched with none of the layer's partition. Only common items count,
        and only flows that some draw has are listed. :meth:`flow_table` has the names.
    overlaps : xarray.Dataset
        Over ``step`` and the items: the expected Jaccard ``overlap`` of an item's clusters before and after the step
        in the same draw, among the common items and itself included, and its ``mcse``. It is above 0, and 1 if the item
        never gains or loses a co-member; NaN for an item that one of the two layers lacks. A step goes to each layer
        from the last one before it that has common items. Its name has both, such as "1945 to 1946"; ``before`` and
        ``after`` are their positions.
    dim : str
        Name of the dimension that runs over layers.
    ordered : bool
        Whether the layers follow each other.
    prob : float
    loss : PartitionLoss
    n_draws : int
    """

    _figure = "plot_layers"

    distances: xr.Dataset = field(metadata=stored_as.table("layers_{}", COLUMNS, rename=_DIMS, in_words=_NAMES))
    changes: xr.Dataset = field(metadata=stored_as.table("layers_{}", CHANGES, {"step": "layers_step"}))
    partitions: AlignedPartitions = field(metadata=stored_as.record(AlignedPartitions, "layer_names_"))
    flows: xr.Dataset = field(metadata=stored_as.table("flow_{}", FLOWS, {"flow": "layers_flow"}))
    overlaps: xr.Dataset = field(
        metadata=stored_as.table("overlap_{}", OVERLAPS, {"step": "overlap_step"}, in_words={"step": "overlap_names"})
    )
    dim: str = field(metadata=stored_as.attribute("layers_dim"))
    ordered: bool = field(metadata=stored_as.flag("layers_ordered"))
    prob: float = field(metadata=stored_as.attribute("layers_prob"))
    loss: PartitionLoss = field(metadata=stored_as.loss("layers_"))
    n_draws: int = field(metadata=stored_as.attribute("layers_draws"))

    @property
    def layers(self) -> list[Any]:
        """Names of the layers, in their order."""
        return list(self.distances["layer"].values.tolist())

    @property
    def steps(self) -> xr.Dataset:
        """What `distances` and `changes` say of each step, over ``step``, with the names of its layers."""
        before, after = (xr.Variable("step", self.overlaps[name].values) for name in ("before", "after"))
        return self.distances.isel(layer=before, other_layer=after).merge(self.changes)

    @property
    def largest_change(self) -> LargestChange | None:
        """The step of largest expected loss; None if layers have no order, or no two have common items."""
        steps = self.steps
        if not self.ordered or not steps.sizes["step"]:
            return None
        at = steps.isel(step=int(steps["expected_loss"].values.argmax()))
        numbers = (float(at[name]) for name in ("expected_loss", "p_largest", "p_largest_mcse"))
        return LargestChange(at["layer"].item(), at["other_layer"].item(), *numbers)

    @property
    def verdict(self) -> str:
        """When the clustering changed most, with what probability, who moved, and what is not clear."""
        steps = self.steps
        if self.largest_change is not None:
            moved = self.overlaps["overlap"][int(steps["expected_loss"].values.argmax())]
            return words.verdict(steps, moved, self.loss.unit)
        losses = self.distances["expected_loss"].values * np.where(np.eye(len(self.layers)), np.nan, 1.0)
        if np.isnan(losses).all():
            return "No two layers have items in common."
        at = np.unravel_index(np.nanargmax(losses), losses.shape)
        far = display.quantity(float(losses[at]), self.loss.unit, 3)
        one, other = (self.layers[k] for k in at)
        apart = display.with_error(far, float(self.distances["mcse"].values[at]))
        return f"The partitions of {one} and {other} are farthest apart: {apart}."

    def in_words(self) -> str:
        """The verdict, and what splits, merges, is new or ends in each step, by expected numbers of items."""
        steps = words.steps_in_words(self.partitions, self.flows, self.overlaps)
        return "\n".join([self.verdict, *(f"{step}: {said}" for step, said in steps)])

    def flow_table(self) -> pd.DataFrame:
        """A row for each of `flows`, with the names of layers and clusters; those of one step follow each other."""
        table, names = self.flows.to_dataframe(), names_as_coordinate([*self.partitions.names, ELSEWHERE])
        layers = np.array(names_as_coordinate(self.layers))
        for column in ("after", "before"):
            table.insert(0, column, layers[self.overlaps[column].values[table["step"]]])
        clusters = {column: np.array(names)[table[column]] for column in ("source", "target")}
        return table.drop(columns="step").assign(**clusters)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each two layers with common items that were compared, by their names; successive ones first."""
        n_layers = len(self.layers)
        compared = self.distances["n_common"].values > 0
        if self.loss.is_symmetric:
            compared &= np.tri(n_layers, dtype=bool).T
        table = self.distances.stack(pair=("layer", "other_layer")).to_dataframe()[list(COLUMNS)]
        one, other = np.nonzero(compared & ~np.eye(n_layers, dtype=bool))
        by_lag = np.argsort(np.abs(other - one), kind="stable")
        one, other = one[by_lag], other[by_lag]
        return table.iloc[one * n_layers + other].astype({"n_common": np.int64})

    def _parts(self) -> display.Parts:
        table = self.to_dataframe()
        facts = [
            ("verdict", self.verdict),
            ("loss", f"{self.loss.name}{f', {self.loss.unit}' if self.loss.unit else ''}"),
            ("draws", str(self.n_draws)),
            ("compared", display.counted(len(table), "pair") + " of layers with common items"),
        ]
        return (
            f"LayerComparison: {display.counted(len(self.layers), 'layer')} ({self.dim})",
            facts,
            table if len(table) else None,
        )
