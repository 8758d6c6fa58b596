"""Bad draws and mistyped arguments end in an error that says what is wrong; small draws are no bad draws."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.helpers import GOOD, ROWS, array, check


def dataset(values):
    return array(np.asarray(values)[np.newaxis], ("chain", "draw", "obs")).to_dataset()


def with_nan(values=GOOD):
    return np.where(values == 2, np.nan, values)


def other_items():
    chains = [array(GOOD[np.newaxis], ("chain", "draw", "obs"), obs=names) for names in (list("abcd"), list("abce"))]
    return xr.concat(chains, "chain", join="outer")


class MultiTrace:
    """Named as what PyMC returns without InferenceData."""


MISSING = (ValueError, ["must not be missing; got", "NaN", "Drop those items or draws"])
NEGATIVE = (ValueError, ["must not be negative; got -1", "drop those items or draws"])
PROBABILITY = (ValueError, ["must be integers; got 0.25", "allocation probabilities, which are not labels"])
FEW = (ValueError, ["must hold at least one draw of one item; got"])
OTHER_TYPE = (
    TypeError,
    ["`data` must be an InferenceData, DataTree, Dataset, DataArray, array, list, DataFrame, dict or path"],
)

BAD = {
    "NaN": (with_nan(), *MISSING),
    "NaN in a Dataset": (dataset(with_nan()), *MISSING),
    "NaN among strings": ([["a", "b", np.nan, "a"], ["a", "b", "a", "a"]], *MISSING),
    "None": ([[0, 1, None, 0], [0, 0, 0, 1]], *MISSING),
    "pandas NA": (pd.DataFrame(GOOD).astype("Int64").where(GOOD != 2), *MISSING),
    "masked": (np.ma.masked_equal(GOOD, 2), *MISSING),
    "negative": (GOOD - 1, *NEGATIVE),
    "negative floats": (GOOD - 1.0, *NEGATIVE),
    "negative in a Dataset": (dataset(GOOD - 1), *NEGATIVE),
    "negative floats in a Dataset": (dataset(GOOD - 1.0), *NEGATIVE),
    "not whole": (GOOD + 0.5, ValueError, ["must be integers; got 0.5"]),
    "infinite": (np.where(GOOD == 2, np.inf, GOOD), ValueError, ["must be finite integers", "got inf"]),
    "probability": (GOOD / 4, *PROBABILITY),
    "probability in a DataArray": (array(GOOD[np.newaxis] / 4, ("chain", "draw", "obs")), *PROBABILITY),
    "probability in a Dataset": (
        dataset(GOOD / 4),
        ValueError,
        [
            "`data` has no label variable",
            "z ('chain', 'draw', 'obs') float64",
            "allocation_probabilities(model, idata)",
        ],
    ),
    "no chain": (array(), ValueError, ["`sample_dims` must be dimensions of 'z'", "present: ('draw', 'obs')"]),
    "no item": (
        array(GOOD, ("chain", "draw")),
        ValueError,
        ["`data` must have one dimension of items in addition to ('chain', 'draw'); 'z' has ()"],
    ),
    "components": (
        array(GOOD[np.newaxis, np.newaxis], ("chain", "draw", "obs", "component")),
        ValueError,
        ["`data` must have one dimension of items", "'z' has ('obs', 'component'): select or stack the others"],
    ),
    "a vector": (GOOD[0], ValueError, ["`data` must be an array of draws x items or chains x draws x items", "(4,)"]),
    "four dimensions": (GOOD[None, None], ValueError, ["`data` must be an array of draws x items", "(1, 1, 4, 4)"]),
    "draws of different items": ([[0, 1], [0, 1, 2]], ValueError, ["`data` must give every draw the same items"]),
    "chains of different items": ([[[0, 1]], [[0, 1, 2]]], ValueError, ["`data` must give every draw the same items"]),
    "chains of other items": (other_items(), *MISSING),
    "labelled rows": (
        [array(GOOD[0], ("obs",))] * 2,
        TypeError,
        ["`data`, a list, must have plain rows", "xarray.concat"],
    ),
    "no draws": (GOOD[:0], *FEW),
    "no items": (GOOD[:, :0], *FEW),
    "no chains": (GOOD[np.newaxis][:0], *FEW),
    "an empty list": ([], ValueError, ["`data` must be an array of draws x items", "got shape (0,)"]),
    "an empty frame": (pd.DataFrame(), *FEW),
    "an empty Dataset": (xr.Dataset(), ValueError, ["`data` has no label variable", "present: none"]),
    "an empty posterior": (xr.DataTree.from_dict({"posterior": xr.Dataset()}), ValueError, ["present: none"]),
    "an empty tree": (xr.DataTree(), ValueError, ["`group` must name a group", "got 'posterior', present: none"]),
    "no posterior": (
        xr.DataTree.from_dict({"prior": dataset(GOOD)}),
        ValueError,
        ["`group` must name a group of the data; got 'posterior', present: 'prior'"],
    ),
    "a long table": (
        array(GOOD[None], ("chain", "draw", "obs"), chain=[0], draw=range(4)).to_dataframe(),
        ValueError,
        ["`data` must have a row for each draw, with the index levels ('chain', 'draw'); got", "unstack()"],
    ),
    "draws twice": (
        pd.DataFrame(GOOD, columns=["chain", "draw", "a", "b"]),
        ValueError,
        ["`data` must have each draw of a chain once; 'draw' of the DataFrame repeats 0"],
    ),
    "a mixture": (np.array([[0, "a"]], dtype=object), TypeError, ["all integers, all strings or", "got int, str"]),
    "a mixed list": ([[0, "a"]], TypeError, ["all integers, all strings or all whole-number floats; got int, str"]),
    "complex": (GOOD + 0j, TypeError, ["must be integers, strings or whole-number floats; got dtype complex128"]),
    "dates": (
        GOOD.astype("M8[D]"),
        TypeError,
        ["must be integers, strings or whole-number floats; got dtype dat"],
    ),
    "a set": ({1, 2}, OTHER_TYPE[0], [*OTHER_TYPE[1], "got builtins.set"]),
    "a generator": ((row for row in GOOD), OTHER_TYPE[0], [*OTHER_TYPE[1], "got builtins.generator"]),
    "nothing": (None, OTHER_TYPE[0], [*OTHER_TYPE[1], "got builtins.NoneType"]),
    "a number": (3, OTHER_TYPE[0], [*OTHER_TYPE[1], "got builtins.int"]),
    "bytes": (b"z.nc", OTHER_TYPE[0], [*OTHER_TYPE[1], "got builtins.bytes"]),
    "a Series": (pd.Series([0, 1]), OTHER_TYPE[0], [*OTHER_TYPE[1], "Series"]),
    "a MultiTrace": (MultiTrace(), OTHER_TYPE[0], [*OTHER_TYPE[1], "Convert it with pymc.to_inference_data first"]),
    "no file": ("nowhere.nc", FileNotFoundError, ["`data` must be a path", "there is no 'nowhere.nc'"]),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_draws(bad):
    check(pc.as_partition_draws, *BAD[bad])


WEIGHTS = {
    "negative": ([1, 1, 1, -1], ValueError, ["`weights` must be finite and not negative; got -1.0"]),
    "zero": ([0, 0, 0, 0], ValueError, ["`weights` must not all be 0"]),
    "NaN": ([1, 1, 1, np.nan], ValueError, ["`weights` must be finite and not negative; got nan"]),
    "None": ([1, 1, 1, None], ValueError, ["`weights` must be finite and not negative; got nan"]),
    "infinite": ([1, 1, 1, np.inf], ValueError, ["`weights` must be finite and not negative; got inf"]),
    "masked": (np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1]), ValueError, ["`weights` must not be missing; got 1"]),
    "too few": ([1, 1], ValueError, ["`weights` must be one number per draw", "(4,) or (1, 4); got shape (2,)"]),
    "one number": (1.0, ValueError, ["`weights` must be one number per draw", "got shape ()"]),
    "a row per item": (np.ones((4, 4)), ValueError, ["`weights` must be one number per draw", "got shape (4, 4)"]),
    "strings": (list("1234"), TypeError, ["`weights` must be numbers; got list"]),
    "text": ("uniform", TypeError, ["`weights` must be numbers; got str"]),
    "complex": (np.ones(4) + 1j, TypeError, ["`weights` must be numbers; got ndarray of complex128"]),
    "dates": (np.zeros(4, "M8[D]"), TypeError, ["`weights` must be numbers; got ndarray of datetime64"]),
    "other dimensions": (
        array(np.ones((4, 1)), ("draw", "obs")),
        ValueError,
        ["`weights` must have the dimensions ('chain', 'draw'); got ('draw', 'obs')"],
    ),
    "other draws": (
        array(np.ones((1, 4)), ("chain", "draw"), draw=[1, 2, 3, 4]),
        ValueError,
        ["`weights` must be those of the same draws; the coordinates of 'draw' differ"],
    ),
}


@pytest.mark.parametrize("bad", WEIGHTS)
def test_bad_weights(bad):
    weights, error, parts = WEIGHTS[bad]
    check(lambda data: pc.as_partition_draws(data, weights=weights), ROWS, error, parts)


SMALL = {
    "one draw": GOOD[:1],
    "one draw of one item": GOOD[:1, :1],
    "one item": GOOD[:, :1],
    "equal draws": GOOD[[0, 0, 0, 0, 0]],
    "all together": np.zeros((6, 4), int),
    "all apart": np.tile(np.arange(4), (6, 1)),
}
small = pytest.mark.parametrize("draws", SMALL.values(), ids=SMALL)


@small
@pytest.mark.parametrize("method", pc.METHODS)
def test_consensus_of_few_draws_is_the_draw(draws, method):
    best = pc.consensus_partition(draws, loss="binder", method=method, random_seed=1)
    if method in ("greedy", "best_draw", "enumeration", "exact"):
        assert best.labels.values.tolist() == pc.as_partition_draws(draws).labels[0].tolist()
        assert best.expected_loss == pytest.approx(0, abs=1e-12)
    assert np.isfinite(best.expected_loss)
    assert np.isnan(best.mcse) if len(draws) < 4 else np.isfinite(best.mcse)
    assert f"{best.n_clusters} cluster" in repr(best)


@small
@pytest.mark.parametrize("weight", [None, 2.0])
def test_summaries_of_few_draws(draws, weight):
    if weight is not None:
        draws = pc.as_partition_draws(draws, weights=np.linspace(1, weight, len(draws)))
    labels = pc.as_partition_draws(draws).labels
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_allclose(psm, labels[0][:, np.newaxis] == labels[0], rtol=0, atol=1e-15)
    ball = pc.credible_ball(draws, labels[0])
    assert (ball.radius, ball.coverage) == (0, pytest.approx(1))
    for bound in (ball.horizontal, ball.upper_vertical, ball.lower_vertical):
        assert bound.values.tolist() == [labels[0].tolist()]
    items = pc.item_uncertainty(draws, labels[0])
    np.testing.assert_array_equal(np.isnan(items.probability), np.bincount(labels[0])[labels[0]] == 1)
    np.testing.assert_allclose(items.probability.dropna(items.probability.dims[0]), 1)
    for order in ("jacobi", "gauss-seidel"):
        refined = pc.consensus.refine_partition(draws, labels[0], order=order).values
        if items.probability.notnull().all() or len(refined) == 1:  # an item on its own joins the nearest, if any
            assert refined.tolist() == labels[0].tolist()
        assert refined.shape == labels[0].shape
    assert pc.expected_loss(draws, labels[0])["expected_loss"] == pytest.approx(0, abs=1e-12)
    assert len(pc.plot_psm(draws, labels[0]).images) == 1
    assert [bar.get_height() for bar in pc.plot_n_clusters(draws).patches] == [pytest.approx(1)]
    assert len(pc.plot_credible_ball(ball).images) == 4
