"""The interactive section of a report, if Bokeh is installed."""

from __future__ import annotations

from importlib import resources, util

from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.payload import payload_of
from posterior_consensus.summary.report.still import PAIRS


def interactive(summary: SummaryRecord, still: str, *, progressbar: bool) -> str:
    """Return pictures, controls and table with their scripts; without Bokeh, and without scripts, the `still` ones."""
    if util.find_spec("bokeh") is None:
        return f"<h2>{PAIRS}</h2>{still}" if still else ""
    from posterior_consensus.summary.report.pictures import library, pictures

    script, parts = pictures()
    section = text_of("interactive.html")
    for name, part in parts.items():
        section = section.replace(f"<!--{name}-->", part)
    packed = f'<script type="text/plain" id="payload">{payload_of(summary, progressbar=progressbar)}</script>'
    own = f"<style>{text_of('interactive.css')}</style>", f"<script>{text_of('interactive.js')}</script>"
    return "\n".join([section.replace("<!--still-->", still), packed, library(), *own, script])


def text_of(file: str) -> str:
    """Return a file of this folder."""
    return resources.files("posterior_consensus.summary.report").joinpath(file).read_text(encoding="utf-8")
