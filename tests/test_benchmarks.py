"""Every benchmark runs, at its smallest size, so that none of them rots."""

import itertools
import math
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from benchmarks import _runner, transposed
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks.reproductions import consensus_paper


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", _runner.names())
def test_benchmark_runs(name, capsys, monkeypatch):
    if name == "out_of_core" and sys.platform != "linux":
        pytest.skip("it limits memory as Linux does")
    monkeypatch.chdir(_runner.HERE.parent)
    _runner.run(name, ["--smallest"])
    assert capsys.readouterr().out.count("\n| ") >= 2  # a rule and at least one row below the header


def test_table_is_markdown(capsys):
    _runner.print_table(iter([{"name": "a", "seconds": 0.12345}, {"name": "b", "seconds": 2}]))
    assert capsys.readouterr().out.splitlines() == ["| name | seconds |", "| --- | --- |", "| a | 0.123 |", "| b | 2 |"]


def test_programs_take_turns():
    calls = []
    seconds = _runner.median_seconds(lambda: calls.append("ours"), lambda: calls.append("theirs"), repeats=2)
    assert calls == ["ours", "theirs"] * 2
    assert len(seconds) == 2 and min(seconds) >= 0


def test_memory_is_that_beyond_the_start():
    kept = np.ones(2 * 10**7)  # 0.16 GB
    call = _runner.used(np.add, kept, 1.0)
    assert call.result[0] == 2.0
    assert math.isnan(call.gigabytes) or 0.1 < call.gigabytes < 0.3


def test_cells_a_twentieth_apart_are_close():
    cells = {"method": "EM", "refined": False, "paper": [0.95, 0.95], "difference": [1.0 - 0.95, 0.051]}
    found = consensus_paper.agreement_by_row(pd.DataFrame(cells)).loc["EM"]
    assert (found["cells"], found["close"]) == (2, 1)


@pytest.mark.slow
@pytest.mark.nightly
def test_transposed_arrays_are_noticed():
    """No array as it should be is warned of, and 92% of those with rows and columns exchanged are."""
    found = list(transposed.judged(transposed.N_CASES, seed=1))
    assert sum(one.as_it_is for one in found) == 0
    assert sum(one.exchanged for one in found) >= 0.92 * len(found)


@pytest.mark.slow
def test_gibbs_sampler_of_the_mixtures_draws_from_the_posterior():
    observations = np.array([[-1.2], [-0.9], [0.3], [1.1], [1.6]])
    spread, concentration = 2.0, 0.7
    partitions = [
        p
        for p in itertools.product(range(5), repeat=5)
        if all(k <= max(p[:i], default=-1) + 1 for i, k in enumerate(p))
    ]
    log_weights = [_log_posterior(np.array(p), observations[:, 0], spread, concentration) for p in partitions]
    weights = np.exp(log_weights) / np.exp(log_weights).sum()
    labels = np.array(partitions)
    together = np.einsum("p,pij->ij", weights, labels[:, :, np.newaxis] == labels[:, np.newaxis])
    in_a_draw = weights @ (labels.max(axis=1) + 1)
    draws = dirichlet_process_draws(observations, spread, concentration, 6_000, np.random.default_rng(0))
    found = (draws[:, :, np.newaxis] == draws[:, np.newaxis]).mean(axis=0)
    assert np.abs(found - together).max() < 0.03
    assert abs(np.mean([np.unique(draw).size for draw in draws]) - in_a_draw) < 0.05


def _log_posterior(labels, observations, spread, concentration):
    """Log probability of a partition, but for a constant: Ewens' formula times normal densities of the clusters."""
    total = 0.0
    for k in range(labels.max() + 1):
        cluster = observations[labels == k]
        covariance = np.eye(cluster.size) + spread**2
        total += np.log(concentration) + math.lgamma(cluster.size)
        total += multivariate_normal(cov=covariance).logpdf(cluster)
    return total
