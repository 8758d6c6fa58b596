"""compare_posteriors: false alarms and power of its verdict, its errors, and its time.

The first table has how often each test rejects at 5%: those of the verdict, the verdict itself (any of them), and two
others. MMD is the maximum mean discrepancy of nearly uncorrelated draws, with random permutations of draws. Halves is
the rule that the Wasserstein distance exceeds those between halves of each posterior by two standard errors.
"""

from zlib import crc32

import numpy as np

import posterior_consensus as pc
from benchmarks._data import kept, random_draws
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._runner import median_seconds
from posterior_consensus.diagnostics.independence import gaussian_kernel, uncorrelated
from posterior_consensus.ensemble.chains import half_energy, pairs_together, partition_ess, partition_variance
from posterior_consensus.ensemble.partitions import canonical_rows

REPETITIONS, OF_EQUAL, OF_DIFFERENT = 100, 60, 25
N_ITEMS, HOMES = 30, np.arange(30) % 4
LENGTH, CHAINS = 200, 2
TRUTH = np.repeat([0, 1, 2], 6)
MEASURES = ("energy", "draws", "mean similarity", "rms similarity", "number of clusters")


def tables(smallest):
    repetitions = 2 if smallest else REPETITIONS
    cases = list(EQUAL.items())[: 1 if smallest else None]
    yield "equal posteriors", (_rejections(name, *both, min(repetitions, OF_EQUAL)) for name, both in cases)
    cases = list(DIFFERENT.items())[: 1 if smallest else None]
    yield "different posteriors", (_rejections(name, *both, min(repetitions, OF_DIFFERENT)) for name, both in cases)
    moved = TRUTH.copy()
    moved[[3, 9]] = 2
    for name, other in (("two items moved", moved), ("the same posterior", TRUTH)):
        rng = np.random.default_rng(1)
        found = [_compared(_noisy(rng, TRUTH), _noisy(rng, other)) for _ in range(repetitions)]
        yield name, _errors(found)
    sizes, repeats = ([(100, 400)], 1) if smallest else ([(100, 4000), (1000, 1000)], 3)
    yield "seconds", (_seconds(*size, repeats) for size in sizes)


def around(homes=HOMES, noise=0.3, stay=0.0, shape=(4, 500), jointly=False):
    """Chains around a partition: items keep their labels of the draw before with a probability, by themselves or all.

    `stay` may be a number for each item.
    """

    def chains(rng):
        full = *shape, homes.size
        fresh = np.where(rng.random(full) < noise, rng.integers(5, size=full), homes)
        if not jointly:
            return np.stack([kept(labels, stay, rng) for labels in fresh])
        moves = rng.random(shape) >= stay
        moves[:, 0] = True
        last = np.maximum.accumulate(np.where(moves, np.arange(shape[1]), 0), axis=1)
        return np.take_along_axis(fresh, last[..., np.newaxis], axis=1)

    return chains


def restaurant(concentration, shape=(4, 100)):
    """Independent draws of a Chinese restaurant process."""

    def chains(rng):
        labels = np.zeros((*shape, N_ITEMS), int)
        for draw in labels.reshape(-1, N_ITEMS):
            for i in range(1, N_ITEMS):
                new = rng.random() * (i + concentration) >= i
                draw[i] = draw[:i].max() + 1 if new else draw[rng.integers(i)]
        return labels

    return chains


def mixture(concentration, length=250):
    """Chains of a Gibbs sampler of a Dirichlet process mixture of the same observations."""
    made = np.random.default_rng(5)
    observations = made.normal(0, 3, 4)[made.integers(4, size=N_ITEMS), np.newaxis] + made.normal(size=(N_ITEMS, 1))

    def chains(rng):
        return np.stack(
            [dirichlet_process_draws(observations, 4.0, concentration, 50 + length, rng)[50:] for _ in range(4)]
        )

    return chains


