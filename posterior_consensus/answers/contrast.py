"""What differs between clusters in data that did not form them: labels corrected for misclassification."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.allocations import AllocationDraws
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Clusters, Items
from posterior_consensus.ensemble.partitions import HasLabels, Labels, as_array
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import expected_common_items, partners
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords, names_as_coordinate
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import check_between, check_flag
from posterior_consensus.sources.conversion import as_draws, partition_of

NUMERIC, BINARY, CATEGORICAL = "numeric", "binary", "categorical"
OF_CLUSTERS = (
    *("number", "size", "n_values", "estimate", "low", "high", "error", "ess"),
    *("naive", "naive_low", "naive_high"),
)
OF_PAIRS = ("difference", "low", "high", "error", "p_value", "p_corrected", "effect", "naive", "naive_p_value")
SHOWN = ["n_values", "estimate", "low", "high", "error", "naive"]

_LEAST_CORRELATION = 0.1  # canonical correlation with the partition below which a draw cannot tell its clusters apart
_MOST_LEFT_OUT = 0.1  # share of such draws, by weight, beyond which there is no answer
_FEWEST = 2  # values of a cluster that a variance needs
_THINNED = 100  # draws of the weights
_AXES = {name: f"contrast_{name}" for name in ("cluster", "pair", "category", "sample", "reported", "chain", "draw")}
_CLUSTERS = {"cluster": "contrast_clusters"}
_CATEGORIES = {"category": "contrast_categories"}
_PAIRS = {("first", "pair"): "contrast_first", ("second", "pair"): "contrast_second"}


@dataclass(frozen=True, eq=False, repr=False)
class Contrast(InWords, HasLabels):
    """What differs between clusters in data that did not form them; made by :func:`contrast`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item in the partition; -1 for the items of clusters in `small`.
    estimates : xarray.Dataset over ``cluster`` and, of a categorical y, ``category``
        ``number`` of the cluster, which sets its colour in figures; ``size``, its number of items, and ``n_values``,
        those with a value; ``estimate``, the mean of y or the share of the category, with ``low`` and ``high`` of its
        interval, its standard ``error`` and effective sample size ``ess`` over the draws. ``naive``, ``naive_low`` and
        ``naive_high`` take the labels of the partition as known.
    differences : xarray.Dataset over ``pair`` and, of a categorical y, ``category``
        Of each pair of clusters, by their names ``first`` and ``second``: ``difference``, the estimate of the second
        less that of the first, with ``low``, ``high`` and ``error``; ``p_value`` and ``p_corrected``, which Holm's
        method corrects for all differences; ``effect``, the difference in standard deviations within clusters, NaN
        unless y is numeric; ``naive`` and ``naive_p_value``, which take the labels as known.
    inverse : xarray.DataArray of shape (n_thinned, n_clusters, n_clusters)
        Inverse of the misclassification matrix in at most 100 draws, over ``sample``, ``reported`` (the item's cluster
        in the partition) and ``cluster``.
    kind : {"numeric", "binary", "categorical"}
        Of which kind y is.
    name, unit : str
        Name of y, and its unit; empty if it has none.
    prob : float
        Probability of the intervals.
    used : bool
        Whether y formed the clusters: the result then describes them, and has no p-values.
    n_draws, n_left_out : int
        Number of draws, and of those left out because they cannot tell some clusters apart.
    small : tuple
        Names of the clusters that are left out with their items, because they have fewer than two values.
    """

    _figure = "profiles.plot_contrast"

    labels: xr.DataArray = field(metadata=stored_as.array("contrast_labels", of_items=True))
    estimates: xr.Dataset = field(
        metadata=stored_as.table("contrast_{}", OF_CLUSTERS, _AXES, in_words=_CLUSTERS | _CATEGORIES)
    )
    differences: xr.Dataset = field(
        metadata=stored_as.table("contrast_pair_{}", OF_PAIRS, _AXES, in_words=_PAIRS | _CATEGORIES)
    )
    inverse: xr.DataArray = field(metadata=stored_as.array("contrast_inverse", _AXES, in_words=_CLUSTERS))
    kind: str = field(metadata=stored_as.attribute("contrast_kind"))
    name: str = field(metadata=stored_as.attribute("contrast_name"))
    unit: str = field(metadata=stored_as.attribute("contrast_unit"))
    prob: float = field(metadata=stored_as.attribute("contrast_prob"))
    used: bool = field(metadata=stored_as.flag("contrast_used"))
    n_draws: int = field(metadata=stored_as.attribute("contrast_draws"))
    n_left_out: int = field(metadata=stored_as.attribute("contrast_left_out"))
    small: tuple[Any, ...] = field(default=(), metadata=stored_as.names("contrast_small"))
    _of_runs: ClassVar = "contrast_independent"

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the clusters, in the order of `labels`."""
        return tuple(self.estimates["cluster"].values.tolist())

    @property
    def n_missing(self) -> int:
        """Number of items without a value in the clusters compared."""
        return int((self.estimates["size"] - self.estimates["n_values"]).sum())

    @property
    def weights(self) -> xr.DataArray:
        """Weights of the items for each cluster, shape (n_items, n_clusters, n_thinned), some of them negative.

        Any estimator that takes weights, also negative ones, estimates a quantity of a cluster with its weights in a
        draw; its estimates vary between draws in addition to its own error. Items of clusters left out have weight 0.

        Examples
        --------
        Share of the items of each cluster that survive time 1, by Kaplan and Meier. Times are exponential with means 1
        and 3, and some are censored.

        >>> import numpy as np
        >>> import posterior_consensus as pc
        >>> rng = np.random.default_rng(1)
        >>> probability = rng.random(2_000)
        >>> draws, cluster = rng.random((100, 2_000)) < probability, rng.random(2_000) < probability
        >>> times, censored = rng.exponential(1 + 2 * cluster), rng.exponential(4, 2_000)
        >>> order = np.argsort(np.minimum(times, censored))
        >>> found = pc.contrast(draws, (probability > 0.5).astype(int), y=times)
        >>> table = found.weights.values[order]  # (2000, 2, 100)
        >>> died = (times < np.minimum(censored, 1))[order]
        >>> at_risk = table[::-1].cumsum(axis=0)[::-1]
        >>> surviving = (1 - table[died] / at_risk[died]).prod(axis=0)
        >>> surviving.mean(axis=1).round(2)
        array([0.35, 0.72])
        >>> np.exp(-1 / np.array([1, 3])).round(2)  # the truth
        array([0.37, 0.72])
        """
        items = Items.along(self.labels, str(self.labels.dims[0]))
        own = {name: ("sample", self.inverse[name].values) for name in ("chain", "draw")}
        coords = own | {"cluster": names_as_coordinate(self.names)}
        labels = self.labels.values
        values = self.inverse.values.transpose(1, 2, 0)[labels] * (labels >= 0)[:, np.newaxis, np.newaxis]
        return items.array(values, "weights", (..., "cluster", "sample"), coords)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the estimates.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster, or for each cluster and category, with the columns of `estimates`.
        """
        return _rows_of(self.estimates, ["cluster"])

    def in_words(self) -> str:
        """Describe the analysis and its largest difference in sentences for a paper.

        Returns
        -------
        str
            The method with its sources, and the largest difference with its interval.
        """
        of, words = f"{self.n_draws - self.n_left_out:,} {self.words.draws}", self.words
        method = (
            f"We compared {self.name} between {len(self.names)} clusters. In each of {of}, the clusters were matched "
            "with the reported ones, and the reported labels were weighted by the inverse of the matrix of their "
            "misclassification probabilities (Bolck, Croon and Hagenaars 2004; Vermunt 2010); "
            f"intervals include the variance within and between {words.draws}."
        )
        if self.small:
            method += f" {display.capitalized(self._on_small())} were left out."
        profile = f" As {self.name} formed the clusters, this describes them and tests nothing."
        no_posterior = " Runs are no posterior: their variance is that of the program." if self._is_of_runs else ""
        return f"{method} The largest difference was {self._largest}.{profile * self.used}{no_posterior}"

    def _on_small(self) -> str:
        of = f"{display.counted(len(self.small), 'cluster')} ({display.listed(self.small, 5)})"
        n_items = int(np.sum(self.labels.values < 0))
        return f"{of} with fewer than {_FEWEST} values, {display.counted(n_items, 'item')} in all,"

    @property
    def _is_of_runs(self) -> bool:
        return self.words.either("", "runs") != ""

    @property
    def _largest(self) -> str:
        """The largest difference, with its interval, in words."""
        table = _rows_of(self.differences, ["pair"]).reset_index()
        at = int(table["difference"].abs().to_numpy().argmax())
        p, *shown = table[["p_corrected", "difference", "low", "high", "naive"]].to_numpy()[at]
        value, low, high, naive = shown if self.kind == NUMERIC else np.clip(shown, -1, 1)
        first, second = (display.as_text(table[name].tolist()[at]) for name in ("first", "second"))
        of = f" in the share of {display.as_text(table['category'].tolist()[at])}," if "category" in table else ""
        test = "" if np.isnan(p) else ", p < 0.001" if p < 0.001 else f", p = {p:.2g}"
        return (
            f"{display.quantity(value, self.unit, 3)}{of} between clusters {first} and {second} ({self.prob:.0%} "
            f"interval {low:.3g} to {high:.3g}{test}; {naive:.3g} by the reported labels)"
        )

    def _parts(self) -> display.Parts:
        words, table = self.words, self.to_dataframe()[SHOWN]
        if self.kind != NUMERIC:
            table = table.assign(**table[["estimate", "low", "high"]].clip(0, 1))
        kept = self.n_draws - self.n_left_out
        lines = [(words.draws, f"{kept:,}")]
        if self.n_left_out:
            why = f"the other {self.n_left_out:,} cannot tell some clusters apart"
            lines = [(words.draws, f"{kept:,} of {self.n_draws:,}: {why}")]
        if self.n_missing:
            lines.append(("missing", display.counted(self.n_missing, "value")))
        if self.small:
            lines.append(("left out", self._on_small().removesuffix(",")))
        lines.append(("largest", self._largest))
        if self.used:
            lines.append(("describes", f"{self.name} formed the clusters: a profile, which tests nothing"))
        else:
            lines.append(
                ("assumes", f"given an item's cluster, {self.name} is independent of what formed the clusters")
            )
        if self._is_of_runs:
            lines.append(("runs", "no posterior: errors have how the runs differ, and no more"))
        lines += display.about_errors(self.estimates["ess"].values.ravel(), words)
        what = {NUMERIC: "means", BINARY: "shares", CATEGORICAL: "shares of categories"}[self.kind]
        unit = f" in {self.unit}" if self.unit else ""
        items = display.counted_items(self.labels.size, self.labels.dims[0])
        return f"Contrast: {what} of {self.name}{unit} in {len(self.names)} clusters of {items}", lines, table


def _rows_of(values: xr.Dataset, dims: list[str]) -> pd.DataFrame:
    """A row for each element of the Dataset, by the names of `dims` and the categories."""
    order = [*dims, *(["category"] if "category" in values.dims else [])]
    table = values.to_dataframe(order)
    first = [name for name in ("first", "second") if name in table]
    return table[[*first, *(name for name in table if name not in first)]]


def contrast(draws: Any, partition: Any = None, *, y: Any, used: bool = False, prob: float = 0.95) -> Contrast:
    """Estimate what differs between clusters in data that did not form them, as labels are uncertain.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Draws of labels or of allocation probabilities. Independent runs are no posterior, which the result says.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.
    y : Series, DataArray or array_like of shape (n_items,)
        A value for each item: numbers, booleans or categories. NaN and None are missing. A Series or DataArray is
        paired with the items by name, an array by place.
    used : bool
        Whether y is among the data that formed the clusters. The result is then a description without p-values.
    prob : float
        Probability of the intervals.

    Returns
    -------
    Contrast
        Means or shares by cluster, their differences, and weights for other estimators. Clusters with fewer than two
        values are left out with their items, by name.

    Raises
    ------
    ValueError
        If fewer than two clusters of the partition have two values. If more than a tenth of the draws cannot tell two
        clusters apart, which the error names. If draws call items noise, y has other items, is infinite, or has one
        category only. If `prob` is not between 0 and 1.
    TypeError
        If y has dates.
    MemoryError
        If the tables of all draws exceed the memory budget.

    See Also
    --------
    Contrast.plot : the estimates as a figure.
    plot_cluster_profiles : the data that formed the clusters.
    cluster_summary : parameters of the model by cluster.

    Notes
    -----
    Reported labels are sometimes wrong, and so are those of each draw. Means by either are mixtures, whose differences
    shrink. Let W be the partition with clusters 1, ..., K. In draw t, clusters are matched with those of W so that most
    items are in common. Clusters without a match join the cluster that they have most items of. The misclassification
    matrix is

        D_t[k, l] = share of the items of cluster k in draw t that W has in cluster l,

    expected shares for allocation probabilities. If y depends on the data that formed the clusters only by the true
    cluster, sums with the weights w_ik = D_t^-1[W_i, k] have the expectation of sums over the true cluster k [1]_ [2]_:

        m_tk = sum_i w_ik y_i / sum_i w_ik.

    Some weights are negative. Items without a value have no part in these sums, but in D_t. The sum of the weights of
    the items that W has in cluster l is a share a_tkl of all. So m_tk = sum_l a_tkl ybar_l is a sum of the means by
    reported cluster, and the variance within the draw is

        V_tk = sum_l a_tkl^2 s_l^2 / n_l,

    with the variance s_l^2 of the n_l values. The estimate is the mean of m_tk over draws, with their weights. Its
    variance is the mean of V_tk plus (n + 1) / (n - 1) times the variance of m_tk between draws, where n is the
    effective sample size [3]_. Intervals and p-values are those of Student's t with the degrees of freedom of such a
    sum [4]_. Intervals are somewhat wide, since both variances have the randomness of the labels. If D_t is the
    identity, estimates are means by cluster, and tests are those of Welch. Shares can be slightly below 0 or above 1,
    and so can their intervals; printed text and sentences end them at 0 and 1.

    All this holds for any part of the items that is chosen by what formed the clusters, so also without the items of
    small clusters of W.

    A draw is left out if its smallest canonical correlation with W is below 0.1, so that errors would be more than ten
    times those of known labels. This is the last singular value of D_t[k, l] (r_k / n_l)^(1/2), with sizes r_k of its
    clusters and n_l of those of W.

    References
    ----------
    .. [1] Bolck, Croon and Hagenaars (2004), Political Analysis 12(1), 3-27. https://doi.org/10.1093/pan/mph001
    .. [2] Vermunt (2010), Political Analysis 18(4), 450-469. https://doi.org/10.1093/pan/mpq025
    .. [3] Rubin (1987), Multiple Imputation for Nonresponse in Surveys. https://doi.org/10.1002/9780470316696
    .. [4] Satterthwaite (1946), Biometrics Bulletin 2(6), 110-114. https://doi.org/10.2307/3002019

    Examples
    --------
    Items are in the second cluster with probabilities from 0 to 1, so that a quarter of the labels are wrong. The true
    difference is 1.

    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> rng = np.random.default_rng(1)
    >>> probability = rng.random(400)
    >>> draws = rng.random((100, 400)) < probability
    >>> y = rng.normal(rng.random(400) < probability)
    >>> found = pc.contrast(draws, (probability > 0.5).astype(int), y=y)
    >>> found.to_dataframe()[["estimate", "error", "naive"]].round(2)
             estimate  error  naive
    cluster
    0           -0.04   0.13   0.21
    1            0.91   0.13   0.67
    """
    prob, used = check_between("prob", prob, 1), check_flag("used", used)
    draws, partition = as_draws(draws).in_fixed_order().without_zero_weights(), partition_of(draws, partition)
    items, whole = draws.items, _clusters_in_order(draws, partition)
    values = _values_of(y, items)
    labels, own = _without_small(whole, values.present)
    if len(own.names) < len(whole.names):
        at = np.flatnonzero(labels >= 0)
        draws, values = draws.of_items(at), values._replace(columns=values.columns[at], present=values.present[at])
    sums = _sums_by_cluster(values, own)
    n_clusters, n_columns = len(own.names), values.columns.shape[1]
    size = 8 * draws.n_draws * n_clusters**2 * (n_clusters + n_columns)
    memory.check(size, f"Tables of {n_clusters} clusters and {n_columns} columns in {draws.n_draws:,} draws")
    inverse, kept = _inverses(_joint_tables(draws, own.labels), sums.number, own, draws)
    samples, one = draws.samples.take(kept), Samples.of_one_chain(1)
    found, known = _in_draws(inverse, sums), _in_draws(np.eye(n_clusters)[np.newaxis], sums)
    corrected, naive = _pooled(samples, found, prob), _pooled(one, known, prob)
    apart, naively_apart = _pooled(samples, found.of_pairs(), prob), _pooled(one, known.of_pairs(), prob)
    spread = samples.mean(found.spread.T)
    numbers = {"number": own.numbers, "size": np.bincount(own.labels), "n_values": sums.number.astype(np.int64)}
    thinned = samples.at_quantiles((np.arange(n := min(_THINNED, samples.n_draws)) + 0.5) / n)
    return Contrast(
        labels=items.array(labels, "labels"),
        estimates=_estimates(numbers, corrected, naive, values, own),
        differences=_differences(apart, naively_apart, spread, values, own, used),
        inverse=xr.DataArray(
            inverse[thinned],
            {name: ("sample", ids[thinned]) for name, ids in (("chain", samples.chain), ("draw", samples.draw))}
            | {"cluster": names_as_coordinate(own.names)},
            ("sample", "reported", "cluster"),
            "inverse",
        ),
        kind=values.kind,
        name=values.name,
        unit=display.unit_of(y),
        prob=prob,
        used=used,
        n_draws=draws.n_draws,
        n_left_out=draws.n_draws - samples.n_draws,
        small=tuple(name for name in whole.names if name not in own.names),
        words=draws.words,
    )


def _clusters_in_order(draws: PartitionDraws, partition: Any) -> Clusters:
    """The clusters of the partition in the order of their numbers; ValueError if there is noise."""
    own = draws.clusters_of(partition)
    if draws.has_noise or own.noise is not None:
        raise ValueError(
            "`draws` and `partition` must have each item in a cluster; got noise. Leave out the items that are noise, "
            "as by draws.isel(item=~noise), and read the others without noise=."
        )
    order = np.argsort(own.numbers, kind="stable")
    labels = np.argsort(order).astype(np.int32)[own.labels]
    return Clusters(labels, tuple(own.names[k] for k in order), own.numbers[order], None)


def _without_small(whole: Clusters, present: Flags) -> tuple[Labels, Clusters]:
    """Labels of all items, -1 for those of clusters with fewer than two values, and the clusters of the others."""
    kept = np.bincount(whole.labels[present], minlength=len(whole.names)) >= _FEWEST
    if kept.sum() < 2:
        raise ValueError(
            f"`partition` must have two clusters or more with at least {_FEWEST} values of `y` each; got "
            f"{kept.sum()} of {display.counted(kept.size, 'cluster')}. Join small clusters in `partition`, or search "
            "for one with other clusters, by n_clusters=."
        )
    labels = np.where(kept, kept.cumsum() - 1, -1).astype(np.int32)[whole.labels]
    names = tuple(name for name, is_kept in zip(whole.names, kept, strict=True) if is_kept)
    return labels, Clusters(labels[labels >= 0], names, whole.numbers[kept], None)


class _Values(NamedTuple):
    """Numbers (n, C) of each item, 0 where y is missing: y from its mean, or an indicator of each category."""

    columns: Floats
    present: Flags
    origin: float
    kind: str
    name: str
    categories: list[Hashable]  # empty unless y is categorical


def _values_of(y: Any, items: Items) -> _Values:
    given = as_array(items.reordered(y, "y"), "y")
    if given.shape != (items.n_items,):
        raise ValueError(
            f"`y` must have a value for each of the {items.n_items} items, NaN if it is missing; got shape "
            f"{given.shape}."
        )
    series = pd.Series(given)
    kind, present = pd.api.types.infer_dtype(series, skipna=True), series.notna().to_numpy()
    name = str(label) if (label := getattr(y, "name", None)) is not None else "y"
    if kind.startswith(("date", "time", "period")):
        raise TypeError(f"`y` must be numbers, booleans or categories; got {kind}. Convert dates to numbers.")
    if kind in ("boolean", "integer", "floating", "mixed-integer-float", "decimal", "empty"):
        numbers = series[present].to_numpy(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(f"`y` must be finite, NaN if it is missing; got {numbers[~np.isfinite(numbers)][0]}.")
        origin = float(numbers.mean()) if numbers.size and kind != "boolean" else 0.0
        columns = np.zeros((given.size, 1))
        columns[present, 0] = numbers - origin
        return _Values(columns, present, origin, BINARY if kind == "boolean" else NUMERIC, name, [])
    own = y.dtype.categories if isinstance(getattr(y, "dtype", None), pd.CategoricalDtype) else None
    coded = pd.Categorical(series, own)
    categories = [
        name for name, count in zip(coded.categories, np.bincount(coded.codes + 1)[1:], strict=False) if count
    ]
    if len(categories) < _FEWEST:
        raise ValueError(f"`y` must have two categories or more; got {len(categories)}.")
    columns = np.column_stack([np.asarray(series == name, np.float64) for name in categories])
    return _Values(columns, present, 0.0, CATEGORICAL, name, categories)


class _Sums(NamedTuple):
    """Number (K,), sum and sum of squares (K, C) of the values in each cluster of the partition."""

    number: Floats
    total: Floats
    squares: Floats


def _sums_by_cluster(values: _Values, own: Clusters) -> _Sums:
    n_clusters = len(own.names)
    number = np.bincount(own.labels[values.present], minlength=n_clusters).astype(np.float64)

    def sums(columns: Floats) -> Floats:
        return np.column_stack([np.bincount(own.labels, column, n_clusters) for column in columns.T])

    return _Sums(number, sums(values.columns), sums(np.square(values.columns)))


@singledispatch
def _items_in_common(draws: PartitionDraws, labels: Labels) -> tuple[npt.NDArray[Any], Integers]:
    """Items (R, K) that clusters of draws and of the partition have in common, and each draw's first row (N + 1,)."""
    return draws.clusters.joint_counts(labels), draws.clusters.starts


