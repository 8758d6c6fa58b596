"""The parameter of a loss: partitions along it, and the pair threshold that is calibrated on the draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.partition_loss import partition_loss
from posterior_consensus.answers.scored_links import scored_links
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.consensus.methods import check_no_method
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.threshold import calibrated, consistent_interval
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import draw_losses, mean_loss
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.partition_losses import binder, vi
from posterior_consensus.losses.record import Loss, PartitionLoss, pairs
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords, Stored, as_dataset
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_between
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.sources.conversion import as_draws, as_source

_DIM = "value_on_path"  # name of the dimension in stored results
_COLUMNS = (
    "n_clusters",
    "precision",
    "recall",
    "expected_loss",
    "mcse",
    "ess",
    "expected_binder",
    "expected_vi",
    "distance_to_previous",
)


@dataclass(frozen=True, eq=False, repr=False)
class LossPath(InWords):
    """The partitions of minimum expected loss along the parameter of a loss; made by :func:`loss_path`.

    Attributes
    ----------
    partitions : xarray.DataArray of shape (n_values, n_items), dtype int32
        The partition found for each value, over ``tau`` or ``a``.
    table : xarray.Dataset
        Over the same dimension, with the coordinate ``a``. ``expected_loss`` at each value has the standard error
        ``mcse`` and the effective sample size ``ess``; below 100 the error is rough. ``expected_binder`` and
        ``expected_vi`` are computed with the same loss at all values, so that the partitions can be compared.
        ``distance_to_previous`` is the variation of information in bits to the partition of the previous value: 0 along
        a plateau, NaN for the first value. ``n_clusters`` is the number of clusters. ``precision`` is the mean
        similarity of the pairs that the partition co-clusters, NaN if there are none. ``recall`` is their share of the
        sum of the similarities of all pairs, NaN if that is 0. Without draws, errors and ``expected_vi`` are NaN.
    loss : PartitionLoss
        The loss with the default of its parameter.
    n_draws : int or None
        Number of draws; None for similarities or scored pairs alone.
    stopped : str
        "interrupted" if Ctrl-C ended the searches, else empty.
    missing : tuple of float
        Values that were not searched because of Ctrl-C; partitions and table leave them out.
    """

    _figure = "paths.plot_loss_path"

    partitions: xr.DataArray = field(metadata=stored_as.array("labels_on_path", of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("{}_on_path", _COLUMNS))
    loss: PartitionLoss = field(metadata=stored_as.loss("path_"))
    n_draws: int | None = field(metadata=stored_as.attribute("path_draws"))
    stopped: str = field(default="", metadata=stored_as.attribute("path_stopped"))
    missing: tuple[float, ...] = field(default=(), metadata=stored_as.names("path_missing"))
    _of_runs: ClassVar = "path_independent"

    @property
    def parameter(self) -> str:
        """The pair threshold "tau" of Binder's loss, or the cost "a" of VI."""
        return _losses_along(self.loss.name)[0]

    def to_dataset(self) -> xr.Dataset:
        """Convert to a Dataset that any file format stores.

        Returns
        -------
        xarray.Dataset
            Partitions and table, over the dimension ``value_on_path``.
        """
        return as_dataset(self._along(_DIM, {_DIM: self.table[self.parameter].values}))

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree | Mapping[str, Any]) -> Self:
        """Restore a result from its Dataset.

        Parameters
        ----------
        dataset : xarray.Dataset, xarray.DataTree or dict
            As returned by :meth:`to_dataset`, or what :func:`attach` wrote.

        Returns
        -------
        LossPath
            The result that was stored.
        """
        read = super().from_dataset(dataset)
        dim, grid = read.parameter, read.table[_DIM].values
        return read._along(dim, {dim: grid, "a": (dim, _separation_costs(dim, grid))})

    def _along(self, dim: str, coords: Mapping[str, Any]) -> Self:
        """Rename the dimension of the path."""
        items = Items.along(self.partitions, str(self.partitions.dims[1]))
        partitions = items.array(self.partitions.values, "partitions", (dim, ...), coords)
        columns = {name: (dim, self.table[name].values) for name in _COLUMNS}
        return replace(self, partitions=partitions, table=xr.Dataset(columns, coords))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the path.

        Returns
        -------
        pandas.DataFrame
            A row for each value.
        """
        return self.table.to_dataframe()[[*({"a"} - {self.parameter}), *_COLUMNS]]

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        values, clusters = self.table[self.parameter].values, self.table["n_clusters"].values
        words = self.words
        same = int(np.sum(self.table["distance_to_previous"].values[1:] == 0))
        lines = [
            ("loss", display.name_and_unit(self.loss)),
            ("clusters", f"{clusters.min()} to {clusters.max()}"),
            ("same as before", f"{same} of {display.counted(values.size - 1, 'step')}"),
            (words.draws, "none" if self.n_draws is None else f"{self.n_draws:,}"),
            *display.about_errors(self.table["ess"].dropna(self.parameter), words),
            *display.about_interrupt(self.stopped, self.missing, "values"),
        ]
        title = f"LossPath: {display.counted(values.size, 'value')} of {self.parameter}"
        return f"{title} from {values[0]:g} to {values[-1]:g}", lines, self.to_dataframe()


def loss_path(
    draws: Any,
    *,
    loss: Literal["binder", "vi"] | None = None,
    values: npt.ArrayLike | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> LossPath:
    """Find the consensus partition for each value of a loss's parameter, to see how far it depends on the loss.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes, PairSimilarity or ScoredPairs
        Posterior draws of the partition, or similarities or scored pairs alone (:func:`as_pair_similarity`).
    loss : {"vi", "binder"}, optional
        The loss whose parameter is varied; by default "vi", without draws "binder", the only one.
    values : array_like, optional
        Values of the parameter, which are sorted. For "vi", costs a in (0, 2), by default 0.1, 0.2, ..., 1.9, from fine
        to coarse. For "binder", pair thresholds tau in (0, 1), by default 0.05, 0.1, ..., 0.95, from coarse to fine.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **options
        Further arguments of :func:`consensus_partition`, such as ``method`` and ``max_clusters``.

    Returns
    -------
    LossPath
        The partition found for each value, with its expected losses.

    Raises
    ------
    ValueError
        If `loss` is neither, or "vi" without draws, a value is out of range, or the draws are invalid, see
        :func:`as_partition_draws`.

    See Also
    --------
    LossPath.plot : the path as a figure.
    pair_threshold : one threshold, calibrated on the draws.

    Notes
    -----
    Every partition found is evaluated at every value, and the best one is kept. Hence the number of co-clustered pairs
    never increases with Binder's tau, and the entropy of the partition never increases with VI's a, even if a search
    missed its optimum. The number of clusters need not be monotone.

    Along tau, ``precision`` and ``recall`` show what a threshold costs. With X_ij the posterior similarity or score of
    a pair, precision is the mean of X_ij over the co-clustered pairs, the expected share of them that belong together.
    Recall is the sum of X_ij over these pairs, divided by that over all pairs. For scored pairs both are by single
    scores, and recall is of scored pairs: errors may have either sign, see ``precision_range`` of :func:`links`.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]]
    >>> path = pc.loss_path(draws, loss="binder", values=[0.2, 0.5, 0.9], random_seed=1)
    >>> path.table["n_clusters"].values
    array([1, 2, 4])
    >>> path.partitions.sel(tau=0.5).values
    array([0, 0, 1, 1], dtype=int32)
    >>> path.table["distance_to_previous"].values
    array([nan,  1.,  1.])
    """
    source = as_source(draws).in_fixed_order()
    check_no_method(loss)
    dim, factory = _losses_along("binder" if loss is None and source.draws is None else loss)
    if dim == "a":
        source.as_draws("loss 'vi'", lacking=True)
    grid = _grid(dim, values)
    rng = as_generator(random_seed)
    searched, stopped = _searched(
        source, [factory(float(one)) for one in _separation_costs(dim, grid)], rng, options, progressbar
    )
    grid, missing = grid[: len(searched)], tuple(grid[len(searched) :].tolist())
    a = _separation_costs(dim, grid)
    labels, expected, mcse, ess = _best_for_each(source, searched, a, factory)
    distances = [float(partition_loss(before, after)) for before, after in pairwise(labels)]
    of_pairs, precision, recall = _losses_and_shares(source, labels)
    recall = _recall_within(source, labels, [factory(float(cost)) for cost in a], recall)
    columns = (
        labels.max(axis=1).astype(np.int64) + 1,
        precision,
        recall,
        expected,
        mcse,
        ess,
        of_pairs,
        np.full(a.size, np.nan) if source.draws is None else mean_loss(source, labels, vi()),
        np.array([np.nan, *distances]),
    )
    coords = {dim: (dim, grid), "a": (dim, a)}
    table = xr.Dataset({name: (dim, column) for name, column in zip(_COLUMNS, columns, strict=True)}, coords)
    partitions = source.items.array(labels, "partitions", (dim, ...), coords)
    return LossPath(partitions, table, factory(), source.n_draws, stopped, missing, words=source.words)


def _losses_along(loss: Any) -> tuple[str, Callable[..., PartitionLoss]]:
    name = "vi" if loss is None else loss.lower() if isinstance(loss, str) else ""
    if name not in ("binder", "vi"):
        given = repr(loss) if isinstance(loss, str) else f"{type(loss).__name__} {loss}"
        raise ValueError(f"`loss` must be 'binder' or 'vi', whose parameter is varied; got {given}.")
    return ("tau", binder) if name == "binder" else ("a", vi)


def _separation_costs(dim: str, values: Floats) -> Floats:
    """Cost a of separating in VI or Binder's loss, for each value of the parameter."""
    return 2 * (1 - values) if dim == "tau" else values


