"""Every kind of posterior answers every question as its similarity matrix does, which `tests/reference.py` computes.

A new kind is a line in KINDS: a function of a size in SIZES, and of the name of the items' dimension, that makes a
posterior and the matrix that it should have. `labels_of` has the labels of each size, `names_of` names of items.
"""

import re
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import posterior_consensus as pc
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import canonical_labels, canonical_with_noise
from posterior_consensus.ensemble.samples import RunSamples
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.ensemble.similarity import similarity_errors
from posterior_consensus.runtime import memory
from tests import reference

HOSTILE = ["noise", "draw", "chain", "Sample", "Run", "elsewhere", "sample", "item", "0"]  # names of items, and of them
SIZES = {"some": (12, 9), "one item": (12, 1), "one draw": (1, 9), "one cluster": (12, 9)}  # draws, items
DIMS = ("draw", "Sample", "noise", "chain")


def names_of(n, dim):
    return xr.Coordinates({dim: np.array(HOSTILE[:n])})


def labels_of(size):
    n_draws, n_items = SIZES[size]
    rng = np.random.default_rng(n_items)
    labels = rng.integers(1 if size == "one cluster" else 4, size=(n_draws, n_items))
    labels[:, n_items // 2] = labels[:, 0]  # two items that are together in every draw
    return labels


def array(labels, dim):
    return xr.DataArray(labels[np.newaxis], dims=("chain_", "draw_", dim), coords=names_of(labels.shape[1], dim))


def draws(size, dim, weights=None):
    given = array(labels_of(size), dim).rename(chain_="a", draw_="b")
    labels = pc.as_partition_draws(given, sample_dims=("a", "b"), weights=weights)
    return labels, reference.similarity(labels_of(size), weights)


def weighted(make):
    """Of the same kind, with a weight for each draw, many of which are zero."""

    def made(size, dim):
        weights = np.random.default_rng(3).exponential(size=SIZES[size][0])
        weights[1::3] = 0.0
        return make(size, dim, weights)

    return made


def soft(size, dim, weights=None):
    n_draws, n_items = SIZES[size]
    p = np.random.default_rng(4).dirichlet(np.full(1 if size == "one cluster" else 3, 0.5), (n_draws, n_items))
    given = xr.DataArray(p, dims=("b", dim, "k"), coords=names_of(n_items, dim))
    matrix = np.average(np.einsum("tik,tjk->tij", p, p), axis=0, weights=weights)
    np.fill_diagonal(matrix, 1.0)
    dims = {"sample_dims": ("b",), "item_dim": dim, "component_dim": "k"}
    return pc.as_allocation_probabilities(given, weights=weights, **dims), matrix


def runs(size, dim, weights=None):
    found, matrix = draws(size, dim, weights)
    return pc.as_runs(found), matrix


def soft_runs(size, dim, weights=None):
    found, matrix = soft(size, dim, weights)
    return replace(found, samples=RunSamples(found.samples.chain, found.samples.draw, found.weights)), matrix


def noisy(size, dim, weights=None):
    labels = labels_of(size)
    noise = np.random.default_rng(5).random(labels.shape) < (0.3 if labels.shape[1] > 1 else 0.0)
    noise[0, 0] = labels.shape != (1, 1)
    items = Items(labels.shape[1], dim, names_of(labels.shape[1], dim))
    coded = ArrayLabels(*canonical_with_noise(np.where(noise, 0, labels + 1).astype(np.uint8), 6))
    together = (labels[:, :, np.newaxis] == labels[:, np.newaxis]) & ~noise[:, :, np.newaxis] & ~noise[:, np.newaxis]
    matrix = np.average(together, axis=0, weights=weights)
    np.fill_diagonal(matrix, 1.0)
    samples = pc.as_partition_draws(pc.as_runs(labels), weights=weights).samples
    return NoisyRuns.of_codes(coded, samples, items), matrix


def labels_with_missing(size):
    labels = np.tile(labels_of(size), (2, 1)).astype(float)
    labels[0, 0] = np.nan
    return labels


def incomplete(size, dim):
    labels = labels_with_missing(size)
    held = ~np.isnan(labels)
    together = labels[:, :, np.newaxis] == labels[:, np.newaxis]
    matrix = together.sum(axis=0) / (held.T.astype(int) @ held)
    given = xr.DataArray(labels, dims=("b", dim), coords=names_of(labels.shape[1], dim))
    return pc.as_runs(given, axis="b", missing=np.nan), matrix


def matrix_alone(size, dim):
    found, matrix = draws(size, dim)
    return pc.as_pair_similarity(pc.posterior_similarity_matrix(found)), matrix


def scored(unscored):
    def made(size, dim):
        n, rng = SIZES[size][1], np.random.default_rng(6)
        is_scored = np.triu(rng.random((n, n)) < 0.4, 1)
        values = rng.random((n, n)).round(2)
        if n > 2:
            values[1, 2], is_scored[1, 2], values[0, n - 1], is_scored[0, n - 1] = 1.0, True, 0.0, True
        both = is_scored | is_scored.T
        values = np.triu(values, 1) + np.triu(values, 1).T
        matrix = np.where(both, values, unscored)
        np.fill_diagonal(matrix, 1.0)
        row, column = np.nonzero(both)
        table = sparse.coo_array((values[row, column], (row, column)), (n, n)).tocsr()
        return ScoredPairs(Items(n, dim, names_of(n, dim)), table, unscored), matrix

    return made


KINDS = {
    "labels": draws,
    "weighted labels": weighted(draws),
    "allocation probabilities": soft,
    "runs": runs,
    "runs of allocation probabilities": soft_runs,
    "runs with noise": noisy,
    "weighted probabilities": weighted(soft),
    "weighted runs": weighted(runs),
    "weighted runs of probabilities": weighted(soft_runs),
    "weighted runs with noise": weighted(noisy),
    "runs with missing items": incomplete,
    "matrix": matrix_alone,
    "scored pairs": scored(0.0),
    "scored pairs, others likely": scored(0.7),
    "scored pairs, others certain": scored(1.0),
}


LACKING = {"runs with missing items": labels_with_missing}  # labels of each size, NaN for items that a run lacks


def links_of(kind, size, matrix, labels):
    """Sums of each item's similarities to the other members of each cluster, by the matrix.

    Of runs that lack items, the share of co-memberships among meetings with the other members, times their number.
    """
    members = np.eye(labels.max() + 1)[labels]
    others = members.sum(axis=0) - members
    if kind not in LACKING:
        return (matrix - np.eye(labels.size)) @ members
    return others * reference.shares_of_meetings(LACKING[kind](size), labels)


def binder_on_common(runs, labels, a=1.0):
    """Mean loss of the items that a run has, over runs that have some."""
    loss = reference.on_common(partial(reference.binder, a=a))
    return np.mean([loss(labels, run) for run in runs if (run >= 0).any()])


@cache
def posterior(kind, size):
    return KINDS[kind](size, DIMS[(list(KINDS).index(kind) + list(SIZES).index(size)) % len(DIMS)])


def of_every_kind(test):
    """Ask every kind, in all sizes."""

    @pytest.mark.parametrize("kind", KINDS)
    def asked(kind):
        for size in SIZES:
            try:
                test(kind, size)
            except BaseException as failure:
                failure.add_note(f"of {kind}, {size}")
                raise

    asked.__doc__ = test.__doc__
    return asked


close = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(params=["memory", "little memory"])
def budget(request, monkeypatch):
    """Steps that go by parts do so for a few items."""
    if request.param == "little memory":
        monkeypatch.setattr(memory, "parts", lambda n, _: [slice(k, min(n, k + 4)) for k in range(0, n, 4)])
    return request.param


def partitions(n):
    rng = np.random.default_rng(n)
    return np.array([canonical_labels(rng.integers(0, k, n)) for k in (1, 2, 3, 5, 40)])


@pytest.mark.usefixtures("budget")
@of_every_kind
def test_the_matrix_its_rows_and_products(kind, size):
    source, matrix = posterior(kind, size)
    n = source.n_items
    assert_allclose(source.similarity(), matrix, **close)
    assert_allclose(source.shared_similarity, matrix, **close)
    assert_allclose(np.concatenate([rows for _, rows in source.row_blocks()]), matrix, **close)
    assert_allclose([source.row(i) for i in range(n)], matrix, **close)
    columns = np.random.default_rng(1).normal(size=(n, 2))
    assert_allclose(source.product(columns), matrix @ columns, **close)
    pairs = matrix[~np.eye(n, dtype=bool)]
    assert source.mean_similarity == pytest.approx(pairs.mean() if n > 1 else 0.5, abs=1e-12)
    assert_allclose(PairSimilarity.of(source).values, matrix, **close)
    assert PairSimilarity.of(source).words is source.words


@of_every_kind
def test_sums_over_clusters(kind, size):
    source, matrix = posterior(kind, size)
    several = partitions(source.n_items)
    own, total = source.sums(several)
    assert_allclose(total, matrix.sum(axis=1), **close)
    for row, labels in zip(own, several, strict=True):
        together = labels[:, np.newaxis] == labels
        assert_allclose(row, (matrix * together).sum(axis=1), **close)
        links, divisor = source.links(labels)
        expected = links_of(kind, size, matrix, labels)
        assert_allclose(links / divisor, expected, **close)
        blocks = list(source.map_links(labels, lambda links, own, divisor: links / divisor))
        assert_allclose(np.concatenate([block for _, block in blocks]), expected, **close)
    for loss in (pc.losses.binder(), pc.losses.binder(tau=0.2)):
        a = loss.numerator["B"], loss.numerator["C"]
        together = several[:, :, np.newaxis] == several[:, np.newaxis]
        cost = np.where(together, a[0] * (1 - matrix), a[1] * matrix) * ~np.eye(source.n_items, dtype=bool)
        expected = loss.scale(source.n_items) * cost.sum(axis=(1, 2)) / 2
        if kind in LACKING:
            expected = [binder_on_common(LACKING[kind](size), one, a=a[1]) for one in several]
        assert_allclose(mean_loss(source, several, loss), expected, **close)


@pytest.mark.usefixtures("budget")
@of_every_kind
def test_pairs_and_the_nearest_items(kind, size):
    source, matrix = posterior(kind, size)
    n = source.n_items
    for threshold in (0.0, 0.3, 0.7, 0.9999):
        found = np.zeros((n, n))
        for first, second, values in source.pairs_above(threshold):
            assert np.all(first < second)
            found[first, second] = values
        assert_allclose(found, np.triu(np.where(matrix > threshold, matrix, 0.0), 1), **close)
    for number in (1, n - 1) if n > 1 else ():
        nearest, values = source.nearest(number)
        assert_allclose(np.sort(values), np.sort(np.where(np.eye(n), -1.0, matrix))[:, -number:], **close)
        assert_allclose(np.take_along_axis(matrix, nearest, axis=1), values, **close)
        assert not np.any(nearest == np.arange(n)[:, np.newaxis])


@of_every_kind
def test_own_and_nearest_clusters(kind, size):
    source, matrix = posterior(kind, size)
    for labels in partitions(source.n_items):
        own, nearest, other = source.own_and_nearest(labels)
        for i in range(labels.size):
            means = [reference.mean_similarity(matrix, labels, i, k) for k in range(labels.max() + 1)]
            if kind in LACKING:
                shares = reference.shares_of_meetings(LACKING[kind](size), labels)[i]
                means = [None if mean is None else share for mean, share in zip(means, shares, strict=True)]
            alone = means[labels[i]] is None
            assert np.isnan(own[i]) if alone else own[i] == pytest.approx(means[labels[i]], abs=1e-12)
            rest = [mean for k, mean in enumerate(means) if k != labels[i]]
            assert (nearest[i] == -1 and np.isnan(other[i])) if not rest else other[i] == pytest.approx(max(rest))
            assert not rest or (means[nearest[i]] == pytest.approx(max(rest), abs=1e-9) and nearest[i] != labels[i])


@of_every_kind
def test_items_that_are_always_together_share_a_group(kind, size):
    source, matrix = posterior(kind, size)
    for groups in (source.signatures(), source.certain_groups()):
        assert np.all(matrix[groups[:, np.newaxis] == groups] > 1 - 1e-9)


@of_every_kind
def test_some_items(kind, size):
    source, matrix = posterior(kind, size)
    at = np.array([5, 0, 3]) % source.n_items if source.n_items > 1 else np.array([0])
    part = source.of_items(at)
    assert type(part) is type(source) and part.items.dim == source.items.dim
    assert part.items.names.tolist() == source.items.names[at].tolist()
    assert_allclose(part.similarity(), matrix[np.ix_(at, at)], **close)


@of_every_kind
def test_draws_or_one_refusal(kind, size):
    """What came, what was asked for, and what to do instead."""
    source, _ = posterior(kind, size)
    if source.draws is not None:
        assert source.as_draws("loss 'vi'", lacking=True) is source and source.n_draws == len(source)
        assert source.usual_loss in ("vi", "ballet") and source.lacks_items == (kind in LACKING)
        assert source.lacks_items or source.as_draws() is source
        return
    assert source.n_draws is None and source.counted_draws is None and source.usual_loss == "binder"
    for what, instead in (("loss 'vi'", "loss='binder'"), ("method 'kcc'", ""), ("`links`", "")):
        assert instead in refusal(source, what)[1]


def refusal(source, what):
    """What came, and the next step."""
    with pytest.raises(ValueError, match=f"{what} needs ") as refused:
        source.as_draws(what)
    found = re.fullmatch(rf"{what} needs .+; got (.+), but no partitions\. (.+)\.", str(refused.value))
    assert found is not None, refused.value
    return found.groups()


def test_each_class_without_draws_says_in_words_of_its_own_what_came():
    sources = [posterior(kind, "some")[0] for kind in KINDS]
    came = {(type(source), refusal(source, "This")[0]) for source in sources if source.draws is None}
    for own in zip(*came, strict=True):
        assert len(set(own)) == len(came) == 2


@pytest.mark.parametrize(
    ("what", "instead"),
    [("loss 'nid'", "loss='vi'"), ("method 'kcc'", "method='greedy'"), ("`links`", "credible_ball")],
)
def test_what_needs_all_items_names_what_takes_some(what, instead):
    source, _ = posterior("runs with missing items", "some")
    with pytest.raises(ValueError, match=f"{what} needs runs that have all items; got .*{instead}"):
        source.as_draws(what)


def test_errors_of_similarities_are_those_of_the_mean_over_runs():
    """Each run is independent, whether its entries are 0 and 1 or probabilities."""
    for kind in ("runs", "runs with noise", "runs of allocation probabilities"):
        source, _ = posterior(kind, "some")
        each = np.stack([source.take(np.array([t])).similarity() for t in range(source.n_draws)], axis=-1)
        assert_allclose(similarity_errors(source), each.std(axis=-1, ddof=1) / np.sqrt(source.n_draws), **close)


@of_every_kind
def test_parts_of_the_draws(kind, size):
    source, _ = posterior(kind, size)
    if source.draws is None or source.n_draws < 8:
        return
    at = np.array([3, 0, 7])
    part, same = source.take(at), source.reordered_to(source.samples, "draws")
    assert type(part) is type(source) and part.words is source.words and same is source
    assert_array_equal(part.marked_labels() >= 0, part.in_clusters())
    assert_array_equal(part.samples.draw, source.samples.draw[at])
    weights = source.weights[at] if source.weights[at].any() else np.ones(3)
    assert_allclose(part.weights, weights / weights.sum())
    if source.lacks_items:  # whose similarities are no means over all runs
        return
    halves = [source.take(rows) for rows in (np.arange(0, 12, 2), np.arange(1, 12, 2))]
    shares = [source.weights[half].sum() for half in (slice(0, 12, 2), slice(1, 12, 2))]
    mixed = sum(share * half.similarity() for share, half in zip(shares, halves, strict=True))
    assert_allclose(mixed, source.similarity(), **close)


@of_every_kind
def test_labels_and_clusters_of_a_partition(kind, size):
    """Noise, the label -1, is a cluster of its own in runs that have noise; others refuse it."""
    source, _ = posterior(kind, size)
    labels = np.arange(source.n_items)[::-1] % 3
    assert_array_equal(source.as_labels(labels), canonical_labels(labels))
    assert_array_equal(source.clusters_of(labels).labels, canonical_labels(labels))
    labels[-1] = -1
    if not isinstance(source, NoisyRuns):
        for question in (source.as_labels, source.as_marked_labels, source.clusters_of):
            with pytest.raises(ValueError, match=f"got -1 at position {source.n_items - 1}"):
                question(labels)
        return
    found = source.clusters_of(labels)
    assert found.names[-1] == "noise" and found.labels[-1] == found.noise == len(found.names) - 1
    assert_array_equal(source.as_marked_labels(labels) < 0, labels < 0)
    assert np.count_nonzero(source.as_labels(labels) == source.as_labels(labels)[-1]) == 1


@of_every_kind
def test_a_whole_analysis(kind, size):
    """Results keep the items' dimension and names, whatever these are."""
    source, matrix = posterior(kind, size)
    best = pc.consensus_partition(source, loss="binder", random_seed=1, progressbar=False)
    assert best.labels.dims == (source.items.dim,)
    assert best.labels[source.items.dim].values.tolist() == source.items.names.tolist()
    value = partial(reference.binder_of_pairs, similarities=matrix)
    if kind in LACKING:
        value = partial(binder_on_common, LACKING[kind](size))
    assert best.expected_loss <= min(map(value, partitions(source.n_items))) + 1e-12
    assert best.expected_loss == pytest.approx(value(best.labels.values), abs=1e-12)
    items = pc.item_uncertainty(source, best)
    assert items.similarity.dims == (source.items.dim,)
    assert isinstance(source, PairSource) and str(source.items.dim) in repr(best)
