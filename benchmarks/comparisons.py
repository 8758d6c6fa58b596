"""compare_posteriors: its errors beside the spread over repetitions, what chance gives, and its time."""

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import alternate, is_smallest, print_table, random_draws, timed

REPETITIONS = 100
LENGTH, CHAINS = 200, 2
TRUTH = np.repeat([0, 1, 2], 6)
MEASURES = ("draws", "mean similarity", "rms similarity")


def main() -> None:
    """Print a table of errors, one of chance, and one of times."""
    smallest = is_smallest()
    repetitions = 3 if smallest else REPETITIONS
    moved = TRUTH.copy()
    moved[[3, 9]] = 2
    for name, other in (("two items moved", moved), ("the same posterior", TRUTH)):
        rng = np.random.default_rng(1)
        found = [_compared(_noisy(rng, TRUTH), _noisy(rng, other)) for _ in range(repetitions)]
        print(f"\n{name}, {repetitions} repetitions\n")
        rows = [_row(measure, [one.distances.sel(measure=measure) for one in found]) for measure in MEASURES]
        rows.append(_row("difference of an item", [one.items.rename(difference="value") for one in found]))
        print_table(["measure", "mean", "by chance", "mean error / spread"], rows)
    print("\nseconds\n")
    sizes = [(100, 400)] if smallest else [(100, 4000), (1000, 1000)]
    rows = []
    for n_items, n_draws in sizes:
        pair = [pc.as_partition_draws(random_draws(n_draws, n_items, 8).reshape(4, -1, n_items)) for _ in range(2)]
        seconds = alternate({"all": timed(lambda pair=pair: _compared(*pair))}, 1 if smallest else 3)
        rows.append([f"{n_items} x {n_draws}", seconds["all"]])
    print_table(["items x draws", "s"], rows)


def _noisy(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    shape = (CHAINS, LENGTH, truth.size)
    return np.where(rng.random(shape) < 0.15, rng.integers(4, size=shape), truth)


def _compared(one: object, other: object) -> pc.results.PosteriorComparison:
    return pc.compare_posteriors(one, other, n_particles=1, random_seed=1, progressbar=False)


def _row(name: str, found: list) -> list[object]:
    values, errors, chance = (np.array([one[c].values for one in found]) for c in ("value", "mcse", "by_chance"))
    ratio = (errors.mean(axis=0) / values.std(axis=0, ddof=1)).mean()
    return [name, float(values.mean()), float(chance.mean()), float(ratio)]


if __name__ == "__main__":
    main()
