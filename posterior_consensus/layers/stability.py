"""How stable layers of runs are, and how they differ: the record that compare_layers() returns for runs."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import stdtrit

from posterior_consensus.answers.alignment import AlignedPartitions
from posterior_consensus.diagnostics.groups import MOST_RUNS, missed_by
from posterior_consensus.layers.between_runs import DISTANCES, STABILITY
from posterior_consensus.layers.words import about_stopped
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.tolerances import ROUNDING

_OWN = {"layer": "stability_layer"}  # where they are stored
_DIMS = {"layer": "compared_layer", "other_layer": "compared_other_layer"}
_LEVEL = 0.05  # of the comparison of all layers' stability, and of the test of whether runs of two layers differ
_MOST_NAMED = 6  # layers in a sentence
_COUNTS = ("n_runs", "fewest", "most", "n_clusters", "n_noise")


@dataclass(frozen=True, eq=False, repr=False)
class LayerStability(Stored):
    """How stable layers of independent runs are, and where they differ; made by :func:`compare_layers` of such layers.

    Attributes
    ----------
    stability : xarray.Dataset
        Over ``layer``: the number of runs ``n_runs``; the ``fewest`` and the ``most`` clusters of a run, and
        ``n_clusters`` of the consensus partition, without noise, and its number of items of noise ``n_noise``; the mean
        ``distance`` of two different runs and its standard ``error``, which allows for a partition that no run found;
        ``chance``, the mean distance that random labels of the same cluster sizes have; ``stability``, 1 - distance /
        chance, and ``stability_error``; ``to_consensus``, the mean distance of a new run from the consensus partition,
        and ``to_consensus_error``; ``agreement``, the mean over items of the Jaccard similarity of the item's
        cluster in such a run to its consensus cluster, and ``agreement_error``. Distances are in the unit of `loss`; an
        item of noise is a cluster of its own in them. `distance` and `stability` are NaN for a single run, errors below
        four runs, and `stability` if random labels have distance 0, as with one cluster.
    distances : xarray.Dataset
        Over ``layer`` and ``other_layer``, by the items that both have: the mean ``distance`` between a run of the one
        and a run of the other, and its standard ``error``; ``separation``, how much larger it is than the mean distance
        of two runs of one of them; ``p_value``, the share of exchanges of runs between the layers after which runs of
        one layer are at least as close; ``consensus_distance`` of the consensus partitions, and whether they are the
        ``same``, also in their noise; the number of items ``n_common``. A layer and itself have its own distance. NaN
        for layers that were not compared.
    partitions : AlignedPartitions or None
        Consensus partition of each layer. A cluster keeps its name from a layer to the next one; items of noise are in
        one cluster, "noise". None with ``consensus=False``: what is said of partitions is then NaN.
    dim : str
        Name of the dimension that runs over layers.
    ordered : bool
        Whether the layers follow each other, as resolutions do.
    loss : PartitionLoss
    stopped : tuple
        Names of the layers whose search for a consensus partition Ctrl-C or a time limit ended early.
    """

    _figure = "layers.plot_layer_stability"

    stability: xr.Dataset = field(
        metadata=stored_as.table("stability_{}", STABILITY, rename=_OWN, in_words={"layer": "stability_layer_names"})
    )
    distances: xr.Dataset = field(
        metadata=stored_as.table(
            "layers_{}", DISTANCES, rename=_DIMS, in_words={dim: f"{stored}_names" for dim, stored in _DIMS.items()}
        )
    )
    partitions: AlignedPartitions | None = field(metadata=stored_as.record(AlignedPartitions, "layer_names_"))
    dim: str = field(metadata=stored_as.attribute("layers_dim"))
    ordered: bool = field(metadata=stored_as.flag("layers_ordered"))
    loss: PartitionLoss = field(metadata=stored_as.loss("layers_"))
    stopped: tuple[Any, ...] = field(default=(), metadata=stored_as.names("layers_stopped"))

    @property
    def layers(self) -> list[Any]:
        """Names of the layers, in their order."""
        return list(self.stability["layer"].values.tolist())

    @property
    def most_stable(self) -> list[Any]:
        """Names of the layers that may be the most stable: those not clearly less stable than another, in their order.

        Only layers whose stability has an error count. A layer of one cluster in every run has none. Of K such layers,
        one is clearly less stable than another if its stability is smaller by more than t standard errors of the
        difference, where t is the 1 - 0.05 / (K (K - 1)) quantile of Student's distribution with 2 (N - 1) degrees of
        freedom and N the smaller number of runs of the two: Bonferroni's correction for all pairs of layers.
        """
        known = self.to_dataframe()[["stability", "stability_error", "n_runs"]].dropna()
        if len(known) < 2:
            return known.index.tolist()
        return known.index[may_be_largest(*(known[name].to_numpy() for name in known))].tolist()

    @property
    def shortlist(self) -> list[Any]:
        """Names of the layers to look at: those at which runs agree at least as much as at the layers beside them.

        Successive layers of equal consensus partitions count as one, of which the most stable is named. Layers without
        an order have none beside them: then it is :attr:`most_stable`. The page on benchmarks counts how often planted
        numbers of clusters are on the list, and how long it is without any.
        """
        if not self.ordered:
            return self.most_stable
        values, same = self.stability["stability"].values, self.distances["same"].values
        known = np.flatnonzero(np.isfinite(values)).tolist()
        best = known[:1]  # of each group of successive layers that count as one
        for one, other in pairwise(known):
            if not same[one, other]:
                best.append(other)
            elif values[other] > values[best[-1]]:
                best[-1] = other
        heights = np.concatenate([[-np.inf], values[best], [-np.inf]])
        is_peak = (heights[1:-1] >= heights[:-2] - ROUNDING) & (heights[1:-1] >= heights[2:] - ROUNDING)
        return [self.layers[k] for k, peak in zip(best, is_peak.tolist(), strict=True) if peak]

    @property
    def same_partition(self) -> list[list[Any]]:
        """Names of the layers whose consensus partitions are equal, for each partition that several layers have."""
        same, names, found, seen = self.distances["same"].values, self.layers, list[list[Any]](), set[int]()
        for k in range(len(names)):
            group = np.flatnonzero(same[k]).tolist()
            if k not in seen and len(group) > 1:
                found.append([names[other] for other in group])
            seen |= set(group)
        return found

    @property
    def steps(self) -> pd.DataFrame:
        """The rows of `distances` between each layer and the next one, by their names."""
        at = np.arange(len(self.layers))
        index = pd.MultiIndex.from_tuples(list(pairwise(self.layers)), names=("layer", "other_layer"))
        columns = {name: self.distances[name].values[at[:-1], at[1:]] for name in DISTANCES}
        return pd.DataFrame(columns, index)

    @property
    def verdict(self) -> str:
        """Which layers may be most stable, which have the same partition, and between which runs do not differ."""
        return " ".join([*self._about_stability(), *self._about_partitions()])

    def in_words(self) -> str:
        """The sentences of the verdict, and where clusters split or merge from each layer to the next one."""
        ended = [f"{display.capitalized(line)}." for _, line in about_stopped(self.stopped, self.dim)]
        said = [*self._about_stability(), *self._about_partitions(), *ended]
        if self.partitions is None or len(self.layers) == 1:
            return "\n".join(said)
        return "\n".join([*said, self.partitions.in_words(), *self._between_peaks(self.partitions)])

    def _between_peaks(self, partitions: AlignedPartitions) -> list[str]:
        """What happens from each layer of the shortlist to the next one, if there are others between them."""
        names = self.layers
        steps = pairwise([names.index(name) for name in self.shortlist]) if self.ordered else ()
        some = [partitions.labels[[one, other]] for one, other in steps if other > one + 1]
        return [AlignedPartitions(labels, partitions.names).in_words() for labels in some]

    def _annotations(self) -> dict[str, Annotations]:
        return {} if self.partitions is None else self.partitions._annotations()

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each layer, with the columns of `stability`."""
        table = pd.DataFrame({name: self.stability[name].values for name in STABILITY})
        table = table.set_index(pd.Index(self.layers, name=self.dim))
        counts = [name for name in _COUNTS if table[name].notna().all()]
        return table.astype(dict.fromkeys(counts, np.int64))

    def flow_table(self) -> pd.DataFrame:
        """Numbers of items that go from which cluster of a layer to which cluster of the next one, by their names.

        Raises
        ------
        ValueError
            If there are no consensus partitions.
        """
        if self.partitions is None:
            raise ValueError("`consensus` was False, so there are no partitions; call compare_layers(layers) for them.")
        rows = []
        names, labels = np.array([*self.partitions.names, None], object), self.partitions.labels.values
        for row, (before, after) in enumerate(pairwise(self.layers)):
            both = labels[row : row + 2].T[(labels[row : row + 2] >= 0).all(axis=0)]
            pairs, counts = np.unique(both, axis=0, return_counts=True)
            ends = names[pairs].tolist()
            rows += [(before, after, *end, count) for end, count in zip(ends, counts.tolist(), strict=True)]
        return pd.DataFrame(rows, columns=["before", "after", "source", "target", "items"])

    def _about_stability(self) -> list[str]:
        table, near = self.to_dataframe(), self.most_stable
        values = table["stability"].dropna()
        if values.empty:
            why = "no run has two clusters" if (table["most"] < 2).all() else "a layer needs two runs"
            return [f"The stability is unknown: {why}."]
        without = [name for name in values.index if np.isnan(table["stability_error"][name])]
        left_out = display.listed(without, _MOST_NAMED)
        of_best = table.loc[near]
        if not near:
            said = [f"It is unknown for which {self.dim} runs agree most, for want of four runs ({_ranged(values)})."]
        elif len(values) == len(without) + 1:
            said = [f"The stability of {self.dim} {near[0]} is {_stability_with_error(of_best.iloc[0])}."]
        elif len(near) == 1:
            said = [f"Runs agree most for {self.dim} {near[0]}: stability {_stability_with_error(of_best.iloc[0])}."]
        else:
            most = f"Runs agree most for {self.dim} {display.listed(near, _MOST_NAMED)}, which"
            which = f"The {len(near)} layers" if len(near) == len(values) else most
            said = [f"{which} cannot be told apart ({_ranged(of_best['stability'])})."]
        if self.ordered and len(values) > 2:
            peaks = self.shortlist
            heights = display.listed([f"{value:.3f}" for value in values.loc[peaks]], _MOST_NAMED)
            which = f"{self.dim} {display.listed(peaks, _MOST_NAMED)}"
            are = "local peak" + "s" * (len(peaks) > 1)
            said.append(f"The shortlist is {which}, the {are} of stability ({heights}).")
        equal = of_best[of_best["distance"] == 0]
        if len(equal):
            # Of more runs, those that were not compared are equal, too, only if all have distance 0 from one partition.
            n_equal = equal["n_runs"].where(equal["to_consensus"] == 0, equal["n_runs"].clip(upper=MOST_RUNS))
            n, compared = int(n_equal.min()), "compared " * bool((n_equal < equal["n_runs"]).any())
            which = display.listed(equal.index.tolist(), _MOST_NAMED)
            said.append(f"All {compared}runs are equal for {which}. Another partition may be rare: {missed_by(n)}.")
        return [*said, *[f"Left out, with fewer than four runs: {left_out}."] * bool(near and without)]

    def _about_partitions(self) -> list[str]:
        equal = "; ".join(display.listed(names, _MOST_NAMED) for names in self.same_partition)
        said = [f"Equal consensus partitions: {self.dim} {equal}."] * bool(equal)
        steps = self.steps
        alike = steps[steps["p_value"] > _LEVEL]
        if len(alike):
            pairs = display.listed([f"{one} and {other}" for one, other in alike.index], _MOST_NAMED)
            p_value = display.apart_from(alike["p_value"].min(), _LEVEL, ".2g")
            p_value = f"p = {p_value}{' or more' * (len(alike) > 1)}"
            said.append(f"Successive layers whose runs are no farther apart than runs of one: {pairs} ({p_value}).")
        return said

    def _parts(self) -> display.Parts:
        table = self.to_dataframe()
        table = table.drop(
            columns=["to_consensus_error", "agreement_error", *["n_noise"] * (not table["n_noise"].any())]
        ).dropna(axis="columns", how="all")
        lines = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
            ("runs", f"{table['n_runs'].sum():,}, independent"),
            *about_stopped(self.stopped, self.dim),
        ]
        return f"LayerStability: {display.counted(len(table), 'layer')} of runs ({self.dim})", lines, table


def may_be_largest(values: Floats, errors: Floats, n_runs: npt.NDArray[np.integer]) -> Flags:
    """Which of several values (K,) are not clearly smaller than another, see :attr:`LayerStability.most_stable`."""
    n_pairs, freedom = len(values) * (len(values) - 1) // 2, 2 * (np.minimum.outer(n_runs, n_runs) - 1)
    limit = stdtrit(freedom, 1 - _LEVEL / (2 * n_pairs)) * np.hypot.outer(errors, errors)
    is_less = values[:, np.newaxis] - values > limit  # the second one than the first
    return np.asarray(~is_less.any(axis=0))


def _ranged(values: pd.Series) -> str:
    least, most = (f"{value:.3f}" for value in (values.min(), values.max()))
    return f"stability {least}" if least == most else f"stability {least} to {most}"


def _stability_with_error(row: pd.Series) -> str:
    return f"{row['stability']:.3f} (error {row['stability_error']:.2g})"
