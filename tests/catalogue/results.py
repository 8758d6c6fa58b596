"""A result of every kind, and whether two are equal."""

import dataclasses
from functools import cache

import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.losses import PartitionLoss
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import array, scored_pairs

ITEMS = [f"item {k}" for k in range(8)]


def posterior_of(dims=("chain", "draw", "obs"), **coords):
    draws = noisy_draws(np.random.default_rng(3), 60, 8, 3, 0.3).reshape(2, 30, 8)
    return array(draws, dims, **{"obs": ITEMS, "chain": [3, 7], "draw": np.arange(10, 40)} | coords)


Z = posterior_of()


def best(z, loss="vi", **options):
    return pc.consensus_partition(z, loss=loss, random_seed=1, n_starts=2, progressbar=False, **options)


def certified(z):
    """A certificate that came across a better partition."""
    found = pc.certify(z, np.arange(8), loss="binder", progressbar=False)
    assert found.better is not None and found.info
    return found


def weighted(z):
    return pc.as_partition_draws(z, weights=np.arange(60))


def pairs(z):
    return pc.as_pair_similarity(pc.posterior_similarity_matrix(z))


def as_runs(z, **options):
    """The draws as independent runs of a program, whose table has a row for each item."""
    index = z.indexes.get(z.dims[-1])
    return pc.as_runs(pd.DataFrame(z.values.reshape(-1, z.shape[-1]).T, index=index), **options)


def scored(z):
    """Scores of some pairs of the same items, in three data sets."""
    chain = {(i, i + 1): (0.9, 0.8, 0.2)[i % 3] for i in range(7)}
    own = scored_pairs(8, chain, 0.05, must_link=[(0, 2)], data_set=np.array([0, 1, 2, 0, 1, 2, -1, -1], np.int32))
    return dataclasses.replace(own, items=pc.as_partition_draws(z).items)


def calm(z):
    """Draws of two clusters, between which one item moves."""
    return z.copy(data=(np.arange(8) < 3 + np.arange(60).reshape(2, 30, 1) % 2).astype(z.dtype))


def three(z, names=None):
    found = best(z, n_clusters=3)
    return found if names is None else found.with_names(names)


def table(z):
    """Counts of items and features."""
    return z[0, :3].drop_vars(["chain", "draw"]).rename(draw="feature").T.copy(data=np.arange(24).reshape(8, 3))


def features(z):
    values = np.random.default_rng(2).normal(size=(8, 2))
    return pd.DataFrame(values, index=z.indexes.get(z.dims[-1]), columns=["a", 4])


ABC, ODD = ["a", "b", "c"], ["a", ("b", 1), 7]
ONE, ALONE = np.array([0] + 7 * [-1]), np.array([0, 0] + 6 * [-1])
SEEDED = {"random_seed": 1}
NO_BAR = {"progressbar": False}
QUIET = SEEDED | {"progressbar": False}
VIEWS = SEEDED | {"n_clusters": 3, "n_starts": 2}
CRP = pc.priors.crp(1.0)
OTHER_PRIORS = {"mine": pc.priors.crp(1.1), "far": pc.priors.crp(1e9)}

