import time
from itertools import count, product

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds import certificate
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.results import display
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import CENTRE, GOOD, array, check_all


def certify(draws, partition, loss="binder", **options):
    return pc.certify(draws, partition, loss=loss, progressbar=False, **options)


@pytest.mark.parametrize("seed", range(12))
def test_optimal_only_where_it_is(seed):
    rng, a = np.random.default_rng(seed), (1.0, 0.6, 1.5)[seed % 3]
    draws = random_draws(rng, 8, 6, 3)
    weights = rng.exponential(size=8) if seed % 2 else None

    def loss(one, other):
        return reference.binder(one, other, a)

    least = reference.least_expected(draws, loss, weights)
    for partition in (draws[0], np.zeros(6, int)):
        proof = certify(pc.as_partition_draws(draws, weights=weights), partition, loss=pc.binder(a))
        expected = reference.expected(partition, draws, loss, weights)
        assert proof.expected_loss == pytest.approx(expected, abs=1e-12)
        assert proof.lower_bound <= least + 1e-12
        assert proof.optimality_gap == pytest.approx((expected - proof.lower_bound) / expected, abs=1e-11)
        assert (proof.status == "optimal") == (expected <= least + 1e-11)
        assert (proof.better is None) == (expected <= least + 1e-11)
        if proof.better is not None:
            assert proof.better_loss == pytest.approx(least, abs=1e-12)
            assert reference.expected(proof.better.values, draws, loss, weights) == pytest.approx(least, abs=1e-12)


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        least = reference.least_expected(draws, reference.binder)
        for partition in (draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1])):
            proof = certify(draws, partition)
            assert proof.lower_bound == pytest.approx(least, abs=1e-12) and 0 <= proof.optimality_gap <= 1
            assert (proof.status == "optimal") == (proof.expected_loss <= least + 1e-12)


def test_no_loss_is_no_gap():
    proof = certify([[0, 0, 1]] * 3, [0, 0, 1])
    assert (proof.expected_loss, proof.lower_bound, proof.optimality_gap, proof.status) == (0.0, 0.0, 0.0, "optimal")


def test_equal_draws_leave_no_gap_whatever_the_rounding():
    for a, n_draws in product([0.3, 1.1, 1.277, 1.7], [3, 7, 10]):
        best = pc.consensus_partition([[0, 0, 1, 1, 2, 2, 2]] * n_draws, loss=pc.binder(a), method="boem")
        assert best.expected_loss == 0 and best.optimality_gap == 0 and "optimal" in repr(best)


def test_a_larger_posterior_is_proven():
    draws = noisy_draws(np.random.default_rng(1), 60, 50, 5, 0.5)
    best = pc.consensus_partition(draws, loss="binder", method="exact", progressbar=False)
    assert certify(draws, best).status == "optimal"
    assert certify(draws, best, seconds=1e-9).lower_bound <= best.expected_loss


def test_on_the_user_s_items():
    draws = array(GOOD[np.newaxis], ("chain", "draw", "obs"), obs=list("abcd"))
    proof = certify(draws, np.zeros(4, int))
    assert proof.partition.dims == ("obs",) and proof.better["obs"].values.tolist() == list("abcd")
    stored = proof.to_dataset()
    assert float(stored["certified_optimality_gap"]) == proof.optimality_gap
    assert float(stored["better_loss"]) == proof.better_loss < proof.expected_loss
    assert stored.attrs["certificate_status"] == proof.status == "bounded"
    assert "better_partition" not in certify(draws, proof.better).to_dataset()


def test_says_what_it_found():
    proof, worse = certify(GOOD, CENTRE), certify(GOOD, np.zeros(4, int))
    for text in (repr(proof), proof._repr_html_()):
        assert "optimal" in text and "optimality gap" in text and "none" in text and "better" not in text
        assert f"{proof.lower_bound:.10g}" in text
    for text in (repr(worse), worse._repr_html_()):
        assert (
            "bounded" in text
            and "a better one" in text
            and f"{display.at_most(worse.optimality_gap, '.0%')} of the expected loss" in text
        )
    assert worse.to_dataframe()["n_clusters"].tolist()[:2] == [1, int(worse.better.max()) + 1]
    assert len(repr(worse).splitlines()) < 14


