"""The methods by name."""

from __future__ import annotations

from collections.abc import Callable

from posterior_consensus.consensus.basic import basic
from posterior_consensus.consensus.best_draw import best_draw
from posterior_consensus.consensus.enumeration import enumeration
from posterior_consensus.consensus.exact import exact
from posterior_consensus.consensus.greedy import greedy
from posterior_consensus.consensus.hierarchical import hierarchical
from posterior_consensus.consensus.rpm_em import rpm_em
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.consensus.spectral import spectral

METHODS: dict[str, Callable[..., Candidate]] = {
    "greedy": greedy,
    "hierarchical": hierarchical,
    "best_draw": best_draw,
    "basic": basic,
    "spectral": spectral,
    "rpm_em": rpm_em,
    "enumeration": enumeration,
    "exact": exact,
}
"""Methods by name: ``method(draws, loss, *, n_clusters, max_clusters, rng, progressbar, ...) -> Candidate``."""
