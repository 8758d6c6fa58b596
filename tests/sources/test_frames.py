"""DataFrames of draws: chain and draw in columns or in the index, rows that are no draws, columns that are no items."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import check

NAMES = ["Ada", "Bea", "Cy", "Dan"]


@pytest.fixture
def z(rng):
    """Two chains of 8 draws of four items."""
    index = pd.MultiIndex.from_product([[1, 2], range(5, 13)], names=["chain", "draw"])
    return pd.DataFrame(rng.integers(3, size=(16, 4)), index, NAMES)


WAYS = {
    "index": lambda z: z,
    "columns": lambda z: z.reset_index(),
    "one of each": lambda z: z.reset_index("chain"),
    "names of R's posterior": lambda z: z.reset_index().rename(columns={"chain": ".chain", "draw": ".iteration"}),
    "iter": lambda z: z.reset_index().rename(columns={"chain": "Chain", "draw": "iter"}),
    "another variable": lambda z: z.reset_index().assign(**{"mu[1]": 0.5}),
}


@pytest.mark.parametrize("way", WAYS)
def test_chain_and_draw_are_no_items(z, way):
    table = WAYS[way](z)
    var_name = None
    if way == "another variable":
        table.columns = ["chain", "draw", *(f"z[{k}]" for k in range(1, 5)), "mu[1]"]
        var_name = "z"
    draws = pc.as_partition_draws(table, var_name)
    assert_array_equal(draws.labels, pc.as_partition_draws(z.to_numpy()).labels)
    assert_array_equal(draws.samples.chain, np.repeat([1, 2], 8))
    assert_array_equal(draws.samples.draw, np.tile(np.arange(5, 13), 2))
    assert draws.items.coords["item"].values.tolist() == ([f"z[{k}]" for k in range(1, 5)] if var_name else NAMES)


def test_chain_and_draw_of_other_names(z):
    draws = pc.as_partition_draws(z.rename_axis(["walker", "step"]).reset_index(), sample_dims=("walker", "step"))
    assert draws.n_items == 4
    assert_array_equal(draws.samples.chain, np.repeat([1, 2], 8))
    assert_array_equal(draws.samples.draw, np.tile(np.arange(5, 13), 2))


def long(z):
    return z.rename_axis(columns="item").stack().rename("z").reset_index()


BAD = {
    "a long table": (long, ["row for each 'item' of each draw", "index=['chain', 'draw'], columns='item', values='z'"]),
    "a long table by draw": (
        lambda z: long(z).query("chain == 1").drop(columns="chain").set_index("draw"),
        ["row for each 'item' of each draw", ".pivot(index=['draw'], columns='item', values='z')"],
    ),
    "draws twice": (lambda z: z.droplevel("chain"), ["'draw' of the DataFrame repeats 5", "add a column 'chain'"]),
    "chain and draw twice": (
        lambda z: z.reset_index().set_index("draw", drop=False),
        ["give chain and draw only once"],
    ),
    "no chain": (lambda z: z.reset_index().replace({"chain": {2: np.nan}}), ["every draw its chain", "'chain'"]),
    "a counter in each chain": (
        lambda z: z.reset_index("draw").rename(columns={"draw": "sweep"}),
        ["'sweep' of the DataFrame counts the rows", "'draw'"],
    ),
    "a counter after thinning": (
        lambda z: z.reset_index(drop=True).assign(kept=np.arange(1000, 1160, 10)),
        ["'kept' of the DataFrame counts the rows"],
    ),
    "names of rows": (
        lambda z: pd.DataFrame({"name": [f"d{k}" for k in range(16)]}).join(z.astype(str).reset_index(drop=True)),
        ["'name' of the DataFrame names the rows"],
    ),
    "names of rows of a file": (
        lambda z: z.reset_index(drop=True).assign(Ada=5).rename(columns={"Ada": "Unnamed: 0"}),
        ["'Unnamed: 0' of the DataFrame names the rows", "index_col=0"],
    ),
    "items as rows": (lambda z: z.T, ["draws as rows and items as columns", "has draws as columns", ".T"]),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_is_refused(z, bad):
    make, parts = BAD[bad]
    check(pc.as_partition_draws, make(z), ValueError, parts)


def test_items_as_rows_are_noticed(z, tmp_path):
    plain = z.reset_index(drop=True)
    plain.T.to_csv(tmp_path / "turned.csv")
    for turned in (
        plain.T,
        plain.T.reset_index(drop=True),
        plain.set_axis(range(4), axis=1).T,
        tmp_path / "turned.csv",
    ):
        with pytest.warns(UserWarning, match="taken as 4 draws of 16 items. If its rows are items, take its transpose"):
            pc.as_partition_draws(turned)
    with pytest.warns(UserWarning, match="taken as 4 draws of 3 items"):
        pc.as_partition_draws(plain[:3].T)
    pc.as_partition_draws(plain[:3])  # the names of the items tell
    pc.as_partition_draws(plain[:3].set_axis(range(4), axis=1).rename_axis("draw"))


def test_few_draws_may_count_by_chance():
    assert pc.as_partition_draws(pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 0, 0, 1]})).n_items == 2
