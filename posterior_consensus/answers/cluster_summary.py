"""Parameters of clusters over the draws that contain these clusters, without relabelling."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.partial_partition import agreement
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import cluster_names, cluster_numbers, members_of
from posterior_consensus.ensemble.partitions import HasLabels, Labels, canonical_labels
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords, names_as_coordinate
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.sources.conversion import find_source, opened
from posterior_consensus.sources.parameters import component_labels, n_components_of, parameters_by_draw
from posterior_consensus.sources.where import Where

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_AXES = {"cluster": "summarized_cluster"}
_IN_WORDS = {"cluster": "summarized_clusters"}


@dataclass(frozen=True, eq=False, repr=False)
class ClusterSummary(InWords, HasLabels):
    """Clusters of the assigned items over the draws that contain all of them; made by :func:`cluster_summary`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Number of each assigned item's cluster in the partition, which sets its colour in figures; -1 for the
        unassigned items.
    n_draws : int
        Number of draws in which the assigned items are clustered exactly as in `labels`.
    probability, mcse : float
        Posterior probability of this event, and its Monte Carlo standard error.
    clusters : xarray.Dataset over ``cluster``, the names of the clusters in the order of their numbers
        ``probability`` that all items of a cluster are co-clustered, regardless of other items, and its ``mcse``.
    allocation : xarray.DataArray of shape (n_items, n_clusters + 1)
        Probability of each item to be in each cluster, given the assigned items' clusters. The last column,
        "elsewhere", is the probability to be in none of them: alone, or with unassigned items only. Rows sum to 1.
    parameters : xarray.Dataset over ``cluster`` and ``parameter``, or None
        ``mean``, ``sd`` and ``quantiles`` (over ``quantile``) of each parameter in these draws, with the standard error
        ``mcse`` of the mean and the effective sample size ``ess``. If a DataArray had the attribute ``units``, the
        coordinate ``unit`` has the unit of each parameter.
    """

    _figure = "profiles.plot_cluster_summary"

    labels: xr.DataArray = field(metadata=stored_as.array("summarized_labels", of_items=True))
    n_draws: int = field(metadata=stored_as.attribute("summarized_draws"))
    probability: float = field(metadata=stored_as.number("summarized_probability"))
    mcse: float = field(metadata=stored_as.number("summarized_mcse"))
    clusters: xr.Dataset = field(
        metadata=stored_as.table("summarized_cluster_{}", ("probability", "mcse"), _AXES, in_words=_IN_WORDS)
    )
    allocation: xr.DataArray = field(metadata=stored_as.array("summarized_allocation", {"to": "summarized_to"}))
    parameters: xr.Dataset | None = field(
        metadata=stored_as.table(
            "summarized_parameter_{}",
            ("mean", "sd", "mcse", "ess", "quantiles"),
            _AXES | {name: f"summarized_{name}" for name in ("parameter", "quantile", "unit")},
            in_words=_IN_WORDS,
        )
    )
    _of_runs: ClassVar = "summarized_independent"

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.clusters.sizes["cluster"]

    @property
    def numbers(self) -> npt.NDArray[np.int32]:
        """Number of each cluster in `labels`, ascending, shape (n_clusters,)."""
        return np.unique(self.labels.values[self.labels.values >= 0])

    @property
    def sizes(self) -> Positions:
        """Number of assigned items in each cluster, shape (n_clusters,)."""
        return np.unique(self.labels.values[self.labels.values >= 0], return_counts=True)[1]

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the parameters of each cluster.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster and parameter. Without parameters, a row for each cluster, with its probability and
            its items.
        """
        if self.parameters is not None:
            values = self.parameters.drop_vars("unit", errors="ignore")
            table = values.drop_dims("quantile").to_dataframe(["cluster", "parameter"])
            for level, values in zip(QUANTILES, self.parameters["quantiles"].transpose("quantile", ...), strict=True):
                table[f"{level:.0%}"] = values.values.ravel()
            return table
        members, dim = [own for own in members_of(self.labels) if own], str(self.labels.dims[0])
        names = pd.Index(self.clusters["cluster"].values, name="cluster", tupleize_cols=False)
        table = display.table_of_members(members, self.labels.size, dim, names).drop(columns="share")
        return table.assign(probability=self.clusters["probability"].values, mcse=self.clusters["mcse"].values)

    def _parts(self) -> display.Parts:
        n, n_open = self.labels.size, int((self.labels < 0).sum())
        probabilities, names = self.clusters["probability"].values, self.clusters["cluster"].values
        rows = zip(names, probabilities, self.sizes, strict=True)
        each = [f"{name}: {display.number(p)} (n = {size})" for name, p, size in rows]
        elsewhere = self.allocation.values[self.labels.values < 0]
        words, share = self.words, display.with_error(self.probability, self.mcse, words=self.words)
        together = words.either(
            "probability that all items of a cluster are co-clustered",
            "share of runs that co-cluster all items of a cluster",
        )
        lines = [
            (words.draws, f"{self.n_draws:,}, {share} of the {words.posterior}"),
            ("clusters", f"{together}, {display.listed(each, 8)}"),
        ]
        if n_open:
            means = elsewhere[:, :-1].mean(axis=0)
            shares = [f"{name}: {share:.0%}" for name, share in zip(names, means, strict=True)]
            others = f"{display.listed(shares, 8)}; elsewhere {elsewhere[:, -1].mean():.0%}"
            lines.append(("unassigned", f"{display.counted(n_open, 'item')}, on average in cluster {others}"))
        if self.parameters is not None:
            lines += display.about_errors(self.parameters["ess"].values, words)
        title = f"ClusterSummary: {n - n_open} of {display.counted_items(n, self.labels.dims[0])} in "
        return title + display.counted(self.n_clusters, "cluster"), lines, self.to_dataframe()


