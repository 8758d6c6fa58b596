"""Closed forms against definitions, ArviZ's own numbers, and verdicts on chains known to be at odds."""

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats

import posterior_consensus as pc
from posterior_consensus.diagnostics import traces
from posterior_consensus.ensemble.r_hat import half_chains
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, associations, noisy_draws, sticky_chains, two_modes, unequal_chains
from tests.helpers import GOOD, check

DATA = Path(__file__).parents[2] / "posterior_consensus" / "example_data"


def halves(draws):
    length = min(rows.size for rows in draws.samples.chains)
    cut = [rows[:length] for rows in draws.samples.chains]
    return [rows[: length // 2] for rows in cut] + [rows[length - length // 2 :] for rows in cut]


@pytest.mark.parametrize(
    ("lengths", "n_items"), [((10, 10), 6), ((11, 11, 11), 5), ((4,) * 4, 8), ((50, 50), 70), ((30, 45, 77), 2)]
)
def test_partition_rhat_is_the_definition(rng, lengths, n_items):
    draws = unequal_chains(rng, lengths, n_items)
    parts = [associations(draws.labels[rows]) for rows in halves(draws)]
    length, means = len(parts[0]), np.array([part.mean(axis=0) for part in parts])
    within = np.mean([part.var(axis=0, ddof=1).sum() for part in parts])
    between = means.var(axis=0, ddof=1).sum()
    expected = np.sqrt(((length - 1) / length * within + between) / within)
    found = pc.diagnose(draws).partition_rhat
    assert found == pytest.approx(expected, rel=1e-9)
    if n_items == 2:  # a single pair
        indicator = (draws.labels[:, 0] == draws.labels[:, 1]).astype(float)
        chains = np.stack([indicator[rows[: min(lengths)]] for rows in draws.samples.chains])
        assert found == pytest.approx(float(array_stats.rhat(chains, chain_axis=0, draw_axis=1, method="split")))


@pytest.mark.parametrize("stay", [0.0, 0.5, 0.9])
def test_partition_ess_of_a_known_autocorrelation(rng, stay):
    expected = 10_000 * (1 - stay) / (1 + stay)
    assert pc.diagnose(sticky_chains(rng, 4, 2500, 8, stay)).partition_ess == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("times", [1, 5])
def test_partition_ess_of_repeated_draws(rng, times):
    draws = np.repeat(rng.integers(3, size=(2, 600, 10)), times, axis=1)
    assert pc.diagnose(draws).partition_ess == pytest.approx(1200, rel=0.1)


def test_chains_that_disagree_are_worth_little(rng):
    chains = two_modes(rng, [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]], 500)
    assert pc.diagnose(chains).partition_ess < 20


def test_traces_are_what_they_are_called(rng):
    draws = pc.as_partition_draws(noisy_draws(rng, 60, 9, 4, 0.3).reshape(2, 30, 9))
    centre = draws.labels[7]
    found = pc.diagnose(draws, centre, references={"one cluster": np.zeros(9, int)}, loss="binder").traces
    sizes = [np.bincount(row) for row in draws.labels]
    expected = {
        "number of clusters": [len(s) for s in sizes],
        "entropy of sizes": [reference.entropy(row) for row in draws.labels],
        "largest cluster": [s.max() / 9 for s in sizes],
        "mean co-clustering": associations(draws.labels).mean(axis=1),
        "distance to consensus": [reference.binder(centre, row) for row in draws.labels],
        "distance to one cluster": [reference.binder([0] * 9, row) for row in draws.labels],
    }
    assert found["summary"].values.tolist() == list(expected)
    np.testing.assert_allclose(found, np.array(list(expected.values())), atol=1e-12)


def test_references_are_far_apart_by_default(rng):
    draws = pc.as_partition_draws(noisy_draws(rng, 60, 9, 4, 0.3))
    found = pc.diagnose(draws, draws.labels[0]).traces
    distances = found.sel(summary=["distance to consensus", "distance to far draw", "distance to opposite draw"]).values
    far, opposite = distances[0].argmax(), distances[1].argmax()
    assert distances[1, far] == distances[2, opposite] == 0
    assert distances[1, opposite] == distances[2, far] == distances[1].max()


@pytest.mark.parametrize("shape", [(2, 40, 8), (4, 101, 12)])
def test_statistics_are_arviz_s(arviz, rng, shape):
    chains = sticky_chains(rng, *shape, 0.6)
    found = pc.diagnose(chains)
    values = found.traces.values.reshape(len(found.traces), *shape[:2])
    pairs = found.pairs
    first, second = (pairs[name].values.astype(int) for name in ("pair_first", "pair_second"))
    together = np.moveaxis(chains[..., first] == chains[..., second], -1, 0).astype(float)
    for ours, traced in ((found.summaries, values), (pairs, together)):
        names = [f"trace{k}" for k in range(len(traced))]
        dataset = xr.Dataset({name: (("chain", "draw"), one) for name, one in zip(names, traced, strict=True)})
        theirs = {
            "rhat": arviz.rhat(dataset),
            "ess_bulk": arviz.ess(dataset, method="bulk"),
            "ess_tail": arviz.ess(dataset, method="tail", prob=(0.05, 0.95)),  # the default of ArviZ 0.x
        }
        if "mcse" in ours:
            theirs["mcse"] = arviz.mcse(dataset, method="mean")
        for name, results in theirs.items():
            expected = [float(results[one]) for one in names]
            np.testing.assert_allclose(ours[name], expected, rtol=1e-9, err_msg=name)


def test_largest_difference_is_the_largest_difference_of_two_matrices(rng):
    draws = unequal_chains(rng, (30, 41, 50), 70)
    found = pc.diagnose(draws).largest_difference
    matrices = np.array([reference.similarity(draws.labels[rows]) for rows in draws.samples.chains])
    assert found.size == pytest.approx(np.ptp(matrices, axis=0).max(), abs=1e-12)
    low, high = found.chains
    first, second = found.items
    np.testing.assert_allclose(found.shares, [matrices[low][first, second], matrices[high][first, second]])
    assert found.shares[1] - found.shares[0] == found.size
    indicator = (draws.labels[:, first] == draws.labels[:, second]).astype(float)
    chains = [indicator[rows] for rows in draws.samples.chains]
    parts = [np.array_split(chain, int(np.sqrt(chain.size))) for chain in chains]  # 5, 6 and 7 batches
    squares = sum(p.size * (p.mean() - c.mean()) ** 2 for c, own in zip(chains, parts, strict=True) for p in own)
    variance = squares / (18 - 3) * (1 / chains[low].size + 1 / chains[high].size)
    assert found.mcse == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_largest_difference_has_the_users_names(approved):
    z = np.array([[[0, 0, 1]] * 20, [[0, 1, 1]] * 20])
    coords = {"chain": [3, 8], "city": ["Bonn", "Kiel", "Ulm"]}
    found = pc.diagnose(xr.DataArray(z, dims=("chain", "draw", "city"), coords=coords))
    assert (
        found.difference_items == ("Bonn", "Kiel")
        and found.largest_difference.chains == (8, 3)
        and found.largest_difference.size == 1
    )
    approved("verdicts_diagnosis", "names of chains and items", found.verdict)


def test_numbers_of_clusters_agree_where_partitions_do_not(rng):
    chains = two_modes(rng, [[0] * 5 + [1] * 5, [0, 1] * 5], 400)
    found = pc.diagnose(chains, np.zeros(10, int))
    rhat = found.summaries["rhat"].to_series()
    same = ["number of clusters", "entropy of sizes", "largest cluster", "mean co-clustering", "distance to consensus"]
    assert (rhat[same] < 1.02).all() and found.summaries["ess_bulk"].sel(summary=same).min() > 400
    assert rhat["distance to far draw"] > 1.05 and found.partition_rhat > 1.05 and found.largest_difference.size > 0.5
    assert found.status == "disagree"


def test_distance_to_one_partition_agrees_where_partitions_do_not(rng):
    four = np.repeat(np.arange(4), 4)
    three = np.minimum(four, 2)
    six = np.where(np.arange(16) % 4 >= 2, four + 4 * (four < 2), four)
    assert pc.partition_loss(three, four) == pc.partition_loss(six, four) == 0.5
    found = pc.diagnose(two_modes(rng, [three, six], 400, common=four), four)
    rhat = found.summaries["rhat"].to_series()
    assert rhat["distance to consensus"] < 1.02 < 1.05 < rhat["number of clusters"]
    assert found.status == "disagree"


@pytest.mark.parametrize(("name", "status"), [("galaxies.nc", "agree"), ("galaxies_not_converged.nc", "disagree")])
def test_shipped_posteriors(name, status, approved):
    found = pc.diagnose(DATA / name)
    assert found.status == status and (found.largest_difference.size > 0.9) == (status == "disagree")
    approved("verdicts_diagnosis", name, found.verdict)


def some(seed, *shape):
    return np.random.default_rng(seed).integers(3, size=shape)


VERDICTS = {
    "one item": (np.zeros((2, 100, 1), int), "agree"),
    "few draws": (np.array([[[0, 0, 1], [0, 1, 1], [0, 0, 1]]] * 2), "unknown"),
    "equal draws": (np.tile([0, 0, 1], (2, 50, 1)), "unknown"),
    "one chain": (some(1, 1, 400, 9), "unknown"),
    "one short chain": (sticky_chains(np.random.default_rng(2), 1, 400, 9, 0.95), "unknown"),
    "short chains": (some(3, 4, 60, 9), "short"),
    "agree": (some(4, 4, 500, 9), "agree"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name, approved):
    draws, status = VERDICTS[name]
    found = pc.diagnose(draws)
    assert found.status == status
    approved("verdicts_diagnosis", name, found.verdict)
    plain = re.sub("</?b>", "", found._repr_html_())  # the word of the verdict is bold
    assert found.verdict[:40] in repr(found) and found.verdict[:40] in plain
    if status == "short":
        least = min(found.partition_ess, float(found.summaries[["ess_bulk", "ess_tail"]].to_array().min()))
        times = float(re.search("about ([0-9.]+) times", found.verdict)[1])  # rounded up
        assert 0 <= times - 1000 / least < 0.1


def test_a_single_draw_is_called_one(approved):
    found = pc.diagnose(np.array([[0, 0, 1, 1, 2]]))
    assert found.status == "unknown"
    approved("verdicts_diagnosis", "one draw", found.verdict)


def test_slow_chains_of_one_posterior_do_not_agree_yet():
    """At an effective size of 13 a chain, where one in five of the differences is called real."""
    for seed in range(6):
        rng = np.random.default_rng([9, seed])
        moves = rng.random((4, 250)) >= 0.9
        moves[:, 0] = True
        last = np.maximum.accumulate(np.where(moves, np.arange(250), 0), axis=1)
        chains = np.take_along_axis(rng.integers(3, size=(4, 250, 20)), last[..., np.newaxis], axis=1)
        found = pc.diagnose(chains)
        assert found.status == "disagree" and found.verdict.startswith("The chains do not agree yet")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    for n_chains in (1, 2):
        found = pc.diagnose(np.stack([DEGENERATE[name]] * n_chains))
        assert isinstance(repr(found), str) and isinstance(found._repr_html_(), str)
        assert found.status in ("agree", "short", "disagree", "unknown")
        assert "nan" not in repr(found).split("\n\n")[0]
        assert not np.isinf(found.to_dataframe().to_numpy()).any()


def test_good_chains_that_mix_slowly_do_not_disagree():
    """An effective sample size of about 50 a chain: the largest of many R-hats and differences is large by chance."""
    found = [pc.diagnose(sticky_chains(np.random.default_rng(seed), 4, 1_000, 30, 0.9)) for seed in range(4)]
    assert [one.status for one in found] == ["short"] * 4
    assert sum(float(one.pairs["rhat"].max()) > 1.05 for one in found) >= 2


@pytest.mark.slow
def test_good_chains_seldom_disagree():
    for shape, stay, most in (((4, 1_000, 30), 0.9, 2), ((4, 150, 300), 0.0, 1)):
        found = [pc.diagnose(sticky_chains(np.random.default_rng(seed), *shape, stay)) for seed in range(20)]
        assert sum(one.status == "disagree" for one in found) <= most


def test_the_odd_chain_is_named(rng):
    modes = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]
    for order in ([0, 1, 2, 3], [3, 0, 1, 2], [0, 3, 1, 2]):
        found = pc.diagnose(two_modes(rng, [modes[k] for k in order], 300))
        odd = order.index(3)
        assert found.odd_chain == odd and found.status == "disagree"
        assert f"chain {odd} differs from all others" in found.verdict and "never moves" not in found.verdict


def test_a_chain_that_never_moves_is_named(rng, approved):
    chains = two_modes(rng, [[0, 0, 0, 1, 1, 1]] * 4, 300)
    chains[3] = [0, 1, 2, 0, 1, 2]
    coords = {"chain": [10, 11, 12, 13]}
    found = pc.diagnose(xr.DataArray(chains, dims=("chain", "draw", "obs"), coords=coords))
    assert found.odd_chain == 13
    approved("verdicts_diagnosis", "an odd chain that never moves", found.verdict)


def test_the_verdict_on_chains_that_disagree_goes_on(rng, approved):
    """Log densities by chain, where the data have them, and the partitions of both sides."""
    chains = two_modes(rng, [[0, 0, 0, 1, 1, 1]] * 3 + [[0, 1, 0, 1, 2, 2]], 100)
    z = xr.DataArray(chains, dims=("chain", "draw", "item"), coords={"chain": [2, 3, 5, 8], "draw": np.arange(100)})
    lp = np.broadcast_to(np.array([-300.0, -301.0, -300.5, -312.25])[:, np.newaxis], (4, 100))
    stats = z.isel(item=0).copy(data=lp).to_dataset(name="lp")
    logs = z.copy(data=np.broadcast_to(lp[..., np.newaxis] / 6, z.shape)).to_dataset(name="y")
    groups = {"posterior": z.to_dataset(name="z"), "log_likelihood": logs}
    both = pc.diagnose(xr.DataTree.from_dict({**groups, "sample_stats": stats}))
    assert both.odd_chain == 8
    approved("verdicts_diagnosis", "an odd chain, with log densities", both.verdict)
    two = xr.DataTree.from_dict({name: group.isel(chain=[0, 3]) for name, group in groups.items()})
    for alone in (pc.diagnose(two), pc.summarize(two, modes=False, random_seed=1, progressbar=False).diagnosis):
        assert "log likelihood is -300 in chain 2 and -312.25 in chain 8" in alone.verdict
        assert alone.odd_chain is None and "Without chain" not in alone.verdict
    fewer = xr.DataTree.from_dict({**groups, "sample_stats": stats.isel(draw=slice(50, None))})
    assert "The mean log" not in pc.diagnose(fewer).verdict
    zeros = xr.DataTree.from_dict({**groups, "sample_stats": 0 * stats})
    assert "log likelihood is" in pc.diagnose(zeros).verdict and "log posterior" not in pc.diagnose(zeros).verdict


def test_of_many_chains_the_least_and_the_largest_log_density_are_named(rng):
    chains = two_modes(rng, [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 2, 2]] * 5, 100)
    z = xr.DataArray(chains, dims=("chain", "draw", "item"), coords={"chain": np.arange(10), "draw": np.arange(100)})
    lp = z.isel(item=0).copy(data=np.tile(-300.0 - np.array([4, 1, 2, 0, 5, 3, 9, 7, 6, 8])[:, np.newaxis], (1, 100)))
    tree = xr.DataTree.from_dict({"posterior": z.to_dataset(name="z"), "sample_stats": lp.to_dataset(name="lp")})
    assert "between -309 (chain 6) and -300 (chain 3)" in pc.diagnose(tree).verdict


