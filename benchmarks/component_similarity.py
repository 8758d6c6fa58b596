"""Groups that are not normal, and a mixture of normals that splits them: which partition has the groups again?

Two groups of 300 items each in one dimension. A Gibbs sampler of a mixture of ten normals with a sparse Dirichlet
prior; then the consensus under VI of the sampled labels, and two of the similarity of the components: under Binder's
loss at the mean similarity and under the lower bound of VI. Prints the table of docs/developers/theory_tables.md: the
number of clusters, that of clusters with at least 5% of the items, and the adjusted Rand index with the truth.
"""

import numpy as np
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from benchmarks._runner import used

N_COMPONENTS, SWEEPS, BURN_IN, EVERY = 10, 3000, 1000, 4
GROUPS = {
    "normal": (lambda rng, n: rng.normal(0.0, 1.0, n), lambda rng, n: rng.normal(8.0, 1.0, n)),
    "skewed": (lambda rng, n: rng.gamma(1.5, 1.0, n), lambda rng, n: 20.0 - rng.gamma(1.5, 1.0, n)),
    "heavy-tailed": (lambda rng, n: rng.standard_t(3, n), lambda rng, n: 16.0 + rng.standard_t(3, n)),
    "skewed, heavy-tailed": (
        lambda rng, n: rng.lognormal(0.0, 0.6, n),
        lambda rng, n: 14.0 - rng.lognormal(0.0, 0.6, n),
    ),
    "flat": (lambda rng, n: rng.uniform(0.0, 6.0, n), lambda rng, n: rng.uniform(10.0, 16.0, n)),
}


def groups(shape, rng, n=300):
    """Data (2 n,) of two groups of a shape, and the group of each item."""
    return np.concatenate([sample(rng, n) for sample in GROUPS[shape]]), np.repeat([0, 1], n)


def gibbs(y, rng, sweeps=SWEEPS, burn_in=BURN_IN, every=EVERY):
    """Labels (N, n), means and standard deviations (N, K) of a mixture of normals with normal-inverse-gamma priors."""
    n, k = y.size, N_COMPONENTS
    centre, spread = y.mean(), y.std()
    shape, kappa = 2.0, 0.05
    scale = shape * (spread / 5) ** 2
    labels = np.argsort(np.argsort(y)) * k // n
    kept = []
    for sweep in range(sweeps):
        table = np.eye(k)[labels]
        sizes = table.sum(axis=0)
        means = table.T @ y / np.maximum(sizes, 1)
        squares = table.T @ y**2 - sizes * means**2
        shift = kappa * sizes / (kappa + sizes) * (means - centre) ** 2
        variance = (scale + (squares + shift) / 2) / rng.gamma(shape + sizes / 2)
        mu = rng.normal((kappa * centre + sizes * means) / (kappa + sizes), np.sqrt(variance / (kappa + sizes)))
        weights = np.log(np.maximum(rng.dirichlet(1.0 / k + sizes), 1e-300))
        logs = weights - 0.5 * np.log(variance) - 0.5 * (y[:, np.newaxis] - mu) ** 2 / variance
        labels = np.argmax(logs + rng.gumbel(size=logs.shape), axis=1)
        if sweep >= burn_in and sweep % every == 0:
            kept.append((labels, mu, np.sqrt(variance)))
    return tuple(np.stack(part) for part in zip(*kept, strict=True))


def compared(shape, seed, n=300, **options):
    """Number of clusters, of large ones and adjusted Rand index of three partitions; the similarity; its seconds."""
    rng = np.random.default_rng(seed)
    y, truth = groups(shape, rng, n)
    labels, mean, sd = gibbs(y, rng, **options)
    quiet = {"random_seed": 1, "progressbar": False}
    similarity, seconds, *_ = used(pc.component_similarity, labels, mean=mean, sd=sd, first_label=0)
    found = {
        "VI of the labels": pc.consensus_partition(labels, **quiet),
        "components, mean": pc.consensus_partition(similarity, loss=pc.binder(tau="mean"), **quiet),
        "components, VI bound": pc.consensus_partition(similarity, loss="vi_lower_bound", **quiet),
    }
    large = {name: np.sum(np.bincount(best.labels) >= 0.05 * y.size) for name, best in found.items()}
    scores = {name: adjusted_rand_score(truth, best.labels) for name, best in found.items()}
    return {name: (best.n_clusters, large[name], scores[name]) for name, best in found.items()}, similarity, seconds


def span(values):
    """The range of numbers in words."""
    return f"{min(values):.0f}" if min(values) == max(values) else f"{min(values):.0f}-{max(values):.0f}"


def tables(smallest):
    options = {"n": 20, "sweeps": 120, "burn_in": 20} if smallest else {}
    yield "", (_row(shape, 2 if smallest else 10, options) for shape in GROUPS)


def _row(shape, repeats, options):
    runs = [compared(shape, seed, **options) for seed in range(repeats)]
    row = {"groups": shape, "components a draw": f"{np.mean([run[1].n_components.mean() for run in runs]):.1f}"}
    for name in runs[0][0]:
        numbers, large, scores = np.array([run[0][name] for run in runs]).T
        row[name] = f"{span(numbers)}, large {span(large)}; {scores.mean():.3f} ({scores.min():.3f})"
    return row | {"seconds": f"{np.mean([run[2] for run in runs]):.2f}"}
