"""The credible ball: the smallest ball around a partition with a given posterior probability."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.answers.alignment import numbered_as, numbers_in
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import doubt_of_losses, loss_matrix
from posterior_consensus.ensemble.partitions import Labels, distinct_rows
from posterior_consensus.losses.lookup import as_loss, as_metric
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import check_between
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws, partition_of

BALL_BOUNDS = ("horizontal", "upper_vertical", "lower_vertical")
_STORED_SAMPLE = {"sample": "ball_sample", "chain": "ball_chain", "draw": "ball_draw", "weight": "ball_weight"}


@dataclass(frozen=True, eq=False, repr=False)
class CredibleBall(InWords):
    """The smallest ball around a partition with a given posterior probability; made by :func:`credible_ball`.

    Attributes
    ----------
    partition : xarray.DataArray of shape (n_items,), dtype int32
        The partition in the middle, with its own numbers of clusters.
    radius : float
        In the loss's unit.
    prob : float
        Probability requested.
    coverage : float
        Share of the draws in the ball, at least `prob`; draws at the radius are inside.
    coverage_mcse : float
        Monte Carlo standard error of the share, for a given radius; NaN if a chain has fewer than four draws.
    horizontal, upper_vertical, lower_vertical : xarray.DataArray of shape (n_bounds, n_items), dtype int32
        The draws in the ball that are farthest from the partition: among all, among draws with the fewest clusters, and
        among draws with the most clusters. Clusters take the numbers of the matched clusters of `partition`, as by
        :func:`align_partitions`; unmatched clusters get the next numbers. Each partition of a tie is listed once, over
        the dimension ``horizontal_bound`` and so on, which has the coordinate ``distance``.
    distances : xarray.DataArray of shape (sample,)
        Distance of every draw from the partition, with coordinates ``chain`` and ``draw``.
    loss : PartitionLoss
        The metric.
    noise_from : int, or None
        For runs with noise, the number from which on a cluster of the partition or of a bound is a single item of
        noise.
    doubt : str or None
        How the chains disagree, by the R-hat of the distance or of the number of clusters, as continuation of "The
        chains". None if these show no disagreement.
    """

    _figure = "strips.plot_credible_ball"

    partition: xr.DataArray = field(metadata=stored_as.array("ball_partition", of_items=True))
    radius: float = field(metadata=stored_as.number("ball_radius", measured=True))
    prob: float = field(metadata=stored_as.attribute("ball_prob"))
    coverage: float = field(metadata=stored_as.number("ball_coverage"))
    coverage_mcse: float = field(metadata=stored_as.number("ball_coverage_mcse", measured=True))
    horizontal: xr.DataArray = field(metadata=stored_as.array("horizontal", apart={"distance": "horizontal_distance"}))
    upper_vertical: xr.DataArray = field(
        metadata=stored_as.array("upper_vertical", apart={"distance": "upper_vertical_distance"})
    )
    lower_vertical: xr.DataArray = field(
        metadata=stored_as.array("lower_vertical", apart={"distance": "lower_vertical_distance"})
    )
    distances: xr.DataArray = field(metadata=stored_as.array("ball_distance", _STORED_SAMPLE, name="distance"))
    loss: PartitionLoss = field(metadata=stored_as.loss("ball_"))
    _of_runs: ClassVar = "ball_independent"
    noise_from: int | None = field(default=None, metadata=stored_as.attribute("ball_noise_from"))
    doubt: str | None = field(default=None, metadata=stored_as.attribute("ball_doubt"))

    @property
    def n_clusters(self) -> tuple[int, ...]:
        """Number of clusters of the partition and of the first of each kind of bounds, without noise."""
        first = [self.partition, *(getattr(self, name)[0] for name in BALL_BOUNDS)]
        most = np.inf if self.noise_from is None else self.noise_from
        return tuple(np.unique(own[(own >= 0) & (own < most)]).size for own in (labels.values for labels in first))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the partition and its bounds.

        Returns
        -------
        pandas.DataFrame
            A row for each, with its number of clusters, its distance from the partition, and the number of ties.
        """
        numbers = self.n_clusters
        rows = [("partition", numbers[0], 0.0, 1)]
        for name, number in zip(BALL_BOUNDS, numbers[1:], strict=True):
            bound = getattr(self, name)
            rows.append((name, number, float(stored_as.own_in(bound, "distance")[0]), bound.shape[0]))
        return pd.DataFrame(rows, columns=["partition", "n_clusters", "distance", "ties"]).set_index("partition")

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        weights, words = self.distances["weight"].values, self.words
        covered = display.with_error(self.coverage, self.coverage_mcse, words=words)
        effective = f", {words.size} {1 / np.square(weights).sum():.4g}" if np.ptp(weights) > 0 else ""
        lines = [
            ("radius", f"{display.quantity(self.radius, self.loss.unit, 3)} ({display.short_name_of(self.loss)})"),
            ("coverage", f"{covered} of the {words.draws}, {self.prob:g} requested"),
            (
                words.draws,
                f"{self.distances.size:,}{effective}; bounds are extremes of these {words.draws}, without errors",
            ),
        ]
        if self.doubt is not None:
            lines.insert(0, (words.chains, self.doubt))
        clusters = display.counted(self.n_clusters[0], "cluster")
        return f"CredibleBall: {self.prob:.0%} ball around the partition ({clusters})", lines, self.to_dataframe()