def test_no_chain_is_odd_where_others_disagree_too(rng):
    partitions = [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1], [0, 1, 2, 2, 1, 0]]
    for modes in ([0, 1], [0, 0, 1, 1], [0, 1, 2]):
        found = pc.diagnose(two_modes(rng, [partitions[k] for k in modes], 300))
        assert found.status == "disagree" and found.odd_chain is None
        assert "between chains" in found.verdict and "all others" not in found.verdict


def test_copies_of_a_chain_are_named(rng, approved):
    chains = rng.integers(3, size=(4, 150, 9))
    assert "copies" not in pc.diagnose(chains).verdict
    found = pc.diagnose(chains[[0, 0, 0, 0]])
    assert found.status == "unknown"
    approved("verdicts_diagnosis", "copies of one chain", found.verdict)
    coords = {"chain": ["a", "b", "c", "d"]}
    given = xr.DataArray(chains[[2, 1, 2, 3]], dims=("chain", "draw", "obs"), coords=coords)
    verdict = pc.diagnose(given).verdict
    assert "Chains a and c are copies" in verdict and "draws.sel(chain=['a', 'b', 'd'])" in verdict
    soft = rng.dirichlet(np.ones(3), size=(3, 40, 9))[[0, 1, 0]]
    assert "Chains 0 and 2 are copies" in pc.diagnose(pc.as_allocation_probabilities(soft)).verdict


