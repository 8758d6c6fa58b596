"""Error rates that every audit has."""

from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from posterior_consensus.results import display

Rate = tuple[float, float, float]  # an estimate, and the ends of its 95% interval
UNKNOWN: Rate = (np.nan, np.nan, np.nan)


class AuditedRates(display.Shown):
    """Error rates by answers."""

    _no_figure = "its numbers are in to_dataframe()"
    _recall: ClassVar[str]  # its row

    @property
    def precision(self) -> float:
        """Share of matches among the joined pairs; NaN if none is joined, or none of the records drawn."""
        return self._rates["precision"][0]

    @property
    def precision_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates["precision"][1:]

    @property
    def recall(self) -> float:
        """Share of joined pairs among the matches seen; NaN if no match was found.

        Pairs are seen if they are joined or were scored, of :func:`audit_records` from its threshold on. Matches that
        are not seen, as blocking lost them, are in no number: recall of all matches is lower.
        """
        return self._rates[self._recall][0]

    @property
    def recall_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates[self._recall][1:]

    @property
    def bcubed_precision(self) -> float:
        """Mean over records of the share of matches in their clusters, the record itself included."""
        return self._rates["B-cubed precision"][0]

    @property
    def bcubed_precision_interval(self) -> tuple[float, float]:
        """Its 95% interval."""
        return self._rates["B-cubed precision"][1:]

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the error rates.

        Returns
        -------
        pandas.DataFrame
            A row for each: estimate, and the ends of its 95% interval, ``low`` and ``high``.
        """
        return pd.DataFrame.from_dict(self._rates, orient="index", columns=["estimate", "low", "high"])

    @cached_property
    def _rates(self) -> dict[str, Rate]:
        raise NotImplementedError
