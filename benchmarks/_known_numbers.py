"""Posteriors of partitions whose expected number of clusters is known exactly, under other priors too.

A flat likelihood leaves the prior, and series of normal observations in contiguous clusters are summed by dynamic
programming. Draws come with the log ratios of other priors.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

import posterior_consensus as pc
from benchmarks._posteriors import dirichlet_process_draws
from posterior_consensus.priors import PartitionPrior
from posterior_consensus.priors.record import Sizes, log_rising

SPREAD = 2.0  # standard deviation of the means of clusters; observations have 1
TIME = 10.0  # autocorrelation time of slow chains


class Numbers(NamedTuple):
    """Probabilities (K,) of 1, 2, ... clusters, in which log ratios are linear: by the logarithm of each factor."""

    n_items: int
    chances: np.ndarray
    factors: tuple[float, ...]

    @property
    def expected(self):
        """Expected number of clusters by factor."""
        number = np.arange(1.0, self.chances.size + 1)
        with np.errstate(divide="ignore"):
            logs = np.log(self.chances)
        return {f: float(softmax(logs + number * np.log(f)) @ number) for f in self.factors}

    def draw(self, rng, n_draws):
        return self.ratios(1 + rng.choice(self.chances.size, n_draws, p=self.chances))

    def ratios(self, numbers):
        return numbers, {f: numbers * np.log(f) for f in self.factors}

    def mild(self, name):
        return name in (0.5, 2.0)

    def walk(self, rng, n_chains, length):
        """A chain on the numbers that moves by one, or by few, and has the autocorrelation time :data:`TIME`."""
        first, last = np.flatnonzero(self.chances > 1e-12)[[0, -1]]
        chances = self.chances[first : last + 1] / self.chances[first : last + 1].sum()
        cumulative = np.cumsum(_slow(chances), axis=1)
        state, uniform = rng.choice(chances.size, n_chains, p=chances), rng.random((length, n_chains, 1))
        states = np.empty((n_chains, length), np.int64)
        for t in range(length):
            state = np.minimum((cumulative[state] < uniform[t]).sum(axis=1), chances.size - 1)
            states[:, t] = state
        return self.ratios(states.ravel() + first + 1)


def softmax(logs):
    return np.exp(logs - logsumexp(logs))


def _slow(chances):
    """Transitions of Metropolis steps to a neighbour, repeated or held until the time is :data:`TIME`."""
    size, steps = chances.size, np.zeros((chances.size, chances.size))
    if size == 1:
        return np.ones((1, 1))
    k = np.arange(size - 1)
    steps[k, k + 1] = 0.5 * np.minimum(1.0, chances[1:] / chances[:-1])
    steps[k + 1, k] = 0.5 * np.minimum(1.0, chances[:-1] / chances[1:])
    steps[np.diag_indices(size)] = 1.0 - steps.sum(axis=1)
    while _time(steps @ steps, chances) > TIME:
        steps = steps @ steps
    twice, own = steps @ steps, _time(steps, chances)
    if own < TIME:  # as of a mixture with the identity
        move = (own + 1) / (TIME + 1)
        return move * steps + (1 - move) * np.eye(size)
    low, high = 0.0, 1.0
    for _ in range(30):
        share = (low + high) / 2
        low, high = (share, high) if _time((1 - share) * steps + share * twice, chances) > TIME else (low, share)
    return (1 - low) * steps + low * twice


def _time(steps, chances):
    """Autocorrelation time of the state of a Markov chain."""
    value = np.arange(chances.size) - chances @ np.arange(chances.size)
    solved = np.linalg.solve(np.eye(chances.size) - steps + chances, value)
    return 2 * (chances * value) @ solved / ((chances * value) @ value) - 1


class Flat:
    """The prior itself: a likelihood that does not depend on the partition."""

    def __init__(self, prior: PartitionPrior, others: Mapping[str, PartitionPrior], n_items: int):
        self.prior, self.others, self.n_items = prior, others, n_items

    @property
    def expected(self) -> dict[str, float]:
        means = {}
        for name, other in self.others.items():
            prior = other.n_clusters(self.n_items)
            means[name] = float(prior.n_clusters @ prior / prior.sum())
        return means

    def mild(self, name):
        return name.startswith("mild")

    def draw(self, rng, n_draws):
        sizes = self._sizes(rng, n_draws)
        numbers = np.add.reduceat((sizes.values > 0).astype(int), sizes.starts[:-1])
        own = self.prior.of_sizes(sizes)
        return numbers, {name: other.of_sizes(sizes) - own for name, other in self.others.items()}

    def _sizes(self, rng, n_draws):
        if self.prior.n_labels is None:
            return _seated(rng, self.prior, self.n_items, n_draws)
        sticks = rng.beta(1, self.prior.concentration, (n_draws, self.prior.n_labels))
        sticks[:, -1] = 1
        sticks[:, 1:] *= np.cumprod(1 - sticks[:, :-1], axis=1)
        counts = rng.multinomial(self.n_items, sticks / sticks.sum(axis=1, keepdims=True))
        return Sizes(counts.ravel(), self.prior.n_labels * np.arange(n_draws + 1), self.n_items)


def _seated(rng, prior, n_items, n_draws, most=100):
    """Cluster sizes of draws of a prior with fixed concentration, item by item."""
    discount, new = prior.discount, np.full(n_draws, float(prior.concentration))
    components = np.full(n_draws, np.inf)
    if prior.n_components is not None:
        given = prior.n_components
        components = np.full(n_draws, given) if isinstance(given, int) else given.rvs(n_draws, random_state=rng)
        discount = -float(prior.concentration)
        new = components * float(prior.concentration)
    sizes, numbers, rows = np.zeros((n_draws, most), int), np.ones(n_draws, int), np.arange(n_draws)
    sizes[:, 0] = 1
    for _ in range(1, n_items):
        cumulative = np.cumsum(np.where(sizes > 0, sizes - discount, 0.0), axis=1)
        uniform = rng.random(n_draws) * (cumulative[:, -1] + np.maximum(new + discount * numbers, 0.0))
        is_new = uniform >= cumulative[:, -1]
        chosen = np.where(is_new, numbers, (cumulative <= uniform[:, np.newaxis]).sum(axis=1))
        sizes[rows, chosen] += 1
        numbers += is_new
    return Sizes(sizes[sizes > 0], np.append(0, np.cumsum(numbers)), n_items)


class Series(Flat):
    """Normal observations in contiguous clusters: a partition's sizes, in random order, are lengths of segments."""

    def __init__(self, prior, others, observations, most=60):
        super().__init__(prior, others, observations.size)
        self.most = min(most, observations.size)
        sums, (i, j) = np.append(0.0, np.cumsum(observations)), np.triu_indices(observations.size + 1, 1)
        size, total = j - i, sums[j] - sums[i]
        shrinkage = SPREAD**2 / (1 + size * SPREAD**2)
        self.at, self.sizes = (i, j), size
        self.log_likelihood = 0.5 * (total**2 * shrinkage - np.log1p(size * SPREAD**2)) - gammaln(size + 1.0)
        self.tables, self.log_chances = self._summed(prior)

    def _summed(self, prior):
        """Logarithms of segments (n + 1, n + 1), of sums (K + 1, n + 1) over k segments to each end, and of chances."""
        (group,) = prior._groups(self.n_items, float(self.n_items))
        segments = np.full((self.n_items + 1, self.n_items + 1), -np.inf)
        segments[self.at] = self.log_likelihood + log_rising(1.0 - group.discount, self.sizes - 1)
        sums = np.full((self.most + 1, self.n_items + 1), -np.inf)
        sums[0, 0] = 0.0
        for k in range(1, self.most + 1):
            sums[k] = logsumexp(sums[k - 1][:, np.newaxis] + segments, axis=0)
        numbers = np.arange(1, self.most + 1)
        return (segments, sums), group.log_sum(self.n_items, numbers) + sums[1:, -1] - gammaln(numbers + 1.0)

    @property
    def chances(self):
        """Probabilities of 1, 2, ... clusters."""
        return softmax(self.log_chances)

    @property
    def expected(self):
        number = np.arange(1.0, self.most + 1)
        return {name: float(softmax(self._summed(other)[1]) @ number) for name, other in self.others.items()}

    def _sizes(self, rng, n_draws):
        segments, sums = self.tables
        numbers = 1 + rng.choice(self.most, n_draws, p=self.chances)
        sizes, end, left = np.zeros((n_draws, numbers.max()), int), np.full(n_draws, self.n_items), numbers.copy()
        for step in range(numbers.max()):
            pending = np.flatnonzero(left)
            for k, stop in np.unique(np.stack([left[pending], end[pending]]), axis=1).T:
                rows = pending[(left[pending] == k) & (end[pending] == stop)]
                start = rng.choice(self.n_items + 1, rows.size, p=softmax(sums[k - 1] + segments[:, stop]))
                sizes[rows, step] = stop - start
                end[rows], left[rows] = start, k - 1
        return Sizes(sizes[sizes > 0], np.append(0, np.cumsum(numbers)), self.n_items)


