"""Free memberships: each pass is the slow one, compiled or not, and ends where nothing changes."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax

from posterior_consensus.kernels.pair_moves import settle_memberships
from tests.kernels.checks import plain


@pytest.mark.parametrize("kernel", [settle_memberships, plain(settle_memberships)])
def test_passes_are_those_of_the_definition(kernel):
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(9, 9)) * (rng.random((9, 9)) < 0.5), 1)
    weights += weights.T
    odds, soft = np.log([0.5, 0.3, 0.2]), rng.dirichlet(np.ones(3), 9)
    links, found, slow = csr_array(weights), soft.copy(), soft.copy()
    assert kernel(links.data, links.indices, links.indptr, odds, found, 2, 0.0) == 2
    for _ in range(2):
        for i in range(9):
            slow[i] = softmax(odds + weights[i] @ slow)
    np.testing.assert_allclose(found, slow, rtol=1e-12)
    passes = kernel(links.data, links.indices, links.indptr, odds, found, 1000, 1e-12)
    assert passes < 1000
    np.testing.assert_allclose(found, softmax(odds + weights @ found, axis=1), atol=1e-10)
