"""Posteriors reweighted to other priors, beside exact expectations and beside runs under these priors.

First all 877 partitions of seven observations in normal clusters: draws of the posterior under each prior, weighted to
each other one, against the exact expected number of clusters, for 200 samples of 4,000 draws. Then the galaxies: runs
of the Gibbs sampler of benchmarks._posteriors (algorithm 3 of Neal 2000) at four concentrations, each weighted to the
others, against the runs themselves. Then draws of few numbers of clusters, whose ratios depend on all sizes and so are
nearly equal rather than equal. Last the seconds that the prior of the number of clusters takes."""

import itertools

import numpy as np
from scipy import stats

import posterior_consensus as pc
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._runner import used
from posterior_consensus.ensemble.importance import smoothed
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.ensemble.samples import Samples

OBSERVATIONS, SPREAD = np.array([-2.1, -1.7, -0.2, 0.1, 0.4, 1.9, 2.6]), 2.0
N_DRAWS, REPETITIONS = 4_000, 200
CONCENTRATIONS, BURN_IN, SWEEPS = (0.5, 1.0, 2.0, 4.0), 500, 8_000
PRIORS = {
    "crp(1)": pc.priors.crp(1.0),
    "crp(3)": pc.priors.crp(3.0),
    "crp(gamma)": pc.priors.crp((2.0, 4.0)),
    "pitman_yor(1, 0.3)": pc.priors.pitman_yor(1.0, 0.3),
    "dirichlet(1, M = 5)": pc.priors.dirichlet_multinomial(1.0, 5),
    "mfm(1, geometric)": pc.priors.mixture_of_finite_mixtures(1.0, stats.geom(0.3)),
}
FACTORS, FEW, MANY = (0.5, 0.9, 1.1, 1.5, 2.0, 4.0), 1_000, 100  # draws of a sample, samples in the long run
TIMED = {
    "crp(1)": pc.priors.crp(1.0),
    "pitman_yor(1, 0.5)": pc.priors.pitman_yor(1.0, 0.5),
    "crp(half-Cauchy)": pc.priors.crp(stats.halfcauchy()),
}
OPTIONS = {"--seed": {"type": int, "default": 1, "help": "of all samples and runs"}}


def log_likelihoods(partitions):
    """Log density of the observations given each partition, normal clusters of unit variance, means integrated out."""
    covariances = np.eye(7) + SPREAD**2 * (partitions[:, :, np.newaxis] == partitions[:, np.newaxis])
    solved = np.linalg.solve(covariances, OBSERVATIONS[:, np.newaxis])[..., 0]
    return -0.5 * (solved @ OBSERVATIONS + np.linalg.slogdet(covariances)[1])


def weighted_means(rng, n_repetitions, priors=PRIORS):
    """For each pair of priors, k-hats (R,), whether weights are reliable, errors and MCSE of the mean number."""
    partitions = np.vstack(list(enumerate_partitions(7)))
    clusters, log_likelihood = partitions.max(axis=1) + 1.0, log_likelihoods(partitions)
    log_priors = {name: prior.log_prob(partitions).values for name, prior in priors.items()}
    for name, other in itertools.permutations(priors, 2):
        if np.any((log_priors[name] == -np.inf) & (log_priors[other] > -np.inf)):
            continue  # the first prior excludes what the other allows
        exact = {one: np.exp(log_priors[one] + log_likelihood) for one in (name, other)}
        wanted = exact[other] @ clusters / exact[other].sum()
        found = []
        for _ in range(n_repetitions):
            rows = rng.choice(len(partitions), N_DRAWS, p=exact[name] / exact[name].sum())
            ratio = log_priors[other][rows] - log_priors[name][rows]
            weighted = smoothed(Samples.of_one_chain(N_DRAWS), ratio)
            samples, value = weighted.samples, clusters[rows]
            error = samples.mean(value) - wanted
            found.append((weighted.pareto_k, weighted.is_reliable(), error, samples.mcse(value)))
        yield name, other, *np.array(found).T


def galaxies():
    """Velocities in units of 750 km/s, about the standard deviation of a cluster."""
    velocities = np.loadtxt("examples/data/galaxies.csv", skiprows=1) / 750
    return (velocities - velocities.mean())[:, np.newaxis]


def tables(smallest, seed):
    priors = dict(list(PRIORS.items())[:2]) if smallest else PRIORS
    rng = np.random.default_rng(seed)
    yield "", (_exact(*pair) for pair in weighted_means(rng, 3 if smallest else REPETITIONS, priors))
    yield "", _runs(seed, *((10, 60) if smallest else (BURN_IN, SWEEPS)))
    yield "", _nearly_equal(rng, *((3, 1) if smallest else (60, MANY)))
    yield "", (_seconds(name, (100,) if smallest else (10_000, 100_000)) for name in TIMED)


