"""Distances between successive draws of a chain, and its burn-in."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.diagnostics.burn_in import FEWEST_DRAWS, end_of_burn_in
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.evaluate.expectation import losses_of_draws, paired_losses
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.sources.conversion import as_draws

_STORED_SAMPLE = {"sample": "sequence_sample", "chain": "sequence_chain", "draw": "sequence_draw"}
_COLUMNS = ("n_draws", "burn_in", "settled", "first_draw", "step")
_STORED_COLUMNS = {name: f"burn_in_{name}" for name in _COLUMNS} | {"burn_in": "burn_in"}
_REFERENCES = 100  # draws that represent the second half


@dataclass(frozen=True, eq=False, repr=False)
class SequentialDistances(Stored):
    """Distances between successive draws of each chain, and its burn-in.

    Returned by :func:`diagnostics.sequential_distances`.

    Attributes
    ----------
    steps : xarray.DataArray of shape (sample,)
        Distance of each draw from the draw `lag` earlier in its chain, in the loss's unit, with coordinates ``chain``
        and ``draw``; NaN for the first `lag` draws of a chain.
    to_second_half : xarray.DataArray of shape (sample,)
        Mean distance of each draw from the draws of the second half of its chain, which determines the burn-in.
    burn_in : xarray.Dataset
        Over ``chain``: ``n_draws``; ``burn_in``, the number of draws to discard at the start; ``settled``, whether the
        rule found the end of the burn-in (if not, half of the chain is discarded); ``first_draw``, the name of the
        first draw kept; and ``step``, the mean of `steps` over draws kept.
    kept : ndarray of int
        Row numbers of the draws after the burn-in: ``draws.take(result.kept)``.
    loss : PartitionLoss
        Loss that measures distance.
    lag : int
        Number of draws between compared draws.
    """

    _figure = "diagnostics.plot_sequence"

    steps: xr.DataArray = field(metadata=stored_as.array("sequence_steps", _STORED_SAMPLE))
    to_second_half: xr.DataArray = field(metadata=stored_as.array("sequence_to_half", _STORED_SAMPLE))
    burn_in: xr.Dataset = field(metadata=stored_as.table(_STORED_COLUMNS, rename={"chain": "burn_in_chain"}))
    kept: npt.NDArray[np.intp] = field(metadata=stored_as.values("sequence_kept", "sequence_kept_draw"))
    loss: PartitionLoss = field(metadata=stored_as.loss("sequence_"))
    lag: int = field(metadata=stored_as.attribute("sequence_lag"))

    @property
    def settled(self) -> bool:
        """Whether the end of the burn-in was found in every chain."""
        return bool(self.burn_in["settled"].all())

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the burn-in of each chain."""
        return self.burn_in.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        total = self.steps.size
        facts = [
            ("kept", f"{self.kept.size} of {total} draws"),
            ("distance", f"{display.name_and_unit(self.loss)}, from the draw {self.lag} before"),
        ]
        if not self.settled:
            settled = self.burn_in["settled"].values
            names = ", ".join(str(name) for name in self.burn_in["chain"].values[~settled])
            chains = f"chain{'s' * int(np.sum(~settled) > 1)} {names}"
            why = f"not yet settled in the second half, or fewer than {FEWEST_DRAWS} draws. Run longer chains."
            facts.append(("not settled", f"{chains}: {why}"))
        chains = display.counted(self.burn_in.sizes["chain"], "chain")
        state = "settled" if self.settled else "not settled"
        return f"SequentialDistances: {chains}, {state}", facts, self.to_dataframe()


