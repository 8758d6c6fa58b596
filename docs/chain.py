"""Draws images/chain.svg for the page "From splink": two persons of the tutorial whom one wrong link connects.

python docs/chain.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import posterior_consensus as pc

SEEN = 0.005  # lower scores are not drawn
RECORD = "r0040"
TURN = 0.95  # of each cluster: no line between both runs along another, or through a record
ON_WHITE = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}  # as text lies on lines


def draw():
    """Draw the component of a record, the scores of its pairs, and the clusters of the consensus partition."""
    scores, persons = pc.load_example("pairs"), pc.load_example("persons")
    pairs = pc.as_pair_similarity(scores, items=persons.index)
    best = pc.consensus_partition(pairs, random_seed=1, progressbar=False)
    component = pc.summarize(pairs, random_seed=1, progressbar=False).component.to_series()
    own = component.index[component == component[RECORD]]
    clusters = best.labels.to_series()[own]
    place = {}
    for k, cluster in enumerate(clusters.unique()):
        members = own[clusters == cluster]
        for angle, name in zip(np.linspace(0, 2 * np.pi, len(members), endpoint=False) + TURN, members, strict=True):
            place[name] = np.array([3.4 * k + 1.1 * np.cos(angle), 0.8 * np.sin(angle)])
    fig, ax = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    for one, other, score in zip(
        *(scores[c] for c in ("unique_id_l", "unique_id_r", "match_probability")), strict=True
    ):
        if one in place and other in place and score > SEEN:
            ends = np.array([place[one], place[other]])
            joined = clusters[one] == clusters[other]
            ax.plot(*ends.T, color="#4477aa" if joined else "#cc6677", lw=0.5 + 3 * score, alpha=0.6, zorder=1)
            if not joined:
                ax.annotate(f"{score:.2f}", [0.45, 0.55] @ ends, ha="center", va="center", color="#aa3344", **ON_WHITE)
    for name, at in place.items():
        words = persons.loc[name, ["given_name", "surname"]].fillna("?")
        ax.scatter(*at, s=60, color="#222222", zorder=2)
        below = (0, -14) if at[1] < 0 else (0, 8)
        ax.annotate(
            " ".join(words), at, below, textcoords="offset points", ha="center", fontsize=8, zorder=3, **ON_WHITE
        )
    ax.margins(0.12)
    ax.axis("off")
    return fig


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "chain"
    draw().savefig(Path(__file__).parent / "images" / "chain.svg", metadata={"Date": None})
