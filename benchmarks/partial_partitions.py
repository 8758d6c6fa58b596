"""Partial partitions beside R's salso: items, share, area under the curve, seconds, and how they vary by seed.

Items are those of the search on all draws, as salso's; the times are of whole calls, in which half of the draws choose.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS; of each every k-th draw, so that
there are 1,000.
"""

from statistics import median

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._data import kept, posteriors
from benchmarks._runner import used
from benchmarks._salso import alternately, has_salso
from benchmarks.misplaced import CASES, sampled, simulated
from posterior_consensus.answers.partial_partition import agreement, grown, size_bound

PROBS = (0.5, 0.8, 0.95)
N_DRAWS = 1_000
SEEDS = 10
REPEATS = 3
OPTIONS = {
    "--truth": {"action": "store_true", "help": "sets beside their true probabilities, in simulated posteriors"},
}
CHAINS = {  # chains, draws, share of labels, modes or sweeps that stay from draw to draw
    "4 of 250, independent": (4, 250, 0.0),
    "4 of 50, independent": (4, 50, 0.0),
    "4 of 250, slow": (4, 250, 0.9),
    "1 of 1,000, slow": (1, 1_000, 0.9),
    "4 of 250, very slow": (4, 250, 0.98),
    "1 of 1,000, very slow": (1, 1_000, 0.98),
}
ASKED, SETS, FRESH = 0.8, 60, 20_000


