import numpy as np
import pytest

from posterior_consensus.kernels import ensemble
from tests import reference
from tests.kernels.checks import run


@pytest.mark.parametrize(
    ("n_draws", "n_items", "n_codes", "dtype"),
    [(1, 1, 1, np.uint8), (5, 9, 4, np.uint8), (3, 400, 300, np.uint16), (4, 6, 5000, np.uint16)],
)
def test_labels_are_numbered_by_first_appearance(n_draws, n_items, n_codes, dtype):
    codes = np.random.default_rng(1).integers(n_codes, size=(n_draws, n_items)).astype(dtype)
    n_clusters, (_, _, labels) = run(ensemble.canonicalise, codes, n_codes, np.empty_like(codes))
    np.testing.assert_array_equal(labels, [reference.canonical(row) for row in codes])
    np.testing.assert_array_equal(n_clusters, [np.unique(row).size for row in codes])
