"""Checked input of all methods for experts: constraints from tables, arrays or partitions, and features of items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items, coords_of, labelled, name_or, positions
from posterior_consensus.ensemble.partitions import is_partition
from posterior_consensus.experts.inference import Statements
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, as_numbers, check_count, is_integer
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_draws

_COLUMNS = ("expert", "i", "j", "kind")
_KINDS: dict[Any, bool] = {"must": True, "cannot": False, True: True, False: False}  # 1 and 0 are equal to the latter


@dataclass(frozen=True, eq=False, repr=False)
class Constraints(display.Shown):
    """Must-link and cannot-link constraints of experts; made by :func:`as_constraints`.

    ``one + other`` has the constraints of both over the same items; equal names are one expert.

    Attributes
    ----------
    items : Items
        The items, including items without constraints.
    experts : tuple
        Names of the experts, in order of appearance.
    expert : ndarray of shape (n_statements,)
        Position of the expert of each constraint.
    i, j : ndarray of shape (n_statements,)
        Positions of the two items, the smaller first.
    must : ndarray of shape (n_statements,), dtype bool
        True for a must-link, False for a cannot-link.
    """

    _no_figure = "the figure of expert_views() shows its experts"

    items: Items
    experts: tuple[Hashable, ...]
    expert: Positions
    i: Positions
    j: Positions
    must: Flags

    @property
    def n_statements(self) -> int:
        """Number of constraints of all experts."""
        return self.expert.size

    @property
    def n_experts(self) -> int:
        """Number of experts."""
        return len(self.experts)

    def __len__(self) -> int:
        return self.n_statements

    @cached_property
    def statements(self) -> Statements:
        """Distinct constraints with their counts."""
        n = self.items.n_items
        keys, pair = np.unique(self.i * n + self.j, return_inverse=True)

        def counted(which: Flags) -> csr_array:
            entries = np.ones(int(which.sum())), (self.expert[which], pair.ravel()[which])
            return csr_array(entries, shape=(self.n_experts, keys.size))

        return Statements(np.column_stack(np.divmod(keys, n)), counted(self.must), counted(~self.must), n)

    def counts(self) -> xr.Dataset:
        """Count the constraints of each expert.

        Returns
        -------
        xarray.Dataset
            Over ``expert``: the numbers of ``must`` and ``cannot`` links, and of ``contradictory`` pairs with both.
        """
        must, cannot = self.statements.must, self.statements.cannot
        numbers = {
            "must": must.sum(axis=1),
            "cannot": cannot.sum(axis=1),
            "contradictory": (must.astype(bool) * cannot.astype(bool)).sum(axis=1),
        }
        return xr.Dataset(
            {name: ("expert", np.asarray(value).astype(np.int64)) for name, value in numbers.items()},
            {"expert": names_coordinate(self.experts)},
        )

    def average_vote(self) -> tuple[Positions, Floats]:
        """Compute the share of must-links of each constrained pair.

        Returns
        -------
        pairs : ndarray of shape (P, 2)
            Positions of the items of each pair.
        votes : ndarray of shape (P,)
            Share of the pair's constraints that are must-links.
        """
        must = np.asarray(self.statements.must.sum(axis=0), np.float64)
        return self.statements.pairs, must / (must + np.asarray(self.statements.cannot.sum(axis=0)))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the constraints.

        Returns
        -------
        pandas.DataFrame
            A row for each constraint: expert, the items i and j by name or else by position, and kind.
        """
        named = self.items.coords[self.items.dim].values if self.items.dim in self.items.coords else None
        first, second = (self.i, self.j) if named is None else (named[self.i], named[self.j])
        experts = np.empty(self.n_experts, object)
        experts[:] = self.experts
        kind = np.where(self.must, "must", "cannot")
        return pd.DataFrame({"expert": experts[self.expert], "i": first, "j": second, "kind": kind})

    def over(self, items: Items) -> Constraints:
        """Transfer the constraints to another set of items that contains all constrained ones.

        If the other items are equally many and have no names, the present names are kept.

        Parameters
        ----------
        items : Items
            The other items.

        Returns
        -------
        Constraints
            The same constraints over `items`.

        Raises
        ------
        ValueError
            If a constrained item is missing.
        """
        mine, theirs = (
            one.coords[one.dim].to_index() if one.dim in one.coords else None for one in (self.items, items)
        )
        if mine is None or theirs is None:
            last = int(self.j.max(initial=-1))
            if last >= items.n_items:
                raise ValueError(
                    f"`features` must have a row for each item; item {last} has constraints, the rows are "
                    f"{items.n_items}."
                )
            own = mine is not None and items.n_items == self.items.n_items
            return Constraints(self.items if own else items, self.experts, self.expert, self.i, self.j, self.must)
        at = np.arange(len(mine)) if mine.equals(theirs) else theirs.get_indexer(mine)
        used = np.unique(np.concatenate([self.i, self.j]))
        lost = mine[used[at[used] < 0]]
        if len(lost):
            raise ValueError(f"`features` must have a row for each item with constraints; none for {lost[0]!r}.")
        i, j = at[self.i], at[self.j]
        return Constraints(items, self.experts, self.expert, np.minimum(i, j), np.maximum(i, j), self.must)

    def __add__(self, other: Constraints) -> Constraints:
        if not isinstance(other, Constraints):
            return NotImplemented
        if other.items.n_items != self.items.n_items:
            raise ValueError(
                f"Both must have the same items; got {self.items.n_items} and {other.items.n_items} items."
            )
        same = other.over(self.items)
        experts = tuple(dict.fromkeys((*self.experts, *other.experts)))
        at = np.array([experts.index(name) for name in other.experts], np.intp)
        joined = [
            np.concatenate(pair)
            for pair in zip(
                (self.expert, self.i, self.j, self.must), (at[same.expert], same.i, same.j, same.must), strict=True
            )
        ]
        return Constraints(self.items, experts, *joined)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        counts = self.counts()
        title = f"Constraints: {display.counted(self.n_statements, 'constraint')} of "
        title += display.counted(self.n_experts, "expert")
        named = np.unique(np.concatenate([self.i, self.j])).size
        both = int(counts["contradictory"].sum())
        lines = [
            ("items", f"{self.items.n_items:,} ({self.items.dim}), {named:,} of them constrained"),
            ("pairs", f"{len(self.statements.pairs):,}"),
            ("contradictory", f"{display.counted(both, 'pair')} with both kinds by one expert" if both else "none"),
        ]
        return title, lines, counts.to_dataframe()


