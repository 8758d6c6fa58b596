"""When a search stops: its limits, and its next step.

After runs from given partitions and cuts of a tree, runs from random orders of the items and from draws follow. Then
the best partition is rearranged: its clusters are dissolved and split, one by one. Then restarts from the best
partitions follow, until many in a row gained nothing, or until they took what the budget allows. All is counted,
nothing timed, so that a search ends at the same partition on every machine.
"""

from enum import Enum
from typing import NamedTuple

_AT_ONCE = 8  # restarts between two checks of their gain
_PATIENCE_IF_AGREED, _PATIENCE = 32, 64  # restarts in a row without a gain


class Allowed(NamedTuple):
    """What a search is allowed."""

    n_starts: int  # runs from random orders of the items and from draws
    n_agree: int  # runs at the minimum loss that end the runs
    n_perturbations: int | None  # restarts; None: as many as patience and budget allow
    budget: float  # elementary operations of all restarts: comparisons of a label with a cluster
    patience: int  # factor of the number of restarts without a gain


class Progress(NamedTuple):
    """How far a search is."""

    n_runs: int  # of those that `n_starts` limits
    n_at_best: int  # runs that reached the minimum loss
    runs_in_vain: int  # since the first at the minimum; 0 for linear losses, whose runs it does not end
    is_rearranged: bool  # whether the best partition was
    n_restarts: int
    restarts_in_vain: int  # since the last gain
    operations: float  # elementary operations of a restart


class Step(Enum):
    """What a search does next."""

    RUN = "run"
    REARRANGE = "rearrange"
    RESTART = "restart"
    END = "end"


def next_step(allowed: Allowed, progress: Progress) -> tuple[Step, int]:
    """Return the next kind of step, and the number of such steps."""
    agreed = progress.n_at_best >= allowed.n_agree
    if not progress.is_rearranged:
        left = allowed.n_starts - progress.n_runs
        enough = agreed or progress.runs_in_vain >= allowed.n_agree
        if progress.n_runs == 0 or (left > 0 and not enough):
            return Step.RUN, left
        return Step.REARRANGE, 1
    if allowed.n_perturbations is not None:
        left = allowed.n_perturbations - progress.n_restarts
    else:
        patience = allowed.patience * (_PATIENCE_IF_AGREED if agreed else _PATIENCE)
        affordable = int(allowed.budget / progress.operations)
        left = min(patience - progress.restarts_in_vain, affordable - progress.n_restarts)
    return (Step.RESTART, min(_AT_ONCE, left)) if left > 0 else (Step.END, 0)
