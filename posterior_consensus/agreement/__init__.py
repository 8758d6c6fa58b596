"""Agreement between clusterings: its index, partitions along a penalty on disagreement, and co-clustering."""

from posterior_consensus.runtime.names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
