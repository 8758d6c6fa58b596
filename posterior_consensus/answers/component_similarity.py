"""Similarities of items from the Hellinger distances between their mixture components."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy import sparse, special

from posterior_consensus.ensemble.allocations import AllocationDraws
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import canonical_rows, enumerate_partitions
from posterior_consensus.ensemble.samples import ChainSamples
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.search.classical import cut, tree
from posterior_consensus.sources.conversion import find_source, opened
from posterior_consensus.sources.mixtures.components import component_draws, is_model
from posterior_consensus.sources.parameters import (
    Numbers,
    component_labels,
    n_components_of,
    parameters_by_draw,
    taken,
)
from posterior_consensus.sources.where import Where

_LEVELS = np.linspace(-27.6, 27.6, 37)  # logits of the quantiles that bound the intervals: 1e-12 to 1 - 1e-12
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_TAIL = 1e-12

Parameters = Mapping[str, Floats]
_MOST_GROUPS = 30
_MOST_ENUMERATED = 8  # components: 4,140 partitions
_NORMAL = {"mean": "loc", "sd": "scale"}
_ORDER = ("chain", "draw", "weight")


def similarities(families: Sequence[tuple[Any, Parameters]]) -> Floats:
    """One minus the Hellinger distance (n_draws, K, K) between the components of each draw.

    `families`: distribution of each data set, independent given the component; None for multivariate normals.
    Parameters have the shape (n_draws, K or 1, features or 1). Multivariate normals have ``mean`` and ``cov``. Raises
    ValueError if the distribution does not allow a parameter.
    """
    logs = sum(_log_affinities(distribution, parameters) for distribution, parameters in families)
    similar: Floats = 1.0 - np.sqrt(-np.expm1(np.minimum(logs, 0.0)))
    similar[:, np.arange(similar.shape[1]), np.arange(similar.shape[1])] = 1.0
    return similar


def _log_affinities(distribution: Any, parameters: Parameters) -> Floats:
    """Logarithms (n_draws, K, K) of the Bhattacharyya affinities, the integrals of sqrt(f g)."""
    shape = np.broadcast_shapes(*(v.shape[:-1] if name == "cov" else v.shape for name, v in parameters.items()))
    n_draws, n_components = shape[:2]
    memory.check(32 * n_draws * n_components**2, f"Distances of {n_components} components in {n_draws} draws")
    if distribution is None:
        return _of_normals(parameters["mean"], parameters["cov"])
    full = {name: np.broadcast_to(v, shape).reshape(n_draws, n_components, -1) for name, v in parameters.items()}
    _check_parameters(distribution, full)
    affinity = _affinity_of(distribution, full)
    features = range(next(iter(full.values())).shape[2])
    return np.sum([affinity({name: v[..., f] for name, v in full.items()}) for f in features], axis=0)


def _check_parameters(distribution: Any, parameters: Parameters) -> None:
    """Raise ValueError if a parameter is invalid: SciPy's median is then NaN."""
    with np.errstate(all="ignore"):
        median = distribution.ppf(0.5, **parameters)
    if np.isnan(median).any():
        row, k, _ = (int(at) for at in np.argwhere(np.isnan(median))[0])
        given = ", ".join(f"{name} {float(v[row, k].min()):g}" for name, v in parameters.items())
        raise ValueError(
            f"Parameters must have values that the distribution {distribution.name!r} allows; got {given} for "
            f"component {k} in row {row} of the draws."
        )


def _affinity_of(distribution: Any, parameters: Parameters) -> Callable[[Parameters], Floats]:
    """Function that returns the log affinities (n_draws, K, K) for parameters (n_draws, K)."""
    closed = _CLOSED.get(distribution.name)
    if closed is not None:
        names, function = closed
        moved = distribution.name != "norm" and np.any(parameters.get("loc", np.zeros(1)))
        trials = parameters.get("n", np.zeros((1, 1, 1)))
        if not moved and not np.any(np.ptp(trials, axis=1)):
            return lambda own: function(*(own.get(name, np.full((1, 1), default)) for name, default in names.items()))
    return lambda own: _by_quadrature(distribution, own)


