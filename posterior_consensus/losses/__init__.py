"""The losses: what an estimate is judged by."""

from posterior_consensus.losses.pair_losses import PAIR_LOSSES, pear, vi_lower_bound, within_variance
from posterior_consensus.losses.partition_losses import (
    LOSSES,
    binder,
    information_distance,
    jaccard,
    nid,
    nmi,
    nvi,
    one_minus_ari,
    vi,
)
from posterior_consensus.losses.record import Loss, PairLoss, PartitionLoss

__all__ = [
    "LOSSES",
    "PAIR_LOSSES",
    "Loss",
    "PairLoss",
    "PartitionLoss",
    "binder",
    "information_distance",
    "jaccard",
    "nid",
    "nmi",
    "nvi",
    "one_minus_ari",
    "pear",
    "vi",
    "vi_lower_bound",
    "within_variance",
]
