"""Static sections of a report: tables and figures."""

import base64
import html
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.cluster_stability import SHOWN, ClusterStability
from posterior_consensus.answers.contrast import contrast
from posterior_consensus.answers.links import MANY
from posterior_consensus.ensemble.items import Items
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.plots.data import plot_data
from posterior_consensus.plots.draws import plot_traces
from posterior_consensus.plots.four_panels import link_panels, number_or_sizes
from posterior_consensus.plots.frame import as_png
from posterior_consensus.plots.items import plot_item_uncertainty
from posterior_consensus.plots.layers import (
    plot_layer_distances,
    plot_layer_items,
    plot_layer_stability,
    plot_layers,
)
from posterior_consensus.plots.maps import plot_draws_map
from posterior_consensus.plots.profiles import plot_cluster_profiles, plot_cluster_stability, plot_contrast
from posterior_consensus.plots.psm import plot_psm
from posterior_consensus.plots.strips import plot_credible_ball, plot_particles
from posterior_consensus.results import display
from posterior_consensus.summary.record import SummaryRecord

_MOST_LISTED = 20_000  # items listed by name
_NUMBER = "Number of clusters, by {chain}."
_SIZES = "Sizes of the clusters, the largest first; all {draws} have the same number of clusters."
_OF_EACH_CLUSTER = (
    "Share of the {draws} in which each cluster is found (bars, with two standard errors), in which it is one with "
    "another cluster (points, in its colour), and mean Jaccard similarity, also by chance."
)
_OF_ITEMS = "Items: mean {similarity} {to} the rest of their cluster, and {to} the nearest other cluster."
_MOST_CHAINS = 8  # similarity matrices side by side
_MOST_LINKS, _MOST_FOLDED = 15, 1000  # rows of uncertain links shown and folded
_STABILITY = "Stability of each layer, its numbers of clusters, and the clusters of its consensus partition."
_LINKS = (
    "a: clusters by size, {posterior} and partition. b: number of clusters. c: links by {similarity}. d: the most "
    "uncertain links, with two {error}s."
)
_GREY = 4  # reciprocal of the chroma above which a colour is not grey


def figures(summary: SummaryRecord) -> dict[str, list[str]]:
    """Return the figures by heading; with links, omit figures with a block or bar per cluster."""
    sections = {} if summary.links is not None else _of_clusters(summary)
    words, samples = summary.words, summary.draws.samples
    agree = f"Agreement of the {words.chains if samples.has_chains else words.draws}"
    sections[agree] = list(_of_chains(summary))
    if summary.modes is not None and summary.modes.n_particles > 1:
        groups = f"{words.group}s of {words.draws}"
        sections[display.capitalized(groups)] = [
            spoken_table(summary, summary.modes.to_dataframe()),
            figure(plot_particles, summary.modes, text=f"The partitions of the {groups}, with their weights."),
        ]
    if summary.observed is not None:
        sections["The data by cluster"] = list(_of_data(summary, summary.observed))
    return sections


def _of_chains(summary: SummaryRecord) -> Iterator[str]:
    draws, best, words = summary.draws, summary.partition, summary.words
    if draws.samples.series:  # runs have no order to follow
        yield figure(plot_traces, summary.diagnosis, text="Scalar summaries of the partition along each chain.")
    if summary.links is None and 1 < len(draws.samples.chains) <= _MOST_CHAINS:
        yield figure(plot_psm, draws, best, by="chain", text=f"The similarity matrix of each {words.chain}.")
    yield figure(plot_draws_map, draws, best, ball=summary.ball, text=f"Map of the {words.draws} by their distances.")


def _of_data(summary: SummaryRecord, values: xr.DataArray) -> Iterator[str]:
    best = summary.partition
    if values.notnull().all([dim for dim in values.dims if dim != summary.draws.items.dim]).any():
        words = summary.words
        mean = f"each item's mean {words.similarity} {words.to} the rest of its cluster"
        text = f"Observed {values.name}, and {mean}."
        yield figure(plot_data, values, best, items=summary.items, text=text)
    yield figure(plot_cluster_profiles, values, best, text=f"Observed {values.name}, cluster by cluster.")


