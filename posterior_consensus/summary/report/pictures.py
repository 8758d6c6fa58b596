"""Interactive figures of a report, by Bokeh; the page's script fills in the data."""

import re
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.embed import components
from bokeh.models import ColumnDataSource, CustomJS, FixedTicker, LinearColorMapper, Range1d
from bokeh.models.annotations import ColorBar
from bokeh.plotting import figure
from bokeh.resources import INLINE

# Bokeh numbers its models throughout the process, and names pages at random.
_IDS = re.compile(r'"p\d+"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_ZOOM = "pan,box_zoom,wheel_zoom,reset,save"


def library() -> str:
    """Return Bokeh's script, so that the page loads nothing."""
    return str(INLINE.clone(components=["bokeh"]).render_js())


def pictures(similarity: str) -> tuple[str, dict[str, str]]:
    """Return the script of the figures, and a page element for each; `similarity` is the title of the colour bar."""
    image = ColumnDataSource({"image": [np.zeros((1, 1), np.uint8)], "size": [1]})
    # One item until the script runs, since Bokeh warns of empty ranges.
    numbers = {name: [0.0] for name in ("x", "y", "rank", "own", "other")}
    items = ColumnDataSource({**numbers, "colour": ["#888888"], "marker": ["circle"]})
    boxes = {"blocks": _boxes(), "strip": _boxes("colour"), "marks": _boxes()}
    colours = LinearColorMapper(low=0, high=255, palette=["#ffffff", "#000000"])
    plots = {"matrix": _matrix(image, colours, boxes, similarity), "scatter": _scatter(items), "bars": _bars(items)}
    document = Document()
    for name, plot in plots.items():
        document.add_root(plot)
        plot.js_on_event("mousemove", CustomJS(code=f"look.pointed('{name}', cb_obj)"))
        plot.js_on_event("mouseleave", CustomJS(code="look.left()"))
        plot.js_on_event("tap", CustomJS(code=f"look.tapped('{name}', cb_obj)"))
    items.selected.js_on_change("indices", CustomJS(code="look.chosen(cb_obj.indices)"))
    models = {**plots, **boxes, "image": image, "colours": colours, "items": items}
    code = f"look.begin({{{', '.join(models)}}})"
    document.js_on_event("document_ready", CustomJS(args=models, code=code))
    script, parts = components(plots)
    ids: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        number = f"{len(ids):08x}-0000-0000-0000-000000000000"
        return ids.setdefault(found[0], f'"p{len(ids)}"' if found[0][0] == '"' else number)

    *shown, script = (_IDS.sub(named, text) for text in (*parts.values(), script))
    return script, dict(zip(parts, shown, strict=True))


def _boxes(*more: str) -> ColumnDataSource:
    return ColumnDataSource({name: [] for name in ("left", "right", "top", "bottom", *more)})


def _figure(**options: Any) -> Any:
    plot = figure(
        sizing_mode="stretch_width",
        toolbar_location="above",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **options,
    )
    plot.toolbar.logo = None
    plot.grid.visible = False
    return plot


def _matrix(
    image: ColumnDataSource, colours: LinearColorMapper, boxes: dict[str, ColumnDataSource], similarity: str
) -> Any:
    across, down = Range1d(start=0, end=1), Range1d(start=1, end=0)
    plot = _figure(x_range=across, y_range=down, aspect_ratio=1.07, tools=_ZOOM)
    plot.image("image", x=0, y=0, dw="size", dh="size", source=image, color_mapper=colours)
    plot.quad(source=boxes["strip"], fill_color="colour", line_color=None, level="overlay")
    plot.quad(source=boxes["blocks"], fill_color=None, line_color="#808080", line_width=2)
    marked = {"fill_color": "#C1272D", "fill_alpha": 0.15, "line_color": "#C1272D", "line_alpha": 0.9}
    plot.quad(source=boxes["marks"], **marked)
    plot.axis.ticker = []
    plot.axis.axis_line_color = None
    ticks = [0.0, 127.5, 255.0]  # levels of a similarity
    words: dict[float | str, Any] = dict(zip(ticks, ("0", "0.5", "1"), strict=True))
    bar = ColorBar(
        color_mapper=colours, title=similarity, ticker=FixedTicker(ticks=ticks),
        major_label_overrides=words, width=10,
        background_fill_color=None, bar_line_color="#808080", major_tick_line_color=None, padding=4,
    )  # fmt: skip
    plot.add_layout(bar, "right")
    return plot


def _scatter(items: ColumnDataSource) -> Any:
    plot = _figure(aspect_ratio=1.15, tools=f"box_select,lasso_select,{_ZOOM}", active_drag="box_select")
    plot.scatter(
        "x", "y", source=items, size=9, marker="marker", fill_color="colour", fill_alpha=0.75, line_color=None,
        nonselection_fill_alpha=0.3, selection_fill_alpha=1.0, selection_line_color="#C1272D", selection_line_width=2.5,
    )  # fmt: skip
    return plot


def _bars(items: ColumnDataSource) -> Any:
    across, up = Range1d(start=0, end=1), Range1d(start=0, end=1.02)
    plot = _figure(height=260, x_range=across, y_range=up, tools="box_select,xpan,xbox_zoom,reset,save")
    plot.vbar(
        "rank", top="own", width=1.0, source=items, fill_color="colour", line_color=None, nonselection_fill_alpha=0.3,
        selection_line_color="#C1272D", selection_line_width=2.5,
    )  # fmt: skip
    plot.scatter(
        "rank", "other", source=items, size=5, fill_color="#ffffff", line_color="#222222", nonselection_alpha=0.8
    )
    plot.xaxis.visible = False
    plot.yaxis.axis_label = "mean similarity"
    return plot
