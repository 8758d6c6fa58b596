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
from posterior_consensus.layers.flows import FLOWS, OVERLAPS
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.sentences import Sentence, in_full
from posterior_consensus.results.stored_as import Stored, names_as_coordinate

_DIMS = {"layer": "compared_layer", "other_layer": "compared_other_layer"}  # where they are stored
_NAMES = {dim: f"{stored}_names" for dim, stored in _DIMS.items()}
_STEPS = {
    "step": "overlap_names",
    ("before", "step"): "overlap_before",
    ("after", "step"): "overlap_after",
}
CHANGES = ("p_largest", "p_largest_mcse", "rhat")


class LargestChange(NamedTuple):
    """The step of the largest change.

    It is the step of largest separation among those in which the clustering changed or, if there are none, in which
    layers are farther apart than two draws of one. Without any, it is the step of largest expected loss.

    Attributes
    ----------
    before, after : object
        Names of the two layers.
    expected_loss, probability, mcse : float
        Expected loss between their partitions, the probability that this step has the largest loss, and the Monte Carlo
        standard error of the probability.
    separation, separation_mcse : float
        How much farther draws of the two are apart than two draws of one, and the Monte Carlo standard error.
    """

    before: Any
    after: Any
    expected_loss: float
    probability: float
    mcse: float
    separation: float
    separation_mcse: float


class HasComparison:
    """A result that stands for its `comparison` if a function needs one."""

    comparison: Any


