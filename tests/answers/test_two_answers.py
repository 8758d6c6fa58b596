"""The shipped posterior has two answers, every chain visits both, and our functions say what its tutorial says."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc

FILE = Path(__file__).parents[2] / "examples" / "data" / "two_answers.nc"
QUIET = {"random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def tree():
    with xr.open_datatree(FILE, engine="h5netcdf") as file:
        return file.load()


@pytest.fixture(scope="module")
def draws(tree):
    return pc.as_partition_draws(tree)


def test_every_chain_goes_back_and_forth(draws):
    place = np.array([name.split()[0] for name in draws.items.names])
    with_coast, with_mountain = (
        np.mean(
            [
                (draws.labels[:, [i]] == draws.labels[:, place == other]).mean(axis=1)
                for i in np.flatnonzero(place == "valley")
            ],
            axis=0,
        )
        for other in ("coast", "mountain")
    )
    for rows in draws.samples.chains:
        coast = with_coast[rows] > with_mountain[rows]
        assert 0.5 < coast.mean() < 0.75
        assert np.count_nonzero(np.diff(coast)) > 100


def test_answers_of_the_tutorial(tree, draws):
    found = pc.particles(draws, **QUIET)
    assert found.status == "several modes" and found.n_particles == 2
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
