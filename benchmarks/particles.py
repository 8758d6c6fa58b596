"""Particles beside R's WASABI: distances from the posterior, how many seeds are at or below its, and times.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS. WASABI's distances are the best of
five of its starts, on every (number of draws // 1,000)-th draw; its seconds are those of the five starts for one number
of particles. Ours are of a whole call with 20 starts, which finds all smaller numbers as well.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import posteriors
from benchmarks._runner import used

WASABI = {  # distances for two, three, ... particles, and seconds
    "galaxy": ((0.891335698, 0.877799584, 0.888902733), 5.0),
    "iris": ((1.514065739, 1.468260996, 1.43912874), None),
    "ex2": ((0.932726548, 0.917141067, 0.903678219), 5.0),
    "dpmm": ((2.043481398,), 510.0),
}
SEEDS = 20
_ROUNDING = 5e-10  # of WASABI's distances as they are printed here


def tables(smallest):
    yield "", _rows(smallest)


def _rows(smallest):
    found = posteriors(smallest)
    for name in (name for name in WASABI if name in found):
        draws = pc.as_partition_draws(found[name][:: max(1, len(found[name]) // 1000)])
        distances, seconds = WASABI[name]
        for number, theirs in enumerate(distances, 2):
            yield _row(name, draws, number, theirs, seconds, 1 if smallest else SEEDS)


def _row(name, draws, number, theirs, their_seconds, n_seeds):
    pc.particles(draws, number, n_starts=1, random_seed=0, progressbar=False)  # compiles
    runs = [used(pc.particles, draws, number, random_seed=seed, progressbar=False) for seed in range(n_seeds)]
    found = [run.result.distance for run in runs]
    return {
        "posterior": name,
        "particles": number,
        "WASABI": f"{theirs:.6f}",
        "minimum": f"{min(found):.6f}",
        "median": f"{np.median(found):.6f}",
        "worst": f"{max(found):.6f}",
        f"at or below, of {SEEDS}": sum(x <= theirs + _ROUNDING for x in found),
        "seconds": f"{np.median([run.seconds for run in runs]):.2f}",
        "CPU seconds": f"{np.median([run.cpu for run in runs]):.2f}",
        "WASABI's seconds": their_seconds or "",
    }
