"""consensus_tree(): one partition a layer, each refining the coarser one."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import compared_losses
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.layers.compare import layers_stopped, partitions_of_layers
from posterior_consensus.layers.nested_search import Partitions, nested_partitions
from posterior_consensus.layers.tree_record import FOUND, LOSSES, ConsensusTree
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.stored_as import names_as_coordinate
from posterior_consensus.runtime.aliases import Integers
from posterior_consensus.runtime.arguments import RandomSeed, as_generator
from posterior_consensus.sources.layers import as_layers


def consensus_tree(
    layers: Any,
    *,
    loss: str | PartitionLoss | None = None,
    partitions: Any = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> ConsensusTree:
    """Find one tree over several layers: a partition of each, which refines that of the coarser layer.

    Parameters
    ----------
    layers : Layers or any data that :func:`as_layers` takes without further arguments
        Runs of several resolutions or numbers of clusters, see :func:`as_runs`, or several partitions in each draw, of
        the same items. Layers in an order are taken in it, or in its reverse if clusters become fewer; others by their
        mean number of clusters.
    loss : str or PartitionLoss, optional
        "vi", "binder", or either with costs, such as ``vi(a=0.5)``: a loss whose expectation is a sum over clusters. By
        default "vi".
    partitions : dict, sequence or DataArray, optional
        A partition of each layer to start from, as in :func:`compare_layers`; by default the consensus partition of
        each for `loss`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    ConsensusTree
        The partitions, their nodes with support, and what nesting costs.

    Raises
    ------
    ValueError
        If `loss` is another one, there are fewer than two layers, they have different items or items of noise,
        `partitions` do not label each layer's items, or the layers are invalid as :func:`as_layers` says.

    See Also
    --------
    compare_layers : How stable the layers are, and how far apart, with a partition of each alone.
    attach : Write the partitions of the tree to a posterior or to ``adata.obs``.
    ConsensusTree.plot : Plot the tree.

    Notes
    -----
    Over all partitions c_1, ..., c_L of which each refines the one before, the sum

        sum_r E L(c_r, z_r)

    is minimized, where z_r is a draw of layer r. Under a linear loss, E L is a constant plus a sum over the clusters S
    of a function f_r(S), for VI

        f_r(S) = (1 / n) (h(size(S)) - 2 sum_t w_t sum_k h(size(S and z_rtk))),    h(x) = x log2 x.

    So the best nested cuts of a given tree are found exactly, by dynamic programming: with V(S, r) the least sum of
    what lies within the set S in layers r, ..., L,

        V(S, r) = min(f_r(S) + V(S, r + 1), sum over the parts S' of S of V(S', r)).

    The search starts from four trees: the clusters of the finest layer with the parents that most of their items have;
    the clusters of each layer, divided by those of coarser ones; and the best cuts of two dendrograms of items, by mean
    similarity over the layers and with the finest clusters whole. It moves items that all layers co-cluster, and
    clusters with all that is within them, to another parent, into another cluster or into one of their own, cuts the
    new tree again, and begins anew from random changes. With up to 1,000 sets of items that all draws co-cluster, these
    are moved; with more, those that the partitions of all layers co-cluster, and then single items. The search found
    the minimum in each of 400 posteriors of 6 items and 3 layers, but no bound proves it for others.

    Support is the mean Jaccard similarity of a node to the most similar cluster of a draw, as in [1]_, over the draws
    of the layers in which it is a cluster. The tree is found from the same draws, so it is slightly too high.

    References
    ----------
    .. [1] Hennig (2007), Computational Statistics and Data Analysis 52(1), 258-271.
       https://doi.org/10.1016/j.csda.2006.11.025

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> coarse, fine = [[0, 0, 0, 1, 1, 1]] * 4, [[0, 0, 1, 2, 2, 2], [0, 0, 1, 1, 2, 2]] * 2
    >>> tree = pc.consensus_tree(pc.as_runs(coarse + fine, groups=[0.5] * 4 + [1.0] * 4), random_seed=1)
    >>> tree.partitions.values
    array([[0, 0, 0, 3, 3, 3],
           [1, 1, 2, 3, 3, 3]], dtype=int32)
    >>> tree.to_newick()
    '((1:1,2:1)0:1,3:2);'
    >>> tree.to_dataframe()[["parent", "size", "first", "last", "support"]].round(3)
          parent  size  first  last  support
    node
    0         -1     3    0.5   0.5    1.000
    1          0     2    1.0   1.0    1.000
    2          0     1    1.0   1.0    0.750
    3         -1     3    0.5   1.0    0.917
    """
    layers = as_layers(layers)
    record = as_loss(loss, kind=PartitionLoss)
    if not record.is_linear:
        raise ValueError(
            f"`loss` must be a sum over clusters, 'vi' or 'binder' with any costs; got {record.name!r}. "
            "compare_layers(layers) takes it, with a partition of each layer that need not be nested."
        )
    draws = _of_same_items(layers)
    given = partitions_of_layers(draws, partitions, record, random_seed, progressbar)
    separate = np.array([one.as_labels(given[name], f"partitions[{name!r}]") for name, one in draws.items()])
    posteriors = list(draws.values())
    labels = nested_partitions(posteriors, separate, record, as_generator(random_seed), progressbar)
    nodes, tree = _as_nodes(labels)
    first = posteriors[0]
    return ConsensusTree(
        partitions=first.items.array(nodes, "partitions", ("layer", ...), {"layer": names_as_coordinate(list(draws))}),
        nodes=_with_support(tree, nodes, posteriors, are_runs=layers.are_runs),
        losses=_losses(draws, nodes, separate, given, record),
        dim=layers.dim,
        loss=record,
        stopped=layers_stopped(given),
        words=first.words,
    )


def _of_same_items(layers: Layers) -> Layers:
    """The layers from coarse to fine, with labels alone and with the items in one order."""
    if len(layers) < 2:
        raise ValueError("`layers` must be at least two; got one, of which consensus_partition() finds the partition.")
    noisy = [name for name, draws in layers.items() if draws.has_noise]
    if noisy:
        raise ValueError(
            f"`layers` must have every item in a cluster; got noise in layer {noisy[0]!r}. compare_layers(layers) "
            "takes runs with noise; or leave the items out that a run calls noise."
        )
    names = list(layers)
    found = dict[Any, PartitionDraws]()
    for name in names:
        at, to = layers.common(names[0], name)
        if not at.size == layers[names[0]].n_items == layers[name].n_items:
            raise ValueError(
                f"`layers` must have the same items; got {layers[names[0]].n_items} in layer {names[0]!r} and "
                f"{layers[name].n_items} in layer {name!r}, of which {at.size} are common. Give those that all have."
            )
        own = layers[name].labels_only()
        found[name] = own if layers[name].items is layers[names[0]].items else own.of_items(to)
    numbers = np.array([float(draws.samples.mean(draws.n_clusters.astype(np.float64))) for draws in found.values()])
    if not layers.ordered:
        order = np.argsort(numbers, kind="stable")
    else:
        falls = np.arange(len(names)) @ (numbers - numbers.mean()) < 0
        order = np.arange(len(names))[:: -1 if falls else 1]
    return replace(layers, draws={names[k]: found[names[k]] for k in order.tolist()}, ordered=True)


class _Nodes(NamedTuple):
    """Columns over the nodes of a tree, and a layer's cluster of each node in a row of labels."""

    parent: Integers
    size: Integers
    first: Integers
    last: Integers


