"""Relabelling: the components of every draw in the order of the consensus clusters."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.allocations import as_soft
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import cluster_numbers
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.ensemble.switching import (
    common_items,
    expected_common_items,
    is_matched,
    least_divergence,
    most_in_common,
    with_the_rest,
)
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.arguments import listing, warn
from posterior_consensus.sources.arrays import sums_to_one
from posterior_consensus.sources.containers import dim_names, group_dataset, has_groups, with_groups
from posterior_consensus.sources.conversion import as_draws, find_source, found_labels
from posterior_consensus.sources.labels import samples_of
from posterior_consensus.sources.parameters import component_numbers
from posterior_consensus.sources.variables import (
    label_candidates,
    other_dims,
    probability_candidates,
)
from posterior_consensus.sources.where import Where

_MUCH_LEFT_OUT = 0.05  # share of the items in components without a cluster, beyond which a warning is given
_LOW_AGREEMENT = 0.8  # share of a cluster's items in its component, below which a warning is given
_UNNAMED = re.compile(r"_dim(_\d+)?$")  # names by ArviZ and pymc-extras of dimensions without a name


def relabel(
    draws: Any,
    partition: Any,
    *,
    component_dim: str | Sequence[str],
    var_name: str | None = None,
    allocations: Any = None,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    first_label: int | None = None,
) -> Any:
    """Reorder the components of every draw to match the consensus clusters, which undoes label switching.

    Parameters
    ----------
    draws : InferenceData, DataTree or Dataset
        The posterior, with its parameters by component. It is not modified.
    partition : result object, DataArray or label vector of shape (n_items,)
        Typically the consensus, or a summary. Clusters keep their numbers.
    component_dim : str or sequence of str
        Dimension of the K components. Give several of equal length if variables use different names (``mu_dim_0`` and
        ``w_dim_0``) or have the dimension twice (``component`` and ``component_bis``).
    var_name : str, optional
        Name of the label variable. By default found as :func:`summarize` finds it.
    allocations : PartitionDraws with allocation probabilities, or any posterior that :func:`summarize` takes, optional
        Allocation probabilities of shape (n_draws, n_items, K) for the same draws, if the posterior does not contain
        them. They are matched instead of labels. By default the allocation probabilities of a summary given as
        `partition`, if the posterior has neither labels nor probabilities.
    group : str
        Group of an InferenceData or DataTree.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws; by default as in :func:`as_partition_draws`.
    first_label : {0, 1}, optional
        Label of the first component. By default 0 if any label is 0, and 1 if any is the number of components; required
        if neither occurs.

    Returns
    -------
    InferenceData, DataTree or Dataset
        Of the same type as `draws`. In `group`, each dimension of `component_dim` has the numbers of the C consensus
        clusters as its coordinate, typically 0 to C - 1. The label variable has these numbers; items in other
        components have larger numbers. Two groups are added, except to a Dataset:

        - ``extra_components``, if K > C: the parameters of the K - C components without a cluster, numbered C, C + 1,
          ... in the order of the draw or, with `allocations`, aligned across draws.
        - ``relabelling``, over the draws and clusters: ``permutation``, the model's component of each cluster, and
          ``matched``, whether the two have items in common. Over the clusters: ``match_share``, the share of draws with
          a match; ``cluster_agreement``, the mean share of the cluster's items in its component; and
          ``component_agreement``, the mean share of a matched component's items in its cluster. Over all items:
          ``agreement``, the mean share in the component of their cluster, and ``left_out``, the mean share in
          components without a cluster.

    Raises
    ------
    ValueError
        If a dimension or the labels are missing or ambiguous, or labels are not numbers of components. If the consensus
        has other items or more clusters than there are components. If allocations have other draws.
    TypeError
        If `draws` has another type.

    Warns
    -----
    UserWarning
        If more than 5% of the items are in components without a cluster, so that the weights of the clusters do not sum
        to one; if less than 80% of a cluster's items are in its component; or if `component_dim` seems to omit a
        dimension.

    See Also
    --------
    cluster_summary : Parameters of clusters over the draws that contain them.
    membership : Probability of each item to belong to each cluster.

    Notes
    -----
    With labels, the components of a draw are matched with clusters so that draw and consensus agree on the most items
    (ECR) [1]_. With allocation probabilities p, the expected number of items is used, and Stephens' algorithm [2]_
    starts from this match. Let q_ik be the mean probability of item i for the component in position k. The algorithm
    alternates between q and, for each draw, the order pi of its components that minimizes

        sum_i sum_k p_i,pi(k) log(p_i,pi(k) / q_ik).

    Every cluster gets a component in every draw. Without a match, the draw has no such cluster, and the component is
    typically empty: its parameters are draws from the prior, which widen the cluster's posterior. They are not replaced
    by NaN, because R-hat, ESS and intervals would then be NaN.

    Interpret the parameters of a cluster if its match share and both agreements are near 1. The match share alone does
    not suffice, because one item in common makes a match. For other clusters, condition on the match, for example
    ``posterior["mu"].where(relabelling["matched"])``.

    References
    ----------
    .. [1] Papastamoulis and Iliopoulos (2010), Journal of Computational and Graphical Statistics 19(2), 313-331.
       https://doi.org/10.1198/jcgs.2010.09008
    .. [2] Stephens (2000), Journal of the Royal Statistical Society B 62(4), 795-809.
       https://doi.org/10.1111/1467-9868.00265

    Examples
    --------
    >>> import xarray as xr
    >>> import posterior_consensus as pc
    >>> z = xr.DataArray([[[0, 0, 1], [1, 1, 0], [1, 1, 0]]], dims=("chain", "draw", "obs"))
    >>> mu = xr.DataArray([[[1.1, 8.2], [8.1, 1.2], [7.9, 1.0]]], dims=("chain", "draw", "component"))
    >>> posterior = xr.Dataset({"z": z, "mu": mu})
    >>> pc.relabel(posterior, [0, 0, 1], component_dim="component")["mu"].values
    array([[[1.1, 8.2],
            [1.2, 8.1],
            [1. , 7.9]]])
    """
    if not (isinstance(draws, xr.Dataset) or has_groups(draws)):
        raise TypeError(
            f"`draws` must be an InferenceData, DataTree or Dataset; got {type(draws).__name__}. "
            "Open a file with arviz.from_netcdf or xarray.open_datatree first."
        )
    posterior = group_dataset(draws, group)
    sample_dims = dim_names(sample_dims, posterior)
    where = Where(var_name, sample_dims=sample_dims)
    if allocations is None and var_name is None:
        allocations = _of_a_summary(posterior, partition, component_dim, sample_dims)
    allocations = None if allocations is None else as_draws(allocations)
    names, n_components = _component_dims(posterior, component_dim, allocations)
    if allocations is None:
        _check_no_items(posterior, names, sample_dims)
        kept = _without_parameters(posterior, names, sample_dims)
        found = find_source(kept, where).source.as_draws()
    else:
        found = _reordered_to(posterior, _dims_of_draws(posterior, sample_dims), allocations)
    others = posterior.drop_dims(names)
    labels: xr.DataArray | None
    if allocations is None and found.counted_draws is not None:
        labels, dims, _ = found_labels(others, where)
    else:
        dims = _dims_of_draws(posterior, sample_dims)
        labels = _labels_beside(others, None if allocations is None else var_name, (*dims, found.items.dim))
    numbers = np.empty((0, 0), np.intp) if labels is None else component_numbers(labels, n_components, first_label)
    order, clusters, common = _components_in_order(found, numbers, partition, n_components)
    n_clusters = common.shape[2]
    result = _reordered(posterior, names, dims, order[:, :n_clusters], clusters[:n_clusters])
    if labels is not None:
        renumbered = _renumbered(labels, numbers, order, clusters).variable
        result[labels.name] = renumbered.transpose(*posterior[labels.name].dims)
    record = _record(result, (*dims, names[0]), order[:, :n_clusters], common, found)
    _warn_of_mixtures(record)
    if isinstance(draws, xr.Dataset):
        return result
    added = {group: result}
    if n_components > n_clusters:
        by_component = posterior[[name for name, v in posterior.data_vars.items() if set(names) & set(v.dims)]]
        added["extra_components"] = _reordered(by_component, names, dims, order[:, n_clusters:], clusters[n_clusters:])
    added["relabelling"] = record.assign_attrs(
        method="ECR" if found.counted_draws is not None else "Stephens", component_dim=", ".join(names)
    )
    is_node = isinstance(draws, xr.DataTree) and group not in draws.children  # `draws` is the group itself
    return with_groups(xr.DataTree() if is_node else draws, added)


def _of_a_summary(
    posterior: xr.Dataset, partition: Any, component_dim: Any, dims: tuple[str, ...]
) -> PartitionDraws | None:
    """Allocation probabilities of a summary, if the posterior has neither labels nor probabilities; else None."""
    names = _dims_named(component_dim)
    if label_candidates(posterior.drop_dims(names, errors="ignore"), dims, None):
        return None
    if probability_candidates(posterior, dims) or any(v.dtype.kind != "f" for v in posterior.data_vars.values()):
        return None
    if isinstance(partition, HasDraws) and partition.draws.counted_draws is None:
        return partition.draws
    if set(names) <= set(posterior.dims):
        raise ValueError(
            "`allocations` must be given if labels are marginalized: the posterior has neither labels nor allocation "
            f"probabilities; present: {listing(posterior.data_vars)}. Give "
            "allocations=allocation_probabilities(model, idata), or a summary with a model as `partition`."
        )
    return None


def _reordered_to(posterior: xr.Dataset, dims: tuple[str, ...], allocations: PartitionDraws) -> PartitionDraws:
    """Allocations in the order of the posterior's samples."""
    unnamed = xr.DataArray(np.zeros((*(posterior.sizes[dim] for dim in dims), 1), np.int8), dims=(*dims, "_item"))
    own = samples_of(unnamed.assign_coords(_coords_over(posterior, dims)), dims, None, "")
    return allocations.reordered_to(own, "`allocations`")