def test_arguments():
    no_bound = [("one_minus_ari", "one_minus_ari"), ("nmi", "nmi"), (pc.vi(0.5), pc.vi(0.5).name)]
    losses = [({"loss": loss}, ValueError, "`loss`", "bounding method", "binder", name) for loss, name in no_bound]
    bad = [(0, ValueError), (-1, ValueError), (np.nan, ValueError), ("1", TypeError), (True, TypeError)]
    seconds = [({"seconds": value}, error, "`seconds`", str(value)) for value, error in bad]
    check_all(lambda options: certify(GOOD, CENTRE, **options), losses + seconds)


@pytest.mark.parametrize("loss", ["binder", "vi", "jaccard"])
def test_without_seconds_the_clock_decides_nothing(loss, monkeypatch):
    draws = noisy_draws(np.random.default_rng(1), 60, 14, 3, 0.6)
    best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
    monkeypatch.setattr(certificate, "_SECONDS_TO_CERTIFY", 0.02)
    proof = certify(draws, best, loss=None)
    for tick in (0.5, 5.0):  # a machine so busy that so much time passes whenever it is asked
        clock = count(0.0, tick)
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: next(clock))
        again = certify(draws, best, loss=None)
        assert (again.lower_bound, again.method, again.info) == (proof.lower_bound, proof.method, proof.info)


def test_the_loss_is_that_of_the_result():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 40, 8, 3, 0.4))
    for loss in ("vi", "binder", "nvi"):
        best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
        summary = pc.summarize(draws, loss=loss, random_seed=1, progressbar=False)
        for partition in (best, summary):
            proof = pc.certify(draws, partition, progressbar=False)
            assert proof.loss.name == loss and proof.expected_loss == pytest.approx(best.expected_loss)
    assert pc.certify(draws, best.labels, progressbar=False).loss.name == "vi"


def far_up(bound):
    bound.best = 1e9
    return iter([])


TOO_HIGH = {  # the loss, and what is replaced in `bounds`
    "binder": ("binder", {"binder.BranchAndBound.bound": property(lambda self: 1.001 * self._best)}),
    "packing": ("binder", {"binder.packing_bound": lambda instance: 1e9}),
    "relaxation": (
        "binder",
        {
            "binder.PairRelaxation.bounds": lambda self: iter([1e9]),
            "binder.BranchAndBound.steps": lambda self: iter([]),
        },
    ),
    "within_variance": ("within_variance", {"sdp.closed_form": lambda m, *_: np.eye(m.counts.size) - 1}),
    "jaccard": ("jaccard", {"matching.loss_matrix": lambda labels, *_: np.full((len(labels),) * 2, 9.0)}),
    "vi": ("vi", {"vi_sets._SetsBound.run": far_up}),
}


@pytest.mark.parametrize("name", TOO_HIGH)
def test_a_bound_above_the_loss_is_a_defect_and_no_proof(name, monkeypatch, rng):
    draws = noisy_draws(rng, 20, 24, 4, 0.3)
    loss, replaced = TOO_HIGH[name]
    best = pc.consensus_partition(draws, loss="binder", method="hierarchical", random_seed=1)
    for target, wrong in replaced.items():
        monkeypatch.setattr(f"posterior_consensus.bounds.{target}", wrong)
    with pytest.raises(RuntimeError, match="defect"):
        certify(draws, best, loss)


def test_a_method_proves_nothing_by_a_bound_that_is_too_high():
    def method(draws, loss, task):
        return Candidate(draws.labels[0], lower_bound=0.1876)

    draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    with pytest.raises(RuntimeError, match=r"0\.1875.*0\.1876.*defect"):
        pc.consensus_partition(draws[1:] + draws[1:2], loss="binder", method=method)
