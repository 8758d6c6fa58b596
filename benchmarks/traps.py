"""How often, and by how much, something else ends below the default search, over families of posteriors and losses.

The rivals: a plain descent by single items from many simple starts, the hierarchical tree and the best draw, a search
from these three, and R's salso at its defaults where it is installed and has the loss. `--before CHECKOUT` searches
with an earlier version of the package, too, alternately. Each version has a process of its own.
"""

import statistics
import warnings
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import posterior_consensus as pc
from benchmarks._data import posteriors, random_draws
from benchmarks._descent import best_by_descent
from benchmarks._posteriors import FAMILIES, Posterior, linked_records
from benchmarks._runner import ROOT, process
from benchmarks._salso import IN_SALSO, ask, has_salso, searched

CLUSTERS = "free", "3", "meant"  # numbers of clusters: none given, three, as many as the posterior was made with
LARGER = "named", "records", "harder-records", "large"  # beside the families of small posteriors
RIVALS = "descent", "starts", "salso"
RECORDS = (1_000, 3_000)
TOLERANCE = 1e-9  # relative difference of losses below which neither is beaten
OPTIONS = {
    "--families": {"nargs": "+", "choices": (*FAMILIES, *LARGER), "default": list(FAMILIES), "metavar": "FAMILY"},
    "--losses": {"nargs": "+", "choices": pc.LOSSES, "default": list(pc.LOSSES), "metavar": "LOSS"},
    "--clusters": {"nargs": "+", "choices": CLUSTERS, "default": ["free"]},
    "--rivals": {"nargs": "*", "choices": RIVALS, "default": ["descent"]},
    "--seeds": {"nargs": "+", "type": int, "default": [0, 1, 2], "help": "of the posteriors of each family"},
    "--before": {"type": Path, "help": "checkout of an earlier version"},
}


def tables(smallest, **given):
    options = SimpleNamespace(**given)
    if smallest:
        options.families, options.losses, options.seeds = ["splits", "weighted"], ["vi"], [0]
        options.rivals = ["descent", "starts"]
    checkouts = ({"before": options.before} if options.before else {}) | {"now": ROOT}
    with ExitStack() as stack:
        versions = {name: stack.enter_context(process(checkout)) for name, checkout in checkouts.items()}
        for version, loss in product(versions.values(), options.losses):  # compiles
            version.submit(
                _search, Posterior(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), 2), {"loss": loss, "seed": 0}
            ).result()
        calls = list(_calls(versions, options))
    for name in versions:
        yield f"{name}: calls that rivals beat", _by_family(name, options, calls)
    yield "times in CPU milliseconds, salso's in milliseconds", _by_loss(list(versions), options, calls)


def _calls(versions, options):
    """Of each call: family, loss, loss and CPU seconds by version, loss by rival, and salso's seconds."""
    for family, seed in product(options.families, options.seeds):
        for posterior, loss, asked in product(_posteriors(family, seed), options.losses, options.clusters):
            n_clusters = {"free": None, "3": 3, "meant": posterior.n_clusters}[asked]
            given = {"loss": loss, "n_clusters": n_clusters, "seed": seed}
            order = list(versions)[:: 1 if seed % 2 else -1]
            found = {name: versions[name].submit(_search, posterior, given).result() for name in order}
            salso = None
            if "salso" in options.rivals and loss in IN_SALSO and n_clusters is None and has_salso():
                counts = 1 if posterior.counts is None else posterior.counts
                salso = ask("time_salso.R", np.repeat(posterior.labels, counts, axis=0), loss)
            rivals = _rivals(options.rivals, posterior, loss, n_clusters) | ({"salso": salso[1]} if salso else {})
            yield SimpleNamespace(family=family, loss=loss, found=found, rivals=rivals, salso=salso and salso[0])