def test_a_stretch_that_chains_share_is_named_wherever_it_is(rng, monkeypatch):
    chains = np.tile(rng.integers(3, size=(4, 150, 10)), 30)  # items, of which 256 are a block
    chains[2, 30:120] = chains[0, 50:140]
    for width in (2**24, 1):
        monkeypatch.setattr("posterior_consensus.runtime.memory.LABELS_IN_BLOCK", width)
        found = pc.diagnose(chains)
        assert found.status == "unknown" and "Chains 0 and 2 share 90 equal draws" in found.verdict
    apart = two_modes(rng, [[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]], 200)[[0, 0, 1]]
    found = pc.diagnose(apart)
    assert found.status == "disagree" and found.verdict.startswith("The chains disagree") and "copies" in found.verdict


def test_chains_that_often_are_equal_are_no_copies(rng):
    """Two partitions, of which chains stay at one: equal stretches are no sign of a copy."""
    at = np.cumsum(rng.random((4, 500, 1)) < 0.02, axis=1) % 2
    few = np.where(rng.random((4, 500, 1)) < 0.5, [0, 0, 1, 1], [0, 1, 1, 1])
    for chains in (np.where(at, [0, 0, 1, 1], [0, 1, 1, 1]), few, np.zeros((2, 50, 3), int)):
        assert "copies" not in pc.diagnose(chains).verdict and "share" not in pc.diagnose(chains).verdict


