"""The result of agreement_path(): estimates by chain along the penalty weight on disagreement, and a verdict."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse.csgraph import connected_components

from posterior_consensus.evaluate.expectation import Floats, losses_between
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored

Status = Literal["agreement", "search noise", "shared modes", "different modes"]

EARLY = 0.25  # penalty weight at which search noise has more than halved
_NEAR = 0.1  # largest Jaccard distance of two estimates that agree
_HALF = 0.5  # largest remaining share of a distance that was noise
_OF_PRICE = ("averaged_jaccard", "expected_loss", "disagreement", "objective")
_OF_CHAIN = ("own_loss", "own_mcse")
_AXES = {"price": "agreement_price", "chain": "agreement_chain"}  # names of dimensions in stored results
_NAMES = {"chain": "agreement_names"}
_MOST_NAMED = 6  # chains of a group
_VISITED = 0.05  # least share of a chain's draws


@dataclass(frozen=True, eq=False, repr=False)
class AgreementPath(Stored):
    """Estimates of several chains or analyses along a penalty on disagreement; made by :func:`agreement_path`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (price, chain, n_items), dtype int32
        Each chain's estimate at each penalty weight.
    table : xarray.Dataset
        Over ``price`` and ``chain``: ``own_loss``, the expected loss of each estimate over the draws of its chain, and
        its Monte Carlo standard error ``own_mcse``. Over ``price``: ``averaged_jaccard`` between the estimates;
        ``expected_loss``, the mean of ``own_loss``; ``disagreement``, the mean loss between two estimates; and
        ``objective``.
    visits : xarray.DataArray of shape (chain, estimate), dtype float64
        Share of each chain's draws nearest to each estimate at the penalty weight 0.25; NaN for an analysis without
        draws.
    loss : PartitionLoss
        The loss.
    of_chains : bool
        Whether these are chains of one posterior; otherwise separate analyses.
    """

    _figure = "agreement.plot_agreement_path"

    labels: xr.DataArray = field(
        metadata=stored_as.array("labels_by_agreement_price", _AXES, in_words=_NAMES, of_items=True)
    )
    table: xr.Dataset = field(
        metadata=stored_as.table("agreement_{}", (*_OF_PRICE, *_OF_CHAIN), _AXES, in_words=_NAMES)
    )
    visits: xr.DataArray = field(
        metadata=stored_as.array("agreement_visits", _AXES | {"estimate": "agreement_estimate"}, in_words=_NAMES)
    )
    loss: PartitionLoss = field(metadata=stored_as.loss("agreement_"))
    of_chains: bool = field(metadata=stored_as.flag("agreement_of_chains"))

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the chains or analyses."""
        return tuple(self.labels["chain"].values.tolist())

    @cached_property
    def _early(self) -> tuple[Floats, Floats]:
        """Jaccard distances between the estimates without a penalty and at the penalty weight 0.25."""
        prices = self.labels["price"].values
        at = int(np.flatnonzero(prices == EARLY)[0])
        return losses_between(self.labels.values[0], jaccard()), losses_between(self.labels.values[at], jaccard())

    @property
    def groups(self) -> list[list[Hashable]]:
        """Names of the chains whose estimates merge at the penalty weight 0.25, the largest group first.

        Two chains are linked if the Jaccard distance of their estimates is at most half its value without a penalty, or
        at most 0.1. Groups are connected by links.
        """
        alone, early = self._early
        _, group = connected_components(early <= np.maximum(_NEAR, _HALF * alone), directed=False)
        groups = [[self.names[c] for c in np.flatnonzero(group == g)] for g in range(group.max() + 1)]
        return sorted(groups, key=len, reverse=True)

    @property
    def _least_visit(self) -> float:
        """Smallest share of a chain's draws nearest to the estimates of a group; NaN if unknown.

        Groups whose estimates their own chains hardly visit are ignored, because such estimates lie between modes.
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
            return f"The {what} agree: between their own estimates no Jaccard index is below {1 - alone.max():.2f}."
        if self.status == "search noise":
            losses = self.table["expected_loss"].sel(price=[0.0, EARLY]).values
            return (
                f"Search noise or few effective draws: a penalty weight of {EARLY:g} raises the averaged Jaccard index "
                f"of the {what}' estimates {rise}, at {losses[1] / losses[0] - 1:.1%} more expected loss."
            )
        if self.status == "shared modes":
            return (
                f"Shared modes: the {what}' estimates differ, {_in_words(self.groups)}, but at least "
                f"{self._least_visit:.0%} of the draws of each are nearest to the estimates of any other group. "
                "Chains that mix slowly between modes have such estimates: run longer chains."
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
        facts = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
        ]
        return f"AgreementPath: {counted} of {self.labels.shape[-1]} items", facts, self.to_dataframe()


def _in_words(groups: list[list[Hashable]]) -> str:
    shown = [display.listed(names, _MOST_NAMED) for names in groups[:_MOST_NAMED]]
    more = [f"{len(groups) - len(shown)} more"] if len(groups) > len(shown) else []
    return " against ".join([*shown, *more])
