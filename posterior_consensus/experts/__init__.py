"""Statements of several uncertain experts: who shares a view, who is reliable, and the clusters of each view."""

from posterior_consensus.runtime.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