def cluster_summary(
    draws: Any,
    partition: Any,
    *,
    var_name: str | None = None,
    group: str = "posterior",
    weights: Any = None,
    log_weights: Any = None,
    first_label: int | None = None,
    **parameters: Any,
) -> ClusterSummary:
    """Summarize the clusters of a partial partition and their parameters, over the draws that contain these clusters.

    Parameters
    ----------
    draws : labels or allocation probabilities
        In any form that :func:`summarize` takes. With parameters, labels must be numbers of components, as sampled.
        PartitionDraws do not have these numbers.
    partition : PartialPartition, or label vector of shape (n_items,)
        Typically the result of :func:`partial_partition`, whose cluster numbers and names are kept. Unassigned items
        have the label -1. Few draws agree with a partition that assigns all items.
    var_name : str, optional
        Name of the variable of labels or probabilities. By default the only one.
    group : str
        Group of an InferenceData, DataTree or file.
    weights, log_weights : array_like, optional
        Weight of each draw, or its logarithm, as in :func:`as_partition_draws`.
    first_label : {0, 1}, optional
        Label of the first component. By default 0 if any label is 0, and 1 if any is the number of components; required
        if neither occurs.
    **parameters
        Parameters of the components, such as ``mu=idata.posterior["mu"]``: arrays of draws x components or chains x
        draws x components, followed by any further dimensions. A DataArray is paired by `chain` and `draw`.
        Components without items may be NaN.

    Returns
    -------
    ClusterSummary
        Probability, allocation of the other items and parameters of each cluster.

    Raises
    ------
    ValueError
        If no draw contains these clusters, the partition has other items than the draws, or parameters have other
        draws.
    TypeError
        If a parameter holds no numbers, or PartitionDraws are given with parameters.

    See Also
    --------
    partial_partition : items whose joint clustering has a given probability.
    relabel : components of all draws in the order of the consensus.
    ClusterSummary.plot : parameters by cluster.

    Notes
    -----
    Let A be the draws in which the assigned items are clustered exactly as in the partition [1]_. In each draw t of A,
    all assigned items i of a cluster are in one component z_t(i). The cluster has the parameter theta_t,z_t(i) of this
    component, so the names of components do not matter. Mean, standard deviation and quantiles are over A, with the
    draws' weights. The number of draws in A is random. The Monte Carlo standard error is therefore computed for a ratio
    of two means.

    If the partition was chosen on the same draws, `probability` is too high. Half of the draws choose a
    :func:`partial_partition`, which has the share of the others.

    `allocation` times `probability` is the joint probability of A and of an item being in a cluster. Draws with
    allocation probabilities use sampled components.

    References
    ----------
    .. [1] Page, Barrientos, Dahl and Dunson (2025), Uncertainty quantification in Bayesian clustering.
       https://doi.org/10.48550/arXiv.2511.16040

    Examples
    --------
    The names of the components switch in the second draw. The third draw does not contain the clusters.

    >>> import posterior_consensus as pc
    >>> labels = [[0, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1]]
    >>> mu = [[1.0, 8.0], [8.2, 1.2], [0.0, 4.0], [1.4, 8.1]]
    >>> summary = pc.cluster_summary(labels, [0, 0, 1, -1], mu=mu)
    >>> summary.probability, summary.parameters["mean"].values.ravel().round(3)
    (0.75, array([1.2, 8.1]))
    >>> summary.allocation.values[3].round(3)
    array([0.333, 0.667, 0.   ])
    """
    where = Where(var_name, group, weights=weights, log_weights=log_weights)
    with opened(draws, where) as (data, where):
        found = find_source(data, where)
        source = found.source.as_draws()
        labels, numbers, names = _partial_labels(source, partition)
        agrees = agreement(source, labels)
        rows, share = np.flatnonzero(agrees), float(source.samples.mean(agrees))
        if not share > 0:
            draw = source.samples.words.draw
            raise ValueError(
                f"`partition` must have clusters that some {draw} contains; none of {source.n_draws} {draw}s clusters "
                f"the {int((labels >= 0).sum())} assigned items like this. Assign fewer items, as by "
                "partial_partition(draws, prob)."
            )
        first = np.array([np.argmax(labels == k) for k in range(labels.max() + 1)])
        arrays = {name: parameters_by_draw({name: value}, source.samples)[name] for name, value in parameters.items()}
        own = np.zeros((source.n_draws, first.size), np.intp)
        if arrays and (n_components := n_components_of(arrays)) > 1:
            own = component_labels(source, found.labels, n_components, first_label)[:, first].astype(np.intp)
    columns, units = dict[str, Floats](), list[str]()
    for name, value in parameters.items():
        entries = dict(_entries_of_parameter(name, value, arrays[name], own))
        columns |= entries
        units += [display.unit_of(value)] * len(entries)
    statistics = _moments(source, columns, rows, share) if columns else None
    if statistics is not None and any(units):
        statistics = statistics.assign_coords(unit=("parameter", units))
    return ClusterSummary(
        labels=source.items.array(np.append(numbers, -1)[labels].astype(np.int32), "labels"),
        n_draws=rows.size,
        probability=share,
        mcse=float(source.samples.probability_mcse(agrees, source.n_clusters.astype(np.float64))),
        clusters=_together(source, labels).assign_coords(cluster=names_as_coordinate(names)),
        allocation=_allocation(source, [*map(str, names), "elsewhere"], first, rows),
        parameters=None if statistics is None else statistics.assign_coords(cluster=names_as_coordinate(names)),
        words=source.words,
    )


