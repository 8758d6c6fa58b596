"""Priors on partitions: log prior of draws, and prior distribution of the number of clusters."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