def _two(parameter: Floats) -> tuple[Floats, Floats]:
    return parameter[:, :, np.newaxis], parameter[:, np.newaxis]


def _of_normal(mean: Floats, sd: Floats) -> Floats:
    (m1, m2), (s1, s2) = _two(mean), _two(sd)
    return -0.5 * np.log1p((s1 - s2) ** 2 / (2 * s1 * s2)) - (m1 - m2) ** 2 / (4 * (s1**2 + s2**2))


def _of_poisson(rate: Floats) -> Floats:
    r1, r2 = _two(np.sqrt(rate))
    return -0.5 * (r1 - r2) ** 2


def _of_gamma(shape: Floats, scale: Floats) -> Floats:
    (a1, a2), (s1, s2) = _two(shape), _two(scale)
    a = (a1 + a2) / 2
    logs = special.gammaln(a) - (special.gammaln(a1) + special.gammaln(a2)) / 2
    return logs + a * np.log(2 * s1 * s2 / (s1 + s2)) - (a1 * np.log(s1) + a2 * np.log(s2)) / 2


def _of_binomial(n: Floats, p: Floats) -> Floats:
    (p1, p2), (q1, q2) = _two(np.sqrt(p)), _two(np.sqrt(1 - p))
    with np.errstate(divide="ignore"):
        return n[..., np.newaxis] * np.log(p1 * p2 + q1 * q2)


_CLOSED: dict[str, tuple[dict[str, float], Callable[..., Floats]]] = {
    "norm": ({"loc": 0.0, "scale": 1.0}, _of_normal),
    "poisson": ({"mu": 1.0}, _of_poisson),
    "gamma": ({"a": 1.0, "scale": 1.0}, _of_gamma),
    "expon": ({"a": 1.0, "scale": 1.0}, _of_gamma),
    "bernoulli": ({"n": 1.0, "p": 0.5}, _of_binomial),
    "binom": ({"n": 1.0, "p": 0.5}, _of_binomial),
}
"""Closed forms by name of the distribution: parameters with their defaults, and the function of the parameters."""


def _of_normals(mean: Floats, cov: Floats) -> Floats:
    """Log affinities of multivariate normals, pair by pair: there are few components."""
    n_draws, n_components, n_features = np.broadcast_shapes(mean.shape, cov.shape[:-1])
    mean = np.broadcast_to(mean, (n_draws, n_components, n_features))
    cov = np.broadcast_to(cov, (*mean.shape, n_features))
    try:
        np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise ValueError("`cov` must hold positive definite matrices of the features; got others.") from None
    own = np.linalg.slogdet(cov)[1]
    logs = np.zeros((n_draws, n_components, n_components))
    for k in range(1, n_components):
        middle = (cov[:, :k] + cov[:, k : k + 1]) / 2
        difference = (mean[:, :k] - mean[:, k : k + 1])[..., np.newaxis]
        squares = np.sum(difference * np.linalg.solve(middle, difference), axis=(-2, -1))
        log_affinities = (own[:, :k] + own[:, k : k + 1]) / 4 - np.linalg.slogdet(middle)[1] / 2 - squares / 8
        logs[:, :k, k] = logs[:, k, :k] = log_affinities
    return logs


