"""compare_layers(): distances between layers, against sums over draws."""

import itertools

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime.arguments import as_generator

QUIET = {"random_seed": 1, "progressbar": False}
DIMS = ("chain", "draw", "item")


def layer(seed, items, n_clusters=3, n_draws=12):
    """Two chains of partitions of these items, whose neighbours tend to be co-clustered."""
    labels = as_generator(seed).integers(0, n_clusters, (2, n_draws, len(items)))
    labels[:, 1::2, 1:] = labels[:, 1::2, :-1]
    return xr.DataArray(labels, dims=DIMS, coords={"item": list(items)}, name="z")


MIXED = {"a": layer(1, "abcdef"), 2: layer(2, "fdbax"), "c": layer(3, "bcd", 2), "none": layer(4, "xyz")}
WEIGHTS = as_generator(5).integers(0, 4, 24)
COMMON = {("a", 2): "fdba", ("a", "c"): "bcd", (2, "c"): "db", (2, "none"): "x"}


def by_draw(one, other, items, loss, pairs=tuple((t, t) for t in range(24))):
    """Losses of draws of one as estimates of draws of the other, for pairs of their numbers."""
    ours, theirs = (MIXED[name].sel(item=list(items)).values.reshape(24, -1) for name in (one, other))
    return np.array([pc.partition_loss(ours[i], theirs[j], loss=loss) for i, j in pairs])


@pytest.mark.parametrize("loss", ["vi", "binder", pc.vi(a=0.4), pc.losses.nid()], ids=str)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
def test_means_over_draws(loss, weights):
    layers = pc.as_layers(MIXED, weights=weights)
    found = pc.compare_layers(layers, loss=loss, prob=0.8, **QUIET).distances
    w = layers.samples.weights
    for (one, other), items in COMMON.items():
        for first, second in ((one, other), (other, one)):
            same, at = by_draw(first, second, items, loss), found.sel(layer=first, other_layer=second)
            ari = 1 - by_draw(first, second, items, "one_minus_ari")
            assert at["expected_loss"] == pytest.approx(w @ same, rel=1e-12)
            assert at["mcse"] == pytest.approx(layers.samples.mcse(same), rel=1e-9)
            assert at["ari"] == pytest.approx(w @ ari) and at["ari_mcse"] == pytest.approx(layers.samples.mcse(ari))
            assert at["p_equal"] == pytest.approx(w @ (ari == 1))
            order = np.argsort(same)
            for name, level in (("low", 0.1), ("high", 0.9)):
                assert at[name] == pytest.approx(same[order][np.searchsorted(np.cumsum(w[order]), level - 1e-9)])
            ess = layers.samples.mcse_and_ess(same)[1] if same.std() > 0 else layers.samples.effective_draws
            assert at["ess"] == pytest.approx(ess, rel=1e-9)
            assert at["n_common"] == len(items)
    assert found["n_common"].sel(layer="c", other_layer="none") == 0
    assert np.isnan(found["expected_loss"].sel(layer="c", other_layer="none"))


BLOCKS = np.arange(24).reshape(4, 6)
RESAMPLED = np.searchsorted(np.cumsum(WEIGHTS / WEIGHTS.sum()), (np.arange(24) + 0.5) / 24).reshape(4, 6)


@pytest.mark.parametrize("loss", ["vi", pc.vi(a=0.4)], ids=str)
@pytest.mark.parametrize(("weights", "blocks"), [(None, BLOCKS), (WEIGHTS, RESAMPLED)], ids=["equal", "weights"])
def test_other_draws_are_those_a_quarter_of_the_posterior_apart(loss, weights, blocks):
    found = pc.compare_layers(pc.as_layers(MIXED, weights=weights), loss=loss, **QUIET).distances
    series = pc.as_partition_draws(np.zeros((6, 1), int)).samples

    def apart(one, other, items):
        pairs = [list(itertools.permutations(block, 2)) for block in blocks.T]
        losses = [by_draw(one, other, items, loss, of_block) for of_block in pairs]
        return np.mean(losses, axis=1), by_draw(one, other, items, loss)[blocks].mean(axis=0)

    for (one, other), items in COMMON.items():
        at = found.sel(layer=one, other_layer=other)
        own, together = apart(one, other, items)
        assert at["independent"] == pytest.approx(own.mean())
        assert at["difference"] == pytest.approx((together - own).mean())
        assert at["difference_mcse"] == pytest.approx(series.mcse(together - own))
        within = (apart(one, one, items)[0] + apart(other, other, items)[0]) / 2
        separation = (own + apart(other, one, items)[0]) / 2 - within
        assert at["separation"] == pytest.approx(separation.mean())
        assert at["separation_mcse"] == pytest.approx(series.mcse(separation))


