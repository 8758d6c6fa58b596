"""The shipped posterior has two answers, every chain visits both, and our functions say what its tutorial says."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc

FILE = Path(__file__).parents[2] / "examples" / "data" / "two_answers.nc"
QUIET = {"random_seed": 1, "progressbar": False}


@pytest.mark.slow
def test_answers_of_the_tutorial():
    with xr.open_datatree(FILE, engine="h5netcdf") as file:
        tree = file.load()
    draws = pc.as_partition_draws(tree)
    found = pc.particles(draws, **QUIET)
    assert found.status == "several modes" and found.n_particles == 2 and "every chain visits both" in found.verdict
    np.testing.assert_allclose(found.weights, [0.6, 0.4], atol=0.03)
    best = pc.consensus_partition(draws, **QUIET)
    ball = pc.credible_ball(draws, best)  # around one mode, it holds the other
    assert pc.partition_loss(best, found.partitions[0]) < 0.4 < 0.8 < pc.partition_loss(best, found.partitions[1])
    assert pc.partition_loss(best, found.partitions[1]) < ball.radius
    comparison = pc.compare_posteriors(draws, pc.as_partition_draws(tree, group="four_species"), **QUIET)
    assert all(str(name).startswith("valley") for name in comparison.to_dataframe().index[:10])
    assert comparison.transport.shape == (2, 1)
    numbers = pc.loss_by_n_clusters(draws, n_clusters=[2, 3, 4], **QUIET)
    assert numbers.best == 3 and numbers.within_error == [3]
