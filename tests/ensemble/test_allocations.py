"""Allocation probabilities: how they are found, and what they change."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.bounds.binder import pair_costs
from posterior_consensus.ensemble.similarity import similarity_operator
from tests import reference
from tests.helpers import check

DIMS = ("chain", "draw", "obs", "component")
PARTITION = [0, 0, 0, 1, 1, 2, 2]


@pytest.fixture
def p(rng):
    """Probabilities of 2 x 40 draws, 7 items and 3 components."""
    group = np.array([0, 0, 0, 1, 1, 2, 2])
    logits = 2.5 * np.eye(3)[group] + rng.normal(size=(2, 40, 7, 3))
    p = np.exp(logits)
    return p / p.sum(axis=-1, keepdims=True)


@pytest.fixture
def soft(p):
    return pc.as_allocation_probabilities(xr.DataArray(p, dims=DIMS, coords={"obs": list("abcdefg")}, name="resp"))


def similarity(p):
    """mean_t P_t P_t' with a unit diagonal, by loops."""
    flat = p.reshape(-1, *p.shape[-2:])
    n = flat.shape[1]
    return np.array([[1.0 if i == j else np.mean([t[i] @ t[j] for t in flat]) for j in range(n)] for i in range(n)])


def binder_given_draw(p, partition):
    """Binder's loss expected over independent allocations of the items of one draw."""
    n = len(partition)
    together = np.equal.outer(partition, partition)
    pair = p @ p.T
    differ = np.where(together, 1 - pair, pair)
    return differ[~np.eye(n, dtype=bool)].sum() / n**2


def test_stored_forms(p):
    stored = {"probabilities": p, "log": np.log(p), "shifted log": np.log(p) - 40, "scaled": 3 * p}
    for kind, values in stored.items():
        for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-14)):
            soft = pc.as_allocation_probabilities(values.astype(dtype), log=False if kind == "scaled" else None)
            assert soft.probabilities.dtype == dtype
            assert_allclose(soft.probabilities, p.reshape(80, 7, 3), atol=tolerance)
            assert soft.n_components == 3 and len(soft.samples.chains) == 2


def test_sampled_labels_have_the_probabilities(p, soft):
    counts = np.zeros((80, 7, 3))
    for seed in range(100):
        again = pc.as_allocation_probabilities(p, random_seed=seed)
        counts += np.eye(3)[again.components]
    expected = soft.probabilities
    z = (counts / 100 - expected) / np.sqrt(expected * (1 - expected) / 100)
    assert np.abs(z[(expected > 0.1) & (expected < 0.9)]).max() < 5 and 0.9 < z.std() < 1.1


def test_a_sample_is_made_of_plain_draws(soft):
    one, same, other = soft.sample(3), soft.sample(3), soft.sample(4)
    assert (
        one.counted_draws is not None
        and pc.as_partition_draws(soft).counted_draws is not None
        and pc.as_allocation_probabilities(soft) is soft
    )
    assert_array_equal(one.labels, same.labels)
    assert (one.labels != other.labels).any()
    assert_array_equal(one.samples.chain, soft.samples.chain)
    assert all(len(np.unique(row)) == k for row, k in zip(one.labels, one.n_clusters, strict=True))
    for row, components in zip(soft.labels, soft.components, strict=True):
        assert_array_equal(np.equal.outer(row, row), np.equal.outer(components, components))


def test_components_without_probability_are_never_sampled(rng):
    p = np.zeros((500, 4, 5))
    p[..., 1], p[..., 3] = 0.25, 0.75
    soft = pc.as_allocation_probabilities(p)
    assert set(np.unique(soft.components)) == {1, 3}


def test_binder_and_its_error_are_those_expected_given_the_parameters(p, soft):
    partition = [0, 0, 1, 1, 1, 2, 2]
    result = pc.expected_loss(soft, [partition, [0] * 7], loss="binder")
    by_draw = np.array([binder_given_draw(t, partition) for t in p.reshape(80, 7, 3)])
    assert float(result["expected_loss"][0]) == pytest.approx(by_draw.mean(), rel=1e-12)
    assert float(result["mcse"][0]) == pytest.approx(float(soft.samples.mcse(by_draw)), rel=1e-10)


def test_the_least_binder_loss_is_found_and_proven(p, soft):
    partitions = [np.array(q) for q in reference.partitions(7)]
    least = min(np.mean([binder_given_draw(t, q) for t in p.reshape(80, 7, 3)]) for q in partitions)
    for method in ("greedy", "exact", "enumeration"):
        best = pc.consensus_partition(soft, loss="binder", method=method, random_seed=1)
        assert best.expected_loss == pytest.approx(least, rel=1e-12)
        assert best.lower_bound <= least * (1 + 1e-12)
    assert pc.certify(soft, best, loss="binder").status == "optimal"


def test_items_of_equal_samples_are_not_merged(soft):
    """Labels of a sample may agree in every draw although the probabilities do not."""
    together, apart, signature = pair_costs(soft, pc.binder())
    assert_array_equal(signature, np.arange(7))
    assert_allclose(apart / soft.n_draws, similarity(soft.probabilities) - np.eye(7), atol=1e-13)
    assert together.shape == (7, 7)


