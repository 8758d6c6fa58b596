"""Bad draws and bad partitions, each with the error that a user reads."""

import numpy as np
import pandas as pd
import xarray as xr

from tests.helpers import GOOD, array


def dataset(values):
    return array(np.asarray(values)[np.newaxis], ("chain", "draw", "obs")).to_dataset()


def with_nan(values=GOOD):
    return np.where(values == 2, np.nan, values)


def other_items():
    chains = [array(GOOD[np.newaxis], ("chain", "draw", "obs"), obs=names) for names in (list("abcd"), list("abce"))]
    return xr.concat(chains, "chain", join="outer")


class MultiTrace:
    """Named as what PyMC returns without InferenceData."""


MISSING = ValueError, ["missing; got", "NaN", "Drop those items or draws"]
NEGATIVE = ValueError, ["negative; got -1", "drop those items or draws"]
PROBABILITY = ValueError, ["integers; got 0.25", "allocation probabilities, which are not labels"]
FEW = ValueError, ["at least one draw of one item; got"]
NO_ARRAY = ValueError, ["`data`", "array of draws x items or chains x draws x items"]
NO_VARIABLE = ValueError, ["`data` has no label variable"]
SAME_ITEMS = ValueError, ["`data`", "every draw the same items"]
OTHER_TYPE = (
    TypeError,
    ["`data`", "DataTree, Dataset, DataArray, array, list, DataFrame, dict or path"],
)
DIMS = ("chain", "draw", "obs")
LONG = array(GOOD[None], DIMS, chain=[0], draw=range(4)).to_dataframe()


def more(refusal, *parts):
    """The refusal, whose message has these parts as well."""
    error, common = refusal
    return error, [*common, *parts]


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
    "not whole": (GOOD + 0.5, ValueError, ["integers; got 0.5"]),
    "infinite": (np.where(GOOD == 2, np.inf, GOOD), ValueError, ["finite integers", "got inf"]),
    "probability": (GOOD / 4, *PROBABILITY),
    "probability in a DataArray": (array(GOOD[np.newaxis] / 4, DIMS), *PROBABILITY),
    "probability in a Dataset": (
        dataset(GOOD / 4),
        *more(NO_VARIABLE, "z ('chain', 'draw', 'obs') float64", "allocation_probabilities(model, idata)"),
    ),
    "no chain": (array(), ValueError, ["`sample_dims`", "'z'", "present: ('draw', 'obs')"]),
    "no item": (array(GOOD, ("chain", "draw")), ValueError, ["`data`", "of items", "('chain', 'draw'); 'z' has ()"]),
    "components": (
        array(GOOD[np.newaxis, np.newaxis], ("chain", "draw", "obs", "component")),
        ValueError,
        ["`data`", "one dimension of items", "'z' has ('obs', 'component')", "select or stack"],
    ),
    "a vector": (GOOD[0], *more(NO_ARRAY, "(4,)")),
    "four dimensions": (GOOD[None, None], *more(NO_ARRAY, "(1, 1, 4, 4)")),
    "draws of different items": ([[0, 1], [0, 1, 2]], *SAME_ITEMS),
    "chains of different items": ([[[0, 1]], [[0, 1, 2]]], *SAME_ITEMS),
    "chains of other items": (other_items(), *MISSING),
    "labelled rows": ([array(GOOD[0], ("obs",))] * 2, TypeError, ["`data`, a list", "plain rows", "xarray.concat"]),
    "no draws": (GOOD[:0], *FEW),
    "no items": (GOOD[:, :0], *FEW),
    "no chains": (GOOD[np.newaxis][:0], *FEW),
    "an empty list": ([], *more(NO_ARRAY, "(0,)")),
    "an empty frame": (pd.DataFrame(), *FEW),
    "an empty Dataset": (xr.Dataset(), *more(NO_VARIABLE, "present: none")),
    "an empty posterior": (xr.DataTree.from_dict({"posterior": xr.Dataset()}), ValueError, ["present: none"]),
    "an empty tree": (xr.DataTree(), ValueError, ["`group`", "got 'posterior', present: none"]),
    "no posterior": (
        xr.DataTree.from_dict({"prior": dataset(GOOD)}),
        ValueError,
        ["`group`", "got 'posterior', present: 'prior'"],
    ),
    "a long table": (LONG, ValueError, ["`data`", "a row for each draw", "('chain', 'draw'); got", "unstack()"]),
    "draws twice": (
        pd.DataFrame(GOOD, columns=["chain", "draw", "a", "b"]),
        ValueError,
        ["`data`", "each draw of a chain once; 'draw' of the DataFrame repeats 0"],
    ),
    "a mixture": (np.array([[0, "a"]], dtype=object), TypeError, ["all integers, all strings or", "got int, str"]),
    "a mixed list": ([[0, "a"]], TypeError, ["all integers, all strings or", "got int, str"]),
    "complex": (GOOD + 0j, TypeError, ["integers, strings or integer-valued floats; got dtype complex128"]),
    "dates": (GOOD.astype("M8[D]"), TypeError, ["integers, strings or integer-valued floats; got dtype dat"]),
    "a set": ({1, 2}, *more(OTHER_TYPE, "got builtins.set")),
    "a generator": ((row for row in GOOD), *more(OTHER_TYPE, "got builtins.generator")),
    "nothing": (None, *more(OTHER_TYPE, "got builtins.NoneType")),
    "a number": (3, *more(OTHER_TYPE, "got builtins.int")),
    "bytes": (b"z.nc", *more(OTHER_TYPE, "got builtins.bytes")),
    "a Series": (pd.Series([0, 1]), *more(OTHER_TYPE, "Series")),
    "a MultiTrace": (MultiTrace(), *more(OTHER_TYPE, "pymc.to_inference_data")),
    "no file": ("nowhere.nc", FileNotFoundError, ["`data`", "a path", "there is no 'nowhere.nc'"]),
}

ALL, VECTOR = "must label all 4 items", "must be a vector of labels, one for each item"
ONE_NAN, OTHER_NAMES = "must not be missing; got 1 NaN", "coordinates of 'obs' differ"
PARTITIONS = {
    "too short": ([0, 1], ValueError, ALL),
    "too long": ([0] * 5, ValueError, ALL),
    "empty": ([], ValueError, VECTOR),
    "NaN": ([0, 0, 1, np.nan], ValueError, ONE_NAN),
    "NaN among strings": (["a", "a", "b", np.nan], ValueError, ONE_NAN),
    "masked": (np.ma.array([0, 0, 1, 1], mask=[0, 0, 0, 1]), ValueError, ONE_NAN),
    "negative": ([0, 0, 1, -1], ValueError, "must not be negative; got -1"),
    "not whole": ([0, 0, 1, 1.5], ValueError, "must be integers; got 1.5"),
    "a set": ({0, 1}, ValueError, f"{VECTOR}; got "),
    "text": ("abcd", ValueError, f"{VECTOR}; got "),
    "other items": (array([0, 0, 1, 1], ("obs",), obs=list("abce")), ValueError, OTHER_NAMES),
    "items twice": (array([0, 0, 1, 1], ("obs",), obs=list("abca")), ValueError, OTHER_NAMES),
}
