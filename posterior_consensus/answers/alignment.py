"""Which cluster is which? One name for a cluster in several partitions: clusters that last, split, merge or are new."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.items import Items, cluster_names, cluster_numbers, coords_of, labelled, numbers_of
from posterior_consensus.ensemble.partitions import HasLabels, Labels, by_name, canonical_labels, contingency_table
from posterior_consensus.ensemble.switching import is_matched, partners
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.display import counted, joined
from posterior_consensus.results.plain import names_as_coordinate
from posterior_consensus.results.storage import Stored

_COLUMNS = ("cluster", "reference", "n_common", "jaccard", "share", "reference_share", "same")
_OVERLAP = 0.25  # of the smaller of two clusters: what they share beyond makes them parts of one change
_MOST_LISTED = 4


@dataclass(frozen=True, eq=False, repr=False)
class ClusterMatch(HasLabels, Stored):
    """A partition with the names of a reference's clusters; a part of :class:`AlignedPartitions`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item, as a position in `names`. A matched cluster has the number of its reference cluster, any
        other cluster a new number.
    reference : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the reference; -1 for an item that is not there.
    names : tuple
        Name of each number. If all names are integers, a new cluster's name is its number; else new clusters are
        called "new 1", "new 2", ...
    ended : tuple
        Names of the reference's clusters none of whose items is in the partition.
    n_gone : int
        Number of the reference's items that are not in the partition.
    """

    _figure = "plot_alluvial"

    labels: xr.DataArray = field(metadata=stored_as.array("matched_labels", of_items=True))
    reference: xr.DataArray = field(metadata=stored_as.array("matched_reference"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("matched_names"))
    ended: tuple[Hashable, ...] = field(metadata=stored_as.names("matched_ended"))
    n_gone: int = field(metadata=stored_as.attribute("matched_items_gone"))

    @property
    def named_labels(self) -> xr.DataArray:
        """Name of each item's cluster, shape (n_items,)."""
        return self.labels.copy(data=np.asarray(names_as_coordinate(self.names))[self.labels.values]).rename(
            "named_labels"
        )

    @property
    def _shared(self) -> tuple[Labels, Labels]:
        """Numbers of the clusters of the items that are in both, in the reference and in the partition."""
        both = self.reference.values >= 0
        return self.reference.values[both], self.labels.values[both]

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each pair of clusters with items in common, the largest overlap first.

        ``n_common`` is the number of common items; ``jaccard`` its share of the items in either cluster; ``share`` and
        ``reference_share`` its shares of each of the two; ``same`` is True if they have the same name. Only items that
        both partitions have count.
        """
        before, after = self._shared
        rows, row = np.unique(before, return_inverse=True)
        columns, column = np.unique(after, return_inverse=True)
        table = np.zeros((rows.size, columns.size), np.int64)
        np.add.at(table, (row, column), 1)
        at, to = np.nonzero(table)
        common, sizes, others = table[at, to], table.sum(axis=0)[to], table.sum(axis=1)[at]
        given = [self.names[k] for k in columns[to]], [self.names[k] for k in rows[at]]
        values = *given, common, common / (sizes + others - common), common / sizes, common / others
        found = pd.DataFrame(dict(zip(_COLUMNS, (*values, columns[to] == rows[at]), strict=True)))
        return found.sort_values("n_common", ascending=False, kind="stable", ignore_index=True)

    def in_words(self) -> str:
        """Say what splits, merges, is new or ends."""
        before, after = self._shared
        said = []
        if before.size:
            names, others = ([self.names[k] for k in dict.fromkeys(one.tolist())] for one in (before, after))
            said = differences(canonical_labels(before), canonical_labels(after), names, others)
        return as_sentence([*said, *self.come_and_gone()])

    def come_and_gone(self) -> list[str]:
        """Say which clusters are new or end with their items, and how many items come and go."""
        before, after = self._shared
        new = sorted(set(self.labels.values.tolist()) - set(after.tolist()))
        said = [f"cluster {self.names[k]} has new items only" for k in new]
        said += [f"cluster {name} ends: none of its items is left" for name in self.ended]
        n_new = int(np.sum(self.reference.values < 0))
        if n_new or self.n_gone:
            come, left = display.counted(n_new, "new item"), display.counted(self.n_gone, "item")
            said.append(f"{come} and {left} gone: only the {display.counted(before.size, 'shared item')} count")
        return said

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_clusters = np.unique(self.labels.values).size
        n_same = np.intersect1d(*self._shared).size
        facts = [("in words", self.in_words()), ("names that go on", f"{n_same} of {n_clusters}")]
        title = f"ClusterMatch: {self.labels.size} items ({self.labels.dims[0]}) in "
        return title + display.counted(n_clusters, "cluster"), facts, self.to_dataframe()


@dataclass(frozen=True, eq=False, repr=False)
class AlignedPartitions(Stored):
    """Several partitions in which a cluster keeps its name; made by :func:`align_partitions`.

    ``aligned[name]`` is one of the partitions as a :class:`ClusterMatch`, whose reference is the partition before it.
    Every function and figure takes it as a partition.

    Attributes
    ----------
    labels : xarray.DataArray of shape (partition, n_items), dtype int32
        Cluster of each item in each partition, as a position in `names`; -1 for an item that is not there.
    names : tuple
        Name of each number. Clusters of different partitions have one name if they were matched.
    """

    _figure = "plot_alluvial"

    labels: xr.DataArray = field(
        metadata=stored_as.array(
            "aligned_labels", {"partition": "aligned_partition"}, in_words={"partition": "aligned_names"}, of_items=True
        )
    )
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("aligned_clusters"))

    @property
    def partitions(self) -> list[Any]:
        """Names of the partitions, in their order."""
        return list(self.labels["partition"].values.tolist())

    def __getitem__(self, name: Any) -> ClusterMatch:
        names = [str(one) for one in self.partitions]  # a dict's keys are kept as text
        if str(name) not in names:
            raise KeyError(f"There is no partition {name!r}; present: {', '.join(map(repr, self.partitions))}.")
        at = names.index(str(name))
        own, before = self.labels.values[at], self.labels.values[max(at - 1, 0)]
        here = np.flatnonzero(own >= 0)
        items = Items.along(self.labels, str(self.labels.dims[1])).take(here)
        ended = np.setdiff1d(before[before >= 0], before[here])
        return ClusterMatch(
            labels=items.array(own[here], "labels"),
            reference=items.array(before[here], "reference"),
            names=self.names,
            ended=tuple(self.names[k] for k in ended.tolist()),
            n_gone=int(np.sum((before >= 0) & (own < 0))),
        )

    def to_dataframe(self) -> pd.DataFrame:
        """The rows of :meth:`ClusterMatch.to_dataframe` for each partition but the first, unless it is the only one."""
        tables = [self[name].to_dataframe().assign(partition=name) for name in self.partitions[1:] or self.partitions]
        return pd.concat(tables).set_index("partition")

    def in_words(self) -> str:
        """Say what splits, merges, is new or ends from each partition to the next one."""
        return "\n".join(f"{step}: {words}" for step, words in self._steps)

    @property
    def _steps(self) -> list[tuple[str, str]]:
        """What happens from each partition to the next one, in words."""
        steps = itertools.pairwise(self.partitions)
        return [(f"{before} to {after}", self[after].in_words()) for before, after in steps]

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_partitions, n_items = self.labels.shape
        n_clusters = np.unique(self.labels.values[self.labels.values >= 0]).size
        title = f"AlignedPartitions: {n_partitions} of {n_items} items ({self.labels.dims[1]})"
        return (
            f"{title}, {display.counted(n_clusters, 'cluster')} in all",
            self._steps or [("steps", "none")],
            self.to_dataframe(),
        )


def align_partitions(partitions: Any) -> AlignedPartitions:
    """Name the clusters of several partitions such that a cluster keeps its name from one partition to the next.

    Parameters
    ----------
    partitions : dict, sequence or array (n_partitions, n_items)
        At least two partitions, each a result object, DataArray, Series or label vector of shape (n_items,), in a
        meaningful order, such as points of time, numbers of clusters, or a reference and a partition that takes its
        names. Names start with the first partition. Items are matched by their coordinate if all partitions have one.
        The partitions may then have different items; only the common ones count for the matching. Otherwise, items are
        matched by position.

    Returns
    -------
    AlignedPartitions

    Raises
    ------
    ValueError
        If there are fewer than two partitions, they have different numbers of items and no coordinate, names of items
        are not unique, or labels are invalid.
    TypeError
        If `partitions` is neither a dict nor a sequence.

    See Also
    --------
    plot_alluvial : takes the result.
    relabel : components of draws by the clusters of a partition.

    Notes
    -----
    The clusters of each partition are matched with those of the one before it, one to one, such that the total number
    of items in common is largest, a linear assignment problem [1]_. Among equally good matchings, the one with the
    largest sum of Jaccard similarities is taken. A cluster without a partner gets a new name, and so does one that has
    no item in common with the partition before. A name whose cluster has ended is not used again, not even for a later
    cluster of the same items.

    References
    ----------
    .. [1] Kuhn (1955), Naval Research Logistics Quarterly 2(1-2), 83-97. https://doi.org/10.1002/nav.3800020109

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> found = pc.align_partitions({"2019": [0, 0, 0, 1, 1], "2020": [0, 1, 1, 2, 2], "2021": [0, 0, 0, 1, 1]})
    >>> found.labels.values
    array([[0, 0, 0, 1, 1],
           [2, 0, 0, 1, 1],
           [0, 0, 0, 1, 1]], dtype=int32)
    >>> print(found.in_words())
    2019 to 2020: Cluster 0 splits into clusters 0 (2 items) and 2 (1 item).
    2020 to 2021: Clusters 2 and 0 are one, cluster 0 (3 items).

    A partition with the names of another one's clusters:

    >>> two = pc.align_partitions({"old": ["a", "a", "b", "b", "b", "b", "b"], "new": [0, 0, 1, 1, 1, 2, 2]})
    >>> two["new"].named_labels.values.tolist()
    ['a', 'a', 'b', 'b', 'b', 'new 1', 'new 1']
    >>> print(two["new"].in_words())
    Cluster b splits into clusters b (3 items) and new 1 (2 items).
    """
    if isinstance(partitions, xr.DataArray) and partitions.ndim == 2:
        named = dict(zip(partitions[partitions.dims[0]].values.tolist(), partitions, strict=True))
    else:
        named = by_name(partitions, "partitions")
    if len(named) < 2:
        raise ValueError(f"`partitions` must hold at least two partitions; got {len(named)}.")
    given = {f"`partitions[{name!r}]`": partition for name, partition in named.items()}
    items, values, places = over_all_items(given)
    labels = np.full((len(given), items.n_items), -1, np.int32)
    names = list[Hashable]()
    for row, name in enumerate(given):
        own, at = canonical_labels(values[name], name.strip("`")), places[name]
        if row == 0:
            numbers, names = _numbered(given[name], values[name])
        else:
            numbers, names = _matched(own, labels[row - 1, at], names)
        labels[row, at] = numbers[own]
    found = items.partition_array(labels, "partition", "labels").assign_coords(partition=list(named))
    return AlignedPartitions(found, tuple(names))


def numbers_in(reference: Any, items: Items) -> tuple[Labels, list[Hashable]]:
    """Number (n_items,) of each item's cluster in a reference, and the name of each number."""
    numbers, names = _numbered(reference, items.in_order(reference, "reference"))
    return numbers[items.as_labels(reference, "reference")].astype(np.int32), names


