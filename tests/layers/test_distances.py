"""compare_layers(): distances between layers, against sums over draws."""

import itertools

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime.arguments import as_generator

QUIET = {"progressbar": False}
DIMS = ("chain", "draw", "item")


def layer(seed, items, n_clusters=3, n_draws=12):
    """Two chains of partitions of these items, whose neighbours tend to be co-clustered."""
    labels = as_generator(seed).integers(0, n_clusters, (2, n_draws, len(items)))
    labels[:, 1::2, 1:] = labels[:, 1::2, :-1]
    return xr.DataArray(labels, dims=DIMS, coords={"item": list(items)}, name="z")


MIXED = {"a": layer(1, "abcdef"), 2: layer(2, "fdbax"), "c": layer(3, "bcd", 2), "none": layer(4, "xyz")}
WEIGHTS = as_generator(5).integers(0, 4, 24)
COMMON = {("a", 2): "fdba", ("a", "c"): "bcd", (2, "c"): "db", (2, "none"): "x"}


def by_draw(one, other, items, loss):
    """Losses (n_draws, n_draws) of each draw of one as an estimate of each draw of the other."""
    ours, theirs = (MIXED[name].sel(item=list(items)).values.reshape(24, -1) for name in (one, other))
    return np.array([[pc.partition_loss(x, y, loss=loss) for y in theirs] for x in ours])


@pytest.mark.parametrize("loss", ["vi", "binder", pc.vi(a=0.4), pc.losses.nid()], ids=str)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
def test_means_over_draws(loss, weights):
    layers = pc.as_layers(MIXED, weights=weights)
    found = pc.compare_layers(layers, loss=loss, prob=0.8, **QUIET).distances
    w = layers.samples.weights
    for (one, other), items in COMMON.items():
        for first, second in ((one, other), (other, one)):
            losses = by_draw(first, second, items, loss)
            same, at = np.diag(losses), found.sel(layer=first, other_layer=second)
            ari = 1 - np.diag(by_draw(first, second, items, "omari"))
            assert at["expected_loss"] == pytest.approx(w @ same, rel=1e-12)
            assert at["mcse"] == pytest.approx(layers.samples.mcse(same), rel=1e-9)
            assert at["ari"] == pytest.approx(w @ ari) and at["ari_mcse"] == pytest.approx(layers.samples.mcse(ari))
            assert at["p_equal"] == pytest.approx(w @ (ari == 1))
            order = np.argsort(same)
            for name, level in (("low", 0.1), ("high", 0.9)):
                assert at[name] == pytest.approx(same[order][np.searchsorted(np.cumsum(w[order]), level - 1e-9)])
            assert at["n_common"] == len(items)
    assert found["n_common"].sel(layer="c", other_layer="none") == 0
    assert np.isnan(found["expected_loss"].sel(layer="c", other_layer="none"))


def test_other_draws_are_those_a_quarter_of_the_posterior_apart():
    found = pc.compare_layers(MIXED, **QUIET).distances
    for (one, other), items in COMMON.items():
        losses = by_draw(one, other, items, "vi")
        blocks = [[m, m + 6, m + 12, m + 18] for m in range(6)]
        apart = np.array([[losses[i, j] for i, j in itertools.permutations(block, 2)] for block in blocks])
        together = np.array([[losses[i, i] for i in block] for block in blocks])
        at = found.sel(layer=one, other_layer=other)
        assert at["independent"] == pytest.approx(apart.mean())
        assert at["difference"] == pytest.approx(np.diag(losses).mean() - apart.mean())
        series = pc.as_partition_draws(np.zeros((6, 1), int)).samples
        assert at["difference_mcse"] == pytest.approx(series.mcse(together.mean(axis=1) - apart.mean(axis=1)))
