"""Every figure by name, of results that are computed once."""

from functools import cache

import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.functions import FIGURES
from tests.catalogue.posteriors import draws_of

N_ITEMS = 12
RNG = np.random.default_rng(3)
KM = RNG.permutation(N_ITEMS) * 0.5
DAYS = np.datetime64("2020-01-15", "ns") + RNG.permutation(N_ITEMS) * np.timedelta64(31, "D")
COORDS = {"site": [f"s{k}" for k in range(N_ITEMS)], "day": ("site", DAYS), "km": ("site", KM)}
LABELS = np.arange(N_ITEMS) % 3
VALUES = np.arange(2.0 * N_ITEMS).reshape(N_ITEMS, 2)
MEANS = np.tile([0.0, 2.0, 9.0], (40, 1))
QUIET = {"random_seed": 1, "progressbar": False}


@cache
def draws():
    """Three chains of items with two coordinates."""
    dims = ("chain", "draw", "site")
    return pc.as_partition_draws(xr.DataArray(RNG.integers(4, size=(3, 40, N_ITEMS)), dims=dims, coords=COORDS))


def sensitivity():
    alternatives = {"b": pc.priors.crp(1.2), "c": pc.priors.crp(1e9)}
    return pc.prior_sensitivity(draws(), pc.priors.crp(1.0), alternatives=alternatives, **QUIET)


ball = cache(lambda: pc.credible_ball(draws(), LABELS))
items = cache(lambda: pc.item_uncertainty(draws(), LABELS))
membership = cache(lambda: pc.membership(draws(), LABELS))
links = cache(lambda: pc.links(draws(), LABELS))
waves = np.random.default_rng(4).integers(3, size=(3, 40, 3, N_ITEMS))
layers = cache(
    lambda: pc.compare_layers(
        pc.as_layers(xr.DataArray(waves, dims=("chain", "draw", "wave", "site"), coords=COORDS), layer_dim="wave"),
        **QUIET,
    )
)
runs = cache(
    lambda: pc.compare_layers(
        pc.as_runs(
            pd.DataFrame(waves.reshape(-1, N_ITEMS)[:24].T, index=pd.Index(COORDS["site"], name="site")),
            groups=[0.5, 1.0, 2.0] * 8,
        ),
        **QUIET,
    )
)
views = cache(
    lambda: pc.experts.expert_views(pc.experts.as_constraints(draws(), random_seed=1), n_clusters=3, random_seed=1)
)
PLOTS = {
    "agreement_path": lambda: [pc.agreement.agreement_path([draws(), draws_of(4, 40, N_ITEMS)], prices=[0.5], **QUIET)],
    "alluvial": lambda: [[LABELS, draws().labels[0]]],
    "cluster_profiles": lambda: [VALUES**2, LABELS],
    "cluster_sizes": lambda: [links()],
    "cluster_stability": lambda: [pc.cluster_stability(draws(), LABELS)],
    "cluster_summary": lambda: [pc.cluster_summary(np.array([LABELS] * 40), LABELS, mu=MEANS)],
    "component_similarity": lambda: [pc.component_similarity(np.array([LABELS] * 40), mean=MEANS, sd=1.0)],
    "contrast": lambda: [pc.contrast(np.array([LABELS] * 40), LABELS, y=VALUES[:, 0])],
    "credible_ball": lambda: [ball()],
    "data": lambda: [VALUES, LABELS],
    "dendrogram": lambda: [pc.cluster_merges(draws(), LABELS)],
    "density_peaks": lambda: [pc.partition_density(draws(), random_seed=1)],
    "draws_map": lambda: [draws(), LABELS],
    "expert_views": lambda: [views()],
    "experts": lambda: [views()],
    "factors": lambda: [
        pc.compare_factors(pc.as_runs(waves.reshape(-1, N_ITEMS)[:24]), {"a": [0, 1] * 12, "b": [0, 0, 1] * 8})
    ],
    "item_uncertainty": lambda: [items()],
    "items_map": lambda: [draws(), LABELS],
    "layer_distances": lambda: [layers()],
    "layer_items": lambda: [layers()],
    "layer_stability": lambda: [runs()],
    "layers": lambda: [layers()],
    "links": lambda: [links()],
    "loss_by_n_clusters": lambda: [pc.loss_by_n_clusters(draws(), n_clusters=[2, 3, 4], **QUIET)],
    "loss_path": lambda: [pc.loss_path(draws(), loss="binder", values=[0.01, 0.6], method="best_draw")],
    "membership": lambda: [membership()],
    "modes": lambda: [pc.consensus.fit_modes(draws(), 2, **QUIET)],
    "n_clusters": lambda: [draws(), LABELS],
    "near_independence": lambda: [pc.diagnostics.near_independence(draws())],
    "partial_partition": lambda: [pc.partial_partition(draws(), 0.3, random_seed=1)],
    "particles": lambda: [pc.particles(draws(), 3, **QUIET)],
    "posterior_comparison": lambda: [
        pc.compare_posteriors(draws(), draws().isel(chain=0), n_particles=1, **QUIET),
        LABELS,
    ],
    "prior_sensitivity": lambda: [sensitivity()],
    "psm": lambda: [draws(), LABELS],
    "psm by chain": lambda: [draws(), LABELS],
    "regimes": lambda: [VALUES[:, 0], membership()],
    "sequence": lambda: [pc.diagnostics.sequential_distances(draws())],
    "stable_components": lambda: [pc.stable_components(draws(), 0.7)],
    "tree": lambda: [
        pc.consensus_tree(pc.as_layers(waves.reshape(3, 40, 3, -1), layer_dim="wave", ordered=True), **QUIET)
    ],
    "traces": lambda: [pc.diagnose(draws(), LABELS)],
}


@cache
def _shown(name):
    return PLOTS[name]()


def drawn(name, **options):
    """The axes of a figure with these options, as an array."""
    if name == "draws_map":
        options["ball"] = ball()
    if name == "psm by chain":
        options["by"] = "chain"
    return np.ravel(function_of(name)(*_shown(name), **options))


def function_of(name):
    """The function that draws a figure."""
    return FIGURES[f"plot_{name.removesuffix(' by chain')}"]


def plotted(call):
    """Draw the figure of a name with these arguments, the options last."""
    name, *arguments = call
    options = arguments.pop() if isinstance(arguments[-1], dict) else {}
    return function_of(name)(*arguments, **options)
