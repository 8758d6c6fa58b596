"""Methods of linkage programs in examples/linkage.py, and the records and scores of examples/score_persons.py."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from tests.helpers import example
from tests.reference import canonical

DATA = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
N_RECORDS = 24


@pytest.fixture
def scored():
    """Half of all pairs, with distinct scores."""
    rng = np.random.default_rng(4)
    left, right = np.triu_indices(N_RECORDS, 1)
    kept = rng.random(left.size) < 0.5
    return left[kept], right[kept], rng.permutation(np.linspace(0, 0.8, left.size))[kept]


def test_average_linkage_by_component_is_that_of_the_whole(scored):
    left, right, probability = scored
    distances = np.ones((N_RECORDS, N_RECORDS))
    distances[left, right] = distances[right, left] = 1 - probability
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances), "average")
    for threshold in (0.3, 0.6, 0.7):
        found = example("linkage").average_linkage(N_RECORDS, *scored, threshold)
        assert list(canonical(found)) == list(canonical(fcluster(tree, 1 - threshold, "distance")))


def test_best_links_join_each_record_with_its_best_partner(scored):
    left, right, probability = scored
    similarity = np.zeros((N_RECORDS, N_RECORDS))
    similarity[left, right] = similarity[right, left] = probability
    labels = np.arange(N_RECORDS)
    for record, partner in enumerate(similarity.argmax(axis=1)):
        if similarity[record, partner] >= 0.7:
            labels[labels == labels[record]] = labels[partner]
    assert list(canonical(example("linkage").best_links(N_RECORDS, *scored, 0.7))) == list(canonical(labels))


def test_one_to_one_links_join_clusters_that_are_each_others_best(scored):
    data_set = np.random.default_rng(5).integers(4, size=N_RECORDS)
    left, right, probability = scored
    labels, joins = np.arange(N_RECORDS), True
    while joins:  # as splink's rounds do
        links = [
            (score, *sorted((labels[one], labels[other])))
            for one, other, score in zip(left, right, probability, strict=True)
            if score >= 0.3 and not set(data_set[labels == labels[one]]) & set(data_set[labels == labels[other]])
        ]
        best = {end: max(link for link in links if end in link[1:]) for link in links for end in link[1:]}
        joins = {link for link in links if best[link[1]] == best[link[2]] == link}
        for _, one, other in joins:
            labels[labels == other] = one
    assert 4 < np.unique(labels).size < N_RECORDS
    found = example("linkage").one_to_one_links(data_set, *scored, 0.3)
    assert list(canonical(found)) == list(canonical(labels))


@pytest.mark.slow
def test_records_and_scores_are_those_of_the_script(tmp_path):
    example("score_persons").main(tmp_path)
    persons, pairs = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("persons", "pairs"))
    pd.testing.assert_frame_equal(persons, pd.read_csv(DATA / "persons.csv"))
    pd.testing.assert_frame_equal(pairs, pd.read_csv(DATA / "pairs.csv"))
