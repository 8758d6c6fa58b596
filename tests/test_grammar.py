"""One grammar for all public functions: what is spelled alike, in which order, and what a method's options are."""

import inspect
import re

import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.methods import own_options
from tests.catalogue.functions import PUBLIC

FUNCTIONS = {name: inspect.signature(value) for name, value in PUBLIC.items() if inspect.isfunction(value)}
DEFAULTS = {"loss": None, "tau": None, "seconds": None, "random_seed": None, "progressbar": True}
IN_ORDER = ("loss", "n_clusters", "max_clusters", "n_starts", "seconds", "random_seed", "progressbar")
DATA = {
    *("draws", "idata", "data", "a", "new", "psm", "matrix", "table", "strings"),  # as they come
    *("partition", "partitions", "constraints", "model"),
    *(
        "path",
        "ball",
        "merges",
        "density",
        "views",
        "items",
        "partial",
        "particles",
        "sequence",
        "diagnosis",
        "membership",
        "links",
    ),  # results
    *("losses", "independence", "comparison", "components", "sensitivity", "clusters", "similarity"),
}
MAKE_THEIR_OWN = re.compile(
    r"binder|vi|losses\..*|priors\..*|simulate\.(?!misclassification)\w+"
)  # losses, draws with a known truth


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_spelled_alike_and_in_one_order(name):
    parameters = list(FUNCTIONS[name].parameters.values())
    by_keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) <= 2
    for parameter in parameters:
        if parameter.name in DEFAULTS:
            assert parameter.name in by_keyword
            assert parameter.default is DEFAULTS[parameter.name]
    common = [one for one in by_keyword if one in IN_ORDER]
    assert common == sorted(common, key=IN_ORDER.index)


def test_weights_may_be_logarithms():
    taken = {name: [one for one in f.parameters if "weights" in one] for name, f in FUNCTIONS.items()}
    weighted = [own for name, own in taken.items() if own and not MAKE_THEIR_OWN.fullmatch(name)]
    assert weighted == [["weights", "log_weights"]] * 6


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not MAKE_THEIR_OWN.fullmatch(name)])
def test_data_come_first(name):
    first, *others = FUNCTIONS[name].parameters
    assert first in DATA
    assert not {"draws", "idata"} & set(others) or first == "model" or name == "component_similarity"  # takes one too
    assert "partition" not in others[1:] or first == "new"


def test_what_takes_more_than_a_second_shows_its_progress():
    searches = {name for name, one in FUNCTIONS.items() if {"n_starts", "seconds"} & set(one.parameters)}
    measured = {"diagnostics.near_independence", "experts.itml_k_means", "experts.semi_crowd"}  # on 1,000 items
    assert all("progressbar" in FUNCTIONS[name].parameters for name in searches | measured)


@pytest.mark.parametrize("method", pc.METHODS)
def test_options_of_a_method_are_described_where_help_shows_them(method):
    function = pc.METHODS[method].function
    described = {
        name
        for names in re.findall(r"^([\w, ]+) : ", inspect.getdoc(function), re.MULTILINE)
        for name in names.split(", ")
    }
    assert described == set(own_options(function))
    lines = re.findall(r"^ +- (.*): (.*)[;.]$", pc.consensus_partition.__doc__, re.MULTILINE)
    listed = {name: options for names, options in lines for name in re.findall(r'"(\w+)"', names)}
    assert set(listed) == set(pc.METHODS)
    assert listed[method].removesuffix(" (see Notes)") == (", ".join(own_options(function)) or "none")


@pytest.mark.parametrize("method", pc.METHODS)
def test_an_option_that_a_method_does_not_take_is_refused_by_name(method):
    own = ", ".join(own_options(pc.METHODS[method].function)) or "no options of its own"
    with pytest.raises(TypeError, match=f"method '{method}' takes {own}; got `zzz`"):
        pc.consensus_partition([[0, 0, 1], [0, 1, 1]], method=method, zzz=1)
