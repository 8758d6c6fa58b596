"""Burn-in of a chain by MSER-5, and detection of a clear burn-in."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from posterior_consensus.results.display import joined
from posterior_consensus.runtime.tolerances import ROUNDING

FEWEST_DRAWS = 100
_BATCH = 5  # draws per batch mean
_KEPT, _FEWEST_KEPT = 0.1, 10  # smallest share and number of batches kept; fewer can have a small error by chance
_CLEAR = 5.0  # standard deviations of the later draws; larger differences are clear

Rows = npt.NDArray[np.intp]


def clear_burn_in(traces: npt.NDArray[np.float64], chains: Sequence[Rows]) -> list[int]:
    """Number of draws in each chain's clear burn-in; 0 for none.

    In some trace of (n_traces, n_draws), most of these draws are outside the range of all chains' later draws, and the
    means of both differ by more than five standard deviations of the later draws. Slow
    chains, and chains that stay in a mode that others visit, typically have no such trace.
    """
    lengths = [0] * len(chains)
    for trace in traces:
        cuts = [end if settled else 0 for end, settled in (end_of_burn_in(trace[rows]) for rows in chains)]
        rest = np.concatenate([trace[rows[cut:]] for rows, cut in zip(chains, cuts, strict=True)])
        for k, cut in enumerate(cuts):
            before = trace[chains[k][:cut]]
            outside = (before < rest.min()) | (before > rest.max())
            if 2 * outside.sum() > cut and abs(before.mean() - rest.mean()) > _CLEAR * rest.std():
                lengths[k] = max(lengths[k], cut)
    return lengths


def burn_in_in_words(ends: Mapping[object, int]) -> str:
    """Sentence on the burn-in and its remedy, from the draws by name of the chain; empty if there is none."""
    longest = max(ends.values(), default=0)
    if not longest:
        return ""
    names = [str(name) for name, end in ends.items() if end]
    who = f"Chain{'s' * (len(names) > 1)} {joined(names)} begin{'s' * (len(names) == 1)}"
    most = "about" if len(names) == 1 else "up to about"
    return (
        f"{who} with a burn-in of {most} {longest} draws, as diagnostics.sequential_distances shows. "
        f"Leave it out first: draws.isel(draw=slice({longest}, None))."
    )


def end_of_burn_in(trace: npt.NDArray[np.float64]) -> tuple[int, bool]:
    """Number of draws to discard at the start of a trace (n_draws,), and whether the rule determined it.

    Half of the draws if it did not: the trace changes in its second half, or has fewer than 100 draws.
    """
    half = trace.size // 2
    if trace.size < FEWEST_DRAWS:
        return half, False
    n_batches = trace.size // _BATCH
    # The incomplete batch is at the start, where draws are likeliest to be discarded.
    spare = trace.size - n_batches * _BATCH
    batches = trace[spare:].reshape(n_batches, _BATCH).mean(axis=1)
    best = int(_squared_errors(batches).argmin())
    if best >= n_batches // 2:
        return half, False
    return (best * _BATCH + spare if best else 0), True


def _squared_errors(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Squared standard error of the mean without the first 0, 1, ... values, assuming independence."""
    spread = np.ptp(values)
    if spread == 0:
        return np.zeros(1)
    backwards = ((values - values.mean()) / spread)[::-1]
    left = np.arange(1.0, values.size + 1)
    squares = np.cumsum(backwards**2) - np.cumsum(backwards) ** 2 / left
    squares[squares < ROUNDING] = 0.0
    fewest = max(_FEWEST_KEPT, int(np.ceil(_KEPT * values.size)))
    return (squares / left**2)[::-1][: values.size - fewest + 1]
