"""Constraints of several uncertain experts: shared views, reliability of experts, and the clusters of each view."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
