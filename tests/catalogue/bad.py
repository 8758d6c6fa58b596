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

PARTITIONS = {
    "too short": ([0, 1], ValueError, "must label all 4 items"),
    "too long": ([0] * 5, ValueError, "must label all 4 items"),
    "empty": ([], ValueError, "must be a vector of labels, one for each item"),
    "NaN": ([0, 0, 1, np.nan], ValueError, "must not be missing; got 1 NaN"),
    "NaN among strings": (["a", "a", "b", np.nan], ValueError, "must not be missing; got 1 NaN"),
    "masked": (np.ma.array([0, 0, 1, 1], mask=[0, 0, 0, 1]), ValueError, "must not be missing; got 1 NaN"),
    "negative": ([0, 0, 1, -1], ValueError, "must not be negative; got -1"),
    "not whole": ([0, 0, 1, 1.5], ValueError, "must be integers; got 1.5"),
    "a set": ({0, 1}, ValueError, "must be a vector of labels, one for each item; got "),
    "text": ("abcd", ValueError, "must be a vector of labels, one for each item; got "),
    "other items": (array([0, 0, 1, 1], ("obs",), obs=list("abce")), ValueError, "coordinates of 'obs' differ"),
    "items twice": (array([0, 0, 1, 1], ("obs",), obs=list("abca")), ValueError, "coordinates of 'obs' differ"),
}
