"""Figures of links: numbers of pairs above and below zero, and what is left out."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import StepPatch

import posterior_consensus as pc
from posterior_consensus.results.words import RUNS

DRAWS = np.array([[0, 0, 1, 2, 3], [0, 0, 1, 1, 2], [0, 0, 1, 2, 3], [0, 1, 2, 3, 3]] * 25)
PARTITION = [0, 0, 1, 2, 3]


def numbers(ax):
    """Numbers of pairs at the middle of each interval, above zero and below it."""
    both = []
    for steps in (patch.get_data() for patch in ax.patches if isinstance(patch, StepPatch)):
        middles = (steps.edges[1:] + steps.edges[:-1]) / 2
        both.append({round(float(x), 3): y for x, y in zip(middles, steps.values, strict=True) if y})
    return both


def test_pairs_are_counted_apart_and_those_left_out_are_counted_too():
    counts, uncertain = pc.links(DRAWS, PARTITION).plot()[0]
    of_same = {0.775: 1}  # 0 and 1, in three of four draws
    of_others = {0.275: -2}  # 2 and 3, 3 and 4
    assert numbers(counts) == [of_same, of_others]
    counts.figure.draw_without_rendering()
    assert [text.get_text() for text in counts.get_yticklabels()] == ["2", "1", "0", "1"]
    assert counts.get_title().replace("\n", " ") == "0 pairs above 0.95, 3 uncertain, from 0.05 to 0.95 (shaded)"
    filled, hollow = uncertain.collections[1:]
    assert len(filled.get_offsets()) == 1 and len(hollow.get_offsets()) == 2 and not len(hollow.get_facecolors())
    assert "7 pairs at 0.01 or less" in counts.get_xlabel() and "MCSE" in uncertain.get_xlabel()
    runs = pc.links(pc.as_runs(DRAWS), PARTITION).plot()[0]
    assert all(ax.get_xlabel().startswith(RUNS.similarity) for ax in runs) and "SE" in runs[1].get_xlabel()


def test_prior_means_are_beside_the_numbers_of_clusters_by_size():
    found = pc.links(DRAWS, PARTITION, prior=pc.priors.crp(1.0))
    (points,) = (line for line in pc.plot_cluster_sizes(found).lines if line.get_label() == "prior mean")
    np.testing.assert_array_equal(points.get_ydata(), found.sizes["prior"][:-1])


def test_unscored_pairs_are_counted_and_the_threshold_has_its_value():
    table = pd.DataFrame({"a": ["r", "r", "s"], "b": ["s", "t", "u"], "p": [0.9, 0.2, 0.7]})
    found = pc.links(pc.as_pair_similarity(table, left="a", right="b", probability="p"), [0, 0, 1, 2])
    sizes, scores = found.plot()[0][::-1]
    assert "3 unscored pairs" in scores.get_xlabel()
    assert scores.get_title().replace("\n", " ") == "0 joined, 1 separated against their score (shaded)"
    assert "threshold: 0.5" in {text.get_text() for text in scores.texts}
    above, below = (shade.get_datalim(scores.transData) for shade in scores.collections)  # which begin at zero pairs
    assert (above.x1, above.y0, below.x0, below.y1) == (0.5, 0.0, 0.5, 0.0)
    assert sizes.lines[0].get_ydata()[:2] == pytest.approx([2, 1]) and not sizes.patches
