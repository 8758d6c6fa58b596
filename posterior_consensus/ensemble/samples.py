"""The sample axis: chain, draw and weight of each draw, and means over draws with their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import fdtri

from posterior_consensus.ensemble.items import difference, is_named, positions
from posterior_consensus.ensemble.partitions import as_array
from posterior_consensus.ensemble.series import effective_size
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.results.words import DRAWS, RUNS, Words
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import ROUNDING

_IDS = ("chain", "draw")
_INDEPENDENT = "independent"
_PAIRED = "{}s are paired by `chain` and `draw`; arrays without these, such as `.values`, by place."

FEWEST_DRAWS = 4  # a chain, or independent runs together, need for a Monte Carlo standard error
_MOST_BATCHES = 10  # per chain: batches stay long enough for slow chains, and more would hardly help
_TINY = np.finfo(np.float64).tiny
_LEVEL = 0.001  # of the test whether chains differ by more than their batches
_AT_ONCE = 2**18  # of many errors of probabilities
_ADDED = 4.0  # draws added to a probability's, half of them events; and events added to those that give its size


def n_batches(length: int) -> int:
    """Number of batches of a chain of this many draws."""
    return min(_MOST_BATCHES, int(np.sqrt(length)))


@dataclass(frozen=True, eq=False)
class Samples(ABC):
    """Weighted samples of a partition: draws of chains, or independent runs of programs.

    Attributes
    ----------
    chain, draw : ndarray of shape (n_draws,)
        Chain and draw number of each draw; group and name of each run.
    weights : ndarray of shape (n_draws,), dtype float64
        Weight of each draw; they sum to 1, and are 1 / n_draws if they are equal.
    named : bool
        Whether chains and draws have the user's names; otherwise they are numbered from 0.
    words : Words
        What draws and chains are called in texts and figures.
    """

    chain: npt.NDArray[Any]
    draw: npt.NDArray[Any]
    weights: Floats
    named: bool = True

    words: ClassVar[Words]
    attrs: ClassVar[dict[str, int]] = {}  # by which `along` knows independent runs

    @staticmethod
    def of_one_chain(n_draws: int) -> ChainSamples:
        """Draws of equal weight, numbered from 0 in chain 0."""
        number = np.arange(n_draws)
        return ChainSamples(np.zeros_like(number), number, np.full(n_draws, 1.0 / n_draws), named=False)

    @staticmethod
    def along(values: xr.DataArray) -> Samples:
        """Samples from an array that :meth:`array` built."""
        chain, draw, weights = (own_in(values, name).values for name in ("chain", "draw", "weight"))
        return (RunSamples if values.attrs.get(_INDEPENDENT) else ChainSamples)(chain, draw, weights)

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.weights.size

    @property
    def has_errors(self) -> bool:
        """Whether there are four draws in each chain, or four runs, enough for Monte Carlo standard errors."""
        return min(rows.size for rows in self.sequences) >= FEWEST_DRAWS

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
        """Coordinates :attr:`coords` and ``weight``."""
        return self.coords | {"weight": ("sample", self.weights)}

    def array(self, values: npt.NDArray[Any], name: str, **attrs: str) -> xr.DataArray:
        """Build a DataArray of one value per draw, shape (n_draws,), with the draws' coordinates and weights."""
        return xr.DataArray(values, self.coords_and_weights, ("sample",), name, attrs | self.attrs)

    @cached_property
    def chains(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of each chain's draws, in the order in which chains appear; or of each group of runs, sorted."""
        _, first, inverse = np.unique(self.chain, return_index=True, return_inverse=True)
        return [np.flatnonzero(inverse == k) for k in self._order_of_chains(first)]

    @abstractmethod
    def _order_of_chains(self, first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Order of the chains, which are given by their first rows and sorted by name."""

    @property
    @abstractmethod
    def series(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of draws of which each is like those before it: :attr:`chains`; none of independent runs."""

    @property
    def sequences(self) -> list[npt.NDArray[np.intp]]:
        """Row numbers of draws that may be cut into parts: each of :attr:`chains`, or all independent runs together."""
        return self.series or [np.arange(self.n_draws)]

    @property
    def has_chains(self) -> bool:
        """Whether there are chains, or several groups of runs, to speak of."""
        return len(self.chains) > 1 or bool(self.series)

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
        """(n_chains, n) if chains have equal length and are in order; else (n_draws,)."""
        lengths = {rows.size for rows in self.chains}
        in_order = np.array_equal(np.concatenate(self.chains), np.arange(self.n_draws))
        return (len(self.chains), lengths.pop()) if in_order and len(lengths) == 1 else (self.n_draws,)

    def reordered(self, given: Any, name: str, *, more: bool = False) -> npt.NDArray[Any]:
        """Reorder an array over draws to these draws, by chain and draw if both sides name them.

        Parameters
        ----------
        given : array_like
            Shape (n_draws,), or (n_chains, n) if chains have equal length and are in order. A DataArray has the
            dimensions "chain" and "draw", or "sample", or the draws first; the index of a Series or table may name
            them.
        name : str
            Name of the array in errors.
        more : bool
            Whether further dimensions may follow the draws.

        Returns
        -------
        ndarray of shape (n_draws, ...)

        Raises
        ------
        ValueError
            If the draws or the shape differ.
        """
        given = by_index(given)
        if isinstance(given, xr.DataArray):
            given = self._by_name(given, name)
        values = as_array(given, name)
        for own in (self.shape, (self.n_draws,)):
            if values.shape[: len(own)] == own and (more or values.ndim == len(own)):
                return values.reshape(self.n_draws, *values.shape[len(own) :])
        wanted = f"({self.n_draws},)" + (f" or {self.shape}" if len(self.shape) > 1 else "")
        what = f"have the {self.words.draws} first" if more else f"be one number per {self.words.draw}"
        raise ValueError(f"{name} must {what}, of shape {wanted}; got shape {values.shape}. {self._paired}")

    @property
    def _paired(self) -> str:
        """Sentence of errors on what belongs to which draw."""
        return _PAIRED.format(self.words.draw.capitalize())

    def _by_name(self, given: xr.DataArray, name: str) -> Any:
        """The array with the draws first, reordered to these draws if it names its draws."""
        present = (dims for dims in (_IDS, ("sample",), ("draw",)) if set(dims) <= set(given.dims))
        dims = next(present, given.dims[:1])
        given = given.transpose(*dims, ...)
        if len(dims) == 2 and not set(dims) <= set(given.indexes):
            first: dict[str, Any] = {"chain": self.chain_names, "draw": self.draw[self.chains[0]]}
            return reordered_by_name(given, {dim: pd.Index(names) for dim, names in first.items()}, name)
        sizes = {dim: given.sizes[dim] for dim in dims}
        ids = {dim: given[dim].variable for dim in _IDS if dim in given.coords and set(given[dim].dims) <= set(dims)}
        if len(self.chains) == 1:
            ids.setdefault("chain", xr.Variable((), self.chain[0]))
            if len(dims) == 1 and dims != ("sample",) and dims[0] in given.indexes:  # the user's name of the draws
                ids.setdefault("draw", given[dims[0]].variable)
        if len(ids) < 2 or np.prod(list(sizes.values())) != self.n_draws:
            return given
        chain, draw = (ids[dim].to_base_variable().set_dims(sizes).values.ravel() for dim in _IDS)
        order = replace(self, chain=chain, draw=draw, named=True)._order_of(self, name)
        return given if order is None else given.values.reshape(self.n_draws, *given.shape[len(dims) :])[order]

    def order_of(self, others: Samples, name: str) -> npt.NDArray[np.intp]:
        """Positions of `others` in these draws; by place if one side has no names. Errors use `name`."""
        if self.n_draws != others.n_draws:
            raise ValueError(f"{name} must be of the same {others.n_draws} {others.words.draws}; got {self.n_draws}.")
        order = self._order_of(others, name)
        return np.arange(self.n_draws) if order is None else order

    def _order_of(self, others: Samples, name: str) -> npt.NDArray[np.intp] | None:
        """Positions of `others` in these draws; None if they differ and one side has no names."""
        own, wanted = (pd.MultiIndex.from_arrays([one.chain, one.draw], names=_IDS) for one in (self, others))
        order = positions(wanted, own)
        if order is None and self.named and others.named:
            words = self.words
            ids = [index.map(f"{words.chain} {{0[0]}}, {words.draw} {{0[1]}}".format) for index in (wanted, own)]
            why = difference(ids[0], ids[1], words.draws)
            raise ValueError(f"{name} must be of the same {words.draws}; {why}. {self._paired}")
        return order

    @property
    def batches(self) -> list[npt.NDArray[np.intp]]:
        """Rows of min(10, floor(sqrt(L))) successive batches of nearly equal length, for each chain of L draws.

        Each independent run is a batch of its own.
        """
        return [batch for rows in self.sequences for batch in np.array_split(rows, self._n_batches(rows.size))]

    @abstractmethod
    def _n_batches(self, length: int) -> int:
        """Number of :attr:`batches` of one of :attr:`sequences`, of this length."""

    def batch_factors(self) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Batches, each with the factor of its mean's distance to the overall mean.

        The squared products of factor and distance sum to the squared standard error of the mean; see
        :func:`similarity_mcse`. The factor is NaN if one batch has all the weight.
        """
        return self._factors(self.batches)

    def _factors(self, parts: list[npt.NDArray[np.intp]]) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Factors of :meth:`batch_factors` of any parts of all draws."""
        weights = np.array([self.weights[part].sum() for part in parts])
        others = 1.0 - np.array([part.size for part in parts]) / self.n_draws
        factors, has_others = np.full(len(parts), np.nan), weights < self.weights.sum()
        inflation = np.sqrt(len(parts) / max(len(parts) - 1, 1))
        np.divide(inflation * weights * others, 1.0 - weights, out=factors, where=has_others)
        return list(zip(parts, factors.tolist(), strict=True))

    def error_by_batches(self, mean: Floats, mean_of: Callable[[npt.NDArray[np.intp]], Floats]) -> Floats:
        """Monte Carlo standard error of `mean`, of any shape, from the batch means that `mean_of(rows)` returns.

        NaN if a chain has fewer than four draws, or there are fewer than four runs; see :func:`similarity_mcse`.
        """
        if not self.has_errors:
            return np.full(mean.shape, np.nan)
        return np.sqrt(self.squared_errors(mean.shape, (mean_of(rows) - mean for rows in self.batches)))

    def squared_errors(self, shape: tuple[int, ...], distances: Iterable[Floats]) -> Floats:
        """Squared standard errors from the distances of the means of :attr:`batches` to the overall mean, in order."""
        factors, given = iter(self.batch_factors()), iter(distances)
        squares, of_chains, apart = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for rows, of_chain in self._factors(self.sequences):
            apart[...] = 0.0
            for _ in range(self._n_batches(rows.size)):
                (batch, factor), distance = next(factors), next(given)
                squares += np.square(factor * distance)
                apart += self.weights[batch].sum() * distance
            of_chains += np.square(of_chain * apart / max(self.weights[rows].sum(), _TINY))
        return self.by_chains_if_they_differ(squares, of_chains)

    def by_chains_if_they_differ(self, squares: Floats, of_chains: Floats) -> Floats:
        """Squared errors from batches, or from the means of whole chains where these differ by more than chance.

        If B batches of C chains vary around one mean, (B - 1) times the squared error from batches, less C - 1 times
        that from chains, is B - C times the squared error from the variance within chains. Where the ratio of the
        second to the last exceeds the quantile 0.999 of F with C - 1 and B - C degrees of freedom, chains vary beyond
        their batches, and the mean is known as well as C independent values tell, not B.
        """
        n_chains, number = len(self.sequences), len(self.batches)
        if n_chains < 2:
            return squares
        within = ((number - 1) * squares - (n_chains - 1) * of_chains) / (number - n_chains)
        limit = fdtri(n_chains - 1, number - n_chains, 1.0 - _LEVEL)
        return np.where(of_chains > limit * np.maximum(within, 0.0) + ROUNDING * squares, of_chains, squares)

    @property
    def effective_draws(self) -> float:
        """Kish's effective number of draws, 1 / sum_t w_t^2 with weights that sum to 1.

        A mean of this number of equally weighted draws has the same variance. It ignores the correlation of
        successive draws and the function averaged [1]_.

        References
        ----------
        .. [1] Elvira, Martino and Robert (2022), International Statistical Review 90(3), 525-550.
           https://doi.org/10.1111/insr.12500
        """
        return float(1.0 / np.square(self.weights).sum()) if self.is_weighted else float(self.n_draws)

    def mean(self, values: Floats) -> Floats:
        """Posterior mean of a function of the partition given at each draw, shape (..., n_draws)."""
        if not self.is_weighted:
            return self._in_order(values).mean(axis=-1)
        # Weights sum to 1 up to rounding. Relative to one draw, a constant stays exact and a share is at most 1.
        origin = values[..., int(self.weights.argmax())].astype(np.float64)
        # No product of BLAS, which sums in another order on more threads.
        return origin + np.einsum("...t,t->...", values - origin[..., np.newaxis], self.weights)

    def mcse(self, values: Floats) -> Floats:
        """Monte Carlo standard error of :meth:`mean`, from the chains' effective sample size and the weights.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        ndarray of shape (...)
            Standard error; 0 for a constant. NaN if it cannot be estimated: there are fewer than four runs, a chain has
            fewer than four draws, one draw has all the weight, or the function varies only outside the draws compared.

        Notes
        -----
        The error is the standard error of the mean of the jackknife's pseudo-values [1]_, up to a constant

            (N - 1) w_t (f_t - mean f) / (1 - w_t).

        With equal weights, these are the deviations. With unequal weights, they are close to the delta method's
        N w_t (f_t - mean f) for a ratio of two means, except for draws of large weight. Leaving out a draw with
        nearly all the weight moves the mean to the mean of the other draws, and the error reflects this. The standard
        deviation of the pseudo-values is taken over all draws. Their effective sample size is computed over chains
        cut to the length of the shortest [2]_; it is then scaled to all draws. Independent runs have an effective
        sample size of their number.

        References
        ----------
        .. [1] Miller (1974), Biometrika 61(1), 1-15. https://doi.org/10.1093/biomet/61.1.1
        .. [2] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718.
           https://doi.org/10.1214/20-BA1221
        """
        error = np.full(values.shape[:-1], np.nan)
        if not self.has_errors or self.weights.max() == 1.0:
            return error
        deviations = values - self.mean(values)[..., np.newaxis]
        pseudo = (self.n_draws - 1) * self.weights / (1.0 - self.weights) * deviations
        error[np.ptp(values[..., self.weights > 0], axis=-1) == 0] = 0.0
        moving = np.isnan(error)
        error[moving] = self._errors_of_means(pseudo[moving])
        return error

    def _in_order(self, values: Floats) -> Floats:
        """Values (..., n_draws) in the order in which they are summed."""
        return values

    @abstractmethod
    def _errors_of_means(self, values: Floats) -> Floats:
        """Standard errors (T,) of the means of traces (T, n_draws) that are not constant."""

    def mcse_and_ess(self, values: Floats) -> tuple[Floats, Floats]:
        """Monte Carlo standard error of :meth:`mean`, and its effective sample size.

        Parameters
        ----------
        values : ndarray of shape (..., n_draws)

        Returns
        -------
        mcse, ess : ndarray of shape (...)
            :meth:`mcse`, and the variance divided by its square, for independent runs :attr:`effective_draws`; NaN if
            the error is NaN or 0.
        """
        error = self.mcse(values)
        return error, self._sizes(values, error)

    @abstractmethod
    def _sizes(self, values: Floats, error: Floats) -> Floats:
        """Effective sample sizes (...) of values (..., n_draws) whose means have these errors; NaN for error 0."""

    def probability_mcse(self, indicators: Floats, like: Floats | None = None) -> Floats:
        """Monte Carlo standard error of a probability, the :meth:`mean` of indicators, also near 0 and 1.

        Parameters
        ----------
        indicators : ndarray of shape (..., n_draws)
            1 in the draws of the event, else 0; events that tie in a draw may share the 1.
        like : ndarray of shape (..., n_draws) or (n_draws,), optional
            Function of the draws that changes with the event, such as a loss if the event is that this loss is 0. By
            default the effective sample size is pooled over the indicators.

        Returns
        -------
        ndarray of shape (...)
            :meth:`probability_errors` of :meth:`mean` and :meth:`mcse`.
        """
        size = None if like is None else np.fmin(self.mcse_and_ess(like)[1], self.effective_draws)
        return self.probability_errors(self.mean(indicators), self.mcse(indicators), size)

    def probability_errors(self, probability: Floats, error: Floats, size: Floats | float | None = None) -> Floats:
        """Correct the Monte Carlo standard errors of probabilities, which are too small near 0 and 1.

        Parameters
        ----------
        probability, error : ndarray of one shape
            Means of indicators or of probabilities, and their standard errors, which are 0 for events of all draws or
            of none.
        size : ndarray or float, optional
            Effective sample size of a function that changes with the event. By default it is pooled over the events:
            the sum of p (1 - p) over the sum of squared errors. For independent runs it is :attr:`effective_draws`.

        Returns
        -------
        ndarray of the same shape
            Above 0, and NaN where `error` is NaN.

        Notes
        -----
        A probability p with standard error s has the effective sample size m = p (1 - p) / s^2. This m is too large
        if the event is rare, for a few visits hardly show that successive draws are alike. They are k = m p (1 - p)
        effective visits. If the size r of the other function is below m, four visits with this size are added:

            m' = (k + 4) / (k / m + 4 / r).

        Events of all draws or of none have m' = r, and m' is 1 at least. Two draws of the event and two others are
        added [1]_, and the error is the standard error of that share,

            p' = (m' p + 2) / (m' + 4),    error^2 = p' (1 - p') / m'.

        It is never above 1/2, nor below s if m' is above 1. The estimate remains p. The interval of two errors contains
        the probability in about 95% of samples if its centre is p', also for small probabilities.

        References
        ----------
        .. [1] Agresti and Coull (1998), The American Statistician 52(2), 119-126.
           https://doi.org/10.1080/00031305.1998.10480550
        """
        flat, errors = probability.ravel(), error.ravel()
        parts = [slice(first, first + _AT_ONCE) for first in range(0, max(flat.size, 1), _AT_ONCE)]
        if size is None:
            size = self._size_of_events((flat[part], errors[part]) for part in parts)
        sizes = np.broadcast_to(size, error.shape).reshape(-1)
        corrected = [_error_of_probability(flat[part], errors[part], sizes[part]) for part in parts]
        return np.concatenate(corrected).reshape(error.shape)

    @abstractmethod
    def _size_of_events(self, parts: Iterable[tuple[Floats, Floats]]) -> float:
        """Effective sample size pooled over events, whose probabilities and errors come in parts."""

    @property
    @abstractmethod
    def effective_weights(self) -> float:
        """Effective sample size of the weights of correlated draws; NaN if a chain has fewer than four draws."""

    @property
    def about_weights(self) -> str:
        """Effective number of draws under the weights, in words."""
        return f"Kish's effective number {self.effective_draws:.4g}, largest weight {self.weights.max():.2%}"

    def lines(self) -> list[tuple[str, str]]:
        """Names and values of the lines shown about the draws."""
        lengths = ", ".join(sorted({f"{rows.size:,}" for rows in self.chains}))
        words, weighted = self.words, f", weighted: {self.about_weights}" if self.is_weighted else ""
        lines = [(words.draws, f"{self.n_draws:,}{weighted}")]
        return [*lines, (words.chains, f"{len(self.chains)} of {lengths} {words.draws}")] if self.has_chains else lines

    def by_chain(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Stack values of shape (..., n_draws) by chain, (..., n_chains, n); n is the length of the shortest."""
        return np.stack([values[..., rows[: self.shortest]] for rows in self.chains], axis=-2)

    @property
    def addends(self) -> tuple[Floats, float]:
        """Weights for sums, and the divisor, their sum; equal weights are ones, whose sums are exact."""
        weights = self.weights if self.is_weighted else np.ones(self.n_draws)
        return weights, float(weights.sum())

    @overload
    def at_quantiles(self, quantiles: float) -> np.intp: ...

    @overload
    def at_quantiles(self, quantiles: Floats) -> npt.NDArray[np.intp]: ...

    def at_quantiles(self, quantiles: float | Floats) -> np.intp | npt.NDArray[np.intp]:
        """Row numbers of the draws at `quantiles`, between 0 and 1, of the cumulative weights."""
        return np.searchsorted(self._cumulative_weights, quantiles)

    @cached_property
    def _cumulative_weights(self) -> Floats:
        return np.cumsum(self.weights)[:-1]  # without the last sum, which may be below 1 by rounding

    def weighted(self, weights: Floats) -> Self:
        """Return the draws with these weights, normalized to sum 1."""
        uniform = np.all(weights == weights[0])
        return replace(self, weights=np.full(self.n_draws, 1.0 / self.n_draws) if uniform else weights / weights.sum())

    def row_numbers(self, rows: Any) -> npt.NDArray[np.intp]:
        """Row numbers from 0 on of the draws that NumPy's indexing selects.

        Raises
        ------
        IndexError
            If there is no such row, the mask has another length, or no draw is left.
        """
        some = f"{self.n_draws:,} {self.words.draws}"
        try:
            found = np.atleast_1d(np.arange(self.n_draws)[rows])
        except IndexError as error:
            raise IndexError(f"`rows` must select some of the {some}; {error}.") from None
        if found.ndim != 1 or found.size == 0:
            what = "none" if found.size == 0 else f"an array of shape {found.shape}"
            raise IndexError(f"`rows` must select some of the {some}, in one dimension; got {what}.")
        return found

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """Select draws by row number; weights are normalized again, and equal if all were 0."""
        weights = self.weights[rows]
        return replace(self, chain=self.chain[rows], draw=self.draw[rows], weights=weights).weighted(weights)

    def rows(self, by: Literal["isel", "sel"], **wanted: Any) -> npt.NDArray[np.intp]:
        """Row numbers of the `chain` and `draw` that xarray selects by position or by value."""

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
            requested = ", ".join(f"{dim}={value!r}" for dim, value in wanted.items() if value != slice(None))
            some = f"{self.n_draws:,} {self.words.draws}"
            raise error(f"`chain` and `draw` must leave at least one of the {some}; got {requested}.")
        return np.concatenate(rows)


@dataclass(frozen=True, eq=False)
class ChainSamples(Samples):
    """Draws of chains, in whose order each draw is like those before it; see :class:`Samples`."""

    words: ClassVar[Words] = DRAWS

    def _order_of_chains(self, first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return np.argsort(first)

    @property
    def series(self) -> list[npt.NDArray[np.intp]]:
        """The :attr:`chains`."""
        return self.chains

    def _n_batches(self, length: int) -> int:
        return n_batches(length)

    def _errors_of_means(self, values: Floats) -> Floats:
        chains, error = self.by_chain(values), np.full(len(values), np.nan)
        moving = np.ptp(chains, axis=(-2, -1)) > 0
        if moving.any():
            size = effective_size(chains[moving]) * self.n_draws / (chains.shape[-2] * chains.shape[-1])
            error[moving] = values[moving].std(axis=-1, ddof=1) / np.sqrt(size)
        return error

    def _sizes(self, values: Floats, error: Floats) -> Floats:
        variance = self.mean(np.square(values - self.mean(values)[..., np.newaxis]))
        return np.divide(variance, np.square(error), out=np.full(error.shape, np.nan), where=error > 0)

    def _size_of_events(self, parts: Iterable[tuple[Floats, Floats]]) -> float:
        spread, square = sum((np.sum(_spread_and_square(*part), axis=1) for part in parts), np.zeros(2))
        return float(spread / square) if square > 0 else self.effective_draws

    @property
    def effective_weights(self) -> float:
        """Kish's effective number of draws, less what successive weights share."""
        if not self.has_errors:
            return np.nan
        chains = self.by_chain(self.weights)[np.newaxis]
        return self.effective_draws * min(1.0, float(effective_size(chains)[0]) / chains.size)


@dataclass(frozen=True, eq=False)
class RunSamples(Samples):
    """Independent runs of programs, whose order says nothing; see :class:`Samples`.

    `chain` is the group of each run, and `draw` its name.
    """

    words: ClassVar[Words] = RUNS
    attrs: ClassVar[dict[str, int]] = {_INDEPENDENT: 1}

    def _order_of_chains(self, first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return np.arange(first.size)

    @property
    def series(self) -> list[npt.NDArray[np.intp]]:
        """None, as runs have no order."""
        return []

    def _n_batches(self, length: int) -> int:
        return length

    def _in_order(self, values: Floats) -> Floats:
        return np.sort(values, axis=-1)  # whose sum is the same, bit for bit, in any order of the runs

    def _errors_of_means(self, values: Floats) -> Floats:
        return self._in_order(values).std(axis=-1, ddof=1) / np.sqrt(self.n_draws)

    def _sizes(self, values: Floats, error: Floats) -> Floats:
        return np.where(error > 0, self.effective_draws, np.nan)

    def _size_of_events(self, parts: Iterable[tuple[Floats, Floats]]) -> float:
        return self.effective_draws

    @property
    def effective_weights(self) -> float:
        """Kish's effective number of runs; NaN for fewer than four."""
        return self.effective_draws if self.has_errors else np.nan


def _spread_and_square(probability: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Variances p (1 - p) and squared errors; 0 and 0 for events of all draws or of none."""
    varies = error > ROUNDING
    return np.where(varies, probability * (1.0 - probability), 0.0), np.where(varies, np.square(error), 0.0)


def _error_of_probability(probability: Floats, error: Floats, size: Floats) -> Floats:
    """Errors of :meth:`Samples.probability_errors`, by reciprocals of sizes, which are 0 where nothing varies."""
    spread, square = _spread_and_square(probability, error)
    own = np.divide(square, spread, out=np.zeros(spread.shape), where=spread > 0)
    visits = np.divide(np.square(spread), square, out=np.zeros(spread.shape), where=square > 0)
    inverse = np.where(own > 1 / size, own, (spread + _ADDED / size) / (visits + _ADDED))
    # Large weights leave less than a draw, whose probability would vary beyond 0 or 1.
    inverse = np.minimum(inverse, 1.0)
    shrunk = (probability + _ADDED / 2 * inverse) / (1.0 + _ADDED * inverse)
    known = np.sqrt(shrunk * (1.0 - shrunk) * inverse)
    return np.where(np.isnan(error), np.nan, known)


def evenly_spaced(length: int, most: int) -> npt.NDArray[np.intp]:
    """Positions of at most `most` of `length` values, evenly spaced from the first to the last."""
    return np.linspace(0, length - 1, min(length, most)).astype(np.intp)


def by_index(given: Any, dim: str = "draw") -> Any:
    """A Series or table whose index names chains and draws, or draws along `dim`, as a DataArray; else as it is."""
    if not isinstance(given, (pd.Series, pd.DataFrame)):
        return given
    index, columns = given.index, given.columns if isinstance(given, pd.DataFrame) else None
    if set(index.names) == set(_IDS):
        ids = {level: ("sample", index.get_level_values(level).to_numpy()) for level in _IDS}
        return xr.DataArray(given.to_numpy(), ids, ("sample", "column")[: given.ndim])
    if columns is None:
        named = index.nlevels == 1 and is_named(index)
        return xr.DataArray(given.to_numpy(), {dim: index.to_numpy()}, (dim,)) if named else given
    return xr.DataArray(given) if {index.name, columns.name} == set(_IDS) else given


def reordered_by_name(given: xr.DataArray, wanted: Mapping[str, pd.Index], name: str) -> xr.DataArray:
    """Reorder an array to the wanted names along its dimensions; by place if it has no names."""
    for dim, names in wanted.items():
        if dim in given.indexes and given.sizes[dim] == len(names):
            order = positions(names, given.indexes[dim])
            if order is None:
                why = difference(names, given.indexes[dim], f"{dim}s")
                of = f"{name} must be of the same draws; the coordinates of {dim!r} differ: {why}."
                raise ValueError(f"{of} {_PAIRED.format('Draw')}")
            given = given.isel({dim: order})
    return given


def folds(samples: Samples, number: int) -> list[npt.NDArray[np.intp]]:
    """Row numbers of at most `number` parts that are nearly independent of each other.

    Parts are whole chains if there are at least `number` chains. Otherwise, part k is the k-th section of each chain,
    or of all independent runs.
    """
    chains = samples.sequences
    if len(chains) < number:
        parts = [np.concatenate(part) for part in zip(*(np.array_split(rows, number) for rows in chains), strict=True)]
    else:
        parts = [np.concatenate(chains[first::number]) for first in range(number)]
    return [np.sort(part) for part in parts if part.size]
