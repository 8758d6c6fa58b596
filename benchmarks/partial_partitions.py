"""Partial partitions beside R's salso: items, probability, area under the curve, seconds, and how they vary by seed.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS; of each every k-th draw, so that
there are 1,000.
"""

from statistics import median

import numpy as np

import posterior_consensus as pc
from benchmarks._data import posteriors
from benchmarks._runner import used
from benchmarks._salso import alternately, has_salso

PROBS = (0.5, 0.8, 0.95)
N_DRAWS = 1_000
SEEDS = 10
REPEATS = 3
OPTIONS = {"--held-out": {"action": "store_true", "help": "probabilities in draws of the chain that did not choose"}}


def tables(smallest, held_out):
    found = posteriors()
    if smallest:
        found = {name: labels[:60, :40] for name, labels in found.items()}
    if held_out:
        yield "", (_held_out(name, labels, prob) for name, labels in found.items() for prob in PROBS)
        return
    beside, seeds = not smallest and has_salso(), range(2 if smallest else SEEDS)
    draws = {name: pc.as_partition_draws(x[:: max(1, len(x) // N_DRAWS)]) for name, x in found.items()}
    yield "", (_row(name, one, prob, seeds, beside) for name, one in draws.items() for prob in PROBS)
    yield "", (_area(name, one, seeds, beside) for name, one in draws.items())


def _row(name, draws, prob, seeds, beside):
    found = [pc.partial_partition(draws, prob, random_seed=seed) for seed in seeds]
    best = max(found, key=lambda one: (one.n_items, one.search_probability))
    alone, chips = _alternately(draws, prob, seeds, [prob, "FALSE"] if beside else [])
    completed, chips_completed = _alternately(draws, prob, seeds, [prob, "TRUE"] if beside else [], complete="vi")
    row = {
        "posterior": name,
        "probability": prob,
        f"items, {len(seeds)} seeds": " or ".join(map(str, sorted({one.n_items for one in found}))),
        "probability found": best.search_probability,
        "at most": best.n_items_bound,
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
    areas = [pc.partial_partition(draws, 0.5, random_seed=seed).area for seed in seeds]
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


def _held_out(name, labels, prob):
    half = len(labels) // 2
    partial = pc.partial_partition(labels[: half : max(1, half // N_DRAWS)], prob, random_seed=1)
    sure = np.flatnonzero(partial.labels.values >= 0)
    rest = pc.as_partition_draws(labels[half:, sure]).labels
    return {
        "posterior": name,
        "asked for": prob,
        "items": partial.n_items,
        "in the draws of the search": partial.search_probability,
        "probability": partial.probability,
        "MCSE": partial.mcse,
        "in the other half of the chain": float(np.all(rest == partial.labels.values[sure], axis=1).mean()),
    }
