"""Convergence diagnostics of chains that sample one posterior: R-hat of the partition, verdicts, burn-in, independence.

Three tables. The stored posteriors of posterior_consensus/example_data. Four chains that are simulated from one
distribution, so that each R-hat above a limit, verdict of disagreement or chain that is not settled is a false alarm.
How often the test of near-independence rejects for items that are independent given the names of their clusters.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import SHIPPED, kept
from benchmarks._posteriors import dirichlet_process_draws

CHAINS, N_ITEMS = 4, 30
STORED = (
    "galaxies",
    "galaxies_numpyro",
    "iris",
    "two_answers",
    "nile",
    "records",
    "block_model",
    "galaxies_not_converged",
)
NOISES = ((60, 4, 0.3), (60, 4, 0.5), (60, 6, 0.65), (100, 4, 0.8))


def tables(smallest):
    some = slice(1 if smallest else None)
    yield "", (_stored(name) for name in STORED[some])
    yield "", (_simulated(name, chains, 3 if smallest else n) for name, (chains, n) in list(CASES.items())[some])
    yield "", (_independent(*noise, *((2, 40) if smallest else (100, 200))) for noise in NOISES[some])


def _stored(name):
    found = pc.diagnose(SHIPPED / f"{name}.nc")
    return {
        "posterior": name,
        "chains x draws": f"{found.n_chains} x {found.n_draws // found.n_chains:,}",
        "ESS of the partition": f"{found.partition_ess:.0f}",
        "R-hat of the partition": f"{found.partition_rhat:.4f}",
        "largest R-hat of a summary": f"{found.summaries['rhat'].max().item():.3f}",
        "status": found.status,
    }


def items_stay(stay, length):
    """Chains (chains, length, items) in which each item keeps its label by itself with this probability."""

    def chains(rng):
        home, noise = rng.integers(4, size=N_ITEMS), rng.random(N_ITEMS)
        shape = length, N_ITEMS
        fresh = [np.where(rng.random(shape) < noise, rng.integers(4, size=shape), home) for _ in range(CHAINS)]
        return np.stack([kept(labels, stay, rng) for labels in fresh])

    return chains


def partitions_stay(stay, length):
    """Chains (chains, length, items) whose partition stays with this probability, else all items are drawn anew."""

    def chains(rng):
        moves = rng.random((CHAINS, length)) >= stay
        moves[:, 0] = True
        last = np.maximum.accumulate(np.where(moves, np.arange(length), 0), axis=1)
        return np.take_along_axis(rng.integers(3, size=(CHAINS, length, N_ITEMS)), last[..., np.newaxis], axis=1)

    return chains


def mixture(length):
    """Chains (chains, length, items) of a Gibbs sampler of a Dirichlet process mixture, without their first draws."""

    def chains(rng):
        observations = rng.normal(0, 3, 4)[rng.integers(4, size=N_ITEMS), np.newaxis] + rng.normal(size=(N_ITEMS, 1))
        return np.stack(
            [dirichlet_process_draws(observations, 4.0, 1.0, 200 + length, rng)[200:] for _ in range(CHAINS)]
        )

    return chains


CASES = {  # and the number of sets of chains
    "independent draws, 250": (partitions_stay(0.0, 250), 40),
    "items stay with 0.9, 250": (items_stay(0.9, 250), 40),
    "items stay with 0.9, 1,000": (items_stay(0.9, 1_000), 40),
    "partitions stay with 0.9, 250": (partitions_stay(0.9, 250), 40),
    "partitions stay with 0.9, 1,000": (partitions_stay(0.9, 1_000), 40),
    "partitions stay with 0.9, 2,500": (partitions_stay(0.9, 2_500), 40),
    "Gibbs sampler, 1,000": (mixture(1_000), 10),
}


def _simulated(name, chains, repetitions):
    rhats, sizes, disagree, unsettled = [], [], [], []
    for seed in range(repetitions):
        draws = pc.as_partition_draws(chains(np.random.default_rng(seed)))
        found = pc.diagnose(draws)
        rhats.append(found.partition_rhat)
        sizes.append(found.partition_ess / CHAINS)
        disagree.append(found.status == "disagree")
        unsettled.append(1 - pc.diagnostics.sequential_distances(draws).burn_in["settled"].values.mean())
    middle, high = np.quantile(rhats, [0.5, 0.95])
    return {
        "chains of": name,
        "sets": repetitions,
        "ESS a chain": f"{np.median(sizes):.0f}",
        "R-hat of the partition: median": f"{middle:.4f}",
        "95% quantile": f"{high:.4f}",
        "above 1.01": f"{np.mean(np.array(rhats) > 1.01):.0%}",
        "above 1.05": f"{np.mean(np.array(rhats) > 1.05):.0%}",
        'status "disagree"': f"{np.mean(disagree):.0%}",
        "chains not settled": f"{np.mean(unsettled):.1%}",
    }


def _independent(n_items, n_clusters, noise, n_sets, n_draws):
    p_values = []
    for seed in range(n_sets):
        made = pc.simulate.random_perturbation(n_items, n_clusters, n_draws=n_draws, noise=noise, random_seed=seed)
        p_values.append(pc.diagnostics.near_independence(made.draws, random_seed=seed, progressbar=False).p_value)
    rejected = f"{np.mean(np.array(p_values) <= 0.05):.1%}"
    return {
        "items": n_items,
        "clusters": n_clusters,
        "labels that are random": f"{noise:.0%}",
        "rejected at 0.05": rejected,
    }
