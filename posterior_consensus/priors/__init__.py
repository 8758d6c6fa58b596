"""Priors on partitions: the log prior of every draw, and the prior of the number of clusters."""

from posterior_consensus.runtime.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
