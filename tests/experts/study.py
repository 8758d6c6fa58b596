"""A study with two views of three clusters each, whose experts err in a known share of their statements."""

import numpy as np
import pandas as pd

ACCURACY = (0.95, 0.9, 0.85, 0.8, 0.75)


def features(rng, n_items=150, n_noise=2):
    """Three groups in two coordinates, three others in two more, and noise: features, first and second truth."""
    corners = 3.0 * np.column_stack([np.cos([0.5, 2.6, 4.7]), np.sin([0.5, 2.6, 4.7])])
    one, other = np.arange(n_items) % 3, rng.permutation(np.arange(n_items) % 3)
    values = rng.normal(size=(n_items, 4 + n_noise))
    values[:, :2] += corners[one]
    values[:, 2:4] += corners[other]
    return values, one, other


def statements(truths, accuracies, number, rng):
    """A table of so many statements of each expert, half must-links; exactly the given share of either is right."""
    n_items = len(truths[0])
    i, j = np.triu_indices(n_items, 1)
    rows = []
    for expert, (truth, accuracy) in enumerate(zip(truths, accuracies, strict=True)):
        together = truth[i] == truth[j]
        for kind, wrong, where in (("must", "cannot", together), ("cannot", "must", ~together)):
            pairs = rng.choice(np.flatnonzero(where), number // 2, replace=False)
            said = np.full(pairs.size, kind, object)
            said[: round((1 - accuracy) * pairs.size)] = wrong
            rows.append(pd.DataFrame({"expert": f"e{expert}", "i": i[pairs], "j": j[pairs], "kind": said}))
    return pd.concat(rows, ignore_index=True)
