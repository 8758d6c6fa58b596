import inspect
import pickle
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import posterior_consensus as pc
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.losses.partition_losses import PAIR_LOSSES
from posterior_consensus.losses.record import TERMS, PairLoss
from posterior_consensus.sources.conversion import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check, check_all
from tests.strategies import label_pairs

# Every loss under test: our record, and its definition.
CASES = {
    **{name: (factory(), reference.LOSSES[name]) for name, factory in pc.LOSSES.items()},
    "binder(a=0.5)": (pc.binder(0.5), lambda x, y: reference.binder(x, y, 0.5)),
    "binder(a=1.9)": (pc.binder(a=1.9), lambda x, y: reference.binder(x, y, 1.9)),
    "vi(a=0.5)": (pc.vi(0.5), lambda x, y: reference.vi(x, y, 0.5)),
    "vi(a=1.9)": (pc.vi(a=1.9), lambda x, y: reference.vi(x, y, 1.9)),
    **{
        f"nmi({mean})": (pc.losses.nmi(mean), lambda x, y, mean=mean: reference.nmi(x, y, mean))
        for mean in ("arithmetic", "min", "max")
    },
}
FIVE = np.array(list(reference.partitions(5)))  # 52 partitions
ADVERSARIAL = [
    ([0], [3]),
    ([0, 0], [0, 1]),
    ([0] * 12, [0] * 12),
    ([0] * 12, range(12)),
    (range(12), range(12)),
    ([0] * 11 + [1], [0] * 12),
    ([0] * 11 + [1], [1] + [0] * 11),
    ([0] * 10 + [1, 2], [0] * 10 + [1, 1]),
    (np.arange(36) // 6, np.arange(36) % 6),  # independent
    (np.arange(40) // 2, (np.arange(40) + 1) // 2),
]


@pytest.fixture(scope="module")
def tables():
    """Loss of every partition of five items against every other, (52, 52)."""
    return {name: loss_matrix(FIVE, as_partition_draws(FIVE), loss) for name, (loss, _) in CASES.items()}


def test_every_loss_is_covered_and_documented():
    assert set(pc.LOSSES) == set(reference.LOSSES)
    for name, factory in pc.LOSSES.items():
        record = factory()
        assert record.name == name
        assert record.formula and record.upper and record.reference.startswith("https://")
        assert getattr(pc.losses, factory.__name__) is factory
        notes = inspect.getdoc(factory)
        assert re.search(r"Notes\n-----\nL = .*\((19|20)\d\d\)", notes, flags=re.DOTALL)  # a formula and its source
        assert {*record.numerator, *record.denominator} <= set(TERMS)


def delicate(test):
    """Let a hypothesis test of a pair begin with those where the definition is delicate."""
    for one, other in ADVERSARIAL:
        test = example(pair=(np.array(one), np.array(other)))(test)
    return test


@pytest.mark.parametrize("name", CASES)
@delicate
@given(pair=label_pairs())
def test_definition(name, pair):
    loss, definition = CASES[name]
    for one, other in (pair, pair[::-1]):
        assert pc.partition_loss(one, other, loss=loss) == pytest.approx(definition(one, other), rel=1e-12, abs=1e-12)


def test_definition_of_many_clusters():
    one, other = np.random.default_rng(1).integers(350, size=(2, 400))
    assert np.unique(one).size > 200
    for name, (loss, definition) in CASES.items():
        found = pc.partition_loss(one, other, loss=loss)
        assert found == pytest.approx(definition(one, other), rel=1e-12), name


def test_one_partition_against_draws_is_a_row_of_the_table():
    draws, loss = np.random.default_rng(2).integers(3, size=(4, 9)), pc.vi(a=0.6)  # which is not symmetric
    table = pc.partition_loss(draws, loss=loss)
    np.testing.assert_array_equal(pc.partition_loss(draws[0], draws, loss=loss), table[:1])
    np.testing.assert_array_equal(pc.partition_loss(draws, draws[0], loss=loss), table[:, :1])


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_zero_for_equal_partitions_only_and_symmetric_and_a_metric_where_it_says_so(name, tables):
    """Over all pairs and triples of partitions of five items; where it is no metric, some triple shows it."""
    table, is_symmetric = tables[name], "a=" not in name
    np.testing.assert_allclose(np.diag(table), 0.0, atol=1e-15)
    apart = table[~np.eye(len(FIVE), dtype=bool)].min()
    assert apart > 0.005 if name != "nmi(min)" else apart == 0.0  # 0 where one refines the other
    gap = np.abs(table - table.T).max()
    assert gap < 1e-14 if is_symmetric else gap > 0.01
    detour = np.min(table[:, :, np.newaxis] + table[np.newaxis], axis=1)
    violated = np.any(table > detour + 1e-12) or not is_symmetric
    assert CASES[name][0].metric != violated


def test_names_of_clusters_do_not_matter():
    one, other = [3, 3, 1, 0, 1, 7], [0, 1, 1, 0, 2, 2]
    renamed = ["b", "b", "z", "a", "z", "c"], [9.0, 4.0, 4.0, 9.0, 5.0, 5.0]
    for name, (loss, _) in CASES.items():
        assert pc.partition_loss(one, other, loss=loss) == pc.partition_loss(*renamed, loss=loss), name


@pytest.mark.parametrize("n", [2, 4, 5])
def test_upper_bounds_hold(n):
    partitions = np.array(list(reference.partitions(n)))
    for name, (loss, _) in CASES.items():
        formula = re.sub(r"(?<=\d) (?=[(l])", " * ", loss.upper.replace("log2 n", "log2(n)"))
        upper = eval(formula, {"n": n, "log2": np.log2})
        largest = loss_matrix(partitions, as_partition_draws(partitions), loss).max()
        assert upper / 2 < largest <= upper + 1e-12, name


@given(pair=label_pairs())
def test_scikit_learn_agrees(pair):
    assert 1 - pc.partition_loss(*pair, loss="one_minus_ari") == pytest.approx(adjusted_rand_score(*pair), abs=1e-12)
    if not reference.same(*pair) and len(set(pair[0])) > 1 and len(set(pair[1])) > 1:
        for mean in reference.MEANS:
            score = normalized_mutual_info_score(*pair, average_method=mean)
            assert 1 - pc.partition_loss(*pair, loss=pc.losses.nmi(mean)) == pytest.approx(score, abs=1e-12)


@given(pair=label_pairs())
def test_misclassification_distance(pair):
    distance = pc.losses.misclassification_distance(*pair)
    assert distance == pytest.approx(reference.misclassification(*pair), abs=1e-12)


def test_bad_partitions():
    cases = [
        (([0, 1], [0, 1, 1]), ValueError, "2 and 3"),
        (([0, -1], [0, 1]), ValueError, "negative"),
        (([0, np.nan], [0, 1]), ValueError, "NaN"),
        (([0, 0.5], [0, 1]), ValueError, "integers"),
    ]
    of_two = [(([], []), ValueError, "vector"), (([[0, 1]], [0, 1]), ValueError, "vector")]
    for function in (pc.partition_loss, pc.losses.misclassification_distance):
        check_all(lambda pair, function=function: function(*pair), cases)
    check_all(lambda pair: pc.losses.misclassification_distance(*pair), of_two)
    check(pc.partition_loss, [0, 1], ValueError, ["got shape (2,). This is a single partition"])


def test_costs_lie_between_zero_and_two_and_thresholds_between_zero_and_one():
    for factory in (pc.binder, pc.vi):
        wrong = [(a, ValueError, "`a`", "between 0 and 2") for a in (0, 2, -1, np.nan, np.inf)]
        check_all(factory, [*wrong, ("1", TypeError, "`a`", "a number")])
    wrong = [(tau, ValueError, "`tau`", "between 0 and 1") for tau in (0, 1, -0.1, np.nan, 2)]
    check_all(
        lambda tau: pc.binder(tau=tau), [*wrong, *((tau, TypeError, "`tau`", "a number") for tau in ("auto", True))]
    )
    check_all(lambda tau: pc.binder(1, tau=tau), [(0.5, ValueError, "`a` and `tau`", "a = 2 (1 - tau)", "got a=1")])


@given(pair=label_pairs(), tau=st.sampled_from([0.05, 0.246, 0.5, 0.9]))
def test_a_pair_threshold_is_one_less_half_the_cost(tau, pair):
    loss = pc.binder(tau=tau)
    assert pc.partition_loss(*pair, loss=loss) == pytest.approx(reference.binder(*pair, 2 * (1 - tau)), abs=1e-12)
    assert loss.name == pc.binder(2 * (1 - tau)).name and loss.metric == (tau == 0.5)


def test_unknown_losses():
    cases = [
        ("dahl", ValueError, "'vi', 'binder'", "got 'dahl'"),
        (pc.vi, TypeError, "a name or a PartitionLoss"),
    ]
    check_all(lambda loss: pc.partition_loss([0], [0], loss=loss), cases)
    check_all(pc.losses.nmi, [("mean", ValueError, "'geometric'", "got 'mean'")])


def judged(draws, partition, loss=None):
    """Names of the losses under which every function that takes a partition judges it."""
    used = [
        pc.certify(draws, partition, loss=loss, progressbar=False).loss,
        pc.credible_ball(draws, partition, loss=loss).loss,
        pc.diagnose(draws, partition, loss=loss).loss,
        pc.compare_partitions(draws, [partition, draws.labels[0]], loss=loss).loss,
    ]
    names = {one.name for one in used} | {pc.expected_loss(draws, partition, loss=loss).attrs["loss"]}
    zeros = [0] * draws.n_items
    plain = getattr(partition, "labels", partition)
    value = pc.partition_loss(partition, zeros, loss=loss)
    same = [name for name in ("vi", "binder", "nvi") if value == pc.partition_loss(np.asarray(plain), zeros, loss=name)]
    return names | set(same)


@pytest.mark.parametrize("loss", ["binder", "nvi"])  # another than the default
def test_a_result_is_judged_by_its_own_loss_everywhere(loss):
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 20, 6, 3, 0.4))
    best = pc.consensus_partition(draws, loss=loss, random_seed=1)
    summary = pc.summarize(draws, loss=loss, random_seed=1, modes=False)
    assert judged(draws, best) == judged(draws, summary) == {loss}
    assert judged(draws, best, "binder") == judged(draws, best.labels.values, "binder") == {"binder"}
    for labels in (best.labels, best.labels.values, best.labels.assign_attrs(loss="binder")):
        assert judged(draws, labels) == {"vi"}


