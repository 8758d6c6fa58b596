"""How often intervals of two Monte Carlo errors contain a probability, from 0.003 to 0.5, for fast and slow chains.

Four chains of 250 draws have 21 events of one probability. An event keeps its state from draw to draw with a given
probability, else it is drawn anew. The events are the terms of a loss.
"""

import numpy as np

from posterior_consensus.ensemble.samples import ChainSamples

CHAINS, LENGTH, EVENTS, REPETITIONS = 4, 250, 21, 500
STAYS = (0.0, 0.5, 0.8, 0.9)
PROBABILITIES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
INTERVALS = (
    "p +- 2 errors of the mean",
    "p +- 2 errors",
    "p' +- 2 errors",
    "error / standard deviation",
    "by batches: p +- 2 errors of the mean",
    "by batches: p +- 2 errors",
    "by batches: p' +- 2 errors",
)


def tables(smallest):
    yield (
        "",
        (row for stay in (STAYS[:1] if smallest else STAYS) for row in _rows(stay, 20 if smallest else REPETITIONS)),
    )


def _rows(stay, repetitions):
    size = CHAINS * LENGTH * (1 - stay) / (1 + stay)
    found = [coverage(np.random.default_rng(1), stay, probability, repetitions) for probability in PROBABILITIES]
    for interval, shares in zip(INTERVALS, np.transpose(found), strict=True):
        shown = {f"{probability:g}": f"{share:.3f}" for probability, share in zip(PROBABILITIES, shares, strict=True)}
        yield {"effective draws": f"{size:.0f}", "interval": interval, **shown}


def coverage(rng: np.random.Generator, stay: float, probability: float, repetitions: int) -> list[float]:
    """The rows of the table: six shares of intervals that contain the probability, and the median relative error."""
    number = np.arange(CHAINS * LENGTH)
    samples = ChainSamples(number // LENGTH, number % LENGTH, np.full(number.size, 1 / number.size))
    found = [_intervals(rng, samples, stay, probability) for _ in range(repetitions)]
    hits = [
        np.mean([abs(centre - probability) <= 2 * error for centre, error in one]) for one in zip(*found, strict=True)
    ]
    spread = np.sqrt(probability * (1 - probability) / number.size * (1 + stay) / (1 - stay))
    relative = np.median([one[1][1] for one in found]) / spread
    return [*hits[:3], relative, *hits[3:]]


def _intervals(rng, samples, stay, probability):
    """Centre and error of the intervals of the first event: three from traces, three from batches."""
    events = events_of(rng, stay, probability)
    share, plain = samples.mean(events), samples.mcse(events[0])
    batches = samples.error_by_batches(share, lambda rows: events[:, rows].mean(axis=1))
    of_trace = samples.probability_mcse(events[0], events.sum(axis=0))
    corrected = of_trace, samples.probability_errors(share, batches)[0]
    intervals = []
    for raw, error in zip((plain, batches[0]), corrected, strict=True):
        intervals += [(share[0], raw), (share[0], error), (_centre(share[0], error), error)]
    return intervals


def events_of(rng: np.random.Generator, stay: float, probability: float) -> np.ndarray:
    """Indicators (EVENTS, draws) of independent events."""
    shape = EVENTS, CHAINS, LENGTH
    moves = rng.random(shape) >= stay
    moves[..., 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(LENGTH), 0), axis=-1)
    fresh = rng.random(shape) < probability
    return np.take_along_axis(fresh, last, axis=-1).reshape(EVENTS, -1).astype(float)


def _centre(share, error):
    """The centre p' whose error is `error`: with m effective draws, p' = (m p + 2) / (m + 4)."""
    low, high = 0.0, 1e9
    for _ in range(100):
        size = (low + high) / 2
        centre = (size * share + 2) / (size + 4)
        low, high = (size, high) if centre * (1 - centre) / size > error**2 else (low, size)
    return centre
