"""The figure of "Get started": the four panels of a summary, and printed lines beside what they say."""

import re
import textwrap
from pathlib import Path

import posterior_consensus as pc

PLACES = {  # of each line: its panel, its beginning, its own place and that of what it says, in fractions of the panel
    "split": ((0, 0), r"cluster 3 in \d+% of the draws", (0.79, 0.73), (0.74, 0.27)),
    "clusters in draws": ((0, 1), r"\d+ to \d+ in \d+% of the draws", (0.81, 0.62), (0.53, 0.2)),
}
_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "0.95", "edgecolor": "black"}
_ARROW = {"arrowstyle": "->", "linewidth": 1.5}

summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
panels = summary.plot()
printed = re.sub(r"\n {4,}", " ", str(summary))
for name, (panel, beginning, place, target) in PLACES.items():
    (said,) = re.findall(rf"^  {name} +({beginning})", printed, re.MULTILINE)
    panels[panel].annotate(
        f"{name}:\n" + textwrap.fill(said, 18),
        target,
        place,
        xycoords="axes fraction",
        textcoords="axes fraction",
        arrowprops=_ARROW,
        bbox=_BOX,
        ha="center",
        va="center",
        fontsize=11,
        zorder=10,
    )
file = Path(__file__).parent / "images" / "get_started.png"
panels[0, 0].figure.savefig(file, dpi=150)
