"""Registry of consensus methods by name."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from posterior_consensus.consensus.candidates import best_draw, cc_pivot, enumeration, hierarchical, sccc
from posterior_consensus.consensus.factors import lange_buhmann, nmf
from posterior_consensus.consensus.graphs import basic, cspa, hbgf, spectral
from posterior_consensus.consensus.impurity import impurity
from posterior_consensus.consensus.one_hot import kcc, sdp
from posterior_consensus.consensus.perturbation.fit import rpm_em
from posterior_consensus.consensus.searches import boem, exact, greedy
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.consensus.votes import align_and_vote, mcla
from posterior_consensus.losses.lookup import factories
from posterior_consensus.runtime.names import did_you_mean


class Method(NamedTuple):
    """A method, ``function(draws, loss, task, *, ...) -> Candidate``, and whether it needs draws under every loss."""

    function: Callable[..., Candidate]
    needs_draws: bool = False


METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "hierarchical": Method(hierarchical),
    "best_draw": Method(best_draw, needs_draws=True),
    "basic": Method(basic),
    "spectral": Method(spectral),
    "kcc": Method(kcc, needs_draws=True),
    "sdp": Method(sdp),
    "impurity": Method(impurity, needs_draws=True),
    "cc_pivot": Method(cc_pivot),
    "boem": Method(boem),
    "align_and_vote": Method(align_and_vote, needs_draws=True),
    "lange_buhmann": Method(lange_buhmann),
    "rpm_em": Method(rpm_em, needs_draws=True),
    "cspa": Method(cspa),
    "mcla": Method(mcla, needs_draws=True),
    "hbgf": Method(hbgf, needs_draws=True),
    "nmf": Method(nmf),
    "sccc": Method(sccc),
    "enumeration": Method(enumeration),
    "exact": Method(exact),
}
"""Methods by name; their functions take ``draws, loss, task, *, ...``."""


def as_method(method: Any) -> tuple[Callable[..., Candidate], str, bool]:
    """Look up a method by name, or accept a function; return the function, its name, and whether it needs draws."""
    if callable(method):
        return method, getattr(method, "__name__", type(method).__name__), False  # it asks for draws itself
    if not isinstance(method, str):
        raise TypeError(f"`method` must be a name or a function; got {method!r}.")
    if method not in METHODS:
        names, is_loss = ", ".join(map(repr, METHODS)), method.lower() in factories()
        hint = f" That is a loss: loss={method!r}." if is_loss else did_you_mean(method, METHODS)
        raise ValueError(f"`method` must be a function or one of {names}; got {method!r}.{hint}")
    return METHODS[method].function, method, METHODS[method].needs_draws


def takes(method: Any, option: str) -> bool:
    """Whether a method accepts this option."""
    own = own_options(as_method(method)[0])
    return own is None or option in own


def own_options(function: Callable[..., Candidate]) -> list[str] | None:
    """Options of a method; None if it accepts any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def check_no_method(loss: Any) -> None:
    """Raise ValueError if `loss` is the name of a method."""
    if isinstance(loss, str) and loss in METHODS:
        raise ValueError(
            f"`loss` must be a loss, such as 'vi' or 'binder'; got {loss!r}, which is a method: give method={loss!r}."
        )
