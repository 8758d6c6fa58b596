"""The page of a report: findings, figures and tables in one file."""

import html
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources, util
from typing import Any

import pandas as pd

import posterior_consensus
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.results import display
from posterior_consensus.results.words import Words
from posterior_consensus.summary.about_draws import headline, in_doubt
from posterior_consensus.summary.claims import HasClaims
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.glossary import glossary
from posterior_consensus.summary.report.payload import payload_of, payload_of_layers
from posterior_consensus.summary.report.still import (
    clusters_as_html,
    figures,
    folded,
    of_contrast,
    of_layers,
    of_links,
    pairs_heading,
    spoken_table,
    table_as_html,
    uncertain,
)

_METHODS, _GLOSSARY = "For the section on methods", "Glossary"
_LEAST = 0.5  # expected items above which a flow is listed
_FLOWS_OF_RUNS = "Items in common of a cluster of the consensus partition of a layer and one of the next layer."
_FLOWS = (
    "Expected numbers of items that go from one cluster to another in the same draw, from half an item on, with "
    "Monte Carlo standard errors and intervals."
)
_GOOD = "agree", "runs"  # statuses whose verdict comes last among the findings
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
    sections = {
        "Findings": _findings(summary.findings(), status, first=status not in _GOOD),
        "Layers": table_as_html(layers),
    }
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
            sections |= _interactive(words, "", "", payload_of_layers, *given, progressbar=progressbar)
    each = [folded(html.escape(f"{dim} {name}"), clusters_as_html(one)) for name, one in summaries.items()]
    sections |= {"Clusters of each layer": "".join(each), _METHODS: f"<pre>{html.escape(summary.methods_text())}</pre>"}
    return whole_page(title, head, first.seed, sections, words)


def _long(frame: pd.DataFrame) -> str:
    """A table, folded if it has many rows."""
    rows = table_as_html(frame.head(_MOST_FOLDED))
    return (
        rows if len(frame) <= _MOST_ROWS else folded(f"{min(len(frame), _MOST_FOLDED):,} of {len(frame):,} rows", rows)
    )


def _findings(sentences: Sequence[str], status: str, *, first: bool = False) -> str:
    """Findings as a list; the last or `first` one, on the agreement of chains or runs, in the colour of its status."""
    said = list(map(coded, sentences))
    verdict = f'<p class="verdict {status}">{said.pop(0 if first else -1)}</p>'
    listed = f"<ul>{''.join(f'<li>{one}</li>' for one in said)}</ul>"
    return verdict + listed if first else listed + verdict


def coded(text: str) -> str:
    """A text as HTML, with code between backticks."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _head(summary: SummaryRecord) -> str:
    """Description of data, posterior and loss in one line."""
    of_draws = "; ".join(f"{name}: {value}" for name, value in summary.draws.samples.lines())
    expected = display.quantity(summary.partition.expected_loss, summary.loss.unit, 3)
    loss = f"{display.name_of(summary.loss)}, {summary.words.expected} {expected}"
    observed = "" if summary.observed is None or summary.observed.name is None else f"{summary.observed.name} of "
    data = f"{observed}{display.counted_items(summary.draws.n_items, str(summary.draws.items.dim))}, {summary.source}"
    return f"Data: {data}. {display.capitalized(of_draws)}. Loss: {loss}."


def page(summary: SummaryRecord, y: Any = None, *, progressbar: bool) -> str:
    """The report of draws, with a section on what differs between clusters in `y`, data that did not form them."""
    stills, pairs, words = figures(summary), pairs_heading(summary), summary.words
    still = "".join(stills.pop(pairs, []))
    sections = {
        "Findings": _findings(summary.findings(), summary.diagnosis.status, first=bool(in_doubt(summary))),
        **{head: "".join(parts) for head, parts in of_links(summary).items()},
        **_interactive(words, pairs, still, payload_of, summary, progressbar=progressbar),
        "Clusters": clusters_as_html(summary),
        **{head: "".join(parts) for head, parts in stills.items()},
        **of_contrast(summary, y),
        "Items least sure of their cluster": spoken_table(summary, uncertain(summary)),
        **_section_on_chains(summary),
        _METHODS: f"<pre>{html.escape(summary.methods_text())}</pre>",
        "Time": spoken_table(summary, pd.DataFrame({"seconds": summary.seconds})),
    }
    return whole_page(headline(summary), _head(summary), summary.seed, sections, words)


def _section_on_chains(summary: SummaryRecord) -> dict[str, str]:
    """Section on the convergence of chains, or on the groups of runs, if there are several."""
    samples = summary.draws.samples
    if not samples.has_chains:
        return {}
    heading = summary.words.either("Convergence", "Comparison of groups")
    return {heading: spoken_table(summary, summary.diagnosis.to_dataframe())}


def whole_page(title: str, head: str, seed: int | None, sections: Mapping[str, str], words: Words | None) -> str:
    """Put the text of the file together: title and head as text, and sections by heading, as HTML.

    The seed of the searches is given if it is recorded. The glossary has `words`; None for scored pairs.
    """
    version, seeded = posterior_consensus.__version__, "not recorded" if seed is None else str(seed)
    shown = "".join(
        f'<h2 id="{_anchor(heading)}">{html.escape(heading)}</h2>\n{section}\n' for heading, section in sections.items()
    )
    terms = f'<h2 id="{_anchor(_GLOSSARY)}">{_GLOSSARY}</h2>{glossary(shown, words)}'
    links = "".join(
        f'<li><a href="#{_anchor(heading)}">{html.escape(heading)}</a></li>' for heading in [*sections, _GLOSSARY]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_text_of('report.css')}</style></head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1><p>{coded(head)}</p><p>Date: {_date()}. Random seed: {seeded}.</p>\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n{shown}{terms}\n'
        f"<footer>posterior_consensus {version}</footer>\n</body></html>\n"
    )


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


def _interactive(
    words: Words, heading: str, still: str, payload: Callable[..., str], *arguments: Any, **options: Any
) -> dict[str, str]:
    """Interactive figures, controls and table of a payload; `still` figures without Bokeh or scripts."""
    if util.find_spec("bokeh") is None:
        return {heading: still} if still else {}
    from posterior_consensus.summary.report.pictures import library, pictures

    script, parts = pictures(words.similarity)
    section = _text_of("interactive.html")
    spoken = {"Chains": display.capitalized(words.chains), "Similarity": display.capitalized(words.similarity)}
    for name, part in (parts | spoken | {"similarity": words.similarity, "to": words.to}).items():
        section = section.replace(f"<!--{name}-->", part)
    packed = f'<script type="text/plain" id="payload">{payload(*arguments, **options)}</script>'
    own = f"<style>{_text_of('interactive.css')}</style>", f"<script>{_text_of('interactive.js')}</script>"
    return {
        "Interactive pictures": "\n".join([section.replace("<!--still-->", still), packed, library(), *own, script])
    }


def _text_of(file: str) -> str:
    """A file of this folder."""
    return resources.files("posterior_consensus.summary.report").joinpath(file).read_text(encoding="utf-8")
