"""Which items do the draws co-cluster? Stable components: items whose labels agree in most draws or in all."""

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
from posterior_consensus.sources.door import as_source

LINKAGES = ("single", "complete")
_LEVELS = np.arange(1, 101) / 100
_MOST_IN_CURVE = 5000  # signatures of which all similarities are computed although the level does not ask for them


@dataclass(frozen=True, eq=False, repr=False)
class StableComponents(HasLabels, Stored):
    """Sets of items that the draws co-cluster; made by :func:`stable_components`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Component of each item, 0 for the largest; of equally large ones the first has the lower number.
    level : float
        Share of the posterior in which labels of the items of a component agree.
    linkage : {"single", "complete"}
        Whether this holds along chains of items, or for every two items of a component.
    curve : xarray.DataArray of shape (level,), or None
        Number of components at the levels 0.01, 0.02, ..., 1; None for level 1 where more than 5,000 items differ.
    n_draws : int or None
        None where a similarity matrix alone was given.
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
        """Number of components, those of one item included."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> xr.DataArray:
        """Number of items of each component, over ``component``, the largest first."""
        return xr.DataArray(np.bincount(self.labels.values), dims="component", name="size")

    @property
    def components(self) -> list[list[Any]]:
        """Items of each component, as their coordinate names them; without one, their positions."""
        return members_of(self.labels)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each component: its size, its share of the items, and the first few of them."""
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
    """Find sets of items co-clustered in at least a given share of the draws.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
    level : float in (0, 1]
        Minimum share of the posterior in which two items are co-clustered. At 1 a component is a set of items that all
        draws co-cluster.
    linkage : {"single", "complete"}
        Below level 1, whether items are of one component where a chain of such pairs connects them, or only where every
        pair within it is one. The latter sets need not be unique: they are those of the tree of complete linkage.

    Returns
    -------
    StableComponents

    Raises
    ------
    ValueError
        If `level` or `linkage` is not among those allowed, or the draws are invalid as :func:`as_partition_draws` says.
    MemoryError
        If the similarities of the items that differ take more than the memory budget.

    See Also
    --------
    plot_stable_components : their number against the level.
    partial_partition : items whose joint clustering has a given probability.

    Notes
    -----
    The signature of an item is the vector of its labels over the draws. Items of one signature are a stable component
    [1]_. Under Binder's loss with any costs, VI and the misclassification distance, some partition of minimum expected
    loss co-clusters them: as a part of a component moves from one cluster to another, the expected loss is a concave
    function of how much of it has moved, and a concave function is least at an end. Under these losses, stable
    components may thus be merged before any search.

    Below level 1 two items are linked where their posterior similarity is at least `level`. Draws of weight 0 do not
    count.

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
    """Component of each signature, which an item stands for, and the number of components at each of the levels."""
    if first.size == 1:
        return np.zeros(1, np.int64), np.ones(_LEVELS.size, np.int64)
    differ = source.of_items(first)
    differ.check_memory("At level 1 it is not needed.")
    merges = tree(differ.shared_similarity, linkage)
    joined = np.searchsorted(merges[:, 2], 1.0 - np.append(_LEVELS, level) + ROUNDING, side="right")
    *numbers, number = (first.size - joined).tolist()
    return cut(merges, [number])[0], np.array(numbers)


def _largest_first(classes: npt.NDArray[Any]) -> Labels:
    """Number classes by their size, equal ones by first appearance."""
    _, first, inverse, sizes = np.unique(classes, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int32)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[inverse]
