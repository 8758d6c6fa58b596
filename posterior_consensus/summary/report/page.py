"""The page of a report: findings, figures and tables in one file."""

import html
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import resources, util
from typing import Any

import pandas as pd

import posterior_consensus
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.results import display
from posterior_consensus.results.words import Words
from posterior_consensus.summary.about_draws import headline
from posterior_consensus.summary.claims import PROVEN, Claim, HasClaims
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.glossary import glossary
from posterior_consensus.summary.report.payload import payload_of, payload_of_layers
from posterior_consensus.summary.report.still import (
    clusters_as_html,
    folded,
    of_chains,
    of_contrast,
    of_items,
    of_layers,
    of_modes,
    of_partition,
    spoken_table,
    table_as_html,
    top_panels,
)

_METHODS, _EXPLORE, TIME = "For the section on methods", "Explore", "Time"
_ON_SCREEN = {_EXPLORE, TIME}  # sections that are not printed
_TOPICS = {  # of the findings by section; those on the chains begin the page, and all others are on the partition
    "chains": {"draws", "missing", "more_draws", "new_runs", "rough_error"},
    "items": {"noise", "misplaced"},
    "modes": {"groups"},
    "left out": {"omissions"},
}
_LEAST = 0.5  # expected items above which a flow is listed
_FLOWS_OF_RUNS = "Items in common of a cluster of the consensus partition of a layer and one of the next layer."
_FLOWS = (
    "Expected numbers of items that go from one cluster to another in the same draw, from half an item on, with "
    "Monte Carlo standard errors and intervals."
)
_MOST_ROWS, _MOST_FOLDED = 30, 1000  # of a table shown, and of a folded table


def layers_page(
    summary: HasClaims,
    title: str,
    head: str,
    status: str,
    summaries: Mapping[Any, SummaryRecord],
    comparison: LayerComparison | LayerStability | None,
    *,
    progressbar: bool,
) -> str:
    """The report of several layers, given the chains' status."""
    layers, first = summary.to_dataframe(), next(iter(summaries.values()))
    dim, words = str(layers.index.name), first.words
    claims = dict(summary._claims())
    verdict = _verdict(claims.pop("chains"), status)
    sections = {"Findings": findings_as_html(claims.values()), "Layers": table_as_html(layers)}
    explored = dict[str, str]()
    if comparison is not None:
        flows, (distances, items) = comparison.flow_table(), of_layers(comparison)
        heading, about = "Distances between layers", _FLOWS
        if isinstance(comparison, LayerStability):
            heading, about = "Stability of layers", _FLOWS_OF_RUNS
        else:
            flows = flows[flows["expected"] >= _LEAST]
        sections[heading] = f"{distances}{_long(comparison.to_dataframe())}"
        sections["Flows of items"] = f"{items}<p>{about}</p>{_long(flows)}"
        dims = {one.draws.items.dim for one in summaries.values()}
        aligned = comparison.partitions
        if aligned is not None and dims == {aligned.labels.dims[1]}:  # all layers have the same kind of items
            given = summaries, aligned, dim
            explored = _interactive(words, payload_of_layers, *given, progressbar=progressbar)
    each = [folded(html.escape(f"{dim} {name}"), clusters_as_html(one)) for name, one in summaries.items()]
    sections |= {"Clusters of each layer": "".join(each), _METHODS: methods_as_html(summary)} | explored
    return whole_page(title, verdict, head, first.seed, sections, words)


def _long(frame: pd.DataFrame) -> str:
    """A table, folded if it has many rows."""
    rows = table_as_html(frame.head(_MOST_FOLDED))
    return (
        rows if len(frame) <= _MOST_ROWS else folded(f"{min(len(frame), _MOST_FOLDED):,} of {len(frame):,} rows", rows)
    )


def findings_as_html(claims: Iterable[Claim]) -> str:
    """Findings as a list; empty if there are none."""
    said = "".join(f"<li>{display.coded(one)}</li>" for claim in claims for one in claim.with_advice)
    return f"<ul>{said}</ul>" if said else ""


def _verdict(claim: Claim, status: str, below: str = "") -> str:
    """The verdict on chains or runs, in the colour of their status, and what follows in the box."""
    return f'<div class="verdict {status}"><p>{display.coded(" ".join(claim.with_advice))}</p>{below}</div>'


def _below_verdict(claims: Mapping[str, Claim]) -> str:
    """What the box on top says of the partition: uncertain items, where clusters are found, and if it is proven."""
    said = [f"{one.name}: {one.line.partition(';')[0]}" for one in (claims["misplaced"], claims["found"]) if one.line]
    said.append(f"optimality: {'proven' if claims['optimality'].status == PROVEN else 'not proven'}")
    return f"<p>{display.coded(' '.join(f'{display.capitalized(one)}.' for one in said))}</p>"


def methods_as_html(summary: HasClaims) -> str:
    """The text for a paper."""
    return f"<pre>{html.escape(summary.methods_text())}</pre>"