def names_coordinate(names: tuple[Hashable, ...]) -> list[Hashable]:
    """Names as a coordinate, converted to text if they have several types."""
    kinds = {type(name) for name in names}
    return list(names) if len(kinds) == 1 and kinds <= {str, int, float, bool} else [str(name) for name in names]


def as_constraints(
    data: Any,
    items: Any = None,
    *,
    n_pairs: int = 1000,
    random_seed: RandomSeed = None,
) -> Constraints:
    """Convert a table, partitions or posterior draws to must-link and cannot-link constraints of several experts.

    Parameters
    ----------
    data : DataFrame, dict, Constraints, PartitionDraws or any posterior that :func:`summarize` takes
        A table with a row for each constraint and the columns ``expert``, ``i``, ``j`` and ``kind``, "must" or "cannot"
        (or true and false); or a dict of arrays with these names. Any other dict has partitions or posterior draws by
        the names of the experts. In draws alone, each chain is an expert. Constraints are returned unchanged.
    items : int, array_like, Items, DataFrame or DataArray, optional
        The items: their number, their names, or features with a row for each. By default the items of `data`. In a
        table these are the named items or, if ``i`` and ``j`` are integers, all positions up to the largest.
    n_pairs : int
        Number of pairs sampled from each partition or chain; all if there are fewer.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It seeds the sampled pairs and draws.

    Returns
    -------
    Constraints
        The constraints of all experts.

    Raises
    ------
    ValueError
        If an item does not exist, a constraint has one item twice, a kind is neither of the two, there is no
        constraint, or partitions have different items.
    TypeError
        If `data` has another type.

    See Also
    --------
    expert_views : which experts share a view, how reliable each is, and the clusters of each view.

    Notes
    -----
    Contradictory constraints are kept and counted, because they show how reliable an expert is.

    For a partition, pairs are sampled uniformly without replacement, separately for each expert. For a chain, each pair
    uses one of its draws, sampled by weight. The sensitivity of a chain to a partition is then the probability that a
    draw co-clusters a pair that the partition co-clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> table = pd.DataFrame(
    ...     [("Ann", "fern", "moss", "must"), ("Ann", "fern", "oak", "cannot"), ("Bo", "oak", "fern", "must")],
    ...     columns=["expert", "i", "j", "kind"],
    ... )
    >>> pc.experts.as_constraints(table)
    Constraints: 3 constraints of 2 experts
      items          3 (item), 3 of them constrained
      pairs          2
      contradictory  none
    <BLANKLINE>
           must  cannot  contradictory
      Ann     1       1              0
      Bo      1       0              0
    >>> chains = [[[0, 0, 1, 1]], [[0, 1, 0, 1]]]
    >>> pc.experts.as_constraints(chains, n_pairs=3, random_seed=1).to_dataframe()
      expert  i  j    kind
    0      0  0  1    must
    1      0  0  3  cannot
    2      0  1  3  cannot
    3      1  0  1  cannot
    4      1  1  2  cannot
    5      1  0  3  cannot
    """
    check_count("n_pairs", n_pairs)
    rng = as_generator(random_seed)
    given = None if items is None else as_items(items, "items")
    if isinstance(data, Constraints):
        return data if given is None else data.over(given)
    if isinstance(data, (pd.DataFrame, dict)) and set(_COLUMNS) <= set(data):
        return _from_table({name: data[name] for name in _COLUMNS}, given)
    if isinstance(data, (pd.DataFrame, dict)) and {"i", "j"} <= set(data) and {"expert", "kind"} & set(data):
        lost = next(name for name in ("expert", "kind") if name not in data)
        raise ValueError(f"`data` must have columns 'expert', 'i', 'j' and 'kind'; there is no {lost!r}.")
    if isinstance(data, dict):
        sources = [(name, as_draws(_as_one_draw(one, given))) for name, one in data.items()]
    else:
        chains = as_draws(data).in_fixed_order().by_chain()
        sources = [(name.item() if hasattr(name, "item") else name, draws) for name, draws in chains]
    if not sources:
        raise ValueError("`data` must hold at least one expert; got none.")
    return _sampled(sources, given, n_pairs, rng)