@_items_in_common.register
def _(draws: AllocationDraws, labels: Labels) -> tuple[npt.NDArray[Any], Integers]:
    common = expected_common_items(draws.probabilities, labels)
    n_draws, n_components, n_clusters = common.shape
    return common.reshape(-1, n_clusters), np.arange(n_draws + 1) * n_components


def _joint_tables(draws: PartitionDraws, labels: Labels) -> Floats:
    """Items (N, K, K) in common of the cluster that each draw has for k, and of the partition's l."""
    counts, starts = _items_in_common(draws, labels)
    own = partners(counts, starts)
    own = np.where(own < 0, counts.argmax(axis=1), own)
    n_draws, n_clusters = starts.size - 1, counts.shape[1]
    joint = np.zeros((n_draws, n_clusters, n_clusters))
    np.add.at(joint, (np.repeat(np.arange(n_draws), np.diff(starts)), own), counts)
    return joint


def _inverses(joint: Floats, number: Floats, own: Clusters, draws: PartitionDraws) -> tuple[Floats, Positions]:
    """Inverses of the misclassification matrices (N', K, K), and the draws that have one.

    Raises ValueError with the clusters that cannot be told apart if too many draws have none.
    """
    rows, columns = joint.sum(axis=2), joint.sum(axis=1)
    there = rows > 0
    scale = np.sqrt(np.where(there, rows, 1.0)[:, :, np.newaxis] * columns[:, np.newaxis])
    _, correlations, vectors = np.linalg.svd(joint / scale)
    has = correlations[:, -1] >= _LEAST_CORRELATION
    at = np.flatnonzero(has)
    inverse = np.linalg.inv(joint[at] / rows[at, :, np.newaxis])
    has[at] = np.all(np.einsum("tlk,l->tk", inverse, number) > 0, axis=1)
    left_out = float(draws.weights[~has].sum())
    if left_out > _MOST_LEFT_OUT:
        contrasts = vectors[~has, -1] * np.sqrt(columns[~has])
        pairs = np.sort(np.column_stack([contrasts.argmin(axis=1), contrasts.argmax(axis=1)]), axis=1)
        votes = np.bincount(pairs[:, 0] * len(own.names) + pairs[:, 1], draws.weights[~has])
        first, second = (display.as_text(own.names[k]) for k in divmod(int(votes.argmax()), len(own.names)))
        raise ValueError(
            f"`draws` must tell the clusters of `partition` apart; in {display.percent(left_out)} of the "
            f"{draws.words.draws} they do not, most often clusters {first} and {second}. Join these in `partition`, or "
            "search for one with fewer clusters, by max_clusters=."
        )
    return inverse[has[at]], np.flatnonzero(has)


