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
from posterior_consensus.results.display import coded
from posterior_consensus.summary import about_draws, about_pairs, claims
from tests import reference
from tests.helpers import keeps, random_scored_pairs

QUIET = {"n_starts": 1, "modes": False, "random_seed": 1, "progressbar": False}


def texts(found):
    above, _, _ = repr(found).partition("\n\n")  # the table has as many columns as fit beside the names
    return [" ".join(above.split()), *found.findings(), found.methods_text()]


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


@pytest.mark.parametrize("name", ["labels", "labels `a`", "from_labels", "a`b"])
def test_a_source_is_printed_under_its_name(name):
    draws = xr.Dataset({name: (("chain", "draw", "item"), np.tile([0, 0, 1], (2, 10, 1)))})
    summary = pc.summarize(draws, name, **QUIET)
    assert summary.source == f"labels `{name}`" and f"20 from 2 chains ({name})" in repr(summary)
    assert repr(pc.results.Summary.from_dataset(summary.to_dataset(), draws, name)) == repr(summary)
    layers = pc.as_layers(dict.fromkeys(range(2), summary.draws), layer_dim="labels")
    assert "20 from 2 chains (labels 0)" in repr(pc.summarize(layers, **QUIET)[0])


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
    """A summary, its claims, the expected loss of any partition by enumeration, and its texts."""
    data, options, loss = KINDS[request.param](np.random.default_rng(3))
    summary = pc.summarize(data, random_seed=1, progressbar=False, **options)
    registers = " ".join(repr(summary).split()), " ".join(summary.findings()), summary.methods_text()
    return summary, about_draws.claims_of(summary), loss, *registers


def test_each_claim_is_in_the_print_the_findings_and_the_text_for_a_paper(told):
    _, said, _, printed, findings, methods = told
    for claim in said.values():
        assert f"{claim.name} {' '.join(claim.line.split())}" in " ".join(printed.split()) or not claim.line
        assert all(sentence in findings for sentence in claim.with_advice) and claim.methods in methods


@pytest.mark.parametrize("kind", ["draws", "scored pairs"])
def test_a_new_claim_appears_in_every_text(kind, monkeypatch, tmp_path):
    """A claim that is added to the topics, and to nothing else."""

    def fifteen(*_):
        return claims.Claim("pairs", "15 of them", ["There are 15 pairs."], "There were 15 pairs.", "Count them.")

    rng, topics = np.random.default_rng(3), about_draws if kind == "draws" else about_pairs
    source = draws_of(rng) if kind == "draws" else random_scored_pairs(rng, 6)[0]
    monkeypatch.setattr(topics, "_TOPICS", (*topics._TOPICS, fifteen))
    summary = pc.summarize(source, random_seed=1, progressbar=False)
    assert "pairs " in repr(summary) and "15 of them" in repr(summary)
    assert "There are 15 pairs. Count them." in summary.findings()
    assert "There were 15 pairs." in summary.methods_text() and "Count them" not in summary.methods_text()
    page = summary.to_html(tmp_path / "report.html", progressbar=False).read_text(encoding="utf-8")
    assert "There are 15 pairs. Count them." in page and "There were 15 pairs." in page
    assert "There are 15 pairs." in (summary.to_csv(tmp_path) / "findings.txt").read_text(encoding="utf-8")


def test_an_expected_loss_is_the_mean_over_the_draws(told):
    summary, said, loss, *registers = told
    claim, unit = said["expected_loss"], summary.loss.unit
    assert claim.number == pytest.approx(loss(summary.labels.values)) and claim.status == claims.ESTIMATED
    value = display.with_unit(display.rounded(claim.number, claim.error)[0], unit)
    assert all(f"{value}" in text for text in registers)


def test_an_interval_of_the_number_of_clusters_has_the_share_that_is_said(told):
    summary, said, _, printed, findings, methods = told
    claim, z = said["number"], summary.draws
    numbers = [len(set(draw)) for draw in z.labels]
    (low, high), weights = np.quantile(numbers, [0.05, 0.95], method="inverted_cdf", weights=z.weights), z.weights
    share = weights[[low <= number <= high for number in numbers]].sum()
    assert claim.number == pytest.approx(share) and claim.status == claims.ESTIMATED
    shown = f"{low} to {high}" if low < high else f"{low} in"
    assert f"{z.words.draws} {shown}" in printed
    assert all(f"{shown}" in text and display.percent(share) in text for text in (findings, methods))
    own = weights[[number == summary.n_clusters for number in numbers]].sum()
    is_told = own < 0.05 and summary.partition.cluster_limits.max_clusters is None
    assert said["improbable_number"].number == pytest.approx(own if is_told else np.nan, nan_ok=True)


