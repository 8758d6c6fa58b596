"""Comparison of partitions by expected loss, and the excess of a partition that the draws chose."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import ComparedLosses, compared_losses, draw_losses, losses_between
from posterior_consensus.ensemble.partitions import Labels, alone, named_partitions
from posterior_consensus.ensemble.samples import folds
from posterior_consensus.losses.lookup import as_loss, as_loss_of_draws
from posterior_consensus.losses.record import NoiseLoss, PartitionLoss
from posterior_consensus.problems.problem import FREE, Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.runtime.arguments import RandomSeed, as_generator
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.conversion import as_draws

_CLEAR = 2.0  # standard errors; larger differences are clear
_DIMS = {"partition": "compared_partition"}  # name of the stored dimension
_COLUMNS = ("n_clusters", *ComparedLosses._fields, "clear")
_ONE_RUN = Effort(n_starts=1, n_perturbations=0)  # from a random order, next to that from the best partition
_PARTS = 4  # divisor of the difference of the halves that gives the excess


@dataclass(frozen=True, eq=False, repr=False)
class PartitionComparison(InWords):
    """Expected losses of several partitions and of their differences, returned by :func:`compare_partitions`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (partition, n_items), dtype int32
        The partitions, best first.
    table : xarray.Dataset
        Over ``partition``, best first: ``n_clusters``, ``expected_loss``, ``mcse``, ``difference`` to the best,
        ``difference_mcse``, ``ess`` (the smaller effective sample size of the two), and ``clear``, whether the
        difference exceeds its Monte Carlo error and the optimism of a choice by these draws, see
        :func:`compare_partitions`.
    excess : float
        Estimate of the excess of a partition's expected loss if these draws chose it, see :class:`ExcessLoss`. NaN if
        no difference exceeds twice its standard error, so that no partition is clearly worse.
    loss : PartitionLoss
        Loss of the comparison.
    n_draws : int
        Number of draws.
    """

    labels: xr.DataArray = field(metadata=stored_as.array("compared_labels", _DIMS, of_items=True))
    table: xr.Dataset = field(metadata=stored_as.table("compared_{}", _COLUMNS, _DIMS))
    excess: float = field(metadata=stored_as.number("comparison_excess", measured=True))
    loss: PartitionLoss = field(metadata=stored_as.loss("comparison_"))
    n_draws: int = field(metadata=stored_as.attribute("comparison_draws"))
    _of_runs: ClassVar = "comparison_independent"

    @property
    def best(self) -> Any:
        """Name of the partition of minimum expected loss."""
        return self.table["partition"].values.item(0)

    @property
    def _about_choice(self) -> str:
        """How much better a partition that the draws chose looks than it is."""
        gain = display.quantity(2 * self.excess, self.loss.unit, 2)
        return f"a partition that these {self.words.draws} chose looks better by about {gain} than it is"

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the partitions, best first."""
        return self.table.to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        names, words = self.table["partition"].values.astype(str), self.words
        open_to_doubt = names[1:][np.logical_not(self.table["clear"].values[1:])]
        lines = [
            ("best", names[0]),
            ("not clearly worse", ", ".join(open_to_doubt) or "none"),
            *([] if np.isnan(self.excess) else [("optimism", self._about_choice)]),
            ("loss", display.name_and_unit(self.loss)),
            (words.draws, f"{self.n_draws:,}"),
            *display.about_errors(self.table["ess"], words),
        ]
        table = self.to_dataframe()
        best = np.arange(len(table)) == 0  # which is compared with itself
        table["clear"] = table["clear"].astype(object).mask(best, None)
        return f"PartitionComparison: {len(names)} partitions", lines, table


def compare_partitions(draws: Any, partitions: Any, *, loss: str | PartitionLoss | None = None) -> PartitionComparison:
    """Compare partitions by posterior expected loss, with the Monte Carlo standard errors of the differences.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Draws over which losses are averaged.
    partitions : dict of str to partition, or sequence of partitions
        Result objects, DataArrays or label vectors of shape (n_items,). Without names they are numbered from 0.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``vi(a=0.5)``. By default the loss of the results compared, else "vi".

    Returns
    -------
    PartitionComparison
        Expected losses, best first, and differences from the best.

    Raises
    ------
    ValueError
        If there is no partition, a partition does not label the draws' items, `loss` is missing for results of several
        losses, or the draws are invalid as for :func:`as_partition_draws`.
    TypeError
        If `partitions` is neither a dict nor a sequence.

    See Also
    --------
    Samples.mcse : Monte Carlo standard errors from the chains.
    expected_loss : Expected losses without comparison.

    Notes
    -----
    All partitions are evaluated on the same draws, so most of the error is common to them. The standard error of a
    difference is the standard error of the mean of L(a, z_t) - L(b, z_t), typically far smaller than that of either
    loss. It shows whether the draws distinguish the two partitions, not whether the difference matters.

    A partition chosen on these draws, such as their consensus, looks better than it is: its expected loss is too small
    on them by the excess e, and another partition could be better by e. So a difference D with standard error s is
    clear if

        D - 2 e > 2 sqrt(s^2 + (2 e)^2).

    The excess is estimated by a search on two halves of the draws from the best partition, with a fixed seed, see
    :class:`ExcessLoss`. The correction is made whether or not these draws chose the best partition. It is skipped if no
    difference exceeds 2 s.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> comparison = pc.compare_partitions(draws, {"one": [0, 0, 0, 0], "two": [0, 0, 1, 1]}, loss="binder")
    >>> comparison.best
    'two'
    >>> comparison.to_dataframe()["difference"]
    partition
    two    0.000
    one    0.375
    Name: difference, dtype: float64
    """
    draws, named = as_draws(draws, lacking=True).in_fixed_order(), named_partitions(partitions, "partitions")
    if not named:
        raise ValueError("`partitions` must hold at least one partition; got none.")
    record = as_loss(loss, *named.values(), kind=PartitionLoss)
    labels = np.stack([draws.as_labels(partition, "partitions") for partition in named.values()])
    losses = compared_losses(draws, labels, record)
    order = np.argsort(losses.expected_loss, kind="stable")
    labels, losses = labels[order], ComparedLosses(*(column[order] for column in losses))
    excess = np.nan
    clear = losses.difference > _CLEAR * losses.difference_mcse
    if clear.any():
        halves = search_halves(draws, labels[0], record, np.random.default_rng(0))
        if halves.stopped:
            raise KeyboardInterrupt
        excess = halves.excess
        clear &= losses.difference - 2 * excess > _CLEAR * np.hypot(losses.difference_mcse, 2 * excess)
    # Items of noise are in no cluster of a partition that lists them.
    marked = np.stack([draws.as_marked_labels(partition, "partitions") for partition in named.values()])[order]
    numbers = marked.max(axis=1).astype(np.int64) + 1
    columns = dict(zip(_COLUMNS, (numbers, *losses, clear), strict=True))
    names = np.array(list(named))[order]
    return PartitionComparison(
        labels=draws.items.array(labels, "labels", ("partition", ...), {"partition": names}),
        table=xr.Dataset({name: ("partition", column) for name, column in columns.items()}, {"partition": names}),
        excess=excess,
        loss=record,
        n_draws=draws.n_draws,
        words=draws.words,
    )