def _grid(dim: str, values: Any) -> Floats:
    upper = 1 if dim == "tau" else 2
    if values is None:
        return np.arange(1, 20) * upper / 20
    grid = np.unique([check_between("values", value, upper) for value in np.atleast_1d(values).tolist()])
    if grid.size == 0:
        raise ValueError("`values` must hold at least one value; got none.")
    return grid


def _searched(
    source: PairSource,
    losses: list[PartitionLoss],
    rng: np.random.Generator,
    options: dict[str, Any],
    progressbar: bool,
) -> tuple[npt.NDArray[Any], str]:
    """Partition found for each loss until Ctrl-C, and why the search stopped: "interrupted" or empty."""
    found = []
    try:
        for loss in track(losses, "Loss path", progressbar=progressbar):
            best = consensus_partition(source, loss=loss, random_seed=rng, progressbar=False, **options)
            found.append(best.labels.values)
            if isinstance(best.info, SearchInfo | ComponentsInfo) and best.info.stopped == "interrupted":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not found:
            raise
        return np.stack(found), "interrupted"
    return np.stack(found), ""


def _best_for_each(
    source: PairSource, found: npt.NDArray[Any], a: Floats, factory: Callable[..., PartitionLoss]
) -> tuple[npt.NDArray[Any], Floats, Floats, Floats]:
    """The best of all partitions found, for each cost, its expected loss, and the error and sample size of that."""
    draws = source.draws
    # Losses are linear in a: two costs determine them at all costs.
    if draws is None:
        at_half, at_three_halves = (mean_loss(source, found, factory(one))[:, np.newaxis] for one in (0.5, 1.5))
    else:
        at_half, at_three_halves = (draw_losses(found, draws, factory(one)) for one in (0.5, 1.5))
    mean = np.ravel if draws is None else draws.samples.mean
    slopes = at_three_halves - at_half
    beyond = a[:, np.newaxis] - 0.5
    expected = mean(at_half) + beyond * mean(slopes)
    own = np.arange(a.size)
    best = expected.argmin(axis=1)
    best = np.where(expected[own, best] < expected[own, own] - ROUNDING, best, own)
    losses = at_half[best] + beyond * slopes[best]
    if draws is None:
        unknown = np.full(a.size, np.nan)
        return found[best], losses[:, 0], unknown, unknown
    return found[best], draws.samples.mean(losses), *draws.samples.mcse_and_ess(losses)


