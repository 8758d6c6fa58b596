"""Numbers in words."""

import pytest

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
