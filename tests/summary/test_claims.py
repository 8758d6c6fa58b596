"""What a summary claims holds, in every text, whatever items and layers are called."""

import html
from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.answers.modes import FEWEST
from posterior_consensus.kernels import components
from posterior_consensus.results import display
from posterior_consensus.summary import claims
from posterior_consensus.summary.report.page import coded
from tests import reference
from tests.helpers import keeps, random_scored_pairs

QUIET = {"n_starts": 1, "modes": False, "random_seed": 1, "progressbar": False}


def texts(found):
    return [" ".join(repr(found).split()), *found.findings(), found.methods_text()]


def apart(name):
    """Layers of two chains that disagree, with this name of their dimension, of layers and of items."""
    labels = np.random.default_rng(1).integers(2, size=(2, 2, 40, 6))
    labels[:, 1, :, :3] = 0
    coords = {"one": [f"{name} {k}" for k in range(6)]}
    layers = [pc.as_partition_draws(xr.DataArray(one, coords, ("chain", "draw", "one"), "z")) for one in labels]
    return pc.as_layers({f"{name} {k}": one for k, one in enumerate(layers)}, layer_dim=name)


@pytest.fixture(scope="module")
def plain():
    """Texts of layers, and of one of them, under a name that means nothing."""
    return [texts(pc.summarize(one, **QUIET)) for one in (apart("Zzzz"), apart("Zzzz")["Zzzz 0"])]


@pytest.mark.parametrize("name", ["Sample", "Run", "noise", "draw", "chain"])
def test_no_sentence_is_left_out_for_a_name(plain, name):
    for expected, source in zip(plain, (apart(name), apart(name)[f"{name} 0"]), strict=True):
        assert "disagree" in expected[-1]
        assert texts(pc.summarize(source, **QUIET)) == [text.replace("Zzzz", name) for text in expected]


def draws_of(rng, share=0.3):
    """Two chains of draws of six items, of which a share of the labels is random."""
    labels = np.tile([0, 0, 0, 1, 1, 2], (2, 60, 1))
    return np.where(rng.random(labels.shape) < share, rng.integers(3, size=labels.shape), labels)


def two_groups(rng):
    """Draws that are one or the other of two partitions."""
    first = rng.random((2, 100, 1)) < 0.6
    return np.where(first, [0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 1, 1])


def soft(rng):
    """Allocation probabilities of draws, and the similarities that they have."""
    probabilities = rng.dirichlet([0.3, 0.3, 0.3], (2, 40, 5))
    flat = probabilities.reshape(-1, 5, 3)
    return probabilities, np.einsum("tik,tjk->ij", flat, flat) / len(flat)


def flat(draws):
    return np.reshape(draws, (-1, np.shape(draws)[-1]))


def weights_of(draws):
    return np.random.default_rng(5).random(len(flat(draws)))


