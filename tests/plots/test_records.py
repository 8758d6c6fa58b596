"""Every record plots itself by its figure, or says which figures show it."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.results.display import Shown
from tests.catalogue.results import FIGURES, ONE_OF_EACH, Z, made, pairs
from tests.helpers import check

pytestmark = pytest.mark.xdist_group("results")

RECORDS = [getattr(pc.results, name) for name in pc.results.__all__]


def test_every_record_has_the_figure_of_the_table():
    own = {kind.__name__: kind._figure or None for kind in RECORDS if issubclass(kind, Shown)}
    summaries = ("Summary", "LayersSummary", "PairsSummary")
    assert own | {name: FIGURES[name] for name in summaries} == FIGURES
    assert all("plot" in vars(getattr(pc.results, name)) for name in summaries)


@pytest.mark.parametrize("kind", ["draws", "pairs", "layers", "match"])
def test_a_record_plots_itself(kind):
    """Those that `tests/results` does not plot."""
    made_here = {"draws": pc.as_partition_draws, "pairs": pairs}
    record = made_here[kind](Z) if kind in made_here else made(kind)
    axes = np.ravel(record.plot(figsize=(5, 3)))
    assert axes[0].figure.get_size_inches().tolist() == [5, 3]


def test_a_record_without_a_figure_says_so():
    made_here = [pc.experts.as_constraints(Z), *map(made, ONE_OF_EACH)]
    for record in [record for record in made_here if FIGURES[type(record).__name__] is None]:
        parts = [type(record).__name__, "no figure of its own"]
        check(lambda size, record=record: record.plot(figsize=size), (3, 2), TypeError, parts)
