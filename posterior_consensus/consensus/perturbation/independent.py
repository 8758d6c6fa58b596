"""Draws of chains counted as independent draws, given modes: the counts by which numbers of modes are compared."""

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.perturbation.draws import ModelDraws, Rows
from posterior_consensus.consensus.perturbation.mixture import Mixture
from posterior_consensus.ensemble.autocorrelation import autocorrelation_time
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import distinct_rows
from posterior_consensus.ensemble.samples import FEWEST_DRAWS

_CHANCE = 3.0  # multiple of the draws that a run has by chance
_ITEMS = 200  # most items whose labels are followed along the chains


def as_independent(draws: ModelDraws, fitted: Mixture, chains: list[Rows]) -> ModelDraws:
    """Reduce the counts of draws so that they add up to an equivalent number of independent draws.

    Parameters
    ----------
    draws : ModelDraws
    fitted : Mixture
        Modes fitted to them.
    chains : list of integer arrays
        Rows of each chain, in the order of its draws.

    Notes
    -----
    Let x_ti be 1 if the label of item i in draw t is matched with the item's cluster in the draw's mode, minus the mean
    over the draws of this mode. A draw counts as 1 / tau of its count, where tau is the autocorrelation time of x,
    pooled over items. Changes of the mode itself do not matter: a chain that stays in a mode shows this mode well.

    Some samplers repeat whole draws. Equal draws fit a mode of their own, and a long repetition can counterbalance any
    1 / tau. So a run of equal successive draws counts at most as 1 + 3 p / (1 - p) draws, where p is the share of this
    partition among the draws outside the run: p / (1 - p) more draws are expected if draws are independent.
    """
    tau = _autocorrelation_time(_agreement(draws, fitted), chains)
    which = distinct_rows(draws.labels.values)[1]
    run = _runs(which, chains)
    own, equal = (np.bincount(one, draws.counts)[one] for one in (run, which))
    others = draws.counts.sum() - equal
    most = 1 + _CHANCE * np.divide(equal - own, others, out=np.full(own.size, np.inf), where=others > 0)
    return draws._replace(counts=draws.counts * np.minimum(1 / tau, most / own))


def _agreement(draws: ModelDraws, fitted: Mixture) -> Floats:
    """Agreement (N, items) of the labels of some items with each draw's mode, minus its mean over the mode's draws."""
    items = np.unique(np.linspace(0, draws.n_items - 1, min(draws.n_items, _ITEMS)).round().astype(int))
    rows = draws.starts[:-1, np.newaxis] + draws.labels.values[:, items]
    mode = fitted.responsibilities.argmax(axis=1)
    agreement = np.empty(rows.shape)
    for g, state in enumerate(fitted.states):
        own = mode == g
        if own.any():
            matched = state.parameters.matches @ state.memberships[items].T
            agreement[own] = matched[rows[own], np.arange(items.size)]
            agreement[own] -= agreement[own].mean(axis=0)
    return agreement


def _autocorrelation_time(values: Floats, chains: list[Rows]) -> float:
    """Autocorrelation time of traces (N, P), pooled over the traces and the chains; at least 1."""
    variance, shortest = float(np.square(values).sum()), min(map(len, chains))
    if variance == 0 or shortest < FEWEST_DRAWS:
        return 1.0

    def correlation(lag: int) -> float:
        pairs = [(values[rows[: rows.size - lag]], values[rows[lag:]]) for rows in chains]
        n_pairs = sum(len(before) for before, _ in pairs)
        return sum(float(np.vdot(*pair)) for pair in pairs) / variance * len(values) / n_pairs

    return max(1.0, autocorrelation_time(correlation, shortest))


def _runs(which: npt.NDArray[np.intp], chains: list[Rows]) -> npt.NDArray[np.intp]:
    """Number (N,) of the run of each draw, where `which` (N,) numbers the different partitions."""
    run = np.empty(which.size, np.intp)
    begun = 0
    for rows in chains:
        changes = np.append(True, which[rows[1:]] != which[rows[:-1]])
        run[rows] = begun + np.cumsum(changes) - 1
        begun += int(changes.sum())
    return run
