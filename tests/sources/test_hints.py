"""An argument of the wrong kind, axis or order ends in an error that says where it is and what to give instead."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.impurity import summed_impurity
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.experts.competing_methods import normalized_cut
from posterior_consensus.runtime import memory
from tests.helpers import CENTRE, GOOD, ROWS, array, check, check_all

NAMES = list("abcd")
SOFT = np.random.default_rng(0).dirichlet(np.ones(3), (2, 5, 7))  # chains x draws x items x components
SIMILARITIES = np.mean(GOOD[:, :, np.newaxis] == GOOD[:, np.newaxis], axis=0)


@pytest.fixture(scope="module")
def best():
    return pc.consensus_partition(GOOD, random_seed=1, progressbar=False)


@pytest.fixture(scope="module")
def particles():
    return pc.particles(ROWS.assign_coords(obs=NAMES), 2, random_seed=1, progressbar=False)


def call(function):
    return function()


def test_dimensions_of_draws_are_named():
    draws = array(dims=("draw", "county"), county=NAMES)
    dims = [
        (draws, "'draw'"),
        (draws.rename(draw="iteration").to_dataset(), "'iteration'"),
        (draws.rename(draw="draws").expand_dims("chains"), "('chains', 'draws')"),
        (draws.rename(draw="particle").rename("partitions"), "'particle'"),
    ]
    cases = [(data, ValueError, f"along {dim}", f"as_partition_draws(data, sample_dims={dim})") for data, dim in dims]
    check_all(pc.as_partition_draws, cases)
    check_all(lambda data: pc.summarize(data, progressbar=False), cases[:1])
    soft = xr.DataArray(SOFT[0], dims=("iteration", "county", "k"))
    parts = ["as_allocation_probabilities(data, sample_dims='iteration')"]
    check(pc.as_allocation_probabilities, soft, ValueError, parts)


def test_a_similarity_matrix_is_no_draws():
    kinds = SIMILARITIES, SIMILARITIES.tolist(), pd.DataFrame(SIMILARITIES), pc.posterior_similarity_matrix(GOOD)
    cases = [(psm, ValueError, "similarity matrix: give as_pair_similarity(data)") for psm in kinds]
    check_all(pc.as_partition_draws, cases)
    check_all(lambda psm: pc.credible_ball(psm, CENTRE), cases[:1])


DRAWS_FIRST = {
    **{name: getattr(pc, name) for name in ("expected_loss", "credible_ball", "item_uncertainty", "certify")},
    **{name: getattr(pc, name) for name in ("cluster_merges", "compare_partitions", "diagnose", "plot_items_map")},
    **{name: getattr(pc, name) for name in ("plot_psm", "plot_draws_map", "plot_n_clusters")},
    "plot_psm by chain": partial(pc.plot_psm, by="chain"),
    "refine_partition": refine_partition,
    "summed_impurity": summed_impurity,
}


def test_draws_come_before_a_partition(best):
    draws, vector, result = pc.as_partition_draws(GOOD), np.array(CENTRE), (best, TypeError, "pass the draws first")
    values = (best.labels, vector, CENTRE)
    cases = [result, (pd.Series(CENTRE), TypeError, result[2]), *((one, ValueError, result[2]) for one in values)]
    check_all(lambda one: pc.expected_loss(one, draws), cases)
    for function in DRAWS_FIRST.values():
        check_all(lambda one, function=function: function(one, draws), [result, (vector, ValueError, result[2])])


def test_what_was_given_is_recognized(best, particles):
    draws, ball = pc.as_partition_draws(GOOD), pc.credible_ball(GOOD, best)
    dataset = xr.Dataset({"z": ("item", CENTRE)})
    cases = [
        (lambda: pc.compare_partitions({"a": CENTRE, "b": CENTRE}, GOOD), ValueError, "pass the draws first"),
        (lambda: pc.expected_loss([CENTRE, CENTRE], draws), ValueError, "one partition second"),
        (lambda: pc.plot_data(best, np.eye(4)), ValueError, "one partition second"),
        (lambda: pc.as_partition_draws({"z": GOOD}), ValueError, "values[np.newaxis]"),
        (lambda: pc.credible_ball(GOOD, ball), ValueError, "its `partition`"),
        (lambda: pc.credible_ball(GOOD, particles), ValueError, "its `partitions`"),
        (lambda: pc.particles(particles), TypeError, "its `draws`"),
        (lambda: pc.membership([best], best), TypeError, "one partition, a ConsensusPartition", "Pass the draws"),
        (lambda: pc.summarize([best.labels]), TypeError, "one partition, a DataArray", "Pass the draws"),
        (lambda: pc.as_partition_draws([pd.Series(CENTRE)]), TypeError, "one partition, a Series", "Pass the draws"),
        (lambda: pc.expected_loss(GOOD, {"a": CENTRE}), ValueError, "compare_partitions takes several by name"),
        (lambda: pc.membership(GOOD, dataset), ValueError, "got Dataset. Draws or data come first"),
        (lambda: pc.align_partitions(["0011", CENTRE]), ValueError, "one for each item; got str."),
        (lambda: pc.consensus_partition(GOOD, loss="greedy"), ValueError, "method='greedy'"),
        (lambda: pc.summarize(GOOD, loss="exact"), ValueError, "method='exact'"),
        (lambda: pc.loss_path(GOOD, loss="hierarchical"), ValueError, "method='hierarchical'"),
        (lambda: pc.consensus_partition(GOOD, method="binder"), ValueError, "got 'binder'", "loss='binder'"),
    ]
    check_all(call, cases)


CHAINS = np.stack([GOOD, GOOD])
NAMED = array(CHAINS, ("chain", "draw", "county"), chain=[1, 2], draw=[10, 11, 12, 13], county=NAMES)
# The values of each kind of data, the data of values, the index of the wrong one, and how an error names its place.
AT = {
    "array": (GOOD, np.array, (2, 1), "draw 2, item 1 (from 0)"),
    "chains": (CHAINS, np.array, (1, 2, 1), "chain 1, draw 2, item 1 (from 0)"),
    "DataFrame": (GOOD, lambda bad: pd.DataFrame(bad, columns=NAMES), (2, 1), "chain 0, draw 2, item 'b'"),
    "DataArray": (CHAINS, lambda bad: NAMED.copy(data=bad), (1, 2, 1), "chain 2, draw 12, county 'b'"),
}
WRONG = {
    -3: "negative; got -3 at ",
    np.nan: "missing; got 1 NaN at ",
    1.5: "integers; got 1.5 at ",
    np.inf: "integers below 2**53; got inf at ",
    None: "missing; got 1 NaN at ",
    "x": "got int, str, such as 'x' at ",
}


@pytest.mark.parametrize("kind", AT)
def test_bad_labels_by_place(kind, monkeypatch):
    values, make, index, place = AT[kind]
    cases = []
    for wrong, part in WRONG.items():
        bad = values.astype(object)
        bad[index] = wrong
        bad = bad if isinstance(wrong, (str, type(None))) else bad.astype(float)
        cases.append((make(bad), TypeError if wrong == "x" else ValueError, part + place))
    check_all(pc.as_partition_draws, cases)
    monkeypatch.setattr(memory, "budget", lambda: 16 * 3 * 8)  # a few labels at once
    check_all(pc.as_partition_draws, cases[:5])


def test_the_first_of_several_is_named():
    for bad in (np.where(GOOD == 2, np.nan, GOOD), np.ma.masked_equal(GOOD, 2)):
        check(pc.as_partition_draws, bad, ValueError, ["got 3 NaN, the first at draw 2, item 0 (from 0)"])
    check(lambda p: pc.credible_ball(GOOD, p), [0, 0, -1, -2], ValueError, ["got -1 at position 2 (from 0)"])
    bad = [1] * 6 + [-2, 1]
    check(lambda w: pc.as_partition_draws(NAMED, weights=w), bad, ValueError, ["-2.0 at chain 2, draw 12"])


def with_(values, value, *index):
    bad = values.copy()
    bad[index] = value
    return bad


def test_bad_probabilities_by_place():
    at, item = (1, 3, 2, 1), "chain 1, draw 3, item 2"
    cases = [
        ((with_(SOFT, np.nan, *at), None), ValueError, f"got NaN at {item}, component 1 (from 0)"),
        ((with_(SOFT, np.inf, *at), None), ValueError, f"got infinity at {item}, component 1 (from 0)"),
        ((with_(SOFT, -0.5, *at), False), ValueError, f"got -0.5 at {item}, component 1 (from 0)"),
        ((with_(SOFT, 0.0, *at[:3]), False), ValueError, f"all components from {item}, component 0 (from 0)"),
        ((with_(SOFT, -np.inf, *at[:3]), True), ValueError, f"all components from {item}, component 0 (from 0)"),
    ]
    check_all(lambda given: pc.as_allocation_probabilities(given[0], log=given[1]), cases)


def test_bad_similarities_by_place():
    cases = [
        (with_(SIMILARITIES, np.nan, 1, 2), ValueError, "such as nan, the first at row 1, column 2"),
        (with_(SIMILARITIES, 1.5, 1, 2), ValueError, "the first beyond at row 1, column 2"),
        (with_(SIMILARITIES, 0.5, 2, 2), ValueError, "got 0.5 at row 2, column 2"),
        (with_(SIMILARITIES, 0.7, 2, 1), ValueError, "the first at row 1, column 2"),
    ]
    check_all(pc.as_pair_similarity, cases)


def test_chains_and_draws_of_other_lengths():
    lengths = ["4 draws of chain 0 and 3 of chain 1", "chain[:3]", "PartitionAccumulator"]
    items = "every draw the same items; got "
    cases = [
        ([GOOD, GOOD[:3]], ValueError, *lengths),
        ({"z": [GOOD.tolist(), GOOD[:3].tolist()]}, ValueError, "'z' of `data`", lengths[0]),
        ([GOOD, GOOD[:, :3]], ValueError, items + "shape (4, 4) of chain 0 and (4, 3) of chain 1"),
        ([[0, 1], [0, 1], [0, 1, 2]], ValueError, items + "shape (2,) of row 0 and (3,) of row 2"),
        ([[[0, 1], [0]], [[0, 1], [0, 1]]], ValueError, items + "length 2 at [0][0] and length 1 at [0][1]"),
    ]
    check_all(pc.as_partition_draws, cases)
    check(pc.as_allocation_probabilities, [SOFT[0], SOFT[1, :4]], ValueError, ["5 draws of chain 0 and 4 of chain 1"])


def test_lists_of_other_lengths():
    run, one = "`data` must have a label for every item", "must hold sequences of one length; got "
    cases = [
        ([[0, 1], [0, 1, 2]], ValueError, run, "got 2 labels of run 0 and 3 of run 1", "missing=numpy.nan"),
        ([[0, 1, 2], [0, [1], 2]], ValueError, "run 1 of `data` " + one + "a single value at [0] and length 1 at [1]"),
    ]
    check_all(pc.as_runs, cases)
    two = ["`data` " + one + "length 2 at [0] and length 3 at [1]"]
    check(partial(pc.as_runs, axis=1), [[0, 1], [0, 1, 2]], ValueError, two)
    two = ["`weights` " + one + "length 1 at [0] and length 2 at [1]"]
    check(lambda weights: pc.as_partition_draws(GOOD, weights=weights), [[1], [1, 2]], ValueError, two)
    two = ["`data` " + one + "length 2 at [0] and length 1 at [1]"]
    check(pc.as_pair_similarity, [[1.0, 0.5], [0.5]], ValueError, two)


def test_items_of_one_name_and_of_other_names():
    doubled = pc.as_partition_draws(ROWS.assign_coords(obs=list("abba")))
    parts = ["`items`", "booleans", "'obs' are not unique: 'b' is the name of 2 items"]
    check(lambda items: pc.posterior_similarity_matrix(doubled, items=items), ["a"], ValueError, parts)
    by_position = pc.posterior_similarity_matrix(doubled, items=[True, False, False, True])
    np.testing.assert_array_equal(by_position, SIMILARITIES[np.ix_([0, 3], [0, 3])])
    other = array(CENTRE, ("obs",), obs=list("baba"))
    check(lambda p: pc.credible_ball(doubled, p), other, ValueError, ["'obs' differ: 'b' is the name of 2 items"])
    draws, other = ROWS.assign_coords(obs=NAMES), array(CENTRE, ("obs",), obs=list("abce"))
    check(lambda p: pc.credible_ball(draws, p), other, ValueError, ["`partition`", "'obs' differ: 'd' is missing"])


def test_an_accumulator_is_read_from_its_path(tmp_path):
    pytest.importorskip("zarr")
    kept, parts = tmp_path / "kept", ["in use by another process", "close the accumulator"]
    with pc.PartitionAccumulator(kept, batch_size=3, items=NAMES, item_dim="county") as accumulator:
        accumulator.add(GOOD)
        check(pc.PartitionAccumulator, kept, BlockingIOError, parts)
    for path in (kept, str(kept)):
        draws = pc.as_partition_draws(path)
        np.testing.assert_array_equal(draws.labels, pc.as_partition_draws(GOOD).labels)
        assert draws.items.names.tolist() == NAMES
    pc.as_partition_draws(GOOD, store=tmp_path / "store")
    for path in (kept, tmp_path / "store"):
        np.testing.assert_array_equal(pc.posterior_similarity_matrix(path), SIMILARITIES)


def test_components_in_place_of_items():
    """Their sums tell."""
    parts = ["`component_dim`", "got 'county'", "over 'k'", "`item_dim`='county'", "`component_dim`='k'"]
    for values, given in ((SOFT, {"component_dim": "county"}), (np.log(SOFT), {"item_dim": "k"})):
        data = xr.DataArray(values, dims=("chain", "draw", "county", "k"))
        check(lambda p, given=given: pc.as_allocation_probabilities(p, **given), data, ValueError, parts)
    soft = pc.as_allocation_probabilities(SOFT.swapaxes(2, 3))
    assert (soft.items.dim, soft.component_dim) == ("item", "component")
    np.testing.assert_array_equal(soft.probabilities, pc.as_allocation_probabilities(SOFT).probabilities)


def test_particles_are_partitions(particles):
    draws, partitions = particles.draws, particles.partitions
    turned = partitions[1, ::-1]  # by name, in any order
    losses = pc.partition_loss(draws, turned)
    assert losses.shape == (4, 1)
    for one in (turned, partitions[1]):
        assert losses.mean() == pytest.approx(pc.expected_loss(draws, one)["expected_loss"].item())
    assert pc.partition_loss(turned, partitions[1]) == 0
    assert pc.agreement.averaged_jaccard(partitions) == pytest.approx(pc.agreement.averaged_jaccard(list(partitions)))
    assert len(pc.plot_alluvial(partitions).get_xticks()) == len(pc.plot_alluvial([turned, CENTRE]).get_xticks()) == 2
    pc.partition_density(draws).p_value(turned)
    pc.consensus_partition(draws, starts=[turned], progressbar=False)
    pc.diagnose(draws, references=[turned])
    for function in DRAWS_FIRST.values():
        function(draws, [turned] if function is pc.compare_partitions else turned)


def test_numbers_that_are_neither_labels_nor_probabilities_are_no_draws(rng):
    data = rng.normal(size=(2, 10, 7))
    for values in (data, np.abs(data), rng.random((2, 10, 7)), np.stack([data, data])):
        with pytest.raises(ValueError, match=r"`data` must hold labels, .* shape \(2, .*that are neither. .*log=True"):
            pc.summarize(values)
    wrong = SOFT.copy()
    wrong[0, 0, 0, 0] = 2.0
    with pytest.raises(ValueError, match="their sum over all components is .* from chain 0, draw 0, item 0"):
        pc.summarize(wrong)
    assert pc.summarize(np.log(SOFT) - 3.0, modes=False, progressbar=False).source == "allocation probabilities"


def test_mistyped_arguments(best):
    plain, constraints = pc.as_partition_draws(GOOD), pc.experts.as_constraints(GOOD[np.newaxis])
    mu = array(np.linspace(0.1, 0.9, 12).reshape(1, 4, 3), ("chain", "draw", "k"))
    posterior = xr.Dataset({"z": ROWS, "mu": mu})
    cases = [
        (lambda: pc.agreement.agreement_path({"a": plain}), ValueError, "at least two"),
        (lambda: summed_impurity(GOOD, CENTRE, weighted="x"), TypeError, "`weighted`", "True or Fa"),
        (lambda: pc.as_allocation_probabilities(SOFT, log="x"), TypeError, "`log`", "True or False; got 'x'"),
        (lambda: pc.as_allocation_probabilities(SOFT, component_dim=3), TypeError, "`component_dim`", "a name; got 3"),
        (lambda: pc.as_partition_draws(GOOD, item_dim=3), TypeError, "`item_dim`", "a name; got 3"),
        (lambda: pc.summarize(plain, "z"), ValueError, "`var_name` must be left out", "PartitionDraws", "'z'"),
        (lambda: plain.isel(draw="a"), TypeError, "`draw`", "0 to 3; got 'a'"),
        (lambda: best.with_names(first="a"), TypeError, "`first`", "an integer; got 'a'"),
        (lambda: pc.posterior_similarity_matrix(GOOD, items=[True]), IndexError, "below 4, or 4 booleans"),
        (lambda: normalized_cut(constraints, n_clusters=9), ValueError, "`n_clusters`", "; got 9"),
        (
            lambda: pc.relabel(posterior, CENTRE, component_dim="obs"),
            ValueError,
            *("`component_dim`", "items; got 'obs', and 'z'", "give `allocations`"),
        ),
    ]
    check_all(call, cases)
