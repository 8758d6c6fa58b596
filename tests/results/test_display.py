"""Numbers in words."""

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


def test_a_missing_integer_is_named_like_other_missing_values():
    table = pd.DataFrame({"n_runs": pd.array([1200, None], "Int64"), "year": pd.array([1987, None], "Int64")})
    assert display.with_decimals(table, "-", ",").values.tolist() == [["1,200", "1987"], ["-", "-"]]


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
            "ess": [2238.4, np.nan],
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
        "share": ["0.4390", "0.0854"],
        "ess": ["2,238", "-"],
        "sure": ["1", "1"],
        "mcse": ["0.25000", "0.00003"],
        "p": ["0.25", "3e-12"],
        "none": ["0", "0"],
    }
    assert display.with_decimals(table, "-")["size"].tolist() == ["1234", "7"]
