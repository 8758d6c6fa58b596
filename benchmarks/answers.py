"""Our answers less other programs': losses of partitions, best losses found, credible balls, similarity matrices.

By default on the posterior in tests/golden. A folder POSTERIORS has golden.json, the entries of tests/golden/dpmm.json
for each of its posteriors.
"""

import json

import numpy as np

import posterior_consensus as pc
from benchmarks._data import FOLDER, GOLDEN, posteriors


def tables(smallest):
    yield "", _rows(smallest)


def _rows(smallest):
    everything = FOLDER / "golden.json"
    known = json.loads((everything if everything.exists() else GOLDEN / "dpmm.json").read_text(encoding="utf-8"))
    labels = posteriors()
    for name, answers in (known if everything.exists() else {"dpmm": known}).items():
        draws = pc.as_partition_draws(labels[name])
        exact = _matrix_is_exact(labels[name], pc.posterior_similarity_matrix(draws).values)
        for loss, answer in answers.items():
            theirs = answer.get("loss", answer.get("expected_loss"))
            ours = float(pc.expected_loss(draws, answer["labels"], loss=loss)["expected_loss"])
            method = "hierarchical" if smallest else "greedy"
            found = pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False)
            ball, theirs_ball = pc.credible_ball(draws, answer["labels"], loss=loss), answer["credible_ball"]
            differences = [
                ball.radius - theirs_ball["radius"],
                float(ball.upper_vertical["distance"][0]) - theirs_ball["upper_vertical"],
                float(ball.lower_vertical["distance"][0]) - theirs_ball["lower_vertical"],
            ]
            yield {
                "posterior": name,
                "loss": loss,
                "their best": f"{theirs:.15g}",
                "its loss as we compute it, difference": ours - theirs,
                "our best, difference": found.expected_loss - theirs,
                "credible ball, difference": max(differences, key=abs),
                "matrix exact": exact,
            }


def _matrix_is_exact(labels, matrix):
    """Whether every entry is the number of draws that have two items together, divided once."""
    return all(np.array_equal(matrix[i], np.mean(labels == labels[:, [i]], axis=0)) for i in range(labels.shape[1]))