def _components_in_order(
    draws: PartitionDraws, numbers: npt.NDArray[np.integer[Any]], partition: Any, n_components: int
) -> tuple[Positions, Integers, Floats]:
    """Components of each draw in the order of the clusters (n_draws, n_components), by ECR or Stephens' method.

    Also their new numbers (n_components,), with the clusters first, and the counts of items that components and
    clusters have in common (n_draws, n_components, n_clusters).
    """
    labels, clusters = draws.as_labels(partition), cluster_numbers(partition, draws.items.reordered(partition))
    if clusters.size > n_components:
        raise ValueError(
            f"`partition` must have at most as many clusters as there are components, {n_components}; "
            f"got {clusters.size}. Search for one with max_clusters={n_components}."
        )
    ascending = np.argsort(clusters)
    reference, clusters = np.argsort(ascending)[labels].astype(np.int32), clusters[ascending]
    clusters = np.append(clusters, clusters[-1] + 1 + np.arange(n_components - clusters.size))
    if draws.counted_draws is not None:
        common = common_items(numbers, reference, n_components)
        return with_the_rest(most_in_common(common), n_components), clusters, common
    probabilities = as_soft(draws, "Stephens' method").probabilities
    common = expected_common_items(probabilities, reference)
    order = with_the_rest(most_in_common(common), n_components)
    return least_divergence(probabilities, draws.weights, order), clusters, common


