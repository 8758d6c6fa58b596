"""Tables of scored pairs and sparse arrays: what is taken, in which order, and what is refused."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa

import posterior_consensus as pc

IDS = ["unique_id_l", "unique_id_r"]
SETS = ["source_dataset_l", "source_dataset_r"]
SCORED = pc.results.ScoredPairs


def table(*rows, columns=(*IDS, "match_probability")):
    return pd.DataFrame(list(rows), columns=list(columns))


TABLE = table(("c", "a", 0.9), ("a", "b", 0.25), ("b", "d", 0.0))
DENSE = np.array([[1, 0.25, 0.9, 0], [0.25, 1, 0, 0], [0.9, 0, 1, 0], [0, 0, 0, 1]])
OF_SETS = table(
    *[("crm", 1, "web", 1, 0.9), ("web", 1, "web", 2, 0.5), ("crm", 1, "web", 2, 0.1)],
    columns=(SETS[0], IDS[0], SETS[1], IDS[1], "match_probability"),
)


def names(pairs):
    return pairs.items.coords["item"].to_index().tolist()


def rows(pairs):
    """The pairs by name."""
    index = names(pairs)
    return [(index[i], index[j], value) for i, j, value in zip(*(one.tolist() for one in pairs.pairs), strict=True)]


class Polars:
    """A table whose library is not pandas, as polars has it."""

    def __init__(self, chosen=TABLE):
        self.columns, self.chosen = list(chosen.columns), chosen

    def select(self, columns):
        return Polars(TABLE[columns])

    def to_pandas(self):
        return self.chosen


class SplinkDataFrame:
    """What splink's predict returns, as far as it is read."""

    def as_pandas_dataframe(self, limit=None):
        return TABLE.assign(match_key=0).iloc[:limit]


def dedupe(kind):
    scores = np.zeros(3, np.dtype([("pairs", kind, 2), ("score", "f4")]))
    scores["pairs"], scores["score"] = TABLE[IDS].to_numpy(str), TABLE["match_probability"]
    return scores


def forms(path):
    """The same pairs in every form."""
    TABLE.assign(other=1).to_parquet(path / "pairs.parquet")
    TABLE.to_csv(path / "pairs.csv")
    TABLE.to_csv(path / "pairs.tsv.gz", sep="\t", index=False)
    named = TABLE.rename(columns=dict(zip(TABLE.columns, "xyz", strict=True)))
    by_name = partial(pc.as_pair_similarity, left="x", right="y", probability="z")
    return {
        "str": TABLE,
        **{kind: TABLE.astype(dict.fromkeys(IDS, kind)) for kind in ("object", "category", "string")},
        "Arrow's": TABLE.astype(dict.fromkeys(IDS, pd.ArrowDtype(pa.string()))),
        "one of each": TABLE.astype({IDS[0]: "category", IDS[1]: object}),
        "with an index": TABLE.set_axis([7, 7, 8]),
        "pyarrow": pa.Table.from_pandas(TABLE),
        "polars": Polars(),
        "splink": SplinkDataFrame(),
        "Parquet": path / "pairs.parquet",
        "CSV": str(path / "pairs.csv"),
        "TSV": path / "pairs.tsv.gz",
        "both ways": pd.concat([TABLE, TABLE.set_axis([IDS[1], IDS[0], "match_probability"], axis=1)]),
        "other order": TABLE.iloc[::-1],
        "named": by_name(named),
    }


def test_a_table_in_every_form(tmp_path):
    for kind, given in forms(tmp_path).items():
        pairs = pc.as_pair_similarity(given)
        assert isinstance(pairs, SCORED) and names(pairs) == list("abcd"), kind
        assert rows(pairs) == [("a", "b", 0.25), ("a", "c", 0.9), ("b", "d", 0.0)], kind
        np.testing.assert_array_equal(pairs.similarity(), DENSE, kind)
        assert pairs.scored.has_sorted_indices and pairs.scored.indices.dtype == np.int32
    pairs = pc.as_pair_similarity(dedupe("U8"))
    np.testing.assert_array_equal(pairs.similarity(), DENSE.astype(np.float32))
    assert names(pairs) == list("abcd")