def _partial_labels(source: PartitionDraws, partition: Any) -> tuple[Labels, Labels, list[Hashable]]:
    """Position of each assigned item's cluster (n_items,), -1 for unassigned items; numbers and names of clusters."""
    values = np.asarray(source.items.reordered(partition))
    if values.shape != (source.n_items,):
        raise ValueError(f"`partition` must label all {source.n_items} items; got {values.size} labels.")
    assigned = np.flatnonzero(values != -1 if values.dtype.kind in "if" else np.ones(values.size, np.bool_))
    if assigned.size == 0:
        raise ValueError("`partition` must assign at least one item; got -1 for all.")
    own = canonical_labels(values[assigned], "partition")
    numbers = cluster_numbers(partition, values[assigned])
    order, names = np.argsort(numbers), cluster_names(partition, values[assigned])
    labels = np.full(values.size, -1, np.int32)
    labels[assigned] = np.argsort(order)[own]
    return labels, numbers[order].astype(np.int32), [names[k] for k in order]


def _entries_of_parameter(name: str, value: Any, array: Floats, components: Positions) -> Iterator[tuple[str, Floats]]:
    """Each entry of a parameter by name, as the clusters' values (n_draws, C)."""
    at = components.reshape(*components.shape, *[1] * (array.ndim - 2))
    values = np.take_along_axis(array, at if array.shape[1] > 1 else np.zeros_like(at), axis=1)
    for index in np.ndindex(*array.shape[2:]):
        entries = [_entry(value, axis - len(index), place) for axis, place in enumerate(index)]
        yield name if array.shape[2:] == (1,) else f"{name}[{', '.join(entries)}]", values[(..., *index)]


