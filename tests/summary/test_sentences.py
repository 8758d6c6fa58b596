"""What a summary says: bounds, citations, chains, numbers of clusters and errors, in approved sentences."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.summary import steps
from posterior_consensus.summary.references import key_of
from posterior_consensus.summary.steps import _SEED as SEED
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, recovered


def of(draws, **options):
    return pc.summarize(draws, **options, random_seed=1, progressbar=False)


def of_tree(**options):
    return of(recovered(np.random.default_rng(20180614)), **options)


def noisy(*size, shape=None):
    draws = noisy_draws(np.random.default_rng(20180614), *size)
    return draws if shape is None else draws.reshape(shape)


def two_chains_apart():
    chains = np.zeros((2, 50, 6), int)
    chains[1, :, 3:] = 1
    chains[:, ::7, 0] = 2
    return chains


def many(rows, **options):
    return of(np.repeat(rows, 30, axis=0), loss="binder", **options)


UNCERTAIN = [[0, 0, 0, 1, 1, 1, k % 2 if k else 2] for k in range(5)]
SAID = {
    "vi of probabilities": of_tree,
    "binder of probabilities": lambda: of_tree(loss="binder"),
    "adjusted Rand index, which is no metric": lambda: of_tree(loss="one_minus_ari"),
    "2 clusters asked for": lambda: of_tree(n_clusters=2),
    "at most 2 clusters asked for": lambda: of_tree(max_clusters=2),
    "a ball of 99.5%": lambda: of(noisy(60, 12, 3, 0.4), prob=0.995),
    "chains that disagree": lambda: of(two_chains_apart()),
    "one chain": lambda: of(noisy(200, 10, 3, 0.2)),
    "short chains": lambda: of(noisy(6, 10, 3, 0.2, shape=(2, 3, 10))),
    "few draws": lambda: of([[0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]),
    "one draw of one item": lambda: of([[0]]),
    "one item": lambda: many([[0]]),
    "one cluster": lambda: many([[0, 0, 0]]),
    "all alone": lambda: many([[0, 1, 2]]),
    "equal": lambda: many([[0, 0, 1, 1], [0, 1, 0, 1]]),
    "one uncertain item": lambda: many(UNCERTAIN, n_clusters=2),
    **{f"degenerate: {name}": lambda draws=draws: of(draws) for name, draws in DEGENERATE.items()},
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name, told):
    told(name, SAID[name]())


def test_bounds_are_rounded_up_and_a_loose_one_is_not_told(summary, told):
    for name, share in (("a loose bound", 0.5), ("a tight bound", 0.96), ("a bound that is all but reached", 0.999999)):
        bound = share * summary.partition.expected_loss
        told(name, replace(summary, certificate=replace(summary.certificate, lower_bound=bound)))


def test_the_loss_printed_is_no_smaller_than_its_bound(summary):
    best = replace(summary.partition, expected_loss=0.8137, mcse=0.09)  # 0.81, to one digit of its error
    said = replace(summary, partition=best, certificate=replace(summary.certificate, lower_bound=0.8126))
    texts = repr(said), said.methods_text(), " ".join(said.findings())
    assert all("0.814 bits" in text and "0.812 bits" in text for text in texts)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_a_certificate_left_out_by_its_limit_is_told(monkeypatch, told, loss):
    monkeypatch.setattr("posterior_consensus.runtime.memory.LABELS_TO_BOUND", 100)
    summary = of_tree(loss=loss)
    assert summary.certificate is None and len(summary.left_out()) == 1
    told(f"{loss} without a certificate", summary)
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.left_out() == summary.left_out()


@pytest.mark.parametrize("limit", ["memory", "labels"])
def test_a_search_that_proves_its_answer_is_told_so(monkeypatch, told, limit):
    def out_of_memory(*_, **__):
        raise MemoryError

    if limit == "labels":
        monkeypatch.setattr("posterior_consensus.runtime.memory.LABELS_TO_BOUND", 100)
    else:
        monkeypatch.setattr("posterior_consensus.bounds.certificate.certificate_within", out_of_memory)
        monkeypatch.setattr("posterior_consensus.bounds.certificate.BYTES_A_PAIR", 1e9)
    summary = of(noisy(60, 12, 3, 0.02), loss="binder")
    assert summary.certificate is None and summary.partition.optimality_gap == 0
    told(f"proven by the search, no certificate for want of {limit}", summary)


def test_items_are_named_by_membership_also_those_on_their_own(summary):
    names = summary.items.similarity.to_series().index

    def said(membership, **fields):
        of = summary.items.membership.copy()
        of[:] = 0.9
        of[: len(membership)] = membership
        fields |= {"membership": of, "misplaced": float((1 - of).sum()), "misplaced_mcse": 0.1}
        changed = replace(summary, items=replace(summary.items, **fields))
        line = re.search(r"uncertain items +(.*?)\n  \S", repr(changed), re.DOTALL)[1]
        finding = next(one for one in changed.findings() if "outside their cluster, on average" in one)
        return re.sub(r"\s+", " ", line), finding, changed.methods_text()

    alone = summary.items.similarity.copy()
    alone[:2] = np.nan
    line, finding, methods = said([0.4, 0.3], similarity=alone)
    total = 0.6 + 0.7 + 0.1 * (len(names) - 2)
    assert line.startswith(f"{total:.2f} (MCSE 0.1") and f"membership below 0.5: items {names[1]}, {names[0]}" in line
    assert f"below 0.5 for 2 items: {names[1]}, {names[0]}." in finding
    first, doubt = finding.rpartition(":")[0].split(" Membership")
    assert first in methods and f"Membership, the probability of each item's own cluster,{doubt}" in methods
    assert names[1] not in methods
    line, finding, _ = said([0.5])
    assert "below 0.5: none" in line and "below 0.5 for no item." in finding
    line, finding, _ = said([0.4])
    assert f"below 0.5: item {names[0]}" in line and f"below 0.5 for 1 item: {names[0]}." in finding


def test_without_memberships_the_items_looked_at_are_named(summary):
    similarity = summary.items.similarity.copy()
    similarity[:], similarity[:3] = 0.9, [0.4, np.nan, 0.2]
    names = similarity.to_series().index
    without = replace(summary, items=replace(summary.items, similarity=similarity, membership=None, misplaced=np.nan))
    text = re.sub(r"\s+", " ", repr(without))
    assert f"mean posterior similarity below 0.5: items {names[2]}, {names[0]}; 1 item on its own not looked at" in text


def test_bibtex_has_what_the_text_cites(summary, approved):
    entries = re.findall(r"^@(article|software){(\w+),$", summary.bibtex(), re.MULTILINE)
    sentences, references = summary.methods_text().split("\n\n")
    cited = list(dict.fromkeys(re.findall(r"\[(\w+)\]", sentences)))
    assert [key for _, key in entries] == cited == re.findall(r"\[(\w+)\]", references)
    approved("methods", "references", references.replace(pc.__version__, "VERSION"))
    assert summary.bibtex().count("{") == summary.bibtex().count("}")
    assert pc.__version__ in summary.bibtex() and pc.__version__ in sentences and pc.__version__ in references


def test_every_loss_is_cited_and_has_an_entry(summary):
    own = replace(pc.losses.vi(), name="mine", reference="A thesis (1999)")
    for loss in (*(factory() for factory in pc.LOSSES.values()), own):
        other = replace(summary, partition=replace(summary.partition, loss=loss))
        assert loss is own or f"{{{key_of(loss.reference)},\n" in other.bibtex(), (
            f"{loss.name} is not in references.bib"
        )
        assert loss.reference in other.methods_text()
    assert other.methods_text().endswith("A thesis (1999) (the loss)") and "meila2007" not in other.methods_text()


def test_chains_that_disagree_have_no_single_mode_to_report(summary):
    assert "search for modes on" in summary.methods_text()
    apart = replace(summary, diagnosis=replace(summary.diagnosis, status="disagree"))
    assert "search for groups on" not in apart.methods_text()


def test_an_error_that_rests_on_few_changes_of_mode_is_called_rough(told):
    """One chain that changes mode four times: about ten effective draws, whose error is often much too small."""
    rng = np.random.default_rng(1)
    at_first = np.repeat([True, False, True, False, True], [90, 50, 120, 60, 80])[:, np.newaxis]
    draws = np.where(at_first, np.repeat([0, 1, 2, 3], 5), np.tile([0, 1, 2, 3], 5))
    draws = np.where(rng.random(draws.shape) < 0.02, rng.integers(4, size=draws.shape), draws)
    summary = of(draws)
    ess = float(pc.expected_loss(draws, summary)["ess"])
    assert ess == summary.partition.ess < 20 and f"rough: {ess:.3g}" in repr(summary.partition)
    told("a rough error", summary)
    for found in (pc.compare_partitions(draws, [draws[0], draws[-1]]), pc.cluster_merges(draws, draws[0])):
        assert "rough: as few as" in repr(found)
    assert "rough: " in repr(pc.partial_partition(draws, 0.2, random_seed=1))
    mixed = of(draws[rng.permutation(400)])
    assert "rough" not in " ".join([repr(mixed), *mixed.findings()])


def test_a_partition_that_depends_on_the_sampled_labels(told):
    """An item between two clusters, which goes with the one that more of the sampled labels give it."""
    probability = np.repeat(np.eye(2), [5, 6], axis=0)
    probability[5] = 0.5
    draws = pc.as_allocation_probabilities(np.tile(probability, (400, 1, 1)))
    assert of(draws, loss="binder").resampled is None
    for seed in range(20):  # until the other labels give another answer
        summary = of(pc.as_allocation_probabilities(draws.probabilities, random_seed=seed))
        sentences = [one for one in summary.findings() if "labels sampled" in one]
        best = pc.consensus_partition(summary.draws.sample(random_seed=SEED), random_seed=1)
        assert_array_equal(summary.resampled.labels, best.labels)
        one, other = pc.expected_loss(summary.draws, [summary.labels, best.labels])["expected_loss"].values
        if one < other:
            break
        if np.array_equal(best.labels, summary.labels):
            assert sentences == []
        else:  # as many of the labels here are on either side
            assert "is the same" in sentences[0]
    assert "1 item changes clusters" in sentences[0] and sentences[0] in summary.methods_text()
    assert f"{100 * (other / one - 1):.2g}% larger" in sentences[0]
    told("labels sampled from probabilities", summary)
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.findings() == summary.findings()
    cut = replace(summary, resampled=None, cut=("labels sampled anew",))
    assert "no time was left" in cut.left_out()[-1] and "labels sampled anew" in cut.left_out()[-1]


def test_a_number_of_clusters_that_no_draw_has(rng, told, monkeypatch):
    """Draws of four clusters, of which the last is an item that changes, so that VI's optimum has three."""
    labels = np.tile(np.repeat([0, 1, 2], 8), (200, 1))
    labels[np.arange(200), rng.integers(24, size=200)] = 3
    draws = labels.reshape(2, 100, 24)
    summary, best = of(draws), pc.consensus_partition(draws, n_clusters=4, random_seed=1)
    assert summary.partition.n_clusters == 3 and summary.alternative.n_clusters == 4
    assert summary.alternative.expected_loss == pytest.approx(best.expected_loss)
    told("a number of clusters of no draw", summary)
    assert f"{best.expected_loss / summary.partition.expected_loss - 1:.1%} larger." in " ".join(summary.findings())
    assert_array_equal(summary.to_dataset()["alternative_labels"], summary.alternative.labels)
    assert of(draws, n_clusters=3).alternative is None
    kinds = summary.alternative.info.kinds
    assert "given" in kinds and "unconstrained" not in kinds  # the consensus is not searched for again
    monkeypatch.setattr("posterior_consensus.summary.steps._LITTLE", 0)
    large = of(draws, n_perturbations=5)
    assert summary.alternative.info.n_perturbations > large.alternative.info.n_perturbations == 5
    late = replace(summary, alternative=None, cut=("alternative",))  # no time was left to compare the two
    for text in (str(late), " ".join(late.findings()), late.methods_text()):
        assert re.search("in no draw|that no draw has", text) and "81.4%" not in text
    for stopped, why in (("seconds", "until the time limit"), ("interrupted", "until Ctrl-C")):
        info = replace(summary.alternative.info, stopped=stopped)
        (sentence,) = replace(summary, alternative=replace(summary.alternative, info=info)).left_out()
        assert "most probable number" in sentence and why in sentence


