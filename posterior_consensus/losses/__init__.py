"""Losses between two partitions, and losses of a partition given a similarity matrix."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
