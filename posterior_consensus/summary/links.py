"""Sentences of a summary on many small clusters: numbers of each size, and uncertain links."""

import numpy as np

from posterior_consensus.answers.links import MANY, SMALL, SURE, UNLIKELY, Links, range_of
from posterior_consensus.results import display
from posterior_consensus.summary.record import SummaryRecord

_MOST_SIZES = 4  # sizes named in a sentence
_WHY = f"there are more than {MANY} clusters, and most items are in clusters of at most {SMALL}"
_NAMES = {"1": "singletons", "2": "pairs", "3": "triples"}


def links_in_short(links: Links) -> str:
    """Numbers of links, and the reason for showing them."""
    sure, uncertain, _ = links.n_by_certainty
    return (
        f"{sure:,} with a probability above {SURE:g} and {uncertain:,} uncertain ones, shown instead of clusters "
        f"because {_WHY}; `links.uncertain` lists the uncertain ones"
    )


def of_links(summary: SummaryRecord) -> list[str]:
    """Sentences on sizes, links, and the first candidates for joining."""
    links = summary.links
    if links is None:
        return []
    sure, uncertain, _ = links.n_by_certainty
    probability = links.pairs["probability"].values
    within = int(np.sum(links.within & (probability >= UNLIKELY) & (probability <= SURE)))
    here = (
        f", {'all' if within == uncertain else f'{within:,}'} of which the partition co-clusters" if uncertain else ""
    )
    return [
        f"Figures and tables show links, which are pairs of items in one cluster, because {_WHY}.",
        _by_size(links),
        f"{display.counted(sure, 'link')} {'has' if sure == 1 else 'have'} a probability above {SURE:g}, and "
        f"{uncertain:,} a probability from {UNLIKELY:g} to {SURE:g}{here}.",
        *_nearest(summary, links),
    ]


def _by_size(links: Links) -> str:
    """Intervals of the numbers of clusters of the smallest sizes."""
    names = {size: _NAMES.get(size, f"clusters of {size} items") for size in links.sizes["size"].values[:-1]}
    parts = [f"{range_of(links.sizes.sel(size=size))} {name}" for size, name in names.items()]
    return f"There are {display.joined(parts[:_MOST_SIZES])} (central 90% intervals)."


def _nearest(summary: SummaryRecord, links: Links) -> list[str]:
    """The two clusters whose items have the most probable links."""
    joined = links.between_clusters()
    if joined.empty:
        return []
    members = summary.consensus.clusters
    first, second = (display.listed(members[joined[end].iloc[0]], SMALL) for end in ("first_cluster", "second_cluster"))
    return [
        f"The first candidates for joining are the clusters of {first} and of {second}: the links between them have a "
        f"mean probability of {joined['probability'].iloc[0]:.2f}."
    ]
