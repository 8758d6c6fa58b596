"""Labels of any origin become PartitionDraws, one checked and canonical object that all else works on."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from posterior_consensus.ensemble.dask_labels import canonical_blocks
from posterior_consensus.ensemble.draws import PartitionDraws, draws_of
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import HasDraws, as_codes, canonical_rows
from posterior_consensus.runtime import memory, sizes
from posterior_consensus.runtime.arguments import as_path
from posterior_consensus.sources.accumulate import PartitionAccumulator, read_draws
from posterior_consensus.sources.batches import is_accumulated
from posterior_consensus.sources.blocks import LabelBlocks
from posterior_consensus.sources.places import place_in
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
        Labels may be integers from 0 or 1 or with gaps, strings, or integer-valued floats, and their names may switch
        from draw to draw. Arrays and lists are draws x items or chains x draws x items, a DataFrame has a row for each
        draw and a column for each item, a dict has arrays by name, all of chains x draws x items, or all of draws x
        items. A path leads to a NetCDF or Zarr file, a NumPy file or a table of text, see Notes; a list of tables has
        one for each chain. An array of another library, such as JAX, is taken as NumPy's. PartitionDraws pass as they
        are, allocation probabilities as labels sampled from them. A Summary gives its draws, and a
        PartitionAccumulator, or the path of its store, its draws so far.
    var_name : str, optional
        Name of the label variable. By default the only variable that can be one: it has the sample dimensions, one
        more, and labels. Of a table, the columns of that name: ``z`` for ``z[1]``, ``z[2]``, ..., or Stan's ``z.1``.
    group : str
        Group of an InferenceData, DataTree or file; tables and arrays have none.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws. By default those of ArviZ 1: the attribute ``sample_dims`` of the data, else the
        setting ``rcParams["data.sample_dims"]``, which is "chain" and "draw". If neither is there, ``"sample"``, as
        ``az.extract`` makes it, is taken.
    item_dim : str, optional
        Dimension that runs over items; by default the one that is left.
    weights : array_like, optional
        Weight of each draw, of shape (n_draws,) or of the sample dimensions' shape; not negative, in any unit. A
        DataArray is paired by `chain` and `draw` if both sides have them.
    log_weights : array_like, optional
        Their logarithms instead, up to a constant; minus infinity for a weight of 0.
    store : path, optional
        New NetCDF file for the labels, see Notes. By default they are in memory, or in a temporary file if they come
        from a file and are large.
    progressbar : bool
        Whether the bytes that are written to a store, and later those that are read of it, are shown with the time
        left.

    Returns
    -------
    PartitionDraws

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
        If there is no room for the labels.

    Warns
    -----
    UserWarning
        If an array has more than 16 chains, and fewer draws than chains or at most 16 items; if it has more items than
        draws, and most rows have mainly one label, as if it were transposed; or if the rows of a table look like items.

    Notes
    -----
    Variables of Zarr or NetCDF files and of dask that take more than a quarter of the memory budget are read in blocks,
    at most twice. Their labels are kept in memory if these take no more than a quarter of it, else in a store, of which
    each function reads blocks of items. A store is a NetCDF file, which ``xr.open_dataset`` reads as well; its path as
    `data` gives the draws again. Checksums detect damage. A store is there once it is finished: after an error, Ctrl-C
    or the death of the process it is made anew. A temporary one goes when no draws need it any more, at the latest when
    the process ends. Its place is that of the system's temporary files (``TMPDIR``).

    Tables (.csv, .tsv, .txt, also with .gz) have a row for each draw and a column for each item, as R's ``write.csv``
    makes them of a matrix of draws x items. A first line of names, quoted or not numbers, becomes the items'
    coordinate; names of rows are left out. Columns ``chain`` and ``draw`` (or ``.chain`` and ``.iteration``, as R's
    posterior calls them, or ``iter``) say where a row comes from; without them all rows are one chain. The same holds
    of a DataFrame, where these may be levels of the index. A column that counts or names the rows, a row for each item
    of a draw, and draws as columns are refused. If columns are elements of variables, ``z[1]``, ``z[2]``, all others
    are left out. Files of CmdStan are taken as they are, but for draws of the warm-up. A NumPy file (.npy, .npz with
    one array) has draws x items or chains x draws x items.

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
        return draws_of(made_already(data, var_name, item_dim, weights)).labels_only()
    with found_labels(data, var_name, group, sample_dims, item_dim, stay=store is not None) as (labels, dims, item_dim):
        name = f"the labels of {labels.name!r}" if labels.name is not None else "`data`"
        samples, items = samples_of(labels, dims, weights, name), Items.along(labels, item_dim)
        if store is None and (client := client_of(labels)) is not None:
            return PartitionDraws(items, samples, canonical_blocks(labels.data, name, client))
        shape = samples.n_draws, items.n_items
        if store is None and memory.fits(labels.nbytes / sizes.SHARE_OF_READING):
            codes, n_codes = as_codes(labels.values, name, place_in(labels))
            return PartitionDraws(items, samples, LabelsInMemory(*canonical_rows(codes.reshape(shape), n_codes)))
        blocks = LabelBlocks(labels, name)
        parts = [(stripe.rows, partial(blocks.canonical, stripe)) for stripe in blocks.stripes()]
        if store is None and not (is_elsewhere(labels) and are_large(shape, blocks.dtype)):
            return PartitionDraws(items, samples, in_memory(parts, shape, blocks.dtype))
        path = None if store is None else as_path("store", store)
        return written(parts, blocks.dtype, items, samples, store=path, progressbar=progressbar)


def from_store(data: Any, *, progressbar: bool = True) -> Any:
    """Give the draws of a summary or an accumulator, or those in a store; anything else as it is."""
    if isinstance(data, HasDraws):
        return data.draws
    if isinstance(data, PartitionAccumulator):
        return data.draws()
    if is_accumulated(data):
        return read_draws(Path(data))
    return stored_draws(Path(data), progressbar=progressbar) if is_store(data) else data
