"""What a summary claims: decided as numbers first, then in the words of each text; what all summaries share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from posterior_consensus.results import display
from posterior_consensus.runtime.arguments import as_path
from posterior_consensus.runtime.files import written_whole
from posterior_consensus.summary.references import bibtex, cited_keys

PROVEN, ESTIMATED, NOT_ASSESSED, CONTRADICTED = "proven", "estimated", "not assessed", "contradicted"


class Claim(NamedTuple):
    """What a summary claims on a topic: its words in each text, and what they say as numbers."""

    # Name and value of its printed line; without a value, none is printed.
    name: str = ""
    line: str = ""
    findings: Sequence[str] = ()  # its sentences among the findings, also in reports and ``findings.txt``
    methods: str = ""  # its sentence, or clause, in the methods text
    advice: str = ""  # a next step for the analyst, after the last of the findings
    # Whether it is proven, or counted; estimated from draws, or bounded; not assessed; or contradicted by the draws.
    status: str = PROVEN
    # Its number with the standard error; a bound with its relative gap. NaN if there is none.
    number: float = np.nan
    error: float = np.nan
    # Share of the draws below which the opposite would not have been seen, the largest number that is likely, or the
    # distance within which the number holds. NaN if there is none.
    limit: float = np.nan
    scope: str = ""  # of which draws it is said, as words that continue a sentence; or why it is not assessed
    partitions: str = ""  # among which partitions, likewise; empty for all

    def in_words(self, name: str, line: str, findings: Sequence[str] = (), methods: str = "") -> "Claim":
        """What is decided, with its words."""
        return self._replace(name=name, line=line, findings=findings, methods=methods)

    @property
    def with_advice(self) -> list[str]:
        """The findings, the last of them with the advice."""
        *others, last = self.findings or [""]
        return [*others, *filter(None, [f"{last} {self.advice}".strip()])]


def lines_of(claims: Mapping[str, Claim], first: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Printed lines: of the topics named `first`, then of all others in their order."""
    order = [*first, *(topic for topic in claims if topic not in first)]
    return [(claims[topic].name, claims[topic].line) for topic in order if claims[topic].line]


class HasClaims(display.Shown, display.Tabled):
    """What all summaries share: texts that are made of their claims, and files."""

    def _claims(self) -> dict[str, Claim]:
        """Claims by topic, in the order of the findings."""
        raise NotImplementedError

    @property
    def _is_in_doubt(self) -> bool:
        """Whether the findings begin with those on the chains."""
        return False

    def _methods(self) -> str:
        """The text for a paper, with its references."""
        raise NotImplementedError

    def _page(self, *, progressbar: bool) -> str:
        """The report as HTML."""
        raise NotImplementedError

    def _tables(self) -> dict[str, pd.DataFrame]:
        """Tables by the names of their files."""
        raise NotImplementedError

    def findings(self) -> list[str]:
        """Findings in plain sentences, in the order of reading.

        A verdict on chains or runs is the last; it is the first if they disagree, are short or cannot be assessed.
        """
        claims = self._claims()
        if self._is_in_doubt:
            claims = {"chains": claims["chains"], **claims}
        return [sentence for claim in claims.values() for sentence in claim.with_advice]

    def methods_text(self) -> str:
        """Sentences for the methods section of a paper, with the results' numbers, and the references they cite.

        If chains disagree, the text begins with the warning that these results must not be reported.
        """
        return self._methods()

    def bibtex(self) -> str:
        """BibTeX entries, with their keys, of the references that :meth:`methods_text` cites."""
        return bibtex(cited_keys(self.methods_text()))

    def to_html(self, path: str | Path, *, progressbar: bool = True) -> Path:
        """Write a report with findings, figures and tables to one HTML file that needs no network.

        With Bokeh (the extra ``report``), pictures are interactive: they zoom, a search or a click marks an item in all
        of them, and sliders change the partition shown, or go through the layers. ``to_html`` of a layer's own summary
        writes more of that layer. For scored pairs, the report lists components instead of a similarity matrix: those
        that are not proven optimal and the largest first, with their records and pairs. Their number is limited, so
        that the file stays small.

        Parameters
        ----------
        path : str or Path
            Path of the file; an existing file is replaced when the report is complete.
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
            If the environment variable ``SOURCE_DATE_EPOCH``, which replaces today's date, is no integer from 0.
        """
        return self._write(path, progressbar=progressbar)

    def _write(self, path: str | Path, **options: Any) -> Path:
        with written_whole(Path(path)) as new:  # fails before the work if the path is not writable
            new.write_text(self._page(**options), encoding="utf-8")
        return Path(path)

    def to_csv(self, folder: str | Path) -> Path:
        """Write findings, and tables for a spreadsheet, to files in a folder.

        ``findings.txt`` has a sentence per line.

        - Of draws, ``clusters.csv`` has a row per cluster, ``items.csv`` a row per item, and ``convergence.csv`` the
          convergence diagnostics, or ``comparison.csv`` the means over runs. With `links`, ``links.csv`` has a row per
          pair, and ``cluster_sizes.csv`` a row per size of clusters.
        - Of scored pairs, ``records.csv`` has a row per record, ``review.csv`` the pairs to review, at most 1,000, and
          ``curve.csv`` a row per threshold, if there is a `curve`.
        - Of layers, ``layers.csv`` has a row per layer.

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
            If the files cannot be written, or `folder` is a file or ends in ".csv".
        TypeError
            If `folder` is not a path.
        """
        into, frames = as_path("folder", folder), self._tables()
        if not into.is_dir() and (into.exists() or into.suffix.lower() == ".csv"):
            table = next(iter(frames))
            raise NotADirectoryError(
                f"`folder` must be a folder, or a new name for one, into which {', '.join(frames)} are written; got "
                f"the file {str(folder)!r}. For {table} alone, write `to_dataframe().to_csv({into.name!r})`."
            )
        into.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            with written_whole(into / f"{name}.csv") as new:
                frame.to_csv(
                    new, index=display.has_row_names(frame), encoding="utf-8-sig"
                )  # its mark shows Excel the encoding
        with written_whole(into / "findings.txt") as new:
            new.write_text("\n".join(self.findings()) + "\n", encoding="utf-8-sig")
        return into
