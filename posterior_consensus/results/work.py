"""Small records of the work of methods and bounds, one for each kind of work."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from posterior_consensus import results


@dataclass(frozen=True, kw_only=True)
class Info:
    """A record of work: named numbers, words and lists of them."""

    def to_json(self) -> str:
        """Text for an attribute; :meth:`from_json` reads it."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"kind": type(self).__name__} | told)

    @staticmethod
    def from_json(text: str) -> Info:
        """Make the record again, of the kind that it was.

        Raises
        ------
        ValueError
            If the kind is not known.
        """
        told = json.loads(text)
        kind = told.pop("kind")
        kinds = {known.__name__: known for known in _with_kinds_below(Info)}
        if kind in dir(results):
            kinds[kind] = getattr(results, kind)  # its file may not be imported yet
        if kind not in kinds:
            raise ValueError(f"`info` must be of a kind that is known; got {kind!r}. Import what defines it.")
        return kinds[kind](**told)


def _with_kinds_below(kind: type[Info]) -> list[type[Info]]:
    return [kind, *(one for below in kind.__subclasses__() for one in _with_kinds_below(below))]


@dataclass(frozen=True, kw_only=True)
class ClusterLimits(Info):
    """Requested numbers of clusters; None if the number was free."""

    n_clusters: int | None = None
    max_clusters: int | None = None


@dataclass(frozen=True, kw_only=True)
class CandidatesInfo(Info):
    """Record of a choice among candidates by their expected losses.

    Attributes
    ----------
    n_candidates : int
        Partitions among which the choice was: of "best_draw" the distinct draws, of "enumeration" all there are.
    """

    n_candidates: int


@dataclass(frozen=True, kw_only=True)
class NumbersInfo(Info):
    """Record of a method that chooses the number of clusters by the expected loss.

    Attributes
    ----------
    n_clusters_tried : list of int
    expected_losses : list of float
        That of the partition found for each of these numbers.
    linkage : str or None
        Of "hierarchical".
    """

    n_clusters_tried: list[int] | None = None
    expected_losses: list[float] | None = None
    linkage: str | None = None


@dataclass(frozen=True, kw_only=True)
class FitInfo(NumbersInfo):
    """Record of a method that improves an objective of its own, step by step.

    Attributes
    ----------
    objective : float
        Its value for the result: expected distance ("align_and_vote"), expected Binder loss ("boem"), utility ("kcc"),
        summed impurity ("impurity"), log-likelihood ("lange_buhmann"), log-posterior density ("rpm_em"), squared
        distance to the PSM ("nmf").
    n_iter : int
        Steps to the result.
    converged : bool
        Whether the steps came to an end by themselves.
    trace : list of float
        The objective on the way.
    objectives : list of float or None
        Of every start of "align_and_vote", "impurity" and "rpm_em".
    """

    objective: float
    n_iter: int
    converged: bool
    trace: list[float]
    objectives: list[float] | None = None

    @classmethod
    def of(cls, trace: list[float], converged: bool, n_iter: int | None = None, **more: Any) -> Self:
        """Make the record of a run from the objectives on its way, by default one a step; the last is the result's."""
        n_iter = len(trace) if n_iter is None else n_iter
        return cls(objective=trace[-1], n_iter=n_iter, converged=converged, trace=trace, **more)
