"""A similarity matrix alone: what is taken, that it gives what the draws give, and what it cannot give."""

import pickle
from functools import cache
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.refinement import refine_partition
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import check, check_all

NEEDS_PAIRS = [name for name, method in pc.METHODS.items() if not method.needs_draws]
NEEDS_DRAWS = [name for name, method in pc.METHODS.items() if method.needs_draws]
PAIR_LOSSES = {"vi_lower_bound": reference.vi_lower_bound, "pear": reference.one_minus_pear}
GOOD = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
ZEROS = np.zeros(20, int)
ALONE = "needs posterior draws; got a similarity matrix alone"

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
    for given in (GOOD, GOOD.tolist(), frame, array):
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
    with pytest.raises(ValueError, match="`item_dim` must be None or 'gene'"):
        pc.as_pair_similarity(pairs, item_dim="item")


def lines(first, names):
    """A table of the matrix, with a first line and names of rows if there are any."""
    rows = [",".join(map(str, row)) for row in GOOD.tolist()]
    rows = rows if names is None else [f"{name},{row}" for name, row in zip(names, rows, strict=True)]
    return "\n".join([*([] if first is None else [first]), *rows]) + "\n"


GENES = ["abl", "bcr", "cbl"]
FILES = {
    "R, no names": ('"","V1","V2","V3"', ['"1"', '"2"', '"3"'], None),
    "R": ('"","abl","bcr","cbl"', ['"abl"', '"bcr"', '"cbl"'], GENES),
    "R, no names of rows": ('"abl","bcr","cbl"', None, GENES),
    "pandas": (",abl,bcr,cbl", GENES, GENES),
    "pandas, no names of rows": (",abl,bcr,cbl", [0, 1, 2], GENES),
    "numbers": (None, None, None),
    "names of rows alone": (None, GENES, GENES),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_matrix_in_a_file(kind, tmp_path):
    first, rows, names = FILES[kind]
    (tmp_path / "psm.csv").write_text(lines(first, rows))
    pairs = pc.as_pair_similarity(str(tmp_path / "psm.csv"), item_dim="gene")
    np.testing.assert_array_equal(pairs.values, GOOD)
    assert pairs.items.dim == "gene" and pairs.items.names.tolist() == (names or ["0", "1", "2"])


def test_a_matrix_in_a_file_of_numpy(tmp_path):
    np.save(tmp_path / "psm.npy", GOOD)
    np.testing.assert_array_equal(pc.as_pair_similarity(tmp_path / "psm.npy").values, GOOD)
    np.save(tmp_path / "z.npy", np.zeros((4, 3)))
    check(pc.as_pair_similarity, tmp_path / "z.npy", ValueError, ["`data` must be square", "(4, 3)"])


def test_a_matrix_among_other_variables_is_refused_by_name(tmp_path):
    variables = xr.Dataset({"psm": (("obs", "obs_bis"), GOOD)})
    variables.to_netcdf(tmp_path / "psm.nc", engine="h5netcdf")
    kinds = {"Dataset": variables, "DataTree": tmp_path / "psm.nc"}
    cases = [(given, TypeError, "`data`", f"got a {name}", "Take a variable") for name, given in kinds.items()]
    check_all(pc.as_pair_similarity, cases)


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


OFF = ((0, 1), (1, 0))
REFUSED = {
    "square": (GOOD[:2], ValueError, ["square", "got shape (2, 3)", "as_partition_draws"]),
    "a row": (GOOD[0], ValueError, ["got shape (3,)"]),
    "a cube": (np.ones((2, 2, 2)), ValueError, ["got shape (2, 2, 2)"]),
    "nothing": (np.empty((0, 0)), ValueError, ["at least one item", "got shape (0, 0)"]),
    "not symmetric": (changed((0, 1), value=0.5), ValueError, ["symmetric", "by up to 0.4"]),
    "a triangle": (np.triu(GOOD), ValueError, ["symmetric", "from the transpose"]),
    "a diagonal of others": (changed((1, 1), value=0.5), ValueError, ["1 on the diagonal", "got 0.5"]),
    "a diagonal of 0": (
        GOOD - np.eye(3),
        ValueError,
        ["1 on the diagonal", "got 0 at row 0, column 0", "fill_diagonal"],
    ),
    "above 1": (changed(*OFF, value=1.1), ValueError, ["[0, 1]", "got 0.2 to 1.1"]),
    "counts": (GOOD * 40, ValueError, ["[0, 1]", "got 8 to 40", "at row 0, column 0", "Divide counts"]),
    "below 0": (changed(*OFF, value=-0.1), ValueError, ["[0, 1]", "got -0.1 to 1"]),
    "NaN": (changed((0, 1), value=np.nan), ValueError, ["finite", "got 1 values such as nan"]),
    "inf": (changed((0, 1), value=np.inf), ValueError, ["finite", "got 1 values such as inf"]),
    "complex": (GOOD.astype(complex), TypeError, ["real numbers", "got complex128"]),
    "text": (np.full((2, 2), "a"), TypeError, ["real numbers", "got <U1"]),
    "other names": (pd.DataFrame(GOOD, list("abc"), list("abd")), ValueError, ["same items in rows and columns"]),
}


def test_what_is_refused():
    for matrix, error, parts in REFUSED.values():
        check(pc.as_pair_similarity, matrix, error, ["`data`", *parts])


def test_it_shows_itself(pairs):
    text = repr(pairs)
    assert "PairSimilarity" in text and "20 (item)" in text and "a similarity matrix alone" in text
    assert "<table" in pairs._repr_html_()
    assert "none" in repr(pc.as_pair_similarity([[1.0]]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pairs)).values, pairs.values)


