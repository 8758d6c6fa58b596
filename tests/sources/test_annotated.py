"""Results as columns of an AnnData; a double has what is used of it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.plots.colours import colours_of
from posterior_consensus.results.palette import COLOURS
from tests.catalogue.posteriors import noisy_draws
from tests.catalogue.results import assert_equal
from tests.helpers import check_all

N_RUNS, N_CELLS, K = 12, 40, 11
CELLS = [f"cell{k}" for k in range(N_CELLS)]


def annotated(obs):
    return SimpleNamespace(obs=obs, obs_names=obs.index, uns={})


@pytest.fixture
def adata():
    """Cells in the columns of 12 runs, with more than ten clusters, so that text is not in the order of numbers."""
    labels = noisy_draws(np.random.default_rng(2), N_RUNS, N_CELLS, K, 0.05)
    columns = {f"leiden_{k}": pd.Categorical(run.astype(str)) for k, run in enumerate(labels)}
    return annotated(pd.DataFrame(columns, CELLS).assign(batch=1))


@pytest.fixture
def runs(adata):
    return pc.as_runs(adata, "leiden_*", groups=np.repeat([0.5, 1.0], N_RUNS // 2))


@pytest.fixture
def best(runs):
    return pc.consensus_partition(runs, random_seed=1, n_starts=2)


def test_summary_becomes_columns_and_facts(adata, runs):
    summary = pc.summarize(runs, random_seed=1, modes=False)
    assert pc.attach(adata, summary) is adata
    column = adata.obs["consensus"]
    assert column.dtype.ordered and column.cat.categories.tolist() == [str(k) for k in range(summary.n_clusters)]
    assert column.astype(int).tolist() == summary.labels.values.tolist()
    assert_array_equal(adata.obs["consensus_similarity"], summary.items.similarity)
    facts = adata.uns["consensus"]
    assert (facts["loss"], facts["n_runs"], facts["groups"].tolist()) == ("vi", N_RUNS, ["0.5", "1.0"])
    assert facts["columns"].tolist() == ["consensus", "consensus_similarity", "consensus_found"]
    assert_array_equal(adata.obs["consensus_found"], summary.clusters.table["found"].values[summary.labels.values])
    assert facts["expected_loss"] == summary.partition.expected_loss
    assert facts["methods"] == summary.methods_text()
    assert all(isinstance(value, (str, int, float, dict, np.ndarray)) for value in facts.values())
    assert sum(np.size(value) for value in facts.values()) < N_CELLS


@pytest.mark.filterwarnings("ignore:.*clusters of one observation")
@pytest.mark.filterwarnings("ignore:The '.*' option is deprecated")  # of pandas, which anndata sets
def test_summaries_come_back_from_an_h5ad_file(adata, runs, tmp_path):
    """With the runs, whose labels are columns of the file, also if the cells are in another order."""
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(obs=adata.obs)
    summary, of_layers = (pc.summarize(one, random_seed=1, modes=False) for one in (runs, pc.as_layers(runs)))
    pc.attach(adata, summary)
    pc.attach(adata, of_layers, group="by layer")
    adata[::-1].copy().write_h5ad(tmp_path / "a.h5ad")
    stored = anndata.read_h5ad(tmp_path / "a.h5ad")
    again = pc.as_runs(stored, "leiden_*", groups=np.repeat([0.5, 1.0], N_RUNS // 2))
    assert_equal(pc.results.Summary.from_dataset(stored.uns["consensus"], again), summary)
    found = pc.results.LayersSummary.from_datatree(stored.uns["by layer"], pc.as_layers(again))
    assert_equal(found.summaries, of_layers.summaries)
    assert_equal(found.comparison, of_layers.comparison)
    with pytest.raises(TypeError, match=r"`dataset`.*got dict.*adata.uns\['consensus'\]"):
        pc.results.Summary.from_dataset({"loss": "vi"}, again)


@pytest.mark.filterwarnings("ignore:.*clusters of one observation")
def test_cells_are_paired_by_name(adata, best):
    order = np.random.default_rng(3).permutation(N_CELLS)
    for some in (order, order[:5]):
        other = pc.attach(annotated(adata.obs.iloc[some][["batch"]].copy()), best)
        assert other.obs["consensus"].astype(int).tolist() == best.labels.values[some].tolist()
    unnamed = pc.consensus_partition(np.array([[0, 0, 1]] * 3), random_seed=1, n_starts=2)
    three = adata.obs.iloc[:3][["batch"]].copy()
    assert pc.attach(annotated(three), unnamed).obs["consensus"].tolist() == ["0", "0", "1"]


def test_numbers_name_cells_as_text(adata):
    table = adata.obs.drop(columns="batch").set_axis(np.arange(100, 100 + N_CELLS), axis=0)
    best = pc.consensus_partition(pc.as_runs(table), random_seed=1, n_starts=2)
    other = pc.attach(annotated(table.set_axis(table.index.astype(str), axis=0)[::-1].copy()), best)
    assert other.obs["consensus"].astype(int).tolist() == best.labels.values[::-1].tolist()


def test_clusters_keep_their_names(adata, best):
    names = [f"type {k}" for k in range(best.n_clusters)][::-1]
    pc.attach(adata, best.with_names(names))
    assert adata.obs["consensus"].cat.categories.tolist() == names
    assert adata.obs["consensus"].tolist() == best.with_names(names).named_labels.values.tolist()
    numbers = [20, *range(1, best.n_clusters)]  # as of a layer in which a new cluster comes first
    pc.attach(adata, best.with_names(numbers))
    assert adata.obs["consensus"].cat.categories.astype(int).tolist() == [*numbers[1:], 20]
    assert adata.obs["consensus"].astype(int).tolist() == best.with_names(numbers).named_labels.values.tolist()


@pytest.mark.filterwarnings("ignore:.*clusters of one observation")
def test_a_second_call_replaces_what_the_first_wrote(adata, runs, best):
    items = pc.item_uncertainty(runs, best)
    pc.attach(adata, best, items)
    pc.attach(adata, best, items, group="other")
    pc.attach(adata, best)
    assert [name for name in adata.obs if "leiden" not in name] == ["batch", "consensus", "other", "other_similarity"]
    assert set(adata.uns) == {"consensus", "consensus_colors", "other", "other_colors"}
    assert np.isfinite(adata.obs["other_similarity"]).any()


def test_noise_is_in_no_category():
    runs = pc.as_runs([[0, 0, 0, 1, 1, -1]] * 3 + [[0, 0, -1, 1, 1, 1]], noise=-1)
    adata = annotated(pd.DataFrame(index=CELLS[:6]))
    best = pc.consensus_partition(runs, random_seed=1, n_starts=2)
    pc.attach(adata, best, pc.item_uncertainty(runs, best))
    column, is_noise = adata.obs["consensus"], [False] * 5 + [True]
    assert column.tolist()[:5] == ["0", "0", "0", "1", "1"] and column.cat.categories.tolist() == ["0", "1"]
    assert adata.obs["consensus_noise"].dtype == bool and adata.obs["consensus_noise"].tolist() == is_noise
    assert column.isna().tolist() == adata.obs["consensus_similarity"].isna().tolist() == is_noise
    assert (adata.uns["consensus"]["n_clusters"], adata.uns["consensus"]["n_noise"]) == (2, 1)


def test_partitions_of_several_layers_have_columns_each(adata):
    aligned = pc.align_partitions({"0.5": adata.obs["leiden_0"], "1.0": adata.obs["leiden_1"]})
    pc.attach(adata, aligned, group="leiden")
    for name, own in zip(("0.5", "1.0"), aligned.labels.values, strict=True):
        column = adata.obs[f"leiden_{name}"]
        assert column.tolist() == [str(aligned.names[k]) for k in own]
        assert set(column.cat.categories) == set(column)


def test_what_does_not_fit_is_refused(adata, runs, best):
    other = pc.consensus_partition(runs, n_clusters=2, random_seed=1, n_starts=2)
    cases = [
        ([pc.credible_ball(runs, best)], TypeError, "`results`", "CredibleBall", "to_dataset"),
        ([best, other], ValueError, "`results`", "'consensus'", "separate groups"),
    ]
    check_all(lambda results: pc.attach(adata, *results), cases)
    with pytest.raises(TypeError, match="`data` must come first.* got ConsensusPartition first"):
        pc.attach(best, adata)
    strange = adata.obs.rename(index={"cell7": "strange"})
    twice = adata.obs.rename(index={"cell7": "cell8"})
    cases = [
        (strange, ValueError, "`data`", "40 items", "'strange'", "best.labels['item'].values"),
        (adata.obs.add_prefix("of ", axis=0), ValueError, "'cell0' to 'cell39'", "'of cell0' and 39 others", "rename"),
        (twice, ValueError, "`data`", "'cell8'"),
    ]
    check_all(lambda obs: pc.attach(annotated(obs), best), cases)
    assert list(adata.uns) == [] and "consensus" not in adata.obs
    unnamed = pc.consensus_partition(np.array([[0, 0, 1]] * 3), random_seed=1, n_starts=2)
    with pytest.raises(ValueError, match="`data`.* 3 items .*40 observations"):
        pc.attach(adata, unnamed)


def test_clusters_have_the_colours_of_figures(adata, best):
    """By number; scanpy's own are left where there are more clusters than colours, and old ones are removed."""
    pc.attach(adata, best)
    colours = adata.uns["consensus_colors"].tolist()
    assert colours == list(COLOURS[: best.n_clusters]) == colours_of(np.arange(best.n_clusters))
    pc.attach(adata, best.with_names([f"type {k}" for k in range(best.n_clusters)]))
    assert adata.uns["consensus_colors"].tolist() == colours
    pc.attach(adata, pc.item_uncertainty(pc.as_runs(adata, "leiden_*"), best))
    assert "consensus" not in adata.obs and "consensus_colors" not in adata.uns
    labels = np.minimum(np.arange(N_CELLS) // 2, 19)
    assert pc.attach(adata, pc.consensus_partition([labels] * 2)).uns["consensus_colors"].size == 20
    labels[-1] = 20
    with pytest.warns(UserWarning, match="clusters of one observation, 19, 20 of 'consensus'"):
        pc.attach(adata, pc.consensus_partition([labels] * 2))
    assert "consensus_colors" not in adata.uns
