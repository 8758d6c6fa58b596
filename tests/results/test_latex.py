"""Tables for LaTeX."""

import numpy as np
import pandas as pd

import posterior_consensus as pc
from posterior_consensus.results.display import Tabled
from tests.helpers import array

ODD = {
    "R&D": r"R\&D",
    "50%": r"50\%",
    "$x_1$": r"\$x\_1\$",
    "#{a}": r"\#\{a\}",
    "~^": r"\textasciitilde{}\textasciicircum{}",
    "\\input": r"\textbackslash{}input",
    "[1]*": "{[}1{]}{*}",
    "a\nb": "a b",
    "<é>": r"\textless{}é\textgreater{}",
}


class Table(Tabled):
    def __init__(self, table):
        self.table = table

    def to_dataframe(self):
        return self.table


def rows(text):
    return [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r" \\")]


def test_names_are_escaped():
    found = rows(Table(pd.DataFrame({"a_b": list(ODD)})).to_latex())
    assert found == [[r"a\_b"], *([escaped] for escaped in ODD.values())]


def test_numbers_and_missing_ones():
    table = pd.DataFrame({"x": [1.23456, np.nan], "k": [1, 20], "who": ["a", None]}, index=["first", "second"])
    text = Table(table).to_latex()
    assert text.splitlines()[0] == r"\begin{tabular}{lrrl}"
    assert rows(text) == [["", "x", "k", "who"], ["first", "1.23", "1", "a"], ["second", "--", "20", "--"]]


def test_a_caption_and_a_label_make_a_table_of_it():
    text = Table(pd.DataFrame({"x": [1, 2]})).to_latex(caption=r"Of $n$ runs.", label="tab:runs")
    assert text.splitlines()[:4] == [r"\begin{table}", r"\centering", r"\caption{Of $n$ runs.}", r"\label{tab:runs}"]
    assert text.splitlines()[-1] == r"\end{table}" and text.count(r"\begin{tabular}") == 1
    assert r"\label" not in Table(pd.DataFrame({"x": [1, 2]})).to_latex(caption="Runs")


def test_members_that_are_left_out_are_dots_of_latex():
    found = rows(Table(pd.DataFrame({"who": ["1, 2, ..."]})).to_latex())
    assert found[1] == [r"1, 2, \ldots{}"]


def test_results_have_a_row_for_each_of_their_table():
    draws = array(np.array([[0, 0, 1, 2], [0, 0, 1, 1]] * 10), ("sample", "obs"), obs=list(ODD)[:4])
    for make in (pc.item_uncertainty, pc.links, pc.membership):
        result = make(draws, [0, 0, 1, 1])
        found = rows(result.to_latex())
        assert len(found) == 1 + len(result.to_dataframe())
        assert {len(row) for row in found} == {len(found[0])}
        assert found[1][0] in ODD.values()


def test_days_are_named_without_times():
    days = pd.date_range("2020-01-01", periods=3)
    draws = pc.as_partition_draws(pd.DataFrame([[0, 0, 1]] * 8, columns=days))
    table = pc.consensus_partition(draws, n_starts=1, random_seed=1, progressbar=False).to_latex()
    assert "2020-01-01, 2020-01-02" in table and "00:00" not in table


def test_a_summary_of_many_clusters_fits_a_page():
    labels = np.repeat(np.arange(40), [30, 1, *range(2, 40)])
    names = [f"a patient with a name of forty characters or more, {k}" for k in range(labels.size)]
    z = array(np.tile(labels, (16, 1)), ("sample", "obs"), obs=names)
    summary = pc.summarize(z, method="best_draw", random_seed=1, modes=False, progressbar=False)
    table = summary.to_latex()
    assert len(table.splitlines()) <= 27 and max(map(len, table.splitlines())) <= 90
    found, frame = rows(table), summary.to_dataframe()
    assert [row[0] for row in found[1:]] == ["0", *map(str, range(21, 40)), "others"]
    rest = frame.iloc[1:21]
    *numbers, said = found[-1][1:]
    assert said == "20 clusters of 1 to 20 items" and [float(one) for one in numbers[::2]] == [rest["size"].sum(), 1.0]
    assert numbers[1] == f"{rest['share'].sum():.2f}"
    assert len(rows(summary.partition.to_latex())) == 41
