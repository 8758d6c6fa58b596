import numpy as np

import posterior_consensus as pc
from posterior_consensus.losses import PAIR_LOSSES
from posterior_consensus.search.forms import Found, Limits
from posterior_consensus.search.item_terms import OnItemTerms
from posterior_consensus.search.runs import Runs


def test_an_item_of_a_shared_cluster_moves_where_there_are_no_more_clusters_than_there_must_be():
    apart = np.kron(np.eye(2), np.full((3, 3), 0.9)) + 0.02
    np.fill_diagonal(apart, 1.0)
    source = pc.as_pair_similarity(apart)
    form = OnItemTerms(source, PAIR_LOSSES["vi_lower_bound"](), Limits(2, 6), np.zeros(1, np.uint8))
    found = form.polish(np.array([0, 0, 1, 1, 1, 1], np.int32))
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 1, 1, 1])


def test_runs_in_vain_are_those_after_the_first_that_reached_the_minimum():
    runs = Runs(None, None, pc.as_partition_draws([[0, 0, 1], [0, 1, 1]]))
    runs._ends = {b"": Found(np.zeros(3, np.int32), 1.0, 2.0, np.zeros(6, np.int64))}
    runs.values = [2.0, 1.0, 1.5, 1.0, 1.2]
    assert (runs.n_in_vain, runs.n_at_best) == (3, 2)
