"""Items as vectors: spectral coordinates, and A-strings, indicators of an item's clusters in the draws."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.ensemble.similarity import similarity_operator
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_count, check_flag
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import leading_of
from posterior_consensus.sources.conversion import as_draws, as_partition_draws, as_source


def item_embedding(draws: Any, *, n_axes: int = 2, centred: bool = True) -> xr.DataArray:
    """Compute coordinates of the items in which similar items are close (a spectral embedding).

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone. A pair that no run has counts as never
        co-clustered.
    n_axes : int
        Number of coordinates, at most the number of items.
    centred : bool
        Whether the coordinates have mean 0. If not, their inner products approximate the similarities.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_axes), dtype float64
        Named ``embedding``, over the items and ``axis``. The coordinate ``share`` is each axis' share of the total
        variation.

    Raises
    ------
    ValueError
        If `n_axes` is not between 1 and the number of items, or the draws are invalid, see :func:`as_partition_draws`.
    TypeError
        If `n_axes` is not an integer, or `centred` is not a bool.

    See Also
    --------
    plot_items_map : the items on the first two axes.

    Notes
    -----
    Let H be the one-hot matrix of all draws, with a row for each item and a column for each cluster of each draw. The
    columns of draw t are multiplied by the square root of its weight. Then H H' is the posterior similarity matrix.
    With the singular value decomposition H = U S V', the coordinates are the leading columns of U S. Over all axes, the
    squared distance of two items is 2 (1 - PSM_ij). With `centred`, the columns of H are centred first. The coordinates
    are then its principal component scores, which equal classical scaling of these distances [1]_. Neither H nor the
    similarity matrix is formed beyond 1,000 items.

    For allocation probabilities and for a similarity matrix alone, the coordinates are the leading eigenvectors of the
    matrix times the square roots of their eigenvalues. Negative eigenvalues, possible for a matrix that does not come
    from draws, count as 0. The sign of each axis makes its largest coordinate positive.

    References
    ----------
    .. [1] Gower (1966), Biometrika 53(3-4), 325-338. https://doi.org/10.1093/biomet/53.3-4.325

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> places = pc.item_embedding(draws)
    >>> places.values.round(2)
    array([[-0.64, -0.03],
           [-0.64, -0.03],
           [ 0.52,  0.36],
           [ 0.75, -0.3 ]])
    >>> places["share"].values.round(2)
    array([0.88, 0.12])
    """
    check_flag("centred", centred)
    number = check_count("n_axes", n_axes)
    source = as_source(draws).in_fixed_order()
    n = source.n_items
    if number > n:
        raise ValueError(f"`n_axes` must be at most the number of items, {n}; got {number}.")
    operator = similarity_operator(source)
    with one_blas_thread():  # the sums must not depend on the number of threads
        variation = float(n)  # the trace: the sum of the eigenvalues
        if centred:
            variation -= float(np.sum(operator @ np.ones(n))) / n
            operator = _centred(operator)
        vectors = np.empty((n, 0))
        if variation > ROUNDING * n:  # otherwise all items coincide
            vectors = leading_of(operator, number).vectors[:, :number]
        values = np.sum(vectors * (operator @ vectors), axis=0)
    values[values < ROUNDING * n] = 0.0
    places = np.zeros((n, number))  # further eigenvalues are 0
    places[:, : values.size] = vectors * np.sqrt(values)
    places *= np.where(places[np.abs(places).argmax(axis=0), np.arange(number)] < 0, -1.0, 1.0)
    shares = np.zeros(number)
    if variation > ROUNDING * n:
        shares[: values.size] = values / variation
    coords = {"axis": np.arange(number), "share": ("axis", shares)}
    embedding = source.items.array(places, "embedding", (..., "axis"), coords)
    return embedding.assign_attrs(long_name="coordinates of each item; similar items are close")


def _centred(operator: LinearOperator) -> LinearOperator:
    """Operator J A J with the centring matrix J."""

    def product(vectors: Floats) -> Floats:
        columns = vectors.reshape(len(vectors), -1)
        moved = operator @ (columns - columns.mean(axis=0))
        return (moved - moved.mean(axis=0)).reshape(vectors.shape)

    return LinearOperator(operator.shape, dtype=np.float64, matvec=product, matmat=product)


def a_strings(draws: Any) -> xr.DataArray:
    """Convert draws to A-strings: for each item an indicator matrix of draws by clusters.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_draws, most clusters), dtype int8
        Over the items, ``"sample"`` and ``"drawn_cluster"``, with the coordinates ``chain`` and ``draw``. Weighted
        draws also have ``weight``. The clusters of a draw are numbered by first appearance. Beyond its last cluster,
        columns are zero.

    Raises
    ------
    ValueError
        If the draws are invalid as :func:`as_partition_draws` says.
    MemoryError
        If the A-strings take more than the memory budget.

    See Also
    --------
    from_a_strings : the inverse.
    summed_impurity : an objective that is defined on A-strings.

    Notes
    -----
    Singh, Mukherjee, Peng and Xu (NIPS 2007) define this encoding in "Ensemble clustering using semidefinite
    programming". The rows of an item's matrix, joined, are its row of the one-hot matrix on which method "kcc" runs
    k-means. The methods of this package do not form this array.

    Examples
    --------
    >>> from posterior_consensus.answers.encodings import a_strings
    >>> strings = a_strings([[0, 0, 1], [0, 1, 2]])
    >>> strings.values[2]
    array([[0, 1, 0],
           [0, 0, 1]], dtype=int8)
    """
    source = as_draws(draws)
    n_items, n_draws, width = source.n_items, source.n_draws, int(source.backend.n_clusters.max())
    memory.check(n_items * n_draws * width, f"A-strings of {n_items} items, {n_draws} draws and {width} clusters")
    strings = np.equal.outer(source.labels.T, np.arange(width)).astype(np.int8)
    samples = source.samples
    coords = samples.coords_and_weights if samples.is_weighted else samples.coords
    return source.items.array(strings, "a", (..., "sample", "drawn_cluster"), coords)


def from_a_strings(strings: Any) -> PartitionDraws:
    """Convert A-strings to draws of the partition.

    Parameters
    ----------
    strings : DataArray or array_like of shape (n_items, n_draws, n_clusters)
        Indicators as :func:`a_strings` returns them. Each row, of one item in one draw, has one 1 and otherwise 0.
        Coordinates of a DataArray are kept.

    Returns
    -------
    PartitionDraws
        The same draws, with canonical labels.

    Raises
    ------
    ValueError
        If there are not three dimensions, or a row does not consist of one 1 and zeros.

    See Also
    --------
    a_strings : the inverse.

    Examples
    --------
    >>> from posterior_consensus.answers.encodings import from_a_strings
    >>> from_a_strings([[[1, 0], [1, 0]], [[1, 0], [0, 1]]]).labels
    array([[0, 0],
           [0, 1]], dtype=uint8)
    """
    values = as_array(strings, "strings")
    if values.ndim != 3:
        raise ValueError(f"`strings` must have three dimensions, items, draws and clusters; got {values.ndim}.")
    if not (np.isin(values, (0, 1)).all() and (values.sum(axis=2) == 1).all()):
        raise ValueError("`strings` must have one 1 and otherwise 0 for each item in each draw.")
    labels = values.argmax(axis=2).T
    if not isinstance(strings, xr.DataArray):
        return as_partition_draws(labels)
    item_dim, sample_dim, _ = strings.dims
    coords = {name: value for name, value in strings.coords.items() if value.dims in ((item_dim,), (sample_dim,))}
    weights = coords.pop("weight", None)
    array = xr.DataArray(labels, dims=(sample_dim, item_dim), coords=coords, name="z")
    return as_partition_draws(
        array, sample_dims=str(sample_dim), item_dim=str(item_dim), weights=None if weights is None else weights.values
    )
