"""Several partitions in each draw, from the same samples, or runs of each layer, which have no pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items, coords_of
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results import display
from posterior_consensus.runtime.tolerances import ROUNDING

_TIMES = date, timedelta, pd.Period, np.datetime64, np.timedelta64


@dataclass(frozen=True, eq=False, repr=False)
class Layers(display.Shown, Mapping[Any, PartitionDraws]):
    """Draws of several partitions at once, such as those of the same people at each time; made by :func:`as_layers`.

    A mapping of the layers' names to their :class:`PartitionDraws`, which all have the same samples. A label of one
    layer says nothing of the same label in another one. Layers of independent runs, such as those of each resolution,
    have runs of their own: the third run of one layer has nothing to do with the third of another.

    Attributes
    ----------
    draws : dict of PartitionDraws
        Draws of each layer, by its name: text or a number. Dates and times are text, such as "2020-01-31".
    dim : str
        Name of the dimension that runs over layers.
    ordered : bool
        Whether the layers follow each other, as times do.
    samples : Samples
        Chains, draws and weights, the same in each layer; layers of runs have none in common.
    are_runs : bool
        Whether the layers are independent runs, which are not paired.
    """

    _no_figure = "compare_layers(layers).plot() shows how the clusters go on"

    draws: dict[Any, PartitionDraws]
    dim: str
    ordered: bool

    @classmethod
    def of(cls, named: Mapping[Any, PartitionDraws], dim: str, ordered: bool) -> Layers:
        """Pair the draws of all layers with those of the first by chain and draw, but for independent runs.

        Raises
        ------
        ValueError
            If there is no layer, two have names that are the same text, a layer has other draws or weights than the
            first, or only some layers are runs.
        TypeError
            If a name is neither text nor a number nor a time.
        """
        if not named:
            raise ValueError("`data` must hold at least one layer; got none.")
        names = layer_names(named)
        if len(set(map(str, names))) < len(names):
            raise ValueError(
                f"Names of layers must differ as text; got {display.listed([repr(one) for one in names], 10)}."
            )
        named = dict(zip(names, named.values(), strict=True))
        first, *_ = named
        samples, known, paired = named[first].samples, list[Items](), dict[Any, PartitionDraws]()
        runs = [name for name, draws in named.items() if not draws.samples.series]
        if 0 < len(runs) < len(named):
            rest = [repr(name) for name in named if name not in runs]
            raise ValueError(
                "Layers must all be runs or all be draws of chains; got runs of "
                f"{display.listed([repr(name) for name in runs], 10)} and draws of {display.listed(rest, 10)}. Give "
                "as_runs the labels of these, too."
            )
        for name, draws in named.items():
            if runs:
                paired[name] = replace(draws, items=_shared(draws.items, known))
                continue
            draws = draws.reordered_to(samples, f"layer {name!r}")
            differ = np.abs(draws.weights - samples.weights).max()
            if differ > ROUNDING:
                raise ValueError(
                    f"Layer {name!r} must have the weights of layer {first!r}; they differ by up to {differ:.3g}. "
                    "Weights are those of a draw, with all its layers: give `weights` to as_layers."
                )
            paired[name] = replace(draws, items=_shared(draws.items, known), samples=samples)
        return cls(paired, dim, ordered)

    def __getitem__(self, name: Any) -> PartitionDraws:
        try:
            return self.draws[layer_names([name])[0]]
        except (KeyError, TypeError):
            present = display.listed([repr(one) for one in self.draws], 10)
            raise KeyError(f"There is no layer {name!r}; present: {present}.") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.draws)

    def __len__(self) -> int:
        return len(self.draws)

    @property
    def are_runs(self) -> bool:
        """Whether the layers are independent runs, which are not paired."""
        return not next(iter(self.draws.values())).samples.series

    @property
    def samples(self) -> Samples:
        """Chains, draws and weights, the same in each layer.

        Raises
        ------
        ValueError
            If the layers are runs.
        """
        if self.are_runs:
            raise ValueError(
                "`layers` must hold several partitions in each draw; got independent runs of each layer, which are not "
                "paired. compare_layers(layers) and summarize(layers) compare them."
            )
        return next(iter(self.draws.values())).samples

    def isel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Layers:
        """Keep some draws of all layers by their position, see :meth:`PartitionDraws.isel`."""
        kept = {name: draws.isel(chain=chain, draw=draw) for name, draws in self.items()}
        return Layers.of(kept, self.dim, self.ordered)

    def common(self, one: Any, other: Any) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Positions in two layers of the items that both have, by name, or by place where these have no names."""
        ours, theirs = self[one].items, self[other].items
        if ours is theirs:
            both = np.arange(ours.n_items)
            return both, both
        if ours.dim != theirs.dim:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        found = _index(theirs).get_indexer(_index(ours))
        at = np.flatnonzero(found >= 0)
        return at, found[at]

    def paired(self, one: Any, other: Any) -> PartitionDraws | None:
        """Partitions of the items that two layers have in common: in the N draws of one, then of the other."""
        common = self.common(one, other)
        if common[0].size == 0:
            return None
        labels = [self[name].labels for name in (one, other)]
        if self[one].items is not self[other].items:
            labels = [own[:, at] for own, at in zip(labels, common, strict=True)]
        return PartitionDraws.of(np.concatenate(labels))

    def joint(self) -> PartitionDraws:
        """Partitions of the items of all layers, named by both, whose clusters have items of one layer each."""
        samples = self.samples
        first = np.cumsum([draws.backend.n_clusters for draws in self.values()], axis=0)
        ends = np.cumsum([draws.n_items for draws in self.values()])
        labels = np.empty((samples.n_draws, ends[-1]), smallest_dtype(int(first[-1].max())))
        for draws, last, end in zip(self.values(), first, ends, strict=True):
            before = (last - draws.backend.n_clusters).astype(labels.dtype)
            np.add(draws.labels, before[:, np.newaxis], out=labels[:, end - draws.n_items : end])
        names = [f"{layer}: {item}" for layer, draws in self.items() for item in draws.items.names]
        items = Items(len(names), "item", coords_of(pd.Index(names), "item"))
        return PartitionDraws.of(labels, samples=samples, items=items)

    def _parts(self) -> display.Parts:
        n_runs = [draws.n_draws for draws in self.values()] if self.are_runs else []
        lines = [
            *([("runs", f"{sum(n_runs)}, independent")] if n_runs else self.samples.lines()),
            ("layers", f"{display.listed(list(self), 10)} ({self.dim}{', in this order' if self.ordered else ''})"),
        ]
        columns = ({"runs": n_runs} if n_runs else {}) | {
            "items": [draws.n_items for draws in self.values()],
            "dimension": [draws.items.dim for draws in self.values()],
            "fewest": [draws.n_clusters.min() for draws in self.values()],
            "most": [draws.n_clusters[draws.weights > 0].max() for draws in self.values()],
        }
        table = pd.DataFrame(columns, index=pd.Index([str(name) for name in self], name=self.dim))
        number = display.counted(len(self), "layer" if n_runs else "partition")
        return f"Layers: {number} {'of runs' if n_runs else 'in each draw'}", lines, table


