"""Colours that stand for different things are told apart with normal and with every dichromatic vision."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from colorspacious import cspace_convert
from matplotlib import colormaps
from matplotlib.colors import to_rgba, to_rgba_array

from posterior_consensus.plots.colours import BARS, MARK, NOISE_GREY, OPEN, PRIOR, chain_colour, colours_of_scales
from posterior_consensus.results.palette import COLOURS
from posterior_consensus.summary.report.still import _NEAR

CHAINS = [chain_colour(k, 4) for k in range(4)]
with plt.style.context("dark_background"):
    CHAINS_ON_DARK = [chain_colour(k, 4) for k in range(4)]
GREYS = [NOISE_GREY, OPEN]


def over(page):
    """Colour of bars on a page from black (0) to white (1), which they let through."""
    *colour, opacity = to_rgba(BARS)
    return tuple(opacity * part + (1 - opacity) * page for part in colour)


PALETTES = {
    "chains": (CHAINS, 27, 21),
    "chains and the partition": ([*CHAINS, MARK], 24, 17),
    "chains on dark": (CHAINS_ON_DARK, 34, 24),
    "chains and the partition on dark": ([*CHAINS_ON_DARK, MARK], 30, 17),
    "posterior, prior, partition on white": ([over(1.0), PRIOR, MARK], 28, 28),
    "posterior, prior, partition on black": ([over(0.0), PRIOR, MARK], 26, 17),
    "two clusters": (COLOURS[:2], 40, 35),
    "eight clusters": (COLOURS[:8], 20, 12),
    "all clusters": ([*COLOURS, *GREYS], 15, 6.5),
}


def least_distance(colours, blindness):
    """Least distance in CAM02-UCS of two colours, seen as in Machado, Oliveira and Fernandes (2009) at severity 100."""
    seen = to_rgba_array(colours)[:, :3]
    if blindness is not None:
        space = {"name": "sRGB1+CVD", "cvd_type": blindness, "severity": 100}
        seen = cspace_convert(seen, space, "sRGB1").clip(0, 1)
    places = cspace_convert(seen, "sRGB1", "CAM02-UCS")
    return np.linalg.norm(places[:, np.newaxis] - places, axis=-1)[np.triu_indices(len(places), 1)].min()


@pytest.mark.parametrize("blindness", [None, "deuteranomaly", "protanomaly", "tritanomaly"])
@pytest.mark.parametrize("palette", PALETTES)
def test_colours_are_told_apart_by_everybody(palette, blindness):
    colours, normal, blind = PALETTES[palette]
    assert least_distance(colours, blindness) >= (normal if blindness is None else blind)


@pytest.mark.parametrize(("chains", "least"), [(CHAINS, 12), (CHAINS_ON_DARK, 9)])
def test_no_colour_of_a_chain_is_near_one_of_a_cluster(chains, least):
    places, others = (cspace_convert(to_rgba_array(some)[:, :3], "sRGB1", "CAM02-UCS") for some in (chains, COLOURS))
    assert np.linalg.norm(places[:, np.newaxis] - others, axis=-1).min() >= least


def test_chains_are_visible_on_dark_bars():
    """The ratio of luminances is at least 3, as WCAG asks of graphical objects."""

    def luminance(colour):
        parts = to_rgba_array(colour)[0, :3]
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    assert min((luminance(colour) + 0.05) / (luminance(over(0.0)) + 0.05) for colour in CHAINS_ON_DARK) > 3


def test_no_colour_of_clusters_or_chains_is_inverted_with_those_of_matrices_on_dark_screens():
    own = 255 * to_rgba_array([*COLOURS, *CHAINS, MARK, PRIOR, *colormaps["viridis"](np.arange(256))])[:, :3]
    assert np.linalg.norm(own[:, np.newaxis] - colours_of_scales(), axis=-1).min() > _NEAR
