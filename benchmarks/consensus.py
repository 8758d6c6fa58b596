"""Time and expected loss of every method on a posterior, and on draws of the random perturbation model.

By default 1,000 items x 1,000 draws of a Dirichlet process mixture and 2,000 items x 1,000 draws around ten clusters;
with --large 100,000 items x 200 draws, a process for each method that can, with its memory.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import dpmm
from benchmarks._runner import apart, median_seconds, used
from posterior_consensus.consensus.refinement import refine_partition

FREE = ("greedy", "hierarchical", "exact", "enumeration")  # not timed at the larger size: the first two are elsewhere
NOT_HERE = ("enumeration", "lange_buhmann")  # as many items are too many, and sixteen numbers of clusters take minutes
FINDS_NUMBER = ("cc_pivot", "align_and_vote")
LARGE = {  # method and its options
    "refinement": None,
    "spectral": {"n_clusters": 10},
    "spectral, association": {"n_clusters": 10, "affinity": "association"},
    "kcc": {"n_clusters": 10},
    "align_and_vote": {"n_clusters": 10},
    "rpm_em": {"n_clusters": 10},
    "cc_pivot": {},
}
OPTIONS = {"--large": {"action": "store_true", "help": "100,000 items x 200 draws"}}


def tables(smallest, large):
    if large:
        yield "", ({"method": name} | apart(_large, name) for name in LARGE)
        return
    yield "", _on_posterior(smallest)
    yield "ten clusters of equal size, draws that keep 55% of the labels:", _on_perturbations(smallest)


def _on_posterior(smallest):
    """Methods with the number of clusters found by the loss."""
    draws = pc.as_partition_draws(dpmm()[:50, :40] if smallest else dpmm())
    for loss in ("vi", "binder"):
        for method in pc.METHODS:
            if method in NOT_HERE or (method == "exact" and loss != "binder"):
                continue
            best, seconds = _measured(smallest, draws, loss, method)
            found = {"expected loss": f"{best.expected_loss:.6f}", "clusters": best.n_clusters}
            yield {"loss": loss, "method": method, **found, "seconds": seconds}


def _on_perturbations(smallest):
    """Every method that can be given ten clusters, and those that find their number, with Binder's loss."""
    draws, truth = perturbed(*((50, 20) if smallest else (2000, 1000)))
    for method in pc.METHODS:
        if method not in FREE:
            given = {} if method in FINDS_NUMBER else {"n_clusters": 10}
            best, seconds = _measured(smallest, draws, "binder", method, **given)
            yield {"method": method, **_beside_truth(best, truth), "seconds": seconds}


def _large(name):
    """One method, compiled before."""
    _call(name, *perturbed(500, 20))
    draws, truth = perturbed(100_000, 200)
    call = used(_call, name, draws, truth)
    return _beside_truth(call.result, truth) | {"seconds": call.seconds, "GB at most": call.gigabytes}


def _call(name, draws, truth):
    if name == "refinement":
        return refine_partition(draws, np.where(np.arange(truth.size) % 7 == 0, 0, truth))
    return _best(draws, "vi", name.partition(",")[0], **LARGE[name])


def _beside_truth(found, truth):
    distance = pc.losses.misclassification_distance(found, truth)
    return {"misclassified": f"{distance:.4f}", "clusters": int(np.max(getattr(found, "labels", found))) + 1}


def _measured(smallest, *arguments, **options):
    """What it returns, and the median of three calls that follow, or the time of the first if that was long."""
    first = used(_best, *arguments, **options)
    if smallest or first.seconds > 30:
        return first.result, first.seconds
    return first.result, *median_seconds(lambda: _best(*arguments, **options), repeats=3)


def _best(draws, loss, method, **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


def perturbed(n_items: int, n_draws: int) -> tuple[pc.results.PartitionDraws, np.ndarray]:
    """Draws that keep each label of ten clusters with probability 0.55, and else have any."""
    truth = np.arange(n_items) % 10
    made = pc.simulate.random_perturbation(n_items, 10, n_draws=n_draws, noise=0.45, truth=truth, random_seed=1)
    return made.draws, truth