def test_summed_out_labels_are_not_to_be_summed_out(rng):
    labels = two_modes(rng, [[0, 0, 1, 1], [0, 1, 0, 1]], 100)
    hard, soft = pc.diagnose(labels), pc.diagnose(pc.as_allocation_probabilities(np.eye(2)[labels]))
    assert hard.status == soft.status == "disagree"
    assert "marginalized" in hard.verdict and "marginalized" not in soft.verdict and "tempering" in soft.verdict


@pytest.mark.parametrize("modes", [[[0, 0, 1, 1], [0, 1, 1, 0]], [[0, 0, 1, 1], [0, 1, 1, 2], [0, 1, 2, 3]]])
def test_chains_that_never_move_have_no_number_for_it(modes, still, tmp_path):
    chains = np.repeat(np.array(modes)[:, np.newaxis], 100, axis=1)
    summary = pc.summarize(chains, random_seed=1, progressbar=False)
    found = summary.diagnosis
    assert "no chain ever moves, and each stays" in found.verdict and found.status == "disagree"
    assert found.worst_rhat == found.partition_rhat == np.inf and found.largest_difference.mcse == 0
    assert "R-hat was infinite" in summary.methods_text()
    titles = [ax.get_title(loc="right") for ax in found.plot().ravel()]
    report = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    report = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", report, flags=re.DOTALL)  # what is read of it
    for text in (repr(summary), repr(found), summary.methods_text(), *summary.findings(), *titles, report):
        assert not re.search(r"(?<![\d.])\d{7}", re.sub(r"https?://\S+", "", text)), text
    rhat = found.summaries["rhat"].values
    assert np.all(np.isnan(rhat) | np.isinf(rhat) | (rhat < 1e3))
    for values in (found.to_dataframe()["rhat"], found.pairs["rhat"].values):
        assert not np.any((values > 1e3) & np.isfinite(values))