@pytest.mark.parametrize("weights", [None, np.arange(1, 23)], ids=["22 draws", "weights"])
def test_a_layer_that_never_changes_makes_no_difference(weights):
    other = layer(3, "abcdef", n_draws=11)
    layers = pc.as_layers({"still": other * 0 + np.arange(6) // 3, "other": other}, weights=weights)
    at = pc.compare_layers(layers, **QUIET).distances.sel(layer="still", other_layer="other")
    assert abs(at["difference"]) < 1e-15


@pytest.mark.parametrize("largest", [0.3, 1 - 1e-13])
def test_a_draw_of_more_than_a_quarter_of_the_weight_is_no_other_draw(largest):
    weights = np.full(24, (1 - largest) / 23)
    weights[3] = largest
    found = pc.compare_layers(pc.as_layers(MIXED, weights=weights), **QUIET)
    at = found.distances.sel(layer="a", other_layer="c")
    names = [f"{column}{end}" for column in ("separation", "difference") for end in ("", "_mcse")]
    assert np.isnan([at[name] for name in ("independent", *names)]).all() and "unsure" in found.verdict


def test_layers_alike_in_each_draw_are_nearer_than_independent_ones():
    z = layer(6, "abcdef", n_draws=100)
    found = pc.compare_layers({"one": z, "same": z, "shuffled": z.copy(data=z.values[:, ::-1])}, **QUIET).distances
    alike, apart = (found.sel(layer="one", other_layer=name) for name in ("same", "shuffled"))
    assert alike["expected_loss"] == 0 and alike["p_equal"] == 1 and alike["ari"] == 1
    assert alike["difference"] == -alike["independent"] < -5 * alike["difference_mcse"] < 0
    assert abs(apart["difference"]) < 3 * apart["difference_mcse"]
    assert alike["independent"] == found["independent"].sel(layer="one", other_layer="one")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
def test_the_largest_change_and_its_probability(weights):
    data = {name: layer(seed, "abcd", 2) for seed, name in enumerate(("first", "second", "third", "last"))}
    data["third"][:, 3:6] = data["second"][:, 3:6].values  # draws without a change, which steps share with others
    layers = pc.as_layers(data, ordered=True, weights=weights)
    found, w = pc.compare_layers(layers, loss="binder", **QUIET), layers.samples.weights
    labels = [draws.labels for draws in layers.values()]
    losses = [
        [pc.partition_loss(x, y, loss="binder") for x, y in zip(*pair, strict=True)]
        for pair in itertools.pairwise(labels)
    ]
    shares = np.array([[row[t] == max(column) for row in losses] for t, column in enumerate(zip(*losses, strict=True))])
    expected = w @ (shares / shares.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.changes["p_largest"], expected, atol=1e-12)
    assert shares.sum(axis=1).max() > 1 and expected.sum() == pytest.approx(1)
    separation, error = (found.steps[name].values for name in ("separation", "separation_mcse"))
    farther = separation > 2 * error
    at = int(np.argmax(np.where(farther, separation, -1) if farther.any() else np.array(losses) @ w))
    change = found.largest_change
    assert (change.before, change.after) == tuple(list(data)[at : at + 2])
    assert (change.probability, change.expected_loss) == pytest.approx((expected[at], np.array(losses)[at] @ w))
    assert change.separation == found.distances["separation"].sel(layer=change.before, other_layer=change.after)
    assert pc.compare_layers(pc.as_layers(data), **QUIET).largest_change is None  # without an order


def test_losses_that_differ_by_rounding_share_the_largest_change():
    a, b = (as_generator(seed).integers(0, 7, (20, 60)) for seed in (20, 21))
    found = pc.compare_layers(np.stack([a, b, a, b], axis=1), partitions=[a[0], b[0], a[0], b[0]])
    np.testing.assert_allclose(found.changes["p_largest"], 1 / 3)


def test_which_pairs_are_compared():
    data = layer(7, "abc").expand_dims(year=60, axis=2)
    by_default = pc.compare_layers(pc.as_layers(data, layer_dim="year"), **QUIET).distances["n_common"].values
    lags = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    np.testing.assert_array_equal(by_default, np.where(lags <= 20, 3.0, np.nan))
    few = pc.as_layers(data.isel(year=slice(5)), layer_dim="year")
    found = pc.compare_layers(few, max_lag=1, **QUIET)
    assert np.isnan(found.distances["expected_loss"].values).sum() == 12 and len(found.to_dataframe()) == 4
    assert len(pc.compare_layers(few, **QUIET).to_dataframe()) == 10
    with pytest.raises(ValueError, match="`max_lag` must be None .* got 2"):
        pc.compare_layers(MIXED, max_lag=2, **QUIET)


def test_a_step_goes_to_the_last_layer_with_common_items_whatever_the_lag():
    other = layer(8, "abcd").rename(item="column")
    layers = pc.as_layers({1: layer(9, "abcd"), 2: other, 3: layer(10, "abcd")}, ordered=True)
    found = pc.compare_layers(layers, max_lag=1, **QUIET)
    assert found.largest_change[:2] == (1, 3) and found.steps["layer"].values.tolist() == [1]
    assert found.distances["n_common"].sel(layer=1, other_layer=2) == 0


def test_few_draws_and_one_layer():
    one = pc.compare_layers({"only": pc.as_partition_draws(MIXED["a"])}, **QUIET)
    assert one.largest_change is None and len(one.to_dataframe()) == 0 and "1 layer" in repr(one)
    draw = pc.compare_layers(np.array([[[0, 0, 1], [0, 1, 1]]]), **QUIET).distances.isel(layer=0, other_layer=1)
    loss = pc.partition_loss([0, 0, 1], [0, 1, 1])
    assert draw["expected_loss"] == draw["low"] == draw["high"] == loss
    assert np.isnan(
        [draw[name] for name in ("mcse", "independent", "separation", "difference", "difference_mcse")]
    ).all()


def test_sampled_labels_of_allocation_probabilities_count():
    p = as_generator(11).dirichlet(np.ones(3), (20, 5))
    soft = {name: pc.as_allocation_probabilities(p[k : k + 15]) for k, name in enumerate("ab")}
    hard = {name: draws.labels_only() for name, draws in soft.items()}
    found, expected = (pc.compare_layers(pc.as_layers(one), **QUIET).distances for one in (soft, hard))
    xr.testing.assert_identical(found, expected)
