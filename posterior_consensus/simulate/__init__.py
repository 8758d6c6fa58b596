"""Draws with known truth: the random perturbation model. What it limits is in `theory`."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
