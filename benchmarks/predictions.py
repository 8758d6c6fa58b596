"""Allocation of new items beside exact values: two normal components, both means and one standard deviation unknown.

The posterior given the old data is known on a grid. Draws from it allocate new values, which weigh them; exact is the
integral over the grid. A value is reported if its weights suffice. With a stay, each draw repeats the one before with
this probability.
"""

import itertools

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

import posterior_consensus as pc

OPTIONS = {"--sets": {"type": int, "default": 60, "help": "data sets"}}
CASES = (400, 0.0), (2000, 0.0), (4000, 0.0), (4000, 0.9)
MILD = 0.02  # change of the probability by the new value
WIDTHS = np.array([14 / 99, 14 / 99, 4 / 47])  # of a cell


def tables(smallest, sets):
    cases = CASES[:1] if smallest else CASES
    found = {case: [] for case in cases}
    for seed in range(2 if smallest else sets):
        for case, rows in _of_a_set(np.random.default_rng(seed), cases):
            found[case] += rows
    yield "", (_row(*case, np.array(rows)) for case, rows in found.items())


def _of_a_set(rng, cases):
    n, apart = int(rng.choice([8, 16, 40])), rng.uniform(1, 3)
    y = np.concatenate([rng.normal(-apart, 1, n // 2), rng.normal(apart, rng.uniform(0.5, 1.5), n - n // 2)])
    new = np.concatenate([rng.uniform(-9, 9, 5), rng.normal(0, 2, 5)])
    means, log_sds = np.linspace(-7, 7, 100), np.linspace(-2, 2, 48)
    cells = np.stack([one.ravel() for one in np.meshgrid(means, means, log_sds, indexing="ij")])
    log_posterior = -(cells[0] ** 2 + cells[1] ** 2) / 18 - 2 * cells[2] ** 2
    log_posterior[cells[0] >= cells[1]] = -np.inf
    for value in y:
        first = norm.logpdf(value, means, 1)[:, np.newaxis, np.newaxis]
        second = norm.logpdf(value, means[:, np.newaxis], np.exp(log_sds))
        log_posterior += np.logaddexp(first, second).ravel() + np.log(0.5)
    kept = log_posterior > log_posterior.max() - 30
    cells, shares = cells[:, kept], np.exp(log_posterior[kept] - logsumexp(log_posterior[kept]))
    exact, before = _exact(new, cells, shares)
    for n_draws, stay in cases:
        at = rng.choice(shares.size, n_draws, p=shares)
        drawn = cells[:, at] + WIDTHS[:, np.newaxis] * (rng.random((3, n_draws)) - 0.5)
        for t in np.flatnonzero(rng.random(n_draws) < stay):
            drawn[:, t] = drawn[:, t - 1]
        joint = _joint(new, drawn).reshape(4, -1, new.size, 2)
        soft = pc.as_allocation_probabilities(joint, log=True)
        known = pc.as_allocation_probabilities(np.tile(np.eye(2), (4, n_draws // 4, 1, 1)))  # an item of each component
        predicted = pc.predict_allocation(soft, known, partition=[0, 1], log_density=logsumexp(joint, axis=-1))
        ours, errors = predicted.probabilities.values[:, 0], predicted.mcse.values[:, 0]
        yield (n_draws, stay), list(zip(exact, before, ours, errors, strict=True))


def _joint(y, drawn):
    """Log of weight times density of each component: (n_draws, n_items, 2)."""
    first, second, log_sd = drawn[..., np.newaxis]
    return np.log(0.5) + np.stack([norm.logpdf(y, first, 1), norm.logpdf(y, second, np.exp(log_sd))], axis=-1)


def _exact(new, cells, shares):
    """Probability of the first component given old data and new value, and given the old data, by quadrature."""
    given, before = np.zeros((2, new.size)), np.zeros(new.size)
    for shift in itertools.product([-1, 1], repeat=3):  # two nodes of Gauss and Legendre in each direction
        moved = cells + (WIDTHS * shift / np.sqrt(12))[:, np.newaxis]
        for j, value in enumerate(new):
            joint = _joint(np.array([value]), moved)[:, 0]
            total = logsumexp(joint, axis=-1)
            given[:, j] += shares @ np.exp(joint[:, 0]), shares @ np.exp(total)
            before[j] += shares @ np.exp(joint[:, 0] - total) / 8
    return given[0] / given[1], before


def _row(n_draws, stay, found):
    exact, before, ours, errors = found.T
    reported = np.isfinite(ours)
    mild = np.abs(exact - before) < MILD
    away = np.abs(ours - exact)[reported]
    ratios = away / errors[reported]
    old = np.abs(before - exact)
    return {
        "draws": n_draws,
        "stay": stay,
        "new values": exact.size,
        "reported": f"{reported.mean():.0%}",
        "mild ones reported": f"{reported[mild].mean():.1%}",
        "beyond 2 errors": f"{(ratios > 2).mean():.1%}",
        "beyond 3": f"{(ratios > 3).mean():.1%}",
        "largest error": f"{away.max():.3f}",
        "old data alone: off by 0.05": f"{(old > 0.05).mean():.0%}",
        "reported: off by 0.05": f"{(away > 0.05).mean():.1%}",
    }