def numbered_as(labels: Labels, reference: Labels, names: list[Hashable]) -> tuple[Labels, list[Hashable]]:
    """Labels (n_items,) with the numbers of a reference's clusters, matched as by :func:`align_partitions`; all names.

    Clusters without a partner are numbered after the reference's. Items with a label below 0 are in no cluster.
    """
    found, at = np.full_like(labels, -1), np.flatnonzero(labels >= 0)
    own = canonical_labels(labels[at])
    numbers, names = _matched(own, reference[at], names)
    found[at] = numbers[own]
    return found, names


def _numbered(partition: Any, values: Any) -> tuple[npt.NDArray[np.int64], list[Hashable]]:
    """Numbers of the first partition's clusters, in order of first appearance, and the name of each number."""
    own, numbers = cluster_names(partition, values), cluster_numbers(partition, values)
    listed = list(getattr(partition, "names", None) or own)
    known = [*own, *listed]
    if known == numbers_of(known).tolist():
        return numbers, list(range(max(known) + 1))
    return numbers, listed


def _matched(
    own: Labels, before: npt.NDArray[np.int32], names: list[Hashable]
) -> tuple[npt.NDArray[np.int64], list[Hashable]]:
    """Numbers of a partition's clusters, given those of its items in the one before, and the names with the new ones.

    An item that was not there before has the number -1, the table's first column, with which nothing is matched.
    """
    numbers, column = np.unique(np.append(-1, before), return_inverse=True)
    table = contingency_table(own, column[1:].astype(np.int32))
    table = np.pad(table, ((0, 0), (0, numbers.size - table.shape[1])))
    table[:, 0] = 0
    return continued(table, numbers, names)


