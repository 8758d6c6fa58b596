"""Draws in tables of text and in NumPy's files, as R and others leave them."""

import gzip

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import check, source_in

Z = np.array([[2, 1, 2, 3], [1, 1, 3, 2], [1, 1, 1, 1], [3, 3, 1, 1], [2, 2, 2, 1], [4, 1, 4, 1]])
CANONICAL = pc.as_partition_draws(Z).labels
ROWS = [",".join(map(str, row)) for row in Z]
NAMES = ["Ada", "Bea", "Cy", "Dan"]


def table(name, first=None, rows=ROWS):
    """A file of this name, with a first line if there is one."""

    def write(path):
        text = "\n".join([*([] if first is None else [first]), *rows]) + "\n"
        if name.endswith(".gz"):
            (path / name).write_bytes(gzip.compress(text.encode()))
        else:
            (path / name).write_text(text, encoding="utf-8")
        return path / name

    return write


def with_row_names(rows, by=","):
    return [f'"{k + 1}"{by}{row}' for k, row in enumerate(rows)]


def joined(by):
    return [row.replace(",", by) for row in ROWS]


TABLES = {
    "no names": (table("z.csv"), None),
    "names": (table("z.csv", "Ada,Bea,Cy,Dan"), NAMES),
    "packed": (table("z.csv.gz", "Ada,Bea,Cy,Dan"), NAMES),
    "upper case": (table("Z.CSV", "Ada,Bea,Cy,Dan"), NAMES),
    "R's write.csv": (table("z.csv", '"","Ada","Bea","Cy","Dan"', with_row_names(ROWS)), NAMES),
    "R's write.csv of numbered items": (table("z.csv", '"","1","2","3","4"', with_row_names(ROWS)), list("1234")),
    "R's write.csv without row names": (table("z.csv", '"V1","V2","V3","V4"'), ["V1", "V2", "V3", "V4"]),
    "R's write.csv2": (table("z.csv", '"";"Ada";"Bea";"Cy";"Dan"', with_row_names(joined(";"), ";")), NAMES),
    "R's write.table": (table("z.txt", '"Ada" "Bea" "Cy" "Dan"', with_row_names(joined(" "), " ")), NAMES),
    "R's write.table without names of columns": (table("z.txt", None, with_row_names(joined(" "), " ")), None),
    "names of rows alone": (table("z.csv", None, [f"draw {k},{r}" for k, r in enumerate(ROWS)]), None),
    "tabs": (table("z.tsv", "Ada\tBea\tCy\tDan", joined("\t")), NAMES),
    "NumPy's savetxt": (table("z.txt", None, [" ".join(f"{v:.18e}" for v in row) for row in Z]), None),
    "pandas": (table("z.csv", ",Ada,Bea,Cy,Dan", [f"{k},{row}" for k, row in enumerate(ROWS)]), NAMES),
    "quoted labels": (table("z.csv", "Ada,Bea,Cy,Dan", ['"' + r.replace(",", '","') + '"' for r in ROWS]), NAMES),
    "words": (table("z.csv", "Ada,Bea,Cy,Dan", ["".join("abcd,"["1234,".index(c)] for c in r) for r in ROWS]), NAMES),
    "Windows": (table("z.csv", "\ufeffAda,Bea,Cy,Dan\r", [f"{row}\r" for row in ROWS]), NAMES),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(tmp_path, kind):
    write, names = TABLES[kind]
    path = write(tmp_path)
    for given in (path, str(path)):
        draws = pc.as_partition_draws(given, item_dim="person")
        assert_array_equal(draws.labels, CANONICAL)
        assert draws.items.dim == "person"
        assert draws.items.coords["person"].values.tolist() == (names or [0, 1, 2, 3])
        assert_array_equal(draws.samples.chain, 0)
        assert_array_equal(draws.samples.draw, np.arange(6))


AT = [(1, 5, 1), (1, 6, 2), (1, 7, 3), (2, 5, 4), (2, 6, 5), (2, 7, 6)]


@pytest.mark.parametrize("columns", ["chain,draw", ".chain,.iteration,.draw"])
def test_columns_say_the_chain(tmp_path, columns):
    n_columns = len(columns.split(","))
    rows = [f"{','.join(map(str, at[:n_columns]))},{row}" for at, row in zip(AT, ROWS, strict=True)]
    draws = pc.as_partition_draws(table("z.csv", f"{columns},Ada,Bea,Cy,Dan", rows)(tmp_path))
    assert_array_equal(draws.labels, CANONICAL)
    assert draws.samples.chain.tolist() == [1, 1, 1, 2, 2, 2] and draws.samples.draw.tolist() == [5, 6, 7, 5, 6, 7]
    assert draws.items.coords["item"].values.tolist() == NAMES


def test_chains_alone_count_their_draws(tmp_path):
    rows = [f"{row},{chain}" for row, chain in zip(ROWS, "aababb", strict=True)]
    draws = pc.as_partition_draws(table("z.csv", "Ada,Bea,Cy,Dan,Chain", rows)(tmp_path))
    assert draws.samples.chain.tolist() == list("aababb") and draws.samples.draw.tolist() == [0, 1, 0, 2, 1, 2]
    assert [rows.size for rows in draws.samples.chains] == [3, 3]


def test_names_of_rows_may_repeat_in_other_chains(tmp_path):
    """What to_csv makes of chains that pandas.concat joined."""
    chains = [pd.DataFrame(Z[at], columns=NAMES).assign(chain=k) for k, at in enumerate((slice(3), slice(3, 6)))]
    pd.concat(chains).to_csv(tmp_path / "z.csv")
    draws = pc.as_partition_draws(tmp_path / "z.csv")
    assert_array_equal(draws.labels, CANONICAL)
    assert draws.samples.chain.tolist() == [0, 0, 0, 1, 1, 1]


def test_one_variable_of_many(tmp_path):
    """What write.csv makes of R's draws_df: labels beside parameters."""
    names, path = [f"z[{k}]" for k in range(1, 5)], tmp_path / "z.csv"
    frame = pd.DataFrame({"mu[1]": np.linspace(0, 1, 6), "alpha": 0.3, ".chain": 1})
    frame[names] = Z
    frame.to_csv(path)
    for draws in (pc.as_partition_draws(path, "z"), source_in(path, "z").source):
        assert_array_equal(draws.labels, CANONICAL)
        assert draws.items.coords["item"].values.tolist() == [1, 2, 3, 4] and set(draws.samples.chain) == {1}
    assert_array_equal(pc.as_partition_draws(path).labels, CANONICAL)  # mu is no label
    frame.assign(**{"k[1]": 1}).to_csv(tmp_path / "two.csv")
    check(pc.as_partition_draws, tmp_path / "two.csv", ValueError, ["`var_name`", "'z', 'k'"])
    check(lambda path: pc.as_partition_draws(path, "y"), path, ValueError, ["got 'y', present: 'mu', 'z'"])


def test_a_file_for_each_chain(tmp_path):
    first = table("a.csv", "Ada,Bea,Cy,Dan", ROWS[:2])(tmp_path)
    second = table("b.csv", "Ada,Bea,Cy,Dan", ROWS[2:])(tmp_path)
    draws = pc.as_partition_draws([first, str(second)])
    assert_array_equal(draws.labels, CANONICAL)
    assert draws.samples.chain.tolist() == [0, 0, 1, 1, 1, 1] and draws.samples.draw.tolist() == [0, 1, 0, 1, 2, 3]
    np.save(tmp_path / "a.npy", Z[:3])
    np.save(tmp_path / "b.npy", Z[3:])
    assert_array_equal(pc.as_partition_draws([tmp_path / "a.npy", tmp_path / "b.npy"]).labels, CANONICAL)
    both = [first, tmp_path / "a.npy"]
    check(pc.as_partition_draws, both, ValueError, ["the same items", "'a.npy' has others than 'a.csv'"])
    chains = table("c.csv", "chain,Ada,Bea,Cy,Dan", [f"{k},{row}" for k, row in enumerate(ROWS)])(tmp_path)
    check(pc.as_partition_draws, [first, chains], ValueError, ["a chain each", "'c.csv' has several"])
    np.save(tmp_path / "c.npy", Z[np.newaxis])
    pair = [tmp_path / "a.npy", tmp_path / "c.npy"]
    check(pc.as_partition_draws, pair, ValueError, ["of draws x items, or", "'c.npy' has shape (1, 6, 4)"])
    twice = [first, tmp_path / "b.npy", tmp_path / ".." / tmp_path.name / "a.csv"]
    check(pc.as_partition_draws, twice, ValueError, ["each file once", "a.csv' twice"])


def test_numpy_files(tmp_path):
    np.save(tmp_path / "z.npy", Z.reshape(2, 3, 4))
    draws = pc.as_partition_draws(tmp_path / "z.npy")
    assert_array_equal(draws.labels, CANONICAL)
    assert draws.samples.chain.tolist() == [0, 0, 0, 1, 1, 1] and "item" not in draws.items.coords
    np.savez(tmp_path / "one.npz", z=Z)
    assert_array_equal(pc.as_partition_draws(tmp_path / "one.npz").labels, CANONICAL)
    np.savez(tmp_path / "two.npz", z=Z, mu=np.ones(6))
    assert_array_equal(pc.as_partition_draws(tmp_path / "two.npz", "z").labels, CANONICAL)
    check(pc.as_partition_draws, tmp_path / "two.npz", ValueError, ["`var_name` must name an array", "'z', 'mu'"])
    np.savez(tmp_path / "layers.npz", z=np.stack([Z, Z[:, ::-1]], axis=1), mu=np.ones(6))
    assert_array_equal(pc.as_layers(tmp_path / "layers.npz", "z")[0].labels, CANONICAL)
    p = np.random.default_rng(1).dirichlet(np.ones(2), (2, 9, 4))
    np.save(tmp_path / "p.npy", p)
    wanted = pc.as_allocation_probabilities(p).probabilities
    for soft in (pc.as_allocation_probabilities(tmp_path / "p.npy"), source_in(tmp_path / "p.npy").source):
        assert_array_equal(soft.probabilities, wanted)


def raw(name, content):
    """A file of this name and content."""
    return lambda path: (path / name).write_bytes(content) and path / name


long_rows = [f"{k // 3},{'abc'[k % 3]},{k % 2}" for k in range(24)]
sweeps = [f"{k // 8},{k % 8},1,2" for k in range(16)]
BAD = [
    (table("z.csv", None, []), "cannot be read as one", "'z.csv'"),
    (table("z.csv", "a,b,c", []), "at least one draw"),
    (table("z.csv", None, ["1,2", "1,2,3"]), "cannot be read as one", "line 2"),
    (table("z.csv", None, ["1,1", "1,NA"]), "missing; got 1", "NaN"),
    (table("z.csv", None, ["0.5,0.5", "0.1,0.9"]), "must be integers", "not labels"),
    (table("z.csv", "0,1,2,3"), "cannot tell names from labels", "0 to 3", '"item1"'),
    (table("z.csv", "1,2,3,4"), "cannot tell names from labels", "1 to 4"),
    (table("z.csv", None, ["a,b,a", "b,b,a"]), "cannot tell names from labels", "'a' to 'a.1'"),
    (table("z.csv", "X,a,b", [f"{k},1,2" for k in range(1, 9)]), "'X' of", "counts the rows", "'draw'"),
    (table("z.csv", "chain,sweep,a,b", sweeps), "'sweep' of 'z.csv' counts the rows"),
    (table("z.csv", None, [f"d{k},a,b,{'ab'[k % 2]}" for k in range(8)]), "'d0' of 'z.csv' names the rows"),
    (table("z.csv", None, ["name,5,7,9", "d1,1,1,1", "d2,1,1,2"]), "cannot tell names from labels", "5 to 9"),
    (
        table("z.csv", "draw,item,z", long_rows),
        *("'z.csv' has a row for each 'item' of each draw", ".pivot(index=['draw'], columns='item', values='z')"),
    ),
    (table("z.csv", "draw,a,b", ["1,1,1", "2,1,2", "1,1,2"]), "'draw' of", "repeats 1", "'chain'"),
    (table("z.csv", "chain,a,b", ["1,1,1", ",1,2"]), "every draw its chain", "'chain'"),
    (
        table("z.csv", '"","b","c"', ["1,1,2", "2,1,1", "1,2,2"]),
        *("cannot tell names of rows from labels", "first column of 'z.csv'", "repeats 1", "give it a name"),
    ),
    (table("z.csv", None, ["Ann,1,1", "Bob,1,2", "Ann,2,2"]), "names of rows", "repeats Ann"),
    (table("z.txt", '"b" "c"', ['"x" 1 2', '"y" 1 1', '"x" 2 2']), "names of rows", "repeats x"),
    (raw("z.csv", b"\xff\xfe\x00,1\n1,2\n"), "cannot be read"),
    (raw("z.npy", b"1,2\n"), "NumPy file", "'z.npy'"),
    (raw("z.csv.gz", b"1,2\n"), "cannot be read"),
]


def test_bad_files(tmp_path):
    for write, *parts in BAD:
        check(pc.as_partition_draws, write(tmp_path), ValueError, parts)
    np.save(tmp_path / "z.npy", np.array([[{}]], dtype=object), allow_pickle=True)  # objects are not run
    check(pc.as_partition_draws, tmp_path / "z.npy", ValueError, ["NumPy file of numbers", "'z.npy'"])
    for name in ("none.csv", "none.npy", "none.tsv.gz"):
        check(pc.as_partition_draws, tmp_path / name, FileNotFoundError, ["`data`", "there is no", name])
