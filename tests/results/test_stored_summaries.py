"""What was stored of a summary comes back, with all its results."""

import dataclasses
import pickle

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources.containers import attach
from tests.catalogue.results import ITEMS, LEVELS, Z, assert_equal, best, engine_of, read
from tests.helpers import array, written


def summaries():
    rng = np.random.default_rng(1)
    tree = xr.DataTree.from_dict(
        {
            "posterior": Z.to_dataset(),
            "observed_data": xr.Dataset({"y": ("obs", rng.normal(size=8), {}, {})}, {"obs": ITEMS[::-1]}),
        }
    )
    truth, parts = np.repeat(np.arange(3), 4), np.array([[0] * 4 + [1] * 4 + [2, 2, 3, 3]])
    draws = np.where(
        rng.random((90, 12)) < 0.05, rng.integers(4, size=(90, 12)), np.where(rng.random((90, 1)) < 0.5, truth, parts)
    )
    soft = xr.DataTree.from_dict(
        {"posterior": array(rng.dirichlet(np.ones(3), size=(2, 20, 6)), ("chain", "draw", "obs", "k")).to_dataset()}
    )
    return {
        "tree": (tree, {"loss": "binder"}, {}),
        "draws": (draws, {"loss": "vi"}, {}),
        "soft": (soft, {"loss": pc.binder(a=0.8)}, {}),
        "no certificate": (tree, {"loss": "omari"}, {}),
        "levels": (LEVELS, {}, {}),
        "weighted": (tree, {}, {"weights": np.arange(60.0), "var_name": "z"}),
    }


PARTS = {
    "certified_partition": ("Certificate", "partition"),
    "certified_lower_bound": ("Certificate", "lower_bound"),
    "certificate_loss": ("Certificate", "loss"),
    "certificate_method": ("Certificate", "method"),
    "particle_weight_of": ("Particles", "weights"),
    "particle_status": ("Particles", "status"),
    "ball_radius": ("CredibleBall", "radius"),
    "summary_seconds": ("Summary", "seconds"),
}


@pytest.mark.parametrize("part", list(PARTS))
def test_a_stored_summary_that_lacks_a_part_of_a_result_is_refused(part):
    stored = pc.summarize(Z, random_seed=1, progressbar=False).to_dataset()
    assert (part in stored) != (part in stored.attrs)
    damaged = stored.drop_vars(part, errors="ignore")
    damaged.attrs.pop(part, None)
    kind, field = PARTS[part]
    message = rf"`dataset` must hold a {kind} as its to_dataset\(\) gives it; missing: {field}\."
    with pytest.raises(ValueError, match=message):
        pc.Summary.from_dataset(damaged, Z)


def test_a_stored_summary_without_a_certificate_has_none():
    stored = pc.summarize(Z, random_seed=1, progressbar=False).to_dataset()
    whole = stored.drop_vars([name for name in stored if str(name).startswith(("certified", "better"))])
    whole.attrs = {name: value for name, value in whole.attrs.items() if not name.startswith("certificate")}
    assert pc.Summary.from_dataset(stored, Z).certificate is not None
    assert pc.Summary.from_dataset(whole, Z).certificate is None


@pytest.mark.parametrize("kind", list(summaries()))
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_summary_comes_back(kind, suffix, tmp_path):
    idata, options, where = summaries()[kind]
    summary = pc.summarize(idata, **where, **options, random_seed=1, progressbar=False)
    assert_equal(pc.Summary.from_dataset(summary.to_dataset(), idata, **where), summary)
    path = written(attach(xr.DataTree(), summary), tmp_path / f"a{suffix}")
    with xr.open_datatree(path, engine=engine_of(suffix)) as stored:
        found = pc.Summary.from_dataset(stored["consensus"], idata, **where)
    assert_equal(found, summary)
    assert repr(found) == repr(summary) and found.findings() == summary.findings()
    assert (summary.observed is not None) == (isinstance(idata, xr.DataTree) and kind != "soft")
    assert_equal(pickle.loads(pickle.dumps(summary)), summary)


def test_a_summary_with_an_alternative_comes_back(tmp_path):
    summary = pc.summarize(Z, random_seed=1, progressbar=False)
    other = best(Z, n_clusters=4).with_names(list("wxyz"))
    assert other.n_clusters != summary.consensus.n_clusters
    summary = dataclasses.replace(summary, alternative=other)
    with read(written(summary.to_dataset(), tmp_path / "a.nc")) as stored:
        assert_equal(pc.Summary.from_dataset(stored, Z), summary)


def test_a_summary_of_other_draws_is_refused():
    stored = pc.summarize(Z, random_seed=1, progressbar=False).to_dataset()
    with pytest.raises(ValueError, match="`idata` must hold the draws of the summary, 60 of 8 items; got 30 of 8"):
        pc.Summary.from_dataset(stored, Z[:1])
