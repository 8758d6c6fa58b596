"""How much does the answer depend on the loss? The partitions of least expected loss along its parameter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.consensus import consensus_partition
from posterior_consensus.consensus.methods import check_no_method
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.evaluate.expectation import draw_losses, mean_loss, partition_loss
from posterior_consensus.losses.partition_losses import binder, vi
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.storage import stored
from posterior_consensus.runtime.arguments import as_generator, check_between
from posterior_consensus.runtime.progress import track
from posterior_consensus.sources.door import as_draws

Floats = npt.NDArray[np.float64]

_SAME = 1e-12  # of an expected loss: sums in another order differ by rounding


def loss_path(
    draws: Any,
    loss: Literal["binder", "vi"] = "vi",
    values: npt.ArrayLike | None = None,
    *,
    random_seed: int | np.random.Generator | np.random.SeedSequence | None = None,
    progressbar: bool = True,
    **options: Any,
) -> xr.Dataset:
    """Find the consensus partition for many values of the loss's parameter, from coarse to fine or back.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    loss : {"vi", "binder"}
        Whose parameter is varied.
    values : array_like, optional
        For "vi" the costs a in (0, 2), by default 0.1, 0.2, ..., 1.9, from fine to coarse; for "binder" the pair
        thresholds tau in (0, 1), by default 0.05, 0.1, ..., 0.95, from coarse to fine. They are sorted.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same path.
    progressbar : bool
        Whether to show progress where the work takes more than a second.
    **options
        Further arguments of :func:`consensus_partition`, such as ``method`` and ``max_clusters``.

    Returns
    -------
    xarray.Dataset
        Over the dimension ``tau`` (with the coordinate ``a``) or ``a``: ``labels``, with the items' dimension too;
        ``n_clusters``; ``expected_loss`` at that value, its ``mcse`` and effective sample size ``ess``, below 100 of
        which the error is rough; ``expected_binder`` and ``expected_vi``, the same measures for all values, so that the
        partitions can be compared; ``distance_to_previous``, the variation of
        information in bits to the partition of the value before, NaN for the first: 0 along a plateau.

    Raises
    ------
    ValueError
        If `loss` is another, a value is out of range, or the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    plot_loss_path : the path as a picture.
    pair_threshold : one threshold, calibrated on the draws.

    Notes
    -----
    Every partition found is tried at every value, and the best is taken, so that none on the path is worse at its value
    than another one on it. It follows that the number of pairs together never grows with Binder's tau, nor the entropy
    of the partition with VI's a, whether or not the searches found the optima. The number of clusters need not follow
    at every step: a large cluster and single items can give way to fewer clusters of middle size.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]]
    >>> path = pc.loss_path(draws, "binder", values=[0.2, 0.5, 0.9], random_seed=1)
    >>> path["n_clusters"].values
    array([1, 2, 4])
    >>> path["labels"].sel(tau=0.5).values
    array([0, 0, 1, 1], dtype=int32)
    >>> path["distance_to_previous"].values
    array([nan,  1.,  1.])
    """
    draws = as_draws(draws)
    check_no_method(loss)
    dim, factory = _family(loss)
    grid = _grid(dim, values)
    a = 2 * (1 - grid) if dim == "tau" else grid
    rng = as_generator(random_seed)
    searches = track(a, "Loss path", progressbar=progressbar)
    found = np.stack([_search(draws, factory(float(one)), rng, options) for one in searches])
    labels, losses = _best_for_each(draws, found, a, factory)
    measure = {"loss": loss.lower(), "unit": factory().unit}
    distances = [partition_loss(before, after) for before, after in pairwise(labels)]
    path = stored(
        draws.items.array(labels[0], "labels"),
        {
            dim: (dim, grid, {"long_name": "pair threshold" if dim == "tau" else "cost of separating"}),
            "a": (dim, a, {"long_name": "cost of separating"}),
            "labels": ((dim, draws.items.dim), labels),
            "n_clusters": (dim, labels.max(axis=1).astype(np.int64) + 1),
            "expected_loss": (dim, draws.samples.mean(losses), measure),
            "mcse": (dim, draws.samples.mcse(losses), measure),
            "ess": (dim, draws.samples.ess(losses)),
            "expected_binder": (dim, mean_loss(draws, labels, binder()), {"loss": "binder", "unit": ""}),
            "expected_vi": (dim, mean_loss(draws, labels, vi()), {"loss": "vi", "unit": "bits"}),
            "distance_to_previous": (dim, np.array([np.nan, *distances]), {"loss": "vi", "unit": "bits"}),
        },
        {"loss": loss.lower(), "n_draws": draws.n_draws},
    )
    return path.set_coords("a").assign_coords(draws.items.coords)


def _family(loss: Any) -> tuple[str, Callable[..., PartitionLoss]]:
    name = loss.lower() if isinstance(loss, str) else ""
    if name not in ("binder", "vi"):
        given = repr(loss) if isinstance(loss, str) else f"{type(loss).__name__} {loss}"
        raise ValueError(f"`loss` must be 'binder' or 'vi', whose parameter is varied; got {given}.")
    return ("tau", binder) if name == "binder" else ("a", vi)


def _grid(dim: str, values: Any) -> Floats:
    upper = 1 if dim == "tau" else 2
    if values is None:
        return np.arange(1, 20) * upper / 20
    grid = np.unique([check_between("values", value, upper) for value in np.atleast_1d(values).tolist()])
    if grid.size == 0:
        raise ValueError("`values` must hold at least one value; got none.")
    return grid


def _search(
    draws: PartitionDraws, loss: PartitionLoss, rng: np.random.Generator, options: dict[str, Any]
) -> npt.NDArray[Any]:
    return consensus_partition(draws, loss, random_seed=rng, progressbar=False, **options).labels.values


def _best_for_each(
    draws: PartitionDraws, found: npt.NDArray[Any], a: Floats, factory: Callable[..., PartitionLoss]
) -> tuple[npt.NDArray[Any], Floats]:
    """The best of all partitions found, for each cost, and its losses against every draw."""
    # Losses are linear in a, so that those at two costs give them at all.
    at_half, at_three_halves = (draw_losses(found, draws, factory(one)) for one in (0.5, 1.5))
    slopes = at_three_halves - at_half
    beyond = a[:, np.newaxis] - 0.5
    expected = draws.samples.mean(at_half) + beyond * draws.samples.mean(slopes)
    own = np.arange(a.size)
    best = expected.argmin(axis=1)
    best = np.where(expected[own, best] < expected[own, own] - _SAME, best, own)
    return found[best], at_half[best] + beyond * slopes[best]