def continued(
    table: npt.NDArray[Any], numbers: npt.NDArray[np.integer], names: list[Hashable]
) -> tuple[npt.NDArray[np.int64], list[Hashable]]:
    """Numbers (R,) of clusters that have so many items (R, C) in common with those of these numbers, and all names."""
    partner = partners(table)
    found = np.where(partner >= 0, numbers[partner], -1).astype(np.int64)
    new = np.flatnonzero(found < 0)
    found[new] = len(names) + np.arange(new.size)
    if names == list(range(len(names))):
        return found, [*names, *found[new].tolist()]
    free = (name for name in map("new {}".format, itertools.count(1)) if name not in names)
    return found, [*names, *itertools.islice(free, new.size)]


def over_all_items(given: Mapping[str, Any]) -> tuple[Items, dict[str, Any], dict[str, npt.NDArray[np.intp]]]:
    """All items of several partitions, each partition's labels, and where among all items its own ones are."""
    arrays = [values for values in (getattr(one, "labels", one) for one in given.values()) if _is_vector(values)]
    dim = str(arrays[0].dims[0]) if arrays else "item"
    values = {name: labelled(partition, dim) for name, partition in given.items()}
    arrays = [one for one in values.values() if _is_vector(one)]
    if len(arrays) == len(values) and all(one.dims == (dim,) and dim in one.indexes for one in arrays):
        indexes = {name: one.indexes[dim] for name, one in values.items()}
        for name, index in indexes.items():
            if not index.is_unique:
                doubled = index[index.duplicated()][0]
                raise ValueError(f"{name} must have items of different names; got {doubled!r} more than once.")
        union = next(iter(indexes.values()))
        for index in indexes.values():
            union = union.append(index[~index.isin(union)])
        items = Items.along(arrays[0], dim)
        if len(union) > items.n_items:
            items = Items(len(union), dim, coords_of(union, dim))
        return items, values, {name: union.get_indexer(index) for name, index in indexes.items()}
    sizes = {name: len(canonical_labels(one, name.strip("`"))) for name, one in values.items()}
    first, n_items = next(iter(sizes.items()))
    for name, size in sizes.items():
        if size != n_items:
            raise ValueError(
                f"{name} must label the same {n_items} items as {first}; got {size}. "
                "If items come and go, give all partitions a coordinate of the items."
            )
    items = Items.along(arrays[0], dim) if arrays else Items(n_items, dim, xr.Coordinates())
    return items, values, dict.fromkeys(values, np.arange(n_items))


