"""Figures of links: numbers of pairs on a logarithmic axis, and what is left out."""

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.results.words import RUNS

DRAWS = np.array([[0, 0, 1, 2, 3], [0, 0, 1, 1, 2], [0, 0, 1, 2, 3], [0, 1, 2, 3, 3]] * 25)
PARTITION = [0, 0, 1, 2, 3]


def numbers(ax):
    """Numbers of pairs at the middle of each interval, by entry of the legend."""
    return {
        line.get_label(): {round(float(x), 3): y for x, y in zip(*line.get_data(), strict=True) if np.isfinite(y)}
        for line in ax.lines
        if line.get_marker() == "o"
    }


def test_pairs_are_counted_apart_and_those_left_out_are_counted_too():
    counts, uncertain = pc.links(DRAWS, PARTITION).plot()[0]
    of_same = {0.775: 1}  # 0 and 1, in three of four draws
    of_others = {0.275: 2}  # 2 and 3, 3 and 4
    assert numbers(counts) == {"in one cluster of the partition": of_same, "in different clusters": of_others}
    assert counts.get_yscale() == "log" and not any(patch.get_fill() for patch in counts.patches)
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
    assert "threshold: 0.5" in [text.get_text() for text in scores.get_legend().get_texts()]
    assert sizes.lines[0].get_ydata()[:2] == pytest.approx([2, 1]) and not sizes.patches
