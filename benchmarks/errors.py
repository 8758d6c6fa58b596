"""Errors of similarities, memberships and a reweighted mean beside the spread over repetitions."""

import numpy as np

import posterior_consensus as pc

REPETITIONS, CHAINS = 100, 4
MODES = np.array([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2, 2, 2]])
CASES = {
    "independent draws, 250": (0.0, 250, False),
    "draws stay with .9, 250": (0.9, 250, False),
    "draws stay with .9, 1,000": (0.9, 1_000, False),
    "two modes stay with .98, 250": (0.98, 250, True),
    "two modes stay with .98, 1,000": (0.98, 1_000, True),
    "two modes stay with .98, 2,500": (0.98, 2_500, True),
}
TILT = 0.5  # the log ratio falls by so much with each cluster
MEASURES = ("similarities", "memberships", "reweighted number of clusters")


def tables(smallest):
    repetitions, cases = (3, list(CASES.items())[:2]) if smallest else (REPETITIONS, CASES.items())
    yield "", (_row(name, case, repetitions) for name, case in cases)


def _row(name, case, repetitions):
    found = ratios(np.random.default_rng(1), *case, repetitions)
    shown = {measure: f"{ratio:.2f}" for measure, ratio in zip(MEASURES, found, strict=True)}
    return {"chains of": name, "ESS of a chain": f"{ess_a_chain(*case):.0f}", **shown}


def chains(rng: np.random.Generator, stay: float, length: int, modes: bool) -> np.ndarray:
    """Labels (chains, draws, items): a partition, or one of two modes with noise, stays with probability `stay`."""
    moves = rng.random((CHAINS, length)) >= stay
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(length), 0), axis=1)
    if not modes:
        fresh = rng.integers(3, size=(CHAINS, length, MODES.shape[1]))
        return np.take_along_axis(fresh, last[..., np.newaxis], axis=1)
    start = rng.integers(2, size=(CHAINS, 1))
    at = (start + np.cumsum(moves, axis=1)) % 2
    noisy = rng.random((CHAINS, length, MODES.shape[1])) < 0.15
    return np.where(noisy, rng.integers(4, size=noisy.shape), MODES[at])


def ess_a_chain(stay: float, length: int, modes: bool) -> float:
    """Effective sample size of a chain's slowest function, from the autocorrelation at lag 1."""
    correlation = 2 * stay - 1 if modes else stay
    return length * (1 - correlation) / (1 + correlation)


def ratios(rng: np.random.Generator, stay: float, length: int, modes: bool, repetitions: int) -> list[float]:
    """Root mean square of the errors over standard deviation of the values, one for each of `MEASURES`.

    The variance of a value is that between single chains, divided by their number.
    """
    squares, values = [], []
    for _ in range(repetitions):
        draws = pc.as_partition_draws(chains(rng, stay, length, modes))
        samples, number = _reweighted(draws)
        errors = pc.diagnostics.similarity_mcse(draws), pc.membership(draws, MODES[0]).mcse, samples.mcse(number)
        squares.append([np.square(one).mean() for one in errors])
        values += [_values(draws.isel(chain=chain)) for chain in range(CHAINS)]
    variances = [np.var(one, axis=0, ddof=1).mean() / CHAINS for one in zip(*values, strict=True)]
    return np.sqrt(np.mean(squares, axis=0) / variances).tolist()


def _values(draws: pc.results.PartitionDraws) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    samples, number = _reweighted(draws)
    return (
        pc.posterior_similarity_matrix(draws).values,
        pc.membership(draws, MODES[0]).probabilities.values,
        samples.mean(number),
    )


def _reweighted(draws: pc.results.PartitionDraws) -> tuple[object, np.ndarray]:
    weighted = pc.reweight(draws, -TILT * draws.n_clusters, max_pareto_k=np.inf)
    return weighted.samples, weighted.n_clusters.astype(float)
