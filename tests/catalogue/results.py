"""A result of every kind, and whether two are equal."""

import dataclasses
from functools import cache

import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.losses import PartitionLoss
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import array

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


RESULTS = {
    "consensus": lambda z: best(z),
    "consensus, binder": lambda z: best(z, loss="binder"),
    "consensus, costs": lambda z: best(z, loss=pc.vi(a=0.1 + 0.2)),
    "consensus, threshold": lambda z: best(z, loss="binder", tau="auto"),
    "consensus, names": lambda z: best(z, n_clusters=3).with_names({0: "large", 1: ("a", 2)}),
    "consensus, nmi": lambda z: best(z, loss=pc.losses.nmi("min"), max_clusters=3),
    "certificate": lambda z: pc.certify(z, best(z, loss=pc.binder(a=0.7)), progressbar=False),
    "certificate, better": certified,
    "ball": lambda z: pc.credible_ball(z, best(z), prob=0.9),
    "ball, weights": lambda z: pc.credible_ball(pc.as_partition_draws(z, weights=np.arange(60)), best(z), loss="nvi"),
    "particles": lambda z: pc.particles(z, random_seed=1, progressbar=False),
    "particles, weights": lambda z: pc.particles(
        pc.as_partition_draws(z.assign_coords(chain=["left", "right"]), weights=np.arange(60)),
        3,
        loss=pc.vi(a=0.6),
        random_seed=1,
        progressbar=False,
    ),
    "density": lambda z: pc.partition_density(z, random_seed=1),
    "density, weights": lambda z: pc.partition_density(
        pc.as_partition_draws(z, weights=np.arange(60)), loss=pc.vi(a=0.7), bandwidth=0.5, random_seed=1
    ),
    "partial": lambda z: pc.partial_partition(z, 0.6, random_seed=1),
    "partial, complete": lambda z: pc.partial_partition(z, 0.4, complete=pc.binder(0.7), random_seed=1),
    "items": lambda z: pc.item_uncertainty(z, best(z)),
    "items, names": lambda z: pc.item_uncertainty(z, best(z, n_clusters=3).with_names(["a", "b", "c"])),
    "diagnosis": lambda z: pc.diagnose(z, best(z, loss="binder"), references={"one": np.zeros(8, int)}),
    "diagnosis, names": lambda z: pc.diagnose(z.assign_coords(chain=["left", "right"])),
    "diagnosis, one chain": lambda z: pc.diagnose(z[:1]),
    "comparison": lambda z: pc.compare_partitions(z, {"one": np.zeros(8, int), "best": best(z)}),
    "comparison, numbers": lambda z: pc.compare_partitions(
        z, [np.zeros(8, int), best(z).labels], loss=pc.binder(a=1.3)
    ),
    "by number": lambda z: pc.loss_by_n_clusters(z, n_clusters=[1, 2, 4], random_seed=1),
    "by number, pairs": lambda z: pc.loss_by_n_clusters(
        pc.as_pair_similarity(pc.posterior_similarity_matrix(z)), loss="pear", n_clusters=[2, 3], random_seed=1
    ),
    "path": lambda z: pc.loss_path(z, loss="binder", values=[0.3, 0.5, 0.6], random_seed=1, progressbar=False),
    "path, costs": lambda z: pc.loss_path(z, loss="vi", values=[0.3, 1.1], random_seed=1, progressbar=False),
    "merges": lambda z: pc.cluster_merges(z, best(z, n_clusters=3).with_names(["a", "b", "c"])),
    "merges, pairs": lambda z: pc.cluster_merges(
        pc.as_pair_similarity(pc.posterior_similarity_matrix(z)), np.arange(8) % 4, loss="pear"
    ),
    "posteriors": lambda z: pc.compare_posteriors(z, z[:1], loss=pc.binder(), n_particles=2, random_seed=1),
    "posteriors, names": lambda z: pc.compare_posteriors(z, z[:1], names=("old", "new"), random_seed=1),
    "membership": lambda z: pc.membership(z, best(z, n_clusters=3)),
    "membership, names": lambda z: pc.membership(z, best(z, n_clusters=3).with_names(["a", ("b", 1), 7])),
    "links": lambda z: pc.links(z, best(z, n_clusters=3)),
    "links, names": lambda z: pc.links(
        pc.as_partition_draws(z, weights=np.arange(60)),
        best(z, n_clusters=3).with_names(["a", ("b", 1), 7]),
        above=0.0,
        prior=pc.priors.crp(1.0),
    ),
    "match, names": lambda z: pc.match_clusters(
        best(z[:, :, 2:], n_clusters=3), best(z[:, :, :6], n_clusters=2).with_names(["a", ("b", 1)])
    ),
    "match": lambda z: pc.match_clusters(np.arange(8) % 4, best(z)),
    "aligned": lambda z: pc.align_partitions({"a": best(z), "b": best(z[:, :, 2:], n_clusters=3)}),
    "aligned, numbers": lambda z: pc.align_partitions(
        pc.loss_by_n_clusters(z, n_clusters=[2, 3], random_seed=1).partitions
    ),
    "clusters": lambda z: pc.cluster_summary(z, np.array([0, 0, -1, -1, -1, -1, -1, -1])),
    "clusters, parameters": lambda z: pc.cluster_summary(
        z, np.array([0, -1, -1, -1, -1, -1, -1, -1]), mu=np.arange(480.0).reshape(60, 4, 2), first_label=0
    ),
    "components": lambda z: pc.component_similarity(
        z, mean=np.arange(240.0).reshape(60, 4) % 7, sd=1.0, weights=np.arange(60), first_label=0
    ),
    "stable": lambda z: pc.stable_components(z),
    "stable, complete": lambda z: pc.stable_components(
        pc.as_partition_draws(z, weights=np.arange(60)), 0.7, linkage="complete"
    ),
    "sensitivity": lambda z: pc.prior_sensitivity(z, pc.priors.crp(1.0), random_seed=1, progressbar=False),
    "sensitivity, others": lambda z: pc.prior_sensitivity(
        z,
        pc.priors.crp((2, 2)),
        alternatives={"mine": pc.priors.crp(1.1), "far": pc.priors.crp(1e9)},
        loss=pc.binder(a=0.7),
        random_seed=1,
        progressbar=False,
    ),
    "agreement": lambda z: pc.agreement_path(z, prices=[0.5], random_seed=1, progressbar=False),
    "agreement, analyses": lambda z: pc.agreement_path(
        {"mine": z, "yours": z[:1]}, loss=pc.binder(tau=0.3), random_seed=1, progressbar=False
    ),
    "coclustering": lambda z: pc.cocluster(
        z[0, :3].drop_vars(["chain", "draw"]).rename(draw="feature").T.copy(data=np.arange(24).reshape(8, 3)),
        n_row_clusters=2,
        n_column_clusters=2,
        n_clusterings=3,
        random_seed=1,
    ),
    "sequence": lambda z: pc.diagnostics.sequential_distances(z, loss="nid", lag=2),
    "experts": lambda z: pc.expert_views(pc.as_constraints(z, random_seed=1), n_clusters=3, random_seed=1),
    "experts, features": lambda z: pc.expert_views(
        pc.as_constraints({"Ann": best(z), 3: z[:1]}, random_seed=1),
        pd.DataFrame(np.random.default_rng(2).normal(size=(8, 2)), index=z.indexes["obs"], columns=["a", 4]),
        n_clusters=3,
        random_seed=1,
    ),
    "independence": lambda z: pc.diagnostics.near_independence(z, n_permutations=19),
    "threshold": lambda z: pc.consensus.pair_threshold(z, random_seed=1),
    "perturbation": lambda z: pc.consensus.random_perturbation_em(z, 3, random_seed=1, max_steps=30),
    "modes": lambda z: pc.consensus.fit_modes(z, "auto", max_modes=2, max_steps=30, random_seed=1, progressbar=False),
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


@cache
def made(kind):
    return RESULTS[kind](Z)


def engine_of(suffix):
    return "zarr" if suffix == ".zarr" else "h5netcdf"


def read(path):
    return xr.open_dataset(path, engine=engine_of(path.suffix))
