"""Independent runs: effective numbers, errors of shares, and how often what is said of them is wrong.

Eight tables of simulated runs whose truth is known: also verdicts on groups and kinds of runs, the effect of more runs,
and the stability of layers. Runs are those of a program that finds the same clusters but for items that it moves at
random, and now and then divides a cluster or joins two, as Leiden does; at another resolution it finds twice as many
clusters.
"""

import numpy as np

import posterior_consensus as pc
from posterior_consensus.diagnostics.chance import chance_losses
from posterior_consensus.diagnostics.comparison import excess_loss
from posterior_consensus.diagnostics.groups import run_distances, within
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.layers.between_runs import NEW_RUNS
from posterior_consensus.layers.stability import may_be_largest
from posterior_consensus.losses.lookup import as_loss

N_ITEMS = 60
SIZES = (20, 40, 100, 400)
SHARES = (0.02, 0.1, 0.3, 0.5, 0.9)
N_FRESH = 10_000
ROUNDING = 1e-12


def tables(smallest):
    few = slice(1 if smallest else None)
    n_sets = 3 if smallest else 200
    yield "", [_effective(3 if smallest else 100)]
    yield "", (_of_shares(n, share, 20 if smallest else 2_000) for n in SIZES[few] for share in SHARES[few])
    yield "", (_of_groups(name, *case, n_sets) for name, case in list(GROUPS.items())[few])
    yield "", (_of_kinds(name, *case, 2 if smallest else 100) for name, case in list(KINDS.items())[few])
    cases = [(name, loss) for name in MORE for loss in ("vi", "binder")][few]
    yield "", (row for case in cases for row in _of_more(*case, (10, 20, 40, 100)[few], 2 if smallest else 100))
    numbers = (5, 10, 20, 50)[few]
    answers = list(ANSWERS.items())[few]
    yield "", (_of_stability(*case, n, 20 if smallest else 1_000) for case in answers for n in numbers)
    yield "", (_of_ties(*case, n, 20 if smallest else 1_000) for case in answers for n in numbers)
    yield "", (_of_new_runs(*case, n, 2 if smallest else 30) for case in list(NEW.items())[few] for n in numbers)


def runs_of(rng, n_runs, n_clusters, moved=0.1, divided=0.3):
    """Labels (n_runs, items) of a program that moves items and, in some runs, divides a cluster or joins two."""
    truth = np.arange(N_ITEMS) * n_clusters // N_ITEMS
    labels = np.tile(truth, (n_runs, 1))
    for row in labels:
        if rng.random() < divided:
            one, other = rng.choice(n_clusters, 2, replace=False)
            if rng.random() < 0.5:
                row[row == one] = other
            else:
                row[(row == one) & (rng.random(N_ITEMS) < 0.5)] = n_clusters
    anew = rng.random(labels.shape) < moved
    labels[anew] = rng.integers(n_clusters, size=anew.sum())
    return labels


def _effective(n_sets):
    sizes = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        labels = np.sort(runs_of(rng, 40, 4).view("S480"), axis=0).view(np.int64)  # equal runs follow each other
        for order in (np.arange(40), rng.permutation(40)):
            found = pc.diagnose(pc.as_runs(labels[order]))
            sizes += [found.partition_ess, found.least_ess, found.summaries["ess_bulk"].max().item()]
    return {"sets": n_sets, "runs": 40, "smallest effective number": min(sizes), "largest": max(sizes)}


def _of_shares(n_runs, share, n_sets):
    """How often a probability is within two errors of the share, or of the centre that the error is made for."""
    rng = np.random.default_rng(n_runs)
    together = (rng.random((n_sets, n_runs)) < share).astype(float)
    samples = pc.as_runs(np.zeros((n_runs, 2), int)).samples
    shares, errors = samples.mean(together), samples.probability_mcse(together)
    centre = (n_runs * shares + 2) / (n_runs + 4)
    plain = together.std(axis=1, ddof=1) / np.sqrt(n_runs)
    return {
        "runs": n_runs,
        "probability": share,
        "within two errors": f"{np.mean(np.abs(shares - share) <= 2 * errors):.1%}",
        "of the centre": f"{np.mean(np.abs(centre - share) <= 2 * errors):.1%}",
        "within two s / sqrt(N)": f"{np.mean(np.abs(shares - share) <= 2 * plain):.1%}",
    }


