"""The page of a report: findings, figures and tables in one file."""

import html
from collections.abc import Callable, Mapping
from importlib import resources, util
from pathlib import Path
from typing import Any

import pandas as pd

import posterior_consensus
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.results import display
from posterior_consensus.results.words import Words, words_of
from posterior_consensus.runtime.files import written_whole
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.payload import payload_of, payload_of_layers
from posterior_consensus.summary.report.still import (
    clusters,
    figures,
    folded,
    of_layers,
    of_links,
    pairs_heading,
    spoken_table,
    table,
    uncertain,
)
from posterior_consensus.summary.text import findings, methods_text

_LEAST = 0.5  # expected items above which a flow is listed
_FLOWS_OF_RUNS = "Items in common of a cluster of the consensus partition of a layer and one of the next layer."
_FLOWS = (
    "Expected numbers of items that go from one cluster to another in the same draw, from half an item on, with "
    "Monte Carlo standard errors and intervals."
)
_MOST_ROWS, _MOST_FOLDED = 30, 1000  # of a table shown, and of a folded table


def write_report(summary: SummaryRecord, path: Path, *, progressbar: bool) -> Path:
    """Write the report and return its path."""
    with written_whole(path) as new:  # fails before the work if the path is not writable
        new.write_text(_page(summary, progressbar=progressbar), encoding="utf-8")
    return path


def write_layers_report(
    path: Path,
    title: str,
    sentences: list[str],
    methods: str,
    layers: pd.DataFrame,
    summaries: Mapping[Any, SummaryRecord],
    comparison: LayerComparison | LayerStability | None,
    *,
    progressbar: bool,
) -> Path:
    """Write the report of several layers, given findings, a text on methods and a table, and return its path."""
    dim = str(layers.index.name)
    with written_whole(path) as new:
        *findings, chains = (html.escape(sentence) for sentence in sentences)
        listed = "".join(f"<li>{sentence}</li>" for sentence in findings)
        sections = [
            f"<h1>{html.escape(title)}</h1>",
            f'<h2>Findings</h2><ul>{listed}</ul><p class="verdict">{chains}</p>',
            f"<h2>Layers</h2>{table(layers)}",
        ]
        if comparison is not None:
            flows, (distances, items) = comparison.flow_table(), of_layers(comparison)
            heading, about = "Distances between layers", _FLOWS
            if isinstance(comparison, LayerStability):
                heading, about = "Stability of layers", _FLOWS_OF_RUNS
            else:
                flows = flows[flows["expected"] >= _LEAST]
            sections += [
                f"<h2>{heading}</h2>{distances}{_long(comparison.to_dataframe())}",
                f"<h2>Flows of items</h2>{items}<p>{about}</p>{_long(flows)}",
            ]
            dims = {one.draws.items.dim for one in summaries.values()}
            if dims == {comparison.partitions.labels.dims[1]}:  # all layers have the same kind of items
                given = summaries, comparison.partitions, dim
                words = words_of(next(iter(summaries.values())))
                sections.append(_interactive(words, "", "", payload_of_layers, *given, progressbar=progressbar))
        sections += [
            "<h2>Clusters of each layer</h2>",
            *(folded(html.escape(f"{dim} {name}"), clusters(one)) for name, one in summaries.items()),
            f"<h2>For the section on methods</h2><pre>{html.escape(methods)}</pre>",
        ]
        new.write_text(whole_page(title, sections), encoding="utf-8")
    return path


def _long(frame: pd.DataFrame) -> str:
    """A table, folded if it has many rows."""
    rows = table(frame.head(_MOST_FOLDED))
    return (
        rows if len(frame) <= _MOST_ROWS else folded(f"{min(len(frame), _MOST_FOLDED):,} of {len(frame):,} rows", rows)
    )


def _head(summary: SummaryRecord) -> str:
    """Description of the posterior in one line."""
    of_draws = "; ".join(f"{name}: {value}" for name, value in summary.draws.samples.lines())
    expected = display.quantity(summary.consensus.expected_loss, summary.loss.unit, 3)
    loss = f"{display.name_of(summary.loss)}, {words_of(summary).expected} {expected}"
    return f"{summary.source}. {display.capitalized(of_draws)}. Loss: {loss}."


def _page(summary: SummaryRecord, *, progressbar: bool) -> str:
    items = display.counted(summary.draws.n_items, "item")
    title = f"{items} in {display.counted(summary.consensus.n_clusters, 'cluster')}"
    *sentences, verdict = findings(summary)
    listed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    stills, pairs = figures(summary), pairs_heading(summary)
    sections = [
        f"<h1>{html.escape(title)}</h1><p>{html.escape(_head(summary))}</p>",
        f'<h2>Findings</h2><ul>{listed}</ul><p class="verdict {summary.diagnosis.status}">{html.escape(verdict)}</p>',
        *(f"<h2>{html.escape(head)}</h2>{''.join(parts)}" for head, parts in of_links(summary).items()),
        _interactive(
            words_of(summary), pairs, "".join(stills.pop(pairs, [])), payload_of, summary, progressbar=progressbar
        ),
        f"<h2>Clusters</h2>{clusters(summary)}",
        *(f"<h2>{html.escape(head)}</h2>{''.join(parts)}" for head, parts in stills.items()),
        f"<h2>Items with the smallest margin</h2>{spoken_table(summary, uncertain(summary))}",
        *_compared(summary),
        f"<h2>For the section on methods</h2><pre>{html.escape(methods_text(summary))}</pre>",
        f"<h2>Time</h2>{spoken_table(summary, pd.DataFrame({'seconds': summary.seconds}))}",
    ]
    return whole_page(title, sections)


def _compared(summary: SummaryRecord) -> list[str]:
    """Section on the convergence of chains, or on the groups of runs, if there are several."""
    heading = "Convergence"
    if summary.independent:
        heading = "Comparison of groups"
        if len(summary.draws.samples.chains) == 1:
            return []
    return [f"<h2>{heading}</h2>{spoken_table(summary, summary.diagnosis.to_dataframe())}"]


def whole_page(title: str, sections: list[str]) -> str:
    """The text of the file, from sections as HTML."""
    version = posterior_consensus.__version__
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_text_of('report.css')}</style></head>\n<body>\n"
        + "\n".join(sections)
        + f"\n<footer>posterior_consensus {version}</footer>\n</body></html>\n"
    )


def _interactive(
    words: Words, heading: str, still: str, payload: Callable[..., str], *arguments: Any, **options: Any
) -> str:
    """Interactive figures, controls and table of a payload; `still` figures without Bokeh or scripts."""
    if util.find_spec("bokeh") is None:
        return f"<h2>{heading}</h2>{still}" if still else ""
    from posterior_consensus.summary.report.pictures import library, pictures

    script, parts = pictures(words.together)
    section = _text_of("interactive.html")
    spoken = {"Chains": display.capitalized(words.chains), "Together": display.capitalized(words.together)}
    for name, part in (parts | spoken | {"similarity": words.similarity, "to": words.to}).items():
        section = section.replace(f"<!--{name}-->", part)
    packed = f'<script type="text/plain" id="payload">{payload(*arguments, **options)}</script>'
    own = f"<style>{_text_of('interactive.css')}</style>", f"<script>{_text_of('interactive.js')}</script>"
    return "\n".join([section.replace("<!--still-->", still), packed, library(), *own, script])


def _text_of(file: str) -> str:
    """A file of this folder."""
    return resources.files("posterior_consensus.summary.report").joinpath(file).read_text(encoding="utf-8")