def _without_parameters(posterior: xr.Dataset, names: tuple[str, ...], dims: tuple[str, ...]) -> xr.Dataset:
    """The posterior without variables over components, except allocation probabilities."""
    kept = {}
    for variable in probability_candidates(posterior, dims):
        others = other_dims(variable, dims)
        components, items = ([str(dim) for dim in others if (dim in names) is named] for named in (True, False))
        if len(components) == 1 and (sums_to_one(variable, components[0]) or not sums_to_one(variable, items[0])):
            kept[variable.name] = variable
    return posterior.drop_dims(names).assign(kept)


def _check_no_items(posterior: xr.Dataset, names: tuple[str, ...], dims: tuple[str, ...]) -> None:
    """Raise ValueError if `component_dim` is the dimension of the items, so that no labels remain."""
    found = label_candidates(posterior, dims, None)
    parameters = [v for v in posterior.data_vars.values() if v.dtype.kind == "f" and set(names) & set(v.dims)]
    if found and not parameters and not label_candidates(posterior.drop_dims(names), dims, None):
        raise ValueError(
            f"`component_dim` must not run over the items; got {listing(names)}, and {found[0].name!r}, which may be "
            f"the labels, is over {found[0].dims}. Without labels, give `allocations`."
        )


def _dims_named(component_dim: Any) -> tuple[str, ...]:
    names = (component_dim,) if isinstance(component_dim, str) else component_dim
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"`component_dim` must be a name or a sequence of names; got {component_dim!r}.")
    return tuple(names)


