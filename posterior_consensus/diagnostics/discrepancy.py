"""Maximum mean discrepancy between samples of partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.kernels import contingency
from posterior_consensus.losses.partition_losses import binder

Floats = npt.NDArray[np.float64]


def gaussian_kernel(labels: npt.NDArray[Any], n_clusters: npt.NDArray[np.int64]) -> tuple[Floats, float]:
    """exp(-d / median d) for Binder's loss d between all pairs of canonical label vectors (m, n), and the median.

    If more than half of the pairs are equal, the mean takes the place of the median.
    """
    loss, n_items = binder(), labels.shape[1]
    h = loss.h(n_items)
    rows, others = np.triu_indices(len(labels), 1)
    joint = contingency.all_joint_sums(labels, n_clusters, h)[rows, others]
    own = contingency.size_sums(labels, n_clusters, h)
    distances = loss.scale(n_items) * (own[rows] + own[others] - 2 * joint)
    bandwidth = float(np.median(distances)) or float(distances.mean())
    kernel = np.eye(len(labels))
    kernel[rows, others] = kernel[others, rows] = np.exp(-distances / bandwidth) if bandwidth > 0 else 1.0
    return kernel, bandwidth


def squared_discrepancies(kernel: Floats, ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> Floats:
    """Unbiased squared maximum mean discrepancy (R,) of two samples each.

    Parameters
    ----------
    kernel : ndarray of shape (m, m)
    ours, theirs : ndarray of shape (R, m)
        Who belongs to either sample.
    """
    off_diagonal = kernel - np.diag(np.diag(kernel))
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    n_one, n_other = one.sum(axis=1), other.sum(axis=1)
    ours_to_all, theirs_to_all = one @ off_diagonal, other @ off_diagonal
    within = np.sum(ours_to_all * one, axis=1) / (n_one * (n_one - 1))
    within += np.sum(theirs_to_all * other, axis=1) / (n_other * (n_other - 1))
    return within - 2 * np.sum(ours_to_all * other, axis=1) / (n_one * n_other)