def _by_quadrature(distribution: Any, parameters: Parameters) -> Floats:
    """Log affinities of any distribution, by sums of square roots of densities over points of all components."""
    n_draws, n_components = next(iter(parameters.values())).shape
    logs = np.empty((n_draws, n_components, n_components))
    is_discrete = hasattr(distribution, "logpmf")
    log_density = distribution.logpmf if is_discrete else distribution.logpdf
    points = _integers if is_discrete else _between_quantiles
    n_points = _NODES.size * _LEVELS.size * n_components
    # Integers differ from draw to draw: one at a time.
    for rows in slices(n_draws, 1) if is_discrete else memory.parts(n_draws, 32 * n_components * n_points):
        own = {name: v[rows, :, np.newaxis] for name, v in parameters.items()}
        x, weight = points(distribution, {name: v[rows] for name, v in parameters.items()})
        with np.errstate(all="ignore"):
            roots = np.exp(0.5 * log_density(x[:, np.newaxis], **own)) * np.sqrt(weight)[:, np.newaxis]
        products = roots @ roots.transpose(0, 2, 1)
        norms = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
        with np.errstate(divide="ignore"):
            logs[rows] = np.log(products / (norms[:, :, np.newaxis] * norms[:, np.newaxis]))
    return logs


def _between_quantiles(distribution: Any, parameters: Parameters) -> tuple[Floats, Floats]:
    """Gauss-Legendre points (n_draws, P) and their weights, between quantiles of every component."""
    lower, upper = _LEVELS[_LEVELS <= 0, np.newaxis, np.newaxis], _LEVELS[_LEVELS > 0, np.newaxis, np.newaxis]
    quantiles = [
        distribution.ppf(special.expit(lower), **parameters),
        distribution.isf(special.expit(-upper), **parameters),
    ]
    ends = np.concatenate(quantiles).transpose(1, 0, 2)
    ends = np.sort(ends.reshape(len(ends), -1), axis=1)
    half = np.diff(ends, axis=1)[..., np.newaxis] / 2
    points = ends[:, :-1, np.newaxis] + half * (1 + _NODES)
    return points.reshape(len(ends), -1), (half * _WEIGHTS).reshape(len(ends), -1)


def _integers(distribution: Any, parameters: Parameters) -> tuple[npt.NDArray[Any], Floats]:
    """All integers (1, P) between the extreme quantiles of a draw's components, and a weight of 1."""
    first, last = (function(_TAIL, **parameters) for function in (distribution.ppf, distribution.isf))
    span = np.arange(int(first.min()), int(last.max()) + 1)
    memory.check(32 * first.size * span.size, f"Probabilities of {span.size:,} integers")
    return span[np.newaxis], np.ones((1, 1))


def _write_matrix(values: Floats, record: Any, parts: stored_as.DatasetParts) -> None:
    parts.variables["component_similarity"] = record.items.pair_array(values, "component_similarity")
    parts.items = record.items.array(values[0], "component_similarity")


def _write_partitions(partitions: PartitionDraws, record: Any, parts: stored_as.DatasetParts) -> None:
    along = "component_sample"
    own = {
        f"component_{name}": (along, getattr(partitions.samples, name + "s" * (name == "weight"))) for name in _ORDER
    }
    parts.variables["component_partitions"] = partitions.items.array(
        partitions.labels, "component_partitions", (along, ...), own
    )


def _read_items(group: stored_as.Group, name: str = "items") -> Items:
    return Items.along(group["component_similarity"], str(group["component_similarity"].dims[0]))


def _read_partitions(group: stored_as.Group, name: str) -> PartitionDraws:
    labels = group["component_partitions"]
    chain, draw, weights = (stored_as.own_in(labels, f"component_{one}").values for one in _ORDER)
    samples = ChainSamples(chain, draw, weights)
    return PartitionDraws.of(labels.values, samples=samples, items=_read_items(group))


