"""One door: what a posterior holds is decided once, by public functions, and alike by all."""

import ast
import dataclasses
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources import door
from posterior_consensus.summary import summary
from tests.catalogue.bad import BAD
from tests.catalogue.functions import functions_of
from tests.helpers import check

PACKAGE = Path(pc.__file__).parent
DOORS = {"as_source", "as_draws", "find_source"}
DOORS |= {"as_partition_draws", "as_allocation_probabilities", "as_pair_similarity", "allocation_probabilities"}
MODULES = (pc.consensus, pc.diagnostics, pc.experts, pc.losses, pc.priors, pc.simulate)
PUBLIC = {*re.findall(r" as (\w+)$", (PACKAGE / "__init__.pyi").read_text(encoding="utf-8"), re.MULTILINE)}
PUBLIC |= {name for module in MODULES for name in module.__all__}
THE_COMMAND = "_summary"  # of cli.py: the command line is a public function, and this the part that reads the draws
BELOW = ("ensemble", "kernels", "losses", "results", "runtime", "search")


def callers(node, path=()):
    """The functions and classes around each call of a door."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        path = (*path, node.name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DOORS:
        yield path
    for child in ast.iter_child_nodes(node):
        yield from callers(child, path)


def test_only_public_functions_call_a_door():
    found = {}
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] != "sources":  # where the doors are
            found[file.relative_to(PACKAGE).as_posix()] = list(callers(ast.parse(file.read_text(encoding="utf-8"))))
    assert sum(map(len, found.values())) > 30
    private = {
        (file, ".".join(path))
        for file, paths in found.items()
        for path in paths
        if path[0] not in PUBLIC or path[-1].startswith("_")
    }
    assert private == {("cli.py", THE_COMMAND)}
    assert not [file for file, paths in found.items() if paths and file.startswith(BELOW)]


N_CHAINS, LENGTH, N_ITEMS, N_COMPONENTS = 2, 40, 7, 3
PARTITION = np.array([0, 0, 0, 1, 1, 2, 2])
DIMS = ("chain", "draw", "item", "component")
ELSEWHERE = {"as_pair_similarity", "from_a_strings"}  # take a matrix and A-strings
TAKES_A_RESULT = {
    *("plot_dendrogram", "plot_credible_ball", "plot_density_peaks", "plot_item_uncertainty", "plot_particles"),
    *("plot_partial_partition", "plot_traces", "plot_stable_components", "plot_prior_sensitivity"),
    *("plot_membership", "plot_links", "plot_cluster_sizes"),
}

SEVERAL = {"agreement_path of chains": (dict, list), "as_constraints": dict}  # several posteriors there
TAKES_PAIRS = {
    *("posterior_similarity_matrix", "expected_loss of pairs", "consensus of pairs", "certify", "refine_partition"),
    *("item_uncertainty", "item_embedding", "cluster_merges", "stable_components", "plot_psm", "plot_items_map"),
}


def functions(data):
    """Every public function and figure that takes a posterior, by name."""
    seeded = {"random_seed": 1, "progressbar": False}
    changed = {
        "expected_loss": lambda: pc.expected_loss(data, [PARTITION, np.zeros(N_ITEMS)], loss="vi"),
        "expected_loss of pairs": lambda: pc.expected_loss(data, PARTITION, loss="binder"),
        "cluster_merges": lambda: pc.cluster_merges(data, PARTITION, loss="binder"),
        "consensus of pairs": lambda: pc.consensus_partition(data, loss="binder", n_starts=1, **seeded),
        "certify": lambda: pc.certify(data, PARTITION, loss="binder", progressbar=False),
        "agreement_path": lambda: pc.agreement_path({"a": data, "b": data}, prices=[0.5], **seeded),
        "agreement_path of chains": lambda: pc.agreement_path(data, prices=[0.5], **seeded),
        "particles": lambda: pc.particles(data, 2, **seeded),
        "calibration": lambda: pc.partition_density(DRAWS["labels"], calibration=data, **seeded),
        "loss_by_n_clusters": lambda: pc.loss_by_n_clusters(data, n_clusters=[2], **seeded),
        "others": lambda: pc.pairwise_losses(DRAWS["labels"], data),
    }
    known = functions_of(data, PARTITION)
    return {name: known[name] for name in known.keys() - ELSEWHERE - TAKES_A_RESULT} | changed


def made():
    rng = np.random.default_rng(1)
    logits = 2.5 * np.eye(N_COMPONENTS)[PARTITION] + rng.normal(size=(N_CHAINS, LENGTH, N_ITEMS, N_COMPONENTS))
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return p, (rng.random((*p.shape[:-1], 1)) > p.cumsum(axis=-1)).sum(axis=-1)


P, Z = made()
DRAWS = {"labels": pc.as_partition_draws(Z), "soft": pc.as_allocation_probabilities(P)}
VARIABLES = {"labels": {"z": (DIMS[:3], Z)}, "soft": {"p": (DIMS, P)}}
VARIABLES["both"] = VARIABLES["labels"] | VARIABLES["soft"]
WORDS = {
    "a matrix alone": "needs posterior draws; got a similarity matrix alone",
    "an array of similarities": "This looks like a posterior similarity matrix: give as_pair_similarity",
}


def accumulated(path=None):
    kept = pc.PartitionAccumulator(path)
    for chain, labels in enumerate(Z):
        kept.add(labels, chain=chain)
    return kept


def frame():
    rows = pd.MultiIndex.from_product([range(N_CHAINS), range(LENGTH)], names=["chain", "draw"])
    return pd.DataFrame(Z.reshape(-1, N_ITEMS), rows)


def elements(what):
    """A table of variables whose elements are columns, z[1] and p[1,2]."""
    columns = {"mu[1]": 0.5}
    for name, (_, values) in VARIABLES[what].items():
        flat = values.reshape(N_CHAINS * LENGTH, -1)
        at = np.ndindex(values.shape[2:])
        columns |= {f"{name}[{','.join(str(k + 1) for k in index)}]": flat[:, j] for j, index in enumerate(at)}
    return pd.DataFrame(columns, frame().index)


def in_dask(values):
    return pytest.importorskip("dask.array").from_array(values, chunks=(1, 5, *values.shape[2:]))


def store(path):
    pc.as_partition_draws(Z, store=path)
    return path


def accumulator(path):
    accumulated(path).close()
    return path


def file_of(path, write):
    write(path)
    return path


def posterior(what):
    return xr.Dataset(VARIABLES[what]).assign(
        mu=(DIMS[:2] + DIMS[3:], np.zeros((N_CHAINS, LENGTH, N_COMPONENTS)) + 0.5)
    )


def tree(what):
    return xr.DataTree.from_dict({"posterior": posterior(what)})


def inference_data(what):
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    if int(arviz.__version__.split(".")[0]) >= 1:
        pytest.skip("ArviZ 1.x has DataTrees")
    return arviz.InferenceData(posterior=posterior(what))


# Kinds of sources: what they hold, and what makes one given a path.
KINDS = {
    "labels: array": ("labels", lambda path: Z),
    "labels: list": ("labels", lambda path: Z.tolist()),
    "labels: DataArray": ("labels", lambda path: xr.Dataset(VARIABLES["labels"])["z"]),
    "labels: DataFrame": ("labels", lambda path: frame()),
    "labels: dict": ("labels", lambda path: {"z": Z, "mu": Z[0, 0]}),
    "labels: Dataset": ("labels", lambda path: posterior("labels")),
    "labels: tree": ("labels", lambda path: tree("labels")),
    "labels: InferenceData": ("labels", lambda path: inference_data("labels")),
    "labels: NetCDF": ("labels", lambda path: file_of(path / "a.nc", tree("labels").to_netcdf)),
    "labels: NumPy file": ("labels", lambda path: file_of(path / "a.npy", lambda file: np.save(file, Z))),
    "labels: table": ("labels", lambda path: file_of(path / "a.csv", lambda file: frame().to_csv(file))),
    "labels: store": ("labels", lambda path: store(path / "store")),
    "labels: accumulator": ("labels", lambda path: accumulated()),
    "labels: accumulator's store": ("labels", lambda path: accumulator(path / "kept")),
    "labels: dask": ("labels", lambda path: in_dask(Z)),
    "soft: array": ("soft", lambda path: P),
    "soft: DataArray": ("soft", lambda path: xr.DataArray(P, dims=DIMS)),
    "soft: dict": ("soft", lambda path: {"p": P}),
    "soft: tree": ("soft", lambda path: tree("soft")),
    "soft: NetCDF": ("soft", lambda path: file_of(path / "a.nc", tree("soft").to_netcdf)),
    "soft: NumPy file": ("soft", lambda path: file_of(path / "a.npy", lambda file: np.save(file, P))),
    "soft: DataFrame": ("soft", lambda path: elements("soft")),
    "soft: dask": ("soft", lambda path: in_dask(P)),
    "both: dict": ("soft", lambda path: {"z": Z, "p": P}),
    "both: DataFrame": ("soft", lambda path: elements("both")),
    "both: Dataset": ("soft", lambda path: posterior("both")),
    "both: InferenceData": ("soft", lambda path: inference_data("both")),
    "both: NetCDF": ("soft", lambda path: file_of(path / "a.nc", tree("both").to_netcdf)),
    "a matrix alone": ("a matrix alone", lambda path: DRAWS["labels"].as_pairs()),
    "an array of similarities": ("an array of similarities", lambda path: DRAWS["labels"].similarity()),
}


def plain(result):
    """The numbers of a result, without names of items and what depends on the clock."""
    if isinstance(result, (plt.Axes, np.ndarray)) and all(isinstance(ax, plt.Axes) for ax in np.ravel(result)):
        return [plain(artist) for ax in np.ravel(result) for artist in (*ax.lines, *ax.patches, *ax.images)]
    if isinstance(result, (list, tuple)):
        return [plain(one) for one in result]
    if isinstance(result, plt.Artist):
        what = "get_xydata" if hasattr(result, "get_xydata") else "get_array" if hasattr(result, "get_array") else None
        return np.asarray(getattr(result, what)() if what else result.get_path().vertices)
    if isinstance(result, pc.PartitionDraws):
        return [result.labels, result.weights, result.similarity()]
    if hasattr(result, "to_dataset") and not isinstance(result, xr.DataArray):
        result = result.to_dataset()
    if isinstance(result, xr.Dataset):
        return {name: values.values for name, values in result.data_vars.items() if "seconds" not in str(name)}
    if dataclasses.is_dataclass(result):
        return {field.name: plain(getattr(result, field.name)) for field in dataclasses.fields(result)}
    return np.asarray(result)


class Taken(Exception):
    """Ends a function as soon as the door has found a source."""


def taken(function):
    """The source that the door gives a function."""
    with pytest.raises(Taken) as found:
        function()
    return found.value.args[0]


@pytest.fixture
def stopping(monkeypatch):
    """Let the door raise what it finds."""
    original = door.find_source

    def find(data, *arguments, **options):
        found = original(data, *arguments, **options)
        if data is DRAWS["labels"]:  # what some functions are given beside
            return found
        raise Taken(found.source)

    monkeypatch.setattr(door, "find_source", find)
    monkeypatch.setattr(summary, "find_source", find)


@pytest.mark.parametrize("kind", [kind for kind, (what, _) in KINDS.items() if what in DRAWS])
def test_every_function_takes_the_same_source(kind, stopping, tmp_path):
    what, make = KINDS[kind]
    data, wanted = make(tmp_path), DRAWS[what]
    for name, function in functions(data).items():
        if isinstance(data, SEVERAL.get(name, ())):
            continue
        source = taken(function)
        np.testing.assert_array_equal(source.labels, wanted.labels)
        np.testing.assert_array_equal(source.samples.chain, wanted.samples.chain)
        assert (source.soft is None) is (wanted.soft is None)
        if wanted.soft is not None:
            np.testing.assert_array_equal(source.soft.probabilities, wanted.soft.probabilities)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", ["labels", "both"])
@pytest.mark.parametrize("name", sorted(functions(None)))
def test_every_function_answers_a_posterior_as_its_draws(name, what):
    draws = DRAWS["labels" if what == "labels" else "soft"]
    np.testing.assert_equal(plain(functions(posterior(what))[name]()), plain(functions(draws)[name]()))
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", WORDS)
def test_every_function_takes_a_matrix_or_says_why_not(what, tmp_path):
    data = KINDS[what][1](tmp_path)
    for name, function in functions(data).items():
        if what == "a matrix alone" and name in TAKES_PAIRS:
            function()
        else:
            with pytest.raises(ValueError, match=WORDS[what]):
                function()
        plt.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bad", ["NaN", "no draws", "a vector", "a mixture", "a set", "no file", "an empty tree"])
def test_every_function_refuses_bad_draws_in_the_same_words(bad):
    for name, function in functions(BAD[bad][0]).items():
        if name != "others":  # which may be one partition
            check(lambda _, function=function: function(), *BAD[bad])
