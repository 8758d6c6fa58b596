"""One name for a cluster in several partitions: the best matchings, names that are used once, words and colours."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.plots.colours import OPEN
from posterior_consensus.results.palette import COLOURS
from tests.helpers import check, check_all
from tests.strategies import label_pairs

BASE = [0] * 10 + [1] * 8 + [2] * 6


def matched(partition, reference):
    """A partition with the names of a reference's clusters."""
    return pc.align_partitions({"reference": reference, "partition": partition})["partition"]


def most_in_common(ours, theirs):
    """Items that the best one-to-one matching has in common, by trying all."""
    table = np.array([[np.sum((ours == k) & (theirs == c)) for c in set(theirs)] for k in set(ours)])
    table = table if table.shape[0] <= table.shape[1] else table.T
    orders = itertools.permutations(range(table.shape[1]), len(table))
    return max(sum(table[k, c] for k, c in enumerate(order)) for order in orders)


@settings(max_examples=40)
@given(label_pairs())
def test_matched_clusters_have_the_most_items_in_common_and_the_table_has_all_overlaps(pair):
    ours, theirs = map(np.array, pair)
    found = matched(ours, theirs)
    labels = found.labels.values
    assert (labels == theirs).sum() == most_in_common(ours, theirs)
    assert pc.partition_loss(labels, ours) == 0 and found.reference.values.tolist() == theirs.tolist()
    assert np.setdiff1d(labels, theirs).min(initial=99) > theirs.max()
    same = matched(theirs, theirs)
    assert same.labels.values.tolist() == theirs.tolist() and "the same" in same.in_words()
    table = found.to_dataframe()
    assert table["n_common"].sum() == labels.size and (table["n_common"].diff()[1:] <= 0).all()
    for row in table.itertuples():
        ours, other = labels == row.cluster, theirs == row.reference
        common = (ours & other).sum()
        assert row.n_common == common and row.same == (row.cluster == row.reference)
        assert row.jaccard == pytest.approx(common / (ours | other).sum())
        assert (row.share, row.reference_share) == pytest.approx((common / ours.sum(), common / other.sum()))


def test_of_equal_overlaps_the_more_similar_clusters_are_matched():
    found = matched([0, 0, 1, 1, 1], [4, 4, 4, 4, 5])
    assert found.labels.values.tolist() == [4, 4, 5, 5, 5]  # 3 in common in either way


def test_what_splits_and_merges_is_said_with_names(approved):
    two_exchange_many, singletons = [7] * 5 + [1] * 9 + [7] * 4 + [2] * 6, [*range(20, 30), *BASE[10:]]
    for name, partition in {"two exchange many": two_exchange_many, "singletons": singletons}.items():
        found = matched(partition, BASE)
        approved("verdicts_alignment", name, found.in_words())
        assert found.in_words()[:40] in repr(found)


def test_names_of_clusters_go_on(approved):
    draws = np.tile(BASE, (4, 1))
    best = pc.consensus_partition(draws, method="best_draw").with_names(["x", "y", "z"])
    found = matched([1] * 4 + [0] * 14 + [2] * 3 + [3] * 3, best)
    assert found.named_labels.values.tolist() == ["x"] * 4 + ["y"] * 14 + ["z"] * 3 + ["new 1"] * 3
    again = matched([0] * 4 + [5] * 14 + [6] * 6, found)
    assert again.names == ("x", "y", "z", "new 1") and again.ended == ()
    approved("verdicts_alignment", "names go on", again.in_words())
    assert matched([0, 0, 1], ["new 1", "new 1", "new 1"]).names == ("new 1", "new 2")
    first = best.with_names(first=1)
    assert matched([9] * 24, first).labels.values.tolist() == [1] * 24
    far = matched([0, 0, 1], [5000, 5000, 5000])
    assert far.named_labels.values.tolist() == [5000, 5000, "new 1"]


def test_a_name_is_not_used_for_another_cluster(approved):
    found = pc.align_partitions([[0, 0, 0, 1, 1, 1], [0] * 6, [5, 5, 5, 6, 6, 6], [7, 7, 8, 9, 9, 9]])
    assert found.labels.values.tolist() == [[0, 0, 0, 1, 1, 1], [0] * 6, [0, 0, 0, 2, 2, 2], [0, 0, 3, 2, 2, 2]]
    assert found.names == (0, 1, 2, 3) and found.partitions == [0, 1, 2, 3]
    approved("verdicts_alignment", "four partitions", found.in_words())
    np.testing.assert_array_equal(found[2].labels, found.labels[2])
    np.testing.assert_array_equal(found[2].reference, found.labels[1])
    approved("verdicts_alignment", "the first partition", found[0].in_words())
    table = found.to_dataframe()
    assert table.index.unique().tolist() == [1, 2, 3] and len(table.loc[3]) == 3
    assert "4 of 6 items, 4 clusters" in repr(found) and "2 to 3" in found._repr_html_()
    check(lambda key: found[key], 9, KeyError, ["9", "present: 0, 1, 2, 3"])


def of_items(labels, items, dim="person"):
    return xr.DataArray(labels, dims=dim, coords={dim: list(items), "age": (dim, np.arange(len(labels)))})