def alike(*sizes):
    """Groups of these sizes that are runs of one program."""
    return lambda rng: ([runs_of(rng, size, 4) for size in sizes], False)


def finer(n_first, n_others, moved=0.1):
    """Two groups, of which one has other clusters."""
    return lambda rng: ([runs_of(rng, n_first, 4, moved), runs_of(rng, n_others, 5, moved)], True)


def noisier(size):
    """Two groups with the same clusters, of which one moves more items."""
    return lambda rng: ([runs_of(rng, size, 4, 0.1), runs_of(rng, size, 4, 0.2)], False)


GROUPS = {
    "alike, 5 + 5 runs": (alike(5, 5),),
    "alike, 10 + 10": (alike(10, 10),),
    "alike, 20 + 20": (alike(20, 20),),
    "alike, 5 + 35": (alike(5, 35),),
    "alike, 5 groups of 8": (alike(8, 8, 8, 8, 8),),
    "alike, 100 + 100": (alike(100, 100),),
    "4 or 5 clusters, 5 + 5": (finer(5, 5),),
    "4 or 5 clusters, 10 + 10": (finer(10, 10),),
    "4 or 5 clusters, half of the items at random, 10 + 10": (finer(10, 10, 0.5),),
    "4 or 5 clusters, half of the items at random, 40 + 40": (finer(40, 40, 0.5),),
    "same clusters, 10% or 20% at random, 10 + 10": (noisier(10),),
    "same clusters, 10% or 20% at random, 40 + 40": (noisier(40),),
}


def _of_groups(name, made, n_sets):
    found = []
    for seed in range(n_sets):
        parts, truth = made(np.random.default_rng(seed))
        groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        found.append(pc.diagnose(pc.as_runs(np.concatenate(parts), groups=groups)).status)
    status = np.array(found)
    return {
        "groups": name,
        "different clusters": "yes" if truth else "no",
        "sets": n_sets,
        '"disagree"': f"{np.mean(status == 'disagree'):.1%}",
        '"unknown"': f"{np.mean(status == 'unknown'):.1%}",
    }


def one_kind(n_runs, moved=0.1, divided=0.3):
    return lambda rng: runs_of(rng, n_runs, 4, moved, divided)


def two_kinds(n_first, n_others, moved=0.1):
    """Runs of two programs."""
    return lambda rng: np.concatenate([runs_of(rng, n_first, 4, moved, 0.0), runs_of(rng, n_others, 5, moved, 0.0)])


KINDS = {
    "one kind, 20": (one_kind(20), 1),
    "one kind, 40": (one_kind(40), 1),
    "one kind, 100": (one_kind(100), 1),
    "one kind, a third of the items at random, 40": (one_kind(40, 0.33), 1),
    "one kind, no cluster divided, 40": (one_kind(40, 0.1, 0.0), 1),
    "two kinds, 20 + 20": (two_kinds(20, 20), 2),
    "two kinds, 50 + 50": (two_kinds(50, 50), 2),
    "two kinds, 30 + 10": (two_kinds(30, 10), 2),
    "two kinds, a third of the items at random, 50 + 50": (two_kinds(50, 50, 0.33), 2),
}


def _of_kinds(name, made, truth, n_sets):
    found = []
    for seed in range(n_sets):
        runs = pc.as_runs(made(np.random.default_rng(seed)))
        particles = pc.particles(runs, random_seed=seed, progressbar=False)
        found.append(0 if particles.status == "unknown" else particles.n_particles)
    number = np.array(found)
    return {
        "runs": name,
        "kinds": truth,
        "sets": n_sets,
        "one kind": f"{np.mean(number == 1):.0%}",
        "two kinds": f"{np.mean(number == 2):.0%}",
        "more": f"{np.mean(number > 2):.0%}",
        '"unknown"': f"{np.mean(number == 0):.0%}",
    }


def at_random(moved, divided=0.3):
    """Runs of one program that moves this share of the items."""
    return lambda rng, n_runs: runs_of(rng, n_runs, 4, moved, divided)


