"""Static sections of a report: tables and figures."""

import base64
import html
import io
import re
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.ndimage import binary_opening, uniform_filter
from scipy.spatial import KDTree

from posterior_consensus.answers.cluster_stability import SHOWN, ClusterStability
from posterior_consensus.answers.contrast import contrast
from posterior_consensus.answers.links import MANY
from posterior_consensus.ensemble.items import Items
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.plots.colours import colours_of_scales
from posterior_consensus.plots.data import plot_data
from posterior_consensus.plots.draws import plot_traces
from posterior_consensus.plots.four_panels import four_panels, link_panels
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
from posterior_consensus.plots.strips import plot_particles
from posterior_consensus.results import display
from posterior_consensus.results.words import DRAWS, Words
from posterior_consensus.summary.record import SummaryRecord

_MOST_LISTED = 20_000  # items listed by name
_PANELS = (
    "a: {similarity} matrix, the clusters outlined. b: NUMBER. c: the partition, and {draws} that bound its {ball}. "
    "d: mean {similarity} of each item {to} the rest of its cluster (bars), and {to} the nearest other one."
)
_NUMBER = "number of clusters, by {chain}"
_SIZES = "sizes of the clusters, the largest first; all {draws} have the same number of clusters"
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
_HEADINGS = {  # of columns whose name is no heading
    "nearest": "nearest cluster",
    "nearest_similarity": "similarity to nearest",
    "rhat": "R-hat",
    "ess": "ESS",
    "ess_bulk": "ESS (bulk)",
    "ess_tail": "ESS (tail)",
    "n_clusters": "clusters",
    "n_runs": "runs",
    "n_moved": "items moved",
    "from_first": "distance from the first",
    "p_value": "p-value",
    "ari": "adjusted Rand index",
}
_FEW = 2  # rows of a table that keeps all columns
_WIDE = 30  # letters of the longest words of all columns of a table, from which it is wider than a phone
_DPI = 130  # of figures as images
_BYTES = np.array([1 << 16, 1 << 8, 1])  # of the number of a colour
_NEAR = 8  # distance of a colour from the scales of similarities and of differences, of which edges are mixtures
_AROUND = 9  # pixels of the square that shows whether words are on a colour
_PALE = 180  # least lightness of white and of pale grey areas, which are no words
_PALE_AREA = 0.3  # weight of transparent areas, which are dark on a dark page, beside the page's
_STROKE = 3  # pixels, more than the width of a letter's lines
_GROUND = 0x14  # lightness of the darkest page, which white becomes
_LIFT = 0.75  # power of lightness of matrices, so that small similarities are lighter than the page
_GREY = 4  # reciprocal of the chroma above which a colour is not grey


def top_panels(summary: SummaryRecord) -> str:
    """Return the figure of four panels."""
    if summary.links is not None:
        return figure(link_panels, summary.draws, summary.links, text=_spoken(_LINKS, summary))
    number = _spoken(_NUMBER if np.ptp(summary.draws.n_clusters) else _SIZES, summary)
    if len(summary.draws.samples.chains) == 1:
        number = number.removesuffix(f", by {summary.words.chain}")
    given = summary.draws, summary.partition, summary.ball, summary.items
    return figure(four_panels, *given, text=_spoken(_PANELS, summary).replace("NUMBER", number))


def of_chains(summary: SummaryRecord) -> str:
    """Return table and figures of the convergence of chains, or of the groups of runs."""
    draws, best, words, samples = summary.draws, summary.partition, summary.words, summary.draws.samples
    parts = []
    if samples.has_chains:
        parts.append(spoken_table(summary, summary.diagnosis.to_dataframe()))
    if samples.series:  # runs have no order to follow
        parts.append(figure(plot_traces, summary.diagnosis, text="Scalar summaries of the partition along each chain."))
    if summary.links is None and 1 < len(samples.chains) <= _MOST_CHAINS:
        text = f"The {words.similarity} matrix of each {words.chain}."
        parts.append(figure(plot_psm, draws, best, by="chain", text=text))
    parts.append(
        figure(plot_draws_map, draws, best, ball=summary.ball, text=f"Each point is a {words.draw}; near is similar.")
    )
    return "".join(parts)


def of_partition(summary: SummaryRecord) -> str:
    """Return the clusters and where they are found; if they are many and small, links and sizes."""
    clusters = "" if summary.clusters is None else _of_each_cluster(summary, summary.clusters)
    return clusters_as_html(summary) + clusters + _of_links(summary)


def of_items(summary: SummaryRecord) -> str:
    """Return the items that are least sure of their cluster, and the data cluster by cluster."""
    observed = "" if summary.observed is None else "".join(_of_data(summary, summary.observed))
    text = _spoken(_OF_ITEMS, summary)
    bars = figure(plot_item_uncertainty, summary.items, text=text) if summary.links is None else ""
    return f"<h3>Items least sure of their cluster</h3>{spoken_table(summary, uncertain(summary))}{bars}{observed}"


