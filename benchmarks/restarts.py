"""How far the default search ends above the best known partition, on posteriors that no other benchmark has.

Best known is the least of all calls: the default of each version, and a search at length, of 24 runs and many restarts.
The limits of restarts were chosen on the posteriors of seed 0. `--before CHECKOUT` searches with an earlier version of
the package, too, alternately; each version has a process of its own.
"""

import statistics
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._resampled import FAMILIES, SIZES, posterior
from benchmarks._runner import ROOT, process
from benchmarks._salso import searched

OPTIONS = {
    "--losses": {"nargs": "+", "choices": pc.LOSSES, "default": ["information_distance", "nid"], "metavar": "LOSS"},
    "--seed": {"type": int, "default": 1, "help": "of the posteriors"},
    "--restarts": {"type": int, "default": 300, "help": "of a search at length; 0 for none"},
    "--before": {"type": Path, "help": "checkout of an earlier version"},
}
RUNS = 24
TOLERANCE = 1e-9  # relative difference of losses below which neither is above
MUCH = 1e-3


def tables(smallest, losses, seed, restarts, before):
    checkouts = ({"before": before} if before else {}) | {"now": ROOT}
    names = [(family, size) for family in FAMILIES for size in SIZES][: 2 if smallest else None]
    with ExitStack() as stack:
        versions = {name: stack.enter_context(process(checkout)) for name, checkout in checkouts.items()}
        for loss in losses:
            for version in versions.values():
                version.submit(_search, *names[0], seed, loss, {}).result()  # compiles
            calls = [_calls(versions, *name, seed, loss, 10 if smallest else restarts) for name in names]
            yield loss, _rows(calls, names)


def _calls(versions, family, size, seed, loss, restarts):
    """Loss and CPU seconds of the default of each version, and of the search at length."""
    found = {name: version.submit(_search, family, size, seed, loss, {}).result() for name, version in versions.items()}
    if restarts:
        options = {"n_starts": RUNS, "n_agree": RUNS, "n_perturbations": restarts}
        found["at length"] = versions["now"].submit(_search, family, size, seed, loss, options).result()
    return found


def _search(family, size, seed, loss, options):
    draws = pc.as_partition_draws(posterior(family, size, seed))
    call = searched(draws, loss, 1, **options)
    return call.result.expected_loss, call.cpu


def _rows(calls, names):
    least = np.array([min(value for value, _ in call.values()) for call in calls])
    for name in calls[0]:
        above = np.array([call[name][0] for call in calls]) / np.where(least > 0, least, 1) - 1
        milliseconds = [1000 * call[name][1] for call in calls]
        yield {
            "search": name,
            "posteriors": len(calls),
            "above the best known": int((above > TOLERANCE).sum()),
            "by more than 0.1%": int((above > MUCH).sum()),
            "worst": f"{100 * above.max():.3f}% ({' '.join(names[int(above.argmax())])})"
            if above.max() > TOLERANCE
            else "",
            "median ms": f"{statistics.median(milliseconds):.0f}",
            "nine in ten below": f"{np.quantile(milliseconds, 0.9):.0f}",
            "all, s": f"{sum(milliseconds) / 1000:.1f}",
        }