@dataclass(frozen=True, eq=False, repr=False)
class ComponentSimilarity(PairSimilarity, Stored):
    """Similarities of items by their mixture components; made by :func:`component_similarity`.

    Every function that takes a :class:`PairSimilarity` takes it.

    Attributes
    ----------
    items : Items
        The items, with their coordinates.
    values : ndarray of shape (n_items, n_items), dtype float64
        One minus the posterior mean of the Hellinger distance between the components of two items.
    partitions : PartitionDraws
        A partition for each draw, with its components merged to minimize the loss at the threshold `tau`.
    n_components : ndarray of shape (n_draws,), dtype int64
        Number of components with items in each draw.
    """

    _figure = "n_clusters.plot_component_similarity"

    items: Items = field(metadata=stored_as.declared(lambda value, record, parts: None, _read_items))
    values: Floats = field(
        metadata=stored_as.declared(_write_matrix, lambda group, name: group["component_similarity"].values)
    )
    partitions: PartitionDraws = field(kw_only=True, metadata=stored_as.declared(_write_partitions, _read_partitions))
    n_components: Integers = field(kw_only=True, metadata=stored_as.values("n_components", "component_sample"))

    @property
    def tau(self) -> float:
        """Mean similarity of all pairs, the pair threshold of ``binder(tau="mean")``; 1/2 for a single item."""
        return self.mean_similarity

    @cached_property
    def curve(self) -> xr.DataArray:
        """Share of the total distance that lies within clusters, for 1 to 30 clusters of average linkage."""
        numbers = np.arange(1, min(_MOST_GROUPS, self.n_items) + 1)
        shares = np.zeros(numbers.size)
        tau = self.tau
        if self.n_items > 1 and tau < 1:
            cuts = cut(tree(self.values, "average"), numbers)
            for row, labels in enumerate(cuts):
                within = self.links(labels)[0][np.arange(self.n_items), labels].sum()
                n_pairs = np.square(np.bincount(labels)).sum() - self.n_items
                shares[row] = (n_pairs - within) / (self.n_items * (self.n_items - 1) * (1 - tau))
        return xr.DataArray(np.clip(shares, 0.0, 1.0), {"n_clusters": numbers}, ("n_clusters",), "distance_within")

    def of_items(self, at: Positions) -> Self:
        """Select items by position.

        Parameters
        ----------
        at : ndarray of int
            Positions of the items.

        Returns
        -------
        ComponentSimilarity
            The similarities of these items.
        """
        some = self.partitions.of_items(at)
        return replace(self, items=some.items, values=self.values[np.ix_(at, at)], partitions=some)

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the posterior of the numbers of components and of clusters.

        Returns
        -------
        pandas.DataFrame
            A row for each number, with the shares of draws with this number of components or clusters, and `curve`.
        """
        return self._shares().assign(distance_within=self.curve.values)

    def _shares(self) -> pd.DataFrame:
        """Probabilities of the numbers of components and of clusters."""
        samples, numbers = self.partitions.samples, np.arange(1, min(_MOST_GROUPS, self.n_items) + 1)
        by_name = {"components": self.n_components, "clusters": self.partitions.n_clusters}
        shares = {name: samples.mean((numbers[:, np.newaxis] == own).astype(float)) for name, own in by_name.items()}
        return pd.DataFrame(shares, pd.Index(numbers, name="number"))

    def _lines(self) -> list[tuple[str, str]]:
        samples = self.partitions.samples
        means = (samples.mean(own.astype(float)) for own in (self.n_components, self.partitions.n_clusters))
        return [
            ("tau", f"{self.tau:.4g}, the mean similarity"),
            ("merged", "{:.3g} components of a draw become {:.3g} clusters, on average".format(*means)),
            *samples.lines(),
        ]

    def _parts(self) -> display.Parts:
        title, shares = f"ComponentSimilarity: {display.counted_items(self.n_items, self.items.dim)}", self._shares()
        return title, self._lines(), shares[shares.sum(axis=1) > 0]


def component_similarity(
    draws: Any,
    var_name: str | None = None,
    *,
    model: Any = None,
    distribution: Any = None,
    group: str = "posterior",
    weights: Any = None,
    log_weights: Any = None,
    first_label: int | None = None,
    progressbar: bool = True,
    **parameters: Any,
) -> ComponentSimilarity:
    """Compute similarities of items from their components, to merge components that nearly coincide.

    Parameters
    ----------
    draws : labels, allocation probabilities, or with `model` an InferenceData, DataTree, Dataset or path
        Labels as sampled, which are numbers of components, in any form that :func:`as_partition_draws` takes except
        PartitionDraws, which are renumbered. Or allocation probabilities in any form. Or the posterior of `model`.
    var_name : str, optional
        Name of the labels, the probabilities or the model's mixture. By default the only one.
    model : pymc.Model, optional
        PyMC model, which has the components; see :func:`allocation_probabilities`.
    distribution : distribution of scipy.stats, optional
        Family of the components, such as ``scipy.stats.poisson``. By default normal, with the parameters ``mean`` and
        either ``sd`` or ``cov``. Not with a model.
    group : str
        Group of an InferenceData, DataTree or file.
    weights, log_weights : array_like, optional
        Weight of each draw, or its logarithm, as in :func:`as_partition_draws`. Not with a model.
    first_label : {0, 1}, optional
        Label of the first component. By default 0 if any label is 0, and 1 if any is the number of components; required
        if neither occurs.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **parameters
        Parameters of the components, by the names that the distribution has for them: arrays of draws x components or
        chains x draws x components. A further dimension runs over features, which are independent given the component;
        ``cov`` has two such dimensions. A parameter without a dimension of components is common to all components, and
        a number is common to all draws. Components without items may be NaN.

    Returns
    -------
    ComponentSimilarity
        Similarities of items, and a partition for each draw.

    Raises
    ------
    ValueError
        If parameters and draws do not fit, or the model has no mixture of components of one known family.
    TypeError
        If parameters are missing, or the distribution does not have them.
    MemoryError
        If the similarities of all pairs, or the distances, take more than the memory budget.

    See Also
    --------
    binder : ``tau="mean"`` is the threshold for these similarities.
    ComponentSimilarity.plot : the distance within clusters by their number.

    Notes
    -----
    If a group does not have the distribution of a component, the mixture describes it by several components. Items i
    and j have the distance

        Delta_ij = sum_t w_t H(f_t,i, f_t,j),    H^2(f, g) = 1 - integral sqrt(f g),

    where f_t,i is the density of the component of item i in draw t, and w_t the weight of the draw [1]_. With
    allocation probabilities p, H(f_t,i, f_t,j) is replaced by its mean over the components of both items, sum_kl p_tik
    p_tjl H_t,kl. The similarity is 1 - Delta. The loss of [1]_, with the authors' choice of its constant, is Binder's
    loss for this similarity with the mean similarity as the pair threshold.

    Integrals have a closed form for normal, Poisson, exponential, gamma, Bernoulli and binomial components (with the
    same n). For other families they are sums over integers, or Gauss-Legendre sums between 37 quantiles of each
    component; tails of probability 1e-12 are left out.

    `partitions` has one partition for each draw, for :func:`credible_ball` and other functions: the components of the
    draw are merged to minimize the same loss for that draw's similarities, at the same threshold. With up to eight
    components, all their partitions are tried; with more, the cuts of an average-linkage tree. With allocation
    probabilities, items are in sampled components.

    References
    ----------
    .. [1] Dombowsky and Dunson (2024), Bayesian clustering via fusing of localized densities, Journal of the American
       Statistical Association. https://doi.org/10.1080/01621459.2024.2427935

    Examples
    --------
    Components 0 and 1 nearly coincide, and component 2 is far away.

    >>> import posterior_consensus as pc
    >>> labels = [[0, 1, 0, 2, 2], [1, 0, 0, 2, 2]]
    >>> mean, sd = [[0.0, 0.5, 9.0], [0.2, 0.0, 8.0]], [[1.0, 1.2, 1.0], [1.0, 1.0, 1.0]]
    >>> similarity = pc.component_similarity(labels, mean=mean, sd=sd)
    >>> similarity.values[0].round(3)
    array([1.   , 0.873, 0.965, 0.   , 0.   ])
    >>> best = pc.consensus_partition(similarity, loss=pc.binder(tau="mean"), random_seed=1)
    >>> best.labels.values
    array([0, 0, 0, 1, 1], dtype=int32)
    >>> pc.credible_ball(similarity.partitions, best, loss="vi").radius
    0.0
    """
    if is_model(draws) and model is None:
        raise TypeError("`draws` must be the posterior of the model: component_similarity(idata, model=model).")
    where = Where(var_name, group, weights=weights, log_weights=log_weights)
    if model is not None:
        if distribution is not None or parameters or where.weights is not None:
            raise TypeError(
                "A model names its own components: `distribution`, `weights` and parameters must be left out."
            )
        with opened(draws, where) as (data, where):
            source, components, families = component_draws(model, data, where, progressbar)
    else:
        family, own_names = _family(distribution, parameters)
        with opened(draws, where) as (data, where):
            found = find_source(data, where)
            source = found.source.as_draws()
            arrays = parameters_by_draw(parameters, source.samples)
            arrays = {own_names.get(name, name): values for name, values in arrays.items()}
            families = [(family, arrays)]
            components = component_labels(source, found.labels, n_components_of(arrays), first_label)
    source.check_memory()
    return _similarity_of(source, components, families)


def _family(distribution: Any, parameters: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
    """The distribution, None for multivariate normals, and SciPy's names of parameters that are renamed."""
    from scipy import stats

    if distribution is None:
        if set(parameters) not in ({"mean", "sd"}, {"mean", "cov"}):
            raise TypeError(
                f"Normal components have the parameters `mean` and either `sd` or `cov`; got {list(parameters)}. For "
                "other components, give `distribution`, such as scipy.stats.poisson."
            )
        return (None, {}) if "cov" in parameters else (stats.norm, _NORMAL)
    if not isinstance(distribution, (stats.rv_continuous, stats.rv_discrete)):
        raise TypeError(
            f"`distribution` must be a distribution of scipy.stats, such as scipy.stats.poisson; got "
            f"{type(distribution).__name__}."
        )
    shapes = [] if distribution.shapes is None else distribution.shapes.split(", ")
    allowed = [*shapes, "loc", *["scale"] * isinstance(distribution, stats.rv_continuous)]
    if set(parameters) - set(allowed) or set(shapes) - set(parameters) or not parameters:
        raise TypeError(
            f"The parameters of {distribution.name!r} are {', '.join(map(repr, allowed))}; those without a default, "
            f"{shapes}, must be given; got {list(parameters)}."
        )
    return distribution, {}


