"""plot_items_map shows each place once, by how many items are there."""

import numpy as np

import posterior_consensus as pc


def test_items_of_a_cluster_at_one_place_are_one_larger_point():
    draws, partition = [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], [0, 0, 0, 1]
    points, *exemplars = pc.plot_items_map(draws, partition).collections
    np.testing.assert_allclose(points.get_offsets(), pc.item_embedding(draws, n_axes=2).values[[0, 3]])
    np.testing.assert_allclose(points.get_sizes()[0] / points.get_sizes()[1], np.sqrt(3))
    assert len(exemplars) == 2