def sequential_distances(draws: Any, *, loss: str | PartitionLoss | None = None, lag: int = 1) -> SequentialDistances:
    """Compute the distance between successive draws of each chain, and its burn-in.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        The chains from their first draw on; tuning draws that the sampler has dropped cannot be judged.
    loss : str or PartitionLoss, optional
        Name in LOSSES, such as ``"nmi"``, or a record; by default "vi". In a loss that is not symmetric, the earlier
        draw is the estimate.
    lag : int
        Number of draws between compared draws of a chain.

    Returns
    -------
    SequentialDistances
        Distances of the draws, and burn-in of each chain.

    Raises
    ------
    ValueError
        If `lag` is below 1, or the draws are invalid as for :func:`as_partition_draws`.

    See Also
    --------
    diagnostics.plot_sequence : Plot the distances.
    diagnose : Check whether the chains agree after the burn-in.

    Notes
    -----
    The distance between successive draws [1]_ shows how fast a chain moves, not where it is. The burn-in is therefore
    determined from f_t, the mean distance of draw t from at most 100 evenly spaced draws of the second half of its
    chain. The rule is MSER-5 [2]_ [3]_: of means of five draws y_1, ..., y_m, discard the first d such that

        (m - d)^-2 sum_{k > d} (y_k - mean_{k > d} y)^2,

    the squared standard error of the mean of the rest, is smallest over all d that keep a tenth of the chain and 50
    draws. If this d is in the second half, the chain has not settled. The same holds if d is in the second half both
    for the distance from the third quarter and for the distance from the last quarter, as after a late change of mode.
    The page on convergence reports error rates. Chains of fewer than 100 draws are not judged.

    The rule examines each chain by itself, so a chain that settles in one of several modes appears settled; use
    :func:`diagnose` to compare chains. It misses a move in the last tenth of a chain, or in the last fifth of 200
    draws. Weights are ignored.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR, appendix E.
    .. [2] White (1997), Simulation 69(6), 323-334. https://doi.org/10.1177/003754979706900601
    .. [3] White, Cobb and Spratt (2000), Proceedings of the 2000 Winter Simulation Conference, 755-760.
       https://doi.org/10.1109/WSC.2000.899033

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> rng = np.random.default_rng(1)
    >>> start, later = np.zeros((20, 6), int), rng.integers(2, size=(180, 6))
    >>> found = pc.diagnostics.sequential_distances(np.concatenate([start, later]))
    >>> found.burn_in["burn_in"].item(), found.settled
    (20, True)
    >>> found.steps.values[1:3]
    array([0., 0.])
    """
    draws, record, lag = as_draws(draws).as_sampled(), as_loss(loss, kind=PartitionLoss), check_count("lag", lag)
    steps, to_half = np.full(draws.n_draws, np.nan), np.empty(draws.n_draws)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    kept = []
    for rows in draws.samples.chains:
        if rows.size > lag:
            steps[rows[lag:]] = paired_losses(draws, rows[:-lag], rows[lag:], record)
        to_half[rows], *to_quarters = _to_second_half(draws, rows, record)
        end, settled = end_of_burn_in(to_half[rows])
        if not any(end_of_burn_in(trace)[1] for trace in to_quarters):
            end, settled = rows.size // 2, False
        kept.append(rows[end:])
        left = steps[rows[end:]]
        step = float(np.nanmean(left)) if np.any(~np.isnan(left)) else np.nan
        for name, value in zip(columns, (rows.size, end, settled, draws.samples.draw[rows[end]], step), strict=True):
            columns[name].append(value)
    by_chain = {name: ("chain", values) for name, values in columns.items()}
    return SequentialDistances(
        steps=_trace(draws, steps, "steps", record),
        to_second_half=_trace(draws, to_half, "to_second_half", record),
        burn_in=xr.Dataset(by_chain, {"chain": draws.samples.chain_names}),
        kept=np.sort(np.concatenate(kept)),
        loss=record,
        lag=lag,
    )


def _to_second_half(draws: PartitionDraws, rows: npt.NDArray[np.intp], loss: PartitionLoss) -> tuple[Floats, ...]:
    """Mean distances of a chain's draws from draws of its second half, of its third and of its last quarter."""
    places = np.unique(np.linspace(rows.size // 2, rows.size - 1, _REFERENCES).astype(np.intp))
    distances = losses_of_draws(places, draws.take(rows), loss)
    middle = places.size // 2
    traces = []
    for part in (slice(None), slice(middle), slice(middle, None)):
        # A draw's distance 0 from itself would lower the means of the half's own draws.
        others = np.full(rows.size, places[part].size)
        others[places[part]] -= 1
        traces.append(distances[part].sum(axis=0) / np.maximum(others, 1))
    return tuple(traces)


def _trace(draws: PartitionDraws, values: Floats, name: str, loss: PartitionLoss) -> xr.DataArray:
    coords = draws.samples.coords
    return xr.DataArray(values, dims=("sample",), coords=coords, name=name, attrs={"units": loss.unit})
