"""Mistyped arguments end in an error that names the argument, what came and what is allowed."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.bad import PARTITIONS
from tests.helpers import CENTER, GOOD, ROWS, check

OPTIONS = {
    "loss": [
        ("zz", ValueError, "one of 'vi', 'binder'"),
        (3, TypeError, "a name or a PartitionLoss"),
    ],
    "method": [
        ("zz", ValueError, "one of 'greedy', 'hierarchical'"),
        (3, TypeError, "a name or a function; got 3"),
        (["greedy"], TypeError, "got ['greedy']"),
        (None, TypeError, "None"),
    ],
    "refine": [
        ("zz", ValueError, "one of 'jacobi', 'gauss-seidel'"),
        (True, ValueError, "got True"),
        ("", ValueError, "got ''"),
    ],
    "n_clusters": [
        (0, ValueError, "at least 1; got 0"),
        (-1, ValueError, "got -1"),
        (5, ValueError, "between 1 and the number of items, 4; got 5"),
        (2.0, TypeError, "an integer; got 2.0"),
        (True, TypeError, "an integer; got True"),
        ("2", TypeError, "an integer; got '2'"),
    ],
    "max_clusters": [(0, ValueError, "at least 1"), (5, ValueError, "got 5"), (1.5, TypeError, "an integer")],
    "n_starts": [(0, ValueError, "at least 1; got 0"), (1.5, TypeError, "got 1.5"), (True, TypeError, "got True")],
    "random_seed": [("a", TypeError, "a Generator or None; got 'a'"), (-1, ValueError, "got -1")],
    "bogus": [(1, TypeError, "'greedy' takes n_starts, n_agree,")],
    "linkage": [("average", TypeError, "'greedy' takes n_starts, n_agree,")],
    "tau": [(0.3, ValueError, "needs loss='binder'; got loss 'vi'"), ("auto", ValueError, "needs loss='binder'")],
    "passes": [(0, ValueError, "at least 1; got 0"), (True, TypeError, "got True")],
}


@pytest.mark.parametrize(
    ("option", "value", "error", "part"), [(option, *case) for option, cases in OPTIONS.items() for case in cases]
)
def test_options_of_consensus(option, value, error, part):
    check(lambda v: pc.consensus_partition(GOOD, **{option: v}), value, error, [f"`{option}`", part])


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"n_clusters": 3, "max_clusters": 2}, ValueError, "`n_clusters` must not exceed `max_clusters`; got 3 and 2"),
        ({"loss": "binder", "tau": 1}, ValueError, "`tau` must lie between 0 and 1, both excluded; got 1"),
        ({"loss": "binder", "tau": 0.0}, ValueError, "`tau` must lie between 0 and 1, both excluded; got 0.0"),
        ({"loss": "binder", "tau": np.nan}, ValueError, "`tau` must lie between 0 and 1, both excluded; got nan"),
        ({"loss": "binder", "tau": "half"}, ValueError, "a number between 0 and 1, 'auto' or None; got 'half'"),
        ({"loss": "binder", "tau": True}, TypeError, "`tau` must be a number; got bool"),
        ({"loss": "binder", "tau": [0.5]}, TypeError, "`tau` must be a number; got list"),
        ({"loss": pc.binder(0.5), "tau": 0.5}, ValueError, "needs loss='binder'; got loss 'binder(a=0.5)'"),
        ({"loss": "zz", "tau": 0.5}, ValueError, "`loss` must be a PartitionLoss or one of"),
        ({"loss": 3, "tau": 0.5}, TypeError, "`loss` must be a name or a PartitionLoss"),
        ({"refine": "jacobi", "passes": 0}, ValueError, "`passes` must be at least 1; got 0"),
        ({"refine": "jacobi", "passes": 1.5}, TypeError, "`passes` must be an integer; got 1.5"),
        ({"method": "basic", "n_starts": 0}, ValueError, "`n_starts` must be at least 1; got 0"),
        ({"method": lambda *_, **__: None}, TypeError, "must return a consensus.Candidate; got NoneType"),
        ({"method": "hierarchical", "linkage": "ward"}, ValueError, "`linkage` must be one of 'average', 'complete'"),
        ({"method": "best_draw", "n_clusters": 4}, ValueError, "needs a draw with 4 clusters; the draws have 2 to 3"),
        (
            {"method": "best_draw", "n_starts": 4},
            TypeError,
            "takes no options of its own; got `n_starts`",
        ),
    ],
)
def test_arguments_that_do_not_fit_together(arguments, error, part):
    check(lambda a: pc.consensus_partition(GOOD, **a), arguments, error, [part])


def test_enumeration_has_a_limit():
    parts = ["'enumeration' takes at most 10 items; got 11. Use 'greedy'"]
    check(lambda draws: pc.consensus_partition(draws, method="enumeration"), np.zeros((2, 11), int), ValueError, parts)


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("a", TypeError)])
def test_seed(seed, error):
    parts = [f"`random_seed` must be an integer from 0, a Generator or None; got {seed!r}"]
    check(lambda s: pc.consensus.pair_threshold(GOOD, random_seed=s), seed, error, parts)
    check(lambda s: pc.as_allocation_probabilities(np.full((3, 2, 2), 0.5), random_seed=s), seed, error, parts)


@pytest.mark.parametrize("prob", [0, 1, -0.1, 1.5, "0.9", None, True, np.nan])
def test_prob(prob):
    is_number = isinstance(prob, (int, float)) and not isinstance(prob, bool)
    text = f"lie between 0 and 1, both excluded; got {prob!r}" if is_number else "be a number"
    error = ValueError if is_number else TypeError
    for function in (
        lambda p: pc.credible_ball(GOOD, CENTER, prob=p),
        lambda p: pc.partition_density(GOOD).contains(CENTER, p),
        lambda p: pc.partial_partition(GOOD, p),
        lambda p: pc.summarize(GOOD, prob=p, progressbar=False),
    ):
        check(function, prob, error, [f"`prob` must {text}"])


def test_ball_wants_a_metric():
    parts = ["`loss` must be a metric", "got 'omari'", "'vi', 'binder'"]
    check(lambda loss: pc.credible_ball(GOOD, CENTER, loss=loss), "omari", ValueError, parts)


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"loss": "omari"}, ValueError, "`loss` must be 'binder' or 'vi', whose parameter is varied; got 'omari'"),
        ({"loss": pc.binder(0.5)}, ValueError, "whose parameter is varied; got PartitionLoss binder(a=0.5)"),
        ({"values": []}, ValueError, "`values` must hold at least one value; got none"),
        ({"loss": "binder", "values": [0.5, 1]}, ValueError, "`values` must lie between 0 and 1, both excluded; got 1"),
        ({"loss": "vi", "values": [0.5, 2]}, ValueError, "`values` must lie between 0 and 2, both excluded; got 2"),
        ({"values": [0.5, np.nan]}, ValueError, "`values` must lie between 0 and 2, both excluded; got nan"),
        ({"values": "auto"}, TypeError, "`values` must be a number; got str"),
        ({"values": [[0.5]]}, TypeError, "`values` must be a number; got list"),
        ({"random_seed": "a"}, TypeError, "`random_seed` must be an integer from 0"),
        (
            {"linkage": "average"},
            TypeError,
            "seconds, n_jobs; got `linkage`",
        ),
        ({"tau": 0.5}, ValueError, "`tau` is the pair threshold of Binder's loss"),
    ],
)
def test_arguments_of_the_path(arguments, error, part):
    check(lambda a: pc.loss_path(GOOD, **a), arguments, error, [part])


@pytest.mark.parametrize("order", ["zz", None, 3, ["jacobi"]])
def test_order(order):
    parts = [f"`order` must be one of 'jacobi', 'gauss-seidel'; got {order!r}"]
    check(lambda o: pc.consensus.refine_partition(GOOD, CENTER, order=o), order, ValueError, parts)


DOOR = {
    "var_name": [
        ("zz", ValueError, "must name a variable of the group; got 'zz', present: 'z'"),
        ("draw", ValueError, "must name a variable"),
        (["z"], TypeError, "must be a name; got ['z']"),
    ],
    "item_dim": [("x", ValueError, "other than ('chain', 'draw'); got 'x'"), ("draw", ValueError, "got 'draw'")],
    "sample_dims": [
        (("chain", "x"), ValueError, "got ('chain', 'x'), present: ('chain', 'draw', 'obs')"),
        (("chain", "chain"), ValueError, "each once; got ('chain', 'chain')"),
        ([], ValueError, "at least one dimension"),
        (None, TypeError, "a name or a sequence of names; got None"),
        ({"chain", "draw"}, TypeError, "a name or a sequence of names"),  # a set has no order
        (3, TypeError, "got 3"),
    ],
    "group": [("zz", ValueError, "got 'zz', present: 'posterior'"), (3, ValueError, "got 3, present: 'posterior'")],
}


TREE = xr.DataTree.from_dict({"posterior": ROWS.drop_vars(["chain", "draw"]).to_dataset(name="z")})


@pytest.mark.parametrize(
    ("option", "value", "error", "part"), [(option, *case) for option, cases in DOOR.items() for case in cases]
)
def test_options_of_the_door(option, value, error, part):
    check(
        lambda v: pc.as_partition_draws(TREE, **({"var_name": "z"} | {option: v})),
        value,
        error,
        [f"`{option}`", part],
    )


@pytest.mark.parametrize(("option", "value"), [("item_dim", "x"), ("sample_dims", ("run", "draw"))])
def test_options_of_the_door_where_it_looks_for_labels(option, value):
    parts = ["`data` has no label variable", f"`{option}` {value!r}", "present: z ('chain', 'draw', 'obs') int64"]
    check(lambda v: pc.as_partition_draws(TREE, **{option: v}), value, ValueError, parts)


def test_name_of_a_data_array():
    parts = ["`var_name` must be the name of the DataArray or None; got 'y', present: 'z'"]
    check(lambda name: pc.as_partition_draws(ROWS, name), "y", ValueError, parts)


@pytest.mark.parametrize("item_dim", ["chain", "draw"])
def test_items_of_an_array_are_not_draws(item_dim):
    parts = ["`item_dim` must differ from the dimensions of the draws, 'chain', 'draw'", f"got {item_dim!r}"]
    check(lambda dim: pc.as_partition_draws(GOOD[np.newaxis], item_dim=dim), item_dim, ValueError, parts)


TAKES_PARTITION = {
    "expected_loss": pc.expected_loss,
    "refine_partition": pc.consensus.refine_partition,
    "credible_ball": pc.credible_ball,
    "PartitionDensity.p_value": lambda draws, p: pc.partition_density(draws).p_value(p),
    "certify": pc.certify,
    "certify within_variance": lambda draws, p: pc.certify(draws, p, loss="within_variance"),
    "summed_impurity": pc.consensus.summed_impurity,
    "item_uncertainty": pc.item_uncertainty,
    "cluster_merges": pc.cluster_merges,
    "plot_items_map": pc.plot_items_map,
    "plot_psm": pc.plot_psm,
    "plot_n_clusters": pc.plot_n_clusters,
    "diagnose": pc.diagnose,
    "plot_psm_by_chain": pc.plot_psm_by_chain,
    "plot_draws_map": pc.plot_draws_map,
}


@pytest.mark.parametrize("bad", PARTITIONS)
@pytest.mark.parametrize("name", TAKES_PARTITION)
def test_bad_partitions(name, bad):
    draws = ROWS.assign_coords(obs=list("abcd"))
    partition, error, part = PARTITIONS[bad]
    check(lambda p: TAKES_PARTITION[name](draws, p), partition, error, ["`partition", part])


@pytest.mark.parametrize("name", ["draws.rds", "draws.nc", "draws.json", "draws.zarr"])
def test_files_of_other_kinds(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if path.suffix == ".zarr" else path.write_bytes(b"0,0,1\n")
    check(pc.as_partition_draws, str(path), ValueError, ["`data` must be a path to a NetCDF", name])


def test_group_of_a_file(tmp_path):
    xr.DataTree.from_dict({"posterior": ROWS.to_dataset()}).to_netcdf(tmp_path / "z.nc", engine="h5netcdf")
    check(
        lambda p: pc.as_partition_draws(p, group="zz"),
        tmp_path / "z.nc",
        ValueError,
        ["got 'zz', present: 'posterior'"],
    )


def test_a_store_that_is_no_path_is_refused_by_name():
    for make in (lambda: pc.as_partition_draws(GOOD, store=3), lambda: pc.PartitionAccumulator(3)):
        with pytest.raises(TypeError, match="`store` must be a path; got 3"):
            make()
