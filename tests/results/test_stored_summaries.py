"""What was stored of a summary comes back, with all its results."""

import dataclasses
import pickle

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources.containers import attach
from tests.catalogue.results import ITEMS, LEVELS, Z, assert_equal, best, engine_of, read, with_own_names
from tests.helpers import array, written

pytestmark = pytest.mark.xdist_group("results")


def tree():
    observed = {"y": ("obs", np.random.default_rng(1).normal(size=8), {}, {})}
    return xr.DataTree.from_dict(
        {"posterior": Z.to_dataset(), "observed_data": xr.Dataset(observed, {"obs": ITEMS[::-1]})}
    )


def two_modes():
    rng = np.random.default_rng(1)
    modes = np.array([[0] * 4 + [1] * 4 + [2] * 4, [0] * 4 + [1] * 4 + [2, 2, 3, 3]])
    labels = modes[rng.integers(2, size=90)]
    return np.where(rng.random((90, 12)) < 0.05, rng.integers(4, size=(90, 12)), labels)


def soft():
    p = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 20, 6))
    return xr.DataTree.from_dict({"posterior": array(p, ("chain", "draw", "obs", "k")).to_dataset()})


SUMMARIES = {
    "tree": (tree, {"loss": "binder"}, {}),
    "draws": (two_modes, {"loss": "vi"}, {}),
    "soft": (soft, {"loss": pc.binder(a=0.8)}, {}),
    "no certificate": (tree, {"loss": "one_minus_ari"}, {}),
    "levels": (lambda: with_own_names(LEVELS), {}, {}),
    "weighted": (tree, {}, {"weights": np.arange(60.0), "var_name": "z"}),
}
PARTS = {
    "certified_partition": "a Certificate .*partition",
    "certificate_loss": "a Certificate .*loss",
    "particle_weight_of": "a Particles .*weights",
    "particle_status": "a Particles .*status",
    "ball_radius": "a CredibleBall .*radius",
    "summary_seconds": "a Summary .*seconds",
}


@pytest.fixture(scope="module")
def summary():
    return pc.summarize(Z, random_seed=1, progressbar=False)


def test_a_stored_summary_that_lacks_a_part_of_a_result_is_refused(summary):
    for part, words in PARTS.items():
        stored = summary.to_dataset()
        assert (part in stored) != (part in stored.attrs)
        damaged = stored.drop_vars(part, errors="ignore")
        damaged.attrs.pop(part, None)
        with pytest.raises(ValueError, match=rf"`dataset` .*{words.replace(' .*', ' .*missing: ')}\."):
            pc.results.Summary.from_dataset(damaged, Z)


def test_a_stored_summary_without_a_certificate_has_none(summary):
    stored = summary.to_dataset()
    whole = stored.drop_vars([name for name in stored if str(name).startswith(("certified", "better"))])
    whole.attrs = {name: value for name, value in whole.attrs.items() if not name.startswith("certificate")}
    assert pc.results.Summary.from_dataset(stored, Z).certificate is not None
    assert pc.results.Summary.from_dataset(whole, Z).certificate is None


@pytest.mark.parametrize("kind", SUMMARIES)
def test_a_summary_comes_back(kind, tmp_path):
    make, options, where = SUMMARIES[kind]
    idata = make()
    summary = pc.summarize(idata, **where, **options, random_seed=1, progressbar=False)
    assert_equal(pc.results.Summary.from_dataset(summary.to_dataset(), idata, **where), summary)
    for suffix in (".nc", ".zarr") if kind in ("tree", "levels") else (".nc",):
        path = written(attach(xr.DataTree(), summary), tmp_path / f"a{suffix}")
        with xr.open_datatree(path, engine=engine_of(suffix)) as stored:
            found = pc.results.Summary.from_dataset(stored["consensus"], idata, **where)
        assert_equal(found, summary)
        assert repr(found) == repr(summary) and found.findings() == summary.findings()
    assert (summary.observed is not None) == (make is tree)
    assert_equal(pickle.loads(pickle.dumps(summary)), summary)


def test_a_summary_with_an_alternative_comes_back(summary, tmp_path):
    other = best(Z, n_clusters=4).with_names(list("wxyz"))
    assert other.n_clusters != summary.partition.n_clusters
    summary = dataclasses.replace(summary, alternative=other)
    with read(written(summary.to_dataset(), tmp_path / "a.nc")) as stored:
        assert_equal(pc.results.Summary.from_dataset(stored, Z), summary)


def test_a_summary_of_other_draws_is_refused(summary):
    with pytest.raises(ValueError, match="`draws` .*60 of 8 items; got 30 of 8"):
        pc.results.Summary.from_dataset(summary.to_dataset(), Z[:1])