def series(seed, n_items, distance):
    """Observations whose mean changes five times."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(0, distance, 6), -(-n_items // 6))[:n_items] + rng.normal(size=n_items)


def of_crp(concentration, n_items, factors):
    """Numbers of clusters under the Chinese restaurant process."""
    chances = pc.priors.crp(concentration).n_clusters(n_items).values
    return Numbers(n_items, chances / chances.sum(), factors)


def of_mixture(seed, n_items, concentration, factors, n_sweeps, at=(0.3, 1.0, 3.0, 8.0, 20.0, 50.0)):
    """Numbers of clusters of a Dirichlet process mixture of normals, from Gibbs samplers at several concentrations.

    Their counts are combined: the chances are g(K) a^K / Z(a), by maximum likelihood of g and Z. These chances are then
    the truth, whatever the samplers' error.
    """
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 2.0, 5)
    observations = (centres[rng.integers(5, size=n_items)] + rng.normal(size=n_items))[:, np.newaxis]
    counts = np.zeros((len(at), n_items))
    for row, a in zip(counts, at, strict=True):
        draws = dirichlet_process_draws(observations, SPREAD, a, n_sweeps, rng)[n_sweeps // 10 :]
        row += np.bincount([np.unique(draw).size - 1 for draw in draws], minlength=n_items)
    with np.errstate(divide="ignore"):
        total, tilt = np.log(counts.sum(axis=0)), np.log(at)[:, np.newaxis] * np.arange(1.0, n_items + 1)
    scale = np.zeros((len(at), 1))
    for _ in range(2_000):
        logs = total - logsumexp(tilt - scale, axis=0)
        scale = logsumexp(logs + tilt, axis=1)[:, np.newaxis]
    return Numbers(n_items, softmax(logs + np.log(concentration) * np.arange(1.0, n_items + 1)), factors)


def kept(rng, n_chains, length):
    """Rows of a chain that keeps its draw with a probability that gives the autocorrelation time :data:`TIME`."""
    new = rng.random((n_chains, length)) >= (TIME - 1) / (TIME + 1)
    new[:, 0] = True
    return np.cumsum(new.ravel()) - 1


def taken(data: tuple[Any, dict[Any, Any]], rows: Any) -> tuple[Any, dict[Any, Any]]:
    """Some of the draws."""
    numbers, ratios = data
    return numbers[rows], {name: ratio[rows] for name, ratio in ratios.items()}
