"""Hypothesis strategies for label draws, their weights and their relabellings."""

import numpy as np
from hypothesis import example
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.catalogue.posteriors import DEGENERATE

SPARSE = st.integers(0, 2**62)


def label_draws(min_draws=1, max_draws=8, min_items=1, max_items=7, max_label=4, min_chains=None):
    """Integer arrays of draws x items, or of chains x draws x items where `min_chains` is given."""
    sizes = [st.integers(min_draws, max_draws), st.integers(min_items, max_items)]
    if min_chains is not None:
        sizes.insert(0, st.integers(min_chains, 3))
    return npst.arrays(np.int64, st.tuples(*sizes), elements=st.integers(0, max_label))


def weights(n_draws):
    """Weights of the draws that do not all vanish, in any unit."""
    one = st.floats(0, 1e6, allow_subnormal=False)
    return npst.arrays(np.float64, n_draws, elements=one).filter(lambda w: w.max() > 1e-3)


@st.composite
def relabelled(draw, draws):
    """Label draws with other names for the labels of every draw, large ones and gaps included."""
    names = [
        draw(st.lists(SPARSE, min_size=k, max_size=k, unique=True)) for k in (draws.max(axis=-1) + 1).ravel().tolist()
    ]
    rows = draws.reshape(-1, draws.shape[-1])
    return np.array([np.array(new)[row] for new, row in zip(names, rows, strict=True)]).reshape(draws.shape)


@st.composite
def small_draws(draw, max_items=6, max_draws=6):
    """A few draws of a few items, ties and all."""
    n_items = draw(st.integers(1, max_items))
    row = st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items)
    return np.array(draw(st.lists(row, min_size=1, max_size=max_draws)))


def label_pairs(max_items=9):
    """Two label vectors of the same items."""
    return st.integers(1, max_items).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 2)
    )


def degenerate(test):
    """Let a hypothesis test of `draws` begin with those of the catalogue that are degenerate."""
    for draws in DEGENERATE.values():
        test = example(draws=draws)(test)
    return test
