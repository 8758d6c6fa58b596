"""Pictures of partial partitions: the curve, and sure items solid where open ones are pale."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.plots.colours import MARK, OPEN
from posterior_consensus.results.palette import COLOURS
from tests.helpers import array

NAMES = [f"item {k}" for k in range(8)]
SURE = [-1, 0, 0, 1, -1, 1, 1, -1]


@pytest.fixture(scope="module")
def partial():
    """Items 1 and 2 are together, 3, 5 and 6 are, and the others are anywhere."""
    rng = np.random.default_rng(0)
    labels = np.where(np.array(SURE) >= 0, SURE, 5)
    draws = np.where(labels == 5, rng.integers(4, size=(1, 60, 8)), labels)
    found = pc.partial_partition(array(draws, ("chain", "draw", "obs"), obs=NAMES), 0.9, random_seed=1)
    np.testing.assert_array_equal(found.labels, SURE)
    return found


def test_curve_and_what_was_asked_for(partial):
    ax = partial.plot()
    curve, found, held_out, *_, asked = ax.lines
    np.testing.assert_array_equal(curve.get_ydata(), partial.curve)
    np.testing.assert_array_equal(asked.get_ydata(), [0.9, 0.9])
    assert (found.get_xdata()[0], found.get_ydata()[0]) == (5, 1.0)
    assert found.get_markerfacecolor() == "none" and to_hex(found.get_color()) == MARK.lower()
    assert 5 < held_out.get_xdata()[0] < 6  # beside the ring
    assert held_out.get_ydata()[0] == partial.probability
    filled = ax.collections[0].get_paths()[0]
    corners = filled.vertices
    area = abs(np.sum(corners[:-1, 0] * corners[1:, 1] - corners[1:, 0] * corners[:-1, 1])) / 2
    assert area / 8 == pytest.approx(partial.area)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert all(share in text for share, text in zip(("chose them, 100%", "100% ± 2 MCSE"), texts, strict=True))
    assert ax.get_title().startswith("5 of 8 items") and ax.texts[0].get_text() == "requested: 90%"


def test_open_items_are_pale_among_the_data(partial):
    values = np.arange(16.0).reshape(8, 2)
    ax = pc.plot_data(values, partial)
    shown = {}
    for points in ax.collections:
        colours = np.resize(points.get_facecolors(), (len(points.get_offsets()), 4))
        for place, colour in zip(points.get_offsets(), colours, strict=True):
            shown[int(place[0]) // 2] = (to_hex(colour[:3]), points.get_alpha())
    assert len(shown) == 8
    for i, k in enumerate(SURE):
        assert shown[i] == ((COLOURS[k].lower(), 0.8) if k >= 0 else (OPEN.lower(), 0.5))
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0 (n = 2)", "1 (n = 3)", "unassigned (n = 3)"]
    single = pc.plot_data(values[:, 0], partial)
    faces = [to_hex(patch.get_facecolor()[:3]) for patch in single.patches]
    assert faces == [COLOURS[0].lower(), COLOURS[1].lower(), OPEN.lower()]


def test_data_are_put_in_the_order_of_the_items(partial):
    order = np.random.default_rng(1).permutation(8)
    data = array(np.arange(8.0)[order], ("obs",), obs=np.array(NAMES)[order])
    one, other = pc.plot_data(np.arange(8.0), partial), pc.plot_data(data, partial)
    for points, others in zip(one.collections, other.collections, strict=True):
        np.testing.assert_allclose(points.get_offsets(), others.get_offsets())


def test_uncertainty_is_of_whole_partitions(partial):
    items = pc.item_uncertainty(np.zeros((3, 8), int), np.zeros(8, int))
    with pytest.raises(ValueError, match="`items` must be of this partition"):
        pc.plot_data(np.arange(8.0), partial, items=items)


def test_matrix_has_open_items_paler_and_at_the_end_or_in_the_order_of_the_data(partial):
    draws = np.where(np.array(SURE) < 0, np.arange(8) + 5, SURE)[np.newaxis, np.newaxis]
    draws = array(draws, ("chain", "draw", "obs"), obs=NAMES)
    ax = pc.plot_psm(pc.posterior_similarity_matrix(draws), partial)
    alpha = ax.images[0].get_alpha()
    assert np.all(alpha[:5, :5] == 1.0) and np.all(alpha[5:] < 0.5) and np.all(alpha[:, 5:] < 0.5)
    assert [patch.get_width() for patch in ax.patches] == [2, 3]
    assert {tick.get_text() for tick in ax.get_xticklabels()[5:]} == {"item 0", "item 4", "item 7"}
    ax, sure = pc.plot_psm(draws, partial, order="data"), np.array(SURE) >= 0
    np.testing.assert_array_equal(ax.images[0].get_alpha() == 1.0, np.logical_and.outer(sure, sure))
    assert sorted(patch.get_x() + 0.5 for patch in ax.patches) == [1, 3, 5]  # where a run of sure items begins


def test_open_is_named_where_items_are_not():
    labels = np.arange(120) % 2
    draws = np.tile(labels, (40, 1))
    draws[:, 60:] = np.random.default_rng(0).integers(2, size=(40, 60))
    partial = pc.partial_partition(draws, 0.9, random_seed=1)
    assert partial.n_items >= 60
    ax = pc.plot_psm(draws, partial)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1", "unassigned"]