LOSSES = ["binder", pc.binder(0.6), pc.binder(1.5), *PAIR_LOSSES]
OTHERS = [method for method in NEEDS_PAIRS if method not in ("greedy", "exact")]
CASES = [("greedy", loss, weighted) for loss in LOSSES for weighted in (False, True)]
CASES += [("exact", "binder", False), ("exact", pc.binder(0.6), True), ("exact", pc.binder(1.5), False)]
for one, other, method in zip(
    cycle(["binder", pc.binder(1.5)]), cycle(["pear", "vi_lower_bound"]), OTHERS, strict=False
):
    CASES += [(method, one, False), (method, other, True)]


@cache
def draws_for(n_items, weighted):
    """An odd number of them, so that no pair's two costs are equal."""
    rng = np.random.default_rng(2)
    labels = noisy_draws(rng, 41, n_items, 4, 0.35)
    return pc.as_partition_draws(labels, weights=rng.exponential(size=41) if weighted else None)


@pytest.mark.parametrize(("method", "loss", "weighted"), CASES, ids=str)
def test_a_matrix_gives_what_its_draws_give(method, loss, weighted):
    draws = draws_for({"enumeration": 7, "sdp": 12}.get(method, 20), weighted)
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))
    options = {} if method == "exact" else {"max_clusters": 6}
    ours, theirs = (find(source, loss, method, **options) for source in (pairs, draws))
    if method == "boem":  # which starts from the best draw, where there is one
        assert ours.expected_loss <= theirs.expected_loss * 1.05
    else:
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        assert ours.expected_loss == pytest.approx(theirs.expected_loss, abs=1e-13)
        if theirs.lower_bound is not None:
            assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-9)
    assert np.isnan(ours.mcse) and ours.n_draws is None and "MCSE" not in repr(ours)
    assert "none, similarities of pairs alone" in repr(ours) and "n_draws" not in ours.to_dataset().attrs
    back = pc.results.ConsensusPartition.from_dataset(ours.to_dataset())
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
    of_draws = [name for name in other.to_dataset() if "membership" in name or "misplaced" in name]
    assert one.membership is None and len(of_draws) == 4
    one_stored, other_stored = (found.to_dataset().drop_vars(of_draws, errors="ignore") for found in (one, other))
    xr.testing.assert_allclose(one_stored, other_stored, atol=1e-12)
    assert one.plot() is not None
    for loss in ("binder", pc.binder(tau=0.3), *PAIR_LOSSES):
        both = [pc.expected_loss(source, [best, ZEROS], loss=loss) for source in (pairs, draws)]
        np.testing.assert_allclose(*(each["expected_loss"] for each in both), atol=1e-13)
        assert both[0]["mcse"].isnull().all() and "n_draws" not in both[0].attrs
    for order in ("jacobi", "gauss-seidel"):
        start = np.random.default_rng(2).integers(4, size=20)
        refined = [refine_partition(source, start, order=order, passes=3) for source in (pairs, draws)]
        xr.testing.assert_identical(*refined)
        both = [find(source, "binder", "hierarchical", max_clusters=5, refine=order) for source in (pairs, draws)]
        np.testing.assert_array_equal(both[0].labels, both[1].labels)
    for affinity in ("association", "rbf"):
        options = {"affinity": affinity, "max_clusters": 5}
        both = [find(source, "binder", "spectral", **options) for source in (pairs, draws)]
        np.testing.assert_array_equal(both[0].labels, both[1].labels)
    one, other = (find(source, tau=0.3).threshold for source in (pairs, draws))
    assert one.tau == 0.3 and one.within == pytest.approx(other.within, abs=1e-12)
    assert one.between == pytest.approx(other.between, abs=1e-12)
    ax, bx = (pc.plot_psm(source, best) for source in (pairs, draws))
    np.testing.assert_array_equal(ax.images[0].get_array(), bx.images[0].get_array())
    plt.close("all")