def credible_ball(
    draws: Any, partition: Any = None, *, loss: str | PartitionLoss | None = None, prob: float = 0.95
) -> CredibleBall:
    """Find the smallest ball around a partition with posterior probability at least `prob`, and its extreme draws.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition in the middle of the ball, typically the consensus; by default that of `draws` if these are a summary.
    loss : str or PartitionLoss, optional
        A loss that is a metric. By default the loss of the partition, if it is a result, else "vi".
    prob : float in (0, 1)
        Minimum posterior probability of the ball.

    Returns
    -------
    CredibleBall
        Radius, coverage and bounds of the ball.

    Raises
    ------
    ValueError
        If the loss is not a metric, `prob` is not between 0 and 1, or draws or partition are invalid.

    See Also
    --------
    CredibleBall.plot : The distances and the bounds as a figure.
    partition_density : A credible set of any shape, for posteriors with several modes.

    Notes
    -----
    With d the distance from the partition c, the radius is the least e with P(d(c, z) <= e | data) >= prob over the
    draws. Draws at distance e are inside. The horizontal bounds are the draws in the ball at the largest distance. The
    upper vertical bounds have the fewest clusters of any draw in the ball and, among these, the largest distance. The
    lower vertical bounds have the most clusters and, among these, the largest distance [1]_. Draws of weight 0 are not
    in the posterior and cannot be bounds. Of runs that lack items, distances are of those that a run has, and a bound
    has the label -1 for the others.

    The radius is a quantile of the same draws that give `coverage`, so the probability of the ball differs from `prob`
    by about `coverage_mcse`, which is large for slow chains: 0.045 for a probability of 0.95 and an effective sample
    size of 40.

    The bounds are extremes of the draws. Their range of clusters grows with the number of draws, and has no standard
    error.

    References
    ----------
    .. [1] Wade and Ghahramani (2018), Bayesian Analysis 13(2), 559-626. https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1]] * 16 + [[0, 0, 1, 2]] * 3 + [[0, 1, 2, 3]]
    >>> ball = pc.credible_ball(draws, [0, 0, 1, 1], prob=0.95)
    >>> ball.radius, ball.coverage
    (0.5, 0.95)
    >>> ball.lower_vertical.values
    array([[0, 0, 1, 2]], dtype=int32)
    """
    given, partition = as_draws(draws, lacking=True), partition_of(draws, partition)
    draws = given.in_fixed_order()
    metric = as_metric(as_loss(loss, partition, kind=PartitionLoss), "a ball")
    prob = check_between("prob", prob, 1)
    labels = draws.as_labels(partition)
    numbers, names = numbers_in(partition, draws.items, draws.as_marked_labels(partition))
    distances = loss_matrix(labels[np.newaxis], draws, metric)[0]
    tie = SAME * float(distances.max(initial=0.0))
    radius = _quantile(distances, draws, prob, tie)
    inside = (distances <= radius + tie) & (draws.weights > 0)
    clusters = draws.n_clusters
    among = {
        "horizontal": inside,
        "upper_vertical": inside & (clusters == clusters[inside].min()),
        "lower_vertical": inside & (clusters == clusters[inside].max()),
    }
    share = inside.astype(np.float64)
    farthest = {name: np.flatnonzero(own & (distances >= distances[own].max() - tie)) for name, own in among.items()}
    bounds, noise_from = _farthest_partitions(draws, distances, farthest), None
    for bound in bounds.values():
        bound.values = [numbered_as(labels, numbers, names)[0] for labels in bound.values]
    if draws.has_noise:
        noise_from = 1 + max(int(numbers.max()), *(int(bound.max()) for bound in bounds.values()))
        _number_noise([numbers, *(labels for bound in bounds.values() for labels in bound.values)], noise_from)
    return CredibleBall(
        partition=draws.items.array(numbers, "partition"),
        radius=radius,
        prob=prob,
        coverage=float(draws.samples.mean(share)),
        coverage_mcse=float(draws.samples.probability_mcse(share, distances)),
        **bounds,
        distances=given.samples.array(distances[given.own_order], "distance", loss=metric.name, unit=metric.unit),
        loss=metric,
        words=draws.words,
        noise_from=noise_from,
        doubt=doubt_of_losses(draws, distances),
    )


def _quantile(distances: Floats, draws: PartitionDraws, prob: float, tie: float) -> float:
    """Least distance within which the weights of the draws sum to `prob`."""
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(draws.weights[order])
    # Weights such as 1 / N do not add up exactly.
    last = min(int(np.searchsorted(reached, prob - SAME)), distances.size - 1)
    edge = distances[order[last]]
    return float(distances[distances <= edge + tie].max())


def _number_noise(partitions: list[Labels], first: int) -> None:
    """Number items of label -1 from `first` on, in place: an item is the same cluster in all partitions."""
    rest = np.logical_or.reduce([labels < 0 for labels in partitions[1:]]) & (partitions[0] >= 0)
    order = np.append(np.flatnonzero(partitions[0] < 0), np.flatnonzero(rest))
    places = np.empty(rest.size, np.int32)
    places[order] = first + np.arange(order.size)
    for labels in partitions:
        labels[labels < 0] = places[labels < 0]


def _farthest_partitions(
    draws: PartitionDraws, distances: Floats, farthest: dict[str, Positions]
) -> dict[str, xr.DataArray]:
    """Distinct partitions among the farthest rows, -1 for noise, in the order of the draws; all are read at once."""
    rows = np.unique(np.concatenate(list(farthest.values())))
    labels = draws.marked_labels(rows)
    bounds = {}
    for name, ties in farthest.items():
        tied = labels[np.searchsorted(rows, ties)]
        distinct = np.sort(distinct_rows(tied)[0])
        dim = f"{name}_bound"
        coords = {"distance": (dim, distances[ties[distinct]])}
        bounds[name] = draws.items.array(tied[distinct], name, (dim, ...), coords)
    return bounds