def test_a_spread_that_differs_between_chains_is_infinite_too(approved):
    """The distance from the median never varies within a chain, which ArviZ finds by rounding only."""
    mid, ends = np.tile([0, 0, 1, 1, 2, 2], (100, 1)), np.tile([[0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 3, 3]], (50, 1))
    found = pc.diagnose(np.stack([mid, ends]))
    rhat = found.summaries["rhat"].values
    assert np.isinf(rhat).any() and not np.any((rhat > 1e3) & np.isfinite(rhat))
    approved("verdicts_diagnosis", "a chain without spread", found.verdict)


def test_weights_change_means_and_sizes_but_not_agreement(rng):
    chains = noisy_draws(rng, 200, 8, 3, 0.4).reshape(2, 100, 8)
    weights = rng.exponential(size=(2, 100))
    plain, weighted = pc.diagnose(chains), pc.diagnose(pc.as_partition_draws(chains, weights=weights))
    xr.testing.assert_equal(plain.summaries["rhat"], weighted.summaries["rhat"])
    assert plain.largest_difference == weighted.largest_difference and plain.partition_rhat == weighted.partition_rhat
    kish = weights.sum() ** 2 / np.square(weights).sum()
    assert weighted.partition_ess == pytest.approx(plain.partition_ess * kish / 200)
    assert (weighted.summaries["ess_bulk"] < plain.summaries["ess_bulk"]).all()
    expected = np.average(plain.traces, axis=1, weights=weights.ravel())
    np.testing.assert_allclose(weighted.summaries["mean"], expected, rtol=1e-12)