def between_clusters(most):
    """Items leave their cluster with probabilities of their own, up to the given one, mostly for the same other."""
    home = np.arange(N_ITEMS) * 4 // N_ITEMS
    leave = most * np.tile(np.linspace(0, 1, N_ITEMS // 4), 4)

    def made(rng, n_runs):
        shape = n_runs, N_ITEMS
        other = np.where(rng.random(shape) < 0.7, (home + 1) % 4, rng.integers(5, size=shape))
        return np.where(rng.random(shape) < leave, other, home)

    return made


def few_partitions(*shares):
    """Each run is one of a few partitions: four clusters, two of these joined, or one divided."""
    four = np.arange(N_ITEMS) * 4 // N_ITEMS
    partitions = np.stack([four, np.minimum(four, 2), np.where(np.arange(N_ITEMS) < N_ITEMS // 8, 4, four)])
    return lambda rng, n_runs: partitions[rng.choice(len(shares), n_runs, p=shares)]


MORE = {
    "10% of the items at random": at_random(0.1),
    "33% at random": at_random(0.33),
    "items between clusters, up to 0.5": between_clusters(0.5),
    "items between clusters, up to 0.8": between_clusters(0.8),
    "three partitions, 40%, 35% and 25%": few_partitions(0.4, 0.35, 0.25),
    "two partitions, 55% and 45%": few_partitions(0.55, 0.45),
}


def _of_more(name, loss, numbers, n_sets):
    """What sets of runs say of more runs, against the best partition for 10,000 fresh runs and for twice as many."""
    made, record = MORE[name], as_loss(loss)
    asked = {"loss": loss, "random_seed": 1, "progressbar": False}
    fresh = pc.as_runs(made(np.random.default_rng(0), N_FRESH))
    optimum = pc.consensus_partition(fresh, **asked)
    for n_runs in numbers:
        found = []
        for seed in range(n_sets):
            twice = made(np.random.default_rng((seed, n_runs)), 2 * n_runs)
            runs = pc.as_runs(twice[:n_runs])
            best, later = (pc.consensus_partition(one, **asked) for one in (runs, pc.as_runs(twice)))
            labels = np.stack([one.labels.values for one in (best, later, optimum)])
            own, of_twice, least = mean_loss(fresh, labels, record)
            halves = excess_loss(runs, best, "vi", random_seed=1)
            least = min(own, of_twice, least)
            found.append((own - least, (own - least) / least, (own - of_twice) / least, halves.value, halves.limit))
        excess, relative, gain, value, limit = np.array(found).T
        none = limit == 0
        yield {
            "runs": name,
            "loss": loss,
            "number": n_runs,
            "excess, mean": excess.mean(),
            "X / 4, mean": value.mean(),
            '"no effect"': np.sum(none),
            "of these, excess above 1%": np.sum(none & (relative > 0.01)),
            "twice as many runs gain 1%": np.sum(none & (gain > 0.01)),
            "X > 0": np.sum(~none),
            "of these, excess above X": np.sum(~none & (excess > limit + ROUNDING)),
        }


def rarely(share, others):
    """Runs that find four clusters, and now and then another partition."""
    four = np.arange(N_ITEMS) * 4 // N_ITEMS
    return lambda rng, n_runs: np.where((rng.random(n_runs) < share)[:, np.newaxis], others, four)


def some_finer(rng, n_runs):
    """Runs that find four clusters or, a quarter of them, five."""
    four, five = (runs_of(rng, n_runs, k, 0.1, 0.0) for k in (4, 5))
    return np.where((rng.random(n_runs) < 0.25)[:, np.newaxis], five, four)


JOINED = np.minimum(np.arange(N_ITEMS) * 4 // N_ITEMS, 2)
UNLIKE = np.arange(N_ITEMS) % 5  # independent of the four clusters
ANSWERS = {
    **{f"two clusters joined in {share:.0%}": rarely(share, JOINED) for share in (0.02, 0.05, 0.1, 0.3)},
    **{f"unlike clusters in {share:.0%}": rarely(share, UNLIKE) for share in (0.02, 0.05, 0.1)},
    **{f"{moved:.0%} of the items at random": at_random(moved) for moved in (0.03, 0.1, 0.33)},
    "items between clusters, up to 0.5": between_clusters(0.5),
}
NEW = {
    "10% of the items at random": at_random(0.1),
    "33% at random": at_random(0.33),
    "60% at random, 8 clusters": lambda rng, n_runs: runs_of(rng, n_runs, 8, 0.6),
    "items between clusters, up to 0.8": between_clusters(0.8),
    "unlike clusters in 10%": rarely(0.1, UNLIKE),
    "5 clusters in 25%, 10% at random": some_finer,
    "three partitions, 40%, 35% and 25%": few_partitions(0.4, 0.35, 0.25),
    "80% at random, 6 clusters": lambda rng, n_runs: runs_of(rng, n_runs, 6, 0.8),
}


def _estimates(made, n_runs, n_sets):
    """Of each set of runs: its mean distance as a share of that by chance, the jackknife's error, and what is printed.

    With the truth, from 400 runs or all pairs of partitions that these have.
    """
    rng, loss = np.random.default_rng(1), as_loss("vi")
    pool = pc.as_runs(made(rng, 400))
    distances = run_distances(pool, loss)
    pairs = np.stack([np.arange(400), np.roll(np.arange(400), 1)])
    chance = chance_losses(pool, *pairs, loss).mean()
    number = np.unique(pool.backend.fingerprints(), return_inverse=True)[1]
    found = np.empty((n_sets, 3))
    for row in found:
        at = rng.choice(400, n_runs, replace=False)
        mean, error = within(distances[np.ix_(at, at)])
        unseen = 2 * (np.bincount(number[at]).max() / n_runs) ** 2 / (n_runs + 4)
        row[:] = mean / chance, error / chance, np.hypot(error / chance, unseen)
    return found, distances.sum() / (400 * 399) / chance


def _of_stability(name, made, n_runs, n_sets):
    """How often two errors cover the stability."""
    found, truth = _estimates(made, n_runs, n_sets)
    jackknife, printed = (np.abs(found[:, 0] - truth) <= 2 * found[:, k] + ROUNDING for k in (1, 2))
    return {
        "runs": name,
        "number": n_runs,
        "stability": 1 - truth,
        "within two errors of the jackknife": f"{jackknife.mean():.1%}",
        "within two errors": f"{printed.mean():.1%}",
    }


def _of_ties(name, made, n_runs, n_sets):
    """How often layers of runs of one program are said to differ in their stability."""
    found, _ = _estimates(made, n_runs, n_sets)
    row = {"runs": name, "number": n_runs}
    for n_layers in (3, 5, 8):
        sets = found[: n_sets // n_layers * n_layers].reshape(-1, n_layers, 3)
        named, kept = [], []
        for values, _, errors in sets.transpose(0, 2, 1):
            may_be = may_be_largest(1 - values, errors, np.full(n_layers, n_runs))
            named.append(may_be.sum() == 1)
            kept.append(may_be.all())
        row |= {
            f'{n_layers} layers, "agree most"': f"{np.mean(named):.1%}",
            f"some of {n_layers} excluded": f"{1 - np.mean(kept):.1%}",
        }
    return row


def _of_new_runs(name, made, n_runs, n_sets):
    """Mean VI to the partition of some runs and agreement with it: of these, as printed, and of 2,000 new runs."""
    new, found = pc.as_runs(made(np.random.default_rng(99), 2_000)), []
    for seed in range(n_sets):
        runs = pc.as_runs(made(np.random.default_rng((seed, n_runs)), n_runs))
        best = pc.consensus_partition(runs, loss="vi", random_seed=1, progressbar=False)
        row = []
        for some, partition in ((runs, best.labels.values), (runs, best), (new, best.labels.values)):
            layers = pc.compare_layers({"a": some}, partitions={"a": partition}, progressbar=False).stability
            row.append([layers[column].item() for column in NEW_RUNS])
        found.append(row)
    values = np.array(found)
    of_runs, printed, true = values[..., ::2].swapaxes(0, 1)
    errors, off = values[:, 1, 1::2], printed - true
    within = np.mean(np.abs(off) <= 2 * errors + ROUNDING, axis=0)
    root = np.sqrt(np.square(off).mean(axis=0))
    row = {"runs": name, "number": n_runs, "sets": n_sets}
    for k, what in enumerate(("mean VI", "agreement")):
        of_all, by_search, of_new = (one[:, k].mean() for one in (of_runs, printed, true))
        row |= {f"{what} of the runs": of_all, f"{what} printed": by_search, f"{what} of new runs": of_new}
        row |= {f"{what} within two errors": f"{within[k]:.0%}"}
        row |= {f"{what}, error over r.m.s. of differences": f"{errors[:, k].mean() / max(root[k], ROUNDING):.1f}"}
    return row
