"""Posteriors reweighted to other priors, beside exact expectations and beside runs under these priors.

First all 877 partitions of seven observations in normal clusters: draws of the posterior under each prior, weighted to
each other one, against the exact expected number of clusters, for 200 samples of 4,000 draws. Then the galaxies: runs
of the Gibbs sampler of benchmarks.mixtures (algorithm 3 of Neal 2000) at four concentrations, each weighted to the
others, against the runs themselves. Last the seconds that the prior of the number of clusters takes."""

import argparse
import itertools
from functools import partial

import numpy as np
from scipy import stats

import posterior_consensus as pc
from benchmarks._timing import print_table, timed
from benchmarks.mixtures import dirichlet_process_draws
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
TIMED = {
    "crp(1)": pc.priors.crp(1.0),
    "pitman_yor(1, 0.5)": pc.priors.pitman_yor(1.0, 0.5),
    "crp(half-Cauchy)": pc.priors.crp(stats.halfcauchy()),
}


def log_likelihoods(partitions):
    """Log density of the observations given each partition, normal clusters of unit variance, means integrated out."""
    covariances = np.eye(7) + SPREAD**2 * (partitions[:, :, np.newaxis] == partitions[:, np.newaxis])
    solved = np.linalg.solve(covariances, OBSERVATIONS[:, np.newaxis])[..., 0]
    return -0.5 * (solved @ OBSERVATIONS + np.linalg.slogdet(covariances)[1])


def weighted_means(rng, n_repetitions, priors=PRIORS):
    """For each pair of priors, k-hats (R,), whether the draws can tell, errors and MCSE of the mean number."""
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
            found.append((weighted.pareto_k, weighted.can_tell(), error, samples.mcse(value)))
        yield name, other, *np.array(found).T


def galaxies():
    """Velocities in units of 750 km/s, about the standard deviation of a cluster."""
    velocities = np.loadtxt("examples/data/galaxies.csv", skiprows=1) / 750
    return (velocities - velocities.mean())[:, np.newaxis]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--seed", type=int, default=1, help="of all samples and runs")
    given = parser.parse_args()
    smallest, seed = given.smallest, given.seed
    rng, rows = np.random.default_rng(seed), []
    priors = dict(list(PRIORS.items())[:2]) if smallest else PRIORS
    for name, other, k, can, error, mcse in weighted_means(rng, 3 if smallest else REPETITIONS, priors):
        within, warned = np.abs(error) <= 3 * mcse, can == 0
        bias = error.mean() / mcse.mean()
        rows.append([name, other, float(np.median(k)), f"{warned.mean():.1%}", f"{within.mean():.1%}", float(bias)])
    print()
    print_table(
        ["draws of", "weighted to", "median k-hat", "cannot tell", "within 3 errors", "mean error / MCSE"], rows
    )
    burn_in, sweeps = (10, 60) if smallest else (BURN_IN, SWEEPS)
    runs = {}
    for a in CONCENTRATIONS:
        drawn = dirichlet_process_draws(
            galaxies(), 6.0, a, burn_in + sweeps, np.random.default_rng([seed, int(10 * a)])
        )
        runs[a] = pc.as_partition_draws(drawn[burn_in:])
    best = pc.consensus_partition(runs[1.0], random_seed=1, progressbar=False)
    rows = []
    for a, b in itertools.permutations(CONCENTRATIONS, 2):
        ratio = pc.priors.crp(b).log_prob(runs[a]) - pc.priors.crp(a).log_prob(runs[a])
        found = smoothed(runs[a].samples, ratio.values)
        there, weighted = runs[b], pc.reweight(runs[a], ratio, max_pareto_k=np.inf)
        cells = []
        for draws in (weighted, there):
            loss = pc.expected_loss(draws, best, loss="vi")
            values = draws.n_clusters.astype(float)
            cells += [(draws.samples.mean(values), draws.samples.mcse(values))]
            cells += [(float(loss["expected_loss"]), float(loss["mcse"]))]
        own = [f"{value:.3f} ± {error:.3f}" for value, error in cells]
        far = [abs(cells[i][0] - cells[i + 2][0]) / np.hypot(cells[i][1], cells[i + 2][1]) for i in (0, 1)]
        kish = weighted.samples.effective_draws
        rows.append(
            [
                a,
                b,
                found.pareto_k,
                f"{found.rare:.1%}",
                f"{kish:.0f}",
                own[0],
                own[2],
                float(far[0]),
                own[1],
                own[3],
                float(far[1]),
            ]
        )
    print()
    compared = ["clusters", "of a run", "errors apart", "expected VI", "of a run", "errors apart"]
    print_table(["run at", "weighted to", "k-hat", "rare", "effective draws", *compared], rows)
    print()
    rows = []
    for name, prior in TIMED.items():
        seconds = [timed(partial(prior.n_clusters, n))() for n in ((100,) if smallest else (10_000, 100_000))]
        rows.append([name, *seconds])
    print_table(["prior of the number of clusters, seconds", *(["100"] if smallest else ["10,000", "100,000"])], rows)


if __name__ == "__main__":
    main()
