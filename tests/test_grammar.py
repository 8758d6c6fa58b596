"""One grammar for all public functions: what is spelled alike, in which order, and what a method's options are."""

import inspect
import re

import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.methods import own_options


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
