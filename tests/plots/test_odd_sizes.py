"""Every plot is drawn, on new axes and on given ones, of draws that are many, few or of one item."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import posterior_consensus as pc
from tests.catalogue.posteriors import SIZES, draws_of

GIVEN = ("small", "two items")  # axes, tiny ones where it is one
SIZES = SIZES | {"large": (2, 9, 400), "many chains": (13, 12, 6)}
# Every plot has one of the given axes, and one of the two that are many.
TURNS = {"small": slice(0, None, 2), "two items": slice(1, None, 2)}
TURNS |= {"large": slice(1, None, 2), "many chains": slice(0, None, 2)}


def of_the_draws(draws, best, values):
    path = pc.loss_path(draws, loss="vi", values=[0.3, 0.9, 1.2], method="best_draw")
    return {
        lambda **kw: pc.plot_psm(draws, best, **kw): (),
        lambda **kw: pc.plot_psm(pc.posterior_similarity_matrix(draws), **kw): (),
        lambda **kw: pc.credible_ball(draws, best).plot(**kw): (),
        lambda **kw: pc.plot_n_clusters(draws, best, **kw): (),
        lambda **kw: path.plot(**kw): (),
        lambda **kw: pc.plot_draws_map(draws, best, ball=pc.credible_ball(draws, best), **kw): (),
        lambda **kw: pc.plot_draws_map(draws, **kw): (),
        lambda **kw: pc.plot_psm(draws.isel(chain=[0]), by="chain", **kw): (1,),
    }


def of_the_chains(draws, best, values):
    n_chains = len(draws.samples.chains)
    return {
        lambda **kw: pc.diagnose(draws, best).plot(**kw): (7, 2),
        lambda **kw: pc.plot_psm(draws, best if n_chains < 9 else None, by="chain", **kw): (n_chains,),
        lambda **kw: pc.diagnostics.sequential_distances(draws).plot(**kw): (2,),
    }


def of_the_items(draws, best, values):
    items, each, all_in_one = pc.item_uncertainty(draws, best), np.arange(draws.n_items), np.zeros(draws.n_items, int)
    return {
        lambda **kw: items.plot(**kw): (),
        lambda **kw: pc.item_uncertainty(draws, all_in_one).plot(**kw): (),
        lambda **kw: pc.item_uncertainty(draws, each).plot(**kw): (),
        lambda **kw: pc.cluster_stability(draws, best).plot(**kw): (),
        lambda **kw: pc.cluster_stability(draws, each).plot(**kw): (),
        lambda **kw: pc.plot_cluster_profiles(values[:, 0], best, **kw): (),
        lambda **kw: pc.plot_cluster_profiles(values, best, **kw): (),
        lambda **kw: pc.plot_data(values[:, 0], best, **kw): (),
        lambda **kw: pc.plot_data(values[:, :2], best, items=items, **kw): (),
        lambda **kw: pc.plot_data(values[:, :5], each, **kw): (),
        lambda **kw: pc.plot_alluvial([best, *draws.labels[:2]], **kw): (),
        lambda **kw: pc.plot_alluvial([each, all_in_one], **kw): (),
        lambda **kw: pc.plot_alluvial(pc.credible_ball(draws, best), **kw): (),
    }


@pytest.mark.parametrize(
    ("plots", "size"),
    [
        *((of_the_draws, size) for size in SIZES),
        *((of_the_chains, size) for size in ("small", "one item", "two items", "many chains")),
        *((of_the_items, size) for size in ("small", "one item", "two items", "large")),
    ],
)
def test_every_plot_returns_its_axes(plots, size):
    draws = draws_of(*SIZES[size])
    best = pc.consensus_partition(draws, method="best_draw")
    every = plots(draws, best, np.random.default_rng(1).normal(size=(draws.n_items, 30)))
    for plot, shape in list(every.items())[TURNS.get(size, slice(None))]:
        given = None
        if size in GIVEN:
            figure = plt.figure(figsize=None if shape else (1.5, 1.2))
            given = figure.subplots(*(*shape, 1, 1)[:2], squeeze=False).reshape(shape)
        drawn = plot(**({} if given is None else {"axes": given} if shape else {"ax": given.item()}))
        assert np.shape(drawn) == shape and all(isinstance(ax, Axes) for ax in np.ravel(drawn))
        assert given is None or np.all(drawn == given)
        np.ravel(drawn)[0].figure.draw_without_rendering()
        plt.close("all")


def test_dollars_in_names_are_no_formula():
    names = [f"${k}_{{<" for k in "abcd"]
    z = xr.DataArray([[[0, 0, 1, 1]] * 8, [[0, 1, 1, 0]] * 8], {"ticker": names}, ("chain", "draw", "ticker"))
    merges = pc.cluster_merges(z, z[0, 0]).plot()
    drawn = [pc.plot_psm(z, by="chain")[0], pc.plot_alluvial({"$x$_{": z[0, 0], "y": z[1, 0]}), merges]
    for ax in drawn:
        ax.figure.draw_without_rendering()
        plt.close(ax.figure)
