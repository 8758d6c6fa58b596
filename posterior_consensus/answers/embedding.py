"""Spectral coordinates of the items, from the posterior similarity matrix."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.evaluate.similarity import similarity_operator
from posterior_consensus.runtime.arguments import check_count, check_flag
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.eigenvectors import leading_of
from posterior_consensus.sources.conversion import as_source


def item_embedding(draws: Any, *, n_axes: int = 2, center: bool = True) -> xr.DataArray:
    """Compute coordinates of the items in which similar items are close (a spectral embedding).

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition, or a similarity matrix alone.
    n_axes : int
        Number of coordinates, at most the number of items.
    center : bool
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
        If `n_axes` is not an integer, or `center` is not a bool.

    See Also
    --------
    plot_items_map : the items on the first two axes.

    Notes
    -----
    Let H be the one-hot matrix of all draws, with a row for each item and a column for each cluster of each draw. The
    columns of draw t are multiplied by the square root of its weight. Then H H' is the posterior similarity matrix.
    With the singular value decomposition H = U S V', the coordinates are the leading columns of U S. Over all axes, the
    squared distance of two items is 2 (1 - PSM_ij). With `center`, the columns of H are centred first. The coordinates
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
    check_flag("center", center)
    number = check_count("n_axes", n_axes)
    source = as_source(draws)
    n = source.n_items
    if number > n:
        raise ValueError(f"`n_axes` must be at most the number of items, {n}; got {number}.")
    operator = similarity_operator(source)
    with one_blas_thread():  # the sums must not depend on the number of threads
        variation = float(n)  # the trace: the sum of the eigenvalues
        if center:
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
    source.items.check_no("axis")
    return xr.DataArray(
        places,
        dims=(source.items.dim, "axis"),
        coords=dict(source.items.coords) | {"axis": np.arange(number), "share": ("axis", shares)},
        name="embedding",
        attrs={"long_name": "coordinates of each item; similar items are close"},
    )


def _centred(operator: LinearOperator) -> LinearOperator:
    """Operator J A J with the centring matrix J."""

    def product(vectors: Floats) -> Floats:
        columns = vectors.reshape(len(vectors), -1)
        moved = operator @ (columns - columns.mean(axis=0))
        return (moved - moved.mean(axis=0)).reshape(vectors.shape)

    return LinearOperator(operator.shape, dtype=np.float64, matvec=product, matmat=product)
