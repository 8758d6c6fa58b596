"""All results to report for a posterior of partitions, in one object."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.plots.four_panels import four_panels, link_panels
from posterior_consensus.results import display
from posterior_consensus.results.storage import reading
from posterior_consensus.results.stored_as import read_fields
from posterior_consensus.runtime.arguments import as_path
from posterior_consensus.runtime.files import written_whole
from posterior_consensus.sources.containers import opened
from posterior_consensus.sources.door import find_source
from posterior_consensus.sources.labels import from_store
from posterior_consensus.sources.samples import one_of
from posterior_consensus.summary.observed import observed_of
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.references import bibtex, cited_keys
from posterior_consensus.summary.report.page import write_report
from posterior_consensus.summary.text import facts, findings, left_out, methods_text


class Summary(SummaryRecord, display.Shown):
    """Summary of a posterior of partitions; made by :func:`summarize`.

    Attributes
    ----------
    source : str
        The draws that were used.
    draws : PartitionDraws
    consensus : ConsensusPartition
    certificate : Certificate or None
        Bound of the distance between the consensus's expected loss and the minimum. None for a loss without a bound, if
        its matrices of items x items would need more than the memory budget, for more than 500 million labels, and if
        no time was left.
    ball : CredibleBall
        Under the consensus's loss if it is a metric, else under VI.
    items : ItemUncertainty
    diagnosis : Diagnosis
    alternative : ConsensusPartition or None
        The best partition found with the most probable number of clusters, if the number of `consensus` has a posterior
        probability below 5% and was not requested, and time was left. Its clusters have the names of those of
        `consensus` that they are matched with, and new names otherwise.
    answers : Particles or None
        Partitions that groups of draws are nearest to, under the ball's loss: one, or two or three if the posterior has
        several modes. They are searched for on about 500 draws, evenly spaced in each chain, or of weighted ones at
        even quantiles of the weights, and on some of the items if there are many; :func:`particles` searches longer,
        on all draws. None if they were not requested, or no time was left.
    observed : xarray.DataArray or None
        Data of the items, of shape (n_items,) or (n_items, n_features), if the posterior has them.
    seconds : dict of str to float
        Time that each step took.
    cut : tuple of str
        Steps that the time limit skipped or ended.
    no_certificate : str
        Why there is no certificate although the loss has a bound, as a sentence; else empty.
    links : Links or None
        Links between pairs of items, if there are more than 50 clusters and most items are in clusters of at most 3, as
        in record linkage. Figures, tables and sentences then show links instead of clusters. None otherwise, and for
        more than 10,000 items whose clusters are large in some draws.
    resampled : ConsensusPartition or None
        The best partition found with other labels sampled from the allocation probabilities. None without
        probabilities, for Binder's loss, whose expectation takes the probabilities themselves, for more than 20 million
        labels, for methods other than "greedy", and if no time was left.
    excess : results.ExcessLoss or None
        How much the expected loss exceeds its minimum under infinitely many draws, from searches on two halves of the
        draws. None if the chains disagree or cannot be compared, for an effective sample size below 100, for more than
        20 million labels, and if no time was left.
    """

    @classmethod
    def from_dataset(
        cls,
        dataset: xr.Dataset | xr.DataTree,
        idata: Any,
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
        dataset : xarray.Dataset or xarray.DataTree
            The result of :meth:`to_dataset`, or the group that :func:`attach` wrote.
        idata : InferenceData, DataTree, Dataset, path, or any posterior that :func:`summarize` takes
            The posterior. Draws and data of the items are read from it, as by :func:`summarize`. They are not stored
            with the results, which are small.
        var_name, model, group, sample_dims, item_dim, weights, log_weights
            As they were given to :func:`summarize`.

        Returns
        -------
        Summary

        Raises
        ------
        ValueError
            If no summary is in `dataset`, or its draws are not those of `idata`.
        TypeError
            If `dataset` is neither a Dataset nor a DataTree.

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
        weights = one_of(weights, log_weights)
        where = {"group": group, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
        with reading(dataset, cls.__name__) as read:
            with opened(from_store(idata, progressbar=False)) as data:
                draws = draws_of(find_source(data, var_name, model, **where, progressbar=False).source)
                observed = observed_of(data, draws)
            fields = read_fields(cls, read)
            consensus = fields["consensus"]
            if (draws.n_draws, draws.n_items) != (consensus.n_draws, consensus.labels.size):
                raise ValueError(
                    f"`idata` must hold the draws of the summary, {consensus.n_draws} of {consensus.labels.size} "
                    f"items; got {draws.n_draws} of {draws.n_items}."
                )
            draws = draws.in_order_of(Samples.along(fields["ball"].distances), "`idata`")
            order = draws.items.order_of(Items.along(consensus.labels, str(consensus.labels.dims[0])), "idata")
            if not np.array_equal(order, np.arange(draws.n_items)):
                draws = draws.of_items(order)
            return cls(draws=draws, observed=observed, **fields)

    def findings(self) -> list[str]:
        """Findings in plain sentences."""
        return findings(self)

    def left_out(self) -> list[str]:
        """Computations that were skipped, ended early or used some items only, in plain sentences.

        None for 9,000 items and 20 million labels or fewer, unless time was limited, the search interrupted, or
        ``answers=False``.
        """
        return left_out(self)

    def methods_text(self) -> str:
        """Sentences for a paper's section on methods, with these numbers, and their references.

        If the chains disagree, it begins with the warning that these results must not be reported.
        """
        return methods_text(self)

    def bibtex(self) -> str:
        """BibTeX entries, with their keys, of the references that :meth:`methods_text` cites."""
        return bibtex(cited_keys(self.methods_text()))

    def to_html(self, path: str | Path, *, progressbar: bool = True) -> Path:
        """Write a report with findings, figures and tables to one HTML file that needs no network.

        With Bokeh installed (the extra ``report``), its pictures are interactive: they zoom, a search or a click marks
        an item in all of them, and sliders change the partition shown.

        Parameters
        ----------
        path : str or Path
            An existing file is replaced once the report is complete.
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
        """
        return write_report(self, Path(path), progressbar=progressbar)

    def to_csv(self, folder: str | Path) -> Path:
        """Write the tables for a spreadsheet, and the findings, to files in a folder.

        ``clusters.csv`` has a row for each cluster, ``items.csv`` one for each item, ``convergence.csv`` the checks of
        convergence, and ``findings.txt`` one sentence on each line. With `links`, ``links.csv`` has a row for each pair
        and ``cluster_sizes.csv`` one for each size of clusters.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist. Files of these names are replaced, others stay.

        Returns
        -------
        Path
            Path of the folder.

        Raises
        ------
        OSError
            If the files cannot be written, or `folder` is a file.
        TypeError
            If `folder` is not a path.
        """
        into = as_path("folder", folder)
        if into.exists() and not into.is_dir():
            raise NotADirectoryError(f"`folder` must be a directory or a new name; got the file {str(into)!r}.")
        into.mkdir(parents=True, exist_ok=True)
        tables = {"clusters": self, "items": self.items, "convergence": self.diagnosis}
        frames = {name: result.to_dataframe() for name, result in tables.items()}
        if self.links is not None:
            frames |= {"links": self.links.to_dataframe(), "cluster_sizes": self.links.sizes.to_dataframe()}
        for name, frame in frames.items():
            with written_whole(into / f"{name}.csv") as new:
                frame.to_csv(new, encoding="utf-8-sig")  # by whose mark Excel knows the encoding
        with written_whole(into / "findings.txt") as new:
            new.write_text("\n".join(self.findings()) + "\n", encoding="utf-8-sig")
        return into

    def plot(self, *, order: Any = "clusters", figsize: tuple[float, float] | None = None) -> npt.NDArray[np.object_]:
        """Plot similarity matrix, number of clusters, credible ball and item uncertainty in four panels.

        If all draws have the same number of clusters, the second panel has their sizes instead. If the summary has
        `links` and `order` is "clusters", plot instead the numbers of clusters by size, the number of clusters, the
        links by probability and the most uncertain links.

        Parameters
        ----------
        order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
            Order of the items: by cluster, as in the data, or along a coordinate of the items (its name or its values),
            such as time.
        figsize : (float, float), optional
            Width and height of the figure in inches.

        Returns
        -------
        ndarray of matplotlib.axes.Axes, of shape (2, 2)
            ``summary.plot()[0, 0].figure`` is the figure, for example to save it.
        """
        if self.links is not None and isinstance(order, str) and order == "clusters":
            return link_panels(self.draws, self.links, figsize=figsize)
        return four_panels(self.draws, self.consensus, self.ball, self.items, order=order, figsize=figsize)

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        items = display.counted(self.draws.n_items, "item")
        clusters = display.counted(self.consensus.n_clusters, "cluster")
        title = f"Summary: {items} ({self.draws.items.dim}) in {clusters}"
        rows = self.to_dataframe() if self.links is None else self.links.uncertain.head(display.MOST_ROWS)
        return title, facts(self), rows
