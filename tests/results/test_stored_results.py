"""What was stored comes back: from to_dataset(), from files, and from the group that attach() wrote."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.losses import LOSSES
from posterior_consensus.losses.lookup import loss_attrs, loss_from
from posterior_consensus.results.stored_as import InWords, Stored, as_nested, own_name
from posterior_consensus.results.work import Info
from posterior_consensus.sources.containers import attach
from tests.catalogue.results import (
    LEVELS,
    ONE_OF_EACH,
    OWN,
    RESULTS,
    Z,
    assert_equal,
    best,
    made,
    read,
    with_own_names,
)
from tests.helpers import written

pytestmark = pytest.mark.xdist_group("results")


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_comes_back(kind, tmp_path):
    """From its Dataset, its group in memory and in a file, a pickle and a copy."""
    result, make = made(kind), type(made(kind)).from_dataset
    tree = attach(xr.DataTree.from_dict({"posterior": Z.to_dataset()}), result, group="mine")
    with xr.open_datatree(written(tree, tmp_path / "a.nc"), engine="h5netcdf") as stored:
        found = make(stored["mine"])
    assert repr(found) == repr(result)
    others = [make(result.to_dataset()), make(xr.DataTree(result.to_dataset())), make(found.to_dataset())]
    others.append(make(as_nested(result.to_dataset())))
    for other in (found, *others, pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert_equal(other, result)


@pytest.mark.filterwarnings("ignore:The '.*' option is deprecated")  # of pandas, which anndata sets
def test_results_come_back_from_an_h5ad_file(tmp_path):
    """Of every kind, with names that a slash would divide, times, and objects that are no text."""
    anndata = pytest.importorskip("anndata")
    items = {"a/b%": ("obs", [f"{k}/" for k in range(8)]), "when": ("obs", np.arange(8).astype("M8[ns]"))}
    odd = pc.consensus_partition(Z.assign_coords(items | {"odd": ("obs", np.arange(8, dtype=object))}))
    expected = {kind: made(kind) for kind in ONE_OF_EACH} | {"odd": odd}
    uns = {f"result {k}": as_nested(one.to_dataset()) for k, one in enumerate(expected.values())}
    anndata.AnnData(np.zeros((2, 2)), uns=uns).write_h5ad(tmp_path / "a.h5ad")
    found = anndata.read_h5ad(tmp_path / "a.h5ad").uns
    for k, result in enumerate(expected.values()):
        assert_equal(type(result).from_dataset(found[f"result {k}"]), result)


@pytest.mark.parametrize(("kind", "suffix"), list(zip(ONE_OF_EACH, itertools.cycle([".nc", ".zarr"]), strict=False)))
def test_a_result_comes_back_from_a_file_and_can_be_written_again(kind, suffix, tmp_path):
    """From Zarr, and then from a second file of either kind."""
    result = made(kind)
    with read(written(result.to_dataset(), tmp_path / "a.zarr")) as stored:
        found = type(result).from_dataset(stored)
    assert_equal(found, result)
    with read(written(found.to_dataset(), tmp_path / f"b{suffix}")) as stored:
        assert_equal(type(result).from_dataset(stored), result)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_every_field_stands_in_the_docstring(kind):
    documented = "\n".join(inspect.cleandoc(base.__doc__ or "") for base in type(made(kind)).__mro__)
    listed = re.findall(r"^(\w+(?:, \w+)*) :", documented, re.MULTILINE)
    names = {name for names in listed for name in names.split(", ")}
    assert not [field.name for field in dataclasses.fields(made(kind)) if field.name not in names]


TOGETHER = [
    *("consensus, names", "certificate", "ball", "partial, complete", "items, names", "diagnosis", "comparison"),
    *("sequence", "independence", "threshold", "perturbation", "modes", "by number", "path", "merges", "posteriors"),
    *("particles, weights", "density", "stable, complete", "sensitivity, others", "agreement, analyses"),
    *("coclustering", "clusters, parameters", "components", "links, names"),
]


@pytest.mark.filterwarnings("ignore:The '.*' option is deprecated")  # of pandas, which anndata sets
def test_results_come_back_from_one_group(posterior):
    results = [made(kind) for kind in TOGETHER]
    for data, held in ((xr.DataTree(), results), (posterior, results[:5])):
        group = attach(data, *held)["consensus"]
        for result in held:
            assert_equal(type(result).from_dataset(group), result)


def test_particles_that_came_back_without_their_draws_are_plotted():
    found = pc.results.Particles.from_dataset(made("particles, weights").to_dataset())
    assert found.draws is None
    for plot in (pc.results.Particles.plot, pc.plot_alluvial, lambda found: pc.plot_draws_map(Z, particles=found)):
        plot(found)
    components = type(made("components")).from_dataset(made("components").to_dataset())  # a posterior of partitions
    assert pc.credible_ball(components.partitions, np.zeros(8, int)).radius > 0
    pc.consensus_partition(components, loss=pc.binder(tau="mean"), random_seed=1)


def test_numpy_takes_labels_where_a_result_is_one_partition():
    one = (
        pc.results.ConsensusPartition,
        pc.results.PairThreshold,
        pc.results.PerturbationFit,
        pc.results.PartitionDensity,
    )
    partitions = [result for result in map(made, RESULTS) if isinstance(result, one)]
    assert {type(result) for result in partitions} == set(one)
    for result in partitions:
        np.testing.assert_array_equal(np.asarray(result), result.labels.values)
        assert np.asarray(result).dtype == np.int32


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_items_of_several_levels_and_with_a_result_s_own_names_come_back(kind, tmp_path):
    result, plain = RESULTS[kind](with_own_names(LEVELS)), made(kind)
    found, expected = result.to_dataset(), plain.to_dataset()
    assert_equal(type(result).from_dataset(found), result)
    if ONE_OF_EACH.index(kind) % 4 == 0:
        tree = written(attach(xr.DataTree(), result), tmp_path / "a.nc")
        with xr.open_datatree(tree, engine="h5netcdf") as stored:
            assert_equal(type(result).from_dataset(stored["consensus"]), result)
    assert len(repr(result).splitlines()) == len(repr(plain).splitlines()) and result._repr_html_()
    assert result.to_latex().count(r"\\") == plain.to_latex().count(r"\\")
    for name, values in expected.data_vars.items():
        if values.dtype.kind in "iuf":  # the same numbers, under the same names if the items do not have them
            np.testing.assert_array_equal(found[own_name(name, {"cluster", *OWN})].values, values.values)


OF_BARE = [kind for kind in ONE_OF_EACH if kind.split(",")[0] not in ("layers", "match")]  # these pair items by name


@pytest.mark.parametrize(("kind", "dim"), list(zip(OF_BARE, itertools.cycle(OWN), strict=False)))
def test_a_dimension_without_names_may_have_a_name_of_a_result_s_own(kind, dim):
    result = RESULTS[kind](Z.drop_vars("obs").rename(obs=dim))
    assert_equal(type(result).from_dataset(attach(xr.DataTree(), result)["consensus"]), result)
    assert repr(result) and result.to_latex()
    if result._figure and kind != "clusters":  # which has no parameters
        result.plot()


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_what_no_file_holds_of_items_is_text_or_left_out(kind, tmp_path):
    days = pd.period_range("2020", periods=8, freq="D")
    z = Z.assign_coords(obs=days, site=("obs", np.array([1, "a", None, 2.5, *"bcde"], dtype=object)))
    for name in ("obs", "site"):
        z[name].attrs = {"kept": "m", "also": [1.5, 2.0], "odd": object(), "so": {"a": True}, "yes": True}
    result = RESULTS[kind](z)
    stored = attach(xr.DataTree(), result, copy.deepcopy(result))["consensus"].to_dataset()
    assert_equal(stored, result.to_dataset())
    if ONE_OF_EACH.index(kind) % 4 == 1:
        with read(written(stored, tmp_path / "a.nc")) as in_file:
            stored = in_file.load()
    found = type(result).from_dataset(stored).to_dataset()
    if "obs" in found.coords:
        assert found["obs"].values.tolist() == [str(day) for day in days]
    if "site" in found.coords:
        assert found["site"].values.tolist() == ["1", "a", "None", "2.5", *"bcde"]
        assert found["site"].attrs.keys() == found["obs"].attrs.keys() == {"kept", "also"}


def test_every_result_that_is_stored_is_here():
    assert {type(made(kind)) for kind in RESULTS} == {*Stored.__subclasses__(), *InWords.__subclasses__()} - {InWords}


def test_a_loss_comes_back_by_name_and_parameters():
    named = [factory() for factory in LOSSES.values()]
    for loss in (*named, pc.vi(a=1 / 3), pc.binder(tau=0.1), pc.losses.nmi("max")):
        assert loss_from(loss_attrs(loss, "my_"), "my_") == loss
        assert pickle.loads(pickle.dumps(loss)) == loss


def test_a_loss_of_the_user_comes_back_once_it_is_known(monkeypatch):
    own = dataclasses.replace(pc.vi(), name="mine", parameters={})
    stored = best(Z, loss=own).to_dataset()
    with pytest.raises(ValueError, match=r"got 'mine'. Add .*: LOSSES\['mine'\] ="):
        pc.results.ConsensusPartition.from_dataset(stored)
    monkeypatch.setitem(LOSSES, "mine", lambda: own)
    assert pc.results.ConsensusPartition.from_dataset(stored).loss == own


@pytest.mark.parametrize("method", pc.METHODS)
def test_what_methods_tell_is_plain(method):
    found = pc.consensus_partition(Z, loss="binder", method=method, random_seed=1, progressbar=False)
    assert_equal(pc.results.ConsensusPartition.from_dataset(found.to_dataset()), found)


def test_what_a_method_of_the_user_tells_comes_back_once_its_kind_is_known():
    def alone(draws, loss, task, *, told):
        return Candidate(np.arange(draws.n_items), told)

    @dataclasses.dataclass(frozen=True)
    class Own(Info):
        words: list[str]

    found = pc.consensus_partition(Z, method=alone, told=Own(["a", "b"]))
    assert_equal(pc.results.ConsensusPartition.from_dataset(found.to_dataset()), found)
    unknown = found.to_dataset().assign_attrs(info='{"kind": "Other"}')
    with pytest.raises(ValueError, match="`info` .*known; got 'Other'"):
        pc.results.ConsensusPartition.from_dataset(unknown)
    with pytest.raises(TypeError, match="`info` .*results.work.Info .*; got dict"):
        pc.consensus_partition(Z, method=alone, told={"words": []})


def test_what_is_not_there_is_told():
    for made_of in map(type, map(made, ONE_OF_EACH)):
        with pytest.raises(ValueError, match=rf"`dataset` .*{made_of.__name__} .*to_dataset\(\).*present: 'z'"):
            made_of.from_dataset(Z.to_dataset())
        with pytest.raises(TypeError, match=r"`dataset` .*; got str.*idata\['cons"):
            made_of.from_dataset("a.nc")