class _InDraws(NamedTuple):
    """Shares (N, K, M) of the means by reported cluster in M estimates of each draw, the means, and their variances."""

    shares: Floats
    means: Floats  # (K, C)
    variances: Floats  # (K, C)
    freedom: Floats  # (K,)
    spread: Floats  # (N, C): standard deviation within clusters

    def of_pairs(self) -> "_InDraws":
        """The same of the differences between two clusters each, the second less the first."""
        first, second = np.triu_indices(self.shares.shape[2], 1)
        return self._replace(shares=self.shares[:, :, second] - self.shares[:, :, first])


def _in_draws(inverse: Floats, sums: _Sums) -> _InDraws:
    weighted = inverse * sums.number[:, np.newaxis]
    total = weighted.sum(axis=1)
    shares = weighted / total[:, np.newaxis]
    number = sums.number[:, np.newaxis]
    means = sums.total / number
    n_values, n_clusters = sums.number.sum(), sums.number.size
    estimates = np.einsum("tlk,lc->tkc", shares, means)
    variances = (sums.squares - number * np.square(means)) / (number - 1)
    within = sums.squares.sum(axis=0) - np.einsum("tk,tkc->tc", total, np.square(estimates))
    spread = np.sqrt(np.maximum(within, 0.0) / max(n_values - n_clusters, 1.0))
    return _InDraws(shares, means, np.maximum(variances, 0.0) / number, sums.number - 1, spread)