RESULTS = {
    "consensus": lambda z: best(z),
    "consensus, binder": lambda z: best(z, loss="binder"),
    "consensus, costs": lambda z: best(z, loss=pc.vi(a=0.1 + 0.2)),
    "consensus, threshold": lambda z: best(z, loss="binder", tau="auto"),
    "consensus, names": lambda z: three(z, {0: "large", 1: ("a", 2)}),
    "consensus, scored pairs": lambda z: best(scored(z), loss="binder"),
    "consensus, nmi": lambda z: best(z, loss=pc.losses.nmi("min"), max_clusters=3),
    "certificate": lambda z: pc.certify(z, best(z, loss=pc.binder(a=0.7)), progressbar=False),
    "certificate, better": certified,
    "ball": lambda z: pc.credible_ball(z, best(z), prob=0.9),
    "ball, weights": lambda z: pc.credible_ball(weighted(z), best(z), loss="nvi"),
    "particles": lambda z: pc.particles(z, **QUIET),
    "particles, weights": lambda z: pc.particles(
        weighted(z.assign_coords(chain=["left", "right"])), 3, loss=pc.vi(a=0.6), **QUIET
    ),
    "density": lambda z: pc.partition_density(z, **SEEDED),
    "density, weights": lambda z: pc.partition_density(weighted(z), loss=pc.vi(a=0.7), bandwidth=0.5, **SEEDED),
    "partial": lambda z: pc.partial_partition(z, 0.6, **SEEDED),
    "partial, complete": lambda z: pc.partial_partition(z, 0.4, complete=pc.binder(0.7), **SEEDED),
    "partial, names": lambda z: pc.partial_partition(z, 0.4, partition=three(z, ODD), **SEEDED),
    "items": lambda z: pc.item_uncertainty(z, best(z)),
    "items, names": lambda z: pc.item_uncertainty(z, three(z, ABC)),
    "stability of clusters": lambda z: pc.cluster_stability(z, three(z, ODD)),
    "stability of clusters, runs": lambda z: pc.cluster_stability(as_runs(z), three(z)),
    "contrast": lambda z: pc.contrast(calm(z), best(calm(z)), y=[*range(7), np.nan]),
    "contrast, categories": lambda z: pc.contrast(
        calm(z), best(calm(z)).with_names([("a", 1), 7]), y=pd.Categorical(list("xyxyxyxy")), used=True
    ),
    "contrast, runs": lambda z: pc.contrast(as_runs(calm(z)), best(calm(z)), y=np.arange(8) % 3 > 0),
    "diagnosis": lambda z: pc.diagnose(z, best(z, loss="binder"), references={"one": np.zeros(8, int)}),
    "diagnosis, names": lambda z: pc.diagnose(z.assign_coords(chain=["left", "right"])),
    "diagnosis, one chain": lambda z: pc.diagnose(z[:1]),
    "comparison": lambda z: pc.compare_partitions(z, {"one": np.zeros(8, int), "best": best(z)}),
    "comparison, numbers": lambda z: pc.compare_partitions(
        z, [np.zeros(8, int), best(z).labels], loss=pc.binder(a=1.3)
    ),
    "by number": lambda z: pc.loss_by_n_clusters(z, n_clusters=[1, 2, 4], **SEEDED),
    "by number, pairs": lambda z: pc.loss_by_n_clusters(pairs(z), loss="pear", n_clusters=[2, 3], **SEEDED),
    "path": lambda z: pc.loss_path(z, loss="binder", values=[0.3, 0.5, 0.6], **QUIET),
    "path, costs": lambda z: pc.loss_path(z, loss="vi", values=[0.3, 1.1], **QUIET),
    "merges": lambda z: pc.cluster_merges(z, three(z, ABC)),
    "merges, pairs": lambda z: pc.cluster_merges(pairs(z), np.arange(8) % 4, loss="pear"),
    "posteriors": lambda z: pc.compare_posteriors(z, z[:1], loss=pc.binder(), n_particles=2, **SEEDED),
    "posteriors, names": lambda z: pc.compare_posteriors(z, z[:1], names=("old", "new"), n_particles=1, **SEEDED),
    "membership": lambda z: pc.membership(z, three(z)),
    "membership, names": lambda z: pc.membership(z, three(z, ODD)),
    "links": lambda z: pc.links(z, three(z)),
    "links, names": lambda z: pc.links(weighted(z), three(z, ODD), threshold=0.0, prior=CRP),
    "scored links": lambda z: pc.links(scored(z), best(scored(z), loss="binder").with_names({0: ("b", 1), 1: "x"})),
    "match, names": lambda z: pc.align_partitions(
        [best(z[:, :, :6], n_clusters=2).with_names(["a", ("b", 1)]), best(z[:, :, 2:], n_clusters=3)]
    )[1],
    "match": lambda z: pc.align_partitions([best(z), np.arange(8) % 4])[1],
    "aligned": lambda z: pc.align_partitions({"a": best(z), "b": best(z[:, :, 2:], n_clusters=3)}),
    "aligned, numbers": lambda z: pc.align_partitions(pc.loss_by_n_clusters(z, n_clusters=[2, 3], **SEEDED).partitions),
    "clusters": lambda z: pc.cluster_summary(z, ALONE),
    "clusters, parameters": lambda z: pc.cluster_summary(z, ONE, mu=np.arange(480.0).reshape(60, 4, 2), first_label=0),
    "clusters, names": lambda z: pc.cluster_summary(
        z, pc.partial_partition(z, 0.4, partition=three(z, ODD), **SEEDED), nu=np.arange(120.0).reshape(60, 2, 1)[:, :1]
    ),
    "components": lambda z: pc.component_similarity(
        z, mean=np.arange(240.0).reshape(60, 4) % 7, sd=1.0, weights=np.arange(60), first_label=0
    ),
    "stable": lambda z: pc.stable_components(z),
    "stable, complete": lambda z: pc.stable_components(weighted(z), 0.7, linkage="complete"),
    "sensitivity": lambda z: pc.prior_sensitivity(z, CRP, **QUIET),
    "sensitivity, others": lambda z: pc.prior_sensitivity(
        z, pc.priors.crp((2, 2)), alternatives=OTHER_PRIORS, loss=pc.binder(a=0.7), **QUIET
    ),
    "agreement": lambda z: pc.agreement.agreement_path(z, prices=[0.5], **QUIET),
    "agreement, analyses": lambda z: pc.agreement.agreement_path(
        {"mine": z, "yours": z[:1]}, loss=pc.binder(tau=0.3), **QUIET
    ),
    "coclustering": lambda z: pc.agreement.cocluster(
        table(z), n_row_clusters=2, n_column_clusters=2, n_clusterings=3, **SEEDED
    ),
    "sequence": lambda z: pc.diagnostics.sequential_distances(z, loss="nid", lag=2),
    "experts": lambda z: pc.experts.expert_views(pc.experts.as_constraints(z, **SEEDED), **VIEWS),
    "experts, features": lambda z: pc.experts.expert_views(
        pc.experts.as_constraints({"Ann": best(z), 3: z[:1]}, **SEEDED), features(z), **VIEWS
    ),
    "independence": lambda z: pc.diagnostics.near_independence(z, n_permutations=19),
    "threshold": lambda z: pc.consensus.pair_threshold(z, **SEEDED),
    "perturbation": lambda z: pc.consensus.random_perturbation_em(z, 3, max_steps=30, **SEEDED),
    "layers": lambda z: pc.compare_layers(pc.as_layers({"a": z, "b": z[:, :, 2:]}, ordered=True), **NO_BAR),
    "layers, names": lambda z: pc.compare_layers(
        {"a": z, 3: z[:, ::-1], "c": z[:, :, :1]}, loss=pc.vi(a=0.6), **NO_BAR
    ),
    "runs": lambda z: pc.compare_layers(as_runs(z[:, :8], groups=np.repeat([0.5, 1.0], 8)), **NO_BAR),
    "runs, names": lambda z: pc.compare_layers(
        {"a": as_runs(z), 3: as_runs(z[:, 20:]), "c": as_runs(z[:1, :1])}, loss=pc.binder(a=0.7), **NO_BAR
    ),
    "factors": lambda z: pc.compare_factors(as_runs(z[:, :6]), {"a": [1, 2] * 6, "b": ["x"] * 6 + ["y"] * 6}),
    "tree": lambda z: pc.consensus_tree({"a": z, "b": z[:, ::-1]}, **QUIET),
    "tree, runs": lambda z: pc.consensus_tree({"a": as_runs(z), 3: as_runs(z[:, 20:])}, loss=pc.binder(a=0.7), **QUIET),
    "modes": lambda z: pc.consensus.fit_modes(z, "auto", max_modes=2, n_clusters=3, n_starts=1, max_steps=30, **QUIET),
}