@dataclass(frozen=True, eq=False, repr=False)
class LayerComparison(Stored):
    """How the partitions of several layers differ in the same draw; made by :func:`compare_layers`.

    Attributes
    ----------
    distances : xarray.Dataset
        Over ``layer``, whose partition comes first if the loss is not symmetric, and ``other_layer``, by the items
        that both have: ``expected_loss`` between their partitions in the same draw, its Monte Carlo standard error
        ``mcse`` and effective sample size ``ess``, and ``low`` and ``high``, between which the loss lies with
        probability `prob`; ``p_equal``, the probability that the partitions are equal, and ``p_equal_mcse``; the
        expected adjusted Rand index ``ari`` and ``ari_mcse``; ``independent``, the expected loss between a draw of the
        one and another draw of the other; ``separation``, how much larger that is than the mean expected loss between
        two draws of one of them, and ``separation_mcse``; ``difference`` between the losses in the same draw and in
        different draws, and ``difference_mcse``; the number of items ``n_common``. All are NaN for two layers that were
        not compared, and all but ``n_common`` for two without common items.
    changes : xarray.Dataset
        Over ``step``, each layer and the last one before it that has common items: ``p_largest``, the probability that
        this step has the largest loss of all in the same draw (steps of equal loss share it), ``p_largest_mcse``, and
        the ``rhat`` of its loss. :attr:`steps` has them with the names of the layers and `distances`.
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
        Over ``step`` and the items, NaN for an item that one of the two layers lacks: ``moved``, the probability that
        the item's cluster is matched with clusters of two names in the same draw before and after the step, and its
        error ``moved_mcse``; ``likely`` and ``clear``, whether its move between its clusters of the two partitions is
        more probable than no move, and more than three times as probable, both by two errors. The expected Jaccard
        ``overlap`` of an item's clusters before and after the step in the same draw, among the common items and itself
        included, with its error ``mcse``, is 1 if the item never gains or loses a co-member; an item that stays has
        less if others come or go. A step goes to each layer ``after`` from the last one ``before`` it that has common
        items. Its name has both, such as "1945 to 1946".
    dim : str
        Name of the dimension that runs over layers.
    ordered : bool
        Whether the layers follow each other.
    prob : float
    loss : PartitionLoss
    n_chains, n_draws : int
    stopped : tuple
        Names of the layers whose search for a consensus partition Ctrl-C or a time limit ended early.
    """

    _figure = "layers.plot_layers"

    distances: xr.Dataset = field(metadata=stored_as.table("layers_{}", COLUMNS, rename=_DIMS, in_words=_NAMES))
    changes: xr.Dataset = field(metadata=stored_as.table("layers_{}", CHANGES, {"step": "layers_step"}))
    partitions: AlignedPartitions = field(metadata=stored_as.record(AlignedPartitions, "layer_names_"))
    flows: xr.Dataset = field(metadata=stored_as.table("flow_{}", FLOWS, {"flow": "layers_flow"}))
    overlaps: xr.Dataset = field(
        metadata=stored_as.table("overlap_{}", OVERLAPS, {"step": "overlap_step"}, in_words=_STEPS)
    )
    dim: str = field(metadata=stored_as.attribute("layers_dim"))
    ordered: bool = field(metadata=stored_as.flag("layers_ordered"))
    prob: float = field(metadata=stored_as.attribute("layers_prob"))
    loss: PartitionLoss = field(metadata=stored_as.loss("layers_"))
    n_chains: int = field(metadata=stored_as.attribute("layers_chains"))
    n_draws: int = field(metadata=stored_as.attribute("layers_draws"))
    stopped: tuple[Any, ...] = field(default=(), metadata=stored_as.names("layers_stopped"))

    @property
    def layers(self) -> list[Any]:
        """Names of the layers, in their order."""
        return list(self.distances["layer"].values.tolist())

    @property
    def steps(self) -> xr.Dataset:
        """What `distances` and `changes` say of each step, over ``step``, with the names of its layers."""
        position = {name: k for k, name in enumerate(self.layers)}
        ends = (
            [position[name] for name in stored_as.own_in(self.overlaps, end).values.tolist()]
            for end in ("before", "after")
        )
        before, after = (xr.Variable("step", np.array(end, np.intp)) for end in ends)
        return self.distances.isel(layer=before, other_layer=after).merge(self.changes)

    @property
    def largest_change(self) -> LargestChange | None:
        """The largest change; None if layers have no order, or no two have common items."""
        steps = self.steps
        if not self.ordered or not steps.sizes["step"]:
            return None
        at = steps.isel(step=words.step_to_report(steps, self.overlaps, self.n_chains))
        columns = "expected_loss", "p_largest", "p_largest_mcse", "separation", "separation_mcse"
        return LargestChange(at["layer"].item(), at["other_layer"].item(), *(float(at[name]) for name in columns))

    @property
    def verdict(self) -> str:
        """Whether and when the clustering changed, which items moved, and what is unsure."""
        return in_full(self.sentences)

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences of `verdict`, of which those that advise are marked."""
        if len(self.layers) == 1:
            return [Sentence(f"There is one layer, {self.layers[0]}, hence no other to compare it with.")]
        if not self.has_common_items:
            return [Sentence("No two layers have items in common, so their partitions are not compared.")]
        if self.ordered:
            return words.verdict(self.steps, self.overlaps, self.loss.unit, self.n_chains)
        return [Sentence(words.about_pairs(self.distances, self.loss.unit, self.n_chains))]

    @property
    def has_common_items(self) -> bool:
        """Whether two of the layers have items in common."""
        return stored_as.own_in(self.overlaps, "before").size > 0

    def in_words(self) -> str:
        """The verdict, and what splits, merges, is new or ends in each step, by expected numbers of items."""
        steps = words.steps_in_words(self.partitions, self.flows, self.overlaps)
        ended = [f"{display.capitalized(line)}." for _, line in words.about_stopped(self.stopped, self.dim)]
        return "\n".join([self.verdict, *(f"{step}: {said}" for step, said in steps), *ended])

    def flow_table(self) -> pd.DataFrame:
        """A row for each of `flows`, with the names of layers and clusters; those of one step follow each other."""
        table, names = self.flows.to_dataframe(), names_as_coordinate([*self.partitions.names, ELSEWHERE])
        for column in ("after", "before"):
            table.insert(0, column, stored_as.own_in(self.overlaps, column).values[table["step"]])
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

    def _annotations(self) -> dict[str, Annotations]:
        return self.partitions._annotations()

    def _parts(self) -> display.Parts:
        table = self.to_dataframe()
        lines = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
            ("draws", f"{self.n_draws:,}"),
            ("compared", display.counted(len(table), "pair") + " of layers with common items"),
            *display.about_errors(table["ess"]),
            *words.about_stopped(self.stopped, self.dim),
        ]
        return (
            f"LayerComparison: {display.counted(len(self.layers), 'layer')} ({self.dim})",
            lines,
            table if len(table) else None,
        )