def _component_dims(
    posterior: xr.Dataset, component_dim: str | Sequence[str], allocations: PartitionDraws | None
) -> tuple[tuple[str, ...], int]:
    """Names of the dimensions of components, and the number of components."""
    names = _dims_named(component_dim)
    sizes = {str(dim): size for variable in posterior.data_vars.values() for dim, size in variable.sizes.items()}
    missing = [name for name in names if name not in sizes]
    if missing:
        raise ValueError(
            f"`component_dim` must name dimensions of the posterior's variables; got {missing[0]!r}, "
            f"present: {listing(sizes)}."
        )
    if len({sizes[name] for name in names}) > 1:
        lengths = ", ".join(f"{name!r} {sizes[name]}" for name in names)
        raise ValueError(f"`component_dim` must name dimensions of the same length; got {lengths}.")
    n_components = sizes[names[0]]
    if allocations is not None:
        soft = as_soft(allocations, "`allocations`")
        if soft.n_components != n_components:
            raise ValueError(
                f"`allocations` must be of the {n_components} components of {names[0]!r}; "
                f"got probabilities of {soft.n_components}."
            )
        if sizes.get(soft.component_dim) == n_components:
            names = (*names, soft.component_dim)
    names = tuple(dict.fromkeys(names))
    _warn_of_others(posterior, names, n_components)
    return names, n_components


def _warn_of_others(posterior: xr.Dataset, names: tuple[str, ...], n_components: int) -> None:
    others = [
        f"{dim!r} of {name!r}"
        for name, variable in posterior.data_vars.items()
        for dim, size in variable.sizes.items()
        if size == n_components and dim not in names and _UNNAMED.search(str(dim))
    ]
    if others:
        warn(
            f"Left in the order of each draw, with {n_components} entries: {', '.join(others)}. "
            "Name what runs over components in `component_dim` too.",
        )