def test_pairs_are_uncertain_ones_and_the_same_for_a_seed(rng):
    z = noisy_draws(rng, 100, 30, 4, 0.2)
    z[:, 20:] = z[:, :10]  # ten pairs that are always together
    draws = pc.as_partition_draws(z.reshape(2, 50, 30))
    found = pc.diagnose(draws, n_pairs=40, random_seed=7).pairs
    assert found.sizes["pair"] == 40
    first, second = (found[name].values.astype(int) for name in ("pair_first", "pair_second"))
    assert len(set(zip(first, second, strict=True))) == 40 and np.all(first < second)
    shares = reference.similarity(z)[first, second]
    np.testing.assert_allclose(found["mean"], shares, rtol=1e-12)
    assert np.all((shares > 0) & (shares < 1))
    xr.testing.assert_identical(found, pc.diagnose(draws, n_pairs=40, random_seed=7).pairs)
    assert not found["pair_first"].equals(pc.diagnose(draws, n_pairs=40, random_seed=8).pairs["pair_first"])


def test_pairs_of_many_items_are_looked_for_at_random(rng):
    draws = pc.as_partition_draws(noisy_draws(rng, 50, 400, 4, 0.2))
    chosen = traces.uncertain_pairs(draws, 100, rng)
    shares = traces.together_trace(draws, chosen).mean(axis=1)
    assert chosen.shape == (100, 2) and np.all(chosen[:, 0] < chosen[:, 1]) and np.all((shares > 0) & (shares < 1))


def test_references_by_name_and_by_number(rng):
    draws = noisy_draws(rng, 40, 5, 3, 0.4)
    many = [[0] * 5, list(range(5))]
    assert "distance to reference 1" in pc.diagnose(draws, references=many).to_dataframe().index
    assert "distance to b" in pc.diagnose(draws, references=dict(zip("ab", many, strict=True))).to_dataframe().index


def test_bad_arguments():
    for option, value, error, part in (
        ("n_pairs", 0, ValueError, "at least 1; got 0"),
        ("n_pairs", 2.0, TypeError, "an integer; got 2.0"),
        ("random_seed", "a", TypeError, "got 'a'"),
        ("loss", "zz", ValueError, "'zz'"),
        ("partition", [0, 1], ValueError, "must label all 4 items"),
        ("references", [[0, 1]], ValueError, "must label all 4 items"),
        ("references", "ab", TypeError, "got str"),
    ):
        check(lambda given, option=option: pc.diagnose(GOOD, **{option: given}), value, error, [f"`{option}`", part])


def test_taken_draws_keep_everything_else(rng):
    draws = pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), size=(2, 5, 4)), weights=np.arange(10.0))
    taken = draws.take(np.array([7, 2, 3]))
    assert taken.counted_draws is None and taken.samples.is_weighted and taken.items.dim == draws.items.dim
    np.testing.assert_array_equal(taken.labels, draws.labels[[7, 2, 3]])
    np.testing.assert_array_equal(taken.probabilities, draws.probabilities[[7, 2, 3]])
    np.testing.assert_array_equal(taken.components, draws.components[[7, 2, 3]])
    np.testing.assert_allclose(taken.weights, np.array([7, 2, 3]) / 12)
    assert taken.samples.chain.tolist() == [1, 0, 0] and [rows.tolist() for rows in taken.samples.chains] == [
        [0],
        [1, 2],
    ]
    alone = draws.take(np.array([0, 0]))
    assert alone.weights.tolist() == [0.5, 0.5] and not alone.samples.is_weighted
    assert draws.as_sampled().counted_draws is not None and not draws.as_sampled().samples.is_weighted


def test_half_chains_leave_out_a_middle_draw():
    draws = pc.as_partition_draws(np.zeros((2, 5, 3), int))
    assert half_chains(draws.samples).tolist() == [[0, 1], [5, 6], [3, 4], [8, 9]]
