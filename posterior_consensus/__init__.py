"""From MCMC draws of a Bayesian clustering to a partition one can report."""

from posterior_consensus.runtime.lazy import public_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
