"""R-hat of traces, whether chains differ in them by more than chance, and what results say of chains that do."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.series import halved, normal_scores
from posterior_consensus.runtime.aliases import Floats

RHAT_BAD = 1.05
RHAT_FINITE = 1e6  # a larger R-hat comes from division by the rounding of constant chains
_LEVEL = 0.01  # joint level of all tests of a kind
_SUSPICIOUS = 1.01  # without ranks
_BATCHES = 5  # batches of a half-chain


def half_chains(samples: Samples) -> npt.NDArray[np.intp]:
    """Row numbers (2 n_chains, length) of the halves of each chain; like ArviZ, without a middle draw."""
    chains = samples.by_chain(np.arange(samples.n_draws))
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def differ(samples: Samples, values: Floats) -> npt.NDArray[np.bool_]:
    """Whether the half-chains differ by more than chance in each trace (T, N), at a joint level for T traces.

    The test is an analysis of variance of the means of five batches per half-chain. As in the rank-normalized R-hat,
    it uses the normal scores of ranks and of distances from the median, each at level 0.01 / (2 T) (Bonferroni).
    Traces that vary between half-chains but not within them are significant.
    """
    n_halves, length = half_chains(samples).shape
    n_batches = min(_BATCHES, int(np.sqrt(length)))
    if n_batches < 2 or n_halves < 4 or len(values) == 0:
        return np.ones(len(values), bool)
    significant = np.zeros(len(values), bool)
    for scores in _scores(samples, values):
        parts = [part.mean(axis=-1) for part in np.array_split(scores, n_batches, axis=-1)]
        batches = np.stack(parts, axis=-1)
        means = batches.mean(axis=-1)
        within = np.square(batches - means[..., np.newaxis]).sum(axis=(1, 2)) / (n_halves * (n_batches - 1))
        between = n_batches * means.var(axis=1, ddof=1)
        limit = _f_above(_LEVEL / (2 * len(values)), n_halves - 1, n_halves * (n_batches - 1))
        significant |= between > limit * within
    return significant


def _f_above(level: float, first: int, second: int) -> float:
    """Value that a variable of the F distribution exceeds with this probability."""
    share = betaincinv(second / 2, first / 2, level)  # exact for small levels, unlike the quantile of 1 - level
    return float(second * (1 - share) / (first * share))


def _scores(samples: Samples, values: Floats) -> Iterator[Floats]:
    """Normal scores (T, 2 n_chains, length) in half-chains of ranks, and of ranks of distances from the median."""
    halves = half_chains(samples)
    for folded in (False, True):
        traced = np.abs(values - np.median(values, axis=1, keepdims=True)) if folded else values
        yield normal_scores(traced)[:, halves]


def doubt_of(samples: Samples, traces: Mapping[str, Floats]) -> str | None:
    """What makes chains doubtful, as continuation of "The chains", by traces (n_draws,) that a result has anyway.

    None if no trace has a rank-normalized split R-hat above 1.05 that is beyond chance, as :func:`diagnose` judges its
    summaries, and if this is unknown. Weights are ignored.
    """
    if len(samples.series) < 2 or not samples.has_errors:
        return None
    moving = {name: trace for name, trace in traces.items() if np.ptp(trace) > 0}
    if not any(_is_suspicious(samples, trace) for trace in moving.values()):
        return None
    values = np.stack(list(moving.values()))
    beyond = np.flatnonzero(differ(samples, values))
    if beyond.size == 0:
        return None
    rhat = np.max([_rhat(scores) for scores in _scores(samples, values[beyond])], axis=0)
    worst = int(rhat.argmax())
    if not rhat[worst] > RHAT_BAD:
        return None
    size = f"is {rhat[worst]:.2f}" if rhat[worst] < RHAT_FINITE else "is infinite"
    return f"do not agree: the R-hat of the {list(moving)[beyond[worst]]} {size}; see `diagnose`"


def _is_suspicious(samples: Samples, trace: Floats) -> bool:
    """Whether the R-hat without ranks, which takes a tenth of the time, of a trace or its distances is above 1.01."""
    folded = np.abs(trace - np.median(trace))
    return bool((_rhat(np.stack([trace, folded])[:, half_chains(samples)]) > _SUSPICIOUS).any())


def rank_rhat(chains: Floats) -> Floats:
    """R-hat (T,) of traces (T, n_chains, n): the larger one of normal scores and of those of distances, as ArviZ's.

    Infinite if nothing varies within the halves of chains, but between them.
    """
    halves = halved(chains)
    folded = np.abs(halves - np.median(halves, axis=(-2, -1), keepdims=True))
    still = np.ptp(folded, axis=(-2, -1)) == 0
    return np.where(still, _rhat(normal_scores(halves)), np.maximum(*map(_rhat, map(normal_scores, (halves, folded)))))


def _rhat(scores: Floats) -> Floats:
    """R-hat (T,) of values in half-chains (T, 2 n_chains, length); infinite if nothing varies within them."""
    length, means = scores.shape[-1], scores.mean(axis=-1)
    within = scores.var(axis=-1, ddof=1).mean(axis=-1)
    total = (length - 1) / length * within + means.var(axis=-1, ddof=1)
    return np.sqrt(np.divide(total, within, out=np.full(within.shape, np.inf), where=within > 0))
