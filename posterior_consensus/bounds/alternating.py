"""The alternating direction method of multipliers: what both semidefinite relaxations have in common."""

import numpy as np

from posterior_consensus.ensemble.items import Floats

STEPS = 25  # between two bounds
SETTLED = 1e-7
_RELAXATION = 1.6  # over-relaxation, between 1 and 2
_RATIO = 3.0  # of the two residuals, at which the penalty changes
_SECONDS_A_CUBE = 3e-10  # of a step, times the number of groups of items to the third power
_SECONDS_A_STEP = 2e-4


def seconds_to_next_bound(n: int, seconds_a_square: float = 0.0) -> float:
    """About how long the steps between two bounds take with n groups of items."""
    return STEPS * (_SECONDS_A_STEP + seconds_a_square * n**2 + _SECONDS_A_CUBE * n**3)


def over_relaxed(spread: Floats, before: Floats, scaled: Floats) -> Floats:
    """The matrix that is to be split, given the projection, the matrix before it and the scaled multipliers."""
    target: Floats = _RELAXATION * spread + (1 - _RELAXATION) * before + scaled
    return target


def rebalanced(
    penalty: float, scaled: Floats, spread: Floats, after: Floats, before: Floats, factor: float
) -> tuple[float, Floats, float]:
    """Penalty and scaled multipliers, changed if one residual is much larger than the other; the larger residual."""
    primal, dual = float(np.linalg.norm(spread - after)), float(np.linalg.norm(after - before))
    if primal > _RATIO * dual:
        penalty, scaled = penalty * factor, scaled / factor
    elif dual > _RATIO * primal:
        penalty, scaled = penalty / factor, scaled * factor
    return penalty, scaled, max(primal, dual)