def layer_names(given: Iterable[Any]) -> list[Any]:
    """Names as the user gave them, but for times, which become text; TypeError for what formats do not store."""
    return [_time_as_text(name) if isinstance(name, _TIMES) else _plain(name) for name in given]


def _time_as_text(name: Any) -> str:
    if isinstance(name, (timedelta, np.timedelta64)):
        text = str(pd.Timedelta(name)).removesuffix(" 00:00:00")
        return "1 day" if text == "1 days" else text
    if isinstance(name, pd.Period) or getattr(name, "tzinfo", None) is not None:
        return str(name)
    return str(np.datetime_as_string(np.datetime64(name), unit="auto"))


def _plain(name: Any) -> Any:
    plain = name.item() if isinstance(name, np.generic) else name
    if isinstance(plain, (str, Real)) and plain == plain:  # no NaN
        return plain
    raise TypeError(f"Names of layers must be text, numbers, dates or times; got {name!r}.")


class Step(NamedTuple):
    """Two layers of which one follows the other, by name, and positions in each of their common items."""

    before: Any
    after: Any
    at: npt.NDArray[np.intp]
    to: npt.NDArray[np.intp]


def steps_of(layers: Layers) -> list[Step]:
    """Each layer with the last one before it that has items in common with it, in the order of the layers."""
    names, found = list(layers), list[Step]()
    for row, after in enumerate(names):
        pairs = ((before, *layers.common(before, after)) for before in reversed(names[:row]))
        found += islice((Step(before, after, at, to) for before, at, to in pairs if at.size), 1)
    return found


def _index(items: Items) -> pd.Index:
    return items.coords[items.dim].to_index() if items.dim in items.coords else pd.RangeIndex(items.n_items)


def _shared(items: Items, known: list[Items]) -> Items:
    """The same items of a layer before, if there is one; else these, which are then known."""
    shared = next((one for one in known if _are_same(one, items)), items)
    known += [shared] * (shared is items)
    return shared


def _are_same(one: Items, other: Items) -> bool:
    """Whether two layers have the same items in the same order; ValueError if one dimension's cannot be paired."""
    if one.dim != other.dim:
        return False
    named = [items.dim in items.coords for items in (one, other)]
    if not all(named) and (any(named) or one.n_items != other.n_items):
        raise ValueError(
            f"Items of {one.dim!r} must have names, by which layers are paired, or be as many in each layer; got "
            f"{one.n_items} and {other.n_items} items{', of which some have names' * any(named)}. Give them a "
            f"coordinate {one.dim!r}, or different items a dimension of another name."
        )
    mine, others = _index(one), _index(other)
    if not (mine.equals(others) or (mine.is_unique and others.is_unique)):
        raise ValueError(f"Names of items of {one.dim!r} must be unique, as layers are paired by them.")
    return mine.equals(others)
