"""Summaries of many small clusters show links, and any summary's tables can be taken away."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import linked_records

NAMES = [f"<b>{k}</b>, Ann & Bo" for k in range(120)]


@pytest.fixture(scope="module")
def summary():
    z, _ = linked_records(120, 40)
    z = xr.DataArray(z.reshape(2, 20, -1), dims=("chain", "draw", "record"), coords={"record": NAMES}, name="z")
    options = {"n_starts": 1, "answers": False, "progressbar": False}
    return pc.summarize(z, loss="binder", random_seed=1, **options)


def test_it_has_links(summary):
    expected = pc.links(summary.draws, summary.consensus)
    xr.testing.assert_identical(summary.links.pairs, expected.pairs)
    xr.testing.assert_identical(summary.links.sizes, expected.sizes)
    restored = pc.Summary.from_dataset(summary.to_dataset(), summary.draws)
    xr.testing.assert_identical(restored.links.pairs, expected.pairs)
    assert repr(restored) == repr(summary)


def test_printed_it_shows_uncertain_links(summary):
    text = repr(summary)
    assert "because there are more than 50 clusters, and most items are in" in " ".join(text.split())
    assert len(text.splitlines()) < 40 and "more rows" not in text
    first = summary.links.uncertain.iloc[0]
    assert first["first"] in text and first["second"] in text
    assert first["first"].replace("<", "&lt;").replace("& ", "&amp; ").replace(">", "&gt;") in summary._repr_html_()


def test_findings_count_sizes_and_links(summary):
    found = " ".join(summary.findings())
    sizes = summary.links.sizes
    low, high = (int(sizes[end].sel(size="1")) for end in ("lower", "upper"))
    assert f"There are {low} to {high} singletons, " in found
    sure, uncertain, _ = summary.links.n_by_certainty
    assert f"{sure} links have a probability above 0.95, and {uncertain} between 0.05 and 0.95" in found
    within = summary.links.uncertain.query("first_cluster == second_cluster")
    assert f", {len(within)} of which the partition co-clusters." in found
    best = summary.links.between_clusters().iloc[0]
    members = summary.consensus.clusters[best["first_cluster"]]
    assert f"The first candidates for joining are the clusters of {members[0]}" in found
    assert f"mean probability of {best['probability']:.2f}." in found


def test_the_figure_is_of_links(summary):
    axes = summary.plot()
    assert axes.shape == (2, 2)
    labels = [ax.get_xlabel() for ax in axes.flat]
    assert labels == ["items per cluster", "number of clusters", "probability of a link", "probability of a link"]


def test_the_report_begins_with_a_figure(summary, tmp_path):
    page = summary.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    before = page[: page.index("<img")]
    assert before.count("<tr") == 0 and "<h2>Links</h2>" in before
    unfolded = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert unfolded.count("<tr") < 100
    assert "similarity matrix; the clusters" not in page and "<b>94<" not in page
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[1:5] == ["Links", "Uncertain links", "Clusters that could be joined", "Clusters by size"]


def test_without_bokeh_the_report_has_no_section_of_the_matrix(summary, tmp_path, monkeypatch):
    monkeypatch.setattr("posterior_consensus.summary.report.interactive.util.find_spec", lambda name: None)
    page = summary.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Posterior similarity of pairs" not in page and page.count("<img") == 3


def test_tables_of_links_are_files_too(summary, tmp_path):
    folder = summary.to_csv(tmp_path / "new" / "tables")
    assert sorted(file.name for file in folder.iterdir()) == [
        *("cluster_sizes.csv", "clusters.csv", "convergence.csv", "findings.txt", "items.csv", "links.csv")
    ]
    links = pd.read_csv(folder / "links.csv")
    assert links["first"].tolist() == summary.links.to_dataframe()["first"].tolist()
    np.testing.assert_allclose(links["probability"], summary.links.to_dataframe()["probability"])
    items = pd.read_csv(folder / "items.csv", index_col=0)
    assert items.index.tolist() == NAMES
    assert items["cluster"].tolist() == summary.labels.values.tolist()
    assert (folder / "findings.txt").read_text(encoding="utf-8-sig").splitlines() == summary.findings()


def test_few_clusters_have_no_links(tmp_path):
    draws = xr.DataArray([[0, 0, 1, 1]] * 40, dims=("sample", "obs"), coords={"obs": ["é", "=1+1", "a,b", 'q"']})
    summary = pc.summarize(draws, random_seed=1, answers=False, method="best_draw")
    assert summary.links is None and "links" not in repr(summary)
    (tmp_path / "kept.csv").write_text("mine")
    summary.to_csv(tmp_path)
    summary.to_csv(str(tmp_path))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("clusters.csv", "convergence.csv", "findings.txt", "items.csv", "kept.csv")
    ]
    assert pd.read_csv(tmp_path / "items.csv", index_col=0).index.tolist() == ["é", "=1+1", "a,b", 'q"']
    assert summary.to_latex().startswith(r"\begin{tabular}{rrrrl}")


def test_a_folder_that_is_a_file(tmp_path):
    summary = pc.summarize([[0, 0, 1, 1]] * 40, random_seed=1, answers=False, method="best_draw")
    (tmp_path / "a").write_text("")
    with pytest.raises(NotADirectoryError, match="`folder` must be a directory or a new name; got the file"):
        summary.to_csv(tmp_path / "a")
    with pytest.raises(TypeError, match="`folder` must be a path; got 3"):
        summary.to_csv(3)
