"""The page of a report on scored pairs: findings, figures, pairs to review, and components with their records."""

import html
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.plots.four_panels import pair_panels
from posterior_consensus.plots.frame import shortened
from posterior_consensus.results import display
from posterior_consensus.results.display import counted
from posterior_consensus.results.palette import COLOURS
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.summary.about_pairs import claims_of
from posterior_consensus.summary.pair_record import PairsRecord
from posterior_consensus.summary.report.page import TIME, findings_as_html, methods_as_html, whole_page
from posterior_consensus.summary.report.still import figure, folded, table_as_html

_MOST_COMPONENTS, _MOST_OPEN = 40, 8  # components listed, and unfolded
_MOST_DRAWN = 30  # records of a component with a picture
_MOST_NAMES = 200  # records of a component listed by name
_MOST_PAIRS = 40  # pairs of a component in its table
_FIRST_TO_REVIEW, _MOST_TO_REVIEW = 15, 300  # pairs shown, and folded
_PANELS = "a: clusters by size. b: scored pairs by score. c: {}. d: the closest calls."
_CURVE, _AGAINST = "expected precision and recall along the pair threshold", "pairs decided against their score"
_KEY = (
    "In a picture, a line is a scored pair, wider for a larger score: solid within a cluster, dashed between clusters, "
    "red if the partition treats the pair against its score. Colours are clusters."
)
_NODE, _ROOM, _PAD = 8.0, 64.0, 42.0  # radius of a record, arc for each in its cluster, and half of that of clusters
_BESIDE, _MARGIN, _UPRIGHT = 14.0, np.array([130.0, 30.0]), 0.3  # of names: distance, room, and where they are above
_LONGEST = 18  # characters of a name in a picture


def pairs_page(summary: PairsRecord) -> str:
    """The report of scored pairs."""
    claims = claims_of(summary)
    verdict = findings_as_html(claims.pop(topic) for topic in ("precision", "optimality", "review"))
    title = f"{counted(summary.pairs.n_items, 'record')} in {counted(summary.n_clusters, 'cluster')}"
    first = [display.capitalized(f"{one.name}: {one.line}.") for one in (claims["scored"], claims["threshold"])]
    panel = _AGAINST if summary.curve is None else _CURVE
    sections = {
        "Findings": findings_as_html(claims.values()),
        "Pairs to review": _review(summary),
        "Components": "".join(_sections_of_components(summary)),
        "Along the threshold": _along_the_threshold(summary),
        "For the section on methods": methods_as_html(summary),
        TIME: folded("Seconds of each step", table_as_html(pd.DataFrame({"seconds": summary.seconds}))),
    }
    top = f'<div class="verdict">{verdict}</div>'
    top += figure(pair_panels, summary.links, summary.curve, text=_PANELS.format(panel))
    return whole_page(
        title, top, " ".join(first), summary.seed, {name: body for name, body in sections.items() if body}, None
    )


def _along_the_threshold(summary: PairsRecord) -> str:
    """Clusters, precision and recall of the best partition found at each threshold; empty without a curve."""
    if summary.curve is None:
        return ""
    said = "The partition of the smallest expected loss found for each pair threshold, with its expected precision and "
    shown = summary.curve.to_dataframe()[["n_clusters", "precision", "recall"]]
    return f"<p>{said}recall of scored pairs.</p>{table_as_html(shown)}"


def _review(summary: PairsRecord) -> str:
    """Pairs for a clerk, the first of them unfolded."""
    pairs = display.with_names_as_text(summary.links.review(_MOST_TO_REVIEW), ("first", "second"))
    first = table_as_html(pairs.head(_FIRST_TO_REVIEW))
    if len(pairs) <= _FIRST_TO_REVIEW:
        return first
    return first + folded(f"The first {len(pairs):,} pairs", table_as_html(pairs))


class _Part(NamedTuple):
    """A component: positions of its records, the cluster of each from 0 on, and its scored pairs by place in it."""

    at: npt.NDArray[np.intp]
    names: list[str]
    own: npt.NDArray[np.intp]
    numbers: list[object]
    first: npt.NDArray[np.integer]
    second: npt.NDArray[np.integer]
    score: Floats

    @property
    def is_within(self) -> npt.NDArray[np.bool_]:
        """Whether each pair is in one cluster."""
        return np.equal(self.own[self.first], self.own[self.second])


def _sections_of_components(summary: PairsRecord) -> Iterator[str]:
    component = summary.component.values
    order = np.argsort(component, kind="stable")
    sizes = np.bincount(component)
    starts = np.cumsum(sizes) - sizes
    unproven = _unproven(summary)
    linked = np.flatnonzero(sizes > 1)
    chosen = linked[np.lexsort((linked, -sizes[linked], ~np.isin(linked, unproven)))][:_MOST_COMPONENTS]
    if not chosen.size:
        return
    some = f"{chosen.size:,} of " if chosen.size < linked.size else ""
    first = "those not proven optimal first, then the largest" if unproven.size else "the largest first"
    first += f"; a print has the first {_MOST_OPEN}" * (chosen.size > _MOST_OPEN)
    yield f"<p>{some}{counted(linked.size, 'component')} of linked records, {first}. {_KEY}</p>"
    for place, number in enumerate(chosen.tolist()):
        part = _part_of_records(summary, np.sort(order[starts[number] : starts[number] + sizes[number]]))
        yield _section(summary, part, is_open=place < _MOST_OPEN, is_proven=number not in unproven)


