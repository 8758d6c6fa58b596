"""How far an estimate is from the truth: the distance that the theory of consensus clustering bounds."""

from __future__ import annotations

from typing import Any

from scipy.optimize import linear_sum_assignment

from posterior_consensus.ensemble.partitions import contingency_table
from posterior_consensus.evaluate.expectation import two_partitions


def misclassification_distance(partition: Any, reference: Any) -> float:
    """Minimum share of items labelled differently over all matchings of two partitions' clusters.

    Parameters
    ----------
    partition, reference : array_like of shape (n_items,), DataArray or result object

    Returns
    -------
    float
        1 - max over one-to-one matchings of sum n_{k, match(k)} / n, in [0, 1); items of unmatched clusters count as
        errors. A metric on partitions [1]_.

    Raises
    ------
    ValueError
        If the two have different numbers of items, or labels are missing, negative or not integers.

    References
    ----------
    .. [1] Meila and Heckerman (2001), Machine Learning 42, 9-29. https://doi.org/10.1023/A:1007648401407

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.simulate.misclassification_distance([0, 0, 1, 1], [1, 1, 1, 0])
    0.25
    """
    ours, theirs = two_partitions(partition, reference)
    table = contingency_table(ours, theirs)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return 1.0 - float(table[rows, columns].sum()) / ours.size
