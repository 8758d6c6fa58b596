"""The pictures of experts: who is where, with what weight, and who says no more than chance."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.plots.colours import NEUTRAL
from tests.helpers import check


def test_experts_are_by_view_and_those_of_chance_last_and_grey_and_views_are_strips():
    rng = np.random.default_rng(0)
    one, other = np.repeat([0, 1, 2], 15), np.tile([0, 1, 2], 15)
    experts = {"Ann": one, "Bo": other, "Cy": one, "Di": other, "chance": rng.integers(3, size=45)}
    said = pc.experts.as_constraints(experts, n_pairs=500, random_seed=1)
    found = pc.experts.expert_views(said, n_clusters=3, max_views=2, random_seed=1, progressbar=False)
    ax = found.plot()
    captions = [tick.get_text() for tick in ax.get_yticklabels()]
    assert [caption.split()[0] for caption in captions] == ["Ann", "Cy", "Bo", "Di", "chance"]
    weight = float(found.expert_weight.sel(expert="Cy"))
    assert captions[1] == f"Cy ({weight:.1f})"
    of_row = {line.get_ydata()[0].round(): to_hex(line.get_color()) for line in ax.lines if len(line.get_xdata()) == 1}
    assert of_row[0] == of_row[1] != of_row[2] == of_row[3] and of_row[4] == NEUTRAL.lower()
    ends = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2 and np.ptp(line.get_ydata()) == 0]
    np.testing.assert_allclose(ends[0], found.intervals()["sensitivity"].sel(expert="Ann"))
    ax = pc.experts.plot_expert_views(found)
    assert len(ax.images) == 2 == len(ax.patches)
    assert [tick.get_text()[:6] for tick in ax.get_yticklabels()] == ["view 0", "view 1"]
    plt.close("all")
    check(pc.experts.plot_expert_views, 3, TypeError, ["`views`", "expert_views()", "got int"])