def test_items_and_spectra_use_the_probabilities(soft):
    psm = similarity(soft.probabilities)
    labels = np.array(PARTITION)
    items = pc.item_uncertainty(soft, labels)
    for i in range(7):
        others = [j for j in range(7) if labels[j] == labels[i] and j != i]
        assert float(items.similarity[i]) == pytest.approx(psm[i, others].mean(), rel=1e-12)
    columns = np.random.default_rng(1).normal(size=(7, 3))
    assert_allclose(similarity_operator(soft) @ columns, psm @ columns, atol=1e-13)
    assert_allclose(similarity_operator(soft) @ columns[:, 0], psm @ columns[:, 0], atol=1e-13)


METHODS = sorted(set(pc.METHODS) - {"exact"})


@pytest.mark.parametrize(
    ("method", "loss"),
    [("greedy", "vi"), ("greedy", "nid"), *((name, ("vi", "binder")[k % 2]) for k, name in enumerate(METHODS))],
)
def test_methods_take_them(soft, method, loss):
    best = pc.consensus_partition(soft, loss=loss, method=method, random_seed=1)
    again = pc.expected_loss(soft, best, loss=loss)
    assert best.expected_loss == pytest.approx(float(again["expected_loss"]), rel=1e-12)
    assert best.mcse == pytest.approx(float(again["mcse"]), rel=1e-9)


def dataset(**variables):
    return xr.Dataset({name: (dims, values) for name, (dims, values) in variables.items()})


def test_found_without_a_name(p, rng):
    wide = rng.normal(size=(2, 40, 7, 3))
    data = dataset(mu=(("chain", "draw", "obs", "feature"), wide), q=(DIMS, p))
    assert_allclose(pc.as_allocation_probabilities(data).probabilities, p.reshape(80, 7, 3))
    first = dataset(q=(("chain", "draw", "component", "obs"), p.swapaxes(2, 3)))
    found = pc.as_allocation_probabilities(first)
    assert (found.items.dim, found.component_dim) == ("obs", "component")
    assert_allclose(found.probabilities, p.reshape(80, 7, 3))
    named = dataset(mu=(("chain", "draw", "obs", "feature"), wide), lp_z=(DIMS, np.log(p) + wide[..., :1]))
    assert_allclose(pc.as_allocation_probabilities(named).probabilities, p.reshape(80, 7, 3))
    by_name = pc.as_allocation_probabilities({"q": p, "w": p[..., 0, :]})
    assert_allclose(by_name.probabilities, found.probabilities)
    sampled = first.stack(sample=("chain", "draw"))
    assert_allclose(pc.as_allocation_probabilities(sampled).probabilities, found.probabilities)


def test_transition_matrices_are_not_taken():
    matrix = np.full((2, 40, 3, 3), 1 / 3)
    with pytest.raises(ValueError, match="holds no allocation probabilities"):
        pc.as_allocation_probabilities(dataset(trans=(("chain", "draw", "state", "to"), matrix)))


NAN = np.array([[[0.5, np.nan]]])


HALF = (DIMS, np.full((1, 2, 3, 2), 0.5))
BAD_DATA = [
    (NAN, ValueError, ["`data`", "NaN"]),
    (np.array([[[0.5, 2.0]]]), ValueError, ["`log`", "not normalized"]),
    (np.array([[[-np.inf, -np.inf]]]), ValueError, ["component", "-inf"]),
    (np.ones((2, 3, 4), int), TypeError, ["floats", "int"]),
    (np.ones((4, 3, 2), bool), TypeError, ["`data` holds bool"]),
    (np.ones((2, 3)), ValueError, ["draws x items x components", "(2, 3)"]),
    (np.ones((0, 3, 2)), ValueError, ["at least one draw"]),
    ({"z": np.ones((2, 3, 4))}, ValueError, ["chains x draws x items x components", "(2, 3, 4)"]),
    (dataset(mu=(("chain", "draw", "k"), np.ones((1, 2, 3)))), ValueError, ["no allocation probabilities", "mu"]),
    (dataset(p=HALF, q=HALF), ValueError, ["`var_name`", "'p', 'q'"]),
    ("nowhere.nc", FileNotFoundError, ["nowhere.nc"]),
]
BAD_OPTIONS = [
    ({"var_name": "zz"}, ["`var_name`", "'zz'", "'q'"]),
    ({"var_name": "q", "component_dim": "k"}, ["`component_dim`", "'k'", "component"]),
    ({"var_name": "q", "item_dim": "k"}, ["`item_dim`", "'k'"]),
    ({"var_name": "q", "item_dim": "a", "component_dim": "a"}, ["`item_dim`", "`component_dim`", "got 'a'"]),
    ({"var_name": "q", "log": False}, ["`log`", "negative"]),
    ({"weights": [1.0]}, ["`weights`", "(1,)"]),
]


def test_bad_data_and_options(p):
    for data, error, parts in BAD_DATA:
        check(pc.as_allocation_probabilities, data, error, parts)
    logs = dataset(q=(DIMS, np.log(p)))
    for options, parts in BAD_OPTIONS:
        check(lambda given: pc.as_allocation_probabilities(logs, **given), options, ValueError, parts)