def interrupted(monkeypatch):
    """Let the first search of a summary end by Ctrl-C."""

    def search(*given, **options):
        found = consensus_partition(*given, **options)
        return replace(found, info=replace(found.info, stopped="interrupted"))

    monkeypatch.setattr(steps, "consensus_partition", search)


@pytest.mark.filterwarnings("ignore:The search was interrupted")
def test_after_an_interrupted_search_later_steps_are_left_out(rng, monkeypatch):
    labels = noisy_draws(rng, 200, 20, 4, 0.3).reshape(2, 100, 20)
    whole = pc.summarize(labels, random_seed=1, progressbar=False)
    interrupted(monkeypatch)
    cut = pc.summarize(labels, random_seed=1, progressbar=False)
    assert not {"certificate", "halves", "modes"} & set(whole.cut)
    assert {"certificate", "halves", "modes"} <= set(cut.cut) and not {"halves", "modes"} & set(cut.seconds)
    assert cut.certificate is None and cut.excess is None and cut.modes is None
    said = " ".join(cut.left_out())
    assert said.count("because a search was interrupted") == 3 and "no time was left" not in f"{said} {cut}"
    assert cut.ball.radius > 0 and cut.items is not None and cut.diagnosis is not None


@pytest.mark.filterwarnings("ignore:The search was interrupted")
def test_after_an_interrupted_search_layers_are_not_compared(rng, monkeypatch):
    labels = noisy_draws(rng, 60, 20, 4, 0.3)
    interrupted(monkeypatch)
    cut = pc.summarize(pc.as_layers({"a": labels, "b": labels[::-1]}), random_seed=1, progressbar=False)
    assert cut.comparison is None and {"comparison", "diagnosis"} <= set(cut.cut)
    assert "The layers were not compared, because a search was interrupted." in cut.left_out()
    assert all("modes" in one.cut for one in cut.values())
