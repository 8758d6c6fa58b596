"""The interface of a search's forms, one for each kind of loss and data."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels, canonical_rows, smallest_dtype
from posterior_consensus.runtime import memory


class Found(NamedTuple):
    """A partition at which a search ended."""

    labels: Labels
    value: float  # expected loss, but for its scale
    in_one: float  # the same of the partition of one cluster
    tally: npt.NDArray[np.int64]  # scans, moves, merges, chains, zealous updates, splits

    def then(self, later: Found) -> Found:
        """The result of a search continued from here, with the work of both."""
        return later._replace(tally=self.tally + later.tally)


class Limits(NamedTuple):
    """Least and largest number of clusters."""

    fewest: int
    most: int


SMALL = 40  # draws on which a run begins, and on which the best partition is rearranged


class Uniforms(NamedTuple):
    """Random numbers of a run, uniform from 0 to 1."""

    sample: npt.NDArray[np.float64]  # quantiles (SMALL,) of a small sample of the draws
    middle: float  # position of a larger sample's quantiles between their bounds
    start: float  # quantile of the draw to start from


class Form(Protocol):
    """What is searched, and how much memory a cluster takes there."""

    limits: Limits  # those requested, or fewer clusters where memory ends
    is_capped: bool = False  # whether the memory budget leaves out numbers of clusters at which the loss may be lower
    bytes_a_cluster: int  # what the tables take for each cluster


class FormOfRuns(Form, Protocol):
    """A form in which random runs begin, which changes of the best follow."""

    at_once: int = 3  # runs between two looks at whether to stop: no answer may depend on the number of threads
    explores_all: bool = False  # whether each search also dissolves and splits clusters, and explores on all draws
    is_sum: bool = False  # whether a restart of a large partition changes several places, as their effects add up
    is_nonlinear: bool = False  # whether runs in vain end the runs: of many local optima, few runs reach the same

    def cuts(self) -> list[Labels]:
        """Partitions that a tree of the items leads to; none where other starts are as good."""
        return []

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""

    def explore(self, order: npt.NDArray[Any], random: Uniforms, from_draw: bool) -> Found:
        """Search from an allocation of the items in this order, or from a draw, perhaps without using all draws."""

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Found:
        """Dissolve and split clusters of a partition, the items in this order."""

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order; `elite` is known."""

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as in the budget, in comparisons of a label with a cluster: about one scan."""

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """Items that item i is often with, the fewer the larger this number from 0 to 1 or at random by it."""


def check_memory(form: Form, n_clusters: int, limits: Limits, drawn: int) -> None:
    """Raise MemoryError if the tables of this many clusters exceed the budget; it names one that is enough."""
    if not memory.fits(form.bytes_a_cluster * n_clusters):
        enough = max(n_clusters, min(limits.most, drawn + 1))
        what = f"A search among {enough} clusters"
        memory.check(form.bytes_a_cluster * enough, what, "Thin the draws, or ask for fewer clusters.")


def numbered(partition: Labels) -> Labels:
    """Number the clusters by first appearance, without the checks that a user's labels need."""
    codes = partition[np.newaxis].astype(smallest_dtype(partition.size))
    return canonical_rows(codes, partition.size)[0][0].astype(np.int32)
