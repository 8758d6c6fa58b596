"""Similarities without draws: scored pairs, the user's matrix, or counts of pairs over draws with missing items."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import Items, difference, name_or, positions
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Place, as_array, as_codes, canonical_rows, first_of, place_in
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.ensemble.similarity import errors_of_shares
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.arguments import check_left_out, listing
from posterior_consensus.runtime.tolerances import ROUNDING, SINGLE
from posterior_consensus.sources.conversion import found_labels, opened
from posterior_consensus.sources.formats import format_of
from posterior_consensus.sources.labels import made_already, samples_of
from posterior_consensus.sources.plain_files import read_matrix
from posterior_consensus.sources.scored_pairs import (
    is_table_of_pairs,
    of_sparse,
    read_pairs,
    with_constraints,
)
from posterior_consensus.sources.tables import BY_COLUMN
from posterior_consensus.sources.where import Where

_MATRICES = 10  # items x items that are in memory together
_SOME = 3  # pairs and items named in an error


def as_pair_similarity(
    data: Any,
    *,
    left: Hashable | Sequence[Hashable] | None = None,
    right: Hashable | Sequence[Hashable] | None = None,
    probability: Hashable | None = None,
    items: Any = None,
    unscored: float = 0.0,
    must_link: Any = None,
    cannot_link: Any = None,
    max_per_source: int | Sequence[Hashable] | Mapping[Hashable, int | None] | None = None,
    max_cluster_size: int | None = None,
    item_dim: str | None = None,
    missing: Literal["pairwise"] | None = None,
    var_name: str | None = None,
    sample_dims: str | Sequence[str] | None = None,
    weights: Any = None,
    log_weights: Any = None,
) -> PairSimilarity | ScoredPairs:
    """Convert scored pairs or a similarity matrix, without draws, or compare draws in which items are missing.

    Parameters
    ----------
    data : table of pairs, SciPy sparse array, array_like, DataFrame, DataArray, path, PartitionDraws or PairSource
        Similarities: probabilities that two items belong to one cluster, in [0, 1] up to 1e-6.

        - A table with a row for each scored pair of records: of pandas, pyarrow, polars or DuckDB, a file of one,
          or what splink's ``predict`` or dedupe's ``score`` returns. Its columns are those of splink, or `left`,
          `right` and `probability`.
        - A sparse array, items x items, of the scored pairs, 0 included: one triangle, or symmetric. Its diagonal is 1
          or left out.
        - A matrix, items x items, symmetric and 1 on the diagonal, also as a file of a table or an array.
        - Draws, of which similarities are computed, or similarities that this function returned, to which constraints
          are added. With `missing`, labels in any form that :func:`as_partition_draws` accepts.
    left, right : str or two of them, optional
        Columns of the two records' names; or two columns each, of the data set and the name, if names repeat among data
        sets. By default "unique_id_l" and "unique_id_r", with "source_dataset_l" and "source_dataset_r" if present.
    probability : str, optional
        Column of the probabilities. By default "match_probability", else "match_weight": the logarithm to base 2 of the
        odds, w, so that the probability is 2^w / (1 + 2^w).
    items : sequence, Index, Series, table, path or dict, optional
        Names of all records, in the order wanted, records in no pair included; or of the rows of a sparse array. A
        table, of the same kinds as `data`, has columns "unique_id" and, of several data sets, "source_dataset"; a dict
        has each name's data set. By default the records in the pairs, in the order of their names.
    unscored : float
        Probability of every pair that was not scored. Numbers of expected pairs count it within components of linked
        records only, see :class:`results.ScoredLinks`.
    must_link, cannot_link : sequence of pairs, table or path, optional
        Pairs of names that must be in one cluster, or must not. A table has the columns `left` and `right`, or is one
        of pairs to review, with ``first`` and ``second``. If names have data sets, each name is a tuple (data set,
        name).
    max_per_source : 1, list, dict or None
        Whether a cluster may have only one record of each data set; or of those in a list, or of those that a dict
        maps to 1. Other records are free, and so are those without a data set.
    max_cluster_size : int, optional
        The most records of a cluster. Any number by default.
    item_dim : str, optional
        Name of the items' dimension. By default the DataArray's first dimension or the name of the DataFrame's index,
        else "item". With `missing`, by default the name of the DataFrame's columns, unless it is "sample".
    missing : {"pairwise"}, optional
        Accept labels of which some are missing: -1, NaN, None or masked. Each pair of items is counted over the draws
        that contain both items. By default, `data` has similarities.
    var_name, sample_dims, weights, log_weights : optional
        Variable of the labels, dimensions of the draws and weight of each draw or its logarithm, as in
        :func:`as_partition_draws`; only with `missing`.

    Returns
    -------
    PairSimilarity or ScoredPairs
        The similarities, with the items' names. They are ScoredPairs for tables of pairs and sparse arrays, of which
        only the scored pairs are kept, and if there are constraints, which a partition of them has to keep. Functions
        that need only similarities accept both; functions that need draws raise an error. With `missing`, `errors` has
        the standard error of each pair; :func:`diagnostics.similarity_mcse` returns it with the items' names.

    Raises
    ------
    ValueError
        If a matrix is not square, not symmetric, not finite, not in [0, 1] or not 1 on the diagonal, or its rows and
        columns name different items. If a table lacks a column, a pair has several scores, none, or one beyond [0, 1],
        a record is paired with itself, or a name is missing, or not among `items`; the message counts these pairs and
        shows the first. If constraints contradict each other. With `missing`, if no draw contains both items of a pair.
    TypeError
        If the values are not real numbers, or names are of several types.
    ImportError
        If `data` is a Parquet or Feather file and the package pyarrow is missing.
    MemoryError
        With `missing`, or constraints on a matrix, if the result needs more than the memory budget.

    See Also
    --------
    posterior_similarity_matrix : Compute the matrix from draws.
    as_partition_draws : Convert draws that contain every item.
    as_runs : Convert runs of a clustering program, also if items are missing.

    Notes
    -----
    Deviations up to 1e-6 are repaired: a matrix is averaged with its transpose, scores of a pair that stands twice are
    replaced by the midpoint of the smallest and the largest, values are clipped to [0, 1], and the diagonal is set
    to 1.

    If names have data sets, items are a MultiIndex with the levels "source_dataset" and "unique_id". If `items` says
    the data sets of names that do not repeat, these are the coordinate "source_dataset". In files of text, names are
    integers if all are written as integers, without leading zeros.

    splink's match weights contain the prior [1]_: they are log2(p / (1 - p)) of the match probability p.

    The similarities alone determine Binder's expected loss with any costs, its lower bound and certificate, the
    losses of `PAIR_LOSSES`, and each item's mean similarity to its own cluster. Standard errors, the credible ball,
    diagnoses and the expectation of any other loss need the draws.

    With ``missing="pairwise"``, let w_t be the weight of draw t, and m_ti = 1 if the draw contains item i, else 0. Then

        PSM_ij = sum_t w_t m_ti m_tj 1{z_ti = z_tj} / sum_t w_t m_ti m_tj,

    the consensus matrix of clustering by resampling [2]_. It estimates the posterior similarity if items are missing
    independently of the labels. Standard errors are computed as in :func:`diagnostics.similarity_mcse`, over the draws
    that contain the pair. They are NaN if these draws are in fewer than two batches. If all these draws agree, the
    effective sample size is their number, divided by the autocorrelation time pooled over the pairs. The matrix need
    not be positive semidefinite.

    References
    ----------
    .. [1] Linacre, Lindsay, Manassis, Slade and Hepworth (2022), International Journal of Population Data Science 7
       (3). https://doi.org/10.23889/ijpds.v7i3.1794
    .. [2] Monti, Tamayo, Mesirov and Golub (2003), Machine Learning 52, 91-118.
       https://doi.org/10.1023/A:1023949509487

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> table = pd.DataFrame(
    ...     [("ann", "anne", 0.9), ("anne", "hanna", 0.6), ("ann", "hanna", 0.2)],
    ...     columns=["unique_id_l", "unique_id_r", "match_probability"],
    ... )
    >>> pc.as_pair_similarity(table, items=["ann", "anne", "hanna", "joe"], cannot_link=[("ann", "hanna")])
    ScoredPairs
      records         4
      scored pairs    3, mean 0.567, above 0.5: 67%
      unscored pairs  3, taken as 0; they are not known to be non-matches
      constraints     1 pair must be apart
      draws           none: similarities of pairs alone
      values          0.0 MB

    >>> pairs = pc.as_pair_similarity([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
    >>> best = pc.consensus_partition(pairs, loss="binder", random_seed=1, progressbar=False)
    >>> best.labels.values
    array([0, 0, 1], dtype=int32)

    >>> runs = [[0, 0, -1], [1, 1, 0], [-1, 0, 1], [0, -1, 1], [0, 1, 1]]
    >>> pc.as_pair_similarity(runs, missing="pairwise").values.round(2)
    array([[1.  , 0.67, 0.  ],
           [0.67, 1.  , 0.33],
           [0.  , 0.33, 1.  ]])
    """
    where = Where(
        var_name=var_name, sample_dims=sample_dims, item_dim=item_dim, weights=weights, log_weights=log_weights
    )
    table = {"left": left, "right": right, "probability": probability}
    limits = {
        **{"must_link": must_link, "cannot_link": cannot_link},
        **{"max_per_source": max_per_source, "max_cluster_size": max_cluster_size},
    }
    of_pairs = {**table, "items": items, "unscored": unscored or None}
    if missing is not None:
        if missing != "pairwise":
            raise ValueError(f"`missing` must be 'pairwise' or None; got {missing!r}.")
        check_left_out("labels of which some are missing", **of_pairs, **limits)
        return pairwise_similarity(data, where)
    if var_name is not None or where.weights is not None:
        raise ValueError(
            "`var_name` and `weights` must be None for a matrix; draws in which items are missing need "
            "missing='pairwise'."
        )
    with _as_called():
        found = _found_similarities(
            data, of_pairs, {"item_dim": item_dim, "items": items, "unscored": unscored}, limits
        )
        if any(limit is not None for limit in limits.values()):
            return with_constraints(found, **limits, left=left, right=right)
        return found if isinstance(found, ScoredPairs) else PairSimilarity.of(found)


def _found_similarities(
    data: Any, of_pairs: Mapping[str, Any], options: dict[str, Any], limits: Mapping[str, Any]
) -> PairSource:
    """Read similarities of any form, or the draws that have them."""
    item_dim = options["item_dim"]
    table = {name: of_pairs[name] for name in ("left", "right", "probability")}
    is_path, is_named = isinstance(data, (str, Path)), any(name is not None for name in table.values())
    if sparse.issparse(data) or isinstance(data, PairSource):
        has_pairs = limits["must_link"] is not None or limits["cannot_link"] is not None
        check_left_out("similarities made already", **({"probability": table["probability"]} if has_pairs else table))
    elif is_named or is_table_of_pairs(data):
        return read_pairs(data, **table, **options)
    if sparse.issparse(data):
        return of_sparse(data, **options)
    check_left_out("a matrix or draws, of all pairs", items=of_pairs["items"], unscored=of_pairs["unscored"])
    if is_path and format_of(data).content is not None:
        return _of_matrix(read_matrix(data), item_dim)
    with opened(data) as (found, _):
        if not isinstance(found, PairSource):
            return _of_matrix(found, item_dim)
        if item_dim not in (None, found.items.dim):
            raise ValueError(f"`item_dim` must be None or {found.items.dim!r}, the items' dimension; got {item_dim!r}.")
        return found


def _of_matrix(matrix: Any, item_dim: str | None) -> PairSimilarity:
    named = _with_item_names(matrix, item_dim)
    return PairSimilarity(Items.along(named, str(named.dims[0])), _checked_similarities(named.values, place_in(named)))


def _with_item_names(matrix: Any, item_dim: str | None) -> xr.DataArray:
    """The matrix with columns reordered like the rows, and the names of the rows."""
    if isinstance(matrix, pd.DataFrame):
        name = item_dim or name_or(matrix.index.name, "item")
        array = xr.DataArray(matrix.to_numpy(), dims=(name, f"{name}_bis"))
        for dim, names in zip(array.dims, (matrix.index, matrix.columns), strict=True):
            if not isinstance(names, pd.RangeIndex) and names.nlevels == 1:
                array = array.assign_coords({dim: names.to_numpy()})
    elif isinstance(matrix, xr.DataArray):
        array = matrix
    elif isinstance(matrix, (xr.Dataset, xr.DataTree)):
        raise TypeError(
            f"`data` must be an array, a table or a path of one; got a {type(matrix).__name__}. Take a variable of "
            "it, such as data['name']. For labels, draws x items, call as_partition_draws."
        )
    else:
        values = as_array(matrix, "`data`")
        array = xr.DataArray(values, dims=("item", "item_bis")[: values.ndim] if values.ndim < 3 else None)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(
            f"`data` must be square, items x items, with at least one item; got shape {array.shape}. "
            "For labels, draws x items, call as_partition_draws; for a table of scored pairs, name its columns by "
            f"{BY_COLUMN}."
        )
    rows, columns = array.dims
    if rows in array.indexes and columns in array.indexes:
        order = positions(array.indexes[rows], array.indexes[columns])
        if order is None:
            why = difference(array.indexes[rows], array.indexes[columns])
            raise ValueError(
                f"`data` must have the same items in rows and columns; the names of {rows!r} and {columns!r} differ: "
                f"{why}."
            )
        array = array.isel({columns: order})
    return array if item_dim is None else array.rename({rows: item_dim})


def _checked_similarities(values: npt.NDArray[Any], place: Place) -> Floats:
    """The values as similarities, with rounding repaired; a copy."""
    if values.dtype.kind not in "buif":
        raise TypeError(
            f"`data` must hold real numbers; got {values.dtype}. Name the columns of a table of scored pairs by "
            f"{BY_COLUMN}."
        )
    values = values.astype(np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise ValueError(
            f"`data` must be finite; got {wrong.sum()} values such as {values[wrong][0]}, the first at "
            f"{first_of(wrong, place)}. Drop the items that they belong to."
        )
    low, high = values.min(), values.max()
    if low < -SINGLE or high > 1 + SINGLE:
        beyond = (values < -SINGLE) | (values > 1 + SINGLE)
        raise ValueError(
            f"`data` must have values in [0, 1]; got {low:.6g} to {high:.6g}, the first beyond at "
            f"{first_of(beyond, place)}. Divide counts by the number of draws; take 1 minus distances; name the "
            f"columns of a table of scored pairs by {BY_COLUMN}."
        )
    below = np.diagonal(values) < 1 - SINGLE
    if below.any():
        at = int(below.argmax())
        raise ValueError(
            f"`data` must be 1 on the diagonal, as items are co-clustered with themselves; got {values[at, at]:.6g} "
            f"at {first_of(np.diag(below), place)}. Fill it with numpy.fill_diagonal(data, 1) if it was left out."
        )
    apart = np.abs(values - values.T)
    if apart.max() > SINGLE:
        first = first_of(apart > SINGLE, place)
        raise ValueError(
            f"`data` must be symmetric; entries differ from their mirror images by up to {apart.max():.6g}, the "
            f"first at {first}. If one triangle was left out, fill it from the transpose."
        )
    values = (values + values.T) / 2
    np.clip(values, 0.0, 1.0, out=values)
    np.fill_diagonal(values, 1.0)
    return values


def pairwise_similarity(data: Any, where: Where) -> PairSimilarity:
    """Count each pair over the draws that contain both items; see :func:`as_pair_similarity`."""
    with _as_called(), opened(data, where) as (found, where):
        if isinstance(found, PairSource):  # contains every item
            together = made_already(found, where).as_draws()
            nowhere = np.zeros((together.n_draws, together.n_items), np.uint8)
            present = PartitionDraws.of(nowhere, samples=together.samples, items=together.items)
        else:
            labels = found_labels(found, where)
            together, present = _together_and_present(*labels, where.weights)
        return _of_present(together, present)


def _of_present(together: PartitionDraws, present: PartitionDraws) -> PairSimilarity:
    """Share of the draws that co-cluster each pair among those that contain both items, and its error."""
    n_items = together.n_items
    memory.check(8 * _MATRICES * n_items**2, f"The similarities of {n_items} items and their standard errors")
    held = _n_together(present)
    _check_held(held, together.items, together.samples.words.draw)
    values = _n_together(together) / held
    np.fill_diagonal(values, 1.0)
    return PairSimilarity(together.items, values, _batch_errors(together, present, values), together.samples)


@contextmanager
def _as_called() -> Iterator[None]:
    """Make errors of input name the user's function and argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error).replace("as_partition_draws(data, ", "as_pair_similarity(data, missing='pairwise', ")
        if message == str(error):
            raise
        raise type(error)(message) from None


def _together_and_present(
    labels: xr.DataArray, dims: tuple[str, ...], item_dim: str, weights: Any
) -> tuple[PartitionDraws, PartitionDraws]:
    """Draws with missing items as singletons: of the labels, and of presence (all items present are one cluster)."""
    name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
    samples, items = samples_of(labels, dims, weights, name), Items.along(labels, item_dim)
    values, missing = _labels_and_missing(labels.values)
    if missing.all():
        raise ValueError(f"{name} must not all be missing; got {missing.size} missing labels.")
    codes, n_codes = as_codes(np.where(missing, values[~missing][0], values), name, place_in(labels))
    together = _with_alone(missing, codes, n_codes, samples, items)
    return together, _with_alone(missing, np.zeros_like(codes), 1, samples, items)


def _with_alone(
    missing: Flags, codes: npt.NDArray[Any], n_codes: int, samples: Samples, items: Items
) -> PartitionDraws:
    """Draws of these labels, each missing item alone."""
    highest = n_codes + items.n_items
    wide = np.where(missing, n_codes + np.arange(items.n_items), codes).astype(np.min_scalar_type(highest))
    rows, _ = canonical_rows(wide.reshape(samples.n_draws, -1), highest)
    return PartitionDraws.of(rows, samples=samples, items=items)


def _labels_and_missing(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Flags]:
    """Labels, with numbers among objects as floats, and a mask of the missing: NaN, None or -1."""
    missing = pd.isna(values)
    if values.dtype.kind == "O" and not any(isinstance(value, (str, bytes)) for value in values[~missing]):
        values = np.where(missing, np.nan, values).astype(np.float64)
    return values, missing | (values == -1) if values.dtype.kind in "if" else missing


def _n_together(draws: PartitionDraws) -> Floats:
    """Number or weight (n, n) of the draws that co-cluster each pair of items."""
    total, similarity = draws.samples.addends[1], draws.similarity()
    return similarity * total if draws.denominator() is None else np.rint(similarity * total)


def _check_held(held: Floats, items: Items, draw: str) -> None:
    """Raise an error for pairs that no draw contains; `draw` is what a draw is called."""
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
        f"`data` must have, for every pair of items, a {draw} of positive weight that holds both; the number of pairs "
        f"without one is {counts}. Make more runs or larger subsamples, or leave out items."
    )


def _batch_errors(together: PartitionDraws, present: PartitionDraws, values: Floats) -> Floats:
    """Standard errors (n, n) by batch means over the draws that contain a pair; NaN with fewer than two batches."""
    samples = together.samples
    if not samples.has_errors:
        return np.full(values.shape, np.nan)
    if not samples.series and not samples.is_weighted:
        return errors_of_shares(samples, values, _n_together(present))
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
