"""Our answers less other programs': losses of partitions, best losses found, credible balls, similarity matrices.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz and a golden.json with the entries of tests/golden/dpmm.json for each.
"""

import json
import os
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"


def main() -> None:
    """Print one row per posterior and loss."""
    smallest = is_smallest()
    rows = []
    for name, labels, answers in _posteriors():
        draws = pc.as_partition_draws(labels)
        exact = _matrix_is_exact(labels, pc.posterior_similarity_matrix(draws).values)
        for loss, answer in answers.items():
            theirs = answer.get("loss", answer.get("expected_loss"))
            ours = float(pc.expected_loss(draws, answer["labels"], loss=loss)["expected_loss"])
            found = pc.consensus_partition(
                draws, loss=loss, method="hierarchical" if smallest else "greedy", random_seed=1, progressbar=False
            )
            ball, theirs_ball = pc.credible_ball(draws, answer["labels"], loss=loss), answer["credible_ball"]
            gaps = [
                ball.radius - theirs_ball["radius"],
                float(ball.upper_vertical["distance"][0]) - theirs_ball["upper_vertical"],
                float(ball.lower_vertical["distance"][0]) - theirs_ball["lower_vertical"],
            ]
            rows.append(
                [name, loss, f"{theirs:.15g}", ours - theirs, found.expected_loss - theirs, max(gaps, key=abs), exact]
            )
    header = ["posterior", "loss", "their best", "the same, by us", "our best", "credible ball", "matrix exact"]
    print_table([header[0], header[1], header[2], *(f"{title}, difference" for title in header[3:6]), header[6]], rows)


def _posteriors():
    folder = os.environ.get("POSTERIORS")
    if folder is None:
        yield "dpmm", np.load(GOLDEN / "dpmm_draws.npz")["labels"], json.loads((GOLDEN / "dpmm.json").read_text())
        return
    for name, answers in json.loads((Path(folder) / "golden.json").read_text()).items():
        yield name, np.load(Path(folder) / f"{name}_draws.npz")["labels"], answers


def _matrix_is_exact(labels: np.ndarray, matrix: np.ndarray) -> bool:
    """Whether every entry is the number of draws that have two items together, divided once."""
    return all(
        np.array_equal(matrix[i], np.mean(labels == labels[:, i : i + 1], axis=0)) for i in range(labels.shape[1])
    )


if __name__ == "__main__":
    main()
