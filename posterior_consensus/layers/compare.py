"""compare_layers(): how the partitions of several layers differ in the same draw, or how stable layers of runs are."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.record import ConsensusPartition, stopped
from posterior_consensus.diagnostics.groups import compared_runs, run_distances
from posterior_consensus.diagnostics.traces import chain_statistics
from posterior_consensus.ensemble.layers import Layers, layer_names
from posterior_consensus.ensemble.partitions import Labels, named_partitions
from posterior_consensus.layers.between_runs import distances_between, stability_of
from posterior_consensus.layers.distances import layer_distances
from posterior_consensus.layers.flows import aligned_by_items, named_transitions
from posterior_consensus.layers.record import CHANGES, LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.arguments import RandomSeed, check_between, check_count, check_flag
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.layers import as_layers

_ALL_PAIRS = 50  # layers, of more of which in an order those are compared that are at most so many steps apart
_LAGS = 20


def compare_layers(
    layers: Any,
    *,
    loss: str | PartitionLoss | None = None,
    partitions: Any = None,
    consensus: bool = True,
    max_lag: int | None = None,
    prob: float = 0.9,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> LayerComparison | LayerStability:
    """Compare the partitions of several layers in the same draw, or the runs of several resolutions.

    Layers are several partitions of the same draw, such as those of each year, or groups of runs, such as those of each
    resolution; `adata.layers` of scanpy are something else.

    Parameters
    ----------
    layers : Layers or any data that :func:`as_layers` takes without further arguments
        Several partitions in each draw, or independent runs with groups, see :func:`as_runs`: a layer for each group.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``vi(a=0.5)``; by default "vi".
    partitions : dict, sequence or DataArray, optional
        A partition of each layer, by its name or in their order; by default the consensus partition of each for `loss`
        or, if that is not given either, "ballet" for runs with noise. In these, a vector's -1 is noise.
        A DataArray has a row for each layer, by name if its dimension has a coordinate; -1 or NaN is an item that the
        layer does not have.
    consensus : bool
        Whether to search for the consensus partitions, which takes almost all of the time. Without, layers of runs have
        stability and distances alone; layers of draws need partitions.
    max_lag : int, optional
        Largest number of steps between two layers that are compared, if layers have an order. By default all pairs are
        compared, and of more than 50 layers in an order those at most 20 steps apart.
    prob : float in (0, 1)
        Posterior probability of the intervals, by default 0.9. Layers of runs have none.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. Consensus partitions are those that :func:`summarize` of a layer finds with
        the same seed. Clusters are numbered such that numbers go on from layer to layer, as in :func:`summarize` of all
        layers; :func:`summarize` of one layer numbers its clusters by first appearance.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    LayerComparison
        Distances of layers, flows of items between clusters, moves of items, and a verdict in words.
    LayerStability
        For layers of runs: how stable each is, distances, consensus partitions, and a verdict in words.

    Raises
    ------
    ValueError
        If `loss` is not one between two partitions, `max_lag` is below 1 or the layers have no order, `prob` is not
        between 0 and 1, `partitions` do not label each layer's items, or the layers are invalid as :func:`as_layers`
        says.
    MemoryError
        If the flows between two layers in all draws take more than the memory budget.

    See Also
    --------
    summarize : Summarize each layer and compare them.
    diagnose : Check whether the chains agree on the distances.
    LayerComparison.plot, plot_layer_distances, plot_layer_items : Plot the result.
    LayerStability.plot : Plot the result for layers of runs.
    align_partitions : names that go on in given partitions, without draws.

    Notes
    -----
    With x_t and y_t the partitions of the common items of two layers in draw t, of weight w_t, the expected loss is

        sum_t w_t L(x_t, y_t).

    `low` and `high` are quantiles of L(x_t, y_t): the loss between the two true partitions lies between them with
    posterior probability `prob` or, as the loss takes few values, more. They are no interval of the expected loss,
    whose error is `mcse`.

    `independent` is the mean of L(x_s, y_t) over different draws s and t of blocks. A block has four draws that lie a
    quarter of all draws apart: in different chains if there are four. Draws of unequal weights are resampled for this,
    systematically [1]_; if one has more than a quarter of the weight, these columns are NaN. For a layer and itself,
    `independent` is the expected loss between two draws of it. With x', y' other draws of x and y, the separation is
    half the energy distance [2]_ of the layers' posteriors,

        E L(x, y') - (E L(x, x') + E L(y, y')) / 2,

    of a symmetric loss; of another one, the mean of both orders. It is the mean over blocks, as is `difference`: the
    mean of L(x_t, y_t) in a block less that of L(x_s, y_t). Both are over the same four partitions of either layer. So
    what depends on one layer alone cancels in their difference. The errors are those of the means of series of blocks,
    as long as a quarter of the draws. A negative difference means that the layers are more alike than if they were
    independent.

    Two layers differ in almost every draw if there is any uncertainty, so `p_equal` is near 0 whether something changed
    or not. The verdict says that the clustering changed if the separation is above two of its errors, and an
    item clearly moves. Of several steps, or pairs of layers without an order, it is above as many errors as keep the
    probability of one false alarm or more that of one step (Bonferroni's inequality): 2.8 of nine steps. A separation
    alone can also be due to larger uncertainty in one layer. A change is unsure if a move is likely, but none clear, or
    with an effective sample size below 50 for each chain.

    Errors take the autocorrelation of chains into account, see :meth:`Samples.mcse`. Losses are those of sampled labels
    also if layers have allocation probabilities.

    In draw t of weight w_t, let c_ti be the cluster of a layer's partition that the cluster of item i is matched with,
    as in :func:`membership`, and d_ti that in the next layer. From cluster k to cluster l go

        E n_kl = sum_t w_t sum_i 1{c_ti = k, d_ti = l}

    of the common items. The one-to-one matching of the largest sum of E n_kl says which clusters have one name; those
    with less than half an expected item in common have two names. A new cluster has a new name, as in
    :func:`align_partitions`. An item moves in a draw if c_ti and d_ti have two names, with probability `moved`. The
    move is `likely` if the probability that the item moves between its own clusters of the two partitions is above the
    probability that it stays or goes elsewhere, and `clear` if it is above three times that, both by more than two
    errors of the difference. With the clusters
    A_ti and B_ti of item i in the two layers, its overlap is

        sum_t w_t size(A_ti and B_ti) / size(A_ti or B_ti),

    which is below 1 also for an item that stays if others come or go.

    Standard errors of flows, moves and overlaps come from batches of the draws of each chain, as in
    :func:`diagnostics.similarity_mcse`; those of probabilities are enlarged near 0 and 1. They take the partitions as
    given. Flows, moves and overlaps are of sampled labels, too.

    **Layers of runs.** Runs of different layers are not paired. With the distance d between two runs, the loss or the
    mean of its two orders, and N runs z_1, ..., z_N of a layer,

        distance  = 2 / (N (N - 1)) sum_{s < t} d(z_s, z_t),
        chance    = mean over s < t of E d(z_s, p(z_t)),    p a random permutation of the items,
        stability = 1 - distance / chance.

    The permutation keeps the sizes of clusters, so `stability` can be compared between layers: 1 if all runs are equal,
    0 if they are as far apart as random labels of their sizes. For a loss that is linear in the sum A over joint cells,
    such as VI and Binder's loss, `chance` is exact [3]_; another loss is taken at the expectation of A. With the share
    f of the most frequent partition, the errors are

        error^2           = jackknife^2 + (chance 2 f^2 / (N + 4))^2,
        stability_error^2 = (jackknife / chance)^2 + (2 f^2 / (N + 4))^2.

    The jackknife is over runs, and is 0 if all are equal. The second part is for a partition that no run found: it may
    come in 2 / (N + 4) of all runs, and be as far from theirs as by chance. It vanishes if every run is another
    partition.

    Runs are nearer to the partition that was found for them than new runs are. So `to_consensus` and `agreement` are
    those of a run left out with the partition of the others, with the errors of :class:`results.NewRuns`. They are
    means over the runs themselves if `partitions` are others than results of greedy search for as many runs.

    `p_value` is that of the test of equal groups by sums of distances within
    the two layers, each divided by its number of runs [4]_. All exchanges of runs between the layers are compared if
    there are at most 5,000, else 1,999 random ones. Beyond 200 runs of a layer, 200 are compared with each other; the
    consensus partition is of all.

    An item that a run calls noise is a cluster of its own in distances, and `p` moves it like any other. With the sizes
    a_k and b_l of the clusters of two of n items, without noise, and h(x) = x log2 x, which is 0 for single items, VI
    has

        E d(z_s, p(z_t)) = (1 / n) (sum_k h(a_k) + sum_l h(b_l) - 2 sum_kl E h(X_kl)),

    where X_kl is hypergeometric, the number of a_k random items of n that are among b_l. So noise counts through n, and
    runs that call the same items noise are closer than random labels.

    References
    ----------
    .. [1] Kitagawa (1996), Journal of Computational and Graphical Statistics 5(1), 1-25.
       https://doi.org/10.1080/10618600.1996.10474692
    .. [2] Szekely and Rizzo (2013), Journal of Statistical Planning and Inference 143(8), 1249-1272.
       https://doi.org/10.1016/j.jspi.2013.03.018
    .. [3] Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11, 2837-2854.
       https://jmlr.org/papers/v11/vinh10a.html
    .. [4] Rizzo and Szekely (2010), Annals of Applied Statistics 4(2), 1034-1055. https://doi.org/10.1214/09-AOAS245

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> first, last = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    >>> draws = np.array([[first, first, last]] * 30 + [[last, last, first]] * 10)
    >>> found = pc.compare_layers(draws)
    >>> found.distances["expected_loss"].sel(layer=0).values.round(3)
    array([0., 0., 1.])
    >>> found.largest_change[:2]
    (1, 2)
    >>> found.partitions.labels.values
    array([[0, 0, 0, 1, 1, 1],
           [0, 0, 0, 1, 1, 1],
           [0, 0, 1, 1, 1, 1]], dtype=int32)

    Runs of two resolutions, of which the second one is less stable:

    >>> runs = pc.as_runs([first] * 5 + [[0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 2, 2]] * 2, groups=[0.5] * 5 + [1.0] * 4)
    >>> found = pc.compare_layers(runs, random_seed=1)
    >>> found.to_dataframe()["stability"].round(3).to_dict()
    {0.5: 1.0, 1.0: 0.667}
    >>> found.partitions.in_words()
    '0.5 to 1.0: Cluster 1 splits into clusters 1 (2 items) and 2 (1 item).'
    """
    layers = as_layers(layers)
    record, prob = as_loss(loss, kind=PartitionLoss), check_between("prob", prob, 1)
    pairs = _pairs_of_layers(layers, max_lag)
    if not check_flag("consensus", consensus) and partitions is None:
        if not layers.are_runs:
            raise ValueError(
                "`consensus` must be True for layers of draws, whose flows and moves are those of partitions; got "
                "False. Give `partitions`, or layers of runs."
            )
        return _of_runs(layers, pairs, None, record, progressbar)
    given = partitions_of_layers(layers, partitions, loss, random_seed, progressbar)
    if layers.are_runs:
        return _of_runs(layers, pairs, given, record, progressbar)
    aligned, flows, overlaps, losses = named_transitions(layers, given, record, prob)
    position = {name: k for k, name in enumerate(layers)}
    steps = tuple([position[name] for name in own_in(overlaps, end).values.tolist()] for end in ("before", "after"))
    pairs[steps] = pairs[steps[::-1]] = True
    return LayerComparison(
        distances=layer_distances(layers, pairs, record, prob, progressbar),
        changes=_changes_of_layers(layers, losses),
        partitions=aligned,
        flows=flows,
        overlaps=overlaps,
        dim=layers.dim,
        ordered=layers.ordered,
        prob=prob,
        loss=record,
        n_chains=len(layers.samples.chains),
        n_draws=layers.samples.n_draws,
        stopped=layers_stopped(given),
    )


def _of_runs(
    layers: Layers,
    pairs: Flags,
    partitions: Mapping[Any, Any] | None,
    loss: PartitionLoss,
    progressbar: bool,
) -> LayerStability:
    for name, draws in layers.items():
        if draws.samples.is_weighted:
            raise ValueError(
                f"Runs must have equal weights; those of layer {name!r} have {draws.samples.about_weights}."
            )
    reported = dict[Any, Labels]()
    for name, partition in (partitions or {}).items():
        reported[name] = layers[name].as_marked_labels(partition, f"partitions[{name!r}]")
    own = {name: run_distances(compared_runs(draws), loss) for name, draws in layers.items()}
    stability = stability_of(layers, own, reported, partitions, loss)
    return LayerStability(
        stability=stability,
        distances=distances_between(layers, pairs, own, reported, stability, loss, progressbar),
        partitions=None if partitions is None else aligned_by_items(layers, partitions, reported),
        dim=layers.dim,
        ordered=layers.ordered,
        loss=loss,
        stopped=() if partitions is None else layers_stopped(partitions),
    )


def layers_stopped(partitions: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Names of the layers whose consensus search ended early."""
    found = {name: getattr(one, "partition", one) for name, one in partitions.items()}  # of a summary
    return tuple(name for name, one in found.items() if isinstance(one, ConsensusPartition) and stopped(one))


def partitions_of_layers(
    layers: Layers,
    partitions: Any,
    loss: str | PartitionLoss | None,
    random_seed: RandomSeed,
    progressbar: bool,
) -> dict[Any, Any]:
    """A partition of each layer, by its name; without a loss, that of a layer with noise is found under "ballet"."""
    if partitions is None:
        seed = random_seed  # one for all, that of `summarize`: no search depends on those before it
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        each = track(layers.items(), "Searches", progressbar=progressbar)
        search = partial(consensus_partition, loss=loss, random_seed=seed, progressbar=False)
        return {name: search(draws) for name, draws in each}
    if isinstance(partitions, xr.DataArray) and partitions.ndim == 2:
        partitions = _partitions_by_layer(partitions, layers)
    if isinstance(partitions, Mapping):
        partitions = dict(zip(layer_names(partitions), partitions.values(), strict=True))
    given = named_partitions(partitions, "partitions")
    keys = map(str, layers) if isinstance(partitions, Mapping) else range(len(layers))
    named = dict(zip(layers, keys, strict=True))
    missing = [name for name, key in named.items() if key not in given]
    if missing or len(given) > len(layers):
        raise ValueError(
            f"`partitions` must be one for each of the {len(layers)} layers; got {len(given)}"
            f"{f', none for {display.listed(missing, 3)}' if missing else ''}."
        )
    return {name: given[key] for name, key in named.items()}


def _partitions_by_layer(partitions: xr.DataArray, layers: Layers) -> dict[Any, xr.DataArray] | list[xr.DataArray]:
    """Partition of each layer without the items that it lacks, by name if the rows have names."""
    dim = layers.dim if layers.dim in partitions.dims else partitions.dims[0]
    rows = [partitions.isel({dim: k}, drop=True) for k in range(partitions.sizes[dim])]
    rows = [row if (there := row.values >= 0).all() else row[there] for row in rows]
    if dim not in partitions.indexes:
        return rows
    names = partitions[dim].values
    names = np.datetime_as_string(names, unit="auto") if names.dtype.kind == "M" else names
    return dict(zip(names.tolist(), rows, strict=True))


def _pairs_of_layers(layers: Layers, max_lag: int | None) -> Flags:
    """Which pairs of layers (n_layers, n_layers) to compare, each with itself too."""
    n_layers = len(layers)
    if max_lag is None:
        max_lag = _LAGS if layers.ordered and n_layers > _ALL_PAIRS else n_layers
    elif not layers.ordered:
        raise ValueError(
            f"`max_lag` must be None for layers without an order; got {max_lag!r}. Or say ordered=True to as_layers."
        )
    return np.abs(np.subtract.outer(np.arange(n_layers), np.arange(n_layers))) <= check_count("max_lag", max_lag)


def _changes_of_layers(layers: Layers, losses: Floats) -> xr.Dataset:
    """How probably each step has the largest loss, and whether the chains agree on it."""
    samples = layers.samples
    largest = losses >= (1 - ROUNDING) * losses.max(axis=0, initial=0.0)
    shares = largest / np.maximum(largest.sum(axis=0), 1)
    rhat = chain_statistics(next(iter(layers.values())), losses)["rhat"]
    values = samples.mean(shares), samples.probability_mcse(shares, losses), rhat
    return xr.Dataset({name: ("step", column) for name, column in zip(CHANGES, values, strict=True)})