def _similarity_of(
    source: PartitionDraws, components: Numbers, families: Sequence[tuple[Any, Parameters]]
) -> ComponentSimilarity:
    """The similarities, and the partition of each draw."""
    labels, n_clusters = source.labels, source.backend.n_clusters
    # Components that have items, in the order of their first item; padded with the first one.
    occupied = np.zeros((source.n_draws, int(n_clusters.max())), np.intp) + components[:, :1]
    np.put_along_axis(occupied, labels.astype(np.intp), components, axis=1)
    if source.counted_draws is not None:
        similar = own = similarities([(family, taken(parameters, occupied)) for family, parameters in families])
    else:
        similar = similarities(families)
        rows = np.arange(source.n_draws)[:, np.newaxis, np.newaxis]
        own = similar[rows, occupied[:, :, np.newaxis], occupied[:, np.newaxis]]
    values = _mean_similarity(source, similar)
    counts = np.zeros(occupied.shape)
    np.add.at(counts, (np.arange(source.n_draws)[:, np.newaxis], labels), 1.0)
    unmerged = ComponentSimilarity(source.items, values, partitions=source.labels_only(), n_components=n_clusters)
    groups = grouped(own, counts, min(unmerged.tau, 1.0 - 1e-12))
    merged, _ = canonical_rows(np.take_along_axis(groups, labels.astype(np.intp), axis=1), occupied.shape[1])
    return replace(unmerged, partitions=PartitionDraws.of(merged, samples=source.samples, items=source.items))