MOVED = np.where(np.arange(N_ITEMS) == 0, 1, HOMES)
RATES = np.linspace(0.5, 0.9, N_ITEMS)
EQUAL = {
    "items stay with 0.8": (around(stay=0.8), around(stay=0.8)),
    "partitions stay with 0.8": (around(stay=0.8, jointly=True), around(stay=0.8, jointly=True)),
    "partitions stay with 0.8; independent": (around(stay=0.8, jointly=True), around()),
    "one chain each, partitions stay with 0.8": (around(stay=0.8, shape=(1, 500), jointly=True),) * 2,
    "items stay with 0.5 to 0.9": (around(stay=RATES), around(stay=RATES)),
    "partitions stay with 0.9": (around(stay=0.9, jointly=True), around(stay=0.9, jointly=True)),
    "Gibbs sampler": (mixture(1.0), mixture(1.0)),
}
DIFFERENT = {
    "noise 0.05 and 0.6": (around(noise=0.05, shape=(4, 100)), around(noise=0.6, shape=(4, 100))),
    "noise 0.3 and 0.33, items stay with 0.8": (around(stay=0.8), around(noise=0.33, stay=0.8)),
    "CRP(1) and CRP(3)": (restaurant(1.0), restaurant(3.0)),
    "CRP(1) and CRP(1.3)": (restaurant(1.0), restaurant(1.3)),
    "one item moved, noise 0.3, items stay with 0.8": (around(stay=0.8), around(MOVED, stay=0.8)),
    "one item moved, noise 0.6, items stay with 0.8": (around(HOMES, 0.6, 0.8), around(MOVED, 0.6, 0.8)),
    "Gibbs sampler, concentrations 1 and 1.5": (mixture(1.0), mixture(1.5)),
}


def _rejections(name, one, other, repetitions):
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng([crc32(name.encode()), seed])
        both = [pc.as_partition_draws(chains(rng)) for chains in (one, other)]
        compared = _compared(*both)
        tests = {
            "partitions": compared.distances["p_value"].sel(measure="energy").item(),
            "similarities": compared.distances["p_value"].sel(measure="rms similarity").item(),
            "numbers of clusters": compared.distances["p_value"].sel(measure="number of clusters").item(),
            "items": compared.items["p_value"].min().item(),
        }
        tests["verdict"] = min(tests.values())
        rejected = {test: p_value <= 0.05 for test, p_value in tests.items()}
        between, error = (compared.distances[column].sel(measure="draws").item() for column in ("value", "mcse"))
        rejected |= {"MMD": _by_mmd(both, rng), "halves": between - compared.within.values.max() > 2 * error}
        found.append(rejected | {"ess": compared.ess.values})
    sizes = np.median([one.pop("ess") for one in found], axis=0)
    shares = {test: f"{np.mean([one[test] for one in found]):.0%}" for test in found[0]}
    return {"posteriors": name, "ESS a chain": " and ".join(f"{size:.0f}" for size in sizes), **shares}


def _by_mmd(both, rng):
    """Whether the maximum mean discrepancy of nearly uncorrelated draws rejects at 5%; not if these are below 20."""
    thinned = []
    for draws in both:
        together = pairs_together(draws)
        ess = partition_ess(draws, together, partition_variance(draws, together).total)
        try:
            thinned.append(draws.labels[uncorrelated(draws, ess, 300)])
        except ValueError:
            return False
    labels = np.concatenate(thinned)
    kernel = gaussian_kernel(*canonical_rows(labels, int(labels.max()) + 1))[0]
    first = np.arange(len(labels)) < len(thinned[0])
    exchanged = rng.permuted(np.tile(first, (200, 1)), axis=1)
    exchanged[0] = first
    statistic = half_energy(-kernel, exchanged, ~exchanged, 1 - np.eye(len(kernel)))
    return np.mean(statistic >= statistic[0] - 1e-12) <= 0.05


def _errors(found):
    values = {measure: [one.distances.sel(measure=measure) for one in found] for measure in MEASURES}
    values["difference of an item"] = [one.items.rename(difference="value") for one in found]
    for name, of in values.items():
        value, error, chance = (np.array([one[c].values for one in of]) for c in ("value", "mcse", "by_chance"))
        ratio = (error.mean(axis=0) / value.std(axis=0, ddof=1)).mean()
        columns = "measure", "mean", "by chance", "mean error / spread"
        yield dict(zip(columns, (name, float(value.mean()), float(chance.mean()), float(ratio)), strict=True))


def _seconds(n_items, n_draws, repeats):
    pair = [pc.as_partition_draws(random_draws(n_draws, n_items, 8).reshape(4, -1, n_items)) for _ in range(2)]
    (seconds,) = median_seconds(lambda: _compared(*pair), repeats=repeats)
    return {"items x draws": f"{n_items} x {n_draws}", "s": seconds}


def _noisy(rng, truth):
    shape = (CHAINS, LENGTH, truth.size)
    return np.where(rng.random(shape) < 0.15, rng.integers(4, size=shape), truth)


def _compared(one, other):
    return pc.compare_posteriors(one, other, n_particles=1, random_seed=1, progressbar=False)
