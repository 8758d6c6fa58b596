"""What a consensus partition of scored pairs says of each record."""

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.record import ConsensusPartition, by_record
from tests.catalogue.results import assert_equal
from tests.helpers import scored_pairs


def partition_of(source, labels, **more):
    labels = source.as_labels(labels)
    values = {"expected_loss": 0.25, "mcse": np.nan, "ess": np.nan, "loss": pc.binder(tau=0.4), "method": "greedy"}
    records = by_record(source, labels)
    return ConsensusPartition(source.items.array(labels, "labels"), **values, n_draws=None, records=records, **more)


def random_pairs(rng, n):
    pairs = {(i, j): round(rng.random(), 1) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.4}
    return scored_pairs(n, pairs, unscored=rng.choice([0.0, 0.25])), pairs


def test_records_as_defined():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        source, pairs = random_pairs(rng, n)
        labels = rng.integers(3, size=n)
        table = partition_of(source, labels).to_dataframe()
        of = pairs | {(j, i): value for (i, j), value in pairs.items()}
        for i in range(n):
            own = [of.get((i, j), source.unscored) for j in range(n) if labels[j] == labels[i] and j != i]
            outside = [(-of[i, j], j) for j in range(n) if labels[j] != labels[i] and (i, j) in of]
            row = {name: table[name].iloc[i] for name in table}
            assert row["size"] == len(own) + 1
            assert row["similarity"] == pytest.approx(np.mean(own) if own else np.nan, nan_ok=True)
            if outside:
                assert (row["outside_probability"], row["outside"]) == (-min(outside)[0], min(outside)[1])
            else:
                assert pd.isna(row["outside"]) and pd.isna(row["outside_probability"])


def test_table_of_names():
    source = scored_pairs(4, {(0, 1): 0.9, (1, 2): 0.3, (0, 2): 0.3}, names=["a", "b", "c", "d"])
    best = partition_of(source, [0, 0, 1, 2]).with_names(["x", ("y", 1), 7])
    table = best.to_dataframe()
    assert table["unique_id"].tolist() == ["a", "b", "c", "d"] and table.columns[0] == "cluster_id"
    assert table["cluster_id"].tolist() == ["x", "x", ("y", 1), 7]
    assert table["outside"].tolist()[:3] == ["c", "c", "a"] and pd.isna(table["outside"][3])
    assert r"7 & d & 1 & -- & -- & --" in best.to_latex()
    assert best.members(1) == ["c"] and best.clusters["x"] == ["a", "b"]


def test_columns_of_records_are_those_of_splink():
    rows = [("crm", 1, "web", 1, 0.9), ("web", 1, "crm", 2, 0.4)]
    ends = ["source_dataset_l", "unique_id_l", "source_dataset_r", "unique_id_r"]
    linked = pd.DataFrame(rows, columns=[*ends, "match_probability"])
    named = linked.drop(columns=["source_dataset_l", "source_dataset_r"]).assign(
        unique_id_r=["x", "y"], unique_id_l="z"
    )
    sets = dict(zip("xyz", ["web", "crm", "crm"], strict=True))
    for pairs in (pc.as_pair_similarity(linked), pc.as_pair_similarity(named, items=sets)):
        table = pc.consensus_partition(pairs, random_seed=1).to_dataframe()
        assert table.columns[:3].tolist() == ["cluster_id", "source_dataset", "unique_id"]
        assert table.index.equals(pd.RangeIndex(3)) and set(table["source_dataset"]) == {"crm", "web"}
        assert dict(zip(table["unique_id"], table["cluster_id"], strict=True)) in (
            {1: 0, 2: 1},
            {"x": 0, "y": 1, "z": 0},
        )


@pytest.mark.parametrize(
    "names", [None, ["a", "b", "c"], [3, 1, 2], np.array(["2020-01-02", "2021", "2022"], "M8[ns]")]
)
def test_stored_and_restored(names):
    best = partition_of(scored_pairs(3, {(0, 1): 0.9, (1, 2): 0.3}, names=names), [0, 0, 1])
    back = ConsensusPartition.from_dataset(best.to_dataset())
    assert_equal(back, best)
    pd.testing.assert_frame_equal(back.to_dataframe(), best.to_dataframe())


def test_shown_by_cluster():
    many = partition_of(scored_pairs(40, {(0, 1): 0.9}), [0, 0, *range(1, 39)])
    assert repr(many).endswith("... 27 more rows in clusters") and many.clusters[38] == [39]
    assert "27 more rows in <code>clusters</code>" in many._repr_html_()
    few = partition_of(scored_pairs(3, {}), [0, 0, 0])
    assert "more rows" not in repr(few) and "pairs alone" in repr(few)
