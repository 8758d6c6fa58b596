"""Graphs of clusters: "cspa", "mcla", "hbgf" and "nmf" on the settings of the consensus paper, and their times.

Mean adjusted Rand index to the truth for six clusters given, beside the oracle and, where it can be imported, beside
PyPI's ClusterEnsembles, whose cuts are METIS's. Then the seconds for 2,000 items x 1,000 draws, wall clock and
processor.
"""

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable

import numpy as np

import posterior_consensus as pc
from benchmarks._consensus_paper import NOISES, SETTINGS, K
from benchmarks._timing import print_table
from benchmarks.consensus import perturbed
from benchmarks.reproduce_consensus_paper import Row, answer, closeness

ROWS = (
    Row("CSPA", None, "cspa"),
    Row("CSPA, balanced", None, "cspa", {"balanced": True}),
    Row("MCLA", None, "mcla"),
    Row("HBGF", None, "hbgf"),
    Row("NMF", None, "nmf"),
)
THEIRS = ("mcla", "hbgf")  # its "cspa" gives METIS weights that are no whole numbers, which pymetis 2025.2 refuses


def main() -> None:
    """Print the table of adjusted Rand indices and that of times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--share", type=float, default=0.05, help="share of the paper's replications to run")
    options = parser.parse_args()
    settings, noises = ((1,), NOISES[:1]) if options.smallest else (tuple(SETTINGS), NOISES)
    for noise in noises:
        found = [means(s, noise, options.share) for s in settings]
        print(f"\np = {noise}, mean adjusted Rand index, {K} clusters given:\n")
        rows = [[name, *(f"{column[name]:.2f}" for column in found)] for name in found[0]]
        print_table(["method", *(f"Set {s}" for s in settings)], rows)
    size = (100, 20) if options.smallest else (2000, 1000)
    print(f"\nseconds, {size[0]:,} items x {size[1]:,} draws of ten clusters:\n")
    print_table(["method", "clusters", "wall clock", "processor", "misclassified"], times(*size))


def means(s: int, noise: float, share: float) -> dict[str, float]:
    """Mean over the replications of every method's adjusted Rand index to the truth."""
    n_replications = max(2, round(share * SETTINGS[s].replications))
    found = [adjusted_rand_indices(s, noise, replication) for replication in range(n_replications)]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def adjusted_rand_indices(s: int, noise: float, replication: int) -> dict[str, float]:
    """One replication, of the draws that ``reproduce_consensus_paper`` has."""
    setting = SETTINGS[s]
    simulation, *seeds = np.random.SeedSequence([s, round(100 * noise), replication]).spawn(1 + len(ROWS))
    sizes = "balanced" if setting.p1 is None else setting.p1
    made = pc.simulate.random_perturbation(
        setting.n_items, K, n_draws=setting.n_draws, noise=noise, sizes=sizes, random_seed=simulation
    )
    found = {
        row.name: closeness(answer(row, made.draws, np.random.default_rng(seed)), made.truth)
        for row, seed in zip(ROWS, seeds, strict=True)
    }
    found |= {
        f"ClusterEnsembles, {name}": closeness(solve(made.draws.labels), made.truth)
        for name, solve in theirs(K).items()
    }
    return found | {"Oracle": closeness(made.oracle(), made.truth)}


def theirs(n_clusters: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """What PyPI's ClusterEnsembles has of these methods; nothing where it cannot be imported."""
    if importlib.util.find_spec("ClusterEnsembles") is None:
        return {}
    solve = importlib.import_module("ClusterEnsembles").cluster_ensembles
    return {
        solver: lambda labels, solver=solver: solve(labels.astype(float), nclass=n_clusters, solver=solver)
        for solver in THEIRS
    }


def times(n_items: int, n_draws: int) -> list[list[object]]:
    """Median seconds of three calls for each method, with the number of clusters given and found by VI."""
    small, (draws, truth) = perturbed(100, 20)[0], perturbed(n_items, n_draws)
    rows: list[list[object]] = []
    for row in ROWS:
        for n_clusters in (10, None):
            options = {"n_clusters": n_clusters, "random_seed": 1, "progressbar": False, **row.options}
            pc.consensus_partition(small, method=row.method, **options)
            runs = []
            for _ in range(3):
                began = time.perf_counter(), time.process_time()
                found = pc.consensus_partition(draws, method=row.method, **options)
                runs.append((time.perf_counter() - began[0], time.process_time() - began[1]))
            wall, processor = np.median(runs, axis=0).tolist()
            wrong = f"{pc.losses.misclassification_distance(found, truth):.4f}"
            rows.append([row.name, "10 given" if n_clusters else f"{found.n_clusters} found", wall, processor, wrong])
    return rows


if __name__ == "__main__":
    main()
