"""Priors on partitions: the log prior of every draw, and the prior of the number of clusters."""

from posterior_consensus.priors.exchangeable import (
    crp,
    dirichlet_multinomial,
    mixture_of_finite_mixtures,
    pitman_yor,
)
from posterior_consensus.priors.record import PartitionPrior
from posterior_consensus.priors.sticks import stick_breaking

__all__ = [
    "PartitionPrior",
    "crp",
    "dirichlet_multinomial",
    "mixture_of_finite_mixtures",
    "pitman_yor",
    "stick_breaking",
]