def _head(summary: SummaryRecord) -> str:
    """Description of data, posterior and loss in one line."""
    of_draws = "; ".join(f"{name}: {value}" for name, value in summary.draws.samples.lines())
    expected = display.quantity(summary.partition.expected_loss, summary.loss.unit, 3)
    loss = f"{display.name_of(summary.loss)}, {summary.words.expected} {expected}"
    observed = "" if summary.observed is None or summary.observed.name is None else f"{summary.observed.name} of "
    data = f"{observed}{display.counted_items(summary.draws.n_items, summary.draws.items.dim)}"
    data += f", {summary.source}" * (summary.source != "labels")
    return f"Data: {data}. {display.capitalized(of_draws)}. Loss: {loss}."


def page(summary: SummaryRecord, y: Any = None, *, progressbar: bool) -> str:
    """The report of draws: the verdict and four panels, then sections, of which exploration is the last.

    With `y`, data that did not form the clusters, a section says what differs between them.
    """
    words, claims = summary.words, dict(summary._claims())
    status = summary.diagnosis.status
    verdict = _verdict(claims.pop("chains"), status, _below_verdict(claims) if status != "disagree" else "")
    known = {topic for topics in _TOPICS.values() for topic in topics}
    of_topics = {
        name: findings_as_html(claims[topic] for topic in claims if topic in topics) for name, topics in _TOPICS.items()
    }
    others = findings_as_html(claim for topic, claim in claims.items() if topic not in known)
    sections = {
        "Partition": others + of_partition(summary),
        "Items": of_topics["items"] + of_items(summary),
        **of_contrast(summary, y),
        display.capitalized(words.either("chains", "runs")): of_topics["chains"] + of_chains(summary),
        display.capitalized(f"{words.mode}s"): of_topics["modes"] + of_modes(summary),
        "What was left out": of_topics["left out"],
        _METHODS: methods_as_html(summary),
        **_interactive(words, payload_of, summary, progressbar=progressbar),
        TIME: folded("Seconds of each step", spoken_table(summary, pd.DataFrame({"seconds": summary.seconds}))),
    }
    shown = {name: body for name, body in sections.items() if body}
    return whole_page(headline(summary), verdict + top_panels(summary), _head(summary), summary.seed, shown, words)


def whole_page(
    title: str, top: str, head: str, seed: int | None, sections: Mapping[str, str], words: Words | None
) -> str:
    """Put the text of the file together: title and head as text; top, and sections by heading, as HTML.

    A further section is a further entry of `sections`. The seed of the searches is given if it is recorded. The
    glossary has `words`; None for scored pairs.
    """
    version, seeded = posterior_consensus.__version__, "not recorded" if seed is None else str(seed)
    terms = glossary(" ".join([top, *sections, *sections.values()]), words)
    sections = {**sections, "Glossary": terms}
    shown = "\n".join(_section_as_html(heading, body) for heading, body in sections.items())
    links = "".join(f'<li><a href="#{_anchor(heading)}">{html.escape(heading)}</a></li>' for heading in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_text_of('report.css')}</style></head>\n<body>\n"
        '<a class="skip" href="#result">Skip to the result</a>\n'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<main id="result" tabindex="-1">\n'
        f"<h1>{html.escape(title)}</h1>\n{top}\n<p>{display.coded(head)}</p>"
        f"<p>Date: {_date()}. Random seed: {seeded}.</p>\n"
        f"{shown}\n</main>\n<footer>posterior_consensus {version}</footer>\n</body></html>\n"
    )


def _section_as_html(heading: str, body: str) -> str:
    on_screen = ' class="screen"' * (heading in _ON_SCREEN)
    return f'<section{on_screen}><h2 id="{_anchor(heading)}">{html.escape(heading)}</h2>\n{body}</section>'


def _anchor(heading: str) -> str:
    """Name of a section in links, unlike those of the page's controls."""
    return "-".join(["section", *re.findall("[a-z]+", heading.lower())])


def _date() -> str:
    """Today's date, or that of SOURCE_DATE_EPOCH, by which builds are made reproducible."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdecimal():
        raise ValueError(
            "The environment variable SOURCE_DATE_EPOCH must be seconds since 1970, an integer from 0, or be left out, "
            f"for today's date; got {given!r}."
        )
    moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now()
    return f"{moment:%Y-%m-%d}"


def _interactive(words: Words, payload: Callable[..., str], *arguments: Any, **options: Any) -> dict[str, str]:
    """Interactive figures, controls and table of a payload; nothing without Bokeh."""
    if util.find_spec("bokeh") is None:
        return {}
    from posterior_consensus.summary.report.pictures import library, pictures

    script, parts = pictures(words.similarity)
    section = _text_of("interactive.html")
    spoken = {"Chains": display.capitalized(words.chains), "Similarity": display.capitalized(words.similarity)}
    for name, part in (parts | spoken | {"similarity": words.similarity, "to": words.to}).items():
        section = section.replace(f"<!--{name}-->", part)
    packed = f'<script type="text/plain" id="payload">{payload(*arguments, **options)}</script>'
    own = f"<style>{_text_of('interactive.css')}</style>", f"<script>{_text_of('interactive.js')}</script>"
    return {_EXPLORE: "\n".join([section, packed, library(), *own, script])}


def _text_of(file: str) -> str:
    """A file of this folder."""
    return resources.files("posterior_consensus.summary.report").joinpath(file).read_text(encoding="utf-8")
