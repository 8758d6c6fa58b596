"""A similarity matrix alone: what is taken, that it gives what the draws give, and what it cannot give."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr

import posterior_consensus as pc
from posterior_consensus import consensus
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws

NEEDS_PAIRS = [name for name, method in pc.METHODS.items() if method.needs == "pairs"]
NEEDS_DRAWS = [name for name, method in pc.METHODS.items() if method.needs == "draws"]
PAIR_LOSSES = {"vi_lower_bound": reference.vi_lower_bound, "pear": reference.one_minus_pear}
GOOD = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])

pytestmark = pytest.mark.filterwarnings("ignore:The partition has:UserWarning")


def find(draws, loss="binder", method="greedy", **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


@pytest.fixture(scope="module")
def draws():
    return pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 40, 20, 4, 0.35))


@pytest.fixture(scope="module")
def pairs(draws):
    return pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))


def test_what_is_taken():
    names = ["a", "b", "c"]
    frame = pd.DataFrame(GOOD, pd.Index(names, name="gene"), names)
    array = xr.DataArray(GOOD, dims=("gene", "gene_bis"), coords={"gene": names, "size": ("gene", [1, 2, 3])})
    for given in (GOOD, GOOD.tolist(), scipy.sparse.csr_array(GOOD), frame, array):
        pairs = pc.as_pair_similarity(given)
        np.testing.assert_array_equal(pairs.values, GOOD)
        assert pairs.n_items == 3 and pairs.n_draws is None
    assert pc.as_pair_similarity(GOOD).items.dim == "item"
    for given in (frame, frame[["c", "a", "b"]], array):
        pairs = pc.as_pair_similarity(given)
        assert pairs.items.dim == "gene"
        best = find(pairs)
        assert best.labels["gene"].values.tolist() == names
        np.testing.assert_array_equal(pairs.values, GOOD)
    assert best.labels["size"].values.tolist() == [1, 2, 3]
    assert pc.as_pair_similarity(frame, item_dim="row").items.coords["row"].values.tolist() == names
    assert pc.as_pair_similarity(pairs) is pairs
    assert pc.as_pair_similarity(pd.DataFrame(GOOD, names)).items.coords["item"].values.tolist() == names
    np.testing.assert_array_equal(pc.as_pair_similarity(np.eye(3, dtype=int)).values, np.eye(3))


def test_the_matrix_of_draws_passes_unchanged(draws, pairs):
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_array_equal(pairs.values, psm)
    np.testing.assert_array_equal(pc.as_pair_similarity(draws).values, psm)
    back = pc.posterior_similarity_matrix(pairs)
    assert back.dims == psm.dims and "n_draws" not in back.attrs
    np.testing.assert_array_equal(back, psm)


def test_rounding_is_mended_and_the_users_matrix_left_alone():
    rough = GOOD.copy()
    rough[0, 1] += 3e-8
    rough[0, 0], rough[1, 1], rough[0, 2], rough[2, 0] = 1 + 7e-16, 1 - 1e-8, -1e-17, -1e-17
    before = rough.copy()
    values = pc.as_pair_similarity(rough).values
    np.testing.assert_array_equal(rough, before)
    assert np.array_equal(values, values.T) and np.all(np.diag(values) == 1)
    assert values.min() == 0 and values[0, 1] == pytest.approx(0.9 + 1.5e-8, abs=1e-16)
    assert not np.shares_memory(pc.as_pair_similarity(GOOD).values, GOOD)


def changed(*at, value):
    matrix = GOOD.copy()
    for i, j in at:
        matrix[i, j] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (GOOD[:2], ValueError, r"`matrix` must be square.*got shape \(2, 3\).*as_partition_draws"),
        (GOOD[0], ValueError, r"got shape \(3,\)"),
        (np.ones((2, 2, 2)), ValueError, r"got shape \(2, 2, 2\)"),
        (np.empty((0, 0)), ValueError, r"at least one item; got shape \(0, 0\)"),
        (changed((0, 1), value=0.5), ValueError, "must be symmetric.* by up to 0.4"),
        (np.triu(GOOD), ValueError, "must be symmetric.* fill it from the transpose"),
        (changed((1, 1), value=0.5), ValueError, "must be 1 on the diagonal.*got 0.5"),
        (GOOD - np.eye(3), ValueError, r"must be 1 on the diagonal.*got 0 at row 0, column 0 .*fill_diagonal"),
        (changed((0, 1), (1, 0), value=1.1), ValueError, r"must have values in \[0, 1\]; got 0.2 to 1.1"),
        (
            GOOD * 40,
            ValueError,
            r"in \[0, 1\]; got 8 to 40, the first beyond at row 0, column 0 .*Divide counts by the number of draws",
        ),
        (changed((0, 1), (1, 0), value=-0.1), ValueError, r"in \[0, 1\]; got -0.1 to 1"),
        (changed((0, 1), value=np.nan), ValueError, "must be finite; got 1 values such as nan"),
        (changed((0, 1), value=np.inf), ValueError, "must be finite; got 1 values such as inf"),
        (GOOD.astype(complex), TypeError, "must hold real numbers; got complex128"),
        (np.full((2, 2), "a"), TypeError, "must hold real numbers; got <U1"),
        (pd.DataFrame(GOOD, list("abc"), list("abd")), ValueError, "same items in rows and columns; the names"),
    ],
)
def test_what_is_refused(matrix, error, message):
    with pytest.raises(error, match=message):
        pc.as_pair_similarity(matrix)


def test_item_dim_of_pairs_is_theirs(pairs):
    with pytest.raises(ValueError, match="`item_dim` must be None or 'item'"):
        pc.as_pair_similarity(pairs, item_dim="gene")


def test_it_shows_itself(pairs):
    text = repr(pairs)
    assert "PairSimilarity" in text and "20 (item)" in text and "a similarity matrix alone" in text
    assert "<table" in pairs._repr_html_()
    assert "none" in repr(pc.as_pair_similarity([[1.0]]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pairs)).values, pairs.values)


@pytest.mark.parametrize("loss", ["binder", pc.binder(0.6), pc.binder(1.5), *PAIR_LOSSES], ids=str)
@pytest.mark.parametrize("method", NEEDS_PAIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_matrix_gives_what_its_draws_give(method, loss, weighted):
    n_items = {"enumeration": 7, "sdp": 12}.get(method, 20)
    rng = np.random.default_rng(2)
    draws = pc.as_partition_draws(  # an odd number of them, so that no pair's two costs are equal
        noisy_draws(rng, 41, n_items, 4, 0.35), weights=rng.exponential(size=41) if weighted else None
    )
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))
    if method == "exact" and str(loss) in PAIR_LOSSES:
        with pytest.raises(ValueError, match="'exact' takes Binder's loss only"):
            find(pairs, loss, method)
        return
    options = {} if method == "exact" else {"max_clusters": 6}
    ours, theirs = (find(source, loss, method, **options) for source in (pairs, draws))
    if method == "boem":  # which starts from the best draw, where there is one
        assert ours.expected_loss <= theirs.expected_loss * 1.05
    else:
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        assert ours.expected_loss == pytest.approx(theirs.expected_loss, abs=1e-13)
        if theirs.lower_bound is not None:
            assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-9)
    assert np.isnan(ours.mcse) and ours.n_draws is None and "MCSE unknown" in repr(ours)
    assert "none, a similarity matrix alone" in repr(ours) and "n_draws" not in ours.to_dataset().attrs
    back = pc.ConsensusPartition.from_dataset(ours.to_dataset())
    assert (back.expected_loss, back.loss, back.n_draws) == (ours.expected_loss, ours.loss, None)
    if str(loss) in PAIR_LOSSES:
        expected = PAIR_LOSSES[str(loss)](ours.labels.values, pairs.values)
        assert ours.expected_loss == pytest.approx(expected, abs=1e-12)
        assert np.isnan(theirs.mcse) and theirs.n_draws == 41


@pytest.mark.parametrize("soft", [False, True])
def test_functions_of_pairs_give_what_the_draws_give(soft, draws):
    if soft:
        probabilities = np.random.default_rng(3).dirichlet(np.full(4, 0.3), size=(15, 20))
        draws = pc.as_allocation_probabilities(probabilities)
    pairs = pc.as_pair_similarity(draws)
    best = find(draws)
    one, other = (pc.certify(source, best, progressbar=False) for source in (pairs, draws))
    assert one.status == other.status and one.expected_loss == pytest.approx(other.expected_loss, abs=1e-13)
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-9)
    one, other = (pc.item_uncertainty(source, best) for source in (pairs, draws))
    assert one.membership is None and other.membership is not None  # which needs draws
    xr.testing.assert_allclose(one.to_dataset(), other.to_dataset().drop_vars("item_membership"), atol=1e-12)
    assert pc.plot_item_uncertainty(one) is not None
    for loss in ("binder", pc.binder(tau=0.3), *PAIR_LOSSES):
        both = [pc.expected_loss(source, [best, np.zeros(20, int)], loss=loss) for source in (pairs, draws)]
        np.testing.assert_allclose(*(each["expected_loss"] for each in both), atol=1e-13)
        assert both[0]["mcse"].isnull().all() and "n_draws" not in both[0].attrs
    for order in ("jacobi", "gauss-seidel"):
        start = np.random.default_rng(2).integers(4, size=20)
        refined = [consensus.refine_partition(source, start, order=order, passes=3) for source in (pairs, draws)]
        xr.testing.assert_identical(*refined)
        both = [find(source, "binder", "hierarchical", max_clusters=5, refine=order) for source in (pairs, draws)]
        np.testing.assert_array_equal(both[0].labels, both[1].labels)
    one, other = (find(source, tau=0.3).threshold for source in (pairs, draws))
    assert one.tau == 0.3 and one.within == pytest.approx(other.within, abs=1e-12)
    assert one.between == pytest.approx(other.between, abs=1e-12)
    ax, bx = (pc.plot_psm(source, best) for source in (pairs, draws))
    np.testing.assert_array_equal(ax.images[0].get_array(), bx.images[0].get_array())
    plt.close("all")


@pytest.mark.parametrize("affinity", ["association", "rbf"])
def test_affinities_of_a_matrix(affinity, draws, pairs):
    one, other = (find(source, "binder", "spectral", affinity=affinity, max_clusters=5) for source in (pairs, draws))
    np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("loss", ["binder", *PAIR_LOSSES])
@pytest.mark.parametrize("method", NEEDS_PAIRS)
def test_degenerate_matrices(name, method, loss):
    if method == "exact" and loss != "binder":
        return
    draws = DEGENERATE[name]
    result = find(pc.as_pair_similarity(reference.similarity(draws)), loss, method)
    assert np.isfinite(result.expected_loss)
    if len(np.unique(draws, axis=0)) == 1 and not (loss == "pear" and draws.shape[1] == 1):
        assert reference.same(result.labels.values, draws[0])
        assert result.expected_loss == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_search_finds_the_least_of_all_partitions(loss, seed):
    draws = noisy_draws(np.random.default_rng(seed), 12, 8, 3, 0.45)
    similarity = reference.similarity(draws)
    pairs = pc.as_pair_similarity(similarity)
    values = [(PAIR_LOSSES[loss](labels, similarity), max(labels) + 1) for labels in reference.partitions(8)]
    for n_clusters in (None, 2, 5):
        least = min(value for value, number in values if n_clusters in (None, number))
        for method in ("greedy", "enumeration"):
            found = find(pairs, loss, method, n_clusters=n_clusters)
            assert found.n_clusters == (n_clusters or found.n_clusters)
            assert found.expected_loss == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_no_move_and_no_union_is_better(loss, seed):
    similarity = reference.similarity(noisy_draws(np.random.default_rng(seed), 30, 25, 5, 0.5))
    pairs = pc.as_pair_similarity(similarity)
    found = find(pairs, loss)
    labels, best = found.labels.values, found.expected_loss - 1e-10
    assert found.expected_loss <= find(pairs, loss, "hierarchical").expected_loss
    others = [np.where(labels == k, m, labels) for k in range(labels.max() + 1) for m in range(k)]
    for i in range(25):
        for k in range(labels.max() + 2):
            others.append(np.where(np.arange(25) == i, k, labels))
    assert all(PAIR_LOSSES[loss](other, similarity) >= best for other in others)


def test_wades_bound_is_one_but_for_what_no_partition_changes(draws):
    """Jensen's inequality goes the other way for the sizes of the draws' clusters."""
    psm = pc.posterior_similarity_matrix(draws).values
    sizes = np.array([np.bincount(z)[z] for z in draws.labels])
    for labels in (draws.labels[0], np.zeros(20, int), np.arange(20)):
        bound, expected = (
            pc.expected_loss(draws, labels, loss=loss)["expected_loss"].item() for loss in ("vi_lower_bound", "vi")
        )
        assert bound - np.log2(psm.sum(axis=1)).mean() <= expected - np.log2(sizes).mean() + 1e-12


def test_pear_of_one_draw_is_its_adjusted_rand_index():
    rng = np.random.default_rng(4)
    for _ in range(20):
        draw, labels = rng.integers(3, size=(2, 9))
        expected = pc.partition_loss(labels, draw, loss="omari")
        assert pc.expected_loss([draw], labels, loss="pear")["expected_loss"].item() == pytest.approx(
            expected, abs=1e-12
        )


def test_from_draws_methods_that_need_them_take_losses_of_pairs(draws):
    for method in NEEDS_DRAWS:
        for loss, formula in PAIR_LOSSES.items():
            found = find(draws, loss, method)
            expected = formula(found.labels.values, pc.posterior_similarity_matrix(draws).values)
            assert found.expected_loss == pytest.approx(expected, abs=1e-12)
    best = find(draws, "pear", starts=["best_draw", draws.labels[3]])
    assert best.expected_loss <= find(draws, "pear", "best_draw").expected_loss
    assert best.loss == pc.losses.pear()


@pytest.mark.parametrize("method", NEEDS_DRAWS)
def test_methods_that_need_draws_say_so(method, pairs):
    with pytest.raises(ValueError, match=f"method '{method}' needs posterior draws; got a similarity matrix alone"):
        find(pairs, "binder", method)


@pytest.mark.parametrize("loss", [loss for loss in pc.LOSSES if loss != "binder"])
def test_losses_that_need_draws_say_so(loss, pairs):
    message = f"loss '{loss}' needs posterior draws; got a similarity matrix alone"
    with pytest.raises(ValueError, match=message):
        find(pairs, loss)
    with pytest.raises(ValueError, match=message):
        pc.expected_loss(pairs, np.zeros(20, int), loss=loss)
    with pytest.raises(ValueError, match=message):
        pc.certify(pairs, np.zeros(20, int), loss=loss)


@pytest.mark.parametrize("option", [{"tau": "auto"}, {"max_clusters": "draws"}, {"starts": ["best_draw"]}])
def test_options_that_need_draws_say_so(option, pairs):
    with pytest.raises(ValueError, match="needs posterior draws; got a similarity matrix alone"):
        find(pairs, **option)


ZEROS = np.zeros(20, int)


def test_losses_of_pairs_are_none_between_partitions(draws):
    for loss in PAIR_LOSSES:
        for function in (
            lambda loss=loss: pc.partition_loss(ZEROS, ZEROS, loss=loss),
            lambda loss=loss: pc.credible_ball(draws, ZEROS, loss=loss),
            lambda loss=loss: pc.credible_ball(draws, find(draws, loss)),
            lambda loss=loss: pc.diagnose(draws, ZEROS, loss=loss),
        ):
            with pytest.raises(ValueError, match=f"loss between two partitions.*got '{loss}'"):
                function()
        with pytest.raises(ValueError, match=f"must have a bounding method.*got '{loss}'"):
            pc.certify(draws, ZEROS, loss=loss)
        best = find(draws, loss)
        assert pc.expected_loss(draws, best)["expected_loss"] == best.expected_loss


def test_only_items_of_equal_rows_are_one_in_a_proof():
    similar = np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.2], [0.9, 0.2, 1.0]])  # of no draws: 0 and 1 are not alike
    proof = pc.certify(pc.as_pair_similarity(similar), [0, 0, 0], loss="binder", progressbar=False)
    costs = [reference.binder_of_pairs(labels, similar) for labels in reference.partitions(3)]
    assert proof.lower_bound == pytest.approx(min(costs), abs=1e-12)
    assert proof.info.n_signatures == 3
