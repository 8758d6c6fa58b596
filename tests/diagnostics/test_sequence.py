"""Distances along the chains are the definition, and the burn-in that was put in is what is found."""

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.diagnostics.sequence import end_of_burn_in
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, sticky_chains, unequal_chains
from tests.helpers import GOOD, check

BLOCK_MODEL = Path(__file__).parents[2] / "posterior_consensus" / "example_data" / "block_model.nc"
LOSSES = {
    "vi": ("vi", reference.vi),
    "nmi": ("nmi", reference.LOSSES["nmi"]),
    "vi(a=0.4)": (pc.vi(0.4), lambda x, y: reference.vi(x, y, 0.4)),
}


def drifting(rng, length, n_items, n_states):
    """A chain whose items leave one cluster for another, one after the other, in `n_states` even steps, and stays."""
    moved = np.minimum(np.arange(length) * n_items // n_states, n_items)[:, np.newaxis]
    noise = rng.random((length, n_items)) < 0.1
    return (np.arange(n_items) < moved) * (1 + np.arange(n_items) % 2) ^ noise


@pytest.mark.parametrize(("name", "lag"), [("vi", 1), ("nmi", 4), ("vi(a=0.4)", 4)])
def test_steps_are_distances_from_draws_before(rng, name, lag):
    loss, definition = LOSSES[name]
    draws = unequal_chains(rng, (7, 3, 12), 8)
    draws = draws.take(rng.permutation(draws.n_draws))  # chains need not lie one after the other
    found = pc.diagnostics.sequential_distances(draws, loss=loss, lag=lag)
    for rows in draws.samples.chains:
        z, steps = draws.labels[rows], found.steps.values[rows]
        assert np.isnan(steps[:lag]).all()
        np.testing.assert_allclose(steps[lag:], [definition(z[t - lag], z[t]) for t in range(lag, len(z))], atol=1e-12)
    np.testing.assert_array_equal(found.steps["chain"], draws.samples.chain)


def test_distance_from_the_second_half_leaves_the_draw_itself_out(rng):
    draws = unequal_chains(rng, (9, 14), 8)
    found = pc.diagnostics.sequential_distances(draws).to_second_half.values
    for rows in draws.samples.chains:
        half = len(rows) // 2
        for t, row in enumerate(rows):
            others = [s for s in range(half, len(rows)) if s != t]
            expected = np.mean([reference.vi(draws.labels[rows[s]], draws.labels[row]) for s in others])
            assert found[row] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("transient", [0, 20, 90, "half"])
def test_rule_is_the_least_standard_error(rng, transient):
    for length in (100, 157, 200, 403):
        spare = length % 5
        ends = length // 10 * 5 + spare if transient == "half" else transient
        trace = rng.normal(size=length) + (30 if transient == "half" else 3) * (np.arange(length) < ends)
        batches = [trace[k : k + 5].mean() for k in range(spare, length, 5)]
        errors = {}
        for d in range(len(batches)):
            left = np.array(batches[d:])
            if len(left) >= max(10, len(batches) / 10):
                errors[d] = ((left - left.mean()) ** 2).sum() / len(left) ** 2
        best = min(errors, key=errors.get)
        expected = (length // 2, False) if best >= len(batches) // 2 else (best and 5 * best + spare, True)
        assert end_of_burn_in(trace) == expected


def test_less_than_a_tenth_of_a_chain_is_not_all_that_is_kept(rng):
    assert end_of_burn_in(np.append(rng.normal(size=940), np.zeros(60)))[1]


@pytest.mark.parametrize("transient", [40, 150])
def test_burn_in_that_was_put_in_is_found(rng, transient):
    stationary = noisy_draws(rng, 800 - transient, 40, 4, 0.5)
    start = np.zeros((transient, 40), int)
    found = pc.diagnostics.sequential_distances(np.concatenate([start, stationary]))
    assert found.settled and transient <= found.burn_in["burn_in"].item() <= transient + 5
    assert found.kept[0] == found.burn_in["burn_in"].item() == found.burn_in["first_draw"].item()
    assert found.burn_in["step"].item() == pytest.approx(np.mean(found.steps.values[found.kept]))


def test_steps_do_not_tell_a_slow_drift_but_the_rule_does(rng):
    chain = drifting(rng, 600, 100, 150)
    found = pc.diagnostics.sequential_distances(chain)
    before, after = found.steps.values[1:100].mean(), found.steps.values[300:].mean()
    assert before == pytest.approx(after, rel=0.5)  # the chain takes steps as large before as after
    assert found.settled and 110 <= found.burn_in["burn_in"].item() <= 170
    still = pc.diagnostics.sequential_distances(drifting(rng, 600, 100, 600))
    assert not still.settled and still.burn_in["burn_in"].item() == 300
    assert "not settled" in repr(still) and "Run longer chains" in " ".join(repr(still).split())


def test_a_late_change_of_modes_is_not_settled(rng):
    for share in (0.7, 0.9):
        in_first = np.arange(1000)[:, np.newaxis] < 1000 * share
        centres = np.where(in_first, np.arange(40) % 4, np.arange(40) // 10)
        chain = np.where(rng.random((1000, 40)) < 0.3, rng.integers(4, size=(1000, 40)), centres)
        found = pc.diagnostics.sequential_distances(chain)
        assert not found.settled and found.burn_in["burn_in"].item() == 500


def test_stationary_chains_keep_nearly_all_draws(rng):
    chains = xr.DataArray(sticky_chains(rng, 40, 600, 12, 0.5), dims=("chain", "draw", "item"))
    found = pc.diagnostics.sequential_distances(chains).burn_in
    assert found["settled"].values.mean() > 0.9
    assert found["burn_in"].values[found["settled"].values].mean() < 15


def test_each_chain_has_its_own_burn_in(rng):
    chains = noisy_draws(rng, 1000, 30, 3, 0.4).reshape(2, 500, 30)
    chains[1, :100] = 0
    burn_in = pc.diagnostics.sequential_distances(
        xr.DataArray(chains, dims=("chain", "draw", "obs"), coords={"chain": [4, 9]})
    )
    first, second = burn_in.burn_in["burn_in"].sel(chain=[4, 9]).values
    assert first < 50 and 100 <= second <= 105
    np.testing.assert_array_equal(burn_in.kept, [*range(first, 500), *range(500 + second, 1000)])


def test_names_of_labels_do_not_matter(rng):
    chain = noisy_draws(rng, 120, 20, 4, 0.4)
    other = np.array([rng.permutation(9)[row] for row in chain])
    one, two = pc.diagnostics.sequential_distances(chain), pc.diagnostics.sequential_distances(other)
    np.testing.assert_array_equal(one.steps, two.steps)
    np.testing.assert_array_equal(one.kept, two.kept)


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        found = pc.diagnostics.sequential_distances(draws)
        assert not found.settled and found.burn_in["burn_in"].item() == len(draws) // 2
        assert "fewer than 100" in " ".join(repr(found).split()) and "<table" in found._repr_html_()


def test_a_chain_that_never_moves_has_no_burn_in():
    found = pc.diagnostics.sequential_distances(np.tile([0, 0, 1], (100, 1)))
    assert found.settled and found.kept.size == 100 and np.all(found.steps.values[1:] == 0)


def test_tables_and_bad_lags(posterior):
    frame = pc.diagnostics.sequential_distances(posterior).to_dataframe()
    assert frame.index.tolist() == [0, 1] and frame["n_draws"].tolist() == [6, 6]
    assert frame["first_draw"].tolist() == [3, 3]
    for lag, error, part in ((0, ValueError, "got 0"), (True, TypeError, "got True"), (1.0, TypeError, "got 1.0")):
        check(lambda lag: pc.diagnostics.sequential_distances(GOOD, lag=lag), lag, error, ["`lag`", part])


def test_chains_of_the_block_model_agree_after_the_burn_in():
    with xr.open_datatree(BLOCK_MODEL, engine="h5netcdf") as tree:
        draws = pc.as_partition_draws(tree, "z")
    found = pc.diagnostics.sequential_distances(draws)
    ends = found.burn_in["burn_in"].values
    assert found.settled and ends.min() >= 30 and ends.max() <= 250
    assert pc.diagnose(draws.take(found.kept)).status == "agree" != pc.diagnose(draws).status


def with_a_start(rng, n_first, n_later=400, n_chains=4, stay=0.5):
    """Chains that keep an item's label with this probability, the first draws nearly all in one cluster."""
    truth = np.repeat([0, 1, 2], 6)
    fresh = np.where(rng.random((n_chains, n_later, 18)) < 0.9, truth, rng.integers(3, size=(n_chains, n_later, 18)))
    kept = rng.random(fresh.shape) < stay
    for t in range(1, n_later):
        fresh[:, t] = np.where(kept[:, t], fresh[:, t - 1], fresh[:, t])
    first = np.where(rng.random((n_chains, n_first, 18)) < 0.03, 1, 0)
    return np.concatenate([first, fresh], axis=1)


def test_the_verdict_says_where_a_burn_in_ends(rng, approved):
    draws = with_a_start(rng, 60)
    draws[3] = with_a_start(rng, 0, 460)[3]
    found = pc.diagnose(draws)
    approved("verdicts_burn_in", "three of four chains", found.verdict)
    end = int(re.search(r"up to about (\d+) draws", found.verdict)[1])
    assert (
        60 <= end <= 75
        and "diagnostics.sequential_distances" in found.verdict
        and f"slice({end}, None)" in found.verdict
    )
    assert "Chains 0, 1 and 2 begin" in found.verdict
    assert "burn-in" not in pc.diagnose(pc.as_partition_draws(draws).isel(draw=slice(end, None))).verdict
    one = pc.diagnose(draws[:1]).verdict
    assert "one chain" in one and "Chain 0 begins with a burn-in of about" in one


def test_no_burn_in_is_seen_in_stationary_chains_or_other_modes(rng):
    for stay in (0.0, 0.8, 0.9):
        assert "burn-in" not in pc.diagnose(with_a_start(rng, 0, 300, stay=stay)).verdict
    modes = np.where(
        np.cumsum(rng.random((4, 500)) < 0.01, axis=1)[..., np.newaxis] % 2, *np.repeat([[0, 1], [0, 2]], 8, 1)
    )
    assert "burn-in" not in pc.diagnose(np.where(rng.random((4, 500, 16)) < 0.05, 1, modes)).verdict


def test_runs_have_no_sequence(rng):
    with pytest.raises(ValueError, match=r"`draws` must be successive draws.* got 8 independent runs.*`diagnose`"):
        pc.diagnostics.sequential_distances(pc.as_runs(noisy_draws(rng, 8, 6, 2, 0.2)))
