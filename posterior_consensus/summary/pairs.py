"""A summary of scored pairs: the best partition of the records, how good it is expected to be, and what to review."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.answers.links import links
from posterior_consensus.answers.loss_parameter import LossPath, loss_path
from posterior_consensus.ensemble.items import Items, by_level
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.plots.four_panels import pair_panels
from posterior_consensus.plots.frame import Grid, Width
from posterior_consensus.problems.components import decomposed
from posterior_consensus.results import display
from posterior_consensus.results.stored_as import as_dataset, own_name_in, read_fields, reading
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.sources.conversion import as_source
from posterior_consensus.summary.about_pairs import claims_of, counts_of, methods_text
from posterior_consensus.summary.claims import Claim, lines_of
from posterior_consensus.summary.pair_record import PairsRecord
from posterior_consensus.summary.steps import SEARCH, consensus_within, seed_of

_THRESHOLDS = np.arange(1, 10) / 10
_MOST_ON_CURVE = 200_000  # records and scored pairs, beyond which no curve is computed
_LARGEST_ON_CURVE = 300  # records of the largest component at the smallest threshold, likewise
_MOST_TO_REVIEW = 1_000  # pairs in a file


class PairsSummary(PairsRecord):
    """All results to report for scored pairs of records; made by :func:`summarize` of :func:`as_pair_similarity`.

    Attributes
    ----------
    pairs : ScoredPairs
        The scored pairs.
    partition : ConsensusPartition
        The partition of minimum expected loss; its ``records`` has a row for each record.
    component : xarray.DataArray of shape (n_items,), dtype int32
        Connected component of each record: pairs with a score above the threshold link records, and so do pairs that
        must be together.
    links : ScoredLinks
        Pairs that the partition treats against their score, expected precision and recall, and pairs to review.
    curve : LossPath or None
        Partitions along the pair threshold, with their expected precision and recall. None for more than 200,000
        records and scored pairs together, for components of more than 300 records at the smallest threshold, and if no
        time was left.
    seconds : dict of str to float
        Seconds of each step.
    cut : tuple of str
        Steps that the time limit skipped or ended.
    seed : int or None
        The `random_seed` of the call, if it was an integer.
    """

    def _claims(self) -> dict[str, Claim]:
        return claims_of(self)

    def _methods(self) -> str:
        return methods_text(self)

    def plot(self, *, figsize: tuple[float, float] | None = None, width: Width = None) -> Grid:
        """Plot cluster sizes, pairs by score, precision and recall along the threshold, and the closest calls.

        Without a `curve`, the third panel has the pairs that are decided against their score.

        Parameters
        ----------
        figsize : (float, float), optional
            Width and height of the figure in inches.
        width : {"column", "page"}, optional
            Width in print, 89 or 180 mm, see :meth:`Summary.plot`.

        Returns
        -------
        ndarray of matplotlib.axes.Axes, of shape (2, 2), in a column (4, 1)
            ``summary.plot()[0, 0].figure`` is the figure, for example to save it.

        Raises
        ------
        ValueError
            If `figsize` or `width` is invalid, or both are given.
        """
        return pair_panels(self.links, self.curve, figsize=figsize, width=width)

    def _page(self, *, progressbar: bool) -> str:
        from posterior_consensus.summary.report.pairs import pairs_page

        return pairs_page(self)  # which takes little time

    def _tables(self) -> dict[str, pd.DataFrame]:
        review = _by_level(self.links.review(_MOST_TO_REVIEW), self.labels.indexes.get(self.labels.dims[0]))
        frames = {"records": self.to_dataframe(), "review": review}
        return frames if self.curve is None else frames | {"curve": self.curve.to_dataframe()}

    def to_dataset(self) -> xr.Dataset:
        """Convert the results, without the pairs, to one Dataset for any file format."""
        parts = [as_dataset(self), *([] if self.curve is None else [self.curve.to_dataset()])]
        return xr.merge(parts, join="exact", compat="identical", combine_attrs="drop_conflicts")

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree, pairs: Any) -> Self:
        """Restore the summary that :meth:`to_dataset` stored.

        Parameters
        ----------
        dataset : xarray.Dataset or xarray.DataTree
            The result of :meth:`to_dataset`.
        pairs : ScoredPairs, or any table that :func:`as_pair_similarity` recognizes by its columns
            The pairs as they were given to :func:`summarize`; they are not stored with the results.

        Returns
        -------
        PairsSummary
            The stored results with their pairs.

        Raises
        ------
        ValueError
            If `dataset` has no summary, or `pairs` are of other records.
        TypeError
            If `dataset` is neither a Dataset nor a DataTree, or `pairs` are no scored pairs.

        Examples
        --------
        >>> import pandas as pd
        >>> import posterior_consensus as pc
        >>> table = {"unique_id_l": ["a", "b"], "unique_id_r": ["b", "c"], "match_probability": [0.9, 0.2]}
        >>> pairs = pc.as_pair_similarity(pd.DataFrame(table))
        >>> stored = pc.summarize(pairs, random_seed=1).to_dataset()
        >>> pc.results.PairsSummary.from_dataset(stored, pairs).labels.values
        array([0, 0, 1], dtype=int32)
        """
        with reading(dataset, cls.__name__) as read:
            fields, given = read_fields(cls, read), read.dataset
        source = as_source(pairs)
        if not isinstance(source, ScoredPairs):
            raise TypeError(f"`pairs` must be scored pairs; got {type(source).__name__}.")
        labels = fields["partition"].labels
        order = source.items.order_of(Items.along(labels, str(labels.dims[0])), "pairs")
        source = source if np.array_equal(order, np.arange(source.n_items)) else source.of_items(order)
        has_curve = own_name_in(given, "labels_on_path") in given
        curve = LossPath.from_dataset(given) if has_curve else None
        return cls(pairs=source, links=links(source, fields["partition"]), curve=curve, **fields)

    def _parts(self) -> display.Parts:
        records = display.counted(self.pairs.n_items, "record")
        title = f"Summary of scored pairs: {records} in {display.counted(self.n_clusters, 'cluster')}"
        counts = counts_of(self)
        review = display.with_names_as_text(counts.review, ("first", "second"))
        review = review.drop(columns=["first_cluster", "second_cluster"])  # for which there is no room
        return title, lines_of(claims_of(self, counts)), None if review.empty else review


def summarize_pairs(
    clock: Clock, pairs: ScoredPairs, options: dict[str, Any], searched: dict[str, Any]
) -> PairsSummary:
    """Summarize scored pairs; `options` are of the search, `searched` has seed and progress bar of all searches."""
    clock.seconds["pairs"] = clock.seconds.pop("draws")
    consensus = consensus_within(clock, pairs, clock.part(SEARCH), searched | options)
    component = clock("components", _components_of_records, pairs, as_loss(consensus.loss, kind=PartitionLoss))
    decided = links(pairs, consensus)
    return PairsSummary(
        pairs=pairs,
        partition=consensus,
        component=pairs.items.array(component, "component"),
        links=decided,
        curve=_curve(clock, pairs, decided.tau, searched),
        seconds=clock.seconds,
        cut=tuple(clock.cut),
        seed=seed_of(searched["random_seed"]),
    )


def _by_level(review: pd.DataFrame, items: pd.Index | None) -> pd.DataFrame:
    """Pairs to review, with a column for each level of the names, as the table of the records has them."""
    if items is None or items.nlevels == 1 or review.empty:
        return review
    ends: dict[str, Any] = {}
    for end in ("first", "second"):
        ends |= by_level(end, pd.MultiIndex.from_tuples(review.pop(end), names=items.names))
    return pd.DataFrame(ends).join(review)


def _components_of_records(pairs: ScoredPairs, loss: PartitionLoss) -> npt.NDArray[np.int32]:
    """Component (n_items,) of each record, within which the search finds its clusters."""
    problem = decomposed(pairs, loss)
    return problem.component_of[problem.groups].astype(np.int32)


def _curve(clock: Clock, pairs: ScoredPairs, tau: float, searched: dict[str, Any]) -> LossPath | None:
    """Partitions along the threshold, unless there are many pairs or large components; work decides, not time."""
    if pairs.n_items + pairs.n_scored > _MOST_ON_CURVE or pairs.unscored >= tau:
        return None
    values = np.unique([*_THRESHOLDS[_THRESHOLDS > pairs.unscored], tau])
    largest = int(np.bincount(_components_of_records(pairs, binder(tau=values[0]))).max())
    if largest > _LARGEST_ON_CURVE:
        return None
    return clock.within_limit("curve", loss_path, pairs, loss="binder", values=values, **searched)