def as_items(data: Any, name: str) -> Items:
    """Items from their number, their names, or an array or table with a row for each."""
    if isinstance(data, Items):
        return data
    if is_integer(data):
        return Items(check_count(name, data), "item", xr.Coordinates())
    if isinstance(data, xr.DataArray):
        return Items.along(data, str(data.dims[0]))
    names = data.index if isinstance(data, (pd.DataFrame, pd.Series)) else np.asarray(data)
    if not names.ndim:
        raise TypeError(f"`{name}` must be an integer, names, or a table with a row for each; got {data!r}.")
    if names.ndim != 1 or isinstance(names, pd.RangeIndex):
        return Items(check_count(name, len(names)), "item", xr.Coordinates())
    index = names if isinstance(names, pd.MultiIndex) else pd.Index(names)
    if index.empty or pd.isna(index.to_numpy()).any() or not index.is_unique:
        raise ValueError(f"`{name}` must name at least one item, and each item once.")
    dim = name_or(index.name, "item")
    return Items(len(index), dim, coords_of(index, dim))


def _from_table(columns: Mapping[str, Any], items: Items | None) -> Constraints:
    """Constraints from four columns."""
    expert, first, second, kind = (pd.Series(np.asarray(columns[name]).ravel()) for name in _COLUMNS)
    if len({expert.size, first.size, second.size, kind.size}) > 1:
        sizes = ", ".join(f"{name} {np.size(columns[name])}" for name in _COLUMNS)
        raise ValueError(f"`data` must have columns of one length; got {sizes}.")
    if not expert.size:
        raise ValueError("`data` must have at least one constraint; got none.")
    for name, column in zip(_COLUMNS, (expert, first, second, kind), strict=True):
        if column.isna().any():
            raise ValueError(f"`data` must have no missing values; column {name!r} has {int(column.isna().sum())}.")
    unknown = [value for value in kind.unique() if value not in _KINDS]
    if unknown:
        raise ValueError(f"Column 'kind' of `data` must be 'must' or 'cannot'; got {unknown[0]!r}.")
    if items is None:
        items = _named_in(first, second)
    i, j = _positions_of_names(first, items), _positions_of_names(second, items)
    alone = np.flatnonzero(i == j)
    if alone.size:
        raise ValueError(f"`data` must relate two items; row {alone[0]} has {first[alone[0]]!r} twice.")
    who, names = pd.factorize(expert)
    must = kind.map(_KINDS).to_numpy(bool)
    return Constraints(items, tuple(names.tolist()), who, np.minimum(i, j), np.maximum(i, j), must)


def _named_in(first: pd.Series, second: pd.Series) -> Items:
    """Items of a table: all positions up to the largest integer, or the sorted names."""
    both = pd.concat([first, second])
    if pd.api.types.is_integer_dtype(both):
        return Items(int(both.max()) + 1, "item", xr.Coordinates())
    return as_items(np.unique(both.to_numpy(str)) if both.map(type).eq(str).all() else both.unique(), "data")


def _positions_of_names(named: pd.Series, items: Items) -> Positions:
    """Positions of the items in a column, which has names or, if items have no integer names, positions."""
    whole = pd.api.types.is_integer_dtype(named)
    if items.dim in items.coords:
        index = items.coords[items.dim].to_index()
        if not whole or pd.api.types.is_integer_dtype(index):
            at = index.get_indexer(pd.Index(named))
            if np.any(at < 0):
                missing = named[int(np.argmax(at < 0))]
                raise ValueError(
                    f"`data` must name items that exist; there is no {missing!r} among {len(index)} items."
                )
            return at
    if not whole:
        raise ValueError(f"`data` must name items by position, since they have no names; got {named[0]!r}.")
    at = named.to_numpy(np.intp)
    wrong = at[(at < 0) | (at >= items.n_items)]
    if wrong.size:
        raise ValueError(f"`data` must name items that exist, 0 to {items.n_items - 1}; got {wrong[0]}.")
    return at


