"""A similarity matrix alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results.words import DRAWS, Words
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats

_LOSSES_OF_PAIRS = "loss='binder' or loss='vi_lower_bound', which need similarities only"


@dataclass(frozen=True, eq=False, repr=False)
class PairSimilarity(PairSource):
    """A posterior similarity matrix without draws, returned by :func:`as_pair_similarity`.

    Attributes
    ----------
    items : Items
        The items, with their coordinates.
    values : ndarray of shape (n_items, n_items), dtype float64
        Co-clustering probabilities: symmetric, in [0, 1], 1 on the diagonal.
    errors : ndarray of shape (n_items, n_items), dtype float64, or None
        Standard errors of the values, if these are shares of the draws that contain both items.
    samples : Samples or None
        These draws.
    words : Words
        What draws are called.
    """

    items: Items
    values: Floats
    errors: Floats | None = None
    samples: Samples | None = None

    @classmethod
    def of(cls, source: PairSource) -> PairSimilarity:
        """The similarities of any posterior alone, which know whether they are of runs."""
        if isinstance(source, PairSimilarity):
            return source
        samples = None if source.draws is None else source.draws.samples
        return PairSimilarity(source.items, source.similarity(), samples=samples)

    @property
    def words(self) -> Words:
        """What draws are called; "draws" where they are unknown."""
        return DRAWS if self.samples is None else self.samples.words

    def as_draws(self, what: str = "This", *, lacking: bool = False) -> NoReturn:
        """Raise ValueError: a matrix has no draws."""
        losses = f", or choose {_LOSSES_OF_PAIRS}" * what.startswith("loss ")
        raise ValueError(
            f"{what} needs posterior draws; got a similarity matrix alone, which has pairwise probabilities, but no "
            f"partitions. Pass the draws it was computed from{losses}."
        )

    @property
    def shared_similarity(self) -> Floats:
        """The matrix."""
        return self.values

    def check_memory(self, hint: str = "") -> None:
        """Do nothing: the matrix is in memory."""

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        pairs = np.ix_(at, at)
        errors = None if self.errors is None else self.errors[pairs]
        return replace(self, items=self.items.take(at), values=self.values[pairs], errors=errors)

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Rows of the matrix."""
        for rows in memory.parts(self.n_items, 8 * self.n_items):
            yield rows.start, self.values[rows]

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        return self.values[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the matrix with `columns` (n, c)."""
        return self.values @ columns

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and divisor 1."""
        sums = self.values @ np.eye(labels.max() + 1)[labels]
        sums[np.arange(labels.size), labels] -= 1.0
        return sums, 1.0

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number of each item's row among the distinct rows: as the diagonal is 1, equal rows have similarity 1."""
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in self.values])

    def _lines(self) -> list[tuple[str, str]]:
        above = self.values[np.triu_indices(self.n_items, 1)]
        shares = (
            f"mean {above.mean():.3g}, of 0 {np.mean(above == 0):.0%}, of 1 {np.mean(above == 1):.0%}"
            if above.size
            else "none"
        )
        return [
            ("items", f"{self.n_items:,} ({self.items.dim})"),
            ("pairs", shares),
            *self._error_lines(),
            *self._lines_of_draws(),
            ("values", f"{self.values.dtype}, {self.values.nbytes / 1e6:.1f} MB"),
        ]

    def _lines_of_draws(self) -> list[tuple[str, str]]:
        if self.samples is None or self.samples.series:
            return [("draws", "none: a similarity matrix alone")]
        (name, number), *groups = self.samples.lines()
        return [(name, f"{number}, of which each pair is counted over those that had both items"), *groups]

    def _error_lines(self) -> list[tuple[str, str]]:
        if self.errors is None or self.n_items == 1:
            return []
        above = self.errors[np.triu_indices(self.n_items, 1)]
        unknown = f"unknown for {np.isnan(above).mean():.0%} of pairs"
        if np.isnan(above).all():
            return [("standard errors", unknown)]
        known = f"median {np.nanmedian(above):.2g}, largest {np.nanmax(above):.2g}"
        return [("standard errors", f"{known}; {unknown}" if np.isnan(above).any() else known)]
