"""Constraints, the checked input of all methods for experts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array

from posterior_consensus.ensemble.items import Items
from posterior_consensus.experts.inference import Statements
from posterior_consensus.results import display

Positions = npt.NDArray[np.intp]


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
    must: npt.NDArray[np.bool_]

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

        def counted(which: npt.NDArray[np.bool_]) -> csr_array:
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

    def average_vote(self) -> tuple[Positions, npt.NDArray[np.float64]]:
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
        facts = [
            ("items", f"{self.items.n_items:,} ({self.items.dim}), {named:,} of them constrained"),
            ("pairs", f"{len(self.statements.pairs):,}"),
            ("contradictory", f"{display.counted(both, 'pair')} with both kinds by one expert" if both else "none"),
        ]
        return title, facts, counts.to_dataframe()


def names_coordinate(names: tuple[Hashable, ...]) -> list[Hashable]:
    """Names as a coordinate, converted to text if they have several types."""
    kinds = {type(name) for name in names}
    return list(names) if len(kinds) == 1 and kinds <= {str, int, float, bool} else [str(name) for name in names]
