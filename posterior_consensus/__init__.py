"""From MCMC draws of a Bayesian clustering to a partition one can report."""

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # so that the import itself costs milliseconds


def __getattr__(name: str) -> object:
    if name in __all__:
        return _load(name)
    from posterior_consensus.runtime.guesses import no_public_name

    raise no_public_name(__name__, name, __all__)
