"""A summary of each of several partitions in a draw, or of runs of each layer, and what changes to the next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.answers.alignment import ClusterMatch
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.diagnosis import diagnose_within
from posterior_consensus.diagnostics.new_runs import NewRuns, is_greedy
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.layers import Layers, layer_names
from posterior_consensus.layers.between_runs import NEW_RUNS
from posterior_consensus.layers.compare import compare_layers
from posterior_consensus.layers.record import HasComparison, LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.plots.frame import Grid, Width
from posterior_consensus.plots.layers import comparison_in, printed_layers
from posterior_consensus.results import display
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.display import counted, name_of
from posterior_consensus.results.sentences import Sentence, in_full, without_advice
from posterior_consensus.results.stored_as import as_json, as_stored, names_from_json
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.runtime.progress import track, waiting
from posterior_consensus.sources.conversion import Origin
from posterior_consensus.sources.layers import as_layers
from posterior_consensus.summary.about_draws import (
    agreement,
    agreement_in_short,
    agreement_in_words,
    claims_of,
    draws_in_words,
    draws_line,
    worst_status,
)
from posterior_consensus.summary.claims import Claim, HasClaims, lines_of
from posterior_consensus.summary.methods import NOT_TO_REPORT, how_found
from posterior_consensus.summary.record import was_interrupted, why_skipped
from posterior_consensus.summary.references import with_references
from posterior_consensus.summary.steps import SEARCH, ball_loss, consensus_within, summary_of
from posterior_consensus.summary.summary import Posterior, Summary

_DIAGNOSIS = 0.25  # share of the remaining time
_MOST_NAMED = 6  # layers of a kind in a sentence
_STATUSES_IN_WORDS = {
    "disagree": "the chains disagree in",
    "unknown": "the chains cannot be assessed in",
    "short": "the chains are short in",
}
_AGREE = (
    "The chains agree: the largest R-hat is {0}, the effective sample size at least {1}{where}. A mode that one chain "
    "misses would go unnoticed below about {2} of the draws"
)


@dataclass(frozen=True, eq=False, repr=False)
class LayersSummary(HasClaims, HasComparison, Mapping[Any, Summary]):
    """Summary of several partitions in each draw, or of layers of runs; made by :func:`summarize` of layers.

    A mapping of the layers' names to a :class:`Summary` each. A cluster keeps its name from layer to layer.

    Attributes
    ----------
    summaries : dict of Summary
        Of each layer, by its name.
    comparison : LayerComparison, LayerStability or None
        How far the layers' partitions are apart, and which items move; for layers of runs, how stable each is. None if
        no time was left.
    diagnosis : Diagnosis or None
        Whether the chains agree on all layers together, as :func:`diagnose` of the layers says. None if no time was
        left, and for layers of runs, which are independent.
    layers : Layers
        The draws.
    seconds : dict of str to float
        Time of the searches, the comparison, and all that is computed of each layer.
    cut : tuple of str
        Steps that the time limit skipped; those of a layer are in its summary.
    """

    summaries: dict[Any, Summary]
    comparison: LayerComparison | LayerStability | None
    diagnosis: Diagnosis | None
    layers: Layers
    seconds: dict[str, float]
    cut: tuple[str, ...] = ()

    def __getitem__(self, name: Any) -> Summary:
        self.layers[name]  # whose error names the layers
        return self.summaries[layer_names([name])[0]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.summaries)

    def __len__(self) -> int:
        return len(self.summaries)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended one of the searches of any layer; results are those until then."""
        return any(one.interrupted for one in self.values())

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each layer: numbers of items, clusters, modes, misplaced items, losses, and status of chains.

        Layers of runs have their number of runs and their stability in place of the status, and those with noise the
        number of items of noise.
        """
        rows = [
            {
                "items": one.draws.n_items,
                "clusters": one.partition.n_clusters,
                "noise": one.partition.n_noise,
                "expected_loss": one.partition.expected_loss,
                "mcse": one.partition.mcse,
                "radius": one.ball.radius,
                "misplaced": one.items.misplaced,
                "modes": _n_modes(one),
                "chains": one.diagnosis.status,
            }
            for one in self.values()
        ]
        table = pd.DataFrame(rows, pd.Index(list(self), name=self.layers.dim))
        if not self._has_noise:
            table = table.drop(columns="noise")
        if not self.layers.are_runs:
            return table
        table = table.drop(columns="chains").assign(runs=[one.draws.n_draws for one in self.values()])
        if isinstance(self.comparison, LayerStability):
            table = table.join(self.comparison.to_dataframe()[["stability", "stability_error"]])
        return table

    @property
    def _title(self) -> str:
        return f"Summary of {counted(len(self), 'layer')} ({self.layers.dim}): {self._numbers}"

    @property
    def _numbers(self) -> str:
        least, most = (of(one.partition.n_clusters for one in self.values()) for of in (min, max))
        return f"{least} to {most} clusters" if least < most else counted(most, "cluster")

    @property
    def _has_noise(self) -> bool:
        return any(one.draws.has_noise for one in self.values())

    @property
    def _repetitions(self) -> str:
        """Number of runs of a layer."""
        least, most = (of(one.draws.n_draws for one in self.values()) for of in (min, max))
        return f"{least:,} to {most:,}" if least < most else f"{least:,}"

    def _claims(self) -> dict[str, Claim]:
        are_runs, compared, (_, about, _) = self.layers.are_runs, self.comparison, self.layers._parts()
        agree, left_out = agreement(*self._diagnoses.values()), self.left_out()
        chains, omissions = in_full(self._chains()), " ".join(left_out)
        if are_runs:
            agree = agree.in_words("chains", "", [chains])
        else:
            about = [("draws", draws_line(self.layers.samples)), about[-1]]
            line = in_full(self._chains(short=True))
            agree = agree.in_words("chains", line, [chains], without_advice(self._chains()))
        change, methods = [] if compared is None else [compared.verdict], ""
        if isinstance(compared, LayerComparison):
            methods = without_advice(compared.sentences)
        elif compared is not None:
            methods = compared.verdict
        return {
            **{name: Claim(name, value) for name, value in about},
            "change": Claim("stability" if are_runs else "change", " ".join(change), change, methods),
            "splits": Claim(findings=self._splits()),
            "omissions": Claim("left out", omissions, left_out, omissions),
            "chains": agree,
        }

    @property
    def _is_in_doubt(self) -> bool:
        return not self.layers.are_runs and self._status != "agree"

    def left_out(self) -> list[str]:
        """Computations that were skipped, ended early or used some items only, in plain sentences."""
        layers_of: dict[str, list[Any]] = {}
        for name, one in self.items():
            for sentence in one.left_out():
                layers_of.setdefault(sentence, []).append(name)
        why = why_skipped(*(one.partition for one in self.values()))
        skipped = [f"The layers were not compared, because {why}."] * (self.comparison is None)
        if self.diagnosis is None and not self.layers.are_runs:
            skipped.append(f"Chains were compared layer by layer, because {why}.")
        return skipped + [
            sentence if len(names) == len(self) else f"{self._named(names)}: {sentence}"
            for sentence, names in layers_of.items()
        ]

    def _methods(self) -> str:
        first, n_items = next(iter(self.values())), sorted({one.draws.n_items for one in self.values()})
        items = counted(n_items[-1], "item") if len(n_items) == 1 else f"{n_items[0]:,} to {n_items[-1]:,} items"
        about = self._methods_of_runs if self.layers.are_runs else self._methods_of_draws
        said = [*about(first, items), *(claim.methods for claim in self._claims().values())]
        return with_references(" ".join(filter(None, said)), first.loss)

    def _methods_of_draws(self, first: Summary, items: str) -> Iterator[str]:
        """Sentences on layers of draws, of which one is `first`, before those of the claims."""
        report, of = "For each layer we report the partition", ", of"
        if self._status == "disagree":
            report, of = "The partition of each layer", " has"
            yield NOT_TO_REPORT
        yield (
            f"The joint posterior distribution of the partitions of {counted(len(self), 'layer')} ({self.layers.dim}), "
            f"of {items} each, was represented by {draws_in_words(self.layers.samples)}."
        )
        yield f"{report}{how_found(first)}{of} {self._numbers}."
        if isinstance(self.comparison, LayerComparison):
            if self.comparison.has_common_items:
                yield "Partitions of different layers were compared in the same draw."
            elif len(self) > 1:
                yield from self._methods_by_layer()

    def _methods_by_layer(self) -> Iterator[str]:
        """Sentences on each of layers that have no items in common, such as rows and columns of a table."""
        for name, one in self.items():
            items = display.counted_items(one.draws.n_items, one.draws.items.dim)
            told = {topic: claim.methods for topic, claim in claims_of(one).items()}
            yield f"The partition of {name}, {items}, has {told['sizes']}{told['improbable_number']} and"
            yield f"{told['expected_loss']}. {told['optimality']} {told['ball']} {told['number']} {told['misplaced']}"

    def _methods_of_runs(self, first: Summary, items: str) -> Iterator[str]:
        """Sentences on layers of runs, of which one is `first`, before those of the claims."""
        yield (
            f"The partitions of {items} were represented by {sum(one.draws.n_draws for one in self.values()):,} "
            f"independent runs, {self._repetitions} of each of {counted(len(self), 'layer')} ({self.layers.dim})."
        )
        yield f"For each layer we report the partition{how_found(first)}, of {self._numbers}."
        if self.comparison is not None:
            noise = "; each item of noise is a cluster of its own" * self._has_noise
            yield (
                f"The stability of a layer is 1 - d / c, with the mean {name_of(self.comparison.loss)} d between two "
                f"of its runs, and c between random labels with the same sizes of clusters [vinh2010]{noise}."
            )

    def plot(self, *, figsize: tuple[float, float] | None = None, width: Width = None, axes: Any = None) -> Grid:
        """Plot the clusters of each layer and where their items go.

        It is the figure of the `comparison`: a :class:`LayerComparison` of draws, a :class:`LayerStability` of runs.

        Parameters
        ----------
        figsize : (float, float), optional
            Width and height of a new figure in inches.
        width : {"column", "page"}, optional
            Width of a new figure in print, 89 or 180 mm, see :meth:`Summary.plot`.
        axes : array of one matplotlib.axes.Axes, or of three for layers of runs, optional

        Returns
        -------
        ndarray of matplotlib.axes.Axes, shape (1,) or (3,)

        Raises
        ------
        ValueError
            If no time was left to compare the layers, or there is only one. If `figsize` or `width` is invalid, or two
            of `figsize`, `width` and `axes` are given.
        """
        if width is not None:
            if axes is not None:
                raise ValueError("`width` is for a new figure, and `axes` has one already; give one of the two.")
            return printed_layers(comparison_in(self), width, figsize)
        grid: Grid = comparison_in(self).plot(figsize=figsize, axes=axes)
        return grid

    def _page(self, *, progressbar: bool) -> str:
        from posterior_consensus.summary.report.page import layers_page

        _, about, _ = self.layers._parts()
        head = display.capitalized("; ".join(f"{name}: {value}" for name, value in about))
        status = "runs" if self.layers.are_runs else self._status
        return layers_page(
            self, self._title, f"{head}.", status, self.summaries, self.comparison, progressbar=progressbar
        )

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {"layers": self.to_dataframe()}

    def to_datatree(self) -> xr.DataTree:
        """All results in one tree that NetCDF and Zarr hold; ``attach(tree, summary)`` adds it to a posterior.

        Returns
        -------
        xarray.DataTree
            ``layers`` has a node for each layer, the Dataset of its summary. ``comparison`` and ``diagnosis`` have
            those of the layers together.

        Raises
        ------
        ValueError
            If two layers have names that are the same text.
        """
        nodes = {f"layers/{node}": self[name].to_dataset() for name, node in _nodes(self.layers).items()}
        nodes |= {} if self.comparison is None else {"comparison": self.comparison.to_dataset()}
        nodes |= {} if self.diagnosis is None else {"diagnosis": self.diagnosis.to_dataset()}
        attrs = {"layer_seconds": as_json(self.seconds), "layer_cut": as_json(self.cut)}
        return xr.DataTree.from_dict(nodes | {"/": xr.Dataset(attrs=attrs)})

    @classmethod
    def from_datatree(cls, tree: xr.DataTree | Mapping[str, Any], layers: Any) -> Self:
        """Restore the summary that :meth:`to_datatree` stored with its posterior.

        Parameters
        ----------
        tree : xarray.DataTree or dict
            The result of :meth:`to_datatree`, or the group that :func:`attach` wrote; of an AnnData, its dict in
            ``uns``.
        layers : Layers
            The draws, as they were given to :func:`summarize`; they are not stored with the results.

        Returns
        -------
        LayersSummary

        Raises
        ------
        ValueError
            If no summary of these layers is in `tree`, or their draws are others.

        Examples
        --------
        >>> import numpy as np
        >>> import posterior_consensus as pc
        >>> layers = pc.as_layers(np.tile([[0, 0, 1], [0, 1, 1]], (50, 1, 1)))
        >>> tree = pc.summarize(layers, random_seed=1).to_datatree()
        >>> pc.results.LayersSummary.from_datatree(tree, layers)[1].labels.values
        array([0, 1, 1], dtype=int32)
        """
        stored, layers, nodes = as_stored(tree), as_layers(layers), _nodes(as_layers(layers))
        groups = getattr(stored, "children", {})  # a Dataset has none
        present = set(groups["layers"].children) if "layers" in groups else set()
        if present != set(nodes.values()):
            raise ValueError(
                f"`tree` must hold a summary of the layers {display.listed(list(layers), 10)}; present: "
                f"{display.listed(sorted(present), 10) or 'none'}."
            )
        kind = LayerStability if layers.are_runs else LayerComparison
        compared, diagnosed = (groups.get(name) for name in ("comparison", "diagnosis"))
        return cls(
            summaries={
                name: Summary.from_dataset(groups["layers"].children[node], layers[name])
                for name, node in nodes.items()
            },
            comparison=None if compared is None else kind.from_dataset(compared),
            diagnosis=None if diagnosed is None else Diagnosis.from_dataset(diagnosed),
            layers=layers,
            seconds=json.loads(stored.attrs["layer_seconds"]),
            cut=tuple(map(str, names_from_json(stored.attrs["layer_cut"]))),
        )

    def _annotations(self) -> dict[str, Annotations]:
        return {str(name): one._annotations()[""] for name, one in self.items()}

    def _named(self, names: list[Any]) -> str:
        return f"{self.layers.dim} {display.listed(names, _MOST_NAMED)}"

    def _splits(self) -> list[str]:
        """Where clusters of layers of runs split or merge."""
        if not isinstance(self.comparison, LayerStability) or self.comparison.partitions is None or len(self) == 1:
            return []
        return [f"{step}: {words}" for step, words in self.comparison.partitions.steps_in_words()]

    @property
    def _diagnoses(self) -> dict[str, Diagnosis]:
        """Of all layers together, if there is one, under the name "", and of each layer."""
        together = {} if self.diagnosis is None else {"": self.diagnosis}
        return together | {f"{self._named([name])}: ": one.diagnosis for name, one in self.items()}

    @property
    def _status(self) -> str:
        """The worst status of all layers together and of each layer."""
        return worst_status(self._diagnoses.values())

    def _chains(self, *, short: bool = False) -> list[Sentence]:
        """The verdict on the chains over all layers, possibly short; of runs, that they are repetitions."""
        if self.layers.are_runs:
            return [Sentence(f"Runs are independent: errors are those of {self._repetitions} runs of each layer.")]
        status, diagnoses = self._status, self._diagnoses
        if status == "agree":
            where, given = " in any layer and between layers", diagnoses.values()
            said = _AGREE.format(*agreement_in_words(*given), where=where)
            return [Sentence(f"{agreement_in_short(*given, where=where) if short else said}.")]
        where, worst = next((where, one) for where, one in diagnoses.items() if one.status == status)
        odd = [name for name, one in self.items() if one.diagnosis.status == status]
        n = len(self)
        number = {0: f"none of the {n}", n: "both" if n == 2 else f"all {n}"}.get(len(odd), f"{len(odd)} of {n}")
        which = f": {self._named(odd)}" if 0 < len(odd) < n else ""
        alone = [Sentence(f"By themselves, {_STATUSES_IN_WORDS[status]} {number} layers{which}.")] * (n > 1)
        first, *others = worst.sentences
        if short and (status == "short" or (status == "disagree" and not where)):
            first = first._replace(opening="")
        return [Sentence(f"{where}{in_full([first])}"), *others, *alone]

    def _parts(self) -> display.Parts:
        return self._title, lines_of(self._claims(), ["chains"]), self.to_dataframe()


def _nodes(layers: Layers) -> dict[Any, str]:
    """Name of each layer in a tree."""
    nodes = {name: str(name).replace("/", "_") for name in layers}
    if len(set(nodes.values())) < len(nodes):
        listed = display.listed([repr(name) for name in layers], 10)
        raise ValueError(f"Layers must have names that differ as text, also without '/'; got {listed}.")
    return nodes


def _new_runs_of(
    comparison: LayerComparison | LayerStability | None, name: Any, partition: ConsensusPartition
) -> NewRuns | None:
    """How near new runs of a layer are to its partition, where the comparison of layers has computed this."""
    if not isinstance(comparison, LayerStability) or as_loss(ball_loss(partition)) != comparison.loss:
        return None
    row = comparison.stability.isel(layer=comparison.layers.index(name))
    if int(row["n_runs"]) < 2 or not is_greedy(partition):
        return None
    return NewRuns(*(float(row[column]) for column in NEW_RUNS))


def _renamed(best: ConsensusPartition, match: ClusterMatch, items: Items) -> ConsensusPartition:
    """A layer's partition with the names that go on, whose numbers are in the order of its own items."""
    if match.labels.dims[0] == items.dim:
        labels = items.reordered(match.labels)
    else:  # items of several dimensions are in one there
        labels = match.labels.sel(item=[f"{items.dim}: {item}" for item in items.names]).values
    names = [match.names[k] for k in dict.fromkeys(labels[best.labels.values >= 0].tolist())]
    return best if tuple(names) == best.names else best.with_names(names)