def test_results_of_two_losses_need_one_that_is_named():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 40, 8, 3, 0.4))
    one, other = (pc.consensus_partition(draws, loss=loss, random_seed=1) for loss in ("vi", "binder"))
    for call in (
        lambda loss=None: pc.compare_partitions(draws, {"one": one, "other": other}, loss=loss),
        lambda loss=None: pc.expected_loss(draws, [one, other], loss=loss),
        lambda loss=None: pc.partition_loss(one, other, loss=loss),
    ):
        with pytest.raises(ValueError, match="`loss` must be given.*got 'binder', 'vi'"):
            call()
        call("vi")


def test_the_path_varies_vi_unless_told():
    draws = noisy_draws(np.random.default_rng(1), 20, 6, 3, 0.4)
    assert pc.loss_path(draws, values=[0.5, 1.5], method="best_draw").loss.name == "vi"


def test_a_loss_is_added_by_its_factory_and_a_line(monkeypatch):
    """All else asks the loss: found by its name, searched for, stored with its parameter and made again."""

    def cubes(n_items):
        x = np.arange(n_items + 1, dtype=float)
        return x**3 - x

    def triples(times=1.0):
        name = "triples" if times == 1.0 else f"triples(times={times})"
        terms = {"A": -2 * times, "B": times, "C": times}
        return pc.losses.PartitionLoss(name, "B + C - 2 A", cubes, terms, parameters={"times": times})

    def own_size(sizes, links):
        return sizes

    def value(sizes, links, sums):
        return sizes.mean(axis=-1)

    def mean_size():
        return PairLoss("mean_size", "mean of s", value, own_size)

    monkeypatch.setitem(pc.LOSSES, "triples", triples)
    monkeypatch.setitem(PAIR_LOSSES, "mean_size", mean_size)
    draws = noisy_draws(np.random.default_rng(1), 20, 6, 3, 0.4)
    one, twice, small = (
        pc.consensus_partition(draws, loss=x, random_seed=1) for x in ("triples", triples(2.0), "mean_size")
    )
    for best in (one, twice, small):
        assert pc.results.ConsensusPartition.from_dataset(best.to_dataset()).loss == best.loss
        assert best.expected_loss == pytest.approx(pc.expected_loss(draws, best)["expected_loss"].item())
    assert twice.expected_loss == pytest.approx(2 * one.expected_loss)
    assert small.n_clusters == 6 and small.expected_loss == 1.0 and np.isnan(small.mcse)
    assert pc.partition_loss([0, 0, 1], [0, 0, 0], loss="triples") == 24.0 - 6.0
    with pytest.raises(ValueError, match="'triples'; got 'mean_size', a PairLoss"):
        pc.partition_loss([0, 0, 1], [0, 0, 0], loss="mean_size")


def test_a_pair_loss_without_terms_is_refused_by_greedy_search_alone():
    def value(sizes, links, sums):
        return np.mean(np.abs(links / sizes - 0.7), axis=-1)

    own = PairLoss("own", "mean of abs(l / s - 0.7)", value)
    draws = noisy_draws(np.random.default_rng(1), 20, 6, 3, 0.4)
    for function in (pc.consensus_partition, pc.loss_by_n_clusters):
        parts = ["`loss`", "'own'", "`item_terms`", "`pair_threshold`", "hierarchical"]
        check(lambda z, function=function: function(z, loss=own), draws, ValueError, parts)
    best = pc.consensus_partition(draws, loss=own, method="hierarchical")
    assert best.expected_loss == pytest.approx(pc.expected_loss(draws, best)["expected_loss"].item())


def test_losses_are_equal_to_themselves_and_can_be_pickled():
    for make in (partial(pc.binder, tau="mean"), *pc.LOSSES.values(), *PAIR_LOSSES.values()):
        assert make() == make() == pickle.loads(pickle.dumps(make()))