FIGURES = {  # of each record, by their names in `plots`; None where no figure takes the record alone
    **{name: "psm.plot_psm" for name in pc.results.__all__ if issubclass(getattr(pc.results, name), PairSource)},
    **dict.fromkeys(("AlignedPartitions", "ClusterMatch"), "alluvial.plot_alluvial"),
    **dict.fromkeys(("ConsensusPartition", "PairThreshold", "PerturbationFit", "Coclustering")),
    **dict.fromkeys(("Audit", "AuditedLinks", "AuditedThreshold", "RecordAudit", "AuditedRecords", "Evaluation")),
    **dict.fromkeys(("Certificate", "PartitionComparison", "Constraints", "Layers")),
    "AgreementPath": "paths.plot_agreement_path",
    "ClusterMerges": "n_clusters.plot_dendrogram",
    "ClusterStability": "profiles.plot_cluster_stability",
    "ClusterSummary": "profiles.plot_cluster_summary",
    "ComponentSimilarity": "n_clusters.plot_component_similarity",
    "ConsensusTree": "tree.plot_tree",
    "Contrast": "profiles.plot_contrast",
    "CredibleBall": "strips.plot_credible_ball",
    "Diagnosis": "draws.plot_traces",
    "ExpertViews": "experts.plot_experts",
    "FactorComparison": "factors.plot_factors",
    "ItemUncertainty": "items.plot_item_uncertainty",
    "LayerComparison": "layers.plot_layers",
    "LayerStability": "layers.plot_layer_stability",
    "Links": "links.plot_links",
    "ScoredLinks": "links.plot_links",
    "LossByNClusters": "n_clusters.plot_loss_by_n_clusters",
    "LossPath": "paths.plot_loss_path",
    "Membership": "items.plot_membership",
    "NearIndependence": "draws.plot_near_independence",
    "PartialPartition": "paths.plot_partial_partition",
    "Particles": "strips.plot_particles",
    "PartitionDensity": "draws.plot_density_peaks",
    "PartitionModes": "strips.plot_modes",
    "PosteriorComparison": "psm.plot_posterior_comparison",
    "PriorSensitivity": "paths.plot_prior_sensitivity",
    "SequentialDistances": "draws.plot_sequence",
    "StableComponents": "paths.plot_stable_components",
    "Summary": "its own, of four panels",
    "LayersSummary": "its own, that of its comparison",
    "PairsSummary": "its own, of four panels",
}


