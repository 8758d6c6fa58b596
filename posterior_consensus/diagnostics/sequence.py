"""Distances between successive draws of a chain, and its burn-in, by MSER-5."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import losses_of_draws, paired_losses
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.sentences import Sentence, advice
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_draws

_STORED_SAMPLE = {"sample": "sequence_sample", "chain": "sequence_chain", "draw": "sequence_draw"}
_COLUMNS = ("n_draws", "burn_in", "settled", "first_draw", "step")
_STORED_COLUMNS = {name: f"burn_in_{name}" for name in _COLUMNS} | {"burn_in": "burn_in"}
_REFERENCES = 100  # draws that represent the second half
_FEWEST_JUDGED = 100
_BATCH = 5  # draws per batch mean
_KEPT, _FEWEST_KEPT = 0.1, 10  # smallest share and number of batches kept; fewer can have a small error by chance
_CLEAR = 5.0  # standard deviations of the later draws; larger differences are clear


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

    _figure = "draws.plot_sequence"

    steps: xr.DataArray = field(metadata=stored_as.array("sequence_steps", _STORED_SAMPLE))
    to_second_half: xr.DataArray = field(metadata=stored_as.array("sequence_to_half", _STORED_SAMPLE))
    burn_in: xr.Dataset = field(metadata=stored_as.table(_STORED_COLUMNS, rename={"chain": "burn_in_chain"}))
    kept: Positions = field(metadata=stored_as.values("sequence_kept", "sequence_kept_draw"))
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
        lines = [
            ("kept", f"{self.kept.size:,} of {total:,} draws"),
            ("distance", f"{display.name_and_unit(self.loss)}, from the draw {self.lag} before"),
        ]
        if not self.settled:
            settled = self.burn_in["settled"].values
            names = ", ".join(str(name) for name in self.burn_in["chain"].values[~settled])
            chains = f"chain{'s' * int(np.sum(~settled) > 1)} {names}"
            why = f"not yet settled in the second half, or fewer than {_FEWEST_JUDGED} draws. Run longer chains."
            lines.append(("not settled", f"{chains}: {why}"))
        chains = display.counted(self.burn_in.sizes["chain"], "chain")
        state = "settled" if self.settled else "not settled"
        return f"SequentialDistances: {chains}, {state}", lines, self.to_dataframe()


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
        If `lag` is below 1, `draws` are independent runs, or they are invalid as for :func:`as_partition_draws`.

    See Also
    --------
    SequentialDistances.plot : Plot the distances.
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
    if not draws.samples.series:
        raise ValueError(
            f"`draws` must be successive draws of chains; got {draws.n_draws} independent runs, whose order says "
            "nothing. `diagnose` computes the mean distance between two runs."
        )
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


def _to_second_half(draws: PartitionDraws, rows: Positions, loss: PartitionLoss) -> tuple[Floats, ...]:
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


def clear_burn_in(traces: Floats, chains: Sequence[Positions]) -> list[int]:
    """Number of draws in each chain's clear burn-in; 0 for none.

    In some trace of (n_traces, n_draws), most of these draws are outside the range of all chains' later draws, and the
    means of both differ by more than five standard deviations of the later draws. Slow
    chains, and chains that stay in a mode that others visit, typically have no such trace.
    """
    lengths = [0] * len(chains)
    for trace in traces:
        cuts = [end if settled else 0 for end, settled in (end_of_burn_in(trace[rows]) for rows in chains)]
        rest = np.concatenate([trace[rows[cut:]] for rows, cut in zip(chains, cuts, strict=True)])
        for k, cut in enumerate(cuts):
            before = trace[chains[k][:cut]]
            outside = (before < rest.min()) | (before > rest.max())
            if 2 * outside.sum() > cut and abs(before.mean() - rest.mean()) > _CLEAR * rest.std():
                lengths[k] = max(lengths[k], cut)
    return lengths


def burn_in_in_words(ends: Mapping[object, int]) -> list[Sentence]:
    """Sentences on the burn-in and its remedy, from the draws by name of the chain; none if there is no burn-in."""
    longest = max(ends.values(), default=0)
    if not longest:
        return []
    names = [str(name) for name, end in ends.items() if end]
    who = f"Chain{'s' * (len(names) > 1)} {display.joined(names)} begin{'s' * (len(names) == 1)}"
    if 1 < len(names) == len(ends):
        who = "All chains begin"
    most = "about" if len(names) == 1 else "up to about"
    return [
        Sentence(f"{who} with a burn-in of {most} {longest} draws, as `pc.diagnostics.sequential_distances` shows."),
        advice(f"Leave it out first: `draws.isel(draw=slice({longest}, None))`."),
    ]


def end_of_burn_in(trace: Floats) -> tuple[int, bool]:
    """Number of draws to discard at the start of a trace (n_draws,), and whether the rule determined it.

    Half of the draws if it did not: the trace changes in its second half, or has fewer than 100 draws.
    """
    half = trace.size // 2
    if trace.size < _FEWEST_JUDGED:
        return half, False
    n_batches = trace.size // _BATCH
    # The incomplete batch is at the start, where draws are likeliest to be discarded.
    spare = trace.size - n_batches * _BATCH
    batches = trace[spare:].reshape(n_batches, _BATCH).mean(axis=1)
    best = int(_squared_errors(batches).argmin())
    if best >= n_batches // 2:
        return half, False
    return (best * _BATCH + spare if best else 0), True


def _squared_errors(values: Floats) -> Floats:
    """Squared standard error of the mean without the first 0, 1, ... values, assuming independence."""
    spread = np.ptp(values)
    if spread == 0:
        return np.zeros(1)
    backwards = ((values - values.mean()) / spread)[::-1]
    left = np.arange(1.0, values.size + 1)
    squares = np.cumsum(backwards**2) - np.cumsum(backwards) ** 2 / left
    squares[squares < ROUNDING] = 0.0
    fewest = max(_FEWEST_KEPT, int(np.ceil(_KEPT * values.size)))
    return (squares / left**2)[::-1][: values.size - fewest + 1]
