"""What the paper shows of the examples: bounds of the minimum expected loss, runs by resolution, scored pairs.

``--write`` also writes the files beside ``paper/paper.md``: the figures, and the entries of the papers that it cites.
"""

import io
import re

import posterior_consensus as pc
from benchmarks._data import dpmm
from benchmarks._runner import ROOT, used
from benchmarks.linked import centroid_linkage
from posterior_consensus.summary.references import bibtex
from tests.helpers import example

PAPER = ROOT / "paper"
POSTERIORS = {  # and the side of a point that its name is on
    "galaxies": ("galaxies", "left"),
    "iris": ("irises", "right"),
    "nile": ("years of the Nile", "right"),
    "two_answers": ("simulated plants", "right"),
    "block_model": ("network", "left"),
    "records": ("records", "left"),
    "dpmm": ("simulated mixture", "left"),  # of the tests
}
WIDTH, FONT = 5.5, 7.0  # inches between the margins of the journal's page, and points of the smallest text
QUIET = {"progressbar": False}
SEEDED = {"random_seed": 1, **QUIET}
OPTIONS = {"--write": {"action": "store_true", "help": "write paper/paper.bib and paper/figures/"}}


def tables(smallest, write):
    found: list[list[dict]] = [[], [], []]
    steps = (bounds(("iris",) if smallest else POSTERIORS), resolutions(), scored_pairs())
    for title, rows, kept in zip(("Bounds", "Runs of Leiden", "Scored pairs"), steps, found, strict=True):
        yield title, (kept.append(row) or row for row in rows)
    if write and not smallest:
        (PAPER / "paper.bib").write_text(cited_entries(), encoding="utf-8")
        draw_new(*found)
        draw_summary()


def bounds(names):
    """Expected loss of the consensus, the least that any partition can have, and what lies between them."""
    for name in names:
        draws = pc.as_partition_draws(dpmm() if name == "dpmm" else pc.load_example(name))
        if name == "block_model":  # whose draws begin with the first sweep
            draws = draws.take(pc.diagnostics.sequential_distances(draws).kept)
        for loss in ("vi", "binder"):
            best = pc.consensus_partition(draws, loss=loss, **SEEDED)
            call = used(pc.certify, draws, best, loss=loss, **QUIET)
            proof = call.result
            yield {
                "posterior": name,
                "items x draws": f"{draws.n_items:,} x {draws.n_draws:,}",
                "loss": loss,
                "expected loss": f"{proof.expected_loss:.6f}",
                "lower bound": f"{proof.lower_bound:.6f}",
                "optimality gap": f"{proof.optimality_gap:.2%}",
                "status": proof.status,
                "CPU seconds": call.cpu,
            }


def resolutions():
    """How far the runs of each resolution agree, between 0 by chance and 1."""
    runs = pc.as_runs(pc.load_example("cells"), "leiden_*", groups="leiden_{}_*")
    found = pc.compare_layers(runs, **SEEDED)
    for resolution, row in found.to_dataframe().iterrows():
        yield {
            "resolution": str(resolution),
            "runs": int(row["n_runs"]),
            "clusters": int(row["n_clusters"]),
            "stability": f"{row['stability']:.4f}",
            "error": f"{row['stability_error']:.4f}",
            "shortlist": "yes" if resolution in found.shortlist else "",
        }


def scored_pairs():
    """Expected number of wrong pairs of the consensus and of what linkage programs do, at the threshold 0.5.

    F1 of pairs is against the truth, and of all records, also those that are in no scored pair.
    """
    table, persons = pc.load_example("pairs"), pc.load_example("persons")["person"]
    names = persons.index
    pairs = pc.as_pair_similarity(table, items=names)
    left, right = (names.get_indexer(table[f"unique_id_{side}"]) for side in "lr")
    scored = (left, right, table["match_probability"].to_numpy())
    best = pc.consensus_partition(pairs, loss="binder", **SEEDED)
    linked = example("linkage")
    methods = {
        "connected components": linked.connected_components(len(names), *scored),
        "best links": linked.best_links(len(names), *scored),
        "centroid linkage": centroid_linkage(len(names), *scored, 0.5),
        "average linkage": linked.average_linkage(len(names), *scored),
        "consensus": best.labels,
    }
    for said, labels in methods.items():
        loss = float(pc.expected_loss(pairs, labels, loss="binder")["expected_loss"])
        proven = f"{best.info.n_proven} of {best.info.n_components}" if said == "consensus" else ""
        yield {
            "method": said,
            "expected wrong pairs": f"{loss * len(names) ** 2 / 2:.1f}",
            "F1 of pairs": f"{pc.evaluate(labels, persons).to_dataframe().loc['pairs', 'f1']:.3f}",
            "components proven": proven,
        }