def _exact(name, other, k, can, error, mcse):
    return {
        "draws of": name,
        "weighted to": other,
        "median k-hat": float(np.median(k)),
        "unreliable": f"{np.mean(can == 0):.1%}",
        "within 3 errors": f"{np.mean(np.abs(error) <= 3 * mcse):.1%}",
        "mean error / MCSE": float(error.mean() / mcse.mean()),
    }


def _runs(seed, burn_in, sweeps):
    runs = {}
    for a in CONCENTRATIONS:
        rng = np.random.default_rng([seed, int(10 * a)])
        runs[a] = pc.as_partition_draws(dirichlet_process_draws(galaxies(), 6.0, a, burn_in + sweeps, rng)[burn_in:])
    best = pc.consensus_partition(runs[1.0], random_seed=1, progressbar=False)
    for a, b in itertools.permutations(CONCENTRATIONS, 2):
        ratio = pc.priors.crp(b).log_prob(runs[a]) - pc.priors.crp(a).log_prob(runs[a])
        found = smoothed(runs[a].samples, ratio.values)
        weighted = pc.reweight(runs[a], ratio, max_pareto_k=np.inf)
        row = {"run at": a, "weighted to": b, "k-hat": found.pareto_k}
        row["effective draws"] = f"{weighted.samples.effective_draws:.0f}"
        for what, one, other in zip(
            ("clusters", "expected VI"), _means(weighted, best), _means(runs[b], best), strict=True
        ):
            row[what] = f"{one[0]:.3f} ± {one[1]:.3f}"
            row[f"{what} of a run"] = f"{other[0]:.3f} ± {other[1]:.3f}"
            row[f"errors apart, {what}"] = float(abs(one[0] - other[0]) / np.hypot(one[1], other[1]))
        yield row


def _means(draws, best):
    """Mean number of clusters and expected VI, with their errors."""
    loss = pc.expected_loss(draws, best, loss="vi")
    numbers = draws.n_clusters.astype(float)
    yield draws.samples.mean(numbers), draws.samples.mcse(numbers)
    yield float(loss["expected_loss"]), float(loss["mcse"])


def _blurred(rng, n_draws):
    """Draws of five clusters of 178 items, with noise and often a small sixth to eighth cluster."""
    labels = np.tile(np.repeat(np.arange(5), [61, 51, 39, 25, 2]), (n_draws, 1))
    labels = np.where(rng.random(labels.shape) < 0.06, rng.integers(4, size=labels.shape), labels)
    more = rng.choice(4, n_draws, p=[0.74, 0.23, 0.027, 0.003])
    for k in range(1, 4):
        for row in np.flatnonzero(more >= k):
            labels[row, rng.choice(178, 1 + rng.geometric(0.4), replace=False)] = 4 + k
    return pc.as_partition_draws(labels)


def _nearly_equal(rng, n_samples, n_long):
    prior = pc.priors.dirichlet_multinomial(0.1, 8)
    for factor in FACTORS:
        other, sums, rows = pc.priors.dirichlet_multinomial(0.1 * factor, 8), np.zeros(2), []
        for _ in range(n_long):
            draws = _blurred(rng, N_DRAWS)
            weights = np.exp(other.log_prob(draws) - prior.log_prob(draws)).values
            sums += weights.sum(), weights @ draws.n_clusters
        for _ in range(n_samples):
            draws = _blurred(rng, FEW)
            found = smoothed(draws.samples, (other.log_prob(draws) - prior.log_prob(draws)).values)
            numbers, share = draws.n_clusters.astype(float), found.samples.effective_draws / FEW
            error = (found.samples.mean(numbers) - sums[1] / sums[0]) / found.samples.mcse(numbers)
            rows.append((found.pareto_k, found.rare, share, found.is_reliable(), error))
        k, rare, share, reliable, errors = np.array(rows).T
        yield {
            "dirichlet_multinomial(0.1, 8) to": f"{0.1 * factor:.2g}",
            "k-hat, median": float(np.median(k)),
            "rare": float(np.median(rare)),
            "effective draws": f"{np.median(share):.0%}",
            "reliable": f"{reliable.mean():.0%}",
            "errors in MCSE, root mean square": float(np.sqrt(np.mean(errors**2))),
        }


def _seconds(name, sizes):
    seconds = {f"{n:,}": used(TIMED[name].n_clusters, n).seconds for n in sizes}
    return {"prior of the number of clusters, seconds": name} | seconds
