"""summarize() of layers of runs: texts, tables, figure, report and storage."""

import re

import numpy as np
import pytest

import posterior_consensus as pc

QUIET = {"random_seed": 1, "progressbar": False}
ODD = re.compile(r"\b(chains?|draws?|posterior|prior|MCMC|converge\w*|R-hat|Monte Carlo)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def layers():
    rng = np.random.default_rng(3)
    groups = np.repeat([0.5, 1.0], [5, 6])
    base = np.repeat([0, 1, 2, 3], 8)
    runs = [np.where(rng.random(32) < 0.1, rng.integers(4), base if group > 0.5 else base // 2) for group in groups]
    return pc.as_layers(pc.as_runs(runs, groups=groups), layer_dim="resolution")


@pytest.fixture(scope="module")
def summary(layers):
    return pc.summarize(layers, **QUIET)


def test_summary_has_the_comparison_of_its_partitions(summary, layers):
    assert isinstance(summary.comparison, pc.results.LayerStability)
    assert summary.diagnosis is None and summary.cut == ()
    for name, own in summary.items():
        named = summary.comparison.partitions[name].named_labels
        np.testing.assert_array_equal(own.partition.named_labels, named)
    table = summary.to_dataframe()
    assert table["runs"].tolist() == [5, 6]
    alone = pc.compare_layers(layers, partitions={name: own.partition for name, own in summary.items()}, **QUIET)
    assert table["stability"].tolist() == alone.to_dataframe()["stability"].tolist()


def test_texts_are_on_runs(summary):
    said = [str(summary), summary.methods_text().partition("\n\n")[0], *summary.findings()]
    assert not [found for text in said for found in ODD.findall(text.replace("posterior_consensus", ""))]
    assert "5 to 6" in summary.methods_text()
    assert "vinh2010" in summary.bibtex()
    assert any("splits into" in sentence for sentence in summary.findings())


def test_summary_is_restored(summary, layers):
    again = pc.results.LayersSummary.from_datatree(summary.to_datatree(), layers)
    assert again.findings() == summary.findings()
    assert again.comparison.to_dataframe().equals(summary.comparison.to_dataframe())


def test_report_has_the_figure_of_runs(summary, still, tmp_path):
    text = summary.to_html(tmp_path / "runs.html", progressbar=False).read_text("utf-8")
    assert "Stability of layers" in text and "in the same draw" not in text
    assert summary.plot().shape == (3,)
