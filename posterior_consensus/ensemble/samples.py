"""The sample axis: where each draw comes from, what it weighs, and means over draws with their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.autocorrelation import effective_size
from posterior_consensus.ensemble.items import Floats, difference, positions
from posterior_consensus.ensemble.partitions import as_array

_IDS = ("chain", "draw")
_PAIRED = "Draws are paired by `chain` and `draw`; arrays without these, such as `.values`, by place."

FEWEST_DRAWS = 4  # of each chain, that give a Monte Carlo standard error
_MOST_BATCHES = 10  # of a chain: long enough for slow chains, and more would hardly make an error more precise


@dataclass(frozen=True, eq=False)
class Samples:
    """Posterior draws with chains and weights.

    Attributes
    ----------
    chain, draw : ndarray of shape (n_draws,)
        Where each draw comes from.
    weights : ndarray of shape (n_draws,), dtype float64
        Weight of each draw; they sum to 1, and are 1 / n_draws if they are equal.
    named : bool
        Whether chains and draws have names of their own; else they are numbered from 0.
    """

    chain: npt.NDArray[Any]
    draw: npt.NDArray[Any]
    weights: Floats
    named: bool = True

    @classmethod
    def of_one_chain(cls, n_draws: int) -> Samples:
        """Draws of equal weight, numbered from 0 in chain 0."""
        number = np.arange(n_draws)
        return cls(np.zeros_like(number), number, np.full(n_draws, 1.0 / n_draws), named=False)

    @classmethod
    def along(cls, values: xr.DataArray) -> Samples:
        """Take the draws that an array of :meth:`array` runs over."""
        return cls(values["chain"].values, values["draw"].values, values["weight"].values)

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.weights.size

    @cached_property
    def is_weighted(self) -> bool:
        """Whether the weights differ."""
        return bool(np.any(self.weights != self.weights[0]))

    @property
    def coords(self) -> dict[str, tuple[str, npt.NDArray[Any]]]:
        """Chain and draw as coordinates of the dimension "sample", which runs over all draws."""
        return {"chain": ("sample", self.chain), "draw": ("sample", self.draw)}

    @property
    def coords_and_weights(self) -> dict[str, tuple[str, npt.NDArray[Any]]]:
        """These coordinates and ``weight``."""
        return self.coords | {"weight": ("sample", self.weights)}

    def array(self, values: npt.NDArray[Any], name: str, **attrs: str) -> xr.DataArray:
        """Dress one value per draw, shape (n_draws,), in the draws' coordinates and weights."""
        return xr.DataArray(values, self.coords_and_weights, ("sample",), name, attrs)

    @cached_property
    def chains(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of each chain's draws, in the order in which the chains appear."""
        _, first, inverse = np.unique(self.chain, return_index=True, return_inverse=True)
        return [np.flatnonzero(inverse == k) for k in np.argsort(first)]

    @property
    def chain_names(self) -> list[Any]:
        """Name of each of :attr:`chains`."""
        return [self.chain.item(rows[0]) for rows in self.chains]

    @property
    def shortest(self) -> int:
        """Number of draws of the shortest chain."""
        return min(rows.size for rows in self.chains)

    @property
    def shape(self) -> tuple[int, ...]:
        """Chains and draws of each, if these are equally many and in order; else the number of draws."""
        lengths = {rows.size for rows in self.chains}
        in_order = np.array_equal(np.concatenate(self.chains), np.arange(self.n_draws))
        return (len(self.chains), lengths.pop()) if in_order and len(lengths) == 1 else (self.n_draws,)

    def in_order(self, given: Any, name: str, *, more: bool = False) -> npt.NDArray[Any]:
        """Take an array over draws in the order of these draws, by chain and draw if both sides have them.

        Parameters
        ----------
        given : array_like
            Of shape (n_draws,) or, where chains are equally long and in order, (n_chains, n); or a DataArray over
            "chain" and "draw", over "sample", or with the draws first.
        name : str
            Name in error messages.
        more : bool
            Whether further dimensions may follow those of the draws.

        Returns
        -------
        ndarray of shape (n_draws, ...)

        Raises
        ------
        ValueError
            If it is of other draws, or has another shape.
        """
        if isinstance(given, xr.DataArray):
            given = self._by_name(given, name)
        values = as_array(given, name)
        for own in (self.shape, (self.n_draws,)):
            if values.shape[: len(own)] == own and (more or values.ndim == len(own)):
                return values.reshape(self.n_draws, *values.shape[len(own) :])
        wanted = f"({self.n_draws},)" + (f" or {self.shape}" if len(self.shape) > 1 else "")
        what = "have the draws first" if more else "be one number per draw"
        raise ValueError(f"{name} must {what}, of shape {wanted}; got shape {values.shape}. {_PAIRED}")

    def _by_name(self, given: xr.DataArray, name: str) -> Any:
        """The array with the draws first, in the order of these draws if it names its own."""
        present = (dims for dims in (_IDS, ("sample",), ("draw",)) if set(dims) <= set(given.dims))
        dims = next(present, given.dims[:1])
        given = given.transpose(*dims, ...)
        if len(dims) == 2 and not set(dims) <= set(given.indexes):
            first: dict[str, Any] = {"chain": self.chain_names, "draw": self.draw[self.chains[0]]}
            return by_name(given, {dim: pd.Index(names) for dim, names in first.items()}, name)
        sizes = {dim: given.sizes[dim] for dim in dims}
        ids = {dim: given[dim].variable for dim in _IDS if dim in given.coords and set(given[dim].dims) <= set(dims)}
        if len(self.chains) == 1:
            ids.setdefault("chain", xr.Variable((), self.chain[0]))
        if len(ids) < 2 or np.prod(list(sizes.values())) != self.n_draws:
            return given
        chain, draw = (ids[dim].to_base_variable().set_dims(sizes).values.ravel() for dim in _IDS)
        order = Samples(chain, draw, self.weights)._order_of(self, name)
        return given if order is None else given.values.reshape(self.n_draws, *given.shape[len(dims) :])[order]

    def order_of(self, others: Samples, name: str) -> npt.NDArray[np.intp]:
        """Position of each of the others among these draws, those of `name`; by place if one side has no names."""
        if self.n_draws != others.n_draws:
            raise ValueError(f"{name} must be of the same {others.n_draws} draws; got {self.n_draws}.")
        order = self._order_of(others, name)
        return np.arange(self.n_draws) if order is None else order

    def _order_of(self, others: Samples, name: str) -> npt.NDArray[np.intp] | None:
        """Position of each of the others among these; None if they differ and one side has no names."""
        found, wanted = (pd.MultiIndex.from_arrays([one.chain, one.draw], names=_IDS) for one in (self, others))
        order = positions(wanted, found)
        if order is None and self.named and others.named:
            ids = [index.map("chain {0[0]}, draw {0[1]}".format) for index in (wanted, found)]
            why = difference(ids[0], ids[1], "draws")
            raise ValueError(f"{name} must be of the same draws; {why}. {_PAIRED}")
        return order

    @property
    def batches(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of min(10, floor(sqrt(L))) successive batches of nearly equal length of each chain of L draws."""
        return [
            batch for rows in self.chains for batch in np.array_split(rows, min(_MOST_BATCHES, int(np.sqrt(rows.size))))
        ]

    def batch_factors(self) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Batches, and what the distance of each one's mean to that of all draws is multiplied by.

        With that factor, the squares of these distances add up to the square of the mean's standard error; see
        :func:`similarity_mcse`. NaN where one batch has all the weight.
        """
        batches = self.batches
        weights = np.array([self.weights[batch].sum() for batch in batches])
        others = 1.0 - np.array([batch.size for batch in batches]) / self.n_draws
        factors, has_others = np.full(len(batches), np.nan), weights < self.weights.sum()
        inflation = np.sqrt(len(batches) / max(len(batches) - 1, 1))
        np.divide(inflation * weights * others, 1.0 - weights, out=factors, where=has_others)
        return list(zip(batches, factors.tolist(), strict=True))

    def error_by_batches(self, mean: Floats, mean_of: Callable[[npt.NDArray[np.intp]], Floats]) -> Floats:
        """Monte Carlo standard error of a mean of any shape, from `mean_of` the rows of each batch.

        NaN if a chain has fewer than four draws; see :func:`similarity_mcse`.
        """
        if self.shortest < FEWEST_DRAWS:
            return np.full(mean.shape, np.nan)
        squares = np.zeros(mean.shape)
        for rows, factor in self.batch_factors():
            squares += np.square(factor * (mean_of(rows) - mean))
        return np.sqrt(squares)

    @property
    def effective_draws(self) -> float:
        """Kish's effective number of draws: a mean of so many equally weighted ones has the same variance.

        1 / sum_t w_t^2, with weights that sum to 1; `n_draws` if they are equal. It ignores the correlation of
        successive draws and the function whose mean is wanted [1]_.

        References
        ----------
        .. [1] Elvira, Martino and Robert (2022), International Statistical Review 90(3), 525-550.
           https://doi.org/10.1111/insr.12500
        """
        return float(1.0 / np.square(self.weights).sum()) if self.is_weighted else float(self.n_draws)

    def mean(self, values: Floats) -> Floats:
        """Posterior mean of a function of the partition given at each draw, shape (..., n_draws)."""
        if not self.is_weighted:
            return values.mean(axis=-1)
        # Weights sum to 1 but for rounding: seen from one draw, a constant keeps its value and a share is at most 1.
        origin = values[..., int(self.weights.argmax())].astype(np.float64)
        return origin + (values - origin[..., np.newaxis]) @ self.weights

    def mcse(self, values: Floats) -> Floats:
        """Monte Carlo standard error of :meth:`mean`, from the chains' effective sample size and the weights.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        ndarray of shape (...)
            NaN where the draws cannot tell: fewer than four draws in a chain, one draw with all the weight, or a
            function that varies but not among the draws compared. 0 for a constant.

        Notes
        -----
        The error is that of the mean of the jackknife's pseudo-values [1]_, less a constant

            (N - 1) w_t (f_t - mean f) / (1 - w_t).

        For equal weights those are the deviations themselves. For unequal weights they are close to what the delta
        method gives for a ratio of two means, N w_t (f_t - mean f), except for draws of large weight. Leaving out a
        draw with nearly all the weight moves the mean to that of the other draws, and the error reflects this. The
        standard deviation of the pseudo-values is taken over all draws. Their effective sample size is that over chains
        [2]_, cut to the length of the shortest; the size is then scaled to all draws.

        References
        ----------
        .. [1] Miller (1974), Biometrika 61(1), 1-15. https://doi.org/10.1093/biomet/61.1.1
        .. [2] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
           https://doi.org/10.1214/20-BA1221
        """
        error = np.full(values.shape[:-1], np.nan)
        if self.shortest < FEWEST_DRAWS or self.weights.max() == 1.0:
            return error
        deviations = values - self.mean(values)[..., np.newaxis]
        pseudo = (self.n_draws - 1) * self.weights / (1.0 - self.weights) * deviations
        error[np.ptp(values[..., self.weights > 0], axis=-1) == 0] = 0.0
        chains = self.by_chain(pseudo)
        moving = np.isnan(error) & (np.ptp(chains, axis=(-2, -1)) > 0)
        if np.any(moving):
            size = effective_size(chains[moving]) * self.n_draws / (chains.shape[-2] * chains.shape[-1])
            error[moving] = pseudo[moving].std(axis=-1, ddof=1) / np.sqrt(size)
        return error

    def mcse_and_ess(self, values: Floats) -> tuple[Floats, Floats]:
        """Monte Carlo standard error of :meth:`mean`, and how many independent draws give a mean of the same error.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        mcse, ess : ndarray of shape (...)
            :meth:`mcse`, and the variance over its square; NaN where that is NaN or 0.
        """
        error = self.mcse(values)
        variance = self.mean(np.square(values - self.mean(values)[..., np.newaxis]))
        return error, np.divide(variance, np.square(error), out=np.full(error.shape, np.nan), where=error > 0)

    @property
    def about_weights(self) -> str:
        """What the weights leave, in words."""
        return f"Kish's effective number {self.effective_draws:.4g}, largest weight {self.weights.max():.2%}"

    def facts(self) -> list[tuple[str, str]]:
        """Names and values of what to show of the draws."""
        lengths = ", ".join(sorted({str(rows.size) for rows in self.chains}))
        return [
            ("draws", f"{self.n_draws}{', weighted: ' + self.about_weights if self.is_weighted else ''}"),
            ("chains", f"{len(self.chains)} of {lengths} draws"),
        ]

    def by_chain(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Stack values of shape (..., n_draws) by chain, (..., n_chains, n); n is the length of the shortest."""
        return np.stack([values[..., rows[: self.shortest]] for rows in self.chains], axis=-2)

    @property
    def addends(self) -> tuple[Floats, float]:
        """Weights to add before one division by their sum, and that sum; ones, whose sums are exact, if equal."""
        weights = self.weights if self.is_weighted else np.ones(self.n_draws)
        return weights, float(weights.sum())

    def at_quantiles(self, quantiles: float | Floats) -> npt.NDArray[np.intp]:
        """Row numbers of the draws at these quantiles of the weights, between 0 and 1."""
        return np.searchsorted(self._cumulative_weights, quantiles)

    @cached_property
    def _cumulative_weights(self) -> Floats:
        return np.cumsum(self.weights)[:-1]  # without the last sum, which may be below 1 by rounding

    def weighted(self, weights: Floats) -> Samples:
        """Return the draws with these weights, which are divided by their sum."""
        uniform = np.all(weights == weights[0])
        return replace(self, weights=np.full(self.n_draws, 1.0 / self.n_draws) if uniform else weights / weights.sum())

    def take(self, rows: npt.NDArray[np.intp]) -> Samples:
        """Keep some draws, by row number; their weights sum to 1 again, and equal ones where all of them were 0."""
        weights = self.weights[rows]
        return Samples(self.chain[rows], self.draw[rows], weights, self.named).weighted(weights)

    def rows(self, by: Literal["isel", "sel"], **wanted: Any) -> npt.NDArray[np.intp]:
        """Let xarray choose by position or by value among the chains, and the draws within each: `chain` and `draw`."""

        def positions_of(dim: str, ids: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
            along = xr.DataArray(np.arange(ids.size), coords={dim: ids}, dims=dim)
            try:
                return np.atleast_1d(getattr(along, by)({dim: wanted[dim]}).values)
            except (IndexError, KeyError, TypeError, ValueError) as error:
                first, last = (0, ids.size - 1) if by == "isel" else (ids[0], ids[-1])
                raise type(error)(f"`{dim}` must lie among {first} to {last}; got {wanted[dim]!r}.") from None

        chosen = positions_of("chain", self.chain[[rows[0] for rows in self.chains]])
        rows = [self.chains[k][positions_of("draw", self.draw[self.chains[k]])] for k in chosen]
        if not sum(map(len, rows)):
            error = IndexError if by == "isel" else KeyError
            asked = ", ".join(f"{dim}={value!r}" for dim, value in wanted.items() if value != slice(None))
            raise error(f"`chain` and `draw` must leave at least one of the {self.n_draws} draws; got {asked}.")
        return np.concatenate(rows)


def evenly_spaced(length: int, most: int) -> npt.NDArray[np.intp]:
    """Positions of at most so many of `length` values, evenly spaced from the first to the last."""
    return np.linspace(0, length - 1, min(length, most)).astype(np.intp)


def by_name(given: xr.DataArray, wanted: Mapping[str, pd.Index], name: str) -> xr.DataArray:
    """Take an array in the order of the wanted names along its dimensions; by place if it has no names."""
    for dim, names in wanted.items():
        if dim in given.indexes and given.sizes[dim] == len(names):
            order = positions(names, given.indexes[dim])
            if order is None:
                why = difference(names, given.indexes[dim], f"{dim}s")
                raise ValueError(
                    f"{name} must be of the same draws; the coordinates of {dim!r} differ: {why}. {_PAIRED}"
                )
            given = given.isel({dim: order})
    return given
