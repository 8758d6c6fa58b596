"""Graphs of clusters: "cspa", "mcla", "hbgf" and "nmf" on the settings of the consensus paper, and their times.

Mean adjusted Rand index to the truth for six clusters given, beside the oracle and, where it can be imported, beside
PyPI's ClusterEnsembles, whose cuts are METIS's. Then the seconds for 2,000 items x 1,000 draws, wall clock and
processor.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

import posterior_consensus as pc
from benchmarks._runner import used
from benchmarks.consensus import perturbed
from benchmarks.reproductions._printed import NOISES, SETTINGS, K
from benchmarks.reproductions.consensus_paper import Row, answer, closeness

ROWS = (
    Row("CSPA", None, "cspa"),
    Row("CSPA, balanced", None, "cspa", {"balanced": True}),
    Row("MCLA", None, "mcla"),
    Row("HBGF", None, "hbgf"),
    Row("NMF", None, "nmf"),
)
THEIRS = ("mcla", "hbgf")  # its "cspa" gives METIS weights that are no whole numbers, which pymetis 2025.2 refuses
OPTIONS = {"--share": {"type": float, "default": 0.05, "help": "share of the paper's replications to run"}}


def tables(smallest, share):
    settings, noises = ((1,), NOISES[:1]) if smallest else (tuple(SETTINGS), NOISES)
    for noise in noises:
        found = {f"Set {s}": means(s, noise, share) for s in settings}
        yield f"p = {noise}, mean adjusted Rand index, {K} clusters given:", _rows(found)
    size = (100, 20) if smallest else (2000, 1000)
    yield f"seconds, {size[0]:,} items x {size[1]:,} draws of ten clusters:", times(*size)


def _rows(found):
    for name in next(iter(found.values())):
        yield {"method": name} | {title: f"{column[name]:.2f}" for title, column in found.items()}


def means(s: int, noise: float, share: float) -> dict[str, float]:
    """Mean over the replications of every method's adjusted Rand index to the truth."""
    n_replications = max(2, round(share * SETTINGS[s].replications))
    found = [adjusted_rand_indices(s, noise, replication) for replication in range(n_replications)]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def adjusted_rand_indices(s: int, noise: float, replication: int) -> dict[str, float]:
    """One replication, of the draws that the reproduction of the paper has."""
    simulation, *seeds = np.random.SeedSequence([s, round(100 * noise), replication]).spawn(1 + len(ROWS))
    made = SETTINGS[s].simulated(noise, simulation)
    labels = {
        row.name: answer(row, made.draws, np.random.default_rng(seed)) for row, seed in zip(ROWS, seeds, strict=True)
    }
    labels |= {f"ClusterEnsembles, {name}": solve(made.draws.labels) for name, solve in theirs(K).items()}
    return {name: closeness(found, made.truth) for name, found in (labels | {"Oracle": made.oracle()}).items()}


def theirs(n_clusters: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """What PyPI's ClusterEnsembles has of these methods; nothing where it cannot be imported."""
    if importlib.util.find_spec("ClusterEnsembles") is None:
        return {}
    solve = importlib.import_module("ClusterEnsembles").cluster_ensembles
    return {
        solver: lambda labels, solver=solver: solve(labels.astype(float), nclass=n_clusters, solver=solver)
        for solver in THEIRS
    }


def times(n_items: int, n_draws: int) -> Iterator[dict]:
    """Median seconds of three calls for each method, with the number of clusters given and found by VI."""
    small, (draws, truth) = perturbed(100, 20)[0], perturbed(n_items, n_draws)
    for row, n_clusters in product(ROWS, (10, None)):
        options = {"method": row.method, "n_clusters": n_clusters, "random_seed": 1, "progressbar": False}
        pc.consensus_partition(small, **options, **row.options)
        runs = [used(pc.consensus_partition, draws, **options, **row.options) for _ in range(3)]
        found = runs[0].result
        yield {
            "method": row.name,
            "clusters": "10 given" if n_clusters else f"{found.n_clusters} found",
            "wall clock, s": float(np.median([run.seconds for run in runs])),
            "CPU s": float(np.median([run.cpu for run in runs])),
            "misclassified": f"{pc.losses.misclassification_distance(found, truth):.4f}",
        }
