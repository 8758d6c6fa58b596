"""summarize() of scored pairs: what it finds, says, writes and refuses."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.summary.report import pairs as report
from posterior_consensus_command import main
from tests.catalogue.results import assert_equal
from tests.helpers import keeps, scored_pairs

QUIET = {"random_seed": 1, "progressbar": False}
NAMES = ["ann", "anne", "an", "bob", "rob", "<b>joe</b>", "eve"]
SCORES = {(0, 1): 0.9, (0, 2): 0.8, (1, 2): 0.3, (2, 3): 0.6, (3, 4): 0.95, (4, 5): 0.2}


SET_OF_SECOND = ["source_dataset_r", "unique_id_r"]


def of(pairs, **options):
    return pc.summarize(pairs, **QUIET | options)


@pytest.fixture(scope="module")
def pairs():
    """Two persons of three and two records with a bad link between them, and two records alone."""
    return scored_pairs(7, SCORES, names=NAMES)


@pytest.fixture(scope="module")
def summary(pairs):
    return of(pairs)


def chain(n, score=0.6, **options):
    """Records in a row, each linked to its neighbours."""
    return scored_pairs(n, {(k, k + 1): score for k in range(n - 1)}, **options)


def lattice(n=16, seed=1):
    """A component of random scores, which is not proven optimal without work."""
    rng = np.random.default_rng(seed)
    return scored_pairs(n, {(i, j): rng.random() for i in range(n) for j in range(i + 1, n)})


def test_results_are_those_of_the_functions(pairs, summary):
    best = pc.consensus_partition(pairs, loss="binder", **QUIET)
    assert summary.labels.values.tolist() == best.labels.values.tolist() == [0, 0, 0, 1, 1, 2, 3]
    assert_equal(summary.partition.records, best.records)
    assert summary.component.values.tolist() == [0, 0, 0, 0, 0, 1, 2] and summary.tau == 0.5
    assert (summary.links.precision, summary.links.recall) == pytest.approx(
        ((0.9 + 0.8 + 0.3 + 0.95) / 4, (0.9 + 0.8 + 0.3 + 0.95) / sum(SCORES.values()))
    )
    assert summary.curve.table["tau"].values.tolist() == pytest.approx(np.arange(1, 10) / 10)
    table = summary.to_dataframe()
    assert table["unique_id"].tolist() == NAMES and table.set_index("unique_id").loc["an", "outside"] == "bob"


@pytest.fixture
def told(approved):
    """Compare what a summary prints, finds and says for a paper with the approved texts of this name."""

    def compare(name, summary):
        sentences = re.sub(r"(?<=_consensus )\d[\w.]*", "VERSION", summary.methods_text().rpartition("\n\n")[0])
        printed = repr(summary)
        approved("scored_pairs", name, "\n\n".join([printed, "\n".join(summary.findings()), sentences]))

    return compare


SAID = {
    "two persons": lambda: of(scored_pairs(7, SCORES, names=NAMES)),
    "a costly threshold": lambda: of(scored_pairs(7, SCORES, names=NAMES), loss=pc.binder(tau=0.75)),
    "constraints": lambda: of(scored_pairs(4, {(0, 1): 0.9, (2, 3): 0.8}, cannot_link=[(0, 1)], must_link=[(1, 2)])),
    "unscored pairs within": lambda: of(scored_pairs(3, {(0, 1): 0.9, (1, 2): 0.9})),
    "no pair": lambda: of(scored_pairs(3, {})),
    "one record": lambda: of(scored_pairs(1, {})),
    "all pairs scored": lambda: of(scored_pairs(3, {(0, 1): 0.9, (1, 2): 0.4, (0, 2): 0.7})),
    "unscored above the threshold": lambda: of(scored_pairs(4, {(0, 1): 0.1, (1, 2): 0.2}, 0.6)),
    "a large cluster": lambda: of(scored_pairs(12, {(i, j): 0.7 for i in range(12) for j in range(i)})),
    "a chain": lambda: of(chain(9)),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name, told):
    told(name, SAID[name]())


def unproven(summary, **changes):
    """The summary as if its largest component were not proven to be optimal."""
    best = summary.partition
    changes = {"n_proven": 0, "unproven_sizes": [5], "unproven_gaps": [0.25], "unproven_records": [3]} | changes
    bound = best.expected_loss - 0.25 * best.loss.scale(best.labels.size)
    return replace(summary, partition=replace(best, lower_bound=bound, info=replace(best.info, **changes)))


def test_components_that_are_not_proven_are_said_with_their_gaps(summary, told):
    told("a component not proven", unproven(summary))
    told("stopped", unproven(summary, stopped="interrupted"))
    without = replace(summary, partition=replace(summary.partition, lower_bound=None, info=None))
    assert "no bound was computed" in "\n".join(without.findings())
    useless = replace(summary, partition=replace(summary.partition, lower_bound=0.0, info=None))
    assert "there is no bound above 0" in "\n".join(useless.findings())


def test_a_proof_under_constraints_is_among_the_partitions_that_keep_them(summary):
    kept = of(scored_pairs(7, SCORES, names=NAMES, cannot_link=[(0, 1)]))
    texts = [kept.findings()[3], repr(kept.partition), repr(pc.certify(kept, progressbar=False)), kept.methods_text()]
    for text in (" ".join(text.split()) for text in texts):
        assert "keep the constraints" in text or "keeps the constraints" in text
    without = [summary.findings()[3], repr(summary.partition), summary.methods_text()]
    assert not any("constraints" in text for text in without)
    (not_proven,) = [one for one in unproven(kept).findings() if "not proven optimal" in one]
    assert "among the partitions that keep the constraints" in not_proven
    back = pc.results.ConsensusPartition.from_dataset(kept.partition.to_dataset())
    assert "among the partitions that keep the constraints" in " ".join(repr(back).split())


_PROVEN = re.compile(r"optimum[^.]*|proven: no partition[^;.]*|no other partition[^.]*|proven (?:to be|optimal)[^.;]*")


def minima(source, tau):
    """Minimum of the expected loss, by its definition, over all partitions, and over those that keep constraints."""
    partitions = np.concatenate(list(enumerate_partitions(source.n_items)))
    one, other = np.triu_indices(source.n_items, 1)
    similarity, joined = source.similarity()[one, other], partitions[:, one] == partitions[:, other]
    costs = np.where(joined, 2 * tau * (1 - similarity), 2 * (1 - tau) * similarity).sum(axis=1)
    costs *= pc.binder().scale(source.n_items)
    return costs.min(), costs[keeps(partitions, source.constraints)].min()


def assert_claims_hold(text, expected, minimum, least_kept):
    """What a text says is proven is the minimum over the partitions it speaks of."""
    claims = [one for one in _PROVEN.findall(" ".join(text.split())) if "not proven" not in one]
    for claim in claims:
        assert expected == pytest.approx(least_kept if "the constraints" in claim else minimum, abs=1e-9), claim
    return len(claims)


def test_every_register_says_among_which_partitions_a_proof_is(tmp_path, capsys, undrawn):
    """Joined, a and b have a smaller loss than any partition that separates them."""
    source = scored_pairs(4, {(0, 1): 0.9, (1, 2): 0.7, (2, 3): 0.2}, names=list("abcd"), cannot_link=[(0, 1)])
    (minimum, least_kept), columns = minima(source, 0.5), ["unique_id_l", "unique_id_r", "match_probability"]
    assert (minimum, least_kept) == pytest.approx((0.125, 0.175))
    pd.DataFrame([("a", "b", 0.9), ("b", "c", 0.7), ("c", "d", 0.2)], columns=columns).to_csv(tmp_path / "pairs.csv")
    pd.DataFrame([("a", "b")], columns=["first", "second"]).to_csv(tmp_path / "apart.csv")
    given = [str(tmp_path / "pairs.csv"), "--cannot-link", str(tmp_path / "apart.csv"), "--loss", "binder", "--quiet"]
    told = [page_of(of(source), tmp_path)]
    for more in ([], ["--json"]):
        assert main([*given, *more]) == 0
        told.append(capsys.readouterr().out)
    assert all(assert_claims_hold(re.sub("<[^>]*>", " ", one), 0.175, minimum, least_kept) for one in told)
    (closest,) = [one for one in of(source).findings() if "closest call" in one]
    assert "b and c" in closest and "would add 0.4 expected wrong pairs, the constraints kept" in closest
    open_one = unproven(of(source), unproven_sizes=[2])
    assert "0.25 expected wrong pairs more than the best partition that keeps the constraints" in " ".join(
        open_one.findings()
    )


@pytest.mark.parametrize("dim", ["similarity", "cluster", "size", "link", "decision", "first", "component"])
def test_sentences_do_not_depend_on_the_name_of_the_dimension(dim, pairs, summary):
    renamed = replace(pairs, items=replace(pairs.items, dim=dim, coords=xr.Coordinates({dim: NAMES})))
    found = of(renamed)
    assert found.findings() == summary.findings() and found.methods_text() == summary.methods_text()
    assert repr(pc.results.PairsSummary.from_dataset(found.to_dataset(), renamed)) == repr(found) == repr(summary)


def test_unscored_pairs_count_within_components_in_what_is_said():
    n = 300
    couples = {(2 * k, 2 * k + 1): 0.9 for k in range(n // 2)}
    found = of(scored_pairs(n, couples | {(0, 2): 0.2}, 0.1))
    said = " ".join(" ".join([repr(found), *found.findings(), found.methods_text()]).split())
    assert "wrong pairs by single scores is 15.2: 15 joined wrongly and 0.2 missed" in said
    assert f"{found.partition.expected_loss:.3g}; expected wrong pairs" in said
    assert f"an expected loss of {found.partition.expected_loss:.3g}" in said
    assert said.count("within components of linked records alone") == 2
    open_one = unproven(found)
    least = open_one.partition.lower_bound
    assert f"the minimum with these scores is at least {np.floor(1e4 * least) / 1e4:.3g} (" in "\n".join(
        open_one.findings()
    )


def test_a_table_without_low_scores_is_said_to_be_cut(summary):
    cut = of(scored_pairs(5, {(0, 1): 0.95, (1, 2): 0.9}))
    assert any(one.startswith("No score is below 0.9, and the threshold is 0.5") for one in cut.findings())
    assert "left out" in repr(cut) and "left out" not in repr(summary)


def test_it_prints_on_one_screen_with_the_closest_calls(summary):
    lines = repr(summary).splitlines()
    assert lines[0] == "Summary of scored pairs: 7 records in 4 clusters"
    assert len(lines) <= 40 and max(map(len, lines)) <= 125 and "<table" in summary._repr_html_()
    assert summary.links.review(1).iloc[0]["first"] in repr(summary)


def test_a_text_for_a_paper_cites_its_sources(summary):
    text, references = summary.methods_text().split("\n\n")
    assert "7 records" in text and "21 pairs" in text and "proven to be the minimum" in text
    assert re.findall(r"\[(\w+)\]", references) == ["binder1978", "bansal2004", "posterior_consensus"]
    assert summary.bibtex().count("@") == 3


def test_a_summary_stands_for_its_pairs_and_for_its_partition(summary):
    assert_array_equal(pc.consensus_partition(summary, loss="binder", **QUIET).labels, summary.labels)
    assert pc.certify(summary, progressbar=False).status == "optimal"
    pd.testing.assert_frame_equal(pc.links(summary).review(3), summary.links.review(3))
    assert pc.partition_loss(summary, [0, 0, 0, 1, 1, 2, 3]) == 0
    assert of(summary).labels.values.tolist() == summary.labels.values.tolist()


@pytest.mark.parametrize("has_curve", [True, False])
def test_it_is_stored_without_its_pairs(summary, pairs, has_curve, tmp_path):
    stored = summary if has_curve else replace(summary, curve=None)
    stored.to_dataset().to_netcdf(tmp_path / "summary.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "summary.nc", engine="h5netcdf") as dataset:
        back = pc.results.PairsSummary.from_dataset(dataset, pairs.of_items(np.arange(7)[::-1]))
    assert repr(back) == repr(stored) and back.findings() == stored.findings()
    assert_equal(back.partition, stored.partition)
    assert (back.curve is None) == (not has_curve)
    with pytest.raises(ValueError, match="`pairs`.*7 items.*6"):
        pc.results.PairsSummary.from_dataset(stored.to_dataset(), pairs.of_items(np.arange(6)))
    with pytest.raises(TypeError, match="`pairs`"):
        pc.results.PairsSummary.from_dataset(stored.to_dataset(), np.eye(7, dtype=int))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"prob": 0.9}, "`prob`.*0.9"),
        ({"weights": np.ones(3)}, "draws"),
        ({"loss": "vi"}, "'vi'.*binder"),
        ({"tau": 1.5}, "`tau`"),
    ],
)
def test_what_scored_pairs_have_not_is_refused(pairs, options, parts):
    with pytest.raises(ValueError, match=parts):
        of(pairs, **options)


def test_a_number_of_clusters_is_searched_without_components(pairs):
    found = of(pairs, n_clusters=3)
    assert (
        found.n_clusters == 3
        and "by the method 'greedy'" in found.methods_text()
        and "(proven)" not in found.findings()
    )


def test_work_and_not_time_decides_on_the_curve(pairs, monkeypatch):
    module = "posterior_consensus.summary.pairs"
    for name, most in (("_MOST_ON_CURVE", 12), ("_LARGEST_ON_CURVE", 4)):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{name}", most)
            assert of(pairs).curve is None
    above = of(scored_pairs(4, {(0, 1): 0.9}, 0.25))
    assert above.curve.table["tau"].values[0] == pytest.approx(0.3)


def test_tables_for_a_spreadsheet(summary, tmp_path):
    summary.to_csv(tmp_path / "tables")
    assert {file.name for file in (tmp_path / "tables").iterdir()} == {
        *("records.csv", "review.csv", "curve.csv", "findings.txt")
    }
    records = pd.read_csv(tmp_path / "tables" / "records.csv")
    assert records["unique_id"].tolist() == NAMES and records["cluster_id"].tolist() == summary.labels.values.tolist()


def test_records_of_several_data_sets_are_named_without_tuples(undrawn, tmp_path):
    rows = [("crm", 1, "web", 1, 0.9), ("web", 1, "crm", 2, 0.4), ("crm", 2, "web", 3, 0.5)]
    given = pd.DataFrame(rows, columns=["source_dataset_l", "unique_id_l", *SET_OF_SECOND, "match_probability"])
    found = of(given)
    assert "crm: 2 and web: 3" in found.findings()[-1]
    found.to_csv(tmp_path)
    for text in (repr(found), page_of(found, tmp_path), *(one.read_text("utf-8") for one in tmp_path.glob("*.csv"))):
        assert "(crm" not in text and "('crm" not in text
    assert [one.get_text() for one in found.plot()[1, 1].get_yticklabels()][-1] == "crm: 2 and web: 3"
    records, review = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("records", "review"))
    outside = records[["source_dataset", "unique_id"]].merge(
        records, left_on=["source_dataset", "unique_id"], right_on=["outside_source_dataset", "outside_unique_id"]
    )
    assert len(outside) == records["outside_unique_id"].notna().sum() == 3
    assert review.loc[0, ["first_source_dataset", "first_unique_id", "second_unique_id"]].tolist() == ["crm", 2, 3]


def test_a_decision_that_changes_nothing_or_one_pair_is_said_so():
    for score, said in ((0.5, "would not change the expected loss. A"), (1.0, "add 1 expected wrong pair. A")):
        assert said in of(scored_pairs(2, {(0, 1): score})).findings()[-1]


def test_its_figure_has_four_panels(summary, undrawn):
    for one in (summary, replace(summary, curve=None)):
        axes = one.plot(figsize=(8, 6))
        assert axes.shape == (2, 2) and axes[0, 0].get_xlabel() == "records per cluster"
        assert axes[0, 0].lines[0].get_ydata().tolist() == [2, 1, 1]
    assert len(summary.plot()[1, 0].lines) == 3


class Page(HTMLParser):
    """Open tags and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(summary, tmp_path):
    text = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert not Page(text).open and "http" not in text.partition("For the section on methods")[0]
    return text