def _unproven(summary: PairsRecord) -> npt.NDArray[np.int32]:
    """Numbers of the components whose partition is not proven to be optimal."""
    info = summary.partition.info
    records = info.unproven_records if isinstance(info, ComponentsInfo) else []
    return summary.component.values[np.array(records, np.intp)]


def _part_of_records(summary: PairsRecord, at: npt.NDArray[np.intp]) -> _Part:
    """One component, by the positions of its records."""
    labels = summary.labels.values[at]
    numbers, own = np.unique(labels, return_inverse=True)
    near = summary.pairs.scored[at][:, at].tocoo()
    upper = near.row < near.col
    names = summary.pairs.items.named(at).tolist()
    called = [summary.names[k] for k in numbers.tolist()]
    return _Part(at, names, own, called, near.row[upper], near.col[upper], near.data[upper])


def _section(summary: PairsRecord, part: _Part, *, is_open: bool, is_proven: bool) -> str:
    """A component: picture, clusters with their records, and pairs."""
    clusters, records = counted(len(part.numbers), "cluster"), counted(part.at.size, "record")
    proven = "" if is_proven else ", not proven optimal"
    title = f"{records} in {clusters}{proven}: {html.escape(display.listed(part.names, 4))}"
    picture = _picture(part, summary.tau) if part.at.size <= _MOST_DRAWN else ""
    body = f"{picture}{_clusters(part)}{_table_of_pairs(part, summary.tau)}"
    return folded(title, body, is_open=is_open)


def _clusters(part: _Part) -> str:
    """Clusters of a component with the names of their records."""
    most = max(1, _MOST_NAMES // len(part.numbers))
    shown = range(min(len(part.numbers), _MOST_NAMES))
    members = [[part.names[k] for k in np.flatnonzero(part.own == number)] for number in shown]
    columns = {"size": list(map(len, members)), "records": [display.listed(names, most) for names in members]}
    index = pd.Index([part.numbers[k] for k in shown], name="cluster", tupleize_cols=False)
    return table_as_html(pd.DataFrame(columns, index))


def _table_of_pairs(part: _Part, tau: float) -> str:
    """Pairs of a component, those with a score near the threshold first."""
    order = np.argsort(np.abs(part.score - tau), kind="stable")[:_MOST_PAIRS]
    columns = {
        "first": [part.names[k] for k in part.first[order]],
        "second": [part.names[k] for k in part.second[order]],
        "score": part.score[order],
        "clusters": np.where(part.is_within[order], "one", "different"),
    }
    some = f"{order.size:,} of " if order.size < part.score.size else ""
    said = f"{some}{counted(part.score.size, 'scored pair')}, those nearest to the threshold first"
    return folded(said, display.as_html(pd.DataFrame(columns), index=False))


def _picture(part: _Part, tau: float) -> str:
    """Node-link diagram of a component as SVG: clusters around a circle, and the records of each around its own."""
    at, turn = _places(part.own)
    low, high = at.min(axis=0) - _MARGIN, at.max(axis=0) + _MARGIN
    width, height = np.ceil(high - low).astype(int).tolist()
    at = at - low
    beside = at + _BESIDE * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    anchors = np.where(np.abs(np.cos(turn)) < _UPRIGHT, "middle", np.where(np.cos(turn) > 0, "start", "end"))
    within = part.is_within
    against = np.where(within, part.score < tau, part.score > tau)
    lines = []
    for k in np.argsort(part.score, kind="stable").tolist():
        (x, y), (x_end, y_end), score = at[part.first[k]], at[part.second[k]], part.score[k]
        kind = ("in" if within[k] else "between") + (" against" if against[k] else "")
        said = html.escape(f"{part.names[part.first[k]]} and {part.names[part.second[k]]}: {score:.3g}")
        lines.append(
            f'<line class="{kind}" x1="{x:.0f}" y1="{y:.0f}" x2="{x_end:.0f}" y2="{y_end:.0f}" '
            f'stroke-width="{0.6 + 2.4 * score:.1f}"><title>{said}</title></line>'
        )
    for k, name in enumerate(part.names):
        (x, y), (x_text, y_text), colour = at[k], beside[k], COLOURS[part.own[k] % len(COLOURS)]
        lines.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_NODE:g}" fill="{colour}">'
            f"<title>{html.escape(name)}</title></circle>"
            f'<text x="{x_text:.0f}" y="{y_text + 4:.0f}" text-anchor="{anchors[k]}">'
            f"{html.escape(shortened(name, _LONGEST))}</text>"
        )
    label = html.escape(
        f"{counted(part.at.size, 'record')} in {counted(len(part.numbers), 'cluster')}, with their pairs"
    )
    return (
        f'<svg class="nodes" role="img" aria-label="{label}" viewBox="0 0 {width} {height}" width="{width}">'
        f"{''.join(lines)}</svg>"
    )


def _places(own: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Places (n, 2) of records in a picture, and the angle at which each lies, from the cluster of each."""
    sizes = np.bincount(own)
    radius = np.where(sizes > 1, np.maximum(_ROOM * sizes / (2 * np.pi), _ROOM / 2), 0.0)
    reach = radius + _PAD
    half = np.pi * reach / reach.sum()
    around = float(np.max(reach / np.sin(np.minimum(half, np.pi / 2)))) if sizes.size > 1 else 0.0
    angle = 2 * np.cumsum(half) - half
    centres = around * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    order = np.argsort(own, kind="stable")
    rank = np.empty(own.size)
    rank[order] = np.arange(own.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = angle[own] + 2 * np.pi * rank / sizes[own]
    return centres[own] + radius[own, np.newaxis] * np.stack([np.cos(turn), np.sin(turn)], axis=1), turn
