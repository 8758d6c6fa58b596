"""What methods refuse as their options."""

import pytest

import posterior_consensus as pc
from tests.helpers import check_all

NO_STARTS = ({"n_starts": 0}, ValueError, "`n_starts`", "at least 1", "got 0")
NO_TOLERANCE = ({"tol": 0}, ValueError, "`tol`", "above 0", "got 0")
NO_STEPS = ({"max_iter": 0}, ValueError, "`max_iter`", "at least 1", "got 0")

REFUSED = {
    "align_and_vote": [NO_STARTS],
    "cc_pivot": [
        NO_STARTS,
        ({"threshold": 1}, ValueError, "`threshold`", "between 0 and 1", "got 1"),
        ({"threshold": 0.0}, ValueError, "`threshold`", "between 0 and 1", "got 0.0"),
        ({"threshold": "auto"}, TypeError, "`threshold`", "number", "'auto'"),
    ],
    "cspa": [NO_STARTS, ({"balanced": "yes"}, TypeError, "`balanced`", "True or False", "'yes'")],
    "exact": [
        ({"loss": "vi"}, ValueError, "Binder's loss only", "'vi'", "'enumeration'", "certify"),
        ({"n_clusters": 2}, ValueError, "neither `n_clusters` nor `max_clusters`", "'greedy'"),
        ({"max_clusters": 2}, ValueError, "neither `n_clusters` nor `max_clusters`"),
        ({"seconds": 0}, ValueError, "`seconds`", "positive", "got 0"),
        ({"n_starts": 2}, TypeError, "'exact'", "seconds", "`n_starts`"),
    ],
    "hbgf": [NO_STARTS],
    "impurity": [NO_STARTS],
    "kcc": [
        NO_STARTS,
        ({"n_starts": 2.0}, TypeError, "`n_starts`", "integer", "2.0"),
        ({"utility": "gini"}, ValueError, "`utility`", "'category', 'entropy', 'cosine', 'lp'", "'gini'"),
        ({"p": 1}, ValueError, "`p`", "above 1", "got 1"),
        ({"p": float("nan")}, ValueError, "`p`", "above 1", "nan"),
        ({"p": "2"}, TypeError, "`p`", "number", "'2'"),
    ],
    "lange_buhmann": [
        NO_STARTS,
        NO_STEPS,
        NO_TOLERANCE,
        ({"max_iter": 1.5}, TypeError, "`max_iter`", "integer", "1.5"),
        ({"tol": None}, TypeError, "`tol`", "number", "None"),
    ],
    "mcla": [NO_STARTS],
    "nmf": [NO_STARTS, NO_STEPS, NO_TOLERANCE],
    "sccc": [
        ({"separation": 3}, ValueError, "`separation`", "between 0", "draws, 2", "got 3"),
        ({"separation": -1}, ValueError, "`separation`", "between 0", "-1"),
        ({"separation": 1.5}, TypeError, "`separation`", "integer", "1.5"),
        ({"threshold": 1}, ValueError, "`threshold`", "below 1", "got 1"),
        ({"threshold": "auto"}, TypeError, "`threshold`", "number", "'auto'"),
        ({"separation": 1, "threshold": 0.5}, ValueError, "`separation` or `threshold`", "None"),
    ],
    "sdp": [
        ({"seconds": 0}, ValueError, "`seconds`", "got 0"),
        ({"seconds": "1"}, TypeError, "`seconds`", "'1'"),
    ],
    "spectral": [
        NO_STARTS,
        ({"affinity": "psm"}, ValueError, "`affinity`", "None", "'association', 'rbf'", "'psm'"),
        ({"affinity": "rbf", "gamma": 0}, ValueError, "`gamma`", "above 0", "got 0"),
        ({"affinity": "rbf", "gamma": "1"}, TypeError, "`gamma`", "number", "'1'"),
    ],
}


@pytest.mark.parametrize("method", REFUSED)
def test_options_are_checked(method):
    def find(options):
        pc.consensus_partition([[0, 0, 1], [0, 1, 1]], method=method, **({"loss": "binder"} | options))

    check_all(find, REFUSED[method])
