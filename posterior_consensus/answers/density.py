"""A kernel density on partitions, and conformal credible sets of any shape."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.modes import separated_modes
from posterior_consensus.answers.partition_loss import checked_losses, one_or_many, same_items
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import HasLabels, Labels, canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.series import autocorrelation_time
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_above, check_between
from posterior_consensus.runtime.progress import track, waiting
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.conversion import as_draws

_SAMPLE = ("sample", "chain", "draw", "weight")
_STORED_SAMPLE = {name: f"density_{name}" for name in _SAMPLE}
_STORED_TRAINING = {name: f"density_training_{name}" for name in _SAMPLE}
_OF_MODES = {"score": "density_mode_score", "weight": "density_mode_weight"}
_MOST_DRAWS = 2000
_FEWEST = 100  # draws that thinning leaves, if there are as many
_RUN = 10  # successive draws in the same half, so that the halves depend on each other only at the ends of runs
_PEAKS = 6  # draws from which ascents to modes start
_N_STARTS = 3  # random orders of each search
_FACTORS = np.array([0.5, 2.0])  # of the bandwidth, in the sensitivity analysis


class _Score(NamedTuple):
    """The score of a partition: the mean over draws of the kernel exp(-loss / bandwidth)."""

    draws: PartitionDraws
    loss: PartitionLoss
    bandwidth: float

    def kernel(self, partitions: npt.NDArray[Any]) -> Floats:
        """The kernel of partitions (P, n) and the draws, (P, N)."""
        kernel: Floats = np.exp(-loss_matrix(partitions, self.draws, self.loss) / self.bandwidth)
        return kernel

    def of(self, partitions: npt.NDArray[Any]) -> Floats:
        """The scores (P,) of partitions (P, n)."""
        return self.draws.samples.mean(self.kernel(partitions))


@dataclass(frozen=True, eq=False, repr=False)
class PartitionDensity(HasLabels, InWords):
    """Kernel density on partitions, with p-values and modes; made by :func:`partition_density`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        The most typical partition: the highest score found by a search over all partitions.
    modes : xarray.DataArray of shape (mode, n_items), dtype int32
        The partition with the highest score in each separated mode of the score, the heaviest mode first. The
        coordinates are ``score`` and ``weight``, the share of draws nearest to partitions of the mode. One mode is no
        claim that the draws form one group, see :func:`partition_density`.
    scores : xarray.DataArray of shape (sample,)
        Score of every calibration draw, with coordinates ``chain``, ``draw`` and ``weight``.
    to_higher : xarray.DataArray of shape (sample,)
        Loss of every calibration draw against the nearest draw with a higher score; for the highest score, against the
        farthest draw.
    training : xarray.DataArray of shape (sample, n_items)
        The draws over which scores are averaged, with coordinates ``chain``, ``draw`` and ``weight``.
    bandwidth : float
        In the loss's unit.
    sensitivity : xarray.Dataset
        Results with half and with twice the bandwidth, over ``bandwidth``. ``rank_correlation`` compares the scores of
        the calibration draws with their scores at `bandwidth`; p-values depend on ranks only. ``p_value`` is the
        p-value of `labels`.
    step : int
        Thinning interval of each chain.
    ess : float
        Effective sample size of the calibration draws. If it is far below their number, credible sets hold less of
        the posterior than requested.
    loss : PartitionLoss
        The loss between partitions.
    """

    _figure = "draws.plot_density_peaks"

    labels: xr.DataArray = field(metadata=stored_as.array("density_labels", of_items=True))
    modes: xr.DataArray = field(metadata=stored_as.array("density_modes", {"mode": "density_mode"}, apart=_OF_MODES))
    scores: xr.DataArray = field(metadata=stored_as.array("density_score", _STORED_SAMPLE, name="score"))
    to_higher: xr.DataArray = field(metadata=stored_as.array("density_to_higher", _STORED_SAMPLE))
    training: xr.DataArray = field(metadata=stored_as.array("density_training", _STORED_TRAINING))
    bandwidth: float = field(metadata=stored_as.number("density_bandwidth", measured=True))
    sensitivity: xr.Dataset = field(
        metadata=stored_as.table("density_{}", ("rank_correlation", "p_value"), {"bandwidth": "density_tried"})
    )
    step: int = field(metadata=stored_as.attribute("density_step"))
    ess: float = field(metadata=stored_as.number("density_ess"))
    loss: PartitionLoss = field(metadata=stored_as.loss("density_"))
    _of_runs: ClassVar = "density_independent"

    def score(self, partitions: Any) -> xr.DataArray:
        """Compute the score of partitions: the mean of exp(-loss / bandwidth) over the training draws.

        Parameters
        ----------
        partitions : partition or sequence of partitions
            One result object, DataArray or label vector of shape (n_items,), or a list or array (n_partitions, n_items)
            of them.

        Returns
        -------
        xarray.DataArray
            Over the dimension ``partition``, or without dimension for a single one. The coordinate ``mcse`` is the
            Monte Carlo standard error.
        """
        kernel, samples, single = self._kernel(partitions)
        coords = {"mcse": ("partition", samples.mcse(kernel))}
        scores = xr.DataArray(samples.mean(kernel), dims="partition", coords=coords, name="score")
        return scores.squeeze("partition") if single else scores

    def p_value(self, partitions: Any) -> xr.DataArray:
        """Compute p-values of partitions: the share of calibration draws that are at most as typical.

        Parameters
        ----------
        partitions : partition or sequence of partitions
            As for :meth:`score`.

        Returns
        -------
        xarray.DataArray
            Over the dimension ``partition``, or without dimension for a single one. The partition itself is counted, so
            p-values are at least 1 / (1 + m) with m calibration draws.
        """
        kernel, samples, single = self._kernel(partitions)
        values = _p_values(samples.mean(kernel), self.scores.values, Samples.along(self.scores))
        p_values = xr.DataArray(values, dims="partition", name="p_value")
        return p_values.squeeze("partition") if single else p_values

    def contains(self, partitions: Any, prob: float) -> xr.DataArray:
        """Check whether the credible set of probability `prob` contains partitions: their p-value is above 1 - `prob`.

        Parameters
        ----------
        partitions : partition or sequence of partitions
            As for :meth:`score`.
        prob : float in (0, 1)
            Posterior probability of the set.

        Returns
        -------
        xarray.DataArray of bool
            Over the dimension ``partition``, or without dimension for a single one.
        """
        return (self.p_value(partitions) > 1.0 - check_between("prob", prob, 1) + ROUNDING).rename("contains")

    def least_score(self, prob: float) -> float:
        """Compute the least score of partitions in the credible set of posterior probability `prob`.

        Parameters
        ----------
        prob : float in (0, 1)
            Posterior probability of the set.

        Returns
        -------
        float
            The score; -inf if the set contains all partitions.
        """
        level = 1.0 - check_between("prob", prob, 1) + ROUNDING
        tried = np.concatenate([[-np.inf], np.unique(self.scores.values)])
        inside = _p_values(tried, self.scores.values, Samples.along(self.scores)) > level
        return float(tried[inside.argmax()])

    def _kernel(self, partitions: Any) -> tuple[Floats, Samples, bool]:
        """Kernel of partitions against the training draws, these draws, and whether `partitions` is a single one."""
        draws = _training_draws(self.training)
        judged, single = one_or_many(partitions, draws.items)
        rows = np.stack([draws.as_labels(partition, "partitions") for partition in judged])
        return _Score(draws, self.loss, self.bandwidth).kernel(rows), draws.samples, single

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the modes.

        Returns
        -------
        pandas.DataFrame
            A row for each mode, with its weight, number of clusters, score and p-value.
        """
        columns = {
            "weight": stored_as.own_in(self.modes, "weight").values,
            "n_clusters": self.modes.max(str(self.modes.dims[1])).values + 1,
            "score": stored_as.own_in(self.modes, "score").values,
            "p_value": self.p_value(self.modes).values,
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.modes), name="mode"))

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        unit, name = self.loss.unit, display.short_name_of(self.loss)
        low, high = (float(value) for value in self.sensitivity["rank_correlation"])
        ess, words = "" if np.isnan(self.ess) else f", ESS {self.ess:,.0f}", self.words
        smallest = display.at_least(1 / (1 + self.scores.size), ".2g")
        every = "every one" if self.step == 1 else f"one in {self.step}"
        lines = [
            ("score", f"mean of exp(-{name} / {display.quantity(self.bandwidth, unit, 4)})"),
            ("training", f"{len(self.training):,} {words.draws}, {every} of {words.either('a chain', 'the runs')}"),
            ("calibration", f"{self.scores.size:,} {words.draws}{ess}; p-values are at least {smallest}"),
            ("sensitivity", f"rank correlation {low:.3f} with half the bandwidth, {high:.3f} with twice"),
            ("modes", f"of the score at this bandwidth, which may be one over several {words.mode}s"),
        ]
        modes = display.counted(len(self.modes), "separated mode")
        clusters = display.counted(int(self.labels.max()) + 1, "cluster")
        return f"PartitionDensity: {modes}, most typical a partition in {clusters}", lines, self.to_dataframe()