def test_a_ball_has_the_share_of_the_draws_that_is_said(told):
    summary, said, _, printed, findings, methods = told
    claim, ball, z = said["ball"], summary.ball, summary.draws
    distance = getattr(reference, ball.loss.name.partition("(")[0])
    apart = np.array([distance(summary.labels.values, draw) for draw in z.labels])
    assert claim.number == pytest.approx(z.weights[apart <= claim.limit + 1e-9].sum()) and claim.number >= ball.prob
    assert z.weights[apart < claim.limit - 1e-9].sum() < ball.prob  # no smaller one has
    shown = display.rounded(100 * claim.number, 100 * claim.error)[0]
    shown = f"{100 * claim.number:.4g}" if float(shown) == 100 else shown
    radius = display.quantity(claim.limit, ball.loss.unit, 3)
    assert f"radius {radius}" in printed
    assert all(f"{shown}% of the" in text for text in (findings, methods))
    assert all(radius in text or claim.limit == 0 for text in (findings, methods))


def test_a_minimum_that_is_proven_or_bounded_is_that_of_all_partitions(told):
    summary, said, loss, *registers = told
    best = summary.partition
    least = min(map(loss, reference.partitions(summary.labels.size)))
    assert best.expected_loss == pytest.approx(loss(summary.labels.values))
    claim = said["optimality"]
    assert claim.number <= least + 1e-9 and claim.partitions == ""
    assert claim.error == pytest.approx(1 - claim.number / best.expected_loss, abs=1e-9)
    are_proven = [" has a smaller " in text or "is proven to be" in text for text in registers]
    if claim.status == claims.PROVEN:
        assert best.expected_loss == pytest.approx(least) and all(are_proven)
    else:
        shown = f"at least {display.with_unit(display.at_least(claim.number, '.3g'), best.loss.unit)} ("
        assert not any(are_proven) and all(shown in text for text in registers)


def test_groups_are_said_with_their_shares_or_with_the_share_that_is_seen(told):
    summary, said, _, *registers = told
    claim, found, z = said["groups"], summary.modes, summary.draws
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
        least = z.words.either(f"found above {seen}", f"below {seen} of the runs may be missed")
        assert f"{least} (all {z.n_draws} {z.words.draws} searched)" in registers[0]
        assert all(f"below {seen} of the" in text and f"all {z.n_draws}" in text for text in registers[1:])
    else:
        assert claim.scope in registers[0] and "found no second" not in " ".join(registers)


def test_chains_differ_by_as_much_as_is_said(told):
    summary, said, _, *registers = told
    claim, diagnosis = said["chains"], summary.diagnosis
    assert (claim.status == claims.CONTRADICTED) == (diagnosis.status == "disagree")
    if diagnosis.spread is not None:
        assert claim.status == claims.NOT_ASSESSED
        return
    if summary.draws.counted_draws is not None:
        # Weights are ignored, as the verdict says.
        each = [reference.similarity(summary.draws.labels[rows]) for rows in summary.draws.samples.chains]
        assert claim.number == pytest.approx(np.abs(each[0] - each[1]).max())
    assert f"a pair differed by at most {display.at_most(claim.number, '.2f')}" in registers[2]
    if diagnosis.status == "agree":
        limit, size = display.at_most(claim.limit, ".0%"), display.at_most(claim.number, ".2f")
        assert f"similarities of chains within {size}; not seen if one misses a mode below {limit}" in registers[0]
        assert f"differ by at most {size} between" in registers[1]
        assert all(
            f"below about {limit} of the draws" in text for text in registers[1].lower().split("\n") + registers[2:]
        )


def test_as_many_items_are_misplaced_as_is_said(told):
    summary, said, _, *registers = told
    claim, z = said["misplaced"], summary.draws
    if z.counted_draws is not None:
        labels = summary.labels.values
        numbers = [labels.size * reference.misclassification(labels, draw) for draw in z.labels]
        assert claim.number == pytest.approx(np.average(numbers, weights=z.weights))
    shown = display.rounded(claim.number, claim.error)[0]
    assert claim.number == 0 or all(f"{shown} (" in text for text in registers)