def of_links(summary: SummaryRecord) -> dict[str, list[str]]:
    """Return the sections on links, sizes and candidates for joining; none if clusters are few or large."""
    links = summary.links
    if links is None:
        return {}
    uncertain = links.uncertain
    listed = [spoken_table(summary, uncertain.head(_MOST_LINKS))]
    if len(uncertain) > _MOST_LINKS:
        rows = uncertain.head(_MOST_FOLDED)
        title = f"{len(rows):,} of {display.counted(len(uncertain), 'uncertain link')}"
        listed.append(folded(title, spoken_table(summary, rows)))
    return {
        "Links": [figure(link_panels, summary.draws, links, text=_spoken(_LINKS, summary))],
        "Uncertain links": listed,
        "Clusters that could be joined": [spoken_table(summary, links.between_clusters().head(_MOST_LINKS))],
        "Clusters by size": [spoken_table(summary, links.sizes.to_dataframe().dropna(axis="columns", how="all"))],
    }


def of_contrast(summary: SummaryRecord, y: Any) -> dict[str, str]:
    """Return the section on what differs between the clusters in `y`; none without it."""
    if y is None:
        return {}
    found = contrast(summary, y=y)
    parts = [
        figure(plot_contrast, found, text=f"{found.name} by cluster with {found.prob:.0%} intervals."),
        table_as_html(found.to_dataframe()),
        folded("Differences between clusters", table_as_html(found.differences.to_dataframe())),
        f"<p>{html.escape(found.in_words())}</p>",
    ]
    return {f"What differs between clusters: {found.name}": "".join(parts)}


def of_layers(comparison: LayerComparison | LayerStability) -> tuple[str, str]:
    """Return the figures of distances, or of stability, and of flows between layers."""
    if len(comparison.layers) == 1:
        return "", ""
    if isinstance(comparison, LayerStability):
        items = figure(plot_layer_items, comparison.partitions, text="Cluster of each item in each layer.")
        return figure(plot_layer_stability, comparison, text=_STABILITY), items
    return (
        figure(plot_layer_distances, comparison, text="Expected distances in the same draw."),
        figure(plot_layers, comparison, text="Clusters of each layer, and the expected numbers of items between them.")
        + figure(plot_layer_items, comparison, text="Cluster of each item in each layer."),
    )


def _of_clusters(summary: SummaryRecord) -> dict[str, list[str]]:
    """Return the figures of matrices and bars."""
    draws, best, words, clusters = summary.draws, summary.partition, summary.words, summary.clusters
    matrix = f"{display.capitalized(words.similarity)} matrix; the clusters are outlined."
    numbers = _spoken(_NUMBER if np.ptp(draws.n_clusters) else _SIZES, summary)
    return {
        pairs_heading(summary): [figure(plot_psm, draws, best, text=matrix)],
        "Uncertainty of the partition": [
            figure(plot_credible_ball, summary.ball, text=f"The partition and the bounds of its {words.ball}."),
            figure(number_or_sizes, draws, best, text=numbers),
            figure(plot_item_uncertainty, summary.items, text=_spoken(_OF_ITEMS, summary)),
        ],
        **({} if clusters is None else {"Where each cluster is found": _of_each_cluster(summary, clusters)}),
    }


def _of_each_cluster(summary: SummaryRecord, clusters: ClusterStability) -> list[str]:
    """Return the figure of the draws that have each cluster, and its table."""
    table = spoken_table(summary, clusters.to_dataframe()[list(SHOWN)])
    shown = figure(plot_cluster_stability, clusters, text=_spoken(_OF_EACH_CLUSTER, summary))
    return [shown, folded("Table", table) if len(clusters.names) > MANY else table]


def pairs_heading(summary: SummaryRecord) -> str:
    """Heading of the similarity matrix."""
    return f"{display.capitalized(summary.words.similarity)} of pairs"