def _as_nodes(labels: Partitions) -> tuple[npt.NDArray[np.int32], _Nodes]:
    """Nodes (L, n) of the clusters of nested partitions (L, n), numbered with parents and larger ones first."""
    n_layers, n_items = labels.shape
    found, rows = np.empty((n_layers, n_items), np.int64), list[list[int]]()  # parent, size, first, last, first item
    for layer, own in enumerate(labels):
        _, items, cluster, sizes = np.unique(own, return_index=True, return_inverse=True, return_counts=True)
        nodes = np.empty(sizes.size, np.int64)
        for k, (item, size) in enumerate(zip(items.tolist(), sizes.tolist(), strict=True)):
            parent = int(found[layer - 1, item]) if layer else -1
            if layer and rows[parent][1] == size:
                nodes[k], rows[parent][3] = parent, layer
                continue
            nodes[k] = len(rows)
            rows.append([parent, size, layer, layer, item])
        found[layer] = nodes[cluster]
    children = dict[int, list[int]]()
    for node, row in enumerate(rows):
        children.setdefault(row[0], []).append(node)
    order, waiting = list[int](), [-1]
    while waiting:
        node = waiting.pop()
        order += [node] * (node >= 0)
        waiting += sorted(children.get(node, []), key=lambda one: (rows[one][1], -rows[one][4]))
    number = np.empty(len(rows) + 1, np.int64)
    number[order], number[-1] = np.arange(len(rows)), -1
    columns = np.array(rows, np.int64)[order].T
    return number[found].astype(np.int32), _Nodes(number[columns[0]], *columns[1:4])


