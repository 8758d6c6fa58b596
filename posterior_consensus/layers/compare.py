"""compare_layers(): how the partitions of several layers differ in the same draw."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.layers.distances import layer_distances
from posterior_consensus.layers.record import LayerComparison
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.arguments import check_between, check_count
from posterior_consensus.sources.layers import as_layers

_ALL_PAIRS = 50  # layers, of more of which in an order those are compared that are at most so many steps apart
_LAGS = 20


def compare_layers(
    layers: Any,
    *,
    loss: str | PartitionLoss | None = None,
    max_lag: int | None = None,
    prob: float = 0.9,
    progressbar: bool = True,
) -> LayerComparison:
    """Compare the partitions of several layers in the same draw: how far apart they are, and where the change is.

    Parameters
    ----------
    layers : Layers or any data that :func:`as_layers` takes
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``vi(a=0.5)``; by default "vi".
    max_lag : int, optional
        Largest number of steps between two layers that are compared, if layers have an order. By default all pairs are
        compared, and of more than 50 layers in an order those at most 20 steps apart.
    prob : float in (0, 1)
        Probability of the intervals.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    LayerComparison

    Raises
    ------
    ValueError
        If `loss` is not one between two partitions, `max_lag` is below 1 or the layers have no order, `prob` is not
        between 0 and 1, or the layers are invalid as :func:`as_layers` says.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> first, last = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    >>> draws = np.array([[first, first, last], [last, last, first]] * 20)
    >>> found = pc.compare_layers(draws)
    >>> found.distances["expected_loss"].sel(layer=0).values.round(3)
    array([0., 0., 1.])
    >>> found.largest_change[:2]
    (1, 2)
    """
    layers = as_layers(layers)
    record = as_loss(loss, kind=PartitionLoss)
    prob, pairs = check_between("prob", prob, 1), _pairs(layers, max_lag)
    distances, losses = layer_distances(layers, pairs, record, prob, progressbar)
    return LayerComparison(
        distances=distances,
        changes=_changes(layers.samples, losses) if layers.ordered and len(layers) > 1 else None,
        dim=layers.dim,
        prob=prob,
        loss=record,
        n_draws=layers.samples.n_draws,
    )


def _pairs(layers: Layers, max_lag: int | None) -> npt.NDArray[np.intp]:
    """Positions (n_pairs, 2) of the layers to compare, each with itself too."""
    n_layers = len(layers)
    if max_lag is None:
        max_lag = _LAGS if layers.ordered and n_layers > _ALL_PAIRS else n_layers
    elif not layers.ordered:
        raise ValueError(
            f"`max_lag` must be None for layers without an order; got {max_lag!r}. Or say ordered=True to as_layers."
        )
    one, other = np.triu_indices(n_layers)
    near = other - one <= check_count("max_lag", max_lag)
    return np.stack([one[near], other[near]], axis=1)


def _changes(samples: Samples, losses: Floats) -> xr.Dataset:
    """How probably each step has the largest loss, from the losses (n_steps, n_draws); NaN is no loss."""
    largest = losses == np.fmax.reduce(losses)
    shares = largest / np.maximum(largest.sum(axis=0), 1)
    shares[np.isnan(losses).any(axis=1)] = np.nan
    columns = {"p_largest": samples.mean(shares), "p_largest_mcse": samples.mcse(shares)}
    return xr.Dataset({name: ("step", values) for name, values in columns.items()})