def test_clusters_are_found_one_or_split_in_as_many_draws_as_is_said(told):
    summary, said, _, *registers = told
    z, members = summary.draws, [np.flatnonzero(summary.labels.values == k) for k in range(summary.n_clusters)]
    counts = [[np.bincount(draw[own], minlength=6) for own in members] for draw in z.labels]
    sizes = [[np.bincount(draw, minlength=6) + own.size for own in members] for draw in z.labels]
    counts, either = np.array(counts), np.array(sizes) - counts
    found = z.weights @ (counts / either > 0.75).any(axis=2)
    assert said["found"].number == pytest.approx(found.min())
    assert all("found in" in text for text in registers)
    half = counts > np.array([[own.size / 2] for own in members])
    one = {(j, k): z.weights @ (half[:, j] & half[:, k]).any(axis=1) for j, k in combinations(range(len(members)), 2)}
    largest = max(one.values(), default=0.0)
    parts = z.weights @ (counts.max(axis=2) <= 0.75 * np.array([own.size for own in members]))
    for topic, number, words in (("joined", largest, "are one"), ("split", parts.max(), " split")):
        claim = said[topic]
        is_said = number > claim.limit == 0.1
        assert claim.number == pytest.approx(number if is_said else np.nan, nan_ok=True)
        shown = f"in {display.percent(claim.number)} of the" if is_said else words
        assert all((words in text and shown in text) == is_said for text in registers[: 3 if topic == "joined" else 2])


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
    said = about_pairs.claims_of(summary)
    claim = said["optimality"]
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
        is_kept = "keep the constraints" in text or "keeps the constraints" in text
        assert is_kept == is_constrained and ("not proven" in text) <= (not is_proven)
    for text in registers:
        assert ("has a smaller" in text or "is proven to be" in text) == is_proven
        assert f"{sum(errors):.3g}" in text and all(f"{error:.3g} " in text for error in errors)
    _check_links(summary, said, scores, scored, within, registers)
    for row in summary.links.review().itertuples():
        flipped = every[(every[:, row.first] == every[:, row.second]) != row.joined]
        rise = min(binder_of_scores(labels, scores, tau) for labels in flipped) - loss
        assert rise <= row.increase / 18 + 1e-9 and (
            not row.exact or row.increase / 18 == pytest.approx(rise, abs=1e-9)
        )


def _check_links(summary, said, scores, scored, within, registers):
    """Claims on single pairs: the loss, precision and recall, pairs against their score, and the closest call."""
    together = np.triu(np.equal.outer(summary.labels.values, summary.labels.values), 1)
    assert said["expected_loss"].number == summary.partition.expected_loss
    assert said["unscored"].number == 15 - np.triu(scored, 1).sum() and said["clusters"].number == summary.n_clusters
    against = np.where(together, scores < summary.tau, scores > summary.tau) & scored
    assert said["against"].number == np.triu(against, 1).sum()
    if together.any():
        matches = (scores * within)[np.triu_indices(6, 1)].sum()
        right = (scores * together).sum()
        assert said["precision"].number == pytest.approx(right / together.sum())
        assert all(f"{right / together.sum():.3g}" in text and f"{right / matches:.3g}" in text for text in registers)
    if said["review"].name:
        first = summary.links.review(1).iloc[0]
        assert said["review"].number == first["increase"] and (said["review"].status == claims.PROVEN) == first["exact"]
        call = f"{first['first']} and {first['second']}, {'joined' if first['joined'] else 'separated'} with a score of"
        assert all(call in text for text in registers[:2])
        size = abs(first["increase"])
        shown = f"{size:.2g}" if first["exact"] else f"at most {display.at_most(size, '.2g')}"
        if first["increase"] > 1e-9:
            assert f"would add {shown} expected wrong pair" in registers[1]


def test_layers_claim_of_their_chains_what_holds_of_each(rng):
    """Layers whose chains agree: the largest share of a mode that a chain may miss, the smallest sample size."""
    labels = np.arange(7) % 3 + np.zeros((4, 300, 2, 1), int)
    labels = np.where(rng.random(labels.shape) < [[0.1], [0.2]], rng.integers(3, size=labels.shape), labels)
    summary = pc.summarize(pc.as_layers({name: labels[:, :, k] for k, name in enumerate("ab")}), **QUIET)
    diagnoses = [summary.diagnosis, *(one.diagnosis for one in summary.values())]
    claim = about_draws.agreement(*diagnoses)
    each = [reference.similarity(labels[c, :, k]) for k in range(2) for c in range(4)]
    differences = [
        np.abs(each[4 * k + a] - each[4 * k + b]).max() for k in range(2) for a, b in combinations(range(4), 2)
    ]
    own = about_draws.agreement(*diagnoses[1:])
    assert own.number == pytest.approx(max(differences)) and claim.number >= own.number
    assert claim.status == claims.ESTIMATED and summary.diagnosis.status == "agree"
    limit = display.at_most(max(one.could_miss for one in diagnoses), ".0%")
    assert claim.limit == max(one.could_miss for one in diagnoses)
    printed, *_, findings, methods = texts(summary)
    assert f"not seen if one misses a mode below {limit}" in printed
    assert all(f" below about {limit} of the draws" in text for text in (findings, methods))


@pytest.mark.parametrize("kind", ["chains", "pairs"])
def test_a_report_has_every_finding_and_the_text_for_a_paper(kind, still, tmp_path):
    rng = np.random.default_rng(3)
    source = draws_of(rng) if kind == "chains" else random_scored_pairs(rng, 6)[0]
    summary = pc.summarize(source, random_seed=1, progressbar=False)
    page = summary.to_html(tmp_path / "report.html", progressbar=False).read_text(encoding="utf-8")
    assert all(coded(text) in page for text in summary.findings()) and html.escape(summary.methods_text()) in page
