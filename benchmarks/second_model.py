"""A difference between clusters in data that the clustering has not seen: of reported labels, of draws, corrected.

Two normal clusters of 200 items are `apart` standard deviations of each. Labels are drawn from their posterior given
the true parameters, 500 times. Outcomes have mean 0 in the first cluster, 1 in the second, and standard deviation 1.
The correction is that of Bolck, Croon and Hagenaars (2004), https://doi.org/10.1093/pan/mph001: each item's reported
cluster is weighted by the inverse of the matrix of misclassification probabilities.
"""

import numpy as np
from scipy import stats

APART = (1.0, 2.0, 3.0, 4.0)
N_ITEMS, N_DRAWS, N_SETS = 200, 500, 500


def tables(smallest):
    n_sets, cases = (4, APART[:1]) if smallest else (N_SETS, APART)
    yield "", (_row(apart, n_sets) for apart in cases)


def _row(apart, n_sets):
    found = np.array([_estimates(np.random.default_rng(seed), apart) for seed in range(n_sets)])
    (labels, labels_error, draws, draws_error, corrected), wrong = found[:, :5].T, found[:, 5]
    return {
        "apart": apart,
        "reported wrongly": f"{wrong.mean():.0%}",
        "reported labels": f"{labels.mean():.2f}",
        "interval of labels holds 1": f"{np.mean(np.abs(labels - 1) < 1.96 * labels_error):.0%}",
        "draws pooled": f"{draws.mean():.2f}",
        "of draws": f"{np.mean(np.abs(draws - 1) < 1.96 * draws_error):.0%}",
        "corrected": f"{corrected.mean():.2f}",
        "its root mean square error": f"{np.sqrt(np.mean((corrected - 1) ** 2)):.2f}",
    }


def _estimates(rng, apart):
    truth = rng.random(N_ITEMS) < 0.5
    x, y = rng.normal(apart * truth), rng.normal(1.0 * truth)
    second = 1 / (1 + np.exp(stats.norm.logpdf(x) - stats.norm.logpdf(x, apart)))
    reported = second > 0.5
    fits = np.array([_difference(y, labels) for labels in rng.random((N_DRAWS, N_ITEMS)) < second])
    pooled = fits[:, 0].mean(), np.sqrt(fits[:, 1].mean() + (1 + 1 / N_DRAWS) * fits[:, 0].var(ddof=1))
    one, variance = _difference(y, reported)
    chance = np.stack([1 - second, second])
    assigned = np.stack([~reported, reported]).astype(float)
    classified = chance @ assigned.T / chance.sum(axis=1, keepdims=True)  # of a true cluster, as which it is reported
    weights = np.linalg.inv(classified).T @ assigned
    low, high = weights @ y / weights.sum(axis=1)
    return one, np.sqrt(variance), *pooled, high - low, np.mean(reported != truth)


def _difference(y, labels):
    """Difference of two means and its variance."""
    groups = y[~labels], y[labels]
    return groups[1].mean() - groups[0].mean(), sum(group.var(ddof=1) / group.size for group in groups)
