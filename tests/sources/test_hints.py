"""An argument of the wrong kind, axis or order ends in an error that says where it is and what to give instead."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime import memory
from tests.helpers import CENTER, GOOD, ROWS, array, check

NAMES = list("abcd")
COUNTIES = array(dims=("draw", "county"), county=NAMES)
PSM = pc.posterior_similarity_matrix(GOOD)
SOFT = np.random.default_rng(0).dirichlet(np.ones(3), (2, 5, 7))  # chains x draws x items x components


def summary(data):
    return pc.summarize(data, progressbar=False)


@pytest.mark.parametrize("function", [pc.as_partition_draws, summary, pc.particles])
@pytest.mark.parametrize(
    ("data", "dims"),
    [
        (COUNTIES, "'draw'"),
        (COUNTIES.rename(draw="iteration").to_dataset(), "'iteration'"),
        (COUNTIES.rename(draw="draws").expand_dims("chains"), "('chains', 'draws')"),
        (COUNTIES.rename(draw="particle").rename("partitions"), "'particle'"),
    ],
)
def test_dimensions_of_draws_are_named(function, data, dims):
    check(function, data, ValueError, [f"along {dims}, say so: as_partition_draws(data, sample_dims={dims})"])


def test_dimensions_of_probabilities_are_named():
    data = xr.DataArray(SOFT[0], dims=("iteration", "county", "k"))
    parts = ["as_allocation_probabilities(data, sample_dims='iteration')"]
    check(pc.as_allocation_probabilities, data, ValueError, parts)


@pytest.mark.parametrize("function", [pc.as_partition_draws, summary, lambda psm: pc.credible_ball(psm, CENTER)])
@pytest.mark.parametrize(
    "psm", [PSM, PSM.values, PSM.values.tolist(), pd.DataFrame(PSM.values)], ids=["DataArray", "array", "list", "frame"]
)
def test_a_similarity_matrix_is_no_draws(function, psm):
    check(
        function,
        psm,
        ValueError,
        ["similarity matrix: give as_pair_similarity(data) to functions", "such as consensus"],
    )


BEST = pc.consensus_partition(GOOD, random_seed=1, progressbar=False)
DRAWS_FIRST = {
    "expected_loss": pc.expected_loss,
    "credible_ball": pc.credible_ball,
    "item_uncertainty": pc.item_uncertainty,
    "certify": pc.certify,
    "cluster_merges": pc.cluster_merges,
    "compare_partitions": pc.compare_partitions,
    "diagnose": pc.diagnose,
    "refine_partition": pc.consensus.refine_partition,
    "summed_impurity": pc.consensus.summed_impurity,
    "plot_items_map": pc.plot_items_map,
    "plot_psm": pc.plot_psm,
    "plot_psm_by_chain": pc.plot_psm_by_chain,
    "plot_draws_map": pc.plot_draws_map,
    "plot_n_clusters": pc.plot_n_clusters,
}
PARTITIONS = {
    "a result": (BEST, TypeError),
    "a DataArray": (BEST.labels, ValueError),
    "an array": (BEST.labels.values, ValueError),
    "a list": (CENTER, ValueError),
    "a Series": (pd.Series(CENTER), TypeError),
}


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("name", DRAWS_FIRST)
def test_draws_come_before_a_partition(name, kind):
    partition, error = PARTITIONS[kind]
    check(lambda one: DRAWS_FIRST[name](one, pc.as_partition_draws(GOOD)), partition, error, ["pass the draws first"])


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda: pc.compare_partitions({"a": CENTER, "b": CENTER}, GOOD), "pass the draws first"),
        (lambda: pc.expected_loss([CENTER, CENTER], pc.as_partition_draws(GOOD)), "one partition second"),
        (lambda: pc.partition_loss(GOOD, CENTER), "one partition second"),
        (lambda: pc.plot_data(BEST, np.eye(4)), "one partition second"),
        (lambda: pc.as_partition_draws({"z": GOOD}), "Give draws of one chain as values[np.newaxis]"),
        (lambda: pc.credible_ball(GOOD, pc.credible_ball(GOOD, BEST)), "Take its `center`"),
        (lambda: pc.credible_ball(GOOD, pc.particles(GOOD, 1, progressbar=False)), "Take one of its `partitions`"),
        (lambda: pc.particles(pc.particles(GOOD, 1, progressbar=False)), "Take its `draws`"),
        (lambda: pc.expected_loss(GOOD, {"a": CENTER}), "compare_partitions takes several by name"),
        (lambda: pc.membership(GOOD, xr.Dataset({"z": ("item", CENTER)})), "got Dataset. Draws or data come first"),
        (lambda: pc.match_clusters("0011", CENTER), "one for each item; got str."),
        (lambda: pc.consensus_partition(GOOD, loss="greedy"), "got 'greedy', which is a method: give method='greedy'"),
        (lambda: pc.summarize(GOOD, loss="exact"), "which is a method: give method='exact'"),
        (lambda: pc.loss_path(GOOD, loss="hierarchical"), "which is a method: give method='hierarchical'"),
        (
            lambda: pc.consensus_partition(GOOD, method="binder"),
            "got 'binder'. That is a loss: loss='binder'",
        ),
    ],
)
def test_what_was_given_is_recognised(function, part):
    with pytest.raises((TypeError, ValueError)) as raised:
        function()
    assert part in str(raised.value)


NAMED = array(
    np.tile(GOOD, (2, 1)).reshape(2, 4, 4),
    ("chain", "draw", "county"),
    chain=[1, 2],
    draw=[10, 11, 12, 13],
    county=NAMES,
)
FRAME = pd.DataFrame(GOOD, columns=NAMES)
AT = {
    "array": (GOOD, (2, 1), "draw 2, item 1 (from 0)"),
    "chains": (np.stack([GOOD, GOOD]), (1, 2, 1), "chain 1, draw 2, item 1 (from 0)"),
    "DataFrame": (FRAME.to_numpy(), (2, 1), "chain 0, draw 2, item 'b'"),
    "DataArray": (NAMED.values, (1, 2, 1), "chain 2, draw 12, county 'b'"),
}
WRONG = {
    "negative": (-3, "negative; got -3 at "),
    "missing": (np.nan, "missing; got 1 NaN at "),
    "not whole": (1.5, "integers; got 1.5 at "),
    "infinite": (np.inf, "integers below 2**53; got inf at "),
    "None": (None, "missing; got 1 NaN at "),
    "text": ("x", "got int, str, such as 'x' at "),
}


@pytest.mark.parametrize("kind", AT)
@pytest.mark.parametrize(
    ("wrong", "in_blocks"),
    [(wrong, in_blocks) for wrong in WRONG for in_blocks in (False, True) if (wrong, in_blocks) != ("text", True)],
)
def test_bad_labels_by_place(kind, wrong, in_blocks, monkeypatch):
    values, index, place = AT[kind]
    value, part = WRONG[wrong]
    bad = values.astype(object)
    bad[index] = value
    bad = bad if isinstance(value, (str, type(None))) else bad.astype(float)
    data = {"DataFrame": lambda: pd.DataFrame(bad, columns=NAMES), "DataArray": lambda: NAMED.copy(data=bad)}
    if in_blocks:
        monkeypatch.setattr(memory, "budget", lambda: 16 * 3 * 8)  # a few labels at once
    check(
        pc.as_partition_draws,
        data.get(kind, lambda: bad)(),
        (TypeError if wrong == "text" else ValueError),
        [part + place],
    )


def test_the_first_of_several_is_named():
    bad = np.where(GOOD == 2, np.nan, GOOD)
    check(pc.as_partition_draws, bad, ValueError, ["got 3 NaN, the first at draw 2, item 0 (from 0)"])
    check(
        pc.as_partition_draws,
        np.ma.masked_equal(GOOD, 2),
        ValueError,
        ["got 3 NaN, the first at draw 2, item 0 (from 0)"],
    )
    check(lambda p: pc.credible_ball(GOOD, p), [0, 0, -1, -2], ValueError, ["got -1 at position 2 (from 0)"])


@pytest.mark.parametrize(
    ("value", "log", "part"),
    [
        (np.nan, None, "got NaN at chain 1, draw 3, item 2, component 1 (from 0)"),
        (np.inf, None, "got infinity at chain 1, draw 3, item 2, component 1 (from 0)"),
        (-0.5, False, "got -0.5 at chain 1, draw 3, item 2, component 1 (from 0)"),
    ],
)
def test_bad_probabilities_by_place(value, log, part):
    bad = SOFT.copy()
    bad[1, 3, 2, 1] = value
    check(lambda p: pc.as_allocation_probabilities(p, log=log), bad, ValueError, [part])


@pytest.mark.parametrize(("values", "log"), [(0.0, False), (-np.inf, True)])
def test_impossible_items_by_place(values, log):
    bad = SOFT.copy()
    bad[1, 3, 2] = values
    part = "for all components from chain 1, draw 3, item 2, component 0 (from 0)"
    check(lambda p: pc.as_allocation_probabilities(p, log=log), bad, ValueError, [part])


def test_bad_weights_by_place():
    check(
        lambda w: pc.as_partition_draws(NAMED, weights=w), [1] * 6 + [-2, 1], ValueError, ["-2.0 at chain 2, draw 12"]
    )


@pytest.mark.parametrize(
    ("at", "value", "part"),
    [
        ((1, 2), np.nan, "such as nan, the first at row 1, column 2"),
        ((1, 2), 1.5, "the first beyond at row 1, column 2"),
        ((2, 2), 0.5, "got 0.5 at row 2, column 2"),
        ((2, 1), 0.7, "the first at row 1, column 2"),
    ],
)
def test_bad_similarities_by_place(at, value, part):
    bad = PSM.values.copy()
    bad[at] = value
    check(pc.as_pair_similarity, bad, ValueError, [part])


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (
            [GOOD, GOOD[:3]],
            [
                "must have chains of one length; got 4 draws of chain 0 and 3 of chain 1",
                "chain[:3]",
                "PartitionAccumulator",
            ],
        ),
        ({"z": [GOOD.tolist(), GOOD[:3].tolist()]}, ["'z' of `data` must have chains of one length"]),
        ([GOOD, GOOD[:, :3]], ["every draw the same items; got shape (4, 4) of chain 0 and (4, 3) of chain 1"]),
        ([[0, 1], [0, 1], [0, 1, 2]], ["every draw the same items; got shape (2,) of row 0 and (3,) of row 2"]),
        ([[[0, 1], [0]], [[0, 1], [0, 1]]], ["every draw the same items; got rows of different lengths"]),
    ],
)
def test_chains_and_draws_of_other_lengths(data, parts):
    check(pc.as_partition_draws, data, ValueError, parts)


def test_chains_of_probabilities_of_other_lengths():
    parts = ["must have chains of one length; got 5 draws of chain 0 and 4 of chain 1"]
    check(pc.as_allocation_probabilities, [SOFT[0], SOFT[1, :4]], ValueError, parts)


def test_items_of_one_name():
    doubled = pc.as_partition_draws(ROWS.assign_coords(obs=list("abba")))
    parts = ["`items` must be booleans", "names of 'obs' are not unique: 'b' is the name of 2 items"]
    check(lambda items: pc.posterior_similarity_matrix(doubled, items=items), ["a"], ValueError, parts)
    by_position = pc.posterior_similarity_matrix(doubled, items=[True, False, False, True])
    np.testing.assert_array_equal(by_position, PSM.values[np.ix_([0, 3], [0, 3])])
    other = array(CENTER, ("obs",), obs=list("baba"))
    check(lambda p: pc.credible_ball(doubled, p), other, ValueError, ["'obs' differ: 'b' is the name of 2 items"])


def test_items_of_other_names():
    draws = ROWS.assign_coords(obs=NAMES)
    parts = ["`partition` must label the same items; the coordinates of 'obs' differ: 'd' is missing"]
    check(lambda p: pc.credible_ball(draws, p), array(CENTER, ("obs",), obs=list("abce")), ValueError, parts)


def test_an_accumulator_is_read_from_its_path(tmp_path):
    pytest.importorskip("zarr")
    with pc.PartitionAccumulator(tmp_path / "kept", batch_size=3, items=NAMES, item_dim="county") as kept:
        kept.add(GOOD)
        check(
            pc.as_partition_draws,
            tmp_path / "kept",
            BlockingIOError,
            ["is in use by another process", "close the accumulator"],
        )
    for path in (tmp_path / "kept", str(tmp_path / "kept")):
        draws = pc.as_partition_draws(path)
        np.testing.assert_array_equal(draws.labels, pc.as_partition_draws(GOOD).labels)
        assert draws.items.names.tolist() == NAMES
    pc.as_partition_draws(GOOD, store=tmp_path / "store")
    for path in (tmp_path / "kept", tmp_path / "store"):
        assert pc.summarize(path, random_seed=1, progressbar=False).draws.n_draws == len(GOOD)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("given", [{"component_dim": "county"}, {"item_dim": "k"}])
def test_swapped_components_are_noticed_by_their_sums(log, given):
    data = xr.DataArray(np.log(SOFT) if log else SOFT, dims=("chain", "draw", "county", "k"))
    parts = ["`component_dim`", "got 'county', and they do over 'k'. Give item_dim='county', component_dim='k'"]
    check(lambda p: pc.as_allocation_probabilities(p, **given), data, ValueError, parts)


def test_components_before_items():
    soft = pc.as_allocation_probabilities(SOFT.swapaxes(2, 3))
    assert (soft.items.dim, soft.soft.component_dim) == ("item", "component")
    np.testing.assert_array_equal(soft.soft.probabilities, pc.as_allocation_probabilities(SOFT).soft.probabilities)


def test_items_are_no_components():
    mu = array(np.linspace(0.1, 0.9, 12).reshape(1, 4, 3), ("chain", "draw", "k"))
    posterior = xr.Dataset({"z": ROWS, "mu": mu})
    parts = ["`component_dim` must not run over the items; got 'obs', and 'z'", "give `allocations`"]
    check(lambda dim: pc.relabel(posterior, CENTER, component_dim=dim), "obs", ValueError, parts)


TAKES_PARTITION = DRAWS_FIRST | {
    "compare_partitions": lambda draws, p: pc.compare_partitions(draws, [p]),
    "partition_loss": lambda draws, p: pc.partition_loss(p, BEST),
    "pairwise_losses": pc.pairwise_losses,
    "p_value": lambda draws, p: pc.partition_density(draws).p_value(p),
    "plot_alluvial": lambda draws, p: pc.plot_alluvial([p, BEST]),
    "starts": lambda draws, p: pc.consensus_partition(draws, starts=[p], progressbar=False),
    "references": lambda draws, p: pc.diagnose(draws, references=[p]),
}


@pytest.mark.parametrize("name", TAKES_PARTITION)
def test_a_particle_is_a_partition(name):
    particles = pc.particles(ROWS.assign_coords(obs=NAMES), 2, random_seed=1, progressbar=False)
    TAKES_PARTITION[name](particles.draws, particles.partitions[1, ::-1])  # by name, in any order


def test_particles_are_partitions():
    draws = ROWS.assign_coords(obs=NAMES)
    partitions = pc.particles(draws, 2, random_seed=1, progressbar=False).partitions
    losses = pc.pairwise_losses(draws, partitions[1, ::-1])
    assert losses.shape == (4, 1)
    assert losses.mean() == pytest.approx(pc.expected_loss(draws, partitions[1])["expected_loss"].item())
    assert pc.averaged_jaccard(partitions) == pytest.approx(pc.averaged_jaccard(list(partitions)))
    assert len(pc.plot_alluvial(partitions).get_xticks()) == 2


PLAIN = pc.as_partition_draws(GOOD)


@pytest.mark.parametrize(
    ("function", "error", "part"),
    [
        (lambda: pc.agreement_path({"a": PLAIN}), ValueError, "at least two"),
        (lambda: pc.consensus.summed_impurity(GOOD, CENTER, weighted="x"), TypeError, "`weighted` must be True or Fa"),
        (lambda: pc.as_allocation_probabilities(SOFT, log="x"), TypeError, "`log` must be True or False; got 'x'"),
        (
            lambda: pc.as_allocation_probabilities(SOFT, component_dim=3),
            TypeError,
            "`component_dim` must be a name; got",
        ),
        (lambda: pc.as_partition_draws(GOOD, item_dim=3), TypeError, "`item_dim` must be a name; got 3"),
        (lambda: pc.summarize(PLAIN, "z"), ValueError, "`var_name` and `item_dim` must be None for PartitionDraws"),
        (lambda: PLAIN.isel(draw="a"), TypeError, "`draw` must lie among 0 to 3; got 'a'"),
        (lambda: BEST.with_names(first="a"), TypeError, "`first` must be an integer; got 'a'"),
        (lambda: pc.posterior_similarity_matrix(GOOD, items=[True]), IndexError, "positions below 4, or 4 booleans"),
        (
            lambda: pc.experts.normalised_cut(pc.as_constraints(GOOD[np.newaxis]), n_clusters=9),
            ValueError,
            "; got 9",
        ),
    ],
)
def test_mistyped_arguments(function, error, part):
    with pytest.raises(error) as raised:
        function()
    assert type(raised.value) is error
    assert part in str(raised.value)
