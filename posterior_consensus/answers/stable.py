"""Stable components: sets of items that all or most draws co-cluster."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import hard_draws
from posterior_consensus.ensemble.items import members_of
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasLabels, Labels
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import check_share
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.trees import cut, tree
from posterior_consensus.sources.conversion import as_source

LINKAGES = ("single", "complete")
_LEVELS = np.arange(1, 101) / 100
_MOST_IN_CURVE = 5000  # most signatures for which the curve is computed at level 1


@dataclass(frozen=True, eq=False, repr=False)
class StableComponents(HasLabels, Stored):
    """Sets of items that the draws co-cluster; made by :func:`stable_components`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Component of each item. Components are numbered by size, the largest 0; ties by first appearance.
    level : float
        Minimum posterior similarity of linked items.
    linkage : {"single", "complete"}
        Whether items of a component are connected by chains of links, or every two of them are linked.
    curve : xarray.DataArray of shape (level,), or None
        Number of components at the levels 0.01, 0.02, ..., 1; None at level 1 with more than 5,000 distinct items.
    n_draws : int or None
        Number of draws; None for a similarity matrix alone.
    """

    _figure = "plot_stable_components"

    labels: xr.DataArray = field(metadata=stored_as.array("stable_component", of_items=True))
    level: float = field(metadata=stored_as.attribute("stable_components_level"))
    linkage: Literal["single", "complete"] = field(metadata=stored_as.attribute("stable_components_linkage"))
    curve: xr.DataArray | None = field(
        metadata=stored_as.array("stable_components_by_level", {"level": "stable_level"}, name="n_components")
    )
    n_draws: int | None = field(metadata=stored_as.attribute("stable_components_draws"))

    @property
    def n_components(self) -> int:
        """Number of components, including single items."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> xr.DataArray:
        """Number of items of each component, over ``component``, the largest first."""
        return xr.DataArray(np.bincount(self.labels.values), dims="component", name="size")

    @property
    def components(self) -> list[list[Any]]:
        """Items of each component, by coordinate or else by position."""
        return members_of(self.labels)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the components.

        Returns
        -------
        pandas.DataFrame
            A row for each component: its size, its share of the items, and its first items.
        """
        numbers = pd.RangeIndex(self.n_components, name="component")
        return display.table_of_members(self.components, self.labels.size, str(self.labels.dims[0]), numbers)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        alone = int(np.sum(self.sizes.values == 1))
        within = "every two items" if self.linkage == "complete" else "items, in chains"
        facts = [
            ("level", f"{self.level:g}" + ("" if self.level == 1 else f", between {within}")),
            ("of one item", str(alone)),
            ("draws", display.number_of_draws(self.n_draws)),
        ]
        count = display.counted(self.n_components, "component")
        title = f"StableComponents: {self.labels.size} items ({self.labels.dims[0]}) in {count}"
        return title, facts, self.to_dataframe()


def stable_components(
    draws: Any, level: float = 1.0, *, linkage: Literal["single", "complete"] = "single"
) -> StableComponents:
    """Find sets of items that all draws, or at least a given share of them, co-cluster.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    level : float in (0, 1]
        Minimum posterior similarity of two linked items. At 1, a component is a set of items that all draws co-cluster.
    linkage : {"single", "complete"}
        Only matters below level 1. With "single", items of a component are connected by a chain of links. With
        "complete", every two items of a component are linked; such sets are not unique, and the tree of complete
        linkage selects them.

    Returns
    -------
    StableComponents
        The component of each item, and the number of components by level.

    Raises
    ------
    ValueError
        If `level` or `linkage` is invalid, or the draws are invalid, see :func:`as_partition_draws`.
    MemoryError
        If the similarities of items with distinct labels exceed the memory budget.

    See Also
    --------
    plot_stable_components : their number against the level.
    partial_partition : items whose joint clustering has a given probability.

    Notes
    -----
    At level 1, items with equal labels in all draws form a component [1]_. Below level 1, two items are linked if their
    posterior similarity is at least `level`. Draws of weight 0 are ignored.

    Under Binder's loss with any costs, VI and the misclassification distance, at least one partition of minimum
    expected loss co-clusters the items of each component of level 1. The reason: if a part of a component moves from
    one cluster to another, the expected loss is a concave function of the size of this part, so its minimum is at an
    end. These components can be merged before a search. Other minimizers, other losses and lower levels have no such
    guarantee.

    References
    ----------
    .. [1] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 1, 1, 1, 2], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1], [0, 1, 1, 1, 2]]
    >>> pc.stable_components(draws).labels.values
    array([1, 0, 0, 2, 3], dtype=int32)
    >>> pc.stable_components(draws, 0.75).components
    [[1, 2, 3], [0], [4]]
    """
    source = as_source(draws)
    level = check_share("level", level)
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    signatures = source.signatures()
    _, first = np.unique(signatures, return_index=True)
    curve = None
    if first.size <= _MOST_IN_CURVE or level < 1 or hard_draws(source) is None:
        classes, numbers = _classes(source, first, level, linkage)
        curve = xr.DataArray(numbers, {"level": _LEVELS}, ("level",), "n_components")
        signatures = classes[signatures]
    return StableComponents(
        labels=source.items.array(_largest_first(signatures), "labels"),
        level=level,
        linkage=linkage,
        curve=curve,
        n_draws=source.n_draws,
    )


def _classes(
    source: PairSource, first: npt.NDArray[np.intp], level: float, linkage: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Component of each signature, given by its first item, and the number of components at each level."""
    if first.size == 1:
        return np.zeros(1, np.int64), np.ones(_LEVELS.size, np.int64)
    differ = source.of_items(first)
    differ.check_memory("At level 1 it is not needed.")
    merges = tree(differ.shared_similarity, linkage)
    joined = np.searchsorted(merges[:, 2], 1.0 - np.append(_LEVELS, level) + ROUNDING, side="right")
    *numbers, number = (first.size - joined).tolist()
    return cut(merges, [number])[0], np.array(numbers)


def _largest_first(classes: npt.NDArray[Any]) -> Labels:
    """Number classes by decreasing size, ties by first appearance."""
    _, first, inverse, sizes = np.unique(classes, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int32)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[inverse]
