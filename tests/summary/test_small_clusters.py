"""Summaries of many small clusters show links, and any summary's tables can be taken away."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import linked_records

NAMES = [f"<b>{k}</b>, Ann & Bo" for k in range(120)]
QUICK = {"random_seed": 1, "n_starts": 1, "modes": False, "progressbar": False}


@pytest.fixture(scope="module")
def summary():
    z, _ = linked_records(120, 40)
    z = xr.DataArray(z.reshape(2, 20, -1), dims=("chain", "draw", "record"), coords={"record": NAMES}, name="z")
    return pc.summarize(z, loss="binder", **QUICK)


def test_it_has_links(summary):
    expected = pc.links(summary.draws, summary.partition)
    restored = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    xr.testing.assert_identical(summary.links.sizes, expected.sizes)
    for links in (summary.links, restored.links):
        xr.testing.assert_identical(links.pairs, expected.pairs)
    assert repr(restored) == repr(summary)


def test_it_tells_of_links_by_size_and_certainty(summary, told):
    told("many small clusters", summary)
    assert len(repr(summary).splitlines()) < 40
    first = summary.links.uncertain.iloc[0]
    assert first["first"] in repr(summary) and first["second"] in repr(summary)
    assert first["first"].replace("<", "&lt;").replace("& ", "&amp; ").replace(">", "&gt;") in summary._repr_html_()
    within = summary.links.uncertain.query("first_cluster == second_cluster")
    assert f", {len(within)} of which" in " ".join(summary.findings())


def test_the_figure_is_of_links(summary):
    axes = summary.plot()
    assert axes.shape == (2, 2)
    labels = [ax.get_xlabel().split("\n")[0] for ax in axes.flat]
    assert labels == ["records per cluster", "number of clusters", "posterior similarity", "posterior similarity"]


def test_the_report_begins_with_a_figure(summary, undrawn, monkeypatch, tmp_path):
    monkeypatch.setattr("posterior_consensus.summary.report.choices._MOST_CLUSTERS", 1)  # sliders take long
    page = summary.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    before = page[: page.index("<img")]
    assert before.count("<tr") == 0 and 'class="verdict' in before
    unfolded = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert unfolded.count("<tr") < 100
    assert "similarity matrix; the clusters" not in page and "<b>94<" not in page
    headings = re.findall("<h3>(.*?)</h3>", page)
    assert headings[:3] == ["Uncertain links", "Clusters that could be joined", "Clusters by size"]


def test_without_bokeh_the_report_has_no_section_of_the_matrix(summary, still, tmp_path):
    page = summary.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Posterior similarity of pairs" not in page
    assert page.count("<figure><img") == 3


def test_tables_of_links_are_files_too(summary, tmp_path):
    folder = summary.to_csv(tmp_path / "new" / "tables")
    assert sorted(file.name for file in folder.iterdir()) == [
        *("cluster_sizes.csv", "clusters.csv", "convergence.csv", "findings.txt", "items.csv", "links.csv")
    ]
    links, expected = pd.read_csv(folder / "links.csv"), summary.links.to_dataframe()
    assert links["first"].tolist() == expected["first"].tolist()
    np.testing.assert_allclose(links["similarity"], expected["similarity"])
    items = pd.read_csv(folder / "items.csv", index_col=0)
    assert items.index.tolist() == NAMES
    assert items["cluster"].tolist() == summary.labels.values.tolist()
    assert (folder / "findings.txt").read_text(encoding="utf-8-sig").splitlines() == summary.findings()


def test_few_clusters_have_no_links(tmp_path):
    names = ["é", "=1+1", "a,b", 'q"']
    draws = xr.DataArray([[0, 0, 1, 1]] * 40, dims=("sample", "obs"), coords={"obs": names})
    summary = pc.summarize(draws, random_seed=1, modes=False, method="best_draw")
    assert summary.links is None and "links" not in repr(summary)
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "kept.csv").write_text("mine")
    for given in (folder, str(folder)):
        summary.to_csv(given)
        assert sorted(file.name for file in folder.iterdir()) == [
            *("clusters.csv", "convergence.csv", "findings.txt", "items.csv", "kept.csv")
        ]
    assert pd.read_csv(folder / "items.csv", index_col=0).index.tolist() == names
    assert summary.to_latex().startswith(r"\begin{tabular}{rrrrrl}")
    with pytest.raises(NotADirectoryError, match="`folder` .*got the file"):
        summary.to_csv(folder / "kept.csv")
    with pytest.raises(NotADirectoryError, match=r"`folder` .*clusters\.csv.* `to_dataframe\(\)\.to_csv"):
        summary.to_csv(tmp_path / "clusters.csv")
    with pytest.raises(TypeError, match="`folder` must be a path; got 3"):
        summary.to_csv(3)
