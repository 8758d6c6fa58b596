"""Names of clusters that are kept across several partitions, and which clusters split, merge, begin or end."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.items import (
    NOISE,
    Items,
    cluster_names,
    cluster_numbers,
    coords_of,
    items_named_in,
    labelled,
    numbers_of,
)
from posterior_consensus.ensemble.partitions import (
    HasLabels,
    Labels,
    canonical_labels,
    contingency_table,
    named_partitions,
    of_result,
)
from posterior_consensus.ensemble.switching import assignment, is_matched, partners
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations, as_categories
from posterior_consensus.results.display import counted, joined
from posterior_consensus.results.stored_as import Stored, names_as_coordinate
from posterior_consensus.runtime.aliases import Integers, Positions

_COLUMNS = ("cluster", "reference", "n_common", "jaccard", "share", "reference_share", "same")
_OVERLAP = 0.25  # share of the smaller of two clusters from which they are parts of the same change
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
        Cluster of each item in the reference; -1 for an item that the reference does not have.
    names : tuple
        Name of each number. If all names are integers, a new cluster's name is its number; else new clusters are
        called "new 1", "new 2", ...
    ended : tuple
        Names of the reference's clusters that have no item in the partition.
    n_gone : int
        Number of the reference's items that are not in the partition.
    """

    _figure = "alluvial.plot_alluvial"

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
        """Clusters of the common items: their numbers in the reference, and their numbers in the partition."""
        both = self.reference.values >= 0
        return self.reference.values[both], self.labels.values[both]

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the pairs of clusters with items in common, the largest overlap first.

        Returns
        -------
        pandas.DataFrame
            A row for each pair, of common items only. ``n_common`` is the number of items in both clusters.
            ``jaccard`` divides it by the number of items in either cluster, ``share`` by the size of the cluster, and
            ``reference_share`` by the size of the reference's cluster. ``same`` is True if both have one name.
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
        overlaps = pd.DataFrame(dict(zip(_COLUMNS, (*values, columns[to] == rows[at]), strict=True)))
        return overlaps.sort_values("n_common", ascending=False, kind="stable", ignore_index=True)

    def in_words(self) -> str:
        """Describe which clusters split, merge, begin or end.

        Returns
        -------
        str
            One sentence.
        """
        before, after = self._shared
        is_noise = np.array([name == NOISE for name in self.names])
        was, became = is_noise[before], is_noise[after]
        clauses, kept = [], ~(was | became)
        if kept.any():
            before, after = before[kept], after[kept]
            names, others = ([self.names[k] for k in dict.fromkeys(one.tolist())] for one in (before, after))
            clauses = differences_in_words(canonical_labels(before), canonical_labels(after), names, others)
        if number := int(np.sum(~was & became)):
            clauses.append(f"{counted(number, 'item')} become{'s' * (number == 1)} noise")
        if number := int(np.sum(was & ~became)):
            clauses.append(f"{counted(number, 'item')} {'is' if number == 1 else 'are'} noise no longer")
        return as_sentence([*clauses, *self.come_and_gone()])

    def come_and_gone(self) -> list[str]:
        """List the clusters that only new items form or that lose all items, and count the new and missing items.

        Returns
        -------
        list of str
            One clause for each such cluster, and one for the items; empty if both partitions have the same items.
        """
        before, after = self._shared
        new = sorted(set(self.labels.values.tolist()) - set(after.tolist()))
        clauses = [f"cluster {self.names[k]} has new items only" for k in new]
        clauses += [f"cluster {name} ends: none of its items is left" for name in self.ended]
        n_new = int(np.sum(self.reference.values < 0))
        if n_new or self.n_gone:
            come, left = display.counted(n_new, "new item"), display.counted(self.n_gone, "item")
            clauses.append(f"{come} and {left} gone: only the {display.counted(before.size, 'shared item')} count")
        return clauses

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_clusters = np.unique(self.labels.values).size
        n_same = np.intersect1d(*self._shared).size
        lines = [("in words", self.in_words()), ("names that go on", f"{n_same} of {n_clusters}")]
        title = f"ClusterMatch: {display.counted_items(self.labels.size, self.labels.dims[0])} in "
        return title + display.counted(n_clusters, "cluster"), lines, self.to_dataframe()