def partition_density(
    draws: Any,
    *,
    loss: str | PartitionLoss | None = None,
    bandwidth: float | None = None,
    calibration: Any = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartitionDensity:
    """Estimate a kernel density on partitions, with modes, p-values and credible sets of any shape.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    loss : str or PartitionLoss, optional
        Any loss between two partitions; by default "vi". The credible set needs no metric.
    bandwidth : float, optional
        Loss at which the kernel is exp(-1), in the loss's unit. By default the median loss between two training draws,
        or the mean loss if the median is 0.
    calibration : PartitionDraws or any posterior that :func:`summarize` takes, optional
        Other draws of the same posterior for the p-values, such as a chain held out. All of `draws` are then training
        draws, without thinning. By default, the draws are thinned and divided into training and calibration draws.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. It seeds the search for the most typical partition and the modes; scores
        and p-values do not depend on it.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartitionDensity
        Scores and modes, with methods for the p-values of any partition.

    Raises
    ------
    ValueError
        If the bandwidth is not positive, there is only one draw and no `calibration`, `calibration` has other items, or
        draws are invalid, see :func:`as_partition_draws`.
    MemoryError
        If the losses between all draws take more than the memory budget.

    See Also
    --------
    credible_ball : the ball around one partition; it misleads if the posterior has several modes.
    partition_loss : the losses between draws.

    Notes
    -----
    To read the result: `labels` is one partition to report. ``contains(partition, 0.95)`` is False for a partition that
    is less typical than 95% of the draws. `modes` has one partition for each separated mode.

    The score of a partition S is a mean over training draws z_t of weights w_t, with the loss d and the bandwidth h
    [1]_,

        s(S) = sum_t w_t exp(-d(S, z_t) / h).

    Only ranks of scores matter. With m calibration draws z'_i of weights v_i, the p-value of split conformal
    prediction [2]_, [3]_ is

        p(S) = (v + sum_i v_i 1{s(z'_i) <= s(S)}) / (v + sum_i v_i),   v = max v_i,

    which is (1 + #{i: s(z'_i) <= s(S)}) / (1 + m) for equal weights. The set {S: p(S) > 1 - prob} contains a further
    draw with probability at least `prob`, for any loss and bandwidth, if it is exchangeable with the calibration
    draws. This coverage is marginal: it is a mean over calibration draws, and varies from one set of them to another.

    Chains are thinned by the autocorrelation time of the kernel, to at most 2,000 and, if available, at least 100
    draws. Runs of ten draws go to training and calibration in turn. Draws of weight 0 are left out.

    Each step of an ascent minimizes the expected loss under the weights w_t exp(-d(S, z_t) / h). By convexity of exp,
    the score never falls. Ascents start from the best draw, from the consensus, and from density peaks [4]_. Their ends
    are separate modes if a valley lies between the draws of each two. The kernel is as broad as draws of one group are
    apart, so at the default bandwidth the score often has a single peak over several modes: :func:`particles` looks
    for modes.

    References
    ----------
    .. [1] Bariletto, Ho and Rinaldo (2025), Conformalized Bayesian inference, with applications to random partition
       models. https://doi.org/10.48550/arXiv.2511.05746
    .. [2] Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world.
       https://doi.org/10.1007/b106715
    .. [3] Tibshirani, Barber, Candes and Ramdas (2019), Conformal prediction under covariate shift, NeurIPS 32.
       https://doi.org/10.48550/arXiv.1904.06019
    .. [4] Rodriguez and Laio (2014), Science 344(6191), 1492-1496. https://doi.org/10.1126/science.1242072

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 30 + [[0, 1, 0, 1, 0, 1]] * 20 + [[0, 0, 0, 0, 1, 1]] * 10
    >>> density = pc.partition_density(draws, random_seed=1)
    >>> density.labels.values
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> density.contains([[0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0]], 0.95).values
    array([ True, False])
    """
    record, rng = as_loss(loss, kind=PartitionLoss), as_generator(random_seed)
    given = None if bandwidth is None else check_above("bandwidth", bandwidth, 0.0)
    all_draws = as_draws(draws).in_fixed_order().labels_only().without_zero_weights()
    step = 1
    training = all_draws
    with waiting("Losses between draws", progressbar=progressbar):
        if calibration is None:
            training, calibrating, step = _halves(all_draws, record, given)
        else:
            calibrating = as_draws(calibration).in_fixed_order().labels_only()
            calibrating = same_items(calibrating, all_draws.items, "calibration")
            calibrating = calibrating.without_zero_weights()
        between = checked_losses(training, training, record)
        h = given or default_bandwidth(between, training.samples)
        best = int(training.samples.mean(np.exp(-between / h)).argmax())
        to_training, among = (
            loss_matrix(calibrating.labels, training, record),
            checked_losses(calibrating, calibrating, record),
        )
    score = _Score(training, record, h)
    scores = training.samples.mean(np.exp(-to_training / h))
    separations = to_higher(scores, among)
    peaks = calibrating.labels[np.argsort(-scores * separations, kind="stable")[:_PEAKS]]
    starts = [
        search(Problem(training, record), rng, Effort(progressbar=progressbar)).labels,
        training.labels[best],
        *peaks,
    ]
    ends, heights = _ascended(track(starts, "Peaks of the density", progressbar=progressbar), score, rng)
    return PartitionDensity(
        labels=all_draws.items.array(ends[0], "labels"),
        modes=_modes(all_draws, ends, heights, record),
        scores=calibrating.samples.array(scores, "score", unit=""),
        to_higher=calibrating.samples.array(separations, "to_higher", unit=record.unit),
        training=all_draws.items.array(
            training.labels, "training", ("sample", ...), training.samples.coords_and_weights
        ).assign_attrs(training.samples.attrs),
        bandwidth=h,
        sensitivity=_sensitivity(ends[:1], score, scores, to_training, calibrating.samples),
        step=step,
        ess=calibrating.n_draws / draws_worth_one(among, calibrating.samples, h),
        loss=record,
        words=all_draws.words,
    )


def _halves(
    draws: PartitionDraws, loss: PartitionLoss, bandwidth: float | None
) -> tuple[PartitionDraws, PartitionDraws, int]:
    """Training draws, calibration draws, and the thinning interval.

    Chains are thinned to their effective sample size. Runs of the remaining draws go to the two in turn.
    """
    if draws.n_draws < 2:
        raise ValueError(
            f"`draws` must hold at least two {draws.samples.words.draws} of weight above 0, one for training and one "
            "for calibration; got 1. Or give `calibration`."
        )
    step = -(-draws.n_draws // _MOST_DRAWS)
    rows = _every(draws, step)
    some = draws.take(rows)
    losses = checked_losses(some, some, loss)
    times = draws_worth_one(losses, some.samples, bandwidth or default_bandwidth(losses, some.samples))
    step = min(step * max(1, round(times)), max(step, draws.n_draws // _FEWEST))
    rows = _every(draws, step)
    turn = np.arange(rows.size) // max(1, min(_RUN, rows.size // _RUN)) % 2
    return draws.take(rows[turn == 0]), draws.take(rows[turn == 1]), step


def _every(draws: PartitionDraws, step: int) -> Positions:
    return np.concatenate([rows[::step] for rows in draws.samples.sequences])


def default_bandwidth(losses: Floats, samples: Samples) -> float:
    """Median loss between two draws; the mean if the median is 0; 1 if all draws are equal."""
    apart = ~np.eye(samples.n_draws, dtype=np.bool_)
    between = losses[apart]
    if between.size == 0 or not between.any():
        return 1.0
    if not samples.is_weighted:
        return float(np.median(between)) or float(between.mean())
    weights = np.outer(samples.weights, samples.weights)[apart]
    median = float(np.quantile(between, 0.5, method="inverted_cdf", weights=weights))
    return median or float(np.average(between, weights=weights)) or 1.0


def draws_worth_one(losses: Floats, samples: Samples, bandwidth: float) -> float:
    """Autocorrelation time of the kernel exp(-loss / bandwidth), in draws, 1 for runs; weights are ignored.

    The correlation at lag s is 1 - m_s / m. Here m_s is the mean of 1 - kernel over draws s steps apart, and m its mean
    over all pairs of draws.
    """
    if not samples.series:
        return 1.0
    n = samples.n_draws
    differ = -np.expm1(-losses / bandwidth)
    total = differ.sum() / max(n * (n - 1), 1)
    if total <= 0.0:
        return 1.0

    def correlation(lag: int) -> float:
        if lag == 0:
            return 1.0
        pairs = [differ[rows[:-lag], rows[lag:]] for rows in samples.chains if rows.size > lag]
        return 1.0 - float(np.concatenate(pairs).mean() / total)

    length = max(rows.size for rows in samples.chains)
    return max(1.0, autocorrelation_time(correlation, length)) if length > 1 else 1.0


def to_higher(scores: Floats, losses: Floats) -> Floats:
    """Loss of each partition against the nearest one with a higher score; for the highest, against the farthest.

    Of equal scores the first counts as higher. Copies of one partition are thus at distance 0 from it, except the
    first.
    """
    order = np.lexsort((np.arange(scores.size), -scores))
    separations = np.empty(scores.size)
    for rank, row in enumerate(order):
        separations[row] = losses[row, order[:rank]].min() if rank else losses[row].max()
    return separations


def _ascended(starts: Iterable[npt.NDArray[Any]], score: _Score, rng: np.random.Generator) -> tuple[Labels, Floats]:
    """Partitions (E, n) at which ascents from the starts end, and their scores, the highest first.

    As exp is convex, exp(-x) >= exp(-y) (1 - (x - y)). Let y be the losses of the current partition, divided by the
    bandwidth. A partition with a lower mean loss under the weights exp(-y) has a higher score. Each step is a consensus
    search under these weights, from the current partition and from random orders of the items. An ascent ends when the
    score rises no more, or at a partition that an earlier ascent has visited.
    """
    passed: set[bytes] = set()
    ends: list[tuple[float, Labels]] = []
    for start in starts:
        labels = canonical_labels(start)
        while labels.tobytes() not in passed:
            passed.add(labels.tobytes())
            higher = _higher(labels, score, rng)
            if higher is None:
                ends.append((float(score.of(labels[np.newaxis])[0]), labels))
                break
            labels = higher
    ends.sort(key=lambda end: -end[0])
    return np.stack([labels for _, labels in ends]), np.array([height for height, _ in ends])


def _higher(labels: Labels, score: _Score, rng: np.random.Generator) -> Labels | None:
    """The partition of minimum expected loss under the kernel's weights, if its score is higher; else None."""
    kernel = score.kernel(labels[np.newaxis])
    weights = score.draws.weights * kernel[0]
    if not weights.any():  # the kernel is 0 for all draws
        return None
    near = replace(score.draws, samples=score.draws.samples.weighted(weights))
    best = canonical_labels(search(Problem(near, score.loss), rng, Effort(n_starts=_N_STARTS), [labels]).labels)
    before, after = score.draws.samples.mean(kernel)[0], score.of(best[np.newaxis])[0]
    return best if after > before * (1 + ROUNDING) else None


def _modes(draws: PartitionDraws, ends: Labels, scores: Floats, loss: PartitionLoss) -> xr.DataArray:
    """The partition with the highest score in every separated mode, with its score and weight."""
    separated = separated_modes(ends, loss_matrix(ends, draws, loss), draws.samples, loss)
    highest = np.unique(separated.mode, return_index=True)[1]  # the ends are in the order of their scores
    coords = {"score": ("mode", scores[highest]), "weight": ("mode", separated.weights)}
    return draws.items.array(ends[highest], "modes", ("mode", ...), coords)


def _sensitivity(labels: Labels, score: _Score, scores: Floats, losses: Floats, calibration: Samples) -> xr.Dataset:
    """Results at half and twice the bandwidth, from the `losses` (M, N) and `scores` (M,) of calibration draws."""
    from scipy.stats import spearmanr

    rows: dict[str, list[float]] = {"rank_correlation": [], "p_value": []}
    for tried in _FACTORS * score.bandwidth:
        others = score.draws.samples.mean(np.exp(-losses / tried))
        moves = np.ptp(others) > 0 and np.ptp(scores) > 0
        rows["rank_correlation"].append(float(spearmanr(scores, others).statistic) if moves else 1.0)
        own = score._replace(bandwidth=tried).of(labels)
        rows["p_value"].append(float(_p_values(own, others, calibration)[0]))
    tried = {"bandwidth": _FACTORS * score.bandwidth}
    return xr.Dataset({name: ("bandwidth", values) for name, values in rows.items()}, tried)


def _p_values(scores: Floats, calibration: Floats, samples: Samples) -> Floats:
    """Conformal p-values of `scores`, given the scores of the calibration draws."""
    weights, total = samples.addends
    order = np.argsort(calibration, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    below = np.searchsorted(calibration[order], scores * (1 + ROUNDING), side="right")
    p_values: Floats = (weights.max() + reached[below]) / (weights.max() + total)
    return np.minimum(p_values, 1.0)  # weights sum to 1 but for rounding


def _training_draws(training: xr.DataArray) -> PartitionDraws:
    items = Items.along(training, str(training.dims[1]))
    return PartitionDraws.of(training.values, samples=Samples.along(training), items=items)
