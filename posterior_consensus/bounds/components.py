"""Lower bounds of problems of Binder's loss, for each of their components by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Bound, Budget
from posterior_consensus.bounds.stars import best_labels
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.problems.components import Decomposition, first_members
from posterior_consensus.results.display import counted
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.progress import counting

_SHARE = 0.05  # of the budget that is left, which any component may spend
_NAMED = 5  # components that are named in words


@dataclass(frozen=True, kw_only=True)
class ComponentsInfo(Info):
    """Record of a search, or of a bound, for each connected component of the pairs of records by itself.

    Attributes
    ----------
    n_components : int
        Number of components of two records or more.
    largest : int
        Number of records of the largest.
    n_enumerated : int
        Number of components whose partitions were all compared.
    n_proven : int
        Number of components whose partition is proven to be optimal.
    unproven_sizes : list of int
        Number of records of each other component, the largest first.
    unproven_gaps : list of float
        By how much its part of the expected loss may exceed the minimum at most, in expected pairs.
    unproven_records : list of int
        Position of a record of each of these components.
    stopped : str
        What ended the search before its steps did: "seconds", "interrupted" for Ctrl-C, or nothing.
    constrained : bool
        Whether only partitions that keep constraints were compared.
    """

    n_components: int
    largest: int
    n_enumerated: int
    n_proven: int
    unproven_sizes: list[int] = field(default_factory=list)
    unproven_gaps: list[float] = field(default_factory=list)
    unproven_records: list[int] = field(default_factory=list)
    stopped: str = ""
    constrained: bool = False

    @property
    def among(self) -> str:
        """Of which partitions a proof speaks, in words that follow it; empty for all."""
        return ", among the partitions that keep the constraints" if self.constrained else ""

    def in_words(self) -> str:
        """Say how many components are proven to be optimal, and which are not.

        Returns
        -------
        str
            A part of a sentence.
        """
        if not self.n_components:
            return "no two items are linked"
        known = f"{counted(self.n_components, 'component')}, the largest of {counted(self.largest, 'item')}"
        if not self.unproven_sizes:
            return f"{known}; {'it is' if self.n_components == 1 else 'all are'} proven optimal{self.among}"
        named = ", ".join(f"{size:,}" for size in self.unproven_sizes[:_NAMED])
        more = ", ..." if len(self.unproven_sizes) > _NAMED else ""
        proven, left = self.n_proven, len(self.unproven_sizes)
        return (
            f"{known}; {proven:,} {'is' if proven == 1 else 'are'} proven optimal, "
            f"{left:,} of {named}{more} {'is' if left == 1 else 'are'} not{self.among}"
        )


def among_of(info: Info | None) -> str:
    """Of which partitions a proof speaks, by the record of its work; empty for all."""
    return info.among if isinstance(info, ComponentsInfo) else ""


def info_of(parts: Decomposition, gaps: Floats, stopped: str = "") -> ComponentsInfo:
    """The record of the work, from the gap of each of the large components."""
    sizes = np.bincount(parts.component_of[parts.groups])
    of_large = np.add.reduceat(parts.pairs.sizes, parts.starts[:-1])[parts.large] if len(parts) else parts.large
    open_ones = np.flatnonzero(gaps > 0)[::-1]
    several = int(np.count_nonzero(sizes > 1))
    of_open = parts.members[parts.starts[parts.large[open_ones]]]
    return ComponentsInfo(
        n_components=several,
        largest=int(sizes.max()),
        n_enumerated=several - parts.large.size,
        n_proven=several - open_ones.size,
        unproven_sizes=of_large[open_ones].tolist(),
        unproven_gaps=gaps[open_ones].tolist(),
        unproven_records=np.unique(parts.groups, return_index=True)[1][of_open].tolist(),
        stopped=stopped,
        constrained=parts.constrained,
    )


def bound_components(
    parts: Decomposition,
    clusters: npt.NDArray[np.int32],
    gaps: Floats,
    budget: Budget,
    numbers: Positions,
    *,
    progressbar: bool = False,
) -> None:
    """Bound large components, the smallest first, which leave to later ones what they do not spend.

    `clusters` (n_members,): first member of each member's cluster; better partitions are written to it. `gaps`
    (n_large,): written: by how much a partition of each component may be better at most, in weights; 0 if none is.
    `numbers`: which of the large components.
    """
    total = groups_left = int(parts.n_groups[parts.large[numbers]].sum())
    with counting("Bounds", total, progressbar=progressbar) as advance_to:
        for number, (component, own) in zip(numbers.tolist(), parts.of(numbers), strict=True):
            n_groups = component.n_groups
            share = budget.part(max(n_groups / groups_left, _SHARE))
            advance = partial(_advance, advance_to, total - groups_left, n_groups, share, share.left)
            known = canonical_labels(clusters[own])
            labels, gaps[number] = best_labels(component, known, share, parts.step, advance)
            clusters[own] = own.start + first_members(labels)
            budget.note(-share.left)
            groups_left -= n_groups
            advance_to(total - groups_left)


def _advance(advance_to: Callable[[int], None], done: int, n_groups: int, share: Budget, seconds: float) -> None:
    """Show groups of a component as done, in proportion to what it has spent of its share of so many seconds."""
    advance_to(done + int(n_groups * (1.0 - share.left / seconds)) if seconds else done)


def components_bound(parts: Decomposition, incumbent: Labels, *, budget: Budget, progressbar: bool = False) -> Bound:
    """Bound the minimum expected loss for Binder's loss with any costs, component by component.

    The arguments are those of :func:`binder_bound`, and the components of the problem.
    """
    clusters, gaps = parts.solved(), np.zeros(parts.large.size)
    given = parts.part_of(incumbent)
    for _, own in parts.of():
        clusters[own] = own.start + first_members(given[own])
    bound_components(parts, clusters, gaps, budget, np.arange(gaps.size), progressbar=progressbar)
    labels = canonical_labels(parts.whole(clusters))
    method = "enumeration of small components" + (", star inequalities of others" if gaps.size else "")
    return Bound(parts.value(labels) - parts.unit * float(gaps.sum()), method, labels, info_of(parts, gaps))
