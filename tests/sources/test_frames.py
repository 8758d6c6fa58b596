"""DataFrames of draws: chain and draw in columns or in the index, rows that are no draws, columns that are no items."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import check, check_all

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
    "other names": lambda z: z.rename_axis(["walker", "step"]).reset_index(),
}
DIMS = {"other names": ("walker", "step")}


@pytest.mark.parametrize("way", WAYS)
def test_chain_and_draw_are_no_items(z, way):
    table = WAYS[way](z)
    var_name, names = None, NAMES
    if way == "another variable":
        var_name, names = "z", [1, 2, 3, 4]
        table.columns = ["chain", "draw", *map("z[{}]".format, names), "mu[1]"]
    draws = pc.as_partition_draws(table, var_name, sample_dims=DIMS.get(way, ("chain", "draw")))
    assert_array_equal(draws.labels, pc.as_partition_draws(z.to_numpy()).labels)
    assert_array_equal(draws.samples.chain, np.repeat([1, 2], 8))
    assert_array_equal(draws.samples.draw, np.tile(np.arange(5, 13), 2))
    assert draws.items.coords["item"].values.tolist() == names


def test_items_can_be_called_samples_or_zero(z):
    draws = pc.as_partition_draws(z.rename_axis(columns="sample"))
    assert draws.items.coords["item"].values.tolist() == NAMES
    check(lambda dim: pc.as_partition_draws(z, item_dim=dim), "sample", ValueError, ["`item_dim`", "got 'sample'"])
    assert pc.as_partition_draws(z.rename_axis(columns=0)).items.dim == "0"


def long(z):
    return z.rename_axis(columns="item").stack().rename("z").reset_index()


BAD = [
    (long, "row for each 'item' of each draw", "index=['chain', 'draw'], columns='item', values='z'"),
    (
        lambda z: long(z).query("chain == 1").drop(columns="chain").set_index("draw"),
        *("row for each 'item' of each draw", ".pivot(index=['draw'], columns='item', values='z')"),
    ),
    (lambda z: z.droplevel("chain"), "'draw' of the DataFrame repeats 5", "add a column 'chain'"),
    (lambda z: z.reset_index().set_index("draw", drop=False), "chain and draw only once"),
    (lambda z: z.reset_index().replace({"chain": {2: np.nan}}), "every draw its chain", "'chain'"),
    (lambda z: z.reset_index("draw").rename(columns={"draw": "sweep"}), "'sweep' of", "counts the rows", "'draw'"),
    (lambda z: z.reset_index(drop=True).assign(kept=np.arange(1000, 1160, 10)), "'kept' of", "counts the rows"),
    (
        lambda z: pd.DataFrame({"name": [f"d{k}" for k in range(16)]}).join(z.astype(str).reset_index(drop=True)),
        "'name' of the DataFrame names the rows",
    ),
    (
        lambda z: z.reset_index(drop=True).assign(Ada=5).rename(columns={"Ada": "Unnamed: 0"}),
        *("'Unnamed: 0' of the DataFrame names the rows", "index_col=0"),
    ),
    (lambda z: z.T, "draws as rows and items as columns", "has draws as columns", ".T"),
]


def test_what_cannot_be_is_refused(z):
    check_all(pc.as_partition_draws, [(make(z), ValueError, *parts) for make, *parts in BAD])


def test_items_as_rows_are_noticed(z, tmp_path):
    plain = z.reset_index(drop=True)
    plain.T.to_csv(tmp_path / "turned.csv")
    turned = plain.T, plain.T.reset_index(drop=True), plain.set_axis(range(4), axis=1).T, tmp_path / "turned.csv"
    for one in turned:
        with pytest.warns(UserWarning, match="4 draws of 16 items. .* transpose"):
            pc.as_partition_draws(one)
    with pytest.warns(UserWarning, match="4 draws of 3 items"):
        pc.as_partition_draws(plain[:3].T)
    for word in ("run", "draw ", "Iter."):
        by_item = plain.set_axis([f"{word}{k + 1}" for k in range(16)]).T.reset_index(drop=True).iloc[:, :3]
        with pytest.warns(UserWarning, match="4 draws of 3 items. .* transpose"):
            pc.as_pair_similarity(by_item.mask(by_item == 1), missing="pairwise")
    pc.as_partition_draws(plain[:3])  # the names of the items tell
    pc.as_partition_draws(plain[:3].set_axis(range(4), axis=1).rename_axis("draw"))


def test_few_draws_may_count_by_chance():
    assert pc.as_partition_draws(pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 0, 0, 1]})).n_items == 2