@dataclass(frozen=True, eq=False, repr=False)
class AlignedPartitions(Stored):
    """Several partitions in which a cluster keeps its name; made by :func:`align_partitions`.

    ``aligned[name]`` is one of the partitions as a :class:`ClusterMatch`, whose reference is the partition before it.
    Every function and figure takes it as a partition.

    Attributes
    ----------
    labels : xarray.DataArray of shape (partition, n_items), dtype int32
        Cluster of each item in each partition, as a position in `names`; -1 for an item that the partition lacks.
    names : tuple
        Name of each number. Clusters of different partitions have one name if they were matched.
    """

    _figure = "alluvial.plot_alluvial"

    labels: xr.DataArray = field(
        metadata=stored_as.array(
            "aligned_labels", {"partition": "aligned_partition"}, in_words={"partition": "aligned_names"}, of_items=True
        )
    )
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("aligned_clusters"))

    @property
    def partitions(self) -> list[Any]:
        """Names of the partitions, in their order."""
        return list(stored_as.own_in(self.labels, "partition").values.tolist())

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

    def _annotations(self) -> dict[str, Annotations]:
        first = self.labels[0]
        return {
            str(name): Annotations(first, {"": as_categories(own, self.names)}, {})
            for name, own in zip(self.partitions, self.labels.values, strict=True)
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the pairs of clusters with items in common, for each partition and the one before it.

        Returns
        -------
        pandas.DataFrame
            The rows of :meth:`ClusterMatch.to_dataframe`, indexed by ``partition``. A single partition is paired with
            itself.
        """
        tables = [self[name].to_dataframe().assign(partition=name) for name in self.partitions[1:] or self.partitions]
        return pd.concat(tables).set_index("partition")

    def in_words(self) -> str:
        """Describe which clusters split, merge, begin or end from each partition to the next one.

        Returns
        -------
        str
            One line for each step.
        """
        return "\n".join(f"{step}: {words}" for step, words in self.steps_in_words())

    def steps_in_words(self) -> list[tuple[str, str]]:
        """Name of each step from one partition to the next, and its changes in words."""
        steps = itertools.pairwise(self.partitions)
        return [(f"{before} to {after}", self[after].in_words()) for before, after in steps]

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_partitions, n_items = self.labels.shape
        n_clusters = np.unique(self.labels.values[self.labels.values >= 0]).size
        title = f"AlignedPartitions: {n_partitions} of {display.counted_items(n_items, self.labels.dims[1])}"
        return (
            f"{title}, {display.counted(n_clusters, 'cluster')} in all",
            self.steps_in_words() or [("steps", "none")],
            self.to_dataframe(),
        )


def align_partitions(partitions: Any) -> AlignedPartitions:
    """Name the clusters of several partitions, so that a cluster keeps its name from one partition to the next.

    Parameters
    ----------
    partitions : dict, sequence or array (n_partitions, n_items)
        At least two partitions, each a result object, DataArray, Series or label vector of shape (n_items,). Their
        order matters: points of time, numbers of clusters, or a reference and a partition that takes its names. Names
        start with the first partition. Items are matched by their coordinate if all partitions have one. The
        partitions may then have different items, and the matching uses the common ones. Otherwise, items are matched
        by position.

    Returns
    -------
    AlignedPartitions
        The partitions, with one name for each cluster throughout.

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
    The clusters of each partition are matched one to one with the clusters of the partition before it. The matching
    maximizes the total number of items in common, which is a linear assignment problem [1]_. Ties go to the largest
    sum of Jaccard similarities. A cluster without a partner, or without common items, gets a new name. The name of a
    cluster that has ended is not used again, even for a later cluster of the same items. Items that a result calls
    noise are in one cluster, "noise", in all partitions.

    References
    ----------
    .. [1] Kuhn (1955), Naval Research Logistics Quarterly 2(1-2), 83-97. https://doi.org/10.1002/nav.3800020109

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> aligned = pc.align_partitions({"2019": [0, 0, 0, 1, 1], "2020": [0, 1, 1, 2, 2], "2021": [0, 0, 0, 1, 1]})
    >>> aligned.labels.values
    array([[0, 0, 0, 1, 1],
           [2, 0, 0, 1, 1],
           [0, 0, 0, 1, 1]], dtype=int32)
    >>> print(aligned.in_words())
    2019 to 2020: Cluster 0 splits into clusters 0 (2 items) and 2 (1 item).
    2020 to 2021: Clusters 2 and 0 are one, cluster 0 (3 items).

    A partition that takes the names of a reference:

    >>> two = pc.align_partitions({"old": ["a", "a", "b", "b", "b", "b", "b"], "new": [0, 0, 1, 1, 1, 2, 2]})
    >>> two["new"].named_labels.values.tolist()
    ['a', 'a', 'b', 'b', 'b', 'new 1', 'new 1']
    >>> print(two["new"].in_words())
    Cluster b splits into clusters b (3 items) and new 1 (2 items).
    """
    if isinstance(partitions, xr.DataArray) and partitions.ndim == 2:
        named = dict(zip(partitions[partitions.dims[0]].values.tolist(), partitions, strict=True))
    else:
        named = named_partitions(partitions, "partitions")
    if len(named) < 2:
        raise ValueError(f"`partitions` must hold at least two partitions; got {len(named)}.")
    given = {f"`partitions[{name!r}]`": partition for name, partition in named.items()}
    items, values, places = over_all_items(given)
    labels, names = np.full((len(given), items.n_items), -1, np.int32), list[Hashable]()
    is_noise = np.zeros(labels.shape, np.bool_)
    for row, (name, partition) in enumerate(given.items()):
        own, at = np.asarray(values[name]), places[name]
        marked = of_result(partition, "noise")
        if isinstance(marked, xr.DataArray) and marked.any():
            is_noise[row, at] = marked.values
            own, at = own[~marked.values], at[~marked.values]
        if not at.size:
            continue
        found = canonical_labels(own, name.strip("`"))
        if row == 0:
            numbers, names = first_numbers(partition, own)
        else:
            numbers, names = _numbers_after(found, labels[row - 1, at], names)
        labels[row, at] = numbers[found]
    if is_noise.any():
        labels[is_noise] = len(names)
        names = [*names, NOISE]
    by_partition = items.array(labels, "labels", ("partition", ...), {"partition": list(named)})
    return AlignedPartitions(by_partition, tuple(names))


def numbers_in(partition: Any, items: Items, marked: Labels | None = None) -> tuple[Labels, list[Hashable]]:
    """Number (n_items,) of each item's cluster in a partition, and the name of each number.

    Labels of the partition in which noise is `marked` by -1 give it the number -1.
    """
    values = np.asarray(items.reordered(partition))
    labels = items.as_labels(partition) if marked is None else marked
    in_clusters = labels >= 0
    numbers, names = first_numbers(partition, values[in_clusters])
    return np.append(numbers, -1)[labels].astype(np.int32), names


def numbered_as(labels: Labels, reference: Labels, names: list[Hashable]) -> tuple[Labels, list[Hashable]]:
    """Labels (n_items,) with the numbers of the matched clusters of a reference, and the name of each number.

    Clusters are matched as by :func:`align_partitions`. Clusters without a partner get the next numbers. Items with a
    label below 0 are in no cluster.
    """
    renumbered, at = np.full_like(labels, -1), np.flatnonzero(labels >= 0)
    if not at.size:
        return renumbered, names
    own = canonical_labels(labels[at])
    numbers, names = _numbers_after(own, reference[at], names)
    renumbered[at] = numbers[own]
    return renumbered, names


def first_numbers(partition: Any, values: Any) -> tuple[Integers, list[Hashable]]:
    """Numbers of a first partition's clusters, in order of first appearance, and the name of each number."""
    own, numbers = cluster_names(partition, values), cluster_numbers(partition, values)
    listed = list(of_result(partition, "names") or own)
    if of_result(partition, "noise") is not None:
        listed += [NOISE] * max(0, int(numbers.max(initial=-1)) + 1 - len(listed))
    known = [*own, *listed]
    if known == numbers_of(known).tolist():
        return numbers, list(range(max(known, default=-1) + 1))
    return numbers, listed


def _numbers_after(
    own: Labels, before: npt.NDArray[np.int32], names: list[Hashable]
) -> tuple[Integers, list[Hashable]]:
    """Numbers of a partition's clusters, given the number of each item before, and all names with the new ones.

    A new item has the number -1. It is the first column of the table, which is left out of the matching.
    """
    numbers, column = np.unique(np.append(-1, before), return_inverse=True)
    table = contingency_table(own, column[1:].astype(np.int32))
    table = np.pad(table, ((0, 0), (0, numbers.size - table.shape[1])))
    table[:, 0] = 0
    return continued(partners(table), numbers, names)


def continued(
    partner: npt.NDArray[np.integer], numbers: npt.NDArray[np.integer], names: list[Hashable]
) -> tuple[Integers, list[Hashable]]:
    """Numbers (R,) of clusters, given the position (R,) of each one's partner in `numbers`, -1 for none; all names."""
    continuing = np.where(partner >= 0, numbers[partner], -1).astype(np.int64)
    new = np.flatnonzero(continuing < 0)
    continuing[new] = len(names) + np.arange(new.size)
    if names == list(range(len(names))):
        return continuing, [*names, *continuing[new].tolist()]
    free = (name for name in map("new {}".format, itertools.count(1)) if name not in names)
    return continuing, [*names, *itertools.islice(free, new.size)]


def over_all_items(given: Mapping[str, Any]) -> tuple[Items, dict[str, Any], dict[str, Positions]]:
    """All items of several partitions, the labels of each partition, and the positions of its items among all."""
    arrays = [values for values in (of_result(one, "labels", one) for one in given.values()) if _is_vector(values)]
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
    items = items_named_in(list(values.values())) or Items(n_items, dim, xr.Coordinates())
    places = {
        name: items.order_of(Items.along(one, str(one.dims[0])), name.strip("`"))
        if _is_vector(one)
        else np.arange(n_items)
        for name, one in values.items()
    }
    return items, values, places


def _is_vector(values: Any) -> bool:
    return isinstance(values, xr.DataArray) and values.ndim == 1


def as_sentence(clauses: list[str]) -> str:
    """Join clauses to a sentence; no clause means that the partitions are the same."""
    words = "; ".join(clauses) or "the partitions are the same"
    return f"{words[0].upper()}{words[1:]}."


def differences_in_words(
    reference: Labels, partition: Labels, names: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> list[str]:
    """Clauses on how a partition (n,) differs from a reference (n,), the largest change first; none if they are equal.

    Clusters of the reference have `names`, and those of the partition `others`, or else are described by their sizes.
    Two clusters overlap if they share at least a quarter of the smaller one. Each connected component of the graph of
    overlapping clusters is one change: a cluster splits, clusters merge, or items move between clusters. Items that
    move are outside the one-to-one matching with the most common items. The last clause counts the items outside these
    overlaps.
    """
    return differences_of_table(contingency_table(reference, partition), names, others)


def differences_of_table(
    table: npt.NDArray[Any], names: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> list[str]:
    """Describe differences, given the table of common items, which may be expected numbers: below 1/2 counts as 0."""
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
    clauses = [text for _, text in sorted(changes, key=lambda change: -change[0])]
    moved = float(table[~overlap].sum())
    return [*clauses, f"{_items_in_words(moved)} change{'s' * (moved == 1)} clusters"] if moved >= 0.5 else clauses


def _items_in_words(number: float) -> str:
    return counted(int(number), "item") if number == int(number) else f"{number:.3g} items"


def _change(names: Sequence[Hashable], part: npt.NDArray[Any], others: Sequence[Hashable] | None) -> str:
    """Describe the change of the named clusters, the rows of a table of common items."""
    sizes = part.sum(axis=0)
    order = np.argsort(-sizes, kind="stable").tolist()
    words = [str(sizes[k]) if others is None else f"{others[k]} ({_items_in_words(sizes[k])})" for k in order]
    if len(order) > _MOST_LISTED:
        parts = f"{len(order)} clusters, the largest of {_items_in_words(sizes[order[0]])}"
    else:
        parts = f"clusters {'of ' if others is None else ''}{_some_of(words)}"
    if len(names) == 1:
        return f"cluster {names[0]} splits into {parts}"
    if len(order) == 1:
        return f"clusters {_some_of(names)} are one{'' if others is None else f', cluster {words[0]}'}"
    moved = float(part.sum() - part[assignment(part, maximize=True)].sum())
    return f"{_items_in_words(moved)} move{'s' * (moved == 1)} between clusters {_some_of(names)}, which become {parts}"


def _some_of(values: Sequence[Hashable]) -> str:
    words = [str(value) for value in values[:_MOST_LISTED]]
    if len(values) > _MOST_LISTED:
        words.append(f"{len(values) - _MOST_LISTED} more")
    return joined(words)
