"""The methods by name."""

from __future__ import annotations

from collections.abc import Callable

from posterior_consensus.consensus.align_and_vote import align_and_vote
from posterior_consensus.consensus.basic import basic
from posterior_consensus.consensus.best_draw import best_draw
from posterior_consensus.consensus.boem import boem
from posterior_consensus.consensus.cc_pivot import cc_pivot
from posterior_consensus.consensus.enumeration import enumeration
from posterior_consensus.consensus.exact import exact
from posterior_consensus.consensus.greedy import greedy
from posterior_consensus.consensus.hierarchical import hierarchical
from posterior_consensus.consensus.kcc import kcc
from posterior_consensus.consensus.lange_buhmann import lange_buhmann
from posterior_consensus.consensus.rpm_em import rpm_em
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.consensus.spectral import spectral

METHODS: dict[str, Callable[..., Candidate]] = {
    "greedy": greedy,
    "hierarchical": hierarchical,
    "best_draw": best_draw,
    "basic": basic,
    "spectral": spectral,
    "kcc": kcc,
    "cc_pivot": cc_pivot,
    "boem": boem,
    "align_and_vote": align_and_vote,
    "lange_buhmann": lange_buhmann,
    "rpm_em": rpm_em,
    "enumeration": enumeration,
    "exact": exact,
}
"""Methods by name: ``method(draws, loss, *, n_clusters, max_clusters, rng, progressbar, ...) -> Candidate``."""
