"""Numbers in words."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterior_consensus.bounds.bound import minimum_in_words
from posterior_consensus.diagnostics.verdict import _rounded_up
from posterior_consensus.results import display


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0%"),
        (0.001, "less than 1%"),
        (0.665, "67%"),
        (0.9422, "94%"),
        (0.9999, "more than 99%"),
        (1.0, "100%"),
        (1 - 1e-15, "100%"),
    ],
)
def test_a_share_in_percent_reads_like_its_two_decimals(share, words):
    assert display.percent(share) == words
    assert words[0].isalpha() or float(words[:-1]) / 100 == float(f"{share:.2f}")


@pytest.mark.parametrize(("factor", "words"), [(1.004, "1.1"), (2.0, "2.0"), (9.91, "10.0"), (17.1, "18")])
def test_a_factor_is_never_rounded_to_none_at_all(factor, words):
    assert _rounded_up(factor) == words


def value_of(text):
    return float(text.replace(",", "").rstrip("%")) / (100 if text.endswith("%") else 1)


@pytest.mark.parametrize(
    ("value", "form", "least", "most"),
    [
        (1.01000001, ".3f", "1.010", "1.011"),
        (0.0920, ".2f", "0.09", "0.10"),
        (0.0920, ".3f", "0.092", "0.092"),
        (1.00746, ".3f", "1.007", "1.008"),
        (0.5 - 0.42, ".2f", "0.08", "0.08"),  # 0.08 but for the rounding of a difference
        (9.996, ".3g", "9.99", "10"),
        (1201.3, ",.0f", "1,201", "1,202"),
        (0.04831, ".1%", "4.8%", "4.9%"),
        (-0.123, ".2f", "-0.13", "-0.12"),
        (0.0, ".2f", "0.00", "0.00"),
        (np.inf, ".3f", "inf", "inf"),
    ],
)
def test_bounds_are_rounded_outwards(value, form, least, most):
    assert display.at_least(value, form) == least and display.at_most(value, form) == most


@given(st.floats(1e-9, 1e9), st.sampled_from([".0f", ".2f", ".3f", ",.0f", ".2g", ".3g", ".0%", ".2%"]))
def test_a_printed_bound_holds_and_is_the_nearest_one(value, form):
    least, most = value_of(display.at_least(value, form)), value_of(display.at_most(value, form))
    assert least <= value * (1 + 2e-12) and most >= value * (1 - 2e-12)
    nearest = value_of(format(value, form))
    assert least <= nearest * (1 + 1e-12) and most >= nearest * (1 - 1e-12)
    assert nearest == pytest.approx(least, rel=1e-12) or nearest == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "limit", "form", "words"),
    [
        (1.0104, 1.01, ".3f", "1.0104"),
        (1.0096, 1.01, ".3f", "1.0096"),
        (1.013, 1.01, ".3f", "1.013"),
        (1.01, 1.01, ".3f", "1.010"),
        (1399.7, 1400, ",.0f", "1,399.7"),
        (0.1004, 0.1, ".0%", "10.04%"),
    ],
)
def test_a_number_is_never_on_the_other_side_of_its_limit(value, limit, form, words):
    assert display.apart_from(value, limit, form) == words


def test_a_missing_integer_or_name_is_shown_like_other_missing_values():
    table = pd.DataFrame({"n_runs": pd.array([1200, None], "Int64"), "year": pd.array([1987, None], "Int64")})
    table["joined_with"] = pd.Series([3, None], dtype=object)
    assert display.with_decimals(table, "-", ",").values.tolist() == [["1,200", "1987", 3], ["-", "-", "-"]]


@pytest.mark.parametrize(
    ("gap", "words"), [(1e-7, "0.01%"), (0.0041, "0.41%"), (0.0614, "6.2%"), (0.4901, "50%"), (0.9951, "100%")]
)
def test_a_gap_has_no_exponent_and_is_not_too_small(gap, words):
    assert minimum_in_words(gap, 0.5, "bits") == f"at least 0.5 bits ({words} below)"


def test_a_column_has_one_number_of_decimals():
    table = pd.DataFrame(
        {
            "size": [1234, 7],
            "year": [1897, 1898],
            "share": [0.439, 0.08537],
            "rhat": [1.0042, 1.02],
            "loss": [0.01293, 0.0091],
            "ess": [2238.4, np.nan],
            "seconds": [152.34, 0.5],
            "sure": [1.0, 1.0],
            "mcse": [0.25, 0.00003],
            "p": [0.25, 3e-12],
            "none": [0.0, 0.0],
        }
    )
    shown = display.with_decimals(table, "-", ",")
    assert shown.to_dict("list") == {
        "size": ["1,234", "7"],
        "year": [1897, 1898],
        "share": ["0.44", "0.09"],
        "rhat": ["1.004", "1.020"],
        "loss": ["0.013", "0.009"],
        "ess": ["2,238", "-"],
        "seconds": ["152.3", "0.5"],
        "sure": ["1", "1"],
        "mcse": ["0.25000", "0.00003"],
        "p": ["0.25", "3e-12"],
        "none": ["0", "0"],
    }
    assert display.with_decimals(table, "-")["size"].tolist() == ["1234", "7"]


class Result(display.Shown):
    """A result with a title, a line and a table."""

    def __init__(self, title, value, table):
        self.given = title, [("what", value)], table

    def _parts(self):
        return self.given


def test_a_print_fits_80_columns_and_names_the_columns_left_out():
    words = "a sentence of many words " * 8
    table = pd.DataFrame({f"a_long_name_{k}": [k + 0.25] for k in range(8)})
    *lines, last = repr(Result(words, words, table)).splitlines()
    assert max(map(len, lines)) <= 80 and "a_long_name_4" in lines[-2]
    assert last == "  ... more columns: a_long_name_5, a_long_name_6, a_long_name_7"
    wide = pd.DataFrame({"one": ["x" * 90], "two": ["y" * 90]})
    assert "two" in repr(Result("title", "value", wide))


def test_in_html_numbers_are_on_the_right_and_text_is_on_the_left():
    table = pd.DataFrame(
        {"share": [0.5, np.nan], "who": ["<a>", None]}, pd.MultiIndex.from_product([["x"], [1, 2]], names=["l", "c"])
    )
    for markup in (display.as_html(table), Result("title", "value", table)._repr_html_()):
        markup = markup.replace("padding:.2em .6em;", "")
        cells = re.findall(r"<(t[hd]) style='text-align:(\w+)'>([^<]*)", markup.rpartition("<table")[2])
        cells = [cell for cell in cells if cell[2] not in ("", "x", "1", "2")]  # headings of rows
        assert cells == [
            *[("th", "right", "share"), ("th", "left", "who")],
            *[("td", "right", "0.50"), ("td", "left", "&lt;a&gt;"), ("td", "right", "-"), ("td", "left", "-")],
        ]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.84478, 0.0091, "0.845 bits (MCSE 0.009)"),
        (13.912, 0.2243, "13.9 bits (MCSE 0.2)"),
        (0.03642, 0.00014, "0.03642 bits (MCSE 0.00014)"),
        (1523.2, 31.7, "1523 bits (MCSE 32)"),
        (0.5612, 0.0, "0.561 bits (MCSE 0)"),
        (0.5612, np.nan, "0.561 bits (MCSE unknown)"),
    ],
)
def test_an_error_has_the_same_digits_everywhere(value, error, words):
    number, shown = display.rounded(value, error)
    assert f"{number} bits (MCSE {shown})" == display.with_error(value, error, unit="bits") == words
    assert shown == display.error_in_digits(error)


def test_numbers_in_text_are_on_the_right_and_the_verdict_is_bold():
    table = pd.DataFrame({"joined_with": ["1", "0", None], "names": ["a", "1", None]}, dtype=object)
    markup = Result("verdict", "The chains agree: all is well.", table)._repr_html_()
    assert "text-align:right'>joined_with<" in markup and "text-align:left'>names<" in markup
    assert "The chains <b>agree</b>:" in markup
    assert "<b>" not in Result("name", "so they agree", table)._repr_html_()
