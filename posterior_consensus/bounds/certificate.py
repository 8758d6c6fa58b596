"""The certificate of a partition: how far from the minimum expected loss it can be, by the bounds of BOUNDS."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.bounds.binder import BYTES_A_PAIR, binder_bound
from posterior_consensus.bounds.bound import (
    Bound,
    Budget,
    Deadline,
    WorkBudget,
    checked,
    gap_in_words,
    relative_gap,
    status,
)
from posterior_consensus.bounds.components import ComponentsInfo, among_of, components_bound
from posterior_consensus.bounds.matching import matching_bound
from posterior_consensus.bounds.sdp import sum_of_squares_bound
from posterior_consensus.bounds.vi_sets import VISetsInfo, sets_bound, sets_fit
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.expectation import judged_labels, loss_on, mean_loss
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.lookup import as_loss, factories
from posterior_consensus.losses.partition_losses import vi, within_variance
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.problems.components import components_of
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_seconds, listing
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_source, partition_of

_BYTES_WITH_TRIANGLES = 160  # of a pair of items, with room for the triangles: 5,000 items in 4 GB
_SECONDS_A_PAIR = 2e-9  # a low estimate for one run of a search
_SETS_SHARE = 0.9  # of the time under VI; matching is tried only where this is not close
_CLOSE = 0.95  # of the expected loss
_SECONDS_TO_CERTIFY = 60.0  # estimated time of the work
_QUICK_SECONDS, _QUICK_SECONDS_OF_VI = 0.3, 0.5  # the same, beside other results


class BoundedLosses(NamedTuple):
    """Losses with one bounding method: ``bound(draws, loss, incumbent, *, budget, progressbar) -> Bound``."""

    contains: Callable[[Loss], bool]
    bound: Callable[..., Bound]
    losses: str


def _vi_lower_bound(
    draws: PartitionDraws, loss: PartitionLoss, incumbent: Labels, *, budget: Budget, progressbar: bool
) -> Bound:
    """Return the bound by set partitioning; the one for any metric, if it is higher, where that is not close."""
    bounds, left_out = [], too_many_pairs(draws.n_items)
    if not left_out and sets_fit(draws, budget.left):
        part = budget.part(_SETS_SHARE)
        by_sets = sets_bound(draws, incumbent, budget=part, progressbar=progressbar)
        expected = mean_loss(draws, np.asarray(incumbent, np.int32)[np.newaxis], vi())[0]
        interrupted = isinstance(by_sets.info, VISetsInfo) and by_sets.info.stopped
        if interrupted or by_sets.value > _CLOSE * expected:
            return by_sets
        bounds.append(by_sets)
    by_matching = matching_bound(draws, loss, incumbent, budget=budget, progressbar=progressbar)
    bounds.append(replace(by_matching, left_out=left_out))
    return max(bounds, key=lambda bound: bound.value)


def too_many_pairs(n_items: int) -> str:
    """Say that a bound computed from pairs of items is left out, where the memory budget does not hold its matrices."""
    size = BYTES_A_PAIR * n_items**2
    if memory.fits(size):
        return ""
    return (
        "No bound of the minimum expected loss was computed, because its matrices over pairs of items would need "
        f"{memory.in_words(size)} of memory."
    )


def _binder_bound(
    source: PairSource, loss: PartitionLoss, incumbent: Labels, *, budget: Budget, progressbar: bool
) -> Bound:
    """Bound each component by itself, of scored pairs and of draws of many small clusters; else the whole."""
    source.check_keeps(incumbent)
    parts = components_of(Problem(source, loss))
    if parts is not None:
        return components_bound(parts, incumbent, budget=budget, progressbar=progressbar)
    return binder_bound(source, loss, incumbent, budget=budget, progressbar=progressbar)


_METRICS = [name for name, make in factories().items() if make().metric and name not in ("binder", "vi")]
BOUNDS: dict[str, BoundedLosses] = {
    "binder": BoundedLosses(lambda loss: loss.as_binder() is not None, _binder_bound, "'binder' with any costs"),
    "vi": BoundedLosses(lambda loss: loss == vi(), _vi_lower_bound, "'vi'"),
    "within_variance": BoundedLosses(lambda loss: loss == within_variance(), sum_of_squares_bound, "'within_variance'"),
    "metrics": BoundedLosses(
        lambda loss: loss.metric,
        matching_bound,
        f"losses that are metrics ({listing(_METRICS)})",
    ),
}
"""Families of losses by name, the best method first."""


def family_of(loss: Loss) -> BoundedLosses | None:
    """Return the family of a loss, recognized by its data and not by its name."""
    return next((family for family in BOUNDS.values() if family.contains(loss)), None)


def quick_bound(draws: PairSource, loss: Loss, incumbent: Labels, n_starts: int) -> float | None:
    """Lower bound of a Binder loss for no more than the work of `n_starts` runs of a search; reproducible.

    None for other losses, and for more items than the memory budget allows: 5,000 by default.
    """
    record = loss.as_binder()
    if record is None or _lacks_items(draws) or not memory.fits(_BYTES_WITH_TRIANGLES * draws.n_items**2):
        return None
    seconds = _SECONDS_A_PAIR * n_starts * draws.n_items**2
    return binder_bound(draws, record, incumbent, budget=WorkBudget(seconds)).value


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(InWords):
    """Bound of the distance between a partition's expected loss and the minimum; made by :func:`certify`.

    Attributes
    ----------
    partition : xarray.DataArray of shape (n_items,), dtype int32
        The partition in question; -1 is noise, under a loss that has it.
    loss : PartitionLoss, NoiseLoss or PairLoss
    expected_loss : float
        That of the partition, in the loss's unit.
    lower_bound : float
        No partition's expected loss is below it; for "within_variance", of no partition with as many clusters or fewer,
        and for scored pairs with constraints, of none that keeps them.
    method : str
        How the bound was found: the most laborious kind of work that was needed.
    seconds : float
        Time that bounding took.
    better : xarray.DataArray of shape (n_items,), dtype int32, or None
        A partition of smaller expected loss, if bounding found one.
    better_loss : float
        Its expected loss; if there is none, the expected loss of the partition.
    info : BinderBoundInfo, ComponentsInfo, VISetsInfo, RelaxationInfo, MatchingInfo or None
        The method's record of its work.
    left_out : str
        What was not computed for the bound and why, as a sentence; empty where nothing was left out.
    """

    partition: xr.DataArray = field(metadata=stored_as.array("certified_partition", of_items=True))
    loss: Loss = field(metadata=stored_as.loss("certificate_"))
    expected_loss: float = field(metadata=stored_as.number("certified_loss", measured=True))
    lower_bound: float = field(metadata=stored_as.number("certified_lower_bound", measured=True))
    method: str = field(metadata=stored_as.attribute("certificate_method"))
    seconds: float = field(metadata=stored_as.attribute("certificate_seconds"))
    better: xr.DataArray | None = field(metadata=stored_as.array("better_partition"))
    better_loss: float = field(metadata=stored_as.number("better_loss", measured=True))
    info: Info | None = field(default=None, metadata=stored_as.work("certificate_info"))
    left_out: str = field(default="", metadata=stored_as.attribute("certificate_left_out"))
    _of_runs: ClassVar = "certificate_independent"

    _also_stored: ClassVar = {
        "optimality_gap": stored_as.number("certified_optimality_gap"),
        "status": stored_as.attribute("certificate_status"),
    }

    @property
    def optimality_gap(self) -> float:
        """(expected_loss - lower_bound) / expected_loss; 0 where both are 0."""
        return relative_gap(self.expected_loss, self.lower_bound)

    @property
    def status(self) -> str:
        """Return "optimal" where the optimality gap is below 1e-9, else "bounded"."""
        return status(self.optimality_gap)

    def to_dataframe(self) -> pd.DataFrame:
        """A row for the partition, for a better one if there is one, and for the bound."""
        rows: list[tuple[str, int | None, float]] = [
            ("the partition", int(self.partition.max()) + 1, self.expected_loss)
        ]
        if self.better is not None:
            rows.append(("a better one", int(self.better.max()) + 1, self.better_loss))
        rows.append(("lower bound", None, self.lower_bound))
        expected = f"expected {display.short_name_of(self.loss)}"
        frame = pd.DataFrame(rows, columns=["", "n_clusters", expected]).set_index("")
        return frame.astype({"n_clusters": "Int64"})

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        lines = [
            ("loss", display.name_and_unit(self.loss)),
            ("optimality gap", gap_in_words(self.optimality_gap, self.words.expected, among_of(self.info))),
            ("method", f"{self.method}, {display.duration(self.seconds)}"),
        ]
        if isinstance(self.info, ComponentsInfo):
            lines.append(("components", self.info.in_words()))
        if self.better is not None:
            lines.append(("better", "bounding came across a better partition: the attribute `better`"))
        return f"Certificate: {self.status}", lines, self.to_dataframe().map(_digits)


def _digits(value: Any) -> str:
    """As many digits as distinguish a bound from a loss."""
    return "-" if pd.isna(value) else f"{value:.10g}"


def certify(
    draws: Any,
    partition: Any = None,
    *,
    loss: str | Loss | None = None,
    seconds: float | None = None,
    progressbar: bool = True,
) -> Certificate:
    """Compute a lower bound of the minimum expected loss, and the optimality gap of a partition.

    Parameters
    ----------
    draws : PairSimilarity, ScoredPairs, PartitionDraws or any posterior that :func:`summarize` takes
        The posterior of N draws over n items.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus under the same loss: the better it is, the faster the proof.
        By default the consensus of `draws` if these are a summary.
    loss : str, PartitionLoss, NoiseLoss or PairLoss, optional
        A loss for which there is a bounding method: "binder", or ``binder(a)`` with any costs; "vi"; the other metrics,
        "jaccard", "nvi", "information_distance", "nid" and "ballet"; and "within_variance", the objective of k-means
        on the one-hot matrix, at the partition's number of clusters. By default the one that the partition was found
        under, if it is a result, else "vi", "ballet" of runs with noise, or "binder" if there are no draws. A
        similarity matrix alone takes Binder's losses and "within_variance".
    seconds : float, optional
        Time limit. With one, the result depends on the machine. By default a fixed amount of work is done, about a
        minute's, or less if the optimum is proven before.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If the loss has no bounding method, `seconds` is not a positive number, or draws or partition are invalid. If
        the partition breaks a constraint of scored pairs.
    MemoryError
        If the matrices of items x items take more than the memory budget.
    RuntimeError
        If the bound exceeds the expected loss of a partition, which would be a defect of the package.

    See Also
    --------
    consensus_partition : Search for the partition; `method="exact"` proves Binder's optimum.
    summarize : Summarize a posterior, with a bound found in little time.

    Notes
    -----
    Binder's loss: correlation clustering [1]_ with costs (2 - a) (1 - PSM_ij) of joining a pair and a PSM_ij of
    separating it, relaxed to triangle inequalities. Their multipliers are found by packing of conflicted triangles
    [2]_, coordinate ascent and, if needed, the linear program; a fractional solution is branched on. Scored pairs are
    bounded component by component: all partitions of small components are compared, larger ones bounded so.

    VI: every item has a share of its cluster's costs, and branch and bound proves that no set of items costs less than
    its items' shares. With more than 400 items, or too little time, a Lagrangian relaxation in which every item chooses
    its cluster alone; multipliers restore consistency. Any metric L: half the mean loss between draws that are matched
    in pairs, by the triangle inequality. The page on bounds has the gaps that they leave.

    "within_variance": a semidefinite relaxation over the partitions with as many clusters or fewer. The page on bounds
    derives all of them.

    References
    ----------
    .. [1] Bansal, Blum and Chawla (2004), Machine Learning 56, 89-113.
       https://doi.org/10.1023/B:MACH.0000033116.57574.95
    .. [2] Lange, Karrenbauer and Andres (2018), Partial optimality and fast lower bounds for weighted correlation
       clustering, Proceedings of Machine Learning Research 80, 2892-2901.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> proof = pc.certify(draws, [0, 0, 1, 1], loss="binder")
    >>> proof.status, proof.lower_bound
    ('optimal', 0.09375)
    """
    partition = partition_of(draws, partition)
    source = as_source(draws).in_fixed_order()
    record = as_loss(loss, partition, default=source.usual_loss)
    if record.needs_draws:
        source.as_draws(f"loss {record.name!r}", lacking=True)
    if record.by_draw() is not None and _lacks_items(source):
        source.as_draws("A bound")
    record = loss_on(source, record)
    check_seconds(seconds)
    budget = WorkBudget(_SECONDS_TO_CERTIFY) if seconds is None else Deadline(float(seconds))
    return certificate_within(budget, source, partition, record, progressbar=progressbar)


def certificate_within(
    budget: Budget, source: PairSource, partition: Any, record: Loss, *, progressbar: bool
) -> Certificate:
    """Do what :func:`certify` does with no more work than the budget holds."""
    family = family_of(record)
    if family is None:
        losses = ", ".join(known.losses for known in BOUNDS.values())
        raise ValueError(f"`loss` must have a bounding method, as {losses} have; got {record.name!r}.")
    if record.as_binder() is None:
        source = source.all_pairs(f"loss {record.name!r}", "Binder's loss is bounded by component.")
    labels = source.as_labels(partition)
    judged = judged_labels(source, partition, record)
    began = time.monotonic()
    bound = family.bound(source, record, labels, budget=budget, progressbar=progressbar)
    took = time.monotonic() - began
    found = labels if bound.partition is None else bound.partition
    expected = best = mean_loss(source, judged[np.newaxis], record)[0]
    if found is not labels:
        best = mean_loss(source, found[np.newaxis], record)[0]
    is_better = best < expected * (1 - ROUNDING)
    return Certificate(
        partition=source.items.array(judged, "partition"),
        loss=record,
        expected_loss=float(expected),
        lower_bound=checked(bound.value, float(best if is_better else expected)),
        method=bound.method,
        seconds=took,
        better=source.items.array(found, "better") if is_better else None,
        better_loss=float(best if is_better else expected),
        info=bound.info,
        left_out=bound.left_out,
        words=source.words,
    )


def _lacks_items(source: PairSource) -> bool:
    """Whether it has runs that lack items, whose expected losses have no bound."""
    return source.draws is not None and source.draws.lacks_items


def quick_certificate(
    source: PairSource, partition: Any, record: Loss, *, seconds: float | None, progressbar: bool
) -> tuple[Certificate | None, str]:
    """A certificate for little work, where it can be of use; else None, and why there is none, as a sentence.

    A loss without a bounding method has no certificate.
    """
    if family_of(record) is None:
        return None, ""
    if _lacks_items(source) and record.by_draw() is not None:
        return None, "Optimality is not assessed: no bound is known for runs that lack items."
    if source.n_items * (source.n_draws or 1) > memory.LABELS_TO_BOUND:
        return None, f"No certificate was computed, because there are more than {memory.LABELS_TO_BOUND:,} labels."
    most = _QUICK_SECONDS_OF_VI if record == vi() else _QUICK_SECONDS
    budget = WorkBudget(min(most, np.inf if seconds is None else seconds))
    try:
        return certificate_within(budget, source, partition, record, progressbar=progressbar), ""
    except MemoryError:
        return None, too_many_pairs(source.n_items)