def _posteriors(family, seed):
    """The posteriors of a family, or of a group of larger ones."""
    rng = np.random.default_rng(seed)
    if family in FAMILIES:
        return [FAMILIES[family](rng)]
    if family == "named":
        return [Posterior(labels, 3) for labels in posteriors().values()]
    if family == "large":
        return [Posterior(random_draws(200, 10**6, 12, 0.1, seed), 12)]
    return [linked_records(rng, n, 200, is_hard=family == "harder-records") for n in RECORDS]


def _search(posterior, given):
    """Expected loss of a search, and the median of the CPU seconds of three."""
    draws = pc.as_partition_draws(posterior.labels, weights=posterior.counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [searched(draws, **given) for _ in range(3)]
    return float(calls[0].result.expected_loss), statistics.median(call.cpu for call in calls)


def _rivals(names, posterior, loss, n_clusters):
    """Expected loss that each rival reached, without those that have no partition of so many clusters."""
    draws = pc.as_partition_draws(posterior.labels, weights=posterior.counts)
    found = {}
    given = {"loss": loss, "n_clusters": n_clusters, "random_seed": 1, "progressbar": False}
    if "descent" in names or "starts" in names:
        end = best_by_descent(draws.labels.astype(np.int64), draws.weights, pc.LOSSES[loss](), n_clusters)
        found |= {} if end is None else {"descent": end}
    if "starts" in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are fewer clusters than asked for
            for method in ("hierarchical", "best_draw"):
                if method != "best_draw" or n_clusters in (None, *draws.n_clusters):
                    found[method] = pc.consensus_partition(draws, method=method, **given).labels.values
            starts = list(found.values())
            found["starts"] = pc.consensus_partition(draws, starts=starts, n_perturbations=0, **given).labels.values
    there = {name: labels for name, labels in found.items() if n_clusters in (None, np.unique(labels).size)}
    return {name: pc.expected_loss(draws, one, loss=loss)["expected_loss"].item() for name, one in there.items()}


def _by_family(name, options, calls):
    """Of each family and loss: calls in which a rival ended lower, and the worst excess."""
    for family in [*options.families, "all"]:
        own = [call for call in calls if family in (call.family, "all")]
        row = {"beaten": family}
        for loss in [*options.losses, "all"]:
            those = [call for call in own if loss in (call.loss, "all")]
            row[loss] = _beaten(
                [_excess(call.found[name][0], min(call.rivals.values(), default=np.inf)) for call in those]
            )
        yield row | {"median ms": _milliseconds([call.found[name][1] for call in own])}


def _by_loss(versions, options, calls):
    """Of each loss and version: calls in which the other version ended lower, and times beside salso's."""
    for loss in [*options.losses, "all"]:
        own = [call for call in calls if loss in (call.loss, "all")]
        row = {"loss": loss, "calls": len(own)}
        for name in versions:
            if len(versions) > 1:
                least = [min(value for value, _ in call.found.values()) for call in own]
                above = [_excess(call.found[name][0], value) for call, value in zip(own, least, strict=True)]
                row[f"{name}: above the other"] = _beaten(above)
            row |= _times(f"{name}: ", [call.found[name][1] for call in own])
        theirs = [call.salso for call in own if call.salso is not None]
        yield row | (_times("salso: ", theirs) if theirs else {})


def _times(name, seconds):
    return {f"{name}median ms": _milliseconds(seconds), f"{name}longest": _milliseconds([max(seconds)])}


def _excess(ours, theirs):
    """Percent by which ours is above theirs; 0 where it is not."""
    if ours <= theirs * (1 + TOLERANCE) + 1e-15:
        return 0.0
    return 100 * (ours / theirs - 1) if theirs > 0 else np.inf


def _beaten(excesses):
    n_beaten = sum(one > 0 for one in excesses)
    return f"{n_beaten} of {len(excesses)}" + (f", {max(excesses):.3f}%" if n_beaten else "")


def _milliseconds(seconds):
    return f"{1000 * statistics.median(seconds):.1f}"