def _is_vector(values: Any) -> bool:
    return isinstance(values, xr.DataArray) and values.ndim == 1


def as_sentence(clauses: list[str]) -> str:
    """Clauses as a sentence; without any, the partitions are the same."""
    words = "; ".join(clauses) or "the partitions are the same"
    return f"{words[0].upper()}{words[1:]}."


def differences(
    reference: Labels, partition: Labels, names: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> list[str]:
    """Say how a partition differs from a reference, cluster by cluster of the reference, the largest change first.

    Parameters
    ----------
    reference, partition : ndarray of shape (n_items,), dtype int32
        Canonical labels of the same items.
    names : sequence of shape (n_clusters,)
        Names of the reference's clusters.
    others : sequence, optional
        Names of the partition's clusters, which are told by their sizes alone without them.

    Returns
    -------
    list of str
        Clauses without a capital and a full stop; empty for equal partitions.

    Notes
    -----
    Two clusters overlap if they share at least a quarter of the smaller of them. The connected components of the graph
    of overlapping clusters are told one by one: a cluster that splits, clusters that are one, and clusters between
    which items move, those outside the one-to-one matching of most common items. Items that two clusters share without
    overlapping are counted together at the end.
    """
    return differences_of_table(contingency_table(reference, partition), names, others)


def differences_of_table(
    table: npt.NDArray[Any], names: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> list[str]:
    """Say the same, given the numbers of common items, or expected ones: less than half an item is none."""
    smaller = np.minimum(table.sum(axis=1)[:, np.newaxis], table.sum(axis=0))
    overlap = is_matched(table) & (table >= _OVERLAP * smaller)
    rows, columns = np.nonzero(overlap)
    n_reference, n_partition = table.shape
    n_nodes = n_reference + n_partition
    graph = coo_array((np.ones(rows.size), (rows, n_reference + columns)), shape=(n_nodes, n_nodes))
    n_components, component = connected_components(graph, directed=False)
    changes = []
    for c in range(n_components):
        before = np.flatnonzero(component[:n_reference] == c)
        after = np.flatnonzero(component[n_reference:] == c)
        if max(before.size, after.size) > 1:
            part = table[np.ix_(before, after)]
            own = None if others is None else [others[k] for k in after.tolist()]
            changes.append((part.sum() - part.max(), _change([names[k] for k in before.tolist()], part, own)))
    told = [text for _, text in sorted(changes, key=lambda change: -change[0])]
    moved = float(table[~overlap].sum())
    return [*told, f"{_items(moved)} change{'s' * (moved == 1)} clusters"] if moved >= 0.5 else told


def _items(number: float) -> str:
    return counted(int(number), "item") if number == int(number) else f"{number:.3g} items"


def _change(names: Sequence[Hashable], part: npt.NDArray[Any], others: Sequence[Hashable] | None) -> str:
    """Say what becomes of these clusters, which the rows of the table of counts stand for."""
    sizes = part.sum(axis=0)
    order = np.argsort(-sizes, kind="stable").tolist()
    words = [str(sizes[k]) if others is None else f"{others[k]} ({_items(sizes[k])})" for k in order]
    if len(order) > _MOST_LISTED:
        parts = f"{len(order)} clusters, the largest of {_items(sizes[order[0]])}"
    else:
        parts = f"clusters {'of ' if others is None else ''}{_joined(words)}"
    if len(names) == 1:
        return f"cluster {names[0]} splits into {parts}"
    if len(order) == 1:
        return f"clusters {_joined(names)} are one{'' if others is None else f', cluster {words[0]}'}"
    moved = float(part.sum() - part[linear_sum_assignment(part, maximize=True)].sum())
    return f"{_items(moved)} move{'s' * (moved == 1)} between clusters {_joined(names)}, which become {parts}"


def _joined(values: Sequence[Hashable]) -> str:
    words = [str(value) for value in values[:_MOST_LISTED]]
    if len(values) > _MOST_LISTED:
        words.append(f"{len(values) - _MOST_LISTED} more")
    return joined(words)
