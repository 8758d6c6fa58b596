import numpy as np

import posterior_consensus as pc
from posterior_consensus.losses.partition_losses import PAIR_LOSSES
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.search.item_terms import OnItemTerms


def test_an_item_of_a_shared_cluster_moves_where_there_are_no_more_clusters_than_there_must_be():
    apart = np.kron(np.eye(2), np.full((3, 3), 0.9)) + 0.02
    np.fill_diagonal(apart, 1.0)
    source = pc.as_pair_similarity(apart)
    problem = Problem(source, PAIR_LOSSES["vi_lower_bound"](), ClusterLimits(n_clusters=2))
    local = OnItemTerms(problem, np.zeros(1, np.uint8))
    found = local.descend(np.array([0, 0, 1, 1, 1, 1], np.int32))
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 1, 1, 1])
