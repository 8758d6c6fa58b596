"""Every benchmark runs, at its smallest size, so that none of them rots."""

import itertools
import math
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from benchmarks import reproduce_consensus_paper
from benchmarks.mixtures import dirichlet_process_draws

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(file.stem for file in (ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs(name, capfd, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [name, "--smallest"])
    import_module(f"benchmarks.{name}").main()
    assert capfd.readouterr().out.count("\n| ") >= 2  # a rule and at least one row below the header


def test_cells_a_twentieth_apart_are_close():
    cells = {"method": "EM", "refined": False, "paper": [0.95, 0.95], "difference": [1.0 - 0.95, 0.051]}
    found = reproduce_consensus_paper.agreement_by_row(pd.DataFrame(cells)).loc["EM"]
    assert (found["cells"], found["close"]) == (2, 1)


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
