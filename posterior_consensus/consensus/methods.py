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
from posterior_consensus.losses.record import Need
from posterior_consensus.runtime.names import did_you_mean


class Method(NamedTuple):
    """A method, ``function(draws, loss, task, *, ...) -> Candidate``, and its needs: draws or pairs.

    These are its needs under every loss. A loss has needs of its own (`Loss.needs`), and the stronger of the two count.
    """

    function: Callable[..., Candidate]
    needs: Need


METHODS: dict[str, Method] = {
    "greedy": Method(greedy, "pairs"),
    "hierarchical": Method(hierarchical, "pairs"),
    "best_draw": Method(best_draw, "draws"),
    "basic": Method(basic, "pairs"),
    "spectral": Method(spectral, "pairs"),
    "kcc": Method(kcc, "draws"),
    "sdp": Method(sdp, "pairs"),
    "impurity": Method(impurity, "draws"),
    "cc_pivot": Method(cc_pivot, "pairs"),
    "boem": Method(boem, "pairs"),
    "align_and_vote": Method(align_and_vote, "draws"),
    "lange_buhmann": Method(lange_buhmann, "pairs"),
    "rpm_em": Method(rpm_em, "draws"),
    "cspa": Method(cspa, "pairs"),
    "mcla": Method(mcla, "draws"),
    "hbgf": Method(hbgf, "draws"),
    "nmf": Method(nmf, "pairs"),
    "sccc": Method(sccc, "pairs"),
    "enumeration": Method(enumeration, "pairs"),
    "exact": Method(exact, "pairs"),
}
"""Methods by name; their functions take ``draws, loss, task, *, ...``."""


def as_method(method: Any) -> tuple[Callable[..., Candidate], str, Need]:
    """Look up a method by name, or accept a function; return the function, its name and its needs."""
    if callable(method):
        return method, getattr(method, "__name__", type(method).__name__), "pairs"  # it checks its needs itself
    if not isinstance(method, str):
        raise TypeError(f"`method` must be a name or a function; got {method!r}.")
    if method not in METHODS:
        names, is_loss = ", ".join(map(repr, METHODS)), method.lower() in factories()
        hint = f" That is a loss: loss={method!r}." if is_loss else did_you_mean(method, METHODS)
        raise ValueError(f"`method` must be a function or one of {names}; got {method!r}.{hint}")
    return METHODS[method].function, method, METHODS[method].needs


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
