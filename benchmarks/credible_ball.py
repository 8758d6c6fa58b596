"""Time of the credible ball of a posterior of 1,000 items x 1,000 draws, after a call that compiles."""

import posterior_consensus as pc
from benchmarks._data import dpmm
from benchmarks._runner import median_seconds


def tables(smallest):
    draws = pc.as_partition_draws(dpmm()[: 100 if smallest else None])
    yield "", (_row(draws, loss, 1 if smallest else 11) for loss in ("vi", "binder"))


def _row(draws, loss, repeats):
    best = pc.consensus_partition(draws, loss=loss, method="hierarchical")
    pc.credible_ball(draws, best)
    (seconds,) = median_seconds(lambda: pc.credible_ball(draws, best), repeats=repeats)
    return {"items x draws": f"{draws.n_items:,} x {draws.n_draws:,}", "loss": loss, "seconds": seconds}
