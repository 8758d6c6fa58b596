"""Sections of a report on many small clusters: links, sizes, and clusters that could be joined."""

from __future__ import annotations

from posterior_consensus.plots.four_panels import link_panels
from posterior_consensus.results import display
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.still import figure, folded, table

_SHOWN = 15  # rows
_MOST = 1000  # rows folded away
_TEXT = (
    "a: clusters by size, posterior and partition. b: number of clusters. c: links by probability. d: the most "
    "uncertain links, with two Monte Carlo standard errors."
)


def of_links(summary: SummaryRecord) -> dict[str, list[str]]:
    """Return the sections by heading; none if clusters are few or large."""
    links = summary.links
    if links is None:
        return {}
    uncertain, joined = links.uncertain, links.between_clusters().head(_SHOWN)
    listed = [table(uncertain.head(_SHOWN))]
    if len(uncertain) > _SHOWN:
        rows = uncertain.head(_MOST)
        listed.append(folded(f"{len(rows):,} of {display.counted(len(uncertain), 'uncertain link')}", table(rows)))
    return {
        "Links": [figure(link_panels, summary.draws, links, text=_TEXT)],
        "Uncertain links": listed,
        "Clusters that could be joined": [table(joined)],
        "Clusters by size": [table(links.sizes.to_dataframe().dropna(axis="columns", how="all"))],
    }
