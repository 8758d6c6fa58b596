"""A name that is not there is answered by the name that was probably meant."""

import copy
import pickle
import re
import subprocess
import sys

import pytest

import posterior_consensus as pc
from posterior_consensus.results.display import Shown
from posterior_consensus.runtime.guesses import no_attribute

DRAWS = pc.as_partition_draws([[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] * 10)
LABELS = [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("psm", "posterior_similarity_matrix(draws)"),
        ("similarity_matrix", "posterior_similarity_matrix"),
        ("plot_trace", "plot_traces"),
        ("ari", 'partition_loss(partition, reference, loss="omari")'),
        ("plot_pms", "plot_psm"),
        ("sumarize", "summarize"),
        ("consensus_partion", "consensus_partition"),
        ("Sumary", "Summary"),
    ],
)
def test_names_of_the_package(name, meant):
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}. Did you mean `{meant}`?")):
        getattr(pc, name)


@pytest.mark.parametrize("name", ["xyzzy", "_psm", "__wrapped__"])
def test_names_that_are_near_to_nothing(name):
    with pytest.raises(AttributeError, match=f"^module 'posterior_consensus' has no attribute '{name}'.$"):
        getattr(pc, name)
    assert not hasattr(pc, name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("partition", "labels"),
        ("lables", "labels"),
        ("psm", "posterior_similarity_matrix(draws)"),
        ("similarity_matrix", "posterior_similarity_matrix(draws)"),
        ("plot", "plot_psm(draws, partition)"),
        ("n_cluster", "n_clusters"),
        ("todataframe", "to_dataframe"),
    ],
)
def test_attributes_of_results(name, meant):
    best = pc.consensus_partition(DRAWS, method="best_draw", random_seed=1)
    with pytest.raises(AttributeError) as error:
        getattr(best, name)
    assert str(error.value) == f"'ConsensusPartition' object has no attribute {name!r}. Did you mean `{meant}`?"
    assert getattr(best, name, None) is None


def test_plots_of_results_are_there():
    public = [getattr(pc, name) for name in pc.__all__]
    kinds = [kind for kind in public if isinstance(kind, type) and issubclass(kind, Shown)]
    assert len(kinds) > 20
    for kind in kinds:
        hint = re.search(r"`(\w+)", str(no_attribute(object.__new__(kind), "plot", pc.__all__)))
        assert hint is None or hint[1] in pc.__all__ or hasattr(kind, "plot")
    assert "`plot_links`" in str(no_attribute(object.__new__(pc.Links), "plot", pc.__all__))


def test_a_property_that_fails_says_why():
    class Broken(Shown):
        @property
        def labels(self):
            return (1).nothing

    with pytest.raises(AttributeError, match="'int' object has no attribute 'nothing'"):
        _ = Broken().labels


@pytest.mark.parametrize(
    ("name", "meant"), [("ari", "omari"), ("bindr", "binder"), ("VI_lowerbound", "vi_lower_bound")]
)
def test_losses(name, meant):
    with pytest.raises(ValueError, match=f"got '{name}'. Did you mean `{meant}`\\?$"):
        pc.expected_loss(DRAWS, LABELS, loss=name)


def test_methods():
    with pytest.raises(ValueError, match="got 'heirarchical'. Did you mean `hierarchical`\\?$"):
        pc.consensus_partition(DRAWS, method="heirarchical")


def test_results_are_copied_and_pickled_and_completed():
    for result in (DRAWS, pc.item_uncertainty(DRAWS, LABELS)):
        for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert repr(other) == repr(result)
        assert {"to_dataframe", "items"} & set(dir(result))
    assert "summarize" in dir(pc)


def test_a_module_that_fails_says_so_itself():
    """An error within a module that is loaded on first use is no missing name."""
    code = (
        "import sys, posterior_consensus as pc\n"
        "sys.modules['posterior_consensus.answers.links'] = None\n"
        "try: pc.links\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "posterior_consensus.answers.links" in done.stdout