def _dims_of_draws(posterior: xr.Dataset, dims: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the sample dimensions of a posterior that may have no labels."""
    if "sample" in posterior.dims and not set(dims) & set(posterior.dims):
        dims = ("sample",)
    missing = [dim for dim in dims if dim not in posterior.dims]
    if missing:
        raise ValueError(
            f"`sample_dims` must be dimensions of the posterior; got {dims}, present: {listing(posterior.dims)}."
        )
    return dims


def _labels_beside(posterior: xr.Dataset, var_name: str | None, dims: tuple[str, ...]) -> xr.DataArray | None:
    """The label variable of a posterior with allocation probabilities, or None."""
    found = [v for v in posterior.data_vars.values() if v.dtype.kind in "iub" and set(v.dims) == set(dims)]
    if var_name is not None:
        found = [v for v in found if v.name == var_name]
        if not found:
            raise ValueError(f"`var_name` must name a variable of integers over {dims}; got {var_name!r}.")
    if len(found) > 1:
        names = ", ".join(repr(str(v.name)) for v in found)
        raise ValueError(f"`var_name` must name the label variable; candidates: {names}.")
    return found[0].transpose(*dims) if found else None


def _reordered(
    posterior: xr.Dataset,
    names: tuple[str, ...],
    dims: tuple[str, ...],
    order: Positions,
    clusters: Integers,
) -> xr.Dataset:
    """Reorder every variable by the components `order` of each draw (n_draws, n_taken), numbered by `clusters`."""
    index = order.reshape(*(posterior.sizes[dim] for dim in dims), -1)
    taken = {}
    for name, variable in posterior.data_vars.items():
        over = [dim for dim in names if dim in variable.dims]
        if over and not set(dims) <= set(variable.dims):
            raise ValueError(f"{name!r}, with components, must have the dimensions {dims}; got {variable.dims}.")
        moved = variable.variable
        for dim in over:
            front = moved.transpose(*dims, dim, ...)
            at = index.reshape(*index.shape, *[1] * (front.ndim - index.ndim))
            moved = xr.Variable(front.dims, np.take_along_axis(front.values, at, axis=len(dims)), variable.attrs)
        taken[name] = moved.transpose(*variable.dims)
    numbers = {dim: clusters for dim in names if any(dim in v.dims for v in taken.values())}
    kept = posterior.drop_dims(names)
    return xr.Dataset(coords=kept.coords, attrs=posterior.attrs).assign(taken).assign_coords(numbers)


def _renumbered(
    labels: xr.DataArray, numbers: npt.NDArray[np.integer[Any]], order: Positions, clusters: Integers
) -> xr.DataArray:
    """Labels by consensus cluster: the number of each item's component."""
    position = np.argsort(order, axis=1)
    values = clusters[np.take_along_axis(position, numbers, axis=1)].reshape(labels.shape)
    smallest = np.promote_types(labels.dtype, np.min_scalar_type(int(clusters[-1])))
    return labels.copy(data=values.astype(labels.dtype if labels.dtype.kind == "f" else smallest))


def _record(
    posterior: xr.Dataset, dims: tuple[str, ...], assigned: Positions, common: Floats, draws: PartitionDraws
) -> xr.Dataset:
    """The group ``relabelling``: the assigned components, and how well they agree with the clusters."""
    shape = tuple(posterior.sizes[dim] for dim in dims)
    cluster_sizes = common[0].sum(axis=0)
    component_sizes = np.take_along_axis(common.sum(axis=2), assigned, axis=1)
    shared = np.take_along_axis(common, assigned[:, np.newaxis], axis=1)[:, 0]
    matched = is_matched(shared)
    match_share = draws.samples.mean(matched.T.astype(np.float64))
    pure = draws.samples.mean(np.divide(shared, component_sizes, out=np.zeros_like(shared), where=matched).T)
    unknown, left_out = np.full_like(match_share, np.nan), 1.0 - component_sizes.sum(axis=1) / cluster_sizes.sum()
    return xr.Dataset(
        {
            "permutation": (dims, assigned.reshape(shape)),
            "matched": (dims, matched.reshape(shape)),
            "match_share": (dims[-1:], match_share),
            "cluster_agreement": (dims[-1:], draws.samples.mean((shared / cluster_sizes).T)),
            "component_agreement": (dims[-1:], np.divide(pure, match_share, out=unknown, where=match_share > 0)),
            "agreement": float(draws.samples.mean(shared.sum(axis=1) / cluster_sizes.sum())),
            "left_out": float(draws.samples.mean(np.maximum(left_out, 0.0))),
        },
        coords=_coords_over(posterior, dims),
    )


def _warn_of_mixtures(record: xr.Dataset) -> None:
    """Warn about clusters whose parameters cannot be interpreted."""
    agreement = record["cluster_agreement"]
    low = np.flatnonzero(agreement.values < _LOW_AGREEMENT)
    numbers = agreement[agreement.dims[0]].values
    left_out = float(record["left_out"])
    words = []
    if left_out > _MUCH_LEFT_OUT:
        words.append(
            f"Components without a cluster have {left_out:.0%} of the items on average: they are in the group "
            "'extra_components', and the weights of the clusters do not sum to one. A consensus of more clusters may "
            "fit better."
        )
    if low.size:
        clusters = ", ".join(f"{agreement.values[k]:.0%} of cluster {numbers[k]}" for k in low)
        words.append(
            f"The components hold only {clusters}: these parameters do not describe whole clusters. Many draws divide "
            "such a cluster, or have none like it."
        )
    if words:
        warn(" ".join(words))


def _coords_over(dataset: xr.Dataset, dims: tuple[str, ...]) -> xr.Coordinates:
    """Coordinates over some of these dimensions only."""
    others = [name for name, coord in dataset.coords.items() if not set(coord.dims) <= set(dims)]
    return dataset.coords.to_dataset().drop_vars(others).coords
