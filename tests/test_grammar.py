"""One grammar for all public functions: what is spelled alike, in which order, and what a method's options are."""

import ast
import inspect
import re

import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.methods import own_options
from tests.catalogue.functions import PUBLIC

FUNCTIONS = {name: inspect.signature(value) for name, value in PUBLIC.items() if inspect.isfunction(value)}
DEFAULTS = {"loss": None, "tau": None, "seconds": None, "random_seed": None, "progressbar": True}
IN_ORDER = ("loss", "n_clusters", "max_clusters", "n_starts", "seconds", "random_seed", "progressbar")
AS_THEY_COME = "draws data layers a new table strings partition partitions constraints model"
RESULTS = """path ball merges density views items partial particles sequence diagnosis membership links losses
    independence comparison components sensitivity clusters similarity modes"""
DATA = {*AS_THEY_COME.split(), *RESULTS.split()}
WITHOUT_DATA = re.compile(r"load_example|binder|vi|losses\..*|priors\..*|simulate\.(?!misclassification)\w+")
OF_DATA = {name: function for name, function in FUNCTIONS.items() if not WITHOUT_DATA.fullmatch(name)}


def test_arguments_are_spelled_alike_and_in_one_order():
    failures = []
    for name, function in FUNCTIONS.items():
        parameters = function.parameters.values()
        by_keyword = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        common = [one for one in by_keyword if one in IN_ORDER]
        if (
            sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) > 2
            or any(by_keyword.get(one, "none") is not DEFAULTS[one] for one in DEFAULTS.keys() & function.parameters)
            or common != sorted(common, key=IN_ORDER.index)
        ):
            failures.append(f"{name}{function}")
    assert not failures


def test_weights_may_be_logarithms():
    of_draws = [function for name, function in OF_DATA.items() if name != "as_runs"]  # whose user chooses the weights
    taken = [[one for one in function.parameters if "weights" in one] for function in of_draws]
    assert [own for own in taken if own] == [["weights", "log_weights"]] * 7


def test_data_come_first():
    failures = []
    for name, function in OF_DATA.items():
        first, *others = function.parameters
        by_place = [one.name for one in function.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        if (
            first not in DATA
            or ("draws" in others and first != "model")
            or ("partition" in by_place[2:] and first != "new")
        ):
            failures.append(f"{name}{function}")
    assert not failures


def test_what_takes_more_than_a_second_shows_its_progress():
    searches = {name for name, one in FUNCTIONS.items() if {"n_starts", "seconds"} & set(one.parameters)}
    measured = {"diagnostics.near_independence"}  # on 1,000 items
    assert all("progressbar" in FUNCTIONS[name].parameters for name in searches | measured)


def test_options_of_a_method_are_described_where_help_shows_them():
    options = inspect.getdoc(pc.consensus_partition).partition("**options")[2].partition("\n\nReturns\n")[0]
    listed = {
        name: set(re.findall(r"``(\w+)=([^`]+)``", described))
        for names, described in re.findall(r"^ +- ((?:\"\w+\",? ?)+): ((?:.|\n(?! +- ))*)", options, re.MULTILINE)
        for name in re.findall(r"\w+", names)
    }
    assert set(listed) == set(pc.METHODS)
    for name, method in pc.METHODS.items():
        parameters = inspect.signature(method.function).parameters
        defaults = {one: parameters[one].default for one in own_options(method.function)}
        assert {(one, ast.literal_eval(default)) for one, default in listed[name]} == set(defaults.items()), name
        described = re.findall(r"^([\w, ]+) : ", inspect.getdoc(method.function), re.MULTILINE)
        assert {one for names in described for one in names.split(", ")} == set(defaults), name


def test_an_option_that_a_method_does_not_take_is_refused_by_name():
    for name, method in pc.METHODS.items():
        own = ", ".join(own_options(method.function)) or "no options of its own"
        with pytest.raises(TypeError, match=rf"`zzz`\.( Did .*)? Method '{name}' takes {own}"):
            pc.consensus_partition([[0, 0, 1], [0, 1, 1]], method=name, zzz=1)
