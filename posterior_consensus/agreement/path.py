"""Agreement between clusterings: the averaged Jaccard index, and chains' partitions with a penalty on disagreement."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.expectation import (
    all_losses,
    loss_and_error,
    loss_matrix,
    losses_between,
    mean_between,
    mean_loss,
)
from posterior_consensus.ensemble.items import Items, two_partitions
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels, distinct_rows, of_result
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.losses.lookup import as_loss, with_parameters
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, as_numbers, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.conversion import as_draws, as_source, several_posteriors

Status = Literal["agreement", "search noise", "shared modes", "different modes"]

EARLY = 0.25  # penalty weight at which search noise has more than halved
_NEAR = 0.1  # largest Jaccard distance of two partitions that agree
_HALF = 0.5  # largest remaining share of a distance that was noise
_OF_PRICE = ("averaged_jaccard", "expected_loss", "disagreement", "objective")
_OF_CHAIN = ("own_loss", "own_mcse")
_AXES = {"price": "agreement_price", "chain": "agreement_chain"}  # names of dimensions in stored results
_NAMES = {"chain": "agreement_names"}
_MOST_NAMED = 6  # chains of a group
_VISITED = 0.05  # least share of a chain's draws
_PRICES = (0.0, 0.05, 0.1, 0.15, 0.2, EARLY, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
_ROUNDS = 100  # most rounds at a penalty weight; each lowers the objective, so few are needed
_STARTS = 2  # random starts of a search that also starts from all present partitions


def averaged_jaccard(partitions: Any) -> float:
    """Compute the Jaccard index averaged over all pairs of partitions, a measure of their agreement.

    Parameters
    ----------
    partitions : list, array of shape (n_partitions, n_items), or any posterior that :func:`summarize` takes
        At least two result objects, DataArrays or label vectors of the same items, or draws.

    Returns
    -------
    float
        From 0 to 1; 1 means that all partitions are equal. For weighted draws, it is the mean over two different draws
        sampled by weight.

    Raises
    ------
    ValueError
        If there are fewer than two partitions with weight, or they have different items.
    MemoryError
        If the indices of all pairs exceed the memory budget.

    See Also
    --------
    partition_loss : with draws and ``loss="jaccard"``, one minus the index of every pair.
    agreement_path : the expected loss of more agreement between chains.

    Notes
    -----
    The Jaccard index of two partitions is a / (a + b + c) [1]_. Here a is the number of pairs of items co-clustered in
    both, and b and c are the numbers co-clustered in only one of them. The index is 1 if no pair is co-clustered in
    either. For the partitions of a randomized method, the mean index is the stability of the method [2]_.

    References
    ----------
    .. [1] Jaccard (1912), New Phytologist 11(2), 37-50. https://doi.org/10.1111/j.1469-8137.1912.tb05611.x
    .. [2] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> round(pc.agreement.averaged_jaccard([[0, 0, 1, 1], [0, 0, 0, 0]]), 4)
    0.3333
    >>> round(pc.agreement.averaged_jaccard([[0, 0, 1, 1], [5, 5, 2, 2], [0, 0, 0, 0]]), 4)
    0.5556
    """
    draws = as_draws(_in_one_order(partitions)).in_fixed_order().without_zero_weights()
    if draws.n_draws < 2:
        raise ValueError(f"`partitions` must be at least two; got {draws.n_draws}.")
    memory.check(8 * draws.n_draws**2, f"The Jaccard indices of {draws.n_draws} partitions", "Take fewer.")
    distances = all_losses(draws, jaccard())
    if not draws.samples.is_weighted:
        return 1.0 - float(distances[np.triu_indices(draws.n_draws, 1)].mean())
    weights = draws.weights
    return 1.0 - float(weights @ distances @ weights / (1.0 - np.square(weights).sum()))


def _in_one_order(partitions: Any) -> Any:
    """Labels of partitions with named items, in the order of the first partition."""
    if isinstance(partitions, xr.DataArray) and not {"chain", "draw", "sample"} & set(partitions.dims):
        return partitions.values
    if not isinstance(partitions, (list, tuple)) or not any(map(_names_items, partitions)):
        return partitions
    return np.stack([two_partitions(partitions[0], other)[1] for other in partitions])


def _names_items(partition: Any) -> bool:
    labels = of_result(partition, "labels", partition)
    return isinstance(labels, (pd.Series, xr.DataArray)) and labels.ndim == 1


@dataclass(frozen=True, eq=False, repr=False)
class AgreementPath(Stored):
    """Partitions of several chains or analyses along a penalty on disagreement; made by :func:`agreement_path`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (price, chain, n_items), dtype int32
        Each chain's partition at each penalty weight.
    table : xarray.Dataset
        Over ``price`` and ``chain``: ``own_loss``, the expected loss of each partition over the draws of its chain, and
        its Monte Carlo standard error ``own_mcse``. Over ``price``: ``averaged_jaccard`` between the partitions;
        ``expected_loss``, the mean of ``own_loss``; ``disagreement``, the mean loss between two partitions; and
        ``objective``.
    visits : xarray.DataArray of shape (chain, partition), dtype float64
        Share of each chain's draws nearest to each partition at the penalty weight 0.25; NaN for an analysis without
        draws.
    loss : PartitionLoss
        The loss.
    of_chains : bool
        Whether these are chains of one posterior; otherwise separate analyses.
    """

    _figure = "paths.plot_agreement_path"

    labels: xr.DataArray = field(
        metadata=stored_as.array("labels_by_agreement_price", _AXES, in_words=_NAMES, of_items=True)
    )
    table: xr.Dataset = field(
        metadata=stored_as.table("agreement_{}", (*_OF_PRICE, *_OF_CHAIN), _AXES, in_words=_NAMES)
    )
    visits: xr.DataArray = field(
        metadata=stored_as.array("agreement_visits", _AXES | {"partition": "agreement_partition"}, in_words=_NAMES)
    )
    loss: PartitionLoss = field(metadata=stored_as.loss("agreement_"))
    of_chains: bool = field(metadata=stored_as.flag("agreement_of_chains"))

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the chains or analyses."""
        return tuple(self.table["chain"].values.tolist())

    @cached_property
    def _early(self) -> tuple[Floats, Floats]:
        """Jaccard distances between the partitions without a penalty and at the penalty weight 0.25."""
        prices = self.table["price"].values
        at = int(np.flatnonzero(prices == EARLY)[0])
        return losses_between(self.labels.values[0], jaccard()), losses_between(self.labels.values[at], jaccard())

    @property
    def groups(self) -> list[list[Hashable]]:
        """Names of the chains whose partitions merge at the penalty weight 0.25, the largest group first.

        Two chains are linked if the Jaccard distance of their partitions is at most half its value without a penalty,
        or at most 0.1. Groups are connected by links.
        """
        alone, early = self._early
        _, group = connected_components(early <= np.maximum(_NEAR, _HALF * alone), directed=False)
        groups = [[self.names[c] for c in np.flatnonzero(group == g)] for g in range(group.max() + 1)]
        return sorted(groups, key=len, reverse=True)

    @property
    def _least_visit(self) -> float:
        """Smallest share of a chain's draws nearest to the partitions of a group; NaN if unknown.

        Groups whose partitions their own chains hardly visit are ignored, because such partitions lie between modes.
        """
        places = [self._places(names) for names in self.groups]
        shares = [self.visits.values[:, own].sum(axis=1) for own in places]
        visited = [share for share, own in zip(shares, places, strict=True) if not share[own].max() < _VISITED]
        return float(np.min(visited))

    def _places(self, names: list[Hashable]) -> list[int]:
        return [self.names.index(name) for name in names]

    @property
    def status(self) -> Status:
        """Whether chains agree, differ by search noise, share modes or are in different modes; see `verdict`."""
        if len(self.groups) > 1:
            return "shared modes" if self._least_visit >= _VISITED else "different modes"
        return "agreement" if self._early[0].max() <= _NEAR else "search noise"

    @property
    def verdict(self) -> str:
        """Verdict on the chains in one sentence."""
        what, (alone, early) = "chains" if self.of_chains else "analyses", self._early
        pairs = np.triu_indices(len(alone), 1)
        rise = f"from {1 - alone[pairs].mean():.2f} to {1 - early[pairs].mean():.2f}"
        if self.labels.values[0].max() == 0:
            return (
                f"The {what} agree on one cluster of all items, which carries no information about modes; try another "
                "loss."
            )
        if self.status == "agreement":
            least = display.at_least(1 - alone.max(), ".2f")
            return f"The {what} agree: between their own partitions no Jaccard index is below {least}."
        if self.status == "search noise":
            losses = self.table["expected_loss"].sel(price=[0.0, EARLY]).values
            return (
                f"Search noise or few effective draws: a penalty weight of {EARLY:g} raises the averaged Jaccard index "
                f"of the {what}' partitions {rise}, at {losses[1] / losses[0] - 1:.1%} more expected loss."
            )
        if self.status == "shared modes":
            return (
                f"Shared modes: the {what}' partitions differ, {_in_words(self.groups)}, but at least "
                f"{display.at_least(self._least_visit, '.0%')} of the draws of each are nearest to the partitions of "
                "any other group. Chains that mix slowly between modes have such partitions: run longer chains."
            )
        group = np.empty(len(alone), np.intp)
        for g, names in enumerate(self.groups):
            group[self._places(names)] = g
        between = group[pairs[0]] != group[pairs[1]]
        rise = f"from {1 - alone[pairs][between].mean():.2f} to {1 - early[pairs][between].mean():.2f}"
        return (
            f"{what.capitalize()} in different modes, {_in_words(self.groups)}: a penalty weight of {EARLY:g} "
            f"changes the averaged Jaccard index between these groups only {rise}."
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the path.

        Returns
        -------
        pandas.DataFrame
            A row for each penalty weight.
        """
        return self.table[list(_OF_PRICE)].to_dataframe()

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        what = "chain" if self.of_chains else "analysis"
        number = len(self.names)
        counted = display.counted(number, what) if self.of_chains else f"{number} analyses"
        lines = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
        ]
        return f"AgreementPath: {counted} of {self.labels.shape[-1]} items", lines, self.to_dataframe()


def _in_words(groups: list[list[Hashable]]) -> str:
    shown = [display.listed(names, _MOST_NAMED) for names in groups[:_MOST_NAMED]]
    more = [f"{len(groups) - len(shown)} more"] if len(groups) > len(shown) else []
    return " against ".join([*shown, *more])


def agreement_path(
    draws: Any,
    *,
    loss: str | PartitionLoss | None = None,
    prices: Iterable[float] | None = None,
    n_starts: int | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> AgreementPath:
    """Trace how the chains' partitions merge as disagreement is penalized.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes, or a list or dict of several
        Draws of several chains, or several analyses of the same items: a list of draws, arrays (draws x items),
        DataArrays or posteriors, or a dict of them by name. Items are matched by their coordinate if all have one, else
        by position.
    loss : str or PartitionLoss, optional
        Name in LOSSES, or a record such as ``binder(tau=0.25)``; by default "vi". Between partitions, ``binder`` and
        ``vi`` have equal costs.
    prices : iterable of float, optional
        Nonnegative penalty weights. By default 17 values from 0 to 2. 0 and 0.25 are always included.
    n_starts : int, optional
        Largest number of random starts of the search for each chain's own partition, by default as for
        ``method="greedy"`` of :func:`consensus_partition`.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    AgreementPath
        Partition of each chain at each penalty weight, and a verdict.

    Raises
    ------
    ValueError
        If there are fewer than two chains with weight, or the analyses have different items. If a penalty weight is
        negative or not finite, or the loss is not symmetric. If draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    AgreementPath.plot : agreement and loss against the penalty weight.
    particles : the modes of a posterior, and which chains visit them.
    averaged_jaccard : the measure of agreement.

    Notes
    -----
    For chains i = 1, ..., m, the partitions x_1, ..., x_m minimize

        sum_i E_i L(x_i, z) + lambda / (m - 1) sum_{i < j} L(x_i, x_j),

    where E_i is the mean over the draws z of chain i and lambda the penalty weight. `objective` is this sum divided by
    m. It is the clustering agreement process [1]_, with a posterior expected loss instead of mutual information. Given
    all other partitions, x_i is the consensus of the chain's draws, with total weight 1, and of the m - 1 other
    partitions, with total weight lambda. At each penalty weight, chains take a better partition in turn until no search
    finds one. Each search starts from the partitions at the previous penalty weight.

    Without a penalty, each partition is the consensus of its chain. Differences from search noise and few draws vanish
    under a small penalty, at hardly any cost. Chains in different modes keep their partitions until the other
    partitions outweigh their own draws. Partitions can stay different although a joint move of all chains would lower
    the sum. Chains with different partitions are in different modes, unless the draws of each chain visit the
    partitions of all.

    References
    ----------
    .. [1] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> here, there = [[0, 0, 0, 1, 1, 1]] * 4, [[0, 1, 0, 1, 0, 1]] * 4
    >>> path = pc.agreement.agreement_path([here, here, there], prices=[0.5, 1.5], random_seed=1)
    >>> path.to_dataframe()["averaged_jaccard"].round(2)
    price
    0.00    0.47
    0.25    0.47
    0.50    0.47
    1.50    1.00
    Name: averaged_jaccard, dtype: float64
    >>> path.groups
    [[0, 1], [2]]
    """
    record = as_loss(loss, kind=PartitionLoss)
    _with_equal_costs(record)
    several = several_posteriors(draws)
    if several is None:
        sources: dict[Any, PairSource] = dict(as_draws(draws).by_chain())
    else:
        needing = [f"loss {record.name!r}"] * record.needs_draws
        sources = {name: as_source(one, *needing) for name, one in several.items()}
        items = next(iter(sources.values())).items
        sources = {name: _in_order_of_items(one, items) for name, one in sources.items()}
    if len(sources) < 2:
        parts = "chains" if several is not None else as_draws(draws).words.either("chains", "groups of runs")
        raise ValueError(
            f"`draws` must have at least two {parts}, or be a list of several analyses; got {len(sources)}."
        )
    n_entries = (len(sources) + 1) * next(iter(sources.values())).n_items ** 2
    by_pairs = not record.needs_draws and memory.fits(8 * n_entries)
    chains = [_Chain(source.in_fixed_order(), record, by_pairs) for source in sources.values()]
    if n_starts is not None:
        check_count("n_starts", n_starts)
    rng, along = as_generator(random_seed), _checked_prices(prices)
    partitions: list[Labels] = []
    by_weight = []
    for weight in track(along, "Agreement path", progressbar=progressbar):
        if not partitions:
            partitions = [chain.alone(rng, n_starts) for chain in chains]
        elif any(not np.array_equal(one, partitions[0]) for one in partitions[1:]):  # equal ones stay equal
            _settle(chains, partitions, weight, rng)
        by_weight.append(np.stack(partitions))
    return _record_of_path(sources, np.stack(by_weight), along, record, of_chains=several is None)


class _Chain:
    """Draws of a chain, and the search for its partition."""

    def __init__(self, source: PairSource, loss: PartitionLoss, by_pairs: bool) -> None:
        self.source, self._loss, self._by_pairs = source, loss, by_pairs

    @cached_property
    def _similarity(self) -> Floats:
        return self.source.shared_similarity

    def alone(self, rng: np.random.Generator, n_starts: int | None) -> Labels:
        """Consensus of the chain."""
        return self._search(self.source, self._loss, rng, [], n_starts)

    def pulled(self, own: Labels, others: npt.NDArray[Any], price: float, rng: np.random.Generator) -> Labels:
        """Search for a better partition, given the other partitions (m - 1, n) and the penalty weight `price`."""
        loss = _with_price(self._loss, price)
        source = self._with_partitions(others, price)
        found = self._search(source, loss, rng, [own, *others[distinct_rows(others)[0]]], _STARTS)
        values = mean_loss(source, np.stack([own, found]), loss)
        return found if values[1] < values[0] - SAME * max(1.0, abs(values[0])) else own

    def _with_partitions(self, others: npt.NDArray[Any], price: float) -> PairSource:
        """Draws of the chain and the other partitions, with their weights, as input of the search."""
        if self._by_pairs:
            together = sum((other[:, np.newaxis] == other).astype(np.float64) for other in others) / len(others)
            return PairSimilarity(self.source.items, (self._similarity + price * together) / (1.0 + price))
        draws = self.source.as_draws()
        labels = np.concatenate([draws.labels, others.astype(np.int64)])
        weights = np.concatenate([draws.weights, np.full(len(others), price / len(others))])
        return PartitionDraws.of(labels, samples=Samples.of_one_chain(len(labels)).weighted(weights), items=draws.items)

    @staticmethod
    def _search(
        source: PairSource, loss: PartitionLoss, rng: np.random.Generator, starts: list[Labels], n_starts: int | None
    ) -> Labels:
        return source.as_labels(search(Problem(source, loss), rng, Effort(n_starts=n_starts), starts).labels)


def _settle(chains: list[_Chain], partitions: list[Labels], price: float, rng: np.random.Generator) -> None:
    """Improve the partitions chain by chain until no search finds a better one; changes `partitions`."""
    unchanged = 0  # chains in a row that found nothing better
    for turn in range(_ROUNDS * len(chains)):
        if unchanged == len(chains):
            break
        at = turn % len(chains)
        others = np.stack(partitions[:at] + partitions[at + 1 :])
        better = chains[at].pulled(partitions[at], others, price, rng)
        unchanged = unchanged + 1 if np.array_equal(better, partitions[at]) else 1
        partitions[at] = better


def _with_equal_costs(loss: PartitionLoss) -> PartitionLoss:
    """Loss between two partitions, with equal costs."""
    if "a" in loss.parameters:
        return with_parameters(loss, a=1.0)
    if not loss.is_symmetric:
        raise ValueError(f"`loss` must be symmetric, or binder or vi with any costs; got {loss.name!r}.")
    return loss


def _with_price(loss: PartitionLoss, price: float) -> PartitionLoss:
    """Loss whose mean over draws of weight 1 and partitions of weight `price` equals the penalized sum."""
    if "a" not in loss.parameters:
        return loss
    return with_parameters(loss, a=(float(loss.parameters["a"]) + price) / (1.0 + price))


def _in_order_of_items(source: PairSource, items: Items) -> PairSource:
    order = source.items.order_of(items, "draws")
    return source if np.array_equal(order, np.arange(items.n_items)) else source.of_items(order)


def _checked_prices(prices: Iterable[float] | None) -> list[float]:
    if prices is None:
        return list(_PRICES)
    values = as_numbers("prices", list(prices) if isinstance(prices, Iterable) else prices)
    if values.ndim != 1 or not np.all((values >= 0) & np.isfinite(values)):
        raise ValueError(f"`prices` must be several finite numbers from 0; got {prices!r}.")
    return np.unique(np.append(values, [0.0, EARLY])).tolist()


def _visits(source: PairSource, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats:
    """Share (m,) of the draws nearest to each partition (m, n); ties go to the first; NaN without draws."""
    draws = source.draws
    if draws is None:
        return np.full(len(partitions), np.nan)
    nearest = loss_matrix(partitions, draws, loss).argmin(axis=0)
    return draws.samples.mean((np.arange(len(partitions))[:, np.newaxis] == nearest).astype(np.float64))


def _record_of_path(
    sources: dict[Any, PairSource], labels: npt.NDArray[Any], prices: list[float], loss: PartitionLoss, of_chains: bool
) -> AgreementPath:
    """Build the record from the partitions (prices, m, n) of chains or analyses."""
    evaluated = [loss_and_error(source, labels[:, at], loss) for at, source in enumerate(sources.values())]
    own, errors = (np.stack(column, axis=1) for column in zip(*(one[:2] for one in evaluated), strict=True))
    disagreement = np.array([mean_between(partitions, _with_equal_costs(loss)) for partitions in labels])
    columns = {
        "averaged_jaccard": np.array([1.0 - mean_between(partitions, jaccard()) for partitions in labels]),
        "expected_loss": own.mean(axis=1),
        "disagreement": disagreement,
        "objective": own.mean(axis=1) + np.array(prices) / 2 * disagreement,
        "own_loss": own,
        "own_mcse": errors,
    }
    early = labels[prices.index(EARLY)]
    visits = np.stack([_visits(source, early, _with_equal_costs(loss)) for source in sources.values()])
    items, dims = next(iter(sources.values())).items, ("price", "chain")
    coords = {"price": np.array(prices), "chain": np.asarray(list(sources))}
    return AgreementPath(
        labels=items.array(labels, "labels", (*dims, ...), coords),
        table=xr.Dataset({name: (dims[: column.ndim], column) for name, column in columns.items()}, coords),
        visits=xr.DataArray(visits, {"chain": coords["chain"]}, ("chain", "partition"), "visits"),
        loss=loss,
        of_chains=of_chains,
    )