@pytest.mark.parametrize("method", NEEDS_PAIRS)
def test_degenerate_matrices(method):
    for draws in DEGENERATE.values():
        pairs = pc.as_pair_similarity(reference.similarity(draws))
        for loss in ("binder",) if method == "exact" else ("binder", *PAIR_LOSSES):
            result = find(pairs, loss, method)
            assert np.isfinite(result.expected_loss)
            if len(np.unique(draws, axis=0)) == 1 and not (loss == "pear" and draws.shape[1] == 1):
                assert reference.same(result.labels.values, draws[0])
                assert result.expected_loss == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("seed", range(2))
def test_search_finds_the_least_of_all_partitions(loss, seed):
    similarity = reference.similarity(noisy_draws(np.random.default_rng(seed), 12, 7, 3, 0.45))
    pairs = pc.as_pair_similarity(similarity)
    values = [(PAIR_LOSSES[loss](labels, similarity), max(labels) + 1) for labels in reference.partitions(7)]
    for n_clusters in (None, 2, 5):
        least = min(value for value, number in values if n_clusters in (None, number))
        for method in ("greedy", "enumeration"):
            found = find(pairs, loss, method, n_clusters=n_clusters)
            assert found.n_clusters == (n_clusters or found.n_clusters)
            assert found.expected_loss == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
def test_no_move_and_no_union_is_better(loss):
    similarity = reference.similarity(noisy_draws(np.random.default_rng(0), 30, 25, 5, 0.5))
    pairs = pc.as_pair_similarity(similarity)
    found = find(pairs, loss)
    assert found.expected_loss <= find(pairs, loss, "hierarchical").expected_loss
    least = found.expected_loss - 1e-10
    assert all(PAIR_LOSSES[loss](other, similarity) >= least for other in reference.neighbours(found.labels.values))


def test_from_draws_methods_that_need_them_take_losses_of_pairs(draws):
    for method in NEEDS_DRAWS:
        for loss, formula in PAIR_LOSSES.items():
            found = find(draws, loss, method)
            expected = formula(found.labels.values, pc.posterior_similarity_matrix(draws).values)
            assert found.expected_loss == pytest.approx(expected, abs=1e-12)
    best = find(draws, "pear", starts=["best_draw", draws.labels[3]])
    assert best.expected_loss <= find(draws, "pear", "best_draw").expected_loss
    assert best.loss == pc.losses.pear()


def test_what_needs_draws_says_so(pairs):
    for method in NEEDS_DRAWS:
        check(lambda method: find(pairs, "binder", method), method, ValueError, [f"method '{method}' {ALONE}"])
    for loss in set(pc.LOSSES) - {"binder"}:
        for function in (
            lambda loss: find(pairs, loss),
            lambda loss: pc.expected_loss(pairs, ZEROS, loss=loss),
            lambda loss: pc.certify(pairs, ZEROS, loss=loss),
        ):
            parts = [f"loss '{loss}' {ALONE}", "loss='binder' or loss='vi_lower_bound'"]
            check(function, loss, ValueError, parts)
    for option in ({"tau": "auto"}, {"max_clusters": "draws"}, {"starts": ["best_draw"]}):
        check(lambda option: find(pairs, **option), option, ValueError, [ALONE])


def test_losses_of_pairs_are_none_between_partitions(draws, pairs):
    for loss in PAIR_LOSSES:
        check(lambda loss: find(pairs, loss, "exact"), loss, ValueError, ["'exact' takes Binder's loss only"])
        best = find(draws, loss)
        for function in (
            lambda loss: pc.partition_loss(ZEROS, ZEROS, loss=loss),
            lambda loss: pc.credible_ball(draws, ZEROS, loss=loss),
            lambda loss, best=best: pc.credible_ball(draws, best),
            lambda loss: pc.diagnose(draws, ZEROS, loss=loss),
        ):
            check(function, loss, ValueError, ["between two partitions", f"got '{loss}'"])
        check(lambda loss: pc.certify(draws, ZEROS, loss=loss), loss, ValueError, ["bounding method", f"got '{loss}'"])
        assert pc.expected_loss(draws, best)["expected_loss"] == best.expected_loss


def test_only_items_of_equal_rows_are_one_in_a_proof():
    similar = np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.2], [0.9, 0.2, 1.0]])  # of no draws: 0 and 1 are not alike
    proof = pc.certify(pc.as_pair_similarity(similar), [0, 0, 0], loss="binder", progressbar=False)
    costs = [reference.binder_of_pairs(labels, similar) for labels in reference.partitions(3)]
    assert proof.lower_bound == pytest.approx(min(costs), abs=1e-12)
    assert proof.info.n_signatures == 3