def of_modes(summary: SummaryRecord) -> str:
    """Return the partitions of several modes; empty if there is one."""
    if summary.modes is None or summary.modes.n_particles == 1:
        return ""
    words = summary.words
    text = f"The partitions of the {words.mode}s, with their weights."
    return spoken_table(summary, summary.modes.to_dataframe()) + figure(plot_particles, summary.modes, text=text)


def _of_data(summary: SummaryRecord, values: xr.DataArray) -> Iterator[str]:
    best = summary.partition
    if values.notnull().all([dim for dim in values.dims if dim != summary.draws.items.dim]).any():
        words = summary.words
        mean = f"each item's mean {words.similarity} {words.to} the rest of its cluster"
        text = f"Observed {values.name}, and {mean}."
        yield figure(plot_data, values, best, items=summary.items, text=text)
    yield figure(plot_cluster_profiles, values, best, text=f"Observed {values.name}, cluster by cluster.")


def _of_links(summary: SummaryRecord) -> str:
    """Return tables of links, sizes and candidates for joining; empty if clusters are few or large."""
    links = summary.links
    if links is None:
        return ""
    uncertain = links.uncertain
    parts = ["<h3>Uncertain links</h3>", spoken_table(summary, uncertain.head(_MOST_LINKS))]
    if len(uncertain) > _MOST_LINKS:
        rows = uncertain.head(_MOST_FOLDED)
        title = f"{len(rows):,} of {display.counted(len(uncertain), 'uncertain link')}"
        parts.append(folded(title, spoken_table(summary, rows)))
    joined, sizes = links.between_clusters().head(_MOST_LINKS), links.sizes.to_dataframe()
    parts += ["<h3>Clusters that could be joined</h3>", spoken_table(summary, joined)]
    parts += ["<h3>Clusters by size</h3>", spoken_table(summary, sizes)]
    return "".join(parts)


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


def _of_each_cluster(summary: SummaryRecord, clusters: ClusterStability) -> str:
    """Return the figure of the draws that have each cluster, and its table."""
    table = spoken_table(summary, clusters.to_dataframe()[list(SHOWN)])
    shown = figure(plot_cluster_stability, clusters, text=_spoken(_OF_EACH_CLUSTER, summary))
    return (
        "<h3>Where each cluster is found</h3>"
        + shown
        + (folded("Table", table) if len(clusters.names) > MANY else table)
    )


def _spoken(template: str, summary: SummaryRecord) -> str:
    """A caption in the words for draws or for runs."""
    words = summary.words
    return template.format(**words._asdict(), draws=words.draws)


def figure(plot: Callable[..., Any], *arguments: Any, text: str, **options: Any) -> str:
    """Embed a plot in the page as an image, with a version for dark screens; four panels are four images."""
    from PIL import Image

    axes = plot(*arguments, **options)
    whole = Image.open(io.BytesIO(as_png(axes))).convert("RGBA")
    words = re.split(r"(?:^| )[a-d]: ", text)[1:]
    boxes = _quarters(whole, axes) if len(words) == 4 else []
    parts = zip(map(whole.crop, boxes), words, strict=True) if boxes else [(whole, text)]
    images = "".join(_image(*part, whole.width) for part in parts)
    return f"<figure>{images}<figcaption>{html.escape(text)}</figcaption></figure>"


def _quarters(image: Any, axes: Any) -> list[tuple[int, int, int, int]]:
    """Boxes of four panels, cut along empty pixels left of the panels at the right, and above those below."""
    drawn = np.asarray(image)[..., 3] > 0
    page, (_, b, c, d) = axes[0, 0].figure.bbox, [one.get_tightbbox() for one in axes.flat]
    corner = min(b.x0, d.x0) / page.width * image.width, (1 - max(c.y1, d.y1) / page.height) * image.height
    gaps = [np.flatnonzero(~drawn.any(axis=axis)) for axis in (0, 1)]
    x, y = (min(gap.tolist(), key=lambda at: abs(at - end), default=0) for gap, end in zip(gaps, corner, strict=True))
    boxes = (0, 0, x, y), (x, 0, image.width, y), (0, y, x, image.height), (x, y, image.width, image.height)
    return list(boxes) if x and y else []


def _image(image: Any, text: str, width: int) -> str:
    """An image with its version for dark screens, as wide as its share of the width of a figure."""
    return "".join(
        f'<img alt="{html.escape(text)}" src="data:image/png;base64,{_in_base64(one)}" class="{kind}" '
        f'style="--share: {image.width / width:.2%}; --wide: {image.width / _DPI:.1f}in">'
        for kind, one in (("light", image), ("dark", for_dark_screens(image)))
    )


