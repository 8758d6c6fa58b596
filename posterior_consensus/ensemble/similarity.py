"""The posterior similarity matrix: pairs above a limit, errors, products, and means of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.kernels import coclustering
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats


def group_planes(
    draws: PartitionDraws, groups: Sequence[npt.NDArray[np.intp]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack groups of draws, given by row numbers, for the kernels: bit planes, first word and size of each group."""
    packed = [coclustering.pack_bit_planes(draws.backend.of_draws(rows), draws.backend.n_planes) for rows in groups]
    words = np.cumsum([0, *(len(planes) for planes in packed)])
    return np.concatenate(packed), words, np.array([len(rows) for rows in groups])


def similarity_errors(draws: PartitionDraws) -> Floats:
    """Monte Carlo standard error (n, n) of every entry of the similarity matrix; NaN for fewer than four draws.

    Each independent run is a batch with a factor f_t, and the entries are 0 or 1. With p the similarity and q the one
    under weights f_t^2 / F of sum 1, the squared error sum_t f_t^2 (a_t - p)^2 is F (q (1 - 2 p) + p^2). Runs that lack
    items count for a pair if they have both.
    """
    what = f"Standard errors of the similarity matrix of {draws.n_items:,} items"  # from batches, and from chains
    memory.check(16 * draws.n_items**2, what, "Take the errors of some items: `of_items`.")
    if not draws.samples.has_errors:
        return np.full((draws.n_items, draws.n_items), np.nan)
    if isinstance(draws, RunsWithMissing):
        return errors_of_shares(draws.samples, draws.shared_similarity, draws.pair_counts()[1])
    if draws.counted_draws is not None and not draws.samples.series:
        squares = np.square([factor for _, factor in draws.samples.batch_factors()])
        if np.isnan(squares).any():
            return np.full((draws.n_items, draws.n_items), np.nan)
        p = draws.shared_similarity
        q = replace(draws, samples=draws.samples.weighted(squares)).shared_similarity
        return np.sqrt(np.maximum(squares.sum() * (q * (1 - 2 * p) + np.square(p)), 0.0))
    if draws.denominator() is None:
        return draws.samples.error_by_batches(draws.shared_similarity, lambda rows: draws.take(rows).shared_similarity)
    samples = draws.samples
    batches, chains = samples.batches, samples.sequences
    ends = np.isin([batch[-1] for batch in batches], [rows[-1] for rows in chains])
    spread = coclustering.spread_of_batches(*group_planes(draws, batches), draws.n_items, ends)
    factors = [len(parts) / max(len(parts) - 1, 1) / draws.n_draws**2 for parts in (batches, chains)]
    errors: Floats = spread[0]
    for rows in slices(draws.n_items, max(1, memory.CELLS_AT_ONCE // draws.n_items)):
        of_batches, of_chains = (factor * part[rows] for factor, part in zip(factors, spread, strict=True))
        errors[rows] = np.sqrt(samples.by_chains_if_they_differ(of_batches, of_chains))
    return errors


def errors_of_shares(samples: Samples, values: Floats, held: Floats) -> Floats:
    """Standard errors (n, n) of shares of `held` independent runs; NaN for fewer than two."""
    several = held > 1
    spread = np.divide(values * (1 - values), held - 1, out=np.zeros(values.shape), where=several)
    errors = samples.probability_errors(values, np.sqrt(spread), held)
    np.fill_diagonal(errors, 0.0)
    return np.where(several, errors, np.nan)


def similarity_operator(source: PairSource) -> LinearOperator:
    """Return the posterior similarity matrix as an operator: of draws, products cost n x N and no n x n array."""
    n = source.n_items

    def product(vectors: Floats) -> Floats:
        return source.product(np.asarray(vectors.reshape(n, -1), dtype=np.float64))

    products = dict.fromkeys(("matvec", "rmatvec", "matmat", "rmatmat"), product)
    return LinearOperator((n, n), dtype=np.float64, **products)