def _spoken(template: str, summary: SummaryRecord) -> str:
    """A caption in the words for draws or for runs."""
    words = summary.words
    return template.format(**words._asdict(), draws=words.draws)


def figure(plot: Callable[..., Any], *arguments: Any, text: str, **options: Any) -> str:
    """Embed a plot in the page as an image, with a version for dark screens."""
    data, caption = as_png(plot(*arguments, **options)), html.escape(text)
    images = "".join(
        f'<img alt="{caption}" src="data:image/png;base64,{base64.b64encode(one).decode("ascii")}" class="{kind}">'
        for kind, one in (("light", data), ("dark", _on_dark(data, is_map=plot is plot_psm)))
    )
    return f"<figure>{images}<figcaption>{caption}</figcaption></figure>"


def _on_dark(png: bytes, *, is_map: bool) -> bytes:
    """Image for a dark background: greys are inverted, colours stay; in a map, lightness is inverted."""
    from PIL import Image

    values = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).copy()
    colour = values[..., :3].astype(np.int32)
    lightest, darkest = colour.max(axis=-1, keepdims=True), colour.min(axis=-1, keepdims=True)
    inverted = 255 - (lightest + darkest - colour if is_map else colour)
    share = 1.0 if is_map else np.maximum(0.0, 1.0 - _GREY * (lightest - darkest) / 255)
    values[..., :3] = np.rint(share * inverted + (1.0 - share) * colour)
    buffer = io.BytesIO()
    Image.fromarray(values).quantize(method=Image.Quantize.FASTOCTREE).save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def table_as_html(frame: pd.DataFrame) -> str:
    """Return a table as HTML."""
    return display.as_html(frame)


def spoken_table(summary: SummaryRecord, frame: pd.DataFrame) -> str:
    """Return a table as HTML whose columns and rows are called as runs are, if the draws are runs."""
    if summary.draws.samples.series:
        return table_as_html(frame)
    words = summary.words
    columns = {"probability": words.probability, "mcse": words.mcse}
    return table_as_html(frame.rename(columns=columns, index={"draws": words.draws}))


def folded(title: str, body: str, *, is_open: bool = False) -> str:
    """Return a section that a click unfolds."""
    return f"<details{' open' * is_open}><summary>{title}</summary>{body}</details>"


def clusters_as_html(summary: SummaryRecord) -> str:
    """Return the table of clusters, folded if there are many, and their items."""
    rows, number = table_as_html(summary.to_dataframe()), summary.partition.n_clusters
    return (folded(display.counted(number, "cluster"), rows) if number > MANY else rows) + _members(summary)


def _members(summary: SummaryRecord) -> str:
    """Return the items of each cluster, folded."""
    items = summary.draws.items
    labels, names, *_ = items.clusters_of(summary.partition)
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    most = labels.size if labels.size <= _MOST_LISTED else max(1, _MOST_LISTED // len(parts))
    rows = "".join(
        f"<tr><th>{html.escape(str(name))}</th>"
        f"<td style='text-align:left'>{_names_as_html(items, members, most)}</td></tr>"
        for name, members in zip(names, parts, strict=True)
    )
    title = "All items by cluster" if most == labels.size else f"The first {most:,} items of each cluster"
    return folded(title, f"<table>{rows}</table>")


def _names_as_html(items: Items, members: npt.NDArray[np.intp], most: int) -> str:
    """Return names as HTML, isolated so that none changes the text direction of the next."""
    names = (
        html.escape(name) if name.isascii() else f"<bdi>{html.escape(name)}</bdi>"
        for name in items.named(members[:most])
    )
    return ", ".join(names) + (", ..." if members.size > most else "")


def uncertain(summary: SummaryRecord) -> pd.DataFrame:
    """Return rows of the items of least membership or, without it, of least mean similarity, the least first."""
    by = "similarity" if summary.items.membership is None else "membership"
    return summary.items.to_dataframe().sort_values(by, kind="stable", na_position="last").head(15)