def _in_base64(image: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format="png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def for_dark_screens(image: Any) -> Any:
    """Image for a dark background: colours of matrices are inverted in lightness, and greys unless on a colour."""
    from PIL import Image

    values = np.asarray(image).copy()
    colour = values[..., :3].astype(np.int32)
    codes, at = np.unique(colour @ _BYTES, return_inverse=True)
    apart, _ = KDTree(colours_of_scales()).query(codes[:, np.newaxis] // _BYTES % 256)
    areas = np.ones((_STROKE, _STROKE))  # white words on a colour are no areas
    of_scale = binary_opening((apart < _NEAR)[at].reshape(colour.shape[:2]), areas)[..., np.newaxis]
    lightest, darkest = colour.max(axis=-1, keepdims=True), colour.min(axis=-1, keepdims=True)
    inverted = 255 - np.where(of_scale, lightest + darkest - colour, colour)
    inverted = np.maximum(np.where(of_scale, 255 * (inverted / 255) ** _LIFT, inverted), _GROUND)
    share = np.maximum(0.0, 1.0 - _GREY * (lightest - darkest) / 255)
    coloured = (share < 0.5) & (values[..., 3:] == 255) & ~of_scale
    of_page = (values[..., 3:] == 0) | ((darkest >= _PALE) & (lightest - darkest <= _NEAR)) | of_scale
    empty = np.maximum(binary_opening(of_page[..., 0], areas), _PALE_AREA * (values[..., 3] < 255))
    near, away = (uniform_filter(one.astype(np.float32), _AROUND) for one in (coloured[..., 0], empty))
    share = np.where(of_scale, 1.0, np.where((near > 4 * away)[..., np.newaxis], 0.0, share))
    values[..., :3] = np.rint(share * inverted + (1.0 - share) * colour)
    return Image.fromarray(values).quantize(method=Image.Quantize.FASTOCTREE)


def table_as_html(frame: pd.DataFrame, words: Words = DRAWS) -> str:
    """Return a table as HTML, with headings for people, and columns of one value, if rows are many, below."""
    named = frame.set_axis([_heading(str(name), words) for name in frame.columns], axis="columns")
    same = np.array([len(named) > _FEW and named.iloc[:, k].nunique(dropna=False) == 1 for k in range(named.shape[1])])
    same &= not same.all()
    note = ""
    if same.any():
        alike = display.with_decimals(named.loc[:, same].dropna(axis="columns").head(1), "-", ",").iloc[0]
        if len(alike):
            flags = {name: value for name, value in alike.items() if isinstance(value, bool | np.bool_)}
            said = [f"{'All' if value else 'No'} rows are {name}." for name, value in flags.items()]
            if others := [f"{name} is {value}" for name, value in alike.items() if name not in flags]:
                said.append(f"In all rows, {display.joined(others)}.")
            note = f"<p>{html.escape(' '.join(said))}</p>"
    shown = named.loc[:, ~same].copy()
    if shown.index.nlevels == 1:
        shown.columns.name, shown.index.name = shown.index.name, None  # its name is beside those of the columns
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{_that_fits(shown)}</div>{note}'


def _that_fits(table: pd.DataFrame) -> str:
    """A table as HTML; the cells of a wide one have their headings, because its rows are cards on a narrow screen."""
    markup, columns = display.as_html(table), display.with_decimals(table, "-", ",").items()
    if sum(max(map(len, " ".join(map(str, [name, *column])).split())) for name, column in columns) <= _WIDE:
        return markup
    of_rows = "" if table.columns.name is None else table.columns.name
    of_rows, *names = (f'data-name="{html.escape(str(name))}"' for name in (of_rows, *table.columns))
    head, rows = markup.replace('class="', 'class="wide cards ', 1).split("<tbody>")
    first, *cells = rows.replace("<th>", f"<th {of_rows}>").split("<td ")
    return "".join([head, "<tbody>", first, *(f"<td {name} {cell}" for name, cell in zip(cycle(names), cells))])


def _heading(name: str, words: Words) -> str:
    """Name of a column for people, in the words for draws or for runs."""
    spoken = {"probability": words.probability, "mcse": words.mcse}
    if name.endswith("_mcse"):
        return f"{words.mcse} of {_heading(name.removesuffix('_mcse'), words)}"
    return (_HEADINGS | spoken).get(name, name.replace("_", " "))


def spoken_table(summary: SummaryRecord, frame: pd.DataFrame) -> str:
    """Return a table as HTML whose columns and rows are called as runs are, if the draws are runs."""
    words = summary.words
    return table_as_html(frame if summary.draws.samples.series else frame.rename(index={"draws": words.draws}), words)


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
    """Return rows of the items of the smallest margin, the smallest first."""
    return summary.items.to_dataframe().sort_values("margin", kind="stable", na_position="last").head(8)
