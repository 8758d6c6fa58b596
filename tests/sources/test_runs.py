"""Runs of clustering programs."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc

TABLE = pd.DataFrame(
    {"leiden_0": ["0", "0", "1"], "leiden_1": ["1", "1", "1"], "louvain_0": ["0", "1", "2"]},
    index=["AAC", "ACC", "CAT"],
)
LABELS = [[0, 0, 1], [0, 0, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (TABLE, {}),
        (TABLE.T, {"axis": 0}),
        (SimpleNamespace(obs=TABLE, obs_names=TABLE.index), {"keys": ["leiden_0", "leiden_1", "louvain_0"]}),
        (np.array(LABELS), {}),
        (np.array(LABELS).T, {"axis": 1}),
        ([np.array(row) for row in LABELS], {}),
    ],
)
def test_runs_of_any_form(data, options):
    runs = pc.as_runs(data, **options)
    assert runs.labels.tolist() == LABELS
    assert runs.samples.independent
    assert runs.samples.words.draw == "run"


def test_pattern_chooses_runs():
    assert pc.as_runs(TABLE, "leiden_*").samples.draw.tolist() == ["leiden_0", "leiden_1"]


def test_noise_is_together_with_nobody():
    runs = pc.as_runs([[0, -1, -1, 0], [0, 0, 1, 1]], noise=-1)
    assert runs.labels.tolist() == [[0, 1, 2, 0], [0, 0, 1, 1]]
    assert runs.noise.tolist() == [[False, True, True, False], [False] * 4]
    assert runs.take([1]).noise.tolist() == [[False] * 4]


def test_error_is_that_of_independent_repetitions():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (40, 30))
    runs = pc.as_runs(labels)
    values = runs.n_clusters + rng.random(40)
    error, ess = runs.samples.mcse_and_ess(values)
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(40), rel=1e-12)
    assert ess == 40
    p = pc.posterior_similarity_matrix(runs).values
    errors = pc.diagnostics.similarity_mcse(runs).values
    assert errors[0, 1] == pytest.approx(runs.samples.probability_mcse((labels[:, 0] == labels[:, 1]).astype(float)))
    assert p[0, 1] == np.mean(labels[:, 0] == labels[:, 1])