class _Pooled(NamedTuple):
    """An estimate over draws with its error, interval, p-value and effective sample size, each of one shape."""

    estimate: Floats
    error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    ess: Floats


def _pooled(samples: Samples, found: _InDraws, prob: float) -> _Pooled:
    """Pool estimates of draws, of shape (M, C), with variances within and between draws."""
    from scipy import stats

    values = np.einsum("tlm,lc->mct", found.shares, found.means)
    variances = np.einsum("tlm,lc->mct", np.square(found.shares), found.variances)
    of_parts = np.square(found.variances) / found.freedom[:, np.newaxis]
    squares = np.einsum("tlm,lc->mct", found.shares**4, of_parts)
    complete = np.divide(np.square(variances), squares, out=np.ones(squares.shape), where=squares > 0)
    estimate, within, freedom = (samples.mean(one) for one in (values, variances, complete))
    size = np.fmin(samples.mcse_and_ess(values)[1], samples.effective_draws)
    n = np.maximum(size, _FEWEST)
    between = samples.mean(np.square(values - estimate[..., np.newaxis])) * (n + 1) / (n - 1)
    error = np.sqrt(within + between)
    share = np.divide(between, within + between, out=np.zeros(error.shape), where=error > 0)
    degrees = 1 / (np.square(1 - share) / freedom + np.square(share) / (n - 1))
    half = error * stats.t.ppf((1 + prob) / 2, degrees)
    ratio = np.divide(np.abs(estimate), error, out=np.full(error.shape, np.nan), where=error > 0)
    return _Pooled(estimate, error, estimate - half, estimate + half, 2 * stats.t.sf(ratio, degrees), size)