def assert_equal(found, expected):
    """Equal in type and value, through containers and records, with names, dimensions and coordinates."""
    if isinstance(expected, (xr.DataArray, xr.Dataset)):
        assert type(found) is type(expected)
        xr.testing.assert_identical(found, expected)
        for index in expected.indexes:
            assert found.indexes[index].equals(expected.indexes[index])
        arrays = expected.data_vars.values() if isinstance(expected, xr.Dataset) else [expected]
        for own, other in zip(arrays, found.values() if isinstance(found, xr.Dataset) else [found], strict=True):
            assert own.dtype == other.dtype or own.dtype.kind in "UO"
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, xr.Coordinates):
        assert found.equals(expected)
    elif dataclasses.is_dataclass(expected) and not isinstance(expected, PartitionLoss):
        assert type(found) is type(expected)
        for field in filter(lambda field: field.compare, dataclasses.fields(expected)):  # not the draws
            assert_equal(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, dict):
        assert type(found) is dict and list(found) == list(expected)
        for key, value in expected.items():
            assert_equal(found[key], value)
    elif isinstance(expected, (list, tuple)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, (float, np.floating)):
        np.testing.assert_equal(found, expected)
    else:
        assert found == expected and isinstance(found, type(expected).__mro__[-2])


ONE_OF_EACH = list({kind.split(",")[0]: kind for kind in RESULTS}.values())

INDEX = pd.MultiIndex.from_product([["x", "y"], [1, 2, 3, 4]], names=["plot", "tree"])
LEVELS = Z.drop_vars("obs").assign_coords(xr.Coordinates.from_pandas_multiindex(INDEX, "obs"))
OWN = [  # names that results have for dimensions, coordinates and variables of their own
    *("cluster", "particle", "mode", "partition", "pair", "summary", "labels", "names", "layer", "axis", "n_clusters"),
    *("margin", "probability", "item", "feature", "component", "sample", "weight", "view", "step", "price", "score"),
    *("to", "a", "tau", "distance", "similarity", "difference", "before", "clear", "item_similarity", "result_mode"),
]


def with_own_names(z, dim="cluster"):
    """Draws whose items have names that results use: their dimension, and coordinates of all others."""
    return z.rename(obs=dim).assign_coords({name: (dim, np.arange(8.0)) for name in OWN if name != dim})


@cache
def made(kind):
    return RESULTS[kind](Z)


def engine_of(suffix):
    return "zarr" if suffix == ".zarr" else "h5netcdf"


def read(path):
    return xr.open_dataset(path, engine=engine_of(path.suffix))
