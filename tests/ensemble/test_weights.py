"""Draws with weights of every kind, through every function and figure; and what weights that leave few draws allow."""

import html
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus import consensus, diagnostics
from posterior_consensus.ensemble.similarity import similarity_operator
from tests import reference
from tests.catalogue.functions import LENGTH, N_CHAINS, N_DRAWS, N_ITEMS, functions_of
from tests.catalogue.posteriors import noisy_draws, sticky_chains, unequal_chains
from tests.helpers import mean_similarity


def kinds_of_weights(rng, n_draws):
    """Weights as importance sampling, thinning, stacking and the bootstrap make them, some of them 0."""
    zeros = rng.exponential(size=n_draws)
    zeros[rng.permutation(n_draws)[: n_draws // 3]] = 0.0
    return {
        "lognormal": rng.lognormal(size=n_draws),
        "wide lognormal": rng.lognormal(sigma=3, size=n_draws),
        "Dirichlet": rng.dirichlet(np.ones(n_draws)),
        "sparse Dirichlet": rng.dirichlet(np.full(n_draws, 0.1)),
        "uniform": rng.random(n_draws),
        "counts": rng.multinomial(n_draws, np.full(n_draws, 1 / n_draws)),
        "some of 0": zeros,
        "wide, some of 0": zeros * rng.lognormal(sigma=3, size=n_draws),
        "chains": np.repeat(rng.random(N_CHAINS), -(-n_draws // N_CHAINS))[:n_draws],
    }


KINDS = kinds_of_weights(np.random.default_rng(0), N_DRAWS)
UNLIKE = KINDS["wide, some of 0"]


def is_probability(values):
    values = np.asarray(values)[~np.isnan(values)]
    return np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize("n_draws", [3, 49, 1000])
def test_similarities_are_probabilities(n_draws):
    rng = np.random.default_rng(n_draws)
    labels = noisy_draws(rng, n_draws, 9, 3, 0.2)
    labels[:, 1] = labels[:, 0]  # always together, where rounding would take the sum above 1
    soft = rng.dirichlet(np.full(4, 0.2), size=(n_draws, 9)).astype(np.float32)
    soft[:, :2] = np.eye(4)[0]
    partition = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3])
    for weights in (None, *kinds_of_weights(rng, n_draws).values(), *kinds_of_weights(rng, n_draws).values()):
        hard = pc.as_partition_draws(labels, weights=weights)
        for draws in (hard, pc.as_allocation_probabilities(soft, weights=weights)):
            psm = pc.posterior_similarity_matrix(draws).values
            assert is_probability(psm) and np.array_equal(psm, psm.T) and np.all(np.diag(psm) == 1)
            for rows in draws.samples.chains:
                assert is_probability(pc.posterior_similarity_matrix(draws.take(rows)).values)
            row = draws.row(1)
            assert is_probability(row) and row[1] == 1
            np.testing.assert_allclose(row, psm[1], atol=1e-12)
            assert is_probability(mean_similarity(draws, partition))
            np.testing.assert_allclose(similarity_operator(draws) @ np.eye(9), psm, atol=1e-6)
        assert pc.posterior_similarity_matrix(hard).values[0, 1] == hard.row(0)[1] == 1
        share = hard.samples.mean((labels[:, 0] == labels[:, 1]).astype(float))
        assert share == 1 and hard.samples.mean(np.full(n_draws, 0.1)) == pytest.approx(0.1, rel=1e-14)


def test_rows_of_equal_draws_are_those_of_the_matrix(rng):
    draws = pc.as_partition_draws(noisy_draws(rng, 49, 12, 3, 0.4))
    psm = pc.posterior_similarity_matrix(draws).values
    np.testing.assert_array_equal([draws.row(k) for k in range(12)], psm)
    partition = np.repeat([0, 1], 6)
    means = mean_similarity(draws, partition)
    np.testing.assert_allclose(means[0], [psm[0, 1:6].mean(), psm[0, 6:].mean()], rtol=1e-14)


WITHOUT_WEIGHTS = {
    *(
        "as_partition_draws",
        "as_allocation_probabilities",
        "allocation_probabilities",
        "as_runs",
        "load_example",
        "as_layers",
        "attach",
    ),  # make draws
    *("binder", "vi", "plot_alluvial", "plot_cluster_profiles", "plot_data"),  # know no draws
    "align_partitions",
    *("relabel", "predict_allocation"),  # have a test of their own below
    "contrast",  # has one beside it
    "compare_factors",  # tests runs, whatever their weights
    *("audit", "audit_records", "evaluate"),  # take no draws
    "stacking_weights",  # makes weights
    *("cluster_summary", "component_similarity"),  # have one beside them
    *("plot_layer_distances", "plot_layer_items"),  # draw what others have computed
    "cocluster",  # takes a table
    # know only the statements of as_constraints
    *("expert_views", "plot_expert_views", "meta_clustering", "normalized_cut"),
    *("itml_k_means", "mpck_means", "semi_crowd"),
}


def test_every_function_is_looked_at():
    modules = (pc, pc.agreement, consensus, diagnostics, pc.experts)
    public = {name for m in modules for name in m.__all__ if inspect.isfunction(getattr(m, name))}
    assert public - WITHOUT_WEIGHTS == functions_of(None, None).keys() & public


PARTITION = np.array([0, 0, 0, 1, 1, 2, 2])


def certain(weights):
    """Draws with a cluster that is certain, where rounding shows."""
    labels = noisy_draws(np.random.default_rng(5), N_DRAWS, N_ITEMS, 3, 0.2)
    labels[:, :3] = labels[:, [0]]
    return labels, pc.as_partition_draws(labels.reshape(N_CHAINS, LENGTH, N_ITEMS), weights=weights)


def test_every_function_takes_them(still, tmp_path):
    labels, draws = certain(UNLIKE)
    functions = functions_of(draws, PARTITION).items()
    found = {name: function() for name, function in functions if not name.startswith("plot_")}
    summary = found["summarize"]
    assert {type(one) for one in (repr(summary), summary.methods_text(), *summary.findings())} == {str}
    assert summary.to_html(tmp_path / "report.html").exists()
    for several in found["particles"]:
        assert is_probability(several.weights) and is_probability(several.by_chain)
        assert several.weights.sum() == pytest.approx(1) and type(several.verdict) is str
    assert is_probability(found["item_uncertainty"].similarity) and is_probability(found["credible_ball"].coverage)
    psm = reference.similarity(labels, UNLIKE)
    np.testing.assert_allclose(found["posterior_similarity_matrix"], psm, atol=1e-14)
    losses = found["expected_loss"][list(pc.LOSSES).index("vi")]["expected_loss"].values
    expected = np.average([reference.vi(PARTITION, z) for z in labels], weights=UNLIKE)
    assert losses[0] == pytest.approx(expected, rel=1e-10)


def test_every_figure_takes_them():
    for name, function in functions_of(certain(KINDS["some of 0"])[1], PARTITION).items():
        if name.startswith("plot_"):
            function()
            plt.close("all")


def test_allocation_probabilities_take_them(still, tmp_path):
    rng = np.random.default_rng(6)
    soft = rng.dirichlet(np.full(3, 0.1), size=(N_CHAINS, LENGTH, N_ITEMS))
    soft[:, :, :3] = [1.0, 0.0, 0.0]
    draws = pc.as_allocation_probabilities(soft, weights=UNLIKE)
    summary = pc.summarize(draws, random_seed=1, progressbar=False)
    assert summary.to_html(tmp_path / "report.html").exists()
    for loss in ("binder", "vi"):
        assert np.isfinite(pc.expected_loss(draws, summary, loss=loss)["expected_loss"])
    assert is_probability(diagnostics.similarity_mcse(draws))
    found = pc.predict_allocation(draws, draws, partition=summary.partition)
    np.testing.assert_allclose(found.probabilities.sum("consensus_cluster"), 1)
    means = xr.Dataset({"mu": (("chain", "draw", "component"), rng.normal(size=(N_CHAINS, LENGTH, 3)))})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The components hold only")  # as they do of noise
        pc.relabel(means, [0, 0, 0, 1, 1, 2, 2], component_dim="component", allocations=draws)


OTHERS = {
    "few": ([[0, 0, 1], [0, 1, 1], [0, 1, 2]], [1, 2, 0]),
    "one that counts": ([[0, 0, 1], [0, 1, 1]] * 9, [1] + 17 * [0]),
    "one chain": (np.random.default_rng(1).integers(3, size=(1, 30, 6)), np.arange(30)),
    "unequal chains": (unequal_chains(np.random.default_rng(2), (9, 30, 14), 6), np.arange(53) % 7),
    "the others weigh 0": ([[0, 0, 1]] * 20 + [[0, 1, 1]] * 4, 20 * [1.5] + 4 * [0]),
}


def summary_of(draws):
    return pc.summarize(draws, random_seed=1, progressbar=False)


@pytest.mark.parametrize("kind", OTHERS)
def test_posteriors_of_other_kinds(kind, request, tmp_path):
    """The report of one with the pictures that answer clicks."""
    request.getfixturevalue("undrawn" if kind == "one that counts" else "still")
    labels, weights = OTHERS[kind]
    draws = pc.as_partition_draws(labels, weights=weights)
    summary = summary_of(draws)
    assert isinstance(repr(summary), str) and summary.to_html(tmp_path / "report.html").exists()
    assert summary.diagnosis.status == "unknown" or len(draws.samples.chains) > 1
    assert not np.isinf(summary.diagnosis.to_dataframe().to_numpy()).any()


@pytest.mark.slow
def test_reports_of_weighted_draws_have_figures(tmp_path):
    soft = np.random.default_rng(6).dirichlet(np.full(3, 0.1), size=(N_CHAINS, LENGTH, N_ITEMS))
    labels, weights = OTHERS["unequal chains"]
    soft = pc.as_allocation_probabilities(soft, weights=KINDS["some of 0"])
    for draws in (pc.as_partition_draws(labels, weights=weights), soft):
        summary = summary_of(draws)
        summary.plot()
        assert summary.to_html(tmp_path / "report.html").exists()
        plt.close("all")


def one_heavy(rng, share, shape=(4, 250, 8)):
    """Draws one of which has this share of the weight."""
    n_draws = shape[0] * shape[1]
    weights = np.full(n_draws, (1 - share) / (n_draws - 1))
    weights[n_draws // 3] = share
    return pc.as_partition_draws(noisy_draws(rng, n_draws, shape[2], 3, 0.3).reshape(shape), weights=weights)


def test_effective_draws_are_kish_s(rng):
    assert pc.as_partition_draws([[0, 1], [0, 0], [0, 1]]).samples.effective_draws == 3
    assert pc.as_partition_draws([[0, 1]] * 3, weights=[1, 2, 1]).samples.effective_draws == pytest.approx(16 / 6)
    weights = rng.lognormal(size=50)
    draws = pc.as_partition_draws(rng.integers(3, size=(50, 4)), weights=weights)
    assert draws.samples.effective_draws == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert f"weighted: Kish's effective number {draws.samples.effective_draws:.4g}, largest weight" in repr(draws)
    assert "Kish" not in repr(pc.as_partition_draws([[0, 1], [0, 0]]))


@pytest.mark.parametrize("share", [0.996, 1 - 1e-9])
def test_a_draw_with_nearly_all_the_weight_is_not_certainty(rng, share, still, tmp_path):
    draws = one_heavy(rng, share)
    summary = summary_of(draws)
    verdict, size = summary.diagnosis.verdict, f"{draws.samples.effective_draws:.4g}"
    assert summary.diagnosis.status == "unknown" and summary.ball.radius == 0
    assert "weights leave too few" in verdict and "from the posterior itself" in verdict
    assert summary.diagnosis.least_ess < 2 and summary.diagnosis.partition_ess < 2
    assert summary.diagnosis.effective_draws == draws.samples.effective_draws < 1.01
    known = f"Kish's effective number {size}, largest weight {share:.2%}"
    assert known in " ".join(repr(summary).split()) and known in summary.methods_text()
    assert known in " ".join(summary.findings())
    assert f"effective sample size {size}" in repr(summary.ball)
    report = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert verdict in html.unescape(report)
    losses = np.array([reference.vi(summary.partition.labels, z) for z in draws.labels])
    others = np.delete(losses, draws.weights.argmax()).mean()
    assert summary.partition.mcse == pytest.approx(others, rel=0.1)  # without that draw the mean would be theirs


def test_a_draw_with_all_the_weight_has_no_error(rng):
    draws = one_heavy(rng, 1.0)
    assert np.isnan(pc.expected_loss(draws, np.zeros(8, int))["mcse"])
    assert np.isnan(diagnostics.similarity_mcse(draws)).all()
    assert pc.diagnose(draws).status == "unknown"


def test_fewer_effective_draws_than_wanted_are_short(rng):
    weights = rng.lognormal(sigma=2.0, size=2000)
    draws = pc.as_partition_draws(rng.integers(3, size=(4, 500, 8)), weights=weights)
    found = pc.diagnose(draws)
    assert found.status == "short" and 16 < draws.samples.effective_draws < 400
    assert "ignore them" in found.verdict
    assert "Kish's effective number" in found.verdict


@pytest.mark.parametrize("sigma", [0.5, 1.5])
def test_effective_sizes_of_independent_draws(rng, sigma):
    """Where weights know nothing of the partition, Kish's number is what the draws are worth."""
    weights = rng.lognormal(sigma=sigma, size=8000)
    draws = pc.as_partition_draws(rng.integers(3, size=(4, 2000, 8)), weights=weights)
    found = pc.diagnose(draws)
    sizes = found.summaries[["ess_bulk", "ess_tail"]].to_array().values
    for size, tolerance in ((sizes, 0.2), (found.pairs["ess_bulk"], 0.2), (found.partition_ess, 0.1)):
        assert np.median(size) == pytest.approx(draws.samples.effective_draws, rel=tolerance)


def test_effective_sizes_count_correlation_and_weights(rng):
    draws = pc.as_partition_draws(sticky_chains(rng, 4, 2500, 8, 0.8), weights=np.exp(rng.random(10_000)))
    plain = pc.as_partition_draws(draws.labels.reshape(4, 2500, 8))
    found, other = pc.diagnose(draws), pc.diagnose(plain)
    ratio = found.summaries["ess_bulk"] / other.summaries["ess_bulk"]
    assert 0.8 < float(ratio.median()) < 1.05 and float(other.summaries["ess_bulk"].max()) < 3000


def test_weights_that_hardly_differ_change_hardly_anything(rng):
    chains = sticky_chains(rng, 3, 400, 8, 0.5)
    plain = pc.diagnose(chains)
    weighted = pc.diagnose(pc.as_partition_draws(chains, weights=1 + 1e-6 * rng.random((3, 400))))
    for name in ("mean", "mcse", "rhat", "ess_bulk"):
        np.testing.assert_allclose(weighted.summaries[name], plain.summaries[name], rtol=1e-3, err_msg=name)
    assert weighted.partition_ess == pytest.approx(plain.partition_ess, rel=1e-3)


def test_standard_error_is_the_spread_of_estimates():
    """Of importance draws whose weights depend on the function itself, over repeated samples."""
    rng = np.random.default_rng(3)
    means, errors = [], []
    for _ in range(300):
        together = rng.random(2000) < 0.5
        weights = np.exp(rng.normal(size=2000) + 0.7 * together)
        draws = pc.as_partition_draws(np.stack([together, np.ones(2000)], 1).reshape(4, 500, 2), weights=weights)
        values = together.astype(float)
        means.append(draws.samples.mean(values))
        errors.append(draws.samples.mcse(values))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_standard_error_counts_weight_beyond_the_shortest_chain(rng):
    draws = unequal_chains(rng, (20, 200), 2)
    weights = np.where(np.arange(220) == 219, 500.0, 1.0)
    draws = pc.as_partition_draws(draws, weights=weights)
    values = rng.normal(size=220)
    assert draws.samples.mcse(values) > 0.3 * abs(values[219] - values[:219].mean())


def test_losses_that_differ_by_rounding_only_have_an_error_like_it():
    weights = [0, 0.81, 0.78, 0.21]
    draws = pc.as_partition_draws([[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], weights=weights)
    rounding = np.array([7.0, 0.1 + 0.2, 0.3, 0.3])
    assert draws.samples.mcse(np.array([7.0, 0.3, 0.3, 0.3])) == 0
    assert 0 <= draws.samples.mcse(rounding) < 1e-15
    for loss in pc.LOSSES:
        for partition in ([0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]):
            assert np.isfinite(pc.expected_loss(draws, partition, loss=loss)["mcse"])
