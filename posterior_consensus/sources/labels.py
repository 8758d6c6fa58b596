"""Conversion of labels of any origin to PartitionDraws: checked, canonical, used by everything else."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from posterior_consensus.ensemble.dask_labels import canonical_blocks
from posterior_consensus.ensemble.draws import PartitionDraws, draws_of
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasDraws, as_codes, canonical_rows
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import as_path
from posterior_consensus.sources.accumulate import PartitionAccumulator, read_draws
from posterior_consensus.sources.batches import is_accumulated
from posterior_consensus.sources.blocks import LabelBlocks
from posterior_consensus.sources.locations import place_in
from posterior_consensus.sources.samples import made_already, one_of, samples_of
from posterior_consensus.sources.stores import are_large, in_memory, is_store, stored_draws, written
from posterior_consensus.sources.variables import client_of, found_labels, is_elsewhere


def as_partition_draws(
    data: Any,
    var_name: str | None = None,
    *,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    store: str | os.PathLike[str] | None = None,
    progressbar: bool = True,
) -> PartitionDraws:
    """Convert posterior draws of cluster labels from arrays, files, tables or posteriors.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, dict, path, PartitionDraws or Summary
        Labels in any form below. They are integers of any numbering, strings, or integer-valued floats, and may switch
        from draw to draw.

        - Arrays and lists, also of JAX, PyTorch and others: draws x items, or chains x draws x items.
        - A DataFrame: a row per draw and a column per item; see Notes.
        - A dict: arrays by name, all chains x draws x items or all draws x items.
        - A path: a NetCDF or Zarr file, a NumPy file, a table of text or a store. A list of tables has one per chain.
        - PartitionDraws are returned as they are; allocation probabilities, as labels sampled from them.
        - A Summary or PartitionAccumulator: its draws.
    var_name : str, optional
        Name of the label variable. By default, the only variable with the sample dimensions, one further dimension and
        labels as values. In a table, the columns of that name: ``z`` for ``z[1]``, ``z[2]``, ..., or Stan's ``z.1``.
    group : str
        Group of an InferenceData, DataTree or file; tables and arrays have none.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws. By default as in ArviZ 1: the attribute ``sample_dims`` of the data, else the
        setting ``rcParams["data.sample_dims"]``, usually "chain" and "draw". If these are absent, "sample" is used.
    item_dim : str, optional
        Dimension that runs over items; by default the remaining dimension.
    weights : array_like, optional
        Weight of each draw, of shape (n_draws,) or of the sample dimensions' shape; not negative, in any unit. A
        DataArray is paired by `chain` and `draw` if both sides have them; so is a Series with such an index.
    log_weights : array_like, optional
        Logarithms of the weights, up to a constant; minus infinity for a weight of 0.
    store : path, optional
        New NetCDF file for the labels. By default they are in memory, or in a temporary file if they come from a file
        and are large; see Notes.
    progressbar : bool
        Whether to show progress and time left while labels are written to or read from a store.

    Returns
    -------
    PartitionDraws
        Labels numbered by first appearance, with items, chains and weights.

    Raises
    ------
    ValueError
        If labels are missing, negative or not integers, a dimension or variable is missing or ambiguous, there are
        no draws or no items, or the weights do not fit. The message names the argument, what came and what is allowed.
    TypeError
        If `data` is of no kind listed above.
    BlockingIOError
        If another process writes to `store`.
    OSError
        If the disk has no room for the labels.

    Warns
    -----
    UserWarning
        If an array seems to have another order of axes: more than 16 chains, and fewer draws than chains or at most 16
        items; or more items than draws, and mainly one label in most rows. Also if the rows of a table look like items.

    See Also
    --------
    as_allocation_probabilities : Convert allocation probabilities.
    as_pair_similarity : Convert a similarity matrix, or labels of which some are missing.
    PartitionAccumulator : Collect draws from a running sampler.

    Notes
    -----
    A table (DataFrame, .csv, .tsv or .txt, also .gz) has a row per draw and a column per item; names of columns become
    the items' coordinate. Columns ``chain`` and ``draw``, also ``.chain``, ``.iteration`` and ``iter``, or such levels
    of the index, name chains and draws. Without them all rows are one chain. If columns are elements of variables, such
    as ``z[1]``, other columns are ignored. CmdStan's warm-up draws are dropped. Refused are columns that count or name
    rows, several rows per draw, and draws as columns.

    Variables of files and of dask larger than a quarter of the memory budget are read in blocks. If the labels are
    still larger than a quarter of it, they are kept in a store: a NetCDF file with checksums, from which functions read
    blocks of items. Pass its path as `data` to use it again. An interrupted store is written anew. A temporary store is
    in the system's directory for temporary files (``TMPDIR``) and is removed when no draws use it.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[5, 5, 2], [1, 1, 1]])
    >>> draws.labels
    array([[0, 0, 1],
           [0, 0, 0]], dtype=uint8)
    >>> draws.n_clusters
    array([2, 1])
    """
    if store is not None and isinstance(data, (PartitionAccumulator, PairSource, HasDraws)):
        raise ValueError(f"`store` must be None for {type(data).__name__}, whose labels have their place already.")
    weights = one_of(weights, log_weights)
    data = from_store(data, progressbar=progressbar)
    if isinstance(data, PairSource):
        named = {"var_name": var_name, "group": group, "sample_dims": sample_dims, "item_dim": item_dim}
        return draws_of(made_already(data, weights, **named)).labels_only()
    with found_labels(data, var_name, group, sample_dims, item_dim, stay=store is not None) as (labels, dims, item_dim):
        name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
        samples, items = samples_of(labels, dims, weights, name), Items.along(labels, item_dim)
        if store is None and (client := client_of(labels)) is not None:
            return PartitionDraws(items, samples, canonical_blocks(labels.data, name, client))
        shape = samples.n_draws, items.n_items
        if store is None and memory.fits(labels.nbytes / memory.SHARE_OF_READING):
            codes, n_codes = as_codes(labels.values, name, place_in(labels))
            return PartitionDraws(items, samples, LabelsInMemory(*canonical_rows(codes.reshape(shape), n_codes)))
        blocks = LabelBlocks(labels, name)
        parts = [(stripe.rows, partial(blocks.canonical, stripe)) for stripe in blocks.stripes()]
        if store is None and not (is_elsewhere(labels) and are_large(shape, blocks.dtype)):
            return PartitionDraws(items, samples, in_memory(parts, shape, blocks.dtype))
        path = None if store is None else as_path("store", store)
        return written(parts, blocks.dtype, items, samples, store=path, progressbar=progressbar)


def from_store(data: Any, *, progressbar: bool = True) -> Any:
    """Draws of a summary, an accumulator or a store; other data are returned as they are."""
    if isinstance(data, HasDraws):
        return data.draws
    if isinstance(data, PartitionAccumulator):
        return data.draws()
    if is_accumulated(data):
        return read_draws(as_path("data", data))
    return stored_draws(as_path("data", data), progressbar=progressbar) if is_store(data) else data
