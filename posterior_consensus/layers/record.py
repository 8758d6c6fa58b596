"""How the partitions of several layers differ: the record that compare_layers() returns."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.layers.distances import Distance
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored

_DIMS = {"layer": "compared_layer", "other_layer": "compared_other_layer"}  # where they are stored
_NAMES = {dim: f"{stored}_names" for dim, stored in _DIMS.items()}
_OF_STEPS = ("p_largest", "p_largest_mcse")


class LargestChange(NamedTuple):
    """The step of largest expected loss.

    Attributes
    ----------
    before, after : object
        Names of the two layers.
    expected_loss, probability, mcse : float
        Expected loss between their partitions, the probability that no other step has a larger loss, and its Monte
        Carlo standard error.
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
    changes : xarray.Dataset or None
        Over ``step``, from each layer to the next one: ``p_largest``, the probability that this step has the largest
        loss (of equal ones, each counts in part), and ``p_largest_mcse``. None if the layers have no order or there is
        only one.
    dim : str
        Name of the dimension that runs over layers.
    prob : float
    loss : PartitionLoss
    n_draws : int
    """

    _no_figure = "its numbers are in `distances`"

    distances: xr.Dataset = field(
        metadata=stored_as.table("layers_{}", Distance._fields, rename=_DIMS, in_words=_NAMES)
    )
    changes: xr.Dataset | None = field(metadata=stored_as.table("layers_{}", _OF_STEPS, {"step": "layers_step"}))
    dim: str = field(metadata=stored_as.attribute("layers_dim"))
    prob: float = field(metadata=stored_as.attribute("layers_prob"))
    loss: PartitionLoss = field(metadata=stored_as.loss("layers_"))
    n_draws: int = field(metadata=stored_as.attribute("layers_draws"))

    @property
    def layers(self) -> list[Any]:
        """Names of the layers, in their order."""
        return list(self.distances["layer"].values.tolist())

    @property
    def steps(self) -> xr.Dataset:
        """The rows of `distances` for each layer and the next one, over ``step``, with their names."""
        at = xr.DataArray(np.arange(len(self.layers) - 1), dims="step")
        return self.distances.isel(layer=at, other_layer=at + 1)

    @property
    def largest_change(self) -> LargestChange | None:
        """The step of largest expected loss; None without `changes`, or common items in any step."""
        losses = self.steps["expected_loss"].values
        if self.changes is None or np.isnan(losses).all():
            return None
        at = int(np.nanargmax(losses))
        probability, mcse = (float(self.changes[name][at]) for name in _OF_STEPS)
        return LargestChange(self.layers[at], self.layers[at + 1], float(losses[at]), probability, mcse)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each two layers with common items that were compared, by their names."""
        n_layers = len(self.layers)
        compared = self.distances["n_common"].values > 0
        if self.loss.is_symmetric:
            compared &= np.tri(n_layers, dtype=bool).T
        table = self.distances.stack(pair=("layer", "other_layer")).to_dataframe()[list(Distance._fields)]
        one, other = np.nonzero(compared & ~np.eye(n_layers, dtype=bool))
        return table.iloc[one * n_layers + other].astype({"n_common": np.int64})

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        table, change = self.to_dataframe(), self.largest_change
        facts = [
            ("loss", f"{self.loss.name}{f', {self.loss.unit}' if self.loss.unit else ''}"),
            ("draws", str(self.n_draws)),
            ("compared", display.counted(len(table), "pair") + " of layers with common items"),
        ]
        if change is not None:
            probability = display.with_error(f"{change.probability:.3g}", change.mcse)
            facts.append(("largest change", f"{change.before} to {change.after}, with probability {probability}"))
        return f"LayerComparison: {display.counted(len(self.layers), 'layer')} ({self.dim})", facts, table
