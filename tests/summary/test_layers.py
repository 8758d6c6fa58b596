"""summarize() of several partitions in each draw: a summary a layer, what changes, and what is stored of both."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources.containers import attach
from tests.catalogue.results import assert_equal

FIRST, LAST = np.repeat([0, 1, 2], [5, 4, 3]), np.repeat([0, 1], [5, 7])
QUIET = {"modes": False, "n_starts": 1, "random_seed": 1, "progressbar": False}


def posterior():
    """Three years, in the last of which two clusters are one and a firm is gone; most labels are as they were."""
    rng = np.random.default_rng(1)
    labels = np.tile(np.stack([FIRST, FIRST, LAST]), (2, 30, 1, 1)).astype(float)
    wrong = rng.random(labels.shape) < 0.1
    labels[wrong] = rng.integers(3, size=wrong.sum())
    labels[:, :, 2, 1] = np.nan
    coords = {"year": [1935, 1936, 1940], "firm": [f"firm {k}" for k in range(12)]}
    return xr.DataArray(labels, coords, ("chain", "draw", "year", "firm"), "z")


LAYERS = pc.as_layers(posterior(), layer_dim="year")


def without_times(consensus):
    return replace(consensus, info=None)


@pytest.fixture(scope="module")
def summary():
    return pc.summarize(LAYERS, **QUIET)


def test_a_layer_has_the_summary_of_its_draws_alone(summary):
    assert list(summary) == [1935, 1936, 1940] and summary.layers is LAYERS
    alone = pc.summarize(LAYERS[1940], **QUIET)
    assert_equal(without_times(summary[1940].partition), without_times(alone.partition))
    for part in ("ball", "items", "diagnosis"):
        assert_equal(getattr(summary[1940], part), getattr(alone, part))
    partitions = {name: one.partition for name, one in summary.items()}
    assert_equal(summary.comparison, pc.compare_layers(LAYERS, partitions=partitions, progressbar=False))
    with pytest.raises(KeyError, match="1937.*1935, 1936, 1940"):
        summary[1937]


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_layers():
    turned = pc.as_layers({name: LAYERS[name] for name in reversed(list(LAYERS))})
    seeded = QUIET | {"n_starts": 3}
    for seed in (lambda: 5, lambda: np.random.default_rng(5)):
        one, other = (pc.summarize(layers, **seeded | {"random_seed": seed()}) for layers in (LAYERS, turned))
        assert_equal(without_times(one[1936].partition), without_times(other[1936].partition))


def test_a_cluster_has_one_name_in_all_layers():
    """Also if layers list their items in other orders, or have other items too."""
    year = posterior().isel(year=0, drop=True)
    turned, of_products = year[:, :, [11, 9, 10, *range(9)]], year[:, :, :5].rename(firm="product")
    for layers in ({"a": year, "b": turned}, {"a": year, "b": turned, "c": of_products}):
        found = pc.summarize(pc.as_layers(layers), **QUIET)
        first, second = found["a"], found["b"]
        assert first.labels.values.tolist() == FIRST.tolist() and first.names == (0, 1, 2)
        assert second.labels.values.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2] and second.names == (2, 0, 1)
        assert second.items.names == second.names and second.to_dataframe().index.tolist() == [2, 0, 1]


def test_options_go_to_each_layer():
    found = pc.summarize(LAYERS, loss="binder", prob=0.5, n_clusters=4, **QUIET)
    assert found.to_dataframe()["clusters"].tolist() == [4, 4, 4]
    assert {(one.loss.name, one.ball.prob) for one in found.values()} == {("binder", 0.5)}
    assert found.comparison.loss.name == "binder"
    assert "the partition into 4 clusters of minimum" in found.methods_text()
    not_metric = pc.summarize(LAYERS, loss="one_minus_ari", **QUIET)
    assert not_metric.comparison.loss.name == "vi"


OF_READING = {"var_name": "z", "weights": np.ones(60), "log_weights": np.ones(60), "group": "prior", "model": object()}
OF_READING |= {"sample_dims": "draw", "item_dim": "firm"}


@pytest.mark.parametrize("name", OF_READING)
def test_what_says_how_to_read_draws_is_refused(name):
    with pytest.raises(TypeError, match=f"`{name}`.*as_layers"):
        pc.summarize(LAYERS, **{name: OF_READING[name]})


def test_a_dimension_of_layers_is_an_argument_of_as_layers():
    with pytest.raises(TypeError, match="`layer_dim`.*as_layers"):
        pc.summarize(posterior(), layer_dim="year")
    with pytest.raises(TypeError, match="`var_name`.*as_layers"):
        pc.summarize(posterior().to_dataset(), {"rows": "z"})


def test_it_prints_on_one_screen_with_what_changes(summary):
    lines = repr(summary).splitlines()
    assert lines[0] == "Summary of 3 layers (year): 2 to 3 clusters" and len(lines) < 25
    assert "the clustering changed between 1936 and 1940" in repr(summary) and "1940" in summary._repr_html_()
    table = summary.to_dataframe()
    assert table.index.name == "year" and table["items"].tolist() == [12, 12, 11]
    np.testing.assert_array_equal(table["radius"], [one.ball.radius for one in summary.values()])
    assert r"expected\_loss" in summary.to_latex()


def test_findings_say_of_which_layers_they_are(summary):
    chains, change, left_out = summary.findings()  # the chains are short
    assert "the clustering changed between 1936 and 1940: the effective sample size is 45" in change
    assert left_out == "No search for further modes was made, as requested." and "layer" in chains
    stuck = posterior().where(posterior()["year"] < 1940, xr.DataArray([0.0, 1.0], dims="chain") * (posterior() > 0))
    found = pc.summarize(pc.as_layers(stuck, layer_dim="year"), **QUIET)
    assert found.findings()[0].endswith("the chains disagree in 1 of 3 layers: year 1940.")
    assert found.methods_text().startswith("These results must not be reported.")


def test_chains_that_disagree_between_layers_only():
    z = np.random.default_rng(1).integers(3, size=(2, 120, 3, 6))
    z[0, :, 1] = z[0, :, 0]  # in the first chain alone the two layers go together
    layers = pc.as_layers(z)
    found, verdict = pc.summarize(layers, **QUIET), pc.diagnose(layers).verdict
    assert found.findings()[0] == f"{verdict} By themselves, the chains disagree in none of the 3 layers."
    assert found.methods_text().startswith("These results must not be reported.")
    assert "agree:" not in found.methods_text() and "we report" not in found.methods_text()
    back = pc.results.LayersSummary.from_datatree(found.to_datatree(), layers)
    assert_equal(back.diagnosis, found.diagnosis)


def test_a_layer_without_r_hat_hides_no_other(summary):
    """One of a single item, say."""

    def agreeing(one, scale):
        diagnosis = replace(one.diagnosis, status="agree", partition_rhat=1.004 * scale)
        return replace(one, diagnosis=replace(diagnosis, summaries=scale * diagnosis.summaries.clip(max=1.0)))

    of_layers = {name: agreeing(one, np.nan if name == 1935 else 1.0) for name, one in summary.items()}
    assert "largest R-hat is 1.004" in replace(summary, diagnosis=None, summaries=of_layers).findings()[-1]


def test_layers_of_other_items_are_not_compared():
    z = posterior().isel(year=0, drop=True)
    text = pc.summarize(pc.as_layers({"rows": z, "columns": z.rename(firm="product")}), **QUIET).methods_text()
    assert "No two layers have items in common" in text and "in the same draw" not in text
    assert "The partition of rows, 12 firms, has" in text and "The partition of columns, 12 products, has" in text


def test_a_text_for_a_paper_says_what_was_done_and_found(summary):
    text, references = summary.methods_text().split("\n\n")
    assert "3 layers (year), of 11 to 12 items each" in text and "60 draws of 2 chains" in text
    assert summary.comparison.verdict.removesuffix(" Run longer chains.") in text
    assert text.endswith("the chains are short in all 3 layers.") and "Run " not in text and "seed 1" in text
    assert [line.split("[")[1] for line in references.splitlines()] == [
        "meila2007]",
        "dahl2022]",
        "posterior_consensus]",
    ]
    assert summary.bibtex().count("@") == 3 and "must not" not in text


def test_a_time_limit_leaves_each_layer_its_partition(tmp_path):
    found = pc.summarize(LAYERS, random_seed=1, seconds=1e-6, progressbar=False)
    assert all(one.partition.n_clusters >= 1 and "certificate" in one.cut for one in found.values())
    assert found.comparison is None and found.cut == ("comparison", "diagnosis")
    assert found.left_out()[0].startswith("The layers were not compared") and "change" not in repr(found)
    with pytest.raises(ValueError, match="no time.*`seconds`"):
        found.plot()
    back = pc.results.LayersSummary.from_datatree(found.to_datatree(), LAYERS)
    assert back.comparison is None and back.diagnosis is None and back.cut == found.cut
    assert "1940" in found.to_html(tmp_path / "report.html").read_text(encoding="utf-8")


def test_it_is_stored_with_its_posterior(summary, tmp_path):
    tree = attach(xr.DataTree.from_dict({"posterior": posterior().to_dataset()}), summary)
    tree.to_netcdf(tmp_path / "all.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "all.nc", engine="h5netcdf") as stored:
        layers = pc.as_layers(stored, layer_dim="year")
        back = pc.results.LayersSummary.from_datatree(stored["consensus"], layers)
    assert_equal(back.comparison, summary.comparison)
    for name, one in summary.items():
        assert_equal(back[name].partition, one.partition)
        assert_equal(back[name].items, one.items)
    assert repr(back) == repr(summary)


def test_what_does_not_fit_is_refused(summary):
    with pytest.raises(ValueError, match="`tree`.*a, b.*1935, 1936, 1940"):
        pc.results.LayersSummary.from_datatree(summary.to_datatree(), {"a": LAYERS[1935], "b": LAYERS[1936]})
    with pytest.raises(TypeError, match="`data`.*DataTree.*to_datatree"):
        attach(posterior().to_dataset(), summary)
    with pytest.raises(TypeError, match="LayersSummary.*alone"):
        attach(xr.DataTree(), summary, summary[1935])
    same = pc.summarize(pc.as_layers({"a/b": LAYERS[1935], "a_b": LAYERS[1936]}), **QUIET)
    with pytest.raises(ValueError, match="differ as text.*'a/b', 'a_b'"):
        same.to_datatree()


def test_the_report_has_the_figures_of_layers(summary, tmp_path):
    page = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count('class="light"') == 3 and "Flows of items" in page
    assert [tick.get_text()[:4] for tick in summary.plot()[0].get_xticklabels()] == ["1935", "1936", "1940"]


def test_layers_of_different_items_have_no_slider(undrawn, tmp_path):
    z = posterior().isel(year=[0, 1])
    layers = pc.as_layers({"rows": z[:, :, 0], "columns": z[:, :, 1, :7].rename(firm="product")})
    page = pc.summarize(layers, **QUIET).to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "layer columns" in page and 'id="payload"' not in page
