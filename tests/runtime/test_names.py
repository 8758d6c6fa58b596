"""A name that is not there is answered by the name that was probably meant."""

import copy
import pickle
import re
import sys
import typing
from operator import attrgetter

import pytest

import posterior_consensus as pc
from posterior_consensus.results.display import Shown
from posterior_consensus.runtime import names
from tests.catalogue.functions import RECORDS
from tests.helpers import check_all

LABELS = [0, 0, 1, 1]


@pytest.fixture
def draws():
    return pc.as_partition_draws([[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] * 10)


def test_names_of_the_package():
    meant = {
        "psm": "posterior_similarity_matrix(draws)",
        "similarity_matrix": "posterior_similarity_matrix",
        "plot_layer_item": "plot_layer_items",
        "ari": 'partition_loss(partition, reference, loss="one_minus_ari")',
        "plot_pms": "plot_psm",
        "sumarize": "summarize",
        "consensus_partion": "consensus_partition",
        "Sumary": "results.Summary",
        "load": "results.Summary.from_dataset",
        "cocluster": "agreement.cocluster",
    }
    cases = [
        (name, names.UnknownName, f"has no attribute {name!r}. Did you mean `{one}`?") for name, one in meant.items()
    ]
    of_nothing = ("xyzzy", "_psm", "__wrapped__")
    cases += [
        (name, names.UnknownName, f"module 'posterior_consensus' has no attribute {name!r}.") for name in of_nothing
    ]
    check_all(lambda name: getattr(pc, name), cases)
    for name in of_nothing:
        with pytest.raises(AttributeError, match=r"attribute '\w+'\.$"):
            getattr(pc, name)
        assert not hasattr(pc, name)


def test_a_figure_that_is_the_plot_of_a_result_is_found_by_its_name():
    figures = {kind._figure.rpartition(".")[2] for kind in RECORDS if getattr(kind, "_figure", "")}
    hidden = sorted(figures - set(pc.__all__))
    assert {"plot_credible_ball", "plot_traces", "plot_modes", "plot_sequence"} <= set(hidden)
    for figure in hidden:
        for module in (pc, pc.diagnostics):
            with pytest.raises(AttributeError) as error:
                getattr(module, figure)
            (call,) = re.findall(
                rf"no attribute {figure!r}\. Did you mean `([\w.]+)\(\.\.\.\)\.plot\(\)`\?$", str(error.value)
            )
            returned = typing.get_type_hints(attrgetter(call)(pc))["return"]
            kinds = typing.get_args(returned) or (returned,)
            assert figure in {kind._figure.rpartition(".")[2] for kind in kinds}


def test_attributes_of_results(draws):
    meant = {
        "partition": "labels",
        "lables": "labels",
        "psm": "posterior_similarity_matrix(draws)",
        "similarity_matrix": "posterior_similarity_matrix(draws)",
        "n_cluster": "n_clusters",
        "todataframe": "to_dataframe",
    }
    best = pc.consensus_partition(draws, method="best_draw", random_seed=1)
    for name, one in meant.items():
        with pytest.raises(AttributeError) as error:
            getattr(best, name)
        assert str(error.value) == f"'ConsensusPartition' object has no attribute {name!r}. Did you mean `{one}`?"
        assert getattr(best, name, None) is None


def test_attributes_of_a_summary_and_of_its_parts(draws):
    meant = {
        "radius": "ball.radius",
        "uncertainty": "items",
        "save": "attach(idata, result).to_netcdf(path)",
        "lables": "labels",
    }
    summary = pc.summarize(draws, method="best_draw", modes=False, random_seed=1)
    for name, one in meant.items():
        with pytest.raises(AttributeError, match=re.escape(f"attribute {name!r}. Did you mean `{one}`?")):
            getattr(summary, name)


def test_suggestions_are_looked_for_when_they_are_shown(draws, monkeypatch):
    best, looked = pc.consensus_partition(draws, method="best_draw", random_seed=1), []
    monkeypatch.setattr(names, "did_you_mean", lambda name, *_: looked.append(name) or " Did you mean `labels`?")
    assert not hasattr(best, "lables") and not hasattr(pc, "sumarize") and looked == []
    for thing, name in ((best, "lables"), (pc, "sumarize")):
        with pytest.raises(AttributeError) as error:
            getattr(thing, name)
        sent = pickle.loads(pickle.dumps(error.value))
        assert str(sent) == str(error.value) and looked and str(sent).endswith("Did you mean `labels`?")


@pytest.mark.parametrize("function", [pc.summarize, pc.consensus_partition])
def test_names_of_items_come_with_the_data(function):
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) .*`names`.* DataFrame .* DataArray"):
        function([[0, 0, 1]] * 4, names=["a", "b", "c"])


def test_a_property_that_fails_says_why():
    class Broken(Shown):
        @property
        def labels(self):
            return (1).nothing

    with pytest.raises(AttributeError, match="'int' object has no attribute 'nothing'"):
        _ = Broken().labels


def test_losses_and_methods(draws):
    for name, meant in {
        "ari": "one_minus_ari",
        "omARI": "one_minus_ari",
        "Adjusted Rand": "one_minus_ari",
        "id": "information_distance",
        "rand": "binder",
        "bindr": "binder",
    }.items():
        with pytest.raises(ValueError, match=f"got '{name}'. Did you mean `{meant}`\\?$"):
            pc.expected_loss(draws, LABELS, loss=name)
    with pytest.raises(ValueError, match="got 'heirarchical'. Did you mean `hierarchical`\\?$"):
        pc.consensus_partition(draws, method="heirarchical")


def test_options_of_other_programs(draws):
    for name, meant in {
        "k": "n_clusters",
        "K": "n_clusters",
        "maxNClusters": "max_clusters",
        "n_init": "n_starts",
    }.items():
        for function in (pc.consensus_partition, pc.summarize):
            with pytest.raises(TypeError, match=rf"`{name}`\. Did you mean `{meant}`\? Method"):
                function(draws, **{name: 3})


def test_results_are_copied_and_pickled_and_completed(draws):
    for result in (draws, pc.item_uncertainty(draws, LABELS)):
        for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert repr(other) == repr(result)
        assert {"to_dataframe", "items"} & set(dir(result))
    assert "summarize" in dir(pc)


def test_a_module_that_fails_says_so_itself(monkeypatch):
    """An error within a module that is loaded on first use is no missing name."""
    monkeypatch.setitem(sys.modules, "posterior_consensus.answers.links", None)
    monkeypatch.delitem(vars(pc), "links", raising=False)
    with pytest.raises(ImportError, match="posterior_consensus.answers.links"):
        _ = pc.links