def _with_support(
    tree: _Nodes, nodes: npt.NDArray[np.int32], layers: list[PartitionDraws], *, are_runs: bool
) -> xr.Dataset:
    """The nodes, with the mean Jaccard similarity to the most similar cluster of each draw of their layers."""
    n_nodes = tree.size.size
    n_layers, support, share = (tree.last - tree.first + 1).astype(np.float64), np.zeros(n_nodes), np.zeros(n_nodes)
    of_draws, squares = np.zeros((n_nodes, layers[0].n_draws)), np.zeros(n_nodes)
    for row, draws in zip(nodes, layers, strict=True):
        present, own = np.unique(row, return_inverse=True)
        counts = draws.backend.joint_counts(own.astype(np.int32))
        sizes, others = draws.backend.sizes[:, np.newaxis], np.bincount(own)
        nearest = np.maximum.reduceat(counts / (sizes + others - counts), draws.backend.starts[:-1]).T
        support[present] += draws.samples.mean(nearest)
        share[present] += draws.samples.mean((nearest > FOUND).astype(np.float64))
        if are_runs:
            squares[present] += draws.samples.mcse(nearest) ** 2
        else:
            of_draws[present] += nearest
    error = np.sqrt(squares) if are_runs else layers[0].samples.mcse(of_draws)
    columns = tree._asdict() | {
        "support": support / n_layers,
        "support_mcse": error / n_layers,
        "share": share / n_layers,
    }
    return xr.Dataset({name: ("node", values) for name, values in columns.items()}, {"node": np.arange(n_nodes)})


def _losses(
    layers: Layers, nodes: npt.NDArray[np.int32], separate: Partitions, given: dict[Any, Any], loss: PartitionLoss
) -> xr.Dataset:
    """What the partition of each layer loses, and what the one found for it alone loses."""
    rows = []
    for (name, draws), own, other in zip(layers.items(), nodes, separate, strict=True):
        nested = canonical_labels(own)
        of = compared_losses(draws, np.stack([other, nested]), loss, reference=0)
        least, found = float(of.expected_loss[0]), given[name]
        bound = found.lower_bound if isinstance(found, ConsensusPartition) and found.loss == loss else None
        bound = bound if bound is not None else 0.0 if least == 0 else np.nan
        counts = int(nested.max()) + 1, int(other.max()) + 1
        excess = float(of.difference[1]), float(of.difference_mcse[1])
        rows.append((float(of.expected_loss[1]), float(of.mcse[1]), least, *excess, bound, *counts))
    columns = zip(LOSSES, map(np.array, zip(*rows, strict=True)), strict=True)
    return xr.Dataset(
        {name: ("layer", values) for name, values in columns}, {"layer": names_as_coordinate(list(layers))}
    )
