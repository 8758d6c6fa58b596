"""Mistyped arguments end in an error that names the argument, what came and what is allowed."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.impurity import summed_impurity
from posterior_consensus.consensus.refinement import refine_partition
from tests.catalogue.bad import PARTITIONS
from tests.helpers import CENTRE, GOOD, ROWS, check, check_all

OPTIONS = {
    "loss": [("zz", ValueError, "one of 'vi', 'binder'"), (3, TypeError, "PartitionLoss")],
    "method": [
        ("zz", ValueError, "one of 'greedy', 'hierarchical'"),
        *((value, TypeError, f"got {value!r}") for value in (3, ["greedy"], None)),
    ],
    "refine": [
        ("zz", ValueError, "one of 'jacobi', 'gauss-seidel'"),
        *((value, ValueError, f"got {value!r}") for value in (True, "")),
    ],
    "n_clusters": [
        *((value, ValueError, f"at least 1; got {value}") for value in (0, -1)),
        (5, ValueError, "between 1 and the number of items, 4; got 5"),
        *((value, TypeError, f"an integer; got {value!r}") for value in (2.0, True, "2")),
    ],
    "max_clusters": [(0, ValueError, "at least 1"), (5, ValueError, "got 5"), (1.5, TypeError, "an integer")],
    "n_starts": [(0, ValueError, "at least 1; got 0"), (1.5, TypeError, "got 1.5"), (True, TypeError, "got True")],
    "random_seed": [("a", TypeError, "Generator or None; got 'a'"), (-1, ValueError, "got -1")],
    "bogus": [(1, TypeError, "consensus_partition()", "'greedy' takes n_starts, n_agree,")],
    "linkage": [("average", TypeError, "'greedy' takes n_starts, n_agree,")],
    "tau": [(value, ValueError, "loss='binder'; got loss 'vi'") for value in (0.3, "auto")],
    "passes": [(0, ValueError, "at least 1; got 0"), (True, TypeError, "got True")],
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_consensus(option):
    cases = [(value, error, f"`{option}`", *parts) for value, error, *parts in OPTIONS[option]]
    check_all(lambda value: pc.consensus_partition(GOOD, **{option: value}), cases)


def test_arguments_that_do_not_fit_together():
    cases = [
        ({"n_clusters": 3, "max_clusters": 2}, ValueError, "`n_clusters`", "exceed `max_clusters`; got 3 and 2"),
        *(({"loss": "binder", "tau": t}, ValueError, "`tau`", f"excluded; got {t}") for t in (1, 0.0, np.nan)),
        ({"loss": "binder", "tau": "half"}, ValueError, "`tau`", "between 0 and 1, 'auto' or None; got 'half'"),
        *(({"loss": "binder", "tau": t}, TypeError, "`tau`", f"got {t}") for t in (True, [0.5])),
        ({"loss": pc.binder(0.5), "tau": 0.5}, ValueError, "loss='binder'; got loss 'binder(a=0.5)'"),
        ({"loss": "zz", "tau": 0.5}, ValueError, "`loss`", "PartitionLoss or one of"),
        ({"loss": 3, "tau": 0.5}, TypeError, "`loss`", "PartitionLoss"),
        ({"refine": "jacobi", "passes": 0}, ValueError, "`passes`", "at least 1; got 0"),
        ({"refine": "jacobi", "passes": 1.5}, TypeError, "`passes`", "an integer; got 1.5"),
        ({"method": "basic", "n_starts": 0}, ValueError, "`n_starts`", "at least 1; got 0"),
        (
            {"method": lambda *_, **__: None},
            TypeError,
            "a Candidate; got NoneType",
        ),
        ({"method": "hierarchical", "linkage": "ward"}, ValueError, "`linkage`", "one of 'average', 'complete'"),
        ({"method": "best_draw", "n_clusters": 4}, ValueError, "4 clusters", "2 to 3"),
        (
            {"method": "best_draw", "n_starts": 4},
            TypeError,
            "Method 'best_draw' takes no options of its own",
        ),
    ]
    check_all(lambda options: pc.consensus_partition(GOOD, **options), cases)
    parts = ["'enumeration'", "at most 10 items; got 11", "'greedy'"]
    check(lambda draws: pc.consensus_partition(draws, method="enumeration"), np.zeros((2, 11), int), ValueError, parts)


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("a", TypeError)])
def test_seed(seed, error):
    parts = ["`random_seed`", "an integer from 0, a Generator or None", f"got {seed!r}"]
    check(lambda s: pc.consensus.pair_threshold(GOOD, random_seed=s), seed, error, parts)
    check(lambda s: pc.as_allocation_probabilities(np.full((3, 2, 2), 0.5), random_seed=s), seed, error, parts)


def test_prob():
    numbers, others = (0, 1, -0.1, 1.5, np.nan), ("0.9", None, True)
    cases = [(p, ValueError, f"`prob` must lie between 0 and 1, both excluded; got {p!r}") for p in numbers]
    cases += [(p, TypeError, "`prob` must be a number") for p in others]
    density = pc.partition_density(GOOD)
    check_all(lambda p: pc.credible_ball(GOOD, CENTRE, prob=p), cases)
    check_all(lambda p: density.contains(CENTRE, p), cases)
    check_all(lambda p: pc.partial_partition(GOOD, p), cases)
    check_all(lambda p: pc.summarize(GOOD, prob=p, progressbar=False), cases)


def test_ball_wants_a_metric():
    parts = ["`loss`", "a metric", "got 'one_minus_ari'", "'vi', 'binder'"]
    check(lambda loss: pc.credible_ball(GOOD, CENTRE, loss=loss), "one_minus_ari", ValueError, parts)


def test_arguments_of_the_path():
    cases = [
        ({"loss": "one_minus_ari"}, ValueError, "`loss`", "'binder' or 'vi'", "got 'one_minus_ari'"),
        ({"loss": pc.binder(0.5)}, ValueError, "`loss`", "got PartitionLoss binder(a=0.5)"),
        ({"values": []}, ValueError, "`values`", "at least one value; got none"),
        ({"loss": "binder", "values": [0.5, 1]}, ValueError, "`values`", "between 0 and 1, both excluded; got 1"),
        ({"loss": "vi", "values": [0.5, 2]}, ValueError, "`values`", "between 0 and 2, both excluded; got 2"),
        ({"values": [0.5, np.nan]}, ValueError, "`values`", "between 0 and 2, both excluded; got nan"),
        ({"values": "auto"}, TypeError, "`values`", "a number; got 'auto'"),
        ({"values": [[0.5]]}, TypeError, "`values`", "a number; got [0.5]"),
        ({"random_seed": "a"}, TypeError, "`random_seed`", "an integer from 0"),
        ({"linkage": "average"}, TypeError, "no argument `linkage`", "seconds, n_jobs."),
        ({"tau": 0.5}, ValueError, "`tau`", "Binder's loss"),
    ]
    check_all(lambda options: pc.loss_path(GOOD, **options), cases)


def test_order():
    wrong = ("zz", None, 3, ["jacobi"])
    cases = [(order, ValueError, f"`order` must be one of 'jacobi', 'gauss-seidel'; got {order!r}") for order in wrong]
    check_all(lambda order: refine_partition(GOOD, CENTRE, order=order), cases)


TREE = xr.DataTree.from_dict({"posterior": ROWS.drop_vars(["chain", "draw"]).to_dataset(name="z")})
DOOR = {
    "var_name": [
        ("zz", ValueError, "a variable of the group; got 'zz', present: 'z'"),
        ("draw", ValueError, "a variable"),
        (["z"], TypeError, "a name; got ['z']"),
    ],
    "item_dim": [("x", ValueError, "other than ('chain', 'draw'); got 'x'"), ("draw", ValueError, "got 'draw'")],
    "sample_dims": [
        (("chain", "x"), ValueError, "got ('chain', 'x'), present: ('chain', 'draw', 'obs')"),
        (("chain", "chain"), ValueError, "each once; got ('chain', 'chain')"),
        ([], ValueError, "at least one dimension"),
        ({"chain", "draw"}, TypeError, "a name or a sequence of names"),  # a set has no order
        (3, TypeError, "got 3"),
    ],
    "group": [(group, ValueError, f"got {group!r}, present: 'posterior'") for group in ("zz", 3)],
}


@pytest.mark.parametrize("option", DOOR)
def test_options_of_the_door(option):
    cases = [(value, error, f"`{option}`", part) for value, error, part in DOOR[option]]
    check_all(lambda value: pc.as_partition_draws(TREE, **({"var_name": "z"} | {option: value})), cases)


@pytest.mark.parametrize(("option", "value"), [("item_dim", "x"), ("sample_dims", ("run", "draw"))])
def test_options_of_the_door_where_it_looks_for_labels(option, value):
    parts = ["`data` has no label variable", f"`{option}` {value!r}", "present: z ('chain', 'draw', 'obs') int64"]
    check(lambda v: pc.as_partition_draws(TREE, **{option: v}), value, ValueError, parts)


def test_names_of_arrays_and_their_dimensions():
    parts = ["`var_name`", "the DataArray or None; got 'y', present: 'z'"]
    check(lambda name: pc.as_partition_draws(ROWS, name), "y", ValueError, parts)
    for dim in ("chain", "draw"):
        parts = ["`item_dim`", "dimensions of the draws, 'chain', 'draw'", f"got {dim!r}"]
        check(lambda dim: pc.as_partition_draws(GOOD[np.newaxis], item_dim=dim), dim, ValueError, parts)


TAKES_PARTITION = {
    **{name: getattr(pc, name) for name in ("expected_loss", "credible_ball", "certify", "item_uncertainty")},
    **{name: getattr(pc, name) for name in ("cluster_merges", "diagnose", "plot_items_map", "plot_psm")},
    **{name: getattr(pc, name) for name in ("plot_n_clusters", "plot_draws_map")},
    "plot_psm by chain": partial(pc.plot_psm, by="chain"),
    "refine_partition": refine_partition,
    "summed_impurity": summed_impurity,
    "PartitionDensity.p_value": lambda draws, p: pc.partition_density(draws).p_value(p),
    "certify within_variance": lambda draws, p: pc.certify(draws, p, loss="within_variance"),
}


@pytest.mark.parametrize("name", TAKES_PARTITION)
def test_bad_partitions(name):
    """All functions have one way to take a partition; the first takes all, the others some of each kind of fault."""
    draws = ROWS.assign_coords(obs=list("abcd"))
    bad = PARTITIONS if name == "expected_loss" else ("too short", "empty", "NaN", "negative", "text", "other items")
    cases = [(partition, error, "`partition", part) for partition, error, part in map(PARTITIONS.get, bad)]
    check_all(lambda partition: TAKES_PARTITION[name](draws, partition), cases)


def test_files_of_other_kinds(tmp_path):
    for name in ("draws.rds", "draws.nc", "draws.json", "draws.zarr"):
        path = tmp_path / name
        path.mkdir() if path.suffix == ".zarr" else path.write_bytes(b"0,0,1\n")
        check(pc.as_partition_draws, str(path), ValueError, ["`data` must be a path to a NetCDF", name])


def test_group_of_a_file(tmp_path):
    xr.DataTree.from_dict({"posterior": ROWS.to_dataset()}).to_netcdf(tmp_path / "z.nc", engine="h5netcdf")
    parts = ["`group`", "got 'zz', present: 'posterior'"]
    check(lambda path: pc.as_partition_draws(path, group="zz"), tmp_path / "z.nc", ValueError, parts)


def test_a_store_that_is_no_path_is_refused_by_name():
    for make in (lambda store: pc.as_partition_draws(GOOD, store=store), pc.PartitionAccumulator):
        check(make, 3, TypeError, ["`store`", "a path; got 3"])
