"""Tables whose columns are elements of variables, as Stan, JAGS and R's posterior name them."""

import gzip

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus_command import main
from tests.helpers import check_all, source_in

N_DRAWS, N_ITEMS, K = 12, 5, 3
SAMPLER = ["lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__"]
SETTINGS = """\
# stan_version_major = 2
# method = sample (Default)
#   sample
#     num_samples = 12
#     num_warmup = {warmup}
#     save_warmup = {save}
#     thin = {thin} (Default)
#     algorithm = hmc (Default)
"""


@pytest.fixture
def p(rng):
    """Probabilities of one chain, (draws, items, components)."""
    return rng.dirichlet(np.full(K, 0.5), (N_DRAWS, N_ITEMS))


def named(values, name, form):
    """Columns of a matrix of each draw, the first index fastest, as Stan and R have them."""
    _, n_items, n_components = values.shape
    columns = {form.format(name, i + 1, k + 1): values[:, i, k] for k in range(n_components) for i in range(n_items)}
    return pd.DataFrame(columns)


def labels_of(rng, p):
    """Components sampled from their probabilities, from 1."""
    return 1 + (rng.random((*p.shape[:2], 1)) > p.cumsum(axis=-1)[..., :-1]).sum(axis=-1)


def of_stan(path, p, rng, *, labels=None, save_warmup="0 (Default)", warmup=0, thin=1):
    """A file as CmdStan writes it: comments around and within, sampler columns, parameters, log joint densities."""
    n = len(p)
    frame = pd.DataFrame({column: rng.normal(size=n) for column in SAMPLER})
    frame[[f"mu.{k + 1}" for k in range(K)]] = rng.normal(size=(n, K))
    logs = np.log(p) - rng.normal(20, 5, size=(n, p.shape[1], 1))
    frame = pd.concat([frame, named(logs, "log_prob_z", "{}.{}.{}")], axis=1)
    if labels is not None:
        frame[[f"z.{i + 1}" for i in range(N_ITEMS)]] = labels
    head, *rows = frame.to_csv(index=False, float_format="%.6g").splitlines()
    adapted = ["# Adaptation terminated", "# Step size = 0.8", "# 0.9, 1.1"]
    end = ["# ", "#  Elapsed Time: 0.01 seconds (Warm-up)", "#                0.02 seconds (Sampling)"]
    settings = SETTINGS.format(warmup=warmup, save=save_warmup, thin=thin).splitlines()
    saved = -(-warmup // thin) if save_warmup[0] in "1t" else 0
    text = "\n".join([*settings, head, *rows[:saved], *adapted, *rows[saved:], *end]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


FORMS = {"R's posterior, rstan": "{}[{},{}]", "JAGS, NIMBLE": "{}[{}, {}]", "Stan": "{}.{}.{}"}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_probabilities_in_columns(p, form, tmp_path):
    data = named(p, "p", form).assign(alpha=0.3).sample(frac=1, axis=1, random_state=1)  # names tell, not the order
    separators = {"p.csv": ",", "p.tsv": "\t", "p.txt": " "}
    for name, separator in separators.items():
        data.to_csv(tmp_path / name, sep=separator)
    for given in (data, *(tmp_path / name for name in separators)):
        for options in ({}, {"var_name": "p"}):
            soft = pc.as_allocation_probabilities(given, **options)
            assert_allclose(soft.probabilities, p, rtol=1e-12)
    assert (soft.items.dim, soft.component_dim) == ("item", "component")
    assert soft.items.coords["item"].values.tolist() == [1, 2, 3, 4, 5]
    other = pc.as_allocation_probabilities(data, item_dim="person", component_dim="type")
    assert (other.items.dim, other.component_dim) == ("person", "type")
    assert_array_equal(pc.posterior_similarity_matrix(data).values, soft.similarity())


def test_chains_of_draws_df(p, tmp_path):
    ids = {".chain": np.repeat([1, 2], 6), ".iteration": np.tile(np.arange(1, 7), 2), ".draw": np.arange(1, 13)}
    logs = named(np.log(p), "lp_z", "{}[{},{}]")
    frame, cmdstanpy = logs.assign(**ids), logs.assign(chain__=ids[".chain"], iter__=ids[".iteration"], draw__=0.0)
    frame.to_csv(tmp_path / "draws.csv")
    for data in (frame, tmp_path / "draws.csv", cmdstanpy):
        soft = pc.as_allocation_probabilities(data)
        assert_allclose(soft.probabilities, p)
        assert_array_equal(soft.samples.chain, ids[".chain"])
        assert_array_equal(soft.samples.draw, ids[".iteration"])


def test_files_of_cmdstan(p, rng, tmp_path):
    paths = [of_stan(tmp_path / name, p, rng, labels=labels_of(rng, p)) for name in ("chain.csv", "chain.csv.gz")]
    for data, n_chains in ((paths[0], 1), (paths, 2)):
        soft = pc.as_allocation_probabilities(data)
        assert_allclose(soft.probabilities, np.concatenate([p] * n_chains), atol=1e-3)  # six digits of about -20
        assert len(soft.samples.chains) == n_chains
    labels = pc.as_partition_draws(paths[0])
    assert labels.items.coords["item"].values.tolist() == [1, 2, 3, 4, 5]
    found = source_in(paths[0])
    assert found.origin.in_words() == "allocation probabilities `log_prob_z`; the labels `z` are sampled from them"
    assert source_in(paths[0], "z").source.counted_draws is not None


def test_stan_from_the_shell(p, rng, tmp_path, capsys):
    paths = [str(of_stan(tmp_path / f"chain_{k}.csv", p, rng)) for k in (1, 2)]
    assert main([*paths, "--quiet"]) == 0
    assert "5 items in" in (out := capsys.readouterr().out) and "allocation probabilities" in out
    assert main([*paths, "--var", "mu"]) == 2
    assert "`mu`" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("save", "warmup", "thin", "left"), [("0 (Default)", 4, 1, 12), ("1", 4, 1, 8), ("true", 5, 2, 9)]
)
def test_draws_of_the_warm_up_are_dropped(p, rng, tmp_path, save, warmup, thin, left):
    path = of_stan(tmp_path / "z.csv", p, rng, save_warmup=save, warmup=warmup, thin=thin)
    soft = pc.as_allocation_probabilities(path)
    assert_allclose(soft.probabilities, p[N_DRAWS - left :], atol=1e-3)
    assert soft.samples.draw.tolist() == list(range(left))


def test_labels_of_stan_without_comments(p, rng, tmp_path):
    """As after grep -v '#'."""
    z = labels_of(rng, p)
    frame = pd.DataFrame(z, columns=[f"z.{i + 1}" for i in range(N_ITEMS)]).assign(**{"mu.1": 0.5, "lp__": -3.2})
    frame.to_csv(tmp_path / "z.csv", index=False)
    assert_array_equal(pc.as_partition_draws(tmp_path / "z.csv").labels, pc.as_partition_draws(z).labels)
    frame = frame.drop(columns=["lp__"])
    assert_array_equal(pc.as_partition_draws(frame, "z").labels, pc.as_partition_draws(z).labels)


def test_items_by_their_names(rng, tmp_path):
    z = rng.integers(3, size=(9, 4))
    for end in ("", ".1"):
        names = [f"{name}{end}" for name in ("control.1", "control.2", "treated.1", "treated.2")]
        assert pc.as_partition_draws(pd.DataFrame(z, columns=names)).items.names.tolist() == names
    np.savetxt(tmp_path / "z.csv", z, fmt="%d", delimiter=",", header="a,b,c,d")
    draws = pc.as_partition_draws(tmp_path / "z.csv")
    assert_array_equal(draws.labels, pc.as_partition_draws(z).labels)
    assert draws.items.names.tolist() == ["# a", "b", "c", "d"]  # which is no comment
    z = rng.integers(1, 4, size=(9, 2, 3))
    draws = pc.as_partition_draws(named(z, "z", "{}[{},{}]"))
    assert draws.items.names.tolist() == [f"z[{i},{j}]" for j in (1, 2, 3) for i in (1, 2)]
    assert_array_equal(draws.labels, pc.as_partition_draws(z.swapaxes(1, 2).reshape(9, 6)).labels)


def test_some_of_the_elements(p):
    """Of the probabilities some items, of another matrix, of parameters, any."""
    soft = pc.as_allocation_probabilities(named(p, "p", "{}[{},{}]").filter(regex="\\[[25],"))
    assert_allclose(soft.probabilities, p[:, [1, 4]], rtol=1e-12)
    assert soft.items.coords["item"].values.tolist() == [2, 5]
    table = named(p, "log_prob_z", "{}[{},{}]").assign(**{"L[1,1]": 0.3, "L[2,1]": 0.1, "L[2,2]": 0.7})
    assert_allclose(pc.as_allocation_probabilities(table).probabilities, p, rtol=1e-12)


def test_certain_components(rng):
    z = rng.integers(K, size=(N_DRAWS, N_ITEMS))
    soft = pc.as_allocation_probabilities(named(np.eye(K, dtype=int)[z], "p", "{}[{},{}]"))
    assert_array_equal(soft.components, z)


def test_components_before_items(p, tmp_path):
    table = named(p.swapaxes(1, 2), "p", "{}[{},{}]")
    for soft in (pc.as_allocation_probabilities(table), source_in(table).source):
        assert_allclose(soft.probabilities, p, rtol=1e-12)
        assert (soft.items.dim, soft.component_dim) == ("item", "component")
    variable = xr.DataArray(p.swapaxes(1, 2)[np.newaxis], dims=("chain", "draw", "kind", "obs"), name="p")
    xr.DataTree.from_dict({"posterior": variable.to_dataset()}).to_netcdf(tmp_path / "p.nc")
    for given in (variable, tmp_path / "p.nc"):
        soft = pc.as_allocation_probabilities(given)
        assert (soft.items.dim, soft.component_dim) == ("obs", "kind")


def test_bad_tables(p):
    frame = named(p, "p", "{}[{},{}]")
    z = pd.DataFrame(np.ones((N_DRAWS, 4), int), columns=list("abcd"))
    vector = frame.filter(like=",1]").rename(columns=lambda name: name[:-3] + "]")
    two = pd.concat([frame, named(p, "q", "{}[{},{}]")], axis=1)
    cases = [
        ((z, {}), "a column for each item and component, such as 'p[1,2]'", "'a', 'b', 'c', 'd'."),
        ((frame.drop(columns="p[3,2]"), {"var_name": "p"}), "each item and component of 'p'; 'p[3,2]' is missing"),
        ((vector, {"var_name": "p"}), "('item',)"),
        ((frame, {"var_name": "q"}), "`var_name`", "got 'q', present: 'p'"),
        ((two, {}), "`var_name`", "candidates: 'p', 'q'"),
        ((frame * 2, {}), "no allocation probabilities", "present: p"),
        (
            (frame.assign(**{"p[2,3]": 2.0}), {"var_name": "p"}),
            *("`log` must be given", "draw ", ", item 2, component 0 (from 0); rounding explains 1e-05"),
        ),
        ((frame, {"group": "prior"}), "`group`", "left out for tables"),
    ]
    cases = [(given, ValueError, *parts) for given, *parts in cases]
    check_all(lambda given: pc.as_allocation_probabilities(given[0], **given[1]), cases)


def test_items_have_one_name_in_tables_of_labels_and_of_probabilities(p, rng, tmp_path):
    names = [1, 2, 38, 4, 5]
    wide = {"z": labels_of(rng, p), "p": p}
    labels = pd.DataFrame({f"z[{name}]": wide["z"][:, i] for i, name in enumerate(names)})
    soft = pd.DataFrame({f"p[{name},{k}]": p[:, i, k] for i, name in enumerate(names) for k in range(K)})
    labels.to_csv(tmp_path / "z.csv")
    for draws in (pc.as_partition_draws(labels), pc.as_partition_draws(tmp_path / "z.csv")):
        assert draws.items.coords["item"].values.tolist() == names
    found = pc.as_allocation_probabilities(soft)
    assert found.items.coords["item"].values.tolist() == sorted(names)
    partition = pc.consensus_partition(labels, n_starts=1, random_seed=1, progressbar=False)
    assert_array_equal(pc.membership(found, partition).cluster.sel(item=names), partition.labels)


@pytest.mark.parametrize(
    "columns", [["mean", "sd", "ess_bulk", "r_hat"], ["Mean", "MCSE", "N_Eff", "R_hat"], ["mean", "sd", "hdi_3%"]]
)
def test_a_table_of_statistics_is_recognized(columns, tmp_path):
    table = pd.DataFrame(1.0, [f"z[{k}]" for k in range(5)], columns)
    table.to_csv(tmp_path / "a.csv")
    words = ValueError, "statistics of each variable", "az.summary", "Give the posterior itself"
    for given in (table, tmp_path / "a.csv", table.astype(str)):
        for function in (pc.summarize, pc.as_partition_draws):
            check_all(function, [(given, *words)])