def _holm(p_values: Floats) -> Floats:
    """P-values corrected for their number by Holm's method, the larger ones never below a smaller one."""
    flat = p_values.ravel()
    order = np.argsort(flat, kind="stable")
    corrected = np.empty(flat.size)
    corrected[order] = np.minimum(np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1)), 1.0)
    return corrected.reshape(p_values.shape)


def _estimates(
    numbers: dict[str, npt.NDArray[Any]], corrected: _Pooled, naive: _Pooled, values: _Values, own: Clusters
) -> xr.Dataset:
    columns = {name: getattr(corrected, name) for name in ("estimate", "low", "high", "error", "ess")}
    columns |= {"naive": naive.estimate, "naive_low": naive.low, "naive_high": naive.high}
    shifted = {name: column + values.origin * (name not in ("error", "ess")) for name, column in columns.items()}
    return _dataset("cluster", numbers, shifted, values, {"cluster": names_as_coordinate(own.names)})


def _differences(
    found: _Pooled, naive: _Pooled, spread: Floats, values: _Values, own: Clusters, used: bool
) -> xr.Dataset:
    unknown = np.full(found.p_value.shape, np.nan)
    is_numeric = values.kind == NUMERIC and spread > 0
    columns = {
        "difference": found.estimate,
        "low": found.low,
        "high": found.high,
        "error": found.error,
        "p_value": unknown if used else found.p_value,
        "p_corrected": unknown if used else _holm(found.p_value),
        "effect": np.divide(found.estimate, spread, out=unknown.copy(), where=is_numeric),
        "naive": naive.estimate,
        "naive_p_value": unknown if used else naive.p_value,
    }
    names = zip(*combinations(own.names, 2), strict=True)
    coords = {one: ("pair", names_as_coordinate(ends)) for one, ends in zip(("first", "second"), names, strict=True)}
    return _dataset("pair", {}, columns, values, coords)


def _dataset(
    dim: str, plain: dict[str, npt.NDArray[Any]], columns: dict[str, Floats], values: _Values, coords: dict[str, Any]
) -> xr.Dataset:
    """A Dataset over `dim`, and over the categories of y if it has some."""
    variables: dict[str, Any] = {name: (dim, column) for name, column in plain.items()}
    if not values.categories:
        return xr.Dataset(variables | {name: (dim, column[:, 0]) for name, column in columns.items()}, coords)
    named = coords | {"category": names_as_coordinate(values.categories)}
    return xr.Dataset(variables | {name: ((dim, "category"), column) for name, column in columns.items()}, named)