def _entry(value: Any, axis: int, place: int) -> str:
    """Coordinate value at a position along an axis; the position itself without a coordinate."""
    if not isinstance(value, xr.DataArray):
        return str(place)
    dim = [dim for dim in value.dims if dim not in ("chain", "draw", "sample")][axis]
    return str(value[dim].values[place]) if dim in value.coords else str(place)


def _together(source: PartitionDraws, labels: Labels) -> xr.Dataset:
    """Probability, for each cluster, that all its items are co-clustered."""
    members = [source.labels[:, np.flatnonzero(labels == k)] for k in range(labels.max() + 1)]
    together = np.stack([np.all(own == own[:, :1], axis=1) for own in members]).astype(np.float64)
    error = source.samples.probability_mcse(together, source.n_clusters.astype(np.float64))
    columns = {"probability": source.samples.mean(together), "mcse": error}
    return xr.Dataset({name: ("cluster", values) for name, values in columns.items()})


def _allocation(source: PartitionDraws, names: list[str], first: Positions, rows: Positions) -> xr.DataArray:
    """Probability of each item to be in each cluster, or in none, over the draws `rows`."""
    samples, own = source.samples.take(rows), source.labels[rows]
    shares = [samples.mean((own == own[:, [one]]).T.astype(np.float64)) for one in first]
    elsewhere = np.maximum(1.0 - np.sum(shares, axis=0), 0.0)
    values = np.stack([*shares, elsewhere], axis=1)
    return source.items.array(values, "allocation", (..., "to"), {"to": names})


def _moments(source: PartitionDraws, columns: Mapping[str, Floats], rows: Positions, share: float) -> xr.Dataset:
    """Moments and quantiles of the parameters (n_draws, C) over the draws `rows`, with standard errors of ratios."""
    samples = source.samples.take(rows)
    values = np.stack(list(columns.values())).transpose(2, 0, 1)[..., rows]
    if not np.isfinite(values).all():
        _, column, _ = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"`{list(columns)[column]}` must be finite for components that have items; got NaN or infinity."
        )
    mean = samples.mean(values)
    deviations = values - mean[..., np.newaxis]
    spread = np.zeros((*mean.shape, source.n_draws))
    spread[..., rows] = deviations / share
    mcse = source.samples.mcse(spread)
    variance = samples.mean(np.square(deviations))
    ess = np.divide(variance, np.square(mcse), out=np.full(mean.shape, np.nan), where=mcse > 0)
    quantiles = np.quantile(values, QUANTILES, axis=-1, weights=samples.weights, method="inverted_cdf")
    moments = {"mean": mean, "sd": np.sqrt(variance), "mcse": mcse, "ess": ess}
    dims = ("cluster", "parameter")
    return xr.Dataset(
        {name: (dims, one) for name, one in moments.items()} | {"quantiles": (("quantile", *dims), quantiles)},
        {"parameter": list(columns), "quantile": list(QUANTILES)},
    )