def tables(smallest, truth):
    if truth:
        chains = dict(list(CHAINS.items())[:1]) if smallest else CHAINS
        sets = 3 if smallest else SETS
        yield (
            f"Sets whose true probability is below {ASKED:g}, {sets} posteriors a row",
            (_beside_truth(family, name, sets) for family in FAMILIES for name in chains),
        )
        return
    found = posteriors()
    if smallest:
        found = {name: labels[:60, :40] for name, labels in found.items()}
    beside, seeds = not smallest and has_salso(), range(2 if smallest else SEEDS)
    draws = {name: pc.as_partition_draws(x[:: max(1, len(x) // N_DRAWS)]) for name, x in found.items()}
    yield "", (_row(name, one, prob, seeds, beside) for name, one in draws.items() for prob in PROBS)
    yield "", (_area(name, one, seeds, beside) for name, one in draws.items())


def _row(name, draws, prob, seeds, beside):
    found = [grown(draws, prob, 64, np.random.default_rng(seed), None, False)[:2] for seed in seeds]
    numbers = [int((labels >= 0).sum()) for labels, _ in found]
    curve = np.max([curve for _, curve in found], axis=0)
    alone, chips = _alternately(draws, prob, seeds, [prob, "FALSE"] if beside else [])
    completed, chips_completed = _alternately(draws, prob, seeds, [prob, "TRUE"] if beside else [], complete="vi")
    row = {
        "posterior": name,
        "probability": prob,
        f"items, {len(seeds)} seeds": " or ".join(map(str, sorted(set(numbers)))),
        "share found": curve[max(numbers)],
        "at most": size_bound(draws, prob, curve, False),
        "ms": alone,
        "completed, ms": completed,
    }
    if beside:
        their_items = max(run[1] for run in (*chips, *chips_completed))
        theirs = [1000 * median(run[0] for run in runs) for runs in (chips, chips_completed)]
        ratios = ", ".join(f"{their / our:.1f}" for their, our in zip(theirs, (alone, completed), strict=True))
        row |= {"chips: items": int(their_items), "chips, ms": theirs[0], "chips completed, ms": theirs[1]}
        row["ratios"] = ratios
    return row


def _area(name, draws, seeds, beside):
    areas = [grown(draws, 0.5, 64, np.random.default_rng(seed), None, False)[1][:-1].mean() for seed in seeds]
    ours, chips = _alternately(draws, 0.5, seeds, [0, "FALSE"] if beside else [])
    row = {
        "posterior": name,
        f"least area, {len(seeds)} seeds": f"{min(areas):.5g}",
        "median": f"{median(areas):.5g}",
        "ms": ours,
    }
    if beside:
        theirs = 1000 * median(run[0] for run in chips)
        area = max(run[1] for run in chips)
        row |= {"chips: area": f"{area:.5g}", "chips, ms": theirs, "ratio": round(theirs / ours, 1)}
    return row


def _alternately(draws, prob, seeds, of_chips, **options):
    """Median milliseconds of ours over half of the seeds, and what salso's chips prints each time."""
    pc.partial_partition(draws, prob, random_seed=0, **options)

    def ours(repeat):
        own = [len(seeds) * repeat + seed for seed in seeds[: len(seeds) // 2]]
        return median(used(pc.partial_partition, draws, prob, random_seed=s, **options).seconds for s in own)

    seconds, theirs = alternately(ours, REPEATS, bool(of_chips), "time_chips.R", draws.labels, *of_chips)
    return 1000 * seconds, theirs


def _noisy(rng, n_chains, length, stays):
    """Items that are each in a random cluster with a probability of their own."""
    base, noise = rng.integers(0, 5, 40), 0.3 * rng.random(40) ** 2

    def draws(n, stays):
        fresh = np.where(rng.random((n, 40)) < noise, rng.integers(0, 6, (n, 40)), base)
        return kept(fresh, stays, rng)

    return np.stack([draws(length, stays) for _ in range(n_chains)]), draws(FRESH, 0.0)


def _modes(rng, n_chains, length, stays):
    """Two modes, of which a fifth of the clusters are split, and noise that a draw has or has not."""
    base = rng.integers(0, 5, 40)
    split = np.where((base == 0) & (rng.random(40) < 0.5), 5, base)
    share, noise = rng.uniform(0.1, 0.3), rng.uniform(0.0, 0.05, 40)

    def draws(n, stays):
        state = kept((rng.random((n, 1)) < share).astype(np.int64), stays, rng)
        return np.where(rng.random((n, 40)) < noise, rng.integers(0, 6, (n, 40)), np.where(state, split, base))

    return np.stack([draws(length, stays) for _ in range(n_chains)]), draws(FRESH, 0.0)


def _mixture(rng, n_chains, length, stays):
    """A Dirichlet process mixture of 12 items, whose draws are repeated in slow chains."""
    _, observed = simulated(CASES["12 items, separated"], 1, rng)
    fresh = sampled(np.repeat(observed, 40, axis=0), 5.0, 600, rng)[:, 100:].reshape(-1, 12)
    row = np.stack([kept(rng.integers(len(fresh), size=(length, 1)), stays, rng)[:, 0] for _ in range(n_chains)])
    return fresh[row], fresh


FAMILIES = {"noisy items": _noisy, "two modes": _modes, "mixture of 12 items": _mixture}


def _beside_truth(family, chains, sets):
    found = []
    for seed in range(sets):
        rng = np.random.default_rng([seed, *family.encode()])
        labels, fresh = FAMILIES[family](rng, *CHAINS[chains])
        draws, fresh = (
            pc.as_partition_draws(xr.DataArray(one, dims=("chain", "draw", "item")))
            for one in (labels, fresh[np.newaxis])
        )
        partial = pc.partial_partition(draws, ASKED, random_seed=seed, progressbar=False)
        of_all, _, _ = grown(draws, ASKED, 64, rng, None, False)
        truth, before = (agreement(fresh, one).mean() for one in (partial.labels.values, of_all))
        within = abs(partial.probability - truth) <= 2 * partial.mcse
        found.append([before < ASKED, truth < ASKED, partial.is_shown, (of_all >= 0).sum(), partial.n_items, within])
    before, below, shown, of_all, n_items, within = np.array(found, float).T
    return {
        "posterior": family,
        "chains": chains,
        "chosen by all draws: below": f"{before.mean():.0%}",
        "items": f"{of_all.mean():.1f}",
        "shown": f"{shown.mean():.0%}",
        "shown, but below": f"{np.mean(below * shown):.0%}",
        "items of a set shown": f"{n_items[shown == 1].mean():.1f}" if shown.any() else "-",
        "not shown, and below": f"{np.mean(below * (1 - shown)):.0%}",
        "truth within two errors": f"{within.mean():.0%}",
    }
