"""What a summary says: bounds, citations, chains, numbers of clusters and errors, in sentences."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.summary.references import REFERENCES, bibtex
from tests.catalogue.posteriors import noisy_draws


def test_a_loose_bound_is_not_told(summary):
    loose = replace(summary, certificate=replace(summary.certificate, lower_bound=summary.consensus.expected_loss / 2))
    tight = replace(loose, certificate=replace(loose.certificate, lower_bound=summary.consensus.expected_loss * 0.96))
    assert re.search(r"more than 4\.0\d% smaller", repr(tight))
    assert "a lower bound over all partitions is" in tight.methods_text()
    for text, longer in ((repr(loose), "`certify`"), (" ".join(loose.findings()), "a longer computation")):
        assert "50.00%" not in text and "% smaller" not in text and longer in text
    assert "lower bound" not in loose.methods_text()


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_a_certificate_left_out_by_its_limit_is_told(posterior_tree, monkeypatch, loss):
    monkeypatch.setattr("posterior_consensus.runtime.sizes.LABELS_TO_BOUND", 100)
    summary = pc.summarize(posterior_tree, loss=loss, random_seed=1)
    assert summary.certificate is None
    assert summary.left_out() == ["No certificate was computed, because there are more than 100 labels."]
    again = pc.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.left_out() == summary.left_out()


@pytest.mark.parametrize("limit", ["memory", "labels"])
def test_a_search_that_proves_its_answer_is_told_so(rng, monkeypatch, limit):
    draws = noisy_draws(rng, 60, 12, 3, 0.02)
    if limit == "labels":
        monkeypatch.setattr("posterior_consensus.runtime.sizes.LABELS_TO_BOUND", 100)
    else:
        monkeypatch.setattr("posterior_consensus.bounds.certificate.certificate_within", out_of_memory)
        monkeypatch.setattr("posterior_consensus.bounds.methods.BYTES_A_PAIR", 1e9)
    summary = pc.summarize(draws, loss="binder", random_seed=1)
    assert summary.certificate is None and summary.consensus.gap == 0 and len(summary.left_out()) == 1
    assert "proven, no partition has a smaller expected loss" in repr(summary) and "searches" not in repr(summary)
    assert "No other partition has a smaller expected loss (proven)." in summary.findings()
    assert "which is proven to be the minimum" in summary.methods_text()


def out_of_memory(*_, **__):
    raise MemoryError


def test_bibtex_has_what_the_text_cites(summary):
    entries = re.findall(r"^@(article|software){(\w+),$", summary.bibtex(), re.MULTILINE)
    assert [key for _, key in entries] == list(dict.fromkeys(re.findall(r"\[(\w+)\]", summary.methods_text())))
    assert summary.bibtex().count("{") == summary.bibtex().count("}")
    assert pc.__version__ in summary.bibtex()


@pytest.mark.parametrize("name", pc.LOSSES)
def test_every_loss_is_cited_and_has_an_entry(summary, name):
    loss = pc.LOSSES[name]()
    other = replace(summary, consensus=replace(summary.consensus, loss=loss))
    assert loss.reference in other.bibtex() and loss.reference in other.methods_text()
    for key, text in REFERENCES.items():
        assert text.split(", ")[-1] in bibtex([key]) or key == "posterior_consensus"


def test_a_loss_of_one_s_own_is_cited_as_it_says(summary):
    own = replace(pc.losses.vi(), name="mine", reference="A thesis (1999)")
    text = replace(summary, consensus=replace(summary.consensus, loss=own)).methods_text()
    assert text.endswith("A thesis (1999) (the loss)") and "meila2007" not in text


def test_chains_that_disagree_are_not_reported(rng):
    one, other = np.zeros((50, 6), int), np.repeat([0, 0, 0, 1, 1, 1], 50).reshape(6, 50).T
    one[::7, 0] = other[::7, 0] = 2
    summary = pc.summarize(np.stack([one, other]), random_seed=1)
    text = summary.methods_text()
    assert summary.diagnosis.status == "disagree"
    assert text.startswith(f"These results must not be reported. {summary.diagnosis.verdict}\n")
    assert "report the partition" not in text and "\n\nThe posterior distribution" in text


def test_one_chain_is_said_to_be_one(rng):
    text = pc.summarize(noisy_draws(rng, 200, 10, 3, 0.2), random_seed=1).methods_text()
    assert "Convergence could not be assessed, because there is one chain." in text
    assert "not available" not in text and "vehtari2021" not in text
    short = pc.summarize(noisy_draws(rng, 6, 10, 3, 0.2).reshape(2, 3, 10), random_seed=1)
    assert f"Convergence could not be assessed. {short.diagnosis.verdict}" in short.methods_text()


SAID = {
    "one item": (
        [[0]],
        ["There is one cluster, of 1 item.", "is exactly this partition"],
        ["vertical bounds of 1 cluster each"],
    ),
    "one cluster": (
        [[0, 0, 0]],
        ["There is one cluster, of 3 items.", "Every item has a mean posterior"],
        ["1 cluster each"],
    ),
    "all alone": (
        [[0, 1, 2]],
        ["Each of the 3 items is a singleton."],
        ["no item has a mean posterior similarity"],
    ),
    "equal": (
        [[0, 0, 1, 1], [0, 1, 0, 1]],
        ["2 clusters of 2 items each", "have 2 clusters."],
        ["bounds of 2 clusters each"],
    ),
    "one ambiguous": (
        [[0, 0, 0, 1, 1, 1, k % 2 if k else 2] for k in range(5)],
        ["1 item has a mean posterior similarity below 0.5 to the rest of its cluster: 6."],
        ["1 item has a mean posterior similarity below 0.5"],
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_sentences_with_zero_one_and_equal_numbers(name):
    rows, findings, methods = SAID[name]
    options = {"n_clusters": 2} if name == "one ambiguous" else {}
    summary = pc.summarize(np.repeat(rows, 30, axis=0), loss="binder", random_seed=1, **options)
    said, text = " ".join(summary.findings()), summary.methods_text()
    for part in findings:
        assert part in said
    for part in methods:
        assert part in text
    for wrong in ("0 item", "1 items", "1 clusters", "1 and 1", "2 and 2", "`", "in less than half", ", ..."):
        assert wrong not in said + text and (wrong == "`" or wrong not in repr(summary).split("\n\n")[0])


def test_an_error_that_rests_on_few_changes_of_mode_is_called_rough():
    """One chain that changes mode four times: about ten effective draws, whose error is often much too small."""
    rng = np.random.default_rng(1)
    at_first = np.repeat([True, False, True, False, True], [90, 50, 120, 60, 80])[:, np.newaxis]
    draws = np.where(at_first, np.repeat([0, 1, 2, 3], 5), np.tile([0, 1, 2, 3], 5))
    draws = np.where(rng.random(draws.shape) < 0.02, rng.integers(4, size=draws.shape), draws)
    summary = pc.summarize(draws, random_seed=1)
    ess = float(pc.expected_loss(draws, summary)["ess"])
    assert ess == summary.consensus.ess < 20
    assert f"rough: {ess:.3g} effective draws" in repr(summary) and f"rough: {ess:.3g}" in repr(summary.consensus)
    assert any("is rough, because its effective sample size" in sentence for sentence in summary.findings())
    assert f"rough because of an effective sample size of {ess:.3g}" in summary.methods_text()
    for found in (pc.compare_partitions(draws, [draws[0], draws[-1]]), pc.cluster_merges(draws, draws[0])):
        assert "rough: as few as" in repr(found)
    assert "rough: " in repr(pc.partial_partition(draws, 0.4, random_seed=1))
    mixed = draws[rng.permutation(400)]
    assert "rough" not in repr(pc.summarize(mixed, random_seed=1)) + " ".join(
        pc.summarize(mixed, random_seed=1).findings()
    )


def test_long_times_are_whole_seconds(summary):
    assert "  time         123 s" in repr(replace(summary, seconds={"consensus": 100.0, "items": 23.2}))


def four_each_time(rng):
    """Draws of four clusters, of which the last is an item that changes, so that VI's optimum has three."""
    labels = np.tile(np.repeat([0, 1, 2], 8), (200, 1))
    labels[np.arange(200), rng.integers(24, size=200)] = 3
    return labels.reshape(2, 100, 24)


def test_a_number_of_clusters_that_no_draw_has(rng):
    draws = four_each_time(rng)
    summary = pc.summarize(draws, random_seed=1)
    best = pc.consensus_partition(draws, n_clusters=4, random_seed=1)
    assert summary.consensus.n_clusters == 3 and summary.alternative.n_clusters == 4
    assert summary.alternative.expected_loss == pytest.approx(best.expected_loss)
    more = best.expected_loss / summary.consensus.expected_loss - 1
    said = " ".join(summary.findings())
    assert "3, is in no draw; the most probable number is 4 (100%)" in said
    assert f"{more:.1%} larger." in said
    assert "4 in 90% of the posterior; 3 in no draw" in repr(summary)
    assert "(posterior probability of that number 0)" in summary.methods_text()
    assert_array_equal(summary.to_dataset()["alternative_labels"], summary.alternative.labels)
    asked = pc.summarize(draws, n_clusters=3, random_seed=1)
    assert asked.alternative is None and "most probable number" not in " ".join(asked.findings())


def test_a_number_of_clusters_that_draws_have_is_not_spoken_of(summary):
    assert summary.alternative is None and "most probable number" not in " ".join(summary.findings())