# What is summarized, and the expected loss that a partition of it has.
KINDS = {
    "chains": lambda rng: (z := draws_of(rng), {}, lambda p: reference.expected(p, flat(z), reference.vi)),
    "Binder": lambda rng: (
        z := draws_of(rng, 0.6),
        {"loss": "binder"},
        lambda p: reference.expected(p, flat(z), reference.binder),
    ),
    "at most two clusters": lambda rng: (
        z := draws_of(rng),
        {"max_clusters": 2},
        lambda p: reference.expected(p, flat(z), reference.vi),
    ),
    "two groups": lambda rng: (z := two_groups(rng), {}, lambda p: reference.expected(p, flat(z), reference.vi)),
    "weights": lambda rng: (
        z := draws_of(rng),
        {"weights": weights_of(z)},
        lambda p: reference.expected(p, flat(z), reference.vi, weights_of(z)),
    ),
    "runs": lambda rng: (
        pc.as_runs(list(z := flat(draws_of(rng)))),
        {},
        lambda p: reference.expected(p, z, reference.vi),
    ),
    "probabilities": lambda rng: (
        pc.as_allocation_probabilities((found := soft(rng))[0]),
        {"loss": "binder"},
        lambda p: reference.binder_of_pairs(p, found[1]),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def told(request):
    """A summary, the expected loss of any partition by enumeration, and the printed lines, findings and methods."""
    data, options, loss = KINDS[request.param](np.random.default_rng(3))
    summary = pc.summarize(data, random_seed=1, progressbar=False, **options)
    return summary, loss, " ".join(repr(summary).split()), " ".join(summary.findings()), summary.methods_text()


def test_a_minimum_that_is_proven_or_bounded_is_that_of_all_partitions(told):
    summary, loss, *registers = told
    best, bound = summary.partition, summary.lower_bound
    least = min(map(loss, reference.partitions(summary.labels.size)))
    assert best.expected_loss == pytest.approx(loss(summary.labels.values))
    claim = claims.optimality(best, bound, "", "")
    assert claim.number <= least + 1e-9 and claim.partitions == ""
    assert claim.error == pytest.approx(1 - claim.number / best.expected_loss, abs=1e-9)
    are_proven = [" has a smaller " in text or "is proven to be" in text for text in registers]
    if claim.status == claims.PROVEN:
        assert best.expected_loss == pytest.approx(least) and all(are_proven)
    else:
        said = f"at least {display.with_unit(display.at_least(claim.number, '.3g'), best.loss.unit)} ("
        assert not any(are_proven) and all(said in text for text in registers)


def test_groups_are_said_with_their_shares_or_with_the_share_that_is_seen(told):
    summary, _, *registers = told
    claim, found, z = claims.groups(summary), summary.modes, summary.draws
    if claim.status == claims.CONTRADICTED:
        name = found.loss.name.partition("(")[0]
        apart = [[getattr(reference, name)(p, draw) for p in found.partitions.values] for draw in z.labels]
        shares = np.bincount(np.argmin(np.round(apart, 9), axis=1), z.weights)
        assert claim.number == len(shares) and found.weights.values == pytest.approx(shares)
        shares = found.weights.values  # without the error of another sum
        assert all(display.percent(share) in text for share in shares for text in registers[:2])
        assert all(f"{share:.2g}" in registers[2] for share in shares)
    elif claim.status == claims.ESTIMATED:
        assert claim.number == found.n_particles == 1 and claim.limit >= FEWEST / z.samples.effective_draws - 1e-12
        seen = display.at_most(max(claim.limit, 0.02), ".0%")
        assert f"above {seen} (all {z.n_draws} {z.words.draws} searched)" in registers[0]
        assert all(f"below {seen} of the" in text and f"all {z.n_draws}" in text for text in registers[1:])
    else:
        assert claim.scope in registers[0] and "found no second" not in " ".join(registers)


def test_chains_differ_by_as_much_as_is_said(told):
    summary, _, *registers = told
    claim, diagnosis = claims.chains(summary.diagnosis), summary.diagnosis
    assert (claim.status == claims.CONTRADICTED) == (diagnosis.status == "disagree")
    if diagnosis.spread is not None:
        assert claim.status == claims.NOT_ASSESSED
        return
    if summary.draws.counted_draws is not None:
        # Weights are ignored, as the verdict says.
        each = [reference.similarity(summary.draws.labels[rows]) for rows in summary.draws.samples.chains]
        assert claim.number == pytest.approx(np.abs(each[0] - each[1]).max())
    assert f"a pair {claim.number:.2f}" in registers[2]
    if diagnosis.status == "agree":
        limit, size = display.at_most(claim.limit, ".0%"), display.at_most(claim.number, ".2f")
        assert f"similarities within {size}; one could miss a mode below {limit}" in registers[0]
        assert f"differ by at most {size} between" in registers[1]
        assert all(
            f"below about {limit} of the draws" in text for text in registers[1].lower().split("\n") + registers[2:]
        )


def test_as_many_items_are_misplaced_as_is_said(told):
    summary, _, *registers = told
    claim, z = claims.misplaced(summary.items), summary.draws
    if z.counted_draws is not None:
        labels = summary.labels.values
        numbers = [labels.size * reference.misclassification(labels, draw) for draw in z.labels]
        assert claim.number == pytest.approx(np.average(numbers, weights=z.weights))
    shown = display.rounded(claim.number, claim.error)[0]
    assert claim.number == 0 or all(f"{shown} (" in text for text in registers)


def scores_of(pairs):
    """Score of every two records, and whether they have one."""
    scores, scored = np.full((6, 6), pairs.unscored), np.zeros((6, 6), bool)
    for i in range(6):
        row = pairs.scored[[i], :]
        scores[i, row.indices], scored[i, row.indices] = row.data, True
    return scores, scored


def binder_of_scores(labels, scores, tau):
    """Binder's loss with its threshold, expected under the scores."""
    together = np.equal.outer(labels, labels)
    cost = np.where(together, tau * (1 - scores), (1 - tau) * scores)
    return 4 / 36 * np.triu(cost, 1).sum()


@pytest.mark.parametrize("most", [components.MOST, 2])
@pytest.mark.parametrize("seed", range(10))
def test_claims_on_scored_pairs_hold_among_the_partitions_that_keep_the_constraints(seed, most, monkeypatch):
    """Six records are a large component, which is bounded, if those of more than two are."""
    monkeypatch.setattr(components, "MOST", most)
    pairs, tau = random_scored_pairs(np.random.default_rng(seed), 6)
    summary = pc.summarize(pairs, loss=pc.binder(tau=tau), random_seed=1, progressbar=False)
    every = np.array(list(reference.partitions(6)))
    every = every[keeps(every, pairs.constraints)]
    scores, scored = scores_of(pairs)
    losses = np.array([binder_of_scores(labels, scores, tau) for labels in every])
    best = summary.partition
    claim = claims.optimality(best, best.lower_bound, "", "")
    loss = binder_of_scores(summary.labels.values, scores, tau)
    is_proven, is_constrained = claim.status == claims.PROVEN, bool(pairs.constraints)
    assert best.expected_loss == pytest.approx(loss) and claim.number <= losses.min() + 1e-9
    assert loss == pytest.approx(losses.min()) if is_proven else most == 2
    assert bool(claim.partitions) == is_constrained
    together = np.equal.outer(summary.labels.values, summary.labels.values)
    within = scored | np.equal.outer(*[summary.component.values] * 2)  # the scope of these numbers
    errors = [np.triu(one * within, 1).sum() for one in ((1 - scores) * together, scores * ~together)]
    assert summary.links.expected_errors == pytest.approx(errors)
    registers = " ".join(repr(summary).split()), " ".join(summary.findings()), summary.methods_text()
    certificate = repr(pc.certify(summary, progressbar=False))
    for text in (*registers, " ".join(repr(best).split()), " ".join(certificate.split())):
        said = "keep the constraints" in text or "keeps the constraints" in text
        assert said == is_constrained and ("not proven" in text) <= (not is_proven)
    for text in registers:
        assert ("has a smaller" in text or "is proven to be" in text) == is_proven
        assert f"{sum(errors):.3g}" in text and all(f"{error:.3g} " in text for error in errors)
    for row in summary.links.review().query("exact").itertuples():
        flipped = every[(every[:, row.first] == every[:, row.second]) != row.joined]
        rise = min(binder_of_scores(labels, scores, tau) for labels in flipped) - loss
        assert row.increase / 18 == pytest.approx(rise, abs=1e-9)


def test_layers_claim_of_their_chains_what_holds_of_each(rng):
    """Layers whose chains agree: the largest share of a mode that a chain may miss, the smallest sample size."""
    labels = np.arange(7) % 3 + np.zeros((4, 300, 2, 1), int)
    labels = np.where(rng.random(labels.shape) < [[0.1], [0.2]], rng.integers(3, size=labels.shape), labels)
    summary = pc.summarize(pc.as_layers({name: labels[:, :, k] for k, name in enumerate("ab")}), **QUIET)
    diagnoses = [summary.diagnosis, *(one.diagnosis for one in summary.values())]
    claim = claims.chains(*diagnoses)
    each = [reference.similarity(labels[c, :, k]) for k in range(2) for c in range(4)]
    differences = [
        np.abs(each[4 * k + a] - each[4 * k + b]).max() for k in range(2) for a, b in combinations(range(4), 2)
    ]
    own = claims.chains(*diagnoses[1:])
    assert own.number == pytest.approx(max(differences)) and claim.number >= own.number
    assert claim.status == claims.ESTIMATED and summary.diagnosis.status == "agree"
    limit = display.at_most(max(one.could_miss for one in diagnoses), ".0%")
    assert claim.limit == max(one.could_miss for one in diagnoses)
    assert all(
        f" below {limit} of the draws" in text.replace("about ", "")
        for text in texts(summary)[:1] + texts(summary)[-2:]
    )


@pytest.mark.parametrize("kind", ["chains", "pairs"])
def test_a_report_has_every_finding_and_the_text_for_a_paper(kind, tmp_path):
    rng = np.random.default_rng(3)
    source = draws_of(rng) if kind == "chains" else random_scored_pairs(rng, 6)[0]
    summary = pc.summarize(source, random_seed=1, progressbar=False)
    page = summary.to_html(tmp_path / "report.html", progressbar=False).read_text(encoding="utf-8")
    assert all(coded(text) in page for text in summary.findings()) and html.escape(summary.methods_text()) in page
