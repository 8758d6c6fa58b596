"""What `compare_partitions` calls clear, if the same draws chose one of the two partitions.

The posteriors are those of the benchmark of the excess. The consensus of the draws is compared with three others: the
consensus of other draws of the same posterior, which is as good on average; the best partition with one cluster fewer
for the same draws; and the partition around which the draws scatter. Twenty thousand fresh draws say which is better.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks.excess import CASES, N_CLUSTERS, N_FRESH, N_ITEMS, chain_of
from posterior_consensus.diagnostics.comparison import search_halves
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.losses.lookup import as_loss

RIVALS = ("of other draws", "one cluster fewer", "centre of the draws")


def tables(smallest):
    yield "", (row for case in (CASES[:1] if smallest else CASES) for row in _rows(*case, 3 if smallest else 60))


def _rows(loss, stay, n_draws, repeats):
    found = measured(loss, stay, n_draws, repeats)
    for rival, values in zip(RIVALS, found, strict=True):
        difference, error, excess, truth, clear = values[:, ~np.isnan(values[0])]
        shift = 2 * excess
        plain = difference > 2 * error
        yield {
            "loss": loss,
            "draws": f"{n_draws:,}, {f'stay with {stay:g}' if stay else 'independent'}",
            "compared with the consensus": rival,
            "pairs": truth.size,
            "rms of z": np.sqrt(np.mean(((difference - truth) / error) ** 2)),
            "rms, corrected": np.sqrt(np.mean((difference - shift - truth) ** 2 / (error**2 + shift**2))),
            "above 2 errors": int(plain.sum()),
            "and worse": int((plain & (truth < 0)).sum()),
            "clear": int(clear.sum()),
            "clear and worse": int(((clear > 0) & (truth < 0)).sum()),
        }


def measured(loss: str, stay: float, n_draws: int, repeats: int) -> np.ndarray:
    """Difference, its error, the excess, the true difference and whether it is clear, (3, 5, repeats).

    NaN if the two partitions are the same.
    """
    found = [_compared(np.random.default_rng(seed), loss, stay, n_draws) for seed in range(repeats)]
    return np.array(found).transpose(1, 2, 0)


def _compared(rng, loss, stay, n_draws):
    home, other = rng.integers(0, N_CLUSTERS, (2, N_ITEMS))
    moves = rng.choice([0.5, 0.8, 1.0]) * rng.random(N_ITEMS)
    z, more = (pc.as_partition_draws(chain_of(rng, home, other, moves, n_draws, stay)) for _ in range(2))
    fresh = pc.as_partition_draws(chain_of(rng, home, other, moves, 2 * N_FRESH, 0.0))
    asked = {"loss": loss, "random_seed": 1, "progressbar": False}
    best = pc.consensus_partition(z, **asked)
    fewer = pc.consensus_partition(z, n_clusters=max(1, best.n_clusters - 1), **asked)
    rivals = [pc.consensus_partition(more, **asked), fewer, home]
    return [_against(z, fresh, best, rival, loss) for rival in rivals]


def _against(draws, fresh, best, rival, loss):
    """The difference of the one that is worse on the draws from the other, and its like on fresh draws."""
    labels = np.stack([draws.as_labels(best), draws.as_labels(rival)])
    if np.array_equal(*labels):
        return [np.nan] * 5
    record = as_loss(loss)
    found = pc.compare_partitions(draws, [best, rival], loss=loss)
    worse, first = found.table.isel(partition=1), int(found.best)
    losses = mean_loss(fresh, labels, record)
    truth = losses[int(worse["partition"])] - losses[first]
    excess = search_halves(draws, labels[first], record, np.random.default_rng(0)).excess  # also if none is clear
    return [float(worse["difference"]), float(worse["difference_mcse"]), excess, truth, float(worse["clear"])]