def _diagnosed(clock: Clock, layers: Layers, loss: str | PartitionLoss) -> Diagnosis:
    return diagnose_within(clock.part(_DIAGNOSIS), layers.joint(), None, layers=layers, loss=loss)


def _n_modes(summary: Summary) -> float:
    """Number of modes; NaN if they were not searched for, or one cannot be told from several."""
    found = summary.modes
    if found is None or (found.n_particles == 1 and found.status == "unknown"):
        return np.nan
    return found.n_particles


def summarize_layers(
    layers: Layers, clock: Clock, options: dict[str, Any], searched: dict[str, Any], *, prob: float, modes: bool
) -> LayersSummary:
    """Search in each layer, compare the layers, and compute the rest of each layer; a cluster keeps its name.

    `options` are those of the search, `searched` seed and progress bar of every search.
    """
    progressbar, seed = searched["progressbar"], searched["random_seed"]
    if isinstance(seed, np.random.Generator):  # or a layer's result would depend on the layers before it
        searched = searched | {"random_seed": int(seed.integers(2**63))}

    def each(description: str, clock: Clock) -> Iterator[tuple[Any, PartitionDraws, Clock]]:
        """Layers in turn, each with its share of the time that is left."""
        for k, (name, draws) in enumerate(track(layers.items(), description, progressbar=progressbar)):
            yield name, draws, Clock(clock.part(1 / (len(layers) - k)))

    def searches() -> tuple[dict[Any, ConsensusPartition], dict[Any, dict[str, float]]]:
        found, seconds = {}, {}
        of_all = Clock(clock.part(SEARCH))
        for name, draws, own in each("Searches", of_all):
            found[name] = consensus_within(own, draws, own.part(1.0), searched | options)
            seconds[name] = own.seconds
            if was_interrupted(found[name]):
                of_all.end()
                clock.end()
        return found, seconds

    def summaries() -> dict[Any, Summary]:
        made = {}
        for name, draws, own in each("Summaries", clock):
            own.seconds |= seconds[name]
            posterior = Posterior(draws, Origin(f"{layers.dim} {name}"), None, None)
            known = _new_runs_of(comparison, name, found[name])
            made[name] = summary_of(own, posterior, found[name], searched, prob=prob, modes=modes, new=known)
        return made

    found, seconds = clock("searches", searches)
    loss = ball_loss(next(iter(found.values())))
    options = {"loss": loss, "partitions": found, "progressbar": progressbar}
    comparison = clock.within_limit("comparison", compare_layers, layers, **options)
    diagnosis = None
    if not layers.are_runs:
        with waiting("Diagnosis", progressbar=progressbar):
            diagnosis = clock.within_limit("diagnosis", _diagnosed, clock, layers, loss)
    if comparison is not None and comparison.partitions is not None:
        found = {name: _renamed(best, comparison.partitions[name], layers[name].items) for name, best in found.items()}
    made = clock("summaries", summaries)
    return LayersSummary(made, comparison, diagnosis, layers, clock.seconds, tuple(clock.cut))
