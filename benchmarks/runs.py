"""Consensus of independent runs: expected VI and Binder's loss and seconds, beside other programs.

Runs of 1,000 to 1,000,000 items. Each program has its defaults. Those that need a number of clusters get the most
frequent one of the runs, and the one that ours found under VI. Those that make matrices of items x items stop where
these exceed the memory of the machine. Ours has VI, Binder's loss, and the summary under VI with each item's certainty.
Each call runs in a process of its own; ours after a call that warms up. Peers are left out unless installed. bctpy
0.6.1, which netneurotools calls, needs NumPy below 2.4. ensembleclustering is a published copy of ClusterEnsembles; its
conversion of a graph for METIS, which fails with today's SciPy, is replaced.

The second table has complete runs, and the same runs of 80% of the items each, with and without noise.

    pip install netneurotools "numpy<2.4"
    pip install --no-deps ensembleclustering
    pip install pymetis kahypar
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import average, fcluster

import posterior_consensus as pc
from benchmarks._runner import apart, used

SIZES = (1_000, 10_000, 100_000, 1_000_000)
N_RUNS, K = 40, 16
SUBSAMPLES = 100_000, 160  # items and runs of the second table
MISSING = 0.2  # share of items that a run lacks
IN_NO_CLUSTER = 0.05  # share of items that a run calls noise
NOISE = 0.15  # share of items that a run puts into the other cluster of a pair
MERGED = 0.3  # probability that a run merges the two


class Peer(NamedTuple):
    """Another program.

    Attributes
    ----------
    function : callable
        Labels from an array of runs x items and, if it takes one, the number of clusters.
    needs : str
        Its package.
    matrices : float
        Arrays of items x items, of eight bytes, that it holds at once.
    takes_number : bool
        Whether it takes a number of clusters.
    """

    function: Callable[..., np.ndarray]
    needs: str
    matrices: float = 0.0
    takes_number: bool = True


def find_consensus(runs: np.ndarray) -> np.ndarray:
    from netneurotools.modularity import find_consensus

    return find_consensus(runs.T, seed=1)


def cluster_ensembles(runs: np.ndarray, n_clusters: int) -> np.ndarray:
    from ensembleclustering import ClusterEnsembles

    ClusterEnsembles.to_pymetis_format = as_metis
    return ClusterEnsembles.cluster_ensembles(runs, nclass=n_clusters)


def as_metis(graph: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, neighbours and integer weights of a sparse graph."""
    rows = graph.tocsr()
    return rows.indptr, rows.indices, rows.data.astype(int)