def _sampled(
    sources: list[tuple[Any, PartitionDraws]], items: Items | None, n_pairs: int, rng: np.random.Generator
) -> Constraints:
    """Constraints from random pairs of partitions and draws."""
    parts = []
    for (name, draws), own in zip(sources, rng.spawn(len(sources)), strict=True):
        order = np.arange(draws.n_items)
        if items is None:
            items = draws.items
        elif items.dim in items.coords and draws.items.dim in draws.items.coords:
            matched = positions(*(one.coords[one.dim].to_index() for one in (items, draws.items)))
            if matched is None:
                raise ValueError(f"`data` must have the same items; the items of {name!r} have other names.")
            order = matched
        if draws.n_items != items.n_items:
            raise ValueError(f"`data` must have the same items; {name!r} has {draws.n_items} of {items.n_items} items.")
        if items.dim not in items.coords and draws.items.dim in draws.items.coords:
            items = draws.items
        i, j = _sampled_pairs(items.n_items, n_pairs, own)
        row = own.choice(draws.n_draws, i.size, p=draws.weights)
        must = draws.labels[row, order[i]] == draws.labels[row, order[j]]
        parts.append((i, j, must))
    assert items is not None
    if not parts[0][0].size:
        raise ValueError("`data` must have at least two items, because one item has no pair.")
    expert = np.repeat(np.arange(len(parts)), [part[0].size for part in parts])
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Constraints(items, tuple(name for name, _ in sources), expert, *columns)


def _as_one_draw(source: Any, items: Items | None) -> Any:
    """Convert a partition to a single draw; return posterior draws unchanged."""
    values = labelled(source, "item" if items is None else items.dim) if is_partition(source) else source
    if np.ndim(values) != 1:
        return source
    return values.expand_dims(("chain", "draw")) if isinstance(values, xr.DataArray) else np.asarray(values)[np.newaxis]


def _sampled_pairs(n_items: int, number: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Sample different pairs, the smaller position first; all pairs if there are at most `number`."""
    total = n_items * (n_items - 1) // 2
    keys: Positions = np.sort(rng.choice(total, min(number, total), replace=False, shuffle=False))
    larger = np.arange(n_items)
    first = larger * (larger - 1) // 2  # key of the pair of item 0 and the larger item
    j = np.searchsorted(first, keys, side="right") - 1
    return keys - first[j], j


@dataclass(frozen=True, eq=False)
class Features:
    """Features of items."""

    items: Items
    names: tuple[Any, ...]  # names of the features, or their positions
    values: Floats  # (n, D): the features

    def standardized(self) -> tuple[Floats, Floats, Floats]:
        """Features with mean 0 and standard deviation 1, with their centre and scale; constant features become 0."""
        centre, scale = self.values.mean(axis=0), self.values.std(axis=0)
        scale = np.where(scale > ROUNDING * np.maximum(1.0, np.abs(centre)), scale, 1.0)
        return (self.values - centre) / scale, centre, scale


def as_features(data: Any) -> Features:
    """Convert an array, a DataFrame with a row for each item, or a DataArray with items first to features.

    Raises ValueError if the features are not a table, or some are missing or infinite.
    """
    values = as_numbers("features", data)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or not values.size:
        raise ValueError(f"`features` must be a table of items x features; got shape {values.shape}.")
    if not np.isfinite(values).all():
        wrong = int((~np.isfinite(values)).sum())
        raise ValueError(f"`features` must be finite; got {wrong} missing or infinite values.")
    names: Any = range(values.shape[1])
    if isinstance(data, pd.DataFrame):
        names = data.columns.tolist()
    elif isinstance(data, xr.DataArray) and data.ndim == 2 and data.dims[1] in data.coords:
        names = data.coords[data.dims[1]].values.tolist()
    named = hasattr(data, "dims") or hasattr(data, "index")
    return Features(as_items(data if named else len(values), "features"), tuple(names), values)


def average_votes(constraints: Any, features: Any, n_clusters: int) -> tuple[Items, Floats, Positions, Floats]:
    """Items, their standardized features (n, D), the constrained pairs (P, 2), and their shares of must-links."""
    given = as_features(features)
    if check_count("n_clusters", n_clusters) > given.items.n_items:
        raise ValueError(f"`n_clusters` must be at most the number of items, {given.items.n_items}; got {n_clusters}.")
    checked = as_constraints(constraints, given.items)
    return checked.items, given.standardized()[0], *checked.average_vote()
