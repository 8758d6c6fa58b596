"""What results say of chains that disagree, and that they say nothing else."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import posterior_consensus as pc
from posterior_consensus.ensemble.r_hat import doubt_of, rank_rhat
from posterior_consensus.ensemble.series import bulk_size, tail_size

ONE, OTHER = np.array([0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 2, 2, 3, 3])


def chains(rng, apart):
    """Four chains of noisy draws around one partition, the last around another if they are apart."""
    home = np.stack([ONE, ONE, ONE, OTHER if apart else ONE])[:, np.newaxis]
    noise = rng.random((4, 300, 8)) < 0.1
    return pc.as_partition_draws(np.where(noise, rng.integers(4, size=noise.shape), home))


def test_it_names_the_worst_r_hat_of_arviz(rng):
    samples = chains(rng, False).samples
    shift = np.repeat([0.0, 0.0, 0.0, 1.0], 300)
    one, worse = rng.normal(size=1_200) + 0.5 * shift, rng.normal(size=1_200) * (1 + 3 * shift)
    expected = array_stats.rhat(worse.reshape(4, 300), method="rank")
    assert expected > array_stats.rhat(one.reshape(4, 300), method="rank")
    said = doubt_of(samples, {"one": one, "worse": worse, "constant": np.ones(1_200)})
    assert f"R-hat of the worse is {expected:.2f};" in said
    assert "is infinite" in doubt_of(samples, {"stuck": shift})


def test_no_doubt_is_said_where_there_is_none(rng):
    noise = rng.normal(size=1_200)
    assert doubt_of(chains(rng, False).samples, {"noise": noise, "constant": np.ones(1_200)}) is None
    assert doubt_of(pc.as_partition_draws(np.zeros((1_200, 2), int)).samples, {"trend": np.arange(1_200.0)}) is None
    assert doubt_of(pc.as_runs(np.zeros((1_200, 2), int)).samples, {"trend": np.arange(1_200.0)}) is None
    three = pc.as_partition_draws(np.zeros((4, 3, 2), int)).samples
    assert doubt_of(three, {"stuck": np.repeat(np.arange(4.0), 3)}) is None


def results_of(draws):
    options = {"random_seed": 1, "progressbar": False}
    best = pc.consensus_partition(draws, **options)
    other = {"other": pc.priors.crp(1.1)}
    return {
        "consensus": best,
        "ball": pc.credible_ball(draws, best),
        "prior": pc.prior_sensitivity(draws, pc.priors.crp(1.0), alternatives=other, **options),
        "comparison": pc.compare_posteriors(draws, draws, n_particles=1, **options),
    }


@pytest.mark.parametrize("apart", [True, False])
def test_every_result_says_it_of_chains_that_disagree_alone(rng, apart):
    for name, result in results_of(chains(rng, apart)).items():
        assert ("do not agree: the R-hat" in str(result)) == apart, name
        assert type(result).from_dataset(result.to_dataset()).doubt == result.doubt
        assert (result.doubt is not None) == apart, name
        if name in ("prior", "comparison"):
            assert result.verdict.startswith("The chains") == apart


KINDS = {
    "normal": lambda noise: noise,
    "slow": lambda noise: noise.cumsum(axis=-1),
    "ties": np.round,
    "rare": lambda noise: (noise > 1.8).astype(np.float64),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # ArviZ divides 0 by 0 where nothing is rare
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 4), (2, 33), (4, 250), (3, 1_001)])
def test_statistics_are_those_of_arviz(kind, shape, rng):
    chains = KINDS[kind](rng.normal(size=(6, *shape)))
    chains = chains[np.ptp(chains, axis=(-2, -1)) > 0]
    tails = 0.05, 0.95
    for ours, theirs in (
        (bulk_size(chains), array_stats.ess(chains, method="bulk")),
        (tail_size(chains, tails), array_stats.ess(chains, method="tail", prob=tails)),
        (rank_rhat(chains), array_stats.rhat(chains, method="rank")),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