@singledispatch
def _recall_within(source: PairSource, labels: npt.NDArray[Any], losses: Sequence[Loss], recall: Floats) -> Floats:
    """Expected recall (P,) of the pairs of partitions (P, n); unscored pairs count within components alone."""
    return recall


@_recall_within.register
def _(source: ScoredPairs, labels: npt.NDArray[Any], losses: Sequence[Loss], recall: Floats) -> Floats:
    if not source.unscored:
        return recall
    each = zip(labels, losses, strict=True)
    return np.array([scored_links(source, one, (), loss, None).recall for one, loss in each])


def _losses_and_shares(source: PairSource, labels: npt.NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Expected Binder loss (P,) of partitions (P, n), and expected precision and recall of their pairs.

    With B pairs co-clustered, A and C the sums of similarities over them and over all pairs, the loss at cost a is its
    scale times (2 - a) (B - A) + a (C - A): two costs determine A and C without a matrix.
    """
    n = source.n_items
    low, high = (mean_loss(source, labels, binder(a)) / binder().scale(n) for a in (0.5, 1.5))
    middle = (low + high) / 2
    h = pairs(n)
    joined = np.array([h[np.bincount(one)].sum() for one in labels])
    total = high - low + joined
    matches = np.maximum((joined + total - middle) / 2, 0.0)
    precision, recall = (
        np.minimum(np.divide(matches, of, out=np.full(of.size, np.nan), where=of > ROUNDING), 1.0)
        for of in (joined, total)
    )
    return middle * binder().scale(n), precision, recall


@dataclass(frozen=True, eq=False, repr=False)
class PairThreshold(HasLabels, Stored):
    """A pair threshold for Binder's loss, with the similarities on either side; made by :func:`pair_threshold`.

    Attributes
    ----------
    tau : float in (0, 1)
        The threshold; ``binder(tau=...)`` takes it.
    within, between : float
        Mean posterior similarity of pairs within and between the clusters of `labels`; NaN without such pairs.
    labels : xarray.DataArray of shape (n_items,), dtype int32
        The partition of the last round.
    n_rounds : int
        Number of rounds.
    converged : bool
        Whether tau has converged. False if the rounds ran out, or if there are no pairs within or no pairs between
        clusters.
    """

    tau: float = field(metadata=stored_as.number("threshold_tau"))
    within: float = field(metadata=stored_as.number("threshold_within"))
    between: float = field(metadata=stored_as.number("threshold_between"))
    labels: xr.DataArray = field(metadata=stored_as.array("threshold_labels", of_items=True))
    n_rounds: int = field(metadata=stored_as.attribute("threshold_rounds"))
    converged: bool = field(metadata=stored_as.flag("threshold_converged"))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the pairs within and between clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each kind of pair, with the number of pairs and their mean similarity.
        """
        h = pairs(self.labels.size)
        together = h[np.bincount(self.labels.values)].sum()
        return pd.DataFrame(
            {"pairs": [int(together), int(h[-1] - together)], "similarity": [self.within, self.between]},
            index=pd.Index(["within", "between"], name="clusters"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        n_clusters = int(self.labels.max()) + 1
        place = (self.tau - self.between) / (self.within - self.between) if self.within > self.between else np.nan
        lines = [
            ("consistent", consistent_interval(self.within, self.between)),
            ("tau lies", f"{place:.0%} into the interval" if np.isfinite(place) else "-"),
            ("clusters", f"{n_clusters:,} of {display.counted_items(self.labels.size, self.labels.dims[0])}"),
            ("rounds", f"{self.n_rounds}{'' if self.converged else ', not converged'}"),
        ]
        return f"PairThreshold: tau {display.number(self.tau)}", lines, self.to_dataframe()


def pair_threshold(
    draws: Any,
    *,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PairThreshold:
    """Calibrate the pair threshold tau of Binder's loss on the draws, to choose its costs from the data.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PairThreshold
        The threshold, and the mean similarities that it lies between.

    Raises
    ------
    ValueError
        If the draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    binder : the loss that takes the threshold.
    loss_path : the partitions at many thresholds.

    Notes
    -----
    The threshold chooses the loss from the posterior. Report it with the partition.

    Suppose that a draw co-clusters two items of the same cluster with probability alpha, and separates two items of
    different clusters with probability beta. For a pair of similarity X, the log-likelihood ratio of the two cases has
    the sign of X - tau, with

        tau = log(beta / (1 - alpha)) / log(alpha beta / ((1 - alpha) (1 - beta))),

    which lies between 1 - beta and alpha. The first tau is halfway between the two centres of 2-means on the
    similarities of the pairs, or of a sample of them. Each round finds the partition of minimum expected Binder loss at
    tau. It sets alpha to the mean similarity within its clusters, and 1 - beta to the mean similarity between them.
    Rounds end when tau changes by less than 0.0001. A mean over N draws is kept at least 1 / (2 N + 2) away from 0 and
    1; weighted draws count as 1 / sum(w^2) draws.

    In the random perturbation model [1]_, each draw keeps an item's true label with probability 1 - p, and otherwise
    takes one of K labels at random. Pairs then have only two similarities, 1 - x (1 - 1 / K) and x / K with
    x = p (2 - p). Every tau between them recovers the truth from enough draws. The value 1/2 lies between them only if
    p < 1 - sqrt(1 - K / (2 (K - 1))). For larger p, Binder's loss with equal costs tends to single items.

    If all pairs are equally similar, tau is 1/2. If a round ends with one cluster, or with single items only, tau does
    not change and `converged` is False.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> pc.consensus.pair_threshold(draws, random_seed=1)
    PairThreshold: tau 0.2675
      consistent  0 to 0.5
      tau lies    54% into the interval
      clusters    2 of 4 items
      rounds      2
    <BLANKLINE>
               pairs similarity
      within       2       0.50
      between      4       0.00
    """
    draws = as_draws(draws).in_fixed_order()
    threshold = calibrated(draws, as_generator(random_seed), progressbar)
    return PairThreshold(**threshold._asdict() | {"labels": draws.items.array(threshold.labels, "labels")})