def test_items_that_come_and_go(approved):
    years = {2001: of_items([0, 0, 1, 1, 2], "pqrst"), 2002: of_items([3, 3, 4, 4, 4, 4, 9], "pqrsuvw")}
    found = pc.align_partitions(years)
    assert colours(pc.plot_alluvial(found)) == [look(k) for k in (0, 1, 2, -1, 0, 1, -1, 3)]
    assert found.labels["person"].values.tolist() == list("pqrstuvw")
    assert found.labels.values.tolist() == [[0, 0, 1, 1, 2, -1, -1, -1], [0, 0, 1, 1, -1, 1, 1, 3]]
    approved("verdicts_alignment", "items that come and go", found["2002"].in_words())
    assert found["2001"].labels["person"].values.tolist() == list("pqrst")
    one = matched(years[2002], years[2001])
    assert one.labels["person"].values.tolist() == list("pqrsuvw")
    np.testing.assert_array_equal(one.labels, found[2002].labels)
    assert (one.ended, one.n_gone, one.names) == ((2,), 1, (0, 1, 2, 3))
    assert one.to_dataframe()["n_common"].tolist() == [2, 2]
    apart = matched(of_items([0, 0], "ab"), of_items([0, 0], "cd"))
    assert apart.labels.values.tolist() == [1, 1] and not len(apart.to_dataframe())
    approved("verdicts_alignment", "no item in common", apart.in_words())
    assert repr(apart)


def test_items_are_matched_by_name_or_by_position(rng):
    labels, items = rng.integers(3, size=9), list("abcdefghi")
    order = rng.permutation(9)
    mixed = of_items(labels[order] + 4, np.array(items)[order])
    found = matched(mixed, of_items(labels, items))
    assert found.labels.values.tolist() == labels.tolist()  # the items stand as in the first partition
    series = pd.Series(labels[order], index=np.array(items)[order])
    assert matched(of_items(labels, items), series).labels["person"].values.tolist() == list(series.index)
    assert matched(labels[order], of_items(labels[order], items)).labels["person"].values.tolist() == items


def test_bad_arguments():
    cases = [
        ([[0, 1]], ValueError, "`partitions`", "at least two partitions; got 1"),
        (3, TypeError, "`partitions` must be a dict or a list of partitions; got int"),
        ({"a": [0, 1], "b": [0, 1, 1]}, ValueError, "`partitions['b']` must label the same 2 items"),
        ([of_items([0, 1], "ab"), [0, 1, 1]], ValueError, "give all partitions a coordinate"),
        ([of_items([0, 1], "aa"), of_items([0, 1], "ab")], ValueError, "`partitions[0]` must have items of different"),
        ([[0, 1], [0, -1]], ValueError, "`partitions[1]` must not be negative; got -1"),
        ([[0, 1], [0.5, 1]], ValueError, "`partitions[1]` must be integers"),
        ([[0, 1], [[0, 1]]], ValueError, "`partitions[1]` must be a vector"),
    ]
    check_all(pc.align_partitions, cases)
    check(lambda x: matched(x, [0, 1]), [0, np.nan], ValueError, ["`partitions['partition']` must not be missing"])
    check(
        lambda x: matched([0, 1], x), [0, 1, 1], ValueError, ["`partitions['partition']` must label the same 3 items"]
    )


def colours(ax):
    return [to_hex(patch.get_facecolor()) for patch in ax.patches]


def look(number):
    return OPEN.lower() if number < 0 else COLOURS[number].lower()


def dots(ax):
    return {to_hex(colour) for points in ax.collections for colour in points.get_edgecolors()}


@pytest.mark.parametrize("names", [None, ["b", "a", "c"]])
def test_a_name_has_one_colour_in_all_figures(rng, names):
    draws, other = np.tile(BASE, (4, 1)), [5] * 4 + [0] * 14 + [2] * 3 + [3] * 3
    best = pc.consensus_partition(draws, method="best_draw")
    best = best if names is None else best.with_names(names)
    found = matched(other, best)
    assert colours(pc.plot_alluvial(found)) == [look(k) for k in (0, 1, 2, 0, 1, 2, 3)]
    assert [text.get_text() for text in pc.plot_alluvial(found).texts][3:6] == [str(k) for k in best.names]
    for partition in [found] if names else [found, found.labels]:
        ax = pc.plot_data(rng.normal(size=(24, 2)), partition)
        assert dots(ax) == {look(k) for k in range(4)}
        legend = zip(ax.get_legend().texts, ax.get_legend().legend_handles, strict=True)
        shown = {text.get_text()[0]: line.get_color() for text, line in legend}
        assert [to_hex(shown[str(name)]) for name in best.names] == [look(k) for k in range(3)]
    aligned = pc.align_partitions({"a": best, "b": [0] * 24, "c": other})
    expected = [k for row in aligned.labels.values for k in dict.fromkeys(row.tolist())]
    assert colours(pc.plot_alluvial(aligned)) == [look(k) for k in expected] and len(expected) == 8


def test_noise_neither_splits_nor_merges():
    """Noise is no cluster: items become noise, and are noise no longer."""
    runs = [[[0, 0, 0, 1, 1, -1]] * 3, [[0, 0, -1, 1, -1, 1]] * 3]
    found = [pc.consensus_partition(pc.as_runs(own, noise=-1), random_seed=1, progressbar=False) for own in runs]
    assert pc.align_partitions(found)[1].in_words() == "2 items become noise; 1 item is noise no longer."
