"""Agreement between clusterings: how much there is, what more of it costs, and how co-clusterings find it."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
