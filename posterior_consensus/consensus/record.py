"""A consensus partition with its expected loss."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.bounds.bound import relative_gap, status
from posterior_consensus.consensus.threshold import Threshold, consistent_interval
from posterior_consensus.ensemble.items import members_of
from posterior_consensus.ensemble.partitions import HasLabels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.results.work import ClusterLimits, Info
from posterior_consensus.runtime.arguments import check_integer, is_integer
from posterior_consensus.search.runs import SearchInfo

_FREE = ClusterLimits()


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusPartition(HasLabels, Stored):
    """A consensus partition with its expected loss; made by :func:`consensus_partition`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item, numbered by first appearance from 0, on the user's item coordinate.
    expected_loss : float
        Posterior expected loss, in the loss's unit.
    mcse : float
        Its Monte Carlo standard error; NaN for fewer than four draws in a chain, for a similarity matrix alone and for
        a loss of PAIR_LOSSES, which is no mean over draws.
    ess : float
        Effective sample size of the expected loss; NaN where `mcse` is. Below 100 `mcse` is rough, and can be much too
        small if a chain changes mode only a few times.
    loss : PartitionLoss or PairLoss
    method : str
    n_draws : int or None
        None where a similarity matrix alone was given.
    lower_bound : float or None
        No partition's expected loss is below it; for Binder's loss with any costs, None for others.
    info : SearchInfo, NumbersInfo, FitInfo, CandidatesInfo, PivotInfo, SeedsInfo, BinderBoundInfo or None
        The method's record of its search, :class:`SearchInfo` for "greedy".
    cluster_limits : ClusterLimits
        The ``n_clusters`` and ``max_clusters`` that were given.
    threshold : Threshold or None
        The pair threshold where ``tau`` was given.
    given_names : tuple
        Names that :meth:`with_names` gave the clusters, else empty.
    """

    labels: xr.DataArray = field(metadata=stored_as.array("labels", of_items=True))
    expected_loss: float = field(metadata=stored_as.number("expected_loss", measured=True))
    mcse: float = field(metadata=stored_as.number("mcse", measured=True))
    ess: float = field(metadata=stored_as.number("ess"))
    loss: Loss = field(metadata=stored_as.loss())
    method: str = field(metadata=stored_as.attribute("method"))
    n_draws: int | None = field(metadata=stored_as.attribute("n_draws"))
    lower_bound: float | None = field(default=None, metadata=stored_as.number("lower_bound", measured=True))
    info: Info | None = field(default=None, metadata=stored_as.work("info"))
    cluster_limits: ClusterLimits = field(default=_FREE, metadata=stored_as.work("cluster_limits"))
    threshold: Threshold | None = field(default=None, metadata=stored_as.work("threshold"))
    given_names: tuple[Hashable, ...] = field(default=(), metadata=stored_as.names("names"))

    _also_stored: ClassVar = {"cluster_sizes": stored_as.array("cluster_size"), "gap": stored_as.number("gap")}

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Name of each cluster: 0, 1, ... unless :meth:`with_names` gave others."""
        return self.given_names or tuple(range(self.n_clusters))

    @property
    def named_labels(self) -> xr.DataArray:
        """Name of each item's cluster, on the user's item coordinate."""
        return self.labels.copy(data=pd.Index(self.names).to_numpy()[self.labels.values])

    def with_names(self, names: Mapping[int, Hashable] | Sequence[Hashable] | None = None, *, first: int = 0) -> Self:
        """Name the clusters, or number them from another number than 0, in tables and in what is stored.

        Parameters
        ----------
        names : sequence of length n_clusters, or mapping from numbers of clusters, optional
            Cluster k of `labels` gets ``names[k]``. Those that a mapping leaves out keep their number.
        first : int
            Number of the first cluster: 1 for numbers as R has them.

        Returns
        -------
        ConsensusPartition
            With the same `labels`, which stay numbers from 0; `named_labels` has the names.

        Raises
        ------
        ValueError
            If there are too few names or too many, one of them twice, or one of a cluster that is not there.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1], [0, 1, 1]], random_seed=1, progressbar=False)
        >>> best.with_names(["small", "large"]).named_labels.values
        array(['small', 'small', 'large'], dtype=object)
        >>> best.with_names(first=1).named_labels.values
        array([1, 1, 2])
        """
        check_integer("first", first)
        found: list[Hashable] = [first + k for k in range(self.n_clusters)]
        if isinstance(names, Mapping):
            unknown = [k for k in names if k not in range(self.n_clusters)]
            if unknown:
                raise ValueError(
                    f"`names` must be those of clusters 0 to {self.n_clusters - 1}, as `labels` number them; "
                    f"got one of {unknown[0]!r}."
                )
            found = [names.get(k, number) for k, number in enumerate(found)]
        elif names is not None:
            found = list(names)
            if isinstance(names, str) or len(found) != self.n_clusters:
                raise ValueError(f"`names` must be {self.n_clusters}, one for each cluster; got {names!r}.")
        if len(set(found)) < len(found):
            raise ValueError(f"`names` must differ from each other; got {found}.")
        return replace(self, given_names=tuple(found))

    @property
    def gap(self) -> float | None:
        """Share of the expected loss by which the least can be smaller; None without a lower bound."""
        return None if self.lower_bound is None else relative_gap(self.expected_loss, self.lower_bound)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def cluster_sizes(self) -> xr.DataArray:
        """Number of items of each cluster, over ``consensus_cluster``, whose coordinate has given names."""
        sizes = xr.DataArray(np.bincount(self.labels.values), dims="consensus_cluster", name="cluster_size")
        if not self.given_names:
            return sizes
        names = pd.Index(self.given_names)
        return sizes.assign_coords(consensus_cluster=names.astype(str) if names.dtype == object else names)

    @property
    def clusters(self) -> dict[Hashable, list[Any]]:
        """Items of each cluster by its name, as their coordinate names them; without one, their positions."""
        return dict(zip(self.names, members_of(self.labels), strict=True))

    def members(self, k: int) -> list[Any]:
        """Items of one cluster, as their coordinate names them; without one, their positions.

        Parameters
        ----------
        k : int
            Number of the cluster in `labels`, from 0, whatever name it was given.

        Returns
        -------
        list

        Raises
        ------
        TypeError
            If `k` is not an integer.
        ValueError
            If there is no such cluster.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1], [0, 1, 1]], random_seed=1, progressbar=False)
        >>> best.members(0)
        [0, 1]
        >>> best.with_names(["small", "large"]).clusters
        {'small': [0, 1], 'large': [2]}
        """
        if not is_integer(k):
            raise TypeError(f"`k` must be the number of a cluster in `labels`; got {k!r}. `clusters` has them by name.")
        if not 0 <= k < self.n_clusters:
            raise ValueError(f"`k` must lie between 0 and {self.n_clusters - 1}; got {k}.")
        return list(self.clusters.values())[k]

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each cluster: its size, its share of the items, and the first few of them."""
        dim, names = str(self.labels.dims[0]), pd.Index(self.names, name="cluster")
        return display.table_of_members(list(self.clusters.values()), self.labels.size, dim, names)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        dim = self.labels.dims[0]
        items, clusters = display.counted(self.labels.size, "item"), display.counted(self.n_clusters, "cluster")
        title = f"ConsensusPartition: {items} ({dim}) in {clusters}"
        reached = f", {self.info.agreement()}" if isinstance(self.info, SearchInfo) else ""
        expected = display.quantity(self.expected_loss, self.loss.unit)
        facts = [
            (f"expected {self.loss.name}", display.with_error(expected, self.mcse, self.ess)),
            ("method", self.method + reached),
            ("draws", display.number_of_draws(self.n_draws)),
        ]
        if self.threshold is not None:
            interval = consistent_interval(self.threshold.within, self.threshold.between)
            facts.insert(1, ("threshold", f"tau {self.threshold.tau:.3g} (consistent: {interval})"))
        if self.gap is not None:
            proven = (
                "none, this is the optimum" if status(self.gap) == "optimal" else f"at most {self.gap:.2g} of the loss"
            )
            facts.insert(1, ("gap", proven))
        return title, facts, self.to_dataframe()
