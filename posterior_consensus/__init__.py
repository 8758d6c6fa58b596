"""From MCMC draws of a Bayesian clustering to a partition one can report."""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(
    __name__, __file__
)  # so that the import itself costs milliseconds