@dataclass(frozen=True, eq=False)
class ExcessLoss:
    """Excess of a partition's expected loss over the minimum under infinitely many draws, a part of :class:`Summary`.

    Attributes
    ----------
    value : float
        Estimate of the excess, in the unit of the partition's loss.
    distance : float
        Distance between the best partitions found on two halves of the draws, under the loss of the credible ball.
    partitions : xarray.DataArray of shape (half, n_items), dtype int32
        The best partitions found on the halves.
    stopped : str
        Why a search on a half ended early: "seconds", "interrupted" for Ctrl-C, or empty.

    Notes
    -----
    Let A and B be the best partitions found on the two halves, L_A and L_B the expected losses on them, and

        X = (L_B(A) - L_B(B) + L_A(B) - L_A(A)) / 2.

    If the expected loss is quadratic near its minimum, the mean of X is four times the excess of the partition found on
    all draws: A and B each have twice the variance of this partition, and X contains the sum of both variances. Hence
    `value` is X / 4. With halves of unequal size or weight, 1/4 is replaced by the variance of all draws divided by the
    sum of the variances of the halves. The halves are whole chains, or the first and second half of a single chain.
    """

    value: float = field(metadata=stored_as.number("excess_loss"))
    distance: float = field(metadata=stored_as.number("excess_distance"))
    partitions: xr.DataArray = field(metadata=stored_as.array("excess_partitions", of_items=True))
    stopped: str = field(default="", metadata=stored_as.attribute("excess_stopped"))

    @property
    def limit(self) -> float:
        """Four times the estimate (X with equal halves); the excess is larger in one of seven posteriors or fewer."""
        return _PARTS * self.value


def excess_loss(
    draws: PartitionDraws,
    consensus: ConsensusPartition,
    metric: str | PartitionLoss,
    *,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = False,
) -> ExcessLoss:
    """Search on two halves of the draws, from the consensus and one random order, and compare the results."""
    loss = as_loss_of_draws(consensus.loss)
    draws = draws.in_fixed_order()
    best, rng = draws.items.as_marked_labels(consensus), as_generator(random_seed)
    effort = replace(_ONE_RUN, seconds=None if seconds is None else seconds / 2, progressbar=progressbar)
    found = search_halves(draws, best, loss, rng, consensus.cluster_limits, effort)
    partitions = alone(found.partitions)
    return ExcessLoss(
        value=found.excess,
        distance=float(losses_between(partitions, as_loss(metric, kind=PartitionLoss))[0, 1]),
        partitions=draws.items.array(partitions, "partitions", ("half", ...)),
        stopped=found.stopped,
    )


class Halves(NamedTuple):
    """Estimate of the excess, the best partitions (2, n_items) found on the halves, and why a search ended early.

    Labels of -1 are noise.
    """

    excess: float
    partitions: npt.NDArray[Any]
    stopped: str


def search_halves(
    draws: PartitionDraws,
    best: Labels,
    loss: PartitionLoss | NoiseLoss,
    rng: np.random.Generator,
    limits: ClusterLimits = FREE,
    effort: Effort = _ONE_RUN,
) -> Halves:
    """Search on two halves of the draws, from `best` and one random order; see :class:`ExcessLoss`."""
    rows = np.flatnonzero(draws.weights)
    halves = [draws.take(rows[half]) for half in folds(draws.samples.take(rows), 2)]
    results = [search(Problem(half, loss, limits), rng, effort, [best]) for half in halves]
    tried = np.stack([*(draws.items.as_marked_labels(one.labels) for one in results), best])
    losses = np.stack([half.samples.mean(draw_losses(tried, half, loss)) for half in halves])
    own = losses.argmin(axis=1)
    difference = (losses[0, own[1]] - losses[0, own[0]] + losses[1, own[0]] - losses[1, own[1]]) / 2
    apart = difference if difference > SAME * losses.max() else 0.0
    share = 1 / draws.samples.effective_draws / sum(1 / half.samples.effective_draws for half in halves)
    return Halves(float(share * apart), tried[own], max(one.info.stopped for one in results))