def average_linkage(runs: np.ndarray, n_clusters: int) -> np.ndarray:
    n_items = runs.shape[1]
    apart_in = np.zeros(n_items * (n_items - 1) // 2, np.float32)
    ends = np.cumsum(np.arange(n_items - 1, 0, -1))
    for i, (start, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
        for run in runs:
            apart_in[start:end] += run[i + 1 :] != run[i]
    return fcluster(average(apart_in), n_clusters, "maxclust")


PEERS = {
    "netneurotools, `find_consensus`": Peer(find_consensus, "netneurotools", 7.2, takes_number=False),
    "ensembleclustering, `cluster_ensembles`": Peer(cluster_ensembles, "ensembleclustering"),
    "SciPy, average linkage": Peer(average_linkage, "scipy", 1.25),
}
OURS = {"ours, VI": "vi", "ours, Binder": "binder", "ours, `summarize`": None}


KINDS = ("complete", "80% of the items", "80% of the items, of which 5% noise")


def tables(smallest):
    yield "", _rows((60,) if smallest else SIZES)
    yield "Subsamples", _of_subsamples(*((60, 8) if smallest else SUBSAMPLES))


def _rows(sizes):
    for n_items in sizes:
        numbers = [int(np.bincount([np.unique(run).size for run in make_runs(n_items)]).argmax())]
        for name, loss in OURS.items():
            cells = apart(measured, n_items, loss)
            numbers += [cells["clusters"]] * (loss == "vi")
            yield _row(n_items, name, cells)
        for name, peer in PEERS.items():
            for number in dict.fromkeys(numbers) if peer.takes_number else [None]:
                yield _row(n_items, name, _of_peer(name, peer, n_items, number))


def _row(n_items, name, cells):
    columns = dict.fromkeys(("seconds", "CPU", "GB", "clusters", "expected VI", "expected Binder"), "")
    return {"items": n_items, "program": name} | columns | cells


def _of_peer(name: str, peer: Peer, n_items: int, number: int | None) -> dict[str, object]:
    gigabytes = 8e-9 * peer.matrices * n_items**2
    if find_spec(peer.needs) is None:
        return {"seconds": "not installed"}
    if gigabytes > 1e-9 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        return {"seconds": f"needs {gigabytes:,.0f} GB"}
    return apart(compared, name, n_items, number)


def _of_subsamples(n_items: int, n_runs: int):
    for name, loss in OURS.items():
        for kind in KINDS:
            yield {"runs": kind, "call": name} | apart(subsampled, n_items, n_runs, kind, loss)


def subsampled(n_items: int, n_runs: int, kind: str, loss: str | None) -> dict[str, object]:
    """Our consensus or summary of complete runs, or of parts of them, after a call that warms up."""
    solved(of_kind(100, 8, kind), loss)
    call = used(solved, of_kind(n_items, n_runs, kind), loss)
    return {"seconds": call.seconds, "CPU": call.cpu, "GB": call.gigabytes, "clusters": int(call.result.max()) + 1}


def of_kind(n_items: int, n_runs: int, kind: str) -> pc.results.PartitionDraws:
    """Runs of all items, or of some of them."""
    runs, rng = make_runs(n_items, n_runs), np.random.default_rng(2)
    if kind == KINDS[0]:
        return pc.as_runs(runs)
    labels = np.where(rng.random(runs.shape) < MISSING, -1, runs)
    if kind == KINDS[1]:
        return pc.as_runs(labels, missing=-1)
    labels[(rng.random(runs.shape) < IN_NO_CLUSTER) & (labels >= 0)] = -2
    return pc.as_runs(labels, missing=-1, noise=-2)


def measured(n_items: int, loss: str | None) -> dict[str, object]:
    """Our consensus under a loss or, for None, our summary, after a call that warms up."""
    solved(make_runs(100), loss)
    runs = make_runs(n_items)
    return quality(runs, used(solved, runs, loss))


def compared(name: str, n_items: int, number: int | None) -> dict[str, object]:
    """The consensus of another program."""
    runs = make_runs(n_items)
    return quality(runs, used(PEERS[name].function, runs, *([] if number is None else [number])))


def solved(runs: np.ndarray | pc.results.PartitionDraws, loss: str | None) -> np.ndarray:
    draws = pc.as_runs(runs)
    if loss is None:
        return pc.summarize(draws, random_seed=1, progressbar=False).labels.values
    return pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False).labels.values


def quality(runs: np.ndarray, call) -> dict[str, object]:
    """Expected losses of the labels, with six digits, and what the call took."""
    draws, labels = pc.as_runs(runs), np.unique(call.result, return_inverse=True)[1]
    losses = {name: float(pc.expected_loss(draws, labels, loss=name)["expected_loss"]) for name in ("vi", "binder")}
    return {
        **{"seconds": call.seconds, "CPU": call.cpu, "GB": call.gigabytes, "clusters": int(labels.max()) + 1},
        **{"expected VI": f"{losses['vi']:.4f}", "expected Binder": f"{losses['binder']:.5f}"},
    }


def make_runs(n_items: int, n_runs: int = N_RUNS) -> np.ndarray:
    """Runs x items: clusters of unequal size in pairs, which a run may merge, and between which items go."""
    rng = np.random.default_rng(1)
    truth = rng.choice(K, n_items, p=rng.dirichlet(np.full(K, 3.0)))
    runs = np.where(rng.random((n_runs, n_items)) < NOISE, truth ^ 1, truth).astype(np.int32)
    merges = rng.random((n_runs, K // 2)) < MERGED
    return np.where(np.take_along_axis(merges, runs // 2, axis=1), runs & ~1, runs)