def _mean_similarity(source: PartitionDraws, similar: Floats) -> Floats:
    """Mean similarity (n, n) over draws of the components of each two items, by matrix products."""
    n_items, n_components, weights = source.n_items, similar.shape[1], source.weights
    total = np.zeros((n_items, n_items))
    for rows in slices(source.n_draws, max(1, memory.PROBABILITIES_AT_ONCE // (n_items * n_components))):
        weighted = similar[rows] * weights[rows, np.newaxis, np.newaxis]
        left, right = _factors(source, rows, weighted)
        total += left @ right.reshape(-1, n_items)
    np.fill_diagonal(total, 1.0)
    return np.clip((total + total.T) / 2, 0.0, 1.0)


@singledispatch
def _factors(source: PartitionDraws, rows: slice, weighted: Floats) -> tuple[Any, Floats]:
    """Two factors of the sum of the similarities of some draws."""
    labels, n_components = source.labels[rows].astype(np.intp), weighted.shape[1]
    right = np.take_along_axis(weighted, labels[:, np.newaxis], axis=2)
    columns = (n_components * np.arange(len(labels))[:, np.newaxis] + labels).T.ravel()
    ends = np.arange(0, columns.size + 1, len(labels))
    return sparse.csr_array((np.ones(columns.size), columns, ends), (source.n_items, len(right) * n_components)), right


@_factors.register
def _(source: AllocationDraws, rows: slice, weighted: Floats) -> tuple[Any, Floats]:
    probabilities = source.probabilities[rows].astype(np.float64)
    return probabilities.transpose(1, 0, 2).reshape(source.n_items, -1), weighted @ probabilities.transpose(0, 2, 1)


def grouped(similar: Floats, n_items: Floats, tau: float) -> Positions:
    """Group of each component (N, K) that minimizes Binder's loss at the pair threshold `tau`.

    Given are the similarities (N, K, K) of the components of each draw and their numbers of items (N, K); empty
    components come last. The minimum is over all partitions of at most eight components, otherwise over the cuts of
    their average-linkage tree.
    """
    n_components = n_items.shape[1]
    costs = n_items[:, :, np.newaxis] * n_items[:, np.newaxis] * (tau - similar)
    groups = np.broadcast_to(np.arange(n_components), n_items.shape).copy()
    occupied = np.sum(n_items > 0, axis=1)
    few = np.flatnonzero(occupied <= _MOST_ENUMERATED)
    width = min(_MOST_ENUMERATED, n_components)
    groups[few, :width] = _of_all(costs[few, :width, :width])
    for row in np.flatnonzero(occupied > _MOST_ENUMERATED):
        own = occupied[row]
        cuts = cut(tree(similar[row, :own, :own], "average"), range(1, own + 1))
        together = cuts[:, :, np.newaxis] == cuts[:, np.newaxis]
        groups[row, :own] = cuts[np.argmin(np.sum(together * costs[row, :own, :own], axis=(1, 2)))]
    return groups


def _of_all(costs: Floats) -> Positions:
    """The partition (K,) of a few components with the least sum of costs within groups, for each draw."""
    partitions = np.concatenate(list(enumerate_partitions(costs.shape[1]))).astype(np.intp)
    first, second = np.triu_indices(costs.shape[1], 1)
    together = (partitions[:, first] == partitions[:, second]).astype(np.float64)
    best = np.empty(len(costs), np.intp)
    for rows in memory.parts(len(costs), 8 * len(partitions)):
        best[rows] = np.argmin(costs[rows][:, first, second] @ together.T, axis=1)
    return partitions[best]
