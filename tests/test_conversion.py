"""One conversion: what a posterior holds is decided once, by public functions, and alike by all."""

import ast
import inspect
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.sources import conversion, labels
from tests.catalogue.bad import BAD
from tests.catalogue.functions import BY_NAME, functions_of
from tests.elsewhere import Counted
from tests.helpers import check, written

PACKAGE = Path(pc.__file__).parent
DOORS = {"opened", "as_source", "as_draws", "layer_of"}
DOORS |= {"as_partition_draws", "as_allocation_probabilities", "as_pair_similarity", "allocation_probabilities"}
# What summarize does by its clock, and what the command alone reads: weights next to draws, layers of several files.
PRIVATE = {("summary/summarizing.py", "_read"), ("cli.py", "_summary"), ("cli.py", "_layers")}
BELOW = ("ensemble", "kernels", "losses", "results", "runtime", "search")


def callers(node, path=()):
    """The functions and classes around each call of a conversion."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        path = (*path, node.name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DOORS:
        yield path
    for child in ast.iter_child_nodes(node):
        yield from callers(child, path)


def test_only_public_functions_call_a_door():
    found = {}
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        if file.relative_to(PACKAGE).parts[0] != "sources" and "from posterior_consensus.sources" in source:
            found[file.relative_to(PACKAGE).as_posix()] = list(callers(ast.parse(source)))
    assert sum(map(len, found.values())) > 30
    private = {
        (file, ".".join(path))
        for file, paths in found.items()
        for path in paths
        if path[0] not in BY_NAME or path[-1].startswith("_")
    }
    assert private == PRIVATE
    assert not [file for file, paths in found.items() if paths and file.startswith(BELOW)]


N_CHAINS, LENGTH, N_ITEMS, N_COMPONENTS = 2, 40, 7, 3
PARTITION = np.array([0, 0, 0, 1, 1, 2, 2])
DIMS = ("chain", "draw", "item", "component")
RNG = np.random.default_rng(1)
ODDS = np.exp(2.5 * np.eye(N_COMPONENTS)[PARTITION] + RNG.normal(size=(N_CHAINS, LENGTH, N_ITEMS, N_COMPONENTS)))
P = ODDS / ODDS.sum(axis=-1, keepdims=True)
Z = (RNG.random((N_CHAINS, LENGTH, N_ITEMS, 1)) > P.cumsum(axis=-1)).sum(axis=-1)
DRAWS = {"labels": pc.as_partition_draws(Z), "soft": pc.as_allocation_probabilities(P)}
VARIABLES = {"labels": {"z": (DIMS[:3], Z)}, "soft": {"p": (DIMS, P)}}
VARIABLES["both"] = VARIABLES["labels"] | VARIABLES["soft"]

ELSEWHERE = {"as_pair_similarity", "from_a_strings"}  # take a matrix and A-strings
TAKES_A_RESULT = {
    *("plot_dendrogram", "plot_credible_ball", "plot_density_peaks", "plot_item_uncertainty", "plot_particles"),
    *("plot_partial_partition", "plot_traces", "plot_stable_components", "plot_prior_sensitivity"),
    *("plot_membership", "plot_links", "plot_cluster_sizes", "plot_modes"),
}
# Several posteriors there, and one partition.
SEVERAL = {"agreement_path of chains": (dict, list), "as_constraints": dict, "others": pc.results.Summary}
TAKES_PAIRS = {
    *("posterior_similarity_matrix", "expected_loss of pairs", "consensus of pairs", "certify", "refine_partition"),
    *("item_uncertainty", "item_embedding", "cluster_merges", "stable_components", "plot_psm", "plot_items_map"),
    *("consensus_partition", "loss_by_n_clusters", "plot_dendrogram", "plot_loss_by_n_clusters"),
}
# They look at their data before the conversion does, or open it themselves.
EXAMPLES = ("consensus_partition", "summarize", "as_constraints", "agreement_path of chains", "others", "plot_psm")


def functions(data, partition=PARTITION):
    """Every public function and figure that takes a posterior, by name."""
    seeded = {"random_seed": 1, "progressbar": False}
    changed = {
        "expected_loss of pairs": lambda: pc.expected_loss(data, partition, loss="binder"),
        "cluster_merges": lambda: pc.cluster_merges(data, partition, loss="binder"),
        "consensus of pairs": lambda: pc.consensus_partition(data, loss="binder", n_starts=1, **seeded),
        "certify": lambda: pc.certify(data, partition, loss="binder", progressbar=False),
        "agreement_path of chains": lambda: pc.agreement.agreement_path(data, prices=[0.5], **seeded),
        "particles": lambda: pc.particles(data, 2, **seeded),
        "calibration": lambda: pc.partition_density(DRAWS["labels"], calibration=data, **seeded),
        "plot_psm by chain": lambda: pc.plot_psm(data, by="chain"),
        "others": lambda: pc.partition_loss(DRAWS["labels"], data),
    }
    known = functions_of(data, partition)
    return {name: known[name] for name in sorted(known.keys() - ELSEWHERE - TAKES_A_RESULT)} | changed


NAMES = tuple(functions(None))


def accumulated(path=None):
    kept = pc.PartitionAccumulator(path)
    for chain, rows in enumerate(Z):
        kept.add(rows, chain=chain)
    return kept


def frame():
    rows = pd.MultiIndex.from_product([range(N_CHAINS), range(LENGTH)], names=["chain", "draw"])
    return pd.DataFrame(Z.reshape(-1, N_ITEMS), rows)


def elements(what):
    """A table of variables whose elements are columns, z[1] and p[1,2]."""
    table = frame()[[]].assign(**{"mu[1]": 0.5})
    for name, (_, values) in VARIABLES[what].items():
        for at in np.ndindex(values.shape[2:]):
            table[f"{name}[{','.join(str(k + 1) for k in at)}]"] = values[(..., *at)].ravel()
    return table


def in_dask(values):
    return pytest.importorskip("dask.array").from_array(values, chunks=(1, 5, *values.shape[2:]))


def posterior(what):
    mu = np.full((N_CHAINS, LENGTH, N_COMPONENTS), 0.5)
    return xr.Dataset(VARIABLES[what] | {"mu": (DIMS[:2] + DIMS[3:], mu)})


def tree(what):
    return xr.DataTree.from_dict({"posterior": posterior(what)})


def inference_data(what):
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    if int(arviz.__version__.split(".")[0]) >= 1:
        pytest.skip("ArviZ 1.x has DataTrees")
    return arviz.InferenceData(posterior=posterior(what))


@cache
def summary_of(what):
    return pc.summarize({"labels": Z, "soft": P}[what], n_starts=1, modes=False, random_seed=1, progressbar=False)


# Kinds of sources: what makes one, or writes one to a path.
KINDS = {
    "labels: array": lambda: Z,
    "labels: list": lambda: Z.tolist(),
    "labels: DataArray": lambda: xr.Dataset(VARIABLES["labels"])["z"],
    "labels: DataFrame": frame,
    "labels: dict": lambda: {"z": Z, "mu": Z[0, 0]},
    "labels: Dataset": lambda: posterior("labels"),
    "labels: tree": lambda: tree("labels"),
    "labels: InferenceData": lambda: inference_data("labels"),
    "labels: accumulator": accumulated,
    "labels: summary": lambda: summary_of("labels"),
    "labels: dask": lambda: in_dask(Z),
    "soft: array": lambda: P,
    "soft: DataArray": lambda: xr.DataArray(P, dims=DIMS),
    "soft: dict": lambda: {"p": P},
    "soft: summary": lambda: summary_of("soft"),
    "soft: tree": lambda: tree("soft"),
    "soft: DataFrame": lambda: elements("soft"),
    "soft: dask": lambda: in_dask(P),
    "both: dict": lambda: {"z": Z, "p": P},
    "both: DataFrame": lambda: elements("both"),
    "both: Dataset": lambda: posterior("both"),
    "both: InferenceData": lambda: inference_data("both"),
}
FILES = {
    "labels: a.nc": lambda path: tree("labels").to_netcdf(path),
    "labels: a.npy": lambda path: np.save(path, Z),
    "labels: a.csv": lambda path: frame().to_csv(path),
    "labels: a.parquet": lambda path: frame().to_parquet(path),
    "labels: store": lambda path: pc.as_partition_draws(Z, store=path),
    "labels: accumulator's store": lambda path: accumulated(path).close(),
    "soft: a.nc": lambda path: tree("soft").to_netcdf(path),
    "soft: a.npy": lambda path: np.save(path, P),
    "soft: a.parquet": lambda path: elements("soft").to_parquet(path),
    "both: a.nc": lambda path: tree("both").to_netcdf(path),
}


class Taken(Exception):
    """Ends a function as soon as the conversion has found a source."""


def taken(function):
    """The source that the conversion gives a function."""
    with pytest.raises(Taken) as found:
        function()
    return found.value.args[0]


@pytest.fixture
def stopping(monkeypatch):
    """Let the conversion raise what it finds."""
    original = conversion.find_source
    for what in DRAWS:
        summary_of(what)  # which is kept, and needs what is found

    def find(data, *arguments, **options):
        found = original(data, *arguments, **options)
        if data is DRAWS["labels"]:  # what some functions are given beside
            return found
        raise Taken(found.source)

    for module in list(sys.modules.values()):
        if getattr(module, "find_source", None) is original:
            monkeypatch.setattr(module, "find_source", find)


@pytest.mark.parametrize(("number", "kind"), list(enumerate(KINDS | FILES)))
def test_functions_take_the_same_source_of_every_kind(number, kind, stopping, tmp_path):
    """Some functions take each kind, and each function takes some kind of its own."""
    if kind in FILES:
        data = tmp_path / kind.split()[-1]
        FILES[kind](data)
    else:
        data = KINDS[kind]()
    wanted, known = DRAWS["labels" if kind.startswith("labels") else "soft"], functions(data)
    for name in {*EXAMPLES, *NAMES[number :: len(KINDS | FILES)]}:
        if isinstance(data, SEVERAL.get(name, ())):
            continue
        source = taken(known[name])
        np.testing.assert_array_equal(source.labels, wanted.labels)
        np.testing.assert_array_equal(source.samples.chain, wanted.samples.chain)
        assert (source.counted_draws is not None) is (wanted.counted_draws is not None)
        if wanted.counted_draws is None:
            np.testing.assert_array_equal(source.probabilities, wanted.probabilities)


def test_every_function_takes_the_same_labels_and_probabilities(stopping):
    for name, function in functions(posterior("both")).items():
        source = taken(function)
        np.testing.assert_array_equal(source.labels, DRAWS["soft"].labels, name)
        np.testing.assert_array_equal(source.probabilities, DRAWS["soft"].probabilities, name)
    for name, function in functions(posterior("labels")).items():
        np.testing.assert_array_equal(taken(function).labels, DRAWS["labels"].labels, name)


MANY = np.tile(PARTITION, 8)  # so many items that tables of their clusters are smaller than the labels


def calls_once(data):
    """A call of every public function that takes a posterior, which is a path here."""
    mu, known = posterior("labels")["mu"], functions(data, MANY)
    once = {
        "agreement_path": known["agreement_path of chains"],
        "as_allocation_probabilities": partial(pc.as_allocation_probabilities, data, group="probabilities"),
        "as_layers": partial(pc.as_layers, data, layer_dim="layer", group="layers"),
        "as_pair_similarity": partial(pc.as_pair_similarity, data, missing="pairwise"),
        "as_partition_draws": partial(pc.as_partition_draws, data),
        "cluster_summary": partial(pc.cluster_summary, data, np.where(np.arange(MANY.size) < 7, MANY, -1), mu=mu),
        "compare_partitions": partial(pc.compare_partitions, data, [MANY, np.zeros_like(MANY)]),
        "component_similarity": partial(pc.component_similarity, data, mean=mu, sd=1.0),
        "expected_loss": partial(pc.expected_loss, data, MANY),
        "log_prob": partial(pc.priors.stick_breaking(1.0, N_COMPONENTS).log_prob, data),
        "prior_sensitivity": partial(pc.prior_sensitivity, data, random_seed=1, progressbar=False),
        "stable_components": partial(pc.stable_components, data),
        "stacking_weights": partial(pc.diagnostics.stacking_weights, data),
    }
    return {name: known[name] for name in known if name in BY_NAME} | once


@pytest.fixture(scope="module")
def with_groups(tmp_path_factory):
    """The path of a posterior of many items, with what functions read besides its labels."""
    rng = np.random.default_rng(1)
    z = np.where(rng.random((N_CHAINS, LENGTH, MANY.size)) < 0.2, rng.integers(3, size=MANY.size), MANY)
    by_item = xr.Dataset({"y": (DIMS[:3], -np.abs(z - MANY).astype(float))})
    groups = {"posterior": posterior("labels").drop_vars("z").assign(z=(DIMS[:3], z))}
    groups["probabilities"] = xr.Dataset(VARIABLES["soft"])
    groups["layers"] = xr.Dataset({"z": (("chain", "draw", "layer", "item"), np.stack([z, z[..., ::-1]], axis=2))})
    groups |= {"log_prior": by_item.isel(item=0), "log_likelihood": by_item}
    groups["observed_data"] = xr.Dataset({"y": ("item", MANY)})
    return written(xr.DataTree.from_dict(groups), tmp_path_factory.mktemp("passes") / "posterior.nc")


def passes():
    """Rows of the page: how often a function opens its file, converts a variable, and reads all labels."""
    page = (PACKAGE.parent / "docs" / "developers" / "passes.md").read_text(encoding="utf-8")
    return {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*\|$", page, re.MULTILINE)}


TABLE = passes()


def test_the_table_of_passes_has_every_function():
    taking = {
        name
        for name, value in BY_NAME.items()
        if inspect.isfunction(value) and "draws" in inspect.signature(value).parameters
    }
    # They need an opened posterior, PyMC, further data, runs, and scored pairs.
    others = {"relabel", "allocation_probabilities", "contrast", "compare_factors", "audit", "audit_records"}
    assert taking - others <= TABLE.keys() == calls_once(None).keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_a_function_opens_converts_and_reads_as_often_as_the_table_says(name, monkeypatch, with_groups):
    counts = Counter()

    def counted(what, function):
        def one_more(*arguments, **options):
            counts[what] += 1
            return function(*arguments, **options)

        return one_more

    monkeypatch.setattr(xr, "open_datatree", counted("openings", xr.open_datatree))
    for of_kind in ("labels_in_order", "probabilities_in_order"):
        monkeypatch.setattr(conversion, of_kind, counted("conversions", getattr(conversion, of_kind)))
    monkeypatch.setattr(labels, "ArrayLabels", lambda array, n_clusters: Counted(array, n_clusters, counts))
    calls_once(with_groups)[name]()
    plt.close("all")
    shown = (
        counts["openings"],
        counts["conversions"],
        f"{counts['labels'] / N_CHAINS / LENGTH / MANY.size:.1f}".removesuffix(".0"),
    )
    assert TABLE[name] == f"| `{name}` | {' | '.join(map(str, shown))} |"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_function_answers_probabilities(name):
    functions(DRAWS["soft"])[name]()
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
def test_every_function_takes_a_matrix_or_says_why_not():
    for name, function in functions(PairSimilarity.of(DRAWS["labels"])).items():
        if name in TAKES_PAIRS:
            function()
        else:
            with pytest.raises(ValueError, match="needs posterior draws; got a similarity matrix"):
                function()
        plt.close("all")


@pytest.mark.parametrize("bad", ["NaN", "no draws", "a vector", "a mixture", "a set", "no file", "an empty tree"])
def test_bad_draws_are_refused_in_the_same_words(bad):
    for name in NAMES if bad == "NaN" else EXAMPLES:
        if name != "others":  # which may be one partition
            check(lambda data, name=name: functions(data)[name](), *BAD[bad])


def test_an_array_of_similarities_is_refused():
    refused = DRAWS["labels"].similarity(), ValueError, ["similarity matrix: give as_pair_similarity"]
    for name in EXAMPLES:
        check(lambda data, name=name: functions(data)[name](), *refused)


OF_A_SUMMARY = (
    "credible_ball",
    "item_uncertainty",
    "membership",
    "links",
    "certify",
    "cluster_merges",
    "expected_loss",
)
OF_A_SUMMARY += ("diagnose", "plot_psm", "plot_n_clusters", "plot_draws_map", "plot_items_map")
MAY_HAVE_NONE = OF_A_SUMMARY[7:-1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*OF_A_SUMMARY, "refine_partition"])
def test_a_summary_brings_its_partition(name):
    function = BY_NAME[name]
    found, by_name = (
        summary_of("soft"),
        replace(summary_of("soft"), partition=summary_of("soft").partition.with_names([*"abc"])),
    )
    alone, given = function(found), function(found.draws, found)
    if hasattr(given, "to_dataset"):
        pd.testing.assert_frame_equal(alone.to_dataframe(), given.to_dataframe())
    elif isinstance(given, (xr.DataArray, xr.Dataset)):
        assert alone.identical(given)
    else:
        axes = [np.atleast_1d(one)[0] for one in (alone, given)]
        assert (
            len({(ax.get_xlabel(), len(ax.lines), len(ax.patches), len(ax.texts), len(ax.images)) for ax in axes}) == 1
        )
    if name == "membership":
        assert function(by_name).probabilities["consensus_cluster"].values.tolist() == [*"abc", "elsewhere"]
    if name not in MAY_HAVE_NONE:
        check(function, found.draws, ValueError, ["`partition", "summary"])
    plt.close("all")
