"""Convergence diagnostics of chains that sample one posterior: R-hat of the partition, verdicts, burn-in, independence.

Four tables. The stored posteriors of posterior_consensus/example_data. Four chains that are simulated from one
distribution, so that each R-hat above a limit, verdict of disagreement or chain that is not settled is a false alarm.
Four chains of which one never visits a mode, and four that all do. How often the test of near-independence rejects for
items that are independent given the names of their clusters.
"""

from functools import cache

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
VISITS = " visits, and in "  # of a verdict on draws that a chain does not visit
NOISES = ((60, 4, 0.3), (60, 4, 0.5), (60, 6, 0.65), (100, 4, 0.8))


def tables(smallest):
    some = slice(1 if smallest else None)
    yield "", (_stored(name) for name in STORED[some])
    yield "", (_simulated(name, chains, 3 if smallest else n) for name, (chains, n) in list(CASES.items())[some])
    yield "", (_missed(*case, *((2, 2) if smallest else (12, 24))) for case in MISSED[some])
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


def _moved():
    """Three clusters of 10 items, and five of the first in the second."""
    one = np.repeat(range(3), 10)
    return np.stack([one, np.where(np.arange(30) < 5, 1, one)])


def _united():
    """Eight clusters of 6 items, and two of them in one."""
    one = np.repeat(range(8), 6)
    return np.stack([one, np.maximum(one, 1)])


def _split():
    """Four clusters of 10 items, and the first in two."""
    one = np.repeat(range(4), 10)
    return np.stack([one, np.where(np.arange(40) < 5, 4, one)])


def _unlike():
    """Two random partitions of 60 items into five clusters."""
    return np.random.default_rng(1).integers(5, size=(2, 60))


def at_second(rng, share, ess, length):
    """Whether each draw (chains, length) is in a mode of this share, whose mean has this effective sample size."""
    correlation = max(0.0, (length - ess) / (length + ess))
    enters, leaves = share * (1 - correlation), (1 - share) * (1 - correlation)
    at = np.empty((CHAINS, length), bool)
    at[:, 0] = rng.random(CHAINS) < share
    for t, chances in enumerate(rng.random((length - 1, CHAINS)), start=1):
        at[:, t] = np.where(at[:, t - 1], chances >= leaves, chances < enters)
    return at


def two_modes(partitions, noise, stay):
    """Function from at_second's result to chains: a share of labels is random, and stays so from draw to draw."""

    def chains(rng, at):
        labels = partitions()[at.astype(int)]
        random = np.where(rng.random(labels.shape) < noise, rng.integers(labels.max() + 2, size=labels.shape), -1)
        random = np.stack([kept(one, stay, rng) for one in random])
        return np.where(random < 0, labels, random)

    return chains


@cache
def _regions(name):
    """Labels of the draws of a stored posterior, and whether each is in the region of the second of two particles."""
    draws = pc.as_partition_draws(SHIPPED / f"{name}.nc")
    particles = pc.particles(draws, 2, random_seed=1, progressbar=False)
    return draws.labels, particles.assignment.values == 1


def stored(name):
    """Function from at_second's result to chains: each visit is a stretch of a stored posterior's draws in a region."""

    def chains(rng, at):
        labels, inside = _regions(name)
        begins = np.diff(at, axis=1, prepend=~at[:, :1])
        entry = np.maximum.accumulate(np.where(begins, np.arange(at.shape[1]), 0), axis=1)
        first = np.take_along_axis(rng.integers(len(labels), size=at.shape), entry, axis=1)
        step = first + np.arange(at.shape[1]) - entry
        regions = [np.flatnonzero(inside == side) for side in (False, True)]
        return labels[np.where(at, *(region[step % region.size] for region in regions[::-1]))]

    return chains


MISSED = (  # name, function from states to chains, share of the mode, its effective sample size in a chain, draws
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.05, 100, 1_000),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.1, 50, 250),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.1, 50, 1_000),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.1, 100, 1_000),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.1, 300, 1_000),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.1, 300, 4_000),
    ("5 of 30 items move", two_modes(_moved, 0.05, 0.0), 0.2, 50, 1_000),
    ("two of 8 clusters in one", two_modes(_united, 0.1, 0.5), 0.1, 100, 1_000),
    ("a cluster of 10 in two", two_modes(_split, 0.1, 0.5), 0.1, 100, 1_000),
    ("a cluster of 10 in two", two_modes(_split, 0.1, 0.5), 0.1, 300, 1_000),
    ("other clusters", two_modes(_unlike, 0.1, 0.9), 0.1, 100, 1_000),
    ("galaxies", stored("galaxies"), 0.1, 100, 1_000),
    ("iris", stored("iris"), 0.1, 100, 1_000),
)


def _missed(name, chains, share, ess, length, sets, sets_that_agree):
    """How often a mode that the first chain never visits is found, and how often one that all visit."""
    found = []
    for seed in range(sets + sets_that_agree):
        rng = np.random.default_rng(seed)
        at = at_second(rng, share, ess, length)
        if seed < sets:
            at[0] = False
        found.append(pc.diagnose(chains(rng, at)))
    missing, whole = found[:sets], found[sets:]
    return {
        "mode": name,
        "share": f"{share:.0%}",
        "ESS a chain": ess,
        "draws": f"{length:,}",
        "one chain misses it: agree": f"{np.mean([one.status == 'agree' for one in missing]):.0%}",
        "disagree": f"{np.mean([one.status == 'disagree' for one in missing]):.0%}",
        "by visits alone": f"{np.mean([VISITS in one.verdict for one in missing]):.0%}",
        "agree, from a smaller share on": f"{np.mean([_is_wrong(one, share) for one in missing]):.0%}",
        "all visit it: agree": f"{np.mean([one.status == 'agree' for one in whole]):.0%}",
        "disagree ": f"{np.mean([one.status == 'disagree' for one in whole]):.1%}",
        "by visits alone ": f"{np.mean([VISITS in one.verdict for one in whole]):.1%}",
    }


def _is_wrong(found, share):
    """Whether the chains are said to agree although a mode of this share is said to be found."""
    return found.status == "agree" and share > found.could_miss


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
