"""Agreement: the random perturbation experiments, scikit-learn's digits as a table, and a large sparse table.

Four tables. Paths of chains that share a truth, that have two, or of which one has another; how often the verdict is
right. Co-clustering of 900 digits by 64 pixels, and what SCCC makes of the clusterings before and after; the same by
single moves only. The time and memory of 20,000 rows by 5,000 columns.
"""

import statistics
from unittest.mock import patch

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from benchmarks._runner import used
from posterior_consensus.agreement import coclustering

N_ITEMS, NOISE, N_CLUSTERS = 100, 0.45, 6
SETTINGS = {  # truth of each chain, draws of each
    "one truth, 6 chains of 6 draws": ([0] * 6, 6),
    "one truth, 6 chains of 30 draws": ([0] * 6, 30),
    "two truths, 3 + 3 chains of 30 draws": ([0, 0, 0, 1, 1, 1], 30),
    "two truths, 3 + 3 chains of 6 draws": ([0, 0, 0, 1, 1, 1], 6),
    "two truths, 5 + 1 chains of 30 draws": ([0, 0, 0, 0, 0, 1], 30),
}
SHOWN = 0.0, 0.25, 0.5, 0.8, 1.0, 1.5, 2.0  # prices
REPEATS = 20


def tables(smallest):
    settings = list(SETTINGS.items())[: 1 if smallest else None]
    yield "", (_path(name, *setting, 1 if smallest else REPEATS) for name, setting in settings)
    digits = (1, 150) if smallest else (10, 900)
    yield "", _digits(*digits)
    with patch.object(coclustering, "_REARRANGED", 0):  # single moves only, as in the paper
        yield "", _digits(*digits)[-1:]
    yield "", (_large(*((400, 100, 4_000) if smallest else (20_000, 5_000, 2_000_000))) for _ in range(1))


def _chains(truth_of, n_draws, seed):
    """Draws of each chain (chains, draws, items) from the random perturbation model, and the chains' truths."""
    rng = np.random.default_rng(seed)
    truths = rng.integers(N_CLUSTERS, size=(max(truth_of) + 1, N_ITEMS))
    made = [
        pc.simulate.random_perturbation(
            N_ITEMS, N_CLUSTERS, n_draws=n_draws, noise=NOISE, truth=truths[k], random_seed=rng
        )
        for k in truth_of
    ]
    return np.stack([one.draws.labels for one in made]), truths[list(truth_of)]


def _path(name, truth_of, n_draws, repeats):
    agreement, truth, verdicts, seconds = [], [], [], []
    for seed in range(repeats):
        draws, truths = _chains(truth_of, n_draws, seed)
        own = [pc.consensus.pair_threshold(chain, random_seed=0, progressbar=False).tau for chain in draws]
        loss = pc.binder(tau=statistics.median(own))
        call = used(pc.agreement.agreement_path, draws, loss=loss, prices=SHOWN, random_seed=0, progressbar=False)
        path = call.result
        seconds.append(call.seconds)
        agreement.append(path.table["averaged_jaccard"].sel(price=list(SHOWN)).values)
        found = path.labels.sel(price=[0.0, 0.5]).values
        truth.append([np.mean([adjusted_rand_score(t, x) for t, x in zip(truths, of, strict=True)]) for of in found])
        groups = [sorted(group) for group in path.groups]
        planted = [np.flatnonzero(np.array(truth_of) == k).tolist() for k in range(max(truth_of) + 1)]
        verdicts.append([(path.status == "different modes") == (len(planted) > 1), sorted(groups) == planted])
    columns = [*(f"Jaccard at {price:g}" for price in SHOWN), "ARI at 0", "ARI at 0.5"]
    means = [f"{value:.2f}" for value in (*np.mean(agreement, axis=0), *np.mean(truth, axis=0))]
    right = [f"{sum(of)} of {repeats}" for of in zip(*verdicts, strict=True)]
    row = {"chains": name} | dict(zip(columns, means, strict=True))
    return row | {"verdict right": right[0], "groups right": right[1], "s": statistics.median(seconds)}


def _accuracy(labels, truth):
    """Share of the items that have the most frequent truth of their cluster, averaged over clusterings."""
    return np.mean(
        [sum(np.bincount(truth[one == k]).max() for k in range(one.max() + 1)) / truth.size for one in labels]
    )


def _digits(seeds, n_rows):
    digits = load_digits()
    table, truth = digits.data[:n_rows], digits.target[:n_rows]
    measures = {"SCCC": _stability, "components": _components}
    measures["accuracy"] = lambda one: _accuracy(one.row_labels.values, truth)
    rows = []
    for seed in range(seeds):
        given = {"n_row_clusters": 10, "n_column_clusters": 16, "random_seed": seed, "progressbar": False}
        before = pc.agreement.cocluster(table, n_rounds=0, **given)
        call = used(pc.agreement.cocluster, table, **given)
        row = {"seed": seed}
        for side in ("row", "column"):
            ends = call.result.trace[f"{side}_jaccard"].values[[0, -1]].tolist()
            row |= {f"{side}s, before": ends[0], f"{side}s, after": ends[1]}
        for name, measure in measures.items():
            row |= {f"{name}, before": measure(before), f"{name}, after": measure(call.result)}
        rows.append(row | {"s": call.seconds, "CPU s": call.cpu})
    means = {column: float(np.mean([row[column] for row in rows])) for column in rows[0]}
    return [*rows, means | {"seed": "mean"}]


def _stability(found):
    """Averaged Jaccard index of SCCC over its feasible separations."""
    return pc.consensus_partition(
        found.row_draws, loss="binder", method="sccc", n_clusters=10, random_seed=0, progressbar=False
    ).info.stability


def _components(found):
    return float(pc.stable_components(found.row_draws).n_components)


def _large(n_rows, n_columns, n_entries):
    """A table with planted clusters, of ones."""
    k, m = (10, 16), 10
    rng = np.random.default_rng(0)
    of_rows, of_columns = rng.integers(k[0], size=n_rows), rng.integers(k[1], size=n_columns)
    means = rng.gamma(0.5, size=k) + 0.05
    means /= means.max()
    cells = np.empty(0, np.int64)
    while cells.size < n_entries:
        row, column = rng.integers(n_rows, size=n_entries), rng.integers(n_columns, size=n_entries)
        kept = rng.random(n_entries) < means[of_rows[row], of_columns[column]]
        cells = np.union1d(cells, (row * n_columns + column)[kept])
    chosen = np.sort(rng.permutation(cells)[:n_entries])
    table = sparse.csr_array((np.ones(chosen.size), np.divmod(chosen, n_columns)), shape=(n_rows, n_columns))
    pc.agreement.cocluster(np.eye(3), n_row_clusters=2, n_column_clusters=2, n_clusterings=2, random_seed=0)  # compiles
    sizes = {"n_row_clusters": k[0], "n_column_clusters": k[1], "n_clusterings": m}
    call = used(pc.agreement.cocluster, table, **sizes, random_seed=0, progressbar=False)
    ends = {side: call.result.trace[f"{side}_jaccard"].values[[0, -1]] for side in ("row", "column")}
    return {
        "table": f"{n_rows:,} x {n_columns:,}",
        "entries": table.nnz,
        "clusters": f"{k[0]} and {k[1]}, {m} times",
        "s": call.seconds,
        "CPU s": call.cpu,
        "memory beyond the table, MB": round(1000 * call.gigabytes),
        "rows' Jaccard": "{:.2f} to {:.2f}".format(*ends["row"]),
        "columns'": "{:.2f} to {:.2f}".format(*ends["column"]),
    }