def test_the_report_lists_components_and_escapes_names(summary, undrawn, tmp_path):
    text = page_of(summary, tmp_path)
    assert text.count("<svg") == 1 and text.count("<circle") == 5 and text.count("<line") == 5
    assert text.count('class="between against"') == 1  # an and bob, separated with 0.6
    assert text.count('class="in against"') == 1  # anne and an, joined with 0.3
    assert "<b>joe" not in text and "5 records in 2 clusters: ann, anne, an, bob and 1 more" in text
    assert "in against" not in page_of(of(scored_pairs(3, {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.5})), tmp_path)  # at tau
    named = page_of(of(scored_pairs(3, {(0, 1): 0.9}, names=["<i>", "&amp;", "x" * 40])), tmp_path)
    assert "<i>" not in named and "&lt;i&gt; and &amp;amp;: 0.9" in named


def test_the_report_begins_with_what_is_not_proven(undrawn, tmp_path):
    large, small = {(k, k + 1): 0.6 for k in range(6)}, {(7, 8): 0.9}
    found = of(scored_pairs(9, large | small))
    text = page_of(unproven(found, n_proven=1, unproven_sizes=[2], unproven_records=[8]), tmp_path)
    titles = re.findall(r"<summary>(\d records.*?)</summary>", text)
    assert titles[0].startswith("2 records in 1 cluster, not proven optimal: 7, 8") and len(titles) == 2
    # Green says that chains agree, and there are none.
    assert all(page.count('<div class="verdict">') == 1 for page in (text, page_of(found, tmp_path)))


def test_the_report_of_many_components_stays_small(monkeypatch, undrawn, tmp_path):
    for name, most in (("_MOST_COMPONENTS", 3), ("_MOST_DRAWN", 4), ("_MOST_PAIRS", 2), ("_MOST_NAMES", 4)):
        monkeypatch.setattr(report, name, most)
    pairs = {(k, k + 1): 0.9 for k in range(0, 40, 2)} | {(40 + i, 40 + j): 0.9 for i in range(6) for j in range(i)}
    text = page_of(of(scored_pairs(46, pairs)), tmp_path)
    assert "3 of 21 components" in text and text.count("<svg") == 2
    assert "2 of 15 scored pairs" in text and "40, 41, 42, 43 and 2 more" in text
    assert "Components" not in page_of(of(scored_pairs(3, {(0, 1): 0.2})), tmp_path)
