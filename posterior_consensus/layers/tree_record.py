"""One tree over layers: the record that consensus_tree() returns."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.layers.words import about_stopped
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations, as_categories
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime.tolerances import SAME

_LAYER = {"layer": "tree_layer"}  # where it is stored
_NAMES = {"layer": "tree_layer_names"}
NODES = ("parent", "size", "first", "last", "support", "support_mcse", "share")
LOSSES = ("expected_loss", "mcse", "separate", "excess", "excess_mcse", "lower_bound", "n_clusters", "n_separate")
FOUND = 0.75  # Jaccard similarity above which a draw has a cluster


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusTree(InWords):
    """Nested partitions of several layers, of least sum of expected losses; made by :func:`consensus_tree`.

    A node of the tree is a set of items that is a cluster in one layer, or in several that follow each other.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (layer, n_items), dtype int32
        Node of each item in each layer, from coarse to fine layers.
    nodes : xarray.Dataset
        Over ``node``, numbered from 0 such that a node precedes its descendants, and larger ones their siblings: the
        node that is its ``parent``, -1 for none; its number of items ``size``; the positions of the ``first`` and the
        ``last`` layer in which it is a cluster; its ``support``, the mean Jaccard similarity to the most similar
        cluster of each draw of these layers, with the standard error ``support_mcse``; and the ``share`` of the draws
        whose most similar cluster has a similarity above 0.75.
    losses : xarray.Dataset
        Over ``layer``: ``expected_loss`` of the tree's partition, and its standard error ``mcse``; that of the
        partition found for the layer alone, ``separate``; ``excess``, how much larger the first is, and
        ``excess_mcse``; ``lower_bound`` of the expected loss of all partitions, or NaN; and the numbers of clusters
        ``n_clusters`` of the tree's partition, and ``n_separate`` of the other.
    dim : str
        Name of the dimension that runs over layers.
    loss : PartitionLoss
    stopped : tuple
        Names of the layers whose search for a partition of their own Ctrl-C or a time limit ended early.
    words : Words
        What draws and chains are called: those of chains, or independent runs of programs.
    """

    _figure = "tree.plot_tree"
    _of_runs: ClassVar = "tree_independent"

    partitions: xr.DataArray = field(
        metadata=stored_as.array("tree_partitions", _LAYER, in_words=_NAMES, of_items=True)
    )
    nodes: xr.Dataset = field(metadata=stored_as.table("tree_node_{}", NODES, {"node": "tree_node"}))
    losses: xr.Dataset = field(metadata=stored_as.table("tree_{}", LOSSES, _LAYER, in_words=_NAMES))
    dim: str = field(metadata=stored_as.attribute("tree_dim"))
    loss: PartitionLoss = field(metadata=stored_as.loss("tree_"))
    stopped: tuple[Any, ...] = field(default=(), metadata=stored_as.names("tree_stopped"))

    @property
    def layers(self) -> list[Any]:
        """Names of the layers, from coarse to fine."""
        return list(self.losses["layer"].values.tolist())

    @property
    def expected_loss(self) -> float:
        """Sum of the expected losses of all layers."""
        return float(self.losses["expected_loss"].sum())

    @property
    def excess(self) -> float:
        """How much more than the partitions found for each layer alone the tree loses, in all layers together.

        It is an estimate of what nesting costs: neither the tree nor these partitions are proven to be best.
        """
        return float(self.losses["excess"].sum())

    @property
    def most_excess(self) -> float:
        """Upper bound of what nesting costs, from the lower bounds of all layers; NaN if one has none.

        It is the sum of expected losses of the tree less that of the bounds. The least sum of nested partitions exceeds
        that of the layers' minima by at most as much.
        """
        bounds = self.losses["lower_bound"].values
        return self.expected_loss - float(bounds.sum())

    @property
    def verdict(self) -> str:
        """What the tree costs, and in which layers."""
        unit, losses = self.loss.unit, self.losses
        own, other = (float(losses[name].sum()) for name in ("expected_loss", "separate"))
        numbers = [display.quantity(value, unit, 3) for value in (self.excess, own, other)]
        least = "the partitions of each layer alone"
        if abs(self.excess) <= SAME * own:
            said = [f"Nesting costs nothing: the tree and {least} lose {numbers[1]} in all layers together."]
        else:
            said = [
                f"Nesting costs {numbers[0]}: the tree loses {numbers[1]} in all layers together, {least} {numbers[2]}."
            ]
        if np.isnan(self.most_excess):
            said.append("Searches found both, which proves neither.")
        else:
            most = display.at_most(self.most_excess, ".3g")
            said.append(f"Lower bounds prove that it costs at most {display.with_unit(most, unit)}.")
        if self.excess > SAME * own:
            worst = int(losses["excess"].values.argmax())
            of_worst = display.quantity(float(losses["excess"][worst]), unit, 3)
            said.append(f"It costs most in {self.dim} {self.layers[worst]}, {of_worst}.")
        return " ".join(said)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each node, with the columns of `nodes` and the names of its first and last layers."""
        names = pd.Index(self.layers)
        columns = {name: self.nodes[name].values for name in NODES}
        columns |= {name: names[columns[name]] for name in ("first", "last")}
        return pd.DataFrame(columns, pd.RangeIndex(self.nodes.sizes["node"], name="node"))

    def to_newick(self) -> str:
        """Write the tree in Newick's format, which ape, ETE and other programs read.

        Returns
        -------
        str
            Nodes have their numbers as names, and as lengths the number of layers in which they are clusters. Several
            nodes without a parent are joined by a root without a name.
        """
        parents = self.nodes["parent"].values
        lengths = self.nodes["last"].values - self.nodes["first"].values + 1
        texts, waiting = dict[int, str](), dict[int, list[str]]()
        for node in range(parents.size - 1, -1, -1):  # a node precedes its descendants
            parts = waiting.pop(node, [])
            texts[node] = f"{'(' + ','.join(parts[::-1]) + ')' if parts else ''}{node}:{lengths[node]}"
            waiting.setdefault(int(parents[node]), []).append(texts[node])
        roots = waiting[-1][::-1]
        return f"{roots[0]};" if len(roots) == 1 else f"({','.join(roots)});"

    def _annotations(self) -> dict[str, Annotations]:
        first, names = self.partitions[0], range(self.nodes.sizes["node"])
        return {
            str(name): Annotations(first, {"": as_categories(own, names)}, {})
            for name, own in zip(self.layers, self.partitions.values, strict=True)
        }

    def _parts(self) -> display.Parts:
        n_items, dim = self.partitions.shape[1], str(self.partitions.dims[1])
        counts = self.losses["n_clusters"].values
        lines = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
            ("clusters", f"{counts[0]} to {counts[-1]} ({self.dim} {self.layers[0]} to {self.layers[-1]})"),
            *about_stopped(self.stopped, self.dim),
        ]
        number = display.counted(self.nodes.sizes["node"], "node")
        layers, items = display.counted(len(self.layers), "layer"), display.counted_items(n_items, dim)
        title = f"ConsensusTree: {layers} of {items}, {number}"
        return title, lines, self.to_dataframe()
