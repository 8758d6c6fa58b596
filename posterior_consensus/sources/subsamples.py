"""Similarities of pairs from draws in which items are missing, such as runs on subsamples."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws, draws_of
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.pairs import PairSimilarity, PairSource
from posterior_consensus.ensemble.partitions import as_codes, canonical_rows
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.labels import from_store
from posterior_consensus.sources.locations import listing, place_in
from posterior_consensus.sources.samples import made_already, samples_of
from posterior_consensus.sources.variables import found_labels

_MATRICES = 10  # items x items that are in memory together
_SOME = 3  # pairs and items named in an error


def pairwise_similarity(
    data: Any, var_name: str | None, sample_dims: str | Sequence[str] | None, item_dim: str | None, weights: Any
) -> PairSimilarity:
    """Count each pair over the draws that contain both items; see :func:`as_pair_similarity`."""
    data = from_store(data)
    if isinstance(data, PairSource):  # contains every item
        together = draws_of(made_already(data, weights, var_name=var_name, sample_dims=sample_dims, item_dim=item_dim))
        present = PartitionDraws.of(
            np.zeros((together.n_draws, together.n_items), np.uint8), samples=together.samples, items=together.items
        )
    else:
        found = found_labels(data, var_name, "posterior", sample_dims, item_dim)
        with _as_called(), found as (labels, dims, item_dim):
            together, present = _together_and_present(labels, dims, item_dim, weights)
    n_items = together.n_items
    memory.check(8 * _MATRICES * n_items**2, f"The similarities of {n_items} items and their standard errors")
    held = _counts(present)
    _check_held(held, together.items)
    values = _counts(together) / held
    np.fill_diagonal(values, 1.0)
    return PairSimilarity(together.items, values, _errors(together, present, values))


@contextmanager
def _as_called() -> Iterator[None]:
    """Make errors of input name the user's function and argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error).replace("as_partition_draws(data, ", "as_pair_similarity(data, missing='pairwise', ")
        message = message.replace("`data`", "`matrix`").replace("(data, missing", "(matrix, missing")
        if message == str(error):
            raise
        raise type(error)(message) from None


def _together_and_present(
    labels: xr.DataArray, dims: tuple[str, ...], item_dim: str, weights: Any
) -> tuple[PartitionDraws, PartitionDraws]:
    """Draws with missing items as singletons: of the labels, and of presence (all items present are one cluster)."""
    name = f"the labels of {labels.name!r}" if labels.name is not None else "`matrix`"
    samples, items = samples_of(labels, dims, weights, name), Items.along(labels, item_dim)
    values, missing = _numbers(labels.values)
    if missing.all():
        raise ValueError(f"{name} must not all be missing; got {missing.size} missing labels.")
    codes, n_codes = as_codes(np.where(missing, values[~missing][0], values), name, place_in(labels))
    alone = np.arange(items.n_items)

    def draws(codes: npt.NDArray[Any], n_codes: int) -> PartitionDraws:
        wide = np.where(missing, n_codes + alone, codes).reshape(samples.n_draws, -1)
        rows = wide.astype(np.min_scalar_type(n_codes + items.n_items))
        return PartitionDraws.of(canonical_rows(rows, n_codes + items.n_items)[0], samples=samples, items=items)

    return draws(codes, n_codes), draws(np.zeros_like(codes), 1)


def _numbers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Labels, with numbers among objects as floats, and a mask of the missing: NaN, None or -1."""
    missing = pd.isna(values)
    if values.dtype.kind == "O" and not any(isinstance(value, (str, bytes)) for value in values[~missing]):
        values = np.where(missing, np.nan, values).astype(np.float64)
    return values, missing | (values == -1) if values.dtype.kind in "if" else missing


def _counts(draws: PartitionDraws) -> Floats:
    """Number or weight (n, n) of the draws that co-cluster each pair of items."""
    total, similarity = draws.samples.addends[1], draws.similarity()
    return similarity * total if draws.denominator() is None else np.rint(similarity * total)


def _check_held(held: Floats, items: Items) -> None:
    """Raise an error for pairs that no draw contains."""
    never = held == 0
    np.fill_diagonal(never, False)
    if not never.any():
        return
    n = items.n_items
    first = (items.named(pair).tolist() for pair in np.argwhere(np.triu(never, 1))[:_SOME])
    counts = f"{never.sum() // 2} of {n * (n - 1) // 2}, such as " + ", ".join(f"{i!r} and {j!r}" for i, j in first)
    lost = np.flatnonzero(never.sum(axis=1) == n - 1)
    if lost.size:
        counts += f"; items that meet no other: {lost.size}, such as {listing(items.named(lost[:_SOME]))}"
    raise ValueError(
        "`matrix` must have, for every pair of items, a draw of positive weight that holds both; the number of pairs "
        f"without one is {counts}. Make more runs or larger subsamples, or leave out items."
    )


def _errors(together: PartitionDraws, present: PartitionDraws, values: Floats) -> Floats:
    """Standard errors (n, n) by batch means over the draws that contain a pair; NaN with fewer than two batches."""
    samples = together.samples
    if samples.shortest < FEWEST_DRAWS:
        return np.full(values.shape, np.nan)
    equal = replace(present, samples=samples.weighted(np.ones(samples.n_draws)))
    weight_held, n_held = present.similarity(), equal.similarity()
    squares, n_batches = np.zeros(values.shape), np.zeros(values.shape)
    for batch in samples.batches:
        weight = samples.weights[batch].sum()
        share = weight * present.take(batch).shared_similarity / weight_held
        shift = weight * together.take(batch).shared_similarity / weight_held - values * share
        if samples.is_weighted:
            share_of_draws = batch.size / samples.n_draws * equal.take(batch).shared_similarity / n_held
            shift *= np.divide(1 - share_of_draws, 1 - share, out=np.ones(values.shape), where=share < 1)
        squares += np.square(shift)
        n_batches += share > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(n_batches > 1, np.sqrt(n_batches / (n_batches - 1) * squares), np.nan)
    size, varies = samples.effective_draws * weight_held, errors > ROUNDING
    spread, if_independent = (
        (one * two)[varies].sum() for one, two in ((values, 1 - values), (np.square(errors), size))
    )
    if if_independent > 0:  # pooled over the pairs, relative to the draws that contain each
        size *= spread / if_independent
    errors = samples.probability_errors(values, errors, size)
    np.fill_diagonal(errors, 0.0)
    return np.where(n_batches > 1, errors, np.nan)
