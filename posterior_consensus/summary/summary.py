"""Summary: all results to report for a posterior of partitions, and all that is read of the posterior."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.plots.four_panels import four_panels, link_panels
from posterior_consensus.plots.frame import Width
from posterior_consensus.results import display
from posterior_consensus.results.annotations import Annotations
from posterior_consensus.results.stored_as import read_fields, reading
from posterior_consensus.sources.containers import group_dataset, has_groups
from posterior_consensus.sources.conversion import Origin, find_source, opened
from posterior_consensus.sources.parameters import LogOfDraws, log_of_draws
from posterior_consensus.sources.where import Where
from posterior_consensus.summary.about_draws import FIRST_LINES, claims_of, headline, in_doubt, omissions
from posterior_consensus.summary.claims import Claim, lines_of
from posterior_consensus.summary.methods import methods_text
from posterior_consensus.summary.record import SummaryRecord


class Summary(SummaryRecord):
    """All results to report for a posterior of partitions, returned by :func:`summarize`.

    Most used are ``labels``, ``items``, ``clusters``, ``plot()``, ``to_html()`` and ``methods_text()``.

    Attributes
    ----------
    source : str
        Description of the draws used.
    draws : PartitionDraws
        The draws.
    partition : ConsensusPartition
        The consensus partition.
    certificate : Certificate or None
        Lower bound of the minimum expected loss. None for a loss without a bound, without memory for matrices of items
        x items, for more than 500 million labels, and if no time was left.
    ball : CredibleBall
        Credible ball under the partition's loss if it is a metric, else under VI.
    items : ItemUncertainty
        Mean similarity of each item to its cluster, and its nearest other cluster.
    diagnosis : Diagnosis
        Convergence of the chains.
    alternative : ConsensusPartition or None
        Best partition found with the most probable number of clusters. It is searched for if the number of clusters of
        `partition` was not requested and has a posterior probability below 5%, and time is left. Its clusters are named
        like the clusters of `partition` matched to them, other clusters get new names.
    modes : Particles or None
        Modes under the ball's loss: one partition, or one for each of two or three modes. Above 150,000 labels the
        search uses 300 items, and above a million labels of these fewer draws, ``modes.n_draws_searched``.
        :func:`particles` searches longer, on all draws. None if not requested, or if no time was left.
    observed : xarray.DataArray or None
        Data of the items, of shape (n_items,) or (n_items, n_features), if the posterior has them.
    seconds : dict of str to float
        Seconds of each step.
    cut : tuple of str
        Steps that the time limit, or Ctrl-C in a step before, skipped or ended.
    no_certificate : str
        Sentence that explains a missing certificate if the loss has a bound; else empty.
    links : Links or None
        Links between pairs of items, if there are more than 50 clusters and most items are in clusters of at most 3, as
        in record linkage. Figures, tables and sentences then show links instead of clusters. Also None for more than
        10,000 items with large clusters in some draws.
    resampled : ConsensusPartition or None
        Best partition found with labels sampled anew from the allocation probabilities. None without probabilities, for
        Binder's loss, whose expectation uses the probabilities themselves, for more than 20 million labels, for methods
        other than "greedy", and if no time was left.
    excess : results.ExcessLoss or None
        Excess of the expected loss over its minimum under infinitely many draws, from searches on two halves of the
        draws. None if the chains disagree or cannot be compared, for an effective sample size below 100, for more than
        20 million labels, and if no time was left.
    seed : int or None
        The `random_seed` of the call, if it was an integer.
    new_runs : results.NewRuns or None
        How near new runs are to the partition, under the loss of `ball`. None for draws of chains, a single run,
        weighted runs, or groups that disagree, for methods other than "greedy", and if no time was left.
    source_in_short : str
        The description as it is printed: of labels, the name of their variable alone.
    clusters : results.ClusterStability or None
        Share of the draws in which each cluster exists, is one with another one, and is split. None with `links`, and
        if the clusters of all draws times the clusters of the partition exceed 67 million, or the memory budget. The
        items of each cluster are in ``partition.clusters``.
    """

    @classmethod
    def from_dataset(
        cls,
        dataset: xr.Dataset | xr.DataTree | Mapping[str, Any],
        draws: Any,
        var_name: str | None = None,
        *,
        model: Any = None,
        group: str = "posterior",
        sample_dims: str | Sequence[str] | None = None,
        item_dim: str | None = None,
        weights: Any = None,
        log_weights: Any = None,
    ) -> Self:
        """Restore the summary that :meth:`to_dataset` stored with its posterior.

        Parameters
        ----------
        dataset : xarray.Dataset, xarray.DataTree or dict
            The result of :meth:`to_dataset`, or the group that :func:`attach` wrote; of an AnnData, its dict in
            ``uns``.
        draws : InferenceData, DataTree, Dataset, path, or any posterior that :func:`summarize` takes
            The posterior. Draws and data of the items are read from it, as by :func:`summarize`; results do not store
            them.
        var_name, model, group, sample_dims, item_dim, weights, log_weights
            Same values as in the call of :func:`summarize`.

        Returns
        -------
        Summary
            The stored results with their draws.

        Raises
        ------
        ValueError
            If `dataset` has no summary, or `draws` are of another posterior.
        TypeError
            If `dataset` is neither a Dataset nor a DataTree nor a dict of :func:`attach`.

        Examples
        --------
        >>> import xarray as xr
        >>> import posterior_consensus as pc
        >>> z = xr.DataArray([[[0, 0, 1], [1, 1, 0]] * 50], dims=("chain", "draw", "obs"), name="z")
        >>> tree = xr.DataTree.from_dict({"posterior": z.to_dataset()})
        >>> tree = pc.attach(tree, pc.summarize(tree, random_seed=1))
        >>> pc.results.Summary.from_dataset(tree["consensus"], tree).labels.values
        array([0, 0, 1], dtype=int32)
        """
        where = Where(var_name, group, sample_dims, item_dim, weights, log_weights)
        with reading(dataset, cls.__name__) as read:
            with opened(draws, where, progressbar=False) as (data, where):
                found = find_source(data, where, model, progressbar=False).source.as_draws(lacking=True)
                observed = observed_of(data, found)
            fields = read_fields(cls, read)
            consensus = fields["partition"]
            if (found.n_draws, found.n_items) != (consensus.n_draws, consensus.labels.size):
                raise ValueError(
                    f"`draws` must be those of the summary, {consensus.n_draws} of {consensus.labels.size} items; got "
                    f"{found.n_draws} of {found.n_items}."
                )
            found = found.reordered_to(Samples.along(fields["ball"].distances), "`draws`")
            order = found.items.order_of(Items.along(consensus.labels, str(consensus.labels.dims[0])), "draws")
            if not np.array_equal(order, np.arange(found.n_items)):
                found = found.of_items(order)
            return cls(draws=found, observed=observed, **fields)

    def _claims(self) -> dict[str, Claim]:
        return claims_of(self)

    @property
    def _is_in_doubt(self) -> bool:
        return bool(in_doubt(self))

    def left_out(self) -> list[str]:
        """Sentences on computations that were skipped, ended early or used some items only.

        Empty for at most 9,000 items and 20 million labels, unless time was limited, the search was interrupted, or
        ``modes=False``.
        """
        return list(omissions(self).findings)

    def _methods(self) -> str:
        return methods_text(self)

    def to_html(self, path: str | Path, *, y: Any = None, progressbar: bool = True) -> Path:
        """Write a report with findings, figures and tables to one HTML file that needs no network.

        With Bokeh (the extra ``report``), pictures are interactive: they zoom, a search or a click marks an item in all
        of them, and sliders change the partition shown.

        Parameters
        ----------
        path : str or Path
            Path of the file; an existing file is replaced when the report is complete.
        y : Series, DataArray or array_like of shape (n_items,), optional
            Data that did not form the clusters: a value for each item, as for :func:`contrast`. The report then has a
            section on the differences between clusters.
        progressbar : bool
            Whether to show progress of the search for the sliders' partitions, if it takes more than a second.

        Returns
        -------
        Path
            Path of the report.

        Raises
        ------
        OSError
            If the report cannot be written; an existing file stays as it was.
        ValueError
            If :func:`contrast` refuses `y`, or the environment variable ``SOURCE_DATE_EPOCH``, which replaces today's
            date, is no integer from 0.
        TypeError
            If `y` has dates.
        """
        return self._write(path, y=y, progressbar=progressbar)

    def _page(self, *, progressbar: bool, y: Any = None) -> str:
        from posterior_consensus.summary.report.page import page

        return page(self, y, progressbar=progressbar)

    def _tables(self) -> dict[str, pd.DataFrame]:
        frames = {"clusters": self.to_dataframe(), "items": self.items.to_dataframe()}
        frames[self.words.either("convergence", "comparison")] = self.diagnosis.to_dataframe()
        if self.links is not None:
            frames |= {"links": self.links.to_dataframe(), "cluster_sizes": self.links.sizes.to_dataframe()}
        return frames

    def plot(
        self, *, order: Any = "clusters", figsize: tuple[float, float] | None = None, width: Width = None
    ) -> npt.NDArray[np.object_]:
        """Plot similarity matrix, number of clusters, credible ball and item uncertainty in four panels.

        If all draws have the same number of clusters, the second panel shows cluster sizes instead. If the summary has
        `links` and `order` is "clusters", the panels are the numbers of clusters by size, the number of clusters, the
        links by similarity and the most uncertain links.

        Parameters
        ----------
        order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
            Order of the items: by cluster, as in the data, or along a coordinate of the items (its name or its values),
            such as time.
        figsize : (float, float), optional
            Width and height of the figure in inches.
        width : {"column", "page"}, optional
            Width in print, 89 or 180 mm, instead of `figsize`. Fonts have at most 7.5 points, and less if the style's
            text is smaller. In a column, the panels are below each other, 220 to 240 mm high.

        Returns
        -------
        ndarray of matplotlib.axes.Axes, of shape (2, 2), in a column (4, 1)
            ``summary.plot()[0, 0].figure`` is the figure, for example to save it.

        Raises
        ------
        ValueError
            If `order`, `figsize` or `width` is invalid, or both `figsize` and `width` are given.
        """
        if self.links is not None and isinstance(order, str) and order == "clusters":
            return link_panels(self.draws, self.links, figsize=figsize, width=width)
        return four_panels(self.draws, self.partition, self.ball, self.items, order=order, figsize=figsize, width=width)

    def _annotations(self) -> dict[str, Annotations]:
        (best,), (certainty,) = self.partition._annotations().values(), self.items._annotations().values()
        samples, facts = self.draws.samples, best.facts | {"methods": self.methods_text()}
        if len(samples.chains) > 1:
            facts[samples.words.chains] = np.array([str(name) for name in samples.chain_names], dtype=object)
        columns = best.columns | certainty.columns
        if self.clusters is not None:
            columns |= self.clusters._annotations()[""].columns
        return {"": Annotations(best.items, columns, facts)}

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        rows = self._short_table() if self.links is None else self.links.uncertain.head(display.MOST_ROWS)
        return headline(self), lines_of(self._claims(), FIRST_LINES), rows


class Posterior(NamedTuple):
    """All that a summary takes from data."""

    draws: PartitionDraws
    origin: Origin  # where they were found
    observed: xr.DataArray | None  # data of the items
    logs: LogOfDraws | None  # log density of each draw

    def take(self, rows: npt.NDArray[np.intp]) -> "Posterior":
        """Select draws by row number, each once and in order."""
        if rows.size == self.draws.n_draws:
            return self  # weights normalized again would differ by rounding
        logs = None if self.logs is None else self.logs._replace(values=self.logs.values[rows])
        return self._replace(draws=self.draws.take(rows), logs=logs)


def read_posterior(data: Any, where: Where, model: Any = None, *, progressbar: bool = True) -> Posterior | ScoredPairs:
    """Read draws, data of the items and log densities from opened data, or scored pairs.

    Arguments are those of :func:`find_source`.
    """
    found = find_source(data, where, model, progressbar=progressbar)
    if isinstance(found.source, ScoredPairs):
        return found.source
    draws = found.source.as_draws(lacking=True)
    logs = log_of_draws(data, draws) if where.group == "posterior" else None
    return Posterior(draws, found.origin, observed_of(data, draws), logs)


def observed_of(data: Any, draws: PartitionDraws) -> xr.DataArray | None:
    """The only observed variable with a row for each item, if there is exactly one."""
    if not has_groups(data):
        return None
    try:
        dataset = group_dataset(data, "observed_data")
    except ValueError:
        return None
    fitting = [
        v
        for v in dataset.data_vars.values()
        if v.dtype.kind in "iuf" and v.size and 1 <= v.ndim <= 2 and v.shape[0] == draws.n_items
    ]
    fitting = [v for v in fitting if _of_the_same_items(v, draws)]
    return fitting[0].load() if len(fitting) == 1 else None


def _of_the_same_items(data: xr.DataArray, draws: PartitionDraws) -> bool:
    with suppress(ValueError):
        Items.along(data, str(data.dims[0])).order_of(draws.items, "data")
        return True
    return False
