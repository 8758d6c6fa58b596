"""The figure of "Get started": the four panels of a summary, and beside each the printed line that it shows."""

import re
import textwrap

import posterior_consensus as pc

PLACES = {  # of each line: its panel, its own place and that of what it says, in fractions of the panel
    "each cluster": ((0, 0), (0.27, 0.22), (0.55, 0.33)),
    "clusters in draws": ((0, 1), (0.72, 0.62), (0.44, 0.47)),
    "95% credible ball": ((1, 0), (0.5, 0.52), (0.42, 0.66)),
    "uncertain items": ((1, 1), (0.33, 0.42), (0.93, 0.41)),
}
_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "lightyellow", "edgecolor": "black"}
_ARROW = {"arrowstyle": "->", "linewidth": 1.5}


def plot():
    """Plot the summary of the galaxies with its callouts."""
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    panels = summary.plot()
    printed = re.sub(r"\n {4,}", " ", str(summary))
    for name, (panel, place, target) in PLACES.items():
        (line,) = re.findall(rf"^  {name} +(.+)", printed, re.MULTILINE)
        said = re.sub(r"; mean .*|, central .*| \(.*?\)", "", line)
        panels[panel].annotate(
            f"{name}\n" + textwrap.fill(said, 26),
            target,
            place,
            xycoords="axes fraction",
            textcoords="axes fraction",
            arrowprops=_ARROW,
            bbox=_BOX,
            ha="center",
            va="center",
            fontsize=9,
            zorder=10,
            annotation_clip=False,
        )
