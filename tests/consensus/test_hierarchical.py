import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

import posterior_consensus as pc
from posterior_consensus.search.classical import cut, tree
from tests import reference
from tests.catalogue.posteriors import noisy_draws

LINKAGES = ["average", "complete"]


@pytest.mark.parametrize("loss", pc.LOSSES)
def test_the_best_cut_of_the_tree(loss):
    rng = np.random.default_rng(1)
    labels, weights = noisy_draws(rng, 40, 14, 4, 0.4), rng.exponential(size=40)
    draws = pc.as_partition_draws(labels, weights=weights)
    distances = squareform(1 - reference.similarity(labels, weights), checks=False)
    for linkage in LINKAGES:
        result = pc.consensus_partition(draws, loss=loss, method="hierarchical", linkage=linkage, max_clusters=14)
        merges = hierarchy.linkage(distances, linkage)
        cuts = [hierarchy.fcluster(merges, k, "maxclust") for k in range(1, 15)]
        losses = [reference.expected(cut, labels, reference.LOSSES[loss], weights) for cut in cuts]
        np.testing.assert_allclose(result.info.expected_losses, losses, atol=1e-12)
        assert reference.same(result.labels.values, cuts[int(np.argmin(losses))])


@pytest.mark.parametrize("n_items", [2, 7, 300])
def test_every_cut_is_scipys(n_items):
    distances = pdist(np.random.default_rng(n_items).normal(size=(n_items, 2)))
    numbers = sorted({1, n_items // 2 + 1, n_items})
    for linkage in LINKAGES:
        merges = tree(1 - squareform(distances), linkage)
        expected = hierarchy.cut_tree(hierarchy.linkage(distances, linkage), numbers[::-1])[:, ::-1]
        for found, wanted in zip(cut(merges, numbers), expected.T, strict=True):
            assert reference.same(found, wanted)


def test_all_items_apart_is_among_the_cuts():
    result = pc.consensus_partition(np.tile(np.arange(6), (5, 1)), method="hierarchical")
    np.testing.assert_array_equal(result.labels, np.arange(6))