def cited_entries() -> str:
    """Entries of the bibliography that the paper cites."""
    text = (PAPER / "paper.md").read_text(encoding="utf-8")
    return bibtex(sorted(set(re.findall(r"@(\w+)", text)))) + "\n"


def draw_new(of_bounds, of_resolutions, of_pairs):
    from matplotlib.figure import Figure

    figure = Figure((WIDTH, 3.7), layout="constrained")
    axes = figure.subplot_mosaic([["a", "b"], ["c", "c"]], height_ratios=(1.3, 1))

    blue, red, grey = "#4477AA", "#C1272D", "#BBBBBB"
    for row in (row for row in of_bounds if row["loss"] == "vi"):
        is_proven = row["status"] == "optimal"
        at = int(row["items x draws"].split()[0].replace(",", "")), row["CPU seconds"]
        axes["a"].plot(*at, "o", color=blue, markerfacecolor=blue if is_proven else "none", markersize=4)
        name, side = POSTERIORS[row["posterior"]]
        left = f"{row['optimality gap']} left after {row['CPU seconds']:.0f} s"
        said = name if is_proven else f"{name}:\n{left}"
        beside = {"xytext": (5 if side == "right" else -5, 0), "textcoords": "offset points"}
        axes["a"].annotate(said, at, ha="left" if side == "right" else "right", va="center", fontsize=FONT, **beside)
    axes["a"].set(xscale="log", yscale="log", xlim=(20, 1500), ylim=(0.008, 150))
    axes["a"].set(xlabel="number of items", ylabel="CPU time of the proof (s)")
    axes["a"].set_xticks([30, 100, 300, 1000], ["30", "100", "300", "1,000"])
    axes["a"].set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes["a"].minorticks_off()

    for row in of_resolutions:
        resolution, stability, error = (float(row[key]) for key in ("resolution", "stability", "error"))
        lowest, to_top = stability - 2 * error, min(2 * error, 1 - stability)  # stability is 1 at most
        colour = blue if row["shortlist"] else grey
        ends = [[2 * error], [to_top]]
        axes["b"].errorbar(resolution, stability, ends, fmt="o", color=colour, markersize=4, linewidth=1, capsize=2)
        if row["shortlist"]:
            said = f"{row['resolution']}: {row['clusters']} clusters"
            axes["b"].annotate(said, (resolution, lowest), (5, 0), textcoords="offset points", fontsize=FONT)
    axes["b"].set(xlabel="resolution of Leiden", ylabel="stability of 20 runs")

    shown = of_pairs[::-1]
    wrong = [float(row["expected wrong pairs"]) for row in shown]
    colours = [red if row["method"] == "consensus" else grey for row in shown]
    bars = axes["c"].barh([row["method"] for row in shown], wrong, height=0.6, color=colours)
    said = [f"{row['expected wrong pairs']} (F1 {row['F1 of pairs']})" for row in shown]
    axes["c"].bar_label(bars, said, fontsize=FONT, padding=2)
    axes["c"].set(xlabel="expected number of wrong pairs", xlim=(0, 480))

    for letter, panel in axes.items():
        panel.set_title(letter, loc="left", fontsize=FONT + 1, fontweight="bold")
        panel.tick_params(labelsize=FONT)
        panel.xaxis.label.set_size(FONT)
        panel.yaxis.label.set_size(FONT)
        panel.spines[["top", "right"]].set_visible(False)
    save(figure, "new.png", dpi=230)


def draw_summary():
    import matplotlib.pyplot as plt

    summary = pc.summarize(pc.load_example("galaxies"), **SEEDED)
    with plt.rc_context({"font.size": FONT / 0.9}):  # in small print, ticks have nine tenths of it
        save(summary.plot(figsize=(WIDTH, 5.2))[0, 0].figure, "summary.png", dpi=230)


def save(figure, name, dpi):
    """Write a figure of few colours, which takes half of the bytes."""
    from PIL import Image

    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format="png")
    Image.open(picture).convert("RGB").quantize(128).save(PAPER / "figures" / name, optimize=True)
