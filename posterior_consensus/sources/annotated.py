"""Results as columns of an AnnData, or of any object with a table `obs` and a dict `uns`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.items import Items
from posterior_consensus.results.display import counted, listed
from posterior_consensus.results.palette import COLOURS
from posterior_consensus.runtime.aliases import Positions
from posterior_consensus.runtime.arguments import warn

_MOST_NAMED = 6  # clusters
_COLUMNS = "columns"  # names of the columns written, among the facts


def is_annotated(data: object) -> bool:
    """Whether data are an AnnData or alike."""
    return hasattr(data, "obs") and hasattr(data, "uns")


def has_observations(data: object) -> bool:
    """Whether data have a table of named observations, as an AnnData has, of which columns may be runs."""
    return hasattr(data, "obs") and hasattr(data, "obs_names")


def annotate(data: Any, results: Sequence[Any], group: str, stored: Callable[[], dict[str, Any]]) -> None:
    """Write columns of `obs`, and facts and what is stored into `uns`, in place of those of an earlier call."""
    columns: dict[str, pd.Series] = {}
    facts: dict[str, Any] = {}
    for result in results:
        if not hasattr(result, "_annotations"):
            raise TypeError(
                "`results` must be about single items to become columns of `obs`, such as a summary, a partition or an "
                f"item uncertainty; got {type(result).__name__}. Keep it by its to_dataset()."
            )
        for layer_name, said in result._annotations().items():
            layer = layer_name.replace("/", "_")  # a slash divides keys of an h5ad file
            at = _positions(said.items, data.obs.index)
            for kind, values in said.columns.items():
                name = "_".join(part for part in (group, layer, kind) if part)
                column = pd.Series(values[at], data.obs.index)
                if not columns.setdefault(name, column).equals(column):
                    raise ValueError(f"`results` hold different values of {name!r}; attach them as separate groups.")
            own = facts.setdefault("layers", {}).setdefault(layer, {}) if layer else facts
            own.update(said.facts)
    facts |= stored()
    before = data.uns.get(group)
    for name in before.get(_COLUMNS, ()) if isinstance(before, Mapping) else ():
        if name not in columns and name in data.obs:
            del data.obs[name]
            data.uns.pop(_colours(name), None)
    for name, column in columns.items():
        data.obs[name] = column
        if isinstance(column.dtype, pd.CategoricalDtype):
            _colour(data.uns, name, column.cat.categories)
            _warn_of_single(name, column)
    data.uns[group] = facts | {_COLUMNS: np.array(list(columns), dtype=object)}


def _colours(name: str) -> str:
    """Where scanpy looks for the colours of a column."""
    return f"{name}_colors"


def _colour(uns: Any, name: str, clusters: pd.Index) -> None:
    """Give clusters the colours of the figures, by number; scanpy chooses those of more than there are."""
    uns.pop(_colours(name), None)
    if len(clusters) <= len(COLOURS):
        numbers = [int(one) if one.isdecimal() else len(COLOURS) for one in clusters]
        chosen = numbers if max(numbers, default=0) < len(COLOURS) else range(len(clusters))
        uns[_colours(name)] = np.array([COLOURS[k] for k in chosen], dtype=object)


def _warn_of_single(name: str, column: pd.Series) -> None:
    """Warn of clusters of one observation, of which scanpy's tests of differences between clusters raise an error."""
    sizes = column.value_counts(sort=False)
    single, others = (sizes.index[of].tolist() for of in (sizes == 1, sizes > 1))
    if single and others:
        warn(
            f"`results` have clusters of one observation, {listed(single, _MOST_NAMED)} of {name!r}, which "
            f"scanpy.tl.rank_genes_groups does not take. Give it groups=[one for one, n in "
            f"adata.obs[{name!r}].value_counts().items() if n > 1]."
        )


def _positions(items: xr.DataArray, names: pd.Index) -> Positions:
    """Position of each observation among the items: by name, or by place if the items have no names."""
    dim = str(items.dims[0])
    if dim not in items.coords:
        if items.size != len(names):
            raise ValueError(
                f"`data` must have the {counted(items.size, 'item')} of the results, which have no names; got "
                f"{counted(len(names), 'observation')}. Results of as_runs(adata, keys) have names."
            )
        return np.arange(items.size)
    present, wanted = pd.Index(Items.along(items, dim).names), names.astype(str)
    if wanted.equals(present):
        return np.arange(items.size)
    for where, index in (("`data`", wanted), ("`results`", present)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(f"{where} must name each observation once; {twice!r} is the name of several.")
    found = present.get_indexer(wanted)
    if (unknown := wanted[found < 0]).size:
        rest = f"Attach to the rest: adata[best.labels[{dim!r}].values]."
        raise ValueError(
            f"`data` must have observations of the results, which have {counted(items.size, 'item')}, {present[0]!r} "
            f"to {present[-1]!r}; got {unknown[0]!r}{f' and {unknown.size - 1:,} others' if unknown.size > 1 else ''} "
            "that are none of them. "
            + (rest if unknown.size < wanted.size else "Attach to the data that the runs are from, or rename these.")
        )
    return found
